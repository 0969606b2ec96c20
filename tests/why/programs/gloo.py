"""Two ranks of PyTorch that meet through gloo: gloo.py slow | ok. slow: rank 1 sleeps in each step, and rank 0 waits for it. Nobody marks
steps or collectives. Rank 1 states the truth; shares are of both ranks' time, so half of each is its sleep and half the other's wait."""
import os
import socket
import subprocess
import sys
import time

HOW = sys.argv[1]
if "RANK" not in os.environ:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = str(s.getsockname()[1])
    ranks = [subprocess.Popen([sys.executable, *sys.argv],
                              env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="2",
                                       MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
             for r in range(2)]
    sys.exit(max(p.wait() for p in ranks))

import torch
import torch.distributed

from truth import Run, now, spin

STEPS = 60
rank, run = int(os.environ["RANK"]), Run()


def read_shard():
    time.sleep(0.02)


torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
run.units = {"kind": "step", "n": 2 * STEPS, "marked": True}
with run.whole():
    for step in range(STEPS):
        spin(0.01 if HOW == "slow" else 0.02)
        if HOW == "slow" and rank == 1:
            with run.measure("sleep"):
                read_shard()
        net(torch.ones(4, 64)).sum().backward()
        optimizer.step()
if rank == 1:
    if HOW == "slow":
        half = run.ns["sleep"] // 2
        run.cause("comm straggler_rank", half, rank=1)
        run.cause("sleep", half, function="read_shard")
    run.write()
torch.distributed.barrier()
