#!/usr/bin/env bash
# The OpenCL layer on a driver that pretends: what real ones do not do to order, and the same code under the sanitizers, which PoCL cannot bear.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-opencl.so program=$BUILD/tests/inject/cl_fake
[ -e "$library" ] || skip_all "libstave-opencl.so was not built: the OpenCL headers are absent (package opencl-headers)"
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR"
has() { check "$1: $2" grep -qE -- "$3" "$1.text"; }
count() { check "$1: $2 ($4)" test "$(grep -cE -- "$3" "$1.text")" = "$4"; }
for mode in plain timer refuses fails threads; do
  run_any "$mode" 0 env STAVE_OUT=$mode.pftrace "$program" "$library" $mode
  check "$mode: nothing on stderr" test ! -s $mode.err
  "$STAVE" cat -q $mode.pftrace >$mode.text 2>/dev/null
done
has plain "a device" 'gpu uuid.*name="GPU 0 Pretender"'
count plain "every kernel" 'begin .*"pretend" cat="kernel"' 2000
has plain "work-groups that are not full" 'grid=\[4 1 1\] block=\[30 1 1\].*"global size"="100"'
count plain "allocations" '"alloc" ' 20
has timer "the device's own timer ties the clocks" '"clock tie" .*uncertainty_ns='
for mode in plain timer; do
  check "$mode: five seconds ahead, and yet in its place" test "$("$STAVE" query -q --to csv $mode.pftrace "SELECT count(*) FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in WHERE b.ts BETWEEN a.ts - 50000 AND a.ts + a.dur + 50000" | tail -n 1)" = 2000
done
count refuses "no kernel without profiling" 'cat="kernel"' 0
check "refuses: all counted" test "$(grep -E 'loss .*the queue has no profiling' refuses.text | grep -oE '\{[0-9]+\}' | tr -d '{}' | awk '{ n += $1 } END { print n }')" = 2000
count fails "commands that fail" 'instant .*"pretend" .*error=-5' 1000
count fails "the others" 'begin .*"pretend" cat="kernel"' 1000
count threads "four threads, two queues" 'begin .*"pretend" cat="kernel"' 8000
# What was waited for is there, although the program ends by _exit.
run_any quits 0 env STAVE_OUT=quits.pftrace "$program" "$library" quits
"$STAVE" recover -q quits.pftrace >/dev/null 2>&1
"$STAVE" cat -q quits.pftrace >quits.text 2>/dev/null
count quits "every kernel that was waited for" 'begin .*"pretend" cat="kernel"' 600
count quits "the copy whose call has blocked" 'begin .* cat="gpu_memcpy"' 1
check "off: without STAVE_OUT" "$program" "$library" threads
