/* Records to events: the ring source.
 *
 * Per round the heads of all rings are read once (acquire: pairs with the commit of the hot path);
 * next() then walks ring after ring. Names of a site are numbered in the dictionary once, at its
 * first event, so that most events cost a few loads and stores. Times of one thread never go back;
 * different threads are not merged: the sinks of the SDK take tracks one by one.
 *
 * Rings and names are another process's words: every size, number and offset is checked; a record
 * that cannot be right ends its ring with a finding. */
#include "sdk/drain/drain.h"

#include "sdk/drain/drain_items.h"
#include "sdk/drain/drain_names.h"
#include "sdk/drain/drain_tracks.h"
#include "sdk/ring/ring_view.h"
#include "sdk/ring/ringless.h"

#include <stave/stave.h>
#include <stdlib.h>

struct sv_drain {
    struct sv_source source;
    struct sv_drain_names names;
    struct sv_ticks ticks;
    int64_t boot_minus_mono, from_ns;
    struct sv_drain_ring *rings;
    size_t n_rings, cap_rings, at;
    bool is_done; /* with the round */
    struct sv_tracks tracks;
    struct sv_ring_view *window; /* NULL: the rings are read where they are */
    bool with_source;
    sv_str lost_full, lost_nested, lost_time, lost_crowded, file_key, function_key, line_key,
        continued_key;
    const struct sv_session_file *session; /* or NULL */
    sv_str lost_old, lost_output;
    bool goes_on; /* from the output of a process that is gone */
    uint64_t reported_crowded;
    struct sv_ringless_reader ringless;
};

/* ---- arguments ---- */

static void put_source(struct sv_drain *d, struct sv_batch *b, const struct sv_drain_site *s)
{
    size_t open = sv_batch_open(b, 0, SV_ARG_SOURCE);
    struct sv_text file = sv_dict_text(d->source.dict, s->file),
                   func = sv_dict_text(d->source.dict, s->func);
    struct sv_arg *a = sv_batch_arg(b);
    a->key = d->file_key;
    sv_item_text(a, (const uint8_t *)file.bytes, file.len, false);
    a = sv_batch_arg(b);
    a->key = d->function_key;
    sv_item_text(a, (const uint8_t *)func.bytes, func.len, false);
    a = sv_batch_arg(b);
    a->key = d->line_key;
    a->type = SV_ARG_INT;
    a->i = s->line;
    sv_batch_close(b, open);
}

/* ---- events ---- */

/* What the words of a record say about the event itself. */
struct lead {
    int64_t start_ns, dur_ns;
    bool has_start, has_time, has_track;
};

/* One value of the event. */
static void put_value(struct sv_batch *b, const struct sv_drain_site *s, unsigned i, uint64_t v,
                      const uint8_t *text, size_t len)
{
    if (s->specials[i] && v == 0)
        return; /* no arrow, no number */
    struct sv_arg *a = sv_batch_arg(b);
    if (s->specials[i]) {
        a->type = s->specials[i];
        a->u = v;
        return;
    }
    a->key = s->keys[i];
    if (s->types[i] == STAVE_I_TEXT)
        sv_item_text(a, text, len, v >> 63);
    else
        sv_item_number(a, s->types[i], v);
}

