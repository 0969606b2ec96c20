"""Names as Python people expect them: threads, processes, tasks; and nothing cut in silence."""
import errno
import inspect

import pytest
from stave import _errors


def threads(t):
    return {r["name"] for r in t.ask("select name from thread where tid > 0")}


def processes(t):
    return {r["name"] for r in t.ask("select name from process where pid > 0")}


def test_threads_have_their_names(py):
    t = py.trace('''
        import threading, concurrent.futures
        long = "n" * 200
        def work(): stave.instant(threading.current_thread().name[:10])
        for name in ("loader", "prefetch of a very long name, more than 31 bytes", long):
            x = threading.Thread(target=work, name=name); x.start(); x.join()
        @stave.trace_func
        def decorated(): pass
        x = threading.Thread(target=decorated, name="by a decorator"); x.start(); x.join()
        def slice():
            with stave.trace("slice"): pass
        x = threading.Thread(target=slice, name="by a slice"); x.start(); x.join()
        def own():
            stave.thread_name("its own"); stave.instant("own")
        x = threading.Thread(target=own, name="not this"); x.start(); x.join()
        with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool") as pool: pool.submit(work).result()
        stave.instant("main")
        stave.stop()
        stave.start("second.pftrace")
        stave.instant("main again")
        stave.stop()
        stave.thread_name("renamed")
        stave.start("third.pftrace")
        stave.instant("main again")
    ''')
    expected = {"loader", "prefetch of a very long name, more than 31 bytes", "n" * 124 + "...", "by a decorator", "by a slice", "its own", "pool_0",
                "MainThread"}
    assert threads(t) == expected
    assert threads(py.read("second.pftrace")) == {"MainThread"} and threads(py.read("third.pftrace")) == {"renamed"}


def test_threads_that_python_did_not_start_keep_the_system_s_name(py):
    t = py.trace('''
        import _thread, threading, time
        done = _thread.allocate_lock(); done.acquire()
        def work(): stave.instant("x"); done.release()
        _thread.start_new_thread(work, ()); done.acquire()
        assert threading.active_count() == 1          # no dummy was made for it
    ''')
    assert "Dummy" not in " ".join(filter(None, threads(t))) and len(t.named("x")) == 1


def test_processes_are_named_by_what_they_run(py):
    (py.folder / "package").mkdir()
    (py.folder / "package" / "__init__.py").write_text("")
    (py.folder / "package" / "tool.py").write_text("import stave\nwith stave.open('m.pftrace'): stave.instant('x')\n")
    py.run("", command=["-m", "package.tool"])
    assert processes(py.read("m.pftrace")) == {"package.tool"}
    py.run("", command=["-c", "import stave\nwith stave.open('c.pftrace'): stave.instant('x')"])
    assert {p.split("/")[-1].endswith(" -c") for p in processes(py.read("c.pftrace"))} == {True}
    py.run('''
        import stave
        stave.instant("x")
        stave.process_name("my service")
    ''', env={"STAVE_OUT": "own.pftrace"})
    assert processes(py.read("own.pftrace")) == {"my service"}
    py.run('''
        import multiprocessing, stave
        stave.process_name("service")
        def work(): stave.instant("x")
        with stave.open("f.pftrace"):
            stave.instant("x")
            p = multiprocessing.get_context("fork").Process(target=work, name="helper"); p.start(); p.join()
    ''')
    assert processes(py.read("f.pftrace")) == {"service", "service: helper"}
    py.run("import stave\nstave.instant('x')", env={"STAVE_OUT": "env.pftrace"})
    assert processes(py.read("env.pftrace")) == {"prog.py"}


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_have_their_names(py, how):
    py.run(f'''
import stave, multiprocessing
def work(): stave.instant("in worker")
if __name__ == "__main__":
    with stave.open("t.pftrace"):
        stave.instant("in parent")
        workers = [multiprocessing.get_context("{how}").Process(target=work, name=f"worker {{n}}") for n in (1, 2)]
        [w.start() for w in workers]; [w.join() for w in workers]
''')
    t = py.read()
    assert len(t.named("in worker")) == 2
    assert processes(t) == {"prog.py", "prog.py: worker 1", "prog.py: worker 2"}


def test_a_thousand_tasks_have_one_name(py):
    t = py.trace('''
        import asyncio
        async def request(n):
            with stave.trace("handle"): await asyncio.sleep(0)
        async def main():
            await asyncio.gather(*(request(n) for n in range(500)))
            await asyncio.create_task(request(0), name="by hand")
        asyncio.run(main())
    ''')
    tasks = [s for s in t.slices if s["category"] == "asyncio"]
    assert {s["name"] for s in tasks} == {"task request"} and len(tasks) == 501
    numbers = [s["args"]["task"] for s in tasks]
    assert len(set(numbers)) == 501 and "by hand" in numbers and all(isinstance(n, int) for n in numbers if n != "by hand")
    assert {s["name"] for s in t.slices} == {"task request", "handle"}


