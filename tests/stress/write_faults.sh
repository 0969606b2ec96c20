#!/usr/bin/env bash
# Commands whose system calls and allocations fail, one after the other (fault/fault.c): each write, each rename, … of a run fails once. What
# must hold then: one line and the documented exit code, or the whole result as if nothing had happened; an older file as it was, or the whole new one;
# nothing half-written under its name; and what was to be recovered can still be recovered.
set -uo pipefail
case $BUILD in *tsan | *asan) echo "the sanitizer is between the program and the shim"; exit 77 ;; esac
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR" "$TMP/work"
cd "$TMP/work" || exit 2
${CC:-cc} -std=c17 -O1 -shared -fPIC -o "$TMP/fault.so" "$SRC/tests/stress/fault/fault.c" -ldl || { echo "not ok write_faults: the shim"; exit 1; }
most=2 verbs=convert # calls of one kind that fail in turn
[ -z "${STAVE_LONG:-}" ] || { most=1000000 verbs="convert merge cut"; }

# faulty FAULT COMMAND…: runs it so; was_hit says whether a call did fail
faulty() {
  local fault=$1; shift
  rm -f hit
  FAULT=$fault FAULT_FILE=${FILES:-} FAULT_IN=$STAVE FAULT_HIT=$PWD/hit LD_PRELOAD=$TMP/fault.so timeout 60 "$@" >out 2>err </dev/null
}
# numbers FILE: the events that matter, as text
numbers() { "$STAVE" cat -q "$1" 2>/dev/null | grep -v '^meta\|^snapshot'; }

# judge CODE FILE REFERENCE: why this end is wrong, nothing if it is right. The old file has the one word `old`.
judge() {
  local code=$1 file=$2 reference=$3
  if [ "$code" -ge 124 ]; then echo "exit $code: $(head -c 300 err)"; return; fi
  if [ "$code" = 0 ]; then
    numbers "$file" | cmp -s - "$reference" || { echo "exit 0, but the result is not whole: $(numbers "$file" | diff - "$reference" | head -n 3)"; }
    return
  fi
  case $code in 3 | 4) ;; *) echo "exit $code: $(head -c 300 err)"; return ;; esac
  [ "$(grep -c '^stave ' err)" -ge 1 ] || { echo "exit $code without a word: $(head -c 300 err)"; return; }
  if [ -e "$file" ] && [ "$(head -c 100 "$file" | tr -d '\0')" != old ]; then
    numbers "$file" | cmp -s - "$reference" || echo "exit $code, and under the name is neither the old nor the whole new file"
  fi
}
# in_turn NAME CALL ERRNO FILE REFERENCE COMMAND…: until no call is left that could fail
place_old() { rm -f ./.*.tmp "$1" "$1".*; echo old >"$1"; }
PREPARE=place_old JUDGE=judge AFTER=true
in_turn() {
  local name=$1 call=$2 errno=$3 file=$4 reference=$5 n why bad=0 code; shift 5
  for ((n = 0; n < most; n++)); do
    $PREPARE "$file"
    faulty "$call:$errno:$n:${once-1}" "$@"; code=$?
    [ -e hit ] || break
    why=$($JUDGE $code "$file" "$reference"; $AFTER "$file" "$reference")
    [ -z "$why" ] || { bad=$((bad + 1)); [ $bad -gt 3 ] || echo "not ok write_faults: $name: $call $n ($errno): $why"; }
  done
  TRIED=$((TRIED + n))
  [ $bad = 0 ]
}
# all NAME FILE REFERENCE COMMAND…
all() {
  local name=$1 bad=0 spec calls=${calls:-}; shift
  TRIED=0
  calls=${calls:-"write:28 write:5 pwrite:28 pwritev:28 ftruncate64:5 fallocate64:28 rename:28 renameat2:5 open:24 open:13 fsync:5 linkat:28 unlink:13 read:5 malloc:12"}
  for spec in $calls; do in_turn "$name" "${spec%:*}" "${spec#*:}" "$@" || bad=1; done
  if [ $bad = 0 ] && [ $TRIED -gt 3 ]; then echo "ok write_faults: $name, $TRIED failures"; else echo "not ok write_faults: $name: $TRIED failures tried"; fi
}

STAVE_FULL=block STAVE_OUT=in.pftrace "$BUILD/tests/stress/numbers" 2 300 progress >/dev/null
"$STAVE" convert -q in.pftrace -o in.json
for verb in $verbs; do
  case $verb in convert) command=(convert in.json -o t.pftrace) ;; merge) command=(merge in.pftrace in.json -o t.pftrace) ;; cut) command=(cut --cat seq in.pftrace -o t.json) ;; esac
  output=${command[-1]}
  "$STAVE" "${command[@]:0:${#command[@]}-1}" "whole.${output##*.}" >out 2>err || { echo "not ok write_faults: $verb: $(cat err)"; continue; }
  numbers "whole.${output##*.}" >"reference.$verb"
  all "$verb" "$output" "reference.$verb" "$STAVE" "${command[@]}"
