#!/usr/bin/env bash
# stave-server while it runs, and when it ends: packed bodies, no connection is reset; tracing is switched on and off, for one of so many requests, as the caller decides, by its user only; and what is in the trace is what was asked for.
# shellcheck disable=SC2016 # SQL
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
"$STAVE" query --help >/dev/null 2>&1 || skip_all "no stave query in this build"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
client() { "$python" "$SRC/tests/system/server_control.py" "$port" "$@"; }
equals() { check "$1" test "$2" = "$3"; }
start() { # CONFIG…
  local args=() config
  for config in "$@"; do args+=(--config "$config"); done
  : >server.err
  "$server" "${args[@]}" --address 127.0.0.1:0 --grpc off 2>server.err & pid=$!
  for _ in $(seq 600); do grep -q '^listening' server.err && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err)
  if [ -z "$port" ]; then sed 's/^/  /' server.err; not_ok "start of $*"; exit 1; fi
}
stop() { kill -TERM $pid; wait $pid; equals "$1_exit" $? 0; }
ask() { "$STAVE" query "$1" --to csv "$2" | tail -n 1; }
cp "$SRC/examples/server/mlp.safetensors" .
model() { printf '%s\n' "name: $1" 'model: mlp.safetensors' 'batch_coalesce_timeout_ms: 0' 'trace_plots: false' 'workers: 1'; }
model mlp >mlp.yml
model other | grep -v -e trace -e workers >other.yml

start mlp.yml other.yml
run_any switch 0 client switch "$TMP/live"
run_any refused 0 client refused
if [ "$(id -u)" = 0 ]; then
  chmod 755 "$TMP" && run_any another_user 0 setpriv --reuid=1234 --regid=1234 --clear-groups "$python" "$SRC/tests/system/server_control.py" "$port" another_user
fi
stop switched
trace=live/batching_trace.pftrace json=live/batching_trace.json csv=live/batching_trace_summary.csv
for file in $trace $json $csv; do
  equals "requests_${file##*.}" "$(ask $file "SELECT count(*) || ' ' || sum(outcome = 'responded') || ' ' || count(DISTINCT batch_id) || ' ' || sum(model = 'other') FROM request")" "$(cat switch.out) $(cat switch.out) $(cat switch.out) 4"
  equals "batches_${file##*.}" "$(ask $file 'SELECT count(*) FROM batch')" "$(cat switch.out)"
done
run_any valid 0 "$STAVE" validate $trace

# By the configuration, and by a token.
{ model mlp; printf '%s\n' 'trace_enabled: true' "trace_output: $TMP/sampled" 'trace_rate: 3'; } >sampled.yml
STAVE_TOKEN=secret-word start sampled.yml
for _ in 1 2 3 4 5 6 7; do client infer || not_ok infer; done
if [ "$(id -u)" = 0 ]; then
  run_any token 0 setpriv --reuid=1234 --regid=1234 --clear-groups "$python" "$SRC/tests/system/server_control.py" "$port" another_user secret-word
fi
stop sampled
equals one_of_three "$(ask sampled/batching_trace.pftrace 'SELECT count(*) FROM request')" 3

# Only some requests: what is left out is counted, in each form that has a place for it; the layers of a batch are below it, and stay away with it.
{ model mlp; printf '%s\n' 'trace_enabled: true' "trace_output: $TMP/kept" 'trace_keep: slow > 600s' 'trace_operators: true' 'warmup_pregen_inputs: 0'; } >kept.yml
start kept.yml
run_any keep 0 client keep
stop kept
kept=kept/batching_trace
for file in $kept.pftrace $kept.json ${kept}_summary.csv; do equals "kept_${file##*.}" "$(ask $file "SELECT count(*) || ' ' || sum(outcome = 'responded') FROM request")" '2 2'; done
for file in $kept.pftrace $kept.json; do
  equals "left_out_${file##*.}" "$("$STAVE" report batch $file --json --by summary 2>/dev/null | "$python" -c 'import json, sys; s = json.load(sys.stdin)["summary"]; print(s["requests"], s["left_out"], s["batches"], s["rejected"] + s["failed"] + s["open"])')" '9 7 9 0'
done
equals kept_operators "$(ask $kept.pftrace "SELECT count(*) || ' ' || count(DISTINCT o.parent_id) || ' ' || sum(b.name = 'mlp') FROM slice o JOIN slice b ON o.parent_id = b.id WHERE o.category = 'cpu_op'")" '6 2 6'
equals operators_of_requests "$(ask $kept.pftrace "SELECT count(*) || ' ' || count(DISTINCT r.request_id) || ' ' || count(DISTINCT extract_arg(o.arg_set_id, 'layer')) FROM request r JOIN slice o ON extract_arg(o.arg_set_id, 'batch') = r.batch_id WHERE o.category = 'cpu_op'")" '6 2 3'
run_any ops 0 "$STAVE" report ops $kept.pftrace --by operator --csv
check ops_has_layers grep -q '^dense,6,' ops.out
equals kept_transport "$(ask $kept.pftrace "SELECT count(*) FROM slice WHERE category = 'serving.life' AND name = 'transport' AND extract_arg(arg_set_id, 'request') NOT IN (SELECT request_id FROM request)")" 0
# Each request is slow: what comes after its end is kept with it.
sed -e "s|$TMP/kept|$TMP/slow|" -e 's/slow > 600s/slow > 1ns/' kept.yml >slow.yml
start slow.yml
run_any load_slow 0 timeout 120 "$BUILD/stave-load" -u "http://127.0.0.1:$port" -n 30 -c 3
stop slow
equals slow_transport "$(ask slow/batching_trace.pftrace "SELECT count(*) || ' ' || sum(read_ns > 0 AND parse_ns > 0 AND serialise_ns > 0 AND write_ns > 0) FROM request")" '30 30'
run_any bad_rule 2 timeout 60 "$server" --config kept.yml --trace-keep 'slow > 5' --check
check bad_rule_says grep -q "trace_keep: 'slow > 5': expected all, failed" bad_rule.err
run_any good_rule 0 timeout 60 "$server" --config kept.yml --trace-keep p99.9 --check

# Packed bodies; a server that stops under load ends what runs, refuses the rest in words, and its trace has the same.
{ model mlp; printf '%s\n' 'trace_enabled: true' "trace_output: $TMP/stopped" 'max_message_bytes: 65536' 'max_queue_size: 1000'; } >stopped.yml
start stopped.yml
run_any packed 0 client packed 65536
run_any until_stopped 0 client until_stopped $pid
wait $pid; equals stopped_exit $? 0
equals stopped_outcomes "$(ask stopped/batching_trace.pftrace "SELECT sum(outcome = 'responded') || ' ' || sum(outcome NOT IN ('responded', 'rejected')) FROM request")" "$(($(cat until_stopped.out) + 6)) 0"
