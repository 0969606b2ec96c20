#!/usr/bin/env python3
"""late_proxy.py HOST PORT RELEASE: an HTTP proxy before ClickHouse that is late with the first insert into slice_rows. Its port is its first line of output.

It takes that insert, closes the client's connection without an answer, and hands the insert on when the file RELEASE exists; then it writes RELEASE.done. So a
server stores rows after their client has failed and has removed what it saw of its load."""
import http.client
import http.server
import os
import sys
import threading
import time

host, port, release = sys.argv[1], int(sys.argv[2]), sys.argv[3]
first = threading.Lock()


def forward(method, path, headers, body):
    server = http.client.HTTPConnection(host, port)
    server.request(method, path, body, headers)
    answer = server.getresponse()
    return answer.status, answer.getheaders(), answer.read()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = dict(self.headers)
        self.close_connection = True
        if "slice_rows" in self.path and first.acquire(blocking=False):
            threading.Thread(target=be_late, args=(self.path, headers, body)).start()
            return
        status, fields, answer = forward("POST", self.path, headers, body)
        self.send_response(status)
        for name, value in fields:
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def be_late(path, headers, body):
    while not os.path.exists(release):
        time.sleep(0.02)
    status, _, answer = forward("POST", path, headers, body)
    with open(release + ".part", "w") as f:
        print(status, answer.decode(errors="replace"), file=f)
    os.rename(release + ".part", release + ".done")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
