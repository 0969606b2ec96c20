/* What becomes of the growing file when its folder is renamed, removed or replaced while a program
 * writes it: which file holds the events at the end, what is said, and what else is there. */
#include "tests/unit/sdk_scene.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[300], listed[4000];

static const char *in_top(const char *name)
{
    static char paths[4][SV_PATH_MAX];
    static unsigned i;
    char *path = paths[i++ % 4];
    snprintf(path, SV_PATH_MAX, "%s/%s", top, name);
    return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    return remove(path);
}

static void remove_all(const char *path)
{
    CHECK_INT_EQ(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int put_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)f;
    if (type == FTW_F)
        snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%s%s %03o",
                 listed[0] ? " " : "", path + strlen(top) + 1, st->st_mode & 0777);
    return 0;
}

/* All files below the folder, with their rights: "a/t.pftrace 600". */
static const char *files(void)
{
    listed[0] = '\0';
    nftw(top, put_one, 8, FTW_PHYS);
    return listed;
}

/* ---- what happens meanwhile ---- */

static void nothing(void)
{
}

static void folder_is_moved(void)
{
    CHECK_INT_EQ(rename(in_top("a"), in_top("z")), 0);
}

static void folder_is_moved_and_made_again(void)
{
    folder_is_moved();
    CHECK_INT_EQ(mkdir(in_top("a"), 0700) + mkdir(in_top("a/b"), 0700), 0);
}

static void folder_is_removed(void)
{
    remove_all(in_top("a"));
}

static void file_is_removed(void)
{
    CHECK_INT_EQ(chmod(in_top("a/b/t.pftrace.part"), 0640), 0);
    CHECK_INT_EQ(unlink(in_top("a/b/t.pftrace.part")), 0);
}

static void file_has_another_name(void)
{
    CHECK_INT_EQ(rename(in_top("a/b/t.pftrace.part"), in_top("a/u.pftrace.part")), 0);
}

static void file_has_another_name_and_its_place_is_taken(void)
{
    file_has_another_name();
    test_write_file(in_top("a/b/t.pftrace.part"), "mine");
    CHECK_INT_EQ(chmod(in_top("a/b/t.pftrace.part"), 0600), 0);
}

static void file_is_no_growing_file(void)
{
    CHECK_INT_EQ(rename(in_top("a/b/t.pftrace.part"), in_top("a/b/t.parts")), 0);
}

static void place_is_taken(void)
{
    CHECK_INT_EQ(unlink(in_top("a/b/t.pftrace.part")), 0);
    test_write_file(in_top("a/b/t.pftrace.part"), "mine");
    CHECK_INT_EQ(chmod(in_top("a/b/t.pftrace.part"), 0600), 0);
}

static void a_file_is_where_the_folder_was(void)
{
    remove_all(in_top("a"));
    test_write_file(in_top("a"), "mine");
    CHECK_INT_EQ(chmod(in_top("a"), 0600), 0);
}

#define AGAIN "it was removed while it was written, and is written again"
#define GONE  "it was removed while it was written, and cannot be written again: 2 events are lost"
#define KEPT  "the folder was moved or removed; the trace is kept as "

static const struct {
    const char *name;
    void (*act)(void);
    const char *out;   /* the file that has both events; NULL: none has */
    const char *files; /* all that are there */
    const char *said;
} rows[] = {
    {"nothing", nothing, "a/b/t.pftrace", "a/b/t.pftrace 600", ""},
    {"moved", folder_is_moved, "z/b/t.pftrace", "z/b/t.pftrace 600", ""},
    {"moved, made again", folder_is_moved_and_made_again, "z/b/t.pftrace", "z/b/t.pftrace 600", ""},
    {"removed", folder_is_removed, "a/b/t.pftrace", "a/b/t.pftrace 600", AGAIN},
    {"file removed", file_is_removed, "a/b/t.pftrace", "a/b/t.pftrace 640", AGAIN},
    {"another name", file_has_another_name, "a/u.pftrace", "a/u.pftrace 600", ""},
    {"another name, place taken", file_has_another_name_and_its_place_is_taken, "a/u.pftrace",
     "a/b/t.pftrace.part 600 a/u.pftrace 600", ""},
    {"no growing file", file_is_no_growing_file, NULL, "a/b/t.parts 600 a/b/t.pftrace.session 600",
     KEPT},
    {"place taken", place_is_taken, NULL, "a/b/t.pftrace.part 600", GONE},
    {"no folder", a_file_is_where_the_folder_was, NULL, "a 600", GONE},
};

TEST(where_the_events_are)
{
    test_leaves_open();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        static struct sdk_scene s;
        CONTEXT("%s", rows[i].name);
        sdk_fresh(&s);
        sdk_hear();
        snprintf(top, sizeof top, "%s", test_scratch("top"));
        REQUIRE(mkdir(top, 0700) + mkdir(in_top("a"), 0700) + mkdir(in_top("a/b"), 0700) == 0);
        snprintf(s.out, sizeof s.out, "%s", in_top("a/b/t.pftrace"));
        struct stave_options o = {.size = sizeof o, .out = s.out};
        REQUIRE(stave_start(&o, NULL) == 0);
        STAVE_INSTANT("c", "before");
        CHECK_INT_EQ(stave_flush(), 0);
        rows[i].act();
        STAVE_INSTANT("c", "after");
        CHECK_INT_EQ(stave_stop(), rows[i].out ? 0 : STAVE_EOUTPUT);
        const char *said = sdk_heard();
        CHECK(rows[i].said[0] ? strstr(said, rows[i].said) != NULL : said[0] == '\0');
        CHECK_STR_EQ(files(), rows[i].files);
        if (rows[i].out)
            CHECK_STR_EQ(sdk_read(&s, in_top(rows[i].out)),
                         "instant thread before c\ninstant thread after c\n");
        struct stave_counts n = {.size = sizeof n};
        stave_count(&n);
        bool is_gone = strcmp(rows[i].said, GONE) == 0;
        CHECK_UINT_EQ(n.events, is_gone ? 0 : 2);
        CHECK_UINT_EQ(n.lost_output, is_gone ? 2 : 0);
        stave_finish();
        bool is_left = strcmp(rows[i].said, KEPT) == 0; /* for `stave recover` */
        CHECK_UINT_EQ(sdk_entries(s.dir), is_left);
        remove_all(top);
        remove_all(s.dir);
        sdk_done(&s);
    }
}
