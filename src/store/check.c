/* The check: the rules of check.h over a stream of events.
 *
 * Two sinks in a row, with the sort stage between them if the source gives disorder: `order` sees
 * the events as they come and knows the rules of order; `rules` sees them in time order. Per track
 * it keeps the open slices as a stack; per flow number what happened to it so far. What is still
 * open at the end is reported at close(). All memory is bounded: stacks and flows have a limit,
 * past which events are counted as unchecked and the rules that need them are silent rather than
 * wrong. */
#include "store/check.h"
#include "core/stream/stages.h"
#include "core/stream/trace_context.h"
#include "store/rebase.h"
#include "subjects/io/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COARSE_NS 1000 /* the unit of files with microseconds */

const struct sv_check_rule_info sv_check_rules[SV_CHECK_RULES] = {
#define RULE(id, rule_name, rule_severity, rule_text) \
    [SV_CHECK_##                                      \
        id] = {.name = (rule_name), .severity = SV_CHECK_##rule_severity, .text = (rule_text)},
    SV_CHECK_LIST(RULE)
#undef RULE
};

/* An open slice; those of a track are linked, innermost first. */
struct open {
    int64_t ts_ns, end_ns; /* end INT64_MAX: not known yet (edges), or never */
    sv_str name, cat;
    uint32_t below; /* number in `open`; of a free one: the next free one */
    bool is_edge;
};

enum flow_state { BEGUN = 1, PASSED = 2, CONNECTED = 4, ENDED = 8 };

struct flow {
    int64_t ts_ns; /* of its first event, or of the begin that is in force */
    sv_track track;
    sv_str name;
    uint32_t early_ends; /* before any begin */
    uint32_t state;
};

struct track_state {
    int64_t edge_ns, slice_ns, counter_ns, instant_ns; /* the newest of each, as they came */
    int64_t closed_ns;                                 /* where the last slice ended */
    uint32_t top, depth, edges; /* open slices, and how many of them are edges */
    uint32_t waiting;           /* flow points that bind to the next slice */
    int64_t waiting_ns;         /* the first of them */
    bool has_events;
    bool is_blind; /* some open slice was not kept: nesting is not looked at any more */
};

struct check {
    struct sv_sink rules; /* what comes after the sort */
    struct sv_check *out;
    struct sv_dict *dict;
    struct track_state *tracks;
    size_t n_tracks;
    struct open *open; /* [0] is unused */
    size_t n_open, cap_open;
    uint32_t free_open;
    struct sv_map flow_index; /* flow number → number in `flows` + 1 */
    struct flow *flows;
    size_t n_flows, cap_flows;
    /* Overlaps by size: within a nanosecond, within a microsecond, more. Which are near depends on
     * the unit of all times. */
    struct sv_check_row overlaps[3];
    bool is_fine;             /* some time is not a multiple of a microsecond */
    bool has_forgotten_flows; /* an end that seems to have no begin may have had one */
    bool is_full_of_flows;
};

/* ---- findings ---- */

static void note_row(struct sv_check_row *row, uint64_t count, const struct sv_event *e,
                     sv_str other)
{
    if (row->count == 0) {
        row->first_ns = e->ts_ns;
        row->track = e->track;
        row->name = e->name;
        row->other = other;
    }
    row->count += count;
}

static void note(struct check *c, enum sv_check_rule rule, const struct sv_event *e)
{
    note_row(&c->out->rows[rule], 1, e, 0);
}

/* For what is reported at the end, in no order: the earliest one is the first. */
static void note_late(struct check *c, enum sv_check_rule rule, uint64_t count,
                      const struct sv_event *e)
{
    struct sv_check_row *row = &c->out->rows[rule];
    if (count == 0)
        return;
    if (row->count && e->ts_ns < row->first_ns) {
        uint64_t before = row->count;
        row->count = 0;
        note_row(row, before, e, 0);
    }
    note_row(row, count, e, 0);
}

static struct track_state *state_of(struct check *c, sv_track track)
{
    if (track >= c->n_tracks) {
        size_t old = c->n_tracks;
        c->tracks = sv_grow(c->tracks, &c->n_tracks, (size_t)track + 1, sizeof *c->tracks);
        for (size_t i = old; i < c->n_tracks; i++)
            c->tracks[i] = (struct track_state){.edge_ns = INT64_MIN,
                                                .slice_ns = INT64_MIN,
                                                .counter_ns = INT64_MIN,
                                                .instant_ns = INT64_MIN,
                                                .closed_ns = INT64_MIN};
    }
    return &c->tracks[track];
}

/* ---- open slices ---- */

static uint32_t take_open(struct check *c, const struct sv_event *e)
{
    uint32_t i = c->free_open;
    if (i) {
        c->free_open = c->open[i].below;
        return i;
    }
    if (c->n_open > SV_CHECK_OPEN_MAX) {
        note(c, SV_CHECK_UNCHECKED, e);
        return 0;
    }
    size_t need = c->n_open ? c->n_open + 1 : 2;
    c->open = sv_grow(c->open, &c->cap_open, need, sizeof *c->open);
    c->n_open = need;
    return (uint32_t)need - 1;
}

static void push(struct check *c, const struct sv_event *e, int64_t end_ns)
{
    uint32_t i = take_open(c, e);
    struct track_state *k = state_of(c, e->track);
    if (i == 0) {
        k->is_blind = true;
        return;
    }
    c->open[i] = (struct open){.ts_ns = e->ts_ns,
                               .end_ns = end_ns,
                               .name = e->name,
                               .cat = e->cat,
                               .below = k->top,
                               .is_edge = e->kind == SV_BEGIN};
    k->top = i;
    k->edges += e->kind == SV_BEGIN;
    if (++k->depth > SV_CHECK_DEPTH_MAX)
        note(c, SV_CHECK_DEEP_NESTING, e);
}

static void pop(struct check *c, struct track_state *k, int64_t end_ns)
{
    uint32_t i = k->top;
    if (end_ns > k->closed_ns)
        k->closed_ns = end_ns;
    k->top = c->open[i].below;
    k->edges -= c->open[i].is_edge;
    k->depth--;
    c->open[i].below = c->free_open;
    c->free_open = i;
}

/* e and `o` overlap without nesting; they would nest if one of them were shorter by `miss`. */
static void note_overlap(struct check *c, const struct sv_event *e, const struct open *o,
                         int64_t miss_ns)
{
    unsigned size = miss_ns <= 1 ? 0 : miss_ns <= COARSE_NS ? 1 : 2;
    note_row(&c->overlaps[size], 1, e, o->name);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* a − b of times; a is the later one. */
static int64_t gap(int64_t a, int64_t b)
{
    int64_t d;
    return __builtin_sub_overflow(a, b, &d) ? INT64_MAX : d;
}

/* Slices that ended leave; those that end within the new one overlap it. An open edge hides what
 * lies below it. */
static void leave_ended(struct check *c, struct track_state *k, const struct sv_event *e,
                        int64_t end_ns)
{
    while (k->top && !c->open[k->top].is_edge) {
        const struct open *o = &c->open[k->top];
        if (o->end_ns > e->ts_ns && o->end_ns >= end_ns)
            return;
        if (o->end_ns > e->ts_ns)
            note_overlap(c, e, o, least(gap(o->end_ns, e->ts_ns), gap(end_ns, o->end_ns)));
        pop(c, k, o->end_ns);
    }
}

static void check_begin(struct check *c, const struct sv_event *e)
{
    struct track_state *k = state_of(c, e->track);
    leave_ended(c, k, e, e->ts_ns); /* whether it outlives its parent is known at its end */
    push(c, e, INT64_MAX);
    k->waiting = 0;
}

static void check_end(struct check *c, const struct sv_event *e)
{
    struct track_state *k = state_of(c, e->track);
    if (k->edges == 0) {
        note(c, SV_CHECK_END_WITHOUT_BEGIN, e);
        return;
    }
    uint32_t edge = k->top;
    while (!c->open[edge].is_edge) /* what lies above leaves below, so each is walked over once */
        edge = c->open[edge].below;
    struct sv_event begin = {
        .ts_ns = c->open[edge].ts_ns, .track = e->track, .name = c->open[edge].name};
    if (e->ts_ns > begin.ts_ns && !sv_event_until(&begin, e->ts_ns))
        note(c, SV_CHECK_ENDLESS_DURATION, &begin);
    for (; k->top != edge; pop(c, k, c->open[k->top].end_ns)) { /* slices within it */
        const struct open *o = &c->open[k->top];
        if (o->end_ns > e->ts_ns && o->ts_ns < e->ts_ns)
            note_overlap(c, &begin, o, least(gap(o->end_ns, e->ts_ns), gap(e->ts_ns, o->ts_ns)));
    }
    pop(c, k, e->ts_ns);
    const struct open *o = &c->open[k->top];
    if (k->top && !o->is_edge && o->end_ns < e->ts_ns && o->end_ns > begin.ts_ns)
        note_overlap(c, &begin, o, least(gap(o->end_ns, begin.ts_ns), gap(e->ts_ns, o->end_ns)));
}

static void check_slice(struct check *c, const struct sv_event *e)
{
    struct track_state *k = state_of(c, e->track);
    int64_t end = e->ts_ns;
    if (e->dur_ns == SV_UNFINISHED) {
        note(c, SV_CHECK_UNFINISHED_SLICE, e);
        end = INT64_MAX;
    } else if (e->dur_ns < 0) {
        note(c, SV_CHECK_NEGATIVE_DURATION, e);
    } else if (__builtin_add_overflow(e->ts_ns, e->dur_ns, &end)) {
        note(c, SV_CHECK_ENDLESS_DURATION, e);
        end = INT64_MAX;
    }
    leave_ended(c, k, e, end);
    push(c, e, end);
    k->waiting = 0;
}

static void check_nesting(struct check *c, const struct sv_event *e)
{
    switch (e->kind) {
    case SV_BEGIN: check_begin(c, e); break;
    case SV_END: check_end(c, e); break;
    case SV_SLICE: check_slice(c, e); break;
    default: break;
    }
}

/* ---- flows ---- */

/* Forgets flows that were connected and ended; what is left moves together. */
static void forget_done(struct check *c)
{
    struct sv_map old = c->flow_index;
    struct flow *flows = sv_alloc(c->cap_flows * sizeof *flows);
    size_t kept = 0;
    c->flow_index = (struct sv_map){0};
    for (size_t i = 0; i < old.cap; i++) {
        if (!old.used[i])
            continue;
        const struct flow *f = &c->flows[old.slots[i].value - 1];
        if (f->state & ENDED && f->early_ends == 0)
            continue;
        flows[kept++] = *f;
        *sv_map_add(&c->flow_index, old.slots[i].key, NULL) = kept;
    }
    sv_map_fini(&old);
    free(c->flows);
    c->flows = flows;
    c->has_forgotten_flows |= kept < c->n_flows;
    c->n_flows = kept;
}

/* What is known of a flow; NULL when there is no space for a new one. */
static struct flow *flow_of(struct check *c, uint64_t id, const struct sv_event *e)
{
    uint64_t *slot = sv_map_find(&c->flow_index, id);
    if (slot)
        return &c->flows[*slot - 1];
    if (c->n_flows >= SV_CHECK_FLOWS_MAX && !c->is_full_of_flows) {
        forget_done(c);
        /* Sweeping again and again for a few would take forever. */
        c->is_full_of_flows = c->n_flows > SV_CHECK_FLOWS_MAX / 8 * 7;
    }
    if (c->is_full_of_flows) {
        note(c, SV_CHECK_UNCHECKED, e);
        return NULL;
    }
    SV_APPEND(c->flows, c->n_flows, c->cap_flows) =
        (struct flow){.ts_ns = e->ts_ns, .track = e->track, .name = e->name};
    *sv_map_add(&c->flow_index, id, NULL) = c->n_flows;
    return &c->flows[c->n_flows - 1];
}

static void check_flow_begin(struct check *c, struct flow *f, const struct sv_event *e)
{
    if (f->state & BEGUN && !(f->state & CONNECTED))
        note(c, SV_CHECK_FLOW_BEGUN_TWICE, e);
    if (f->ts_ns == e->ts_ns && f->early_ends) { /* of the same moment: only the order was wrong */
        f->early_ends = 0;
        f->state |= CONNECTED | ENDED;
    } else {
        f->state &= ~(unsigned)(CONNECTED | ENDED | PASSED);
    }
    f->state |= BEGUN;
    f->ts_ns = e->ts_ns;
    f->track = e->track;
    f->name = e->name;
}

static void check_flow_arg(struct check *c, const struct sv_event *e, const struct sv_arg *a)
{
    struct flow *f = flow_of(c, a->u, e);
    if (!f)
        return;
    bool is_known = f->state & (BEGUN | PASSED);
    switch (a->type) {
    case SV_ARG_FLOW_BEGIN: check_flow_begin(c, f, e); break;
    case SV_ARG_FLOW:
        f->state |= PASSED | (is_known ? CONNECTED : 0u);
        f->state &= ~(unsigned)ENDED;
        break;
    default:
        if (is_known)
            f->state |= CONNECTED | ENDED;
        else if (c->has_forgotten_flows)
            note(c, SV_CHECK_UNCHECKED, e);
        else
            f->early_ends++;
        if (!(f->state & BEGUN)) /* a flow that only passed is closed by its end */
            f->state &= ~(unsigned)PASSED;
    }
}

/* An argument that is a text; NULL: none. */
static const struct sv_arg *text_arg(const struct check *c, const struct sv_event *e,
                                     const char *key)
{
    for (const struct sv_arg *a = e->args; a < e->args + e->n_args; a = sv_arg_next(a))
        if (a->type == SV_ARG_TEXT && strcmp(sv_dict_text(c->dict, a->key).bytes, key) == 0)
            return a;
    return NULL;
}

/* The flows of a span's trace context, its own and its caller's: the other end may be in the trace
 * of another program. Returns how many. */
static size_t flows_of_span(const struct check *c, const struct sv_event *e, uint64_t flows[2])
{
    static const char *const spans[2] = {"span_id", "parent_span_id"};
    const struct sv_arg *trace = text_arg(c, e, "trace_id");
    size_t n = 0;
    for (size_t i = 0; trace && i < 2; i++) {
        const struct sv_arg *span = text_arg(c, e, spans[i]);
        uint8_t trace_id[SV_TRACE_ID_BYTES], span_id[SV_SPAN_ID_BYTES], flags;
        char header[SV_TRACEPARENT_LEN + 1];
        if (!span)
            continue;
        int len = snprintf(header, sizeof header, "00-%.*s-%.*s-01", (int)trace->size, trace->text,
                           (int)span->size, span->text);
        if (len == SV_TRACEPARENT_LEN &&
            sv_traceparent_read(header, SV_TRACEPARENT_LEN, trace_id, span_id, &flags))
            flows[n++] = sv_trace_flow(trace_id, span_id);
    }
    return n;
}

/* The arguments are searched for a trace context once, at the first flow: an event may have many
 * flows. */
static void check_flows(struct check *c, const struct sv_event *e)
{
    uint64_t own[2] = {0};
    size_t n_own = 0;
    bool is_searched = false;
    for (const struct sv_arg *a = e->args; a < e->args + e->n_args; a = sv_arg_next(a)) {
        if (a->type < SV_ARG_FLOW_BEGIN || a->type > SV_ARG_FLOW_END ||
            sv_flow_is_shared(c->dict, e->cat, a->u)) /* its other end is another rank's */
            continue;
        if (!is_searched)
            n_own = flows_of_span(c, e, own);
        is_searched = true;
        if (!(n_own > 0 && own[0] == a->u) && !(n_own > 1 && own[1] == a->u))
            check_flow_arg(c, e, a);
    }
}

static void check_flow_point(struct check *c, const struct sv_event *e)
{
    struct track_state *k = state_of(c, e->track);
    if (e->flags & SV_BIND_NEXT) {
        if (k->waiting++ == 0)
            k->waiting_ns = e->ts_ns;
        return;
    }
    while (k->top && !c->open[k->top].is_edge && c->open[k->top].end_ns < e->ts_ns)
        pop(c, k, c->open[k->top].end_ns);
    if (k->top == 0 && k->closed_ns < e->ts_ns && !k->is_blind)
        note(c, SV_CHECK_FLOW_OUTSIDE, e);
}

/* ---- the other rules ---- */

static void check_counter(struct check *c, const struct sv_event *e)
{
    unsigned type = e->n_args ? e->args[0].type : 0;
    if (type != SV_ARG_INT && type != SV_ARG_UINT && type != SV_ARG_DOUBLE && type != SV_ARG_BOOL)
        note(c, SV_CHECK_COUNTER_VALUE, e);
    if (c->dict->tracks[e->track].kind != SV_TRACK_COUNTER)
        note(c, SV_CHECK_COUNTER_TRACK, e);
}

static void check_named(struct check *c, const struct sv_event *e)
{
    if (e->name == 0)
        note(c, SV_CHECK_NO_NAME, e);
    if (c->dict->tracks[e->track].kind == SV_TRACK_COUNTER)
        note(c, SV_CHECK_SLICE_ON_COUNTER, e);
}

static void check_loss(struct check *c, const struct sv_event *e)
{
    uint64_t count = e->n_args && e->args[0].u ? e->args[0].u : 1;
    note_row(&c->out->rows[SV_CHECK_LOSS], count, e, 0);
}

static void check_event(struct check *c, const struct sv_event *e)
{
    assert(e->track < c->dict->n_tracks);
    if (e->track == 0)
        note(c, SV_CHECK_NO_TRACK, e);
    state_of(c, e->track)->has_events = true;
    c->is_fine |= e->ts_ns % COARSE_NS != 0;
    c->is_fine |= e->dur_ns != SV_UNFINISHED && e->dur_ns % COARSE_NS != 0;
    if (e->kind == SV_BEGIN || e->kind == SV_SLICE || e->kind == SV_INSTANT)
        check_named(c, e);
    if (!c->tracks[e->track].is_blind)
        check_nesting(c, e);
    switch (e->kind) {
    case SV_COUNTER: check_counter(c, e); break;
    case SV_FLOW: check_flow_point(c, e); break;
    case SV_LOSS: check_loss(c, e); break;
    default: break;
    }
    check_flows(c, e);
}

/* ---- the end ---- */

/* A thread is in its last state when the recording ends. */
static void close_tracks(struct check *c)
{
    const sv_str state =
        sv_dict_find_str(c->dict, SV_CAT_THREAD_STATE, strlen(SV_CAT_THREAD_STATE));
    for (sv_track t = 0; t < c->n_tracks; t++) {
        const struct track_state *k = &c->tracks[t];
        for (uint32_t i = k->is_blind ? 0 : k->top; i; i = c->open[i].below) {
            struct sv_event e = {.ts_ns = c->open[i].ts_ns, .track = t, .name = c->open[i].name};
            if (!state || c->open[i].cat != state)
                note_late(c, SV_CHECK_BEGIN_WITHOUT_END, c->open[i].is_edge, &e);
        }
        struct sv_event e = {.ts_ns = k->waiting_ns, .track = t};
        note_late(c, SV_CHECK_FLOW_OUTSIDE, k->waiting, &e);
    }
}

static void close_flows(struct check *c)
{
    for (size_t i = 0; i < c->n_flows; i++) {
        const struct flow *f = &c->flows[i];
        struct sv_event e = {.ts_ns = f->ts_ns, .track = f->track, .name = f->name};
        note_late(c, SV_CHECK_FLOW_END_WITHOUT_BEGIN, f->early_ends, &e);
        bool is_alone = f->state & (BEGUN | PASSED) && !(f->state & CONNECTED);
        note_late(c, SV_CHECK_FLOW_WITHOUT_END, is_alone, &e);
    }
}

/* A track made on mere reference: nothing but its number is known. */
static bool is_undescribed(const struct sv_track_info *t)
{
    return t->kind == SV_TRACK_CUSTOM && !t->is_described && t->name == 0;
}

static void check_tracks(struct check *c)
{
    const struct sv_dict *d = c->dict;
    for (sv_track t = 1; t < d->n_tracks; t++) {
        const struct sv_track_info *info = &d->tracks[t];
        struct sv_event e = {.track = t, .name = info->name};
        if (info->parent && is_undescribed(&d->tracks[info->parent]))
            note(c, SV_CHECK_UNKNOWN_PARENT, &e);
        if (t < c->n_tracks && c->tracks[t].has_events && is_undescribed(info))
            note(c, SV_CHECK_UNDESCRIBED_TRACK, &e);
    }
}

/* Walks up from every track, over each of them once: a walk that meets itself is a circle. */
static void check_cycles(struct check *c)
{
    const struct sv_dict *d = c->dict;
    uint32_t *walk = sv_alloc(d->n_tracks * sizeof *walk);
    for (sv_track start = 1; start < d->n_tracks; start++) {
        sv_track t = start;
        while (t && walk[t] == 0) {
            walk[t] = start;
            t = d->tracks[t].parent;
        }
        struct sv_event e = {.track = t, .name = d->tracks[t].name};
        if (t && walk[t] == start)
            note(c, SV_CHECK_PARENT_CYCLE, &e);
    }
    free(walk);
}

static void close_overlaps(struct check *c)
{
    c->out->unit_ns = c->is_fine || c->out->events == 0 ? 1 : COARSE_NS;
    for (unsigned size = 0; size < 3; size++) {
        bool is_near = size == 0 || (size == 1 && c->out->unit_ns == COARSE_NS);
        struct sv_check_row *row =
            &c->out->rows[is_near ? SV_CHECK_NEAR_OVERLAP : SV_CHECK_OVERLAP];
        const struct sv_check_row *add = &c->overlaps[size];
        uint64_t count = row->count + add->count;
        if (add->count && (row->count == 0 || add->first_ns < row->first_ns))
            *row = *add;
        row->count = count;
    }
}

static int rules_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct check *c = (struct check *)s;
    (void)err;
    for (size_t i = 0; i < n; i++)
        check_event(c, &events[i]);
    return 0;
}

static int rules_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct check *c = (struct check *)s;
    (void)failed;
    (void)err;
    close_tracks(c);
    close_flows(c);
    check_tracks(c);
    check_cycles(c);
    close_overlaps(c);
    sv_map_fini(&c->flow_index);
    free(c->flows);
    free(c->open);
    free(c->tracks);
    free(c);
    return 0;
}

