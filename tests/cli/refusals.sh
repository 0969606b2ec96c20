#!/usr/bin/env bash
# How commands end: exit codes as documented, errors that name the file, nothing that is asked for and passed over, closed pipes.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good
cp "$good/kineto.json" t.json
cp "$good/lines.json" u.json
cp "$good/strace.out" io.out
cp "$good/batching.json" b.json
"$STAVE" convert -q t.json -o t.pftrace 2>/dev/null
ln t.json linked.json
ln -s t.json symbolic.json
mkdir folder
has_sqlite=1; "$STAVE" query -q t.json 'select 1' >/dev/null 2>&1 || has_sqlite=

# ends EXIT WORDS COMMAND…: the exit code, and WORDS (a fixed text) in the one line on standard error; "-": nothing there.
n=0
ends() {
  local expected=$1 words=$2 code name said problem='' line; shift 2
  n=$((n + 1)); name="$n $*"
  cli_begin "$name"
  "$STAVE" "$@" >out 2>err </dev/null; code=$?
  said=$(<err)
  [ "$code" = "$expected" ] || problem="exit status $code, expected $expected"
  if [ "$words" = - ]; then
    [ -z "$said" ] || problem="standard error is not empty"
  else
    [[ $said == *"$words"* ]] || problem="standard error does not say '$words'"
    while IFS= read -r line; do [[ $line == stave* ]] || problem="a line that does not say who speaks"; done <<<"$said"
  fi
  if [ "$problem" ]; then echo "  $problem: $said"; not_ok "$name"; else ok "$name"; fi
}

# ---- an input that is not there: 3, and its name ----
for verb in convert cut; do ends 3 nowhere.json $verb nowhere.json -o x.pftrace; done
for verb in cat info validate stats steps critical-path; do ends 3 nowhere.json $verb nowhere.json; done
ends 3 nowhere.json merge t.json nowhere.json --assume -o x.pftrace
ends 3 nowhere import nowhere -o x.pftrace
ends 3 nowhere.json diff t.json nowhere.json
ends 3 nowhere.json diff nowhere.json t.json
ends 3 nowhere.json show --once nowhere.json
ends 3 nowhere.json plot timeline nowhere.json -o x.svg
ends 3 nowhere.json plot flame t.json --diff nowhere.json -o x.svg
ends 3 nowhere.json plot batch nowhere.json -o x.svg
ends 3 nowhere.json export nowhere.json --to folded -o x.folded
for subject in io gpu batch; do ends 3 nowhere.json report $subject nowhere.json; done
ends 3 nowhere.json report batch b.json --baseline nowhere.json
if [ $has_sqlite ]; then
  ends 3 nowhere.json query nowhere.json 'select 1'
  ends 3 nowhere.sql query t.json -f nowhere.sql
fi

# ---- an output that cannot be: 4, and its name ----
for verb in convert cut; do ends 4 nowhere/x.pftrace: $verb t.json -o nowhere/x.pftrace; done
ends 4 nowhere/x.pftrace: merge t.json u.json --assume -o nowhere/x.pftrace
ends 4 nowhere/x.pftrace: import u.json --assume -o nowhere/x.pftrace
ends 4 nowhere/x.json: convert b.json --dialect batching -o nowhere/x.json
ends 4 nowhere/x.svg: plot timeline t.json -o nowhere/x.svg
ends 4 nowhere/x.svg: plot hist t.json 'aten*' -o nowhere/x.svg
ends 4 nowhere/x.folded: export t.json -o nowhere/x.folded
ends 4 folder: convert t.json --to text -o folder
if [ $has_sqlite ]; then
  ends 4 nowhere/x.db: export t.json -o nowhere/x.db
  ends 4 nowhere/x.json: export t.json -o nowhere/x.json
  ends 4 nowhere/x: export t.json --to csv-dir -o nowhere/x
fi
check nothing_was_made test ! -e nowhere -a ! -e x.pftrace -a ! -e x.svg

