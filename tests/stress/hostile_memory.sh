#!/usr/bin/env bash
# Where rings, memory or system calls are not to be had (hostile_memory.c): a small /dev/shm, a limit of the address space, another user, seccomp.
# Each scene runs untraced and traced: exit code and output are the same, at most one line is said, and what was emitted is kept or counted as lost.
set -uo pipefail
case $BUILD in *tsan | *asan) echo "a sanitizer needs address space and system calls of its own"; exit 77 ;; esac
place=$(mktemp -d /tmp/stave-hostile.XXXXXX) || exit 2 # another user must be able to enter it
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"; cd "$place" || exit 2
program=$BUILD/tests/stress/hostile_memory
export TMPDIR=$place/tmp
unset STAVE_SESSION_DIR XDG_RUNTIME_DIR
mkdir -p "$TMPDIR" run
say() { if [ "$1" = 0 ]; then echo "ok hostile memory: $2"; else echo "not ok hostile memory: $2: ${3:-}"; fi; }
# law SCENE: what the files of the run hold and count is what the program has emitted
law() {
  local f
  for f in run/t*.pftrace; do "$STAVE" cat -q "$f" || echo "cannot read $f"; done >text 2>&1
  awk -v want="$(sed -n 's/^emitted //p' out)" '
    /cannot read/ { bad = 1 }
    /(instant|begin|slice) .*"(n|slice)"/ { n++ }
    / loss / { match($0, /\{[0-9]+\}$/); lost += substr($0, RSTART + 1, RLENGTH - 2) }
    END { printf "%d kept, %d lost, %d emitted", n, lost, want; exit bad || want == 0 || n + lost != want }' text >law
}
# inside NAME SIZE EXIT COMMAND…: with a /dev/shm of that size ("": as it is); alone first
inside() {
  local name=$1 size=$2 want=$3 code plain; shift 3
  rm -rf run ./*.err; mkdir -m "${mode:-777}" run
  "$program" "$@" >plain 2>plain.err; plain=$?
  local script='if [ -n "$0" ]; then mount -t tmpfs -o "size=$0,mode=1777" tmpfs /dev/shm || exit 99; fi
    program=$1 stave=$2; shift 2
    STAVE_OUT=run/t.pftrace "$program" "$@" >out 2>err; code=$?
    for s in run/t*.session; do
      as=; [ ! -e "$s" ] || [ "$(stat -c %u "$s")" = 0 ] || as="setpriv --reuid 65534 --regid 65534 --clear-groups"
      [ ! -e "$s" ] || $as "$stave" recover -q "${s%.session}" 2>>recover.err >&2
    done
    find /dev/shm/stave-* "$TMPDIR"/stave-* -mindepth 1 2>/dev/null >left
    exit $code'
  unshare -m --propagation private bash -c "$script" "$size" "$program" "$STAVE" "$@" 2>shell; code=$?
  law && [ $code = "$want" ] && { [ $want != 7 ] || [ $plain = $code ]; } && [ "$(cat plain)" = "$(cat out)" ] &&
    [ "$(wc -l <err)" -le $((${mode:+1} + 1)) ] && { [ ! -s left ] || [ "$1" = setuid ]; } && ! grep -q 'tracing is off' err
  say $? "$name" "$(cat law), exit $code (alone $plain), said $(wc -l <err): $(head -n 3 err; cat recover.err shell 2>/dev/null) left: $(head -n 3 left) $(cd run && echo *)"
}
told() { [ "$(wc -l <err)" = 1 ] && grep -q "$1" err; }
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
  inside "64 MB of /dev/shm, 100 workers" 64M 7 workers 100 2000
  inside "900 KB of /dev/shm, 12 workers" 900K 7 workers 12 20000
  inside "900 KB of /dev/shm, 40 children" 900K 7 children 40 5000
  inside "900 KB of /dev/shm, 30 threads" 900K 7 threads 30 5000
  inside "40 KB of /dev/shm" 40K 7 workers 3 5000
  # No other place either: the events are counted, and the line says where and what changes it.
  (export STAVE_SESSION_DIR=/dev/shm/here TMPDIR=/proc/none; inside "900 KB and no other place" 900K 7 workers 30 5000
   told "/dev/shm/here/.*STAVE_SESSION_DIR=DIR.*STAVE_BUFFER=SIZE"; say $? "one line says where, and what changes it" "$(cat err)")
  inside "killed with 900 KB of /dev/shm, then recovered" 900K 137 kill 20 5000
  (export STAVE_SESSION_DIR=/dev/shm/here TMPDIR=/proc/none; inside "killed with 900 KB and no other place, then recovered" 900K 137 kill 30 5000)
  (export STAVE_SESSION_DIR=/dev/shm/here TMPDIR=/proc/none; inside "no space for the names of call sites" 120K 7 names 1 5000
   told "names of events in /dev/shm/here/.*lost and counted"; say $? "one line about the names" "$(cat err)")
  inside "becoming another user" "" 7 setuid 1 5000
  # What it may no longer reach is completed by recovery.
  (umask 077; mode=700; inside "becoming another user who may not reach the file" "" 7 setuid 1 5000)
  # Under a collector: who cannot even become a client counts in the collector's page.
  rm -rf run ./*.err; mkdir run
  # shellcheck disable=SC2016
  unshare -m --propagation private bash -c 'mount -t tmpfs -o size=900K,mode=1777 tmpfs /dev/shm || exit 99
    "$1" /dev/shm/c run/t.pftrace >col 2>&1 & collector=$!
    until grep -qs ready col || ! kill -0 $collector; do sleep 0.01; done
    TMPDIR=/proc/none STAVE_SESSION=/dev/shm/c "$0" workers 40 5000 >out 2>err; code=$?
    wait $collector && exit $code' "$program" "$BUILD/tests/stress/collector" 2>shell; code=$?
  law && [ $code = 7 ] && told "lost and counted" && grep -q '"no ring for the thread"' text
  say $? "900 KB of /dev/shm under a collector" "$(cat law), exit $code, said $(wc -l <err): $(head -n 3 err) $(cat col shell)"
else
  echo "skip hostile memory: small file systems and another user: needs root and mount namespaces"
fi
# plain NAME COMMAND…: without a file system of its own
plain() {
  local name=$1 code alone; shift
  rm -rf run "${TMPDIR:?}"/*; mkdir run
  "$program" "$@" >plain 2>plain.err; alone=$?
  STAVE_OUT=run/t.pftrace STAVE_SESSION_DIR=$TMPDIR/s timeout 60 "$program" "$@" >out 2>err; code=$?
  for s in run/t*.session; do [ ! -e "$s" ] || STAVE_SESSION_DIR=$TMPDIR/s "$STAVE" recover -q "${s%.session}"; done 2>recover.err >&2
  law && [ $code = 7 ] && [ $alone = 7 ] && cmp -s plain out && [ "$(wc -l <err)" -le 1 ] && [ -z "$(ls "$TMPDIR/s" 2>&1)" ]
  say $? "$name" "$(cat law), exit $code (alone $alone), said $(head -n 3 err; cat recover.err) left: $(ls "$TMPDIR/s") $(cd run && echo *)"
}
plain "no address space left" limit 8 5000
plain "no address space left in the children" limited 8 5000
if grep -q '^Seccomp:' /proc/self/status; then
  plain "a seccomp filter that kills" filter 1 200000
  plain "strict seccomp" strict 1 200000
else
  echo "skip hostile memory: seccomp: this kernel has none"
fi
