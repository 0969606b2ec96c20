"""Small ONNX models, written byte by byte, and stave-server's answers for them against numbers computed here. Nothing but Python.

    server_onnx.py make FOLDER              writes the models below
    server_onnx.py numbers PORT             answers of dense, four, image and of models with other types
    server_onnx.py bert PORT                answers of a small BERT: ids and mask in, hidden states and logits out
    server_onnx.py broken PORT              the model that loads and cannot be computed

The fields are those of onnx.proto (github.com/onnx/onnx): each is (number << 3 | kind), then its value. All weights and inputs are small
multiples of 1/16, so every sum is exact in FP32 and answers are compared for equality.
"""
import http.client
import json
import math
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


def node(kind, inputs, output, **attributes):
    made = b"".join(part(1, i) for i in inputs) + part(2, output) + part(3, output) + part(4, kind)
    for name, v in attributes.items():
        value = number(3, v) + number(20, 2) if isinstance(v, int) else b"".join(number(8, i) for i in v) + number(20, 7)
        made += part(5, part(1, name) + value)
    return made


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


# A transformer's first layer: one head, no layer norm. Weights from a rule, so that both sides have the same.
VOCABULARY, WIDTH, CLASSES = 30, 4, 3


def weight(name, rows, columns):
    return [((i * 7 + o * 3 + len(name) * 5) % 13 - 6) / 8 for i in range(rows) for o in range(columns)]


WEIGHTS = {"words": (VOCABULARY, WIDTH), "wq": (WIDTH, WIDTH), "wkey": (WIDTH, WIDTH), "wvalue": (WIDTH, WIDTH), "classes": (WIDTH, CLASSES)}


def bert():
    nodes = [node("Gather", ["words", "input_ids"], "x"),
             node("MatMul", ["x", "wq"], "q"), node("MatMul", ["x", "wkey"], "k"), node("MatMul", ["x", "wvalue"], "v"),
             node("Transpose", ["k"], "kt", perm=[0, 2, 1]), node("MatMul", ["q", "kt"], "scores"),
             node("Cast", ["attention_mask"], "mask", to=FLOAT), node("Sub", ["mask", "one"], "minus"), node("Mul", ["minus", "much"], "away"),
             node("Unsqueeze", ["away", "axis"], "wide"), node("Add", ["scores", "wide"], "masked"), node("Softmax", ["masked"], "shares"),
             node("MatMul", ["shares", "v"], "seen"), node("Add", ["x", "seen"], "last_hidden_state"),
             node("Gather", ["last_hidden_state", "zero"], "first", axis=1), node("MatMul", ["first", "classes"], "logits")]
    weights = [tensor(n, FLOAT, list(shape), weight(n, *shape)) for n, shape in WEIGHTS.items()]
    weights += [tensor("one", FLOAT, [1], [1.0]), tensor("much", FLOAT, [1], [10000.0]), tensor("axis", INT64, [1], [1]), tensor("zero", INT64, [], [0])]
    return model(nodes, [value_info(n, INT64, ["rows", "tokens"]) for n in ("input_ids", "attention_mask")],
                 [value_info("last_hidden_state", FLOAT, ["rows", "tokens", WIDTH]), value_info("logits", FLOAT, ["rows", CLASSES])], weights)


def matmul(a, w, columns):
    return [[sum(row[i] * w[i * columns + o] for i in range(len(row))) for o in range(columns)] for row in a]


def bert_expected(ids, mask):
    w = {n: weight(n, *shape) for n, shape in WEIGHTS.items()}
    x = [w["words"][i * WIDTH:(i + 1) * WIDTH] for i in ids]
    q, k, v = (matmul(x, w[n], WIDTH) for n in ("wq", "wkey", "wvalue"))
    hidden = []
    for i, row in enumerate(q):
        scores = [sum(a * b for a, b in zip(row, key)) + (m - 1) * 10000 for key, m in zip(k, mask)]
        e = [math.exp(s - max(scores)) for s in scores]
        hidden.append([x[i][o] + sum(p * v[j][o] for j, p in enumerate(e)) / sum(e) for o in range(WIDTH)])
    return [n for row in hidden for n in row], matmul(hidden[:1], w["classes"], CLASSES)[0]


