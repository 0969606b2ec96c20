"""A training loop in a group that may use a fraction of a CPU: the kernel holds it back. throttled.py [--healthy]"""
import os

from truth import HEALTHY, Run, now, spin

GROUP = f"/sys/fs/cgroup/cpu/why.{os.getpid()}"


def put(name, text):
    with open(f"{GROUP}/{name}", "w") as file:
        file.write(text)


os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
if not HEALTHY:
    os.mkdir(GROUP)
    put("cpu.cfs_period_us", "50000")
    put("cpu.cfs_quota_us", "20000")
    put("cgroup.procs", str(os.getpid()))
run = Run()
for i in run.loop(40):
    spin(0.02)
if not HEALTHY:
    held = dict(line.split() for line in open(f"{GROUP}/cpu.stat"))
    ns = int(held.get("throttled_time", 0))
    with open("/sys/fs/cgroup/cpu/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
    os.rmdir(GROUP)
    run.cause("cpu", ns, {"cgroup": os.path.basename(GROUP)})
    run.allow("cpu", run.wall)
run.write()
