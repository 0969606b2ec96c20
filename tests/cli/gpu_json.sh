#!/usr/bin/env bash
# GPU work in JSON files whose categories do not say so: TensorFlow's timelines and profiles, rocprof, TraceSmith's first form.
. "$SRC/tests/harness/cli.sh"

# count REPORT NUMBER: kernels, copies and fills
count() { grep -qE "kernels, copies, fills +$2\$" "$1"; }

# A timeline (tf.compat.v1.RunOptions.FULL_TRACE): the same kernel is on four rows.
row() { printf '{"name":"process_name","ph":"M","pid":%s,"args":{"name":"%s"}},\n' "$1" "$2"; }
op() { printf '{"ph":"X","cat":"Op","name":"%s","pid":%s,"tid":0,"ts":%s,"dur":%s,"args":{"name":"dense/%s","op":"%s"}}' "$2" "$1" "$3" "$4" "$2" "$2"; }
{
  echo '{"traceEvents":['
  row 1 "/job:localhost/replica:0/task:0/device:CPU:0 Compute"
  row 3 "/job:localhost/replica:0/task:0/device:GPU:0 Compute"
  row 4 "/job:localhost/replica:0/task:0/device:GPU:0 Tensors"
  row 5 "/device:GPU:0/stream:all Compute"
  row 7 "/device:GPU:0/memcpy Compute"
  row 9 "/device:GPU:0/stream:13 Compute"
  row 13 "/device:GPU:0/sync Compute"
  row 11 "/device:GPU:0/stream:14<MemcpyH2D> Compute"
  op 1 Identity 90 5; echo ,
  op 3 MatMul 100 50; echo ,
  op 5 MatMul 110 30; echo ,
  op 7 MemcpyH2D 90 10; echo ,
  op 9 MatMul 110 30; echo ,
  op 13 cuStreamSynchronize 95 60; echo ,
  op 11 MemcpyH2D 90 10
  echo ']}'
} >timeline.json
run_any timeline 0 "$STAVE" report gpu -q timeline.json
check "a timeline's work counts once" count timeline.out 2
run_any timeline_cat 0 "$STAVE" cat -q timeline.json
check "waits" grep -q 'cuStreamSynchronize.*cuda_sync' timeline_cat.out
run_any timeline_json 0 "$STAVE" report gpu -q --json timeline.json
check "its device" grep -q '"device":"GPU 0","number":0,"kernels":1,"copies":1' timeline_json.out
check "its streams" grep -q '"stream":14,"pid":11,"work":1' timeline_json.out
# (a comma too many at the end is only a finding)
grep -v 'stream:1' timeline.json | grep -v '"pid":9,\|"pid":11,' >all.json
run_any all 0 "$STAVE" report gpu -q all.json
check "rows of all streams, where no stream has its own" count all.out 2
grep -v 'stream:\|memcpy' timeline.json | grep -v '"pid":[579],\|"pid":11,' >operations.json
run_any operations 0 "$STAVE" report gpu -q operations.json
check "the executor's operations, where nothing else is there" count operations.out 1
run_any host_only 0 "$STAVE" cat -q operations.json
check "the CPU's operations keep their category" grep -q 'Identity.*Op' host_only.out

# A profile (TensorBoard's trace.json.gz, JAX): threads are streams, or derived from them; calls are on the host.
cat >profile.json <<'JSON'
{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:1"}},
{"ph":"M","pid":1,"tid":20,"name":"thread_name","args":{"name":"Stream #20(Compute,MemcpyH2D)"}},
{"ph":"M","pid":1,"tid":99,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"X","pid":701,"tid":5,"ts":9.5,"dur":2.25,"name":"cuLaunchKernel","args":{"correlation_id":"31","device_id":"1"}},
{"ph":"X","pid":701,"tid":5,"ts":1,"dur":20,"name":"ExecutorState::Process","args":{"id":"3"}},
{"ph":"X","pid":1,"tid":20,"ts":14.5,"dur":4,"name":"input_memset_fusion","args":{"correlation_id":"31","kernel_details":"regs:32 grid:1,1,1"}},
{"ph":"X","pid":1,"tid":20,"ts":20,"dur":2,"name":"MemcpyH2D","args":{"correlation_id":"32","memcpy_details":"kind_src:pinned kind_dst:device size:4096 dest:1 async:1"}},
{"ph":"X","pid":1,"tid":99,"ts":14.5,"dur":4,"name":"fusion.3","args":{"hlo_op":"fusion.3"}},
{}
]}
JSON
run_any profile 0 "$STAVE" report gpu -q profile.json
check "a profile's streams are work, what was derived from them is not" count profile.out 2
check "the call that launched the kernel" grep -qE 'work without a launch +1$' profile.out
run_any profile_cat 0 "$STAVE" cat -q profile.json
check "the device of the row's name" grep -q 'input_memset_fusion.*kernel.*device=1' profile_cat.out
check "bytes from the details" grep -q 'MemcpyH2D.*bytes=4096' profile_cat.out

