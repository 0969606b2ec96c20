#!/usr/bin/env python3
"""same_trace.py A.json B.json: do two Kineto files say the same? Events field by field with times in whole ns, arguments in order, arrows by what
they join (their numbers may differ), names of rows, other keys. Prints the first differences and exits 1."""
import collections, gzip, json, sys
from decimal import Decimal

def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        return json.load(f, parse_float=Decimal)
def ns(us): return None if us is None else int((Decimal(us) * 1000).to_integral_value())
def number(v): return int(v) if isinstance(v, str) and v.lstrip("-").isdigit() else v
def value(v):
    if isinstance(v, list): return tuple(value(x) for x in v)
    if isinstance(v, dict): return tuple((k, value(x)) for k, x in v.items())
    return float(v) if isinstance(v, Decimal) else v

def events(trace):
    plain, arrows, last = collections.Counter(), collections.defaultdict(list), {}  # the last name counts
    for e in trace["traceEvents"]:
        ph = e["ph"]
        where = (number(e.get("pid")), number(e.get("tid")), ns(e.get("ts")))
        if e.get("s") == "g":  # of the whole trace, wherever the file has it
            where = where[2:]
        if ph in "stf":
            arrows[e.get("cat"), e["id"]].append((ph, e["name"], *where))
        elif ph == "M":
            if e["name"] != "thread_sort_index" and not (e["name"] == "process_labels" and e["args"]["labels"] in ("CPU", "")):
                last[e["name"], number(e["pid"]), number(e["tid"]) if e["name"].startswith("thread") else 0] = value(e["args"])
        else:
            plain[ph, e.get("cat"), e["name"], *where, ns(e.get("dur")), e.get("s"), value(e.get("args", {}))] += 1
    joined = collections.Counter((cat, tuple(sorted(points))) for (cat, _), points in arrows.items())
    return plain, joined, collections.Counter((*key, args) for key, args in last.items())

a, b = load(sys.argv[1]), load(sys.argv[2])
bad = 0
for what, x, y in zip(("events", "arrows", "names of rows"), events(a), events(b)):
    less, more = x - y, y - x
    if what == "names of rows":
        more.clear()  # a row without a name may get one
        less = collections.Counter({k: n for k, n in less.items() if any(v[1] == k[1] for v in y)})  # of rows without events
        less = collections.Counter({k: n for k, n in less.items() if k[0] in ("process_name", "thread_name") and (k[0] != "thread_name" or any(v[1:3] == k[1:3] for v in y))})
    for sign, rest in (("-", less), ("+", more)):
        for key, n in list(rest.items())[:3]:
            print(sign, what, n, str(key)[:600])
    bad += len(less) + len(more)
for key in a.keys() - {"traceEvents", "displayTimeUnit"}:
    if value(a[key]) != value(b.get(key)):
        print("- key", key, str(a[key])[:200], "now", str(b.get(key))[:200])
        bad += 1
sys.exit(bad != 0)
