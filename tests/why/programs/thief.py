"""Computes on the last CPU until its input ends: runs beside the one it robs. Prints its pid first."""
import os
import select
import sys

from truth import name_thread, spin

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
name_thread("thief")
print(os.getpid(), flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    spin(0.01)
