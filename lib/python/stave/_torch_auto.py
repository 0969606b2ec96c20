"""PyTorch without editing the script: `python3 -m stave record --torch`.

install() waits for the import of torch and then wraps what training goes through: modules, backward, optimizers, data loaders and their workers, torch.save and
torch.load, record_function and NVTX ranges. Threads that are started from then on have their names. Everything wrapped calls the original with the same arguments and returns what it returned; a name that this torch does
not have is left out. Results of modules keep no reference from here: gradients are followed by hooks of the tensors themselves.
"""
import functools
import hashlib
import importlib.abc
import importlib.util
import os
import sys
import threading
import weakref

from . import _stave
from ._stave import instant, now_ns, trace
from ._tracks import Flow

DEPTH = 3
_NEAR = 64  # so many tensors back a module looks for one that a module inside it has hooked already

_complete = _stave.Track(0).complete


class _State(threading.local):
    """Of one thread: where it is in the training."""

    def __init__(self):
        self.depth = 0         # of module calls
        self.hooked = []       # (weak reference to a tensor, who begins, who ends with its gradient) within the outermost call
        self.unfinished = {}   # gradients of modules that nothing ends before backward() does, in the order of their begin
        self.begin = None      # of the step
        self.steps = 0
        self.last = None       # end of the last optimizer step, None: none since `begin`
        self.has_worked = False  # backward since `begin`
        self.has_loader = False  # batches say where steps begin, else calls of the outermost module do
        self.has_own_steps = False  # the script marks them
        self.ranges = []       # open NVTX ranges

    def end_step(self, now):
        if self.last is not None and not self.has_own_steps:
            _complete(f"ProfilerStep#{self.steps}", self.begin, now - self.begin, category="step")
            self.steps += 1
        self.begin, self.last, self.has_worked = now, None, False

    def batch(self):
        """A batch is asked for: a new step, unless gradients are being accumulated."""
        self.has_loader = True
        if self.last is not None or not self.has_worked:
            self.end_step(now_ns())

    def forward(self):
        if not self.has_loader and (self.begin is None or self.last is not None):
            self.end_step(now_ns())


_state = _State()
_names = weakref.WeakKeyDictionary()  # of modules, by the outermost one that was called


def _wrap(owner, name, make):
    """owner.name becomes make(the original), once."""
    original = getattr(owner, name, None)
    if original is None or getattr(original, "_stave_wrapped", False):
        return
    wrapped = functools.wraps(original)(make(original))
    wrapped._stave_wrapped = True
    setattr(owner, name, wrapped)


def _traced(original, name, category, args=lambda *a, **k: {}):
    def call(*a, **k):
        if not _stave.enabled(category):
            return original(*a, **k)
        with trace(name, args(*a, **k), category=category):
            return original(*a, **k)
    return call


# ---- gradients ----

def _tensors(values, tensor_type):
    """Tensors with a gradient that is computed, among arguments or results, one level deep."""
    if isinstance(values, tensor_type):
        values = (values,)
    elif isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (tuple, list)):
        return []
    # not leaves: they live on, and hooks would gather there
    return [v for v in values if isinstance(v, tensor_type) and v.requires_grad and v.grad_fn is not None]


def _on_gradient(tensor, begin=None, end=None):
    """When the tensor's gradient is there, modules that it is an argument of end and those that it is a result of begin. One hook per tensor: inner modules register
    first and end first, outer ones begin first, a nanosecond apart, so that slices nest."""
    for ref, begins, ends in _state.hooked[-_NEAR:]:
        if ref() is tensor:
            break
    else:
        begins, ends = [], []

        def hook(gradient):
            now = now_ns()
            for i, one in enumerate(ends):
                one(now + i)
            for i, one in enumerate(reversed(begins)):
                one(now + len(ends) + i)

        tensor.register_hook(hook)
        _state.hooked.append((weakref.ref(tensor), begins, ends))
    if begin:
        begins.append(begin)
    if end:
        ends.append(end)


class _Gradient:
    """Backward of one call of a module: from the gradient of its result to those of its arguments."""

    def __init__(self, name, n_inputs):
        self.name, self.n_inputs = name, n_inputs
        self.start, self.missing = None, n_inputs

    def begin(self, now):
        if self.start is None:
            self.start = now
            if self.n_inputs == 0:
                _state.unfinished[id(self)] = self

    def input(self, now):
        self.missing -= 1
        if self.missing <= 0:
            self.end(now)

    def end(self, now):
        if self.start is not None:
            _complete(self.name, self.start, max(0, now - self.start), category="torch.backward")
        self.start, self.missing = None, self.n_inputs


