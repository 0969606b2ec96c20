#!/usr/bin/env bash
# stave explain on recordings of real programs whose cause is known (tests/why/programs): it must earn 95 % of the points, raise no false alarm on healthy programs, and, without states and calls, blame nobody wrongly.
# STAVE_LONG=1: all programs, three recordings each, with the same verdicts. The programs measure themselves; nothing here has a time limit.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3 here"
which=(--quick); [ -z "${STAVE_LONG:-}" ] || which=(--repeat 3)

run_any explained 0 "$python" "$SRC/tests/why/judge.py" "${which[@]}" --goal 95
run_any bare 0 "$python" "$SRC/tests/why/judge.py" "${which[@]}" --bare --goal 100
for name in explained bare; do
  while read -r what why; do skip "$name: ${what%:}" "$why"; done < <(sed -n 's/^skip //p' "$name.out")
done
