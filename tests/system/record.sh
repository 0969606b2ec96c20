#!/usr/bin/env bash
# stave record on workloads whose calls are known one by one. Needs root (or the capabilities) and a kernel with BTF.
# shellcheck disable=SC2015,SC2016,SC2054,SC2086 # words for inner shells; lists of capabilities have commas
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"

# count TRACE CALL: how many there are. paths TRACE CALL PREFIX: those on files whose path begins so.
count() { "$STAVE" cat -q "$1" | grep -c "\"$2\" cat=\"syscall\""; }
paths() { "$STAVE" cat -q "$1" | grep -c "\"$2\" .*path=\"$3"; }

# begun PID: until 'stave status' shows this recorder as recording.
begun() { until_true '"$STAVE" status 2>/dev/null | grep -q "^'"$1"' "'; }

mkdir files; for i in $(seq 1 40); do head -c $((i * 100)) /dev/zero >files/f$i; done

# 40 files, 3 threads: each file opened, read to its end (two reads) and closed by each thread.
run_any threads 0 "$STAVE" record -q --strict -o threads.pftrace -- "$play" read 3 files 40
equals threads_opens "$(paths threads.pftrace openat "$TMP/files/f")" 120
equals threads_reads "$(paths threads.pftrace read "$TMP/files/f")" 240
equals threads_closes "$(paths threads.pftrace close "$TMP/files/f")" 120
equals threads_bytes "$("$STAVE" cat -q threads.pftrace | grep '"read" .*/files/f' | grep -oE 'bytes=[0-9]+' | awk -F= '{ s += $2 } END { print s }')" 246000
equals threads_rows "$("$STAVE" cat -q threads.pftrace | grep '"openat" .*/files/f' | awk '{ print $3 }' | sort -u | wc -l)" 3
check threads_valid "$STAVE" validate -q threads.pftrace
check threads_machine grep -qxF "meta \"boot_id\" \"$(cat /proc/sys/kernel/random/boot_id)\"" <("$STAVE" cat -q threads.pftrace)
equals threads_nothing_lost "$("$STAVE" cat -q threads.pftrace | grep -c ' loss ')" 0

# Offsets of reads without an offset of their own come from the kernel's file.
equals offsets "$("$STAVE" cat -q threads.pftrace | grep '"read" .*/files/f7"' | grep -oE 'offset=[0-9]+ bytes=[0-9]+' | sort | uniq -c | awk '{ print $1, $2, $3 }' | paste -sd' ')" \
  "3 offset=0 bytes=700 3 offset=700 bytes=0"

# A recording in a recording: the outer summary names the inner trace by the name that it has now, and no file of the inner recorder that is gone.
STAVE_SESSION_DIR=$TMP run_any nested 0 "$STAVE" record --path "$TMP" -o outer.pftrace -- "$STAVE" record -q --no-summary -o inner.pftrace -- "$BUILD/tests/stress/epochs" 100
sed -n '/slowest files/,/^$/{/slowest files/d; s/.* //p}' nested.err >nested.files
check nested_has_inner grep -q '/inner.pftrace$' nested.files
check nested_all_there sh -c 'while read -r file; do case $file in "" | …*) ;; *) [ -e "$file" ] || { echo "$file"; exit 1; } ;; esac; done <nested.files'

# Processes: 5 children that exec, each reads one file; names, command lines and exit codes.
run_any tree 7 "$STAVE" record -q --strict -o tree.pftrace -- bash -c 'for i in 1 2 3 4 5; do cat files/f$i >/dev/null; done; (exec -a odd sleep 0); exit 7'
equals tree_execs "$("$STAVE" cat -q tree.pftrace | grep -c '"exec" .*/cat')" 5
equals tree_exits "$("$STAVE" cat -q tree.pftrace | grep '"exit"' | grep -oE 'status=[0-9]+' | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd' ')" "6 status=0 1 status=1792"
equals tree_opens "$(paths tree.pftrace openat "$TMP/files/f")" 5
check tree_names grep -q 'cat files/f3' <("$STAVE" info tree.pftrace 2>/dev/null; "$STAVE" cat tree.pftrace 2>/dev/null)

