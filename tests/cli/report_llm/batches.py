#!/usr/bin/env python3
"""batches.py: dynamic batching, as instants of the category serving.life: a batch is a step that has no slice of its own."""
import json
import sys
def life(ts, name, **a):
    return dict(ph="i", s="t", cat="serving.life", name=name, pid=1, tid=2, ts=ts, args=a)
ev = [life(0, "enqueued", request=1), life(2, "enqueued", request=2), life(5, "dequeued", request=1), life(5, "dequeued", request=2),
      life(10, "collected", batch=7, requests=2, samples=2, n=2, r0=1, r1=2, took_ns=5000), life(11, "submitted", batch=7), life(20, "started", batch=7, worker=0),
      life(51, "finished", batch=7), life(52, "callback", batch=7, took_ns=1000), life(60, "responded", request=1), life(61, "responded", request=2)]
json.dump(dict(traceEvents=ev), sys.stdout)
