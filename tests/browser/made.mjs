// Traces that several tests of the page look at.
import fs from 'node:fs';
import { stamp } from './harness.mjs';

export const US = 1000n, LOCK = 140001n, BASE = 1711964651000000123n; // no double holds these times
export const HOSTILE = '<img src=x onerror=alert(1)>';
export const GEMM = '_ZN7cutlass6KernelI4gemmILi128EEEEvT_'; // cutlass::Kernel<gemm<128>>(…)
export const RELU = 'void at::native::(anonymous namespace)::elementwise<4, relu<float> >(int, float*)';

/** One rank: steps with parts, kernels that were launched, a copy, reads from files. Rank 1 is late in step 7. */
export function makeRank(file, rank) {
  const pid = 100 + rank, events = [], id = (n) => `0x${(rank * 1000 + n).toString(16)}`;
  const head = ['# stave text 1', 'clock realtime', `meta "rank" "${rank}"`, 'meta "world_size" "2"', `track #1 process uuid=${id(1)} pid=${pid} name="train"`, `track #2 thread uuid=${id(2)} parent=#1 pid=${pid} tid=${pid} name="main"`,
    `track #3 gpu uuid=${id(3)} parent=#1 pid=${pid} name="GPU ${rank}"`, `track #4 stream uuid=${id(4)} parent=#3 pid=${pid} name="Stream 7"`];
  let t = BASE + BigInt(rank) * 40n * US;
  for (let i = 0; i < 24; i++) {
    const slow = rank === 1 && i === 7 ? 900n : 0n, dur = (500n + BigInt(i % 5) * 7n + slow) * US + BigInt(i);
    events.push([t, `slice #2 "ProfilerStep#${i}" cat="user_annotation" dur=${stamp(dur)}`], [t + 10n * US, `slice #2 "read" cat="syscall" dur=${stamp(30n * US + BigInt(i))} {fd=3 path="/data/${i % 3 ? `part ${i % 3}` : HOSTILE}" bytes=${4096 * (1 + i % 2)}}`]);
    events.push([t + 50n * US, `slice #2 "forward" cat="cpu_op" dur=${stamp((200n + slow) * US)}`], [t + 60n * US, `slice #2 "cudaLaunchKernel" cat="cuda_runtime" dur=${stamp(5n * US)} {correlation=${i + 1}}`]);
    events.push([t + 90n * US, `slice #4 "${i % 4 ? `gemm ${i % 4}` : HOSTILE}" cat="kernel" dur=${stamp(100n * US + BigInt(i) * 3n)} {device=${rank} stream=7 correlation=${i + 1}}`]);
    events.push([t + 300n * US, `slice #4 "Memcpy HtoD" cat="gpu_memcpy" dur=${stamp(20n * US)} {device=${rank} stream=7 bytes=65536 copyKind="HtoD"}`], [t + (260n + slow) * US, `slice #2 "backward" cat="cpu_op" dur=${stamp(150n * US)}`]);
    t += dur + 5n * US;
  }
  events.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, head.concat(events.map(([at, text]) => `${stamp(at)} ${text}`)).join('\n') + '\n');
}

/** A rank of a job whose steps end with a collective, which all leave together: steps are equally long on both ranks, but rank 1 comes late in every third step and most in step 7. */
export function makeJob(file, rank) {
  const pid = 100 + rank, lines = ['# stave text 1', 'clock realtime', `meta "rank" "${rank}"`, 'meta "world_size" "2"', 'meta "boot_id" "one machine"', `track #1 process uuid=0x${rank + 1} pid=${pid} name="train"`, `track #2 thread uuid=0x${rank + 11} parent=#1 pid=${pid} tid=${pid} name="main"`];
  for (let i = 0; i < 24; i++) {
    const at = BASE + BigInt(i) * 40000n * US, late = rank && i % 3 === 1 ? (i === 7 ? 30000n : 3000n) : 0n, args = `{op="allreduce" group="0" seq=${i} bytes=4096 group_size=2 group_ranks="[0, 1]"}`;
    lines.push(`${stamp(at)} slice #2 "ProfilerStep#${i}" cat="user_annotation" dur=${stamp(36000n * US)}`, `${stamp(at + 10n * US)} slice #2 "forward" cat="cpu_op" dur=${stamp((4000n + late) * US)}`);
    lines.push(`${stamp(at + (4100n + late) * US)} slice #2 "MPI_Allreduce" cat="collective" dur=${stamp((31800n - late) * US)} ${args}`);
  }
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
}

