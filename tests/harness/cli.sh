# shellcheck shell=bash
# For tests of the command line; a script of tests/cli begins with
#
#     . "$SRC/tests/harness/cli.sh"
#     run convert_json 0 "$STAVE" convert in.json -o out.pftrace
#
# run NAME EXIT COMMAND…   the exit status must be EXIT; stdout and stderr must equal SCRIPT/NAME.out and SCRIPT/NAME.err
#                          (SCRIPT: the script's path without .sh). Where only one of the two exists the other stream must
#                          be empty, where none exists neither is compared. UPDATE=1 writes them.
# run_any NAME EXIT COMMAND…   the same without comparing; what was printed is in $TMP/NAME.out and $TMP/NAME.err.
# check NAME COMMAND…      the command must succeed.
# skip NAME WHY, skip_all WHY
# until_true EXPRESSION    waits until the words succeed, which a shell evaluates; false: not within a limit against hangs.
#
# Paths of the tree, the program and the private folder are masked before comparing; MASK is a sed script for more,
# such as times. The script runs in $TMP and fails at its end if any of its parts did.
#
# An error of the script itself is a failure, wherever its text went: bash drops the whole command in which an expression is wrong and goes
# on with the next, which would leave a check out in silence.
set -uo pipefail

: "${SRC:?run me through tests/run}" "${STAVE:?}" "${TMP:?}"
[ -x "$STAVE" ] || { echo "not ok there_is_a_program: $STAVE is not built"; exit 1; }
# shellcheck disable=SC2034 # for the scripts
DATA=$SRC/tests/data
CLI_EXPECTED=$(realpath "${0%.sh}")
CLI_FAILED=0
MASK=${MASK:-}
cd "$TMP" || exit 2
CLI_OPEN= # the check that has begun and has no result yet
trap 'cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT

ok() { echo "ok $1"; CLI_OPEN=; }
not_ok() { echo "not ok $1"; CLI_FAILED=1 CLI_OPEN=; }
skip() { echo "skip $1: $2"; }
skip_all() { echo "$1"; exit 77; }

until_true() { for _ in $(seq $((600 * ${TEST_SCALE:-2}))); do eval "$1" 2>/dev/null && return 0; sleep 0.05; done; return 1; }

mask() { sed -e "s|$STAVE|stave|g; s|$TMP|TMP|g; s|$SRC|SRC|g" -e "$MASK" "$1"; }

# cli_begin [NAME]: a check begins; the one before must have come to its end.
cli_begin() {
  if [ "$CLI_OPEN" ]; then sed 's/^/  /' "$TMP/$CLI_OPEN".{out,err} 2>/dev/null; not_ok "$CLI_OPEN: it did not come to its end"; fi
  CLI_OPEN=${1:-}
}

# no_shell_errors FILE…: none holds a complaint of a shell, which is a mistake in the test (words on processes that were ended are none).
no_shell_errors() {
  ! grep -hE '^([^ ]*\.sh|bash|sh|environment): (line )?[0-9]+: ' "$@" | grep -vE '^[^ ]+ line [0-9]+: +[0-9]+ (Killed|Terminated) '
}

check() {
  local name=$1; shift
  cli_begin "$name"
  if "$@" >"$TMP/$name.out" 2>&1 && no_shell_errors "$TMP/$name.out"; then ok "$name"; else sed 's/^/  /' "$TMP/$name.out"; not_ok "$name"; fi
}

run_any() {
  local name=$1 expected=$2 code; shift 2
  cli_begin "$name"
  "$@" >"$TMP/$name.out" 2>"$TMP/$name.err" </dev/null; code=$?
  if [ "$code" = "$expected" ] && no_shell_errors "$TMP/$name.err"; then ok "$name"; return; fi
  echo "  exit status $code, expected $expected: $*"
  sed 's/^/  /' "$TMP/$name.out" "$TMP/$name.err" | tail -n 40
  not_ok "$name"
}

run() {
  local name=$1 expected=$2 code problem=; shift 2
  cli_begin "$name"
  "$@" >"$TMP/$name.raw_out" 2>"$TMP/$name.raw_err" </dev/null; code=$?
  mask "$TMP/$name.raw_out" >"$TMP/$name.out"
  mask "$TMP/$name.raw_err" >"$TMP/$name.err"
  if [ "$code" != "$expected" ]; then
    echo "  exit status $code, expected $expected: $*"; cat "$TMP/$name.err"; problem=1
  elif ! no_shell_errors "$TMP/$name.err"; then
    problem=1
  elif [ "${UPDATE:-}" = 1 ]; then
    cli_update "$name"
  elif [ -e "$CLI_EXPECTED/$name.out" ] || [ -e "$CLI_EXPECTED/$name.err" ]; then
    cli_same "$name.out" && cli_same "$name.err" || problem=1
  fi
  if [ "$problem" ]; then not_ok "$name"; else ok "$name"; fi
}

cli_same() {
  local expected=$CLI_EXPECTED/$1
  [ -e "$expected" ] || expected=/dev/null
  diff -u --label "expected $1" --label "is $1" "$expected" "$TMP/$1"
}

# An empty stream needs no file, unless both are empty.
cli_update() {
  mkdir -p "$CLI_EXPECTED"
  rm -f "$CLI_EXPECTED/$1.out" "$CLI_EXPECTED/$1.err"
  if [ -s "$TMP/$1.err" ]; then cp "$TMP/$1.err" "$CLI_EXPECTED/$1.err"; fi
  if [ -s "$TMP/$1.out" ] || ! [ -s "$TMP/$1.err" ]; then cp "$TMP/$1.out" "$CLI_EXPECTED/$1.out"; fi
}
