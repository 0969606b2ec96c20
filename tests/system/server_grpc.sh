#!/usr/bin/env bash
# stave-server with typed tensors, over HTTP by Python and over gRPC by @grpc/grpc-js; the trace of a gRPC request is that of an HTTP one.
# shellcheck disable=SC2016 # inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1
# StarPU asks hwloc, whose PCI plugin unloads libpciaccess without freeing its list of devices: a leak of 1 KiB without a module to name it by.
export HWLOC_COMPONENTS=-pci
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
cp "$SRC"/examples/server/* .
equals() { check "$1" test "$2" = "$3"; }
outside() { "$python" "$SRC/tests/system/server_typed.py" "$@" || CLI_FAILED=1; }
client() { timeout 120 node "$SRC/tests/system/server_grpc.mjs" "$SRC/build/npm" "$SRC/tests/system/server_grpc.proto" "$grpc" "$port" "$@" || CLI_FAILED=1; }

# start CONFIG… [--grpc ADDRESS]: on free ports; sets pid, port, grpc.
start() {
  local args=() config
  for config in "$@"; do case $config in *.yml) args+=(--config "$config") ;; *) args+=("$config") ;; esac; done
  : >server.err
  "$server" "${args[@]}" -a 127.0.0.1:0 2>server.err & pid=$!
  for _ in $(seq 600); do grep -q '^listening' server.err && break; kill -0 $pid 2>/dev/null || break; sleep 0.1; done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err) grpc=$(sed -nE 's/^gRPC on .*:([0-9]+)$/\1/p' server.err)
  if [ -z "$port" ]; then sed 's/^/  /' server.err; not_ok "start of $*"; exit 1; fi
}
# stop NAME: it ends by itself, with exit code 0.
stop() {
  kill -INT $pid
  for _ in $(seq 1200); do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  kill -KILL $pid 2>/dev/null
  wait $pid
  equals "$1_exit" $? 0
}
requests() { tail -n +2 "$1/batching_trace_summary.csv" | awk -F, '{ n += $6 } END { print n + 0 }'; }

outside make .
for name in types_a types_b; do printf 'name: %s\nmodel: %s.safetensors\n' $name $name >$name.yml; done
sed 's/^name: tokens/name: slow/' tokens.yml >slow.yml
printf '%s\n' 'batch_coalesce_timeout_ms: 300' 'batching_strategy: fixed' 'fixed_batching: {batch_size: 16}' >>slow.yml
printf '%s\n' 'grpc_address: 127.0.0.1:0' 'max_message_bytes: 1000000' 'max_pending_bytes: 16000000' 'batch_coalesce_timeout_ms: 5' 'trace_enabled: true' "trace_output: $TMP/out" 'trace_plots: false' >>tokens.yml
printf 'name: tokens\nmodel: tokens.safetensors\ngrpc_address: 127.0.0.1:0\n' >lib.yml

# Without the library: said, and HTTP is served.
GRPC_ABSENT=$("$STAVE" doctor 2>/dev/null | sed -n 's/^- *gRPC  *//p')
if [ -n "$GRPC_ABSENT" ]; then
  sed -i '/^grpc_address/d' tokens.yml
  start tokens.yml types_a.yml types_b.yml
  check grpc_absent_said grep -q 'no gRPC: .*serving HTTP only' server.err
  run_any grpc_absent_asked 4 timeout 60 "$server" -c lib.yml -a 127.0.0.1:0
else
  export STAVE_TOKEN=secret-word
  start tokens.yml types_a.yml types_b.yml slow.yml
  unset STAVE_TOKEN
  check grpc_said test -n "$grpc"
  run_any grpc_port_taken 4 timeout 60 "$server" -c lib.yml -a 127.0.0.1:0 --grpc "127.0.0.1:$grpc"
  check grpc_port_taken_said grep -q "cannot listen on 127.0.0.1:$grpc for gRPC: Address already in use" grpc_port_taken.err
fi
outside types "$port"
outside refusals "$port"
outside pages "$port"
outside tokens "$port" tokens.safetensors
run_any load_typed 3 timeout 60 "$BUILD/stave-load" -u "http://127.0.0.1:$port" -m tokens -n 1
check load_typed_said grep -q "stave-load sends one FP32 tensor.*'tokens' takes something else" load_typed.err

