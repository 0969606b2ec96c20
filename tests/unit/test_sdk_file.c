/* Files with explicit times: any order, overlap, refusals; read back by the readers of the formats. */
#include "tests/harness/test.h"

#include <stave/file.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_of(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s/stave-file-%d-%s", P_tmpdir, (int)getpid(), name);
}

static int emit(struct stave_file *f, enum stave_kind kind, uint32_t track, int64_t start,
                int64_t dur)
{
    struct stave_event e = {.size = sizeof e,
                            .kind = kind,
                            .track = track,
                            .category = "c",
                            .name = "n",
                            .start_ns = start,
                            .dur_ns = dur,
                            .value = 1.5};
    return stave_file_emit(f, &e);
}

TEST(file_takes_any_order_and_appears_when_complete)
{
    char path[256];
    struct stave_error error;
    path_of(path, sizeof path, "order.pftrace");
    struct stave_file *f = stave_file_open(path, NULL, &error);
    CHECK(f != NULL);
    uint32_t process = stave_file_process(f, 7, "sim"), row = stave_file_track(f, process, "row");
    uint32_t counter = stave_file_counter(f, process, "bw", "B/s");
    CHECK(process && row && counter);
    CHECK_UINT_EQ(stave_file_track(f, process, "row"), row);
    CHECK_INT_EQ(emit(f, STAVE_KIND_COMPLETE, row, 100, 50), 0);
    CHECK_INT_EQ(emit(f, STAVE_KIND_COMPLETE, row, 0, 100), 0);   /* before it, and touching */
    CHECK_INT_EQ(emit(f, STAVE_KIND_COMPLETE, row, 120, 100), 0); /* crosses the first */
    CHECK_INT_EQ(emit(f, STAVE_KIND_INSTANT, row, -5, 0), 0);
    CHECK_INT_EQ(emit(f, STAVE_KIND_COUNTER, counter, 3, 0), 0);
    CHECK(emit(f, STAVE_KIND_BEGIN, row, 3, 0) < 0);
    CHECK(emit(f, STAVE_KIND_INSTANT, 999, 3, 0) < 0);
    CHECK_UINT_EQ(stave_file_track(f, 999, "x"), 0);
    struct stat st;
    CHECK(stat(path, &st) != 0);
    CHECK_INT_EQ(stave_file_close(f, &error), 0);
    CHECK(stat(path, &st) == 0 && st.st_size > 100);
    unlink(path);
}

TEST(file_refusals_say_why)
{
    struct stave_error error;
    CHECK(stave_file_open("/nowhere/at/all.pftrace", NULL, &error) == NULL);
    CHECK_INT_EQ(error.code, STAVE_EOUTPUT);
    CHECK(error.text[0] != 0);
    CHECK(stave_file_open("x.unknown", NULL, &error) == NULL);
    CHECK(strstr(error.text, ".pftrace") != NULL);
    CHECK_INT_EQ(error.code, STAVE_EUSAGE);
    CHECK(stave_file_open("unix:/x", NULL, &error) == NULL);
    CHECK(stave_file_open("x.pftrace", "lzma", &error) == NULL);
    CHECK(stave_file_open(NULL, NULL, NULL) == NULL);
}

static long size_of_part(const char *path)
{
    char command[512];
    long size = -1;
    snprintf(command, sizeof command, "stat -c %%s %s.%d.*.part 2>&1", path, (int)getpid());
    FILE *p = popen(command, "r");
    if (p && fscanf(p, "%ld", &size) != 1)
        size = -1;
    if (p)
        pclose(p);
    return size;
}

TEST(file_grows_by_what_is_released)
{
    char path[256];
    struct stave_error error;
    path_of(path, sizeof path, "live.pftrace");
    struct stave_file *f = stave_file_open(path, NULL, &error);
    CHECK(f != NULL);
    uint32_t row = stave_file_track_as(f, STAVE_ROW_STREAM,
                                       stave_file_track_as(f, STAVE_ROW_GPU, 0, "GPU 0"), "S");
    for (int64_t i = 99; i >= 0; i--) /* backwards */
        CHECK_INT_EQ(emit(f, STAVE_KIND_COMPLETE, row, i * 10, 5), 0);
    long before = size_of_part(path);
    CHECK_INT_EQ(stave_file_flush(f, 500), 0);
    long half = size_of_part(path);
    CHECK(half > before);
    CHECK(emit(f, STAVE_KIND_COMPLETE, row, 499, 5) < 0); /* too late */
    CHECK_INT_EQ(stave_file_flush(f, 100), 0);            /* back: nothing happens */
    CHECK_INT_EQ(size_of_part(path), half);
    CHECK(emit(f, STAVE_KIND_COMPLETE, row, 499, 5) < 0);
    CHECK_INT_EQ(stave_file_flush(f, 1000), 0);
    CHECK(size_of_part(path) > half + 50 * 5); /* the other fifty */
    CHECK_INT_EQ(stave_file_close(f, &error), 0);
    unlink(path);
}

TEST(file_that_is_discarded_leaves_nothing)
{
    char path[256];
    struct stave_error error;
    path_of(path, sizeof path, "no.json");
    struct stave_file *f = stave_file_open_tracesmith(path, 3, &error);
    CHECK(f != NULL);
    CHECK_INT_EQ(error.code, STAVE_OK);
    CHECK(error.text[0] == 0);
    CHECK_INT_EQ(stave_file_flush(f, 0), STAVE_EUSAGE); /* it is made in memory */
    CHECK_INT_EQ(stave_file_metadata(f, "key", "value"), 0);
    CHECK_INT_EQ(stave_file_metadata(f, "", "value"), STAVE_EUSAGE);
    stave_file_discard(f);
    struct stat st;
    CHECK(stat(path, &st) != 0);
    CHECK_INT_EQ(size_of_part(path), -1);
}
