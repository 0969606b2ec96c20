/* The I/O report, by time: how long the threads were in I/O during each step and phase of the application.
 *
 * Called once the groups are made. Calls of one thread do not overlap, those of a process whose threads are not known may: the time in which at
 * least one runs counts once per track. Steps and phases lie in and above each other, so calls are not looked at once for each: they become
 * sums along the line of time, and a span is the difference of two. */
#include "analysis/report_io.h"
#include "analysis/spans.h"
#include "analysis/steps.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/search.h"

#include <stdlib.h>
#include <string.h>

/* ---- calls by their beginning ---- */

/* A call, and what all before it did. */
struct call {
    int64_t ts_ns;
    uint32_t row;
    uint64_t opens, reads, writes, bytes_read, bytes_written;
};

struct calls {
    struct call *v; /* one more than there are calls: the sums of all */
    size_t n, cap;
};

static int by_beginning(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void sum_calls(struct calls *c, const struct sv_io_words *words)
{
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, by_beginning);
    c->v = sv_grow(c->v, &c->cap, c->n + 1, sizeof *c->v);
    c->v[c->n] = (struct call){0};
    struct call sums = {0};
    for (size_t i = 0; i <= c->n; i++) {
        sums.ts_ns = c->v[i].ts_ns;
        sums.row = c->v[i].row;
        c->v[i] = sums;
        if (i == c->n)
            break;
        enum sv_io_op op = sv_io_op_at(words, sums.row);
        int64_t bytes = sv_io_arg(words, sums.row, words->bytes, 0);
        uint64_t moved = bytes > 0 ? (uint64_t)bytes : 0;
        sums.opens += op == SV_OP_OPEN;
        sums.reads += op == SV_OP_READ;
        sums.writes += op == SV_OP_WRITE;
        sums.bytes_read += op == SV_OP_READ ? moved : 0;
        sums.bytes_written += op == SV_OP_WRITE ? moved : 0;
    }
}

/* The sums of those that begin before ts_ns. */
static const struct call *calls_before(const struct calls *c, int64_t ts_ns)
{
    size_t low;
    SV_SEARCH(low, middle, 0, c->n, c->v[middle].ts_ns < ts_ns);
    return &c->v[low];
}

/* ---- how many tracks are in I/O ---- */

/* From here on so many; sum: the time of all of them before. */
struct level {
    int64_t ts_ns, n, sum_ns;
};

struct load {
    struct level *v;
    size_t n, cap;
};

static void add_levels(struct load *l, const struct sv_spans *busy)
{
    for (size_t i = 0; i < busy->n; i++) {
        l->v = sv_grow(l->v, &l->cap, l->n + 2, sizeof *l->v);
        l->v[l->n++] = (struct level){busy->items[i].from_ns, 1, 0};
        l->v[l->n++] = (struct level){busy->items[i].to_ns, -1, 0};
    }
}

static int by_moment(const void *a, const void *b)
{
    const struct level *x = a, *y = b;
    return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

static void settle_levels(struct load *l)
{
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, by_moment);
    for (size_t i = 1; i < l->n; i++) {
        const struct level *before = &l->v[i - 1];
        l->v[i].sum_ns = before->sum_ns + before->n * (l->v[i].ts_ns - before->ts_ns);
        l->v[i].n += before->n;
    }
}

static int64_t time_before(const struct load *l, int64_t ts_ns)
{
    /* the first level at or after ts_ns */
    size_t low;
    SV_SEARCH(low, middle, 0, l->n, l->v[middle].ts_ns < ts_ns);
    if (low == 0)
        return 0;
    const struct level *x = &l->v[low - 1];
    return x->sum_ns + x->n * (ts_ns - x->ts_ns);
}

/* ---- the tracks ---- */

/* When a track is in I/O. */
struct track {
    sv_track process, track;
    struct sv_spans busy;
};

struct finder {
    struct sv_io_report *report;
    const struct sv_io_words *words;
    struct track *tracks; /* those that have calls; by process */
    size_t n_tracks, cap_tracks;
    struct calls calls;
    struct sv_spans any; /* when at least one is in I/O */
    struct load all;     /* how many are */
    struct load *loads;  /* the same of each process that was asked for */
    size_t n_loads, cap_loads;
    struct sv_map by_process; /* → index of loads, and 1 */
    size_t cap_spans;
};

static int by_process(const void *a, const void *b)
{
    const struct track *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

/* The track's calls, as times; false: it has none. */
static bool add_calls(struct finder *f, sv_track track, struct sv_spans *busy)
{
    const struct sv_trace *t = f->report->trace;
    bool is_any = false;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++) {
        if (sv_io_kind_at(f->words, row) != SV_IO_CALL)
            continue;
        int64_t from = t->slices.ts_ns[row];
        sv_spans_add(busy, from, sv_trace_end_ns(t, row), row);
        f->calls.v = sv_grow(f->calls.v, &f->calls.cap, f->calls.n + 1, sizeof *f->calls.v);
        f->calls.v[f->calls.n++] = (struct call){.ts_ns = from, .row = row};
        is_any = true;
    }
    return is_any;
}

