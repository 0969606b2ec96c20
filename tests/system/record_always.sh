#!/usr/bin/env bash
# stave record --always: what the set has, and that sums of short calls are exact. Needs the kernel programs.
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
"$STAVE" record -q --strict --no-summary --light -o can.pftrace -- true 2>/dev/null || skip_all "no kernel programs here"
head -c 100000 /dev/zero >data.bin
cat >reads.py <<'P'
import os, sys, time
f = os.open("data.bin", os.O_RDONLY)
end = time.monotonic() + 1.2
n = 0
while n < 3000 or time.monotonic() < end:  # over the end of a second
    os.pread(f, 1000, n % 90000)
    n += 1
    if n % 1000 == 0:
        time.sleep(0.01)
for i in range(3):
    try:
        os.pread(f, 1, -1)
    except OSError:
        pass
for i in range(40):
    if os.fork() == 0:
        for k in range(25):
            os.pread(f, 7, k)
        os._exit(0)
    os.wait()
print(n)
P
run_any always 0 "$STAVE" record --no-inject --no-explain --always -o always.pftrace -- python3 -S reads.py
"$STAVE" cat -q always.pftrace >always.txt
# sum NAME KEY: of the instants for this call on the file, and of the slices of calls that took a millisecond
sum() { grep "data.bin" always.txt | sed -nE "s/.* instant .*\"$1\" cat=\"syscall_sum\" .* $2=([0-9]+).*/\1/p" | awk '{ s += $1 } END { print s + 0 }'; }
slow() { grep -cE "(begin|slice) .*\"$1\" cat=\"syscall\" .*data.bin" always.txt; }
n=$(cat always.out)
check no_loss test "$(grep -cE '^[0-9.]+ loss ' always.txt)" = 0
check counts test $(($(sum pread64 count) + $(slow pread64))) = $((n + 3 + 40 * 25))
check failed test "$(sum pread64 failed)" = 3
counted=$(sed -nE 's/^  .* recorded: ([0-9.,kMG]+) system calls.*/\1/p' always.err | tr -d ,)
check summary_counts_them test "${counted:-0}" -gt "$n"
check more_than_one_second test "$(grep -c '"pread64" cat="syscall_sum" .*data.bin' always.txt)" -ge 42
[ "$(slow pread64)" != 0 ] || check bytes test "$(sum pread64 bytes)" = $((1000 * n + 7 * 40 * 25))
check few_events test "$(grep -c 'cat="syscall"' always.txt)" -lt 1000
check coverage grep -q '^meta "recorded.calls" "kernel min_ns=1000000' always.txt
check states grep -q 'cat="thread_state"' always.txt
check samples grep -q '^meta "sample_hz" "19"' always.txt
check no_block sh -c '! grep -q "^meta \"recorded.block\" \"kernel" always.txt'
check valid "$STAVE" validate -q always.pftrace

# Reports read the sums: as many calls and bytes on the file, and their time.
run_any io 0 "$STAVE" report io --json always.pftrace
cat >row.py <<'P'
import json, sys
def rows(x):
    if isinstance(x, dict):
        if str(x.get("name", x.get("path", x.get("file", "")))).endswith("/data.bin"):
            yield x
        for v in x.values():
            yield from rows(v)
    elif isinstance(x, list):
        for v in x:
            yield from rows(v)
found = list(rows(json.load(open("io.out"))))
print(max(x["reads"] for x in found), max(x["bytes_read"] for x in found), max(x["errors"] for x in found))
P
check io_has_the_sums test "$(python3 -S row.py)" = "$((n + 3 + 40 * 25)) $((1000 * n + 7 * 40 * 25)) 3"

# A ring's segments are joined: each has sequence clocks of its own, which never go back, and no call is lost.
cat >segments.py <<'P'
import os, threading, time
def work():
    while not is_done.wait(0.05):
        pass
is_done = threading.Event()
threads = [threading.Thread(target=work) for i in range(6)]
for t in threads:
    t.start()
f, n = os.open("data.bin", os.O_RDONLY), 0
while not os.path.exists("ring.pftrace.ring-0003"):  # three were put away
    for i in range(50):
        os.pread(f, 100, i)
        n += 1
    time.sleep(0.001)
is_done.set()
for t in threads:
    t.join()
print(n)
P
run_any ring 0 "$STAVE" record --strict --no-summary --no-inject --no-explain --last 2M -o ring.pftrace -- python3 -S segments.py
run_any ring_info 0 "$STAVE" info ring.pftrace
check ring_sound test ! -s ring_info.err
read -r clocks back < <(python3 -S "$SRC/tests/system/snapshots.py" ring.pftrace)
check ring_clocks test "$clocks" -ge 4 -a "$back" = 0
check ring_calls test "$("$STAVE" cat -q ring.pftrace | grep -cE '"pread64" cat="syscall".*data.bin')" = "$(cat ring.out)"

# With a trigger, and its ring.
run_any saved 3 "$STAVE" record --no-summary --no-inject --no-explain --always --when "exit 'sh' == 3" -o slow-%t.pftrace -- sh -c 'cat data.bin >/dev/null; exit 3'
check saved_one test "$(find . -name 'slow-*Z.pftrace' | wc -l)" = 1
check saved_sums sh -c '"$0" cat -q slow-*.pftrace | grep -q "\"read\" cat=\"syscall_sum\" .*data.bin\" count="' "$STAVE"
run_any wrong 2 "$STAVE" record -q --sum-calls soon -o x.pftrace -- true
check wrong_says grep -qxF "stave record: --sum-calls: 'soon' is not a time such as 10s, 500ms or 20us" wrong.err
