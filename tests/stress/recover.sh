#!/usr/bin/env bash
# stave recover: lists, joins, refuses, cleans.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
unset XDG_RUNTIME_DIR
say() { if [ "$1" = 0 ]; then echo "ok recover: $2"; else echo "not ok recover: $2: $(cat out err 2>/dev/null | head -n 6)"; fi; }
recover() { "$STAVE" recover "$@" >out 2>err; }
# start FILE: a program that writes it until it is killed
start() {
  STAVE_OUT=$1 "$BUILD/tests/stress/numbers" 1 0 "progress.$1" >/dev/null 2>&1 & pid=$!
  for _ in $(seq 600); do [ -s "$1.part" ] && return; sleep 0.05; done
}
stop() { { kill -9 $pid; wait $pid; } 2>/dev/null; }
numbers() { "$STAVE" cat -q "$1" | awk -v want="$(od -A n -t u8 -N 8 "progress.$2")" -f "$SRC/tests/stress/check_numbers.awk" >err; }

recover; [ $? = 0 ] && ! grep -q "$STAVE_SESSION_DIR" out; say $? "nothing to list"
start a.pftrace
recover; [ $? = 0 ] && grep -q "pid $pid (running)" out && grep -q 'numbers 1 0' out; say $? "a running program is listed as that"
recover a.pftrace; [ $? != 0 ] && grep -q "process $pid is still writing it" err && [ ! -e a.pftrace ]; say $? "and not touched"
recover --clean; kill -0 $pid && [ -e a.pftrace.session ]; say $? "nor cleaned"
stop
recover; [ $? = 0 ] && grep -q "pid $pid (dead)" out && grep -q 'a.pftrace: .* written, .* in rings' out; say $? "a dead one is listed with what it left"
recover a.pftrace --keep -o kept.pftrace && numbers kept.pftrace a.pftrace && [ -e a.pftrace.part ] && [ ! -e a.pftrace ]; say $? "--keep leaves everything where it is"
recover a.pftrace -o other.json && numbers other.json a.pftrace && [ ! -e a.pftrace.part ] && [ ! -e a.pftrace.session ]; say $? "again, in another format"
recover a.pftrace; [ $? != 0 ] && grep -q 'nothing to recover' err; say $? "a second time there is nothing"
start b.pftrace; stop
recover b.pftrace & first=$!; "$STAVE" recover -q b.pftrace >out2 2>err2; wait $first
numbers b.pftrace b.pftrace && { [ ! -s err2 ] || grep -qE "being recovered right now|no session directory|nothing to recover|session file is damaged" err2; }; say $? "two recoveries at once leave a whole file"
# What is in the file must be there for good: nothing is missing from a file whose first bytes are still in the rings.
start c.pftrace; for _ in $(seq 600); do [ "$(stat -c %s c.pftrace.part)" -gt 1000000 ] && break; sleep 0.1; done; stop
part=$(stat -c %s c.pftrace.part); truncate -s $((part / 2)) c.pftrace.part
recover c.pftrace; [ $? = 0 ] && grep -q 'the growing file was cut' err && "$STAVE" cat -q c.pftrace | grep -c seq= >/dev/null; say $? "a growing file that was cut is told"
start d.pftrace; stop; dir=$(sed -n 's/^session //p' d.pftrace.session); rm -f "$dir"/ring.0
recover d.pftrace; [ $? = 0 ] && grep -q 'ring is missing or damaged' err; say $? "a ring that is missing is told"
start e.pftrace; stop; dir=$(sed -n 's/^session //p' e.pftrace.session); head -c 8192 /dev/urandom | dd of="$dir/ring.0" bs=1 seek=8192 conv=notrunc 2>/dev/null
timeout 60 "$STAVE" recover e.pftrace >out 2>err; [ $? -le 1 ]; say $? "a ring full of noise is survived"
start f.pftrace; stop; dir=$(sed -n 's/^session //p' f.pftrace.session); head -c 100 /dev/urandom >"$dir/session"
recover f.pftrace; [ $? != 0 ] && grep -q 'damaged' err; say $? "so is a damaged session file"
start g.pftrace; stop
recover --clean; [ $? = 0 ] && grep -q removed out && [ ! -e g.pftrace.part ] && [ ! -e g.pftrace.session ]; say $? "clean removes what is stale"
recover nothing.pftrace; [ $? != 0 ] && grep -q 'nothing to recover' err; say $? "a file that nobody wrote"
