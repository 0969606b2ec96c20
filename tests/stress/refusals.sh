#!/usr/bin/env bash
# What cannot be traced is said in one line, and the program runs as if nothing had been asked.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR" "$TMP/readonly" "$TMP/dir.pftrace"
cd "$TMP" || exit 2
program=$BUILD/tests/stress/numbers

# refuse WHAT WORD VARIABLE=VALUE…: exit 0, one line on stderr that holds WORD, no file
refuse() {
  local what=$1 word=$2; shift 2
  env "$@" "$program" 1 100 progress >out 2>err
  local code=$?
  if [ $code = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -qF -- "$word" err && ! ls ./*.pftrace.part ./*.json* x.* >/dev/null 2>&1; then
    echo "ok refusals: $what"; else echo "not ok refusals: $what: exit $code, $(cat err), $(ls)"; fi
}
refuse "unknown suffix" x.foo STAVE_OUT=x.foo
refuse "unknown %" 'x.%q.json' STAVE_OUT=x.%q.json
refuse "no such folder" /nowhere STAVE_OUT=/nowhere/x.pftrace
refuse "a directory" dir.pftrace STAVE_OUT=dir.pftrace
refuse "bad policy" STAVE_FULL=perhaps STAVE_OUT=x.pftrace STAVE_FULL=perhaps
refuse "bad size" STAVE_BUFFER=12 STAVE_OUT=x.pftrace STAVE_BUFFER=12
refuse "bad size, text" STAVE_BUFFER=big STAVE_OUT=x.pftrace STAVE_BUFFER=big
refuse "bad compression" STAVE_COMPRESS STAVE_OUT=x.pftrace STAVE_COMPRESS=rar
refuse "compression without its suffix" .json.gz STAVE_OUT=x.json STAVE_COMPRESS=gzip
refuse "bad trigger" STAVE_TRIGGER=slow STAVE_OUT=x.pftrace STAVE_TRIGGER=slow
refuse "bad address" tcp:nowhere STAVE_OUT=tcp:nowhere
refuse "no session directory" session STAVE_OUT=x.pftrace STAVE_SESSION_DIR=/proc/nothing
STAVE_OUT="" "$program" 1 100 progress >out 2>err
if [ ! -s err ]; then echo "ok refusals: an empty STAVE_OUT is none"; else echo "not ok refusals: empty: $(cat err)"; fi
# Patterns that are right.
STAVE_OUT=p.%p.%r.pftrace RANK=3 "$program" 1 100 progress >out 2>err
if ls p.[0-9]*.3.pftrace >/dev/null 2>&1 && [ ! -s err ]; then echo "ok refusals: %p and %r"; else echo "not ok refusals: %p %r: $(ls) $(cat err)"; fi
# An old file stays until the new one is whole; what a dead program left is moved aside, not overwritten.
echo old >keep.pftrace
rm -f progress; STAVE_OUT=keep.pftrace STAVE_FULL=block "$program" 1 0 progress & pid=$!
for _ in $(seq 600); do [ -e keep.pftrace.part ] && [ "$(od -A n -t u8 -N 8 progress 2>/dev/null | tr -d ' ')0" -gt 10000 ] && break; sleep 0.05; done
[ "$(cat keep.pftrace)" = old ] && kill -9 $pid; wait $pid 2>/dev/null
STAVE_OUT=keep.pftrace "$program" 1 100 progress >out 2>err
if [ "$("$STAVE" cat -q keep.pftrace | grep -c seq=)" = 100 ] && [ -e keep.pftrace.part.1 ]; then echo "ok refusals: nothing is overwritten by half"; else
  echo "not ok refusals: overwritten: $(ls) $(cat err)"; fi
"$STAVE" recover -q "$(find "$STAVE_SESSION_DIR" -name session -printf '%h\n' | head -n 1)" -o old.pftrace >out 2>&1 &&
  [ "$("$STAVE" cat -q old.pftrace | grep -c seq=)" -gt 100 ]
if [ $? = 0 ]; then echo "ok refusals: what was moved aside is recovered"; else echo "not ok refusals: moved aside: $(cat out)"; fi
