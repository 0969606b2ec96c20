#!/usr/bin/env bash
# stave record where its file cannot grow: full disks, limits, quotas, broken disks. What was recorded stays, what is missing is counted and said,
# and the command does not notice. Needs root, to mount small file systems; the kernel's side of stave record is not needed and left out, so that
# every event is one of the program's.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root: to mount a small file system"
mkdir tiny; mount -t tmpfs -o size=320k stave-test tiny 2>/dev/null || skip_all "cannot mount a tmpfs here"
trap 'umount "$TMP/tiny"; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
EVENTS=20000
record=(setpriv --bounding-set=-all --inh-caps=-all "$STAVE" record --no-summary --interval 0 --gpu-interval 0 --no-look --no-inject)
numbers=("$BUILD/tests/stress/numbers" 2 "$EVENTS" progress)
total=$((2 * (EVENTS + EVENTS * 2 / 8))) # an instant each, and every eighth in a slice: begin and end
fresh() { rm -rf tiny/* "${STAVE_SESSION_DIR:?}"/*; }
events() { "$STAVE" cat -q "$1" | grep -cE '^-?[0-9.]+ (begin|end|instant) '; }
loss() { "$STAVE" cat -q "$1" | sed -n 's/.* loss .*{\([0-9]*\)}$/\1/p' | awk '{ s += $1 } END { print s + 0 }'; }
said() { sed -n 's/.*; \([0-9,]*\) events of the .* after that are lost.*/\1/p' "$1" | tr -d ,; }
law() { # NAME TRACE: in the file and lost in the file are all, the message says the same, nothing else is left
  local in lost; in=$(events "$2") lost=$(loss "$2")
  check "$1_law" test $((in + lost)) = $total -a "$in" -gt 1000
  check "$1_says_how_many" test "$(said "$1.err")" = "$lost"
  check "$1_ran_to_its_end" test "$(od -A n -t u8 -N 16 progress | tr -s ' ')" = " $EVENTS $EVENTS"
  check "$1_nothing_left" test "$(find tiny "$STAVE_SESSION_DIR" -mindepth 1 | paste -sd' ')" = "$2"
}

run_any disk 4 "${record[@]}" -o tiny/t.pftrace -- "${numbers[@]}"
check disk_why grep -q "tiny/t.pftrace: cannot write: No space left on device: the trace ends .* after its beginning" disk.err
check disk_what_to_do grep -q "are lost; free space there, record to another folder (-o) or less (--max-size, --last)$" disk.err
check disk_command_untouched grep -qx "0 lost" disk.out
check disk_used_what_there_was test "$(stat -c %s tiny/t.pftrace)" -gt 120000
law disk tiny/t.pftrace
check disk_order awk -f "$SRC/tests/stress/check_numbers.awk" <("$STAVE" cat -q tiny/t.pftrace)

fresh
run_any json 4 "${record[@]}" -o tiny/t.json -- "${numbers[@]}"
law json tiny/t.json
check json_is_json python3 -c 'import json; json.load(open("tiny/t.json"))'

# Compressed it grows in members that end at each commit: it is cut after one of them, and its end is another.
fresh; mount -o remount,size=200k tiny
run_any gzip 4 "${record[@]}" -o tiny/t.json.gz -- "${numbers[@]}"
law gzip tiny/t.json.gz
check gzip_is_whole gzip -t tiny/t.json.gz
check gzip_is_json python3 -c 'import gzip, json; json.load(gzip.open("tiny/t.json.gz"))'
fresh; mount -o remount,size=320k tiny

# A SIGKILL: what was committed is a trace again.
"${record[@]}" -q -o tiny/k.json.gz -- sh -c '"$@"; echo >ran; until [ -e killed ]; do sleep 0.05; done' x "$BUILD/tests/stress/numbers" 2 1000 progress & recorder=$!
until [ -e ran ] && [ -s tiny/k.json.gz.part ]; do sleep 0.05; done
kill -KILL $recorder; wait $recorder; touch killed
check killed_grows_as_gzip test "$(od -A n -t x1 -N 2 tiny/k.json.gz.part)" = ' 1f 8b'
mount -o remount,size=64m tiny
check killed_recovers "$STAVE" recover -q tiny/k.json.gz
check killed_has_all test "$(events tiny/k.json.gz)" = $((2 * (1000 + 1000 * 2 / 8)))
check killed_is_json python3 -c 'import gzip, json; json.load(gzip.open("tiny/k.json.gz"))'
fresh; mount -o remount,size=320k tiny

if [ -n "${STAVE_LONG:-}" ]; then
fresh; echo old >tiny/t.pftrace # an older file is replaced when the new one has its end, not before. Our failure counts more than the command's
run_any older 4 "${record[@]}" -o tiny/t.pftrace -- sh -c 'grep -qx old tiny/t.pftrace && "$@"; exit 3' x "${numbers[@]}"
law older tiny/t.pftrace
fi

# A format that cannot be ended once it is cut: the growing file is kept, and the command that is printed makes the trace of it.
fresh
run_any other 4 "${record[@]}" -o tiny/t.csv -- "${numbers[@]}"
check other_kept test -s tiny/t.csv.part -a -s tiny/t.csv.session -a ! -e tiny/t.csv -a ! -e tiny/t.csv.part.new
check other_says_how grep -q "; it is kept as .part: free space there, then run: stave recover tiny/t.csv$" other.err
mount -o remount,size=64m tiny
check other_recovers "$STAVE" recover -q tiny/t.csv
check other_law test $(($(grep -c ',instant,\|,slice,' tiny/t.csv) + $(sed -n 's/.*,loss,.*,\([0-9]*\),[^,]*$/\1/p' tiny/t.csv | head -n 1))) -gt 5000
fresh; mount -o remount,size=320k tiny
# All of it was recorded, but there is no space for the other format: nothing is lost, and the same command makes the trace.
run_any format 4 "${record[@]}" -o tiny/t.csv -- "$BUILD/tests/stress/numbers" 2 4000 progress
check format_kept test -s tiny/t.csv.part -a -s tiny/t.csv.session -a ! -e tiny/t.csv -a ! -e tiny/t.csv.part.new
check format_lost_nothing sh -c '! grep -q "are lost" format.err'
check format_says_how grep -q "tiny/t.csv: .*No space left on device; it is kept as .part: free space there, then run: stave recover tiny/t.csv$" format.err
mount -o remount,size=64m tiny
check format_recovers "$STAVE" recover -q tiny/t.csv
check format_has_all test "$(grep -c ',instant,.*seq' tiny/t.csv)" = 8000
fresh; mount -o remount,size=320k tiny

# Parts: those before are whole, the newest has the loss.
fresh
run_any rotate 4 "${record[@]}" --rotate 256K -o tiny/t.pftrace -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$0" 2 2000 progress; done' "${numbers[0]}"
check rotate_parts test -s tiny/t-0001.pftrace -a -s tiny/t.pftrace
in=0 lost=0; for f in tiny/*.pftrace; do in=$((in + $(events "$f"))); lost=$((lost + $(loss "$f"))); done
check rotate_law test $((in + lost)) -ge $total
check rotate_says test "$(said rotate.err)" = "$lost"
check rotate_nothing_left sh -c '! ls tiny | grep -q "part$\|session$"'

# A ring is joined at its end, for which there is no space: all its segments stay.
fresh; mount -o remount,size=1100k tiny
run_any ring 4 "${record[@]}" --last 2M -o tiny/t.pftrace -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "$0" 2 7500 progress; done' "${numbers[0]}"
check ring_kept sh -c 'ls tiny | grep -q ring-0001 && ls tiny | grep -q "part$" && ls tiny | grep -q "session$"'
check ring_says_how grep -q "stave recover tiny/t.pftrace$" ring.err
mount -o remount,size=64m tiny
check ring_recovers "$STAVE" recover -q tiny/t.pftrace
check ring_law test $(($(events tiny/t.pftrace) + $(loss tiny/t.pftrace))) = $((12 * 2 * (7500 + 2 * ((7500 + 7) / 8))))
check ring_nothing_left test "$(find tiny "$STAVE_SESSION_DIR" -mindepth 1 | paste -sd' ')" = tiny/t.pftrace
fresh; mount -o remount,size=320k tiny

# Nothing can be written at all: nothing is begun, and nothing is left.
fresh; head -c 318000 /dev/zero >tiny/fill
run_any full 4 "${record[@]}" -o tiny/t.pftrace -- touch started
check full_did_not_start test ! -e started -a "$(ls -A tiny)" = fill
fresh

# ---- limits ----
mkdir plain
run_any limit 4 env STAVE_BUFFER=64k bash -c 'ulimit -f 150; exec "$@"' x "${record[@]}" -o plain/t.pftrace -- "$BUILD/tests/stress/numbers" 2 $EVENTS progress
check limit_why grep -q "plain/t.pftrace: cannot write: File too large" limit.err
check limit_what_to_do grep -q "are lost; raise the limit (ulimit -f) or record less" limit.err
check limit_law test $(($(events plain/t.pftrace) + $(loss plain/t.pftrace))) = $total
check limit_nothing_left test "$(ls -A plain)" = t.pftrace
# The command has the signals that it would have without us.
signals=(sed -n 's/^SigIgn:.//p' /proc/self/status)
run_any signals 0 "${record[@]}" -q -o plain/s.pftrace -- "${signals[@]}"
check signals_as_before test "$(cat signals.out)" = "$("${signals[@]}")"
(trap '' XFSZ; "${record[@]}" -q -o plain/s.pftrace -- "${signals[@]}" >inherited.out 2>&1; "${signals[@]}" >inherited.expected)
check signals_inherited diff inherited.out inherited.expected

# ---- broken disks, quotas, file systems that cannot reserve (fault.c) ----
case $BUILD in *tsan | *asan) skip faults "the sanitizer is between the program and the shim"; exit ;; esac
${CC:-cc} -std=c17 -O1 -shared -fPIC -o fault.so "$SRC/tests/stress/fault/fault.c" -ldl || not_ok shim
fault() { # NAME FAULT FILE: `-o FILE`, whose growing file has the fault
  local name=$1 fault=$2 out=$3; rm -rf plain; mkdir plain
  run_any "$name" 4 env FAULT="$fault" FAULT_IN=/stave FAULT_FILE=.part LD_PRELOAD="$TMP/fault.so" "${record[@]}" -o "$out" -- "$BUILD/tests/stress/numbers" 2 $EVENTS progress
}
fault broken write:5:6 plain/t.pftrace
check broken_why grep -q "plain/t.pftrace: cannot write: Input/output error: the trace ends" broken.err
check broken_what_to_do grep -q "are lost; record to another folder (-o)$" broken.err
check broken_valid "$STAVE" cat -q --strict plain/t.pftrace
check broken_says test $(($(events plain/t.pftrace) + $(said broken.err))) = $total
check broken_nothing_left test "$(ls -A plain)" = t.pftrace
fault quota fallocate64:122:0 plain/t.pftrace
check quota_before_it_begins grep -q "cannot write: Disk quota exceeded" quota.err
if [ -n "${STAVE_LONG:-}" ]; then
fresh
fault unreserved fallocate64:95:0 tiny/t.pftrace
check unreserved_law test $(($(events tiny/t.pftrace) + $(loss tiny/t.pftrace))) = $total
check unreserved_nothing_left test "$(ls -A tiny)" = t.pftrace
fi
# It cannot even be cut: it is kept as it is, and the marker knows how much of it is whole.
fresh
fault uncut ftruncate64:5:0 tiny/t.pftrace
check uncut_kept test -s tiny/t.pftrace.part -a -s tiny/t.pftrace.session -a ! -e tiny/t.pftrace
check uncut_says_how grep -q "; it is kept as .part: free space there, then run: stave recover tiny/t.pftrace$" uncut.err
whole=$(sed -n 's/^whole 0*//p' tiny/t.pftrace.session)
check uncut_not_all_is_whole test "$whole" -lt "$(stat -c %s tiny/t.pftrace.part)"
truncate -s "$whole" tiny/t.pftrace.part
mv tiny/t.pftrace.part whole.pftrace
check uncut_whole "$STAVE" cat -q --strict whole.pftrace
