#!/usr/bin/env bash
# System calls that are interrupted (EINTR), and reads and writes that do half of what was asked (fault/fault.c): nothing is missing afterwards, or
# the command says what it could not do. Both are as good as never seen on an idle machine.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
case $BUILD in *tsan | *asan) skip_all "the sanitizer is between the program and the shim" ;; esac
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
mkdir -m 700 "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
${CC:-cc} -std=c17 -O1 -shared -fPIC -o fault.so "$SRC/tests/stress/fault/fault.c" -ldl || { not_ok shim; exit 1; }
numbers=$BUILD/tests/stress/numbers
quick=() # without the kernel's side also for root: it takes a moment to load
[ "$(id -u)" != 0 ] || quick=(setpriv --bounding-set=-all --inh-caps=-all)
record=("${quick[@]}" "$STAVE" record --no-summary --no-io --no-block --no-page-cache --interval 0 --gpu-interval 0)

# faulty HOW IN FILE COMMAND…: HOW is CALL:4 (every second call is interrupted) or CALL:0 (all do half)
faulty() {
  local how=$1:0 in=$2 file=$3; shift 3
  case $how in *:4:0) how=$how:-2 ;; esac
  rm -f "$TMP/hit"
  env FAULT="$how" FAULT_IN="$in" ${file:+FAULT_FILE="$file"} FAULT_HIT="$TMP/hit" LD_PRELOAD="$TMP/fault.so" timeout 120 "$@" </dev/null
}
was_hit() { check "$1_was_hit" test -e hit; }
count() { "$STAVE" cat -q "$1" | grep -c seq=; }

# ---- readers and writers of files ----
STAVE_OUT=in.pftrace "$numbers" 1 3000 progress >out 2>err
"$STAVE" cat -q in.pftrace >want.txt
for how in read:4 read:0 write:4 write:0; do
  name=convert_${how/:/_}
  run_any "$name" 0 faulty $how "$STAVE" pftrace "$STAVE" convert -q in.pftrace -o out.pftrace
  was_hit "$name"
  "$STAVE" cat -q out.pftrace >got.txt
  check "${name}_whole" diff want.txt got.txt
done

# ---- --copy-output and --archive ----
{ echo ':::MLLOG {"namespace": "", "time_ms": 1700000000000, "event_type": "POINT_IN_TIME", "key": "run_start", "value": null, "metadata": {}}'; seq 100000; } >app.log
seq 100000 >seen.txt
# package NAME HOW FILE: all that was written is in the folder and in the archive
package() {
  local name=$1 how=$2 file=$3
  rm -rf runs unpacked
  run_any "$name" 0 faulty "$how" "$STAVE" "$file" "${record[@]}" -q --out-dir runs --archive --copy-output --log app.log -- seq 100000
  was_hit "$name"
  check "${name}_passed_on" cmp seen.txt "$name.out"
  check "${name}_copied" cmp seen.txt runs/run-0001/stdout.log
  check "${name}_log" cmp app.log runs/run-0001/log-1-app.log
  command -v zstd >/dev/null || { skip "${name}_archive" "no zstd here"; return; }
  mkdir unpacked; zstd -dcq runs/*.tar.zst runs/*/*.tar.zst 2>/dev/null | tar -x -C unpacked
  check "${name}_archive" diff -r runs/run-0001 unpacked/run-0001 -x '*.tar.zst'
}
package archive_short_write write:0 tar.zst
package archive_interrupted_write write:4 tar.zst
package archive_short_read read:0 trace.pftrace
package archive_interrupted_read read:4 trace.pftrace
package log_short_write write:0 log-1-app
package log_interrupted_write write:4 log-1-app
package log_interrupted_read read:4 app.log
package copy_interrupted_write write:4 stdout.log
package copy_short_through write:0 stdout.log
package copy_interrupted_read read:4 pipe:
package copy_interrupted_poll poll:4 ''

