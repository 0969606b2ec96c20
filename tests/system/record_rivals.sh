#!/usr/bin/env bash
# Who had the CPU while a thread could run, what the kernel counted of threads, and that no thread waits while it makes calls. The truth are the kernel's
# own counts as the programs read them. A process outside of the recording takes the CPU. Needs root (or the capabilities) and a kernel with BTF.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
python=$(python3 -c 'import sys; print(sys.executable)')
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//') # the last one that we may use
cp "$(command -v sh)" rival_of_all
taskset -c "$cpu" ./rival_of_all -c 'while :; do :; done' & rival=$!
trap 'kill $rival; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
# at_least NAME IS OF PERCENT, at_most …
at_least() { echo "  $1: $2 of $3"; check "$1" test "$3" -gt 0 -a $(($2 * 100)) -ge $(($3 * $4)); }
at_most() { echo "  $1: $2 of $3"; check "$1" test "$3" -gt 0 -a $(($2 * 100)) -le $(($3 * $4)); }
# sum TID WHAT: over its rivals.
sum() { ask "$hooks.pftrace" "select coalesce(sum(dur), 0) from cpu_rival join thread using (utid) where tid = $1 and $2"; }
for hooks in btf raw; do
  run_any "$hooks" 0 "$STAVE" record -q --sched --hooks "$hooks" --no-block --no-page-cache --interval 0 -o "$hooks.pftrace" -- taskset -c "$cpu" "$python" "$SRC/tests/system/delayed.py" 0.3 "$rival"
  read -r tid run delay taken <"$hooks.out"
  # On a machine that does nothing else the rival has all of the delay; others take their part of both, and who has less than a sixteenth may not be named.
  if [ $((taken * 8)) -ge "$delay" ]; then
    at_least "${hooks}_rival_by_its_pid" "$(sum "$tid" "rival_pid = $rival and rival_tid = $rival and rival = 'rival_of_all'")" "$taken" 80
  else skip "${hooks}_rival_by_its_pid" "others had the CPU: the rival had $taken of $delay ns"; fi
  at_least "${hooks}_all_rivals" "$(sum "$tid" 1)" "$delay" 80
  at_most "${hooks}_no_more_than_the_delay" "$(sum "$tid" 1)" "$delay" 105
  cgroup=$(ask "$hooks.pftrace" "select coalesce(max(cgroup), '/') from cpu_rival where rival_pid = $rival")
  check "${hooks}_cgroup" grep -qE "^[0-9]+:[^:]*:$cgroup\$" "/proc/$rival/cgroup"
  equals "${hooks}_name_that_it_gave_itself" "$(ask "$hooks.pftrace" "select name from thread where tid = $tid")" cruncher
  while read -r tid run delay _; do
    ask "$hooks.pftrace" "select run_ns, delay_ns from schedstat join thread using (utid) where tid = $tid" >"stat.$tid"
    IFS=, read -r has_run has_delay <"stat.$tid"
    # They are counted from before the program's own first look to after its last one.
    check "${hooks}_${tid}_ran" test "$has_run" -ge "$run"
    check "${hooks}_${tid}_was_delayed" test "$has_delay" -ge "$delay"
    equals "${hooks}_${tid}_once" "$(wc -l <"stat.$tid")" 1
  done <"$hooks.out"
done

# Many short processes, none of which has a sixteenth of the CPU, are one rival by their name.
cp rival_of_all crowd_of_all
kill $rival
wait $rival 2>/dev/null
taskset -c "$cpu" sh -c 'while :; do ./crowd_of_all -c "i=0; while [ \$i -lt 3000 ]; do i=\$((i + 1)); done"; done' & crowd=$!
trap 'kill $rival $crowd 2>/dev/null; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
run_any crowd 0 "$STAVE" record -q --sched --no-block --no-page-cache --interval 0 -o crowd.pftrace -- taskset -c "$cpu" "$python" "$SRC/tests/system/delayed.py" 0.3 $$
hooks=crowd
read -r tid _ <crowd.out
# What others on this machine had is theirs; the rest is the crowd's, which is all named.
of_crowd=$(sum "$tid" "rival = 'crowd_of_all'")
at_least crowd_is_named "$of_crowd" "$(sum "$tid" "rival in ('crowd_of_all', 'others')")" 60
equals crowd_is_outside "$(ask crowd.pftrace "select distinct outside from cpu_rival where rival = 'crowd_of_all'")" 1
equals crowd_has_no_pid "$(ask crowd.pftrace "select count(*) > 0 from cpu_rival where rival = 'crowd_of_all' and rival_pid is null")" 1
kill $crowd
wait $crowd 2>/dev/null
taskset -c "$cpu" ./rival_of_all -c 'while :; do :; done' & rival=$!

