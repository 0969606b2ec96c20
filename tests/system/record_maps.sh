#!/usr/bin/env bash
# Files of mapped pages: their names come from the calls that map them. /proc/PID/maps is read at most once for each program that runs, however often it
# forks; strace counts. Needs root (or the capabilities) and a kernel with BTF.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
python=$(python3 -c 'import sys; print(sys.executable)')
run_any forks 0 "$STAVE" record -q -o forks.pftrace -- "$python" "$SRC/tests/system/forks.py" 50
"$STAVE" cat -q forks.pftrace | grep -o ' cat="fault" {inode=[0-9]* path="/dev/shm/forks_[0-9_]*' | sort -u >named.out
check names_of_files_without_a_name test "$(wc -l <named.out)" = 50
command -v strace >/dev/null || { skip readings_of_maps "no strace"; exit; }
# The recorder's own maps are read once, too, and those of the command's process before its exec, where a wait of it is seen by then.
strace -f --seccomp-bpf -qq -e trace=openat -o calls "$STAVE" record -q --offcpu -o counted.pftrace -- "$python" "$SRC/tests/system/forks.py" 50
execs=$("$STAVE" cat -q counted.pftrace | grep -c 'instant .* "exec" cat="process"')
readings=$(grep -c '/[0-9]*/maps"' calls)
echo "  $readings readings of maps, $execs programs"
check readings_of_maps test "$readings" -ge 1 -a "$readings" -le $((execs + 2))

# Programs that have ended before the recorder looks: their functions have names, and no maps are read for it. On file systems whose numbers of devices the kernel and stat() give differently maps are read.
case $(stat -f -c %T /bin/sleep "$TMP" | sort -u | paste -sd' ') in
  *overlay* | *btrfs*) skip short_programs "an overlay, or btrfs"; exit ;;
esac
cp /bin/sleep nap
strace -qq -e trace=openat -o calls "$STAVE" record -q -o short.pftrace -- sh -c 'i=0; while [ $i -lt 40 ]; do ./nap 0.003; i=$((i + 1)); done'
"$STAVE" cat -q short.pftrace | grep ' cat="offcpu_sample" .*reason="sleep"' >naps
equals short_waits "$(wc -l <naps)" 40
equals short_names "$(grep -c '"\[nap+0x[0-9a-f]*\]".*"clock_nanosleep[^"]*"\]' naps)" 40
check short_readings test "$(grep -c '/[0-9]*/maps"' calls)" -le 2 # its own, and one for the pages of the dynamic linker
