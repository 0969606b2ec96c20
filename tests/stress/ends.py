"""ends.py HOW PROGRESS [EVENTS]: as ends.c, one thread of Python: moments with a running number until the program ends in the way HOW."""
import mmap
import os
import signal
import sys

import stave

how, limit = sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else 0
with open(sys.argv[2], "w+b") as f:
    f.truncate(4096)
    progress = memoryview(mmap.mmap(f.fileno(), 4096)).cast("Q")


def end_well(sig, frame):
    sys.exit(7)


def numbers(n):
    while stave.enabled() and (n == 0 or progress[0] < n):
        stave.instant("n", thread=0, seq=progress[0])
        progress[0] += 1
        if n == 0 and progress[0] == 5000:
            if how == "hog":
                sys.exit(len([bytearray(os.urandom(1 << 10) * 1024) for _ in range(256)]))
            if how not in ("wait", "handler"):
                os.kill(os.getpid(), int(how.removeprefix("signal:")))
            if how == "handler":
                os.kill(os.getpid(), signal.SIGTERM)


if how == "handler":
    signal.signal(signal.SIGTERM, end_well)
numbers(limit)
if how == "exit":
    sys.exit(5)
if how == "raise":
    raise ValueError("as asked")
if how == "quit":
    os._exit(0)
if how == "abort":
    os.abort()
