/* Where sessions write to and where they are: names, folders, and what follows the whole part of a
 * file. */
#include "core/base/json_scan.h"
#include "core/files/trusted.h"
#include "sdk/session/destination.h"
#include "sdk/session/folders.h"
#include "tests/unit/sdk_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(names_that_are_checked)
{
    static const struct {
        const char *pattern, *compress, *why; /* NULL: fine */
        bool can_go_on;
    } rows[] = {
        {"t.pftrace", "", NULL, true},
        {"t.pftrace", "none", NULL, true},
        {"t.pftrace", "gzip", NULL, true},
        {"t.pftrace", "lzma", "STAVE_COMPRESS is none, gzip or zstd", true},
        {"t.pftrace.gz", "", NULL, false},
        {"t.json", "", NULL, true},
        {"t.json", "gzip", "STAVE_COMPRESS needs the suffix of the compressed file, .json.gz",
         true},
        {"t.json.gz", "gzip", NULL, false},
        {"t.json.gz", "zstd", "STAVE_COMPRESS needs the suffix of the compressed file, .json.gz",
         false},
        {"t.txt", "", "expected a name that ends in ", false},
        {"t", "", "expected a name that ends in ", false},
        {"tcp:127.0.0.1:80", "", NULL, false},
        {"tcp:127.0.0.1", "", "expected unix:PATH or tcp:ADDRESS:PORT", false},
        {"%x.pftrace", "", "%", true},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char text[SV_DESTINATION_TEXT] = "";
        CONTEXT("%s %s", rows[i].pattern, rows[i].compress);
        const char *why =
            sv_destination_check(rows[i].pattern, rows[i].compress, text, sizeof text);
        if (!rows[i].why || !why)
            CHECK_STR_EQ(why, rows[i].why);
        else
            CHECK(strstr(why, rows[i].why) != NULL);
        CHECK_INT_EQ(sv_destination_can_go_on(rows[i].pattern), rows[i].can_go_on);
    }
    char text[SV_DESTINATION_TEXT] = "";
    CHECK_STR_EQ(sv_destination_check("t.txt", "", text, sizeof text),
                 "expected a name that ends in .pftrace, .perfetto-trace, .perfetto, .pb, .proto, "
                 ".json, or one of these with .gz or .zst after it");
}

TEST(names_of_processes)
{
    char name[100], expected[120];
    snprintf(name, sizeof name, "/x/t.json.gz");
    CHECK(sv_destination_number(name, sizeof name, 12));
    CHECK_STR_EQ(name, "/x/t.12.json.gz");
    CHECK(!sv_destination_number(name, strlen(name) + 3, 12) || strlen(name) < 18);
    CHECK(sv_destination_name("/x/t.pftrace", 7, false, name, sizeof name) == NULL);
    CHECK_STR_EQ(name, "/x/t.pftrace");
    CHECK(sv_destination_name("/x/t.pftrace", 7, true, name, sizeof name) == NULL);
    CHECK_STR_EQ(name, "/x/t.7.pftrace");
    CHECK(sv_destination_name("/x/%p.t.pftrace", 7, true, name, sizeof name) == NULL);
    CHECK_STR_EQ(name, "/x/7.t.pftrace");
    CHECK(sv_destination_name("/x/%%p.pftrace", 7, true, name, sizeof name) == NULL);
    CHECK_STR_EQ(name, "/x/%p.7.pftrace");
    CHECK(sv_destination_name("tcp:127.0.0.1:80", 7, true, name, sizeof name) == NULL);
    CHECK_STR_EQ(name, "tcp:127.0.0.1:80");
    char here[SV_PATH_MAX], local[2 * SV_PATH_MAX];
    REQUIRE(getcwd(here, sizeof here) != NULL);
    snprintf(local, sizeof local, "unix:%s/s", here);
    char socket[2 * SV_PATH_MAX];
    CHECK(sv_destination_expand("unix:s", 7, socket, sizeof socket) == NULL);
    CHECK_STR_EQ(socket, local);
    snprintf(expected, sizeof expected, "unix:/%0*d", 97, 0);
    CHECK(sv_destination_expand(expected, 7, socket, sizeof socket) == NULL);
    snprintf(socket, sizeof socket, "unix:/%0*d", 120, 0);
    char to[300];
    CHECK_STR_EQ(sv_destination_expand(socket, 7, to, sizeof to),
                 "the path of the socket, from / on, is too long");
}

