#!/usr/bin/env bash
# GPU work that others recorded, through the commands: exports of Nsight Systems as files, compressed and from a pipe; ONNX Runtime's profile.
. "$SRC/tests/harness/cli.sh"
export_=$SRC/tests/fuzz/corpus/nsys_read/newer.sqlite
cp "$export_" "odd name?#%.sqlite"
if ! "$STAVE" info "$export_" >info.out 2>info.err; then
  if grep -q 'built without SQLite' info.err; then skip_all "built without SQLite"; fi
fi
check "recognised by content" grep -q 'format *nsys' info.out
"$STAVE" cat -q "$export_" >plain
gzip -c "$export_" >export.gz
run_any gzip 0 "$STAVE" cat -q export.gz
check "a compressed export reads the same" cmp plain gzip.out
check "from a pipe, too" sh -c "cat '$export_' | '$STAVE' cat -q - | cmp - plain"
check "a name with odd characters" sh -c "'$STAVE' cat -q 'odd name?#%.sqlite' | cmp - plain"
run_any to_perfetto 0 "$STAVE" convert -q "$export_" -o nsys.pftrace
run_any report 0 "$STAVE" report gpu -q nsys.pftrace
check "kernels, copies and fills are counted" grep -qE 'kernels, copies, fills +3$' report.out
check "the kernel by name" grep -q 'gemm<float>' report.out
check "the call that launched it" grep -qE 'work without a launch +1$' report.out
run_any not_nsys 3 "$STAVE" info "$SRC/tests/fuzz/corpus/nsys_read/cut.sqlite"
"$STAVE" export -q nsys.pftrace --to sqlite -o own.sqlite 2>/dev/null && {
  "$STAVE" info own.sqlite >own.out 2>own.err
  check "another database is refused with a hint" grep -q 'no export of Nsight Systems.*nsys export' own.err
}

cat >ort.json <<'END'
[
{"cat" : "Session","pid" :42,"tid" :42,"dur" :1843,"ts" :5,"ph" : "X","name" :"model_loading_uri","args" : {}},
{"cat" : "Node","pid" :42,"tid" :42,"dur" :120,"ts" :2000,"ph" : "X","name" :"MatMul_3_kernel_time","args" : {"op_name" : "MatMul","provider" : "CUDAExecutionProvider"}},
{"cat" : "Kernel","pid" :42,"tid" :42,"dur" :80,"ts" :2050,"ph" : "X","name" :"sgemm_128x64","args" : {"stream" : "7","op_name" : "MatMul"}}
]
END
run_any ort 0 "$STAVE" report gpu -q ort.json
check "kernels of ONNX Runtime" grep -qE 'kernels, copies, fills +1$' ort.out
check "by name" grep -q sgemm_128x64 ort.out
