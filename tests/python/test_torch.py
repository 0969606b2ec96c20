"""--torch: a training script that knows nothing of Stave. With a stand-in that has PyTorch's names, and in the long suite with PyTorch itself."""
import os
import subprocess
import sys

import pytest
from conftest import ALONE

STAND_IN = os.path.join(os.path.dirname(__file__), "stand_in")

TRAIN = """
    import sys, torch
    from torch import nn, save
    from torch.utils.data import DataLoader

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Block()
            self.b = make()
        def forward(self, x):
            return self.b(self.a(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make()
        def forward(self, x):
            return self.inner(x)

    net = Net()
    optimizer = torch.optim.SGD(parameters(net))
    for epoch in range(2):
        for batch in DataLoader(dataset, batch_size=2, num_workers=WORKERS):
            with torch.autograd.profiler.record_function("my range"):
                out = net(tensor(batch))
            loss(out).backward()
            optimizer.step()
        for batch in DataLoader(dataset, batch_size=4):  # evaluation: no step
            net(tensor(batch))
    save({"epoch": 2}, "net.pt")
    torch.load("net.pt")
    try:
        torch.cuda.nvtx.range_push("absent")
    except RuntimeError as error:
        print("NVTX:", str(error)[:4])
    print("end")
"""
SMALL = """
    make, parameters = nn.Linear, lambda net: []
    dataset, tensor, loss = list(range(8)), lambda batch: torch.Tensor(), lambda out: out
"""
REAL = """
    torch.set_num_threads(1)
    make, parameters = lambda: nn.Linear(1, 1), lambda net: net.parameters()
    torch.optim.SGD = __import__("functools").partial(torch.optim.SGD, lr=0.1)
    dataset, tensor, loss = [float(i) for i in range(8)], lambda batch: batch.float().reshape(-1, 1), lambda out: out.sum()
"""


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


@pytest.fixture(params=["stand-in", "PyTorch"])
def train(request, py):
    if request.param == "PyTorch":
        if not os.environ.get("STAVE_LONG"):
            pytest.skip("with PyTorch itself: in the long suite (STAVE_LONG=1)")
        if not has_torch():
            pytest.skip("no PyTorch here (package python3-torch)")
    stand_in = request.param == "stand-in"
    env = {"PYTHONPATH": (STAND_IN + ":" if stand_in else "") + os.environ["PYTHONPATH"]}

    def run(*options, workers=0):
        script = TRAIN.replace("WORKERS", str(workers)).replace("    net = Net()\n", (SMALL if stand_in else REAL).lstrip("\n") + "    net = Net()\n")
        out = py.run(script, env=env, command=["-c", ALONE, "record", "-o", "t.pftrace", *options, "--", "prog.py"])
        assert out == "NVTX: NVTX\nend\n"
        return py.read()
    return run


def test_training(train):
    t = train("--torch")
    for name, count in (("Net", 12), ("Net.a", 12), ("Net.a.inner", 12), ("Net.b", 12)):
        assert sum(s["category"] == "torch.forward" for s in t.named(name)) == count, name
        assert sum(s["category"] == "torch.backward" for s in t.named(name)) == 8, name
    assert len(t.named("backward")) == 8 and len(t.named("my range")) == 8 and len(t.named("Optimizer.step#SGD")) == 8
    assert {t.parent(s) for s in t.named("Net.a.inner") if s["category"] == "torch.forward"} == {"Net.a"}
    assert {t.parent(s) for s in t.named("Net.a.inner") if s["category"] == "torch.backward"} == {"Net.a"}
    assert {t.parent(s) for s in t.named("Net") if s["category"] == "torch.backward"} == {"backward"}
    steps = [s for s in t.slices if s["category"] == "step"]
    assert [s["name"] for s in steps] == [f"ProfilerStep#{i}" for i in range(8)]
    for kind in ("backward", "Optimizer.step#SGD", "my range"):
        assert {t.parent(s) for s in t.named(kind)} == {s["name"] for s in steps}, kind
    saved, loaded = t.one("checkpoint torch.save"), t.one("checkpoint torch.load")
    assert saved["category"] == loaded["category"] == "checkpoint" and saved["args"]["path"] == loaded["args"]["path"] == "net.pt"
    assert not t.named("absent")
    # 4 batches of 2 in training, 2 of 4 in evaluation; an epoch's last wait finds the end
    assert len(t.named("dataloader wait")) == 2 * (5 + 3) and len(t.named("dataloader fetch")) == 2 * (4 + 2)
    assert {t.parent(s) for s in t.named("dataloader fetch")} == {"dataloader wait"}


def test_workers_have_arrows(train):
    t = train("--torch", workers=1)
    assert t.flows().count(("dataloader fetch", "dataloader batch")) == 8 and len(t.flows()) == 8
    fetches = t.named("dataloader fetch")
    by_worker = [s["args"] for s in fetches if "worker" in s["args"]]
    assert len(by_worker) == 8 and all(a["worker"] == 0 and "batch" in a for a in by_worker)
    assert len({s["track_id"] for s in fetches}) >= 3  # two workers and the evaluation in the main process
    assert {t.parent(s) for s in t.named("dataloader batch")} == {"dataloader wait"}


def test_depth(train):
    t = train("--torch-depth", "1")
    assert len(t.named("Net")) == 20 and not t.named("Net.a") and len(t.named("ProfilerStep#7")) == 1


def test_off_and_refused(train, py):
    t = train()
    assert not t.slices
    py.run("", command=["-c", ALONE, "record", "--torch-depth", "x", "prog.py"], code=2)
    assert "--torch-depth: 'x' is not a number" in py.stderr


def test_accumulated_gradients_are_one_step(py):
    env = {"PYTHONPATH": STAND_IN + ":" + os.environ["PYTHONPATH"]}
    py.run("""
        import torch
        from torch.utils.data import DataLoader
        net, optimizer = torch.nn.Linear(), torch.optim.SGD([])
        for i, batch in enumerate(DataLoader(list(range(4)))):
            net(torch.Tensor()).backward()
            if i % 2:
                optimizer.step()
    """, env=env, command=["-c", ALONE, "record", "-o", "t.pftrace", "--torch", "prog.py"])
    t = py.read()
    parents = [t.parent(s) for s in t.named("backward")]
    assert parents == ["ProfilerStep#0"] * 2 + ["ProfilerStep#1"] * 2


def test_threads_without_events_have_their_names(py):
    env = {"PYTHONPATH": STAND_IN + ":" + os.environ["PYTHONPATH"]}
    py.run("""
        import threading, torch
        t = threading.Thread(target=lambda: None, name="pins memory")
        t.start()
        t.join()
    """, env=env, command=["-c", ALONE, "record", "-o", "t.pftrace", "--torch", "prog.py"])
    assert "pins memory" in [r["name"] for r in py.read().ask("select name from thread")]
