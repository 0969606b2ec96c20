#!/usr/bin/env bash
# Parquet files judged by ClickHouse's own library, which is 560 MB: in the long suite only.
. "$SRC/tests/harness/cli.sh"
[ -n "${STAVE_LONG:-}" ] || skip_all "ClickHouse's library is fetched in the long suite only"
lake=$SRC/tests/cli/lake
for group in readers chdb; do why=$("$SRC/tools/install-deps" $group) || skip_all "$why"; done
library=$(echo "$SRC"/build/npm/chdb/package-*/libchdb.so)
python3 "$lake/make_ranks.py" .
python3 "$lake/make_hostile.py" hostile.txt 930000 # more than one row group also of a table that comes by a query
check compiled cc -o chdb "$lake/chdb.c" -ldl
run_any export 0 "$STAVE" export -q rank1.txt hostile.txt --to parquet -o lake
compare() { node "$lake/compare.mjs" "$SRC/build/npm" "$STAVE" "$1" "$2" ./chdb "$library"; }
run_any rank 0 compare rank1.txt lake/run=job*/host=node0/rank=1
check rank_all_tables sh -c '[ "$(grep -c ^same rank.out)" = 20 ]'
run_any hostile 0 compare hostile.txt lake/run=default/host=unknown/rank=-1
check hostile_groups sh -c 'grep -qx "same slice 930002" hostile.out && grep -qx "same io 132858" hostile.out'
run_any judge_can_fail 1 compare hostile.txt lake/run=job*/host=node0/rank=1
