"""stave-server's typed tensors over HTTP, JSON and binary, against numbers computed here. Nothing but Python.

    server_typed.py make FOLDER         writes types.safetensors: a model that gives back one tensor of each type
    server_typed.py types PORT          every type there and back
    server_typed.py tokens PORT MODEL   tokens.safetensors: embedding, mean, dense, softmax
    server_typed.py refusals PORT       what is malformed
    server_typed.py pages PORT          stats, config, index
"""
import http.client
import json
import math
import struct
import sys

# name: (format of struct, values of two rows of two)
NUMBERS = {
    "UINT8": ("B", [0, 255, 7, 8]), "UINT16": ("H", [0, 65535, 7, 8]), "UINT32": ("I", [0, 2**32 - 1, 7, 8]),
    "UINT64": ("Q", [0, 2**64 - 1, 2**63, 8]), "INT8": ("b", [-128, 127, 0, -1]), "INT16": ("h", [-32768, 32767, 0, -1]),
    "INT32": ("i", [-2**31, 2**31 - 1, 0, -1]), "INT64": ("q", [-2**63, 2**63 - 1, 0, -1]),
}
FLOATS = {"FP32": ("f", [0.5, -1.25, 3e38, 0.0]), "FP64": ("d", [0.1, -1e300, 5e-324, 0.0])}
failed = []


def check(name, condition, detail=""):
    print(("ok " if condition else "not ok ") + name + ("" if condition else ": %s" % (detail,)))
    if not condition:
        failed.append(name)