# Descriptors: dup, dup2, fcntl, fork while open, reuse of a number, close_range, a deep path, odd bytes, a failed open.
run_any book 0 "$STAVE" record -q --strict -o book.pftrace -- "$play" book "$TMP/book"
"$STAVE" cat -q book.pftrace >book.txt
for mark in dup dup2 dup3 fcntl fork reuse chdir dirfd fchdir renamed; do
  check "book_$mark" grep -qE "\"write\" .*path=\"$TMP/book/[^\"]*$mark\"" book.txt
done
check book_deep grep -qE "\"openat\" .*path=\"[^\"]{2000,}\"" book.txt
check book_failed grep -qE "\"openat\" .*nowhere\".*errno=2" book.txt
check book_mode grep -qE "\"openat\" .*/dirfd\" flags=66 mode=420" book.txt # O_RDWR | O_CREAT, 0644
check book_vector grep -qE "\"preadv\" .*offset=5 bytes=10" book.txt
check book_rename grep -qE "\"rename[a-z0-9]*\" .*path=\"$TMP/book/before\" path2=\"$TMP/book/renamed\"" book.txt
check book_mmap grep -qE "\"mmap\" .*path=\"$TMP/book/.*length=4096" book.txt
check book_copy grep -qE "\"copy_file_range\" .*bytes=10" book.txt

# The same, with paths once per descriptor: a smaller file, which stave reads as the same events.
run_any once 0 "$STAVE" record -q --strict --paths once -o once.pftrace -- "$play" book "$TMP/book2"
"$STAVE" cat -q once.pftrace >once.txt
for mark in dup dup2 dup3 fcntl fork reuse chdir dirfd fchdir renamed; do
  check "once_$mark" grep -qE "\"write\" .*path=\"$TMP/book2/[^\"]*$mark\"" once.txt
done
equals once_paths "$(grep -c 'cat="syscall".* path=' once.txt)" "$(grep -c 'cat="syscall".* path=' book.txt)"
"$STAVE" convert -q once.pftrace -o whole.pftrace && "$STAVE" cat -q whole.pftrace >whole.txt
check once_converted cmp once.txt whole.txt
run_any once_bad 2 "$STAVE" record --paths never -o never.pftrace -- true
check once_bad_said grep -q "'never' is not all or once" once_bad.err

# A process whose parent does not ask for its end: the recording ends all the same.
run_any zombie 0 timeout 60 bash -c '(sleep 1 & exec sleep 30) & parent=$!; until child=$(pgrep -P $parent); do sleep 0.1; done
  "$STAVE" record -q -o zombie.pftrace -p $child; kill $parent'

# Joining processes that run: their open files are known, their later children are followed.
mkfifo gate; (exec 7>joined.out; read -r _ <gate; echo one >&7; bash -c 'cat files/f9' >/dev/null) & target=$!
"$STAVE" record -q -o joined.pftrace -p $target & recorder=$!
begun $recorder
echo go >gate; wait $target; wait $recorder
equals joined_exit "$?" 0
equals joined_write "$(paths joined.pftrace write "$TMP/joined.out")" 1
equals joined_child "$(paths joined.pftrace openat "$TMP/files/f9")" 1

# By name.
cp "$play" namedplay; ./namedplay sleep 20 & named=$!
until_true '[ "$(cat /proc/$named/comm)" = namedplay ]'; run_any comm 0 "$STAVE" record -q -o comm.pftrace --comm namedplay --duration 300ms
equals comm_process "$("$STAVE" cat -q comm.pftrace | grep -c "^track .* process .*pid=$named ")" 1
kill $named 2>/dev/null; wait $named 2>/dev/null
run_any comm_none 0 "$STAVE" record -o nobody.pftrace --comm nobodyiscalled --duration 100ms
check comm_none_reported grep -q "no process is called 'nobodyiscalled' yet" comm_none.err
run_any cgroup_none 2 "$STAVE" record -q -o x.pftrace --cgroup nowhere
run_any max_size 0 "$STAVE" record -o max.pftrace --max-size 1M -- "$play" flood 1500000
check max_size_reported grep -q "reached --max-size" max_size.err
# It stops in the middle of a call, perhaps: one that has not ended, and what a busy machine had no room for, are all there is to find.
max_size_valid() { "$STAVE" validate -q max.pftrace >max.found 2>&1 || { cat max.found; ! grep -E '^ *(error|warning)' max.found | grep -qvE 'begin-without-end|loss'; }; }
check max_size_valid max_size_valid

