#!/usr/bin/env bash
# The writer of ferrum's files from C: every way to use it and to end leaves a file that a strict reader reads, with every event.
set -uo pipefail
cd "$TMP" || exit 2
program=$BUILD/tests/stress/trace_writer
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
unset STAVE_TRACE_OUT FERRUM_TRACE_OUT
export STAVE_SESSION_DIR=$TMP/sessions
say() { if [ "$1" = 0 ]; then echo "ok trace_writer: $2"; else echo "not ok trace_writer: $2: ${3:-}"; fi; }
strict() { python3 "$SRC/tests/harness/ferrum_strict.py" "$@" >list 2>why; }
# count PATTERN: events of the list
count() { grep -cE "$1" list; }

"$program" document document.json 2>err && [ ! -s err ] && strict document.json && [ "$(cut -f1,2,3,5 list | tr '\t\n' '  ')" = "rms_norm norm 1000 1 rope attn 500 1 " ]
say $? "what the document's tests check" "$(cat err why; head -n 20 list)"

"$program" odd odd.any 2>err && [ ! -s err ] && strict odd.any && [ "$(wc -l <list)" = 15 ] && [ "$(count '^bad')" = 6 ] && [ "$(count $'^args\ta\t100\t0\t0\t{"x": \[1, {"y": null}\]}$')" = 1 ] &&
  [ "$(count $'^(nan|negative)\tnumber\t0\t')" = 2 ] && [ "$(count $'^infinite\tnumber\t18446744073709551615\t')" = 1 ] && [ "$(count $'^half\tnumber\t1\t')" = 1 ]
say $? "odd texts and numbers" "$(cat err why; cut -c1-100 list)"

