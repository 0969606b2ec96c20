/* The filter: windows over edges and slices, predicates, counters and flows; and that an open one
 * is the identity. */
#include "stage_fixture.h"
#include "store/filter.h"

static void setup(struct fixture *f)
{
    setup_stage(f);
    f->b = sv_dict_thread(f->dict, 0, 2, 2);
    f->c = sv_dict_child(f->dict, sv_dict_process(f->dict, 0, 1), SV_TRACK_COUNTER,
                         sv_dict_cstr(f->dict, "C"));
    f->dict->tracks[f->b].name = sv_dict_cstr(f->dict, "B");
    f->dict->tracks[sv_dict_process(f->dict, 0, 1)].name = sv_dict_cstr(f->dict, "python");
}

/* As parse_events() reads it; [n marks a begin that was at n, ] an end that was cut. */
static const char *format(struct fixture *f, struct sv_buf *b)
{
    sv_buf_clear(b);
    for (size_t i = 0; i < f->out.n; i++) {
        const struct sv_event *e = &f->out.events[i];
        sv_buf_printf(b, "%s%c %s %lld", i ? "; " : "", "?BESICFL"[e->kind],
                      sv_dict_text(f->dict, f->dict->tracks[e->track].name).bytes,
                      (long long)e->ts_ns);
        if (e->kind == SV_SLICE || e->kind == SV_LOSS)
            sv_buf_printf(b, " %lld", (long long)e->dur_ns);
        if (e->name)
            sv_buf_printf(b, " %s", sv_dict_text(f->dict, e->name).bytes);
        if (e->kind == SV_COUNTER)
            sv_buf_printf(b, " %lld", (long long)e->args[0].i);
        for (size_t k = 0; k < e->n_args; k++) {
            const char *key = sv_dict_text(f->dict, e->args[k].key).bytes;
            if (strcmp(key, "cut.begin_ns") == 0)
                sv_buf_printf(b, " [%lld", (long long)e->args[k].i);
            if (strcmp(key, "cut.end") == 0)
                sv_buf_printf(b, " ]");
        }
    }
    return sv_buf_cstr(b);
}

struct row {
    const char *in, *out;
    int64_t from, to;
    const char *track, *cat, *name;
    int64_t pid;
};

static struct sv_globs one(const char *const *glob)
{
    return (struct sv_globs){.items = glob, .n = *glob != NULL};
}

static void check_rows(const struct row *rows, size_t n)
{
    struct sv_buf text;
    sv_buf_init(&text, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows[i];
        CONTEXT("row %zu: %s", i, row->in);
        struct fixture f;
        struct sv_event events[64];
        setup(&f);
        struct sv_filter filter = SV_FILTER_ALL;
        if (row->to) {
            filter.from_ns = row->from;
            filter.to_ns = row->to;
        }
        filter.tracks = one(&row->track);
        filter.cats = one(&row->cat);
        filter.names = one(&row->name);
        filter.pids = &row->pid;
        filter.n_pids = row->pid != 0;
        size_t count = parse_events(&f, row->in, events);
        struct sv_err err = {0};
        CHECK_INT_EQ(
            push_events(events, count,
                        sv_filter_new(f.dict, &filter, collect_sink(&f.out, SV_HAS_ANYTHING)),
                        &err),
            0);
        CHECK_STR_EQ(format(&f, &text), row->out);
        CHECK(f.out.closed && !f.out.failed);
        teardown(&f);
    }
    sv_buf_fini(&text);
}

