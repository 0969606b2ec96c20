#!/usr/bin/env bash
# stave stats, diff, steps, critical-path: what they say and how they end, also in a build without SQLite.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good/kineto.json

run_any stats 0 "$STAVE" stats -q "$good" --group-by cat,name --sort self
check stats_adds_up sh -c '[ "$("$0" stats -q "$1" --group-by track --to csv | awk -F, "NR > 1 { n += \$(NF - 8) } END { print n }")" = 6 ]' "$STAVE" "$good"
run_any stats_bad_sort 2 "$STAVE" stats -q "$good" --sort colour
run_any stats_bad_filter 2 "$STAVE" stats -q "$good" --filter colour=red

run_any diff_same 0 "$STAVE" diff -q "$good" "$good" --fail-over 1
check diff_same_is_empty test "$(wc -l <"$TMP/diff_same.out")" = 1
run_any diff_bad_threshold 2 "$STAVE" diff -q "$good" "$good" --threshold much
# A pair that is made for it: "work" takes twice as long, "rest" as before. In the forms that pipelines want.
make_pair() {
  awk -v factor="$1" 'BEGIN {
    print "["
    for (i = 0; i < 40; i++) {
      printf "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,\"name\":\"work\"},\n", i * 1000, (100 + i) * factor
      printf "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,\"name\":\"rest\"},\n", i * 1000 + 500, 100 + i
    }
    print "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":50000,\"name\":\"end\"}]"
  }'
}
make_pair 1 >base.json
make_pair 2 >slower.json
run_any diff_slower 1 "$STAVE" diff -q base.json slower.json --fail-over 50 --to csv
check diff_slower_names_it sh -c 'grep -q "^changed,.*,work,40,40,4780000,9560000," diff_slower.out && ! grep -q rest diff_slower.out'
run_any diff_faster 0 "$STAVE" diff -q slower.json base.json --fail-over 50 --to csv
run_any diff_min_total 0 "$STAVE" diff -q base.json slower.json --fail-over 50 --min-total 1e6 --to csv
run_any diff_markdown 0 "$STAVE" diff base.json slower.json --to markdown --all
check diff_states_its_test grep -q 'Mann-Whitney' diff_markdown.err
check diff_markdown_is_a_table sh -c 'head -n 2 diff_markdown.out | tail -n 1 | grep -q "^| ---"'
if command -v python3 >/dev/null; then
  run_any diff_json 0 "$STAVE" diff -q base.json slower.json --to json --all
  check diff_json_is_json python3 -c 'import json; r = json.load(open("diff_json.out")); assert {"state", "total_a_ns", "p"} <= set(r[0])'
fi

run_any critical_path 0 "$STAVE" critical-path -q "$good"
run_any critical_path_nowhere 2 "$STAVE" critical-path -q "$good" --to 'nothing like it'
run_any steps_none 1 "$STAVE" steps -q "$good" --marker 'nothing like it'
run_any steps 0 "$STAVE" steps -q "$good" --to csv
check steps_add_up sh -c 'awk -F, "NR == 2 { n = \$5 + \$6 + \$7 + \$8 + \$9 + \$10 + \$11 + \$12 + \$13 + \$14 + \$15; exit !(n == \$4 && n > 0) }" steps.out'

# A server's batches are no steps, unless the user says so. Two markers of one moment are two steps for all who count them.
cat >server.json <<'J'
[{"ph":"X","cat":"batching","name":"batch_build","pid":1,"tid":3,"ts":10,"dur":90},{"ph":"X","cat":"batching","name":"batch_build","pid":1,"tid":3,"ts":200,"dur":90}]
J
run_any steps_of_server 1 "$STAVE" steps -q server.json
run_any steps_of_server_as_asked 0 "$STAVE" steps -q server.json --marker 'batch*'
cat >moment.json <<'J'
[{"ph":"i","s":"t","name":"step 1","pid":1,"tid":1,"ts":10},{"ph":"i","s":"t","name":"step 2","pid":1,"tid":1,"ts":10},
 {"ph":"i","s":"t","name":"step 3","pid":1,"tid":1,"ts":20},{"ph":"i","s":"t","name":"step 4","pid":1,"tid":1,"ts":30}]
J
check steps_of_one_moment test "$("$STAVE" steps -q moment.json --to csv | grep -c '^[0-9]') $("$STAVE" report wait -q moment.json --csv --by span | grep -c '^step')" = "3 3"

# Two recordings of one program.
training=$(dirname "$STAVE")/examples/training
if [ -x "$training" ]; then
  for run in a b; do STAVE_OUT=$run.pftrace "$training" 10 >"$run.log" 2>&1; done
  run_any diff_recordings 0 "$STAVE" diff a.pftrace b.pftrace --all --to csv
  check diff_counts_are_the_same sh -c '! grep -E "^(added|removed)," diff_recordings.out'
  check diff_is_per_step grep -q 'compared per step: 10 and 10' diff_recordings.err
  run_any steps_of_recording 0 "$STAVE" steps a.pftrace --to csv
  check ten_steps test "$(wc -l <steps_of_recording.out)" = 11
else
  skip recordings "the example training is not built"
fi

# What a build without SQLite cannot do, it says.
if ! "$STAVE" query -q "$good" 'SELECT 1' >query.out 2>query.err; then
  check says_what_is_missing grep -q 'this build has no SQLite: install libsqlite3-dev' query.err
  run_any query_without 4 "$STAVE" query -q "$good" 'SELECT 1'
  run_any export_without 4 "$STAVE" export -q "$good" -o x.db
fi
