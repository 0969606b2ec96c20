/* Self time, percentiles and statistics against plain references. */
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "stats/self.h"
#include "stats/stats.h"
#include "store/index.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct sv_trace *store(struct gen *g, const struct gen_options *options)
{
    struct sv_err err;
    sv_err_clear(&err);
    gen_make(g, options);
    struct sv_trace *t = sv_trace_new(g->dict, NULL, 0);
    REQUIRE(gen_push(g, sv_trace_sink(t), &err) == 0);
    return t;
}

static int64_t length(const struct sv_trace *t, uint64_t row)
{
    return sv_trace_end_ns(t, row) - t->slices.ts_ns[row];
}

/* The slow way: every nanosecond that no child of `row` covers. */
static int64_t slow_self(const struct sv_trace *t, uint32_t row)
{
    int64_t self = 0, from = t->slices.ts_ns[row], to = sv_trace_end_ns(t, row);
    for (int64_t ns = from; ns < to; ns++) {
        bool is_covered = false;
        for (uint32_t k = 0; k < t->slices.n && !is_covered; k++)
            is_covered = t->slices.parent[k] == row && t->slices.ts_ns[k] <= ns &&
                         sv_trace_end_ns(t, k) > ns;
        self += !is_covered;
    }
    return self;
}

/* ---- constructed ---- */

struct piece {
    unsigned track;
    int64_t ts, dur;
    int64_t self;
};

static void check_pieces(const struct piece *p, size_t n, bool has_lane)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_err err;
    sv_err_clear(&err);
    sv_track tracks[3] = {0, sv_dict_thread(d, 0, 1, 1)};
    tracks[2] = has_lane ? sv_dict_child(d, tracks[1], SV_TRACK_LANE, sv_dict_cstr(d, "#2"))
                         : sv_dict_thread(d, 0, 1, 2);
    struct sv_trace *t = sv_trace_new(d, NULL, 0);
    struct sv_sink *s = sv_trace_sink(t);
    for (size_t i = 0; i < n; i++) {
        struct sv_event e = {
            .ts_ns = p[i].ts, .dur_ns = p[i].dur, .track = tracks[p[i].track], .kind = SV_SLICE};
        REQUIRE(s->write(s, &e, 1, &err) == 0);
    }
    REQUIRE(s->close(s, false, &err) == 0);
    int64_t *self = sv_self_times(t);
    for (size_t i = 0; i < n; i++) {
        CONTEXT("slice %zu", i);
        CHECK_INT_EQ(self[i], p[i].self);
        CHECK_INT_EQ(sv_self_time(t, (uint32_t)i), p[i].self);
    }
    free(self);
    sv_trace_free(t);
    sv_dict_free(d);
}

TEST(self_time_of_nested_slices)
{
    static const struct piece p[] = {
        {1, 0, 100, 50}, {1, 10, 30, 20}, {1, 15, 10, 10}, {1, 50, 20, 20}, {1, 200, 5, 5}};
    check_pieces(p, TEST_COUNT(p), false);
}

/* Two children overlap: what both cover counts once. */
TEST(self_time_under_overlapping_children)
{
    static const struct piece p[] = {{1, 0, 100, 40}, {1, 10, 40, 40}, {1, 30, 40, 40}};
    check_pieces(p, TEST_COUNT(p), false);
}

/* The second child was moved to a lane: the parent's self time is the same as without. */
TEST(self_time_across_lanes)
{
    static const struct piece p[] = {{1, 0, 100, 40}, {1, 10, 40, 40}, {2, 30, 40, 40}};
    check_pieces(p, TEST_COUNT(p), true);
}

TEST(another_thread_takes_nothing)
{
    static const struct piece p[] = {{1, 0, 100, 60}, {1, 10, 40, 40}, {2, 30, 40, 40}};
    check_pieces(p, TEST_COUNT(p), false);
}

/* ---- random ---- */