done

# Every reader, without memory and with a broken disk below it.
if [ -n "${STAVE_LONG:-}" ]; then
  for input in "$SRC"/tests/golden/good/*; do
    case $input in *.txt) continue ;; esac
    "$STAVE" convert -q "$input" -o whole.pftrace >out 2>err || continue
    numbers whole.pftrace >reference.reader
    calls="read:5 malloc:12" all "reader of ${input##*/}" t.pftrace reference.reader "$STAVE" convert -q "$input" -o t.pftrace
  done
fi

# What was killed: a copy of it is put back before each try, and recovered after it.
STAVE_FULL=block STAVE_OUT=dead.pftrace "$BUILD/tests/stress/stepper" main 1 "$BUILD/tests/stress/steps" flush progress >out 2>&1 ||
  { echo "skip write_faults: recover and record: cannot trace a process here"; exit 0; }
mkdir kept && cp -a "$STAVE_SESSION_DIR" kept/sessions && cp -a dead.pftrace.* kept/
place_killed() {
  rm -rf ./.*.tmp dead.pftrace dead.pftrace.* "${STAVE_SESSION_DIR:?}"
  cp -a kept/sessions "$STAVE_SESSION_DIR"; cp -a kept/dead.* .
}
recover_again() { # whatever failed, a second try finds all of it
  if [ -e dead.pftrace ] && numbers dead.pftrace | cmp -s - "$2"; then return; fi
  "$STAVE" recover -q dead.pftrace >out 2>err || { echo "and not recovered by a second try: $(cat err)"; return; }
  numbers dead.pftrace | cmp -s - "$2" || echo "and the second try gives $(numbers dead.pftrace | grep -c seq=) of $(grep -c seq= "$2") events"
}
PREPARE=place_killed AFTER=recover_again
place_killed
"$STAVE" recover -q dead.pftrace >out 2>err && numbers dead.pftrace >reference.dead
if [ "$(grep -c seq= reference.dead)" = 30 ]; then all recover dead.pftrace reference.dead "$STAVE" recover dead.pftrace; else echo "not ok write_faults: recover: $(cat err)"; fi

# The recorder, by the events of a program (without the kernel's side): each is in the file, or counted, or recovered afterwards.
place_nothing() { rm -rf ./.*.tmp ./rec.* progress "${STAVE_SESSION_DIR:?}"/*; }
# The command goes on without its recorder: what it records meanwhile is recovered after its end.
recover_ended() {
  for _ in $(seq 600); do
    if "$STAVE" recover -q "$1" >recover.out 2>recover.err; then return; fi
    grep -q 'is still running\|is still writing' recover.err || return 1
    sleep 0.1
  done
  return 1
}
judge_record() {
  local code=$1 file=$2 in lost
  if [ "$code" -ge 124 ]; then echo "exit $code: $(head -c 300 err)"; return; fi
  case $code in 0 | 4) ;; *) echo "exit $code: $(head -c 300 err)"; return ;; esac
  if grep -q "without libstave's events\|^stave: .*; tracing is off$" err; then return; fi # and said so
  if [ -e "$file.part" ] || { [ -e "$file.session" ] && [ ! -e "$file" ] && [ -s progress ]; }; then recover_ended "$file" || { echo "exit $code, recover: $(cat recover.err)"; return; }; fi
  if [ ! -e "$file" ]; then
    if [ "$code" = 0 ] || [ -e "$file.part" ]; then echo "exit $code without a trace: $(head -c 300 err)"; fi
    return
  fi
  "$STAVE" cat -q --strict "$file" >text 2>cat.err || { echo "exit $code, the trace: $(head -n 2 cat.err)"; return; }
  in=$(grep -c seq= text) lost=$(sed -n 's/.* loss .*{\([0-9]*\)}$/\1/p' text | awk '{ s += $1 } END { print s + 0 }')
  [ "$code" != 0 ] || [ "$((in + lost))" -ge 600 ] || echo "exit 0, but $in events and $lost lost of 600"
}
PREPARE=place_nothing JUDGE=judge_record AFTER=true
mkdir -p "$TMP/run"; export XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
record=("$STAVE" record --no-summary --interval 0 --gpu-interval 0 -o rec.pftrace -- "$BUILD/tests/stress/numbers" 1 600 progress)
[ "$(id -u)" != 0 ] || record=(setpriv --bounding-set=-all --inh-caps=-all "${record[@]}")
if "${record[@]}" >out 2>err && [ -s rec.pftrace ]; then FILES=rec.pftrace all record rec.pftrace none "${record[@]}"; else echo "skip write_faults: record: $(head -n 1 err)"; fi
