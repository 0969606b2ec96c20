/* Steps of engines through the library: counts, bad calls, a ring that is full, a million open
 * requests. */
#include "tests/harness/test.h"

#include <stave/serving.h>
#include <stave/trace_context.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stave_serving *open_server(const char *name, size_t queue, enum stave_full full)
{
    struct stave_error error;
    struct stave_serving_config c = {.size = sizeof c,
                                     .trace_enabled = true,
                                     .trace_output = test_scratch(name),
                                     .outputs = STAVE_SERVING_PFTRACE | STAVE_SERVING_TOKENS,
                                     .queue_records = queue,
                                     .full = full};
    struct stave_serving *s = stave_serving_open(&c, &error);
    REQUIRE(s);
    return s;
}

static struct stave_serving_counts counts_of(struct stave_serving *s)
{
    struct stave_serving_counts c = {.size = sizeof c};
    stave_serving_flush(s);
    stave_serving_count(s, &c);
    return c;
}

static void close_server(struct stave_serving *s)
{
    struct stave_error error;
    CHECK_INT_EQ(stave_serving_close(s, &error), 0);
}

static void step(struct stave_serving *s, uint64_t number,
                 const struct stave_serving_member *members, size_t n)
{
    struct stave_serving_step step = {
        .size = sizeof step, .step = number, .members = members, .n = n};
    stave_serving_step(s, &step);
}

TEST(a_request_takes_part_in_many_steps)
{
    test_leaves_open();
    struct stave_serving *s = open_server("many", 0, STAVE_FULL_DEFAULT);
    CHECK_UINT_EQ(stave_serving_engine(s, "a"), 0);
    CHECK_UINT_EQ(stave_serving_engine(s, "b"), 1);
    CHECK_UINT_EQ(stave_serving_engine(s, "a"), 0);
    struct stave_serving_member m[] = {{.request = 1, .tokens_in = 5, .tokens_out = 1},
                                       {.request = 2, .tokens_in = 7}};
    stave_serving_enqueued(s, 1, 0, 0, 0);
    stave_serving_enqueued(s, 2, 0, 0, 0);
    stave_serving_scheduled(s, 1, 0);
    for (uint64_t i = 0; i < 10; i++)
        step(s, i, m, 2);
    stave_serving_preempted(s, 2, 0);
    stave_serving_resumed(s, 2, 0);
    stave_serving_transferred(s, 2, 0, 1, 4096, stave_now_ns() - 1000, 0);
    stave_serving_streamed(s, 1, 10, 0);
    stave_serving_responded(s, 1, 0);
    stave_serving_cancelled(s, 2, 0);
    struct stave_serving_counts c = counts_of(s);
    CHECK_UINT_EQ(c.steps, 10);
    CHECK_UINT_EQ(c.step_members, 20);
    CHECK_UINT_EQ(c.tokens_in, 120);
    CHECK_UINT_EQ(c.tokens_out, 10);
    CHECK_UINT_EQ(c.requests, 1);
    CHECK_UINT_EQ(c.failed, 1);
    CHECK_UINT_EQ(c.unexpected + c.lost + c.open_requests, 0);
    close_server(s);
}

/* The file beside the trace has them, too. */
TEST(steps_are_in_the_json)
{
    struct stave_error error;
    char path[4096], *text = calloc(1, 1 << 16);
    struct stave_serving_config config = {.size = sizeof config,
                                          .trace_enabled = true,
                                          .trace_output = test_scratch("json"),
                                          .outputs = STAVE_SERVING_JSON};
    struct stave_serving *s = stave_serving_open(&config, &error);
    REQUIRE(s && text);
    struct stave_serving_member m[] = {
        {.request = 41, .tokens_in = 5, .tokens_out = 1},
        {.request = 42, .tokens_in = 1, .tokens_out = 1, .phase = STAVE_SERVING_DECODE}};
    stave_serving_enqueued(s, 41, 0, 0, 0);
    step(s, 7, m, 2);
    stave_serving_responded(s, 41, 0);
    snprintf(path, sizeof path, "%s", stave_serving_file(s, STAVE_SERVING_JSON));
    close_server(s);
    FILE *f = fopen(path, "r");
    REQUIRE(f);
    size_t len = fread(text, 1, (1 << 16) - 1, f);
    fclose(f);
    CHECK(len > 0);
    CHECK(strstr(text, "\"name\":\"engine_step\",\"cat\":\"engine\",\"ph\":\"X\""));
    CHECK(strstr(text, "\"step_id\":7,\"prefill\":1,\"decode\":1,\"tokens_in\":6,\"tokens_out\":2,"
                       "\"request_ids\":[41,42]"));
    CHECK(strstr(text, "\"prompt_tokens\":5,\"output_tokens\":1,\"preemptions\":0,\"ttft_ns\":"));
    free(text);
}

TEST(bad_calls_are_counted)
{
    test_leaves_open();
    struct stave_serving *s = open_server("bad", 0, STAVE_FULL_DEFAULT);
    struct stave_serving_member m[] = {{.request = 1, .tokens_in = 1, .tokens_out = 1},
                                       {.request = 99, .tokens_in = 1, .phase = 77}};
    struct stave_serving_step odd = {.size = sizeof odd,
                                     .engine = 12345,
                                     .graph = 999,
                                     .start_ns = INT64_MAX,
                                     .end_ns = 1000,
                                     .members = m,
                                     .n = 2};
    stave_serving_enqueued(s, 1, 0, 0, 0);
    step(s, 1, m, 2); /* 99 is not known */
    step(s, 2, NULL, 5);
    step(s, 3, m, 0);
    stave_serving_step(s, NULL);
    stave_serving_step(NULL, &odd);
    stave_serving_step(s, &odd); /* no such engine, ends before it began */
    odd.start_ns = INT64_MIN;
    odd.end_ns = INT64_MAX;
    stave_serving_step(s, &odd);
    stave_serving_responded(s, 1, 0);
    stave_serving_responded(s, 1, 0); /* twice */
    stave_serving_preempted(s, 1, 0);
    stave_serving_streamed(s, 4711, 1, 0);
    struct stave_serving_counts c = counts_of(s);
    CHECK_UINT_EQ(c.steps, 5);
    CHECK_UINT_EQ(c.step_members, 6);
    CHECK_UINT_EQ(c.requests, 1);
    CHECK_UINT_EQ(c.unexpected, 6); /* 99 three times, the second end, the preemption, 4711 */
    CHECK_UINT_EQ(c.lost, 0);
    close_server(s);
}

