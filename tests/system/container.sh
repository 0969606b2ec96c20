#!/usr/bin/env bash
# stave record for the user of a container: uid 1234, no capabilities, a filter of system calls like Docker's, 64 MB /dev/shm, a read-only root, Landlock. One command each
# ends with the right sentence; whatever is taken away, the command runs, and nobody is blamed wrongly.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/box.sh"
why=$(box_why_not)
[ -z "$why" ] || skip_all "$why"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no python3 here"
equals() { [ "$2" = "$3" ] || echo "  $1: '$2', expected '$3'"; check "$1" test "$2" = "$3"; }
ask() { "$STAVE" query -q --to csv "$1" "$2" | tail -n +2; }
by() { ask "$1" "SELECT str_value FROM metadata WHERE name = 'recorded.$2'"; }
mkdir box; chmod 777 box

boxed true 2>box.err || skip_all "cannot make the box: $(cat box.err)"

plant
cat >box/asleep.py <<'END'
import time
def throttle(): time.sleep(0.06)
def compute():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
for i in range(30): throttle(); compute()
END
cat >box/hot.py <<'END'
import time
def burn():
    end = time.monotonic() + 2
    while time.monotonic() < end: pass
burn()
END
cat >box/unpack.py <<'END'
import time
def unpack():
    end = time.monotonic() + 0.4
    while time.monotonic() < end: pass
unpack()
END
cat >box/child.py <<'END'
import subprocess, sys, time
def compute():
    end = time.monotonic() + 0.2
    while time.monotonic() < end: pass
for i in range(4): compute(); subprocess.run([sys.executable, "unpack.py"])
END

# ---- one command each ----
recorded() { boxed "$STAVE" record -o "$1.pftrace" -- "${@:2}" >"$1.said" 2>&1; }
looked() { boxed "$STAVE" record --no-inject -o "$1.pftrace" -- "${@:2}" >"$1.said" 2>&1; } # by looks alone
check asleep_runs looked asleep "$python" asleep.py
check asleep_said_what_is_recorded grep -q 'without system calls and block I/O: .*CAP_BPF.*; recorded instead: states, waits and Python stacks of threads by looking at /proc' asleep.said
check asleep_sentence grep -q 'sleeps [0-9]* % of the time, for a time that it chose itself in throttle() (asleep.py:2)' asleep.said
check asleep_command grep -q '^Look closer: stave explain asleep.pftrace' asleep.said
equals asleep_states "$(by box/asleep.pftrace states)" 'proc every_ns=50000000'
equals asleep_calls "$(by box/asleep.pftrace calls | grep -cE '^(no|preload)$')" 1
check asleep_sums test "$(ask box/asleep.pftrace "SELECT count(*) FROM slice WHERE category = 'schedstat' AND extract_arg(arg_set_id, 'run_ns') > 0")" -ge 1
equals asleep_inferred "$(ask box/asleep.pftrace "SELECT count(*) FROM slice WHERE category = 'thread_state' AND extract_arg(arg_set_id, 'inferred') IS NULL")" 0
run_any info 0 "$STAVE" info box/asleep.pftrace
check info_coverage grep -q '^recorded      states (every 50.000 ms), waits (every 50.000 ms)' info.out

FIRST=$(box_first) check gil_runs looked gil "$python" gil.py
check gil_sentence grep -qE "interpreter lock, which thread .* holds (in (count_words|hog)\(\) \(gil.py:[0-9]+\) )?while it" gil.said
check hot_runs looked hot "$python" hot.py
equals hot_function "$(ask box/hot.pftrace "SELECT name FROM slice WHERE category = 'cpu_sample' GROUP BY name ORDER BY count(*) DESC LIMIT 1")" burn
check child_runs looked child "$python" child.py
check child_is_followed test "$(ask box/child.pftrace "SELECT count(*) FROM slice WHERE category = 'thread_state' AND name = 'Runnable' AND extract_arg(arg_set_id, 'waker_tid') IN (SELECT pid FROM process)")" -ge 1
equals child_function "$(ask box/child.pftrace "SELECT name FROM slice WHERE category = 'cpu_sample' GROUP BY name ORDER BY count(*) DESC LIMIT 1")" unpack
if command -v cc >/dev/null; then
  cat >mutex.c <<'END'
