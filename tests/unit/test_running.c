/* Files of recordings that run: written, found, believed only as far as they can be. */
#include "record/session/running.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[128];

/* A runtime folder of the test's own. */
static void set_up(void)
{
    char path[] = "/tmp/stave-running.XXXXXX";
    REQUIRE(mkdtemp(path));
    setenv("XDG_RUNTIME_DIR", path, 1);
    snprintf(folder, sizeof folder, "%s/stave-recordings", path);
}

static void tear_down(void)
{
    char command[256];
    *strrchr(folder, '/') = 0;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    REQUIRE(system(command) == 0); /* NOLINT(cert-env33-c): a path of our own */
    unsetenv("XDG_RUNTIME_DIR");
}

static size_t count(struct sv_running *first)
{
    struct sv_running *all;
    size_t n = sv_running_all(&all);
    if (n > 0)
        *first = all[0];
    free(all);
    return n;
}

TEST(a_recording_is_found_with_its_size_until_its_file_is_gone)
{
    test_leaves_open();
    struct sv_running r = {0};
    set_up();
    CHECK_UINT_EQ(count(&r), 0);
    char *path = sv_running_announce("ls\n\033[31m", "/out/a\nb.pftrace", true);
    REQUIRE(path);
    CHECK_UINT_EQ(count(&r), 1);
    CHECK_UINT_EQ(r.id.pid, (unsigned)getpid());
    CHECK_STR_EQ(r.name, "ls\n\033[31m"); /* as it is: who prints it escapes it */
    CHECK_STR_EQ(r.out, "/out/a\nb.pftrace");
    CHECK(r.is_ring && !r.is_outside);
    CHECK_UINT_EQ(r.bytes, 0);
    sv_running_update(path, 123456789, &(struct sv_running_state){.saved = 3});
    CHECK_UINT_EQ(count(&r), 1);
    CHECK_UINT_EQ(r.bytes, 123456789);
    CHECK_UINT_EQ(r.state.saved, 3);
    CHECK(sv_running_is(&r, "/out/a\nb.pftrace"));
    CHECK(!sv_running_is(&r, "other"));
    unlink(path);
    CHECK_UINT_EQ(count(&r), 0);
    sv_running_update(path, 1, &(struct sv_running_state){0}); /* no harm */
    sv_running_update(NULL, 1, &(struct sv_running_state){0});
    free(path);
    tear_down();
}

TEST(a_relative_output_is_below_the_working_directory)
{
    test_leaves_open();
    struct sv_running r = {0};
    char cwd[512], wanted[640];
    set_up();
    char *path = sv_running_announce("x", "sub/t.pftrace", false);
    REQUIRE(path && getcwd(cwd, sizeof cwd));
    snprintf(wanted, sizeof wanted, "%s/sub/t.pftrace", cwd);
    CHECK_UINT_EQ(count(&r), 1);
    CHECK_STR_EQ(r.out, wanted);
    unlink(path);
    free(path);
    tear_down();
}

/* Writes a file as a recorder would; the descriptor, which holds the lock. */
static int plant(const char *name, const struct sv_running *r, size_t size, bool is_locked)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, r, size) == (ssize_t)size);
    if (is_locked)
        REQUIRE(flock(fd, LOCK_EX) == 0);
    return fd;
}

static bool exists(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static struct sv_running mine(void)
{
    struct sv_running r = {0};
    char *path = sv_running_announce("x", "/x", false);
    REQUIRE(path && count(&r) == 1);
    unlink(path);
    free(path);
    return r;
}

TEST(what_nobody_holds_is_removed_and_what_is_not_whole_is_not_believed)
{
    test_leaves_open();
    struct sv_running r, found;
    set_up();
    r = mine();
    close(plant("left", &r, sizeof r, false));
    CHECK_UINT_EQ(count(&found), 0);
    CHECK(!exists("left"));
    int fd = plant("short", &r, sizeof r / 2, true);
    CHECK_UINT_EQ(count(&found), 0);
    close(fd);
    r.magic[0] = 'S';
    fd = plant("strange", &r, sizeof r, true);
    CHECK_UINT_EQ(count(&found), 0);
    CHECK(exists("strange")); /* somebody holds it: another version, perhaps */
    close(fd);
    tear_down();
}

/* A copy of the lock lives on in a child of a recorder that was killed, and its number is another's
 * by now. */
TEST(a_recorder_that_is_gone_is_not_listed_though_its_lock_is_held)
{
    test_leaves_open();
    struct sv_running r, found;
    set_up();
    r = mine();
    r.id.start_ticks += 1;
    int fd = plant("gone", &r, sizeof r, true);
    CHECK_UINT_EQ(count(&found), 0);
    CHECK(!exists("gone"));
    close(fd);
    tear_down();
}

TEST(a_recording_of_another_pid_namespace_is_listed_and_not_signalled)
{
    test_leaves_open();
    struct sv_running r, found;
    struct sv_err err = {0};
    set_up();
    r = mine();
    r.id.pid_namespace += 1;
    int fd = plant("outside", &r, sizeof r, true);
    REQUIRE(count(&found) == 1);
    CHECK(found.is_outside);
    CHECK_INT_EQ(sv_running_signal(&found, SIGKILL, &err), SV_EINPUT); /* this process lives on */
    CHECK(strstr(err.msg, "in another pid namespace"));
    close(fd);
    tear_down();
}

/* A process that ends with 7 when it is let go, unless it is killed before. */
static pid_t start_child(int *go)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 7 : 1);
    }
    close(ends[0]);
    *go = ends[1];
    return child;
}

