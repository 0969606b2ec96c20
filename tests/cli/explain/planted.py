"""Traces with a planted cause, and clean ones, for stave explain: planted.py FOLDER [SEED]

A small simulation of training: loaders prepare batches ahead, a trainer takes them through a pipe and computes. Each scene changes one thing. The
figures here are of workloads, not of the analysis: nothing is shared with it. SEED varies all times, and how strong the cause is. Writes
FOLDER/CAUSE-N.txt, clean ones as clean-N.txt. Times are microseconds."""
import os
import random
import sys


SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 0


def strong(x):
    """How strong a planted cause is: as written, or with another SEED weaker or stronger."""
    return x * random.Random(SEED * 7919 + round(x)).uniform(0.6, 1.5) if SEED else x


class Trace:
    def __init__(self):
        self.lines, self.tracks, self.n = [], [], 0

    def track(self, kind, parent=0, **more):
        self.n += 1
        up = f" parent=#{parent}" if parent else ""
        rest = "".join(f' {k}="{v}"' if isinstance(v, str) else f" {k}={v}" for k, v in more.items())
        self.tracks.append(f"track #{self.n} {kind} uuid=0x{self.n:x}{up}{rest}")
        return self.n

    @staticmethod
    def time(us):
        ns = round(us * 1000)
        return f"{ns // 10**9}.{ns % 10**9:09d}"

    def slice(self, track, at, dur, name, cat, args=""):
        begin, end = round(at * 1000), round((at + dur) * 1000)  # what follows begins where this ends
        if end > begin:
            self.lines.append((begin, f'{self.time(at)} slice #{track} "{name}" cat="{cat}" dur={self.time((end - begin) / 1000)}{args and " {" + args + "}"}'))

    def instant(self, track, at, name, cat, args=""):
        self.lines.append((round(at * 1000), f'{self.time(at)} instant #{track} "{name}" cat="{cat}" {{{args}}}'))

    def counter(self, track, at, value):
        self.lines.append((round(at * 1000), f"{self.time(at)} counter #{track} {{{float(value)}}}"))

    def write(self, path):
        with open(path, "w") as f:
            f.write('# stave text 1\nclock boottime\nmeta "writer" "stave record"\n' + "\n".join(self.tracks) + "\n")
            f.write("\n".join(line for _, line in sorted(self.lines, key=lambda x: x[0])) + "\n")


class Thread:
    """A thread and its clock: running, waiting, calls."""

    def __init__(self, trace, process, pid, tid, at=1000.0, contention=0.0, rng=None):
        self.trace, self.pid, self.tid, self.at = trace, pid, tid, at
        self.track = trace.track("thread", process, pid=pid, tid=tid, name="python3")
        self.states = trace.track("custom", self.track, name="state")
        self.calls = trace.track("custom", self.track, name="system calls")
        self.contention, self.rng = contention, rng

    def state(self, name, dur, args=""):
        self.trace.slice(self.states, self.at, dur, name, "thread_state", args)
        self.at += dur

    def run(self, dur):
        """Computes; with contention another thread takes the CPU now and then."""
        if self.rng and self.rng.random() < 0.1:  # every machine does something else now and then
            self.state("Preempted", self.rng.uniform(50, 400))
        while self.contention and dur > 3000:
            self.state("Running", 3000)
            self.state("Preempted", 3000 * self.contention * self.rng.uniform(0.7, 1.3))
            dur -= 3000
        self.state("Running", dur)

    def wake(self, args):
        delay = 15 * (1 + 200 * self.contention)
        self.state("Runnable", delay, args)

    def sleep_until(self, until, waker=None, args=""):
        if until > self.at:
            self.state("Sleeping", until - self.at, args)
            self.wake(f'waker_tid={waker.tid} waker="python3"' if waker else "interrupt=1")

    def disk(self, dur):
        if dur > 0:
            self.state("Blocked on I/O", dur, "io_wait=1")
            self.wake("interrupt=1")

    def call(self, name, args, body):
        begin = self.at
        body()
        self.trace.slice(self.calls, begin, self.at - begin, name, "syscall", args)


