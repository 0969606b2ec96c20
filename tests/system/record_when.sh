#!/usr/bin/env bash
# Triggers of stave record: each kind of condition with a real program that makes it true, what is saved, and how much of it. The kernel's side is
# needed for ends of processes other than the command's only; without it those checks are left out.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR" slow
steps=$BUILD/tests/stress/paced
bare=(setpriv --bounding-set=-all --inh-caps=-all "$STAVE" record --no-summary --gpu-interval 0 --no-look --no-inject)
[ "$(id -u)" = 0 ] || bare=("${bare[@]:3}")
trap 'kill $(jobs -p) 2>/dev/null; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
causes() { "$STAVE" cat -q "$1" | sed -n 's/.* instant .* "\(.*\)" cat="trigger" .*/\1/p' | sort -u; }
meta() { "$STAVE" cat -q "$1" | sed -n "s/^meta \"$2\" \"\(.*\)\"$/\1/p"; }

# ---- what is wrong is said before anything runs ----
wrong() { # NAME MESSAGE OPTION…
  local name=wrong_$1 message=$2; shift 2
  run_any "$name" 2 "$STAVE" record -q -o "$name.pftrace" "$@" -- touch "$name.ran"
  check "${name}_says" grep -qF -- "$message" "$name.err"
  check "${name}_nothing" test ! -e "$name.ran" -a ! -e "$name.pftrace"
}
wrong word "--when 'step > 2x medain': character 11, 'medain': expected median, or a percentile such as p99" --when 'step > 2x medain'
wrong rotate "--when saves a ring (--last): it cannot be combined with --rotate" --when loss --rotate 1M
wrong tail "--tail: 'soon' is not a time" --when loss --tail soon
wrong alone "--keep means something only with --when" --keep 3
wrong disk "--disk means something only with --rotate or --when" --disk 1M
wrong samples "they need an --interval" --when oom --interval 0
run_any no_last 2 "$STAVE" record -q -o slow/%t.pftrace -- true
check no_last_says grep -q "after % comes p (process)" no_last.err

# ---- one program, all that it makes true; what is far beyond it does not hold ----
run_any rows 7 "${bare[@]}" -o rows.pftrace --pause 60min --tail 0s \
  --when 'step > 3x median' --when 'step > 700ms' --when "slice 'load*' > 300ms" --when 'request > p90' --when 'no step for 500ms' --when "no event 'request' for 900ms" \
  --when "counter 'queue' > 10 for 300ms" --when "rate 'load*' > 5/s over 1s" --when "exit == 7" --when "log app.log ~ 'out of luck'" --when "log later.log ~ 'x y'" \
  --when 'step > 100s' --when "slice 'laod*' > 1ms" --when "slice 'load*' > 100x median" --when 'no step for 100s' --when "counter 'queue' > 12 for 1s" --when "counter 'queue' < 0" \
  --when "rate 'load*' > 100000/s over 1s" --when 'exit == 0' --when "exit 'other*' != 0" --when signal --when "log app.log ~ 'in luck'" --when "log never.log ~ 'x'" -- \
  sh -c 'echo "out of luck: long ago" >app.log; "$0" step=20*8 load=10*20 request=5*12 queue=11 load=400 step=800 rest=300; echo "now out of luck" >>app.log; echo x y >later.log; "$0" request=100 queue=3 rest=1200; exit 7' "$steps"
causes rows.pftrace >rows.causes
sort >rows.expected <<'C'
step > 3x median
step > 700ms
slice 'load*' > 300ms
request > p90
no step for 500ms
no event 'request' for 900ms
counter 'queue' > 10 for 300ms
rate 'load*' > 5/s over 1s
exit == 7
log later.log ~ 'x y'
C
grep -v "^log app.log" rows.causes >rows.without_first
check rows_all_and_no_others diff rows.expected rows.without_first
check rows_first_file test "$(meta rows-0001.pftrace trigger)" != "" -a ! -e rows-0002.pftrace
check rows_whole "$STAVE" validate -q rows.pftrace
check rows_counted grep -qE '^stave record: [0-9]+ more events met a condition while another was saved or within --pause' rows.err

