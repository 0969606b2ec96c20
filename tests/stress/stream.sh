#!/usr/bin/env bash
# Streams: several senders into one file; a listener that stalls or dies ends the tracing, not the program, where there is no file for the rest.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
check() { if eval "$2"; then echo "ok stream: $1"; else echo "not ok stream: $1: $(cat out* err* 2>/dev/null | head -n 6)"; fi; }
# await PROGRESS: until events have been sent; many more are to come
await() { for _ in $(seq 6000); do if [ "$(od -A n -t u8 -N 8 "$1" 2>/dev/null | tr -d ' ')" -gt 100000 ] 2>/dev/null; then return; fi; sleep 0.01; done; }

"$STAVE" listen -q "unix:$TMP/s" -o all.pftrace --senders 3 >out.l 2>err.l &
listener=$!
for _ in $(seq 600); do [ -S "$TMP/s" ] && break; sleep 0.1; done
pids=()
for i in 1 2 3; do STAVE_OUT=unix:$TMP/s STAVE_STREAM_MS=30000 "$BUILD/tests/stress/numbers" 1 20000 progress.$i >out.$i 2>err.$i & pids+=($!); done # a busy machine is no listener that stalls
wait "${pids[@]}" $listener
check "three senders, one file" '[ "$("$STAVE" cat -q all.pftrace | grep -c seq=)" = 60000 ]'
check "senders end well" '[ "$(cat out.1 out.2 out.3 | sort -u)" = "0 lost" ] && [ ! -s err.1 ]'

"$STAVE" listen -q "tcp:127.0.0.1:0" -o x.pftrace >out.p 2>err.p; check "a port is asked for" '[ $? != 0 ] || [ -s err.p ]'
"$STAVE" listen -q "tcp:0.0.0.0:7791" -o x.pftrace >out.p 2>err.p; check "other machines need a token" 'grep -q token err.p'

STAVE_STREAM_FILE='' STAVE_OUT=unix:$TMP/nobody timeout 120 "$BUILD/tests/stress/numbers" 1 1000 progress.4 >out 2>err
check "without a listener and a file the program runs" '[ $? = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q "tracing is off" err'

# sending NAME PROGRESS: a listener to NAME.pftrace, and a program that sends to it for long; both are under way when this returns.
sending() {
  "$STAVE" listen -q "unix:$TMP/$1" -o "$1.pftrace" >out.l 2>err.l &
  listener=$!
  for _ in $(seq 600); do [ -S "$TMP/$1" ] && break; sleep 0.1; done
  STAVE_STREAM_FILE='' STAVE_STREAM_MS=500 STAVE_OUT=unix:$TMP/$1 timeout 300 "$BUILD/tests/stress/numbers" 1 20000000 "progress.$2" >out 2>err &
  sender=$!
  await "progress.$2"
}

sending dead 5; kill -9 $listener
wait $sender; code=$?; export code # read by check
check "a listener that dies" '[ $code = 0 ] && [ "$(wc -l <err)" = 1 ]'

sending stalled 6; kill -STOP $listener
wait $sender; code=$?; export code # read by check
kill -CONT $listener; kill $listener; wait $listener
check "a listener that stalls" '[ $code = 0 ] && [ "$(wc -l <err)" = 1 ]'
check "what it had taken is a trace" '[ "$("$STAVE" cat -q stalled.pftrace | grep -c seq=)" -gt 0 ]'
