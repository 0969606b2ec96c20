#!/usr/bin/env bash
# FxT traces of StarPU: two real runs (without the list of the machine's processes that FxT puts in front) against what starpu_fxt_tool made of the same runs.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good
of() { "$STAVE" cat -q "$1"; }
same() { check "$1" test "$2" = "$3"; }

# Tasks: number, worker, codelet and duration to the nanosecond; dependencies.
tasks() { of "$1" | grep 'cat="task"' | sed -E 's/.* "([^"]+)" .*dur=([0-9.]+).* JobId=([0-9]+).* WorkerId=([0-9]+).*/\3 \4 \1 \2/; s/.* "([^"]+)" .*dur=([0-9.]+).*\{JobId=([0-9]+).* WorkerId=([0-9]+).*/\3 \4 \1 \2/' | sort -n; }
tasks "$good/starpu_cholesky_fxt.log" >raw.tasks
tasks "$good/starpu_cholesky_tasks.log" >rec.tasks
same tasks_are_there "$(wc -l <raw.tasks)" 10
check tasks_as_in_tasks_rec diff raw.tasks rec.tasks
flows() { of "$1" | grep -o "@flow_$2" | wc -l; }
same dependencies "$(flows "$good/starpu_cholesky_fxt.log" begin)" "$(flows "$good/starpu_cholesky_tasks.log" begin)"
same dependencies_arrive "$(flows "$good/starpu_cholesky_fxt.log" end)" "$(flows "$good/starpu_cholesky_fxt.log" begin)"

# States: Stave's word, the word of trace.rec. The tool calls it scheduling, too, when a task is pushed.
states() { of "$good/starpu_cholesky_fxt.log" | grep -cE "\"($1)\" cat=\"state\""; }
while IFS=: read -r ours theirs; do
  same "states_${theirs// /_}" "$(states "$ours")" "$(grep -c "^N: $theirs\$" "$good/starpu_cholesky_trace.log")"
done <<'END'
Sleeping:Sleeping
Scheduling|Pushing a task:Scheduling
Callback:Callback
Initializing:Initializing
Fetching input:FetchingInput
Pushing output:PushingOutput
Progressing:Progressing
Submitting a task:Submitting task
Building a task:Building task
Waiting for all tasks:Waiting all tasks
END

# A worker sleeps once at a time, though OpenCL's do not say that they wake: no sleep stays open.
same open_sleeps "$(of "$good/starpu_opencl_fxt.log" | grep -c ' begin .*"Sleeping"')" 0
same sleeps "$(of "$good/starpu_opencl_fxt.log" | grep -c '"Sleeping"')" 11

# Transfers against Paje's links, counters against its variables (which have a zero at the beginning, and their definition).
raw=$good/starpu_opencl_fxt.log paje=$good/starpu_opencl_paje.log
same transfers "$(of "$raw" | grep -c 'cat="transfer"')" "$(of "$paje" | grep -c 'cat="link"')"
same transfers_are_there "$(of "$raw" | grep -c 'cat="transfer"')" 6
same ready "$(of "$raw" | grep -c 'counter #9 ')" "$(($(grep -c 'nready' "$paje") - 2))"
if command -v fxt_print >/dev/null; then
  fxt_print -d -f "$raw" >print.out 2>&1
  same copies_of_fxt_print "$(of "$raw" | grep -c 'cat="transfer"')" "$(grep -c ' 5134(' print.out)"
else
  skip copies_of_fxt_print "no fxt_print here (Debian: fxt-tools)"
fi

# The clock is the machine's: it merges with a batching summary without --offset, at its own times.
check clock grep -q 'clock *monotonic' <("$STAVE" info -q "$raw")
run_any merge 0 "$STAVE" merge -q --same-host "$raw" "$SRC/tests/fuzz/corpus/batching_csv_read/ours.csv" -o merged.pftrace
same merged_at_its_own_time "$(of merged.pftrace | grep 'cat="transfer"' | cut -d' ' -f1)" "$(of "$raw" | grep 'cat="transfer"' | cut -d' ' -f1)"
run_any pipe 0 sh -c "gzip -c '$raw' | '$STAVE' cat -q - >piped.txt"
check pipe_is_the_same cmp piped.txt <(of "$raw")

# Bad input: cut anywhere it gives what came before and says so; garbage behind a good head neither crashes nor passes for whole.
for n in 60 140 150 190 5001 9000 14640; do
  head -c "$n" "$raw" >cut.fxt
  run_any "cut_$n" 0 timeout 20 "$STAVE" cat cut.fxt
  check "cut_${n}_is_said" grep -q 'cut off' "cut_$n.err"
  run_any "cut_${n}_strict" 1 "$STAVE" convert -q --strict cut.fxt -o no.pftrace
done
{ head -c 150 "$raw"; head -c 8000 /dev/zero | tr '\0' '\377'; } >garbage.fxt
run_any garbage 0 timeout 20 "$STAVE" cat garbage.fxt
check garbage_is_said grep -q 'damaged event\|cut off\|longer than' garbage.err
{ printf '\0\0\0\2\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\114\0\0\0\0\0\0\0\20'; head -c 64 /dev/zero; } >big.fxt
run_any big_endian 3 "$STAVE" cat big.fxt
check big_endian_is_said grep -q 'big-endian.*starpu_fxt_tool' big_endian.err