/* Words and texts of a record; false: a text runs out of it. */
static bool put_words(struct sv_drain *d, struct sv_batch *b, struct sv_event *e,
                      const struct sv_drain_site *s, const uint64_t *r, uint64_t bytes,
                      struct lead *lead)
{
    const uint64_t *words = r + 2;
    const uint8_t *at = (const uint8_t *)(words + s->n_args), *end = (const uint8_t *)r + bytes;
    size_t array = 0;
    uint64_t left = 0; /* words until the array's end, itself included */
    for (unsigned i = 0; i < s->n_args; i++) {
        unsigned type = s->types[i];
        uint64_t v = words[i];
        size_t len = 0;
        if (type >= STAVE_I_TEXT) {
            len = (size_t)(v & 0xffffffff);
            if (len > (size_t)(end - at))
                return false;
        }
        switch (type) {
        case STAVE_I_TRACK:
            if (v != STAVE_THREAD) {
                e->track = sv_drain_track(&d->names, v);
                lead->has_track = true;
            }
            break;
        case STAVE_I_SLICE:
        case STAVE_I_OWNER: break;
        case STAVE_I_START:
            lead->start_ns = (int64_t)v;
            lead->has_start = true;
            break;
        case STAVE_I_DUR:
            lead->dur_ns = (int64_t)v;
            lead->has_time = true;
            break;
        case STAVE_I_NAME: e->name = sv_dict_str(d->source.dict, (const char *)at, len); break;
        case STAVE_I_CAT: e->cat = sv_dict_str(d->source.dict, (const char *)at, len); break;
        case STAVE_I_ARGS: sv_items_put(d->source.dict, b, s->keys[i], at, len); break;
        case STAVE_I_ARRAY:
            if (left == 0) {
                array = sv_batch_open(b, s->keys[i], SV_ARG_ARRAY);
                left = v < s->n_args ? v + 1 : s->n_args;
            }
            break;
        default: put_value(b, s, i, v, at, len);
        }
        at += (len + 7) & ~(size_t)7;
        if (left != 0 && (--left == 0 || i + 1u == s->n_args)) {
            sv_batch_close(b, array);
            left = 0;
        }
    }
    return true;
}

static void as_counter(struct sv_drain *d, struct sv_event *e, struct sv_drain_site *s,
                       const struct lead *lead, struct sv_batch *b)
{
    if (!lead->has_track)
        e->track = sv_drain_counter_track(&d->names, s);
    else if (d->source.dict->tracks[e->track].cat == 0) { /* a counter's category is its track's */
        d->source.dict->tracks[e->track].cat = e->cat;
        sv_dict_touch(d->source.dict, e->track);
    }
    struct sv_arg *a = b->args;
    if (b->arg == b->args)
        a = sv_batch_arg(b);
    if (a->type == SV_ARG_UINT) {
        a->d = (double)a->u;
        a->type = SV_ARG_DOUBLE;
    } else if (a->type != SV_ARG_DOUBLE) {
        a->type = SV_ARG_INT;
    }
    a->key = 0;
    e->kind = SV_COUNTER;
    e->name = 0;
}

/* A time that the program gave itself, and the end of what lasts so long; false: one of them is no
 * time. */
static bool own_time(const struct sv_drain *d, const struct lead *lead, int64_t dur, int64_t *ts,
                     int64_t *end)
{
    return !__builtin_add_overflow(lead->start_ns, d->boot_minus_mono, ts) &&
           !__builtin_add_overflow(*ts, dur, end);
}

/* What cannot be written where it belongs is reported as a loss at that time. */
static void as_lost(struct sv_drain *d, struct sv_batch *b, struct sv_event *e, int64_t now_ns)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = SV_ARG_INT;
    a->i = 1;
    *e = (struct sv_event){
        .ts_ns = now_ns, .track = e->track, .kind = SV_LOSS, .name = d->lost_time};
    sv_batch_finish(b, e);
}

/* A whole slice, on the lane of the track where it nests. */
static void as_slice(struct sv_drain *d, struct sv_drain_ring *r, struct sv_batch *b,
                     struct sv_event *e, const struct lead *lead)
{
    int64_t dur = lead->dur_ns > 0 ? lead->dur_ns : 0, now_ns = e->ts_ns, end_ns;
    if (!own_time(d, lead, dur, &e->ts_ns, &end_ns) || end_ns == SV_LANE_NEVER) {
        as_lost(d, b, e, now_ns);
        return;
    }
    e->track = sv_tracks_whole(&d->tracks, r, e->track, e->ts_ns, end_ns, now_ns);
    if (e->track == 0) {
        b->n--;
        return;
    }
    e->kind = SV_SLICE;
    e->dur_ns = dur;
}

static void at_own_time(struct sv_drain *d, struct sv_batch *b, struct sv_event *e,
                        const struct lead *lead)
{
    int64_t now_ns = e->ts_ns, end_ns;
    if (!own_time(d, lead, 0, &e->ts_ns, &end_ns))
        as_lost(d, b, e, now_ns);
}

/* What crossed the slice that ends here: each ends on its lane and continues on another one. The
 * batch has space for them. */
