"""stave.auto(), python3 -m stave record, logging, PyTorch's hooks."""
import subprocess

import pytest
from conftest import ALONE, STAVE


def test_every_function_of_chosen_modules(py):
    (py.folder / "mine.py").write_text("def helper(n):\n    return inner(n)\ndef inner(n):\n    return n\nclass K:\n    def m(self): return helper(1)\n")
    (py.folder / "other.py").write_text("def foreign():\n    return 1\n")
    t = py.trace('''
        import threading, mine, other, json
        with stave.auto("mine"):
            assert mine.K().m() == 1
            other.foreign(); json.dumps([1])
            x = threading.Thread(target=mine.helper, args=(2,)); x.start(); x.join()
        mine.helper(3)
        with stave.auto("mine", functions="K.*"): mine.K().m()
        with stave.auto("mine", max_depth=1): mine.K().m()
        with stave.auto("*", exclude=["mine", "json"]): mine.helper(1); other.foreign()
    ''')
    assert [s["name"] for s in t.slices if s["name"] in ("K.m", "helper", "inner", "foreign")] == \
        ["K.m", "helper", "inner", "helper", "inner", "K.m", "K.m", "foreign"]
    first = t.named("inner")[0]
    assert t.parent(first) == "helper" and t.parent(t.by_id[first["parent_id"]]) == "K.m"


def test_exceptions_generators_and_recursion(py):
    t = py.trace('''
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        def fails(): raise ValueError
        def catches():
            try: fails()
            except ValueError: return 1
        def gen():
            yield 1
            yield 2
        def after(): pass
        with stave.auto("__main__"):
            fib(5); catches(); list(gen()); after()
    ''')
    assert len(t.named("fib")) == 15 and t.parent(t.one("fails")) == "catches"
    assert len(t.named("gen")) == 3 and t.one("after")["depth"] == 0


def test_two_at_once_are_refused(py):
    py.run('''
        import stave
        a = stave.auto("x")
        try: stave.auto("y")
        except RuntimeError as e: print(e)
        a.stop(); a.stop()
        stave.auto("y").stop()
    ''')


def test_record_with_auto_modules_and_logging(py):
    py.run('''
        import logging, sys
        def f(): logging.getLogger("my").warning("careful %d", 5)
        f()
        sys.exit(3)
    ''', command=["-m", "stave", "record", "-q", "-o", "r.pftrace", "--auto", "__main__", "--logging", "prog.py"], code=3)
    t = py.read("r.pftrace")
    assert t.one("f") and t.one("careful 5")["args"]["level"] == "WARNING" and t.parent(t.one("f")) == "<module __main__>"
    (py.folder / "pkg").mkdir()
    (py.folder / "pkg" / "__main__.py").write_text("import stave, sys; stave.instant('module', argv=sys.argv[1:])\n")
    py.run("", command=["-m", "stave", "record", "-o", "m.pftrace", "-m", "pkg", "a"])
    assert py.read("m.pftrace").one("module")["args"] == {"argv[0]": "a"}


def test_record_with_lost_events_exits_with_4(py):
    """As `stave record` does; a program's own code is passed on unless it is 0. Without the program: in one process."""
    full = """
        import resource, stave, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))
        for i in range(100000):
            stave.instant("i", i=i)
        if sys.argv[1] != "end":
            sys.exit(int(sys.argv[1]))
    """
    for word, code in (("end", 4), ("0", 4), ("7", 7)):
        py.run(full, command=["-c", ALONE, "record", "-o", f"{word}.pftrace", "prog.py", word], code=code)
        assert " lost" in py.stderr
    py.run("import sys; sys.exit(0)", command=["-c", ALONE, "record", "-o", "whole.pftrace", "prog.py"])


def test_record_keeps_the_trace_of_a_program_that_fails(py):
    py.run('''
        import stave
        with stave.trace("fails"): raise RuntimeError("boom")
    ''', command=["-m", "stave", "record", "-o", "f.pftrace", "prog.py"], code=1)
    assert "boom" in py.stderr
    assert py.read("f.pftrace").one("fails")["args"] == {"exception": "RuntimeError: boom"}


def test_record_says_what_is_wrong(py):
    for words, code, expected in ((["record"], 2, "nothing to record"), (["record", "--bad", "x"], 2, "bad"), (["record", "--auto"], 2, "needs a value"),
                                  (["nothing"], 2, "nothing"), (["record", "-o"], 2, "-o")):
        py.run("", command=["-m", "stave", *words], code=code)
        assert expected in py.stderr, py.stderr
    for words, expected in ((["record"], "which program"), (["record", "nothere.py"], "no such file"), (["record", "-o"], "needs a value")):
        py.run("", command=["-c", ALONE, *words], code=2)
        assert expected in py.stderr, py.stderr
    assert "record" in py.run("", command=["-m", "stave", "--help"])
    py.run("", command=["-c", ALONE, "record", "-o", "/nowhere/x.pftrace", "prog.py"], code=1)
    assert "Traceback" not in py.stderr


def test_log_handler(py):
    t = py.trace('''
        import logging
        log = logging.getLogger("train")
        log.setLevel(logging.INFO)
        log.addHandler(stave.log_handler())
        by_name = logging.getLogger("data"); by_name.propagate = False
        by_name.addHandler(stave.log_handler(by_logger=True))
        log.info("epoch %d", 3)
        log.debug("hidden")
        by_name.error("row %d", 7)
        try: 1 / 0
        except ZeroDivisionError: log.exception("failed")
    ''')
    assert t.one("epoch 3")["category"] == "log" and t.one("epoch 3")["args"]["logger"] == "train"
    assert t.one("data")["args"]["message"] == "row 7"
    failed = [s for s in t.slices if s["name"].startswith("failed")][0]
    assert failed["args"]["exception"] == "ZeroDivisionError: division by zero"
    assert not t.named("hidden")


