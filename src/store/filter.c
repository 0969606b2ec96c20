/* The filter stage: which events pass (predicates, cached per string and track) and what happens at
 * the two ends of the window. See filter.h for what a user may expect.
 *
 * Called by `cut` between a sorted source and a writer. Life of the stage: before the window it
 * only remembers what is open; at its first moment each track lets that in (a track at its own
 * first event, all others when time has passed the first moment, so that an end at exactly that
 * time still means "was over"; flow points of that moment come last, as in a sorted stream,
 * whatever was open around them); inside it passes events and keeps a mark per open begin; past its
 * last moment it closes what is open and is done. */
#include "store/filter.h"
#include "core/base/glob.h"
#include "core/stream/hold.h"
#include "store/ranks.h"

#include <stdlib.h>

enum phase { BEFORE, INSIDE, AFTER };
enum verdict { UNKNOWN, YES, NO };

/* Tags of held events: the order in which they came, and two facts. */
#define TAG_KEPT    1u /* passes the predicates */
#define TAG_WAITING 2u /* began before the window and has not been let in yet */
#define TAG_SHIFT   2

struct row {
    struct sv_held *edges;   /* open begins, newest first; marks without arguments once inside */
    struct sv_held *slices;  /* slices and losses that reach into the window, newest first */
    struct sv_held *counter; /* its value before the window */
    int64_t kept_until_ns;   /* the latest end of a slice that passed */
    uint32_t n_kept;         /* open begins that passed */
    uint8_t verdict;         /* on the track: enum verdict */
    bool is_in;              /* what waited has been let in */
    int64_t revision;        /* of the track and its parents when the verdict was made */
};

struct filter {
    struct sv_sink sink;
    struct sv_dict *dict;
    struct sv_filter is;
    enum phase phase;
    int64_t now_ns, last_ns; /* of the newest event; where the latest one ends */
    uint64_t seq;
    struct row *rows; /* by track */
    size_t n_rows, cap_rows;
    struct sv_held *flows, *last_flow; /* points at the first moment, in order */
    uint8_t *names, *cats;             /* verdicts by string */
    size_t n_names, cap_names, n_cats, cap_cats;
    sv_str begin_key, end_key;
    struct sv_buf path;
    struct sv_pool pool;
    struct sv_outbox out;
};

/* ---- predicates ---- */

static bool globs_match(const struct sv_globs *g, const char *text, size_t len)
{
    for (size_t i = 0; i < g->n; i++)
        if (sv_glob_match(g->items[i], text, len))
            return true;
    return false;
}

/* Several categories are joined by commas; one that matches is enough. */
static bool cats_match(const struct sv_globs *g, struct sv_text text)
{
    const char *at = text.bytes, *end = at + text.len;
    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if (globs_match(g, at, (size_t)((comma ? comma : end) - at)))
            return true;
        if (!comma)
            return false;
        at = comma + 1;
    }
}

static uint8_t *verdict_slot(uint8_t **items, size_t *n, size_t *cap, sv_str s)
{
    if (s >= *n) {
        *items = sv_grow(*items, cap, (size_t)s + 1, 1);
        memset(*items + *n, UNKNOWN, *cap - *n);
        *n = *cap;
    }
    return &(*items)[s];
}

static bool name_passes(struct filter *f, sv_str name)
{
    if (f->is.names.n == 0)
        return true;
    uint8_t *v = verdict_slot(&f->names, &f->n_names, &f->cap_names, name);
    struct sv_text text = sv_dict_text(f->dict, name);
    if (*v == UNKNOWN)
        *v = globs_match(&f->is.names, text.bytes, text.len) ? YES : NO;
    return *v == YES;
}

static bool cat_passes(struct filter *f, sv_str cat)
{
    if (f->is.cats.n == 0)
        return true;
    uint8_t *v = verdict_slot(&f->cats, &f->n_cats, &f->cap_cats, cat);
    if (*v == UNKNOWN)
        *v = cats_match(&f->is.cats, sv_dict_text(f->dict, cat)) ? YES : NO;
    return *v == YES;
}

#define PATH_STEPS 64 /* parents come from files and may form a circle */

