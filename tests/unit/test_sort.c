/* The sort stage and its sorter: order and ties, memory against spilled runs, failures. */
#include "core/base/search.h"
#include "core/stream/sorter.h"
#include "core/stream/stages.h"

#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

/* The law in its plainest form: rank, then order of arrival. */
struct numbered {
    struct sv_event e;
    size_t i;
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    struct sv_rank p = sv_rank_of(x->e.ts_ns, sv_flow_mark(&x->e), x->e.kind);
    struct sv_rank q = sv_rank_of(y->e.ts_ns, sv_flow_mark(&y->e), y->e.kind);
    if (sv_rank_before(p, q))
        return -1;
    return sv_rank_before(q, p) ? 1 : x->i < y->i ? -1 : 1;
}

static struct sv_event *reference(const struct sv_event *events, size_t n)
{
    struct numbered *items = sv_alloc(n * sizeof *items);
    struct sv_event *out = sv_alloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct numbered){events[i], i};
    if (n)
        qsort(items, n, sizeof *items, compare_numbered);
    for (size_t i = 0; i < n; i++)
        out[i] = items[i].e;
    free(items);
    return out;
}

static void check_sorted(struct gen *g, size_t memory_bytes)
{
    struct collect c = {0};
    struct sv_err err = {0};
    CHECK_INT_EQ(
        gen_push(g, sv_sort_new(g->dict, memory_bytes, collect_sink(&c, SV_HAS_ANYTHING)), &err),
        0);
    struct sv_event *expected = reference(g->events, g->n);
    struct sv_buf got, want;
    sv_buf_init(&got, SIZE_MAX);
    sv_buf_init(&want, SIZE_MAX);
    CHECK_UINT_EQ(c.n, g->n);
    CHECK(c.closed && !c.failed);
    CHECK(strcmp(dump(&got, g->dict, c.events, c.n), dump(&want, g->dict, expected, g->n)) == 0);
    sv_buf_fini(&got);
    sv_buf_fini(&want);
    free(expected);
    collect_fini(&c);
}

#define ALL_SHAPES (SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_FLOW_POINTS | SV_IN_NO_ORDER)

TEST(random_events_in_memory_and_spilled)
{
    static const size_t sizes[] = {0, 1, 2, 3, 15, 40, 300, 3000, 20000};
    for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
        for (unsigned disorder = 0; disorder < 2; disorder++) {
            struct gen g;
            unsigned shape = disorder ? ALL_SHAPES : ALL_SHAPES & ~SV_ORDER_BITS;
            gen_make(&g, &(struct gen_options){
                             .seed = i, .n = sizes[i], .shape = shape, .extras = GEN_ALL});
            CONTEXT("%zu events, disorder %u, in memory", sizes[i], disorder);
            check_sorted(&g, 0);
            CONTEXT("%zu events, disorder %u, spilled", sizes[i], disorder);
            check_sorted(&g, 1);
            gen_fini(&g);
        }
    }
}

static struct sv_event at(int64_t ts_ns, unsigned kind, int64_t dur_ns, sv_str name)
{
    return (struct sv_event){
        .ts_ns = ts_ns, .dur_ns = dur_ns, .kind = (uint8_t)kind, .name = name, .track = 1};
}

static void check_names(const struct sv_event *events, size_t n, const char *expected)
{
    struct collect c = {0};
    struct sv_dict *dict = sv_dict_new();
    struct sv_err err = {0};
    CHECK_INT_EQ(
        push_events(events, n, sv_sort_new(dict, 0, collect_sink(&c, SV_HAS_ANYTHING)), &err), 0);
    char got[64] = "";
    for (size_t i = 0; i < c.n && i < 60; i++)
        got[i] = (char)('a' + (int)c.events[i].name);
    CHECK_STR_EQ(got, expected);
    collect_fini(&c);
    sv_dict_free(dict);
}

