#!/usr/bin/env python3
"""The work and the memory of readers and commands grow in step with the input.

scaling.py STAVE [--all] [--only WORD]: for shapes of traces (shapes.py) at n, 2n and 4n each command runs three times in the build
that counts its own work (tests/harness/count.c), so no clock is involved and the numbers are the same everywhere. From n to 2n the work
grows by d1, from 2n to 4n by d2. Linear work has d2 = 2 d1, n log n a little more, quadratic 4 d1. What they have at the start does not
matter. The same for memory, as far as it can be seen above what a page more or less makes.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shapes  # noqa: E402  (beside this file)

GROWTH_MAX = 2.6          # d2 / d1
WORK_SLACK = 20000        # blocks: what a table that doubles may cost more
MEMORY_SLACK_KIB = 2048   # an arena, a buffer that doubles
MEMORY_MAX_KIB = 512 << 10  # of any command on these inputs

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src")

# Verbs that read a trace, with the ways in which each is run. {in}: the trace, {copy}: the same in another file, {out}: a file to be made.
VERBS = {
    "cat": {"": "cat {in}"},
    "info": {"": "info {in}", "json": "info --json {in}"},
    "validate": {"": "validate {in}"},
    "redact": {"": "redact {in} -o {out}.pftrace"},
    "symbolize": {"": "symbolize {in} -o {out}.pftrace"},
    "convert": {
        "perfetto": "convert {in} -o {out}.pftrace",
        "perfetto-gpu": "convert {in} -o {out}.pftrace --dialect gpu",
        "chrome": "convert {in} -o {out}.json",
        "csv": "convert {in} -o {out}.csv",
        "kineto": "convert {in} -o {out}.json --dialect kineto",
        "ferrum": "convert {in} -o {out}.json --dialect ferrum",
        "tracesmith": "convert {in} -o {out}.json --dialect tracesmith",
        "dot": "convert {in} -o {out}.dot",
    },
    "import": {"": "import {in} -o {out}.pftrace"},
    "merge": {"": "merge {in} {copy} --assume -o {out}.pftrace"},
    "cut": {"": "cut {in} --time 10us: -o {out}.pftrace", "track": "cut {in} --track *a* -o {out}.pftrace"},
    "stats": {"": "stats {in}", "groups": "stats {in} --group-by cat,name,track"},
    "steps": {"": "steps {in}"},
    "explain": {"": "explain {in}"},
    "whatif": {"": "whatif {in}", "median": "whatif {in} --json --as-median rank", "without": "whatif {in} --json --without cause:lock"},
    "critical-path": {"": "critical-path {in}", "summary": "critical-path {in} --summary"},
    "diff": {"": "diff {in} {in} --all"},
    "query": {
        "slices": ["query", "{in}", "select count(*), sum(dur), max(depth) from slice"],
        "threads": ["query", "{in}", "select thread.name, count(*) from slice join thread_track on track_id = thread_track.id "
                                     "join thread using (utid) group by 1"],
        "processes": ["query", "{in}", "select count(*) from process join thread using (upid)"],
        "counters": ["query", "{in}", "select count(*), max(value) from counter join counter_track on track_id = counter_track.id"],
        "args": ["query", "{in}", "select count(*) from slice join args using (arg_set_id)"],
        "parents": ["query", "{in}", "select count(*) from slice a join slice b on a.parent_id = b.id"],
        "children": ["query", "{in}", "select count(*) from slice a join slice b on b.parent_id = a.id"],
        "flows": ["query", "{in}", "select count(*) from flow join slice on slice_out = slice.id"],
    },
    "export": {
        "json": "export {in} --to json -o {out}.json --force",
        "folded": "export {in} --to folded -o {out}.folded --force",
        "sqlite": "export {in} --to sqlite -o {out}.db --force",
        "csv-dir": "export {in} --to csv-dir -o {out}.csvs --force",
        "parquet": "export {in} --to parquet -o {out}.parquet --run r --rank 0 --force",
        "perfetto-tar": "export {in} --to perfetto-tar -o {out}.tar --force --assume",
        "otlp": ["export", "{in}", "--to", "otlp", "-o", "{out}.otlp", "--force", "--category", "*"],
    },
    "report": {},  # a way for each subject, below
    "plot": {"batch": "plot batch {in} -o {out}.svg"},  # and a way for each kind
    "view": {"export": "view {in} --export {out}.html"},
    "show": {"": "show --once {in}"},
}
# Verbs that read no trace, or no whole one.
OTHERS = {"record", "top", "status", "stop", "trigger", "doctor", "sync", "recover", "listen", "help", "completion", "man", "verbs", "formats"}


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def listed(header, macro):
    """The names of a list of the program: its own headers say which verbs, subjects and kinds of pictures there are."""
    return re.findall(r"^ +" + macro + r"\((\w+)", text_of(header), re.MULTILINE)


def reports():
    """The names of the reports: each subject that has one names it."""
    with_report = [name for name, has in re.findall(r"^ +SUBJECT\((\w+), (\w+)", text_of("subjects/list.h"), re.MULTILINE) if has == "HAS"]
    return [re.search(r'sv_report_subject sv_\w+_report = {\s*\.name = "(\w+)"', text_of(f"subjects/{name}/sections.c"))[1] for name in with_report]


def commands():
    """Every way of every verb by its name. A verb, subject or kind that is new is in it, or this fails."""
    verbs = {v.replace("_", "-") for v in listed("cmd/commands.h", "X")}
    unknown = verbs ^ (set(VERBS) | OTHERS)
    if unknown:
        sys.exit(f"not ok verbs: how do these grow? Put them into VERBS or OTHERS of {__file__}: {', '.join(sorted(unknown))}")
    ways = {verb: dict(ways) for verb, ways in VERBS.items()}
    for subject in reports():
        ways["report"][subject] = f"report {subject} {{in}}"
        ways["report"][subject + "-json"] = f"report {subject} {{in}} --json --all"
    for kind in listed("plot/kinds.h", "KIND"):
        name = ["*"] if kind in ("hist", "counter") else []
        ways["plot"][kind] = ["plot", kind, "{in}", *name, "-o", "{out}.svg"]
    return {"-".join(filter(None, (verb, way))): line for verb, lines in ways.items() for way, line in lines.items()}


COMMANDS = commands()

# A picture draws each slice as long as there are fewer than pixels, and groups of them from there on: these are judged at eight times the size.
PIXELS = ("plot-timeline", "plot-layers", "show")

# Once more from a Perfetto file: what reads in another way than the rest.
PERFETTO = ["cat", "info", "validate", "stats", "convert-chrome", "merge", "cut", "report-wait"]

# Of the logs of other tools: what their readers do.
LOGS = ["cat", "info", "stats", "convert-perfetto", "report-io"]

# What `make test` looks at: the shapes on which something was quadratic once, or easily becomes so.
QUICK = {
    "nested": ["critical-path", "convert-perfetto", "query-children"],
    "nested_edges": ["cat", "plot-flame"],
    "overlapping": ["convert-perfetto", "plot-timeline"],
    "threads": ["convert-chrome", "report-io"],
    "processes": ["info", "report-wait", "convert-perfetto"],
    "process_phases": ["explain"],
    "process_counters": ["view-export"],
    "forks": ["report-wait"],
    "flows_of_one_slice": ["validate", "convert-perfetto"],
    "arguments_of_one_slice": ["validate", "query-args"],
    "states_of_threads": ["export-sqlite"],
    "names": ["stats-groups"],
    "flows": ["critical-path"],
    "flows_into_one": ["query-flows"],
    "async_open": ["convert-chrome"],
    "arguments": ["query-args"],
    "counters": ["convert-perfetto"],
    "unsorted": ["merge"],
    "begins": ["validate"],
    "kernels": ["report-gpu"],
    "streams": ["report-gpu-json"],
    "steps_of_threads": ["steps", "report-gpu"],
    "steps_within_others": ["steps"],
    "phases_of_calls": ["report-io"],
    "calls": ["report-io"],
    "batches": ["report-batch"],
    "ranks": ["whatif", "report-comm"],
    "steps_of_ranks": ["whatif-median", "report-comm"],
    "pipelines": ["whatif", "steps"],
    "one_pipeline_step": ["whatif"],
    "starpu_tasks.log": ["cat"],
    "metadata_lines": ["cat"],
    "meeting_flows": ["convert-perfetto"],
    "meeting_tracks": ["info"],
}

# (shape, command): why it may grow faster.
NESTED_PHASES = "each phase is divided by itself: phases in phases cost what they hold, once for each level"
EXCUSED = {("phases_of_calls", command): NESTED_PHASES for command in ("explain", "report-wait", "report-wait-json", "view-export")}


def words(command, trace, out):
    parts = command.split() if isinstance(command, str) else command
    if "{copy}" in parts:
        shutil.copyfile(trace, out + ".copy")
    return [part.replace("{in}", trace).replace("{copy}", out + ".copy").replace("{out}", out) for part in parts]


class Runner:
    def __init__(self, stave, folder):
        self.stave, self.folder, self.made = stave, folder, {}

    def trace(self, shape, n, form):
        """The file of a shape; form "pftrace" is the same as Perfetto, for its reader."""
        key = (shape, n, form)
        if key not in self.made:
            suffix, data = shapes.build(shape, n)
            path = os.path.join(self.folder, f"{shape}.{n}.{suffix}")
            with open(path, "wb") as f:
                f.write(data)
            if form == "pftrace":
                other = os.path.join(self.folder, f"{shape}.{n}.pftrace")
                subprocess.run([self.stave, "convert", "-q", path, "-o", other], check=True, stderr=subprocess.DEVNULL)
                path = other
            self.made[key] = path
        return self.made[key]

    def measure(self, shape, n, form, command):
        count = os.path.join(self.folder, "count")
        if os.path.exists(count):
            os.remove(count)
        # One thread: what several do while they wait for each other is not the same each time.
        argv = [self.stave] + words(COMMANDS[command], self.trace(shape, n, form), os.path.join(self.folder, "out")) + ["--threads", "1"]
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env={**os.environ, "STAVE_COUNT": count}, timeout=300, check=False)
        if done.returncode not in (0, 1, 2, 3, 4, 5, 6) or not os.path.exists(count):
            raise RuntimeError(f"exit status {done.returncode}: {' '.join(argv)}: {done.stderr[-300:]!r}")
        with open(count, encoding="ascii") as f:
            work, memory = map(int, f.read().split())
        return work, memory


def judge(values, slack):
    """None, or why the three values do not grow in step."""
    d1, d2 = values[1] - values[0], values[2] - values[1]
    if d2 <= GROWTH_MAX * max(d1, 0) + slack:
        return None
    return f"{values[0]:,} → {values[1]:,} → {values[2]:,}: grows by {d2 / max(d1, 1):.1f}"


def check(runner, shape, command, n, form):
    if (shape, command) in EXCUSED:
        return None
    rows = [runner.measure(shape, n * k, form, command) for k in (1, 2, 4)]
    work, memory = zip(*rows)
    bad = judge(work, WORK_SLACK)
    if bad:
        return "work: " + bad
    bad = judge(memory, MEMORY_SLACK_KIB)
    if bad:
        return "memory (KiB): " + bad
    return f"memory: {max(memory):,} KiB" if max(memory) > MEMORY_MAX_KIB else None


def plan(options):
    if not (options.all or options.only):
        return [(s, c, "") for s, commands in QUICK.items() for c in commands]
    return [(s, c, "") for s in shapes.SHAPES for c in COMMANDS] + [
        (s, c, "pftrace") for s in shapes.SHAPES for c in PERFETTO] + [(s, c, "") for s in shapes.LOGS for c in LOGS]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stave")
    parser.add_argument("--all", action="store_true", help="every shape with every command, larger")
    parser.add_argument("--only", default="", help="only what has this word in SHAPE.COMMAND.FORM")
    parser.add_argument("-n", type=int, default=0)
    options = parser.parse_args()
    n = options.n or (4000 if options.all else 1000)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options.stave, folder)
        last = None
        for shape, command, form in plan(options):
            name = ".".join(filter(None, (shape, command, form)))
            if options.only not in name:
                continue
            if last != (shape, form):
                for path in runner.made.values():
                    if os.path.exists(path):
                        os.remove(path)
                runner.made.clear()
                last = (shape, form)
            try:
                bad = check(runner, shape, command, 8 * n if options.all and command in PIXELS else n, form)
            except (RuntimeError, subprocess.SubprocessError) as e:
                bad = str(e)
            print(f"not ok {name}: {bad}" if bad else f"ok {name}", flush=True)
            failed += bool(bad)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
