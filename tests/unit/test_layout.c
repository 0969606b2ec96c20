/* The layout: rows, lines, merging, and the law that the index finds the same pixels as looking at
 * every slice. */
#include "plot/layout.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made {
    struct sv_dict *d;
    struct sv_trace *t;
    struct sv_layout_index *x;
};

static struct made make(const char *text)
{
    struct made m = {.d = sv_dict_new()};
    m.t = trace_text_load(text, m.d, NULL);
    m.x = sv_layout_index_new(m.t);
    return m;
}

static void fini(struct made *m)
{
    sv_layout_index_free(m->x);
    sv_trace_free(m->t);
    sv_dict_free(m->d);
}

static struct sv_layout lay_out(const struct made *m, int64_t from, int64_t to, double width)
{
    struct sv_layout l;
    sv_layout_init(&l, m->x,
                   &(struct sv_layout_window){.from_ns = from, .to_ns = to, .width = width});
    return l;
}

/* "line:x0-x1*merged name" of every rectangle. */
static const char *text_of(const struct sv_layout *l, struct sv_buf *b)
{
    sv_buf_clear(b);
    for (size_t i = 0; i < l->n_rects; i++) {
        const struct sv_rect *r = &l->rects[i];
        sv_buf_printf(b, "%s%u:%g-%g*%u %s", i ? ", " : "", r->line, r->x0, r->x1, r->n_merged,
                      sv_dict_text(l->trace->dict, l->trace->slices.name[r->slice]).bytes);
    }
    return sv_buf_cstr(b);
}

/* The rectangles of a trace (as text) in a window of `width` pixels. */
static void check_rects(const char *trace, int64_t from, int64_t to, double width,
                        const char *expected)
{
    struct made m = make(trace);
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    struct sv_layout l = lay_out(&m, from, to, width);
    CHECK_STR_EQ(text_of(&l, &b), expected);
    sv_layout_fini(&l);
    sv_buf_fini(&b);
    fini(&m);
}

TEST(places_slices_by_time_and_depth)
{
    struct made m = make("X 0 100 t outer\nX 10 30 t inner\nX 50 10 t second\nX 100 0 t end\n");
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    struct sv_layout l = lay_out(&m, 0, 200, 20);
    CHECK_UINT_EQ(l.n_rows, 1);
    CHECK_UINT_EQ(m.x->rows->items[0].lines, 2);
    CHECK_STR_EQ(text_of(&l, &b), "0:0-10*1 outer, 0:10-10*1 end, 1:1-4*1 inner, 1:5-6*1 second");
    sv_layout_fini(&l);
    l = lay_out(&m, 20, 60, 40);
    CHECK_STR_EQ(text_of(&l, &b), "0:0-40*1 outer, 1:0-20*1 inner, 1:30-40*1 second");
    sv_layout_fini(&l);
    sv_buf_fini(&b);
    fini(&m);
}

TEST(merges_what_is_narrower_than_a_pixel_and_names_the_longest)
{
    check_rects("X 0 1 t a\nX 2 3 t b\nX 6 1 t c\nX 50 20 t wide\nX 99 1 t last\n", 0, 100, 10,
                "0:0-1*3 b, 0:5-7*1 wide, 0:9.9-10*1 last");
}

TEST(an_unfinished_slice_reaches_the_edge)
{
    check_rects("B 10 t open\nX 0 5 u x\nX 90 10 u y\n", 0, 100, 100,
                "0:10-100*1 open, 0:0-5*1 x, 0:90-100*1 y");
}

TEST(the_whole_trace_holds_its_last_instant)
{
    struct made m = make("X 0 10 t a\nI 50 t end\n");
    struct sv_layout l = lay_out(&m, 0, 0, 100);
    CHECK_INT_EQ(l.from_ns, 0);
    CHECK_INT_EQ(l.to_ns, 51);
    CHECK_UINT_EQ(l.n_rects, 2);
    sv_layout_fini(&l);
    fini(&m);
}

TEST(an_empty_trace_has_no_rows)
{
    struct made m = make("");
    struct sv_layout l = lay_out(&m, 0, 0, 100);
    CHECK_UINT_EQ(l.n_rows, 0);
    CHECK_UINT_EQ(l.n_rects, 0);
    sv_layout_fini(&l);
    fini(&m);
}

