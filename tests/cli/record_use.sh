#!/usr/bin/env bash
# How stave record is used: configurations and injected libraries. Nothing here needs root: without it the kernel's side is missing, which is fine.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP XDG_RUNTIME_DIR=$TMP
quiet=(-q --no-summary)

# ---- command lines that make no sense say what would ----
refused() { # NAME MESSAGE WORDS…: exit 2, one line that ends so, nothing is made
  local name=refused_$1 message=$2; shift 2
  run_any "$name" 2 "$STAVE" record -q "$@"
  check "${name}_says" grep -qxF -- "stave record: $message" "$name.err"
  check "${name}_nothing" test -z "$(find . -name '*.pftrace*' -print -quit)"
}
refused dashes "put -- before the command: stave record -- ls -la" ls -la
refused dashes_later "put -- before the command: stave record -- sh -c exit 3 -o x.pftrace" sh -c 'exit 3' -o x.pftrace
refused dashes_known "put -- before the command: stave record -- ls -p 1" ls -p 1
no_cgroup="is not a cgroup: give a folder below /sys/fs/cgroup that has a file cgroup.procs"
for folder in nowhere /tmp "$TMP" /sys/kernel /sys/fs/cgroup/../../kernel; do
  refused "cgroup_${folder//\//_}" "--cgroup: '$folder' $no_cgroup" -o x.pftrace --cgroup "$folder"
done
run_any no_pid 2 "$STAVE" record -q -o x.pftrace -p 999999999
check no_pid_says grep -qxF "stave record: -p: there is no process 999999999 here ('ps -e' lists them)" no_pid.err
run_any not_a_pid 2 "$STAVE" record -q -o x.pftrace -p 1x
check not_a_pid_says grep -qxF "stave record: -p: '1x' is not the pid of a process" not_a_pid.err
check no_pid_nothing test ! -e x.pftrace -a ! -e x.pftrace.part

# ---- --config ----
cat >good.yml <<'Y'
# comments are fine
output: from_file.pftrace
interval: 50ms
no-io: yes
max-size: 1G
command: [sh, -c, "echo $0 said; exit 3", somebody]
Y
run_any config 3 "$STAVE" record "${quiet[@]}" --config good.yml
check config_command grep -qx "somebody said" config.out
check config_output "$STAVE" validate -q from_file.pftrace
run_any config_line_wins 0 "$STAVE" record "${quiet[@]}" --config good.yml -o from_line.pftrace -- true
check config_line_output test -s from_line.pftrace
run_any config_io 0 "$STAVE" record "${quiet[@]}" --config good.yml --io -o io.pftrace -- true

bad() { # NAME TEXT MESSAGE: exit 2 (or 3 for what is no YAML), the message ends so
  local name=bad_$1 code; printf '%b' "$2" >"$name.yml"
  "$STAVE" record "${quiet[@]}" --config "$name.yml" -- true >/dev/null 2>"$name.err"; code=$?
  check "$name" test "$code" -ge 2 -a "$code" -le 3
  check "${name}_says" grep -qF -- "$name.yml:$3" "$name.err"
}
bad key 'output: x.pftrace\ndurration: 3s\n' "2: unknown key 'durration'; did you mean 'duration'?"
bad config 'config: other.yml\n' "1: unknown key 'config'"
bad flag 'no-io: perhaps\n' "1: no-io: expected true or false"
bad size '\nmax-size: big\n' "2: max-size: 'big' is not a size such as 512M or 2G"
bad list 'calls: [files, sync]\n' "1: calls: expected one text, words separated by commas"
bad empty 'output:\n' "1: output: expected one value"
bad command 'command: echo hi\n' "1: command: expected a list of words"
bad command_map 'command: [a, {b: c}]\n' "1: command: expected a word"
bad root '- a\n' "1: expected keys such as 'duration: 30s'"
bad nothing '' "1: expected keys such as 'duration: 30s'"
bad yaml 'output: "x\n' "1: a quote is not closed on its line"
run_any config_missing 3 "$STAVE" record --config nowhere.yml -- true
check config_missing_says grep -q "nowhere.yml: .*No such file" config_missing.err
printf 'duration: soon\n' >time.yml
run_any config_time 2 "$STAVE" record -q --config time.yml -o x.pftrace -- true
check config_time_says grep -q "'soon' is not a time" config_time.err

