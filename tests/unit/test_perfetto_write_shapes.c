/* The Perfetto writer's shapes: events with arguments whose values alone change, whole slices,
 * texts that come again. */
#include "tests/unit/pfrig.h"

/* A call of the recorder's kind, as a slice or as its edges. */
static void call(int64_t ts_ns, unsigned i, bool is_whole)
{
    static const char path[4][8] = {"/data/a", "/data/b", "/data/c", "/data/d"};
    static const char *const names[3] = {"openat", "read", "close"};
    sv_track row = track(50 + i % 2, SV_TRACK_CUSTOM, 0, "system calls");
    struct sv_event *e = event(is_whole ? SV_SLICE : SV_BEGIN, ts_ns, row, names[i % 3], "syscall");
    e->dur_ns = is_whole ? 700 : 0;
    arg_i("fd", (int64_t)i % 5 - 1);
    if (i % 7)
        arg_t("path", path[i % 4], 7);
    arg("offset", SV_ARG_INT)->i = (int64_t)i << 20;
    if (i % 3 == 1)
        arg("address", SV_ARG_POINTER)->u = UINT64_MAX - i;
    if (i % 5 == 0)
        arg("ratio", SV_ARG_DOUBLE)->d = 0.5 * i;
    if (i % 5 == 3)
        arg("direct", SV_ARG_BOOL)->i = 1;
    done(e);
    if (!is_whole)
        end(ts_ns + 700, row);
}

TEST(a_whole_slice_is_written_as_its_edges)
{
    struct sv_buf files[2];
    for (int way = 0; way < 2; way++) {
        start();
        for (unsigned i = 0; i < 2000; i++)
            call(1000 + 1000 * (int64_t)i, i, way == 0);
        const char *text = events_only(finish());
        CHECK_UINT_EQ(count(text, " n:read"), 667);
        CHECK_UINT_EQ(count(text, " END"), 2000);
        files[way] = g.file;
        sv_buf_init(&g.file, 1);
        stop();
    }
    CHECK_UINT_EQ(files[0].len, files[1].len);
    CHECK(files[0].len == files[1].len && memcmp(files[0].data, files[1].data, files[0].len) == 0);
    sv_buf_fini(&files[0]);
    sv_buf_fini(&files[1]);
}

TEST(a_slice_that_never_ends_has_only_its_begin)
{
    start();
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    for (int i = 0; i < 20; i++) {
        struct sv_event *e = event(SV_SLICE, i, t, "s", NULL);
        e->dur_ns = i == 19 ? SV_UNFINISHED : 0;
        done(e);
    }
    const char *text = events_only(finish());
    CHECK_UINT_EQ(count(text, " BEGIN"), 20);
    CHECK_UINT_EQ(count(text, " END"), 19);
    stop();
}

/* Another text of the same length is at the address of a known one. */
TEST(texts_are_compared_by_content_not_by_address)
{
    char text[] = "/data/file.?";
    char wanted[64];
    start();
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    for (int i = 0; i < 60; i++) {
        text[11] = (char)('a' + i / 3 % 4);
        struct sv_event *e = event(SV_INSTANT, i, t, "s", NULL);
        struct sv_arg *a = arg("path", SV_ARG_TEXT);
        a->text = text;
        a->size = 12;
        done(e);
        flush();
    }
    const char *out = events_only(finish());
    for (int i = 0; i < 60; i++) {
        snprintf(wanted, sizeof wanted, "%d 51 INSTANT n:s path=\"/data/file.%c\"", i,
                 'a' + i / 3 % 4);
        CHECK(strstr(out, wanted));
    }
    stop();
}

/* The first time it is met a text is written out, the second time it gets a number; one that had a
 * number in the window before gets it at once. */
TEST(texts_that_came_again_are_numbers_in_the_next_window)
{
    start();
    g.options.resync_bytes = 4096;
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    for (int i = 0; i < 2000; i++) {
        struct sv_event *e = event(SV_INSTANT, i, t, "s", NULL);
        arg_t("path", "/data/file", 10);
        done(e);
        flush();
    }
    const char *text = events_only(finish());
    CHECK_UINT_EQ(count(text, "path=\"/data/file\""), 2000);
    CHECK_UINT_EQ(count(text, "path=\"/data/file\"\n"), 1);
    stop();
}
