#!/usr/bin/env bash
# stave import of an archive: what is in it is what the unpacked folder holds, and what is hostile in it is refused, member by member. No file is made of it.
. "$SRC/tests/harness/cli.sh"
mkdir packed unpacked private
python3 "$SRC/tests/cli/import_tar.py"
export TMPDIR=$TMP/private

# same NAME ARCHIVE [ARG…]: the same output and messages as of a folder that has the archive's name and its files.
same() {
  local name=$1 archive=$2; shift 2
  mkdir -p "unpacked/$archive"
  tar -xf "packed/$archive" -C "unpacked/$archive"
  (cd packed && "$STAVE" import "$archive" "$@" >"$TMP/$name.a" 2>"$TMP/$name.a_err"; echo $? >>"$TMP/$name.a_err")
  (cd unpacked && "$STAVE" import "$archive" "$@" >"$TMP/$name.f" 2>"$TMP/$name.f_err"; echo $? >>"$TMP/$name.f_err")
  check "same_events_$name" cmp "$name.a" "$name.f"
  check "same_messages_$name" diff "$name.a_err" "$name.f_err"
  check "some_events_$name" grep -q '^[0-9].* \(slice\|counter\) ' "$name.a"
}

cp -r "$SRC/tests/golden/archive" "$SRC/tests/golden/run" .
chmod -R u+w archive run
gzip -k run/trace_read.out && rm run/trace_read.out # a compressed file in the archive
long=run/$(printf 'folder-with-a-long-name-%.0s' 1 2 3 4 5 6 7 8)
mkdir "$long" && cp run/cpu.out "$long/cpu-of-another-machine-with-a-name-of-more-than-a-hundred-bytes-by-itself-so-that-no-header-of-ustar-holds-it.out"
for format in gnu pax ustar v7; do
  [ $format = gnu ] || [ $format = pax ] || rm -rf "$long"
  tar --format=$format -cf packed/$format.tar run archive
  same $format $format.tar --tz UTC --to text
done
tar --format=pax -C run -cf packed/dot.tar . # names begin with ./
same dot dot.tar --tz UTC --to text
gzip -c packed/pax.tar >packed/run.tar.gz
cp packed/run.tar.gz packed/run.log # the content decides, not the name
same gzip run.tar.gz --tz UTC --to text
same misnamed run.log --tz UTC --to text
if command -v zstd >/dev/null; then
  zstd -q packed/pax.tar -o packed/run.tar.zst
  same zstd run.tar.zst --tz UTC --to text
else
  skip zstd "no zstd"
fi
check writes_are_writes diff <(grep -c '"write" cat="syscall"' dot.a) <("$STAVE" import -q run --tz UTC --to text 2>/dev/null | grep -c '"write" cat="syscall"')

# An archive of the recorder's own.
if "$STAVE" record -q --archive -o own.pftrace -- true 2>record.err && [ -e own.tar.zst ]; then
  mv own.tar.zst packed
  mkdir unpacked/own.tar.zst
  zstd -qdc packed/own.tar.zst | tar -xf - -C unpacked/own.tar.zst
  (cd packed && "$STAVE" import own.tar.zst --to text >../own.a 2>../own.a_err)
  (cd unpacked && "$STAVE" import own.tar.zst --to text >../own.f 2>../own.f_err)
  check own_archive cmp own.a own.f
  check own_archive_is_read grep -q 'own.pftrace\|^track' own.a
else
  skip own_archive "nothing can be recorded here"
fi

# Several, and with a folder; the same one twice is refused, so is the output.
run_any two 0 "$STAVE" import packed/run.tar.gz run --tz UTC --assume -o two.pftrace
run_any twice 2 "$STAVE" import packed/run.tar.gz packed/run.tar.gz --tz UTC --to text
run_any onto_itself 2 "$STAVE" import packed/run.tar.gz --tz UTC --to text -o packed/run.tar.gz
check it_is_still_there gzip -t packed/run.tar.gz

# hostile NAME EXIT GOOD-EVENTS WORDS: the exit status, how many of the good files' lines are there, and what is said, in how many lines.
hostile() {
  local name=$1 code=$2 events=$3 words=$4 lines=${5:-1}
  for suffix in tar tar.gz; do
    run_any "$name.$suffix" "$code" "$STAVE" import "$name.$suffix" --to text
    check "events_$name.$suffix" test "$(grep -c '^[0-9].* slice ' "$name.$suffix.out")" = "$events"
    [ "$lines" = 0 ] || check "said_$name.$suffix" grep -q -e "$words" "$name.$suffix.err"
    check "lines_$name.$suffix" test "$(grep -c "$name.$suffix: \|$name.$suffix/.* it is a" "$name.$suffix.err")" = "$lines"
  done
}
hostile none 0 8 '' 0
for name in parent parent_inside absolute pax_parent gnu_parent; do hostile $name 5 8 'read_9: not read, its name leads out of the archive'; done
hostile escapes 5 8 'its name leads out of the archive'
check no_escapes bash -c "! grep -q \$'\\e' escapes.tar.err"
hostile sparse_old 5 8 'sparse: not read, it is stored as a sparse file'
hostile sparse_pax 5 8 'run/sparse: not read, it is stored as a sparse file'
hostile no_name 5 8 'it has no name'
hostile long_name 5 8 'its name is longer than'
hostile unknown_kind 5 8 'run/volume: not read, it is of a kind'
hostile link 0 8 'run/link: skipped, it is a link' 2
hostile through_link 0 8 'run/link: skipped, it is a link'
hostile device 0 8 'run/disk: skipped, it is a device' 3
hostile global 0 8 '' 0
hostile hidden 0 8 '' 0
for name in bad_sum bad_pax zero_pax long_pax negative endless_pax; do hostile $name 5 4 'byte [0-9]*: .*; what follows is not read'; done
run_any strict 1 "$STAVE" import bad_sum.tar --strict -o strict.pftrace
check strict_leaves_no_file test ! -e strict.pftrace
hostile cut 5 5 'run/read_8: only 60 of 164 bytes are there' 2
hostile no_end 5 8 'its end is missing'
hostile twice 0 8 '' 0
hostile deep 5 4 'not read' 0
check deep_is_said grep -q ' 0 files after the first 10000 and 1 folders deeper than 8 levels were not read' deep.tar.err

