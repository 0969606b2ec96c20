#!/usr/bin/env bash
# Nothing that a trace, a file name or another process says acts on a terminal: all commands, all forms of output, errors too.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good
export LC_ALL=C.UTF-8 XDG_RUNTIME_DIR=$TMP/run STAVE_SESSION_DIR=$TMP/sessions
mkdir -m 700 run sessions

# What a terminal or a careless reader obeys: OSC with BEL, CSI, carriage return, line feed, C1 in both forms, DEL, directions, line separator, NUL.
escaped='\x1b]0;t\x07\x1b[2J\x0d\x0a\x9b2J\xc2\x9b1m\x7f\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c'
hostile=$(printf %b "$escaped")
name=$hostile-name

# quiet_terminal NAME COMMAND…: whatever the exit code (but no crash), neither stream acts. The streams are looked at together, at the end.
mkdir out
names=()
quiet_terminal() {
  local check=$1 code form=text; shift
  case " $* " in *csv*) form=csv ;; esac
  "$@" >"out/$check.out.$form" 2>"out/$check.err.text" </dev/null; code=$?
  names+=("$check")
  [ $code -lt 5 ] || echo "exit status $code: $*" >"out/$check.failed"
  [ -s "out/$check.out.$form" ] || [ -s "out/$check.err.text" ] || echo "nothing was printed: $*" >"out/$check.failed"
}

