"""Traces of a device and the states of the threads that feed it, as `stave record` with a profiler's events has them: gpu_waits.py CASE. Nothing
runs; the truth follows from what is written. In each round the thread `engine` waits, then launches a kernel; the steps are those of another thread
that computes all the time (with `same`: of `engine` itself), so that only the device shows what the wait costs.

    lock     it waits for a lock that a saver holds while it writes a checkpoint
    gil      it waits for the interpreter lock, which a thread of pure Python has
    disk     it reads an index from the disk
    cpu      it could run, and another process has its CPU
    queue    it waits for what a thread of its process makes
    same     as lock, and the steps are its own
    hidden   as lock, but the device has enough to do meanwhile
    ok       it hardly waits"""
import json
import os
import sys

CASE = sys.argv[1]
ROUNDS, WAIT, KERNEL, LAUNCH = 40, 20.0, 30.0, 0.2  # ms
TAKES = "pthread_cond_wait" if CASE == "queue" else "acquire"
lines, tracks = [], []
number = 0


def track(kind, parent=0, **more):
    global number
    number += 1
    rest = "".join(f' {k}="{v}"' if isinstance(v, str) else f" {k}={v}" for k, v in more.items())
    tracks.append(f"track #{number} {kind} uuid=0x{number:x}{f' parent=#{parent}' if parent else ''}{rest}")
    return number


def seconds(ms):
    ns = round(ms * 1e6)
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def event(track, at, name, cat, dur=None, args=""):
    what = "instant" if dur is None else "slice"
    length = "" if dur is None else f" dur={seconds(dur)}"
    lines.append((at, f'{seconds(at)} {what} #{track} "{name}" cat="{cat}"{length} {{{args}}}'))


class Thread:
    def __init__(self, process, pid, tid, name):
        self.row, self.tid = track("thread", process, pid=pid, tid=tid, name=name), tid
        self.states, self.calls = track("custom", self.row, name="state"), track("custom", self.row, name="system calls")
        self.waits = track("custom", self.row, name="off CPU")

    def state(self, at, dur, name="Running", args=""):
        event(self.states, at, name, "thread_state", dur, args)

    def wait(self, at, dur, reason, by, where, released, lock):
        """Sleeps until `by` ends it, and is woken at once."""
        self.state(at, dur - 0.02, "Sleeping", f'reason="{reason}"')
        self.state(at + dur - 0.02, 0.02, "Runnable", f'waker_tid={by.tid} waker="{released}"')
        event(self.calls, at, "futex", "syscall", dur)
        event(self.waits, at, reason, "offcpu_sample", None,
              f'dur={round((dur - 0.02) * 1e6)} reason="{reason}" {lock} waker_tid={by.tid} waker="{released}" '
              f'waker_stack=["run" "{where}" "release"] @stack["main" "feed (engine.py:12)" "{TAKES}"]')


process = track("process", pid=50, name="serve.py")
main = Thread(process, 50, 50, "serve.py")
engine = Thread(process, 50, 51, "engine")
other = Thread(process, 50, 52, {"gil": "tokenizer", "queue": "sampler"}.get(CASE, "saver"))
device = track("process", pid=0, name="GPU 0")
stream = track("thread", device, pid=0, tid=7, name="stream 7")
wait = 0.5 if CASE == "ok" else WAIT
ahead = wait + LAUNCH if CASE == "hidden" else 0  # the kernel before is that much longer
at, busy = 1.0, 0.0
begin = at
for i in range(ROUNDS):
    marked = engine if CASE == "same" else main
    if CASE in ("lock", "same", "hidden"):
        engine.wait(at, wait, "lock", other, "save (train.py:44)", "saver", 'lock=4096 lock_name="table_lock"')
        other.state(at, wait, "Blocked on I/O")
        event(other.calls, at, "write", "syscall", wait, 'fd=5 path="/ckpt/w.bin" bytes=16777216')
    elif CASE == "gil":
        engine.wait(at, wait, "gil", other, "count (words.py:7)", "tokenizer", "lock=8192")
        other.state(at, wait)
    elif CASE == "queue":
        engine.wait(at, wait, "lock", other, "sample (sample.py:9)", "sampler", 'lock=12288')
        other.state(at, wait)
    elif CASE == "disk":
        engine.state(at, wait, "Blocked on I/O")
        event(engine.calls, at, "pread64", "syscall", wait, 'fd=6 path="/data/index.bin" bytes=4194304')
    elif CASE == "cpu":
        engine.state(at, wait, "Preempted")
    else:
        engine.state(at, wait)
    if CASE in ("disk", "cpu", "ok"):
        other.state(at, wait, "Sleeping")
    other.state(at + wait, KERNEL + LAUNCH, "Sleeping")
    engine.state(at + wait, KERNEL + LAUNCH)
    main.state(at, wait + KERNEL + LAUNCH)
    event(marked.row, at, "step", "step", wait + KERNEL + LAUNCH, f"step={i}")
    event(engine.row, at + wait, "cudaLaunchKernel", "cuda_runtime", LAUNCH, f"correlation={i + 1}")
    length = KERNEL + (ahead if i + 1 < ROUNDS else 0)
    event(stream, at + wait + LAUNCH, "gemm", "kernel", length, f"device=0 stream=7 correlation={i + 1}")
    busy += length
    at += wait + LAUNCH + KERNEL
if CASE == "cpu":
    event(engine.row, at, "CPU rival", "cpu_rival", None, f'rival="thief" rival_pid=77 rival_tid=77 dur={round(wait * ROUNDS * 1e6)} n={ROUNDS}')
    event(engine.row, at, "schedstat", "schedstat", None, f"run_ns={round(busy * 1e6)} delay_ns={round(wait * ROUNDS * 1e6)} switches={ROUNDS}")

path = os.environ["WHY_TRACE"] + ".txt"
with open(path, "w") as file:
    file.write('# stave text 1\nclock boottime\nmeta "writer" "stave record"\n' + "\n".join(tracks) + "\n" +
               "\n".join(line for _, line in sorted(lines, key=lambda x: x[0])) + "\n")
saver = {"name": "saver", "function": "save"}
words, culprit = {
    "lock": (["lock"], {**saver, "device": 0}), "same": (["lock"], {**saver, "device": 0}),
    "gil": (["gil"], {"name": "tokenizer", "function": "count", "device": 0}),
    "disk": (["disk"], {"path": "index.bin", "device": 0}), "cpu": (["cpu"], {"name": "thief", "device": 0}),
    "queue": (["data"], {"name": "sampler", "device": 0}),
}.get(CASE, (None, None))
wall = at - begin
truth = {"healthy": not words, "units": {"kind": "step", "n": ROUNDS, "marked": True}, "dur_ns": round(wall * 1e6), "noise": {}, "allowed": [],
         "causes": [{"cause": words, "share": round(wait / (wait + LAUNCH + KERNEL), 4), "culprit": [culprit]}] if words else [],
         "traces": [os.path.basename(path)]}
with open(os.environ["WHY_TRUTH"], "w") as file:
    json.dump(truth, file, indent=1)
