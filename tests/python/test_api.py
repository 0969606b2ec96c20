"""What a user writes: slices, decorators, instants, flows, tracks, counters, sessions."""


def test_complete_example_of_the_seed(py):
    # As written there, apart from its two typos (trace_open is called open, compute_trace is compute_track).
    py.run('''
        from stave import open as trace_open, trace, track, count, instant, trace_func

        # 1. Open trace file
        with trace_open("my_trace.perfetto"):

            # 2. Create custom track
            compute_track = track("Compute")

            # 3. Use context manager
            with compute_track.trace("matrix_ops", size=1024):

                # 4. Use decorator
                @trace_func
                def multiply(a, b):
                    return a * b

                result = multiply(10, 20)

                # 5. Record instant events
                instant("checkpoint", {"result": result})

                # 6. Track counters
                counter = count("operations")
                counter.increment(1)

                # 7. Flow tracking
                flow = instant("data_ready", num_outgoing_flow_ids=1)
                instant("process", incoming_flow_ids=flow)
    ''')
    t = py.read("my_trace.perfetto")
    ops = t.one("matrix_ops")
    assert ops["track"] == "Compute" and ops["args"] == {"size": 1024}
    assert t.one("multiply")["dur"] > 0
    assert ops["ts"] < t.one("multiply")["ts"] < ops["ts"] + ops["dur"]
    assert t.one("checkpoint")["args"] == {"result": 200}
    assert t.counter("operations") == [1]
    assert t.flows() == [("data_ready", "process")]


def test_other_patterns_of_the_seed(py):
    t = py.trace('''
        from stave import trace, track, trace_func, trace_func_args, instant, count
        my_track = track("MyComponent")
        with my_track.trace("operation_name", 1, "two", kwarg1=3):
            pass
        with trace("matrix_multiply", {"size": (1024, 1024)}):
            pass
        @trace_func_args
        def with_args(arg1, arg2): pass
        with_args(1, arg2=2)
        @trace_func(track("CustomTrack"))
        def another_function(): pass
        another_function()
        @trace_func_args(track("CustomTrack"))
        def third(x=5): pass
        third()
        flow_ids = instant("event", num_outgoing_flow_ids=2)
        assert len(set(flow_ids)) == 2
        instant("dependent_event", incoming_flow_ids=flow_ids)
        counter = count("memory_usage")
        counter.increment(100)
        counter.count(500)
        counter.increment(0.5)
        assert count("memory_usage") is counter and counter.value == 500.5
        o = track("op").trace("by hand")
        o.__enter__()
        o.__exit__(None, None, None)
    ''')
    assert t.one("operation_name")["args"] == {"args[0]": 1, "args[1]": "two", "kwarg1": 3}
    assert t.one("operation_name")["track"] == "MyComponent"
    assert t.one("matrix_multiply")["args"] == {"size[0]": 1024, "size[1]": 1024}
    assert t.one("with_args")["args"] == {"arg1": 1, "arg2": 2}
    assert t.one("another_function")["track"] == "CustomTrack"
    assert t.one("third")["args"] == {"x": 5} and t.one("third")["track"] == "CustomTrack"
    assert len(t.flows()) == 2
    assert t.counter("memory_usage") == [100, 500, 500.5]
    assert t.one("by hand")["track"] == "op"
    assert len([r for r in t.tracks.values() if r["name"] == "CustomTrack"]) == 1


def test_nesting_threads_and_names(py):
    t = py.trace('''
        import threading
        def work(n):
            stave.thread_name(f"worker {n}")
            with stave.trace("outer"):
                for _ in range(3):
                    with stave.trace("inner", n=n):
                        pass
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [x.start() for x in threads]; [x.join() for x in threads]
    ''')
    assert len(t.named("outer")) == 4 and len(t.named("inner")) == 12
    assert {t.parent(s) for s in t.named("inner")} == {"outer"}
    assert {r["name"] for r in t.ask("select name from thread where name like 'worker%'")} == {f"worker {n}" for n in range(4)}


def test_exceptions_are_reported_and_passed_on(py):
    t = py.trace('''
        @stave.trace_func
        def fails(): raise KeyError("k")
        for f in (fails,):
            try: f()
            except KeyError as e: print(repr(e), e.__traceback__ is not None)
        try:
            with stave.trace("block"):
                raise ValueError("no")
        except ValueError as e: print(e)
        class Mute(Exception):
            def __str__(self): raise RuntimeError
        try:
            with stave.trace("mute"): raise Mute
        except Mute: print("mute")
    ''')
    assert py.out.splitlines() == ["KeyError('k') True", "no", "mute"]
    assert t.one("fails")["args"] == {"exception": "KeyError: 'k'"}
    assert t.one("block")["args"] == {"exception": "ValueError: no"}
    assert t.one("mute")["args"]["exception"].startswith("Mute")


