#!/usr/bin/env bash
# stave record attached in each of its three ways: the same workload, the same counts. And what is done where the best way is not there.
# Needs root (or the capabilities) and a kernel with BTF.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"

paths() { "$STAVE" cat -q "$1" | grep -c "\"$2\" .*path=\"$3"; }
begun() { until_true '"$STAVE" status 2>/dev/null | grep -q "^'"$1"' "'; }

# Tracepoints with names need tracefs, which is mounted in a namespace of the test's own.
has_tracefs=
unshare -m sh -c 'mount -t tracefs none /sys/kernel/tracing' 2>/dev/null && has_tracefs=1
# record HOOKS WORDS…: the recorder in its place, so that its pid is the caller's.
record() {
  local hooks=$1; shift
  if [ "$hooks" != tracepoints ]; then exec "$STAVE" record --hooks "$hooks" "$@"; fi
  exec unshare -m sh -c 'mount -t tracefs none /sys/kernel/tracing && exec "$0" record --hooks tracepoints "$@"' "$STAVE" "$@"
}

mkdir files; for i in $(seq 1 40); do head -c $((i * 100)) /dev/zero >files/f$i; done

all_ways() {
  local h=$1 file=$1.pftrace
  run_any "${h}_threads" 0 record_here "$h" -q -o "$file" -- "$play" read 3 files 40
  equals "${h}_opens" "$(paths "$file" openat "$TMP/files/f")" 120
  equals "${h}_reads" "$(paths "$file" read "$TMP/files/f")" 240
  equals "${h}_closes" "$(paths "$file" close "$TMP/files/f")" 120
  equals "${h}_bytes" "$(ask "$file" "SELECT sum(bytes) FROM io WHERE op = 'read' AND path GLOB '$TMP/files/f*'")" 246000
  equals "${h}_rows" "$("$STAVE" cat -q "$file" | grep '"openat" .*/files/f' | awk '{ print $3 }' | sort -u | wc -l)" 3
  equals "${h}_nothing_lost" "$("$STAVE" cat -q "$file" | grep -c ' loss ')" 0
  check "${h}_valid" "$STAVE" validate -q "$file"

  run_any "${h}_tree" 7 record_here "$h" -q -o "$file" -- bash -c 'for i in 1 2 3 4 5; do cat files/f$i >/dev/null; done; (exec -a odd sleep 0); exit 7'
  equals "${h}_execs" "$("$STAVE" cat -q "$file" | grep -c '"exec" .*/cat')" 5
  equals "${h}_exits" "$("$STAVE" cat -q "$file" | grep '"exit"' | grep -oE 'status=[0-9]+' | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd' ')" "6 status=0 1 status=1792"
  equals "${h}_tree_opens" "$(paths "$file" openat "$TMP/files/f")" 5

  run_any "${h}_book" 0 record_here "$h" -q -o "$file" -- "$play" book "$TMP/book_$h"
  "$STAVE" cat -q "$file" >book.txt
  for mark in dup dup2 dup3 fcntl fork reuse chdir dirfd fchdir renamed; do
    grep -qE "\"write\" .*path=\"$TMP/book_$h/[^\"]*$mark\"" book.txt || echo "  $mark is not there"
  done >lacking
  check "${h}_books" test ! -s lacking; cat lacking

  mkfifo "gate_$h"; (exec 7>joined.out; read -r _ <"gate_$h"; echo one >&7; bash -c 'cat files/f9' >/dev/null) & target=$!
  record "$h" -q -o "$file" -p $target & recorder=$!
  begun $recorder; echo go >"gate_$h"; wait $target; wait $recorder
  equals "${h}_joined_write" "$(paths "$file" write "$TMP/joined.out")" 1
  equals "${h}_joined_child" "$(paths "$file" openat "$TMP/files/f9")" 1

  run_any "${h}_prefix" 0 record_here "$h" -q -o "$file" --path "$TMP/files/f1" -- "$play" read 1 files 40
  equals "${h}_prefix_opens" "$(ask "$file" "SELECT count(*) FROM io WHERE op = 'openat'")" 11

  cp "$play" "late_$h"
  record "$h" -q -o "$file" --comm "late_$h" & recorder=$!
  begun $recorder; "./late_$h" read 1 "$TMP/files" 20; kill -INT $recorder; wait $recorder
  equals "${h}_late_reads" "$(ask "$file" "SELECT count(*) FROM io WHERE op = 'read' AND path GLOB '$TMP/files/f*'")" 40
}
record_here() { (record "$@"); }

# What plain tracepoints do not provide.
most_ways() {
  local h=$1 file=$1.pftrace
  run_any "${h}_offsets" 0 record_here "$h" --strict -q -o "$file" -- "$play" read 1 files 7
  equals "${h}_offset" "$(ask "$file" "SELECT extract_arg(arg_set_id, 'debug.offset') FROM slice WHERE name = 'read' AND extract_arg(arg_set_id, 'debug.path') = '$TMP/files/f7' ORDER BY ts" | paste -sd' ')" "0 700"
  run_any "${h}_sched" 0 record_here "$h" --strict -q --sched -o "$file" -- sh -c "'$play' sleep 0; '$play' sleep 0"
  equals "${h}_sched_gaps" "$(ask "$file" "SELECT count(*) FROM (SELECT ts, lag(ts + dur) OVER (PARTITION BY utid ORDER BY ts) AS before FROM thread_state) WHERE before IS NOT NULL AND before <> ts")" 0
  run_any "${h}_hang" 0 record_here "$h" --strict -q -o "$file" --duration 300ms -- "$play" sleep 60
  check "${h}_hang_valid" test -s "$file"
  "$BUILD/tests/system/play_uring" uring.dat 1; [ $? = 77 ] && { skip "${h}_uring" "no io_uring here"; return; }
  run_any "${h}_uring" 0 record_here "$h" -q --strict -o "$file" -- "$BUILD/tests/system/play_uring" uring.dat 20
  equals "${h}_uring_writes" "$(ask "$file" "SELECT count(*), sum(bytes) FROM io WHERE op = 'io_uring_write' AND path = '$TMP/uring.dat'")" 20,81920
}

