-- What reads cost the disk: by process the bytes that calls read, those that block requests read for it, and the share that came from the page cache.
-- Columns: run, host, rank, pid, reads, bytes_read, block_reads, block_bytes_read, cached (0 to 1; NULL: calls read nothing, or the rank's trace has no block requests).
-- The figures of `stave report io`: read-ahead and requests that the kernel ascribes to nobody make it an estimate.
SELECT run, host, rank, pid, reads, bytes_read, block_reads, block_bytes_read,
       if(bytes_read > 0 AND requests > 0, greatest(0, 1 - block_bytes_read / bytes_read), NULL) AS cached
FROM (SELECT run, host, rank, pid, sum(is_call) AS reads, sum(is_call * size) AS bytes_read, sum(is_block) AS block_reads,
             sum(is_block * size) AS block_bytes_read
      FROM (SELECT run, host, rank, pid, ifNull(bytes, 0) AS size, ifNull(category, '') = 'block' AND ifNull(op, '') = 'read' AS is_block,
                   ifNull(category, '') != 'block' AND ifNull(op, '') IN ('read', 'pread64', 'readv', 'preadv', 'preadv2', 'io_uring_read',
                                                                          'io_uring_readv', 'io_uring_read_fixed') AS is_call FROM io)
      GROUP BY run, host, rank, pid) AS p
GLOBAL ALL INNER JOIN (SELECT run, host, rank, sum(ifNull(category, '') = 'block') AS requests FROM io GROUP BY run, host, rank) AS r USING (run, host, rank)
ORDER BY block_bytes_read DESC, run, rank, pid;
