#!/usr/bin/env bash
# libstave-serving: the files of a traced server byte by byte, with threads, after SIGKILL, and when servers follow each other.
# shellcheck disable=SC2154 # BUILD comes from tests/run
. "$SRC/tests/harness/cli.sh"
server=$BUILD/tests/stress/serving_calls
[ -x "$server" ] || skip_all "the stress programs were not built"
py() { python3 "$SRC/tests/stress/serving.py" "$@"; }
golden=$SRC/tests/stress/serving
# The real time, the monotonic arrivals and the microsecond into which an event falls differ from run to run.
mask_json() { sed -E 's/"baseTimeNanoseconds":[0-9]+/"baseTimeNanoseconds":B/' "$1" | python3 -c '
import re, sys
text = sys.stdin.read()
first = min(int(t) for t in re.findall(r"\"ts\":(\d{5,})", text))
def ns(m):
    return m[1] + re.sub(r"\d{5,}", lambda n: "+%d" % (int(n[0]) // 1000 - first), m[2])
text = re.sub(r"(ts_ns\":|times_ns\":)(\d+|\[[-0-9,]*\])", ns, text)
print(re.sub(r"(ts\":)(\d{5,})", lambda m: m[1] + "+%d" % (int(m[2]) - first), text), end="")'; }
mask_csv() { sed -E 's/"[0-9]{8,}(;[0-9]+)*"/"ARRIVALS"/g' "$1"; }
same() { # NAME: compared with the golden file, or made with UPDATE=1
  if [ "${UPDATE:-}" = 1 ]; then mkdir -p "$golden"; cp "$1" "$golden/$1"; fi
  diff "$golden/$1" "$1"
}

for names in golden newer; do
  check "runs_$names" "$server" $names $names
  check "counts_$names" grep -q 'requests 9 batches 4 rejected 1 failed 2 open 0 0 lost 0' "runs_$names.out"
done
seed=golden/batching_trace newer=newer
mask_json $seed.json >seed.json; mask_json $newer/perfetto_trace.json >newer.json
mask_csv ${seed}_summary.csv >seed.csv; mask_csv $newer/trace.csv >newer.csv
for file in seed.json newer.json seed.csv newer.csv; do check "golden_$file" same $file; done
for file in $seed.json $newer/perfetto_trace.json; do check "layout_${file%%/*}" py json $file; done
for file in ${seed}_summary.csv $newer/trace.csv; do check "arithmetic_${file%%/*}" py csv $file; done
check each_in_one_batch py same $seed.json ${seed}_summary.csv
metrics() { head -n 1 $newer/metrics.csv | grep -qx 'timestamp_us,queue_size,rejected_total' && [ "$(tail -n 1 $newer/metrics.csv | cut -d, -f2-)" = 0,1 ]; }
check metrics metrics
no_warmup() { ! grep -q '^0,' ${seed}_summary.csv && grep -q warming_request_enqueued $seed.json && grep -q '"warming_batch_id"' $seed.json; }
check warmup_is_apart no_warmup

# The trace: whole, and everything can be made of it again.
trace_is_valid() { "$STAVE" validate $seed.pftrace >valid.txt; cat valid.txt; ! grep -q error valid.txt && grep -q 'events checked' valid.txt; }
check trace_is_valid trace_is_valid
"$STAVE" convert -q $seed.pftrace --dialect batching -o again.json; "$STAVE" convert -q $seed.pftrace --dialect batching -o again.csv
mask_json again.json | sort >again.sorted
sort seed.json >seed.sorted
check json_again diff seed.sorted again.sorted
check csv_again diff <(sort ${seed}_summary.csv) <(sort again.csv)
# The same rows in every table from each form, with a batch that failed, requests that were rejected, cancelled and answered.
rows() { python3 "$SRC/tests/system/server_forms.py" rows "$STAVE" "$1" >"$2.rows"; }
same_rows() { rows $seed.pftrace trace && rows "$1" form && grep -q failed trace.rows && diff trace.rows form.rows; }
for file in $seed.json ${seed}_summary.csv again.json again.csv; do check "rows_${file##*/}" same_rows $file; done
flows() { # each request's slice has an arrow to its batch, each batch one to its worker
  "$STAVE" query $seed.pftrace --to csv "select a.name || '>' || b.name as way, count(*) as n from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id group by way order by way" >flows.csv
  cat flows.csv; grep -q '^request>batch,8$' flows.csv && grep -q 'batch>demo.*,3$' flows.csv && grep -q 'warming_request>warming_batch,2' flows.csv
}
check flows flows
phases() { # the children of a request lie in it and follow each other
  "$STAVE" query $seed.pftrace --to csv "select p.id, p.dur, sum(c.dur) as s from slice p join slice c on c.parent_id = p.id where p.name = 'request' group by p.id, p.dur" |
    awk -F, 'NR > 1 { n++; if ($3 > $2 || $3 < $2 * 0.97) { print; bad = 1 } } END { exit bad || n < 7 }'
}
check phases phases
counters() { "$STAVE" query $seed.pftrace --to csv "select distinct name from counter_track" >c.csv; for c in 'queue depth' 'in flight' 'batch size' rejected; do grep -q "$c" c.csv || { cat c.csv; return 1; }; done; }
check counters counters

check threads "$server" threads threads
check threads_counts grep -q 'requests 20000 batches 2500 rejected 0 failed 0 open 0 0 lost 0' threads.out
check threads_csv py csv threads/batching_trace_summary.csv
threads_all() { [ "$(py same threads/batching_trace.json threads/batching_trace_summary.csv)" = 20000 ]; }
check threads_all threads_all
report_says() { "$STAVE" report batch "$1" --json --by summary | python3 -c "
import json, sys
s = json.load(sys.stdin)['summary']
assert s['requests'] == $2 and s['in_two_batches'] == 0 and s['open'] == 0, s"; }
check threads_report report_says threads/batching_trace.pftrace 20000

# All processors are busy: what can wait does, and in the end nothing is missing. The kernel counts who wants to run, however nice: tests beside this one go on.
spinners=; for _ in $(seq $((2 * $(nproc)))); do nice -n 10 sh -c 'while :; do :; done' & spinners="$spinners $!"; done
check crowded "$server" crowded threads
# A server with little to do is not behind for ever.
few_are_there() { for _ in $(seq 600); do [ "$(grep -cs '"name":"request_enqueued"' few/batching_trace.json)" != 100 ] || return 0; sleep 0.05; done; return 1; }
mkfifo end; "$server" few few <end >few.out 2>&1 & few=$!; exec 9>end
check crowded_few few_are_there
exec 9>&-; wait $few
check crowded_few_waited grep -qE '^deferred [1-9]' few.out
# shellcheck disable=SC2086 # numbers
kill $spinners; wait $spinners 2>/dev/null
check crowded_counts grep -q 'requests 20000 batches 2500 rejected 0 failed 0 open 0 0 lost 0' crowded.out
check crowded_waited grep -qE '^deferred [1-9]' crowded.out
crowded_all() { [ "$(py same crowded/batching_trace.json crowded/batching_trace_summary.csv)" = 20000 ]; }
check crowded_all crowded_all

# Batches of sizes at which lists of members are cut: the same in the file of the records and in what the events make again.
check sizes "$server" sizes sizes
"$STAVE" convert -q sizes/batching_trace.pftrace --dialect batching -o sizes.csv
members() { python3 -c "
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    ids = [int(i) for i in r['request_ids'].split(';')]
    assert int(r['batch_id']) == int(r['batch_size']) == len(ids), r
    print(r['batch_id'], ids)" "$1" | sort; }
members sizes/batching_trace_summary.csv >sizes.records; members sizes.csv >sizes.events
check sizes_are_all_there test "$(grep -o '[0-9]*,\|[0-9]*]' sizes.records | sort -u | wc -l) $(wc -l <sizes.records)" = '815 13'
check sizes_in_both_queues diff sizes.records sizes.events

# Only slow and failed requests are kept, with what shared their batch: the same from each form, and what is known of the others is their number and their time.
check keep "$server" keep keep 'slow > 50ms'
check keep_counts grep -q 'requests 1010 batches 504 rejected 1 failed 2 open 0 0 lost 0' keep.out
check keep_left_out grep -q '^left out 1000 500' keep.out
kept=keep/batching_trace
kept_rows() { rows "$1" kept && cat kept.rows; }
kept_rows $kept.pftrace >kept.all
check keep_rows test "$(grep -c '^request [0-9]' kept.all) $(grep -c '^batch [0-9]' kept.all)" = '11 3'
"$STAVE" convert -q $kept.pftrace --dialect batching -o kept.json; "$STAVE" convert -q $kept.pftrace -o kept.txt; "$STAVE" cut -q $kept.pftrace -o kept.pftrace
for file in $kept.json ${kept}_summary.csv kept.json kept.txt kept.pftrace; do check "keep_rows_${file//\//_}" diff kept.all <(kept_rows $file); done
kept_summary() { "$STAVE" report batch "$1" --json --by summary >"$2.summary"; cat "$2.summary"; }
kept_report() {
  kept_summary $kept.pftrace kept && python3 -c "
import json
s = json.load(open('kept.summary'))['summary']
whole = 500 * 3.51 + 1.8 + 1.71 + 1.62 + 51.53 + 3.51 + 3.51
assert (s['requests'], s['left_out'], s['rejected'], s['failed'], s['cancelled'], s['open'], s['batches']) == (1008, 1000, 1, 1, 1, 0, 503), s
assert abs(s['latency_mean_ns'] - whole / 1008 * 1e6) < 1 and s['latency_max_ns'] == 51530000, s
assert not {'latency_p50_ns', 'latency_p99_ns', 'queue_max', 'efficiency'} & set(s), s
assert abs(s['throughput_per_s'] * s['span_ns'] / 1e9 - 1008) < 1e-6 and s['batch_size_mean'] == 1009 / 503, s"
}
check keep_report kept_report
for file in $kept.json kept.json kept.txt kept.pftrace; do check "keep_report_${file//\//_}" sh -c '"$0" report batch "$1" --json --by summary | diff kept.summary -' "$STAVE" $file; done
for file in $kept.pftrace $kept.json; do run_any "keep_llm_${file##*.}" 0 "$STAVE" report llm $file --by summary; check "keep_llm_says_${file##*.}" grep -q '1000 answered requests were left out' "keep_llm_${file##*.}.err"; done
run_any keep_compared 3 "$STAVE" report batch $kept.pftrace --baseline $seed.pftrace
check keep_compared_says grep -q 'requests were left out' keep_compared.err
check keep_p99 "$server" keep_p99 keep p99
check keep_p99_left_out sh -c 'n=$(sed -n "s/^left out \([0-9]*\) .*/\1/p" keep_p99.out); [ "$n" -gt 0 ] && [ "$n" -lt 1000 ]'
run_any keep_refuses 1 "$server" keep_none keep 'slow > 5'
check keep_refuses_says grep -q "expected all, failed, slow > 50ms" keep_refuses.err

# Killed without a word: the JSON can be read, and with the trace nothing is missing.
"$server" killed kill >killed.out 2>&1
check killed_json python3 -c 'import json; e = json.load(open("killed/batching_trace.json"))["traceEvents"]; assert sum(x["name"] == "request_enqueued" for x in e) >= 1000, len(e)'
check killed_csv py csv killed/batching_trace_summary.csv
check killed_recovers "$STAVE" recover killed/batching_trace.pftrace
check killed_all report_says killed/batching_trace.pftrace 2000
"$STAVE" convert -q killed/batching_trace.pftrace --dialect batching -o killed/again.json
"$STAVE" convert -q killed/batching_trace.pftrace --dialect batching -o killed/again.csv
killed_again() { py json killed/again.json && [ "$(py same killed/again.json killed/again.csv)" = 2000 ]; }
check killed_again killed_again

# The next server keeps what the one before it wrote, under one number for all files; or not, if it is configured so.
sum() { cksum <"$1"; }
before=$(sum $seed.json)
check again "$server" golden golden
kept() { [ "$(sum golden/batching_trace.1.json)" = "$before" ] && [ -s golden/batching_trace_summary.1.csv ] && [ -s golden/batching_trace.1.pftrace ] && [ -s $seed.json ]; }
check kept kept
check truncates "$server" golden golden truncate
only_one() { [ ! -e golden/batching_trace.2.json ] && [ -e golden/batching_trace.1.json ]; }
check only_one only_one
mkfifo hold; "$server" golden busy <hold >busy.out & pid=$!; exec 8>hold
for _ in $(seq 600); do [ -s busy.out ] && break; sleep 0.05; done
check beside "$server" golden golden
two_servers() { [ -s "golden/batching_trace.2.json" ] && compgen -G 'golden/batching_trace.[0-9]*[0-9][0-9].json' >/dev/null && head -c 100 "$(head -n 1 busy.out)" | grep -q traceEvents; }
check two_servers two_servers
exec 8>&-; wait $pid

# Names that are no directory.
touch file
for bad in file new.json new/trace.pftrace; do run_any "refuses_${bad//\//_}" 1 "$server" $bad golden; done
check hint grep -q 'must be a directory' refuses_file.err refuses_new.json.err
check hint_leave_out grep -q 'leave out the file name' refuses_new.json.err

# The example, and every form of the report on its files.
check example "$BUILD/examples/serving" example
for file in batching_trace.pftrace batching_trace.json batching_trace_summary.csv; do check "report_$file" report_says example/$file 400; done