# Declared sizes: of a plain archive there is only what is there; a compressed one may unpack to a multiple of its size.
for name in huge huge_pax; do
  run_any $name.plain 5 "$STAVE" import $name.tar --to text
  check said_$name.plain grep -q 'run/read_9: only [0-9]* of [0-9]* bytes are there' $name.plain.err
  run_any $name.gzip 5 "$STAVE" import $name.tar.gz --to text
  check said_$name.gzip grep -q 'it would unpack to more than 1024 MiB' $name.gzip.err
  check events_$name.gzip test "$(grep -c '^[0-9].* slice ' $name.gzip.out)" = 4
done
run_any bomb 5 "$STAVE" import bomb.tar.gz --to text
check bomb_is_said grep -q 'bomb.tar.gz: byte [0-9]*: it would unpack to more than 1024 MiB' bomb.err
check events_bomb test "$(grep -c '^[0-9].* slice ' bomb.out)" = 4

# The compressed stream breaks off, at any place.
for part in 30 60 90; do
  head -c $(($(stat -c %s packed/run.tar.gz) * part / 100)) packed/run.tar.gz >cut$part.tar.gz
  "$STAVE" import cut$part.tar.gz --tz UTC --assume --to text >cut$part.out 2>cut$part.err; code=$?
  check "cut_at_$part" test "$code" = 5
done
head -c 20 packed/run.tar.gz >stub.tar.gz
run_any stub 3 "$STAVE" import stub.tar.gz --tz UTC --to text
tar -cf empty.tar -T /dev/null
run_any empty 3 "$STAVE" import empty.tar --to text

# More files than are read: the result is there, and says that it is not all.
run_any many 5 "$STAVE" import many.tar --from columns --columns 'ts:utc pid ret latency:ns path' -o many.pftrace
check many_is_said grep -q 'stave import: 3 files after the first 10000 and 0 folders deeper than 8 levels were not read' many.err
check many_is_written test -s many.pftrace
tar -xf many.tar
run_any many_folder 5 "$STAVE" import -q many --from columns --columns 'ts:utc pid ret latency:ns path' -o folder.pftrace
check many_folder_is_said grep -q '3 files after the first 10000' many_folder.err
check many_is_the_same cmp <("$STAVE" cat -q many.pftrace | sed s,many.tar/,,) <("$STAVE" cat -q folder.pftrace)

# An archive is no text, whoever reads it.
mkdir with; cp packed/run.tar.gz with; cp archive/read_data/read_4242 with
run_any in_a_folder 0 "$STAVE" import with --to text
check in_a_folder_is_said grep -q 'with/run.tar.gz: skipped, it is an archive' in_a_folder.err
run_any in_a_merged_folder 0 "$STAVE" merge with -o merged.pftrace
check in_a_merged_folder_is_said grep -q 'with/run.tar.gz: .*an archive (tar), not a trace.*; skipped' in_a_merged_folder.err
for verb in info stats cat validate steps 'merge -o x.pftrace' 'convert -o x.pftrace' 'convert --from columns -o x.pftrace' 'merge parent.tar -o x.pftrace'; do
  name="refused_by_${verb//[^a-z]/_}"
  # shellcheck disable=SC2086 # words
  run_any "$name" 3 "$STAVE" $verb packed/run.tar.gz
  check "${name}_says" grep -q "tar.*: an archive (tar), not a trace: 'stave import' reads the files in it" "$name.err"
done
check nothing_is_written test ! -e x.pftrace
printf '\xfd7zXZ\0\0\0' >run.tar.xz
run_any xz 3 "$STAVE" info run.tar.xz
check xz_is_said grep -q 'packed by xz, bzip2 or zip, which Stave does not unpack' xz.err

# Nothing was made of any of them, and a full disk is said.
check no_temporary_files test -z "$(ls -A private)"
check no_files_outside bash -c '! ls -d ../read_9 read_9 run/ok /tmp/read_9 2>/dev/null'
TMPDIR=$TMP/missing run_any no_tmpdir 4 "$STAVE" import packed/run.tar.gz --tz UTC --to text
check no_tmpdir_is_said grep -q 'a temporary file in .*missing' no_tmpdir.err
