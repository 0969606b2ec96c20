#!/usr/bin/env bash
# stave convert: suffixes, pipes, compression, an existing file, outside readers of what is written.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good

"$STAVE" cat -q "$good/phases.json" >phases.txt 2>said # a begin without an end, which is a finding
compressions='none gzip zstd' suffixes='txt txt.gz txt.zst'
if "$STAVE" convert -q "$good/kineto.json" -o probe.pftrace --compress zstd 2>&1 | grep -q 'not built in'; then
  compressions='none gzip' suffixes='txt txt.gz'
  skip zstd "built without zstd"
fi
for suffix in $suffixes; do
  run_any "$suffix" 0 "$STAVE" convert -q "$good/phases.json" -o "out.$suffix"
  "$STAVE" cat -q "out.$suffix" >back.txt
  check "$suffix comes back the same" cmp phases.txt back.txt
done
for how in $compressions; do
  run_any "perfetto_$how" 0 "$STAVE" convert -q "$good/kineto.json" -o "$how.pftrace" --compress "$how"
  "$STAVE" convert -q "$how.pftrace" --to csv | sort >"$how.csv"
  check "perfetto with $how holds the same" cmp none.csv "$how.csv"
done
"$STAVE" cat -q none.pftrace >kineto.txt
check the_clock_survives_perfetto grep -q '^clock realtime' kineto.txt
check pipe sh -c '"$0" convert -q - --to text <"$1" | cmp - phases.txt' "$STAVE" "$good/phases.json"
check gzip_pipe sh -c 'gzip -c "$1" | "$0" convert -q - --to text | cmp - phases.txt' "$STAVE" "$good/phases.json"

# A flow is its number: one that begins as "a" and ends as "b" stays one flow.
cat >two_names.txt <<'END'
# stave text 1
clock boottime
track #1 process uuid=0x1 pid=7 name="p"
track #2 thread uuid=0x2 parent=#1 pid=7 tid=7
1.000000000 begin #2 "one"
1.000000000 flow #2 "a" {@flow_begin:0x5}
1.500000000 end #2
2.000000000 begin #2 "two"
2.000000000 flow #2 "b" {@flow_end:0x5}
2.500000000 end #2
END
run_any two_names 0 "$STAVE" convert -q two_names.txt -o two_names.pftrace
check a_flow_with_two_names test "$("$STAVE" cat -q two_names.pftrace | grep -c '@flow_[a-z]*:0x5}')" = 2

# A file that is there already is replaced only by a whole one.
echo precious >kept.pftrace
run_any failed_conversion 3 "$STAVE" convert "$SRC/tests/golden/bad/not_a_trace.txt" -o kept.pftrace
check failed_conversion_keeps_the_file grep -q precious kept.pftrace
run_any replaced 0 "$STAVE" convert -q "$good/lines.json" -o kept.pftrace
check replaced_by_a_trace sh -c '! grep -q precious kept.pftrace'
check nothing_else_is_left test -z "$(find . -name '*.pftrace.*' -o -name '.*pftrace*')"

# Others read what we write.
run_any json 0 "$STAVE" convert -q "$good/kineto.json" -o kineto.json
if command -v python3 >/dev/null; then
  check python_reads_the_json python3 - <<'END'
import json
t = json.load(open('kineto.json'))['traceEvents']
assert sum(e['ph'] == 'X' for e in t) == 6, 'slices'
assert sum(e['ph'] in 'sf' for e in t) == 2, 'flows'
k = [e for e in t if e.get('cat') == 'kernel'][0]
assert k['args']['grid'] == [8, 8, 1] and k['dur'] == 25.375, k
assert len({(e['pid'], e['tid']) for e in t if e['ph'] == 'X'}) == 3, 'threads'
END
else skip python_reads_the_json "no python3"; fi
if command -v protoc >/dev/null; then
  check protoc_reads_the_protobuf sh -c 'protoc --decode_raw <none.pftrace >decoded && grep -q cudaLaunchKernel decoded'
else skip protoc_reads_the_protobuf "no protoc"; fi
