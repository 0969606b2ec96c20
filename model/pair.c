/* Pair: edges become slices.
 *
 * The pump inserts it before sinks that take no edges. Per track a stack of open begins, each with a copy of its
 * arguments in a block of the pool; an end closes the newest one of its track and the slice leaves at once, so that memory
 * holds only what is open. All other events pass through. Needs time order per track; gives slices in order of their
 * ends. What never ended leaves at close() as SV_UNFINISHED; an end without a begin is counted and dropped. */
#include "base/pool.h"
#include "model/args.h"
#include "model/oddity.h"
#include "model/stages.h"

#include <stdlib.h>

struct open {
    struct open *below;
    size_t bytes; /* of this block: the arguments lie behind */
    struct sv_event begin;
};

struct pair {
    struct sv_sink sink;
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_sink *next;
    struct sv_pool pool;
    struct open **tops; /* by track */
    size_t n_tops, cap_tops;
    struct sv_oddity unmatched, unfinished, backwards, crowded;
    /* What leaves with the next batch, the blocks that it points to, and joined arguments. */
    struct sv_event out[SV_BATCH];
    size_t n_out;
    struct open *spent;
    struct sv_arena joined;
};

static void recycle(struct pair *p)
{
    while (p->spent) {
        struct open *o = p->spent;
        p->spent = o->below;
        sv_pool_put(&p->pool, o, o->bytes);
    }
    sv_arena_reset(&p->joined);
    p->n_out = 0;
}

static int flush(struct pair *p, struct sv_err *err)
{
    int code = p->n_out ? p->next->write(p->next, p->out, p->n_out, err) : 0;
    recycle(p);
    return code;
}

static struct open **top_of(struct pair *p, sv_track track)
{
    if (track >= p->n_tops) {
        size_t need = p->dict->n_tracks > track ? p->dict->n_tracks : (size_t)track + 1;
        p->tops = sv_grow(p->tops, &p->cap_tops, need, sizeof(struct open *));
        while (p->n_tops < need)
            p->tops[p->n_tops++] = NULL;
    }
    return &p->tops[track];
}

static void open_slice(struct pair *p, const struct sv_event *e)
{
    struct open **top = top_of(p, e->track);
    size_t bytes = sizeof(struct open) + sv_args_bytes(e->args, e->n_args, NULL);
    struct open *o = sv_pool_get(&p->pool, bytes);
    o->below = *top;
    o->bytes = bytes;
    o->begin = *e;
    o->begin.args = e->n_args ? sv_args_copy(o + 1, e->args, e->n_args) : NULL;
    *top = o;
}

/* Moves the newest open begin of the track to the output as a slice. */
static struct sv_event *take_top(struct pair *p, struct open **top)
{
    struct open *o = *top;
    *top = o->below;
    o->below = p->spent;
    p->spent = o;
    struct sv_event *slice = &p->out[p->n_out++];
    *slice = o->begin;
    slice->kind = SV_SLICE;
    return slice;
}

static void join_args(struct pair *p, struct sv_event *slice, const struct sv_event *end)
{
    size_t room = (size_t)slice->n_args + end->n_args + 1;
    if (room > SV_ARGS_MAX) {
        sv_oddity_note(&p->crowded, end->ts_ns, end->track);
        return;
    }
    struct sv_arg *args = sv_arena_get(&p->joined, room * sizeof *args, _Alignof(struct sv_arg));
    slice->n_args =
        (uint16_t)sv_args_join(args, slice->args, slice->n_args, end->args, end->n_args);
    slice->args = args;
}

static void close_slice(struct pair *p, const struct sv_event *end)
{
    struct open **top = top_of(p, end->track);
    if (!*top) {
        sv_oddity_note(&p->unmatched, end->ts_ns, end->track);
        return;
    }
    struct sv_event *slice = take_top(p, top);
    if (end->ts_ns < slice->ts_ns) {
        sv_oddity_note(&p->backwards, end->ts_ns, end->track);
        slice->dur_ns = 0;
    } else if (__builtin_sub_overflow(end->ts_ns, slice->ts_ns, &slice->dur_ns)) {
        slice->dur_ns = INT64_MAX;
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
    for (size_t i = 0; i < n; i++) {
        if (events[i].kind == SV_BEGIN)
            open_slice(p, &events[i]);
        else if (events[i].kind == SV_END)
            close_slice(p, &events[i]);
        else
            p->out[p->n_out++] = events[i];
        if (p->n_out == SV_BATCH) {
            int code = flush(p, err);
            if (code < 0)
                return code;
        }
    }
    return flush(p, err); /* what passes through is only lent until we return */
}

static struct open *reversed(struct open *o)
{
    struct open *r = NULL;
    while (o) {
        struct open *below = o->below;
        o->below = r;
        r = o;
        o = below;
    }
    return r;
}

/* Parents before children, tracks by number. */
static int leave_unfinished(struct pair *p, struct sv_err *err)
{
    for (size_t t = 0; t < p->n_tops; t++) {
        p->tops[t] = reversed(p->tops[t]);
        while (p->tops[t]) {
            struct sv_event *slice = take_top(p, &p->tops[t]);
            slice->dur_ns = SV_UNFINISHED;
            sv_oddity_note(&p->unfinished, slice->ts_ns, slice->track);
            int code = p->n_out == SV_BATCH ? flush(p, err) : 0;
            if (code < 0)
                return code;
        }
    }
    return flush(p, err);
}

static void drop_open(struct pair *p)
{
    for (size_t t = 0; t < p->n_tops; t++) {
        while (p->tops[t]) {
            take_top(p, &p->tops[t]);
            recycle(p);
        }
    }
}

static int pair_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct pair *p = (struct pair *)s;
    recycle(p);
    int code = failed ? 0 : leave_unfinished(p, err);
    drop_open(p);
    sv_oddity_tell(&p->unmatched, p->report, p->dict, SV_DAMAGE, "end without begin");
    sv_oddity_tell(&p->backwards, p->report, p->dict, SV_DAMAGE, "end before its begin");
    sv_oddity_tell(&p->unfinished, p->report, p->dict, SV_NOTE, "begin without end");
    sv_oddity_tell(&p->crowded, p->report, p->dict, SV_SKIPPED,
                   "arguments of an end beyond the limit per slice");
    int closed = p->next->close(p->next, failed || code < 0, err);
    sv_pool_fini(&p->pool);
    sv_arena_fini(&p->joined);
    free(p->tops);
    free(p);
    return code < 0 ? code : closed;
}

struct sv_sink *sv_pair_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next)
{
    struct pair *p = sv_alloc(sizeof *p);
    p->sink.write = pair_write;
    p->sink.close = pair_close;
    p->sink.takes = (next->takes | SV_HAS_EDGES) & ~(unsigned)SV_HAS_DISORDER;
    p->dict = dict;
    p->report = report;
    p->next = next;
    sv_pool_init(&p->pool);
    sv_arena_init(&p->joined, (size_t)1 << 16);
    return &p->sink;
}
