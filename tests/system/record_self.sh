#!/usr/bin/env bash
# A recording of a program that uses libstave has the program's calls, pages and threads, not those of the library; --self adds them. Needs root (or the capabilities) and a kernel with BTF.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
program=$BUILD/examples/training
run_any can 0 "$STAVE" record -q --strict --interval 0 --no-summary -o can.pftrace -- true || skip_all "no system calls here: $(cat can.err)"
ask() { "$STAVE" query -q --no-index --to csv "$1" "$2" | sed 1d; }
own_files="extract_arg(arg_set_id, 'path') glob '/dev/shm/stave-[0-9]*' or extract_arg(arg_set_id, 'path') glob '/tmp/stave-[0-9]*' or extract_arg(arg_set_id, 'path') glob '/run/user/*/stave*'"
for self in '' --self; do
  name=collected$self
  # shellcheck disable=SC2086 # none, or one word
  run_any "$name" 0 "$STAVE" record -q --strict --interval 0 --no-summary $self -o "$name.pftrace" -- "$program"
  check "${name}_has_events" test "$(ask "$name.pftrace" "select count(*) from slice where category not in ('syscall', 'fault', 'page_cache', 'page_created', 'process')")" -gt 0
  # A program that writes its own trace has a thread of the library.
  name=own$self
  # shellcheck disable=SC2086
  run_any "$name" 0 "$STAVE" record -q --strict --sched --interval 0 --no-summary $self -o "$name.pftrace" -- env -u STAVE_SESSION STAVE_OUT="$TMP/inner$self.pftrace" "$program"
  check "${name}_inner" test -s "inner$self.pftrace"
done
by_writer="select count(*) from slice s join track k on k.id = s.track_id join thread t on t.utid = k.owner_utid where t.name = 'stave-writer'"
check files_are_hidden test "$(ask collected.pftrace "select count(*) from slice where $own_files")" = 0
check files_are_shown test "$(ask collected--self.pftrace "select count(*) from slice where $own_files")" -gt 0
check calls_are_hidden test "$(ask own.pftrace "$by_writer and category = 'syscall'")" = 0
check calls_are_shown test "$(ask own--self.pftrace "$by_writer and category = 'syscall'")" -gt 0
# What it does before it has its name is not known to be its own.
check states_are_hidden test "$(ask own.pftrace "$by_writer and category = 'thread_state'")" -le 4
equals no_state_is_open "$(ask own.pftrace "$by_writer and category = 'thread_state' and s.dur < 0")" 0
check states_are_shown test "$(ask own--self.pftrace "$by_writer and category = 'thread_state'")" -gt 4
