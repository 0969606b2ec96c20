#!/usr/bin/env bash
# One STAVE_OUT for many processes: every event that was recorded is in some file, and no file of a finished process goes without a word.
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
mkdir -m 700 "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
held=$BUILD/tests/stress/held
# total FILE...: events and losses in them
total() {
  local f
  for f; do "$STAVE" cat -q "$f"; done | awk '/seq=/ { n++ } / loss / && match($0, /\{[0-9]+\}$/) { n += substr($0, RSTART + 1, RLENGTH - 2) } END { print n + 0 }'
}

# ---- twenty processes, each of which overlaps with the one before it and the one after it only ----
mkdir chain
declare -a pids ins
begin() { # NUMBER: when this returns, it has its name and half of its events
  i=$1
  mkfifo "in.$i"
  STAVE_OUT=chain/t.pftrace "$held" 2500 <"in.$i" >"out.$i" 2>"err.$i" & pids[i]=$!
  exec {fd}>"in.$i"; ins[i]=$fd
  until_true 'grep -q half "out.$i"'
}
end() { echo >&"${ins[$1]}"; wait "${pids[$1]}"; }
begin 1
for n in $(seq 2 20); do begin "$n"; end $((n - 1)); done
end 20
echo "  $(find chain -type f | wc -l) files"
check chain_every_event test "$(total chain/*)" = 100000
check chain_nothing_else sh -c '! ls chain | grep -Ev "^t(\.[0-9]+)?\.pftrace$"'
check chain_valid sh -c 'for f in chain/*; do "$0" validate -q --strict "$f" || exit 1; done' "$STAVE"
check chain_says grep -q 't.pftrace: a process of this job has written it before: that trace is now .*/chain/t.1.pftrace' err.3
check chain_one_line_each sh -c 'for i in $(seq 20); do [ "$(wc -l <err.$i)" -le 1 ] || exit 1; done'

# ---- all at once ----
mkdir crowd
for i in $(seq 20); do STAVE_OUT=crowd/t.pftrace "$held" 2500 </dev/null >/dev/null 2>"crowd.$i" & all[i]=$!; done
wait "${all[@]}"
check crowd_every_event test "$(total crowd/*)" = 100000

# ---- one after the other: the newest has the name ----
mkdir row
for n in 100 200 300; do STAVE_OUT=row/t.pftrace "$held" $n </dev/null >/dev/null 2>"row.$n"; done
check row_newest test "$(total row/t.pftrace)" = 600
check row_all test "$(total row/t.1.pftrace) $(total row/t.2.pftrace)" = '200 400'
check row_first_says_nothing test ! -s row.100

# ---- another job: the file of an earlier run is replaced, and a line says so ----
mkdir jobs
# Times of processes are coarse: what is that young when a job begins counts as its own.
is_older() { [ $(($(date +%s%N) - $(stat -c %.9Z "$1" | tr -d .))) -gt 50000000 ]; }
for n in 100 200; do
  STAVE_OUT=jobs/t.pftrace setsid -w "$held" $n </dev/null >/dev/null 2>"jobs.$n"
  until_true 'is_older jobs/t.pftrace'
done
check jobs_replaced test "$(total jobs/*)" = 400 -a "$(ls jobs)" = t.pftrace
check jobs_says grep -qE '^stave: .*/jobs/t.pftrace: the trace of an earlier run was replaced$' jobs.200
check jobs_first_says_nothing test ! -s jobs.100
run_any record_replaces 0 "$STAVE" record --no-summary --no-io --no-block --no-page-cache -o jobs/t.pftrace -- true
check record_says grep -q 'jobs/t.pftrace: the file of an earlier run was replaced' record_replaces.err

# ---- a loop does not fill a disk: at most 99 are kept ----
mkdir loop; for n in $(seq 99); do echo kept >"loop/t.$n.pftrace"; done
for n in 100 200; do STAVE_OUT=loop/t.pftrace "$held" $n </dev/null >/dev/null 2>"loop.$n"; done
check loop_bounded test "$(find loop -type f | wc -l)" = 100 -a "$(total loop/t.pftrace)" = 400
check loop_says grep -q 'the trace of an earlier run was replaced' loop.200