def test_decorated_functions_behave_like_functions(py):
    t = py.trace('''
        import inspect, pickle, copy, functools, weakref
        class A:
            "doc of A"
            @stave.trace_func
            def method(self, x: int, y=2) -> int:
                "doc"
                return x + y
            @staticmethod
            @stave.trace_func
            def s(x): return x
            @classmethod
            @stave.trace_func
            def c(cls): return cls
            @stave.trace_func
            @staticmethod
            def s2(x): return x
            @property
            @stave.trace_func
            def p(self): return 7
        a = A()
        assert a.method(1) == 3 and a.method(1, y=5) == 6 and A.method(a, 1) == 3
        assert A.s(4) == a.s(4) == 4 and A.c() is A and a.s2(3) == A.s2(3) == 3 and a.p == 7
        f = A.method
        assert (f.__name__, f.__doc__, f.__qualname__) == ("method", "doc", "A.method")
        assert str(inspect.signature(f)) == "(self, x: int, y=2) -> int" and inspect.unwrap(f) is f.__wrapped__
        assert copy.copy(f) is f and weakref.ref(f)() is f
        f.extra = 1
        assert f.extra == 1
        try: a.method()
        except TypeError as e: assert "missing 1 required" in str(e)
        try:
            @stave.trace_func
            class B: pass
        except TypeError as e: assert "is a class" in str(e)
        named = stave.trace_func(len, name="my len", category="nn")
        assert named([1]) == 1
        part = stave.trace_func_args(functools.partial(int, base=2), name="part")
        assert part("101") == 5
    ''')
    assert len(t.named("A.method")) == 4
    assert t.named("A.method")[-1]["args"]["exception"].startswith("TypeError")
    assert t.one("my len")["category"] == "nn" and t.one("part")["args"] == {"args[0]": "101"}


def test_trace_func_args_names_and_defaults(py):
    t = py.trace('''
        @stave.trace_func_args
        def f(a, b=2, /, c=3, *rest, d, e=5, **more): return 1
        f(1, d=4)
        f(1, 9, 8, 7, 6, d=4, z=0)
        class C:
            def __init__(self): pass
            @stave.trace_func_args
            def m(self, x): pass
            def __repr__(self): raise RuntimeError
        C().m(C())
    ''')
    one, two = t.named("f")
    assert one["args"] == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    assert two["args"] == {"a": 1, "b": 9, "c": 8, "rest[0]": 7, "rest[1]": 6, "d": 4, "z": 0, "e": 5}
    assert t.one("C.m")["args"] == {"self": "C", "x": "<C: __repr__ raised RuntimeError>"}


def test_generators_are_a_slice_per_run(py):
    t = py.trace('''
        @stave.trace_func
        def gen(n):
            for i in range(n):
                got = yield i
                if got: print("got", got)
            return "end"
        g = gen(3)
        assert next(g) == 0 and g.send("x") == 1
        assert list(g) == [2]
        def outer(): return (yield from gen(1))
        o = outer(); next(o)
        try: next(o)
        except StopIteration as e: assert e.value == "end"
        h = gen(5); next(h)
        try: h.throw(ValueError("v"))
        except ValueError: print("thrown")
        k = gen(5); next(k); k.close()
        import inspect
        assert inspect.isgeneratorfunction(gen)
    ''')
    assert py.out.split() == ["got", "x", "thrown"]
    assert len(t.named("gen")) == 4 + 2 + 2 + 2
    assert sum("exception" in s["args"] for s in t.named("gen")) >= 1


