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