/** 40 requests in batches of one to four on two workers. */
export function makeServing(file) {
  const events = [];
  let request = 1, ts = 1000;
  for (let batch = 1; request <= 40; batch++) {
    const size = Math.min(1 + batch % 4, 41 - request), ids = Array.from({ length: size }, (_, k) => request + k), worker = batch % 2, run = 100 + 40 * size;
    for (const id of ids) {
      const wait = 10 * (id - request), phases = [50 - wait, 30, 5, 5, run, 7, 3].map((us) => us * 1000), args = { request_id: id, batch_id: batch, outcome: 'responded', phases_ns: phases };
      events.push({ name: 'request_enqueued', cat: 'batching', ph: 'i', s: 't', ts: ts + wait, pid: 1, tid: 1, args: { request_id: id, model_name: 'm' } });
      events.push({ name: 'request', cat: 'request', ph: 'b', id, ts: ts + wait, pid: 1, tid: 1, args }, { name: 'request', cat: 'request', ph: 'e', id, ts: ts + wait + phases.reduce((a, b) => a + b) / 1000, pid: 1, tid: 1 });
    }
    const args = { batch_id: batch, batch_size: size, model_name: 'm', request_ids: ids }, slice = (name, tid, at, dur, more) => events.push({ name, cat: 'batching', ph: 'X', ts: at, dur, pid: 1, tid, args: { ...args, ...more } });
    slice('batch', 2, ts, Math.max(1, 10 * (size - 1)), {});
    slice('batch_build', 3, ts + 50, 30, {});
    slice('batch_submitted', 4, ts + 85, 1, {});
    slice('m', 10 + 1000 * worker, ts + 90, run, { worker_id: worker, worker_type: 'cpu' });
    request += size;
    ts += 400;
  }
  fs.writeFileSync(file, JSON.stringify({ traceEvents: events.sort((a, b) => a.ts - b.ts) }));
}

/** An engine with continuous batching: 30 requests, four in a step, each with a prompt of two chunks and three tokens; a thread that runs all the time. */
export function makeEngine(file) {
  const events = [{ ph: 'M', name: 'thread_name', pid: 1, tid: 1, args: { name: 'engine 0' } }], life = (ts, name, request) => events.push({ ph: 'i', s: 't', cat: 'serving.life', name, pid: 1, tid: 2, ts, args: { request } });
  let ts = 100, number = 0;
  for (let first = 0; first < 30; first += 4) {
    const ids = [0, 1, 2, 3].map((k) => first + k).filter((id) => id < 30);
    for (const id of ids) life(ts - 90 + id % 4, 'enqueued', id);
    for (let k = 0; k < 4; k++) {
      const dur = 40 + 7 * k + first, members = ids.map((id) => (k === 0 ? `${id}p${20 + id}` : k === 1 ? `${id}p5+1@${20 + id}` : `${id}d1+1@${23 + id + k}`)).join(' ');
      events.push({ ph: 'X', cat: 'serving.engine', name: 'engine step', pid: 1, tid: 1, ts, dur, args: { step: ++number, members, waiting: 30 - first, kv_used: first, kv_total: 64 } });
      ts += dur + 3;
    }
    for (const id of ids) life(ts + id % 4, 'responded', id);
    ts += 100;
  }
  events.push({ ph: 'X', cat: 'thread_state', name: 'Running', pid: 1, tid: 3, ts: 10, dur: ts });
  fs.writeFileSync(file, JSON.stringify({ traceEvents: events.sort((a, b) => (a.ts || 0) - (b.ts || 0)) }));
}

