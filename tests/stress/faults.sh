#!/usr/bin/env bash
# Full disks, broken disks, no memory, read-only places: tracing ends with one line, the program does not notice, and every event is in the file,
# recoverable or counted. Each call of the library fails once in each place, from then on always (fault/fault.c).
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR" "$TMP/work"
cd "$TMP/work" || exit 2
preload=$TMP/fault.so
case $BUILD in *tsan | *asan) echo "the sanitizer is between the library and the shim"; exit 77 ;; esac
${CC:-cc} -std=c17 -O1 -shared -fPIC -o "$TMP/fault.so" "$SRC/tests/stress/fault/fault.c" -ldl || { echo "not ok faults: the shim"; exit 1; }
EVENTS=4000
# said_well LOST: at most one line that names the cause, and at most one with the number of what was lost; one of them if
# anything was.
causes() { grep -c '^stave: .*; tracing is off$\|^stave: .*lost and counted$\|^stave: .*; the trace is kept as .*: stave recover [^ ]*$' err; }
said_well() {
  local losses; losses=$(grep -c "^stave: .*: $1 events\? w[a-z]* lost, " err)
  [ "$(causes)" -le 1 ] && [ "$losses" -le 1 ] && [ $(($(causes) + losses)) = "$(wc -l <err)" ] && { [ "$1" = 0 ] || [ -s err ]; }
}
# try WHAT POLICY FAULT: prints why it is wrong, nothing if it is right
try() {
  local code lost in_file
  rm -rf ./* "${STAVE_SESSION_DIR:?}"/*
  FAULT=$3 LD_PRELOAD=$preload STAVE_BUFFER=16k STAVE_FULL=$2 STAVE_OUT=t$1 timeout 60 "$BUILD/tests/stress/numbers" 2 $EVENTS progress >out 2>err
  code=$?
  [ $code = 0 ] || { echo "exit $code"; return; }
  lost=$(sed -n 's/ lost$//p' out)
  [ -n "$lost" ] || { echo "the program said $(cat out)"; return; }
  said_well "$lost" || { echo "said $(cat err)"; return; }
  [ "$(od -A n -t u8 -N 16 progress | tr -s ' ')" = " $EVENTS $EVENTS" ] || { echo "the program did not run to its end"; return; }
  if [ "$(causes)" != 0 ]; then
    SAID=$((SAID + 1))
    if [ -e "t$1.session" ]; then # what was written and what is in the rings
      "$STAVE" recover -q "t$1" >recover 2>&1 || { echo "recover: $(cat recover)"; return; }
    fi
    [ ! -e "t$1" ] || "$STAVE" cat -q --strict "t$1" >valid 2>&1 || { echo "damaged: $(tail -n 2 valid)"; return; }
  else
    in_file=$("$STAVE" cat -q "t$1" | grep -c seq=)
    [ $((in_file + lost)) -ge $((2 * EVENTS)) ] || { echo "$in_file in the file, $lost lost"; return; }
  fi
  [ -z "$(find "$STAVE_SESSION_DIR" -mindepth 1)" ] || [ "$(causes)" != 0 ] || echo "left $(find "$STAVE_SESSION_DIR" -mindepth 1 | head -n 1)"
}
# series NAME CALL ERRNO TIMES…: after so many calls
series() {
  local name=$1 call=$2 errno=$3 bad=0 n why policy suffix; shift 3
  SAID=0
  for n; do
    for policy in drop block; do
      suffix=.pftrace; [ $((n % 3)) != 2 ] || suffix=.json
      why=$(try $suffix $policy "$call:$errno:$n"; echo "|$SAID")
      SAID=${why##*|}; why=${why%|*}
      [ -z "$why" ] || { bad=$((bad + 1)); echo "not ok faults: $name: $policy, call $n: $why"; }
    done
  done
  if [ $bad = 0 ] && [ "$SAID" -gt 0 ]; then echo "ok faults: $name ($SAID times off)"; elif [ $bad = 0 ]; then echo "not ok faults: $name: it never failed"; fi
}
series "the disk is full" write 28 0 1 2 5 11 23
series "the disk is broken" write 5 0 3 14
series "no space for rings" posix_fallocate 28 0 1 2
series "no address space" mmap 12 0 1 2 3 4 5 6 8 10
series "read-only" open 30 0 1 2 3 4 5 6 7 8 9 10 12 14
series "no directory" mkdir 13 0 1
series "no marker, no final name" renameat2 28 0 1
series "no thread" pthread_create 11 0
series "no memory" malloc 12 0 1 2 3 4 5 7 9 12 15 20 25 30 40 50 60 80 100

# A place that is full for real, where we may mount one.
if [ "$(id -u)" = 0 ] && mkdir -p "$TMP/tiny" && mount -t tmpfs -o size=256k stave-test "$TMP/tiny" 2>/dev/null; then
  trap 'umount "$TMP/tiny" 2>/dev/null' EXIT
  STAVE_OUT=$TMP/tiny/t.pftrace "$BUILD/tests/stress/numbers" 2 100000 progress >out 2>err; code=$?
  [ $code = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'No space left' err && [ "$(sed -n 's/ lost$//p' out)" -gt 0 ]
  if [ $? = 0 ]; then echo "ok faults: a full file system"; else echo "not ok faults: a full file system: exit $code $(cat out err)"; fi
  # Ended where it was whole, with the number of what is missing: 200,000 moments and 25,000 slices. A ring that was full before
  # the disk was has a loss of its own, so they are summed.
  "$STAVE" cat -q "$TMP/tiny/t.pftrace" >text; lost=$(sed -n 's/.* loss .*{\([0-9]*\)}$/\1/p' text | awk '{ sum += $1 } END { print sum + 0 }') have=$(grep -cE 'seq=|"outer"' text)
  [ "$have" -gt 1000 ] && [ $((have + lost)) = 225000 ] && [ "$(ls "$TMP/tiny")" = t.pftrace ] && [ -z "$(ls "$STAVE_SESSION_DIR")" ]
  if [ $? = 0 ]; then echo "ok faults: and the file says what is missing"; else echo "not ok faults: a full file system: $have and $lost lost, left $(ls "$TMP/tiny")"; fi
  rm -f "$TMP"/tiny/*
  STAVE_SESSION_DIR=$TMP/tiny STAVE_OUT=r.pftrace "$BUILD/tests/stress/numbers" 8 1000 progress >out 2>err; code=$?
  [ $code = 0 ] && said_well "$(sed -n 's/ lost$//p' out)" && [ $(($("$STAVE" cat -q r.pftrace | grep -c seq=) + $(sed -n 's/ lost$//p' out))) -ge 8000 ]
  if [ $? = 0 ]; then echo "ok faults: rings in a small place"; else echo "not ok faults: rings in a small place: exit $code $(cat out err)"; fi
  umount "$TMP/tiny"
else
  echo "skip faults: a full file system: needs to mount one"
fi
(ulimit -v 200000; STAVE_OUT=v.pftrace "$BUILD/tests/stress/numbers" 4 1000 progress >out 2>err); code=$?
[ $code = 0 ] && said_well "$(sed -n 's/ lost$//p' out)" && [ -s out ]
if [ $? = 0 ]; then echo "ok faults: little memory"; else echo "not ok faults: little memory: exit $code $(cat err)"; fi
