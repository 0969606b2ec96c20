#!/usr/bin/env bash
# What a user of the library writes, and what is then in the file (features.c).
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
scene() { STAVE_OUT=$1.pftrace "$BUILD/tests/stress/features" "$1" >out 2>err; code=$?; [ $code = 0 ] && [ ! -s err ] && "$STAVE" cat -q "$1.pftrace" >text; }
say() { if [ "$1" = 0 ]; then echo "ok features: $2"; else echo "not ok features: $2: ${3:-} exit $code $(cat err)"; fi; }
has() { local t; for t; do grep -qF -- "$t" text || { echo "lacks $t"; return 1; }; done; }
lacks() { local t; for t; do ! grep -qF -- "$t" text || { echo "has $t"; return 1; }; done; }

scene async; say $? "async runs"
[ "$(grep -c ' async .*name="request"' text)" = 3 ] && [ "$(grep -c 'begin .*"serve"' text)" = 3 ] && [ "$(grep 'begin .*"serve"' text | awk '{ print $3 }' | sort -u | wc -l)" = 3 ]
say $? "overlapping operations have a row each" "$(grep request text)"
why=$(has '"half way"' 'status=202'); say $? "their instants and ends" "$why"
"$STAVE" validate -q async.pftrace >out 2>&1; say $? "and they nest" "$(cat out)"
why=$(has "meta \"hostname\" \"$(uname -n)\"" "meta \"machine\" \"$(uname -m)\"" "meta \"boot_id\" \"$(cat /proc/sys/kernel/random/boot_id)\""); say $? "which machine, since when" "$why"
scene crossing; [ "$(grep -c 'name="dma"' text)" = 2 ]; say $? "slices that cross get a sibling row" "$(grep dma text)"

scene order; say $? "order runs"
why=$(has 'name="last"' 'order=30' 'order=-5' 'order=7' 'name="level 11"' 'name="deep" unit="bytes"'); say $? "sort order, depth, counters in groups" "$why"

scene source; say $? "source runs"
why=$(lacks features.c); say $? "no source location unless asked for" "$why"
rm -f source.pftrace; STAVE_SOURCE=1 scene source
why=$(has 'tests/stress/features.c' 'scene_source'); say $? "file, function and line" "$why"
lines=$(grep -o 'line[^ ]*=[0-9]*' text | grep -o '[0-9]*$' | tr '\n' ' ')
want=$(grep -nE 'STAVE_SCOPE\("c", "outer"|STAVE_INSTANT\("c", "inner"' "$SRC/tests/stress/features.c" | cut -d: -f1 | tr '\n' ' ')
[ "$lines" = "$want" ]; say $? "the right lines" "$lines, not $want"

STAVE_CATEGORIES='net.*,-net.noise' scene categories; say $? "categories: what is off is not evaluated"
[ "$(grep -c ' instant ' text)" = 4 ] && why=$(has '"on"' '"on later"' '"on again"') && why=$(lacks '"off"'); say $? "categories by glob, switched at run time" "$why"

scene arguments; say $? "arguments run"
why=$(has 'int=-7 uint=18446744073709551615' 'double=0.5 bool=true text="quote \" and\n" pointer=0x1234 enum="eval" char=65 float=0.25' '"dynamic 2" cat="a" {i=2}' \
  '"... (44 more items)"' '255 "' '"... (7 more items)"' 'deeper={k="v"}' '"by hand" cat="a" {x=5}' '{result=6}' '"with_args" cat="fn" {a=2 b="two" c=2.5}' 'name="sum"' ' {7}'); say $? "every kind of argument" "$why"
[ "$(grep -c ' begin ' text)" = "$(grep -c ' end ' text)" ]; say $? "early returns end their slices"

scene flows; say $? "flows run"
[ "$(grep -E '"(scatter|gather)"' text | grep -o '0x[0-9a-f]*' | sort | uniq -c | awk '$1 == 2' | wc -l)" = 3 ]; say $? "fan-out and fan-in across threads" "$(grep -E 'scatter|gather' text)"

# Streams with a token.
# listen OPTION…: on a port that nobody else has, in $port
listen() {
  local i
  for port in 17913 $((RANDOM % 10000 + 18000)) $((RANDOM % 10000 + 18000)); do
    rm -f err.l out.l; "$STAVE" listen "tcp:127.0.0.1:$port" "$@" >out.l 2>err.l & listener=$!
    for ((i = 0; i < 1200; i++)); do grep -qs listening err.l out.l && return; kill -0 $listener 2>/dev/null || break; sleep 0.05; done
    grep -q 'in use' err.l || return
  done
}
listen -o token.pftrace --token secret --senders 1
STAVE_OUT=tcp:127.0.0.1:$port STAVE_TOKEN=wrong "$BUILD/tests/stress/features" flows >out 2>err
STAVE_OUT=tcp:127.0.0.1:$port "$BUILD/tests/stress/features" flows >out 2>>err
STAVE_OUT=tcp:127.0.0.1:$port STAVE_TOKEN=secret "$BUILD/tests/stress/features" async >out 2>err; code=$?
wait $listener
"$STAVE" cat -q token.pftrace >text && why=$(has '"serve"') && why=$(lacks '"scatter"'); say $? "a listener takes those that know the token" "$why $(cat err.l)"
[ "$(grep -c 'refused: wrong token' err.l)" = 2 ]; say $? "and says whom it refused" "$(cat err.l)"
[ -z "$(ls "$STAVE_SESSION_DIR")" ]; say $? "no session is left" "$(ls "$STAVE_SESSION_DIR")"

scene names; say $? "names run"
why=$(has 'name="the service"' 'name="a thread with a name of more than 31 bytes"' "name=\"$(printf 'n%.0s' {1..997})...\""); say $? "names of processes, threads and tracks" "$why"
"$BUILD/tests/stress/features" refused >out 2>err; code=$?
[ $code = 0 ] && [ "$(wc -l <err)" = 2 ] && [ "$(sed 's/^stave: //' err)" = "$(cat out)" ] && grep -q 'No such file' out && grep -q 'at most 1G' out
say $? "why a start failed" "$(cat out)"
