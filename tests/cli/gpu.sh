#!/usr/bin/env bash
# Work of GPUs between formats: Kineto's dialect, TraceSmith's, Perfetto's GPU packets, graphs; and inputs that are not as they should be.
. "$SRC/tests/harness/cli.sh"
here=$SRC/tests/cli/gpu

# Kineto → Perfetto → Kineto: arguments in order, arrows by what they join, ns, metadata.
same() { python3 "$here/same_trace.py" "$@"; }
run_any kineto_direct 0 "$STAVE" convert -q "$here/kineto.json" --dialect kineto -o direct.json
check kineto_is_kept same "$here/kineto.json" direct.json
run_any to_perfetto 0 "$STAVE" convert -q "$here/kineto.json" -o k.pftrace
run_any and_back 0 "$STAVE" convert -q k.pftrace --dialect kineto -o back.json.gz
check kineto_survives_perfetto same "$here/kineto.json" back.json.gz
run_any kineto_by_name 0 "$STAVE" convert -q k.pftrace --to kineto -o named.json
check the_same_by_name same direct.json named.json
head_says() { # found by HTA's regular expression, before the events
  python3 - "$1" <<'END'
import re, sys
text = open(sys.argv[1]).read()
assert re.search(r'"rank":\s+(\d+)', text[:text.index('"traceEvents"')]).group(1) == "3"
assert '"note": "a:b \\"c\\":d"' in text
END
}
check rank_is_found head_says direct.json
cat >steps.txt <<'END'
# stave text 1
clock boottime
track #1 process uuid=0x1 pid=7 name="p"
track #2 thread uuid=0x2 parent=#1 pid=7 tid=8
1.000000000 begin #2 "train_step" cat="app" {step=4}
1.100000000 end #2
1.200000000 begin #2 "Step 5"
1.300000000 end #2
1.400000000 begin #2 "stepping stone"
1.500000000 end #2
END
run_any steps 0 "$STAVE" convert -q steps.txt --dialect kineto -o steps.json
check steps_are_called_as_pytorch_does sh -c 'grep -q "\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\"" steps.json && grep -q "ProfilerStep#5" steps.json && grep -q "stepping stone" steps.json'

# TraceSmith's example, byte for byte, with and without its features; and what its file gets wrong.
for what in input full basic sbt unfinished; do python3 "$here/seed_file.py" $what >"seed.$what"; done
run_any seed 0 "$STAVE" convert -q --from text seed.input --dialect tracesmith -o seed.json
check seed_byte_for_byte cmp seed.json seed.full
run_any seed_basic 0 "$STAVE" convert -q --from text seed.input --dialect tracesmith-basic -o basic.json
check seed_without_features cmp basic.json seed.basic
run_any seed_through_itself 0 "$STAVE" convert -q seed.json --dialect tracesmith -o again.json
check seed_reads_its_own cmp again.json seed.full
# The same six events from TraceSmith's binary trace; one that was not finished; ones that are cut or damaged anywhere.
run_any sbt 0 "$STAVE" convert -q seed.sbt --dialect tracesmith -o sbt.json
check sbt_byte_for_byte cmp sbt.json seed.full
check sbt_rows sh -c '"$0" cat -q seed.sbt | grep -q "gpu .*name=\"GPU 0 Model X\"" && "$0" cat -q seed.sbt | grep -q "process .*name=\"app\""' "$STAVE"
run_any sbt_unfinished 0 "$STAVE" convert seed.unfinished -o unfinished.pftrace
check unfinished_is_reported grep -q 'did not finish' "$TMP/sbt_unfinished.err"
check unfinished_events test "$("$STAVE" cat -q unfinished.pftrace 2>/dev/null | grep -cE ' (begin|instant) ')" = 6
survives() { # every cut and every changed byte: an answer, never a crash
  local n i code
  n=$(stat -c %s seed.sbt)
  for i in $(seq 1 37 "$n"); do
    head -c "$i" seed.sbt >cut.sbt
    { head -c "$i" seed.sbt; printf '\377'; tail -c +$((i + 2)) seed.sbt; } >changed.sbt
    for f in cut changed; do
      "$STAVE" convert -q --from sbt $f.sbt --to text -o - >/dev/null 2>&1; code=$?
      [ $code -le 5 ] || { echo "$f at $i: exit $code"; return 1; }
    done
  done
}
check sbt_survives_damage survives

