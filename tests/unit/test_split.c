/* Split and lanes: small pictures by hand, then the laws on random slices. */
#include "stage_fixture.h"

typedef struct sv_sink *stage_new(struct sv_dict *, struct sv_report *, struct sv_sink *);

/* As parse_events() reads it; tracks of lanes are written A1, A2… */
static const char *format(struct fixture *f, struct sv_buf *b)
{
    sv_buf_clear(b);
    for (size_t i = 0; i < f->out.n; i++) {
        const struct sv_event *e = &f->out.events[i];
        const struct sv_track_info *t = &f->dict->tracks[e->track];
        sv_buf_printf(b, "%s%c %s", i ? "; " : "", "?BESI?F"[e->kind],
                      sv_dict_text(f->dict, t->name).bytes);
        if (t->kind == SV_TRACK_LANE)
            sv_buf_printf(b, "%d", (int)t->order);
        sv_buf_printf(b, " %d", (int)e->ts_ns);
        if (e->kind == SV_SLICE)
            sv_buf_printf(b, " %d", (int)e->dur_ns);
        if (e->name)
            sv_buf_printf(b, " %s", sv_dict_text(f->dict, e->name).bytes);
        if (e->flags)
            sv_buf_printf(b, "!");
    }
    return sv_buf_cstr(b);
}

struct row {
    const char *in, *out;
    unsigned damage;
};

static void check_rows(stage_new *stage, const struct row *rows, size_t n)
{
    struct sv_buf text;
    sv_buf_init(&text, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        CONTEXT("row %zu: %s", i, rows[i].in);
        struct fixture f;
        struct sv_event events[32];
        struct sv_err err = {0};
        setup_stage(&f);
        size_t count = parse_events(&f, rows[i].in, events);
        CHECK_INT_EQ(push_events(events, count,
                                 stage(f.dict, &f.report, collect_sink(&f.out, SV_HAS_ANYTHING)),
                                 &err),
                     0);
        CHECK_STR_EQ(format(&f, &text), rows[i].out);
        CHECK_UINT_EQ(sv_report_count(&f.report, SV_DAMAGE), rows[i].damage);
        teardown(&f);
    }
    sv_buf_fini(&text);
}

TEST(slices_to_edges)
{
    static const struct row rows[] = {
        {"S A 1 5 x", "B A 1 x; E A 6", 0},
        {"S A 1 9 x; S A 2 3 y", "B A 1 x; B A 2 y; E A 5; E A 10", 0},
        /* side by side, then the same end for parent and child */
        {"S A 1 4 x; S A 5 4 y", "B A 1 x; E A 5; B A 5 y; E A 9", 0},
        {"S A 1 9 x; S A 5 5 y", "B A 1 x; B A 5 y; E A 10; E A 10", 0},
        /* empty slices: alone, twice, inside, at the end of another */
        {"S A 3 0 x", "B A 3 x; E A 3", 0},
        {"S A 3 0 x; S A 3 0 y", "B A 3 x; E A 3; B A 3 y; E A 3", 0},
        {"S A 3 4 x; S A 3 0 y; S A 3 0 z", "B A 3 x; B A 3 y; E A 3; B A 3 z; E A 3; E A 7", 0},
        {"S A 1 4 x; S A 5 0 y", "B A 1 x; E A 5; B A 5 y; E A 5", 0},
        /* overlap goes to lanes and comes back when the row is free */
        {"S A 1 5 x; S A 3 5 y; S A 7 5 z", "B A 1 x; B A1 3 y; E A 6; B A 7 z; E A1 8; E A 12", 0},
        {"S A 1 9 x; S A 2 9 y; S A 3 9 z; S A 4 2 w",
         "B A 1 x; B A1 2 y; B A2 3 z; B A 4 w; E A 6; E A 10; E A1 11; E A2 12", 0},
        /* unfinished ones stay open and hold what comes later */
        {"S A 1 - x; S A 2 3 y", "B A 1 x; B A 2 y; E A 5", 0},
        {"S A 1 5 x; S A 2 - y; S A 3 1 z", "B A 1 x; B A1 2 y; B A 3 z; E A 4; E A 6", 0},
        /* tracks do not disturb each other */
        {"S A 1 5 x; S B 2 9 y; I A 3 i", "B A 1 x; B B 2 y; I A 3 i; E A 6; E B 11", 0},
        {"S A 1 5 x; S A 2 5 y; I A 3 i", "B A 1 x; B A1 2 y; I A 3 i; E A 6; E A1 7", 0},
    };
    check_rows(sv_split_new, rows, TEST_COUNT(rows));
}

