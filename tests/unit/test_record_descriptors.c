/* Descriptors that threads open and close at the same time: interleavings made by hand. Records
 * come in the order in which calls end; a close takes effect when it begins, an open when it
 * ends. */
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum { LEADER = 10, OTHER = 12 };

/* A call of a thread, in the order in which they are put, that is of their ends. */
static struct sv_wire_call call_of(uint32_t tid, long nr, uint64_t start, uint64_t end, int fd,
                                   int64_t ret)
{
    struct sv_wire_call c = kbench_call(nr, start, end, fd, ret);
    c.head.tid = tid;
    return c;
}

static void put(struct kbench *k, struct sv_wire_call c)
{
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
}

static void put_open(struct kbench *k, uint32_t tid, uint64_t start, uint64_t end, const char *path,
                     int fd, uint64_t inode)
{
    struct sv_wire_call c = call_of(tid, SYS_openat, start, end, AT_FDCWD, fd);
    c.inode = inode;
    kbench_put(k, 0, &c, sizeof c, path, strlen(path) + 1, 0);
}

static void put_read(struct kbench *k, uint32_t tid, uint64_t start, uint64_t end, int fd,
                     uint64_t inode)
{
    struct sv_wire_call c = call_of(tid, SYS_read, start, end, fd, 1);
    c.inode = inode;
    put(k, c);
}

static void put_close(struct kbench *k, uint32_t tid, uint64_t start, uint64_t end, int fd,
                      uint64_t inode)
{
    struct sv_wire_call c = call_of(tid, SYS_close, start, end, fd, 0);
    c.inode = inode;
    put(k, c);
}

/* "read /a, close -": the calls on descriptor 3 and their paths, in the order of their beginnings
 * as the round gives them. */
static const char *seen(struct kbench *k)
{
    static char text[1024];
    static char all[sizeof k->text];
    char *line, *rest = all;
    size_t n = 0;
    kbench_round(k, UINT64_MAX);
    memcpy(all, k->text, sizeof all);
    text[0] = 0;
    while ((line = strsep(&rest, "\n"))) {
        char name[32];
        const char *call = strstr(line, "system calls "), *path = strstr(line, " path=");
        if (!strstr(line, " begin ") || !call || !strstr(line, " fd=3") ||
            sscanf(call, "system calls %31s", name) != 1)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.*s", n ? ", " : "", name,
                              path ? (int)strcspn(path + 6, " ") : 1, path ? path + 6 : "-");
    }
    return text;
}

/* Thread 10 is in close(3) while thread 12 gets the number: without the kernel's inodes and with
 * them. */
TEST(an_open_that_overtakes_a_close_keeps_its_descriptor)
{
    for (uint64_t inode = 0; inode <= 1; inode++) {
        struct kbench *k = kbench_new(NULL);
        put_open(k, LEADER, 10, 20, "/a", 3, inode);
        put_open(k, OTHER, 35, 50, "/b", 3, inode * 2);
        put_read(k, OTHER, 51, 52, 3, inode * 2);
        put_close(k, LEADER, 30, 60, 3, inode);
        put_read(k, OTHER, 61, 62, 3, inode * 2);
        put_close(k, OTHER, 70, 80, 3, inode * 2);
        put_read(k, LEADER, 90, 91, 3, 0);
        CHECK_STR_EQ(seen(k), "openat /a, openat /b, read /b, close /a, read /b, close /b, read -");
        kbench_free(k);
    }
}

/* The first thread is not scheduled between the effect of its close and its end, the other one goes
 * through more files than are kept. */
TEST(a_close_that_is_late_has_its_own_path_whatever_came_between)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 0);
    for (uint64_t i = 0; i < 4 * SV_FD_PASTS; i++) {
        uint64_t at = 100 + i * 10;
        put_open(k, OTHER, at, at + 2, "/b", 3, 0);
        put_close(k, OTHER, at + 3, at + 5, 3, 0);
        kbench_round(k, UINT64_MAX);
    }
    put_open(k, OTHER, 1000000, 1000001, "/c", 3, 0);
    put_close(k, LEADER, 90, 1000002, 3, 0);
    put_read(k, OTHER, 1000003, 1000004, 3, 0);
    CHECK_STR_EQ(seen(k), "openat /c, close /a, read /c");
    kbench_free(k);
}

