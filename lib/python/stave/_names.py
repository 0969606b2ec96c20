"""Names of processes and threads, as Python has them."""
import os
import sys


def process_name():
    """What this process runs: its script or module, and of a worker of multiprocessing its name."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        name = spec.name.removesuffix(".__main__")
    elif getattr(main, "__file__", None):
        name = os.path.basename(main.__file__)
    else:
        name = os.path.basename(sys.executable or "python") + (" -c" if sys.argv[:1] == ["-c"] else "")
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        name = f"{name}: {process.current_process().name}"
    return name
