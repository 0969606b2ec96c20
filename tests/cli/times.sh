#!/usr/bin/env bash
# Times before zero and at the ends of int64: every verb and format gives them back, or refuses.
. "$SRC/tests/harness/cli.sh"
export LC_ALL=C

# One line per slice, instant and counter value, without what formats have no place for.
rows() { "$STAVE" convert -q "$1" --to csv | cut -d, -f1-3,9- | sort; }

cat >n.json <<'END'
[{"ph":"X","name":"warm","ts":-10,"dur":5,"pid":1,"tid":1},
{"ph":"X","name":"step","ts":0,"dur":7.5,"pid":1,"tid":1},
{"ph":"X","name":"inner","ts":1.25,"dur":2,"pid":1,"tid":1},
{"ph":"C","name":"load","ts":-3.001,"pid":1,"args":{"v":4}},
{"ph":"i","name":"mark","ts":1000,"pid":1,"tid":2}]
END
rows n.json >want
check the_example_is_read grep -q '^-10000,5000,slice' want
for suffix in pftrace pftrace.gz json txt; do
  run_any "convert_$suffix" 0 "$STAVE" convert n.json -o "to.$suffix"
  rows "to.$suffix" >got
  check "$suffix has the same times" cmp want got
done
mv to.pftrace n.pftrace
check a_note_names_the_shift grep -q 'times before zero (Perfetto shows all times 10000 ns later' convert_pftrace.err
check the_file_explains_it grep -qa 'time_origin_ns' n.pftrace
check the_explanation_is_no_metadata sh -c '! "$0" cat -q n.pftrace | grep -q time_origin' "$STAVE"
for how in gzip zstd; do
  "$STAVE" convert -q n.json -o "$how.pftrace" --compress "$how" 2>/dev/null || continue
  rows "$how.pftrace" >got
  check "perfetto with $how has the same times" cmp want got
done
run_any kineto 0 "$STAVE" convert -q n.json -o kineto.json --dialect kineto
rows kineto.json | grep slice | cut -d, -f1-3 >got
check kineto_has_the_same_slices sh -c 'grep slice want | cut -d, -f1-3 | cmp - got'
run_any gpu 0 "$STAVE" convert -q n.json -o gpu.pftrace --dialect gpu
rows gpu.pftrace >got
check gpu_has_the_same_times cmp want got

cat >stage.json <<'END'
[{"ph":"X","name":"k","cat":"kernel","ts":-30,"dur":5,"pid":0,"tid":7,"args":{"device":0,"stream":7,"correlation":3}},
{"ph":"X","name":"launch","cat":"cuda_runtime","ts":-40,"dur":2,"pid":5,"tid":5,"args":{"correlation":3}}]
END
run_any gpu_stage 0 "$STAVE" convert -q stage.json -o stage.pftrace --dialect gpu
"$STAVE" convert -q stage.pftrace --to csv | cut -d, -f1,2 >got
check gpu_stages_have_the_same_times sh -c 'grep -q ^-30000,5000 got && grep -q ^-40000,2000 got'

run_any merge 0 "$STAVE" merge -q n.pftrace n.json --assume -o both.pftrace
check merge_has_both test "$(rows both.pftrace | grep -c '^-10000,5000,slice')" = 2
run_any merge_offset 0 "$STAVE" merge -q n.pftrace n.json --offset n.json=-1ms --assume -o early.pftrace
check merge_by_an_offset test "$(rows early.pftrace | grep -c '^-1010000,5000,slice')" = 1
run_any cut 0 "$STAVE" cut -q n.pftrace --time -8us: -o cut.pftrace # an absolute time would need @
check cut_counts_from_the_first_event sh -c '"$0" cat -q cut.pftrace | grep -q "^-0.000010000 begin"' "$STAVE"
run_any cut_away 0 "$STAVE" cut -q n.pftrace --time 8us: -o rest.pftrace
rows rest.pftrace >got
check cut_keeps_the_rest sh -c 'grep -q ^0,7500,slice got && grep -q ^1250,2000,slice got && ! grep -q ,5000, got'

# The ends of int64.
cat >ends.txt <<'END'
# stave text 1
clock unknown
track #1 process uuid=0x1 pid=1 name="p"
track #2 thread uuid=0x2 parent=#1 pid=1 tid=1 name="t"
-9223372036.854775808 slice #2 "first" dur=9223372036.854775807
-9223372036.854775807 instant #2 "second"
0.000000000 slice #2 "from zero" dur=9223372036.854775807
9223372036.854775806 slice #2 "late" dur=0.000000001
9223372036.854775807 slice #2 "last" dur=0.000000000
END
rows ends.txt >want
for suffix in pftrace json txt; do
  run_any "ends_$suffix" 0 "$STAVE" convert ends.txt -o "to.$suffix"
  rows "to.$suffix" >got
  check "$suffix has the ends of time" cmp want got
