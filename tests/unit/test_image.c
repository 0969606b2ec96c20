/* Images of traces: what comes back is what was put, and nothing that is damaged is taken for
 * it. */
#include "store/image.h"

#include "core/base/buf.h"
#include "plot/colors.h"
#include "plot/strips.h"
#include "store/track_rows.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/images.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <stdlib.h>
#include <string.h>

static const struct sv_image_key key = {{1, 2, 3}};

#define EVERYTHING (SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS)

struct made {
    struct gen gen;
    struct sv_report report;
    struct sv_trace *trace;
};

static void make(struct made *m, uint64_t turn, size_t n)
{
    static const unsigned shapes[] = {SV_HAS_EDGES, SV_HAS_NESTED, SV_HAS_SLICES,
                                      SV_HAS_SLICES | SV_IN_NO_ORDER, EVERYTHING};
    struct sv_err err = {0};
    gen_make(&m->gen, &(struct gen_options){.seed = turn,
                                            .n = n,
                                            .shape = shapes[turn % TEST_COUNT(shapes)],
                                            .extras = GEN_ALL | (turn % 3 ? 0 : GEN_UNMATCHED),
                                            .odd = turn % 2 ? 0 : 62,
                                            .n_tracks = 1 + (unsigned)(turn % 4)});
    sv_report_init(&m->report);
    sv_report_add(&m->report, SV_DAMAGE, "broken", 3, 77, "at %d", 5);
    sv_report_add(&m->report, SV_NOTE, "odd", 1, SV_NO_POS, NULL);
    sv_dict_set_meta(m->gen.dict, "host", "a", 1, false);
    sv_dict_set_meta(m->gen.dict, "more", "{}", 2, true);
    sv_clocks_add(&m->gen.dict->clocks, &(struct sv_snapshot){.readings = {{1, 5}, {6, 7}},
                                                              .n = 2,
                                                              .wall_state = 1,
                                                              .uncertainty_ns = 9,
                                                              .wall_error_ns = 4});
    m->gen.dict->clocks.trace_clock = 6;
    m->trace = sv_trace_new(m->gen.dict, &m->report, 0);
    REQUIRE(gen_push(&m->gen, sv_trace_sink(m->trace), &err) == 0);
}

static void fini(struct made *m)
{
    sv_trace_free(m->trace);
    sv_report_fini(&m->report);
    gen_fini(&m->gen);
}

static uint8_t *bytes_of(const struct made *m, size_t *size)
{
    uint8_t *bytes = image_bytes(m->trace, &m->report, &key, NULL, NULL, size);
    REQUIRE(bytes != NULL);
    return bytes;
}

/* What was opened from bytes; NULL where it was refused. */
struct opened {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_trace *trace;
};

static bool open_bytes(struct opened *o, const uint8_t *bytes, size_t size, unsigned how)
{
    struct sv_image *im = sv_image_of_bytes(bytes, size, &key);
    o->dict = sv_dict_new();
    sv_report_init(&o->report);
    o->trace = im ? sv_trace_of_image(im, o->dict, &o->report, how) : NULL;
    return o->trace != NULL;
}

static void close_opened(struct opened *o)
{
    sv_trace_free(o->trace);
    sv_report_fini(&o->report);
    sv_dict_free(o->dict);
}

static void check_reports(const struct sv_report *a, const struct sv_report *b)
{
    REQUIRE(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        CHECK_INT_EQ(a->rows[i].severity, b->rows[i].severity);
        CHECK_STR_EQ(a->rows[i].what, b->rows[i].what);
        CHECK_UINT_EQ(a->rows[i].count, b->rows[i].count);
        CHECK_INT_EQ(a->rows[i].first_pos, b->rows[i].first_pos);
        CHECK(!a->rows[i].first_detail == !b->rows[i].first_detail);
        if (a->rows[i].first_detail && b->rows[i].first_detail)
            CHECK_STR_EQ(a->rows[i].first_detail, b->rows[i].first_detail);
    }
}

