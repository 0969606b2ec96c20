#!/usr/bin/env bash
# What must survive every format (NaN, infinities, bytes that are not UTF-8), and what is refused or said where a result is empty.
. "$SRC/tests/harness/cli.sh"
has_sqlite=1; "$STAVE" query -q "$SRC/tests/golden/good/lines.json" 'select 1' >/dev/null 2>&1 || has_sqlite=

# ---- NaN and infinities of counters ----
cat >nan.txt <<'END'
# stave text 1
clock unknown
track #1 process uuid=0x1 pid=1 name="p"
track #2 counter uuid=0x2 parent=#1 name="loss"
0.000000000 counter #2 {1.5}
0.000001000 counter #2 {nan}
0.000002000 counter #2 {2.5}
0.000003000 counter #2 {inf}
0.000004000 counter #2 {-inf}
0.000005000 counter #2 {0.5}
END
values() { "$STAVE" cat -q "$1" 2>/dev/null | sed -n 's/.* counter .*{\(.*\)}$/\1/p' | tr '\n' ' '; }
want='1.5 nan 2.5 inf -inf 0.5 '
kept() { [ "$(values "$1")" = "$want" ]; }
for form in json pftrace txt json.gz; do
  run_any "to_$form" 0 "$STAVE" convert nan.txt -o "kept.$form"
  check "kept_in_$form" kept "kept.$form"
done
for dialect in kineto tracesmith; do
  run_any "to_$dialect" 0 "$STAVE" convert -q nan.txt -o "$dialect.json" --dialect "$dialect"
  check "kept_in_$dialect" kept "$dialect.json"
done
"$STAVE" convert -q kept.json -o again.pftrace && "$STAVE" convert -q again.pftrace -o again.json
check kept_there_and_back kept again.json
check no_damage sh -c '! "$0" cat kept.json 2>&1 >/dev/null | grep .' "$STAVE"
if command -v python3 >/dev/null; then
  check still_json python3 -c 'import json, sys; json.load(open("kept.json"), parse_constant=lambda word: sys.exit(word))'
fi
"$STAVE" merge -q nan.txt kept.pftrace --assume -o merged.json
sorted() { tr ' ' '\n' | grep . | sort | tr '\n' ' '; }
twice() { [ "$(values merged.json | sorted)" = "$(echo "$want$want" | sorted)" ]; }
check kept_by_merge twice
"$STAVE" cut -q nan.txt --time 500ns:3500ns -o cut.json
check kept_by_cut test "$(values cut.json)" = '1.5 nan 2.5 inf '
check kept_in_csv sh -c '"$0" convert -q nan.txt --to csv | cut -d, -f11 | tr "\n" " " | grep -q "^value 1.5 nan 2.5 inf -inf 0.5 $"' "$STAVE"
printf '[{"ph":"C","name":"c","pid":1,"ts":1,"args":{"v":NaN}},{"ph":"C","name":"c","pid":1,"ts":2,"args":{"v":-Infinity}}]' >bare.json
check bare_words test "$(values bare.json)" = 'nan -inf '
if [ "$has_sqlite" ]; then
  run_any sql 0 "$STAVE" query nan.txt "select count(*), count(value), sum(value = 9e999) from counter"
  check sql_has_null_for_nan grep -qx '6,5,1' sql.out
fi

# Drawn: NaN over the whole height, infinities at the edge, the scale is of the others.
run_any plot 0 "$STAVE" plot counter nan.txt loss -o c.svg
check plot_marks sh -c 'grep -q "<title>NaN</title>" c.svg && grep -q "<title>Infinity</title>" c.svg && grep -q "<title>-Infinity</title>" c.svg && grep -q "0.5 to 2.5" c.svg'
run_any timeline 0 "$STAVE" plot timeline nan.txt -o t.svg
check timeline_marks grep -q '<title>NaN</title>' t.svg
run_any show 0 "$STAVE" show --once --ascii nan.txt
check show_marks sh -c 'grep -q "loss .*N.*^.*v" show.out'

# ---- bytes that are not UTF-8 ----
cat >odd.txt <<'END'
# stave text 1
clock unknown
meta "k\xff" "v\xfe"
track #1 process uuid=0x1 pid=1 name="p\xf1"
track #2 counter uuid=0x2 parent=#1 name="c\xf2"
track #3 thread uuid=0x3 parent=#1 pid=1 tid=1 name="t\xf3ä"
0.000000000 counter #2 {1.5}
0.000000000 slice #3 "s\xffä" cat="c\xfe" dur=0.000009000 {"a\xf4"="v\xc3\xff" path="/data/\xe9t"}
END
for form in pftrace json; do
  "$STAVE" convert -q odd.txt -o "odd.$form"
  "$STAVE" cat -q "odd.$form" >"odd.$form.txt"
  check "escaped_in_$form" sh -c 'for w in "k\\\\xff" "v\\\\xfe" "p\\\\xf1" "c\\\\xf2" "t\\\\xf3ä" "s\\\\xffä" "c\\\\xfe" "a\\\\xf4" "v\\\\xc3\\\\xff" "/data/\\\\xe9t"; do grep -qF "\"$w\"" "$0" || { echo "no $w"; exit 1; }; done' "odd.$form.txt"
