"""A loop that nobody marked: each turn opens and reads a file and computes; with `slow` it waits for a process over a pipe, too."""
import os
import sys
import time

from truth import FOLDER, Run, name_thread, spin

SLOW, TURNS = sys.argv[1:2] == ["slow"], 60
for i in range(8):
    with open(f"{FOLDER}/part-{i}.bin", "wb") as file:
        file.write(bytes(1 << 18))


def tokenize():
    time.sleep(0.025)


ask, answer = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    name_thread("tokenizer")
    while os.read(ask[0], 1) == b"?":
        tokenize()
        os.write(answer[1], b"!")
    os._exit(0)
run = Run()
for i in run.loop(TURNS, kind="loop", marked=False):
    with open(f"{FOLDER}/part-{i % 8}.bin", "rb") as file:
        file.read()
    spin(0.015 if SLOW else 0.03)
    if SLOW:
        with run.measure("pipe"):
            os.write(ask[1], b"?")
            os.read(answer[0], 1)
os.write(ask[1], b".")
os.waitpid(pid, 0)
run.units["marked"] = False
if SLOW:
    run.cause("pipe", run.ns["pipe"], {"pid": pid}, name="tokenizer")
run.write()
