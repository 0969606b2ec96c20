#!/usr/bin/env bash
# MPI in a program that knows nothing of Stave (mpi_play), under mpirun: every call that it counted is in the trace, every message has its arrow after a merge; one recorder per rank and one
# around all; a rank that kills itself; a program without MPI is left alone.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-mpi.so play=$BUILD/tests/inject/mpi_play
[ -e "$library" ] && [ -x "$play" ] || skip_all "libstave-mpi.so was not built (mpi.h of Open MPI: package libopenmpi-dev)"
command -v mpirun >/dev/null || skip_all "no mpirun here (package openmpi-bin)"
case $BUILD in *asan | *tsan) skip_all "Open MPI is not built with a sanitizer" ;; esac
export STAVE_SESSION_DIR=$TMP/sessions OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
mkdir -p "$STAVE_SESSION_DIR"
launch=(mpirun --oversubscribe)
[ "$(id -u)" != 0 ] || launch+=(--allow-run-as-root)
record=("$STAVE" record -q --no-io --no-block --no-page-cache --inject mpi)
ask() { "$STAVE" query -q --to csv "$@" | tail -n +2; }

# calls FILE: "RANK NAME COUNT" as the program prints it, from the trace
calls() { ask "$1" "SELECT k.rank || ' ' || s.name || ' ' || count(*) FROM slice s JOIN track k ON s.track_id = k.id WHERE s.name GLOB 'MPI_*' GROUP BY k.rank, s.name" | sort; }
# counted FILE: the same of the program, without its messages
counted() { grep -v message "$1" | sort; }
messages() { awk -v what="$2" '$2 == "message" && $3 == what { n += $4 } END { print n }' "$1"; }

# What a message's two ends say of each other. Sizes differ, so that a wrong pair is noticed.
pairs="CREATE TABLE m AS SELECT s.id, k.rank, extract_arg(s.arg_set_id, 'debug.op') op, extract_arg(s.arg_set_id, 'debug.peer') peer, extract_arg(s.arg_set_id, 'debug.tag') tag,
    extract_arg(s.arg_set_id, 'debug.bytes') bytes, extract_arg(s.arg_set_id, 'debug.seq') seq, extract_arg(s.arg_set_id, 'debug.group') g FROM slice s JOIN track k ON s.track_id = k.id WHERE s.category = 'mpi';
  SELECT count(*) || ' ' || sum(a.op = 'send' AND b.op = 'recv' AND a.rank = b.peer AND b.rank = a.peer AND a.tag = b.tag AND a.bytes = b.bytes AND a.seq = b.seq AND a.g = b.g)
    || ' ' || count(DISTINCT a.id) || ' ' || count(DISTINCT b.id) FROM flow f JOIN m a ON a.id = f.slice_out JOIN m b ON b.id = f.slice_in"
# Collectives of one number: how many, of how many members; what their members disagree on.
rounds="SELECT count(*) || ' ' || sum(n = size) || ' ' || sum(kinds = 1 AND sizes = 1) FROM (SELECT count(DISTINCT k.rank) n, max(extract_arg(s.arg_set_id, 'debug.group_size')) size,
    count(DISTINCT s.name || extract_arg(s.arg_set_id, 'debug.op')) kinds, count(DISTINCT extract_arg(s.arg_set_id, 'debug.bytes')) sizes FROM slice s JOIN track k ON s.track_id = k.id
    WHERE s.category = 'collective' GROUP BY extract_arg(s.arg_set_id, 'debug.group'), extract_arg(s.arg_set_id, 'debug.seq'))"

# A recorder around each rank.
run_any ranks 0 "${launch[@]}" -n 4 "${record[@]}" -o r.pftrace -- "$play" 2
sent=$(messages ranks.out sent)
check "each rank has a file" test "$(ls r.rank*.pftrace | paste -sd' ')" = "r.rank0000.pftrace r.rank0001.pftrace r.rank0002.pftrace r.rank0003.pftrace"
check "one of them is sound by itself" "$STAVE" validate -q --strict r.rank0001.pftrace
check "merged" "$STAVE" merge -q r.rank*.pftrace -o r.pftrace
calls r.pftrace >r.calls; counted ranks.out >r.counted
check "every call that the program counted" diff r.counted r.calls
check "it sent something" test "$sent" -gt 100 -a "$sent" = "$(messages ranks.out received)"
check "every message has its arrow" test "$(ask r.pftrace "$pairs" | tail -n 1)" = "$sent $sent $sent $sent"
n=$(ask r.pftrace "$rounds")
check "every collective has all of its members" test "$n" = "${n%% *} ${n%% *} ${n%% *}"
check "flows through collectives" test "$(ask r.pftrace "SELECT count(*) FROM flow f JOIN slice s ON s.id = f.slice_out WHERE s.category = 'collective'")" = \
  "$(ask r.pftrace "SELECT count(*) - (${n%% *}) FROM slice WHERE category = 'collective'")"
