/* Sets of time. */
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "why/spans.h"

#include <string.h>

TEST(what_touches_becomes_one_and_empty_stretches_are_left_out)
{
    struct sv_spans s = {0};
    sv_spans_add(&s, 10, 20, 1);
    sv_spans_add(&s, 15, 15, 2);
    sv_spans_add(&s, 20, 25, 3);
    sv_spans_add(&s, 21, 24, 4);
    sv_spans_add(&s, 30, 40, 5);
    REQUIRE(s.n == 2);
    CHECK_INT_EQ(s.items[0].from_ns, 10);
    CHECK_INT_EQ(s.items[0].to_ns, 25);
    CHECK_INT_EQ(s.items[0].row, 1);
    CHECK_INT_EQ(s.items[0].last, 3);
    CHECK_INT_EQ(sv_spans_length(&s), 25);
    sv_spans_fini(&s);
}

enum { LINE = 400 };

/* The same on a line of bits. */
static void random_set(struct rng *r, struct sv_spans *s, char line[LINE])
{
    int64_t at = 0;
    memset(line, 0, LINE);
    for (uint32_t row = 0; row < 40; row++) {
        at += (int64_t)rng_below(r, 12);
        int64_t to = at + (int64_t)rng_below(r, 10);
        if (to >= LINE)
            break;
        sv_spans_add(s, at, to, row);
        memset(line + at, 1, (size_t)(to - at));
    }
}

static int64_t ones(const char *a, const char *b, int64_t from, int64_t to)
{
    int64_t n = 0;
    for (int64_t i = from; i < to; i++)
        n += a[i] && b[i];
    return n;
}

TEST(sets_agree_with_a_line_of_bits)
{
    struct rng r = {11};
    for (int turn = 0; turn < 300; turn++) {
        struct sv_spans a = {0}, b = {0};
        char x[LINE], y[LINE];
        random_set(&r, &a, x);
        random_set(&r, &b, y);
        int64_t from = (int64_t)rng_below(&r, LINE),
                to = from + (int64_t)rng_below(&r, (uint64_t)(LINE - from));
        CHECK_INT_EQ(sv_spans_common(&a, &b), ones(x, y, 0, LINE));
        CHECK_INT_EQ(sv_spans_within(&a, from, to), ones(x, x, from, to));
        struct sv_spans part = sv_spans_part(&a, from, to), window = {0};
        sv_spans_add(&window, from, to, 0);
        CHECK_INT_EQ(sv_spans_common(&part, &window), ones(x, x, from, to));
        sv_spans_fini(&window);
        sv_spans_unite(&a, &b);
        for (int i = 0; i < LINE; i++)
            x[i] = x[i] || y[i];
        CHECK_INT_EQ(sv_spans_length(&a), ones(x, x, 0, LINE));
        for (size_t i = 1; i < a.n; i++)
            CHECK(a.items[i - 1].to_ns < a.items[i].from_ns);
        sv_spans_fini(&a);
        sv_spans_fini(&b);
    }
}