def _follow_gradient(name, arguments, result, tensor_type):
    outputs = _tensors(result, tensor_type)
    if not outputs:
        return
    inputs = [t for t in _tensors(arguments, tensor_type) if not any(t is o for o in outputs)]
    gradient = _Gradient(name, len(inputs))
    try:
        for tensor in outputs:
            _on_gradient(tensor, begin=gradient.begin)
        for tensor in inputs:
            _on_gradient(tensor, end=gradient.input)
    except RuntimeError:  # a tensor that takes no hooks (vmap): its backward is not shown
        pass


def _patch_backward(torch):
    def make(original):
        def backward(*args, **kwargs):
            _state.has_worked = True
            if not _stave.enabled("torch.backward"):
                return original(*args, **kwargs)
            with trace("backward", category="torch.backward"):
                try:
                    return original(*args, **kwargs)
                finally:
                    now = now_ns() + len(_state.unfinished)
                    while _state.unfinished:  # the last begun is the innermost
                        _state.unfinished.popitem()[1].end(now - len(_state.unfinished))
        return backward

    _wrap(getattr(torch, "autograd", None), "backward", make)


# ---- modules ----

def _name_of(module):
    """The path of attributes from the outermost module, which names all inside it when it is first called."""
    name = _names.get(module)
    if name is not None:
        return name
    root = type(module).__name__
    if _state.depth == 0:
        for path, inner in module.named_modules():
            _names.setdefault(inner, f"{root}.{path}" if path else root)
    return _names.setdefault(module, root)


def _patch_modules(torch, depth):
    is_tracing = getattr(getattr(torch, "jit", None), "is_tracing", lambda: False)

    def make(original):
        def call(self, *args, **kwargs):
            if _state.depth == 0:
                _state.forward()
            if _state.depth >= depth or not _stave.enabled("torch.forward") or is_tracing():
                return original(self, *args, **kwargs)
            name = _name_of(self)
            _state.depth += 1
            try:
                with trace(name, category="torch.forward"):
                    result = original(self, *args, **kwargs)
                _follow_gradient(name, args, result, torch.Tensor)
                return result
            finally:
                _state.depth -= 1
                if _state.depth == 0:
                    _state.hooked.clear()
        return call

    _wrap(torch.nn.Module, "__call__", make)


# ---- optimizers ----

def _patch_optimizers(torch):
    def make_step(original):
        def step(self, *args, **kwargs):
            try:
                if not _stave.enabled("torch.optimizer"):
                    return original(self, *args, **kwargs)
                with trace(f"Optimizer.step#{type(self).__name__}", category="torch.optimizer"):
                    return original(self, *args, **kwargs)
            finally:
                if _state.begin is not None:
                    _state.last = now_ns()
        return step

    def make_init(original):
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            _wrap(type(self), "step", make_step)  # each class has its own
        return __init__

    _wrap(torch.optim.Optimizer, "__init__", make_init)


# ---- data ----

def _fetch_flow(pid, number):
    """The same number in the worker and in the process that takes its batches: both count what it is asked for."""
    digest = hashlib.blake2b(f"{pid}/{number}".encode(), digest_size=8).digest()
    return Flow(int.from_bytes(digest, "little") >> 1 | 1)


def _indices(indices):
    """Which items a batch is made of: how many, the first and the last."""
    try:
        if isinstance(indices, (list, tuple)) and indices and isinstance(indices[0], int):
            return {"items": len(indices), "first_index": int(indices[0]), "last_index": int(indices[-1])}
        return {"first_index": indices} if isinstance(indices, int) else {}
    except Exception:  # an index of the user's own kind
        return {}


def _whose(fetcher, info):
    """The worker, and the number of its batch: they go to all workers in turn, in each epoch anew, with a new fetcher."""
    worker, of = getattr(info, "id", None), getattr(info, "num_workers", None)
    if worker is None:
        return {}
    if of is None or type(fetcher).__name__ != "_MapDatasetFetcher":
        return {"worker": worker}
    turn = fetcher._stave_fetches = getattr(fetcher, "_stave_fetches", -1) + 1
    return {"worker": worker, "batch": turn * of + worker}


_fetches = {}  # in a worker: how many it has made, by its pid


def _patch_fetchers(data):
    def make(original):
        def fetch(self, *args, **kwargs):
            facts, info = {}, data.get_worker_info()
            if info is not None:
                pid = os.getpid()
                number = _fetches[pid] = _fetches.get(pid, -1) + 1
                facts = {"flow": _fetch_flow(pid, number), **_whose(self, info)}
            indices = args[0] if args else kwargs.get("possibly_batched_index")
            facts.update(_indices(indices))
            with trace("dataloader fetch", category="torch.data", **facts):
                return original(self, *args, **kwargs)
        return fetch

    fetchers = getattr(getattr(data, "_utils", None), "fetch", None)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        if hasattr(fetchers, name):
            _wrap(getattr(fetchers, name), "fetch", make)


