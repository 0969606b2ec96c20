/* A source that reads ahead in a thread of its own: it fills batches, the pump takes them, in
 * order.
 *
 * Batches go through a line (threads/workers.h), some at a time, because a change of threads costs
 * as much as hundreds of events. The dictionary belongs to the thread that runs the source until
 * that ends; each batch carries how many tracks there were when it was made. Texts of arguments may
 * lie in the source's memory, which is good until its next call only: they are copied. */
#include "files/beside.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { BATCHES = 16 };

struct load {
    struct sv_batch batches[BATCHES];
    uint32_t n_tracks[BATCHES];
    size_t n;
    bool is_ready; /* the batches were made */
};

struct reading {
    struct sv_source *source;
    int code; /* of the source, once it has ended */
    bool has_ended;
    struct sv_err err;
};

static void keep_texts(struct sv_batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct sv_arg *args = (struct sv_arg *)(uintptr_t)b->events[i].args; /* in the batch */
        for (size_t k = 0; k < b->events[i].n_args; k++)
            if (args[k].type == SV_ARG_TEXT)
                args[k].text = sv_batch_text(b, args[k].text, args[k].size);
    }
}

static bool fill_load(void *ctx, void *item)
{
    struct reading *r = ctx;
    struct load *l = item;
    for (size_t i = 0; !l->is_ready && i < BATCHES; i++)
        sv_batch_init(&l->batches[i]);
    l->is_ready = true;
    l->n = 0;
    while (l->n < BATCHES && !r->has_ended) {
        struct sv_batch *b = &l->batches[l->n];
        sv_batch_reset(b);
        int n = r->source->next(r->source, b, &r->err);
        if (n <= 0) {
            r->code = n;
            r->has_ended = true;
            break;
        }
        keep_texts(b);
        l->n_tracks[l->n++] = r->source->dict->n_tracks;
    }
    return l->n > 0;
}

/* All of it happened in fill, in order. */
static void no_work(void *ctx, void *item)
{
    (void)ctx;
    (void)item;
}

static void clean_load(void *item)
{
    struct load *l = item;
    for (size_t i = 0; l->is_ready && i < BATCHES; i++)
        sv_batch_fini(&l->batches[i]);
}

/* ---- the source that the pump sees ---- */

struct beside {
    struct sv_source source;
    struct reading reading;
    struct sv_trace *trace;
    struct sv_line *line;
    const struct load *load; /* what is given out now; NULL: the next one */
    size_t next;             /* of its batches */
};

/* The events are copied; what they point to stays in the load until the line goes on. */
static int beside_next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct beside *x = (struct beside *)s;
    if (!x->load || x->next == x->load->n) {
        x->load = sv_line_next(x->line);
        x->next = 0;
    }
    if (!x->load) {
        if (x->reading.code < 0)
            sv_err_set(err, x->reading.err.code, x->reading.err.pos, "%s", x->reading.err.msg);
        return x->reading.code;
    }
    const struct sv_batch *from = &x->load->batches[x->next];
    memcpy(b->events, from->events, from->n * sizeof *b->events);
    b->n = from->n;
    sv_trace_tracks(x->trace, x->load->n_tracks[x->next++]);
    return (int)b->n;
}

static void beside_close(struct sv_source *s)
{
    struct beside *x = (struct beside *)s;
    sv_line_free(x->line);
    sv_trace_tracks(x->trace, 0);
    x->reading.source->close(x->reading.source);
    free(x);
}

struct sv_source *sv_beside(struct sv_source *source, struct sv_trace *trace,
                            struct sv_workers *workers, size_t memory_limit_bytes)
{
    static const struct sv_line_ops ops = {fill_load, no_work, clean_load, sizeof(struct load)};
    if (!source->beside_from || sv_workers_count(workers) < source->beside_from ||
        memory_limit_bytes != 0)
        return source;
    struct beside *x = sv_alloc(sizeof *x);
    x->source = (struct sv_source){.next = beside_next,
                                   .close = beside_close,
                                   .gives = source->gives,
                                   .dict = source->dict,
                                   .report = source->report};
    x->reading.source = source;
    x->trace = trace;
    x->line = sv_line_new(workers, &ops, &x->reading);
    return &x->source;
}
