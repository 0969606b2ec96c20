/* W3C trace context: headers in and out, and the flow that leaves a span
 * (core/stream/trace_context.h, <stave/trace_context.h>). */
#include "core/stream/trace_context.h"
#include "tests/harness/test.h"

#include <pthread.h>
#include <stave/trace_context.h>
#include <string.h>

#define VALID "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

TEST(header_comes_back)
{
    struct stave_trace_context c;
    char text[STAVE_TRACEPARENT_SIZE];
    REQUIRE(stave_traceparent_read(VALID, strlen(VALID), &c));
    CHECK_UINT_EQ(c.trace_id[0], 0x4b);
    CHECK_UINT_EQ(c.span_id[7], 0xb7);
    CHECK_UINT_EQ(c.flags, 1);
    stave_traceparent_write(&c, text);
    CHECK_STR_EQ(text, VALID);
}

TEST(header_that_is_not_valid)
{
    static const char *const wrong[] = {
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", /* version 0 has no more */
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct stave_trace_context c = {.flags = 77};
        CONTEXT("%s", wrong[i]);
        CHECK(!stave_traceparent_read(wrong[i], strlen(wrong[i]), &c));
        CHECK_UINT_EQ(c.flags, 77);
    }
    struct stave_trace_context c;
    CHECK(!stave_traceparent_read(NULL, 0, &c));
    const char *later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
    CHECK(stave_traceparent_read(later, strlen(later), &c));
    CHECK(stave_traceparent_read(" " VALID " ", strlen(VALID) + 2, &c));
}

TEST(new_spans)
{
    struct stave_trace_context first, second, child;
    stave_trace_context_new(NULL, &first);
    stave_trace_context_new(NULL, &second);
    CHECK(memcmp(first.trace_id, second.trace_id, sizeof first.trace_id) != 0);
    CHECK(sv_is_id(first.trace_id, sizeof first.trace_id));
    CHECK(sv_is_id(first.span_id, sizeof first.span_id));
    CHECK_UINT_EQ(first.flags, 1);
    first.flags = 0;
    stave_trace_context_new(&first, &child);
    CHECK(memcmp(first.trace_id, child.trace_id, sizeof first.trace_id) == 0);
    CHECK(memcmp(first.span_id, child.span_id, sizeof first.span_id) != 0);
    CHECK_UINT_EQ(child.flags, 0);
}

static void *other_thread(void *none)
{
    struct stave_trace_context c;
    (void)none;
    static int found;
    return stave_trace_context(&c) ? &found : NULL;
}

TEST(belongs_to_its_thread)
{
    struct stave_trace_context c, own;
    pthread_t thread;
    void *has = &c;
    CHECK(!stave_trace_context(&c));
    stave_trace_context_new(NULL, &own);
    stave_set_trace_context(&own);
    REQUIRE(stave_trace_context(&c));
    CHECK(memcmp(&c, &own, sizeof c) == 0);
    REQUIRE(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    pthread_join(thread, &has);
    CHECK(has == NULL);
    stave_set_trace_context(NULL);
    CHECK(!stave_trace_context(&c));
}

/* Other programs make the same number: it must never change. */
TEST(flow_is_the_same_everywhere)
{
    struct stave_trace_context c;
    REQUIRE(stave_traceparent_read(VALID, strlen(VALID), &c));
    CHECK_UINT_EQ(stave_trace_flow(&c), sv_trace_flow(c.trace_id, c.span_id));
    CHECK_UINT_EQ(stave_trace_flow(&c), 0x68c5dfc972e963ull);
}
