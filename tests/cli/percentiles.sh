#!/usr/bin/env bash
# Percentiles with known answers, wherever they are shown: of 101 values 1, 2 … 101 the p-th is p + 1, and no two of them are alike.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3 here"

cat >make.py <<'P'
import json
values = [(37 * i) % 101 + 1 for i in range(101)]  # 1 … 101 in no order
slices = [{"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": v} for i, v in enumerate(values)]
# "steady" has the larger p90, "spiky" the larger p99: sorting distinguishes them.
slices += [{"ph": "X", "name": "steady", "pid": 1, "tid": 2, "ts": 1000 * i, "dur": 90} for i in range(101)]
slices += [{"ph": "X", "name": "spiky", "pid": 1, "tid": 3, "ts": 1000 * i, "dur": 500 if i < 2 else 1} for i in range(101)]
json.dump(slices, open("slices.json", "w"))
gpu = []
for i, v in enumerate(values):
    gpu += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 1, "ts": 1000 * i, "dur": 1, "args": {"correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000 * i + v, "dur": 102 - v,
             "args": {"device": 0, "stream": 7, "correlation": i + 1}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 8, "ts": 1000 * i + 500, "dur": v,
             "args": {"device": 0, "stream": 8, "correlation": 1000 + i, "bytes": 4096}}]
json.dump(gpu, open("gpu.json", "w"))
with open("calls.log", "w") as f:
    for i, v in enumerate(values):
        f.write(f'100 1658345292.{1000 * i:06d} read(3</data/f>, "", 4096) = 4096 <0.{v:06d}>\n')
        f.write(f'100 1658345292.{1000 * i + 500:06d} write(4</data/g>, "", 4096) = 4096 <0.{2 * v:06d}>\n')

HEAD = ("batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,submit_ms,"
        "scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms,warmup")
def batches(path, totals):
    with open(path, "w") as f:
        print(HEAD, file=f)
        for i, ms in enumerate(totals):
            print(f'{i},"m",0,"cpu",-1,1,"{i + 1}","{1000000 + 200000 * i}",{ms}.000,0.000,0.000,0.000,0.000,0.000,0.000,{ms}.000,false', file=f)
batches("batches.csv", values)
# A run in which only the two slowest became slower: p95 and p98 are as they were, p99 is not.
batches("tail.csv", [v + 50 if v >= 100 else v for v in values])
P
python3 make.py

cat >known.py <<'P'
import csv, json, os, re, subprocess, sys
stave = os.environ["STAVE"]
def run(*words):
    return subprocess.check_output([stave, words[0], "-q", *words[1:]], text=True)
def same(got, want, what):
    if abs(float(got) - want) > 1e-6 * max(1, want):
        raise ValueError(f"{what}: {got}, expected {want}")
def known(row, unit, prefix="", names=("p50", "p90", "p95", "p99"), factor=1):
    for p in names:
        same(row[f"{prefix}{p}_ns"], (int(p[1:]) + 1) * unit * factor, f"{prefix}{p}")
US, MS = 1000, 1000000
def stats():
    row = next(r for r in csv.DictReader(run("stats", "slices.json", "--to", "csv").splitlines()) if r["name"] == "work")
    known(row, US, names=("p50", "p90", "p99"))
    same(row["min_ns"], US, "min"); same(row["max_ns"], 101 * US, "max"); same(row["mean_ns"], 51 * US, "mean")

def stats_sort():
    first = {k: next(csv.DictReader(run("stats", "slices.json", "--sort", k, "--to", "csv").splitlines()))["name"] for k in ("p90", "p99")}
    assert first == {"p90": "work", "p99": "spiky"}, first

def diff():
    row = next(r for r in csv.DictReader(run("diff", "slices.json", "slices.json", "--all", "--to", "csv").splitlines()) if r["name"] == "work")
    for side in "ab":
        same(row[f"p50_{side}_ns"], 51 * US, "p50"); same(row[f"p99_{side}_ns"], 100 * US, "p99")

def io():
    row = json.loads(run("report", "io", "calls.log", "--json"))["process"][0]
    known(row, US, "read_", ("p50", "p90", "p99"))
    known(row, US, "write_", ("p50", "p90", "p99"), 2)

def gpu():
    report = json.loads(run("report", "gpu", "gpu.json", "--json"))
    known(report["kernel"][0], US, names=("p50", "p99"))
    known(report["copy"][0], US, names=("p50", "p99"))
    device = report["device"][0]
    same(device["launch_p50_ns"], 51 * US, "launch p50"); same(device["launch_p99_ns"], 100 * US, "launch p99")

def batch():
    report = json.loads(run("report", "batch", "batches.csv", "--json"))
    for row in (report["summary"], report["worker"][0], report["model"][0], report["size"][0]):
        known(row, MS, "latency_")
    known(next(r for r in report["phase"] if r["phase"] == "queue"), MS)

def hist():
    svg = run("plot", "hist", "slices.json", "work")
    text = re.sub(r"\s+", " ", " ".join(re.findall(r">([^<]+)<", svg)))
    for want in ("p50 51", "p90 91", "p99 100"):
        assert want in text, (want, text[:2000])

def sql():
    got = run("query", "slices.json", "select percentile(dur, 50), percentile(dur, 90), percentile(dur, 99) from slice where name = 'work'", "--to", "csv")
    assert got.splitlines()[1] == "51000.0,91000.0,100000.0", got

bad = 0
for check in (stats, stats_sort, diff, io, gpu, batch, hist, sql):
    try:
        if check is not sql or os.environ["HAS_SQLITE"]:
            check()
            print("ok", check.__name__)
        else:
            print("skip sql: this build has no SQLite")
    except Exception as e:
        bad = 1
        print(f"  {e!r}\nnot ok {check.__name__}")
sys.exit(bad)
P
HAS_SQLITE=; ! "$STAVE" query -q slices.json 'select 1' >/dev/null 2>&1 || HAS_SQLITE=1
HAS_SQLITE=$HAS_SQLITE python3 known.py || CLI_FAILED=1

# A run whose p99 alone grew is caught, by p99.
run_any tail_is_caught 1 "$STAVE" report batch tail.csv --baseline batches.csv --max-latency-regression 10 --json
check by_p99_alone python3 -c '
import json
missed = [c["figure"] for c in json.load(open("tail_is_caught.out"))["changes"] if c["missed"]]
assert missed == ["latency p99"], missed'
run_any tail_is_allowed 0 "$STAVE" report batch tail.csv --baseline batches.csv --max-latency-regression 51
