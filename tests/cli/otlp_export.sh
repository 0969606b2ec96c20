#!/usr/bin/env bash
# stave export --to otlp: round trips, ids that stay, categories, engines, and a collector that is busy, refuses or is not there.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "there is no python3"
good=$SRC/tests/golden/good

# ---- there and back ----
run_any example 0 "$STAVE" export -q "$good/otlp_example.json" --to otlp -o example.json
python3 - "$good/otlp_example.json" example.json >same 2>&1 <<'END'
import json, sys
def lower(x):
    if isinstance(x, dict): return {k: v.lower() if k in ("traceId", "spanId", "parentSpanId") else lower(v) for k, v in x.items()}
    return [lower(v) for v in x] if isinstance(x, list) else x
a, b = (lower(json.load(open(p))) for p in sys.argv[1:])
print("the same" if a == b else f"{a}\n{b}")
END
check the_example_comes_back_as_it_was grep -qx 'the same' same
# All but the span that never ended: spans have an end.
grep -v '^$' "$good/otlp_lines.json" | sed 's/,{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00000000000000b3"[^}]*}//' >ended.json
"$STAVE" cat -q ended.json >want.txt
for file in lines.jsonl lines.pb lines.json.gz; do
  run_any "to_$file" 0 "$STAVE" export -q ended.json --to otlp -o "$file"
  "$STAVE" cat -q "$file" >"$file.txt"
  check "${file}_comes_back" diff want.txt "$file.txt"
done
run_any to_perfetto 0 "$STAVE" convert -q ended.json -o through.pftrace
run_any through_perfetto 0 "$STAVE" export -q through.pftrace --to otlp -o through.jsonl
"$STAVE" query -q ended.json "SELECT ts, dur, name FROM slice ORDER BY ts, name" >a.csv; "$STAVE" query -q through.jsonl "SELECT ts, dur, name FROM slice ORDER BY ts, name" >b.csv
check times_through_perfetto diff a.csv b.csv
run_any stdout 0 "$STAVE" export -q ended.json --to otlp -o -
check stdout_is_json grep -q '^{"resourceSpans":' stdout.out

# ---- engines, slices of a category, ids that stay ----
cat >engine.txt <<'END'
# stave text 1
clock realtime
track #1 process uuid=0x1 pid=7 name="engine"
track #2 custom uuid=0x2 parent=#1 name="engine 0"
track #3 async uuid=0x3 parent=#1 name="requests"
1700000000.000000000 slice #3 "llm request" cat="serving" dur=0.500000000 {request=412 model="m" prompt_tokens=9 output_tokens=3 queue_ns=1500000 ttft_ns=250000000 outcome="responded"}
1700000000.100000000 slice #2 "engine step" cat="serving.engine" dur=0.010000000 {step=1 tokens_in=9 tokens_out=1 members="412p9@0 999p1"}
1700000000.200000000 slice #2 "matmul" cat="nn" dur=0.100000000 {m=4}
1700000000.210000000 slice #2 "load" cat="io,nn" dur=0.010000000
1700000000.210000000 slice #2 "load" cat="io,nn" dur=0.010000000
END
run_any engine 0 "$STAVE" export -q engine.txt --to otlp -o engine.jsonl
run_any engine_again 0 "$STAVE" export -q engine.txt --to otlp -o engine2.jsonl
check ids_stay cmp engine.jsonl engine2.jsonl
run_any category 0 "$STAVE" export -q engine.txt --to otlp --category nn -o nn.jsonl
python3 - >facts 2>&1 <<'END'
import json
def spans(p): return [s for l in open(p) for r in json.loads(l)["resourceSpans"] for x in r["scopeSpans"] for s in x["spans"]]
def attributes(s): return {a["key"]: next(iter(a["value"].values())) for a in s.get("attributes", [])}
request, step = sorted(spans("engine.jsonl"), key=lambda s: s["startTimeUnixNano"])
a = attributes(request)
print("request", request["kind"], a["gen_ai.request.id"], a["gen_ai.request.model"], a["gen_ai.usage.input_tokens"], a["gen_ai.usage.output_tokens"],
      a["gen_ai.latency.time_in_queue"], a["gen_ai.latency.time_to_first_token"])