static void check_dicts(const struct sv_dict *a, struct sv_dict *b)
{
    REQUIRE(a->n_strings == b->n_strings && a->n_tracks == b->n_tracks && a->n_meta == b->n_meta);
    for (sv_str s = 0; s < a->n_strings; s++) {
        struct sv_text x = sv_dict_text(a, s), y = sv_dict_text(b, s);
        REQUIRE(x.len == y.len && memcmp(x.bytes, y.bytes, x.len + 1) == 0);
        CHECK_UINT_EQ(sv_dict_str(b, x.bytes, x.len), s);
    }
    for (sv_track k = 1; k < a->n_tracks; k++) {
        CHECK_UINT_EQ(sv_dict_find_track(b, a->tracks[k].uuid), k);
        CHECK_UINT_EQ(a->tracks[k].name, b->tracks[k].name);
        CHECK_INT_EQ(a->tracks[k].tid, b->tracks[k].tid);
        CHECK_UINT_EQ(a->tracks[k].parent, b->tracks[k].parent);
        CHECK_UINT_EQ(a->tracks[k].kind, b->tracks[k].kind);
    }
    for (uint32_t i = 0; i < a->n_meta; i++)
        CHECK_UINT_EQ(a->meta[i].value, b->meta[i].value);
    CHECK(sv_dict_find_meta(b, "more")->is_json && !sv_dict_find_meta(b, "host")->is_json);
    CHECK_UINT_EQ(a->clocks.trace_clock, b->clocks.trace_clock);
    REQUIRE(a->clocks.n == b->clocks.n);
    CHECK_INT_EQ(b->clocks.snapshots[0].readings[1].ns, 7);
    sv_str fresh = sv_dict_cstr(b, "a string that was not there");
    CHECK_UINT_EQ(fresh, a->n_strings);
    CHECK_STR_EQ(sv_dict_text(b, fresh).bytes, "a string that was not there");
}

static void check_columns(const struct sv_trace *a, const struct sv_trace *b)
{
    size_t n = (size_t)a->slices.n;
    CHECK(n == 0 || memcmp(a->slices.cat, b->slices.cat, n * sizeof *a->slices.cat) == 0);
    CHECK(n == 0 || memcmp(a->slices.parent, b->slices.parent, n * sizeof *a->slices.parent) == 0);
    CHECK(n == 0 || memcmp(a->slices.flags, b->slices.flags, n) == 0);
    CHECK(memcmp(a->tracks, b->tracks, a->n_tracks * sizeof *a->tracks) == 0);
    CHECK_INT_EQ(a->first_ns, b->first_ns);
    CHECK_INT_EQ(a->last_ns, b->last_ns);
    CHECK_UINT_EQ(a->unmatched_ends, b->unmatched_ends);
    CHECK_UINT_EQ(a->unfinished, b->unfinished);
    CHECK_UINT_EQ(a->unbound_flow_points, b->unbound_flow_points);
    CHECK(!a->counters.exact == !b->counters.exact);
    for (uint64_t i = 0; i < a->counters.n; i++)
        CHECK_INT_EQ(sv_trace_counter(a, i).i, sv_trace_counter(b, i).i);
}

static void check_windows(const struct sv_trace *a, const struct sv_trace *b, struct rng *rng)
{
    for (unsigned i = 0; i < 50; i++) {
        sv_track k = (sv_track)rng_below(rng, a->n_tracks);
        int64_t at = a->first_ns +
                     (int64_t)rng_below(rng, (uint64_t)(a->last_ns - a->first_ns) + 1);
        struct sv_window x = sv_trace_window(a, k, at, at + 100),
                         y = sv_trace_window(b, k, at, at + 100);
        uint32_t p, q;
        for (;;) {
            bool more = sv_window_next(&x, &p);
            REQUIRE(sv_window_next(&y, &q) == more);
            if (!more)
                break;
            CHECK_UINT_EQ(p, q);
        }
        CHECK_UINT_EQ(sv_trace_slice_at(a, k, at), sv_trace_slice_at(b, k, at));
    }
}

TEST(what_is_put_comes_back)
{
    struct rng rng = {7};
    for (uint64_t turn = 0; turn < 30; turn++) {
        struct made m;
        struct opened o;
        struct sv_buf x, y;
        size_t size;
        CONTEXT("turn %d", (int)turn);
        make(&m, turn, turn == 0 ? 0 : 40 + turn % 5 * 400);
        uint8_t *bytes = bytes_of(&m, &size);
        REQUIRE(open_bytes(&o, bytes, size, turn % 2 ? SV_IMAGE_QUICK : 0));
        sv_buf_init(&x, 1 << 26);
        sv_buf_init(&y, 1 << 26);
        CHECK_STR_EQ(trace_text_dump(m.trace, &x), trace_text_dump(o.trace, &y));
        check_columns(m.trace, o.trace);
        check_windows(m.trace, o.trace, &rng);
        check_reports(&m.report, &o.report);
        check_dicts(m.gen.dict, o.dict);
        CHECK(sv_trace_check(o.trace, 0, NULL, NULL));
        CHECK_UINT_EQ(sv_trace_args_bytes(o.trace) > 0, sv_trace_args_bytes(m.trace) > 0);
        sv_buf_fini(&x);
        sv_buf_fini(&y);
        close_opened(&o);
        free(bytes);
        fini(&m);
    }
}