def test_coroutines_are_one_slice_on_the_row_of_their_task(py):
    t = py.trace('''
        import asyncio
        @stave.trace_func_args
        async def child(n):
            with stave.trace("step", n=n):
                await asyncio.sleep(0.002)
            return n
        @stave.trace_func
        async def main():
            assert await asyncio.gather(child(1), child(2), child(3)) == [1, 2, 3]
            try: await fails()
            except ValueError: pass
            async for x in agen(): print(x)
        @stave.trace_func
        async def fails():
            await asyncio.sleep(0)
            raise ValueError("late")
        @stave.trace_func
        async def agen():
            for i in range(2):
                await asyncio.sleep(0)
                yield i
        asyncio.run(main())
    ''')
    assert py.out.split() == ["0", "1"]
    calls = [s for s in t.slices if s["category"] == "function"]
    assert {s["name"] for s in t.slices if s["category"] == "asyncio"} == {"task main", "task child"}  # a call is counted once
    assert [s["track"] for s in calls if s["name"] == "main"] == ["task 1"]
    assert len({s["track_id"] for s in calls if s["name"] == "child"}) == 3
    for step in t.named("step"):
        assert t.parent(step) == "child" and step["dur"] > 1_000_000
        assert t.by_id[step["parent_id"]]["args"] == step["args"]
    assert t.one("fails")["args"] == {"exception": "ValueError: late"} and t.parent(t.one("fails")) == "main"
    assert len(t.named("agen")) == 3


def test_tasks_have_rows_from_birth_when_asked(py):
    t = py.trace('''
        import asyncio
        async def quiet(): await asyncio.sleep(0.001)
        async def main():
            stave.trace_tasks()
            for _ in range(2):
                await asyncio.gather(*(asyncio.create_task(quiet(), name=f"q{i}") for i in range(5)))
        asyncio.run(main())
    ''')
    quiet = t.named("task quiet")
    assert len(quiet) == 10 and len({s["track_id"] for s in quiet}) == 5 and {s["args"]["task"] for s in quiet} == {f"q{i}" for i in range(5)}
    assert {s["category"] for s in quiet} == {"asyncio"}


def test_coroutines_outside_asyncio(py):
    t = py.trace('''
        @stave.trace_func
        async def co(): return 5
        c = co()
        try: c.send(None)
        except StopIteration as e: assert e.value == 5
    ''')
    assert t.one("co")["track"] == "task 1"


def test_flow_objects_cross_threads(py):
    t = py.trace('''
        import threading, pickle
        f, g = stave.flow(), stave.Flow()
        with stave.trace("produce", flow=[f, g]): pass
        assert pickle.loads(pickle.dumps(f)) == f
        def consume():
            with stave.trace("consume", flow=pickle.loads(pickle.dumps(f))): pass
        x = threading.Thread(target=consume); x.start(); x.join()
        stave.instant("other", flow=g)
        with stave.trace("late") as s:
            out = s.get_outgoing_flow_ids(2)
            s.set(loss=0.5, n=3)
        with stave.trace("in") as s:
            s.set_incoming_flow_ids(out[:1])
    ''')
    assert t.flows() == [("late", "in"), ("produce", "consume"), ("produce", "other")]
    assert t.one("late")["args"] == {"loss": 0.5, "n": 3}


def test_groups_nest(py):
    t = py.trace('''
        g = stave.group("cluster")
        inner = g.group("die 0", order=1)
        row = inner.track("engine")
        with row.trace("op"): pass
        row.instant("now")
        inner.count("power", "W").count(3.5)
        start = stave.now_ns()
        row.complete("past", start - 5000, 2000, k=1)
        stave.complete("past of thread", start - 5000, 2000)
        assert stave.group("cluster").id == g.id
    ''')
    op = t.one("op")
    chain, at = [], t.tracks[op["track_id"]]
    while at:
        chain.append(at["name"])
        at = t.tracks.get(at["parent_id"])
    assert chain == ["engine", "die 0", "cluster"]
    assert t.counter("power") == [3.5]
    assert t.one("past")["dur"] == 2000 and t.one("past")["args"] == {"k": 1} and t.one("past")["ts"] < op["ts"] + 10**9
    assert t.one("past of thread")["dur"] == 2000


def test_switched_off_everything_still_works(py):
    py.run('''
        import stave
        with stave.trace("x", a=1) as s:
            s.set(b=2)
            assert len(s.get_outgoing_flow_ids(3)) == 3
            s.set_incoming_flow_ids([1])
        assert len(stave.instant("i", num_outgoing_flow_ids=2)) == 2
        assert stave.instant("i") is None
        @stave.trace_func_args
        def f(x): return x
        assert f(3) == 3
        stave.count("c").increment()
        assert stave.count("c").value == 1
        with stave.track("t").trace("y"): pass
        stave.flush(); stave.stop()
        assert not stave.enabled()
    ''')
    assert py.files() == []


def test_categories(py):
    py.run('''
        import stave
        with stave.open("t.pftrace", categories="nn.*,-nn.noise"):
            with stave.trace("plain"): pass
            with stave.trace("a", category="nn.a"):
                stave.instant("noise", category="nn.noise")
            assert stave.enabled("nn.x") and not stave.enabled("python")
            stave.categories("python")
            with stave.trace("plain again"): pass
    ''')
    assert py.read().names() == ["a", "plain again"]


