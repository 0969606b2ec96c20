"""A client of OTLP over HTTP, byte by byte where asked: otlp_post.py PORT <PLAN

Each line of the plan is one request: NAME STATUS PATTERN [OPTION…] FILE, in the words of a shell. Prints `ok NAME` when the answer has this status
and its body fits the pattern (a regular expression, at its begin), else `not ok NAME` with the answer.

    --type TYPE        Content-Type (default application/x-protobuf)
    --encoding NAME    Content-Encoding; gzip packs the file first, others do not
    --chunks N         Transfer-Encoding: chunked, in pieces of N bytes, each sent by itself
    --pieces N         the whole request in pieces of N bytes, each sent by itself
    --length N         says this Content-Length, and sends no body
    --path PATH, --method NAME, --header 'NAME: VALUE' (any number)
"""
import argparse
import gzip
import re
import shlex
import socket
import sys


def options():
    p = argparse.ArgumentParser()
    p.add_argument("name")
    p.add_argument("status")
    p.add_argument("pattern")
    p.add_argument("file")
    p.add_argument("--type", default="application/x-protobuf")
    p.add_argument("--encoding")
    p.add_argument("--chunks", type=int)
    p.add_argument("--pieces", type=int)
    p.add_argument("--length", type=int)
    p.add_argument("--path", default="/v1/traces")
    p.add_argument("--method", default="POST")
    p.add_argument("--header", action="append", default=[])
    return p


def pieces_of(o, port):
    with open(o.file, "rb") as f:
        body = f.read()
    if o.encoding == "gzip":
        body = gzip.compress(body)
    head = ["%s %s HTTP/1.1" % (o.method, o.path), "Host: 127.0.0.1:%d" % port, "Connection: close", "Content-Type: " + o.type] + o.header
    if o.encoding:
        head.append("Content-Encoding: " + o.encoding)
    pieces = [body]
    if o.chunks:
        head.append("Transfer-Encoding: chunked")
        parts = [body[i:i + o.chunks] for i in range(0, len(body), o.chunks)]
        pieces = [b"%x\r\n%s\r\n" % (len(x), x) for x in parts] + [b"0\r\n\r\n"]
    else:
        head.append("Content-Length: %d" % (len(body) if o.length is None else o.length))
    if o.length is not None:
        pieces = []
    pieces.insert(0, ("\r\n".join(head) + "\r\n\r\n").encode())
    if o.pieces:
        whole = b"".join(pieces)
        pieces = [whole[i:i + o.pieces] for i in range(0, len(whole), o.pieces)]
    return pieces


def send(o, port):
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answer = b""
    try:
        for x in pieces_of(o, port):
            s.sendall(x)
    except OSError:
        pass
    try:
        while True:
            got = s.recv(65536)
            if not got:
                break
            answer += got
    except OSError:
        pass
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b" ")[1].decode() if b" " in head else "none", body.decode("utf-8", "backslashreplace")


def main():
    parser = options()
    for line in sys.stdin:
        o = parser.parse_args(shlex.split(line))
        status, body = send(o, int(sys.argv[1]))
        if status == o.status and re.match(o.pattern, body, re.S):
            print("ok", o.name)
        else:
            print("not ok", o.name, "%s %s" % (status, body))


main()