#include <pthread.h>
#include <unistd.h>
pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static void *sweep(void *x) { for (int i = 0; i < 30; i++) { pthread_mutex_lock(&pool_lock); usleep(60000); pthread_mutex_unlock(&pool_lock); usleep(2000); } return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, sweep, 0);
    pthread_setname_np(t, "cleaner");
    for (int i = 0; i < 20; i++) { pthread_mutex_lock(&pool_lock); pthread_mutex_unlock(&pool_lock); usleep(3000); }
    pthread_join(t, 0);
}
END
  cc -O1 -g -D_GNU_SOURCE -pthread -o box/mutex mutex.c
  check lock_runs recorded lock ./mutex
  check lock_sentence grep -q 'for the lock pool_lock, which thread cleaner (tid [0-9]*) holds' lock.said
else
  skip lock 'no C compiler here'
fi
check default_runs recorded default "$python" asleep.py
check default_sentence grep -q 'sleeps [0-9]* % of the time, for a time that it chose itself in throttle() (asleep.py' default.said
check default_hot_runs recorded burns "$python" hot.py
equals default_hot_function "$(ask box/burns.pftrace "SELECT name FROM slice WHERE category = 'cpu_sample' GROUP BY name ORDER BY count(*) DESC LIMIT 1")" burn
# 6: where the looks see no change, its state may have no end in the file, and explain cannot say what the rest of the time was.
"$STAVE" explain box/burns.pftrace >default_hot_explained.out 2>&1; code=$?
check default_hot_explained sh -c "[ $code = 0 ] || [ $code = 6 ]"
check default_hot_is_named grep -q 'burn (hot.py:' default_hot_explained.out burns.said
FIRST=$(box_first) check default_gil_runs recorded hog "$python" gil.py
# Or silent, as above; nobody else is blamed.
check default_gil_sentence grep -qE "interpreter lock, which thread tokenizer \(tid [0-9]+\) holds in (count_words|hog)\(\) \(gil.py|for a lock; who holds it is not known" hog.said
run_any wait 0 "$STAVE" report wait box/hog.pftrace
check default_gil_wait grep -q tokenizer wait.out
for library in io locks; do
  "$STAVE" doctor 2>&1 | grep -q "^ok  --inject $library " || { skip "$library" "the library $library is not here"; continue; }
  check "${library}_is_used" test "$(ask box/default.pftrace "SELECT count(*) FROM metadata WHERE name = 'recorded.calls' AND str_value = 'preload'")" -ge "$([ $library = io ] && echo 1 || echo 0)"
done
if "$STAVE" doctor 2>&1 | grep -q '^ok  --inject io '; then
  cat >box/file.py <<'END'
import os
def save():
    with open("model.ckpt", "wb") as f:
        f.write(bytes(8 << 20)); f.flush(); os.fsync(f.fileno())
for i in range(10): save()
END
  check file_runs recorded file "$python" file.py
  check file_sentence grep -q 'model.ckpt' file.said
else
  skip slow_file 'the library io is not here'
  skip checkpoint 'the library io is not here'
fi

