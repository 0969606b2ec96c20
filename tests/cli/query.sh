#!/usr/bin/env bash
# stave query and export: sources of SQL, forms of results, exit codes, another judge.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good/kineto.json

"$STAVE" query -q "$good" 'SELECT 1' >probe.out 2>probe.err || { grep -q 'no SQLite' probe.err && skip_all "built without SQLite"; }

# Where the SQL comes from: operand, file, standard input, the shell.
echo 'SELECT count(*) AS n FROM slice; SELECT 2 AS two;' >q.sql
"$STAVE" query -q "$good" "$(cat q.sql)" >operand.csv
check from_file sh -c '"$0" query -q "$1" -f q.sql | cmp - operand.csv' "$STAVE" "$good"
check from_stdin sh -c '"$0" query -q "$1" <q.sql | cmp - operand.csv' "$STAVE" "$good"
check from_shell sh -c '(echo .mode csv; cat q.sql) | "$0" query -q -i "$1" | tail -n 1 | grep -qx 2' "$STAVE" "$good"
check shell_lists_tables sh -c 'echo .tables | "$0" query -q -i "$1" | grep -qx thread_track' "$STAVE" "$good"
check shell_survives_errors sh -c '(echo "SELEC;"; echo "SELECT 7;") | "$0" query -q -i "$1" 2>/dev/null | grep -q 7' "$STAVE" "$good"

# Forms.
sql="SELECT 1 AS a, 'x|\"y\"' AS b, NULL AS c, 2.5 AS d"
run csv 0 "$STAVE" query -q "$good" "$sql" --to csv
run json 0 "$STAVE" query -q "$good" "$sql" --to json
run jsonl 0 "$STAVE" query -q "$good" "$sql; $sql" --to jsonl
run markdown 0 "$STAVE" query -q "$good" "$sql" --to markdown
run table 0 "$STAVE" query -q "$good" "$sql" --to table

# Several traces in one query: merged where their clocks relate, else only when asked.
sed 's/"rank": *3/"rank": 4/' "$good" >other_rank.json; "$STAVE" convert -q other_rank.json -o two.pftrace
check merged sh -c '[ "$("$0" query -q --assume "$1" two.pftrace "SELECT count(*) FROM slice" | tail -n 1)" = 14 ]' "$STAVE" "$good"
sed 's/"baseTimeNanoseconds": *[0-9]*,*//' "$good" >unrelated.json
run_any not_related 2 "$STAVE" query -q unrelated.json two.pftrace 'SELECT 1'
check not_related_says_what_to_do grep -q -- '--assume' not_related.err

# --time speaks on standard error.
run_any timed 0 "$STAVE" query "$good" --time 'SELECT 1'
check timed_says sh -c 'grep -q "load .* s" timed.err && grep -q "query .* s" timed.err && [ "$(wc -l <timed.out)" = 2 ]'

# What is refused, and how.
run bad_sql 2 "$STAVE" query -q "$good" 'SELECT nope FROM slice'
run bad_form 2 "$STAVE" query -q "$good" 'SELECT 1' --to xml
run read_only 2 "$STAVE" query -q "$good" "ATTACH 'x.db' AS x"
check nothing_was_written test ! -e x.db
for sql in "VACUUM INTO 'x.db'" 'DELETE FROM slice' "INSERT INTO slice(ts) VALUES (1)" 'UPDATE thread SET name = 1' 'DROP TABLE slice' \
  "SELECT load_extension('x')" 'PRAGMA writable_schema = 1' "SELECT writefile('x.db', 'x')"; do
  check "refused: $sql" sh -c '! "$0" query -q "$1" "$2" && [ ! -e x.db ]' "$STAVE" "$good" "$sql"
done
for sql in '' 'SELECT' "SELECT 'open" 'SELECT (((((1)' 'SELECT * FROM slice WHERE ts > ' 'WITH' ';;;SELECT 1 FROM' "SELECT \"\`[" '/* open'; do
  "$STAVE" query -q "$good" "$sql" >malformed.out 2>malformed.err; code=$?
  check "malformed: ${sql//\// }" test "$code" = 2 -o \( "$code" = 0 -a ! -s malformed.out \)
done
run_any no_trace 3 "$STAVE" query -q nothing.json 'SELECT 1'
run_any memory_limit 4 "$STAVE" query -q "$good" --memory-limit 4M \
  'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) SELECT length(group_concat(hex(zeroblob(1000)))) FROM n'

# Ctrl-C ends the query with 130.
interrupted() {
  "$STAVE" query -q "$good" 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n' &
  local pid=$!
  sleep 1; kill -INT "$pid"; wait "$pid"; [ $? = 130 ]
}
set -m; check interrupt interrupted; set +m

# A large result passes through a closed pipe and through an open one.
check large_result sh -c '[ "$("$0" query -q "$1" "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 500000) SELECT x FROM n" | wc -l)" = 500001 ]' "$STAVE" "$good"

# The stock sqlite3 gives the same answers over an exported file.
run_any export_db 0 "$STAVE" export -q "$good" -o all.db
run_any export_again 4 "$STAVE" export -q "$good" -o all.db
run_any export_csv 0 "$STAVE" export -q "$good" --to csv-dir -o tables
check export_csv_has_slices test -s tables/slice.csv
if command -v python3 >/dev/null; then
  run_any export_json 0 "$STAVE" export -q "$good" -o all.json
  check export_json_is_json python3 -c 'import json; json.load(open("all.json"))["slice"]'
fi
if command -v sqlite3 >/dev/null; then
  while read -r question; do
    "$STAVE" query -q "$good" "$question" --to csv | tail -n +2 | tr -d '"' >ours.csv
    sqlite3 -csv all.db "$question" | tr -d '"\r' >theirs.csv
    check "same answer: ${question:0:50}" cmp ours.csv theirs.csv
  done <<'SQL'
SELECT id, ts, dur, track_id, category, name, depth, parent_id FROM slice ORDER BY id
SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY name
SELECT arg_set_id, key, flat_key, int_value, value_type FROM args ORDER BY id
SELECT s.name, t.tid, p.pid FROM slice s JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid) JOIN process p USING (upid) ORDER BY s.id
SELECT slice_out, slice_in FROM flow ORDER BY slice_out, slice_in
SELECT * FROM counter ORDER BY id
SELECT name, dur, stream, grid, correlation FROM kernel ORDER BY id
SQL
  # Every table as a whole, and the views that the file has.
  for table in $(sqlite3 all.db "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name"); do
    "$STAVE" query -q "$good" "SELECT * FROM $table" --to csv | tail -n +2 | tr -d '"' | sort >ours.csv
    sqlite3 -csv all.db "SELECT * FROM $table" | tr -d '"\r' | sort >theirs.csv
    check "same rows: $table" cmp ours.csv theirs.csv
  done
else
  skip sqlite3 "the program sqlite3 is not installed"
fi
