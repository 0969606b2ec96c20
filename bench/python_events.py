"""What events cost in Python: lines `name value unit` for bench/run.

Each figure is the cost of one statement, loop overhead taken away, the best of many short bursts (the machine is shared); beside it an empty `with` block and
the standard library's cProfile, measured between the same bursts. The bursts are smaller than a ring, so that the writer's thread is
not part of the figure; the million events are written while they come.
"""
import cProfile
import os
import resource
import sys
import tempfile
import time

import stave

BURST, BURSTS = 5000, 120


class Empty:
    def __enter__(self): pass
    def __exit__(self, *exc): pass


def plain(): pass


@stave.trace_func
def traced(): pass


@stave.trace_func_args
def traced_args(a, b=2): pass


STATEMENTS = {
    "loop": "pass",
    "empty_with": "with empty: pass",
    "with": "with trace('x'): pass",
    "with_attribute": "with stave.trace('x'): pass",
    "with_two_args": "with trace('x', a=1, b=2.5): pass",
    "instant_two_args": "instant('x', a=1, b='two')",
    "call": "plain()",
    "decorator": "traced()",
    "decorator_args": "traced_args(1)",
    "counter": "count(5)",
}


def make(statement):
    scope = {"stave": stave, "trace": stave.trace, "instant": stave.instant, "empty": Empty(), "plain": plain, "traced": traced,
             "traced_args": traced_args, "count": stave.count("c").count, "clock": time.perf_counter_ns}
    exec(f"def burst():\n    t = clock()\n    for _ in range({BURST}):\n        {statement}\n    return clock() - t\n", scope)
    return scope["burst"]


def measure(names, settle=lambda: None):
    bursts = {n: make(STATEMENTS[n]) for n in names}
    best = dict.fromkeys(names, 10**12)
    for _ in range(BURSTS):
        for name, burst in bursts.items():
            settle()
            best[name] = min(best[name], burst())
    loop = best["loop"]
    return {n: (t - loop) / BURST for n, t in best.items()}


def say(name, value, unit):
    print(f"{name} {value:.4g} {unit}")


def profiled_call():
    burst = make(STATEMENTS["call"])
    profile = cProfile.Profile()
    profile.enable()
    best = min(burst() for _ in range(BURSTS))
    profile.disable()
    return best / BURST


def auto_call(settle):
    burst, best = make(STATEMENTS["call"]), 10**12
    with stave.auto("*", functions="plain"):
        for _ in range(BURSTS):
            settle()
            best = min(best, burst())
    return best / BURST


def million(path):
    """A million events, as they come; peak memory before and after."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stave.start(path)
    start = time.perf_counter()
    for i in range(500_000):
        with stave.trace("x"):
            pass
    for i in range(250_000):
        stave.instant("y", i=i, text="two")
    seconds = time.perf_counter() - start
    stave.stop()
    counts = stave.counts()
    lost = sum(v for k, v in counts.items() if k.startswith("lost"))
    say("python_million_per_s", 1.25e6 / seconds / 1e6, "M/s")
    say("python_million_lost", lost + (1_250_000 - counts["events"]), "events")
    say("python_million_memory", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, "MB")


def main():
    folder = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None)
    million(os.path.join(folder, "m.pftrace"))  # first: later the peak would be that of another part
    off = measure(["loop", "empty_with", "with", "with_attribute", "instant_two_args", "call", "decorator"])
    path = os.path.join(folder, "b.pftrace")
    stave.start(path, buffer_bytes=1 << 20)
    on = measure(["loop", "empty_with", "with", "with_attribute", "with_two_args", "instant_two_args", "call", "decorator",
                  "decorator_args", "counter"], settle=stave.flush)
    auto = auto_call(stave.flush)
    stave.stop()
    say("python_empty_with", on["empty_with"], "ns")
    say("python_with_off", off["with_attribute"], "ns")
    say("python_with_on", on["with_attribute"], "ns")
    say("python_with_two_args", on["with_two_args"], "ns")
    say("python_decorator_off", off["decorator"] - off["call"], "ns")
    say("python_decorator_on", on["decorator"] - on["call"], "ns")
    say("python_decorator_args", on["decorator_args"] - on["call"], "ns")
    say("python_instant_off", off["instant_two_args"], "ns")
    say("python_instant_two_args", on["instant_two_args"], "ns")
    say("python_counter", on["counter"], "ns")
    say("python_auto_call", auto - on["call"], "ns")
    say("python_cprofile_call", profiled_call() - on["call"], "ns")
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


main()