class World:
    def __init__(self, seed, loaders=4, contention=0.0):
        self.rng = random.Random(seed + 1000 * SEED)
        self.trace = t = Trace()
        self.disks = t.track("custom", name="Disks")
        self.disk = t.track("custom", self.disks, name="nvme0n1")
        self.process = t.track("process", pid=100, name="python3")
        self.main = Thread(t, self.process, 100, 100, contention=contention, rng=self.rng)
        self.loaders = []
        self.main.run(2000)
        for i in range(loaders):
            pid = 200 + i
            process = t.track("process", pid=pid, name="python3")
            t.instant(self.main.calls, self.main.at, "fork", "process", f"child={pid}")
            self.loaders.append(Thread(t, process, pid, pid, self.main.at, contention, self.rng))
            self.main.run(300)
        self.sector = 8

    def about(self, x, spread=0.15):
        return x * self.rng.uniform(1 - spread, 1 + spread)

    def read(self, th, path, size, chunk, cost, disk=0.0):
        """Opens, reads and closes a file. disk: how long the first read waits for it."""
        self.fd = 9
        th.call("openat", f'fd=9 path="{path}" flags=0', lambda: th.state("Running", self.about(6)))
        done = 0
        while done < size:
            n = min(chunk, size - done)

            def body(first=done == 0):
                th.state("Running", self.about(cost))
                if first and disk:
                    begin = th.at
                    self.trace.instant(th.calls, begin, "add", "page_cache", f'path="{path}" offset=0 bytes={size}')
                    th.disk(disk)
                    self.sector += size // 512 + 64
                    self.trace.slice(self.disk, begin + 5, disk - 10, "read", "block", f'device="nvme0n1" sector={self.sector} bytes={size} pid={th.pid}')
                    th.state("Running", 10)
            th.call("read", f'fd=9 path="{path}" bytes={n} offset={done}', body)
            done += n
        th.call("close", f'fd=9 path="{path}"', lambda: th.state("Running", 2))


def train(w, steps=60, files=4, n_files=80, size=262144, chunk=262144, read_cost=120, decode=9000, compute=10000, ahead=2, marked=True,
          disk_of=lambda k, f: 0.0, decode_of=None, prepare=None, during=None):
    """Batch k is prepared by loader k mod n; disk_of(k, file): the disk's time of a reading; prepare(thread, k): instead of reading files."""
    n = len(w.loaders)
    taken, ready = {}, {}
    for k in range(steps):
        th = w.loaders[k % n]
        if k >= ahead * n:
            th.sleep_until(taken[k - ahead * n], w.main)
        if prepare:
            prepare(th, k)
        else:
            for i in range(files):
                f = (k * files + i) % n_files
                disk = disk_of(k, f) or (w.about(2500) if w.rng.random() < 0.02 else 0.0)
                w.read(th, f"/data/train/part-{f:04d}.bin", size, chunk, read_cost, disk)
        th.run(w.about(decode_of(k % n) if decode_of else decode))
        th.call("write", f'fd=5 path="pipe:[77]" bytes=4096', lambda: th.state("Running", 20))
        ready[k] = th.at
        begin = w.main.at

        def take():
            w.main.state("Running", 10)
            w.main.sleep_until(ready[k], th)
            w.main.state("Running", 30)
        w.main.call("read", 'fd=4 path="pipe:[77]" bytes=4096', take)
        taken[k] = w.main.at
        w.main.run(w.about(compute))
        if during:
            during(k)
        if marked:
            w.trace.slice(w.main.track, begin, w.main.at - begin, f"step {k}", "step")
    return w.trace


# ---- the scenes ----

def slow_file(v):
    w = World(10 + v, loaders=[4, 3, 4][v])
    slow, time = [17, 41, 5][v], [260000, 400000, 320000][v]
    return train(w, steps=[80, 60, 60][v], disk_of=lambda k, f: w.about(strong(time)) if f == slow else 0.0, marked=v != 1)


def cold_cache(v):
    w = World(20 + v, loaders=[4, 2, 4][v])
    steps, n_files = 60, [80, 60, 120][v]
    return train(w, steps=steps, n_files=n_files, disk_of=lambda k, f: w.about(strong([26000, 14000, 30000][v])) if k * 4 < n_files else 0.0, marked=v != 2)


