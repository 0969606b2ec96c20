#!/usr/bin/env bash
# Every example runs, and its trace says what the program did; so do the programs in the documents.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
say() { if [ "$1" = 0 ]; then echo "ok examples: $2"; else echo "not ok examples: $2: ${3:-}"; fi; }
# run NAME: its text form in NAME.txt
run() { rm -f "$1.pftrace"; STAVE_OUT=$1.pftrace "$BUILD/examples/$1" >"$1.out" 2>"$1.err" && [ ! -s "$1.err" ] && "$STAVE" cat -q "$1.pftrace" >"$1.txt"; }
# has NAME TEXT…: each text is in a line of the trace
has() { local name=$1 text; shift; for text; do grep -qF -- "$text" "$name.txt" || { echo "$text"; return 1; }; done; }

run gpu_events; say $? "gpu_events runs"
# Whole files, field by field, as JSON and through the Perfetto format.
for suffix in json pftrace; do
  rm -f gpu_events.*
  STAVE_OUT=gpu_events.$suffix "$BUILD/examples/gpu_events" && "$STAVE" convert -q gpu_events.$suffix --dialect tracesmith -o gpu_events.2.json && python3 "$SRC/tests/stress/seeds.py" gpu_events gpu_events.2.json >why 2>&1
  say $? "gpu_events: every field, as .$suffix" "$(tail -n 3 why)"
done
for name in layers complete_usage; do
  STAVE_OUT=$name.json "$BUILD/examples/$name" && python3 "$SRC/tests/stress/seeds.py" $name $name.json >why 2>&1; say $? "$name: every field, as JSON" "$(tail -n 3 why)"
  STAVE_OUT=$name.pftrace "$BUILD/examples/$name" && "$STAVE" convert -q $name.pftrace -o $name.2.json && python3 "$SRC/tests/stress/seeds.py" $name $name.2.json >why 2>&1
  say $? "$name: every field, as .pftrace" "$(tail -n 3 why)"
done

run layers; say $? "layers runs"
missing=$(has layers 'name="Layer 1"' '"rms_norm" cat="norm"' '"rope" cat="attn"'); say $? "layers has every field" "$missing"
# Durations of 1 ms, 0.5 ms and 0.123 ms, to the nanosecond.
awk '/ begin / { b[$3] = $1; stack[$3, ++n[$3]] = $1 } / end / { printf "%.0f\n", ($1 - stack[$3, n[$3]--]) * 1e9 }' layers.txt | sort -n | tr '\n' ' ' >durations
[ "$(cat durations)" = "123000 500000 1000000 " ]; say $? "layers: durations" "$(cat durations)"

run complete_usage; say $? "complete_usage runs"
missing=$(has complete_usage 'name="Compute"' '"matrix_ops" cat="app" {size=1024}' '"multiply" cat="function" {a=10 b=20}' \
  '"checkpoint" cat="app" {result=200}' 'name="operations"' 'name="Die:0"' 'name="Cluster:1"' 'name="power" unit="W"'); say $? "complete_usage has every field" "$missing"
[ "$(grep -cE '"(data_ready|process)".*@flow' complete_usage.txt)" = 2 ]; say $? "complete_usage: one arrow"

run pipeline; say $? "pipeline runs"
[ "$(grep -c '"produce"' pipeline.txt)" = 20 ] && [ "$(grep -c '"consume"' pipeline.txt)" = 20 ] && has pipeline 'what="unlucky"' 'by="first"'
say $? "pipeline: twenty items, one exception"

if [ -x "$BUILD/examples/training" ]; then run training; say $? "training runs"; fi
# Every program in the documents compiles, runs and leaves a trace.
docs() {
  local n=0 source out doc lang
  for doc in docs/tutorial.md docs/sdk.md docs/gpu.md; do
    awk -v to="doc-${doc//[^a-z]/}" '/^```(c|cpp)$/ { n++; ext = substr($0, 4); next } /^```/ { ext = "" } ext != "" { print > (to "-" n "." ext) }' "$SRC/$doc"
  done
  for source in doc-*.c doc-*.cpp; do
    n=$((n + 1)) lang="${CC:-cc} -std=c17"
    [ "${source##*.}" = c ] || lang="${CXX:-c++} -std=c++17"
    grep -q 'int main' "$source" || echo 'int main(void) { attention(12, 128); return 0; }' >>"$source"
    # shellcheck disable=SC2086
    $lang -Wall -Wextra -Werror ${sanitize:-} -I"$SRC/include" "$source" -o "${source%.*}" -L"$BUILD" -lstave-gpu -lstave -lpthread >cc.log 2>&1 || { say 1 "$source compiles" "$(head -n 5 cc.log)"; continue; }
    out=${source%.*}.pftrace
    if grep -q window.pftrace "$source"; then out=window.pftrace; "./${source%.*}" >doc.out 2>&1; else STAVE_OUT=$out "./${source%.*}" >doc.out 2>&1; fi
    [ $? = 0 ] && [ ! -s doc.out ] && [ "$("$STAVE" cat -q "$out" | grep -cE ' (begin|instant|counter) ')" -gt 0 ]; say $? "$source compiles, runs and traces" "$(cat doc.out)"
  done
  [ $n -ge 7 ]; say $? "there are programs in the documents" "$n"
}
case $BUILD in *asan) sanitize=-fsanitize=address,undefined ;; *tsan) sanitize=-fsanitize=thread ;; esac
LD_LIBRARY_PATH=$BUILD docs

mkdir empty; (cd empty && "$BUILD/examples/layers" >../out 2>&1); [ ! -s out ] && [ -z "$(ls empty)" ]; say $? "without STAVE_OUT nothing happens"
rm -f layers.json
STAVE_OUT=layers.json "$BUILD/examples/layers" && python3 -c '
import json
e = [x for x in json.load(open("layers.json"))["traceEvents"] if x.get("cat") in ("norm", "attn")]
assert [(x["name"], x["ph"], round(x["dur"])) for x in e] == [("rms_norm", "X", 1000), ("rope", "X", 500), ("rms_norm", "X", 123)], e
'; say $? "layers as Chrome JSON"
