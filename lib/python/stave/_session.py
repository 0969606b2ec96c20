"""Sessions: open, start, flush, stop; and what other processes of the program need to know of them."""
import inspect
import os
import sys

from . import _errors, _stave

_FULL = {"drop": 1, "block": 2, "overwrite": 3}
_SESSION = "STAVE_PYTHON_SESSION"  # for spawned workers of multiprocessing, which inherit nothing but the environment
_real_exit = os._exit


class _State:
    path = None  # of the session this program opened
    by_environment = False  # STAVE_OUT: the session is older than the program


def _exit(status):
    """os._exit() that keeps the trace: forked workers end by it."""
    if _State.path is not None or _stave.enabled():
        _stave.finish()
    _real_exit(status)


def _keep_trace_at_exit():
    if os._exit is _real_exit:
        os._exit = _exit


def _refuse(unknown):
    known = [name for name, p in inspect.signature(start).parameters.items() if p.kind is p.KEYWORD_ONLY]
    raise _errors.OptionError(f"stave: no option {', '.join(map(repr, unknown))}; there are {', '.join(known)}")


def start(path=None, *, categories=None, buffer_bytes=0, full="block", compress=None, keep_ms=0, after_ms=0,
          trigger_signal=0, trigger_name=None, trigger_ms=0, **unknown):
    """Starts writing to `path` (.pftrace, .json, .json.gz, unix:PATH, tcp:HOST:PORT; %p pid, %h host, %r rank, %j job).

    full: what happens when events come faster than they can be written: "block" (wait: nothing is lost), "drop" (count them), "overwrite"
    (flight recorder: stave.trigger() writes what it holds). A session started by STAVE_OUT continues instead, and its file is used.
    """
    if unknown:
        _refuse(unknown)
    for name, value in (("buffer_bytes", buffer_bytes), ("keep_ms", keep_ms), ("after_ms", after_ms), ("trigger_ms", trigger_ms)):
        if value < 0:
            raise ValueError(f"stave: {name}={value!r}: expected 0 or more")
    if _State.path is not None:
        raise RuntimeError(f"stave: a trace is being written to {_State.path!r} already; sessions do not nest: stop it first")
    if full not in _FULL:
        raise ValueError(f"stave: full={full!r}: expected 'block', 'drop' or 'overwrite'")
    if _State.by_environment and _stave.enabled():
        return False
    out = None if path is None else os.fsdecode(path)
    if out is None and not os.environ.get("STAVE_OUT"):
        raise ValueError("stave: where to? give a path, or set STAVE_OUT")
    why = _stave.start(out=out, categories=categories, buffer_bytes=buffer_bytes, full=_FULL[full], compress=compress,
                       keep_ms=keep_ms, after_ms=after_ms, trigger_signal=trigger_signal, trigger_name=trigger_name,
                       trigger_ms=trigger_ms)
    if why is not None or not _stave.enabled():
        raise _errors.failure(why or f"cannot trace to {out!r}", out)
    _State.path = out or os.environ["STAVE_OUT"]
    if _stave.session():
        os.environ[_SESSION] = _stave.session()
    _stave.look_for_tasks()
    _keep_trace_at_exit()
    return True


def _hide(parameter):
    """What start() takes only to refuse it is not in its signature."""
    signature = inspect.signature(start)
    return signature.replace(parameters=[p for name, p in signature.parameters.items() if name != parameter])


start.__signature__ = _hide("unknown")


def flush():
    """Everything recorded so far is in the (growing) file."""
    return _stave.flush() == 0


def stop():
    """The file is complete and has its name. A session started by STAVE_OUT continues to the end of the program: it is flushed."""
    if _State.by_environment and _State.path is None and _stave.enabled():
        return flush()
    _State.path = None
    os.environ.pop(_SESSION, None)
    return _stave.stop() == 0


class open:
    """``with stave.open("trace.pftrace"): …``; the options are those of stave.start()."""

    __signature__ = start.__signature__

    def __init__(self, path=None, **options):
        unknown = options.keys() - self.__signature__.parameters.keys()
        if unknown:
            _refuse(sorted(unknown))
        self._path, self._options = path, options
        self._is_ours = False

    def __enter__(self):
        self._is_ours = start(self._path, **self._options)
        return self

    def __exit__(self, *exc):
        if self._is_ours:
            stop()
        else:
            flush()

    def flush(self):
        """Everything recorded so far is in the (growing) file."""
        return flush()


def _is_worker():
    """A worker of multiprocessing that was started afresh (spawn, forkserver), while it loads the program."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and getattr(process.current_process(), "_inheriting", False)


def _begin():
    if _stave.enabled():
        _State.by_environment = True
        _keep_trace_at_exit()
    elif _SESSION in os.environ and _is_worker():
        os.environ["STAVE_SESSION"] = os.environ[_SESSION]
        if _stave.start(full=_FULL["block"]) is None:
            _State.by_environment = True
            _keep_trace_at_exit()
        del os.environ["STAVE_SESSION"]


_begin()
