/* The store, loading: events become rows in the order of arrival.
 *
 * Sources and stages push through the sink; its close() runs finish: sort, nest, bind, chain, each
 * in a file of its own. A begin makes a row at once and its end fills in the duration, so in-order
 * edges need no second look. Edges that go back in time are kept as rows of their own and paired
 * when the track is in order. Nothing here may depend on the number of rows or tracks seen so far,
 * or loading is not linear; nothing may allocate per event. The memory limit is asked before each
 * batch and counts what finish will need, so that finish keeps to it too. */
#include "store/trace_impl.h"

#include "why/words.h"

#include <assert.h>
#include <stdlib.h>

/* `parent` and `exact` are last: they do not exist while loading. */
static const struct sv_column slice_columns[] = {
    SV_COLUMN(sv_slices, ts_ns), SV_COLUMN(sv_slices, dur_ns), SV_COLUMN(sv_slices, name),
    SV_COLUMN(sv_slices, cat),   SV_COLUMN(sv_slices, track),  SV_COLUMN(sv_slices, args),
    SV_COLUMN(sv_slices, depth), SV_COLUMN(sv_slices, kind),   SV_COLUMN(sv_slices, flags),
    SV_COLUMN(sv_slices, parent)};
static const struct sv_column counter_columns[] = {
    SV_COLUMN(sv_counters, ts_ns), SV_COLUMN(sv_counters, value), SV_COLUMN(sv_counters, track),
    SV_COLUMN(sv_counters, type), SV_COLUMN(sv_counters, exact)};
static const struct sv_column flow_columns[] = {SV_COLUMN(sv_flows, id), SV_COLUMN(sv_flows, from),
                                                SV_COLUMN(sv_flows, to),
                                                SV_COLUMN(sv_flows, by_to)};
static const struct sv_column point_columns[] = {
    SV_COLUMN(sv_flow_points, ts_ns), SV_COLUMN(sv_flow_points, id),
    SV_COLUMN(sv_flow_points, track), SV_COLUMN(sv_flow_points, row),
    SV_COLUMN(sv_flow_points, type),  SV_COLUMN(sv_flow_points, flags)};
static const struct sv_column loss_columns[] = {
    SV_COLUMN(sv_losses, ts_ns), SV_COLUMN(sv_losses, dur_ns), SV_COLUMN(sv_losses, count),
    SV_COLUMN(sv_losses, cause), SV_COLUMN(sv_losses, track)};
static const struct sv_column carrier_columns[] = {
    SV_COLUMN(sv_carriers, id), SV_COLUMN(sv_carriers, row), SV_COLUMN(sv_carriers, type),
    SV_COLUMN(sv_carriers, how)};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROWS_MAX     (SV_NO_ROW - SV_BATCH)

static int write_events(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err);
static int close_sink(struct sv_sink *s, bool failed, struct sv_err *err);

struct sv_trace *sv_trace_new(struct sv_dict *dict, struct sv_report *report,
                              size_t memory_limit_bytes)
{
    struct sv_trace *t = sv_alloc(sizeof *t);
    struct sv_trace_impl *x = sv_alloc(sizeof *x);
    t->dict = dict;
    t->impl = x;
    x->trace = t;
    x->sink = (struct sv_sink){.write = write_events,
                               .close = close_sink,
                               .takes = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER |
                                        SV_HAS_FLOW_POINTS};
    x->report = report;
    x->memory_limit = memory_limit_bytes;
    x->n_open = 1;
    sv_table_init(&x->slices, &t->slices, slice_columns, COUNT(slice_columns) - 1);
    sv_table_init(&x->counters, &t->counters, counter_columns, COUNT(counter_columns) - 1);
    sv_table_init(&x->flows, &t->flows, flow_columns, COUNT(flow_columns));
    sv_table_init(&x->points, &t->points, point_columns, COUNT(point_columns));
    sv_table_init(&x->losses, &t->losses, loss_columns, COUNT(loss_columns));
    sv_table_init(&x->carriers, &x->carrier, carrier_columns, COUNT(carrier_columns));
    sv_lists_init(&x->args);
    return t;
}

void sv_trace_use(struct sv_trace *t, struct sv_workers *workers)
{
    t->impl->workers = workers;
}

