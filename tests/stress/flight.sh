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
check "the reason is recorded" 'has 1 "by hand" && has 3 signal && has 4 "slow"'
check "no session is left" '[ -z "$(ls "$STAVE_SESSION_DIR")" ]'

# How far back, how long after, how often, and what is counted (recorder.c).
export STAVE_FULL=overwrite
scene() { rm -rf t.*; STAVE_OUT=t.pftrace "$BUILD/tests/stress/recorder" "$@" >out 2>err; code=$?; }
value() { sed -n "s/^$1 //p" out; }
STAVE_KEEP_MS=2000 scene keep
check "keep: what is older is left out" '[ $code = 0 ] && has 1 young && ! has 1 "too old"'
STAVE_KEEP_MS=60000 scene keep
check "keep: as long as asked" 'has 1 young && has 1 "too old"'
STAVE_AFTER_MS=1500 scene after
check "after: what follows is in it, as long as asked" '[ $code = 0 ] && has 1 before && has 1 "soon after" && ! has 1 "long after"'
check "after: a second trigger has a file of its own" 'has 2 another && has 2 "soon after" && [ "$(echo t.*)" = "t.1.pftrace t.2.pftrace" ]'
check "after: the trigger is where it was" '[ "$(text 1 | grep " instant " | sort -n | grep -oE "\"(before|trigger|soon after)\"" | tr -d "\n")" = "\"before\"\"trigger\"\"soon after\"" ]'
STAVE_AFTER_MS=900000 scene stop # the test's time limit detects a hang
check "after: the end of the program does not wait for it" '[ $code = 0 ] && has 1 before && grep -q "to come" out'
STAVE_BUFFER=64k scene repeated
check "repeated: twenty numbered files" '[ $code = 0 ] && [ "$(ls t.*.pftrace | wc -l)" = 20 ] && [ "$(ls t.* | wc -l)" = 20 ]'
check "repeated: each whole, with its reason and its names" 'for i in 1 7 20; do has $i "trigger $i" && has $i "name=\"level\" unit=\"W\"" && has $i "name=\"group\"" && has $i "seq=$((i * 10000 - 1))}" || exit 1; done'
check "repeated: values are never older than the ring" '! has 20 "seq=100000}"'
STAVE_BUFFER=64k scene counts
in_file=$(text 1 | grep -c seq=); export in_file # read by check
check "counts: in the file or counted as overwritten" '[ $code = 0 ] && [ "$in_file" -gt 1000 ] && [ $((in_file + $(value overwritten))) -le 300000 ] && [ $((in_file + $(value overwritten) + 600)) -ge 300000 ] && [ "$(value lost)" = 0 ]'
check "counts: the newest are without a gap" '[ "$(text 1 | grep -o "seq=[0-9]*" | cut -d= -f2 | awk "NR == 1 { first = \$1 } { if (\$1 != first + NR - 1) bad = 1 } END { print bad + 0, \$1 }")" = "0 299999" ]'
scene threads
check "threads: bounded, and the newest are there" '[ $code = 0 ] && [ "$(text 1 | grep -c "\"short\"")" -ge 5000 ] && [ $(($(text 1 | grep -c "\"short\"") + $(value overwritten) + $(value lost))) -ge 100000 ]'
STAVE_BUFFER=64k scene die
"$STAVE" recover -q t.pftrace >>err 2>&1
check "a recorder that dies has its newest events" '[ "$("$STAVE" cat -q t.pftrace | grep -c seq=)" -gt 1000 ] && "$STAVE" cat -q t.pftrace | grep -c "seq=299999}" >/dev/null'
STAVE_FULL=drop scene off
check "a trigger without a recorder says no" '[ $code = 0 ] && [ "$(echo t.*)" = t.pftrace ]'
check "no session is left behind" '[ -z "$(ls "$STAVE_SESSION_DIR")" ]'
