/* Trusted paths: what belongs to others, what others may write to, links and second names are
 * refused. */
#include "core/files/trusted.h"

#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char at[512], second[512];

static const char *in_scratch(char *to, const char *name)
{
    snprintf(to, sizeof at, "%s", test_scratch(name));
    return to;
}

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_INT_EQ(write(fd, "text\n", 5), 5);
    fchmod(fd, mode);
    close(fd);
}

static int trial(const char *path, enum sv_trust trust)
{
    errno = 0;
    int fd = sv_trusted_file(AT_FDCWD, path, O_RDWR, trust, 0);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

TEST(files_by_mode)
{
    in_scratch(at, "file");
    make_file(at, 0600);
    CHECK_INT_EQ(trial(at, SV_TRUST_PRIVATE), 0);
    chmod(at, 0644);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), 0);
    CHECK_INT_EQ(trial(at, SV_TRUST_PRIVATE), EPERM);
    chmod(at, 0620);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), EPERM);
    chmod(at, 0602);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), EPERM);
}

TEST(links_and_second_names)
{
    in_scratch(at, "file");
    make_file(at, 0600);
    CHECK_INT_EQ(symlink(at, in_scratch(second, "soft")), 0);
    CHECK_INT_EQ(trial(second, SV_TRUST_OWN), ELOOP);
    CHECK_INT_EQ(link(at, in_scratch(second, "hard")), 0);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), EPERM);
    CHECK_INT_EQ(unlink(second), 0);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), 0);
}

TEST(no_regular_file)
{
    CHECK_INT_EQ(mkfifo(in_scratch(at, "fifo"), 0600), 0);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), EPERM); /* and does not wait for its other end */
    CHECK_INT_EQ(mkdir(in_scratch(at, "folder"), 0700), 0);
    CHECK(trial(at, SV_TRUST_OWN) != 0);
}

TEST(what_cannot_be_opened_now_may_be_there)
{
    static const int failures[] = {EMFILE, ENFILE, ENOMEM, EIO, EACCES, ESTALE, EINTR},
                     others[] = {ENOENT, ENOTDIR, ELOOP, EPERM, EISDIR, ENXIO, EEXIST};
    for (size_t i = 0; i < TEST_COUNT(failures); i++)
        CHECK(sv_trusted_failed(failures[i]));
    for (size_t i = 0; i < TEST_COUNT(others); i++)
        CHECK(!sv_trusted_failed(others[i]));
}

TEST(truncates_only_what_it_trusts)
{
    struct stat st;
    in_scratch(at, "file");
    make_file(at, 0602);
    CHECK_INT_EQ(sv_trusted_file(AT_FDCWD, at, O_WRONLY | O_TRUNC, SV_TRUST_OWN, 0), -1);
    CHECK(stat(at, &st) == 0 && st.st_size == 5);
    chmod(at, 0600);
    int fd = sv_trusted_file(AT_FDCWD, at, O_WRONLY | O_TRUNC, SV_TRUST_OWN, 0);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 0);
    close(fd);
}

TEST(folders)
{
    int fd = sv_trusted_make_folder(AT_FDCWD, in_scratch(at, "sessions"));
    CHECK(fd >= 0);
    close(fd);
    fd = sv_trusted_make_folder(AT_FDCWD, at); /* it is there */
    CHECK(fd >= 0);
    close(fd);
    chmod(at, 0750);
    CHECK_INT_EQ(sv_trusted_make_folder(AT_FDCWD, at), -1);
    CHECK_INT_EQ(errno, EPERM);
    fd = sv_trusted_folder(AT_FDCWD, at, SV_TRUST_OWN);
    CHECK(fd >= 0);
    close(fd);
    CHECK_INT_EQ(symlink(at, in_scratch(second, "soft")), 0);
    CHECK_INT_EQ(sv_trusted_folder(AT_FDCWD, second, SV_TRUST_OWN), -1);
}

TEST(of_another_user)
{
    if (geteuid() != 0)
        SKIP("only root can give a file away");
    in_scratch(at, "file");
    make_file(at, 0600);
    CHECK_INT_EQ(chown(at, 65534, (gid_t)-1), 0);
    CHECK_INT_EQ(trial(at, SV_TRUST_OWN), EPERM);
    char text[16];
    CHECK_INT_EQ(sv_trusted_read(AT_FDCWD, at, text, sizeof text), -1);
}

TEST(reads_at_most_the_buffer)
{
    char text[4];
    in_scratch(at, "file");
    make_file(at, 0600);
    CHECK_INT_EQ(sv_trusted_read(AT_FDCWD, at, text, sizeof text), 3);
    CHECK_STR_EQ(text, "tex");
}

static int target(const char *path)
{
    errno = 0;
    return sv_trusted_target(path) ? 0 : errno;
}

static void link_as(uid_t owner, const char *to, const char *path)
{
    unlink(path);
    CHECK_INT_EQ(symlink(to, path), 0);
    CHECK_INT_EQ(lchown(path, owner, (gid_t)-1), 0);
}

