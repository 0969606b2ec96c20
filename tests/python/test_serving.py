"""stave.serving: calls and context managers, the current request, trace context, engines, middleware, and a whole asyncio server under load."""
import asyncio
import concurrent.futures
import contextvars
import json
import os
import subprocess
import sys
import threading

import pytest

import stave
from conftest import NO_OUT, STAVE, ask

serving = pytest.importorskip("stave.serving")
HERE = os.path.dirname(__file__)
VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
FORMS = ("batching_trace.pftrace", "batching_trace.json", "batching_trace_summary.csv")


def requests_of(folder, form=FORMS[0]):
    return ask(folder / form, "select request_id, batch_id, model, outcome, dur from request order by request_id")


def batches_of(folder, form=FORMS[0]):
    return ask(folder / form, "select batch_id, model, size, worker, dur from batch order by batch_id")


def events_of(folder):
    with open(folder / FORMS[1]) as f:
        return json.load(f)["traceEvents"]


@pytest.fixture
def server(tmp_path):
    with serving.open(tmp_path, server="test") as s:
        yield s


def closed(server, tmp_path):
    server.close()
    return requests_of(tmp_path)


# ---- life cycle ----

def test_a_request_ends_as_its_block_does(server, tmp_path):
    with server.request("m") as done:
        assert not done.ended
    assert done.ended
    with pytest.raises(ValueError), server.request("m"):
        raise ValueError("too long")
    with pytest.raises(asyncio.CancelledError), server.request("m"):
        raise asyncio.CancelledError
    server.rejected("m")
    with server.request("m") as early:
        early.failed("said so")
    assert [r["outcome"] for r in closed(server, tmp_path)] == ["responded", "failed", "cancelled", "rejected", "failed"]
    life = ask(tmp_path / FORMS[0], "select string_value as v from args where key = 'debug.reason' order by 1")
    assert [r["v"] for r in life] == ["ValueError: too long", "said so"]


def test_batches_and_their_phases(server, tmp_path):
    server.worker(3, "cuda", 1)
    requests = [server.request("m", time_ns=1000 + i) for i in range(4)]
    for r in requests:
        r.dequeued(2000)
    with server.batch(requests, samples=8, start_ns=2000, end_ns=3000) as b:
        b.submitted(4000)
        b.started(3, 5000)
        b.finished(6000)
        b.callback(6000, 7000)
    for r in requests:
        r.responded(8000)
    rows = closed(server, tmp_path)
    assert [(r["batch_id"], r["outcome"], r["dur"]) for r in rows] == [(b.id, "responded", 7000 - i) for i in range(4)]
    assert [(r["size"], r["worker"], r["dur"]) for r in batches_of(tmp_path)] == [(8, 3, 5000)]  # size: samples
    phases = [e["args"]["phases_ns"] for e in events_of(tmp_path) if e["name"] == "request" and e["ph"] == "b"]
    assert phases[0] == {"queue": 1000, "batch": 1000, "submit": 1000, "scheduling": 1000, "run": 1000, "callback": 1000, "respond": 1000}
    assert [sum(p.values()) for p in phases] == [7000 - i for i in range(4)]


def test_a_batch_that_raises_has_failed(server, tmp_path):
    r = server.request("m")
    with pytest.raises(RuntimeError), server.batch([r]) as b, b.run():
        raise RuntimeError("no memory")
    r.failed("its batch failed")
    assert [r["outcome"] for r in closed(server, tmp_path)] == ["failed"]
    over = [e for e in events_of(tmp_path) if e["name"] == "batch_over"]
    assert [e["args"]["outcome"] for e in over] == ["failed"]


def test_what_is_said_after_the_end_is_not_recorded(server, tmp_path):
    r = server.request("m")
    r.cancelled()
    r.dequeued()
    r.streamed(3)
    r.responded()
    assert [row["outcome"] for row in closed(server, tmp_path)] == ["cancelled"]
    assert json.loads(subprocess.run([STAVE, "report", "batch", "--json", str(tmp_path / FORMS[0])], capture_output=True).stdout)["summary"]["open"] == 0


def test_numbers_serve_instead_of_requests(server, tmp_path):
    r = server.request(server.model("m"))
    with pytest.raises(TypeError, match="needs the model"):
        server.batch([r.id])
    with server.batch([r.id], "m") as b, b.run():
        pass
    r.responded()
    assert closed(server, tmp_path)[0]["batch_id"] == b.id