TEST(overlapping_slices_get_lines_of_their_own)
{
    struct made m = make("X 0 50 t a\nX 10 60 t b\nX 20 10 t within_b\nX 60 20 t c\nX 75 5 t d\n");
    struct sv_layout l = lay_out(&m, 0, 100, 100);
    CHECK_UINT_EQ(l.n_rects, 5);
    for (size_t i = 0; i < l.n_rects; i++)
        for (size_t j = i + 1; j < l.n_rects; j++) {
            const struct sv_rect *p = &l.rects[i], *q = &l.rects[j];
            CONTEXT("rectangles %zu and %zu", i, j);
            CHECK(p->line != q->line || p->x1 <= q->x0 || q->x1 <= p->x0);
        }
    sv_layout_fini(&l);
    fini(&m);
}

TEST(operations_of_one_name_share_a_row)
{
    struct made m = {.d = sv_dict_new()};
    struct sv_err err = {0};
    m.t = sv_trace_new(m.d, NULL, 0);
    sv_track process = sv_dict_process(m.d, 0, 7);
    struct sv_sink *sink = sv_trace_sink(m.t);
    for (unsigned i = 0; i < 4; i++) {
        bool is_new;
        sv_track k = sv_dict_track(m.d, 1000 + i, &is_new);
        m.d->tracks[k].kind = SV_TRACK_ASYNC;
        m.d->tracks[k].parent = process;
        m.d->tracks[k].name = sv_dict_cstr(m.d, i < 3 ? "request" : "other");
        struct sv_event e = {.kind = SV_SLICE,
                             .ts_ns = (int64_t)i * 10,
                             .dur_ns = 15,
                             .track = k,
                             .name = m.d->tracks[k].name};
        REQUIRE(sink->write(sink, &e, 1, &err) == 0);
    }
    REQUIRE(sv_trace_finish(m.t, &err) == 0);
    m.x = sv_layout_index_new(m.t);
    REQUIRE(m.x->rows->n == 2);
    struct sv_buf b;
    sv_buf_init(&b, 100);
    sv_row_name(m.x->rows, 1, &b);
    CHECK_STR_EQ(sv_buf_cstr(&b), "request (3)");
    CHECK_UINT_EQ(m.x->rows->items[1].lines, 2); /* the third begins after the first ended */
    CHECK_UINT_EQ(m.x->rows->members[m.x->rows->items[1].first_member + 2].line, 0);
    sv_buf_fini(&b);
    fini(&m);
}

TEST(counters_keep_extremes_within_a_pixel_and_the_value_before_the_window)
{
    struct made m = make("C 0 c 5\nC 100 c 1\nC 101 c 9\nC 102 c 3\nC 190 c 4\n");
    struct sv_layout l = lay_out(&m, 50, 200, 15);
    REQUIRE(l.n_points == 3);
    CHECK_DOUBLE_EQ(l.points[0].x, 0);
    CHECK_DOUBLE_EQ(l.points[0].value, 5);
    CHECK_DOUBLE_EQ(l.points[1].min, 1);
    CHECK_DOUBLE_EQ(l.points[1].max, 9);
    CHECK_DOUBLE_EQ(l.points[1].value, 3);
    CHECK_DOUBLE_EQ(l.rows[0].min, 1);
    CHECK_DOUBLE_EQ(l.rows[0].max, 9);
    sv_layout_fini(&l);
    fini(&m);
}

/* ---- the law ---- */

