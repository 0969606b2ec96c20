#!/usr/bin/env bash
# stave record --sched of a script that knows nothing of Stave (wait/train.py): the longest wait of its main thread is for data, and behind it is the worker that used the slow file. Loaders are
# recognised, pipes are no file I/O, and the parts of each thread add up.
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR" data
command -v python3 >/dev/null || skip_all "no python3 here"
python=$(python3 -c 'import sys; print(sys.executable)') # not a wrapper that is a script
"$STAVE" record -q --strict --sched -o run.pftrace -- "$python" "$SRC/tests/system/wait/train.py" data >record.log 2>&1 || skip_all "cannot record here: $(head -1 record.log)"

run_any wait 0 "$STAVE" report wait -q --no-index --json --all run.pftrace
check the_slow_file_is_behind_the_longest_wait "$python" - wait.out <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
w = r["wait"][0]
assert w["for"] == "data", w
assert (w.get("path") or w.get("last_path", "")).endswith("/data/part-13.bin"), w
assert len(r["loader"]) == 2, r["loader"]
assert any(f"(pid {x['thread'].split('pid ')[1].rstrip(')')}" in w["cause_thread"] for x in r["loader"]), w
PY
check parts_add_up "$python" - wait.out <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
parts = "compute data gpu lock disk cpu rank peer sleep other".split()
for s in r["span"] + r["loader"]:
    assert sum(s[p + "_ns"] for p in parts) == s["dur_ns"], s
PY
run_any io 0 "$STAVE" report io -q --no-index --json --all run.pftrace
check loaders_and_pipes "$python" - io.out <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
roles = [p.get("role") for p in r["process"] if p["reads"]]
assert roles.count("trainer") == 1 and roles.count("loader") == 2, roles
assert {d["kind"]: d["calls"] for d in r["descriptor"]}["pipe"] > 0
assert not any("pipe:" in f.get("name", "") for f in r["file"])
PY
run_any explained 0 "$STAVE" explain -q --no-index --json run.pftrace
check explained_by_the_file grep -q 'part-13.bin' explained.out

# A compiler has no trainers.
printf 'int main(void) { return 0; }\n' >x.c
if command -v gcc >/dev/null && "$STAVE" record -q -o cc.pftrace -- gcc x.c -o x >cc.log 2>&1; then
  run_any compiler 0 "$STAVE" report io -q --no-index --csv --by process cc.pftrace
  check a_compiler_has_no_roles sh -c '! grep -qE ",(trainer|loader)," compiler.out'
else
  skip a_compiler_has_no_roles "no gcc here"
fi