# ---- --inject ----
mkdir inject; for l in opencl nvtx itt cuda; do : >inject/libstave-$l.so; done
show='printf "%s\n" "$OPENCL_LAYERS" "$NVTX_INJECTION64_PATH" "$INTEL_LIBITTNOTIFY64" "$CUDA_INJECTION64_PATH" "$STAVE_NEXT_NVTX_INJECTION64_PATH"'
export STAVE_INJECT_DIR=$TMP/inject
run_any inject 0 "$STAVE" record "${quiet[@]}" -o i.pftrace --inject opencl,nvtx,itt,cuda -- sh -c "$show"
check inject_sets diff inject.out <(printf "$TMP/inject/libstave-%s.so\n" opencl nvtx itt cuda; echo)
run_any inject_chain 0 env OPENCL_LAYERS=/a:/b NVTX_INJECTION64_PATH=/n "$STAVE" record "${quiet[@]}" -o i.pftrace --inject nvtx,opencl -- sh -c "$show"
check inject_keeps diff inject_chain.out <(printf '%s\n' "/a:/b:$TMP/inject/libstave-opencl.so" "$TMP/inject/libstave-nvtx.so" "" "" /n)
run_any inject_again 0 env OPENCL_LAYERS="$TMP/inject/libstave-opencl.so" "$STAVE" record "${quiet[@]}" -o i.pftrace --inject opencl -- sh -c "$show"
check inject_once test "$(head -n 1 inject_again.out)" = "$TMP/inject/libstave-opencl.so"
run_any inject_unknown 2 "$STAVE" record -q -o i.pftrace --inject opncl -- true
check inject_unknown_says grep -q "unknown interface 'opncl'; did you mean 'opencl'?" inject_unknown.err
run_any inject_joins 2 "$STAVE" record -q -o i.pftrace --inject nvtx --all
rm inject/libstave-itt.so; cp "$STAVE" ./stave_alone
run_any inject_missing 4 ./stave_alone record -q -o i.pftrace --inject itt -- true
check inject_missing_says grep -q "libstave-itt.so is neither beside stave nor in its lib/stave: build it with 'make'" inject_missing.err

# ---- --log ----
cat >job.sh <<'J'
line() { echo ":::MLLOG {\"time_ms\": $(date +%s%3N), \"event_type\": \"$1\", \"key\": \"$2\", \"value\": $3, \"metadata\": {\"rank\": 0, \"epoch_num\": 1}}"; }
{ line INTERVAL_START epoch null; line INTERVAL_START eval null; line POINT_IN_TIME accuracy 0.5; line INTERVAL_END eval null; line INTERVAL_END epoch null; } >>app.log
J
echo ':::MLLOG {"time_ms": 1500000000000, "event_type": "POINT_IN_TIME", "key": "older", "value": 1, "metadata": {}}' >app.log
run_any log 0 "$STAVE" record --no-summary -o log.pftrace --log app.log -- sh job.sh
"$STAVE" cat -q log.pftrace >log.txt
check log_group grep -q 'custom .*name="log app.log"' log.txt
for slice in epoch eval; do check "log_$slice" grep -q "begin .*\"$slice\" cat=\"phase\"" log.txt; done
check log_point grep -q 'instant .*"accuracy" cat="log" {value=0.5' log.txt
check log_valid "$STAVE" validate -q log.pftrace
check log_older_left_out sh -c '! grep -q "\"older\"" log.txt'
check log_older_reported grep -q "app.log: 1 entries from before the recording left out" log.err
# Many entries are counted, not those of the last batch.
older=$(grep older app.log) && for ((i = 0; i < 3000; i++)); do echo "$older"; done >many.log
run_any log_many 0 "$STAVE" record --no-summary --no-io -o many.pftrace --log many.log -- true
check log_many_counted grep -qE 'many.log: 3[., ]?000 entries from before the recording left out|many.log: 3.0 ?k' log_many.err
# The phases lie within the recording: between the first and the last sample of the CPU, give or take its interval.
check log_lined_up awk '/counter|begin|end|instant/ && $1 ~ /^[0-9.]+$/ { t = $1; if (!lo || t < lo) lo = t; if (t > hi) hi = t } /cat="phase"/ { p[++n] = $1 }
  END { for (i = 1; i <= n; i++) if (p[i] < hi - 60 || p[i] > hi + 0.001) exit 1; exit n != 2 }' log.txt
