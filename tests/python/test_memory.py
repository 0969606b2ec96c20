"""A million events leave nothing behind: objects, references, memory; and none is lost."""

MIXED = '''
import asyncio, gc, sys, stave
row, counter = stave.track("row"), stave.count("c")
@stave.trace_func
def f(): pass
@stave.trace_func_args
def g(a, b=2, *rest, **more): pass
@stave.trace_func
def fails(): raise ValueError("x")
class Bad:
    def __repr__(self): raise ValueError
bad, nested, flow = Bad(), {"a": [1, {"b": (2, None)}], "s": {3}}, stave.flow()
def turn(n):
    for i in range(n):
        with stave.trace("x"): pass
        with stave.trace("args", nested, i=i, big=2**80, bad=bad, flow=flow) as s: s.set(more=1)
        stave.instant("moment", i, text="t", num_outgoing_flow_ids=1)
        stave.instant(f"dynamic {i % 50}", category="other")
        f(); g(1, 2, 3, k=4)
        try: fails()
        except ValueError: pass
        row.complete("past", 1, 1, a=1); counter.increment(0.5)
        with row.trace("on row"): pass
def memory():
    gc.collect()
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * 4096
def refs():
    return [sys.getrefcount(x) for x in (None, "x", nested, flow, bad, stave.trace, f, row)]
'''


def test_a_million_events_leave_nothing(py):
    py.run(MIXED + '''
with stave.open("t.pftrace"):
    turn(5000); stave.flush()
    before, blocks, counted = memory(), sys.getallocatedblocks(), refs()
    turn(60000); stave.flush()          # 17 events each
    grown, more = memory() - before, sys.getallocatedblocks() - blocks
    assert more < 500, more
    assert grown < 8 << 20, grown
    assert all(abs(a - b) < 1000 for a, b in zip(refs(), counted)), (refs(), counted)
counts = stave.counts()
assert sum(v for k, v in counts.items() if k.startswith("lost")) == 0, counts
assert counts["events"] >= 1_000_000, counts
''')


def test_switched_off_leaves_nothing_either(py):
    py.run(MIXED + '''
turn(2000)
blocks, counted = sys.getallocatedblocks(), refs()
turn(20000)
assert sys.getallocatedblocks() - blocks < 200
assert all(abs(a - b) < 1000 for a, b in zip(refs(), counted)), (refs(), counted)
''')


def test_module_can_be_loaded_and_dropped_again(py):
    py.run('''
import gc, importlib, sys
for _ in range(5):
    import stave
    @stave.trace_func
    def f(): pass
    with stave.open("t.pftrace"):
        f()
        with stave.trace("x", a=1): pass
    del stave
    for name in [n for n in sys.modules if n.split(".")[0] == "stave"]: del sys.modules[name]
    f()                      # outlives the module
    del f
    gc.collect()
''')
    assert py.read().names() == ["f", "x"]


def test_subinterpreters(py):
    out = py.run('''
import sys
try:
    import _xxsubinterpreters as sub          # 3.11, 3.12
except ImportError:
    import _interpreters as sub               # 3.13 and later
import stave
with stave.open("t.pftrace"):
    stave.instant("main")
    for n in range(3):
        i = sub.create()
        error = sub.run_string(i, f"""
import sys; sys.path[:] = {sys.path!r}
import stave
with stave.trace("inner {n}", a=1): pass
@stave.trace_func
def f(): pass
f()
""") if sys.version_info < (3, 13) else sub.exec(i, f"""
import sys; sys.path[:] = {sys.path!r}
import stave
with stave.trace("inner {n}", a=1): pass
@stave.trace_func
def f(): pass
f()
""")
        assert error is None, error
        sub.destroy(i)
    stave.instant("after")
''')
    assert out == ""
    t = py.read()
    assert [n for n in t.names() if n != "f"] == ["main", "inner 0", "inner 1", "inner 2", "after"] and len(t.named("f")) == 3
