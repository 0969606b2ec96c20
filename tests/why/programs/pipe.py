"""Each step reads what a process of its own program makes, through a pipe: it computes, or with --asleep sleeps. It reads no files.
--healthy: it is quicker than the steps."""
import fcntl
import os
import sys
import time

from truth import HEALTHY, Run, name_thread, spin

STEPS = 35


def make_noise():
    if "--asleep" in sys.argv:
        time.sleep(0.05)
    else:
        spin(0.002 if HEALTHY else 0.05)


source, sink = os.pipe()
fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)
pid = os.fork()
if pid == 0:
    name_thread("generator")
    for i in range(STEPS):
        make_noise()
        os.write(sink, bytes(4096))
    os._exit(0)
os.close(sink)
run = Run()
for i in run.loop(STEPS):
    with run.measure("pipe"):
        os.read(source, 4096)
    spin(0.02 if not HEALTHY else 0.04)
os.waitpid(pid, 0)
if not HEALTHY:
    run.cause("pipe", run.ns["pipe"], {"pid": pid}, name="generator")
run.write()
