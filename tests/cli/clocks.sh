#!/usr/bin/env bash
# What a trace knows of its clocks' errors, and what merge makes of it: docs/clocks.md.
. "$SRC/tests/harness/cli.sh"

# trace NAME HOST BOOT WALL…: a process with one slice, one second after boot; WALL is what its kernel said about the wall clock.
trace() {
  local name=$1 host=$2 boot=$3; shift 3
  cat >"$name.txt" <<END
# stave text 1
clock boottime
snapshot boottime=0 realtime=1700000000000000000 uncertainty=20 $*
meta "hostname" "$host"
meta "boot_id" "$boot"
track #1 process uuid=0x1 pid=10 name="python"
track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"
1.000000000 slice #2 "$name" dur=0.000000007
END
}
boot_a=11111111-aaaa-4000-8000-000000000001 boot_b=22222222-bbbb-4000-8000-000000000002
trace a alpha $boot_a wall_state=1 wall_error=1500000
trace free beta $boot_b wall_state=2 wall_error=16000000000

# ---- the errors of wall clocks survive ----

for name in a free; do
  "$STAVE" convert -q $name.txt -o $name.pftrace && "$STAVE" convert -q $name.pftrace -o $name.json && "$STAVE" convert -q $name.json -o again.pftrace
  check "wall_error_of_${name}_survives_perfetto_and_json" grep -Fqx "$(grep ^snapshot $name.txt)" <("$STAVE" cat -q again.pftrace)
done
run wall_error_in_sql 0 "$STAVE" query -q free.pftrace "select clock_name, max_error_ns, is_synchronised from clock_snapshot order by 1"
run info_has_it 0 "$STAVE" info a.txt
printf '# stave text 1\nclock boottime\nsnapshot boottime=0 realtime=5 wall_state=7 wall_error=5\nsnapshot boottime=1 realtime=6 wall_state=1 wall_error=-5\n' >odd.txt
check states_that_do_not_exist_are_none test "$("$STAVE" cat -q odd.txt | grep -c wall)" = 0
"$STAVE" record -q --no-summary --no-io -o real.pftrace -- true 2>/dev/null
check a_recording_has_them test "$("$STAVE" query -q real.pftrace "select count(*) > 0 and count(*) = count(max_error_ns) and count(*) = count(is_synchronised) as n from clock_snapshot" | tail -1)" = 1

# ---- what merge says of hosts ----

trace b beta $boot_b wall_state=1 wall_error=500000
trace other alpha $boot_b wall_state=1 wall_error=500000
trace silent beta $boot_b
run by_synchronised_wall_clocks 0 "$STAVE" merge a.txt b.txt -o walls.pftrace
run by_a_free_wall_clock 0 "$STAVE" merge a.txt free.txt -o free_wall.pftrace
run_any by_a_wall_clock_of_which_nothing_is_known 0 "$STAVE" merge a.txt silent.txt -o silent.pftrace
check which_is_said grep -q 'relation to the other hosts is unknown (beta' by_a_wall_clock_of_which_nothing_is_known.err
# axis FILE: what the merged file says of its axis
axis() { "$STAVE" query -q "$1" "select str_value from metadata where name like '%clock_axis'" | tail -1; }
check bound_is_in_the_file grep -q 'between_hosts_ns"":2000000,' <(axis walls.pftrace)
check unknown_is_in_the_file grep -q 'between_hosts_ns"":null,' <(axis free_wall.pftrace)
run_any equal_names_other_boot 0 "$STAVE" merge a.txt other.txt -o names.pftrace
check equal_names_with_different_boots_are_two_machines grep -q '^stave merge: hosts on one axis' equal_names_other_boot.err
grep -v '^snapshot' a.txt >mute_a.txt; grep -v '^snapshot' b.txt >mute_b.txt
run refusal_names_both_hosts 2 "$STAVE" merge mute_a.txt mute_b.txt -o mute.pftrace

# ---- relations ----

