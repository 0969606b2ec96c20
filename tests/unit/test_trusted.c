/* Trusted paths: what belongs to others, what others may write to, links and second names are refused. */
#include "core/files/trusted.h"

#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
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
    static const int failures[] = {EMFILE, ENFILE, ENOMEM, EIO, EACCES},
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
