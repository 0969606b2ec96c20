#!/usr/bin/env bash
# What a plain stave record records, what --light and single options leave out, and what the file says of it; calls on sockets that waited, with their peers as the programs know them.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
quiet=(-q --strict --interval 0 --gpu-interval 0)
parts() { ask "$1" "SELECT substr(name, 10), str_value FROM metadata WHERE name GLOB 'recorded.*'"; }
count() { ask "$1" "SELECT count(*) FROM slice WHERE $2"; }
waits="category = 'offcpu_sample'" sockets="category = 'syscall' AND extract_arg(arg_set_id, 'peer') IS NOT NULL"

# ---- the set ----
run_any plain 0 "$STAVE" record "${quiet[@]}" -o plain.pftrace -- "$play" sleep 1
check plain_states test "$(ask plain.pftrace 'SELECT count(*) FROM thread_state')" -ge 3
check plain_waits test "$(count plain.pftrace "$waits AND name = 'sleep'")" -ge 1
parts plain.pftrace >plain.parts
cat >plain.expected <<'END'
states,kernel
waits,kernel min_ns=1000000
calls,kernel
sockets,kernel groups=waiting
block,kernel
page_cache,kernel
faults,kernel
processes,kernel
samples,kernel every_ns=52631578
counters,no
gpu,no
sdk,program
END
check plain_parts diff plain.expected plain.parts
run_any info 0 "$STAVE" info plain.pftrace
check info_recorded grep -q '^recorded      states, waits (1.000 ms or more), calls, sockets (waiting), block,' info.out
check info_not_recorded grep -q '^not recorded  counters, gpu$' info.out

run_any unsampled 0 "$STAVE" record "${quiet[@]}" --sample 0 -o unsampled.pftrace -- "$play" sleep 0
equals unsampled_parts "$(parts unsampled.pftrace | grep samples)" "samples,no"
# What computes is known without being asked, and stacks of samples have no frames of the kernel.
burn='import os
def burn(n):
    while n: n -= 1
    os.read(os.open("/dev/zero", os.O_RDONLY), 1 << 28)
for _ in range(4): burn(5000000)'
run_any sampled 0 "$STAVE" record "${quiet[@]}" -o sampled.pftrace -- python3 -c "$burn"
"$STAVE" cat -q sampled.pftrace | grep 'cat="cpu_sample"' >sampled.text
check sampled_is_named grep -q 'burn (<string>:' sampled.text
equals sampled_kernel "$(grep -c '_\[k\]' sampled.text)" 0

run_any light 0 "$STAVE" record "${quiet[@]}" --light -o light.pftrace -- "$play" sleep 1
equals light_states "$(ask light.pftrace 'SELECT count(*) FROM thread_state')" 0
equals light_waits "$(count light.pftrace "$waits")" 0
check light_calls test "$(count light.pftrace "category = 'syscall'")" -ge 5
equals light_parts "$(parts light.pftrace | head -4 | tr '\n' ' ')" "states,no waits,no calls,kernel sockets,no "
run_any one 0 "$STAVE" record "${quiet[@]}" --light --sched --no-block --calls files,sync --min-latency 1us --path /nowhere --sample 100 --interval 50ms -o one.pftrace -- "$play" sleep 0
equals one_parts "$(parts one.pftrace | tr '\n' ' ')" "states,kernel waits,no calls,\"kernel groups=files,sync min_ns=1000 path=/nowhere\" sockets,no block,no page_cache,kernel faults,kernel processes,kernel samples,kernel every_ns=10000000 counters,proc every_ns=50000000 gpu,no sdk,program "
run_any without 0 "$STAVE" record "${quiet[@]}" --no-sched --no-offcpu --no-sockets -o without.pftrace -- "$play" sleep 0
equals without_parts "$(parts without.pftrace)" "$(parts light.pftrace)"

# ---- without privileges: one line, as before ----
if command -v setpriv >/dev/null; then
  mkdir -m 777 other
  run_any other 0 setpriv --reuid 65534 --regid 65534 --clear-groups "$STAVE" record --no-summary --gpu-interval 0 -o other/o.pftrace -- true
  equals other_lines "$(wc -l <other.err)" 1
  check other_said grep -q 'without system calls and block I/O: .*not permitted' other.err
  equals other_parts "$(parts other/o.pftrace | grep ',proc every_ns=50000000' | cut -d, -f1)" states # of programs that take no library
  equals other_calls "$(parts other/o.pftrace | grep -E '^(waits|calls|sockets|processes),' | cut -d, -f2 | cut -d' ' -f1 | sort -u)" preload
  equals other_lacks "$(parts other/o.pftrace | grep -E '^(block|page_cache|faults),' | cut -d, -f2 | sort -u)" no
else
  skip other 'no setpriv here'
fi

# ---- sockets ----
run_any peers 0 "$STAVE" record "${quiet[@]}" -o peers.pftrace -- python3 "$SRC/tests/system/peers.py" "$TMP/s.sock"
ask peers.pftrace "SELECT s.name, pid, extract_arg(s.arg_set_id, 'peer_pid'), extract_arg(s.arg_set_id, 'peer') AS peer, extract_arg(s.arg_set_id, 'bytes') FROM slice s JOIN thread_track t ON s.track_id = t.id JOIN thread USING (utid) JOIN process USING (upid) WHERE category = 'syscall' AND peer IS NOT NULL" >recorded.csv
while IFS=, read -r call pid peer_pid peer bytes; do
  case $call in
  read) check "peer_$call" grep -q "^read,$pid,[^,]*,socket:\[[0-9]*\],$bytes$" recorded.csv ;; # nobody has told whose a pair is
  *) check "peer_${call}_${bytes:-none}" grep -qxF "$call,$pid,$peer_pid,$peer,$bytes" recorded.csv ;;
  esac
done <peers.out
equals peers_seen "$(wc -l <peers.out)" 4
# Only what waited: the sends did not.
equals peers_no_send "$(count peers.pftrace "name = 'sendto'")" 0
run_any no_sockets 0 "$STAVE" record "${quiet[@]}" --no-sockets -o no_sockets.pftrace -- python3 "$SRC/tests/system/peers.py" "$TMP/s2.sock"
equals no_sockets_none "$(count no_sockets.pftrace "$sockets")" 0
run_any redacted 0 "$STAVE" record "${quiet[@]}" --redact paths -o redacted.pftrace -- python3 "$SRC/tests/system/peers.py" "$TMP/s3.sock"
check redacted_none test "$("$STAVE" cat -q redacted.pftrace | grep -c 's3\.sock')" = 0
# A call that has not ended, and the last state, when the recording ends.
mkfifo fifo
run_any open 0 "$STAVE" record -q -o open.pftrace --duration 300ms -- sh -c 'cat fifo & exec python3 -c "import select; select.select([], [], [], 1)"'
: <>fifo
equals open_states "$(ask open.pftrace 'SELECT count(*) FROM thread_state WHERE dur < 0')" 0
