#!/usr/bin/env bash
# stave report gpu: gaps.json was made with a pencil, and so were the figures: busy 440 of 685 us, gaps of 130 (the host waited), 100 (it loaded data),
# 10 and 5; the step of 1000 us is 350 + 50 + 40 of the device, 300 of the host alone and 260 of nothing.
. "$SRC/tests/harness/cli.sh"
gaps=$SRC/tests/cli/report_gpu/gaps.json

run text 0 "$STAVE" report gpu "$gaps"
run json 0 "$STAVE" report gpu "$gaps" --json
run csv 0 "$STAVE" report gpu "$gaps" --csv --by gap
run one_section 0 "$STAVE" report gpu "$gaps" --by kernel --top 1
run other_steps 0 "$STAVE" report gpu "$gaps" --by step --steps 'enumerate*' --csv
run no_gpu 3 "$STAVE" report gpu "$SRC/tests/golden/good/strace.out"
run bad_section 2 "$STAVE" report gpu "$gaps" --by file

# The same through Perfetto's format, and the sums are SQL's.
"$STAVE" convert -q "$gaps" -o gaps.pftrace
"$STAVE" report gpu gaps.pftrace --json >through.json 2>/dev/null
check through_perfetto diff "$SRC/tests/cli/report_gpu/json.out" through.json
"$STAVE" report gpu -q "$gaps" --csv --by kernel | tail -n +2 | cut -d, -f1,3,4 | sort >report.csv
"$STAVE" query -q "$gaps" --to csv "SELECT name, count(*), sum(dur) FROM slice WHERE category = 'kernel' GROUP BY name" | tail -n +2 | sort >sql.csv
check as_sql_sums diff report.csv sql.csv

# The picture: 40 us of copying and 350 of computing in the SVG, the same in PNG; nothing to draw is said.
"$STAVE" plot gpu "$gaps" -q -o gpu.svg
check picture grep -q 'busy 64 % of its span' gpu.svg
check picture_names_streams grep -q 'stream 20' gpu.svg
for kind in computing copying communicating; do check "streams_have_$kind" sh -c "grep -A1 '>$kind' gpu.svg | grep -q '^stream'"; done
if "$STAVE" plot gpu "$gaps" -q -o gpu.png 2>png.err; then check picture_as_png test "$(head -c 4 gpu.png | tail -c 3)" = PNG
else check says_why_there_is_no_png grep -q 'without cairo' png.err; fi
run no_work 1 "$STAVE" plot gpu "$SRC/tests/golden/good/strace.out" -o none.svg
check no_picture_of_nothing test ! -e none.svg

# The critical path of the step goes through the wait to the device, and from there by launch and stream to the loader.
run critical_path 0 "$STAVE" critical-path "$gaps"

# The host synchronises, loads data and launches: of the gap of 400 us, 1 us is of the first, 375 of the second. Kernels of expert parallelism are communication.
cat >loads.json <<'J'
[{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":0,"dur":5,"args":{"correlation":1}},
 {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":90,"args":{"device":0,"stream":7,"correlation":1}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":9,"tid":9,"ts":10,"dur":91},
 {"ph":"X","cat":"cpu_op","name":"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__","pid":9,"tid":9,"ts":105,"dur":375},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":485,"dur":5,"args":{"correlation":2}},
 {"ph":"X","cat":"kernel","name":"void deep_ep::internode::dispatch<false, 8>(int)","pid":0,"tid":7,"ts":500,"dur":600,"args":{"device":0,"stream":7,"correlation":2}}]
J
check a_gap_has_several_causes diff <("$STAVE" report gpu -q loads.json --csv --by gap | cut -d, -f2-4) - <<'G'
cause,gaps,total_ns
launch,1,14000
sync,1,1000
data,1,375000
device,1,10000
G
check expert_parallelism_is_communication sh -c '"$STAVE" explain -q --json loads.json | grep -q "\"cause\":\"exposed_comm\".*deep_ep"'
