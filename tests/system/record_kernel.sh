#!/usr/bin/env bash
# What stave record takes from the kernel beside system calls and block requests: states of threads, stacks, io_uring, faults, filters.
# Needs root (or the capabilities) and a kernel with BTF. Waits for conditions, never for a time.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"

# ---- states of threads ----
# (Several processes: the kernel keeps a switch to itself now and then, docs/why.md.)
run_any sched 0 "$STAVE" record -q --strict --sched -o sched.pftrace -- sh -c "'$play' sleep 1; '$play' sleep 0; '$play' sleep 0"
check sched_valid "$STAVE" validate -q sched.pftrace
check sched_slept test "$(ask sched.pftrace "SELECT max(dur) FROM thread_state WHERE state = 'S'")" -ge 1000000000
check sched_ran test "$(ask sched.pftrace "SELECT count(*) FROM thread_state WHERE state = 'Running' AND cpu IS NOT NULL")" -ge 2
equals sched_row "$(ask sched.pftrace "SELECT DISTINCT t.name FROM slice s JOIN track t ON s.track_id = t.id WHERE s.category = 'thread_state'")" state
# One state at a time, from the first to the last, without a gap.
equals sched_gaps "$(ask sched.pftrace "SELECT count(*) FROM (SELECT ts, lag(ts + dur) OVER (PARTITION BY utid ORDER BY ts) AS before FROM thread_state) WHERE before IS NOT NULL AND before <> ts")" 0
run_any sched_off 0 "$STAVE" record -q --strict --no-sched -o off.pftrace -- "$play" sleep 0
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
burnt=$(awk '/burn_outer[ ;].*burn_inner/ { s += $NF } END { print s + 0 }' folded.out)
samples=$(awk '{ s += $NF } END { print s + 0 }' folded.out)
echo "  $burnt of $samples samples in burn_inner"
check sample_where test "$burnt" -ge 20 -a $((burnt * 10)) -ge $((samples * 6))
run_any sample_flame 0 "$STAVE" plot flame -q sample.pftrace --samples -o sample.svg
check sample_flame_names grep -q burn_inner sample.svg
# And in the kernel, where the program is nearly all of its time.
run_any sample_zeros 0 "$STAVE" record -q --strict --sample 997 -o zeros.pftrace -- "$play" zeros 200
run_any zeros 0 "$STAVE" export -q zeros.pftrace --to folded -o -
read -r within samples < <(awk '{ all += $NF } /_\[k\] [0-9]+$/ { s += $NF } END { print s + 0, all + 0 }' zeros.out)
echo "  $within of $samples samples in the kernel"
check sample_kernel test "$within" -ge 20 -a $((within * 10)) -ge $((samples * 6))
run_any sample_none 1 "$STAVE" plot flame -q off.pftrace --samples -o none.svg
run_any sample_too_often 2 "$STAVE" record -q --sample 1000000 -o x.pftrace -- true

# ---- libaio ----
"$BUILD/tests/system/play_aio" aio.dat 1 >/dev/null; code=$?
if [ $code = 77 ]; then skip aio "no io_submit here"; else
  run_any aio 0 "$STAVE" record -q --strict -o aio.pftrace -- "$BUILD/tests/system/play_aio" aio.dat 150
  check aio_requests diff <(sort aio.out) <("$STAVE" query -q --no-index --to csv aio.pftrace "SELECT op || ' ' || coalesce(bytes, 0) || ' ' || coalesce(offset, -1) FROM io WHERE category = 'aio' AND path = '$TMP/aio.dat' AND dur >= 0" | sed 1d | sort)
  equals aio_refused "$(ask aio.pftrace "SELECT errno FROM io WHERE op = 'io_submit' AND errno IS NOT NULL")" 9
  equals aio_by_file "$(ask aio.pftrace "SELECT bytes_read, bytes_written FROM file WHERE path = '$TMP/aio.dat'")" 614500,614400
  check aio_valid "$STAVE" validate -q aio.pftrace
fi