static uint64_t roll(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Many short slices, nested ones and long ones; with overlap also some that cross others. */
static struct made make_random(uint64_t seed, size_t n, bool overlap)
{
    struct made m = {.d = sv_dict_new()};
    struct sv_err err = {0};
    int64_t now = 0, ends[8] = {0};
    unsigned depth = 0;
    m.t = sv_trace_new(m.d, NULL, 0);
    sv_track k = sv_dict_thread(m.d, 0, 1, 1);
    sv_str name = sv_dict_cstr(m.d, "x");
    struct sv_sink *sink = sv_trace_sink(m.t);
    for (size_t i = 0; i < n; i++) {
        uint64_t r = roll(&seed);
        now += (int64_t)(r & 15);
        while (depth && ends[depth - 1] <= now)
            depth--;
        int64_t dur = r % 500 == 0 ? 20000 : (int64_t)(r >> 20 & 31);
        if (!overlap && depth && now + dur > ends[depth - 1])
            dur = ends[depth - 1] - now;
        struct sv_event e = {
            .kind = SV_SLICE, .ts_ns = now, .dur_ns = dur, .track = k, .name = name};
        REQUIRE(sink->write(sink, &e, 1, &err) == 0);
        if (dur && depth < 8 && !overlap)
            ends[depth++] = now + dur;
    }
    REQUIRE(sv_trace_finish(m.t, &err) == 0);
    m.x = sv_layout_index_new(m.t);
    return m;
}

/* Which pixels of which lines are covered, by looking at every slice. */
static bool *cover(const struct made *m, const struct sv_layout *l, size_t width)
{
    bool *is_covered = calloc(SV_LINES_MAX * width, 1);
    REQUIRE(is_covered);
    for (uint32_t row = 0; row < m->t->slices.n; row++) {
        int64_t from = m->t->slices.ts_ns[row], to = from + m->t->slices.dur_ns[row];
        if (from >= l->to_ns || (to <= l->from_ns && from < l->from_ns))
            continue;
        uint32_t line = sv_layout_line(m->x, &m->x->rows->members[0], row);
        size_t a = (size_t)floor(sv_layout_x(l, from)), b = (size_t)ceil(sv_layout_x(l, to));
        for (size_t x = a; x < width && (x < b || x == a); x++)
            is_covered[line * width + x] = true;
    }
    return is_covered;
}

static void check_law(const struct made *m, int64_t from, int64_t to, size_t width)
{
    struct sv_layout l = lay_out(m, from, to, (double)width);
    bool *expected = cover(m, &l, width), *is = calloc(SV_LINES_MAX * width, 1);
    bool *is_near = calloc(SV_LINES_MAX * width, 1);
    REQUIRE(is && is_near);
    for (size_t i = 0; i < l.n_rects; i++) {
        size_t a = (size_t)floor(l.rects[i].x0), b = (size_t)ceil(l.rects[i].x1);
        CHECK_UINT_EQ(sv_layout_line(m->x, &m->x->rows->members[0], l.rects[i].slice),
                      l.rects[i].line);
        for (size_t x = a; x < width && (x < b || x == a); x++)
            is[l.rects[i].line * width + x] = true;
    }
    for (size_t i = 0; i < SV_LINES_MAX * width; i++)
        is_near[i] = expected[i] || (i % width && expected[i - 1]) ||
                     (i % width + 1 < width && expected[i + 1]);
    size_t missing = 0, invented = 0;
    for (size_t i = 0; i < SV_LINES_MAX * width; i++) {
        bool is_seen = is[i] || (i % width && is[i - 1]) || (i % width + 1 < width && is[i + 1]);
        missing += expected[i] && !is_seen;
        invented += is[i] && !is_near[i];
    }
    CHECK_UINT_EQ(missing, 0);
    CHECK_UINT_EQ(invented, 0);
    CHECK(l.n_rects <= m->x->rows->items[0].lines * width * 3);
    free(expected);
    free(is);
    free(is_near);
    sv_layout_fini(&l);
}

TEST(dense_pixels_show_what_looking_at_every_slice_shows)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct made m = make_random(seed * 88172645463325252u, 60000, seed % 2 == 0);
        int64_t span = m.t->last_ns - m.t->first_ns;
        static const size_t widths[] = {1, 7, 50, 400, 3000};
        for (size_t i = 0; i < TEST_COUNT(widths); i++) {
            CONTEXT("seed %d, %zu pixels", (int)seed, widths[i]);
            check_law(&m, 0, 0, widths[i]);
            check_law(&m, m.t->first_ns + span / 3, m.t->first_ns + span / 3 + span / 50,
                      widths[i]);
        }
        fini(&m);
    }
}