static void put_moved(struct sv_drain *d, struct sv_batch *b, struct sv_event *e,
                      const struct sv_track_edge *edge)
{
    const struct sv_event end =
        *e; /* the end of the outer one comes last: it closes what is left */
    struct sv_event *at = e;
    for (const struct sv_track_moved *m = edge->moved; m; m = m->next) {
        *at = (struct sv_event){.ts_ns = end.ts_ns, .track = m->from, .kind = SV_END};
        at = sv_batch_event(b);
    }
    *at = end;
    for (const struct sv_track_moved *m = edge->moved; m; m = m->next) {
        at = sv_batch_event(b);
        *at = (struct sv_event){
            .ts_ns = end.ts_ns, .track = m->to, .name = m->name, .cat = m->cat, .kind = SV_BEGIN};
        struct sv_arg *a = sv_batch_arg(b);
        *a = (struct sv_arg){.key = d->continued_key, .type = SV_ARG_BOOL, .i = 1};
        sv_batch_finish(b, at);
    }
}

/* A begin or an end on a named track, as it was planned. */
static void as_edge(struct sv_drain *d, struct sv_drain_ring *r, struct sv_batch *b,
                    struct sv_event *e, struct sv_track_edge *edge)
{
    r->edge++;
    e->track = edge->track;
    e->ts_ns = edge->ns;
    if (e->track == 0) {
        b->n--;
        return;
    }
    if (edge->is_begin && edge->open) {
        edge->open->name = e->name;
        edge->open->cat = e->cat;
    }
    if (edge->moved)
        put_moved(d, b, e, edge);
}

/* The first argument is the count. */
static void as_loss(struct sv_batch *b, struct sv_event *e)
{
    if (b->arg == b->args || b->args->type != SV_ARG_INT) {
        sv_batch_drop_args(b);
        sv_batch_arg(b)->type = SV_ARG_INT;
    }
    b->args->key = 0;
    e->cat = 0;
}

static const uint8_t model_kind[] = {
    [STAVE_KIND_BEGIN] = SV_BEGIN,     [STAVE_KIND_END] = SV_END,
    [STAVE_KIND_INSTANT] = SV_INSTANT, [STAVE_KIND_COUNTER] = SV_COUNTER,
    [STAVE_KIND_COMPLETE] = SV_SLICE,  [STAVE_KIND_LOSS] = SV_LOSS};

static void end_own(struct sv_drain_ring *r, int64_t ns)
{
    if (r->own.depth > 0)
        sv_own_end(&r->own, ns);
}

/* The long way: arguments, tracks, counters, slices. `edge`: its plan, NULL: it has none. False:
 * the record is damaged. */
static bool long_event(struct sv_drain *d, struct sv_batch *b, struct sv_drain_ring *r,
                       struct sv_event *e, const uint64_t *rec, uint64_t bytes,
                       struct sv_track_edge *edge)
{
    struct sv_drain_site *s = sv_drain_site(&d->names, sv_word_site(rec[0]));
    unsigned kind = sv_word_kind(rec[0]);
    if (!s || s->n_args != sv_word_args(rec[0]) || 16 + 8u * s->n_args > bytes || kind == 0 ||
        kind > STAVE_KIND_LOSS)
        return false;
    struct lead lead = {0};
    e->kind = model_kind[kind];
    e->name = kind == STAVE_KIND_END ? 0 : s->name;
    e->cat = kind == STAVE_KIND_END ? 0 : s->cat;
    if (!put_words(d, b, e, s, rec, bytes, &lead) ||
        (lead.has_track && kind <= STAVE_KIND_END && !edge)) {
        sv_batch_drop_args(b);
        return false;
    }
    if (!lead.has_track && kind == STAVE_KIND_BEGIN)
        sv_own_begin(&r->own, e->ts_ns);
    if (!lead.has_track && kind == STAVE_KIND_END)
        end_own(r, e->ts_ns);
    if (kind == STAVE_KIND_COUNTER)
        as_counter(d, e, s, &lead, b);
    else if (d->with_source && kind != STAVE_KIND_END)
        put_source(d, b, s);
    if (kind == STAVE_KIND_LOSS)
        as_loss(b, e);
    sv_batch_finish(b, e);
    if (lead.has_time && kind == STAVE_KIND_COMPLETE)
        as_slice(d, r, b, e, &lead);
    else if (lead.has_track && kind <= STAVE_KIND_END)
        as_edge(d, r, b, e, edge);
    else if (lead.has_start && kind > STAVE_KIND_END) /* a time of its own */
        at_own_time(d, b, e, &lead);
    return true;
}

