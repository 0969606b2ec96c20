"""stave.auto(): every function of chosen modules, by sys.monitoring (Python 3.12 and later) or sys.setprofile."""
import fnmatch
import os
import sys
import threading

from . import _stave

_NO_LIMIT = 2**63
_HERE = os.path.dirname(__file__)


def _module_of(code, cache={}):
    """The name of the module a file belongs to: of the longest entry of sys.path before it."""
    path = code.co_filename
    name = cache.get(path)
    if name is None:
        name = path
        if path.endswith(".py"):
            best = max((p for p in sys.path if p and path.startswith(p.rstrip("/") + "/")), key=len, default="")
            name = path[len(best):-3].strip("/").replace("/", ".")
            name = name.removesuffix(".__init__")
            main = sys.modules.get("__main__")
            if getattr(main, "__file__", None) and os.path.abspath(main.__file__) == os.path.abspath(path):
                name = "__main__"
        cache[path] = name
    return name


def _matches(name, globs):
    return any(fnmatch.fnmatchcase(name, g) or fnmatch.fnmatchcase(name, g + ".*") for g in globs)


def _make_filter(include, exclude, functions):
    def name_of(code):
        if code.co_filename.startswith((_HERE, "<frozen")):
            return None
        module = _module_of(code)
        if not _matches(module, include) or _matches(module, exclude):
            return None
        name = code.co_qualname
        if name == "<module>":
            name = f"<module {module}>"
        if functions and not any(fnmatch.fnmatchcase(name, g) for g in functions):
            return None
        return name
    return name_of


class auto:
    """Traces every function of the modules whose names match, until stop() or the end of the `with` block.

        with stave.auto("mymodel.*", exclude=["mymodel.utils"]): …

    modules: globs of module names (a package includes what is in it); the default is the program itself, __main__.
    functions: globs of qualified names; max_depth: how many traced calls deep.
    """

    _running = None

    def __init__(self, *modules, exclude=(), functions=(), max_depth=_NO_LIMIT):
        if auto._running is not None:
            raise RuntimeError("stave.auto: it is running already; stop it first")
        exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        functions = [functions] if isinstance(functions, str) else list(functions)
        self._filter = _make_filter(list(modules) or ["__main__"], exclude, functions)
        self._tool = None
        if hasattr(sys, "monitoring"):
            self._start_monitoring(max_depth)
        else:
            _stave.auto_setup(self._filter, max_depth, None)
            threading.setprofile(self._in_new_thread)
            _stave.profile_thread(True)
        auto._running = self

    def _start_monitoring(self, max_depth):
        m = sys.monitoring
        tool = next((i for i in (m.PROFILER_ID, 3, 4) if m.get_tool(i) is None), None)
        if tool is None:
            raise RuntimeError("stave.auto: other tools have all places of sys.monitoring")
        m.use_tool_id(tool, "stave")
        self._tool = tool
        _stave.auto_setup(self._filter, max_depth, m.DISABLE)
        e = m.events
        for event, callback in ((e.PY_START, _stave.mon_begin), (e.PY_RESUME, _stave.mon_begin),
                                (e.PY_RETURN, _stave.mon_end), (e.PY_YIELD, _stave.mon_end),
                                (e.PY_THROW, _stave.mon_throw), (e.PY_UNWIND, _stave.mon_unwind)):
            m.register_callback(tool, event, callback)
        m.restart_events()
        m.set_events(tool, e.PY_START | e.PY_RESUME | e.PY_RETURN | e.PY_YIELD | e.PY_THROW | e.PY_UNWIND)

    @staticmethod
    def _in_new_thread(frame, event, arg):
        _stave.profile_thread(True)

    def stop(self):
        """No function is traced any more. Again: nothing happens."""
        if auto._running is not self:
            return
        auto._running = None
        if self._tool is not None:
            sys.monitoring.set_events(self._tool, 0)
            for event in ("PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "PY_THROW", "PY_UNWIND"):
                sys.monitoring.register_callback(self._tool, getattr(sys.monitoring.events, event), None)
            sys.monitoring.free_tool_id(self._tool)
        else:
            threading.setprofile(None)
            _stave.profile_thread(False)
        _stave.auto_setup(None, 0, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()
