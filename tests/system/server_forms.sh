#!/usr/bin/env bash
# One run of stave-server in all its forms: under load, with clients that leave, with rejections and with warm-up, the trace, the JSON and the CSV give the same rows in
# every table, also after each command that writes a trace anew; and they are those that the clients and the server's counters tell of.
# shellcheck disable=SC2086,SC2016 # $load is words; inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server load="timeout 120 $BUILD/stave-load"
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
"$STAVE" query --help >/dev/null 2>&1 || skip_all "no stave query in this build"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
forms() { "$python" "$SRC/tests/system/server_forms.py" "$@"; }
equals() { check "$1" test "$2" = "$3"; }
of() { "$python" -c 'import json, sys; d = json.load(open(sys.argv[1]))
for k in sys.argv[2:]: d = d[k]
print(int(d))' "$@"; }
said=server.err
start() { # CONFIG…
  local args=() config
  for config in "$@"; do args+=(--config "$config"); done
  : >$said
  "$server" "${args[@]}" --address 127.0.0.1:0 --grpc off 2>$said & pid=$!
  for _ in $(seq 600); do grep -q '^listening' $said && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' $said) url=http://127.0.0.1:$port
  if [ -z "$port" ]; then sed 's/^/  /' $said; not_ok "start of $*"; exit 1; fi
}
stop() { kill -TERM $pid; wait $pid; equals "$1_exit" $? 0; }
ask() { "$STAVE" query "$1" --to csv "$2" | tail -n 1; }
same_rows() { # FILE REFERENCE
  forms rows "$STAVE" "$1" >"$1.rows" || return 1
  diff <(grep -v '^transport ' "$2.rows") <(grep -v '^transport ' "$1.rows") | head -n 20
  cmp <(grep -v '^transport ' "$2.rows") <(grep -v '^transport ' "$1.rows")
}
# After same_rows. What the front measured is in the trace, and in what was made of it; not in the server's JSON and CSV.
same_transport() { diff <(grep '^transport ' "$2.rows") <(grep '^transport ' "$1.rows") | head -n 20; cmp <(grep '^transport ' "$2.rows") <(grep '^transport ' "$1.rows"); }
no_transport() { grep '^transport ' "$1.rows" | grep -vE '^transport (request_id,|[0-9]+,[a-z]+,,,,$)' | head -n 5; ! grep '^transport ' "$1.rows" | grep -qvE '^transport (request_id,|[0-9]+,[a-z]+,,,,$)'; }

forms models
traced() { printf '%s\n' 'trace_enabled: true' 'trace_plots: false' "trace_output: $TMP/$1"; }
{ printf '%s\n' 'name: mlp' 'model: wide.safetensors' 'max_queue_size: 8' 'pool_size: 2' 'max_batch_size: 8' 'batch_coalesce_timeout_ms: 2' 'workers: 2'; traced out; } >mlp.yml
printf '%s\n' 'name: late' 'model: wide.safetensors' 'max_batch_size: 8' 'batch_coalesce_timeout_ms: 300' >late.yml
printf '%s\n' 'name: slow' 'model: slow.safetensors' 'batching_strategy: fixed' 'fixed_batching: {batch_size: 256}' 'max_queue_size: 256' 'batch_coalesce_timeout_ms: 1' >slow.yml
start mlp.yml late.yml slow.yml
run_any overload 0 $load -u "$url" -n 1500 -c 32 -j load.json --trace load.pftrace
forms leave "$port" 3 3 >left || not_ok leave
run_any rest 0 $load -u "$url" -n 50 -c 4 -j rest.json
forms metrics "$port" >metrics.json
stop run
ok=$(($(of load.json requests ok) + $(of rest.json requests ok))) rejected=$(($(of load.json requests rejected) + $(of rest.json requests rejected))) left=$(cat left)
counted() { "$python" -c 'import json, sys; print(int(sum(v for k, v in json.load(open("metrics.json")).items() if k.startswith(sys.argv[1] + "{"))))' "$1"; }
echo "  $ok answered, $rejected rejected, $left left"
check some_were_rejected test "$rejected" -gt 0
equals all_left_in_time "$left" 6
equals counters "$(counted inference_completed_total) $(counted requests_rejected_total) $(counted requests_cancelled_total) $(counted requests_received_total)" \
  "$ok $rejected $left $((ok + left))"

trace=out/batching_trace.pftrace json=out/batching_trace.json csv=out/batching_trace_summary.csv
forms rows "$STAVE" $trace >$trace.rows
# Who was answered has all four; a client that left was written no answer; serialising is within the request.
equals transport_is_known "$(ask $trace "SELECT sum(outcome = 'responded' AND read_ns > 0 AND parse_ns > 0 AND serialise_ns > 0 AND write_ns > 0) || ' ' || sum(outcome = 'rejected' AND parse_ns > 0 AND serialise_ns IS NULL) || ' ' || sum(outcome = 'cancelled' AND parse_ns > 0 AND write_ns IS NULL) || ' ' || sum(serialise_ns >= dur) FROM request")" \
  "$ok $rejected $left 0"
run_any transport_report 0 "$STAVE" report batch $trace --json
equals transport_is_in_the_report "$("$python" -c 'import json; print(*[(t["transport"], t["requests"]) for t in json.load(open("transport_report.out"))["transport"]])')" \
  "('read', $ok) ('parse', $ok) ('serialise', $ok) ('write', $ok)"
for file in $trace $json $csv; do
  name=${file##*.}
  equals "outcomes_$name" "$(ask $file "SELECT sum(outcome = 'responded') || ' ' || sum(outcome = 'rejected') || ' ' || sum(outcome = 'cancelled') || ' ' || count(*) FROM request")" \
    "$ok $rejected $left $((ok + rejected + left))"
  equals "batches_$name" "$(ask $file "SELECT count(*) = (SELECT count(DISTINCT batch_id) FROM request) AND count(*) > 0 AND count(DISTINCT batch_id) = count(*) FROM batch")" 1
  run_any "valid_$name" 0 "$STAVE" validate $file
  check "rows_$name" same_rows $file $trace
  check "report_$name" sh -c '"$0" report batch "$1" --json --by summary >"$1.summary"' "$STAVE" $file
done
for file in $json $csv; do check "no_transport_${file##*.}" no_transport $file; done
check valid_without_warnings sh -c '! grep -E "^(error|warning)" valid_*.out'

# Written anew by each command that does so, in each form.
again() { # NAME FILE COMMAND…: the command writes FILE; its rows are those of the trace
  run_any "$1" 0 "${@:3}"
  check "rows_of_$1" same_rows "$2" $trace
}
again to_json plain.json "$STAVE" convert -q $trace -o plain.json
again to_text plain.txt "$STAVE" convert -q $trace -o plain.txt
again from_json from_json.pftrace "$STAVE" convert -q $json -o from_json.pftrace
again from_json_back from_json.json "$STAVE" convert -q from_json.pftrace -o from_json.json
again from_csv from_csv.pftrace "$STAVE" convert -q $csv -o from_csv.pftrace
again to_server_json again.json "$STAVE" convert -q $trace --dialect batching -o again.json
again to_server_csv again.csv "$STAVE" convert -q $trace --dialect batching -o again.csv
again to_newer_csv newer.csv "$STAVE" convert -q $trace --dialect batching-newer -o newer.csv
again csv_to_server_json csv_again.json "$STAVE" convert -q from_csv.pftrace --dialect batching -o csv_again.json
again merged merged.pftrace "$STAVE" merge -q --same-host $trace load.pftrace -o merged.pftrace
again cut cut.pftrace "$STAVE" cut -q $trace -o cut.pftrace
again cut_json cut.json "$STAVE" cut -q $json -o cut.json
again cut_csv cut_csv.pftrace "$STAVE" cut -q $csv -o cut_csv.pftrace
for file in plain.json plain.txt merged.pftrace cut.pftrace; do check "transport_$file" same_transport $file $trace; done
judged=1; why=$("$SRC/tools/install-deps" readers) || { judged=; skip parquet_same "$why"; }
for file in $trace $json $csv; do
  name=${file##*.}
  run_any "sqlite_$name" 0 "$STAVE" export -q $file -o "$name.db"
  equals "sqlite_rows_$name" "$("$python" -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
print(c.execute("SELECT count(*), sum(outcome = \"cancelled\"), count(DISTINCT batch_id) FROM request").fetchone(), c.execute("SELECT count(*), sum(size), sum(dur) FROM batch").fetchone())' "$name.db")" \
    "$("$python" -c 'import sys; print(tuple(map(int, sys.argv[1].split(","))), tuple(map(int, sys.argv[2].split(","))))' \
      "$(ask $trace "SELECT count(*), sum(outcome = 'cancelled'), count(DISTINCT batch_id) FROM request")" "$(ask $trace 'SELECT count(*), sum(size), sum(dur) FROM batch')")"
  run_any "parquet_$name" 0 "$STAVE" export -q $file --to parquet -o "$name.lake"
  if [ "$judged" ]; then # every table has the rows that stave query has
    run_any "parquet_same_$name" 0 node "$SRC/tests/cli/lake/compare.mjs" "$SRC/build/npm" "$STAVE" $file "$name.lake"/run=*/host=*/rank=*
    for table in request batch engine_step; do check "parquet_${table}_$name" grep -qx "same $table $(ask $file "SELECT count(*) FROM $table")" "parquet_same_$name.out"; done
  fi
done

# In ClickHouse, by its own engine: every row of the requests, batches and steps of each form.
. "$SRC/tests/harness/clickhouse.sh"
stored() { # NAME FILE
  local table columns url=clickhouse://127.0.0.1:$CH_PORT/$1
  "$STAVE" export -q "$2" -o "$url" --run r || return 1
  while read -r table columns; do
    "$STAVE" query -q "$2" --to csv "SELECT $columns FROM $table ORDER BY id" >"$1.$table.store" || return 1
    "$STAVE" query -q "$url" --to csv "SELECT $columns FROM $table ORDER BY id" >"$1.$table.engine" || return 1
    diff "$1.$table.store" "$1.$table.engine" || return 1
  done <<'END'
request id, ts, dur, request_id, name, batch_id, model, outcome, scheduled_ts, first_token_ts, last_token_ts, ttft_ns, tpot_ns, queue_ns, prefill_ns, decode_ns, respond_ns, output_tokens, steps, load, share_ns, read_ns, parse_ns, serialise_ns, write_ns, is_warmup
batch id, ts, dur, batch_id, name, model, size, worker
engine_step id, number, ts, dur, engine, requests, prefill, decode, tokens_in, tokens_out, waiting, is_warmup
engine_step_member id, step_id, request_id, phase, tokens_in, tokens_out, share_ns
token id, request_id, number, ts, gap_ns, step_id
END
  [ "$(wc -l <"$1.request.engine")" -gt 1000 ] && [ "$(wc -l <"$1.batch.engine")" -gt 10 ]
}
if [ -z "${STAVE_LONG:-}" ]; then skip clickhouse "takes 8 s of CPU: STAVE_LONG=1"; elif why=$(ch_missing); then skip clickhouse "$why"; elif ch_up; then
  for file in $trace $json $csv; do check "clickhouse_${file##*.}" stored "${file##*.}" $file; done
  ch_stop
else not_ok clickhouse_starts; fi

# To a collector: each request that a client called with a context is a span of the client's trace, below the client's span. Without --category, from each form that has the time of day.
collect() { # FILE STATUS…
  coproc COLLECTOR { exec "$python" "$SRC/tests/harness/otlp_collector.py" "$@" 2>&1; }
  collector=$COLLECTOR_PID; read -r to <&"${COLLECTOR[0]}"
}
arg() { echo "extract_arg(arg_set_id, '$1')"; }
"$STAVE" query load.pftrace --to csv "SELECT $(arg trace_id), $(arg span_id) FROM slice WHERE category = 'load' AND $(arg outcome) = 'ok' ORDER BY 1" | tail -n +2 >called
outcome() {
  "$STAVE" query -q "$1" --to csv 'SELECT request_id, batch_id, model, outcome, dur FROM request ORDER BY cast(request_id AS INTEGER)'
  "$STAVE" query -q "$1" --to csv 'SELECT batch_id, model, size, worker, dur FROM batch ORDER BY batch_id'
}
outcome $trace >outcome.trace
outside() { "$STAVE" query -q "$1" --to csv 'SELECT request_id, read_ns, parse_ns, serialise_ns, write_ns FROM request ORDER BY cast(request_id AS INTEGER)'; }
for file in $trace $json merged.pftrace; do
  name=otlp_${file##*/}
  collect "$name" 200
  run_any "$name" 0 "$STAVE" export -q $file --to otlp -o "http://127.0.0.1:$to"
  kill "$collector"; wait "$collector" 2>/dev/null
  "$STAVE" query -q "$name" --to csv "SELECT $(arg trace_id), $(arg parent_span_id) FROM slice WHERE $(arg parent_span_id) IS NOT NULL ORDER BY 1" | tail -n +2 >"$name.called"
  check "${name}_joins_the_callers" sh -c 'test -s called && cmp called "$0"' "$name.called"
  outcome "$name" >"$name.rows"
  check "${name}_rows" diff outcome.trace "$name.rows"
  check "${name}_transport" diff <(outside $file) <(outside "$name")
done
check context_is_not_mixed_up test "$(cut -d, -f1 called | sort -u | wc -l)" = "$(of load.json requests ok)"

# Killed: what the last flush left in the JSON and the CSV, and what recover makes of the trace.
sed -e "s|$TMP/out|$TMP/killed|" -e 's/max_queue_size: 8/max_queue_size: 64/' mlp.yml >killed.yml
start killed.yml
run_any load_killed 0 $load -u "$url" -n 200 -c 8
flushed() { [ "$(grep -cs '"name":"request".*"ph":"e"' killed/batching_trace.json)" = 200 ] && [ "$(cut -d'"' -f6 killed/batching_trace_summary.csv | tail -n +2 | tr ';' '\n' | wc -l)" = 200 ]; }
for _ in $(seq 600); do flushed && break; sleep 0.05; done
check all_is_flushed flushed
gone() { forms metrics "$port" | "$python" -c 'import json, sys; sys.exit(json.load(sys.stdin)["http_connections"] > 1)'; } # whose connection has ended, all of his answers are written
for _ in $(seq 600); do gone && break; sleep 0.05; done
check all_clients_are_gone gone
kill -KILL $pid; wait $pid 2>/dev/null
run_any recover 0 "$STAVE" recover -q killed/batching_trace.pftrace
forms rows "$STAVE" killed/batching_trace.pftrace >killed/batching_trace.pftrace.rows
equals recovered "$(ask killed/batching_trace.pftrace "SELECT count(*) || ' ' || sum(outcome = 'responded') FROM request")" '200 200'
"$STAVE" convert -q killed/batching_trace.pftrace -o killed/again.json
check killed_again same_rows killed/again.json killed/batching_trace.pftrace
check killed_transport same_transport killed/again.json killed/batching_trace.pftrace
equals killed_transport_is_known "$(ask killed/batching_trace.pftrace "SELECT sum(write_ns > 0) FROM request")" 200
check killed_json same_rows killed/batching_trace.json killed/batching_trace.pftrace
check killed_csv same_rows killed/batching_trace_summary.csv killed/batching_trace.pftrace

# Stopped in the middle of a load, with no time for what is queued: some fail.
{ sed -e "s|$TMP/out|$TMP/stopped|" -e 's/max_queue_size: 8/max_queue_size: 200/' mlp.yml; echo 'drain_timeout_ms: 0'; } >stopped.yml
start stopped.yml
$load -u "$url" -n 100000000 -c 150 >stopped.out 2>&1 & loader=$!
busy() { forms metrics "$port" | "$python" -c 'import json, sys; m = json.load(sys.stdin); sys.exit(not (m["inference_completed_total{model=\"mlp\"}"] > 100 and m["inference_queue_size{model=\"mlp\"}"] > 20))'; }
for _ in $(seq 600); do busy && break; sleep 0.02; done
stop stopped
kill $loader 2>/dev/null; wait $loader 2>/dev/null
forms rows "$STAVE" stopped/batching_trace.pftrace >stopped/batching_trace.pftrace.rows
echo "  $(ask stopped/batching_trace.pftrace "SELECT sum(outcome = 'responded') || ' responded ' || sum(outcome = 'failed') || ' failed ' || sum(outcome = 'cancelled') || ' cancelled ' || sum(outcome = 'open') || ' open' FROM request")"
equals stopped_none_is_open "$(ask stopped/batching_trace.pftrace "SELECT count(*) FROM request WHERE outcome = 'open'")" 0
check stopped_json same_rows stopped/batching_trace.json stopped/batching_trace.pftrace
check stopped_csv same_rows stopped/batching_trace_summary.csv stopped/batching_trace.pftrace
run_any stopped_valid 0 "$STAVE" validate stopped/batching_trace.pftrace

# Servers beside each other in one folder, each on a port of its own choice: each has its own files, with its own requests only, while both run and when another follows.
sed -e "s|$TMP/out|$TMP/shared|" -e 's/max_queue_size: 8/max_queue_size: 64/' mlp.yml >shared.yml
said=first.err; start shared.yml; first=$pid first_url=$url
said=second.err; start shared.yml; second=$pid second_url=$url
$load -u "$first_url" -n 60 -c 4 >first.out 2>&1 & loader=$!
run_any shared_load 0 $load -u "$second_url" -n 90 -c 4
wait $loader; equals shared_first_load $? 0
pid=$first; stop shared_first
said=third.err; start shared.yml; third=$pid
run_any shared_third_load 0 $load -u "$url" -n 30 -c 4
pid=$second; stop shared_second
pid=$third; stop shared_third
has_own_files() { # WHO REQUESTS: the three files that it named when it stopped
  local file n=0
  while read -r file; do
    file=$(find shared -name "${file##*/}")
    [ "$file" ] && [ "$(ask "$file" "SELECT count(*) || ' ' || count(DISTINCT request_id) || ' ' || sum(outcome = 'responded') FROM request")" = "$2 $2 $2" ] || { echo "$file"; return 1; }
    n=$((n + 1))
  done < <(grep -oE "[^ ]*/batching_trace[^ ]*\.(json|csv|pftrace)$" "$1.err")
  [ $n = 3 ]
}
check shared_files_second has_own_files second 90
check shared_files_third has_own_files third 30
check shared_files_all sh -c 'test "$(ls shared/*.pftrace | wc -l) $(ls shared/*.json | wc -l) $(ls shared/*.csv | wc -l)" = "3 3 3"'
all_counts() { for file in shared/*."$1"; do ask "$file" 'SELECT count(*) FROM request'; done | sort -n | tr '\n' ' '; }
for form in pftrace json csv; do equals "shared_requests_$form" "$(all_counts $form)" '30 60 90 '; done
