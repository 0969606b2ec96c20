#!/usr/bin/env bash
# StarPU's dag.dot: a real run's graph against the file itself and against tasks.rec of the same run; where it is left out; what is refused.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good
dag=$good/starpu_cholesky_dag.log
same() { check "$1" test "$2" = "$3"; }

# flow lines: "JobId from → JobId to" of every arrow that Stave draws, in both files as in the graph.
edges() {
  "$STAVE" cat -q "$1" | grep ' slice ' | awk '{
    match($0, /JobId=[0-9]+/); job = substr($0, RSTART + 6, RLENGTH - 6); at[job] = $1
    while (match($0, /@flow_(begin|end):0x[0-9a-f]+/)) {
      w = substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH); split(w, p, ":")
      if (p[1] == "@flow_begin") from[p[2]] = job; else to[p[2]] = job
    }
  } END { for (f in from) print from[f], to[f], (at[from[f]] < at[to[f]] ? "forward" : "backward") }' | sort
}
edges "$dag" >drawn
grep -o '"task_[0-9]*"->"task_[0-9]*"' "$dag" | tr -c '0-9\n' ' ' | awk '{print $1, $2, "forward"}' | sort -u >expected
check every_edge_leads_forward diff expected drawn
same edges_are_there "$(wc -l <drawn)" 28
edges "$good/starpu_cholesky_tasks.log" | cut -d' ' -f1,2 >recorded
edges "$good/starpu_cholesky_fxt.log" >raw
check raw_trace_points_the_same_way diff <(cut -d' ' -f1,2 raw) recorded
same raw_trace_points_forward "$(grep -c ' backward' raw)" 0
check edges_of_tasks_rec_are_among_them test -z "$(comm -23 recorded <(cut -d' ' -f1,2 drawn))"
same names "$("$STAVE" cat -q "$dag" | grep -c '"chol_model_')" "$(grep -c 'label="chol_model_' "$dag")"
run_any note 0 "$STAVE" convert "$dag" -o dag.pftrace
check note_says_order grep -q 'order, not time' note.err
check row_says_order grep -q 'name="StarPU task graph (order, not time)"' <("$STAVE" cat -q dag.pftrace)
run_any valid 0 "$STAVE" validate dag.pftrace
run_any picture 0 "$STAVE" plot timeline "$dag" -o dag.svg
check picture_says_order grep -q 'order, not time' dag.svg
edges dag.pftrace >/dev/null
same survives_perfetto "$("$STAVE" cat -q dag.pftrace | grep -o '@flow_end' | wc -l)" 28

# The folder that starpu_fxt_tool leaves: the raw trace alone, then what has times; a file that is named is read.
mkdir run; cp "$dag" run/dag.dot
cp "$good/starpu_cholesky_tasks.log" run/tasks.rec; cp "$good/starpu_cholesky_paje.log" run/paje.trace
cp "$good/starpu_cholesky_trace.log" run/trace.rec; cp "$good/starpu_cholesky_fxt.log" run/prof_file_user_0
run whole 0 "$STAVE" import run -o whole.pftrace
"$STAVE" convert -q run/prof_file_user_0 -o raw.pftrace
same each_task_once "$("$STAVE" cat -q whole.pftrace | grep -c '"chol_model_11" cat="task"')" 3
same each_edge_once "$("$STAVE" cat -q whole.pftrace | grep -o '@flow_end' | wc -l)" "$("$STAVE" cat -q raw.pftrace | grep -o '@flow_end' | wc -l)"
rm run/prof_file_user_0 run/trace.rec run/paje.trace
run beside_tasks 0 "$STAVE" import run -o tasks.pftrace
same tasks_alone "$("$STAVE" cat -q tasks.pftrace | grep -c 'order, not time')" 0
run_any alone 0 "$STAVE" import run/dag.dot -o alone.pftrace
run_any no_common_clock 2 "$STAVE" merge run/dag.dot run/tasks.rec -o no.pftrace

