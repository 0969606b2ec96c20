"""stave.compat.ferrum: the document's own tests, the same file, and every way in which a program ends."""
import importlib.util
import json
import os
import signal
import subprocess

import pytest

STRICT = os.path.join(os.environ["SRC"], "tests", "harness", "ferrum_strict.py")
spec = importlib.util.spec_from_file_location("ferrum_strict", STRICT)
strict = importlib.util.module_from_spec(spec)
spec.loader.exec_module(strict)

HEAD = "from stave.compat.ferrum import TraceEvent, TraceWriter, flush_global_trace, global_trace\n"


def run(py, program, **kwargs):
    import textwrap
    return py.run(HEAD + textwrap.dedent(program), **kwargs)


def test_what_the_document_tests(py):
    run(py, '''
        import dataclasses, json
        e = TraceEvent.complete("rms_norm", "norm", 1_000_000, 0.123, 1)
        assert e.ph == "X" and e.dur == 123 and e.pid == 0
        back = TraceEvent(**json.loads(json.dumps(e.to_dict())))
        assert back == e and "args" not in e.to_dict()
        assert TraceEvent.complete("n", "c", 0, float("nan"), 1).dur == 0

        w = TraceWriter.disabled()
        w.push("rms_norm", "norm", 1.0, 0)
        assert not w.is_enabled() and w.flush()

        assert not TraceWriter.from_env_vars([("FERRUM_TRACE_OUT", ""), ("OTHER", "1")]).is_enabled()
        assert TraceWriter.from_env_vars([("FERRUM_TRACE_OUT", "snapshot.json")]).is_enabled()
        assert TraceWriter.from_env_vars({"STAVE_TRACE_OUT": "snapshot.json"}).is_enabled()
        assert not TraceWriter.from_env().is_enabled() and not global_trace().is_enabled()
        global_trace().push("x", "y", 1.0, 0); flush_global_trace()

        w = TraceWriter.enabled("trace.json")
        w.push("rms_norm", "norm", 1.0, 1)
        w.push("rope", "attn", 0.5, 1)
        assert w.flush()
        events = [TraceEvent(**e) for e in json.load(open("trace.json"))]
        assert len(events) == 2 and events[0].name == "rms_norm" and events[1].cat == "attn"
        w.flush()                                    # a second one loses nothing, nor does the end
    ''')
    assert [(e["name"], e["dur"], e["tid"]) for e in strict.load(py.folder / "trace.json")] == [("rms_norm", 1000, 1), ("rope", 500, 1)]
    assert (py.folder / "snapshot.json").read_text() == "[]" and py.stderr == ""


def test_names_and_arguments(py):
    run(py, '''
        with TraceWriter("trace.out") as w:          # any suffix
            w.push_with_args("shapes", "gemm", 0.25, 3, {"tokens": 4, "dims": [1, (2, 3)], "deep": {"a": None, "b": True}})
            w.push_with_args("odd", "x", 0, 3, {"nan": float("nan"), "inf": [float("-inf")], "bytes": b"x", 5: "key"})
            w.push_with_args("none", "x", 0, 0, None)
            w.push_with_args("empty", "x", 0, 0, {})
            w.push_with_args("list", "x", 0, 0, [1])
            loop = []; loop.extend([loop, loop])
            w.push_with_args("endless", "x", 0, 0, {"loop": loop})
            w.push("", 7, 0, 2**32 - 1)
            w.push("\\ud800 \\0 \\u00fc", "c", 0)
            for bad in (-1, 2**32):
                try: w.push("tid", "c", 0, bad)
                except OverflowError as e: assert "32 bits" in str(e)
                else: raise AssertionError(bad)
        w.push("closed", "c", 0)
    ''')
    events = strict.load(py.folder / "trace.out")
    args = {e["name"]: e.get("args") for e in events}
    assert args["shapes"] == {"tokens": 4, "dims": [1, [2, 3]], "deep": {"a": None, "b": True}}
    assert args["odd"] == {"nan": None, "inf": [None], "bytes": "b'x'", "5": "key"}
    assert args["none"] is None and args["empty"] is None and args["list"] == {"data": [1]}
    assert args["endless"] == {"loop": ["<class 'list'>"] * 2} and (events[6]["name"], events[6]["cat"], events[6]["tid"]) == ("", "7", 2**32 - 1)
    assert events[7]["name"] == "\\ud800 \0 \u00fc" and len(events) == 8


