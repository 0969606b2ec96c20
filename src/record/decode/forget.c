/* Processes and threads that are gone: their rows are in the file, so their numbers can be used
 * again. Called by the recorder between its rounds.
 *
 * Rows below a process's or a thread's are anybody's (counters, lanes, GPUs), so all rows are
 * looked at, which costs as much as there are: the caller waits until it is worth it. */
#include "record/decode/forget.h"

#include <stdlib.h>

enum { DEEPEST = 8 };

struct ended {
    const struct sv_dict *dict;
    bool (*keeps)(void *ctx, uint32_t pid);
    void *ctx;
    bool *is_root; /* by row: a process or a thread that goes */
    size_t n;
};

static bool keeps(void *ctx, uint32_t pid)
{
    const struct ended *d = ctx;
    return d->keeps && d->keeps(d->ctx, pid);
}

static void mark(void *ctx, sv_track root)
{
    struct ended *d = ctx;
    d->is_root[root] = true;
    d->n++;
}

static bool is_ended(const struct ended *d, sv_track t)
{
    sv_track thread = sv_dict_thread_of(d->dict, t), process = sv_dict_process_of(d->dict, t);
    return (thread && d->is_root[thread]) || (process && d->is_root[process]);
}

static unsigned depth_of(const struct sv_dict *dict, sv_track t)
{
    unsigned depth = 0;
    while (depth < DEEPEST && (t = dict->tracks[t].parent) != 0)
        depth++;
    return depth;
}

/* The sink gets all of them first, the deepest first: to describe one it may have to describe those
 * above. Then they are removed. */
static void forget_rows(const struct ended *d, struct sv_tree *t, struct sv_sink *sink)
{
    struct sv_dict *dict = t->dict;
    sv_track *rows = NULL;
    size_t n = 0, cap = 0;
    for (sv_track row = 1; row < dict->n_tracks; row++) {
        if (!is_ended(d, row))
            continue;
        rows = sv_grow(rows, &cap, n + 1, sizeof *rows);
        rows[n++] = row;
    }
    for (unsigned depth = DEEPEST + 1; depth-- > 0;)
        for (size_t i = 0; i < n; i++)
            if (depth_of(dict, rows[i]) == depth)
                sink->forget(sink, rows[i]);
    for (size_t i = 0; i < n; i++) {
        sv_lanes_forget(&t->lanes, rows[i]);
        sv_dict_forget(dict, rows[i]);
    }
    free(rows);
}

void sv_forget_dead(struct sv_tree *t, int64_t before_ns, bool (*keeps_rows)(void *, uint32_t),
                    void *ctx, struct sv_sink *sink)
{
    struct ended d = {.dict = t->dict,
                      .keeps = keeps_rows,
                      .ctx = ctx,
                      .is_root = sv_alloc(t->dict->n_tracks * sizeof *d.is_root)};
    const struct sv_tree_forgetting how = {keeps, mark, &d};
    sv_tree_forget(t, before_ns, &how);
    if (d.n > 0 && sink->forget)
        forget_rows(&d, t, sink);
    free(d.is_root);
}
