"""A trainer that takes batches from forked loaders through pipes, in order, as PyTorch's DataLoader does.

    loaders.py CASE
    slow_file     one file is cold and read in small pieces; all others are warm
    cold          all files are cold in the first epoch, warm in the others
    small_files   a batch is many tiny files
    small_reads   files are read in pieces of 256 bytes
    few           one loader, which decodes longer than the trainer computes
    robbed        one loader, on a CPU that another process uses, too (thief.py beside it; WHY_BESIDE is its pid)
    slow_worker   new loaders for each epoch; the second of each is slow
    ok            enough loaders: healthy
    warm          all files are warm: the healthy twin of cold"""
import fcntl
import os
import struct
import sys

from truth import FOLDER, Run, mark, name_thread, now, spin

CASE = sys.argv[1]
UNMARKED = "--unmarked" in sys.argv
PASSES = CASE in ("cold", "warm")  # an epoch reads each file once
FILES, PER_BATCH, EPOCHS, BATCHES = 48 if PASSES else 16, 4, 4, 12
SIZE = 2 << 20 if PASSES else 1 << 20
LOADERS = 1 if CASE in ("few", "small_files", "small_reads", "cold", "warm", "robbed") else 2
TINY = 3000  # files of a batch of small_files
COMPUTE = {"small_files": 0.008, "small_reads": 0.008, "few": 0.008, "robbed": 0.008, "cold": 0.01,
           "warm": 0.01}.get(CASE, 0.02)
SLOW = "part-13.bin"


def write_files():
    for i in range(FILES):
        with open(f"{FOLDER}/part-{i:02}.bin", "wb") as file:
            file.write(os.urandom(SIZE))
            file.flush()
            os.fsync(file.fileno())
    if CASE == "small_files":
        os.mkdir(f"{FOLDER}/tiny")
        for i in range(TINY):
            with open(f"{FOLDER}/tiny/{i}.txt", "wb") as file:
                file.write(b"label")


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def read_file(path, piece, random=False):
    fd = os.open(path, os.O_RDONLY)
    if random:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    while os.read(fd, piece):
        pass
    os.close(fd)


def read_slow(path):
    end = now() + 120_000_000  # however fast the disk is
    while now() < end:
        evict(path)
        read_file(path, 4096, True)


def read_small_files():
    for i in range(TINY):
        path = f"{FOLDER}/tiny/{i}.txt"
        os.stat(path)
        fd = os.open(path, os.O_RDONLY)
        os.read(fd, 64)
        os.close(fd)


def decode(worker):
    spin(0.025 if CASE == "few" else 0.005 if CASE == "robbed" else 0.09 if CASE == "slow_worker" and worker == 1 else 0.003)


def load_batch(worker, batch):
    if CASE == "small_files":
        read_small_files()
        return
    for i in range(PER_BATCH):
        name = f"part-{(batch * PER_BATCH + i) % FILES:02}.bin"
        slow = CASE == "slow_file" and name == SLOW
        if slow:
            read_slow(f"{FOLDER}/{name}")
            continue
        small = 256 if CASE == "small_reads" and i < 2 else SIZE
        read_file(f"{FOLDER}/{name}", 16384 if PASSES else small, PASSES)
    decode(worker)


def start_loader(worker, batches):
    source, sink = os.pipe()
    fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)  # one batch
    pid = os.fork()
    if pid == 0:
        name_thread(f"loader{worker}")
        os.close(source)
        if CASE == "robbed":
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        for batch in batches:
            load_batch(worker, batch)
            os.write(sink, struct.pack("<q", batch) * 512)
        os._exit(0)
    os.close(sink)
    return pid, source


def epochs():
    """Batches in order: the loaders of an epoch are forked for it."""
    for epoch in range(EPOCHS):
        if PASSES:
            for i in range(FILES):
                path = f"{FOLDER}/part-{i:02}.bin"
                if CASE == "cold" and epoch == 0:
                    evict(path)
                elif epoch == 0:
                    read_file(path, SIZE)
        first = epoch * BATCHES
        loaders = [start_loader(w, range(first + w, first + BATCHES, LOADERS))
                   for w in range(LOADERS)]
        pids.append([pid for pid, _ in loaders])
        for batch in range(BATCHES):
            yield loaders[batch % LOADERS][1]
        for pid, source in loaders:
            os.close(source)
            os.waitpid(pid, 0)


def main():
    write_files()
    run, batches, early = Run(), None, 0
    pipes = epochs()
    for step in run.loop(EPOCHS * BATCHES, marked=not UNMARKED):
        begin = now()
        with mark("wait for data", "dataloader"):
            pipe = next(pipes)
            data = b""
            while len(data) < 4096:
                data += os.read(pipe, 4096 - len(data))
        waited = now() - begin
        run.ns["data"] = run.ns.get("data", 0) + waited
        early += waited if step < BATCHES else 0
        with mark("forward"):
            spin(COMPUTE)
    for _ in pipes:
        pass
    state(run, run.ns["data"], early)
    run.write()


def state(run, data, early):
    loader = {"pid": [p for epoch in pids for p in epoch]}
    if CASE == "slow_file":
        run.cause("slow_file data", data, path=SLOW)
    elif CASE == "cold":
        run.cause("cold_cache", early, {"name": "loader0"}, {"path": os.path.basename(FOLDER)},
                  loader)
    elif CASE == "small_files":
        run.cause("small_files", data, {"path": "tiny"}, loader, name="loader0")
    elif CASE == "small_reads":
        run.cause("small_reads", data, {"name": "loader0"}, loader)
    elif CASE == "few":
        run.cause("too_few_loaders data", data, loader, name="loader0")
    elif CASE == "robbed":
        run.cause("cpu", data, {"name": "thief"}, pid=int(os.environ["WHY_BESIDE"]))
        run.allow("data", data)  # all that is known without states
    elif CASE == "slow_worker":
        run.cause("slow_worker data", data, {"pid": [e[1] for e in pids]}, name="loader1")
    else:
        run.allow("data", data)


pids = []
main()
