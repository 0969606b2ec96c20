#!/usr/bin/env bash
# Paje traces: what Stave reads against pj_dump, an independent reader, on a file made by hand and on one that starpu_fxt_tool made of a real run.
. "$SRC/tests/harness/cli.sh"
command -v pj_dump >/dev/null || skip_all "no pj_dump here (Debian: pajeng)"
good=$SRC/tests/golden/good
pj() { pj_dump "$good/$1" | grep -c "^$2, "; }
ours() { "$STAVE" cat -q "$good/$1" | awk -v kind="$2" '$2 == kind' | wc -l; }
for f in paje.log starpu_cholesky_paje.log; do
  check "${f%.log}_events" test "$(ours $f instant)" = "$(pj $f Event)"
  check "${f%.log}_links" test "$(ours $f slice)" = "$(pj $f Link)"
done
check paje_states test "$(ours paje.log begin)" = "$(pj paje.log State)"
check paje_variables test "$(ours paje.log counter)" = "$(pj paje.log Variable)"
# pj_dump leaves out the seven states that begin last in StarPU's file, and a value that is replaced at the same time: there the lines of the file are counted.
lines() { grep -cE "^($1)[[:blank:]]" "$good/starpu_cholesky_paje.log"; }
check starpu_states test "$(ours starpu_cholesky_paje.log begin)" = "$(lines '10|11|20|21')"
check starpu_variables test "$(ours starpu_cholesky_paje.log counter)" = "$(lines '13|14|15')"
check starpu_states_of_pj_dump test $(($(ours starpu_cholesky_paje.log begin) - 7)) = "$(pj starpu_cholesky_paje.log State)"
# Tasks with a start, and the dependencies between them.
tasks=$good/starpu_cholesky_tasks.log
check starpu_tasks test "$(ours starpu_cholesky_tasks.log slice)" = "$(grep -c '^StartTime' "$tasks")"
check starpu_dependencies test "$("$STAVE" cat -q "$tasks" | grep -o '@flow_begin' | wc -l)" = "$("$STAVE" cat -q "$tasks" | grep -o '@flow_end' | wc -l)"
