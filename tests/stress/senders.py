#!/usr/bin/env python3
"""senders.py ADDRESS SCENE[:ARGUMENT,…]…: senders that `stave listen` did not ask for, and some that it did, by lib/sdk/write/stream_wire.h.

Prints the name of each scene in which every connection was treated as it should be. No scene waits for a time of its own: recv() waits."""
import ctypes, os, signal, socket, struct, sys

address = sys.argv[1]
MAX = 1 << 30


def connect():
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(address[5:])
    else:
        host, port = address[4:].rsplit(":", 1)
        s = socket.create_connection((host, int(port)), timeout=60)
    return s


def line(s):
    """The listener's answer, and "" when it only closed."""
    got = b""
    try:
        while not got.endswith(b"\n"):
            more = s.recv(1)
            if not more:
                break
            got += more
    except ConnectionResetError:
        pass
    return got.decode()


def ended(s):
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def refused(greeting, why):
    s = connect()
    try:
        s.sendall(greeting)
    except (BrokenPipeError, ConnectionResetError):
        pass
    answer = line(s)
    assert answer.startswith("NO ") and why in answer, (greeting[:40], answer)
    assert ended(s), greeting[:40]
    s.close()


def greeted(token=""):
    s = connect()
    s.sendall(f"STAVE 2 {token}\n".encode())
    answer = line(s)
    assert answer == "OK\n", answer
    return s


def frame(data, events, flags=0):
    return struct.pack("<QQQ", len(data), events, flags) + data


def taken(s):
    got = b""
    while len(got) < 8:
        more = s.recv(8 - len(got))
        if not more:
            return None
        got += more
    return struct.unpack("<Q", got)[0]


def send_file(path, events, last=True):
    data = open(path, "rb").read()
    s = greeted()
    s.sendall(frame(data, int(events)))
    assert taken(s) == 24 + len(data)
    if last:
        s.sendall(frame(b"", int(events), 1))
        assert taken(s) == 48 + len(data)
        assert ended(s)
    return s


def wrong(n):  # each is answered and closed: none keeps a descriptor
    for i in range(int(n)):
        refused(b"HELLO\n", "greeting")


def prefixes(token):  # every one that is not the token
    for i in range(len(token)):
        refused(f"STAVE 2 {token[:i]}\n".encode(), "token")
    refused(f"STAVE 2 {token}x\n".encode(), "token")
    refused(f"STAVE 2 {token}\0\n".encode(), "token")
    refused(f"STAVE 2 {token.upper()}\n".encode(), "token")
    refused(f"STAVE 1 {token}\n".encode(), "version")
    greeted(token).close()


def endless():
    refused(b"STAVE 2 " + b"a" * 100000, "greeting")


def every_byte(token):  # gone after each byte of a right greeting
    for i in range(len(token) + 10):
        s = connect()
        s.sendall(f"STAVE 2 {token}\n".encode()[:i])
        s.close()


def silent(n):  # so many that say nothing do not keep others out, and are closed in the end
    held = [connect() for _ in range(int(n))]
    greeted().close()
    answers = [line(s) for s in held]
    assert all(a.startswith("NO ") for a in answers), answers
    assert any("without a greeting" in a for a in answers), answers  # one user has few such places


def huge():
    for bad in (struct.pack("<QQQ", 1 << 62, 1, 0), struct.pack("<QQQ", MAX + 1, 1, 0), struct.pack("<QQQ", 1, 1, 8), b"\xff" * 24):
        s = greeted()
        s.sendall(bad)
        assert ended(s)


def deaf():  # never reads an answer
    s = greeted()
    try:
        for i in range(1, 400000):
            s.sendall(frame(b"", i))
    except (BrokenPipeError, ConnectionResetError, socket.timeout) as e:
        assert not isinstance(e, socket.timeout)
        return
    raise AssertionError("nobody minded")


def at_once(n):  # so many senders at the same time, each with a frame that is answered
    held = [greeted() for _ in range(int(n))]
    for s in held:
        s.sendall(frame(b"", 0))
    for s in held:
        assert taken(s) == 24
    for s in held:
        s.sendall(frame(b"", 0, 1))
        assert taken(s) == 48


def many(n, pid):  # so many at once cost the listener one descriptor each
    held = [greeted() for _ in range(int(n))]
    for s in held:
        s.sendall(frame(b"", 0))
    for s in held:
        assert taken(s) == 24
    files = len(os.listdir(f"/proc/{pid}/fd"))
    assert int(n) <= files <= int(n) + 16, files
    for s in held:
        s.sendall(frame(b"", 0, 1))
        assert taken(s) == 48


def beyond(n):  # the listener serves n senders: the next one is refused with a message, the others continue
    held = [greeted() for _ in range(int(n))]
    refused(b"STAVE 2 \n", "too many senders")
    held.pop().close()
    while True:  # its place becomes free when the listener has seen that it went
        s = connect()
        s.sendall(b"STAVE 2 \n")
        if line(s) == "OK\n":
            break


def cut(path, events):  # one frame is whole, of the next one only a part comes
    s = send_file(path, events, last=False)
    s.sendall(frame(b"x" * 1000, int(events) + 77)[:500])
    s.close()


def forked(library):  # a traced program that forks and is killed; prints the child, which lives on
    os.environ["STAVE_OUT"] = address
    ctypes.CDLL(library)
    child = os.fork()
    if child == 0:
        signal.pause()
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


scenes = {f.__name__: f for f in (wrong, prefixes, endless, every_byte, silent, huge, deaf, at_once, many, beyond, cut, send_file, forked)}
for scene in sys.argv[2:]:
    name, _, arguments = scene.partition(":")
    scenes[name](*(arguments.split(",") if arguments else []))
    print(name, flush=True)