TEST(edges_pass_and_nest)
{
    static const struct row rows[] = {
        {"B A 1 x; S A 2 2 y; E A 5", "B A 1 x; B A 2 y; E A 4; E A 5", 0},
        {"S A 1 9 x; B A 2 y; E A 5", "B A 1 x; B A 2 y; E A 5; E A 10", 0},
        {"B A 1 x; S A 2 3 y; E A 5", "B A 1 x; B A 2 y; E A 5; E A 5", 0},
        {"S A 1 4 x; B A 2 y; E A 5", "B A 1 x; B A 2 y; E A 5; E A 5", 0},
        /* crossing: the inner one is closed early */
        {"B A 1 x; S A 2 9 y; E A 5", "B A 1 x; B A 2 y; E A 5; E A 5", 1},
        {"S A 1 4 x; B A 2 y; I A 6 i; E A 9", "B A 1 x; B A 2 y; E A 5; E A 5; I A 6 i", 1},
        {"B A 0 w; S A 1 4 x; B A 2 y; B A 6 z; E A 7; E A 8; E A 9",
         "B A 0 w; B A 1 x; B A 2 y; E A 5; E A 5; B A 6 z; E A 7; E A 9", 1},
        {"E A 1; S A 2 2 x; E A 3", "B A 2 x; E A 4", 2},
    };
    check_rows(sv_split_new, rows, TEST_COUNT(rows));
}

TEST(flow_points_follow_their_slice)
{
    static const struct row rows[] = {
        {"F A 1 f", "F A 1 f", 0},
        {"S A 1 5 x; F A 3 f", "B A 1 x; F A 3 f; E A 6", 0},
        {"S A 1 5 x; F A 6 f", "B A 1 x; F A 6 f; E A 6", 0}, /* the end still belongs to it */
        {"S A 1 5 x; S A 3 5 y; F A 3 f; F A 4 g; F A 7 h",
         "B A 1 x; B A1 3 y; F A1 3 f; F A1 4 g; E A 6; F A1 7 h; E A1 8", 0},
        {"S A 1 9 x; S A 2 9 y; S A 3 1 z; F A 3 f; F A 6 g",
         "B A 1 x; B A1 2 y; B A 3 z; F A 3 f; E A 4; F A1 6 g; E A 10; E A1 11", 0},
        /* binding to the next slice: at its time, on its lane */
        {"N A 1 f; S A 2 2 x", "B A 2 x; F A 2 f; E A 4", 0},
        {"S A 1 5 x; N A 2 f; N A 2 g; S B 3 1 w; S A 4 5 y",
         "B A 1 x; B B 3 w; B A1 4 y; F A1 4 f; F A1 4 g; E B 4; E A 6; E A1 9", 0},
        {"S A 1 5 x; N A 1 f", "B A 1 x; F A 1 f; E A 6", 0},
        {"S A 1 5 x; N A 2 f", "B A 1 x; E A 6; F A 6 f!", 0},
        {"N A 1 f; B A 2 x; E A 3", "B A 2 x; F A 2 f; E A 3", 0},
    };
    check_rows(sv_split_new, rows, TEST_COUNT(rows));
}

