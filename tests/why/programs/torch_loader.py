"""A PyTorch loop over a DataLoader: torch_loader.py few | slow | ok. few: one worker, whose items take longer than the steps. slow: the
second of two workers waits for each of its items. No item is read from a file."""
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from truth import Run, now, spin

FEW, SLOW = sys.argv[1] == "few", sys.argv[1] == "slow"
STEPS = 60
torch.set_num_threads(1)


class Items(Dataset):
    def __len__(self):
        return STEPS * 4

    def __getitem__(self, i):
        if SLOW and get_worker_info().id == 1:
            fetch()
        decode()
        return torch.ones(256), torch.tensor([float(os.getpid())], dtype=torch.float64)


def fetch():
    time.sleep(0.014)


def decode():
    spin(0.008 if FEW else 0.001)


net = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batches = iter(DataLoader(Items(), batch_size=4, num_workers=2 if SLOW else 1, prefetch_factor=2))
batch, pids, run = next(batches), set(), Run()
run.units = {"kind": "step", "n": STEPS, "marked": True}
with run.whole():
    for step in range(STEPS - 1):
        x, pid = batch
        pids |= {int(p) for p in pid.flatten()}
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        spin(0.01 if FEW else 0.006 if SLOW else 0.02)
        with run.measure("data"):
            batch = next(batches)
if FEW:
    run.cause("too_few_loaders data", run.ns["data"], {"function": ["decode", "__getitem__"]},
              pid=sorted(pids))
elif SLOW:
    run.cause("slow_worker", run.ns["data"], function="fetch")
else:
    run.allow("data", run.ns["data"])
run.write()
