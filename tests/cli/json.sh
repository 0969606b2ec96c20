#!/usr/bin/env bash
# Answers for programs and for narrow terminals: --json everywhere, at most 32 KiB unless --all, with what was left out; tables that fit their columns; ASCII where the
# locale is C; completion of subjects and kinds.
. "$SRC/tests/harness/cli.sh"
python=$(command -v python3) || skip_all "no python3 here"
"$python" - >many.json <<'END'
import json
events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "train → it"}}]
for i in range(2000):
    events += [{"name": f"ProfilerStep#{i}", "ph": "X", "ts": 1000 * i, "dur": 900, "pid": 1, "tid": 1},
               {"name": f"a long name of a slice that nobody wants to read whole, number {i % 40}", "ph": "X", "ts": 1000 * i + 10, "dur": 300.5, "pid": 1, "tid": 1},
               {"name": "read", "cat": "syscall", "ph": "X", "ts": 1000 * i + 400, "dur": 50, "pid": 1, "tid": 1, "args": {"path": f"/data/part/{i}", "ret": 4096, "fd": 3}}]
json.dump(events, open("/dev/stdout", "w"))
END
answer() { "$STAVE" "${@:2}" >"$1.json" 2>"$1.err"; }
has() { "$python" -c 'import json, sys; t = open(sys.argv[1]).read(); d = json.loads(t); sys.exit(not eval(sys.argv[2]))' "$@"; }
small='len(t.encode()) <= 32768'

check path answer path critical-path -q many.json --json
check path_is_small has path.json "$small and d['version'] == 1 and d['truncated']['rows'] == len(d['rows']) < d['n'] == d['truncated']['of'] and '--all' in d['truncated']['more']"
check path_all answer all critical-path -q many.json --json --all
check path_all_has_all has all.json "len(d['rows']) == d['n'] and 'truncated' not in d and len(t) > 32768"
check query answer query query -q many.json 'select name, ts from slice order by ts limit 3' --json
check query_is_whole has query.json "d == {'version': 1, 'rows': d['rows'], 'n': 3} and d['rows'][0]['name'] == 'ProfilerStep#0'"
check array answer array query -q many.json 'select ts from slice' --to json
check array_has_all has array.json "isinstance(d, list) and len(d) == 6000"
for verb in steps stats; do
  check $verb answer $verb $verb -q many.json --json
  check ${verb}_is_small has $verb.json "$small and d['version'] == 1 and d['n'] > 0"
done
for subject in io wait; do
  check $subject answer $subject report -q $subject many.json --json
  check ${subject}_all answer ${subject}_all report -q $subject many.json --json --all
  check ${subject}_is_small has $subject.json "$small and set(d) - {'truncated'} == set(json.load(open('${subject}_all.json')))"
done
check io_says_so has io.json "d['truncated']['rows'] < len(json.load(open('io_all.json'))['file']) and d['truncated']['bytes'] == len(open('io_all.json').read().encode()) and len(d['file']) == d['truncated']['rows']"
check doctor answer doctor doctor --json
check doctor_parts has doctor.json "d['version'] == 1 and d['lacking'] == sum(p['ok'] is False for p in d['parts']) and any(p['what'] == 'clock' or 'stacks' in p['what'] for p in d['parts'])"
check status answer status status --json
check status_list has status.json "d['version'] == 1 and isinstance(d['recordings'], list)"
check record answer record record -q --json --no-inject -o r.pftrace -- sh -c 'exit 0'
check record_line "$python" -c 'import json; d = json.loads(open("record.err").read().splitlines()[-1]); assert d["trace"] == "r.pftrace" and d["exit_code"] == 0 and d["events"] >= 0 and d["version"] == 1, d'
run_any both 2 "$STAVE" stats -q many.json --json --to csv
run_any all_alone 2 "$STAVE" stats -q many.json --all

fits() { COLUMNS=$1 "$STAVE" "${@:2}" 2>/dev/null | "$python" -c 'import sys; lines = sys.stdin.read().splitlines(); sys.exit(not lines or max(map(len, lines)) > int(sys.argv[1]))' "$1"; }
for columns in 80 60 40; do
  check fits_$columns fits $columns stats many.json --to table
  check path_fits_$columns fits $columns critical-path many.json --form table
done
sed 's/"dur": *\([0-9]\)/"dur": 9\1/g' many.json >slower.json
check diff_fits_100 fits 100 diff many.json slower.json --all --to table
check diff_is_a_table sh -c "COLUMNS=100 '$STAVE' diff -q many.json slower.json --all --to table | head -1 | grep -q '^state *name *in *count A.*total B *change *p'"
check diff_has_all_where_there_is_room sh -c "COLUMNS=160 '$STAVE' diff -q many.json slower.json --all --to table | head -1 | grep -q 'self A *self B *p50 A *p50 B *p'"
check both_ends sh -c "COLUMNS=80 '$STAVE' query -q many.json \"select 1 as n, name from slice where name like 'a long%' limit 1\" --to table | grep -q '^1 *a long.*…' || COLUMNS=40 '$STAVE' query -q many.json \"select 1 as n, name from slice where name like 'a long%' limit 1\" --to table | grep -q 'a long.*….*number 0'"
check upright sh -c "COLUMNS=40 '$STAVE' stats -q many.json --to table | grep -q '^count  *2,*000\$'"
ascii() { "${@:2}" 2>&1 | LC_ALL=C grep -qa "$(printf '[\200-\377]')" && return 1; env "${@:2}" | grep -q "$1"; }
check ascii_table ascii 'train -> it' env LC_ALL=C COLUMNS=60 "$STAVE" query -q many.json "select name from process where name like 'train%'" --to table
check utf8_table sh -c "LC_ALL=C.UTF-8 '$STAVE' query -q many.json \"select name from process where name like 'train%'\" --to table | grep -q 'train → it'"
check data_stays sh -c "LC_ALL=C '$STAVE' query -q many.json \"select name from process where name like 'train%'\" --to csv | grep -q 'train → it'"

offers() { bash -c 'source <("$0" completion bash); COMP_WORDS=(stave "$@" ""); COMP_CWORD=$(($# + 1)); _stave; echo "${COMPREPLY[*]}"' "$STAVE" "$@"; }
check subjects test "$(offers report)" = "io gpu ops batch llm comm wait"
check kinds grep -q 'timeline.*flame.*batch' <(offers plot)
check shells test "$(offers completion)" = "bash zsh fish"
