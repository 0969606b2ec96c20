#!/usr/bin/env bash
# Indexes of traces: none is used that is not of this file, this program, this user, and whole. (index_law_*.sh: the same output with and without.)
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/index.sh"

# What belongs to one file as it was.
cp "$SRC/tests/golden/good/kineto.json" t.json; sleep 0.3
rm -rf "$folder"; check nothing_is_made_by_default bash -c '"$0" query -q t.json "SELECT 1" && [ ! -e "$1" ]' "$STAVE" "$folder"
make t.json; check made uses t.json
check folder_is_private test "$(stat -c %a "$folder")" = 700
check file_is_private test "$(stat -c %a "$folder"/*)" = 600
check no_index bash -c '! "$0" query --time --no-index t.json "SELECT 1" 2>&1 | grep -q "from its index"' "$STAVE"
run_any refused_alike 4 "$STAVE" query -q --memory-limit 1K t.json 'SELECT 1'
check limit_of_memory grep -q 'memory limit' refused_alike.err
check other_format_has_its_own bash -c '! "$0" query --time --from chrome t.json "SELECT 1" 2>&1 | grep -q "from its index"' "$STAVE"
check still_there uses t.json

touch -d '2001-01-01' t.json; check other_time uses_not t.json
sleep 0.3; make t.json; check made_for_the_new_time uses t.json
cp -p t.json before; sed -i 's/aten::mm/aten::xx/' t.json; touch -r before t.json
check same_size_other_content test "$(stat -c '%s %Y' t.json)" = "$(stat -c '%s %Y' before)"
check other_content bash -c '! "$0" query --time t.json "SELECT name FROM slice" 2>&1 | grep -E "from its index|aten::mm"' "$STAVE"
mv before t.json; sleep 0.3; make t.json; check made_again uses t.json
# Within a tenth of a second after it was written, which a busy machine may miss: it is written when the program has started and waits for its statement.
just_written() {
  local asks
  mkfifo statement; cp t.json fresh.json
  for _ in $(seq 50); do
    rm -f "$folder"/*; exec 7<>statement
    STAVE_INDEX_SLICES=0 "$STAVE" query -q fresh.json -f statement >/dev/null 7>&- & asks=$!
    for _ in $(seq 1200); do [[ $(readlink "/proc/$asks/fd/"* 2>/dev/null) == */statement* ]] && break; sleep 0.05; done
    cp t.json fresh.json; echo 'SELECT 1' >&7; exec 7>&-; wait $asks || return 1
    [ -n "$(ls "$folder")" ] || return 0
  done
  return 1
}
check just_written_has_none just_written