/* `last`: the time of what was read before it, which later records do not come before. */
static void damaged(struct sv_drain *d, struct sv_drain_ring *r, struct sv_batch *b, uint64_t pos,
                    int64_t last)
{
    r->pos = pos;
    r->last_ns = last;
    sv_report_add(d->source.report, SV_DAMAGE, "damaged ring record", 1, (int64_t)r->pos,
                  "ring %zu: the rest of it is not read", (size_t)(r - d->rings));
    r->pos = r->stop = r->end;
    sv_tracks_drop(&d->tracks, r);
    b->n--;
}

/* Begins and ends on named tracks are in the plan, with all that they bring: all that a call site
 * of this kind records. Whoever writes other words into a ring (a begin by the place of an instant,
 * two tracks) has damaged it. */
enum planned { IS_PLANNED, HAS_CHANGED, HAS_NO_SPACE };

static enum planned look_at_plan(const struct sv_drain *d, const struct sv_drain_ring *r,
                                 const struct sv_drain_site *s, const uint64_t *rec, uint64_t pos,
                                 const struct sv_batch *b, struct sv_track_edge **edge)
{
    if (!s || !s->track_at || s->n_args != sv_word_args(rec[0]) ||
        SV_RECORD_HEAD + 8u * s->n_args > sv_word_bytes(rec[0]) || !sv_record_is_edge(s, rec))
        return IS_PLANNED;
    *edge = sv_tracks_find(&d->tracks, r, pos);
    if (!*edge)
        return HAS_CHANGED;
    bool has_space = (*edge)->n_moved == 0 || b->n + 2 * (size_t)(*edge)->n_moved <= SV_BATCH;
    return has_space ? IS_PLANNED : HAS_NO_SPACE;
}

/* Where the records of a ring are to be read from: at base + ((pos - origin) & mask), up to
 * `end`. */
struct view {
    const uint8_t *base;
    uint64_t origin, mask, end;
};

/* False: not in this batch. */
static bool look(const struct sv_drain *d, const struct sv_drain_ring *r, const struct sv_batch *b,
                 struct view *v)
{
    struct sv_ring_view *w = d->window;
    if (!w) {
        *v = (struct view){r->data, 0, r->size - 1, r->end};
        return true;
    }
    if (r->pos < r->end && !sv_ring_view_has(w, r)) {
        if (b->n > 0)
            return false;
        sv_ring_view_move(w, r);
    }
    *v = (struct view){w->bytes, w->from, UINT64_MAX, r->pos < r->end ? w->to : r->end};
    return true;
}

/* Fills the batch from one ring. */
static void fill(struct sv_drain *d, struct sv_drain_ring *r, struct sv_batch *b)
{
    struct view v;
    if (!look(d, r, b, &v))
        return;
    uint64_t pos = r->pos, end = r->end;
    int64_t last = r->last_ns;
    uint64_t stop = v.end < r->stop ? v.end : r->stop;
    while (pos < stop && b->n < SV_BATCH) {
        const uint64_t *rec =
            (const uint64_t *)(const void *)(v.base + ((pos - v.origin) & v.mask));
        uint64_t word = rec[0], bytes = sv_word_bytes(word);
        unsigned kind = sv_word_kind(word);
        struct sv_event *e = &b->events[b->n++];
        if (bytes < SV_RECORD_HEAD || bytes > end - pos || bytes > SV_RECORD_BYTES_MAX) {
            damaged(d, r, b, pos, last);
            return;
        }
        if (bytes > v.end - pos) { /* the window ends inside it */
            b->n--;
            break;
        }
        int64_t ns = sv_ticks_ns(&d->ticks, rec[1]);
        if (ns < d->from_ns) {
            b->n--;
            pos += bytes;
            r->lost_overwritten++;
            continue;
        }
        if (__builtin_expect(last == INT64_MIN, 0))
            r->first_ns = ns;
        last = ns > last ? ns : last;
        *e = (struct sv_event){.ts_ns = last, .track = r->track};
        if (word == SV_WORD(0, STAVE_KIND_END, 0, 2)) {
            e->kind = SV_END;
            if (r->own.depth == 0)
                b->n--; /* its begin is not in this session */
            else
                sv_own_end(&r->own, last);
            pos += bytes;
            continue;
        }
        const struct sv_drain_site *s = sv_drain_site(&d->names, sv_word_site(word));
        if (s && bytes == SV_RECORD_HEAD && s->n_args == 0 && !d->with_source &&
            (kind == STAVE_KIND_BEGIN || kind == STAVE_KIND_INSTANT)) {
            e->kind = model_kind[kind];
            e->name = s->name;
            e->cat = s->cat;
            if (kind == STAVE_KIND_BEGIN)
                sv_own_begin(&r->own, last);
            pos += bytes;
            continue;
        }
        struct sv_track_edge *edge = NULL;
        enum planned planned = look_at_plan(d, r, s, rec, pos, b, &edge);
        if (planned == HAS_NO_SPACE) {
            b->n--;
            break;
        }
        if (planned == HAS_CHANGED || !long_event(d, b, r, e, rec, bytes, edge)) {
            damaged(d, r, b, pos, last);
            return;
        }
        pos += bytes;
    }
    r->pos = pos;
    r->last_ns = last;
}

