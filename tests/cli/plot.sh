#!/usr/bin/env bash
# stave plot: every picture in every form, what is written in it, and what is refused.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "needs python3"

# Two threads, two steps, a counter with a unit, names that markup and terminals would trip over.
cat >small.json <<'JSON'
{"traceEvents": [
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "trainer"}},
{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
{"ph": "X", "name": "ProfilerStep#1", "cat": "step", "pid": 1, "tid": 1, "ts": 0, "dur": 1000},
{"ph": "X", "name": "forward", "cat": "op", "pid": 1, "tid": 1, "ts": 100, "dur": 300, "args": {"layer": 0}},
{"ph": "X", "name": "attn", "cat": "op", "pid": 1, "tid": 1, "ts": 150, "dur": 100},
{"ph": "X", "name": "backward", "cat": "op", "pid": 1, "tid": 1, "ts": 400, "dur": 500, "args": {"layer": 1}},
{"ph": "X", "name": "ProfilerStep#2", "cat": "step", "pid": 1, "tid": 1, "ts": 1000, "dur": 2000},
{"ph": "X", "name": "forward", "cat": "op", "pid": 1, "tid": 1, "ts": 1100, "dur": 600, "args": {"layer": 0}},
{"ph": "X", "name": "backward", "cat": "op", "pid": 1, "tid": 1, "ts": 1800, "dur": 1100, "args": {"layer": 1}},
{"ph": "X", "name": "<b>&\"x\" \u00e4\u4e16\u0001", "cat": "odd", "pid": 1, "tid": 2, "ts": 500, "dur": 2000},
{"ph": "i", "name": "mark", "pid": 1, "tid": 2, "ts": 2600},
{"ph": "C", "name": "queue", "pid": 1, "ts": 0, "args": {"value": 3}},
{"ph": "C", "name": "queue", "pid": 1, "ts": 1500, "args": {"value": 7}}
]}
JSON
sed 's/"dur": 300/"dur": 150/; s/"dur": 500/"dur": 900/; s/"attn"/"new_attn"/' small.json >after.json
echo '{"traceEvents": []}' >empty.json

# texts FILE: the texts of an SVG: titles in brackets, then texts.
cat >texts.py <<'PY'
import sys, xml.etree.ElementTree as tree
for e in tree.parse(sys.argv[1]).iter():
    kind = e.tag.split('}')[1]
    if kind in ('title', 'text'):
        print(f"[{' | '.join(e.text.splitlines())}]" if kind == 'title' else e.text or e[0].tail)
PY
# png FILE [X Y]: size of a PNG, and the colour of one of its points.
cat >png.py <<'PY'
import struct, sys, zlib
data = open(sys.argv[1], 'rb').read()
assert data[:8] == b'\x89PNG\r\n\x1a\n' and data[-8:-4] == b'IEND', 'not a whole PNG'
w, h, depth, kind = struct.unpack('>IIBB', data[16:26])
at, raw = 8, b''
while at < len(data):
    n, tag = struct.unpack('>I4s', data[at:at + 8])
    raw += data[at + 8:at + 8 + n] if tag == b'IDAT' else b''
    at += 12 + n