# DLIO's log has local times without a zone: this machine's, TZ or --log-tz.
cat >dlio.sh <<'J'
say() { printf '[INFO] %s %s [dlio.py:1]\n' "$(TZ=$1 date +%Y-%m-%dT%H:%M:%S.%6N)" "$2"; }
{ say "$1" 'Starting epoch 1: 4 steps expected'; sleep 0.05; say "$1" 'Ending epoch 1 - 4 steps completed in 0.05 s'; } >dlio.log
J
run_any dlio 0 env TZ=EST5 "$STAVE" record --no-summary -o dlio.pftrace --log dlio.log --log-tz -05:00 -- sh dlio.sh EST5
check dlio_epoch sh -c '"$0" cat -q dlio.pftrace | grep -q "begin .*\"epoch\" cat=\"phase\""' "$STAVE"
run_any dlio_here 0 env TZ=UTC "$STAVE" record --no-summary -o dlio.pftrace --log dlio.log -- sh dlio.sh UTC
check dlio_here_epoch sh -c '"$0" cat -q dlio.pftrace | grep -q "begin .*\"epoch\" cat=\"phase\""' "$STAVE"
run_any dlio_wrong 0 "$STAVE" record --no-summary -o dlio.pftrace --log dlio.log --log-tz +05:00 -- sh dlio.sh UTC
check dlio_wrong_zone_is_earlier grep -q "dlio.log: .* entries from before the recording left out" dlio_wrong.err
run_any log_missing 0 "$STAVE" record --no-summary -o l.pftrace --log nowhere.log -- true
check log_missing_reported grep -q "nowhere.log: .*No such file" log_missing.err
check log_missing_valid "$STAVE" validate -q l.pftrace
"$STAVE" record -q --strict -o l.pftrace -- true 2>/dev/null && run_any log_strict 1 "$STAVE" record -q --strict --no-io --no-block --no-page-cache -o l.pftrace --log nowhere.log -- true
cp log.txt other.log
run_any log_other 0 "$STAVE" record --no-summary -o l.pftrace --log other.log -- true
check log_other_reported grep -q "other.log: neither MLLOG lines nor DLIO's log" log_other.err
run_any log_redact 2 "$STAVE" record -q -o l.pftrace --redact paths --log app.log -- true
run_any log_zone 2 "$STAVE" record -q -o l.pftrace --log-tz Nowhere/City --log app.log -- true

# ---- --out-dir, --copy-output, --archive ----
run_any folder 6 "$STAVE" record --no-summary --out-dir runs --copy-output --log app.log -- sh -c 'echo out; echo err >&2; exit 6'
check folder_passes_on grep -qx out folder.out
check folder_files sh -c 'cd runs/run-0001 && test -s trace.pftrace -a -s report.txt -a -s report.json -a -s log-1-app.log'
check folder_stdout test "$(cat runs/run-0001/stdout.log)" = out
check folder_stderr test "$(cat runs/run-0001/stderr.log)" = err
run_any folder_next 0 "$STAVE" record -q --out-dir runs -o mine.json -- true
check folder_numbered "$STAVE" validate -q runs/run-0002/mine.json
run_any folder_path 2 "$STAVE" record -q --out-dir runs -o a/b.pftrace -- true
run_any folder_is_file 4 "$STAVE" record -q --out-dir job.sh -- true
run_any copy_joins 2 "$STAVE" record -q -o x.pftrace --copy-output --all
# When the reader closes the pipe, the command notices it as it would without stave.
check copy_closed_pipe sh -c '"$0" record -q -o pipe.pftrace --copy-output -- sh -c "yes | head -c 3000000; true" | head -n 1 >/dev/null' "$STAVE"
check copy_large sh -c '"$0" record -q -o large.pftrace --copy-output -- seq 300000 >large.seen && cmp large.seen large.stdout.log' "$STAVE"