void sv_trace_tracks(struct sv_trace *t, uint32_t n)
{
    t->impl->n_tracks = n;
}

static void free_loading(struct sv_trace_impl *x)
{
    sv_table_fini(&x->carriers);
    x->carrier.n = 0;
    free(x->states);
    free(x->open);
    x->states = NULL;
    x->open = NULL;
    x->n_states = x->cap_open = x->n_open = 0;
}

void sv_trace_free(struct sv_trace *t)
{
    if (!t)
        return;
    struct sv_trace_impl *x = t->impl;
    if (x->image)
        sv_trace_let_go(t);
    free_loading(x);
    sv_table_fini(&x->slices);
    sv_table_fini(&x->counters);
    sv_table_fini(&x->flows);
    sv_table_fini(&x->points);
    sv_table_fini(&x->losses);
    sv_lists_fini(&x->args);
    sv_block_fini(&x->places);
    for (size_t i = 0; i < COUNT(x->ends); i++)
        sv_block_fini(&x->ends[i]);
    free(t->tracks);
    free(x);
    free(t);
}

/* ---- memory ---- */

size_t sv_trace_args_bytes(const struct sv_trace *t)
{
    return sv_lists_bytes(&t->impl->args);
}

size_t sv_trace_bytes(const struct sv_trace *t)
{
    const struct sv_trace_impl *x = t->impl;
    size_t index = x->n_levels ? t->slices.n / 63 * sizeof(int64_t) : 0;
    return t->slices.n * x->slices.row_bytes + t->counters.n * x->counters.row_bytes +
           t->flows.n * x->flows.row_bytes + t->points.n * x->points.row_bytes +
           t->losses.n * x->losses.row_bytes + x->carrier.n * x->carriers.row_bytes +
           x->n_states * sizeof *x->states + x->cap_open * sizeof *x->open +
           t->n_tracks * sizeof *t->tracks + sv_lists_bytes(&x->args) + index;
}

/* What finish needs beside what is there: an order, then keys and spare space for the track that
 * needs most, then one column twice; at last carriers as structs, and arrows. */
static size_t finish_bytes(const struct sv_trace *t)
{
    const struct sv_trace_impl *x = t->impl;
    size_t rows = t->slices.n > t->counters.n ? t->slices.n : t->counters.n;
    size_t order = rows * sizeof(uint32_t), column = rows * sizeof(int64_t), carrier = 128;
    return order + (x->sort_bytes > column ? x->sort_bytes : column) +
           (x->carrier.n + t->points.n) * carrier + t->dict->n_tracks * sizeof *t->tracks;
}

static size_t needed_bytes(const struct sv_trace *t)
{
    return sv_trace_bytes(t) + finish_bytes(t) + sv_dict_bytes(t->dict);
}

