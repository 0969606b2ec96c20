"""A client of `stave view` for tests/cli/view.sh: `view_client.py CHECK URL [SOCKET]` exits with 0 when the check holds, else it says why not."""
import http.client
import json
import socket
import struct
import sys
import threading

check, url = sys.argv[1], sys.argv[2]
base, token = url.split("#token=")
host = base.split("//")[1].rstrip("/")
port = int(host.split(":")[1])


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[3])


def call(method, path, body=None, headers=None, secret=token, name=None, connection=None):
    c = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    h = {"Host": name or host}
    if secret is not None:
        h["X-Stave-Token"] = secret
    h.update(headers or {})
    c.request(method, path, body=json.dumps(body) if isinstance(body, (dict, list)) else body, headers=h)
    r = c.getresponse()
    return r.status, r.read(), r


def ask(path, body=None):
    status, data, _ = call("POST" if body is not None else "GET", path, body)
    assert status == 200, (path, status, data[:200])
    return json.loads(data)


def refused(status, *args, **kw):
    got, data, _ = call(*args, **kw)
    assert got == status, (args, kw, "status", got, "instead of", status, data[:200])


def is_compressed_for_those_who_are_far():
    for headers, packed in (({"Accept-Encoding": "gzip"}, True), ({"Accept-Encoding": "gzip", "X-Stave-Near": "1"}, False), ({}, False)):
        status, data, answer = call("GET", "/api/tables", headers=headers)
        assert status == 200 and len(data) > 500, (status, len(data))
        assert (answer.getheader("Content-Encoding") == "gzip") == packed, (headers, answer.getheaders())
        assert (data[:2] == b"\x1f\x8b") == packed, data[:20]


def is_ready():
    assert ask("/api/trace")["state"] == "ready"


