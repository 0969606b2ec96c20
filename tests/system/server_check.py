"""Looks at stave-server from outside: its answers, and the files it leaves. Nothing but Python, and nothing of the server's own code.

    server_check.py numbers PORT FOLDER     answers of the models in FOLDER against networks computed here, one multiplication at a time
    server_check.py refusals PORT           requests that make no sense: status and JSON error
    server_check.py framing PORT            requests whose length can be read in two ways
    server_check.py quotas PORT             bodies that do not end: bytes are limited by client (700 kB) and together (1 MB), a request to 500 kB
    server_check.py slow PORT               clients that take their time, 400 of them; the server gives 300 ms to headers and to bodies
    server_check.py files JSON CSV N        the trace of N requests: format, arithmetic, each request in exactly one batch
    server_check.py starpu TEXT             `stave cat` of the time line: what StarPU said of each batch against what the server did
"""
import csv
import http.client
import json
import math
import os
import random
import re
import socket
import struct
import sys
import time

failed = []


def check(name, condition, detail=""):
    print(("ok " if condition else "not ok ") + name + ("" if condition else ": %s" % (detail,)))
    if not condition:
        failed.append(name)


# ---- numbers ----

def load(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + n]), raw[8 + n:]
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            tensors[name] = (t["shape"], struct.unpack("<%df" % ((end - begin) // 4), data[begin:end]))
    return header["__metadata__"], tensors


def forward(model, row):
    meta, tensors = model
    dims = [int(d) for d in meta["stave.input"].split("x")]
    volume = dims if len(dims) == 3 else [dims[0], 1, 1]
    x = list(row)
    for text in meta["stave.layers"].split(","):
        words = text.split()
        c, h, w = volume
        if words[0] == "dense":
            (rows, cols), weight = tensors[words[1] + ".weight"]
            bias = tensors[words[1] + ".bias"][1]
            x = [bias[o] + math.fsum(weight[o * cols + i] * x[i] for i in range(cols)) for o in range(rows)]
            volume = [rows, 1, 1]
        elif words[0] == "conv":
            (rows, _, k, _), weight = tensors[words[1] + ".weight"]
            bias, out = tensors[words[1] + ".bias"][1], []
            for o in range(rows):
                for y in range(h):
                    for z in range(w):
                        s = [bias[o]]
                        for i in range(c):
                            for dy in range(k):
                                for dz in range(k):
                                    yy, zz = y + dy - k // 2, z + dz - k // 2
                                    if 0 <= yy < h and 0 <= zz < w:
                                        s.append(weight[((o * c + i) * k + dy) * k + dz] * x[(i * h + yy) * w + zz])
                        out.append(math.fsum(s))
            x, volume = out, [rows, h, w]
        elif words[0] == "maxpool":
            k = int(words[1])
            x = [max(x[(i * h + y * k + a) * w + z * k + b] for a in range(k) for b in range(k))
                 for i in range(c) for y in range(h // k) for z in range(w // k)]
            volume = [c, h // k, w // k]
        else:
            x = [math.fsum(x[i * h * w:(i + 1) * h * w]) / (h * w) for i in range(c)]
            volume = [c, 1, 1]
        if words[-1] == "relu":
            x = [max(v, 0.0) for v in x]
        elif words[-1] == "softmax":
            top = max(x)
            e = [math.exp(v - top) for v in x]
            x = [v / sum(e) for v in e]
    return x


def post(port, path, body, headers=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("POST", path, body, headers or {})
    r = c.getresponse()
    return r.status, r.headers, r.read()


def ask(port, model, shape, values, binary=False, nested=False):
    entry = {"name": "input", "datatype": "FP32", "shape": shape}
    if binary:
        tail = struct.pack("<%df" % len(values), *values)
        entry["parameters"] = {"binary_data_size": len(tail)}
        head = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
        status, headers, raw = post(port, "/v2/models/%s/infer" % model, head + tail,
                                    {"Inference-Header-Content-Length": str(len(head))})
        n = int(headers["Inference-Header-Content-Length"])
        answer = json.loads(raw[:n])
        size = answer["outputs"][0]["parameters"]["binary_data_size"]
        assert len(raw) - n == size
        return status, answer, struct.unpack("<%df" % (size // 4), raw[n:])
    step = len(values) // shape[0]
    entry["data"] = [values[i:i + step] for i in range(0, len(values), step)] if nested else values
    status, _, raw = post(port, "/v2/models/%s/versions/1/infer" % model, json.dumps({"id": "mine", "inputs": [entry]}))
    answer = json.loads(raw)
    return status, answer, answer["outputs"][0]["data"]


def numbers(port, folder):
    source = random.Random(3)
    for model, dims in (("mlp", [32]), ("conv", [1, 16, 16])):
        if not os.path.exists(os.path.join(folder, model + ".yml")):
            continue
        network = load(os.path.join(folder, model + ".safetensors"))
        size = math.prod(dims)
        for rows, binary, nested in ((1, False, False), (3, False, True), (5, True, False)):
            values = [struct.unpack("<f", struct.pack("<f", source.uniform(-1, 1)))[0] for _ in range(rows * size)]
            status, answer, got = ask(port, model, [rows] + dims, values, binary, nested)
            want = [v for r in range(rows) for v in forward(network, values[r * size:(r + 1) * size])]
            worst = max(abs(a - b) for a, b in zip(got, want)) if len(got) == len(want) else 9
            name = "numbers_%s_%d_%s" % (model, rows, "binary" if binary else "json")
            check(name, status == 200 and worst < 1e-5, (status, worst, answer))
            check(name + "_said", answer["model_name"] == model and answer["outputs"][0]["shape"][0] == rows
                  and answer["parameters"]["batch_size"] >= rows and (binary or answer["id"] == "mine"), answer)


# ---- refusals ----

def refusals(port):
    good = {"name": "input", "datatype": "FP32", "shape": [1, 32], "data": [0.0] * 32}
    rows = [
        ("no_json", "POST", "/v2/models/mlp/infer", b"{nonsense", 400, "JSON"),
        ("no_body", "POST", "/v2/models/mlp/infer", b"", 400, "body"),
        ("deep", "POST", "/v2/models/mlp/infer", b"[" * 100000, 400, "JSON"),
        ("no_inputs", "POST", "/v2/models/mlp/infer", b"{}", 400, "inputs"),
        ("shape", "POST", "/v2/models/mlp/infer", json.dumps({"inputs": [dict(good, shape=[1, 31])]}), 400, "rows, 32"),
        ("short", "POST", "/v2/models/mlp/infer", json.dumps({"inputs": [dict(good, data=[1])]}), 400, "fewer"),
        ("rows", "POST", "/v2/models/mlp/infer", json.dumps({"inputs": [dict(good, shape=[5000, 32])]}), 400, "at most"),
        ("type", "POST", "/v2/models/mlp/infer", json.dumps({"inputs": [dict(good, datatype="INT64")]}), 400, "FP32"),
        ("large", "POST", "/v2/models/mlp/infer", b" " * 2000000, 413, "max_message_bytes"),
        ("model", "POST", "/v2/models/none/infer", b"{}", 404, "model"),
        ("version", "GET", "/v2/models/mlp/versions/7", None, 404, "version"),
        ("address", "GET", "/v3", None, 404, "address"),
        ("long_address", "GET", "/v2/models/" + "x" * 5000, None, 404, "model"),
        ("method", "GET", "/v2/models/mlp/infer", None, 405, "POST"),
        ("method_put", "PUT", "/v2", b"x", 405, "GET"),
        ("method_post", "POST", "/v2/health/live", b"x", 405, "GET"),
    ]
    for name, method, path, body, status, says in rows:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            c.request(method, path, body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before its end
        try:
            r = c.getresponse()
            text = r.read()
            check("refused_" + name, r.status == status and says in json.loads(text)["error"], (r.status, text))
        except (ConnectionResetError, http.client.RemoteDisconnected) as e:
            check("refused_" + name, status == 413, e)
    for path, want in (("/v2", "extensions"), ("/v2/health/live", "live"), ("/v2/health/ready", "ready"),
                       ("/v2/models/mlp", "inputs"), ("/v2/models/mlp/versions/1/ready", "ready"), ("/v2/models", "models")):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request("GET", path)
        r = c.getresponse()
        check("answered" + path.replace("/", "_"), r.status == 200 and want in json.loads(r.read()))
    # Half a request, then silence and the end: others are still answered.
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.connect()
    c.sock.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"inp")
    c.close()
    check("answered_after_half", ask(port, "mlp", [1, 32], [0.5] * 32)[0] == 200)


# ---- limits ----

def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))


def reply(s):
    """Status and text of one answer, (0, "") when the connection ended without one."""
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
            head, found, body = got.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.I)
            if found and length and len(body) >= int(length.group(1)):
                break
    except ConnectionResetError:
        pass
    return (int(got.split()[1]) if got.startswith(b"HTTP/") else 0), got.decode(errors="replace")


def closed(s):
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def is_live(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("GET", "/v2/health/live")
    return c.getresponse().status == 200


def framing(port):
    post = b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\n"
    chunk = b"5\r\nhello\r\n0\r\n\r\n"
    rows = [
        ("both", post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk),
        ("both_swapped", post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunk),
        ("two_lengths", post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        ("same_lengths", post + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        ("length_list", post + b"Content-Length: 5, 5\r\n\r\nhello"),
        ("negative", post + b"Content-Length: -5\r\n\r\nhello"),
        ("plus", post + b"Content-Length: +5\r\n\r\nhello"),
        ("hex", post + b"Content-Length: 0x5\r\n\r\nhello"),
        ("two_encodings", post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunk),
        ("other_encoding", post + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk),
        ("odd_encoding", post + b"Transfer-Encoding: xchunked\r\n\r\n" + chunk),
        ("blank_in_name", post + b"Content-Length : 5\r\n\r\nhello"),
        ("http_1_0", post.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + chunk),
    ]
    for name, request in rows:
        s = connect(port)
        s.sendall(request + b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")  # what a smuggler would hide behind it
        status, text = reply(s)
        check("framing_" + name, status in (400, 0) and closed(s) and "live" not in text, (status, text))
        s.close()
    # Folded headers: whoever unfolds them sees another length than whoever does not.
    folded = [
        ("length", b"Content-Length: 1\r\n 0\r\n\r\nhello"),
        ("encoding", b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\nhello"),
        ("inside", b"Transfer-Encoding: ch\r\n\tunked\r\nContent-Length: 5\r\n\r\nhello"),
    ]
    for name, rest in folded:
        s = connect(port)
        s.sendall(post + rest)
        status, text = reply(s)
        check("folded_" + name, status == 400 and "folded" in text and closed(s), (status, text))
        s.close()
    s = connect(port)
    s.sendall(post + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
    check("framing_chunked_alone", reply(s)[0] == 400)  # it is taken: "hello" is no request of a model
    huge = connect(port)
    huge.sendall(post + b"Content-Length: 999999999999\r\nExpect: 100-continue\r\n\r\n")
    check("framing_huge_is_refused_unread", reply(huge)[0] == 413)
    check("framing_others_are_served", is_live(port))


def begin_body(port, declared, sent, source="127.0.0.1"):
    s = connect(port, source)
    s.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % declared + b"x" * sent)
    return s


def pending(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("GET", "/metrics")
    return float(re.search(r"^http_pending_bytes (\S+)", c.getresponse().read().decode(), re.M).group(1))


def until(condition):
    for _ in range(1200):
        if condition():
            return True
        time.sleep(0.05)
    return False


def quotas(port):
    held = [begin_body(port, 490000, 480000)]
    check("quota_held", until(lambda: pending(port) >= 480000), pending(port))
    over = begin_body(port, 490000, 480000)
    status, text = reply(over)
    check("quota_client", status in (429, 0) and closed(over), (status, text))
    check("quota_client_gives_back", until(lambda: pending(port) < 500000), pending(port))
    held.append(begin_body(port, 400000, 390000, "127.0.0.2"))
    check("quota_others_are_taken", until(lambda: pending(port) > 850000), pending(port))
    over = begin_body(port, 400000, 390000, "127.0.0.3")
    status, text = reply(over)
    check("quota_all", status in (503, 0) and closed(over), (status, text))
    check("quota_announced_is_not_held", is_live(port) and begin_body(port, 490000, 10, "127.0.0.4") and pending(port) < 1000000)
    check("quota_others_are_served", ask(port, "mlp", [1, 32], [0.5] * 32)[0] == 200)
    for s in held:
        s.close()
    check("quota_gone_gives_back", until(lambda: pending(port) < 8192), pending(port))
    endless = connect(port)
    endless.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(1000):
            endless.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    status, text = reply(endless)
    check("quota_endless_chunks", status in (413, 0) and closed(endless), (status, text))


def slow(port):
    post = b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    beginnings = (b"", b"POST /v2/mo", post, post + b"\r\n{\"inp")
    held = []
    for i in range(400):
        s = connect(port)
        s.sendall(beginnings[i % 4])
        held.append(s)
    check("slow_others_are_served", is_live(port) and ask(port, "mlp", [1, 32], [0.5] * 32)[0] == 200)
    answers = [reply(s) for s in held]
    check("slow_are_reported", all(status == 408 for status, _ in answers), [a for a in answers if a[0] != 408][:2])
    check("slow_are_closed", all(closed(s) for s in held))
    dripping = connect(port)
    dripping.sendall(post)
    try:
        for _ in range(100000):  # each byte is a sign of life
            dripping.sendall(b"X-A: b\r\n")
            time.sleep(0.005)
    except (BrokenPipeError, ConnectionResetError):
        pass
    check("slow_dripping_is_closed", closed(dripping) or reply(dripping)[0] in (408, 0))
    idle = connect(port)
    for _ in range(3):  # one that asks again is not late
        idle.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        check("slow_again", reply(idle)[0] == 200)
        time.sleep(0.4)


# ---- files ----

COLUMNS = ("batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,"
           "submit_ms,scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms,warmup").split(",")


def check_json(path):
    with open(path) as f:
        text = f.read()
    events = json.loads(text)["traceEvents"]
    check("json_container", re.match(r'^\{[^\[]*"traceEvents":\[\n  \{', text) is not None and text.endswith("\n]\n}\n"), text[:80])
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    check("json_tracks", [names.get(i) for i in (1, 2, 3, 4)]
          == ["request enqueued", "batch", "dynamic batching", "batch submitted"], names)
    check("json_workers", any(re.match(r"worker-\d+ \(cpu\)$", n) and t >= 10 for t, n in names.items()), names)
    ids = {}
    for e in events:
        if e.get("cat") == "request":
            ids.setdefault(e["id"], []).append((e["ph"], e["name"]))
    reused = [(i, p) for i, p in ids.items() if [ph for ph, _ in p] != ["b", "e"] or p[0][1] != p[1][1]]
    check("json_ids", ids and any(p[0][1] == "warming_request" for p in ids.values()) and not reused, reused[:3])
    batching = [e for e in events if e.get("cat") == "batching"]
    enqueued, parts, prefixed = {}, {}, set()
    for e in batching:
        warm = e["name"].startswith("warming_")
        prefix = "warming_" if warm else ""
        kind = e["name"][len(prefix):]
        args = {k[len(prefix):]: v for k, v in e["args"].items() if k.startswith(prefix)}
        if warm:
            prefixed.add(kind)
        if len(args) != len(e["args"]):
            check("json_prefix", False, e)
        if kind == "request_enqueued":
            enqueued[args["request_id"]] = (warm, e["ts"])
        else:
            parts.setdefault((warm, args["batch_id"]), {})[kind if kind.startswith("batch") else "worker"] = (e, args)
    check("json_warm_up", {"request_enqueued", "batch", "batch_build", "batch_submitted", "mlp"} <= prefixed, prefixed)
    seen, wrong = {}, []
    for (warm, batch), p in parts.items():
        if set(p) != {"batch", "batch_build", "batch_submitted", "worker", "batch_over"}:
            wrong.append((batch, sorted(p)))
            continue
        bind = "0x%016X" % (batch | (1 << 63 if warm else 0))
        for kind, flags in (("batch_build", {"flow_out"}), ("batch_submitted", {"flow_in", "flow_out"}), ("worker", {"flow_in"})):
            e = p[kind][0]
            if e.get("bind_id") != bind or {k for k in e if k.startswith("flow")} != flags:
                wrong.append((batch, kind, e))
        for request in p["batch"][1]["request_ids"]:
            seen.setdefault(request, []).append(batch)
            if request not in enqueued or enqueued[request][0] != warm:
                wrong.append((batch, request))
        b, build, worker = p["batch"], p["batch_build"], p["worker"]
        if build[0]["ts"] + build[0]["dur"] > worker[0]["ts"] + 1 or b[0]["ts"] + b[0]["dur"] != b[1]["end_ts"]:
            wrong.append((batch, b, build, worker))
    check("json_batches", not wrong, wrong[:2])
    check("json_one_batch_each", all(len(b) == 1 for b in seen.values()) and set(seen) == set(enqueued),
          [(r, b) for r, b in seen.items() if len(b) != 1][:3])
    return enqueued, {b for warm, b in parts if not warm}


def check_csv(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    with open(path) as f:
        header = f.readline().strip().split(",")
    check("csv_columns", header[:len(COLUMNS)] == COLUMNS, header)
    requests, wrong = [], []
    for r in rows:
        ids = [int(i) for i in r["request_ids"].split(";")]
        arrivals = r["request_arrival_us"].split(";")
        requests += ids
        ms = {k: float(v) for k, v in r.items() if k.endswith("_ms")}
        exclusive = sum(v for k, v in ms.items() if k.startswith("excl_"))
        bad = (len(ids) != len(arrivals) or int(r["batch_size"]) < len(ids) or r["warmup"] != "false" or min(ms.values()) < 0
               or ms["submit_ms"] + 0.002 < ms["batch_ms"] or r["worker_type"] not in ("cpu", "opencl")
               or abs(exclusive - ms["total_ms"]) > 0.02 * len(ms))
        if bad:
            wrong.append((r, exclusive))
    check("csv_arithmetic", rows and not wrong, wrong[:1])
    check("csv_one_batch_each", len(set(requests)) == len(requests))
    return requests, {int(r["batch_id"]) for r in rows}


def files(json_path, csv_path, n):
    enqueued, json_batches = check_json(json_path)
    requests, csv_batches = check_csv(csv_path)
    real = {r for r, (warm, _) in enqueued.items() if not warm}
    check("files_requests", len(real) == n and set(requests) == real, (n, len(real), len(requests)))
    check("files_batches", json_batches == csv_batches, json_batches ^ csv_batches)


# ---- StarPU ----

def starpu(path):
    line = re.compile(r'^(\d+)\.(\d{9}) begin #\d+ "([^"]*)" cat="(starpu|serving)" \{(.*)\}$')
    parts = {"batch": {}, "codelet": {}, "worker": {}, "fetch data": {}, "scheduling": {}}
    with open(path) as f:
        for text in f:
            m = line.match(text)
            if not m or " batch=" not in " " + m.group(5):
                continue
            at, name = int(m.group(1)) * 10**9 + int(m.group(2)), m.group(3)
            warm = name.startswith("warming_")
            name = name[8:] if warm else name
            batch = int(re.search(r"\bbatch=(\d+)", m.group(5)).group(1))
            kind = name if m.group(4) == "starpu" or name == "batch" else "worker" if name in ("mlp", "conv") else None
            if kind in parts:
                parts[kind][batch] = (at, re.findall(r"@flow:(0x[0-9a-f]+)", m.group(5)))
    check("starpu_every_batch", parts["codelet"] and set(parts["codelet"]) == set(parts["batch"]) == set(parts["scheduling"]),
          {k: len(v) for k, v in parts.items()})
    apart = [b for b, (at, _) in parts["codelet"].items() if b in parts["worker"] and at > parts["worker"][b][0] + 50000]
    check("starpu_clock", not apart, [(parts["codelet"][b], parts["worker"][b]) for b in apart[:2]])
    loose = [b for b, (_, flows) in parts["codelet"].items() if [f in parts["batch"][b][1] for f in flows].count(True) != 1]  # another leads to StarPU's own job
    check("starpu_flows", not loose, loose[:3])


what = sys.argv[1]
if what == "numbers":
    numbers(int(sys.argv[2]), sys.argv[3])
elif what == "refusals":
    refusals(int(sys.argv[2]))
elif what in ("framing", "quotas", "slow"):
    {"framing": framing, "quotas": quotas, "slow": slow}[what](int(sys.argv[2]))
elif what == "starpu":
    starpu(sys.argv[2])
else:
    files(sys.argv[2], sys.argv[3], int(sys.argv[4]))
sys.exit(1 if failed else 0)
