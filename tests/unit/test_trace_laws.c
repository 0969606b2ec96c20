/* The store against slow and simple answers, on events from a seed: what it holds equals what the
 * stages make of the same events, leaving and entering it again changes nothing, and every lookup
 * gives what looking at every row gives. */
#include "core/stream/stages.h"
#include "store/trace.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <stdlib.h>
#include <string.h>

enum { TURNS = TEST_HAS_SANITIZER ? 80 : 240 };

#define EVERYTHING (SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS)

/* Each turn another combination of shapes, the last one of everything. */
static struct gen_options options_of(uint64_t turn)
{
    static const unsigned shapes[] = {
        SV_HAS_EDGES,
        SV_HAS_NESTED,
        SV_HAS_EDGES | SV_HAS_NESTED,
        SV_HAS_SLICES,
        SV_HAS_EDGES | SV_IN_NO_ORDER,
        SV_HAS_SLICES | SV_IN_NO_ORDER,
        SV_HAS_EDGES | SV_HAS_NESTED | SV_HAS_FLOW_POINTS,
        EVERYTHING,
    };
    return (struct gen_options){.seed = turn,
                                .n = 40 + turn % 5 * 150,
                                .shape = shapes[turn % TEST_COUNT(shapes)],
                                .extras = GEN_ALL | (turn % 3 ? 0 : GEN_UNMATCHED),
                                .n_tracks = 1 + (unsigned)(turn % 4)};
}

static struct sv_trace *store(struct gen *g)
{
    struct sv_err err = {0};
    struct sv_trace *t = sv_trace_new(g->dict, NULL, 0);
    CHECK_INT_EQ(gen_push(g, sv_trace_sink(t), &err), 0);
    return t;
}

static void check_equal(const struct sv_trace *a, const struct sv_trace *b)
{
    struct sv_buf x, y;
    sv_buf_init(&x, 1 << 26);
    sv_buf_init(&y, 1 << 26);
    CHECK_STR_EQ(trace_text_dump(a, &x), trace_text_dump(b, &y));
    sv_buf_fini(&x);
    sv_buf_fini(&y);
    REQUIRE(a->slices.n == b->slices.n && a->n_tracks == b->n_tracks);
    size_t n = a->slices.n;
    CHECK(n == 0 || memcmp(a->slices.cat, b->slices.cat, n * sizeof *a->slices.cat) == 0);
    CHECK(n == 0 || memcmp(a->slices.parent, b->slices.parent, n * sizeof *a->slices.parent) == 0);
    CHECK(n == 0 || memcmp(a->slices.flags, b->slices.flags, n) == 0);
    CHECK(memcmp(a->tracks, b->tracks, a->n_tracks * sizeof *a->tracks) == 0);
    CHECK_INT_EQ(a->first_ns, b->first_ns);
    CHECK_INT_EQ(a->last_ns, b->last_ns);
    CHECK_UINT_EQ(a->unfinished, b->unfinished);
    CHECK_UINT_EQ(a->unbound_flow_points, b->unbound_flow_points);
}

TEST(storing_what_the_source_gives_makes_the_same_trace)
{
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        struct gen g;
        struct gen_options o = options_of(turn);
        struct sv_err err = {0};
        CONTEXT("turn %llu", (unsigned long long)turn);
        gen_make(&g, &o);
        struct sv_trace *t = store(&g), *again = sv_trace_new(g.dict, NULL, 0);
        CHECK_INT_EQ(sv_pump(sv_trace_source(t, NULL), sv_trace_sink(again), NULL, &err), 0);
        check_equal(t, again);
        sv_trace_free(t);
        sv_trace_free(again);
        gen_fini(&g);
    }
}

/* Everything of a stream as whole slices, in any order. */
static const char *as_slices(struct sv_source *source, struct sv_dict *dict, struct sv_buf *text)
{
    struct collect c = {0};
    struct sv_err err = {0};
    unsigned takes = SV_HAS_SLICES | SV_HAS_FLOW_POINTS;
    CHECK_INT_EQ(sv_pump(source, collect_sink(&c, takes), NULL, &err), 0);
    dump_set(text, dict, c.events, c.n);
    collect_fini(&c);
    return sv_buf_cstr(text);
}

TEST(it_holds_what_the_stages_make_of_the_same_events)
{
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        struct gen g;
        struct gen_options o = options_of(turn);
        struct sv_buf ours, theirs;
        o.shape &= ~(unsigned)SV_HAS_FLOW_POINTS; /* those become arguments */
        CONTEXT("turn %llu", (unsigned long long)turn);
        gen_make(&g, &o);
        sv_buf_init(&ours, 1 << 26);
        sv_buf_init(&theirs, 1 << 26);
        struct sv_trace *t = store(&g);
        as_slices(gen_source(&g, o.shape, NULL), g.dict, &theirs);
        CHECK_STR_EQ(as_slices(sv_trace_source(t, NULL), g.dict, &ours), sv_buf_cstr(&theirs));
        sv_trace_free(t);
        sv_buf_fini(&ours);
        sv_buf_fini(&theirs);
        gen_fini(&g);
    }
}

/* Of equal time: slices, counters, losses, flow points, which may bind to what came before. */
static int rank_of(const struct sv_event *e)
{
    return e->kind == SV_COUNTER ? 1 : e->kind == SV_LOSS ? 2 : e->kind == SV_FLOW ? 3 : 0;
}

