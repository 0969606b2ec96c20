#!/usr/bin/env bash
# What stave record says of every single call is true: each call is in the trace or counted as lost, each has the file that it was made on.
# Needs root (or the capabilities) and a kernel with BTF.
. "$SRC/tests/harness/cli.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root: the kernel's side of stave record"
"$STAVE" record --strict -q -o probe.pftrace -- true 2>probe.err || skip_all "no eBPF here: $(cat probe.err)"
play=$BUILD/tests/system/play

equals() { [ "$2" = "$3" ] || echo "  $1: '$2', expected '$3'"; check "$1" test "$2" = "$3"; }
ask() { "$STAVE" query -q --to csv "$1" "$2" | tail -n +2; }

# Two threads that use the same descriptors in turn: each read and each close has the file that it was, which its size tells.
mkdir swap; for i in $(seq 1 8); do head -c $((i * 100)) /dev/zero >swap/f$i; done
run_any swap 0 "$STAVE" record -q --strict --no-block --no-page-cache --interval 0 --calls files -o swap.pftrace -- "$play" swap 2 "$TMP/swap" 50000
equals swap_reads "$(ask swap.pftrace "SELECT count(*), sum(path = '$TMP/swap/f' || (bytes / 100)) FROM io WHERE op = 'pread64' AND bytes % 100 = 0")" "100000,100000" # libc.so's have odd sizes
equals swap_closes "$(ask swap.pftrace "SELECT count(*) FROM io WHERE op = 'close' AND path GLOB '$TMP/swap/f?'")" 100000
rm swap.pftrace