/* A flipped bit lies between the sections, or it is seen. */
TEST(no_flipped_bit_gets_in)
{
    struct made m;
    struct opened o;
    struct sv_buf want, got;
    size_t size, n_refused = 0, n_taken = 0;
    make(&m, 4, 60);
    uint8_t *bytes = bytes_of(&m, &size);
    sv_buf_init(&want, 1 << 24);
    sv_buf_init(&got, 1 << 24);
    trace_text_dump(m.trace, &want);
    for (size_t at = 0; at < size;
         at += (at % 4096 < 200 ? 3u : 97u) * (TEST_HAS_SANITIZER ? 4u : 1u)) {
        CONTEXT("byte %zu", at);
        bytes[at] ^= (uint8_t)(1u << at % 8);
        if (open_bytes(&o, bytes, size, at % 2 ? 0 : SV_IMAGE_QUICK)) {
            n_taken++;
            sv_buf_clear(&got);
            CHECK_STR_EQ(trace_text_dump(o.trace, &got), sv_buf_cstr(&want));
            check_reports(&m.report, &o.report);
        } else {
            n_refused++;
        }
        close_opened(&o);
        bytes[at] ^= (uint8_t)(1u << at % 8);
    }
    CHECK(n_refused > (TEST_HAS_SANITIZER ? 250 : 1000) && n_taken > 0);
    sv_buf_fini(&want);
    sv_buf_fini(&got);
    free(bytes);
    fini(&m);
}

TEST(no_part_of_an_image_is_one)
{
    struct made m;
    struct opened o;
    size_t size;
    make(&m, 4, 60);
    uint8_t *bytes = bytes_of(&m, &size);
    for (size_t n = 0; n < size; n += n < 300 || n > size - 300 ? 1 : 4001) {
        uint8_t *part = malloc(n + 1);
        memcpy(part, bytes, n);
        CHECK(!open_bytes(&o, part, n, 0));
        close_opened(&o);
        free(part);
    }
    free(bytes);
    fini(&m);
}

/* Each of these has right checksums. */
TEST(another_version_or_key_is_refused)
{
    static const struct {
        const char *what;
        size_t at;
    } rows[] = {{"magic", 3}, {"version", 16}, {"byte order", 20}, {"key", 24}, {"key", 24 + 95}};
    struct made m;
    struct opened o;
    size_t size;
    make(&m, 4, 60);
    uint8_t *bytes = bytes_of(&m, &size);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].what);
        bytes[rows[i].at]++;
        REQUIRE(sv_image_seal(bytes, size));
        CHECK(!open_bytes(&o, bytes, size, 0));
        close_opened(&o);
        bytes[rows[i].at]--;
    }
    REQUIRE(sv_image_seal(bytes, size));
    CHECK(open_bytes(&o, bytes, size, 0));
    close_opened(&o);
    free(bytes);
    fini(&m);
}

static uint8_t *section(uint8_t *bytes, size_t size, const char *name, uint64_t *n)
{
    struct sv_image *im = sv_image_of_bytes(bytes, size, &key);
    const void *at = NULL;
    const char *found = NULL;
    REQUIRE(im != NULL);
    for (size_t i = 0; (found = sv_image_section(im, i, &at, n)) && strcmp(found, name) != 0;)
        i++;
    REQUIRE(found != NULL);
    sv_image_close(im);
    return bytes + ((const uint8_t *)at - bytes);
}

/* Numbers that lead out of their tables, with right checksums: all columns of numbers of other
 * tables. */
