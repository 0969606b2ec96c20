#!/usr/bin/env python3
"""engine.py [SLOW]: two requests share an engine, one is preempted and computed again, one is refused, one never ends. Times are microseconds, times SLOW."""
import json, sys
slow = float(sys.argv[1]) if len(sys.argv) > 1 else 1
events = [dict(ph="M", name="thread_name", pid=1, tid=1, args=dict(name="engine 0")), dict(ph="M", name="thread_name", pid=1, tid=2, args=dict(name="life"))]
def life(ts, name, request, **args):
    events.append(dict(ph="i", s="t", cat="serving.life", name=name, pid=1, tid=2, ts=ts * slow, args=dict(request=request, **args)))
def slice_(ts, end, cat, name, tid=1, **args):
    events.append(dict(ph="X", cat=cat, name=name, pid=1, tid=tid, ts=ts * slow, dur=(end - ts) * slow, args=args))
def step(number, ts, end, members, **args):
    slice_(ts, end, "serving.engine", "engine step", step=number, members=members, **args)
events.append(dict(ph="i", s="t", cat="serving.life", name="model", pid=1, tid=2, ts=0, args=dict(model=0, name="tiny")))
life(0, "enqueued", 1, model=0)
life(5, "enqueued", 2, model=0)
life(10, "scheduled", 1)
step(1, 20, 120, "1p60~4 2p40+1", kv_used=7, kv_total=10, waiting=0, graph="eager")
life(50, "rejected", 3, model=0)
slice_(30, 110, "kernel", "gemm", tid=3)
step(2, 130, 190, "1p30+1@64 2d1+1@40", kv_used=10, kv_total=10, graph="eager")
life(195, "preempted", 2)
step(3, 200, 230, "1d3+2@94?2!1", graph="full")
life(240, "resumed", 2)
slice_(255, 345, "serving.load", "weights of a second model", tid=3)
step(4, 250, 350, "1d1+1@96 2p42+1", graph="eager")
life(352, "enqueued", 4, model=0)
step(5, 360, 370, "1d1+1@97 2d1+1@42", graph="full")
life(375, "responded", 1)
life(380, "responded", 2)
json.dump(dict(traceEvents=events), sys.stdout)
