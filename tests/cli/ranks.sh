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
run_any info 0 "$STAVE" info all.pftrace
check info_names_ranks grep -q 'rank 2 · python (pid 10 on beta)' info.out
"$STAVE" info --json all.pftrace >info.json
check info_as_json grep -q '"rank":1,"host":"alpha"' info.json
check drawn "$STAVE" plot timeline -q all.pftrace -o all.svg
check rows_by_rank test "$(grep -o 'rank [0-9] · python' all.svg | uniq | tr '\n' ' ')" = 'rank 0 · python rank 1 · python rank 2 · python '
run cut 0 "$STAVE" cut -q all.pftrace --track 'rank 1 *' --to text
