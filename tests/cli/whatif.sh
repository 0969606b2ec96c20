#!/usr/bin/env bash
# stave whatif: jobs whose slowdowns the generator computes by its own rules, jobs that cannot be replayed, and (with STAVE_DATA) the public timelines of ByteDance-Seed/StragglerAnalysis.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3 here"
job() { python3 "$SRC/tests/harness/job_traces.py" "$@"; }

# NAME CAUSE HOW…: what it must say of a job.
while read -r name cause how; do
  # shellcheck disable=SC2086 # words
  job ${how% @*} >"$name.truth"
  run_any "$name" 0 "$STAVE" whatif -q --json "${how#*@}"
  check "${name}_is_told" python3 "$SRC/tests/cli/whatif/judge.py" "$name.truth" "$name.out" "${cause//_/ }"
done <<'JOBS'
worker DP_rank_0,_stage_0 pipeline worker.json --slow 0,0,2.5 @worker.json
last_stage stage_3 pipeline stage.json --slow=-1,3,1.4 @stage.json
dp_rank DP_rank_2 pipeline dp.json --slow 2,-1,1.5 @dp.json
even none pipeline even.json @even.json
no_stages DP_rank_1 pipeline flat.json --pp 1 --dp 4 --slow 1,0,1.5 @flat.json
sleeper rank_2 ranks sleep.txt --plant sleep --steps 40 @sleep.txt
node node1 ranks node.txt --plant node --ranks 8 --steps 40 @node.txt
node_no_clocks node1 ranks clocks.txt --plant node --ranks 8 --steps 40 --clocks @clocks.txt
equal none ranks equal.txt --ranks 8 --steps 40 @equal.txt
JOBS

# For people; the same through the cached index and as one merged trace.
run text 0 "$STAVE" whatif -q sleep.txt
run as_median 0 "$STAVE" whatif -q --as-median rank worker.json
run_any median_json 0 "$STAVE" whatif -q --json --as-median rank sleep.txt
check median_of_ranks python3 -c '
import json
a = json.load(open("median_json.out"))
assert a["as_median"]["by"] == "rank" and 22e6 < a["as_median"]["replayed_ns"] < 25e6, a["as_median"]'
"$STAVE" convert -q node.txt -o node.pftrace
run_any converted 0 "$STAVE" whatif -q --json node.pftrace
check converted_is_told python3 "$SRC/tests/cli/whatif/judge.py" node.truth converted.out node1

# PyTorch's profiles, one for each rank, with clocks that nothing relates: rank 2 computes longer.
python3 "$SRC/tests/cli/report_comm/kineto.py"
run_any kineto 0 "$STAVE" whatif -q --json new.own.rank?.json
check kineto_names_rank_2 python3 -c 'import json; a = json.load(open("kineto.out")); assert a["culprits"][0]["name"] == "rank 2" and len(a["culprits"]) == 1 and abs(a["error"]) < 0.01, a'
run_any kineto_equal 0 "$STAVE" whatif -q --json equal.own.rank?.json
check kineto_equal_names_nobody python3 -c 'import json; assert not json.load(open("kineto_equal.out"))["culprits"]'

# The same with all-reduces of buckets beside the backward pass, which the generator replays by its own rules.
for factor in 1.4 2 1; do
  job kineto "by$factor" --slow "1,$factor" --steps 20 >"by$factor.truth"
  run_any "beside_$factor" 0 "$STAVE" whatif -q --assume --json "by$factor".rank?.json
  check "beside_${factor}_is_told" python3 "$SRC/tests/cli/whatif/judge.py" "by$factor.truth" "beside_$factor.out" any
done
check beside_names_rank_1 python3 -c 'import json; assert [c["name"] for c in json.load(open("beside_1.4.out"))["culprits"]] == ["rank 1"]'
check beside_even_names_nobody python3 -c 'import json; assert not json.load(open("beside_1.out"))["culprits"]'

# A thousand ranks: a whole host is slow, the 64 slowest parts are listed.
job ranks many.txt --ranks 1000 --steps 10 --plant node --per-host 8 >many.truth
run_any many 0 "$STAVE" whatif -q --json many.txt
check many_names_the_host python3 -c 'import json; a = json.load(open("many.out")); assert a["culprits"][0]["name"] == "node1" and a["ranks"] == 1000 and len(a["by"]["rank"]) == 64, a["culprits"]'

