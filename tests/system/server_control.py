"""A client for server_control.sh: `server_control.py PORT WHAT…` exits with 0 when what it checks holds, else it says why not."""
import gzip
import http.client
import json
import sys
import time
import zlib

PORT, WHAT, *REST = int(sys.argv[1]), *sys.argv[2:]
INPUT = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 32], "data": [0.5] * 32}]}).encode()
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"


def call(method, path, body=None, headers=None):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    c.request(method, path, body=body, headers=headers or {})
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, data, r


def setting(values=None, path="/v2/trace/setting", status=200, headers=None):
    got, data, _ = call("GET" if values is None else "POST", path, None if values is None else values if isinstance(values, bytes) else json.dumps(values), headers)
    assert got == status, (path, values, got, data)
    return json.loads(data)


def infer(n=1, flags=None, model="mlp"):
    """Numbers of the requests; with flags, those with a traceparent in the answer."""
    found = []
    for _ in range(n):
        status, data, r = call("POST", f"/v2/models/{model}/infer", INPUT, {} if flags is None else {"traceparent": PARENT + flags})
        assert status == 200, (status, data)
        if flags is None or r.getheader("traceparent"):
            found.append(json.loads(data)["parameters"]["request_id"])
    return found


def switch():
    """Of a server that does not trace yet: what is asked for while it is on, prints how many requests the trace must have."""
    first = setting()
    assert first["trace_level"] == ["OFF"] and first["trace_rate"] == "1" and first["trace_count"] == "-1", first
    infer(3)
    now = setting({"trace_level": ["TIMESTAMPS"], "trace_file": REST[0]})
    assert now["trace_level"] == ["TIMESTAMPS"] and now["trace_file"] == REST[0], now
    infer(5)  # 5
    setting({"trace_rate": "4"})
    infer(40)  # 10
    setting({"trace_rate": 1, "trace_count": "6"})
    infer(10)  # 6
    assert setting()["trace_count"] == "0"
    setting({"trace_count": None})
    infer(2)  # 2
    own = setting({"trace_level": ["OFF"]}, "/v2/models/mlp/trace/setting")
    assert own["trace_level"] == ["OFF"] and setting()["trace_level"] == ["TIMESTAMPS"], own
    infer(3)
    infer(4, model="other")  # 4
    setting({"trace_level": None}, "/v2/models/mlp/trace/setting")
    setting({"trace_by_parent": "true"})
    assert len(infer(3, "1")) == 3 and not infer(3, "0")  # 3
    setting({"trace_by_parent": None, "trace_level": "OFF"})
    infer(3)
    assert infer(3, "1") == []  # an answer names no span that is in no trace
    setting({"trace_level": ["TIMESTAMPS"]})
    infer(1)  # 1
    print(31)


def refused():
    """Settings that are not valid: an error that names them, and nothing is changed."""
    before = setting()
    for body, word in ((b"", "JSON"), (b"[]", "object"), (b"{", "JSON"), ({"trace_rate": "0"}, "trace_rate"), ({"trace_rate": "x"}, "trace_rate"),
                       ({"trace_rate": ""}, "trace_rate"), ({"trace_count": -2}, "trace_count"), ({"trace_level": ["TENSORS"]}, "trace_level"),
                       ({"trace_level": 5}, "trace_level"), ({"trace_levels": ["OFF"]}, "trace_levels"), ({"trace_mode": "opentelemetry"}, "trace_mode"),
                       ({"log_frequency": "5"}, "log_frequency"), ({"trace_level": ["OFF"], "trace_file": "/elsewhere"}, "trace_file"),
                       ({"trace_keep": "slow > 5"}, "trace_keep"), ({"trace_keep": 5}, "trace_keep"), ({"trace_keep": ""}, "trace_keep"),
                       ({"trace_by_parent": "maybe"}, "trace_by_parent"), ({"trace_level": "OFF", "trace_rate": "0"}, "trace_rate")):
        said = setting(body, status=400)["error"]
        assert word in said, (body, said)
    assert setting({"log_frequency": "0", "trace_mode": "triton"}) == before
    setting({}, "/v2/models/none/trace/setting", 404)
    assert "whole server" in setting({"trace_keep": "p99"}, "/v2/models/mlp/trace/setting", 400)["error"]
    setting({}, "/v2/trace/settings", 404)
    assert setting() == before


