#!/usr/bin/env bash
# Waits with stacks (stave record --offcpu): the flame graph, SQL, and who waits for whom, from any file format.
. "$SRC/tests/harness/cli.sh"

cat >in.txt <<'END'
# stave text 1
track #1 process uuid=0x11 pid=1 name="job"
track #2 thread uuid=0x12 parent=#1 pid=1 tid=2 name="worker 7"
track #3 custom uuid=0x13 parent=#2 name="off CPU"
track #4 custom uuid=0x14 parent=#2 name="samples"
track #5 custom uuid=0x15 parent=#2 name="state"
0.000000000 slice #2 "work" dur=0.090000000
0.000000005 begin #5 "Running" cat="thread_state"
0.000000010 instant #4 "b" cat="cpu_sample" {@stack["main" "b"]}
0.010000000 instant #3 "lock" cat="offcpu_sample" {dur=30000000 queued=10000000 reason="lock" lock=4096 lock_name="big" waker_tid=3 waker="holder" waker_stack=["start" "release (b.c:9)" "pthread_mutex_unlock"] @stack["main" "take (a.c:7)" "pthread_mutex_lock" "__lll_lock_wait"]}
0.050000000 instant #3 "sleep" cat="offcpu_sample" {dur=5000000 reason="sleep" interrupt=1 waker="timer" @stack["main" "nap"]}
0.060000000 instant #3 "gil" cat="offcpu_sample" {dur=5000000 reason="gil" lock=8192 interrupt=1 waker="timer" @stack["main" "step (t.py:3)" "take_gil"]}
0.065000000 instant #3 "gil" cat="offcpu_sample" {dur=4000000 reason="gil" lock=8196 waker_tid=4 waker="other" @stack["main" "step (t.py:3)" "take_gil"]}
0.072000000 instant #3 "gil" cat="offcpu_sample" {dur=3000000 reason="gil" lock=8192 interrupt=1 waker="timer" @stack["main" "step (t.py:4)" "take_gil"]}
0.090000000 end #5
0.090000000 instant #2 "schedstat" cat="schedstat" {run_ns=40000000 delay_ns=20000000 switches=7}
0.090000001 instant #2 "CPU rival" cat="cpu_rival" {rival="thief" rival_pid=77 rival_tid=78 cgroup="/pod/1" dur=15000000 n=4}
0.090000002 instant #2 "CPU rival" cat="cpu_rival" {rival="others" dur=4000000 n=9}
END
check whole "$STAVE" validate -q in.txt
for form in txt pftrace json; do
  "$STAVE" convert -q in.txt -o "copy.$form"
  run_any "sql_$form" 0 "$STAVE" query -q --to csv "copy.$form" "select reason, dur, queued, waker_tid, waker, interrupt from offcpu order by ts limit 2"
  check "sql_same_$form" diff - "sql_$form.out" <<'END'
reason,dur,queued,waker_tid,waker,interrupt
lock,30000000,10000000,3,holder,
sleep,5000000,,,timer,1
END
  run_any "rivals_$form" 0 "$STAVE" query -q --to csv "copy.$form" "select t.tid, r.rival, r.rival_pid, r.rival_tid, r.dur, r.n, r.cgroup, s.run_ns, s.delay_ns, s.switches from cpu_rival r join thread t using (utid) join schedstat s using (utid) order by r.ts"
  check "rivals_same_$form" diff - "rivals_$form.out" <<'END'
tid,rival,rival_pid,rival_tid,dur,n,cgroup,run_ns,delay_ns,switches
2,thief,77,78,15000000,4,/pod/1,40000000,20000000,7
2,others,,,4000000,9,,40000000,20000000,7
END
  # Waits are no samples, and the other way round.
  run_any "folded_$form" 0 "$STAVE" export -q "copy.$form" --to folded -o -
  check "folded_same_$form" test "$(cat "folded_$form.out")" = 'worker;main;b 1'
  # They are slices, also those that the file has as instants; sums, call trees and comparisons leave them and states out unless they are asked for.
  run_any "slices_$form" 0 "$STAVE" query -q --to csv "copy.$form" "select s.name, s.ts / 1000000 ms, s.dur / 1000000 for_ms, s.kind, t.name on_row from slice s join track t on t.id = s.track_id where s.cat like '%offcpu_sample%' order by ts"
  check "slices_same_$form" diff - "slices_$form.out" <<'END'
