/* The I/O report, by time: how long the threads were in I/O during each step and phase of the
 * application.
 *
 * Called once the groups are made. Calls of one thread do not overlap, those of a process whose
 * threads are not known may: the time in which at least one runs counts once per track. Steps and
 * phases lie in and above each other, so calls are not looked at once for each: they are summed up
 * between the times at which spans begin or end, by several threads, and a span is the difference
 * of two sums. */
#include "why/spans.h"
#include "subjects/io/figures.h"
#include "why/steps.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "core/base/search.h"
#include "core/base/sort.h"
#include "threads/workers.h"

#include <stdlib.h>

#define THREADS_FROM ((uint64_t)1 << 18) /* slices */
#define SUMS_MAX     ((size_t)4 << 20)   /* of all threads together, unless one needs more */
#define STRETCH      ((size_t)16 << 10)  /* calls that are united at a time */

/* ---- the tracks ---- */

/* When a thread is in I/O; a track of no thread is one of its own. Rows of the same thread (calls,
 * requests of io_uring) count once. */
struct track {
    sv_track process, track;
    struct sv_spans busy;
};

/* What began before some time. */
struct sums {
    uint64_t opens, reads, writes, bytes_read, bytes_written;
    uint64_t bytes_missed, bytes_mapped; /* by the page cache; by page faults */
};

enum busy { NOT_BUSY, IN_CALL, IN_FAULT };

struct finder {
    struct sv_io_report *report;
    const struct sv_io_words *words;
    struct sv_workers *workers;
    sv_str added;         /* a page that came into the cache */
    uint8_t *busy;        /* by row: enum busy */
    struct track *tracks; /* those that are in I/O; by process */
    size_t n_tracks;
    struct sv_spans any; /* when at least one is */
    int64_t *edges;      /* where spans begin and end, in order, each once */
    size_t n_edges;
    struct sums *sums; /* of each part: n_edges + 1, by the edges that are not after it */
    size_t n_parts;
    size_t cap_spans;
};

static int by_process(const void *a, const void *b)
{
    const struct track *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

/* A call on a file, or a wait for a page of a mapped one. */
static enum busy busy_at(const struct finder *f, uint64_t row)
{
    const struct sv_trace *t = f->report->trace;
    enum sv_io_kind kind = sv_io_kind_at(f->words, row);
    if (kind == SV_IO_FAULT)
        return t->slices.kind[row] == SV_SLICE && sv_io_is_data_fault(f->words, row) ? IN_FAULT
                                                                                     : NOT_BUSY;
    return kind == SV_IO_CALL && (sv_io_is_file(f->words, row, f->words->path) ||
                                  (sv_io_op_at(f->words, row) == SV_OP_COPY &&
                                   sv_io_is_file(f->words, row, f->words->path2)))
               ? IN_CALL
               : NOT_BUSY;
}

static sv_track thread_or_self(const struct sv_dict *d, sv_track track)
{
    for (sv_track up = track; up; up = d->tracks[up].parent)
        if (d->tracks[up].kind == SV_TRACK_THREAD)
            return up;
    return track;
}

static void unite_threads(struct finder *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_tracks; i++) {
        struct track *last = n ? &f->tracks[n - 1] : NULL;
        if (last && last->process == f->tracks[i].process && last->track == f->tracks[i].track) {
            sv_spans_unite(&last->busy, &f->tracks[i].busy);
            sv_spans_fini(&f->tracks[i].busy);
        } else {
            f->tracks[n++] = f->tracks[i];
        }
    }
    f->n_tracks = n;
}

static void find_busy(void *ctx, size_t i)
{
    struct finder *f = ctx;
    const struct sv_trace *t = f->report->trace;
    struct track *k = &f->tracks[i];
    sv_track track = (sv_track)i + 1;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++)
        if (f->busy[row])
            sv_spans_add(&k->busy, t->slices.ts_ns[row], sv_trace_end_ns(t, row), row);
    k->process = sv_dict_process_of(t->dict, track);
    k->track = thread_or_self(t->dict, track);
}

/* A stretch of the line of time, in which all tracks are united by themselves: what is sorted stays
 * small, and others do the next one. */
struct stretch {
    int64_t from_ns, to_ns;
    struct sv_spans any;
};

