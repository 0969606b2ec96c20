#!/usr/bin/env bash
# Who writes a file: two recorders on one name, four ranks of a job, programs beside them, killed ones, names that others have written meanwhile.
# Nothing here needs root; without it the kernel's side of stave record is missing, which is fine.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
for v in RANK WORLD_SIZE LOCAL_RANK OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_RANK PMI_SIZE SLURM_PROCID SLURM_NTASKS SLURM_JOB_ID; do unset $v; done
quick=() # without the kernel's side also for root: it takes a moment to load
[ "$(id -u)" != 0 ] || quick=(setpriv --bounding-set=-all --inh-caps=-all)
record=("${quick[@]}" "$STAVE" record -q --no-summary --no-io --no-block --no-page-cache)
left() { ls -A "$1"; } # what is in a folder
meta() { "$STAVE" cat -q "$1" | sed -n "s/^meta \"$2\" //p" | tail -n 1; }

# ---- two recorders ----
mkdir two; mkfifo go
"${record[@]}" -o two/t.pftrace -- sh -c 'read line <go' 2>first.err & first=$!
until_true '[ -s two/t.pftrace.part ] && "$STAVE" status | grep -q t.pftrace'
before=$(left two)
run_any second 4 "${record[@]}" -o two/t.pftrace -- touch started
check second_names_the_holder grep -q "two/t.pftrace: process $first (.*record.* two/t.pftrace .*) is writing it" second.err
check second_did_not_start test ! -e started
check second_made_nothing test "$(left two)" = "$before"
run_any second_detached 4 "${record[@]}" --detach -o two/t.pftrace -- touch started
check second_detached_says grep -q "process $first " second_detached.err
check second_detached_made_nothing test "$(left two)" = "$before" -a ! -e started
run_any second_copies 4 "${record[@]}" --copy-output -o two/t.pftrace -- touch started
check second_copies_nothing test "$(left two)" = "$before"
run_any program_beside 0 env STAVE_OUT=two/t.pftrace "$BUILD/tests/stress/numbers" 1 100 progress
check program_has_its_pid sh -c 'ls two | grep -Eq "^t\.[0-9]+\.pftrace$"'
echo >go; wait $first
check first_is_whole "$STAVE" validate -q --strict two/t.pftrace
check first_left_nothing sh -c '! ls two | grep -q "part\|session"'
check sessions_left_nothing test -z "$(left "$STAVE_SESSION_DIR")"

# ---- many at once: one gets it, the others say who ----
mkdir many
for i in 1 2 3 4; do "${record[@]}" -o many/t.pftrace -- sh -c "echo $i >>many/ran; sleep 0.2" 2>many/err.$i & done; wait
check many_one test "$(wc -l <many/ran)" -ge 1
check many_refused test "$(cat many/err.* | grep -c 'is writing it')" = $((4 - $(wc -l <many/ran)))
check many_valid "$STAVE" validate -q --strict many/t.pftrace

# ---- ranks ----
ranks() { # FOLDER PATTERN: four at once, as a launcher would
  mkdir -p "$1"
  if command -v mpirun >/dev/null && [ "$3" = mpirun ]; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 4 \
      "${quick[@]}" "$STAVE" record --no-summary --no-io --no-block --no-page-cache -o "$1/$2" -- true >"$1.out" 2>"$1.err"
    return
  fi
  local i pids=()
  for i in 0 1 2 3; do
    OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=$i PMIX_NAMESPACE=77 \
      "${quick[@]}" "$STAVE" record --no-summary --no-io --no-block --no-page-cache -o "$1/$2" -- true 2>"$1.err.$i" & pids+=($!)
  done
  wait "${pids[@]}"; cat "$1".err.* >"$1.err"
}
ranks plain job.pftrace variables
check ranks_names test "$(left plain | paste -sd' ')" = "job.rank0000.pftrace job.rank0001.pftrace job.rank0002.pftrace job.rank0003.pftrace"
check ranks_said_once test "$(grep -c 'each rank writes a file of its own' plain.err)" = 1
for i in 0 3; do check "ranks_valid_$i" "$STAVE" validate -q --strict plain/job.rank000$i.pftrace; done
check ranks_meta test "$(for k in rank world_size local_rank launcher job; do meta plain/job.rank0003.pftrace $k; done | paste -sd' ')" = '"3" "4" "3" "openmpi" "77"'
ranks pattern 'p%r.%j.pftrace' variables
check ranks_pattern test "$(left pattern | paste -sd' ')" = "p0.77.pftrace p1.77.pftrace p2.77.pftrace p3.77.pftrace"
check ranks_pattern_says_nothing sh -c '! grep -q "each rank" pattern.err'
if command -v mpirun >/dev/null; then
  ranks mpi job.pftrace mpirun
  check mpirun_names test "$(left mpi | paste -sd' ')" = "job.rank0000.pftrace job.rank0001.pftrace job.rank0002.pftrace job.rank0003.pftrace"
  check mpirun_said_once test "$(grep -c 'each rank writes a file of its own' mpi.err)" = 1
  check mpirun_meta test "$(for k in rank world_size launcher; do meta mpi/job.rank0002.pftrace $k; done | paste -sd' ')" = '"2" "4" "openmpi"'
  check mpirun_valid sh -c 'for f in mpi/*.pftrace; do "$0" validate -q --strict "$f" || exit 1; done' "$STAVE"