# The same conditions on the trace afterwards; those of logs cannot be tried.
run_any tried 0 "$STAVE" trigger --check rows.pftrace --when 'step > 700ms' --when "counter 'queue' > 10 for 300ms" --when "slice 'laod*' > 1ms" --when 'no step for 500ms'
check tried_step grep -qE "s  step > 700ms: 'step' (took|has not ended after) [0-9.]+ ms" tried.out
check tried_counter grep -qE "counter 'queue' > 10 for 300ms: counter '.*queue' is 11 for 300.000 ms" tried.out
check tried_unseen grep -qxF "stave trigger: --when 'slice 'laod*' > 1ms': nothing in this trace is laod*" tried.err
check tried_no_other test "$(grep -vcE 'step > 700ms|queue|no step' tried.out)" = 0
run_any tried_log 2 "$STAVE" trigger --check rows.pftrace --when "log x ~ 'y'"
run_any tried_alone 2 "$STAVE" trigger --check rows.pftrace
run_any tried_wrong 2 "$STAVE" trigger --check rows.pftrace --when 'step >'
check tried_wrong_says grep -qxF "stave trigger: --when 'step >': it ends too early: expected a time (500ms), a factor (2x median) or a percentile (p99)" tried_wrong.err
run_any tried_nothing 0 "$STAVE" trigger --check rows.pftrace --when 'step > 100s'
check tried_nothing_says grep -qxF "stave trigger: no condition holds anywhere in this trace" tried_nothing.err

