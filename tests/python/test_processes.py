"""More than one process: fork, spawn, forkserver, pools, os.fork, os._exit. One trace, and nothing is lost."""
import pytest
from conftest import ALONE

WORK = '''
import multiprocessing, os, sys, stave
def work(n):
    with stave.trace("work", n=n):
        stave.instant("in worker", pid=os.getpid())
    return n
'''


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("how", ["process", "pool", "executor"])
def test_workers_are_in_the_trace_of_their_parent(py, method, how):
    body = {
        "process": '''
        workers = [context.Process(target=work, args=(n,)) for n in range(3)]
        [w.start() for w in workers]; [w.join() for w in workers]
        assert [w.exitcode for w in workers] == [0] * 3''',
        "pool": '''
        with context.Pool(2) as pool: assert pool.map(work, range(3)) == [0, 1, 2]
        pool.join()''',
        "executor": '''
        import concurrent.futures
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(work, range(3))) == [0, 1, 2]''',
    }[how]
    py.run(WORK + f'''
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with stave.open("t.pftrace"):
        stave.instant("in parent"){body}
''')
    assert py.files() == ["t.pftrace"]
    t = py.read()
    assert sorted(s["args"]["n"] for s in t.named("work")) == [0, 1, 2]
    assert len(t.ask("select distinct upid from process join thread using (upid) join thread_track using (utid) join slice on "
                     "slice.track_id = thread_track.id where slice.name = 'work'")) >= 1
    assert len(t.named("in parent")) == 1


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_forked_children_end_as_they_like(py, end):
    py.run(f'''
import os, sys, stave, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
with stave.open("t.pftrace"):
    children = []
    for n in range(4):
        pid = os.fork()
        if pid == 0:
            for i in range(100):
                with stave.trace("child", n=n, i=i): pass
            {end}
        children.append(pid)
    for pid in children: os.waitpid(pid, 0)
    stave.instant("parent")
''')
    assert py.files() == ["t.pftrace"]
    t = py.read()
    assert len(t.named("child")) == 400 and len(t.named("parent")) == 1


def test_fork_inside_a_slice(py):
    py.run('''
import os, stave
with stave.open("t.pftrace"):
    with stave.trace("outer"):
        pid = os.fork()
        if pid == 0:
            with stave.trace("inner"): pass
            os._exit(0)
        os.waitpid(pid, 0)
''')
    t = py.read()
    assert len(t.named("outer")) == 1 and len(t.named("inner")) == 1
    assert t.one("inner")["track_id"] != t.one("outer")["track_id"]


def test_own_files_with_the_pid_in_the_name(py):
    py.run('''
import os, stave
with stave.open("t.%p.pftrace"):
    stave.instant("parent")
    pid = os.fork()
    if pid == 0:
        stave.instant("child")
        os._exit(0)
    os.waitpid(pid, 0)
''')
    files = py.files()
    assert len(files) == 2
    assert sorted(py.read(f).names() for f in files) == [["child"], ["parent"]]


def test_environment_reaches_forked_workers(py):
    py.run(WORK + '''
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(4))
    stave.instant("parent")
''', env={"STAVE_OUT": "e.pftrace"})
    assert py.files() == ["e.pftrace"]
    assert len(py.read("e.pftrace").named("work")) == 4


def test_record_takes_every_process(py):
    out = py.run(WORK + '''
import subprocess
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        w = multiprocessing.get_context(method).Process(target=work, args=(method,))
        w.start(); w.join()
    subprocess.run([sys.executable, "-c", "import stave; stave.instant('other program')"], check=True)
    with stave.open("ignored.pftrace"): stave.instant("joined")
    print(sys.argv[1:], __name__)
''', command=["-c", ALONE, "record", "-o", "r.pftrace", "--", "prog.py", "-x", "y"])
    assert out.strip() == "['-x', 'y'] __main__"
    assert "r.pftrace" in py.stderr and "events" in py.stderr and "lost" not in py.stderr
    assert py.files() == ["r.pftrace"]
    t = py.read("r.pftrace")
    assert {s["args"]["n"] for s in t.named("work")} == {"fork", "spawn", "forkserver"}
    assert t.one("other program") and t.one("joined")


def test_many_threads_fork_while_tracing(py):
    py.run('''
import os, stave, sys, threading
sys.setswitchinterval(0.0005)   # the thread that forks waits for the others at each turn
stop = False
def noise():
    while not stop:
        with stave.trace("noise", a=1): pass
with stave.open("t.pftrace"):
    threads = [threading.Thread(target=noise) for _ in range(3)]
    [t.start() for t in threads]
    for n in range(20):
        pid = os.fork()
        if pid == 0:
            with stave.trace("child", n=n): pass
            os._exit(0)
        os.waitpid(pid, 0)
    stop = True
    [t.join() for t in threads]
''')
    found = py.ask("select int_value as n from slice join args using (arg_set_id) where name = 'child' and key = 'debug.n' order by n")
    assert [r["n"] for r in found] == list(range(20))
    assert py.count("noise") >= 20


def test_the_program_stave_record_takes_every_process_of_python(py):
    import subprocess
    import sys
    from conftest import NO_OUT, STAVE
    (py.folder / "prog.py").write_text(WORK + '''
import concurrent.futures, subprocess
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        w = context.Process(target=work, args=(method,)); w.start(); w.join()
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool: pool.submit(work, "pool " + method).result()
    if os.fork() == 0:
        work("fork and _exit")
        os._exit(0)
    os.wait()
    if os.fork() == 0:
        work("killed")
        os.kill(os.getpid(), 9)
    os.wait()
    subprocess.run([sys.executable, "-c", "import stave; stave.instant('other program')"], check=True)
    with stave.open("ignored.pftrace"): work("parent")
''')
    done = subprocess.run([STAVE, "record", "-o", "r.pftrace", "--", sys.executable, "prog.py"], cwd=py.folder, env=NO_OUT,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert py.files() == ["r.pftrace"]
    t = py.read("r.pftrace")
    methods = {"fork", "spawn", "forkserver"}
    assert {s["args"]["n"] for s in t.named("work")} == methods | {"pool " + m for m in methods} | {"fork and _exit", "killed", "parent"}
    assert t.one("other program")