# Damage, and what others made. broken NAME COMMAND…: the command changes the index, $i.
want=$("$STAVE" query -q --no-index t.json 'SELECT count(*), sum(dur) FROM slice')
broken() {
  local name=$1; shift
  rm -rf "${folder:?}"; make t.json; i=$(echo "$folder"/*.stave-index)
  check "$name: made" uses t.json
  "$@"
  check "$name: not used" uses_not t.json
  check "$name: right" test "$("$STAVE" query -q t.json 'SELECT count(*), sum(dur) FROM slice' 2>&1)" = "$want"
}
flip() { printf "\\$(printf %o $(($(od -An -tu1 -j "$1" -N1 "$i") ^ 4)))" | dd of="$i" bs=1 seek="$1" conv=notrunc 2>/dev/null; }
old_version() { printf '\0' | dd of="$i" bs=1 seek=16 conv=notrunc 2>/dev/null; }
broken head flip 40; check removed test ! -e "$i"
broken version old_version
broken content flip 4100
broken truncated truncate -s 5000 "$i"
broken shorter truncate -s -1 "$i"
broken longer truncate -s +1 "$i"
broken empty truncate -s 0 "$i"
link() { mv "$i" real; ln -s "$PWD/real" "$i"; }
broken link link; check link_is_left test -L "$i"
second_name() { ln "$i" second; }
broken two_names second_name
broken readable chmod 644 "$i"
broken folder_of_others chmod 755 "$folder"
folder_link() { mv "$folder" elsewhere; ln -s "$PWD/elsewhere" "$folder"; }
broken folder_is_a_link folder_link; rm -f "$folder"; rm -rf elsewhere
if [ "$(id -u)" = 0 ]; then
  broken of_another_user chown 12345 "$i"; check it_is_left test -e "$i"
  broken folder_of_another_user chown 12345 "$folder"; chown 0 "$folder"
else skip of_another_user "needs root"; fi

# Bounded: the ones used last stay, what is not ours stays.
rm -rf "${folder:?}"; make t.json; rm "$folder"/*
echo notes >"$folder/notes.txt"; echo mine >"$folder/0123456789abcdef.stave-index"; chmod 600 "$folder"/*
for k in $(seq 40); do cp -p t.json "many$k.json"; done; sleep 0.3
make many1.json many2.json; uses many1.json
for k in $(seq 3 33); do make "many$k.json"; uses many1.json; done
check at_most_32 test "$(count)" = 33 # and the one that is not ours
check the_oldest_went uses_not many2.json
check the_one_in_use_stays uses many1.json
check the_newest_stays uses many33.json
check what_is_not_ours_stays grep -q . "$folder/notes.txt" "$folder/0123456789abcdef.stave-index"
rm -f many*.json

# Two at once, and no place to write.
rm -rf "${folder:?}"
for k in 1 2 3 4; do make t.json & done; wait
check at_once uses t.json
check at_once_one_is_left test "$(find "$folder" -type f | wc -l)" = 1
touch "$folder/00000000000000ff.stave-part"; chmod 600 "$folder/00000000000000ff.stave-part"; rm "$folder"/*.stave-index; make t.json
check what_was_left_behind_is_removed test ! -e "$folder/00000000000000ff.stave-part"
for place in /dev/null /proc/self/nowhere relative ''; do
  STAVE_INDEX_SLICES=0 XDG_CACHE_HOME=$place HOME=/dev/null "$STAVE" query -q t.json 'SELECT 1' >no_place.out 2>no_place.err; code=$?
  check "no place (${place//\//,})" test "$code" = 0 -a ! -s no_place.err
done
check home bash -c 'mkdir home; HOME=$PWD/home XDG_CACHE_HOME= STAVE_INDEX_SLICES=0 "$0" query -q t.json "SELECT 1" && ls home/.cache/stave/*.stave-index' "$STAVE"
rm -rf "${folder:?}"
check full bash -c 'ulimit -f 20; STAVE_INDEX_SLICES=0 "$0" query -q t.json "SELECT 1" 2>&1 | grep -qx 1 && [ -z "$(ls "$1")" ]' "$STAVE" "$folder"

# stave view makes one and uses it: the same answers.
view() {
  rm -f url
  STAVE_INDEX_SLICES=0 "$STAVE" view --no-browser "$@" >url 2>view.err & pid=$!
  for _ in $(seq 1200); do [ -s url ] && break; sleep 0.05; done
  url=$(head -n 1 url)
  for _ in $(seq 600); do python3 "$SRC/tests/cli/view_client.py" is_ready "$url" 2>/dev/null && return; sleep 0.05; done
}
picture() { python3 "$SRC/tests/cli/view_client.py" picture "$url"; }
if view t.json; then
  picture >first.bin
  for _ in $(seq 1200); do [ "$(count)" = 1 ] && break; sleep 0.05; done
  kill -TERM "$pid"; wait "$pid"
  check view_makes_it uses t.json
  check view_is_silent bash -c '! grep -v "ssh -N" view.err'
  check strips_are_in_it grep -qa strips.blocks "$folder"/*.stave-index
  view t.json; picture >second.bin; kill -TERM "$pid"; wait "$pid"
  check same_picture cmp first.bin second.bin
  check a_picture test -s first.bin
  touch t.json; view --no-index t.json; picture >third.bin; kill -TERM "$pid"; wait "$pid"
  check no_index_makes_none uses_not t.json
  check same_picture_without cmp first.bin third.bin

  # A page that is in no sample: query compares all checksums; the viewer shows the trace first, then says so.
  python3 -c 'print("["); print(",\n".join("{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"name\":\"a\"}" % (i * 2) for i in range(300000))); print("]")' >large.json
  sleep 0.3; rm -rf "${folder:?}"; make large.json; i=$(echo "$folder"/*.stave-index); cp -p "$i" whole
  at=$(python3 - "$i" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
table, n = struct.unpack_from("<QQ", data, 128)
for k in range(n):
    name, at, size = struct.unpack_from("<24sQQ", data, table + 56 * k)
    if name.rstrip(b"\0") == b"slice.0":
        assert size == 2400000, size
        print(at + 5 * 65536 + 8)
END
)
  check large_is_used uses large.json
  flip "$at"; cp -p "$i" damaged
  view large.json
  for _ in $(seq 1200); do grep -qs 'index of this trace is damaged' view.err && break; sleep 0.05; done
  check view_says_it grep -q 'index of this trace is damaged' view.err
  check view_removes_it test ! -e "$i"
  kill -TERM "$pid"; wait "$pid"
  cp -p damaged "$i"; check query_does_not_use_it uses_not large.json
  cp -p whole "$i"; check the_whole_one_is_used uses large.json
elif grep -q 'no viewer' view.err; then skip view "built without the viewer"
else check view_serves false; fi
