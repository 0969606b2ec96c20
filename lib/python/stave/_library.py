"""Why the extension could not be loaded: it uses the libstave that the process has, whoever loaded it."""
import os


def loaded():
    """The files of the libstave that the process has loaded, apart from the one in this package."""
    own = os.path.dirname(os.path.realpath(__file__))
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").split(None, 5)[5:]
            if path and os.path.basename(path[0]).startswith("libstave.so") and os.path.dirname(path[0]) != own:
                found.add(path[0])
    return sorted(found)


def explain(error):
    """The loader's error about a missing symbol or version names neither the library nor what to do."""
    words = str(error)
    others = loaded() if "stave_" in words or "STAVE_" in words else []
    if not others or "this process has loaded" in words:
        return error
    return ImportError(f"{words}: this process has loaded libstave from {', '.join(others)}, which the Python package cannot use; "
                       "update it, or import stave first", name=error.name, path=error.path)
