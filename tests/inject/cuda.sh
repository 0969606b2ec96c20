#!/usr/bin/env bash
# CUDA through CUPTI without a GPU: records of every version, made of the toolkit's structs, go through the injected library; the real libcupti shows its errors.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-cuda.so programs=$BUILD/tests/inject
[ -e "$library" ] || skip_all "libstave-cuda.so was not built: CUPTI's headers of a CUDA toolkit are absent"
export STAVE_SESSION_DIR=$TMP/sessions CUDA_INJECTION64_PATH=$library STAVE_CUPTI=$programs/libfake_cupti.so
mkdir -p "$STAVE_SESSION_DIR"
real=$(ls /usr/local/cuda*/lib*/libcupti.so /usr/local/cuda*/extras/CUPTI/lib64/libcupti.so 2>/dev/null | head -n 1)
case $BUILD in *asan | *tsan) real= ;; esac
export FAKE_CUPTI_REAL=$real

scene() {
  local name=$1; shift
  run_any "$name" 0 env STAVE_OUT="$name.pftrace" "$@" "$programs/cuda_program"
  check "$name: the program runs on" grep -qx 'the program runs on' "$name.out"
  "$STAVE" cat -q "$name.pftrace" >"$name.text" 2>/dev/null || true
}
has() { check "$1: $2" grep -qE -- "$3" "$1.text"; }
lacks() { check "$1: $2" sh -c "! grep -qE -- '$3' '$1.text'"; }

# CUPTI of 10.2, 11.0, 11.1, 11.2, 11.6, 11.8, 12.0, 12.4, 12.8, 13.0 Update 1
for api in 12 13 14 15 17 18 19 22 26 130001; do
  s=api$api
  scene $s FAKE_CUPTI_API=$api STAVE_CUDA=+unified,graph,link STAVE_CUDA_LATENCY=1
  has $s "device" 'name="GPU 1 Fake GPU"'
  has $s "device attributes" '"Fake GPU".*numSms=108|numSms=108'
  has $s "context" 'name="Context 2"'
  has $s "a named stream" 'name="copies"'
  has $s "kernel" '"vecAdd\(float const\*, float const\*, float\*\)" cat="kernel"|"_Z6vecAddPKfS0_Pf" cat="kernel"'
  has $s "kernel: size and registers" 'cat="kernel".*grid=\[64 2 1\].*block=\[128 1 1\]'
  has $s "kernel: correlation" 'cat="kernel".*@correlation:0xb '
  has $s "kernel: queued" 'cat="kernel".*queued=900'
  has $s "copy" '"Memcpy HtoD \(Pinned -> Device\)" cat="gpu_memcpy".*bytes=4096'
  has $s "peer copy" '"Memcpy PtoP.*cat="gpu_memcpy".*bytes=8192'
  has $s "memset" 'cat="gpu_memset".*bytes=512'
  has $s "runtime call" '"cudaLaunchKernel" cat="cuda_runtime"'
  has $s "external id of the call, reported after it" '"cudaLaunchKernel".*"External id"=4242'
  has $s "driver call with its error" '"cuMemcpyHtoDAsync" cat="cuda_driver".*error=2'
  has $s "wait of a stream, and on what" 'cat="cuda_sync".*wait_on_stream=7'
  has $s "overhead" '"Buffer Flush" cat="overhead"'
  has $s "unified memory" 'cat="gpu_memcpy".*bytes=2048'
  has $s "page faults" '"GPU page faults"'
  has $s "whole graphs" '"CUDA graph".*"graph id"=5'
  has $s "links" '"PCIe" .*generation=4'
  has $s "CUPTI's own loss" 'loss #[0-9]+ "dropped by CUPTI" \{17\}'
  check "$s: detached at the end" grep -q 'unsubscribed, 0 kinds enabled' $s.out
  check "$s: the arrow from call to kernel" test "$(grep -E '"cudaLaunchKernel"|cat="kernel"' $s.text | grep -oE '0x[0-9a-f]{9,}' | sort | uniq -c | awk '$1 == 2' | wc -l)" -ge 1
  if [ $api -ge 13 ]; then has $s "graph node of a kernel" 'cat="kernel".*"graph node id"=50'; else lacks $s "no graph before 11.0" 'cat="kernel".*graph'; fi
  if [ $api -ge 18 ]; then has $s "cluster" 'cluster=\[2 1 1\]'; else lacks $s "no cluster before 11.8" cluster; fi
  if [ $api -ge 14 ]; then
    has $s "allocation" 'cat="gpu_alloc".*65536'
    has $s "memory counter" 'name="memory in use"'
  fi
done
if [ -n "$real" ]; then ok "records of 13.0 are walked by the real libcupti"; else skip "records of 13.0 walked by the real libcupti" "no libcupti on this machine, or a sanitizer"; fi
has api130001 "source of an allocation" 'source="libtorch.so"'
has api130001 "event record with its time" 'cat="gpu_event"'
has api130001 "records without times are loss" 'records without times'
lacks api26 "a field of 13 is not read in 12.8" 'launched by the device'

# Times: CUPTI's own clock when it does not take ours.
scene old_clock FAKE_CUPTI_SCENE=old_clock
has old_clock "CUPTI's clock is tied to ours" 'cat="gpu_clock"'
run_any span 0 "$STAVE" query -q old_clock.pftrace "SELECT CASE WHEN MAX(ts) - MIN(ts) < 60000000000 THEN 'near' ELSE 'far' END FROM slice"
check "old_clock: the work lies within the session" grep -q near span.out

# Choosing.
scene few STAVE_CUDA=kernel,memcpy
has few "what was asked for" 'cat="kernel"'
lacks few "nothing else" 'cat="(cuda_runtime|gpu_memset|cuda_sync)"'

# What fails is one line, and the program runs.
one_line() { check "$1: one clear line" test "$(wc -l <"$1.err")" = 1; check "$1: says why" grep -qE -- "$2" "$1.err"; }
scene owned FAKE_CUPTI_SCENE=owned
one_line owned 'another tool uses CUPTI'
scene failing FAKE_CUPTI_SCENE=failing
one_line failing 'CUPTI does not start: CUPTI_ERROR_UNKNOWN.*nvidia-smi'
scene refusing FAKE_CUPTI_SCENE=refusing
one_line refusing 'CUPTI records nothing: CUPTI_ERROR_NOT_COMPATIBLE'
scene absent STAVE_CUPTI=/no/libcupti.so
one_line absent 'stave: cuda: /no/libcupti.so cannot be loaded.*STAVE_CUPTI'
scene not_cupti STAVE_CUPTI="$library"
one_line not_cupti 'lacks cuptiGetVersion'
if [ -n "$real" ] && ! [ -e /dev/nvidiactl ]; then
  scene real STAVE_CUPTI="$real"
  one_line real 'CUPTI does not start'
else skip real "no libcupti on this machine, or a GPU"; fi
scene many FAKE_CUPTI_SCENE=many
check "buffers are bounded" grep -qx 'fake: 64 buffers' many.out
scene cut FAKE_CUPTI_SCENE=cut
has cut "a record that ends with the buffer" 'cat="kernel"'
scene chain STAVE_NEXT_CUDA_INJECTION64_PATH=/no/tool.so
one_line chain '/no/tool.so: cannot be loaded before'

# Nothing is recorded: CUPTI is not even loaded.
run_any off 0 env STAVE_CUPTI=/no/libcupti.so "$programs/cuda_program"
check "off: silent" test ! -s off.err