TEST(a_full_ring_is_counted)
{
    test_leaves_open();
    enum { STEPS = 2000, MEMBERS = 100, CELLS = 256 };
    struct stave_serving *s = open_server("full", CELLS, STAVE_FULL_DROP);
    static struct stave_serving_member m[70000];
    for (uint64_t i = 0; i < STEPS; i++)
        step(s, i, m, MEMBERS);
    step(s, STEPS, m, 5000);      /* larger than the ring */
    step(s, STEPS + 1, m, 70000); /* larger than a step may be */
    struct stave_serving_counts c = counts_of(s);
    CHECK_UINT_EQ(c.steps + c.lost_steps, STEPS + 2);
    CHECK(c.lost_steps >= 2);
    CHECK_UINT_EQ(c.lost, c.lost_steps);
    CHECK_UINT_EQ(c.step_members, c.steps * MEMBERS);
    close_server(s);
}

TEST(who_blocks_loses_nothing_that_fits)
{
    test_leaves_open();
    enum { STEPS = 300, MEMBERS = 100 };
    struct stave_serving *s = open_server("block", 256, STAVE_FULL_BLOCK);
    static struct stave_serving_member m[1000];
    for (uint64_t i = 0; i < STEPS; i++)
        step(s, i, m, MEMBERS);
    step(s, STEPS, m, 1000); /* never fits: it must not wait for ever */
    struct stave_serving_counts c = counts_of(s);
    CHECK_UINT_EQ(c.steps, STEPS);
    CHECK_UINT_EQ(c.lost_steps, 1);
    close_server(s);
}

TEST(a_step_of_many_members_is_whole)
{
    test_leaves_open();
    enum { MEMBERS = 20000 };
    struct stave_serving *s = open_server("large", 0, STAVE_FULL_DEFAULT);
    static struct stave_serving_member m[MEMBERS];
    for (uint32_t i = 0; i < MEMBERS; i++)
        m[i] = (struct stave_serving_member){.request = i, .tokens_in = i, .position = UINT32_MAX};
    step(s, 1, m, MEMBERS);
    struct stave_serving_counts c = counts_of(s);
    CHECK_UINT_EQ(c.step_members, MEMBERS);
    CHECK_UINT_EQ(c.tokens_in, (uint64_t)MEMBERS * (MEMBERS - 1) / 2);
    CHECK_UINT_EQ(c.lost, 0);
    close_server(s);
}

/* A million in the long suite; otherwise as many as show the limit. */
TEST(a_million_open_requests_are_bounded)
{
    test_leaves_open();
    enum { KEPT = 262144 };
    const char *is_long = getenv("STAVE_LONG");
    uint64_t n = is_long && strcmp(is_long, "1") == 0 ? 1000000 : KEPT + 10000;
    struct stave_serving *s = open_server("million", 0, STAVE_FULL_BLOCK);
    for (uint64_t i = 0; i < n; i++)
        stave_serving_enqueued(s, i, 0, 0, 0);
    struct stave_serving_member m[] = {{.request = 0, .tokens_in = 1},
                                       {.request = n - 1, .tokens_in = 1}};
    step(s, 1, m, 2);
    struct stave_serving_counts c = counts_of(s);
    CHECK_UINT_EQ(c.open_requests, KEPT);
    CHECK_UINT_EQ(c.forgotten, n - KEPT);
    CHECK_UINT_EQ(c.unexpected, 1); /* the first one is forgotten */
    CHECK_UINT_EQ(c.lost, 0);
    close_server(s);
}

/* Of requests that are open, once; what is left at the end is freed. */
TEST(context_of_requests)
{
    test_leaves_open();
    struct stave_trace_context caller, own;
    char state[700];
    memset(state, 'a', sizeof state - 1);
    state[sizeof state - 1] = '\0';
    stave_trace_context_new(NULL, &caller);
    stave_trace_context_new(&caller, &own);
    stave_serving_context(NULL, 1, &own, &caller, NULL);
    struct stave_serving *s = open_server("context", 0, STAVE_FULL_BLOCK);
    stave_serving_context(s, 1, &own, &caller, NULL);
    CHECK_INT_EQ(counts_of(s).unexpected, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        stave_serving_enqueued(s, i, 0, 0, 0);
        stave_serving_context(s, i, &own, i == 1 ? &caller : NULL, i == 2 ? state : NULL);
    }
    CHECK_INT_EQ(counts_of(s).unexpected, 1);
    stave_serving_context(s, 3, &own, NULL, NULL);
    stave_serving_context(s, 3, NULL, NULL, NULL);
    stave_serving_cancelled(s, 1, 0);
    stave_serving_failed(s, 2, "none", 0);
    struct stave_serving_counts c = counts_of(s);
    CHECK_INT_EQ(c.unexpected, 2);
    CHECK_INT_EQ(c.failed, 2);
    CHECK_INT_EQ(c.open_requests, 1);
    close_server(s);
}
