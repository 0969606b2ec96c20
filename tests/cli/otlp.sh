#!/usr/bin/env bash
# OTLP: spans that `stave listen --otlp` takes over HTTP, its answers, the one time axis with libstave's senders, SIGKILL.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "there is no python3"
good=$SRC/tests/golden/good

# begin OUT [ARGUMENT…]: a listener on a free port; $listener, $port.
begin() {
  local out=$1; shift
  : >log
  "$STAVE" listen --otlp 127.0.0.1:0 "$@" -o "$out" 2>log &
  listener=$!
  for _ in $(seq 1200); do grep -qs 'Ctrl-C' log && break; sleep 0.05; done
  port=$(sed -n 's/.*OTLP on port \([0-9]*\).*/\1/p' log)
}
finish() { kill -INT "$listener"; wait "$listener"; }
# answers NAME STATUS PATTERN ARGUMENT…: a request for the next send (tests/harness/otlp_post.py).
answers() { printf '%q ' "$@" >>plan; echo >>plan; }
send() {
  python3 "$SRC/tests/harness/otlp_post.py" "$port" <plan >said 2>&1
  sed 's/^ok /ok /' said; if grep -qv '^ok ' said || ! [ -s said ]; then CLI_FAILED=1; fi
  rm -f plan
}
slices() { "$STAVE" query -q "$1" "SELECT ts, dur, name, cat FROM slice ORDER BY ts, name" --to csv; }

# ---- who does not say where it is runs here ----
sed -n 1p "$good/otlp_lines.json" | sed 's/,{"key":"host.name","value":{"stringValue":"[a-z0-9]*"}}//' >here.json
begin here.pftrace
answers no_host 200 '{}$' --type application/json here.json
send
finish
check the_listeners_machine [ "$("$STAVE" query -q here.pftrace 'SELECT host, boot_id FROM machine' --to csv | tail -n 1)" = "$(uname -n),$(cat /proc/sys/kernel/random/boot_id)" ]

# ---- forms and framings ----
printf '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00"},{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00000000000000ff","name":"kept","startTimeUnixNano":"1700000003000000000","endTimeUnixNano":"1700000003000000001"}]}]}]}' >partial.json
printf '{"resourceSpans":[{' >broken.json
head -c 100 "$good/otlp_protobuf.out" >broken.pb
sed -n 1p "$good/otlp_lines.json" >first.json; sed -n 2p "$good/otlp_lines.json" >second.json
begin forms.pftrace
answers protobuf_pieces 200 '$' --pieces 97 "$good/otlp_protobuf.out"
answers json_gzip 200 '{}$' --type application/json --encoding gzip first.json
answers json_chunked 200 '{}$' --type 'application/json; charset=utf-8' --chunks 61 second.json
answers gzip_chunked 200 '$' --encoding gzip --chunks 13 "$good/otlp_protobuf.out"
answers empty 200 '$' /dev/null
answers partial 200 '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"trace_id or span_id is not valid"}}$' --type application/json partial.json
answers broken_json 400 '{"code":3,"message":"byte 19: it breaks off"}$' --type application/json broken.json
answers broken_protobuf 400 '.*not an ExportTraceServiceRequest' broken.pb
answers not_gzip 400 '.*cannot be decompressed' --encoding zstd broken.pb
answers other_encoding 415 '.*Content-Encoding' --encoding br broken.pb
answers other_type 415 '.*Content-Type' --type text/plain broken.pb
answers other_path 404 '.*only traces' --path /v1/metrics broken.pb
answers other_method 405 '.*only POST' --method GET --length 0 /dev/null
answers too_large 413 '.*too large' --length 67108865 /dev/null
answers two_lengths 400 '.*contradict' --header 'Content-Length: 3' broken.pb
answers web_page 403 '.*web pages' --header 'Origin: http://example.com' broken.pb
head -c 70000000 /dev/zero | gzip -9 >bomb.gz
answers unpacked_too_large 413 '.*too large' --header 'Content-Encoding: gzip' bomb.gz
send
finish
"$STAVE" query -q forms.pftrace "SELECT name, count(*) FROM slice GROUP BY name ORDER BY name" --to csv >names.csv 2>&1
check three_deliveries_and_one_kept diff - names.csv <<'END'
name,count(*)
POST /v1/completions,3
connected,3
first token,3
kept,1
llm request,3
report,3
still open,3
write log,3
END

