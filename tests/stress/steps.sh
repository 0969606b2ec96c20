#!/usr/bin/env bash
# SIGKILL after a chosen instruction: of recording one event, of a new call place, of the writer's commit (steps.c, stepper.c). What had been
# recorded is in the recovered trace once, the event at hand is there whole or not at all, and nothing else is.
#
# Kills come where a file of the session changes; in the long tests also one instruction before and after that, after every instruction of
# the short paths, and in the writer.
set -uo pipefail
case $BUILD in *asan | *tsan) echo "instrumented code has too many instructions"; exit 77 ;; esac
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR" "$TMP/work"
cd "$TMP/work" || exit 2
step() { STAVE_OUT=t.pftrace timeout 120 "$BUILD/tests/stress/stepper" "$1" "$2" "$BUILD/tests/stress/steps" "$3" progress; }
clear_up() { rm -rf ./t.* progress "${STAVE_SESSION_DIR:?}"/*; }
if ! step main 1 instant >out 2>err; then echo "cannot trace a process here: $(cat err)"; exit 77; fi

# Words of PROGRESS: instants, begins, ends, counters, start.
cat >check.awk <<'SCRIPT'
function short(what, have, done) { if (have < done || have > done + 1) { printf "%d %s, %d were recorded\n", have, what, done; bad = 1 } }
/^[0-9]+\.[0-9]+ / {
  if ($1 + 0.01 < start / 1e9 || $1 > now + 0.02) { printf "a time outside of the run: %s\n", $1; exit bad = 1 }
  if ($2 == "instant" && match($0, /seq=[0-9]+/)) {
    seq = substr($0, RSTART + 4, RLENGTH - 4)
    if (seq + 0 != instants + 0) { printf "%d where %d was due\n", seq, instants; bad = 1 }
    instants++
  }
  if ($2 == "begin") begins++
  if ($2 == "end") ends++
  if ($2 == "counter") counters++
}
/^[0-9.]+ loss / { print "a loss: " $0; bad = 1 }
END { if (!bad) { short("instants", instants, want_i); short("begins", begins, want_b); short("ends", ends, want_e); short("counters", counters, want_c) } exit bad }
SCRIPT
# attempt THREAD K KIND: prints why it is wrong
attempt() {
  clear_up
  step "$1" "$2" "$3" >out 2>&1 || { echo "stepper: $(cat out)"; return; }
  read -r i b e c s < <(od -A n -t u8 -N 40 progress | tr '\n' ' ')
  if [ -e t.pftrace.session ] || [ ! -e t.pftrace ]; then "$STAVE" recover -q t.pftrace >recover.log 2>&1 || { echo "recover: $(cat recover.log)"; return; }; fi
  "$STAVE" cat -q --strict t.pftrace >text 2>cat.log || { echo "the trace: $(cat cat.log)"; return; }
  awk -v want_i="$i" -v want_b="$b" -v want_e="$e" -v want_c="$c" -v start="$s" -v now="$(cut -d ' ' -f 1 /proc/uptime)" -f check.awk text
}
# series THREAD KIND K…: kills at each of them
series() {
  local thread=$1 kind=$2 why bad=0 n=0 k; shift 2
  for k; do
    why=$(attempt "$thread" "$k" "$kind")
    n=$((n + 1))
    [ -z "$why" ] || { bad=$((bad + 1)); [ $bad -gt 5 ] || echo "not ok steps: $kind, killed after $k instructions: $why"; }
  done
  if [ $bad = 0 ] && [ $n -gt 2 ]; then echo "ok steps: $kind, $n kills"; else echo "not ok steps: $kind: $bad of $n kills"; fi
}
# changes THREAD KIND FILES: the moments at which a kill leaves something else
changes() { clear_up; step "scout-$1" "$3" "$2" | awk '$2 == ""'; }
around() { awk '{ print $1 - 1; print $1; print $1 + 1 }' | sort -nu; }
of_thread="$STAVE_SESSION_DIR/*/{names,ring.0}"
if [ -z "${STAVE_LONG:-}" ]; then
  # shellcheck disable=SC2046 # numbers
  for kind in begin text site; do series main $kind 0 $(changes main $kind "$of_thread"); done
  exit 0
fi
# shellcheck disable=SC2046 # numbers
for kind in instant begin end text counter list site; do
  clear_up
  last=$(step main 100000000 $kind | awk '{ print $1 }')
  case $kind in list | site) stride=5 ;; *) stride=1 ;; esac
  series main $kind $(seq 0 $stride "$last") $(changes main $kind "$of_thread" | around)
done
# shellcheck disable=SC2046 # numbers
for kind in flush stop; do series writer $kind $(changes writer $kind "{$STAVE_SESSION_DIR/*/{session,names,ring.0},t.pftrace.part,t.pftrace.session,t.pftrace}" | around); done
