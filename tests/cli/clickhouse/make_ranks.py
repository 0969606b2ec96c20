#!/usr/bin/env python3
"""make_ranks.py FOLDER RANKS STEPS: traces of a small training run, one per rank, with rows for every table of docs/sql.md and texts that are hard to quote."""
import json
import sys

BASE = 1711964651000000000
HARD = ["a\tb", "new\nline", "quote'\"", "back\\slash \\N", "\u00e9\u2713", "", "nul\u0000in"]


def rank_events(rank, steps):
    pid, main, stream = 100 + rank, 100 + rank, 7
    slow = 3 if rank == 2 else 1
    events = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "train"}},
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": main, "args": {"name": "main"}},
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": stream, "args": {"name": "stream 7"}},
    ]

    def slice_(cat, name, ts, dur, tid=main, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})

    for step in range(steps):
        at = 10000 * step + rank
        compute = 1000 * slow + 10 * (step % 5)
        slice_("user_annotation", f"ProfilerStep#{step}", at, compute + 6000)
        for k in range(4):
            cold = step < 2
            slice_("io", "pread64" if k else "openat", at + 10 + 100 * k, (90 if cold else 9) + k, path=f"/data/part{k}.bin", fd=5 + k,
                   bytes=4096 * (k + 1), offset=4096 * step, ret=4096, **({"errno": 2} if k == 3 and step == 1 else {}))
        slice_("cpu_op", "aten::mm", at + 500, compute, i=step, f=0.5 * step, t=HARD[step % len(HARD)], big=2**60 + step)
        slice_("kernel", "gemm", at + 600, compute - 50, tid=stream, device=0, stream=7, correlation=1000 + step, grid=[8, 1, 1], block=[128, 1, 1])
        slice_("gpu_memcpy", "Memcpy HtoD", at + 550, 40, tid=stream, device=0, stream=7, correlation=5000 + step, bytes=1 << 20)
        slice_("collective", "nccl:all_reduce", at + 500 + compute + 10, 3000 - 1000 * (slow - 1), op="allreduce", group="world", seq=step, bytes=4096,
               group_size=4)
        slice_("batch", "run batch", at + 5200, 300, batch_id=step, batch_size=4, model_name="m", worker_id=1)
        slice_("request", "infer", at + 5300, 100, request_id=10 * step, batch_id=step, model_name="m")
        events.append({"ph": "C", "name": "memory", "pid": pid, "ts": at + 20, "args": {"bytes": 1000 * step + 0.25}})
        events.append({"ph": "i", "s": "t", "cat": "mark", "name": HARD[step % len(HARD)] or "m", "pid": pid, "tid": main, "ts": at + 5})
        events.append({"ph": "s", "id": step, "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": main, "ts": at + 510})
        events.append({"ph": "f", "bp": "e", "id": step, "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": stream, "ts": at + 600})
    return events


folder, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for r in range(ranks):
    with open(f"{folder}/job.rank{r:04}.json", "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": r, "world_size": ranks}, "baseTimeNanoseconds": BASE,
                   "traceEvents": rank_events(r, steps)}, f)
