#!/usr/bin/env bash
# stave import of what users of the DL benchmark tracing tools have: the pipeline's aligned and derived files, headers that were cut off, logs of other tools.
. "$SRC/tests/harness/cli.sh"
cp -r "$SRC/tests/golden/archive" archive
chmod -R u+w archive

# The table of docs/porting.md: what is assumed is what it says, and as a description of the user's it gives the same events.
files=0
while IFS='`' read -r _ file _ columns _; do
  files=$((files + 1))
  said=$("$STAVE" import "archive/$file" --to text 2>&1 >assumed.txt | sed -n "s/.*columns assumed.*'\(.*\)'; --columns gives others.*/\1/p")
  case $file in
  cpu_data/* | gpu_data/*) ;; # they have headers: nothing is assumed
  *) check "documented_${file##*/}" test "$said" = "$columns" ;;
  esac
  case $columns in *,name*) continue ;; esac # its kinds of events have names of their own
  "$STAVE" import -q "archive/$file" --columns "$columns" --from columns --to text >given.txt
  check "described_${file##*/}" diff <(grep '^[0-9]' assumed.txt) <(grep '^[0-9]' given.txt)
done < <(awk '/^## From the DL benchmark/ { here = 1; next } /^## / { here = 0 } here && /^\| `/' "$SRC/docs/porting.md")
check the_table_is_read test $files = 9

# Everything once, with roles; what was assumed and what was left out is named.
run archive 0 "$STAVE" import archive --tz -05:00 --to text
check reads_once test "$(grep -c ' slice .* "read" cat="syscall"' archive.out)" = 5
check roles_name_processes grep -q 'pid=4243 name="worker 1"' archive.out

# Without the files that they were made of, the derived ones are read.
rm -r archive/read_data archive/open_data archive/bio_data archive/write_data archive/cpu_data/cpu.all archive/gpu_data/gpu.all
run derived 0 "$STAVE" import archive --to text
check derived_reads_once test "$(grep -c ' slice .* "read" cat="syscall"' derived.out)" = 2

# Header and aligned lines of one tool: the alignment decides which are taken.
cp -r "$SRC/tests/golden/run" both
chmod -R u+w both
mkdir both/aligned
printf '%s\n' '2026-11-15T23:06:42.100000000 12236 0 832 5400 x.npy' '2026-11-15T23:06:42.200000000 12236 8192 832 5400 x.npy' >both/aligned/read.out
run_any raw_and_aligned 0 "$STAVE" import both --tz UTC --to text
check raw_is_taken test "$(grep -c 'path="x.npy"' raw_and_aligned.out)" = 0
check aligned_is_named grep -q 'both/aligned/read.out: skipped, it appears to hold the same data as both/trace_read.out' raw_and_aligned.err
rm both/trace_[!r]*.out
run_any only_aligned 0 "$STAVE" import both --tz UTC --to text
check aligned_is_taken test "$(grep -c 'path="x.npy"' only_aligned.out)" = 2
check raw_is_named grep -q 'both/trace_read.out: skipped, it appears to hold the same data as both/aligned/read.out' only_aligned.err

# The later pipeline: values with UTC in front. Of many files what was assumed is said once.
mkdir later many
printf '%s\n' '2022-08-30T21:34:57 4.03 0.00 1.94 1.54 0.00 0.24 0.00 0.00 0.00 92.25' >later/cpu.out
printf '%s\n' '2022-08-30T21:35:00 0 4243 C 2 1 0 0 527 python' '2022-08-30T21:35:00 1 4243 C 3 1 0 0 12 python' >later/gpu.out
printf '%s\n' 'procs ---memory---' ' 1 0 0 812345 2068 10' ' 2 0 0 812345 2068 10' >later/vmstat.out
run later 0 "$STAVE" import later --to text
for i in $(seq 20); do echo "2022-08-30T21:35:$((i + 10)).5 $i 832 6120 libc.so" >many/read_$i; done
run many 0 "$STAVE" import many -o many.pftrace

# A description by the user.
printf '%s\n' 'when,what,how long,size' '1661895297.5,load batch,12.5,4096' '1661895298.5,load batch,13,4096' '1661895299.5,load' >app.csv
run columns_csv 0 "$STAVE" import app.csv --columns 'start:unix,name,latency:ms,arg.size,pid=77,cat=input' --to text
printf '%s\n' '16:34:57.25 7 loss 0.5' '16:34:58.25 7 loss 0.25' >loss.log
run columns_clock 0 "$STAVE" import loss.log --columns 'ts:clock pid - counter.loss' --tz -05:00 --date 2022-08-30 --to text
run columns_need_zone 2 "$STAVE" import loss.log --columns 'ts:clock pid - counter.loss' --date 2022-08-30 --to text
run columns_do_not_fit 3 "$STAVE" import loss.log --columns 'ts:utc pid path' --to text
run columns_unknown 2 "$STAVE" import loss.log --columns 'ts:utc pud path' --to text
run columns_unit 2 "$STAVE" import loss.log --columns 'ts:parsec pid' --to text
run columns_no_time 2 "$STAVE" import loss.log --columns 'pid path' --to text
run columns_twice 2 "$STAVE" import loss.log --columns 'ts:utc pid pid' --to text

# What is no trace is named, and the rest is read.
mkdir mixed
cp "$SRC/tests/golden/good/bpftrace_cut_read.out" mixed/trace_write.out
printf '{"a": 1}' >mixed/settings.json
printf 'PNG\0\1\2' >mixed/picture.png
head -c 100 /dev/zero >mixed/zeros.out
: >mixed/empty.out
printf '%s' '{"traceEvents":[{"ph":"X","name":"a","ts":1e300,"dur":1,"pid":1,"tid":1}]}' >mixed/past.json
run mixed 0 "$STAVE" import mixed --to text
check name_decides grep -q ' slice .* "write" cat="syscall"' mixed.out
run_any mixed_strict 4 "$STAVE" import mixed --strict --to text
rm mixed/trace_write.out
run nothing_left 3 "$STAVE" import mixed --to text
if [ "$(id -u)" != 0 ]; then
  cp archive/pids.json mixed/secret.json; chmod 0 mixed/secret.json
  run_any unreadable 3 "$STAVE" import mixed --to text
  check unreadable_is_named grep -q 'secret.json: skipped, it cannot be read' unreadable.err
else
  skip unreadable "root reads every file"
fi
