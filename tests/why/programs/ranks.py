"""Traces of four ranks as PyTorch's profiler writes them: ranks.py CASE. Each step ends with an all_reduce, which all leave together.

    sleeper   rank 2 sleeps 150 ms in each tenth step
    node      both ranks of the second host compute 40 % longer
    ok        all are alike: healthy"""
import json
import os
import random
import subprocess
import sys

CASE, RANKS, STEPS, SLOW = sys.argv[1], 4, 40, 2
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
rng = random.Random(7)
events = [[{"ph": "M", "name": "process_name", "pid": 100 + r, "args": {"name": "python"}}]
          for r in range(RANKS)]


def put(rank, cat, name, ts, dur, pid, tid, **args):
    events[rank].append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                         "ts": round(ts, 3), "dur": round(dur, 3), "args": args})


def one_step(step, begin):
    """All ranks begin together; returns when they end, and what the slow ones cost."""
    works, usual = [], []
    for rank in range(RANKS):
        work = 30000 + rng.uniform(-300, 300)
        usual.append(work)
        if CASE == "node" and rank >= 2:
            work *= 1.4
        if CASE == "sleeper" and rank == SLOW and step % 10 == 9:
            put(rank, "user_annotation", "wait_for_license", begin + 50, 150000, 100 + rank, 1)
            work += 150000
        works.append(work)
    end = begin + max(works) + 800
    for rank, work in enumerate(works):
        comm = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Group size": RANKS,
                "dtype": "Float", "Process Group Name": "0", "Seq": step + 1}
        asleep = work - usual[rank] if CASE == "sleeper" else 0
        first = begin + asleep + 100
        put(rank, "user_annotation", f"ProfilerStep#{step}", begin, end - begin - 1, 100 + rank, 1)
        put(rank, "cuda_runtime", "cudaLaunchKernel", first, 10, 100 + rank, 1,
            correlation=5000 + step)
        put(rank, "cpu_op", "record_param_comms", first + 20, 40, 100 + rank, 1, **comm)
        put(rank, "cuda_runtime", "cudaLaunchKernelExC", first + 30, 10, 100 + rank, 1,
            correlation=1000 + step)
        put(rank, "kernel", "gemm", first + 20, begin + work - first - 40, rank % 2, 7,
            correlation=5000 + step, device=rank % 2, stream=7)
        put(rank, "kernel", KERNEL, begin + work, end - begin - work, rank % 2, 20,
            correlation=1000 + step, device=rank % 2, stream=20, **comm)
    return end, max(works) - max(usual)


def of_host(trace, host):
    """The same trace with the name of its host, which PyTorch's profiler does not write."""
    text = trace.replace(".trace.json", ".txt")
    subprocess.run([os.environ["STAVE"], "convert", "-q", trace, "-o", text], check=True)
    os.remove(trace)
    with open(text) as file:
        first, rest = file.read().split("\n", 1)
    with open(text, "w") as file:
        file.write(f'{first}\nmeta "hostname" "{host}"\n{rest}')
    return text


def main():
    at, lost, traces = 1000.0, 0.0, []
    for step in range(STEPS):
        at, cost = one_step(step, at)
        lost += cost
    for rank in range(RANKS):
        traces.append(f"{os.environ['WHY_TRACE']}.rank{rank}.trace.json")
        with open(traces[-1], "w") as file:
            json.dump({"schemaVersion": 1,
                       "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS},
                       "baseTimeNanoseconds": 1700000000000000000,
                       "deviceProperties": [{"id": i, "name": "NVIDIA A100"} for i in range(2)],
                       "traceEvents": events[rank]}, file)
        if CASE == "node":
            traces[-1] = of_host(traces[-1], f"node{rank // 2}")
    share = round(lost / (at - 1000), 4)
    causes = {"sleeper": [{"cause": ["straggler_rank"], "share": share, "culprit": [{"rank": 2}]}],
              "node": [{"cause": ["straggler_host"], "share": share,
                        "culprit": [{"host": "node1"}]}]}.get(CASE, [])
    with open(os.environ["WHY_TRUTH"], "w") as file:
        json.dump({"healthy": not causes, "units": {"kind": "step", "n": STEPS, "marked": True},
                   "dur_ns": round((at - 1000) * 1000), "causes": causes, "allowed": [],
                   "noise": {}, "traces": [os.path.basename(t) for t in traces]}, file, indent=1)


main()
