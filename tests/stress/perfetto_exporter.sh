#!/usr/bin/env bash
# TraceSmith's exporter (stave/perfetto_exporter.hpp): its example gives TraceSmith's bytes, its odd cases are right where TraceSmith's are
# not, and every row of docs/porting.md about it is code that was compiled.
# shellcheck disable=SC2016 # $ in single quotes is for the inner shell
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/porting.sh"

mkdir example odd
run_any example 0 "$BUILD/examples/perfetto_enhanced" example
python3 "$SRC/tests/cli/gpu/seed_file.py" full >full.json
python3 "$SRC/tests/cli/gpu/seed_file.py" basic >basic.json
check json_byte_for_byte cmp full.json example/perfetto_enhanced_trace.json
check basic_byte_for_byte cmp basic.json example/basic.json
run_any back 0 "$STAVE" convert -q example/perfetto_enhanced_trace.pftrace --dialect tracesmith -o back.json
check pftrace_holds_the_same cmp full.json back.json
smaller() { awk '/times smaller/ { n = $(NF - 2) } END { exit !(n >= 3) }' example.out; }
check pftrace_is_smaller smaller
check metadata_json python3 -c 'import json; assert json.load(open("example/named.json"))["otherData"] == {"version": "Stave", "process_name": "vector \"add\"", "run": "7"}'
run_any named 0 "$STAVE" cat -q example/named.pftrace
check metadata_pftrace grep -q 'meta "run" "7"' named.out
check process_above_the_device grep -qE 'track #[0-9]+ gpu .*parent=#[0-9]+ name="GPU Device 0"' named.out
check no_tracks_no_flows sh -c '! grep -qE "track_name|@flow|@correlation" named.out'
run_any streamed 0 "$STAVE" query -q example/stream.pftrace 'select count(*) from slice'
check all_events_of_a_stream grep -qx '600' streamed.out
run_any report 0 "$STAVE" report gpu -q example/large.pftrace
check the_analysis_knows_the_work grep -qE 'kernels, copies, fills +5,001$' report.out
check nothing_is_left sh -c '! ls example | grep -q part'

run_any odd 0 "$BUILD/tests/stress/perfetto_exporter" odd
cat >odd.py <<'P'
import json, os
def load(name): return [e for e in json.load(open(f"odd/{name}.json"))["traceEvents"]]
events = load("odd")
first = next(e for e in events if e["name"].startswith("gemm"))
assert first["name"] == "gemm<\"a\\b\">\n" and first["ts"] == 1.001 and first["dur"] == 0.5, first
assert list(first["args"].items()) == [("track_name", "GPU Compute"), ("event_type", "1"), ("device_id", 0), ("stream_id", 3), ("thread_id", 77),
    ("flow_id", 9), ("flow_type", 1), ("flow_start", True), ("note", "quoted \"text\"")], first
rows = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
assert rows == {(0, 3), (1, 3), (0, 0)}, rows
assert [(e["args"]["event_type"], e["ph"], e["cat"]) for e in events if e["ph"] != "M"][2:] == [("0", "i", "other"), ("16", "i", "memory")]
assert events[-1]["args"]["size_bytes"] == 64
assert open("odd/odd").read() == open("odd/odd.json").read()
assert not any("track_name" in e.get("args", {}) for e in load("no_tracks"))
counters = [e for e in load("counters") if e["ph"] == "C"]
assert [(e["name"], e["ts"], e["pid"], e["args"]) for e in counters] == [("SM Occupancy", 2, 9999, {"SM Occupancy": 71.5})], counters
assert load("empty") == [] and len(load("stream")) > 0
assert not [name for name in os.listdir("odd") if "late" in name or "part" in name], os.listdir("odd")
P
check odd_json python3 odd.py
run_any odd_cat 0 "$STAVE" cat -q odd/odd.pftrace
check stack_and_data grep -q 'stack=\["0xabc"\] custom_data="01ff"' odd_cat.out
check flow_info_is_an_arrow sh -c '[ "$(grep -c "@flow:0x5453000000000009" odd_cat.out)" = 2 ]'
run_any odd_gz 0 "$STAVE" cat -q odd/odd.pftrace.gz
check compressed cmp odd_cat.out odd_gz.out
run_any live 0 "$STAVE" query -q odd/stream.pftrace 'select count(*), min(ts), max(ts) from instant'
check late_event_is_not_there grep -qE '^3[^0-9]+1000[^0-9]+2000$' live.out

# Each row of the table is code that was compiled above, or a command that runs.
python3 "$SRC/tests/cli/gpu/seed_file.py" sbt >trace.sbt
cat "$SRC/tests/stress/perfetto_exporter.cpp" "$SRC/tests/stress/perfetto_session.cpp" >both.cpp
check porting_rows porting_rows "From TraceSmith" both.cpp 16

# ---- sessions and the protobuf exporter ----
mkdir session
check session_works sh -c "cd session && '$BUILD/tests/stress/perfetto_session'"
rows() { "$STAVE" query -q "session/$1" "select (select count(*) from slice where name like 'kernel%') as n, (select count(*) from counter) as c" | tail -n 1; }
check session_as_protobuf test "$(rows realtime.perfetto-trace)" = 150,150
check session_as_json test "$(rows realtime.json)" = 150,150
check counters_can_be_left_out test "$(rows none.json)" = 150,0
check a_stop_writes test "$(rows at_stop.pftrace)" = 50,50
