/* Files without a name, and writing until everything is written. */
#include "core/files/unlinked.h"

#include "core/files/write_all.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_file(void)
{
    char folder[512], pattern[600], got[4] = "";
    struct stat st;
    glob_t g;
    snprintf(folder, sizeof folder, "%s", test_scratch("folder"));
    mkdir(folder, 0700);
    int fd = sv_open_unlinked(folder);
    REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
    CHECK_INT_EQ(st.st_nlink, 0);
    CHECK(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(write(fd, "abc", 3) == 3 && pread(fd, got, 3, 0) == 3 && strcmp(got, "abc") == 0);
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    CHECK_INT_EQ(glob(pattern, 0, NULL, &g), GLOB_NOMATCH);
    close(fd);
    errno = 0;
    CHECK_INT_EQ(sv_open_unlinked(test_scratch("absent")), -1);
    CHECK_INT_EQ(errno, ENOENT);
}

/* A path of `len` bytes, all of them folders. */
static const char *deep(size_t len)
{
    static char path[8192];
    for (size_t i = 0; i < len; i++)
        path[i] = i % 2 ? '.' : '/';
    path[len] = '\0';
    return path;
}

/* File systems and kernels without O_TMPFILE. */
static void check_without_tmpfile(void)
{
    uint32_t bits = O_TMPFILE & ~O_DIRECTORY;
    if (!test_refuse_call(SYS_openat, 2, bits, EOPNOTSUPP))
        SKIP("no filters of system calls here");
    errno = 0;
    CHECK(open("/tmp", O_TMPFILE | O_RDWR, 0600) < 0 && errno == EOPNOTSUPP);
    check_file();
    errno = 0;
    CHECK(sv_open_unlinked(deep(4096)) < 0);
    CHECK_INT_EQ(errno, ENAMETOOLONG);
    errno = 0;
    CHECK(sv_open_unlinked(deep(4096 - 13)) < 0);
    CHECK_INT_EQ(errno, ENAMETOOLONG);
    int fd = sv_open_unlinked(deep(4095 - 13)); /* the longest: the root, which can be written */
    CHECK(geteuid() != 0 || fd >= 0 || errno == EROFS);
    if (fd >= 0)
        close(fd);
}

TEST(a_file_without_a_name)
{
    check_file();
    if (!test_in_child(check_without_tmpfile))
        SKIP("no filters of system calls here");
}

TEST(the_folder_for_such_files)
{
    setenv("TMPDIR", "/somewhere", 1);
    CHECK_STR_EQ(sv_temporary_dir(), "/somewhere");
    const char *usual = access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
    setenv("TMPDIR", "", 1);
    CHECK_STR_EQ(sv_temporary_dir(), usual);
    unsetenv("TMPDIR");
    CHECK_STR_EQ(sv_temporary_dir(), usual);
}

/* ---- writing ---- */

enum { MANY = 300000 };

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

static unsigned char *make_bytes(void)
{
    unsigned char *b = malloc(MANY);
    REQUIRE(b != NULL);
    for (size_t i = 0; i < MANY; i++)
        b[i] = byte_at(i);
    return b;
}

static void nothing(int sig)
{
    (void)sig;
}

/* Reads all there is; exits 0 if it is exactly the bytes. */
static _Noreturn void compare(int fd, size_t expected)
{
    unsigned char piece[1000];
    size_t at = 0;
    ssize_t n;
    bool is_same = true;
    while ((n = read(fd, piece, sizeof piece)) > 0)
        for (ssize_t i = 0; i < n; i++, at++)
            is_same &= at < MANY && piece[i] == byte_at(at);
    _exit(is_same && at == expected ? 0 : 1);
}

/* Signals come in between, which end a write after a part of the bytes, or before the first one. */
TEST(all_bytes_are_written_whatever_interrupts)
{
    struct sigaction interrupt = {.sa_handler = nothing};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {0};
    unsigned char *bytes = make_bytes();
    int ends[2], status = -1;
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        compare(ends[0], MANY);
    }
    close(ends[0]);
    sigaction(SIGALRM, &interrupt, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    CHECK(sv_write_all(ends[1], bytes, MANY));
    setitimer(ITIMER_REAL, &never, NULL);
    close(ends[1]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    CHECK_INT_EQ(status, 0);
    free(bytes);
}

TEST(what_cannot_be_written_is_an_error)
{
    unsigned char *bytes = make_bytes();
    int ends[2], status = -1;
    REQUIRE(pipe(ends) == 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    errno = 0;
    CHECK(!sv_write_all(ends[1], bytes, MANY)); /* it is full before */
    CHECK_INT_EQ(errno, EAGAIN);
    int room = fcntl(ends[1], F_GETPIPE_SZ);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        compare(ends[0], (size_t)room);
    }
    close(ends[1]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    errno = 0;
    CHECK(!sv_write_all(-1, bytes, 1) && errno == EBADF);
    CHECK(sv_write_all(-1, bytes, 0));
    free(bytes);
}
