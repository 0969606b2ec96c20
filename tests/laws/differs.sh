#!/usr/bin/env bash
# Every number that two surfaces share is the same on both: see differs.py. Those that differ today are in differs.txt, one line each; UPDATE=1 writes it.
set -uo pipefail
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
exec python3 "$SRC/tests/laws/differs.py" "$SRC/tests/laws/differs.txt"
