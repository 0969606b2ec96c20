"""Two causes at once: two.py LOCK_MS DISK_MS SLEEP_MS. A thread holds a lock asleep, the step writes and syncs its weights, and sleeps."""
import os
import sys
import threading
import time

from truth import FOLDER, Run, name_thread, now, spin

LOCK, DISK, SLEEP = (int(ms) / 1000 for ms in sys.argv[1:4])
lock, asked, held, done = threading.Lock(), threading.Event(), threading.Event(), False
weights = os.urandom(1 << 20)


def locker():
    name_thread("sweeper")
    while True:
        asked.wait()
        asked.clear()
        if done:
            return
        sweep()


def sweep():
    with lock:
        held.set()
        time.sleep(LOCK)


def save(path):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    end = now() + DISK * 1e9
    while now() < end:
        os.write(fd, weights)
        os.fsync(fd)
    os.close(fd)


def rest():
    time.sleep(SLEEP)


thread = threading.Thread(target=locker)
thread.start()
run = Run()
for i in run.loop(30):
    spin(0.02)
    if LOCK:
        held.clear()
        asked.set()
        held.wait()
        with run.measure("lock"):
            lock.acquire()
        lock.release()
    if DISK:
        with run.measure("disk"):
            save(f"{FOLDER}/weights.bin")
    if SLEEP:
        with run.measure("sleep"):
            rest()
done = True
asked.set()
thread.join()
if LOCK:
    run.cause("lock", run.ns["lock"], name="sweeper", function="sweep", file="two.py")
if DISK:
    run.cause("checkpoint disk", run.ns["disk"], path="weights.bin")
if SLEEP:
    run.cause("sleep", run.ns["sleep"], function="rest", file="two.py")
run.write()
