#!/usr/bin/env bash
# stave-server and stave listen --otlp under ThreadSanitizer: HTTP and gRPC at once, clients that leave or are slow, and the end in the middle of it.
# Whether the answers are right is tested elsewhere; here every thread meets every other one.
# shellcheck disable=SC2016,SC2034 # words for eval
set -uo pipefail
case $BUILD in *tsan) ;; *) echo "only under ThreadSanitizer"; exit 77 ;; esac
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }
cd "$TMP" || exit 2
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci STAVE_SESSION_DIR=$TMP/sessions
mkdir "$STAVE_SESSION_DIR"
check() { if eval "$2"; then echo "ok server_threads: $1"; else echo "not ok server_threads: $1"; sed 's/^/  /' err | head -n 80; fi; }
until_said() { for _ in $(seq 600); do grep -q "$1" err && return; kill -0 "$pid" 2>/dev/null || return 1; sleep 0.05; done; }
has_client=
if "$SRC/tools/install-deps" readers >why 2>&1; then has_client=1; else echo "skip server_threads: gRPC: $(cat why)"; fi

# ---- the server ----

cat >clients.py <<'PY'
import json, random, socket, sys, threading, time
port = int(sys.argv[1])
slow = []
for i in range(50):  # half of a request
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    s.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    slow.append(s)
body = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 32], "data": [0.5] * 32}]}).encode()
def leave():
    for i in range(40):
        s = socket.create_connection(("127.0.0.1", port), timeout=20)
        s.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(random.random() * 0.003)
        s.close()
        s = socket.create_connection(("127.0.0.1", port), timeout=20)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        while s.recv(65536):
            pass
threads = [threading.Thread(target=leave) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
PY
client() { timeout 120 node "$SRC/tests/system/server_grpc.mjs" "$SRC/build/npm" "$SRC/tests/system/server_grpc.proto" "$grpc" "$port" "$@" >>client.out 2>&1; }
if [ -x "$BUILD/stave-server" ]; then
  cp "$SRC"/examples/server/*.safetensors .
  printf '%s\n' 'name: tokens' 'model: tokens.safetensors' 'workers: 2' 'batch_coalesce_timeout_ms: 2' 'max_queue_size: 1000' 'grpc_address: 127.0.0.1:0' \
    'trace_enabled: true' "trace_output: $TMP/out" 'trace_plots: false' >tokens.yml
  printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'batch_coalesce_timeout_ms: 2' 'batching_strategy: adaptive' >mlp.yml
  sed 's/^name: .*/name: slow/; /^workers/d; /^grpc/d; /^trace/d' tokens.yml >slow.yml
  printf '%s\n' 'batching_strategy: fixed' 'fixed_batching: {batch_size: 16}' >>slow.yml
  "$BUILD/stave-server" -c tokens.yml -c mlp.yml -c slow.yml -a 127.0.0.1:0 2>err & pid=$!
  until_said '^listening'
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' err) grpc=$(sed -nE 's/^gRPC on .*:([0-9]+)$/\1/p' err)
  timeout 120 "$BUILD/stave-load" -q -u "http://127.0.0.1:$port" -m mlp -n 500 -c 16 --trace load.pftrace >load.out 2>&1; loaded=$?
  if [ -n "$has_client" ] && [ -n "$grpc" ]; then for _ in 1 2 3; do client rows 300; done; client gone; fi
  python3 clients.py "$port" >clients.out 2>&1
  "$BUILD/stave-load" -q -u "http://127.0.0.1:$port" -m mlp -n 1000000 -c 16 >/dev/null 2>&1 & load=$!
  [ -z "$has_client" ] || [ -z "$grpc" ] || client stop & calls=$!
  sleep 1
  kill -TERM $pid; wait $pid; code=$?
  kill $load 2>/dev/null; wait $load $calls
  check "stave-server under load, stopped in the middle" '[ $code = 0 ] && [ "$loaded" = 0 ]'
else
  echo "skip server_threads: no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
fi

# ---- the listener ----

grpc_address=127.0.0.1:0
"$STAVE" doctor 2>/dev/null | grep -q '^- *gRPC' && grpc_address=off
"$STAVE" listen "unix:$TMP/s" --otlp 127.0.0.1:0 --otlp-grpc $grpc_address -o heard.pftrace 2>err & pid=$!
until_said Ctrl-C
port=$(sed -n 's/.*OTLP on port \([0-9]*\).*/\1/p' err) grpc=$(sed -n 's/.*gRPC on port \([0-9]*\).*/\1/p' err)
senders=()
for form in '' json; do python3 "$SRC/tests/harness/otlp.py" send "$port" 100000 64 $form >/dev/null 2>&1 & senders+=($!); done
if [ -n "$has_client" ] && [ -n "$grpc" ]; then
  (while kill -0 $pid; do timeout 5 node "$SRC/tests/cli/otlp/client.cjs" "$SRC/build/npm" "$port" "$grpc" grpc proto; done) >/dev/null 2>&1 & senders+=($!)
fi
STAVE_OUT=unix:$TMP/s STAVE_BUFFER=64k STAVE_FULL=block "$BUILD/tests/stress/numbers" 2 4000 progress 2>/dev/null & senders+=($!)
sleep 3
kill -TERM $pid; wait $pid; code=$?
wait "${senders[@]}" 2>/dev/null
check "stave listen with HTTP, gRPC and tracers, stopped in the middle" '[ $code = 0 ] && [ -s heard.pftrace ]'
