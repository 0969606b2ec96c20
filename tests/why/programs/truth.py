"""What a program of tests/why says of itself. Each program plants one cause or none, measures it with its own clock, and writes its truth
to the file that WHY_TRUTH names; judge.py compares it with what `stave explain` says. Only the standard library.

    run = Run()
    for i in run.loop(40):             # each turn is a unit, marked as a step unless marked=False
        with run.measure("lock"):      # a clock of its own for each word
            lock.acquire()
    run.cause("lock", run.ns["lock"], name="locker", function="locker")
    run.write()

Facts of a culprit are members of explain's `culprit`; several values of one are alternatives. What the scheduler made the main thread wait
for a CPU (schedstat) goes into the truth as noise: on a busy machine it is a true cause that nobody planted."""
import contextlib
import ctypes
import json
import os
import sys
import threading
import time

try:
    import stave
except ImportError:
    stave = None

HEALTHY = "--healthy" in sys.argv
FOLDER = os.environ.get("WHY_FOLDER", ".")
FILE = os.path.basename(sys.argv[0])
now = time.monotonic_ns


def mark(name, category="compute", **arguments):
    """A slice in the trace, where the package is there."""
    return stave.trace(name, category=category, **arguments) if stave else contextlib.nullcontext()


def name_thread(name):
    """Names the calling thread for the kernel and for Python."""
    threading.current_thread().name = name
    ctypes.CDLL(None).prctl(15, name.encode()[:15], 0, 0, 0)


def run_delay():
    """How long this thread waited for a CPU since it began, by the kernel's account."""
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])


def spin(seconds):
    """Computes for this much CPU time in pure Python."""
    x, end = 0, time.thread_time() + seconds
    while time.thread_time() < end:
        for i in range(200):
            x += i * i
    return x


def caller_line():
    """The line of the caller: for facts of culprits."""
    return sys._getframe(1).f_lineno


class Run:
    def __init__(self):
        self.ns, self.causes, self.allowed, self.units = {}, [], [], None
        self.wall = self.delay = self.cpu = 0

    @contextlib.contextmanager
    def measure(self, word):
        begin = now()
        try:
            yield
        finally:
            self.ns[word] = self.ns.get(word, 0) + now() - begin

    @contextlib.contextmanager
    def whole(self):
        """The main loop: what shares are of. Called by the thread whose time is judged."""
        begin, delay, cpu = now(), run_delay(), time.thread_time_ns()
        yield
        self.wall, self.delay, self.cpu = (now() - begin, run_delay() - delay,
                                           time.thread_time_ns() - cpu)

    def loop(self, n, kind="step", marked=True):
        self.units = {"kind": kind, "n": n, "marked": bool(marked and stave)}
        with self.whole():
            for i in range(n):
                with mark(f"step {i}", "step") if marked else contextlib.nullcontext():
                    yield i

    def waited(self):
        """What the main thread neither ran nor waited for a CPU in the main loop."""
        return max(0, self.wall - self.cpu - self.delay)

    def cause(self, words, ns, *either, **culprit):
        """A planted cause: words that explain may use, its time, and facts of the culprit
        (EITHER: alternatives, each a dictionary)."""
        self.causes.append({"cause": words.split(), "ns": ns,
                            "culprit": [d for d in (culprit, *either) if d]})

    def allow(self, words, ns):
        """What is true as well, up to NS: not planted, and not false."""
        self.allowed.append({"cause": words.split(), "ns": ns})

    def write(self, **more):
        share = lambda ns: round(ns / self.wall, 4)
        truth = {"healthy": not self.causes, "units": self.units, "dur_ns": self.wall,
                 "pid": os.getpid(),
                 "causes": [{"cause": c["cause"], "share": share(c["ns"]), "culprit": c["culprit"]}
                            for c in sorted(self.causes, key=lambda c: -c["ns"])],
                 "allowed": [{"cause": c["cause"], "share": share(c["ns"])} for c in self.allowed],
                 "noise": {"cpu": share(self.delay)}, **more}
        path = os.environ.get("WHY_TRUTH")
        text = json.dumps(truth, indent=1)
        if path:
            with open(path, "w") as file:
                file.write(text + "\n")
        else:
            print(text)
