#!/usr/bin/env bash
# Commands that write files, where there is no space: exit code 4, one line, an older file as it was, nothing left beside it. Needs root, to mount a
# small file system; the limit of a file's size needs nothing.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions
mkdir sessions tiny limited
STAVE_FULL=block STAVE_OUT=in.pftrace "$BUILD/tests/stress/numbers" 2 10000 progress >/dev/null
is_mounted=
trap '[ -z "$is_mounted" ] || umount "$TMP/tiny"; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT

# full NAME FILE COMMAND…, limit NAME FILE COMMAND…: into a full place, past a limit
full() {
  local name=$1 file=$2; shift 2
  [ "$is_mounted" ] || return 0
  rm -rf tiny/* tiny/.[!.]*; echo old >"tiny/$file"
  run_any "full_$name" 4 "$STAVE" "$@" -o "tiny/$file"
  check "full_${name}_says" grep -q 'No space left on device\|database or disk is full' "full_$name.err"
  check "full_${name}_nothing_left" test "$(ls -A tiny)" = "$file" -a "$(cat "tiny/$file")" = old
}
limit() {
  local name=$1 file=$2; shift 2
  rm -rf limited/* limited/.[!.]*; echo old >"limited/$file"
  run_any "limit_$name" 4 bash -c 'ulimit -f 32; exec "$@"' x "$STAVE" "$@" -o "limited/$file"
  check "limit_${name}_nothing_left" test "$(ls -A limited)" = "$file" -a "$(cat "limited/$file")" = old
}
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=32k stave-test tiny 2>/dev/null; then is_mounted=1; else skip full_disk "needs root: to mount a small file system"; fi
full perfetto t.pftrace convert in.pftrace
full json_gz t.json.gz convert in.pftrace
full csv t.csv convert in.pftrace
cp in.pftrace twin.pftrace
full merge t.pftrace merge in.pftrace twin.pftrace
full cut t.pftrace cut --cat seq in.pftrace
full sqlite t.sqlite export --force in.pftrace --to sqlite
full export t.js export --force in.pftrace --to json
limit packed t.pftrace convert --compress gzip in.pftrace
limit kineto t.json convert --dialect kineto in.pftrace
limit text t.txt convert in.pftrace
limit sqlite t.sqlite export --force in.pftrace --to sqlite
