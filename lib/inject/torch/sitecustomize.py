"""`stave record --inject torch`: Python runs this file at its start. It runs the sitecustomize that it hides, and when torch is imported it has the package stave
wrap it (stave._torch_auto). A process that does not import torch does not load stave. Threads of threading get their names in the kernel, too, where the
recorder finds them."""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_hidden():
    """The other sitecustomize, if there is one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


def _load():
    """stave._torch_auto of this Python, or of the build folder that this file is in."""
    try:
        from stave import _torch_auto
    except ImportError:
        beside = os.path.join(os.path.dirname(_HERE), "python")
        if not os.path.isdir(beside):
            raise
        sys.path.append(beside)
        try:
            from stave import _torch_auto
        finally:
            sys.path.remove(beside)
    return _torch_auto


def _name_threads(threading):
    """Each thread that Python starts names itself for the kernel, as CPython does by itself from 3.14 on. A thread without a name of its own,
    "Thread-1 (load)", has that of its function."""
    set_id = threading.Thread._set_native_id

    def set_native_id(self):  # the first that a new thread calls; it is not on the stack when the thread works
        set_id(self)
        if isinstance(self, (threading._MainThread, threading._DummyThread)):
            return  # who started it may have named it
        name = self.name
        if name.startswith("Thread-") and name.endswith(")"):
            name = name[name.find("(") + 1:-1]
        try:
            fd = os.open(f"/proc/self/task/{self.native_id}/comm", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.write(fd, name.encode("ascii", "replace")[:15])
        except OSError:
            pass
        finally:
            os.close(fd)

    threading.Thread._set_native_id = set_native_id


def _of_others(name, path, target):
    """As the other finders have it. Not by importlib.util: what that imports takes 4 ms of each start of Python."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path, target) if finder is not _Finder and hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def _find_threading(*where):
    """Its threads are named after it was executed."""
    spec = _of_others(*where)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _name_threads(module)

        spec.loader.exec_module = exec_module
    return spec


def _find_torch(*where):
    try:
        auto = _load()
    except ImportError as error:
        # By default (the command is Python) nobody asked for it by name.
        asked = "" if os.environ.get("STAVE_TORCH_DEFAULT") else "--inject torch: "
        print(f"stave: {asked}{sys.executable} has no usable package stave ({error}), torch is not traced: pip install stave, or "
              "apt install python3-stave", file=sys.stderr)
        return None
    import atexit
    depth = os.environ.get("STAVE_TORCH_DEPTH", "")
    auto.install(int(depth) if depth.isdigit() else auto.DEPTH)
    atexit.register(auto.finish)
    return _of_others(*where)


class _Finder:
    """Finds each of these modules as the others do, once."""
    wanted = {"torch": _find_torch}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        find = cls.wanted.pop(name, None)
        if find is None:
            return None
        if not cls.wanted:
            sys.meta_path.remove(cls)
        return find(name, path, target)


try:
    _run_hidden()
finally:
    sys.meta_path.insert(0, _Finder)
    if sys.version_info < (3, 14):
        if "threading" in sys.modules:
            _name_threads(sys.modules["threading"])
        else:
            _Finder.wanted["threading"] = _find_threading
