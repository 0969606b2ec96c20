#!/usr/bin/env bash
# Calls on files by a preloaded library (--inject io), without privileges: the same calls, bytes and paths as the program counts, and as
# the kernel probes see where they may; and programs that do what could break such a library.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-io.so play=$BUILD/tests/inject/io_play
[ -e "$library" ] || skip_all "libstave-io.so was not built"
case $BUILD in *asan | *tsan) skip_all "the sanitizers' runtime must be the first library" ;; esac
mkdir -m 777 -p user sessions && cd user || exit 2
TMP=$PWD
export STAVE_SESSION_DIR=$PWD
# As nobody, where we are root: nothing of this needs privileges.
as=()
python=/usr/bin/python3; [ -x $python ] || python=$(command -v python3) # one that others may run
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
csv() { "$STAVE" query -q --no-index --to csv "$1" "$2" | tail -n +2; }
record() { local name=$1; shift; run_any "$name" 0 "${as[@]}" "$STAVE" record -q --no-block --inject io -o "$name.pftrace" -- "$@"; }

# What the program counts itself; of stdio only bytes.
per_file() {
  csv "$1" "SELECT path, op, count(*), sum(bytes) FROM io WHERE path LIKE '$2/%' AND category = 'syscall' AND op NOT IN ('sendfile', 'mkdir', 'rmdir') AND path NOT LIKE '%/stdio' AND path NOT LIKE '$2/sub' AND path NOT LIKE '$2/%.%' GROUP BY path, op"
  csv "$1" "SELECT path, 'bytes read', 1, sum(bytes) FROM io WHERE path = '$2/stdio' AND op = 'read' UNION ALL SELECT path, 'bytes written', 1, sum(bytes) FROM io WHERE path = '$2/stdio' AND op = 'write'"
}
record calls "$play" calls
sort calls.out >calls.truth
per_file calls.pftrace "$PWD" | sort >calls.seen
check "calls, bytes and paths are the program's own" diff calls.truth calls.seen
check "offsets of reads" test "$(csv calls.pftrace "SELECT group_concat(\"offset\") FROM (SELECT \"offset\" FROM io WHERE path = '$PWD/plain' AND op = 'read' AND \"offset\" IS NOT NULL ORDER BY ts)")" = '"0,3000,6000,9000"'
check "a call that copies has both files" test "$(csv calls.pftrace "SELECT path, path2, bytes, \"offset\" FROM io WHERE op = 'sendfile'")" = "$PWD/plain,$PWD/copy,1000,100"
check "an error is one" test "$(csv calls.pftrace "SELECT errno FROM io WHERE path = '$PWD/sub/nothing'")" = 2
check "on the row of the kernel probes" test "$(csv calls.pftrace "SELECT DISTINCT k.name FROM io i JOIN track k ON k.id = i.track_id WHERE op = 'pread64'")" = "system calls"
check "the report has them" grep -q "$PWD/plain" <("$STAVE" report io -q --no-index calls.pftrace)
check "the trace says by what" grep -q 'recorded.calls.*preload' <("$STAVE" cat -q calls.pftrace)
check "nothing of libstave's own" test "$(csv calls.pftrace "SELECT count(*) FROM io WHERE path LIKE '%/ring.%' OR path LIKE '%/names'")" = 0

# The same program, seen by the kernel.
mkdir kernel && cd kernel || exit 2
if [ "$(id -u)" = 0 ] && "$STAVE" record -q --no-block -o k.pftrace -- "$play" calls >k.truth 2>k.err && ! grep -q 'without system calls' k.err; then
  sort k.truth >k.sorted
  per_file k.pftrace "$PWD" | sort >k.seen
  check "the kernel probes see the same" diff k.sorted k.seen
else skip kernel "the kernel probes need root"; fi
cd .. || exit 2

# As root the kernel's probes of calls are off: nothing is there twice.
if [ "$(id -u)" = 0 ]; then
  mkdir once && cd once || exit 2
  "$STAVE" record -q --no-block --inject io -o both.pftrace -- "$play" calls >both.truth 2>both.err
  per_file both.pftrace "$PWD" | sort >both.seen
  check "once: nothing is recorded twice" diff <(sort both.truth) both.seen
  cd .. || exit 2