else
  skip mpirun "openmpi-bin is not installed"
fi
# libstave: four programs with one STAVE_OUT.
mkdir sdk
for i in 0 1 2 3; do
  RANK=$i WORLD_SIZE=4 LOCAL_RANK=0 STAVE_OUT=sdk/job.json.gz "$BUILD/tests/stress/numbers" 1 100 "progress.$i" >/dev/null 2>"sdk.err.$i" &
done; wait
check sdk_names test "$(left sdk | paste -sd' ')" = "job.rank0000.json.gz job.rank0001.json.gz job.rank0002.json.gz job.rank0003.json.gz"
check sdk_said_once test "$(cat sdk.err.* | wc -l)" = 1 -a "$(grep -c 'each rank writes a file of its own' sdk.err.0)" = 1
check sdk_meta test "$(meta sdk/job.rank0002.json.gz rank) $(meta sdk/job.rank0002.json.gz launcher)" = '"2" "torchrun"'
# One rank, or a batch job with one task, is no reason to change the name.
run_any one_rank 0 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "${record[@]}" -o one.pftrace -- true
check one_rank_name test -s one.pftrace
run_any one_task 0 env SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=5 "${record[@]}" -o task%j.pftrace -- true
check one_task_name test -s task5.pftrace
run_any bad_pattern 2 "${record[@]}" -o 'x%q.pftrace' -- touch started
check bad_pattern_says grep -q 'after % comes p (process), h (host), r (rank), j (job) or %' bad_pattern.err
run_any percent 0 "${record[@]}" -o '100%%.%p.pftrace' -- true
check percent_name sh -c 'ls 100%.*.pftrace | grep -Eq "^100%\.[0-9]+\.pftrace$"'

# ---- killed ----
mkdir killed
"${record[@]}" -o killed/t.pftrace -- sh -c 'read line <go' & victim=$!
until_true 'grep -q "^whole 0*[1-9]" killed/t.pftrace.session && "$STAVE" status | grep -q killed/t.pftrace'
kill -9 $victim; wait $victim 2>/dev/null
check killed_stays test -s killed/t.pftrace.part -a -s killed/t.pftrace.session
check killed_says_what sh -c 'grep -qx "kind recorder" killed/t.pftrace.session && grep -qx "pid $0" killed/t.pftrace.session' $victim
check killed_whole_bytes test "$(sed -n 's/^whole 0*//p' killed/t.pftrace.session)" -le "$(stat -c %s killed/t.pftrace.part)"
cp killed/t.pftrace.part part.pftrace; truncate -s "$(sed -n 's/^whole 0*//p' killed/t.pftrace.session)" part.pftrace
check killed_is_valid_so_far "$STAVE" cat -q --strict part.pftrace
run_any after_killed 0 "${record[@]}" -o killed/t.pftrace -- true
check killed_is_moved_aside test -s killed/t.pftrace.part.1 -a -s killed/t.pftrace.session.1 -a -s killed/t.pftrace
echo >go

# ---- somebody else's files ----
run_any meanwhile 0 "${quick[@]}" "$STAVE" record --no-summary --no-io --no-block --no-page-cache -o new.pftrace -- sh -c 'echo theirs >new.pftrace'
check meanwhile_kept grep -qx theirs new.pftrace
check meanwhile_numbered "$STAVE" validate -q --strict new.1.pftrace
check meanwhile_says grep -q "new.pftrace was written by another process meanwhile: the trace is new.1.pftrace" meanwhile.err
echo old >old.pftrace
run_any older 0 "${record[@]}" -o old.pftrace -- grep -qx old old.pftrace
check older_is_replaced "$STAVE" validate -q --strict old.pftrace
run_any sdk_meanwhile 0 env STAVE_OUT=new.pftrace LD_LIBRARY_PATH= "$BUILD/tests/stress/numbers" 1 100 progress
check sdk_replaces_older "$STAVE" validate -q --strict new.pftrace
run_any nowhere 4 "${record[@]}" -o nowhere/x.pftrace -- touch started
check nowhere_says grep -q "nowhere/x.pftrace: cannot create: No such file" nowhere.err
check nowhere_did_not_start test ! -e started -a ! -e nowhere
echo precious >victim; ln -s "$PWD/victim" link.pftrace.part
run_any planted_part 4 "${record[@]}" -o link.pftrace -- touch started
check planted_part_kept sh -c 'grep -qx precious victim && [ ! -e link.pftrace.session ] && [ ! -e started ]'
run_any planted_part_sdk 0 env STAVE_OUT=link.pftrace "$BUILD/tests/stress/numbers" 1 100 progress
check planted_part_sdk_elsewhere sh -c 'grep -qx precious victim && ls link.*.pftrace | grep -Eq "^link\.[0-9]+\.pftrace$"'
rm link.pftrace.part; ln -s "$PWD/victim" link.pftrace.session
run_any planted_marker 4 "${record[@]}" -o link.pftrace -- touch started
check planted_marker_says grep -q "link.pftrace.session belongs to another user, or others can write to it" planted_marker.err
check planted_marker_kept grep -qx precious victim
mkfifo pipe.pftrace
run_any no_file 4 "${record[@]}" -o pipe.pftrace -- touch started
check no_file_says grep -q "pipe.pftrace: is not a regular file" no_file.err
