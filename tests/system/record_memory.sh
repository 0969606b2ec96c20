#!/usr/bin/env bash
# Memory of a process by kind: what it has allocated and pages of mapped files are apart, as /proc says it to the process itself.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3 here"
run_any memory 0 "$STAVE" record -q --no-io --no-block --no-page-cache --interval 50ms --no-summary -o memory.pftrace -- python3 "$SRC/tests/system/memory.py" "$TMP/data.bin"
read -r anon file <memory.out
# last NAME: when the program itself was last seen, which has much of each kind; a launcher around it has little. It is looked at
# while it exits, too: then the kernel says nothing of the kinds.
last() {
  "$STAVE" query -q --no-index --to csv memory.pftrace "select cast(value as integer) from counters where name = '$1' and value > 30000000 and
    ts = (select max(ts) from counters where name = 'memory_anon' and value > 30000000)" | sed 1d
}
# near NAME IS OF: within 2 %.
near() { echo "  $1: $2 recorded, $3 counted"; check "$1" test $(($2 > $3 ? $2 - $3 : $3 - $2)) -le $(($3 / 50)); }
near memory_anon "$(last memory_anon)" "$anon"
near memory_file "$(last memory_file)" "$file"
check memory_is_all test "$(last memory)" -ge $((anon + file - (anon + file) / 50))
