#!/usr/bin/env bash
# What lies below the calls: files that are read through mappings, block requests of the run and of others, TCP. The figures are those that the programs know.
# Needs root (or the capabilities), a kernel with BTF, and a file system with a disk below it.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
command -v python3 >/dev/null || skip_all "needs python3"
# field TRACE SECTION NAME COLUMN: of stave report io
field() { "$STAVE" report io "$1" --csv --by "$2" | python3 -c '
import csv, sys
print(sum(int(row[sys.argv[2]]) for row in csv.DictReader(sys.stdin) if row["name"] == sys.argv[1]))' "$3" "$4"; }

# ---- TCP ----
run_any tcp 0 "$STAVE" record -q --strict --calls sockets,files -o tcp.pftrace -- python3 "$SRC/tests/system/tcp.py"
server=127.0.0.1:$(cat tcp.out)
equals tcp_connections "$(field tcp.pftrace peer "$server" opens)" 2
equals tcp_sent "$(field tcp.pftrace peer "$server" bytes_written)" 600000
equals tcp_received "$(field tcp.pftrace peer "$server" bytes_read)" 2000
equals tcp_other_side "$(ask tcp.pftrace "SELECT sum(extract_arg(arg_set_id, 'bytes')) FROM slice WHERE name = 'tcp_recv' AND extract_arg(arg_set_id, 'port') = ${server#*:}")" 600000
# A transfer lies within the call that made it.
equals tcp_in_calls "$(ask tcp.pftrace "SELECT count(*) FROM slice n WHERE n.category = 'network' AND NOT EXISTS
  (SELECT 1 FROM slice c WHERE c.category = 'syscall' AND c.ts = n.ts AND c.ts + c.dur >= n.ts + n.dur)")" 0

# ---- mappings, and another process that reads meanwhile ----
case $(stat -f -c %T .) in
  tmpfs | ramfs | overlayfs) skip mappings "$TMP is on $(stat -f -c %T .): nothing is read from a disk"; exit 0 ;;
esac
size=$((4 << 20)) others=$((2 << 20))
head -c $size /dev/zero | tr '\0' x >data; head -c $others /dev/zero | tr '\0' y >others
sync data others
mkfifo go ended
forget() { python3 "$SRC/tests/system/forget.py" "$1"; }
{ read -r _ <go; forget others; cat others >/dev/null; echo ended >ended; } &
forget data
run_any maps 0 "$STAVE" record -q --strict -o maps.pftrace -- sh -c "python3 '$SRC/tests/system/maps.py' data; echo go >go; read -r x <ended"
wait
data=$(realpath data)
forget data
run_any random 0 "$STAVE" record -q --strict -o random.pftrace -- python3 "$SRC/tests/system/maps.py" data 262144
equals random_bytes "$(field random.pftrace file "$data" fault_bytes)" $((size / 262144 * 4096))
equals random_missed "$(field random.pftrace file "$data" cache_miss_bytes)" $((size / 262144 * 4096))
equals maps_bytes "$(field maps.pftrace file "$data" fault_bytes)" $((2 * size))
equals maps_missed "$(field maps.pftrace file "$data" cache_miss_bytes)" $size
equals maps_read "$(field maps.pftrace file "$data" bytes_read)" 0
waits="FROM slice WHERE category = 'fault' AND name = 'file' AND extract_arg(arg_set_id, 'path') = '$data' AND dur > 0"
check maps_waits test "$(ask maps.pftrace "SELECT count(*) $waits")" -ge "$(cat maps.out)"
check maps_waits_at_all test "$(cat maps.out)" -ge 1
equals maps_major "$(ask maps.pftrace "SELECT count(*) $waits AND extract_arg(arg_set_id, 'major') = 1")" "$(cat maps.out)"
equals maps_time "$(field maps.pftrace file "$data" fault_ns)" "$(ask maps.pftrace "SELECT sum(dur) $waits")"
"$STAVE" report io maps.pftrace >maps.txt
check maps_verdict grep -q '^mapped: 2 mappings of data files' maps.txt
"$STAVE" report io maps.pftrace --json --all >maps.json
python3 - $others >figures <<'EOF'
import json, sys
r = json.load(open("maps.json"))
apart = r["other_block_bytes_read"], r["total"]["block_bytes_read"]
print("yes" if apart[0] >= int(sys.argv[1]) and apart[1] < (4 << 20) + (1 << 20) else f"others {apart[0]}, own {apart[1]}")
EOF
equals others_apart "$(cat figures)" yes