def test_warm_up_is_marked(server, tmp_path):
    with server.request("m", warmup=True) as r, server.batch([r]) as b, b.run():
        pass
    server.close()
    assert ask(tmp_path / FORMS[0], "select is_warmup as w from request") == []  # figures leave it out
    assert {e["name"] for e in events_of(tmp_path) if e["ph"] == "b"} == {"warming_request"}


@pytest.mark.parametrize("call, error", [
    (lambda s: s.request(), TypeError), (lambda s: s.request(-1), OverflowError), (lambda s: s.request("m", 5), TypeError),
    (lambda s: s.request("m").dequeued("now"), TypeError), (lambda s: s.request("m").failed(), TypeError),
    (lambda s: s.batch(5), TypeError), (lambda s: s.batch(["x"], "m"), TypeError), (lambda s: s.step("e", graph="odd"), ValueError),
    (lambda s: s.step("e").prefill(5), TypeError), (lambda s: serving.Request(), TypeError), (lambda s: s.model(5), TypeError)])
def test_wrong_calls_are_errors(server, call, error):
    with pytest.raises(error):
        call(server)


@pytest.mark.parametrize("options, words", [({"names": "odd"}, "names='odd'"), ({"full": "overwrite"}, "full='overwrite'")])
def test_wrong_options_are_refused(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        serving.open(tmp_path, **options)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "x").write_text("kept")
    with pytest.raises(ValueError, match="is a file"):
        serving.open(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "kept"


def test_a_server_that_is_not_traced_does_nothing(tmp_path):
    server = serving.open(tmp_path / "none", enabled=False)
    assert not server.enabled and server.files == {}
    with server.request("m", VALID) as r, server.batch([r]) as b, b.run():
        assert serving.current() is r
    with server.step("e") as step:
        step.decode(r)
    server.close()
    assert not (tmp_path / "none").exists()


def test_a_closed_server_ignores_calls(server, tmp_path):
    r = server.request("m")
    server.close()
    server.close()
    r.responded()
    with server.request("m"):
        pass
    assert server.counts()["requests"] == 0 and len(requests_of(tmp_path)) == 1


def test_requests_of_another_server_are_refused(server, tmp_path):
    other = serving.open(enabled=False)
    with pytest.raises(ValueError, match="another server"):
        server.batch([other.request("m")])


# ---- the current request ----

def test_it_is_the_same_in_tasks_threads_and_executors(server):
    async def task():
        await asyncio.sleep(0)
        return serving.current()

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(serving.ThreadPoolExecutor(1))
        with server.request("m") as r:
            assert await asyncio.gather(task(), task()) == [r, r]
            assert await asyncio.to_thread(serving.current) is r
            assert await loop.run_in_executor(None, serving.current) is r
            with concurrent.futures.ThreadPoolExecutor(1) as plain:
                assert plain.submit(serving.current).result() is None
                assert plain.submit(serving.carried(serving.current)).result() is r
        assert serving.current() is None
    asyncio.run(main())


def test_tasks_side_by_side_do_not_meet(server):
    async def one():
        with server.request("m") as r:
            for _ in range(5):
                await asyncio.sleep(0)
                assert serving.current() is r
            return r.id

    async def main():
        return await asyncio.gather(*(one() for _ in range(50)))
    assert len(set(asyncio.run(main()))) == 50


def test_threads_give_each_request_a_number(server, tmp_path):
    def work():
        for _ in range(200):
            with server.request("m"):
                pass
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({r["request_id"] for r in closed(server, tmp_path)}) == 800


def test_a_generator_that_is_closed_elsewhere(server):
    def parts():
        with server.request("m"):
            yield 1
            yield 2
    g = contextvars.copy_context().run(lambda: (lambda g: (next(g), g))(parts())[1])
    g.close()
    assert serving.current() is None


# ---- trace context ----

def test_context_in_and_out(server, tmp_path):
    with server.request("m", VALID, "vendor=1") as r:
        assert r.traceparent.split("-")[1] == VALID.split("-")[1] and r.span_id != VALID.split("-")[2]
    with server.request("m", VALID[:-1]) as bad:
        pass
    with server.request("m") as own:
        assert own.traceparent == f"00-{own.trace_id}-{own.span_id}-01"
    server.close()
    found = ask(tmp_path / FORMS[0], "select key, string_value as v from args where key in ('debug.span_id', 'debug.parent_span_id', 'debug.otel_trace_state') order by 2")
    assert sorted(f["v"] for f in found) == sorted(["00f067aa0ba902b7", "vendor=1", r.span_id, own.span_id])
    assert bad.span_id not in [f["v"] for f in found]


# ---- engines ----

def test_steps_make_report_llm(server, tmp_path):
    a, b = server.request("llm"), server.request("llm")
    with server.step("engine 0", kv_used=10, kv_total=100, waiting=1) as s:
        s.prefill(a, 32, tokens_out=1)
    with server.step("engine 0") as s:
        s.prefill(b, 16, 1, cached=8)
        s.decode(a, position=33)
    with pytest.raises(KeyError), server.step("engine 0") as s:
        s.decode(a)
        raise KeyError
    a.preempted()
    a.resumed()
    a.streamed(2)
    b.transferred("engine 0", "engine 1", 4096, 1, 2)
    a.responded()
    b.responded()
    counts = server.counts()
    server.flush()
    counts = server.counts()
    assert (counts["steps"], counts["step_members"], counts["tokens_in"], counts["tokens_out"]) == (3, 4, 50, 3)
    server.close()
    rows = ask(tmp_path / FORMS[0], "select prompt_tokens as p, cached_tokens as c, output_tokens as o from request order by request_id")
    assert [(r["p"], r["c"], r["o"]) for r in rows] == [(32, 0, 2), (24, 8, 1)]
    said = subprocess.run([STAVE, "report", "llm", str(tmp_path / FORMS[0])], capture_output=True, text=True)
    assert said.returncode == 0 and "engine" in said.stdout


# ---- outside of the queue ----

def test_transport(server, tmp_path):
    requests = [server.request("m") for _ in range(3)]
    for r in requests:
        r.responded()
    requests[0].transport(1, 2, 3, 4)
    requests[1].transport(parse_ns=5, write_ns=6)
    with pytest.raises(TypeError):
        requests[2].transport(read_ns="soon")
    server.close()
    requests[2].transport(7)
    rows = ask(tmp_path / FORMS[0], "select read_ns, parse_ns, serialise_ns, write_ns from request order by request_id")
    assert [tuple(r.values()) for r in rows] == [(1, 2, 3, 4), (None, 5, None, 6), (None, None, None, None)]


# ---- middleware ----

def drive(app, scope, messages=({"type": "http.request", "body": b""},)):
    sent, left = [], list(messages)

    async def receive():
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)
    asyncio.run(app({"type": "http", "path": "/p", "headers": [], **scope}, receive, send))
    return sent


