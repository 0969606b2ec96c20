"""stave.compat.nova: programs written for Nova's perfetto_protobuf, with their import lines."""
import pytest

INSTALL = "import stave.compat.nova; stave.compat.nova.install()\n"


def test_complete_example(py):
    py.run(INSTALL + '''
from nova_platform.perfetto_protobuf._profile import (
    trace_open, trace, track, count, instant, trace_func
)

with trace_open("my_trace.perfetto"):
    row = track("Compute")
    with row.trace("matrix_ops", size=1024):
        @trace_func
        def multiply(a, b):
            return a * b

        product = multiply(6, 7)
        assert product == 42 and multiply.__name__ == "multiply"
        instant("checkpoint", {"result": product})
        steps = count("operations")
        steps.increment(1)
        ready = instant("data_ready", num_outgoing_flow_ids=1)
        instant("process", incoming_flow_ids=ready)
    with trace("after"):
        pass
''')
    t = py.read("my_trace.perfetto")
    ops = t.one("matrix_ops")
    assert ops["track"] == "Compute" and ops["args"] == {"kwargs.size": 1024}
    assert ops["ts"] <= t.one("multiply")["ts"] and t.one("multiply")["ts"] + t.one("multiply")["dur"] <= ops["ts"] + ops["dur"]
    assert t.one("checkpoint")["args"] == {"result": 42}
    assert t.counter("operations") == [1]
    assert t.flows() == [("data_ready", "process")]
    assert t.one("after")["ts"] >= ops["ts"] + ops["dur"]
    assert py.files("*") == ["my_trace.perfetto", "prog.py"]


def test_every_call_form_of_the_profile_api(py):
    py.run(INSTALL + '''
from nova_platform.perfetto_protobuf._profile import trace, track
from nova_platform.perfetto_protobuf._profile import trace_func, trace_func_args
from nova_platform.perfetto_protobuf._profile import instant
from nova_platform.perfetto_protobuf._profile import count
from nova_platform.perfetto_protobuf._profile import open as trace_open
import nova_platform.perfetto_protobuf._profile as profile
import inspect, threading

component = track("Loader")                      # before any file is open

@trace_func
def plain(): return 1

@trace_func_args
def with_args(first, second): return first + second

@trace_func(track("Custom"))
def on_track(): return 2

@trace_func_args(track("Custom"))
def on_track_with_args(x, *, y=0): return x + y

class Engine:
    @trace_func
    def step(self, n): return n

with trace_open("t.perfetto"):
    with component.trace("load", "a.bin", 3, shuffle=True): pass
    with trace("matmul", {"size": (4, 8)}): pass
    assert plain() == 1 and with_args(1, second=2) == 3 and on_track() == 2 and on_track_with_args(1, y=4) == 5 and Engine().step(7) == 7
    assert str(inspect.signature(with_args)) == "(first, second)"
    instant("checkpoint", {"loss": 0.5})
    instant("bare")
    ids = instant("fork", num_outgoing_flow_ids=2)
    assert len(set(ids)) == 2 and instant("none") == []
    instant("join", incoming_flow_ids=ids)
    component.instant("on row", {"k": 1})
    with trace("send", category="an argument").get_outgoing_flow_ids(1) as sent: assert len(sent) == 1
    with component.trace("receive").set_incoming_flow_ids(sent) as none: assert none == []
    memory = count("memory")
    memory.increment(100)
    memory.count(500)
    by_hand = track("op").trace("by hand")
    by_hand.__enter__()
    by_hand.__exit__(None, None, None)
    try:
        with trace("fails"): raise ValueError("no")
    except ValueError: pass
    def work():
        with trace("in thread"): instant("thread's")
    thread = threading.Thread(target=work); thread.start(); thread.join()
    profile.stop()
    with trace("too late"): pass
assert profile.trace_open is trace_open
''')
    t = py.read("t.perfetto")
    assert t.one("load")["args"] == {"kargs[0]": "a.bin", "kargs[1]": 3, "kwargs.shuffle": 1} and t.one("load")["track"] == "Loader"
    assert t.one("matmul")["args"] == {"kargs[0].size[0]": 4, "kargs[0].size[1]": 8}
    assert t.one("plain")["args"] == {} and t.one("on_track")["track"] == "Custom" and t.one("step")
    assert t.one("with_args")["args"] == {"kargs[0]": 1, "kwargs.second": 2}
    assert t.one("on_track_with_args")["args"] == {"kargs[0]": 1, "kwargs.y": 4} and t.one("on_track_with_args")["track"] == "Custom"
    assert t.one("checkpoint")["args"] == {"loss": 0.5} and t.one("on row")["track"] == "Loader"
    assert t.one("send")["args"] == {"kwargs.category": "an argument"}
    assert sorted(t.flows()) == [("fork", "join"), ("fork", "join"), ("send", "receive")]
    assert t.counter("memory") == [100, 500]
    assert t.one("by hand")["track"] == "op" and t.one("fails")["args"] == {"exception": "ValueError: no"}
    assert t.parent(t.one("thread's")) is None or t.one("thread's")["track_id"] == t.one("in thread")["track_id"]
    assert t.one("in thread")["track_id"] != t.one("matmul")["track_id"]
    assert not t.named("too late")