struct stretches {
    const struct finder *finder;
    struct stretch *v;
    size_t n;
};

static void unite_stretch(void *ctx, size_t i)
{
    const struct stretches *all = ctx;
    struct stretch *x = &all->v[i];
    for (size_t k = 0; k < all->finder->n_tracks; k++) {
        size_t first = x->any.n;
        struct sv_spans part = sv_spans_part(&all->finder->tracks[k].busy, x->from_ns, x->to_ns);
        sv_spans_append(&x->any, &part);
        if (!part.n)
            continue;
        struct sv_span *begin = &x->any.items[first], *end = &x->any.items[x->any.n - 1];
        begin->from_ns = begin->from_ns < x->from_ns ? x->from_ns : begin->from_ns;
        end->to_ns = end->to_ns > x->to_ns ? x->to_ns : end->to_ns;
    }
    sv_spans_settle(&x->any);
}

/* Stretches are cut where the busiest track has as much to do in each. */
static void find_any(struct finder *f)
{
    const struct sv_spans *most = NULL;
    size_t sum = 0;
    for (size_t i = 0; i < f->n_tracks; i++) {
        const struct sv_spans *busy = &f->tracks[i].busy;
        sum += busy->n;
        most = !most || busy->n > most->n ? busy : most;
    }
    if (!most)
        return;
    struct stretches all = {.finder = f, .n = sum / STRETCH + 1};
    all.v = sv_alloc(all.n * sizeof *all.v);
    for (size_t i = 0; i < all.n; i++) {
        all.v[i].from_ns = i ? all.v[i - 1].to_ns : INT64_MIN;
        all.v[i].to_ns = i + 1 < all.n ? most->items[(i + 1) * most->n / all.n].from_ns : INT64_MAX;
    }
    sv_workers_each(f->workers, all.n, unite_stretch, &all);
    for (size_t i = 0; i < all.n; i++) {
        const struct sv_spans *any = &all.v[i].any;
        for (size_t k = 0; k < any->n; k++)
            sv_spans_add(&f->any, any->items[k].from_ns, any->items[k].to_ns, any->items[k].row);
        sv_spans_fini(&all.v[i].any);
    }
    free(all.v);
}

static void find_tracks(struct finder *f)
{
    const struct sv_trace *t = f->report->trace;
    size_t n = t->n_tracks ? t->n_tracks - 1 : 0;
    f->tracks = sv_alloc((n + 1) * sizeof *f->tracks);
    sv_workers_each(f->workers, n, find_busy, f);
    for (size_t i = 0; i < n; i++)
        if (f->tracks[i].busy.n)
            f->tracks[f->n_tracks++] = f->tracks[i];
    if (f->n_tracks)
        qsort(f->tracks, f->n_tracks, sizeof *f->tracks, by_process);
    unite_threads(f);
    find_any(f);
}

/* ---- sums between the edges ---- */

static void find_edges(struct finder *f)
{
    const struct sv_io_report *r = f->report;
    size_t n = 0;
    f->edges = sv_alloc((2 * r->n_spans + 1) * sizeof *f->edges);
    for (size_t i = 0; i < r->n_spans; i++) {
        f->edges[n++] = r->spans[i].ts_ns;
        f->edges[n++] = r->spans[i].ts_ns + r->spans[i].dur_ns;
    }
    if (n)
        qsort(f->edges, n, sizeof *f->edges, sv_compare_i64);
    for (size_t i = 0; i < n; i++)
        if (!f->n_edges || f->edges[f->n_edges - 1] != f->edges[i])
            f->edges[f->n_edges++] = f->edges[i];
}

/* How many edges are not after ts_ns: mostly as many as for the row before. */
static size_t edges_until(const struct finder *f, int64_t ts_ns, size_t guess)
{
    size_t n;
    if ((guess == 0 || f->edges[guess - 1] <= ts_ns) &&
        (guess == f->n_edges || f->edges[guess] > ts_ns))
        return guess;
    SV_SEARCH(n, middle, 0, f->n_edges, f->edges[middle] <= ts_ns);
    return n;
}

