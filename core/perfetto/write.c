/* The Perfetto writer: a sink for edges, slices that nest, instants, counters, flow points and
 * loss, in the order of their tracks.
 *
 * Opened through the list of formats, fed by the pump. Memory is bounded by the dictionary, the
 * numbers of one window and the largest event. Each batch goes through pf_events_write()
 * (core/perfetto/write_shape.c). */
#include "core/perfetto/write.h"

#include <stdlib.h>

/* ---- the sink ---- */

static bool window_is_full(const struct pf *w)
{
    return w->window == 0 || w->window_bytes + w->block.len >= w->resync_bytes ||
           pf_numbers_full(w);
}

/* Times before zero are best known before the first of them is written. */
static void see_first(struct pf *w, const struct sv_event *events, size_t n)
{
    int64_t first = 0;
    for (size_t i = 0; i < n; i++)
        first = events[i].ts_ns < first ? events[i].ts_ns : first;
    pf_origin_lower(w, first);
}

static int pf_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                    struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    if (w->window == 0)
        see_first(w, events, n);
    if (window_is_full(w))
        pf_window_begin(w, w->origin_ns);
    else if (w->dict->clocks.n > w->n_snapshots)
        pf_snapshots_write(w);
    pf_events_write(w, events, n);
    return sv_output_failure(w->out, err);
}

static int pf_flush(struct sv_sink *sink, struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    pf_tracks_describe_put_off(w); /* what is flushed may be all that will ever be there */
    if (w->window > 0 && w->dict->n_meta > w->n_meta_written)
        pf_meta_write(w, true);
    pf_block_flush(w);
    if (w->resyncs_at_flush && w->window > 0)
        w->window_bytes = w->resync_bytes;
    return sv_output_flush(w->out, err);
}

static void pf_forget(struct sv_sink *sink, sv_track track)
{
    pf_track_forget((struct pf *)sink, track);
}

static void pf_free(struct pf *w)
{
    pf_block_fini(w);
    pf_numbers_fini(w);
    pf_tracks_fini(w);
    sv_buf_fini(&w->event);
    sv_buf_fini(&w->interned);
    sv_buf_fini(&w->scratch);
    sv_map_fini(&w->flows);
    free(w->sequence_lost.words);
    free(w);
}

static int pf_close(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    int status = 0;
    if (failed) {
        sv_output_discard(w->out);
    } else {
        if (w->window == 0)
            pf_window_begin(w, w->origin_ns);
        pf_snapshots_write(w);
        pf_tracks_describe_rest(w);
        pf_meta_write(w, true);
        pf_stats_write(w);
        pf_block_flush(w);
        pf_origin_report(w);
        if (w->sink.rewrites)
            pf_origin_unify(w);
        status = sv_output_close(w->out, err);
    }
    pf_free(w);
    return status;
}

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    struct pf *w = sv_alloc(sizeof *w);
    w->sink = (struct sv_sink){.write = pf_write,
                               .close = pf_close,
                               .flush = pf_flush,
                               .file = out,
                               .forget = pf_forget,
                               .takes = SV_HAS_EDGES | SV_HAS_NESTED | SV_HAS_FLOW_POINTS |
                                        SV_IN_TRACK_ORDER,
                               .best = SV_HAS_EDGES | SV_HAS_FLOW_POINTS};
    w->out = out;
    w->dict = dict;
    w->report = report;
    w->compression = options ? options->compression : SV_PLAIN;
    w->resync_bytes = options && options->resync_bytes > 0 ? (uint64_t)options->resync_bytes
                                                           : PF_RESYNC_BYTES;
    w->names_stages = options && options->dialect && strcmp(options->dialect, SV_PERFETTO_GPU) == 0;
    w->sequence_clock = SV_PF_CLOCK_SEQUENCE_FIRST +
                        (options ? options->joined % SV_JOINED_MAX : 0);
    w->resyncs_at_flush = options && options->resyncs_at_flush;
    w->snapshot_ns = INT64_MIN;
    sv_buf_init(&w->event, PF_EVENT_LIMIT);
    sv_buf_init(&w->interned, PF_EVENT_LIMIT);
    sv_buf_init(&w->scratch, PF_EVENT_LIMIT);
    sv_arena_init(&w->pool_bytes, (size_t)64 << 10);
    w->recent = sv_alloc((sizeof *w->recent * PF_RECENT_WAYS) << PF_RECENT_BITS);
    w->loss_category = sv_dict_cstr(dict, SV_PF_LOSS_CATEGORY);
    w->loss_count = sv_dict_cstr(dict, SV_PF_LOSS_COUNT);
    w->loss_span = sv_dict_cstr(dict, SV_PF_LOSS_SPAN);
    w->thread_dur = sv_dict_cstr(dict, "thread_dur_ns");
    w->null_type = sv_dict_cstr(dict, SV_PF_NULL_TYPE);
    int status = pf_block_init(w, err);
    if (status < 0) {
        pf_free(w);
        return status;
    }
    *sink = &w->sink;
    return 0;
}

static const char *const suffixes[] = {".pftrace", ".perfetto-trace", ".perfetto",
                                       ".pb",      ".proto",          NULL};

const struct sv_writer sv_perfetto_writer = {
    .name = "perfetto",
    .suffixes = suffixes,
    .open = open_sink,
    .is_binary = true,
    .compresses_inside = true,
    .can_continue = true,
};
