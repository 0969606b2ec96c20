#!/usr/bin/env bash
# stave report llm and the SQL tables of continuous batching: figures that can be checked by hand, bad input, and an engine whose own counters must agree.
. "$SRC/tests/harness/cli.sh"

# Two requests share an engine, one is preempted and computed again, one is refused, one never ends.
engine=$SRC/tests/cli/report_llm/engine.py
python3 "$engine" >engine.json
run report 0 "$STAVE" report llm engine.json --slo ttft=150us,tpot=100us
run request 0 "$STAVE" report llm engine.json --request 2
run why 0 "$STAVE" report llm engine.json --why --top 2
run json 0 "$STAVE" report llm engine.json --json --slo itl=150us
run csv 0 "$STAVE" report llm engine.json --csv
run steps 0 "$STAVE" report llm engine.json --csv --by step
run members 0 "$STAVE" report llm engine.json --request 1 --by member --json

# report batch has the same requests: one arrives at time 0, and the steps of the engine end their time in the queue.
check as_report_batch diff <("$STAVE" report batch -q engine.json --csv --by request | awk -F, '$5 == "responded" { print $1, $6, $10, $13 }') - <<'B'
1 10000 360000 375000
2 15000 350000 375000
B

# What the golden files say, by hand: 100 us of 60 and 40 tokens; 60 us of 30 and 1; the kernel of 80 us in step 1; all sums.
check by_hand python3 - <<'P'
import csv, json, os, subprocess
def query(sql):
    out = subprocess.check_output([os.environ["STAVE"], "query", "engine.json", "--to", "csv", sql], text=True)
    return [list(row.values()) for row in csv.DictReader(out.splitlines())]
shares = query("select s.number, m.request_id, m.share_ns, m.kernel_ns from engine_step_member m join engine_step s on s.id = m.step_id order by 1, 2")
assert shares[:4] == [["1", "1", "60000", "48000"], ["1", "2", "40000", "32000"], ["2", "1", "58065", "0"], ["2", "2", "1935", "0"]], shares
assert query("select sum(share_ns) = (select sum(dur) from engine_step) and sum(kernel_ns) = 80000 from engine_step_member") == [["1"]]
rows = query("select request_id, outcome, model, ttft_ns, tpot_ns, queue_ns, prefill_ns, decode_ns, preempted_ns, respond_ns, dur, prompt_tokens, cached_tokens, output_tokens, preemptions from request order by request_id")
# 1: scheduled at 10, first token at 190, five tokens until 370. 2: first token at 120; preempted 195-240, prefill again 240-350.
assert rows[0] == ["1", "responded", "tiny", "190000", "45000", "10000", "180000", "180000", "0", "5000", "375000", "94", "4", "5", "0"], rows[0]
assert rows[1] == ["2", "responded", "tiny", "115000", "83333", "15000", "210000", "95000", "45000", "10000", "375000", "40", "0", "4", "1"], rows[1]
assert rows[2][1] == "rejected" and rows[3][1] == "open", rows
tokens = query("select request_id, number, gap_ns from token order by 1, 2")
assert tokens == [["1", "0", "190000"], ["1", "1", "40000"], ["1", "2", "0"], ["1", "3", "120000"], ["1", "4", "20000"],
                  ["2", "0", "115000"], ["2", "1", "70000"], ["2", "2", "160000"], ["2", "3", "20000"]], tokens
P
check json_is_json python3 -m json.tool json.out

# Prefill and decode in two processes, whose steps overlap: a kernel belongs to the step of its process, where steps of a process overlap to the later one.
# Members that did not fit into the step are in instants at its begin, of its own number and track only.
cat >apart.py <<'P'
import json, sys
ev = []
for pid, name in ((1, "prefill"), (2, "decode")):
    ev += [dict(ph="M", name="process_name", pid=pid, args=dict(name=name)), dict(ph="M", name="thread_name", pid=pid, tid=1, args=dict(name=name + " engine"))]