TEST(lanes_keep_slices_whole)
{
    static const struct row rows[] = {
        {"S A 1 5 x; S A 3 5 y; S A 7 5 z; F A 8 f", "S A 1 5 x; S A1 3 5 y; S A 7 5 z; F A 8 f",
         0},
        {"S A 1 5 x; S A 3 - y; S A 4 1 z", "S A 1 5 x; S A1 3 -1 y; S A 4 1 z", 0},
        {"B A 1 x; S A 2 9 y; E A 5; S A 6 9 z", "B A 1 x; S A 2 9 y; E A 5; S A 6 9 z", 1},
        {"S A 1 4 x; B A 2 y; I A 6 i; E A 9", "S A 1 4 x; B A 2 y; I A 6 i; E A 9", 1},
    };
    check_rows(sv_lanes_new, rows, TEST_COUNT(rows));
}

TEST(lanes_are_children_named_like_their_track)
{
    struct fixture f;
    struct sv_event events[4];
    setup_stage(&f);
    f.dict->tracks[f.a].space = 3;
    size_t n = parse_events(&f, "S A 1 5 x; S A 2 5 y; S A 3 5 z", events);
    struct sv_sink *s = sv_split_new(f.dict, NULL, collect_sink(&f.out, SV_HAS_ANYTHING));
    CHECK_INT_EQ(s->write(s, events, 2, NULL), 0);
    /* The track learns its name only now. */
    f.dict->tracks[f.a].name = sv_dict_cstr(f.dict, "late");
    sv_dict_touch(f.dict, f.a);
    CHECK_INT_EQ(s->write(s, events + 2, n - 2, NULL), 0);
    CHECK_INT_EQ(s->close(s, false, NULL), 0);
    for (uint32_t lane = 1; lane <= 2; lane++) {
        CONTEXT("lane %u", lane);
        uint64_t uuid =
            sv_uuid_child(f.dict->tracks[f.a].uuid, SV_TRACK_LANE, lane == 1 ? "1" : "2", 1);
        sv_track t = sv_dict_find_track(f.dict, uuid);
        REQUIRE(t != 0);
        const struct sv_track_info *info = &f.dict->tracks[t];
        CHECK_UINT_EQ(info->kind, SV_TRACK_LANE);
        CHECK_UINT_EQ(info->parent, f.a);
        CHECK_UINT_EQ(info->space, 3);
        CHECK_STR_EQ(sv_dict_text(f.dict, info->name).bytes, "late");
        CHECK(info->is_described && info->revision > 0);
    }
    teardown(&f);
}

TEST(a_lane_with_events_of_its_own_is_not_taken)
{
    struct fixture f;
    struct sv_event events[4];
    setup_stage(&f);
    size_t n = parse_events(&f, "S B 1 9 q; S A 1 5 x; S A 2 5 y", events);
    sv_track taken =
        sv_dict_track(f.dict, sv_uuid_child(f.dict->tracks[f.a].uuid, SV_TRACK_LANE, "1", 1), NULL);
    events[0].track = taken;
    CHECK_INT_EQ(push_events(events, n,
                             sv_lanes_new(f.dict, NULL, collect_sink(&f.out, SV_HAS_ANYTHING)),
                             NULL),
                 0);
    REQUIRE(f.out.n == 3);
    CHECK_UINT_EQ(f.out.events[0].track, taken);
    CHECK(f.out.events[2].track != taken && f.out.events[2].track != f.a);
    teardown(&f);
}

TEST(thread_time_moves_to_the_end)
{
    struct fixture f;
    setup_stage(&f);
    const struct sv_arg args[] = {{.key = 1, .type = SV_ARG_DICT, .size = 1},
                                  {.key = 2, .type = SV_ARG_INT, .i = 4},
                                  {.type = SV_ARG_THREAD_DUR, .i = 30},
                                  {.type = SV_ARG_THREAD_TIME, .i = 100},
                                  {.key = 3, .type = SV_ARG_INT, .i = 5}};
    struct sv_event e = {
        .ts_ns = 1, .dur_ns = 50, .kind = SV_SLICE, .track = f.a, .args = args, .n_args = 5};
    CHECK_INT_EQ(
        push_events(&e, 1, sv_split_new(f.dict, NULL, collect_sink(&f.out, SV_HAS_ANYTHING)), NULL),
        0);
    REQUIRE(f.out.n == 2);
    REQUIRE(f.out.events[0].n_args == 4);
    CHECK_UINT_EQ(f.out.events[0].args[2].type, SV_ARG_THREAD_TIME);
    CHECK_INT_EQ(f.out.events[0].args[3].i, 5);
    REQUIRE(f.out.events[1].n_args == 1);
    CHECK_UINT_EQ(f.out.events[1].args[0].type, SV_ARG_THREAD_TIME);
    CHECK_INT_EQ(f.out.events[1].args[0].i, 130);
    teardown(&f);
}

