#!/usr/bin/env bash
# Every command of docs/tutorial.md runs as it stands there (tutorial.txt has those that cannot), and what the page says about their results is true.
# UPDATE=1 also writes the page's pictures to docs/images; the program is then recorded at real-time priority, so that other work does not show.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/sandbox.sh"
case $BUILD in */build) ;; *) skip_all "once is enough" ;; esac
sandbox >"$TMP/prepared" 2>&1 && cmake --install "$BUILD" --prefix "$PREFIX" >>"$TMP/prepared" 2>&1 || { cat "$TMP/prepared"; not_ok inputs; }
[ -z "${UPDATE:-}" ] || printf '#!/bin/sh\nexec chrt -f 1 "$@"\n' >"$TMP/bin/sudo"
"${alone[@]}" python3 "$SRC/tests/harness/doc_commands.py" "$SRC/tests/install/tutorial.txt" "$SRC/docs/tutorial.md" || CLI_FAILED=1

# reads TRACE: how many reads of less than 16 KiB its loader made
reads() { stave query -q "$1" "select count(*) from slice where name = 'read' and extract_arg(arg_set_id, 'debug.bytes') between 1 and 16383" | tail -n 1; }
if stave doctor 2>/dev/null | grep -q '^ok *a recording'; then
  stave explain -q slow.pftrace >explained 2>&1
  check "explain_says_that_training_waits_for_data" grep -q '^[1-5]\. .*data' explained
  stave report wait -q slow.pftrace >waits && stave report io -q slow.pftrace >io
  check "the_reports_have_the_lines_of_the_page" eval "grep -q '^Where the time went' waits && grep -q '^ *divided .*data' waits && grep -q '^small transfers: ' io && grep -q '^sequential: ' io"
  check "the_cause_is_gone ($(reads slow.pftrace) and $(reads fast.pftrace) small reads)" test "$(reads slow.pftrace)" -gt $((100 * $(reads fast.pftrace)))
fi
[ -z "${UPDATE:-}" ] || { cp tutorial_*.png "$SRC/docs/images/" && node "$SRC/tests/browser/tutorial.mjs" slow.pftrace "$SRC/docs/images/tutorial_view.png"; }
for picture in $(grep -o 'images/tutorial_[a-z]*\.png' "$SRC/docs/tutorial.md" "$SRC/README.md" -h | sort -u); do
  check "${picture##*/}_is_there_and_small" test "$(wc -c <"$SRC/docs/$picture")" -le 300000
done