def test_exit_stack_and_odd_uses(py):
    t = py.trace('''
        import contextlib
        with contextlib.ExitStack() as stack:
            stack.enter_context(stave.trace("one"))
            stack.enter_context(stave.trace("two"))
        s = stave.trace("again")
        with s: pass
        with s: pass
        with s:
            with s: pass
        s.__exit__(None, None, None)   # nothing is open
        for bad in (lambda: s(1), lambda: s(x=1), lambda: stave.trace(), lambda: stave.instant()):
            try: bad()
            except TypeError as e: print("TypeError")
        with stave.trace(("not", "text")): pass
        class Text(str): pass
        with stave.trace(Text("sub")): pass
        with stave.trace("b\\udc80d"): pass
    ''')
    assert py.out.split() == ["TypeError"] * 4
    assert t.parent(t.one("two")) == "one" and len(t.named("again")) == 4
    assert t.one("('not', 'text')") and t.one("sub")


def test_slices_are_used_again_only_when_nobody_has_them(py):
    """trace() gives out an object that it gave out before, if it is over and neither it nor its __exit__ is held."""
    t = py.trace('''
        import contextlib, gc
        none = (None, None, None)
        def nested(n):
            with stave.trace(f"depth {n}") as s:
                if n: nested(n - 1)
                s.set(n=n)
        nested(99)                        # more than are kept
        kept = [stave.trace("kept", i=i) for i in range(100)]
        assert len({id(s) for s in kept}) == 100
        for s in kept:
            with s: pass
            assert stave.trace("never entered") is not s
        del kept, s
        for _ in range(70): stave.trace("never entered")   # after a search in vain it is not searched at once
        held = stave.trace("held"); leave = held.__exit__
        held.__enter__(); held = None     # only __exit__ has it
        with stave.trace("inside"): pass
        leave(*none); leave(*none)
        with stave.trace("after"):
            leave(*none)
            with stave.trace("child"): pass
        twice = stave.trace("twice")
        first, second = twice.__exit__, twice.__exit__
        twice.__enter__(); twice.__enter__(); twice = None
        first(*none); first = None; gc.collect(); second(*none)
        with stave.trace("raises"):
            with contextlib.suppress(ZeroDivisionError), stave.trace("fails", a=1): 1 / 0
        class Held:
            def __str__(self):
                with stave.trace("by str"): pass
                return "named by an object"
        with stave.trace(Held()) as s: pass
        for f in (lambda: s.__exit__(), lambda: s.__exit__(1, 2), lambda: type(s).__exit__(s), lambda: type(s).__exit__(1, 2, 3, 4)):
            try: f(); print("no error")
            except TypeError: pass
    ''')
    assert py.out == ""
    for n in range(100):
        s = t.one(f"depth {n}")
        assert s["args"] == {"n": n} and t.parent(s) == (None if n == 99 else f"depth {n + 1}")
    assert [s["args"]["i"] for s in t.named("kept")] == list(range(100))
    assert t.parent(t.one("inside")) == "held" and t.parent(t.one("child")) == "after"
    assert len(t.named("twice")) == 2 and t.one("fails")["args"] == {"a": 1, "exception": "ZeroDivisionError: division by zero"}
    assert t.one("by str") and t.one("named by an object")
    assert all(s["dur"] >= 0 for s in t.slices)


def test_switched_off_slice_is_used_like_another_one(py):
    out = py.run('''
        import contextlib, stave
        with stave.trace("x", a=1) as s: assert s.set(b=2) is s
        assert s.__enter__() is s and s.__exit__(None, None, None) is None and s() is s
        assert type(s).__enter__(s) is s and type(s).__exit__(s, None, None, None) is None
        with contextlib.ExitStack() as stack: assert stack.enter_context(stave.trace("x")) is s
        s.set_incoming_flow_ids(1); assert len(s.get_outgoing_flow_ids(2)) == 2
        try:
            with stave.track("t").trace("x"): raise KeyError("passed on")
        except KeyError: print("KeyError")
        for bad in (lambda: s(1), lambda: s.__exit__(), lambda: s.__exit__(1), lambda: type(s).__enter__(1), lambda: type(s)()):
            try: bad(); print("no error")
            except TypeError: pass
        # entered while it was off, left while it is on, and the other way
        with s:
            stave.start("t.pftrace")
        with stave.trace("on"): pass
        with stave.trace("stopped inside"): stave.stop()
    ''')
    assert out == "KeyError\n"
    assert py.read().names() == ["on", "stopped inside"]