def helpers(w, reason, hold, gap, steps, stated=True):
    """Threads of the trainer's process that take a lock in turn; the main thread waits for it several times a step."""
    others = [Thread(w.trace, w.process, 100, 110 + i, w.main.at) for i in range(3)]

    def during(k):
        for i in range(3):
            th = others[(k + i) % 3]
            th.sleep_until(w.main.at, w.main, f'reason="{reason}"' if stated else "")
            until = w.main.at + w.about(hold)
            th.run(until - th.at)
            args = f'reason="{reason}" lock=0x7f0000001000 holder_tid={th.tid}' if stated else ""
            w.main.sleep_until(until, th, args)
            w.main.run(w.about(gap))
    return train(w, steps=steps, during=during)


def lock(v):
    return helpers(World(30 + v), "lock", strong([3000, 1500, 4000][v]), 500, 50, stated=v != 2)


def gil(v):
    return helpers(World(40 + v), "gil", strong([2500, 5000][v]), 400, 50)


def slow_worker(v):
    w = World(50 + v, loaders=[4, 4, 6][v])
    slow = [2, 0, 5][v]
    return train(w, steps=72, decode_of=lambda i: strong([90000, 70000, 150000][v]) if i == slow else 9000, marked=v != 2)


def cpu(v):
    return train(World(60 + v, contention=strong([800, 500, 400][v]) / 1000), steps=50, marked=v != 1)


def small_reads(v):
    w = World(70 + v, loaders=2)
    return train(w, steps=30, files=3, n_files=90, size=[524288, 262144, 524288][v], chunk=[4096, 2048, 8192][v], read_cost=strong([90, 80, 150][v]), decode=3000, marked=v != 1)


def checkpoint(v):
    w = World(80 + v)
    every = [15, 20, 12][v]

    def during(k):
        if k % every != every - 1:
            return
        begin, path = w.main.at, ["/ckpt/model-%d.pt", "/out/checkpoint_%d.bin", "/scratch/run1/epoch%d.ckpt"][v] % k
        w.main.call("openat", f'fd=11 path="{path}" flags=577', lambda: w.main.state("Running", 30))
        for _ in range(20):
            def body():
                w.main.state("Running", 700)
                w.main.disk(w.about(strong([6000, 3000, 9000][v])))
                w.main.state("Running", 50)
            w.main.call("write", f'fd=11 path="{path}" bytes=4194304', body)
        w.main.call("fsync", f'fd=11 path="{path}"', lambda: (w.main.state("Running", 20), w.main.disk(w.about(90000))))
        if v == 0:
            w.trace.slice(w.main.track, begin, w.main.at - begin, "save_checkpoint", "phase")
    return train(w, steps=60, during=during, marked=v != 2)


def writing(kind):
    """Each fifth step writes 48 MiB: once to one file (files), to a file a time that nobody syncs (epochs), or renamed into place."""
    w = World(85)

    def during(k):
        if k % 5 != 4 or (kind == "files" and k > 4):
            return
        path = "/out/epoch-%d/weights.bin" % k if kind == "epochs" else "/out/data.bin"
        w.main.call("openat", f'fd=11 path="{path}" flags=577', lambda: w.main.state("Running", 30))
        for _ in range(12):
            w.main.call("write", f'fd=11 path="{path}" bytes=4194304', lambda: (w.main.state("Running", 700), w.main.disk(w.about(9000 if kind != "files" else 90000))))
        w.main.call("close", f'fd=11 path="{path}"', lambda: w.main.state("Running", 5))
        if kind == "renamed":
            w.main.call("rename", f'path="{path}" path2="/out/model.bin"', lambda: w.main.state("Running", 30))
    return train(w, steps=60, during=during)


def quota():
    """The thread's group has used up its quota for most of what it could have run."""
    w = World(65, contention=0.8)
    trace = train(w, steps=50)
    trace.instant(w.main.track, w.main.at, "CPU quota", "cpu_rival", 'rival="quota" cgroup="/pod/7" dur=900000000 n=40')
    return trace


