# shellcheck shell=bash
# For tests/why, behind cli.sh. judged NAME OPTION…: what tests/why/judge.py says of the programs that `make test` runs, with STAVE_LONG=1 of all, three times.
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3 here"
judged() {
  local name=$1 which=(--quick) what why; shift
  [ -z "${STAVE_LONG:-}" ] || which=(--repeat 3)
  run_any "$name" 0 "$python" "$SRC/tests/why/judge.py" "${which[@]}" "$@"
  while read -r what why; do skip "$name: ${what%:}" "$why"; done < <(sed -n 's/^skip //p' "$name.out")
}
