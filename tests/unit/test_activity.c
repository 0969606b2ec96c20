/* Where something happens in a trace: what is left out of a picture, and what never is. */
#include "plot/activity.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <inttypes.h>

static bool find(const char *text, struct sv_activity *a)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = trace_text_load(text, d, NULL);
    bool is_part = sv_activity_find(t, a);
    sv_trace_free(t);
    sv_dict_free(d);
    return is_part;
}

/* One slice at 0, then `n` of 10 ns, one every `step` ns, from `from` on. */
static const char *late(int64_t from, int64_t step, int n, struct sv_buf *b)
{
    sv_buf_init(b, 1u << 20);
    sv_buf_str(b, "X 0 10 t stray\n");
    for (int i = 0; i < n; i++)
        sv_buf_printf(b, "X %" PRId64 " 10 t x\n", from + i * step);
    return sv_buf_cstr(b);
}

TEST(what_comes_late_is_shown_alone)
{
    struct sv_buf b;
    struct sv_activity a = {0};
    CHECK(find(late(37000000, 10000, 300, &b), &a));
    CHECK(a.from_ns > 36000000 && a.from_ns < 37000000);
    CHECK(a.to_ns >= 37000000 + 299 * 10000 + 10);
    CHECK_UINT_EQ(a.n_outside, 1);
    sv_buf_fini(&b);
}

TEST(few_events_are_all_shown)
{
    struct sv_buf b;
    struct sv_activity a;
    CHECK(!find(late(37000000, 10000, 5, &b), &a)); /* the stray is one of six */
    sv_buf_fini(&b);
    CHECK(!find("", &a));
    CHECK(!find("X 5 10 t only\n", &a) || a.n_outside == 0);
}

TEST(what_fills_the_trace_is_not_cut)
{
    struct sv_buf b;
    struct sv_activity a;
    CHECK(!find(late(1000, 10000, 300, &b), &a));
    sv_buf_fini(&b);
    CHECK(!find("X 0 5 t a\nX 90 5 t a\nC 0 c 1\nC 30 c 1\nC 60 c 1\nC 99 c 1\n", &a));
}

TEST(the_whole_range_of_times)
{
    struct sv_activity a;
    CHECK(!find("X -9000000000000000000 5 t a\nX 9000000000000000000 5 t b\n", &a));
}