def x(pid, ts, end, cat, name, tid=1, **a): ev.append(dict(ph="X", pid=pid, tid=tid, ts=ts, dur=end - ts, cat=cat, name=name, args=a))
def i(pid, ts, cat, name, tid=1, **a): ev.append(dict(ph="i", s="t", pid=pid, tid=tid, ts=ts, cat=cat, name=name, args=a))
for r in (1, 2): i(1, r, "serving.life", "enqueued", 9, request=r)
x(1, 10, 50, "serving.engine", "engine step", step=1, members="1p30+1")
i(1, 10, "serving.engine", "step members", step=1, members="2p10+1")
i(1, 10, "serving.engine", "step members", step=77, members="5p10+1")
x(1, 20, 60, "kernel", "gemm", 3)
i(1, 70, "serving.life", "transferred", 9, request=1, took_ns=15000, bytes=4096, **{"from": 0, "to": 1})
x(2, 30, 100, "serving.engine", "engine step", step=1, members="1d1+1@30")
x(2, 80, 120, "serving.engine", "engine step", 2, step=2, members="2d3+1@10 1d1+1@31")
x(2, 40, 110, "kernel", "gemv", 3)
x(2, 85, 95, "io", "read", 4)
for r in (1, 2): i(1, 130 + r, "serving.life", "responded", 9, request=r)
json.dump(dict(traceEvents=ev), sys.stdout)
P
python3 apart.py >apart.json
run apart 0 "$STAVE" query apart.json --to csv "select s.engine, s.number, s.dur, s.kernel_ns, s.io_ns, m.request_id, m.share_ns, m.kernel_ns, m.io_ns from engine_step s join engine_step_member m on m.step_id = s.id order by s.ts, m.id"
run apart_request 0 "$STAVE" report llm apart.json --request 1

# One that waits while a long step of another runs, one that is preempted for long, one whose token is made and not sent.
cat >waits.py <<'P'
import json, sys
ev = []
def x(ts, end, step, members): ev.append(dict(ph="X", pid=1, tid=1, ts=ts, dur=end - ts, cat="serving.engine", name="engine step", args=dict(step=step, members=members)))
def i(ts, name, request, **a): ev.append(dict(ph="i", s="t", pid=1, tid=2, ts=ts, cat="serving.life", name=name, args=dict(request=request, **a)))
i(0, "enqueued", 1); i(105, "enqueued", 2)
x(10, 20, 1, "1p5+1"); x(100, 1100, 2, "1d500+1@5")
i(1101, "scheduled", 2); x(1101, 1111, 3, "2p5+1")
i(1120, "preempted", 1); x(1130, 1140, 4, "2d1+1@5"); i(3000, "resumed", 1); x(3010, 3020, 5, "1p506+1")
x(3030, 3040, 6, "2d1+1@6")
for t in (20, 1100, 3020): i(t, "streamed", 1, tokens=1)
for t in (1111, 1140, 5000): i(t, "streamed", 2, tokens=1)
i(5001, "responded", 1); i(5002, "responded", 2)
json.dump(dict(traceEvents=ev), sys.stdout)
P
python3 waits.py >waits.json
run waits 0 "$STAVE" report llm waits.json --why

# Another run that takes 1.2 times as long.
python3 "$engine" 1.2 >slower.json
run baseline 1 "$STAVE" report llm slower.json --baseline engine.json --slo ttft=150us
run baseline_lenient 0 "$STAVE" report llm slower.json --baseline engine.json --max-latency-regression 21 --max-throughput-drop 17 --json

# Bad input: words that are no members, requests that nobody knows or that had ended, steps without members, numbers past their limits.
cat >odd.py <<'P'
import json
def e(ph, ts, cat, name, tid=1, **k):
    return dict(ph=ph, ts=ts, cat=cat, name=name, pid=1, tid=tid, **k)