run_any archive 0 "$STAVE" record -q -o arch.pftrace --archive --copy-output --log app.log -- echo hello
if command -v zstd >/dev/null; then
  mkdir unpacked; zstd -dcq arch.tar.zst | tar -x -C unpacked
  check archive_trace cmp arch.pftrace unpacked/arch/arch.pftrace
  check archive_log cmp app.log unpacked/arch/log-1-app.log
  check archive_output grep -qx hello unpacked/arch/stdout.log
  check archive_report test -s unpacked/arch/report.txt -a -s unpacked/arch/report.json
  check archive_json python3 -m json.tool unpacked/arch/report.json
else skip archive_content "no zstd here"; fi
check archive_leaves_nothing test "$(find . -maxdepth 1 -name 'arch.*' | wc -l)" = 4
# A disk that is full at the end: the trace is there, nothing that looks like an archive is.
{ cat app.log; head -c 3000000 /dev/urandom; } >noise.log
full() { (trap '' XFSZ; ulimit -f 2000; "$STAVE" record --no-summary -o full.pftrace --archive --log noise.log -- true); }
run_any full 4 full
check full_reported grep -q "full.tar.zst: .*File too large" full.err
check full_trace "$STAVE" validate -q full.pftrace
check full_no_archive test "$(find . -maxdepth 1 -name 'full.*' ! -name full.err ! -name full.out ! -name 'full.pftrace' | wc -l)" = 0

# ---- GPUs: an NVML whose numbers are known ----
fake=$BUILD/tests/fake
gpu() { LD_LIBRARY_PATH=$fake FAKE_NVML_PID=$TMP/pid "$STAVE" record --no-io --no-block --interval 0 -o gpu.pftrace --gpu-interval 20ms "$@"; }
if [ -e "$fake/libnvidia-ml.so.1" ] && ! ldd "$STAVE" | grep -E 'asan|tsan' >/dev/null; then
  run_any gpu 0 gpu -- sh -c 'echo $$ >pid; sleep 0.5'
  check gpu_reported grep -q "GPUs: Fake 0, Fake 1" gpu.err
  run_any gpu_values 0 "$STAVE" query gpu.pftrace --to csv "select p.name as device, t.name, min(c.value) as low, max(c.value) as high from counter c join track t on c.track_id = t.id join track p on t.parent_id = p.id where p.name like 'GPU %' group by t.id order by 1, 2, 3"
  for row in '"\?GPU 0"\?,"\?sm"\?,40' '"\?GPU 1"\?,"\?sm"\?,41' '"\?GPU 0"\?,"\?memory"\?,20' '"\?GPU 0"\?,"\?power"\?,123.456' '"\?GPU 0"\?,"\?temperature"\?,61' \
    '"\?GPU 0"\?,"\?framebuffer"\?,1000000000' '"\?GPU 0"\?,"\?framebuffer"\?,777000000' '"\?GPU 0"\?,"\?sm"\?,15.5'; do
    check "gpu_value_$(echo "$row" | tr -dc 'a-z0-9.')" grep -q "^$row" gpu_values.out
  done
  check gpu_no_power_of_the_second sh -c '! grep -q "GPU 1.*power" gpu_values.out'
  FAKE_NVML=broken run_any gpu_broken 0 gpu -- true
  check gpu_broken_reported grep -q "no GPU: NVML does not start (error 9); no AMD GPU" gpu_broken.err
  FAKE_NVML=none run_any gpu_none 0 gpu -- true
  check gpu_none_reported grep -q "no GPU: NVML knows no device" gpu_none.err
  FAKE_NVML=bare run_any gpu_bare 0 gpu -- sleep 0.1
  check gpu_bare_valid "$STAVE" validate -q gpu.pftrace
else skip gpu "no false NVML here"; fi
run_any gpu_interval 2 "$STAVE" record -q -o x.pftrace --gpu-interval 1ms -- true
run_any gpu_interval_word 2 "$STAVE" record -q -o x.pftrace --gpu-interval often -- true
run_any gpu_never 0 "$STAVE" record -o x.pftrace --gpu-interval 0 -- true
check gpu_never_quiet sh -c '! grep -q GPU gpu_never.err'

