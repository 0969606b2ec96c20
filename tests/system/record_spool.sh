#!/usr/bin/env bash
# Records that wait in the spool: the same trace as without it, whatever happens to the recorder. STAVE_SPOOL=always makes wait what can.
# Needs root (or the capabilities) and a kernel with BTF. Waits for conditions, never for a time.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"

mkdir files; for i in $(seq 20); do echo "$i" >files/f"$i"; done
# What was done to which file, by whom, in the order of each process; without numbers that differ from run to run.
said() { "$STAVE" query -q --to csv "$1" "SELECT p.name, s.name, extract_arg(s.arg_set_id, 'path'), extract_arg(s.arg_set_id, 'bytes'), extract_arg(s.arg_set_id, 'offset')
  FROM slice s JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid) JOIN process p USING (upid) WHERE s.category = 'syscall'" |
  sed -E 's/\[[0-9]+\]/[N]/; s/\r//' | sort; }
spools() { find . -name '*.spool-*' | wc -l; }
export STAVE_SPOOL=always
# Where records must still wait when the recorder is killed: all that come can. (The stack of a wait in a program that has just begun cannot, and all that waits is decoded before it.)
waiting=(--no-offcpu)

# ---- one law: with and without ----
# Descriptors of all kinds: copies, here-documents, children, other programs, threads. Each in a folder of its own, which is left out of the comparison.
cat >work.sh <<'EOF'
"$1" book book
exec 5<../files/f1 6>copy; cat <&5 >&6; exec 5<&- 6>&-
for i in 1 2 3 4 5; do cat ../files/f$i >>copy; done
cat <<X >here
text
X
"$1" read 3 ../files 20
EOF
# The pipe that `cat` inherits has a name only where /proc was asked before the end of that process.
compare() { said "$1.pftrace" | grep -v ',pipe:\|,close,,\|^cat,[a-z0-9]*,,' | sed "s|$TMP/$1|HERE|g" | sort; }
for mode in direct waited; do
  mkdir $mode
  spool=1G; [ $mode = waited ] || spool=0
  (cd $mode && exec "$STAVE" record -q --strict --spool $spool --no-block --no-page-cache -o ../$mode.pftrace -- bash ../work.sh "$play") >/dev/null 2>$mode.err
  equals ${mode}_code $? 0
  compare $mode >$mode.txt
done
check waited_valid "$STAVE" validate -q waited.pftrace
check law_has_many test "$(wc -l <direct.txt)" -ge 200
check law_same diff direct.txt waited.txt
equals law_nothing_left "$(spools)" 0

# ---- more than it may hold ----
run_any full 0 "$STAVE" record --strict --ring 64M --spool 16M --no-block -o full.pftrace -- "$play" flood 150000
check full_all test "$(ask full.pftrace "SELECT count(*) FROM slice WHERE category = 'syscall'")" -ge 150000
equals full_paths "$(ask full.pftrace "SELECT count(*) FROM slice WHERE category = 'syscall' AND name IN ('read', 'write', 'close') AND extract_arg(arg_set_id, 'path') IS NULL")" 0

# The trace must find its place on the disk: what waits takes no more than that leaves free. The rings are large enough for a recorder that gets no
# CPU for a while.
mkdir tiny
if mount -t tmpfs -o size=64m stave-test tiny 2>/dev/null; then
  run_any disk 0 "$STAVE" record --strict --ring 64M --no-block -o tiny/t.pftrace -- "$play" flood 800000
  check disk_all test "$(ask tiny/t.pftrace "SELECT count(*) FROM slice WHERE category = 'syscall'")" -ge 800000
  umount tiny
else skip disk "cannot mount a tmpfs here"; fi

# ---- a name that only /proc has, and only while the process lives ----
rm -f go
"$STAVE" record -q --strict "${waiting[@]}" -o pipe.pftrace -- bash -c '(echo a; echo b) | { read x; echo $x >done.txt; until [ -e go ]; do sleep 0.1; done; read x; }' & recorder=$!
check pipe_waits until_true '[ -s done.txt ] && [ "$(stat -c %s pipe.pftrace.spool-'$recorder')" -gt 4200 ]'
before=$(stat -c %s pipe.pftrace.spool-$recorder)
check pipe_waits_longer until_true '[ "$(stat -c %s pipe.pftrace.spool-'$recorder')" -gt '"$before"' ]'
touch go; wait $recorder
check pipe_named test "$(ask pipe.pftrace "SELECT count(*) FROM slice WHERE name = 'read' AND extract_arg(arg_set_id, 'path') GLOB 'pipe:*'")" -ge 2
rm -f go done.txt

# ---- killed: recover finishes it, each call once ----
loop='for i in $(seq 20); do cat files/f$i >/dev/null; echo $i >done.txt; done; until [ -e go ]; do sleep 0.1; done'
"$STAVE" record -q "${waiting[@]}" -o gone.pftrace -- bash -c "$loop" & recorder=$!
check gone_waits until_true '[ "$(cat done.txt)" = 20 ] && [ "$(stat -c %s gone.pftrace.spool-'$recorder')" -gt 8192 ]'
before=$(stat -c %s gone.pftrace.spool-$recorder)
check gone_waits_longer until_true '[ "$(stat -c %s gone.pftrace.spool-'$recorder')" -gt '"$before"' ]' # what came before is there, too
kill -9 $recorder; wait $recorder 2>/dev/null; touch go
run_any gone_recovered 0 "$STAVE" recover gone.pftrace
check gone_said grep -q 'records of the kernel' gone_recovered.err
check gone_valid "$STAVE" validate -q gone.pftrace
for call in openat read close; do
  equals "gone_$call" "$(ask gone.pftrace "SELECT count(DISTINCT extract_arg(arg_set_id, 'path')) FROM slice WHERE name = '$call' AND extract_arg(arg_set_id, 'path') GLOB '$TMP/files/f*'")" 20
