/* A session whose file has parts: what is in each of them, which ones stay, what is refused. */
#include "core/files/part_name.h"
#include "tests/harness/test.h"
#include "tests/unit/sdk_scene.h"

#include <stave/stave.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stave_counts counts(void)
{
    struct stave_counts n = {.size = sizeof n};
    stave_count(&n);
    return n;
}

/* Until the file has so many parts; returns how many instants that took. */
static unsigned fill(uint64_t parts)
{
    static char text[4000];
    unsigned n = 0;
    memset(text, 'x', sizeof text - 1);
    while (counts().parts < parts && n < 100000) {
        STAVE_INSTANT("c", "fill", "text", text);
        if (++n % 16 == 0)
            stave_flush();
    }
    CHECK_UINT_EQ(counts().parts, parts);
    return n;
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0;
}

static const char *part(const struct sdk_scene *s, uint32_t number, char path[static 600])
{
    sv_parts_name(s->out, number, path, 600);
    return path;
}

static unsigned times(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

TEST(parts_of_a_session_go_on_where_the_one_before_ended)
{
    static struct sdk_scene s;
    char path[600];
    sdk_start(&s, &(struct stave_options){.rotate_bytes = 256 << 10, .full = STAVE_FULL_BLOCK});
    CHECK_UINT_EQ(counts().parts, 1);
    stave_track_t level = stave_counter(STAVE_PROCESS, "level", "");
    STAVE_INSTANT("serving.life", "model", "model", 3, "name", "bert");
    STAVE_BEGIN("c", "outer");
    STAVE_COUNTER_ON(level, "c", 7);
    unsigned n = fill(3);
    STAVE_END("c");
    sdk_stop(&s);
    const char *text = s.text.data ? (const char *)s.text.data : "";
    CHECK_UINT_EQ(times(text, "begin thread outer c continued=bool:1 stave.part=int:3\n"), 1);
    CHECK_UINT_EQ(times(text, "end thread"), 1);
    CHECK_UINT_EQ(times(text, "bert"), 1);
    unsigned filled = times(text, "instant thread fill c");
    text = sdk_read(&s, part(&s, 1, path));
    filled += times(text, "instant thread fill c");
    CHECK_UINT_EQ(times(text, "begin thread outer c\n"), 1);
    CHECK_UINT_EQ(times(text, "stave.part=int:2"), 1); /* the end */
    CHECK_UINT_EQ(times(text, "bert"), 1);
    text = sdk_read(&s, part(&s, 2, path));
    filled += times(text, "instant thread fill c");
    CHECK_UINT_EQ(times(text, "stave.part=int:2"), 3); /* begin, counter, model */
    CHECK_UINT_EQ(times(text, "stave.part=int:3"), 1);
    CHECK_UINT_EQ(filled, n);
    CHECK(!is_there(part(&s, 3, path)));
    sdk_done(&s);
}

TEST(only_parts_of_the_own_session_are_removed)
{
    static struct sdk_scene s;
    char path[600];
    struct stave_options o = {
        .rotate_bytes = 256 << 10, .rotate_parts = 2, .full = STAVE_FULL_BLOCK};
    sdk_start(&s, &o);
    FILE *f = fopen(part(&s, 7, path), "w");
    REQUIRE(f && fputs("of another run", f) >= 0 && fclose(f) == 0);
    fill(4);
    CHECK_UINT_EQ(counts().parts_removed, 2);
    sdk_stop(&s);
    CHECK_UINT_EQ(counts().parts, 4);
    for (uint32_t i = 1; i <= 12; i++)
        CHECK(is_there(part(&s, i, path)) == (i == 7 || i == 10));
    part(&s, 7, path);
    unlink(path);
    sdk_done(&s);
}

TEST(what_has_no_parts_is_refused)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        int64_t ns;
        enum stave_full full;
        const char *why;
    } rows[] = {{"t.json", 1 << 20, 0, STAVE_FULL_DROP, "parts need a name that ends in .pftrace"},
                {"t.pftrace", 1 << 20, 0, STAVE_FULL_OVERWRITE, "no flight recorder"},
                {"t.pftrace", 1000, 0, STAVE_FULL_DROP, "at least 262144 bytes"},
                {"t.pftrace", 0, 1000, STAVE_FULL_DROP, "or a second"}};
    static struct sdk_scene s;
    sdk_fresh(&s);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char out[600];
        struct stave_error error;
        snprintf(out, sizeof out, "%s", test_scratch(rows[i].name));
        struct stave_options o = {.size = sizeof o,
                                  .out = out,
                                  .rotate_bytes = rows[i].bytes,
                                  .rotate_ns = rows[i].ns,
                                  .full = rows[i].full,
                                  .quiet = true};
        CHECK_INT_EQ(stave_start(&o, &error), STAVE_EUSAGE);
        CHECK(strstr(error.text, rows[i].why) != NULL);
    }
    sdk_done(&s);
}