# ---- command lines that make no sense: 2 ----
for verb in $("$STAVE" verbs); do
  ends 2 "unknown option '--nothing'" "$verb" --nothing
  ends 2 "unknown option '-Z'" "$verb" -Z
done
for verb in convert merge import cut cat info stats diff steps report critical-path export plot show listen; do ends 2 missing "$verb"; done
for address in nowhere tcp:localhost tcp:1.2.3.4.5:6 tcp:127.0.0.1:65536 tcp:127.0.0.1:0 unix: "unix:/$(printf '%0107d' 0)"; do
  ends 2 "'$address' is no address: " listen "$address" -o x.pftrace
done
ends 2 "tcp:0.0.0.0:9999: an address that other machines can reach needs --token" listen tcp:0.0.0.0:9999 -o x.pftrace
ends 4 "cannot listen on $TMP/nowhere/socket: No such file or directory" listen "unix:$TMP/nowhere/socket" -o x.pftrace
ends 2 "--color: 'red' is none of" info t.json --color red
ends 2 'no reader' import u.json --from nothing -o x.pftrace
ends 2 'no reader' cat u.json --from nothing
ends 2 'unknown report' report nothing t.json
ends 2 'unknown plot' plot nothing t.json -o x.svg
ends 2 '--by' report io io.out --by kernel
ends 2 '--by' report gpu t.json --by folder
ends 2 'one input file too many' info t.json u.json

# Options of one subject are not passed over by another.
for option in --baseline=u.json --request=1 --sla=5 --max-rejected=1 --max-latency-regression=1 --max-throughput-drop=1 --steps=x; do
  ends 2 "report io has no option ${option%=*}" report io io.out $option
done
for option in --baseline=u.json --request=1 --sla=5 --max-rejected=1; do
  ends 2 "report gpu has no option ${option%=*}" report gpu t.json $option
done
ends 2 'report batch has no option --steps' report batch b.json --steps x
for option in --max-rejected=1 --max-latency-regression=1 --max-throughput-drop=1; do
  ends 2 "${option%=*} needs --baseline" report batch b.json $option
done
for option in --json --csv --by=worker --top=1 --sla=5 --baseline=b.json; do ends 2 'not both' report batch b.json --request 1 $option; done
for option in --csv --by=worker --top=1 --sla=5; do ends 2 'not both' report batch b.json --baseline b.json $option; done
ends 2 '--json or --csv, not both' report io io.out --json --csv
ends 2 'plot flame has no option --arrows' plot flame t.json --arrows 5 -o x.svg
ends 2 'plot timeline has no option --buckets' plot timeline t.json --buckets 5 -o x.svg
ends 2 'plot hist has no option --top' plot hist t.json 'aten*' --top 5 -o x.svg
ends 2 'plot batch has no option --time' plot batch b.json --time 1s:2s -o x.svg
ends 2 'plot layers has no option --wall' plot layers t.json --wall -o x.svg
ends 2 'plot steps has no option --sla' plot steps t.json --sla 5 -o x.svg
ends 2 'not both' plot timeline t.json --top 5 --max-rows 5 -o x.svg
ends 2 'not both' plot hist t.json 'aten*' --log --linear -o x.svg
ends 2 'not both' stats t.json --counters --group-by name
ends 2 'not both' stats t.json --counters --sort self
ends 2 'not both' info t.json --json --top 5
ends 2 'needs --once' show t.json --width 100
ends 2 'needs --fail-over' diff t.json t.pftrace --min-total 5
ends 2 'validate --rules has no option --json' validate --rules --json
ends 2 "operand too many: 't.json'" validate --rules t.json
if [ $has_sqlite ]; then ends 2 'not both' query t.json -i -f x.sql; fi

