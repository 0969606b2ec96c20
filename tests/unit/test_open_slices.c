/* What is open on a track: the lists of changes against the definition, which climbs from the last
 * slice that began. */
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "why/open_slices.h"

static uint32_t last_before(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    uint32_t found = SV_NO_ROW;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++)
        if (t->slices.kind[row] == SV_SLICE && t->slices.dur_ns[row] != 0 &&
            t->slices.ts_ns[row] < ts_ns)
            found = row;
    return found;
}

static struct sv_open_view look(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    struct sv_open_view v = {.row = last_before(t, track, ts_ns), .since_ns = INT64_MIN};
    v.last = v.row;
    for (; v.row != SV_NO_ROW && sv_trace_end_ns(t, v.row) < ts_ns; v.row = t->slices.parent[v.row])
        if (sv_trace_end_ns(t, v.row) > v.since_ns)
            v.since_ns = sv_trace_end_ns(t, v.row);
    if (v.row != SV_NO_ROW && t->slices.ts_ns[v.row] >= v.since_ns) {
        v.since_ns = t->slices.ts_ns[v.row];
        v.begins = true;
    }
    return v;
}

static void check_at(struct sv_open_slices *o, sv_track track, int64_t ts_ns)
{
    struct sv_open_view is = sv_open_slice(o, track, ts_ns), want = look(o->trace, track, ts_ns);
    CONTEXT("track %u at %lld", track, (long long)ts_ns);
    CHECK_UINT_EQ(is.row, want.row);
    CHECK_INT_EQ(is.since_ns, want.since_ns);
    CHECK_INT_EQ(is.begins, want.begins);
    CHECK_UINT_EQ(is.last, want.last);
}

static void check_trace(const struct sv_trace *t)
{
    struct sv_open_slices o;
    sv_open_slices_init(&o, t);
    for (uint32_t row = 0; row < t->slices.n; row++) {
        int64_t begin = t->slices.ts_ns[row], end = sv_trace_end_ns(t, row);
        for (int64_t d = -1; d <= 1; d++) {
            check_at(&o, t->slices.track[row], begin + d);
            check_at(&o, t->slices.track[row], end + d);
        }
    }
    for (sv_track track = 0; track < t->n_tracks; track++) {
        check_at(&o, track, INT64_MIN);
        check_at(&o, track, INT64_MAX);
    }
    sv_open_slices_fini(&o);
}

TEST(lists_of_changes_say_what_climbing_says)
{
    static const unsigned shapes[] = {SV_HAS_NESTED, SV_HAS_SLICES, SV_HAS_EDGES};
    for (uint64_t seed = 1; seed < 13; seed++) {
        struct gen g;
        struct sv_err err;
        sv_err_clear(&err);
        gen_make(&g, &(struct gen_options){
                         .seed = seed, .n = 150, .shape = shapes[seed % 3], .extras = GEN_ALL});
        struct sv_trace *t = sv_trace_new(g.dict, NULL, 0);
        REQUIRE(gen_push(&g, sv_trace_sink(t), &err) == 0);
        check_trace(t);
        sv_trace_free(t);
        gen_fini(&g);
    }
}
