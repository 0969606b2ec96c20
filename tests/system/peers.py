"""peers.py SOCKET: a process and its child talk over TCP on the loopback interface, over the UNIX socket SOCKET and over a pair. Each sends when the other waits for it.
Prints a line per call that has waited: call, pid, peer's pid, peer, bytes."""
import os
import platform
import socket
import sys
import time

NUMBERS = {"x86_64": {"read": 0, "poll": 7, "recvfrom": 45}, "aarch64": {"read": 63, "poll": 73, "recvfrom": 207}}[platform.machine()]
path = sys.argv[1]
tcp = socket.create_server(("127.0.0.1", 0))
port = tcp.getsockname()[1]
unix = socket.socket(socket.AF_UNIX)
unix.bind(path)
unix.listen()
left, right = socket.socketpair()
parent = os.getpid()


def say(call, peer_pid, peer, n):
    os.write(1, f"{call},{os.getpid()},{peer_pid},{peer},{n}\n".encode())


def until_in(pid, call):
    """Until the process sleeps in that call."""
    while True:
        with open(f"/proc/{pid}/syscall") as f:
            if f.read().split()[0] == str(NUMBERS[call]):
                return
        time.sleep(0.001)


child = os.fork()
if child == 0:
    left.close()
    a = socket.create_connection(("127.0.0.1", port))
    b = socket.socket(socket.AF_UNIX)
    b.connect(path)
    say("recvfrom", parent, f"127.0.0.1:{port}", len(a.recv(100)))
    say("recvfrom", parent, path, len(b.recv(100)))
    a.settimeout(100)  # waits in poll
    a.recv(100)
    say("poll", parent, f"127.0.0.1:{port}", "")
    until_in(parent, "read")
    right.send(b"!" * 7)
    right.recv(1)  # until the other end is closed: until then both are there
    os._exit(0)
right.close()
c, _ = tcp.accept()
d, _ = unix.accept()
for s, call, n in ((c, "recvfrom", 10), (d, "recvfrom", 20), (c, "poll", 30)):
    until_in(child, call)
    s.send(b"!" * n)
say("read", child, "socket:", len(os.read(left.fileno(), 100)))
left.close()
os.waitpid(child, 0)