void sv_track_path(const struct sv_dict *dict, sv_track track, struct sv_buf *to)
{
    sv_track chain[PATH_STEPS];
    size_t n = 0;
    for (; track && n < PATH_STEPS; track = dict->tracks[track].parent)
        chain[n++] = track;
    while (n-- > 0) {
        const struct sv_track_info *t = &dict->tracks[chain[n]];
        struct sv_text name = sv_dict_text(dict, t->name);
        if (name.len)
            sv_buf_add(to, name.bytes, name.len);
        else if (t->kind == SV_TRACK_PROCESS)
            sv_buf_printf(to, "pid %lld", (long long)t->pid);
        else if (t->kind == SV_TRACK_THREAD)
            sv_buf_printf(to, "tid %lld", (long long)t->tid);
        if (n)
            sv_buf_byte(to, '/');
    }
}

static bool pid_passes(const struct filter *f, sv_track track)
{
    sv_track process = sv_dict_process_of(f->dict, track);
    for (size_t i = 0; process && i < f->is.n_pids; i++)
        if (f->dict->tracks[process].pid == f->is.pids[i])
            return true;
    return f->is.n_pids == 0;
}

static bool judge_track(struct filter *f, sv_track track)
{
    struct sv_text name = sv_dict_text(f->dict, f->dict->tracks[track].name);
    if (!pid_passes(f, track))
        return false;
    if (f->is.tracks.n == 0 || globs_match(&f->is.tracks, name.bytes, name.len))
        return true;
    sv_buf_clear(&f->path);
    sv_track_path(f->dict, track, &f->path);
    if (globs_match(&f->is.tracks, sv_buf_cstr(&f->path), f->path.len))
        return true;
    sv_buf_clear(&f->path);
    sv_track_title(f->dict, track, &f->path);
    return globs_match(&f->is.tracks, sv_buf_cstr(&f->path), f->path.len);
}

/* Names are sometimes learnt late: a verdict holds as long as neither the track nor a parent
 * changed. */
static bool track_passes(struct filter *f, struct row *r, sv_track track)
{
    if (f->is.tracks.n == 0 && f->is.n_pids == 0)
        return true;
    int64_t revision = 0;
    sv_track t = track;
    for (unsigned steps = 0; t && steps < PATH_STEPS; steps++, t = f->dict->tracks[t].parent)
        revision += f->dict->tracks[t].revision + 1;
    if (r->verdict == UNKNOWN || r->revision != revision) {
        r->verdict = judge_track(f, track) ? YES : NO;
        r->revision = revision;
    }
    return r->verdict == YES;
}

static bool passes(struct filter *f, struct row *r, const struct sv_event *e)
{
    if (!track_passes(f, r, e->track))
        return false;
    const struct sv_track_info *t = &f->dict->tracks[e->track];
    switch (e->kind) {
    case SV_BEGIN:
    case SV_SLICE:
    case SV_INSTANT: return name_passes(f, e->name) && cat_passes(f, e->cat);
    case SV_COUNTER:
        return name_passes(f, e->name ? e->name : t->name) &&
               cat_passes(f, e->cat ? e->cat : t->cat);
    default: return true;
    }
}

static bool is_picky(const struct filter *f)
{
    return f->is.names.n || f->is.cats.n;
}

/* ---- cutting ---- */

/* A window without an end has the last time of all, too. */
static bool is_before_end(const struct filter *f, int64_t ts_ns)
{
    return ts_ns < f->is.to_ns || f->is.to_ns == INT64_MAX;
}

static int64_t end_of(const struct sv_event *e)
{
    int64_t end_ns;
    if (e->dur_ns == SV_UNFINISHED)
        return INT64_MAX;
    return __builtin_add_overflow(e->ts_ns, e->dur_ns > 0 ? e->dur_ns : 0, &end_ns) ? INT64_MAX
                                                                                    : end_ns;
}

/* Puts the event into the outbox with what lies outside the window cut off, and says so in its
 * arguments. */
