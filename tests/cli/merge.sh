#!/usr/bin/env bash
# stave merge: clocks related or refused, identities kept apart, the order of inputs without effect.
. "$SRC/tests/harness/cli.sh"

# trace NAME HOST BOOT_NS: a process 10 with one slice that sends a flow 7, one second after boot; BOOT_NS relates it to the wall clock.
trace() {
  cat >"$1.txt" <<END
# stave text 1
clock boottime
snapshot boottime=$3 realtime=1700000000000000000 uncertainty=20
meta "hostname" "$2"
track #1 process uuid=0x1 pid=10 name="python"
track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"
1.000000000 slice #2 "$1" dur=0.000000007 {@flow_begin:0x7 @correlation:0x5}
END
}
trace a alpha 0
trace b beta 500
trace same alpha 0
grep -v '^snapshot\|hostname' a.txt | sed 's/boottime/unknown/' >unrelated.txt

run two_hosts 0 "$STAVE" merge a.txt b.txt --to text
"$STAVE" merge -q b.txt a.txt --to text >swapped.txt
check order_has_no_effect cmp two_hosts.out swapped.txt
run one_host 0 "$STAVE" merge a.txt same.txt --to text
run refused 2 "$STAVE" merge a.txt unrelated.txt -o refused.pftrace
check refused_leaves_no_file test ! -e refused.pftrace
run assumed 0 "$STAVE" merge a.txt unrelated.txt --assume --to text
run offset 0 "$STAVE" merge a.txt unrelated.txt --offset unrelated.txt=-1500 --to text
run offset_of_no_input 2 "$STAVE" merge a.txt b.txt --offset c.txt=1 --to text
run offset_not_a_time 2 "$STAVE" merge a.txt b.txt --offset b.txt=soon --to text
run one_input 2 "$STAVE" merge a.txt --to text
run_any to_perfetto 0 "$STAVE" merge a.txt b.txt -o both.pftrace
"$STAVE" cat -q both.pftrace | grep -c 'process uuid' >n_processes
check equal_pids_stay_apart_in_perfetto test "$(cat n_processes)" = 2

# Two machines of one name are two; after a reboot a machine is another one. What has no boot id goes by its name, as ever.
boot() { sed "s/^meta \"hostname\".*/&\nmeta \"boot_id\" \"$2\"/" "$1.txt" >"$3.txt"; }
boot a 11111111-aaaa-4000-8000-000000000001 first
boot same 22222222-bbbb-4000-8000-000000000002 second
boot b 11111111-aaaa-4000-8000-000000000001 renamed
run two_boots 0 "$STAVE" merge first.txt second.txt --to text
run one_boot 0 "$STAVE" merge first.txt renamed.txt --to text
run one_without_a_boot 0 "$STAVE" merge first.txt same.txt --to text
"$STAVE" convert -q first.txt -o first.pftrace && "$STAVE" convert -q first.pftrace -o first.json && "$STAVE" convert -q first.json -o again.pftrace
check boot_id_survives_perfetto_and_json grep -q 'meta "boot_id" "11111111-aaaa-4000-8000-000000000001"' <("$STAVE" cat -q again.pftrace)

# Kineto's files: rank and host at the top, the base of the times at the end. kineto NAME RANK HOST TS_US.
kineto() {
  cat >"$1.json" <<KINETO
{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": $2, "world_size": 4}, "host_name": "$3",
"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "$1", "pid": 10, "tid": 10, "ts": $4.000, "dur": 5.000},
{"ph": "X", "cat": "cpu_op", "name": "$1 again", "pid": 10, "tid": 10, "ts": $4.500, "dur": 1.000}
], "traceName": "$1", "baseTimeNanoseconds": 1700000000000000000}
KINETO
}
kineto k0 0 alpha 100
kineto k1 1 alpha 200
kineto k2 2 beta 300
head -c 330 k1.json >torn1.json # within the second event
head -c 330 k2.json >torn2.json