def test_nothing_is_cut_in_silence(py):
    t = py.trace('''
        stave.instant("n" * 3000, {"k" * 5000: 1})
        stave.instant("a\\0b", {"k\\0k": "v\\0v"})
        with stave.track("t" * 3000).trace("on long"): pass
        with stave.track("t\\0t").trace("on nul", category="c\\0c"): pass
        stave.count("c\\0c").count(1)
        stave.instant("\\u00e4" * 2000)
        stave.instant("\\udc80 surrogate")
        g = stave.TraceGenerator("g.pftrace")
        g.get_cluster_tgen().create_track("r\\0r").instant(0, "i\\0i", category_list=["c\\0c"])
        g.close()
    ''')
    assert t.one("n" * 960 + "... (2040 more bytes)")
    assert t.one("a\\x00b")["args"] == {"k\\x00k": "v\0v"}
    assert t.one("on long")["track"] == "t" * 960 + "... (2040 more bytes)"
    assert t.one("on nul")["track"] == "t\\x00t" and t.one("on nul")["category"] == "c\\x00c" and t.counter("c\\x00c") == [1]
    assert t.one("\u00e4" * 480 + "... (3040 more bytes)") and t.one("\\udc80 surrogate")
    assert [k for s in t.slices for k in s["args"] if k.startswith("kkk")] == ["k" * 4056 + "___ (944 more bytes)"]  # SQL has no dots in keys
    g = py.read("g.pftrace")
    assert g.one("i\\x00i")["track"] == "r\\x00r" and g.one("i\\x00i")["category"] == "c\\x00c"


def test_the_end_of_a_generator_is_no_exception(py):
    t = py.trace('''
        import asyncio
        @stave.trace_func
        def numbers():
            yield 1
        list(numbers())
        @stave.trace_func
        async def later():
            yield 1
        async def main(): return [x async for x in later()]
        asyncio.run(main())
        def left():
            with stave.trace("left"): yield 1; yield 2
        for _ in left(): break
        class Two:
            n = 0
            def __iter__(self): return self
            @stave.trace_func
            def __next__(self):
                self.n += 1
                if self.n > 2: raise StopIteration
                return self.n
        assert list(Two()) == [1, 2]
        try:
            with stave.trace("fails"): raise LookupError("real")
        except LookupError: pass
    ''')
    assert {s["name"] for s in t.slices if "exception" in s["args"]} == {"fails"}
    assert len(t.named("numbers")) == 2 and len(t.named("Two.__next__")) == 3 and len(t.named("left")) == 1


def test_errors_have_errno_and_reason(py):
    out = py.run('''
        import os, stave
        from stave.compat import nova
        def refused(what, *args, **kwargs):
            try: what(*args, **kwargs)
            except Exception as e: print(type(e).__name__, getattr(e, "errno", None), getattr(e, "filename", None), str(e).replace("\\n", " "), sep="|")
            else: print("taken", what, args)
        os.mkdir("folder.pftrace")
        refused(stave.start, "/nowhere/x.pftrace")
        refused(stave.TraceGenerator, "/nowhere/x.pftrace")
        refused(nova.TraceGenerator, "/nowhere/x.pftrace")
        refused(nova.open("/nowhere/x.perfetto").__enter__)
        refused(stave.start, "x.unknown")
        refused(stave.TraceGenerator, "x.unknown")
        refused(stave.start, "x.pftrace", compress="bzip3")
        refused(stave.TraceGenerator, "x.pftrace", compress="bzip3")
        refused(stave.start, "x.pftrace", full="sometimes")
        refused(stave.start, "x.pftrace", colour="red")
        refused(lambda: stave.open("x.pftrace", colour="red"))
        refused(stave.start)
        refused(stave.start, "x.pftrace", buffer_bytes=-1)
        refused(stave.start, "x.pftrace", buffer_bytes=2**63 - 1)
        with stave.open("works.pftrace"): stave.instant("x")
    ''')
    lines = [line.split("|") for line in out.splitlines()]
    assert [line[0] for line in lines] == ["FileNotFoundError"] * 4 + ["ValueError"] * 5 + ["OptionError"] * 2 + ["ValueError"] * 3, out
    assert {(line[1], line[2]) for line in lines[:4]} == {(str(errno.ENOENT), "/nowhere/x.pftrace"), (str(errno.ENOENT), "/nowhere/x.perfetto")}
    assert ".pftrace" in lines[4][3] and ".pftrace" in lines[5][3] and "gzip" in lines[6][3] and "gzip" in lines[7][3] and "'block'" in lines[8][3]
    assert "x.unknown: expected" in lines[4][3] and "x.pftrace: compress is" in lines[6][3]
    assert issubclass(_errors.OptionError, ValueError) and issubclass(_errors.OptionError, TypeError)
    assert "colour" in lines[9][3] and "categories" in lines[9][3] and "colour" in lines[10][3] and "buffer_bytes" in lines[12][3] and "at most 1G" in lines[13][3]
    assert py.read("works.pftrace").names() == ["x"]


def public():
    import stave
    from stave.compat import nova
    for module in (stave, nova):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)


def test_signatures_and_docstrings():
    for name, what in public():
        assert inspect.getdoc(what), name
        text = str(inspect.signature(what))
        assert text.startswith("("), name
        if inspect.isclass(what):
            for member, value in inspect.getmembers(what):
                if not member.startswith("_") and callable(value):
                    assert inspect.getdoc(value), f"{name}.{member}"
                    inspect.signature(value)
    import stave
    assert "category" in str(inspect.signature(stave.trace)) and "num_outgoing_flow_ids" in str(inspect.signature(stave.instant))
    assert list(inspect.signature(stave.enabled).parameters) == ["category"]
    assert list(inspect.signature(stave.count("x").increment).parameters) == ["by"]
