#!/usr/bin/env bash
# Every command of README.md runs as it stands there; readme.txt has the few that cannot, with the reason.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/sandbox.sh"
case $BUILD in */build) ;; *) skip_all "once is enough" ;; esac
sandbox >"$TMP/prepared" 2>&1 || { cat "$TMP/prepared"; not_ok inputs; }
"${alone[@]}" python3 "$SRC/tests/harness/doc_commands.py" "$SRC/tests/install/readme.txt" "$SRC/README.md" || CLI_FAILED=1
