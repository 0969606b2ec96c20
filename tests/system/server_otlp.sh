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
ways=http; grpc=$("$STAVE" doctor 2>/dev/null | sed -n 's/^- *gRPC  *//p')
if [ -n "$grpc" ]; then skip grpc "$grpc"; elif ! command -v node >/dev/null; then skip grpc "no node"; else ways="http grpc"; fi
collect() { # WAY FILE ANSWER…
  case $1 in http) coproc COLLECTOR { exec "$python" "$SRC/tests/system/server_otlp.py" "${@:2}" 2>"$2.err"; } ;;
  grpc) coproc COLLECTOR { exec node "$SRC/tests/system/server_otlp.mjs" "${@:2}" 2>"$2.err"; } ;; esac
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

arg() { echo "extract_arg(arg_set_id, '$1')"; }
refusing() { case $1 in http) echo 503 429:1 close 502 200 ;; grpc) echo 14 8:1 close 1 0 ;; esac; }
final() { case $1 in http) echo 400 ;; grpc) echo 3 ;; esac; }
says() { case $1 in http) echo "it answers 400" ;; grpc) echo "gRPC status 3: on purpose" ;; esac; }
place() { case $1 in http) echo /v1/traces application/x-protobuf ;; grpc) echo /opentelemetry.proto.collector.trace.v1.TraceService/Export application/grpc ;; esac; }

# It refuses, asks for a pause, breaks off, and takes all: each span once, as in the trace.
sent() { # WAY
  # shellcheck disable=SC2046 # words
  collect "$1" "got_$1" $(refusing "$1")
  start "sent_$1" "trace_otlp: $1://127.0.0.1:$to"
  run_any "load_$1" 0 $load -u "http://127.0.0.1:$port" -n 120 -c 4 --trace "load_$1.pftrace"
  check "repeated_$1" until_metric otlp_requests_repeated_total -ge 4
  check "taken_$1" until_metric otlp_spans_sent_total -gt 0
  run_any "more_$1" 0 $load -u "http://127.0.0.1:$port" -n 60 -c 4
  equals "none_is_lost_$1" "$(metric otlp_spans_lost_total)" 0
  stop "sent_$1"; end_collector "got_$1"
  equals "refusals_$1" "$(head -n 5 "got_$1.log" | cut -d' ' -f1-3)" "$(for word in $(refusing "$1"); do echo "$word $(place "$1")"; done)"
  check "asked_pause_$1" sh -c "awk 'NR == 2 { a = \$4 } NR == 3 { exit !(\$4 - a >= 1) }' got_$1.log"
  "$python" "$SRC/tests/system/server_otlp.py" spans "got_$1" >"got_$1.json"
  rows "sent_$1/batching_trace.pftrace" >want.rows; mv "got_$1.bin" "got_$1.otlp"; rows "got_$1.otlp" >got.rows
  check "rows_as_in_the_trace_$1" diff want.rows got.rows
  equals "rows_are_there_$1" "$(grep -c responded want.rows)" 180
  "$python" - "got_$1.json" >spans.txt <<'END' || not_ok "spans_$1"
import collections, json, sys
spans = [json.loads(line) for line in open(sys.argv[1])]
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
  ask "load_$1.pftrace" "SELECT $(arg trace_id) || ' ' || $(arg span_id) FROM slice WHERE category = 'load' AND $(arg outcome) = 'ok' ORDER BY 1" | tail -n +2 >want.called
  check "joins_the_callers_$1" sh -c 'test -s want.called && cmp want.called got.called'
}

# Some spans are refused, or all: that is final, and counted.
part() { # WAY
  collect "$1" "part_$1" partial "$(final "$1")"
  start "part_$1" "trace_otlp: $1://127.0.0.1:$to" 'warmup_pregen_inputs: 0'
  run_any "load_part_$1" 0 $load -u "http://127.0.0.1:$port" -n 10 -c 2
  check "one_is_lost_$1" until_metric otlp_spans_lost_total -ge 1
  run_any "load_more_$1" 0 $load -u "http://127.0.0.1:$port" -n 10 -c 2
  check "refused_for_good_$1" until_metric otlp_spans_lost_total -gt 1
  stop "part_$1"; end_collector "part_$1"
  check "says_why_$1" grep -q "^stave-server: trace_otlp: $(says "$1")" "part_$1.server"
}

# Nobody is there; or somebody who never answers. The clients see nothing of it, the end comes soon, and all is counted.
away() { # WAY absent|silent
  local name=$2_$1
  if [ "$2" = silent ]; then collect "$1" "$name" silent; else to=1; fi
  start "$name" "trace_otlp: $1://127.0.0.1:$to" 'warmup_pregen_inputs: 0'
  run_any "load_$name" 0 $load -u "http://127.0.0.1:$port" -n 200 -c 8 -j "load_$name.json"
  stop "$name"
  if [ "$2" = silent ]; then end_collector "$name"; fi
  equals "all_answered_$name" "$("$python" -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["requests"]["ok"]))' "load_$name.json")" 200
  equals "all_are_counted_$name" "$(sed -nE 's/^stave-server: trace_otlp: ([0-9]+) spans did not get.*/\1/p' "$name.server")" \
    "$(ask "$name/batching_trace.pftrace" 'SELECT (SELECT count(*) FROM request) + (SELECT count(*) FROM batch)' | tail -n 1)"
  equals "said_once_$name" "$(grep -c 'trace_otlp: .*what finds the queue full is lost' "$name.server")" 1
}
for way in $ways; do
  sent $way
  part $way
  away $way absent
  away $way silent
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
for url in https://127.0.0.1:4318 127.0.0.1:4318 http://:4318 grpc://127.0.0.1:4317/v1/traces; do
  sed "s|^trace_output.*|&\ntrace_otlp: \"$url\"|; s|^trace_otlp: http.*||" part_http.yml >bad.yml
  run_any "refuses_${url//[^a-z0-9]/_}" 2 timeout 60 "$server" --config bad.yml --address 127.0.0.1:0 --grpc off
done