def models():
    return {
        "dense": dense("rows"),
        "four": dense(4),
        "image": relu(["rows", 2, 3, 5]),
        # Four numbers of a row do not make rows of three.
        "broken": model([node("Reshape", ["x", "shape"], "y")], [value_info("x", FLOAT, ["rows", 4])],
                        [value_info("y", FLOAT, ["others", 3])], [tensor("shape", INT64, [2], [-1, 3])]),
        "bert": bert(),
        "open": relu(["rows", "n"]),
        "whole": relu(["rows", 4], INT64),
        "two": model([node("Add", ["x", "x2"], "y")], [value_info(n, FLOAT, ["rows", 4]) for n in ("x", "x2")],
                     [value_info("y", FLOAT, ["rows", 4])]),
        # The output has another shape than the model says.
        "liar": model([node("Transpose", ["x"], "y", perm=[1, 0])], [value_info("x", FLOAT, ["rows", "n"])],
                      [value_info("y", FLOAT, ["a", "b"])]),
        # Refused when they are loaded.
        "deep": relu(["rows", 1, 1, 1, 1, 1, 1, 1, 4]),
        "text": model([node("Identity", ["x"], "y")], [value_info("x", 8, ["rows", 1])], [value_info("y", 8, ["rows", 1])]),
        "uneven": model([node("Add", ["x", "x2"], "y")], [value_info("x", FLOAT, [2, 4]), value_info("x2", FLOAT, [1, 4])],
                        [value_info("y", FLOAT, [2, 4])]),
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
    return ask_all(port, name, {"x": ("FP32", [rows] + dims, values)})


def ask_all(port, name, inputs):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"inputs": [{"name": n, "datatype": t, "shape": shape, "data": values} for n, (t, shape, values) in inputs.items()]}
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
          answer["outputs"][0]["shape"] == [2, 2, 3, 5], answer)
    for n in (1, 5):
        status, answer = ask(port, "open", 1, [n], x[:n])
        check("onnx_dynamic_%d" % n, status == 200 and answer["outputs"][0]["data"] == [max(0.0, v) for v in x[:n]], answer)
    wide = [-2**62, 3, -4, 2**62]
    status, answer = ask_all(port, "whole", {"x": ("INT64", [1, 4], wide)})
    check("onnx_int64", status == 200 and answer["outputs"][0]["data"] == [abs(v) for v in wide] and answer["outputs"][0]["datatype"] == "INT64", answer)
    status, answer = ask_all(port, "two", {"x2": ("FP32", [1, 4], [1, 2, 3, 4]), "x": ("FP32", [1, 4], [10, 20, 30, 40])})
    check("onnx_two_inputs", status == 200 and answer["outputs"][0]["data"] == [11, 22, 33, 44], answer)


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-4 for x, y in zip(a, b))


def check_bert(port, ids, mask):
    """The status, whether both outputs are right, and the answer."""
    shape = [1, len(ids)]
    status, answer = ask_all(port, "bert", {"input_ids": ("INT64", shape, ids), "attention_mask": ("INT64", shape, mask)})
    if status != 200:
        return False, answer
    hidden, logits = bert_expected(ids, mask)
    out = {o["name"]: o for o in answer["outputs"]}
    return (out["last_hidden_state"]["shape"] == [1, len(ids), WIDTH] and near(out["last_hidden_state"]["data"], hidden) and
            out["logits"]["shape"] == [1, CLASSES] and near(out["logits"]["data"], logits)), answer


def bert_numbers(port):
    for n in (1, 3, 9):
        check("onnx_bert_%d_tokens" % n, *check_bert(port, [(i * 5 + n) % VOCABULARY for i in range(n)], [1] * n))
    check("onnx_bert_mask", *check_bert(port, [1, 2, 3, 4], [1, 1, 0, 0]))
    # Texts of different lengths in one batch: filled up with zeros, and cut back to their own.
    wrong, together = [], []
    def many(k):
        for s in range(15):
            n = 1 + (s * 3 + k) % 11
            is_right, answer = check_bert(port, [(s + k * 3 + i) % VOCABULARY for i in range(n)], [1] * n)
            (together if is_right and answer["parameters"]["batch_size"] > 1 else [] if is_right else wrong).append(answer)
    threads = [threading.Thread(target=many, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    check("onnx_bert_together", not wrong, wrong[:1])
    check("onnx_bert_shared_batches", len(together) > 0)
    # An id past the vocabulary fails in ONNX Runtime: this request, not those that share its batch.
    answers = []
    def mixed(k):
        ids = [VOCABULARY + 1] if k == 3 else [k, k + 1]
        answers.append((k, *check_bert(port, ids, [1] * len(ids))))
    threads = [threading.Thread(target=mixed, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    check("onnx_bert_bad_id", all(is_right == (k != 3) for k, is_right, _ in answers), answers)
    check("onnx_bert_bad_id_shared", any(a["parameters"]["batch_size"] > 1 for k, _, a in answers if k != 3), answers)
    check("onnx_bert_goes_on", *check_bert(port, [1, 2], [1, 1]))
    status, answer = ask(port, "liar", 1, [3], [1.0, 2.0, 3.0])
    check("onnx_other_shape", status == 500, answer)


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
        {"numbers": numbers, "bert": bert_numbers, "broken": broken}[sys.argv[1]](int(sys.argv[2]))
    sys.exit(1 if failed else 0)


main()
