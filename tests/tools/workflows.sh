#!/usr/bin/env bash
# .github/workflows: each file is valid YAML of the form that GitHub wants, and its commands exist here: targets of the Makefile, files of the tree.
. "$SRC/tests/harness/cli.sh"
python3 -c 'import yaml' 2>/dev/null || skip_all "no PyYAML (package python3-yaml)"

cat >judge.py <<'PY'
"""judge.py TREE FILE: exits 1 with one line for the first thing that is wrong in the workflow."""
import os, re, sys, yaml

tree, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    try:
        flow = yaml.safe_load(file)
    except yaml.YAMLError as why:
        sys.exit(f"no YAML: {why}")
with open(f"{tree}/Makefile", encoding="utf-8") as file:
    targets = set(re.findall(r"^([a-z-]+):", file.read(), re.M))


def want(is_so, text):
    if not is_so:
        sys.exit(text)


def judge(command):
    for part in command.replace("&&", "\n").split("\n"):
        words = part.split()
        if words[:1] == ["make"]:
            for word in words[1:]:
                want(word in targets or "=" in word, f"make has no target {word}")
        elif words and "/" in words[0]:
            want(os.access(f"{tree}/{words[0]}", os.X_OK), f"there is no program {words[0]}")


want(isinstance(flow, dict) and flow.get("name") and (flow.get("on") or flow.get(True)), "name or on is missing")  # YAML 1.1 reads on as true
want(isinstance(flow.get("jobs"), dict) and flow["jobs"], "no jobs")
for name, job in flow["jobs"].items():
    want(job.get("runs-on") and job.get("steps"), f"{name}: runs-on or steps is missing")
    rows = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
    for step in job["steps"]:
        want(("run" in step) != ("uses" in step), f"{name}: a step has one of run and uses")
        for row in rows:
            command = re.sub(r"\$\{\{ *matrix\.(\w+) *\}\}", lambda m: row[m[1]], step.get("run", ""))
            want("${{" not in command, f"{name}: {command}")
            judge(command)
PY
accepts() { python3 judge.py "$SRC" "$1"; }
for file in "$SRC"/.github/workflows/*; do check "$(basename "$file" .yml)" accepts "$file"; done

# What the judge is there to find.
refuses() { sed "$2" "$SRC/.github/workflows/ci.yml" >bad.yml; ! cmp -s bad.yml "$SRC/.github/workflows/ci.yml" || return 1; ! accepts bad.yml >said 2>&1 && cat said && grep -q "$1" said; }
check finds_a_target_that_is_absent refuses 'no target nothing' 's/make clang/make nothing/'
check finds_a_program_that_is_absent refuses 'no program .ci/walk' 's/\.ci\/run/.ci\/walk/'
check finds_bad_syntax refuses 'no YAML' 's/^jobs:/jobs: [/'
check finds_no_machine refuses 'runs-on' '/runs-on/d'
has() { local job; for job in gcc clang minimal wheel; do grep -q "name: $job," "$SRC/.github/workflows/ci.yml" || return 1; done; }
check has_gcc_clang_minimal_wheel has
