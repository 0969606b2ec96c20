#!/usr/bin/env bash
# stave-server sends spans to a collector while it runs: what arrives is what the trace has, whatever the collector answers first; one that is absent or says nothing costs the clients nothing, and what it did not get is counted.
# shellcheck disable=SC2016 # SQL
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server load="timeout 120 $BUILD/stave-load"
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
"$STAVE" query --help >/dev/null 2>&1 || skip_all "no stave query in this build"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
"$python" -c 'import google.protobuf' 2>/dev/null || skip_all "no google.protobuf (package python3-protobuf), which decodes what was sent"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci
equals() { check "$1" test "$2" = "$3"; }
cp "$SRC/examples/server/mlp.safetensors" .
collect() { # FILE ANSWER…
  coproc COLLECTOR { exec "$python" "$SRC/tests/system/server_otlp.py" "$@" 2>"$1.err"; }
  collector=$COLLECTOR_PID; read -r to <&"${COLLECTOR[0]}"
}
end_collector() { kill "$collector"; wait "$collector" 2>/dev/null; cat "$1.err"; }
start() { # NAME LINE…: the server traces to the folder NAME
  local name=$1; shift
  printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'trace_enabled: true' 'trace_plots: false' "trace_output: $TMP/$name" 'workers: 1' 'max_queue_size: 1000' "$@" >"$name.yml"
  : >server.err
  "$server" --config "$name.yml" --address 127.0.0.1:0 --grpc off 2>server.err & pid=$!
  for _ in $(seq 600); do grep -q '^listening' server.err && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err)
  if [ -z "$port" ]; then sed 's/^/  /' server.err; not_ok "start of $name"; exit 1; fi
}
stop() { kill -TERM $pid; wait $pid; equals "$1_exit" $? 0; cp server.err "$1.server"; }
metric() { "$python" -c 'import sys, urllib.request
for line in urllib.request.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1]).read().decode().splitlines():
    if line.startswith(sys.argv[2] + " "): print(int(float(line.split()[1])))' "$port" "$1"; }
until_metric() { for _ in $(seq 600); do test "$(metric "$1")" "$2" "$3" && return 0; sleep 0.05; done; return 1; }
ask() { "$STAVE" query -q "$1" --to csv "$2"; }
rows() { # FILE: of requests and batches, warm-up too
  ask "$1" 'SELECT request_id, batch_id, model, outcome, dur FROM request ORDER BY cast(request_id AS INTEGER)'
  ask "$1" 'SELECT batch_id, model, size, worker, dur FROM batch ORDER BY batch_id'
}

# It refuses, asks for a pause, breaks off, and takes all: each span once, as in the trace.
collect got 503 429:1 close 502 200
start sent "trace_otlp: http://127.0.0.1:$to"
run_any load 0 $load -u "http://127.0.0.1:$port" -n 120 -c 4 --trace load.pftrace
check repeated until_metric otlp_requests_repeated_total -ge 4
check taken until_metric otlp_spans_sent_total -gt 0
run_any more 0 $load -u "http://127.0.0.1:$port" -n 60 -c 4
equals none_is_lost "$(metric otlp_spans_lost_total)" 0
stop sent; end_collector got
equals refusals "$(head -n 5 got.log | cut -d' ' -f1-3 | tr '\n' ';')" \
  '503 /v1/traces application/x-protobuf;429:1 /v1/traces application/x-protobuf;close /v1/traces application/x-protobuf;502 /v1/traces application/x-protobuf;200 /v1/traces application/x-protobuf;'
