#!/usr/bin/env python3
"""judge.py TRUTH.json ANSWER.json CAUSE: does `stave whatif --json` say what tests/harness/job_traces.py computed? Prints what differs. CAUSE: the first culprit's name, "none", or "any"."""
import json
import sys

truth, answer = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
wrong = []


def near(what, is_, should, by):
    if not abs(is_ - should) <= by:
        wrong.append("%s: %r, expected %r" % (what, is_, should))


if answer.get("version") != 1:
    wrong.append("version")
near("measured_ns", answer["measured_ns"], truth["measured_ns"], truth["measured_ns"] * 0.001)
near("replayed_ns", answer["replayed_ns"], truth["measured_ns"], truth["measured_ns"] * 0.002)
near("slowdown", answer["slowdown"], truth["slowdown"], 0.002)
for by in ("rank", "stage", "host"):
    got = {x["name"]: x for x in answer["by"][by]}
    if set(got) != set(truth.get(by, {})):
        wrong.append("%s: %s, expected %s" % (by, sorted(got), sorted(truth.get(by, {}))))
        continue
    for name, slowdown in truth.get(by, {}).items():
        near(name, got[name]["slowdown"], slowdown, 0.003)
        if name in truth.get("explains", {}) and truth["slowdown"] > 1.02:
            near("explains of " + name, got[name]["explains"], truth["explains"][name], 0.01)
    order = [x["slowdown"] for x in answer["by"][by]]
    if order != sorted(order, reverse=True):
        wrong.append("%s: not by slowdown" % by)
cause = answer["culprits"][0]["name"] if answer["culprits"] else "none"
if sys.argv[3] not in ("any", cause):
    wrong.append("cause: %s, expected %s" % (cause, sys.argv[3]))
print("\n".join(wrong))
sys.exit(bool(wrong))
