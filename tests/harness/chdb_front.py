#!/usr/bin/env python3
"""chdb_front.py LIBRARY FOLDER: a current ClickHouse (its library, libchdb) behind HTTP on a port of 127.0.0.1, which is printed. As much of the server's interface as Stave uses: parameters database,
default_format, query, decompress and settings; errors with a status and the server's words. A setting that the engine does not know is refused, and so are changes when readonly is 1."""
import ctypes
import http.server
import re
import struct
import sys
import urllib.parse

OWN = {"database", "default_format", "query", "decompress", "wait_end_of_query", "readonly", "http_native_compression_disable_checksumming_on_decompress"}
FORMS = {"TabSeparatedWithNamesAndTypes": "text/tab-separated-values; charset=UTF-8"}
READS = ("SELECT", "WITH", "(", "SHOW", "DESC", "EXISTS", "EXPLAIN")

library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
library.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
library.chdb_connect.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
library.chdb_query_n.restype = ctypes.c_void_p
library.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
for name, kind in (("buffer", ctypes.c_void_p), ("length", ctypes.c_size_t), ("error", ctypes.c_char_p)):
    function = getattr(library, "chdb_result_" + name)
    function.restype, function.argtypes = kind, [ctypes.c_void_p]
library.chdb_destroy_query_result.argtypes = [ctypes.c_void_p]
words = [b"chdb", b"--path=" + sys.argv[2].encode()]
connection = library.chdb_connect(len(words), (ctypes.c_char_p * len(words))(*words))[0]


class Refused(Exception):
    pass


def run(sql, form="TabSeparated"):
    result = library.chdb_query_n(connection, sql, len(sql), form.encode(), len(form))
    try:
        error = library.chdb_result_error(result)
        if error:
            raise Refused(error.decode(errors="replace"))
        n = library.chdb_result_length(result)
        return ctypes.string_at(library.chdb_result_buffer(result), n) if n else b""
    finally:
        library.chdb_destroy_query_result(result)


known = set(run(b"SELECT name FROM system.settings").decode().split())


def unpack(body):
    """Blocks: a checksum of 16 bytes, the method (zstd), both sizes."""
    parts, at = [], 0
    while at < len(body):
        method, packed, plain = struct.unpack_from("<BII", body, at + 16)
        if method != 0x90:
            raise Refused("Code: 1. DB::Exception: not zstd")
        to = ctypes.create_string_buffer(plain)
        block = body[at + 25:at + 16 + packed]
        if zstd.ZSTD_decompress(to, plain, block, len(block)) != plain:
            raise Refused("Code: 1. DB::Exception: damaged block")
        parts.append(to.raw)
        at += 16 + packed
    return b"".join(parts)


def answer(asked, body):
    settings = {k: v for k, v in asked.items() if k not in OWN}
    for name in settings:
        if name not in known:
            raise Refused("Code: 115. DB::Exception: Unknown setting '%s'" % name)
    settings.setdefault("join_use_nulls", "0")
    run(("SET " + ", ".join("%s = %s" % one for one in settings.items())).encode())
    run(b"USE `" + asked.get("database", "default").encode() + b"`")
    if asked.get("decompress") == "1":
        body = unpack(body)
    sql = asked["query"].encode() + b"\n" + body if "query" in asked else body
    if asked.get("readonly") == "1" and not re.sub(rb"^(\s|--[^\n]*\n)*", b"", sql).upper().startswith(tuple(w.encode() for w in READS)):
        raise Refused("Code: 164. DB::Exception: Cannot execute query in readonly mode")
    return run(sql, asked["default_format"])


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            status, kind, text = 200, FORMS[asked["default_format"]], answer(asked, body)
        except Refused as refused:
            status, kind, text = 500, "text/plain", str(refused).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close") # one client after the other
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Front)
print(server.server_address[1], flush=True)
server.serve_forever()