def kineto(rng, gap, kernel, steps=12, per_step=60):
    """A profile of one process and one GPU: launches every `gap`, kernels of length `kernel`."""
    t = Trace()
    process = t.track("process", pid=300, name="python3")
    host = t.track("thread", process, pid=300, tid=300, name="python3")
    gpu = t.track("process", pid=0, name="GPU 0")
    stream = t.track("thread", gpu, pid=0, tid=7, name="stream 7")
    at, free, number = 1000.0, 0.0, 0
    for k in range(steps):
        begin = at
        for _ in range(per_step):
            number += 1
            t.slice(host, at, gap * 0.9, "aten::mm", "cpu_op")
            t.slice(host, at + gap * 0.3, min(6, gap * 0.4), "cudaLaunchKernel", "cuda_runtime", f"correlation={number}")
            start = max(at + gap * 0.3 + 4, free)
            free = start + kernel * rng.uniform(0.8, 1.2)
            t.slice(stream, start, free - start, "sgemm", "kernel", f"device=0 stream=7 correlation={number}")
            at += gap * rng.uniform(0.95, 1.05)
        if free > at:
            t.slice(host, at, free - at, "cudaDeviceSynchronize", "cuda_runtime")
            at = free + 3
        t.slice(host, begin, at - begin, f"ProfilerStep#{k}", "user_annotation")
    return t


def gpu_launch(v):
    return kineto(random.Random(90 + v + 1000 * SEED), gap=strong([60, 45][v]), kernel=[12, 9][v])


def memory(v):
    w = World(100 + v)
    used = w.trace.track("counter", w.process, name="memory", unit="bytes")

    def during(k):
        w.trace.counter(used, w.main.at, 2e9 + k * strong([40e6, 90e6][v]) + w.rng.uniform(-1, 1) * [150e6, 60e6][v])
    return train(w, steps=80, during=during)


def too_few_loaders(_):
    return train(World(110, loaders=2), steps=50, decode=strong(48000))


def straggler_rank(_):
    rng, t = random.Random(120 + 1000 * SEED), Trace()
    hosts = []
    for rank in range(4):
        process = t.track("process", pid=400 + rank, name="train")
        hosts.append(t.track("thread", process, pid=400 + rank, tid=400 + rank))
    at = [1000.0] * 4
    for k in range(60):
        for rank in range(4):
            work = (10000 + strong(4000) if rank == 2 else 10000) * rng.uniform(0.97, 1.03)
            t.slice(hosts[rank], at[rank], work, "forward", "cpu_op")
            at[rank] += work
        end = max(at) + 300
        for rank in range(4):
            t.slice(hosts[rank], at[rank], end - at[rank], "MPI_Allreduce", "collective", f'op="allreduce" group="world" seq={k} bytes=4096 group_size=4 rank={rank}')
            at[rank] = end
    return t


def small_files(_):
    w = World(130, loaders=2)

    def prepare(th, k):
        for i in range(60):
            path = f"/data/images/{k:03d}/{i:03d}.jpg"
            th.call("newfstatat", f'path="{path}"', lambda: th.state("Running", w.about(180)))
            th.call("openat", f'fd=9 path="{path}" flags=0', lambda: (th.state("Running", 40), th.disk(w.about(strong(260)))))
            th.call("read", f'fd=9 path="{path}" bytes=9000 offset=0', lambda: th.state("Running", w.about(14)))
            th.call("close", f'fd=9 path="{path}"', lambda: th.state("Running", w.about(25)))
    return train(w, steps=40, prepare=prepare, decode=2000)


def clean(v):
    if v == 3:
        return kineto(random.Random(203 + 1000 * SEED), gap=20, kernel=32)
    w = World(200 + v, loaders=[4, 3, 6, 0, 4][v])
    used = w.trace.track("counter", w.process, name="memory", unit="bytes")

    def during(k):
        w.trace.counter(used, w.main.at, 3e9 + w.rng.uniform(-1, 1) * 30e6)
    return train(w, steps=60, during=during, marked=v != 1, n_files=[80, 400, 60, 0, 120][v], compute=[10000, 14000, 8000, 0, 25000][v])


SCENES = [(slow_file, 3), (cold_cache, 3), (lock, 3), (gil, 2), (slow_worker, 3), (cpu, 3), (small_reads, 3), (checkpoint, 3), (gpu_launch, 2),
          (memory, 2), (too_few_loaders, 1), (straggler_rank, 1), (small_files, 1), (clean, 5)]

if __name__ == "__main__":
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for scene, n in SCENES:
        for v in range(n):
            scene(v).write(f"{folder}/{scene.__name__}-{v}.txt")
    os.makedirs(f"{folder}/more", exist_ok=True)
    for kind in ("files", "epochs", "renamed"):
        writing(kind).write(f"{folder}/more/{kind}.txt")
    quota().write(f"{folder}/more/quota.txt")
