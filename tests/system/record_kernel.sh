#!/usr/bin/env bash
# What stave record takes from the kernel beside system calls and block requests: states of threads, stacks, io_uring, faults, filters.
# Needs root (or the capabilities) and a kernel with BTF. Waits for conditions, never for a time.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root: the kernel's side of stave record"
"$STAVE" record --strict -q -o probe.pftrace -- true 2>probe.err || skip_all "no eBPF here: $(cat probe.err)"
play=$BUILD/tests/system/play

equals() { check "$1" test "$2" = "$3"; }
ask() { "$STAVE" query -q --to csv "$1" "$2" | tail -n +2; }

# ---- states of threads ----
run_any sched 0 "$STAVE" record -q --strict --sched -o sched.pftrace -- "$play" sleep 1
check sched_valid "$STAVE" validate -q sched.pftrace
check sched_slept test "$(ask sched.pftrace "SELECT max(dur) FROM thread_state WHERE state = 'S'")" -ge 1000000000
check sched_ran test "$(ask sched.pftrace "SELECT count(*) FROM thread_state WHERE state = 'Running' AND cpu IS NOT NULL")" -ge 2
equals sched_row "$(ask sched.pftrace "SELECT DISTINCT t.name FROM slice s JOIN track t ON s.track_id = t.id WHERE s.category = 'thread_state'")" state
# One state at a time, from the first to the last, without a gap.
equals sched_gaps "$(ask sched.pftrace "SELECT count(*) FROM (SELECT ts, lag(ts + dur) OVER (PARTITION BY utid ORDER BY ts) AS before FROM thread_state) WHERE before IS NOT NULL AND before <> ts")" 0
run_any sched_off 0 "$STAVE" record -q --strict -o off.pftrace -- "$play" sleep 0
equals sched_off_none "$(ask off.pftrace "SELECT count(*) FROM thread_state")" 0
if "$play" direct "$TMP/direct" 16 2>/dev/null; then
  run_any sched_io 0 "$STAVE" record -q --strict --sched -o io.pftrace -- "$play" direct "$TMP/direct" 16
  check sched_io_blocked test "$(ask io.pftrace "SELECT count(*) FROM thread_state WHERE state = 'D' AND io_wait = 1")" -ge 1
else skip sched_io "no O_DIRECT in $TMP"; fi

# ---- stack samples ----
run_any sample 0 "$STAVE" record -q --strict --sample 997 -o sample.pftrace -- "$play" burn 400
check sample_valid "$STAVE" validate -q sample.pftrace
run_any folded 0 "$STAVE" export -q sample.pftrace --to folded -o -
# Nearly all of the time is where the program says; a busy machine takes fewer samples, not other ones.
burnt=$(awk '/burn_outer;.*burn_inner/ { s += $NF } END { print s + 0 }' folded.out)
samples=$(awk '{ s += $NF } END { print s + 0 }' folded.out)
echo "  $burnt of $samples samples in burn_inner"
check sample_where test "$burnt" -ge 20 -a $((burnt * 10)) -ge $((samples * 6))
check sample_kernel grep -q '_\[k\] [0-9]' folded.out
run_any sample_flame 0 "$STAVE" plot flame -q sample.pftrace --samples -o sample.svg
check sample_flame_names grep -q burn_inner sample.svg
run_any sample_none 1 "$STAVE" plot flame -q off.pftrace --samples -o none.svg
run_any sample_too_often 2 "$STAVE" record -q --sample 1000000 -o x.pftrace -- true
