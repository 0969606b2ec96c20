#!/usr/bin/env bash
# stave recover: lists, joins, refuses, cleans.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
unset XDG_RUNTIME_DIR
say() { if [ "$1" = 0 ]; then echo "ok recover: $2"; else echo "not ok recover: $2: $(cat out err 2>/dev/null | head -n 6)"; fi; }
recover() { "$STAVE" recover "$@" >out 2>err; }
# start FILE: a program that writes it until it is killed; there are events in it when this returns, not only what a file begins with
start() {
  STAVE_OUT=$1 "$BUILD/tests/stress/numbers" 1 0 "progress.${1//\//_}" >/dev/null 2>&1 & pid=$!
  for _ in $(seq 1200); do grep -qsx "pid $pid" "$1.session" && [ "$(stat -c %s "$1.part" 2>/dev/null || echo 0)" -gt 50000 ] && return; sleep 0.05; done
}
stop() { { kill -9 $pid; wait $pid; } 2>/dev/null; }
numbers() { "$STAVE" cat -q "$1" | awk -v want="$(od -A n -t u8 -N 8 "progress.${2//\//_}")" -f "$SRC/tests/stress/check_numbers.awk" >err; }

recover; [ $? = 0 ] && ! grep -q "$STAVE_SESSION_DIR" out; say $? "nothing to list"
start a.pftrace
recover; [ $? = 0 ] && grep -q "pid $pid (running)" out && grep -q 'numbers 1 0' out; say $? "a running program is listed as that"
recover a.pftrace; [ $? != 0 ] && grep -q "process $pid is still writing it" err && [ ! -e a.pftrace ]; say $? "and not touched"
recover --clean --yes --discard a.pftrace; grep -q "kept: process $pid is running" out && kill -0 $pid && [ -e a.pftrace.session ]; say $? "nor cleaned"
stop
recover; [ $? = 0 ] && grep -q "pid $pid (exited)" out && grep -q 'a.pftrace: .* written, .* in rings' out; say $? "a dead one is listed with what it left"
recover a.pftrace --keep -o kept.pftrace && numbers kept.pftrace a.pftrace && [ -e a.pftrace.part ] && [ ! -e a.pftrace ]; say $? "--keep leaves everything where it is"
recover a.pftrace -o other.json && numbers other.json a.pftrace && [ ! -e a.pftrace.part ] && [ ! -e a.pftrace.session ]; say $? "again, in another format"
recover a.pftrace; [ $? != 0 ] && grep -q 'nothing to recover' err; say $? "a second time there is nothing"
start one.pftrace; stop; start two.pftrace; stop
recover one.pftrace && numbers one.pftrace one.pftrace && [ ! -e two.pftrace ] && [ -e two.pftrace.session ] && [ -e two.pftrace.part ] && [ "$("$STAVE" cat -q one.pftrace | grep -c '^track .* process ')" = 1 ]; say $? "another trace that was left is not touched"
recover two.pftrace && numbers two.pftrace two.pftrace; say $? "and recovered by its own name"
start b.pftrace; stop
recover b.pftrace & first=$!; "$STAVE" recover -q b.pftrace >out2 2>err2; wait $first
numbers b.pftrace b.pftrace && { [ ! -s err2 ] || grep -qE "another process is recovering it|no session directory|nothing to recover|session file is damaged" err2; }; say $? "two recoveries at once leave a whole file"
# What is in the file must be there for good: nothing is missing from a file whose first bytes are still in the rings.
start c.pftrace; for _ in $(seq 600); do [ "$(stat -c %s c.pftrace.part 2>/dev/null || echo 0)" -gt 1000000 ] && break; sleep 0.1; done; stop
part=$(stat -c %s c.pftrace.part); truncate -s $((part / 2)) c.pftrace.part
recover c.pftrace; [ $? = 0 ] && grep -q 'the partial file was truncated' err && "$STAVE" cat -q c.pftrace | grep -c seq= >/dev/null; say $? "a growing file that was cut is reported"
session_of() { sed -n 's/^session //p' "$1.session"; }
start d.pftrace; stop; dir=$(session_of d.pftrace); rm -f "$dir"/ring.0
recover d.pftrace; [ $? = 0 ] && grep -q 'ring is missing or damaged' err; say $? "a missing ring is reported"
start e.pftrace; stop; dir=$(session_of e.pftrace); head -c 8192 /dev/urandom | dd of="$dir/ring.0" bs=1 seek=8192 conv=notrunc 2>/dev/null
timeout 60 "$STAVE" recover e.pftrace >out 2>err; [ $? -le 1 ]; say $? "a ring full of noise is survived"
start f.pftrace; stop; dir=$(session_of f.pftrace); head -c 100 /dev/urandom >"$dir/session"
recover f.pftrace; [ $? = 0 ] && grep -q "events that were only in rings are missing: the session $dir is damaged" err && [ -e f.pftrace ] && [ -d "$dir" ]
say $? "a damaged session: what was written is recovered, the rings stay"
recover --clean --yes; grep -q "$dir  cannot be read: damaged" out && grep -q 'kept: not recovered' out && [ -d "$dir" ] &&
  recover --clean --yes --discard "$dir" && [ ! -e "$dir" ]; say $? "until they are given up by name"

# ---- cleaning ----
start g.pftrace; stop; dir=$(session_of g.pftrace)
recover --clean --yes; [ $? = 0 ] && grep -q 'kept: not recovered' out && [ -e g.pftrace.part ] && [ -d "$dir" ]; say $? "--clean leaves what was not recovered"
recover --clean --discard g.pftrace; [ $? = 0 ] && grep -q 'would be removed' out && grep -q 'nothing was removed' err && [ -d "$dir" ]; say $? "and removes nothing without --yes"
recover --clean --yes --discard nobody.pftrace; [ $? = 3 ] && grep -q "no files or sessions of 'nobody.pftrace' found" err && [ -d "$dir" ]; say $? "--discard of what is not there"
recover g.pftrace --keep -o kept_g.pftrace && recover && grep -q 'recovered and kept' out && recover --clean --yes && grep -q ' removed: it holds nothing that is not in the trace' out && [ ! -e "$dir" ] && [ ! -e g.pftrace.part ] && [ ! -e g.pftrace.session ]
say $? "what was recovered and kept is cleaned"
start h.pftrace; stop; dir=$(session_of h.pftrace)
recover --clean --yes --discard h.pftrace && grep -q 'removed: as requested' out && [ ! -e "$dir" ] && [ ! -e h.pftrace.part ] && [ ! -e h.pftrace.session ]; say $? "--discard removes what it names"
recover --yes; [ $? = 2 ] && grep -q -- '--yes needs --clean' err; say $? "--yes alone"
recover --clean x.pftrace; [ $? = 2 ]; say $? "--clean with a file"
recover --keep; [ $? = 2 ]; say $? "--keep without a file"
recover nothing.pftrace; [ $? = 3 ] && grep -q 'nothing to recover' err; say $? "a file that nobody wrote"
recover nowhere/nothing.pftrace; [ $? = 3 ] && grep -q 'nothing to recover' err; say $? "a folder that is not there"

# ---- all that belongs to a name; nothing is overwritten ----
start i.pftrace; stop; cp progress.i.pftrace progress.i
STAVE_OUT=i.pftrace "$BUILD/tests/stress/numbers" 1 100 progress.x >out 2>err; cp i.pftrace whole
recover i.pftrace; [ $? = 0 ] && cmp -s i.pftrace whole && numbers i.recovered.pftrace i; say $? "the trace of a newer run is not overwritten"
recover i.pftrace; [ $? = 3 ] && ! ls i.recovered.?.pftrace >/dev/null 2>&1; say $? "and recovered once"
start i.pftrace; stop; cp progress.i.pftrace progress.second; start i.pftrace; stop; cp progress.i.pftrace progress.third; mv i.pftrace i.before
[ -e i.pftrace.part.1 ] && recover i.pftrace && grep -q 'i.pftrace exists and is kept; the trace was written to .*/i.recovered.2.pftrace' err &&
  numbers i.pftrace third && numbers i.recovered.2.pftrace second && [ ! -e i.pftrace.part.1 ] && [ ! -e i.pftrace.session.1 ]
say $? "two that were killed, newest first"
start j.pftrace; stop; dir=$(session_of j.pftrace); rm j.pftrace.session
recover j.pftrace; [ $? = 0 ] && numbers j.pftrace j.pftrace && [ ! -e "$dir" ]; say $? "without its marker, by the session"
start k.pftrace; stop; rm -rf "$(session_of k.pftrace)" k.pftrace.session; mv k.pftrace.part k.pftrace.part.7
recover; grep -q k.pftrace.part.7 out && recover k.pftrace && [ "$("$STAVE" cat -q k.pftrace | grep -c seq=)" -gt 0 ] && [ ! -e k.pftrace.part.7 ]; say $? "without a session, by the growing file"
mkdir there; ln -s there linked; start "there/m.pftrace"; stop
recover linked/m.pftrace && numbers there/m.pftrace there/m.pftrace; say $? "through a link to its folder"

# ---- losses are counted once ----
# exact FILE: events and losses in the file are what was emitted, and the losses what the program counted
exact() {
  "$STAVE" cat -q "$1" | awk -v emitted="$(sed -n 's/^emitted //p' lossy)" -v lost="$(sed -n 's/^lost //p' lossy)" '
    / instant .*seq=/ { n++ } / loss / && match($0, /{[0-9]+}/) { l += substr($0, RSTART + 1, RLENGTH - 2) }
    END { print n + 0, "in the file and", l + 0, "lost of", emitted, "and", lost; exit !(n + l == emitted && l == lost) }' >err
}
STAVE_FULL=drop STAVE_BUFFER=16k STAVE_OUT=n.pftrace "$BUILD/tests/stress/lossy" 300000 kill >lossy 2>/dev/null
recover n.pftrace && exact n.pftrace && [ "$(sed -n 's/^lost //p' lossy)" -gt 0 ]; say $? "events and losses of a killed program"

# ---- a collector that is killed ----
waits_for() { for _ in $(seq 600); do [ -e "$1" ] && return; sleep 0.05; done; }
"$BUILD/tests/stress/collector" c o.pftrace >col 2>&1 & collector=$!
for _ in $(seq 600); do grep -qs ready col && break; sleep 0.05; done
STAVE_FULL=drop STAVE_BUFFER=64k STAVE_SESSION=$PWD/c "$BUILD/tests/stress/lossy" 200000 exit half go >lossy 2>said & pid=$!
waits_for half; { kill -9 $collector; wait $collector; } 2>/dev/null; touch go; wait $pid
recover c && exact o.pftrace && [ ! -e c ] && [ "$(wc -l <said)" = 1 ]; say $? "what a client records afterwards is in the file or counted there"

# ---- a recorder that is killed ----
mkdir -m 700 run; rm -f half go
XDG_RUNTIME_DIR=$PWD/run "$STAVE" record -q --no-summary --no-io --no-block --no-page-cache --interval 0 -o p.pftrace -- \
  env STAVE_FULL=drop STAVE_BUFFER=64k "$BUILD/tests/stress/lossy" 200000 exit half go >lossy 2>said & recorder=$!
waits_for half; program=$(pgrep -P $recorder -x lossy); { kill -9 $recorder; wait $recorder; } 2>/dev/null
recover; grep -q "pid $recorder (exited, but another process of it is running) and 1 other" out && grep -q p.pftrace: out; say $? "a killed recorder is listed"
recover p.pftrace; [ $? = 4 ] && grep -q "process $program, which traces into it, is still running" err; say $? "its program is waited for"
touch go; for _ in $(seq 600); do kill -0 "$program" 2>/dev/null || break; sleep 0.05; done
recover p.pftrace && exact p.pftrace && [ ! -e p.pftrace.part ] && ! ls "$STAVE_SESSION_DIR"/record-* >/dev/null 2>&1; say $? "and its file is whole"

# ---- containers: processes that cannot be seen from here ----
if unshare -pf --mount-proc true 2>/dev/null; then
  STAVE_FULL=drop STAVE_OUT=q.pftrace unshare -pf --mount-proc sh -c '"$0" 1000 kill; true' "$BUILD/tests/stress/lossy" >lossy 2>/dev/null
  recover; grep -q 'in another container or on another machine' out; say $? "a process of another container is listed as that"
  recover q.pftrace; [ $? = 4 ] && grep -q 'of another container or machine may still write to it; use --force' err && [ ! -e q.pftrace ]; say $? "and not taken for dead"
  recover --clean --yes --discard q.pftrace; grep -q 'may be running elsewhere' out && [ -e q.pftrace.part ]; say $? "nor removed"
  recover --force q.pftrace && exact q.pftrace && [ ! -e q.pftrace.part ]; say $? "--force recovers it"
  rm -f col; "$BUILD/tests/stress/collector" c2 r.pftrace >col 2>&1 & collector=$!
  for _ in $(seq 600); do grep -qs ready col && break; sleep 0.05; done
  STAVE_SESSION=$PWD/c2 unshare -pf --mount-proc "$BUILD/tests/stress/lossy" 1000 exit >lossy 2>err; wait $collector
  [ $? = 0 ] && [ ! -s err ] && exact r.pftrace && [ ! -e c2 ]; say $? "a client in a container, its collector outside"
else echo "skip recover: containers: no pid namespaces here"; fi