# With a server's batching trace of the same machine: no flag in a folder, since all of it comes from one machine.
mkdir both; cp "$good/starpu_opencl_fxt.log" both/prof_file_user_0; cp "$SRC/tests/fuzz/corpus/batching_csv_read/ours.csv" both/batching_trace_summary.csv
run_any both 0 "$STAVE" import both -o both.pftrace
same both_at_its_own_time "$("$STAVE" cat -q both.pftrace | grep 'cat="transfer"' | cut -d' ' -f1)" "$("$STAVE" cat -q "$good/starpu_opencl_fxt.log" | grep 'cat="transfer"' | cut -d' ' -f1)"

# A server's folder: its trace has all that its JSON and CSV have, also for servers that came later. Without the trace they are read.
mkdir server; cp dag.pftrace server/batching_trace.2.pftrace
for n in '' .2; do
  cp "$SRC/tests/fuzz/corpus/batching_csv_read/ours.csv" "server/batching_trace_summary$n.csv"
  printf '{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]}' >"server/batching_trace$n.json"
done
run_any server 0 "$STAVE" import --assume server -o server.pftrace
check server_left_out test "$(grep -c 'skipped, it appears to hold the same data as server/batching_trace.2.pftrace' server.err)" = 2
check server_read grep -q '3 files read, 2 skipped' server.err

# Other graphs are refused in words, also those that Stave writes.
printf 'digraph deps {\n  a -> b;\n}\n' >deps.dot
run_any other 3 "$STAVE" cat deps.dot
check other_is_said grep -q "Graphviz graph, but not dag.dot" other.err
printf '[{"name":"k","cat":"kernel","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]' >k.json
"$STAVE" convert -q k.json -o ours.dot
run_any ours 3 "$STAVE" cat ours.dot
check ours_is_said grep -q "Graphviz graph, but not dag.dot" ours.err

# Cut anywhere it gives what came before and says so.
for n in 90 200 1501 3100; do
  head -c "$n" "$dag" >cut.dot
  run_any "cut_$n" 0 timeout 20 "$STAVE" cat cut.dot
  check "cut_${n}_is_said" grep -q 'cut off' "cut_$n.err"
  run_any "cut_${n}_strict" 1 "$STAVE" convert -q --strict cut.dot -o no.pftrace
done

# Shapes that break what is not linear: a long chain listed backwards, a task that all others depend on, one long circle.
head='digraph G {\n\tcolor=white\n\trankdir=LR;\nsubgraph cluster_0 {\n\tcolor=black;\n'
{ printf '%b' "$head"; seq 60000 -1 1 | awk '{print "\t \"task_" $1 "\"->\"task_" $1 + 1 "\""}'; printf '}\n}\n'; } >chain.dot
run_any chain 0 timeout 60 "$STAVE" convert chain.dot -o chain.pftrace
same chain_in_order "$("$STAVE" cat -q chain.dot | awk '/ slice /{match($0, /JobId=[0-9]+/); n = substr($0, RSTART + 6, RLENGTH - 6); bad += n != last + 1; last = n} END {print bad + 0, last}')" "0 60001"
{ printf '%b' "$head"; seq 60000 | awk '{print "\t \"task_0\"->\"task_" $1 "\""}'; printf '}\n}\n'; } >hub.dot
run_any hub 0 timeout 60 "$STAVE" convert hub.dot -o hub.pftrace
check hub_is_said grep -q 'more than 4096.*60000 times' hub.err
{ printf '%b' "$head"; seq 60000 | awk '{print "\t \"task_" $1 "\"->\"task_" $1 % 60000 + 1 "\""}'; printf '}\n}\n'; } >circle.dot
run_any circle 0 timeout 60 "$STAVE" cat circle.dot
check circle_is_said grep -q 'byte 73: dependencies in a circle' circle.err
same circle_keeps_the_rest "$(grep -o '@flow_begin' circle.out | wc -l)" 59999
