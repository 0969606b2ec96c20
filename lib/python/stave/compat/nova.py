"""The API of Nova's perfetto_protobuf on top of Stave: its profile API (_profile) and its trace generator (_tgen).

    from stave.compat.nova import open as trace_open, trace, track, count, instant, trace_func

or, with the program's import lines as they are, once before the first of them:

    import stave.compat.nova; stave.compat.nova.install()

Names, call forms and annotations are those of the original. Times of a TraceGenerator are seconds, whatever their type. ``open`` nests: each file has
all events of its own block. Files are written under their names when they are closed, and replace earlier ones. See docs/porting.md.
"""
import functools
import importlib.util
import os
import sys
import threading
import types

from .. import _functions, _names, _session, _stave, _tracks, generator
from .. import writer as _writer
from ._nova_generator import BaseTrack, CounterTrack, Group, GroupTrack, NormalTrack, TraceGenerator

__all__ = ["BaseTrack", "CounterTrack", "Group", "GroupTrack", "NormalTrack", "TraceGenerator", "count", "install", "instant", "open", "stop",
           "trace", "trace_func", "trace_func_args", "trace_open", "track"]

_lock = threading.Lock()
_opened = []  # every open file, in the order in which they came
_copies = ()  # those of them that are no session


def _arguments(args, kwargs):
    """As the original annotates: positional arguments below `kargs`, the others below `kwargs`."""
    found = {}
    if args:
        found["kargs"] = args
    if kwargs:
        found["kwargs"] = kwargs
    return (found,) if found else ()


# ---- files ----

class _Copy:
    """A file opened inside another one: events are written to it, too, with the times at which they were recorded."""

    def __init__(self, path):
        self._file = generator.open_file(path)
        self._process = self._file.process(os.getpid(), _names.what_runs())

    def _row(self, name):
        if name is not None:
            return self._file.track(self._process, name)
        thread = threading.current_thread()
        return self._file.thread(os.getpid(), threading.get_native_id(), thread.name)

    def slice(self, row_name, start_ns, name, args, flows, category):
        self._file.slice(self._row(row_name), start_ns, _stave.now_ns() - start_ns, name, args[0] if args else None, flows, category)

    def instant(self, row_name, name, args, flows):
        self._file.instant(self._row(row_name), _stave.now_ns(), name, args[0] if args else None, flows, "python")

    def count(self, name, value):
        self._file.count(self._file.counter(self._process, name), _stave.now_ns(), value)

    def close(self):
        self._file.close()


def _each_copy(method, *args):
    for copy in _copies:
        try:
            getattr(copy, method)(*args)
        except (OSError, ValueError):  # closed meanwhile by another thread, or failed: close() says so
            pass


def _path_for_perfetto(path):
    """The original takes any name. Where the suffix does not say the format, the file is Perfetto's and gets its name at the end."""
    known = path.removesuffix(".gz").removesuffix(".zst").endswith(_writer._SUFFIXES) or path.startswith(("unix:", "tcp:"))
    return path if known else path + ".pftrace"


class open:
    """``with open("trace.perfetto"): …``: what is traced inside is in the file. Opens may nest, and overlap in threads."""

    def __init__(self, filename):
        self._path = os.fspath(filename)
        self._growing = _path_for_perfetto(self._path)
        self._copy, self._is_open = None, False

    def __enter__(self):
        global _copies
        with _lock:
            if self._is_open:
                raise RuntimeError(f"stave: {self._path!r} is open already")
            if _stave.enabled() or _session._State.path is not None:
                self._copy = _Copy(self._growing)
                _copies += (self._copy,)
            else:
                _session.start(self._growing)
            self._is_open = True
            _opened.append(self)
        return self

    def close(self):
        """The file is complete and has its name. Again: nothing happens."""
        global _copies
        with _lock:
            if not self._is_open:
                return
            self._is_open = False
            _opened.remove(self)
            _copies = tuple(c for c in _copies if c is not self._copy)
        if self._copy is not None:
            self._copy.close()
        elif not _session.stop():
            raise OSError(f"stave: {self._path!r} is not complete; the line on stderr says why")
        if self._growing != self._path:
            os.replace(self._growing, self._path)

    def __exit__(self, *exc):
        self.close()


trace_open = open


def stop():
    """Closes the file that was opened last, if there is one."""
    with _lock:
        last = _opened[-1] if _opened else None
    if last is not None:
        last.close()


# ---- events ----

class _Slice:
    """A slice: ``with trace("send").get_outgoing_flow_ids(2) as ids: …``, ``with trace("receive").set_incoming_flow_ids(ids): …``"""

    __slots__ = ("_inner", "_outgoing")

    def __init__(self, inner):
        self._inner, self._outgoing = inner, None

    def __enter__(self):
        self._inner.__enter__()
        return self._outgoing or []

    def __exit__(self, kind, error, traceback):
        self._inner.__exit__(kind, error, traceback)

    def set_incoming_flow_ids(self, flows):
        """Flows that end here. Returns the slice."""
        self._inner.set_incoming_flow_ids(flows)
        return self

    def get_outgoing_flow_ids(self, n=1):
        """Starts `n` new flows here; `as` gives their numbers. Returns the slice."""
        self._outgoing = self._inner.get_outgoing_flow_ids(n)
        return self

    def set_caller(self, caller):
        """Accepted; where a call is in the source is not recorded. Returns the slice."""
        return self


