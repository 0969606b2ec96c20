#!/usr/bin/env bash
# The law of a trace for the SDK: random events of several threads (law.c) are in the file as they were emitted, whatever writes it: libstave
# (Perfetto, packed, JSON), recovery after a kill, 'stave record' with one file and with parts. Each file is read by law.py, which knows JSON only, after
# 'stave convert'; some by way of 'merge' and 'cut'. STAVE_SEED=N runs that seed alone, STAVE_LONG=1 runs more.
set -uo pipefail
export LC_ALL=C.UTF-8 STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR"; mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$TMP" || exit 2
if ! command -v python3 >/dev/null; then echo "no python3 here"; exit 77; fi
law=$BUILD/tests/stress/law
first=${STAVE_SEED:-1} n=4; [ -z "${STAVE_LONG:-}" ] || n=300; [ -z "${STAVE_SEED:-}" ] || n=1
last=$((first + n - 1))
echo "# seeds $first to $last; STAVE_SEED=N runs one"

# judge FILE…: by way of JSON
judge() {
  local list=() file
  for file in "$@"; do "$STAVE" convert -q "$file" -o "judged.$file.json" 2>>err || return 1; list+=("judged.$file.json"); done
  python3 "$SRC/tests/stress/law.py" truth "${list[@]}"
}

# Each writes t.pftrace, t.json … and judges it; what they say is in the file out.
plain() { STAVE_OUT=t.pftrace "$law" "$1" 900 truth && judge t.pftrace; }
packed() { STAVE_COMPRESS=gzip STAVE_OUT=t.pftrace "$law" "$1" 900 truth && judge t.pftrace; }
json() { STAVE_OUT=t.json "$law" "$1" 900 truth && judge t.json; }
small_rings() { STAVE_BUFFER=64k STAVE_OUT=t.pftrace "$law" "$1" 900 truth && judge t.pftrace; }
killed() { { STAVE_OUT=t.pftrace "$law" "$1" 900 truth kill; } 2>/dev/null; "$STAVE" recover -q t.pftrace && judge t.pftrace; }
killed_json() { { STAVE_OUT=t.json "$law" "$1" 900 truth kill; } 2>/dev/null; "$STAVE" recover -q t.json 2>torn && judge t.json; }
record() { "$STAVE" record -q --no-summary --only sdk -o t.pftrace "${@:2}" -- "$law" "$1" "$events" truth; }
recorded() { local events=900; record "$1" && judge t.pftrace; }
# Small rings: the recorder comes often, however late it is, and looks each time whether a part is full.
rotated() { local events=6000; STAVE_BUFFER=64k record "$1" --rotate 256K && [ "$(find . -name 't-*.pftrace' | wc -l)" -gt 1 ] && judge t-*.pftrace t.pftrace &&
  "$STAVE" merge -q t-*.pftrace t.pftrace -o joined.pftrace && judge joined.pftrace; } # and all of them are one trace
by_verbs() {
  STAVE_OUT=t.pftrace "$law" "$1" 900 truth && "$STAVE" convert -q t.pftrace -o t.txt && "$STAVE" cut -q t.txt -o cut.json &&
    echo '[]' >none.json && "$STAVE" merge -q cut.json none.json --assume -o merged.pftrace && judge merged.pftrace
}

for way in plain packed json small_rings killed killed_json recorded rotated by_verbs; do
  bad=
  for ((seed = first; seed <= last; seed++)); do
    rm -rf t.* t-* cut.json merged.pftrace truth judged.* err; : >err
    if ! $way $seed >out 2>>err || [ -s err ]; then bad="STAVE_SEED=$seed: $(head -c 2000 out) $(head -n 5 err)"; break; fi
  done
  if [ -z "$bad" ]; then echo "ok law: $way"; else echo "not ok law: $way: $bad"; fi
done
