#!/usr/bin/env bash
# stave plot batch: panels of an inference server's batches from CSV and trace, and what is wrong with inputs.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "needs python3"

cat >make.py <<'PY'
import random, sys
random.seed(3)
head = ("batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,submit_ms,"
        "scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms,warmup,congested")
n, kind = int(sys.argv[1]), sys.argv[2]
drop = {"request_ids", "request_arrival_us", "congested"} if kind == "few" else set()
names = head.split(",")
print(",".join(c for c in names if c not in drop))
for i in range(n):
    size, worker = (1, 2, 4, 8)[i % 4], i % 3
    ids, arrivals = [8 * i + k for k in range(size)], [10**6 + 5000 * i + k for k in range(size)]
    t = [1 + (i * 7 % 5) / 2, 0.5, 0.75, 0.25, size * 1.5 if worker else size * 4, size * 1.6 if worker else size * 4.1, 0.1]
    row = [i, '"m"', worker, '"cuda"' if worker else '"cpu"', 0 if worker else -1, size, '"%s"' % ";".join(map(str, ids)),
           '"%s"' % ";".join(map(str, arrivals)), *("%.3f" % v for v in t), "%.3f" % (t[0] + t[2] + t[3] + t[5] + t[6]), "false",
           "true" if 20 < i < 30 else "false"]
    print(",".join(str(v) for c, v in zip(names, row) if c not in drop))
PY
cat >texts.py <<'PY'
import sys, xml.etree.ElementTree as tree
for e in tree.parse(sys.argv[1]).iter():
    if e.tag.split('}')[1] == 'text':
        print(e.text or e[0].tail)
PY
python3 make.py 120 all >all.csv
python3 make.py 1 all >one.csv
python3 make.py 40 few >few.csv
head -n 1 all.csv >no_rows.csv
: >empty.csv
cut -d, -f1-10 all.csv >columns.csv
sed '3s/[0-9.]*,false,false$/nan,false,false/; 5s/.*/4,torn/' all.csv >spoilt.csv

run list 0 "$STAVE" plot batch --list
check there_are_37 test "$("$STAVE" plot batch --list | wc -l)" = 37
run_any sheet 0 "$STAVE" plot batch all.csv -o sheet.svg
check every_title_is_on_the_sheet sh -c '"$0" plot batch --list | cut -c22- >titles; python3 texts.py sheet.svg >texts; while read -r t; do grep -qxF "$t" texts || { echo "$t"; exit 1; }; done <titles' "$STAVE"
check nothing_is_missing sh -c '! grep "^no data" texts'
if command -v xmllint >/dev/null; then check sheet_is_xml xmllint --noout sheet.svg; else skip sheet_is_xml "no xmllint"; fi
# Of CPU workers alone: no panel without data, none twice.
awk -F, 'NR == 1 || $4 ~ /cpu/' all.csv >cpu.csv
run_any cpu_sheet 0 "$STAVE" plot batch cpu.csv -o cpu.svg
check cpu_sheet_has_what_it_needs sh -c 'python3 texts.py cpu.svg >cpu_texts; grep -qxF "Rolling percentiles, 50 batches: CPU" cpu_texts && ! grep -E "^no data|: GPU$|size: CPU$" cpu_texts'
# One batch that took a hundred times as long: the axis is that of the others, and says so.
python3 make.py 120 all | awk -F, -v OFS=, 'NR == 60 { $(NF - 2) = "90000.000" } { print }' >outlier.csv
run_any outlier 0 "$STAVE" plot batch outlier.csv --panel workers-all -o outlier.svg
check outlier_is_counted sh -c 'python3 texts.py outlier.svg >outlier_texts; grep -q "^1 above, up to 90 s" outlier_texts && ! grep -E "^[0-9]+ s$" outlier_texts'
printf 'timestamp_us,queue_size,rejected_total\n0,1,0\n5000,4,0\n9000,2,3\nbad\n' >metrics.csv
run_any with_metrics 0 "$STAVE" plot batch all.csv --panel queue -o queue.svg
check metrics_beside_are_drawn sh -c '! python3 texts.py queue.svg | grep "no data"'
check bad_metric_is_reported grep -q 'row of metrics not understood' with_metrics.err
rm metrics.csv
run_any panel 0 "$STAVE" plot batch all.csv --panel throughput -o throughput.svg
run panel_texts 0 python3 texts.py throughput.svg
run_any fit 0 "$STAVE" plot batch all.csv --panel size-fit-cpu -o fit.svg
run fit_texts 0 python3 texts.py fit.svg
run_any heat 0 "$STAVE" plot batch all.csv --panel phases-by-worker -o heat.svg
run heat_texts 0 python3 texts.py heat.svg
# Requests within the limits, each by its own latency: what the report says of all of them is where the lines end.
cat >sla.csv <<'C'
batch_id,worker_id,worker_type,batch_size,request_ids,request_arrival_us,queue_ms,batch_ms,submit_ms,scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms
0,0,cpu,2,1;2,1000000;1008000,8,0,0,0,12,12,0,20
1,0,cpu,1,3,1010000,0,0,0,0,4,4,0,4
C
run_any sla 0 "$STAVE" plot batch sla.csv --panel sla --sla 12,20 -o sla.svg
check sla_names_the_limits sh -c 'python3 texts.py sla.svg >sla_texts; grep -qx "within 12 ms" sla_texts && grep -qx "within 20 ms" sla_texts'
run sla_lines 0 grep -o '<path[^>]*stroke-width="1.6"/>' sla.svg
run bad_sla 2 "$STAVE" plot batch sla.csv --sla fast -o x.svg
run_any window 0 "$STAVE" plot batch sla.csv --panel arrival-window -o window.svg
run window_texts 0 python3 texts.py window.svg
run_any folder 0 "$STAVE" plot batch all.csv --panel sla --panel radar -o pictures/
check folder_has_both sh -c 'ls pictures | sed "s/[.].*//" | tr "\n" " " | grep -qx "06-sla 35-radar "'
run_any one_batch 0 "$STAVE" plot batch one.csv -o one.svg
run_any few_columns 0 "$STAVE" plot batch few.csv -o few.svg
check arrivals_are_missed sh -c '[ "$(python3 texts.py few.svg | grep -c request_arrival_us)" = 4 ]'
run_any spoilt 0 "$STAVE" plot batch spoilt.csv -o spoilt.svg
check spoilt_is_reported grep -q "row of a batch not understood, left out (total_ms is 'nan'), 2 times" spoilt.err
run_any spoilt_strict 1 "$STAVE" plot batch spoilt.csv --strict -o strict.svg
run empty_file 3 "$STAVE" plot batch empty.csv -o x.svg
run no_rows 1 "$STAVE" plot batch no_rows.csv -o x.svg
run columns 3 "$STAVE" plot batch columns.csv -o x.svg
run unknown_panel 2 "$STAVE" plot batch all.csv --panel throughptu -o x.svg
run_any no_such_file 3 "$STAVE" plot batch absent.csv -o x.svg
check nothing_was_written test ! -e x.svg -a ! -e strict.svg

