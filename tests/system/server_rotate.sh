#!/usr/bin/env bash
# stave-server with trace_rotate under load: what the client counted is in the parts, each row once; parts alone; the oldest is removed; a run never touches the parts of the run before; kill -9.
# shellcheck disable=SC2016 # SQL, and inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
"$STAVE" query --help >/dev/null 2>&1 || skip_all "no stave query in this build"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci STAVE_SESSION_DIR=$TMP/sessions
mkdir -m 700 "$STAVE_SESSION_DIR"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
cp "$SRC/examples/server/mlp.safetensors" .
config() { # FILE KEYS…
  printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'workers: 1' 'batch_coalesce_timeout_ms: 0' 'warmup_pregen_inputs: 0' 'trace_enabled: true' "${@:2}" >"$1"
}
start() { # CONFIG ARGS…
  : >server.err
  "$server" -c "$@" --address 127.0.0.1:0 --grpc off 2>server.err & pid=$!
  until_true 'grep -q "^listening" server.err || ! kill -0 $pid'
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err)
  [ -n "$port" ] || { sed 's/^/  /' server.err; not_ok "start of $1"; exit 1; }
}
stop() { kill -TERM $pid; wait $pid; check "$1_exit" test $? = 0; cp server.err "$1.err"; }
load() { run_any "$1" 0 timeout 120 "$BUILD/stave-load" -u "http://127.0.0.1:$port" -n "$2" -c 4; }
equals() { check "$1" test "$2" = "$3"; }
ask() { "$STAVE" query "${@:1:$#-1}" --to csv "${@: -1}" 2>/dev/null | tail -n 1; }
# Rows, different requests, answered ones, those with a batch, models.
asked() { ask "$@" "SELECT count(*) || ' ' || count(DISTINCT request_id) || ' ' || sum(outcome = 'responded') || ' ' || count(batch_id) || ' ' || group_concat(DISTINCT model) FROM request"; }
named="SELECT sum(name = 'model') || ' ' || sum(name = 'worker') FROM slice WHERE category = 'serving.life'"
parts() { find "$1" -name 'batching_trace-*.pftrace' | wc -l; }

# ---- all parts: as many rows as answers ----
config all.yml "trace_output: $TMP/all" 'trace_rotate: 256K'
start all.yml; load all_load 1500; cp server.err begun.err; stop all
n=$(parts all)
check rotates test "$n" -ge 1 # how much is written at once depends on the machine
equals rows "$(asked all/*.pftrace)" '1500 1500 1500 1500 mlp'
equals batches_once "$(ask all/*.pftrace 'SELECT count(*) - count(DISTINCT batch_id) FROM batch')" 0
equals says_parts "$(sed -nE 's/^ +([0-9]+) parts$/\1/p' all.err)" $((n + 1))
equals warns_once "$(grep -c 'trace_rotate: JSON, CSV and plots have no parts' begun.err)" 1
check only_pftrace sh -c '! ls all | grep -v "pftrace$"'
for part in all/*.pftrace; do
  # Alone it ends in the middle of arrows, and nothing else is wrong with it.
  "$STAVE" validate "$part" >valid.out 2>&1
  check "valid_${part##*/}" sh -c '! grep -E "^(error|warning)" valid.out | grep -v "flow-without-end"'
  # What a number stands for is in each of them, and in all of them together once.
  equals "names_in_${part##*/}" "$(ask "$part" "$named")" '1 1'