def answers(status, seen):
    async def app(scope, receive, send):
        seen.append(serving.current())
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})
    return app


def test_asgi(server, tmp_path):
    seen = []
    sent = drive(serving.asgi(answers(200, seen), server), {"headers": [(b"traceparent", VALID.encode())]})
    assert dict(sent[0]["headers"])[b"traceparent"].decode() == seen[0].traceparent
    assert drive(serving.asgi(answers(503, seen), server, model="named"), {})[0]["headers"] == []

    async def gone(scope, receive, send):
        await receive()
        assert (await receive())["type"] == "http.disconnect"
    drive(serving.asgi(gone, server, model=lambda scope: scope["path"] + "!"), {})

    async def raises(scope, receive, send):
        raise OSError("disk")
    with pytest.raises(OSError):
        drive(serving.asgi(raises, server), {})

    async def batched(scope, receive, send):
        with server.batch([serving.current()]) as b, b.run():
            pass
        await answers(200, seen)(scope, receive, send)
    drive(serving.asgi(batched, server), {})
    rows = closed(server, tmp_path)
    assert [(r["model"], r["outcome"]) for r in rows] == [("/p", "responded"), ("named", "failed"), ("/p!", "cancelled"), ("/p", "failed"), ("/p", "responded")]
    assert len({r["batch_id"] for r in rows}) == len(batches_of(tmp_path)) == 5  # one each: none was in two


def test_asgi_passes_other_scopes_on(server, tmp_path):
    async def app(scope, receive, send):
        assert serving.current() is None
    asyncio.run(serving.asgi(app, server)({"type": "lifespan"}, None, None))
    assert closed(server, tmp_path) == []


