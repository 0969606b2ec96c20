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
    char path[256], message[256] = "";
    path_of(path, sizeof path, "order.pftrace");
    struct stave_file *f = stave_file_open(path, NULL, message, sizeof message);
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
    CHECK_INT_EQ(stave_file_close(f, message, sizeof message), 0);
    CHECK(stat(path, &st) == 0 && st.st_size > 100);
    unlink(path);
}

TEST(file_refusals_say_why)
{
    char message[256] = "";
    CHECK(stave_file_open("/nowhere/at/all.pftrace", NULL, message, sizeof message) == NULL);
    CHECK(message[0] != 0);
    CHECK(stave_file_open("x.unknown", NULL, message, sizeof message) == NULL);
    CHECK(strstr(message, ".pftrace") != NULL);
    CHECK(stave_file_open("unix:/x", NULL, message, sizeof message) == NULL);
    CHECK(stave_file_open("x.pftrace", "lzma", message, sizeof message) == NULL);
    CHECK(stave_file_open(NULL, NULL, NULL, 0) == NULL);
}
