/* What an image says, checked: nothing in it leads out of its columns.
 *
 * Called when an image is opened and, for what was left out then, by sv_trace_check(). Each column
 * is looked at by itself in a loop without branches, a track at a time, so that the compiler makes
 * vector code of it: all rows of a store cost about what reading them does. */
#include "store/trace_image.h"

#include <stdlib.h>

#define SAMPLES     16u
#define SAMPLE_ROWS 16384u
#define STEP_ROWS   (1u << 20) /* between two questions whether to stop */

/* ---- the dictionary ---- */

static bool is_truth(const bool *b)
{
    uint8_t byte;
    memcpy(&byte, b, sizeof byte);
    return byte <= 1;
}

static bool check_track(const struct sv_track_info *k, uint32_t n_strings, uint32_t n_tracks)
{
    return k->parent < n_tracks && k->name < n_strings && k->unit < n_strings &&
           k->cat < n_strings && k->desc < n_strings && k->merge_key < n_strings &&
           k->origin < n_strings && is_truth(&k->has_order) && is_truth(&k->is_incremental) &&
           is_truth(&k->is_described) && is_truth(&k->is_state) && k->kind <= SV_TRACK_ASYNC &&
           k->child_order <= SV_ORDER_EXPLICIT && k->sibling_merge <= SV_MERGE_BY_KEY;
}

bool sv_image_check_dict(const struct sv_dict_content *c, uint64_t text_bytes)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < c->n_strings; i++) {
        if (c->lens[i] >= text_bytes - at || c->texts[at + c->lens[i]])
            return false;
        at += (uint64_t)c->lens[i] + 1;
    }
    if (c->n_strings == 0 || c->lens[0] || at != text_bytes)
        return false;
    for (uint32_t i = 0; i < c->n_tracks; i++)
        if (!check_track(&c->tracks[i], c->n_strings, c->n_tracks))
            return false;
    for (uint32_t i = 0; i < c->n_meta; i++)
        if (c->meta[i].key >= c->n_strings || c->meta[i].value >= c->n_strings ||
            !is_truth(&c->meta[i].is_json))
            return false;
    return true;
}

/* ---- columns ---- */

static bool all_below(const uint32_t *v, uint64_t from, uint64_t to, uint32_t limit)
{
    uint32_t bad = 0;
    for (uint64_t i = from; i < to; i++)
        bad |= v[i] >= limit;
    return !bad;
}

static bool all_below_or_none(const uint32_t *v, uint64_t from, uint64_t to, uint32_t limit)
{
    uint32_t bad = 0;
    for (uint64_t i = from; i < to; i++)
        bad |= (v[i] >= limit) & (v[i] != SV_NO_ROW);
    return !bad;
}

static bool all_are(const uint32_t *v, uint64_t from, uint64_t to, uint32_t what)
{
    uint32_t bad = 0;
    for (uint64_t i = from; i < to; i++)
        bad |= v[i] ^ what;
    return !bad;
}

/* From a row before `from` on, if the track has one. */
static bool all_rise(const int64_t *v, uint64_t first, uint64_t from, uint64_t to)
{
    uint64_t bad = 0;
    for (uint64_t i = from > first ? from : first + 1; i < to; i++)
        bad |= v[i - 1] > v[i];
    return !bad;
}

static bool all_between(const uint8_t *v, uint64_t from, uint64_t to, uint8_t low, uint8_t high)
{
    uint8_t bad = 0;
    for (uint64_t i = from; i < to; i++)
        bad |= (uint8_t)(v[i] - low) > (uint8_t)(high - low);
    return !bad;
}

/* A time and what lasts from then on end within 64 bits; `unfinished` may be SV_UNFINISHED, or 0
 * where nothing is. */
static bool all_end(const int64_t *ts_ns, const int64_t *dur_ns, uint64_t from, uint64_t to,
                    int64_t least)
{
    uint64_t bad = 0;
    for (uint64_t i = from; i < to; i++) {
        int64_t dur = dur_ns[i] > 0 ? dur_ns[i] : 0;
        bad |= (uint64_t)(dur_ns[i] < least) | (uint64_t)(ts_ns[i] > INT64_MAX - dur);
    }
    return !bad;
}

/* ---- slices ---- */

/* A parent is an earlier row of the same track; who has none is at the top. */
static bool check_parents(const struct sv_slices *s, uint32_t first, uint64_t from, uint64_t to)
{
    uint32_t bad = 0;
    for (uint64_t i = from; i < to; i++) {
        uint32_t p = s->parent[i];
        bad |= ((p - first) >= (uint32_t)i - first) & (p != SV_NO_ROW);
        bad |= (uint32_t)((p == SV_NO_ROW) != (s->depth[i] == 0));
    }
    return !bad;
}

static bool check_depths(const struct sv_slices *s, uint16_t max, uint64_t from, uint64_t to)
{
    uint16_t bad = 0;
    for (uint64_t i = from; i < to; i++)
        bad |= s->depth[i] > max;
    return !bad;
}

/* The rows [from, to) of track k. */
static bool check_track_rows(const struct sv_trace *t, sv_track k, uint64_t from, uint64_t to)
{
    const struct sv_slices *s = &t->slices;
    const struct sv_trace_track *track = &t->tracks[k];
    uint32_t n_strings = t->impl->image_strings;
    return all_are(s->track, from, to, k) && all_below(s->name, from, to, n_strings) &&
           all_below(s->cat, from, to, n_strings) &&
           all_below(s->args, from, to, (uint32_t)(t->impl->args.used / 4)) &&
           all_between(s->kind, from, to, SV_SLICE, SV_INSTANT) &&
           check_depths(s, track->depth_max, from, to) &&
           check_parents(s, track->first, from, to) && all_rise(s->ts_ns, track->first, from, to) &&
           all_end(s->ts_ns, s->dur_ns, from, to, SV_UNFINISHED);
}

