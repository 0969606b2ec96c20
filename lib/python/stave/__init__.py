"""Stave: tracing that costs little enough to leave in.

    import stave

    with stave.open("trace.pftrace"):
        with stave.trace("matmul", size=1024):
            ...

or without a line about files: ``STAVE_OUT=trace.pftrace python3 script.py``, ``python3 -m stave record -- script.py``. Until it is
switched on, an event costs some nanoseconds. The files open in Perfetto and with the program ``stave``. See docs/python.md.
"""
try:
    from . import _stave
except ImportError as error:
    from ._library import explain
    raise explain(error) from None
from . import _names, _tasks  # the C part looks for them
from ._auto import auto
from ._functions import trace_func, trace_func_args
from ._session import flush, open, start, stop
from ._tracks import Flow, count, flow, group, track
from ._trace_context import trace_context
from ._names import process_name, thread_name
from ._stave import categories, counts, enabled, instant, now_ns, trace, trigger
from .generator import CounterTrack, Group, GroupTrack, NormalTrack, TraceGenerator
from .writer import TraceEvent, TraceWriter, flush_global_trace, global_trace

__version__: str = _stave.version

__all__ = [
    "CounterTrack", "Flow", "Group", "GroupTrack", "NormalTrack", "TraceEvent", "TraceGenerator", "TraceWriter",
    "auto", "categories", "complete", "count", "counts", "enabled", "flow", "flush", "flush_global_trace", "global_trace", "group",
    "instant", "load", "log_handler", "now_ns", "open", "process_name", "start", "stop", "thread_name", "trace", "trace_context", "trace_func", "trace_func_args", "trace_tasks",
    "track", "trigger",
]

complete = _stave.Track(0).complete  # a slice measured elsewhere, on the thread's own track


def load(*paths, format=None, strict=False, assume=False, index=True, memory_limit=0, threads=0):
    """Loads a trace, or several ones as `stave merge` puts them together: ``stave.load("run.pftrace").query("select …").df()``. See stave.reading."""
    from . import reading  # not before it is needed: it loads a library
    return reading.load(*paths, format=format, strict=strict, assume=assume, index=index, memory_limit=memory_limit, threads=threads)


def log_handler(level=0, **kwargs):
    """A logging.Handler: every log record is a moment of the trace. ``logging.getLogger().addHandler(stave.log_handler())``"""
    from .logs import Handler
    return Handler(level, **kwargs)


def trace_tasks(loop=None):
    """Every asyncio task created from now on is a slice on a row of its own, from its first step to its end."""
    return _tasks.install(loop)