def life(ts, name, request, **a):
    return e("i", ts, "serving.life", name, 2, s="t", args=dict(request=request, **a))
def step(ts, members, **a):
    return e("X", ts, "serving.engine", "engine step", dur=10, args=dict(step=ts, members=members, **a))
ev = [life(0, "enqueued", 1), step(10, "1p5+1 x 2 9d1+1 1d1+99999999999 -1p1"), step(30, ""), step(50, "1d1+1@6", kv_used=-5, kv_total=99999999999999999999, tokens_in="many"),
      e("X", 70, "serving.engine", "engine step", dur=5, args={}), life(80, "responded", 1), life(81, "responded", 1), life(82, "cancelled", 77),
      life(83, "preempted", 1), step(90, "1d1+1@7"), life(100, "enqueued", "name of another engine"), life(120, "responded", "name of another engine"),
      step(130, " ".join("%dd1+4000000000" % i for i in range(100, 110)))]
json.dump(dict(traceEvents=ev), open("odd.json", "w"))
P
python3 odd.py
run odd 0 "$STAVE" report llm odd.json
run odd_requests 0 "$STAVE" report llm odd.json --csv --by request
run named 0 "$STAVE" report llm odd.json --request 'name of another engine'
# Times at both ends of the range, and a request that is scheduled before it is enqueued: nothing wraps, no bar leaves its line.
cat >extreme.txt <<'T'
# stave text 1
clock boottime
track #1 process uuid=0x1 pid=7 name="p"
track #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="engine 0"
-9223372036.854775000 instant #2 "scheduled" cat="serving.life" {request=1}
-9223372036.854774000 slice #2 "engine step" cat="serving.engine" dur=9223372036.854775000 {step=1 members="1p5+1 2p7"}
0.000000000 instant #2 "enqueued" cat="serving.life" {request=1}
1.000000000 slice #2 "engine step" cat="serving.engine" dur=9223372035.000000000 {step=2 members="1d1+1 2p7+1"}
2.000000000 instant #2 "transferred" cat="serving.life" {request=1 took_ns=9223372036854775807}
9223372036.854775000 instant #2 "responded" cat="serving.life" {request=1}
T
run extreme 0 "$STAVE" report llm extreme.txt --request 1
run_any extreme_report 0 "$STAVE" report llm extreme.txt --json --slo ttft=1s
run_any extreme_why 0 "$STAVE" report llm extreme.txt --why
run_any extreme_plot 0 "$STAVE" plot llm extreme.txt -o extreme.svg
# A request that a span or a log knows as a whole.
cat >whole.json <<'J'
{"traceEvents":[
{"ph":"X","cat":"serving","name":"llm request","pid":1,"tid":1,"ts":1000,"dur":5000,"args":{"request":"cmpl-1","model":"llama","prompt_tokens":12,"output_tokens":11,"queue_ns":500000,"ttft_ns":1500000,"prefill_ns":1000000,"decode_ns":3000000}},
{"ph":"X","cat":"serving","name":"llm request","pid":1,"tid":1,"ts":7000,"dur":2000,"args":{"request":"cmpl-2","outcome":"failed","ttft_ns":99999999999}}]}
J
run whole 0 "$STAVE" report llm whole.json --csv --by request
# Steps as vLLM annotates them for PyTorch's profiler: counts, no members.
cat >kineto.json <<'J'
{"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"execute_context_2(512)_generation_30(30)","pid":1,"tid":1,"ts":100,"dur":50},
{"ph":"X","cat":"user_annotation","name":"execute_context_0(0)_generation_32(32)","pid":1,"tid":1,"ts":160,"dur":20},
{"ph":"X","cat":"user_annotation","name":"execute_context_x(0)_generation_32(32)","pid":1,"tid":1,"ts":190,"dur":20},
{"ph":"X","cat":"gpu_user_annotation","name":"execute_context_0(0)_generation_32(32)","pid":0,"tid":7,"ts":161,"dur":20}]}
J
run kineto 0 "$STAVE" report llm kineto.json --csv --by step
# Dynamic batching is the case with one step: a batch, whose requests give one token each.
python3 "${engine%/*}/batches.py" >batches.json
run batches 0 "$STAVE" report llm batches.json --csv --by request
run batch_step 0 "$STAVE" query batches.json --to csv 'select number, ts - trace_start() as ts, dur, requests, engine, slice_id from engine_step'
echo '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}' >other.json
run nothing 3 "$STAVE" report llm other.json
run no_request 3 "$STAVE" report llm engine.json --request 99
for bad in ttft ttft= ttft=-1ms ttft=@5s speed=1s ',' 'ttft=1ms,' ''; do run_any "slo_$bad" 2 "$STAVE" report llm engine.json --slo "$bad"; done
run_any span_alone 2 "$STAVE" report llm engine.json --by span
run_any why_and_by 2 "$STAVE" report llm engine.json --why --by step

