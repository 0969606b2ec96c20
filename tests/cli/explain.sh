#!/usr/bin/env bash
# stave explain: generated traces with a planted cause (explain/planted.py), where the right one must come first in nine of ten, and clean ones, where none may be found. What is printed for
# one of them; bounds of the JSON; bad input. With STAVE_LONG=1 more traces, with other strengths.
. "$SRC/tests/harness/cli.sh"
here=$SRC/tests/cli/explain
command -v python3 >/dev/null || skip_all "no python3 here"

# judge SEED: prints "RIGHT PLANTED INVENTED", and on standard error what was not right.
judge() {
  local planted=0 right=0 invented=0 file want got
  python3 "$here/planted.py" "traces$1" "$1"
  for file in "traces$1"/*.txt; do
    want=$(basename "${file%-*}")
    got=$("$STAVE" explain -q --json --no-index "$file" | grep -o '"cause":"[a-z_]*"' | head -1 | cut -d'"' -f4)
    if [ "$want" = clean ]; then
      [ -z "$got" ] || { invented=$((invented + 1)); echo "$file: $got is invented"; }
    else
      planted=$((planted + 1))
      if [ "$got" = "$want" ]; then right=$((right + 1)); else echo "$file: ${got:-nothing}"; fi
    fi
  done >"judged$1.txt"
  echo "$right $planted $invented"
}

read -r right planted invented <<<"$(judge 0)"
cat judged0.txt
check "thirty_causes_are_planted" test "$planted" = 30
check "the_right_cause_is_first_in_nine_of_ten ($right of $planted)" test $((right * 10)) -ge $((planted * 9))
check "nothing_is_invented" test "$invented" = 0
if [ "${STAVE_LONG:-}" ]; then
  for seed in 1 2 3 4 5; do
    read -r right planted invented <<<"$(judge "$seed")"
    check "strengths $seed: $right of $planted" test $((right * 10)) -ge $((planted * 9))
    check "strengths $seed: nothing is invented" test "$invented" = 0
  done
else
  skip other_strengths "STAVE_LONG is not set"
fi

# What is written once is a file, not a checkpoint; a quota has its own advice.
first() { "$STAVE" explain -q --json --no-index "traces0/more/$1.txt" >first.json && python3 -c 'import json; f = json.load(open("first.json"))["findings"][0]; print(f["cause"], f["sentence"], f["advice"], sep="\n")' >first.txt; }
first files
check written_once_is_a_file sh -c 'grep -qx disk first.txt && grep -qE "writing files: longest /out/data.bin\.$" first.txt'
first epochs
check written_again_and_again_is_a_checkpoint sh -c 'grep -qx checkpoint first.txt && grep -qF "writing checkpoints, 48.0 MiB each time." first.txt'
first renamed
check renamed_into_place_is_a_checkpoint sh -c 'grep -qx checkpoint first.txt && grep -qF "longest /out/data.bin." first.txt'
first quota
check advice_for_a_quota sh -c 'grep -qx cpu first.txt && grep -qF "quota of its group (cpu.max) is used up, cgroup /pod/7." first.txt && tail -1 first.txt | grep -qxF "Raise the quota of its group (cpu.max), or start fewer threads."'
first ../cpu-0
check advice_without_a_quota sh -c 'tail -1 first.txt | grep -qxF "Use fewer threads, or give the program CPUs of its own."'

run slow_file 0 "$STAVE" explain traces0/slow_file-0.txt
run clean 0 "$STAVE" explain traces0/clean-0.txt
run clean_json 0 "$STAVE" explain --json traces0/clean-0.txt
run_any several 0 "$STAVE" explain --json traces0/cpu-0.txt
check json_is_json python3 -c 'import json, sys; f = json.load(open("several.out"))["findings"]; assert f[0]["cause"] == "cpu" and f[0]["sure"] and f[0]["command"].startswith("stave ")'
check json_is_bounded test "$(wc -c <several.out)" -lt 16384
cp traces0/cpu-0.txt "a b.txt"
run_any spaces 0 "$STAVE" explain -q --no-index "a b.txt"
check a_name_with_a_blank_is_quoted grep -qF "see: stave report wait 'a b.txt' --by" spaces.out
run no_trace 2 "$STAVE" explain
run absent 3 "$STAVE" explain absent.pftrace

# report wait on the same: parts of every span add up; one step; a step that is not there.
for file in slow_file-1 cold_cache-0 lock-2 gpu_launch-0; do
  "$STAVE" report wait -q --no-index --json "traces0/$file.txt" >wait.json
  check "parts_add_up in $file" python3 - wait.json <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
parts = "compute data gpu lock disk cpu rank peer sleep other".split()
rows = r["span"] + r["loader"] + [r["summary"]]
assert len(rows) > 2
for s in rows:
    assert sum(s[p + "_ns"] for p in parts) == s["dur_ns"], s
PY
done
run wait_text 0 "$STAVE" report wait -q --no-index traces0/slow_file-0.txt --top 2
run wait_step 0 "$STAVE" report wait -q --no-index traces0/slow_file-0.txt --step 4 --by wait
run no_step 3 "$STAVE" report wait -q --no-index traces0/slow_file-0.txt --step 4000
run bad_step 2 "$STAVE" report wait -q --no-index traces0/slow_file-0.txt --step four
run no_threads 3 "$STAVE" report wait -q --no-index "$SRC/tests/golden/good/iostat.json"
run path 0 "$STAVE" critical-path -q --no-index traces0/slow_file-0.txt --from 'step 4' --to 'step 4' --summary --form csv
run steps_not_idle 0 "$STAVE" steps -q --no-index traces0/lock-0.txt --to csv

# A trainer whose slices name no work: the picture shows what its steps wait for.
run_any picture 0 "$STAVE" plot steps -q --no-index traces0/lock-0.txt -o steps.svg
check picture_shows_waits sh -c 'grep -q ">lock<" steps.svg && grep -q ">compute<" steps.svg && ! grep -q ">idle<" steps.svg'

# The ledger in SQL adds up to what explain says; what is known can be left out; what is new is found; nothing to say is said.
ledger=$("$STAVE" query -q --no-index traces0/lock-0.txt "select sum(dur) from why where counts" | tail -n 1)
run_any ledger 0 "$STAVE" explain -q --no-index --json traces0/lock-0.txt
check ledger_adds_up python3 -c 'import json, sys; r = json.load(open("ledger.out")); assert r["units"]["dur_ns"] == int(sys.argv[1]) and abs(sum(r["time"].values()) - 1) < 1e-9' "$ledger"
run_any ignored 0 "$STAVE" explain -q --no-index --json --ignore lock traces0/lock-0.txt
check ignored_is_gone sh -c 'grep -q "\"cause\":\"lock\"" ledger.out && ! grep -q "\"cause\":\"lock\"" ignored.out'
run_any ignored_other 0 "$STAVE" explain -q --no-index --json --ignore "lock:nobody here" traces0/lock-0.txt
check only_the_named_culprit_is_ignored grep -q '"cause":"lock"' ignored_other.out
run not_a_cause 2 "$STAVE" explain --ignore slow traces0/lock-0.txt
run_any against 0 "$STAVE" explain -q --no-index --json traces0/lock-0.txt --against traces0/clean-0.txt
check slower_by_the_lock python3 -c 'import json; r = json.load(open("against.out")); assert r["findings"][0]["cause"] == "lock" and r["change"] > 0'
run_any same 0 "$STAVE" explain -q --no-index --json traces0/lock-0.txt --against traces0/lock-0.txt
check nothing_is_slower_than_itself grep -q '"findings":\[\]' same.out
printf '# stave text 1\nclock boottime\n' >empty.txt
run_any no_events 3 "$STAVE" explain -q --no-index empty.txt
printf '# stave text 1\nclock boottime\ntrack #1 custom uuid=0x1 name="row"\n0.000000000 slice #1 "a" dur=1.000000000\n' >bare.txt
run_any no_evidence 6 "$STAVE" explain -q --no-index bare.txt
check no_evidence_says_so grep -q '^Cannot say' no_evidence.out
