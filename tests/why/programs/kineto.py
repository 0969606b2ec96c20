"""Traces as PyTorch's profiler writes them, for GPUs: kineto.py CASE. Nothing runs; the truth follows from what is written.

    data     the device is idle 46 % of each step, while the thread is in the data loader
    gap      one gap of 493 ms, while the thread builds a vocabulary
    launch   small kernels with a small gap after each: the host launches slower than they run
    copy     the device waits for copies from the host
    comm     60 % of the device's time is communication that nothing hides
    ok       kernels one after the other"""
import json
import os
import random
import sys

CASE = sys.argv[1]
STEPS = 30
rng = random.Random(5)
events, correlation = [], [100]
idle = {"n": 0.0}


def host(name, at, dur, cat="cpu_op", **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": 900, "tid": 900, "ts": round(at, 3),
                   "dur": round(dur, 3), "args": args})


def device(name, at, dur, stream=7, cat="kernel", **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream,
                   "ts": round(at, 3), "dur": round(dur, 3),
                   "args": {"device": 0, "stream": stream, "context": 1, **args}})


def launch(name, at, start, dur, call="cudaLaunchKernel", **more):
    """A call of the host at AT, and its work on the device from START on."""
    correlation[0] += 1
    host(call, at, min(4.0, max(1.0, start - at)), "cuda_runtime", correlation=correlation[0])
    device(name, start, dur, correlation=correlation[0], **more)


def compute(at, total, piece=1800.0):
    """Kernels one after the other for TOTAL, launched ahead; returns when the last one ends."""
    end, i = at + total, 0
    while at < end - 1:
        dur = min(piece * rng.uniform(0.8, 1.2), end - at)
        launch("ampere_sgemm_128x64_nn", max(0.0, at - 900 + i % 7), at, dur)
        at += dur
        i += 1
    return end


def step(n, at):
    """Writes a step that begins at AT and returns its end."""
    begin = at
    host_begin = at
    if CASE == "data":
        host("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 10, 18260,
             "user_annotation")
        idle["n"] += 18300
        at = compute(at + 18300, 21700)
    elif CASE == "gap":
        if n == 12:
            host("build_vocab", at + 20, 492900, "user_annotation")
            idle["n"] += 493000
            at += 493000
        at = compute(at, 30000)
    elif CASE == "launch":
        for i in range(700):
            dur, gap = rng.uniform(18, 26), rng.uniform(20, 30)
            host("aten::add", at + 1, gap - 1.5)  # the host is busy while the device is idle
            launch("vectorized_elementwise_kernel", at + gap - 6, at + gap, dur)
            idle["n"] += gap
            at += gap + dur
    elif CASE == "copy":
        correlation[0] += 1
        host("cudaMemcpyAsync", at + 1, 5, "cuda_runtime", correlation=correlation[0])
        device("Memcpy HtoD (Pageable -> Device)", at + 8, 12000, cat="gpu_memcpy",
               correlation=correlation[0], bytes=96 << 20)
        idle["n"] += 12000
        at = compute(at + 12008, 18000)
    elif CASE == "comm":
        at = compute(at, 14000)
        launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
               at - 500, at, 21000, stream=20,
               **{"Collective name": "allreduce", "Group size": 8, "In msg nelems": 1 << 26,
                  "dtype": "Float", "Process Group Name": "0"})
        idle["n"] += 21000
        at += 21000
    else:
        at = compute(at, 30000)
    host(f"ProfilerStep#{n}", host_begin, at - begin - 1, "user_annotation")
    return at


def main():
    at = 1000.0
    for n in range(STEPS):
        at = step(n, at)
    wall = at - 1000
    trace = os.environ["WHY_TRACE"] + ".trace.json"
    with open(trace, "w") as file:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
                   "traceEvents": [{"ph": "M", "name": "process_name", "pid": 900,
                                    "args": {"name": "python"}}] + events}, file)
    words, culprit = {
        "data": (["gpu_data", "data"], [{"device": 0, "name": "DataLoader"},
                                        {"device": 0, "function": "DataLoader"}]),
        "gap": (["gpu_gap"], [{"name": "build_vocab"}, {"function": "build_vocab"}]),
        "launch": (["gpu_launch"], [{"device": 0}]),
        "copy": (["gpu_copy"], [{"device": 0}]),
        "comm": (["exposed_comm"], [{"name": ["AllReduce", "allreduce"]},
                                    {"function": ["AllReduce", "allreduce"]}]),
    }.get(CASE, (None, None))
    truth = {"healthy": not words, "units": {"kind": "step", "n": STEPS, "marked": True},
             "dur_ns": round(wall * 1000), "noise": {}, "allowed": [],
             "causes": [{"cause": words, "share": round(idle["n"] / wall, 4), "culprit": culprit}]
             if words else [], "traces": [os.path.basename(trace)]}
    with open(os.environ["WHY_TRUTH"], "w") as file:
        json.dump(truth, file, indent=1)


main()
