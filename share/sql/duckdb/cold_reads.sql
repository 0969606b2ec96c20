-- What reads cost the disk: by process the bytes that calls read, those that block requests read for it, and the share that came from the page cache.
-- Columns: run, host, rank, pid, reads, bytes_read, block_reads, block_bytes_read, cached (0 to 1; NULL: calls read nothing, or the rank's trace has no block requests).
-- The figures of `stave report io`: read-ahead and requests that the kernel ascribes to nobody make it an estimate.
SELECT run, host, rank, pid, reads, bytes_read, block_reads, block_bytes_read,
       CASE WHEN bytes_read > 0 AND sum(requests) OVER (PARTITION BY run, host, rank) > 0
            THEN greatest(0, 1 - block_bytes_read / bytes_read) END AS cached
FROM (SELECT run, host, rank, pid, count(*) FILTER (category = 'block') AS requests,
             count(*) FILTER (is_call) AS reads, coalesce(sum(bytes) FILTER (is_call), 0) AS bytes_read,
             count(*) FILTER (is_block) AS block_reads, coalesce(sum(bytes) FILTER (is_block), 0) AS block_bytes_read
      FROM (SELECT *, category = 'block' AND op = 'read' AS is_block,
                   category != 'block' AND op IN ('read', 'pread64', 'readv', 'preadv', 'preadv2', 'io_uring_read', 'io_uring_readv',
                                                  'io_uring_read_fixed') AS is_call FROM io)
      GROUP BY run, host, rank, pid)
ORDER BY block_bytes_read DESC, run, rank, pid;
