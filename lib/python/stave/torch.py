"""PyTorch: forward, backward, optimizer and data loader as slices, by its own hooks. torch is imported by nobody here.

    import stave.torch
    stave.torch.trace_module(model)              # forward (and backward) of every submodule
    stave.torch.trace_optimizer(optimizer)       # step()
    for batch in stave.torch.trace_loader(loader): …
    loss.backward()                              # inside: with stave.torch.backward(): …
"""
import functools

from . import _stave
from ._stave import trace

__all__ = ["backward", "trace_loader", "trace_module", "trace_optimizer"]


class _Handles:
    """Takes the hooks away again."""

    def __init__(self):
        self._handles = []

    def remove(self):
        while self._handles:
            self._handles.pop().remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class _WrappedStep:
    """step() of one optimizer within a slice, for torch before 2.0, which has no hooks there."""

    def __init__(self, optimizer, calls):
        self.optimizer, self.inherited, step = optimizer, "step" not in vars(optimizer), optimizer.step
        self.step = step

        @functools.wraps(step)
        def traced(*args, **kwargs):
            calls.begin()
            try:
                return step(*args, **kwargs)
            finally:
                calls.end()

        optimizer.step = traced

    def remove(self):
        if self.inherited:
            del self.optimizer.step
        else:
            self.optimizer.step = self.step


class _Calls:
    """Slices of one module that are open: a stack, since a module may call itself. Hooks of forward run on one thread."""

    def __init__(self, name, category, with_args):
        self.name, self.category, self.with_args = name, category, with_args
        self.open = []

    def begin(self, *args):
        if not _stave.enabled(self.category):
            return
        values = [{"inputs": list(args[1])}] if self.with_args and len(args) > 1 and args[1] is not None else []
        call = trace(self.name, *values, category=self.category)
        call.__enter__()
        self.open.append(call)

    def end(self, *args):
        if self.open:
            self.open.pop().__exit__(None, None, None)

    # What a hook returns replaces inputs or outputs; these must return None.
    def before(self, module, inputs):
        self.begin(module, inputs)

    def after(self, module, inputs, outputs):
        self.end()

    def before_backward(self, module, grad_output):
        self.begin(module, None)

    def after_backward(self, module, grad_input, grad_output):
        self.end()


def trace_module(module, *, name=None, backward=True, shapes=True, max_depth=None):
    """Forward of the module and of all inside it; with `backward` their gradients as well. Returns handles with remove()."""
    handles = _Handles()
    root = name or type(module).__name__
    for path, inner in module.named_modules():
        if max_depth is not None and path and path.count(".") + 1 > max_depth:
            continue
        label = f"{root}.{path}" if path else root
        forward = _Calls(label, "torch.forward", shapes)
        handles._handles.append(inner.register_forward_pre_hook(forward.before))
        # always_call: also when forward raises, so that the slice ends.
        try:
            handles._handles.append(inner.register_forward_hook(forward.after, always_call=True))
        except TypeError:  # before torch 2.0
            handles._handles.append(inner.register_forward_hook(forward.after))
        if backward and hasattr(inner, "register_full_backward_pre_hook"):
            grad = _Calls(label, "torch.backward", False)
            handles._handles.append(inner.register_full_backward_pre_hook(grad.before_backward))
            handles._handles.append(inner.register_full_backward_hook(grad.after_backward))
    return handles


def trace_optimizer(optimizer, *, name=None):
    """step() as a slice. Returns handles with remove()."""
    handles = _Handles()
    calls = _Calls(f"{name or type(optimizer).__name__}.step", "torch.optimizer", False)
    if hasattr(optimizer, "register_step_pre_hook"):
        handles._handles.append(optimizer.register_step_pre_hook(lambda *args: calls.begin()))
        handles._handles.append(optimizer.register_step_post_hook(lambda *args: calls.end()))
    else:
        handles._handles.append(_WrappedStep(optimizer, calls))
    return handles


def trace_loader(loader, *, name="dataloader"):
    """Iterates over a DataLoader (or anything): each wait for a batch is a slice."""
    batches = iter(loader)
    number = 0
    while True:
        with trace(name, batch=number, category="torch.data"):
            try:
                batch = next(batches)
            except StopIteration:
                return
        number += 1
        yield batch


def backward(name="backward"):
    """``with stave.torch.backward(): loss.backward()``"""
    return trace(name, category="torch.backward")
