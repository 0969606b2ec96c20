#!/usr/bin/env bash
# ClickHouse: two real shards. The same answers as from the store, exactly once whatever is killed, never half an answer, credentials.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/clickhouse.sh"
case $BUILD in *asan) [ -n "${STAVE_LONG:-}" ] || skip_all "with ASan only in the long suite" ;; esac
ch_start
python3 "$SRC/tests/cli/clickhouse/make_ranks.py" . 4 50
url="clickhouse://127.0.0.1:$CH_PORT/traces?cluster=two"
one="clickhouse://127.0.0.2:$CH_PORT/one"
ask() { "$STAVE" query -q "$1" "$2" | tail -n +2; }
export -f ask

# ---- loading ----
# Each rank by itself, as at the end of a job: all of them find no database and make it. One comes twice at the same time.
pids=() failed=0
for file in job.rank000[0-3].json job.rank0001.json; do "$STAVE" export -q $file -o "$url" --run r1 2>>load.err & pids+=($!); done
for pid in "${pids[@]}"; do wait "$pid" || failed=$((failed + 1)); done
check load test $failed = 0
check every_rank test "$(ask "$url" 'SELECT rank, count() FROM slice GROUP BY rank ORDER BY rank' | xargs)" = "0,600 1,600 2,600 3,600"
check sharded_by_rank test "$(ask "${url/127.0.0.1/127.0.0.2}" "SELECT DISTINCT rank FROM slice_rows ORDER BY rank" | xargs)" = "1 3"
check ledger test "$(ask "$url" 'SELECT file, rank, world_size, slices FROM trace ORDER BY rank' | sed -n 2p)" = job.rank0001.json,1,4,600
sum=$(sha256sum job.rank0000.json | cut -d' ' -f1)
check ledger_by_content test "$(ask "$url" "SELECT count() FROM trace WHERE sha256 = '$sum'")" = 1

# Again: nothing happens. The same bytes under another name: they are there. Other bytes in the same place: not without --force, which replaces.
run_any again 0 "$STAVE" export job.rank0000.json -o "$url"
check again_says grep -q "is in run 'r1' already; --force loads it again" again.err
mkdir other; cp job.rank0000.json other/copy.json
run_any renamed 0 "$STAVE" export other/copy.json -o "$url" --run r1 --force
check renamed_says grep -q 'already as job.rank0000.json' renamed.err
check nothing_doubled test "$(ask "$url" 'SELECT count(), uniq(load_id) FROM slice')" = 2400,4
run_any forced 0 "$STAVE" export -q job.rank0000.json -o "$url" --run r1 --force
check forced_replaces test "$(ask "$url" 'SELECT count(), uniq(load_id) FROM slice')" = 2400,4
check forced_removes test "$(ask "$url" 'SELECT count() FROM slice_rows')" = 1200
sed 's/"train"/"other"/' job.rank0000.json >other/job.rank0000.json
run_any changed 4 "$STAVE" export other/job.rank0000.json -o "$url" --run r1
check changed_says grep -q -- '--force replaces it' changed.err
check changed_kept test "$(ask "$url" "SELECT count() FROM process WHERE name = 'other'")" = 0
run_any changed_forced 0 "$STAVE" export -q other/job.rank0000.json -o "$url" --run r1 --force
check changed_replaced test "$(ask "$url" "SELECT count(), sum(name = 'other') FROM process WHERE rank = 0 AND pid > 0")" = 1,1
run_any back 0 "$STAVE" export -q job.rank0000.json -o "$url" --run r1 --force