TEST(numbers_that_lead_nowhere_are_refused)
{
    static const struct {
        const char *section;
        size_t item;
        uint64_t value;
    } rows[] = {
        {"slice.2", 4, 1u << 30},
        {"slice.3", 4, 1u << 30},
        {"slice.4", 4, 0},
        {"slice.5", 4, 0x0fffffff},
        {"slice.5", 4, 2},
        {"slice.6", 2, 60000},
        {"slice.7", 1, 1},
        {"slice.9", 4, 0xfffffffe},
        {"slice.1", 8, (uint64_t)-2},
        {"slice.1", 8, INT64_MAX},
        {"counter.2", 4, 0},
        {"counter.3", 1, 17},
        {"flow.1", 4, 1u << 30},
        {"flow.2", 4, 1u << 30},
        {"flow.3", 4, 1u << 30},
        {"loss.3", 4, 1u << 30},
        {"loss.4", 4, 1u << 30},
        {"tracks", 4, 1},
        {"dict.lens", 4, 1u << 30},
        {"dict.lens", 4, 1},
        {"dict.meta", 4, 1u << 30},
        {"trace", 8, 1},
        {"trace", 8, UINT64_MAX},
        {"args.slots", 8, UINT64_MAX},
        {"args.bytes", 1, 0xff},
    };
    struct made m;
    struct opened o;
    size_t size;
    make(&m, 9, 900);
    uint8_t *bytes = bytes_of(&m, &size);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        uint64_t n, before = 0;
        CONTEXT("%s = %llx", rows[i].section, (unsigned long long)rows[i].value);
        uint8_t *at = section(bytes, size, rows[i].section, &n);
        REQUIRE(n >= rows[i].item);
        at += strcmp(rows[i].section, "trace") == 0 || strcmp(rows[i].section, "tracks") == 0 ? 0
              : strcmp(rows[i].section, "args.bytes") == 0                                    ? 4
                                                           : (n / rows[i].item / 2) * rows[i].item;
        memcpy(&before, at, rows[i].item);
        memcpy(at, &rows[i].value, rows[i].item);
        REQUIRE(sv_image_seal(bytes, size));
        CHECK(!open_bytes(&o, bytes, size, 0));
        close_opened(&o);
        memcpy(at, &before, rows[i].item);
    }
    REQUIRE(sv_image_seal(bytes, size));
    CHECK(open_bytes(&o, bytes, size, 0));
    close_opened(&o);
    free(bytes);
    fini(&m);
}

/* ---- what the viewer keeps ---- */

struct shown {
    struct sv_track_rows *rows;
    struct sv_strips *strips;
    struct sv_colors colors;
};

static void show(struct shown *s, const struct sv_trace *t)
{
    s->rows = sv_track_rows_new(t);
    s->strips = sv_strips_new(s->rows);
    sv_colors_init(&s->colors, t, NULL);
}

static void hide(struct shown *s)
{
    sv_colors_fini(&s->colors);
    sv_strips_free(s->strips);
    sv_track_rows_free(s->rows);
}

static void put_shown(void *ctx, struct sv_image_writer *w)
{
    const struct shown *s = ctx;
    sv_track_rows_put(s->rows, w);
    sv_strips_put(s->strips, w);
    sv_colors_put(&s->colors, w);
}

/* Nested slices, slices that overlap, and many operations of one name on tracks of their own. */
static struct sv_trace *make_rows(struct sv_dict *d)
{
    struct sv_err err = {0};
    struct sv_trace *t = sv_trace_new(d, NULL, 0);
    struct sv_sink *sink = sv_trace_sink(t);
    struct rng rng = {11};
    for (unsigned i = 0; i < 60000; i++) {
        bool is_new;
        uint64_t r = rng_next(&rng);
        sv_track k = i % 3 == 0   ? sv_dict_thread(d, 0, 1, 2)
                     : i % 3 == 1 ? sv_dict_thread(d, 0, 1, 3)
                                  : sv_dict_track(d, 77 + r % 40, &is_new);
        if (i % 3 == 2 && is_new) {
            d->tracks[k].kind = SV_TRACK_ASYNC;
            d->tracks[k].parent = sv_dict_process(d, 0, 1);
            d->tracks[k].name = sv_dict_cstr(d, "request");
        }
        struct sv_event e = {.kind = SV_SLICE,
                             .ts_ns = (int64_t)i * 10,
                             .dur_ns = i % 3 == 0 ? 9 : (int64_t)(r % 90),
                             .track = k,
                             .cat = sv_dict_cstr(d, i % 5 ? "one" : "two"),
                             .name = sv_dict_cstr(d, i % 2 ? "x" : "y")};
        REQUIRE(sink->write(sink, &e, 1, &err) == 0);
    }
    REQUIRE(sv_trace_finish(t, &err) == 0);
    return t;
}

