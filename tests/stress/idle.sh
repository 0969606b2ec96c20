#!/usr/bin/env bash
# A program that writes its own trace and is idle (idle.c): the writer's thread gives up its CPU at most five times a second, and bursts after
# idleness are in the file or counted as lost; what the ring holds is in the file.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
burst() { echo $(("$1" * 2 + 1)); }
run() { # NAME BURST FULL RING
  STAVE_OUT=$1.pftrace STAVE_FULL=$3 STAVE_BUFFER=$4 timeout 120 "$BUILD/tests/stress/idle" "$2" "$1.switches" 2>"$1.err"
  echo $? >"$1.code"
}
run fits 60000 drop 1M & run waits 500000 block 1M & run small 500000 drop 64k &
wait
for scene in fits:60000:none waits:500000:none small:500000:some; do
  IFS=: read -r name n losses <<<"$scene"
  "$STAVE" cat -q "$name.pftrace" >text 2>cat.log
  have=$(grep -cE 'instant .*"(start|event)"' text)
  lost=$(sed -n 's/.*: \([0-9]*\) events* w[a-z]* lost.*/\1/p' "$name.err"); lost=${lost:-0}
  why=
  [ "$(cat "$name.code")" = 0 ] || why="$why exit $(cat "$name.code");"
  [ $((have + lost)) = "$(burst "$n")" ] || why="$why $have in the file and $lost lost of $(burst "$n");"
  [ $losses = some ] || [ "$lost" = 0 ] || why="$why $lost lost;"
  [ $losses = none ] || [ "$lost" -gt 0 ] || why="$why the ring has space for all;"
  [ "$(awk '$1 >= 0 && $1 <= 5' "$name.switches" | wc -l)" = 2 ] || why="$why switches in a second: $(tr '\n' ' ' <"$name.switches");"
  if [ -z "$why" ]; then echo "ok idle: $name"; else echo "not ok idle: $name:$why"; fi
done
