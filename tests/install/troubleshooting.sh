#!/usr/bin/env bash
# docs/troubleshooting.md quotes messages as the program has them, and has a line for each that `stave doctor` prints behind a "no".
. "$SRC/tests/harness/cli.sh"
case $BUILD in */build) ;; *) skip_all "once is enough" ;; esac
check "messages_are_the_programs" python3 - "$SRC" <<'PYTHON'
import re
import subprocess
import sys

src = sys.argv[1]
page = open(f"{src}/docs/troubleshooting.md", encoding="utf-8").read()


def texts(code):
    """Its texts, with … for what printf puts in."""
    parts, found, end = re.finditer(r'''"((?:[^"\\]|\\.)*)"|/\*.*?\*/|//[^\n]*|'(?:[^'\\]|\\.)+'|PRI[a-zA-Z0-9]+''', code, re.S), [""], 0
    for m in parts:
        if not re.fullmatch(r"\s*", code[end : m.start()]):
            found.append("")
        found[-1] += m[1] or ("d" if m[0].startswith("PRI") else "")
        end = m.end()
    return [re.sub(r"%[-0-9.*]*(?:ll|z|h|l)?[a-zA-Z]", "…", text) for text in found]


files = subprocess.run([f"{src}/tools/list-files", r"\.c$"], cwd=src, capture_output=True, text=True, check=True).stdout.split()
files = [f for f in files if not f.startswith(("tests/", "bench/", "examples/"))]
known = "\n".join(text for f in files for text in texts(open(f"{src}/{f}", encoding="utf-8").read()))
quoted = [m for row in re.findall(r"^\| (`.*?`) \|", page, re.M) for m in re.findall(r"`([^`]+)`", row)]
wrong = [f"no such message: {m}" for m in quoted if m not in known]
doctor = next(f for f in files if f.endswith("/doctor.c"))
lacking = re.findall(r'say\(d, LACKING, "[^"]*",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', open(f"{src}/{doctor}", encoding="utf-8").read())
own = {"…", "attached, but …", "loaded by …, but without …", "cannot read…", "CPUs, memory, disks and network: /proc is not mounted", "by frame pointers only: this stave was built without libdw"}
wrong += [f"not on the page: {m}" for call in lacking for m in texts(call) if m not in own and m not in quoted]
print("\n".join(wrong))
sys.exit(len(quoted) < 40 or len(lacking) < 8 or bool(wrong))
PYTHON