def test_opens_nest_and_names_are_free(py):
    py.run('''
        from stave.compat.nova import open, trace, track, count, instant, trace_func, trace_func_args
        @trace_func
        def function(): pass
        @trace_func_args(track("row"))
        def other(x): pass
        with open("outer.trace"):                    # no suffix that Stave knows: Perfetto's format
            instant("before")
            with open("inner.perfetto-trace"):
                with trace("slice", 1) as _: instant("moment", {"k": 1})
                with open("third.json"):
                    ids = instant("from", num_outgoing_flow_ids=1)
                    with track("row").trace("to").set_incoming_flow_ids(ids): count("c").count(5)
                function()
                other(3)
                try:
                    with trace("fails"): raise KeyError("k")
                except KeyError: pass
            instant("after")
        with open("next.perfetto"): instant("next")
    ''')
    inner = ["slice", "moment", "from", "to", "function", "other", "fails"]
    outer, middle, third = py.read("outer.trace"), py.read("inner.perfetto-trace"), py.read("third.json")
    assert sorted(outer.names()) == sorted(["before", "after", *inner])
    assert sorted(middle.names()) == sorted(inner)
    assert sorted(third.names()) == ["from", "to"]
    for t in (outer, middle):
        assert t.one("slice")["args"] == {"kargs[0]": 1} and t.one("moment")["args"] == {"k": 1} and t.one("other")["track"] == "row"
        assert "KeyError" in t.one("fails")["args"]["exception"] and t.parent(t.one("moment")) in ("slice", None)
        assert t.flows() == [("from", "to")] and t.counter("c") == [5]
    assert third.flows() == [("from", "to")] and third.counter("c") == [5]
    assert py.read("next.perfetto").names() == ["next"]
    assert py.files("*") == ["inner.perfetto-trace", "next.perfetto", "outer.trace", "prog.py", "third.json"]


