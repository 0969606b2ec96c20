/* The backlog of a tracer's thread: two parts in memory, and a file between them when the second
 * one is full.
 *
 * Written and read in whole parts, so that a call never lies across two of them. */
#include "serving/backlog.h"

#include "core/base/mem.h"
#include "core/files/unlinked.h"
#include "core/files/write_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART_BYTES = 256 << 10, CALL_BYTES = SV_CELL_WORDS * 8 };
/* The most that the file takes; a server at its limit fills it in minutes. */
#define FILE_BYTES_MAX ((uint64_t)1 << 30)

void sv_backlog_init(struct sv_backlog *b, const char *dir)
{
    *b = (struct sv_backlog){.fd = sv_open_unlinked(dir), .limit = FILE_BYTES_MAX};
    b->is_broken = b->fd < 0;
    b->head.bytes = sv_alloc(PART_BYTES);
    b->tail.bytes = sv_alloc(PART_BYTES);
}

void sv_backlog_fini(struct sv_backlog *b)
{
    free(b->head.bytes);
    free(b->tail.bytes);
    if (b->fd >= 0)
        close(b->fd);
}

/* ---- the file: parts of PART_BYTES, each with its length before it ---- */

static bool write_part(struct sv_backlog *b)
{
    struct sv_backlog_part *p = &b->tail;
    uint64_t at = b->written, len = p->len;
    if (!sv_write_all_at(b->fd, &len, sizeof len, at) ||
        !sv_write_all_at(b->fd, p->bytes, p->len, at + sizeof len))
        return false;
    b->written += sizeof len + len;
    p->len = 0;
    return true;
}

static bool read_part(struct sv_backlog *b)
{
    struct sv_backlog_part *p = &b->head;
    uint64_t len = 0;
    if (!sv_read_all_at(b->fd, &len, sizeof len, b->read) || len > PART_BYTES ||
        !sv_read_all_at(b->fd, p->bytes, len, b->read + sizeof len))
        return false;
    p->at = 0;
    p->len = len;
    b->read += sizeof len + len;
    if (b->read == b->written) { /* all of it was read: the disk gets its space back */
        b->read = b->written = 0;
        b->is_broken |= ftruncate(b->fd, 0) != 0;
    }
    return true;
}

/* ---- calls ---- */

static bool swap_parts(struct sv_backlog *b)
{
    struct sv_backlog_part empty = {.bytes = b->head.bytes};
    b->head = b->tail;
    b->tail = empty;
    return true;
}

static bool make_space(struct sv_backlog *b)
{
    if (b->head.at == b->head.len && b->read == b->written)
        return swap_parts(b);
    if (b->is_broken || b->written >= b->limit)
        return false;
    b->is_broken = !write_part(b);
    return !b->is_broken;
}

bool sv_backlog_put(struct sv_backlog *b, const struct sv_call_cell *call, const uint64_t *words)
{
    size_t n = (size_t)call->words * sizeof *words, need = CALL_BYTES + n;
    struct sv_backlog_part *p = &b->tail;
    if (need > PART_BYTES || (PART_BYTES - p->len < need && !make_space(b)))
        return false;
    memcpy(p->bytes + p->len, call->word, CALL_BYTES);
    memcpy(p->bytes + p->len + CALL_BYTES, words, n);
    p->len += need;
    b->n++;
    return true;
}

static bool next_part(struct sv_backlog *b, uint64_t *lost)
{
    if (b->read != b->written) {
        if (read_part(b))
            return true;
        b->is_broken = true; /* neither the file nor what came after it is in order now */
        *lost += b->n;
        b->n = b->read = b->written = b->tail.len = 0;
        return false;
    }
    return b->tail.len > 0 && swap_parts(b);
}

bool sv_backlog_take(struct sv_backlog *b, struct sv_call_cell *call, const uint64_t **words,
                     uint64_t *lost)
{
    struct sv_backlog_part *p = &b->head;
    if (p->at == p->len && !next_part(b, lost))
        return false;
    memcpy(call->word, p->bytes + p->at, CALL_BYTES);
    *words =
        (const uint64_t *)(const void *)(p->bytes + p->at + CALL_BYTES); /* all are whole words */
    p->at += CALL_BYTES + (size_t)call->words * sizeof **words;
    b->n--;
    return true;
}