# ---- the marker of a claim: read while it is held ----
for how in write:4 write:0; do
  name=claim_${how/:/_}
  run_any "$name" 0 faulty $how "$STAVE" claim.pftrace.session "${record[@]}" -q -o claim.pftrace -- cat claim.pftrace.session
  was_hit "$name"
  [ -e claim.keys ] || "${record[@]}" -q -o claim.pftrace -- cat claim.pftrace.session 2>/dev/null | cut -d' ' -f1 >claim.keys
  check "${name}_whole" sh -c 'test -s claim.keys && cut -d" " -f1 "$0" | diff claim.keys -' "$name.out"
done

# ---- a sender and its listener ----
# stream NAME HOW WHO FILE: 3,000 events through a listener; WHO: the one whose calls fail
stream() {
  local name=$1 how=$2 who=$3 file=$4 listener sender=() listen=()
  if [ "$who" = sender ]; then sender=(faulty "$how" libstave.so "$file"); else listen=(faulty "$how" "$STAVE" "$file"); fi
  rm -f l.err s.pftrace unsent.pftrace hit
  "${listen[@]}" "$STAVE" listen "unix:$TMP/s" -o s.pftrace --senders 1 >l.out 2>l.err & listener=$!
  check "${name}_listens" until_true 'grep -q listening l.err'
  STAVE_STREAM_FILE=$TMP/unsent.pftrace STAVE_STREAM_MS=60000 STAVE_BUFFER=16k STAVE_OUT=unix:$TMP/s \
    run_any "$name" 0 "${sender[@]}" "$numbers" 1 3000 progress
  check "${name}_silent" test ! -s "$name.err" -a ! -e unsent.pftrace
  [ -z "$(jobs -r)" ] || until_true '[ -s s.pftrace ]' || kill $listener
  wait $listener; check "${name}_listener" test $? = 0
  was_hit "$name"
  check "${name}_all" test "$(count s.pftrace)" = 3000
}
for how in send:4 send:0 recv:4 recv:0 poll:4; do stream "sender_${how/:/_}" $how sender ''; done
for how in read:4 read:0 ppoll:4; do stream "listener_${how/:/_}" $how listener ''; done
for how in pwritev:4 pwritev:0 pread:4 pread:0; do stream "spool_${how/:/_}" $how listener s.pftrace; done

# A listener that cannot read lets its sender go: the rest goes to a file, and nothing is missing.
for how in write:4 write:0; do
  name=unsent_${how/:/_}
  rm -f l.err s.pftrace unsent.pftrace
  FAULT=read:5:3 FAULT_IN=$STAVE FAULT_FILE=socket: LD_PRELOAD=$TMP/fault.so "$STAVE" listen "unix:$TMP/s" -o s.pftrace >l.out 2>l.err & listener=$!
  check "${name}_listens" until_true 'grep -q listening l.err'
  STAVE_STREAM_FILE=$TMP/unsent.pftrace STAVE_BUFFER=16k STAVE_OUT=unix:$TMP/s run_any "$name" 0 faulty $how libstave.so unsent "$numbers" 1 30000 progress
  was_hit "$name"
  kill -INT $listener; wait $listener
  check "${name}_all" test "$(($(count s.pftrace) + $(count unsent.pftrace)))" -ge 30000
  check "${name}_whole" "$STAVE" cat -q --strict unsent.pftrace
done

# ---- spans to a collector ----
for how in send:4 send:0 recv:4 recv:0 poll:4; do
  name=post_${how/:/_}
  rm -f l.err got.pftrace
  "$STAVE" listen --otlp 127.0.0.1:0 -o got.pftrace >l.out 2>l.err & listener=$!
  check "${name}_listens" until_true 'grep -q Ctrl-C l.err'
  run_any "$name" 0 faulty $how "$STAVE" '' "$STAVE" export -q in.pftrace --to otlp --category slices -o "http://127.0.0.1:$(sed -n 's/.*OTLP on port \([0-9]*\).*/\1/p' l.err)"
  was_hit "$name"
  kill -INT $listener; wait $listener
  check "${name}_all" test "$("$STAVE" cat -q got.pftrace | grep -c '"outer"')" = "$(grep -c '"outer"' want.txt)"
done