static bool check_slices(const struct sv_trace *t, uint64_t from, uint64_t to)
{
    uint32_t low = 0, high = t->n_tracks;
    while (low < high) { /* the first track that ends behind `from` */
        uint32_t middle = low + (high - low) / 2;
        if (t->tracks[middle].end <= from)
            low = middle + 1;
        else
            high = middle;
    }
    for (sv_track k = low; k < t->n_tracks && t->tracks[k].first < to; k++) {
        uint64_t a = t->tracks[k].first > from ? t->tracks[k].first : from;
        uint64_t b = t->tracks[k].end < to ? t->tracks[k].end : to;
        if (a < b && !check_track_rows(t, k, a, b))
            return false;
    }
    return true;
}

static bool check_all_slices(const struct sv_trace *t, bool (*stop)(void *), void *ctx)
{
    for (uint64_t from = 0; from < t->slices.n; from += STEP_ROWS) {
        uint64_t left = t->slices.n - from;
        if (stop && stop(ctx))
            return true;
        if (!check_slices(t, from, from + (left < STEP_ROWS ? left : STEP_ROWS)))
            return false;
    }
    return true;
}

static bool check_some_slices(const struct sv_trace *t)
{
    uint64_t n = t->slices.n;
    if (n <= SAMPLES * SAMPLE_ROWS)
        return check_slices(t, 0, n);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t from = (n - SAMPLE_ROWS) / (SAMPLES - 1) * i;
        if (!check_slices(t, from, from + SAMPLE_ROWS))
            return false;
    }
    return true;
}

/* ---- the other tables ---- */

/* The rows of tracks follow each other without gaps. */
static bool check_tracks(const struct sv_trace *t)
{
    uint32_t row = 0, counter = 0;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        const struct sv_trace_track *r = &t->tracks[k];
        if (r->first != row || r->end < row || r->counter_first != counter ||
            r->counter_end < counter || !is_truth(&r->has_edges) || !is_truth(&r->has_overlap))
            return false;
        row = r->end;
        counter = r->counter_end;
    }
    return row == t->slices.n && counter == t->counters.n;
}

/* Where there is no column of exact integers, doubles are turned into integers. */
static bool all_convert(const struct sv_counters *c)
{
    uint64_t bad = 0;
    for (uint64_t i = 0; i < c->n && !c->exact; i++) {
        bool fits = c->value[i] > -0x1p63 && c->value[i] < 0x1p63; /* not a NaN */
        bad |= !fits && c->type[i] != SV_ARG_DOUBLE;
    }
    return !bad;
}

static bool check_counters(const struct sv_trace *t)
{
    const struct sv_counters *c = &t->counters;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        uint64_t from = t->tracks[k].counter_first, to = t->tracks[k].counter_end;
        if (from < to && !(all_are(c->track, from, to, k) && all_rise(c->ts_ns, from, from, to) &&
                           all_between(c->type, from, to, SV_ARG_INT, SV_ARG_DOUBLE)))
            return false;
    }
    return all_convert(c);
}

static bool check_others(const struct sv_trace *t)
{
    const struct sv_flows *f = &t->flows;
    const struct sv_flow_points *p = &t->points;
    const struct sv_losses *l = &t->losses;
    uint32_t n = (uint32_t)t->slices.n;
    return all_below(f->from, 0, f->n, n) && all_below(f->to, 0, f->n, n) &&
           all_below(f->by_to, 0, f->n, (uint32_t)f->n) &&
           all_below(p->track, 0, p->n, t->n_tracks) && all_below_or_none(p->row, 0, p->n, n) &&
           all_between(p->type, 0, p->n, SV_ARG_FLOW_BEGIN, SV_ARG_FLOW_END) &&
           all_rise(p->ts_ns, 0, 0, p->n) && all_below(l->track, 0, l->n, t->n_tracks) &&
           all_below(l->cause, 0, l->n, t->impl->image_strings) && all_rise(l->ts_ns, 0, 0, l->n) &&
           all_end(l->ts_ns, l->dur_ns, 0, l->n, 0);
}

/* ---- what is connected ---- */

/* Handles are those of lists; a slice lies one deeper than its parent. */
static bool check_links(const struct sv_trace *t)
{
    const struct sv_slices *s = &t->slices;
    const struct sv_lists *p = &t->impl->args;
    uint64_t *starts = sv_alloc((p->used / 4 / 64 + 1) * sizeof *starts);
    bool ok = sv_lists_check(p, t->impl->image_strings, starts);
    for (uint64_t i = 0; i < s->n && ok; i++) {
        uint32_t list = s->args[i], parent = s->parent[i];
        ok = (list == 0 || starts[list / 64] >> list % 64 & 1) &&
             (parent == SV_NO_ROW || s->depth[parent] == UINT16_MAX ||
              s->depth[i] == s->depth[parent] + 1);
    }
    free(starts);
    return ok;
}

bool sv_image_check_rows(const struct sv_trace *t, unsigned how, bool (*stop)(void *), void *ctx)
{
    if (!check_tracks(t))
        return false;
    if (how & SV_IMAGE_QUICK)
        return check_some_slices(t);
    if (!check_all_slices(t, stop, ctx))
        return false;
    if (stop && stop(ctx))
        return true;
    return check_counters(t) && check_others(t) &&
           (t->impl->args.used > SV_IMAGE_LISTS || check_links(t));
}
