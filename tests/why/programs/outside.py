"""What somebody from outside would plant: outside.py CASE

    database   a SQLite database that another process has locked
    shared     a multiprocessing.Lock that another process holds
    logging    the lock of a log handler, which another thread holds while it syncs
    listing    each step lists a folder of many files
    osync      each step writes to a file that was opened with O_SYNC
    busy       a pool of one thread is busy with somebody else's task
    executor   an event loop waits for a function in its executor
    event      a threading.Event that a slow thread sets
    rename     each step replaces a small file and syncs it and its folder
    stopped    another process stops this one and lets it go on
    healthy    logs, lists a small folder, uses an executor: nothing takes long"""
import asyncio
import concurrent.futures
import logging
import multiprocessing
import os
import signal
import sqlite3
import sys
import threading
import time

from truth import FOLDER, Run, name_thread, now, spin

HOW = sys.argv[1]
RUN = Run()
STEPS, WORK, LATE = 30, 0.01, 0.03


def path(name):
    return os.path.join(FOLDER, name)


def fork(name, work, *args):
    pid = os.fork()
    if pid == 0:
        name_thread(name)
        try:
            work(*args)
        finally:
            os._exit(0)
    return pid


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def thread(name, work):
    def run():
        name_thread(name)
        work()
    t = threading.Thread(target=run, daemon=True)
    t.start()
    return t


def hold_database(ready):
    db = sqlite3.connect(path("runs.db"), timeout=60, isolation_level=None)
    while True:
        db.execute("begin immediate")
        os.write(ready, b"x")
        time.sleep(LATE)
        db.execute("commit")
        time.sleep(0.004)


def write_row(db, i):
    db.execute("insert into t values (?)", (i,))


def database():
    db = sqlite3.connect(path("runs.db"), timeout=60, isolation_level=None)
    db.execute("pragma journal_mode = memory")
    db.execute("pragma synchronous = off")
    db.execute("create table t (i)")
    r, w = os.pipe()
    pid = fork("vacuum", hold_database, w)
    os.read(r, 1)
    for i in RUN.loop(STEPS):
        spin(WORK)
        with RUN.measure("lock"):
            write_row(db, i)
    end(pid)
    RUN.cause("lock sleep", RUN.ns["lock"], {"function": "write_row"}, {"name": "vacuum"})
    RUN.write()


def hold_shared(lock, ready):
    while True:
        with lock:
            os.write(ready, b"x")
            time.sleep(LATE)
        time.sleep(0.004)


def shared():
    lock = multiprocessing.Lock()
    r, w = os.pipe()
    pid = fork("evaluator", hold_shared, lock, w)
    os.read(r, 1)
    for i in RUN.loop(STEPS):
        spin(WORK)
        with RUN.measure("lock"):
            with lock:
                pass
    end(pid)
    RUN.cause("lock data", RUN.ns["lock"], name="evaluator")
    RUN.write()


class Syncs(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        if record.levelno >= logging.WARNING:
            self.sync_log()

    def sync_log(self):
        os.fsync(self.stream.fileno())
        time.sleep(LATE)


def hold_logging(log):
    while True:
        log.warning("the report of another thread")
        time.sleep(0.003)


def log_lock():
    log = logging.getLogger("train")
    log.addHandler(Syncs(path("train.log")))
    log.setLevel(logging.INFO)
    log.propagate = False
    thread("reporter", lambda: hold_logging(log))
    time.sleep(0.01)
    for i in RUN.loop(STEPS):
        spin(WORK)
        with RUN.measure("lock"):
            log.info("step %d", i)
    RUN.cause("lock", RUN.ns["lock"], name="reporter")
    RUN.write()


def list_folder(folder):
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def listing():
    os.mkdir(path("shards"))
    for i in range(4000):
        open(path(f"shards/{i}.bin"), "w").close()
    for i in RUN.loop(STEPS):
        spin(WORK)
        with RUN.measure("disk"):
            list_folder(path("shards"))
    RUN.cause("small_files disk", RUN.ns["disk"], path="shards")
    RUN.write(no_share=True)  # Python's own part of it computes


def append_synced(fd):
    os.write(fd, b"x" * 65536)


def osync():
    fd = os.open(path("events.log"), os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    for i in RUN.loop(STEPS):
        spin(0.004)
        with RUN.measure("disk"):
            for _ in range(4):
                append_synced(fd)
    RUN.cause("disk checkpoint", RUN.ns["disk"], path="events.log")
    RUN.write()


def compact(seconds):
    name_thread("storage")
    time.sleep(seconds)


def busy():
    pool = concurrent.futures.ThreadPoolExecutor(1)
    for i in RUN.loop(STEPS):
        pool.submit(compact, LATE)
        spin(0.005)
        with RUN.measure("data"):
            pool.submit(len, "abc").result()
    RUN.cause("data lock", RUN.ns["data"], name="storage", function="compact")
    RUN.write()


def parse_slowly():
    name_thread("parser")
    time.sleep(LATE)


def executor():
    async def main():
        loop = asyncio.get_running_loop()
        pool = concurrent.futures.ThreadPoolExecutor(1)
        for i in RUN.loop(STEPS):
            spin(WORK)
            with RUN.measure("data"):
                await loop.run_in_executor(pool, parse_slowly)
    asyncio.run(main())
    RUN.cause("data", RUN.ns["data"], name="parser")
    RUN.write()


def event():
    asked, made = threading.Event(), threading.Event()

    def make():
        while True:
            asked.wait()
            asked.clear()
            time.sleep(LATE)
            made.set()

    thread("sampler", make)
    for i in RUN.loop(STEPS):
        spin(WORK)
        with RUN.measure("data"):
            asked.set()
            made.wait()
            made.clear()
    RUN.cause("data lock", RUN.ns["data"], name="sampler")
    RUN.write()


def replace_file(i):
    with open(path("state.tmp"), "w") as file:
        file.write(str(i))
        file.flush()
        os.fsync(file.fileno())
    os.rename(path("state.tmp"), path("state.json"))
    folder = os.open(FOLDER, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def rename():
    for i in RUN.loop(STEPS):
        spin(0.003)
        with RUN.measure("disk"):
            replace_file(i)
    RUN.cause("disk", RUN.ns["disk"], {"function": "replace_file"}, {"path": "state.tmp"})
    RUN.write()


def stop_and_go(pid):
    while True:
        time.sleep(0.02)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(LATE)
        os.kill(pid, signal.SIGCONT)


def stopped():
    pid = fork("debugger", stop_and_go, os.getpid())
    for i in RUN.loop(STEPS):
        spin(0.02)
    end(pid)
    RUN.cause("stopped", RUN.wall - RUN.cpu - RUN.delay, {"name": "debugger"}, {"name": ""})
    RUN.write(no_share=True)


def healthy():
    log = logging.getLogger("train")
    log.addHandler(logging.FileHandler(path("train.log")))
    log.setLevel(logging.INFO)
    log.propagate = False
    pool = concurrent.futures.ThreadPoolExecutor(2)
    for i in RUN.loop(STEPS):
        spin(0.03)
        log.info("step %d", i)
        list_folder(FOLDER)
        pool.submit(len, "abc").result()
    RUN.write()


{"database": database, "shared": shared, "logging": log_lock, "listing": listing, "osync": osync, "busy": busy, "executor": executor,
 "event": event, "rename": rename, "stopped": stopped, "healthy": healthy}[HOW]()
