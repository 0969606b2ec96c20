"""Services as people write them, each slow for a reason of its own:

    services.py backend | blocked | http | feed | pool | ok

backend: handlers of an asyncio server await a backend process that sleeps. blocked: one coroutine of the server sleeps without awaiting.
http: each step asks an HTTP server over one connection, whose handler computes. feed: a thread fills a queue.Queue from a slow peer.
pool: each step gives four jobs to an executor of one thread. ok: the asyncio server without any of it."""
import asyncio
import concurrent.futures
import http.client
import http.server
import os
import queue
import socket
import sys
import threading
import time

from truth import Run, name_thread, now, spin

HOW = sys.argv[1]
N = 60


def fork(name, work, *args):
    pid = os.fork()
    if pid == 0:
        name_thread(name)
        try:
            work(*args)
        finally:
            os._exit(0)
    return pid


# ---- asyncio ----

def slow_backend(listener):
    connection = listener.accept()[0]
    while connection.recv(64):
        time.sleep(0.025)
        connection.sendall(b"row\n")


def ask_many(listener):
    """The client of the server: one question after the other."""
    with socket.create_connection(listener.getsockname()) as s:
        for i in range(N):
            s.sendall(b"question\n")
            s.recv(64)
            time.sleep(0.004)


class Server:
    def __init__(self, run):
        self.run, self.blocked, self.n, self.cause_ns = run, [], 0, 0

    async def compact(self):
        while True:
            await asyncio.sleep(0.015)
            begin = now()
            compact_now()
            self.blocked.append((begin, now()))

    async def handle(self, reader, writer):
        while await reader.readline():
            spin(0.003)
            if HOW == "backend":
                asked = now()
                self.backend[1].write(b"select\n")
                await self.backend[0].readline()
                self.cause_ns += now() - asked
            else:
                await asyncio.sleep(0)
                spin(0.003)
            writer.write(b"answer\n")
            await writer.drain()
            self.n += 1
            if self.n == N:
                self.done.set()

    async def main(self, listener, backend):
        self.done = asyncio.Event()
        if backend:
            self.backend = await asyncio.open_connection(*backend.getsockname())
        server = await asyncio.start_server(self.handle, sock=listener)
        other = asyncio.create_task(self.compact()) if HOW == "blocked" else None
        await self.done.wait()
        if other:
            other.cancel()
        server.close()


def compact_now():
    time.sleep(0.02)  # nothing awaits it: the loop stands still


def serve(run):
    listener, backend = socket.create_server(("127.0.0.1", 0)), None
    if HOW == "backend":
        backend = socket.create_server(("127.0.0.1", 0))
        fork("rowstore", slow_backend, backend)
    fork("client", ask_many, listener)
    server = Server(run)
    with run.whole():
        asyncio.run(server.main(listener, backend))
    if HOW == "backend":
        run.cause("peer", server.cause_ns, {"name": "rowstore"},
                  {"name": "127.0.0.1:%d" % backend.getsockname()[1]})
    run.write()


def serve_blocked(run):
    """A request waits from its arrival at the socket on, which only the client can know: the loop's time is judged."""
    listener = socket.create_server(("127.0.0.1", 0))
    fork("client", ask_many, listener)
    server = Server(run)
    with run.whole():
        asyncio.run(server.main(listener, None))
    ns = sum(e - b for b, e in server.blocked)
    run.cause("sleep", ns, function="compact_now", file="services.py")
    run.allow("peer", run.wall)
    run.write(no_share=True)


# ---- HTTP ----

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        spin(0.03)
        body = b"x" * 100
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def http_steps(run):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    pid = fork("features", server.serve_forever)
    server.socket.close()
    client = http.client.HTTPConnection("127.0.0.1", port)
    for i in run.loop(30):
        spin(0.012)
        with run.measure("peer"):
            client.request("GET", f"/features/{i}")
            client.getresponse().read()
    client.close()
    os.kill(pid, 15)
    run.cause("peer", run.ns["peer"], {"name": "features"}, {"name": f"127.0.0.1:{port}"}, pid=pid)
    run.write()


# ---- a queue ----

def slow_source(listener):
    connection = listener.accept()[0]
    for i in range(200):
        time.sleep(0.03)
        try:
            connection.sendall(b"z" * 1000)
        except OSError:
            return


def feed_steps(run):
    listener = socket.create_server(("127.0.0.1", 0))
    pid = fork("objectstore", slow_source, listener)
    batches = queue.Queue(2)
    stop = []

    def fetch():
        name_thread("fetcher")
        with socket.create_connection(listener.getsockname()) as s:
            while not stop:
                batches.put(s.recv(1000))

    thread = threading.Thread(target=fetch)
    thread.start()
    for i in run.loop(30):
        with run.measure("data"):
            batches.get()
        spin(0.01)
    stop.append(1)
    while thread.is_alive():
        try:
            batches.get(timeout=0.1)
        except queue.Empty:
            pass
    run.cause("data peer", run.ns["data"], {"name": "fetcher"}, {"name": "objectstore"})
    os.kill(pid, 15)
    run.write()


# ---- an executor ----

def tokenize(i):
    time.sleep(0.012)  # as a library call without the interpreter lock would take
    return i


def pool_steps(run):
    with concurrent.futures.ThreadPoolExecutor(1, "tokenizer", name_thread, ("tokenizer",)) as pool:
        for i in run.loop(25):
            jobs = [pool.submit(tokenize, k) for k in range(4)]
            spin(0.01)
            with run.measure("data"):
                [job.result() for job in jobs]
    run.cause("data lock", run.ns["data"], {"name": "tokenizer"})
    run.write()


{"backend": serve, "ok": serve, "blocked": serve_blocked, "http": http_steps, "feed": feed_steps,
 "pool": pool_steps}[HOW](Run())
