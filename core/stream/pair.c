/* Pair: edges become slices.
 *
 * The pump inserts it before sinks that take no edges. Per track a stack of open begins, each with
 * a copy of its arguments in a block of the pool; an end closes the newest one of its track and the
 * slice leaves at once, so that memory holds only what is open. All other events pass through.
 * Needs order per track; gives slices in order of their ends. What never ended leaves at close() as
 * SV_UNFINISHED; an end without a begin is counted and dropped. */
#include "core/stream/args.h"
#include "core/stream/hold.h"
#include "core/stream/oddity.h"
#include "core/stream/stages.h"

#include <stdlib.h>

struct pair {
    struct sv_sink sink;
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_pool pool;
    struct sv_held **tops; /* by track: the newest open begin, the older ones behind it */
    size_t n_tops, cap_tops;
    struct sv_oddity unmatched, unfinished, backwards, crowded, too_long;
    struct sv_outbox out;
};

static struct sv_held **top_of(struct pair *p, sv_track track)
{
    if (track >= p->n_tops) {
        size_t need = p->dict->n_tracks > track ? p->dict->n_tracks : (size_t)track + 1;
        p->tops = sv_grow(p->tops, &p->cap_tops, need, sizeof(struct sv_held *));
        while (p->n_tops < need)
            p->tops[p->n_tops++] = NULL;
    }
    return &p->tops[track];
}

static void open_slice(struct pair *p, const struct sv_event *e)
{
    struct sv_held **top = top_of(p, e->track);
    struct sv_held *h = sv_hold(&p->pool, e);
    h->next = *top;
    *top = h;
}

/* Moves the newest open begin of the track to the outbox as a slice. */
static struct sv_event *take_top(struct pair *p, struct sv_held **top)
{
    struct sv_held *h = *top;
    *top = h->next;
    struct sv_event *slice = sv_outbox_emit(&p->out, &h->event);
    slice->kind = SV_SLICE;
    sv_outbox_spend(&p->out, h);
    return slice;
}

static void join_args(struct pair *p, struct sv_event *slice, const struct sv_event *end)
{
    size_t room = (size_t)slice->n_args + end->n_args + 1;
    if (room > SV_ARGS_MAX) {
        sv_oddity_note(&p->crowded, end->ts_ns, end->track);
        return;
    }
    struct sv_arg *args =
        sv_arena_get(&p->out.scratch, room * sizeof *args, _Alignof(struct sv_arg));
    slice->n_args =
        (uint16_t)sv_args_join(args, slice->args, slice->n_args, end->args, end->n_args);
    slice->args = args;
}

static void close_slice(struct pair *p, const struct sv_event *end)
{
    struct sv_held **top = top_of(p, end->track);
    if (!*top) {
        sv_oddity_note(&p->unmatched, end->ts_ns, end->track);
        return;
    }
    struct sv_event *slice = take_top(p, top);
    if (end->ts_ns < slice->ts_ns) {
        sv_oddity_note(&p->backwards, end->ts_ns, end->track);
        slice->dur_ns = 0;
    } else if (!sv_event_until(slice, end->ts_ns)) {
        sv_oddity_note(&p->too_long, slice->ts_ns, slice->track);
    }
    if (slice->name == 0)
        slice->name = end->name;
    if (slice->cat == 0)
        slice->cat = end->cat;
    if (end->n_args)
        join_args(p, slice, end);
}

static int pair_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct pair *p = (struct pair *)s;
    p->out.err = err;
    for (size_t i = 0; i < n; i++) {
        if (events[i].kind == SV_BEGIN)
            open_slice(p, &events[i]);
        else if (events[i].kind == SV_END)
            close_slice(p, &events[i]);
        else
            sv_outbox_emit(&p->out, &events[i]);
    }
    if (p->out.code == 0)
        p->out.code = sv_oddity_refuse(&p->too_long, p->dict, SV_TOO_LONG, err);
    return sv_outbox_flush(&p->out);
}

static struct sv_held *reversed(struct sv_held *o)
{
    struct sv_held *r = NULL;
    while (o) {
        struct sv_held *below = o->next;
        o->next = r;
        r = o;
        o = below;
    }
    return r;
}

/* Parents before children, tracks by number. Counted only when somebody will see them. */
static void leave_unfinished(struct pair *p, bool failed)
{
    for (size_t t = 0; t < p->n_tops; t++) {
        p->tops[t] = reversed(p->tops[t]);
        while (p->tops[t]) {
            struct sv_event *slice = take_top(p, &p->tops[t]);
            slice->dur_ns = SV_UNFINISHED;
            if (!failed)
                sv_oddity_note(&p->unfinished, slice->ts_ns, slice->track);
        }
    }
    sv_outbox_flush(&p->out);
}

static int pair_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct pair *p = (struct pair *)s;
    p->out.err = err;
    if (failed && p->out.code == 0)
        p->out.code = SV_EIO; /* nothing more is written */
    leave_unfinished(p, failed);
    sv_oddity_report(&p->unmatched, p->report, p->dict, SV_DAMAGE, "end without begin");
    sv_oddity_report(&p->backwards, p->report, p->dict, SV_DAMAGE, "end before its begin");
    sv_oddity_report(&p->unfinished, p->report, p->dict, SV_NOTE, "begin without end");
    sv_oddity_report(&p->crowded, p->report, p->dict, SV_SKIPPED,
                     "arguments of an end beyond the limit per slice");
    int code = sv_outbox_close(&p->out, failed, err);
    sv_pool_fini(&p->pool);
    free(p->tops);
    free(p);
    return code;
}

struct sv_sink *sv_pair_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next)
{
    struct pair *p = sv_alloc(sizeof *p);
    p->sink.write = pair_write;
    p->sink.close = pair_close;
    p->sink.takes = ((sv_sink_wants(next) | SV_HAS_EDGES) & ~SV_ORDER_BITS) | SV_IN_TRACK_ORDER;
    p->dict = dict;
    p->report = report;
    sv_pool_init(&p->pool);
    sv_outbox_init(&p->out, &p->pool, next);
    return &p->sink;
}