def call(port, method, path, body=b"", headers=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, data, r.headers


def infer(port, model, inputs, binary=b"", more=None):
    body = json.dumps({"inputs": inputs, **(more or {})}).encode()
    headers = {"Inference-Header-Content-Length": str(len(body))} if binary else {}
    status, data, got = call(port, "POST", "/v2/models/%s/infer" % model, body + binary, headers)
    n = int(got.get("Inference-Header-Content-Length", len(data)))
    return status, json.loads(data[:n]), data[n:]


def tensor(name, datatype, shape, **more):
    return {"name": name, "datatype": datatype, "shape": shape, **more}


def elements(texts):
    return b"".join(struct.pack("<I", len(t)) + t for t in texts)


def make(folder):
    inputs = ["t_%s:%s:2" % (t.lower(), t) for t in ["BOOL", *NUMBERS, *FLOATS]]
    for name, given in (("types_a", inputs[:8]), ("types_b", inputs[8:] + ["t_fp16:FP16:2", "t_bf16:BF16:2", "t_bytes:BYTES:-1"])):
        text = json.dumps({"__metadata__": {"stave.input": ", ".join(given), "stave.layers": "identity"}}).encode()
        with open("%s/%s.safetensors" % (folder, name), "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)


def columns():
    """Each tensor: name, type, JSON values, bytes."""
    out = [("t_bool", "BOOL", [True, False, True, True], bytes([1, 0, 1, 1]))]
    for t, (f, v) in {**NUMBERS, **FLOATS}.items():
        out.append(("t_" + t.lower(), t, v, struct.pack("<4" + f, *v)))
    return out


def same(a, b):
    return a == b or [struct.pack("<f", x) for x in a] == [struct.pack("<f", x) for x in b]


def types(port):
    all_of = columns()
    texts = [b"", b"a\"\\\n", "é".encode(), b"x" * 300]
    halves = bytes(range(8))
    first, rest = all_of[:8], all_of[8:]
    status, answer, _ = infer(port, "types_a", [tensor(n, t, [2, 2], data=v) for n, t, v, _ in first])
    check("typed_json", status == 200 and [o["data"] for o in answer["outputs"]] == [v for _, _, v, _ in first], answer)
    check("typed_json_types", status == 200 and [(o["name"], o["datatype"], o["shape"]) for o in answer["outputs"]] ==
          [(n, t, [2, 2]) for n, t, _, _ in first], answer)
    # Binary in, binary out; in another order than the model's.
    rest_in = [tensor(n, t, [2, 2], parameters={"binary_data_size": len(b)}) for n, t, _, b in rest]
    rest_in += [tensor("t_fp16", "FP16", [2, 2], parameters={"binary_data_size": 8}), tensor("t_bf16", "BF16", [2, 2], parameters={"binary_data_size": 8})]
    rest_in = [tensor("t_bytes", "BYTES", [2, 2], data=[t.decode() for t in texts])] + rest_in
    binary = b"".join(b for _, _, _, b in rest) + halves + halves
    status, answer, got = infer(port, "types_b", rest_in, binary, {"parameters": {"binary_data_output": True}})
    check("typed_binary", status == 200 and got == binary + elements(texts), (answer, got))
    asked = {"outputs": [{"name": "t_bytes"}, {"name": "t_fp16", "parameters": {"binary_data": True}}, {"name": "t_fp32"}]}
    status, answer, got = infer(port, "types_b", rest_in, binary, asked)
    by_name = {o["name"]: o for o in answer.get("outputs", [])}
    check("typed_outputs_asked", status == 200 and sorted(by_name) == ["t_bytes", "t_fp16", "t_fp32"] and got == halves and
          by_name["t_bytes"]["data"] == [t.decode() for t in texts] and same(by_name["t_fp32"]["data"], FLOATS["FP32"][1]), answer)
    status, answer, _ = infer(port, "types_b", rest_in, binary)
    check("typed_fp16_needs_binary", status == 400 and "no form in JSON" in answer["error"], answer)


# ---- tokens ----

def load(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header, out = json.loads(raw[8:8 + n]), {}
    for name, t in header.items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = (t["shape"], struct.unpack("<%df" % ((b - a) // 4), raw[8 + n + a:8 + n + b]))
    return out


def expected(model, ids, mask):
    width = model["words.weight"][0][1]
    words, weight, bias = (model[n][1] for n in ("words.weight", "fc.weight", "fc.bias"))
    used = [i for i, m in zip(ids, mask) if m]
    mean = [sum(words[i * width + k] for i in used) / len(used) if used else 0.0 for k in range(width)]
    out = [bias[o] + sum(weight[o * width + k] * mean[k] for k in range(width)) for o in range(len(bias))]
    e = [math.exp(v - max(out)) for v in out]
    return [v / sum(e) for v in e]


def token_inputs(ids, mask):
    return [tensor("input_ids", "INT64", [1, len(ids)], data=ids), tensor("attention_mask", "INT64", [1, len(mask)], data=mask)]


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-5 for x, y in zip(a, b))


def tokens(port, path):
    model = load(path)
    for ids, mask in (([5, 17, 3], [1, 1, 1]), ([63], [1]), (list(range(20)), [1, 0] * 10), ([1, 2], [0, 0])):
        status, answer, _ = infer(port, "tokens", token_inputs(ids, mask))
        check("tokens_%d" % len(ids), status == 200 and near(answer["outputs"][0]["data"], expected(model, ids, mask)), answer)
    # Two rows, binary, and the same numbers whoever shares the batch.
    ids, mask = [4, 5, 6, 7], [1, 1, 1, 0]
    raw = struct.pack("<4q", *ids), struct.pack("<4q", *mask)
    status, answer, _ = infer(port, "tokens", [tensor("input_ids", "INT64", [2, 2], parameters={"binary_data_size": 32}),
                                               tensor("attention_mask", "INT64", [2, 2], parameters={"binary_data_size": 32})], raw[0] + raw[1])
    check("tokens_rows", status == 200 and near(answer["outputs"][0]["data"], expected(model, [4, 5], [1, 1]) + expected(model, [6, 7], [1, 0])), answer)
    import threading
    wrong, together = [], [0]
    def many(k):
        for s in range(15):
            n = 1 + (s * 7 + k * 3) % 30
            i, m = [(s * 11 + k + j) % 64 for j in range(n)], [1] * n
            status, answer, _ = infer(port, "tokens", token_inputs(i, m))
            if status != 200 or not near(answer["outputs"][0]["data"], expected(model, i, m)):
                wrong.append((status, answer))
            elif answer["parameters"]["batch_size"] > 1:
                together[0] += 1
    threads = [threading.Thread(target=many, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    check("tokens_padded_together", not wrong, wrong[:1])
    check("tokens_shared_batches", together[0] > 0, together)


def refusals(port):
    good = token_inputs([1, 2], [1, 1])
    rows = [
        ("missing_input", good[:1], b"", "'attention_mask' is missing"),
        ("twice", [good[0], good[0]], b"", "given twice"),
        ("unknown_input", [tensor("other", "INT64", [1, 2], data=[1, 2])], b"", "'input_ids', 'attention_mask'"),
        ("wrong_type", [tensor("input_ids", "INT32", [1, 2], data=[1, 2])], b"", "must be INT64"),
        ("fraction", [tensor("input_ids", "INT64", [1, 2], data=[1, 2.5]), good[1]], b"", "whole numbers"),
        ("too_wide", [tensor("input_ids", "INT64", [1, 2], data=[1, 2**63]), good[1]], b"", "whole numbers"),
        ("text_for_number", [tensor("input_ids", "INT64", [1, 2], data=[1, "2"]), good[1]], b"", "whole numbers"),
        ("vocabulary", token_inputs([64], [1]), b"", "not in the vocabulary: 0 to 63"),
        ("negative", token_inputs([-1], [1]), b"", "not in the vocabulary"),
        ("rows_differ", [good[0], tensor("attention_mask", "INT64", [2, 1], data=[1, 1])], b"", "same number"),
        ("shapes_differ", [good[0], tensor("attention_mask", "INT64", [1, 3], data=[1, 1, 1])], b"", "same shape"),
        ("no_tokens", [tensor("input_ids", "INT64", [1, 0], data=[])], b"", "must be [rows, -1]"),
        ("huge_shape", [tensor("input_ids", "INT64", [1, 2**40], data=[1])], b"", "more than 4194304"),
        ("short_binary", [tensor("input_ids", "INT64", [1, 2], parameters={"binary_data_size": 16}), good[1]], b"12345678", "binary_data_size"),
        ("long_binary", [tensor("input_ids", "INT64", [1, 2], parameters={"binary_data_size": 16}), good[1]], b"\0" * 24, "more bytes"),
    ]
    for name, inputs, binary, says in rows:
        status, answer, _ = infer(port, "tokens", inputs, binary)
        check("typed_refused_" + name, status == 400 and says in answer["error"], (status, answer))
    status, answer, _ = infer(port, "tokens", good)
    check("typed_goes_on", status == 200, answer)


def pages(port):
    def get(path):
        status, data, _ = call(port, "GET", path)
        return status, json.loads(data)
    before = get("/v2/models/tokens/stats")[1]["model_stats"][0]
    for _ in range(3):
        infer(port, "tokens", token_inputs([1, 2, 3], [1, 1, 1]))
    status, stats = get("/v2/models/tokens/versions/1/stats")
    now = stats["model_stats"][0]
    check("stats_counts", status == 200 and now["inference_count"] - before["inference_count"] == 3 and
          now["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"] == 3, now)
    check("stats_parts", all(now["inference_stats"][k]["ns"] <= now["inference_stats"]["success"]["ns"] for k in
                             ("queue", "compute_input", "compute_infer", "compute_output")) and now["inference_stats"]["compute_infer"]["ns"] > 0, now)
    check("stats_batches", sum(b["compute_infer"]["count"] for b in now["batch_stats"]) == now["execution_count"] and
          sum(b["compute_infer"]["count"] * b["batch_size"] for b in now["batch_stats"]) == now["inference_count"], now)
    status, stats = get("/v2/models/stats")
    check("stats_of_all", status == 200 and len(stats["model_stats"]) == len(get("/v2/models")[1]["models"]) > 1, stats)
    status, config = get("/v2/models/tokens/config")
    check("config", status == 200 and config["max_batch_size"] == 16 and config["input"] == [
        {"name": "input_ids", "data_type": "TYPE_INT64", "dims": [-1]}, {"name": "attention_mask", "data_type": "TYPE_INT64", "dims": [-1]}], config)
    status, data, _ = call(port, "POST", "/v2/repository/index", b'{"ready":true}')
    check("index", status == 200 and {"name": "tokens", "version": "1", "state": "READY", "reason": ""} in json.loads(data), data)
    check("index_is_post", call(port, "GET", "/v2/repository/index")[0] == 405)
    check("index_body", call(port, "POST", "/v2/repository/index", b"[1]")[0] == 400)
    check("repository_else", call(port, "POST", "/v2/repository/models/tokens/unload")[0] == 404)
    check("stats_is_get", call(port, "POST", "/v2/models/tokens/stats")[0] == 405)
    check("stats_unknown", call(port, "GET", "/v2/models/other/stats")[0] == 404)


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "tokens":
        tokens(int(sys.argv[2]), sys.argv[3])
    else:
        {"types": types, "refusals": refusals, "pages": pages}[sys.argv[1]](int(sys.argv[2]))
    sys.exit(1 if failed else 0)


main()
