#!/usr/bin/env bash
# Waits for locks by a preloaded library (--inject locks), without privileges: the lock, who released it, and where.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-locks.so play=$BUILD/tests/inject/locks_play
[ -e "$library" ] || skip_all "libstave-locks.so was not built"
case $BUILD in *asan | *tsan) skip_all "the sanitizers' runtime must be the first library" ;; esac
mkdir -m 777 -p user && cd user || exit 2
TMP=$PWD
export STAVE_SESSION_DIR=$PWD
as=()
python=/usr/bin/python3; [ -x $python ] || python=$(command -v python3) # one that others may run
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
record() { local name=$1; shift; run_any "$name" 0 "${as[@]}" "$STAVE" record -q --inject io,locks -o "$name.pftrace" -- "$@"; }

record waits "$play" waits
check "waits: the program is whole" grep -qx whole waits.out
"$STAVE" cat -q waits.pftrace | grep 'cat="offcpu_sample" {reason="lock"' >waits.text
for call in pthread_mutex_lock pthread_rwlock_rdlock pthread_cond_wait sem_wait; do
  check "$call: released by helper in let_go" grep -qE "waker=\"helper\" waker_stack=\[.*\"let_go.*@stack\[.*\"waits.*\"$call\"\]" waits.text
done
check "pthread_join: by the thread itself" grep -qE 'waker_tid=[0-9]+.*"pthread_join"\]' waits.text
for lock in mutex rwlock semaphore; do check "the lock $lock by its name" grep -q "lock_name=\"$lock\"" waits.text; done
check "the call is there, too" test "$("$STAVE" query -q --no-index --to csv waits.pftrace "SELECT count(*) >= 5 FROM slice WHERE name = 'futex' AND category = 'syscall'" | tail -n 1)" = 1

record storm "$play" storm
check "storm: nothing is lost to the program" grep -qx 320000 storm.out
check "storm: nothing on stderr" test ! -s storm.err

# Python: a lock, and the interpreter lock.
cat >held.py <<'END'
import threading, time
lock, held = threading.Lock(), threading.Event()
def keeper():
    with lock:
        held.set()
        time.sleep(0.2)
t = threading.Thread(target=keeper); t.start()
held.wait()
def asks():
    with lock:
        pass
asks()
t.join()
END
if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
  record held "$python" held.py
  "$STAVE" cat -q held.pftrace | grep 'cat="offcpu_sample"' >held.text
  check "Python: both functions of a lock" grep -qE 'waker_stack=\[.*"keeper \(held.py:[0-9]+\)".*@stack\[.*"asks \(held.py:[0-9]+\)"' held.text
else skip python "frames of this Python are not known"; fi

check "without a session" test "$(LD_PRELOAD=$library "$play" storm 2>&1)" = 320000
check "a session that is gone" test "$(LD_PRELOAD=$library STAVE_SESSION=$PWD/nothing "$play" storm 2>/dev/null)" = 320000
