#!/usr/bin/env bash
# stave-server with ONNX models: answers against numbers computed outside, models that cannot be served, and what is said without the library.
# With it (STAVE_ONNXRUNTIME=/path/to/libonnxruntime.so.1, or where the loader looks) everything is run, otherwise only the refusals.
# shellcheck disable=SC2016 # inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1
# StarPU asks hwloc, whose PCI plugin unloads libpciaccess without freeing its list of devices: a leak of 1 KiB without a module to name it by.
export HWLOC_COMPONENTS=-pci
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3"
outside() { "$python" "$SRC/tests/system/server_onnx.py" "$@" || CLI_FAILED=1; }
outside make .
for name in *.onnx; do name=${name%.onnx}; printf 'name: %s\nmodel: %s.onnx\nbatching: {max_batch_size: 8}\n' "$name" "$name" >"$name.yml"; done

# refused NAME EXIT WORDS CONFIG [VARIABLE=VALUE]: one line that says WORDS.
refused() {
  run_any "$1" "$2" env "${5:-LC_ALL=C}" timeout 60 "$server" -a 127.0.0.1:0 --grpc off -c "$4"
  check "$1_reported" grep -q "$3" "$1.err"
  check "$1_one_line" test "$(wc -l <"$1.err")" = 1
}

# Without the library.
refused onnx_absent 4 'dense.onnx needs ONNX Runtime (.*nowhere/libonnxruntime.so.1.*install.*STAVE_ONNXRUNTIME' dense.yml STAVE_ONNXRUNTIME="$TMP/nowhere/libonnxruntime.so.1"
refused onnx_no_library 4 'libc.so.6 is not an ONNX Runtime' dense.yml STAVE_ONNXRUNTIME=libc.so.6
(cat dense.yml; echo "onnxruntime: $TMP/elsewhere.so") >key.yml
refused onnx_key 4 'elsewhere.so' key.yml STAVE_ONNXRUNTIME=
(cat dense.yml; printf 'use_cpu: false\nuse_opencl: true\n') >opencl.yml
refused onnx_opencl_only 2 'computed by CPU workers, not by OpenCL' opencl.yml
touch net.pt
printf 'name: m\nmodel: net.pt\n' >pt.yml
refused torch_file 3 'net.pt: .*export it as ONNX' pt.yml
printf 'name: m\nmodel: missing.onnx\n' >missing.yml
refused onnx_missing 3 'missing.yml:2: .*no such file' missing.yml

"$server" --check -c dense.yml >probe.out 2>probe.err
if grep -q 'needs ONNX Runtime' probe.err && [ -z "${STAVE_ONNXRUNTIME:-}" ]; then
  skip onnx "no ONNX Runtime: set STAVE_ONNXRUNTIME to run ONNX models here"
  exit 0
fi
check onnx_check grep -qE 'model dense, ONNX Runtime [0-9.]+, x FP32 \[rows, 4\] → y FP32 \[rows, 3\]' probe.out
sed 's/^/  /' probe.out probe.err

# Models that cannot be served.
refused onnx_torn 3 'torn.onnx: ONNX Runtime: ' torn.yml
refused onnx_noise 3 'noise.onnx: ONNX Runtime: ' noise.yml
refused onnx_empty 3 'empty.onnx' empty.yml
refused onnx_text 3 "'x' is not a tensor of numbers or truth values" text.yml
refused onnx_uneven 3 '2 rows in and 1 of the input' uneven.yml
refused onnx_deep 3 'has 9 dimensions' deep.yml
refused onnx_huge 4 'no numbers or more than 4194304' huge.yml
refused onnx_crowd 3 '100000 rows in' crowd.yml
(cat dense.yml; echo 'inputs: [{name: x, data_type: TYPE_FP32, dims: [1, 5]}]') >dims.yml
refused onnx_dims 2 'dims do not fit' dims.yml
(cat whole.yml; echo 'inputs: [{name: x, data_type: TYPE_FP32, dims: [1, 4]}]') >type.yml
refused onnx_type 2 "data_type of 'x' must be TYPE_INT64" type.yml

# start CONFIG…, stop NAME: as users do it.
start() {
  local args=() config
  for config in "$@"; do args+=(-c "$config"); done
  "$server" "${args[@]}" -a 127.0.0.1:0 --grpc off 2>server.err & pid=$!
  for _ in $(seq 900); do grep -q '^listening' server.err && break; kill -0 $pid 2>/dev/null || break; sleep 0.1; done
  port=$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err)
  if [ -z "$port" ]; then sed 's/^/  /' server.err; not_ok "start of $*"; exit 1; fi
}
stop() {
  kill -INT $pid
  for _ in $(seq 2400); do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
  kill -KILL $pid 2>/dev/null
  wait $pid
  check "$1_exit" test $? = 0
}

# OpenCL workers beside CPU workers: they are left out.
printf '%s\n' 'workers: 2' 'trace_enabled: true' "trace_output: $TMP/out" 'trace_plots: false' 'use_opencl: true' >>dense.yml
printf '%s\n' 'padding: zeros' 'batch_coalesce_timeout_ms: 20' >>bert.yml
start dense.yml four.yml image.yml open.yml whole.yml two.yml bert.yml liar.yml
check onnx_described grep -q '^model four: x FP32 \[rows, 4\] → y FP32 \[rows, 3\], adaptive, at most 4 rows a batch, ONNX Runtime on CPU workers only' server.err
outside numbers "$port"
outside bert "$port"
run_any onnx_load 0 timeout 120 "$BUILD/stave-load" -u "http://127.0.0.1:$port" -m dense -n 300 -c 8 --binary
stop onnx
check onnx_batches grep -q '"cpu"' out/batching_trace_summary.csv
check onnx_no_opencl sh -c '! grep -q "\"opencl\"" out/batching_trace_summary.csv'

# A model that loads and fails: each request gets an error, the server continues.
printf '%s\n' 'trace_enabled: true' "trace_output: $TMP/broken" 'trace_plots: false' >>broken.yml
start broken.yml
outside broken "$port"
stop onnx_broken
check onnx_broken_said grep -q 'model broken: batch .* could not be computed: ONNX Runtime: ' server.err
check onnx_broken_once test "$(grep -c 'could not be computed' server.err)" = 1
check onnx_broken_traced sh -c '"$0" cat -q broken/batching_trace.pftrace 2>/dev/null | grep -q "batch failed.*ONNX Runtime"' "$STAVE"