TEST(window_over_edges)
{
    static const struct row rows[] = {
        {"B A 1 x; E A 3; B A 12 y; E A 14; B A 30 z; E A 31", "B A 12 y; E A 14", .from = 10,
         .to = 20},
        /* open at the first moment, at the last, at both */
        {"B A 1 x; E A 12; I A 30 i", "B A 10 x [1; E A 12", .from = 10, .to = 20},
        {"B A 12 x; E A 30", "B A 12 x; E A 20 ]", .from = 10, .to = 20},
        {"B A 1 x; B A 2 y; E A 30; E A 31", "B A 10 x [1; B A 10 y [2; E A 20 ]; E A 20 ]",
         .from = 10, .to = 20},
        {"B A 1 x; B A 2 y; E A 3; I A 15 i; E A 25", "B A 10 x [1; I A 15 i; E A 20 ]", .from = 10,
         .to = 20},
        /* ends and begins at exactly the two moments */
        {"B A 1 x; B B 10 y; E A 10; E B 11; I A 12 i", "B B 10 y; E B 11; I A 12 i", .from = 10,
         .to = 20},
        {"B A 12 x; B B 20 y; E A 20; E B 20; I A 21 i", "B A 12 x; E A 20", .from = 10, .to = 20},
        {"B A 10 x; E A 20", "B A 10 x; E A 20", .from = 10, .to = 20},
        {"B A 12 x; I A 20 i", "B A 12 x; E A 20 ]", .from = 10, .to = 20},
        /* the stream ends before or inside the window */
        {"B A 1 x", "", .from = 10, .to = 20},
        {"B A 1 x; I A 10 i", "B A 10 x [1; I A 10 i", .from = 10, .to = 20},
        {"B A 1 x; I B 10 i", "I B 10 i; B A 10 x [1", .from = 10, .to = 20},
        {"B A 12 x", "B A 12 x", .from = 10, .to = 20},
        {"I A 9 a; I A 10 b; I A 19 c; I A 20 d", "I A 10 b; I A 19 c", .from = 10, .to = 20},
        {"E A 5; E A 12; I A 13 i", "E A 12; I A 13 i", .from = 10, .to = 20},
        {"B A 12 x; E A 13", "", .from = 10, .to = 5},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(window_over_slices)
{
    static const struct row rows[] = {
        {"S A 1 5 w; S A 1 12 x; S A 12 3 y; S A 15 9 z; S A 20 1 v",
         "S A 10 3 x [1; S A 12 3 y; S A 15 5 z ]", .from = 10, .to = 20},
        {"S A 1 40 x; S A 12 0 y", "S A 10 10 x [1 ]; S A 12 0 y", .from = 10, .to = 20},
        {"S A 1 - x; S A 12 - y; I A 13 i", "S A 10 10 x [1 ]; S A 12 8 y ]; I A 13 i", .from = 10,
         .to = 20},
        {"S A 1 9 x; S A 10 0 y; S A 12 8 z", "S A 10 0 y; S A 12 8 z", .from = 10, .to = 20},
        {"B A 1 x; S A 2 30 y; B A 3 z; I B 12 i; E A 13",
         "B A 10 x [1; S A 10 10 y [2 ]; B A 10 z [3; I B 12 i; E A 13", .from = 10, .to = 20},
        {"L A 1 4 lost; L A 5 9 lost; L A 12 1 lost; L A 18 9 lost",
         "L A 10 4 lost; L A 12 1 lost; L A 18 2 lost", .from = 10, .to = 20},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(counters_begin_with_their_value)
{
    static const struct row rows[] = {
        {"C C 1 7; C C 2 8; I A 12 i; C C 13 9", "C C 10 8; I A 12 i; C C 13 9", .from = 10,
         .to = 20},
        {"C C 1 7; C C 10 8; I A 12 i", "C C 10 8; I A 12 i", .from = 10, .to = 20},
        {"C C 1 7; C C 30 8", "C C 10 7", .from = 10, .to = 20},
        {"C C 12 1; C C 20 2", "C C 12 1", .from = 10, .to = 20},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(predicates)
{
    static const struct row rows[] = {
        /* a begin that is dropped takes its end with it */
        {"B A 1 x; B A 2 y; E A 3; E A 4", "B A 2 y; E A 3", .name = "y"},
        {"B A 1 x; B A 2 y; E A 3; E A 4", "B A 1 x; E A 4", .name = "[!y]*"},
        {"S A 1 5 x:gpu,kernel; S A 2 1 y:cpu; I A 3 z", "S A 1 5 x", .cat = "ker*"},
        {"S A 1 5 x:gpu,kernel; S A 2 1 y:cpu; I A 3 z", "I A 3 z", .cat = ""},
        {"B A 1 x; B B 2 y; E A 3; E B 4; L B 5 1 lost", "B B 2 y; E B 4; L B 5 1 lost",
         .track = "B"},
        {"I A 1 x; I B 2 y; C C 3 5", "I A 1 x", .track = "python/A"},
        {"I A 1 x; I B 2 y; C C 3 5", "I B 2 y", .track = "pid 2/*"},
        {"I A 1 x; I B 2 y; C C 3 5", "I A 1 x; C C 3 5", .pid = 1},
        {"I A 1 x; I B 2 y; C C 3 5; L A 4 1 lost", "C C 3 5; L A 4 1 lost", .name = "C"},
        {"B A 1 x; B A 12 y; E A 13; E A 14", "B A 10 x [1; E A 14", .from = 10, .to = 20,
         .name = "x"},
        {"B A 1 x; B A 2 y; B A 12 x; E A 30; E A 30; E A 30", "B A 10 y [2; E A 20 ]", .from = 10,
         .to = 20, .name = "y"},
        {"E A 1; B A 2 x; E A 3", "B A 2 x; E A 3", .name = "x"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(flow_points_stay_with_a_slice_that_stays)
{
    static const struct row rows[] = {
        {"S A 1 5 x; F A 2 f; S A 8 5 y; F A 9 f", "S A 1 5 x; F A 2 f", .name = "x"},
        {"B A 1 x; F A 2 f; E A 3; B A 4 y; F A 5 f; E A 6", "B A 1 x; F A 2 f; E A 3",
         .name = "x"},
        {"F A 1 f; N A 2 f; S A 8 5 y", "F A 2 f", .name = "x"},
        {"S A 1 5 x; F A 2 f; F A 12 g; F A 22 h", "F A 12 g", .from = 10, .to = 20},
        {"B A 1 x; B A 2 y; F A 10 f; E A 10; E A 15", "B A 10 x [1; F A 10 f; E A 15", .from = 10,
         .to = 20},
        {"B A 1 x; B A 2 y; E A 10; F A 10 f; E A 15", "B A 10 x [1; F A 10 f; E A 15", .from = 10,
         .to = 20},
        {"B A 1 x; F A 10 f; I A 10 i; E A 10", "B A 10 x [1; I A 10 i; E A 10; F A 10 f",
         .from = 10, .to = 20},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(a_track_that_learns_its_name_is_judged_again)
{
    struct fixture f;
    struct sv_event events[4];
    setup(&f);
    const char *glob = "late*";
    struct sv_filter filter = SV_FILTER_ALL;
    filter.tracks = one(&glob);
    size_t n = parse_events(&f, "I A 1 x; I A 2 y", events);
    REQUIRE(n == 2);
    struct sv_sink *s = sv_filter_new(f.dict, &filter, collect_sink(&f.out, SV_HAS_ANYTHING));
    CHECK_INT_EQ(s->write(s, events, 1, NULL), 0);
    sv_track process = sv_dict_process(f.dict, 0, 1);
    f.dict->tracks[process].name = sv_dict_cstr(f.dict, "late python");
    sv_dict_touch(f.dict, process);
    CHECK_INT_EQ(s->write(s, events + 1, 1, NULL), 0);
    CHECK_INT_EQ(s->close(s, false, NULL), 0);
    REQUIRE(f.out.n == 1);
    CHECK_INT_EQ(f.out.events[0].ts_ns, 2);
    teardown(&f);
}

TEST(paths_end_in_circles_of_parents)
{
    struct fixture f;
    setup(&f);
    struct sv_buf path;
    sv_buf_init(&path, SIZE_MAX);
    sv_track_path(f.dict, f.a, &path);
    CHECK_STR_EQ(sv_buf_cstr(&path), "python/A");
    sv_buf_clear(&path);
    sv_track_path(f.dict, 0, &path);
    CHECK_STR_EQ(sv_buf_cstr(&path), "");
    f.dict->tracks[f.a].parent = f.b;
    f.dict->tracks[f.b].parent = f.a;
    sv_track_path(f.dict, f.a, &path);
    CHECK(path.len > 0 && path.len < 1000);
    sv_buf_fini(&path);
    teardown(&f);
}

/* ---- laws ---- */

static void collect_filtered(struct gen *g, const struct sv_filter *filter, struct collect *c)
{
    struct sv_err err = {0};
    struct sv_sink *s = collect_sink(c, SV_HAS_ANYTHING);
    if (filter)
        s = sv_filter_new(g->dict, filter, s);
    CHECK_INT_EQ(gen_push(g, sv_sort_new(g->dict, 0, s), &err), 0);
}

TEST(law_an_open_window_is_the_identity)
{
    static const char *const any = "*";
    for (unsigned seed = 0; seed < 20; seed++) {
        struct gen g;
        gen_make(&g,
                 &(struct gen_options){.seed = seed,
                                       .n = 2000,
                                       .shape = SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_FLOW_POINTS,
                                       .extras = GEN_ALL | GEN_UNMATCHED,
                                       .start_ns = 5});
        struct sv_filter filters[3] = {
            SV_FILTER_ALL, SV_FILTER_ALL, {.from_ns = 0, .to_ns = INT64_MAX}};
        filters[1].tracks = one(&any);
        for (size_t i = 0; i < TEST_COUNT(filters); i++) {
            CONTEXT("seed %u, filter %zu", seed, i);
            struct collect a = {0}, b = {0};
            struct sv_buf x, y;
            sv_buf_init(&x, SIZE_MAX);
            sv_buf_init(&y, SIZE_MAX);
            collect_filtered(&g, NULL, &a);
            collect_filtered(&g, &filters[i], &b);
            CHECK(strcmp(dump(&x, g.dict, a.events, a.n), dump(&y, g.dict, b.events, b.n)) == 0);
            sv_buf_fini(&x);
            sv_buf_fini(&y);
            collect_fini(&a);
            collect_fini(&b);
        }
        gen_fini(&g);
    }
}

/* Whatever the window and the names: begins and ends match, time is in order and inside. */
TEST(law_a_cut_stream_stands_on_its_own)
{
    static const char *const names = "name1*";
    for (unsigned seed = 0; seed < 40; seed++) {
        CONTEXT("seed %u", seed);
        struct gen g;
        gen_make(&g, &(struct gen_options){.seed = seed,
                                           .n = 2000,
                                           .shape = SV_HAS_EDGES | SV_HAS_SLICES,
                                           .extras = GEN_ALL & ~GEN_UNFINISHED});
        struct sv_filter filter = {.from_ns = 1000 * (seed % 7), .to_ns = 1000 * (seed % 7) + 3000};
        if (seed % 2)
            filter.names = one(&names);
        struct collect c = {0};
        collect_filtered(&g, &filter, &c);
        size_t *depth = sv_alloc(g.dict->n_tracks * sizeof *depth);
        bool ok = true;
        for (size_t i = 0; i < c.n; i++) {
            const struct sv_event *e = &c.events[i];
            ok &= e->ts_ns >= filter.from_ns && e->ts_ns <= filter.to_ns;
            ok &= i == 0 || c.events[i - 1].ts_ns <= e->ts_ns;
            ok &= e->dur_ns >= 0 && e->ts_ns + e->dur_ns <= filter.to_ns;
            if (e->kind == SV_BEGIN)
                depth[e->track]++;
            if (e->kind == SV_END)
                ok &= depth[e->track]-- > 0;
        }
        for (uint32_t t = 0; t < g.dict->n_tracks; t++)
            ok &= depth[t] == 0;
        CHECK(ok);
        CHECK(c.n > 0);
        free(depth);
        collect_fini(&c);
        gen_fini(&g);
    }
}

static struct sv_sink *filter_before(struct sv_dict *dict, struct sv_sink *next)
{
    static const struct sv_filter filter = {.from_ns = 3000, .to_ns = INT64_MAX};
    return sv_filter_new(dict, &filter, next);
}

TEST(failures_are_passed_on)
{
    check_failure_is_passed_on(SV_HAS_EDGES, filter_before);
}