"$program" threads threads.json 2>err && [ ! -s err ] && strict threads.json && [ "$(count '^op')" = 16000 ]; say $? "threads" "$(cat err why)"
# ThreadSanitizer takes the parent's threads for unjoined ones of the child.
TSAN_OPTIONS=${TSAN_OPTIONS:-}:report_thread_leaks=0 "$program" family family.json 2>err && [ ! -s err ] && strict family.json && [ "$(count ^child)" = 1000 ] && [ "$(count ^grandchild)" = 1000 ] && [ "$(count ^parent)" = 1 ] && [ "$(count ^op)" = 2000 ]
say $? "forked children keep their events" "$(cat err why; cut -f1 list | sort | uniq -c)"
"$program" killed killed.json >returned 2>err && [ ! -s err ] && strict killed.json && [ "$(count ^parent)" = 20 ] && [ "$(count ^killed)" -ge "$(cat returned)" ] && [ "$(count ^killed)" -le "$(($(cat returned) + 20))" ]
say $? "killed children lose nothing that push returned for" "$(cat err why returned; cut -f1 list | sort | uniq -c)"
"$program" torn torn.json 2>err && strict torn.json && [ "$(cut -f1 list | tr '\n' ' ')" = "before longer between longer after " ] && [ ! -s err ]
say $? "a full disk, and a process that is killed inside of a write" "$(cat err why; head -n 20 list)"
"$program" daemon daemon.json 2>err && [ ! -s err ] && strict daemon.json && [ "$(cut -f1 list | tr '\n' ' ')" = "child fourth " ] && [ ! -s elsewhere/others ]
say $? "descriptors that the program closes, a file that is emptied or removed" "$(cat err why; head -n 20 list)"
"$program" limited limited.json 2>err && strict limited.json && [ "$(wc -l <list)" -ge 5 ] && [ "$(stat -c %s limited.json)" -le 1000 ] && [ "$(cat err)" = "stave: limited.json: File too large; events are missing in this trace
stave: limited.json: File too large; its last events are kept: stave recover limited.json" ]
say $? "a limit of the file's size" "$(cat err why)"
"$STAVE" recover -q limited.json 2>err && strict limited.json && [ "$(wc -l <list)" -gt 500 ] && ! [ -s err ]; say $? "the rest, without the limit" "$(cat err why)"

for way in return term kill abort _exit exec; do (ulimit -c 0; "$program" $way $way.json; :) >/dev/null 2>&1; done
# What was not written waits for `stave recover`, whatever the end; the file is a whole trace before, too.
[ "$("$STAVE" recover | grep -c ' of events that are not in it')" = 5 ]; say $? "five ends leave events" "$("$STAVE" recover)"
for way in return term kill abort _exit exec; do
  strict $way.json && [ "$way" = return ] || [ "$(cut -f2 list | grep -cx -- $way)" -lt 100 ]; say $? "whole after $way" "$(cat why)"
  [ "$way" = return ] || "$STAVE" recover -q $way.json 2>err || say 1 "recovery after $way" "$(cat err)"
done
strict return.json term.json kill.json abort.json _exit.json exec.json; code=$?
for way in return term kill abort _exit exec; do [ $code = 0 ] && [ "$(cut -f2 list | grep -cx -- $way)" = 100 ]; say $? "end by $way" "$(cat why)"; done
[ "$("$STAVE" recover 2>&1)" = "stave recover: no sessions on this machine, and no files to recover in this directory" ]; say $? "nothing is left" "$("$STAVE" recover 2>&1)"

# --dry-run, -o, --clean: nothing goes without a word.
"$program" _exit kept.json
"$STAVE" recover --dry-run kept.json >out 2>err && grep -q 'of events that are not in it' out && [ "$(stat -c %s kept.json)" -lt 200 ]; say $? "--dry-run changes nothing" "$(cat out err)"
"$STAVE" recover -o other.json kept.json 2>err; [ $? = 2 ] && grep -q 'is completed in its place, without -o' err && [ ! -e other.json ]; say $? "-o is refused" "$(cat err)"
"$STAVE" recover --clean --yes >out 2>&1; grep -q 'kept: not recovered' out && "$STAVE" recover | grep -q kept.json; say $? "--clean keeps what was not recovered" "$(cat out)"
mv kept.json renamed.json && "$STAVE" recover -q renamed.json 2>err && strict renamed.json && [ "$(count '^op')" = 100 ]; say $? "a file that was renamed" "$(cat err why)"
"$program" _exit gone.json && rm gone.json
"$STAVE" recover gone.json 2>err; [ $? = 4 ] && grep -q 'gone.json: cannot be completed: No such file' err; say $? "a file that is gone" "$(cat err)"
"$STAVE" recover --clean --yes --discard gone.json >out 2>&1 && grep -q '^  removed$' out && [ -z "$("$STAVE" recover 2>/dev/null)" ]; say $? "--discard" "$(cat out)"

# One line and the program goes on: a folder that is not there, a folder, a pipe, a name that is too long.
mkfifo pipe
long=$(printf '%05000d' 0)
for path in none/trace.json . pipe "$long"; do
  "$program" unwritable "$path" 2>err && [ "$(wc -l <err)" = 1 ] && grep -q '^stave: .*; there is no trace$' err; say $? "unwritable: ${path:0:20}" "$(cut -c1-300 err)"
done
say "$([ "$(id -u)" = 0 ] || { touch read_only; chmod 400 read_only; "$program" unwritable read_only 2>err; }; echo $?)" "a file without the right to write" "$(cat err)"

# An earlier file goes; one that another process is writing stays.
echo '[{"old":1}]' >global.json
FERRUM_TRACE_OUT=global.json "$program" start_other 2>err; code=$?
other=$(find . -name 'global.[0-9]*.json')
[ $code = 0 ] && strict global.json && [ "$(cut -f1 list | tr '\n' ' ')" = "one two " ] && strict "$other" && [ "$(cut -f1 list)" = other ] && [ "$(wc -l <err)" = 1 ] && grep -q "^stave: global.json: another process is writing it; this trace is ${other#./}$" err
say $? "two processes with one variable" "$(cat err why; ls)"
say "$("$program" global 2>err && [ ! -s err ]; echo $?)" "without a variable" "$(cat err)"

# C++, ended by an exception that nobody catches.
"$program"_cpp cpp.json 2>err; code=$?
"$STAVE" recover -q cpp.json 2>>err
[ $code = 7 ] && strict cpp.json && [ "$(sed '2s/{.*/TEXTS/' list | cut -f1,2,3,5,6 | tr '\t' '|')" = 'shapes|gemm|250|3|{"dims": [64, 128], "on": true, "tokens": 4, "x": 0.5}
texts|gemm|250|3|TEXTS
map||250|3|{"y": 2.5, "z": 1e+300}
empty||250|3|{}
last|end|100|0|{}' ] && [ "$(cat err)" = "stave: no/such/folder: No such file or directory; there is no trace" ] && python3 - 2>why <<'END'
import json
assert json.load(open("cpp.json"))[1]["args"] == {"a\"b": "\\xff\n", "none": None, "nan": None, "long": '"' * 1000 + "\\xc3" * 999 + "ü",
    "nested": {"a": 1, "b": ["c"]}, "big": 2**64 - 1}
END
say $? "C++" "$code $(cat err why; cut -c1-200 list)"