print("step", attributes(step)["gen_ai.usage.input_tokens"], len(step["links"]), step["links"][0]["spanId"] == request["spanId"] and step["links"][0]["traceId"] == request["traceId"])
outer, *inner = sorted(spans("nn.jsonl"), key=lambda s: int(s["startTimeUnixNano"]))
print("nested", [s["name"] for s in inner], inner[0]["parentSpanId"] == outer["spanId"], inner[0]["traceId"] == outer["traceId"], "parentSpanId" in outer)
print("different", len({s["spanId"] for s in [outer, *inner]}))
END
check facts diff - facts <<'END'
request 2 412 m 9 3 0.0015 0.25
step 9 1 True
nested ['load', 'load'] True True False
different 3
END
# Requests that are known by their life: one that is answered, one that fails, one that never ends; one that is computed again after a preemption, without calls for its tokens.
cat >life.txt <<'END'
# stave text 1
clock realtime
track #1 process uuid=0x1 pid=7 name="engine"
track #2 thread uuid=0x4 parent=#1 pid=7 tid=7
track #3 custom uuid=0x2 parent=#1 name="engine 0"
1700000000.000000000 instant #2 "model" cat="serving.life" {model=1 name="m-7b"}
1700000000.000000001 instant #2 "enqueued" cat="serving.life" {request=5 model=1}
1700000000.001000001 instant #2 "scheduled" cat="serving.life" {request=5}
1700000000.002000000 slice #3 "engine step" cat="serving.engine" dur=0.010000000 {step=1 members="5p12+1 6p4"}
1700000000.012500001 instant #2 "streamed" cat="serving.life" {request=5 tokens=1}
1700000000.013000000 instant #2 "enqueued" cat="serving.life" {request=6 model=1}
1700000000.014000000 slice #3 "engine step" cat="serving.engine" dur=0.010000000 {step=2 members="5d1+1@13"}
1700000000.030000001 instant #2 "responded" cat="serving.life" {request=5}
1700000000.040000000 instant #2 "failed" cat="serving.life" {request=6}
1700000000.050000000 instant #2 "enqueued" cat="serving.life" {request=7 model=1}
1700000000.060000000 instant #2 "enqueued" cat="serving.life" {request=8 model=1}
1700000000.061000000 slice #3 "engine step" cat="serving.engine" dur=0.001000000 {step=3 members="8p10+1"}
1700000000.062500000 instant #2 "preempted" cat="serving.life" {request=8}
1700000000.063000000 slice #3 "engine step" cat="serving.engine" dur=0.001000000 {step=4 members="8p11+1"}
1700000000.065000000 instant #2 "cancelled" cat="serving.life" {request=8}
END
run_any life 0 "$STAVE" export -q life.txt --to otlp -o life.jsonl
python3 - >lives 2>&1 <<'END'
import json
spans = [s for l in open("life.jsonl") for r in json.loads(l)["resourceSpans"] for x in r["scopeSpans"] for s in x["spans"]]
by_id = {s["spanId"]: s for s in spans}
for s in sorted(spans, key=lambda s: int(s["startTimeUnixNano"])):
    a = {a["key"]: next(iter(a["value"].values())) for a in s.get("attributes", [])}
    print(s["name"], int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]), *(f"{k.split('.')[-1]}={v}" for k, v in a.items() if k.startswith("gen_ai") or k == "outcome"),
          *("link=" + str({a["key"]: next(iter(a["value"].values())) for a in by_id[l["spanId"]]["attributes"]}["gen_ai.request.id"]) for l in s.get("links", [])))
END
check lives diff - lives <<'END'
llm request 30000000 id=5 model=m-7b input_tokens=12 output_tokens=2 time_in_queue=0.001 time_to_first_token=0.0125 e2e=0.03 outcome=responded
engine step 10000000 link=5 link=6
llm request 27000000 id=6 model=m-7b input_tokens=4 e2e=0.027 outcome=failed
engine step 10000000 link=5
llm request 5000000 id=8 model=m-7b input_tokens=10 output_tokens=2 time_in_queue=0.001 time_to_first_token=0.002 e2e=0.005 outcome=cancelled
engine step 1000000 link=8
engine step 1000000 link=8
END
# A server's requests: one that its caller sent with a context, whose slice has the ids, one without, one that was rejected, warm-up. Two servers may use a number twice.
cat >called.txt <<'END'
# stave text 1
clock realtime
track #1 process uuid=0x1 pid=7 name="server"
track #2 thread uuid=0x4 parent=#1 pid=7 tid=7
track #3 custom uuid=0x2 parent=#1 name="requests 1"
1700000000.000000000 instant #2 "model" cat="serving.life" {model=0 name="mlp"}
1700000000.000000001 instant #2 "enqueued" cat="serving.life" {request=1 model=0 flags=1}
1700000000.000100000 instant #2 "responded" cat="serving.life" {request=1}
1700000000.001000001 instant #2 "enqueued" cat="serving.life" {request=5 model=0 flags=0}
1700000000.001000001 slice #3 "request" cat="serving" dur=0.002000000 {request=5 batch=1 trace_id="0af7651916cd43dd8448eb211c80319c" span_id="00f067aa0ba902b7" otel.trace_state="a=1,b=2" parent_span_id="b7ad6b7169203331"}
1700000000.003000001 instant #2 "responded" cat="serving.life" {request=5}
1700000000.004000000 instant #2 "enqueued" cat="serving.life" {request=6 model=0 flags=0}
1700000000.004000000 slice #3 "request" cat="serving" dur=0.001000000 {request=6 batch=2}
1700000000.005000000 instant #2 "responded" cat="serving.life" {request=6}
1700000000.006000000 instant #2 "rejected" cat="serving.life" {request=7 model=0 flags=0}
1700000000.007000000 instant #2 "enqueued" cat="serving.life" {request=5 model=0 flags=0}
1700000000.008000000 instant #2 "cancelled" cat="serving.life" {request=5}
END
run_any called 0 "$STAVE" export -q called.txt --to otlp -o called.jsonl
python3 - >calls 2>&1 <<'END'
import json
for s in sorted((s for l in open("called.jsonl") for r in json.loads(l)["resourceSpans"] for x in r["scopeSpans"] for s in x["spans"]), key=lambda s: int(s["startTimeUnixNano"])):
    a = {a["key"]: next(iter(a["value"].values())) for a in s["attributes"]}
    is_called = s["traceId"] == "0af7651916cd43dd8448eb211c80319c" and s["spanId"] == "00f067aa0ba902b7"
    print(s["name"], a.get("stave.warmup", 0), a["gen_ai.request.id"], a["outcome"], int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]), is_called, s.get("parentSpanId"), s.get("traceState"))
