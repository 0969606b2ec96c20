#!/usr/bin/env bash
# stave export --to parquet: the folders, what is refused, and other programs' readers as judges: they must find what stave query answers.
. "$SRC/tests/harness/cli.sh"
lake=$SRC/tests/cli/lake queries=$SRC/share/sql/duckdb
python3 "$lake/make_ranks.py" .
python3 "$lake/make_hostile.py" hostile.txt
"$STAVE" query -q rank0.txt 'SELECT 1' >probe.out 2>probe.err || { grep -q 'no SQLite' probe.err && skip_all "built without SQLite"; }

# One folder per rank, under escaped names of what the trace says; nothing else.
run_any export 0 "$STAVE" export -q rank0.txt rank1.txt rank2.txt rank3.txt --to parquet -o lake
run folders 0 sh -c 'cd lake && find . -mindepth 3 | grep -v "rank=[123]/" | LC_ALL=C sort'
rank2='lake/run=job%207%2F%CE%B1/host=node1/rank=2'
check magic sh -c 'for f in "$0"/*.parquet; do [ "$(head -c 4 "$f")$(tail -c 4 "$f")" = PAR1PAR1 ] || exit 1; done' "$rank2"

# What is there stays, unless --force says otherwise, and then only if it is an export.
sums() { find "$1" -type f -exec cksum {} + | LC_ALL=C sort; }
sums lake >before
run exists 4 "$STAVE" export -q rank2.txt --to parquet -o lake
check unchanged sh -c 'find lake -type f -exec cksum {} + | LC_ALL=C sort | cmp - before'
run_any force 0 "$STAVE" export -q rank3.txt --to parquet -o lake --force --rank 2
check replaced sh -c 'cmp "$0/slice.parquet" lake/run=*/host=node1/rank=3/slice.parquet' "$rank2"
touch "$rank2/notes"
run foreign_file 4 "$STAVE" export -q rank2.txt --to parquet -o lake --force
check notes_are_there test -e "$rank2/notes"
rm "$rank2/notes"
run_any back 0 "$STAVE" export -q rank2.txt --to parquet -o lake --force
check as_before sh -c 'find lake -type f -exec cksum {} + | LC_ALL=C sort | cmp - before'
run_any named 0 "$STAVE" export -q rank0.txt --to parquet -o named --run 'a b/../c' --rank 17
check named_folder test -d 'named/run=a%20b%2F..%2Fc/host=node0/rank=17'

# A failure leaves nothing that looks whole.
full() { (ulimit -f 2; exec "$STAVE" export -q hostile.txt --to parquet -o full); }
run_any disk_full 4 full
check disk_full_leaves_nothing sh -c '[ -z "$(find full -name "*rank*")" ]'
"$STAVE" merge -q rank0.txt rank2.txt -o merged.pftrace
run merged 2 "$STAVE" export -q merged.pftrace --to parquet -o merged
run rank_of_many 2 "$STAVE" export -q rank0.txt rank1.txt --rank 3 --to parquet -o many
run not_a_rank 2 "$STAVE" export -q rank0.txt --rank -1 --to parquet -o many
run other_form 2 "$STAVE" export -q rank0.txt --run x --to json -o x.json
run_any no_output 2 "$STAVE" export -q rank0.txt --to parquet -o ''
run_any no_trace 3 "$STAVE" export -q nothing.txt --to parquet -o many
check nothing_was_made test ! -e many -a ! -e merged -a ! -e x.json

# Damage: what can be read is exported, with --strict nothing is.
"$STAVE" convert -q rank1.txt -o whole.pftrace
head -c 9000 whole.pftrace >cut.pftrace
run_any strict 1 "$STAVE" export -q cut.pftrace --to parquet -o strict --strict
check strict_leaves_nothing test ! -e strict
run_any damaged 0 "$STAVE" export -q cut.pftrace --to parquet -o damaged
check damage_is_said grep -q 'cut.pftrace: byte' damaged.err

# The judges. Without them the rest is skipped.
case $BUILD in *asan) if [ -z "${STAVE_LONG:-}" ]; then skip judges "with ASan only in the long suite"; exit 0; fi ;; esac
if ! why=$("$SRC/tools/install-deps" readers); then skip judges "$why"; exit 0; fi
compare() { node "$lake/compare.mjs" "$SRC/build/npm" "$STAVE" "$1" "$2"; }
run_any hostile 0 "$STAVE" export hostile.txt --to parquet -o hostile
check says_what_did_not_fit grep -q 'table io: 29 values have another type' hostile.err
for table in "$rank2"/*.parquet; do echo "same $(basename "$table" .parquet)"; done >tables
run_any same_rank 0 compare rank2.txt "$rank2"
check all_tables sh -c 'cut -d" " -f1,2 same_rank.out | cmp - tables && [ "$(wc -l <tables)" = 23 ] && [ "$(grep -c " 0$" same_rank.out)" = 4 ]'
run_any same_hostile 0 compare hostile.txt hostile/run=default/host=unknown/rank=-1
check many_groups grep -qx 'same slice 133002' same_hostile.out
python3 "$SRC/tests/cli/report_llm/engine.py" >engine.json
run_any engine 0 "$STAVE" export -q engine.json --to parquet -o engine
run_any same_engine 0 compare engine.json engine/run=default/host=unknown/rank=-1
check engine_has_rows sh -c 'for t in "engine_step 5" "engine_step_member 9" "token 9"; do grep -qx "same $t" same_engine.out || exit 1; done'
run_any judge_can_fail 1 compare rank1.txt "$rank2"
run_any same_damaged 0 compare cut.pftrace damaged/run=*/host=node0/rank=1
if [ -x "$BUILD/examples/training" ]; then
  STAVE_OUT=recorded.pftrace "$BUILD/examples/training" 5 >/dev/null 2>&1
  run_any recorded 0 "$STAVE" export -q recorded.pftrace --to parquet -o recorded
  run_any same_recorded 0 compare recorded.pftrace recorded/run=*/host=*/rank=*
  check recorded_has_steps grep -qx 'same step 5' same_recorded.out
