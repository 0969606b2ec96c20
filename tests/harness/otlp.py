"""OTLP requests for the tests: JSON documents as protobuf, and generated spans. Independent of the code under test.

    otlp.py encode [--framed] <lines.json >requests.bin     # each line a request; framed: its length before it, as the Collector writes it
    otlp.py spans N [PER_REQUEST] [json]                    # N spans, in traces of four, as protobuf (or JSON lines)
    otlp.py send PORT N [PER_REQUEST] [json]                # the same to a server, over one connection
"""
import base64
import http.client
import json
import struct
import sys


def varint(n):
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, wire, body):
    return varint(number << 3 | wire) + body


def text(number, data):
    data = data.encode() if isinstance(data, str) else data
    return field(number, 2, varint(len(data)) + data)


def fixed64(number, value):
    return field(number, 1, struct.pack("<Q", int(value)))


def count(number, value):
    return field(number, 0, varint(int(value))) if int(value) else b""


def any_value(v):
    if "stringValue" in v:
        return text(1, v["stringValue"])
    if "boolValue" in v:
        return field(2, 0, varint(int(v["boolValue"])))
    if "intValue" in v:
        return field(3, 0, varint(int(v["intValue"])))
    if "doubleValue" in v:
        return field(4, 1, struct.pack("<d", float(v["doubleValue"])))
    if "arrayValue" in v:
        return text(5, b"".join(text(1, any_value(x)) for x in v["arrayValue"].get("values", [])))
    if "kvlistValue" in v:
        return text(6, attributes(1, v["kvlistValue"].get("values", [])))
    if "bytesValue" in v:
        return text(7, base64.b64decode(v["bytesValue"]))
    return b""


def attributes(number, items):
    return b"".join(text(number, text(1, a["key"]) + text(2, any_value(a.get("value", {})))) for a in items)


def event(e):
    return fixed64(1, e.get("timeUnixNano", 0)) + text(2, e.get("name", "")) + attributes(3, e.get("attributes", []))


def link(x):
    return text(1, bytes.fromhex(x["traceId"])) + text(2, bytes.fromhex(x["spanId"])) + attributes(4, x.get("attributes", []))


def span(s):
    out = text(1, bytes.fromhex(s.get("traceId", ""))) + text(2, bytes.fromhex(s.get("spanId", "")))
    if s.get("traceState"):
        out += text(3, s["traceState"])
    if s.get("parentSpanId"):
        out += text(4, bytes.fromhex(s["parentSpanId"]))
    out += text(5, s.get("name", "")) + count(6, s.get("kind", 0))
    out += fixed64(7, s.get("startTimeUnixNano", 0)) + fixed64(8, s.get("endTimeUnixNano", 0))
    out += attributes(9, s.get("attributes", [])) + count(10, s.get("droppedAttributesCount", 0))
    out += b"".join(text(11, event(e)) for e in s.get("events", []))
    out += b"".join(text(13, link(x)) for x in s.get("links", []))
    if s.get("status"):
        out += text(15, text(2, s["status"].get("message", "")) + count(3, s["status"].get("code", 0)))
    if s.get("flags"):
        out += field(16, 5, struct.pack("<I", s["flags"]))
    return out


def request(doc):
    out = b""
    for rs in doc.get("resourceSpans", []):
        body = text(1, attributes(1, rs.get("resource", {}).get("attributes", [])))
        for ss in rs.get("scopeSpans", []):
            scope = ss.get("scope", {})
            inner = text(1, text(1, scope.get("name", "")) + text(2, scope.get("version", "")) + attributes(3, scope.get("attributes", [])))
            body += text(2, inner + b"".join(text(2, span(s)) for s in ss.get("spans", [])))
        out += text(1, body)
    return out


def made_span(i):
    """The i-th: in traces of four, a client's and what it did, with the attributes that HTTP instrumentation sets."""
    trace, place = divmod(i, 4)
    start = 1700000000000000000 + trace * 1000000 + place * 1000
    return {
        "traceId": "%032x" % (trace + 1), "spanId": "%016x" % (i + 1), "parentSpanId": "%016x" % (trace * 4 + 1) if place else "",
        "name": ("GET /items", "query", "render", "send")[place], "kind": 3 if place == 0 else 1,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + (900000 if place == 0 else 200000)),
        "attributes": [
            {"key": "http.request.method", "value": {"stringValue": "GET"}},
            {"key": "url.full", "value": {"stringValue": "http://127.0.0.1:8080/items/%d" % trace}},
            {"key": "http.response.status_code", "value": {"intValue": "200"}},
            {"key": "server.address", "value": {"stringValue": "127.0.0.1"}},
            {"key": "server.port", "value": {"intValue": "8080"}},
            {"key": "retry", "value": {"boolValue": False}},
        ],
        "status": {}, "flags": 0x101,
    }


def made(n, per_request):
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}, {"key": "process.pid", "value": {"intValue": "4711"}}]}
    for at in range(0, n, per_request):
        spans = [made_span(i) for i in range(at, min(n, at + per_request))]
        yield {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "http", "version": "1"}, "spans": spans}]}]}


def send(port, bodies, kind):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in bodies:
        connection.request("POST", "/v1/traces", body, {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit("the server answers %d" % answer.status)


def main(args):
    out = sys.stdout.buffer
    is_json = args[-1] == "json"
    if args[0] == "send":
        docs = made(int(args[2]), int(args[3]) if len(args) > 3 else 512)
        bodies = [json.dumps(d, separators=(",", ":")).encode() if is_json else request(d) for d in docs]
        send(int(args[1]), bodies, "application/json" if is_json else "application/x-protobuf")
        return
    if args[0] == "encode":
        for row in sys.stdin:
            body = request(json.loads(row))
            out.write((struct.pack(">I", len(body)) if "--framed" in args else b"") + body)
    else:
        for doc in made(int(args[1]), int(args[2]) if len(args) > 2 else 512):
            out.write(json.dumps(doc, separators=(",", ":")).encode() + b"\n" if is_json else request(doc))


if __name__ == "__main__":
    main(sys.argv[1:])
