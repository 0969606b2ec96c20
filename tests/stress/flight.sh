#!/usr/bin/env bash
# The flight recorder: files by hand, by signal, by a slow slice; names are there although their first use was overwritten.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
STAVE_FULL=overwrite STAVE_BUFFER=64k STAVE_TRIGGER=slow:50 STAVE_TRIGGER_SIGNAL=10 STAVE_OUT=t.pftrace \
  "$BUILD/tests/stress/life" flight >out 2>err
code=$?; export code
check() { if eval "$2"; then echo "ok flight: $1"; else echo "not ok flight: $1: $(cat out err | head -n 5) $(ls t.*)"; fi; }
has() { text "$1" | grep -c -- "$2" >/dev/null; } # reads to the end: no broken pipe
text() { "$STAVE" cat -q "t.$1.pftrace"; }
check "the program ends well" '[ $code = 0 ] && [ ! -s err ]'
check "four numbered files and nothing else" '[ "$(echo t.*)" = "t.1.pftrace t.2.pftrace t.3.pftrace t.4.pftrace" ]'
check "the newest events are there" 'has 1 "last words" && has 1 "i=999999}"'
check "old ones are not" '! has 1 "i=900000}"'
check "as many as the ring holds" '[ "$(text 1 | grep -c begin)" -gt 500 ]'
check "names survive" '[ "$(text 2 | grep -c "begin .*\"step\"")" -gt 500 ]'
check "the reason is told" 'has 1 "by hand" && has 3 signal && has 4 "slow"'
check "no session is left" '[ -z "$(ls "$STAVE_SESSION_DIR")" ]'
