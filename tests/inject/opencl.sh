#!/usr/bin/env bash
# The OpenCL layer in programs that know nothing of Stave, on a real implementation (PoCL): they end as they do without it, and what they did is in
# the trace.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-opencl.so programs=$BUILD/tests/inject
[ -e "$library" ] || skip_all "libstave-opencl.so was not built: the OpenCL headers are absent (package opencl-headers)"
[ -x "$programs/cl_play" ] || skip_all "the OpenCL loader is absent (package ocl-icd-opencl-dev)"
case $BUILD in *tsan | *asan) skip_all "PoCL compiles kernels inside the process: not under a sanitizer" ;; esac
export POCL_CACHE_DIR=$TMP/pocl STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$POCL_CACHE_DIR" "$STAVE_SESSION_DIR"
"$programs/cl_play" vector >bare.out 2>&1 || skip_all "no OpenCL device works here (package pocl-opencl-icd): $(tail -n 1 bare.out)"

# scene NAME [COMMAND…]: the program bare, then with the layer into NAME.pftrace and NAME.text; exit status and output must be the same.
scene() {
  local name=$1 bare traced; shift
  [ $# -gt 0 ] || set -- "$programs/cl_play" "$name"
  timeout 120 "$@" >"$name.bare" 2>/dev/null; bare=$?
  if [ $bare = 77 ]; then skip "$name" "$(tail -n 1 "$name.bare")"; return 1; fi
  OPENCL_LAYERS=$library STAVE_OUT=$name.pftrace timeout 120 "$@" >"$name.out" 2>"$name.err"; traced=$?
  check "$name: ends as it does untraced ($bare)" test "$traced" = "$bare"
  check "$name: prints the same" cmp "$name.bare" "$name.out"
  "$STAVE" cat -q "$name.pftrace" >"$name.text" || true
  "$STAVE" validate -q "$name.pftrace" >"$name.sound" 2>&1 # warnings: calls that failed have no work, threads report on one queue in turn
  check "$name: the trace has no errors" grep -qE 'events checked' "$name.sound"
  check "$name: and nothing was lost" awk '/^error|lost|dropped/ { bad = 1 } END { exit bad }' "$name.sound"
}
has() { check "$1: $2" grep -qE -- "$3" "$1.text"; }
count() { check "$1: $2 ($4)" test "$(grep -cE -- "$3" "$1.text")" = "$4"; }
sql() { "$STAVE" query -q --to csv "$1.pftrace" "$2" | tail -n 1; }
# Every command has its call: as many arrows as commands on a device, none of them backwards by more than the clock's uncertainty.
arrows() {
  check "$1: an arrow for every command ($2)" test "$(sql "$1" "SELECT count(*) FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in WHERE a.category = 'opencl_runtime' AND b.category IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_sync')")" = "$2"
  check "$1: nothing runs before it is asked for" test "$(sql "$1" "SELECT count(*) FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in WHERE b.ts < a.ts - 100000")" = 0
}

if scene vector; then
  has vector "the device" 'gpu uuid.*name="(CPU|GPU) 0 '
  has vector "the queue below its context" 'stream uuid.*name="Queue 1"'
  has vector "a kernel with grid, block and sizes of its arguments" '"vector_add" cat="kernel" .*grid=\[64 1 1\] block=\[64 1 1\].*arguments="memory 16384, memory 16384, memory 16384"'
  count vector "copies to the device" '"Memcpy HtoD .*bytes=16384' 2
  count vector "copies from the device" '"Memcpy DtoH .*bytes=16384' 1
  arrows vector 4
  has vector "how long the command waited" '"vector_add" .*queued=[0-9]+ submitted=[0-9]+'
  has vector "the clock of the device, with its uncertainty" '"clock tie" .*clock="OpenCL device 0" .*uncertainty_ns=[0-9]+'
  has vector "the build" 'begin .*"clBuildProgram" cat="opencl_runtime"'
  has vector "its options" 'end .*options="-cl-fast-relaxed-math"'
  has vector "memory in use" 'name="memory in use" unit="bytes"'
  count vector "allocations" '"alloc" cat="gpu_alloc" .*Bytes=16384' 3
  count vector "each of them freed" '"free" ' 3
  count vector "nothing is left" 'memory never released' 0
fi
if scene copies; then
  has copies "fills" '"Memset \(Device\)" cat="gpu_memset" .*bytes=16384'
  has copies "copies on the device" '"Memcpy DtoD .*bytes=8192'
  has copies "maps" '"Map buffer" .*"mapped bytes"=16384'
  has copies "unmaps" '"Unmap" '
  has copies "migrations" '"Migrate" '
  has copies "barriers" '"Barrier" cat="cuda_sync"'
  has copies "markers" 'instant .*"Marker"'
  has copies "flush and finish" 'begin .*"clFlush"'
  count copies "a sub-buffer is no allocation" '"alloc" cat="gpu_alloc"' 3
fi
if scene images; then
  count images "allocations: three buffers, two images" '"alloc" cat="gpu_alloc"' 5
  has images "what kind" 'purpose="image"'
  count images "copies of images by their bytes" 'cat="gpu_memcpy" .*bytes=2048' 5
  has images "fills of images" 'cat="gpu_memset" .*bytes=2048'
  has images "maps of images" '"Map image" .*"mapped bytes"=2048'
fi
if scene rect; then count rect "rectangles" 'cat="gpu_memcpy" .*bytes=8192' 3; fi
if scene svm; then
  count svm "allocations" 'purpose="svm"' 2
  count svm "frees, one of them by the queue" '"free" .*Bytes=-16384' 5
  has svm "arguments" 'arguments="svm 16384, svm 16384, memory 16384"'
  has svm "directions" '"Memcpy DtoH .*bytes=64'
fi
if scene unordered; then
  has unordered "says so" 'name="Queue 1 \(out of order\)"'
  count unordered "kernels" 'begin .*cat="kernel"' 22
  has unordered "local memory" '"spin" .*"shared memory"=256 .*arguments="memory 16384, 4, local 256"'
  has unordered "waits by events" '"Barrier" .*events=1'
fi
if scene sub; then
  check "sub: three devices" test "$(grep -cE '^track .* gpu uuid' sub.text)" = 3
  has sub "named" 'name="(CPU|GPU) [12] .*\(sub-device\)"'
  count sub "a fill on each" '"Memset' 2
fi
if scene callbacks; then count callbacks "kernels" 'begin .*cat="kernel"' 50; fi
if scene threads; then
  count threads "kernels of four threads" 'begin .*cat="kernel"' 1000
  arrows threads 1000
  check "threads: calls on four threads" test "$(sql threads "SELECT count(DISTINCT track_id) FROM slice WHERE name = 'clEnqueueNDRangeKernel'")" = 4
fi
if scene user; then
  count user "kernels" 'begin .*cat="kernel"' 202
  has user "the event that they waited for" '"user event" cat="opencl_runtime"'
fi
if scene leak; then
  has leak "what was not released" '"memory never released" .*allocations=3 bytes=3145728'
  check "leak: the counter says so too" test "$(sql leak "SELECT value FROM counter JOIN track ON track.id = counter.track_id WHERE track.name = 'memory in use' ORDER BY ts DESC LIMIT 1" | cut -d. -f1)" = 3145728
fi
if [ -e leak.pftrace ]; then
  "$STAVE" report gpu leak.pftrace >leak.report 2>&1
  check "leak: stave report gpu knows it" grep -qE '3\.0 MiB +3$' leak.report
fi
if scene leave; then
  count leave "kernels of a program that left without waiting" 'begin .*cat="kernel"' 100
  arrows leave 100
fi
timeout 60 env OPENCL_LAYERS="$library" STAVE_OUT=stuck.pftrace "$programs/cl_play" stuck >/dev/null 2>&1
check "stuck: a program whose work cannot end, ends" test $? = 0
"$STAVE" cat -q stuck.pftrace >stuck.text 2>/dev/null
has stuck "what did not end is counted" 'loss .*"not complete when the program ended" \{1\}'
if scene build; then
  has build "a build that fails, with its log" 'end .*log=".*no_such_thing.*error=-11'
  has build "a build that notifies" '"program build"'
  has build "a task" '"fine" cat="kernel" .*grid=\[1 1 1\]'
  has build "calls that fail" 'end .*\{error=-30\}'
  has build "kernels met at their first use" '"clCreateKernelsInProgram"'
fi
if scene view; then count view "kernels of every queue" 'begin .*cat="kernel"' 6; fi
scene late "$programs/cl_late" && has late "a program that loads the library by name" '"Memset'

# Off: nothing is written and nothing else happens.
check "off: without STAVE_OUT" env OPENCL_LAYERS="$library" "$programs/cl_play" view
check "off: by category" env OPENCL_LAYERS="$library" STAVE_CATEGORIES=none STAVE_OUT=off.pftrace "$programs/cl_play" threads
check "no trace was asked for" test ! -e trace.pftrace

# Nothing is lost, however quick the program is.
run_any many 0 env OPENCL_LAYERS="$library" STAVE_OUT=many.pftrace "$programs/cl_play" many 20000
check "many: every kernel" test "$(sql many "SELECT count(*) FROM slice WHERE category = 'kernel'")" = 20000
check "many: every call" test "$(sql many "SELECT count(*) FROM slice WHERE name = 'clEnqueueNDRangeKernel'")" = 20000

if "$STAVE" record --help 2>/dev/null | grep -- --inject >/dev/null; then
  run_any recorded 0 "$STAVE" record --inject opencl -q -o recorded.pftrace -- "$programs/cl_play" vector
  "$STAVE" cat -q recorded.pftrace >recorded.text
  has recorded "stave record --inject opencl" '"vector_add" cat="kernel"'
fi

python=/usr/bin/python3
if "$python" -c 'import pyopencl' 2>/dev/null; then
  cat >user.py <<'END'
import numpy, pyopencl
context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
program = pyopencl.Program(context, "__kernel void twice(__global float *a) { a[get_global_id(0)] *= 2; }").build()
host = numpy.arange(1000, dtype=numpy.float32)
device = pyopencl.Buffer(context, pyopencl.mem_flags.COPY_HOST_PTR, hostbuf=host)
program.twice(queue, host.shape, None, device)
pyopencl.enqueue_copy(queue, host, device)
print(host[999])
END
  export PYOPENCL_NO_CACHE=1 XDG_CACHE_HOME=$TMP
  scene python "$python" user.py && has python "a kernel of PyOpenCL" '"twice" cat="kernel" .*"global size"="1000"'
else skip python "python3-pyopencl is not installed"; fi
