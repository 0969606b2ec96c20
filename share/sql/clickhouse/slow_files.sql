-- The files on which ranks spend the most time. Columns: run, path, ranks (that used it), ops, reads, bytes_read, dur, max_dur (ns), p99 (ns), errors.
-- ops, reads, bytes_read, dur, max_dur, errors are those of the table `file` of `stave query`.
SELECT run, path, ranks, ops, reads, bytes_read, whole AS dur, s[ops] AS max_dur,
       s[intDiv(99 * (ops - 1), 100) + 1] + (99 * (ops - 1) % 100) / 100 * (s[least(ops, intDiv(99 * (ops - 1), 100) + 2)] - s[intDiv(99 * (ops - 1), 100) + 1]) AS p99,
       errors
FROM (SELECT run, path, uniqExact(rank) AS ranks, count() AS ops, sum(ifNull(op, '') LIKE '%read%') AS reads,
             sum(if(ifNull(op, '') LIKE '%read%', bytes, NULL)) AS bytes_read, sum(dur) AS whole, arraySort(groupArray(dur)) AS s,
             sum(ifNull(errno, 0) != 0) AS errors
      FROM io WHERE path IS NOT NULL GROUP BY run, path)
ORDER BY dur DESC, run, path
LIMIT 100;
