#!/usr/bin/env bash
# stave report io: the same figures as text, JSON and CSV, from an imported folder and directly from strace's output.
. "$SRC/tests/harness/cli.sh"
"$STAVE" import -q "$SRC/tests/golden/run" --tz UTC -o run.pftrace 2>/dev/null

run text 0 "$STAVE" report io run.pftrace --top 3
run json 0 "$STAVE" report io run.pftrace --json --top 1
run csv_by_file 0 "$STAVE" report io run.pftrace --csv --by file --top 3
run csv_by_span 0 "$STAVE" report io run.pftrace --csv --by span
run strace 0 "$STAVE" report io "$SRC/tests/golden/good/strace.out"
run block 0 "$STAVE" report io "$SRC/tests/golden/good/bpftrace_bio.out"
run no_io 3 "$STAVE" report io "$SRC/tests/golden/good/kineto.json"
run no_such_report 2 "$STAVE" report weather run.pftrace
run no_subject 2 "$STAVE" report
run no_trace 2 "$STAVE" report io
run bad_by 2 "$STAVE" report io run.pftrace --by colour
run bad_top 2 "$STAVE" report io run.pftrace --top many

# The numbers of the report are those that SQL gives.
"$STAVE" report io run.pftrace --csv --by process -q | cut -d, -f2,4,5,11 | sort >report.csv
"$STAVE" query -q run.pftrace --to csv "SELECT pid, sum(op GLOB 'open*') AS opens, sum(op = 'read') AS reads,
  sum(CASE WHEN op = 'read' THEN bytes ELSE 0 END) AS bytes_read FROM io GROUP BY pid" | sort >sql.csv
check as_sql_counts diff report.csv sql.csv
