#!/usr/bin/env bash
# stave report comm: three ranks of PyTorch's profiler whose clocks are 3 ms apart and rank 2 computes longer; the same with NCCL's older names, with numbers at the host, and counted; three ranks of
# the vocabulary (ranks.txt, made with a pencil); flight recorder dumps.
. "$SRC/tests/harness/cli.sh"
here=$SRC/tests/cli/report_comm
command -v python3 >/dev/null || skip_all "no python3 here"
python3 "$here/kineto.py"

# said FILE: who is slow, how many collectives there are, were compared, lack a rank.
said() { sed -n 's/.*"summary":{\(.*\)}.*/\1/p' "$1" | sed 's/"verdict".*//' | tr ',' '\n' | awk -F: '{ gsub(/"/, ""); v[$1] = $2 } END { print v["slow"] == "" ? "none" : v["slow"], v["collectives"], v["compared"], v["missing"] + 0 }'; }
while read -r kind expect; do
  run_any "$kind" 0 "$STAVE" report comm -q --json --by summary "$kind".rank?.json
  check "$kind: $expect" test "$(said "$kind.out")" = "$expect"
done <<'KINDS'
new.own 2 40 39 1
old.own 2 40 39 1
new.host 2 40 39 1
new.none 2 40 40 0
equal.own none 40 0 1
KINDS
run kineto 0 "$STAVE" report comm -q new.own.rank?.json --top 3
run kineto_csv 0 "$STAVE" report comm -q new.own.rank?.json --csv --by rank

# Simulated jobs (tests/harness/job_traces.py): rank 2 sleeps in each tenth step and rank 1 is always last by 1 ms; a whole host is slow, with clocks and without; all are equal.
while read -r kind slow hosts how; do
  # shellcheck disable=SC2086 # words
  python3 "$SRC/tests/harness/job_traces.py" ranks "$kind.txt" $how >/dev/null
  run_any "job_$kind" 0 "$STAVE" report comm -q --json "$kind.txt"
  check "${kind}_slow_${slow}_host_$hosts" python3 -c '
import json, sys
a = json.load(open(sys.argv[1]))
assert a["summary"].get("slow", "none") == sys.argv[2].replace("+", ", ") and a["summary"].get("slow_hosts", "none") == sys.argv[3], a["summary"]
assert all("before_run_queue_ns" not in r or r["before_run_queue_ns"] is None for r in a["rank"])' "job_$kind.out" "$slow" "$hosts"
done <<'JOBS'
sleep 2+1 none --plant sleep --steps 120
node none node1 --plant node --ranks 8 --steps 40
clocks none node1 --plant node --ranks 8 --steps 40 --clocks
even none none --ranks 8 --steps 60
JOBS
run hosts 0 "$STAVE" report comm -q node.txt --by host
python3 "$SRC/tests/harness/job_traces.py" ranks few.txt --plant sleep --steps 40 >/dev/null
run_any few 0 "$STAVE" report comm -q few.txt
check few_long_sleeps_are_slow sh -c 'head -1 few.out | grep -q "^rank 2 is slow: last in 4 of 40 collectives .* less time if it were as fast as its peers"'

# By hand: ranks.txt says what is in it.
run text 0 "$STAVE" report comm "$here/ranks.txt"
run json 0 "$STAVE" report comm "$here/ranks.txt" --json
run csv 0 "$STAVE" report comm "$here/ranks.txt" --csv --by collective
run differences 0 "$STAVE" report comm "$here/ranks.txt" --by difference
run query 0 "$STAVE" query -q "$here/ranks.txt" "SELECT rank, op, group_name, seq, bytes, group_size, ts, dur, wait_ns, skew_ns, transfer_ns, is_last FROM collective ORDER BY seq, rank"

# The picture: ranks, the slow one marked; nothing to draw is said.
"$STAVE" merge -q new.own.rank?.json -o merged.pftrace
run_any picture 0 "$STAVE" plot comm merged.pftrace -q -o comm.svg
check picture_names_ranks sh -c 'grep -q ">rank 0<" comm.svg && grep -q ">rank 2, slow<" comm.svg && grep -q "40 collectives of 3 ranks, 39 compared, 1 slow" comm.svg'
check picture_marks_the_last test "$(grep -o '#d00000' comm.svg | wc -l)" -gt 38
run_any picture_of_one 0 "$STAVE" plot comm merged.pftrace -q --top 1 -o one.svg
check picture_of_one_rank sh -c 'grep -q ">rank 2, slow<" one.svg && ! grep -q ">rank 0<" one.svg'
run no_picture 1 "$STAVE" plot comm "$SRC/tests/golden/good/strace.out" -q -o none.svg
check no_picture_of_nothing test ! -e none.svg

# Dumps of the flight recorder: rank 1 waits, rank 3 has gone on.
run dumps 0 "$STAVE" report comm "$SRC/tests/golden/good/flight_recorder_3.out" "$SRC/tests/golden/good/flight_recorder_rank1.json" --by group
run one_rank 0 "$STAVE" report comm "$SRC/tests/golden/good/flight_recorder_3.out" --by summary

run none 3 "$STAVE" report comm "$SRC/tests/golden/good/strace.out"
run bad_section 2 "$STAVE" report comm "$here/ranks.txt" --by file
run many_for_others 2 "$STAVE" report gpu "$here/ranks.txt" "$here/ranks.txt"
run no_such 2 "$STAVE" report com "$here/ranks.txt"
run executes 3 "$STAVE" report comm "$SRC/tests/golden/bad/flight_recorder_call_3.out"
check nothing_was_executed test ! -e /tmp/executed
