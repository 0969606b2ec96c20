"""Programs are run as users run them, in a process of their own; what they wrote is read back with `stave query`."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

STAVE = os.environ["STAVE"]
NO_OUT = {k: v for k, v in os.environ.items() if not k.startswith("STAVE_")}

# As where the package was built from source: the script's own process records.
ALONE = """import sys
from stave import __main__, _program
_program.path = lambda: None
sys.argv[0] = "stave"
sys.exit(__main__.main(sys.argv[1:]))
"""


def ask(path, sql):
    done = subprocess.run([STAVE, "query", "-q", str(path), sql, "--to", "jsonl"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Trace:
    """All of a trace, by one run of the program: rows of the three statements differ by their columns."""
    ALL = """
        select arg_set_id, key, coalesce(int_value, real_value, string_value) as v from args where key like 'debug.%' or key like 'args.%';
        select id, name, parent_id, owner_utid, owner_upid, unit from track;
        select id, ts, dur, name, category, track_id, depth, parent_id, arg_set_id, kind from slice order by ts, id"""

    def __init__(self, path):
        self.path = str(path)
        self.args, self.tracks, self.slices = {}, {}, []
        for r in self.ask(self.ALL):
            if "key" in r:
                self.args.setdefault(r["arg_set_id"], {})[r["key"].split(".", 1)[1]] = r["v"]
            elif "ts" in r:
                self.slices.append(r)
            else:
                self.tracks[r["id"]] = r
        for s in self.slices:
            s["args"] = self.args.get(s["arg_set_id"], {})
            s["track"] = self.tracks[s["track_id"]]["name"]
        self.by_id = {s["id"]: s for s in self.slices}

    def ask(self, sql):
        return ask(self.path, sql)

    def named(self, name):
        return [s for s in self.slices if s["name"] == name]

    def one(self, name):
        found = self.named(name)
        assert len(found) == 1, f"{name}: {len(found)} of {[s['name'] for s in self.slices]}"
        return found[0]

    def names(self):
        return [s["name"] for s in self.slices]

    def parent(self, s):
        return self.by_id[s["parent_id"]]["name"] if s["parent_id"] is not None else None

    def counter(self, name):
        return [r["value"] for r in self.ask(f"select value from counters where name = '{name}' order by ts")]

    def flows(self):
        return sorted((self.by_id[r["slice_out"]]["name"], self.by_id[r["slice_in"]]["name"])
                      for r in self.ask("select slice_out, slice_in from flow"))


class Runner:
    def __init__(self, folder):
        self.folder = folder

    def run(self, program, *, env=None, command=None, code=0, check=True):
        """Runs the text as prog.py; returns what it printed."""
        (self.folder / "prog.py").write_text(textwrap.dedent(program))
        command = command or ["prog.py"]
        done = subprocess.run([sys.executable, *command], cwd=self.folder, capture_output=True, text=True,
                              env={**NO_OUT, **(env or {})}, timeout=300)
        self.stderr = done.stderr
        if check:
            assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def trace(self, program, *, out="t.pftrace", **kwargs):
        """Runs it with a session around it, and reads the file."""
        head = f"import stave\nwith stave.open({out!r}):\n"
        self.out = self.run(head + textwrap.indent(textwrap.dedent(program), "    "), **kwargs)
        return self.read(out)

    def read(self, name="t.pftrace"):
        return Trace(self.folder / name)

    def ask(self, sql, name="t.pftrace"):
        """A question about a trace too large to be read as a whole."""
        return ask(self.folder / name, sql)

    def count(self, name):
        return self.ask(f"select count(*) as n from slice where name = '{name}'")[0]["n"]

    def files(self, pattern="*.pftrace"):
        return sorted(p.name for p in self.folder.glob(pattern))


@pytest.fixture
def py(tmp_path):
    return Runner(tmp_path)


def pytest_runtest_logreport(report):
    """One line per test for tests/run."""
    lines = os.environ.get("TEST_LINES")
    if not lines or (report.when != "call" and report.outcome == "passed"):
        return
    name = report.nodeid.rsplit("/", 1)[-1]
    with open(lines, "a") as f:
        if report.outcome == "skipped":
            f.write(f"skip {name}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else 'skipped'}\n")
        else:
            f.write(f"{'ok' if report.outcome == 'passed' else 'not ok'} {name}\n")