# Pictures: all panels, also of traces that lack requests, steps or both.
for name in engine odd whole kineto batches; do
  check "plot_$name" "$STAVE" plot llm $name.json -o $name.svg
  check "plot_panels_$name" test "$(grep -cE '>(Time to first token|Time between tokens|Time of a step|KV cache|Tokens per second|Latency distribution|Latency by load|Phases of a request by load)<' $name.svg)" = 8
done
run_any plot_nothing 1 "$STAVE" plot llm other.json -o other.svg
check plot_nothing_is_no_file test ! -e other.svg

# An engine whose own counters must agree with the trace, also after conversions.
if [ -x "$BUILD/examples/continuous_batching" ]; then
  check engine "$BUILD/examples/continuous_batching" out 250
  for form in json pftrace; do
    file=out/batching_trace.pftrace
    if [ $form = json ]; then "$STAVE" convert -q $file -o again.json; file=again.json; fi
    "$STAVE" query "$file" --to csv "select 'steps', count(*) from engine_step union all select 'members', count(*) from engine_step_member
      union all select 'tokens_in', sum(tokens_in) from engine_step_member union all select 'tokens_out', sum(tokens_out) from engine_step
      union all select 'cached', sum(cached_tokens) from engine_step union all select 'proposed', sum(proposed) from engine_step union all select 'accepted', sum(accepted) from request
      union all select 'preemptions', sum(preemptions) from request union all select 'finished', sum(outcome = 'responded') from request
      union all select 'cancelled', sum(outcome = 'cancelled') from request union all select 'prompt_tokens', sum(prompt_tokens) from request
      union all select 'streamed', count(*) from token" | tail -n +2 | tr ',' ' ' >$form.counts
    check "counters_$form" diff engine.out $form.counts
    exact() { [ "$("$STAVE" query "$file" --to csv "select (select sum(share_ns) from engine_step_member) = (select sum(dur) from engine_step), (select sum(kernel_ns) from request) = (select sum(dur) from kernel),
      (select count(*) from request where dur != queue_ns + prefill_ns + decode_ns + preempted_ns + transfer_ns + respond_ns)" | tail -n 1)" = 1,1,0 ]; }
    check "exact_$form" exact
  done
  check same_report diff <("$STAVE" report llm out/batching_trace.pftrace --json) <("$STAVE" report llm again.json --json)
  flows() { # each request has an arrow to its first step
    [ "$("$STAVE" query out/batching_trace.pftrace --to csv "select count(*) = (select count(*) from request) and count(distinct f.slice_out) = count(*) from flow f join slice a on a.id = f.slice_out
      join slice b on b.id = f.slice_in where a.name = 'llm request' and b.name = 'engine step'" | tail -n 1)" = 1 ]
  }
  check flows flows
  check valid "$STAVE" validate -q out/batching_trace.pftrace
fi
