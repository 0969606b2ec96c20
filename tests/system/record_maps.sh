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
# The recorder's own maps are read once, too.
strace -f --seccomp-bpf -qq -e trace=openat -o calls "$STAVE" record -q --offcpu -o counted.pftrace -- "$python" "$SRC/tests/system/forks.py" 50
execs=$("$STAVE" cat -q counted.pftrace | grep -c 'instant .* "exec" cat="process"')
readings=$(grep -c '/[0-9]*/maps"' calls)
echo "  $readings readings of maps, $execs programs"
check readings_of_maps test "$readings" -ge 1 -a "$readings" -le $((execs + 1))
