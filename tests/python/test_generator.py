"""Explicit times: the generator of simulators, and the writer of probes."""
import json

import pytest


def test_generator_as_the_seed_has_it(py):
    py.run('''
        import dataclasses
        from stave import TraceGenerator, NormalTrack, CounterTrack, Group, GroupTrack
        @dataclasses.dataclass
        class Op:
            name: str
            shape: list
        t = TraceGenerator("t.perfetto-trace", 3)
        g = t.get_cluster_tgen(0, 1)
        assert isinstance(g, Group) and g is t.get_cluster_tgen(0, 1)
        assert (t.get_cluster_tgen(None, None).name, t.get_cluster_tgen(2, None).name) == ("Global", "Die:2, Global")
        row = g.create_track("engine", 1)
        assert isinstance(row, NormalTrack) and g.create_track("engine", 2) is row
        row.duration(1.5, 0.25, "matmul", {"m": 128, "nested": {"a": [1, 2]}}, [77], ["compute", "dma"])
        row.duration(2.0, 0.5, "use", Op("x", [1, 2]), flow=[77])
        row.instant(1.75, "mark", {"k": 1}, flow=[], category_list=["c"])
        bw = g.create_counter_track("bw")
        assert isinstance(bw, CounterTrack) and g.create_counter_track("bw") is bw
        bw.count(1.0, 0.5); bw.count(2.0, 0)
        inner = g.create_group("group")
        assert isinstance(inner, GroupTrack)
        child = inner.create_track()
        child.duration_ns(0, 1, "ns")
        child.duration(3, 1, "s")              # seconds, also as int
        deeper = inner.create_group("deeper").create_track("leaf")
        deeper.duration(10, 5, "leaf op")
        t.block_until_all_tasks_done()
        t.block_until_all_tasks_done()
    ''')
    t = py.read("t.perfetto-trace")
    matmul = t.one("matmul")
    assert (matmul["ts"], matmul["dur"], matmul["category"]) == (1_500_000_000, 250_000_000, "compute,dma")
    assert matmul["args"] == {"m": 128, "nested.a[0]": 1, "nested.a[1]": 2}
    assert t.one("use")["args"] == {"name": "x", "shape[0]": 1, "shape[1]": 2}
    assert t.flows() == [("matmul", "use")]
    assert t.one("mark")["ts"] == 1_750_000_000 and t.one("mark")["category"] == "c"
    assert t.counter("bw") == [0.5, 0]
    assert t.one("ns")["dur"] == 1
    assert (t.one("s")["ts"], t.one("s")["dur"]) == (3_000_000_000, 1_000_000_000)
    leaf = t.tracks[t.one("leaf op")["track_id"]]
    assert [leaf["name"], t.tracks[leaf["parent_id"]]["name"]] == ["leaf", "deeper"]
    names = {r["name"] for r in t.ask("select name from process")}
    assert names >= {"Die:0, Cluster:1"}


def test_any_order_overlap_and_touching(py):
    py.run('''
        import random, stave
        with stave.TraceGenerator("t.pftrace") as t:
            row = t.get_cluster_tgen(0, 0).create_track("row")
            spans = [(i * 10, 10, f"s{i}") for i in range(500)]      # each touches the next
            random.Random(1).shuffle(spans)
            for start, dur, name in spans: row.duration_ns(start, dur, name)
            row.duration_ns(0, 5000, "all")                          # the parent comes last, and starts with the first
            row.duration_ns(5, 20, "crosses")
    ''')
    t = py.read()
    assert all((s["ts"], s["dur"]) == (int(s["name"][1:]) * 10, 10) for s in t.slices if s["name"][1:].isdigit())
    assert len(t.slices) == 502
    assert (t.one("all")["dur"], t.one("all")["depth"]) == (5000, 0)
    assert t.one("crosses")["track_id"] != t.one("all")["track_id"]
    assert t.parent(t.one("s0")) == "all" and t.parent(t.one("s499")) == "all"


def test_seconds_are_rounded_once(py):
    py.run('''
        import stave
        with stave.TraceGenerator("t.pftrace") as t:
            row = t.get_cluster_tgen().create_track("row")
            for i in range(1000): row.duration(i * 0.1, 0.1, f"s{i}")   # 0.1 s has no exact float
    ''')
    t = py.read()
    assert {s["depth"] for s in t.slices} == {0} and len({s["track_id"] for s in t.slices}) == 1
    assert all(abs(s["ts"] - i * 10**8) <= 1 for i, s in enumerate(t.slices))


NUMBERS = [("int", "2", "1"), ("float", "2.0", "1.0"), ("fraction", "fractions.Fraction(2)", "fractions.Fraction(1)"),
           ("decimal", "decimal.Decimal(2)", "decimal.Decimal(1)"), ("mixed", "2", "1.0"), ("other mixed", "2.0", "1")]
