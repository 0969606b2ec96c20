"""delayed.py SECONDS RIVAL: computes in a thread with a name of its own until it has had a CPU for so long. Prints for each of its two threads: number,
what the kernel counted of it since this program runs (running, waiting for a CPU, in ns) and, for the one that computes, what process RIVAL had of a CPU meanwhile."""
import ctypes
import sys
import threading
import time


def counted(path):
    return [int(n) for n in open(f"/proc/{path}/schedstat").read().split()]


def own():
    return counted(f"self/task/{threading.get_native_id()}")


def report(rival_ns, before=(0, 0)):
    run, delay, _ = own()
    print(threading.get_native_id(), run - before[0], delay - before[1], rival_ns, flush=True)


first = own()  # what comes before may be from before the thread is followed


def compute():
    ctypes.CDLL(None).prctl(15, b"cruncher", 0, 0, 0)  # PR_SET_NAME
    before = counted(sys.argv[2])[0]
    end = time.thread_time() + float(sys.argv[1])
    while time.thread_time() < end:
        pass
    report(counted(sys.argv[2])[0] - before)


t = threading.Thread(target=compute)
t.start()
t.join()
report(0, first)
