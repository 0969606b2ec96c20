#!/usr/bin/env bash
# stave export --to perfetto-tar: the archive, its manifest, and what is refused.
. "$SRC/tests/harness/cli.sh"
python3 "$SRC/tests/cli/lake/make_ranks.py" .
run_any export 0 "$STAVE" export -q rank3.txt rank0.txt rank1.txt rank2.txt -o job.tar
run listing 0 tar -tf job.tar
run manifest 0 tar -xOf job.tar perfetto_manifest.json

# Each member is the trace that convert makes; Python's reader of archives agrees with tar.
mkdir out && tar -xf job.tar -C out
for r in 0 1 2 3; do
  "$STAVE" convert -q rank$r.txt -o own$r.pftrace
  check "rank$r" cmp own$r.pftrace out/rank000$r.pftrace
done
check python_reads_it python3 -c "
import json, tarfile
with tarfile.open('job.tar') as t:
    names = t.getnames()
    m = json.load(t.extractfile('perfetto_manifest.json'))['perfetto_manifest']
    assert t.extractfile('rank0002.pftrace').read() == open('own2.pftrace', 'rb').read()
assert m['version'] == 1 and [f['path'] for f in m['files']] == names[:-1] and names[-1] == 'perfetto_manifest.json'
assert m['trace_time']['file'] == names[0] and 'clocks' not in m['files'][0]
# the clock of node1 began 777.000000123 s before that of node0
assert [f['clocks']['offset_ns'] for f in m['files'][1:]] == [777000000123, 777000000123, 0], m"
# By these offsets the ranks lie as merge puts them: the first collective of each.
"$STAVE" query -q rank0.txt "SELECT 1" >probe.out 2>probe.err || skip offsets_are_those_of_merge "built without SQLite"
[ -s probe.err ] || check offsets_are_those_of_merge sh -c '
  for r in 0 2; do "$0" query -q rank$r.txt "SELECT min(ts) FROM collective" | tail -n 1; done | xargs | { read -r a b; echo $((a - b + 777000000123)); } >by_offset
  "$0" query -q rank0.txt rank2.txt "SELECT (SELECT min(ts) FROM collective WHERE rank = 0) - (SELECT min(ts) FROM collective WHERE rank = 2)" | tail -n 1 | cmp - by_offset' "$STAVE"

# Nothing is overwritten, and a failure leaves nothing.
cksum job.tar >before
run exists 4 "$STAVE" export -q rank0.txt -o job.tar
check unchanged sh -c 'cksum job.tar | cmp - before'
run_any force 0 "$STAVE" export -q rank0.txt --to perfetto-tar -o job.tar --force
check one_trace sh -c '[ "$(tar -tf job.tar | xargs)" = "rank0000.pftrace perfetto_manifest.json" ]'
printf '%s\n' '# stave text 1' 'clock unknown' 'track #1 process uuid=0x1 pid=1 name="p"' '1.000000000 instant #1 "x"' >unrelated.txt
run_any unrelated 2 "$STAVE" export -q rank0.txt unrelated.txt -o no.tar
check unrelated_names_it grep -q unrelated.txt unrelated.err
run_any assumed 0 "$STAVE" export -q rank0.txt unrelated.txt --assume -o assumed.tar
check assumed_is_related sh -c 'tar -xOf assumed.tar perfetto_manifest.json | grep -q "\"path\":\"trace0001.pftrace\".*\"sync_to\":{\"file\":\"rank0000.pftrace\",\"clock\":\"BOOTTIME\"},\"offset_ns\":0"'
mkdir assumed && tar -xf assumed.tar -C assumed
check assumed_is_unchanged sh -c '"$0" cat assumed/trace0001.pftrace >as && grep -qx "clock boottime" as && grep -q "^1.000000000 instant" as' "$STAVE"
"$STAVE" merge -q rank0.txt rank2.txt -o merged.pftrace
run merged 2 "$STAVE" export -q merged.pftrace -o no.tar
run_any no_trace 3 "$STAVE" export -q rank0.txt nothing.txt -o no.tar
full() { (ulimit -f 20; exec "$STAVE" export -q rank0.txt rank1.txt -o no.tar); }
run_any disk_full 4 full
check nothing_is_left sh -c '[ -z "$(find . -name "*no.tar*" -o -name "*.part*")" ]'

# Kineto's files have the base of their times after the events: Perfetto relates files by clocks that the manifest can name only. They become what they are with the base in front.
python3 "$SRC/tests/cli/lake/make_late_base.py" .
run_any late 0 "$STAVE" export -q late[0-3].json -o late.tar
run_any early 0 "$STAVE" export -q early[0-3].json -o early.tar
mkdir late early && tar -xf late.tar -C late && tar -xf early.tar -C early
check late_manifest cmp late/perfetto_manifest.json early/perfetto_manifest.json
check late_all_related sh -c '[ "$(grep -o sync_to late/perfetto_manifest.json | wc -l)" = 3 ]'
for r in 0 1 2 3; do
  check "late_rank$r" sh -c '"$0" cat -q "late/rank000$1.pftrace" >a && "$0" cat -q "early/rank000$1.pftrace" >b && grep -qx "clock realtime" a && cmp a b' "$STAVE" $r
done
# Alone it stays as convert writes it.
run_any late_alone 0 "$STAVE" export -q late0.json --to perfetto-tar -o alone.tar
"$STAVE" convert -q late0.json -o alone.pftrace
check late_alone_as_convert sh -c 'tar -xOf alone.tar rank0000.pftrace | cmp - alone.pftrace'
check no_part_is_left sh -c '[ -z "$(find . -name "*.part*")" ]'

# Perfetto's importer sees each slice, at its time, and complains about nothing.
if [ -n "${TRACE_PROCESSOR:-}" ]; then
  judge() { # ARCHIVE TRACE…
    local tar=$1; shift
    echo "SELECT count(*), min(ts), max(ts) FROM slice; SELECT name FROM stats WHERE value > 0 AND (severity != 'info' OR name LIKE '%clock%' OR name LIKE '%dropped%')" >ask.sql
    "$TRACE_PROCESSOR" -q ask.sql "$tar" 2>judge.err | tr -d '"' | grep -v '^$' >seen
    "$STAVE" query -q "$@" "SELECT count(*), min(ts), max(ts) FROM slice" --to csv | tail -n 1 >wanted
    sed -n 2p seen | cmp - wanted && [ "$(sed -n '4,$p' seen | wc -l)" = 0 ]
  }
  check perfetto_sees_late judge late.tar late[0-3].json
  check perfetto_sees_early judge early.tar early[0-3].json
else
  skip perfetto_sees "TRACE_PROCESSOR does not name Perfetto's trace_processor_shell"
fi