done
equals names_once "$(ask all/*.pftrace "$named")" '1 1'
run_any report 0 "$STAVE" report batch all --json # a verb of one trace takes the folder
check report_counts grep -q '"requests":1500,' report.out
for form in pftrace json; do
  run_any "convert_$form" 0 "$STAVE" convert all/*.pftrace -o "joined.$form"
  equals "rows_of_$form" "$(asked joined.$form)" '1500 1500 1500 1500 mlp'
done

# ---- the next run: other parts; the oldest of its own go, and nothing of the run before ----
(cd all && sha256sum batching_trace-*.pftrace) >before.sum
newest=$(sha256sum <all/batching_trace.pftrace)
config few.yml "trace_output: $TMP/all"
start few.yml --trace-rotate 256K,2; load few_load 1500; stop few
check earlier_stay sh -c 'cd all && sha256sum --quiet -c ../before.sum'
equals newest_has_number "$(sha256sum <all/batching_trace.1.pftrace)" "$newest"
equals keeps_two "$(parts all)" $((n + 1))
check says_removed grep -qE '^ +[0-9]+ parts, the oldest [0-9]+ of them removed$' few.err
mapfile -t first < <(sed 's/.*  /all\//' before.sum)
equals first_run "$(asked "${first[@]}" all/batching_trace.1.pftrace)" '1500 1500 1500 1500 mlp'
last=$(find all -name 'batching_trace-*.pftrace' | sort | tail -n 1)
equals kept_have_names "$(ask "$last" all/batching_trace.pftrace "$named")" '1 1'
check kept_some test "$(ask "$last" all/batching_trace.pftrace 'SELECT count(*) FROM slice')" -gt 100
check not_all test "$(ask "$last" all/batching_trace.pftrace 'SELECT count(*) FROM request')" -lt 1500

# ---- with trace_keep: what is kept is in the parts once, and what was left out is counted ----
for keep in 'slow > 1ns' 'slow > 600s'; do
  name=keep_${keep##*> }
  config $name.yml "trace_output: $TMP/$name" 'trace_rotate: 256K' "trace_keep: $keep"
  start $name.yml; load ${name}_load 1500; stop $name
  equals ${name}_counted "$("$STAVE" report batch $name --json --by summary 2>/dev/null | "$python" -c 'import json, sys; s = json.load(sys.stdin)["summary"]; print(s["requests"], s["rejected"] + s["failed"] + s["open"])')" '1500 0'
done
check keeps_in_parts test "$(parts keep_1ns)" -ge 2
equals kept_rows "$(asked keep_1ns/*.pftrace)" '1500 1500 1500 1500 mlp'
equals left_out_rows "$(ask keep_600s/*.pftrace 'SELECT count(*) FROM request')" 0

# ---- killed: at most one growing file, and recovery has every answer once; also in the instant before and after a part gets its name ----
cat >kill.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned);
    *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    int at = strstr(to, "-0002.pftrace") != NULL;
    if (at && getenv("KILL_BEFORE"))
        kill(getpid(), SIGKILL);
    int code = real(a, from, b, to, flags);
    if (at)
        kill(getpid(), SIGKILL);
    return code;
}
C
# Three clients at a time, until the server is away: prints how many answers there were.
cat >clients.py <<'PY'
import http.client, json, sys, threading
body = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 32], "data": [0.5] * 32}]})
counts = []
def client():
    n, c = 0, http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    try:
        while True:
            c.request("POST", "/v2/models/mlp/infer", body)
            answer = c.getresponse()
            answer.read()
            n += answer.status == 200
    except (OSError, http.client.HTTPException):
        counts.append(n)
threads = [threading.Thread(target=client) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sum(counts))
PY
config killed.yml "trace_output: $TMP/killed" 'trace_rotate: 256K'
for moment in any before after; do
  rm -rf killed
  case $moment in any) ;; *) ${CC:-cc} -shared -fPIC -o kill.so kill.c -ldl 2>/dev/null && [[ $BUILD != *san ]] || { skip "killed_$moment" "no compiler, or a sanitizer"; continue; } ;; esac
  case $moment in
  any) start killed.yml ;;
  before) KILL_BEFORE=1 LD_PRELOAD=$PWD/kill.so start killed.yml ;;
  after) LD_PRELOAD=$PWD/kill.so start killed.yml ;;
  esac
  timeout 120 "$python" clients.py "$port" >answered & clients=$!
  if [ $moment = any ]; then
    until_true '[ "$(parts killed)" -ge 2 ]'
    kill -KILL $pid
  fi
  wait $pid 2>/dev/null; wait $clients
  check "one_part_$moment" test "$(find killed -name '*.part' | wc -l)" -le 1
  "$STAVE" recover killed/batching_trace.pftrace >recover.out 2>&1; code=$?
  # In the instant after there is no growing file: that is reported, and the rings are read.
  check "recovers_$moment" test $code = 0 -o $moment$code = after1
  check "nothing_left_$moment" sh -c '! ls killed | grep "part$\|session$"'
  equals "rows_$moment" "$(ask killed/*.pftrace "SELECT (sum(outcome = 'responded') >= $(cat answered)) || ' ' || (count(*) - count(DISTINCT request_id)) FROM request")" '1 0'
done

# The next start completes what was killed, and begins parts of its own.
rm -rf killed
start killed.yml; load killed_load 800; until_true '[ "$(parts killed)" -ge 1 ]'; kill -KILL $pid; wait $pid 2>/dev/null
sha256sum killed/batching_trace-*.pftrace >killed.sum
start killed.yml; load restarted_load 800; stop restarted
check killed_parts_stay sha256sum --quiet -c killed.sum
mapfile -t first < <(sed 's/.*  //' killed.sum)
mapfile -t second < <(find killed -name 'batching_trace-*.pftrace' | sort | tail -n +$((${#first[@]} + 1)))
equals killed_run "$(asked "${first[@]}" killed/batching_trace.1.pftrace)" '800 800 800 800 mlp'
equals restarted_run "$(asked "${second[@]}" killed/batching_trace.pftrace)" '800 800 800 800 mlp'

# ---- asked for while it runs, and what is refused ----
setting() { curl -s -o setting.out -w '%{http_code}' -d "$1" "http://127.0.0.1:$port/v2${2:-}/trace/setting"; }
if command -v curl >/dev/null; then
  config late.yml "trace_output: $TMP/late"; sed -i 's/trace_enabled: true/trace_enabled: false/' late.yml
  start late.yml
  equals bad_setting "$(setting '{"trace_rotate": "5 apples"}')" 400
  check bad_setting_says grep -q "trace_rotate: '5 apples' is neither a size" setting.out
  equals no_text "$(setting '{"trace_rotate": 5}')" 400
  equals of_a_model "$(setting '{"trace_rotate": "1M"}' /models/mlp)" 400
  equals set "$(setting '{"trace_rotate": "256K", "trace_level": ["TIMESTAMPS"]}')" 200
  check shows grep -q '"trace_rotate":"256K"' setting.out
  equals too_late "$(setting '{"trace_rotate": "512K"}')" 400
  load late_load 1000; stop late
  check late_rotates test "$(parts late)" -ge 1
  equals late_rows "$(asked late/*.pftrace)" '1000 1000 1000 1000 mlp'
else skip settings "no curl"; fi
config bad.yml 'trace_rotate: 1K'
run_any bad 2 "$server" --check -c bad.yml
check bad_says grep -q "trace_rotate: '1K' is neither a size of at least 256K" bad.err