# ---- the same answers as from the store ----
# Over all ranks, merged here and distributed there.
same() { # NAME FORM URL TRACE… SQL
  local name=$1 form=$2 db=$3; shift 3
  "$STAVE" query -q --to "$form" "$@" >"$name.store" && "$STAVE" query -q --to "$form" "$db" "${*: -1}" >"$name.engine" &&
    [ "$(wc -l <"$name.store")" -gt 1 ] && diff "$name.store" "$name.engine"
}
# Requests, steps, members and tokens of an engine. Its requests have no track, nor have steps that are batches.
python3 "$SRC/tests/cli/report_llm/engine.py" >engine.json
python3 "$SRC/tests/cli/report_llm/batches.py" >batches.json
run_any load_engine 0 "$STAVE" export -q engine.json -o "${one%/*}/engine"
run_any load_batches 0 "$STAVE" export -q batches.json -o "${one%/*}/batches"
check same_requests same same_requests csv "${one%/*}/engine" engine.json 'SELECT request_id, ts, dur, model, outcome, ttft_ns, prompt_tokens, output_tokens, track_id FROM request ORDER BY id'
check same_served same same_served csv "${one%/*}/batches" batches.json 'SELECT id, ts, dur, batch_id, model, size, worker, track_id FROM batch ORDER BY id'
check same_batches same same_batches csv "${one%/*}/batches" batches.json 'SELECT id, ts, dur, requests, engine, track_id, slice_id FROM engine_step ORDER BY id'
check same_steps same same_steps csv "${one%/*}/engine" engine.json 'SELECT id, number, ts, dur, engine, requests, prefill, decode, tokens_in, tokens_out, cached_tokens, proposed, accepted,
  kv_used, kv_total, waiting, graph, kernel_ns, io_ns, is_warmup, track_id, slice_id FROM engine_step ORDER BY id'
check same_members same same_members csv "${one%/*}/engine" engine.json 'SELECT id, step_id, request_id, phase, tokens_in, tokens_out, cached_tokens, position, proposed, accepted,
  share_ns, kernel_ns, io_ns FROM engine_step_member ORDER BY id'
check same_tokens same same_tokens csv "${one%/*}/engine" engine.json 'SELECT id, request_id, number, ts, gap_ns, made_ts, step_id FROM token ORDER BY id'
n=0
while IFS= read -r sql; do
  n=$((n + 1))
  check "same_$n" same "same_$n" csv "${url/127.0.0.1/127.0.0.2}" job.rank000[0-3].json "$sql"
done <"$SRC/tests/cli/clickhouse/statements.sql"
check statements_were_run test "$n" = 20

run_any second_run 0 "$STAVE" export -q job.rank0003.json -o "$url" --run r2
check two_runs test "$(ask "$url" 'SELECT run, count() FROM slice GROUP BY run ORDER BY run' | xargs)" = "r1,2400 r2,600"

# One rank on one server, without a cluster: all rows of all tables, ids included, in every form of output.
run_any load_one 0 "$STAVE" export -q job.rank0002.json -o "$one" --run "it's \\ one"
for form in csv json jsonl markdown table; do
  check "form_$form" same "form_$form" "$form" "$one" job.rank0002.json \
    'SELECT id, arg_set_id, flat_key, key, int_value, string_value, real_value, value_type, display_value FROM args ORDER BY id, flat_key, key'
done
check all_slices same all_slices csv "$one" job.rank0002.json \
  'SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur, cat, slice_id FROM slice ORDER BY id'
check all_tracks same all_tracks csv "$one" job.rank0002.json \
  'SELECT id, name, type, parent_id, source_arg_set_id, machine_id, owner_utid, owner_upid, unit, is_counter FROM track ORDER BY id'
check all_io same all_io jsonl "$one" job.rank0002.json 'SELECT id, op, ts, dur, pid, tid, path, fd, bytes, "offset", ret, errno, device, category, track_id FROM io ORDER BY id'
check run_quoted test "$(ask "$one" 'SELECT DISTINCT run FROM slice')" = "it's \\ one"
run_any types 0 "$STAVE" query -q "$one" "SELECT toUInt64(18446744073709551615) AS u, toInt64(-9223372036854775808) AS i, 0.1 AS f, NULL AS n, 'a\\tb' AS t, [1, 2] AS a; ;-- none
  SELECT ';' AS s" --to jsonl
check types_kept test "$(cat types.out)" = '{"u":"18446744073709551615","i":-9223372036854775808,"f":0.1,"n":null,"t":"a\tb","a":"[1,2]"}
{"s":";"}'

# steps.
"$STAVE" steps -q job.rank000[0-3].json --to csv >steps.store
"$STAVE" steps -q "$url" --run r1 --to csv >steps.engine
check steps sh -c 'cut -d, -f1,2,4- steps.store >a; cut -d, -f1,2,4- steps.engine >b; [ "$(wc -l <a)" = 201 ] && grep -q straggler a && diff a b'
run_any steps_which_run 2 "$STAVE" steps "$url"
check steps_which_run_says grep -q 'has 2 runs: give one with --run (r1, r2)' steps_which_run.err
run_any steps_none 1 "$STAVE" steps "$url" --run none

