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
# ---- every verb that has --json, on traces that are much too large for it ----
"$python" - <<'END'
import json
# Many of everything that an answer may list: processes, threads, categories, names that are long, metadata, steps, ranks, files, GPU kernels, requests.
events, other = [], {f"meta {i} " + "m" * 300: "v" * 3000 for i in range(300)}
for pid in range(1, 301):
    events += [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": f"rank {pid} " + "p" * 400}}]
    events += [{"ph": "M", "pid": pid, "tid": pid * 10 + t, "name": "thread_name", "args": {"name": f"worker {t} " + "t" * 300}} for t in range(3)]
    for i in range(12):
        at = 10000 * i
        events += [{"name": f"ProfilerStep#{i}", "ph": "X", "ts": at, "dur": 9000, "pid": pid, "tid": pid * 10},
                   {"name": f"kernel {pid} {i} " + "k" * 200, "cat": f"category {pid} {i}", "ph": "X", "ts": at + 10, "dur": 3000.5, "pid": pid, "tid": pid * 10 + 1},
                   {"name": f"ncclDevKernel_AllReduce_{i}_" + "n" * 100, "cat": "kernel", "ph": "X", "ts": at + 7000, "dur": 50, "pid": pid, "tid": 900000 + pid, "args": {"device": pid, "stream": 7, "correlation": pid * 100 + i, "grid": [1, 1, 1]}},
               {"name": f"aten::op_{pid}_{i}" + "a" * 100, "cat": "cpu_op", "ph": "X", "ts": at + 8000, "dur": 80, "pid": pid, "tid": pid * 10},
               {"name": "read", "cat": "syscall", "ph": "X", "ts": at + 4000, "dur": 500, "pid": pid, "tid": pid * 10, "args": {"path": f"/data/{pid}/{i}/" + "d" * 200, "ret": 4096, "fd": 3}}]
json.dump({"traceEvents": events, "otherData": other}, open("large.json", "w"))
for e in events:
    if "dur" in e: e["dur"] *= 2
json.dump({"traceEvents": events}, open("larger.json", "w"))
END
with_json() { "$STAVE" verbs | while read -r verb _; do "$STAVE" "$verb" --help all 2>/dev/null | grep -qE '^ +--json( |$)' && echo "$verb"; done | tr '\n' ' '; }
# Each row: a name, the exit codes that may be, the words. A verb with --json that has no row fails the test.
rows='
info|0|info large.json
validate|0 1|validate large.json
critical-path|0|critical-path large.json
steps|0|steps large.json
stats|0|stats large.json
diff|0 1|diff large.json larger.json
query|0|query large.json select*from~args
explain|0 6|explain large.json
whatif|0 3 6|whatif large.json
io|0|report io large.json
gpu|0|report gpu large.json
ops|0|report ops large.json
comm|0|report comm large.json
wait|0|report wait large.json
batch|0 3 5 6|report batch large.json
llm|0 3 5 6|report llm large.json
doctor|0 1|doctor
status|0|status
top|0|top --once --interval 100ms -p SELF
record|0|record --no-inject -o many.pftrace -- true
'
for verb in $(with_json); do
  check "row_of_$verb" grep -q "|$verb\( \|\$\)" <<<"$rows"
  check "version_of_${verb}_is_documented" grep -qE "^\| .*\`$verb\`.* \| 1 \| " "$SRC/docs/json.md"
done
for subject in $("$STAVE" completion bash >completion && bash -c 'source completion; COMP_WORDS=(stave report ""); COMP_CWORD=2; _stave; echo "${COMPREPLY[*]}"'); do
  check "row_of_report_$subject" grep -q "|report $subject " <<<"$rows"
done
while IFS='|' read -r name codes words; do
  [ "$name" ] || continue
  words=${words//SELF/$$}
  # shellcheck disable=SC2086 # words
  set -f; set -- $words; set +f
  verb=$1; shift
  if [ "$verb" = record ]; then set -- --json "$@"; else set -- "${@//\~/ }" --json; fi
  "$STAVE" "$verb" "$@" >"$name.large" 2>"$name.err"; code=$?
  [ "$verb" = record ] && tail -n 1 record.err >record.large
  check "large_${name}_code" grep -qw -- "$code" <<<"$codes"
  case $code in 3 | 5 | 6) [ -s "$name.large" ] || continue ;; esac
  check "large_$name" has "$name.large" "len(t.encode()) <= 32768 and isinstance(d, dict) and list(d)[0] == 'version' and d['version'] == 1"
done <<<"$rows"
check info_says_so has info.large "len(d['processes']) == d['truncated']['rows'] and d['truncated']['bytes'] > 100000 and '--all' in d['truncated']['more'] and d['events'] > 10000"
check info_all answer info_all info large.json --json --all
check info_all_has_all has info_all.json "len(d['processes']) == 300 and len(d['tracks']) > 600 and 'truncated' not in d"
check info_small answer info_small info many.json --json
check info_small_is_whole has info_small.json "'truncated' not in d and d['version'] == 1"
run_any info_all_alone 2 "$STAVE" info many.json --all

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

help_is_ascii() { for verb in $("$STAVE" verbs | cut -d' ' -f1); do LC_ALL=C "$STAVE" "$verb" --help all | LC_ALL=C grep -a "$(printf '[\200-\377]')" && return 1; done; LC_ALL=C "$STAVE" query --help | grep -q 'query TRACE\.\.\.'; }
check ascii_help help_is_ascii

offers() { bash -c 'source <("$0" completion bash); COMP_WORDS=(stave "$@" ""); COMP_CWORD=$(($# + 1)); _stave; echo "${COMPREPLY[*]}"' "$STAVE" "$@"; }
check subjects test "$(offers report)" = "io gpu ops batch llm comm wait"
check kinds grep -q 'timeline.*flame.*batch' <(offers plot)
check shells test "$(offers completion)" = "bash zsh fish"
