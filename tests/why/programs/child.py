"""Each step waits for a program that it starts (unpack.c, given as the first word). --asleep: it sleeps. --healthy: it ends at once."""
import subprocess
import sys

from truth import HEALTHY, Run, spin

run = Run()
for i in run.loop(25):
    spin(0.02 if not HEALTHY else 0.05)
    with run.measure("child"):
        ms = "1" if HEALTHY else "40"
        subprocess.run([sys.argv[1], ms] + ["asleep"] * ("--asleep" in sys.argv), check=True)
if not HEALTHY:
    run.cause("child", run.ns["child"], name="unpack")
run.write()
