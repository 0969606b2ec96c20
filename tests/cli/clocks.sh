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
printf '# stave text 1\nclock boottime\nsnapshot boottime=0 realtime=5 wall_state=7 wall_error=5\nsnapshot boottime=1 realtime=6 wall_state=1 wall_error=-5\n' >odd.txt
check states_that_do_not_exist_are_none test "$("$STAVE" cat -q odd.txt | grep -c wall)" = 0
"$STAVE" record -q --no-summary --no-io -o real.pftrace -- true 2>/dev/null
check a_recording_has_them test "$("$STAVE" query -q real.pftrace "select count(*) > 0 and count(*) = count(max_error_ns) and count(*) = count(is_synchronised) as n from clock_snapshot" | tail -1)" = 1