/* Late closes are dropped in favour of later ones. */
TEST(closes_that_have_come_are_no_longer_waited_for)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, OTHER, 41, 45, "/0", 4, 0);
    for (uint64_t i = 0; i < 2 * SV_FD_PASTS; i++) {
        uint64_t at = 100 + i * 10;
        put_open(k, OTHER, at + 2, at + 4, "/more", 4, 0);
        put_close(k, OTHER, at, at + 6, 4, 0);
        kbench_round(k, UINT64_MAX);
    }
    for (uint64_t i = 0; i < SV_FD_PASTS / 2; i++)
        put_open(k, LEADER, 10000, 10010, "/a", 3, 0); /* all but the last are closed late */
    for (uint64_t i = 1; i < SV_FD_PASTS / 2; i++)
        put_open(k, OTHER, 10020, 10030 + i, "/b", 5, 0);
    kbench_round(k, UINT64_MAX);
    const struct sv_proc *p = sv_tree_find(sv_decode_tree(k->decode), 10);
    unsigned n = 0;
    for (size_t i = 0; p && p->open.pasts && i < SV_FD_PASTS; i++)
        n += p->open.pasts[i].is_owed;
    CHECK_UINT_EQ(n, SV_FD_PASTS - 3);
    kbench_free(k);
}

/* It began before the open had ended, and ends when all is over. */
TEST(a_read_that_is_there_before_and_after_has_the_file_of_its_inode)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_fork thread = {
        .head = {.kind = SV_WIRE_FORK, .tgid = LEADER, .tid = LEADER, .ts_ns = 5},
        .tgid = LEADER,
        .tid = OTHER};
    kbench_put(k, 1, &thread, sizeof thread, NULL, 0, 0);
    put_open(k, LEADER, 10, 20, "/a", 3, 1);
    put_close(k, LEADER, 30, 40, 3, 1);
    put_open(k, LEADER, 41, 45, "/b", 3, 2);
    put_read(k, OTHER, 15, 50, 3, 1);
    CHECK_STR_EQ(seen(k), "openat /a, close /a, openat /b, read /a");
    kbench_free(k);
}

TEST(a_read_has_the_file_that_was_there_when_it_began)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 0);
    put_close(k, OTHER, 30, 40, 3, 0);
    put_open(k, OTHER, 41, 50, "/b", 3, 0);
    put_read(k, LEADER, 25, 60, 3, 0); /* blocked all the time */
    put_read(k, LEADER, 61, 62, 3, 0);
    CHECK_STR_EQ(seen(k), "openat /a, close /a, openat /b, read /a, read /b");
    kbench_free(k);
}

/* dup2 replaces at a moment that only the kernel knows. */
TEST(a_read_in_the_middle_of_a_dup2_has_the_file_that_the_kernel_saw)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 1);
    put_open(k, LEADER, 21, 25, "/b", 4, 2);
    struct sv_wire_call dup = call_of(OTHER, SYS_dup3, 30, 50, 4, 3);
    dup.inode = 2;
    put_read(k, LEADER, 31, 40, 3, 1);
    put(k, dup);
    put_read(k, LEADER, 41, 60, 3, 1);
    put_read(k, LEADER, 45, 61, 3, 2);
    put_read(k, LEADER, 62, 63, 3, 2);
    CHECK_STR_EQ(seen(k), "openat /a, read /a, read /a, read /b, read /b");
    kbench_free(k);
}

/* Without inodes: what was there when dup2 began, until it has ended. */
TEST(a_read_in_the_middle_of_a_dup2_is_never_without_a_path)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 0);
    put_open(k, LEADER, 21, 25, "/b", 4, 0);
    put(k, call_of(OTHER, SYS_dup3, 30, 50, 4, 3));
    put_read(k, LEADER, 41, 60, 3, 0);
    put_read(k, LEADER, 61, 62, 3, 0);
    CHECK_STR_EQ(seen(k), "openat /a, read /a, read /b");
    kbench_free(k);
}

/* The descriptor that is copied is what it was when the dup began. */
TEST(a_copy_is_of_the_file_that_was_there_when_it_began)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 4, 0);
    put_close(k, OTHER, 31, 35, 4, 0);
    put_open(k, OTHER, 36, 38, "/b", 4, 0);
    put(k, call_of(LEADER, SYS_dup, 30, 40, 4, 3));
    put_read(k, LEADER, 41, 42, 3, 0);
    CHECK_STR_EQ(seen(k), "read /a");
    kbench_free(k);
}