# relation FILE LOCAL REFERENCE ROUND…: as `stave sync` writes it
relation() {
  local to=$1 local=$2 reference=$3; shift 3
  echo "{\"stave_relation\":1,\"how\":\"pings\",\"local\":{\"host\":\"x\",\"boot_id\":\"$local\"},\"reference\":{\"host\":\"y\",\"boot_id\":\"$reference\"},\"rounds\":[$(IFS=,; echo "$*")]}" >"$to"
}
# b's clock is 5 s behind a's, and loses 10 µs in a second.
relation before.json $boot_b $boot_a '[0,4999990000,5000010000]'
relation after.json $boot_b $boot_a '[2000000000,5000010000,5000030000]'
run by_pings 0 "$STAVE" merge mute_a.txt mute_b.txt --relation before.json --relation after.json --to text
"$STAVE" merge -q mute_b.txt mute_a.txt --relation after.json --relation before.json --to text >swapped.txt
check order_of_relations_has_no_effect cmp by_pings.out swapped.txt
"$STAVE" merge -q a.txt b.txt --relation before.json --relation after.json --to text >with_walls.txt
check pings_are_better_than_wall_clocks grep -q '^6.000010000 slice #[0-9]* "b"' with_walls.txt
check one_round_says_less grep -qE 'at most [0-9]{6} ns apart' <("$STAVE" merge mute_a.txt mute_b.txt --relation before.json --to text 2>&1 >/dev/null)
# Both are related to a third host, of which there is no trace.
third=33333333-cccc-4000-8000-000000000003
relation a3.json $boot_a $third '[0,100,200]' '[2000000000,100,200]'
relation b3.json $boot_b $third '[0,5000000100,5000000200]' '[2000000000,5000000100,5000000200]'
run over_a_third_host 0 "$STAVE" merge mute_a.txt mute_b.txt --relation a3.json --relation b3.json --to text
# A relation in the metadata of a trace serves the others of its host, and survives conversion.
{ cat mute_b.txt; echo "json \"clock_relation\" \"$(sed 's/"/\\"/g' after.json)\""; } >carries.txt
"$STAVE" convert -q carries.txt -o carries.pftrace && "$STAVE" convert -q carries.pftrace -o carries.json && "$STAVE" convert -q carries.json -o carried.pftrace
run_any in_metadata 0 "$STAVE" merge mute_a.txt mute_b.txt carried.pftrace -o carried_all.pftrace
check relation_in_metadata_relates_the_host grep -q 'hosts on one axis (2 of them by pings: at most' in_metadata.err
# Two ranks of a host are merged first, then the hosts.
{ cat mute_b.txt; echo "json \"clock_relation\" \"$(sed 's/"/\\"/g' before.json)\""; } >carries_too.txt
"$STAVE" merge -q carries.txt carries_too.txt -o host_b.pftrace
check relations_of_one_host_become_one grep -q '\[\[0,4999990000,5000010000\],\[2000000000,5000010000,5000030000\]\]' <("$STAVE" query -q host_b.pftrace "select str_value from metadata where name = 'clock_relation'")
"$STAVE" merge -q mute_a.txt host_b.pftrace --to text >hosts_later.txt
check merged_in_groups grep -q '^6.000010000 slice #[0-9]* "b"' hosts_later.txt
check relations_that_were_used_are_gone test "$(grep -c clock_relation hosts_later.txt)" = 0
echo '{"stave_relation":1,"rounds":[[1,2]]}' >bad.json
run bad_relation 3 "$STAVE" merge mute_a.txt mute_b.txt --relation bad.json -o bad.pftrace
run_any no_relation_file 3 "$STAVE" merge mute_a.txt mute_b.txt --relation nowhere.json -o bad.pftrace
check refused_leaves_no_file test ! -e bad.pftrace

# ---- time namespaces ----

# One machine, but its clocks are 10 ms apart for the second process.
sed 's/boottime=0 /boottime=10000000 /; s/^meta "hostname".*/&\nmeta "time_offsets" "10000000 10000000"/' a.txt >moved.txt
run time_namespaces 0 "$STAVE" merge a.txt moved.txt --to text

# ---- an estimate from collectives ----

# ranks NAME HOST BOOT OFFSET_NS: 40 barriers, a tenth of a second apart; the clock is OFFSET_NS ahead. Some leave late.
ranks() {
  { grep -v slice mute_a.txt | sed "s/alpha/$2/; s/$boot_a/$3/"
    for i in {0..39}; do
      ns=$((1000000000 + i * 100000000 + $4 + (i % 7 == 3 ? 4000000 : 0)))
      printf '%d.%09d slice #2 "MPI_Barrier" dur=0.000010000 cat="collective" {op="barrier" group="world" seq=%d}\n' $((ns / 1000000000)) $((ns % 1000000000)) "$i"
    done; } >"$1.txt"
}
ranks r0 alpha $boot_a 0
ranks r1 beta $boot_b 2010000000
run never_by_itself 2 "$STAVE" merge r0.txt r1.txt -o aligned.pftrace
run by_collectives 0 "$STAVE" merge r0.txt r1.txt --align collectives -o aligned.pftrace
check ends_meet test "$("$STAVE" query -q aligned.pftrace "select count(*) from (select extract_arg(arg_set_id, 'debug.seq') as seq, max(ts) - min(ts) as apart, count(*) as n from slice group by 1 having apart = 0 and n = 2)" | tail -1)" = 40
check the_file_says_that_it_is_an_estimate grep -q 'is_estimate"":true,.*hosts_estimated"":1,' <(axis aligned.pftrace)
run_any measured_comes_first 0 "$STAVE" merge r0.txt r1.txt --align collectives --relation before.json --relation after.json -o measured.pftrace
check measured_is_no_estimate grep -q 'is_estimate"":false,' <(axis measured.pftrace)
run_any nothing_to_align_by 2 "$STAVE" merge mute_a.txt mute_b.txt --align collectives -o aligned2.pftrace
check and_it_says_why grep -q 'shares too few collectives' nothing_to_align_by.err
run align_by_something_else 2 "$STAVE" merge r0.txt r1.txt --align hope -o aligned2.pftrace
