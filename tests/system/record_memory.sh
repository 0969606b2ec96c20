#!/usr/bin/env bash
# Memory of a process by kind: what it has allocated and pages of mapped files are apart, as /proc says it to the process itself.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3 here"
run_any memory 0 "$STAVE" record -q --no-io --no-block --no-page-cache --interval 50ms --no-summary -o memory.pftrace -- python3 "$SRC/tests/system/memory.py" "$TMP/data.bin"
read -r anon file <memory.out
# near NAME OF: the samples that are within 2 % of what the process counted while it waited for them. The last one may be of a process that is ending.
near() { check "$1" test "$("$STAVE" query -q --no-index --to csv memory.pftrace "select count(*) from counters where name = '$1' and abs(value - $2) <= $2 / 50" | sed 1d)" -ge 5; }
near memory_anon "$anon"
near memory_file "$file"
near memory $((anon + file))