TEST(self_time_agrees_with_the_slow_way)
{
    static const unsigned shapes[] = {SV_HAS_EDGES, SV_HAS_NESTED, SV_HAS_SLICES};
    for (size_t i = 0; i < TEST_COUNT(shapes); i++) {
        struct gen g;
        struct sv_trace *t = store(
            &g, &(struct gen_options){.seed = 11 + i, .n = 120, .n_tracks = 2, .shape = shapes[i]});
        int64_t *self = sv_self_times(t);
        for (uint32_t row = 0; row < t->slices.n; row++) {
            CONTEXT("shape %u row %u", shapes[i], row);
            CHECK_INT_EQ(sv_self_time(t, row), self[row]);
            if (length(t, row) < 20000)
                CHECK_INT_EQ(self[row], slow_self(t, row));
        }
        free(self);
        sv_trace_free(t);
        gen_fini(&g);
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

TEST(percentiles_agree_with_sorting)
{
    struct rng r = {77};
    for (size_t n = 1; n < 200; n++) {
        int64_t v[200], sorted[200];
        uint64_t range = n % 3 == 0 ? 4 : 1000000;
        for (size_t i = 0; i < n; i++)
            v[i] = n % 7 == 0 ? (int64_t)i : (int64_t)rng_below(&r, range);
        memcpy(sorted, v, sizeof v);
        qsort(sorted, n, sizeof *sorted, by_number);
        for (unsigned sixteenth = 0; sixteenth <= 16; sixteenth++) {
            double p = sixteenth / 16.0;
            double at = p * (double)(n - 1);
            size_t k = (size_t)floor(at), next = k + 1 < n ? k + 1 : k;
            CONTEXT("n %zu p %f", n, p);
            CHECK_DOUBLE_EQ(sv_percentile(v, n, p),
                            (double)sorted[k] +
                                (at - floor(at)) * (double)(sorted[next] - sorted[k]));
        }
    }
}

TEST(groups_add_up_and_agree_with_counting)
{
    static const unsigned all[] = {SV_BY_NAME, SV_BY_CAT, SV_BY_TRACK, SV_BY_NAME | SV_BY_TRACK,
                                   SV_BY_NAME | SV_BY_CAT | SV_BY_TRACK};
    struct gen g;
    struct sv_trace *t = store(
        &g, &(struct gen_options){.seed = 5, .n = 3000, .shape = SV_HAS_NESTED, .extras = GEN_ALL});
    int64_t *self = sv_self_times(t);
    for (size_t i = 0; i < TEST_COUNT(all); i++) {
        struct sv_stats s;
        sv_stats_make(&s, t, self, NULL, all[i]);
        for (size_t k = 0; k < s.n; k++) {
            const struct sv_stat *x = &s.groups[k];
            uint64_t count = 0;
            int64_t total = 0, own = 0;
            for (uint64_t row = 0; row < t->slices.n; row++) {
                if (t->slices.kind[row] != SV_SLICE ||
                    (all[i] & SV_BY_NAME && t->slices.name[row] != x->name) ||
                    (all[i] & SV_BY_CAT && t->slices.cat[row] != x->cat) ||
                    (all[i] & SV_BY_TRACK && t->slices.track[row] != x->track))
                    continue;
                count++;
                total += length(t, row);
                own += self[row];
            }
            CONTEXT("by %u group %zu", all[i], k);
            CHECK_UINT_EQ(x->count, count);
            CHECK_INT_EQ(x->total_ns, total);
            CHECK_INT_EQ(x->self_ns, own);
            CHECK(x->min_ns <= (int64_t)x->p50_ns && (int64_t)x->p99_ns <= x->max_ns);
        }
        sv_stats_fini(&s);
    }
    free(self);
    sv_trace_free(t);
    gen_fini(&g);
}

TEST(selections_are_refused_or_obeyed)
{
    struct gen g;
    struct sv_trace *t =
        store(&g, &(struct gen_options){.seed = 6, .n = 500, .shape = SV_HAS_NESTED});
    struct sv_select s;
    struct sv_err err;
    sv_err_clear(&err);
    const char *bad[] = {"colour=red"}, *good[] = {"dur>=1us", "dur<=0.01ms", "name=*"};
    CHECK_INT_EQ(sv_select_init(&s, t, bad, 1, &err), SV_EUSAGE);
    sv_select_fini(&s);
    sv_err_clear(&err);
    CHECK_INT_EQ(sv_select_init(&s, t, good, 3, &err), 0);
    for (uint64_t row = 0; row < t->slices.n; row++)
        CHECK(sv_select_has(&s, row) == (length(t, row) >= 1000 && length(t, row) <= 10000));
    sv_select_fini(&s);
    sv_trace_free(t);
    gen_fini(&g);
}

/* ---- the index ---- */

TEST(ids_are_ranks_in_time_and_lead_back)
{
    static const uint64_t sizes[] = {0, 1, 50, 3000};
    for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
        struct gen g;
        struct sv_trace *t = store(
            &g, &(struct gen_options){
                    .seed = 21 + i, .n = sizes[i], .extras = GEN_ALL, .shape = SV_HAS_SLICES});
        struct sv_index *few = sv_index_new(t), *all = sv_index_new(t);
        const uint32_t *order = sv_index_order(all);
        for (uint32_t id = 0; id < t->slices.n; id++) {
            CONTEXT("size %zu id %u", (size_t)sizes[i], id);
            CHECK(id == 0 || t->slices.ts_ns[order[id - 1]] <= t->slices.ts_ns[order[id]]);
            CHECK_UINT_EQ(sv_index_id(all, order[id]), id);
            CHECK_UINT_EQ(sv_index_row(all, id), order[id]);
            if (id % 100 == 0) { /* by searching */
                CHECK_UINT_EQ(sv_index_id(few, order[id]), id);
                CHECK_UINT_EQ(sv_index_row(few, id), order[id]);
            }
        }
        CHECK_UINT_EQ(sv_index_row(all, t->slices.n), SV_NO_ROW);
        sv_index_free(few);
        sv_index_free(all);
        sv_trace_free(t);
        gen_fini(&g);
    }
}
