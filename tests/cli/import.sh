#!/usr/bin/env bash
# stave import: a folder as the bpftrace scripts leave it (recorded by them, mpstat and iostat; GPU and application log by hand), lined up.
. "$SRC/tests/harness/cli.sh"
cp -r "$SRC/tests/golden/run" run

run lined_up 0 "$STAVE" import run --tz UTC --to text
run zone_missing 2 "$STAVE" import run -o none.pftrace
check zone_missing_leaves_no_file test ! -e none.pftrace
run zone_unknown 2 "$STAVE" import run --tz Mars/Olympus -o none.pftrace
run_any assumed 0 "$STAVE" import run --assume --to text
check assumed_is_utc cmp lined_up.out assumed.out
run_any to_perfetto 0 "$STAVE" import run --tz UTC -o run.pftrace

# Five hours west, the same local times are five hours later. The log of the application stays where it is.
"$STAVE" import -q run/cpu.out --tz -05:00 --to text | grep -m 1 "^[0-9].* counter " >west
"$STAVE" import -q run/cpu.out --tz UTC --to text | grep -m 1 "^[0-9].* counter " >utc
check zone_counts test $(($(cut -d. -f1 west) - $(cut -d. -f1 utc))) = 18000
if [ -e /usr/share/zoneinfo/America/Montreal ]; then
  "$STAVE" import -q run/cpu.out --tz America/Montreal --to text | grep -m 1 "^[0-9].* counter " >montreal
  check named_zone cmp west montreal
else
  skip named_zone "no zone database (tzdata)"
fi

# bpftrace's time since boot means nothing beside the wall clock without the time alignment.
mkdir alone; cp run/trace_read.out run/app.log alone
run refused 2 "$STAVE" import alone --tz UTC -o none.pftrace
run_any refused_but_offset 0 "$STAVE" import alone --tz UTC --offset alone/trace_read.out=1794769951704us --to text
run nothing_known 3 "$STAVE" import run/notes.txt --tz UTC -o none.pftrace
run no_such_folder 3 "$STAVE" import missing --tz UTC -o none.pftrace
run bad_date 2 "$STAVE" import run --tz UTC --date yesterday -o none.pftrace

# Only times of day: the day comes from the option, and midnight passes.
run date_given 0 "$STAVE" import "$SRC/tests/golden/good/strace_tt.out" --tz UTC --date 2026-07-20 --to text
run_any strict 1 "$STAVE" import run --tz UTC --strict -o strict.pftrace
check strict_leaves_no_file test ! -e strict.pftrace

# In the picture the counters of a device are adjacent and labelled with the device.
run_any picture 0 "$STAVE" plot timeline run.pftrace --rows tracks -o run.svg
grep -o '>\(CPU user\|GPU [01] sm\|[a-z]*da read\)<' run.svg | tr -d '<>' | uniq >labels
printf '%s\n' 'GPU 0 sm' 'GPU 1 sm' 'GPU 0 sm' 'vda read' >expected
check labels_of_counters diff expected labels
