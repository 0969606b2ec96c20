"""`stave record --inject torch`: Python runs this file at its start. It runs the sitecustomize that it hides, and when torch is imported it has the package stave
wrap it (stave._torch_auto). A process that does not import torch does not load stave."""
import importlib.util
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


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(_Finder)
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
        return importlib.util.find_spec(name)


try:
    _run_hidden()
finally:
    sys.meta_path.insert(0, _Finder)
