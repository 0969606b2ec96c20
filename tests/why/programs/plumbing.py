"""What programs hang on besides locks and disks:

    plumbing.py reader | sender | mpqueue | backlog | workers | both | gcpause

reader: each step prints to a pipe whose reader is slow. sender: each step uploads over a socket whose receiver is slow. mpqueue: items of a
multiprocessing.Queue that a process computes. backlog: connecting to a server that does not accept takes a second. workers: nobody marks
anything; two threads need one lock, the main thread joins them. both: an HTTP-like server and a database file. gcpause: each tenth step
collects a large heap of garbage, in a slice of its own."""
import gc
import multiprocessing
import os
import socket
import sys
import threading
import time

from truth import FOLDER, Run, mark, name_thread, now, spin

HOW = sys.argv[1]
RUN = Run()


def fork(name, work, *args):
    pid = os.fork()
    if pid == 0:
        name_thread(name)
        try:
            work(*args)
        finally:
            os._exit(0)
    return pid


def read_slowly(fd, write_end):
    os.close(write_end)
    while os.read(fd, 65536):
        time.sleep(0.03)


def reader_steps():
    r, w = os.pipe()
    pid = fork("indexer", read_slowly, r, w)
    os.close(r)
    for i in RUN.loop(30):
        spin(0.01)
        with RUN.measure("pipe"):
            os.write(w, b"x" * 65536)
    os.close(w)
    os.waitpid(pid, 0)
    RUN.cause("pipe", RUN.ns["pipe"], name="indexer")
    RUN.write(words="reads what it wrote")


def receive_slowly(listener):
    connection = listener.accept()[0]
    while connection.recv(65536):
        time.sleep(0.004)


def sender_steps():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    pid = fork("archive", receive_slowly, listener)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    client.connect(listener.getsockname())
    for i in RUN.loop(25):
        spin(0.008)
        with RUN.measure("peer"):
            client.sendall(b"x" * 400000)
    client.close()
    os.kill(pid, 15)
    RUN.cause("peer", RUN.ns["peer"], name="archive")
    RUN.write(words="takes what it sends")


def compute_items(items):
    name_thread("renderer")
    for i in range(100):
        spin(0.03)
        items.put(b"z" * 1000)


def mpqueue_steps():
    items = multiprocessing.Queue(2)
    process = multiprocessing.Process(target=compute_items, args=(items,), daemon=True)
    process.start()
    items.get()
    for i in RUN.loop(30):
        with RUN.measure("data"):
            items.get()
        spin(0.008)
    process.kill()
    RUN.cause("data pipe too_few_loaders", RUN.ns["data"], name="renderer")
    RUN.write()


def backlog_steps():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    address = listener.getsockname()
    full = [socket.create_connection(address)]
    threading.Timer(2.2, lambda: [listener.accept() for _ in range(2)]).start()
    with RUN.whole():
        spin(0.3)
        with RUN.measure("peer"):
            full.append(socket.create_connection(address))
    RUN.cause("peer", RUN.ns["peer"], name=f"127.0.0.1:{address[1]}")
    RUN.write(words="to connect")


lock = threading.Lock()


def shard_worker(n, waited):
    name_thread("shard")
    for _ in range(n):
        begin = now()
        lock.acquire()
        waited.append(now() - begin)
        time.sleep(0.008)
        lock.release()
        spin(0.001)


def workers_run():
    waited = [[], []]
    threads = [threading.Thread(target=shard_worker, args=(60, w)) for w in waited]
    with RUN.whole():
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    RUN.cause("lock", sum(waited[0]), {"name": "shard", "function": "shard_worker"})
    RUN.cause("sleep", RUN.wall - sum(waited[0]), {"name": "shard", "function": "shard_worker"})
    RUN.write(words="Thread shard")


def answer_slowly(listener):
    connection = listener.accept()[0]
    while connection.recv(64):
        time.sleep(0.02)
        connection.sendall(b"row")


def both_steps():
    listener = socket.create_server(("127.0.0.1", 0))
    pid = fork("tokenizer", answer_slowly, listener)
    client = socket.create_connection(listener.getsockname())
    fd = os.open(f"{FOLDER}/results.db", os.O_WRONLY | os.O_CREAT)
    for i in RUN.loop(30):
        spin(0.01)
        with RUN.measure("peer"):
            client.sendall(b"text")
            client.recv(64)
        end = now() + 15000000
        with RUN.measure("disk"):
            while now() < end:
                os.pwrite(fd, b"x" * 4096, 0)
                os.fsync(fd)
    client.close()
    os.waitpid(pid, 0)
    RUN.cause("peer", RUN.ns["peer"], name="tokenizer")
    RUN.cause("disk", RUN.ns["disk"], path="results.db")
    RUN.write()


class Node:
    pass


def gc_steps():
    gc.disable()
    slow, usual = [], []
    for i in RUN.loop(40):
        begin = now()
        spin(0.01)
        for k in range(1000):
            a, b = Node(), Node()
            a.other, b.other, a.many = b, a, [0] * 20
        if i % 10 == 9:
            with mark("collect garbage"):
                held = [[j] for j in range(300000)]
                gc.collect()
                spin(0.03)
                del held
        (slow if i % 10 == 9 else usual).append(now() - begin)
    RUN.write(slow={"n": 4, "cause": ["compute"], "culprit": [{"function": "collect garbage"}], "share": 0.95})


{"reader": reader_steps, "sender": sender_steps, "mpqueue": mpqueue_steps, "backlog": backlog_steps, "workers": workers_run,
 "both": both_steps, "gcpause": gc_steps}[HOW]()
