"""Each fifth step writes the weights and syncs them. --journal: each step appends lines to a journal and syncs each.
--healthy: written once, at the end, outside of the steps."""
import os
import sys

from truth import FOLDER, HEALTHY, Run, mark, now, spin

JOURNAL = "--journal" in sys.argv
weights = os.urandom(4 << 20)


def save(path):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    end = now() + 90_000_000  # however fast the disk is
    while now() < end:
        os.write(fd, weights)
        os.fsync(fd)
    os.close(fd)


def append(fd):
    end = now() + 8_000_000
    while now() < end:
        os.write(fd, b"a line\n" * 10)
        os.fsync(fd)


journal = os.open(f"{FOLDER}/journal.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
run = Run()
for i in run.loop(50 if not JOURNAL else 150):
    with mark("forward"):
        spin(0.015 if not JOURNAL else 0.005)
    if JOURNAL and not HEALTHY:
        with run.measure("disk"):
            append(journal)
    elif i % 5 == 4 and not HEALTHY:
        with run.measure("disk"):
            save(f"{FOLDER}/weights-last.bin")
if HEALTHY:
    save(f"{FOLDER}/weights-last.bin")
elif JOURNAL:
    run.cause("disk", run.ns["disk"], path="journal.log")
else:
    run.cause("checkpoint", run.ns["disk"], path="weights-last.bin")
run.write()
