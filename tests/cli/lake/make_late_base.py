#!/usr/bin/env python3
"""make_late_base.py FOLDER: late0.json … late3.json, ranks as PyTorch's profiler writes them, with the base of the times after the events; rank 1 has enough of them
that its Perfetto file repeats its clocks. early0.json … early3.json: the same with the base in front."""
import json
import sys

for rank in range(4):
    n = 60000 if rank == 1 else 100
    events = [{"ph": "X", "pid": 100 + rank, "tid": 1, "ts": 1000 + i * 10, "dur": 5, "name": "op%d" % (i % 7), "cat": "cpu_op", "args": {"i": i, "shape": "[%d, 4096]" % i}}
              for i in range(n)]
    base = {"baseTimeNanoseconds": 1700000000000000000 + rank * 3000000}
    info = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4}}
    with open("%s/late%d.json" % (sys.argv[1], rank), "w") as f:
        json.dump({**info, "traceEvents": events, **base}, f)
    with open("%s/early%d.json" % (sys.argv[1], rank), "w") as f:
        json.dump({**info, **base, "traceEvents": events}, f)
