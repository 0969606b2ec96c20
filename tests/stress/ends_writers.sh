#!/usr/bin/env bash
# The law of loss (ends.sh) for those who write for others and for Python: events in the files + losses in the files = events recorded, by number,
# however the program, the recorder or the listener ends, with full disks, limits of file sizes and memory cgroups at their limits.
. "$SRC/tests/harness/cli.sh"
# Deadly signals end a program as they do without a sanitizer, whose handlers would print and exit.
no_handlers=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:$no_handlers TSAN_OPTIONS=${TSAN_OPTIONS:-}:$no_handlers
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_BUFFER=16k STAVE_STREAM_MS=20000 STAVE_STREAM_FILE=$TMP/rest.unsent.pftrace
mkdir -p "$STAVE_SESSION_DIR"; mkdir -m 700 "$XDG_RUNTIME_DIR"
ends=$BUILD/tests/stress/ends
with_signals=(env "--default-signal=TERM,INT,HUP")
say() { if [ "$1" = 0 ]; then echo "ok ends: $2"; else echo "not ok ends: $2: ${3:-} $(head -n 3 err 2>/dev/null) left: $(echo t.* tiny/*) $(ls "$STAVE_SESSION_DIR")"; fi; }
fresh() { rm -rf t.* rest.* tiny/* progress "${STAVE_SESSION_DIR:?}"/*; }
enough() { until_true '[ "$(od -A n -t u8 -N 8 progress | tr -d " ")" -gt 5000 ]'; }
# law SLACK MORE FILE…: each number once; with the losses as many as were recorded, at most SLACK less and MORE more. MORE of `killed` is for a sender
# or a listener that was killed: what was on its way then, events and counts of lost ones, is with both, so it may be there twice (docs/merge.md).
law() {
  local slack=$1 more=$2 f; shift 2
  for f; do [ "$f" != 'rest*.pftrace' ] || continue; "$STAVE" cat -q "$f" 2>>err || return 1; done >text # it need not be there
  awk -v want="$(od -A n -v -t u8 -N 16 progress | tr -s ' \n' ' ')" -v slack="$slack" -v more="$more" -v empty="${EMPTY:-}" '
    /seq=[0-9]+/ { match($0, /thread=[0-9]+/); t = substr($0, RSTART, RLENGTH); match($0, /seq=[0-9]+/); s = substr($0, RSTART, RLENGTH)
      if (seen[t, s]++) twice++; else n++ }
    / loss / { match($0, /\{[0-9]+\}$/); lost += substr($0, RSTART + 1, RLENGTH - 2) }
    END { split(want, w, " "); want = w[1] + w[2]; if (more == "killed") { is_killed = 1; more = want }; printf "%d in the file (%d of them twice), %d lost, %d recorded\n", n, twice, lost, want
      exit (twice > 0 && !is_killed) || n + lost < want - slack || n + lost > want + more || (n == 0 && !empty) }' text >law
}
# is_late: as in ends.sh, a signal's handler did not wait any longer for the writer, and has named recovery
n_late=0
is_late() { grep -q '^stave: the trace is not complete; to complete it, run: stave recover ' err && n_late=$((n_late + 1)); }
only() { [ "$(echo t.*)" = "$1" ] && [ -z "$(ls "$STAVE_SESSION_DIR")" ]; }
tiny=; mkdir tiny
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=256k stave-test tiny 2>/dev/null; then tiny=tiny; trap 'umount -l "$TMP/tiny"' EXIT; fi

# A memory cgroup of 24 MiB, version 1 or 2, in $group. ThreadSanitizer alone needs more.
group='' limit=$((24 << 20)); [[ $BUILD != *tsan ]] || limit=$((160 << 20))
make_group() {
  local base
  if [ -d /sys/fs/cgroup/memory ]; then base=/sys/fs/cgroup/memory; else base=/sys/fs/cgroup; fi
  group=$base/stave-ends-$$
  mkdir "$group" 2>/dev/null && { echo $limit >"$group/memory.limit_in_bytes" || echo $limit >"$group/memory.max"; } 2>/dev/null || { rmdir "$group" 2>/dev/null; group=; return; }
  { echo 0 >"$group/memory.swap.max" || echo $limit >"$group/memory.memsw.limit_in_bytes" || echo 0 >"$group/memory.swappiness"; } 2>/dev/null # not into the swap instead
  : # a machine without swap has none of them
}
in_group() { bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
[ "$(id -u)" != 0 ] || make_group

{ # bash names what a signal has ended
# ---- the recorder ----
quick=(); [ "$(id -u)" != 0 ] || quick=(setpriv --bounding-set=-all --inh-caps=-all) # without the kernel's side: it takes a moment
record=("${with_signals[@]}" "${quick[@]}" "$STAVE" record -q --no-summary --only sdk)
recorded() { # NAME MODE HOW EXIT LESS MORE [EVENTS]: the command ends
  fresh; STAVE_FULL=$2 "${record[@]}" -o t.pftrace -- "$ends" "$3" progress ${7:+"$7"} >out 2>err; local code=$?
  [ $code = "$4" ] && law "$5" "$6" t.pftrace && only t.pftrace; say $? "recorder: $1, $2" "exit $code, $(cat law)"
}
begin_recorder() { fresh; STAVE_FULL=$1 "${record[@]}" -o t.pftrace -- "$ends" wait progress >out 2>err & recorder=$!; enough; program=$(pgrep -P $recorder -x ends); }
for mode in drop block; do
  recorded "a normal end" $mode return 0 0 0 10000
  recorded "exit()" $mode exit 5 0 0 10000
  recorded "_exit()" $mode quit 0 0 0 10000
  recorded "abort()" $mode sudden 134 0 0 10000
  recorded "SIGTERM" $mode term 143 0 2
  recorded "SIGSEGV" $mode signal:11 139 0 2
  recorded "SIGKILL" $mode kill 137 0 2
  for sig in TERM INT HUP; do
    begin_recorder $mode; kill -$sig $recorder; wait $recorder; code=$?
    [ $code = $((128 + $(kill -l $sig))) ] && law 0 2 t.pftrace && only t.pftrace; say $? "recorder: SIG$sig to it, $mode" "exit $code, $(cat law)"
  done
  begin_recorder $mode; kill -9 $recorder; wait $recorder; code=$?; sleep 0.3; kill -9 "$program"; until_true '! kill -0 $program'
  [ $code = 137 ] && "$STAVE" recover -q t.pftrace >>err 2>&1 && law 0 2 t.pftrace && only t.pftrace; say $? "recorder: SIGKILL to it and recovered, $mode" "exit $code, $(cat law)"
  if [[ $BUILD = *tsan ]]; then skip "ends: recorder: a limit of file sizes, $mode" "ThreadSanitizer has a part of its memory in a file, which the limit cuts"; else
    fresh; (ulimit -f 150; STAVE_BUFFER=1M STAVE_FULL=$mode "${record[@]}" -o t.pftrace -- "$ends" return progress 60000 >out 2>err); code=$?
    [ $code = 4 ] && law 0 0 t.pftrace && only t.pftrace; say $? "recorder: a limit of file sizes, $mode" "exit $code, $(cat law)"
  fi
  if [ "$tiny" ]; then
    fresh; STAVE_BUFFER=1M STAVE_FULL=$mode "${record[@]}" -o tiny/t.pftrace -- "$ends" return progress 60000 >out 2>err; code=$?
    [ $code = 4 ] && law 0 0 tiny/t.pftrace && [ "$(ls tiny)" = t.pftrace ]; say $? "recorder: a full disk, $mode" "exit $code, $(cat law)"
  fi
  if [ "$group" ]; then
    fresh; STAVE_FULL=$mode in_group "${record[@]}" -o t.pftrace -- "$ends" hog progress >out 2>err; code=$?
    [ $code = 137 ] && { [ -e t.pftrace ] || "$STAVE" recover -q t.pftrace >>err 2>&1; } && law 0 2 t.pftrace && only t.pftrace; say $? "recorder: a memory cgroup at its limit, $mode" "exit $code, $(cat law)"
  fi
done

# ---- the listener ----
listen() { rm -f err.l; "$STAVE" listen "unix:$TMP/s" -o "$@" >out.l 2>err.l & listener=$!; until_true 'grep -q listening err.l'; }
rest() { if [ "$(ls "$STAVE_SESSION_DIR")" ]; then "$STAVE" recover -q "$STAVE_SESSION_DIR"/* -o rest.pftrace >>err 2>&1; fi; } # what a sender still had
sent() { # NAME MODE HOW EXIT LESS MORE [EVENTS]
  fresh; listen t.pftrace --senders 1
  STAVE_FULL=$2 STAVE_OUT=unix:$TMP/s "${with_signals[@]}" "$ends" "$3" progress ${7:+"$7"} >out 2>err; local code=$?
  wait $listener; local listened=$? more=$6; rest
  if [ "$3" = term ] && is_late; then more=killed; fi
  [ $code = "$4" ] && [ $listened = 0 ] && law "$5" "$more" t.pftrace rest*.pftrace && only t.pftrace; say $? "listener: $1, $2" "exit $code and $listened, $(cat law)"
}
begin_sender() { STAVE_FULL=$1 STAVE_OUT=unix:$TMP/s "${with_signals[@]}" "$ends" wait progress >out 2>err & sender=$!; enough; }
# Rings that hold more than there is space for, so that it ends whatever they drop. The first frame may be too large already (EMPTY).
for mode in drop block; do
  sent "a normal end" $mode return 0 0 0 10000
  sent "exit()" $mode exit 5 0 0 10000
  sent "SIGTERM" $mode term 143 2 2
  sent "_exit()" $mode quit 0 0 killed 10000
  sent "SIGSEGV" $mode signal:11 139 0 killed
  sent "SIGKILL" $mode kill 137 0 killed
  for sig in TERM KILL; do # what the listener did not take is in the sender's file and rings; the program goes on, until it is killed
    fresh; listen t.pftrace; begin_sender $mode
    kill -$sig $listener; wait $listener; code=$?; until_true '[ -s err ] && [ -s rest.unsent.pftrace ]'
    kill -9 $sender; wait $sender
    [ -e t.pftrace ] || "$STAVE" recover -q t.pftrace >>err 2>&1
    rest; grep -q "events go to" err && law 2 killed t.pftrace rest.unsent.pftrace rest.pftrace && only t.pftrace; say $? "listener: SIG$sig to it, $mode" "exit $code, $(cat law)"
  done
  fresh; rm -f err.l; (ulimit -f 150; exec "$STAVE" listen "unix:$TMP/s" -o t.pftrace --senders 1 >out.l 2>err.l) & listener=$!; until_true 'grep -q listening err.l'
  STAVE_BUFFER=1M STAVE_FULL=$mode STAVE_OUT=unix:$TMP/s "$ends" return progress 60000 >out 2>err; code=$?; wait $listener; listened=$?
  [ $code = 0 ] && [ $listened = 4 ] && grep -q 'file size limit' err.l && EMPTY=1 law 0 0 t.pftrace && only t.pftrace; say $? "listener: a limit of file sizes, $mode" "exit $code and $listened, $(cat law err.l)"
  if [ "$tiny" ]; then
    fresh; listen tiny/t.pftrace --senders 1
    STAVE_BUFFER=1M STAVE_FULL=$mode STAVE_OUT=unix:$TMP/s "$ends" return progress 60000 >out 2>err; code=$?; wait $listener; listened=$?
    mount -o remount,size=64m tiny; [ -e tiny/t.pftrace ] || "$STAVE" recover -q tiny/t.pftrace >>err 2>&1
    [ $code = 0 ] && [ $listened = 4 ] && EMPTY=1 law 0 0 tiny/t.pftrace && [ "$(ls tiny)" = t.pftrace ]; say $? "listener: a full disk, $mode" "exit $code and $listened, $(cat law)"
    fresh; mount -o remount,size=256k tiny
  fi
  if [ "$group" ]; then # it may be ended when it merges: then its spool is there
    fresh; rm -f err.l; in_group "$STAVE" listen "unix:$TMP/s" -o t.pftrace --senders 1 >out.l 2>err.l & listener=$!; until_true 'grep -q listening err.l'
    STAVE_FULL=$mode STAVE_OUT=unix:$TMP/s "$ends" return progress 100000 >out 2>err; code=$?; wait $listener; listened=$?
    [ $listened = 0 ] || "$STAVE" recover -q t.pftrace >>err 2>&1
    [ $code = 0 ] && law 0 0 t.pftrace && only t.pftrace; say $? "listener: a memory cgroup at its limit, $mode" "exit $code and $listened, $(cat law)"
    fresh; listen t.pftrace --senders 1
    STAVE_FULL=$mode STAVE_OUT=unix:$TMP/s in_group "$ends" hog progress >out 2>err; code=$?; wait $listener; listened=$?; rest
    [ $code = 137 ] && [ $listened = 0 ] && law 0 killed t.pftrace rest*.pftrace && only t.pftrace; say $? "listener: a sender in a memory cgroup at its limit, $mode" "exit $code and $listened, $(cat law)"
  fi
done

# ---- the program alone, in a memory cgroup ----
if [ "$group" ]; then
  for mode in drop block overwrite; do
    fresh; STAVE_FULL=$mode STAVE_OUT=t.pftrace in_group "$ends" hog progress >out 2>err; code=$?
    [ $code = 137 ] && "$STAVE" recover -q t.pftrace >>err 2>&1 && law 0 2 t.pftrace && only t.pftrace; say $? "program: a memory cgroup at its limit, $mode" "exit $code, $(cat law)"
  done
fi

# ---- Python ----
python=$(cat "$BUILD/python/interpreter" 2>/dev/null)
if [ "$python" ] && [[ $BUILD != *asan && $BUILD != *tsan ]]; then
  export PYTHONPATH=$BUILD/python PYTHONDONTWRITEBYTECODE=1
  program=("$python" "$SRC/tests/stress/ends.py")
  alone() { # NAME MODE HOW EXIT LESS MORE [EVENTS]: without recovery, nothing is left but the file
    fresh; STAVE_FULL=$2 STAVE_OUT=${OUT:-t.pftrace} "${with_signals[@]}" "${program[@]}" "$3" progress ${7:+"$7"} >out 2>err; local code=$?
    case $3 in signal:*) if is_late && [ ! -e t.pftrace ]; then "$STAVE" recover -q t.pftrace >>err 2>&1; fi ;; esac
    [ $code = "$4" ] && law "$5" "$6" t.pftrace && only t.pftrace; say $? "Python: $1, ${2:-by default}" "exit $code, $(cat law)"
  }
  again() { # the same, with recovery
    fresh; STAVE_FULL=$2 STAVE_OUT=t.pftrace "${with_signals[@]}" "${GROUP[@]}" "${program[@]}" "$3" progress ${7:+"$7"} >out 2>err; local code=$?
    [ $code = "$4" ] && [ ! -e t.pftrace ] && "$STAVE" recover -q t.pftrace >>err 2>&1 && law "$5" "$6" t.pftrace && only t.pftrace; say $? "Python: $1 and recovered, ${2:-by default}" "exit $code, $(cat law)"
  }
  GROUP=()
  for mode in "" drop; do
    alone "a normal end" "$mode" return 0 0 0 20000
    [ "$mode" ] || { [ "$(grep -c seq= text)" = 20000 ]; say $? "Python: nothing is lost by default" "$(cat law)"; }
    alone "sys.exit()" "$mode" exit 5 0 0 20000
    alone "an exception" "$mode" raise 1 0 0 20000
    alone "os._exit()" "$mode" quit 0 0 0 20000
    alone "SIGTERM" "$mode" signal:15 143 1 1
    alone "SIGTERM with a handler of its own" "$mode" handler 7 1 1
    alone "SIGINT" "$mode" signal:2 130 1 1
    alone "SIGHUP" "$mode" signal:1 129 1 1
    again "os.abort()" "$mode" abort 134 0 0 20000
    again "SIGKILL" "$mode" signal:9 137 0 1
    again "SIGSEGV" "$mode" signal:11 139 0 1
    fresh; (ulimit -f 150; STAVE_FULL=$mode STAVE_OUT=t.pftrace "${program[@]}" return progress 20000 >out 2>err); code=$?
    [ $code = 0 ] && law 0 0 t.pftrace && only t.pftrace && [ "$(wc -l <err)" = 1 ]; say $? "Python: a limit of file sizes, ${mode:-by default}" "exit $code, $(cat law)"
    if [ "$tiny" ]; then
      fresh; STAVE_FULL=$mode STAVE_OUT=tiny/t.pftrace "${program[@]}" return progress 20000 >out 2>err; code=$?
      [ $code = 0 ] && law 0 0 tiny/t.pftrace && [ "$(ls tiny)" = t.pftrace ] && [ "$(wc -l <err)" = 1 ]; say $? "Python: a full disk, ${mode:-by default}" "exit $code, $(cat law)"
    fi
    if [ "$group" ]; then GROUP=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group"); again "a memory cgroup at its limit" "$mode" hog 137 0 1; GROUP=(); fi
  done
else
  echo "skip ends: Python: the package is not built, or cannot be loaded beside a sanitizer"
fi
} 2>shell.log
[ $n_late -le 2 ]; say $? "the writers end in time after a signal" "$n_late of 8 times they did not"
[ "$tiny" ] || echo "skip ends: full disks: needs to mount one"
if [ "$group" ]; then fresh; until_true 'rmdir "$group"' || rmdir "$group"; else echo "skip ends: memory cgroups: cannot make one here"; fi
no_errors() { ! grep -E '^[^ ]*\.sh: line [0-9]+: [^0-9 ]' shell.log; }
no_errors; say $? "the script itself is in order" "$(grep -E ': line [0-9]+: [^0-9 ]' shell.log | head -n 3)"
