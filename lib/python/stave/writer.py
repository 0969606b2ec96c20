"""A writer of complete events by name, category and elapsed milliseconds: for probes that measure by themselves.

    w = TraceWriter.from_env()          # STAVE_TRACE_OUT or FERRUM_TRACE_OUT; unset: a writer that does nothing
    w.push("attn", "attention", 1.25, tid=3)

The start is back-dated by the duration. Rows are layers (`tid`). The file is written by flush() or close(), at the end of the program
at the latest; what was flushed once stays.
"""
import atexit
import dataclasses
import os
import threading

from . import _stave

_VARIABLES = ("STAVE_TRACE_OUT", "FERRUM_TRACE_OUT")


@dataclasses.dataclass
class TraceEvent:
    """One complete event; times in microseconds since the writer was made."""
    name: str
    cat: str
    ph: str
    ts: int
    dur: int
    pid: int
    tid: int
    args: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def complete(cls, name, cat, start_ts_us, dur_ms, tid):
        """An event of category `cat` that took `dur_ms`."""
        us = dur_ms * 1000
        dur = 0 if not us > 0 else 2**64 - 1 if us >= 2**64 else int(us + 0.5)
        return cls(name, cat, "X", start_ts_us, dur, 0, tid)

    def to_dict(self):
        """The members as they are in the file: `args` only where there are some."""
        members = dataclasses.asdict(self)
        return members if self.args else {k: v for k, v in members.items() if k != "args"}


_SUFFIXES = (".pftrace", ".perfetto-trace", ".perfetto", ".pb", ".proto", ".json")  # the library's: tests/python compares


class TraceWriter:
    """Complete events by name, category, elapsed milliseconds and layer, into one file."""

    def __init__(self, path=None):
        self._path = None if path is None else os.fspath(path)
        self._epoch_ns = _stave.now_ns()
        self._lock = threading.Lock()
        self._events = []  # of the newest file only: see flush()
        self._pid = os.getpid()
        self._is_dirty = False
        if self._path:
            if not self._path.removesuffix(".gz").removesuffix(".zst").endswith(_SUFFIXES):
                raise ValueError(f"stave: {self._path}: expected a name that ends in {', '.join(_SUFFIXES)}, or with .gz or .zst after it")
            atexit.register(self.close)

    @classmethod
    def from_env(cls):
        """The file that STAVE_TRACE_OUT or FERRUM_TRACE_OUT names; off when neither is set."""
        return cls.from_env_vars(os.environ)

    @classmethod
    def from_env_vars(cls, variables):
        """A mapping, or pairs of name and value."""
        variables = dict(variables)
        path = next((variables[v] for v in _VARIABLES if variables.get(v)), None)
        return cls(path)

    @classmethod
    def enabled(cls, path):
        """A writer of this file."""
        return cls(path)

    @classmethod
    def disabled(cls):
        """A writer that does nothing."""
        return cls(None)

    def is_enabled(self):
        """Is there a file?"""
        return self._path is not None

    def push(self, name, cat, dur_ms, tid=0):
        """An event that ended now and took `dur_ms`."""
        self.push_with_args(name, cat, dur_ms, tid, None)

    def push_with_args(self, name, cat, dur_ms, tid, args):
        """The same with arguments, as a dictionary."""
        if self._path is None:
            return
        dur_ns = round(dur_ms * 1e6)
        start_ns = max(0, _stave.now_ns() - self._epoch_ns - dur_ns)
        with self._lock:
            self._events.append((tid, start_ns, dur_ns, str(name), args, str(cat)))
            self._is_dirty = True

    def flush(self):
        """The file holds everything pushed so far, whole: it is replaced in one step, and a second flush loses nothing."""
        if self._path is None or self._pid != os.getpid():
            return
        with self._lock:
            if not self._is_dirty:
                return
            file = _stave.File(self._path)
            rows = {}
            for tid, start_ns, dur_ns, name, args, cat in self._events:
                row = rows.get(tid)
                if row is None:
                    row = rows[tid] = file.thread(0, tid, f"layer {tid}")
                file.slice(row, start_ns, dur_ns, name, args, None, cat)
            file.close()
            self._is_dirty = False

    def close(self):
        """Flushes. Again: nothing happens."""
        self.flush()
        atexit.unregister(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


_global = None
_global_lock = threading.Lock()


def global_trace():
    """The writer of the program, made from the environment at the first call."""
    global _global
    with _global_lock:
        if _global is None:
            _global = TraceWriter.from_env()
        return _global


def flush_global_trace():
    """Flushes the writer of the program, if there is one."""
    if _global is not None:
        _global.flush()
