#!/usr/bin/env bash
# stave explain of recordings without kernel programs: what the kernel's own count says of who is waited for, and waits of which nobody is known.
. "$SRC/tests/harness/cli.sh"
# trace DELAY_NS CALL: ten steps of 100 ms; in each the main thread waits 60 ms in CALL, which thread "hog" ends; the kernel counted so much delay of that one.
trace() {
  local i
  printf '# stave text 1\nclock boottime\nmeta "recorded.states" "proc every_ns=50000000"\nmeta "recorded.calls" "preload"\n'
  printf 'track #1 process uuid=0x1 pid=10 name="train"\ntrack #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="train"\n'
  printf 'track #3 custom uuid=0x3 parent=#2 name="system calls"\ntrack #4 thread uuid=0x4 parent=#1 pid=10 tid=11 name="hog"\n'
  printf 'track #5 custom uuid=0x5 parent=#4 name="system calls"\n'
  for i in 0 1 2 3 4 5 6 7 8 9; do
    printf '0.%d00000000 slice #2 "step %d" cat="step" dur=0.100000000\n0.%d20000000 slice #3 "futex" cat="syscall" dur=0.060000000 {%s}\n' "$i" "$i" "$i" "$2"
    printf '0.%d10000000 slice #5 "write" cat="syscall" dur=0.001000000 {path="/tmp/x"}\n' "$i"
  done
  printf '1.000000000 instant #4 "schedstat" cat="schedstat" {run_ns=200000000 delay_ns=%d switches=7}\n' "$1"
}
says() { "$STAVE" explain -q --no-index --json "$1" | python3 -c 'import json, sys
for f in json.load(sys.stdin)["findings"]: print(f["cause"], f.get("culprit", {}).get("name", "nobody"))'; }
trace 700000000 'reason="lock" waker_tid=11' >robbed.txt
trace 20000000 'reason="lock" waker_tid=11' >holds.txt
check who_is_waited_for_cannot_run test "$(says robbed.txt)" = "cpu nobody"
check and_the_sentence_says_so sh -c '"$STAVE" explain -q --no-index robbed.txt | grep -q "which could run for .* by the kernel.s own count, and waits for a CPU; who has it is not known"'
check a_holder_that_runs_is_one test "$(says holds.txt)" = "lock hog"
check what_is_ignored_is_not_nothing sh -c '"$STAVE" explain -q --no-index --ignore lock:hog holds.txt | tail -1 | grep -qx "Nothing else is known that takes a twentieth of the time."'
