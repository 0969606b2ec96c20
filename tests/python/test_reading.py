"""stave.load(): in this process, against what the program prints for the same file."""
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest
import stave
from stave import reading

from conftest import NO_OUT, STAVE


def program(*words):
    done = subprocess.run([STAVE, *words], capture_output=True, text=True, env=NO_OUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Three steps with a phase each, a counter, and file I/O."""
    path = str(tmp_path_factory.mktemp("reading") / "run.json")
    events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "<b>train</b>"}}]
    for i in range(3):
        events += [{"name": f"ProfilerStep#{i}", "ph": "X", "ts": 1000 * i, "dur": 900, "pid": 1, "tid": 1},
                   {"name": "forward", "ph": "X", "ts": 1000 * i + 10, "dur": 300.5, "pid": 1, "tid": 1, "args": {"loss": 0.5, "n": i}},
                   {"name": "read", "cat": "syscall", "ph": "X", "ts": 1000 * i + 400, "dur": 50, "pid": 1, "tid": 1,
                    "args": {"path": "/data/<x>", "ret": 4096, "fd": 3}},
                   {"name": "loss", "ph": "C", "ts": 1000 * i, "pid": 1, "args": {"value": i / 2}}]
    with open(path, "w") as f:
        json.dump(events, f)
    return path


@pytest.fixture(scope="module")
def t(path):
    with stave.load(path) as t:
        yield t


QUERIES = ["select id, ts, dur, name, category, parent_id, depth from slice order by id",
           "select name, count(*) as n, sum(dur), avg(dur) from slice group by name order by name",
           "select key, int_value, real_value, string_value, coalesce(int_value, real_value, string_value) as any from args order by id",
           "select * from counter", "select 1 as a, null as b, 'x' as c, 2.5 as d, 9223372036854775807 as e where 0"]


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_the_program(t, path, sql):
    expected = [json.loads(line) for line in program("query", "-q", path, sql, "--to", "jsonl").splitlines()]
    result = t.query(sql)
    assert result.dicts() == expected
    assert len(result) == len(expected)
    assert result.rows() == [tuple(row.values()) for row in expected]


def test_access(t):
    r = t.query("select id, name from slice where name like 'Prof%' order by id")
    assert r.columns == ["id", "name"]
    assert r["name"] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert r[0][1] == "ProfilerStep#0" and r[-1][1] == "ProfilerStep#2" and len(r[1:]) == 2
    with pytest.raises(IndexError):
        r[3]
    with pytest.raises(KeyError, match="no column 'x'; there are: id, name"):
        r["x"]
    assert len(t.slices) == 9 and "parent_id" in t.slices.columns
    assert [row["number"] for row in t.steps().dicts()] == [0, 1, 2]


def test_values_of_all_types(t):
    sql = "select column1 as v from (values (1), (null), (2.5), ('text'), (x'00ff'), (''), (-9223372036854775807))"
    assert t.query(sql)["v"] == [1, None, 2.5, "text", b"\0\xff", "", -9223372036854775807]
    assert t.query("select char(0x1f600, 0x20, 0x0a) as v")["v"] == ["\U0001f600 \n"]
    assert t.query("select cast(x'41ff' as text) as v")["v"] == ["A\ufffd"]
    assert t.query("create table own(a); insert into own values (7)").columns == []
    assert t.query("select 1; select a from own").rows() == [(7,)]


def test_arrays(t):
    numpy = pytest.importorskip("numpy")
    r = t.query("select ts, dur / 2.0 as half, parent_id, name from slice order by id")
    a = r.arrays()
    assert a["ts"].dtype == numpy.int64 and a["ts"].tolist() == r["ts"]
    assert a["half"].dtype == numpy.float64 and a["half"].tolist() == r["half"]
    assert a["name"].tolist() == r["name"]
    assert isinstance(a["parent_id"], numpy.ma.MaskedArray) and a["parent_id"].tolist() == r["parent_id"]
    again = r.arrays()
    assert again["ts"].__array_interface__["data"][0] == a["ts"].__array_interface__["data"][0]  # no copy
    with pytest.raises(ValueError):
        a["ts"][0] = 1
    kept, expected = a["ts"], r["ts"]
    del r, a, again
    t.query("select " + ", ".join(str(i) for i in range(500)))
    assert kept.tolist() == expected  # the array keeps its memory
    empty = t.query("select ts, name from slice where 0").arrays()
    assert len(empty["ts"]) == 0 and len(empty["name"]) == 0


def test_df(t):
    pandas = pytest.importorskip("pandas")
    r = t.query("select ts, parent_id, dur / 2.0 as half, name from slice order by id")
    frame = r.df()
    assert list(frame.columns) == r.columns and len(frame) == len(r)
    assert str(frame["parent_id"].dtype) == "Int64" and frame["parent_id"].isna().tolist() == [v is None for v in r["parent_id"]]
    assert frame["name"].tolist() == r["name"] and frame.groupby("name")["half"].sum()["forward"] == 3 * 150250.0
    assert list(t.query("select 1 as a, 2 as a").df().columns) == ["a", "a"]
    assert isinstance(frame, pandas.DataFrame)


def test_df_without_pandas(t, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas.*use arrays"):
        t.slices.df()


def test_reports_and_pictures(t, path):
    assert t.report("io") == json.loads(program("report", "-q", "io", path, "--json"))
    assert str(t.plot(width=1400)) == program("plot", "-q", "timeline", path)
    for kind, names in (("flame", ()), ("hist", ("forward",)), ("counter", ()), ("steps", ())):
        assert t.plot(kind, *names, width=1400).svg == program("plot", "-q", kind, path, *names), kind
    assert "ProfilerStep#1" not in t.plot(time=(0, 0.0005)).svg
    with pytest.raises(reading.Error, match="the trace has no .*GPU|no GPU work|the trace has"):
        t.report("gpu")


def test_values_for_parameters(t):
    assert t.query("select ? as a, ?2 as b", (5, "x'--")).rows() == [(5, "x'--")]
    assert t.query("select :n as a, $b as b, @c as c", {"n": None, "b": b"\0\xff", "c": 2.5}).rows() == [(None, b"\0\xff", 2.5)]
    expected = t.query("select id from slice where name = 'forward'").rows()
    assert len(expected) == 3 and t.query("select id from slice where name = ?", ["forward"]).rows() == expected
    assert t.query("select count(*) from slice where name = :name group by category", {"name": "forward"}).rows() == [(3,)]  # groups would not see the value
    assert t.query("create table if not exists own_p(a); insert into own_p values (?); select a from own_p", ("text",)).rows() == [("text",)]
    for sql, params, kind, text in [("select ?", (), ValueError, "1 parameter, and 0 values were"), ("select ?, ?", (1,), ValueError, "2 parameters, and 1 value"),
                                    ("select :a", {"b": 1}, ValueError, "no value was given for the parameter :a"), ("select 1", (1,), ValueError, "no statement has a parameter"),
                                    ("select ?", "x", TypeError, "a sequence or a dictionary"), ("select ?", (2**70,), OverflowError, "64 bits"),
                                    ("select ?", ([],), TypeError, "not list"), (b"select 1", (), TypeError, "a str, not bytes")]:
        with pytest.raises(kind, match=text):
            t.query(sql, params)


def test_explains(t, path, tmp_path):
    planted = os.path.join(os.environ["SRC"], "tests", "cli", "explain", "planted.py")
    subprocess.run([sys.executable, planted, tmp_path / "planted"], check=True)
    for file in (path, sorted((tmp_path / "planted").glob("slow_file-*"))[0]):
        done = subprocess.run([STAVE, "explain", "-q", "--json", file], capture_output=True, text=True, env=NO_OUT)
        expected = json.loads(done.stdout)
        with stave.load(file) as loaded:
            e = loaded.explain()
        assert e.json["findings"] == [{**f, "command": e.json["findings"][i]["command"]} for i, f in enumerate(expected["findings"])]
        assert e.can_say == (done.returncode == 0) == expected["can_say"]
        assert [str(f) for f in e] == [f["sentence"] for f in expected["findings"]] and len(e) == len(expected["findings"])
        if len(e):
            assert e[0].sentence == e[0]["sentence"] in str(e) and 0 < e[0].share <= 1 and e[0].sentence in repr(e)
            with pytest.raises(AttributeError, match="no 'colour'; there are: cause"):
                e[0].colour
        else:
            assert str(e)
        assert e._repr_html_()
    assert len(e)  # the planted file
    with pytest.raises(TypeError):
        t.explain(unit=3)


def test_pictures_as_files(t, tmp_path):
    picture = t.plot(width=400)
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == picture.svg
    with pytest.raises(ValueError, match="unknown suffix; use .svg, .png or .pdf"):
        picture.save(str(tmp_path / "a.jpg"))
    try:
        picture.save(str(tmp_path / "a.PNG"), scale=2)
    except ValueError as error:
        assert "cairo" in str(error) and not (tmp_path / "a.PNG").exists()
        pytest.skip("no cairo here")
    png = (tmp_path / "a.PNG").read_bytes()
    assert png.startswith(b"\x89PNG") and int.from_bytes(png[16:20], "big") == 800 and picture.png()[16:20] == (400).to_bytes(4, "big")
    picture.save(os.fsencode(tmp_path / "a.pdf"))
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_messages_are_in_words_of_python(t, path):
    for call in (lambda: stave.load(os.environ["STAVE"]), lambda: t.plot(time=(1, 0.5)), lambda: t.plot(height=1), lambda: stave.load(path, format="x"),
                 lambda: t.plot(time=(5, 6)), lambda: stave.load(path, memory_limit=1000)):
        with pytest.raises((ValueError, reading.Error, MemoryError)) as caught:
            call()
        assert not re.search("(?<!stave cut )--", str(caught.value)), caught.value


def test_notebooks(t):
    table = t.query("select '<script>' as v, name from process where upid > 0")._repr_html_()
    assert "<td>&lt;script&gt;</td>" in table and "<td>&lt;b&gt;train&lt;/b&gt;</td>" in table and "<script>" not in table
    frame = t.plot()._repr_html_()
    assert frame.startswith("<iframe sandbox=") and "<svg" not in frame and "&lt;svg" in frame
    assert "<table>" in t._repr_html_()
    many = t.query("with recursive n(i) as (select 1 union all select i + 1 from n where i < 100) select i from n")
    assert many._repr_html_().count("<tr>") == 21 and "80 more rows" in repr(many)


@pytest.mark.parametrize("call, kind, text", [
    (lambda t: t.query("select\nabsent"), ValueError, "line 2: no such column: absent"),
    (lambda t: t.query("attach 'x' as y"), ValueError, "read-only"),
    (lambda t: t.query("select '\0'"), ValueError, "NUL"),
    (lambda t: t.plot("pie"), ValueError, "unknown plot 'pie'; available: timeline, flame"),
    (lambda t: t.plot("hist"), ValueError, "plot hist needs the name"),
    (lambda t: t.plot("hist", "forwart"), ValueError, "available: 'forward'"),
    (lambda t: t.plot(width=7), ValueError, "between 300 and 20000"),
    (lambda t: t.report("weather"), ValueError, "unknown report 'weather'; available: io, gpu"),
    (lambda t: stave.load(), ValueError, "give the path"),
    (lambda t: stave.load("/nowhere/x.pftrace"), FileNotFoundError, "directory: '/nowhere/x.pftrace'"),
    (lambda t: stave.load("clickhouse://h:1/d"), ValueError, "only files"),
    (lambda t: stave.load(os.environ["STAVE"]), reading.Error, "not a trace that Stave knows"),
    (lambda t: stave.load(t.paths[0], format="nonsense"), ValueError, "nonsense"),
])
def test_errors(t, call, kind, text):
    with pytest.raises(kind) as caught:
        call(t)
    assert text in str(caught.value)
    assert t.query("select 1").rows() == [(1,)]


def test_damage_is_a_warning(tmp_path, path, capfd):
    broken = str(tmp_path / "broken.json")
    with open(path) as f, open(broken, "w") as g:
        g.write(f.read()[:-30])
    with pytest.warns(RuntimeWarning, match="damaged at"):
        t = stave.load(broken)
    assert len(t.slices) and len(t.findings())
    with pytest.raises(reading.Error):
        stave.load(broken, strict=True)
    assert capfd.readouterr().err == ""  # a library prints nothing


def test_several_traces_and_limits(path):
    with pytest.raises(MemoryError):
        stave.load(path, memory_limit=1)
    with pytest.raises(ValueError, match="[Ss]ame|twice"):
        stave.load(path, path)


def test_threads(tmp_path):
    """All CPUs load the same trace as one, and no thread is left when the caller forks."""
    big = tmp_path / "big.json"
    with open(big, "w") as f:
        f.write("[" + ",\n".join('{"ph":"X","name":"op%d","ts":%d,"dur":%d,"pid":1,"tid":%d}' % (i % 9, i * 5, 3 + i % 2, i % 4) for i in range(30000)) + "]")
    assert big.stat().st_size > 1 << 20
    sql = "select name, track_id, count(*), sum(dur), sum(depth) from slice group by 1, 2 order by 1, 2"
    results, before = [], set(os.listdir("/proc/self/task"))
    for threads in (1, 2, 8):
        with stave.load(big, threads=threads, index=False) as t:
            results.append(list(t.query(sql)))
            for _ in range(1000):  # a thread that was joined is listed for a moment longer
                if set(os.listdir("/proc/self/task")) <= before:
                    break
                time.sleep(0.01)
            else:
                pytest.fail("a thread is left")
            if (pid := os.fork()) == 0:
                os._exit(0 if list(t.query(sql)) == results[0] else 1)
            assert os.waitpid(pid, 0)[1] == 0
    assert results[0] == results[1] == results[2] and len(results[0]) == 36
    with pytest.raises(ValueError, match="threads"):
        stave.load(big, threads=65)


def test_closed(path):
    t = stave.load(path)
    r = t.query("select name from slice")
    t.close()
    t.close()
    assert len(r.rows()) == 9 and "closed" in repr(t)
    with pytest.raises(ValueError, match="closed"):
        t.query("select 1")


ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


def test_the_gil_is_released_and_threads_share(t, path):
    other = stave.load(path)
    failures = []

    def endless():
        try:
            other.query(ENDLESS)
        except KeyboardInterrupt:
            failures.append("interrupted")

    worker = threading.Thread(target=endless)
    worker.start()
    results = [t.query("select count(*) from slice").rows() for _ in range(20)]  # while the other one runs
    with pytest.raises(RuntimeError, match="another thread"):
        while not other._used:
            pass
        other.close()
    while worker.is_alive():
        reading._lib.interrupt(other._handle)
        worker.join(0.01)
    assert results == [[(9,)]] * 20 and failures == ["interrupted"]
    found = []
    threads = [threading.Thread(target=lambda: found.append(t.query("select name from slice")["name"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(names == found[0] for names in found)


def test_ctrl_c(py, path):
    out = py.run(f"""
        import os, signal, threading, time, stave
        t = stave.load({path!r})
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run in the background
        def interrupt():
            while not t._used: time.sleep(0.01)  # until the statement runs
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            t.query({ENDLESS!r})
        except KeyboardInterrupt:
            print("ended", t.query("select 1").rows())
    """)
    assert out == "ended [(1,)]\n"


def test_without_the_library(py):
    out = py.run("""
        import stave
        try:
            stave.load("x.pftrace")
        except ImportError as error:
            print(error)
    """, env={"STAVE_READ_LIBRARY": "/nowhere/libstave-read.so"})
    assert "stave.load needs the library libstave-read" in out and "STAVE_READ_LIBRARY=" in out and "/nowhere/" in out


def test_the_index_is_shared(tmp_path, path):
    """What the program keeps the library uses, and the other way round."""
    env = {**NO_OUT, "XDG_CACHE_HOME": str(tmp_path), "STAVE_INDEX_SLICES": "1", "PYTHONPATH": os.environ["PYTHONPATH"]}
    os.utime(path, (1e9, 1e9))

    def load():
        subprocess.run([sys.executable, "-c", "import sys, stave; assert len(stave.load(sys.argv[1]).slices) == 9", path], check=True, env=env)
        return [(e.name, e.inode()) for e in os.scandir(tmp_path / "stave") if e.name.endswith("-index")]

    import time
    time.sleep(0.2)  # a file that changed just now gets none
    made = load()
    assert len(made) == 1
    done = subprocess.run([STAVE, "query", "--time", path, "select 1"], capture_output=True, text=True, env=env)
    assert "from its index" in done.stderr
    assert load() == made
