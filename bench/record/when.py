#!/usr/bin/env python3
"""Time from what makes a condition of `stave record --when` true to the saved file, and to the sentence of `stave explain` on standard output.

    when.py STAVE BUILD FOLDER ROUNDS

Each case is a program that does something when a file appears; the cause is so long after that. Prints `NAME SECONDS s`, the worst of the rounds, with
--tail 0s: the file comes that much later with --tail. Exits with 1 when a case saved nothing. Called by bench/run."""

import os
import shutil
import subprocess
import sys
import threading
import time

STAVE, BUILD, FOLDER, ROUNDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
PACED = BUILD + "/tests/stress/paced"
PATIENCE_S = 20


def paced(*words):
    return [PACED, "step=20*10", "load=20*10", "until=go", *words, "until=end"]


# name, condition, command, seconds from `go` to the cause
CASES = [
    ("step", "step > 3x median", paced("step=600"), 0.06),
    ("absent", "no step for 4s", paced("step=20"), 4.02),
    ("slice", "slice 'load*' > 200ms", paced("load=400"), 0.2),
    ("counter", "counter 'queue' > 10", paced("queue=11"), 0),
    ("rate", "rate 'load*' > 20/s over 1s", paced("load=10*100"), 0.25),
    ("exit", "exit == 5", ["sh", "-c", f"{PACED} until=go exit=5; {PACED} until=end"], 0),
    ("signal", "signal SEGV", ["sh", "-c", f"{PACED} until=go kill=11; {PACED} until=end"], 0),
    ("log", "log app.log ~ 'CUDA error'", paced(), 0),
]


class Reader(threading.Thread):
    """The moment of the first line that `is_it` takes; all lines are kept."""

    def __init__(self, stream, is_it):
        super().__init__(daemon=True)
        self.stream, self.is_it, self.found, self.lines = stream, is_it, threading.Event(), []
        self.at = None
        self.start()

    def run(self):
        for line in self.stream:
            self.lines.append(line)
            if self.at is None and self.is_it(line):
                self.at = time.monotonic()
                self.found.set()


def wait_for(path):
    end = time.monotonic() + PATIENCE_S
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.005)


def measure(name, condition, command, after_s):
    folder = f"{FOLDER}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    open(folder + "/app.log", "w").close()
    command = [STAVE, "record", "--always", "--no-summary", "--explain", "--tail", "0s", "--pause", "60min", "--when", condition, "-o", "hit.pftrace", "--"] + command
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        saved = Reader(p.stderr, lambda line: "saved hit-" in line)
        said = Reader(p.stdout, lambda line: line.startswith("  "))
        wait_for(folder + "/hit.pftrace.part")
        time.sleep(2)  # the steps before, of which there is a median
        with open(folder + "/app.log", "a") as log:
            cause = time.monotonic() + after_s
            open(folder + "/go", "w").close()
            log.write("CUDA error: out of memory\n" if name == "log" else "")
        saved.found.wait(PATIENCE_S)
        said.found.wait(PATIENCE_S if saved.at else 0)
        open(folder + "/end", "w").close()
        p.wait()
    if not saved.at or not said.at:
        print(f"when.py: {name}: nothing was saved or said:\n{''.join(saved.lines + said.lines)}", file=sys.stderr)
        return None
    return saved.at - cause, said.at - cause


def main():
    bad = False
    for name, condition, command, after_s in CASES:
        rounds = [r for r in (measure(name, condition, command, after_s) for _ in range(ROUNDS)) if r]
        bad |= len(rounds) < ROUNDS
        for i, what in enumerate(("file", "sentence")):
            if rounds:
                print(f"when_{name}_{what} {max(r[i] for r in rounds):.2f} s", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
