"""docs/porting.md: each row of the tables from another library to Stave is run, both sides, and gives the same events."""
import os
import re

import pytest

with open(os.path.join(os.environ["SRC"], "docs", "porting.md")) as page:
    PAGE = page.read()


def rows(section):
    """Pairs of programs: the code of the two columns; <br> is a new line."""
    body = PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    pairs = [line.strip("|").split(" | ") for line in body.splitlines() if line.startswith("| `")]
    return [["\n".join(re.findall("`(.*?)`", cell)) for cell in pair] for pair in pairs if len(pair) == 2]


NOVA = rows("From Nova's perfetto_protobuf")
LIVE = [row for row in NOVA if not re.search(r"\bt\.|TraceGenerator|trace_open", row[0])]
GENERATED = [row for row in NOVA if re.search(r"\bt\.|TraceGenerator", row[0])]
OPENED = [row for row in NOVA if "trace_open" in row[0]]

NOVA_HEAD = '''
import stave.compat.nova; stave.compat.nova.install()
from nova_platform.perfetto_protobuf._profile import count, instant, trace, trace_func, trace_func_args, trace_open, track
from nova_platform.perfetto_protobuf._tgen import TraceGenerator
'''


def events(t):
    return sorted((s["name"], s["track"], bool(s["dur"])) for s in t.slices), t.flows(), t.ask("select name, value from counters order by name, ts, value")


def test_all_rows_are_known():
    assert len(LIVE) == 12 and len(GENERATED) == 8 and len(OPENED) == 1 and len(NOVA) == 21


def test_rows_of_nova_s_profile_api(py):
    """All rows in one process for each side, each row with a file of its own."""
    work = "def work(n): return n\n"
    for side, head, opened in ((0, NOVA_HEAD, "trace_open"), (1, "import stave\n", "stave.open")):
        body = "".join(f"def row():\n    " + row[side].replace("\n", "\n    ") + f"\nwith {opened}('{side}.{i}.pftrace'): row()\n" for i, row in enumerate(LIVE))
        py.run(head + work + body)
    for i, row in enumerate(LIVE):
        nova, stave = (events(py.read(f"{side}.{i}.pftrace")) for side in (0, 1))
        assert nova == stave and (nova[0] or nova[2]), row


@pytest.mark.parametrize("rows, name", [(GENERATED, "sim.perfetto-trace"), (OPENED, "run.perfetto")])
def test_rows_of_nova_with_files(py, rows, name):
    found = []
    for side, head in ((0, NOVA_HEAD), (1, "import stave\n")):
        py.run(head + "\n".join(row[side] for row in rows))
        t = py.read(name)
        found.append((events(t), [(s["ts"], s["dur"], s["args"]) for s in t.slices] if rows is GENERATED else None,
                      {r["name"] for r in t.ask("select name from process")} if rows is GENERATED else None))
        (py.folder / name).unlink()
    assert found[0] == found[1] and found[0][0][0]


VIZ = rows("From viztracer")
VIZ_HEAD = "from viztracer import VizTracer, log_sparse\ntracer = VizTracer(log_sparse=True, output_file='viz.json', verbose=0)\n"


def names(t):
    return sorted({s["name"].split(" ")[0] for s in t.slices if s["name"]} | {r["name"] for r in t.ask("select name from counters")})


def test_rows_of_viztracer(py):
    work = "def work(n): return n\n"
    body = "".join("    " + row[1].replace("\n", "\n    ") + "\n" for row in VIZ)
    py.run("import stave\n" + work + "with stave.open('own.pftrace'):\n" + body)
    assert names(py.read("own.pftrace")) == ["load", "loss", "mark", "work"] and len(VIZ) == 4


def test_viztracer_itself(py):
    pytest.importorskip("viztracer")
    body = "".join("    " + row[0] + "\n" for row in VIZ)
    py.run(VIZ_HEAD + "def work(n): return n\nwith tracer:\n" + body)
    assert set(names(py.read("viz.json"))) >= {"load", "loss", "mark", "work"}
