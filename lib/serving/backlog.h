/* Calls that wait until a processor is free: first in, first out; 512 KiB in memory, the rest in a
 * file without a name.
 *
 * The tracer's thread alone uses it. The calls are in the .pftrace already (serving.life), so that
 * what is here when the process is killed can be made again. */
#pragma once

#include "serving/call_ring.h"

struct sv_backlog_part {
    uint8_t *bytes;
    size_t at, len;
};

struct sv_backlog {
    struct sv_backlog_part head, tail; /* where calls are taken from, and where they come */
    int fd;                            /* -1: no file could be made */
    uint64_t read, written, limit;     /* of the file */
    bool is_broken;                    /* the file failed: no further call is taken into it */
    uint64_t n;                        /* calls in it */
};

/* Its file is in the directory. */
void sv_backlog_init(struct sv_backlog *b, const char *dir);
void sv_backlog_fini(struct sv_backlog *b);
/* Half of what its file may take: time to work it off, whoever pays, while it still takes what
 * comes. */
static inline bool sv_backlog_is_long(const struct sv_backlog *b)
{
    return b->written >= b->limit / 2;
}
/* False: it is not taken, because it is too long, the disk is full or there is too much already;
 * the calls before it are to be taken out first. */
bool sv_backlog_put(struct sv_backlog *b, const struct sv_call_cell *call, const uint64_t *words);
/* False: there is none. The words are valid until the next call. A file that cannot be read counts
 * in *lost. */
bool sv_backlog_take(struct sv_backlog *b, struct sv_call_cell *call, const uint64_t **words,
                     uint64_t *lost);
