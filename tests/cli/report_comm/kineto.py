#!/usr/bin/env python3
"""Writes NAME.NUMBERS.rankN.json: three ranks of a job as PyTorch's profiler writes them, 40 steps of 10.5 ms that end with an all_reduce, left by all together. Rank 2 computes 2 ms longer, but not
in "equal". The clocks of the ranks are 3 ms apart. NUMBERS: own (the kernel has Seq), host (record_param_comms has it), none. Rank 1's profiler starts one step late where numbers allow it."""
import json

RANKS = 3
KERNELS = {
    "new": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "old": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "equal": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}


def events_of(rank, slow, kernel, numbers):
    state = [rank * 7919 + 1]

    def chance():
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state[0] >> 40) / 2**24

    events = [{"ph": "M", "name": "process_name", "pid": 100 + rank, "args": {"name": "python"}}]
    now = 1000.0
    for step in range(40):
        work = 8000 + 300 * chance() + (2000 if rank == slow else 0)
        end = 1000.0 + (step + 1) * 10500
        begin = now + work
        comm = {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": RANKS, "dtype": "Float", "Process Group Name": "0",
                "Process Group Description": "default_pg", "Process Group Ranks": str(list(range(RANKS)))}
        host = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 100 + rank, "tid": 1, "ts": now + 100, "dur": 50, "args": dict(comm)}
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 100 + rank, "tid": 1, "ts": now + 110, "dur": 10, "args": {"correlation": 1000 + step}}
        gemm = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": rank, "tid": 7, "ts": now + 20, "dur": work - 40, "args": {"correlation": 5000 + step, "device": rank, "stream": 7}}
        device = {"ph": "X", "cat": "kernel", "name": kernel, "pid": rank, "tid": 20, "ts": begin, "dur": end - begin,
                  "args": dict(comm, correlation=1000 + step, device=rank, stream=20)}
        if numbers == "host":
            host["args"]["Seq"] = step + 5
        if numbers == "own":
            device["args"]["Seq"] = step + 5
        if numbers == "none" or rank != 1 or step != 0:
            events += [host, call, gemm, device]
        now = end
    return events


for name, numbers in (("new", "own"), ("old", "own"), ("new", "host"), ("new", "none"), ("equal", "own")):
    for rank in range(RANKS):
        with open("%s.%s.rank%d.json" % (name, numbers, rank), "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS},
                       "baseTimeNanoseconds": 1700000000000000000 + rank * 3000000, "traceEvents": events_of(rank, -1 if name == "equal" else 2, KERNELS[name], numbers)}, f)
