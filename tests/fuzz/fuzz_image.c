/* Images of traces, changed behind their checksums: what is accepted can be walked over by
 * everybody without leaving it.
 *
 * An input is a list of changes to a good image: which of a few, then for each change its section,
 * its place, what is done there and with which number. All checksums are put right afterwards. An
 * input that begins with 255 is an image itself. */
#include "plot/colors.h"
#include "plot/strips.h"
#include "store/image.h"
#include "store/index.h"
#include "store/track_rows.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/images.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_BASES = 6, CHANGE = 8 };

static struct base {
    uint8_t *bytes;
    size_t size;
} bases[N_BASES];

/* ---- good images ---- */

struct views {
    struct sv_track_rows *rows;
    struct sv_strips *strips;
    struct sv_colors colors;
};

static void make_views(struct views *v, const struct sv_trace *t)
{
    v->rows = sv_track_rows_new(t);
    v->strips = sv_strips_new(v->rows);
    sv_colors_init(&v->colors, t, NULL);
}

static void free_views(struct views *v)
{
    sv_colors_fini(&v->colors);
    sv_strips_free(v->strips);
    sv_track_rows_free(v->rows);
}

static void put_views(void *ctx, struct sv_image_writer *w)
{
    const struct views *v = ctx;
    sv_track_rows_put(v->rows, w);
    sv_strips_put(v->strips, w);
    sv_colors_put(&v->colors, w);
}

static void make_base(unsigned i)
{
    static const unsigned shapes[N_BASES] = {SV_HAS_EDGES,
                                             SV_HAS_NESTED,
                                             SV_HAS_SLICES,
                                             SV_HAS_EDGES | SV_HAS_FLOW_POINTS,
                                             SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER |
                                                 SV_HAS_FLOW_POINTS,
                                             SV_HAS_SLICES};
    struct gen g;
    struct sv_err err = {0};
    struct sv_report report;
    struct views views;
    gen_make(&g, &(struct gen_options){.seed = i + 1,
                                       .n = i == 5 ? 700 : 60,
                                       .shape = shapes[i],
                                       .extras = GEN_ALL | GEN_UNMATCHED,
                                       .odd = i % 2 ? GEN_ODD_ARGS | GEN_ODD_TRACKS : 0,
                                       .n_tracks = i == 5 ? 1 : 4});
    sv_report_init(&report);
    sv_report_add(&report, SV_DAMAGE, "broken", 3, 77, "at %d", 5);
    sv_dict_set_meta(g.dict, "host", "a", 1, false);
    sv_clocks_add(&g.dict->clocks, &(struct sv_snapshot){.readings = {{1, 5}, {6, 7}}, .n = 2});
    struct sv_trace *t = sv_trace_new(g.dict, &report, 0);
    int code = gen_push(&g, sv_trace_sink(t), &err);
    assert(code == 0);
    make_views(&views, t);
    bases[i].bytes =
        image_bytes(t, &report, &(struct sv_image_key){{1}}, put_views, &views, &bases[i].size);
    assert(bases[i].bytes);
    free_views(&views);
    sv_trace_free(t);
    sv_report_fini(&report);
    gen_fini(&g);
}

/* ---- changes ---- */

static void change(uint8_t *bytes, size_t size, const uint8_t *c)
{
    struct sv_image *im = sv_image_of_bytes(bytes, size, NULL);
    const void *found = NULL;
    uint64_t n = 0, value = 0;
    size_t count = 0;
    if (!im)
        return;
    while (sv_image_section(im, count, &found, &n))
        count++;
    if (count)
        sv_image_section(im, c[0] % count, &found, &n);
    sv_image_close(im);
    uint8_t *at = bytes + ((const uint8_t *)found - bytes);
    uint64_t place = (uint64_t)c[1] << 8 | c[2], width = 1u << c[3] % 4;
    memcpy(&value, c + 4, 4);
    if (c[3] & 16)
        value = (uint64_t)(int64_t)(int32_t)value;
    place = place * width;
    if (!count || n < width)
        return;
    place %= n - width + 1;
    if (c[3] & 8) { /* added to what is there */
        uint64_t before = 0;
        memcpy(&before, at + place, width);
        value += before;
    }
    memcpy(at + place, &value, width);
    (void)sv_image_seal(bytes, size);
}

/* ---- walks ---- */