/** A trainer that reads batches from a pipe, and its data worker, which uses a file before it writes; step 5 waits longest, for the file `odd`. One lock has that name, too. */
export function makeWaits(file, odd = HOSTILE) {
  const lines = ['# stave text 1', 'clock boottime'], events = [], at = (t, text) => events.push([BASE + BigInt(t) * US, text]);
  lines.push('track #1 process uuid=0x1 pid=10 name="python3"', 'track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"', 'track #3 custom uuid=0x3 parent=#2 name="state"', 'track #4 custom uuid=0x4 parent=#2 name="off CPU"');
  lines.push('track #5 process uuid=0x5 pid=11 name="python3"', 'track #6 thread uuid=0x6 parent=#5 pid=11 tid=11 name="main"', 'track #7 custom uuid=0x7 parent=#6 name="state"');
  const state = (t, track, name, dur, more = '') => at(t, `slice #${track} "${name}" cat="thread_state" dur=${stamp(BigInt(dur) * US)}${more}`);
  at(0, 'instant #2 "fork" cat="process" {child=11}');
  let t = 1000;
  for (let i = 0; i < 12; i++) {
    const wait = i === 5 ? 40000 : 2000 + 100 * i;
    at(t, `slice #2 "ProfilerStep#${i}" cat="user_annotation" dur=${stamp(BigInt(wait + 5000) * US)}`);
    at(t + 10, `slice #2 "read" cat="syscall" dur=${stamp(BigInt(wait - 20) * US)} {fd=4 path="pipe:[7]" bytes=100}`);
    state(t, 3, 'Running', 20);
    state(t + 20, 3, 'Sleeping', wait - 70, ' {reason="pipe"}');
    state(t + wait - 50, 3, 'Runnable', 40, ' {waker="python3" waker_tid=11}');
    state(t + wait - 10, 3, 'Running', 5010 + 100);
    at(t + 30, `slice #6 "openat" cat="syscall" dur=${stamp(BigInt(10) * US)} {path="/data/${i === 5 ? odd : i}"}`);
    at(t + 45, `slice #6 "read" cat="syscall" dur=${stamp(BigInt(wait - 150) * US)} {fd=3 path="/data/${i === 5 ? odd : i}" bytes=4096}`);
    state(t, 7, 'Running', 50);
    state(t + 50, 7, 'Blocked on I/O', wait - 160);
    state(t + wait - 110, 7, 'Running', 100);
    state(t + wait - 10, 7, 'Sleeping', 5110, ' {reason="pipe"}');
    t += wait + 5100;
  }
  at(t, `instant #4 "lock" cat="offcpu_sample" {dur=7000000 queued=1000000 reason="lock" lock=4096 lock_name="${odd}" waker_tid=12 waker="other" @stack["main" "take"]}`);
  fs.writeFileSync(file, `${lines.concat(events.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)).map(([when, text]) => `${stamp(when)} ${text}`)).join('\n')}\n`);
}

/** The main thread waits for a lock without a name, which another thread holds for 60 ms of each 100; a third one lies between the two. */
export function makeLocks(file) {
  const MS = 1000n * US, START = 7000000000n, lines = [], at = (ms, text) => lines.push([START + BigInt(ms) * MS, text]);
  const head = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=10 name="app"', 'track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"', 'track #3 custom uuid=0x3 parent=#2 name="state"',
    'track #4 custom uuid=0x4 parent=#2 name="off CPU"', 'track #5 thread uuid=0x5 parent=#1 pid=10 tid=11 name="holder"', 'track #6 custom uuid=0x6 parent=#5 name="state"', 'track #7 thread uuid=0x7 parent=#1 pid=10 tid=12 name="middle"'];
  const state = (ms, track, name, dur, more = '') => at(ms, `slice #${track} "${name}" cat="thread_state" dur=${stamp(BigInt(dur) * MS)}${more}`);
  for (let i = 0; i < 8; i++) {
    const t = 100 * i, wait = i === 3 ? 55 : 50;
    at(t, `slice #2 "step" cat="app" dur=${stamp(98n * MS)}`);
    at(t, `slice #7 "tick" cat="app" dur=${stamp(MS)}`);
    state(t, 3, 'Running', 10);
    state(t + 10, 3, 'Sleeping', wait, ` {reason="lock" lock=${LOCK}}`);
    state(t + 10 + wait, 3, 'Runnable', 2, ' {waker="holder" waker_tid=11}');
    state(t + 12 + wait, 3, 'Running', 88 - wait);
    at(t + 10, `slice #4 "lock" cat="offcpu_sample" dur=${stamp(BigInt(wait + 2) * MS)} {queued=2000000 reason="lock" lock=${LOCK} waker="holder" waker_tid=11 @stack["main (app.c:10)" "take (app.c:20)"] waker_stack=["work (app.c:31)" "release (app.c:44)"]}`);
    state(t, 6, 'Running', 75);
    state(t + 75, 6, 'Sleeping', 25, ' {reason="sleep"}');
  }
  lines.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, head.concat(lines.map(([t, text]) => `${stamp(t)} ${text}`)).join('\n') + '\n');
}