raw, bpp, rows, before = zlib.decompress(raw), {2: 3, 6: 4}[kind], [], None
for y in range(h):
    f, line = raw[y * (w * bpp + 1)], bytearray(raw[y * (w * bpp + 1) + 1:(y + 1) * (w * bpp + 1)])
    before = before or bytearray(len(line))
    for i in range(len(line)):
        a, b, c = line[i - bpp] if i >= bpp else 0, before[i], before[i - bpp] if i >= bpp else 0
        p = a + b - c
        paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
        line[i] = (line[i] + [0, a, b, (a + b) // 2, paeth][f]) & 255
    rows.append(line); before = line
print(w, h, *('%02x%02x%02x' % tuple(rows[y][x * bpp:x * bpp + 3]) for x, y in zip(map(int, sys.argv[2::2]), map(int, sys.argv[3::2]))))
assert any(set(r) != {255} for r in rows), 'all white'
PY

declare -A names=([hist]=forward [counter]=queue)
for kind in timeline flame hist counter steps layers; do
  run_any "$kind" 0 "$STAVE" plot $kind small.json ${names[$kind]:-} -o $kind.svg
  run "${kind}_texts" 0 python3 texts.py $kind.svg
  if command -v xmllint >/dev/null; then check "${kind}_is_xml" xmllint --noout $kind.svg; else skip "${kind}_is_xml" "no xmllint"; fi
done
run_any diff 0 "$STAVE" plot flame small.json --diff after.json -o diff.svg
run diff_texts 0 python3 texts.py diff.svg
run_any window 0 "$STAVE" plot timeline small.json --time 1ms:2ms --title 'a window' -o window.svg
run window_texts 0 python3 texts.py window.svg
check no_network sh -c '! grep -E "https?://" *.svg | grep -v "xmlns=\"http://www.w3.org/2000/svg\""'
check stdout_is_svg sh -c '"$0" plot timeline small.json | cmp - timeline.svg' "$STAVE"

# A recorded run: the machine's rows appear where the trace has something for them.
cat >run.txt <<'TXT'
# stave text 1
clock boottime
snapshot boottime=1000000000 realtime=1700000000000000000
track #1 process uuid=0x1 pid=10 name="python"
track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="main"
track #3 custom uuid=0x3 parent=#2 name="system calls"
track #5 process uuid=0x5 pid=20 name="python"
track #6 thread uuid=0x6 parent=#5 pid=20 tid=20 name="loader"
track #7 custom uuid=0x7 parent=#6 name="system calls"
track #8 custom uuid=0x8 name="CPU"
track #9 counter uuid=0x9 parent=#8 name="user" unit="%"
track #10 counter uuid=0xa parent=#8 name="idle" unit="%"
track #11 custom uuid=0xb name="Disks"
track #12 custom uuid=0xc parent=#11 name="sda"
track #14 gpu uuid=0xe name="GPU 0"
track #15 counter uuid=0xf parent=#14 name="sm" unit="%"
track #16 counter uuid=0x10 parent=#14 name="framebuffer" unit="bytes"
track #17 counter uuid=0x11 parent=#1 name="loss"
1.000000000 begin #2 "step 1" cat="step"
1.000000000 counter #16 {1073741824}
1.100000000 begin #7 "openat" cat="syscall" {path="/d/a" fd=3}
1.150000000 end #7
1.160000000 begin #6 "load" cat="data"
1.200000000 begin #7 "read" cat="syscall" {path="/d/a" fd=3 bytes=1000}
1.250000000 begin #12 "read" cat="block" {bytes=1000 pid=20}
1.250000000 counter #9 {40}
1.250000000 counter #10 {60}
1.250000000 counter #15 {80}
1.300000000 end #12
1.400000000 end #7
1.410000000 end #6
1.500000000 counter #9 {80}
1.500000000 counter #10 {20}
1.500000000 counter #15 {0}
1.500000000 end #2
1.500000000 begin #2 "step 2" cat="step"
1.600000000 begin #3 "write" cat="syscall" {path="/d/out" fd=4 bytes=10}
1.700000000 end #3
1.750000000 counter #17 {0.5}
2.000000000 end #2
2.000000000 counter #9 {0}
2.000000000 counter #10 {100}
TXT
run_any figure 0 "$STAVE" plot timeline run.txt -o figure.svg
run figure_texts 0 python3 texts.py figure.svg
run_any by_role 0 "$STAVE" plot timeline run.txt --rows io,app --group role --wall -o role.svg
run by_role_texts 0 python3 texts.py role.svg
run_any together 0 "$STAVE" plot timeline run.txt --rows io --group all --from 200ms --to @1.35s -o together.svg
run together_texts 0 python3 texts.py together.svg
run_any owners 0 "$STAVE" plot counter run.txt -o owners.svg
run owners_texts 0 python3 texts.py owners.svg # a panel for the CPU, two for the GPU, one for the process
run_any all_tracks 0 "$STAVE" plot timeline run.txt --rows tracks --max-rows 3 -o tracks.svg
run all_tracks_texts 0 python3 texts.py tracks.svg
# around NAME: the first, the second by number, a name that ends in a number itself; the window is clipped to the trace.
has() { python3 texts.py "$1" | grep -F -e "$2" >found; }
run_any around 0 "$STAVE" plot timeline run.txt --around 'step 2' --margin 50ms -o around.svg
check around_is_the_window has around.svg '550 ms of 1 s'
run_any around_nth 0 "$STAVE" plot timeline run.txt --around 'step*#2' --margin 0% -o nth.svg
check around_nth_is_the_window has nth.svg '500 ms of 1 s'
run_any around_hash 0 "$STAVE" plot timeline small.json --around 'ProfilerStep#2' --margin 10% -o hash.svg
check around_hash_is_a_name has hash.svg '2.2 ms of 3 ms'
run around_unknown 2 "$STAVE" plot timeline run.txt --around 'stp 2' -o x.svg
run around_too_many 2 "$STAVE" plot timeline run.txt --around 'step*#3' -o x.svg
run around_and_time 2 "$STAVE" plot timeline run.txt --around 'step 2' --time 1ms:2ms -o x.svg
run margin_alone 2 "$STAVE" plot timeline run.txt --margin 5ms -o x.svg
run margin_bad 2 "$STAVE" plot timeline run.txt --around 'step 2' --margin lots -o x.svg
run rows_bad 2 "$STAVE" plot timeline run.txt --rows cpu,dsik -o x.svg
run rows_absent 1 "$STAVE" plot timeline small.json --rows cpu,io -o x.svg
run group_bad 2 "$STAVE" plot timeline run.txt --group pid -o x.svg
run to_bad 2 "$STAVE" plot timeline run.txt --to later -o x.svg
run from_twice 2 "$STAVE" plot timeline run.txt --from 1ms --time 2ms: -o x.svg
check from_is_still_a_format "$STAVE" plot timeline small.json --from chrome -o format.svg
# Arrows: drawn unless there are too many.
cat >flows.json <<'JSON'
{"traceEvents": [
{"ph": "X", "name": "send", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
{"ph": "s", "id": 1, "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 50},
{"ph": "X", "name": "send", "pid": 1, "tid": 1, "ts": 300, "dur": 100},
{"ph": "s", "id": 2, "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 350},
{"ph": "X", "name": "receive", "pid": 1, "tid": 2, "ts": 200, "dur": 100},
{"ph": "f", "bp": "e", "id": 1, "name": "f", "cat": "f", "pid": 1, "tid": 2, "ts": 250},
{"ph": "X", "name": "receive", "pid": 1, "tid": 2, "ts": 600, "dur": 100},
{"ph": "f", "bp": "e", "id": 2, "name": "f", "cat": "f", "pid": 1, "tid": 2, "ts": 650}
]}
JSON
paths() { grep -o '#555555' "$1" | wc -l; }
run_any arrows 0 "$STAVE" plot timeline flows.json -o arrows.svg
check two_arrows_are_drawn test "$(paths arrows.svg)" = 4
run_any no_arrows 0 "$STAVE" plot timeline flows.json --no-arrows -o none.svg
check no_arrow_is_drawn test "$(paths none.svg)" = 0
run_any too_many_arrows 0 "$STAVE" plot timeline flows.json --arrows 1 -o many.svg
check says_that_there_are_more has many.svg '2 arrows are not drawn'

# Lanes that are too many to be seen one by one are one row; the others of their process come first. What nearly all has one category is coloured by name.
python3 - >crowd.txt <<'PY'
print("# stave text 1\nclock boottime\ntrack #1 process uuid=0x1 pid=7 name=\"server\"")
for i in range(12):
    print(f'track #{i + 2} custom uuid={hex(i + 2)} parent=#1 name="requests {i + 1}"')
print('track #20 custom uuid=0x20 parent=#1 name="batches"')
for step in range(100):
    for i in range(12 if step == 50 else 3):
        print(f'{step / 1e3:.9f} slice #{i + 2} "request" cat="serving" dur=0.000900000')
        print(f'{step / 1e3 + 1e-5:.9f} slice #{i + 2} "queue" cat="serving" dur=0.000400000')
    print(f'{step / 1e3 + 5e-4:.9f} slice #20 "batch" cat="serving" dur=0.000100000')
print('0.099000000 instant #20 "start" cat="life"')
PY
run_any crowd 0 "$STAVE" plot timeline crowd.txt -o crowd.svg
check crowd_is_one_row has crowd.svg 'requests (12 rows)'
check crowd_knows_how_many has crowd.svg 'up to 12 at once'
check crowd_has_no_other_rows sh -c '! python3 texts.py crowd.svg | grep -x "requests 2"'
check crowd_comes_last sh -c 'python3 texts.py crowd.svg | grep -n -e "^batches$" -e "^requests (" | cut -d: -f2 | tr "\n" " " | grep -q "^batches requests"'
# 40 calls within each other, of which two do not nest exactly, are no crowd.
python3 -c "
import json
deep = [{'ph': 'X', 'name': f'call {i}', 'cat': 'c', 'pid': 1, 'tid': 1, 'ts': i, 'dur': 1000 - 2 * i} for i in range(40)]
print(json.dumps(deep + [{'ph': 'X', 'name': 'late', 'cat': 'c', 'pid': 1, 'tid': 1, 'ts': 50, 'dur': 930}]))" >deep.json
run_any deep 0 "$STAVE" plot timeline deep.json -o deep.svg
check nesting_is_no_crowd sh -c 'python3 texts.py deep.svg | grep -qx "call 0" && ! grep -q "at once" deep.svg'
check crowd_by_name sh -c 'for t in request queue batch; do python3 texts.py crowd.svg | grep -qx $t || exit 1; done'

# PNG and PDF, or a clear word that there are none.
if "$STAVE" plot timeline small.json -o probe.png 2>probe.err; then
  for kind in timeline flame hist counter steps layers; do
    run_any "${kind}_png" 0 "$STAVE" plot $kind small.json ${names[$kind]:-} --width 400 --height 200 -o $kind.png
    check "${kind}_png_is_whole" python3 png.py $kind.png
    run_any "${kind}_pdf" 0 "$STAVE" plot $kind small.json ${names[$kind]:-} -o $kind.pdf
    check "${kind}_pdf_is_whole" sh -c 'head -c 5 "$0" | grep -q "%PDF-" && tail -c 7 "$0" | grep -q "%%EOF"' $kind.pdf
  done
  run_any sized 0 "$STAVE" plot hist small.json forward --width 300 --height 150 --scale 2 -o sized.png
  check size_is_as_asked sh -c '[ "$(python3 png.py sized.png)" = "600 300" ]'
  # The first step's box lies in the plot area, left of the middle, in the colour of its category's rank.
  read -r _ _ box margin < <(python3 png.py timeline.png 250 107 5 107)
  check box_is_coloured test "$box" = e69f00
  check margin_is_white test "$margin" = ffffff
  run too_large 4 "$STAVE" plot timeline small.json --width 20000 --scale 10 -o large.png
  check nothing_too_large_is_left test ! -e large.png
else
  check says_that_cairo_is_absent grep -q 'without cairo' probe.err
  skip png_and_pdf "built without cairo"
fi

# What is refused, and how; no file is left behind.
run unknown_kind 2 "$STAVE" plot flam small.json -o x.svg
run no_trace 2 "$STAVE" plot timeline -o x.svg
run no_name 2 "$STAVE" plot hist small.json -o x.svg
run near_name 2 "$STAVE" plot hist small.json forwrad -o x.svg
run far_name 2 "$STAVE" plot hist small.json zzz -o x.svg
run near_counter 2 "$STAVE" plot counter small.json que -o x.svg
run extra_operand 2 "$STAVE" plot timeline small.json more -o x.svg
run suffix 2 "$STAVE" plot timeline small.json -o x.gif
run narrow 2 "$STAVE" plot timeline small.json --width 10 -o x.svg
run scale 2 "$STAVE" plot timeline small.json --scale 0 -o x.svg
run empty_window 2 "$STAVE" plot timeline small.json --time 2ms:1ms -o x.svg
run past_the_end 2 "$STAVE" plot timeline small.json --time 1s:2s -o x.svg
run both_scales 2 "$STAVE" plot hist small.json forward --log --linear -o x.svg
run wall_unknown 2 "$STAVE" plot timeline small.json --wall -o x.svg
run empty 1 "$STAVE" plot timeline empty.json -o x.svg
run no_steps 1 "$STAVE" plot steps small.json --marker nothing -o x.svg
run_any no_file 3 "$STAVE" plot timeline absent.json -o x.svg
run_any no_other_file 3 "$STAVE" plot flame small.json --diff absent.json -o x.svg
check nothing_was_written test ! -e x.svg -a ! -e x.gif
