#!/usr/bin/env bash
# Forked children trace into their parent's session, or into files of their own; collectors take many processes. Whatever ends
# first and however: every recorded event is in exactly one trace.
set -uo pipefail
case $BUILD in *tsan) echo "ThreadSanitizer does not support threads after fork"; exit 77 ;; esac
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
family=$BUILD/tests/stress/family
say() { if [ "$1" = 0 ]; then echo "ok family: $2"; else echo "not ok family: $2: ${3:-} $(head -n 5 check err 2>/dev/null | tr '\n' ' ')"; fi; }
# whole FILE…: the numbers of all processes, over these files in this order, without a gap, as far as was recorded
whole() {
  local want f
  want=$(od -A n -v -t u8 -N 4080 progress | tr '\n' ' ')
  for f; do "$STAVE" cat -q "$f" || echo "cannot read $f"; done 2>&1 |
    awk -v want="$want" -f "$SRC/tests/stress/check_numbers.awk" >check
}
# The heap of GCC 12's AddressSanitizer does not survive a fork beside a thread that allocates: such a child waits for ever, whoever it is.
tries=1 limit=100
case $BUILD in *asan) tries=5 limit=20 ;; esac
run() {
  local i code=0
  for ((i = 0; i < tries; i++)); do
    rm -rf t.* again.* "${STAVE_SESSION_DIR:?}"/*
    STAVE_OUT=${OUT:-t.pftrace} timeout $limit "$family" "$1" progress >out 2>err
    code=$?
    [ $code = 124 ] || break
  done
  return $code
}
quiet() { sed -i '/was not suspended/d' err; [ ! -s err ]; } # LeakSanitizer, in forked children
nothing_left() { [ -z "$(find "$STAVE_SESSION_DIR" -mindepth 1)" ] && ! ls t.*.part t.*.session >/dev/null 2>&1; }
# counted FILE N: its program has recorded so many; busy machines need their time
counted() { local i; for ((i = 0; i < 1200; i++)); do [ "$(od -A n -t u8 -N 8 "$1" 2>/dev/null | tr -d ' ')0" -gt "${2}0" ] && return 0; sleep 0.05; done; return 1; }
gone() { local i; for ((i = 0; i < 300; i++)); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.1; done; return 1; }

for scene in workers killed generations threads control finished; do
  run $scene && quiet && whole t.pftrace && [ "$(echo t.*)" = t.pftrace ] && nothing_left
  say $? "$scene: all of it in the parent's file"
done
STAVE_BUFFER=16k run threads && quiet && whole t.pftrace; say $? "threads with small rings: children wait for space"
[ "$("$STAVE" cat -q t.pftrace | grep -c 'kind=process\|process.*pid=')" -ge 0 ] && [ "$("$STAVE" cat -q t.pftrace | grep -o 'pid=[0-9]*' | sort -u | wc -l)" = 3 ]
say $? "three processes in it"

# Times: each event lies between the clock readings around it, also those from before the collector met its client. A microsecond for the lines.
true_times() {
  "$STAVE" cat -q "$1" | awk '/"t"/ && match($0, /who=[0-9]+/) {
      who = substr($0, RSTART + 4, RLENGTH - 4); match($0, /before=[0-9]+/); before = substr($0, RSTART + 7, RLENGTH - 7); split($1, t, ".")
      ts = t[1] * 1000000000 + t[2]; n[who]++
      if (ts < before - 1000 || last[who] > before + 1000) { bad++; if (bad < 4) printf "%.0f is recorded for what came after %.0f; the event before it at %.0f\n", ts, before, last[who] }
      last[who] = ts }
    END { for (i = 0; i < 2; i++) if (n[i] < 2) { print "process " i " recorded nothing"; bad++ } exit bad > 0 }' >check
}
run times && true_times t.pftrace; say $? "times are true from the first event on, also a child's"

# The parent ends first.
run orphan; pid=$(sed -n 's/^orphan //p' out); gone "$pid"
whole t.pftrace "t.$pid.pftrace" && quiet && nothing_left; say $? "a child that outlives its parent has a file for the rest"
run orphan_quits; pid=$(sed -n 's/^orphan //p' out); gone "$pid"
"$STAVE" recover -q "t.$pid.pftrace" >>err 2>&1 && whole t.pftrace "t.$pid.pftrace" && quiet && nothing_left
say $? "one that then ends by _exit is recovered"
run orphan_killed 2>/dev/null; pid=$(sed -n 's/^orphan //p' out); gone "$pid"
"$STAVE" recover -q t.pftrace >>err 2>&1 && whole t.pftrace "t.$pid.pftrace" && quiet && nothing_left
say $? "a parent that is killed, and a child that goes on"
rm -rf t.*
STAVE_OUT=t.pftrace setsid "$family" all_killed progress >out 2>err & parent=$!
for _ in $(seq 600); do grep -qs child out && [ "$(od -A n -t u8 -j 8 -N 8 progress | tr -d ' ')" = 1000 ] && break; sleep 0.1; done
sleep 0.2
"$STAVE" recover t.pftrace >busy 2>&1; code=$?
[ $code != 0 ] && grep -q "process $parent is still writing it" busy; say $? "recover leaves running programs alone" "$(cat busy)"
child=$(sed -n 's/^child //p' out)
{ kill -9 "$parent"; wait "$parent"; } 2>/dev/null
"$STAVE" recover t.pftrace >busy 2>&1; code=$?
[ $code != 0 ] && grep -q "process $child, which traces into it, is still running" busy; say $? "and those of their children" "$(cat busy)"
"$STAVE" recover >list 2>&1; grep -q "another process of it is running" list && "$STAVE" recover --clean --yes --discard t.pftrace >>list 2>&1 && [ -e t.pftrace.session ]; say $? "clean removes nothing that runs" "$(cat list)"
kill -9 "$child"; gone "$child"
"$STAVE" recover -q t.pftrace >err 2>&1 && whole t.pftrace && nothing_left; say $? "all killed: one recovery has all"
run restart; pid=$(sed -n 's/^orphan //p' out)
whole t.pftrace "t.$pid.pftrace" && quiet && nothing_left && [ "$("$STAVE" cat -q again.pftrace | grep -c again)" = 1 ]; say $? "the parent stops and starts again"
run disk_full; code=$?
[ $code = 0 ] && grep -q 'went on, lost some' out && [ "$(grep -c stave: err)" = 1 ]; say $? "when the parent cannot write, its children go on untraced" "exit $code $(cat out)"
rm -rf "$STAVE_SESSION_DIR" && mkdir "$STAVE_SESSION_DIR"

# Files of their own.
OUT=t.%p.pftrace run generations && quiet && [ "$(ls t.*.pftrace | wc -l)" = 6 ] && whole t.*.pftrace && nothing_left
say $? "%p: a file for each process"

# Collectors.
start_collector() {
  rm -rf s t.* col progress # also what the one before has said
  "$BUILD/tests/stress/collector" s "$1" >col 2>err & collector=$!
  for _ in $(seq 600); do grep -qs ready col && return; sleep 0.05; done
}
start_collector t.pftrace
pids=()
# The one without an end first: a collector ends when all that came have gone.
STAVE_SESSION=$PWD/s "$BUILD/tests/stress/numbers" 1 0 p.5 >out.5 2>>err & victim=$!
counted p.5 1000
for i in 1 2 3 4; do STAVE_SESSION=$PWD/s "$BUILD/tests/stress/numbers" 2 20000 "p.$i" >"out.$i" 2>>err & pids+=($!); done
[ "$(ls "/proc/$victim/task" | wc -l)" -le 2 ]; say $? "under a collector a process has no thread of ours"
wait "${pids[@]}"; { kill -9 $victim; wait $victim; } 2>/dev/null
want=$(od -A n -t u8 -N 8 p.5 | tr -d ' ')
wait $collector; code=$?
[ $code = 0 ] && grep -q '^5 processes' col && ! grep -q finding col && [ "$("$STAVE" cat -q t.pftrace | grep -c seq=)" -ge $((160000 + want)) ] && [ ! -s err ] && [ ! -e s ]
say $? "a collector takes five processes, one of them killed" "exit $code $(cat col) wanted $want"
"$STAVE" cat -q t.pftrace | awk '/seq=/ && match($0, /thread=[0-9]+/) { k = $3 " " substr($0, RSTART, RLENGTH); match($0, /seq=[0-9]+/); s = substr($0, RSTART + 4, RLENGTH - 4); if (s != n[k] + 0) bad++; n[k] = s + 1 } END { exit bad > 0 }'
say $? "each in order, without a gap"
start_collector t.pftrace
STAVE_SESSION=$PWD/s "$family" workers progress >out 2>>err; wait $collector
whole t.pftrace && grep -q '^41 processes' col && [ ! -e s ]; say $? "and their forked children" "$(cat col)"
start_collector t.pftrace
STAVE_SESSION=$PWD/s "$family" times progress >out 2>>err; wait $collector
true_times t.pftrace; say $? "times are true from the first event on, under a collector"
start_collector t.pftrace
STAVE_SESSION=$PWD/s "$BUILD/tests/stress/numbers" 1 0 progress >out 2>err & program=$!
counted progress 1000; cp progress p; { kill -9 $collector; wait $collector; } 2>/dev/null
for _ in $(seq 1200); do [ -s err ] && break; sleep 0.05; done
{ kill -9 $program; wait $program; } 2>/dev/null
[ "$(cat err)" = "stave: the collector has exited; 'stave recover' finds the events that the rings hold" ]; say $? "a killed collector: one line"
"$STAVE" recover -q s >err 2>&1 && cp p progress && whole t.pftrace && [ ! -e s ]; say $? "a killed collector loses nothing: recover" "$(ls)"
start_collector t.pftrace
STAVE_SESSION=$PWD/s "$BUILD/tests/stress/numbers" 1 10000000 progress >out 2>err & program=$!
counted progress 1000; kill $collector; wait $collector; wait $program; code=$?
[ $code = 0 ] && [ ! -e s ] && [ "$("$STAVE" cat -q t.pftrace | grep -c seq=)" -gt 0 ]; say $? "a collector that ends leaves programs running" "exit $code"
STAVE_SESSION=$PWD/nowhere "$BUILD/tests/stress/numbers" 1 100 progress >out 2>err; code=$?
[ $code = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'STAVE_SESSION=.*no collector runs there' err; say $? "no collector: one line, and the program runs"
