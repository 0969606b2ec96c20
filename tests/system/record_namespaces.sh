#!/usr/bin/env bash
# stave record in containers and from outside of them: pid, mount, cgroup and user namespaces, attached in each of the three ways.
# Needs root (or the capabilities) and a kernel with BTF.
# shellcheck disable=SC2016 # words for inner shells
# Plain tracepoints need tracefs: the whole script runs where it is mounted, and nobody else sees that.
tracefs='mount -t tracefs none /sys/kernel/tracing'
if [ -z "${HAS_TRACEFS:-}" ] && unshare -m sh -c "$tracefs" 2>/dev/null; then
  HAS_TRACEFS=1 exec unshare -m sh -c "$tracefs"' && exec "$0"' "$0"
fi
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
unshare -pf --mount-proc true 2>/dev/null || skip_all "no pid namespaces here"
export play=$BUILD/tests/system/play STAVE TMP XDG_RUNTIME_DIR=$TMP/run; mkdir -m 700 run # others record, too

# pids TRACE NAME: of the processes of this name. opens TRACE FILE: how many calls opened it.
pids() { "$STAVE" cat -q "$1" | sed -nE "s/^track .* process .*pid=([0-9]+) name=\"$2\".*/\1/p" | sort -n | paste -sd' '; }
opens() { "$STAVE" cat -q "$1" | grep -c "\"openat\" .*path=\"$TMP/$2\""; }
# in_container WORDS…: in a pid namespace of its own, with its own /proc.
in_container() { unshare -pf --mount-proc "$@"; }

echo text >file
# wanted CASE LIST: is it in the list? All are in the long tests.
wanted() { case "${STAVE_LONG:+$1} $2 " in *"$1 "*) ;; *) return 1 ;; esac; }

inside() { # The recorder in a container: processes have the pids that they know themselves.
  local h=$1
  run_any "${h}_inside" 0 in_container "$STAVE" record --hooks "$h" -q --strict -o in.pftrace -- sh -c 'echo $$ >own; (exec cat file); :'
  equals "${h}_inside_pid" "$(pids in.pftrace sh)" "$(cat own)"
  equals "${h}_inside_calls" "$(opens in.pftrace file)" 1
  check "${h}_inside_valid" "$STAVE" validate -q in.pftrace
}

joined() { # It joins a process that runs beside it: its open files are known, its children are followed.
  local h=$1
  rm -f gate; mkfifo gate
  run_any "${h}_joined" 0 in_container bash -c '
    (exec 7>joined.out; read -r _ <gate; echo one >&7; cat file >/dev/null; :) & target=$!
    "$STAVE" record --hooks "$0" -q --strict -o joined.pftrace -p $target & recorder=$!
    for _ in $(seq 600); do "$STAVE" status 2>/dev/null | grep -q "^$recorder " && break; sleep 0.05; done
    echo $target >own; echo go >gate; wait $target; wait $recorder' "$h"
  equals "${h}_joined_write" "$("$STAVE" cat -q joined.pftrace | grep -c "\"write\" .*path=\"$TMP/joined.out\"")" 1
  equals "${h}_joined_child" "$(opens joined.pftrace file)" 1
  equals "${h}_joined_pid" "$(pids joined.pftrace bash)" "$(cat own)"
}

outside() { # The recorder outside, the command in a container: its own pid is recorded, too, where the kernel's memory can be read.
  local h=$1
  run_any "${h}_outside" 0 "$STAVE" record --hooks "$h" -q --strict -o out.pftrace -- unshare -pf --mount-proc sh -c 'cat file; sh -c "exec sleep 0"'
  equals "${h}_outside_calls" "$(opens out.pftrace file)" 1
  if [ "$h" != tracepoints ]; then
    check "${h}_outside_inner" grep -qE '^track .*name="sh" desc="sh -c cat file; [^(]*\(pid 1 in pid namespace [0-9]+\)"' <("$STAVE" cat -q out.pftrace)
    check "${h}_outside_fork" grep -qE '"fork" .*child=[0-9]+ inner_pid=1 pid_namespace=[0-9]+' <("$STAVE" cat -q out.pftrace)
  fi
}

become() { # A thread that becomes another program gets the number of the first one, and is still followed.
  local h=$1
  run_any "${h}_become" 0 in_container "$STAVE" record --hooks "$h" -q --strict -o become.pftrace -- "$play" become cat file
  equals "${h}_become_calls" "$(opens become.pftrace file)" 1
  equals "${h}_become_rows" "$("$STAVE" cat -q become.pftrace | grep '"openat" .*/file"' | awk '{ print $3 }')" \
    "$("$STAVE" cat -q become.pftrace | grep '"exec" .*/cat"' | awk '{ print $3 }')"
}

nested() { # A container in the container: only plain tracepoints do not see into it, and that is said.
  local h=$1
  local strict=0; [ "$h" != tracepoints ] || strict=1
  run_any "${h}_nested" $strict in_container "$STAVE" record --hooks "$h" --strict -o nested.pftrace -- unshare -pf --mount-proc sh -c 'cat file; :'
  if [ "$h" = tracepoints ]; then
    check "${h}_nested_said" grep -q "threads were not followed: they are outside of this pid namespace, or inside of another one" "${h}_nested.err"
  else
    equals "${h}_nested_calls" "$(opens nested.pftrace file)" 1
    check "${h}_nested_inner" grep -qE 'desc="cat file \(pid 2 in pid namespace [0-9]+\)"' <("$STAVE" cat -q nested.pftrace)
  fi
}