check asked_pause sh -c 'awk "NR == 2 { a = \$4 } NR == 3 { exit !(\$4 - a >= 1) }" got.log'
rows sent/batching_trace.pftrace >want.rows; mv got.bin got.otlp; rows got.otlp >got.rows
check rows_as_in_the_trace diff want.rows got.rows
equals rows_are_there "$(grep -c responded want.rows)" 180
"$python" - >spans.txt <<'END' || not_ok spans
import collections, json
spans = [json.loads(line) for line in open("got.json")]
names = collections.Counter(s["name"] for s in spans)
assert len({s["span"] for s in spans}) == len(spans) and set(names) == {"request", "batch"} and {s["service"] for s in spans} == {"stave-server"}, names
batches = {s["trace"] + s["span"]: s for s in spans if s["name"] == "batch"}
for s in (s for s in spans if s["name"] == "request"):
    assert s["kind"] == 2 and len(s["links"]) == 1 and batches[s["links"][0]]["stave.batch.id"] == s["batch_id"] and not s["error"], s
    assert s["dur"] > 0 and 0 <= s["gen_ai.latency.time_in_queue"] <= s["gen_ai.latency.e2e"], s
for s in spans:
    if s["parent"]: print(s["trace"], s["parent"])
END
sort spans.txt >got.called
arg() { echo "extract_arg(arg_set_id, '$1')"; }
ask load.pftrace "SELECT $(arg trace_id) || ' ' || $(arg span_id) FROM slice WHERE category = 'load' AND $(arg outcome) = 'ok' ORDER BY 1" | tail -n +2 >want.called
check joins_the_callers sh -c 'test -s want.called && cmp want.called got.called'

# Some spans are refused, or all: that is final, and counted.
collect part partial 400
start part "trace_otlp: http://127.0.0.1:$to" 'warmup_pregen_inputs: 0'
run_any load_part 0 $load -u "http://127.0.0.1:$port" -n 10 -c 2
check one_is_lost until_metric otlp_spans_lost_total -ge 1
run_any load_more 0 $load -u "http://127.0.0.1:$port" -n 10 -c 2
check refused_for_good until_metric otlp_spans_lost_total -gt 1
stop part; end_collector part
check says_why grep -q '^stave-server: trace_otlp: it answers 400' part.server

# Nobody is there; or somebody who never answers. The clients see nothing of it, the end comes soon, and all is counted.
for how in absent silent; do
  if [ $how = silent ]; then collect silent silent; else to=1; fi
  start $how "trace_otlp: http://127.0.0.1:$to" 'warmup_pregen_inputs: 0'
  run_any load_$how 0 $load -u "http://127.0.0.1:$port" -n 200 -c 8 -j load_$how.json
  stop $how
  if [ $how = silent ]; then end_collector silent; fi
  equals all_answered_$how "$("$python" -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["requests"]["ok"]))' load_$how.json)" 200
  equals all_are_counted_$how "$(sed -nE 's/^stave-server: trace_otlp: ([0-9]+) spans did not get.*/\1/p' $how.server)" \
    "$(ask $how/batching_trace.pftrace 'SELECT (SELECT count(*) FROM request) + (SELECT count(*) FROM batch)' | tail -n 1)"
  equals said_once_$how "$(grep -c 'trace_otlp: .*what finds the queue full is lost' $how.server)" 1
done

# The queue is bounded: what finds it full is lost while the server runs, and the trace says when.
if [ "${STAVE_LONG:-}" ]; then
  start full 'trace_otlp: http://127.0.0.1:1' 'warmup_pregen_inputs: 0'
  run_any load_full 0 $load -u "http://127.0.0.1:$port" -n 20000 -c 64
  check full_loses until_metric otlp_spans_lost_total -gt 0
  check full_is_bounded test "$(metric otlp_queue_bytes)" -le 5000000
  stop full
  check full_in_the_trace test "$(ask full/batching_trace.pftrace "SELECT max(value) > 0 FROM counter c JOIN counter_track t ON c.track_id = t.id WHERE t.name = 'OTLP spans lost'" | tail -n 1)" = 1
else
  skip full "takes 10 s of CPU: STAVE_LONG=1"
fi

# No such URL.
for url in https://127.0.0.1:4318 127.0.0.1:4318 http://:4318; do
  sed "s|^trace_output.*|&\ntrace_otlp: \"$url\"|; s|^trace_otlp: http.*||" part.yml >bad.yml
  run_any "refuses_${url//[^a-z0-9]/_}" 2 timeout 60 "$server" --config bad.yml --address 127.0.0.1:0 --grpc off
done