# ---- the file of a hit: before, after, why; nothing else is left ----
"${bare[@]}" -o 'slow/%t.pftrace' --tail 300ms --explain --when 'step > 200ms' -- "$steps" step=5*10 step=400 load=10*10 rest=600 until=go >hit.out 2>hit.err &
check hit_saved until_true 'ls slow/*Z.pftrace'
check hit_explained until_true 'grep -q "^  " hit.out'
touch go; wait $!
hit=$(echo slow/*.pftrace)
check hit_one_file test "$(find slow -type f)" = "$hit"
check hit_name sh -c 'echo "$1" | grep -qE "^slow/[0-9]{8}T[0-9]{6}\.[0-9]{3}Z\.pftrace$"' - "$hit"
check hit_line grep -qE "^stave record: saved $hit: step > 200ms: 'step' (took|has not ended after) [0-9.]+ ms$" hit.err
check hit_meta test "$(meta "$hit" trigger)" = 'step > 200ms' -a "$(meta "$hit" trigger_time).pftrace" = "$(basename "$hit")"
check hit_cause grep -qF -- "$(meta "$hit" trigger_cause)" hit.err
check hit_before test "$("$STAVE" cat -q "$hit" | grep -c 'begin .* "step"')" = 11
check hit_after test "$("$STAVE" cat -q "$hit" | grep -c 'begin .* "load batch"')" = 10
check hit_valid "$STAVE" validate -q "$hit"
check hit_explains sh -c 'head -n 1 hit.out | grep -qF "$1: step > 200ms: "' - "$hit"
check hit_no_leftover test "$(find . -name '*.ring-*' -o -name '*.part' -o -name '*.head' -o -name '*.session' | wc -l)" = 0

# ---- a failed command without a hit is kept and explained on standard output ----
rm -f slow/*
run_any failed 3 "${bare[@]}" -o 'slow/%t.pftrace' --explain --when 'step > 100s' -- "$steps" step=20*3 exit=3
check failed_kept test "$(find slow -name '*.pftrace' | wc -l)" = 1
check failed_on_stdout grep -q "^What slows it down:$" failed.out
rm -f slow/*
run_any fine 0 "${bare[@]}" -o 'slow/%t.pftrace' --when 'step > 100s' -- "$steps" step=20*3
check fine_nothing test -z "$(find slow -type f)"

# ---- only so many ----
few() { # NAME OPTION…: hits one after the other, each saved before the next
  "${bare[@]}" -o "$1.pftrace" --tail 0s --pause 0s --when "slice 'held' > 1ns" "${@:2}" -- \
    "$steps" until=a rest=50 until=b rest=50 until=c rest=50 until=d rest=50 until=e rest=50 exit=0 2>"$1.err" &
  local i=0 word; for word in a b c d e; do
    i=$((i + 1)); touch $word; until_true "[ \$(grep -c '^stave record: saved' $1.err) -ge $i ]" || return 1
  done
  wait $!; rm -f a b c d e
}
check keep_runs few keep --keep 2
check keep_two test "$(echo keep-*.pftrace)" = 'keep-0004.pftrace keep-0005.pftrace'
"${bare[@]}" -o disk.pftrace --last 2M --disk 3M --when 'step > 100s' -- "$BUILD/tests/stress/epochs" 1 full 2>disk.err &
check disk_grows until_true '[ "$(cat disk.pftrace.* 2>/dev/null | wc -c)" -gt 1500000 ]'
for i in 1 2 3; do run_any "disk_$i" 0 "$STAVE" trigger; done
check disk_newest_only test "$(echo disk-*.pftrace)" = disk-0003.pftrace
touch full; wait $!

# ---- stave trigger beside it, stave status ----
"${bare[@]}" -o 'slow/%t.pftrace' --when 'step > 100s' -- sh -c '"$0" step=5*3; touch did; "$0" until=stop' "$steps" 2>asked.err &
check asked_listed until_true '[ -e did ] && "$STAVE" status | grep -q "slow/"'
run_any asked 0 "$STAVE" trigger
"$STAVE" status --json >asked.json
check asked_status python3 -c 'import json; (r,) = json.load(open("asked.json"))["recordings"]; t = r["triggers"]; assert t["when"] == ["step > 100s"] and t["hits"] == 0 and t["saved"] == 1 and t["newest"].startswith("slow/") and r["parts"] is None, r'
check asked_prints_it test -s "$(cat asked.out)"
touch stop; wait $!
check asked_has_events sh -c '"$0" cat -q "$1" | grep -q "begin .* \"step\""' "$STAVE" "$(cat asked.out)"

# ---- losses: more than the rings hold ----
STAVE_BUFFER=16k run_any loss 0 "${bare[@]}" -o loss.pftrace --when loss --pause 60min -- "$BUILD/tests/stress/numbers" 2 200000 progress
if "$STAVE" cat -q loss.pftrace | grep -qE "^[0-9.]+ loss "; then
  check loss_saved test "$(meta loss-0001.pftrace trigger)" = loss
else
  skip loss_saved "nothing was lost"
fi

# ---- pressure: tasks that wait for a CPU ----
if [ -r /proc/pressure/cpu ]; then
  "${bare[@]}" -o psi.pftrace --tail 0s --pause 60min --when 'pressure cpu > 0.5%' --when 'pressure memory > 101%' -- \
    sh -c 'for i in $(seq $((2 * $(nproc)))); do while [ ! -e calm ]; do :; done & done; wait' 2>psi.err &
  check psi_saved until_true 'test -e psi-0001.pftrace'
  touch calm; wait $!
  check psi_cause sh -c '"$0" cat -q psi-0001.pftrace | grep -q "cause=\"counter .Pressure/cpu. is "' "$STAVE"
  check psi_only test "$(causes psi.pftrace)" = 'pressure cpu > 0.5%'
else
  skip psi "no /proc/pressure"
fi

# ---- ends of processes that only the kernel sees ----
"$STAVE" record -q --strict --no-summary -o can.pftrace -- true 2>/dev/null || skip_all "no kernel programs here: ends of other processes are not seen"
full=("$STAVE" record --no-summary --light --gpu-interval 0 --no-inject)
run_any ends 0 "${full[@]}" -o ends.pftrace --tail 0s --pause 60min --when "exit 'paced' == 5" --when 'signal' --when 'signal SEGV' --when 'signal KILL' --when "exit 'sh' != 0" -- \
  sh -c '"$0" exit=5; "$0" kill=11 2>/dev/null; true' "$steps"
check ends_causes diff <(printf '%s\n' "exit 'paced' == 5" signal 'signal SEGV') <(causes ends.pftrace)
check ends_kernel_saved test "$(meta ends-0001.pftrace trigger)" = "exit 'paced' == 5"

# ---- want of memory ----
cgroup=/sys/fs/cgroup/memory/stave-when-$$
limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || { cgroup=/sys/fs/cgroup/stave-when-$$ limit=memory.max; }
if grep -q '^oom_kill ' /proc/vmstat && mkdir "$cgroup" 2>/dev/null && echo 24M >"$cgroup/$limit" 2>/dev/null; then
  [ ! -e "$cgroup/memory.swap.max" ] || echo 0 >"$cgroup/memory.swap.max"
  [ ! -e "$cgroup/memory.memsw.limit_in_bytes" ] || echo 24M >"$cgroup/memory.memsw.limit_in_bytes" 2>/dev/null
  run_any oom 0 "${full[@]}" -o oom.pftrace --pause 60min --tail 0s --when oom --when 'signal TERM' -- \
    sh -c '(sh -c "echo \$\$ >$0/cgroup.procs; exec python3 -c \"x = bytes(1) * 100000000; y = bytearray(x)\"") 2>/dev/null; "$1" rest=1500; true' "$cgroup" "$steps"
  check oom_cause test "$(causes oom.pftrace)" = oom
  check oom_saved test "$(meta oom-0001.pftrace trigger)" = oom
  rmdir "$cgroup"
else
  skip oom "no cgroup with a memory limit can be made here"
fi