TEST(disorder_is_refused)
{
    struct fixture f;
    struct sv_event events[2];
    struct sv_err err = {0};
    setup_stage(&f);
    parse_events(&f, "S A 5 1 x; S A 4 1 y", events);
    CHECK_INT_EQ(push_events(events, 2,
                             sv_split_new(f.dict, NULL, collect_sink(&f.out, SV_HAS_ANYTHING)),
                             &err),
                 SV_EFORMAT);
    CHECK(f.out.closed && f.out.failed);
    teardown(&f);
}

TEST(times_at_the_edges_of_int64)
{
    struct fixture f;
    setup_stage(&f);
    struct sv_event events[] = {
        {.ts_ns = INT64_MIN, .dur_ns = INT64_MAX, .kind = SV_SLICE, .track = f.a},
        {.ts_ns = 5, .dur_ns = INT64_MAX - 5, .kind = SV_SLICE, .track = f.a},
        {.ts_ns = 6, .dur_ns = SV_UNFINISHED, .kind = SV_SLICE, .track = f.a}, /* outlives it */
        {.ts_ns = 7, .dur_ns = INT64_MAX - 8, .kind = SV_SLICE, .track = f.a},
        {.ts_ns = INT64_MAX, .dur_ns = 0, .kind = SV_SLICE, .track = f.a},
        {.ts_ns = INT64_MAX, .dur_ns = SV_UNFINISHED, .kind = SV_SLICE, .track = f.b},
        {.ts_ns = INT64_MAX, .dur_ns = -9, .kind = SV_SLICE, .track = f.b},
    };
    CHECK_INT_EQ(push_events(events, 7,
                             sv_split_new(f.dict, &f.report, collect_sink(&f.out, SV_HAS_ANYTHING)),
                             NULL),
                 0);
    CHECK_UINT_EQ(f.out.n, 12);
    struct {
        sv_track track;
        int64_t ts_ns;
    } ends[8];
    size_t n = 0;
    for (size_t i = 0; i < f.out.n; i++) {
        const struct sv_event *e = &f.out.events[i];
        CHECK(i == 0 || f.out.events[i - 1].ts_ns <= e->ts_ns);
        if (e->kind == SV_END && n < 8) {
            ends[n].track = e->track;
            ends[n++].ts_ns = e->ts_ns;
        }
    }
    REQUIRE(n == 5);
    CHECK_INT_EQ(ends[0].ts_ns, -1);
    CHECK_INT_EQ(ends[1].ts_ns, INT64_MAX - 1);
    CHECK_INT_EQ(ends[2].ts_ns, INT64_MAX);
    CHECK_INT_EQ(ends[4].ts_ns, INT64_MAX);
    CHECK(f.out.events[2].track == f.a);
    CHECK(f.out.events[3].track != f.a); /* what never ends does not fit into what does */
    CHECK_UINT_EQ(sv_report_count(&f.report, SV_DAMAGE), 1);
    teardown(&f);
}

TEST(an_end_past_all_times_is_refused)
{
    struct fixture f;
    struct sv_err err = {0};
    setup_stage(&f);
    struct sv_event event = {.ts_ns = 5, .dur_ns = INT64_MAX, .kind = SV_SLICE, .track = f.a};
    struct sv_sink *sink = collect_sink(&f.out, SV_HAS_ANYTHING);
    CHECK_INT_EQ(push_events(&event, 1, sv_split_new(f.dict, &f.report, sink), &err), SV_ELIMIT);
    CHECK(strstr(err.msg, "at 5 ns") != NULL);
    teardown(&f);
}