# Numbers: whole ones, no signs, nothing behind them, nothing that does not fit.
for number in -1 +1 1x x '' ' 1' 0x10 1e3 1.5 18446744073709551616 99999999999999999999999; do
  ends 2 --top info t.json "--top=$number"
  ends 2 --top report io io.out "--top=$number"
done
for number in -1 1x x nan inf 0x10 1e 1e999 1..5 .; do
  ends 2 --threshold diff t.json t.pftrace "--threshold=$number"
  ends 2 --scale plot timeline t.json "--scale=$number" -o x.png
  ends 2 --sla report batch b.json "--sla=$number"
  ends 2 --max-latency-regression report batch b.json --baseline b.json "--max-latency-regression=$number"
done
for size in -1 1Q 1e9 0x10 1.5.5 99999999999T; do ends 2 --memory-limit stats t.json "--memory-limit=$size"; done
for window in 5 : 5s:2s 1s:1s x:y 1s:2q 99999999999999999999s: 1s:2s:3s @5:@4; do ends 2 --time cut t.json "--time=$window" -o x.pftrace; done
for pid in x 1x 99999999999999999999 ''; do ends 2 --pid cut t.json "--pid=$pid" -o x.pftrace; done
for id in x -1 1x 99999999999999999999; do ends 2 "id:$id" critical-path t.json --to "id:$id"; done
for id in x -1 0x5 99999999999999999999; do ends 2 --request report batch b.json "--request=$id"; done
ends 2 --sla report batch b.json --sla 5,
ends 2 --sla report batch b.json --sla 5,,6

# ---- the same file twice ----
for other in t.json ./t.json linked.json symbolic.json; do
  ends 2 'is given twice' merge t.json $other --assume -o x.pftrace
  ends 2 'is given twice' stats t.json $other --assume
  ends 2 'is the input and the output' convert t.json -o $other
  ends 2 'is the input and the output' cut t.json --time 0s: -o $other
  ends 2 'is the input and the output' merge t.json u.json --assume -o $other
done
cp t.json t.svg
ends 2 'is the input and the output' plot timeline t.svg -o t.svg
ends 2 'is the input and the output' export t.json --to folded --force -o t.json
check the_input_is_still_there cmp t.json "$good/kineto.json"
ends 0 '6 the same' diff t.json t.pftrace
cp u.json folder/u.json
ends 0 '1 files read' import folder --assume -o folder/all.pftrace
cp folder/all.pftrace first.pftrace
ends 0 'it is the output' import folder --assume -o folder/all.pftrace
check an_output_in_the_folder_is_no_input cmp folder/all.pftrace first.pftrace

# ---- findings: 1 ----
printf '[{"ph":"E","name":"x","ts":1,"pid":1,"tid":1},{"ph":"X","name":"x","ts":1,"dur":1,"pid":1,"tid":1}]' >unbalanced.json
printf '[{"ph":"X","name":"x","ts":1,"dur":1,"pid":1,"tid":1},{"ph"' >cut.json
printf '[]' >empty.json
"$STAVE" validate unbalanced.json >out 2>err; check validate_finds test $? = 1
ends 1 'cut.json' convert --strict cut.json -o x.pftrace
ends 0 'cut.json' convert cut.json -o x.pftrace
ends 1 'no slices' critical-path empty.json
ends 1 'became slower' diff -q u.json t.json --fail-over 1
ends 0 - diff -q t.json t.pftrace --fail-over 1
ends 1 'neither slices nor counters' plot timeline empty.json -o x.svg
ends 1 'neither slices nor counters' show --once empty.json
ends 3 'has no I/O' report io t.json

