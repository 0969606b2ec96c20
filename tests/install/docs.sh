#!/usr/bin/env bash
# Every command of docs/*.md runs as it stands there; docs.txt has those that cannot, with the reason.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/sandbox.sh"
case $BUILD in */build) ;; *) skip_all "once is enough" ;; esac
[ -n "${STAVE_LONG:-}" ] || skip_all "takes minutes: make test-long (README.md is tested here, too)"
sandbox >"$TMP/prepared" 2>&1 && sandbox_more >>"$TMP/prepared" 2>&1 || { cat "$TMP/prepared"; not_ok inputs; }
cp -a . ../inputs
docs=()
for page in "$SRC"/docs/*.md; do case ${page##*/} in api.md | view_protocol.md | tutorial.md) ;; *) docs+=("$page") ;; esac; done # of code, of bytes, tutorial.sh
"${alone[@]}" python3 "$SRC/tests/harness/doc_commands.py" "$SRC/tests/install/docs.txt" "${docs[@]}" || CLI_FAILED=1