else
  skip same_recorded "the example training is not built"
fi

# The queries that come with Stave, against its own answers.
duck() { node "$lake/sql.mjs" "$SRC/build/npm" lake "$queries/tables.sql" "$queries/$1.sql"; }
all_ranks() { "$STAVE" query -q rank0.txt rank1.txt rank2.txt rank3.txt "$1" --to csv; }
check all_views sh -c 'sed -n "s/.*VIEW \([a-z_]*\) AS FROM.*/same \1/p" "$0/tables.sql" | LC_ALL=C sort | cmp - tables' "$queries"
for name in stragglers skew step_percentiles cold_reads slow_files; do run_any "duckdb_$name" 0 duck $name; done

check stragglers sh -c '"$0" steps -q rank0.txt rank1.txt rank2.txt rank3.txt --to csv --ns 2>/dev/null | sed -n "s|^\([0-9]*\),[^,]*python rank \([0-9]*\)/main,[0-9]*,\([0-9]*\),.*,straggler.*|job 7/α,\1,\2,\3|p" | sort -n -t, -k2 >own
  tail -n +2 duckdb_stragglers.out | cut -d, -f1,2,4,5 | cmp - own && [ "$(wc -l <own)" = 10 ]' "$STAVE"
# Equal durations between hosts tell nothing.
all_ranks 'SELECT "group", seq, op, count(*) AS n FROM collective GROUP BY 1, 2, 3 ORDER BY 1, 2' >own_skew
check skew sh -c 'cut -d, -f2-5 duckdb_skew.out | cmp - own_skew && [ "$(wc -l <own_skew)" = 31 ] && [ "$(cut -d, -f8-10 duckdb_skew.out | sort -u | xargs)" = ",, skew,last_rank,method" ]'
# Where every step ends in a collective, rank 1 is slow in each but step 7: by its steps, and by its collectives, whatever the wall clocks say.
mkdir jobs; python3 "$lake/make_collectives.py" jobs
run_any export_collectives 0 "$STAVE" export -q jobs/*.txt --to parquet -o collectives
for name in stragglers skew; do run_any "jobs_$name" 0 node "$lake/sql.mjs" "$SRC/build/npm" collectives "$queries/tables.sql" "$queries/$name.sql"; done
. "$lake/collectives.sh"
check_collectives jobs jobs
all_ranks "SELECT k.rank, count(*) AS n, percentile(s.dur, 50) AS p50, percentile(s.dur, 90) AS p90, percentile(s.dur, 99) AS p99, max(s.dur) AS max
  FROM step s JOIN track k ON k.id = s.track_id GROUP BY k.rank ORDER BY k.rank" >own_percentiles
close_to() { # numbers to twelve digits
  awk -F, 'NR == FNR { a[FNR] = $0; next } { n = split(a[FNR], w, ","); for (i = 1; i <= n; i++) if (w[i] != $i && (w[i] - $i) ^ 2 > (1e-12 * $i) ^ 2) { print "line " FNR ": " a[FNR] " is not " $0; exit 1 } m++ }
    END { exit !(m > 1 && m == length(a)) }' "$1" "$2"
}
cut -d, -f3- duckdb_step_percentiles.out >their_percentiles
check step_percentiles close_to own_percentiles their_percentiles
for r in 0 1 2 3; do "$STAVE" report io -q rank$r.txt --csv --by process | awk -F, -v r=$r 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  { print r "," $at["pid"] "," $at["reads"] "," $at["bytes_read"] "," $at["block_reads"] "," $at["block_bytes_read"] "," $at["cached"] }'; done | sort >own_cold
tail -n +2 duckdb_cold_reads.out | cut -d, -f3- | sort >their_cold
check cold_reads close_to own_cold their_cold
all_ranks 'SELECT path, ops, reads, bytes_read, dur, max_dur, errors FROM file ORDER BY dur DESC' >own_files
check slow_files sh -c 'cut -d, -f2,4-8,10 duckdb_slow_files.out | cmp - own_files && [ "$(wc -l <own_files)" = 6 ]'
