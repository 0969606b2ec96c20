#!/usr/bin/env python3
"""ferrum_strict.py FILE…: reads a trace as ferrum's own code does (a struct with u64 and u32 fields, no other ones), and more strictly: the order of
the members, no empty args. Prints a line per event: name, cat (escaped), dur, pid, tid, args."""
import json, sys

KEYS = ["name", "cat", "ph", "ts", "dur", "pid", "tid", "args"]
LIMITS = {"ts": 2**64, "dur": 2**64, "pid": 2**32, "tid": 2**32}

def members(pairs):
    keys = [k for k, _ in pairs]
    assert len(set(keys)) == len(keys), f"a member twice: {keys}"
    return dict(pairs)

def load(path):
    raw = open(path, "rb").read()
    assert raw.startswith(b"[") and raw.endswith(b"]"), f"{path}: not a bare array: {raw[:40]!r} … {raw[-40:]!r}"
    def refuse(word):
        raise AssertionError(f"{path}: {word} is not JSON")
    events = json.loads(raw.decode("utf-8"), object_pairs_hook=members, parse_constant=refuse)
    for e in events:
        assert list(e) == (KEYS if "args" in e else KEYS[:-1]), f"members {list(e)}"
        assert e["ph"] == "X" and isinstance(e["name"], str) and isinstance(e["cat"], str), e
        for key, limit in LIMITS.items():
            assert type(e[key]) is int and 0 <= e[key] < limit, f"{key} of {e}"
        assert e.get("args") != {}, e
    return events

if __name__ == "__main__":
    for e in (e for path in sys.argv[1:] for e in load(path)):
        print(*(e[k].encode("unicode_escape").decode() for k in ("name", "cat")), e["dur"], e["pid"], e["tid"], json.dumps(e.get("args", {}), sort_keys=True), sep="\t")
