#!/usr/bin/env bash
# Pages that enter the page cache: those that writes make are apart from those that are read, and what is read is what the kernel has counted for the process. Needs root (or the capabilities),
# a kernel with BTF, and a folder on a disk.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
command -v python3 >/dev/null || skip_all "no python3 here"
run_any pages 0 "$STAVE" record -q --strict --interval 0 --no-summary -o pages.pftrace -- python3 "$SRC/tests/system/pages.py" "$TMP/data.bin" || skip_all "no page cache here: $(cat pages.err)"
read -r made from_disk <pages.out
[ "$from_disk" -gt 0 ] || skip_all "$TMP is not on a disk"
ask() { "$STAVE" query -q --no-index --to csv pages.pftrace "select coalesce(sum(extract_arg(arg_set_id, 'bytes')), 0) from slice where extract_arg(arg_set_id, 'path') = '$TMP/data.bin' and $1" | sed 1d; }
equals() { echo "  $1: $2 recorded, $3 counted by the kernel"; check "$1" test "$2" = "$3"; }
equals pages_made "$(ask "category = 'page_created'")" "$made"
equals pages_read "$(ask "category = 'page_cache'")" "$from_disk"
check pages_read_ahead test "$(ask "category = 'page_cache' and extract_arg(arg_set_id, 'readahead') = 1")" -gt 0
"$STAVE" report io --no-index --csv --by file pages.pftrace 2>report.err >report.out
check reported test "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == path { print $at["cache_miss_bytes"] }' path="$TMP/data.bin" report.out)" = "$from_disk"
