#!/usr/bin/env bash
# stave listen among strangers, and the law of its trace: what a sender sent is in OUT or counted in OUT, whoever is killed and wherever space ends.
# shellcheck disable=SC2016,SC2034 # words for eval
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
numbers=$BUILD/tests/stress/numbers senders=$SRC/tests/stress/senders.py
check() { if eval "$2"; then echo "ok listen: $1"; else echo "not ok listen: $1: $(head -n 6 out err err.l why 2>/dev/null)"; fi; }
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

# listen OUT OPTION…: a listener on $TMP/s, its pid in $listener.
listen() { rm -f err.l; "$STAVE" listen "unix:$TMP/s" -o "$@" >out.l 2>err.l & listener=$!; until_true 'grep -q "listening" err.l'; }
hostile() { timeout 600 python3 "$senders" "unix:$TMP/s" "$@" >out 2>err; }
passed() { grep -qx "$1" out; }
finish() { kill "$listener" 2>/dev/null; wait "$listener"; code=$?; }

# ---- strangers ----

listen strangers.pftrace
timeout 600 python3 "$senders" "unix:$TMP/s" silent:300 >out.silent 2>err.silent & silent=$! # its last ones wait for the deadline
hostile wrong:1100 endless every_byte:word huge deaf at_once:300
check "1,100 wrong greetings keep nobody out" 'passed wrong'
check "a greeting without an end" 'passed endless'
check "gone after each byte of the greeting" 'passed every_byte'
check "frames that cannot be" 'passed huge'
check "one that reads no answer" 'passed deaf'
check "300 senders at once" 'passed at_once'
wait $silent; silent=$?
check "300 that say nothing: others are served, and they are closed" '[ $silent = 0 ] || { cat err.silent; false; }'
check "few descriptors are left open" 'until_true "[ \$(ls /proc/$listener/fd | wc -l) -lt 12 ]"' # when it has seen that they went
finish
check "and it ends well" '[ $code = 0 ] && [ -s strangers.pftrace ] && [ ! -e strangers.pftrace.part ] && [ ! -e strangers.pftrace.session ]'

listen token.pftrace --token "correct horse"
check "the whole token, nothing else" 'hostile "prefixes:correct horse"'
finish
rm -f err.l; (ulimit -n 400; exec "$STAVE" listen "unix:$TMP/s" -o few.pftrace >out.l 2>err.l) & listener=$!; until_true 'grep -q listening err.l'
check "senders beyond the limit are refused with a message" 'hostile beyond:112'
finish

if (ulimit -n 4096) 2>/dev/null; then
  rm -f err.l; (ulimit -n 4096; exec "$STAVE" listen "unix:$TMP/s" -o many.pftrace >out.l 2>err.l) & listener=$!; until_true 'grep -q listening err.l'
  check "2,000 senders at once with 4,096 descriptors, one each" '(ulimit -n 4096; hostile "many:2000,$listener")'
  finish
  check "streams without events make no files of their own" '[ $code = 0 ] && [ "$(echo many*)" = many.pftrace ]'
else
  echo "skip listen: 2,000 senders: the limit of open files is below 4,096"
fi

# ---- one claim, one address ----

listen first.pftrace
"$STAVE" listen "unix:$TMP/s" -o second.pftrace >out 2>err; code=$?
check "an address in use is found before a file is made" '[ $code = 4 ] && grep -q "another listener" err && [ -z "$(ls second.* 2>/dev/null)" ]'
"$STAVE" listen "unix:$TMP/other" -o first.pftrace >out 2>err; code=$?
check "a second listener on one file is refused" '[ $code = 4 ] && grep -q "process $listener" err && [ ! -e "$TMP/other" ]'
"$STAVE" listen "unix:$TMP/other" -o x.doc >out 2>err; code=$?
check "a name without a format is refused at once" '[ $code = 2 ] && [ -z "$(ls x.doc* 2>/dev/null)" ]'
finish

# ---- two machines of one name ----

for i in 1 2; do
  cat >m$i.txt <<END