for hooks in btf raw; do all_ways $hooks; most_ways $hooks; done
if [ -n "$has_tracefs" ]; then all_ways tracepoints; else skip tracepoints "tracefs cannot be mounted"; fi

run_any hooks_bad 2 "$STAVE" record -q --hooks kprobes -o x.pftrace -- true
check hooks_bad_reported grep -q "none of best, btf, raw and tracepoints" hooks_bad.err

# Who is woken by whom: a pipe between two processes, both followed.
for long in 0.2 2 10; do # a busy machine may not let the reader wait before the writer ends
  run_any waker 0 "$STAVE" record -q --strict --sched -o waker.pftrace -- sh -c 'sleep $0 | cat >/dev/null' $long
  woken=$(ask waker.pftrace "SELECT DISTINCT w.name FROM thread_state s JOIN thread t USING (utid) JOIN thread w ON s.waker_utid = w.utid WHERE t.name = 'cat' AND s.state = 'R' AND w.name = 'sleep'")
  [ -n "$woken" ] && break
done
equals waker_of_cat "$woken" sleep

# The same ways with two capabilities and another user.
chmod 755 "$TMP"; mkdir -m 777 open
# shellcheck disable=SC2054 # commas of its own
capable=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon)
if "${capable[@]}" test -x "$STAVE" 2>/dev/null; then
  for hooks in btf raw; do
    run_any "capable_$hooks" 0 "${capable[@]}" "$STAVE" record -q --strict --hooks $hooks -o open/c.pftrace -- cat files/f5
    equals "capable_${hooks}_open" "$(paths open/c.pftrace openat "$TMP/files/f5")" 1
  done
else skip capable "setpriv cannot give capabilities, or another user cannot reach $STAVE"; fi

# What needs typed tracepoints is said, and left out; --strict stops.
for hooks in raw btf; do
  for option in offcpu 'sample=99 --stacks=dwarf'; do
    name=${hooks}_${option%%[= ]*} code=0; [ $hooks = btf ] || code=4
    # shellcheck disable=SC2086 # two words
    run_any "$name" $code "$STAVE" record -q --strict --hooks $hooks --$option -o typed.pftrace -- true
    [ $hooks = btf ] || check "${name}_says" grep -q "needs x86-64, Linux 5.15 and typed tracepoints" "$name.err"
  done
done

# A kernel without type information: plain tracepoints where there are any, said so; --strict stops.
no_btf='mount -t tmpfs none /sys/kernel/btf &&'
if [ -n "$has_tracefs" ]; then
  tracefs='mount -t tracefs none /sys/kernel/tracing &&'
  run_any no_btf 0 unshare -m sh -c "$no_btf $tracefs"' exec "$0" record -o no_btf.pftrace -- cat files/f5' "$STAVE"
  check no_btf_reported grep -q "system calls and processes only, by plain tracepoints: .*no type information" no_btf.err
  equals no_btf_open "$(paths no_btf.pftrace openat "$TMP/files/f5")" 1
  run_any no_btf_strict 4 unshare -m sh -c "$no_btf $tracefs"' exec "$0" record --strict -o x.pftrace -- true' "$STAVE"
  run_any no_btf_asked 0 unshare -m sh -c "$no_btf $tracefs"' exec "$0" record --strict -q --hooks tracepoints -o no_btf.pftrace -- cat files/f5' "$STAVE"
  equals no_btf_asked_open "$(paths no_btf.pftrace openat "$TMP/files/f5")" 1
  run_any no_btf_doctor 1 unshare -m sh -c "$no_btf $tracefs"' exec "$0" doctor --strict' "$STAVE"
  check no_btf_doctor_reported grep -q "^no *kernel programs *loaded by plain tracepoints, but without" no_btf_doctor.out
fi
if unshare -m true 2>/dev/null; then
  run_any nothing_there 0 unshare -m sh -c "$no_btf"' umount /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec "$0" record -o nothing.pftrace -- true' "$STAVE"
  check nothing_reported grep -q "without system calls and block I/O: .*no type information" nothing_there.err
  inner=(unshare -pf -m --mount-proc)
  run_any raw_inner 4 "${inner[@]}" sh -c "$no_btf"' exec "$0" record -q --strict --hooks raw -o x.pftrace -- true' "$STAVE"
  check raw_inner_says grep -q "raw tracepoints find no processes in a container without /sys/kernel/btf/vmlinux" raw_inner.err
  run_any raw_inner_runs 0 "${inner[@]}" sh -c "$no_btf"' exec "$0" record -q --hooks raw -o x.pftrace -- echo ran' "$STAVE"
  check raw_inner_ran grep -qx ran raw_inner_runs.out
else skip nothing_there "no mount namespaces here"; fi
run_any doctor 0 "$STAVE" doctor --strict
check doctor_hooks grep -q "^ok *kernel programs *loaded and attached by typed tracepoints" doctor.out
check doctor_raw grep -q "^ok *raw tracepoints *possible" doctor.out