END
check callers_trace_goes_on diff - calls <<'END'
request 1 1 responded 99999 False None None
request 0 5 responded 2000000 True b7ad6b7169203331 a=1,b=2
request 0 6 responded 1000000 False None None
request 0 7 rejected 0 False None None
request 0 5 cancelled 1000000 False None None
END
"$STAVE" query -q called.jsonl --to csv 'SELECT request_id, outcome, dur FROM request ORDER BY ts' >back.csv
check back_from_spans diff - back.csv <<'END'
request_id,outcome,dur
5,responded,2000000
6,responded,1000000
7,rejected,0
5,cancelled,1000000
END
"$STAVE" export -q called.jsonl --to otlp -o called_again.jsonl
check outcome_is_kept test "$(grep -o '"key":"outcome"' called_again.jsonl | wc -l) $(grep -c '"b7ad6b7169203331"' called_again.jsonl)" = '5 1'
# Batches of a server: spans with links to their requests and back; the tables are the same on the other side, warm-up is marked and in none.
cat >batches.txt <<'END'
# stave text 1
clock realtime
track #1 process uuid=0x1 pid=7 name="server"
track #2 thread uuid=0x4 parent=#1 pid=7 tid=7
1700000000.000000000 instant #2 "model" cat="serving.life" {model=0 name="bert"}
1700000000.000000001 instant #2 "enqueued" cat="serving.life" {request=1 model=0 flags=1}
1700000000.000000100 instant #2 "collected" cat="serving.life" {batch=1 model=0 requests=1 samples=1 flags=1 took_ns=20 n=1 r0=1}
1700000000.000000150 instant #2 "submitted" cat="serving.life" {batch=1}
1700000000.000000200 instant #2 "started" cat="serving.life" {batch=1 worker=0}
1700000000.000000300 instant #2 "finished" cat="serving.life" {batch=1}
1700000000.000000400 instant #2 "callback" cat="serving.life" {batch=1 took_ns=10}
1700000000.000000500 instant #2 "responded" cat="serving.life" {request=1}
1700000000.001000000 instant #2 "enqueued" cat="serving.life" {request=2 model=0 flags=0}
1700000000.002000000 instant #2 "enqueued" cat="serving.life" {request=3 model=0 flags=0}
1700000000.003000000 instant #2 "collected" cat="serving.life" {batch=2 model=0 requests=2 samples=2 flags=0 took_ns=500000 n=2 r0=2 r1=3}
1700000000.003100000 instant #2 "submitted" cat="serving.life" {batch=2}
1700000000.003200000 instant #2 "started" cat="serving.life" {batch=2 worker=4}
1700000000.004000000 instant #2 "finished" cat="serving.life" {batch=2}
1700000000.004100000 instant #2 "callback" cat="serving.life" {batch=2 took_ns=100000}
1700000000.005000000 instant #2 "responded" cat="serving.life" {request=2}
1700000000.006000000 instant #2 "responded" cat="serving.life" {request=3}
END
run_any batches 0 "$STAVE" export -q batches.txt --to otlp -o batches.jsonl
run_any batches_again 0 "$STAVE" export -q batches.txt --to otlp -o batches2.jsonl
check batch_ids_stay cmp batches.jsonl batches2.jsonl
python3 - >links 2>&1 <<'END'
import json
spans = [s for l in open("batches.jsonl") for r in json.loads(l)["resourceSpans"] for x in r["scopeSpans"] for s in x["spans"]]
def facts(s): return s["name"], {a["key"]: next(iter(a["value"].values())) for a in s["attributes"]}
def label(s): name, a = facts(s); return f"{name} {a.get('gen_ai.request.id', a.get('stave.batch.id'))}"
by_id = {(s["traceId"], s["spanId"]): s for s in spans}
for s in sorted(spans, key=lambda s: int(s["startTimeUnixNano"])):
    a = facts(s)[1]
    print(label(s), s["kind"], a.get("stave.warmup", "-"), a.get("batch_size", "-"), a.get("worker_id", "-"), "->", *(label(by_id[l["traceId"], l["spanId"]]) for l in s["links"]))