TEST(ties)
{
    const struct sv_event events[] = {
        at(10, SV_FLOW, 0, 0),     at(10, SV_SLICE, 5, 1),
        at(10, SV_END, 0, 2),      at(10, SV_SLICE, SV_UNFINISHED, 3),
        at(10, SV_BEGIN, 0, 4),    at(10, SV_SLICE, 5, 5),
        at(10, SV_COUNTER, 0, 6),  at(10, SV_SLICE, 0, 7),
        at(10, SV_INSTANT, 0, 8),  at(10, SV_SLICE, INT64_MAX, 9),
        at(10, SV_LOSS, 1000, 10), at(10, SV_FLOW, 0, 11),
        at(9, SV_FLOW, 0, 12),     at(11, SV_END, 0, 13),
        at(10, SV_SLICE, -7, 14), /* not a duration at all: taken as empty */
    };
    check_names(events, TEST_COUNT(events), "mcegikdjbfhoaln");
}

TEST(times_at_the_edges_of_int64)
{
    const struct sv_event events[] = {
        at(INT64_MAX, SV_INSTANT, 0, 0), at(0, SV_INSTANT, 0, 1),
        at(INT64_MIN, SV_INSTANT, 0, 2), at(-1, SV_INSTANT, 0, 3),
        at(INT64_MAX, SV_SLICE, 5, 4),   at(INT64_MIN, SV_INSTANT, 0, 5),
    };
    check_names(events, TEST_COUNT(events), "cfdbae");
}

TEST(one_nanosecond_is_disorder)
{
    const struct sv_event events[] = {
        at(10, SV_INSTANT, 0, 0), at(9, SV_INSTANT, 0, 1),  at(11, SV_INSTANT, 0, 2),
        at(10, SV_INSTANT, 0, 3), at(11, SV_INSTANT, 0, 4),
    };
    for (size_t n = 2; n <= TEST_COUNT(events); n++)
        check_names(events, n, (const char *const[]){"ba", "bac", "badc", "badce"}[n - 2]);
}

TEST(many_slices_at_one_moment)
{
    enum { N = 5000 };
    struct sv_event *events = sv_alloc(N * sizeof *events);
    struct rng rng = {.state = 3};
    for (size_t i = 0; i < N; i++)
        events[i] = at(7, SV_SLICE, (int64_t)rng_below(&rng, 50), 0);
    struct collect c = {0};
    struct sv_dict *dict = sv_dict_new();
    struct sv_err err = {0};
    CHECK_INT_EQ(
        push_events(events, N, sv_sort_new(dict, 0, collect_sink(&c, SV_HAS_ANYTHING)), &err), 0);
    CHECK_UINT_EQ(c.n, N);
    for (size_t i = 1; i < c.n; i++)
        if (!CHECK(c.events[i - 1].dur_ns >= c.events[i].dur_ns))
            break;
    collect_fini(&c);
    sv_dict_free(dict);
    free(events);
}

TEST(an_event_larger_than_all_memory_is_spilled_and_read_back)
{
    enum { TEXT = 3 << 20 };
    char *text = malloc(TEXT);
    memset(text, 'x', TEXT);
    struct sv_arg arg = {.key = 1, .type = SV_ARG_TEXT, .size = TEXT, .text = text};
    struct sv_event events[6];
    for (size_t i = 0; i < TEST_COUNT(events); i++) {
        events[i] = at(100 - (int64_t)i, SV_INSTANT, 0, (sv_str)i);
        if (i % 2) {
            events[i].args = &arg;
            events[i].n_args = 1;
        }
    }
    struct collect c = {0};
    struct sv_dict *dict = sv_dict_new();
    struct sv_err err = {0};
    CHECK_INT_EQ(
        push_events(events, 6, sv_sort_new(dict, 1, collect_sink(&c, SV_HAS_ANYTHING)), &err), 0);
    REQUIRE(c.n == 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_UINT_EQ(c.events[i].name, 5 - i);
        CHECK_UINT_EQ(c.events[i].n_args, c.events[i].name % 2);
        if (c.events[i].n_args)
            CHECK_MEM_EQ(c.events[i].args[0].text, text, TEXT);
    }
    collect_fini(&c);
    sv_dict_free(dict);
    free(text);
}