/* What follows a file that was cut: of JSON the end of the array, or a comma and more of it. */
TEST(what_follows_a_cut)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 20);
    sv_destination_rest_join("t.pftrace", &b);
    CHECK_UINT_EQ(b.len, 0);
    sv_destination_rest_join("t.json", &b);
    CHECK_STR_EQ(sv_buf_cstr(&b), "\n]}\n");
    sv_buf_clear(&b);
    sv_buf_str(&b, "[{\"x\":1}]\n");
    sv_destination_rest_join("t.json", &b);
    CHECK_STR_EQ(sv_buf_cstr(&b), ",{\"x\":1}]}\n");
    sv_buf_fini(&b);
}

static void set(const char *variable, const char *value)
{
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

TEST(folders_of_sessions)
{
    static const char *const variables[] = {"STAVE_SESSION_DIR", "XDG_RUNTIME_DIR", "TMPDIR"};
    static struct sv_folder f[SV_FOLDERS_MAX];
    char *kept[3], run[300], path[SV_PATH_MAX], first[SV_PATH_MAX], mine[64];
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(variables[i]);
        kept[i] = value ? strdup(value) : NULL;
    }
    snprintf(run, sizeof run, "%s", test_scratch("run"));
    snprintf(mine, sizeof mine, "/dev/shm/stave-%u", (unsigned)geteuid());
    set("STAVE_SESSION_DIR", NULL);
    set("XDG_RUNTIME_DIR", run);
    set("TMPDIR", "");
    REQUIRE(sv_folders(f) >= 3);
    snprintf(path, sizeof path, "%s/stave", run);
    CHECK(strcmp(f[0].path, path) == 0 && !f[0].is_given);
    CHECK_STR_EQ(f[1].path, mine);
    snprintf(path, sizeof path, "/tmp/stave-%u", (unsigned)geteuid());
    CHECK_STR_EQ(f[2].path, path);
    set("XDG_RUNTIME_DIR", NULL);
    set("TMPDIR", run);
    REQUIRE(sv_folders(f) >= 2);
    CHECK_STR_EQ(f[0].path, mine);
    snprintf(path, sizeof path, "%s/stave-%u", run, (unsigned)geteuid());
    CHECK_STR_EQ(f[1].path, path);
    set("STAVE_SESSION_DIR", run);
    CHECK_UINT_EQ(sv_folders(f), 1);
    CHECK(strcmp(f[0].path, run) == 0 && f[0].is_given);
    CHECK(sv_folder_open(&f[0], false) < 0);
    int fd = sv_folder_for_session("1-a", NULL, first, sizeof first);
    CHECK(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s/1-a", run);
    CHECK_STR_EQ(first, path);
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700);
    fd = sv_folder_for_session("1-a", NULL, first, sizeof first); /* the name is taken */
    CHECK(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s/1-a.1", run);
    CHECK_STR_EQ(first, path);
    CHECK_INT_EQ(sv_folder_for_session("2-b", first, path, sizeof path), -1); /* not in there */
    CHECK_INT_EQ(errno, ENOSPC);
    CHECK_INT_EQ(sv_folder_for_session("2-b", NULL, path, strlen(run) + 1 + 3 + 32), -1);
    CHECK_INT_EQ(errno, ENAMETOOLONG);
    fd = sv_folder_for_session("2-b", NULL, path, strlen(run) + 1 + 3 + 33);
    CHECK(fd >= 0);
    close(fd);
    set("STAVE_SESSION_DIR", "relative");
    CHECK_UINT_EQ(sv_folders(f), 1);
    char here[SV_PATH_MAX], expected[SV_PATH_MAX + 16];
    snprintf(expected, sizeof expected, "%s/relative", getcwd(here, sizeof here));
    CHECK_STR_EQ(f[0].path, expected);
    for (int i = 0; i < 3; i++) {
        set(variables[i], kept[i]);
        free(kept[i]);
    }
}
