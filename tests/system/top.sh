#!/usr/bin/env bash
# stave top: functions, waits and files of a running process, with root and without, as plain lines, as JSON, and on a screen with keys.
. "$SRC/tests/harness/cli.sh"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3 here"
cat >work.py <<'END'
import threading, time
lock = threading.Lock()
def burn():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
def hold():
    while True:
        with lock: time.sleep(0.05)
        time.sleep(0.001)
threading.Thread(target=hold, daemon=True).start()
print("said", flush=True)
data = open("data.bin", "rb", buffering=0)
while True:
    burn()
    if not data.read(4096): data.seek(0)
    with lock: pass
END
head -c 100000000 /dev/zero >data.bin
"$python" work.py >work.out & work=$!
disown
trap 'kill $work 2>/dev/null' EXIT
until_true 'grep -q said work.out'
once() { "${as[@]}" "$STAVE" top -p $work --once "$@"; }
look() { once --interval 1500ms --json >"$1.json" 2>"$1.err"; }
plain() { once --interval 500ms >user.txt; }
screen() { "$python" "$SRC/tests/system/top.py" "$2" "${@:3}" >"$1.txt"; }
has() { "$python" -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$@"; }

as=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 .
  kill $work
  setpriv --reuid=1234 --regid=1234 --clear-groups "$python" work.py >work.out & work=$!
  disown
  until_true 'grep -q said work.out'
  check by_root look root
  check root_function has root.json 'd["functions"] and any(f["name"] == "burn (work.py)" and f["total"] > 0.2 for f in d["functions"])'
  check root_places_are_joined has root.json 'not any("+0x" in f["name"] for f in d["functions"]) and not any(f["name"].startswith("PyEval_EvalCode") for f in d["functions"])'
  check root_wait has root.json 'any(w["name"] == "lock" for w in d["waits"])'
  check root_file has root.json 'any(f["name"].endswith("/data.bin") and f["bytes"] > 0 for f in d["files"])'
  as=(setpriv --reuid=1234 --regid=1234 --clear-groups)
fi
check without_root look user
check user_function has user.json 'd["functions"][0]["name"] == "burn (work.py)"'
check user_wait has user.json 'any(w["name"] == "lock" and w["in"] == "<module> (work.py)" for w in d["waits"]) and any(w["in"] == "hold (work.py)" for w in d["waits"])'
check user_file has user.json 'any(f["name"].endswith("/data.bin") and f["bytes"] > 0 for f in d["files"]) and d["read_bytes"] > 0'
check form has user.json 'd["version"] == 1 and d["lost"] == 0 and 0 < d["cpu"] < 3 and {s["name"] for s in d["states"]} >= {"Running", "lock"}'
check prints plain
check plain grep -q '^ *[0-9.]* %  *[0-9.]* %  burn (work.py)$' user.txt
check states_are_whole_items grep -qE '^Threads:( [a-z][a-zA-Z ]* [0-9]+ %,?)+$' user.txt
check states_in_words bash -c '! grep -qE "Runnable|Preempted" user.txt'
check plain_says_how grep -q 'by looks at /proc' user.txt
check on_a_screen screen screen 'burn (work.py),key:f,function,key:w,<module> (work.py),key:q' "${as[@]}" "$STAVE" top -p $work --interval 300ms
check eighty_columns "$python" -c 'import sys; sys.exit(any(len(line) > 80 for line in open("screen.txt").read().split("--screen--", 1)[1].rpartition("--screen--")[0].splitlines()))'
check keys_are_named grep -q 'q quit' screen.txt
check leaves_the_process kill -0 $work
check its_output_is_shown_at_the_end screen command 'burn (work.py),key:q' "${as[@]}" "$STAVE" top --interval 300ms -- "$python" work.py
check said_at_the_end "$python" -c 'import sys; t = open("command.txt").read(); sys.exit(t.rfind("said") < t.rfind("--screen--"))'
run_any ends_with_it 7 "${as[@]}" "$STAVE" top -q --interval 200ms -- "$python" -c 'import time; time.sleep(0.5); raise SystemExit(7)'
check nothing_is_left test -z "$(find . -name 'stave-top*')"
run_any nobody 2 "$STAVE" top -p 999999999 --once
run_any both 2 "$STAVE" top -p 1 -- true
run_any neither 2 "$STAVE" top
