#!/usr/bin/env bash
# stave-server as its users meet it: started with a YAML, driven over loopback, stopped; then every file it left is looked at.
# shellcheck disable=SC2086,SC2016 # $load is words; inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server load="timeout 120 $BUILD/stave-load"
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1
# StarPU asks hwloc, whose PCI plugin unloads libpciaccess without freeing its list of devices: a leak of 1 KiB without a module to name it by.
export HWLOC_COMPONENTS=-pci
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
cp "$SRC"/examples/server/* .
equals() { check "$1" test "$2" = "$3"; }
outside() { "$python" "$SRC/tests/system/server_check.py" "$@" || CLI_FAILED=1; }

# start CONFIG…: on a free port; sets pid, port, url.
start() {
  local args=() config
  for config in "$@"; do args+=(--config "$config"); done
  : >server.err # the shell of the server empties it too, perhaps only after we have read the last server's words
  "$server" "${args[@]}" --address 127.0.0.1:0 --grpc off 2>server.err & pid=$!
  for _ in $(seq 600); do
    grep -q '^listening' server.err && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
  done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err) url=http://127.0.0.1:$port
  if [ -z "$port" ]; then sed 's/^/  /' server.err; not_ok "start of $*"; exit 1; fi
}
# stop NAME [SIGNAL]: it ends by itself, with exit code 0.
stop() {
  kill -"${2:-INT}" $pid
  for _ in $(seq 2400); do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  kill -KILL $pid 2>/dev/null
  wait $pid
  equals "$1_exit" $? 0
}
of() { "$python" -c 'import json,sys; d = json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."): d = d[k]
print(d)' "$1" "$2"; }
metric() { "$python" -c 'import sys, urllib.request
print([l.split()[1] for l in urllib.request.urlopen(sys.argv[1] + "/metrics").read().decode().splitlines() if l.startswith(sys.argv[2])][0])' "$url" "$1"; }

# The guide's own lines, and a second model.
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'max_message_bytes: 1000000' 'max_queue_size: 100' 'pool_size: 2' \
  'max_batch_size: 16' 'batch_coalesce_timeout_ms: 2' 'workers: 2' 'batching:' '  trace_enabled: true' "  trace_output: $TMP/out/  # optional custom path" >mlp.yml
start mlp.yml conv.yml
outside numbers "$port" "$TMP"
outside refusals "$port"
run_any load_closed 0 $load -u "$url" -n 500 -c 8 -j closed.json
run_any load_conv 0 $load -u "$url" -m conv -n 60 -c 4 --binary -j conv.json
run_any load_poisson 0 $load -u "$url" -n 200 -c 16 --rate 2000 --poisson -j poisson.json
printf 'delta_us,repeat\n100,50\n2000,10\n0,5\n' >schedule.csv
run_any load_schedule 0 $load -u "$url" --schedule-csv schedule.csv -j schedule.json
equals load_schedule_count "$(of schedule.json requests.ok)" 65
equals load_closed_count "$(of closed.json requests.ok)" 500
check load_percentiles "$python" -c 'import json
l = json.load(open("closed.json"))["latency_ms"]["roundtrip"]
assert 0 < l["p50_ms"] <= l["p90_ms"] <= l["p95_ms"] <= l["p99_ms"] <= l["p100_ms"], l'
equals metrics_requests "$(metric 'inference_completed_total{model="mlp"')" 769.0
equals metrics_histogram "$(metric 'inference_latency_ms_count{model="mlp"')" 769
for _ in $(seq 600); do [ "$(metric 'inference_inflight_tasks{model="mlp"')" = 0.0 ] && break; sleep 0.1; done
equals metrics_idle "$(metric 'inference_queue_size{model="mlp"')$(metric 'inference_inflight_tasks{model="mlp"')" 0.00.0
check metrics_busy "$python" -c 'import sys; assert 0 < float(sys.argv[1]) < 1' "$(metric starpu_worker_busy_ratio)"
stop serving
# 765 of the loads, 4 of the numbers and refusals; conv: 60 and 3.
outside files out/batching_trace.json out/batching_trace_summary.csv 832
"$STAVE" cat -q out/batching_trace.pftrace >trace.txt 2>trace.err
outside starpu trace.txt
run_any valid 0 "$STAVE" validate out/batching_trace.pftrace
check starpu_rows grep -qE 'name="worker [0-9]+: CPU' trace.txt
check starpu_states grep -qE 'counter.*name="executing"' trace.txt
check json_readable "$STAVE" info out/batching_trace.json

if "$STAVE" plot batch --help >/dev/null 2>&1 && "$STAVE" plot batch out/batching_trace_summary.csv -q -o probe.png 2>/dev/null; then
  check plots_drawn test -s out/batching_trace_plots.png
else skip plots_drawn "no stave plot batch in this build"; fi

# Again in the same folder: what was there stays there.
cp out/batching_trace.json first.json
start mlp.yml
run_any load_again 0 $load -u "$url" -n 20 -c 2
stop again TERM
equals restart_files "$(find out -name '*.json' | wc -l)" 2
check restart_kept sh -c 'for f in out/*.json; do cmp -s "$f" first.json && exit 0; done; exit 1'

# Killed: what was flushed is there and can be read.
sed "s|$TMP/out/|$TMP/killed|" mlp.yml >killed.yml
start killed.yml
run_any load_killed 0 $load -u "$url" -n 50 -c 4
for _ in $(seq 300); do [ "$(grep -cs '"name":"request_enqueued"' killed/batching_trace.json)" = 50 ] && [ "$(wc -l <killed/batching_trace_summary.csv)" -gt 1 ] && break; sleep 0.1; done
kill -KILL $pid; wait $pid 2>/dev/null
equals killed_requests "$(grep -c '"name":"request_enqueued"' killed/batching_trace.json)" 50
check killed_json "$python" -c 'import json; assert len(json.load(open("killed/batching_trace.json"))["traceEvents"]) > 50'
check killed_csv test "$(wc -l <killed/batching_trace_summary.csv)" -gt 1
check killed_pftrace "$STAVE" recover -q killed/batching_trace.pftrace
check killed_slices sh -c '"$0" cat -q killed/batching_trace.pftrace 2>/dev/null | grep -c serving >/dev/null' "$STAVE"

# More than it can take: some are refused, the rest is right, and the counts agree everywhere. A model that takes longer than its clients' requests.
"$python" - <<'EOF'
import json, struct
sizes = {"fc1.weight": [2048, 32], "fc2.weight": [2048, 2048], "fc3.weight": [8, 2048]}
header, at = {"__metadata__": {"stave.input": "32", "stave.layers": "dense fc1 relu, dense fc2 relu, dense fc3 softmax"}}, 0
for name, (rows, columns) in sizes.items():
    for key, shape in ((name, [rows, columns]), (name.replace("weight", "bias"), [rows])):
        n = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
text = json.dumps(header).encode()
with open("wide.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + bytes(at))
EOF
printf '%s\n' 'name: mlp' 'model: wide.safetensors' 'max_queue_size: 1' 'pool_size: 1' 'batching_strategy: disabled' 'trace_enabled: true' "trace_output: $TMP/over" 'trace_plots: false' >over.yml
start over.yml
run_any overload 0 $load -u "$url" -n 3000 -c 64 -j over.json
rejected=$(of over.json requests.rejected) good=$(of over.json requests.ok)
echo "  $good answered, $rejected rejected"
check overload_rejected test "$rejected" -gt 0
equals overload_whole $((rejected + good)) 3000
equals overload_metric "$(metric requests_rejected_total)" "$rejected.0"
run_any overload_threshold 1 $load -u "$url" -n 2000 -c 64 --max-rejected 0
stop overload
equals overload_rows "$(tail -n +2 over/batching_trace_summary.csv | awk -F, '$1 >= 0 && $6 != 1' | wc -l)" 0

# Stopped in the middle of a load: whoever was accepted is answered.
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'batching_strategy: fixed' 'fixed_batching: {batch_size: 8}' 'batch_coalesce_timeout_ms: 20' >fixed.yml
start fixed.yml
$load -u "$url" -n 100000000 -c 16 -j middle.json >middle.out 2>&1 & loader=$!
for _ in $(seq 300); do [ "$(metric inference_completed_total)" != 0.0 ] && break; sleep 0.05; done
stop middle TERM
wait $loader
check no_trace test ! -e batching_trace.json

# Clients that mean no good.
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'max_message_bytes: 500000' 'max_pending_bytes: 1000000' 'max_pending_bytes_per_client: 700000' >limits.yml
start limits.yml
outside framing "$port"
outside quotas "$port"
# A port that is taken is found before anything is made, whichever of the two it is.
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'trace_enabled: true' "trace_output: $TMP/never" >port.yml
run_any port_taken 4 timeout 60 "$server" -c port.yml -a "127.0.0.1:$port"
check port_taken_reported grep -q "cannot listen on 127.0.0.1:$port" port_taken.err
printf '%s\n' "metrics_port: $port" >>port.yml
run_any metrics_port_taken 4 timeout 60 "$server" -c port.yml -a 127.0.0.1:0
check port_taken_makes_nothing test ! -e never
stop limits
printf '%s\n' 'header_timeout_ms: 300' 'request_timeout_ms: 300' >>limits.yml
start limits.yml
outside slow "$port"
stop slow

# OpenCL workers, where there are any.
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'use_opencl: true' 'use_cpu: false' 'trace_enabled: true' "trace_output: $TMP/cl" 'trace_plots: false' >mlp.yml
rm -f conv.yml
: >server.err
"$server" -c mlp.yml -a 127.0.0.1:0 --grpc off 2>server.err & pid=$!
for _ in $(seq 900); do grep -q '^listening' server.err && break; kill -0 $pid 2>/dev/null || break; sleep 0.1; done
if grep -q '^listening' server.err; then
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err) url=http://127.0.0.1:$port
  outside numbers "$port" "$TMP"
  stop opencl
  check opencl_csv grep -q '"opencl"' cl/batching_trace_summary.csv
else skip opencl "no OpenCL device: $(tail -n 1 server.err)"; wait $pid; fi

# Configurations that make no sense: one line with the place, and exit code 2.
bad() { printf '%s\n' "${@:3}" >bad.yml; run_any "bad_$1" 2 timeout 60 "$server" -c bad.yml; check "bad_$1_reported" grep -q "$2" "$TMP/bad_$1.err"; }
bad unknown 'bad.yml:3: .*trace_enabled' 'name: m' 'model: mlp.safetensors' 'trace_enable: true'
bad nested 'bad.yml:4: .*trace_output' 'name: m' 'model: mlp.safetensors' 'batching:' '  trace_ouput: /tmp'
bad file 'omit the filename' 'name: m' 'model: mlp.safetensors' "trace_output: $TMP/x.json"
printf 'name: m\n\tmodel: x\n' >tab.yml
run_any bad_tab 3 timeout 60 "$server" -c tab.yml
check bad_tab_reported grep -q 'tab.yml:2:' bad_tab.err
bad dims 'dims' 'name: m' 'model: mlp.safetensors' 'inputs: [{name: input, data_type: TYPE_FP32, dims: [1, 31]}]'
bad address 'HOST:PORT' 'name: m' 'model: mlp.safetensors' 'address: nowhere'
run_any bad_nothing 2 timeout 60 "$server"
run_any bad_missing 3 timeout 60 "$server" -c nowhere.yml
check bad_missing_reported grep -q 'nowhere.yml' bad_missing.err
run_any bad_option 2 timeout 60 "$server" -c mlp.yml --sideways
check bad_option_reported grep -q "stave-server --help" bad_option.err
run_any bad_operand 2 timeout 60 "$server" --keys extra
bad limit 'bad.yml:3: .*max_pending_bytes is smaller' 'name: m' 'model: mlp.safetensors' 'max_pending_bytes: 2048'
bad limit_unknown 'bad.yml:3: .*max_pending_bytes' 'name: m' 'model: mlp.safetensors' 'max_pending_byte: 2048'
printf 'name: m\nmodel: nowhere.safetensors\n' >gone.yml
run_any bad_gone 3 timeout 60 "$server" -c gone.yml
check bad_gone_reported grep -q 'gone.yml:2: .*nowhere.safetensors' bad_gone.err
head -c 100 mlp.safetensors >torn.safetensors
printf 'name: m\nmodel: torn.safetensors\n' >torn.yml
run_any bad_model 3 timeout 60 "$server" -c torn.yml
run_any check_only 0 "$server" --check -c fixed.yml
run_any keys 0 "$server" --keys
check keys_all grep -q trace_output keys.out
run_any load_nobody 4 $load -u http://127.0.0.1:1 -w 0
run_any load_bad_url 2 $load -u ftp://x/y
printf 'delta_us,repeat\nsoon,1\n' >bad.csv
run_any load_bad_schedule 3 $load --schedule-csv bad.csv
check load_bad_schedule_reported grep -q 'bad.csv:2' load_bad_schedule.err

# The sample models are what their script makes.
mkdir made; check models_made "$python" make_models.py --folder made
check models_same sh -c 'cmp made/mlp.safetensors "$0/mlp.safetensors" && cmp made/conv.safetensors "$0/conv.safetensors"' "$SRC/examples/server"