done
check what_perfetto_cannot_hold_is_said grep -q 'times more than 292 years apart' ends_pftrace.err
run_any ends_cut 0 "$STAVE" cut -q ends.txt -o ends_cut.pftrace
rows ends_cut.pftrace >got
check cut_has_the_ends_of_time cmp want got

# What begins at no time is refused, too.
for ts in 9223372036854775.808 -9223372036854775.809 1e300 '"1e99"'; do
  printf '[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1},\n{"ph":"X","name":"b","ts":%s,"dur":1,"pid":1,"tid":1}]' "$ts" >start.json
  run_any "start_$ts" 4 "$STAVE" convert start.json -o none.pftrace
  check "start_$ts has a place" grep -q '^stave convert: start.json: byte 47: the event here begins or ends' "start_$ts.err"
  check "start_$ts leaves nothing" test ! -e none.pftrace
done

# What ends at no time is refused, with its place, and leaves no file.
cat >over.json <<'END'
[{"ph":"X","name":"a","ts":1,"dur":5,"pid":1,"tid":1},
{"ph":"X","name":"b","ts":9223372036854775.807,"dur":0.001,"pid":1,"tid":1}]
END
for suffix in pftrace json txt csv; do
  run_any "over_$suffix" 4 "$STAVE" convert over.json -o "none.$suffix"
  check "over_$suffix has a place" grep -q '^stave convert: over.json: byte 55: ' "over_$suffix.err"
  check "over_$suffix leaves nothing" test ! -e "none.$suffix"
done
run_any over_merge 4 "$STAVE" merge n.json over.json --assume -o over.pftrace
check over_merge_has_a_place grep -q 'over.json: byte 55: ' over_merge.err
run_any over_offset 4 "$STAVE" merge n.json ends.txt --offset n.json=9223372036.854s --assume -o over.pftrace
check over_offset_names_the_file grep -q 'n.json: the event at 1000000 ns' over_offset.err
cat >long.txt <<'END'
# stave text 1
track #2 thread uuid=0x2 pid=1 tid=1 name="t"
-1.000000000 begin #2 "long"
9223372036.854775807 end #2
END
run_any too_long 4 "$STAVE" convert long.txt -o long.csv
check too_long_has_a_place grep -q 'at -1000000000 ns on track "t"' too_long.err
cat >long.json <<'END'
[{"ph":"B","name":"a","ts":-9223372036854775.808,"pid":1,"tid":1},
{"ph":"E","ts":9223372036854775.807,"pid":1,"tid":1}]
END
for suffix in pftrace pftrace.gz json txt csv; do
  run_any "edges_$suffix" 4 "$STAVE" convert -q long.txt -o "none.$suffix"
  check "edges_$suffix have a place" grep -q 'at -1000000000 ns on track "t"' "edges_$suffix.err"
  check "edges_$suffix leave nothing" test ! -e "none.$suffix"
  run_any "pair_$suffix" 4 "$STAVE" convert -q long.json -o "none.$suffix"
  check "pair_$suffix has a place" grep -q 'at -9223372036854775808 ns on thread 1 of process 1;' "pair_$suffix.err"
  check "pair_$suffix leaves nothing" test ! -e "none.$suffix"
done
run_any merge_too_long 4 "$STAVE" merge -q n.json long.json --assume -o none.pftrace
run_any cut_too_long 4 "$STAVE" cut -q long.json -o none.pftrace
check merge_and_cut_leave_nothing test ! -e none.pftrace
run_any stats_too_long 4 "$STAVE" stats long.txt
check stats_too_long_has_a_place grep -q 'at -1000000000 ns on track "t"' stats_too_long.err
run_any validate_too_long 1 "$STAVE" validate long.txt
check validate_names_it grep -q 'endless-duration' validate_too_long.out
sed -i 's/ name="t"//' long.txt
run_any nameless_too_long 4 "$STAVE" stats long.txt
check a_track_without_a_name_has_numbers grep -q 'at -1000000000 ns on thread 1 of process 1;' nameless_too_long.err

# What begins at the last time of all is not inside of what ends then.
cat >last.json <<'END'
[{"ph":"X","name":"until then","ts":9223372036854773.807,"dur":2,"pid":1,"tid":1},
{"ph":"X","name":"a moment","ts":9223372036854775.807,"dur":0,"pid":1,"tid":1},
{"ph":"B","name":"never ended","ts":9223372036854775.807,"pid":1,"tid":1},
{"ph":"X","name":"a moment","ts":9223372036854775.807,"dur":0,"pid":1,"tid":1}]
END
run_any last 0 "$STAVE" convert -q last.json -o last.pftrace
rows last.json >want 2>said # that it has no end
rows last.pftrace >got 2>said
check the_last_time_of_all cmp want got
