#!/usr/bin/env bash
# Times before zero that a live writer meets late (early.c): in the finished file, in what a killed program leaves, with each compression.
set -uo pipefail
export LC_ALL=C STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
unset XDG_RUNTIME_DIR
say() { if [ "$1" = 0 ]; then echo "ok early: $2"; else echo "not ok early: $2: $(cat out err 2>/dev/null | head -n 20)"; fi; }

# The program's times are on CLOCK_MONOTONIC, the file's on BOOTTIME: what counts is how far apart they are.
times() {
  "$STAVE" convert -q "$1" --to csv 2>err | awk -F, '$3 == "slice" { ts[$10] = $1; dur[$10] = $2 } END {
    for (n in ts) print n, ts[n] - ts["zero"], dur[n] }' | sort >out
  printf '%s\n' 'after 8000 10' 'earlier -123457789 1000' 'early -6000 100' 'zero 0 500' | cmp - out
}
lost() { "$STAVE" cat -q "$1" | grep -c ' loss .*"time out of range" {1}'; }

for how in none gzip zstd; do
  if [ $how = zstd ] && "$STAVE" convert --to perfetto --compress zstd /dev/null 2>&1 | grep -q 'not built in'; then continue; fi
  STAVE_COMPRESS=${how#none} STAVE_OUT=$how.pftrace "$BUILD/tests/stress/early" >out 2>err; say $? "the program runs, compressed by $how"
  times $how.pftrace; say $? "all times are right, compressed by $how"
  [ "$(lost $how.pftrace)" = 1 ]; say $? "what ends at no time is a loss"
  [ -z "$(find . -name '*.part' -o -name '*.tmp')" ]; say $? "nothing else is left"
  { STAVE_COMPRESS=${how#none} STAVE_OUT=dead.pftrace "$BUILD/tests/stress/early" kill; } >out 2>err
  "$STAVE" recover -q dead.pftrace >out 2>err; say $? "a killed program is recovered, compressed by $how"
  times dead.pftrace; say $? "with right times"
  rm -f dead.pftrace*
done
# One origin in the whole file: Perfetto knows none.
"$STAVE" convert -q none.pftrace -o again.pftrace
[ "$(grep -ao 'in this file are [0-9]* ns later' none.pftrace | sort -u | wc -l)" = 1 ]; say $? "the finished file has one origin"