# The graph: an edge along a stream, from each launch, and from what a wait waits for.
run_any graph 0 "$STAVE" convert -q "$here/kineto.json" -o k.dot
check graph_launch grep -qE '^  n[0-9]+ -> n[0-9]+ \[color=blue\];$' k.dot
check graph_labels grep -qF 'label="void gemm<float, \"x\\y\">(T*)\n100.123 us"' k.dot
cat >waits.txt <<'END'
# stave text 1
clock boottime
track #1 process uuid=0x1 pid=7 name="p"
track #2 gpu uuid=0x2 parent=#1 name="GPU 0"
track #3 stream uuid=0x3 parent=#2 name="Stream 1"
track #4 stream uuid=0x4 parent=#2 name="Stream 2"
1.000000000 slice #3 "a" cat="kernel" dur=0.000001000
1.000002000 slice #4 "wait" cat="cuda_sync" dur=0.000000100 {stream=2 wait_on_stream=1 cuda_sync_kind="Stream Wait Event"}
1.000003000 slice #4 "b" cat="kernel" dur=0.000001000
1.000005000 slice #3 "all" cat="cuda_sync" dur=0.000001000 {stream=1 cuda_sync_kind="Context Sync"}
1.000007000 slice #4 "c" cat="gpu_memcpy" dur=0.000001000
END
run_any graph_waits 0 "$STAVE" convert -q waits.txt --to dot -o waits.dot
check graph_edges sh -c 'grep -- "->" waits.dot | sort >edges; printf "  n0 -> n1 [color=red, style=dashed];\n  n0 -> n3;\n  n1 -> n2;\n  n2 -> n3 [color=red, style=dashed];\n  n2 -> n4;\n  n3 -> n4 [color=red, style=dashed];\n" | sort | diff - edges'
if command -v dot >/dev/null; then check graphviz_takes_it dot -Tsvg waits.dot -o waits.svg; else skip graphviz_takes_it "no Graphviz (graphviz)"; fi

cat >odd.txt <<'END'
# stave text 1
clock boottime
track #1 process uuid=0x1 pid=7 name="p"
track #2 thread uuid=0x2 parent=#1 pid=7 tid=8
1.000000001 begin #2 "a \"b\" \\c" cat="kernel" {correlation=1 device=1 stream=3 note="x\"y"}
1.000000123 end #2
2.000000000 instant #2 "middle" cat="gpu_event" {correlation=1 device=0 stream=3}
3.000000000 instant #2 "last" cat="kernel" {correlation=1 device=0 stream=3}
4.000000000 begin #2 "host" cat="app"
5.000000000 end #2
END
run_any seed_odd 0 "$STAVE" convert odd.txt --dialect tracesmith -o odd.json
is_right() {
  python3 - <<'END'
import json
from decimal import Decimal
events = json.load(open("odd.json"), parse_float=Decimal)["traceEvents"]
first = [e for e in events if e["ph"] == "X"][0]
assert first["name"] == 'a "b" \\c' and first["ts"] == Decimal("1000000.001") and first["dur"] == Decimal("0.122") and first["args"]["note"] == 'x"y', first
assert [(e["ph"], e["pid"]) for e in events if e.get("cat") == "flow"] == [("s", 1), ("t", 0), ("f", 0)], events
assert sorted((e["pid"], e["tid"]) for e in events if e["name"] == "thread_name") == [(0, 3), (1, 3)], events
END
}
check seed_where_tracesmith_is_wrong is_right
check unsupported_is_reported grep -q 'event that is not work of a device not represented' "$TMP/seed_odd.err"

# Rows by stream and by kind of work; arrows follow.
run_any rows_by_stream 0 "$STAVE" convert -q "$here/kineto.json" --gpu-tracks streams -o streams.pftrace
check rows_of_streams sh -c '"$0" cat -q streams.pftrace >s.txt && grep -q "gpu .*name=\"GPU 0\"" s.txt && grep -q "name=\"Context 1\"" s.txt && grep -q "stream .*name=\"Stream 7\"" s.txt' "$STAVE"
run_any rows_by_kind 0 "$STAVE" convert -q "$here/kineto.json" --gpu-tracks kind -o kinds.pftrace
check rows_of_kinds sh -c '"$0" cat -q kinds.pftrace >s.txt && for n in "GPU Compute" "GPU Memory Copy (H→D)" "GPU Synchronization" "GPU Other"; do grep -qF "name=\"$n\"" s.txt || exit 1; done' "$STAVE"
arrow() { "$STAVE" query -q --to csv "$1" "SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in WHERE b.category = 'kernel'" | tail -n 1 | grep -q '^cudaLaunchKernel,.*gemm'; }
check arrow_to_a_stream arrow streams.pftrace
check arrow_to_a_kind arrow kinds.pftrace
run_any rows_unknown 2 "$STAVE" convert -q "$here/kineto.json" --gpu-tracks colours -o x.pftrace
check rows_unknown_is_reported grep -q "'colours' is not streams or kind" rows_unknown.err
check rows_unknown_leaves_no_file test ! -e x.pftrace