all_processes() { # All processes: of this namespace. What others do is not in it, and that is said.
  local h=$1
  (while [ ! -e "all_$h.done" ]; do cat file; done) >/dev/null & others=$!
  run_any "${h}_all" 0 in_container sh -c '"$STAVE" record --hooks "$0" --all --duration 300ms -o all.pftrace & cat file >/dev/null; wait $!' "$h"
  touch "all_$h.done"; wait $others
  equals "${h}_all_others" "$("$STAVE" cat -q all.pftrace | sed -nE 's/^track .* process .*pid=([0-9]+) .*/\1/p' | awk '$1 > 100' | wc -l)" 0
  check "${h}_all_said" grep -q "threads were not followed: they are outside of this pid namespace" "${h}_all.err"
}

# in_each_way HOOKS CASES
in_each_way() {
  for case in inside joined outside become nested all_processes; do
    if wanted $case "$2"; then $case "$1"; fi
  done
}
in_each_way btf "inside joined outside nested all_processes"
in_each_way raw "become nested"
if [ -n "${HAS_TRACEFS:-}" ]; then in_each_way tracepoints "joined become nested"; else skip tracepoints "no tracefs"; fi

# /proc may be another namespace's: the recorder mounts one that only it sees.
run_any foreign_proc 0 unshare -pf "$STAVE" record -q --strict -o foreign.pftrace -- sh -c 'echo $$ >own; cat file; :'
equals foreign_proc_pid "$(pids foreign.pftrace sh)" "$(cat own)"
equals foreign_proc_calls "$(opens foreign.pftrace file)" 1
equals foreign_proc_own "$(findmnt -n -o TARGET -t proc | sort | uniq -d)" ''

# Mount, cgroup and user namespaces change nothing.
run_any others 0 unshare -mC "$STAVE" record -q --strict -o others.pftrace -- unshare -U cat file
equals others_calls "$(opens others.pftrace file)" 1

# The root of a user namespace has no rights: stave reports this and runs the command all the same.
if unshare -Ur true 2>/dev/null; then
  run_any user 0 unshare -Ur "$STAVE" record -o user.pftrace -- cat file
  check user_said grep -q "without system calls and block I/O: .*not permitted" user.err
  run_any user_doctor 1 unshare -Ur "$STAVE" doctor --strict
  check user_doctor_said grep -q "^no *capabilities *only those of a user namespace" user_doctor.out
else skip user "no user namespaces here"; fi

# The doctor tries it where it is.
run_any doctor 0 in_container "$STAVE" doctor --strict
check doctor_recorded grep -q "^ok *a recording *a child process was followed" doctor.out
check doctor_namespace grep -q "^ok *pid namespace *namespace of a container" doctor.out
if [ -n "${STAVE_LONG:-}" ]; then
  run_any doctor_foreign 0 unshare -pf "$STAVE" doctor --strict
  check doctor_foreign_said grep -q "^ok *pid namespace .*one is mounted" doctor_foreign.out
fi

if unshare -m true 2>/dev/null; then
  # shellcheck disable=SC2016 # for the inner shell
  run_any no_proc 1 unshare -m sh -c 'umount -l /proc && exec "$0" doctor --strict' "$STAVE"
  check no_proc_said grep -q '^no *pid namespace */proc is not mounted: mount -t proc proc /proc$' no_proc.out
  check no_proc_utilisation grep -q '^no *utilisation .*: /proc is not mounted$' no_proc.out
  check no_proc_capabilities grep -q "^ok *capabilities *root's$" no_proc.out
else skip no_proc "no mount namespaces here"; fi

# A process that is only outside.
run_any not_here 2 in_container "$STAVE" record -q -o x.pftrace -p $$
check not_here_said grep -q "there is no process $$ here" not_here.err

# Containers of one machine: each has its own process 1, also when the second gets the number of the first one's namespace.
lossy=$BUILD/tests/stress/lossy
if [ -x "$lossy" ]; then
  for n in 1 2; do in_container env STAVE_OUT="c$n.pftrace" "$lossy" "$n" exit >lossy.out 2>&1; done
  for n in 1 2; do in_container "$STAVE" record -q -o "d$n.pftrace" -- cat file >cat.out; done
  ones() { "$STAVE" cat -q "$1" | grep -c '^track .* process .* name="'"$2"'"'; }
  for way in merge_sdk merge_record listen; do
    rm -f all.pftrace
    case $way in
    merge_sdk) run_any $way 0 "$STAVE" merge -q c1.pftrace c2.pftrace -o all.pftrace ;;
    merge_record) run_any $way 0 "$STAVE" merge -q d1.pftrace d2.pftrace -o all.pftrace ;;
    listen)
      "$STAVE" listen -q "unix:$TMP/s" -o all.pftrace --senders 2 2>listen.err & listener=$!
      for _ in $(seq 600); do [ ! -S s ] || break; sleep 0.05; done
      for n in 1 2; do in_container env STAVE_OUT="unix:$TMP/s" "$lossy" "$n" exit >lossy.out 2>&1; done
      wait $listener; equals listen "$?" 0 ;;
    esac
    name=lossy; [ $way != merge_record ] || name="cat"
    equals "${way}_keeps_them_apart" "$(ones all.pftrace $name)" 2
  done
  cp c1.pftrace c1b.pftrace
  run_any one_container 0 "$STAVE" merge -q c1.pftrace c1b.pftrace -o all.pftrace
  equals one_container_is_one "$(ones all.pftrace lossy)" 1
  run_any outside 0 env STAVE_OUT=c3.pftrace "$lossy" 1 exit
  run_any again 0 "$STAVE" merge -q c1.pftrace c2.pftrace -o two.pftrace
  run_any three 0 "$STAVE" merge -q two.pftrace c3.pftrace -o all.pftrace
  equals three_stay_three "$(ones all.pftrace lossy)" 3
else skip containers "the stress programs are not built"; fi
