#!/usr/bin/env python3
"""seeds.py EXAMPLE FILE.json: every event of the file, field by field, against what the programs that the example is modelled on
wrote (TraceSmith's perfetto_enhanced_trace.json, the tests of ferrum's trace.rs, Nova's "Complete Usage").

Deviations on purpose: times are ns on a real clock (theirs: µs from 0), so they are compared from the first event on; rows are real tracks
instead of pid = device, tid = stream; TraceSmith's cudaMalloc is an instant with a duration, which is none in any format: a slice here."""
import json, sys

example, path = sys.argv[1:]
trace = json.load(open(path))
events = trace["traceEvents"]
names, categories = {}, {}
for e in events:
    if e["ph"] == "M" and e["name"] == "thread_name":
        names[e["pid"], e["tid"]] = e["args"].get("track_name", e["args"]["name"])
        categories[e["pid"], e["tid"]] = e["args"].get("cat")
processes = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
start = min(e["ts"] for e in events if "ts" in e)

# One flat list: (kind, process, track, category, name, µs from the first, µs long, arguments); B and E become one; flows get
# the numbers 1, 2, … in the order of their first use.
flow_numbers, flat, open_slices = {}, [], {}
def flow(ident): return flow_numbers.setdefault(ident, len(flow_numbers) + 1)
for e in events:
    if e["ph"] == "M" or e.get("cat") == "stave.flow":
        continue
    args = dict(e.get("args", {}))
    if "stave.flow" in args:
        args["flow"] = [flow(f) for f in args.pop("stave.flow")]
    row = names.get((e["pid"], e.get("tid")), "-")
    where = (processes[e["pid"]], "-" if row == e.get("name") else row) # a counter of the process may have a row of its own or none
    record = [e["ph"], *where, e.get("cat") or categories.get((e["pid"], e.get("tid"))), e.get("name"), round(e["ts"] - start, 3), round(e["dur"], 3) if "dur" in e else None, args]
    if e["ph"] == "B":
        record[0] = "X"
        open_slices.setdefault((e["pid"], e["tid"]), []).append(record) # two lanes of a track have the same name
        flat.append(record)
    elif e["ph"] == "E":
        begin = open_slices[e["pid"], e["tid"]].pop()
        begin[6] = round(e["ts"] - start - begin[5], 3)
    else:
        flat.append(record)
arrows = {}
for e in events:
    if e.get("cat") == "stave.flow":
        arrows.setdefault(flow(e["id"]), []).append(e["ph"])

if example == "gpu_events":  # through --dialect tracesmith: TraceSmith's own fields
    def record(name, cat, kind, row, stream, corr, ts, dur, **more):
        return {"name": name, "cat": cat, "ph": "X", "ts": ts, "pid": 0, "tid": stream, "dur": dur,
                "args": {"track_name": row, "correlation_id": corr, "event_type": kind, "device_id": 0, "stream_id": stream, **more}}
    def memory(src, dst): return {"size_bytes": 1048576, "src_address": src, "dst_address": dst}
    kernel = {"grid_dim": [256, 1, 1], "block_dim": [256, 1, 1], "shared_memory_bytes": 0, "registers_per_thread": 32}
    expected = [
        record("cudaMalloc", "memory", "15", "GPU Memory Ops", 0, 1, 0, 50, **memory("0x0", "0x100000000")),
        record("cudaMemcpy", "memory", "3", "GPU Memory Copy (H->D)", 1, 1, 100, 200, **memory("0x7fff00000000", "0x100000000")),
        record("vectorAdd", "kernel", "1", "GPU Compute", 1, 2, 350, 500, **kernel),
        record("vectorAdd", "kernel", "2", "GPU Compute", 1, 2, 850, 0, **kernel),
        record("cudaMemcpy", "memory", "4", "GPU Memory Copy (D->H)", 1, 3, 900, 180, **memory("0x100000000", "0x7fff00000000")),
        record("cudaStreamSynchronize", "stream", "7", "GPU Synchronization", 1, 3, 1100, 50)]
    found = [dict(e, ts=e["ts"] - start) for e in events if e["ph"] not in "MCsf"]
    assert found == expected, "\n".join(f"{a}\n{b}" for a, b in zip(found, expected) if a != b)
    points = [(e["ph"], e["ts"] - start, e["pid"], e["tid"], e["id"]) for e in events if e["ph"] in "sf"]
    assert points == [("s", 0, 0, 0, 1), ("f", 100, 0, 1, 1), ("s", 350, 0, 1, 2), ("f", 850, 0, 1, 2), ("s", 900, 0, 1, 3), ("f", 1100, 0, 1, 3)], points
    assert processes[0] == "GPU Device 0" and names[0, 0] == "Stream 0" and names[0, 1] == "Stream 1"
    sys.exit(0)
if example == "layers":
    expected = [["X", "layers", "Layer 1", "norm", "rms_norm", None, 1000, {}], ["X", "layers", "Layer 1", "attn", "rope", None, 500, {}],
                ["X", "layers", "Layer 2", "norm", "rms_norm", None, 123, {}]]
    expected_arrows = 0
    ends = [e[5] + e[6] for e in flat]
    assert ends == sorted(ends), "pushed one after the other: each ends when it was pushed"
else:
    program, thread = "complete_usage", "complete_usage"
    expected = [["X", program, "Compute", "app", "matrix_ops", None, "some", {"size": 1024}],
                ["X", program, thread, "function", "multiply", None, "some", {"a": 10, "b": 20}],
                ["i", program, thread, "app", "checkpoint", None, None, {"result": 200}],
                ["C", program, "-", "app", "operations", None, None, {"value": 1}],
                ["i", program, thread, "app", "data_ready", None, None, {"flow": [1]}],
                ["i", program, thread, "app", "process", None, None, {"flow": [1]}]]
    for i in range(10):
        expected.append(["C", "Die:0", "power", "app", "Cluster:1 › power", None, None, {"value": 10.5 + i}])
        expected.append(["X", "Die:0", f"Cluster:{i % 2}", "app", "tile", None, 0.9, {"i": i}])
    expected_arrows = 1
    # A file that was sorted by time has the back-dated slices before the counter's values.
    key = lambda e: (e[4] in ("tile",), e[4], json.dumps(e[7], sort_keys=True))
    flat.sort(key=key), expected.sort(key=key)

for have, want in zip(flat, expected):
    have = [None if w is None and i == 5 else h for i, (h, w) in enumerate(zip(have, want))]
    if want[6] == "some" and have[6] is not None:
        have[6] = "some"
    if have[0] == "i" or have[0] == "C":
        have[6] = None
    if have != want:
        sys.exit(f"have {have}\nwant {want}")
if len(flat) != len(expected):
    sys.exit(f"{len(flat)} events, not {len(expected)}: {flat}")
if len(arrows) != expected_arrows or any(a != ["s", "t"] and a != ["s", "f"] for a in arrows.values()):
    sys.exit(f"arrows: {arrows}")