/* ---- order ---- */

struct order {
    struct sv_sink sink;
    struct check *check;
    struct sv_sink *next;
};

enum { ORDER_IS_FREE = 3 };

static void check_order(struct check *c, const struct sv_event *e)
{
    struct track_state *k = state_of(c, e->track);
    static const enum sv_check_rule rules[] = {SV_CHECK_EDGE_ORDER, SV_CHECK_SLICE_ORDER,
                                               SV_CHECK_COUNTER_ORDER, SV_CHECK_FILE_ORDER};
    int64_t *const newest[] = {&k->edge_ns, &k->slice_ns, &k->counter_ns, &k->instant_ns};
    unsigned which = e->kind == SV_SLICE     ? 1
                     : e->kind == SV_COUNTER ? 2
                     : e->kind == SV_INSTANT ? ORDER_IS_FREE
                                             : 0;
    if (e->kind == SV_FLOW || e->kind == SV_LOSS)
        return;
    /* Threads that set one counter are read one after the other: where readers sort, that is as it
     * should be. */
    bool is_free = e->kind == SV_COUNTER && c->out->readers_sort;
    if (e->ts_ns < *newest[which] && !is_free)
        note(c, rules[which == 0 && c->out->readers_sort ? ORDER_IS_FREE : which], e);
    *newest[which] = e->ts_ns;
}

