/* Spans: refuses begin and end that are further apart than int64 nanoseconds can say.
 *
 * The pump inserts it before sinks that take edges: those never compute a duration, so they would
 * write a slice that nobody can read. Such a slice begins before zero. A track is therefore only
 * looked at from its first begin before zero until that has ended; all else passes through. Needs
 * order per track. */
#include "core/stream/oddity.h"
#include "core/stream/stages.h"

#include <stdlib.h>

struct open {
    int64_t ts_ns;
    uint32_t below; /* the begin around it, or the next free one; 0: none */
};

struct spans {
    struct sv_sink sink, *next;
    struct sv_dict *dict;
    struct open *open; /* [0] is unused */
    size_t n, cap;
    uint32_t free;
    size_t n_open;
    uint32_t *tops; /* by track: its newest begin in `open` */
    size_t n_tops, cap_tops;
    struct sv_oddity too_long;
};

static uint32_t *top_of(struct spans *s, sv_track track)
{
    if (track >= s->n_tops) {
        size_t need = s->dict->n_tracks > track ? s->dict->n_tracks : (size_t)track + 1;
        s->tops = sv_grow(s->tops, &s->cap_tops, need, sizeof *s->tops);
        while (s->n_tops < need)
            s->tops[s->n_tops++] = 0;
    }
    return &s->tops[track];
}

static void on_begin(struct spans *s, const struct sv_event *e)
{
    uint32_t *top = top_of(s, e->track), one = s->free;
    if (*top == 0 && e->ts_ns >= 0)
        return;
    if (one) {
        s->free = s->open[one].below;
    } else {
        s->open = sv_grow(s->open, &s->cap, s->n + 1, sizeof *s->open);
        one = (uint32_t)s->n++;
    }
    s->open[one] = (struct open){e->ts_ns, *top};
    *top = one;
    s->n_open++;
}

static void on_end(struct spans *s, const struct sv_event *e)
{
    uint32_t *top = top_of(s, e->track), one = *top;
    if (one == 0)
        return;
    struct sv_event slice = {.ts_ns = s->open[one].ts_ns};
    if (!sv_event_until(&slice, e->ts_ns))
        sv_oddity_note(&s->too_long, slice.ts_ns, e->track);
    *top = s->open[one].below;
    s->open[one].below = s->free;
    s->free = one;
    s->n_open--;
}

static bool has_early(const struct sv_event *events, size_t n)
{
    int64_t signs = 0;
    for (size_t i = 0; i < n; i++)
        signs |= events[i].ts_ns;
    return signs < 0;
}

static int spans_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct spans *s = (struct spans *)sink;
    if (s->n_open || has_early(events, n)) {
        for (size_t i = 0; i < n; i++) {
            if (events[i].kind == SV_BEGIN)
                on_begin(s, &events[i]);
            else if (events[i].kind == SV_END)
                on_end(s, &events[i]);
        }
        int code = sv_oddity_refuse(&s->too_long, s->dict, SV_TOO_LONG, err);
        if (code < 0)
            return code;
    }
    return s->next->write(s->next, events, n, err);
}

static int spans_close(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct spans *s = (struct spans *)sink;
    int code = s->next->close(s->next, failed || s->too_long.count, err);
    free(s->open);
    free(s->tops);
    free(s);
    return code;
}

struct sv_sink *sv_spans_new(struct sv_dict *dict, struct sv_sink *next)
{
    struct spans *s = sv_alloc(sizeof *s);
    s->sink =
        (struct sv_sink){.write = spans_write, .close = spans_close, .takes = sv_sink_wants(next)};
    s->next = next;
    s->dict = dict;
    s->n = 1;
    s->open = sv_grow(NULL, &s->cap, 1, sizeof *s->open);
    return &s->sink;
}