fi

# Programs of others behave as without.
record hostile "$play" hostile
check "hostile: the program is whole" grep -qx whole hostile.out
check "hostile: nothing on stderr" test ! -s hostile.err
# The rest of the line is the paths that a vfork's child must not have changed.
check "hostile: the parent of vfork keeps its paths" test "$(csv hostile.pftrace "SELECT count(*) FROM io WHERE path = '$PWD/kept' AND op = 'pwrite64'")" = 1
check "hostile: the trace is sound" awk '/^error/ { bad = 1 } END { exit bad }' <("$STAVE" validate -q hostile.pftrace 2>&1)
other() { # NAME COMMAND…: the same output and exit code with and without
  local name=$1; shift
  "${as[@]}" "$@" >"$name.plain" 2>&1; local code=$?
  "${as[@]}" "$STAVE" record -q --no-block --inject io,locks -o "$name.pftrace" -- "$@" >"$name.traced" 2>&1; local traced=$?
  check "$name: exit code $code" test $code = $traced
  check "$name: the same output" diff "$name.plain" "$name.traced"
}
printf 'a\nb\n' >text
other bash bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do (echo $i; exit $i); done | sort -n; read -r x <text; echo $x; exit 7'
# shellcheck disable=SC2016 # Python's
other python "$python" -c 'import subprocess, os, threading, tempfile
print(subprocess.run(["cat", "text"], capture_output=True, text=True).stdout)
t = threading.Thread(target=lambda: print(open("text").read())); t.start(); t.join()
with tempfile.TemporaryFile() as f: f.write(b"x" * 100000); f.seek(0); print(len(f.read()))
pid = os.fork()
if pid == 0: os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))'
other tar tar -cf - text
if command -v git >/dev/null; then other git git hash-object text; else skip git "no git here"; fi
other dash sh -c 'exec 3>out; echo x >&3; exec 3>&-; cat out; cd /; pwd; kill -9 $$'
other limits sh -c 'ulimit -n 16; cat text; ulimit -v 400000; cat text'

# Who ended a wait: the other end of a pipe and of a connection, a child; and in which function.
cat >waits.py <<'END'
import os, socket, time
parent = os.getpid()
def throttle(): # the parent sleeps in its wait by then, however busy the machine is
    while open(f"/proc/{parent}/stat").read().rpartition(")")[2].split()[0] != "S": time.sleep(0.001)
    time.sleep(0.05)
source, sink = os.pipe()
server = socket.create_server(("127.0.0.1", 0))
writer = os.fork()
if writer == 0:
    throttle(); os.write(sink, b"x")
    c = socket.create_connection(server.getsockname()); throttle(); c.sendall(b"y"); throttle(); os._exit(0)
os.read(source, 1)
c = server.accept()[0]
c.recv(1)
os.waitpid(writer, 0)
print(writer)
END
record waits "$python" waits.py
woken() { csv waits.pftrace "SELECT extract_arg(s.arg_set_id, 'waker_tid') FROM slice s WHERE s.category = 'syscall' AND s.name = '$1' AND s.dur > 20000000 AND extract_arg(s.arg_set_id, 'waker_tid') IS NOT NULL"; }
for call in read recvfrom wait4; do check "$call: the other one ended it" test "$(woken $call)" = "$(cat waits.out)"; done
check "the peer has an address" test "$(csv waits.pftrace "SELECT count(*) FROM slice s WHERE name = 'recvfrom' AND extract_arg(s.arg_set_id, 'peer') LIKE '127.0.0.1:%' AND extract_arg(s.arg_set_id, 'peer_pid') = $(cat waits.out)")" = 1
# What the library records is in the summary, as it is by the kernel's probes; --inject may be repeated.
run_any sums 0 "${as[@]}" "$STAVE" record --inject io --inject locks --no-block -o sums.pftrace -- sh -c 'cat waits.out; cat waits.out'
check "the summary has files" grep -q 'waits.out$' sums.err
check "the summary has processes" grep -qE 'recorded: [1-9][0-9]* system calls, 3 processes' sums.err
run_any redacted 0 "${as[@]}" "$STAVE" record -q --redact paths --inject io --no-block -o redacted.pftrace -- cat waits.out
"$STAVE" cat -q redacted.pftrace >redacted.text
check "paths of the library are tokens" grep -qE '"openat".*path="(/[a-z2-7]{10})+"' redacted.text
check "--redact leaves no path and no command line" bash -c '! grep -q "waits.out" redacted.text'
check "both libraries are loaded" grep -q 'preload' <("$STAVE" query -q --to csv sums.pftrace "SELECT str_value FROM metadata WHERE name = 'recorded.waits'")
check "a sleep has its function" grep -qE '"sleep" cat="offcpu_sample".*"throttle \(waits.py:[0-9]+\)"' <("$STAVE" cat -q waits.pftrace)
check "a fork has its child" grep -q "\"fork\" cat=\"process\" {child=$(cat waits.out)}" <("$STAVE" cat -q waits.pftrace)

