"""Threads that compete for Python's interpreter lock. Each prints its number. They count CPU time: on a busy machine they compete as often."""
import threading
import time


def count_up(seconds, out):
    x, end = 0, time.thread_time() + seconds
    while time.thread_time() < end:
        x += 1
    out.append(threading.get_native_id())


lines = []
threads = [threading.Thread(target=count_up, args=(0.3, lines)) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(*lines, sep="\n")