name,ms,for_ms,kind,on_row
lock,10,30,slice,off CPU
sleep,50,5,slice,off CPU
gil,60,5,slice,off CPU
gil,65,4,slice,off CPU
gil,72,3,slice,off CPU
END
  run_any "stats_$form" 0 "$STAVE" stats -q --to csv "copy.$form"
  check "stats_same_$form" test "$(sed 1d "stats_$form.out" | cut -d, -f1,2)" = 'work,1'
  run_any "stats_asked_$form" 0 "$STAVE" stats -q --to csv --filter 'cat=offcpu_sample' "copy.$form"
  check "stats_asked_same_$form" test "$(sed 1d "stats_asked_$form.out" | cut -d, -f1-3 | sort | paste -sd' ')" = 'gil,3,12000000 lock,1,30000000 sleep,1,5000000'
  run_any "diff_$form" 0 "$STAVE" diff -q --all in.txt "copy.$form"
  check "diff_same_$form" test "$(grep -cE 'gil|Running' "diff_$form.out")" = 0
  # A wait that a time limit ended goes on in the next one, here after 1 ms of running; the last one has nobody who released the lock.
  run_any "locks_$form" 0 "$STAVE" report wait -q --no-index --csv --by lock "copy.$form"
  check "locks_same_$form" diff - <(sed 's/^"[^"]*",//; s/^thread,//' "locks_$form.out") <<'END'
function,lock,address,releaser,releaser_tid,released_in,waits,total_ns,longest_ns,queued_ns
take,big,0x1000,holder,3,release,1,20000000,20000000,10000000
step,the interpreter lock of Python,,other,4,,1,9000000,9000000,0
step,the interpreter lock of Python,,,,,1,3000000,3000000,0
END
done
run_any lock_wait 0 "$STAVE" query -q --to csv in.txt "select tid, thread_name, reason, lock_name, waker, sum(dur) from lock_wait group by 1, 2, 3, 4, 5 order by 6 desc limit 1"
check lock_wait_same test "$(tail -1 lock_wait.out)" = '2,worker 7,lock,big,holder,30000000'