static int64_t newest_tick(const struct sv_drain *d)
{
    return d->ticks.n ? d->ticks.at[d->ticks.n - 1].boot_ns : 0;
}

/* What was lost since the last report; false: not in this batch. */
static bool report_losses(struct sv_drain *d, struct sv_batch *b, struct sv_drain_ring *r)
{
    uint64_t full = atomic_load_explicit(&r->ring->lost_full, memory_order_relaxed);
    uint64_t nested = atomic_load_explicit(&r->ring->lost_nested, memory_order_relaxed);
    if (r->track == 0 ||
        (full <= r->lost_full && nested <= r->lost_nested && r->lost_overwritten == 0))
        return true;
    if (b->n + 3 > SV_BATCH)
        return false;
    bool has_read = r->last_ns != INT64_MIN;
    int64_t ns = has_read ? r->last_ns : newest_tick(d);
    if (r->lost_overwritten > 0)
        sv_report_loss(b, r->track, has_read ? r->first_ns : ns, d->lost_old, r->lost_overwritten);
    r->lost_overwritten = 0;
    if (full > r->lost_full)
        sv_report_loss(b, r->track, ns, d->lost_full, full - r->lost_full);
    if (nested > r->lost_nested)
        sv_report_loss(b, r->track, ns, d->lost_nested, nested - r->lost_nested);
    r->lost_full = full;
    r->lost_nested = nested;
    return true;
}

/* Those of the process. */
static bool report_other_losses(struct sv_drain *d, struct sv_batch *b)
{
    if (b->n + 3 > SV_BATCH)
        return false;
    if (d->goes_on && d->session) { /* what it read and could not write is nowhere else */
        uint64_t output = atomic_load_explicit(&d->session->lost_output, memory_order_relaxed);
        if (output > 0)
            sv_report_loss(b, d->names.process, newest_tick(d), d->lost_output, output);
        d->goes_on = false;
    }
    if (d->tracks.n_crowded > d->reported_crowded)
        sv_report_loss(b, d->names.process, newest_tick(d), d->lost_crowded,
                       d->tracks.n_crowded - d->reported_crowded);
    d->reported_crowded = d->tracks.n_crowded;
    return sv_ringless_report(&d->ringless, d->source.dict, b, newest_tick(d));
}

/* The plan for what comes next of this round; false: nothing does. */
static bool plan(struct sv_drain *d)
{
    bool has_more = false;
    for (size_t i = 0; i < d->n_rings; i++) {
        struct sv_drain_ring *r = &d->rings[i];
        has_more |= r->pos < r->end;
        if (!d->names.has_edges)
            r->stop = r->end;
        else if (r->mark)
            sv_tracks_resume(&d->tracks, &d->names, r, r->mark);
        r->mark = NULL;
    }
    struct sv_tracks_input in = {d->rings, d->n_rings, &d->names, &d->ticks, d->from_ns};
    return has_more && (!d->names.has_edges || sv_tracks_plan(&d->tracks, &in));
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    (void)err;
    struct sv_drain *d = (struct sv_drain *)source;
    for (;;) {
        for (; d->at < d->n_rings; d->at++) {
            struct sv_drain_ring *r = &d->rings[d->at];
            do
                fill(d, r, b);
            while (r->pos < r->stop && b->n == 0);
            if (r->pos < r->stop || (r->pos == r->end && !report_losses(d, b, r)) ||
                b->n > SV_BATCH - 8)
                return (int)b->n;
        }
        if (!d->is_done && plan(d)) {
            d->at = 0;
            continue;
        }
        d->is_done = report_other_losses(d, b);
        return (int)b->n;
    }
}