# stave text 1
clock boottime
snapshot boottime=${i}000 realtime=1700000000000000000 uncertainty=20
meta "hostname" "node"
meta "boot_id" "0000000$i-0000-4000-8000-000000000000"
track #1 process uuid=0x1 pid=10 name="python"
track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"
1.000000000 slice #2 "from machine $i" dur=0.000000007
END
  "$STAVE" convert -q m$i.txt -o m$i.pftrace
done
listen machines.pftrace --senders 2
check "streams of two machines with one name" 'hostile send_file:m1.pftrace,1 send_file:m2.pftrace,1 && wait $listener'
check "are not fused" '[ "$("$STAVE" cat -q machines.pftrace | grep -c " process .*pid=10")" = 2 ]'

# A machine whose clock nothing relates to the others is not put among them.
grep -v '^snapshot' m2.txt | sed 's/machine 2/an island/; s/00000002/00000003/' >island.txt; "$STAVE" convert -q island.txt -o island.pftrace
listen islands.pftrace --senders 3
check "a stream without a relation" 'hostile send_file:m1.pftrace,1 send_file:island.pftrace,1 send_file:m2.pftrace,1 && wait $listener'
slices() { "$STAVE" query -q "$1" "select name from slice order by name" | tail -n +2 | paste -sd ,; }
check "goes to a file of its own" '[ "$(slices islands.pftrace)" = "from machine 1,from machine 2" ] && [ "$(slices islands.2.pftrace)" = "from an island" ] && grep -q "islands.2.pftrace" err.l'

scenes=()
for i in $(seq 10 29); do sed "s/00000003/000000$i/" island.txt >"i$i.txt"; "$STAVE" convert -q "i$i.txt" -o "i$i.pftrace"; scenes+=("send_file:i$i.pftrace,1"); done
listen crowd.pftrace --senders 20
check "twenty such streams make no more than sixteen files" 'hostile "${scenes[@]}" && wait $listener && [ "$(ls crowd* | wc -l)" = 16 ] && [ "$(for f in crowd*; do slices $f | tr , "\n"; done | grep -c island)" = 20 ]'

# ---- the law ----

