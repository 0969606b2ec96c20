#!/usr/bin/env bash
# Calls that copy between descriptors (sendfile, copy_file_range, splice): both ends with path, bytes and offset, against what a program says of itself; cp and shutil.copy, which use them.
# Needs root (or the capabilities) and a kernel with BTF.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
options=(--no-block --no-page-cache --interval 0 --no-summary)
run_any can 0 "$STAVE" record -q --strict "${options[@]}" -o can.pftrace -- true || skip_all "no system calls here: $(cat can.err)"
ask() { "$STAVE" query -q --no-index --to csv "$1" "$2" | sed 1d; }
head -c 65536 /dev/urandom >from.bin

for threads in '' threads; do
  name=copies$threads
  # shellcheck disable=SC2086 # none, or one word
  run_any "$name" 0 "$STAVE" record -q --strict "${options[@]}" -o "$name.pftrace" -- "$BUILD/tests/system/copies" "$TMP/from.bin" "$TMP/to" $threads
  ask "$name.pftrace" "select op || ' ' || bytes || ' ' || coalesce(offset, -1) || ' ' || coalesce(offset2, -1) || ' ' || iif(path like '/%', path, '-') || ' ' || iif(path2 like '/%', path2, '-') from io
    where op in ('sendfile', 'copy_file_range', 'splice')" | sort >"$name.seen"
  check "${name}_are_exact" diff <(sort "$name.out") "$name.seen"
  # By file: what was read of one and written to another.
  awk '$5 != "-" { read[$5] += $2 } $6 != "-" { written[$6] += $2 } END { for (p in read) print p "," read[p] ",0"; for (p in written) print p ",0," written[p] }' "$name.out" | sort >"$name.truth"
  ask "$name.pftrace" "select path, coalesce(bytes_read, 0), coalesce(bytes_written, 0) from file where path like '$TMP/from%' or path like '$TMP/to%'" | sort >"$name.files"
  check "${name}_by_file" diff "$name.truth" "$name.files"
  "$STAVE" report io -q --no-index --csv --by file "$name.pftrace" | grep -E "^$TMP/(from|to)" | cut -d, -f1,11,12 | sort >"$name.reported"
  check "${name}_reported" diff "$name.truth" "$name.reported"
done

# The bytes of a file that other programs copy, however they do it.
copied() { # copied NAME COMMAND…
  run_any "$1" 0 "$STAVE" record -q --strict "${options[@]}" -o "$1.pftrace" -- "${@:2}"
  check "$1_bytes" test "$(ask "$1.pftrace" "select sum(coalesce(bytes_read, 0) * (path = '$TMP/from.bin')), sum(coalesce(bytes_written, 0) * (path = '$TMP/$1.bin')) from file")" = 65536,65536
}
copied cp cp --reflink=never "$TMP/from.bin" "$TMP/cp.bin"
if command -v python3 >/dev/null; then copied shutil python3 -c "import shutil; shutil.copy('$TMP/from.bin', '$TMP/shutil.bin')"; else skip shutil "no python3 here"; fi