/* What a sorter holds stays near its limit, whatever comes. */
TEST(memory_stays_bounded)
{
    enum { LIMIT = 1 << 20 };
    struct sv_sorter *s = sv_sorter_new(LIMIT);
    struct sv_event batch[SV_BATCH];
    struct rng rng = {.state = 9};
    size_t worst = 0, total = 0;
    for (unsigned round = 0; round < 1000; round++) {
        for (size_t i = 0; i < SV_BATCH; i++)
            batch[i] = at((int64_t)(rng_next(&rng) >> 20), SV_BEGIN, 0, 1);
        REQUIRE(sv_sorter_add(s, batch, SV_BATCH, NULL) == 0);
        worst = sv_sorter_bytes(s) > worst ? sv_sorter_bytes(s) : worst;
    }
    CHECK(worst <= LIMIT);
    REQUIRE(sv_sorter_finish(s, 0, NULL) == 0);
    int64_t last = INT64_MIN;
    bool ordered = true;
    for (int n; (n = sv_sorter_next(s, batch, SV_BATCH, NULL)) > 0; total += (size_t)n)
        for (int i = 0; i < n; i++) {
            ordered &= batch[i].ts_ns >= last;
            last = batch[i].ts_ns;
        }
    CHECK(ordered);
    CHECK_UINT_EQ(total, 1000 * SV_BATCH);
    sv_sorter_free(s);
}

TEST(no_space_for_the_temporary_file)
{
    setenv("TMPDIR", "/nonexistent/place", 1);
    struct gen g;
    gen_make(&g, &(struct gen_options){.seed = 1, .n = 20000, .shape = ALL_SHAPES});
    struct collect c = {0};
    struct sv_err err = {0};
    CHECK_INT_EQ(gen_push(&g, sv_sort_new(g.dict, 1, collect_sink(&c, SV_HAS_ANYTHING)), &err),
                 SV_EIO);
    CHECK(strstr(err.msg, "/nonexistent/place") != NULL);
    CHECK(strstr(err.msg, "TMPDIR") != NULL);
    CHECK(c.closed && c.failed);
    CHECK_UINT_EQ(c.n, 0);
    collect_fini(&c);
    gen_fini(&g);
}

TEST(a_failing_sink_is_reported_and_closed)
{
    struct gen g;
    gen_make(&g, &(struct gen_options){.seed = 1, .n = 2000, .shape = ALL_SHAPES});
    struct collect c = {.fail_at = 700};
    struct sv_err err = {0};
    CHECK_INT_EQ(gen_push(&g, sv_sort_new(g.dict, 0, collect_sink(&c, SV_HAS_ANYTHING)), &err),
                 SV_EIO);
    CHECK(c.closed && c.failed);
    collect_fini(&c);
    gen_fini(&g);
}

TEST(a_failed_stream_gives_nothing)
{
    struct gen g;
    gen_make(&g, &(struct gen_options){.seed = 1, .n = 100, .shape = ALL_SHAPES});
    struct collect c = {0};
    struct sv_err err = {0};
    struct sv_sink *s = sv_sort_new(g.dict, 0, collect_sink(&c, SV_HAS_ANYTHING));
    CHECK_INT_EQ(s->write(s, g.events, g.n, &err), 0);
    CHECK_INT_EQ(s->close(s, true, &err), 0);
    CHECK(c.closed && c.failed);
    CHECK_UINT_EQ(c.n, 0);
    collect_fini(&c);
    gen_fini(&g);
}

/* Against a walk, over all lengths, borders and values; equal ones among them. */
TEST(search_finds_the_first)
{
    uint32_t v[40];
    for (uint32_t n = 0; n <= TEST_COUNT(v); n++) {
        for (uint32_t i = 0; i < n; i++)
            v[i] = i / 3 * 2;
        for (uint32_t from = 0; from <= n; from++) {
            for (uint32_t x = 0; x < 30; x++) {
                uint32_t at, walked = from;
                SV_SEARCH(at, mid, from, n, v[mid] < x);
                while (walked < n && v[walked] < x)
                    walked++;
                CHECK_UINT_EQ(at, walked);
            }
        }
    }
}
