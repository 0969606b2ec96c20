#!/usr/bin/env python3
"""seed_file.py input|sbt|unfinished|full|basic: TraceSmith's example of six events, as a Stave text file in our words, and the bytes of TraceSmith's own file for it,
with all features and with none; right where that one is not: the allocation, which has a duration, is a slice, the completion has a duration."""
import struct, sys

MIB = 1 << 20
#        name, cat, type, track, stream, correlation, ts, dur, memory (bytes, from, to), is a kernel
events = [
    ("cudaMalloc", "memory", 15, "GPU Memory Ops", 0, 1, 1000, 50, (MIB, 0, 0x100000000), False),
    ("cudaMemcpy", "memory", 3, "GPU Memory Copy (H->D)", 1, 1, 1100, 200, (MIB, 0x7fff00000000, 0x100000000), False),
    ("vectorAdd", "kernel", 1, "GPU Compute", 1, 2, 1350, 500, None, True),
    ("vectorAdd", "kernel", 2, "GPU Compute", 1, 2, 1850, 0, None, True),
    ("cudaMemcpy", "memory", 4, "GPU Memory Copy (D->H)", 1, 3, 1900, 180, (MIB, 0x100000000, 0x7fff00000000), False),
    ("cudaStreamSynchronize", "stream", 7, "GPU Synchronization", 1, 3, 2100, 50, None, False)]
ours = {15: "gpu_alloc", 3: "gpu_memcpy", 4: "gpu_memcpy", 1: "kernel", 2: "kernel", 7: "cuda_sync"}

def as_input():
    print('# stave text 1\nclock boottime\ntrack #1 process uuid=0x1 pid=7 name="p"\ntrack #2 gpu uuid=0x2 parent=#1 name="GPU 0"')
    for s in (0, 1):
        print(f'track #{3 + s} stream uuid=0x{3 + s} parent=#2 name="Stream {s}"')
    for name, _, kind, _, stream, corr, ts, dur, memory, kernel in events:
        args = f"@correlation:{corr:#x} device=0 context=0 stream={stream}"
        if memory and kind == 15:
            args += f' Addr={memory[2]} Bytes={memory[0]} "Total Allocated"={memory[0]} memory="device"'
        elif memory:
            args += f' copyKind="{"HtoD" if kind == 3 else "DtoH"}" bytes={memory[0]} "from address"={memory[1]:#x} "to address"={memory[2]:#x}'
        if kernel:
            args += ' grid=[256 1 1] block=[256 1 1] "registers per thread"=32 "shared memory"=0'
        if kind == 7:
            args += ' cuda_sync_kind="Stream Sync"'
        what = "instant" if kind == 2 else "begin"
        print(f'{ts / 1e6:.9f} {what} #{3 + stream} "{name}" cat="{ours[kind]}" {{{args}}}')
        if kind != 2:
            print(f"{(ts + dur) / 1e6:.9f} end #{3 + stream}")

def block(lines, indent): return ",\n".join(" " * indent + line for line in lines)
def as_object(lines): return "    {\n" + block(lines, 6) + "\n    }"
def names():
    yield as_object(['"name": "process_name"', '"ph": "M"', '"pid": 0', '"args": {\n        "name": "GPU Device 0"\n      }'])
    for s in (0, 1):
        yield as_object(['"name": "thread_name"', '"ph": "M"', '"pid": 0', f'"tid": {s}', '"args": {\n        "name": "Stream %d"\n      }' % s])
def body(full):
    for name, cat, kind, track, stream, corr, ts, dur, memory, kernel in events:
        args = [f'"track_name": "{track}"', f'"correlation_id": {corr}'] if full else []
        args += [f'"event_type": "{kind}"', '"device_id": 0', f'"stream_id": {stream}']
        if memory:
            args += [f'"size_bytes": {memory[0]}', f'"src_address": "{memory[1]:#x}"', f'"dst_address": "{memory[2]:#x}"']
        if kernel:
            args += ['"grid_dim": [256, 1, 1]', '"block_dim": [256, 1, 1]', '"shared_memory_bytes": 0', '"registers_per_thread": 32']
        yield as_object([f'"name": "{name}"', f'"cat": "{cat}"', '"ph": "X"', f'"ts": {ts}', '"pid": 0', f'"tid": {stream}', f'"dur": {dur}',
                         '"args": {\n' + block(args, 8) + "\n      }"])
def arrows():
    for corr in (1, 2, 3):
        mine = [e for e in events if e[5] == corr]
        for phase, e in (("s", mine[0]), ("f", mine[-1])):
            yield as_object(['"name": "Dependency"', '"cat": "flow"', f'"ph": "{phase}"', f'"ts": {e[6]}', '"pid": 0', f'"tid": {e[4]}', f'"id": {corr}', '"bp": "e"'])
def as_file(full):
    parts = [*names(), *body(full), *(arrows() if full else [])]
    print('{\n  "traceEvents": [\n' + ",\n".join(parts) + '\n  ],\n  "displayTimeUnit": "ns",\n  "otherData": {\n    "version": "Stave"\n  }\n}')

def varint(v):
    v &= (1 << 64) - 1
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7f | 0x80)
        v >>= 7
    return bytes(out + bytes([v]))
def text(s): return varint(len(s)) + s.encode()
def as_sbt(finished):
    """The same as TraceSmith's binary trace: 72 bytes of header, metadata, devices, events, names."""
    names = []
    def index(name):
        if name not in names: names.append(name)
        return varint(names.index(name))
    meta = b"\1" + text("app") + text("app --fast") + varint(0) + varint(9) + text("host") + varint(7)
    devices = b"\3" + varint(1) + varint(0) + text("Model X") + text("ACME") + varint(8) * 9
    body, last = b"\4" + varint(events[0][6] * 1000), events[0][6] * 1000
    for name, _, kind, _, stream, corr, ts, dur, memory, kernel in events:
        flags = (1 if dur else 0) | (2 if kernel else 0) | (4 if memory else 0)
        body += bytes([kind, flags]) + varint(ts * 1000 - last) + (varint(dur * 1000) if dur else b"") + varint(0) + varint(stream) + varint(corr) + index(name)
        if kernel: body += b"".join(map(varint, (256, 1, 1, 256, 1, 1, 0, 32)))
        if memory: body += varint(memory[1]) + varint(memory[2]) + varint(memory[0])
        last = ts * 1000
    strings = b"\2" + varint(len(names)) + b"".join(map(text, names)) + b"\xff"
    at = [72, 72 + len(meta), 72 + len(meta) + len(devices)]
    at.append(at[2] + len(body))
    offsets = (at[0], at[3], at[1], at[2], 0, len(events)) if finished else (0,) * 6
    head = b"SBT\0" + struct.pack("<HHII6QB7x", 0, 1, 3, 72, *offsets, 0)
    assert len(head) == 72
    sys.stdout.buffer.write(head + meta + devices + body + (strings if finished else b""))

if sys.argv[1] == "sbt": as_sbt(True)
elif sys.argv[1] == "unfinished": as_sbt(False)
elif sys.argv[1] == "input": as_input()
else: as_file(sys.argv[1] == "full")
