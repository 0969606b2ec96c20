#!/usr/bin/env bash
# stave report batch, and the summary of a server's batches as an input: figures that can be checked by hand, other forms, bad rows.
. "$SRC/tests/harness/cli.sh"

# Three batches of a server that is not ours: no exclusive columns, CRLF, one worker idle. Times are easy to add up.
cat >seed.csv <<'C'
batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,submit_ms,scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms,warmup
0,"m",0,"cpu",-1,2,"1;2","1000000;1001000",2.000,1.000,1.500,0.500,5.000,5.500,1.000,10.000,false
1,"m, ""big""",1,"cuda",0,1,"3","1010000",1.000,0.000,0.500,0.500,2.000,2.000,0.000,4.000,false
2,"m",0,"cpu",-1,4,"4;5;6;7","1020000;1020000;1021000;1022000",3.000,2.000,3.000,1.000,10.000,11.000,2.000,20.000,false
C
sed 's/$/\r/' seed.csv >crlf.csv
run summary 0 "$STAVE" report batch seed.csv
run crlf 0 "$STAVE" report batch crlf.csv --by summary
check same_with_crlf diff <("$STAVE" report batch seed.csv --json) <("$STAVE" report batch crlf.csv --json)
run request 0 "$STAVE" report batch seed.csv --request 5
run csv 0 "$STAVE" report batch seed.csv --csv
run requests 0 "$STAVE" report batch seed.csv --csv --by request
run sla 0 "$STAVE" report batch seed.csv --by sla --sla 4,9.5,20
run json 0 "$STAVE" report batch seed.csv --json --by worker

# The arithmetic, from the JSON: phases add up, every request in one batch, rates are over the real time.
check arithmetic python3 - <<'P'
import csv, json, subprocess, os
stave = os.environ["STAVE"]
report = json.loads(subprocess.check_output([stave, "report", "batch", "seed.csv", "--json"]))
s = report["summary"]
assert s["requests"] == 7 and s["batches"] == 3 and s["batch_size_max"] == 4
assert s["span_ns"] == 40_000_000 and abs(s["throughput_per_s"] - 7 / 0.040) < 1e-6, s
assert abs(s["efficiency"] - 7 / 3 / 4) < 1e-9
requests = list(csv.DictReader(subprocess.check_output([stave, "report", "batch", "seed.csv", "--csv", "--by", "request"], text=True).splitlines()))
phases = ["queue_ns", "batch_ns", "submit_ns", "scheduling_ns", "run_ns", "callback_ns", "respond_ns"]
for r in requests:
    assert sum(int(r[p]) for p in phases) == int(r["total_ns"]), r
assert sorted(int(r["request"]) for r in requests) == [1, 2, 3, 4, 5, 6, 7]
assert s["latency_max_ns"] == 20_000_000
P

# Another run, whose last batch takes twice as long.
sed 's/,20\.000,false/,40.000,false/' seed.csv >slow.csv
run baseline 1 "$STAVE" report batch slow.csv --baseline seed.csv
run baseline_lenient 0 "$STAVE" report batch slow.csv --baseline seed.csv --max-latency-regression 150% --max-throughput-drop 50
run_any baseline_json 1 "$STAVE" report batch slow.csv --baseline seed.csv --json
check baseline_is_json python3 -c 'import json; d = json.load(open("baseline_json.out")); assert d["version"] == 1 and any(x["missed"] for x in d["changes"])'
run_any itself 0 "$STAVE" report batch seed.csv --baseline seed.csv --max-latency-regression 0 --max-throughput-drop 0

# What cannot be.
run no_request 3 "$STAVE" report batch seed.csv --request 99
run bad_request 2 "$STAVE" report batch seed.csv --request x1
run bad_sla 2 "$STAVE" report batch seed.csv --sla 5,fast
run bad_limit 2 "$STAVE" report batch seed.csv --baseline seed.csv --max-rejected many
run bad_section 2 "$STAVE" report batch seed.csv --by colour
echo '{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]}' >other.json
run nothing 3 "$STAVE" report batch other.json
head -n 1 seed.csv >empty.csv
run empty 3 "$STAVE" report batch empty.csv

# Damaged rows are reported and skipped; the others count.
{ cat seed.csv; echo 'x,"m",0,"cpu"'; echo '9,"m",0,"cpu",-1,2,"1;x","1;2",0,0,0,0,0,0,0,1,false'; echo '10,"open,0'; echo '11,"m",0,"cpu",-1,0,"","",nan,-5,1e300,0,0,0,0,2.5,false'; } >bad.csv
run damaged 0 "$STAVE" report batch bad.csv --by summary
run_any strict 1 "$STAVE" report batch bad.csv --strict

