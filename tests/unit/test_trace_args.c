/* Arguments in the store: every list comes back as it went in, in few bytes, and single arguments
 * are found without decoding. */
#include "core/stream/args.h"
#include "store/trace.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct sv_dict *dict;
    struct sv_trace *trace;
    struct sv_sink *sink;
    sv_track track;
};

static struct bench open_bench(void)
{
    struct bench b = {.dict = sv_dict_new()};
    b.trace = sv_trace_new(b.dict, NULL, 0);
    b.sink = sv_trace_sink(b.trace);
    b.track = sv_dict_thread(b.dict, 0, 1, 1);
    return b;
}

static void write_list(struct bench *b, const struct sv_arg *args, size_t n)
{
    static int64_t now;
    struct sv_event e = {.ts_ns = now++,
                         .dur_ns = 1,
                         .track = b->track,
                         .kind = SV_SLICE,
                         .n_args = (uint16_t)n,
                         .args = args};
    struct sv_err err = {0};
    CHECK_INT_EQ(b->sink->write(b->sink, &e, 1, &err), 0);
}

static void close_bench(struct bench *b)
{
    struct sv_err err = {0};
    CHECK_INT_EQ(b->sink->close(b->sink, false, &err), 0);
}

static void free_bench(struct bench *b)
{
    sv_trace_free(b->trace);
    sv_dict_free(b->dict);
}

static bool same_arg(const struct sv_arg *a, const struct sv_arg *b)
{
    if (a->key != b->key || a->type != b->type || a->size != b->size)
        return false;
    return a->type == SV_ARG_TEXT ? memcmp(a->text, b->text, a->size) == 0 : a->u == b->u;
}

static void check_list(const struct sv_trace *t, uint64_t row, const struct sv_arg *args, size_t n)
{
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    size_t got;
    sv_batch_init(scratch);
    const struct sv_arg *list = sv_trace_args(t, t->slices.args[row], scratch, &got);
    REQUIRE(got == n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(same_arg(&list[i], &args[i]));
    sv_batch_fini(scratch);
    free(scratch);
}

#define INT(k, v)    ((struct sv_arg){.key = (k), .type = SV_ARG_INT, .i = (v)})
#define DOUBLE(k, v) ((struct sv_arg){.key = (k), .type = SV_ARG_DOUBLE, .d = (v)})
#define TEXT(k, s) \
    ((struct sv_arg){.key = (k), .type = SV_ARG_TEXT, .size = sizeof(s) - 1, .text = (s)})
#define OTHER(t, v) ((struct sv_arg){.type = (t), .u = (v)})

TEST(every_value_comes_back)
{
    const struct sv_arg lists[][4] = {
        {INT(5, 0), INT(6, -1), INT(7, INT64_MAX), INT(8, INT64_MIN)},
        {INT(5, 127), INT(6, 128), INT(7, 16383), INT(8, 16384)},
        {INT(5, 63), INT(6, -64), INT(7, 64), INT(8, -65)},
        {DOUBLE(5, 0.0), DOUBLE(6, -0.0), DOUBLE(7, 0.1), DOUBLE(8, 1e15)},
        {DOUBLE(5, -3.0), DOUBLE(6, 999999999999999.0), DOUBLE(7, 1e300), DOUBLE(8, 64.0)},
        {DOUBLE(5, 0x1p-1074), DOUBLE(6, (double)INFINITY), DOUBLE(7, (double)-INFINITY),
         DOUBLE(8, (double)NAN)},
        {TEXT(5, ""), TEXT(5, "a"), TEXT(5, "ab"), TEXT(5, "abc")},
        {TEXT(5, "abc"), TEXT(5, "abc"), TEXT(5, "with\0nul"), TEXT(9, "with\0nul")},
        {OTHER(SV_ARG_FLOW, UINT64_MAX), OTHER(SV_ARG_CORRELATION, 1u << 28),
         OTHER(SV_ARG_THREAD_TIME, 5), OTHER(SV_ARG_UINT, UINT64_MAX - 1)},
        {OTHER(SV_ARG_BOOL, 1), OTHER(SV_ARG_BOOL, 0), OTHER(SV_ARG_NULL, 0),
         OTHER(SV_ARG_POINTER, 0xdeadbeef)},
        {{.key = 5, .type = SV_ARG_DICT, .size = 3},
         {.key = 6, .type = SV_ARG_ARRAY, .size = 1},
         INT(0, 5),
         {.key = 7, .type = SV_ARG_STACK, .size = 0}},
    };
    struct bench b = open_bench();
    for (size_t i = 0; i < TEST_COUNT(lists); i++)
        for (size_t n = 1; n <= 4; n++)
            write_list(&b, lists[i], n);
    close_bench(&b);
    for (size_t i = 0, row = 0; i < TEST_COUNT(lists); i++)
        for (size_t n = 1; n <= 4; n++, row++) {
            CONTEXT("list %zu of %zu", i, n);
            check_list(b.trace, row, lists[i], n);
        }
    free_bench(&b);
}

TEST(texts_of_all_lengths_come_back_however_often)
{
    enum { LONGEST = 70000 };
    static const size_t lengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 100, 65535, 65536, LONGEST};
    char *bytes = malloc(LONGEST);
    struct bench b = open_bench();
    REQUIRE(bytes);
    for (size_t i = 0; i < LONGEST; i++)
        bytes[i] = (char)(i * 31 + i / 256);
    for (unsigned round = 0; round < 3; round++)
        for (size_t i = 0; i < TEST_COUNT(lengths); i++) {
            struct sv_arg a = {
                .key = 3, .type = SV_ARG_TEXT, .size = lengths[i] & 0xffffff, .text = bytes};
            write_list(&b, &a, 1);
        }
    close_bench(&b);
    for (size_t row = 0; row < b.trace->slices.n; row++) {
        size_t len = lengths[row % TEST_COUNT(lengths)];
        struct sv_arg a = {.key = 3, .type = SV_ARG_TEXT, .size = len & 0xffffff, .text = bytes};
        check_list(b.trace, row, &a, 1);
    }
    free(bytes);
    free_bench(&b);
}

