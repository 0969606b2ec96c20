"""Each step asks a server over a socket of loopback, which computes, or with --asleep sleeps. --healthy: it answers at once.
--serve: only the server, beside the one that asks it (WHY_BESIDE: its port and pid): nobody records it."""
import os
import socket
import sys
import time

from truth import HEALTHY, Run, name_thread, spin

listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]


def answer(connection):
    while connection.recv(64):
        if HEALTHY:
            pass
        elif "--asleep" in sys.argv:
            time.sleep(0.04)
        else:
            spin(0.04)
        connection.sendall(b"answer")


if "--serve" in sys.argv:
    print(port, os.getpid(), flush=True)
    answer(listener.accept()[0])
    sys.exit()
if "WHY_BESIDE" in os.environ:
    pid, (port, outside) = 0, os.environ["WHY_BESIDE"].split()
else:
    pid = os.fork()
    if pid == 0:
        name_thread("embedder")
        answer(listener.accept()[0])
        os._exit(0)
listener.close()
client = socket.create_connection(("127.0.0.1", port))
run = Run()
for i in run.loop(30):
    spin(0.02 if not HEALTHY else 0.05)
    with run.measure("peer"):
        client.sendall(b"question")
        client.recv(64)
client.close()
address = {"name": f"127.0.0.1:{port}"}
if pid:
    os.waitpid(pid, 0)
if pid and not HEALTHY:
    run.cause("peer", run.ns["peer"], {"name": "embedder"}, address, pid=pid)
elif not HEALTHY:
    run.cause("peer", run.ns["peer"], address, pid=int(outside))
run.write()
