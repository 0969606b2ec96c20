/* The viewer's strips against looking at every slice: how many touch a pixel, which is the longest,
 * how much is covered. */
#include "plot/strips.h"
#include "tests/harness/test.h"

#include <stdlib.h>

struct made {
    struct sv_dict *d;
    struct sv_trace *t;
    struct sv_track_rows *rows;
    struct sv_strips *strips;
};

static uint64_t roll(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 24;
}

enum shape { NESTED, OVERLAPPING, OF_MANY_TRACKS };

static sv_track track_of(struct made *m, enum shape shape, uint64_t r)
{
    if (shape != OF_MANY_TRACKS)
        return sv_dict_thread(m->d, 0, 1, 1);
    bool is_new;
    sv_track k = sv_dict_track(m->d, 77 + r % 50, &is_new);
    if (is_new) {
        m->d->tracks[k].kind = SV_TRACK_ASYNC;
        m->d->tracks[k].parent = sv_dict_process(m->d, 0, 1);
        m->d->tracks[k].name = sv_dict_cstr(m->d, "request");
    }
    return k;
}

/* n slices of a random length each, and few long ones. */
static struct made make(size_t n, enum shape shape, uint64_t seed)
{
    struct made m = {.d = sv_dict_new()};
    struct sv_err err;
    int64_t now = -5000, ends[8];
    size_t depth = 0;
    sv_err_clear(&err);
    m.t = sv_trace_new(m.d, NULL, 0);
    struct sv_sink *sink = sv_trace_sink(m.t);
    for (size_t i = 0; i < n; i++) {
        uint64_t r = roll(&seed);
        now += (int64_t)(r & 15);
        while (depth && ends[depth - 1] <= now)
            depth--;
        int64_t dur = r % 700 == 0  ? 20000 + (int64_t)(r >> 9 & 4095)
                      : r % 31 == 0 ? 0
                                    : (int64_t)(r >> 20 & 31);
        if (shape == NESTED && depth && now + dur > ends[depth - 1])
            dur = ends[depth - 1] - now;
        if (r % 9973 == 5)
            dur = SV_UNFINISHED;
        struct sv_event e = {.kind = r % 97 == 3 ? SV_INSTANT : SV_SLICE,
                             .ts_ns = now,
                             .dur_ns = r % 97 == 3 ? 0 : dur,
                             .track = track_of(&m, shape, r >> 8),
                             .name = sv_dict_cstr(m.d, r & 1 ? "x" : "y")};
        REQUIRE(sink->write(sink, &e, 1, &err) == 0);
        if (e.dur_ns > 0 && depth < 8 && shape == NESTED)
            ends[depth++] = now + e.dur_ns;
    }
    REQUIRE(sv_trace_finish(m.t, &err) == 0);
    m.rows = sv_track_rows_new(m.t);
    m.strips = sv_strips_new(m.rows);
    return m;
}

static void fini(struct made *m)
{
    sv_strips_free(m->strips);
    sv_track_rows_free(m->rows);
    sv_trace_free(m->t);
    sv_dict_free(m->d);
}

/* What the page makes of a line's items: how many slices touch each pixel. */
static uint32_t *counts_of(const struct sv_strip_line *line, const struct sv_pixels *px)
{
    size_t n = (size_t)(px->right - px->left);
    uint32_t *count = calloc(n + 1, sizeof *count);
    REQUIRE(count);
    for (size_t i = 0; i < line->n; i++) {
        const struct sv_strip_item *item = &line->items[i];
        size_t at = (size_t)(item->pixel - px->left);
        REQUIRE(at + item->tail < n);
        count[at] += item->n ? item->n : 1;
        for (uint32_t k = 1; k <= item->tail; k++)
            count[at + k]++;
    }
    return count;
}

static bool touches(const struct made *m, uint32_t slice, int64_t from, int64_t to)
{
    int64_t ts = m->t->slices.ts_ns[slice];
    return ts < to && (ts >= from || sv_trace_end_ns(m->t, slice) > from);
}

/* The rule of the protocol, slice by slice. */
static void check_line(const struct made *m, const struct sv_strip_items *items, uint32_t line,
                       const struct sv_pixels *px)
{
    uint32_t *count = counts_of(&items->lines[line], px);
    size_t n = (size_t)(px->right - px->left);
    uint32_t *expected = calloc(n + 1, sizeof *expected);
    REQUIRE(expected);
    for (uint32_t slice = 0; slice < m->t->slices.n; slice++) {
        if (sv_track_rows_line(m->rows, slice) != line)
            continue;
        int64_t a = sv_pixel_of(px, m->t->slices.ts_ns[slice]);
        for (int64_t p = a > px->left ? a : px->left; p < px->right; p++) {
            if (!touches(m, slice, sv_pixel_edge(px, p), sv_pixel_edge(px, p + 1)))
                break;
            expected[p - px->left]++;
        }
    }
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += count[i] != expected[i];
    CHECK_UINT_EQ(wrong, 0);
    free(count);
    free(expected);
}