def keep():
    """Seven that are left out, two that are kept when all are; nobody is slow."""
    assert setting()["trace_keep"] == "slow > 600s"
    infer(4)
    assert setting({"trace_keep": "failed"})["trace_keep"] == "failed"
    infer(3)
    for _ in range(6000):  # the last batch is over a little after its answer
        if b'inference_inflight_tasks{model="mlp"} 0.0\n' in call("GET", "/metrics")[1]:
            break
        time.sleep(0.01)
    else:
        sys.exit("the last batch is not over")
    setting({"trace_keep": "all"})
    infer(2)
    assert setting({"trace_keep": None})["trace_keep"] == "slow > 600s"


def another_user():
    """He may see, not set; the token makes no difference to who has none."""
    setting()
    setting({"trace_level": ["OFF"]}, status=403)
    setting({"trace_level": ["OFF"]}, "/v2/models/mlp/trace/setting", status=403)
    setting({"trace_level": ["OFF"]}, status=403, headers={"Authorization": "Bearer wrong"})
    if REST:
        setting({"trace_rate": "1"}, headers={"Authorization": "Bearer " + REST[0]})


def packed():
    """Bodies that were packed: the same answer, bounded whatever they unpack to, and what is no gzip is refused."""
    path, status = "/v2/models/mlp/infer", lambda body, how: call("POST", path, body, {"Content-Encoding": how})[:2]
    plain = json.loads(call("POST", path, INPUT)[1])["outputs"]
    for how in ("gzip", "GZIP"):
        got, data = status(gzip.compress(INPUT), how)
        assert got == 200 and json.loads(data)["outputs"] == plain, (how, got, data)
    assert status(INPUT, "identity")[0] == 200
    limit = int(REST[0])
    padded = INPUT[:-1] + b" " * (limit - len(INPUT)) + b"}"
    assert status(gzip.compress(padded), "gzip")[0] == 200  # as much as may be
    got, data = status(gzip.compress(padded + b" "), "gzip")
    assert got == 413 and b"at most" in data, (got, data)
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([bomb.compress(b" " * (1 << 20)) for _ in range(64)] + [bomb.flush()])
    assert len(bomb) < limit
    assert status(bomb, "gzip")[0] == 413
    for body, how, wanted in ((INPUT, "gzip", 400), (gzip.compress(INPUT)[:-9], "gzip", 400), (gzip.compress(INPUT) + b"more", "gzip", 400), (INPUT, "br", 415)):
        got, data = status(body, how)
        assert got == wanted and b"error" in data, (how, wanted, got, data)
    values = b"".join(__import__("struct").pack("<f", 0.5) for _ in range(32))  # the binary extension: its length is that of what is unpacked
    head = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 32], "parameters": {"binary_data_size": len(values)}}]}).encode()
    got, data, _ = call("POST", path, gzip.compress(head + values), {"Content-Encoding": "gzip", "Inference-Header-Content-Length": str(len(head))})
    assert got == 200 and json.loads(data)["outputs"] == plain, (got, data)


def until_stopped():
    """Clients that keep their connections, and others that connect for each request, until each of them hears that the server stops: no connection is
    reset. Prints how many were answered."""
    import os, signal, threading
    answered, wrong, enough = [], [], threading.Event()

    def one(keeps):
        c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        try:
            while True:
                c.request("POST", "/v2/models/mlp/infer", INPUT)
                r = c.getresponse()
                data = r.read()
                if r.status == 503:
                    assert r.getheader("Retry-After") and r.getheader("Connection") == "close", r.getheaders()
                    return c.close()
                assert r.status == 200, (r.status, data)
                answered.append(1)
                if len(answered) > 200:
                    enough.set()
                if not keeps:
                    c.close()
        except ConnectionRefusedError:  # the port is closed: only for who comes after the end
            if keeps:
                wrong.append("refused")
        except Exception as error:
            wrong.append(repr(error))
    clients = [threading.Thread(target=one, args=(i % 2,)) for i in range(8)]
    for t in clients:
        t.start()
    assert enough.wait(120)
    os.kill(int(REST[0]), signal.SIGTERM)
    for t in clients:
        t.join()
    assert not wrong, wrong
    print(len(answered))


globals()[WHAT]()