@pytest.mark.parametrize("mp", ["0", "1", None])
def test_generator(py, mp):
    py.run(INSTALL + '''
import copy, dataclasses
from nova_platform.perfetto_protobuf._tgen import TraceGenerator, BaseTrack, NormalTrack, CounterTrack, GroupTrack, Group

@dataclasses.dataclass
class Op:
    name: str
    shape: list

t = TraceGenerator("gcu00.perfetto-trace", 0)
assert t.filename == "gcu00.perfetto-trace" and t.gcu_id == 0 and copy.deepcopy({"t": t}) == {"t": None}
g = t.get_cluster_tgen(0, 1)
assert isinstance(g, Group) and t.get_cluster_tgen(0, 1) is g and t.tgen_cluster[0, 1] is g
t.get_cluster_tgen(None, None).create_track("all", 0).instant(0, "global")
t.get_cluster_tgen(2, None).create_track("die", 0).instant(0, "die")
row = g.create_track("engine", 7)
assert isinstance(row, NormalTrack) and isinstance(row, BaseTrack)
row.duration(1, 2, "seconds as int", {"m": 128, "nested": {"a": [1, [2]]}})
row.duration(4.5, 0.25, "seconds as float", Op("x", [1, 2]), flow=[2**40 + 1], category_list=["dma"])
row.instant(5, "mark", [1, 2], flow=[2**40 + 1])
bw = g.create_counter_track("bw")
assert isinstance(bw, CounterTrack) and g.create_counter_track("bw") is bw
bw.count(1, 0.5)
bw.count(2.5, 0)
inner = g.create_group("group")
assert isinstance(inner, GroupTrack)
inner.create_track().duration(6, 1, "below the group")
own = t._create_group("Host", "host row")
t._create_track(own._uuid, "raw", 0).duration(7, 1, "raw row")
t._create_counter_track(own._uuid, "raw counter", 1).count(7, 3)
uuid = t.__uuid__
t.__uuid__ += 1
t.submit("create_track", {"uuid": uuid, "tid": 9, "parent_uuid": own._uuid, "track_name": "submitted", "ttype": 0})
t.submit("duration", {"uuid": uuid, "ts": 8_000_000_000, "dur": 8_000_000_005, "annotation": "5 ns", "kwargs": None})
own.submit("instant", {"uuid": uuid, "ts": 9_000_000_000, "annotation": "by a track", "kwargs": {"k": 1}})
t.queue.put(("count", {"uuid": bw._uuid, "ts": 3_000_000_000, "value": 2}))
for bad in (("nothing", {}), ("count", {"uuid": 1, "ts": 0, "value": 0})):
    try: t.submit(*bad)
    except ValueError as e: assert "stave: " in str(e)
    else: raise AssertionError(bad)
t.block_until_all_tasks_done()
t.block_until_all_tasks_done()
''', env={} if mp is None else {"BOSSANOVA_PROTOBUF_MP": mp})
    t = py.read("gcu00.perfetto-trace")
    times = {s["name"]: (s["ts"], s["dur"]) for s in t.slices}
    assert times["seconds as int"] == (10**9, 2 * 10**9) and times["seconds as float"] == (4_500_000_000, 250_000_000)
    assert times["mark"][0] == 5 * 10**9 and times["5 ns"] == (8 * 10**9, 5) and times["by a track"][0] == 9 * 10**9
    assert t.one("seconds as int")["args"] == {"m": 128, "nested.a[0]": 1, "nested.a[1][0]": 2}
    assert t.one("seconds as float")["args"] == {"name": "x", "shape[0]": 1, "shape[1]": 2} and t.one("seconds as float")["category"] == "dma"
    assert t.one("mark")["args"] == {"data_list[0]": 1, "data_list[1]": 2}
    assert t.flows() == [("seconds as float", "mark")]
    assert t.counter("bw") == [0.5, 0, 2] and t.counter("raw counter") == [3]
    assert t.one("below the group")["track"] == "group" and t.one("raw row")["track"] == "raw" and t.one("5 ns")["track"] == "submitted"
    assert {r["name"] for r in t.ask("select name from process")} >= {"Global", "Die:2, Global", "Die:0, Cluster:1", "host row"}


def test_generator_of_numpy_times(py):
    pytest.importorskip("numpy")
    py.run('''
        import numpy
        from stave.compat.nova import TraceGenerator
        t = TraceGenerator("t.perfetto-trace", 0)
        row, c = t.get_cluster_tgen(0, 0).create_track("r", 0), t.get_cluster_tgen(0, 0).create_counter_track("c")
        for kind in (numpy.int32, numpy.int64, numpy.uint64, numpy.float32, numpy.float64):
            row.duration(kind(2), kind(1), kind.__name__); c.count(kind(2), kind(3))
        t.block_until_all_tasks_done()
    ''')
    t = py.read("t.perfetto-trace")
    assert {(s["ts"], s["dur"]) for s in t.slices} == {(2 * 10**9, 10**9)} and len(t.slices) == 5 and t.counter("c") == [3] * 5


def test_forked_children_share_a_generator(py):
    py.run('''
        import multiprocessing, os
        from stave.compat.nova import TraceGenerator
        t = TraceGenerator("t.perfetto-trace", 1)
        shared = t.get_cluster_tgen(0, 0).create_track("shared", 0)
        def work(n):
            own = t.get_cluster_tgen(0, n).create_track("own", 0)
            for i in range(50):
                shared.duration(n * 100 + i, 1, "same name", {"n": n})
                own.instant(i, "moment", {"lambda": lambda: 0})
            t.get_cluster_tgen(0, n).create_counter_track("c").count(n, n)
        workers = [multiprocessing.get_context("fork").Process(target=work, args=(n,)) for n in (1, 2, 3)]
        [w.start() for w in workers]; [w.join() for w in workers]
        assert [w.exitcode for w in workers] == [0, 0, 0]
        shared.duration(0, 1, "parent's")
        t.block_until_all_tasks_done()
    ''')
    t = py.read("t.perfetto-trace")
    assert sorted(s["args"]["n"] for s in t.named("same name")) == [1] * 50 + [2] * 50 + [3] * 50
    assert len(t.named("moment")) == 150 and sorted(t.counter("c")) == [1, 2, 3] and t.one("parent's")
    assert len({s["track_id"] for s in t.named("same name")}) == 1 and len({s["track_id"] for s in t.named("moment")}) == 3


