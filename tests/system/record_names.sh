#!/usr/bin/env bash
# Names that are not what the program wrote: `..` behind a symbolic link, memory files, files without a name, another root. The program says what the kernel calls them. Needs root (or the capabilities) and a kernel with BTF.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
run_any can 0 "$STAVE" record -q --strict --interval 0 --no-summary -o can.pftrace -- true || skip_all "no system calls here: $(cat can.err)"
ask() { "$STAVE" query -q --no-index --to csv "$1" "$2" | sed 1d | tr -d '"\r'; }
for spool in 0 always; do # decoded at once, and later
  mkdir "$spool"
  (cd "$spool" && STAVE_SPOOL=$spool exec "$STAVE" record -q --strict --interval 0 --no-summary -o ../names.$spool.pftrace -- /usr/bin/python3 "$SRC/tests/system/names.py" ../names.$spool) || not_ok "names_$spool"
  check "valid_$spool" "$STAVE" validate -q names.$spool.pftrace
  n=0
  while read -r bytes name; do
    case $name in O_TMPFILE) skip "tmpfile_$spool" "this file system has no O_TMPFILE"; continue ;; esac
    name=${name% (deleted)} name=${name#/memfd:}
    [ "$bytes" = 106 ] && name="memfd:$name"
    equals "name_${spool}_$bytes" "$(ask names.$spool.pftrace "select extract_arg(arg_set_id, 'path') from slice where name = 'write' and extract_arg(arg_set_id, 'bytes') = $bytes")" "$name"
    n=$((n + 1))
  done < <(sed 's/^no O_/0 O_/' names.$spool)
  check "all_$spool" test $n -ge 10
  # What a process with another root opens says so.
  equals "root_$spool" "$(ask names.$spool.pftrace "select count(*) from slice where name = 'openat' and extract_arg(arg_set_id, 'root') = '$TMP/$spool/jail' and extract_arg(arg_set_id, 'path') glob '$TMP/$spool/*/*'")" 4
  equals "no_root_$spool" "$(ask names.$spool.pftrace "select count(*) from slice where name = 'openat' and extract_arg(arg_set_id, 'root') is not null and extract_arg(arg_set_id, 'path') glob '$TMP/$spool/real/*'")" 0
done