/* ---- rounds ---- */

static void meet_owner(struct sv_drain *d, struct sv_drain_ring *r)
{
    uint32_t owner = atomic_load_explicit(&r->ring->owner, memory_order_acquire);
    if (owner == r->owner && r->track)
        return;
    r->owner = owner;
    r->own = (struct sv_own_spans){0};
    r->track = sv_dict_thread(d->source.dict, 0, d->names.pid,
                              atomic_load_explicit(&r->ring->tid, memory_order_relaxed));
}

uint64_t sv_drain_round(struct sv_drain *d)
{
    uint64_t bytes = 0;
    d->at = 0;
    if (d->window)
        d->window->ring = NULL; /* what it shows may be of a ring that was where ours is */
    d->is_done = false;
    for (size_t i = 0; i < d->n_rings; i++) {
        struct sv_drain_ring *r = &d->rings[i];
        r->stop = r->pos; /* what comes is planned first */
        uint64_t head = atomic_load_explicit(&r->ring->head, memory_order_acquire);
        bool has_loss =
            atomic_load_explicit(&r->ring->lost_full, memory_order_relaxed) != r->lost_full ||
            atomic_load_explicit(&r->ring->lost_nested, memory_order_relaxed) != r->lost_nested;
        if (has_loss || head != r->pos)
            meet_owner(d, r);
        if (head == r->pos)
            continue;
        if (head < r->pos || head - r->pos > r->size || head % 8 != 0) {
            sv_report_add(d->source.report, SV_DAMAGE, "damaged ring", 1, SV_NO_POS,
                          "ring %zu: its end is out of range", i);
            sv_drain_start_at(r, head & ~(uint64_t)7);
            continue;
        }
        r->end = head;
        bytes += head - r->pos;
    }
    return bytes;
}

void sv_drain_hold(struct sv_drain *d)
{
    for (size_t i = 0; i < d->n_rings; i++)
        d->rings[i].end = d->rings[i].stop = d->rings[i].pos;
}

void sv_drain_name_thread(struct sv_drain *d, struct sv_drain_ring *r, const char *name)
{
    struct sv_dict *dict = d->source.dict;
    if (!r->track || !*name)
        return;
    sv_str str = sv_dict_cstr(dict, name);
    struct sv_track_info *info = &dict->tracks[r->track];
    if (info->name == str && info->is_described)
        return;
    info->name = str;
    info->is_described = true;
    sv_dict_touch(dict, r->track);
}

/* ---- life ---- */

static void close_source(struct sv_source *s)
{
    sv_drain_free((struct sv_drain *)s);
}

struct sv_drain *sv_drain_new(struct sv_dict *dict, struct sv_report *report, uint32_t pid)
{
    struct sv_drain *d = sv_alloc(sizeof *d);
    d->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_TRACK_ORDER,
                                   .dict = dict,
                                   .report = report};
    d->from_ns = INT64_MIN;
    sv_drain_names_init(&d->names, dict, pid);
    sv_tracks_init(&d->tracks, dict);
    d->lost_full = sv_dict_cstr(dict, SV_LOST_FULL);
    d->lost_time = sv_dict_cstr(dict, "time out of range");
    d->lost_nested = sv_dict_cstr(dict, SV_LOST_NESTED);
    d->lost_output = sv_dict_cstr(dict, "the output failed");
    d->lost_old = sv_dict_cstr(dict, SV_LOST_OLD);
    d->lost_crowded = sv_dict_cstr(dict, "too many slices at a time on a track");
    d->continued_key = sv_dict_cstr(dict, "continued");
    d->file_key = sv_dict_cstr(dict, "file");
    d->function_key = sv_dict_cstr(dict, "function");
    d->line_key = sv_dict_cstr(dict, "line");
    return d;
}

