#!/usr/bin/env bash
# NVTX in programs that know nothing of Stave: what they say is in the trace, and what is wrong with them ends nobody.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-nvtx.so programs=$BUILD/tests/inject
[ -e "$library" ] || skip_all "libstave-nvtx.so was not built: the NVTX headers of a CUDA toolkit are absent"
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block NVTX_INJECTION64_PATH=$library
mkdir -p "$STAVE_SESSION_DIR"

# scene NAME COMMAND…: traces it into NAME.pftrace and NAME.text
scene() {
  local name=$1; shift
  run_any "$name" 0 env STAVE_OUT="$name.pftrace" "$@"
  # A leak checker in a forked child says that it could not stop the parent's threads.
  check "$name: nothing on stderr" sh -c "! grep -v 'False leaks are possible' '$name.err'"
  "$STAVE" cat -q "$name.pftrace" >"$name.text" || true
  check "$name: the trace is sound" "$STAVE" validate -q "$name.pftrace"
}
has() { check "$1: $2" grep -qE -- "$3" "$1.text"; }
count() { check "$1: $2" test "$(grep -cE -- "$3" "$1.text")" = "$4"; }

scene all "$programs/nvtx_all"
check "levels of push and pop" grep -qx 'levels 0 1 1 0 1' all.out
has all "wide text" ' begin .*"wide ä→𝄞" cat="user_annotation"'
has all "marks" ' instant .*"plain mark"'
has all "wide marks" ' instant .*"wide mark"'
for i in 0 1 2; do count all "one address, name $i" "begin .*\"changing $i\"" 1; done
has all "a name longer than those that are remembered" 'begin .*"x{2999}"'
has all "category, colour, payload" '"coloured" .*\{domain="library A" category="forward" color="#76b900" payload=-5\}'
has all "unnamed category, transparent colour, double" '"half transparent" .*\{domain="library A" category=8 color="#80ff0000" payload=0.5\}'
has all "unsigned payload" '"unsigned" .*payload=18446744073709551615u'
has all "registered strings" 'begin .*"registered name"'
has all "wide registered strings" 'instant .*"wide registered"'
has all "a short struct has no message" ' instant #[0-9]+ cat="user_annotation" \{domain="library A"\}'
count all "crossing domains: begun again" '"crossing b" .*continued=true' 1
count all "crossing domains: each range once" '"crossing a"' 1
has all "thread names" 'thread .*name="main of nvtx_all"'
has all "names of threads that come later" 'thread .*name="ender"'
has all "ranges across threads" '"across threads" .*"started on thread"='
check "all: overlapping ranges are on different rows" test "$(grep -E '"(across threads|overlapping)"' all.text | awk '{ print $3 }' | sort -u | wc -l)" = 2
has all "a range's colour and float" '"range with payload" .*color="#0000ff" payload=1.5'
has all "ranges that never end" '"never ended" .*unfinished=true'
sample='payload=\{count=42 ratio=0.25 label="a label" mode="safe" flags="read\|write" weights=\[1.0 2.0 3.5\] shape=\{rows=4 columns=5\} fixed="fixed"\}'
count all "payload by schema, in every kind of event" "$sample" 4
count all "named by the schema" '"sample"' 4
has all "payload of a pop" ' end .*\{"end payload"=-9\}'
has all "payloads of start and end" '"sample" .*"started on thread"=[0-9]+ "end payload"=-9'
has all "a payload that is cut" '"sample" .*payload=\{count=42 ratio=0.25\}$|payload=\{count=42 ratio=0.25\}\}'
has all "an unknown schema is shown as bytes" '"unknown schema" .*payload="6279746573"'
has all "counters" 'counter .*name="library A: queue length"'
count all "counter samples" ' counter #[0-9]+ \{' 3
count all "locks of the user" '"acquire weights"' 2
has all "a lock that was not got" 'end .*failed=true'

scene wild "$programs/nvtx_wild"
count wild "payloads behind wild pointers" 'instant #[0-9]+ "wild"' 3

scene names "$programs/nvtx_limits" names
count names "more names than are remembered" 'begin .*"name [0-9]+"' 20000
has names "the last of them" '"name 19999"'
scene depth "$programs/nvtx_limits" depth
count depth "ranges deeper than the table" 'begin .*"deep"' 256
has depth "are counted" '"NVTX events not recorded" .*"too deep"=44'
has depth "and all is well after" 'begin .*"after"'
scene threads "$programs/nvtx_limits" threads
for i in 0 1 2 3; do count threads "worker $i" "begin .*\"worker $i\"" 2000; done
count threads "start and end from four threads" 'begin .*"shared"' 8000
count threads "marks from four threads" '"tick"' 8000
scene fork "$programs/nvtx_limits" fork
count fork "children" '"in the child"' 1
count fork "a range of the parent is recorded once" '"range of the parent"' 1
scene objects "$programs/nvtx_limits" objects "$programs/libnvtx_object.so"
has objects "the program" '"in the program"'
has objects "a shared object with its own NVTX" '"in the object"'

# Another tool behind us gets all calls with its own handles.
scene chain env STAVE_NEXT_NVTX_INJECTION64_PATH="$programs/libnvtx_object.so" "$programs/nvtx_limits" chain
cat >expected <<'END'
next: domain domain
next: string 0x11 text
next: push 0x11 0x22
next: pop 0x11
next: start 0x11 0x22
next: end 0x11 0x33
next: push plain
END
check "chain: the next tool's calls" diff chain.out expected
has chain "and ours" 'begin .*"text" .*domain="domain"'
run_any next_absent 0 env STAVE_OUT=x.pftrace STAVE_NEXT_NVTX_INJECTION64_PATH=/no/such.so "$programs/nvtx_limits" chain
check "a tool that is not there: one line, and the program runs" grep -q 'stave: nvtx: /no/such.so: cannot be loaded' next_absent.err

# Choosing domains; nothing recorded at all.
scene chosen env STAVE_NVTX_DOMAINS='-library*' "$programs/nvtx_all"
count chosen "domains left out" 'domain=' 0
has chosen "the others stay" '"plain mark"'
scene only env STAVE_NVTX_DOMAINS='library A' "$programs/nvtx_all"
count only "one domain only" '"plain mark"' 0
has only "that one" '"coloured"'
run_any off 0 "$programs/nvtx_all"
check "without a session nothing is written" test ! -s off.err
scene category env STAVE_CATEGORIES='other' "$programs/nvtx_all"
count category "switched off by category" ' (begin|instant) ' 0

# A program in Python, on the library that CUDA 13 ships for those who load it by name.
interop=$(ls /usr/local/cuda*/lib*/libnvtx3interop.so.1 /usr/local/cuda*/targets/*/lib/libnvtx3interop.so.1 2>/dev/null | head -n 1)
case $BUILD in *asan | *tsan) interop='' why="not under a sanitizer" ;; *) why="libnvtx3interop.so of CUDA 13 or python3 is absent" ;; esac
if [ -n "$interop" ] && command -v python3 >/dev/null; then
  cat >user.py <<'END'
import ctypes, sys
nvtx = ctypes.CDLL(sys.argv[1])
for step in range(3):
    nvtx.nvtxRangePushA(f"step {step}".encode())
    nvtx.nvtxRangePushA(b"forward")
    nvtx.nvtxRangePop()
    nvtx.nvtxRangePop()
END
  scene python python3 user.py "$interop"
  count python "ranges of a Python program" '"forward"' 3
  has python "with names made at run time" '"step 2"'
else skip python "$why"; fi
