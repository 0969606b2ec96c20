"""The step's own thread sleeps in a function of its own (a rate limit)."""
import time

from truth import HEALTHY, Run, spin


def throttle():
    time.sleep(0.03)


run = Run()
for i in run.loop(40):
    spin(0.02)
    if not HEALTHY:
        with run.measure("sleep"):
            throttle()
if not HEALTHY:
    run.cause("sleep", run.ns["sleep"], function="throttle", file="asleep.py")
run.write()