TEST(outputs_behind_links)
{
    in_scratch(at, "target");
    in_scratch(second, "link");
    CHECK_INT_EQ(target(at), 0); /* not there */
    make_file(at, 0600);
    CHECK_INT_EQ(target(at), 0);
    link_as(geteuid(), "target", second);
    CHECK_INT_EQ(target(second), 0);
    link_as(geteuid(), "nowhere", second);
    CHECK_INT_EQ(target(second), 0);
    link_as(geteuid(), "link", second);
    CHECK_INT_EQ(target(second), 0); /* in a circle */
    CHECK_INT_EQ(target("/dev/stdout"), 0);
    CHECK_INT_EQ(target("/dev/null"), 0);
    if (geteuid() != 0)
        return; /* the rest needs another owner */
    char third[512];
    in_scratch(third, "third");
    link_as(65534, at, second);
    CHECK_INT_EQ(target(second), EPERM);
    link_as(0, "link", third);
    CHECK_INT_EQ(target(third), EPERM);
    link_as(65534, "nowhere", second);
    CHECK_INT_EQ(target(second), EPERM);
}

TEST(outputs_that_are_pipes)
{
    in_scratch(at, "folder");
    snprintf(second, sizeof second, "%.500s/pipe", at);
    CHECK_INT_EQ(mkdir(at, 0700), 0);
    CHECK_INT_EQ(mkfifo(second, 0666), 0);
    chmod(at, 01777);
    CHECK_INT_EQ(target(second), 0);
    if (geteuid() != 0)
        return;
    CHECK_INT_EQ(chown(second, 65534, (gid_t)-1), 0);
    CHECK_INT_EQ(target(second), EPERM);
    chmod(at, 0755);
    CHECK_INT_EQ(target(second), 0);
}

static int walk(const char *path)
{
    errno = 0;
    int fd = sv_trusted_walk(path);
    if (fd < 0)
        return errno;
    struct stat is = {0}, expected = {0};
    CHECK(fstat(fd, &is) == 0 && stat(path, &expected) == 0);
    CHECK(is.st_dev == expected.st_dev && is.st_ino == expected.st_ino);
    close(fd);
    return 0;
}

TEST(folders_behind_links)
{
    char folder[512], third[600];
    in_scratch(folder, "folder");
    in_scratch(second, "link");
    CHECK_INT_EQ(mkdir(folder, 0700), 0);
    snprintf(third, sizeof third, "%s/link", folder);
    CHECK_INT_EQ(walk(folder), 0);
    CHECK_INT_EQ(walk("."), 0);
    CHECK_INT_EQ(walk("/"), 0);
    CHECK_INT_EQ(walk("//tmp/..//"), 0);
    link_as(geteuid(), "folder", second);
    CHECK_INT_EQ(walk(second), 0);
    link_as(geteuid(), "..//link/../link", third);
    CHECK_INT_EQ(walk(third), 0);
    link_as(geteuid(), "nowhere", second);
    CHECK_INT_EQ(walk(second), ENOENT);
    link_as(geteuid(), "link", second);
    CHECK_INT_EQ(walk(second), ELOOP);
    make_file(in_scratch(at, "file"), 0600);
    CHECK_INT_EQ(walk(at), ENOTDIR);
    if (geteuid() != 0)
        return; /* the rest needs another owner */
    link_as(65534, folder, second);
    CHECK_INT_EQ(walk(second), EPERM);
    CHECK_INT_EQ(walk(third), EPERM); /* a link of ours that leads to one of theirs */
}

/* Links from folder to folder, absolute and relative ones, and names behind them. */
TEST(ways_lead_where_the_kernel_goes)
{
    char inner[600], outer[512], path[700];
    in_scratch(outer, "a");
    CHECK_INT_EQ(mkdir(outer, 0700), 0);
    snprintf(inner, sizeof inner, "%s/inner", outer);
    CHECK_INT_EQ(mkdir(inner, 0700), 0);
    link_as(geteuid(), "a", in_scratch(second, "relative"));
    snprintf(path, sizeof path, "%s/inner", second);
    CHECK_INT_EQ(walk(path), 0);
    snprintf(path, sizeof path, "%s/inner/../inner/..", second);
    CHECK_INT_EQ(walk(path), 0);
    link_as(geteuid(), outer, in_scratch(second, "absolute"));
    snprintf(path, sizeof path, "%s//inner/", second);
    CHECK_INT_EQ(walk(path), 0);
    link_as(geteuid(), "/", in_scratch(second, "root"));
    CHECK_INT_EQ(walk(second), 0);
    snprintf(path, sizeof path, "%s/tmp", second);
    CHECK_INT_EQ(walk(path), 0);
    snprintf(path, sizeof path, "%s/none", outer);
    CHECK_INT_EQ(walk(path), ENOENT);
    make_file(in_scratch(at, "file"), 0600);
    snprintf(path, sizeof path, "%s/inner", at);
    CHECK_INT_EQ(walk(path), ENOTDIR);
    char before[512];
    REQUIRE(getcwd(before, sizeof before) && chdir(outer) == 0);
    CHECK_INT_EQ(walk("inner"), 0);
    CHECK_INT_EQ(walk("inner/.."), 0);
    CHECK_INT_EQ(walk("../relative/inner"), 0);
    REQUIRE(chdir(before) == 0);
}