static double megabytes(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

int sv_trace_no_memory(const struct sv_trace *t, struct sv_err *err)
{
    return sv_error(err, SV_ENOMEM,
                    "the system has no more memory for the trace (%.0f MB so far, %llu slices): "
                    "cut it first (stave cut --time FROM:TO) or use a machine with more",
                    megabytes(sv_trace_bytes(t)), (unsigned long long)t->slices.n);
}

static int check_memory(const struct sv_trace *t, struct sv_err *err)
{
    const struct sv_trace_impl *x = t->impl;
    size_t need = x->memory_limit ? needed_bytes(t) : 0;
    if (need > x->memory_limit)
        return sv_error(
            err, SV_ENOMEM,
            "the trace does not fit the memory limit: %.1f MB are needed for the %llu slices, %llu "
            "counter values and their arguments read so far, %.1f MB are allowed; raise "
            "--memory-limit or cut the trace first (stave cut --time FROM:TO)",
            megabytes(need), (unsigned long long)t->slices.n, (unsigned long long)t->counters.n,
            megabytes(x->memory_limit));
    if (t->slices.n > ROWS_MAX || t->counters.n > ROWS_MAX || t->points.n > ROWS_MAX)
        return sv_error(
            err, SV_ELIMIT,
            "more than %u slices or counter values: cut the trace first (stave cut --time FROM:TO)",
            ROWS_MAX);
    return x->args.failed ? sv_trace_no_memory(t, err) : 0;
}

/* Space for n more events of any kind, and a state for every track. */
static bool make_space(struct sv_trace *t, size_t n)
{
    struct sv_trace_impl *x = t->impl;
    size_t n_tracks = x->n_tracks ? x->n_tracks : t->dict->n_tracks;
    if (x->n_states < n_tracks) {
        size_t old = x->n_states;
        x->states = sv_grow(x->states, &x->n_states, n_tracks, sizeof *x->states);
        memset(x->states + old, 0, (x->n_states - old) * sizeof *x->states);
        for (size_t i = old; i < x->n_states; i++)
            x->states[i].edge_ns = x->states[i].row_ns = x->states[i].counter_ns = INT64_MIN;
    }
    return sv_table_reserve(&x->slices, t->slices.n + n);
}

/* ---- rows ---- */

/* A duration that a sum with its start can hold; where it must be cut for that, finish refuses the
 * trace. */
static int64_t clamp_dur(struct sv_trace_impl *x, const struct sv_event *e)
{
    int64_t end;
    if (e->dur_ns == SV_UNFINISHED)
        return SV_UNFINISHED;
    if (e->dur_ns < 0) {
        sv_oddity_note(&x->negative, e->ts_ns, e->track);
        return 0;
    }
    if (!__builtin_add_overflow(e->ts_ns, e->dur_ns, &end))
        return e->dur_ns;
    sv_oddity_note(&x->too_long, e->ts_ns, e->track);
    return INT64_MAX - e->ts_ns;
}

static inline void add_carrier(struct sv_carriers *c, const struct sv_arg *a, uint32_t row,
                               unsigned how)
{
    c->id[c->n] = a->u;
    c->row[c->n] = row;
    c->type[c->n] = a->type & 0xff;
    c->how[c->n++] = how & 0xff;
}

static inline bool is_flow(const struct sv_arg *a)
{
    return a->type >= SV_ARG_FLOW_BEGIN && a->type <= SV_ARG_FLOW_END;
}

static void add_carriers(struct sv_trace_impl *x, const struct sv_event *e, uint32_t row,
                         bool at_end)
{
    struct sv_carriers *c = &x->carrier;
    if (!sv_table_reserve(&x->carriers, c->n + e->n_args)) {
        x->args.failed = true;
        return;
    }
    for (size_t i = 0; i < e->n_args; i++)
        if (is_flow(&e->args[i]))
            add_carrier(c, &e->args[i], row, at_end ? SV_BY_END : SV_BY_BEGIN);
}

static inline uint32_t add_args(struct sv_trace_impl *x, const struct sv_event *e, uint32_t row,
                                bool at_end)
{
    unsigned flags = 0;
    if (e->n_args == 0)
        return 0;
    uint32_t list = sv_lists_add(&x->args, e->args, e->n_args, &flags);
    if (flags & SV_LIST_HAS_FLOW)
        add_carriers(x, e, row, at_end);
    return list;
}

static inline void see_disorder(struct sv_trace_impl *x, uint32_t rows, uint32_t row_bytes)
{
    size_t bytes = (size_t)rows * row_bytes;
    if (bytes > x->sort_bytes)
        x->sort_bytes = bytes;
}

static inline uint32_t add_row(struct sv_trace *t, const struct sv_event *e, uint8_t kind,
                               int64_t dur_ns, uint16_t depth)
{
    struct sv_slices *s = &t->slices;
    struct sv_track_state *k = &t->impl->states[e->track];
    uint32_t row = (uint32_t)s->n++;
    s->ts_ns[row] = e->ts_ns;
    s->dur_ns[row] = dur_ns;
    s->name[row] = e->name;
    s->cat[row] = e->cat;
    s->track[row] = e->track;
    s->kind[row] = kind;
    s->flags[row] = e->flags;
    s->depth[row] = depth;
    s->args[row] = add_args(t->impl, e, row, kind == SV_END);
    k->n_rows++;
    k->last_row = row;
    if (k->flags & (SV_T_UNSORTED | SV_T_RAW))
        see_disorder(t->impl, k->n_rows,
                     k->flags & SV_T_RAW ? SV_SORT_RAW_BYTES : SV_SORT_ROW_BYTES);
    return row;
}

/* A track with edges and whole slices is treated like one of slices only, and those have an order
 * of their own. */
static inline void see_mix(struct sv_track_state *k, unsigned kind)
{
    k->flags |= kind & 0xff;
    if ((k->flags & (SV_T_EDGES | SV_T_SLICES)) == (SV_T_EDGES | SV_T_SLICES))
        k->flags |= SV_T_UNSORTED;
}

/* ---- edges ---- */

/* Notes the time of an edge or instant; true when the track's edges must be kept as rows. */
static inline bool edge_is_raw(struct sv_track_state *k, int64_t ts_ns)
{
    if (__builtin_expect(ts_ns < k->edge_ns, 0))
        k->flags |= SV_T_RAW;
    k->edge_ns = ts_ns;
    return k->flags & SV_T_RAW;
}

/* How deep a row lies below the open slices. */
static inline uint16_t open_depth(struct sv_track_state *k)
{
    if (__builtin_expect(k->n_open < SV_WHOLE, 1))
        return (uint16_t)k->n_open;
    k->flags |= SV_T_DEEP | SV_T_UNSORTED;
    return SV_WHOLE - 1;
}

static inline void push_open(struct sv_trace_impl *x, struct sv_track_state *k, uint32_t row)
{
    uint32_t node = x->free_open;
    if (node) {
        x->free_open = x->open[node].below;
    } else {
        x->open = sv_grow(x->open, &x->cap_open, x->n_open + 1, sizeof *x->open);
        node = (uint32_t)x->n_open++;
    }
    x->open[node] = (struct sv_open_slice){.row = row, .below = k->open};
    k->open = node;
    k->n_open++;
}

static inline uint32_t pop_open(struct sv_trace_impl *x, struct sv_track_state *k)
{
    uint32_t node = k->open;
    struct sv_open_slice *o = &x->open[node];
    k->open = o->below;
    k->n_open--;
    o->below = x->free_open;
    x->free_open = node;
    return o->row;
}

static inline void write_begin(struct sv_trace *t, const struct sv_event *e)
{
    struct sv_track_state *k = &t->impl->states[e->track];
    see_mix(k, SV_T_EDGES);
    if (edge_is_raw(k, e->ts_ns)) {
        add_row(t, e, SV_BEGIN, SV_UNFINISHED, 0);
        return;
    }
    push_open(t->impl, k, add_row(t, e, SV_SLICE, SV_UNFINISHED, open_depth(k)));
}

static inline void end_row(struct sv_trace *t, uint32_t row, const struct sv_event *e)
{
    struct sv_slices *s = &t->slices;
    s->dur_ns[row] = sv_trace_span(t->impl, s->ts_ns[row], e->ts_ns, e->track);
    if (s->name[row] == 0)
        s->name[row] = e->name;
    if (s->cat[row] == 0)
        s->cat[row] = e->cat;
}

static inline void write_end(struct sv_trace *t, const struct sv_event *e)
{
    struct sv_trace_impl *x = t->impl;
    struct sv_track_state *k = &x->states[e->track];
    see_mix(k, SV_T_EDGES);
    if (edge_is_raw(k, e->ts_ns) || k->open == 0) {
        k->flags |= SV_T_ENDS;
        add_row(t, e, SV_END, SV_UNFINISHED, 0);
        return;
    }
    uint32_t row = pop_open(x, k);
    end_row(t, row, e);
    if (e->n_args)
        t->slices.args[row] =
            sv_lists_join(&x->args, t->slices.args[row], add_args(x, e, row, true));
}

/* ---- the other kinds ---- */

/* Notes the place of a slice or instant in the order of its track's rows. */
static inline void see_row(struct sv_track_state *k, int64_t ts_ns, int64_t dur_ns)
{
    dur_ns = sv_sort_dur(dur_ns);
    if (ts_ns < k->row_ns || (ts_ns == k->row_ns && dur_ns > k->row_dur_ns))
        k->flags |= SV_T_UNSORTED;
    k->row_ns = ts_ns;
    k->row_dur_ns = dur_ns;
}

static inline void write_slice(struct sv_trace *t, const struct sv_event *e)
{
    struct sv_track_state *k = &t->impl->states[e->track];
    int64_t dur = clamp_dur(t->impl, e);
    see_mix(k, SV_T_SLICES);
    see_row(k, e->ts_ns, dur);
    add_row(t, e, SV_SLICE, dur, SV_WHOLE);
}

static inline void write_instant(struct sv_trace *t, const struct sv_event *e)
{
    struct sv_track_state *k = &t->impl->states[e->track];
    see_row(k, e->ts_ns, 0);
    edge_is_raw(k, e->ts_ns);
    add_row(t, e, SV_INSTANT, 0, open_depth(k));
}

/* Integers that a double cannot hold get a column of their own, which most traces never need. */
static bool keep_exact(struct sv_trace *t, uint64_t row, int64_t exact)
{
    struct sv_trace_impl *x = t->impl;
    struct sv_counters *c = &t->counters;
    bool is_new = !c->exact;
    if (is_new && !sv_table_add_column(&x->counters, row + 1, NULL))
        return false;
    int64_t *column = c->exact;
    assert(column);
    for (uint64_t i = 0; is_new && i < row; i++)
        column[i] = c->type[i] == SV_ARG_DOUBLE ? 0 : (int64_t)c->value[i];
    column[row] = exact;
    return true;
}

static bool add_counter(struct sv_trace *t, const struct sv_event *e, const struct sv_arg *a)
{
    struct sv_counters *c = &t->counters;
    struct sv_track_state *k = &t->impl->states[e->track];
    if (!sv_table_reserve(&t->impl->counters, c->n + 1))
        return false;
    uint64_t row = c->n;
    double value = a->type == SV_ARG_DOUBLE ? a->d
                   : a->type == SV_ARG_UINT ? (double)a->u
                                            : (double)a->i;
    c->ts_ns[row] = e->ts_ns;
    c->value[row] = value;
    c->track[row] = e->track;
    c->type[row] = a->type == SV_ARG_BOOL ? SV_ARG_INT : a->type & 0xff;
    bool is_small = value > -0x1p53 && value < 0x1p53;
    if (a->type != SV_ARG_DOUBLE && (c->exact || !is_small) && !keep_exact(t, row, a->i))
        return false;
    c->n++;
    if (e->ts_ns < k->counter_ns)
        k->flags |= SV_T_COUNTERS_UNSORTED;
    k->counter_ns = e->ts_ns;
    k->n_counters++;
    if (k->flags & SV_T_COUNTERS_UNSORTED)
        see_disorder(t->impl, k->n_counters, SV_SORT_ROW_BYTES);
    return true;
}

static bool write_counter(struct sv_trace *t, const struct sv_event *e)
{
    unsigned type = e->n_args ? e->args[0].type : 0;
    bool has_value = type == SV_ARG_INT || type == SV_ARG_UINT || type == SV_ARG_DOUBLE ||
                     type == SV_ARG_BOOL;
    t->impl->dropped_counter_args += e->n_args - (size_t)has_value;
    if (!has_value) {
        sv_oddity_note(&t->impl->valueless, e->ts_ns, e->track);
        return true;
    }
    return add_counter(t, e, &e->args[0]);
}

/* Profilers write the points of a slice right after it. Then the slice is known, unless others turn
 * out to begin at the same time: sv_trace_doubt() looks again. Done when the point has become an
 * argument of its slice. */
static inline bool carry_point(struct sv_trace *t, const struct sv_event *e, const struct sv_arg *a)
{
    struct sv_trace_impl *x = t->impl;
    const struct sv_track_state *k = &x->states[e->track];
    uint32_t row = k->last_row;
    if (k->n_rows == 0 || t->slices.ts_ns[row] != e->ts_ns || t->slices.kind[row] != SV_SLICE ||
        !sv_table_reserve(&x->carriers, x->carrier.n + 1))
        return false;
    uint32_t list = sv_lists_add_flow(&x->args, t->slices.args[row], a->type, a->u);
    if (list == 0)
        return false;
    t->slices.args[row] = list;
    add_carrier(&x->carrier, a, row, e->flags & SV_BIND_NEXT ? SV_BY_POINT_NEXT : SV_BY_POINT);
    return true;
}

bool sv_trace_add_point(struct sv_trace *t, const struct sv_event *e, const struct sv_arg *a)
{
    struct sv_flow_points *p = &t->points;
    if (!sv_table_reserve(&t->impl->points, p->n + 1))
        return false;
    p->ts_ns[p->n] = e->ts_ns;
    p->id[p->n] = a->u;
    p->track[p->n] = e->track;
    p->row[p->n] = SV_NO_ROW;
    p->type[p->n] = a->type & 0xff;
    p->flags[p->n++] = e->flags & SV_BIND_NEXT;
    return true;
}

static bool write_flow(struct sv_trace *t, const struct sv_event *e)
{
    for (size_t i = 0; i < e->n_args; i++) {
        const struct sv_arg *a = &e->args[i];
        if (is_flow(a) && !carry_point(t, e, a) && !sv_trace_add_point(t, e, a))
            return false;
    }
    return true;
}

static bool write_loss(struct sv_trace *t, const struct sv_event *e)
{
    struct sv_losses *l = &t->losses;
    if (!sv_table_reserve(&t->impl->losses, l->n + 1))
        return false;
    int64_t dur = e->dur_ns < 0 ? 0 : clamp_dur(t->impl, e);
    l->ts_ns[l->n] = e->ts_ns;
    l->dur_ns[l->n] = dur;
    l->count[l->n] = e->n_args ? e->args[0].u : 0;
    l->cause[l->n] = e->name;
    l->track[l->n++] = e->track;
    return true;
}

static inline bool write_event(struct sv_trace *t, const struct sv_event *e)
{
    switch (e->kind) {
    case SV_BEGIN: write_begin(t, e); return true;
    case SV_END: write_end(t, e); return true;
    case SV_SLICE: write_slice(t, e); return true;
    case SV_INSTANT: write_instant(t, e); return true;
    case SV_COUNTER: return write_counter(t, e);
    case SV_FLOW: return write_flow(t, e);
    default: assert(e->kind == SV_LOSS); return write_loss(t, e);
    }
}

/* ---- the sink ---- */

static struct sv_trace *trace_of(struct sv_sink *s)
{
    return ((struct sv_trace_impl *)s)->trace;
}

static int write_events(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    struct sv_trace *t = trace_of(s);
    assert(!t->impl->finished && n <= SV_BATCH);
    int code = check_memory(t, err);
    if (code < 0)
        return code;
    if (!make_space(t, n))
        return sv_trace_no_memory(t, err);
    for (size_t i = 0; i < n; i++) {
        assert(events[i].track < t->impl->n_states);
        if (!write_event(t, &events[i]))
            return sv_trace_no_memory(t, err);
    }
    return 0;
}

static int close_sink(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)failed;
    return sv_trace_finish(trace_of(s), err);
}

