"""Steps that only compute. --robbed: on a CPU that another process uses, too (thief.py beside it; WHY_BESIDE is its pid).
--crowd: on one CPU with three more threads of this program, which compute in C. --grows: each step keeps 6 MB. --unmarked: no marks."""
import os
import sys
import threading
import zlib

from truth import Run, mark, name_thread, spin

DATA = os.urandom(1 << 20)
done, kept = False, []


def burner():
    name_thread("burner")
    while not done:
        zlib.compress(DATA, 6)  # without the interpreter lock


threads = []
if "--robbed" in sys.argv or "--crowd" in sys.argv:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
if "--crowd" in sys.argv:
    threads = [threading.Thread(target=burner) for _ in range(3)]
    for t in threads:
        t.start()
run = Run()
for i in run.loop(60 if "--grows" in sys.argv else 30, marked="--unmarked" not in sys.argv):
    with mark("forward"):
        zlib.compress(DATA, 6)
        if not threads:
            spin(0.01)
    if "--grows" in sys.argv:
        kept.append(bytearray(os.urandom(1 << 20) * 6))
done = True
for t in threads:
    t.join()
if "--robbed" in sys.argv:
    run.cause("cpu", run.delay, {"name": "thief"}, pid=int(os.environ["WHY_BESIDE"]))
elif threads:
    run.cause("cpu", run.delay, name="burner")
elif "--grows" in sys.argv:
    run.cause("memory", 0, {"name": "compute.py"}, pid=os.getpid())
    run.causes[0]["ns"] = 0
run.write(**({"no_share": True} if "--grows" in sys.argv else {}))