/* The longest path there is, with a link at its end. */
TEST(ways_have_a_length)
{
    char path[PATH_MAX + 2];
    link_as(geteuid(), ".", in_scratch(second, "link"));
    size_t n = strlen(second);
    memset(path, '/', sizeof path);
    memcpy(path + PATH_MAX - 1 - n, second, n);
    path[PATH_MAX - 1] = '\0';
    path[PATH_MAX] = 0x7f; /* not of the path */
    CHECK_INT_EQ(walk(path), 0);
    char longer[PATH_MAX + 1];
    memset(longer, '/', sizeof longer - 1);
    longer[PATH_MAX] = '\0';
    CHECK_INT_EQ(walk(longer), ENAMETOOLONG);
    CHECK_INT_EQ(target(longer), 0); /* opening it fails */
    /* A link whose target does not fit before what is behind it. */
    char to[200];
    memset(to, '/', sizeof to - 1);
    to[sizeof to - 1] = '\0';
    link_as(geteuid(), to, in_scratch(second, "far"));
    memset(path, '/', sizeof path);
    memcpy(path, second, strlen(second));
    path[PATH_MAX - 1] = '\0';
    CHECK_INT_EQ(walk(path), ENAMETOOLONG);
}

/* So many links in a row are followed, one more is not. */
TEST(links_are_counted)
{
    char name[16], to[16];
    in_scratch(at, "l0");
    CHECK_INT_EQ(symlink(".", at), 0);
    for (int i = 1; i <= 40; i++) {
        snprintf(name, sizeof name, "l%d", i);
        snprintf(to, sizeof to, "l%d", i - 1);
        CHECK_INT_EQ(symlink(to, in_scratch(second, name)), 0);
    }
    int fd = sv_trusted_walk(in_scratch(at, "l39")); /* 40 of them */
    CHECK(fd >= 0);
    close(fd);
    CHECK_INT_EQ(walk(in_scratch(at, "l40")), ELOOP);
}

/* A relative link is one of its folder, wherever this process is. */
TEST(outputs_behind_relative_links)
{
    char folder[512], path[600], pipe_path[600];
    in_scratch(folder, "shared");
    CHECK_INT_EQ(mkdir(folder, 0700), 0);
    chmod(folder, 01777);
    snprintf(path, sizeof path, "%s/link", folder);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    CHECK_INT_EQ(mkfifo(pipe_path, 0666), 0);
    link_as(geteuid(), "pipe", path);
    CHECK_INT_EQ(target(path), 0);
    if (geteuid() != 0)
        SKIP("only root can give a file away");
    CHECK_INT_EQ(chown(pipe_path, 65534, (gid_t)-1), 0);
    CHECK_INT_EQ(target(path), EPERM);
    link_as(0, pipe_path, path);
    CHECK_INT_EQ(target(path), EPERM);
    char before[512];
    REQUIRE(getcwd(before, sizeof before) && chdir(folder) == 0);
    CHECK_INT_EQ(target("pipe"), EPERM);
    CHECK_INT_EQ(target("link"), EPERM);
    chmod(folder, 0755);
    CHECK_INT_EQ(target("pipe"), 0);
    CHECK_INT_EQ(chown("pipe", 0, (gid_t)-1), 0);
    make_file("file", 0600);
    CHECK_INT_EQ(chown("file", 65534, (gid_t)-1), 0);
    CHECK_INT_EQ(target("file"), 0); /* whose rights decide */
    REQUIRE(chdir(before) == 0);
}

TEST(a_name_without_a_folder_is_removed_here)
{
    struct stat st;
    char before[512];
    REQUIRE(getcwd(before, sizeof before) && chdir(test_scratch(".")) == 0);
    make_file("file", 0600);
    CHECK_INT_EQ(stat("file", &st), 0);
    CHECK(!sv_trusted_remove("file", st.st_dev + 1, st.st_ino));
    CHECK(!sv_trusted_remove("none/file", st.st_dev, st.st_ino));
    CHECK(sv_trusted_remove("file", st.st_dev, st.st_ino));
    CHECK_INT_EQ(access("file", F_OK), -1);
    CHECK(!sv_trusted_remove("file", st.st_dev, st.st_ino));
    REQUIRE(chdir(before) == 0);
}

TEST(only_the_file_that_was_seen_is_removed)
{
    struct stat st;
    make_file(in_scratch(at, "file"), 0600);
    make_file(in_scratch(second, "other"), 0600);
    CHECK_INT_EQ(stat(second, &st), 0);
    CHECK(!sv_trusted_remove(at, st.st_dev, st.st_ino));
    CHECK_INT_EQ(access(at, F_OK), 0);
    CHECK_INT_EQ(stat(at, &st), 0);
    CHECK_INT_EQ(symlink(at, in_scratch(second, "link")), 0);
    CHECK(!sv_trusted_remove(second, st.st_dev, st.st_ino));
    CHECK(sv_trusted_remove(at, st.st_dev, st.st_ino));
    CHECK_INT_EQ(access(at, F_OK), -1);
}
