"""A checkpoint thread copies and writes the weights under the lock that the steps need."""
import os
import threading

from truth import FOLDER, HEALTHY, Run, name_thread, now, spin

lock, asked, held, done = threading.Lock(), threading.Event(), threading.Event(), False
weights = os.urandom(4 << 20)


def saver():
    name_thread("saver")
    while True:
        asked.wait()
        asked.clear()
        if done:
            return
        save()


def save():
    if HEALTHY:
        held.set()
        return write(weights)
    with lock:
        held.set()
        write(weights)


def write(data):
    fd = os.open(f"{FOLDER}/weights.bin", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    end = now() + 60_000_000  # however fast the disk is
    while now() < end:
        os.write(fd, data)
        os.fsync(fd)
    os.close(fd)


thread = threading.Thread(target=saver)
thread.start()
run = Run()
for i in run.loop(60):
    if i % 4 == 0 and (i == 0 or not HEALTHY):
        held.clear()
        asked.set()
        held.wait()
    with run.measure("lock"):
        lock.acquire()
    spin(0.02)
    lock.release()
done = True
asked.set()
thread.join()
if not HEALTHY:
    run.cause("lock", run.ns["lock"], name="saver", function=["save", "write"],
              file="checkpoint_thread.py")
run.write()