# text FILE…: what is in them, as text, in FILE.txt. kept FILE: slices and instants in it. lost FILE: what its losses count.
text() { for f; do "$STAVE" cat -q "$f" >"$f.txt" 2>"$f.err" || return 1; done; } # parts have begins whose ends are in the next one
kept() { grep -cE ' (slice|begin|instant) ' "$1.txt"; }
lost() { grep ' loss ' "$1.txt" | sed -E 's/.*\{([0-9]+).*/\1/' | awk '{ n += $1 } END { print n + 0 }'; }
# no_gap FILE…: the numbers of each thread, of all files together, are 0, 1, 2 … without a gap.
no_gap() {
  for f; do grep -oE 'thread=[0-9]+ seq=[0-9]+' "$f.txt" || true; done | tr '=' ' ' | sort -k2,2n -k4,4n -u |
    awk '$4 != next_of[$2] + 0 { print "thread " $2 ": " $4 " where " next_of[$2] + 0 " was due"; bad = 1; exit 1 } { next_of[$2] = $4 + 1 } END { exit bad }' >why
}
# unsent.pftrace: what it has recorded while there was no listener. A busy machine is no listener that went away: it is waited for long.
send() { rm -f unsent.pftrace; STAVE_STREAM_FILE=$TMP/unsent.pftrace STAVE_BUFFER=64k STAVE_STREAM_MS=30000 STAVE_OUT=unix:$TMP/s "$numbers" 2 "$1" progress >out 2>err; }
saved() { rm -f rest.pftrace; "$STAVE" recover "$STAVE_SESSION_DIR"/* -o rest.pftrace >out 2>err && text rest.pftrace; } # what a sender still had
total=$((2 * 16000 + 2 * 16000 / 8))

listen cut.pftrace --senders 1
check "a connection that breaks in a frame" 'hostile cut:m1.pftrace,1 && wait $listener'
text cut.pftrace
check "what came stays, what is missing is counted" '[ "$(kept cut.pftrace)" = 1 ] && [ "$(lost cut.pftrace)" = 77 ] && grep -q "stream cut" cut.pftrace.txt'

listen all.pftrace --senders 1
send 16000; wait $listener; code=$?
text all.pftrace
check "a normal end" '[ $code = 0 ] && [ "$(kept all.pftrace)" = $total ] && [ "$(lost all.pftrace)" = 0 ] && no_gap all.pftrace'

listen little.pftrace --senders 1 --spool-limit 256K
send 16000; wait $listener; code=$?
text little.pftrace
check "a spool that has its size" '[ $code = 0 ] && [ "$(lost little.pftrace)" -gt 0 ] && [ $(($(kept little.pftrace) + $(lost little.pftrace))) = $total ] && no_gap little.pftrace'
check "says so" 'grep -q "spool-limit" err.l && grep -q "spool limit" little.pftrace.txt'

# Without a listener at the start: the events are in the file, of forked children, too; or in the file and with the listener that came later.
# late DIRECTORY ADDRESS PROGRAM ARGUMENT…: in a directory of its own, with the file's usual name; and once more without tracing
late() {
  rm -rf "$1" "${STAVE_SESSION_DIR:?}"/*; mkdir "$1" "$1/plain"
  (cd "$1/plain" && "${@:3}") >"$1/plain.out" 2>"$1/plain.err"; plain=$?
  (cd "$1" && STAVE_OUT=$2 exec "${@:3}") >"$1/out" 2>err; code=$?
  mv "$1"/stave-unsent.*.pftrace unsent.pftrace && text unsent.pftrace
}
as_untraced() { [ $code = $plain ] && cmp "$1/plain.out" "$1/out"; }
said() { [ "$(wc -l <err)" = 1 ] && grep -q "^stave: $1: cannot reach the listener: .*; until a listener is there events go to $TMP/$2/stave-unsent\.[^/]*\.[0-9]*\.pftrace " err; }
left() { find "$STAVE_SESSION_DIR" -mindepth 1; find "$1" -mindepth 1 -name "*.pftrace*"; }
of_family() { od -A n -v -t u8 -w8 -N 4088 "$1" | awk '{ n += $1 } END { print n }'; }
late never "unix:$TMP/nobody" "$numbers" 2 16000 progress
check "no listener, ever: all events are in the file" '[ "$(kept unsent.pftrace)" = $total ] && [ "$(lost unsent.pftrace)" = 0 ] && no_gap unsent.pftrace'
check "the program is as untraced, but for one line" 'as_untraced never && said "unix:$TMP/nobody" never && [ -z "$(left never)" ]'
late port tcp:127.0.0.1:1 "$numbers" 2 16000 progress
check "the same for a port" '[ "$(kept unsent.pftrace)" = $total ] && as_untraced port && said tcp:127.0.0.1:1 port'
for scene in workers generations threads; do
  if [[ $BUILD:$scene = *tsan:threads ]]; then skip "listen: children, $scene" "ThreadSanitizer does not support threads after fork"; continue; fi
  late "$scene" unix:nobody "$BUILD/tests/stress/family" "$scene" progress
  check "children, $scene: all events are in the file" 'as_untraced $scene && [ "$(kept unsent.pftrace)" = "$(of_family $scene/progress)" ] && no_gap unsent.pftrace && said "unix:$TMP/$scene/nobody" $scene && [ -z "$(left $scene)" ]'
done
mkdir taken; echo mine >taken/x.pftrace
(cd taken && STAVE_STREAM_FILE=x.pftrace STAVE_OUT=unix:nobody "$numbers" 1 8 progress) >out 2>err; text taken/x.2.pftrace
check "a file that is there is not touched" '[ "$(cat taken/x.pftrace)" = mine ] && [ "$(kept taken/x.2.pftrace)" = 9 ]'
STAVE_STREAM_FILE=$TMP/nowhere/x.pftrace STAVE_OUT=unix:$TMP/nobody "$numbers" 1 8 progress >out 2>err; code=$?
check "without a place for the file tracing is off" '[ $code = 0 ] && [ "$(cat out)" = "0 lost" ] && grep -qx "stave: unix:$TMP/nobody: cannot reach the listener: .*; $TMP/nowhere/x.pftrace: No such file or directory; tracing is off" err'
for wrong in tcp:127.0.0.1 unix: tcp:nobody:1 "unix:$TMP/$(printf '%0107d' 0)"; do
  (cd taken && STAVE_OUT=$wrong "$numbers" 1 8 progress) >out 2>err; code=$?
  check "a wrong address is an error: ${wrong:0:16}" '[ $code = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q "expected unix:PATH or tcp:ADDRESS:PORT; tracing is off" err && [ -z "$(ls taken/stave-unsent* 2>/dev/null)" ]'
done

rm -rf later "${STAVE_SESSION_DIR:?}"/*; mkdir later
(cd later && STAVE_STREAM_MS=30000 STAVE_STREAM_FILE=unsent.pftrace STAVE_OUT=unix:../s exec "$BUILD/tests/stress/family" paced progress) >out 2>err & sender=$!
until_true '[ -s later/unsent.pftrace ]'
listen later.pftrace --senders 1
until_true '[ "$(stat -c %s later.pftrace.part)" -gt 20000 ]'; found=$?
: >later/end; wait $sender; code=$?
[ $found = 0 ] || kill $listener
wait $listener
text later.pftrace later/unsent.pftrace
check "a listener that comes later is found" '[ $found = 0 ] && [ $code = 0 ] && [ "$(wc -l <err)" = 1 ] && [ "$(kept later.pftrace)" -gt 100 ]'
check "each event is in one of two files, none is counted as lost" '[ $(($(kept later.pftrace) + $(kept later/unsent.pftrace))) = "$(of_family later/progress)" ] && [ $(($(lost later.pftrace) + $(lost later/unsent.pftrace))) = 0 ] && no_gap later.pftrace later/unsent.pftrace && [ -z "$(find "$STAVE_SESSION_DIR" -mindepth 1)" ]'

# A listener that ends, by request or by a kill: what was answered is in the trace, the rest still in the sender's rings. sender NAME SIGNAL
interrupted() {
  rm -rf "${STAVE_SESSION_DIR:?}"/*
  listen "$1.pftrace"
  send 0 & sender=$!
  until_true '[ "$(stat -c %s '"$1"'.pftrace.part)" -gt 200000 ]'
  kill "-$2" $listener; wait $listener 2>/dev/null; code=$?
  until_true '[ -s err ] && [ -s unsent.pftrace ]'; before=$(od -A n -t u8 -N 16 progress)
  until_true '[ "$(od -A n -t u8 -N 16 progress)" != "'"$before"'" ]'; goes_on=$?
  ${3:-true}
  kill -9 "$(pgrep -P $sender numbers)"; wait $sender 2>/dev/null
  text unsent.pftrace
}
interrupted term TERM; text term.pftrace
check "a listener that ends first" '[ $code = 0 ] && [ "$(kept term.pftrace)" -gt 1000 ] && saved && no_gap term.pftrace unsent.pftrace rest.pftrace'
check "its sender goes on, into a file, and says so once" '[ $goes_on = 0 ] && [ "$(kept unsent.pftrace)" -gt 0 ]'
check "marks it" 'grep -q "listener ended first" term.pftrace.txt && [ "$(lost term.pftrace)" = 0 ]'
interrupted kill KILL
check "the sender of one that is killed goes on, too" '[ $goes_on = 0 ]'
check "a listener that is killed leaves its spool" '[ $code = 137 ] && [ ! -e kill.pftrace ] && [ -s kill.pftrace.part ]'
"$STAVE" recover kill.pftrace >out 2>err; code=$?; text kill.pftrace
check "of which recover makes the trace" '[ $code = 0 ] && [ "$(kept kill.pftrace)" -gt 1000 ] && [ ! -e kill.pftrace.part ] && saved && no_gap kill.pftrace unsent.pftrace rest.pftrace'

# Another listener at the same address: the sender finds it.
another() {
  told=$(wc -l <err)
  kill -STOP "$(pgrep -P $sender numbers)" # until it would look for a listener: else it writes very much
  listen back.pftrace
  sleep 1.2
  kill -CONT "$(pgrep -P $sender numbers)"
  until_true '[ "$(stat -c %s back.pftrace.part)" -gt 200000 ]'; found=$?
  size=$(stat -c %s unsent.pftrace)
}
interrupted gone KILL another
finish
"$STAVE" recover gone.pftrace >out 2>err; text gone.pftrace back.pftrace
check "a sender finds the next listener" '[ $found = 0 ] && [ $told = 1 ] && [ "$(kept back.pftrace)" -gt 1000 ]'
check "and its file does not grow any more" '[ "$(stat -c %s unsent.pftrace)" = $size ]'
check "nothing of it is missing in four places" 'saved && no_gap gone.pftrace unsent.pftrace back.pftrace rest.pftrace'
# The kill at the end may cut a frame: the listener counts its events, which are still in the sender's rings (docs/merge.md).
cut=$(lost back.pftrace); text rest.pftrace
check "nor counted as lost" '[ "$(($(lost gone.pftrace) + $(lost unsent.pftrace)))" = 0 ] && { [ "$cut" = 0 ] || { grep -q "stream is incomplete" err.l && [ "$cut" -le "$(kept rest.pftrace)" ]; }; }'
joins() { "$STAVE" merge -q gone.pftrace unsent.pftrace back.pftrace -o joined.pftrace 2>err; }
check "merge joins the parts" 'joins && text joined.pftrace && [ "$(kept joined.pftrace)" = $(($(kept gone.pftrace) + $(kept unsent.pftrace) + $(kept back.pftrace))) ]'

# A sender that is killed.
rm -rf "${STAVE_SESSION_DIR:?}"/*
listen dead.pftrace --senders 1
send 0 & sender=$!
until_true '[ "$(stat -c %s dead.pftrace.part)" -gt 200000 ]'
kill -9 "$(pgrep -P $sender numbers)"; wait $sender 2>/dev/null; wait $listener; code=$?; text dead.pftrace
check "a sender that is killed" '[ $code = 0 ] && [ "$(kept dead.pftrace)" -gt 1000 ] && saved && no_gap dead.pftrace rest.pftrace'
check "all it had recorded is there" '[ "$(grep -hoE "thread=1 seq=[0-9]+" {dead,rest}.pftrace.txt | sort -u | wc -l)" -ge "$(od -A n -t u8 -j 8 -N 8 progress | tr -d " ")" ]'

# A program that forks and is killed: its child does not keep the stream open.
if python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$BUILD/libstave.so" 2>err; then
  rm -rf "${STAVE_SESSION_DIR:?}"/*
  listen forked.pftrace --senders 1
  python3 "$senders" "unix:$TMP/s" "forked:$BUILD/libstave.so" >child 2>err & forker=$!
  until_true '! kill -0 $listener'; ended=$?
  check "a killed sender's child keeps nothing open" '[ $ended = 0 ] && kill -0 "$(cat child)"'
  kill "$(cat child)"; wait $forker $listener 2>/dev/null
else
  echo "skip listen: a killed sender's child: Python cannot load this build's library"
fi

# A disk that is full: a file system of 1 MiB.
mkdir small
if [ "$(id -u)" != 0 ] || ! mount -t tmpfs -o size=1m tmpfs small 2>/dev/null; then
  echo "skip listen: a full disk: it takes root to mount one"
  exit 0
fi
trap 'umount -l "$TMP/small"' EXIT
listen small/full.pftrace --senders 1
send 16000; sent=$?; wait $listener; code=$?
check "a full disk: the sender is not disturbed" '[ $sent = 0 ] && [ ! -s err ]'
check "nothing received is deleted, and the way on is named" '[ $code = 4 ] && grep -q "stave recover" err.l && [ -s small/full.pftrace.part ] && [ ! -e small/full.pftrace ]'
mount -o remount,size=64m small
"$STAVE" recover small/full.pftrace >out 2>err; code=$?; text small/full.pftrace
check "with space it becomes a trace" '[ $code = 0 ] && [ "$(kept small/full.pftrace)" -gt 1000 ] && [ "$(lost small/full.pftrace)" -gt 0 ]'
check "in which every event is, or is counted" '[ $(($(kept small/full.pftrace) + $(lost small/full.pftrace))) = $total ] && no_gap small/full.pftrace'