/** Ten steps of a model of two modules as PyTorch's profiler writes them: forward, backward on a thread of its own, optimizer; JAX's names on a second device. */
export function makeTorch(file) {
  const events = [];
  let correlation = 0;
  const slice = (cat, name, tid, ts, dur, args = {}) => events.push({ ph: 'X', cat, name, pid: 10, tid, ts, dur, args });
  const kernel = (name, tid, at, begin, dur) => {
    correlation++;
    slice('cuda_runtime', 'cudaLaunchKernel', tid, at, 2, { correlation });
    events.push({ ph: 'X', cat: 'kernel', name, pid: 0, tid: 7, ts: begin, dur, args: { device: 0, stream: 7, correlation } });
  };
  for (let i = 0; i < 10; i++) {
    const t = 1000 + i * 1000;
    slice('user_annotation', `ProfilerStep#${i + 20}`, 10, t, 990);
    ['Linear_0', 'Linear_1'].forEach((module, m) => {
      const at = t + 10 + m * 100, flow = i * 10 + m + 1;
      slice('python_function', `nn.Module: ${module}`, 10, at, 90);
      slice('cpu_op', 'aten::linear', 10, at + 5, 80, { 'Input Dims': [[64, 128], [128, 256 << m], []], 'Sequence number': flow });
      events.push({ ph: 's', id: flow, cat: 'fwdbwd', name: 'fwdbwd', pid: 10, tid: 10, ts: at + 5 }, { ph: 'f', bp: 'e', id: flow, cat: 'fwdbwd', name: 'fwdbwd', pid: 10, tid: 11, ts: t + 400 + m * 100 });
      slice('cpu_op', 'aten::mm', 10, at + 10, 30, { 'Input Dims': [[64, 128], [128, 256 << m]] });
      kernel(GEMM, 10, at + 15, t + 50 + m * 100, 30 + i + m);
      slice('cpu_op', 'aten::relu', 10, at + 50, 20);
      kernel(RELU, 10, at + 55, t + 100 + m * 100, 7 + i % 3);
      slice('cpu_op', 'autograd::engine::evaluate_function: AddmmBackward0', 11, t + 400 + m * 100, 90, { 'Sequence number': flow, 'Fwd thread id': 1 });
      slice('cpu_op', 'aten::mm', 11, t + 405 + m * 100, 40);
      kernel(GEMM, 11, t + 410 + m * 100, t + 430 + m * 100, 40 + i);
    });
    slice('user_annotation', 'Optimizer.step#Adam.step', 10, t + 700, 80);
    slice('cpu_op', 'aten::add_', 10, t + 710, 40);
    kernel('adam_kernel', 10, t + 720, t + 740 + (i === 4 ? 150 : 0), 11);
  }
  events.push({ ph: 'X', cat: 'kernel', name: 'fusion_3', pid: 1, tid: 9, ts: 1500, dur: 50, args: { device: 1, stream: 9, tf_op: 'jit(step)/jit(main)/transpose(jvp(MLP))/Dense_0/dot_general[dims=1]' } });
  fs.writeFileSync(file, JSON.stringify({ schemaVersion: 1, traceEvents: events.sort((a, b) => a.ts - b.ts) }));
}
