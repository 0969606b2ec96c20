#!/usr/bin/env bash
# Long recordings: --rotate makes parts that are whole by themselves, --last keeps a ring that a trigger saves. Works without root: libstave's events suffice.
. "$SRC/tests/harness/cli.sh"
mkdir -m 700 run; export STAVE_SESSION_DIR=$TMP XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
epochs=$BUILD/tests/stress/epochs
count() { "$STAVE" cat -q "$1" | grep -c -- "$2"; }
total() { local n=0 f; for f in "${@:2}"; do n=$((n + $(count "$f" "$1"))); done; echo "$n"; }
options=(-q --no-summary --light --no-io --no-block --no-page-cache --interval 0)

# ---- --rotate ----
run_any rotate 0 "$STAVE" record "${options[@]}" -o r.pftrace --rotate 256K -- "$epochs" 400
parts=(r-????.pftrace r.pftrace); echo "  ${#parts[@]} parts"
check rotate_parts test ${#parts[@]} -gt 2
for p in "${parts[@]}"; do "$STAVE" validate -q "$p" >valid.out 2>&1 || echo "$p" >>invalid; done
check rotate_all_valid test ! -e invalid
check rotate_every_event test "$(total '"sample"' "${parts[@]}")" = 200000
check rotate_every_step test "$(total 'begin .*"step".*i=' "${parts[@]}")" = 400
# In every part that it lasted into; the newest one may have begun when all was over.
epochs_seen=$(total 'begin .*"epoch"' "${parts[@]}")
check rotate_epoch_in_each test "$epochs_seen" -ge $((${#parts[@]} - 1)) -a "$epochs_seen" -le ${#parts[@]}
check rotate_epoch_continued test "$(total '"epoch".*continued=true' "${parts[@]}")" = $((epochs_seen - 1))
check rotate_counter_in_each test "$(for p in "${parts[@]}"; do "$STAVE" cat -q "$p" | grep -c 'counter .* 7$\|counter .*{7[ }]' | grep -v '^0'; done | wc -l)" = ${#parts[@]}
check rotate_no_part_left test ! -e r.pftrace.part
run_any rotate_count 0 "$STAVE" record "${options[@]}" -o c.pftrace --rotate 256K,2 -- "$epochs" 400
check rotate_two_are_left test "$(find . -name 'c*.pftrace' | wc -l)" = 2
check rotate_last_valid "$STAVE" validate -q c.pftrace
run_any rotate_one 0 "$STAVE" record "${options[@]}" -o o.pftrace --rotate 256K,1 -- "$epochs" 200
check rotate_one_is_left test "$(find . -name 'o*.pftrace' | wc -l)" = 1

# All parts are one trace for every verb: the rows are those of a recording that was not rotated, also of a rank, of which two files of the same time are refused.
RANK=0 WORLD_SIZE=1 run_any rotate_rank 0 "$STAVE" record "${options[@]}" -o k.pftrace --rotate 256K -- "$epochs" 400
RANK=0 WORLD_SIZE=1 run_any rotate_packed 0 "$STAVE" record "${options[@]}" -o z.pftrace --compress zstd --rotate 256K -- "$epochs" 1600
rows='SELECT name, count(*), sum(dur > 0), sum(depth * (dur > 0)) FROM slice WHERE name IN ("epoch", "step", "sample") GROUP BY name UNION ALL SELECT "counters", count(*), max(value), 0 FROM counter
  UNION ALL SELECT "marks", count(*), 0, 0 FROM args WHERE key IN ("continued", "stave.part") UNION ALL SELECT "metadata", count(*), 0, 0 FROM metadata WHERE name LIKE "%rotation%"'
whole() { "$STAVE" query -q "$@" "$rows" | tail -n +2 | sort | xargs; }
wanted="counters,1,7.0,0 epoch,1,1,0 marks,0,0,0 metadata,0,0,0 sample,200000,0,0 step,400,400,400"
k=(k-????.pftrace k.pftrace)
check parts_are_several test ${#k[@]} -gt 2
check parts_query test "$(whole "${k[@]}")" = "$wanted"
mapfile -t reversed < <(printf '%s\n' k-????.pftrace | sort -r)
check parts_any_order test "$(whole k.pftrace "${reversed[@]}")" = "$wanted"
check parts_packed test "$(whole z-????.pftrace z.pftrace)" = "$(echo "$wanted" | sed 's/400/1600/g; s/200000/800000/')"
run_any parts_merge 0 "$STAVE" merge -q "${k[@]}" -o merged.pftrace
check parts_merged test "$(whole merged.pftrace)" = "$wanted"
run_any parts_convert 0 "$STAVE" convert -q "${k[@]}" -o converted.json
check parts_converted test "$(whole converted.json)" = "$wanted"
run_any parts_parquet 0 "$STAVE" export -q "${k[@]}" --to parquet -o lake
check parts_one_rank test "$(find lake -name slice.parquet | wc -l)" = 1
run_any parts_tar 0 "$STAVE" export -q "${k[@]}" --to perfetto-tar -o k.tar
check parts_one_member sh -c '[ "$(tar -tf k.tar | xargs)" = "rank0000.pftrace perfetto_manifest.json" ] && tar -xf k.tar rank0000.pftrace'
check parts_member test "$(whole rank0000.pftrace)" = "$wanted"
run_any parts_stats 0 "$STAVE" stats -q "${k[@]}" --to csv
check parts_stats_count grep -q '^step,.*\b400\b' parts_stats.out
run_any parts_report 0 "$STAVE" report wait -q "${k[@]}"
# Without a part in the middle what goes on through the gap ends before it and begins after it.
check parts_with_gap test "$("$STAVE" query -q "${k[0]}" "${k[@]:2}" 'SELECT count(*) FROM slice WHERE name = "epoch"' | tail -n 1)" = 2
# Each part has bounds of its own, to the nanosecond: what goes on in it begins with it, or 1 ns before the first edge if that is earlier. The first one begins with its first event.
bounds="WITH label AS (SELECT substr(str_value, instr(str_value, ' ') + 1) AS words FROM metadata WHERE name LIKE '%rotation%'),
  part AS (SELECT CAST(words AS INT) AS number, substr(words, instr(words, ' ')) + 0 AS began FROM label),
  own AS (SELECT ts, dur FROM slice WHERE coalesce(arg_set_id, -1) NOT IN (SELECT arg_set_id FROM args WHERE key = 'debug.continued')),
  edge AS (SELECT ts FROM own WHERE dur > 0 UNION ALL SELECT ts + dur FROM slice WHERE dur > 0),
  first AS (SELECT coalesce((SELECT min(ts) FROM own), began) AS ts, coalesce((SELECT min(ts) FROM edge) - 1, began) AS before_edge FROM part),
  last AS (SELECT max(ts) AS ts FROM (SELECT ts + dur AS ts FROM slice UNION ALL SELECT ts FROM counter))
  SELECT CASE number WHEN 1 THEN start_ts >= began AND start_ts = min(first.ts, counter.ts) ELSE start_ts = min(began, first.ts, before_edge) AND counter.ts = began END AND end_ts = last.ts
  FROM trace_bounds, part, first, last, counter"
check parts_own_bounds test "$(for p in "${k[@]}"; do "$STAVE" query -q "$p" "$bounds" | tail -n 1; done | sort | uniq -c | xargs)" = "${#k[@]} 1"

# Parts of a recording before stay as they are, and are not in the archive of the next one.
for n in 0001 0002 0007; do echo "before $n" >"b-$n.pftrace"; done; echo other >b-0009.json; echo other >bb-0011.pftrace
run_any rotate_again 0 "$STAVE" record "${options[@]}" -o b.pftrace --rotate 256K,3 -- "$epochs" 400
check rotate_keeps_what_was_there test "$(cat b-0001.pftrace b-0002.pftrace b-0007.pftrace b-0009.json bb-0011.pftrace | sort | tr '\n' ' ')" = 'before 0001 before 0002 before 0007 other other '
check rotate_counts_on test ! -e b-0003.pftrace -a "$(find . -name 'b-*.pftrace' | wc -l)" = 5
check rotate_after_them test "$(find . -name 'b-*.pftrace' | sort | tail -n 1)" '>' ./b-0008

if command -v zstd >/dev/null; then
  run_any rotate_archive 0 "$STAVE" record "${options[@]}" -o a.pftrace --rotate 256K --archive -- "$epochs" 400
  mkdir unpacked; zstd -dcq a.tar.zst | tar -x -C unpacked
  check rotate_archive_parts test "$(find . -maxdepth 1 -name 'a-????.pftrace' | wc -l)" -gt 1
  for p in a.pftrace a-????.pftrace; do cmp "$p" "unpacked/a/$p" || echo "$p" >>not_packed; done
  check rotate_archive_whole test ! -e not_packed
  check rotate_archive_nothing_else test "$(find unpacked/a -name '*.pftrace' | wc -l)" = "$(find . -maxdepth 1 -name 'a*.pftrace' | wc -l)"
  rm -rf unpacked
else skip rotate_archive "no zstd here"; fi

# ---- --last ----
"$STAVE" record --no-summary --no-io --no-block --no-page-cache --interval 0 -o ring.pftrace --last 1s -- "$epochs" 0 enough 2>ring.err & recorder=$!
for _ in $(seq 600); do compgen -G 'ring.pftrace.ring-0012*' >/dev/null && break; sleep 0.05; done
check ring_forgets test ! -e ring.pftrace.ring-0001
run_any trigger 0 "$STAVE" trigger
check trigger_name test "$(cat trigger.out)" = "$TMP/ring-0001.pftrace"
check trigger_goes_on kill -0 $recorder
kill -USR1 $recorder
for _ in $(seq 600); do [ -e ring-0002.pftrace ] && break; sleep 0.05; done
check trigger_by_signal "$STAVE" cat -q ring-0002.pftrace
run_any trigger_unknown 3 "$STAVE" trigger nobody
touch enough; wait $recorder; check ring_exit test $? = 0
check ring_reported grep -q 'saved .*ring-0001.pftrace' ring.err
check ring_leaves_nothing test "$(find . -name 'ring*.part' -o -name '*.ring-*' | wc -l)" = 0
for f in ring-0001 ring-0002 ring; do
  check "${f}_epoch_once" test "$(count $f.pftrace 'begin .*"epoch".*continued=true')" = 1
  check "${f}_steps" test "$(count $f.pftrace 'begin .*"step".*i=')" -gt 20
  check "${f}_not_the_first" test "$(count $f.pftrace 'begin .*"step".*i=0}')" = 0
  check "${f}_counter" test "$(count $f.pftrace 'counter .*7')" -ge 1
done
check ring_valid "$STAVE" validate -q ring.pftrace
# No step is missing in the middle, where segments were joined.
check ring_no_gap sh -c '"$0" cat -q ring.pftrace | sed -nE "s/.*begin .*\"step\".*i=([0-9]+).*/\1/p" | awk "NR > 1 && \$1 != last + 1 { exit 1 } { last = \$1 }"' "$STAVE"
run_any ring_size 0 "$STAVE" record "${options[@]}" -o s.pftrace --last 2M -- "$epochs" 2000
check ring_size_bounded test "$(stat -c %s s.pftrace)" -lt 3500000
check ring_size_valid "$STAVE" validate -q s.pftrace
check ring_size_newest test "$(count s.pftrace 'begin .*"step".*i=1999}')" = 1
run_any ring_short 0 "$STAVE" record "${options[@]}" -o t.pftrace --last 10s -- "$epochs" 5
check ring_short_whole test "$(count t.pftrace 'begin .*"epoch".*number=1')" = 1

# ---- a trigger for nobody, bad input ----
run_any trigger_none 3 "$STAVE" trigger
check trigger_none_says grep -q "no recording with --last is running" trigger_none.err
"$STAVE" record "${options[@]}" -o plain.pftrace -- "$epochs" 0 stop_plain & recorder=$!
check plain_listed until_true '[ -s "$(echo run/stave-recordings/$recorder.*)" ]'
run_any trigger_plain 2 "$STAVE" trigger $recorder
check trigger_plain_says grep -q "a trigger needs --last" trigger_plain.err
touch stop_plain; wait $recorder
bad() { run_any "bad_$1" 2 "$STAVE" record -q -o "${4:-x.pftrace}" "$2" "$3" -- true; }
bad rotate_word --rotate big; bad rotate_small --rotate 1K; bad rotate_count --rotate 1M,0; bad rotate_count_word --rotate 1M,two; bad rotate_count_none --rotate 1M,
bad last_plain --last 30; bad last_short --last 10ms; bad last_small --last 64K; bad last_word --last always
bad rotate_json --rotate 1M x.json; bad last_gz --last 10s x.json.gz
run_any bad_both 2 "$STAVE" record -q -o x.pftrace --rotate 1M --last 10s -- true

# A killed recorder's ring: all of it is recovered, and a second one under the same name does not touch it.
for _ in 1 2; do
  rm -f enough; before=$(find . -name 'killed.pftrace.ring-*[0-9]' | wc -l)
  "$STAVE" record "${options[@]}" -o killed.pftrace --last 1s -- "$epochs" 0 enough 2>/dev/null & recorder=$!
  for _ in $(seq 600); do [ "$(find . -name 'killed.pftrace.ring-*[0-9]' | wc -l)" -ge $((before + 3)) ] && break; sleep 0.05; done
  kill -9 $recorder; wait $recorder 2>/dev/null; touch enough
done
check killed_rings test -e killed.pftrace.session -a -e killed.pftrace.session.1
for _ in $(seq 600); do "$STAVE" recover 2>/dev/null | grep -c 'another process of it is running' >/dev/null || break; sleep 0.05; done
first=$(sed -n 's/^segment //p' killed.pftrace.session) # of the second one's
segments() { find . -name 'killed.pftrace.ring-*[0-9]' | sed 's/.*ring-0*//' | awk -v first="$first" '{ old += $1 < first; new += $1 >= first } END { print old + 0, new + 0 }'; }
read -r old new < <(segments)
check killed_both test "$old" -ge 3 -a "$new" -ge 3
check killed_recovers_older "$STAVE" recover -q "$(sed -n 's/^session //p' killed.pftrace.session.1)" -o first.pftrace
check killed_older_only test "$(segments)" = "0 $new" -a -e killed.pftrace.session -a ! -e killed.pftrace.session.1
check killed_recovers "$STAVE" recover -q killed.pftrace -o second.pftrace
check killed_nothing_left test "$(segments)" = "0 0" -a ! -e killed.pftrace.session
check killed_valid "$STAVE" cat -q --strict second.pftrace
check killed_no_gap sh -c '"$0" cat -q second.pftrace | sed -nE "s/.*begin .*\"step\".*i=([0-9]+).*/\1/p" | awk "NR > 1 && \$1 != last + 1 { exit 1 } { last = \$1 } END { exit NR < 10 }"' "$STAVE"