static void walk_args(const struct sv_trace *t)
{
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    struct sv_arg found;
    uint64_t sum = 0;
    sv_batch_init(scratch);
    for (uint64_t i = 0; i < t->slices.n; i++) {
        size_t n;
        const struct sv_arg *args = sv_trace_args(t, t->slices.args[i], scratch, &n);
        for (size_t k = 0; k < n; k++) {
            sum += sv_dict_text(t->dict, args[k].key).len;
            for (size_t b = 0; args[k].type == SV_ARG_TEXT && b < args[k].size; b++)
                sum += (uint8_t)args[k].text[b];
        }
        (void)sv_trace_arg_of_type(t, t->slices.args[i], SV_ARG_CORRELATION, &found);
        (void)sv_trace_arg(t, t->slices.args[i], 1, &found);
        sv_batch_reset(scratch);
    }
    volatile uint64_t kept = sum;
    (void)kept;
    sv_batch_fini(scratch);
    free(scratch);
}

static void walk_rows(const struct sv_trace *t)
{
    struct sv_index *x = sv_index_new(t);
    for (uint32_t row = 0; row < t->slices.n; row++) {
        uint64_t first;
        size_t n;
        for (uint32_t up = row; up != SV_NO_ROW; up = t->slices.parent[up])
            assert(t->slices.track[up] == t->slices.track[row]);
        (void)sv_trace_flows_out(t, row, &first);
        (void)sv_trace_flows_in(t, row, &first);
        (void)sv_index_children(x, row, &n);
        (void)sv_trace_slice_at(t, t->slices.track[row], t->slices.ts_ns[row]);
        struct sv_window w =
            sv_trace_window(t, t->slices.track[row], t->slices.ts_ns[row], t->last_ns);
        for (uint32_t next; sv_window_next(&w, &next);)
            assert(next < t->slices.n);
    }
    (void)sv_index_names(x);
    (void)sv_index_order(x);
    (void)sv_index_counter_order(x);
    sv_index_free(x);
}

static void walk_views(const struct sv_trace *t)
{
    struct views v;
    struct sv_strip_items items = {0};
    struct sv_strip_points points = {0};
    uint64_t sum = 0;
    make_views(&v, t);
    for (size_t row = 0; row < v.rows->n; row++)
        for (unsigned zoom = 0; zoom < 3; zoom++) {
            uint64_t span = ((uint64_t)t->last_ns - (uint64_t)t->first_ns) >> (zoom * 4);
            struct sv_pixels px = {
                .from_ns = t->first_ns,
                .to_ns = (int64_t)((uint64_t)t->first_ns + (span < INT64_MAX ? span : INT64_MAX)),
                .width = 20,
                .right = 20};
            if (px.to_ns <= px.from_ns)
                continue;
            if (v.rows->items[row].lines)
                sv_strips_row(v.strips, row, &px, 0, 8, &items);
            else
                sv_strips_counter(v.strips, row, &px, &points);
            sum += sv_strips_busy_ns(v.strips, row);
        }
    for (uint64_t i = 0; i < t->slices.n; i++)
        sum += sv_color_of(&v.colors, i);
    volatile uint64_t kept = sum;
    (void)kept;
    sv_strip_items_fini(&items);
    free(points.items);
    free_views(&v);
}

/* Out of the store and into another one. */
static void walk_events(const struct sv_trace *t)
{
    struct sv_report report;
    struct sv_err err = {0};
    sv_report_init(&report);
    struct sv_trace *again = sv_trace_new(t->dict, &report, 0);
    (void)sv_pump(sv_trace_source(t, &report), sv_trace_sink(again), NULL, &err);
    sv_trace_free(again);
    sv_report_fini(&report);
}

static void open_and_walk(const uint8_t *bytes, size_t size, unsigned how)
{
    struct sv_image *im = sv_image_of_bytes(bytes, size, NULL);
    if (!im)
        return;
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    sv_report_init(&report);
    struct sv_trace *t = sv_trace_of_image(im, dict, &report, how);
    if (t && sv_trace_check(t, 0, NULL, NULL)) {
        walk_args(t);
        walk_rows(t);
        walk_views(t);
        walk_events(t);
        sv_dict_cstr(dict, "new");
    }
    sv_trace_free(t);
    sv_report_fini(&report);
    sv_dict_free(dict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    for (unsigned i = 0; !bases[N_BASES - 1].bytes && i < N_BASES; i++)
        make_base(i);
    const struct base *b = &bases[data[0] % N_BASES];
    bool is_raw = data[0] == 255;
    size_t n = is_raw ? size - 1 : b->size;
    uint8_t *bytes = sv_alloc(n ? n : 1);
    if (n)
        memcpy(bytes, is_raw ? data + 1 : b->bytes, n);
    for (size_t at = 1; !is_raw && at + CHANGE <= size; at += CHANGE)
        change(bytes, n, data + at);
    open_and_walk(bytes, n, data[0] & 128 ? SV_IMAGE_QUICK : 0);
    free(bytes);
    return 0;
}