class _CopiedSlice(_Slice):
    """A slice of the session that is written to the inner files as well."""

    __slots__ = ("_row", "_name", "_args", "_category", "_incoming", "_start")

    def __init__(self, inner, row_name, name, args, category="python"):
        super().__init__(inner)
        self._row, self._name, self._args, self._category, self._incoming = row_name, name, args, category, []

    def __enter__(self):
        self._start = _stave.now_ns()
        return super().__enter__()

    def __exit__(self, kind, error, traceback):
        super().__exit__(kind, error, traceback)
        args = self._args
        if kind is not None:
            args = ({**(args[0] if args else {}), "exception": error},)
        _each_copy("slice", self._row, self._start, str(self._name), args, self._incoming + (self._outgoing or []), self._category)

    def set_incoming_flow_ids(self, flows):
        self._incoming += _as_list(flows)
        return super().set_incoming_flow_ids(flows)


def _as_list(flows):
    return [] if flows is None else list(flows) if isinstance(flows, (list, tuple, set)) else [flows]


def trace(name, /, *args, **kwargs):
    """A slice on the thread's row: ``with trace("matmul", size=1024): …``"""
    args = _arguments(args, kwargs)
    inner = _stave.trace(name, *args)
    return _CopiedSlice(inner, None, name, args) if _copies else _Slice(inner)


def _described(description, kwargs):
    """The items of a dictionary are the arguments; of a list they are below `data_list`."""
    if isinstance(description, (list, tuple)):
        description = {"data_list": description}
    elif description is not None and not isinstance(description, dict):
        description = {"description": description}
    return ({**(description or {}), **kwargs},) if description or kwargs else ()


def _instant(record, row_name, name, args, incoming, outgoing):
    ids = record(name, *args, incoming_flow_ids=incoming, num_outgoing_flow_ids=outgoing)
    if _copies:
        _each_copy("instant", row_name, str(name), args, _as_list(incoming) + ids)
    return ids


def instant(name, description=None, *, incoming_flow_ids=None, num_outgoing_flow_ids=0, **kwargs):
    """A moment. Returns the numbers of as many new flows as were asked for, as a list."""
    return _instant(_stave.instant, None, name, _described(description, kwargs), incoming_flow_ids, num_outgoing_flow_ids)


class track(_tracks.track):
    """A row of its own: ``track("Compute").trace("matmul")``. The same name is the same row."""

    def trace(self, name, /, *args, **kwargs):
        """A slice on this row."""
        args = _arguments(args, kwargs)
        inner = super().trace(name, *args)
        return _CopiedSlice(inner, self.name, name, args) if _copies else _Slice(inner)

    def instant(self, name, description=None, *, incoming_flow_ids=None, num_outgoing_flow_ids=0, **kwargs):
        """A moment on this row."""
        return _instant(super().instant, self.name, name, _described(description, kwargs), incoming_flow_ids, num_outgoing_flow_ids)


class count(_tracks.count):
    """A value over time: ``count("memory").count(500)`` sets it, ``.increment(100)`` adds to it. One per name."""

    _all = {}

    def count(self, value):
        """The value from now on."""
        super().count(value)
        if _copies:
            _each_copy("count", self.name, self.value)

    def increment(self, by=1):
        """Adds to the value."""
        super().increment(by)
        if _copies:
            _each_copy("count", self.name, self.value)


# ---- decorators ----

def _on(number, name, category):
    row = _stave.Track(number) if number else None

    def open_slice(name, *args, category):
        inner = row.trace(name, *args, category=category) if row else _stave.trace(name, *args, category=category)
        return _CopiedSlice(inner, _names_of_rows.get(number), name, args, category) if _copies else inner

    return functools.partial(open_slice, name, category="function")


_names_of_rows = {}


def _decorator(function, arguments):
    def decorate(f, row=None):
        if row is not None:
            _names_of_rows[row.id] = row.name
        return _functions.decorate(f, row, arguments, getattr(f, "__name__", None), None, _on)

    if isinstance(function, _stave.Track):
        return lambda f: decorate(f, function)
    return decorate if function is None else decorate(function)


def trace_func(function=None):
    """Every call is a slice: ``@trace_func`` on the thread's row, ``@trace_func(track("Compute"))`` on that one."""
    return _decorator(function, None)


def trace_func_args(function=None):
    """Like trace_func, with the arguments of the call."""
    return _decorator(function, lambda function, args, kwargs: _arguments(args, kwargs))


# ---- the original's module names ----

_PACKAGE = "nova_platform.perfetto_protobuf"
_PROFILE = ("count", "instant", "open", "stop", "trace", "trace_func", "trace_func_args", "trace_open", "track")
_GENERATOR = ("BaseTrack", "CounterTrack", "Group", "GroupTrack", "NormalTrack", "TraceGenerator")


def _module(name, names=(), is_package=False):
    module = types.ModuleType(name, __doc__)
    module.__dict__.update({n: globals()[n] for n in names})
    module._is_stave = True
    if is_package:
        module.__path__ = []
    return module


def install():
    """Makes ``from nova_platform.perfetto_protobuf._profile import …`` and ``…._tgen`` mean this module.

    The rest of an installed nova_platform stays as it is. Call it before the first of these imports; again: nothing happens.
    """
    there = sys.modules.get(_PACKAGE)
    if getattr(there, "_is_stave", False):
        return
    if there is not None:
        raise RuntimeError(f"stave: {_PACKAGE} is imported already; call stave.compat.nova.install() before the first import of it")
    package = _module(_PACKAGE, _PROFILE + _GENERATOR, is_package=True)
    package._profile, package._tgen = _module(_PACKAGE + "._profile", _PROFILE), _module(_PACKAGE + "._tgen", _GENERATOR)
    sys.modules.update({m.__name__: m for m in (package, package._profile, package._tgen)})
    if "nova_platform" not in sys.modules and importlib.util.find_spec("nova_platform") is None:
        sys.modules["nova_platform"] = _module("nova_platform", is_package=True)
    importlib.import_module("nova_platform").perfetto_protobuf = package