NUMPY = [(t, f"numpy.{t}(2)", f"numpy.{t}(1)") for t in ("int8", "int32", "int64", "uint64", "float32", "float64")]


@pytest.mark.parametrize("kind", ["plain", "numpy"])
def test_seconds_whatever_their_type(py, kind):
    """The unit never depends on the type: a simulator that counts in whole seconds, or in NumPy's, means seconds."""
    if kind == "numpy":
        pytest.importorskip("numpy")
    rows = NUMPY if kind == "numpy" else NUMBERS
    calls = "\n".join(f"    row.duration({ts}, {dur}, 'd {name}'); row.instant({ts}, 'i {name}'); c.count({ts}, {n})"
                      for n, (name, ts, dur) in enumerate(rows))
    py.run(f"""
import decimal, fractions, stave
{"import numpy" if kind == "numpy" else ""}
with stave.TraceGenerator("t.pftrace") as t:
    group = t.get_cluster_tgen()
    row, c = group.create_track("row"), group.create_counter_track("c")
{calls}
""")
    t = py.read()
    assert [(s["ts"], s["dur"]) for s in t.slices if s["name"][0] == "d"] == [(2_000_000_000, 1_000_000_000)] * len(rows)
    assert {s["ts"] for s in t.slices if s["name"][0] == "i"} == {2_000_000_000}
    assert {r["ts"] for r in t.ask("select ts from counters")} == {2_000_000_000}


def test_nanoseconds_are_exact_and_whole(py):
    out = py.run("""
        import stave
        with stave.TraceGenerator("t.pftrace") as t:
            group = t.get_cluster_tgen()
            row, c = group.create_track("row"), group.create_counter_track("c")
            row.duration_ns(2**53 + 1, 3, "exact")
            row.instant_ns(2**53 + 2, "moment")
            c.count_ns(2**53 + 3, 1)
            def refused(call, *args):
                try: call(*args)
                except (TypeError, ValueError, OverflowError) as e: print(type(e).__name__, e)
            refused(row.duration_ns, 1.0, 1, "x")
            refused(row.instant_ns, 0.5, "x")
            refused(c.count_ns, 1e9, 1)
            refused(row.duration, "1.5", 1, "x")
            refused(row.duration, 1, -1, "negative")
            refused(row.instant, float("nan"), "x")
            refused(row.instant, float("inf"), "x")
            refused(row.duration_ns, 2**63, 1, "x")
    """)
    t = py.read()
    assert [(s["name"], s["ts"], s["dur"]) for s in t.slices] == [("exact", 2**53 + 1, 3), ("moment", 2**53 + 2, 0)]
    assert [r["ts"] for r in t.ask("select ts from counters")] == [2**53 + 3]
    lines = out.splitlines()
    assert len(lines) == 8 and "whole nanoseconds, not float" in lines[0] and "not str" in lines[3] and "negative" in lines[4]


def test_several_generators_and_a_session_at_once(py):
    py.run('''
        import stave
        with stave.open("live.pftrace"):
            a, b = stave.TraceGenerator("a.pftrace", 0), stave.TraceGenerator("b.pftrace", 1)
            for g, n in ((a, "of a"), (b, "of b")):
                g.get_cluster_tgen(0, 0).create_track("row").duration(0.0, 1.0, n)
            stave.instant("live")
        # not closed: the end of the program does it
    ''')
    assert [py.read(f"{n}.pftrace").names() for n in ("a", "b", "live")] == [["of a"], ["of b"], ["live"]]
    import subprocess
    from conftest import STAVE
    subprocess.run([STAVE, "merge", "-q", "--assume-same-clock", "a.pftrace", "b.pftrace", "-o", "m.pftrace"], cwd=py.folder, check=False)
    uuids = [{r["uuid"] for r in py.read(f).ask("select uuid from track")} for f in ("a.pftrace", "b.pftrace")]
    assert not uuids[0] & uuids[1]


def test_a_second_run_replaces_and_a_failure_leaves_nothing(py):
    for n in (1, 2):
        py.run(f'''
            import stave
            with stave.TraceGenerator("t.pftrace") as t: t.get_cluster_tgen().create_track("r").instant(0.0, "run {n}")
        ''')
    assert py.read().names() == ["run 2"]
    py.run('''
        import os, stave
        for bad in ("/nowhere/x.pftrace", "x.unknown"):
            try: stave.TraceGenerator(bad)
            except (OSError, ValueError) as e: print(e)
        t = stave.TraceGenerator("closed.pftrace"); r = t.get_cluster_tgen().create_track("r"); t.close()
        try: r.instant(0, "x")
        except ValueError as e: print(e)
        t = stave.TraceGenerator("forked.pftrace"); r = t.get_cluster_tgen().create_track("r")
        r.instant(0, "before")
        pid = os.fork()
        if pid == 0:
            try: r.instant(1, "child")
            except ValueError: pass
            del t, r
            raise SystemExit
        os.waitpid(pid, 0)
    ''')
    assert py.read("forked.pftrace").names() == ["before"]
    assert sorted(p.name for p in py.folder.iterdir()) == ["closed.pftrace", "forked.pftrace", "prog.py", "t.pftrace"]


