#!/usr/bin/env bash
# Work and memory of readers and commands grow in step with the input: see scaling.py. With STAVE_LONG=1 every shape with every command.
set -uo pipefail
counted=$SRC/build-count/stave
case $BUILD in */build) ;; *) echo "runs in the build that counts, once"; exit 77 ;; esac
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
[ -x "$counted" ] || { echo "not built: tools/build count stave_program"; exit 77; }
exec python3 "$SRC/tests/laws/scaling.py" "$counted" ${STAVE_LONG:+--all}
