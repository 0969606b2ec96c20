"""Small ONNX models, written byte by byte, and stave-server's answers for them against numbers computed here. Nothing but Python.

    server_onnx.py make FOLDER              writes the models below
    server_onnx.py numbers PORT             answers of dense, four and image
    server_onnx.py broken PORT              the model that loads and cannot be computed

The fields are those of onnx.proto (github.com/onnx/onnx): each is (number << 3 | kind), then its value. All weights and inputs are small
multiples of 1/16, so every sum is exact in FP32 and answers are compared for equality.
"""
import http.client
import json
import os
import struct
import sys
import threading

FLOAT, INT64 = 1, 7
IN, OUT = 4, 3
WEIGHT = [((i * 3 + o * 7) % 11 - 5) / 8 for i in range(IN) for o in range(OUT)]
BIAS = [0.25, -0.5, 0.125]


# ---- writing ----

def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def part(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, kind, dims, values):
    raw = struct.pack("<%d%s" % (len(values), "f" if kind == FLOAT else "q"), *values)
    return b"".join(number(1, d) for d in dims) + number(2, kind) + part(8, name) + part(9, raw)


def value_info(name, kind, dims):
    """A dimension is a number or, where it is open, a name."""
    shape = b"".join(part(1, part(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return part(1, name) + part(2, part(1, number(1, kind) + part(2, shape)))


def node(kind, inputs, output):
    return b"".join(part(1, i) for i in inputs) + part(2, output) + part(3, output) + part(4, kind)


def model(nodes, inputs, outputs, weights=()):
    graph = b"".join(part(1, n) for n in nodes) + part(2, "graph") + b"".join(part(5, w) for w in weights)
    graph += b"".join(part(11, i) for i in inputs) + b"".join(part(12, o) for o in outputs)
    return number(1, 7) + part(2, "stave") + part(7, graph) + part(8, part(1, "") + number(2, 13))


def dense(rows):
    return model([node("MatMul", ["x", "w"], "xw"), node("Add", ["xw", "b"], "z"), node("Relu", ["z"], "y")],
                 [value_info("x", FLOAT, [rows, IN])], [value_info("y", FLOAT, [rows, OUT])],
                 [tensor("w", FLOAT, [IN, OUT], WEIGHT), tensor("b", FLOAT, [OUT], BIAS)])


def relu(dims, kind=FLOAT):
    return model([node("Relu" if kind == FLOAT else "Abs", ["x"], "y")], [value_info("x", kind, dims)],
                 [value_info("y", kind, dims)])


def models():
    return {
        "dense": dense("rows"),
        "four": dense(4),
        "image": relu(["rows", 2, 3, 5]),
        # Four numbers of a row do not make rows of three.
        "broken": model([node("Reshape", ["x", "shape"], "y")], [value_info("x", FLOAT, ["rows", 4])],
                        [value_info("y", FLOAT, ["others", 3])], [tensor("shape", INT64, [2], [-1, 3])]),
        # Refused when they are loaded.
        "open": relu(["rows", "n"]),
        "whole": relu(["rows", 4], INT64),
        "two": model([node("Add", ["x", "x2"], "y")], [value_info(n, FLOAT, ["rows", 4]) for n in ("x", "x2")],
                     [value_info("y", FLOAT, ["rows", 4])]),
        "deep": relu(["rows", 1, 1, 1, 4]),
        "huge": relu(["rows", 1 << 22, 2]),
        "crowd": relu([100000, 4]),
        "torn": dense("rows")[:-40],
        "noise": bytes((i * 37 + 11) & 255 for i in range(500)),
        "empty": b"",
    }


# ---- asking ----

failed = []


def check(name, condition, detail=""):
    print(("ok " if condition else "not ok ") + name + ("" if condition else ": %s" % (detail,)))
    if not condition:
        failed.append(name)


def ask(port, name, rows, dims, values):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows] + dims, "data": values}]}
    c.request("POST", "/v2/models/%s/infer" % name, json.dumps(body))
    r = c.getresponse()
    answer = json.loads(r.read())
    c.close()
    return r.status, answer


def inputs(n, seed):
    return [((i * 13 + seed * 29) % 33 - 16) / 16 for i in range(n)]


def expected(x):
    return [max(0.0, BIAS[o] + sum(x[r * IN + i] * WEIGHT[i * OUT + o] for i in range(IN)))
            for r in range(len(x) // IN) for o in range(OUT)]


def check_dense(port, name, rows, seed):
    x = inputs(rows * IN, seed)
    status, answer = ask(port, name, rows, [IN], x)
    out = answer["outputs"][0] if status == 200 else {}
    return status == 200 and out["name"] == "y" and out["shape"] == [rows, OUT] and out["data"] == expected(x), answer


def numbers(port):
    sample = expected(inputs(5 * IN, 1))
    check("onnx_sample_has_both_signs", 0.0 in sample and max(sample) > 0, sample)
    for name, most in (("dense", 8), ("four", 4)):
        for rows in (1, 2, most):
            check("onnx_%s_%d_rows" % (name, rows), *check_dense(port, name, rows, rows))
        status, answer = ask(port, name, most + 1, [IN], inputs((most + 1) * IN, 0))
        check("onnx_%s_too_many_rows" % name, status == 400 and "at most %d" % most in answer["error"], answer)
        wrong = []
        def many(k):
            wrong.extend(s for s in range(20) if not check_dense(port, name, 1 + (s + k) % most, s * 8 + k)[0])
        threads = [threading.Thread(target=many, args=(k,)) for k in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        check("onnx_%s_together" % name, not wrong, wrong)
    x = inputs(60, 3)
    status, answer = ask(port, "image", 2, [2, 3, 5], x)
    check("onnx_image", status == 200 and answer["outputs"][0]["data"] == [max(0.0, v) for v in x] and
          answer["outputs"][0]["shape"] == [2, 30], answer)


def broken(port):
    status, answer = ask(port, "broken", 1, [4], [1.0, 2.0, 3.0, 4.0])
    check("onnx_broken_is_reported", status == 500 and "error" in answer, (status, answer))
    # Three rows are padded to four: more than a slot holds.
    status, answer = ask(port, "broken", 3, [4], [1.0] * 12)
    check("onnx_more_rows_out_than_in", status == 500 and "error" in answer, (status, answer))


def main():
    if sys.argv[1] == "make":
        for name, content in models().items():
            with open(os.path.join(sys.argv[2], name + ".onnx"), "wb") as f:
                f.write(content)
    else:
        {"numbers": numbers, "broken": broken}[sys.argv[1]](int(sys.argv[2]))
    sys.exit(1 if failed else 0)


main()
