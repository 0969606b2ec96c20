/* A pump whose two ends run in two threads: the source fills batches, the store takes them, in order.
 *
 * Batches go through a line (threads/workers.h), some at a time, because a change of threads costs as much as hundreds of events. The dictionary belongs to
 * the thread that runs the source until that ends; each batch carries how many tracks there were when it was made. Texts of arguments
 * may lie in the source's memory, which is good until its next call only: they are copied. */
#include "files/beside.h"

#include "core/base/mem.h"

#include <stdlib.h>

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
            r->code = n == SV_EIO ? SV_EINPUT : n;
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

bool sv_can_pump_beside(const struct sv_source *source, const struct sv_workers *workers,
                        size_t memory_limit_bytes)
{
    return source->beside_from && sv_workers_count(workers) >= source->beside_from &&
           memory_limit_bytes == 0;
}

static int store(const struct load *l, struct sv_trace *trace, struct sv_err *err)
{
    struct sv_sink *sink = sv_trace_sink(trace);
    int code = 0;
    for (size_t i = 0; i < l->n && code >= 0; i++) {
        sv_trace_tracks(trace, l->n_tracks[i]);
        code = sink->write(sink, l->batches[i].events, l->batches[i].n, err);
    }
    return code;
}

int sv_pump_beside(struct sv_source *source, struct sv_trace *trace, struct sv_workers *workers,
                   const struct sv_pump_options *options, struct sv_err *err)
{
    static const struct sv_line_ops ops = {fill_load, no_work, clean_load, sizeof(struct load)};
    struct reading r = {.source = source};
    int code = 0;
    struct sv_line *line = sv_line_new(workers, &ops, &r);
    for (struct load *l; code >= 0 && (l = sv_line_next(line));) {
        code = store(l, trace, err);
        if (options->progress)
            options->progress(options->progress_ctx);
    }
    sv_line_free(line);
    sv_trace_tracks(trace, 0);
    if (code >= 0 && r.code < 0) {
        code = r.code;
        sv_err_set(err, r.err.code, r.err.pos, "%s", r.err.msg);
    }
    if (code >= 0)
        code = sv_pump_strict(source, options, err);
    source->close(source);
    return code;
}
