#!/usr/bin/env python3
"""law.py TRUTH FILE.json…: the events of the files (parts of one recording) are those that law.c says it emitted: kind, name, row, times,
durations, arguments, values of counters. Pairs begins and ends by itself."""
import json, sys
from collections import Counter
from decimal import Decimal

truth_path, *files = sys.argv[1:]
ns = lambda us: int(Decimal(us) * 1000)
bad = []


def fail(text):
    bad.append(text)
    if len(bad) <= 5:
        print(" ", text[:600])


def plain(value):
    return json.dumps(value, sort_keys=True)


def slices_of(path):
    """The slices, instants and counter values of one file."""
    events = json.load(open(path), parse_float=str)["traceEvents"]
    names, stacks = {}, {}
    for e in events:
        if e["ph"] == "M" and e["name"] == "thread_name":
            names[e["pid"], e["tid"]] = e["args"].get("track_name", e["args"]["name"])
    for e in events:
        where = e["pid"], e.get("tid")
        if e["ph"] in "BX":
            s = {"kind": "slice", "name": e.get("name", ""), "row": names.get(where), "ts": ns(e["ts"]), "args": e.get("args", {}),
                 "dur": ns(e["dur"]) if e["ph"] == "X" else -1, "cat": e.get("cat")}
            if e["ph"] == "B":
                stacks.setdefault(where, []).append(s)
            yield s
        elif e["ph"] == "E":
            s = stacks[where].pop()
            s["dur"] = ns(e["ts"]) - s["ts"]
            s["args"] = {**s["args"], **e.get("args", {})}
        elif e["ph"] in "iI":
            yield {"kind": "instant", "name": e.get("name", ""), "row": names.get(where), "ts": ns(e["ts"]), "args": e.get("args", {}), "cat": e.get("cat")}
        elif e["ph"] == "C":
            for value in e["args"].values():
                yield {"kind": "counter", "row": e["name"], "value": float(value)}


def same(a, b):
    """a: of the file, its decimals as text; b: what was emitted."""
    if isinstance(b, dict):
        return isinstance(a, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in b)
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, float):
        return float(a) == b
    return type(a) is type(b) and a == b


want, want_counters = {}, Counter()
for line in open(truth_path, encoding="utf-8"):
    t = json.loads(line)
    if t["kind"] == "counter":
        want_counters[t["row"], t["value"]] += 1
    else:
        want[t["args"]["n"]] = t

got, ends, counters, zero = {}, {}, Counter(), None
for path in files:
    for s in list(slices_of(path)):
        if s["kind"] == "counter":
            counters[s["row"], s["value"]] += 1
        elif s["name"] == "zero":
            zero = s["ts"]
        elif s.get("cat") == "law":
            n = s["args"].get("n")
            if len(files) > 1:
                s["args"].pop("stave.part", None)
            if len(files) > 1 and s["args"].pop("continued", None): # it began in an earlier part, which has the arguments of its begin
                if "e" in s["args"]:
                    ends[s["args"]["e"]] = s["args"]
                continue
            if n in got:
                fail(f"twice: {s}")
            got[n] = s

if zero is None:
    fail("the first event is missing")
for n, t in want.items():
    s = got.pop(n, None)
    if s is None:
        fail(f"missing: {t}")
        continue
    args = {**s["args"], **ends.pop(n, {})}
    if not same(args, t["args"]):
        fail(f"arguments: {plain(args)} instead of {plain(t['args'])}")
    if s["kind"] != t["kind"] or s["name"] != t["name"] or ("row" in t and s["row"] != t["row"]):
        fail(f"got {s} for {t}")
    if "ts" in t and (s["ts"] - zero, s["dur"]) != (t["ts"], t["dur"]):
        fail(f"times: {s['ts'] - zero} {s['dur']} instead of {t}")
    if "ts" not in t and t["kind"] == "slice" and len(files) == 1 and (s["dur"] == -1) != (t.get("dur") == -1):
        fail(f"an end: {s} for {t}")
for s in [*got.values(), *ends.values()]:
    fail(f"never emitted: {s}")
if len(files) == 1 and counters != want_counters:
    fail(f"counters: {counters - want_counters} too many, {want_counters - counters} too few")
if len(files) > 1 and want_counters - counters: # each part begins with the values that there were
    fail(f"counters: {want_counters - counters} too few")
print(len(want), "events,", sum(want_counters.values()), "values,", len(bad), "wrong")
sys.exit(1 if bad or not want else 0)
