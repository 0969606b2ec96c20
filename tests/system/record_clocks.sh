#!/usr/bin/env bash
# Days have clocks that are set and machines that sleep: both are marked in the trace, the time of day stays right, names of saved files have the time of
# the event, and what is absent because the machine slept is no hit. The clocks of the recorder are moved by a preloaded library.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
case $BUILD in *tsan | *asan) skip_all "the sanitizer is between the program and the shim" ;; esac
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR" saved
check shim "${CC:-cc}" -std=c17 -O1 -shared -fPIC -o clock.so "$SRC/tests/stress/fault/clock.c" -ldl
move() { printf '%s %s\n' "$1" "$2" >clocks.new; mv clocks.new clocks; } # SET_NS SUSPENDED_NS
record() { # NAME OPTION… -- COMMAND…: without the kernel's side, in the background
  local name=$1; shift
  local bare=(setpriv --bounding-set=-all --inh-caps=-all); [ "$(id -u)" = 0 ] || bare=()
  env CLOCK_IN=stave CLOCK_FILE="$TMP/clocks" LD_PRELOAD="$TMP/clock.so" "${bare[@]}" "$STAVE" record --no-summary --no-explain --gpu-interval 0 --no-look --no-inject "$@" 2>"$name.err" &
  recorder=$!
}
trap 'kill $(jobs -p) 2>/dev/null; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
field() { "$STAVE" query -q "$@" | tail -n 1; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(d < by && d > -by) }'; }
hour=3600000000000 minute=60000000000

move 0 0
record marks -o marks.pftrace -- sh -c 'touch begun; until [ -e stop ]; do sleep 0.02; done'
check marks_begin until_true '[ -e begun ] && [ -s "$(echo run/stave-recordings/$recorder.*)" ]'
move $hour 0
check marks_forward until_true 'grep -qE "^stave record: the wall clock was set forward by (1:00:00|3,?600).*, to 20[0-9-]+ [0-9:]+ UTC$" marks.err'
move $((hour - 1500000000)) 0
check marks_back until_true 'grep -qE "^stave record: the wall clock was set back by 1[.]5.* s, to " marks.err'
move $((hour - 1500000000)) $((10 * minute))
check marks_suspended until_true 'grep -q "^stave record: the machine was suspended for " marks.err'
now=$(date +%s%N); touch stop; wait $recorder
check marks_three test "$(grep -cE "wall clock was set|was suspended" marks.err)" = 3
check marks_valid "$STAVE" validate -q marks.pftrace
mark() { field marks.pftrace "select $1 from slice join args using (arg_set_id) where name = 'clock set' and key = 'debug.by_ns' order by ts limit 1 offset $2"; }
check marks_by near "$(mark int_value 0)" $hour 1e9
check marks_by_back near "$(mark int_value 1)" -1500000000 1e9
check marks_slept near "$(field marks.pftrace "select dur from slice where name = 'suspended'")" $((10 * minute)) 1e9
check marks_in_the_row test "$(field marks.pftrace "select count(*) from slice join track on track.id = track_id where track.name = 'Recorder' and slice.name in ('clock set', 'suspended')")" = 3
# The time of day of the end, of the middle and of the beginning: each by the clock as it was then.
check marks_utc_end near "$(field marks.pftrace 'select to_realtime(end_ts) from trace_bounds')" $((now + hour - 1500000000 + 10 * minute)) 30e9
check marks_utc_jump near "$(field marks.pftrace "select to_realtime(ts + 1000000) - to_realtime(ts - 200000000) from slice where name = 'clock set' order by ts limit 1")" $hour 2e9

# No file while the machine sleeps, and one named by the time of its event: the clock is set while it waits for its tail.
move 0 0; touch app.log
record saved -o 'saved/%t.pftrace' --tail 5s --when 'no step for 300s' --when "log app.log ~ 'boom'" --interval 100ms -- sh -c 'touch began2; "$0" step=5*3 until=stop2' "$BUILD/tests/stress/paced"
check saved_begin until_true '[ -e began2 ] && "$STAVE" status | grep -q saved/'
check saved_steps until_true '"$STAVE" status --json | grep -qE "\"events\":[1-9][0-9]"'
move 0 $((20 * minute))
check saved_slept until_true 'grep -q "was suspended for" saved.err'
sleep 1 & second=$!; wait $second # two looks at what is absent
check saved_no_hit sh -c '"$0" status --json | grep -q "\"hits\":0,"' "$STAVE"
echo boom >>app.log; at=$(date +%s)
check saved_hit until_true '"$STAVE" status --json | grep -q "\"hits\":1,"'
move $((100 * hour)) $((20 * minute))
check saved_there until_true 'ls saved/*Z.pftrace'
name=$(basename "$(echo saved/*.pftrace)" .pftrace)
stamp=$(date -u -d "${name:0:4}-${name:4:2}-${name:6:2} ${name:9:2}:${name:11:2}:${name:13:2}" +%s)
check saved_name near "$stamp" $((at + 1200)) 30
touch stop2; wait $recorder