static void emit_cut(struct filter *f, const struct sv_event *e)
{
    struct sv_event cut = *e;
    bool spans = e->kind == SV_SLICE || e->kind == SV_LOSS;
    bool early = e->ts_ns < f->is.from_ns, late = spans && end_of(e) > f->is.to_ns;
    if (early)
        cut.ts_ns = f->is.from_ns;
    if (late && !sv_event_until(&cut, f->is.to_ns)) /* only what never ended is that long */
        cut.dur_ns = SV_UNFINISHED;
    else if (!late && spans && e->dur_ns != SV_UNFINISHED)
        cut.dur_ns = end_of(e) - cut.ts_ns;
    if (e->kind != SV_LOSS && (early || late) && e->n_args + 2u <= SV_ARGS_MAX) {
        struct sv_arg *args = sv_outbox_args(&f->out, e->n_args + 2u);
        size_t n = e->n_args;
        if (n)
            memcpy(args, e->args, n * sizeof *args);
        if (early)
            args[n++] = (struct sv_arg){.key = f->begin_key, .type = SV_ARG_INT, .i = e->ts_ns};
        if (late)
            args[n++] = (struct sv_arg){.key = f->end_key, .type = SV_ARG_BOOL, .i = 1};
        cut.args = args;
        cut.n_args = (uint16_t)n;
    }
    sv_outbox_emit(&f->out, &cut);
}

/* ---- the first moment ---- */

struct waiting {
    struct sv_held **items;
    size_t n, cap;
};

static void collect(struct waiting *w, struct sv_held *list)
{
    for (struct sv_held *h = list; h; h = h->next) {
        if (!(h->tag & TAG_WAITING))
            continue;
        SV_APPEND(w->items, w->n, w->cap) = h;
    }
}

