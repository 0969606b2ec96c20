#!/usr/bin/env bash
# stave explain of two ranks in one trace, without collectives: the event loop through which one rank waits for the other one has a time limit, and wakes up in between.
. "$SRC/tests/harness/cli.sh"
# trace: ten steps of 100 ms. Rank 1 computes for 20 ms and waits 70 ms for a lock that its thread "saver" holds, then wakes the loop of rank 0. Rank 0 computes for 10 ms and waits for its loop, which looks every 10 ms.
trace() {
  local i k
  printf '# stave text 1\nclock boottime\nmeta "rank 0/rank" "0"\nmeta "rank 1/rank" "1"\n'
  printf 'track #1 process uuid=0x1 pid=10 name="train" origin="rank 0"\ntrack #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="train"\ntrack #3 custom uuid=0x3 parent=#2 name="state"\n'
  printf 'track #4 thread uuid=0x4 parent=#1 pid=10 tid=11 name="loop"\ntrack #5 custom uuid=0x5 parent=#4 name="state"\n'
  printf 'track #6 process uuid=0x6 pid=20 name="train" origin="rank 1"\ntrack #7 thread uuid=0x7 parent=#6 pid=20 tid=20 name="train"\ntrack #8 custom uuid=0x8 parent=#7 name="state"\n'
  printf 'track #9 thread uuid=0x9 parent=#6 pid=20 tid=21 name="saver"\ntrack #10 custom uuid=0xa parent=#9 name="state"\n'
  state() { printf '%s slice #%d "%s" cat="thread_state" dur=%s {%s}\n' "$@"; }
  for i in 0 1 2 3 4 5 6 7 8 9; do
    printf '0.%d00000000 slice #2 "step %d" cat="step" dur=0.100000000\n0.%d00000000 slice #7 "step %d" cat="step" dur=0.100000000\n' "$i" "$i" "$i" "$i"
    state "0.${i}00000000" 3 Running 0.010000000 'waker_tid=11'
    state "0.${i}10000000" 3 Sleeping 0.090000000 'reason="lock"'
    for k in 0 1 2 3 4 5 6 7 8; do
      state "0.${i}${k}0000000" 5 Sleeping 0.009900000 'reason="poll"'
      state "0.${i}${k}9900000" 5 Running 0.000100000 'waker="timer" interrupt=1'
    done
    state "0.${i}90000000" 5 Sleeping 0.009900000 'reason="poll"'
    state "0.${i}99900000" 5 Running 0.000100000 'waker="train" waker_tid=20'
    state "0.${i}00000000" 8 Running 0.020000000 'waker_tid=21'
    state "0.${i}20000000" 8 Sleeping 0.070000000 'reason="lock"'
    state "0.${i}90000000" 8 Running 0.010000000 'waker="saver" waker_tid=21'
    state "0.${i}00000000" 10 Running 0.100000000 ''
  done
}
trace >merged.txt
"$STAVE" explain -q --no-index --json merged.txt >said.json
check the_slow_rank_comes_first python3 -c 'import json
f = json.load(open("said.json"))["findings"]
assert [x["cause"] for x in f] == ["lock", "comm"], f
assert f[0]["culprit"]["name"] == "saver" and f[1]["culprit"]["rank"] == 1, f
assert f[1]["share"] > f[0]["share"], f'
check and_the_other_one_waits_for_it sh -c '"$STAVE" explain -q --no-index merged.txt | grep -q "in communication with other ranks, mostly for rank 1 (pid [0-9]*), which "'
