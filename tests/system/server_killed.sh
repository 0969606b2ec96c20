#!/usr/bin/env bash
# stave-server, killed and started again: one run has one number, its plots included. And two signals in a row: what is listed is there.
# shellcheck disable=SC2016 # inner shells have their own
. "$SRC/tests/harness/cli.sh"
server=$BUILD/stave-server
[ -x "$server" ] || skip_all "no stave-server: StarPU, libmicrohttpd, OpenBLAS or OpenCL was absent when it was built"
export STARPU_HOME=$TMP STARPU_WORKERS_NOBIND=1 HWLOC_COMPONENTS=-pci STAVE_SESSION_DIR=$TMP/sessions
mkdir -m 700 "$STAVE_SESSION_DIR"
cp "$SRC"/examples/server/* .
printf '%s\n' 'name: mlp' 'model: mlp.safetensors' 'workers: 1' 'trace_enabled: true' "trace_output: $TMP/out" >mlp.yml
start() {
  : >server.err
  "$server" -c mlp.yml --address 127.0.0.1:0 --grpc off 2>server.err & pid=$!
  until_true 'grep -q "^listening" server.err || ! kill -0 $pid'
  url=http://127.0.0.1:$(sed -nE 's/^listening on .*:([0-9]+) .*/\1/p' server.err)
}
load() { run_any "load_$1" 0 timeout 120 "$BUILD/stave-load" -u "$url" -n "$1" -c 2; }
requests() { grep -c '"name":"request_enqueued"' "$1"; } # of a .json

start; load 30; kill -INT $pid; wait $pid
start; load 40
until_true '[ "$(requests out/batching_trace.json)" -ge 40 ] && [ "$(wc -l <out/batching_trace_summary.csv)" -gt 1 ]'
check killed_numbers_before test -e out/batching_trace.1.json -a -e out/batching_trace.1.pftrace -a ! -e out/batching_trace.2.json
kill -KILL $pid; wait $pid 2>/dev/null
check killed_left test -s out/batching_trace.pftrace.part -a -s out/batching_trace.pftrace.session
start; cp server.err restarted.err; load 50; kill -INT $pid; wait $pid; check ends test $? = 0
check restarted_says grep -q 'recovered the trace of a server that was killed: .*/out/batching_trace.pftrace' restarted.err
for n in 1 2; do for f in batching_trace.$n.json batching_trace_summary.$n.csv batching_trace.$n.pftrace; do check "there_$f" test -s "out/$f"; done; done
check nothing_is_left sh -c '! ls out | grep "part\|session\|recovered\|\.3\."'
# The number of a run is the same in all its files: its requests are (those of the killed one may be ahead in the recovered trace).
of() { "$STAVE" report batch "$1" --json 2>/dev/null | sed -nE 's/.*"summary":\{"requests":([0-9]+),.*/\1/p'; }
for run in .1:30 .2:40 :50; do
  for suffix in pftrace json; do check "run$run.$suffix" test "$(of "out/batching_trace${run%:*}.$suffix")" = "${run#*:}"; done
done
if [ -e out/batching_trace_plots.png ]; then
  check plots_have_numbers test -s out/batching_trace_plots.1.png -a -s out/batching_trace_plots.2.png
else skip plots_have_numbers "no stave plot batch in this build"; fi

# ---- two signals in a row: what is listed exists, or recovery is named ----
for signal in INT TERM; do
  start; load 5
  kill -$signal $pid; until_true 'grep -q "^stopping" server.err'
  kill -$signal $pid; wait $pid 2>/dev/null
  sed -nE 's/^(trace:|      ) +(\/.*)$/\2/p' server.err >listed
  check "twice_${signal}_listed" sh -c 'while read -r f; do [ -s "$f" ] || { echo "$f"; exit 1; }; done <listed'
  check "twice_${signal}_whole" sh -c '[ -s out/batching_trace.pftrace ] || grep -q "stave recover .*/out/batching_trace.pftrace" server.err'
done