# Perfetto's GPU packets, and back: stages with their names, arguments and arrows.
run_any gpu_packets 0 "$STAVE" convert -q "$here/kineto.json" --dialect gpu -o packets.pftrace
"$STAVE" cat -q packets.pftrace >packets.txt
check stages_are_read sh -c 'grep -c "render_stage_category=" packets.txt | grep -qx 2'
check stage_arguments grep -qE '"void gemm.*cat="kernel".*grid_size=\{x=8 y=16 z=5\} workgroup_size=\{x=128 y=1 z=1\}.*correlation=55 "registers per thread"=32 "shared memory"=1024' packets.txt
check stage_queue grep -q 'stream .*name="Context 1, Stream 7"' packets.txt
check arrow_to_a_stage arrow packets.pftrace
STAVE_FULL=block STAVE_SESSION_DIR=$TMP STAVE_OUT=$TMP/live.pftrace "$BUILD/tests/stress/gpu_feed" threads; check feed test $? = 0
run_any gpu_packets_live 0 "$STAVE" convert -q live.pftrace --dialect gpu -o live2.pftrace
check every_kernel_is_a_stage test "$("$STAVE" query -q --to csv live2.pftrace "SELECT count(*) FROM slice WHERE category = 'kernel'" | tail -n 1)" = 20000

# Counters right below a device are GPU counters, too; a unit that Perfetto cannot say keeps them as they were.
cat >counters.txt <<'TEXT'
# stave text 1
clock boottime
track #1 process uuid=0x11 pid=7
track #2 gpu uuid=0x12 parent=#1 name="GPU 1 Model"
track #3 counter uuid=0x13 parent=#2 name="memory in use" unit="bytes"
track #4 counter uuid=0x14 parent=#2 name="SM %" unit="%"
track #5 counter uuid=0x15 parent=#2 name="copy bandwidth" unit="GB/s"
track #6 process uuid=0x16 pid=8
track #7 gpu uuid=0x17 parent=#6 name="GPU 1 Model"
track #8 counter uuid=0x18 parent=#7 name="memory in use" unit="bytes"
0.000000500 counter #8 {77}
0.000001000 counter #3 {4096}
0.000002000 counter #4 {12.5}
0.000003000 counter #3 {8192}
0.000004000 counter #5 {3}
0.000005000 counter #4 {0.0}
TEXT
run_any gpu_counters 0 "$STAVE" convert -q counters.txt --dialect gpu -o counters.pftrace
run_any gpu_counters_back 0 "$STAVE" cat -q counters.pftrace
check counters_of_the_gpu sh -c 'grep -q "gpu .*name=.GPU 1" gpu_counters_back.out && grep -q "counter .*memory in use.*unit=.B" gpu_counters_back.out'
check counter_values sh -c '[ "$(grep -cE "^0.00000[1-5]000 counter #[0-9]+ \{(4096|12.5|8192|3|0.0)\}$" gpu_counters_back.out)" = 5 ]'
check counters_of_two_processes_stay_apart sh -c '[ "$(grep -c "track .*memory in use" gpu_counters_back.out)" = 2 ]'
check counter_without_a_measure grep -q 'unit="GB/s"' gpu_counters_back.out

# What is wrong is reported, and what is there is kept.
for to in "--dialect kineto -o m.json" "-o m.pftrace" "--to csv -o m.csv" "-o m.plain.json"; do
  # shellcheck disable=SC2086
  run_any "malformed ${to##* }" 0 "$STAVE" convert "$here/malformed.json" $to
done
check negative_durations_are_reported grep -q 'negative duration, taken as 0' "$TMP/malformed m.json.err"
check dangling_arrows_are_reported grep -q 'flow that never began' "$TMP/malformed m.json.err"
check nothing_is_dropped test "$("$STAVE" convert -q "$here/malformed.json" --to csv -o - 2>/dev/null | grep -c ',slice,')" = 7
check crossing_kernels_get_lanes test "$("$STAVE" cat -q m.pftrace | grep -c ' lane ')" = 2
python3 -c 'import json; json.load(open("m.json"))' ; check valid_json test $? = 0
run unknown_dialect 2 "$STAVE" convert -q "$here/kineto.json" --dialect klingon -o x.json
