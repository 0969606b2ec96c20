/* Which requests are kept: rules as text, percentiles, and what is left out of the files. */
#include "lib/serving/held_calls.h"
#include "lib/serving/keep_rule.h"
#include "tests/harness/test.h"
#include <stave/trace_context.h>

#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(rules)
{
    static const struct {
        const char *text;
        bool is_good, is_on;
        int64_t slow_ns;
        uint32_t percent;
    } rows[] = {{"all", true, false, 0, 0},
                {" all ", true, false, 0, 0},
                {"failed", true, true, 0, 0},
                {"slow > 50ms", true, true, 50000000, 0},
                {"slow>1.5 us", true, true, 1500, 0},
                {"slow > 2s, p99", true, true, 2000000000, 99000},
                {"p99.9", true, true, 0, 99900},
                {"failed,p50,slow > 1ns", true, true, 1, 50000},
                {"", false, false, 0, 0},
                {"all, p99", false, false, 0, 0},
                {"slow", false, false, 0, 0},
                {"slow > 50", false, false, 0, 0},
                {"slow > -5ms", false, false, 0, 0},
                {"slow > 5 ms p99", false, false, 0, 0},
                {"slow > 1e30s", false, false, 0, 0},
                {"slow > nans", false, false, 0, 0},
                {"p", false, false, 0, 0},
                {"p0", false, false, 0, 0},
                {"p100", false, false, 0, 0},
                {"p99,", false, false, 0, 0},
                {"fast", false, false, 0, 0}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_keep_rule r = {0};
        bool is_right = sv_keep_parse(rows[i].text, &r) == rows[i].is_good &&
                        r.is_on == rows[i].is_on && r.slow_ns == rows[i].slow_ns &&
                        r.percent == rows[i].percent;
        CHECK(is_right);
        if (!is_right)
            printf("%s: %d %lld %u\n", rows[i].text, r.is_on, (long long)r.slow_ns, r.percent);
    }
}

TEST(a_limit)
{
    struct sv_latencies l = {0};
    const struct sv_keep_rule rule = {.is_on = true, .slow_ns = 1000}, none = {.is_on = true};
    CHECK(!sv_keep_is_slow(&rule, &l, 1000, 1));
    CHECK(sv_keep_is_slow(&rule, &l, 1001, 1));
    CHECK(!sv_keep_is_slow(&none, &l, INT64_MAX, 1));
}

TEST(a_percentile_of_the_last_minute)
{
    struct sv_latencies *l = calloc(1, sizeof *l);
    const struct sv_keep_rule rule = {.is_on = true, .percent = 90000};
    int64_t now = 1;
    size_t kept = 0;
    for (int i = 0; i < 99; i++)
        CHECK(sv_keep_is_slow(&rule, l, 1000, now++)); /* too few are known */
    for (int i = 0; i < 100000; i++) {
        int64_t latency = 1000000 + (i * 7919 % 1000) * 1000; /* 1 to 2 ms, evenly */
        kept += sv_keep_is_slow(&rule, l, latency, now++);
    }
    CHECK(kept > 9500 && kept < 10500);
    CHECK(!sv_keep_is_slow(&rule, l, 1800000, now));
    CHECK(sv_keep_is_slow(&rule, l, 1990000, now));
    /* After a minute without any, what is known are the new ones. */
    now += INT64_C(100000000000);
    for (int i = 0; i < 1000; i++)
        sv_keep_is_slow(&rule, l, 1000 + i % 100, now++);
    CHECK(sv_keep_is_slow(&rule, l, 1800000, now));
    CHECK(sv_keep_is_slow(&rule, l, 1200, now));
    CHECK(!sv_keep_is_slow(&rule, l, 1010, now));
    CHECK(sv_keep_is_slow(&rule, l, INT64_MAX, now));
    CHECK(!sv_keep_is_slow(&rule, l, -5, now));
    /* All take the same time: a tenth of them is. */
    memset(l, 0, sizeof *l);
    kept = 0;
    for (int i = 0; i < 10000; i++)
        kept += sv_keep_is_slow(&rule, l, 5000000, now++);
    CHECK(kept > 1000 && kept < 1200);
    free(l);
}

/* ---- what comes after the end ---- */

