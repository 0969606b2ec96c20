"""Waits unlike those of the other programs:

    varied.py imap | plugin | timeouts | storm [--healthy]

imap: each epoch takes files from multiprocessing.Pool.imap in order; one of them is cold and read in small pieces. plugin: a thread calls C
code that sleeps and keeps the interpreter lock. timeouts: a resolver over UDP drops every third question, and the client asks again after
its time limit. storm: another process syncs large writes on the disk on which each step syncs its own small one."""
import ctypes
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time

from truth import FOLDER, HEALTHY, Run, name_thread, now, spin

run = Run()


# ---- imap ----

SLOW = "shard-1.bin"


def read_shard(path, piece):
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, piece):
        pass
    os.close(fd)


def load_shard(name):
    path = f"{FOLDER}/{name}"
    end = now() + 80_000_000
    while name == SLOW and not HEALTHY and now() < end:  # however fast the disk is
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        while os.read(fd, 4096) and now() < end:
            pass
        os.close(fd)
    read_shard(path, 1 << 20)
    return name


def imap():
    names = [f"shard-{i}.bin" for i in range(4)]
    for name in names:
        with open(f"{FOLDER}/{name}", "wb") as file:
            file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
    with multiprocessing.Pool(2, name_thread, ("reader",)) as pool:
        list(pool.imap(load_shard, names))
        shards = (shard for _ in range(12) for shard in pool.imap(load_shard, names))
        for _ in run.loop(48):
            with run.measure("data"):
                next(shards)
            spin(0.01)
    if HEALTHY:
        run.allow("data pipe lock", run.ns["data"])
    else:
        run.cause("slow_file data", run.ns["data"], path=SLOW)


# ---- plugin ----

def call_plugin():
    ctypes.PyDLL(None).usleep(25000)  # PyDLL keeps the lock


def plugin():
    done = []

    def work():
        name_thread("plugin")
        while not done:
            time.sleep(0.01)
            if not HEALTHY:
                call_plugin()

    thread = threading.Thread(target=work)
    thread.start()
    for _ in run.loop(40):
        spin(0.015)
    done.append(1)
    thread.join()
    if not HEALTHY:
        run.cause("gil", run.waited(), name="plugin", function=["call_plugin", "work"])


# ---- timeouts ----

def resolve(server):
    name_thread("resolver")
    signal.alarm(120)
    for n in range(1 << 20):
        question, who = server.recvfrom(64)
        if HEALTHY or n % 3:
            server.sendto(question, who)


def ask(client, number):
    while True:
        client.send(b"%d" % number)
        try:
            while int(client.recv(64)) != number:
                pass
            return
        except TimeoutError:
            pass


def timeouts():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        resolve(server)
        os._exit(0)
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(server.getsockname())
    client.settimeout(0.05)
    server.close()
    for i in run.loop(45):
        spin(0.008)
        with run.measure("ask"):
            ask(client, i)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if HEALTHY:
        run.allow("peer", run.ns["ask"])
    else:
        run.cause("sleep peer", run.ns["ask"], {"name": "resolver"}, {"function": "ask"})


# ---- storm ----

def compact():
    name_thread("compactor")
    signal.alarm(120)
    block = os.urandom(4 << 20)
    fd = os.open(f"{FOLDER}/compacted.bin", os.O_RDWR | os.O_CREAT)
    while True:
        os.pwrite(fd, block, 0)
        if not HEALTHY:
            os.fsync(fd)
        time.sleep(0.001 if not HEALTHY else 0.02)


def storm():
    child = os.fork()
    if child == 0:
        compact()
    wal = os.open(f"{FOLDER}/wal.log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for _ in run.loop(40):
        spin(0.004 if not HEALTHY else 0.02)
        with run.measure("disk"):
            for _ in range(4):
                os.write(wal, b"x" * 4096)
                if not HEALTHY:
                    os.fsync(wal)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not HEALTHY:
        run.cause("disk checkpoint", run.ns["disk"], path="wal.log")


{"imap": imap, "plugin": plugin, "timeouts": timeouts, "storm": storm}[sys.argv[1]]()
run.write()
