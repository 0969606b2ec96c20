"""A collector for server_otlp.sh. It decodes with Google's protobuf and the public definition of OTLP's messages, so that not both ends are ours.

    server_otlp.py FILE ANSWER…      prints its port; FILE.bin: the bodies that it took, FILE.log: its answers
    server_otlp.py spans FILE        the spans of FILE.bin, a line of JSON each

An answer is a status, STATUS:SECONDS with the header Retry-After, `partial` (200, one span rejected), `close` (the connection ends after half of the request), or `silent`
(no answer until the client goes). The last one is that of all further requests.
"""
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# opentelemetry/proto/trace/v1/trace.proto and what it needs: (message, ((number, name, type, repeated), …)).
PROTO = {
    "AnyValue": ((1, "string_value", "string", 0), (2, "bool_value", "bool", 0), (3, "int_value", "int64", 0), (4, "double_value", "double", 0)),
    "KeyValue": ((1, "key", "string", 0), (2, "value", "AnyValue", 0)),
    "Link": ((1, "trace_id", "bytes", 0), (2, "span_id", "bytes", 0)),
    "Status": ((2, "message", "string", 0), (3, "code", "int32", 0)),
    "Span": ((1, "trace_id", "bytes", 0), (2, "span_id", "bytes", 0), (3, "trace_state", "string", 0), (4, "parent_span_id", "bytes", 0), (5, "name", "string", 0), (6, "kind", "int32", 0),
             (7, "start_time_unix_nano", "fixed64", 0), (8, "end_time_unix_nano", "fixed64", 0), (9, "attributes", "KeyValue", 1), (13, "links", "Link", 1), (15, "status", "Status", 0)),
    "Scope": ((1, "name", "string", 0), (2, "version", "string", 0)),
    "ScopeSpans": ((1, "scope", "Scope", 0), (2, "spans", "Span", 1)),
    "Resource": ((1, "attributes", "KeyValue", 1),),
    "ResourceSpans": ((1, "resource", "Resource", 0), (2, "scope_spans", "ScopeSpans", 1)),
    "Request": ((1, "resource_spans", "ResourceSpans", 1),),
}


def request_class():
    field = descriptor_pb2.FieldDescriptorProto
    f = descriptor_pb2.FileDescriptorProto(name="otlp.proto", package="o", syntax="proto3")
    for name, fields in PROTO.items():
        m = f.message_type.add(name=name)
        for number, key, kind, repeated in fields:
            one = m.field.add(name=key, number=number, label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL)
            if kind in PROTO:
                one.type, one.type_name = field.TYPE_MESSAGE, ".o." + kind
            else:
                one.type = getattr(field, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(f)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("o.Request"))


Request = request_class()
path, plan = sys.argv[1], sys.argv[2:]


def value_of(v):
    return next((getattr(v, n) for n in ("string_value", "int_value", "double_value", "bool_value") if getattr(v, n)), 0)


def spans_of(body):
    request = Request.FromString(body)
    for r in request.resource_spans:
        service = {a.key: value_of(a.value) for a in r.resource.attributes}["service.name"]
        for s in (s for scope in r.scope_spans for s in scope.spans):
            assert len(s.trace_id) == 16 and len(s.span_id) == 8 and not s.UnknownFields() if hasattr(s, "UnknownFields") else True
            yield {"service": service, "name": s.name, "kind": s.kind, "trace": s.trace_id.hex(), "span": s.span_id.hex(), "parent": s.parent_span_id.hex(), "state": s.trace_state,
                   "start": s.start_time_unix_nano, "dur": s.end_time_unix_nano - s.start_time_unix_nano, "error": s.status.code == 2,
                   "links": [x.trace_id.hex() + x.span_id.hex() for x in s.links], **{a.key: value_of(a.value) for a in s.attributes}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        word = plan.pop(0) if len(plan) > 1 else plan[0]
        length = int(self.headers["Content-Length"])
        with open(path + ".log", "a") as f:
            f.write("%s %s %s %.3f\n" % (word, self.path, self.headers["Content-Type"], time.monotonic()))
        if word == "close":
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        body = self.rfile.read(length)
        if word == "silent":
            self.rfile.read(1)  # until it goes
            self.close_connection = True
            return
        status, _, seconds = word.partition(":")
        answer = b"\x0a\x06\x08\x01\x12\x02no" if word == "partial" else b""
        status = 200 if word == "partial" else int(status)
        if status == 200:
            with open(path + ".bin", "ab") as f:
                f.write(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        if seconds:
            self.send_header("Retry-After", seconds)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if path == "spans":
    with open(plan[0] + ".bin", "rb") as f:
        sys.stdout.writelines(json.dumps(s) + "\n" for s in spans_of(f.read()))
    sys.exit()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