FAKE_TORCH = '''
class Handle:
    def __init__(self, hooks, hook): self.hooks, self.hook = hooks, hook; hooks.append(hook)
    def remove(self): self.hooks.remove(self.hook)
class Module:
    """As torch.nn.Module calls its hooks."""
    def __init__(self, **children):
        self.children, self.pre, self.post, self.bpre, self.bpost = children, [], [], [], []
    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)
    def register_forward_pre_hook(self, h): return Handle(self.pre, h)
    def register_forward_hook(self, h, always_call=False): return Handle(self.post, h)
    def register_full_backward_pre_hook(self, h): return Handle(self.bpre, h)
    def register_full_backward_hook(self, h): return Handle(self.bpost, h)
    def __call__(self, x):
        for h in self.pre: assert h(self, (x,)) is None
        try: return self.forward(x)
        finally:
            for h in self.post: assert h(self, (x,), x) is None
    def forward(self, x):
        for child in self.children.values(): x = child(x)
        if x == "bad": raise ValueError("bad")
        return x
    def backward(self):
        for h in self.bpre: assert h(self, None) is None
        for child in self.children.values(): child.backward()
        for h in self.bpost: assert h(self, None, None) is None
class SGD:
    def __init__(self): self.pre, self.post = [], []
    def register_step_pre_hook(self, h): return Handle(self.pre, h)
    def register_step_post_hook(self, h): return Handle(self.post, h)
    def step(self):
        for h in self.pre: h(self, (), {})
        for h in self.post: h(self, (), {})
'''


def test_torch_hooks(py):
    (py.folder / "fake.py").write_text(FAKE_TORCH)
    t = py.trace('''
        import sys, stave.torch
        from fake import Module, SGD
        assert "torch" not in sys.modules
        class Net(Module): pass
        net = Net(fc1=Module(), block=Module(act=Module()))
        handles = stave.torch.trace_module(net)
        opt = SGD(); stave.torch.trace_optimizer(opt)
        for batch in stave.torch.trace_loader([1, 2]):
            net(batch)
            with stave.torch.backward(): net.backward()
            opt.step()
        try: net("bad")
        except ValueError: pass
        handles.remove()
        net(5)
    ''')
    assert len([s for s in t.named("Net") if s["category"] == "torch.forward"]) == 3
    act = [s for s in t.named("Net.block.act") if s["category"] == "torch.forward"]
    assert len(act) == 2 and t.parent(act[0]) == "Net.block" and act[0]["args"] == {"inputs[0]": 1}
    assert len([s for s in t.named("Net.fc1") if s["category"] == "torch.backward"]) == 2
    assert len(t.named("SGD.step")) == 2 and len(t.named("dataloader")) == 3 and len(t.named("backward")) == 2


def test_optimizer_without_hooks(py):
    """torch before 2.0: step() itself is wrapped, and given back."""
    t = py.trace('''
        import stave.torch
        class Adam:
            def step(self, closure=None): return 7
        opt = Adam()
        handles = stave.torch.trace_optimizer(opt)
        assert opt.step() == 7 and opt.step.__name__ == "step"
        handles.remove()
        assert opt.step() == 7 and "step" not in vars(opt)
    ''')
    assert len(t.named("Adam.step")) == 1


def test_real_torch(py):
    pytest.importorskip("torch", reason="python3-torch is not installed")
    t = py.trace('''
        import torch, stave.torch
        from torch.utils.data import DataLoader, TensorDataset
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        opt = torch.optim.SGD(model.parameters(), 0.1)
        stave.torch.trace_module(model, name="model")
        stave.torch.trace_optimizer(opt)
        data = TensorDataset(torch.randn(32, 16), torch.zeros(32, dtype=torch.long))
        for x, y in stave.torch.trace_loader(DataLoader(data, batch_size=8, num_workers=2)):
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            stave.instant("loss", value=loss)
            with stave.torch.backward(): loss.backward()
            opt.step()
    ''')
    forward = [s for s in t.named("model") if s["category"] == "torch.forward"]
    assert len(forward) == 4 and forward[0]["args"]["inputs[0].shape[1]"] == 16
    assert len(t.named("model.1")) >= 4 and t.parent(t.named("model.1")[0]) == "model"
    assert len(t.named("SGD.step")) == 4 and len(t.named("backward")) == 4 and len(t.named("dataloader")) == 5


def test_every_verb_is_the_program(py):
    """The same options, the same output, the same exit codes."""
    py.run("import stave; stave.instant('x')", command=["-m", "stave", "record", "-q", "-o", "v.pftrace", "prog.py"])
    for words in (["info", "v.pftrace"], ["query", "v.pftrace", "select name from slice where name = 'x'"], ["info", "none.pftrace"], ["cat", "--bad"]):
        own = subprocess.run([STAVE, *words], cwd=py.folder, capture_output=True, text=True)
        out = py.run("", command=["-m", "stave", *words], code=own.returncode)
        assert (out, py.stderr) == (own.stdout, own.stderr)
    for code in (0, 3):
        py.run(f"import sys; sys.exit({code})", command=["-m", "stave", "record", "-q", "-o", f"c{code}.pftrace", "prog.py"], code=code)
