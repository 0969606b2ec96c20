"""Two threads work ahead, one for the even steps and one for the odd ones; the first is slower. Without it the steps wait for the second:
less is gained than was waited. The program then runs without the first one's work, and measures what it gains. --locks: two threads hold
a lock in turn instead, and each step needs it after both."""
import queue
import sys
import threading
import time

from truth import Run, name_thread, now, spin

LOCKS, N = "--locks" in sys.argv, 40
run = Run()


def produce(name, seconds, items, n):
    name_thread(name)
    for _ in range(n):
        make(seconds)
        items.put(1)


def make(seconds):
    time.sleep(seconds)


def one_run(seconds, turns):
    """Two producers; `turns` yields the steps. Returns how long a step takes."""
    items = [queue.Queue(2), queue.Queue(2)]
    threads = [threading.Thread(target=produce, args=(name, s, q, N // 2))
               for name, s, q in zip(("audio", "video"), seconds, items)]
    for t in threads:
        t.start()
    begin = now()
    for i in turns:
        with run.measure(("audio", "video")[i % 2]):
            items[i % 2].get()
        spin(0.004)
    took = now() - begin
    for t in threads:
        t.join()
    return took / N


lock = threading.Lock()


def hold(seconds):
    with lock:
        time.sleep(seconds)


def holder(name, seconds, begin, held, n):
    name_thread(name)
    for _ in range(n):
        begin.acquire()
        held.release()
        hold(seconds)


def locked_run(seconds, turns):
    begins = [threading.Semaphore(0), threading.Semaphore(0)]
    held = threading.Semaphore(0)
    threads = [threading.Thread(target=holder, args=(name, s, b, held, N))
               for name, s, b in zip(("indexer", "cleaner"), seconds, begins)]
    for t in threads:
        t.start()
    begin = now()
    for i in turns:
        for b in begins:
            b.release()
            held.acquire()
        time.sleep(0.002)  # both ask for the lock before the step does
        with run.measure("lock"):
            with lock:
                pass
        spin(0.004)
    took = now() - begin
    for t in threads:
        t.join()
    return took / N


times = (0.03, 0.018)
work = locked_run if LOCKS else one_run
measured = work(times, run.loop(N))
waited = dict(run.ns)
without = work((0, times[1]), range(N))
gain = {"without": "thread:indexer" if LOCKS else "thread:audio", "gain": 1 - without / measured}
if LOCKS:
    run.cause("lock", waited["lock"], {"name": "indexer", "function": "hold"}, {"name": "cleaner", "function": "hold"})
    run.allow("sleep", run.wall * 0.1)
else:
    run.cause("data lock", waited["audio"], {"name": "audio"})
    run.allow("data lock", run.wall)
run.write(whatif=[gain])