static int compare_tags(const void *a, const void *b)
{
    const struct sv_held *x = *(struct sv_held *const *)a, *y = *(struct sv_held *const *)b;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static void let_counter_in(struct filter *f, struct row *r)
{
    if (!r->counter)
        return;
    sv_outbox_emit(&f->out, &r->counter->event)->ts_ns = f->is.from_ns;
    sv_outbox_spend(&f->out, r->counter);
    r->counter = NULL;
}

/* In the order in which they began, so that they nest as they did. Begins stay on their stacks. */
static void let_in(struct filter *f, struct waiting *w)
{
    if (w->n)
        qsort(w->items, w->n, sizeof *w->items, compare_tags);
    for (size_t i = 0; i < w->n; i++) {
        struct sv_held *h = w->items[i];
        emit_cut(f, &h->event);
        h->tag &= ~(uint64_t)TAG_WAITING;
        if (h->event.kind != SV_BEGIN)
            sv_outbox_spend(&f->out, h);
        else
            f->rows[h->event.track].n_kept++;
    }
    free(w->items);
}

static void let_row_in(struct filter *f, struct row *r)
{
    struct waiting w = {0};
    if (r->is_in)
        return;
    r->is_in = true;
    collect(&w, r->edges);
    collect(&w, r->slices);
    r->slices = NULL;
    let_in(f, &w);
    let_counter_in(f, r);
}

static void on_flow(struct filter *f, struct row *r, const struct sv_event *e);

static void hold_flow(struct filter *f, const struct sv_event *e)
{
    struct sv_held *h = sv_hold(&f->pool, e);
    h->next = NULL;
    if (f->last_flow)
        f->last_flow->next = h;
    else
        f->flows = h;
    f->last_flow = h;
}

static void let_flows_in(struct filter *f)
{
    while (f->flows) {
        struct sv_held *h = f->flows;
        f->flows = h->next;
        on_flow(f, &f->rows[h->event.track], &h->event);
        sv_outbox_spend(&f->out, h);
    }
    f->last_flow = NULL;
}

static void let_all_in(struct filter *f)
{
    struct waiting w = {0};
    for (size_t t = 0; t < f->n_rows; t++) {
        collect(&w, f->rows[t].edges);
        collect(&w, f->rows[t].slices);
        f->rows[t].slices = NULL;
    }
    let_in(f, &w);
    for (size_t t = 0; t < f->n_rows; t++)
        let_counter_in(f, &f->rows[t]);
    f->phase = INSIDE;
    let_flows_in(f);
}

/* ---- the last moment ---- */

static void close_row(struct filter *f, struct row *r)
{
    while (r->edges) {
        struct sv_held *h = r->edges;
        r->edges = h->next;
        if (h->tag & TAG_KEPT) {
            struct sv_arg *a = sv_outbox_args(&f->out, 1);
            *a = (struct sv_arg){.key = f->end_key, .type = SV_ARG_BOOL, .i = 1};
            struct sv_event end = {.ts_ns = f->is.to_ns,
                                   .track = h->event.track,
                                   .kind = SV_END,
                                   .args = a,
                                   .n_args = 1};
            sv_outbox_emit(&f->out, &end);
        }
        sv_outbox_spend(&f->out, h);
    }
}

static void leave(struct filter *f)
{
    for (size_t t = 0; t < f->n_rows; t++)
        close_row(f, &f->rows[t]);
    f->phase = AFTER;
}

/* ---- events ---- */

static struct sv_held *remember(struct filter *f, const struct sv_event *e, unsigned facts)
{
    struct sv_held *h = sv_hold(&f->pool, e);
    h->tag = f->seq++ << TAG_SHIFT | facts;
    return h;
}

static void push(struct sv_held **list, struct sv_held *h)
{
    h->next = *list;
    *list = h;
}

static bool is_inside(const struct filter *f, const struct sv_event *e)
{
    return e->ts_ns >= f->is.from_ns && is_before_end(f, e->ts_ns);
}

static void on_begin(struct filter *f, struct row *r, const struct sv_event *e)
{
    bool kept = passes(f, r, e);
    if (kept && e->ts_ns < f->is.from_ns) {
        push(&r->edges, remember(f, e, TAG_KEPT | TAG_WAITING));
        return;
    }
    kept &= is_inside(f, e); /* one that begins with the end of the window is outside */
    struct sv_event mark = {.kind = SV_BEGIN, .track = e->track, .ts_ns = e->ts_ns};
    push(&r->edges, remember(f, &mark, kept ? TAG_KEPT : 0));
    if (!kept)
        return;
    r->n_kept++;
    sv_outbox_emit(&f->out, e);
}

static void on_end(struct filter *f, struct row *r, const struct sv_event *e)
{
    struct sv_held *h = r->edges;
    if (!h) { /* not a kept event: pass it on, others may count it */
        if (is_inside(f, e) && !is_picky(f) && track_passes(f, r, e->track))
            sv_outbox_emit(&f->out, e);
        return;
    }
    r->edges = h->next;
    if (h->tag & TAG_KEPT && !(h->tag & TAG_WAITING)) {
        r->n_kept--;
        sv_outbox_emit(&f->out, e);
    }
    sv_outbox_spend(&f->out, h);
}

static void on_span(struct filter *f, struct row *r, const struct sv_event *e)
{
    int64_t end_ns = end_of(e);
    bool touches = e->ts_ns >= f->is.from_ns ? is_before_end(f, e->ts_ns) : end_ns > f->is.from_ns;
    if (!touches || !passes(f, r, e))
        return;
    if (e->kind == SV_SLICE && end_ns > r->kept_until_ns)
        r->kept_until_ns = end_ns;
    if (e->ts_ns < f->is.from_ns)
        push(&r->slices, remember(f, e, TAG_KEPT | TAG_WAITING));
    else
        emit_cut(f, e);
}

static void on_counter(struct filter *f, struct row *r, const struct sv_event *e)
{
    if (!is_before_end(f, e->ts_ns) || !passes(f, r, e))
        return;
    if (r->counter) {
        sv_outbox_spend(&f->out, r->counter);
        r->counter = NULL;
    }
    if (e->ts_ns < f->is.from_ns)
        r->counter = remember(f, e, TAG_KEPT);
    else
        sv_outbox_emit(&f->out, e);
}

/* With predicates on names, a flow point stays only where a slice stays that it can bind to. */
static void on_flow(struct filter *f, struct row *r, const struct sv_event *e)
{
    bool has_slice = r->n_kept || r->kept_until_ns >= e->ts_ns || e->flags & SV_BIND_NEXT;
    if (is_inside(f, e) && track_passes(f, r, e->track) && (has_slice || !is_picky(f)))
        sv_outbox_emit(&f->out, e);
}

static struct row *row_of(struct filter *f, sv_track track)
{
    if (track >= f->n_rows) {
        size_t need = f->dict->n_tracks > track ? f->dict->n_tracks : (size_t)track + 1;
        f->rows = sv_grow(f->rows, &f->cap_rows, need, sizeof *f->rows);
        while (f->n_rows < need)
            f->rows[f->n_rows++] = (struct row){.kept_until_ns = INT64_MIN};
    }
    return &f->rows[track];
}

/* Moves the stage on to the time of the event. */
static void advance(struct filter *f, struct row *r, const struct sv_event *e)
{
    f->now_ns = e->ts_ns;
    if (f->phase == BEFORE && e->ts_ns > f->is.from_ns)
        let_all_in(f);
    else if (f->phase == BEFORE && e->ts_ns == f->is.from_ns && e->kind != SV_END &&
             e->kind != SV_COUNTER && e->kind != SV_FLOW)
        let_row_in(f, r);
    if (f->phase == INSIDE && e->ts_ns > f->is.to_ns)
        leave(f);
}

static void filter_event(struct filter *f, const struct sv_event *e)
{
    struct row *r = row_of(f, e->track);
    int64_t last_ns = e->dur_ns == SV_UNFINISHED ? e->ts_ns : end_of(e);
    advance(f, r, e);
    f->last_ns = last_ns > f->last_ns ? last_ns : f->last_ns;
    if (f->phase == AFTER)
        return;
    switch (e->kind) {
    case SV_BEGIN: on_begin(f, r, e); break;
    case SV_END: on_end(f, r, e); break;
    case SV_SLICE:
    case SV_LOSS: on_span(f, r, e); break;
    case SV_COUNTER: on_counter(f, r, e); break;
    case SV_FLOW:
        if (f->phase == BEFORE && e->ts_ns == f->is.from_ns)
            hold_flow(f, e);
        else
            on_flow(f, r, e);
        break;
    default:
        if (is_inside(f, e) && passes(f, r, e))
            sv_outbox_emit(&f->out, e);
        break;
    }
}

/* ---- the stage ---- */

static int filter_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    struct filter *f = (struct filter *)s;
    f->out.err = err;
    for (size_t i = 0; i < n && f->phase != AFTER; i++)
        filter_event(f, &events[i]);
    return sv_outbox_flush(&f->out);
}