# A thread that goes on when the recording ends has its sums, too: those since it was followed.
"$STAVE" record -q --sched --no-block --no-page-cache --interval 0 -o attached.pftrace -p $rival & recorder=$!
until_true "[ -s attached.pftrace.part ]"
before=$(cut -d ' ' -f 1 "/proc/$rival/schedstat")
until_true "[ \$((\$(cut -d ' ' -f 1 /proc/$rival/schedstat) - $before)) -gt 200000000 ]"
kill -INT $recorder; wait $recorder
ran=$(ask attached.pftrace "select run_ns from schedstat join thread using (utid) where tid = $rival")
check attached_thread_has_its_sums test "$ran" -ge 190000000
check attached_thread_since_it_is_followed test "$ran" -le $(($(cut -d ' ' -f 1 "/proc/$rival/schedstat") - before + before / 2))

# No state but Running holds a whole system call. The kernel does not show every switch, least of all on busy CPUs.
run_any busy 0 "$STAVE" record -q --sched --no-block --no-page-cache --interval 0 -o busy.pftrace -- "$python" "$SRC/tests/system/busy.py" 6 1500
equals impossible_states "$(ask busy.pftrace "with c as (select c.ts, c.dur, t.utid from slice c join thread_track t on c.track_id = t.id where c.category = 'syscall')
  select count(*) from thread_state s where s.state <> 'Running' and s.dur > 1000000 and exists (select 1 from c where c.utid = s.utid and c.ts > s.ts and c.ts + c.dur < s.ts + s.dur)")" 0
check busy_has_waits test "$(ask busy.pftrace "select count(*) from thread_state where state <> 'Running' and dur > 1000000")" -gt 10

# Two CPUs that are both taken: who has the other one is a rival, too, and the sums stay those of the kernel.
if [ "$(nproc)" -ge 2 ]; then
  first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/') # of the CPUs that we may use
  cp rival_of_all rival_beside
  taskset -c "$first" ./rival_beside -c 'while :; do :; done' & beside=$!
  run_any two 0 "$STAVE" record -q --sched --no-block --no-page-cache --interval 0 -o two.pftrace -- taskset -c "$first,$cpu" "$python" "$SRC/tests/system/delayed.py" 0.3 "$rival"
  kill $beside; wait $beside 2>/dev/null
  hooks=two
  read -r tid run delay taken <two.out
  at_least two_all_rivals "$(sum "$tid" 1)" "$delay" 75
  at_most two_no_more_than_the_delay "$(sum "$tid" 1)" "$delay" 105
  # Each has half of the blame for what it had. Where many others run, neither may be named.
  if [ $((taken * 3)) -ge "$delay" ]; then
    at_least two_has_one "$(sum "$tid" "rival_pid = $rival")" "$taken" 25
    at_least two_has_the_other "$(sum "$tid" "rival_pid = $beside")" "$taken" 15
  else skip two_names "others had the CPUs: the two had $taken each of $delay ns"; fi
else skip two "one CPU"; fi

# A group with a quota of CPU time: that is no rival, and is named. A folder of the old or of the new groups.
quota() {
  group=/sys/fs/cgroup/cpu/stave.$$
  if [ ! -d /sys/fs/cgroup/cpu ]; then group=/sys/fs/cgroup/stave.$$; fi
  mkdir "$group" 2>/dev/null && { echo 3000 >"$group/cpu.cfs_quota_us" || echo "3000 100000" >"$group/cpu.max"; } 2>/dev/null
}
if quota; then
  cat >in_group.sh <<'S'
echo $$ >"$1/cgroup.procs" && exec "$2" -c '
import time
while time.thread_time() < 0.04: pass
print(open("/proc/self/schedstat").read(), flush=True)'
S
  run_any quota 0 "$STAVE" record -q --no-summary --no-inject --no-explain --sched --no-block --no-page-cache --interval 0 -o quota.pftrace -- sh in_group.sh "$group" "$python"
  throttled=$(sed -nE 's/^throttled_time //p; s/^throttled_usec (.*)/\1000/p' "$group/cpu.stat")
  check quota_group_is_empty until_true 'rmdir "$group"'
  read -r _ delay _ <quota.out
  hooks=quota
  by_quota=$(ask quota.pftrace "select coalesce(sum(dur), 0) from cpu_rival where rival = 'quota'")
  check quota_was_used_up test "$delay" -gt 100000000
  at_least quota_as_the_kernel_counts_it "$by_quota" "$throttled" 90
  at_most quota_no_more_than_the_kernel_counts "$by_quota" "$throttled" 105
  at_most quota_no_more_than_the_delay "$(ask quota.pftrace "select sum(dur) from cpu_rival")" "$(ask quota.pftrace "select sum(delay_ns) from schedstat")" 105
  equals quota_has_its_group "$(ask quota.pftrace "select distinct cgroup from cpu_rival where rival = 'quota'")" "/stave.$$"
  equals states_have_it "$(ask quota.pftrace "select sum(extract_arg(arg_set_id, 'quota_ns')) from slice where category = 'thread_state' and extract_arg(arg_set_id, 'reason') = 'quota' and extract_arg(arg_set_id, 'cgroup') = '/stave.$$'")" "$by_quota"
else skip quota "no group of processes can be made here"; fi
