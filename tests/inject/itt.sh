#!/usr/bin/env bash
# ITT in programs that know nothing of Stave: one with a part of its own making (itt_play), and oneDNN, which has the public one inside.
. "$SRC/tests/harness/cli.sh"
library=$BUILD/libstave-itt.so programs=$BUILD/tests/inject
[ -e "$library" ] || skip_all "libstave-itt.so was not built"
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block INTEL_LIBITTNOTIFY64=$library
mkdir -p "$STAVE_SESSION_DIR"
has() { check "$1: $2" grep -qE -- "$3" "$1.text"; }
count() { check "$1: $2 ($4)" test "$(grep -cE -- "$3" "$1.text")" = "$4"; }

run_any play 0 env STAVE_OUT=play.pftrace "$programs/itt_play"
check "play: nothing on stderr" test ! -s play.err
"$STAVE" cat -q play.pftrace >play.text
count play "tasks" 'begin .*"step" cat="user_annotation" \{domain="com.example" id="7' 3
has play "metadata, with the end" 'end .*\{index=2 weights=\[1.5 2.5 3.5\] small=-7 label="a \\"label\\"" cut="abc"\}'
count play "frames on their own row" 'begin .*"frame" ' 4
has play "the row" 'track .*name="ITT frames"'
count play "relations" 'instant .*"is dependent on" .*tail="7' 2
check "play: with arrows from one step to the next" test "$("$STAVE" query -q --to csv play.pftrace "SELECT count(*) FROM flow f JOIN slice s ON s.id = f.slice_out WHERE s.name = 'step'" | tail -n 1)" = 2
count play "markers" 'instant .*"here"' 3
has play "markers and metadata of the process" 'instant .*"metadata" .*build="release"'
has play "counters" 'counter .*name="com.example: queue length"'
count play "their values" ' counter #[0-9]+ \{(1|10|9|0.25|100|99)\}' 6
has play "names of threads" 'thread .*name="helper"'
count play "tasks that end elsewhere" '"ended elsewhere" .*id="1.1"' 1
has play "tasks that overlap, with their parent" '"overlapping" .*\{note="while open" domain="com.example" id="1.2".* parent="1.1"\}'
check "play: on different rows" test "$(grep -E '"(ended elsewhere|overlapping)"' play.text | awk '{ print $3 }' | sort -u | wc -l)" = 2
has play "regions" '"region" cat="user_annotation"'
has play "what never ended" '"never ended" .*unfinished=true'
has play "old events" 'begin .*"old event"'
has play "old marks" 'instant .*"old mark" .*parameter="parameter"'
count play "deeper than the table" 'begin .*"deep"' 128
count play "more at a time than rows" 'begin .*"many"' 100
has play "one that begins twice" '"twice" .*error="begun twice'
count play "nothing of a domain that is off, nor while paused" '"(of a domain that is off|paused)"' 0
has play "the pause itself" '"ITT paused"'
"$STAVE" validate -q play.pftrace >sound 2>&1
check "play: every begin has its end" awk '/^error|unfinished|without-begin/ { bad = 1 } END { exit bad }' sound
check "old: a part of another version is left alone" "$programs/itt_play" old
check "off: without STAVE_OUT" "$programs/itt_play"

if "$STAVE" record --help 2>/dev/null | grep -- --inject >/dev/null; then
  run_any recorded 0 env -u INTEL_LIBITTNOTIFY64 "$STAVE" record --inject itt -q -o recorded.pftrace -- "$programs/itt_play"
  "$STAVE" cat -q recorded.pftrace >recorded.text
  has recorded "stave record --inject itt" '"step" cat="user_annotation"'
fi

case $BUILD in *asan | *tsan) watched=1 ;; *) watched= ;; esac
if [ -n "$watched" ]; then skip dnnl "not under a sanitizer: oneDNN compiles its code in the process"
elif [ -x "$programs/itt_dnnl" ]; then
  STAVE_OUT=dnnl.pftrace "$programs/itt_dnnl" >dnnl.out 2>&1; code=$?
  if [ $code = 77 ]; then skip dnnl "$(cat dnnl.out)"; else
    "$STAVE" cat -q dnnl.pftrace >dnnl.text
    check "oneDNN runs" test $code = 0
    check "oneDNN: its primitives are slices" test "$(grep -c '"eltwise" cat="user_annotation" {domain="dnnl::primitive::execute"}' dnnl.text)" -ge 5
  fi
else skip dnnl "oneDNN was not there when the tests were built (package libdnnl-dev)"; fi
