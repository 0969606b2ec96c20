/* Engine steps: members as text, shares that sum exactly, phases. */
#include "core/serving/engine.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(struct sv_buf *b, const struct sv_engine_member *m)
{
    sv_buf_clear(b);
    sv_engine_member_put(b, m);
    return sv_buf_cstr(b);
}

TEST(members_as_text)
{
    static const struct {
        const char *text;
        struct sv_engine_member m;
    } rows[] = {
        {"0p0", {0}},
        {"412p512@128~64", {.request = 412, .tokens_in = 512, .position = 128, .cached = 64}},
        {"413d1+1@77",
         {.request = 413, .tokens_in = 1, .tokens_out = 1, .position = 77, .is_decode = 1}},
        {"18446744073709551615d4294967295+4294967295@4294967295~4294967295?65535!65535",
         {UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT16_MAX, UINT16_MAX, 1}},
    };
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_engine_member m;
        const char *at = rows[i].text, *end = at + strlen(at);
        CONTEXT("row %zu", i);
        CHECK_STR_EQ(text_of(&b, &rows[i].m), rows[i].text);
        CHECK(strlen(rows[i].text) < SV_MEMBER_TEXT_MAX);
        CHECK_INT_EQ(sv_engine_member_next(&at, end, &m), 1);
        CHECK_MEM_EQ(&m, &rows[i].m, sizeof m);
        CHECK_INT_EQ(sv_engine_member_next(&at, end, &m), 0);
    }
    sv_buf_fini(&b);
}

TEST(bad_members)
{
    static const char *const bad[] = {"p1",
                                      "1",
                                      "1x1",
                                      "1p",
                                      "1p1+",
                                      "1p1*2",
                                      "1p1+99999999999",
                                      "99999999999999999999p1",
                                      "1d1?65536",
                                      "-1p1",
                                      "1p1+-1"};
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        char text[64];
        struct sv_engine_member m;
        CONTEXT("%s", bad[i]);
        snprintf(text, sizeof text, "%s  7d1", bad[i]);
        const char *at = text, *end = text + strlen(text);
        CHECK_INT_EQ(sv_engine_member_next(&at, end, &m), -1);
        CHECK_INT_EQ(sv_engine_member_next(&at, end, &m), 1); /* the next one is read */
        CHECK_UINT_EQ(m.request, 7);
        CHECK_INT_EQ(sv_engine_member_next(&at, end, &m), 0);
    }
}

enum { MOST = 1000 };

static int64_t sum_of(const int64_t *shares, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += shares[i];
    return sum;
}

TEST(shares_by_largest_remainder)
{
    static const struct {
        int64_t whole;
        uint64_t weights[4];
        size_t n;
        int64_t shares[4];
    } rows[] = {
        {100, {1, 1, 1}, 3, {34, 33, 33}},
        {100, {1, 1, 4}, 3, {17, 17, 66}}, /* 16.7 16.7 66.7: all three equal, the first two */
        {10, {3, 3, 1}, 3, {4, 4, 2}},     /* 4.29 4.29 1.43 */
        {7, {0, 0}, 2, {4, 3}},
        {7, {0, 5}, 2, {0, 7}},
        {0, {1, 2}, 2, {0, 0}},
        {-5, {1, 2}, 2, {0, 0}},
        {INT64_MAX,
         {UINT32_MAX, UINT32_MAX, 1, 1},
         4,
         {4611686017353646080, 4611686017353646079, 1073741824, 1073741824}},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int64_t shares[4];
        uint64_t scratch[8];
        CONTEXT("row %zu", i);
        sv_engine_shares(rows[i].whole, rows[i].weights, rows[i].n, shares, scratch);
        CHECK_INT_EQ(sum_of(shares, rows[i].n), rows[i].whole > 0 ? rows[i].whole : 0);
        CHECK_MEM_EQ(shares, rows[i].shares, rows[i].n * sizeof *shares);
    }
}

/* Against the definition, by search: nobody without the extra nanosecond has a larger remainder
 * than somebody with it. */
TEST(shares_of_many)
{
    static uint64_t weights[MOST], scratch[2 * MOST];
    static int64_t shares[MOST];
    uint64_t seed = 1;
    for (size_t n = 1; n <= MOST; n += 37) {
        uint64_t sum = 0, least_with = UINT64_MAX, most_without = 0;
        int64_t whole = (int64_t)(1000003 + n);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            weights[i] = 1 + (seed >> 60) * (seed >> 57);
            sum += weights[i];
        }
        sv_engine_shares(whole, weights, n, shares, scratch);
        CONTEXT("n %zu", n);
        CHECK_INT_EQ(sum_of(shares, n), whole);
        for (size_t i = 0; i < n; i++) {
            uint64_t part = (uint64_t)whole * weights[i], remainder = part % sum;
            int64_t extra = shares[i] - (int64_t)(part / sum);
            if (!CHECK(extra == 0 || extra == 1))
                return;
            if (extra && remainder < least_with)
                least_with = remainder;
            if (!extra && remainder > most_without)
                most_without = remainder;
        }
        CHECK(least_with >= most_without);
    }
}

TEST(phases)
{
    enum sv_engine_phase p = SV_ENGINE_NONE;
    static const struct {
        enum sv_engine_event event;
        bool has_token;
        enum sv_engine_phase after;
    } rows[] = {
        {SV_ENGINE_ARRIVES, false, SV_ENGINE_QUEUE},
        {SV_ENGINE_SCHEDULED, false, SV_ENGINE_PREFILL},
        {SV_ENGINE_STEP_PREFILL, false, SV_ENGINE_PREFILL},
        {SV_ENGINE_IS_PREEMPTED, false, SV_ENGINE_PREEMPTED},
        {SV_ENGINE_STEP_PREFILL, false, SV_ENGINE_PREFILL}, /* resumed without a word */
        {SV_ENGINE_TOKEN, false, SV_ENGINE_DECODE},
        {SV_ENGINE_IS_SENT, true, SV_ENGINE_TRANSFER},
        {SV_ENGINE_IS_RECEIVED, true, SV_ENGINE_DECODE},
        {SV_ENGINE_STEP_DECODE, true, SV_ENGINE_DECODE},
        {SV_ENGINE_IS_PREEMPTED, true, SV_ENGINE_PREEMPTED},
        {SV_ENGINE_RESUMES, true, SV_ENGINE_PREFILL},
        {SV_ENGINE_STEP_DECODE, true, SV_ENGINE_DECODE}, /* its cache was kept */
        {SV_ENGINE_RESUMES, true, SV_ENGINE_DECODE},     /* of one that was not preempted */
        {SV_ENGINE_SCHEDULED, true, SV_ENGINE_DECODE},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        p = sv_engine_next(p, rows[i].event, rows[i].has_token);
        CHECK_INT_EQ(p, rows[i].after);
    }
}