static void add_row(const struct finder *f, uint64_t row, struct sums *s)
{
    const struct sv_io_words *w = f->words;
    bool is_call = f->busy[row] == IN_CALL;
    bool is_miss = f->added && f->report->trace->slices.name[row] == f->added &&
                   sv_io_kind_at(w, row) == SV_IO_CACHE_MISS;
    if (!is_call && !is_miss && !sv_io_is_data_fault(w, row))
        return;
    enum sv_io_op op = is_call ? sv_io_op_at(w, row) : SV_OP_NONE;
    int64_t bytes = sv_io_arg(w, row, w->bytes, 0);
    uint64_t moved = bytes > 0 ? (uint64_t)bytes : 0;
    s->opens += op == SV_OP_OPEN;
    bool reads = op == SV_OP_READ || (op == SV_OP_COPY && sv_io_is_file(w, row, w->path)),
         writes = op == SV_OP_WRITE || (op == SV_OP_COPY && sv_io_is_file(w, row, w->path2));
    s->reads += reads;
    s->writes += writes;
    s->bytes_read += reads ? moved : 0;
    s->bytes_written += writes ? moved : 0;
    s->bytes_missed += is_miss ? moved : 0;
    s->bytes_mapped += !is_call && !is_miss ? moved : 0;
}

static void sum_part(void *ctx, size_t i)
{
    struct finder *f = ctx;
    const struct sv_slices *c = &f->report->trace->slices;
    struct sums *sums = f->sums + i * (f->n_edges + 1);
    size_t from, to, at = 0;
    sv_workers_share((size_t)c->n, i, f->n_parts, &from, &to);
    for (size_t row = from; row < to; row++) {
        f->busy[row] = (uint8_t)busy_at(f, row);
        at = edges_until(f, c->ts_ns[row], at);
        add_row(f, row, &sums[at]);
    }
}

static void add_sums(struct sums *s, const struct sums *more)
{
    s->opens += more->opens;
    s->reads += more->reads;
    s->writes += more->writes;
    s->bytes_read += more->bytes_read;
    s->bytes_written += more->bytes_written;
    s->bytes_missed += more->bytes_missed;
    s->bytes_mapped += more->bytes_mapped;
}

/* Of each part, then of all parts, then of all that is before. */
static void sum_up(struct finder *f)
{
    uint64_t rows = f->report->trace->slices.n;
    size_t n = f->n_edges + 1, threads = sv_workers_count(f->workers);
    f->n_parts = threads * n <= SUMS_MAX ? threads : n < SUMS_MAX ? SUMS_MAX / n : 1;
    f->busy = sv_alloc((size_t)rows + 1);
    f->sums = sv_alloc(f->n_parts * n * sizeof *f->sums);
    sv_workers_each(f->workers, f->n_parts, sum_part, f);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 1; k < f->n_parts; k++)
            add_sums(&f->sums[i], &f->sums[k * n + i]);
        if (i)
            add_sums(&f->sums[i], &f->sums[i - 1]);
    }
}

/* What began before this edge. */
static const struct sums *sums_before(const struct finder *f, int64_t edge)
{
    size_t at;
    SV_SEARCH(at, middle, 0, f->n_edges, f->edges[middle] < edge);
    return &f->sums[at];
}

/* Of a process; of all when there is none. */
static int64_t time_of(const struct finder *f, sv_track process, int64_t from_ns, int64_t to_ns)
{
    size_t i = 0;
    int64_t sum = 0;
    if (process)
        SV_SEARCH(i, middle, 0, f->n_tracks, f->tracks[middle].process < process);
    for (; i < f->n_tracks && (!process || f->tracks[i].process == process); i++)
        sum += sv_spans_within(&f->tracks[i].busy, from_ns, to_ns);
    return sum;
}

static void measure(const struct finder *f, struct sv_io_span *s)
{
    const struct sv_trace *t = f->report->trace;
    int64_t end = s->ts_ns + s->dur_ns;
    const struct sums *from = sums_before(f, s->ts_ns), *to = sums_before(f, end);
    s->own_ns = time_of(f, sv_dict_process_of(t->dict, t->slices.track[s->row]), s->ts_ns, end);
    s->any_ns = sv_spans_within(&f->any, s->ts_ns, end);
    s->opens = to->opens - from->opens;
    s->reads = to->reads - from->reads;
    s->writes = to->writes - from->writes;
    s->bytes_read = to->bytes_read - from->bytes_read;
    s->bytes_written = to->bytes_written - from->bytes_written;
    s->bytes_missed = to->bytes_missed - from->bytes_missed;
    s->bytes_mapped = to->bytes_mapped - from->bytes_mapped;
}

