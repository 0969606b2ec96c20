#!/usr/bin/env bash
# SIGKILL at random moments: the recovered trace is whole and holds every event whose recording had returned, once. KILLS=N: so many times.
# One round of five kills at any moment from the program's start on, be it before the first file; the others when it has recorded something.
set -uo pipefail
rounds=50
case $BUILD in *asan | *tsan) [ -z "${STAVE_LONG:-}" ] || rounds=500 ;; *) [ -z "${STAVE_LONG:-}" ] || rounds=10000 ;; esac
rounds=${KILLS:-$rounds}
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
pace=0.0
case $BUILD in *asan | *tsan) pace=0. ;; esac # ten times slower until the first event
cd "$TMP" || exit 2
recovered=0 early=0 failed=0
# has_begun: each of its N threads has recorded something
has_begun() { for _ in $(seq 6000); do [ "$(od -A n -v -t u8 -w8 -N $((8 * $1)) progress | grep -cv ' 0$')" = "$1" ] && return; sleep 0.01; done; }
for ((i = 0; i < rounds; i++)); do
  suffix=.pftrace
  if ((i % 10 == 9)); then suffix=.json; fi
  out=t$suffix
  rm -f t.* progress
  STAVE_BUFFER=$((64 << (i % 4)))k STAVE_OUT=$out "$BUILD/tests/stress/numbers" $((1 + i % 3)) 0 progress &
  pid=$!
  if ((i % 5 != 2)); then has_begun $((1 + i % 3)); fi
  sleep "$pace$((RANDOM % 45 + 10))"
  kill -9 $pid; wait $pid 2>/dev/null
  if [ ! -e $out.session ]; then
    early=$((early + 1))
    ((i % 5 == 2)) || { echo "not ok kill: round $i: it has recorded something, and there is no marker"; failed=$((failed + 1)); }
    continue
  fi
  if ! "$STAVE" recover $out >recover.log 2>&1; then
    echo "not ok kill: round $i: recover failed: $(cat recover.log)"; failed=$((failed + 1)); continue
  fi
  if ((i % 5 == 2)) && [ ! -e $out ] && grep -q 'before it recorded anything' recover.log; then early=$((early + 1)); continue; fi
  want=$([ -e progress ] && od -A n -t u8 -N $((8 * (1 + i % 3))) progress | tr '\n' ' ')
  if ! "$STAVE" cat -q $out 2>cat.log | awk -v want="$want" -f "$SRC/tests/stress/check_numbers.awk" >check.log; then
    echo "not ok kill: round $i: $(head -n 3 check.log cat.log)"; failed=$((failed + 1))
    cp $out "${KEEP:-/dev/null}" 2>/dev/null
  fi
  recovered=$((recovered + 1))
done 2>/dev/null
left=$(find "$STAVE_SESSION_DIR" -name 'ring.*' | wc -l)
if [ $failed = 0 ] && [ $recovered -ge $((rounds - (rounds + 2) / 5)) ]; then
  echo "ok kill: $recovered rounds recovered, $early killed before the first file"
else
  echo "not ok kill: $failed of $rounds rounds failed, $recovered recovered, $early early"
fi
if [ "$left" = 0 ]; then echo "ok kill leaves nothing behind"; else echo "not ok kill: $left rings left behind"; fi
