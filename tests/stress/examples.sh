#!/usr/bin/env bash
# Every example runs, and its trace says what the program did; the examples of docs/sdk.md compile.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
say() { if [ "$1" = 0 ]; then echo "ok examples: $2"; else echo "not ok examples: $2: ${3:-}"; fi; }
# run NAME: its text form in NAME.txt
run() { STAVE_OUT=$1.pftrace "$BUILD/examples/$1" >"$1.out" 2>"$1.err" && [ ! -s "$1.err" ] && "$STAVE" cat -q "$1.pftrace" >"$1.txt"; }
# has NAME TEXT…: each text is in a line of the trace
has() { local name=$1 text; shift; for text; do grep -qF -- "$text" "$name.txt" || { echo "$text"; return 1; }; done; }

run gpu_events; say $? "gpu_events runs"
missing=$(has gpu_events '"GPU Device 0"' '"GPU Device 1"' 'parent=#1 name="Stream 1"' '"cudaMemcpyHostToDevice" cat="memory"' \
  '"vector_add" cat="kernel"' 'grid_dim=[256 1 1] block_dim=[256 1 1] registers_per_thread=32' 'size_bytes=1048576 src_address=0x7fff00000000 dst_address=0x100000000' \
  '"cudaStreamSynchronize" cat="sync"' 'correlation_id=3'); say $? "gpu_events has every field" "$missing"
[ "$(grep -c begin gpu_events.txt)" = 6 ] && [ "$(grep -o '@flow:[0-9a-fx]*' gpu_events.txt | sort | uniq -c | awk '$1 == 2' | wc -l)" = 3 ]
say $? "gpu_events: six slices, three arrows"

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
sed -n '/^```c$/,/^```$/p' "$SRC/docs/sdk.md" | grep -v '```' | sed 's/…/(void)0;/' >doc.c
${CC:-cc} -std=c17 -Wall -Wextra -Werror -I"$SRC/include" -fsyntax-only doc.c; say $? "docs/sdk.md compiles"

"$BUILD/examples/layers" >out 2>&1; [ ! -s out ] && [ "$(ls ./*.json 2>/dev/null | wc -l)" = 0 ]; say $? "without STAVE_OUT nothing happens"
STAVE_OUT=layers.json "$BUILD/examples/layers" && python3 -c '
import json
e = [x for x in json.load(open("layers.json"))["traceEvents"] if x.get("cat") in ("norm", "attn")]
assert [(x["name"], x["ph"], round(x["dur"])) for x in e] == [("rms_norm", "X", 1000), ("rope", "X", 500), ("rms_norm", "X", 123)], e
'; say $? "layers as Chrome JSON"
