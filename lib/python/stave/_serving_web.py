"""Middleware of stave.serving: a request of HTTP or gRPC is a request of the server.

A request that was in no batch when its handler was done is one of its own, as long as the handler ran: so a server without batching has no queue in its
trace. A handler that calls server.batch() with the current request has said where its time went.
"""
import asyncio

from . import _stave

WORKER = 0


def _model_of(model, what, path):
    if callable(model):
        return str(model(what))
    return model or path or "/"


def _end(request, started_ns, reason=None, gone=False):
    if request.ended:
        return
    request.alone(WORKER, started_ns)
    if gone:
        request.cancelled()
    elif reason:
        request.failed(reason)
    else:
        request.responded()


class _Handler:
    """What the middleware of all protocols share: the current request around a handler, and its end."""

    def __init__(self, app, server, model=None):
        self.app, self.server, self.model = app, server, model
        server.worker(WORKER, "python")


class AsgiMiddleware(_Handler):
    """app = AsgiMiddleware(app, server), or with Starlette app.add_middleware(AsgiMiddleware, server=server)."""

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {}
        for name, value in scope["headers"]:
            if name in (b"traceparent", b"tracestate"):
                headers.setdefault(name, []).append(value)
        parents = headers.get(b"traceparent", ())
        started_ns = _stave.now_ns()
        request = self.server.request(_model_of(self.model, scope, scope.get("path")), parents[0] if len(parents) == 1 else None,
                                      b",".join(headers.get(b"tracestate", ())) or None, time_ns=started_ns)
        status = 0

        async def sending(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if parents and request.enabled:
                    message = {**message, "headers": [*message.get("headers", ()), (b"traceparent", request.traceparent.encode())]}
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                _end(request, started_ns, f"status {status}" if status >= 500 else None)

        async def receiving():
            message = await receive()
            if message["type"] == "http.disconnect":
                _end(request, started_ns, gone=True)  # nothing, if it was answered before
            return message

        with request:
            try:
                await self.app(scope, receiving, sending)
            except BaseException:
                request.alone(WORKER, started_ns)
                raise


class _Body:
    """The answer of a WSGI application: the request ends when the server is done with it."""

    def __init__(self, body, done):
        self.body, self.done = body, done

    def __iter__(self):
        try:
            yield from self.body
        except GeneratorExit:
            raise
        except BaseException as error:
            self.done(f"{type(error).__name__}: {error}")
            raise

    def close(self):
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.done(None)


class WsgiMiddleware(_Handler):
    """app.wsgi_app = WsgiMiddleware(app.wsgi_app, server)."""

    def __call__(self, environ, start_response):
        started_ns = _stave.now_ns()
        request = self.server.request(_model_of(self.model, environ, environ.get("PATH_INFO")), environ.get("HTTP_TRACEPARENT"),
                                      environ.get("HTTP_TRACESTATE"), time_ns=started_ns)
        status = ""

        def starting(line, headers, *more):
            nonlocal status
            status = line
            if request.enabled and "HTTP_TRACEPARENT" in environ:
                headers = [*headers, ("traceparent", request.traceparent)]
            return start_response(line, headers, *more)

        def done(reason):
            _end(request, started_ns, reason or (f"status {status}" if status[:1] == "5" else None))

        token = request.set_current()
        try:
            return _Body(self.app(environ, starting), done)
        except BaseException as error:
            done(f"{type(error).__name__}: {error}")
            raise
        finally:
            request.reset_current(token)


# ---- gRPC ----

def _metadata(context):
    found = {}
    for key, value in context.invocation_metadata() or ():
        if key in ("traceparent", "tracestate"):
            found.setdefault(key, []).append(value)
    parents = found.get("traceparent", ())
    return parents[0] if len(parents) == 1 else None, ",".join(found.get("tracestate", ())) or None


def _code_of(context, error):
    """The reason of a call's failure: aborted calls raise an exception without a word."""
    code = context.code() if callable(getattr(context, "code", None)) else None
    name = getattr(code, "name", "")
    if name and name != "OK":
        return name
    return f"{type(error).__name__}: {error}" if error is not None else None


def grpc_interceptor(server, model=None, *, aio=False):
    """For grpc.server(…, interceptors=[grpc_interceptor(server)]); with aio=True for grpc.aio.server. `model`: a name, or a function of the method's name."""
    try:
        import grpc
    except ImportError:
        raise ImportError("stave: grpc_interceptor() needs grpcio (pip install grpcio; Debian: python3-grpcio)") from None
    server.worker(WORKER, "python")

    def begin(method, context):
        started_ns = _stave.now_ns()
        parent, state = _metadata(context)
        request = server.request(_model_of(model, method, method), parent, state, time_ns=started_ns)
        if request.enabled and parent:
            context.set_trailing_metadata((("traceparent", request.traceparent),))
        return request, started_ns

    def finish(request, started_ns, context, error=None):
        cancelled = isinstance(error, (asyncio.CancelledError, GeneratorExit)) or (hasattr(context, "is_active") and not context.is_active() and error is None)
        _end(request, started_ns, _code_of(context, error), cancelled)

    def unary(method, behavior):
        def call(argument, context):
            request, started_ns = begin(method, context)
            token, error = request.set_current(), None
            try:
                return behavior(argument, context)
            except BaseException as raised:
                error = raised
                raise
            finally:
                request.reset_current(token)
                finish(request, started_ns, context, error)
        return call

    def stream(method, behavior):
        def call(argument, context):
            request, started_ns = begin(method, context)
            error = None
            answers = iter(())
            token = request.set_current()
            try:
                answers = iter(behavior(argument, context))
            except BaseException as raised:
                error = raised
                raise
            finally:
                request.reset_current(token)
                if error is not None:
                    finish(request, started_ns, context, error)
            try:
                while True:
                    token = request.set_current()  # each piece may be taken in another thread
                    try:
                        answer = next(answers)
                    except StopIteration:
                        return
                    finally:
                        request.reset_current(token)
                    yield answer
            except BaseException as raised:
                error = raised
                raise
            finally:
                finish(request, started_ns, context, error)
        return call

    def aio_unary(method, behavior):
        async def call(argument, context):
            request, started_ns = begin(method, context)
            token, error = request.set_current(), None
            try:
                return await behavior(argument, context)
            except BaseException as raised:
                error = raised
                raise
            finally:
                request.reset_current(token)
                finish(request, started_ns, context, error)
        return call

    def aio_stream(method, behavior):
        async def call(argument, context):
            request, started_ns = begin(method, context)
            token, error = request.set_current(), None
            try:
                async for answer in behavior(argument, context):
                    yield answer
            except BaseException as raised:
                error = raised
                raise
            finally:
                request.reset_current(token)
                finish(request, started_ns, context, error)
        return call

    shapes = {(False, False): ("unary_unary", aio_unary if aio else unary), (False, True): ("unary_stream", aio_stream if aio else stream),
              (True, False): ("stream_unary", aio_unary if aio else unary), (True, True): ("stream_stream", aio_stream if aio else stream)}

    def traced(method, handler):
        if handler is None:
            return None
        kind, wrap = shapes[bool(handler.request_streaming), bool(handler.response_streaming)]
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(wrap(method, getattr(handler, kind)), request_deserializer=handler.request_deserializer,
                    response_serializer=handler.response_serializer)

    if aio:
        from grpc import aio as grpc_aio

        class AioInterceptor(grpc_aio.ServerInterceptor):
            async def intercept_service(self, continuation, details):
                return traced(details.method, await continuation(details))
        return AioInterceptor()

    class Interceptor(grpc.ServerInterceptor):
        def intercept_service(self, continuation, details):
            return traced(details.method, continuation(details))
    return Interceptor()
