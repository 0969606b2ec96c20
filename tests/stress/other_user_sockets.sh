#!/usr/bin/env bash
# Another user on the same machine: every socket and listener that Stave makes or connects to, in both directions. Needs root, to be two users.
# shellcheck disable=SC2016,SC2034 # words for eval
set -uo pipefail
[ "$(id -u)" = 0 ] || { echo "needs root to be two users"; exit 77; }
command -v setpriv >/dev/null || { echo "no setpriv here"; exit 77; }
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }
if [ -z "${OTHER_USER_APART:-}" ]; then
  unshare -mn true 2>/dev/null || { echo "no namespaces here"; exit 77; }
  OTHER_USER_APART=1 exec unshare -mn --propagation private "$0"
fi
ip link set lo up 2>/dev/null || python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x49))' || { echo "no loopback in a namespace here"; exit 77; }
mount -t tmpfs -o mode=1777 none /dev/shm || { echo "cannot mount a file system"; exit 77; }
. "$SRC/tests/harness/cli.sh"
mkdir -m 1777 /dev/shm/t && cd /dev/shm/t || exit 2
export TMPDIR=$PWD
unset XDG_RUNTIME_DIR STAVE_SESSION_DIR STAVE_TOKEN STAVE_STREAM_USER
here=$PWD
mkdir bin; cp "$STAVE" "$BUILD"/libstave.so* "$BUILD/tests/stress/lossy" "$SRC/tests/stress/strangers.py" bin/
export LD_LIBRARY_PATH=$here/bin
mkdir -m 777 theirs mine
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }
user() { setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"; }
strangers() { timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups -- python3 "$here/bin/strangers.py" "$@"; }
nobody python3 -c pass 2>/dev/null || PATH=/usr/bin:/bin:$PATH # the first one is in a folder of root's
nobody python3 -c pass 2>/dev/null || { echo "no python3 that another user can run"; exit 77; }
check() { if eval "$2"; then echo "ok other user: $1"; else echo "not ok other user: $1: $(head -n 8 out err log listen.log 2>/dev/null)"; fi; }
# sends [VARIABLE…]: a program of root's, or of $as, with ten events
sends() { (cd mine && env STAVE_STREAM_FILE='' "$@" "$here/bin/lossy" 10 exit) >out 2>err; }
sends_as() { local who=$1; shift; (cd mine && user "$who" env STAVE_STREAM_FILE='' "$@" "$here/bin/lossy" 10 exit) >out 2>err; }
# listen OPTION…: a listener of root's; its pid in $listener
listen() { : >listen.log; rm -f mine/t.pftrace; "$here/bin/stave" listen "$@" -o mine/t.pftrace 2>listen.log & listener=$!; until_true 'grep -q "Ctrl-C stops" listen.log'; }
finish() { kill "$listener"; wait "$listener"; }
events() { "$STAVE" cat -q mine/t.pftrace | grep -c seq=; }

# ---- what a program sends to ----
strangers trap "$here/s" theirs/unix.log >theirs.out & trap_pid=$!
until_true '[ -s theirs.out ]'
sends STAVE_OUT="unix:$here/s" STAVE_TOKEN=secret
check "a program does not speak to another user's Unix socket" 'grep -q "belongs to another user (STAVE_STREAM_USER=65534" err && grep -q "emitted 10" out && [ ! -s theirs/unix.log ]'
sends_as 1234 STAVE_OUT="unix:$here/s" STAVE_TOKEN=secret
check "nor does one of a third user" 'grep -q "belongs to another user" err && [ ! -s theirs/unix.log ]'
sends STAVE_OUT="unix:$here/s" STAVE_TOKEN=secret STAVE_STREAM_FILE=kept.pftrace
check "the events go to a file instead" 'grep -q "belongs to another user .* events go to $here/mine/kept.pftrace" err && [ ! -s theirs/unix.log ] && [ "$("$STAVE" cat -q mine/kept.pftrace | grep -c seq=)" = 10 ]'
sends STAVE_OUT="unix:$here/s" STAVE_TOKEN=secret STAVE_STREAM_USER=7,65534 STAVE_STREAM_MS=300
check "unless it is told to" 'grep -q secret theirs/unix.log'
kill $trap_pid; wait $trap_pid 2>/dev/null
strangers trap 0 theirs/tcp.log >theirs.out & trap_pid=$!
until_true '[ -s theirs.out ]'
port=$(cat theirs.out)
sends STAVE_OUT="tcp:127.0.0.1:$port" STAVE_TOKEN=secret
check "nor to another user's port" 'grep -q "belongs to another user" err && [ ! -s theirs/tcp.log ]'
sends STAVE_OUT="tcp:127.0.0.1:$port" STAVE_TOKEN=secret STAVE_STREAM_USER=65534 STAVE_STREAM_MS=300
check "unless it is told to" 'grep -q secret theirs/tcp.log'
kill $trap_pid; wait $trap_pid 2>/dev/null

# ---- what a listener takes ----
port=$((20000 + RANDOM % 20000))
greeting=$(sed -n 's/^#define SV_GREETING *"\(.*\)".*/\1/p' "$SRC/lib/sdk/write/stream_wire.h")
listen "unix:$here/l"
check "the socket is its owner's only" '[ "$(stat -c %a l)" = 600 ]'
chmod 777 l
check "a connection of another user is refused, whatever the mode of the socket" 'strangers greet "$here/l" "$greeting" >out 2>err; grep -q "NO it is of user 65534; .stave listen --user 65534" out'
sends STAVE_OUT="unix:$here/l"; check "one's own is taken" '[ ! -s err ]'
finish; check "and nothing else is in the trace" '[ "$(events)" = 10 ]'
listen "tcp:127.0.0.1:$port"
check "another user's connection over loopback is refused" 'strangers greet $port "$greeting" >out 2>err; grep -q "NO it is of user 65534" out'
sends_as 65534 STAVE_OUT="tcp:127.0.0.1:$port"; check "so is his program, which goes on" 'grep -q "refused: it is of user 65534" err && grep -q "emitted 10" out'
strangers greet_and_close $port "$greeting" 50 >out 2>err
check "also if he closes at once" 'until_true "grep -q \"was refused\" listen.log"'
sends STAVE_OUT="tcp:127.0.0.1:$port"; check "one's own is taken" '[ ! -s err ]'
finish; check "and nothing else is in the trace" '[ "$(events)" = 10 ] && [ "$("$STAVE" query -q mine/t.pftrace "SELECT count(*) FROM loss" | tail -n 1)" = 0 ]'
listen "unix:$here/l" --user 1234,65534
sends_as 65534 STAVE_OUT="unix:$here/l"; check "--user lets one in; root's listener is trusted" '[ ! -s err ]'
sends_as 4321 STAVE_OUT="unix:$here/l"; check "and only that one" 'grep -q "it is of user 4321" err'
finish; check "his events are in the trace" '[ "$(events)" = 10 ]'
listen "tcp:127.0.0.1:$port" --token word
sends_as 65534 STAVE_OUT="tcp:127.0.0.1:$port" STAVE_TOKEN=word; check "the token lets one in" '[ ! -s err ]'
sends_as 65534 STAVE_OUT="tcp:127.0.0.1:$port" STAVE_TOKEN=wrong; check "a wrong one does not" 'grep -q "wrong token" err'
finish
bin/stave listen "tcp:127.0.0.1:$port" --user root -o mine/x.pftrace >out 2>err
check "--user wants numbers" '[ $? = 2 ] || grep -q "expected numbers" err'

# ---- OTLP ----
otlp_port() { sed -n 's/.*OTLP on port \([0-9]*\).*/\1/p' listen.log; }
grpc_port() { sed -n 's/.*gRPC on port \([0-9]*\).*/\1/p' listen.log; }
if listen --otlp 127.0.0.1:0 --otlp-grpc 127.0.0.1:0 && [ -n "$(grpc_port)" ]; then
  check "gRPC: another user is refused" '[ "$(strangers grpc "$(grpc_port)" 2>err)" = 7 ]'
  check "gRPC: one's own is taken" '[ "$(python3 bin/strangers.py grpc "$(grpc_port)" 2>err)" = 0 ]'
else
  echo "skip other user: gRPC: $(tail -n 1 listen.log)"
  kill "$listener" 2>/dev/null; wait "$listener"
  listen --otlp 127.0.0.1:0
fi
if [ -n "$(otlp_port)" ]; then
  check "OTLP: another user is refused" '[ "$(strangers otlp "$(otlp_port)" 2>err)" = 403 ]'
  check "OTLP: one's own is taken" '[ "$(python3 bin/strangers.py otlp "$(otlp_port)" 2>err)" = 200 ]'
  finish
  listen --otlp 127.0.0.1:0 --otlp-grpc off --user any
  check "OTLP: --user any takes all" '[ "$(strangers otlp "$(otlp_port)" 2>err)" = 200 ]'
  finish
  listen --otlp 127.0.0.1:0 --otlp-grpc off --token word
  check "OTLP: a token takes who has it" '[ "$(strangers otlp "$(otlp_port)" "" word 2>err)" = 200 ] && [ "$(strangers otlp "$(otlp_port)" "" other 2>err)" = 401 ]'
  finish
else
  echo "skip other user: OTLP: $(tail -n 1 listen.log)"
fi

# ---- the viewer ----
printf '[{"ph":"X","name":"a","ts":1,"dur":5,"pid":1,"tid":1}]' >mine/a.json
"$STAVE" view --no-browser mine/a.json >view.out 2>view.err & viewer=$!
if until_true 'grep -q "#token=" view.out view.err'; then
  url=$(grep -oh 'http://[^ ]*#token=[0-9a-f]*' view.out view.err | head -n 1)
  token=${url##*=} base=${url%%/#*}; base=${base%%#*}; base=${base%/}; view_port=${base##*:}
  ask() { curl -s -m 20 -o /dev/null -w '%{http_code}' -H "X-Stave-Token: $1" "http://127.0.0.1:$view_port/api/tables"; }
  mkfifo hold; strangers half_open "$view_port" 1000 <hold >half.out 2>half.err & flood=$!
  exec 9>hold; until_true 'grep -q open half.out'
  check "1,000 connections of another user that say nothing do not keep the owner out" '[ "$(for _ in 1 2 3 4 5; do ask $token; echo; done | sort -u)" = 200 ]'
  check "another user without the token gets nothing" '[ "$(nobody curl -s -m 20 -o /dev/null -w "%{http_code}" "http://127.0.0.1:$view_port/api/tables")" != 200 ]'
  exec 9>&-; wait $flood 2>/dev/null
  check "and with it he is served" '[ "$(nobody curl -s -m 20 -o /dev/null -w "%{http_code}" -H "X-Stave-Token: $token" "http://127.0.0.1:$view_port/api/tables")" = 200 ]'
else
  echo "skip other user: the viewer: $(tail -n 1 view.err)"
fi
kill $viewer 2>/dev/null; wait $viewer 2>/dev/null
"$STAVE" view --no-browser --socket "$here/v" mine/a.json >view.out 2>view.err & viewer=$!
until_true '[ -S v ]' && check "the viewer's socket is its owner's only" '[ "$(stat -c %a v)" = 600 ] && ! nobody curl -s -m 5 --unix-socket "$here/v" http://localhost/'
kill $viewer 2>/dev/null; wait $viewer 2>/dev/null
cd / || exit 2
