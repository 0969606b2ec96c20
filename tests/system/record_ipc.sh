#!/usr/bin/env bash
# Waits for locks and queues of the kernel itself have their reason and say which one it is: states and waits, by kernel programs and, without them, by looks at /proc.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
python=$(python3 -c 'import sys; print(sys.executable)')
# rows FILE CATEGORY: reason, lock, lock_name, path of each wait that took long for a lock or a queue
rows() { ask "$1" "select extract_arg(arg_set_id, 'reason') r, extract_arg(arg_set_id, 'lock'), extract_arg(arg_set_id, 'lock_name'), extract_arg(arg_set_id, 'path') from slice where category = '$2' and dur > 60000000 and r in ('lock', 'queue', 'other') order by ts"; }
# judge NAME: the program printed what it waits for.
judge() {
  local semaphore queue inode file=$TMP/kernel.lock
  read -r semaphore queue inode <"$1.out"
  printf '%s\n' "lock,$inode,$file,$file" "lock,$inode,$file,$file" "lock,$((4294967296 + semaphore)),semaphore $semaphore," "queue,,,$queue" "queue,,," >expected
  for category in thread_state offcpu_sample; do
    rows "$1.pftrace" $category >"$1.$category"
    check "$1_$category" diff expected "$1.$category"
  done
}
run_any kernel 0 "$STAVE" record -q --no-summary --no-inject --no-explain -o kernel.pftrace -- "$python" "$SRC/tests/system/kernel_locks.py"
judge kernel
equals kernel_waker "$(ask kernel.pftrace "select count(*) from slice where category = 'offcpu_sample' and dur > 60000000 and name = 'lock' and extract_arg(arg_set_id, 'waker') is not null")" 3
if command -v setpriv >/dev/null; then
  run_any looks 0 setpriv --bounding-set=-all --inh-caps=-all "$STAVE" record -q --no-summary --no-inject --no-explain --look 100 -o looks.pftrace -- "$python" "$SRC/tests/system/kernel_locks.py"
  judge looks
else skip looks "no setpriv here"; fi
