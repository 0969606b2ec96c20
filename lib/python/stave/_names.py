"""Names of processes and threads, as Python has them. The C part calls name_thread() at a thread's first event."""
import os
import sys
import threading

from . import _stave

_named = None  # the process that has its name
_given = None  # by the program, to this process or to the one that forked it
_local = threading.local()  # name: given by the program


def what_runs():
    """What this process runs: its script or module, and of a worker of multiprocessing its name."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if _given is not None:
        name = _given
    elif spec is not None:
        name = spec.name.removesuffix(".__main__")
    elif getattr(main, "__file__", None):
        name = os.path.basename(main.__file__)
    else:
        name = os.path.basename(sys.executable or "python") + (" -c" if sys.argv[:1] == ["-c"] else "")
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        name = f"{name}: {process.current_process().name}"
    return name


def name_thread():
    """Names the calling thread and, once, its process."""
    global _named
    thread = threading._active.get(threading.get_ident())  # current_thread() would make one for a thread that Python did not start
    name = getattr(_local, "name", None)
    if name is None and thread is not None and not isinstance(thread, threading._DummyThread):
        name = thread.name
    if name is not None:
        _stave.set_thread_name(name)
    if _named != os.getpid():
        _named = os.getpid()
        _stave.set_process_name(what_runs())


def thread_name(name):
    """Names the row of the calling thread, in this and in later sessions. Without it the row has the name of the threading.Thread."""
    _local.name = str(name)
    _stave.name_now()
    _stave.set_thread_name(_local.name)


def process_name(name):
    """Names this process in the trace. Without it the process has the name of what it runs: its script or module."""
    global _named, _given
    _named, _given = os.getpid(), str(name)
    _stave.set_process_name(_given)