# A lock that goes from hand to hand: a wait is divided among those who held it meanwhile. The interpreter lock: the first thread asks again after a time limit, is woken
# by thread 4, and gives the lock to the second one, which waited for both; the third one finds the lock free after its limit, because the second one gave it up
# (and waits until it is taken over). A mutex: 6 gave it to 5, 5 to the second thread. A condition: the second wait's waker had no lock of the first one.
cat >hands.txt <<'END'
# stave text 1
track #1 process uuid=0x11 pid=1 name="job"
track #2 thread uuid=0x12 parent=#1 pid=1 tid=5
track #3 custom uuid=0x13 parent=#2 name="off CPU"
track #4 thread uuid=0x14 parent=#1 pid=1 tid=7
track #5 custom uuid=0x15 parent=#4 name="off CPU"
track #6 thread uuid=0x16 parent=#1 pid=1 tid=9
track #7 custom uuid=0x17 parent=#6 name="off CPU"
0.059000000 instant #3 "gil" cat="offcpu_sample" {dur=5000000 reason="gil" lock=8192 interrupt=1 waker="timer" @stack["first (t.py:1)"]}
0.060000000 instant #5 "gil" cat="offcpu_sample" {dur=5000000 reason="gil" lock=8192 interrupt=1 waker="timer" @stack["second (t.py:3)"]}
0.064010000 instant #3 "gil" cat="offcpu_sample" {dur=1990000 queued=990000 reason="gil" lock=8196 waker_tid=4 waker="other" waker_stack=["give (t.py:9)"] @stack["first (t.py:1)"]}
0.065010000 instant #5 "gil" cat="offcpu_sample" {dur=3990000 queued=500000 reason="gil" lock=8192 waker_tid=5 waker="job" @stack["second (t.py:3)"]}
0.066000000 instant #7 "gil" cat="offcpu_sample" {dur=9000000 queued=4000000 reason="gil" lock=8196 interrupt=1 waker="timer" @stack["third (t.py:5)"]}
0.074000000 instant #5 "gil" cat="offcpu_sample" {dur=1010000 reason="gil" lock=8280 waker_tid=9 waker="job" @stack["second (t.py:4)"]}
0.080000000 instant #5 "lock" cat="offcpu_sample" {dur=40000000 reason="lock" lock=64 lock_name="hot" waker_tid=5 waker="b" @stack["takes"]}
0.081000000 instant #3 "lock" cat="offcpu_sample" {dur=9000000 reason="lock" lock=64 lock_name="hot" waker_tid=6 waker="a" waker_stack=["gives"] @stack["takes"]}
0.200000000 instant #5 "lock" cat="offcpu_sample" {dur=40000000 reason="lock" lock=128 waker_tid=8 waker="c" @stack["waits"]}
0.201000000 instant #3 "lock" cat="offcpu_sample" {dur=9000000 reason="lock" lock=128 waker_tid=8 waker="c" @stack["waits"]}
END
run_any hands 0 "$STAVE" report wait -q --no-index --csv --by lock hands.txt
check hands_same diff - <(sed 's/^"[^"]*tid \([0-9]*\))"/\1/' hands.out | cut -d, -f1-3,5- | sort) <<'END'
5,first,the interpreter lock of Python,other,4,give,1,6010000,6010000,990000
5,takes,hot,a,6,gives,1,9000000,9000000,0
5,waits,0x80,c,8,,1,9000000,9000000,0
7,second,the interpreter lock of Python,job,5,,1,3490000,3490000,500000
7,second,the interpreter lock of Python,job,9,,1,1010000,1010000,0
7,second,the interpreter lock of Python,other,4,give,1,5010000,5010000,0
7,takes,hot,a,6,gives,1,10000000,10000000,0
7,takes,hot,b,5,,1,30000000,30000000,0
7,waits,0x80,c,8,,1,40000000,40000000,0
9,third,the interpreter lock of Python,job,5,,1,2500000,2500000,0
9,third,the interpreter lock of Python,job,7,second,1,5500000,5500000,1000000
thread,function,lock,releaser,releaser_tid,released_in,waits,total_ns,longest_ns,queued_ns
END

# Widths are times; what was spent in the queue of a CPU after the wake-up is apart.
run_any flame 0 "$STAVE" plot flame -q --offcpu copy.pftrace -o flame.svg
check flame_time grep -q '47 ms of all' flame.svg
for reason in lock:20 cpu:10 gil:12 sleep:5; do check "flame_${reason%:*}" grep -qE "<title>\[${reason%:*}\] [^<]*\b${reason#*:} ms" <(tr '\n' ' ' <flame.svg); done
run_any calls 0 "$STAVE" plot flame -q copy.pftrace -o calls.svg
check calls_has_work grep -q '<title>work' calls.svg
check calls_without_waits test "$(grep -cE '<title>(gil|lock|Running)' calls.svg)" = 0
run_any window 0 "$STAVE" plot flame -q --offcpu --from 25ms --to 52ms copy.pftrace -o window.svg
check window_is_cut grep -q '17 ms of all' window.svg
run_any both 2 "$STAVE" plot flame -q --offcpu --samples copy.pftrace -o x.svg
check both_said grep -q 'exclude each other' both.err