struct sv_sink *sv_trace_sink(struct sv_trace *t)
{
    return &t->impl->sink;
}

/* ---- finish ---- */

static void report_findings(const struct sv_trace *t)
{
    const struct sv_trace_impl *x = t->impl;
    const struct {
        const struct sv_oddity *oddity;
        enum sv_severity severity;
        const char *what;
    } rows[] = {
        {&x->unmatched, SV_DAMAGE, "end without begin"},
        {&x->unfinished, SV_NOTE, "begin without end"},
        {&x->negative, SV_DAMAGE, "negative duration"},
        {&x->unbound, SV_DAMAGE, "flow point outside of any slice"},
        {&x->valueless, SV_DAMAGE, "counter event without a value"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        sv_oddity_report(rows[i].oddity, x->report, t->dict, rows[i].severity, rows[i].what);
    if (x->dropped_counter_args)
        sv_report_add(x->report, SV_SKIPPED, "argument of a counter event other than its value",
                      x->dropped_counter_args, SV_NO_POS, NULL);
    if (x->args.crowded)
        sv_report_add(x->report, SV_SKIPPED, "arguments of an end beyond the limit per slice",
                      x->args.crowded, SV_NO_POS, NULL);
}

/* Waits with a stack were instants with their length as an argument; here all of them are slices.
 * Not earlier: while events come, another thread may add strings to the dictionary. */
static int lengthen_waits(struct sv_trace *t, struct sv_err *err)
{
    struct sv_trace_impl *x = t->impl;
    struct sv_slices *s = &t->slices;
    sv_str cat = sv_dict_find_str(t->dict, SV_CAT_OFFCPU_SAMPLE, sizeof SV_CAT_OFFCPU_SAMPLE - 1),
           dur = sv_dict_find_str(t->dict, SV_WAIT_DUR, sizeof SV_WAIT_DUR - 1);
    (void)err;
    for (uint64_t row = 0; cat && dur && row < s->n; row++) {
        struct sv_event e = {.ts_ns = s->ts_ns[row], .track = s->track[row]};
        struct sv_arg a;
        if (s->cat[row] != cat || s->kind[row] != SV_INSTANT ||
            !sv_trace_arg(t, s->args[row], dur, &a) || a.type != SV_ARG_INT || a.i <= 0)
            continue;
        struct sv_track_state *k = &x->states[e.track];
        e.dur_ns = a.i;
        s->kind[row] = SV_SLICE;
        s->flags[row] = 0;
        s->dur_ns[row] = clamp_dur(x, &e);
        s->depth[row] = SV_WHOLE;
        k->flags |= SV_T_SLICES | SV_T_UNSORTED;
        see_disorder(x, k->n_rows, SV_SORT_ROW_BYTES);
    }
    return 0;
}

static int run_finish(struct sv_trace *t, struct sv_err *err)
{
    static int (*const steps[])(struct sv_trace *, struct sv_err *) = {
        lengthen_waits, sv_trace_sort, sv_trace_doubt, sv_trace_sort_points,
        sv_trace_nest,  sv_trace_bind, sv_trace_chain};
    for (size_t i = 0; i < COUNT(steps); i++) {
        int code = steps[i](t, err);
        if (code < 0)
            return code;
        if (t->impl->args.failed)
            return sv_trace_no_memory(t, err);
    }
    return 0;
}

int sv_trace_finish(struct sv_trace *t, struct sv_err *err)
{
    struct sv_trace_impl *x = t->impl;
    assert(!x->finished);
    x->finished = true;
    if (!make_space(t, 0)) /* tracks without events count too */
        return sv_trace_no_memory(t, err);
    int code = run_finish(t, err);
    if (code >= 0)
        code = sv_oddity_refuse(&x->too_long, t->dict, SV_TOO_LONG, err);
    x->workers = NULL;
    sv_lists_seal(&x->args);
    free_loading(x);
    t->unmatched_ends = x->unmatched.count;
    t->unfinished = x->unfinished.count;
    t->unbound_flow_points = x->unbound.count;
    if (code == 0)
        report_findings(t);
    return code;
}

/* ---- small questions ---- */

const struct sv_arg *sv_trace_args(const struct sv_trace *t, uint32_t handle,
                                   struct sv_batch *scratch, size_t *n)
{
    const struct sv_lists *p = &t->impl->args;
    *n = 0;
    if (handle == 0)
        return NULL;
    size_t size = sv_lists_count(p, handle) * sizeof(struct sv_arg);
    struct sv_arg *args = sv_arena_get(&scratch->arena, size, _Alignof(struct sv_arg));
    *n = sv_lists_decode(p, handle, args);
    return *n ? args : NULL;
}

bool sv_trace_arg(const struct sv_trace *t, uint32_t handle, sv_str key, struct sv_arg *out)
{
    return key && sv_lists_find(&t->impl->args, handle, key, 0, out);
}

bool sv_trace_arg_of_type(const struct sv_trace *t, uint32_t handle, unsigned type,
                          struct sv_arg *out)
{
    return sv_lists_find(&t->impl->args, handle, 0, type, out);
}

enum sv_args_hit sv_trace_args_search(const struct sv_trace *t, uint32_t handle,
                                      struct sv_args_search *s)
{
    const struct sv_lists *p = &t->impl->args;
    s->texts = s->texts ? s->texts : sv_alloc(p->n_texts + 1);
    s->shapes = s->shapes ? s->shapes : sv_alloc(p->n_shapes + 1);
    return handle ? sv_lists_search(p, handle, s) : SV_ARGS_NO_HIT;
}

struct sv_arg sv_trace_counter(const struct sv_trace *t, uint64_t row)
{
    const struct sv_counters *c = &t->counters;
    struct sv_arg a = {.type = c->type[row]};
    if (a.type == SV_ARG_DOUBLE)
        a.d = c->value[row];
    else
        a.i = c->exact ? c->exact[row] : (int64_t)c->value[row];
    return a;
}