# Filters, decided in the kernel and here.
run_any calls 0 "$STAVE" record -q -o calls.pftrace --calls sync -- "$play" read 1 files 40
equals calls_none "$("$STAVE" cat -q calls.pftrace | grep -c '"syscall"')" 0
run_any prefix 0 "$STAVE" record -q -o prefix.pftrace --path "$TMP/files/f1" -- "$play" read 1 files 40
equals prefix_opens "$(count prefix.pftrace openat)" 11
run_any latency 0 "$STAVE" record -o latency.pftrace --min-latency 10s -- "$play" read 1 files 40
check latency_reported grep -q "shorter calls left out" latency.err
equals latency_none "$("$STAVE" cat -q latency.pftrace | grep -c '"syscall"')" 0

# A ring that is too small for a recorder that does not come to empty it: everything is in the file or in the count.
run_any overflow 1 "$STAVE" record --strict --ring 64K --no-block --no-page-cache --calls sync -o overflow.pftrace -- "$play" deluge 300000
kept=$(count overflow.pftrace fsync)
lost=$("$STAVE" cat -q overflow.pftrace | sed -nE 's/.* loss .*"system calls".*\{([0-9]+)\}/\1/p' | awk '{ s += $1 } END { print s + 0 }')
echo "  kept $kept of 300000, lost $lost"
check overflow_lost test "$lost" -gt 0
equals overflow_exact $((kept + lost)) 300000
equals overflow_by_cpu "$(sed -nE 's/^ +CPU [0-9]+: ([0-9]+) system calls$/\1/p' overflow.err | awk '{ s += $1 } END { print s + 0 }')" "$lost"
check overflow_reported grep -q "events were lost" overflow.err

# Block requests: 16 writes past the page cache.
if "$play" direct "$TMP/direct" 16 2>/dev/null; then
  run_any direct 0 "$STAVE" record -q --strict -o direct.pftrace -- "$play" direct "$TMP/direct" 16
  # The block layer may split and merge, and issue from a worker: the bytes are what counts. Others may write, too.
  blocks=$("$STAVE" cat -q direct.pftrace | sed -nE 's/.*"write" cat="block" .*bytes=([0-9]+).*/\1/p' | awk '{ s += $1 } END { print s + 0 }')
  echo "  $blocks bytes of block requests"
  check direct_blocks test "$blocks" -ge 1048576
  equals direct_calls "$(paths direct.pftrace pwrite64 "$TMP/direct")" 16
else skip direct "no O_DIRECT in $TMP"; fi

# Signals: SIGTERM is passed on, the trace is saved, the exit code is the command's.
"$STAVE" record -q -o term.pftrace -- sleep 60 & recorder=$!
begun $recorder
kill -TERM $recorder; wait $recorder; equals term_exit "$?" 143
check term_valid "$STAVE" validate -q term.pftrace
run_any duration 0 "$STAVE" record -q -o duration.pftrace --duration 300ms -- "$play" sleep 2
check duration_saved "$STAVE" validate -q duration.pftrace
run_any killed 137 "$STAVE" record -q -o killed.pftrace -- bash -c 'kill -9 $$'
check killed_valid "$STAVE" validate -q killed.pftrace

# kill -9 of the recorder: what was flushed can be read, the workload is untouched.
"$STAVE" record -q -o gone.pftrace -- bash -c 'for i in $(seq 8); do cat files/f$i >/dev/null; sleep 0.4; done; echo done >gone.txt' & recorder=$!
until_true 'grep -aq f1 gone.pftrace.part' # the first flush
kill -9 $recorder; wait $recorder 2>/dev/null
check gone_part test -s gone.pftrace.part
check gone_readable sh -c '"$0" cat gone.pftrace.part 2>/dev/null | grep openat >/dev/null' "$STAVE"
until_true '[ -e gone.txt ]'
check gone_recovers "$STAVE" recover -q gone.pftrace
check gone_whole sh -c '[ "$("$0" cat -q gone.pftrace | grep -c openat)" -gt 0 ] && [ ! -e gone.pftrace.part ]' "$STAVE"
check gone_workload test -e gone.txt