/* The longest of those that begin in the pixel of each item. */
static void check_longest(const struct made *m, const struct sv_strip_items *items, uint32_t line,
                          const struct sv_pixels *px)
{
    for (size_t i = 0; i < items->lines[line].n; i++) {
        const struct sv_strip_item *item = &items->lines[line].items[i];
        uint64_t longest = 0, is = (uint64_t)m->t->slices.dur_ns[item->longest];
        if (item->n == 0)
            continue;
        for (uint32_t slice = 0; slice < m->t->slices.n; slice++)
            if (sv_pixel_of(px, m->t->slices.ts_ns[slice]) == item->pixel &&
                sv_track_rows_line(m->rows, slice) == line &&
                (uint64_t)m->t->slices.dur_ns[slice] > longest)
                longest = (uint64_t)m->t->slices.dur_ns[slice];
        CHECK_UINT_EQ(is, longest);
        CHECK(item->cover >= 1);
    }
}

static void check_window(const struct made *m, struct sv_pixels px, bool also_longest)
{
    struct sv_strip_items items = {0};
    REQUIRE(m->rows->n == 1);
    sv_strips_row(m->strips, 0, &px, 0, m->rows->items[0].lines, &items);
    CHECK_UINT_EQ(items.n_lines, m->rows->items[0].lines);
    for (uint32_t l = 0; l < items.n_lines; l++) {
        check_line(m, &items, l, &px);
        if (also_longest)
            check_longest(m, &items, l, &px);
    }
    sv_strip_items_fini(&items);
}

static void check_shape(enum shape shape, uint64_t seed)
{
    struct made m = make(30000, shape, seed);
    int64_t first = m.t->first_ns, last = m.t->last_ns, middle = first + (last - first) / 2;
    check_window(&m, (struct sv_pixels){first, last + 1, 1, 0, 1}, true);
    check_window(&m, (struct sv_pixels){first, last + 1, 20, 0, 20}, true);
    check_window(&m, (struct sv_pixels){first, last + 1, 700, -100, 900}, false);
    check_window(&m, (struct sv_pixels){middle, middle + 3000, 301, -301, 602}, true);
    check_window(&m, (struct sv_pixels){middle, middle + 17, 100, -50, 150}, false);
    fini(&m);
}

TEST(pixels_of_nested_slices_are_those_of_looking_at_each)
{
    check_shape(NESTED, 1);
    check_shape(NESTED, 2);
}

TEST(pixels_of_overlapping_slices_are_those_of_looking_at_each)
{
    check_shape(OVERLAPPING, 3);
}

TEST(pixels_of_a_row_of_many_tracks_are_those_of_looking_at_each)
{
    check_shape(OF_MANY_TRACKS, 4);
}

TEST(the_longest_of_many_blocks_is_found)
{
    struct made m = make(80000, NESTED, 6);
    check_window(&m, (struct sv_pixels){m.t->first_ns, m.t->last_ns + 1, 1, 0, 1}, true);
    check_window(&m, (struct sv_pixels){m.t->first_ns, m.t->last_ns + 1, 2, 0, 2}, true);
    fini(&m);
}

/* As strips.h states it. Slices of several tracks have their order, too. */
TEST(they_are_small_beside_the_slices)
{
    for (unsigned shape = NESTED; shape <= OF_MANY_TRACKS; shape++) {
        struct made m = make(80000, (enum shape)shape, 9);
        double each = (double)sv_strips_bytes(m.strips) / (double)m.t->slices.n;
        CONTEXT("shape %u: %g bytes", shape, each);
        CHECK(each > 0 && each <= (shape == OF_MANY_TRACKS ? 4.8 : 0.8));
        fini(&m);
    }
}

TEST(what_ends_at_the_left_edge_does_not_touch_the_window)
{
    struct made m = make(5000, NESTED, 7);
    for (uint32_t slice = 0; slice < m.t->slices.n; slice += 100) {
        int64_t end = sv_trace_end_ns(m.t, slice);
        check_window(&m, (struct sv_pixels){end, end + 60, 20, 0, 20}, false);
    }
    fini(&m);
}

TEST(edges_and_pixels_agree_over_the_whole_range_of_times)
{
    static const struct sv_pixels windows[] = {{INT64_MIN, INT64_MAX, 1600, 0, 1600},
                                               {0, 1, 1600, 0, 1600},
                                               {-7, 1000, 13, 0, 13},
                                               {INT64_MAX - 10, INT64_MAX, 4, 0, 4}};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
        for (int64_t p = -20; p < 1700; p++) {
            int64_t edge = sv_pixel_edge(&windows[w], p), next = sv_pixel_edge(&windows[w], p + 1);
            if (edge == next || edge == INT64_MIN || next == INT64_MAX)
                continue;
            CHECK_INT_EQ(sv_pixel_of(&windows[w], edge), p);
            CHECK_INT_EQ(sv_pixel_of(&windows[w], next - 1), p);
        }
}

TEST(neighbours_on_a_line_are_found_across_blocks)
{
    struct made m = make(20000, NESTED, 5);
    for (uint32_t line = 0; line < m.rows->items[0].lines; line++) {
        uint32_t before = SV_NO_ROW, n = (uint32_t)m.t->slices.n;
        for (uint32_t i = 0; i < n; i++) {
            if (i % 61 == 0)
                CHECK_UINT_EQ(sv_strips_last_before(m.strips, 0, line, i), before);
            if (sv_track_rows_line(m.rows, i) == line) {
                if (before != SV_NO_ROW && i % 7 == 0)
                    CHECK_UINT_EQ(sv_strips_next_from(m.strips, 0, line, before + 1), i);
                before = i;
            }
        }
        CHECK_UINT_EQ(sv_strips_next_from(m.strips, 0, line, before + 1), SV_NO_ROW);
    }
    fini(&m);
}