# ---- io_uring ----
"$BUILD/tests/system/play_uring" uring.dat 1; code=$?
if [ $code = 77 ]; then skip uring "no io_uring here"; else
  for kind in '' fixed; do
    # shellcheck disable=SC2086 # no word where there is none
    run_any "uring$kind" 0 "$STAVE" record -q --strict -o "uring$kind.pftrace" -- "$BUILD/tests/system/play_uring" uring.dat 20 $kind
    file=uring$kind.pftrace
    equals "uring${kind}_writes" "$(ask "$file" "SELECT count(*), sum(bytes), min(dur) > 0 FROM io WHERE op = 'io_uring_write' AND path = '$TMP/uring.dat'")" 20,81920,1
    equals "uring${kind}_reads" "$(ask "$file" "SELECT count(*), sum(bytes) FROM io WHERE op = 'io_uring_read' AND path = '$TMP/uring.dat'")" 21,82020
    equals "uring${kind}_fsync" "$(ask "$file" "SELECT count(*) FROM io WHERE op = 'io_uring_fsync' AND path = '$TMP/uring.dat'")" 1
    check "uring${kind}_valid" "$STAVE" validate -q "$file"
  done
  check uring_failed grep -qE '"io_uring_read" .*fd=999 .*errno=9' <("$STAVE" cat -q uring.pftrace)
  equals uring_opened "$(ask uring.pftrace "SELECT count(*), min(fd) > 2 FROM io WHERE op = 'io_uring_openat' AND path = '$TMP/uring.dat' AND errno IS NULL")" 1,1
  equals uring_not_opened "$(ask uring.pftrace "SELECT count(*) FROM io WHERE op = 'io_uring_openat' AND path = '/nowhere/at/all' AND fd IS NULL AND errno = 2")" 1
  equals uring_opened_is_read "$(ask uring.pftrace "SELECT path FROM io WHERE op = 'pread64' AND bytes = 7")" "$TMP/uring.dat"
  equals uring_closed "$(ask uring.pftrace "SELECT count(*) FROM io WHERE op = 'io_uring_close' AND path = '$TMP/uring.dat'")" 1
  check uring_short grep -qE '"io_uring_read" .*requested=4096 offset=81820 bytes=100' <("$STAVE" cat -q uring.pftrace)
  run_any uring_off 0 "$STAVE" record -q --strict --calls files -o uring_off.pftrace -- "$BUILD/tests/system/play_uring" uring.dat 2
  equals uring_off_none "$("$STAVE" cat -q uring_off.pftrace | grep -c 'cat="io_uring"')" 0
fi

# ---- faults on files, and the paths of pages ----
head -c 262144 /dev/urandom >cold; sync cold
# Until the kernel has really let go of all of it: pages that somebody looks at just then stay.
chill() { until_true 'dd of=cold oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null; [ "$(fincore -nb -o PAGES cold)" -eq 0 ]'; }
if chill; then
  run_any faults 0 "$STAVE" record -q --strict -o faults.pftrace -- "$play" touch cold 64
  "$STAVE" cat -q faults.pftrace >faults.txt
  equals faults_seen "$(grep -c "\"file\" cat=\"fault\" .*path=\"$TMP/cold\"" faults.txt)" 64
  equals faults_missed "$(sed -nE "s|.*cat=\"page_cache\" .*path=\"$TMP/cold\".*bytes=([0-9]+).*|\1|p" faults.txt | awk '{ s += $1 } END { print s + 0 }')" 262144
  chill
  run_any cold_read 0 "$STAVE" record -q --strict -o cold_read.pftrace -- cat cold
  equals cold_read_path "$("$STAVE" cat -q cold_read.pftrace | sed -nE "s|.*cat=\"page_cache\" .*path=\"$TMP/cold\".*bytes=([0-9]+).*|\1|p" | awk '{ s += $1 } END { print s + 0 }')" 262144
else skip cold "cannot take a file out of the page cache"; fi
run_any faults_off 0 "$STAVE" record -q --strict --no-page-cache -o faults_off.pftrace -- "$play" touch cold 64
equals faults_off_none "$("$STAVE" cat -q faults_off.pftrace | grep -c 'cat="fault"')" 0

# ---- vectors: what was asked for is added up ----
run_any vectors 0 "$STAVE" record -q --strict -o vectors.pftrace -- "$play" vectors "$TMP/vectors.dat"
"$STAVE" cat -q vectors.pftrace >vectors.txt
check vectors_write grep -qE '"writev" .*offset=0 bytes=60\}' vectors.txt
check vectors_read grep -qE '"readv" .*requested=100 offset=0 bytes=60\}' vectors.txt
check vectors_long grep -qE '"preadv2" .*"  *offset=0 bytes=60\}' vectors.txt # more buffers than are added up

# ---- calls that have not ended ----
mkfifo fifo
for long in 300ms 3s 20s; do # a busy machine may not let it come so far
  run_any hang 0 "$STAVE" record --strict -o hang.pftrace --duration $long -- "$play" hang "$TMP/fifo"
  grep -q "1 calls had not ended" hang.err && break
done
exec 8<>fifo; echo >&8; exec 8>&- # it may end
equals hang_call "$(ask hang.pftrace "SELECT name, dur, extract_arg(arg_set_id, 'debug.path') FROM slice WHERE dur = -1 AND category = 'syscall'")" "read,-1,$TMP/fifo"
check hang_reported grep -q "1 calls had not ended" hang.err

