#!/usr/bin/env bash
# stave report comm on real MPI jobs (mpi_slow, which knows nothing of Stave): the rank that is slow is found, equal ranks give none; a rank that is missing, and one that calls something else, are
# named. With STAVE_LONG=1 a hundred jobs of each kind.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-mpi.so slow=$BUILD/tests/inject/mpi_slow
[ -e "$library" ] && [ -x "$slow" ] || skip_all "libstave-mpi.so was not built (mpi.h of Open MPI: package libopenmpi-dev)"
command -v mpirun >/dev/null || skip_all "no mpirun here (package openmpi-bin)"
case $BUILD in *asan | *tsan) skip_all "Open MPI is not built with a sanitizer" ;; esac
export STAVE_SESSION_DIR=$TMP/sessions OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_odls_base_sigkill_timeout=2
mkdir -p "$STAVE_SESSION_DIR"
launch=(mpirun --oversubscribe)
[ "$(id -u)" != 0 ] || launch+=(--allow-run-as-root)
record=("$STAVE" record -q --no-io --no-block --no-page-cache --inject mpi)

# job NAME SECONDS ARGS…: files NAME.rank*.pftrace, of what was there when the time was over.
job() { local name=$1 seconds=$2; shift 2; rm -f "$name".rank*; timeout -s TERM "$seconds" "${launch[@]}" -n 4 "${record[@]}" -o "$name.pftrace" -- "$slow" "$@" >"$name.log" 2>&1 </dev/null; whole "$name"; }
# whole NAME: a recorder that had no time to end, because Open MPI kills what it ends, left its file to recover.
whole() { local r; for r in 0 1 2 3; do [ -e "$1.rank000$r.pftrace" ] || "$STAVE" recover -q "$1.rank000$r.pftrace" >>"$1.log" 2>&1; done; }
# say NAME: "slow RANKS waited RANKS" of the report
say() { "$STAVE" report comm --json --by summary "$1".rank*.pftrace 2>/dev/null | python3 -c 'import json, sys; s = json.load(sys.stdin)["summary"]; print("slow", s.get("slow", "none"), "waited", s.get("waited_for", "none"))'; }

rounds=1; [ -z "${STAVE_LONG:-}" ] || rounds=100
found=0 none=0
for i in $(seq "$rounds"); do
  job late 60 20 $((i % 4)) 60; [ "$(say late)" != "slow $((i % 4)) waited none" ] || found=$((found + 1))
  job equal 60 20 -1 0; [ "$(say equal)" != "slow none waited none" ] || none=$((none + 1))
done
check "the slow rank is found: $found of $rounds" test "$found" -ge $(((rounds * 99 + 99) / 100))
check "equal ranks give none: $none of $rounds" test "$none" = "$rounds"
run_any late_text 0 "$STAVE" report comm late.rank*.pftrace
check "in words" grep -q "^rank [0-3] is slow: last in" late_text.out

# stuck NAME ARGS…: a job that does not end by itself, ended when the growing files of all ranks have what is to be seen in it. Without states:
# who polls for a message gives its CPU away thousands of times in a second.
calls() { "$STAVE" cat -q "$1" 2>/dev/null | grep -cE 'begin .*"MPI_(Allreduce|Barrier)"'; }
stuck() {
  local name=$1 pid r; shift; rm -f "$name".rank*
  "${launch[@]}" -n 4 "${record[@]}" --light -o "$name.pftrace" -- "$slow" "$@" >"$name.log" 2>&1 </dev/null & pid=$!
  for r in 0 1 2 3; do until_true "[ \$(calls $name.rank000$r.pftrace.part) = $([ "$*" = "hang $r" ] && echo 20 || echo 21) ]"; done
  kill -TERM $pid; wait $pid; whole "$name"
}
stuck hang hang 2
run_any hang_text 0 "$STAVE" report comm hang.rank*.pftrace
check "a missing rank is named" test "$(say hang)" = "slow none waited 2"
check "and the collective" sh -c 'head -n 3 "$0"; grep -q "$1" "$0"' hang_text.out '^First difference: ranks 0, 1, 3 wait in allreduce 20 of group world; rank 2 has no record of it'
[ -n "${STAVE_LONG:-}" ] || { skip "a different kind" "STAVE_LONG=1 tries it"; exit; }
stuck kind kind 1
run_any kind_text 0 "$STAVE" report comm kind.rank*.pftrace
check "a different kind is named" grep -q '^First difference: rank 1 has barrier where others have allreduce: ' kind_text.out
