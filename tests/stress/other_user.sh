#!/usr/bin/env bash
# Another user on the same machine plants sessions, markers, growing files, links, pipes: root's recovery and programs neither read them nor touch what they
# point to. Needs root, to be two users.
set -uo pipefail
[ "$(id -u)" = 0 ] || { echo "needs root to be two users"; exit 77; }
command -v setpriv >/dev/null || { echo "no setpriv here"; exit 77; }
# A /dev/shm of our own: the sessions of others on this machine are not part of this.
if [ -z "${OTHER_USER_APART:-}" ]; then
  unshare -m true 2>/dev/null || { echo "no mount namespaces here"; exit 77; }
  OTHER_USER_APART=1 exec unshare -m --propagation private "$0"
fi
mount -t tmpfs -o mode=1777 none /dev/shm || { echo "cannot mount a file system"; exit 77; }
mount -t tmpfs -o mode=1777 none "$TMP" || { echo "cannot mount a file system"; exit 77; }
. "$SRC/tests/harness/cli.sh"
mkdir -m 700 mine; mkdir -m 1777 shared
export TMPDIR=$TMP/shared
unset XDG_RUNTIME_DIR STAVE_SESSION_DIR
hostile=$BUILD/tests/stress/hostile
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }
# The last component above $TMP may be closed to others: in here everything is open.
nobody sh -c "cd $TMP/shared" 2>/dev/null || { mkdir -p /dev/shm/open; mount --bind "$TMP" /dev/shm/open; chmod 1777 /dev/shm/open; cd /dev/shm/open || exit 2; TMPDIR=$PWD/shared; }
here=$PWD
nobody sh -c "cd $here/shared" 2>/dev/null || { echo "another user cannot enter any folder here"; exit 77; }
say() { if [ "$1" = 0 ]; then echo "ok other user: $2"; else echo "not ok other user: $2: $(cat out err 2>/dev/null | head -n 6)"; fi; }
recover() { timeout 120 "$STAVE" recover "$@" >out 2>err; }
# victims: files of root that must survive everything
victims() { echo precious >mine/part; echo precious >mine/out.pftrace; echo precious >mine/out.pftrace.session; chmod 600 mine/*; rm -f mine/new*; }
unharmed() { [ "$(cat mine/part mine/out.pftrace mine/out.pftrace.session | sort -u)" = precious ] && [ "$(ls mine | wc -l)" = 3 ]; }
# point SESSION: its names of files become root's
point() {
  local at=$1/session out part
  out=$(grep -obUa 'OUT-GOES-HERE' "$at" | head -n 1 | cut -d: -f1) part=$(grep -obUa 'PART-GOES-HERE' "$at" | head -n 1 | cut -d: -f1)
  printf '%s\0' "$here/mine/out.pftrace" | dd of="$at" bs=1 seek="$out" conv=notrunc 2>/dev/null
  printf '%s\0' "$here/mine/part" | dd of="$at" bs=1 seek="$part" conv=notrunc 2>/dev/null
}
plant() { "$hostile" session "$1" lanes 10 && point "$1" && chown -R 65534:65534 "$1"; }
marker() { printf 'stave-claim 1\nkind program\npid 1\nstart 1\npid-namespace 0\nboot unknown\nmachine unknown\nsession %s\ncommand x\n' "$1"; }

# ---- sessions ----
victims
nobody mkdir -m 700 shared/stave-0 && plant shared/stave-0/x
recover; [ $? = 0 ] && grep -q 'another user could have written there' err && ! grep -q 'stave-0/x' out; say $? "a folder of sessions that nobody made for root is not looked at"
recover --clean --yes --discard shared/stave-0/x; [ $? = 3 ] && unharmed && [ -e shared/stave-0/x/session ]; say $? "nor cleaned"
recover shared/stave-0/x; [ $? = 3 ] && grep -q 'another user could have written it' err && unharmed; say $? "a session by name"
recover shared/stave-0/x -o mine/new.pftrace; [ $? = 3 ] && unharmed; say $? "even with an output"
rm -rf shared/stave-0; mkdir -m 777 shared/stave-0; chmod 777 shared/stave-0; plant shared/stave-0/x
recover; [ $? = 0 ] && ! grep -q 'stave-0/x' out && recover --clean --yes && unharmed; say $? "a folder of root's that others can write to"
rm -rf shared/stave-0; nobody ln -s "$here/mine" shared/stave-0; recover; [ $? = 0 ] && unharmed; say $? "a link instead of the folder"
rm -f shared/stave-0
for mode in 755 770 777; do
  rm -rf session; "$hostile" session session lanes 10; chmod $mode session
  recover session -o mine/new.pftrace; [ $? = 3 ] && unharmed; say $? "a session of root's with mode $mode"
done
rm -rf session; "$hostile" session session lanes 10; chown 65534 session/session; recover session -o mine/new.pftrace; [ $? = 3 ] && unharmed; say $? "a session file of another user in root's folder"
rm -rf session; "$hostile" session session lanes 10; chmod 666 session/session; recover session -o mine/new.pftrace; [ $? = 3 ] && unharmed; say $? "one that others can write to"
rm -rf session; "$hostile" session session lanes 10; ln session/session second; recover session -o mine/new.pftrace; [ $? = 3 ] && unharmed; say $? "one with a second name"; rm -f second
rm -rf session; "$hostile" session session lanes 10; chown 65534 session/ring.0
recover session -o mine/new.pftrace; [ $? = 0 ] && grep -q 'ring is missing or damaged' err; say $? "a ring of another user is not read"; victims

# ---- markers ----
planted=$here/shared/planted; plant shared/planted
nobody sh -c "$(declare -f marker); marker $planted >shared/t.pftrace.session"
recover shared/t.pftrace; [ $? = 3 ] && grep -q 't.pftrace.session: another user could have written it' err && unharmed && [ ! -e shared/t.pftrace ]; say $? "a marker that another user made"
recover --clean --yes --discard shared/t.pftrace; [ $? = 3 ] && unharmed && [ -e shared/t.pftrace.session ] && [ -e "$planted/session" ]; say $? "is not removed either"
marker "$planted" >shared/u.pftrace.session; chmod 666 shared/u.pftrace.session
recover shared/u.pftrace; [ $? = 3 ] && unharmed; say $? "a marker that others can write to"
marker "$planted" >shared/v.pftrace.session; chmod 600 shared/v.pftrace.session
recover shared/v.pftrace; [ $? = 3 ] && unharmed && [ -e "$planted/session" ]; say $? "a marker of root's that leads to another user's session"
nobody ln -s "$here/mine/out.pftrace" shared/w.pftrace.session; recover shared/w.pftrace; [ $? = 3 ] && unharmed; say $? "a link instead of a marker"
nobody mkfifo shared/f.pftrace.session; recover shared/f.pftrace; [ $? = 3 ] && unharmed; say $? "a pipe instead of a marker"

# ---- growing files and results ----
nobody sh -c 'echo x >shared/a.pftrace.part'; recover shared/a.pftrace; [ $? = 3 ] && [ ! -e shared/a.pftrace ]; say $? "a growing file of another user"
nobody ln -s "$here/mine/part" shared/b.pftrace.part; recover shared/b.pftrace; [ $? = 3 ] && unharmed; say $? "a link to root's file as the growing file"
nobody mkfifo shared/c.pftrace.part; recover shared/c.pftrace; [ $? = 3 ]; say $? "a pipe as the growing file"
rm -rf session; "$hostile" session session lanes 10
nobody ln -s "$here/mine/out.pftrace" shared/r.pftrace; nobody ln -s "$here/mine/new.pftrace" shared/r.recovered.pftrace
recover session -o shared/r.pftrace; [ $? = 0 ] && unharmed && [ -f shared/r.recovered.2.pftrace ] && [ ! -L shared/r.recovered.2.pftrace ]; say $? "links in the place of the result are not followed"

# ---- outputs ----
printf '[{"ph":"X","name":"a","ts":1,"dur":5,"pid":1,"tid":1}]' >a.json
stave() { timeout 120 "$STAVE" "$@" >out 2>err; }
nobody ln -s "$here/mine/out.pftrace" shared/o.pftrace; nobody ln -s o.pftrace shared/o2.pftrace; nobody ln -s "$here/mine/new" shared/o3.pftrace; nobody mkfifo shared/o4.pftrace
for name in o o2 o3 o4; do
  stave convert a.json -o shared/$name.pftrace; [ $? = 4 ] && grep -q 'another user made this link or pipe' err && unharmed; say $? "an output that leads elsewhere ($name)"
done
ln -s "$here/mine/out.pftrace" shared/o5.pftrace; ln -s o2.pftrace shared/o6.pftrace
stave convert a.json -o shared/o6.pftrace; [ $? = 4 ] && unharmed; say $? "a link of root's that leads to another user's"
stave convert a.json -o shared/o5.pftrace; [ $? = 0 ] && [ -L shared/o5.pftrace ] && "$STAVE" cat -q mine/out.pftrace | grep -q '"a"'; say $? "a link of root's own is followed"; victims
nobody mkdir -m 777 shared/tables; nobody ln -s "$here/mine/part" shared/tables/slice.csv
stave export a.json --to csv-dir -o shared/tables --force; { [ $? = 4 ] || grep -q SQLite err; } && unharmed; say $? "a link in a folder of tables"
light="--no-io --no-block --no-page-cache --interval 0 --no-summary"
# shellcheck disable=SC2086 # words
for to in part new; do
  nobody ln -sf "$here/mine/$to" shared/n.pftrace.log; nobody ln -sf "$here/mine/$to" shared/n.stdout.log; nobody ln -sf "$here/mine/$to" shared/n.tar.zst
  stave record $light --detach -o shared/n.pftrace -- true; [ $? = 4 ] && grep -q 'n.pftrace.log exists and is not a regular file' err && unharmed; say $? "a link in the place of the log of --detach ($to)"
  stave record $light --copy-output -o shared/n.pftrace -- true; [ $? = 4 ] && grep -q 'n.stdout.log exists' err && unharmed; say $? "a link in the place of a copied output ($to)"
  stave record $light --archive -o shared/n.pftrace -- true; [ $? = 4 ] && unharmed; say $? "a link in the place of an archive ($to)"
done
nobody mkdir -m 755 shared/theirs
# shellcheck disable=SC2086 # words
stave record $light -o shared/theirs/t.pftrace -- sh -c 'setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "cd $0 && rm -f t.pftrace.part t.pftrace.session && ln -s $1 t.pftrace.part"' "$here/shared/theirs" "$here/mine/part"
[ $? = 4 ] && grep -q 'has been replaced by another file' err && unharmed; say $? "a growing file that its folder's owner replaced is no trace"

# ---- the list of recordings ----
rm -rf /dev/shm/stave-*
nobody mkdir -m 700 /dev/shm/stave-recordings-0
stave status; [ $? = 0 ] && grep -q "no recording is running" err; say $? "a list of recordings that nobody made for root is not looked at"
# a recording of root's that waits until it is told to go on
began() { for _ in $(seq 1200); do "$STAVE" status 2>/dev/null | grep -q "$1" && return; sleep 0.05; done; return 1; }
mkfifo go; mkdir -p elsewhere
# shellcheck disable=SC2086 # words
timeout 120 "$STAVE" record $light -o l.pftrace -- cat go >said 2>&1 & recorder=$!
began l.pftrace && nobody test -d /dev/shm/stave-recordings-0 && [ "$(stat -c '%u %a' /dev/shm/stave-recordings-0.*)" = "0 700" ]; say $? "a recording is listed although another user has taken the name of the list"
(cd elsewhere && setsid -w "$STAVE" stop) >out 2>err; [ $? = 2 ] && grep -q "cat → .*l.pftrace" err && grep -q "give the pid" err && began l.pftrace; say $? "stop without a pid leaves a recording from elsewhere alone"
stave stop; [ $? = 0 ] && grep -q l.pftrace out; say $? "and finds it from its folder"
wait $recorder; rm -f go
rm -rf /dev/shm/stave-*
nobody mkdir -m 777 /dev/shm/stave-0 shared/stave-0
STAVE_OUT=s.pftrace "$BUILD/tests/stress/lossy" 10 exit >out 2>err; [ $? = 0 ] && [ ! -s err ] && [ "$("$STAVE" cat -q s.pftrace | grep -c seq=)" = 10 ]; say $? "a program traces although another user has taken the names of its folders"
[ "$(stat -c '%u %a' /dev/shm/stave-0.*)" = "0 700" ] && [ -z "$(ls /dev/shm/stave-0)" ]; say $? "in a folder of its own"
STAVE_OUT=k.pftrace "$BUILD/tests/stress/lossy" 10 kill >out 2>err; recover; grep -q "stave-0[.][0-9a-f]*/" out && recover k.pftrace && [ "$("$STAVE" cat -q k.pftrace | grep -c seq=)" = 10 ]; say $? "and what it leaves when it is killed is found there"
[ "$(ls -d /dev/shm/stave-0.* | wc -l)" = 1 ]; say $? "there is one such folder, not one for each program"
nobody mkdir -m 700 /dev/shm/stave-0.decoy; nobody ln -s "$here/mine" /dev/shm/stave-0.link; recover; [ $? = 0 ] && unharmed; say $? "names of the same kind that another user makes are not looked at"
stave doctor; grep -q "libstave's rings" out && ! grep -q "^no  libstave's rings" out; say $? "doctor finds a place for rings"
rm -rf /dev/shm/stave-0* shared/stave-0

# ---- folders ----
rm -rf shared/way; nobody ln -s "$here/mine" shared/way
recover shared/way/out.pftrace; [ $? = 3 ] && grep -q 'another user made a link on the way there' err && unharmed; say $? "a folder that another user's link leads to"
recover --clean --yes --discard shared/way/out.pftrace; [ $? = 3 ] && unharmed; say $? "nothing is removed there"

# ---- programs and collectors ----
mkdir -m 700 shared/host; chown 65534 shared/host
STAVE_SESSION=$here/shared/host "$BUILD/tests/stress/lossy" 10 exit >out 2>err; [ $? = 0 ] && grep -q "other users have access to the session; tracing is off" err && [ -z "$(ls shared/host)" ]; say $? "a program of root's does not trace into another user's session"
"$BUILD/tests/stress/collector" col t.pftrace 20 >said 2>err & collector=$!
for _ in $(seq 600); do grep -qs ready said && break; sleep 0.05; done
"$hostile" session col/2-a lanes 10; chown -R 65534 col/2-a; STAVE_SESSION=$PWD/col "$BUILD/tests/stress/lossy" 10 exit >out 2>>err; wait $collector
[ $? = 0 ] && grep -q '^1 processes' said && grep -q 'finding: a client is not read' said && [ "$("$STAVE" cat -q t.pftrace | grep -c seq=)" = 10 ]; say $? "a collector refuses a client of another user"

# ---- who may read what is recorded ----
# private FILE…: all are there, and root's only
private() { local f; for f in "$@"; do [ "$(stat -c %a "$f")" = 600 ] || { stat -c '%a %n' "$f" >>err; return 1; }; done; }
umask 022; mkdir modes; cd modes || exit 2
lossy=$BUILD/tests/stress/lossy
STAVE_OUT=p.pftrace "$lossy" 10 exit >out 2>err; private p.pftrace; say $? "a trace of a program"
STAVE_OUT=p.json "$lossy" 10 exit >out 2>err; private p.json; say $? "as JSON"
STAVE_OUT=k.pftrace "$lossy" 100 kill >out 2>err; private k.pftrace.part k.pftrace.session; say $? "what a killed program leaves"
recover k.pftrace; [ $? = 0 ] && private k.pftrace; say $? "and what is recovered of it"
STAVE_OUT=e.pftrace STAVE_MODE=0644 "$lossy" 10 exit >out 2>err; [ "$(stat -c %a e.pftrace)" = 644 ]; say $? "STAVE_MODE opens it"
STAVE_OUT=e2.pftrace STAVE_MODE=0666 "$lossy" 10 exit >out 2>err; private e2.pftrace; say $? "but not for writing"
if "$BUILD/tests/stress/serving_calls" server golden >out 2>err; then private server/batching_trace*; say $? "files of a traced server"; fi
# shellcheck disable=SC2086 # words
stave record $light --copy-output --archive -o r.pftrace -- sh -c 'umask; touch made'; private r.pftrace r.stdout.log r.stderr.log r.tar.zst; say $? "a recording, its logs and its archive"
[ "$(stat -c %a made)" = 644 ] && grep -qx 0022 r.stdout.log; say $? "the recorded command has its own umask"
# shellcheck disable=SC2086 # words
stave record $light --mode 0640 -o r2.pftrace -- true; [ $? = 0 ] && [ "$(stat -c %a r2.pftrace)" = 640 ]; say $? "--mode opens it"
# shellcheck disable=SC2086 # words
stave record $light --mode 0666 -o r3.pftrace -- true; [ $? = 2 ] && [ ! -e r3.pftrace ] && grep -q 'never writing' err; say $? "but not for writing"
# shellcheck disable=SC2086 # words
stave record $light -o r.json -- true; private r.json; say $? "a recording as JSON"
# shellcheck disable=SC2086 # words
stave record $light --out-dir runs -- true; [ $? = 0 ] && private runs/*/*.pftrace; say $? "a folder of a run"
mkfifo go
# shellcheck disable=SC2086 # words
"$STAVE" record $light -o grow.pftrace -- cat go >out 2>err & recorder=$!
until_true '[ -s grow.pftrace.part ]'; private grow.pftrace.part grow.pftrace.session; say $? "a recording while it grows"
echo >go; wait $recorder
"$STAVE" listen "unix:$PWD/l" -o l.pftrace 2>err & listener=$!
until_true '[ -S l ]'; until_true '[ -e l.pftrace.part ]'; private l.pftrace.part l.pftrace.session l; say $? "what a listener has received"
STAVE_OUT="unix:$PWD/l" "$lossy" 10 exit >out 2>>err; kill $listener; wait $listener; private l.pftrace; say $? "and its trace"
STAVE_OUT="unix:$PWD/gone" STAVE_STREAM_FILE=unsent.pftrace "$lossy" 10 exit >out 2>err; [ ! -e unsent.pftrace ] || private unsent.pftrace; say $? "what no listener took"
stave convert r.pftrace -o c.json; [ "$(stat -c %a c.json)" = 644 ]; say $? "what is made from a trace follows the umask"
chmod 600 c.json; stave convert r.pftrace -o c.json; private c.json; say $? "but a private file that is replaced stays private"
SUDO_UID=65534 SUDO_GID=65534 stave record $light --copy-output -o s.pftrace -- true; [ "$(stat -c '%u %a' s.pftrace s.stdout.log | sort -u)" = "65534 600" ]; say $? "with sudo the trace is the caller's"
setpriv --reuid 65534 --regid 65534 --clear-groups sleep 300 & sleeper=$!
until_true '[ "$(stat -c %u /proc/$sleeper)" = 65534 ]'
# shellcheck disable=SC2086 # words
"$STAVE" record $light -o q.pftrace -p $sleeper >out 2>err & recorder=$!
until_true '"$STAVE" status | grep -q q.pftrace'; "$STAVE" stop $recorder >out 2>>err; wait $recorder; kill $sleeper
[ "$(stat -c '%u %a' q.pftrace)" = "65534 600" ]; say $? "a recording of another user's process is his"
cd "$here" || exit 2

# ---- and what is one's own works ----
cp "$STAVE" "$hostile" shared/; mkdir -m 777 shared/work
nobody sh -c "cd shared/work && ../hostile session own lanes 10 && ../stave recover own -o own.pftrace" >out 2>err; [ $? = 0 ] && [ "$(stat -c %u shared/work/own.pftrace)" = 65534 ] && [ ! -e shared/work/own ]; say $? "another user recovers what is his"