static void check_shown(const struct shown *a, const struct shown *b, const struct sv_trace *t)
{
    struct rng rng = {3};
    struct sv_strip_items x = {0}, y = {0};
    REQUIRE(a->rows->n == b->rows->n && sv_strips_bytes(a->strips) == sv_strips_bytes(b->strips));
    for (uint32_t i = 0; i < t->slices.n; i++) {
        CHECK_UINT_EQ(sv_track_rows_line(a->rows, i), sv_track_rows_line(b->rows, i));
        CHECK_UINT_EQ(sv_color_number(&a->colors, i), sv_color_number(&b->colors, i));
    }
    for (unsigned i = 0; i < 200; i++) {
        size_t row = rng_below(&rng, a->rows->n);
        int64_t from = (int64_t)rng_below(&rng, 400000);
        struct sv_pixels px = {.from_ns = from,
                               .to_ns = from + 1 + (int64_t)rng_below(&rng, 400000),
                               .width = 300,
                               .right = 300};
        sv_strips_row(a->strips, row, &px, 0, 10, &x);
        sv_strips_row(b->strips, row, &px, 0, 10, &y);
        REQUIRE(x.n_lines == y.n_lines);
        for (uint32_t l = 0; l < x.n_lines; l++) {
            REQUIRE(x.lines[l].n == y.lines[l].n);
            for (size_t k = 0; k < x.lines[l].n; k++)
                CHECK(x.lines[l].items[k].longest == y.lines[l].items[k].longest &&
                      x.lines[l].items[k].n == y.lines[l].items[k].n &&
                      x.lines[l].items[k].cover == y.lines[l].items[k].cover);
        }
        CHECK_UINT_EQ(sv_strips_busy_ns(a->strips, row), sv_strips_busy_ns(b->strips, row));
    }
    sv_strip_items_fini(&x);
    sv_strip_items_fini(&y);
}

TEST(rows_strips_and_colours_come_back)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = make_rows(d);
    struct shown s, again;
    struct opened o;
    size_t size;
    show(&s, t);
    uint8_t *bytes = image_bytes(t, NULL, &key, put_shown, &s, &size);
    REQUIRE(bytes != NULL && open_bytes(&o, bytes, size, SV_IMAGE_QUICK));
    show(&again, o.trace);
    CHECK(!s.rows->is_kept && again.rows->is_kept);
    check_shown(&s, &again, t);
    hide(&again);
    close_opened(&o);
    free(bytes);
    hide(&s);
    sv_trace_free(t);
    sv_dict_free(d);
}

/* Rows and strips that are not sound are made anew, from the same trace. */
TEST(rows_and_strips_that_lead_nowhere_are_made_anew)
{
    static const struct {
        const char *section;
        size_t at, item;
        uint64_t value;
    } rows[] = {
        {"rows", 0, 4, 1u << 30},
        {"rows", 4, 4, 1u << 30},
        {"rows", 8, 4, 1u << 30},
        {"rows", 16, 8, 1u << 30},
        {"rows", 24, 8, 0},
        {"rows", 24, 8, UINT64_MAX},
        {"rows.members", 0, 4, 1u << 30},
        {"rows.members", 4, 4, UINT32_MAX},
        {"rows.members", 0, 4, 0},
        {"rows.lines", 0, 2, 60000},
        {"strips.orders", 0, 4, 1u << 30},
        {"strips.blocks", 20, 4, 1u << 30},
        {"strips.tops", 8, 4, 1u << 30},
        {"colors.2", 28, 4, 1000},
        {"colors.of", 0, 1, 200},
    };
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = make_rows(d);
    struct shown s, again;
    struct opened o;
    size_t size;
    show(&s, t);
    uint8_t *bytes = image_bytes(t, NULL, &key, put_shown, &s, &size);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        uint64_t n, before = 0;
        CONTEXT("%s.%zu = %llx", rows[i].section, rows[i].at, (unsigned long long)rows[i].value);
        uint8_t *at = section(bytes, size, rows[i].section, &n) + rows[i].at;
        REQUIRE(n >= rows[i].at + rows[i].item);
        memcpy(&before, at, rows[i].item);
        memcpy(at, &rows[i].value, rows[i].item);
        REQUIRE(sv_image_seal(bytes, size) && open_bytes(&o, bytes, size, SV_IMAGE_QUICK));
        show(&again, o.trace);
        CHECK(again.rows->is_kept == (strncmp(rows[i].section, "rows", 4) != 0));
        check_shown(&s, &again, t);
        hide(&again);
        close_opened(&o);
        memcpy(at, &before, rows[i].item);
    }
    free(bytes);
    hide(&s);
    sv_trace_free(t);
    sv_dict_free(d);
}