def test_threads_share_a_generator(py):
    py.run('''
        import stave, threading
        t = stave.TraceGenerator("t.pftrace")
        def work(n):
            row = t.get_cluster_tgen(0, n % 2).create_track(f"row {n}")
            for i in range(2000): row.duration_ns(i * 10, 5, "op", {"i": i})
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [x.start() for x in threads]; [x.join() for x in threads]
        t.close()
    ''')
    assert len(py.read().named("op")) == 8000


def test_writer_of_probes(py):
    py.run('''
        import json, time, stave
        from stave import TraceWriter, TraceEvent, global_trace, flush_global_trace
        e = TraceEvent.complete("rms_norm", "norm", 1_000_000, 0.123, 1)
        assert (e.ph, e.dur, e.tid) == ("X", 123, 1)
        off = TraceWriter.disabled()
        off.push("x", "y", 1.0, 0); off.flush()
        assert not off.is_enabled()
        assert not TraceWriter.from_env_vars([("FERRUM_TRACE_OUT", ""), ("OTHER", "1")]).is_enabled()
        assert TraceWriter.from_env_vars([("FERRUM_TRACE_OUT", "unused.json")]).is_enabled()
        w = TraceWriter.enabled("w.json")
        time.sleep(0.01)
        w.push("rms_norm", "norm", 1.0, 1)
        w.push_with_args("rope", "attn", 0.5, 1, {"tokens": 4, "dim": 4096})
        w.flush()
        w.flush()                       # a second one loses nothing
        w.push("late", "norm", 0.25, 2)
        # written at the end of the program
        assert global_trace() is global_trace() and global_trace().is_enabled()
        global_trace().push("g", "c", 0.1, 0)
        flush_global_trace()
        try: TraceWriter("x.bad")
        except ValueError as e: assert ".json" in str(e)
    ''', env={"STAVE_TRACE_OUT": "global.json"})
    t = py.read("w.json")
    assert t.names() == ["rms_norm", "rope", "late"] or sorted(t.names()) == ["late", "rms_norm", "rope"]
    assert t.one("rms_norm")["dur"] == 1_000_000 and t.one("late")["dur"] == 250_000
    assert t.one("rope")["args"] == {"tokens": 4, "dim": 4096}
    assert {r["name"] for r in t.ask("select name from thread")} >= {"layer 1", "layer 2"}
    events = json.loads((py.folder / "w.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    rms = [e for e in events if e.get("name") == "rms_norm"][0]
    assert (rms["ph"], rms["cat"], rms["pid"], rms["tid"], rms["dur"]) == ("X", "norm", 0, 1, 1000)
    assert py.read("global.json").names() == ["g"]
    assert not (py.folder / "unused.json").exists()


def test_times_before_zero_and_past_the_end(py):
    py.run('''
        import stave
        last = 2**63 - 1
        with stave.TraceGenerator("t.pftrace") as t:
            row = t.get_cluster_tgen(0, 0).create_track("row")
            row.duration_ns(10, 5, "late")
            row.duration_ns(-10, 5, "early")
            row.instant_ns(-(2**63), "first")
            row.duration_ns(last - 5, 5, "last")
            for start, dur in ((last - 4, 5), (1, last)):
                try:
                    row.duration_ns(start, dur, "never")
                except OverflowError as e:
                    assert "ends at no time" in str(e), e
                else:
                    raise AssertionError("taken")
    ''')
    t = py.read("t.pftrace")
    assert [(t.one(n)["ts"], t.one(n)["dur"]) for n in ("early", "late", "last")] == [(-10, 5), (10, 5), (2**63 - 6, 5)]
    assert t.one("first")["ts"] == -(2**63)
    assert not t.ask("select * from slice where name = 'never'")


def test_the_writer_knows_the_suffixes_of_the_library(py):
    py.run('''
        import re
        from stave import _stave
        from stave import TraceWriter, writer
        try:
            _stave.File("x.none")
            raise AssertionError("x.none was opened")
        except Exception as e:
            text = str(e)
        assert re.findall(r"[.][a-z-]+(?=,)", text) == list(writer._SUFFIXES), text
        for name in [s + p for s in writer._SUFFIXES for p in ("", ".gz", ".zst")]:
            assert TraceWriter("unused" + name).is_enabled()
        try:
            TraceWriter("x.none")
            raise AssertionError("x.none was taken")
        except ValueError as e:
            assert ".perfetto-trace" in str(e)
    ''')
