"""What stave.serving costs: lines `name value unit` for bench/run. The method is that of python_events.py; each figure is above an empty `with` block.

A burst is smaller than the tracer's queue, which is emptied between bursts, so that the writing thread is not part of the figure.
"""
import os
import sys
import time

import stave.serving

BURST, BURSTS = 2000, 60

STATEMENTS = {
    "loop": "pass",
    "empty_with": "with empty: pass",
    "request_with": "with request(model): pass",
    "request_traced": "with request(model, header): pass",
    "request_plain": "r = request(model); r.dequeued(); r.responded()",
    "call": "known.dequeued()",
    "batch_of_8": "with batch(eight) as b:\n            with b.run(0): pass",
    "step_of_8": "with step(engine) as s:\n            for r in eight: s.decode(r)",
    "off_request_with": "with off_request(model): pass",
}
PARTS = {"call": 1, "request_with": 1, "request_traced": 1, "request_plain": 3, "batch_of_8": 2, "step_of_8": 9, "off_request_with": 1}


class Empty:
    def __enter__(self): pass
    def __exit__(self, *exc): pass


def main(folder):
    server = stave.serving.open(os.path.join(folder, "serving"), truncate=True)
    off = stave.serving.open(enabled=False)
    eight = [server.request("m") for _ in range(8)]
    scope = {"empty": Empty(), "request": server.request, "off_request": off.request, "batch": server.batch, "step": server.step, "eight": eight,
             "known": eight[0], "model": "m", "engine": "e", "header": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
             "clock": time.perf_counter_ns}
    bursts = {}
    for name, statement in STATEMENTS.items():
        exec(f"def burst():\n    t = clock()\n    for _ in range({BURST}):\n        {statement}\n    return clock() - t\n", scope)
        bursts[name] = scope["burst"]
    best = dict.fromkeys(bursts, 10**12)
    for _ in range(BURSTS):
        for name, burst in bursts.items():
            server.flush()
            best[name] = min(best[name], burst())
    empty = (best["empty_with"] - best["loop"]) / BURST
    print(f"python_serving_empty_with {empty:.4g} ns")
    for name, calls in PARTS.items():
        whole = (best[name] - best["loop"]) / BURST
        print(f"python_serving_{name} {whole - empty:.4g} ns")
        print(f"python_serving_{name}_per_call {(whole - empty) / calls:.4g} ns")
    server.close()


main(sys.argv[1])
