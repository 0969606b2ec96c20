"""What another user of the machine tries, for other_user_sockets.sh: `strangers.py DEED ARGUMENT…`. Prints what came of it."""
import os
import socket
import struct
import sys
import time

GREETING = b"STAVE 1 "


def connect(where):
    if where.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(where)
    else:
        s = socket.create_connection(("127.0.0.1", int(where)), 30)
    s.settimeout(30)
    return s


def trap(where, log):
    """Takes a name or a port before its owner and keeps what is sent there."""
    if where.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.bind(where)
        os.chmod(where, 0o777)
    else:
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
    s.listen(16)
    with open(log, "wb", buffering=0) as f:
        print(s.getsockname() if where.startswith("/") else s.getsockname()[1], flush=True)
        while True:
            c, _ = s.accept()
            c.settimeout(5)
            try:
                while got := c.recv(65536):
                    f.write(got)
                    c.sendall(b"OK\n")
            except OSError:
                pass
            c.close()


def greet(where, greeting):
    s = connect(where)
    try:
        s.sendall(greeting.encode() + b"\n")
        print(s.recv(300).decode(errors="replace").strip(), flush=True)
    except OSError as e:
        print("closed", e)


def greet_and_close(where, greeting, times):
    """The kernel says that a socket which is closed is root's."""
    for _ in range(int(times)):
        try:
            s = connect(where)
            s.sendall(greeting.encode() + b"\n")
            s.close()
        except OSError:
            pass
    print("done")


def otlp(port, is_closed="", token=""):
    body = b'{"resourceSpans":[]}'
    s = connect(port)
    head = f"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    s.sendall(head.encode() + b"\r\n" + body)
    print(s.recv(300).split(b" ")[1].decode())


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def grpc(port):
    """One empty ExportTraceServiceRequest, by hand; the status is in the trailers."""
    def field(name, value):
        return bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    head = b"".join(field(*f) for f in [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "127.0.0.1"),
                                        ("content-type", "application/grpc"), ("te", "trailers")])
    s = connect(port)
    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, head) + frame(0, 1, 1, b"\0\0\0\0\0"))
    got, end = b"", time.monotonic() + 30
    while time.monotonic() < end and b"grpc-status" not in got:
        more = s.recv(65536)
        if not more:
            break
        got += more
    at = got.find(b"grpc-status")
    n = got[at + 11] if at >= 0 else 0
    print(got[at + 12:at + 12 + n].decode() if at >= 0 else "no status")


def half_open(port, n):
    """Connections that say nothing, and new ones for those that are closed, until standard input ends."""
    held = []
    os.set_blocking(0, False)
    is_said = False
    while True:
        try:
            if sys.stdin.buffer.read() == b"":
                break
        except BlockingIOError:
            pass
        held = [s for s in held if not is_closed(s)]
        while len(held) < int(n):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", int(port)))
            held.append(s)
        if not is_said:
            print("open", flush=True)
            is_said = True
        time.sleep(0.01)


def is_closed(s):
    try:
        if s.recv(1, socket.MSG_PEEK) == b"":
            s.close()
            return True
    except BlockingIOError:
        return False
    except OSError as e:
        if e.errno in (107, 115):  # not connected yet
            return False
        s.close()
        return True
    return False


globals()[sys.argv[1]](*sys.argv[2:])
