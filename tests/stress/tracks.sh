#!/usr/bin/env bash
# Slices of several threads on shared tracks (tracks.c): every end closes its own begin, in whatever order the rings are read, when the program is
# killed, when events are lost, and when somebody else writes the file.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR"; mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$TMP" || exit 2
tracks=$BUILD/tests/stress/tracks
say() { if [ "$1" = 0 ]; then echo "ok tracks: $2"; else echo "not ok tracks: $2: ${3:-} $(head -n 5 out err 2>/dev/null)"; fi; }
ask() { "$STAVE" query -q "$1" "$2" --to csv | tail -n 1; }
# Slices whose begin says another number than their end; those that have not ended; all.
swapped() { ask "$1" "select count(*) from slice s join args a on a.arg_set_id = s.arg_set_id and a.key like '%.n' join args b on b.arg_set_id = s.arg_set_id and b.key like '%.n_end' where a.int_value != b.int_value"; }
unfinished() { ask "$1" "select count(*) from slice where dur < 0 and category = 'tracks'"; }
# ended FILE: the ones that have a number at both ends, and blocks, which have none
ended() { ask "$1" "select count(*) from slice s where dur >= 0 and category = 'tracks' and (name = 'block' or exists (select 1 from args b where b.arg_set_id = s.arg_set_id and b.key like '%.n_end'))"; }
rows() { ask "$1" "select count(distinct track_id) from slice where category = 'tracks'"; }
run() { rm -f t.*; STAVE_OUT=$1 timeout 300 "$tracks" "${@:2}" >out 2>err && [ ! -s err ]; }
whole() { [ "$(swapped "$1")" = 0 ] && [ "$(unfinished "$1")" = 0 ] && [ "$(ended "$1") slices" = "$(cat out)" ] && "$STAVE" validate -q "$1" >valid 2>&1 && ! grep -qE '^(error|warning)' valid; }

for scene in mixed handed turns; do
  run t.pftrace $scene && whole t.pftrace; say $? "$scene: each end is its own begin's" "$(cat valid)"
done
[ "$(rows t.pftrace)" = 1 ]; say $? "threads that take turns stay on the track itself" "$(rows t.pftrace) rows"
run t.json mixed 100 && [ "$(swapped t.json)" = 0 ] && [ "$(ended t.json) slices" = "$(cat out)" ]; say $? "the same in JSON"
STAVE_BUFFER=16k run t.pftrace mixed 100 && whole t.pftrace; say $? "with rings that are full all the time"
rm -f t.*; "$STAVE" record -q --no-summary --only sdk -o t.pftrace -- "$tracks" mixed 200 >out 2>err && whole t.pftrace
say $? "under stave record" "$(cat valid)"
rm -f t.*; STAVE_FULL=drop STAVE_BUFFER=16k STAVE_OUT=t.pftrace "$tracks" flood >out 2>err
[ "$(swapped t.pftrace)" = 0 ] && [ "$("$STAVE" cat -q t.pftrace | grep -c ' loss ')" -gt 0 ] && [ "$(ended t.pftrace)" -gt 100 ]; say $? "where events are lost" "$(swapped t.pftrace) are wrong"

kills=6; [ -z "${STAVE_LONG:-}" ] || kills=200
bad=
for ((i = 0; i < kills; i++)); do
  rm -f t.*
  STAVE_OUT=t.pftrace "$tracks" mixed 0 >out 2>err & pid=$!
  for _ in $(seq 6000); do [ "$(stat -c %s t.pftrace.part 2>/dev/null || echo 0)" -gt $((20000 * (i % 6 + 1))) ] && break; sleep 0.01; done
  { kill -9 $pid; wait $pid; } 2>/dev/null
  "$STAVE" recover -q t.pftrace >out 2>err || { bad="round $i: recover"; break; }
  "$STAVE" validate -q t.pftrace >valid 2>&1
  if [ "$(swapped t.pftrace)" != 0 ] || [ "$(ended t.pftrace)" = 0 ] || grep -qE 'end-without-begin|no-name' valid; then
    bad="round $i: $(swapped t.pftrace) are wrong $(cat valid)"; break; fi
done
[ -z "$bad" ]; say $? "killed and recovered, $kills times" "$bad"