# From traces: the server's own JSON, and the summary read as a trace.
cat >trace.json <<'JSON'
{"traceEvents":[
{"name":"request_enqueued","cat":"batching","ph":"i","ts":100,"pid":1,"tid":1,"args":{"request_id":7,"model_name":"demo"}},
{"name":"batch","cat":"batching","ph":"X","ts":100,"dur":50,"pid":1,"tid":2,"args":{"batch_id":21,"batch_size":9,"model_name":"demo","request_ids":[7]}},
{"name":"batch_build","cat":"batching","ph":"X","ts":200,"dur":30,"pid":1,"tid":3,"args":{"batch_id":21,"batch_size":9,"model_name":"demo","request_ids":[7]}},
{"name":"batch_submitted","cat":"batching","ph":"X","ts":240,"dur":1,"pid":1,"tid":4,"args":{"batch_id":21,"batch_size":9,"request_ids":[7]}},
{"name":"demo","cat":"batching","ph":"X","ts":300,"dur":400,"pid":1,"tid":1010,"args":{"batch_id":21,"batch_size":9,"worker_id":1,"worker_type":"cuda"}}]}
JSON
run_any of_trace 0 "$STAVE" plot batch trace.json --panel worker-phases -o of_trace.svg
check of_trace_has_the_worker sh -c 'python3 texts.py of_trace.svg | grep -qx "1 cuda"'
echo '{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]}' >other.json
run other_trace 1 "$STAVE" plot batch other.json -o x.svg

# The command that users of such servers know.
if "$STAVE" plot batch one.csv -o probe.png 2>probe.err; then
  mkdir seed; cp all.csv seed/batching_trace_summary.csv
  run_any script 0 env STAVE="$STAVE" "$SRC/scripts/plot_batch_summary.py" seed/batching_trace_summary.csv
  check script_names_its_picture test -s seed/batching_trace_plots.png
  run_any script_output 0 env STAVE="$STAVE" "$SRC/scripts/plot_batch_summary.py" all.csv --output asked.pdf
  check script_writes_what_was_asked sh -c 'head -c 5 asked.pdf | grep -q "%PDF-"'
else
  check says_that_cairo_is_absent grep -q 'without cairo' probe.err
  skip script "built without cairo"
fi
run_any script_without_file 2 "$SRC/scripts/plot_batch_summary.py"