if [ -n "$GRPC_ABSENT" ]; then skip grpc "$GRPC_ABSENT"; stop typed; exit "${CLI_FAILED:-0}"; fi
if ! why=$("$SRC/tools/install-deps" readers); then skip grpc "$why"; stop typed; exit "${CLI_FAILED:-0}"; fi
client all
client gone
own=$grpc grpc=$port # the port of HTTP takes the same
client all
client gone
grpc=$own
stop typed
check typed_valid "$STAVE" validate out/batching_trace.pftrace
equals grpc_trace_context "$("$STAVE" query -q out/batching_trace.pftrace "SELECT count(*) FROM slice WHERE name = 'request' AND EXTRACT_ARG(arg_set_id, 'debug.trace_id') = '0af7651916cd43dd8448eb211c80319c'
  AND EXTRACT_ARG(arg_set_id, 'debug.parent_span_id') = 'b7ad6b7169203331' AND EXTRACT_ARG(arg_set_id, 'debug.otel.trace_state') = 'a=1'" | tail -n 1)" 2

# The same requests over the one and the other, on one port: the same rows of the same kinds.
for way in http grpc; do
  printf '%s\n' 'name: tokens' 'model: tokens.safetensors' 'grpc_address: same' 'batching_strategy: disabled' 'warmup_pregen_inputs: 0' \
    'trace_enabled: true' "trace_output: $TMP/$way" 'trace_plots: false' >$way.yml
  start $way.yml
  equals one_port_$way "$grpc" ''
  grpc=$port
  if [ $way = grpc ]; then client rows 20; else
    "$python" -c 'import json, sys, urllib.request
one = lambda name, v: {"name": name, "datatype": "INT64", "shape": [1, 1], "data": [v]}
for i in range(20):
    urllib.request.urlopen(sys.argv[1], json.dumps({"inputs": [one("input_ids", i), one("attention_mask", 1)]}).encode()).read()' "http://127.0.0.1:$port/v2/models/tokens/infer"
  fi
  stop same_$way
  equals same_${way}_requests "$(requests $way)" 20
  # Outside of the queue: libgrpc gives whole messages, and does not say when an answer was written.
  equals same_${way}_transport "$("$STAVE" query -q $way/batching_trace.pftrace --to csv "SELECT sum(parse_ns > 0 AND serialise_ns > 0 AND serialise_ns < dur), count(read_ns), count(write_ns) FROM request" | tail -n 1)" \
    "20,$([ $way = http ] && echo 20,20 || echo 0,0)"
  # Without congestion, which is a matter of how many wait at once on how busy a machine.
  "$python" -c 'import collections, json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
kinds = collections.Counter(" ".join((str(e.get("cat")), e["ph"], e["name"].rstrip("0123456789"))) for e in events if e["ph"] not in "MC" and e.get("cat") != "monitoring")
print("\n".join("%s %d" % k for k in sorted(kinds.items())))' $way/batching_trace.json >$way.kinds
done
check same_trace cmp http.kinds grpc.kinds

# Without gRPC a client of HTTP/2 is told so; who takes its port leaves it that of HTTP.
sed '/^grpc_address/d' lib.yml >default.yml
hear() { "$python" -c 'import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
text = b""
while piece := s.recv(4096): text += piece
print(text)' "$port"; }
start default.yml --grpc off
check grpc_off_says sh -c 'echo "$0" | grep -q "this server has no gRPC"' "$(hear)"
stop grpc_off
coproc TAKEN { exec "$python" -c 'import socket, sys
s = socket.socket()
try: s.bind(("127.0.0.1", 8001)); s.listen()
except OSError: pass # somebody else has it
print("taken", flush=True); sys.stdin.read()'; }
read -r _ <&"${TAKEN[0]}"
start default.yml
kill "$TAKEN_PID"
check grpc_port_taken_is_said grep -q 'cannot listen on 127.0.0.1:8001 for gRPC.*; serving gRPC on the port of HTTP only' server.err
grpc=$port; client rows 5
stop grpc_taken

# Stopped in the middle: whoever was accepted is answered, the others find no server.
for way in own one; do
  start lib.yml
  [ $way = own ] || grpc=$port
  client stop >stop.out & loader=$!
  for _ in $(seq 300); do grep -qs started stop.out && break; sleep 0.05; done
  stop stop_$way
  wait $loader
  cat stop.out
  check grpc_stop_seen_$way grep -q '^ok grpc_stop_late' stop.out
done
exit "${CLI_FAILED:-0}"