TEST(pipes_and_sockets_that_overtake_a_close_have_no_path)
{
    static const struct {
        long nr;
        int64_t ret;
        uint64_t size;
    } makers[] = {{SYS_pipe2, 0, 3 | (uint64_t)4 << 32},
                  {SYS_socketpair, 0, 4 | (uint64_t)3 << 32},
                  {SYS_socket, 3, 0},
                  {SYS_accept4, 3, 0},
                  {SYS_eventfd2, 3, 0},
                  {SYS_memfd_create, 3, 0}};
    for (size_t i = 0; i < TEST_COUNT(makers); i++) {
        struct kbench *k = kbench_new(NULL);
        put_open(k, LEADER, 10, 20, "/a", 3, 0);
        struct sv_wire_call make = call_of(OTHER, makers[i].nr, 35, 40, -1, makers[i].ret);
        make.size = makers[i].size;
        put(k, make);
        put_read(k, OTHER, 40, 42, 3, 0);
        put_close(k, LEADER, 30, 60, 3, 0);
        CHECK_STR_EQ(seen(k), "openat /a, read -, close /a");
        kbench_free(k);
    }
}

TEST(close_range_takes_what_was_open_when_it_began)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 0);
    put_open(k, OTHER, 35, 40, "/b", 3, 0);
    struct sv_wire_call range = call_of(LEADER, SYS_close_range, 30, 60, 3, 0);
    range.aux = 100;
    put(k, range);
    put_read(k, OTHER, 61, 62, 3, 0);
    range.start_ns = 70;
    range.head.ts_ns = 80;
    put(k, range);
    put_read(k, OTHER, 81, 82, 3, 0);
    CHECK_STR_EQ(seen(k), "openat /a, openat /b, read /b, read -");
    kbench_free(k);
}

TEST(close_range_that_only_marks_marks_what_was_open_when_it_began)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 0);
    put_open(k, OTHER, 35, 40, "/b", 4, 0);
    struct sv_wire_call range = call_of(LEADER, SYS_close_range, 30, 60, 3, 0);
    range.aux = 100;
    range.size = CLOSE_RANGE_CLOEXEC;
    put(k, range);
    struct sv_wire_head exec = {.kind = SV_WIRE_EXEC, .tgid = 10, .tid = 10, .ts_ns = 70};
    kbench_put(k, 1, &exec, sizeof exec, "/bin/x", 7, 0);
    put_read(k, LEADER, 81, 82, 3, 0);
    put_read(k, LEADER, 83, 84, 4, 0);
    CHECK_STR_EQ(seen(k), "openat /a, read -");
    CHECK(strstr(k->text, "read fd=4 path=/b"));
    kbench_free(k);
}

/* The descriptor was /a, but the kernel reports another inode: no path is recorded. It is /a again
 * where the kernel reports its inode. */
TEST(a_descriptor_that_is_another_file_has_no_path)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 1);
    put_read(k, OTHER, 30, 31, 3, 2);
    put_read(k, OTHER, 40, 41, 3, 1);
    CHECK_STR_EQ(seen(k), "openat /a, read -, read /a");
    kbench_free(k);
}

/* Thread 12 reads from what thread 10 is still opening; and it closes it before that has
 * returned. */
TEST(what_is_used_before_its_open_has_ended_is_known_by_its_inode)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 1);
    put_read(k, OTHER, 15, 30, 3, 1);
    put_close(k, OTHER, 19, 40, 3, 1);
    put_read(k, OTHER, 41, 42, 3, 0);
    CHECK_STR_EQ(seen(k), "openat /a, read /a, close /a, read -");
    kbench_free(k);
}

/* Inode 1 is given to another file as soon as the first one is gone. */
TEST(an_inode_that_is_used_again_is_told_apart_by_time)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 1);
    put_close(k, OTHER, 30, 40, 3, 1);
    put_open(k, OTHER, 41, 50, "/b", 3, 1);
    put_read(k, LEADER, 25, 60, 3, 1);
    CHECK_STR_EQ(seen(k), "openat /a, close /a, openat /b, read /a");
    kbench_free(k);
}

/* EBADF says that nothing was there: a close that failed so has closed nothing, a read has no file
 * of before. */
TEST(calls_on_what_is_not_open_change_nothing)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/a", 3, 0);
    put_close(k, OTHER, 30, 40, 3, 0);
    struct sv_wire_call bad = call_of(LEADER, SYS_read, 35, 45, 3, -EBADF);
    put(k, bad);
    put_open(k, OTHER, 46, 50, "/b", 3, 0);
    put(k, call_of(LEADER, SYS_close, 51, 52, 3, -EBADF)); /* before the open took effect */
    put_read(k, OTHER, 61, 62, 3, 0);
    put(k, call_of(LEADER, SYS_close, 63, 64, 3, -EIO)); /* which has closed */
    put_read(k, OTHER, 65, 66, 3, 0);
    CHECK_STR_EQ(seen(k),
                 "openat /a, close /a, read -, openat /b, close /b, read /b, close /b, read -");
    kbench_free(k);
}