# JSON of a server that is not ours: no spans of requests, no real time.
cat >foreign.json <<'J'
{"traceEvents":[
  {"name":"process_name","ph":"M","ts":0,"pid":1,"args":{"name":"StarPU Inference Server"}},
  {"name":"request_enqueued","cat":"batching","ph":"i","ts":100,"pid":1,"tid":1,"args":{"request_id":7,"model_name":"demo"}},
  {"name":"request_enqueued","cat":"batching","ph":"i","ts":200,"pid":1,"tid":1,"args":{"request_id":8,"model_name":"demo"}},
  {"name":"warming_request_enqueued","cat":"batching","ph":"i","ts":1,"pid":1,"tid":1,"args":{"warming_request_id":1,"warming_model_name":"demo"}},
  {"name":"batch","cat":"batching","ph":"X","ts":100,"pid":1,"tid":2,"dur":100,"args":{"batch_id":0,"batch_size":2,"model_name":"demo","request_ids":[7,8],"start_ts":100,"end_ts":200}},
  {"name":"batch_build","cat":"batching","ph":"X","ts":300,"pid":1,"tid":3,"dur":50,"id_scope":"serving","id2":{"local":0},"bind_id":"0x0000000000000000","flow_out":true,"args":{"batch_id":0,"batch_size":2,"model_name":"demo","request_ids":[7,8],"start_ts":300,"end_ts":350}},
  {"name":"batch_submitted","cat":"batching","ph":"X","ts":400,"pid":1,"tid":4,"dur":1,"id_scope":"serving","id2":{"local":0},"bind_id":"0x0000000000000000","flow_out":true,"flow_in":true,"args":{"batch_id":0,"batch_size":2,"model_name":"demo","request_ids":[7,8]}},
  {"name":"demo","cat":"batching","ph":"X","ts":500,"pid":1,"tid":10,"dur":1000,"id_scope":"serving","id2":{"local":0},"bind_id":"0x0000000000000000","flow_in":true,"args":{"batch_id":0,"batch_size":2,"model_name":"demo","worker_id":0,"worker_type":"cpu","start_ts":500,"end_ts":1500}}
]
}
J
run foreign 0 "$STAVE" report batch foreign.json --csv --by request