# rocprof --hip-trace --hsa-trace: all numbers are texts.
cat >rocprof.json <<'JSON'
{ "traceEvents":[{}
,{"args":{"name":"Markers and Ranges"},"ph":"M","pid":"1","name":"process_name","sort_index":"0"}
,{"args":{"name":"CPU HIP API"},"ph":"M","pid":"2","name":"process_name","sort_index":"1"}
,{"args":{"name":"COPY"},"ph":"M","pid":"3","name":"process_name","sort_index":"2"}
,{"args":{"name":"GPU0"},"ph":"M","pid":"6","name":"process_name","sort_index":"3"}
,{"args":{"name":"GPU1"},"ph":"M","pid":"7","name":"process_name","sort_index":"4"}
,{"ph":"X","name":"step","pid":"1","tid":"77","ts":"10","dur":"100","args":{"BeginNs":"10000","EndNs":"110000","pid":"1","tid":"77","Name":"step","Index":"0"}}
,{"ph":"X","name":"hipMemcpy","pid":"2","tid":"77","ts":"20","dur":"9","args":{"BeginNs":"20000","EndNs":"29000","pid":"2","tid":"77","Name":"hipMemcpy","args":"( dst(0x7f00) src(0x5500) sizeBytes(4096) kind(1))","Index":"3","DurationNs":"9000"}}
,{"ph":"X","name":"hipLaunchKernel","pid":"2","tid":"77","ts":"30","dur":"4","args":{"BeginNs":"30000","EndNs":"34000","pid":"2","tid":"77","Name":"hipLaunchKernel","args":"( stream(1))","Index":"4","DurationNs":"4000"}}
,{"ph":"X","name":"CopyHostToDevice","pid":"3","tid":"0","ts":"22","dur":"5","args":{"BeginNs":"22000","EndNs":"27000","dev-id":"0","queue-id":"0","Name":"CopyHostToDevice","pid":"3","tid":"0","Index":"3","proc-id":"77","DurationNs":"5000"}}
,{"ph":"X","name":"vector_add","pid":"6","tid":"1","ts":"40","dur":"12","args":{"BeginNs":"40000","EndNs":"52000","dev-id":"0","queue-id":"0","stream-id":"1","Name":"vector_add","pid":"6","tid":"1","Index":"4","proc-id":"77","DurationNs":"12000"}}
,{"ph":"X","name":"FillBuffer","pid":"7","tid":"0","ts":"60","dur":"2","args":{"BeginNs":"60000","EndNs":"62000","dev-id":"1","queue-id":"2","Name":"FillBuffer","Index":"5","proc-id":"77","DurationNs":"2000"}}
]}
JSON
run_any rocprof 0 "$STAVE" report gpu -q rocprof.json
check "kernels, copies and fills of rocprof" count rocprof.out 3
check "by name" grep -q vector_add rocprof.out
check "calls by their number" grep -qE 'work without a launch +1$' rocprof.out
run_any rocprof_cat 0 "$STAVE" cat -q rocprof.json
check "calls" grep -q 'hipLaunchKernel.*hip_runtime' rocprof_cat.out
check "ranges" grep -q 'step.*user_annotation' rocprof_cat.out
check "a fill" grep -q 'FillBuffer.*gpu_memset' rocprof_cat.out
run_any rocprof_pf 0 "$STAVE" convert -q rocprof.json -o rocprof.pftrace
run_any rocprof_back 0 "$STAVE" report gpu -q rocprof.pftrace
check "through Perfetto the same" count rocprof_back.out 3