def test_wsgi(server, tmp_path):
    def app(environ, start_response):
        if environ["PATH_INFO"] == "/raise":
            raise OSError("disk")
        assert serving.current() is not None
        start_response("500 no" if environ["PATH_INFO"] == "/500" else "200 OK", [])
        return [b"a", b"b"]
    traced, heads = serving.wsgi(app, server), []
    for path in ("/ok", "/500"):
        body = traced({"PATH_INFO": path, "HTTP_TRACEPARENT": VALID}, lambda status, headers, *more: heads.append(dict(headers)))
        assert b"".join(body) == b"ab"
        body.close()
    assert all(h["traceparent"].startswith(VALID[:36]) for h in heads)
    with pytest.raises(OSError):
        traced({"PATH_INFO": "/raise"}, lambda *words: None)
    assert serving.current() is None
    assert [(r["model"], r["outcome"]) for r in closed(server, tmp_path)] == [("/ok", "responded"), ("/500", "failed"), ("/raise", "failed")]


def test_a_starlette_application(server, tmp_path):
    pytest.importorskip("starlette", reason="starlette is not installed (package python3-starlette)")
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def hello(request):
        return PlainTextResponse(str(serving.current().id))
    app = Starlette(routes=[Route("/hello", hello)])
    app.add_middleware(serving.AsgiMiddleware, server=server)
    scope = {"method": "GET", "path": "/hello", "query_string": b"", "raw_path": b"/hello", "root_path": "", "scheme": "http", "server": ("h", 80)}
    sent = drive(app, scope)
    rows = closed(server, tmp_path)
    assert sent[0]["status"] == 200 and int(sent[1]["body"]) == rows[0]["request_id"] and rows[0]["outcome"] == "responded"


def grpc_handler(grpc, seen):
    def hello(request, context):
        seen.append(serving.current())
        if request == b"abort":
            context.abort(grpc.StatusCode.NOT_FOUND, "no")
        return request

    def several(request, context):
        for i in range(3):
            yield b"%d" % serving.current().id
    handlers = {"Hello": grpc.unary_unary_rpc_method_handler(hello), "Several": grpc.unary_stream_rpc_method_handler(several)}
    return grpc.method_handlers_generic_handler("s", handlers)


def test_grpc(server, tmp_path):
    grpc = pytest.importorskip("grpc", reason="grpcio is not installed (package python3-grpcio)")
    seen = []
    served = grpc.server(concurrent.futures.ThreadPoolExecutor(2), interceptors=[serving.grpc_interceptor(server)])
    served.add_generic_rpc_handlers([grpc_handler(grpc, seen)])
    port = served.add_insecure_port("127.0.0.1:0")
    served.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/s/Hello")
        answer, done = call.with_call(b"x", metadata=(("traceparent", VALID),), timeout=60)
        assert answer == b"x" and dict(done.trailing_metadata())["traceparent"] == seen[0].traceparent
        with pytest.raises(grpc.RpcError):
            call(b"abort", timeout=60)
        assert len(set(channel.unary_stream("/s/Several")(b"", timeout=60))) == 1
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/s/None")(b"", timeout=60)
    served.stop(None).wait()
    rows = closed(server, tmp_path)
    assert [(r["model"], r["outcome"]) for r in rows] == [("/s/Hello", "responded"), ("/s/Hello", "failed"), ("/s/Several", "responded")]


def test_grpc_aio(server, tmp_path):
    grpc = pytest.importorskip("grpc", reason="grpcio is not installed (package python3-grpcio)")

    async def hello(request, context):
        await asyncio.sleep(0)
        return b"%d" % serving.current().id

    async def main():
        served = grpc.aio.server(interceptors=[serving.grpc_interceptor(server, "aio", aio=True)])
        served.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("s", {"Hello": grpc.unary_unary_rpc_method_handler(hello)})])
        port = served.add_insecure_port("127.0.0.1:0")
        await served.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            ids = await asyncio.gather(*(channel.unary_unary("/s/Hello")(b"", timeout=60) for _ in range(5)))
        await served.stop(None)
        return {int(i) for i in ids}
    ids = asyncio.run(main())
    assert {r["request_id"] for r in closed(server, tmp_path)} == ids and len(ids) == 5


# ---- processes, files ----