done
check text_keeps_bytes sh -c '"$0" cat odd.txt | grep -qF "v\xc3\xff" && "$0" cat odd.txt | grep -qF "/data/\xe9t"' "$STAVE"
# No raw byte of them is left: of f1, f2, f3 and fe none is part of a number here.
check no_raw_bytes sh -c 'LC_ALL=C; export LC_ALL; ! grep -q "$(printf "s\\377")" odd.pftrace && ! grep -q "$(printf "/data/\\351")" odd.pftrace && ! grep -q "$(printf "p\\361")" odd.pftrace'
if [ "$has_sqlite" ] && command -v python3 >/dev/null; then
  run_any to_sqlite 0 "$STAVE" export -q odd.txt --to sqlite -o odd.db
  check sqlite_is_utf8 python3 -c '
import sqlite3
db = sqlite3.connect("odd.db")
for table, in db.execute("select name from sqlite_schema where type = \"table\"").fetchall(): db.execute(f"select * from \"{table}\"").fetchall()
assert db.execute("select name, category from slice").fetchall() == [("s\\xff\xe4", "c\\xfe")]
assert db.execute("select string_value from args where key = \"debug.path\"").fetchall() == [("/data/\\xe9t",)]'
fi

# ---- results that are empty ----
"$STAVE" convert -q nan.txt -o n.pftrace
for window in 1s: :@-1s @5s:@6s; do
  run_any "cut_$window" 5 "$STAVE" cut n.pftrace --time "$window" -o outside.pftrace
  check "cut_${window}_says_the_range" sh -c '[ "$(wc -l <"$0")" = 1 ] && grep -q "5.000 us, from @0ns to @5000ns" "$0"' "cut_$window.err"
  check "cut_${window}_leaves_nothing" sh -c '[ -z "$(find . -name "*outside*")" ]'
done
printf '{"traceEvents":[]}' >empty.json
run_any empty_convert 5 "$STAVE" convert empty.json -o empty.pftrace
check empty_is_said grep -q 'empty.json: no events' empty_convert.err
check empty_is_whole "$STAVE" validate -q empty.pftrace
run_any empty_again 5 "$STAVE" convert empty.pftrace -o empty2.json

# ---- what is no trace ----
printf '\n\030\022\016/host:metadata"\006\010\001\022\002ab' >xplane.pb
for verb in info validate cat; do
  run_any "xplane_$verb" 3 "$STAVE" $verb xplane.pb
  check "xplane_${verb}_says_what_converts" sh -c '[ "$(wc -l <"$0")" = 1 ] && grep -q "XSpace.*xprof" "$0"' "xplane_$verb.err"
done
for _ in 1 2 3 4 5 6 7 8 9; do printf '\n\007\022\005hello'; done >no_trace.pb
run_any no_trace 3 "$STAVE" convert no_trace.pb -o none.json
check no_trace_says_where sh -c '[ "$(wc -l <no_trace.err)" = 1 ] && grep -q "byte 0: .*no trace" no_trace.err && ! test -e none.json'
run_any no_trace_info 3 "$STAVE" info no_trace.pb
check no_trace_info_is_silent test ! -s no_trace_info.out
run_any no_trace_validate 1 "$STAVE" validate no_trace.pb

# ---- URLs ----
refused() {
  run_any "$1" 2 "$STAVE" "${@:2}"
  check "$1_in_one_line" sh -c '[ "$(wc -l <"$0")" = 1 ] && grep -q "s3:// is a URL" "$0" && ! grep -q secret "$0"' "$1.err"
}
u=s3://secret/x
refused url_convert convert nan.txt -o $u.pftrace
refused url_cut cut nan.txt -o $u.pftrace
refused url_merge merge nan.txt n.pftrace --assume -o $u.pftrace
refused url_import import nan.txt -o $u.pftrace
refused url_plot plot counter nan.txt -o $u.svg
refused url_view view nan.txt --export $u.html
refused url_record record -o $u.pftrace -- true
refused url_recover recover -o $u.pftrace
refused url_parquet export nan.txt --to parquet -o $u
refused url_csv export nan.txt --to csv-dir -o $u
run_any url_http 2 "$STAVE" export nan.txt --to parquet -o http://secret/x
check url_http_names_schemes grep -q 'clickhouse' url_http.err
check no_folder_of_a_scheme sh -c '[ -z "$(find . -type d -name "*:*")" ]'

# ---- more files than merge takes ----
mkdir many
seq -f 'many/%05.0f' 1 10001 | xargs touch
run_any merge_many 4 "$STAVE" merge many -o many.pftrace
check merge_says_how_many sh -c '[ "$(wc -l <merge_many.err)" = 1 ] && grep -q "10001 files, and at most 10000" merge_many.err && ! test -e many.pftrace'
