"""Chores that scripts do at each step:

    chores.py sqlite | tool | map | logs | gc | eval | http_and_db | ok

sqlite: a commit with its sync each step. tool: subprocess.run of a compressor. map: multiprocessing.Pool.map in which one item is slow.
logs: hundreds of log lines, flushed one by one. gc: objects in cycles and a full collection (computing, nothing to find).
eval: each tenth step evaluates, which reads a file that is not cached. ok: each chore, but cheap."""
import gc
import logging
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import time

from truth import FOLDER, Run, mark, name_thread, now, spin

HOW = sys.argv[1]
RUN = Run()


def commit_steps():
    db = sqlite3.connect(f"{FOLDER}/metrics.db")
    db.execute("pragma synchronous=full")
    db.execute("create table m(step int, loss real)")
    db.commit()
    for i in RUN.loop(60):
        spin(0.002)
        with RUN.measure("disk"):
            for k in range(3):
                db.execute("insert into m values(?, ?)", (i, 0.5))
                db.commit()
    RUN.cause("disk checkpoint", RUN.ns["disk"], {"path": "metrics.db"}, {"path": "metrics.db-journal"})
    RUN.write()


def tool_steps():
    path = f"{FOLDER}/shard.bin"
    with open(path, "wb") as f:
        f.write(os.urandom(1500000))
    for i in RUN.loop(20):
        spin(0.01)
        with RUN.measure("child"):
            subprocess.run(["gzip", "-c", path], stdout=subprocess.PIPE, check=True)
    RUN.cause("child pipe", RUN.ns["child"], name="gzip")
    RUN.write()


def augment(i):
    if i == 3:
        time.sleep(0.045)
    else:
        spin(0.001)
    return i


def start_worker():
    name_thread("augmenter")


def map_steps():
    with multiprocessing.Pool(2, start_worker) as pool:
        pool.map(augment, range(2))
        for i in RUN.loop(25):
            spin(0.01)
            with RUN.measure("data"):
                pool.map(augment, range(6), chunksize=1)
    RUN.cause("data slow_worker too_few_loaders pipe", RUN.ns["data"], {"name": "augmenter"}, {"function": "augment"})
    RUN.write()


def log_steps():
    logging.basicConfig(filename=f"{FOLDER}/train.log", level=logging.INFO)
    log = logging.getLogger("train")
    for i in RUN.loop(30):
        spin(0.02)
        with RUN.measure("logs"):
            for k in range(200):
                log.info("step %d sample %d loss %f", i, k, 0.25)
    RUN.allow("disk checkpoint", RUN.ns["logs"])
    RUN.write()


class Node:
    pass


def gc_steps():
    keep = [[i] for i in range(200000)]
    for i in RUN.loop(30):
        for k in range(3000):
            a, b = Node(), Node()
            a.other, b.other = b, a
        gc.collect()
    RUN.units["kept"] = len(keep)
    RUN.write()


def read_slowly(path, ns):
    """Reads from the disk, not from the cache, for about this long."""
    end = now() + ns
    with open(path, "rb", buffering=0) as f:
        while now() < end:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            f.seek(0)
            while f.read(65536) and now() < end:
                pass


def eval_steps():
    path, slow, usual = f"{FOLDER}/holdout.bin", [], []
    with open(path, "wb") as f:
        f.write(os.urandom(8 << 20))
        os.fsync(f.fileno())
    for i in RUN.loop(60):
        begin = now()
        spin(0.015)
        if i % 10 == 9:
            with RUN.measure("disk"):
                read_slowly(path, 120000000)
        (slow if i % 10 == 9 else usual).append(now() - begin)
    RUN.cause("disk slow_file cold_cache", RUN.ns["disk"], path="holdout.bin")
    excess = sum(slow) / len(slow) - sum(usual) / len(usual)
    RUN.write(slow={"n": len(slow), "cause": ["disk", "slow_file", "cold_cache", "small_reads"], "culprit": [{"path": "holdout.bin"}],
                    "share": RUN.ns["disk"] / len(slow) / excess if excess else 0})


def ok_steps():
    db = sqlite3.connect(":memory:")
    db.execute("create table m(step int, loss real)")
    logging.basicConfig(filename=f"{FOLDER}/train.log", level=logging.INFO)
    for i in RUN.loop(30):
        spin(0.03)
        db.execute("insert into m values(?, ?)", (i, 0.5))
        db.commit()
        logging.info("step %d", i)
    RUN.write()


{"sqlite": commit_steps, "tool": tool_steps, "map": map_steps, "logs": log_steps, "gc": gc_steps,
 "eval": eval_steps, "ok": ok_steps}[HOW]()
