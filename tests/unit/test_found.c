/* Files that are found in folders: which, in which order, and how many. */
#include "files/found.h"

#include "cli/console.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[512];

static const char *below(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

static void make_base(void)
{
    sv_console_mute();
    snprintf(base, sizeof base, "%s", test_scratch("base"));
    REQUIRE(mkdir(base, 0700) == 0);
}

/* The paths without the folder, in their order. */
static const char *names_of(const struct sv_files *f)
{
    static char text[2048];
    text[0] = '\0';
    for (size_t i = 0; i < f->n; i++) {
        const char *path = f->items[i].path;
        bool is_below = strncmp(path, base, strlen(base)) == 0;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s ",
                 is_below ? path + strlen(base) : path, f->items[i].was_found ? "" : "!");
    }
    return text;
}

TEST(files_of_a_folder_in_order)
{
    struct sv_files f = {0};
    struct sv_err err = {0};
    char slashes[600];
    make_base();
    test_write_file(below("c.json"), "[]");
    test_write_file(below("a.json"), "[]");
    test_write_file(below(".hidden"), "[]");
    REQUIRE(mkdir(below("b"), 0700) == 0);
    test_write_file(below("b/z"), "z");
    test_write_file(below("b/y"), "y");
    REQUIRE(mkfifo(below("pipe"), 0600) == 0);
    REQUIRE(symlink("a.json", below("link")) == 0);
    CHECK_INT_EQ(sv_files_walk(&f, base, 0, &err), 0);
    CHECK_STR_EQ(names_of(&f), "/a.json /b/y /b/z /c.json ");
    sv_files_free(&f);
    char output[1024];
    snprintf(output, sizeof output, "%s", below("c.json"));
    f = (struct sv_files){.output = output}; /* what is written is not read */
    snprintf(slashes, sizeof slashes, "%s///", base);
    CHECK_INT_EQ(sv_files_walk(&f, slashes, 0, &err), 0);
    CHECK_STR_EQ(names_of(&f), "/a.json /b/y /b/z ");
    CHECK_INT_EQ(sv_files_walk(&f, below("c.json"), 0, &err), 0); /* but if it is named, it is */
    CHECK_INT_EQ(sv_files_walk(&f, below("link"), 0, &err), 0);
    CHECK_STR_EQ(names_of(&f), "/a.json /b/y /b/z /c.json! /link! ");
    sv_files_free(&f);
    CHECK(sv_is_folder(base) && !sv_is_folder(below("a.json")) && !sv_is_folder(below("none")));
}

TEST(what_is_not_there)
{
    struct sv_files f = {0};
    struct sv_err err = {0};
    make_base();
    CHECK_INT_EQ(sv_files_walk(&f, below("none"), 0, &err), SV_EINPUT);
    CHECK(err.code == SV_EINPUT && strstr(err.msg, below("none")) != NULL);
    CHECK_UINT_EQ(f.n, 0);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_files_walk(&f, base, 0, &err), 0); /* an empty folder */
    CHECK_UINT_EQ(f.n, 0);
    sv_files_free(&f);
}

TEST(folders_have_a_depth)
{
    struct sv_files f = {0};
    struct sv_err err = {0};
    char path[1024];
    make_base();
    snprintf(path, sizeof path, "%s", base);
    for (int i = 1; i <= SV_FOLDERS_MAX; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/d");
        REQUIRE(mkdir(path, 0700) == 0);
        char file[1100];
        snprintf(file, sizeof file, "%s/f", path);
        test_write_file(file, "");
    }
    CHECK_INT_EQ(sv_files_walk(&f, base, 0, &err), 0);
    CHECK_UINT_EQ(f.n, SV_FOLDERS_MAX - 1); /* the deepest folder is not entered */
    CHECK_UINT_EQ(f.too_deep, 1);
    sv_files_free(&f);
}

TEST(files_have_a_number)
{
    struct sv_files f = {0};
    for (size_t i = 0; i < SV_FILES_MAX + 3; i++)
        sv_files_add(&f, "x", i % 2);
    CHECK_UINT_EQ(f.n, SV_FILES_MAX);
    CHECK_UINT_EQ(f.too_many, 3);
    CHECK(!f.items[0].was_found && f.items[1].was_found);
    sv_files_free(&f);
}

TEST(members_of_another_file)
{
    struct sv_err err = {0};
    struct sv_input *in;
    char path[512];
    snprintf(path, sizeof path, "%s", test_scratch("tar"));
    test_write_file(path, "beforeMEMBERbehind");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct sv_found member = {.path = path, .is_member = true, .fd = fd, .part = {6, 6}};
    struct sv_found whole = {.path = path};
    REQUIRE(sv_found_open(&member, &in, &err) == 0);
    CHECK_INT_EQ(sv_input_need(in, 100, &err), 0);
    CHECK(in->len == 6 && memcmp(in->data, "MEMBER", 6) == 0);
    sv_input_close(in);
    REQUIRE(sv_found_open(&whole, &in, &err) == 0);
    CHECK_INT_EQ(sv_input_need(in, 100, &err), 0);
    CHECK_UINT_EQ(in->len, 18);
    sv_input_close(in);
    whole.path = base;
    snprintf(base, sizeof base, "%s", test_scratch("none"));
    CHECK_INT_EQ(sv_found_open(&whole, &in, &err), SV_EIO);
    close(fd);
}