/* More texts than the cache holds, most of them once, some again and again. */
TEST(texts_that_are_forgotten_are_stored_again)
{
    enum { N = TEST_HAS_SANITIZER ? 60000 : 300000 };
    struct bench b = open_bench();
    char text[32];
    for (int i = 0; i < N; i++) {
        int len = snprintf(text, sizeof text, i % 3 ? "unique text %d" : "common text %d",
                           i % 3 ? i : i % 50);
        struct sv_arg a = {
            .key = 3, .type = SV_ARG_TEXT, .size = (unsigned)len & 0xffffff, .text = text};
        write_list(&b, &a, 1);
    }
    close_bench(&b);
    for (int i = 0; i < N; i++) {
        int len = snprintf(text, sizeof text, i % 3 ? "unique text %d" : "common text %d",
                           i % 3 ? i : i % 50);
        struct sv_arg a = {
            .key = 3, .type = SV_ARG_TEXT, .size = (unsigned)len & 0xffffff, .text = text};
        check_list(b.trace, (uint64_t)i, &a, 1);
    }
    CHECK(sv_trace_args_bytes(b.trace) < N * 20);
    free_bench(&b);
}

/* A list that is met again after its text was forgotten: nothing may refer to the copy that is not
 * kept. */
TEST(lists_with_forgotten_texts_are_not_given_away)
{
    struct bench b = open_bench();
    struct sv_arg list[] = {TEXT(7, "text that is forgotten")}, other[60];
    char texts[60][32];
    write_list(&b, list, 1);
    for (unsigned i = 0; i < 4000; i++) {
        for (unsigned j = 0; j < 60; j++) {
            int len = snprintf(texts[j], sizeof texts[j], "filler %u %u", i, j);
            other[j] = (struct sv_arg){
                .type = SV_ARG_TEXT, .size = (unsigned)len & 0xffffff, .text = texts[j]};
        }
        write_list(&b, other, 60);
    }
    for (unsigned i = 0; i < 4; i++)
        write_list(&b, list, 1);
    write_list(&b, other, 60);
    close_bench(&b);
    check_list(b.trace, 0, list, 1);
    for (uint64_t row = 4001; row < 4005; row++)
        check_list(b.trace, row, list, 1);
    check_list(b.trace, 4005, other, 60);
    free_bench(&b);
}

TEST(long_lists_of_begin_and_end_are_joined)
{
    enum { N = 30000 };
    struct bench b = open_bench();
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    struct sv_arg *args = calloc(N, sizeof *args);
    struct sv_err err = {0};
    REQUIRE(args);
    sv_batch_init(scratch);
    for (uint32_t i = 0; i < N; i++)
        args[i] = INT(i + 1, i);
    struct sv_event edges[] = {
        {.ts_ns = 1, .track = b.track, .kind = SV_BEGIN, .args = args, .n_args = N},
        {.ts_ns = 2, .track = b.track, .kind = SV_END, .args = args + 10, .n_args = N - 10}};
    CHECK_INT_EQ(b.sink->write(b.sink, edges, 2, &err), 0);
    close_bench(&b);
    size_t n;
    const struct sv_arg *got = sv_trace_args(b.trace, b.trace->slices.args[0], scratch, &n);
    CHECK_UINT_EQ(n, N);
    for (size_t i = 0; i < n; i++)
        REQUIRE(same_arg(&got[i], &args[i]));
    sv_batch_fini(scratch);
    free(scratch);
    free(args);
    free_bench(&b);
}