static int order_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct order *o = (struct order *)s;
    o->check->out->events += n;
    for (size_t i = 0; i < n; i++)
        check_order(o->check, &events[i]);
    return o->next->write(o->next, events, n, err);
}

static int order_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct order *o = (struct order *)s;
    int code = o->next->close(o->next, failed, err);
    free(o);
    return code;
}

struct sv_sink *sv_check_new(struct sv_dict *dict, unsigned gives, size_t sort_memory_bytes,
                             struct sv_check *check)
{
    const unsigned all = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS;
    struct check *c = sv_alloc(sizeof *c);
    struct order *o = sv_alloc(sizeof *o);
    *check = (struct sv_check){0};
    c->rules =
        (struct sv_sink){.write = rules_write, .close = rules_close, .takes = all & ~SV_ORDER_BITS};
    c->out = check;
    c->dict = dict;
    o->sink = (struct sv_sink){.write = order_write, .close = order_close, .takes = all};
    o->check = c;
    o->next = &c->rules;
    if (gives & SV_ORDER_BITS)
        o->next = sv_sort_new(dict, sort_memory_bytes, o->next);
    return &o->sink;
}

/* ---- answers ---- */

int sv_check_worst(const struct sv_check *check)
{
    int worst = -1;
    for (unsigned r = 0; r < SV_CHECK_RULES; r++)
        if (check->rows[r].count && (int)sv_check_rules[r].severity > worst)
            worst = (int)sv_check_rules[r].severity;
    return worst;
}

const char *sv_check_severity_name(enum sv_check_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return names[severity];
}
