#!/usr/bin/env python3
"""A second reader of Chrome JSON, on Python's json, for the tests of the first.

    chrome_expected.py FILE           prints the lines that tests/unit/chrome_text.c must give for a well-formed file
    chrome_expected.py --make SEED N  prints a random file of N events in random layout and form

Written from the rules, not from the C code: it keeps whole files in memory and numbers as text."""
import gzip
import json
import math
import random
import sys
from decimal import Decimal, ROUND_HALF_EVEN

INT_MAX, UINT_MAX = 2**63 - 1, 2**64 - 1


class Number(str):
    """The text of a number, as the file has it."""

    @property
    def is_int(self):
        return not any(c in self for c in ".eE")


def escaped(text):
    out = []
    for char in text:
        if 0xD800 <= ord(char) < 0xE000:
            char = "\ufffd"
        if char in "\n\t\r\\":
            out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}[char])
        elif ord(char) < 0x20 or ord(char) == 0x7F:
            out.append("\\x%02x" % ord(char))
        else:
            out.append(char)
    return "".join(out)


def nanoseconds(value):
    """Microseconds as text → integer nanoseconds, ties to even; None when it is no number."""
    try:
        return int((Decimal(value) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
    except ArithmeticError:
        return None


def double(text):
    d = float(text)
    if math.isinf(d):
        return "-infd" if d < 0 else "infd"
    return "%.17gd" % d


def number(text):
    if text.is_int:
        i = int(text)
        if -(2**63) <= i <= INT_MAX:
            return str(i)
        if 0 <= i <= UINT_MAX:
            return "%du" % i
    return double(text)


def value(v):
    if v is None:
        return "null"
    if v is True or v is False:
        return "true" if v else "false"
    if isinstance(v, Number):
        return number(v)
    if isinstance(v, str):
        return "'%s'" % escaped(v)
    if isinstance(v, dict):
        return "{%s}" % members(v)
    return "[%s]" % ",".join(value(x) for x in v)


def members(d):
    return ",".join("%s%s%s" % (escaped(k), "=" if k else "", value(v)) for k, v in d.items())


class Reader:
    def __init__(self):
        self.flows, self.asyncs, self.lines, self.base = {}, {}, [], 0

    def number_of(self, v):
        """pid or tid → its name in a path."""
        if isinstance(v, Number):
            return str(int(Decimal(v)))
        try:
            if v.strip() == v and not v.startswith("+") and (v == "0" or not v.lstrip("-").startswith("0")):
                return str(int(v))
        except ValueError:
            pass
        return "*" + v

    def process(self, e):
        pid = e.get("pid")
        return "p" + (self.number_of(pid) if pid is not None else "0")

    def thread(self, e):
        tid = e.get("tid")
        return "%s/t%s" % (self.process(e), self.number_of(tid) if tid is not None else self.process(e)[1:])

    def identity(self, e):
        def plain(v):
            try:
                return int(v, 16) if v.lower().startswith("0x") else int(v)
            except ValueError:
                return v
        if e.get("id") is not None:
            return ("", plain(e["id"]))
        id2 = e.get("id2") or {}
        if "global" in id2:
            return ("", plain(id2["global"]))
        if "local" in id2:
            return (self.process(e), plain(id2["local"]))
        return None

    def flow(self, key):
        return "#%d" % self.flows.setdefault(key, len(self.flows) + 1)

    def extras(self, e, used):
        out = []
        for key, text in (("tts", "tts"), ("tdur", "tdur")):
            if key in e:
                out.append("%s %d" % (text, nanoseconds(e[key])))
        if "bind_id" in e and (e.get("flow_in") or e.get("flow_out")):
            kind = "~" if e.get("flow_in") and e.get("flow_out") else "<" if e.get("flow_in") else ">"
            out.append(kind + self.flow(("bind", int(e["bind_id"], 0))))
            used = used + ("bind_id", "flow_in", "flow_out")
        for key in ("id", "id2", "scope", "bind_id", "flow_in", "flow_out", "bp", "s", "sf", "esf"):
            if key in e and key not in used:
                out.append("%s=%s" % (key, value(e[key])))
        return out

    KNOWN = ("ph name cat pid tid ts dur args tts tdur id id2 scope bind_id flow_in flow_out bp s sf esf stack "
             "estack").split()

    def arguments(self, e, used):
        """`args` and unknown fields in the order of the file, then what Chrome keeps elsewhere."""
        out = []
        for key, v in e.items():
            if key == "args" and isinstance(v, dict):
                if v:
                    out.append(members(v))
            elif key == "args" and v is not None:
                out.append("args=" + value(v))
            elif key not in self.KNOWN:
                out.append("%s=%s" % (escaped(key), value(v)))
        if "dur" in e and e["ph"] != "X" and e["ph"] not in "sft":
            out.append("dur_ns=%d" % nanoseconds(e["dur"]))
        return out + self.extras(e, used)

    def emit(self, letter, e, track, used=(), dur=None, flags="", first=(), named=True):
        line = "%s %d" % (letter, self.base + nanoseconds(e["ts"]))
        if dur is not None:
            line += "+%d" % dur
        line += " " + track
        if named and e.get("name"):
            line += " " + escaped(e["name"])
        if named and e.get("cat"):
            line += " [%s]" % escaped(e["cat"])
        args = list(first) + self.arguments(e, used)
        self.lines.append(line + flags + (" " + ",".join(args) if args else ""))

    def counter(self, e):
        name = e["name"] + ("[%s]" % e["id"] if "id" in e else "")
        unit = isinstance(e["args"].get("unit"), str) and not isinstance(e["args"].get("unit"), Number)
        series = [(k, v) for k, v in e["args"].items() if not (k == "unit" and unit)]
        for key, v in series:
            track = "%s/counter:%s" % (self.process(e), escaped(name))
            if not (len(series) == 1 and key in ("value", e["name"])):
                track += "/counter:" + escaped(key)
            self.lines.append("C %d %s%s %s" % (self.base + nanoseconds(e["ts"]), track,
                                               " [%s]" % escaped(e["cat"]) if e.get("cat") else "",
                                               number(v) if isinstance(v, Number) else number(Number(v))))

    def event(self, e):
        ph = e["ph"][0]
        if ph == "X":
            dur = nanoseconds(e["dur"]) if "dur" in e else 0
            self.emit("X", e, self.thread(e), dur=max(dur, 0))
        elif ph in "BE":
            self.emit(ph, e, self.thread(e), named=ph == "B")
        elif ph in "iI":
            s = e.get("s", "t")
            track = {"g": "custom:Global", "p": self.process(e)}.get(s) or self.thread(e)
            self.emit("i", e, track, ("s",), flags={"g": " global", "p": " process"}.get(s, ""))
        elif ph in "sft":
            pid, plain = self.identity(e)
            key = (e.get("cat", ""), e.get("name", ""), pid, plain)
            first = [{"s": ">", "t": "~", "f": "<"}[ph] + self.flow(key)]
            flags = " next" if ph == "f" and e.get("bp") != "e" else ""
            self.emit("f", e, self.thread(e), ("id", "id2", "scope", "bp"), flags=flags, first=first)
        elif ph in "bne":
            key = (e.get("cat", ""), e.get("scope", "")) + self.identity(e)
            track = self.asyncs.setdefault(key, "%s/async:%s" % (self.process(e), escaped(e.get("name", ""))))
            self.emit({"b": "B", "n": "i", "e": "E"}[ph], e, track, ("id", "id2", "scope"), named=ph != "e")
        elif ph == "C":
            self.counter(e)
        elif ph in "PR()vVcSTFpNOD":
            self.lines.append(None)  # counted, not compared

    def read(self, document):
        keys = list(document) if isinstance(document, dict) else []
        if "baseTimeNanoseconds" in keys and keys.index("baseTimeNanoseconds") < keys.index("traceEvents"):
            self.base = int(document["baseTimeNanoseconds"])
        for e in document["traceEvents"] if keys else document:
            if e:
                self.event(e)


def expect(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as f:
        text = f.read().decode("utf-8", "surrogateescape")
    reader = Reader()
    reader.read(json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number, strict=False))
    sys.stdout.reconfigure(errors="surrogateescape")
    for line in reader.lines:
        print("?" if line is None else line)


# ---- random files ----

WORDS = ["", "a", "aten::add", "name", "x y", "\u00e9t\u00e9", "\u65e5\u672c\u8a9e", "\U0001f600", "tab\there", "quote\"d", "back\\slash",
         "{\"not\": \"json\"}", "],[", "line\nbreak", "k" * 50, "m" * 300, "\u007f", "unit", "value", "ph", "ts"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.blank = self.r.choice([lambda: "", lambda: " ", lambda: self.r.choice(["", " ", "\n", "\t ", " " * 20, "\r\n"])])

    def text(self, s):
        out = []
        for c in s:
            roll = self.r.random()
            if c in "\"\\" or ord(c) < 0x20:
                out.append(json.dumps(c)[1:-1])
            elif roll < 0.05:
                out.append(json.dumps(c)[1:-1] if ord(c) > 0x7F else "\\u%04X" % ord(c))
            elif c == "/" and roll < 0.5:
                out.append("\\/")
            else:
                out.append(c)
        return '"%s"' % "".join(out)

    def number(self):
        r = self.r
        return r.choice([
            lambda: str(r.randint(-5, 300)), lambda: str(r.randint(-2**63, 2**63 - 1)), lambda: str(r.randint(0, 2**64 - 1)),
            lambda: str(r.randint(0, 10**25)), lambda: repr(r.uniform(-1e6, 1e6)), lambda: "%d.%06d" % (r.randint(0, 99), r.randint(0, 999999)),
            lambda: "%de%d" % (r.randint(1, 99), r.randint(-30, 30)), lambda: "%.3fE+%d" % (r.random(), r.randint(0, 9)),
            lambda: repr(r.random() * 10**r.randint(-300, 300)), lambda: "-0", lambda: "0.0"])()

    def time(self):
        r = self.r
        n = r.choice([r.randint(0, 99), r.randint(0, 10**9), r.randint(0, 10**15), r.randint(0, 4611686018427380)])  # an end must fit, too
        text = r.choice(["%d", "%d.%03d" % (n, r.randint(0, 999)), "%d.%d" % (n, r.randint(0, 9)), "%d.%05d" % (n, r.randint(0, 99999))])
        text = text % n if "%" in text else text
        return '"%s"' % text if r.random() < 0.1 else text

    def tree(self, depth):
        r, roll = self.r, self.r.random()
        b = self.blank
        if roll < 0.35:
            return self.number()
        if roll < 0.7:
            return self.text(r.choice(WORDS))
        if roll < 0.8 or depth > 4:
            return r.choice(["true", "false", "null"])
        n = r.choice([0, 1, 2, 5])
        if roll < 0.9:
            return "[%s]" % ",".join(b() + self.tree(depth + 1) + b() for _ in range(n))
        return self.object({w: self.tree(depth + 1) for w in r.sample(WORDS, n)})

    def object(self, d, shuffle=False):
        b = self.blank
        items = list(d.items())
        if shuffle:
            self.r.shuffle(items)
        return "{%s}" % ",".join("%s%s%s:%s%s%s" % (b(), self.text(k), b(), b(), v, b()) for k, v in items)

    def event(self):
        r = self.r
        ph = r.choice("XXXXXBEiIsftbneC")
        e = {"ph": '"%s"' % ph, "ts": self.time(), "name": self.text(r.choice(WORDS) or "z")}
        e["pid"] = r.choice(["1", "2", '"7"', "4194304", "12345678901"])
        e["tid"] = r.choice(["1", "2", '"12"', "99999999"])
        if r.random() < 0.8:
            e["cat"] = self.text(r.choice(["cpu_op", "kernel", "a,b", "\u00e9"]))
        if ph == "X":
            e["dur"] = self.time()
        if ph in "sftbne":
            e[r.choice(["id", "id", "id2"])] = r.choice(["5", '"0x5"', '"abc"', '"0xffffffffffffffff"'])
            if "id2" in e:
                e["id2"] = '{"%s":%s}' % (r.choice(["local", "global"]), e["id2"])
        if ph in "iI" and r.random() < 0.7:
            e["s"] = '"%s"' % r.choice("gpt")
        if ph == "f" and r.random() < 0.5:
            e["bp"] = '"e"'
        if ph in "XB" and r.random() < 0.2:
            e["tts"] = str(r.randint(0, 10**9))
            e["bind_id"] = '"0x%x"' % r.randint(1, 9)
            e[r.choice(["flow_in", "flow_out"])] = "true"
        if ph == "C":
            e["args"] = self.object({r.choice("abc") + str(i): r.choice(["1", "2.5", '"7"', "-3"]) for i in range(r.randint(1, 3))})
        elif r.random() < 0.8:
            e["args"] = self.object({w: self.tree(0) for w in r.sample(WORDS, r.randint(0, 8))})
        if ph != "C" and r.random() < 0.1:
            e["cname"] = self.tree(2)
        return self.object(e, r.random() < 0.3)

    def file(self, n):
        events = ",".join(self.blank() + self.event() + self.blank() for _ in range(n))
        if self.r.random() < 0.5:
            return "[%s]" % events
        return '{"displayTimeUnit":"ns","traceEvents":[%s],"otherData":{"a":[1,2]}}' % events


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--make":
        sys.stdout.buffer.write(Maker(int(sys.argv[2])).file(int(sys.argv[3])).encode())
    else:
        expect(sys.argv[1])


main()