static void find_tracks(struct finder *f)
{
    const struct sv_trace *t = f->report->trace;
    for (sv_track track = 1; track < t->n_tracks; track++) {
        struct sv_spans busy = {0};
        if (!add_calls(f, track, &busy))
            continue;
        f->tracks = sv_grow(f->tracks, &f->cap_tracks, f->n_tracks + 1, sizeof *f->tracks);
        f->tracks[f->n_tracks++] = (struct track){sv_dict_process_of(t->dict, track), track, busy};
    }
    if (f->n_tracks)
        qsort(f->tracks, f->n_tracks, sizeof *f->tracks, by_process);
}

static void sum_up(struct finder *f)
{
    for (size_t i = 0; i < f->n_tracks; i++) {
        sv_spans_append(&f->any, &f->tracks[i].busy);
        add_levels(&f->all, &f->tracks[i].busy);
    }
    sv_spans_settle(&f->any);
    settle_levels(&f->all);
    sum_calls(&f->calls, f->words);
}

/* Of a process; of all when there is none. */
static const struct load *load_of(struct finder *f, sv_track process)
{
    bool is_new;
    if (!process)
        return &f->all;
    uint64_t *at = sv_map_add(&f->by_process, process, &is_new);
    if (!is_new)
        return &f->loads[*at - 1];
    f->loads = sv_grow(f->loads, &f->cap_loads, f->n_loads + 1, sizeof *f->loads);
    struct load *l = &f->loads[f->n_loads++];
    *at = f->n_loads;
    *l = (struct load){0};
    size_t low;
    SV_SEARCH(low, middle, 0, f->n_tracks, f->tracks[middle].process < process);
    for (; low < f->n_tracks && f->tracks[low].process == process; low++)
        add_levels(l, &f->tracks[low].busy);
    settle_levels(l);
    return l;
}

static void measure(struct finder *f, struct sv_io_span *s)
{
    const struct sv_trace *t = f->report->trace;
    int64_t end = s->ts_ns + s->dur_ns;
    const struct load *own = load_of(f, sv_dict_process_of(t->dict, t->slices.track[s->row]));
    const struct call *from = calls_before(&f->calls, s->ts_ns), *to = calls_before(&f->calls, end);
    s->own_ns = time_before(own, end) - time_before(own, s->ts_ns);
    s->any_ns = sv_spans_within(&f->any, s->ts_ns, end);
    s->opens = to->opens - from->opens;
    s->reads = to->reads - from->reads;
    s->writes = to->writes - from->writes;
    s->bytes_read = to->bytes_read - from->bytes_read;
    s->bytes_written = to->bytes_written - from->bytes_written;
}

/* ---- the spans ---- */

static void add_span(struct finder *f, uint32_t row, int64_t ts_ns, int64_t dur_ns)
{
    struct sv_io_report *r = f->report;
    const struct sv_slices *c = &r->trace->slices;
    r->spans = sv_grow(r->spans, &f->cap_spans, r->n_spans + 1, sizeof *r->spans);
    r->spans[r->n_spans++] = (struct sv_io_span){
        .row = row, .name = c->name[row], .cat = c->cat[row], .ts_ns = ts_ns, .dur_ns = dur_ns};
}

static int by_time(const void *a, const void *b)
{
    const struct sv_io_span *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->dur_ns > y->dur_ns ? -1 : x->dur_ns < y->dur_ns;
}

/* Steps, and slices of the categories phase and step, in the order of time. */
static void list_spans(struct finder *f)
{
    struct sv_io_report *r = f->report;
    const struct sv_trace *t = r->trace;
    struct sv_steps steps;
    struct sv_map seen = {0};
    sv_str phase = sv_dict_find_str(t->dict, "phase", 5),
           step = sv_dict_find_str(t->dict, "step", 4);
    find_tracks(f);
    sv_steps_find(&steps, t, NULL);
    for (size_t i = 0; f->n_tracks && i < steps.n; i++) {
        bool is_new;
        sv_map_add(&seen, steps.steps[i].row, &is_new);
        add_span(f, steps.steps[i].row, steps.steps[i].ts_ns, steps.steps[i].dur_ns);
    }
    for (uint64_t row = 0; f->n_tracks && row < t->slices.n; row++) {
        sv_str cat = t->slices.cat[row];
        if (cat && (cat == phase || cat == step) && t->slices.kind[row] == SV_SLICE &&
            !sv_map_find(&seen, row))
            add_span(f, (uint32_t)row, t->slices.ts_ns[row],
                     sv_trace_end_ns(t, row) - t->slices.ts_ns[row]);
    }
    if (r->n_spans)
        qsort(r->spans, r->n_spans, sizeof *r->spans, by_time);
    sv_steps_fini(&steps);
    sv_map_fini(&seen);
}

static void fini(struct finder *f)
{
    for (size_t i = 0; i < f->n_tracks; i++)
        sv_spans_fini(&f->tracks[i].busy);
    for (size_t i = 0; i < f->n_loads; i++)
        free(f->loads[i].v);
    sv_spans_fini(&f->any);
    sv_map_fini(&f->by_process);
    free(f->tracks);
    free(f->loads);
    free(f->all.v);
    free(f->calls.v);
}

void sv_io_list_spans(struct sv_io_report *r, const struct sv_io_words *w)
{
    struct finder f = {.report = r, .words = w};
    list_spans(&f);
    fini(&f);
}

void sv_io_find_spans(struct sv_io_report *r, const struct sv_io_words *w)
{
    struct finder f = {.report = r, .words = w};
    list_spans(&f);
    sum_up(&f);
    for (size_t i = 0; i < r->n_spans; i++)
        measure(&f, &r->spans[i]);
    fini(&f);
}
