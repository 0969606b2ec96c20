#!/usr/bin/env python3
"""Checks the files of a traced server, from the description of the format alone.

    serving.py json FILE              layout, names, tids, flows, prefixes of batching_trace.json
    serving.py csv FILE               columns and arithmetic of the summary
    serving.py same JSON CSV          each request in exactly one batch, the same in both"""
import csv
import json
import sys

PHASES = ["queue", "batch", "submit", "scheduling", "run", "callback"]
SEED = ("batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,"
        "submit_ms,scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms,warmup").split(",")


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["traceEvents"]


def of_name(event):
    return event["name"].removeprefix("warming_")


def args(event):
    """The arguments without the prefix, which all keys have or none."""
    warm = event["name"].startswith("warming_")
    for key in event["args"]:
        assert key.startswith("warming_") == warm, event
    return {k.removeprefix("warming_"): v for k, v in event["args"].items()}


def check_span(event):
    a = args(event)
    assert event["ts"] == a["start_ts"] and event["ts"] + event["dur"] == a["end_ts"], event
    assert event["dur"] >= 1


def check_flow(event, out, into):
    warm = event["name"].startswith("warming_")
    batch = args(event)["batch_id"]
    assert event["id_scope"] == ("warming" if warm else "serving"), event
    assert event["id2"] == {"local": batch}, event
    assert event["bind_id"] == "0x%016X" % (batch | (1 << 63 if warm else 0)), event
    assert event.get("flow_out", False) == out and event.get("flow_in", False) == into, event


def check_event(event, lanes):
    name, tid = of_name(event), event.get("tid")
    if event["ph"] == "M":
        return
    assert event["pid"] == 1
    if event["cat"] in ("request", "monitoring"):
        return
    assert event["cat"] == "batching", event
    if name in ("request_enqueued", "request_rejected"):
        assert event["ph"] == "i" and tid == 1 and "s" not in event
        assert list(args(event)) == ["request_id", "model_name", "ts_ns"] and args(event)["ts_ns"] // 1000 == event["ts"], event
    elif name in ("batch", "batch_build"):
        assert event["ph"] == "X" and tid == (2 if name == "batch" else 3), event
        check_span(event)
        assert ("bind_id" in event) == (name == "batch_build")
        if name == "batch_build":
            check_flow(event, True, False)
        assert list(args(event)) == ["batch_id", "batch_size", "model_name", "request_ids", "start_ts", "end_ts"], event
    elif name == "batch_over":
        a = args(event)
        assert event["ph"] == "i" and tid == 4 and list(a) == ["batch_id", "outcome", "ts_ns", "times_ns"], event
        known = [t for t in a["times_ns"] if t != -1]
        assert len(a["times_ns"]) == 7 and a["ts_ns"] // 1000 == event["ts"] and known and max(known) <= a["ts_ns"], event
    elif name == "batch_submitted":
        assert event["ph"] == "i" and tid == 4 and "dur" not in event, event
        check_flow(event, True, True)
        assert list(args(event)) == ["batch_id", "batch_size", "model_name", "request_ids", "worker_id", "worker_type"], event
    else:
        a = args(event)
        assert name == a["model_name"], event
        check_flow(event, False, True)
        check_span(event)
        assert list(a) == ["batch_id", "batch_size", "model_name", "worker_id", "worker_type", "start_ts", "end_ts"]
        assert (tid - 10) // 1000 == a["worker_id"], event
        lanes.setdefault(tid, []).append((event["ts"], event["ts"] + event["dur"]))


def check_ids(events):
    """Each id is one request: one begin and one end, of one name, in the warm-up and after it."""
    seen = {}
    for e in events:
        if e.get("cat") == "request":
            seen.setdefault(e["id"], []).append((e["ph"], e["name"]))
    for i, pair in seen.items():
        assert [ph for ph, _ in pair] == ["b", "e"] and pair[0][1] == pair[1][1], (i, pair)


def check_json(path):
    events, lanes, names = load(path), {}, {}
    check_ids(events)
    for event in events:
        check_event(event, lanes)
        if event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
    assert {1: "request enqueued", 2: "batch", 4: "batch submitted"}.items() <= names.items(), names
    assert names[3] in ("dynamic batching", "batch assembly")
    for tid, spans in lanes.items():
        assert tid in names, f"{tid} was not declared"
        spans.sort()
        for a, b in zip(spans, spans[1:]):
            assert a[1] <= b[0] + 1, f"lane {tid}: {a} and {b} overlap"  # whole microseconds


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def check_csv(path):
    for row in rows(path):
        assert list(row)[: len(SEED)] == SEED, list(row)
        assert row["warmup"] == "false"
        total = sum(float(row[f"excl_{p}_ms"]) for p in PHASES)
        assert abs(total - float(row["total_ms"])) < 0.0006, (total, row)
        assert float(row["submit_ms"]) + 0.002 >= float(row["batch_ms"]) or row["failed"] == "true"
        arrivals = [int(x) for x in row["request_arrival_us"].split(";")]
        assert len(arrivals) == len(row["request_ids"].split(";"))
        assert arrivals == [int(x) // 1000 for x in row["request_arrival_ns"].split(";")], row
        for column in ("request_queue_ns", "request_total_ns"):
            assert len(row[column].split(";")) == len(arrivals), row
        outcomes = row["request_outcome"].split(";") if row["request_outcome"] else ["responded"] * len(arrivals)
        assert len(outcomes) == len(arrivals) and set(outcomes) <= {"open", "responded", "rejected", "failed", "cancelled"}, row
        if row["batch_id"] == "-1":
            assert len(arrivals) == 1 and outcomes[0] != "responded" and row["batch_size"] == "0", row


def check_same(json_path, csv_path):
    seen, in_json = {}, {}
    for row in rows(csv_path):
        for request in row["request_ids"].split(";") if row["batch_id"] != "-1" else []:
            assert request not in seen, f"request {request} is in two batches"
            seen[request] = row["batch_id"]
    for event in load(json_path):
        if event["name"] == "batch_build":
            for request in event["args"]["request_ids"]:
                assert str(request) not in in_json
                in_json[str(request)] = str(event["args"]["batch_id"])
    assert seen.items() <= in_json.items()
    print(len(seen))


what, *files = sys.argv[1:]
{"json": check_json, "csv": check_csv, "same": check_same}[what](*files)