TEST(only_the_process_that_wrote_it_is_signalled)
{
    test_leaves_open();
    struct sv_running r;
    struct sv_err err = {0};
    set_up();
    r = mine();
    for (int is_same = 0; is_same < 2; is_same++) {
        int go, status;
        pid_t child = start_child(&go);
        r.id.pid = (uint32_t)child;
        /* Or another one had the number. */
        r.id.start_ticks = sv_process_start_ticks((uint32_t)child) + !is_same;
        CHECK_INT_EQ(sv_running_signal(&r, SIGKILL, &err), 0);
        close(go);
        CHECK_INT_EQ(waitpid(child, &status, 0), child);
        CHECK(is_same ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                      : WIFEXITED(status) && WEXITSTATUS(status) == 7);
        CHECK_INT_EQ(sv_running_signal(&r, SIGKILL, &err), 0); /* it is gone: no error */
    }
    tear_down();
}

/* The oldest first; of one second, by their numbers. */
TEST(recordings_are_listed_by_their_age)
{
    test_leaves_open();
    static const struct {
        int64_t since_s;
        unsigned char mark;
    } rows[] = {{300, 5}, {100, 1}, {200, 3}, {200, 4}, {100, 2}};
    struct sv_running r, *all;
    int fds[TEST_COUNT(rows)];
    set_up();
    r = mine();
    r.id.pid_namespace += 1; /* others' numbers: nobody asks whether they run */
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char name[8];
        snprintf(name, sizeof name, "%zu", i);
        r.since_s = rows[i].since_s;
        r.id.pid = 1000u + rows[i].mark;
        fds[i] = plant(name, &r, sizeof r, true);
    }
    REQUIRE(sv_running_all(&all) == TEST_COUNT(rows));
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CHECK_UINT_EQ(all[i].id.pid, 1001 + i);
        close(fds[i]);
    }
    free(all);
    tear_down();
}

TEST(a_folder_that_others_can_write_to_is_not_believed)
{
    test_leaves_open();
    struct sv_running r, found;
    set_up();
    r = mine();
    int fd = plant("1", &r, sizeof r, true);
    CHECK_UINT_EQ(count(&found), 1);
    REQUIRE(chmod(folder, 0777) == 0);
    CHECK_UINT_EQ(count(&found), 0);
    /* A new one gets a place of its own beside it, and is found there. */
    char *path = sv_running_announce("x", "/x", false);
    REQUIRE(path);
    CHECK(strncmp(path, folder, strlen(folder)) == 0 && path[strlen(folder)] == '.');
    CHECK_UINT_EQ(count(&found), 1);
    CHECK_STR_EQ(found.out, "/x");
    char *second = sv_running_announce("x", "/x", false);
    REQUIRE(second);
    CHECK_STR_EQ(second, path);
    free(second);
    free(path);
    close(fd);
    tear_down();
}

TEST(a_recording_is_near_its_folder)
{
    test_leaves_open();
    struct sv_running r = {0};
    char cwd[PATH_MAX];
    set_up();
    REQUIRE(getcwd(cwd, sizeof cwd) && setsid() != 0);
    char *path = sv_running_announce("x", "y", false);
    REQUIRE(path);
    CHECK_UINT_EQ(count(&r), 1);
    CHECK_STR_EQ(r.folder, cwd);
    CHECK(sv_running_is_near(&r));
    r.terminal = 0;
    REQUIRE(chdir("/") == 0);
    CHECK(strcmp(cwd, "/") == 0 || !sv_running_is_near(&r));
    free(path);
    tear_down();
}
