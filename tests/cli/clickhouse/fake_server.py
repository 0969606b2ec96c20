#!/usr/bin/env python3
"""fake_server.py: an HTTP server on loopback that answers badly, as the name of the database says. Its port is its first line of output.

What no real server does on request: cut answers, answers that fit no column, other kinds of servers, terminal codes in messages."""
import http.server
import sys
import threading
import urllib.parse

TSV = "text/tab-separated-values; charset=UTF-8"
ANSWERS = {  # database: status, type, body
    "full": (500, "text/plain", b"Code: 241, e.displayText() = DB::Exception: Memory limit exceeded, e.what() = DB::Exception"),
    "colours": (500, "text/plain", b"Code: 1000, e.displayText() = \x1b[31mred\x07, e.what() = x"),
    "gateway": (502, "text/html", b"<html>Bad Gateway</html>"),
    "moved": (302, "text/plain", b""),
    "html": (200, "text/html", b"<html>hello</html>"),
    "fields": (200, TSV, b"a\tb\nUInt8\tUInt8\n1\t2\n3\n"),
    "number": (200, TSV, b"a\nInt64\n1\ntwo\n"),
    "cut": (200, TSV, b"a\nInt64\n1\n2"),
    "columns": (200, TSV, b"\t" * 5000 + b"\n"),
    "empty": (200, TSV, b""),
    "shard_name": (200, TSV, b"host\tn\nString\tUInt32\na/../b\t1\n"),
    "shard_replicas": (200, TSV, b"host\tn\nString\tUInt32\na\t1\na\t2\n"),
    "shard_twice": (200, TSV, b"host\tn\nString\tUInt32\na\t1\na\t1\n"),
    "shard_none": (200, TSV, b"host\tn\nString\tUInt32\n"),
    "shard_columns": (200, TSV, b"host\nString\na\n"),
    "words": (500, "text/plain", b"Code: 7, e.displayText() = " + b"x" * 1000000),
}
asked = {"n": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, kind, body, length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/?database=moved_to")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).get("database", ["empty"])[0]
        asked["n"] += name == "moved_to"
        if name == "torn":  # fewer bytes than it says
            self.send(200, TSV, b"a\nInt64\n1\n2\n", 1000)
            self.close_connection = True
        elif name == "long":  # one row without an end
            self.send_response(200)
            self.send_header("Content-Type", TSV)
            self.end_headers()
            self.close_connection = True
            try:
                self.wfile.write(b"a\nString\n")
                for _ in range(80):
                    self.wfile.write(b"x" * (1 << 20))
            except OSError:
                pass
        elif name == "who":
            self.send(200, TSV, b"user\tkey\nString\tString\n%s\t%s\n" % (self.headers.get("X-ClickHouse-User", "none").encode(),
                                                                          self.headers.get("X-ClickHouse-Key", "none").encode()))
        elif name == "asked":
            self.send(200, TSV, b"n\nUInt8\n%d\n" % asked["n"])
        else:
            self.send(*ANSWERS[name])

    do_GET = do_POST


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()  # ends with its caller
server.serve_forever()