done
equals gone_once "$(ask gone.pftrace "SELECT count(*) FROM slice WHERE name = 'openat' AND extract_arg(arg_set_id, 'path') GLOB '$TMP/files/f*'")" 20
equals gone_names "$(ask gone.pftrace "SELECT count(*) FROM process WHERE name = 'cat'")" 20 # and bash, which may just have forked
equals gone_nothing_left "$(spools)" 0

# ---- damaged: what comes before the damage ----
rm -f go done.txt
"$STAVE" record -q "${waiting[@]}" -o cut.pftrace -- bash -c "$loop" & recorder=$!
check cut_waits until_true '[ "$(cat done.txt)" = 20 ] && [ "$(stat -c %s cut.pftrace.spool-'$recorder')" -gt 8192 ]'
kill -9 $recorder; wait $recorder 2>/dev/null; touch go
dd if=/dev/urandom of=cut.pftrace.spool-$recorder bs=1 seek=6000 count=64 conv=notrunc 2>/dev/null
run_any cut 0 "$STAVE" recover cut.pftrace
check cut_valid "$STAVE" validate -q cut.pftrace
equals cut_nothing_left "$(spools)" 0

# ---- who opens the growing file gets what is in it ----
rm -f go done.txt
"$STAVE" record -q -o live.pftrace -- bash -c "$loop" & recorder=$!
until_true '[ "$(cat done.txt)" = 20 ] && [ -e live.pftrace.spool-'$recorder' ]'
check live until_true 'grep -aq files/f20 live.pftrace.part'
touch go; wait $recorder

# ---- processes that end while their records wait take little memory: less than 2 KiB each (without the symbols of a stack that comes by chance) ----
kib() { sed -nE 's/.* ([0-9.]+) (KiB|MiB|GiB) of memory at most$/\1 \2/p' "$1" | awk '{ print int($1 * ($2 == "GiB" ? 1048576 : $2 == "MiB" ? 1024 : 1)) }'; }
for n in 300 5000; do
  run_any short_lived_$n 0 "$STAVE" record --ring 1M --no-block --no-page-cache --no-offcpu -o short_lived.pftrace -- "$play" short_lived $n 0
done
few=$(kib short_lived_300.err) many=$(kib short_lived_5000.err)
echo "  memory: $few KiB for 300 processes, $many KiB for 5000"
check short_lived_memory test "${few:-0}" -gt 0 -a $((many - few)) -le $((4700 * 2))
equals short_lived_processes "$("$STAVE" query -q --to csv short_lived.pftrace "SELECT count(*) FROM process WHERE name = 'play' AND pid > 0" | tail -n 1)" 5001
equals short_lived_exits "$("$STAVE" query -q --to csv short_lived.pftrace "SELECT count(*) FROM slice WHERE name = 'exit' AND category = 'process'" | tail -n 1)" 5001

# ---- the option ----
run_any spool_small 2 "$STAVE" record -q --spool 1k -o x.pftrace -- true
run_any spool_word 2 "$STAVE" record -q --spool much -o x.pftrace -- true

# ---- killed at any moment, also while it decodes what waits: no call is missing in between, none is there twice ----
if [ -z "${STAVE_LONG:-}" ]; then skip kills "30 kills: STAVE_LONG=1"
elif ! [ -x "$BUILD/bench/record_load" ]; then skip kills "needs bench/record_load"
else
  mkdir many; for i in $(seq 0 999); do : >many/f"$i"; done
  cat >kills.awk <<'EOF'
NR > 1 { sub(/.*\/f/, "", $3); if ($1 in last && ($3 != (last[$1] + 1) % 1000 || $2 == at[$1])) bad++; last[$1] = $3; at[$1] = $2; n++ }
END { print bad + 0, (n > 0) }
EOF
  wrong=0 some=0 # a recovery that fails is wrong, too
  for _ in $(seq 30); do
    rm -f kill.*
    "$STAVE" record -q --no-summary --spool 16M -o kill.pftrace -- "$BUILD/bench/record_load" many 1000 2 600000 >/dev/null & recorder=$!
    sleep "0.$((RANDOM % 50 + 45))"; kill -9 $recorder; wait $recorder 2>/dev/null
    [ -e kill.pftrace.part ] || continue # before it had begun
    "$STAVE" recover -q kill.pftrace 2>/dev/null || { wrong=$((wrong + 1)); continue; }
    read -r bad any < <("$STAVE" query -q --to csv kill.pftrace "SELECT track_id, ts, extract_arg(arg_set_id, 'path') FROM slice WHERE name = 'openat'
      AND extract_arg(arg_set_id, 'path') GLOB '$TMP/many/f*' ORDER BY track_id, ts" | tr -d '"' | awk -F, -f kills.awk)
    wrong=$((wrong + bad)) some=$((some + any))
  done
  equals kills_wrong $wrong 0
  check kills_some test $some -ge 15
  equals kills_nothing_left "$(spools)" 0
fi