# Steps without markers: the argument tells them, for each process, with their own numbers.
run_any steps 0 "$STAVE" steps -q --to csv worker.json
check steps_of_the_argument python3 -c '
import csv, json
rows, truth = list(csv.DictReader(open("steps.out"))), json.load(open("worker.truth"))
assert len(rows) == 30 and sorted({int(r["step"]) for r in rows}) == list(range(16, 44, 3)), len(rows)
mean = sum(int(r["dur_ns"]) for r in rows) / 30
assert abs(mean / truth["measured_ns"] - 1) < 0.002, mean
assert all(int(r["forward_ns"]) and int(r["backward_ns"]) for r in rows)'

# What cannot be replayed: one line and the exit code.
job pipeline cut_worker.json --cut worker >cut.truth
run left_out 0 "$STAVE" whatif cut_worker.json
job pipeline cut_recv.json --cut recv >cut.truth
run no_receives 3 "$STAVE" whatif cut_recv.json
job pipeline cut_steps.json --cut steps >cut.truth
run no_step_arguments 3 "$STAVE" whatif cut_steps.json
job pipeline one_worker.json --pp 1 --dp 1 >cut.truth
run one_worker 3 "$STAVE" whatif one_worker.json
job ranks one.txt --ranks 1 >cut.truth
run one_rank 3 "$STAVE" whatif one.txt
job ranks circle.txt --plant circle >cut.truth
run crossed 3 "$STAVE" whatif circle.txt
job ranks circle_clocks.txt --plant circle --clocks >cut.truth
run circle 6 "$STAVE" whatif circle_clocks.txt
job ranks lost.txt --plant lost >cut.truth
run lost 6 "$STAVE" whatif --json lost.txt
run no_ranks 3 "$STAVE" whatif "$SRC/tests/golden/good/strace.out"
run bad_median 2 "$STAVE" whatif --as-median worker one.txt
run no_file 3 "$STAVE" whatif there_is_none.json

# Units without something: the planted file of a simulated run, whose share the generator knows; what does not match; a trace without states.
python3 "$SRC/tests/cli/explain/planted.py" planted 0
run without 0 "$STAVE" whatif -q --no-index --without 'file:part-0017.bin' --without 'thread:python3' --without cause:data planted/slow_file-0.txt
run_any without_json 0 "$STAVE" whatif -q --no-index --json --without 'file:part-0017.bin' planted/slow_file-0.txt
check without_json_is_as_explain_says python3 -c '
import json, subprocess, sys
a = json.load(open(sys.argv[1]))
e = json.loads(subprocess.run([sys.argv[2], "explain", "-q", "--no-index", "--json", "planted/slow_file-0.txt"], stdout=subprocess.PIPE).stdout)
assert a["version"] == 1 and a["units"] == {"kind": "step", "n": 80} and abs(a["error"]) < 0.001, a
assert abs(a["without"][0]["gain"] - e["findings"][0]["gain"]) < 0.05, (a, e["findings"][0])' without_json.out "$STAVE"
run without_nothing 3 "$STAVE" whatif -q --no-index --without 'file:*.npy' planted/slow_file-0.txt
run without_states 6 "$STAVE" whatif -q --no-index --without cause:disk "$SRC/tests/golden/good/strace.out"
run without_word 2 "$STAVE" whatif --without disk planted/slow_file-0.txt
run without_and_median 2 "$STAVE" whatif --without cause:disk --as-median rank planted/slow_file-0.txt

# The public timelines: published are 1.97305, 1.53736 (of fewer steps) and 1.17870.
data=${STAVE_DATA:-}
for set in "AR 1.97305 0.01 DP rank 0, stage 0" "SE 1.53736 0.01 stage 1" "ST 1.17870 0.01 stage 3"; do
  read -r name published error cause <<<"$set"
  file=$data/timeline-$name.json.gz
  [ -e "$file" ] || { skip "public_$name" "STAVE_DATA names no folder with timeline-$name.json.gz"; continue; }
  run_any "public_$name" 0 "$STAVE" whatif -q --json "$file"
  check "public_${name}_is_told" python3 -c '
import json, sys
a, published, error, cause = json.load(open(sys.argv[1])), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
assert abs(a["slowdown"] / published - 1) < error and a["culprits"][0]["name"] == cause and abs(a["error"]) < 0.03, a' "public_$name.out" "$published" "$error" "$cause"
done
