"""Allocates memory and maps a file; says what of each it has, in bytes, as the kernel counts it.

    memory.py FILE    prints: anonymous pages, pages of files
"""
import mmap
import os
import sys
import time


def resident(line):
    with open("/proc/self/status", encoding="ascii") as f:
        return int(next(x for x in f if x.startswith(line)).split()[1]) * 1024


def rounds():
    """How often the recorder has waited for something."""
    with open(f"/proc/{os.getppid()}/status", encoding="ascii") as f:
        return int(next(x for x in f if x.startswith("voluntary_ctxt_switches")).split()[1])


own = bytearray(48 << 20)
own[:] = b"x" * len(own)
with open(sys.argv[1], "w+b") as f:
    f.write(b"y" * (96 << 20))
    f.flush()
    data = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
sum(data[at] for at in range(0, len(data), 4096))
seen = rounds()
while rounds() < seen + 40:  # it is looked at in every third round or so
    time.sleep(0.01)
print(resident("RssAnon"), resident("RssFile"))