def test_it_joins_the_session_that_runs(py):
    py.run('''
import stave.serving
with stave.serving.open("served") as server, server.request("m"):
    assert set(server.files) == {"json", "csv"}, server.files
''', env={"STAVE_OUT": "t.pftrace"})
    assert py.ask("select outcome from request") == [{"outcome": "responded"}]


def test_a_killed_server_is_recovered(py):
    py.run('''
import os, stave.serving
server = stave.serving.open("served")
for i in range(100):
    with server.request("m"): pass
os.kill(os.getpid(), 9)
''', code=-9)
    path = py.folder / "served" / FORMS[0]
    done = subprocess.run([STAVE, "recover", str(path)], capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    assert ask(path, "select count(*) as n from request where outcome = 'responded'") == [{"n": 100}]


def test_the_stub_names_everything():
    from stave import _serving
    for module, stub, names in ((serving, "serving.pyi", serving.__all__), (_serving, "_serving.pyi", dir(_serving))):
        with open(os.path.join(os.environ["SRC"], "lib/python/stave", stub)) as f:
            text = f.read()
        assert not [n for n in names if not n.startswith("__") and n not in text]
    with open(os.path.join(os.environ["SRC"], "lib/python/stave/_serving.pyi")) as f:
        bodies = dict(part.split(":", 1) for part in f.read().split("\nclass ")[1:])
    for name, body in bodies.items():
        assert not [n for n in vars(getattr(_serving, name.split("(")[0])) if not n.startswith("__") and f"def {n}(" not in body], name


def test_one_of_so_many_is_recorded(tmp_path):
    sampled, not_sampled = VALID, VALID[:-2] + "00"
    with serving.open(tmp_path, rate=4) as server:
        server.worker(0)
        made = [server.request("m") for _ in range(16)]
        kept = [r for r in made if r.enabled]
        assert len(kept) == 4
        assert {r.traceparent[-2:] for r in kept} == {"01"} and {r.traceparent[-2:] for r in made if not r.enabled} == {"00"}
        others = [r for r in made if not r.enabled][:2]
        with server.batch(others) as nobody, nobody.run(0):
            pass
        with server.batch(made) as some, some.run(0):
            pass
        with server.step("e") as step:
            step.decode(others[0])
        for r in made:
            r.responded()
        server.sample(by_parent=True)
        with server.request("m", sampled) as yes, server.request("m", not_sampled) as no:
            assert yes.enabled and not no.enabled
        server.sample()
        with server.request("m") as everybody:
            assert everybody.enabled
        assert server.counts()["lost"] == 0
    for form in FORMS:
        rows = requests_of(tmp_path, form)
        assert [r["request_id"] for r in rows if r["outcome"] == "responded"] == sorted([r.id for r in kept] + [yes.id, everybody.id]), form
        assert [(b["batch_id"], b["size"]) for b in batches_of(tmp_path, form) if b["batch_id"] is not None] == [(some.id, 4)], form


def test_only_slow_requests_are_kept(tmp_path):
    with serving.open(tmp_path, keep="slow > 50ms") as server:
        begin = stave.now_ns()
        for i, took_ms in enumerate((10, 20, 60, 10)):
            t = begin + i * 10**9
            requests = [server.request("m", time_ns=t) for _ in range(2)]
            batch = server.batch(requests, start_ns=t + 1000, end_ns=t + 2000)
            batch.submitted(t + 3000)
            batch.started(0, t + 4000)
            batch.finished(t + took_ms * 10**6)
            batch.callback(t + took_ms * 10**6, t + took_ms * 10**6 + 1)
            for r in requests:
                r.responded(t + took_ms * 10**6 + 10)
        server.request("m", time_ns=begin).failed("no memory", begin + 5)
        with pytest.raises(ValueError, match="expected all, failed"):
            server.keep("slow")
        server.flush()
        assert (server.counts()["left_out"], server.counts()["left_out_batches"]) == (6, 3)
    rows = [requests_of(tmp_path, form) for form in FORMS]
    assert rows[0] == rows[1] == rows[2]
    assert [(r["outcome"], r["dur"]) for r in rows[0]] == [("responded", 60000010)] * 2 + [("failed", 5)]
    assert rows[0][0]["batch_id"] == rows[0][1]["batch_id"] and rows[0][2]["batch_id"] is None
    with pytest.raises(ValueError, match="keep: 'p100'"):
        serving.open(tmp_path / "other", keep="p100")


# When the client left, whether that was reported before the batch, and whether the request is in the batch (collected at 1000).
@pytest.mark.parametrize("left_ns, is_first, is_in", [(500, True, False), (500, False, False), (1000, True, False), (1000, False, False), (1500, True, True), (1500, False, True)])
def test_a_client_that_leaves_while_its_batch_is_collected(server, tmp_path, left_ns, is_first, is_in):
    leaver, stayer = server.request("m"), server.request("m")
    t = stave.now_ns()
    for r in (leaver, stayer):
        r.dequeued(t)
    if is_first:
        leaver.cancelled(t + left_ns)
    batch = server.batch([leaver, stayer], start_ns=t, end_ns=t + 1000)
    if not is_first:
        leaver.cancelled(t + left_ns)
    batch.submitted(t + 2000)
    batch.started(0, t + 3000)
    batch.finished(t + 4000)
    batch.callback(t + 4000, t + 5000)
    stayer.responded(t + 6000)
    rows = closed(server, tmp_path)
    assert [(r["outcome"], r["batch_id"]) for r in rows] == [("cancelled", batch.id if is_in else None), ("responded", batch.id)]
    assert subprocess.run([STAVE, "export", "-q", str(tmp_path / FORMS[0]), "--to", "otlp", "-o", str(tmp_path / "spans.jsonl")]).returncode == 0
    assert [requests_of(tmp_path, form) for form in (*FORMS[1:], "spans.jsonl")] == [rows] * 3
    batches = batches_of(tmp_path)
    assert [b["size"] for b in batches] == [2] and [batches_of(tmp_path, form) for form in (*FORMS[1:], "spans.jsonl")] == [batches] * 3


# ---- a whole server ----

def test_an_asyncio_server_with_dynamic_batching(tmp_path):
    done = subprocess.run([sys.executable, os.path.join(HERE, "serving_server.py"), str(tmp_path)], capture_output=True, text=True, env=NO_OUT, timeout=300)
    assert done.returncode == 0, done.stderr
    saw = json.loads(done.stdout)
    rows = [requests_of(tmp_path, form) for form in FORMS]
    assert rows[0] == rows[1] == rows[2]
    batches = [batches_of(tmp_path, form) for form in FORMS]
    assert batches[0] == batches[1] == batches[2]
    counts = {}
    for r in rows[0]:
        counts[r["outcome"]] = counts.get(r["outcome"], 0) + 1
    # A client that leaves may have been refused or answered before the server saw it go.
    assert sum(counts.values()) == saw["sent"] and saw["lost"] == 0
    assert counts["failed"] == saw["error"]
    refused, answered, cancelled = (counts.get(k, 0) - saw.get(v, 0) for k, v in (("rejected", "busy"), ("responded", "ok"), ("cancelled", "none")))
    assert refused >= 0 and answered >= 0 and refused + answered + cancelled == saw["left"]
    sent = subprocess.run([STAVE, "export", "-q", str(tmp_path / FORMS[0]), "--to", "otlp", "-o", str(tmp_path / "spans.jsonl")], capture_output=True, text=True)
    assert sent.returncode == 0, sent.stderr
    assert requests_of(tmp_path, "spans.jsonl") == rows[0] and batches_of(tmp_path, "spans.jsonl") == batches[0]
    sizes = {}
    for r in rows[0]:
        if r["batch_id"] is not None:
            sizes[r["batch_id"]] = sizes.get(r["batch_id"], 0) + 1
    assert sizes == {b["batch_id"]: b["size"] for b in batches[0]} and max(sizes.values()) > 1
    reports = {}
    for verb in (["report", "batch", "--json"], ["explain", "--json"], ["report", "llm", "--json"]):
        said = subprocess.run([STAVE, *verb, str(tmp_path / FORMS[0])], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        reports[verb[1] if verb[0] == "report" else verb[0]] = said.stdout
    summary = json.loads(reports["batch"])["summary"]
    assert summary["open"] == 0
    assert (summary["requests"], summary["rejected"], summary["failed"], summary["batches"]) == (
        counts["responded"], counts.get("rejected", 0), counts["failed"], len(sizes))
    assert "request" in reports["explain"]
    page = subprocess.run([STAVE, "view", "--export", str(tmp_path / "page.html"), str(tmp_path / FORMS[0])], capture_output=True, text=True)
    assert page.returncode == 0 and "Serving" in (tmp_path / "page.html").read_text(), page.stderr
