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
# Nothing but transfers over TCP.
cat >tcp.txt <<'END'
# stave text 1
track #1 process uuid=0x11 pid=1 name="job"
track #2 thread uuid=0x12 parent=#1 pid=1 tid=1
track #3 custom uuid=0x13 parent=#2 name="network"
0.010000000 slice #3 "tcp_recv" cat="network" dur=0.005000000 {peer="10.0.0.2:80" port=4000 bytes=1000}
0.020000000 slice #3 "tcp_send" cat="network" dur=0.001000000 {peer="10.0.0.2:80" port=4000 bytes=300}
0.030000000 slice #3 "tcp_recv" cat="network" dur=0.002000000 {peer="[::1]:9" port=4001 bytes=50}
END
run tcp 0 "$STAVE" report io tcp.txt
run_any tcp_csv 0 "$STAVE" report io -q --csv --by peer tcp.txt
check tcp_peer grep -q '^10.0.0.2:80,' tcp_csv.out
check tcp_json test "$("$STAVE" report io -q --json tcp.txt | python3 -c 'import json, sys; print([(p["name"], p["bytes_read"], p["bytes_written"]) for p in json.load(sys.stdin)["peer"]])')" = \
  "[('10.0.0.2:80', 1000, 300), ('[::1]:9', 50, 0)]"
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
