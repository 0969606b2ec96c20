-- The files on which ranks spend the most time. Columns: run, path, ranks (that used it), ops, reads, bytes_read, dur, max_dur (ns), p99 (ns), errors.
-- ops, reads, bytes_read, dur, max_dur, errors are those of the table `file` of `stave query`.
SELECT run, path, count(DISTINCT rank) AS ranks, count(*) AS ops,
       count(*) FILTER (op GLOB '*read*') AS reads, sum(bytes) FILTER (op GLOB '*read*') AS bytes_read,
       sum(dur) AS dur, max(dur) AS max_dur, quantile_cont(dur, 0.99) AS p99,
       count(*) FILTER (errno != 0) AS errors
FROM io WHERE path IS NOT NULL
GROUP BY run, path
ORDER BY dur DESC, run, path
LIMIT 100;
