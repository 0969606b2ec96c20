/* A traced server whose heap is exhausted: its files end as of the last flush, its program
 * continues. */
#include "tests/harness/test.h"

#include <errno.h>
#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void serve(struct stave_serving *s, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++) {
        stave_serving_enqueued(s, i, 0, 0, 0);
        stave_serving_dequeued(s, i, 0);
        stave_serving_collected(s, i, 0, &i, 1, 1, 0, 0, 0);
        stave_serving_submitted(s, i, 0);
    }
}

static struct stave_serving *open_server(const char *dir, struct stave_error *error)
{
    struct stave_serving_config c = {.size = sizeof c,
                                     .trace_enabled = true,
                                     .trace_output = dir,
                                     .outputs = STAVE_SERVING_JSON | STAVE_SERVING_CSV,
                                     .flush_ms = 1000000};
    return stave_serving_open(&c, error);
}

/* The file, whole: to be freed. */
static char *text_of(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    REQUIRE(f);
    char *text = calloc(1, 1 << 20);
    *len = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

TEST(an_exhausted_heap_ends_the_files_of_a_server)
{
    const char *dir = test_scratch("serving");
    struct stave_error error;
    char path[4096];
    struct stave_serving_counts counts = {.size = sizeof counts};
    size_t len_before, len;
    REQUIRE(mkdir(dir, 0700) == 0);
    struct stave_serving *s = open_server(dir, &error);
    REQUIRE(s);
    snprintf(path, sizeof path, "%s", stave_serving_file(s, STAVE_SERVING_JSON));
    serve(s, 1, 3);
    CHECK_INT_EQ(stave_serving_flush(s), 0);
    char *before = text_of(path, &len_before);
    test_alloc_fail(1);
    serve(s, 100, 500);
    int status = stave_serving_flush(s);
    serve(s, 1000, 10);
    int again = stave_serving_flush(s);
    test_alloc_fail(0);
    CHECK(status != 0 && again != 0);
    stave_serving_count(s, &counts);
    CHECK(counts.lost >= 40);
    CHECK(stave_serving_close(s, &error) < 0);
    CHECK(strstr(error.text, "not complete"));
    char *after = text_of(path, &len);
    CHECK_UINT_EQ(len, len_before);
    CHECK(len > 0 && memcmp(before, after, len) == 0);
    free(before);
    free(after);
}

TEST(a_server_without_memory_is_not_traced)
{
    const char *dir = test_scratch("serving");
    struct stave_error error;
    REQUIRE(mkdir(dir, 0700) == 0);
    unsigned k = 1;
    for (bool failed = true; failed && k < 1000; k++) {
        test_alloc_fail(k);
        struct stave_serving *s = open_server(dir, &error);
        failed = test_alloc_failed();
        test_alloc_fail(0);
        CHECK(s || (error.code < 0 && error.text[0]));
        if (s)
            stave_serving_close(s, &error);
    }
    CHECK(k > 2 && k < 1000);
}