# A folder: sorted, without what is no trace, without the output of the run before.
mkdir -p job/deep && cp k0.json job/b.json && cp k1.json job/a.json && cp k2.json job/deep/c.json && echo "not a trace" >job/notes.md && echo '{"lr": 0.1}' >job/config.json && echo x >job/killed.pftrace.part
run folder 0 "$STAVE" merge job/ -o job/all.pftrace
run folder_again 0 "$STAVE" merge job -o job/all.pftrace
"$STAVE" merge -q k0.json k1.json k2.json -o named.pftrace
check folder_is_its_files cmp <("$STAVE" cat -q job/all.pftrace) <("$STAVE" cat -q named.pftrace)
mkdir -p empty && run empty_folder 3 "$STAVE" merge empty -o none.pftrace
check empty_folder_makes_nothing test ! -e none.pftrace

# All are opened first; with --skip-bad the rest is merged, and what is missing is named.
echo '{"traceEvents": 7}' >bad.json
run missing 3 "$STAVE" merge k0.json k1.json absent.json -o none.pftrace
run skip_bad 0 "$STAVE" merge -q k0.json absent.json bad.json k1.json notes.md --skip-bad -o skipped.pftrace
check skip_bad_has_the_rest test "$("$STAVE" query -q skipped.pftrace 'select count(*) from slice' | tail -n 1)" = 4
run skip_damaged 0 "$STAVE" merge -q k0.json torn1.json k2.json --skip-bad --strict -o skipped.pftrace
check skip_damaged_has_the_rest test "$("$STAVE" query -q skipped.pftrace 'select count(*) from slice' | tail -n 1)" = 4
run all_bad 3 "$STAVE" merge bad.json absent.json --skip-bad -o none.pftrace
check nothing_half_written test ! -e none.pftrace

# One rank twice; its parts in time, and another kind of file of it, are not.
run same_file 2 "$STAVE" merge k0.json ./k0.json -o none.pftrace
cp k1.json copy.json
run rank_twice 2 "$STAVE" merge k0.json k1.json copy.json -o none.pftrace
check rank_twice_makes_nothing test ! -e none.pftrace
run_any repeat_ranks 0 "$STAVE" merge -q k0.json k1.json copy.json --repeat-ranks -o twice.pftrace
kineto later 1 alpha 900000
run_any cycles_of_a_rank 0 "$STAVE" merge -q k0.json k1.json later.json -o cycles.pftrace
"$STAVE" convert -q k1.json -o k1.pftrace
run converted_copy 2 "$STAVE" merge -q k0.json k1.json k1.pftrace -o none.pftrace
"$STAVE" cat -q k1.json | sed 's/"k1 again"/"more" {x:1}/; s/dur=0.000005000/dur=0.000006000/' >own.txt
run_any two_kinds_of_a_rank 0 "$STAVE" merge -q k0.json k1.json own.txt -o kinds.pftrace
run torn_and_whole 0 "$STAVE" merge -q k0.json torn1.json k1.json --skip-bad -o whole.pftrace
check torn_and_whole_has_one test "$("$STAVE" query -q whole.pftrace 'select count(*) from slice' | tail -n 1)" = 4

# Cut before the base: from a rank of the same host, by hand, or not at all.
run torn_by_host 0 "$STAVE" merge k0.json torn1.json --to text
check torn_by_host_is_placed grep -q '^1700000000.000200000 slice .* "k1"' torn_by_host.out
run torn_alone 0 "$STAVE" merge k0.json torn2.json --to text
check torn_alone_is_left_out test "$(grep -c slice torn_alone.out)" = 2
run_any torn_by_hand 0 "$STAVE" merge -q k0.json torn2.json --offset torn2.json=1700000000000000000 --to text
check torn_by_hand_is_placed grep -q '^1700000000.000300000 slice .* "k2"' torn_by_hand.out
