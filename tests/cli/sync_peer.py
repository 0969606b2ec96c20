#!/usr/bin/env python3
"""sync_peer.py server KIND TOKEN_FILE: a server of pings that claims to be another host; prints its address and serves one connection.
   KIND: good OFFSET_NS, or what is wrong with it: silent, short, magic, endless, number, backward, stop.
sync_peer.py strangers ADDRESS N: N connections that send nothing, rubbish or half of a greeting, kept open until it is killed; says when they are there.
sync_peer.py guess ADDRESS: a wrong token; prints what comes back."""
import os, socket, struct, sys, time

MAGIC = b"STVSYNC1"


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def take(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def owner():
    return b"far\0".ljust(256, b"\0") + b"99999999-9999-4999-8999-999999999999\0".ljust(40, b"\0") + bytes(64)


def serve(kind, path, offset):
    listener = socket.create_server(("127.0.0.1", 0))
    print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    listener.settimeout(20)
    s, _ = listener.accept()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    hello = take(s, 24)
    assert hello[:8] == MAGIC and hello[8:].hex() == open(path).read().strip(), "greeting"
    if kind == "silent":
        return time.sleep(8)
    if kind == "short":
        return s.sendall(MAGIC + owner()[:100])
    if kind == "magic":
        return s.sendall(b"HTTP/1.1" + owner())
    s.sendall(MAGIC + (b"x" * 360 if kind == "endless" else owner()))
    number = 0
    while True:
        number = struct.unpack("<Q", take(s, 8))[0]
        came = now() + offset
        if kind == "stop" and number == 5:
            return
        if kind == "number":
            number += 1
        left = came - 10**15 if kind == "backward" else now() + offset
        s.sendall(struct.pack("<Qqq", number, came, left))


def strangers(address, n):
    host, port = address.split(":")
    kept = []
    for i in range(n):
        s = socket.create_connection((host, int(port)))
        s.sendall([b"", b"GET / HTTP/1.0\r\n\r\n" * 50, MAGIC + b"half"][i % 3])
        kept.append(s)
    print("connected", flush=True)
    time.sleep(60)


def guess(address):
    host, port = address.split(":")
    s = socket.create_connection((host, int(port)))
    s.sendall(MAGIC + bytes(16))
    s.settimeout(5)
    try:
        print(s.recv(100))
    except ConnectionResetError:
        print(b"")


if sys.argv[1] == "server":
    serve(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 0)
elif sys.argv[1] == "strangers":
    strangers(sys.argv[2], int(sys.argv[3]))
else:
    guess(sys.argv[2])