# Other versions of Python that are here: where they keep their state is known, too.
pythons=("$HOME"/.pyenv/versions/3.1[1-9].*)
for folder in "${pythons[@]}"; do
  [ -x "$folder/bin/python3" ] || continue
  version=$("$folder/bin/python3" -c 'import sys; print("%d_%d" % sys.version_info[:2])')
  case $version in 3_11 | 3_12 | 3_13 | 3_14) ;; *) continue ;; esac
  mkdir -p other
  # shellcheck disable=SC2016 # expanded inside
  $(box_first) unshare --mount --propagation private bash -c 'mount --bind "$1" other && cd box && shift && exec env LD_LIBRARY_PATH="$PWD/../other/lib" PYTHONHOME="$PWD/../other" \
    setpriv --reuid=1234 --regid=1234 --clear-groups "$0" record --no-inject -o "other.pftrace" -- ../other/bin/python3 gil.py' "$STAVE" "$folder" >"other$version.said" 2>&1
  check "gil_of_python_$version" grep -qE "for Python's interpreter lock, which thread .* holds in (count_words|hog)\(\) \(gil.py" "other$version.said"
done

# ---- what is there is enough: the command runs ----
codes() { boxed "$STAVE" record -q -o "$1.pftrace" -- sh -c "exit $2"; }
codes c7 7; equals exit_code $? 7
check no_success bash -c '! grep -i "success" *.said'
SHM=size=4k,mode=1777 check full_shm recorded shm "$python" asleep.py
SHM=size=64m,mode=0700 check foreign_shm recorded noshm "$python" asleep.py
# shellcheck disable=SC2016 # expanded inside
IN=/ check read_only_folder boxed bash -c '"$0" record -- true' "$STAVE"
mkdir -m 555 box/readonly
IN=box/readonly boxed env TMPDIR="$TMP/box" "$STAVE" record -- true >fallback.said 2>&1
check fallback_said grep -q 'this folder cannot be written to (.*): the trace goes to' fallback.said
check fallback_is_there bash -c 'ls box/true-*.pftrace'
IN=box/readonly boxed env TMPDIR="$TMP/box" "$STAVE" record -o named.pftrace -- echo ran_named >named.said 2>&1
check named_ran grep -q '^ran_named' named.said
check named_fallback_said grep -q "this folder cannot be written to (.*): the trace goes to $TMP/box" named.said
check named_fallback_is_there test -s box/named.pftrace
IN=box/readonly boxed "$STAVE" record --strict -o named.pftrace -- echo ran_strictly >named_strict.said 2>&1; equals named_strict_code $? 4
check named_strict_ran_nothing bash -c '! grep -q ran_strictly named_strict.said'
SHM=size=4k,mode=1777 IN=/dev/shm boxed env TMPDIR="$TMP/box" "$STAVE" record -- echo ran_full >full.said 2>&1
check full_disk_ran grep -q '^ran_full' full.said
check full_disk_said grep -q 'this folder cannot be written to (No space left on device): the trace goes to' full.said

NO_SYS=box/readonly boxed "$STAVE" record -o nosys.pftrace -- true >nosys.said 2>&1; equals no_sys_code $? 0
check no_sys_said grep -qE 'without system calls and block I/O: .*(mount /sys|CAP_BPF)' nosys.said
NO_PROC=box/readonly boxed "$STAVE" record -o noproc.pftrace -- sh -c 'echo ran_bare; exit 3' >noproc.said 2>&1; equals no_proc_code $? 3
check no_proc_ran grep -q '^ran_bare' noproc.said
check no_proc_said grep -q '/proc is not mounted: .*; recorded without it: events of libstave' noproc.said
mkdir -m 700 hidden
boxed env PATH="$TMP/hidden:$PATH" "$STAVE" record -o none.pftrace -- no_such_program >nosuch.said 2>&1; equals no_such_code $? 4
check no_such_said grep -q "cannot run 'no_such_program': no folder of PATH" nosuch.said

