/* See left.h. Called by `stave recover` and by what finds leftovers for it.
 *
 * All entries are decoded from the first on, since the table of processes grows with them; the
 * events of those that are in the growing file are dropped. The file is this user's own, but
 * nothing in it is trusted: damage ends it, and is reported with its place. */
#include "record/spool/left.h"

#include "record/decode/decode.h"
#include "record/spool/kspool.h"
#include "record/spool/notes.h"
#include "record/spool/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const unsigned sv_spool_left_gives = SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_TRACK_ORDER;

struct left {
    struct sv_source source;
    struct sv_kspool spool;
    struct sv_decode *decode;
    struct sv_notes notes;
    uint64_t done; /* entries before this position are in the growing file */
    bool is_open;  /* an entry is being decoded */
};

static void learn(void *ctx, const struct sv_note *note, const char *text, size_t len)
{
    struct left *x = ctx;
    struct sv_tree *t = sv_decode_tree(x->decode);
    if (note->kind == SV_NOTE_PROCESS) {
        sv_processes_get((const uint8_t *)text, len, t, sv_decode_inodes(x->decode));
    } else if (note->kind == SV_NOTE_FILE && len > 0 && len <= SV_WIRE_PATH_MAX) {
        struct sv_file *f = sv_tree_file(t, NULL, text, len);
        sv_inodes_learn(sv_decode_inodes(x->decode), t, (uint32_t)note->fd, note->ns, f);
        sv_file_put(t, f);
    }
}

/* False: there is no more. */
static bool open_entry(struct left *x)
{
    struct sv_err err = {0};
    bool is_whole = true;
    for (;;) {
        int64_t at = (int64_t)x->spool.at;
        int kind = sv_kspool_next(&x->spool, &err);
        if (kind == SV_KSPOOL_PROCESSES)
            is_whole = sv_processes_get(x->spool.entry, x->spool.n, sv_decode_tree(x->decode),
                                        sv_decode_inodes(x->decode));
        else if (kind == SV_KSPOOL_NOTES)
            is_whole = sv_notes_set(&x->notes, x->spool.entry, x->spool.n, learn, x);
        if (kind < 0 || !is_whole)
            sv_report_add(x->source.report, SV_DAMAGE, "the spool is damaged", 1, at, NULL);
        if (kind <= SV_KSPOOL_END || !is_whole)
            return false;
        if (kind == SV_KSPOOL_RECORDS || kind == SV_KSPOOL_LATE)
            break;
    }
    sv_decode_read_from(x->decode, &x->spool.rings, &x->notes, false);
    sv_decode_round(x->decode, UINT64_MAX);
    x->is_open = true;
    return true;
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct left *x = (struct left *)source;
    struct sv_source *decoder = sv_decode_source(x->decode);
    for (;;) {
        if (!x->is_open && !open_entry(x))
            return 0;
        int n = decoder->next(decoder, b, err);
        bool is_known = x->spool.at <= x->done;
        if (n < 0 || (n > 0 && !is_known))
            return n;
        if (n > 0)
            sv_batch_reset(b);
        else
            x->is_open = false;
    }
}

static void close_source(struct sv_source *source)
{
    struct left *x = (struct left *)source;
    sv_decode_free(x->decode);
    sv_notes_fini(&x->notes);
    sv_kspool_close(&x->spool);
    free(x);
}

int sv_spool_left_source(const char *path, uint64_t part_bytes, struct sv_dict *dict,
                         struct sv_report *report, struct sv_source **out, struct sv_err *err)
{
    struct left *x = sv_alloc(sizeof *x);
    int code = sv_kspool_open(&x->spool, path, part_bytes, &x->done, err);
    if (code < 0) {
        sv_kspool_close(&x->spool);
        free(x);
        return code;
    }
    x->decode = sv_decode_new(dict, report, NULL);
    x->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = sv_spool_left_gives,
                                   .dict = dict,
                                   .report = report};
    *out = &x->source;
    return 0;
}

uint64_t sv_spool_left_bytes(const struct sv_claim *c, uint64_t part_bytes, char *path, size_t size)
{
    struct sv_kspool s;
    struct sv_err err = {0};
    uint64_t done = 0, bytes = 0;
    if (!sv_kspool_name(c->out, c->holder.pid, path, size)) {
        path[0] = '\0';
        return 0;
    }
    int code = sv_kspool_open(&s, path, part_bytes, &done, &err);
    if (s.fd < 0)
        path[0] = '\0';
    if (code >= 0)
        bytes = s.end > done ? s.end - done : 0;
    else if (code == SV_EFORMAT)
        bytes = 1; /* of another version: there is something */
    sv_kspool_close(&s);
    return bytes;
}

void sv_spool_left_remove(const char *path)
{
    struct sv_kspool s;
    struct sv_err err = {0};
    uint64_t done;
    sv_kspool_open(&s, path, 0, &done, &err);
    sv_kspool_remove(&s);
}