static void drop_rows(struct filter *f)
{
    for (struct sv_held *h = f->flows, *next; h; h = next) {
        next = h->next;
        sv_held_free(&f->pool, h);
    }
    for (size_t t = 0; t < f->n_rows; t++) {
        struct row *r = &f->rows[t];
        struct sv_held *lists[] = {r->edges, r->slices, r->counter};
        for (size_t i = 0; i < 3; i++) {
            for (struct sv_held *h = lists[i], *next; h; h = next) {
                next = h->next;
                sv_held_free(&f->pool, h);
            }
        }
    }
}

static int filter_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct filter *f = (struct filter *)s;
    f->out.err = err;
    if (failed && f->out.code == 0)
        f->out.code = SV_EIO; /* nothing more is written */
    /* A stream that ended before the window has nothing in it; one that ended inside leaves open
     * what was open. */
    if (f->phase == BEFORE && f->last_ns >= f->is.from_ns)
        let_all_in(f);
    if (f->phase == INSIDE && !is_before_end(f, f->now_ns))
        leave(f);
    sv_outbox_flush(&f->out);
    int code = sv_outbox_close(&f->out, failed, err);
    drop_rows(f);
    sv_pool_fini(&f->pool);
    sv_buf_fini(&f->path);
    free(f->rows);
    free(f->names);
    free(f->cats);
    free(f);
    return code;
}

struct sv_sink *sv_filter_new(struct sv_dict *dict, const struct sv_filter *filter,
                              struct sv_sink *next)
{
    struct filter *f = sv_alloc(sizeof *f);
    f->sink.write = filter_write;
    f->sink.close = filter_close;
    sv_sink_takes_as(&f->sink, next, SV_IN_ORDER);
    f->dict = dict;
    f->is = *filter;
    f->now_ns = f->last_ns = INT64_MIN;
    f->phase = filter->from_ns >= filter->to_ns ? AFTER
               : filter->from_ns == INT64_MIN   ? INSIDE
                                                : BEFORE;
    f->begin_key = sv_dict_cstr(dict, "cut.begin_ns");
    f->end_key = sv_dict_cstr(dict, "cut.end");
    sv_buf_init(&f->path, (size_t)1 << 20);
    sv_pool_init(&f->pool);
    sv_outbox_init(&f->out, &f->pool, next);
    return &f->sink;
}