# Without arrivals and without numbers of requests: how long is known, when is not.
python3 - <<'P'
import csv
rows = list(csv.DictReader(open("seed.csv")))
keep = [c for c in rows[0] if c not in ("request_ids", "request_arrival_us")]
with open("untimed.csv", "w", newline="") as out:
    w = csv.DictWriter(out, keep, extrasaction="ignore", lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
P
run untimed 0 "$STAVE" report batch untimed.csv --by summary
cut -d, -f1-6 seed.csv >columns.csv
run columns 3 "$STAVE" report batch columns.csv
sed '2s/false$/true/' seed.csv >warm.csv
run_any warm 0 "$STAVE" report batch warm.csv --json --by summary
check warm_up_does_not_count python3 -c 'import json; s = json.load(open("warm.out"))["summary"]; assert s["requests"] == 5 and s["batches"] == 2, s'

# What requests took outside of the queue (life cycle of a server): request 3 ends before its batch was reported, 4 knows only parts, 5 says nonsense, 9 was cut away, 2 is used twice.
python3 - <<'P'
lines = ["# stave text 1", "clock boottime", "track #1 process uuid=0x1 pid=10 name=\"server\"", "track #2 custom uuid=0x2 parent=#1 name=\"life cycle\""]
def life(us, name, **args):
    lines.append(f'{us / 1e6:.9f} instant #2 "{name}" cat="serving.life" {{{" ".join(f"{k}={v}" for k, v in args.items())}}}')
def request(us, number, **transport):
    life(us, "enqueued", request=number, model=0, flags=0)
    life(us + 1, "dequeued", request=number)
    life(us + 2, "collected", batch=us, model=0, requests=1, samples=1, flags=0, took_ns=1000, n=1, r0=number)
    life(us + 4, "started", batch=us, worker=0)
    life(us + 5, "finished", batch=us)
    life(us + 6, "responded", request=number)
    if number == 3:
        life(us + 7, "transport", request=number, **transport)
    life(us + 8, "submitted", batch=us)
    life(us + 9, "callback", batch=us, took_ns=1000)
    if number != 3:
        life(us + 10, "transport", request=number, **transport)
request(1000, 1, read_ns=100, parse_ns=200, serialise_ns=300, write_ns=400)
request(1100, 2, read_ns=7, parse_ns=7, serialise_ns=7, write_ns=7)
request(1200, 3, read_ns=300, parse_ns=400, serialise_ns=500, write_ns=-1)
request(1300, 4, parse_ns=600)
request(1400, 5, read_ns=-5, parse_ns='"9"', serialise_ns=1.5, write_ns=18446744073709551615)
life(1500, "transport", request=9, read_ns=1, parse_ns=1, serialise_ns=1, write_ns=1)
request(1600, 2, read_ns=8, parse_ns=8, serialise_ns=8, write_ns=8)
life(1700, "enqueued", request=6, model=0, flags=0)
open("transport.txt", "w").write("\n".join(lines) + "\n")
P
run transport 0 "$STAVE" report batch transport.txt --by transport
run transport_request 0 "$STAVE" report batch transport.txt --request 3
check transport_is_beside_latency python3 - <<'P'
import json, os, subprocess
d = json.loads(subprocess.check_output([os.environ["STAVE"], "report", "batch", "transport.txt", "--json"]))
s = d["summary"]
assert s["requests"] == 6 and s["latency_mean_ns"] == 6000 and s["unexpected_calls"] == 0, s
assert [p["phase"] for p in d["phase"]] == ["queue", "batch", "submit", "scheduling", "run", "callback", "respond"], d["phase"]
assert [(t["transport"], t["requests"], t["mean_ns"]) for t in d["transport"]] == [("read", 4, 103.75), ("parse", 5, 243), ("serialise", 4, 203.75), ("write", 3, 415 / 3)], d["transport"]
P
check no_transport python3 -c 'import json, os, subprocess; d = json.loads(subprocess.check_output([os.environ["STAVE"], "report", "batch", "seed.csv", "--json"])); assert not d["transport"], d'

# SQL has a row for each request and each batch of such files, without warm-up; what a file does not say is NULL.
if "$STAVE" query --help >/dev/null 2>&1; then
  ask() { "$STAVE" query -q "$1" --to csv "$2" | tail -n +2; }
  request='SELECT request_id, batch_id, model, outcome, ts, dur, queue_ns FROM request ORDER BY request_id' batch='SELECT batch_id, model, size, worker, ts, dur FROM batch ORDER BY batch_id'
  check sql_foreign_json diff - <(ask foreign.json "$request"; ask foreign.json "$batch") <<'END'
7,0,demo,responded,100000,1400000,200000
8,0,demo,responded,200000,1300000,100000
0,demo,2,0,300000,1200000
END
  check sql_seed_csv diff - <(ask seed.csv "$request" | head -n 3; ask seed.csv "$batch") <<'END'
1,0,m,responded,1000000000,10000000,2000000
2,0,m,responded,1001000000,9000000,1000000
3,1,"m, ""big""",responded,1010000000,4000000,1000000
0,m,2,0,1002000000,8000000
1,"m, ""big""",1,1,1011000000,3000000
2,m,4,0,1023000000,17000000
END
  check sql_untimed diff - <(ask untimed.csv "$request" | head -n 2; ask untimed.csv "$batch" | head -n 1; ask untimed.csv 'SELECT count(load) + count(scheduled_ts) + count(first_token_ts) FROM request') <<'END'
1,0,m,responded,,10000000,2000000
2,0,m,responded,,10000000,2000000
0,m,2,0,,8000000
0
END
  check sql_warm diff - <(ask warm.csv 'SELECT count(*) FROM request'; ask warm.csv 'SELECT count(*) FROM batch'; ask warm.csv 'SELECT count(*), sum(is_warmup) FROM engine_request') <<'END'
5
2
7,2
END
  transport='SELECT request_id, outcome, read_ns, parse_ns, serialise_ns, write_ns FROM request ORDER BY request_id, ts'
  check sql_transport diff - <(ask transport.txt "$transport") <<'END'
1,responded,100,200,300,400
2,responded,7,7,7,7
2,responded,8,8,8,8
3,responded,300,400,500,
4,responded,,600,,
5,responded,,,,
6,open,,,,
END
  for form in pftrace json; do
    run_any "transport_to_$form" 0 "$STAVE" convert -q transport.txt -o "transport.$form"
    check "sql_transport_$form" diff <(ask transport.txt "$transport") <(ask "transport.$form" "$transport")
  done
  # Of one slice each (OTLP): the same, and no number below 0.
  printf '%s\n' '# stave text 1' 'clock boottime' 'track #1 process uuid=0x1 pid=10 name="server"' \
    '0.001000000 slice #1 "llm request" cat="serving" dur=0.000001000 {request=1 read_ns=5 parse_ns=-1 serialise_ns=18446744073709551615 write_ns="7"}' >whole.txt
  check sql_transport_whole test "$(ask whole.txt "$transport")" = 1,responded,5,,,
  # Lists that do not fit: the row is damage, not a guess.
  { sed '1s/$/,failed,request_arrival_ns,request_queue_ns,request_total_ns,request_outcome/; 2,$d' seed.csv
    tail='2.000,1.000,1.500,0.500,5.000,5.500,1.000,10.000,false,false'
    echo "0,\"m\",0,\"cpu\",-1,2,\"1;2\",\"1000000;1001000\",$tail,\"1000000001;1001000002\",\"5;-1\",\"10000000;-1\",\"responded;open\""
    echo "-1,\"m\",-1,\"unknown\",-1,0,\"3\",\"1002000\",$tail,\"1002000000\",\"-1\",\"0\",\"rejected\""
    echo "1,\"m\",0,\"cpu\",-1,1,\"4\",\"1003000\",$tail,\"x\",\"5\",\"10\",\"\""
    echo "2,\"m\",0,\"cpu\",-1,1,\"5\",\"1003000\",$tail,\"9223372036854775807\",\"5\",\"10\",\"\""
    echo "3,\"m\",0,\"cpu\",-1,1,\"6\",\"1003000\",$tail,\"1003000000\",\"5\",\"10\",\"vanished\""; } >lists.csv
  check sql_lists diff - <({ ask lists.csv "SELECT request_id, batch_id, outcome, ts, dur FROM request ORDER BY request_id"; ask lists.csv "SELECT count(*) FROM batch"; } 2>/dev/null) <<'END'
1,0,responded,1000000001,10000000
2,,open,1001000002,
3,,rejected,1002000000,0
1
END
  run_any lists 0 "$STAVE" info lists.csv
  check lists_are_reported grep -q 'row of a batch not understood' lists.err lists.out
else skip sql "no stave query in this build"; fi

# What requests waited for: the ledger, by phase. The rows add up to the time of the requests, which is that of the phases.
python3 "$SRC/tests/cli/report_batch/locked.py" >locked.txt
run why 0 "$STAVE" report batch locked.txt --why
run why_request 0 "$STAVE" report batch locked.txt --why --request 5
run why_json 0 "$STAVE" report batch locked.txt --why --json --top 1
check why_adds_up python3 - <<'P'
import json, os, subprocess
stave = os.environ["STAVE"]
ask = lambda *words: json.loads(subprocess.check_output([stave, "report", "batch", "locked.txt", "--json", "--top", "0", *words]))
rows, report = ask("--why")["why"], ask()
for phase in report["phase"]:
    ns = sum(r["dur_ns"] for r in rows if r["phase"] == phase["phase"])
    assert ns == round(phase["mean_ns"] * 24), (phase, ns)
lock = [r for r in rows if r["class"] == "lock" and r["who"] == "indexer"]
assert sum(r["dur_ns"] for r in lock) == 8 * 6_000_000 and all(r["requests"] == 8 for r in lock), lock
assert report["why"] == [] # made when it is asked for
P
run why_of_phases 0 "$STAVE" report batch locked.txt --by phase
grep -v thread_state locked.txt >phases.txt
run why_without_threads 0 "$STAVE" report batch phases.txt --why
# Without states a worker is the thread that waits between its batches and not within.
python3 "$SRC/tests/cli/report_batch/locked.py" calls >calls.txt
run why_of_calls 0 "$STAVE" report batch calls.txt --why
run why_of_few 3 "$STAVE" report batch seed.csv --why
run why_and_by 2 "$STAVE" report batch locked.txt --why --by phase
run why_and_baseline 2 "$STAVE" report batch locked.txt --why --baseline locked.txt
check requests_and_samples [ "$("$STAVE" query -q --to csv locked.txt 'select size, requests from batch limit 1' | tail -n 1)" = 2,1 ]
