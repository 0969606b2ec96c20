"""Inference servers written in Python: requests, batches and steps, in the trace that libstave-serving writes for servers in C.

    import stave.serving

    server = stave.serving.open("traces", server="my server")
    with server.request("bert", traceparent=headers.get("traceparent")) as request:   # in any task or thread
        answer = await queue.put_and_wait(request, ...)

    request.dequeued()                                  # the batcher
    with server.batch(requests) as batch:
        with batch.run(worker=0):
            outputs = model(inputs)
    server.close()

or one line for a whole server: ``app = stave.serving.asgi(app, server)``. See docs/serving.md, "In Python".
"""
import concurrent.futures
import contextvars
import functools
import os

from . import _session  # a session that STAVE_OUT has started gets the events
from ._serving import Batch, Request, Run, Server as _Server, Step, current
from ._serving_web import AsgiMiddleware, WsgiMiddleware, grpc_interceptor

__all__ = ["JSON", "CSV", "PFTRACE", "METRICS", "TOKENS", "AsgiMiddleware", "Batch", "Request", "Run", "Server", "Step", "ThreadPoolExecutor",
           "WsgiMiddleware", "asgi", "carried", "current", "grpc_interceptor", "open", "wsgi"]

JSON, CSV, PFTRACE, METRICS, TOKENS = 1, 2, 4, 8, 16  # the outputs
_NAMES = {"default": 0, "newer": 1}
_FULL = {"drop": 1, "block": 2}


def _one_of(known, value, what):
    if value not in known:
        raise ValueError(f"stave: {what}={value!r}: expected {' or '.join(map(repr, known))}")
    return known[value]


class Server(_Server):
    """A traced server; stave.serving.open() makes one. ``with`` closes it."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, trace_output=None, *, server=None, names="default", outputs=0, truncate=False, without_request_spans=False, queue_records=0,
                 full="drop", flush_ms=0, enabled=True, keep=None, rate=0, by_parent=False):
        super().__init__(None if trace_output is None else os.fspath(trace_output), server, names=_one_of(_NAMES, names, "names"), outputs=outputs,
                         truncate=truncate, without_request_spans=without_request_spans, queue_records=queue_records,
                         full=_one_of(_FULL, full, "full"), flush_ms=flush_ms, enabled=enabled, keep=keep)
        self.sample(rate, by_parent)
        if self.enabled:
            _session._keep_trace_at_exit()

    @property
    def files(self):
        """The names of the files that are written, by output: {"json": "traces/batching_trace.json", …}."""
        names = {"json": self.file(JSON), "csv": self.file(CSV), "pftrace": self.file(PFTRACE), "metrics": self.file(METRICS)}
        return {name: path for name, path in names.items() if path}


def open(trace_output=None, **options):
    """A Server that writes to the folder `trace_output`; with enabled=False one whose calls do nothing."""
    return Server(trace_output, **options)


def carried(function):
    """The function, run with the current request of the code that calls carried(): for threads and executors, which do not have it."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def run(*args, **kwargs):
        return context.copy().run(function, *args, **kwargs)
    return run


class ThreadPoolExecutor(concurrent.futures.ThreadPoolExecutor):
    """Its work has the current request of the code that submits it: loop.set_default_executor(stave.serving.ThreadPoolExecutor())."""

    def submit(self, fn, /, *args, **kwargs):
        return super().submit(contextvars.copy_context().run, fn, *args, **kwargs)


def asgi(app, server, model=None):
    """The ASGI application (FastAPI, Starlette …), with a request of `server` for each HTTP request. `model`: its name, or a function of the scope."""
    return AsgiMiddleware(app, server, model)


def wsgi(app, server, model=None):
    """The same for a WSGI application (Flask, Django …). `model`: its name, or a function of the environ."""
    return WsgiMiddleware(app, server, model)
