"""A thread holds the lock that each step needs, and sleeps meanwhile. --healthy: it sleeps without it."""
import threading
import time

from truth import HEALTHY, Run, name_thread, spin

lock, asked, done = threading.Lock(), threading.Event(), False


def locker():
    name_thread("locker")
    while not done:
        asked.wait()
        asked.clear()
        if HEALTHY:
            time.sleep(0.02)
        else:
            hold_asleep()


def hold_asleep():
    with lock:
        held.set()
        time.sleep(0.035)


held = threading.Event()
thread = threading.Thread(target=locker)
thread.start()
run = Run()
for i in run.loop(40):
    held.clear()
    asked.set()
    if not HEALTHY:
        held.wait()
    spin(0.01 if not HEALTHY else 0.04)
    with run.measure("lock"):
        lock.acquire()
    lock.release()
done = True
asked.set()
thread.join()
if not HEALTHY:
    run.cause("lock", run.ns["lock"], name="locker", function="hold_asleep", file="lock_sleeper.py")
run.write()
