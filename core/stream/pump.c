/* The pump: runs a source into a sink and puts the stages between them that their shapes call for.
 *
 * The rule is only here: `sort` when order is needed and not given, then `pair` (the sink takes no
 * edges; needs order per track), `split` (it takes no slices) or `lanes` (it takes slices, but only
 * nested ones), which need global order. Where edges stay edges, `spans` looks at how long they
 * last; only a sink that takes them without any order does that itself. */
#include "core/stream/stages.h"

#include <assert.h>
#include <stdlib.h>

#define SORT_MEMORY_DEFAULT ((size_t)64 << 20)
#define PROGRESS_EVERY      64 /* batches */

struct sv_sink *sv_pump_adapt(unsigned gives, struct sv_sink *sink, struct sv_dict *dict,
                              struct sv_report *report, const struct sv_pump_options *options)
{
    unsigned lacks = gives & ~sv_sink_wants(sink);
    if (lacks & SV_HAS_EDGES) { /* slices leave it when they end */
        unsigned paired = (gives & ~(unsigned)SV_HAS_EDGES) | SV_HAS_NESTED | SV_IN_NO_ORDER;
        sink = sv_pair_new(dict, report, sv_pump_adapt(paired, sink, dict, report, options));
    } else if (lacks & SV_HAS_NESTED) {
        sink = sv_split_new(dict, report, sink);
    } else if (lacks & SV_HAS_SLICES) {
        sink = sv_lanes_new(dict, report, sink);
    }
    if (gives & ~lacks & SV_HAS_EDGES && (sv_sink_wants(sink) & SV_ORDER_BITS) != SV_IN_NO_ORDER)
        sink = sv_spans_new(dict, sink);
    if (gives & SV_ORDER_BITS & ~sv_sink_wants(sink)) {
        size_t memory = options && options->sort_memory_bytes ? options->sort_memory_bytes
                                                              : SORT_MEMORY_DEFAULT;
        sink = sv_sort_new(dict, memory, sink);
    }
    return sink;
}

int sv_source_given(const struct sv_source *s, size_t n, struct sv_err *err)
{
    return s->has_refused
               ? sv_err_set(err, SV_ELIMIT, s->refused_pos,
                            "the event here begins or ends 2^63 ns from zero or more, or "
                            "lasts that long: correct it or leave it out")
               : (int)n;
}

/* The only loop there is. 0: the source has nothing more, or nothing more in this round. */
static int run(struct sv_source *source, struct sv_sink *sink,
               const struct sv_pump_options *options, struct sv_batch *batch, struct sv_err *err)
{
    for (unsigned turn = 1;; turn++) {
        sv_batch_reset(batch);
        int n = source->next(source, batch, err);
        if (n <= 0)
            return n == SV_EIO ? SV_EINPUT : n;
        assert((size_t)n == batch->n && n <= SV_BATCH);
        if (options && options->n_events)
            *options->n_events += batch->n;
        int code = sink->write(sink, batch->events, batch->n, err);
        if (code < 0)
            return code;
        if (options && options->progress && turn % PROGRESS_EVERY == 0)
            options->progress(options->progress_ctx);
    }
}

/* Refuses damage if that is asked for. */
static int check_strict(const struct sv_source *source, const struct sv_pump_options *options,
                        struct sv_err *err)
{
    bool is_strict = options && options->strict;
    uint64_t damage = is_strict ? sv_report_count(source->report, SV_DAMAGE) : 0;
    return damage ? sv_error(err, SV_EFOUND, "damaged in %llu places, refused because of --strict",
                             (unsigned long long)damage)
                  : 0;
}

int sv_pump_into(struct sv_source *source, struct sv_sink *sink,
                 const struct sv_pump_options *options, struct sv_err *err)
{
    struct sv_batch *batch = sv_alloc(sizeof *batch);
    sv_batch_init(batch);
    int code = run(source, sink, options, batch, err);
    if (code >= 0)
        code = check_strict(source, options, err);
    source->close(source);
    sv_batch_fini(batch);
    free(batch);
    return code;
}

int sv_pump_round(struct sv_source *source, struct sv_sink *sink, struct sv_batch *batch,
                  struct sv_err *err)
{
    if (source->gives & ~sink->takes)
        return sv_error(err, SV_EFORMAT, "a live source gives what its sink does not take (%#x)",
                        source->gives & ~sink->takes);
    return run(source, sink, NULL, batch, err);
}

int sv_pump(struct sv_source *source, struct sv_sink *sink, const struct sv_pump_options *options,
            struct sv_err *err)
{
    sink = sv_pump_adapt(source->gives, sink, source->dict, source->report, options);
    int code = sv_pump_into(source, sink, options, err);
    int closed = sink->close(sink, code < 0, err);
    return code < 0 ? code : closed;
}