record stdio bash -c '(sleep 0.05; echo x; echo y) | sed -n p'
check "stdio: the other end of a pipe, too" test "$(csv stdio.pftrace "SELECT count(*) FROM slice s WHERE name = 'read' AND extract_arg(s.arg_set_id, 'path') LIKE 'pipe:%' AND extract_arg(s.arg_set_id, 'waker_tid') IS NOT NULL AND dur > 20000000")" -ge 1

# Bad input: what the environment says is not trusted.
for bad in /nonexistent "$PWD" "$PWD/text" /dev/null; do
  check "ends that are none: ${bad##*/}" test "$(LD_PRELOAD=$library STAVE_IO_ENDS=$bad STAVE_OUT=$PWD/bad.pftrace sh -c 'echo a | cat' 2>&1)" = a
  rm -f bad.pftrace*
done
check "a session that is gone" test "$(LD_PRELOAD=$library STAVE_SESSION=$PWD/nothing sh -c 'echo a | cat' 2>/dev/null)" = a
check "without a session" test "$(LD_PRELOAD=$library sh -c 'echo a | cat' 2>&1)" = a

# What is not seen is said.
if printf 'int main(void) { return 0; }' | cc -static -x c -o alone - 2>/dev/null; then
  "${as[@]}" "$STAVE" record --inject io -o alone.pftrace -- ./alone >alone.out 2>&1
  check "a static program is named" grep -q 'alone is linked statically' alone.out
else skip static "no static libc here"; fi

# io_uring: submissions through liburing, also where a module has loaded it for itself.
cat >ring.c <<'END'
#include <dlfcn.h>
int io_uring_submit(void *ring);
int main(void)
{
    int (*submit)(void *) = (int (*)(void *))dlsym(dlopen("./liburing.so.2", RTLD_NOW | RTLD_LOCAL), "io_uring_submit");
    return io_uring_submit(0) == 3 && submit(0) == 3 ? 0 : 1;
}
END
if echo 'int io_uring_submit(void *ring) { (void)ring; return 3; }' | cc -shared -fPIC -Wl,-soname,liburing.so.2 -x c -o liburing.so.2 - 2>/dev/null &&
  cc -o ring ring.c ./liburing.so.2 -Wl,-rpath,"$PWD" -ldl 2>/dev/null; then
  record ring ./ring
  check "io_uring: a submission is counted" test "$(csv ring.pftrace "SELECT ret FROM io WHERE op = 'io_uring_enter'")" = 3
else skip io_uring "no compiler here"; fi

# A program with AddressSanitizer wants its own library first; ours pass calls on to it.
cat >clean.c <<'END'
#include <fcntl.h>
#include <unistd.h>
int main(void)
{
    char byte;
    int fd = open("clean.c", O_RDONLY);
    return read(fd, &byte, 1) == 1 && close(fd) == 0 ? 0 : 1;
}
END
if cc -fsanitize=address -o clean clean.c 2>/dev/null && ./clean; then
  record clean ./clean
  check "a program with AddressSanitizer" test "$(csv clean.pftrace "SELECT count(*) FROM io WHERE path = '$PWD/clean.c' AND op = 'read'")" = 1
else skip asan "no compiler with AddressSanitizer here"; fi
