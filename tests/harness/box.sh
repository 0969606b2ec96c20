# shellcheck shell=bash
# A container's user, for scripts that source cli.sh: uid 1234, no capabilities, a filter of system calls like Docker's, 64 MB /dev/shm, a read-only root, no HOME; and the
# programs with a planted cause each. Needs root, $python, and a folder that this user may enter.

box_why_not() { # why there can be no box here
  [ "$(id -u)" = 0 ] || echo "needs root to take privileges away"
  unshare --mount true 2>/dev/null || echo "no mount namespaces here"
  [ "$(uname -m)" = x86_64 ] || echo "the filter has numbers of x86-64"
}

# With tests beside it, who holds the interpreter lock mostly waits for a CPU, and that is what is said then.
box_first() { if chrt -r 1 true 2>/dev/null; then echo chrt -r 1; fi; }

# boxed COMMAND…: in the box, as that user. $SHM: options of its /dev/shm; $ROOT: rw for one that is not read-only; $FIRST: before all others on the CPUs (box_first). Only the folder box can be written to.
boxed() {
  # shellcheck disable=SC2016,SC2154 # expanded inside; python is the script's
  ${FIRST:-} unshare --mount --propagation private bash -c 'mount -t tmpfs -o "${SHM:-size=64m,mode=1777}" tmpfs /dev/shm; mount --bind box box
    [ -z "${NO_SYS:-}" ] || mount --bind "$NO_SYS" /sys
    [ -z "${NO_PROC:-}" ] || mount --bind "$NO_PROC" /proc
    [ "${ROOT:-ro}" = rw ] || mount -o remount,bind,ro /
    cd "${IN:-box}" && exec "$@"' boxed "$python" "$SRC/tests/system/confine.py" --seccomp 1234 env -u HOME -u XDG_RUNTIME_DIR "$@"
}

# One cause in each. They last a second and more, so that looks see it; a disk that is fast and a machine that is busy change no sentence.
plant() {
  cat >box/slow_file.py <<'END'
import mmap, os, time
def compute():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
buffer = mmap.mmap(-1, 4 << 20)
with open("slow.bin", "wb") as f: f.write(os.urandom(4 << 20)); os.fsync(f.fileno())
def load():
    fd = os.open("slow.bin", os.O_RDONLY)
    end = time.monotonic() + 0.08
    while time.monotonic() < end:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.preadv(fd, [buffer], 0)
    os.close(fd)
for i in range(14): load(); compute()
END
  cat >box/slow_function.py <<'END'
import time
def tokenize():
    end = time.monotonic() + 0.08
    while time.monotonic() < end: pass
def step():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
for i in range(14): tokenize(); step()
END
  cat >box/lock.py <<'END'
import threading, time
lock, done = threading.Lock(), False
def compute():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
def refresh_cache():
    while not done:
        with lock: time.sleep(0.06)
        time.sleep(0.002)
t = threading.Thread(target=refresh_cache, name="refresher"); t.start()
for i in range(14):
    with lock: pass
    compute()
done = True; t.join()
END
  cat >box/gil.py <<'END'
import threading, time
done = False
def count_words():
    x = 0
    for i in range(20000): x += i % 7
def hog():
    while not done: count_words()
t = threading.Thread(target=hog, name="tokenizer"); t.start()
end = time.monotonic() + 2.5
n = 0
while time.monotonic() < end: n += 1
done = True; t.join()
END
  cat >box/checkpoint.py <<'END'
import os, time
def compute():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
weights = os.urandom(4 << 20)
def save():
    end = time.monotonic() + 0.1
    with open("weights-last.ckpt", "wb") as f:
        while time.monotonic() < end: f.write(weights); f.flush(); os.fsync(f.fileno())
for i in range(20):
    compute()
    if i % 4 == 3: save()
END
}

# What the end of a recording must say of each.
sentence_of() {
  case $1 in
    slow_file) echo '^ +[0-9]\. .*(in calls on files|files, and .* reading).* mostly (of )?[^ ]*/slow\.bin' ;;
    slow_function) echo 'Computes in: tokenize \(slow_function\.py:[0-9]+\)' ;;
    lock) echo 'of the time for a lock, which thread refresher \(tid [0-9]+\) holds in refresh_cache\(\) \(lock\.py:[0-9]+\) while it sleeps' ;;
    gil) echo "of the time for Python's interpreter lock, which thread tokenizer \\(tid [0-9]+\\) holds in (count_words|hog)\\(\\) \\(gil\\.py" ;;
    checkpoint) echo 'of the time writing checkpoints, .*weights-last\.ckpt' ;;
  esac
}
planted="slow_file slow_function lock gil checkpoint"

# says NAME FILE: the sentence about it is there, and nobody else is blamed: no other file, function, lock or checkpoint is named.
says() {
  local other
  grep -qE -- "$(sentence_of "$1")" "$2" || { echo "  nothing about $1:"; sed 's/^/  | /' "$2"; return 1; }
  for other in $planted; do
    [ "$other" = "$1" ] || ! grep -qE -- "$(sentence_of "$other")" "$2" || { echo "  blamed for $1: $other"; sed 's/^/  | /' "$2"; return 1; }
  done
}
