#!/usr/bin/env bash
# stave record --budget: a budget that cannot be kept takes all steps in the documented order, what is left out is counted, the trace is whole and says so. Needs the kernel programs.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
export STAVE_BUDGET_MS=20 # a step each 20 ms instead of each second
options=(--no-summary --no-inject --no-explain --no-block --no-page-cache --interval 0)
n=1500000
run_any all 0 "$STAVE" record "${options[@]}" --sample 19 --budget 0.0001% --ring 64M -o all.pftrace -- sh -c '"$0" flood "$1"; sleep 0.02; sleep 0.02; sleep 0.02' "$play" $n
"$STAVE" cat -q all.pftrace | grep -v 'cat="syscall"' >all.txt
# While it sleeps nothing costs anything, and steps are taken back.
grep 'cat="recorder"' all.txt | sed '/"more detail"/,$d' | sed -E 's/.*what="([a-z_]+)" from=([0-9]+) to=([0-9]+).*/\1 \2 \3/' >steps
cat >expected <<'S'
sample_hz 19 9
sample_hz 9 0
wait_stacks 1 0
offcpu_min_ns 1000000 10000000
offcpu_min_ns 10000000 100000000
min_latency_ns 0 1000000
min_latency_ns 1000000 10000000
min_latency_ns 10000000 100000000
call_probes 1 0
S
check order diff expected steps
# A load that explodes: four decisions, the first of which takes half of the steps.
equals decisions "$(grep '"less detail"' all.txt | head -9 | cut -d ' ' -f 1 | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" "5 2 1 1 "
# A busy machine may lose events, which is counted; nothing else may be wrong.
"$STAVE" validate -q all.pftrace >findings.txt
check valid sh -c '! grep -E "^(error|damage|warning)" findings.txt | grep -v "^warning loss "'
# Sleeps are shorter than 100 ms: none of them is recorded until short waits are taken back.
detail="select ts, extract_arg(arg_set_id, 'to') t from slice where category = 'recorder' and extract_arg(arg_set_id, 'what') = 'offcpu_min_ns'"
short="select count(*) from slice where category = 'offcpu_sample' and dur < 100000000"
from="(select min(ts) from ($detail) where t = 100000000)"
until="coalesce((select min(ts) from ($detail) where t < 100000000 and ts > $from), 9223372036854775807)"
equals short_waits "$(ask all.pftrace "$short and ts > $from and ts + dur < $until")" 0
check coverage_probes grep -qE '^meta "recorded.calls" "kernel off_ns=[1-9][0-9]* less_ns=[1-9][0-9]* of_ns=[1-9][0-9]*"' all.txt
# While the probes are away nothing is recorded.
probes="select ts, extract_arg(arg_set_id, 'to') t from slice where category = 'recorder' and extract_arg(arg_set_id, 'what') = 'call_probes'"
away="(select min(ts) from ($probes) where t = 0)"
back="coalesce((select min(ts) from ($probes) where t = 1 and ts > $away), 9223372036854775807)"
equals no_calls "$(ask all.pftrace "select count(*) from slice where category = 'syscall' and ts > $away and ts + dur < $back")" 0

# Plain hooks keep their probes: each fsync is an event, was left out by --budget, or lost; of other calls a few are left out, too.
# Tracepoints with names need tracefs, which is mounted in a namespace of the test's own where it is not there.
plainly() { "$STAVE" "$@"; }
has_tracefs=1
if [ ! -d /sys/kernel/tracing/events ]; then
  plainly() { unshare -m sh -c 'mount -t tracefs none /sys/kernel/tracing && exec "$0" "$@"' "$STAVE" "$@"; }
  unshare -m sh -c 'mount -t tracefs none /sys/kernel/tracing' 2>/dev/null || has_tracefs=''
fi
if [ -n "$has_tracefs" ]; then
  run_any plain 0 plainly record "${options[@]}" --hooks tracepoints --budget 0.0001% --ring 64M -o plain.pftrace -- "$play" flood $n
  "$STAVE" cat -q plain.pftrace | grep -v 'cat="syscall"' >plain.txt
  kept=$(ask plain.pftrace "select count(*) from slice where name = 'fsync'")
  left_out=$(sed -nE 's/^meta "calls_left_out" "([0-9]+)".*/\1/p' plain.txt)
  lost=$(ask plain.pftrace "select coalesce(sum(count), 0) from loss where cause = 'system calls'")
  echo "  $kept kept, $left_out left out, $lost lost"
  check left_out test "$left_out" -gt 0
  check exact test $((kept + left_out + lost)) -ge $n -a $((kept + left_out + lost)) -le $((n + 1000))
  check coverage_plain grep -qE '^meta "recorded.calls" "kernel off_ns=0 less_ns=[1-9][0-9]* of_ns=[1-9][0-9]*"' plain.txt
else skip plain "tracefs is not there and cannot be mounted"; fi
check coverage_samples grep -qE '^meta "recorded.samples" "kernel off_ns=[1-9][0-9]* less_ns=[0-9]+ of_ns=[1-9][0-9]* every_ns=' all.txt
check coverage_waits grep -qE '^meta "recorded.waits" "kernel off_ns=0 less_ns=[1-9]' all.txt
check budget grep -qE '^meta "budget" "share=0.0001% cost=[0-9.e+]+% gave_up=[0-9]+ took_back=[0-9]+ programs=(not_)?measured"' all.txt
run_any info 0 "$STAVE" info -q all.pftrace
check info_says grep -q '(off for ' info.out

# A budget that is kept changes nothing.
run_any kept 0 "$STAVE" record "${options[@]}" --sample 19 --budget 100% -o kept.pftrace -- "$play" flood 1000
check kept_all sh -c '! "$0" cat -q kept.pftrace | grep -qE "cat=\"recorder\"|less_ns"' "$STAVE"

run_any wrong 2 "$STAVE" record -q --budget 1 -o x.pftrace -- true
check wrong_says grep -qxF "stave record: --budget: '1' is not a share of the workload's CPU such as 1% or 0.5%" wrong.err
run_any only 2 "$STAVE" record -q --budget 1% --only sdk -o x.pftrace -- true
