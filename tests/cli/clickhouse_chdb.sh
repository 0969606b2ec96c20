#!/usr/bin/env bash
# ClickHouse: a current engine (its library behind a small HTTP front). The tables have as many rows as those of stave query and answer alike, and so do the statements that come with Stave.
. "$SRC/tests/harness/cli.sh"
case $BUILD in *asan) [ -n "${STAVE_LONG:-}" ] || skip_all "with ASan only in the long suite" ;; esac
library() { echo "$SRC"/build/npm/chdb/package-*/libchdb.so; }
[ -n "${STAVE_LONG:-}" ] || [ -e "$(library)" ] || skip_all "ClickHouse's library is fetched in the long suite only (tools/install-deps chdb)"
why=$("$SRC/tools/install-deps" chdb) || skip_all "$why"
"$STAVE" query -q clickhouse://127.0.0.1:1/x 'SELECT 1' 2>no_curl
! grep -q 'no libcurl' no_curl || skip_all "built without libcurl"

front=
trap '[ -z "$front" ] || kill "$front" 2>/dev/null; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
setpriv --pdeathsig KILL python3 "$SRC/tests/harness/chdb_front.py" "$(library)" "$TMP/engine" >port 2>front.err & front=$!
for ((i = 0; i < 1200; i++)); do
  [ -s port ] && break
  kill -0 "$front" 2>/dev/null || { not_ok "the engine starts: $(tail -n 1 front.err)"; exit 1; }
  sleep 0.05
done
url="clickhouse://127.0.0.1:$(cat port)/traces"
ask() { "$STAVE" query -q "$1" "$2" | tail -n +2; }
post() { python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], sys.argv[2].encode()).read()' \
  "http://127.0.0.1:$(cat port)/?database=${2:-traces}&default_format=TabSeparatedWithNamesAndTypes" "$1"; }

python3 "$SRC/tests/cli/clickhouse/make_ranks.py" . 4 50
run_any load 0 "$STAVE" export -q job.rank000[0-3].json -o "$url" --run r1
check is_current test "$(ask "$url" "SELECT toUInt32(splitByChar('.', version())[1]) >= 25")" = 1

# ---- every table ----
# One rank alone, where ids are equal, too; then all ranks.
one="${url%/*}/one"
run_any load_one 0 "$STAVE" export -q job.rank0002.json -o "$one"
tables=$(ask "$one" "SELECT name FROM system.tables WHERE database = 'one' AND name NOT LIKE '%\\\\_rows' AND name != 'trace'")
counts=$(for table in $tables; do echo "UNION ALL SELECT '$table' AS name, count(*) AS n FROM $table"; done)
counts=${counts#UNION ALL}
check all_tables test "$(echo "$tables" | wc -l)" -ge 35
check counts sh -c '"$0" query -q "$1" "$3" | sort >a && "$0" query -q "$2" "$3" | sort >b && [ "$(wc -l <a)" -gt 35 ] && diff a b' "$STAVE" "$one" job.rank0002.json "$counts"
check every_slice_has_its_thread test "$(ask "$one" 'SELECT count() FROM thread_slice')" = 600
same() { # NAME URL TRACE… SQL
  local name=$1 db=$2; shift 2
  "$STAVE" query -q --to csv "$@" >"$name.store" && "$STAVE" query -q --to csv "$db" "${*: -1}" >"$name.engine" && [ "$(wc -l <"$name.store")" -gt 1 ] && diff "$name.store" "$name.engine"
}
n=0
while IFS= read -r sql; do
  n=$((n + 1))
  check "same_$n" same "same_$n" "$url" job.rank000[0-3].json "$sql"
done <"$SRC/tests/cli/clickhouse/statements.sql"
check statements_were_run test "$n" = 20
check all_slices same all_slices "$one" job.rank0002.json \
  'SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur, cat, slice_id FROM slice ORDER BY id'
check all_thread_slices same all_thread_slices "$one" job.rank0002.json 'SELECT id, ts, dur, name, thread_name, utid, tid, process_name, upid, pid FROM thread_slice ORDER BY id'

# ---- the ledger ----
run_any again 0 "$STAVE" export job.rank0000.json -o "$url" --run r1
check again_says grep -q "already; --force loads it again" again.err
run_any forced 0 "$STAVE" export -q job.rank0000.json -o "$url" --run r1 --force
check forced_replaces test "$(ask "$url" 'SELECT count(), uniq(load_id) FROM slice')" = 2400,4
check forced_removes test "$(ask "$url" 'SELECT count() FROM slice_rows')" = 2400
"$STAVE" steps -q job.rank000[0-3].json --to csv >steps.store
"$STAVE" steps -q "$url" --run r1 --to csv >steps.engine
check steps sh -c 'cut -d, -f1,2,4- steps.store >a; cut -d, -f1,2,4- steps.engine >b; [ "$(wc -l <a)" = 201 ] && grep -q straggler a && diff a b'

# ---- views of an older Stave ----
# Their join left rows out on this engine; the next export makes them anew.
post "DROP TABLE counters" one
post "CREATE VIEW one.counters AS SELECT run, host, rank, file, load_id, id, ts, track_id, value, arg_set_id, name, unit FROM one.counter ANY INNER JOIN (SELECT load_id, id AS track_id, name, unit FROM one.track WHERE is_counter = 1) AS t USING (load_id, track_id)" one
check old_view_is_wrong test "$(ask "$one" 'SELECT count() FROM counters')" != 50
run_any repair 0 "$STAVE" export -q job.rank0002.json -o "$one"
check old_view_is_replaced test "$(ask "$one" 'SELECT count() FROM counters')" = 50

# ---- shipped SQL ----
. "$SRC/tests/cli/clickhouse/shipped.sh"
