#!/usr/bin/env python3
"""make_collectives.py FOLDER: two jobs of four ranks whose 40 steps all end in an allreduce that all ranks leave together; rank 1 computes 2 ms longer than the others. apart0.txt … apart3.txt:
each rank on a host of its own, whose wall clock is 5 ms ahead of that of the rank before. one0.txt … one3.txt: all on one host. In step 7 of both the ranks are equal."""
import sys

EPOCH = 1_700_000_000_000_000_000
RANKS = 4


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09d}"


for job in ("apart", "one"):
    for rank in range(RANKS):
        host = rank if job == "apart" else 0
        boot = 5_000_000_000 + host * 777_000_000_123
        wall = EPOCH + host * 5_000_000
        pid = 100 + rank
        lines = ["# stave text 1", "clock boottime", f"snapshot boottime={boot} realtime={wall} uncertainty=25", f'meta "rank" "{rank}"', f'meta "world_size" "{RANKS}"',
                 f'meta "job" "{job}"', f'meta "hostname" "node{host}"', f'meta "boot_id" "boot-{host}"', f'meta "pid_namespace" "{4026531836 + rank}"',
                 f'track #1 process uuid=0x{rank * 16 + 1:x} pid={pid} name="python"', f'track #2 thread uuid=0x{rank * 16 + 2:x} parent=#1 pid={pid} tid={pid} name="main"']
        for step in range(40):
            begin = boot + 10_000_000 + step * 10_500_000
            work = 8_000_000 + (step * 7919 + rank * 104729) % 150_000 + (2_000_000 if rank == 1 and step != 7 else 0)
            if step == 7:
                work = 8_000_000
            end = begin + 10_400_000
            lines += [f'{seconds(begin)} slice #2 "ProfilerStep#{step}" cat="user_annotation" dur={seconds(10_450_000)}',
                      f'{seconds(begin + 1000)} slice #2 "forward" cat="cpu_op" dur={seconds(work - 2000)}',
                      f'{seconds(begin + work)} slice #2 "nccl:all_reduce" cat="collective" dur={seconds(end - begin - work)} '
                      f'{{op="allreduce" group="world" seq={step} bytes=1048576 group_size={RANKS}}}']
        with open(f"{sys.argv[1]}/{job}{rank}.txt", "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
