"""Programs that get what they need through others, and which nobody marked:

    relays.py upstream | polls | full | idle

upstream: an asyncio client asks a server that is another Python program, a child of its own; that one sleeps. polls: answers come over a
socket, and are asked for with a time limit, again and again. full: items go into a multiprocessing.Queue, which a slow process empties.
idle: a server whose client asks rarely, and nothing is wrong."""
import asyncio
import multiprocessing
import os
import select
import socket
import subprocess
import sys
import time

from truth import Run, name_thread, spin

HOW = sys.argv[1]
RUN = Run()
SERVER = """
import socket, sys, time
listener = socket.socket(fileno=int(sys.argv[1]))
def look_up_price():
    time.sleep(0.02)
connection = listener.accept()[0]
while connection.recv(64):
    look_up_price()
    connection.sendall(b"price\\n")
"""


def fork(name, work, *args):
    pid = os.fork()
    if pid == 0:
        name_thread(name)
        try:
            work(*args)
        finally:
            os._exit(0)
    return pid


# ---- a child that is no loader ----

async def ask(address):
    reader, writer = await asyncio.open_connection(*address)
    for _ in RUN.loop(80, "loop", marked=False):
        spin(0.008)
        with RUN.measure("peer"):
            writer.write(b"milk\n")
            await reader.readline()
    writer.close()


def upstream():
    listener = socket.create_server(("127.0.0.1", 0))
    child = subprocess.Popen([sys.executable, "-c", SERVER, str(listener.fileno())],
                             pass_fds=[listener.fileno()])
    time.sleep(0.3)
    asyncio.run(ask(listener.getsockname()))
    child.wait()
    RUN.cause("peer", RUN.ns["peer"], {"function": "look_up_price"}, pid=child.pid)


# ---- time limits ----

def check_password():
    time.sleep(0.024)


def authorise(listener):
    connection = listener.accept()[0]
    while connection.recv(1):
        check_password()
        connection.send(b"y")


def polls():
    listener = socket.create_server(("127.0.0.1", 0))
    fork("authd", authorise, listener)
    connection = socket.create_connection(listener.getsockname())
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    for _ in RUN.loop(80, "loop", marked=False):
        spin(0.008)
        with RUN.measure("peer"):
            connection.send(b"t")
            while not poll.poll(10):
                pass
            connection.recv(1)
    connection.close()
    os.wait()
    RUN.units = None
    RUN.cause("peer", RUN.ns["peer"], name="authd", function="check_password")


# ---- a queue that is full ----

def compress_block(block):
    time.sleep(0.03)


def write_blocks(queue):
    name_thread("writer")
    while (block := queue.get()) is not None:
        compress_block(block)


def full():
    queue = multiprocessing.Queue(2)
    process = multiprocessing.Process(target=write_blocks, args=(queue,))
    process.start()
    for _ in RUN.loop(70, "loop", marked=False):
        spin(0.008)
        with RUN.measure("queue"):
            queue.put(b"x" * 1000)
    queue.put(None)
    process.join()
    RUN.units = None
    RUN.cause("data pipe lock", RUN.ns["queue"], name="writer", function="compress_block")


# ---- nothing is wrong ----

def ask_rarely(address):
    for i in range(50):
        with socket.create_connection(address) as connection:
            connection.send(b"q")
            connection.recv(1)
        time.sleep(0.04)


def idle():
    listener = socket.create_server(("127.0.0.1", 0))
    fork("client", ask_rarely, listener.getsockname())
    with RUN.whole():
        for _ in range(50):
            connection, _ = listener.accept()
            connection.recv(1)
            spin(0.004)
            connection.send(b"a")
            connection.close()


{"upstream": upstream, "polls": polls, "full": full, "idle": idle}[HOW]()
RUN.write()
