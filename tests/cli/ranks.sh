#!/usr/bin/env bash
# Ranks and hosts of processes: in a rank's own file, in merged ones, through the formats; named by SQL, steps, stats, info, reports and pictures.
. "$SRC/tests/harness/cli.sh"

# rank NAME RANK HOST BOOT PID: a process with two steps
rank() {
  cat >"$1.txt" <<END
# stave text 1
clock boottime
snapshot boottime=0 realtime=1700000000000000000 uncertainty=20
meta "hostname" "$3"
meta "boot_id" "$4"
meta "rank" "$2"
meta "local_rank" "$(($2 % 2))"
meta "world_size" "3"
meta "launcher" "openmpi"
meta "job" "77"
track #1 process uuid=0x1 pid=$5 name="python" desc="python train.py"
track #2 thread uuid=0x2 parent=#1 pid=$5 tid=$5 name="main"
1.000000000 slice #2 "step 1" dur=0.000000007
1.000000010 slice #2 "step 2" dur=0.000000009
END
}
rank two 2 beta boot-b 10
rank zero 0 alpha boot-a 30
rank one 1 alpha boot-a 20
columns='rank, local_rank, world_size, job, launcher, host, boot_id'

run one_file 0 "$STAVE" query one.txt "select pid, $columns from process where upid > 0; select count(*), rank, host from track" --to csv
check merged "$STAVE" merge -q two.txt zero.txt one.txt -o all.pftrace
check as_json "$STAVE" convert -q all.pftrace -o all.json
check as_text "$STAVE" convert -q all.pftrace -o all.txt
run in_sql 0 "$STAVE" query all.pftrace "select pid, $columns from process where upid > 0 order by rank;
  select id, name, $columns from machine; select rank, count(*) from slice join track on track_id = track.id group by 1" --to csv
for form in json txt; do
  "$STAVE" query all.$form "select pid, $columns from process where upid > 0 order by rank;
    select id, name, $columns from machine; select rank, count(*) from slice join track on track_id = track.id group by 1" --to csv >sql.$form
  check "the_same_from_$form" cmp in_sql.out sql.$form
done

# Merged in two goes: the label of a label.
"$STAVE" merge -q zero.txt one.txt -o first.pftrace
check merged_again "$STAVE" merge -q first.pftrace two.txt -o again.pftrace
run again 0 "$STAVE" query again.pftrace "select pid, rank, local_rank, host, boot_id from process where upid > 0 order by rank" --to csv

run steps 0 "$STAVE" steps all.pftrace --to csv
run stats 0 "$STAVE" stats all.pftrace --group-by track --to csv
run filtered 0 "$STAVE" stats all.pftrace --filter 'track=rank 1 *' --group-by track --to csv
run_any info 0 "$STAVE" info all.pftrace
check info_names_ranks grep -q 'rank 2 · python (pid 10 on beta)' info.out
"$STAVE" info --json all.pftrace >info.json
check info_as_json grep -q '"rank":1,"host":"alpha"' info.json
check drawn "$STAVE" plot timeline -q all.pftrace -o all.svg
check rows_by_rank test "$(grep -o 'rank [0-9] · python' all.svg | uniq | tr '\n' ' ')" = 'rank 0 · python rank 1 · python rank 2 · python '
run cut 0 "$STAVE" cut -q all.pftrace --track 'rank 1 *' --to text

# The doctor says which launcher it sees.
doctor() { env -u RANK -u WORLD_SIZE -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK -u SLURM_PROCID "$@" "$STAVE" doctor | grep '^...launcher\|^... launcher' | tr -s ' '; }
check doctor_none test "$(doctor env)" = '- launcher none that Stave knows (mpirun, srun, torchrun, PMIx, PMI, or RANK with WORLD_SIZE): one process, one file'
check doctor_rank test "$(doctor RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 SLURM_JOB_ID=77)" = 'ok launcher torchrun: rank 3 of 8, local rank 1, job 77: each rank writes a file of its own'
check doctor_half test "$(doctor RANK=3)" = '- launcher RANK=3 without WORLD_SIZE: one process, one file'