TEST(what_the_source_gives_is_in_time_order)
{
    for (uint64_t turn = 0; turn < 80; turn++) {
        struct gen g;
        struct gen_options o = options_of(turn);
        struct collect c = {0};
        struct sv_err err = {0};
        CONTEXT("turn %llu", (unsigned long long)turn);
        gen_make(&g, &o);
        struct sv_trace *t = store(&g);
        struct sv_source *s = sv_trace_source(t, NULL);
        CHECK(!(s->gives & SV_IN_NO_ORDER));
        CHECK_INT_EQ(sv_pump(s, collect_sink(&c, EVERYTHING), NULL, &err), 0);
        for (size_t i = 1; i < c.n; i++)
            REQUIRE(c.events[i - 1].ts_ns < c.events[i].ts_ns ||
                    (c.events[i - 1].ts_ns == c.events[i].ts_ns &&
                     rank_of(&c.events[i - 1]) <= rank_of(&c.events[i])));
        collect_fini(&c);
        sv_trace_free(t);
        gen_fini(&g);
    }
}

/* ---- lookups ---- */

static int64_t end_of(const struct sv_trace *t, uint32_t row)
{
    int64_t dur = t->slices.dur_ns[row];
    return dur == SV_UNFINISHED ? INT64_MAX : t->slices.ts_ns[row] + dur;
}

static void check_parents(const struct sv_trace *t, const struct sv_trace_track *k)
{
    const struct sv_slices *s = &t->slices;
    for (uint32_t row = k->first; row < k->end; row++) {
        uint32_t parent = SV_NO_ROW;
        for (uint32_t p = k->first; p < row; p++)
            if (s->kind[p] == SV_SLICE && end_of(t, p) >= end_of(t, row) &&
                end_of(t, p) > s->ts_ns[row])
                parent = p;
        REQUIRE(s->parent[row] == parent);
        REQUIRE(s->depth[row] == (parent == SV_NO_ROW ? 0 : s->depth[parent] + 1));
    }
}

TEST(parents_are_the_nearest_that_enclose)
{
    for (uint64_t turn = 0; turn < 80; turn++) {
        struct gen g;
        struct gen_options o = options_of(turn);
        CONTEXT("turn %llu", (unsigned long long)turn);
        gen_make(&g, &o);
        struct sv_trace *t = store(&g);
        for (uint32_t k = 0; k < t->n_tracks; k++)
            if (!t->tracks[k].has_edges)
                check_parents(t, &t->tracks[k]);
        sv_trace_free(t);
        gen_fini(&g);
    }
}

static bool touches(const struct sv_trace *t, uint32_t row, int64_t from, int64_t to)
{
    int64_t ts = t->slices.ts_ns[row];
    return ts < to && (ts >= from || (t->slices.kind[row] == SV_SLICE && end_of(t, row) > from));
}

static void check_window(const struct sv_trace *t, sv_track track, int64_t from, int64_t to)
{
    struct sv_window w = sv_trace_window(t, track, from, to);
    uint32_t got;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++) {
        if (from >= to || !touches(t, row, from, to))
            continue;
        REQUIRE(sv_window_next(&w, &got));
        REQUIRE(got == row);
    }
    REQUIRE(!sv_window_next(&w, &got));
}

static void check_slice_at(const struct sv_trace *t, sv_track track, int64_t ts)
{
    uint32_t found = SV_NO_ROW;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++)
        if (t->slices.kind[row] == SV_SLICE && t->slices.ts_ns[row] <= ts &&
            (end_of(t, row) > ts || t->slices.ts_ns[row] == ts))
            found = row;
    /* One that begins just there goes before one that is open. */
    REQUIRE(sv_trace_slice_at(t, track, ts) == found);
}

/* What is passed over is shorter. */
static uint64_t check_long_ones(const struct sv_trace *t, sv_track track, int64_t dur)
{
    uint64_t row = t->tracks[track].first, end = t->tracks[track].end, passed = 0;
    while (row < end) {
        uint64_t next = sv_trace_may_last(t, row, end, dur);
        REQUIRE(next >= row && next <= end);
        passed += next - row;
        for (; row < next; row++)
            REQUIRE(t->slices.dur_ns[row] < dur);
        row++;
    }
    return passed;
}

static void check_lookups(const struct sv_trace *t, sv_track track, struct rng *r, unsigned n)
{
    uint64_t span = (uint64_t)(t->last_ns - t->first_ns) + 3;
    for (unsigned i = 0; i < n; i++) {
        int64_t from = t->first_ns - 1 + (int64_t)rng_below(r, span);
        int64_t to = from - 1 + (int64_t)rng_below(r, i % 2 ? 30 : span);
        check_window(t, track, from, to);
        check_slice_at(t, track, from);
        check_long_ones(t, track, 1 + (int64_t)rng_below(r, i % 2 ? 30 : span));
    }
    const struct sv_trace_track *k = &t->tracks[track];
    bool has_open = false;
    for (uint32_t row = k->first; row < k->end; row++)
        has_open |= t->slices.dur_ns[row] == SV_UNFINISHED;
    if (!has_open && k->end - k->first >= 2 * SV_TRACE_BLOCK_ROWS)
        REQUIRE(check_long_ones(t, track, INT64_MAX) > 0);
}

TEST(windows_and_slices_at_a_time_are_found)
{
    for (uint64_t turn = 0; turn < 40; turn++) {
        struct gen g;
        struct gen_options o = options_of(turn);
        CONTEXT("turn %llu", (unsigned long long)turn);
        o.n = turn < 38 ? 300 : 20000; /* the last ones with several levels of the index */
        gen_make(&g, &o);
        struct sv_trace *t = store(&g);
        for (uint32_t k = 0; k < t->n_tracks; k++)
            check_lookups(t, k, &g.rng, 60);
        struct sv_window none = sv_trace_window(t, t->n_tracks + 5, 0, 100);
        CHECK(!sv_window_next(&none, &(uint32_t){0}));
        sv_trace_free(t);
        gen_fini(&g);
    }
}
