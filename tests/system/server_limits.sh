#!/usr/bin/env bash
# stave-server with clients that do not get on, at its end, and beside StarPU's own recorder.
# shellcheck disable=SC2016 # inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
cp "$SRC"/examples/server/* .
config() { # FILE KEYS…
  printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'workers: 1' 'trace_plots: false' "${@:2}" >"$1"
}
start() { # CONFIG [COMMAND…]
  : >server.err
  "${@:2}" "$server" --config "$1" --address 127.0.0.1:0 2>server.err & pid=$!
  for _ in $(seq 600); do grep -q '^listening' server.err && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err)
  if [ -z "$port" ]; then sed 's/^/  /' server.err; not_ok "start of $1"; exit 1; fi
}
stop() { kill -TERM $pid; wait $pid; check "$1_exit" test $? = 0; }

# 400 clients that send half of a request, and 256 descriptors: who comes next is answered, and so is a client that has kept its connection.
cat >slow.py <<'PY'
import http.client, socket, sys
port, slow = int(sys.argv[1]), []
for i in range(400):
    s = socket.create_connection(("127.0.0.1", port), timeout=10)
    s.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    slow.append(s)
for i in range(20):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    c.request("GET", "/v2/health/live")
    answer = c.getresponse()
    assert answer.status == 200 and answer.read()
    c.request("GET", "/metrics")
    page = c.getresponse().read().decode()
cut = [float(l.split()[1]) for l in page.splitlines() if l.startswith('http_cut_total{reason="connections"}')]
assert cut and cut[0] > 100, cut
slow[0].settimeout(10)
assert b" 503 " in slow[0].recv(4096)
PY
config slow.yml
start slow.yml bash -c 'ulimit -n 256; exec "$@"' limited
check slow_clients_do_not_keep_others_out "$python" slow.py "$port"
stop slow

# As many connections as libmicrohttpd takes events at once (128), all waiting at the same time: none hangs.
config many.yml 'batch_coalesce_timeout_ms: 1' 'max_queue_size: 1000'
start many.yml
for n in 128 256; do run_any many_$n 0 timeout 60 "$BUILD/stave-load" -q -u "http://127.0.0.1:$port" --binary -n 4000 -c $n; done
stop many

# The end: what is queued is answered within the time for it; the rest gets 503, and each is counted.
config drain.yml 'batching_strategy: disabled' 'max_queue_size: 1000' 'drain_timeout_ms: 0' 'trace_enabled: true' "trace_output: $TMP/drained/"
start drain.yml
"$BUILD/stave-load" -u "http://127.0.0.1:$port" -n 1000000 -c 200 -j load.json >load.out 2>&1 & load=$!
for _ in $(seq 200); do [ "$("$python" -c 'import sys, urllib.request
print(sum(int(float(l.split()[1])) for l in urllib.request.urlopen(sys.argv[1]).read().decode().splitlines() if l.startswith("inference_completed_total")))' "http://127.0.0.1:$port/metrics")" -gt 1000 ] && break; sleep 0.05; done
stop drain
kill $load 2>/dev/null; wait $load
said=$(sed -nE 's/^stave-server: ([0-9]+) queued requests? .*answered with 503: drain_timeout_ms was over/\1/p' server.err)
echo "  ${said:-0} dropped"
check drain_counts test "${said:-0}" = "$("$STAVE" cat -q drained/batching_trace.pftrace | grep -c 'the server stopped before its turn')"
check drain_leaves_whole_files "$STAVE" validate -q drained/batching_trace.pftrace

# Clients that leave while the only slot is taken: their places in the queue are free for the next one, and they are not computed.
# Trace context: the client's and the server's spans are joined; what is not valid is ignored and counted.
cat >gone.py <<'PY'
import json, socket, sys, time, urllib.request
port = int(sys.argv[1])
def metric(name):
    page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    return sum(float(l.split()[1]) for l in page.splitlines() if l.startswith(name))
def ask(model, rows, headers=""):
    n = {"wide": 2048, "mlp": 32}[model]
    body = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [rows, n], "parameters": {"binary_data_size": rows * n * 4}}],
                       "parameters": {"binary_data_output": True}}).encode()
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body) + rows * n * 4}\r\nInference-Header-Content-Length: {len(body)}\r\n{headers}\r\n".encode()
              + body + bytes(rows * n * 4))
    return s
def head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(65536)
        assert more, got
        got += more
    return got.split(b"\r\n\r\n")[0].decode().lower().split("\r\n")
def fill():  # one is computed, 32 wait and leave, and it is still computed; or it was faster than we are
    before, received = metric("inference_completed_total"), metric("requests_received_total")
    long = ask("wide", 32)
    while metric("requests_received_total") == received or metric('inference_queue_size{model="wide"'):
        pass
    gone, cancelled = [ask("wide", 1) for _ in range(32)], metric("requests_cancelled_total")
    while metric('inference_queue_size{model="wide"') != 32:
        if metric("inference_completed_total") != before:
            for s in [long, *gone]:
                head(s)
            return None
    for s in gone:
        s.close()
    if metric("inference_completed_total") == before:
        return long, cancelled
    head(long)
    while metric("inference_completed_total") + metric("requests_cancelled_total") != metric("requests_received_total"):
        pass
    return None
for _ in range(20):
    full = fill()
    if full:
        break
long, cancelled = full
time.sleep(0.03)  # the server looks for those who left every 20 ms
next = ask("wide", 1, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=1\r\nTraceState: b=2\r\n")
assert " 200 " in head(long)[0]
answer = head(next)
assert " 200 " in answer[0], answer
own = [l for l in answer if l.startswith("traceparent: 00-0af7651916cd43dd8448eb211c80319c-")]
assert len(own) == 1 and "b7ad6b7169203331" not in own[0], answer
assert metric("requests_cancelled_total") == cancelled + 32 and metric("requests_rejected_total") == 0
open("cancelled", "w").write("%d" % (cancelled + 32))
good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
for bad in ("x", good.upper(), "ff" + good[2:], good + "-x", good.replace("b7ad6b7169203331", "0" * 16), good + "\r\ntraceparent: " + good, ""):
    answer = head(ask("mlp", 1, f"traceparent: {bad}\r\n"))
    assert " 200 " in answer[0] and not any(l.startswith("traceparent") for l in answer), (bad, answer)
assert metric("traceparent_invalid_total") == 7, metric("traceparent_invalid_total")
PY
"$python" - <<'PY'
import json, struct
n = 2048
head = json.dumps({"__metadata__": {"stave.input": str(n), "stave.layers": ", ".join(["dense a"] * 30)},
    "a.weight": {"dtype": "F32", "shape": [n, n], "data_offsets": [0, n * n * 4]}, "a.bias": {"dtype": "F32", "shape": [n], "data_offsets": [n * n * 4, n * n * 4 + n * 4]}}).encode()
open("wide.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + bytes(n * n * 4 + n * 4))
PY
printf '%s\n' 'name: wide' 'model: wide.safetensors' 'workers: 1' 'trace_plots: false' 'max_queue_size: 32' 'pool_size: 1' 'max_batch_size: 32' 'batch_coalesce_timeout_ms: 0' \
  'warmup_pregen_inputs: 0' 'trace_enabled: true' "trace_output: $TMP/gone/" >wide.yml
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' >second.yml
start wide.yml bash -c 'exec "$@" --config second.yml' two
check clients_that_leave_free_their_place "$python" gone.py "$port"
run_any load_with_trace 0 "$BUILD/stave-load" -q -u "http://127.0.0.1:$port" -m mlp -n 300 -c 4 --trace load.pftrace
stop gone
run_any join_client_and_server 0 "$STAVE" merge -q --same-host load.pftrace gone/batching_trace.pftrace -o joined.pftrace
ask() { "$STAVE" query -q joined.pftrace "SELECT count(*) FROM $1" | tail -n 1; }
check cancelled_in_the_trace test "$(ask "slice WHERE name = 'request' AND EXTRACT_ARG(arg_set_id, 'debug.outcome') = 'cancelled'")" = "$(cat cancelled)"
check trace_state_is_kept test "$(ask "slice WHERE name = 'request' AND EXTRACT_ARG(arg_set_id, 'debug.parent_span_id') = 'b7ad6b7169203331' AND EXTRACT_ARG(arg_set_id, 'debug.otel.trace_state') = 'a=1,b=2'")" = 1
check spans_are_joined test "$(ask "flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in WHERE a.category = 'load' AND b.category = 'serving' AND b.name = 'request'
  AND EXTRACT_ARG(a.arg_set_id, 'debug.trace_id') = EXTRACT_ARG(b.arg_set_id, 'debug.trace_id') AND EXTRACT_ARG(a.arg_set_id, 'debug.span_id') = EXTRACT_ARG(b.arg_set_id, 'debug.parent_span_id')")" = 300

# FxT: asked for, and not there.
config plain.yml
STARPU_FXT_TRACE=1 start plain.yml
stop plain
check fxt_is_missed_aloud grep -q '^stave-server: STARPU_FXT_TRACE has no effect: this StarPU was built without FxT; ' server.err
# And there: $STAVE_STARPU_FXT is a folder that tools/build-starpu-fxt made; the long suite makes one.
if [ -z "${STAVE_STARPU_FXT:-}" ] && [ -n "${STAVE_LONG:-}" ]; then
  if "$SRC/tools/build-starpu-fxt" "$TMP/starpu" >fxt.log 2>&1; then STAVE_STARPU_FXT=$TMP/starpu; else skip fxt "$(tail -n 1 fxt.log)"; fi
fi
if [ -n "${STAVE_STARPU_FXT:-}" ]; then
  config fxt.yml 'trace_enabled: true' "trace_output: $TMP/fxt/" 'starpu_env:' '  STARPU_FXT_TRACE: 1'
  LD_LIBRARY_PATH=$STAVE_STARPU_FXT/lib start fxt.yml
  "$BUILD/stave-load" -q -u "http://127.0.0.1:$port" -n 300 >load.out 2>&1
  stop fxt
  check fxt_is_listed grep -q "^fxt: .*/fxt/prof_file_" server.err
  joined=fxt/batching_trace_starpu.pftrace
  n=$("$STAVE" query -q $joined "SELECT count(*) FROM slice WHERE name = 'codelet'" | tail -n 1)
  check fxt_has_batches test "$n" -gt 10
  # Each codelet of the server leads to one task of StarPU's, of the same job, which began after it and within it.
  check fxt_tasks_are_joined test "$("$STAVE" query -q $joined "SELECT count(DISTINCT a.id) FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in
    WHERE a.name = 'codelet' AND EXTRACT_ARG(b.arg_set_id, 'debug.JobId') = EXTRACT_ARG(a.arg_set_id, 'debug.job') AND b.ts BETWEEN a.ts - 1000000 AND a.ts + a.dur + 1000000" | tail -n 1)" = "$n"
else
  skip fxt "set STAVE_STARPU_FXT to a folder made by tools/build-starpu-fxt, or STAVE_LONG=1"
fi
