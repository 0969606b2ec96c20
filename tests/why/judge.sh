#!/usr/bin/env bash
# The judge of tests/why itself: what it gives for a right answer, a wrong cause, culprit or share, an alarm on a healthy program, and nothing at all.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3 here"
mkdir kept
# says CAUSE SHARE NAME FUNCTION…: what the program in place of stave answers to explain.
printf '#!/bin/sh\ncat "%s/answer"\n' "$TMP" >fake
chmod +x fake
answer() {
  local out='' cause share name function
  while [ $# -ge 4 ]; do
    cause=$1 share=$2 name=$3 function=$4; shift 4
    out+="${out:+,}{\"cause\":\"$cause\",\"share\":$share,\"culprit\":{\"kind\":\"thread\",\"name\":\"$name\",\"function\":\"$function\"}}"
  done
  echo "{\"version\":1,\"units\":{\"kind\":\"step\",\"n\":40},\"findings\":[$out]}" >answer
}
cat >kept/lock_sleeper.json <<'END'
{"healthy": false, "units": {"kind": "step", "n": 40, "marked": true}, "dur_ns": 1000000000, "noise": {"cpu": 0.2}, "allowed": [], "traces": ["x.pftrace"],
 "causes": [{"cause": ["lock"], "share": 0.7, "culprit": [{"name": "locker", "function": "hold_asleep"}]}]}
END
cat >kept/compute_ok.json <<'END'
{"healthy": true, "units": {"kind": "step", "n": 40, "marked": true}, "dur_ns": 1000000000, "noise": {"cpu": 0.2}, "allowed": [], "traces": ["x.pftrace"], "causes": []}
END
cat >kept/unmarked_c.json <<'END'
{"healthy": true, "units": {"kind": "loop", "n": 40, "marked": false}, "dur_ns": 1000000000, "noise": {}, "allowed": [], "traces": ["x.pftrace"], "causes": []}
END
# gets NAME PROGRAM POINTS: of this program, for the answer that was set.
gets() {
  STAVE=$TMP/fake python3 "$SRC/tests/why/judge.py" --traces kept --only "=$2" >judged 2>&1
  check "$1" grep -qE "^$2 +$3  " judged || cat judged
}

answer lock 0.65 locker hold_asleep; gets all_is_right lock_sleeper 4/4
answer cpu 0.2 x x lock 0.65 locker hold_asleep; gets noise_that_the_kernel_counted_is_no_cause lock_sleeper 4/4
answer compute 0.9 x x lock 0.65 locker hold_asleep; gets compute_is_no_finding lock_sleeper 4/4
answer lock 0.65 trainer hold_asleep; gets the_wrong_thread lock_sleeper 3/4
answer lock 0.65 locker main; gets the_wrong_function lock_sleeper 3/4
answer lock 0.55 locker hold_asleep; gets a_share_that_is_far_off lock_sleeper 3/4
answer data 0.65 loader read; gets the_wrong_cause lock_sleeper 0/4
answer lock 0.65 locker hold_asleep data 0.2 x x; gets a_second_false_finding lock_sleeper 3/4
answer data 0.08 x x lock 0.65 locker hold_asleep; gets the_right_cause_second lock_sleeper 3/4
answer; gets nothing_is_said lock_sleeper 1/4
answer; gets healthy compute_ok 2/2
answer compute 0.9 x x data 0.05 x x; gets small_findings_are_no_alarm compute_ok 2/2
answer data 0.15 x x; gets an_alarm compute_ok 0/2
answer cpu 0.45 x x; gets more_than_the_noise compute_ok 0/2
answer; gets units_as_counted unmarked_c 3/3
echo '{"version":1,"units":{"kind":"loop","n":42},"findings":[]}' >answer; gets units_that_are_not_there unmarked_c 2/3
echo '{"version":1,"units":{"kind":"thread","n":40},"findings":[]}' >answer; gets threads_are_no_units unmarked_c 2/3
echo 'no JSON' >answer; gets an_answer_that_cannot_be_read lock_sleeper 0/4
check a_goal_that_is_missed_fails sh -c "! STAVE=$TMP/fake python3 $SRC/tests/why/judge.py --traces kept --only =lock_sleeper --goal 95"
answer lock 0.7 locker hold_asleep
check a_goal_that_is_met_does_not sh -c "STAVE=$TMP/fake python3 $SRC/tests/why/judge.py --traces kept --only =lock_sleeper --goal 95"