def test_numpy(py):
    pytest.importorskip("numpy")
    run(py, '''
        import numpy as np
        w = TraceWriter("trace.json")
        w.push_with_args("n", "c", np.float32(0.5), np.int64(3), {"shape": np.array([1, 2]), "n": np.int32(7), "x": np.float64(1.5)})
    ''')
    (e,) = strict.load(py.folder / "trace.json")
    assert (e["dur"], e["tid"], e["args"]) == (500, 3, {"shape": [1, 2], "n": 7, "x": 1.5})


@pytest.mark.parametrize("variable", ["FERRUM_TRACE_OUT", "STAVE_TRACE_OUT"])
def test_forked_children_threads_and_processes(py, variable):
    run(py, '''
        import multiprocessing, os, threading
        def work(kind):
            for layer in range(50):
                global_trace().push("op", kind, 0.1, layer)
        if __name__ == "__main__":
            assert global_trace() is global_trace()
            work("parent")
            others = [threading.Thread(target=work, args=("thread",)) for _ in range(4)]
            others += [multiprocessing.get_context("fork").Process(target=work, args=("fork",)) for _ in range(4)]
            for o in others: o.start()
            for o in others: o.join()
            if os.fork() == 0:
                work("os._exit")
                os._exit(0)
            os.wait()
            flush_global_trace()
    ''', env={variable: "trace.json"})
    kinds = [e["cat"] for e in strict.load(py.folder / "trace.json")]
    assert {k: kinds.count(k) for k in set(kinds)} == {"parent": 50, "thread": 200, "fork": 200, "os._exit": 50}
    assert os.listdir(py.folder).count("trace.json") == 1 and py.stderr == ""


@pytest.mark.parametrize("end, code", [("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM), ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
                                       ("os.abort()", -signal.SIGABRT), ("os._exit(3)", 3), ("raise ValueError", 1), ("sys.exit(4)", 4)])
def test_no_end_loses_an_event(py, end, code):
    sessions = {"STAVE_SESSION_DIR": str(py.folder / "sessions")}
    run(py, f'''
        import os, resource, signal, sys
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for i in range(100):
            global_trace().push("op", "end", 0.1, i)
        {end}
    ''', env={"FERRUM_TRACE_OUT": "trace.json", **sessions}, code=code)
    if code < 0 or "_exit" in end:
        assert strict.load(py.folder / "trace.json")        # a whole trace, without the last events
        subprocess.run([os.environ["STAVE"], "recover", "-q", "trace.json"], cwd=py.folder, check=True, env={**os.environ, **sessions})
    assert [e["tid"] for e in strict.load(py.folder / "trace.json")] == list(range(100))


def test_a_path_that_cannot_be_written(py):
    run(py, '''
        w = TraceWriter.enabled("no/such/folder/trace.json")
        assert w.is_enabled()
        w.push("op", "c", 1.0, 0)
        assert not w.flush()
    ''')
    assert py.stderr == "stave: no/such/folder/trace.json: No such file or directory; there is no trace\n"


def test_convert_makes_the_same_file(py):
    run(py, '''
        w = TraceWriter("trace.json")
        for layer in range(3):
            w.push("attn", "attention", 2.0, layer)      # these overlap
            w.push_with_args("moe", "moe", 1.5, layer, {"experts": [1, 2]})
    ''')
    for through in ("a.pftrace", "a.txt"):
        subprocess.run([os.environ["STAVE"], "convert", "-q", "trace.json", "-o", through], cwd=py.folder, check=True)
        subprocess.run([os.environ["STAVE"], "convert", through, "--dialect", "ferrum", "-o", "back.json"], cwd=py.folder, check=True)
        def key(e): return e["ts"], e["name"], e["tid"]
        assert sorted(strict.load(py.folder / "back.json"), key=key) == sorted(json.loads((py.folder / "trace.json").read_text()), key=key)
