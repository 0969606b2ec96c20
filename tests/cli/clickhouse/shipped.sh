# shellcheck shell=bash disable=SC2154
# The statements of share/sql/clickhouse against Stave's own answers; part of tests/cli/clickhouse.sh (18.16, two shards) and tests/cli/clickhouse_chdb.sh (a current engine).
mkdir lake; python3 "$SRC/tests/cli/lake/make_ranks.py" lake; python3 "$SRC/tests/cli/lake/make_collectives.py" lake
ranks=(lake/rank0.txt lake/rank1.txt lake/rank2.txt lake/rank3.txt)
run_any load_lake 0 "$STAVE" export -q "${ranks[@]}" lake/apart[0-3].txt lake/one[0-3].txt -o "$url"
for name in stragglers skew step_percentiles cold_reads slow_files; do
  run_any "all_$name" 0 "$STAVE" query -q "$url" -f "$SRC/share/sql/clickhouse/$name.sql" --to csv
  grep -E '^(run|job 7/α),' "all_$name.out" >"shipped_$name.out"
  check "shipped_${name}_columns" sh -c '[ "$(sed -n "s/.*Columns: //p" "$0" | sed "s/([^)]*)//g; s/[. ]//g")" = "$(head -n 1 "$1")" ]' \
    "$SRC/share/sql/duckdb/$name.sql" "shipped_$name.out"
done
own() { "$STAVE" query -q "${ranks[@]}" "$1" --to csv; }
close_to() { # numbers to twelve digits
  awk -F, 'NR == FNR { a[FNR] = $0; next } { n = split(a[FNR], w, ","); for (i = 1; i <= n; i++) if (w[i] != $i && (w[i] - $i) ^ 2 > (1e-12 * $i) ^ 2) { print a[FNR] " is not " $0; exit 1 } m++ }
    END { exit !(m > 1 && m == length(a)) }' "$1" "$2"
}

"$STAVE" steps -q "${ranks[@]}" --to csv | sed -nE 's|^([0-9]+),rank ([0-9]+) .*/main,[0-9]+,([0-9]+),.*,straggler.*|job 7/α,\1,\2,\3|p' | sort -n -t, -k2 >own_stragglers
check stragglers sh -c 'tail -n +2 shipped_stragglers.out | cut -d, -f1,2,4,5 | diff - own_stragglers && [ "$(wc -l <own_stragglers)" = 10 ]'
# Equal durations between hosts tell nothing.
own 'SELECT "group", seq, op, count(*) AS n FROM collective GROUP BY 1, 2, 3 ORDER BY 1, 2' >own_skew
check skew sh -c 'cut -d, -f2-5 shipped_skew.out | diff - own_skew && [ "$(wc -l <own_skew)" = 31 ] && [ "$(cut -d, -f8-10 shipped_skew.out | sort -u | xargs)" = ",, skew,last_rank,method" ]'
# Where every step ends in a collective, rank 1 is slow in each but step 7: by its steps, and by its collectives, whatever the wall clocks say.
. "$SRC/tests/cli/lake/collectives.sh"
check_collectives all lake
own 'SELECT k.rank, count(*) AS n, percentile(s.dur, 50) AS p50, percentile(s.dur, 90) AS p90, percentile(s.dur, 99) AS p99, max(s.dur) AS max
  FROM step s JOIN track k ON k.id = s.track_id GROUP BY k.rank ORDER BY k.rank' >own_percentiles
cut -d, -f3- shipped_step_percentiles.out >their_percentiles
check step_percentiles close_to own_percentiles their_percentiles
for r in 0 1 2 3; do
  "$STAVE" report io -q "lake/rank$r.txt" --csv --by process | awk -F, -v r=$r 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { print r "," $at["pid"] "," $at["reads"] "," $at["bytes_read"] "," $at["block_reads"] "," $at["block_bytes_read"] "," $at["cached"] }'
done | sort >own_cold
tail -n +2 shipped_cold_reads.out | cut -d, -f3- | sort >their_cold
check cold_reads close_to own_cold their_cold
own 'SELECT path, ops, reads, bytes_read, dur, max_dur, errors FROM file ORDER BY dur DESC' >own_files
check slow_files sh -c 'cut -d, -f2,4-8,10 shipped_slow_files.out | diff - own_files && [ "$(wc -l <own_files)" = 6 ]'