# judge: prints a result for each. Control bytes (but line feed, and tab in CSV), C1 controls, directions and separators of lines; what is no UTF-8.
judge() {
  local bad=out/judged check
  LC_ALL=C grep -aPl '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c' out/*.text out/*.csv >$bad
  LC_ALL=C grep -aPl '\t' out/*.text >>$bad
  grep -axvl '.*' out/*.text out/*.csv >>$bad
  for check in "${names[@]}"; do
    cli_begin "$check"
    if [ -e "out/$check.failed" ]; then
      cat -v "out/$check.failed"; not_ok "$check"
    elif grep -qF "out/$check." $bad; then
      cat -v "out/$check".* | head -n 40; not_ok "$check"
    else
      ok "$check"
    fi
  done
}

# spoil FILE SED: the trace as text, with what SED picks made hostile.
spoil() { "$STAVE" cat -q "$1" 2>/dev/null | sed -E "$2"; }
suffix=${escaped//\\/\\\\}
quoted='(([^"\\]|\\.)*)'
for kind in kineto lines strace batching phases dlio starpu_tasks; do
  for file in "$good/$kind".{json,out,log}; do [ ! -e "$file" ] || break; done
  # Every text of the trace: names of events, tracks and arguments, categories, values, metadata.
  spoil "$file" "/^json/!s/\"$quoted\"/\"\\1$suffix\"/g" >"$kind.all.txt"
  # The same without the words by which the reports know their events.
  spoil "$file" "s/((name|path|file|type)=\"$quoted)\"/\\1$suffix\"/g; /cat=\"(kernel|gpu_)/s/(slice #[0-9]+ \"$quoted)\"/\\1$suffix\"/" >"$kind.some.txt"
done
cp kineto.all.txt "$name.txt" || exit 1
check traces_are_hostile grep -qF '\x1b]0;t\x07' kineto.all.txt

for n in kineto file; do
  f=kineto.all.txt; [ $n = kineto ] || f=$name.txt
  for verb in cat info validate stats steps critical-path; do quiet_terminal "$n.$verb" "$STAVE" "$verb" "$f"; done
  quiet_terminal "$n.info_json" "$STAVE" info --json "$f"
  quiet_terminal "$n.validate_json" "$STAVE" validate --json "$f"
  quiet_terminal "$n.show" "$STAVE" show --once "$f"
  quiet_terminal "$n.merge" "$STAVE" merge "$f" "$f" --assume --to text -o -
  quiet_terminal "$n.cut" "$STAVE" cut "$f" --time 0s: --to text -o -
  quiet_terminal "$n.diff" "$STAVE" diff "$f" lines.some.txt --all --to table
  for to in chrome text csv dot; do quiet_terminal "$n.convert_$to" "$STAVE" convert "$f" --to "$to" -o -; done
  quiet_terminal "$n.plot" "$STAVE" plot timeline "$f" -o -
done
for to in table csv json jsonl markdown; do
  quiet_terminal "stats_$to" "$STAVE" stats kineto.all.txt --group-by cat,name,track --to $to
  quiet_terminal "diff_$to" "$STAVE" diff kineto.all.txt lines.all.txt --all --to $to
  quiet_terminal "steps_$to" "$STAVE" steps kineto.some.txt --to $to
  quiet_terminal "path_$to" "$STAVE" critical-path kineto.all.txt --form $to
  for table in slice args process thread track metadata; do
    quiet_terminal "query_${table}_$to" "$STAVE" query kineto.all.txt "select * from $table" --to $to
  done
done
quiet_terminal query_columns "$STAVE" query lines.all.txt "select 1 as \"$hostile\"" --to table
quiet_terminal query_columns_csv "$STAVE" query lines.all.txt "select 1 as \"$hostile\"" --to csv
quiet_terminal query_error "$STAVE" query lines.all.txt "select \"$hostile\" from nowhere$hostile"
quiet_terminal export_json "$STAVE" export kineto.all.txt --to json -o -
quiet_terminal export_folded "$STAVE" export kineto.all.txt --to folded -o -
for kind in flame gpu steps layers hist counter; do quiet_terminal "plot_$kind" "$STAVE" plot $kind kineto.all.txt '*' -o -; done

for form in "" --json --csv; do
  # shellcheck disable=SC2086 # a form is one word or none
  {
    for s in strace dlio; do for x in some all; do quiet_terminal "report_io_$s$x$form" "$STAVE" report io $s.$x.txt $form; done; done
    for by in file folder process; do quiet_terminal "report_io_$by$form" "$STAVE" report io strace.all.txt --by $by $form; done
    for x in some all; do quiet_terminal "report_gpu_$x$form" "$STAVE" report gpu kineto.$x.txt $form; done
    for x in some all; do quiet_terminal "report_batch_$x$form" "$STAVE" report batch batching.$x.txt $form; done
  }
done
check the_reports_showed_it sh -c 'for r in report_io_strace report_gpu_ report_batch_; do cat out/$r*.out.text | grep -qF x1b || exit 1; done'

# ---- errors and findings ----
printf '[{"ph":"X","name":"%s","ts":1,"dur":1,"pid":1,"tid":1},{"%s":}]' "$hostile" "$hostile" >broken.json
printf '%s' "$hostile" >"$hostile"
quiet_terminal damage "$STAVE" cat broken.json
quiet_terminal unknown_phase "$STAVE" info <(printf '[{"ph":"\\u001b[2J","name":"x","ts":1,"pid":1,"tid":1},{"ph":"X","name":"x","ts":1,"dur":1,"pid":1,"tid":1}]')
quiet_terminal no_trace "$STAVE" info "$hostile"
quiet_terminal no_file "$STAVE" convert "nowhere/$hostile" -o x.txt
quiet_terminal no_folder "$STAVE" convert lines.all.txt -o "nowhere/$hostile.txt"
quiet_terminal no_suffix "$STAVE" convert lines.all.txt -o "$hostile"
quiet_terminal unknown_verb "$STAVE" "$hostile"
quiet_terminal unknown_option "$STAVE" info "--$hostile"
quiet_terminal unknown_letter "$STAVE" info $'-\033'
quiet_terminal bad_number "$STAVE" info --top "$hostile" x
quiet_terminal bad_operand "$STAVE" info x "$hostile"
quiet_terminal no_report "$STAVE" report "$hostile" x
quiet_terminal no_plot "$STAVE" plot "$hostile" x
quiet_terminal import "$STAVE" import . --assume -o x.pftrace
quiet_terminal recover_nothing "$STAVE" recover "nowhere/$hostile"
quiet_terminal config "$STAVE" record --config "nowhere/$hostile" -- true

# ---- times at both ends of the range, durations whose sum is beyond it ----
{
  echo '# stave text 1'; echo 'clock unknown'
  k=0; echo 'track #1 process uuid=0x1 pid=1'
  for cat in a syscall kernel gpu_memcpy user_annotation; do
    t=$((++k)); echo "track #$((t + 1)) thread uuid=0x$((t + 1)) parent=#1 pid=1 tid=$t"
    echo "-9223372036.854775808 slice #$((t + 1)) \"ProfilerStep#1\" cat=\"$cat\" dur=9223372036.854775807 {@flow:0x5 bytes=5 path=\"/x\" ret=5}"
    echo "-9223372036.854775808 instant #$((t + 1)) \"i\""
    for i in 1 2 3; do echo "0.00000000$i slice #$((t + 1)) \"read\" cat=\"$cat\" dur=9223372036.85477580$((7 - i)) {@flow:0x$i device=0 stream=7 path=\"/x\" ret=5}"; done
    echo "9223372036.854775807 instant #$((t + 1)) \"i\" {@flow:0x5}"
  done
  echo 'track #9 counter uuid=0x9 parent=#1 name="c"'
  echo '-9223372036.854775808 counter #9 {-9223372036854775808}'
  echo '9223372036.854775807 counter #9 {9223372036854775807}'
} >wide.txt
for verb in cat info validate stats steps critical-path "critical-path --summary" "show --once" "plot timeline" "plot flame" "plot gpu" "plot steps" "plot counter" \
  "plot layers" "report io" "report io --json" "report gpu" "report gpu --json" "stats --counters" "info --json" "export --to folded -o -" "export --to json -o -"; do
  # shellcheck disable=SC2086 # a verb is words
  quiet_terminal "wide $verb" "$STAVE" $verb wide.txt
done
quiet_terminal "wide hist" "$STAVE" plot hist wide.txt read
# Equal durations so long that a double cannot distinguish them from the next nanosecond.
printf '[{"ph":"X","name":"a","ts":0,"dur":1152921504606846,"pid":1,"tid":1}]' >long.json
quiet_terminal "long hist" "$STAVE" plot hist long.json a
quiet_terminal "long hist linear" "$STAVE" plot hist long.json a --linear --buckets 1000
check long_hist_has_a_bar grep -q '1 slice' "out/long hist.out.text"
quiet_terminal "wide diff" "$STAVE" diff wide.txt lines.some.txt --all
quiet_terminal "wide window" "$STAVE" plot timeline wide.txt --time -9000000000s:9000000000s
quiet_terminal "wide cut" "$STAVE" cut wide.txt --time 9000000000s: --to text
quiet_terminal "wide query" "$STAVE" query wide.txt 'select sum(dur), max(ts) - min(ts), count(*) from slice'

# ---- other processes ----
ln -s /bin/sh "$hostile.sh"
quiet_terminal status "$STAVE" record --no-io --no-block --no-page-cache --interval 0 --no-summary -q -o "${hostile//$'\n'/}.json" -- "./$hostile.sh" -c '"$0" status; :' "$STAVE"
check a_recording_was_listed grep -qF x1b out/status.out.text

# The library's own words, in somebody else's program.
lossy=$BUILD/tests/stress/lossy
if [ -x "$lossy" ]; then
  n=0
  for out in "nowhere/$hostile.pftrace" "$hostile" "unix:/nowhere/$hostile" "tcp:$hostile" "%Z$hostile.pftrace"; do
    quiet_terminal "library_$((++n))" env STAVE_OUT="$out" "$lossy" 1 exit
  done
  for name in STAVE_FULL STAVE_BUFFER STAVE_COMPRESS STAVE_SESSION STAVE_TRIGGER; do
    quiet_terminal "library_$name" env STAVE_OUT=x.pftrace $name="$hostile" "$lossy" 1 exit
  done
  check the_library_said_it sh -c 'for f in out/library_*.err.text; do grep -qF x1b "$f" || exit 1; done'
else
  skip library "the stress programs are not built"
fi

# A program whose name, arguments and output are hostile, killed while it writes.
numbers=$BUILD/tests/stress/numbers out="${hostile//$'\n'/}.pftrace"
if [ -x "$numbers" ]; then
  (STAVE_OUT=$out exec -a "$hostile" "$numbers" 1 0 "progress $hostile" >numbers.log 2>&1) & pid=$!
  for _ in $(seq 600); do [ ! -s "$out.part" ] || break; sleep 0.05; done
  quiet_terminal recover_running "$STAVE" recover
  { kill -9 $pid; wait $pid; } 2>/dev/null
  quiet_terminal recover_dead "$STAVE" recover
  quiet_terminal recover "$STAVE" recover "$out"
  check sessions_were_listed grep -qF x1b out/recover_running.out.text out/recover_dead.out.text
else
  skip recover "the stress programs are not built"
fi

judge
