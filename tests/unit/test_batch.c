/* Batches: lists that move while they grow, and lists beyond the limit. */
#include "core/stream/batch.h"
#include "tests/harness/test.h"

TEST(finished_lists_stay_while_later_ones_grow)
{
    struct sv_batch b;
    sv_batch_init(&b);
    for (int64_t n = 0; n < 200; n++) {
        struct sv_event *e = sv_batch_event(&b);
        size_t top = sv_batch_open(&b, 1, SV_ARG_DICT);
        for (int64_t i = 0; i < n; i++) {
            struct sv_arg *a = sv_batch_arg(&b);
            a->key = 2;
            a->type = SV_ARG_INT;
            a->i = n * 1000 + i;
        }
        sv_batch_close(&b, top);
        CHECK(sv_batch_finish(&b, e));
    }
    for (int64_t n = 0; n < 200; n++) {
        const struct sv_event *e = &b.events[n];
        CHECK_INT_EQ(e->n_args, n + 1);
        CHECK_INT_EQ(e->args[0].size, n);
        for (int64_t i = 0; i < n; i++)
            CHECK_INT_EQ(e->args[i + 1].i, n * 1000 + i);
    }
    sv_batch_fini(&b);
}

TEST(more_arguments_than_fit_are_cut_and_reported)
{
    struct sv_batch b;
    sv_batch_init(&b);
    struct sv_event *e = sv_batch_event(&b);
    size_t top = sv_batch_open(&b, 1, SV_ARG_ARRAY);
    for (int64_t i = 0; i < 100000; i++) {
        struct sv_arg *a = sv_batch_arg(&b);
        a->type = SV_ARG_INT;
        a->i = i;
    }
    sv_batch_close(&b, top);
    CHECK(!sv_batch_finish(&b, e));
    CHECK_UINT_EQ(e->n_args, SV_ARGS_MAX);
    CHECK(sv_arg_next(e->args) == e->args + e->n_args);
    CHECK_INT_EQ(e->args[SV_ARGS_MAX - 1].i, SV_ARGS_MAX - 2);
    struct sv_event *next = sv_batch_event(&b);
    sv_batch_arg(&b)->type = SV_ARG_NULL;
    CHECK(sv_batch_finish(&b, next));
    CHECK_UINT_EQ(next->n_args, 1);
    sv_batch_fini(&b);
}