# ---- the token ----
begin token.pftrace --token secret
answers no_token 401 '.*token is missing' "$good/otlp_protobuf.out"
answers wrong_token 401 '.*token is missing' --header 'Authorization: Bearer secreT' "$good/otlp_protobuf.out"
answers token 200 '$' --header 'Authorization: Bearer secret' "$good/otlp_protobuf.out"
send
finish
run_any open_needs_token 2 "$STAVE" listen --otlp 0.0.0.0:0 -o never.pftrace
check nothing_was_made test ! -e never.pftrace

# ---- killed: what was acknowledged is there ----
begin killed.pftrace
answers before_kill 200 '$' "$good/otlp_protobuf.out"
send
kill -KILL "$listener"; wait "$listener" 2>/dev/null
run_any recovered 0 "$STAVE" recover killed.pftrace
slices "$good/otlp_protobuf.out" >sent.csv; slices killed.pftrace >got.csv
check all_that_was_acknowledged diff sent.csv got.csv

# ---- no space: refused, not lost ----
begin small.pftrace --spool-limit 6K
answers with_space 200 '$' "$good/otlp_protobuf.out"
answers no_space 503 '.*no space' "$good/otlp_protobuf.out"
send
finish
check refused_and_said grep -q 'asked to repeat' log

# ---- one axis with a program of libstave, one process ----
if [ -x "$BUILD/examples/layers" ]; then
  begin axis.pftrace "unix:$TMP/s"
  STAVE_OUT=unix:$TMP/s "$BUILD/examples/layers" >/dev/null 2>&1 &
  sender=$!; wait "$sender"
  now=$(date +%s%N)
  printf '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"svc"}},{"key":"process.pid","value":{"intValue":"%d"}}]},"scopeSpans":[{"spans":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00000000000000ff","name":"of the same process","startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}' "$sender" "$now" $((now + 5)) >own.json
  answers same_process 200 '{}$' --type application/json own.json
  send; finish
  "$STAVE" query -q axis.pftrace "SELECT count(DISTINCT upid) FROM (SELECT upid FROM process WHERE pid = $sender)" --to csv >one.csv 2>&1
  check one_process grep -qx 1 one.csv
  "$STAVE" query -q axis.pftrace "SELECT max(ts) - min(ts) < 60000000000 FROM slice" --to csv >near.csv 2>&1
  check one_axis grep -qx 1 near.csv
else
  skip one_axis "the example 'layers' is not built"
fi

# ---- an arrow from the caller's span to what the called program recorded, by traceparent ----
case $BUILD in *asan | *tsan) python= ;; *) python=$BUILD/python ;; esac # a sanitizer must be there before the interpreter
if [ -n "$python" ] && [ -f "$python/interpreter" ] && [ -d "$python/stave" ]; then
  begin arrow.pftrace "unix:$TMP/s2"
  cat >called.py <<'END'
import stave
with stave.trace_context("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") as context:
    with stave.trace("serve", **context.args, **context.flows): pass
END
  now=$(date +%s%N)
  PYTHONPATH=$BUILD/python PYTHONDONTWRITEBYTECODE=1 STAVE_OUT=unix:$TMP/s2 "$(cat "$BUILD/python/interpreter")" called.py
  printf '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"caller"}}]},"scopeSpans":[{"spans":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","name":"call","kind":3,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}' "$now" "$(date +%s%N)" >call.json
  answers caller 200 '{}$' --type application/json call.json
  send; finish
  "$STAVE" query -q arrow.pftrace "SELECT a.name || ' to ' || b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in" --to csv >arrow.csv 2>&1
  check arrow_by_traceparent grep -qx 'call to serve' arrow.csv
else
  skip arrow_by_traceparent "the Python package was not built"
fi
