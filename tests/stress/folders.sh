#!/usr/bin/env bash
# Verbs over a folder of parts: one trace, or the range of it that --since and --until mean, of which only the parts that it touches are read. Works
# without root: libstave's events suffice.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
mkdir -m 700 run; export STAVE_SESSION_DIR=$TMP XDG_RUNTIME_DIR=$TMP/run XDG_CACHE_HOME=$TMP/cache STAVE_FULL=block
epochs=$BUILD/tests/stress/epochs
record=("$STAVE" record -q --no-summary --no-explain --light --no-io --no-block --no-page-cache --no-look --no-inject --interval 0 --gpu-interval 0)
rows='SELECT name, count(*), sum(dur > 0) FROM slice WHERE name IN ("epoch", "step", "sample") GROUP BY name UNION ALL SELECT "marks", count(*), 0 FROM args WHERE key IN ("continued", "stave.part")'
whole() { "$STAVE" query -q "$@" "$rows" | tail -n +2 | sort | xargs; }
label() { "$STAVE" cat -q "$1" | sed -n 's/^meta "stave.rotation" "\(.*\)"$/\1/p'; }
said() { grep -qxF -- "$2" "$1.err" || { cat "$1.err"; return 1; }; }

mkdir day
run_any record 0 "${record[@]}" -o day/k.pftrace --rotate 256K -- "$epochs" 800
k=(day/k-????.pftrace day/k.pftrace); n=${#k[@]}
check several_parts test "$n" -gt 5
echo "no trace" >day/README; mkdir day/empty

# All of it, as if every part had been named.
run_any all 0 "$STAVE" query day "$rows"
check all_rows test "$(tail -n +2 all.out | sort | xargs)" = "$(whole "${k[@]}")"
check all_says said all "stave query: day: $n of $n parts of k.pftrace"
"$STAVE" stats -q "${k[@]}" --to csv >named.csv
run_any stats 0 "$STAVE" stats -q day --to csv
check stats_same diff named.csv stats.out
run_any report 0 "$STAVE" report wait -q day
run_any explain 6 "$STAVE" explain -q day # what that needs is not recorded here
run_any steps 0 "$STAVE" steps -q day/
run_any plot 0 "$STAVE" plot timeline -q day -o day.svg
run_any show 0 "$STAVE" show -q --once day
run_any info 0 "$STAVE" info -q --json day
check info_counts python3 -c 'import json; d = json.load(open("info.out")); assert d["file"] == "day" and 400000 <= d["instants"] < 400010 and d["size_bytes"] > 1000000, d'
run_any view 0 "$STAVE" view -q day --since @0ns --until "@$(label "${k[1]}" | cut -d' ' -f3)ns" --export day.html

# A range on the trace's clock: what `cut` gives of all of it, from few parts. Damage in the others is not met.
mkdir slow; run_any record_slow 0 "${record[@]}" -o slow/s.pftrace --rotate 1s -- sh -c '"$0" until=end & "$0" step=5*1500; touch end; wait' "$BUILD/tests/stress/paced"
s=(slow/s-????.pftrace slow/s.pftrace); n_slow=${#s[@]}
check several_slow test "$n_slow" -gt 7
IFS=' ' read -r _ _ since < <(label "${s[3]}"); IFS=' ' read -r _ _ until < <(label "${s[4]}")
check has_labels test "$until" -gt "$since"
"$STAVE" merge -q "${s[@]}" -o merged.pftrace; "$STAVE" cut -q merged.pftrace --time "@${since}ns:@${until}ns" -o cut.pftrace
"$STAVE" stats -q cut.pftrace --to csv >cut.csv
check cut_has_both test "$(grep -cE '^(held,1|step,[0-9]+),' cut.csv)" = 2
cp -r slow harmed; for i in 0 $((n_slow - 1)); do
  size=$(stat -c %s "${s[$i]}"); head -c 2048 /dev/urandom | dd of="harmed/${s[$i]#slow/}" bs=1 seek=$((size * 3 / 4)) conv=notrunc 2>/dev/null
done
run_any range 0 "$STAVE" stats --strict harmed --since "@${since}ns" --until "@${until}ns" --to csv
check range_rows diff cut.csv range.out
opened=$(sed -n 's/^stave stats: harmed: \([0-9]*\) of .*/\1/p' range.err)
check range_few_parts test "${opened:-0}" -ge 1 -a "${opened:-99}" -le 4
run_any all_harmed 1 "$STAVE" stats -q --strict harmed --to csv

# The same range by the wall clock, and from the ends.
utc() { local ns; ns=$("$STAVE" query -q slow "select to_realtime($1)" | tail -n 1); date -u -d "@${ns%?????????}.${ns: -9}" +%Y-%m-%dT%H:%M:%S.%N; }
first=$(label "${s[0]}" | cut -d' ' -f3)
ranged() { run_any "$1" 0 "$STAVE" stats -q --to csv "${@:2}"; check "$1_rows" diff cut.csv "$1.out"; }
ranged by_utc slow --since "$(utc "$since")" --until "$(utc "$until")Z"
ranged from_start slow --since $((since - first))ns --until $((until - first))ns
ranged of_file merged.pftrace --since "@${since}ns" --until "@${until}ns"
ranged named_parts "${s[@]}" --since "@${since}ns" --until "@${until}ns"
run_any from_end 0 "$STAVE" query day "$rows" --since -100min
check from_end_all said from_end "stave query: day: $n of $n parts of k.pftrace"
run_any of_day 0 "$STAVE" query day "$rows" --until 23:59:59.999
# A part is missing, and one is there twice.
mkdir gap; cp "${k[0]}" "${k[@]:2}" gap; cp "${k[3]}" gap/again.pftrace
run_any gap 0 "$STAVE" query gap "$rows"
check gap_twice grep -q "the same part as gap/.*; left out" gap.err
check gap_rows test "$(tail -n +2 gap.out | sort | xargs)" = "$(whole "${k[0]}" "${k[@]:2}")"

# Several recordings are listed, and one is chosen.
id=$(label "${k[0]}" | cut -d" " -f1)
cp -r day two; run_any record_other 0 "${record[@]}" -o two/other.pftrace -- "$epochs" 5
run_any two 2 "$STAVE" stats two
check two_lists grep -qE "^stave stats: k.pftrace \($id\): $n parts, from 20[0-9-]+ [0-9:]+ to 20[0-9-]+ [0-9:]+ UTC$" two.err
check two_lists_other grep -qE "^stave stats: other.pftrace: 1 file, from " two.err
check two_says said two "stave stats: two: these are 2 recordings: choose one with --recording NAME, or by --since and --until"
for name in k k.pftrace "$id"; do
  run_any "two_$name" 0 "$STAVE" stats -q two --recording "$name" --to csv
  check "two_${name}_rows" diff named.csv "two_$name.out"
done
run_any two_none 3 "$STAVE" stats two --recording nobody
check two_none_says said two_none "stave stats: two: nothing has the name of --recording: what is there was listed"
run_any two_range 0 "$STAVE" stats -q two --recording other --since 0s --to csv
run_any none_then 3 "$STAVE" stats day --since 2001-01-01 --until 2001-01-02
check none_then_says said none_then "stave stats: day: nothing was recorded in that time: what is there was listed"
# Two folders are two recordings, merged.
mkdir left right; "$STAVE" merge -q "${k[@]}" -o left/merged.pftrace; cp two/other.pftrace right
run_any folders 0 "$STAVE" query -q left right "select count(*) from slice where name = 'step'"
check folders_both test "$(tail -n 1 folders.out)" = 805

# What cannot be meant.
wrong() { run_any "wrong_$1" "$2" "$STAVE" stats "${@:4}"; check "wrong_$1_says" said "wrong_$1" "stave stats: $3"; }
wrong word 2 "--since: 'soon' is not a time such as 2026-11-19T03:40, 03:40:30, 90min, -10min or @123456789ns" day --since soon
wrong date 2 "--until: '2026-13-01' is not a time such as 2026-11-19T03:40, 03:40:30, 90min, -10min or @123456789ns" day --until 2026-13-01
wrong order 2 "--since is not before --until" day --since 2s --until 1s
wrong empty 3 "day/empty: there is no trace in this folder" day/empty
wrong pipe 2 "--since and --until need a file or a folder: what is piped can be read only once" - --since 1s
echo '{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":5,"name":"a"}]}' >plain.json
wrong no_wall 2 "plain.json has no wall clock: give --since and --until as times from its start, such as 90s" plain.json --since 2026-11-19
wrong not_there 3 "nofolder: cannot open: No such file or directory" nofolder --since -1s
wrong not_there_named 3 "nofolder: cannot open: No such file or directory" nofolder --recording day
run_any plain 0 "$STAVE" stats -q plain.json --since 2us --to csv

# While it is recorded, and when the recorder was killed: the file that grows is the newest part, as far as it is whole.
mkdir live
"${record[@]}" -o live/l.pftrace --rotate 256K -- "$epochs" 0 enough 2>/dev/null & recorder=$!
check live_grows until_true '[ -e live/l-0003.pftrace ] && [ -s live/l.pftrace.part ]'
run_any live 0 "$STAVE" query live "select count(*) from slice where name = 'step'" --since -100min
check live_has_it test "$(sed -n 's/^stave query: live: \([0-9]*\) of \([0-9]*\) parts of l.pftrace$/\1 \2/p' live.err | awk '$1 == $2 && $1 >= 4 { print "all" }')" = all
kill -9 $recorder; wait $recorder 2>/dev/null; touch enough
killed=(live/l-????.pftrace)
check killed_part test -e live/l.pftrace.part
run_any killed 0 "$STAVE" query --strict live "select max(dur > 0) from slice where name = 'step'"
check killed_all_parts said killed "stave query: live: $((${#killed[@]} + 1)) of $((${#killed[@]} + 1)) parts of l.pftrace"
check killed_recovers until_true '"$STAVE" recover -q live/l.pftrace'
check killed_recovered_is_a_part test -n "$(label live/l.pftrace)"

# The next recording under the name keeps all of them, also the newest one, whose name it gets; --disk bounds all together.
before=$(label live/l.pftrace)
run_any next 0 "${record[@]}" -o live/l.pftrace --rotate 256K -- "$epochs" 100
check next_keeps_newest test "$(for f in live/l-????.pftrace; do label "$f"; done | grep -cxF "$before")" = 1
run_any next_two 2 "$STAVE" stats -q live
run_any bounded 0 "${record[@]}" -o live/l.pftrace --rotate 256K --disk 1M -- "$epochs" 400
check bounded_all test "$(cat live/*.pftrace | wc -c)" -le $(((1 << 20) + (512 << 10)))
run_any bounded_one 0 "$STAVE" stats -q live
