"""Shapes of traces that grow with one number: what readers and commands must take in near-linear time and memory.

shape(name, n) returns (suffix, bytes). Each shape stresses one thing: depth, overlap, tracks, names, flows, arguments and so on.
Used by scaling.py; nothing here depends on time or chance.
"""
import json
import os

GOOD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "good")
SHAPES = {}
LOGS = ["bpftrace_bio.out", "bpftrace_mmap.out", "bpftrace_syscalls.out", "bpftrace_read_explore.out", "dlio.log", "mllog.log", "mpstat_12h.out",
        "paje.log", "pmon.out", "starpu_cholesky_dag.log", "starpu_states.log", "starpu_tasks.log", "strace.out", "strace_tt.out",
        "time_align.out"]


def shape(suffix="json"):
    """Registers a generator; a generator of JSON gives events, one of text gives lines."""
    def register(make):
        SHAPES[make.__name__] = (suffix, make)
        return make
    return register


def build(name, n):
    """The trace of this shape and size: the suffix of its file, and its bytes."""
    if name in LOGS:
        return name.rsplit(".", 1)[1], repeated(name, n)
    suffix, make = SHAPES[name]
    made = make(n)
    if suffix == "json" and not isinstance(made, bytes):
        made = made if isinstance(made, dict) else {"traceEvents": list(made)}
        events = ",\n".join(json.dumps(e, separators=(",", ":")) for e in made.pop("traceEvents"))
        rest = json.dumps(made, separators=(",", ":"))[1:-1]
        return suffix, ("{" + rest + ("," if rest else "") + '"traceEvents":[\n' + events + "\n]}\n").encode()
    if isinstance(made, bytes):
        return suffix, made
    return suffix, ("\n".join(made) + "\n").encode()


def repeated(name, n):
    """A log of another tool with n lines: a good one, once more and once more."""
    with open(os.path.join(GOOD, name), "rb") as f:
        data = f.read()
    data += b"" if data.endswith(b"\n") else b"\n"
    return data * max(1, n // data.count(b"\n"))


def x(ts, dur, name="a", pid=1, tid=1, **more):
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, **more}


def ev(ph, ts, name="a", pid=1, tid=1, **more):
    return {"ph": ph, "name": name, "ts": ts, "pid": pid, "tid": tid, **more}


# ---- slices ----

@shape()
def siblings(n):
    return [x(3 * i, 2, f"s{i % 5}") for i in range(n)]


@shape()
def nested(n):
    return [x(i, 2 * (n - i), f"s{i % 5}") for i in range(n)]


@shape()
def nested_edges(n):
    return [ev("B", i) for i in range(n)] + [ev("E", n + i) for i in range(n)]