# ---- only below a path, decided in the kernel ----
mkdir below other; for i in $(seq 20); do echo "$i" >below/f$i; echo "$i" >other/f$i; done
run_any path 0 "$STAVE" record --strict -o path.pftrace --path "$TMP/below/" -- sh -c "'$play' read 1 '$TMP/other' 20; '$play' read 1 '$TMP/below' 20; cd below; '$play' read 1 . 20"
equals path_reads "$(ask path.pftrace "SELECT count(*), count(DISTINCT path) FROM io WHERE op = 'read' AND category = 'syscall'")" 80,20
equals path_opens "$(ask path.pftrace "SELECT count(*) FROM io WHERE op = 'openat' AND path GLOB '$TMP/below/f*'")" 40
# Should it ever fail: which files, which threads, when.
[ "$(ask path.pftrace "SELECT count(*) FROM io WHERE op = 'read' AND category = 'syscall'")" = 80 ] || { cat path.err; "$STAVE" cat -q path.pftrace | grep 'cat="syscall"'; }
equals path_closes "$(ask path.pftrace "SELECT count(*) FROM io WHERE op = 'close' AND path GLOB '$TMP/below/f*'")" 40
equals path_elsewhere "$(ask path.pftrace "SELECT count(*) FROM io WHERE category = 'syscall' AND path NOT GLOB '$TMP/below/*'")" 0
left_out=$(sed -nE 's/^ +([0-9]+) filtered calls left out$/\1/p' path.err)
check path_in_kernel test "${left_out:-0}" -ge 80 # 20 opens, 40 reads, 20 closes, and what the programs' own start needs

# ---- processes that come later ----
cp "$play" lateplay
"$STAVE" record -q -o late.pftrace --comm lateplay & recorder=$!
begun() { until_true '"$STAVE" status 2>/dev/null | grep -q "^'"$1"' "'; }
begun $recorder
./lateplay read 1 "$TMP/below" 20; "$play" read 1 other 20
kill -INT $recorder; wait $recorder
equals late_reads "$(ask late.pftrace "SELECT count(*) FROM io WHERE op = 'read' AND path GLOB '$TMP/below/f*'")" 40
equals late_others "$(ask late.pftrace "SELECT count(*) FROM io WHERE path GLOB '$TMP/other/f*'")" 0
group=$(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs -writable 2>/dev/null | head -n 1); group=${group%/cgroup.procs}
if [ -n "$group" ] && mkdir "$group/stave-test-$$" 2>/dev/null; then
  group=$group/stave-test-$$; mkdir "$group/inner"
  "$STAVE" record -q -o group.pftrace --cgroup "$group" & recorder=$!
  begun $recorder
  sh -c "echo \$\$ >'$group/inner/cgroup.procs' && '$play' read 1 '$TMP/below' 20; exec '$play' sleep 1"; "$play" read 1 other 20
  kill -INT $recorder; wait $recorder; rmdir "$group/inner" "$group"
  equals group_reads "$(ask group.pftrace "SELECT count(*) FROM io WHERE op = 'read' AND path GLOB '$TMP/below/f*'")" 40
  equals group_others "$(ask group.pftrace "SELECT count(*) FROM io WHERE path GLOB '$TMP/other/f*'")" 0
  check group_named grep -qE '"exec" .*cgroup="[^"]*stave-test-[0-9]+/inner"' <("$STAVE" cat -q group.pftrace)
else skip group "no cgroup can be made here"; fi

# ---- what the recorder keeps of processes and threads that are gone ----
# kib WORDS…: "16.6 MiB of memory at most" of the summary.
kib() { sed -nE 's/.* ([0-9.]+) (KiB|MiB|GiB) of memory at most$/\1 \2/p' "$1" | awk '{ print int($1 * ($2 == "GiB" ? 1048576 : $2 == "MiB" ? 1024 : 1)) }'; }
for option in '' '--sample 997'; do
  name=short_lived${option:+_sampled}
  for n in 500 10000; do
    # shellcheck disable=SC2086 # two words or none
    run_any "${name}_$n" 0 "$STAVE" record --ring 1M --no-block --no-page-cache --interval 0 $option -o short_lived.pftrace -- "$play" short_lived $((n / 10 * 7)) $((n / 10 * 3))
  done
  few=$(kib "${name}_500.err"); many=$(kib "${name}_10000.err")
  echo "  memory: $few KiB for 500 processes, $many KiB for 10000"
  equals "${name}_seen" "$(ask short_lived.pftrace "SELECT count(*) FROM slice WHERE name = 'fork' AND category = 'process'")" 7000
  equals "${name}_calls" "$(ask short_lived.pftrace "SELECT count(*) FROM io WHERE op = 'openat' AND path = '/dev/null'")" 10000
  equals "${name}_processes" "$(ask short_lived.pftrace "SELECT count(*) FROM process WHERE name = 'play' AND pid > 0")" 7001
  check "${name}_reported" grep -qE ' 7001 processes' "${name}_10000.err"
  check "${name}_memory" test "${few:-0}" -gt 0 -a $((many * 2)) -le $((few * 4))
  # Samples and thread states of so many may find no room in rings of 1 MiB: the trace says so.
  check "${name}_valid" sh -c '"$0" validate -q short_lived.pftrace >short_lived.found 2>&1 || { cat short_lived.found; ! grep -E "^ *(error|warning)" short_lived.found | grep -qv loss; }' "$STAVE"
done
