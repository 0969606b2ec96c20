"""Not PyTorch: as many of its names as stave._torch_auto wraps, so that its logic is tested where PyTorch is absent. test_torch.py has the same tests with the
real one in the long suite."""
import types


class Tensor:
    def __init__(self, parents=()):
        self.parents, self.hooks = tuple(parents), []
        self.requires_grad = bool(parents)
        self.grad_fn = object() if parents else None

    def register_hook(self, hook):
        assert self.requires_grad
        self.hooks.append(hook)

    def backward(self):
        autograd.backward(self)


class Module:
    def __call__(self, *args):
        return self.forward(*args)

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, inner in vars(self).items():
            if isinstance(inner, Module):
                yield from inner.named_modules(f"{prefix}.{name}" if prefix else name)


class Linear(Module):
    def __init__(self):
        self.weight = Tensor()

    def forward(self, x):
        return Tensor([x, self.weight])


class Optimizer:
    def __init__(self, parameters):
        self.parameters = parameters


class SGD(Optimizer):
    def step(self):
        return "stepped"


def save(object, f):
    with open(f, "w") as file:
        file.write("saved")


def load(f):
    with open(f) as file:
        return file.read()


def _no_nvtx(*args):
    raise RuntimeError("NVTX functions not installed")


nn = types.SimpleNamespace(Module=Module, Linear=Linear)
optim = types.SimpleNamespace(Optimizer=Optimizer, SGD=SGD)
cuda = types.SimpleNamespace(nvtx=types.SimpleNamespace(range_push=_no_nvtx, range_pop=_no_nvtx))
from . import autograd  # noqa: E402