def only_loopback_listens():
    """Of all sockets that listen on the port, by the kernel's own tables."""
    found = []
    for table, loopback in (("/proc/net/tcp", "0100007F"), ("/proc/net/tcp6", "0" * 24 + "01000000")):
        with open(table) as f:
            for line in list(f)[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and int(address.split(":")[1], 16) == port:
                    found.append(address.split(":")[0])
                    assert address.split(":")[0] == loopback, (table, address)
    assert found, "nothing listens on the port"


def token_and_names():
    for wrong in (None, "", token[:-1], token + "0", "0" * 32, token.upper() + "x"):
        refused(401, "GET", "/api/trace", secret=wrong)
    for i, digit in enumerate(token):  # each of its characters counts
        refused(401, "GET", "/api/trace", secret=token[:i] + ("1" if digit == "0" else "0") + token[i + 1:])
    refused(401, "POST", "/api/sql", {"sql": "select 1"}, secret=None)
    for name in ("evil.example", "evil.example:%d" % port, "127.0.0.1.evil.example:%d" % port, "127.0.0.1", "127.0.0.1:1", "localhost:%d0" % port):
        refused(403, "GET", "/api/trace", name=name)
        refused(403, "GET", "/", name=name)
    for name in ("localhost:%d" % port, "127.0.0.1:%d" % port, "[::1]:%d" % port):
        refused(200, "GET", "/api/trace", name=name)
    for origin in ("http://evil.example", "null", "https://" + host, "http://localhost:%d" % port, "http://127.0.0.1"):
        refused(403, "GET", "/api/trace", headers={"Origin": origin})
    refused(200, "GET", "/api/trace", headers={"Origin": "http://" + host})


def methods_and_addresses():
    for method in ("PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"):
        refused(405, method, "/api/trace")
    refused(405, "POST", "/", b"x")
    for path in ("/api", "/api/", "/api/nothing", "/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "/api/trace/", "/index.html/"):
        status, _, _ = call("GET", path)
        assert status == 404, (path, status)
    refused(405, "GET", "/api/window")


def headers():
    status, page, r = call("GET", "/", secret=None)
    assert status == 200 and page.startswith(b"<!DOCTYPE html>"), page[:40]
    wanted = {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    for path in ("/", "/api/trace", "/nothing"):
        _, _, r = call("GET", path)
        for key, value in wanted.items():
            assert r.getheader(key) == value, (path, key, r.getheader(key))
        assert r.getheader("Access-Control-Allow-Origin") is None
    assert b"<script>" not in page and b"onclick=" not in page and b"style=" not in page


def bad_bodies():
    good = {"from": "0", "to": "100", "width": 100, "left": 0, "right": 100, "rows": [[0, 0, 1]]}
    refused(200, "POST", "/api/window", good)
    for change in (
        {"from": "x"}, {"from": "99999999999999999999"}, {"from": "100", "to": "100"}, {"width": 0}, {"width": -1}, {"width": 1000000},
        {"left": 0, "right": 100000}, {"left": 50, "right": 50}, {"rows": [[9999, 0, 1]]}, {"rows": [[-1, 0, 1]]}, {"rows": [[0, 0]]},
        {"rows": [[0, 0, 99999999]]}, {"rows": [["a", 0, 1]]}, {"rows": 7}, {"rows": [[0, 0, 60000]] * 4096}, {"from": None}, {"to": "later"},
    ):
        refused(400, "POST", "/api/window", {**good, **change})
    for body in (b"", b"[]", b"{", b"null", b'{"from":', b"\x00" * 100, b'{"a":' * 5000, b"x" * 1000):
        refused(400, "POST", "/api/window", body)
    c = socket.create_connection(("127.0.0.1", port))
    c.sendall(b"POST /api/window HTTP/1.1\r\nHost: %s\r\nX-Stave-Token: %s\r\nContent-Length: 3000000\r\n\r\n{" % (host.encode(), token.encode()))
    assert b" 413 " in c.recv(100), "a body that is too large"
    for number in ("", "-1", "x", "99999999999", "18446744073709551616", "1x"):
        refused(404, "GET", "/api/slice?slice=" + number)
    refused(400, "POST", "/api/search", {"text": "x" * 5000})
    refused(400, "POST", "/api/area", {"from": "5", "to": "1", "rows": []})
    refused(400, "POST", "/api/notes", {"notes": [1]})
    refused(400, "POST", "/api/notes", b'{"notes":{"a":}}')
    refused(400, "POST", "/api/cut", {"from": "5"})
    c = socket.create_connection(("127.0.0.1", port))
    c.sendall(b"POST /api/window HTTP/1.1\r\nHost: %s\r\nX-Stave-Token: %s\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (host.encode(), token.encode()))
    assert b" 400 " in c.recv(100), "two lengths"


def varints(data):
    at = 4

    def v():
        nonlocal at
        n = shift = 0
        while True:
            b = data[at]
            at += 1
            n |= (b & 127) << shift
            shift += 7
            if b < 128:
                return n

    def raw(n):
        nonlocal at
        at += n
        return data[at - n : at]

    return v, raw, lambda: at


def window(q):
    """The items of every line: {(row, line): [(pixel, n, slice, name, dur, tail)]}."""
    status, data, _ = call("POST", "/api/window", q)
    assert status == 200 and data[:4] == b"SVW1", (status, data[:80])
    v, raw, at = varints(data)
    names, lines = {0: ""}, {}
    for _ in range(v()):
        name = v()
        names[name] = raw(v()).decode()
    for _ in range(v()):
        row, kind = v(), raw(1)[0]
        if kind == 1:
            for _ in range(v()):
                v()
                struct.unpack("<3f", raw(12))
            continue
        first = v()
        for line in range(v()):
            pixel, last, items = q["left"], 0, []
            for _ in range(v()):
                pixel += v()
                n, flags, cover = v(), raw(1)[0], raw(1)[0]
                z = v()
                last += (z >> 1) ^ -(z & 1)
                name, dur, tail = v(), v(), v()
                if flags & 4:
                    v(), v(), raw(1), v()
                assert 1 <= cover <= 255
                items.append((pixel, n, last, names[name], dur - 1, tail))
            lines[row, first + line] = items
    assert at() == len(data), "bytes are left"
    return lines


def pixels_are_sql():
    """How many slices touch a pixel, by the reply and by SQL."""
    trace = ask("/api/trace")
    first, last = int(trace["first"]), int(trace["last"]) + 1
    rows = [[r["id"], 0, r["lines"]] for r in trace["rows"] if r["lines"]]
    checked = 0
    for zoom in (1, 7, 50, 1000):
        span = max((last - first) // zoom, 40)
        start = first + (last - first - span) // 3
        q = {"from": str(start), "to": str(start + span), "width": 40, "left": -5, "right": 45, "rows": rows}
        for (row, line), items in window(q).items():
            counts = {}
            for pixel, n, _, _, _, tail in items:
                counts[pixel] = counts.get(pixel, 0) + max(n, 1)
                for k in range(pixel + 1, pixel + 1 + tail):
                    counts[k] = counts.get(k, 0) + 1
            for pixel in range(-5, 45, 9):
                a, b = start + pixel * span // 40, start + (pixel + 1) * span // 40
                sql = "select count(*) from slice where view_row = %d and view_line = %d and ts < %d and (ts >= %d or (dur = -1 and %d > %d) or ts + dur > %d)" % (row, line, b, a, last - 1, a, a)
                answer = ask("/api/sql", {"sql": sql})
                assert int(answer["rows"][0][0]) == counts.get(pixel, 0), (row, line, pixel, zoom, answer, counts.get(pixel, 0))
                checked += 1
    assert checked > 20, checked


def answers():
    trace = ask("/api/trace")
    assert trace["state"] == "ready" and trace["slices"] > 0
    hits = ask("/api/search", {"text": "FORWARD", "limit": 5})
    assert 0 < len(hits["hits"]) <= 5 and int(hits["total"]) >= len(hits["hits"])
    first = hits["hits"][0]
    one = ask("/api/slice?slice=%d" % first["slice"])
    assert one["name"] == first["name"] and one["ts"] == first["ts"]
    assert ask("/api/slice?id=" + one["id"])["slice"] == first["slice"]
    after = ask("/api/near?slice=%d&to=next&by=name" % first["slice"])["slice"]
    assert after["name"] == first["name"] and int(after["ts"]) >= int(first["ts"]) and after["slice"] != first["slice"]
    assert ask("/api/near?slice=%d&to=previous&by=name" % after["slice"])["slice"]["slice"] == first["slice"]
    step = ask("/api/search", {"text": "FORWARD", "slice": first["slice"], "to": "next"})
    assert step["index"] == "1" and len(step["hits"]) == 1
    area = ask("/api/area", {"from": trace["first"], "to": str(int(trace["last"]) + 1), "rows": [[r["id"], 0, r["lines"]] for r in trace["rows"]]})
    counted = ask("/api/sql", {"sql": "select count(*), count(distinct name) from slice"})["rows"][0]
    assert [area["slices"], str(len(area["names"]))] == counted, (area["slices"], len(area["names"]), counted)
    for row in area["names"][:5]:
        sql = "select count(*), sum(dur), min(dur), max(dur), sum(self_dur) from slice where name = '%s'" % row["text"]
        assert [row["count"], row["total"], row["min"], row["max"], row["self"]] == ask("/api/sql", {"sql": sql})["rows"][0], row
    assert ask("/api/steps")["steps"], "no steps"
    assert "error" in ask("/api/report?subject=gpu")


def samples_are_a_tree():
    trace = ask("/api/trace")
    area = ask("/api/area", {"from": trace["first"], "to": str(int(trace["last"]) + 1), "rows": [[r["id"], 0, r["lines"]] for r in trace["rows"]]})
    paths, nodes = {}, area["flame"]
    for i, node in enumerate(nodes):
        above = paths[node["parent"]] if node["parent"] >= 0 else ()
        paths[i] = above + (node["text"],)
    assert {";".join(paths[i]): (n["count"], n["total"], n["self"]) for i, n in enumerate(nodes)} == {
        "main (run.py)": ("3", "30000000", "0"), "main (run.py);step (train.py)": ("2", "20000000", "20000000"), "main (run.py);vfs_read_[k]": ("1", "10000000", "10000000")}, nodes
    assert [n["colour"] for n in nodes if n["text"] == "vfs_read_[k]"] == [7], nodes


def sql_is_bounded():
    assert "no such column" in ask("/api/sql", {"sql": "select nosuch from slice"})["error"]
    for sql in ("attach 'x.db' as x", "pragma journal_mode=wal", "select load_extension('x')", "select writefile('x','y')", "vacuum into 'x.db'"):
        assert "error" in ask("/api/sql", {"sql": sql}), sql
    many = ask("/api/sql", {"sql": "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n", "limit": 50})
    assert len(many["rows"]) == 50 and many["more"], many
    typed = ask("/api/sql", {"sql": "select -9223372036854775808 a, 1.5 b, null c, 'x' d"})
    assert typed["rows"] == [["-9223372036854775808", "1.5", None, "x"]], typed


def notes():
    assert ask("/api/notes")["notes"] is None
    assert ask("/api/notes", {"notes": {"marks": [{"ts": "17", "text": "<b>é"}]}})["kept"]
    assert ask("/api/notes")["notes"] == {"marks": [{"ts": "17", "text": "<b>é"}]}


def notes_not_kept():
    answer = ask("/api/notes", {"notes": {"a": 1}})
    assert answer["kept"] is False and answer["why"], answer


def at_once():
    """Many clients at the same time get right answers."""
    trace = ask("/api/trace")
    q = {"from": trace["first"], "to": trace["last"], "width": 500, "left": 0, "right": 500, "rows": [[r["id"], 0, r["lines"]] for r in trace["rows"]]}
    right = call("POST", "/api/window", q)[1]
    wrong = []

    def work():
        for _ in range(8):
            if call("POST", "/api/window", q)[1] != right or int(ask("/api/sql", {"sql": "select count(*) from slice"})["rows"][0][0]) != trace["slices"]:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(12)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def old_is_dropped():
    trace = ask("/api/trace")
    q = {"from": trace["first"], "to": trace["last"], "width": 500, "left": 0, "right": 500, "rows": [[0, 0, 1]], "tab": "t"}
    refused(200, "POST", "/api/window", {**q, "seq": 5})
    refused(409, "POST", "/api/window", {**q, "seq": 4})
    refused(200, "POST", "/api/window", {**q, "seq": 4, "tab": "u"})
    refused(200, "POST", "/api/window", {**q, "seq": 6})


def by_socket():
    c = UnixConnection("localhost")
    status, data, _ = call("GET", "/api/trace", name="localhost:8080", connection=c)
    assert status == 200, (status, data)
    refused(403, "GET", "/api/trace", name="evil.example:8080", connection=UnixConnection("localhost"))


def cut():
    trace = ask("/api/trace")
    middle = (int(trace["first"]) + int(trace["last"])) // 2
    status, data, _ = call("POST", "/api/cut", {"from": str(middle), "to": trace["last"]})
    assert status == 200 and len(data) > 100
    with open("cut.pftrace", "wb") as f:
        f.write(data)


def picture():
    """All rows of the trace at several zooms, as bytes."""
    trace = ask("/api/trace")
    sys.stdout.write(json.dumps(trace["rows"]) + json.dumps(trace["notes"]))
    first, last = int(trace["first"]), int(trace["last"]) + 1
    rows = [[r["id"], 0, r["lines"]] for r in trace["rows"]]
    for zoom in (1, 7, 50):
        q = {"from": str(first), "to": str(first + max((last - first) // zoom, 40)), "width": 300, "left": 0, "right": 300, "rows": rows}
        status, data, _ = call("POST", "/api/window", q)
        assert status == 200, data[:200]
        sys.stdout.write(data.hex())


def sides():
    trace = ask("/api/trace")
    assert trace["compared"] and len(trace["files"]) == 2
    assert {r["side"] for r in trace["rows"]} == {0, 1}
    for side in (0, 1):
        hit = [h for h in ask("/api/search", {"text": "forward", "limit": 100})["hits"] if trace["rows"][h["row"]]["side"] == side][0]
        assert hit["ts"] == "0", hit


try:
    globals()[check]()
except AssertionError as e:
    print(check, e.args[0] if e.args else "")
    sys.exit(1)
