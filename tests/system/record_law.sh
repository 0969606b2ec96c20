#!/usr/bin/env bash
# What stave record says of every single call is true: each call is in the trace or counted as lost, each has the file that it was made on.
# Needs root (or the capabilities) and a kernel with BTF.
# shellcheck disable=SC2016,SC2012 # words for eval; names of our own
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"

# Two threads that use the same descriptors in turn: each read and each close has the right file, which its size shows.
mkdir swap; for i in $(seq 1 8); do head -c $((i * 100)) /dev/zero >"swap/f$i"; done
run_any swap 0 "$STAVE" record -q --strict --no-block --no-page-cache --interval 0 --calls files -o swap.pftrace -- "$play" swap 2 "$TMP/swap" 50000
equals swap_reads "$(ask swap.pftrace "SELECT count(*), sum(path = '$TMP/swap/f' || (bytes / 100)) FROM io WHERE op = 'pread64' AND bytes % 100 = 0")" "100000,100000" # libc.so's have odd sizes
equals swap_closes "$(ask swap.pftrace "SELECT count(*) FROM io WHERE op = 'close' AND path GLOB '$TMP/swap/f?'")" 100000
rm swap.pftrace


# ---- every call is in the file or in a count ----
# Calls are numbered by their offsets. Those in the files are all different; with those that were lost they are as many as were made: at
# least those that had ended, at most those that had begun.
# law NAME EXPECTED-LOSS PROGRESS TRACE…
law() {
  local name=$1 loses=$2 begun ended kept=0 lost=0 each; read -r begun ended < <(od -An -t u8 "$3"); shift 3
  for trace in "$@"; do ask "$trace" "SELECT offset FROM io WHERE op = 'pread64' AND path = '/dev/zero'"; done >numbers
  for trace in "$@"; do each=$(ask "$trace" "SELECT ifnull(sum(count), 0) FROM loss WHERE cause = 'system calls'"); lost=$((lost + each)); done
  kept=$(wc -l <numbers)
  echo "  $name: begun $begun, ended $ended, kept $kept, lost $lost"
  equals "${name}_once" "$(sort -n numbers | uniq | wc -l)" "$kept"
  check "${name}_law" test "$ended" -le $((kept + lost)) -a $((kept + lost)) -le "$begun"
  check "${name}_lost" test "$lost" "$loses" 0
}
record=("$STAVE" record -q --no-block --no-page-cache --interval 0 --calls files)
numbered=("$play" numbered progress)

run_any whole 0 "${record[@]}" -o whole.pftrace -- "${numbered[@]}" 30000 go
law whole -eq progress whole.pftrace

# A recorder that is stopped, and a ring that is too small for that.
run_any full 0 "${record[@]}" --ring 64K -o full.pftrace -- "${numbered[@]}" 30000 stop
law full -gt progress full.pftrace

# The recorder is asked to end, and passes it on; the command is killed.
end() { # NAME EXIT WHAT-TO-DO OPTION…
  local name=$1 code=$2 how=$3; shift 3; rm -f progress
  # What runs in the background ignores SIGINT.
  env --default-signal=INT "${record[@]}" "$@" -o "$name.pftrace" -- "${numbered[@]}" 1000000000 go & recorder=$!
  until_true '[ "$(od -An -t u8 -j 8 progress)" -gt 3000 ]'
  eval "$how"; wait $recorder
  equals "${name}_exit" $? "$code"
}
end interrupted 130 'kill -INT $recorder'; law interrupted -eq progress interrupted.pftrace
end terminated 143 'kill -TERM $recorder'; law terminated -eq progress terminated.pftrace
end killed 137 'pkill -KILL -P $recorder play'; law killed -eq progress killed.pftrace

# The file is large enough, and the command goes on: what was recorded has no gap.
run_any ended 0 "${record[@]}" --max-size 256K -o ended.pftrace -- "${numbered[@]}" 1000000000 go
equals ended_law "$(ask ended.pftrace "SELECT count(*) - 1 - max(offset) FROM io WHERE op = 'pread64' AND path = '/dev/zero'")" 0
equals ended_lost "$(ask ended.pftrace "SELECT count(*) FROM loss")" 0

# A new file now and then: together they are the whole.
run_any rotated 0 "${record[@]}" --rotate 256K -o rotated.pftrace -- "${numbered[@]}" 60000 go
check rotated_files test "$(ls rotated*.pftrace | wc -l)" -gt 1
law rotated -eq progress rotated*.pftrace

# ---- --drop-caches comes before the recording ----
# What it writes to is a file of the test's own. The disk's writes before that are no part of the trace.
touch caches; head -c 4194304 /dev/zero >dirty
if unshare -m mount --bind caches /proc/sys/vm/drop_caches 2>/dev/null; then
  run_any dropped 0 unshare -m sh -c 'mount --bind caches /proc/sys/vm/drop_caches && exec "$0" record -q --strict --interval 0 --drop-caches -o dropped.pftrace -- true' "$STAVE"
  equals dropped_once "$(cat caches)" 3
  "$STAVE" cat -q dropped.pftrace >dropped.txt
  check dropped_before awk -v at="$(stat -c %.9Y caches)" '
    /^snapshot / && !clock { split($2, boot, "="); for (i = 2; i <= NF; i++) if ($i ~ /^realtime=/) split($i, real, "="); clock = (real[2] - boot[2]) / 1e9 }
    $1 ~ /^[0-9]+\.[0-9]+$/ { if ($1 + clock < at) early++; n++ }
    END { exit !(n > 0 && clock && early == 0) }' dropped.txt
else skip dropped "no mount namespaces here"; fi
