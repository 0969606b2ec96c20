#!/usr/bin/env bash
# A day in minutes: more than 500 parts under one name, with recorders that are killed, clocks that are set, sleep, and a disk that is full now and then.
# What the programs have emitted is in the parts, in what was recovered, or in their losses. Needs root, to mount a small file system; the kernel's side
# of stave record is left out, so that every event is one of the programs'.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
[ -n "${STAVE_LONG:-}" ] || skip_all "takes minutes: STAVE_LONG=1"
[ "$(id -u)" = 0 ] || skip_all "needs root: to mount a small file system"
case $BUILD in *tsan | *asan) skip_all "the sanitizer is between the program and the shim" ;; esac
mkdir day; mount -t tmpfs -o size=400m stave-test day 2>/dev/null || skip_all "cannot mount a tmpfs here"
trap 'kill $(jobs -p) 2>/dev/null; umount "$TMP/day"; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
"${CC:-cc}" -std=c17 -O1 -shared -fPIC -o clock.so "$SRC/tests/stress/fault/clock.c" -ldl || not_ok shim
ROUNDS=${ROUNDS:-30} TURNS=60 EACH=2600 # a part for two of them
all=$((TURNS * 2 * (EACH + 2 * ((EACH + 7) / 8))))
set_ns=0 slept_ns=0
move() { printf '%s %s\n' "$set_ns" "$slept_ns" >clocks.new; mv clocks.new clocks; }
move
record=(env CLOCK_IN=stave CLOCK_FILE="$TMP/clocks" LD_PRELOAD="$TMP/clock.so" setpriv --bounding-set=-all --inh-caps=-all "$STAVE" record --no-summary --no-explain --interval 0 --gpu-interval 0 --no-look --no-inject --rotate 256K -o day/d.pftrace --)
events() { "$STAVE" cat -q "$1" | awk '/stave\.part=/ { next } /begin .*"suspended"/ { n -= 2; m++ } /^-?[0-9.]+ (begin|end) / { n++ } /seq=/ { n++; i++ } / loss / { sub(/.*\{/, ""); sub(/\}.*/, ""); lost += $0 } /"clock set"/ { m++ } END { print n + 0, i + 0, lost + 0, m + 0 }'; }
parts() { find day -name '*.pftrace' | wc -l; }
sum() { # FILE…: all events, instants, lost, marks
  local f; for f in "$@"; do events "$f"; done | awk '{ a += $1; b += $2; c += $3; d += $4 } END { print a + 0, b + 0, c + 0, d + 0 }'
}
# new_files: the files that were not there before it. The newest of the round before has got a number: it is known by its inode.
new_files() { find day -name '*.pftrace' -printf '%i %p\n' | while read -r inode path; do grep -qx "$inode" known || echo "$path"; done; }
: >known
marks=0 killed=0 full=0 wrong=0
SECONDS=0
for round in $(seq "$ROUNDS"); do
  rm -f progress did go pid round.err
  before=$(parts)
  case $((round % 3)) in
  0) # killed, with its program, while it turns from one part to the next
    "${record[@]}" sh -c 'echo $$ >pid; exec "$0" 2 100000000 progress' "$BUILD/tests/stress/numbers" 2>round.err &
    recorder=$!
    until_true "[ \$(parts) -ge $((before + 3 + round % 7)) ]" || break
    kill -STOP "$(cat pid)"; kill -9 $recorder; wait $recorder 2>/dev/null; kill -9 "$(cat pid)"
    [ "$(find day -name '*.part' | wc -l)" -le 1 ] || { echo "round $round: $(ls day/*.part)"; wrong=$((wrong + 1)); }
    until_true '"$STAVE" recover -q day/d.pftrace' || { echo "round $round: not recovered"; wrong=$((wrong + 1)); }
    mapfile -t new < <(new_files)
    read -r _ seen lost more < <(sum "${new[@]}")
    done_=$(od -A n -t u8 -N 16 progress | awk '{ print $1 + $2 }')
    { [ $((seen + lost)) -ge "$done_" ] && [ $((seen + lost)) -le $((done_ + 2)) ]; } || { echo "round $round, killed: $seen in ${#new[@]} parts, $lost lost, $done_ emitted"; wrong=$((wrong + 1)); }
    killed=$((killed + 1)) ;;
  *) # to its end; every fifth time the disk fills, and a clock moves
    if [ $((round % 5)) = 0 ]; then
      head -c $(($(df --output=avail -B1 day | tail -n 1) - 900000)) /dev/zero >day/fill; full=$((full + 1))
    fi
    "${record[@]}" sh -c 'for i in $(seq '$TURNS'); do "$0" 2 '$EACH' progress; sleep 0.04; done >/dev/null; touch did; until [ -e go ]; do sleep 0.02; done' "$BUILD/tests/stress/numbers" 2>round.err &
    recorder=$!
    until_true '[ -e did ]' || break
    if [ $((round % 5)) != 0 ]; then
      if [ $((round % 2)) = 0 ]; then slept_ns=$((slept_ns + 600000000000)) word=suspended; else set_ns=$((set_ns + (round % 4 - 2) * 3600000000000)) word="clock was set"; fi
      move; marks=$((marks + 1))
      until_true "grep -q '$word' round.err" || break
    fi
    touch go; wait $recorder; rm -f day/fill
    mapfile -t new < <(new_files)
    read -r seen _ lost more < <(sum "${new[@]}")
    [ $((seen + lost)) = $all ] || { echo "round $round: $seen in ${#new[@]} parts, $lost lost, $all emitted"; cat round.err; wrong=$((wrong + 1)); } ;;
  esac
  counted=$((${counted:-0} + more)) n_parts=$((${n_parts:-0} + ${#new[@]}))
  for f in "${new[@]}"; do
    "$STAVE" cat -q --strict "$f" >day.txt || { echo "$f is damaged"; wrong=$((wrong + 1)); }
  done
  find day -name 'd-*.pftrace' | sort | head -n -12 | xargs -r rm # counted, and no longer needed
  find day -name '*.pftrace' -printf '%i\n' >known; echo "round $round: $SECONDS s, ${#new[@]} parts"
done
check all_rounds test "$round" = "$ROUNDS"
check nothing_lost_or_doubled test "$wrong" = 0
check many_parts test "${n_parts:-0}" -ge $((500 * ROUNDS / 30))
check kinds_of_rounds test "$killed" -ge $((ROUNDS / 3)) -a "$full" -ge $((ROUNDS / 10)) -a "$marks" -ge $((ROUNDS / 3))
check marks_in_the_parts test "${counted:-0}" -ge "$marks"
check nothing_left test "$(find day "$STAVE_SESSION_DIR" -mindepth 1 ! -name '*.pftrace' | wc -l)" = 0
