/* Files with explicit times: any order, overlap, refusals; read back by the readers of the
 * formats. */
#include "tests/unit/sdk_scene.h"

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

/* What is in the file, through as many batches as it takes. */
TEST(file_has_what_was_given)
{
    static struct sdk_scene s;
    static struct stave_args args;
    enum { N = 1000 };
    struct stave_error error;
    sdk_fresh(&s);
    struct stave_file *f = stave_file_open(s.out, NULL, &error);
    REQUIRE(f != NULL);
    uint32_t process = stave_file_process(f, 7, "sim"), thread = stave_file_thread(f, 7, 8, "main");
    uint32_t row = stave_file_track(f, process, "row"),
             bw = stave_file_counter(f, process, "bw", "B/s");
    CHECK_UINT_EQ(stave_file_thread(f, 7, 8, "main"), thread);
    CHECK_INT_EQ(stave_file_metadata(f, "key", "value"), 0);
    stave_args_init(&args);
    stave_args_int(&args, "i", 5);
    for (int i = N; i-- > 0;) { /* backwards */
        struct stave_event e = {.size = sizeof e,
                                .kind = STAVE_KIND_COMPLETE,
                                .track = row,
                                .category = "c",
                                .name = "n",
                                .args = i % 2 ? &args : NULL,
                                .start_ns = 10 * i,
                                .dur_ns = 10};
        CHECK_INT_EQ(stave_file_emit(f, &e), 0);
    }
    CHECK_INT_EQ(emit(f, STAVE_KIND_INSTANT, thread, -5, 99), 0);
    CHECK_INT_EQ(emit(f, STAVE_KIND_COUNTER, bw, 3, 0), 0);
    CHECK_INT_EQ(emit(f, STAVE_KIND_COMPLETE, row, INT64_MAX - 5, 6), -1);
    CHECK_INT_EQ(emit(f, STAVE_KIND_COMPLETE, row, 20000, -6), 0);
    CHECK_INT_EQ(emit(f, STAVE_KIND_END, row, 1, 0), -1);
    CHECK_INT_EQ(emit(f, STAVE_KIND_LOSS, row, 1, 0), -1);
    CHECK_INT_EQ(emit(f, 0, row, 1, 0), -1);
    CHECK_INT_EQ(emit(f, STAVE_KIND_INSTANT, 0, 1, 0), -1);
    CHECK_INT_EQ(stave_file_close(f, &error), 0);
    sdk_read(&s, s.out);
    size_t begins = 0, ends = 0, others = 0;
    for (size_t i = 0; i < s.file.got.n; i++) {
        const struct sv_event *e = &s.file.got.events[i];
        const struct sv_track_info *t = &s.file.dict->tracks[e->track];
        if (e->kind == SV_BEGIN && e->ts_ns < 10 * N) {
            CHECK_INT_EQ(e->ts_ns, 10 * (int64_t)begins);
            CHECK_UINT_EQ(e->n_args, begins++ % 2);
        } else if (e->kind == SV_END && e->ts_ns <= 10 * N) {
            CHECK_INT_EQ(e->ts_ns, 10 * (int64_t)++ends);
        } else if (e->kind == SV_INSTANT) {
            CHECK(e->ts_ns == -5 && t->tid == 8 && t->pid == 7);
            others++;
        } else if (e->kind == SV_COUNTER) {
            CHECK(e->ts_ns == 3 && e->args[0].d == 1.5 && t->unit != 0);
            others++;
        } else {
            CHECK_INT_EQ(e->ts_ns, 20000); /* of no length */
            others++;
        }
    }
    CHECK_UINT_EQ(begins, N);
    CHECK_UINT_EQ(ends, N);
    CHECK_UINT_EQ(others, 4);
    sdk_done(&s);
}

/* Out of memory at any place: the file fails with a message, and nothing stays behind. */
TEST(file_without_memory)
{
    test_leaves_open();
    if (TEST_HAS_SANITIZER)
        SKIP("memory that is left when the heap is exhausted is a leak to the sanitizer");
    unsigned failed = 0;
    for (unsigned k = 1; k < 400; k++) {
        char path[256];
        struct stave_error error;
        CONTEXT("allocation %u", k);
        path_of(path, sizeof path, "memory.pftrace");
        test_alloc_fail(k);
        struct stave_file *f = stave_file_open(path, NULL, &error);
        int status = f ? 0 : -1;
        uint32_t row = f ? stave_file_track(f, stave_file_process(f, 7, "sim"), "row") : 0;
        for (int i = 0; f && i < 300; i++)
            status |= emit(f, STAVE_KIND_COMPLETE, row, i, 1);
        if (f)
            status |= stave_file_close(f, &error);
        bool has_failed = test_alloc_failed();
        test_alloc_fail(0);
        CHECK_INT_EQ(status != 0, has_failed);
        CHECK(!has_failed || error.text[0] != '\0');
        CHECK_INT_EQ(access(path, F_OK) == 0, !has_failed);
        CHECK_INT_EQ(size_of_part(path), -1);
        unlink(path);
        failed += has_failed;
        if (!has_failed)
            break;
    }
    CHECK(failed > 10 && failed < 399);
}