void sv_drain_free(struct sv_drain *d)
{
    if (!d)
        return;
    sv_drain_names_fini(&d->names);
    sv_tracks_fini(&d->tracks);
    free(d->rings);
    free(d);
}

struct sv_source *sv_drain_source(struct sv_drain *d)
{
    return &d->source;
}

size_t sv_drain_names(struct sv_drain *d, const uint8_t *bytes, size_t n)
{
    return sv_drain_names_read(&d->names, d->source.report, bytes, n);
}

void sv_drain_tick(struct sv_drain *d, const struct sv_tick *tick)
{
    if (!sv_ticks_add(&d->ticks, tick))
        return;
    d->boot_minus_mono = tick->boot_ns - tick->mono_ns;
    if (d->boot_minus_mono > -1000000 && d->boot_minus_mono < 1000000)
        d->boot_minus_mono = 0; /* never suspended: the two are the same clock */
}

struct sv_ticks *sv_drain_ticks(struct sv_drain *d)
{
    return &d->ticks;
}

struct sv_drain_ring *sv_drain_add_ring(struct sv_drain *d, const struct sv_ring *ring,
                                        const uint8_t *data, uint64_t size, uint64_t pos)
{
    d->rings = sv_grow(d->rings, &d->cap_rings, d->n_rings + 1, sizeof *d->rings);
    struct sv_drain_ring *r = &d->rings[d->n_rings++];
    *r = (struct sv_drain_ring){.ring = ring,
                                .data = data,
                                .size = size,
                                .number = ring->number,
                                .first = pos,
                                .pos = pos,
                                .end = pos,
                                .stop = pos,
                                .last_ns = INT64_MIN};
    sv_tracks_add_ring(&d->tracks, r->number, d->n_rings - 1);
    return r;
}

void sv_drain_through(struct sv_drain *d, struct sv_ring_view *window)
{
    d->window = window;
}

size_t sv_drain_bytes(const struct sv_drain *d)
{
    return sizeof *d + d->n_rings * sizeof *d->rings + sv_drain_names_bytes(&d->names) +
           sv_tracks_bytes(&d->tracks);
}

void sv_drain_mark(const struct sv_drain *d, size_t i, struct sv_ring *ring, uint64_t round)
{
    const struct sv_drain_ring *r = &d->rings[i];
    struct sv_mark *m = ring->mark;
    m += atomic_load(&m[0].round) >= atomic_load(&m[1].round); /* the older one */
    atomic_store_explicit(&m->pos, r->pos, memory_order_relaxed);
    atomic_store_explicit(&m->lost_full, r->lost_full, memory_order_relaxed);
    atomic_store_explicit(&m->lost_nested, r->lost_nested, memory_order_relaxed);
    sv_tracks_mark(&d->tracks, r->number, m);
    atomic_store_explicit(&m->round, round, memory_order_release);
}

/* Slices may be open in the output. */
void sv_drain_resume(struct sv_drain *d, size_t i, const struct sv_mark *mark)
{
    struct sv_drain_ring *r = &d->rings[i];
    r->own.depth = INT32_MAX;
    r->mark = mark;
    d->goes_on = true;
}

void sv_drain_mark_ringless(const struct sv_drain *d, struct sv_session_file *session,
                            uint64_t round)
{
    sv_ringless_mark(&d->ringless, sv_session_ringless(session), round);
}

void sv_drain_resume_ringless(struct sv_drain *d, uint64_t round)
{
    sv_ringless_resume(&d->ringless, round);
}

size_t sv_drain_n_rings(const struct sv_drain *d)
{
    return d->n_rings;
}

struct sv_drain_ring *sv_drain_ring(struct sv_drain *d, size_t i)
{
    return &d->rings[i];
}

void sv_drain_watch(struct sv_drain *d, const struct sv_session_file *session)
{
    d->session = session;
    sv_ringless_reader_init(&d->ringless, sv_session_ringless(session), d->source.dict,
                            d->names.pid);
}

void sv_drain_with_source(struct sv_drain *d, bool on)
{
    d->with_source = on;
}

void sv_drain_from(struct sv_drain *d, int64_t ns)
{
    d->from_ns = ns;
}

const struct sv_drain_names *sv_drain_all_names(const struct sv_drain *d)
{
    return &d->names;
}