END
check requests_link_to_their_batch diff - links <<'END'
request 1 2 1 - - -> batch 1
batch 1 1 1 1 0 -> request 1
request 2 2 - - - -> batch 2
request 3 2 - - - -> batch 2
batch 2 1 - 2 4 -> request 2 request 3
END
"$STAVE" export -q batches.jsonl --to otlp -o batches_again.jsonl
for file in batches.txt batches.jsonl batches_again.jsonl; do
  "$STAVE" query -q $file --to csv 'SELECT request_id, batch_id, model, outcome, ts, dur FROM request' >$file.requests
  "$STAVE" query -q $file --to csv 'SELECT batch_id, model, size, worker, ts, dur FROM batch' >$file.batches
done
check batches_are_there test "$(wc -l <batches.txt.requests) $(wc -l <batches.txt.batches)" = '3 2'
for form in batches batches_again; do
  check ${form}_same_requests diff batches.txt.requests $form.jsonl.requests
  check ${form}_same_batches diff batches.txt.batches $form.jsonl.batches
done
run_any nothing_there 2 "$STAVE" export -q engine.txt --to otlp --category none -o none.jsonl
check nothing_was_made test ! -e none.jsonl
sed 's/^clock realtime/clock monotonic/' engine.txt >no_wall.txt
run_any no_wall 4 "$STAVE" export -q no_wall.txt --to otlp -o no_wall.jsonl
check no_wall_says_what_to_do grep -q 'nothing relates the trace' no_wall.err

# ---- a collector ----
collect() { # FILE STATUS…
  coproc COLLECTOR { exec python3 "$SRC/tests/harness/otlp_collector.py" "$@" 2>&1; }
  collector=$COLLECTOR_PID; read -r port <&"${COLLECTOR[0]}"
}
close_collector() { kill "$collector"; wait "$collector" 2>/dev/null; }
collect got 503 429 200
OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b run_any busy 0 "$STAVE" export "$good/otlp_lines.json" --to otlp -o "http://127.0.0.1:$port"
close_collector
printf '503 /v1/traces application/x-protobuf a b\n429 /v1/traces application/x-protobuf a b\n200 /v1/traces application/x-protobuf a b\n' >want.log
check asked_again diff want.log got.log
check said_that grep -q '1 requests had to be sent again' busy.err
"$STAVE" export -q "$good/otlp_lines.json" --to otlp -o direct.pb
check nothing_is_lost cmp direct.pb got
collect refused 400
run_any refusal 4 "$STAVE" export -q "$good/otlp_lines.json" --to otlp -o "http://127.0.0.1:$port/other"
close_collector
check refusal_is_final test "$(wc -l <refused.log)" = 1
check refusal_has_its_reason grep -q 'answers 400: busy' refusal.err
collect part partial
run_any partly 1 "$STAVE" export "$good/otlp_lines.json" --to otlp -o "http://127.0.0.1:$port"
close_collector
check partly_says_why grep -q '2 spans were rejected: no ink' partly.err
# A port that somebody has and nobody listens on: another test cannot get it meanwhile.
coproc COLLECTOR { exec python3 -c 'import signal, socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); signal.pause()'; }
collector=$COLLECTOR_PID; read -r port <&"${COLLECTOR[0]}"
run_any nobody 4 "$STAVE" export -q "$good/otlp_lines.json" --to otlp --retry 0 -o "http://127.0.0.1:$port"
close_collector
check nobody_says_so grep -q 'Connection refused' nobody.err
run_any https 2 "$STAVE" export -q "$good/otlp_lines.json" --to otlp -o https://127.0.0.1:1
check https_says_what_to_do grep -q 'https is not supported' https.err
for url in http:// http://:80 'http://a b' http://u@h:1 http://h:0 http://h:99999 ftp://h; do
  run_any "url_${url//[^a-z0-9]/_}" 2 "$STAVE" export -q "$good/otlp_lines.json" --to otlp -o "$url"
done
OTEL_EXPORTER_OTLP_HEADERS=a=b%0d%0aEvil:1 run_any headers_of_one_line 2 "$STAVE" export -q "$good/otlp_lines.json" --to otlp -o http://127.0.0.1:1
run_any category_of_others 2 "$STAVE" export -q engine.txt -o x.db --category nn