/* Where records were lost a close may never come: what waits for one is dropped. */
TEST(what_waits_for_a_lost_close_is_dropped)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_file *held = NULL;
    for (uint64_t i = 0; i < 2 * SV_FD_PASTS; i++)
        put_open(k, i % 2 ? LEADER : OTHER, 10 + i * 10, 15 + i * 10, "/a", 3, 0);
    kbench_round(k, UINT64_MAX);
    sv_decode_lost(k->decode, 0, "system calls", 1, 0, 1);
    struct sv_proc *p = sv_tree_find(sv_decode_tree(k->decode), 10);
    REQUIRE(p && p->open.pasts);
    for (size_t i = 0; i < SV_FD_PASTS; i++)
        CHECK(!p->open.pasts[i].is_owed);
    put_close(k, OTHER, 10000, 10010, 3, 0);
    put_open(k, OTHER, 10011, 10020, "/b", 3, 0);
    put_read(k, LEADER, 9999, 10030, 3, 0);
    CHECK_STR_EQ(seen(k), "close /a, openat /b, read /a");
    held = sv_fd_at(p, 3)->file;
    CHECK(held && held->refs == 1);
    kbench_free(k);
}

/* A program that reads the trace fills paths in by the order of events: what came late must not
 * become the descriptor's path. */
TEST(paths_that_are_left_out_survive_a_close_that_is_late)
{
    for (int once = 0; once < 2; once++) {
        struct kbench *k = kbench_new(NULL);
        if (once)
            kbench_once(k, true);
        put_open(k, LEADER, 10, 20, "/a", 3, 0);
        put_read(k, LEADER, 21, 22, 3, 0);
        put_open(k, OTHER, 35, 40, "/b", 3, 0);
        put_read(k, OTHER, 41, 42, 3, 0);
        put_read(k, LEADER, 25, 50, 3, 0);
        put_read(k, OTHER, 51, 52, 3, 0);
        put_close(k, LEADER, 30, 60, 3, 0);
        put_read(k, OTHER, 61, 62, 3, 0);
        put_read(k, OTHER, 63, 64, 3, 0);
        CHECK_STR_EQ(seen(k), "openat /a, read /a, openat /b, read /b, read /a, read /b, close /a, "
                              "read /b, read /b");
        kbench_free(k);
    }
}

/* The directory of a relative path is the one that was there when the call began. */
TEST(a_relative_path_starts_where_the_descriptor_was)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/dir", 4, 0);
    put_close(k, OTHER, 31, 35, 4, 0);
    put_open(k, OTHER, 36, 38, "/other", 4, 0);
    struct sv_wire_call c = call_of(LEADER, SYS_openat, 30, 50, 4, 3);
    kbench_put(k, 0, &c, sizeof c, "leaf", 5, 0);
    CHECK_STR_EQ(seen(k), "openat /dir/leaf");
    kbench_free(k);
}

static size_t pages_of(const struct sv_proc *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->open.n_pages; i++)
        n += p->open.pages[i] != NULL;
    return n;
}

/* A process has the highest number that there is, and its child: what is kept is of those that are
 * open. */
TEST(high_descriptors_take_no_memory_for_those_below)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, LEADER, 10, 20, "/low", 3, 0);
    put_open(k, LEADER, 21, 30, "/high", SV_FDS_MAX - 1, 0);
    put_open(k, LEADER, 31, 40, "/beyond", SV_FDS_MAX, 0);
    kbench_round(k, UINT64_MAX);
    struct sv_tree *t = sv_decode_tree(k->decode);
    struct sv_proc *p = sv_tree_find(t, 10), child = {0};
    REQUIRE(p);
    CHECK_UINT_EQ(pages_of(p), 2);
    CHECK(sv_fd_at(p, 3)->file && sv_fd_at(p, SV_FDS_MAX - 1)->file);
    CHECK(!sv_fd_at(p, SV_FDS_MAX) && !sv_fd_at(p, -1) && !sv_fd_at(p, 5000));
    sv_fds_copy(t, &child, p);
    CHECK_UINT_EQ(pages_of(&child), 2);
    CHECK(sv_fd_at(&child, SV_FDS_MAX - 1)->file == sv_fd_at(p, SV_FDS_MAX - 1)->file);
    sv_fds_clear(t, &child);
    struct sv_wire_call c = call_of(LEADER, SYS_close_range, 50, 60, 4, 0);
    c.aux = UINT32_MAX;
    put(k, c);
    kbench_round(k, UINT64_MAX);
    CHECK(sv_fd_at(p, 3)->file && !sv_fd_at(p, SV_FDS_MAX - 1)->file);
    kbench_free(k);
}
