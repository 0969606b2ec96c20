#!/usr/bin/env bash
# Clients that cut or fill their own files, and sessions that no program made (hostile.c): the reader goes on, finishes what others recorded, says what it
# closed, and stays small.
set -uo pipefail
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"; mkdir -m 700 "$TMP/run"; export XDG_RUNTIME_DIR=$TMP/run
cd "$TMP" || exit 2
hostile=$BUILD/tests/stress/hostile
say() { if [ "$1" = 0 ]; then echo "ok hostile: $2"; else echo "not ok hostile: $2: $(cat col out err 2>/dev/null | head -n 8)"; fi; }
count() { "$STAVE" cat -q "$1" | grep -c "$2"; }
waits_for() { for _ in $(seq 600); do [ -e "$1" ] && return; sleep 0.05; done; }

# ---- a collector ----
for file in ring.0 session names; do
  rm -rf s t.* go* col
  "$BUILD/tests/stress/collector" s t.pftrace >col 2>err & collector=$!
  for _ in $(seq 600); do grep -qs ready col && break; sleep 0.05; done
  # The good one first: a collector ends when the last of its clients has ended or was closed.
  STAVE_SESSION=$PWD/s "$BUILD/tests/stress/lossy" 4000 exit go.half go >lossy 2>>err & good=$!
  waits_for go.half
  STAVE_SESSION=$PWD/s "$hostile" cut $file go 2>>err & bad=$!
  waits_for go.cut; touch go; wait $bad; wait $good; wait $collector; code=$?
  closed=0; case $file in names) ;; *) grep -q 'finding: a client was closed' col || closed=1 ;; esac
  [ $code = 0 ] && [ $closed = 0 ] && [ "$(count t.pftrace 'seq=')" = 4000 ] && [ ! -s err ] && [ ! -e s ]
  say $? "a client that cuts its $file: the other one is whole"
done
rm -rf s t.* go* col
"$BUILD/tests/stress/collector" s t.pftrace >col 2>err & collector=$!
for _ in $(seq 600); do grep -qs ready col && break; sleep 0.05; done
STAVE_SESSION=$PWD/s "$BUILD/tests/stress/lossy" 4000 exit go.half go >lossy 2>>err & good=$!
waits_for go.half
STAVE_SESSION=$PWD/s "$hostile" noise go 2>>err & bad=$!
waits_for go.cut; touch go; wait $bad; wait $good; wait $collector; code=$?
[ $code = 0 ] && grep -q 'finding: damaged ring' col && [ "$(count t.pftrace 'seq=')" = 4000 ]; say $? "a client that fills its ring's head with noise"

# ---- a recorder ----
rm -f go*
"$STAVE" record --no-summary --no-io --no-block --no-page-cache --interval 0 -o r.pftrace -- \
  sh -c '"$0" cut ring.0 go & "$1" 4000 exit go.half go >lossy & wait' "$hostile" "$BUILD/tests/stress/lossy" 2>err & recorder=$!
waits_for go.cut; waits_for go.half; touch go; wait $recorder; code=$?
[ $code = 0 ] && [ "$(count r.pftrace 'seq=')" = 4000 ] && grep -q 'a client was closed' err && "$STAVE" validate -q r.pftrace >out 2>&1
say $? "a recorder ends in order, and says which client it closed"

# ---- a program and its children ----
for file in ring.0 session; do
  rm -f go p.pftrace; touch go
  STAVE_OUT=p.pftrace "$hostile" parent cut $file go >out 2>err
  [ $? = 0 ] && [ "$(count p.pftrace 'who="parent"')" = 2000 ] && [ ! -s err ]; say $? "a child that cuts its $file does not end its parent"
done

# ---- recovery ----
# 300 MB of address space: the program itself takes a part of it.
small() { (ulimit -v 300000; timeout 60 "$STAVE" recover "$@" >out 2>err); }
case $BUILD in *asan | *tsan) small() { timeout 60 "$STAVE" recover "$@" >out 2>err; } ;; esac
for shape in "far 250" "far 4000" "wide 4000" "deep 4000" "lanes 4000"; do
  # shellcheck disable=SC2086
  "$hostile" session x $shape && small x -o "x.pftrace" && [ ! -e x ]; say $? "a session with names that are $shape"
  rm -rf x x.*
done
"$hostile" session x lanes 200 && mkdir -m 700 y && for i in $(seq 200); do cp -r x "y/1-$i"; done && cp x/* y && rm -rf x && small y -o y.pftrace
[ $? = 0 ] && [ "$(count y.pftrace ' begin ')" = 40200 ]; say $? "two hundred clients, one after the other"
for bytes in 0 100 8191; do
  "$hostile" session z lanes 10; truncate -s $bytes z/session
  small z -o z.pftrace; [ $? = 3 ] && [ ! -e z.pftrace ]; say $? "a session file of $bytes bytes"; rm -rf z
done
"$hostile" session z lanes 10; printf x | dd of=z/session bs=1 conv=notrunc 2>dd.log
small z -o z.pftrace; [ $? = 3 ] && grep -q 'the session is damaged' err && [ ! -e z.pftrace ] && [ -e z/ring.0 ]; say $? "a session file that begins with something else"; rm -rf z
for mode in 750 701 707; do
  "$hostile" session z lanes 10; chmod $mode z
  small z -o z.pftrace; [ $? = 3 ] && grep -q 'another user could have written it' err && [ ! -e z.pftrace ] && [ -e z/ring.0 ]; say $? "a session folder of mode $mode"; rm -rf z
done
"$hostile" session z lanes 10; rm z/ring.0; mkfifo z/ring.0; small z -o z.pftrace; [ $? = 0 ] && grep -q 'ring is missing or damaged' err; say $? "a pipe instead of a ring"; rm -rf z z.*
"$hostile" session z lanes 10; rm z/names; ln -s /dev/zero z/names; small z -o z.pftrace; [ $? = 0 ] && grep -q 'names are missing' err; say $? "a link instead of names"; rm -rf z z.*

# ---- text of others ----
STAVE_OUT=e.pftrace bash -c 'exec -a "$(printf "evil\033]0;x\a\n")" "$0" 1000 kill' "$BUILD/tests/stress/lossy" >/dev/null 2>&1
"$STAVE" recover >out 2>err; ! LC_ALL=C grep -q $'[\001-\011\013-\037\177-\377]' out && grep -q evil out; say $? "the list shows no byte that a terminal obeys"
