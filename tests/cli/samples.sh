#!/usr/bin/env bash
# Stack samples: folded call paths and the flame graph made of them, from any file format.
. "$SRC/tests/harness/cli.sh"

cat >in.txt <<'END'
# stave text 1
meta "sample_hz" "100"
track #1 process uuid=0x11 pid=1 name="job"
track #2 thread uuid=0x12 parent=#1 pid=1 tid=2 name="worker 7"
track #3 custom uuid=0x13 parent=#2 name="samples"
0.000000010 instant #3 "b" cat="cpu_sample" {@stack["main" "a;x" "b"]}
0.000000020 instant #3 "b" cat="cpu_sample" {cpu=1 @stack["main" "a;x" "b"]}
0.000000030 instant #3 "a;x" cat="cpu_sample" {@stack["main" "a;x"]}
0.000000040 instant #3 "other"
END
check whole "$STAVE" validate -q in.txt
printf 'worker;main;a:x 1\nworker;main;a:x;b 2\n' >folded.expected
for form in txt pftrace json; do
  "$STAVE" convert -q in.txt -o "copy.$form"
  run_any "folded_$form" 0 "$STAVE" export -q "copy.$form" --to folded -o -
  check "folded_same_$form" diff folded.expected <(sort "folded_$form.out")
done
run_any folded_file 0 "$STAVE" export -q in.txt -o out.folded
check folded_file_same diff folded.expected <(sort out.folded)
run_any folded_exists 4 "$STAVE" export -q in.txt -o out.folded

# A sample counts for a period of the sampler: 3 × 10 ms.
run_any flame 0 "$STAVE" plot flame -q copy.pftrace --samples -o flame.svg
check flame_time grep -q '30 ms' flame.svg

run_any absent 3 "$STAVE" export -q nowhere.json -o x.db # once a crash

# Lines of a function are one call path, and each is its own in SQL; files and lines survive a round trip.
cat >lines.txt <<'END'
# stave text 1
track #1 process uuid=0x11 pid=1 name="job"
track #2 thread uuid=0x12 parent=#1 pid=1 tid=2 name="main"
track #3 custom uuid=0x13 parent=#2 name="samples"
0.000000010 instant #3 "step" cat="cpu_sample" {cpu=0 @stack["main (run.py:9)" "f(int (*)(char)) (a.cc:3)" "step (train.py:41)"]}
0.000000020 instant #3 "step" cat="cpu_sample" {cpu=1 @stack["main (run.py:9)" "f(int (*)(char)) (a.cc:3)" "step (train.py:42)"]}
END
for form in txt pftrace json; do
  "$STAVE" convert -q lines.txt -o "lines_copy.$form"
  run_any "lines_folded_$form" 0 "$STAVE" export -q "lines_copy.$form" --to folded -o -
  check "lines_joined_$form" test "$(cat "lines_folded_$form.out")" = 'main;main (run.py);f(int (*)(char)) (a.cc);step (train.py) 2'
  run_any "frames_$form" 0 "$STAVE" query -q --to csv "lines_copy.$form" \
    "select depth, function, file, line, count(*) n, sum(c.cpu) cpus from cpu_sample c join stack_frame f on f.slice_id = c.id group by 1, 2, 3, 4 order by 1, 4"
  check "frames_same_$form" diff - "frames_$form.out" <<'END'
depth,function,file,line,n,cpus
0,main,run.py,9,2,1
1,f(int (*)(char)),a.cc,3,2,1
2,step,train.py,41,1,0
2,step,train.py,42,1,1
END
done

# Without samples the slices' own time counts, in microseconds.
cat >slices.json <<'END'
[{"ph":"X","pid":1,"tid":1,"name":"outer","ts":0,"dur":100},{"ph":"X","pid":1,"tid":1,"name":"inner","ts":10,"dur":30}]
END
run_any slices 0 "$STAVE" export -q slices.json --to folded -o -
check slices_same diff <(printf 'thread;outer 70\nthread;outer;inner 30\n') <(sort slices.out)
run_any slices_flame 1 "$STAVE" plot flame -q slices.json --samples -o x.svg
check slices_flame_reported grep -q 'no stack samples' slices_flame.err