struct out {
    uint64_t ids[64];
    size_t n, n_transports;
};

static void take(void *ctx, const struct sv_call_cell *c, const uint64_t *words)
{
    struct out *o = ctx;
    o->n++;
    if (c->op != SV_LIFE_TRANSPORT)
        return;
    CHECK_UINT_EQ(words[SV_TRANSPORT_WRITE], c->id * 10);
    o->ids[o->n_transports++ % TEST_COUNT(o->ids)] = c->id;
}

static void hold(struct sv_held_calls *h, enum sv_life_op op, uint64_t id, int64_t time_ns)
{
    const struct sv_keep_rule rule = {.is_on = true, .slow_ns = 1000};
    const uint64_t words[SV_N_TRANSPORT] = {1, 2, 3, id * 10};
    const uint32_t n = op == SV_LIFE_TRANSPORT ? SV_N_TRANSPORT : 0;
    const struct sv_call_cell c = {
        .op = (uint16_t)op, .id = id, .time_ns = time_ns, .n = n, .words = n, .is_held = 1};
    sv_held_put(h, &rule, &c, words);
}

TEST(transport_goes_with_its_request)
{
    struct out o = {0};
    struct sv_held_calls *h = sv_held_new(take, &o);
    for (uint64_t id = 1; id <= 2; id++)
        hold(h, SV_LIFE_ENQUEUED, id, 1);
    hold(h, SV_LIFE_RESPONDED, 1, 500); /* left out */
    hold(h, SV_LIFE_RESPONDED, 2, 5000);
    for (uint64_t id = 1; id <= 3; id++) /* 3: nobody knows it */
        hold(h, SV_LIFE_TRANSPORT, id, 6000);
    CHECK_UINT_EQ(o.n, 3);
    CHECK_UINT_EQ(o.n_transports, 1);
    CHECK_UINT_EQ(o.ids[0], 2);
    hold(h, SV_LIFE_TRANSPORT, 2, 6001); /* once */
    CHECK_UINT_EQ(o.n_transports, 1);
    /* Before the end: it waits with the rest. */
    hold(h, SV_LIFE_ENQUEUED, 4, 7000);
    hold(h, SV_LIFE_TRANSPORT, 4, 7100);
    CHECK_UINT_EQ(o.n, 3);
    hold(h, SV_LIFE_RESPONDED, 4, 17000);
    CHECK_UINT_EQ(o.n, 6);
    CHECK_UINT_EQ(o.n_transports, 2);
    sv_held_free(h);
}

/* ---- through the library ---- */

static struct stave_serving *open_server(const char *name, const char *keep)
{
    struct stave_error error;
    struct stave_serving_config c = {.size = sizeof c,
                                     .trace_enabled = true,
                                     .trace_output = test_scratch(name),
                                     .outputs = STAVE_SERVING_JSON | STAVE_SERVING_CSV,
                                     .keep = keep};
    struct stave_serving *s = stave_serving_open(&c, &error);
    REQUIRE(s);
    return s;
}

static void batch(struct stave_serving *s, uint64_t id, uint64_t first, size_t n, int64_t took_ms)
{
    uint64_t ids[600] = {0};
    int64_t t = (int64_t)id * 1000000000, end = t + took_ms * 1000000;
    for (size_t i = 0; i < n; i++) {
        ids[i] = first + i;
        stave_serving_enqueued(s, ids[i], 0, 0, t + 1);
        stave_serving_dequeued(s, ids[i], t + 2);
    }
    stave_serving_collected(s, id, 0, ids, n, 0, 0, t + 2, t + 3);
    stave_serving_submitted(s, id, t + 4);
    stave_serving_started(s, id, 0, t + 5);
    stave_serving_finished(s, id, end);
    stave_serving_callback(s, id, end, end + 1);
    for (size_t i = 0; i < n; i++)
        stave_serving_responded(s, ids[i], end + 2);
}

