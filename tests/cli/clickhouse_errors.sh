#!/usr/bin/env bash
# ClickHouse: servers that answer badly or not at all, URLs and credentials that are refused, verbs that cannot use a database. No ClickHouse is needed.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good/kineto.json
"$STAVE" query -q clickhouse://127.0.0.1:1/x 'SELECT 1' 2>probe.err
if grep -q 'no libcurl' probe.err; then
  run_any without_libcurl 4 "$STAVE" query -q clickhouse://127.0.0.1:1/x 'SELECT 1'
  exit 0
fi
export XDG_CONFIG_HOME=$TMP/config
exec 8> >(exec python3 "$SRC/tests/cli/clickhouse/fake_server.py" >port)
for ((i = 0; i < 1200; i++)); do [ -s port ] && break; sleep 0.05; done
port=$(cat port)
MASK="s/127.0.0.1:$port/SERVER/g"
at() { echo "clickhouse://127.0.0.1:$port/$1"; }

# A server's own words, one line, no codes for the terminal; a damaged answer is an error, whatever came before.
for name in full colours gateway moved fields number cut torn columns; do
  run "$name" 4 "$STAVE" query -q "$(at $name)" 'SELECT 1' --to jsonl
done
run html 2 "$STAVE" query -q "$(at html)" 'SELECT 1'
check not_followed test "$("$STAVE" query -q "$(at asked)" 'SELECT 1' | tail -n 1)" = 0
run_any words 4 "$STAVE" query -q "$(at words)" 'SELECT 1'
check words_are_few test "$(wc -c <words.err)" -lt 600 -a "$(wc -l <words.err)" = 1
run_any long 4 "$STAVE" query -q "$(at long)" 'SELECT 1'
check long_says grep -q 'more than 64 MiB' long.err
run_any nothing 0 "$STAVE" query -q "$(at empty)" 'SELECT 1'
check nothing_is_printed test ! -s nothing.out
for name in full gateway moved empty fields; do run_any "export_$name" 4 "$STAVE" export -q "$good" -o "$(at $name)"; done
for name in shard_name shard_replicas shard_twice shard_none shard_columns; do run "$name" 4 "$STAVE" export -q "$good" -o "$(at $name)?cluster=c"; done
run_any no_server 4 "$STAVE" export -q "$good" -o clickhouse://127.0.0.1:1/x
check no_server_says grep -qi 'ClickHouse at 127.0.0.1:1: .*connect' no_server.err

# A proxy of the environment gets nothing.
run_any no_proxy 0 env http_proxy=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1 "$STAVE" query -q "$(at who)" 'SELECT 1'

# Credentials: from the environment, a private file, never the URL; none is asked for.
who() { "$STAVE" query -q "$(at who)" 'SELECT 1' | tail -n 1; }
check nobody test "$(who)" = none,none
check from_environment test "$(STAVE_CLICKHOUSE_USER=me STAVE_CLICKHOUSE_PASSWORD=p:w who)" = me,p:w
mkdir -p config/stave; printf 'user=filed\npassword=a b\n' >config/stave/clickhouse; chmod 600 config/stave/clickhouse
check from_file test "$(who)" = 'filed,a b'
check environment_first test "$(STAVE_CLICKHOUSE_USER=me who)" = me,none
chmod 640 config/stave/clickhouse
run file_is_open 2 "$STAVE" query -q "$(at who)" 'SELECT 1'
rm config/stave/clickhouse; ln -s secret config/stave/clickhouse; printf 'user=x\n' >config/stave/secret; chmod 600 config/stave/secret
run_any file_is_link 2 "$STAVE" query -q "$(at who)" 'SELECT 1'
rm config/stave/clickhouse
printf 'name=x\n' >bad_file; chmod 600 bad_file
run bad_file 2 env STAVE_CLICKHOUSE_FILE=bad_file "$STAVE" query -q "$(at who)" 'SELECT 1'
run_any no_file 4 env STAVE_CLICKHOUSE_FILE=nowhere "$STAVE" query -q "$(at who)" 'SELECT 1'
run_any header_line 2 env STAVE_CLICKHOUSE_USER=$'a\nb' "$STAVE" query -q "$(at who)" 'SELECT 1'
run userinfo 2 "$STAVE" query -q "clickhouse://me:hunter2@127.0.0.1:$port/x" 'SELECT 1'
run userinfo_export 2 "$STAVE" export -q "$good" -o "clickhouse://me:hunter2@127.0.0.1:$port/x"
check secret_is_not_repeated sh -c '! grep -l hunter2 *.out *.err'

# TLS: a server without it, and a certificate nobody vouches for, are errors.
run_any no_tls 4 "$STAVE" query -q "clickhouses://127.0.0.1:$port/x" 'SELECT 1'

# Other verbs read files. A database is alone.
for verb in info stats validate cat convert cut diff report merge plot; do
  args=("$(at x)"); case $verb in report) args=(io "${args[@]}") ;; plot) args=(timeline "${args[@]}" -o x.svg) ;; diff) args+=("$good") ;; merge) args+=("$good" -o x.json) ;; cut) args+=(--time 0:1s -o x.json) ;;
    convert) args+=(-o x.json) ;; esac
  run_any "verb_$verb" 2 "$STAVE" "$verb" -q "${args[@]}"
done
check verbs_say sh -c 'for f in verb_*.err; do grep -q "reads files, not a database" $f || { echo $f; cat $f; exit 1; }; done'
check verbs_write_nothing test ! -e x.json -a ! -e x.svg
run_any two_inputs 2 "$STAVE" query -q "$(at x)" "$good" 'SELECT 1'
run_any shell 2 "$STAVE" query -q -i "$(at x)"
run_any marker 2 "$STAVE" steps -q "$(at x)" --marker 'x*'
run_any run_of_a_file 2 "$STAVE" steps -q "$good" --run x
run_any to_other_form 2 "$STAVE" export -q "$good" --to json -o "$(at x)"
run_any to_no_url 2 "$STAVE" export -q "$good" --to clickhouse -o x.db
run_any stdin_has_no_name 2 "$STAVE" export -q - -o "$(at asked)"
exec 8>&-
