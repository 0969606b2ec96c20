/* The thread behind an idle server sleeps, and is there again when there is something. */
#include "tests/harness/test.h"

#include <dirent.h>
#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t text_of(const char *tid, const char *file, char *text, size_t size)
{
    char path[320];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", tid, file);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return n;
}

/* How often the thread has slept; -1: there is none. */
static long sleeps(void)
{
    char text[4096];
    long n = -1;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        text_of(e->d_name, "comm", text, sizeof text);
        if (strcmp(text, "stave-serving\n") != 0)
            continue;
        text_of(e->d_name, "status", text, sizeof text);
        const char *line = strstr(text, "\nvoluntary_ctxt_switches:");
        n = line ? strtol(strchr(line, '\t'), NULL, 10) : -1;
    }
    if (dir)
        closedir(dir);
    return n;
}

TEST(an_idle_server_sleeps)
{
    struct stave_error error;
    struct stave_serving_counts c = {.size = sizeof c};
    struct stave_serving_config config = {.size = sizeof config,
                                          .trace_enabled = true,
                                          .trace_output = test_scratch("idle"),
                                          .outputs = STAVE_SERVING_JSON,
                                          .queue_records = 256};
    struct stave_serving *s = stave_serving_open(&config, &error);
    REQUIRE(s);
    stave_serving_enqueued(s, 1, 0, 0, 0);
    while (sleeps() < 0) /* it has no name yet */
        usleep(1000);
    long n = 1000;
    for (int i = 0; i < 20 && n > 5; i++) { /* in a second */
        long before = sleeps();
        sleep(1);
        n = sleeps() - before;
    }
    CHECK(n <= 5);
    for (uint64_t i = 2; i < 202; i++) /* more than a quarter of its ring: it is woken */
        stave_serving_enqueued(s, i, 0, 0, 0);
    CHECK_INT_EQ(stave_serving_flush(s), 0);
    stave_serving_count(s, &c);
    CHECK_UINT_EQ(c.calls, 201);
    CHECK_UINT_EQ(c.lost, 0);
    CHECK_INT_EQ(stave_serving_close(s, &error), 0);
}
