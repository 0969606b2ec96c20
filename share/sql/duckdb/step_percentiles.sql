-- How long steps take, by rank. Columns: run, host, rank, n, p50, p90, p99 (interpolated, ns), max.
SELECT run, host, rank, count(*) AS n,
       quantile_cont(dur, 0.50) AS p50, quantile_cont(dur, 0.90) AS p90, quantile_cont(dur, 0.99) AS p99, max(dur) AS max
FROM step GROUP BY run, host, rank
ORDER BY run, rank, host;