# The parts of a rotated recording are one trace here and there.
STAVE_FULL=block RANK=0 WORLD_SIZE=1 run_any rotate 0 "$STAVE" record -q --no-summary --no-io --no-block --no-page-cache --interval 0 -o k.pftrace --rotate 256K -- "$BUILD/tests/stress/epochs" 400
k=(k-????.pftrace k.pftrace) parts=${one%/*}/parts
check rotate_parts test ${#k[@]} -gt 2
run_any load_parts 0 "$STAVE" export -q "${k[@]}" -o "$parts"
check parts_are_one test "$(ask "$parts" 'SELECT count(), sum(slices) FROM trace')" = "1,$("$STAVE" query -q "${k[@]}" 'SELECT count(*) FROM slice' | tail -n 1)"
check parts_whole test "$(ask "$parts" "SELECT sum(name = 'sample'), sum(name = 'step'), sum(name = 'epoch') FROM slice")" = 200000,400,1
check parts_slices same parts_slices csv "$parts" "${k[@]}" 'SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id FROM slice ORDER BY id'
check parts_args same parts_args csv "$parts" "${k[@]}" 'SELECT arg_set_id, key, int_value, string_value FROM args ORDER BY arg_set_id, key'
check parts_counters same parts_counters csv "$parts" "${k[@]}" 'SELECT id, ts, track_id, value FROM counter ORDER BY id'

# ---- shipped SQL ----
. "$SRC/tests/cli/clickhouse/shipped.sh"

# ---- what is refused ----
run_any bad_sql 2 "$STAVE" query "$url" 'SELECT nope FROM slice'
check bad_sql_says grep -q "nope" bad_sql.err
run_any no_writing 2 "$STAVE" query "$url" 'DROP TABLE slice'
run_any no_skipping 2 "$STAVE" query "$url" 'SET skip_unavailable_shards = 1'
run_any other_format 2 "$STAVE" query "$url" 'SELECT 1 FORMAT JSON'
check other_format_says grep -q 'leave out FORMAT' other_format.err
run_any no_cluster 4 "$STAVE" export job.rank0000.json -o "clickhouse://127.0.0.1:$CH_PORT/x?cluster=nope"
run_any other_kind 4 "$STAVE" export job.rank0000.json -o "clickhouse://127.0.0.1:$CH_PORT/traces"
check other_kind_says grep -q 'was made for a cluster' other_kind.err
echo '{"traceEvents": [' >bad.json; printf 'no trace' >none.txt
run_any no_trace 3 "$STAVE" export none.txt -o "$url" --run r9
check no_trace_leaves_nothing test "$(ask "$url" "SELECT count() FROM load_rows WHERE run = 'r9'")" = 0

run_any no_skipping_in_select 2 "$STAVE" query "$url" 'SELECT count() FROM slice SETTINGS skip_unavailable_shards = 1'
if [ -n "$CH_TLS_PORT" ]; then
  tls="clickhouses://127.0.0.1:$CH_TLS_PORT/traces"
  run_any tls 0 env STAVE_CLICKHOUSE_CA="$TMP/ch1/certificate.pem" "$STAVE" query -q "$tls" 'SELECT 7 AS n'
  check tls_answer grep -qx 7 tls.out
  run_any tls_nobody_vouches 4 "$STAVE" query -q "$tls" 'SELECT 7 AS n'
  check tls_says sh -c 'grep -qi certificate tls_nobody_vouches.err && [ ! -s tls_nobody_vouches.out ]'
else
  skip tls "no openssl"
fi

# Credentials.
reader="clickhouse://127.0.0.1:$CH_PORT/traces"
run_any password_env 0 env STAVE_CLICKHOUSE_USER=reader STAVE_CLICKHOUSE_PASSWORD="$CH_PASSWORD" "$STAVE" query "$reader" 'SELECT DISTINCT user FROM system.processes'
check password_env_user grep -qx reader password_env.out
run_any password_wrong 4 env STAVE_CLICKHOUSE_USER=reader STAVE_CLICKHOUSE_PASSWORD=secret123 "$STAVE" query "$reader" 'SELECT 1'
check password_not_shown sh -c 'grep -q "Wrong password" password_wrong.err && ! grep -q secret123 password_wrong.err'
printf '# who\nuser=reader\npassword=%s\n' "$CH_PASSWORD" >secret; chmod 600 secret
run_any password_file 0 env STAVE_CLICKHOUSE_FILE="$TMP/secret" "$STAVE" query "$reader" 'SELECT DISTINCT user FROM system.processes'
check password_file_user grep -qx reader password_file.out
chmod 644 secret
run_any password_file_open 2 env STAVE_CLICKHOUSE_FILE="$TMP/secret" "$STAVE" query "$reader" 'SELECT 1'
check password_file_says grep -q 'chmod 600' password_file_open.err

# ---- a load that has begun ----
# As a killed one leaves it: announced, some rows there. Nobody sees them; they are removed when they are old, not before: the exporter may run elsewhere.
post() { python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], sys.argv[2].encode()).read()' "http://127.0.0.2:$CH_PORT/?database=traces" "$1"; }
columns='id, ts, dur, track_id, category, name, depth'
post "INSERT INTO slice_rows (run, host, rank, file, load_id, $columns) SELECT run, host, rank, file, 12345, $columns FROM slice_rows WHERE run = 'r1' AND rank = 1 LIMIT 100"
post "INSERT INTO load_rows (run, host, rank, file, load_id, state, version) VALUES ('r1', 'unknown', 1, 'job.rank0001.json', 12345, 'begun', 9000000000000000000)"
check begun_is_stored test "$(ask "${url/127.0.0.1/127.0.0.2}" 'SELECT count() FROM slice_rows WHERE load_id = 12345')" = 100
check begun_is_not_seen test "$(ask "$url" "SELECT count(), sum(load_id = 12345) FROM slice WHERE rank = 1 AND run = 'r1'")" = 600,0
run_any begun_is_kept 0 "$STAVE" export -q --force job.rank0001.json -o "$url" --run r1
check begun_is_still_stored test "$(ask "${url/127.0.0.1/127.0.0.2}" 'SELECT count() FROM slice_rows WHERE load_id = 12345')" = 100
post "INSERT INTO load_rows (run, host, rank, file, load_id, state, version, at) VALUES ('r_old', 'unknown', 1, 'old.json', 777, 'begun', 1, now() - 200000)"
post "INSERT INTO slice_rows (run, host, rank, file, load_id, $columns) SELECT 'r_old', host, rank, file, 777, $columns FROM slice_rows WHERE rank = 1 LIMIT 100"
run_any old_is_removed 0 "$STAVE" export -q --force job.rank0001.json -o "$url" --run r1
check old_is_gone test "$(ask "${url/127.0.0.1/127.0.0.2}" 'SELECT count() FROM slice_rows WHERE load_id = 777')" = 0
check others_stay test "$(ask "$url" "SELECT count() FROM slice WHERE run = 'r1'")" = 2400
post "INSERT INTO load_rows (run, load_id, state) VALUES ('r1', 12345, 'dropped')"
run_any dropped 0 "$STAVE" export -q --force job.rank0001.json -o "$url" --run r1
check dropped_is_gone test "$(ask "${url/127.0.0.1/127.0.0.2}" 'SELECT count() FROM slice_rows WHERE load_id = 12345')" = 0

# The server stores an insert after its exporter has failed and removed its load: nobody sees it, and the next load removes it.
late="clickhouse://127.0.0.1:$CH_PORT/late"
python3 "$SRC/tests/cli/clickhouse/late_proxy.py" 127.0.0.1 "$CH_PORT" "$TMP/release" >late_port & proxy=$!
for ((i = 0; i < 1200; i++)); do [ -s late_port ] && break; sleep 0.05; done
run_any late 4 "$STAVE" export -q job.rank0000.json -o "clickhouse://127.0.0.1:$(cat late_port)/late" --run r1
check late_is_not_stored test "$(ask "$late" 'SELECT count() FROM slice_rows')" = 0
touch release
for ((i = 0; i < 600; i++)); do [ -e release.done ] && break; sleep 0.05; done
kill $proxy; wait $proxy 2>/dev/null
check late_is_stored test "$(ask "$late" 'SELECT count() FROM slice_rows')" = 600
check late_is_not_seen test "$(ask "$late" 'SELECT count() FROM slice')" = 0
run_any late_again 0 "$STAVE" export -q job.rank0002.json -o "$late" --run r1
check late_is_gone test "$(ask "$late" 'SELECT count(), sum(rank = 2) FROM slice_rows')" = 600,600

# ---- killed at any moment ----
# A load; killed, it is seen whole or not at all; tried again, it is there once.
steps=300 rounds=0 # each takes seconds: in the long suite
if [ -n "${STAVE_LONG:-}" ]; then steps=1000 rounds=40; fi
mkdir big; python3 "$SRC/tests/cli/clickhouse/make_ranks.py" big 1 $steps
seen() { # the rows of a run: "slices,args,io", then how many of each are stored
  local table
  for table in slice args io; do ask "$url" "SELECT count() FROM $table WHERE run = '$1'"; done | paste -sd,
}
whole=$(for table in slice args io; do "$STAVE" query -q big/job.rank0000.json "SELECT count(*) FROM $table" | tail -n 1; done | paste -sd,)
start=${EPOCHREALTIME/./}
run_any load_big 0 "$STAVE" export -q big/job.rank0000.json -o "$url" --run big
took=$((${EPOCHREALTIME/./} - start))
check big_is_whole test "$(seen big)" = "$whole"
half=0 none=0 all=0 after=0
for ((i = 0; i < rounds; i++)); do
  "$STAVE" export -q big/job.rank0000.json -o "$url" --run "kill$i" 2>/dev/null & pid=$!
  sleep "$(awk -v us=$((took * (RANDOM % 1000) / 1000)) 'BEGIN { printf "%.6f", us / 1e6 }')"
  kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
  case $(seen "kill$i") in "$whole") all=$((all + 1)) ;; 0,0,0) none=$((none + 1)) ;; *) half=$((half + 1)) ;; esac
  "$STAVE" export -q big/job.rank0000.json -o "$url" --run "kill$i" 2>>retry.err
  [ "$(seen "kill$i")" = "$whole" ] || after=$((after + 1))
done
check killed_is_never_half test $half = 0
check retried_is_exact test $after = 0
[ -z "${STAVE_LONG:-}" ] || check some_were_killed test $none -gt 0
# What the killed ones left is removed: stored is what is seen.
run_any clean 0 "$STAVE" export -q --force big/job.rank0000.json -o "$url" --run big
stored() { echo $(($(ask "$url" "SELECT count() FROM $1_rows") + $(ask "${url/127.0.0.1/127.0.0.2}" "SELECT count() FROM $1_rows"))); }
is_clean() { local t; for t in slice args io step; do [ "$(stored $t)" = "$(ask "$url" "SELECT count() FROM $t")" ] || return 1; done; }
for _ in $(seq 20); do # a server may still store what a client sent that was killed: the next load removes it
  for _ in $(seq 10); do ! is_clean || break 2; sleep 0.2; done
  "$STAVE" export -q --force big/job.rank0000.json -o "$url" --run big 2>>retry.err
done
for table in slice args io step; do
  check "nothing_left_in_$table" test "$(stored $table)" = "$(ask "$url" "SELECT count() FROM $table")"
done

# The same while the server is killed: an error, and nothing half when it is back.
"$STAVE" export -q big/job.rank0000.json -o "$url" --run server 2>server_killed.err & pid=$!
sleep "$(awk -v us=$((took / 2)) 'BEGIN { printf "%.6f", us / 1e6 }')"
ch_kill 1
wait $pid; code=$?
check server_killed test $code = 4 -o $code = 0

# ---- a shard is missing ----
before=$(ask "${url/127.0.0.1/127.0.0.2}" "SELECT count() FROM slice_rows")
run_any shard_missing 4 "$STAVE" query -q "${url/127.0.0.1/127.0.0.2}" 'SELECT count() FROM slice'
check shard_missing_no_answer sh -c '! grep -q "^[0-9]" shard_missing.out'
run_any shard_missing_steps 4 "$STAVE" steps -q "${url/127.0.0.1/127.0.0.2}" --run r1
run_any shard_missing_export 4 "$STAVE" export -q job.rank0001.json -o "${url/127.0.0.1/127.0.0.2}" --run r7
check shard_missing_unchanged test "$(ask "${url/127.0.0.1/127.0.0.2}" "SELECT count() FROM slice_rows")" = "$before"
run_any unreachable 4 "$STAVE" query -q "$url" 'SELECT 1'
check unreachable_says grep -qi "ClickHouse at 127.0.0.1:$CH_PORT: .*connect" unreachable.err
check comes_back ch_run 1
rows=$(seen server)
check server_killed_is_never_half test "$rows" = 0,0,0 -o "$rows" = "$whole"
run_any server_again 0 "$STAVE" export -q big/job.rank0000.json -o "$url" --run server
check server_again_is_exact test "$(seen server)" = "$whole"
check others_are_there test "$(ask "$url" "SELECT count() FROM slice WHERE run IN ('r1', 'r2')")" = 3000
