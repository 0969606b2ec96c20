#!/usr/bin/env bash
# Recordings of days: parts by size and by time, within --disk, one trace together. Without the kernel's side, so that every event is one of the
# program's.
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
bare=(setpriv --bounding-set=-all --inh-caps=-all "$STAVE" record --no-summary --no-explain --gpu-interval 0 --no-look --no-inject --interval 0)
[ "$(id -u)" = 0 ] || bare=("${bare[@]:3}")
wrong() { # NAME MESSAGE OPTION…
  run_any "wrong_$1" 2 "$STAVE" record -q -o x.pftrace "${@:3}" -- true
  check "wrong_$1_says" grep -qF -- "$2" "wrong_$1.err"
}
wrong time "--rotate: '10ms' is neither a size of at least 256K, such as 512M, nor a time of at least a second" --rotate 10ms
wrong size "--rotate: '1K' is neither a size" --rotate 1K
wrong count "--rotate: '1s,0' is neither a size" --rotate 1s,0
wrong disk "--disk: at least 1M" --rotate 1M --disk 3

# By time: every step is in exactly one part, in the order of the parts.
run_any time 0 "${bare[@]}" --rotate 1s -o time.pftrace -- "$BUILD/tests/stress/paced" step=20*70
check time_parts test "$(find . -name 'time-0*.pftrace' | wc -l)" -ge 1
steps=0; for part in time-0*.pftrace time.pftrace; do
  check "valid_$part" "$STAVE" validate -q "$part"
  n=$("$STAVE" query "$part" "select count(*) from slice where name = 'step'" | tail -n 1); steps=$((steps + n))
done
check time_together test "$("$STAVE" query time-0*.pftrace time.pftrace "select count(*) from slice where name = 'step'" | tail -n 1)" = 70
check time_one_each test "$steps" -ge 70 -a "$steps" -le $((70 + $(find . -name 'time*.pftrace' | wc -l)))

# Bounded disk: the oldest parts go, the newest are there, and what is there is whole.
"${bare[@]}" --rotate 256K --disk 1M -o disk.pftrace -- "$BUILD/tests/stress/epochs" 1 full 2>disk.err &
check disk_goes_on until_true '[ -e disk-0007.pftrace ]'
status_says() { "$STAVE" status --json | python3 -c 'import json, sys; (r,) = json.load(sys.stdin)["recordings"]; assert r["parts"]["files"] >= 7 and r["parts"]["removed"] >= 1 and r["disk_limit"] == 1 << 20 and r["events"] > 0 and r["lost"] == 0 and r["budget"] is None and r["triggers"] is None and "sdk" in r["recorded"] and r["since_utc"].startswith("20"), r'; }
check disk_status until_true status_says # it is written twice a second
check disk_bounded_now test "$(cat disk*.pftrace* 2>/dev/null | wc -c)" -le $(((1 << 20) + (512 << 10)))
touch full; wait $!
check disk_bounded test "$(cat disk*.pftrace | wc -c)" -le $(((1 << 20) + (512 << 10)))
check disk_oldest_gone test ! -e disk-0001.pftrace -a "$(find . -name 'disk-0*.pftrace' | wc -l)" -ge 1
check disk_says grep -qE '^stave record: [0-9]+ parts, the oldest [0-9]+ of them removed; the newest is disk.pftrace$' disk.err
for part in disk*.pftrace; do check "valid_$part" "$STAVE" validate -q "$part"; done
check count_runs "${bare[@]}" --rotate 256K,2 -o count.pftrace -- "$BUILD/tests/stress/epochs" 300
check count_two test "$(find . -name 'count*.pftrace' | wc -l)" = 2
