"""A collector for the tests: takes POST requests on a free port, prints the port, answers with the statuses that are given one after the other (the last one
for all that follow), and keeps the bodies of those answered with 200 in FILE. `partial` answers 200 and rejects two spans.

    otlp_collector.py FILE STATUS…
"""
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

path, plan = sys.argv[1], sys.argv[2:]
PARTIAL = b"\x0a\x0a\x08\x02\x12\x06no ink"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        word = plan.pop(0) if len(plan) > 1 else plan[0]
        status, answer = (200, PARTIAL) if word == "partial" else (int(word), b"" if word == "200" else b"\x08\x0e\x12\x04busy")
        if status == 200:
            with open(path, "ab") as f:
                f.write(body)
        with open(path + ".log", "a") as f:
            f.write("%s %s %s %s\n" % (status, self.path, self.headers["Content-Type"], self.headers.get("x-key")))
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