def test_long_lists_end_with_a_mark_and_flow_ids_are_wide(py):
    py.run('''
        from stave.compat.nova import TraceGenerator, open, trace
        t = TraceGenerator("g.perfetto-trace", 0)
        row = t.get_cluster_tgen(0, 0).create_track("r", 0)
        row.duration(0, 1, "exact", {"l": list(range(256)), "d": {str(i): i for i in range(256)}}, flow=[2**63 + 5])
        row.duration(2, 1, "more", {"l": list(range(300))}, flow=[2**63 + 5])
        t.block_until_all_tasks_done()
        with open("p.perfetto"):
            with trace("list", list(range(300))): pass
    ''')
    t, p = py.read("g.perfetto-trace"), py.read("p.perfetto")
    assert len(t.one("exact")["args"]) == 512 and t.one("exact")["args"]["d.255"] == 255
    assert t.one("more")["args"]["l[255]"] == 255 and t.one("more")["args"]["l[256]"] == "... (44 more items)"
    assert t.flows() == [("exact", "more")]
    assert p.one("list")["args"]["kargs[0][256]"] == "... (44 more items)"


def test_install_beside_the_rest_of_nova(py):
    package = py.folder / "nova_platform"
    (package / "perfetto_protobuf").mkdir(parents=True)
    (package / "__init__.py").write_text("HERE = 1\n")
    (package / "perfetto_protobuf" / "__init__.py").write_text("raise ImportError('the original')\n")
    (package / "user.py").write_text("from .perfetto_protobuf._tgen import TraceGenerator\nfrom nova_platform.perfetto_protobuf._profile import trace\n")
    out = py.run(INSTALL + INSTALL + '''
import nova_platform, nova_platform.user
import nova_platform.perfetto_protobuf._profile
assert nova_platform.HERE == 1 and nova_platform.user.trace is stave.compat.nova.trace
assert nova_platform.perfetto_protobuf._profile.trace is stave.compat.nova.trace
import sys, types
for name in [n for n in sys.modules if n.startswith("nova_platform")]: del sys.modules[name]
sys.modules["nova_platform.perfetto_protobuf"] = types.ModuleType("nova_platform.perfetto_protobuf")
try: stave.compat.nova.install()
except RuntimeError as e: print(e)
''')
    assert "imported already" in out


def test_under_a_session_of_the_environment(py):
    py.run('''
        from stave.compat.nova import open, instant
        with open("own.perfetto"): instant("inside")
        instant("outside")
    ''', env={"STAVE_OUT": "all.pftrace"})
    assert py.read("own.perfetto").names() == ["inside"] and py.read("all.pftrace").names() == ["inside", "outside"]


def test_many_events_of_many_threads_are_all_there(py):
    out = py.run('''
        import threading, stave
        from stave.compat.nova import open, trace, count, track
        with open("t.perfetto"):
            def work(n):
                row, c = track(f"row {n}"), count(f"count {n}")
                for i in range(20_000):
                    with trace("slice"): pass
                    with row.trace("on row"): pass
                    c.increment()
            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            [x.start() for x in threads]; [x.join() for x in threads]
        print({k: v for k, v in stave.counts().items() if v and k != "events"})
    ''')
    assert out.strip() == "{}"
    import json, subprocess
    from conftest import STAVE
    rows = subprocess.run([STAVE, "query", "-q", str(py.folder / "t.perfetto"), "--to", "jsonl",
                           "select name, count(*) as n from slice group by 1 union all select name, max(value) from counters group by 1 order by 1"],
                          capture_output=True, text=True, check=True).stdout
    assert {r["name"]: r["n"] for r in map(json.loads, rows.splitlines())} == {
        "slice": 80_000, "on row": 80_000, **{f"count {n}": 20_000 for n in range(4)}}


def test_names_of_parameters(py):
    """The original's words and ours."""
    py.run('''
        from stave.compat.nova import TraceGenerator
        with TraceGenerator("g.pftrace", gcu_id=0) as t:
            group = t.get_cluster_tgen(0, 1)
            group.create_track(track_name="engine", tid=3).duration(1, 2, "op")
            group.create_track(name="other").duration(1, 2, "op")
            group.create_counter_track(track_name="bw").count(1, 2)
            group.create_group(track_name="inner").create_track(tid=5).duration(1, 2, "op")
            for wrong in (dict(track_name="a", name="b"), ):
                try: group.create_track(**wrong)
                except TypeError: pass
                else: raise AssertionError
            try: group.create_counter_track()
            except TypeError: pass
            else: raise AssertionError
    ''')
    assert {s["track"] for s in py.read("g.pftrace").slices} == {"engine", "other", "inner"}
