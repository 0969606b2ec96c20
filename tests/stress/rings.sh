#!/usr/bin/env bash
# Full rings under the policy block (see rings.c): nothing waits for ever, what was recorded is there once, and ends find their begins.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block STAVE_BUFFER=16k
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
for scene in deep by_hand switched threads; do
  rm -f t.* out
  STAVE_OUT=t.pftrace timeout 60 "$BUILD/tests/stress/rings" $scene >out 2>err || { echo "not ok rings: $scene: exit $?"; continue; }
  "$STAVE" cat -q t.pftrace >text 2>cat.log
  lost=$(sed -n 's/^lost //p' out) why=
  while read -r name n; do
    [ "$name" != lost ] || continue
    have=$(grep -cE "(begin|slice|instant) .*\"$name\"" text)
    [ $((have + lost)) = "$n" ] || why="$why $name: $have in the file and $lost lost of $n;"
  done <out
  begins=$(grep -c ' begin ' text) ends=$(grep -c ' end ' text)
  case $scene in
  deep)
    [ "$lost" -gt 0 ] || why="$why the ring has space for all;"
    [ "$(wc -l <err)" = 1 ] && grep -q "^stave: .*: $lost events were lost, $lost of them because rings were full" err || why="$why it said '$(cat err)';" ;;
  *)
    [ "$lost" = 0 ] || why="$why $lost lost;"
    [ ! -s err ] || why="$why it said '$(cat err)';" ;;
  esac
  [ "$begins" = "$ends" ] || why="$why $begins begins and $ends ends;"
  if [ -z "$why" ]; then echo "ok rings: $scene"; else echo "not ok rings: $scene:$why"; fi
done
