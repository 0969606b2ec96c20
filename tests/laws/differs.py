#!/usr/bin/env python3
"""Every number that two surfaces share is the same on both: differs.py LIST [WORD…]

The surfaces are the text, CSV and JSON of `report`, `steps`, `stats`, `info`, `explain`, SQL, and the answers of `view`; the traces are the
inputs of tests/golden and of the reports' own tests, generated ones included. Prints a line for each difference. They must be exactly those of
LIST (tests/laws/differs.txt); UPDATE=1 writes it. WORD: only traces with one of these in their name."""
import concurrent.futures
import bisect
import csv
import glob
import http.client
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

SRC = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAVE = os.environ.get("STAVE", f"{SRC}/build/stave")
SUBJECTS = ("io", "gpu", "batch", "llm", "comm", "wait")
ROWS = 500  # of a table in an answer of the viewer
MOST = 100  # rows of a text that are compared
OTHER_TABLES = {("io", "span")}  # the text sums up what the JSON has one by one


def stave(*words):
    """What a command prints, or None where the trace has nothing of it."""
    done = subprocess.run([STAVE, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def loaded(text):
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


class Trace:
    """A trace of the corpus (one file or several), and what each surface says of it."""

    def __init__(self, name, files):
        self.name, self.files, self.lines, self.kept = name, files, [], {}
        self.common = ["-q", "--no-index", *(["--assume"] if len(files) > 1 else [])]

    def differs(self, what, **values):
        # What runs anew each time has other values each time.
        names = ", ".join(values) if self.name.startswith("examples/") else None
        said = names or ", ".join(f"{k} {shown(v)}" for k, v in values.items())
        self.lines.append(f"{self.name}: {what}: {said}")

    def same(self, what, **values):
        """All values that are known are equal."""
        known = {k.replace("_", " "): v for k, v in values.items() if v is not None}
        first = next(iter(known.values()), None)
        if any(not equal(first, v) for v in known.values()):
            self.differs(what, **known)

    def run(self, *words):
        if words not in self.kept:
            common = self.common if words[0] != "info" else ["-q"]  # it reads no index
            self.kept[words] = stave(*words, *common, *self.files)
        return self.kept[words]

    def report(self, subject, top=0):
        return loaded(self.run("report", subject, "--json", "--top", str(top)))

    def rows(self, query):
        return loaded(stave("query", *self.common, "--to", "json", *self.files, query)) or []

    def sql(self, query):
        """The first row of an answer."""
        rows = self.rows(query)
        return list(rows[0].values()) if rows else [None]


def shown(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def equal(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


# ---- text ----

UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "B": 1, "KiB": 1 << 10,
         "MiB": 1 << 20, "GiB": 1 << 30, "%": 0.01, "GB/s": 1}
NUMBER = re.compile(r"^(-?[\d,]+)(?:\.(\d+))?(?: ?(ns|us|ms|s|min|B|KiB|MiB|GiB|%|GB/s))?$")


def table(text):
    """Columns and rows of the first table in a text: below the line of dashes."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if i and re.fullmatch(r"-[- ]*-|-", line):
            spans = [m.span() for m in re.finditer("-+", line)]
            gaps = [(a[1], b[0]) for a, b in zip(spans, spans[1:])]
            cut = lambda row: [row[a:b].strip() for a, b in spans]
            rows = []
            for row in lines[i + 1:]:
                if not row.strip() or any(row[a:b].strip() for a, b in gaps):
                    break
                rows.append(cut(row))
            return cut(lines[i - 1]), rows
    return [], []


def said_by(cell, values):
    """Is the number of a cell one of the values, rounded or cut as the cell is? None: it is no number."""
    match = NUMBER.match(cell)
    if not match:
        return None
    unit = UNITS[match[3] or ""]
    number = float(match[1].replace(",", "") + "." + (match[2] or "0"))
    step = 1.0000001 * 10 ** -len(match[2] or "")
    return any(abs(v / u - number) <= step for v in values for u in {unit, 1})


def numbers_of(row):
    """The numbers of a JSON row; names that are numbers, too."""
    return [float(v) for v in row.values() if isinstance(v, (int, float)) or
            isinstance(v, str) and v.isdigit()]


def nearest(cells, rows, i):
    """What the JSON row that fits best says to each cell of row i of the text: tables may be sorted otherwise."""
    fits = []
    for row in (*rows[i:i + 1], *rows):
        fits.append([said_by(cell, row) for cell in cells])
        if False not in fits[-1]:  # none fits better
            return fits[-1]
    return max(fits, key=lambda fit: sum(f is True for f in fit))


def text_of(trace, subject, section, rows):
    text = trace.run("report", subject, "--by", section, "--top", "0")
    columns, lines = table(text or "")
    if not columns or (subject, section) in OTHER_TABLES:
        return
    if len(lines) != len(rows):
        trace.differs(f"report {subject} --by {section}, rows", text=len(lines), JSON=len(rows))
        return
    values = [numbers_of(row) for row in rows]
    fits = [nearest(cells, values, i) for i, cells in enumerate(lines[:MOST])]
    for i, column in enumerate(columns):
        known = [fit[i] for fit in fits if fit[i] is not None]
        # A column of which no row is in the JSON is not shared: it is derived from others.
        if sum(known) * 2 >= len(known) and not all(known):
            cell = next(c[i] for c, fit in zip(lines, fits) if fit[i] is False)
            trace.differs(f"report {subject} --by {section}, {column}", text=cell,
                          JSON="no such number")


def csv_of(trace, subject, section, rows):
    text = trace.run("report", subject, "--csv", "--by", section, "--top", "0")
    if text is None:
        return
    lines = list(csv.DictReader(io.StringIO(text)))
    trace.same(f"report {subject} --by {section}, rows", CSV=len(lines), JSON=len(rows))
    for row, line in zip(rows, lines):
        for key, value in row.items():
            cell = line.get(key)
            if isinstance(value, (int, float)) and cell is not None and not (
                    cell and equal(float(cell), float(value))):
                trace.differs(f"report {subject} --by {section}, {key}", CSV=cell, JSON=value)
                return


# ---- one subject, all its forms ----

def forms(trace):
    for subject in SUBJECTS:
        report = trace.report(subject)
        for section, rows in (report or {}).items():
            if isinstance(rows, dict):
                rows = [rows]
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                if section != "total":
                    csv_of(trace, subject, section, rows)
                    if section not in ("summary", "descriptor", "pattern"):
                        text_of(trace, subject, section, rows)


# ---- the viewer ----

class Viewer:
    """`stave view` of a trace, as the page asks it."""

    def __init__(self, trace):
        self.process = subprocess.Popen([STAVE, "view", "--no-browser", *trace.common,
                                         *trace.files], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        url = self.process.stdout.readline().strip()
        self.host, _, self.token = url.partition("/#token=")
        self.host = self.host.split("//")[-1]
        while (self.ask("/api/trace") or {}).get("state") == "loading":
            time.sleep(0.01)

    def ask(self, path):
        if not self.token:
            return None
        connection = http.client.HTTPConnection(self.host, timeout=600)
        connection.request("GET", path, headers={"X-Stave-Token": self.token})
        answer = loaded(connection.getresponse().read().decode())
        return None if answer is None or "error" in answer else answer

    def close(self):
        self.process.terminate()
        self.process.wait()


def first_difference(a, b, path=""):
    """Where two JSON values differ first: path and both values, or None."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            found = first_difference(a.get(key), b.get(key), f"{path}.{key}" if path else key)
            if found:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list):
        if len(b) > len(a):  # the page may show fewer
            return f"{path}, rows", len(a), len(b)
        for i, (x, y) in enumerate(zip(a, b)):
            found = first_difference(x, y, f"{path}[{i}]")
            if found:
                return found
        return None
    return None if equal(a, b) else (path, a, b)


def viewer(trace):
    server = Viewer(trace)
    try:
        for subject in SUBJECTS:
            mine, page = trace.report(subject, ROWS), server.ask(f"/api/report?subject={subject}")
            if mine is None and (page is None or len(trace.files) > 1):
                continue  # some reports take one trace only
            found = first_difference(mine, page)
            if found:
                trace.differs(f"{subject}: {found[0]}", report=found[1], view=found[2])
        whole, info = server.ask("/api/trace") or {}, loaded(trace.run("info", "--json")) \
            if len(trace.files) == 1 else None
        if info and whole:
            trace.same("first", info=info["first_ns"], view=int(whole["first"]))
            trace.same("last", info=info["last_ns"], view=int(whole["last"]))
        return server.ask("/api/steps")
    finally:
        server.close()


# ---- what different surfaces say of the same thing ----

def steps(trace, page):
    """Steps: how many, how long, and how much of it is data."""
    own = loaded(trace.run("steps", "--to", "json")) or []
    wait = [s for s in (trace.report("wait") or {}).get("span", []) if s["kind"] == "step"]
    gpu = (trace.report("gpu") or {}).get("step", [])
    said = loaded(trace.run("explain", "--json")) or {}
    units = said.get("units", {})
    length = lambda rows: (len(rows), sum(s["dur_ns"] for s in rows)) if rows else None
    lists = {"steps": own, "wait": wait, "gpu": gpu,
             "view": [{"dur_ns": int(s["dur"])} for s in page["steps"]] if page else []}
    trace.same("steps, number and time", **{k: length(v) for k, v in lists.items() if own})
    if own and units.get("kind") == "step":
        trace.same("steps, number", steps=len(own), explain=units["n"])
    if own and wait:
        ends = lambda rows, key: (min(int(s[key]) for s in rows), max(int(s[key]) for s in rows)) \
            if rows else None
        trace.same("steps, first and last number", steps=ends(own, "step"),
                   wait=ends(wait, "number"), gpu=ends(gpu, "step"),
                   view=ends(page["steps"] if page else [], "number"))
        trace.same("steps, data", steps=sum(s["data_ns"] for s in own),
                   wait=sum(s["data_ns"] for s in wait))
    if own and page:
        for i, kind in enumerate(page["work"]):
            trace.same(f"steps, {kind}", steps=sum(s.get(f"{kind}_ns", 0) for s in own),
                       view=sum(int(s["work"][i]) for s in page["steps"]),
                       SQL=trace.sql(f"select sum({kind}_ns) from step")[0])
        for note in ("first", "straggler", "outlier"):
            trace.same(f"steps, {note}", steps=sum(s["note"] == note for s in own),
                       view=sum(s["note"] == note for s in page["steps"]))
    if own:
        trace.same("steps, number", steps=len(own), plot=plotted_steps(trace))
        path_of_steps(trace)


def plotted_steps(trace):
    """The number of steps that the picture states."""
    with tempfile.TemporaryDirectory() as folder:
        if stave("plot", "steps", *trace.common, *trace.files, "-o", f"{folder}/steps.svg") is None:
            return None
        with open(f"{folder}/steps.svg") as file:
            said = re.search(r"(\d+) steps by ", file.read())
    return int(said[1]) if said else None


def path_of_steps(trace):
    """The critical path of a step takes as long as the step. Where states or calls are recorded it has of each class what the ledger has."""
    ledger = {}
    for r in trace.rows("select unit_slice_id as id, class, sum(dur) as dur from why where unit_kind = 'step' and unit_slice_id is not null "
                        "group by 1, 2 order by 1"):
        ledger.setdefault(r["id"], {})[r["class"]] = r["dur"]
    whole = {r["slice_id"]: r["dur"] for r in trace.rows("select slice_id, dur from step")}
    for id_ in list(ledger)[::max(1, len(ledger) // 3)]:
        step, dur = f"id:{id_}", sum(ledger[id_].values())
        path = loaded(trace.run("critical-path", "--from", step, "--to", step, "--form", "json"))
        if path is None or whole.get(id_) != dur:
            continue  # a step without a marker, or of other slices than its first one
        trace.same(f"path of {step}", path=sum(p["dur_ns"] for p in path), ledger=dur)
        for word in sorted({p["class"] for p in path if p["class"]}):
            trace.same(f"path of {step}, {word}", ledger=ledger[id_].get(word, 0),
                       path=sum(p["dur_ns"] for p in path if p["class"] == word))


def counts(trace):
    """info, stats and SQL count the same slices."""
    info = loaded(trace.run("info", "--json")) if len(trace.files) == 1 else None
    if info:
        n, first, last = (trace.sql("select count(*), (select start_ts from trace_bounds), "
                                    "(select end_ts from trace_bounds) from slice") + [None] * 3)[:3]
        trace.same("slices and instants", info=info["slices"] + info["instants"], SQL=n)
        if n:
            trace.same("first", info=info["first_ns"], SQL=first)
            trace.same("last", info=info["last_ns"], SQL=last)
    stats = loaded(trace.run("stats", "--to", "json", "--top", "1000000"))
    if stats:
        # A slice without an end lasts until the end of the trace.
        n, total = (trace.sql("select count(*), sum(case when dur < 0 then trace_end() - ts else "
                              "dur end) from slice where dur != 0 and coalesce(category, '') not in "
                              "('thread_state', 'offcpu_sample')") + [None])[:2]
        if n and not any(s["min_ns"] == 0 for s in stats):
            trace.same("slices", stats=sum(s["count"] for s in stats), SQL=n)
            trace.same("time of slices", stats=sum(s["total_ns"] for s in stats), SQL=total)


def gpus(trace):
    gpu = trace.report("gpu")
    if not gpu or "device" not in gpu:  # counters alone have no kernels
        return
    n, total = trace.sql("select count(*), sum(dur) from kernel")
    trace.same("kernels", devices=sum(d["kernels"] for d in gpu["device"]),
               names=sum(k["count"] for k in gpu["kernel"]), SQL=n)
    if n:
        trace.same("time of kernels", report=sum(k["total_ns"] for k in gpu["kernel"]), SQL=total)
    trace.same("copies", devices=sum(d["copies"] for d in gpu["device"]),
               directions=sum(c.get("count", 0) for c in gpu["copy"]),
               SQL=trace.sql("select count(*) from memcpy")[0])
    for device in gpu["device"]:
        gaps = [g for g in gpu["gap"] if g["device"] == device["device"]]
        trace.same(f"idle time of {device['device']}",
                   device=device["span_ns"] - device["busy_ns"],
                   gaps=sum(g["total_ns"] for g in gaps))
    said = loaded(trace.run("explain", "--json")) or {}
    for finding in said.get("findings", []):
        cause = finding["cause"].partition("gpu_")[2]
        if cause == "gap":
            known = [d["longest_gap_ns"] for d in gpu["device"]]
            if finding["worst"][0]["dur"] not in known:
                trace.differs("the longest gap", report=known, explain=finding["worst"][0]["dur"])
        if cause in ("data", "launch", "sync"):
            known = [g["share"] for g in gpu["gap"] if g["cause"] == cause]
            if not any(equal(finding["share"], share) for share in known):
                trace.differs(f"share of {finding['cause']}", report=known, explain=finding["share"])


def gpu_steps(trace):
    """While no device is busy, a step's thread is at work or waits as its ledger says."""
    gpu = trace.report("gpu") or {}
    spaces = trace.sql("select count(distinct machine_id) from process")[0]
    if not gpu.get("step") or "device" not in gpu or len(trace.files) > 1 or (spaces or 0) > 1:
        return
    busy = []
    for row in trace.rows("select ts, dur from kernel union all select ts, dur from memcpy union all select ts, dur from slice "
                          "where category = 'gpu_memset' order by 1"):
        if busy and row["ts"] <= busy[-1][1]:
            busy[-1][1] = max(busy[-1][1], row["ts"] + row["dur"])
        else:
            busy.append([row["ts"], row["ts"] + row["dur"]])
    host = idle = 0
    ends = [b for _, b in busy]
    for p in trace.rows("select ts, dur, class from why where unit_kind = 'step'"):
        free, end = p["dur"], p["ts"] + p["dur"]
        for i in range(bisect.bisect_right(ends, p["ts"]), len(busy)):
            if busy[i][0] >= end:
                break
            free -= min(end, busy[i][1]) - max(p["ts"], busy[i][0])
        if p["class"] in ("compute", "disk", "page", "copy"):
            host += free
        else:
            idle += free
    trace.same("steps of devices, host", report=sum(s["host_ns"] for s in gpu["step"]), ledger=host)
    trace.same("steps of devices, idle", report=sum(s["idle_ns"] for s in gpu["step"]), ledger=idle)


def files(trace):
    report = trace.report("io")
    if not report:
        return
    total = report["total"]
    kinds = {d["kind"]: d for d in report["descriptor"]}
    for member in ("bytes_read", "bytes_written", "time_ns"):
        trace.same(f"files, {member}", total=total[member],
                   descriptors=kinds["file"][member] + kinds["unknown"][member],
                   processes=sum(p[member] for p in report["process"]))
    for file in report["file"][:20]:
        name = file["name"].replace("'", "''")
        row = trace.sql("select opens, reads, writes, bytes_read, bytes_written, dur from file "
                        f"where path = '{name}'")
        if len(row) < 6:
            continue
        for i, member in enumerate(("opens", "reads", "writes", "bytes_read", "bytes_written",
                                    "time_ns")):
            if not equal(file[member], row[i] or 0):
                trace.differs(f"file {file['name']}, {member}", report=file[member], SQL=row[i])
                return


def requests(trace):
    batch, llm = trace.report("batch"), trace.report("llm")
    outcomes = ("rejected", "failed", "cancelled")
    # A request that came to no end is open.
    answered, n_batches = trace.sql("select (select count(*) from request where outcome = "
                                    "'responded' and not is_warmup), (select count(*) from batch)")
    b, l = (batch or {}).get("summary"), (llm or {}).get("summary")
    if not b and not l:
        return
    trace.same("requests", batch=b and b["requests"], llm=l and l["requests"], SQL=answered)
    for outcome in outcomes:
        trace.same(f"requests, {outcome}", batch=b and b[outcome], llm=l and l[outcome],
                   SQL=trace.sql("select count(*) from request where not is_warmup and "
                                 f"outcome = '{outcome}'")[0])
    if b:
        trace.same("batches", report=b["batches"], rows=len(batch["batch"]), SQL=n_batches)
        trace.same("slowest request", report=b.get("latency_max_ns"), SQL=trace.sql(
            "select max(dur) from request where outcome = 'responded' and not is_warmup")[0])
    if b and l:
        both(trace, batch, llm)
    if b and b["requests"] >= 20:
        why_of_requests(trace, batch)
    if l:
        trace.same("engine steps", report=l["steps"], rows=len(llm.get("step", [])) or None,
                   SQL=trace.sql("select count(*) from engine_step where not is_warmup")[0])


def why_of_requests(trace, batch):
    """What requests waited for, by phase and class: the ledger's requests are those of the report."""
    rows = (loaded(trace.run("report", "batch", "--why", "--json", "--top", "0")) or {}).get("why", [])
    time = lambda key, value: sum(r["dur_ns"] for r in rows if r[key] == value)
    for row in trace.rows("select class, sum(dur) as ns from why where unit_kind = 'request' group by 1"):
        trace.same(f"requests, class {row['class']}", report=time("class", row["class"]), SQL=row["ns"])
    for phase in batch["phase"]:
        trace.same(f"requests, time in {phase['phase']}", phases=phase["mean_ns"] * batch["summary"]["requests"],
                   why=float(time("phase", phase["phase"])))


def both(trace, batch, llm):
    """Reports of the same requests."""
    whole = next((f for f in llm["latency"] if f["figure"] == "e2e"), {})
    for member in ("mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"):
        trace.same(f"time of requests, {member}", batch=batch["summary"].get("latency_" + member),
                   llm=whole.get(member))
    queue = [next((p for p in r["phase"] if p["phase"] == "queue"), {}) for r in (batch, llm)]
    trace.same("time in the queue, mean", batch=queue[0].get("mean_ns"), llm=queue[1].get("mean_ns"))


def ranks(trace):
    comm = trace.report("comm")
    if not comm:
        return
    calls, waited = trace.sql("select count(*), sum(wait_ns) from collective")
    trace.same("calls of collectives", report=comm["summary"]["calls"], SQL=calls,
               ranks=sum(r["calls"] for r in comm["rank"]))
    trace.same("collectives", summary=comm["summary"]["collectives"], rows=len(comm["collective"]),
               groups=sum(g["collectives"] for g in comm["group"]))
    trace.same("waiting in collectives", summary=comm["summary"].get("wait_ns"), SQL=waited,
               ranks=sum(r.get("wait_ns") or 0 for r in comm["rank"]))
    said = loaded(trace.run("explain", "--json")) or {}
    own = loaded(trace.run("steps", "--to", "json"))
    for what in ("rank", "host"):
        slow = [r for r in comm.get(what, []) if r.get("is_slow")]
        found = [f for f in said.get("findings", []) if f["cause"] == f"straggler_{what}"]
        trace.same(f"slow {what}s", report=sorted(str(s[what]) for s in slow),
                   explain=sorted(str(f["culprit"][what]) for f in found))
    # A step is a straggler only of a slow rank, or of one on a slow host.
    is_held_up = any(r.get("is_slow") for what in ("rank", "host") for r in comm.get(what, []))
    trace.same("is a rank slow", report=is_held_up,
               steps=any(s["note"] == "straggler" for s in own) if own else None)


# Classes of `report wait`, and those of the ledger that they are sums of.
SUMS = {"compute": ["compute"], "data": ["data"], "gpu": ["gpu", "copy"], "lock": ["lock", "gil"],
        "disk": ["disk", "page"], "cpu": ["cpu"], "rank": ["comm"], "sleep": ["sleep"],
        "peer": ["pipe", "socket", "child"], "queue": ["queue"], "other": ["unknown"]}

# Causes of explain, and the class of `report wait` that holds their time.
CLASSES = {"data": ("data", "slow_file", "cold_cache", "small_files", "small_reads", "slow_worker",
                    "too_few_loaders", "slow_loaders", "straggler_loader"),
           "lock": ("lock", "gil"), "cpu": ("cpu",), "disk": ("disk", "checkpoint", "page_fault"),
           "peer": ("peer", "pipe", "child"), "sleep": ("sleep",)}


def waits(trace):
    wait, said = trace.report("wait"), loaded(trace.run("explain", "--json"))
    if not wait:
        return
    total = wait["summary"]
    if said is not None:
        dur = said.get("dur_ns") or said.get("units", {}).get("dur_ns")
        trace.same("explained time", wait=total["dur_ns"], explain=dur)
        # Where the time went: explain's shares are sums of the table `why`, and so are the classes.
        sums = {r["class"]: r["ns"] for r in trace.rows(
            "select class, sum(dur) as ns from why where counts group by 1")}
        for name in {*sums, *said.get("time", {})} if dur else ():
            trace.same(f"share of class {name}", SQL=sums.get(name, 0) / dur,
                       explain=said["time"].get(name, 0))
        for kind, classes in SUMS.items():
            trace.same(f"class {kind}", wait=total[f"{kind}_ns"],
                       SQL=sum(sums.get(name, 0) for name in classes))
    for kind, causes in CLASSES.items():
        share = sum(f.get("share", 0) for f in (said or {}).get("findings", [])
                    if f["cause"] in causes)
        of_wait = total[f"{kind}_ns"] / total["dur_ns"] if total["dur_ns"] else 0
        if share > of_wait + 0.0051:
            trace.differs(f"share of {kind}", wait=of_wait, explain=share)
    spans = [s for s in wait["span"] if s["kind"] in ("step", "between steps")]
    if not spans:
        return
    for member in ("dur_ns", "data_ns", "lock_ns", "disk_ns", "cpu_ns", "sleep_ns"):
        trace.same(f"wait, {member}", summary=total[member], spans=sum(s[member] for s in spans))


def generated(folder):
    """Traces of the tests' own generators."""
    env = dict(os.environ, STAVE=STAVE)
    run = lambda *words, **more: subprocess.run([sys.executable, *words], cwd=folder, check=True,
                                                env=dict(env, **more), stdout=more.pop("out", None))
    run(f"{SRC}/tests/cli/explain/planted.py", "planted")
    for path in sorted(glob.glob(f"{folder}/planted/*-0.txt")):
        yield "planted/" + os.path.basename(path), [path]
    for case in ("data", "gap", "launch", "copy", "comm", "ok"):
        run(f"{SRC}/tests/why/programs/kineto.py", case, WHY_TRACE=f"{folder}/gpu_{case}",
            WHY_TRUTH="/dev/null")
        yield f"why/gpu_{case}", [f"{folder}/gpu_{case}.trace.json"]
    for case in ("sleeper", "node", "ok"):
        run(f"{SRC}/tests/why/programs/ranks.py", case, WHY_TRACE=f"{folder}/ranks_{case}",
            WHY_TRUTH="/dev/null")
        yield f"why/ranks_{case}", sorted(glob.glob(f"{folder}/ranks_{case}.rank*"))
    run(f"{SRC}/tests/cli/report_comm/kineto.py")
    for name in ("new.own", "old.own", "new.host", "equal.own"):
        yield f"report_comm/{name}", sorted(glob.glob(f"{folder}/{name}.rank*.json"))
    with open(f"{folder}/engine.json", "w") as out:
        subprocess.run([sys.executable, f"{SRC}/tests/cli/report_llm/engine.py"], check=True,
                       stdout=out)
    yield "report_llm/engine", [f"{folder}/engine.json"]


def examples(folder):
    """What the bundled examples write."""
    programs = f"{os.environ.get('BUILD', SRC + '/build')}/examples"
    for name, words in (("serving", ["."]), ("continuous_batching", [".", "60", "1"])):
        if os.path.exists(f"{programs}/{name}"):
            os.mkdir(f"{folder}/{name}")
            subprocess.run([f"{programs}/{name}", *words], cwd=f"{folder}/{name}", check=True,
                           stdout=subprocess.DEVNULL)
            for path in sorted(glob.glob(f"{folder}/{name}/batching_trace*")):
                yield f"examples/{name}/" + os.path.basename(path), [path]


def corpus(folder):
    for path in sorted(glob.glob(f"{SRC}/tests/golden/good/*")):
        if not path.endswith(".txt"):
            yield "golden/" + os.path.basename(path), [path]
    for path in ("report_gpu/gaps.json", "gpu/kineto.json", "report_comm/ranks.txt"):
        yield path.split(".")[0], [f"{SRC}/tests/cli/{path}"]
    yield from generated(folder)
    yield from examples(folder)


def compare(trace):
    """All differences of a trace. What is no trace for the verbs (bad input) has none."""
    if len(trace.files) == 1 and trace.run("info", "--json") is None:
        return [f"{trace.name}: no info"]
    forms(trace)
    page = viewer(trace)
    for law in (counts, gpus, gpu_steps, files, requests, ranks, waits):
        law(trace)
    steps(trace, page)
    return list(dict.fromkeys(trace.lines))


def main():
    path, words = sys.argv[1], sys.argv[2:]
    with open(path) as file:
        listed = [line.rstrip("\n") for line in file if line.strip() and line[0] != "#"]
        file.seek(0)
        head = [line for line in file if line[:1] == "#"]
    lines, traces = [], 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMP")) as folder:
        chosen = [Trace(name, files_) for name, files_ in corpus(folder)
                  if not words or any(w in name for w in words)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
            for found in pool.map(compare, chosen):
                lines += found
        traces = len(chosen)
    names = {trace.name for trace in chosen}
    listed = [line for line in listed if line.split(":")[0] in names]
    new, gone = [x for x in lines if x not in listed], [x for x in listed if x not in lines]
    if os.environ.get("UPDATE") == "1" and not words:
        with open(path, "w") as file:
            file.writelines(head + [line + "\n" for line in lines])
        new = gone = []
    for line in new:
        print("differs: " + line)
    for line in gone:
        print(f"no longer differs, remove it from {os.path.basename(path)}: " + line)
    print(f"{traces} traces, {len(lines)} differences, {len(new)} new, {len(gone)} gone")
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
