#!/usr/bin/env bash
# What a user of stave/gpu.h writes, and what is then in the file (gpu_feed.c).
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
code=0
scene() { rm -f "$1.pftrace"; STAVE_OUT=$1.pftrace "$BUILD/tests/stress/gpu_feed" "$1" >out 2>err; code=$?; [ $code = 0 ] && [ ! -s err ]; }
text() { "$STAVE" cat -q "$1.pftrace" >text; }
say() { if [ "$1" = 0 ]; then echo "ok gpu: $2"; else echo "not ok gpu: $2: ${3:-} exit $code $(head -n 3 err)"; fi; }
has() { local t; for t; do grep -qF -- "$t" text || { echo "lacks $t"; return 1; }; done; }
count() { "$STAVE" query -q --to csv "$1" "$2" | tail -n 1; }

scene all && text all; say $? "every kind of event"
why=$(has ' gpu ' 'name="GPU 0 Model X" order=0' 'name="Context 1"' ' stream ' 'name="Stream 7"' 'name="Queue 2"'); say $? "rows: device, context, stream, queue" "$why"
why=$(has '"gemm" cat="kernel" {@correlation:0x1 @flow:' 'device=0 context=1 stream=7 grid=[256 2 1] block=[128 1 4] "registers per thread"=32 "shared memory"=0}'); say $? "a kernel" "$why"
why=$(has '"shared memory"=48 queued=3000 submitted=2000 "graph id"=5 "graph node id"=6 thread=77 "call stack"=["inner" "outer"] "static shared memory"=16 "dynamic shared memory"=32 "est. achieved occupancy %"=62.5 note="a \"quoted\" word"'); say $? "what few kernels have" "$why"
why=$(has '"Memcpy HtoD (Pinned -> Device)" cat="gpu_memcpy"' 'bytes=20000 "memory bandwidth (GB/s)"=2.0 "from address"=0x7000 "to address"=0x1000' '"Memcpy PtoP"' 'fromDevice=0 toDevice=1' '"Memset (Device)" cat="gpu_memset"' 'value=255'); say $? "copies and fills" "$why"
why=$(has '"Stream Wait Event" cat="cuda_sync"' 'wait_on_stream=2 wait_on_cuda_event_record_corr_id=4 wait_on_cuda_event_id=3' '"Context Sync"'); say $? "waits" "$why"
why=$(has '"ncclDevKernel_ReduceScatter" cat="kernel"' '"Collective name"="reduce_scatter" dtype="BFloat16" "In msg nelems"=512 bytes=1024 Rank=1 "Group size"=8 reduction="Sum" "Process Group Name"="dp"'); say $? "collectives" "$why"
why=$(has '"mark"' '"kernel complete"' '"event record"' 'event=3' '"stream create"' '"stream destroy"' '"context create"' '"context destroy"' '"custom"' '"forward" cat="gpu_user_annotation"'); say $? "ranges and points" "$why"
why=$(has 'allocator="caching" purpose="gradient"' 'Bytes=-4096 "Device Id"=0 "Total Allocated"=100' 'Bytes=1048576 "Device Id"=0 "Total Allocated"=4196 memory="pinned"'); say $? "allocations; a free knows its bytes, pinned memory is the host's" "$why"
why=$(has 'name="memory in use" unit="bytes"' 'name="live allocations"' 'name="copy bandwidth (H→D)" unit="GB/s"' 'name="SM %" unit="%"' '{87.5}' ' loss ' '"CUPTI buffers" {12}'); say $? "counters and loss" "$why"
why=$(has 'name="GPU calls"' '"clEnqueueNDRangeKernel" cat="opencl_runtime"' '"no stream"' '"device" cat="gpu_device" {id=0 name="Model X" vendor="ACME" totalGlobalMem=1073741824 warpSize=32}'); say $? "calls reported later, work without a stream, the device itself" "$why"
[ "$(grep -c 'cat="gpu_device"' text)" = 1 ]; say $? "a device is described once"
[ "$(grep -o '@flow:[^ }]*' text | sort | uniq -c | awk '$1 == 2' | wc -l)" = 1 ]; say $? "an arrow from the launch to its kernel"
"$STAVE" validate -q all.pftrace >out 2>&1; ! grep -q '^error' out; say $? "the file has no errors" "$(cat out)"
STAVE_CATEGORIES=kernel scene all && text all && [ "$(grep -cE ' (begin|instant|counter) ' text)" = 4 ]; say $? "categories that are off" "$(grep -cE ' (begin|instant|counter) ' text)"

scene clock && text clock; say $? "clocks: offset, drift, reset"
why=$(has '{clock="device" ticks=1000000 uncertainty_ns=50}' '"ticks" cat="gpu_user_annotation"' 'host time'); say $? "ties of clocks are in the trace" "$why"
scene threads; say $? "four threads, three devices"
[ "$(count threads.pftrace "SELECT count(*) FROM slice WHERE name = 'k'")" = 20000 ]; say $? "no kernel is missing"
[ "$(count threads.pftrace 'SELECT count(DISTINCT arg.slice_id) FROM (SELECT slice_out AS slice_id FROM flow) arg')" = 20000 ]; say $? "an arrow each"
[ "$(count threads.pftrace "SELECT count(*) FROM track WHERE name LIKE 'Stream %'")" -ge 21 ]; say $? "a row per stream"
scene flows; say $? "numbers of one device, of all devices, of another process"
"$BUILD/tests/stress/gpu_feed" all >out 2>err && [ ! -s out ] && [ ! -s err ] && [ ! -e out.pftrace ]; say $? "without STAVE_OUT nothing happens"