static void measure_part(void *ctx, size_t i)
{
    const struct finder *f = ctx;
    size_t from, to;
    sv_workers_share(f->report->n_spans, i, f->n_parts, &from, &to);
    for (; from < to; from++)
        measure(f, &f->report->spans[from]);
}

/* ---- the spans ---- */

static void add_span(struct finder *f, uint32_t row, int64_t ts_ns, int64_t dur_ns)
{
    struct sv_io_report *r = f->report;
    const struct sv_slices *c = &r->trace->slices;
    SV_APPEND(r->spans, r->n_spans, f->cap_spans) = (struct sv_io_span){
        .row = row, .name = c->name[row], .cat = c->cat[row], .ts_ns = ts_ns, .dur_ns = dur_ns};
}

static int by_time(const void *a, const void *b)
{
    const struct sv_io_span *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->dur_ns > y->dur_ns ? -1 : x->dur_ns < y->dur_ns;
}

static bool *find_epochs(const struct sv_dict *d)
{
    bool *is_epoch = sv_alloc((size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++) {
        struct sv_text text = sv_dict_text(d, s);
        is_epoch[s] = sv_glob_match("[Ee]poch*", text.bytes, text.len);
    }
    return is_epoch;
}

static bool has_io(const struct finder *f)
{
    for (uint64_t row = 0; row < f->report->trace->slices.n; row++)
        if (busy_at(f, row))
            return true;
    return false;
}

/* Steps, epochs by their names, and slices of the categories phase and step, in the order of time;
 * none in a trace without I/O. */
static void list_spans(struct finder *f)
{
    struct sv_io_report *r = f->report;
    const struct sv_trace *t = r->trace;
    struct sv_steps steps;
    struct sv_map seen = {0};
    sv_str phase = sv_dict_find_str(t->dict, "phase", 5),
           step = sv_dict_find_str(t->dict, "step", 4);
    if (!has_io(f))
        return;
    bool *is_epoch = find_epochs(t->dict);
    sv_steps_find(&steps, t, NULL);
    for (size_t i = 0; i < steps.n; i++) {
        bool is_new;
        sv_map_add(&seen, steps.steps[i].row, &is_new);
        add_span(f, steps.steps[i].row, steps.steps[i].ts_ns, steps.steps[i].dur_ns);
    }
    for (uint64_t row = 0; row < t->slices.n; row++) {
        sv_str cat = t->slices.cat[row];
        bool is_span = (cat && (cat == phase || cat == step)) || is_epoch[t->slices.name[row]];
        if (is_span && t->slices.kind[row] == SV_SLICE && !sv_map_find(&seen, row))
            add_span(f, (uint32_t)row, t->slices.ts_ns[row],
                     sv_trace_end_ns(t, row) - t->slices.ts_ns[row]);
    }
    if (r->n_spans)
        qsort(r->spans, r->n_spans, sizeof *r->spans, by_time);
    sv_steps_fini(&steps);
    sv_map_fini(&seen);
    free(is_epoch);
}

void sv_io_list_spans(struct sv_io_report *r, const struct sv_io_words *w)
{
    list_spans(&(struct finder){.report = r, .words = w});
}

void sv_io_find_spans(struct sv_io_report *r, const struct sv_io_words *w)
{
    struct finder f = {.report = r,
                       .words = w,
                       .added = sv_dict_find_str(r->trace->dict, "add", 3),
                       .workers = r->trace->slices.n < THREADS_FROM ? NULL : sv_workers_new(0)};
    list_spans(&f);
    if (r->n_spans) {
        find_edges(&f);
        sum_up(&f);
        find_tracks(&f);
        sv_workers_each(f.workers, f.n_parts, measure_part, &f);
    }
    for (size_t i = 0; i < f.n_tracks; i++)
        sv_spans_fini(&f.tracks[i].busy);
    sv_spans_fini(&f.any);
    sv_workers_free(f.workers);
    free(f.tracks);
    free(f.edges);
    free(f.sums);
    free(f.busy);
}
