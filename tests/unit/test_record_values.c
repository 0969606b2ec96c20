/* Sampled values as counters: whole numbers as such, as many as a batch holds at once. */
#include "record/decode/values.h"
#include "tests/harness/test.h"

TEST(values_are_whole_numbers_where_they_can_be)
{
    static const struct {
        double v;
        bool is_whole;
    } rows[] = {{0, true},     {7, true},        {7.5, false},  {-1, false},
                {1e15, false}, {1e15 - 1, true}, {0.25, false}, {1e300, false}};
    static struct sv_batch b;
    struct sv_values v = {0};
    sv_batch_init(&b);
    for (int again = 0; again < 2; again++) { /* a round begins without those before */
        sv_batch_reset(&b);
        sv_values_begin(&v, 100 + again);
        for (size_t i = 0; i < TEST_COUNT(rows); i++)
            sv_values_put(&v, (sv_track)i, rows[i].v);
        REQUIRE(sv_values_next(&v, &b) == TEST_COUNT(rows));
        for (size_t i = 0; i < TEST_COUNT(rows); i++) {
            const struct sv_event *e = &b.events[i];
            CONTEXT("row %zu", i);
            CHECK_UINT_EQ(e->track, i);
            CHECK_INT_EQ(e->ts_ns, 100 + again);
            CHECK_INT_EQ(e->kind, SV_COUNTER);
            REQUIRE(e->n_args == 1);
            CHECK_INT_EQ(e->args[0].type, rows[i].is_whole ? SV_ARG_INT : SV_ARG_DOUBLE);
            if (rows[i].is_whole)
                CHECK_INT_EQ(e->args[0].i, (int64_t)rows[i].v);
            else
                CHECK(e->args[0].d == rows[i].v);
        }
    }
    sv_values_fini(&v);
    sv_batch_fini(&b);
}

TEST(more_values_than_a_batch_holds_come_in_several)
{
    static struct sv_batch b;
    struct sv_values v = {0};
    sv_batch_init(&b);
    sv_values_begin(&v, 1);
    for (int i = 0; i < SV_BATCH + 3; i++)
        sv_values_put(&v, 1, i);
    CHECK_INT_EQ(sv_values_next(&v, &b), SV_BATCH);
    sv_batch_reset(&b);
    CHECK_INT_EQ(sv_values_next(&v, &b), 3);
    CHECK_INT_EQ(b.events[2].args[0].i, SV_BATCH + 2);
    sv_batch_reset(&b);
    CHECK_INT_EQ(sv_values_next(&v, &b), 0);
    sv_values_fini(&v);
    sv_batch_fini(&b);
}