/* ---- laws ---- */

static void check_edges_nest(const struct sv_dict *d, const struct collect *c)
{
    size_t *depth = sv_alloc(d->n_tracks * sizeof *depth);
    bool in_order = true, nested = true;
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_event *e = &c->events[i];
        in_order &= i == 0 || c->events[i - 1].ts_ns <= e->ts_ns;
        nested &= e->kind != SV_SLICE;
        if (e->kind == SV_BEGIN)
            depth[e->track]++;
        if (e->kind == SV_END)
            nested &= depth[e->track]-- > 0;
    }
    CHECK(in_order);
    CHECK(nested);
    free(depth);
}

static void check_slices_nest(const struct sv_dict *d, const struct collect *c)
{
    enum { DEPTH = 4096 };
    int64_t *ends = sv_alloc((size_t)d->n_tracks * DEPTH * sizeof *ends);
    size_t *n = sv_alloc(d->n_tracks * sizeof *n);
    bool nested = true;
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_event *e = &c->events[i];
        if (e->kind != SV_SLICE)
            continue;
        int64_t *stack = ends + (size_t)e->track * DEPTH;
        int64_t end = e->dur_ns == SV_UNFINISHED ? INT64_MAX : e->ts_ns + e->dur_ns;
        while (n[e->track] && stack[n[e->track] - 1] <= e->ts_ns)
            n[e->track]--;
        nested &= n[e->track] == 0 || stack[n[e->track] - 1] >= end;
        REQUIRE(n[e->track] < DEPTH);
        stack[n[e->track]++] = end;
    }
    CHECK(nested);
    free(ends);
    free(n);
}

static void sorted_through(struct gen *g, stage_new *stage, struct collect *c)
{
    struct sv_err err = {0};
    struct sv_sink *s = collect_sink(c, SV_HAS_ANYTHING);
    if (stage)
        s = stage(g->dict, NULL, s);
    CHECK_INT_EQ(gen_push(g, sv_sort_new(g->dict, 0, s), &err), 0);
}

TEST(law_random_slices_nest_on_their_lanes)
{
    for (unsigned seed = 0; seed < 40; seed++) {
        CONTEXT("seed %u", seed);
        struct gen g;
        unsigned shape = SV_HAS_SLICES | SV_HAS_FLOW_POINTS | (seed % 2 ? SV_HAS_EDGES : 0) |
                         (seed % 4 == 0 ? SV_IN_NO_ORDER : 0);
        gen_make(&g,
                 &(struct gen_options){.seed = seed, .n = 3000, .shape = shape, .extras = GEN_ALL});
        struct collect edges = {0}, slices = {0};
        sorted_through(&g, sv_split_new, &edges);
        check_edges_nest(g.dict, &edges);
        sorted_through(&g, sv_lanes_new, &slices);
        check_slices_nest(g.dict, &slices);
        CHECK_UINT_EQ(slices.n, g.n);
        collect_fini(&edges);
        collect_fini(&slices);
        gen_fini(&g);
    }
}

/* Edges and slices of any kind on the same tracks, crossing as they like. */
TEST(law_whatever_comes_nests)
{
    static const uint8_t kinds[] = {SV_BEGIN, SV_END, SV_SLICE, SV_SLICE, SV_FLOW, SV_INSTANT};
    for (unsigned seed = 0; seed < 200; seed++) {
        CONTEXT("seed %u", seed);
        struct fixture f;
        struct sv_event events[300];
        struct rng rng = {.state = seed};
        int64_t now = 0;
        setup_stage(&f);
        for (size_t i = 0; i < TEST_COUNT(events); i++) {
            now += (int64_t)rng_below(&rng, 3);
            events[i] = (struct sv_event){.ts_ns = now,
                                          .track = rng_below(&rng, 4) ? f.a : f.b,
                                          .kind = kinds[rng_below(&rng, TEST_COUNT(kinds))],
                                          .flags = rng_below(&rng, 4) ? 0 : SV_BIND_NEXT};
            if (events[i].kind == SV_SLICE)
                events[i].dur_ns = (int64_t)rng_below(&rng, 20) - 1;
        }
        struct collect c = {0};
        struct sv_sink *s = sv_split_new(f.dict, &f.report, collect_sink(&c, SV_HAS_ANYTHING));
        CHECK_INT_EQ(push_events(events, TEST_COUNT(events), s, NULL), 0);
        check_edges_nest(f.dict, &c);
        collect_fini(&c);
        teardown(&f);
    }
}