check "through JSON, too" sh -c '"$1" convert -q r.pftrace -o r.json' - "$STAVE"
check "every message has its arrow in JSON" test "$(ask r.json "${pairs//debug./args.}" | tail -n 1)" = "$sent $sent $sent $sent"

# One recorder around all: its processes have the ranks.
run_any around 0 "${record[@]}" -o around.pftrace -- "${launch[@]}" -n 4 "$play"
sent=$(messages around.out sent)
if "$STAVE" query -q around.pftrace "SELECT 1 FROM slice WHERE category = 'process' LIMIT 1" 2>/dev/null | grep -q 1; then
  check "around: ranks of processes" test "$(ask around.pftrace "SELECT rank || '/' || world_size FROM process WHERE rank IS NOT NULL ORDER BY rank" | paste -sd' ')" = "0/4 1/4 2/4 3/4"
  check "around: every message has its arrow" test "$(ask around.pftrace "$pairs" | tail -n 1)" = "$sent $sent $sent $sent"
else skip around "no process events here (eBPF)"; fi

# The library alone: the SDK's own files.
run_any alone 0 "${launch[@]}" -n 2 env LD_PRELOAD="$library" STAVE_OUT=alone.pftrace "$play"
check "alone: a file per rank" test -s alone.rank0000.pftrace -a -s alone.rank0001.pftrace
"$STAVE" merge -q alone.rank*.pftrace -o alone.pftrace
sent=$(messages alone.out sent)
check "alone: every message has its arrow" test "$(ask alone.pftrace "$pairs" | tail -n 1)" = "$sent $sent $sent $sent"

# A rank kills itself: the job's exit code is the command's, no file is lost, and the others wait in the barrier.
# recovered FILE: when those that still write to it have ended, which follows its recorder's end
recovered() {
  for _ in $(seq 600); do
    if "$STAVE" recover -q "$1" >recover.out 2>recover.err; then return; fi
    grep -q 'is still running\|is still writing' recover.err || break
    sleep 0.1
  done
  cat recover.err; return 1
}
run_any killed 137 "${launch[@]}" -n 8 "${record[@]}" -o k.pftrace -- "$play" die 3
for i in 0 1 2 3 4 5 6 7; do
  [ -s k.rank000$i.pftrace ] || recovered k.rank000$i.pftrace
  check "killed: rank $i is whole or recovered" test "$(ask k.rank000$i.pftrace "SELECT count(*) > 40 FROM slice WHERE category = 'collective'" 2>/dev/null)" = 1
done
"$STAVE" merge -q k.rank*.pftrace -o k.pftrace 2>/dev/null
check "killed: who is not in the last barrier" test "$(ask k.pftrace "SELECT 8 - count(*) FROM slice WHERE name = 'MPI_Barrier' AND dur = -1" 2>/dev/null)" = 1

# Python loads libmpi for its own module alone; several threads, wildcards of mpi4py's own, a communicator that connects two groups.
if [ -z "${STAVE_LONG:-}" ]; then skip python "only with STAVE_LONG=1"
elif /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
  run_any python 0 "${launch[@]}" -n 4 "${record[@]}" -o p.pftrace -- /usr/bin/python3 "$SRC/tests/inject/mpi/play.py"
  "$STAVE" merge -q p.rank*.pftrace -o p.pftrace
  sent=$(ask p.pftrace "SELECT count(*) FROM slice WHERE category = 'mpi' AND extract_arg(arg_set_id, 'debug.op') = 'send'")
  check "python: it sent something" test "$sent" -ge 800
  check "python: every message has its arrow" test "$(ask p.pftrace "$pairs" | tail -n 1)" = "$sent $sent $sent $sent"
else skip python "no mpi4py here (package python3-mpi4py)"; fi

# Another MPI: the calls are handed on as they are, and one line says so.
run_any other 0 env LD_PRELOAD="$library" STAVE_OUT=other.pftrace "$BUILD/tests/inject/other_mpi"
check "other MPI: calls arrive as they were made" test "$(cat other.out)" = "7 8 5 5"
check "other MPI: one line says that it is not recorded" test "$(cat other.err)" = "stave: MPI is not recorded: this program's MPI is not Open MPI, for which --inject mpi was built"
check "other MPI: no file" test ! -e other.pftrace

# The preloaded library does nothing in programs without MPI: not even libstave is loaded.
check "no MPI: nothing is loaded" sh -c '! LD_PRELOAD=$1 LD_TRACE_LOADED_OBJECTS=1 /bin/true | grep -q libstave\\.so' - "$library"
run_any plain 0 "${record[@]}" -o plain.pftrace -- sh -c 'true; exit 0'
check "no MPI: nothing of it" test "$(ask plain.pftrace "SELECT count(*) FROM slice WHERE category = 'mpi'")" = 0