# ---- closed pipes, full disks ----
# A reader who leaves ends the command, without a word, and that is no failure.
awk 'BEGIN { print "["; for (i = 0; i < 6000; i++) printf "{\"ph\":\"X\",\"pid\":%d,\"tid\":1,\"ts\":%d,\"dur\":2,\"name\":\"name %d\",\"cat\":\"c%d\"},\n", i % 9, 3 * i, i, i % 5000; print "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"x\"}]" }' >many.json
closed() {
  local name=$1 code; shift
  cli_begin "$name"
  # The reader never reads; that it may leave a little later changes nothing, since the output is larger than a pipe or ends with it.
  { "$STAVE" "$@" 2>err; echo $? >code; } | :
  code=$(<code)
  if [ "$code" = 0 ] && [[ $(<err) != *"standard output"* ]] && [[ $(<err) != *ipe* ]]; then ok "$name"; else echo "  exit status $code: $(<err)"; not_ok "$name"; fi
}
closed pipe_cat cat many.json
closed pipe_info_json info --json many.json
closed pipe_info info many.json
closed pipe_validate validate many.json
closed pipe_stats stats many.json
closed pipe_stats_table stats many.json --to table
closed pipe_convert convert many.json --to chrome
closed pipe_convert_gzip convert many.json --to perfetto --compress gzip
closed pipe_merge merge many.json t.json --assume --to text -o -
closed pipe_cut cut many.json --to text
closed pipe_path critical-path many.json --form json
closed pipe_diff diff many.json many.json --all --to markdown
closed pipe_show show --once many.json
closed pipe_plot plot timeline many.json
closed pipe_folded export many.json --to folded -o -
closed pipe_report report gpu t.json
closed pipe_report_json report gpu t.json --json
closed pipe_report_csv report io io.out --csv
closed pipe_help --help
closed pipe_verb_help convert --help
closed pipe_man man convert
closed pipe_completion completion bash
closed pipe_version --version
closed pipe_rules validate --rules
closed pipe_panels plot batch --list
if [ $has_sqlite ]; then
  closed pipe_query query many.json 'select * from slice'
  closed pipe_export export many.json --to json -o -
fi
# What a command found is still its exit code.
{ { "$STAVE" validate --json unbalanced.json 2>err; echo $? >code; } | :; }
check pipe_keeps_the_verdict test "$(cat code)" = 1
if [ -e /dev/full ]; then
  for command in "cat t.json" "info t.json" "info --json t.json" "stats t.json" "validate t.json" "report gpu t.json" "show --once t.json" "plot timeline t.json" \
    "convert t.json --to text" "critical-path t.json" "completion bash" "--help"; do
    # shellcheck disable=SC2086 # a command is words
    "$STAVE" $command >/dev/full 2>err
    check "full_disk $command" sh -c '[ "$1" = 4 ] && grep -q "standard output: No space left" err' sh $?
  done
fi

# ---- an exported STAVE_OUT names what others record: looking at it must not replace it ----
cp t.json shown.json
for command in "info shown.json" "cat shown.json" "validate shown.json" "convert shown.json -o seen.pftrace" "status" "recover" "--help"; do
  # shellcheck disable=SC2086 # a command is words
  STAVE_OUT=$PWD/shown.json "$STAVE" $command >out 2>err
  check "exported $command" sh -c 'cmp -s t.json shown.json && [ ! -e shown.json.part ] && [ ! -e shown.json.session ]'
done

# ---- a configuration is an input ----
"$STAVE" record --config nowhere.yml -- true >out 2>err
check no_configuration sh -c '[ "$1" = 3 ] && grep -q "nowhere.yml: cannot open" err' sh $?
"$STAVE" record --config . -- true >out 2>err
check configuration_is_a_folder sh -c '[ "$1" = 3 ] && grep -q "is a directory" err' sh $?
printf 'bogus: 1\n' >bogus.yml
"$STAVE" record --config bogus.yml -- true >out 2>err
check list_of_keys_ends_at_a_key sh -c '[ "$1" = 2 ] && grep -qE "unknown key .bogus.; known keys: command, .*[a-z], …$" err' sh $?
"$STAVE" record --cgroup "" -- true >out 2>err
check empty_value sh -c '[ "$1" = 2 ] && grep -q "^stave record: --cgroup: the value is empty$" err' sh $?