def test_slice_left_by_another_thread_closes_nothing(py):
    t = py.trace('''
        import threading
        s = stave.trace("begun here")
        s.__enter__()
        def other():
            with stave.trace("of the other"):
                s.__exit__(None, None, None)
        x = threading.Thread(target=other); x.start(); x.join()
    ''')
    assert t.one("of the other")["dur"] > 0


def test_many_names_do_not_fill_the_memory(py):
    t = py.trace('''
        for i in range(40000):
            with stave.trace(f"step {i}"): pass
        stave.instant("step 39999", a=1)
        stave.track("t").complete("step 39998 " + "x", stave.now_ns(), 5)
        from stave import _stave
    ''')
    assert len(t.slices) == 40002
    assert {s["name"] for s in t.slices} >= {f"step {i}" for i in range(40000)}


def test_nested_open_is_a_clear_error(py):
    py.run('''
        import stave
        with stave.open("a.pftrace"):
            try:
                with stave.open("b.pftrace"): pass
            except RuntimeError as e: assert "do not nest" in str(e) and "a.pftrace" in str(e)
        with stave.open("c.pftrace"): stave.instant("second")
        for bad in (lambda: stave.start("x.unknown"), lambda: stave.start("/nowhere/at/all/x.pftrace"), lambda: stave.start()):
            try: bad()
            except (OSError, ValueError) as e: print(type(e).__name__)
        try: stave.start("x.pftrace", full="never")
        except ValueError as e: assert "block" in str(e)
    ''')
    assert py.files() == ["a.pftrace", "c.pftrace"]
    assert py.read("c.pftrace").names() == ["second"]


def test_a_second_run_replaces_the_file(py):
    for n in (1, 2):
        py.trace(f"stave.instant('run {n}')")
    assert py.read().names() == ["run 2"]


def test_json_output(py):
    t = py.trace("stave.instant('x', a=[1, 2])", out="t.json")
    assert t.one("x")["args"] == {"a[0]": 1, "a[1]": 2}


def test_environment_and_the_end_of_the_program(py):
    py.run('''
        import atexit, stave
        atexit.register(lambda: stave.instant("at exit"))
        with stave.open("ignored.pftrace"):      # the environment wins: one trace
            stave.instant("inside")
        stave.stop()                             # flushes; the session is the environment's
        stave.instant("after")
        class Late:
            def __del__(self): stave.instant("late")
        keep = Late()
    ''', env={"STAVE_OUT": "env.pftrace"})
    assert py.files() == ["env.pftrace"]
    assert set(py.read("env.pftrace").names()) >= {"inside", "after", "at exit"}


def test_flight_recorder(py):
    py.run('''
        import stave
        with stave.open("f.pftrace", full="overwrite", buffer_bytes=16384):
            for i in range(5000): stave.instant("tick", i=i)
            assert stave.trigger("now") == 1
    ''')
    names = py.read("f.1.pftrace").named("tick")
    assert 0 < len(names) < 5000 and names[-1]["args"]["i"] == 4999


def test_values_that_are_none(py):
    """Events never raise, whatever their values do; the first one is reported in Python's way."""
    t = py.trace('''
        class Bad:
            def __str__(self): raise KeyError("str")
            __repr__ = __float__ = __index__ = __str__
        c = stave.count("c")
        c.count(1)
        for bad in (None, "x", [], Bad(), object()):
            c.count(bad); c.increment(bad)
            assert stave.complete("never", bad, 5) is None
            assert stave.complete("never", 5, bad) is None
            assert stave.instant("i", num_outgoing_flow_ids=bad) in (None, [])
        stave.complete("floats", 1000.7, 5e3)
        c.count(2)
        stave.count(Bad()).count(3)
        stave.track(Bad()).instant("on a row")
    ''')
    assert py.stderr.count("Exception ignored in") == 1 and "must be real number" in py.stderr
    assert not t.named("never") and len(t.named("i")) == 5 and t.one("floats")["dur"] == 5000 and t.one("on a row")["track"] == "<Bad>"


def test_a_start_that_fails_says_it_once(py):
    py.run('''
        import os, stave
        try:
            with stave.open("/nowhere/x.pftrace"): pass
        except FileNotFoundError as error:
            assert error.filename == "/nowhere/x.pftrace"
        else:
            raise AssertionError
        with stave.open(os.fsencode("second.json")): stave.instant("i")
        assert os.path.exists("second.json")
    ''')
    assert py.stderr == ""