# --inject mpi where the library is not, and where LD_PRELOAD cannot hold its path.
mkdir -p bin "a b"
cp "$STAVE" bin/stave
if bin/stave --version >/dev/null 2>&1; then
  run_any no_library 4 bin/stave record --inject mpi -o no.pftrace -- touch started
  check no_library_says grep -q 'package libopenmpi-dev' no_library.err
  : >"a b/libstave-mpi.so"
  run_any blank 2 env STAVE_INJECT_DIR="$PWD/a b" bin/stave record --inject mpi -o no.pftrace -- touch started
  check blank_says grep -q 'LD_PRELOAD cannot hold the path' blank.err
  check not_started test ! -e started
else skip no_library "a copy of the program does not run"; fi

# A launcher that kills the recorder of one rank: the other files are whole, the exit codes are the commands', and what was killed is recovered.
mkdir job; pids=()
quick=()
[ "$(id -u)" != 0 ] || quick=(setpriv --bounding-set=-all --inh-caps=-all)
for i in 0 1 2 3 4 5 6 7; do
  RANK=$i WORLD_SIZE=8 LOCAL_RANK=$i "${quick[@]}" "$STAVE" record -q --no-io --no-block --no-page-cache -o job/job.pftrace -- \
    sh -c 'echo >job/ready.$0; until [ -e job/go ]; do sleep 0.05; done; exit $((10 + $0))' $i 2>/dev/null & pids+=($!)
done
# All commands run, and the file of the one to be killed has samples.
has_samples() { [ "$("$STAVE" query -q job/job.rank0005.pftrace.part 'select count(*) > 0 from counter' 2>/dev/null | tail -n 1)" = 1 ]; }
for _ in $(seq 1200); do [ "$(find job -name 'ready.*' | wc -l)" = 8 ] && has_samples && break; sleep 0.05; done
kill -9 "${pids[5]}"; touch job/go
for i in 0 1 2 3 4 5 6 7; do
  wait "${pids[$i]}" 2>/dev/null; code=$?
  check "killed_code_$i" test $code = $((i == 5 ? 137 : 10 + i))
  [ $i = 5 ] || check "killed_whole_$i" "$STAVE" validate -q job/job.rank000$i.pftrace
done
check killed_part test -s job/job.rank0005.pftrace.part -a ! -e job/job.rank0005.pftrace
run_any killed_recovered 0 "$STAVE" recover job/job.rank0005.pftrace
check killed_merged "$STAVE" merge -q job/job.rank*.pftrace -o job/all.pftrace
check killed_all_ranks test "$("$STAVE" query -q --to csv job/all.pftrace 'select distinct rank from process where rank is not null order by 1' | tail -n +2 | paste -sd' ')" = '0 1 2 3 4 5 6 7'

# A device belongs to the rank whose process uses it.
for r in 0 1; do
  cat >gpu$r.txt <<END
# stave text 1
clock boottime
snapshot boottime=0 realtime=1700000000000000000 uncertainty=20
meta "hostname" "host$r"
meta "rank" "$r"
track #1 process uuid=0x1 pid=1$r name="python"
track #2 gpu uuid=0x2 parent=#1 name="GPU 0"
track #3 stream uuid=0x3 parent=#2 name="stream 7"
1.000000000 slice #3 "k" cat="kernel" dur=0.000000007 {device=0 stream=7}
END
done
"$STAVE" merge -q gpu0.txt gpu1.txt -o gpu.pftrace
run_any gpu 0 "$STAVE" report gpu gpu.pftrace
check gpu_names_ranks test "$(grep -o 'GPU 0 (rank [0-9])' gpu.out | sort -u | paste -sd' ')" = 'GPU 0 (rank 0) GPU 0 (rank 1)'