@shape()
def combs(n):
    """Deep nests with many children at the bottom, one beside the other."""
    events = []
    for k in range(n // 50):
        events += [x(100 * k + i, 100 - 2 * i, "n") for i in range(25)]
        events += [x(100 * k + 25 + 2 * i, 1, "leaf") for i in range(25)]
    return events


@shape()
def overlapping(n):
    return [x(i, n, f"s{i % 5}") for i in range(n)]


@shape()
def crossing_pairs(n):
    return [x(10 * i + 6 * (k % 2), 8) for i in range(n // 2) for k in range(2)]


@shape()
def equal_times(n):
    return [x(5, 7) for _ in range(n)]


@shape()
def empty_slices(n):
    return [x(5, 0) for _ in range(n)] + [x(0, 10)]


@shape()
def unsorted(n):
    return [x(3 * (n - i), 2) for i in range(n)]


@shape()
def begins(n):
    return [ev("B", i) for i in range(n)]


@shape()
def ends(n):
    return [ev("E", i) for i in range(n)] + [x(0, 1)]


@shape()
def instants(n):
    return [x(0, n + 1)] + [ev("i", i, s="t") for i in range(n)]


@shape()
def long_over_short(n):
    """One slice open over everything, on a track with many others."""
    return [x(0, 10 * n, "all")] + [x(3 * i + 1, 1) for i in range(n)]


# ---- tracks and names ----

@shape()
def threads(n):
    return [x(i % 100, 5, tid=i + 1) for i in range(n)]


@shape()
def named_threads(n):
    return [ev("M", 0, "thread_name", tid=i + 1, args={"name": f"t{i}"}) for i in range(n)] + list(threads(n))


@shape()
def processes(n):
    return [x(i % 100, 5, pid=i + 1, tid=i + 1) for i in range(n)]


@shape()
def process_threads(n):
    """Processes with a main thread and another one, both named."""
    events = []
    for i in range(n // 2):
        pid = 10 * i + 10
        events += [ev("M", 0, "process_name", pid, pid, args={"name": f"p{i}"}), ev("M", 0, "thread_name", pid, pid + 1, args={"name": f"t{i}"}),
                   x(i % 100, 5, pid=pid, tid=pid), x(i % 100, 5, pid=pid, tid=pid + 1)]
    return events


@shape()
def process_counters(n):
    return [e for i in range(n // 2) for e in (x(i % 100, 5, pid=i + 1, tid=i + 1), ev("C", i % 100, "memory", i + 1, i + 1, args={"bytes": i}))]


@shape()
def forks(n):
    """A process that forks many, each of which reads files."""
    events = [x(0, 10 * n, "main", pid=1, tid=1)]
    for i in range(n // 2):
        pid = i + 2
        events += [ev("i", i, "fork", 1, 1, s="t", cat="process", args={"child": pid})]
        events += [x(i + k, 1, "read", pid, pid, cat="syscall", args={"bytes": 10, "path": f"/data/f{k}.npz"}) for k in range(5)]
    return events


@shape()
def thread_states(n):
    """Threads that wait for each other, one after the other."""
    return [e for i in range(n) for e in (
        x(10 * i, 5, "futex", 1, i % 200 + 1, cat="syscall"),
        x(10 * i, 5, "Sleeping", 1, i % 200 + 1, cat="thread_state", args={"reason": "lock", "waker_tid": (i + 1) % 200 + 1}))]


@shape()
def states_of_threads(n):
    return [x(i % 100, 50, "Sleeping", 1, i + 1, cat="thread_state", args={"reason": "lock", "waker_tid": (i + 1) % n + 1}) for i in range(n)]


@shape()
def renamed(n):
    return [e for i in range(n) for e in (ev("M", 0, "thread_name", args={"name": f"t{i}"}), x(3 * i, 2))]


@shape()
def names(n):
    return [x(3 * i, 2, f"name number {i}") for i in range(n)]


@shape()
def same_prefix(n):
    return [x(3 * i, 2, "p" * 200 + str(i)) for i in range(n)]


@shape()
def categories(n):
    return [x(3 * i, 2, cat=f"cat{i}") for i in range(n)]


@shape()
def category_lists(n):
    return [x(0, 2, cat=",".join(f"c{i}" for i in range(n)))]


@shape()
def huge_string(n):
    return [x(0, 2, "y" * 200 * n)]


@shape()
def escaped_string(n):
    return [x(0, 2, "\u20ac\n\"" * 50 * n)]


@shape()
def long_metadata(n):
    return {"traceEvents": [x(0, 1)], "metadata": {f"k{i}": "v" for i in range(n)}}


@shape()
def many_top_keys(n):
    return {**{f"key{i}": i for i in range(n)}, "traceEvents": [x(0, 1)]}


# ---- arguments ----

@shape()
def arguments(n):
    return [x(3 * i, 2, args={f"k{k}": i for k in range(8)}) for i in range(n)]


@shape()
def wide_arguments(n):
    return [x(3 * i, 2, args={f"k{i}_{k}": "v" for k in range(1000)}) for i in range(n // 500)]


@shape()
def argument_keys(n):
    return [x(3 * i, 2, args={f"key {i}": i}) for i in range(n)]


@shape()
def repeated_keys(n):
    body = ",".join('"same":%d' % i for i in range(n))
    return ('[{"ph":"X","name":"a","ts":0,"dur":2,"pid":1,"tid":1,"args":{%s}}]' % body).encode()


@shape()
def deep_arguments(n):
    value = 1
    for _ in range(60):
        value = {"d": [value]}
    return [x(3 * i, 2, args={"deep": value}) for i in range(n // 50)]


@shape()
def long_arrays(n):
    return [x(3 * i, 2, args={"list": list(range(1000))}) for i in range(n // 500)]


@shape()
def argument_texts(n):
    return [x(3 * i, 2, args={"text": f"value number {i}"}) for i in range(n)]


# ---- flows, async, counters ----

@shape()
def flows(n):
    events = []
    for i in range(n):
        events += [x(10 * i, 5, "send"), x(10 * i + 2, 5, "receive", tid=2)]
        events += [ev("s", 10 * i + 1, "f", id=i), ev("f", 10 * i + 3, "f", tid=2, id=i, bp="e")]
    return events


@shape()
def one_flow(n):
    return [e for i in range(n) for e in (x(10 * i, 5), ev("t" if i else "s", 10 * i + 1, "f", id=1))]


@shape()
def flows_into_one(n):
    events = [x(10 * n, 100, "sink", tid=2)]
    for i in range(n):
        events += [x(10 * i, 5, "send"), ev("s", 10 * i + 1, "f", id=i), ev("f", 10 * n + 1, "f", tid=2, id=i, bp="e")]
    return events


@shape()
def flow_ring(n):
    """Threads that hand work on in a circle, at equal times."""
    events = []
    for i in range(n):
        tid, other = i % 7 + 1, (i + 1) % 7 + 1
        events += [x(4 * i, 4, tid=tid), ev("s", 4 * i + 3, "f", tid=tid, id=i), ev("f", 4 * i + 4, "f", tid=other, id=i)]
    return events


@shape()
def open_flows(n):
    return [e for i in range(n) for e in (x(10 * i, 5), ev("s", 10 * i + 1, "f", id=i))]


@shape()
def async_pairs(n):
    return [e for i in range(n) for e in (ev("b", 5 * i, cat="c", id=i), ev("e", 5 * i + 3, cat="c", id=i))]


@shape()
def async_open(n):
    return [ev("b", i, cat="c", id=i) for i in range(n)] + [ev("e", n + i, cat="c", id=i) for i in range(n)]


@shape()
def async_nested(n):
    return [ev("b", i, cat="c", id=1) for i in range(n)] + [ev("e", n + i, cat="c", id=1) for i in range(n)]


@shape()
def async_never_ended(n):
    return [ev("b", i, cat="c", id=i) for i in range(n)]


@shape()
def async_legacy(n):
    return [e for i in range(n) for e in (ev("S", 5 * i, cat="c", id=hex(i)), ev("T", 5 * i + 1, cat="c", id=hex(i), args={"step": "x"}),
                                          ev("F", 5 * i + 3, cat="c", id=hex(i)))]


@shape()
def async_crossing(n):
    return [ev("b", i, cat="c", id=i) for i in range(n)] + [ev("e", n + (i * 7919) % n, cat="c", id=i) for i in range(n)]


@shape()
def local_ids(n):
    return [e for i in range(n) for e in (ev("b", 5 * i, cat="c", id2={"local": hex(i)}, pid=i % 50 + 1),
                                          ev("e", 5 * i + 3, cat="c", id2={"local": hex(i)}, pid=i % 50 + 1))]


@shape()
def counter_values(n):
    return [ev("C", i, "memory", args={"bytes": i % 17}) for i in range(n)]


@shape()
def counters(n):
    return [ev("C", i % 10, f"counter {i}", args={"v": i}) for i in range(n)]


@shape()
def counter_series(n):
    return [ev("C", i, "c", args={f"series{k}": i for k in range(20)}) for i in range(n // 10)]


@shape()
def objects(n):
    return [e for i in range(n) for e in (ev("N", 5 * i, id=hex(i)), ev("O", 5 * i + 1, id=hex(i), args={"snapshot": {"a": 1}}),
                                          ev("D", 5 * i + 3, id=hex(i)))]


@shape()
def samples(n):
    frames = {str(i): {"name": f"f{i % 40}", **({"parent": str(i - 1)} if i % 40 else {})} for i in range(n)}
    return {"traceEvents": [ev("P", 5 * i, "sample", sf=i) for i in range(n)], "stackFrames": frames}


@shape()
def deep_frames(n):
    frames = {str(i): {"name": f"f{i % 9}", **({"parent": str(i - 1)} if i else {})} for i in range(n)}
    return {"traceEvents": [x(5 * i, 3, sf=n - 1) for i in range(20)], "stackFrames": frames}


# ---- devices, steps, input and output, serving ----

@shape()
def kernels(n):
    events = []
    for i in range(n):
        events += [x(10 * i, 3, "cudaLaunchKernel", 10, 1, cat="cuda_runtime", args={"correlation": i + 1}),
                   x(10 * i + 5, 7, f"k{i % 9}", 0, 7 + i % 3, cat="kernel",
                     args={"device": 0, "stream": 7 + i % 3, "correlation": i + 1})]
    return events


@shape()
def waits(n):
    """Calls that wait for devices, one in the other."""
    return [x(i, 4 * n - 2 * i, "cudaDeviceSynchronize", 10, 1, cat="cuda_runtime") for i in range(n)] + [
        x(n + i, 1, "k", 0, 7, cat="kernel", args={"device": 0, "stream": 7, "correlation": i + 1}) for i in range(n)]


@shape()
def streams(n):
    return [x(10 * i, 7, "k", 0, i + 1, cat="kernel", args={"device": i % 4, "stream": i, "correlation": i + 1}) for i in range(n)]


@shape()
def device_memory(n):
    return [ev("i", i, "[memory]", 10, s="t", cat="cpu_instant_event",
               args={"Addr": 64 * (i // 2), "Bytes": 64 if i % 2 == 0 else -64, "Device Type": 1, "Device Id": 0}) for i in range(n)] + [
                   x(0, 3, "k", 0, 7, cat="kernel", args={"device": 0, "stream": 7, "correlation": 1})]


@shape()
def held_memory(n):
    return [ev("i", i, "[memory]", 10, s="t", cat="cpu_instant_event",
               args={"Addr": 64 * i, "Bytes": 64, "Device Type": 1, "Device Id": 0}) for i in range(n)] + [
                   x(0, 3, "k", 0, 7, cat="kernel", args={"device": 0, "stream": 7, "correlation": 1})]


@shape()
def steps(n):
    events = []
    for i in range(n):
        events += [x(100 * i, 90, f"ProfilerStep#{i}", cat="user_annotation"), x(100 * i + 5, 20, "enumerate(DataLoader)#next"),
                   x(100 * i + 30, 40, "forward"), x(100 * i + 35, 10, "k", 0, 7, cat="kernel",
                                                     args={"device": 0, "stream": 7, "correlation": i + 1})]
    return events


@shape()
def nested_steps(n):
    return [x(i, 4 * n - 2 * i, f"ProfilerStep#{i}", cat="user_annotation") for i in range(n)]


@shape()
def steps_within_others(n):
    """Steps that lie in steps, but not directly, with work of a device below them all."""
    return [x(i, 6 * n - 2 * i, f"ProfilerStep#{i}" if i % 2 == 0 else "between", cat="user_annotation") for i in range(n)] + [
        x(n + 2 * i, 1, "k", 0, 7, cat="kernel", args={"device": 0, "stream": 7, "correlation": i + 1}) for i in range(n)]


@shape()
def steps_of_threads(n):
    """Steps of many threads at one time, with work of a device below them all."""
    return [x(i, 6 * n - 2 * i, f"ProfilerStep#{i}", tid=i + 1, cat="user_annotation") for i in range(n)] + [
        x(n + 2 * i, 1, "k", 0, 7, cat="kernel", args={"device": 0, "stream": 7, "correlation": i + 1}) for i in range(n)]


@shape()
def steps_of_machines(n):
    return [x(10 * i, 9, f"ProfilerStep#{i}", pid=i + 1, tid=i + 1, cat="user_annotation") for i in range(n)] + list(kernels(n))


def all_reduce(rank, seq, ts, dur, size):
    return x(ts, dur, "allreduce", pid=rank + 1, tid=1, cat="collective", args={"op": "allreduce", "group": "world", "seq": seq, "bytes": 8, "group_size": size, "rank": rank})


@shape()
def ranks(n):
    """Many ranks that meet four times; each is the last now and then."""
    return [all_reduce(r, s, 1000 * s + 100 + (r + 7 * s) % 50, 500 - (r + 7 * s) % 50, n) for r in range(n) for s in range(4)]


@shape()
def steps_of_ranks(n):
    return [all_reduce(r, s, 1000 * s + 100 + (r + 7 * s) % 50, 500 - (r + 7 * s) % 50, 8) for r in range(8) for s in range(n // 4)]


def operation(dp, pp, name, step, i, ts, dur):
    return x(ts, dur, name, pid=dp, tid=2 * pp + (name != "forward-compute"), args={"step": step, "seq_id": i})


def stages(dp, pp):
    for d in range(dp):
        yield {"ph": "M", "name": "process_name", "pid": d, "args": {"name": f"DP rank [{d}]"}}
        for t in range(2 * pp):
            yield {"ph": "M", "name": "thread_name", "pid": d, "tid": t, "args": {"name": f"PP rank {t // 2}, TP rank 0"}}


@shape()
def pipelines(n):
    """Many steps of two stages on two ranks."""
    return list(stages(2, 2)) + [e for s in range(n // 8) for d in range(2) for e in (
        operation(d, 0, "forward-compute", s, 0, 1000 * s + 10, 100 + d), operation(d, 0, "forward-send", s, 0, 1000 * s + 111, 50), operation(d, 1, "forward-recv", s, 0, 1000 * s, 161),
        operation(d, 1, "forward-compute", s, 0, 1000 * s + 161, 100), operation(d, 0, "grads-reduce-scatter", s, 0, 1000 * s + 300, 20), operation(d, 1, "grads-reduce-scatter", s, 0, 1000 * s + 300, 20))]


@shape()
def one_pipeline_step(n):
    """One step with very many operations; gathers run beside them."""
    return list(stages(2, 1)) + [e for d in range(2) for i in range(n // 4) for e in (
        operation(d, 0, "forward-compute", 0, i, 100 * i, 99), operation(d, 0, "params-all-gather", 0, i, 100 * i + 20, 250))]


@shape("out")
def calls(n):
    return [f'{100 + i % 3} 1658345292.{i:06d} openat(AT_FDCWD, "/data/{i % 50}/f{i}", O_RDONLY) = 3 <0.000001>' if i % 2 == 0 else
            f'{100 + i % 3} 1658345292.{i:06d} read(3, "", 4096) = 4096 <0.000002>' for i in range(n)]


@shape()
def phases_of_calls(n):
    """Phases in phases, and the calls of several threads below them all."""
    return [x(i, 8 * n - 2 * i, f"phase {i}", cat="phase") for i in range(n)] + [
        x(n + 2 * i, 1, "read", tid=2 + i % 9, cat="syscall", args={"bytes": 10, "path": f"/f{i % 5}"}) for i in range(n)]


@shape("out")
def unfinished_calls(n):
    return [f'{100 + i} 1658345292.{i % 1000000:06d} read(3, <unfinished ...>' for i in range(n)]


@shape("out")
def deep_folders(n):
    return [f'100 1658345292.{i:06d} openat(AT_FDCWD, "/{"/".join("d" * 3 for _ in range(20))}/{i}", O_RDONLY) = 3 <0.000001>' for i in range(n)]


SUMMARY = ("batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,submit_ms,"
           "scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms,warmup")


@shape("csv")
def batches(n):
    return [SUMMARY] + [f'{i},"m{i % 3}",{i % 4},"cpu",-1,2,"{2 * i + 1};{2 * i + 2}","{1000000 + 1000 * i};{1000500 + 1000 * i}",'
                        "2.000,1.000,1.500,0.500,5.000,5.500,1.000,10.000,false" for i in range(n)]


@shape("csv")
def one_batch(n):
    ids, at = ";".join(str(i + 1) for i in range(n)), ";".join(str(1000000 + i) for i in range(n))
    return [SUMMARY, f'0,"m",0,"cpu",-1,{n},"{ids}","{at}",2.000,1.000,1.500,0.500,5.000,5.500,1.000,10.000,false']


@shape("csv")
def models(n):
    return [SUMMARY] + [f'{i},"model {i}",{i % 4},"cpu",-1,1,"{i + 1}","{1000000 + 1000 * i}",'
                        "2.000,1.000,1.500,0.500,5.000,5.500,1.000,10.000,false" for i in range(n)]


@shape("csv")
def waiting_requests(n):
    return [SUMMARY] + [f'{i},"m",0,"cpu",-1,1,"{i + 1}","{1000000 + i}",'
                        f"{10 * i}.000,1.000,1.500,0.500,5.000,5.500,1.000,{10 * i + 10}.000,false" for i in range(n)]


# ---- the canonical text: what JSON cannot say ----

@shape("txt")
def track_tree(n):
    lines = ["# stave text 1", "clock unknown", "track #1 process uuid=0x1 pid=1 name=\"p\""]
    lines += [f'track #{i + 2} custom uuid={hex(i + 2)} parent=#{i + 1} name="t{i}"' for i in range(n)]
    return lines + [f"0.00000{i % 10}000 slice #{i + 2} \"s\" dur=0.000005000" for i in range(n)]


@shape("txt")
def track_fan(n):
    lines = ["# stave text 1", "clock unknown", "track #1 process uuid=0x1 pid=1 name=\"p\""]
    lines += [f'track #{i + 2} custom uuid={hex(i + 2)} parent=#1 name="same"' for i in range(n)]
    return lines + [f"0.00000{i % 10}000 slice #{i + 2} \"s\" dur=0.000005000" for i in range(n)]


@shape("txt")
def losses(n):
    return ["# stave text 1", "clock unknown", "track #1 thread uuid=0x1 pid=1 tid=1"] + [
        f"{i}.000000000 loss #1 \"ring full\" dur=0.500000000 {3}" for i in range(n)]


@shape("txt")
def metadata_lines(n):
    return ["# stave text 1", "clock unknown"] + [f'meta "key {i}" "value"' for i in range(n)] + [
        "track #1 thread uuid=0x1 pid=1 tid=1", "0.000000000 slice #1 \"s\" dur=0.000005000"]


@shape("txt")
def process_phases(n):
    """Phases on tracks of their own below many processes, and below none."""
    lines = ["# stave text 1", "clock unknown"]
    for i in range(n):
        base = 4 * i + 1
        lines += [f"track #{base} process uuid={hex(base)} pid={i + 2} name=\"p\"",
                  f"track #{base + 1} thread uuid={hex(base + 1)} parent=#{base} pid={i + 2} tid={i + 2}",
                  f"track #{base + 2} custom uuid={hex(base + 2)} parent=#{base} name=\"phases\"",
                  f"track #{base + 3} custom uuid={hex(base + 3)} name=\"phases {i}\""]
    for i in range(n):
        base = 4 * i + 1
        lines += [f"0.00000{i % 10}000 slice #{base + k} \"epoch {i}\" cat=\"phase\" dur=0.000005000" for k in (1, 2, 3)]
    return lines


@shape("txt")
def flows_of_one_slice(n):
    head = ["# stave text 1", "clock unknown", "track #1 thread uuid=0x1 pid=1 tid=1"]
    flows = " ".join(f"@flow:{i:#x}" for i in range(1, n + 1))
    return head + [f'1.000000000 slice #1 "s" dur=0.500000000 {{{flows}}}']


@shape("txt")
def arguments_of_one_slice(n):
    head = ["# stave text 1", "clock unknown", "track #1 thread uuid=0x1 pid=1 tid=1"]
    arguments = " ".join(f"k{i}={i}" for i in range(n))
    return head + [f'1.000000000 slice #1 "s" dur=0.500000000 {{{arguments}}}']


# ---- numbers that were chosen to meet in the hash tables (core/base/map.c) ----

def unmix(x):
    """The number that sv_mix64() makes x of."""
    mask, inverse = (1 << 64) - 1, pow(0xe9846af9b1a615d, -1, 1 << 64)
    x ^= x >> 28 ^ x >> 56
    x = x * inverse & mask
    x ^= x >> 32
    x = x * inverse & mask
    return x ^ x >> 32


def meeting(n):
    return [unmix(i << 32 | 5) for i in range(1, n + 1)]


@shape("txt")
def meeting_flows(n):
    return ["# stave text 1", "clock unknown", "track #1 thread uuid=0x1 pid=1 tid=1"] + [
        f'{i}.000000000 slice #1 "s" dur=0.500000000 {{@flow:{id:#x}}}' for i, id in enumerate(meeting(n))]


@shape("txt")
def meeting_tracks(n):
    ids = meeting(n)
    return ["# stave text 1", "clock unknown"] + [f'track #{i + 1} custom uuid={id:#x} name="t"' for i, id in enumerate(ids)] + [
        f'{i}.000000000 slice #{i + 1} "s" dur=0.500000000' for i in range(n)]
