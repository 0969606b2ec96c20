#!/usr/bin/env bash
# stave report ops: torch.json was made with a pencil: two modules, forward, backward on another thread, optimizer; a kernel of JAX; work of MTIA, HIP and XPU.
. "$SRC/tests/harness/cli.sh"
torch=$SRC/tests/cli/report_ops/torch.json

run text 0 "$STAVE" report ops "$torch"
run json 0 "$STAVE" report ops "$torch" --json
run csv 0 "$STAVE" report ops "$torch" --csv --by kernel
run none 3 "$STAVE" report ops "$SRC/tests/golden/good/strace.out"
run bad_section 2 "$STAVE" report ops "$torch" --by stream

# The sums are those of report gpu, and of SQL.
sum() { "$STAVE" report "$1" -q "$torch" --json --by "$2" | grep -o "\"$3\": *[0-9]*" | awk -F: '{ s += $2 } END { print s }'; }
sum gpu kernel total_ns >gpu
sum ops operator self_ns >operators
sum ops phase total_ns >phases
"$STAVE" query -q "$torch" --to csv "select sum(dur) from gpu_work where kind = 'kernel'" | tail -n +2 >sql
check kernels_as_report_gpu diff gpu operators
check kernels_as_phases diff gpu phases
check kernels_as_sql diff gpu sql

# The same through Perfetto's format.
"$STAVE" convert -q "$torch" -o torch.pftrace
"$STAVE" report ops -q torch.pftrace --json >through.json 2>/dev/null
check through_perfetto diff "$SRC/tests/cli/report_ops/json.out" through.json
