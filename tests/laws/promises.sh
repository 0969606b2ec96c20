#!/usr/bin/env bash
# The promises of ARCHITECTURE.md, each tried once by its number, so that a reader finds the proof; docs/reliability.md names the tests
# that try them thousands of times.
. "$SRC/tests/harness/cli.sh"
case $BUILD in *asan | *tsan) skip_all "once is enough: the release build tries them" ;; esac
numbers=$BUILD/tests/stress/numbers
export STAVE_SESSION_DIR=$TMP/sessions
mkdir -p "$STAVE_SESSION_DIR"

# events FILE: those of `numbers` in the file, and the losses that the file names, added up.
events() {
  "$STAVE" cat -q "$1" | awk '/seq=|"outer"/ { n++ } / loss / { sub(/.*\{/, ""); sub(/\}.*/, ""); n += $0 } END { print n + 0 }'
}

# has_begun: the program of the background has recorded something, so that its session is there with all its files and handlers.
has_begun() { for _ in $(seq 1200); do [ -s progress ] && [ "$(od -A n -t u8 -N 8 progress | tr -d ' ')" -gt 1000 ] && return; sleep 0.05; done; return 1; }

promise_1() { # small rings that overflow; 100,000 instants and 12,500 slices in each thread
  STAVE_OUT=one.pftrace STAVE_FULL=drop STAVE_BUFFER=16k "$numbers" 2 100000 progress
  [ "$(events one.pftrace)" = 225000 ]
}
check promise_1_every_event_is_in_the_file_or_a_loss promise_1

promise_2() {
  rm -f progress # of the program before
  STAVE_OUT=two.pftrace STAVE_FULL=block "$numbers" 1 0 progress &
  local pid=$! before
  has_begun
  kill -9 $pid; wait $pid
  echo newer >newer; cp newer two.pftrace # somebody's newer file under the same name
  before=$(od -A n -t u8 -N 8 progress | tr -d ' ')
  "$STAVE" recover two.pftrace >recovered.log || return
  cmp newer two.pftrace && "$STAVE" convert -q --strict two.recovered.pftrace -o whole.json && # a slice may be open: the program was killed in it
    [ "$("$STAVE" cat -q two.recovered.pftrace | grep -c seq=)" -ge "$before" ]
}
check promise_2_sigkill_loses_nothing_and_nothing_newer_is_overwritten promise_2

promise_3() { # a file-size limit that the trace exceeds and the program does not
  local plain traced
  plain=$(ulimit -f 64; "$numbers" 1 100000 progress; echo "exit $?")
  traced=$(ulimit -f 64; STAVE_OUT=three.pftrace "$numbers" 1 100000 progress 2>three.err; echo "exit $?")
  [ "${plain##*exit}" = " 0" ] && [ "${traced##*exit}" = " 0" ] && [ "$(od -A n -t u8 -N 8 progress | tr -d ' ')" = 100000 ]
}
check promise_3_the_traced_program_behaves_as_untraced promise_3

promise_4() {
  printf '{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1},{"ph":"X","name":"b","ts":' >torn.json
  "$STAVE" cat torn.json >torn.txt 2>torn.err && grep -q '"a"' torn.txt && grep -q 'byte [0-9]' torn.err || return
  "$STAVE" convert --strict torn.json -o torn.pftrace 2>strict.err
  [ $? = 1 ] && [ ! -e torn.pftrace ]
}
check promise_4_damage_is_reported_with_its_place promise_4

promise_5() { # nearly the whole range, there and back
  local file
  printf '[{"ph":"X","name":"first","ts":-4600000000000000.001,"dur":1.001,"pid":1,"tid":1,"args":{"deep":{"list":[1,"x"]}}},
    {"ph":"X","name":"last","ts":4600000000000000.001,"dur":0.001,"pid":1,"tid":1}]' >ends.json
  "$STAVE" convert -q ends.json -o ends.pftrace && "$STAVE" convert -q ends.pftrace -o back.json || return
  for file in ends.json ends.pftrace back.json; do "$STAVE" convert -q $file --to csv | grep slice | sort >$file.rows; done
  grep -q -- '-4600000000000000001' ends.json.rows && [ "$(wc -l <ends.json.rows)" = 2 ] && cmp ends.json.rows ends.pftrace.rows && cmp ends.json.rows back.json.rows
}
check promise_5_nanoseconds_survive_conversions promise_5

promise_6() { # monotonic clocks of two machines
  for host in left right; do
    printf '{"displayTimeUnit":"ns","metadata":{"hostname":"%s"},"traceEvents":[{"ph":"X","name":"%s","ts":1,"dur":1,"pid":1,"tid":1}]}' $host $host >$host.json
  done
  "$STAVE" merge left.json right.json -o both.pftrace 2>merge.err
  [ $? != 0 ] && [ ! -e both.pftrace ] && grep -q 'clock' merge.err
}
check promise_6_unrelated_clocks_are_not_merged promise_6

promise_7() { # no network is there, and nobody but the owner can look into a session
  [ "$(id -u)" = 0 ] || return 0
  rm -f progress # of the program before
  STAVE_OUT=seven.pftrace STAVE_FULL=block "$numbers" 1 0 progress &
  local pid=$! modes files
  has_begun
  modes=$(find "$STAVE_SESSION_DIR" -mindepth 1 -perm /077) files=$(find "$STAVE_SESSION_DIR" -mindepth 2 | wc -l)
  kill $pid; wait $pid
  [ -e seven.pftrace ] || "$STAVE" recover -q seven.pftrace # a busy machine: the handler waits for half a second, then names this command
  [ "$files" -gt 0 ] && [ -z "$modes" ] && unshare -n "$STAVE" convert -q seven.pftrace -o seven.json && unshare -n "$STAVE" stats -q seven.json >/dev/null
}
check promise_7_nothing_leaves_and_nobody_else_reads promise_7
