#!/usr/bin/env bash
# stave info of a large recording: estimates that say so, and all of it where an estimate would hide something.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3 here"

# 30 recordings of different sizes one after the other are one trace with 30 resync points.
cat >make.py <<'P'
import json
for k in range(30):
    n = 200 + 37 * k % 101
    json.dump([{"ph": "X", "name": f"op{i % 7}", "cat": "nn", "pid": 1, "tid": 1 + i % 3, "ts": 10000 * k + 10 * i, "dur": 4} for i in range(n)],
              open(f"piece{k}.json", "w"))
P
python3 make.py
for k in $(seq 0 29); do
  "$STAVE" convert -q "piece$k.json" -o piece.pftrace
  cat piece.pftrace >>all.pftrace
done

"$STAVE" info --json --exact all.pftrace >exact
"$STAVE" info --json --sample-above 50K all.pftrace >sample
"$STAVE" info --json all.pftrace >small
"$STAVE" info --sample-above 50K all.pftrace >sample.txt
cat >judge.py <<'P'
import json, sys
exact, sample = json.load(open("exact")), json.load(open("sample"))
assert not exact["is_estimate"] and sample["is_estimate"]
assert sample["sampled_bytes"] < sample["size_bytes"] / 2 and sample["size_bytes"] == exact["size_bytes"]
for key in ("events", "slices"):
    assert abs(sample[key] / exact[key] - 1) < 0.2, (key, sample[key], exact[key])
assert (sample["first_ns"], sample["last_ns"]) == (exact["first_ns"], exact["last_ns"])
assert [t["tid"] for t in sample["tracks"]] == [t["tid"] for t in exact["tracks"]]
P
check an_estimate_is_near_and_says_so python3 judge.py
check a_small_file_is_read_as_a_whole cmp exact small
check the_text_marks_estimates grep -q '^slices  *about [0-9,]*$' sample.txt
check the_text_says_what_was_read grep -q '^estimated  *from .* in 10 places; .*--exact' sample.txt

# Damage in the first piece: what follows is read as well, and its place is that in the file.
cp all.pftrace bad.pftrace
printf '\377\377\377\377\377\377\377\377' | dd of=bad.pftrace bs=1 seek=600 conv=notrunc status=none
"$STAVE" info --json --sample-above 50K bad.pftrace >got 2>/dev/null
"$STAVE" info --json --exact bad.pftrace >want 2>/dev/null
check damage_is_there grep -q '"severity":"damage"' want
check damage_in_the_sample_is_not_estimated cmp want got

# Chrome JSON is read in pieces of whole events, also where arguments look like events, texts like their ends, and begins and ends are apart.
cat >events.py <<'P'
import json
def event(i):
    e = {"name": "}, {\"ph\": \"X\"}, {" if i % 5 == 0 else f"op{i % 7}", "cat": "rare" if i == 3 else "nn", "pid": 1, "tid": 1 + i % 3, "ts": 10 * i,
         "args": {"list": [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}], "text": "x" * (i % 90)}}
    return {**e, "ph": "X", "dur": 4} if i % 2 else {**e, "ph": "B" if i % 4 else "E"}
events = [event(i) for i in range(20000)]
json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, open("events.json", "w"), indent=1)
json.dump(events, open("list.json", "w"))
json.dump({"traceEvents": events, "stackFrames": {str(i): {"name": "f" * 50} for i in range(20000)}}, open("tail.json", "w"))
json.dump({"traceEvents": [{**events[1], "args": {"deep": [events[1]] * 20000}}] * 2}, open("inside.json", "w"))
P
python3 events.py
cat >judge_json.py <<'P'
import json, sys
exact, sample = json.load(open("exact")), json.load(open("sample"))
assert not exact["is_estimate"] and sample["is_estimate"] and sample["sampled"] == "pieces between events"
assert sample["sampled_bytes"] < sample["size_bytes"] / 2 and sample["findings"] == []
for key in ("events", "slices", "arguments"):
    assert abs(sample[key] / exact[key] - 1) < 0.1, (key, sample[key], exact[key])
assert sample["last_ns"] - sample["first_ns"] <= exact["last_ns"] - exact["first_ns"]
assert sample["categories"]["rare"] == 1
P
for file in events list; do
  "$STAVE" info --json --exact $file.json >exact 2>/dev/null
  "$STAVE" info --json --sample-above 1K $file.json >sample
  check "$file.json is estimated" python3 judge_json.py
done
"$STAVE" info --sample-above 1K events.json >sample.txt
check the_span_is_a_bound grep -q '^span  *at least ' sample.txt
check few_are_not_multiplied grep -q '^at least 1  *rare$' sample.txt
"$STAVE" info --json events.json >small 2>/dev/null
"$STAVE" info --json --exact events.json >exact 2>/dev/null
check small_json_is_read_as_a_whole cmp exact small
for file in tail inside; do # much after the events; events that are none
  "$STAVE" info --json --sample-above 1K $file.json >got 2>/dev/null
  check "$file.json is read as a whole" grep -q '"is_estimate":false' got
done
sed '0,/"ph": "X"/s//"ph" "X"/' list.json >bad.json
"$STAVE" info --json --sample-above 1K bad.json >got 2>/dev/null
check damage_in_json_is_not_estimated grep -q '"is_estimate":false' got

# A Perfetto file by others and a compressed one: from their beginning.
cat >foreign.py <<'P'
import gzip
packet = bytes.fromhex("0a13" "40a08d06" "5001" "6801" "5a09" "4803" "58d209" "b20101" "78")
packet = b"\x0a" + bytes([len(packet) - 2]) + packet[2:]
open("foreign.pftrace", "wb").write(packet * (60_000_000 // len(packet)))
line = '{"ph":"X","name":"op","cat":"nn","pid":1,"tid":1,"ts":%d,"dur":4},\n'
text = "".join(line % (10000 + i) for i in range(10000))
gzip.open("packed.json.gz", "wt", compresslevel=1).write("[" + text * 100 + line[:-2] % 1 + "]")
P
python3 foreign.py
for file in foreign.pftrace packed.json.gz; do
  "$STAVE" info --json --exact $file >exact 2>/dev/null
  "$STAVE" info --json --sample-above 4M $file >sample 2>/dev/null
  check "$file is estimated from its beginning" python3 -c '
import json
exact, sample = json.load(open("exact")), json.load(open("sample"))
assert not exact["is_estimate"] and sample["is_estimate"] and sample["sampled"] == "beginning", sample
assert exact["events"] > 100000 and abs(sample["events"] / exact["events"] - 1) < 0.1, (sample["events"], exact["events"])'
done
"$STAVE" info --sample-above 4M foreign.pftrace >sample.txt
check it_says_how grep -q '^estimated  *from the first 4[0-9.]* MiB, as if the rest were like them; .*--exact' sample.txt
run_any both_ways 2 "$STAVE" info --exact --sample-above 1K all.pftrace
