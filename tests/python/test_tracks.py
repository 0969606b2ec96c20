"""Slices on named tracks: whoever begins and ends them, each keeps its own begin and its own end. A flush between two steps makes the writer
read what is there: it must place a slice without knowing its end."""
import pytest

HEAD = '''
import asyncio, contextlib, threading, stave
row = stave.track("shared")
def slice(n): return row.trace(f"s{n}", n=n)
def leave(s, n): s.set(n_end=n); s.__exit__(None, None, None)
'''


def check(t, n):
    """All of them are there, whole, and no end is another one's."""
    slices = [s for s in t.slices if s["name"][0] == "s" and s["name"][1:].isdigit()]
    assert sorted(s["args"]["n"] for s in slices) == list(range(n))
    for s in slices:
        assert s["dur"] >= 0 and s["args"]["n"] == s["args"]["n_end"], s
    return {s["args"]["n"]: s for s in slices}


def overlaps(a, b):
    return a["ts"] < b["ts"] < a["ts"] + a["dur"] < b["ts"] + b["dur"]


@pytest.mark.parametrize("flush", ["stave.flush()", "pass"])
def test_threads_that_cross(py, flush):
    t = py.trace(HEAD + f'''
def other():
    s = slice(1); s.__enter__(); {flush}; entered.set(); left.wait(); leave(s, 1)
entered, left = threading.Event(), threading.Event()
s = slice(0); s.__enter__(); {flush}
thread = threading.Thread(target=other); thread.start(); entered.wait()
leave(s, 0); {flush}; left.set(); thread.join()
''')
    s = check(t, 2)
    assert overlaps(s[0], s[1]) and s[0]["track_id"] != s[1]["track_id"] and s[0]["track"] == s[1]["track"] == "shared"


@pytest.mark.parametrize("flush", ["stave.flush()", "pass"])
def test_tasks_of_one_thread_that_cross(py, flush):
    t = py.trace(HEAD + f'''
async def work(n, mine, next):
    await mine.wait()
    with slice(n) as s:
        {flush}
        next.set()
        await asyncio.sleep(0)
        with row.trace("inner", of=n): {flush}; await asyncio.sleep(0)
        s.set(n_end=n)
async def main():
    turns = [asyncio.Event() for _ in range(21)]
    turns[0].set()
    await asyncio.gather(*(work(n, turns[n], turns[n + 1]) for n in range(20)))
asyncio.run(main())
''')
    s = check(t, 20)
    assert any(overlaps(s[n], s[n + 1]) for n in range(19))
    # What a task does within its slice is drawn inside of that.
    for inner in t.named("inner"):
        assert t.parent(inner) == f"s{inner['args']['of']}"


@pytest.mark.parametrize("how", ["manual", "generators", "exit_stack", "other_thread"])
@pytest.mark.parametrize("flush", ["stave.flush()", "pass"])
def test_scopes_end_in_any_order(py, how, flush):
    body = {
        "manual": '''
all = [slice(n) for n in range(6)]
for s in all: s.__enter__(); FLUSH
for n in (2, 0, 5, 1, 4, 3): leave(all[n], n); FLUSH
''',
        "generators": '''
def generator(n):
    with slice(n) as s:
        FLUSH
        yield
        s.set(n_end=n)
all = [generator(n) for n in range(6)]
for g in all: next(g)
for n in (2, 0, 5, 1, 4, 3): FLUSH; next(all[n], None)
''',
        "exit_stack": '''
stacks = [contextlib.ExitStack() for n in range(6)]
for n, stack in enumerate(stacks): stack.enter_context(slice(n)).set(n_end=n); FLUSH
for n in (2, 0, 5, 1, 4, 3): stacks[n].close(); FLUSH
''',
        "other_thread": '''
all = [slice(n) for n in range(6)]
for s in all: s.__enter__(); FLUSH
def end():
    for n in (2, 0, 5, 1, 4, 3): leave(all[n], n); FLUSH
thread = threading.Thread(target=end); thread.start(); thread.join()
'''}[how].replace("FLUSH", flush)
    s = check(py.trace(HEAD + body), 6)
    assert overlaps(s[0], s[5]) and overlaps(s[2], s[3])


@pytest.mark.parametrize("flush", ["stave.flush()", "pass"])
def test_what_nests_stays_on_its_row(py, flush):
    t = py.trace(HEAD + f'''
@stave.trace_func(row)
def function():
    {flush}
    with slice(2) as s: {flush}; s.set(n_end=2)
with slice(0) as a:
    {flush}
    with slice(1) as b: {flush}; b.set(n_end=1)
    function()
    {flush}
    a.set(n_end=0)
with slice(3) as s: {flush}; s.set(n_end=3)
''')
    s = check(t, 4)
    assert len({x["track_id"] for x in s.values()}) == 1
    assert [t.parent(s[1]), t.parent(s[2]), t.parent(t.one("function")), t.parent(s[3])] == ["s0", "function", "s0", None]


def test_a_task_keeps_its_own_row(py):
    t = py.trace('''
import asyncio
async def work(n):
    with stave.trace("outer", n=n):
        stave.flush(); await asyncio.sleep(0)
        with stave.trace("inner", n=n): stave.flush(); await asyncio.sleep(0)
async def main(): await asyncio.gather(*(work(n) for n in range(5)))
asyncio.run(main())
''')
    for inner in t.named("inner"):
        outer = t.by_id[inner["parent_id"]]
        assert outer["name"] == "outer" and outer["args"]["n"] == inner["args"]["n"]
        assert t.parent(outer) == "task work"
    assert len({s["track_id"] for s in t.named("inner")}) == 5


def test_slices_of_a_parent_are_not_ended_by_its_child(py):
    py.run(HEAD + '''
import os
with stave.open("t.pftrace"):
    stave.instant("first")
    with slice(0) as s:
        pid = os.fork()
        if pid == 0:
            with slice(1) as own: own.set(n_end=1)
            s.set(n_end=7); s.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(pid, 0)
        s.set(n_end=0)
''')
    check(py.read(), 2)


def test_thousands_open_at_once(py):
    """Thousands open at once on one row: not a matter of squares."""
    t = py.trace(HEAD + '''
all = [slice(n) for n in range(3000)]
for s in all: s.__enter__()
stave.flush()
for n, s in enumerate(all): leave(s, n)
''')
    check(t, 3000)
