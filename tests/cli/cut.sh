#!/usr/bin/env bash
# stave cut: windows on the trace's clock and from its start, predicates, what is open at the borders.
. "$SRC/tests/harness/cli.sh"

cat >in.txt <<'END'
# stave text 1
clock monotonic
track #1 process uuid=0x1 pid=10 name="python"
track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"
track #3 process uuid=0x3 pid=20 name="other"
track #4 thread uuid=0x4 parent=#3 pid=20 tid=20 name="worker"
track #5 counter uuid=0x5 parent=#1 name="memory" unit="bytes"
100.000000000 begin #2 "outer" cat="a"
100.000000000 counter #5 {10}
100.000001000 begin #2 "inner" cat="b,c" {x=1}
100.000002000 end #2
100.000003000 slice #4 "kernel" cat="gpu" dur=0.000010000 {@flow_end:0x1}
100.000004000 instant #2 "mark" cat="a"
100.000005000 counter #5 {20}
100.000009000 end #2
END

run window 0 "$STAVE" cut in.txt --time 1500ns:4500ns --to text
run absolute_window 0 "$STAVE" cut in.txt --time @100.0000015s:@100.0000045s --to text
check both_windows_are_the_same cmp window.out absolute_window.out
run to_the_end 0 "$STAVE" cut in.txt --time 4us: --to text
run by_category 0 "$STAVE" cut in.txt --cat c --cat gpu --to text
run by_name 0 "$STAVE" cut in.txt --name 'inn*' --to text
run by_track 0 "$STAVE" cut in.txt --track 'python/*' --to text
run by_pid 0 "$STAVE" cut in.txt --pid 20 --to text
run pid_not_a_number 2 "$STAVE" cut in.txt --pid main --to text
run nothing_left 5 "$STAVE" cut in.txt --name nothing --to text
run_any all 0 "$STAVE" cut in.txt --to text
"$STAVE" cat in.txt >whole.txt
check no_condition_keeps_everything cmp all.out whole.txt
