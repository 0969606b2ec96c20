#!/usr/bin/env python3
"""Writes traces of simulated jobs and prints what a replay of them must say, as JSON.

    job_traces.py pipeline OUT.json [--dp N] [--pp N] [--micro N] [--steps N] [--slow DP,STAGE,FACTOR] [--cut WHAT]
    job_traces.py kineto OUT [--ranks N] [--steps N] [--slow RANK,FACTOR] [--buckets N]
    job_traces.py ranks OUT.txt [--ranks N] [--steps N] [--plant sleep|node|equal|circle|lost] [--clocks] [--per-host N]

A pipeline is a timeline in Chrome's JSON: a process for each data-parallel rank, threads "PP rank S, TP rank 0, …", operations with step, model_chunk, mb_id and seq_id. Ranks are traces in Stave's text
with collectives of all ranks. Kineto writes OUT.rankN.json, PyTorch's profiles of ranks whose all-reduces of buckets run beside the backward pass. The expected slowdowns are computed here, by rules that are written down a second time."""
import argparse
import json
import statistics
import sys

sys.setrecursionlimit(1000000)


class Dice:
    """The same numbers everywhere."""

    def __init__(self, seed):
        self.state = seed

    def roll(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


# ---- a pipeline, one forward and one backward at a time ----

def schedule(pp, stage, micro):
    warm = min(pp - 1 - stage, micro)
    order = [("F", i) for i in range(warm)]
    for i in range(micro - warm):
        order += [("F", warm + i), ("B", i)]
    return order + [("B", i) for i in range(micro - warm, micro)]


class Pipeline:
    """One step: lengths[kind, dp, stage, i] in ns; begin and end of each operation follow."""

    def __init__(self, a, lengths):
        self.a, self.lengths, self.begin, self.end = a, lengths, {}, {}
        self.orders = [schedule(a.pp, s, a.micro) for s in range(a.pp)]
        for d in range(a.dp):
            for s in range(a.pp):
                self.ended(("optimizer", d, s, 0))
        self.total = max(self.end.values())

    def members(self, op):
        kind, d, s, i = op
        up = {"forward-send": ("forward-recv", s + 1), "forward-recv": ("forward-send", s - 1),
              "backward-send": ("backward-recv", s - 1), "backward-recv": ("backward-send", s + 1)}
        if kind in up:
            return [op, (up[kind][0], d, up[kind][1], i)]
        if kind in ("params-all-gather", "grads-reduce-scatter"):
            return [(kind, x, s, i) for x in range(self.a.dp)]
        if kind == "embedding-grads-all-reduce":
            return [(kind, d, x, i) for x in sorted({0, self.a.pp - 1})]
        if kind == "optimizer-clip-main-grad":
            return [(kind, x, y, i) for x in range(self.a.dp) for y in range(self.a.pp)]
        return [op]

    def before(self, op):
        kind, d, s, i = op
        order = self.orders[s]
        names = {"F": "forward-compute", "B": "backward-compute"}
        if kind == "params-all-gather":
            return []
        if kind in names.values():
            way = kind[0].upper()
            at = order.index((way, i))
            wait = [(names[order[at - 1][0]], d, s, order[at - 1][1])] if at else [("params-all-gather", d, s, 0)]
            if s != (0 if way == "F" else self.a.pp - 1):
                wait.append((kind.split("-")[0] + "-recv", d, s, i))
            return wait
        if kind.endswith("-send"):
            return [(kind.split("-")[0] + "-compute", d, s, i)] + ([(kind, d, s, i - 1)] if i else [])
        if kind.endswith("-recv"):
            return [(kind.split("-")[0] + "-compute", d, s, i - 1), (kind, d, s, i - 1)] if i else []
        tail = ["gc", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "grads-reduce-scatter", "optimizer-clip-main-grad", "optimizer"]
        if s not in (0, self.a.pp - 1):
            tail.remove("embedding-grads-all-reduce")
        at = tail.index(kind)
        return [(tail[at - 1], d, s, 0)] if at else [(names[order[-1][0]], d, s, order[-1][1])]

    def began(self, op):
        if op not in self.begin:
            self.begin[op] = max([self.ended(x) for x in self.before(op)], default=0)
        return self.begin[op]

    def ended(self, op):
        if op not in self.end:
            group = self.members(op)
            latest = max(self.began(x) for x in group)
            for x in group:
                self.end[x] = latest + self.lengths[x]
        return self.end[op]


BASE = {"forward-compute": 10000000, "backward-compute": 20000000, "gc": 100000, "optimizer": 3000000, "params-all-gather": 2000000, "grads-reduce-scatter": 4000000,
        "layernorm-grads-all-reduce": 50000, "embedding-grads-all-reduce": 1000000, "optimizer-clip-main-grad": 200000, "forward-send": 300000, "forward-recv": 300000,
        "backward-send": 300000, "backward-recv": 300000}
COMPUTE = ("forward-compute", "backward-compute", "gc", "optimizer")


def lengths_of(a, step):
    dice, out = Dice(step * 7919 + 1), {}
    slow = a.slow.split(",") if a.slow else None
    for kind, ns in BASE.items():
        for d in range(a.dp):
            for s in range(a.pp):
                if (kind == "embedding-grads-all-reduce" and s not in (0, a.pp - 1)) or (kind in ("forward-send", "backward-recv") and s == a.pp - 1) or \
                        (kind in ("forward-recv", "backward-send") and s == 0):
                    continue
                for i in range(a.micro if kind.split("-")[0] in ("forward", "backward") else 1):
                    out[kind, d, s, i] = ns + dice.roll(ns // 20)
                    if slow and kind in COMPUTE[:2] and int(slow[0]) in (d, -1) and int(slow[1]) in (s, -1):
                        out[kind, d, s, i] = int(out[kind, d, s, i] * float(slow[2]))
    return out


def pipeline(a):
    measured = [lengths_of(a, step) for step in range(a.steps)]
    ideal = {}
    for kind in BASE:
        values = [ns for step in measured for op, ns in step.items() if op[0] == kind]
        if values:
            ideal[kind] = round(statistics.fmean(values)) if kind in COMPUTE else round(statistics.median(values))

    def replay(is_measured):
        return sum(Pipeline(a, {op: ns if is_measured(op) else ideal[op[0]] for op, ns in step.items()}).total for step in measured)

    runs = [Pipeline(a, step) for step in measured]
    events, zero = [], 1000
    for number, run in enumerate(runs):
        for op in run.end:
            kind, d, s, i = op
            lane = 0 if kind in COMPUTE else 1 if kind.endswith(("send", "recv")) else 3
            events.append({"name": kind, "cat": kind, "ph": "X", "pid": d, "tid": (s * a.dp + d) * 5 + lane, "ts": (zero + run.began(op)) / 1000, "dur": (run.end[op] - run.began(op)) / 1000,
                           "args": {"step": 16 + 3 * number, "model_chunk": 0, "mb_id": i if lane == 0 else -1, "seq_id": i}})
        zero += run.total + 5000000
    if a.cut == "recv":
        events = [e for e in events if e["name"] != "forward-recv" or e["args"]["seq_id"] != 1]
    if a.cut == "worker":
        events = [e for e in events if e["pid"] != a.dp - 1 or e["args"]["step"] != 16]
    if a.cut == "steps":
        for e in events:
            del e["args"]["step"]
    for d in range(a.dp):
        events.append({"name": "process_name", "ph": "M", "pid": d, "args": {"name": "DP rank [%d]" % d}})
        for s in range(a.pp):
            for lane, name in enumerate(("compute", "pp-comm", "tp-comm", "dp-comm", "misc")):
                events.append({"name": "thread_name", "ph": "M", "pid": d, "tid": (s * a.dp + d) * 5 + lane, "args": {"name": "PP rank %d, TP rank 0, %s" % (s, name)}})
    with open(a.out, "w", encoding="ascii") as f:
        json.dump(events, f)
    t, best = sum(run.total for run in runs), replay(lambda op: False)
    told = {"measured_ns": t // a.steps, "slowdown": t / best,
            "rank": {"DP rank %d" % d: replay(lambda op, d=d: op[1] == d) / best for d in range(a.dp)},
            "stage": {"stage %d" % s: replay(lambda op, s=s: op[2] == s) / best for s in range(a.pp if a.pp > 1 else 0)}}
    if t > best:
        told["explains"] = {"DP rank %d" % d: (t - replay(lambda op, d=d: op[1] != d)) / (t - best) for d in range(a.dp)}
    return told


# ---- ranks with an all-reduce in each step ----

def work_of(a, rank, step):
    dice = Dice(rank * 1000003 + step * 7919 + 1)
    for _ in range(4):
        dice.roll(2)
    ns = 20000000 + dice.roll(400000)
    if a.plant == "sleep" and rank == 2 and step % 10 == 9:
        ns += 150000000
    if a.plant == "sleep" and rank == 1:
        ns += 1000000
    if a.plant == "node" and rank // a.per_host == 1:
        ns = ns * 13 // 10
    return ns


def ranks(a):
    own, moved = 1000000, 2000000  # after the all-reduce; its transfer
    lines = ["# stave text 1", "clock boottime"] + ([] if a.clocks else ['meta "boot_id" "one"'])
    zero = [(r * 7777777 if a.clocks else 0) + 1000000000 for r in range(a.ranks)]
    at, pieces = list(zero), []
    body = []
    for r in range(a.ranks):
        lines += ['meta "rank %d/rank" "%d"' % (r, r), 'meta "rank %d/hostname" "node%d"' % (r, r // a.per_host),
                  'track #%d process uuid=0x%x pid=%d name="train" origin="rank %d"' % (2 * r + 1, 2 * r + 1, 100 + r, r),
                  "track #%d thread uuid=0x%x parent=#%d pid=%d tid=%d" % (2 * r + 2, 2 * r + 2, 2 * r + 1, 100 + r, 100 + r)]
    total = 0
    for step in range(a.steps):
        work = [work_of(a, r, step) for r in range(a.ranks)]
        pieces.append([w + (own if step else 0) for w in work])
        total += max(work) + moved + own
        latest = max(at[r] - zero[r] + work[r] for r in range(a.ranks))
        for r in range(a.ranks):
            begin, arrives, ends = at[r], at[r] + work[r], zero[r] + latest + moved
            seq = step
            if a.plant == "circle" and r == 1:
                seq = step ^ 1
            body.append('%d.%09d slice #%d "step %d" dur=%d.%09d' % (*divmod(begin, 10**9), 2 * r + 2, step, *divmod(ends + own - begin, 10**9)))
            if a.plant != "lost" or r != 1 or step % 7:
                body.append('%d.%09d slice #%d "allreduce" cat="collective" dur=%d.%09d {op="allreduce" group="world" seq=%d bytes=4096 group_size=%d rank=%d}' %
                            (*divmod(arrives, 10**9), 2 * r + 2, *divmod(ends - arrives, 10**9), seq, a.ranks, r))
            at[r] = ends + own
    with open(a.out, "w", encoding="ascii") as f:
        f.write("\n".join(lines + body) + "\n")
    flat = [ns for step in pieces for ns in step]
    mean = statistics.fmean(flat)

    def replay(is_measured):
        return sum(max(ns if is_measured(r) else mean for r, ns in enumerate(step)) for step in pieces) + a.steps * moved + own

    best = replay(lambda r: False)
    told = {"measured_ns": total // a.steps, "slowdown": total / best}
    if a.ranks <= 16:
        told["rank"] = {"rank %d" % r: replay(lambda x, r=r: x == r) / best for r in range(a.ranks)}
        told["explains"] = {"rank %d" % r: (total - replay(lambda x, r=r: x != r)) / (total - best) for r in range(a.ranks)}
    if a.ranks <= 16 and a.ranks > a.per_host:
        told["host"] = {"node%d" % h: replay(lambda x, h=h: x // a.per_host == h) / best for h in range((a.ranks + a.per_host - 1) // a.per_host)}
    return told


# ---- PyTorch's profiles, with communication beside computing ----

def overlapped(a, lengths):
    """Two streams for each rank; lengths[rank][step] are forward, backwards, transfers, optimizer. Returns begins and ends of all kernels and the time of the whole."""
    now, rows = [0] * a.ranks, []
    for step in range(a.steps):
        done = [now[r] + lengths[r][step][0] for r in range(a.ranks)]
        row = [[("forward", now[r], done[r])] for r in range(a.ranks)]
        free = [0] * a.ranks
        for i in range(a.buckets):
            for r in range(a.ranks):
                begin = done[r]
                done[r] += lengths[r][step][1 + i]
                row[r].append(("backward", begin, done[r]))
                free[r] = max(free[r], done[r])
            latest = max(free)
            for r in range(a.ranks):
                end = latest + lengths[r][step][1 + a.buckets + i]
                row[r].append(("nccl", free[r], end))
                free[r] = end
        for r in range(a.ranks):
            begin = max(done[r], free[r])
            now[r] = begin + lengths[r][step][-1]
            row[r].append(("optimizer", begin, now[r]))
        rows.append(row)
    return rows, max(now)


def kineto(a):
    slow = a.slow.split(",") if a.slow else None
    measured = []
    for r in range(a.ranks):
        measured.append([])
        for step in range(a.steps):
            dice = Dice(r * 1000003 + step * 7919 + 5)
            factor = float(slow[1]) if slow and int(slow[0]) == r else 1
            ns = [int(x * factor) + dice.roll(100000) for x in [9000000] + [6000000] * a.buckets]
            measured[r].append(ns + [2000000 + dice.roll(10000) for _ in range(a.buckets)] + [int(1000000 * factor)])
    columns = [[measured[r][s][i] for r in range(a.ranks) for s in range(a.steps)] for i in range(len(measured[0][0]))]
    ideal = [statistics.median(c) if 1 + a.buckets <= i < 1 + 2 * a.buckets else statistics.fmean(c) for i, c in enumerate(columns)]

    def replay(is_measured):
        return overlapped(a, [[measured[r][s] if is_measured(r) else ideal for s in range(a.steps)] for r in range(a.ranks)])[1]

    rows, total = overlapped(a, measured)
    for r in range(a.ranks):
        events, seq = [], 0
        for step, row in enumerate(rows):
            kernels = row[r]
            events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % step, "pid": 100 + r, "tid": 1, "ts": kernels[0][1] / 1000, "dur": (kernels[-1][2] - kernels[0][1]) / 1000})
            for name, begin, end in kernels:
                e = {"ph": "X", "cat": "kernel", "name": name, "pid": r, "tid": 7, "ts": begin / 1000, "dur": (end - begin) / 1000, "args": {"device": r, "stream": 7}}
                if name == "nccl":
                    e.update(name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", tid=20)
                    e["args"].update({"stream": 20, "Collective name": "allreduce", "Seq": seq, "In msg nelems": 1024, "dtype": "Float", "Group size": a.ranks, "Process Group Name": "0",
                                      "Process Group Ranks": str(list(range(a.ranks)))})
                    seq += 1
                events.append(e)
        with open("%s.rank%d.json" % (a.out, r), "w", encoding="ascii") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": r, "world_size": a.ranks}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}, f)
    best = replay(lambda r: False)
    return {"measured_ns": total // a.steps, "slowdown": total / best, "rank": {"rank %d" % r: replay(lambda x, r=r: x == r) / best for r in range(a.ranks)},
            "explains": {"rank %d" % r: (total - replay(lambda x, r=r: x != r)) / (total - best) for r in range(a.ranks)}}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=("pipeline", "ranks", "kineto"))
    p.add_argument("out")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--dp", type=int, default=3)
    p.add_argument("--pp", type=int, default=4)
    p.add_argument("--micro", type=int, default=8)
    p.add_argument("--slow")
    p.add_argument("--cut", choices=("recv", "worker", "steps"))
    p.add_argument("--ranks", type=int, default=4)
    p.add_argument("--buckets", type=int, default=3)
    p.add_argument("--per-host", type=int, default=4)
    p.add_argument("--plant", choices=("sleep", "node", "equal", "circle", "lost"), default="equal")
    p.add_argument("--clocks", action="store_true", help="the clocks of the ranks differ, and nothing relates them")
    a = p.parse_args()
    print(json.dumps({"pipeline": pipeline, "ranks": ranks, "kineto": kineto}[a.what](a)))


main()