/* Of the lines of its JSON that have the text. */
static size_t lines_with(const char *path, const char *text)
{
    char line[65536];
    size_t n = 0;
    FILE *f = fopen(path, "re");
    REQUIRE(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}

TEST(a_batch_is_kept_whole_or_not_at_all)
{
    struct stave_serving *s = open_server("keep", "slow > 50ms");
    struct stave_serving_counts c = {.size = sizeof c};
    struct stave_error error;
    char json[4096];
    snprintf(json, sizeof json, "%s", stave_serving_file(s, STAVE_SERVING_JSON));
    batch(s, 1, 100, 4, 10);
    batch(s, 2, 200, 300, 60); /* its members are in several records */
    batch(s, 3, 600, 300, 20);
    stave_serving_flush(s);
    stave_serving_count(s, &c);
    CHECK_UINT_EQ(c.requests, 604);
    CHECK_UINT_EQ(c.batches, 3);
    CHECK_UINT_EQ(c.left_out, 304);
    CHECK_UINT_EQ(c.left_out_batches, 2);
    CHECK_UINT_EQ(c.open_requests + c.open_batches + c.lost + c.unexpected, 0);
    CHECK_INT_EQ(stave_serving_close(s, &error), 0);
    CHECK_UINT_EQ(lines_with(json, "\"ph\":\"e\""), 300);
    CHECK_UINT_EQ(lines_with(json, "\"name\":\"batch\","), 1);
    CHECK_UINT_EQ(lines_with(json, "\"name\":\"left_out\","), 1);
    CHECK_UINT_EQ(lines_with(json, "\"requests\":304,\"batches\":2,\"samples\":304,"), 1);
}

/* One that has ended by the time at which its batch is named is in the trace already, and takes the
 * others with it; both where its end is before the collection, and where it was only reported
 * first. */
TEST(who_is_cancelled_early_keeps_the_company)
{
    struct stave_serving *s = open_server("early", "slow > 50ms");
    struct stave_serving_counts c = {.size = sizeof c};
    struct stave_error error;
    char json[4096];
    snprintf(json, sizeof json, "%s", stave_serving_file(s, STAVE_SERVING_JSON));
    for (uint64_t b = 1; b <= 2; b++) {
        const int64_t t = (int64_t)b * 1000;
        const uint64_t ids[] = {10 * b, 10 * b + 1, 10 * b + 2};
        for (int i = 0; i < 3; i++) {
            stave_serving_enqueued(s, ids[i], 0, 0, t + i);
            stave_serving_dequeued(s, ids[i], t + 10);
        }
        stave_serving_cancelled(s, ids[0], b == 1 ? t + 15 : t + 25);
        stave_serving_flush(s); /* the thread has judged it */
        stave_serving_collected(s, b, 0, ids, 3, 0, 0, t + 10, t + 20);
        stave_serving_submitted(s, b, t + 30);
        stave_serving_started(s, b, 0, t + 40);
        stave_serving_finished(s, b, t + 50);
        stave_serving_callback(s, b, t + 50, t + 60);
        stave_serving_responded(s, ids[1], t + 70);
        stave_serving_responded(s, ids[2], t + 70);
    }
    batch(s, 3, 100, 3, 1); /* nobody left: it is left out */
    stave_serving_flush(s);
    stave_serving_count(s, &c);
    CHECK_UINT_EQ(c.left_out, 3);
    CHECK_UINT_EQ(c.left_out_batches, 1);
    CHECK_UINT_EQ(c.open_requests + c.open_batches + c.lost + c.unexpected, 0);
    CHECK_INT_EQ(stave_serving_close(s, &error), 0);
    CHECK_UINT_EQ(lines_with(json, "\"ph\":\"e\""), 6);
    CHECK_UINT_EQ(lines_with(json, "\"batch_over\""), 2);
    CHECK_UINT_EQ(lines_with(json, "\"outcome\":\"cancelled\""), 2);
    CHECK_UINT_EQ(lines_with(json, "\"outcome\":\"responded\""), 4);
}

/* Calls are reported in any order; a request of an engine, one without an end and one that began
 * before the rule are kept. */
TEST(what_cannot_be_judged_is_kept)
{
    struct stave_serving *s = open_server("odd", NULL);
    struct stave_serving_counts c = {.size = sizeof c};
    struct stave_error error;
    char json[4096];
    snprintf(json, sizeof json, "%s", stave_serving_file(s, STAVE_SERVING_JSON));
    stave_serving_enqueued(s, 1, 0, 0, 10);
    CHECK_INT_EQ(stave_serving_keep(s, "failed", &error), 0);
    stave_serving_enqueued(s, 2, 0, 0, 20);
    stave_serving_enqueued(s, 3, 0, 0, 20);
    stave_serving_collected(s, 1, 0, (uint64_t[]){1, 2}, 2, 0, 0, 30, 40); /* 1 began before it */
    stave_serving_submitted(s, 1, 50);
    stave_serving_started(s, 1, 0, 60);
    stave_serving_finished(s, 1, 70);
    stave_serving_callback(s, 1, 70, 80);
    stave_serving_responded(s, 1, 90);
    stave_serving_responded(s, 2, 90);
    stave_serving_enqueued(s, 4, 0, 0, 100);
    struct stave_serving_member m = {.request = 4, .tokens_in = 5, .tokens_out = 1};
    struct stave_serving_step step = {
        .size = sizeof step, .step = 1, .members = &m, .n = 1, .start_ns = 110, .end_ns = 120};
    stave_serving_step(s, &step);
    stave_serving_responded(s, 4, 130);
    /* The submission is reported last, as by a delayed thread: it is left out with the rest. */
    stave_serving_enqueued(s, 5, 0, 0, 200);
    stave_serving_collected(s, 2, 0, (uint64_t[]){5}, 1, 0, 0, 210, 220);
    stave_serving_started(s, 2, 0, 240);
    stave_serving_finished(s, 2, 250);
    stave_serving_callback(s, 2, 250, 260);
    stave_serving_responded(s, 5, 270);
    stave_serving_submitted(s, 2, 230);
    stave_serving_enqueued(s, 6, 0, 0, 280);
    CHECK_INT_EQ(stave_serving_keep(s, "slow", &error), STAVE_EUSAGE);
    CHECK(strstr(error.text, "slow > 50ms") != NULL);
    CHECK_INT_EQ(stave_serving_keep(NULL, "p99", &error), 0);
    CHECK_INT_EQ(stave_serving_keep(NULL, "p", &error), STAVE_EUSAGE);
    stave_serving_flush(s);
    stave_serving_count(s, &c);
    CHECK_UINT_EQ(c.left_out, 1);
    CHECK_UINT_EQ(c.open_batches, 0);
    CHECK_INT_EQ(stave_serving_close(s, &error), 0);
    CHECK_UINT_EQ(lines_with(json, "\"ph\":\"e\""), 3);
    CHECK_UINT_EQ(lines_with(json, "\"request_enqueued\""), 5); /* 1 to 4, 6 */
    CHECK_UINT_EQ(lines_with(json, "\"request_id\":5"), 0);
}

TEST(one_of_so_many_is_recorded)
{
    struct stave_serving *s = open_server("sampled", NULL);
    const struct stave_trace_context yes = {.flags = 1}, no = {.flags = 0};
    size_t n = 0;
    CHECK(stave_serving_sampled(NULL, NULL) == NULL);
    CHECK(stave_serving_sampled(s, NULL) == s && stave_serving_sampled(s, &no) == s);
    stave_serving_sample(s, 10, false);
    for (int i = 0; i < 100; i++)
        n += stave_serving_sampled(s, i % 2 ? &yes : NULL) == s;
    CHECK_UINT_EQ(n, 10);
    stave_serving_sample(s, 1000000, true);
    (void)stave_serving_sampled(s, NULL); /* whose turn it may be */
    CHECK(stave_serving_sampled(s, &yes) == s);
    CHECK(stave_serving_sampled(s, &no) == NULL && stave_serving_sampled(s, NULL) == NULL);
    stave_serving_sample(s, 0, false);
    CHECK(stave_serving_sampled(s, NULL) == s);
    CHECK_INT_EQ(stave_serving_close(s, NULL), 0);
}

TEST(a_rule_that_is_none_is_refused)
{
    struct stave_error error;
    struct stave_serving_config c = {.size = sizeof c,
                                     .trace_enabled = true,
                                     .trace_output = test_scratch("none"),
                                     .keep = "slow > 5"};
    CHECK(stave_serving_open(&c, &error) == NULL);
    CHECK_INT_EQ(error.code, STAVE_EUSAGE);
    CHECK(strstr(error.text, "keep: 'slow > 5'") != NULL);
}