# rocprofv3 --output-format json: tables of names, records in groups, two processes.
v3=$SRC/tests/fuzz/corpus/rocprofv3_read/two_processes.json
run_any v3_info 0 "$STAVE" info "$v3"
check "rocprofv3's JSON is recognised" grep -q 'format *rocprofv3' v3_info.out
run_any v3 0 "$STAVE" report gpu -q "$v3"
check "its kernels and copies" count v3.out 3
check "joined with their calls" grep -qE 'work without a launch +1$' v3.out
check "a copy's direction" grep -qE 'host to device +4(.0+)? KiB|host to device +4096' v3.out
run_any v3_cat 0 "$STAVE" cat -q "$v3"
check "a kernel by its name, groups of work items" grep -q 'gemm(float\*).*grid=\[4,* *1,* *1\]' v3_cat.out
check "on its device and stream" sh -c 'grep -q "name=.GPU 0 Model" v3_cat.out && grep -q "name=.Stream 2" v3_cat.out'
check "an arrow has two ends" sh -c '[ "$(grep -c @flow_begin v3_cat.out)" = 2 ] && [ "$(grep -c @flow_end v3_cat.out)" = 2 ]'
check "calls and markers" sh -c 'grep -q "hipLaunchKernel.*hip_runtime" v3_cat.out && grep -q "step 1.*user_annotation" v3_cat.out'
run_any v3_findings 0 "$STAVE" cat "$v3"
check "groups that are not read are said" grep -q 'group of records that is not read' v3_findings.err
run_any v3_odd 0 "$STAVE" cat "$SRC/tests/fuzz/corpus/rocprofv3_read/odd.json"
check "records without times" grep -q 'record without its times' v3_odd.err
check "groups that are not lists" grep -q 'group that is not a list' v3_odd.err
check "records that end before they begin" grep -q 'ends before it begins' v3_odd.err
head -c 2000 "$v3" >v3_cut.json
run_any v3_cut 3 "$STAVE" cat v3_cut.json
check "a truncated file is reported" grep -q 'truncated' v3_cut.err

# TraceSmith 0.1: a number says what an event is.
cat >tracesmith.json <<'JSON'
{"traceEvents":[
{"name":"gemm","cat":"kernel","ph":"X","ts":10,"pid":0,"tid":1,"id":1,"dur":5,"args":{"type":"1","device_id":0,"stream_id":1}},
{"name":"upload","cat":"memory","ph":"X","ts":20,"pid":0,"tid":1,"id":2,"dur":5,"args":{"type":"3","device_id":0,"stream_id":1,"size_bytes":1000}},
{"name":"clear","cat":"memory","ph":"X","ts":30,"pid":0,"tid":1,"id":3,"dur":5,"args":{"type":"6","device_id":0,"stream_id":1}},
{"name":"wait","cat":"stream","ph":"X","ts":40,"pid":0,"tid":1,"id":4,"dur":5,"args":{"type":"7","device_id":0,"stream_id":1}}
],"displayTimeUnit":"ns","otherData":{"version":"TraceSmith v0.1"}}
JSON
run_any tracesmith 0 "$STAVE" report gpu -q tracesmith.json
check "TraceSmith's first form" count tracesmith.out 3
run_any tracesmith_cat 0 "$STAVE" cat -q tracesmith.json
check "a copy with its direction" grep -q 'upload.*gpu_memcpy.*copyKind="\?HtoD' tracesmith_cat.out
check "a wait" grep -q 'wait.*cuda_sync' tracesmith_cat.out

# What only looks like it, and what is broken.
cat >odd.json <<'JSON'
[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"GPU0"}},
{"ph":"M","pid":2,"name":"process_name","args":{"name":"/device:GPU:99999999999999999999999 Compute"}},
{"ph":"M","pid":3,"name":"process_name","args":{"name":"/device:GPU:"}},
{"ph":"M","pid":4,"name":"process_name","args":{"name":"/device:GPU:0/stream: Compute"}},
{"ph":"M","pid":5,"name":"process_name","args":{"name":"/device:GPU:0 Tensors"}},
{"ph":"M","pid":6,"name":"process_name","args":{"name":7}},
{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"not of rocprof"},
{"ph":"X","pid":2,"tid":1,"ts":1,"dur":1,"name":"too many digits"},
{"ph":"X","pid":3,"tid":1,"ts":1,"dur":1,"name":"no device"},
{"ph":"X","pid":4,"tid":1,"ts":1,"dur":1,"name":"of no stream","args":{"correlation_id":{"a":1},"memcpy_details":"size:"}},
{"ph":"X","pid":4,"tid":1,"ts":3,"dur":1,"cat":"mine","name":"with a category of its own"},
{"ph":"X","pid":5,"tid":1,"ts":1,"dur":1,"name":"a tensor"},
{"ph":"X","pid":8,"tid":1,"ts":1,"dur":1,"id":1,"cat":"memory","name":"no stream","args":{"type":"3","device_id":0}},
{"ph":"X","pid":8,"tid":1,"ts":3,"dur":1,"id":1,"cat":"memory","name":"no such type","args":{"type":"900","device_id":0,"stream_id":1}},
{"ph":"X","pid":8,"tid":1,"ts":5,"dur":1,"id":1,"name":"no category","args":{"type":3,"device_id":0,"stream_id":1}}
]
JSON
run_any odd 0 "$STAVE" report gpu -q odd.json
check "only the row of a device is taken" count odd.out 1
