#!/usr/bin/env python3
"""make_ranks.py FOLDER [RANKS [STEPS]]: the traces of a simulated training job in canonical text, rank0.txt … .

Two hosts whose boot clocks differ, four processes' worth of what the exported tables hold: steps with collectives, file I/O with block requests,
kernels and copies, batches and requests, counters, flows. Rank 2 is slow in some steps. The numbers are those of a small generator, so every
run is equal."""
import sys

folder, ranks, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4, int(sys.argv[3]) if len(sys.argv) > 3 else 30
EPOCH = 1_700_000_000_000_000_000
state = 12345


def draw(n):
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) % n


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09d}"


for rank in range(ranks):
    host = rank * 2 // ranks
    boot = 5_000_000_000 + host * 777_000_000_123  # the hosts' clocks began at different times
    lines, events = [], []
    wall = boot + 1_000
    lines += ["# stave text 1", "clock boottime",
              f"snapshot boottime={boot} realtime={EPOCH} uncertainty=25",
              f'meta "rank" "{rank}"', f'meta "world_size" "{ranks}"', 'meta "job" "job 7/α"', 'meta "launcher" "openmpi"',
              f'meta "hostname" "node{host}"', f'meta "boot_id" "boot-{host}"', f'meta "pid_namespace" "{4026531836 + rank}"']
    pid = 100 + rank
    tracks = [f'track #1 process uuid=0x{rank * 16 + 1:x} pid={pid} name="python rank {rank}"',
              f'track #2 thread uuid=0x{rank * 16 + 2:x} parent=#1 pid={pid} tid={pid} name="main"',
              f'track #3 thread uuid=0x{rank * 16 + 3:x} parent=#1 pid={pid} tid={pid + 5000} name="loader"',
              f'track #4 stream uuid=0x{rank * 16 + 4:x} parent=#1 name="stream 7"',
              f'track #5 counter uuid=0x{rank * 16 + 5:x} parent=#1 name="loss" unit="1"',
              f'track #6 custom uuid=0x{rank * 16 + 6:x} name="sda"',
              f'track #7 custom uuid=0x{rank * 16 + 7:x} parent=#1 name="server"']
    t = boot + 10_000_000
    for step in range(steps):
        late = 3_000_000 if rank == 2 % ranks and step % 3 == 0 else 0
        dur = 8_000_000 + draw(300_000) + late
        events.append((t, 0, f'slice #2 "ProfilerStep#{step}" cat="user_annotation" dur={seconds(dur)} {{epoch={step // 10}}}'))
        path = f"/data/shard-{draw(5)}.bin"
        read = 4096 * (1 + draw(64))
        events.append((t + 1000, 1, f'slice #3 "pread64" cat="syscall" dur={seconds(200_000 + draw(900_000))} {{fd={3 + draw(4)} path="{path}" bytes={read} offset={step * 4096}}}'))
        if draw(2):
            events.append((t + 3000, 2, f'slice #6 "read" cat="block" dur={seconds(90_000 + draw(9_000))} {{device="sda" sector={step * 8} bytes={read // 2} pid={pid}}}'))
        events.append((t + 500_000, 3, f'slice #2 "cudaLaunchKernel" cat="cuda_runtime" dur={seconds(7_000)} {{correlation={step} @flow_begin:0x{rank * 65536 + step:x}}}'))
        events.append((t + 600_000, 4, f'slice #4 "gemm" cat="kernel" dur={seconds(2_000_000)} {{device=0 stream=7 correlation={step} grid=[{1 + draw(9)} 8 1] block=[128 1 1] @flow_end:0x{rank * 65536 + step:x}}}'))
        events.append((t + 2_700_000, 5, f'slice #4 "Memcpy DtoH" cat="gpu_memcpy" dur={seconds(10_000)} {{device=0 stream=7 bytes={read}}}'))
        begin = t + dur - 900_000 + draw(5_000)
        events.append((begin, 6, f'slice #2 "nccl:all_reduce" cat="collective" dur={seconds(600_000)} {{op="allreduce" group="world" seq={step} bytes=1048576 group_size={ranks}}}'))
        events.append((t + 100, 7, f'counter #5 {{{1 / (step + 1) - rank}}}'))
        events.append((t + 200, 8, f'slice #7 "batch" cat="batching" dur={seconds(50_000)} {{batch_id={step} batch_size={1 + draw(8)} model_name="bert" worker_id={draw(2)}}}'))
        events.append((t + 90_000, 9, f'slice #7 "request" cat="request" dur={seconds(40_000)} {{request_id="r-{step}" batch_id={step} model_name="bert"}}'))
        t += 12_000_000
    events.sort(key=lambda e: (e[0], e[1]))
    with open(f"{folder}/rank{rank}.txt", "w", encoding="utf-8") as out:
        out.write("\n".join(lines + tracks + [f"{seconds(ts)} {what}" for ts, _, what in events]) + "\n")
