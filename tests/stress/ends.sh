#!/usr/bin/env bash
# The law of loss: events in the file + losses in the file = events recorded, for every way in which a program can end and every policy of full
# rings (ends.c). Where the end comes from outside, a thread may have recorded one more than it has counted; where the session ends beside it, it may
# have counted one more than there was a session for. Python, the recorder and the listener: ends_writers.sh.
set -uo pipefail
# Deadly signals end a program as they do without a sanitizer, whose handlers would print and exit.
no_handlers=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:$no_handlers TSAN_OPTIONS=${TSAN_OPTIONS:-}:$no_handlers
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR"; mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$TMP" || exit 2
say() { if [ "$1" = 0 ]; then echo "ok ends: $2"; else echo "not ok ends: $2: ${3:-} said: $(head -n 3 err 2>/dev/null) left: $(echo t.*) $(ls "$STAVE_SESSION_DIR")"; fi; }
with_signals=(env "--default-signal=TERM,INT,HUP") # a shell ignores some in the background
# law FILE SLACK [kept]: the numbers of each thread are there once, and together with the reported losses they are as many as were recorded; not one less where all is kept in rings
law() {
  "$STAVE" cat -q "$1" >text 2>>err || return 1
  awk -v want="$(od -A n -v -t u8 -N 16 progress | tr -s ' \n' ' ')" -v slack="$2" -v kept="${3:-}" '
    /seq=[0-9]+/ { match($0, /thread=[0-9]+/); t = substr($0, RSTART + 7, RLENGTH - 7); match($0, /seq=[0-9]+/); s = substr($0, RSTART + 4, RLENGTH - 4)
      if (seen[t, s]++) { print "thread " t ": " s " twice"; bad = 1 } n++ }
    / loss / { match($0, /\{[0-9]+\}$/); lost += substr($0, RSTART + 1, RLENGTH - 2) }
    END { split(want, w, " "); want = w[1] + w[2]; printf "%d in the file, %d lost, %d recorded\n", n, lost, want
      exit bad || n + lost < want - (kept ? 0 : slack) || n + lost > want + slack || (n == 0) }' text >law
}
clean() { [ "$(echo t.*)" = "$1" ] && [ -z "$(ls "$STAVE_SESSION_DIR")" ]; }
# late: a signal's handler waits half a second for the writer, then it names recovery; a machine that is busy with others may take longer. That is
# right, if all of it is recovered and it does not happen again and again.
n_late=0
late() {
  [ "$(cat err)" = "stave: the trace is not complete; to complete it, run: stave recover $PWD/t.pftrace" ] && [ ! -e t.pftrace ] || return
  n_late=$((n_late + 1)); "$STAVE" recover -q t.pftrace >>err.recover 2>&1
}
# way NAME MODE HOW EXIT SLACK [EVENTS]: the file is there without recovery
way() {
  rm -rf t.* "${STAVE_SESSION_DIR:?}"/*
  STAVE_FULL=$2 STAVE_OUT=${OUT:-t.pftrace} "${with_signals[@]}" "$BUILD/tests/stress/ends" "$3" progress ${6:+"$6"} >out 2>err; local code=$?
  case $3 in term | int | hup) late ;; esac
  [ $code = "$4" ] && law "${FILE:-t.pftrace}" "$5" && clean "${FILE:-t.pftrace}" && [ "$(wc -l <err)" -le 1 ]
  say $? "$1, $2" "exit $code, $(cat law)"
}
# again NAME MODE HOW EXIT SLACK [EVENTS]: the same, with recovery
again() {
  rm -rf t.* "${STAVE_SESSION_DIR:?}"/*
  STAVE_FULL=$2 STAVE_OUT=t.pftrace "${with_signals[@]}" "$BUILD/tests/stress/ends" "$3" progress ${6:+"$6"} >out 2>err; local code=$?
  [ $code = "$4" ] && [ ! -e t.pftrace ] && "$STAVE" recover -q t.pftrace >>err 2>&1 && law t.pftrace "$5" kept && clean t.pftrace
  say $? "$1 and recovered, $2" "exit $code, $(cat law)"
}
{ # bash names what a signal has ended
export STAVE_BUFFER=16k
for mode in drop block; do
  way "a normal end" $mode return 0 0 10000
  way "exit()" $mode exit 5 0 10000
  way "SIGTERM" $mode term 143 2
  way "SIGINT" $mode int 130 2
  way "SIGHUP" $mode hup 129 2
  way "SIGTERM with a handler of its own" $mode handler 7 2
  way "SIGTERM with a handler from before the session" $mode handler_before 7 2
  with_signals=(env "--ignore-signal=HUP")
  way "SIGHUP that is ignored" $mode ignored 7 2
  with_signals=(env "--default-signal=TERM,INT,HUP")
  way "a limit of file sizes" $mode limit 0 0 20000
  again "_exit()" $mode quit 0 0 10000
  again "abort()" $mode sudden 134 0 10000
  again "abort() beside threads" $mode abort 134 2
  again "SIGKILL" $mode kill 137 2
  STAVE_SIGNALS=0 again "SIGTERM with STAVE_SIGNALS=0" $mode term 143 2
done
# Every other signal that ends a program: nothing of ours handles it. SIGXFSZ and a real-time signal among them.
for sig in 3 4 5 6 7 8 10 11 12 13 14 16 24 25 26 27 29 30 31 34; do
  for mode in block ${STAVE_LONG:+drop overwrite}; do again "signal $sig" $mode signal:$sig $((128 + sig)) 2; done
done
# Flight recorder: events older than the rings hold are counted as lost in the file.
FILE=t.1.pftrace way "a trigger" overwrite trigger 0 0 10000
again "abort()" overwrite sudden 134 0 10000
again "SIGKILL" overwrite kill 137 2
if [ "$(id -u)" = 0 ] && mkdir -p "$TMP/tiny" && mount -t tmpfs -o size=256k stave-test "$TMP/tiny" 2>/dev/null; then
  for mode in drop block; do
    rm -f "$TMP"/tiny/*
    STAVE_FULL=$mode STAVE_OUT=$TMP/tiny/t.pftrace "$BUILD/tests/stress/ends" full progress 30000 >out 2>err; code=$?
    [ $code = 0 ] && law "$TMP/tiny/t.pftrace" 0 && [ "$(ls "$TMP/tiny")" = t.pftrace ] && [ "$(wc -l <err)" = 1 ]; say $? "a full disk, $mode" "exit $code $(cat law)"
  done
  umount "$TMP/tiny"
else
  echo "skip ends: a full disk: needs to mount one"
fi
} 2>shell.log
[ $n_late -le 2 ]; say $? "the writer ends in time after a signal" "$n_late of 6 times it did not"
# The line at the end names the number and the remedy.
rm -f t.*; STAVE_FULL=drop STAVE_OUT=t.pftrace "$BUILD/tests/stress/ends" return progress 200000 >out 2>err
law t.pftrace 0 && lost=$(sed -n 's/.*, \([0-9]*\) lost,.*/\1/p' law) && [ "$lost" -gt 0 ] &&
  [ "$(cat err)" = "stave: $PWD/t.pftrace: $lost events were lost, $lost of them because rings were full: STAVE_FULL=block waits instead, STAVE_BUFFER=16M gives larger rings" ]
say $? "one line says how many were lost and what helps" "$(cat law)"
# A writer that takes too long is not waited for: one line, and the rest is for recovery.
case $BUILD in
*asan | *tsan) echo "skip ends: a slow writer: the sanitizer is between the library and the shim" ;;
*)
  printf '%s\n' '#include <string.h>' '#include <unistd.h>' '#include <sys/syscall.h>' \
    'int renameat2(int x, const char *a, int y, const char *b, unsigned f) { if (!strstr(b, ".session")) sleep(20); return (int)syscall(SYS_renameat2, x, a, y, b, f); }' >slow.c
  ${CC:-cc} -shared -fPIC -o slow.so slow.c && rm -f t.*
  { LD_PRELOAD=$PWD/slow.so STAVE_FULL=block STAVE_OUT=t.pftrace "${with_signals[@]}" "$BUILD/tests/stress/ends" term progress >out 2>err; } 2>shell.log; code=$?
  [ $code = 143 ] && [ "$(cat err)" = "stave: the trace is not complete; to complete it, run: stave recover $PWD/t.pftrace" ] && "$STAVE" recover -q t.pftrace >>err 2>&1 && law t.pftrace 2 && clean t.pftrace
  say $? "a slow writer is not waited for, and recovery is named" "exit $code, $(cat law)"
  # One that has ended, but could not give the file its name.
  sed -i 's/sleep(20);/{ errno = EIO; return -1; }/; 1i #include <errno.h>' slow.c
  ${CC:-cc} -shared -fPIC -o slow.so slow.c && rm -f t.*
  { LD_PRELOAD=$PWD/slow.so STAVE_FULL=block STAVE_OUT=t.pftrace "${with_signals[@]}" "$BUILD/tests/stress/ends" term progress >out 2>err; } 2>shell.log; code=$?
  [ $code = 143 ] && grep -qx "stave: the trace is not complete; to complete it, run: stave recover $PWD/t.pftrace" err && "$STAVE" recover -q t.pftrace >>err 2>&1 && law t.pftrace 2 && clean t.pftrace
  say $? "a writer that fails at the end, and recovery is named" "exit $code, $(cat law)" ;;
esac
