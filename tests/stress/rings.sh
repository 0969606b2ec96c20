#!/usr/bin/env bash
# Full rings (see rings.c): nothing waits for ever, what was recorded is there once, and ends find their begins.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block STAVE_BUFFER=16k
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
# One line with the number, nothing when nothing was lost.
said_losses() {
  if [ "$lost" = 0 ]; then [ ! -s err ]; else
    [ "$(wc -l <err)" = 1 ] && grep -q "^stave: .*: $lost events\\? w[a-z]* lost, $lost of them because rings were full" err
  fi
}
for scene in deep odd by_hand switched threads texts; do
  rm -f t.* out
  export STAVE_FULL=block; [ $scene != odd ] || STAVE_FULL=drop # who waits for room finds it after all
  STAVE_OUT=t.pftrace timeout 300 "$BUILD/tests/stress/rings" $scene >out 2>err || { echo "not ok rings: $scene: exit $?"; continue; }
  "$STAVE" cat -q t.pftrace >text 2>cat.log
  lost=$(sed -n 's/^lost //p' out) why=
  while read -r name n; do
    [ "$name" != lost ] || continue
    have=$(grep -cE "(begin|slice|instant) .*\"$name\"" text)
    [ $((have + lost)) = "$n" ] || why="$why $name: $have in the file and $lost lost of $n;"
  done <out
  [ $scene != texts ] || [ -z "$(sed -n 's/.*"texts".* i=\([0-9]*\).*/\1/p' text | awk 'NR > 1 && $1 <= last { print } { last = $1 }')" ] || why="$why they are not in order;"
  begins=$(grep -c ' begin ' text) ends=$(grep -c ' end ' text)
  case $scene in
  deep | odd) [ "$lost" -gt 0 ] || why="$why the ring has space for all;" ;;
  texts) ;; # one that grows while its thread waits for space gets none after all
  *) [ "$lost" = 0 ] || why="$why $lost lost;" ;;
  esac
  said_losses || why="$why it said '$(cat err)';"
  [ "$begins" = "$ends" ] || why="$why $begins begins and $ends ends;"
  if [ -z "$why" ]; then echo "ok rings: $scene"; else echo "not ok rings: $scene:$why"; fi
done