# Without the right to load programs: one line, and the command still runs; --strict stops.
chmod 755 "$TMP"; mkdir -m 777 open
if command -v setpriv >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$STAVE" 2>/dev/null; then
  unprivileged=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  run_any unprivileged 3 "${unprivileged[@]}" "$STAVE" record -o open/u.pftrace -- sh -c 'exit 3'
  check unprivileged_reported grep -q "without system calls and block I/O: .*CAP_BPF" unprivileged.err
  run_any unprivileged_strict 4 "${unprivileged[@]}" "$STAVE" record --strict -o open/u2.pftrace -- true
  capable=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon)
  if "${capable[@]}" true 2>/dev/null; then
    run_any capable 0 "${capable[@]}" "$STAVE" record -q --strict -o open/c.pftrace -- cat files/f5
    equals capable_open "$(paths open/c.pftrace openat "$TMP/files/f5")" 1
  else skip capable "setpriv cannot give capabilities"; fi
else skip unprivileged "another user cannot reach $STAVE"; fi

# What makes no sense.
run_any nothing 2 "$STAVE" record -o x.pftrace
run_any no_command 4 "$STAVE" record -q -o x.pftrace -- ./no-such-command
check no_command_no_file test ! -e x.pftrace -a ! -e x.pftrace.part
run_any no_process 2 "$STAVE" record -q -o x.pftrace -p 999999999
run_any bad_calls 2 "$STAVE" record -q -o x.pftrace --calls fils -- true

# Programs with libstave: their events are in the same file, beside the calls that they made; also when eBPF is not possible.
numbers=$BUILD/tests/stress/numbers
sessions=$(mktemp -d /dev/shm/stave-test.XXXXXX) # of its own: others record, too
run_any sdk 0 env STAVE_SESSION_DIR="$sessions" "$STAVE" record -q --strict -o sdk.pftrace -- "$numbers" 3 2000 progress
equals sdk_events "$("$STAVE" cat -q sdk.pftrace | grep -v 'cat="syscall"' | awk -f "$SRC/tests/stress/check_numbers.awk" -v want="2000 2000 2000" >sdk.log && echo whole || cat sdk.log)" whole
check sdk_calls sh -c '"$0" cat -q sdk.pftrace | grep "mmap" >/dev/null' "$STAVE"
equals sdk_one_process "$("$STAVE" cat -q sdk.pftrace | grep -c '^track .* process ')" 1
equals sdk_no_leftovers "$(ls "$sessions")" ''
rm -rf "$sessions"

# Utilisation.
run_any usage 0 "$STAVE" record -q -o usage.pftrace --interval 20ms -- "$play" sleep 1
"$STAVE" cat -q usage.pftrace >usage.txt
for row in user iowait idle available cpu memory; do check "usage_$row" grep -qE "^track .* counter .*name=\"$row\"" usage.txt; done
check usage_often test "$(grep -c counter usage.txt)" -gt 100
run_any usage_none 0 "$STAVE" record -q -o none.pftrace --interval 0 -- true
equals usage_off "$("$STAVE" cat -q none.pftrace | grep -c ' counter ')" 0
run_any usage_bad 2 "$STAVE" record -q -o none.pftrace --interval 1ns -- true

# The CPU's counter is in the snapshots, and its rate is what the snapshots say.
if [ "$(uname -m)" = x86_64 ] && grep -q nonstop_tsc /proc/cpuinfo; then
  check tsc_read grep -qE '^snapshot boottime=.* tsc=[0-9]+' usage.txt
  equals tsc_rate "$(sed -nE 's/^snapshot boottime=([0-9]+) .* tsc=([0-9]+).*/\1 \2/p' usage.txt |
    awk 'NR == 1 { b = $1; t = $2 } { x = $1 - b; y = $2 - t } END { printf "%.2f\n", y / x }')" \
    "$(sed -nE 's/^meta .*tsc_hz.*"([0-9]+)".*/\1/p' usage.txt | awk '{ printf "%.2f\n", $1 / 1e9 }')"