# ---- Landlock: writes below one folder only ----
landlocked() { (cd "${IN:-box}" && "$python" "$SRC/tests/system/confine.py" --seccomp --landlock "$TMP/box" 1234 env -u HOME -u XDG_RUNTIME_DIR -u STAVE_SESSION_DIR "$@"); }
landlocked true; has_landlock=$?
if [ $has_landlock != 77 ]; then
  landlocked "$STAVE" record -o landlock.pftrace -- "$python" unpack.py >landlock.said 2>&1; equals landlock_runs $? 0
  check landlock_session_is_beside grep -q "events wait in $TMP/box/landlock.pftrace.rings-[0-9]* instead" landlock.said
  check landlock_leaves_nothing bash -c '! ls -d box/*.rings-* 2>/dev/null'
  check landlock_calls test "$(ask box/landlock.pftrace "SELECT count(*) FROM slice WHERE category = 'syscall'")" -ge 1
  IN=/ landlocked "$STAVE" record -- echo ran_anyway >nowhere.said 2>&1; equals nowhere_runs $? 0
  check nowhere_ran grep -q '^ran_anyway' nowhere.said
  check nowhere_said grep -q 'no folder can be written to' nowhere.said
else
  skip landlock 'this kernel has no Landlock'
fi

boxed "$STAVE" record --strict -o strict.pftrace -- touch ran >strict.said 2>&1; equals strict_code $? 4
check strict_ran_nothing test ! -e box/ran
check strict_said grep -q 'CAP_BPF' strict.said
boxed "$STAVE" record --sample 99 -q -o sample.pftrace -- true; equals asked_code $? 0
boxed "$STAVE" record --sample 99 -o sample2.pftrace -- true >asked.said 2>&1
check asked_said grep -q -- '--sample is not possible here; instead:' asked.said
boxed "$STAVE" record --no-look --no-inject --interval 0 --gpu-interval 0 -o empty.pftrace -- true >empty.said 2>&1
check empty_said grep -q 'The trace has no events: .*stave doctor' empty.said
boxed "$STAVE" record -o none.pftrace --no-explain -- true >none.said 2>&1
check no_explain bash -c '! grep "Look closer" none.said'
boxed "$STAVE" record -q --explain -o some.pftrace -- "$python" asleep.py >some.said 2>&1
check explain_in_spite_of_q grep -q 'throttle()' some.said
# shellcheck disable=SC2016 # expanded inside
boxed bash -c '"$0" asleep.py & "$1" record -q -o join.pftrace -p $! --duration 1s; kill $!; wait' "$python" "$STAVE" 2>/dev/null
check joined test "$(ask box/join.pftrace "SELECT count(*) FROM slice WHERE category = 'offcpu_sample' AND name = 'sleep'")" -ge 1
sleep 60 & sleeper=$! # root's
boxed "$STAVE" top -p $sleeper --once --interval 200ms >refused.said 2>&1
check other_users_is_named grep -q "without stacks: it is another user's" refused.said
kill $sleeper
# shellcheck disable=SC2016 # expanded inside
boxed bash -c '"$0" -c "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); time.sleep(60)" & sleep 1; "$1" record -o undumpable.pftrace -p $! --duration 500ms; kill $!; wait' "$python" "$STAVE" >undumpable.said 2>&1
check not_dumpable_is_named grep -q 'no stacks of 1 process that cannot be read; .*PR_SET_DUMPABLE' undumpable.said
boxed "$STAVE" doctor >doctor.said 2>&1
check doctor_looks grep -q '^ok  looks at /proc' doctor.said
check doctor_rung grep -q '^ok  stave record  .* here: looks at /proc' doctor.said

# ---- capabilities dropped one after the other: kernel programs, or looks ----
if command -v setpriv >/dev/null; then
  dropped=
  for capability in sys_ptrace dac_override sys_admin perfmon bpf sys_resource; do
    dropped=$dropped,-$capability
    setpriv --bounding-set "${dropped#,}" --inh-caps "${dropped#,}" "$STAVE" record -q --no-inject -o "drop.$capability.pftrace" -- "$python" box/asleep.py 2>/dev/null
    equals "without_$capability" $? 0
    check "without_${capability}_states" test "$(ask "drop.$capability.pftrace" "SELECT count(*) FROM thread_state")" -ge 3
  done
  equals last_is_looks "$(by drop.bpf.pftrace states)" 'proc every_ns=50000000'
else
  skip capabilities 'no setpriv here'
fi