static struct sv_sink *pair_after_split(struct sv_dict *d, struct sv_report *r,
                                        struct sv_sink *next)
{
    return sv_split_new(d, r, sv_pair_new(d, r, next));
}

static struct sv_sink *pair_after_lanes(struct sv_dict *d, struct sv_report *r,
                                        struct sv_sink *next)
{
    return sv_lanes_new(d, r, sv_split_new(d, r, sv_pair_new(d, r, next)));
}

/* The same set of events, whatever the order. */
static void check_same_set(struct gen *g, stage_new *one, stage_new *other)
{
    struct collect a = {0}, b = {0};
    struct sv_buf x, y;
    sv_buf_init(&x, SIZE_MAX);
    sv_buf_init(&y, SIZE_MAX);
    sorted_through(g, one, &a);
    sorted_through(g, other, &b);
    CHECK_UINT_EQ(a.n, b.n);
    CHECK(strcmp(dump_set(&x, g->dict, a.events, a.n), dump_set(&y, g->dict, b.events, b.n)) == 0);
    sv_buf_fini(&x);
    sv_buf_fini(&y);
    collect_fini(&a);
    collect_fini(&b);
}

TEST(law_pair_after_split_is_identity)
{
    for (unsigned seed = 0; seed < 40; seed++) {
        CONTEXT("seed %u", seed);
        struct gen g;
        gen_make(&g, &(struct gen_options){
                         .seed = seed, .n = 2000, .shape = SV_HAS_NESTED, .extras = GEN_ALL});
        uint32_t tracks = g.dict->n_tracks;
        check_same_set(&g, NULL, pair_after_split);
        CHECK_UINT_EQ(g.dict->n_tracks, tracks); /* what nests needs no lanes */
        gen_fini(&g);
        gen_make(&g, &(struct gen_options){
                         .seed = seed, .n = 2000, .shape = SV_HAS_SLICES, .extras = GEN_ALL});
        check_same_set(&g, sv_lanes_new, pair_after_split);
        check_same_set(&g, sv_lanes_new, pair_after_lanes);
        gen_fini(&g);
    }
}

TEST(a_hundred_thousand_open_slices)
{
    enum { N = 100000 };
    struct fixture f;
    setup_stage(&f);
    struct sv_event *events = sv_alloc(2 * N * sizeof *events);
    for (size_t i = 0; i < N; i++) { /* each ends after all before it: a lane for each */
        events[2 * i] =
            (struct sv_event){.ts_ns = (int64_t)i, .dur_ns = N, .kind = SV_SLICE, .track = f.a};
        events[2 * i + 1] = (struct sv_event){.ts_ns = (int64_t)i, .kind = SV_FLOW, .track = f.a};
    }
    struct sv_tally tally = {0};
    CHECK_INT_EQ(
        push_events(events, 2 * N, sv_split_new(f.dict, NULL, sv_tally_new(&tally, NULL)), NULL),
        0);
    CHECK_UINT_EQ(tally.by_kind[SV_BEGIN], N);
    CHECK_UINT_EQ(tally.by_kind[SV_END], N);
    CHECK(f.dict->n_tracks > N);
    free(events);
    teardown(&f);
}

static struct sv_sink *split_before(struct sv_dict *dict, struct sv_sink *next)
{
    return sv_split_new(dict, NULL, next);
}

TEST(failures_are_passed_on)
{
    check_failure_is_passed_on(SV_HAS_SLICES | SV_HAS_FLOW_POINTS, split_before);
}
