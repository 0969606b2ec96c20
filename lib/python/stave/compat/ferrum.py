"""ferrum's trace writer: complete events by name, category and elapsed milliseconds, into the file that ferrum makes.

    from stave.compat.ferrum import TraceWriter, global_trace, flush_global_trace

    global_trace().push("attn", "attention", 1.25, 3)       # FERRUM_TRACE_OUT or STAVE_TRACE_OUT; unset: nothing happens

The file is a bare array of events with whole microseconds; tid is the layer. The file is a whole trace at any time; events wait in
memory for at most 0.1 s while others come, and are written at a flush and at the end of the program. After a signal or os._exit(), `stave recover
trace.json` adds the last ones. Forked children write to the same file. A path that cannot be written is one line on stderr.
"""
import json
import math
import os

from .. import _stave
from ..writer import TraceEvent

__all__ = ["TraceEvent", "TraceWriter", "flush_global_trace", "global_trace"]

_DEPTH_MAX = 100


def _plain(value):
    """What JSON does not know: numpy's values as Python's, anything else as text."""
    try:
        plain = value.tolist()
        if plain is None or isinstance(plain, (bool, int, float, str, list)):
            return plain
    except Exception:
        pass
    try:
        return str(value)
    except Exception:
        return str(type(value))


def _cleaned(value, outer=()):
    """As JSON can hold it. A container that is inside of itself, or too deep, is the text of its type."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if not isinstance(value, (dict, list, tuple)):
        return _cleaned(_plain(value), outer)
    if len(outer) == _DEPTH_MAX or any(value is o for o in outer):
        return str(type(value))
    outer = (*outer, value)
    if isinstance(value, dict):
        return {str(k): _cleaned(v, outer) for k, v in value.items()}
    return [_cleaned(v, outer) for v in value]


def _json(args):
    """The text of an object. NaN and infinities become null, as in serde_json."""
    args = args if isinstance(args, dict) else {"data": args}
    try:
        return json.dumps(args, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_cleaned(args), separators=(",", ":")).encode()


class TraceWriter:
    """A writer to one file; without a path it does nothing."""
    __slots__ = ("_writer",)

    def __init__(self, out_path=None):
        self._writer = _stave.trace_writer_open(out_path) if out_path is not None else None

    @classmethod
    def _of(cls, writer):
        self = cls()
        self._writer = writer
        return self

    @classmethod
    def from_env(cls):
        """To STAVE_TRACE_OUT or FERRUM_TRACE_OUT; a disabled writer where both are unset or empty."""
        return cls._of(_stave.trace_writer_from_env())

    @classmethod
    def from_env_vars(cls, variables):
        """The same with a mapping, or pairs of name and value, instead of the environment."""
        pairs = variables.items() if hasattr(variables, "items") else variables
        return cls._of(_stave.trace_writer_from_vars([os.fsencode(name) + b"=" + os.fsencode(value) for name, value in pairs
                                                      if "\0" not in os.fsdecode(name) + os.fsdecode(value)]))

    @classmethod
    def enabled(cls, out_path):
        """A writer to this file, which is replaced."""
        return cls(out_path)

    @classmethod
    def disabled(cls):
        """A writer that does nothing."""
        return cls(None)

    def is_enabled(self):
        """Are events wanted?"""
        return self._writer is not None

    def push(self, name, cat, dur_ms, tid=0):
        """An event that ended now and took `dur_ms`. `tid` is the layer, 0 for the engine."""
        if self._writer is not None:
            _stave.trace_writer_push(self._writer, name, cat, dur_ms, tid, None)

    def push_with_args(self, name, cat, dur_ms, tid, args):
        """The same with a dictionary of arguments."""
        if self._writer is not None:
            _stave.trace_writer_push(self._writer, name, cat, dur_ms, tid, None if args is None else _json(args))

    def flush(self):
        """Writes what is not in the file yet. False where that has failed, or an event was lost."""
        return self._writer is None or _stave.trace_writer_flush(self._writer) == 0

    def close(self):
        """Later events are not recorded."""
        self._writer = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


_global = None


def global_trace():
    """The writer of the program, made from the environment at the first call."""
    global _global
    if _global is None:
        _global = TraceWriter._of(_stave.trace_writer_global())
    return _global


def flush_global_trace():
    """Flushes the global writer, if it was used."""
    if _global is not None:
        _global.flush()