def _patch_loaders(data):
    loaders = getattr(data, "dataloader", None)

    def make_put(original):
        def _try_put_index(self, *args, **kwargs):
            sent = self._send_idx
            result = original(self, *args, **kwargs)
            if self._send_idx > sent:
                worker = self._task_info[sent][0]
                state = vars(self).setdefault("_stave_sent", ({}, {}))  # how many to each worker; the flow of each batch
                number = state[0][worker] = state[0].get(worker, -1) + 1
                state[1][sent] = _fetch_flow(self._workers[worker].pid, number)
            return result
        return _try_put_index

    def make_next(original):
        def __next__(self):
            _state.batch()
            number = getattr(self, "_num_yielded", 0)
            with trace("dataloader wait", category="torch.data", batch=number):
                result = original(self)
                sent = vars(self).get("_stave_sent")
                flow = sent[1].pop(self._rcvd_idx - 1, None) if sent else None
                if flow is not None:  # at its end: the wait may have begun before the worker did
                    instant("dataloader batch", category="torch.data", batch=number, flow=flow)
                return result
        return __next__

    if hasattr(loaders, "_MultiProcessingDataLoaderIter"):
        _wrap(loaders._MultiProcessingDataLoaderIter, "_try_put_index", make_put)
    if hasattr(loaders, "_BaseDataLoaderIter"):
        _wrap(loaders._BaseDataLoaderIter, "__next__", make_next)


# ---- checkpoints and ranges ----

def _patch_checkpoints(torch):
    def file_of(at):
        def args(*words, **named):
            file = named.get("f", words[at] if len(words) > at else None)
            return {"path": str(file)} if isinstance(file, str) or hasattr(file, "__fspath__") else {}
        return args

    _wrap(torch, "save", lambda original: _traced(original, "checkpoint torch.save", "checkpoint", file_of(1)))
    _wrap(torch, "load", lambda original: _traced(original, "checkpoint torch.load", "checkpoint", file_of(0)))


def _patch_ranges(torch):
    def make_enter(original):
        def __enter__(self):
            name = str(self.name)
            _state.has_own_steps |= name.startswith("ProfilerStep#")
            # torch's own ranges around what has slices of ours
            if not name.startswith(("enumerate(DataLoader)", "Optimizer.")):
                self._stave_range = trace(name, category="torch.range")
                self._stave_range.__enter__()
            return original(self)
        return __enter__

    def make_exit(original):
        def __exit__(self, *exc):
            try:
                return original(self, *exc)
            finally:
                opened = vars(self).pop("_stave_range", None)
                if opened is not None:
                    opened.__exit__(None, None, None)
        return __exit__

    function = getattr(getattr(torch.autograd, "profiler", None), "record_function", None)
    if function is not None:
        _wrap(function, "__enter__", make_enter)
        _wrap(function, "__exit__", make_exit)

    # The original first: without CUDA it raises.
    def make_push(original):
        def range_push(message, *args, **kwargs):
            result = original(message, *args, **kwargs)
            opened = trace(str(message), category="nvtx")
            opened.__enter__()
            _state.ranges.append(opened)
            return result
        return range_push

    def make_pop(original):
        def range_pop(*args, **kwargs):
            result = original(*args, **kwargs)
            if _state.ranges:
                _state.ranges.pop().__exit__(None, None, None)
            return result
        return range_pop

    nvtx = getattr(getattr(torch, "cuda", None), "nvtx", None)
    if nvtx is not None:
        _wrap(nvtx, "range_push", make_push)
        _wrap(nvtx, "range_pop", make_pop)


# ---- threads ----

def _patch_threads():
    """An instant at the start of each thread: so the row has its name, also of one that makes no other event (a queue's feeder, the one that pins memory)."""
    def make(original):
        def bootstrap(self, *a, **k):
            if _stave.enabled("thread"):
                instant("thread start", category="thread")
                _stave.set_thread_name(self.name)
            return original(self, *a, **k)
        return bootstrap
    _wrap(threading.Thread, "_bootstrap_inner", make)


def patch(torch, depth=DEPTH):
    """Wraps what there is of it."""
    _patch_threads()
    _patch_modules(torch, depth)
    _patch_backward(torch)
    _patch_optimizers(torch)
    _patch_checkpoints(torch)
    _patch_ranges(torch)
    data = importlib.import_module("torch.utils.data")
    _patch_loaders(data)
    _patch_fetchers(data)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch as the others do, and patches it after it was executed."""

    def __init__(self, depth):
        self.depth = depth

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # once, and not by find_spec() below
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute, depth = spec.loader.exec_module, self.depth

        def exec_module(module):
            execute(module)
            patch(module, depth)

        spec.loader.exec_module = exec_module
        return spec


def install(depth=DEPTH):
    """Now if torch is there, else when it is imported."""
    if "torch" in sys.modules:
        patch(sys.modules["torch"], depth)
    else:
        sys.meta_path.insert(0, _Finder(depth))


def finish():
    """The last step ends with its optimizer."""
    if _state.last is not None:
        _state.end_step(_state.last)