/* More shapes than are kept, and lists too long for one. */
TEST(lists_without_a_shape_come_back)
{
    enum { N = 70000 };
    struct bench b = open_bench();
    struct sv_arg *many = calloc(SV_ARGS_MAX, sizeof *many);
    REQUIRE(many);
    for (uint32_t i = 0; i < N; i++) {
        struct sv_arg list[] = {INT(1 + i, i), TEXT(1 + i, "text")};
        write_list(&b, list, 2);
    }
    for (uint32_t i = 0; i < SV_ARGS_MAX; i++)
        many[i] = i % 2 ? INT(i, i) : TEXT(i, "text");
    many[0] = (struct sv_arg){.key = 1, .type = SV_ARG_DICT, .size = SV_ARGS_MAX - 1};
    static const size_t lengths[] = {63, 64, 65, SV_ARGS_MAX};
    for (size_t i = 0; i < TEST_COUNT(lengths); i++)
        write_list(&b, many, lengths[i]);
    close_bench(&b);
    for (uint32_t i = 0; i < N; i += 99) {
        struct sv_arg list[] = {INT(1 + i, i), TEXT(1 + i, "text")};
        check_list(b.trace, i, list, 2);
    }
    for (size_t i = 0; i < TEST_COUNT(lengths); i++)
        check_list(b.trace, N + i, many, lengths[i]);
    free(many);
    free_bench(&b);
}

TEST(equal_lists_are_kept_once)
{
    struct bench b = open_bench();
    struct sv_arg list[] = {INT(3, 12), TEXT(4, "layer norm")};
    for (unsigned i = 0; i < 1000; i++)
        write_list(&b, list, 2);
    close_bench(&b);
    CHECK_UINT_EQ(b.trace->slices.args[10], b.trace->slices.args[999]);
    CHECK(sv_trace_args_bytes(b.trace) < 2000);
    free_bench(&b);
}

/* The promise for files of profilers: about 250 bytes of JSON with ten arguments take at most 80
 * bytes. */
TEST(ten_arguments_take_few_bytes)
{
    enum { N = 20000 };
    struct bench b = open_bench();
    char hash[24];
    for (int64_t i = 0; i < N; i++) {
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)i * 0x9e3779b97f4a7c15ull);
        struct sv_arg list[] = {
            INT(1, i),
            INT(2, i * 3),
            INT(3, i % 8),
            INT(4, 1),
            INT(5, 7),
            DOUBLE(6, (double)i / 132),
            DOUBLE(7, (double)i / 7),
            TEXT(8, "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor>"),
            {.key = 9, .type = SV_ARG_ARRAY, .size = 3},
            INT(0, i % 1000),
            INT(0, 1),
            INT(0, 1),
            {.key = 10, .type = SV_ARG_TEXT, .size = 16, .text = hash}};
        write_list(&b, list, TEST_COUNT(list));
    }
    close_bench(&b);
    CHECK(sv_trace_args_bytes(b.trace) < N * 60);
    free_bench(&b);
}

TEST(single_arguments_are_found_on_the_top_level)
{
    const struct sv_arg list[] = {INT(1, 10),
                                  {.key = 2, .type = SV_ARG_DICT, .size = 2},
                                  INT(3, 30),
                                  TEXT(4, "inner"),
                                  TEXT(5, "outer"),
                                  INT(3, 31),
                                  OTHER(SV_ARG_CORRELATION, 77)};
    struct bench b = open_bench();
    struct sv_arg a;
    write_list(&b, list, TEST_COUNT(list));
    close_bench(&b);
    uint32_t handle = b.trace->slices.args[0];
    CHECK(sv_trace_arg(b.trace, handle, 1, &a) && a.i == 10);
    CHECK(sv_trace_arg(b.trace, handle, 2, &a) && a.type == SV_ARG_DICT && a.size == 2);
    CHECK(sv_trace_arg(b.trace, handle, 3, &a) && a.i == 31);
    CHECK(!sv_trace_arg(b.trace, handle, 4, &a));
    CHECK(sv_trace_arg(b.trace, handle, 5, &a) && memcmp(a.text, "outer", 5) == 0);
    CHECK(!sv_trace_arg(b.trace, handle, 0, &a));
    CHECK(!sv_trace_arg(b.trace, 0, 1, &a));
    CHECK(sv_trace_arg_of_type(b.trace, handle, SV_ARG_CORRELATION, &a) && a.u == 77);
    CHECK(!sv_trace_arg_of_type(b.trace, handle, SV_ARG_FLOW, &a));
    free_bench(&b);
}

/* What is found in the arguments of a begin and an end is what decoding them gives. */
TEST(single_arguments_of_joined_lists_agree_with_decoding)
{
    struct gen g;
    struct sv_err err = {0};
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    gen_make(&g,
             &(struct gen_options){.seed = 3, .n = 3000, .shape = SV_HAS_EDGES, .extras = GEN_ALL});
    sv_batch_init(scratch);
    struct sv_trace *t = sv_trace_new(g.dict, NULL, 0);
    CHECK_INT_EQ(gen_push(&g, sv_trace_sink(t), &err), 0);
    for (uint64_t row = 0; row < t->slices.n; row++) {
        size_t n;
        struct sv_arg found;
        uint32_t handle = t->slices.args[row];
        const struct sv_arg *args = sv_trace_args(t, handle, scratch, &n);
        for (const struct sv_arg *a = args; a < args + n; a = sv_arg_next(a))
            REQUIRE(a->key ? sv_trace_arg(t, handle, a->key, &found) && same_arg(a, &found)
                           : sv_trace_arg_of_type(t, handle, a->type, &found));
        sv_batch_reset(scratch);
    }
    sv_trace_free(t);
    sv_batch_fini(scratch);
    free(scratch);
    gen_fini(&g);
}