else skip tsc "no steady counter"; fi

# Page-cache misses: a file of 1 MiB that is not in the cache is missed whole, and not at all while somebody holds it there.
head -c 1048576 /dev/urandom >cold; sync cold
misses() { "$STAVE" cat -q "$1" | sed -nE "s/.*cat=\"page_cache\" .*inode=$(stat -c %i cold) .*bytes=([0-9]+).*/\1/p" | awk '{ s += $1 } END { print s + 0 }'; }
# Until the kernel has really let go of all of it: pages that somebody looks at just then stay.
chill() { until_true 'dd of=cold oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null; [ "$(fincore -nb -o PAGES cold)" -eq 0 ]'; }
if chill; then
  run_any cold 0 "$STAVE" record -q --strict -o cold.pftrace -- cat cold
  equals cold_missed "$(misses cold.pftrace)" 1048576
  mkfifo held; "$play" hold cold held & holder=$!
  exec 9<held; read -r _ <&9 # it says when all is locked in memory
  run_any warm 0 "$STAVE" record -q --strict -o warm.pftrace -- cat cold
  equals warm_missed "$(misses warm.pftrace)" 0
  exec 9<&-; kill $holder; wait $holder 2>/dev/null
else skip cold "cannot take a file out of the page cache"; fi

# Redacted: no word of a path is left, the same file has the same token.
run_any redacted 0 "$STAVE" record -q --strict --redact paths -o redacted.pftrace -- "$play" read 1 "$TMP/files" 40
equals redacted_words "$("$STAVE" cat -q redacted.pftrace | grep -c 'files')" 0
equals redacted_files "$("$STAVE" cat -q redacted.pftrace | grep '"read"' | grep -oE 'path="[^"]*"' | sort | uniq -c | awk '$1 == 2' | wc -l)" 40
run_any redact_bad 2 "$STAVE" record -q --redact names -o x.pftrace -- true

# In the background: found by status, ended by stop, which waits for the whole trace.
export XDG_RUNTIME_DIR=$TMP/run; mkdir -m 700 run
run_any detach 0 "$STAVE" record --detach -o detached.pftrace -- "$play" sleep 60
check detach_reported grep -q "in the background" detach.err
run_any status 0 "$STAVE" status
check status_line grep -qE "^[0-9]+ .*play → $TMP/detached.pftrace" status.out
run_any stop_other 3 "$STAVE" stop nobody
run_any stop 0 "$STAVE" stop play
equals stop_printed "$(cat stop.out)" "$TMP/detached.pftrace"
check stop_valid "$STAVE" validate -q detached.pftrace
run_any stop_none 3 "$STAVE" stop
run_any detach_failed 4 "$STAVE" record --detach -o failed.pftrace -- ./no-such-command
check detach_log grep -q "cannot run" failed.pftrace.log
unset XDG_RUNTIME_DIR

# The doctor agrees.
run_any doctor 0 "$STAVE" doctor --strict
check doctor_programs grep -q '^ok .*kernel programs' doctor.out
if [ -n "${unprivileged[*]:-}" ]; then
  run_any doctor_unprivileged 1 "${unprivileged[@]}" "$STAVE" doctor --strict
  check doctor_fix grep -q 'setcap cap_bpf,cap_perfmon' doctor_unprivileged.out
fi
if unshare -m true 2>/dev/null; then
  run_any no_btf 0 unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$0" record -o no_btf.pftrace -- true' "$STAVE"
  check no_btf_reported grep -q "no type information" no_btf.err
  run_any no_tracefs 0 unshare -m sh -c 'umount /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec "$0" record -q --strict -o no_tracefs.pftrace -- cat files/f5' "$STAVE"
  equals no_tracefs_open "$(paths no_tracefs.pftrace openat "$TMP/files/f5")" 1
else skip no_btf "no mount namespaces here"; fi