# ---- signals, the status line ----
started() { for _ in $(seq 600); do [ -e "$1.ready" ] && return; sleep 0.05; done; }
stubborn='trap "" INT TERM; touch "$0.ready"; for i in $(seq 100); do [ -e "$0.enough" ] && exit; sleep 0.1; done'
"$STAVE" record -q -o once.pftrace -- sh -c 'trap "exit 9" TERM; touch once.ready; while :; do sleep 0.05; done' & recorder=$!
started once; kill -TERM $recorder; wait $recorder; check interrupted_once test $? = 9
check interrupted_saved "$STAVE" validate -q once.pftrace
"$STAVE" record -q -o twice.pftrace -- sh -c "$stubborn" twice 2>twice.err & recorder=$!
# Two signals, not one: the first is taken before the second is sent.
taken() { until_true '[ "$((0x$(sed -n "s/^ShdPnd:\t//p" "/proc/$recorder/status") & 2))" = 0 ]'; }
started twice; kill -INT $recorder; taken; kill -INT $recorder; wait $recorder; check interrupted_twice test $? = 4
check interrupted_twice_reported grep -qx "stave record: twice.pftrace: aborted by a second signal; it is kept as .part: stave recover twice.pftrace" twice.err
check interrupted_twice_kept test ! -e twice.pftrace -a -s twice.pftrace.part
touch twice.enough
run_any interrupted_twice_recover 0 "$STAVE" recover twice.pftrace
check interrupted_twice_recovered grep -q 'process .*name="sh"' <("$STAVE" cat -q twice.pftrace)
check interrupted_twice_nothing_left test ! -e twice.pftrace.part -a ! -e twice.pftrace.session

# ---- a recording in a recording: both files are whole; a signal is passed on, and after a second one the inner one names what is there ----
run_any nested 0 "$STAVE" record "${quiet[@]}" -o outer.pftrace -- "$STAVE" record "${quiet[@]}" -o inner.pftrace -- "$BUILD/tests/stress/lossy" 100 exit
check nested_outer "$STAVE" validate -q outer.pftrace
check nested_inner test "$("$STAVE" cat -q inner.pftrace | grep -c 'seq=')" = 100
run_any nested_same 4 "$STAVE" record "${quiet[@]}" -o outer.pftrace -- "$STAVE" record "${quiet[@]}" -o outer.pftrace -- true
check nested_same_says grep -q "outer.pftrace: process [0-9]* .* is writing it" nested_same.err
check nested_same_whole "$STAVE" validate -q outer.pftrace
# nested_begins NAME: the command of the inner one waits for NAME.enough; $outer and $inner are the recorders.
nested_begins() {
  rm -f inner.pftrace outer.pftrace
  "$STAVE" record "${quiet[@]}" -o outer.pftrace -- "$STAVE" record "${quiet[@]}" -o inner.pftrace -- sh -c "$stubborn" "$1" 2>"$1.err" & outer=$!
  started "$1"; inner=$(pgrep -P $outer -x stave)
}
nested_begins nested_once; kill -INT $outer; recorder=$outer taken; touch nested_once.enough; wait $outer
check nested_once_outer "$STAVE" validate -q outer.pftrace
check nested_once_inner "$STAVE" validate -q inner.pftrace
# The inner one has taken a signal of its own before the outer one passes its own on.
nested_begins nested_twice; kill -INT "$inner"; recorder=$inner taken; kill -INT $outer; until_true '! kill -0 $inner'; touch nested_twice.enough; wait $outer
check nested_twice_outer "$STAVE" validate -q outer.pftrace
check nested_twice_says grep -qx 'stave record: inner.pftrace: aborted by a second signal; it is kept as .part: stave recover inner.pftrace' nested_twice.err
check nested_twice_kept test ! -e inner.pftrace -a -s inner.pftrace.part
run_any nested_twice_recover 0 "$STAVE" recover inner.pftrace
check nested_twice_inner "$STAVE" validate -q inner.pftrace
check nested_nothing_left test -z "$(ls inner.pftrace.* outer.pftrace.* 2>/dev/null)"
if command -v script >/dev/null; then
  check status_line sh -c 'script -qec "$0 record --no-summary -o tty.pftrace -- sleep 1.3" /dev/null </dev/null | tr "\r" "\n" | grep -E "[0-9] (µs|ms|s)  [0-9,]+ events  [0-9,]+/s  0 lost  [0-9.]+ .*B"' "$STAVE"
else skip status_line "no script(1) here"; fi
run_any no_status_line 0 "$STAVE" record --no-summary -o tty.pftrace -- sleep 0.7
check status_line_only_on_terminals sh -c '! grep -q events no_status_line.err'
