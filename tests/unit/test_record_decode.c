/* The decoder over rings made by hand: calls to events, descriptors to paths, hostile records. */
#include "core/base/mem.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static void put(struct kbench *k, unsigned ring, struct sv_wire_call c, const char *path)
{
    kbench_put(k, ring, &c, sizeof c, path, path ? strlen(path) + 1 : 0, 0);
}

static void put_open(struct kbench *k, uint64_t ts, const char *path, int fd, unsigned flags)
{
    struct sv_wire_call c = kbench_call(SYS_openat, ts, ts + 5, AT_FDCWD, fd);
    c.aux = flags;
    put(k, 0, c, path);
}

TEST(a_call_is_a_begin_with_its_arguments_and_an_end)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, 100, "/data/a", 3, 0);
    struct sv_wire_call read = kbench_call(SYS_read, 200, 250, 3, 4096);
    read.size = 8192;
    read.offset = 512;
    put(k, 0, read, NULL);
    put(k, 0, kbench_call(SYS_close, 300, 301, 3, 0), NULL);
    put(k, 0, kbench_call(SYS_read, 400, 401, 3, -9), NULL);
    CHECK_UINT_EQ(kbench_round(k, 1000), 8);
    CHECK_STR_EQ(k->text,
                 "100 begin /system calls openat fd=3 path=/data/a\n"
                 "105 end /system calls \n"
                 "200 begin /system calls read fd=3 path=/data/a requested=8192 offset=512 "
                 "bytes=4096\n"
                 "250 end /system calls \n"
                 "300 begin /system calls close fd=3 path=/data/a\n"
                 "301 end /system calls \n"
                 "400 begin /system calls read fd=3 requested=0 errno=9\n"
                 "401 end /system calls \n");
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_syscalls, SV_SUM_EVENTS), 4);
    kbench_free(k);
}

TEST(a_path_without_an_end_is_none)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call c = kbench_call(SYS_openat, 100, 105, AT_FDCWD, 3);
    kbench_put(k, 0, &c, sizeof c, "/data/ab", 8, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "openat") != NULL);
    CHECK(strstr(k->text, "path=") == NULL);
    kbench_free(k);
}

/* What the descriptor 3 (or `fd`) is after a sequence, seen by a read. */
static const char *path_of(struct kbench *k, uint64_t ts, uint32_t pid, int fd)
{
    struct sv_wire_call c = kbench_call(SYS_read, ts, ts + 1, fd, 0);
    c.head.tgid = c.head.tid = pid;
    put(k, 0, c, NULL);
    kbench_round(k, ts + 1);
    char wanted[32];
    snprintf(wanted, sizeof wanted, "read fd=%d path=", fd);
    const char *at = strstr(k->text, wanted);
    if (!at)
        return "none";
    at += strlen(wanted);
    k->text[strcspn(at, " \n") + (size_t)(at - k->text)] = 0;
    return at;
}

TEST(descriptors_are_followed_through_dup_chdir_and_close_range)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, 10, "/a", 3, 0);
    put(k, 0, kbench_call(SYS_dup, 20, 21, 3, 7), NULL);
    put(k, 0, kbench_call(SYS_close, 30, 31, 3, 0), NULL);
    CHECK_STR_EQ(path_of(k, 40, 10, 7), "/a");
    CHECK_STR_EQ(path_of(k, 50, 10, 3), "none");
    put(k, 0, kbench_call(SYS_chdir, 60, 61, -1, 0), "/var/x");
    put_open(k, 70, "./sub/f", 3, 0);
    CHECK_STR_EQ(path_of(k, 80, 10, 3), "/var/x/sub/f");
    put_open(k, 90, "/dir", 8, 0);
    struct sv_wire_call relative = kbench_call(SYS_openat, 100, 101, 8, 9);
    put(k, 0, relative, "leaf");
    CHECK_STR_EQ(path_of(k, 110, 10, 9), "/dir/leaf");
    struct sv_wire_call f = kbench_call(SYS_fcntl, 120, 121, 9, 20);
    f.aux = F_DUPFD_CLOEXEC;
    put(k, 0, f, NULL);
    CHECK_STR_EQ(path_of(k, 130, 10, 20), "/dir/leaf");
    struct sv_wire_call range = kbench_call(SYS_close_range, 140, 141, 7, 0);
    range.aux = 9;
    put(k, 0, range, NULL);
    CHECK_STR_EQ(path_of(k, 150, 10, 9), "none");
    CHECK_STR_EQ(path_of(k, 160, 10, 20), "/dir/leaf");
    kbench_free(k);
}

TEST(children_inherit_descriptors_and_exec_closes_some)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, 10, "/kept", 3, 0);
    put_open(k, 20, "/closed", 4, O_CLOEXEC);
    struct sv_wire_fork f = {.head = {.kind = SV_WIRE_FORK, .tgid = 10, .tid = 11, .ts_ns = 30},
                             .tgid = 12,
                             .tid = 12,
                             .comm = "loader"};
    kbench_put(k, 1, &f, sizeof f, NULL, 0, 0);
    CHECK_STR_EQ(path_of(k, 40, 12, 4), "/closed");
    struct sv_wire_head e = {.kind = SV_WIRE_EXEC, .tgid = 12, .tid = 12, .ts_ns = 50};
    static const char command[] = "/usr/bin/cat\0cat\0-n";
    kbench_put(k, 1, &e, sizeof e, command, sizeof command, 0);
    CHECK_STR_EQ(path_of(k, 60, 12, 4), "none");
    CHECK_STR_EQ(path_of(k, 70, 12, 3), "/kept");
    CHECK_STR_EQ(path_of(k, 80, 10, 4), "/closed");
    sv_track process = sv_dict_process(k->dict, 0, 12);
    CHECK_STR_EQ(sv_dict_text(k->dict, k->dict->tracks[process].name).bytes, "cat");
    CHECK_STR_EQ(sv_dict_text(k->dict, k->dict->tracks[process].desc).bytes, "cat -n");
    struct sv_wire_exit x = {.head = {.kind = SV_WIRE_EXIT, .tgid = 12, .tid = 12, .ts_ns = 90},
                             .code = 256,
                             .is_last = 1};
    kbench_put(k, 1, &x, sizeof x, NULL, 0, 0);
    CHECK_UINT_EQ(kbench_round(k, 90), 1);
    CHECK(strstr(k->text, "exit status=256"));
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_process, SV_SUM_EVENTS), 3);
    kbench_free(k);
}

static const char *description(struct kbench *k, uint32_t pid)
{
    sv_track process = sv_dict_process(k->dict, 0, pid);
    return sv_dict_text(k->dict, k->dict->tracks[process].desc).bytes;
}

static void put_exec(struct kbench *k, uint64_t ts, uint32_t pid, const char *text, size_t len)
{
    struct sv_wire_head e = {.kind = SV_WIRE_EXEC, .tgid = pid, .tid = pid, .ts_ns = ts};
    kbench_put(k, 1, &e, sizeof e, text, len, 0);
}

/* Process 10 starts process 12, which is pid 1 of a container. */
static const struct sv_wire_fork container_fork = {
    .head = {.kind = SV_WIRE_FORK, .tgid = 10, .tid = 10, .ts_ns = 30},
    .tgid = 12,
    .tid = 12,
    .inner_tgid = 1,
    .inner_namespace = 77};

/* Both pids of a process in a container are recorded. */
TEST(a_process_in_a_pid_namespace_of_its_own_has_two_numbers)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_fork f = container_fork;
    put_exec(k, 20, 10, "/bin/sh\0sh\0-x", 14);
    kbench_put(k, 1, &f, sizeof f, NULL, 0, 0);
    f.head.ts_ns = 40;
    f.head.tgid = f.head.tid = 12;
    f.tgid = f.tid = 13;
    f.inner_tgid = 2;
    kbench_put(k, 1, &f, sizeof f, NULL, 0, 0);
    put_exec(k, 50, 12, "/bin/cat\0cat\0f", 15);
    kbench_round(k, 100);
    CHECK_STR_EQ(description(k, 10), "sh -x");
    CHECK_STR_EQ(description(k, 12), "cat f (pid 1 in pid namespace 77)");
    CHECK_STR_EQ(description(k, 13), "sh -x (pid 2 in pid namespace 77)");
    CHECK(strstr(k->text, "fork child=13 inner_pid=2 pid_namespace=77\n"));
    CHECK(strstr(k->text, "exec path=/bin/cat inner_pid=1 pid_namespace=77\n"));
    CHECK(strstr(k->text, "exec path=/bin/sh\n"));
    kbench_free(k);
}

/* A pid that is used again is another process: it does not get the data of the first one. */
TEST(a_number_that_is_used_again_has_the_new_process_s_command)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_fork f = container_fork;
    struct sv_wire_exit x = {.head = {.kind = SV_WIRE_EXIT, .tgid = 12, .tid = 12, .ts_ns = 50},
                             .is_last = 1};
    put_exec(k, 20, 10, "/bin/sh\0sh\0-x", 14);
    kbench_put(k, 1, &f, sizeof f, NULL, 0, 0);
    put_exec(k, 40, 12, "/bin/cat\0cat\0f", 15);
    kbench_put(k, 1, &x, sizeof x, NULL, 0, 0);
    f.head.ts_ns = 60;
    f.inner_tgid = f.inner_namespace = 0;
    kbench_put(k, 1, &f, sizeof f, NULL, 0, 0);
    kbench_round(k, 100);
    CHECK_STR_EQ(description(k, 12), "sh -x");
    put_exec(k, 110, 12, "/bin/true", 10); /* its words are not known */
    kbench_round(k, 200);
    CHECK_STR_EQ(description(k, 12), "/bin/true");
    kbench_free(k);
}

TEST(a_thread_that_moves_between_cpus_stays_in_order)
{
    struct kbench *k = kbench_new(NULL);
    for (unsigned i = 0; i < 100; i++)
        put(k, i % 2, kbench_call(SYS_fsync, i * 10, i * 10 + 5, 3, 0), NULL);
    CHECK_UINT_EQ(kbench_round(k, 500), 100); /* later ones wait */
    long long last = -1, ts;
    for (const char *at = k->text; *at; at = strchr(at, '\n') + 1) {
        ts = strtoll(at, NULL, 10);
        CHECK(ts >= last);
        last = ts;
    }
    CHECK_UINT_EQ(kbench_round(k, 2000), 100);
    kbench_free(k);
}

TEST(rings_wrap_and_busy_records_wait)
{
    struct kbench *k = kbench_new(NULL);
    size_t n = 0;
    for (unsigned i = 0; i < 5000; i++) {
        put(k, 0, kbench_call(SYS_fsync, i * 10, i * 10 + 5, 3, 0), NULL);
        if (i % 300 == 299)
            n += kbench_round(k, i * 10 + 5);
    }
    n += kbench_round(k, 1000000);
    CHECK_UINT_EQ(n, 10000);
    struct sv_wire_call c = kbench_call(SYS_fsync, 1000001, 1000002, 3, 0);
    kbench_put(k, 0, &c, sizeof c, NULL, 0, BPF_RINGBUF_DISCARD_BIT);
    uint64_t at = k->rings[0].producer;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, BPF_RINGBUF_BUSY_BIT);
    CHECK_UINT_EQ(kbench_round(k, 2000000), 0);
    CHECK_UINT_EQ(k->rings[0].consumer, at);
    uint32_t whole = sizeof c;
    memcpy(k->rings[0].data + at % KBENCH_SIZE, &whole, sizeof whole);
    CHECK_UINT_EQ(kbench_round(k, 2000000), 2);
    kbench_free(k);
}

/* A thread opens behind somebody's unfinished record, moves to another CPU and reads: the read
 * waits for the open. */
TEST(nothing_overtakes_what_waits_behind_a_busy_record)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call other = kbench_call(SYS_fsync, 90, 100, 9, 0);
    other.head.tid = 77;
    put(k, 0, kbench_call(SYS_fsync, 10, 20, 3, 0), NULL);
    uint64_t at = k->rings[0].producer;
    kbench_put(k, 0, &other, sizeof other, NULL, 0, BPF_RINGBUF_BUSY_BIT);
    put_open(k, 110, "/late", 3, 0);
    put(k, 1, kbench_call(SYS_fsync, 11, 15, 3, 0), NULL);
    put(k, 1, kbench_call(SYS_read, 130, 140, 3, 1), NULL);
    CHECK_UINT_EQ(kbench_round(k, 1000),
                  4); /* what is not younger than the last before the busy one */
    CHECK(sv_decode_rings(k->decode)->is_blocked);
    CHECK(!strstr(k->text, "read"));
    uint32_t whole = sizeof other;
    memcpy(k->rings[0].data + at % KBENCH_SIZE, &whole, sizeof whole);
    CHECK_UINT_EQ(kbench_round(k, 1000), 6);
    CHECK(!sv_decode_rings(k->decode)->is_blocked);
    CHECK(strstr(k->text, "read fd=3 path=/late"));
    kbench_free(k);
}

TEST(state_only_calls_and_other_prefixes_are_not_shown)
{
    struct sv_decode_options options = {.prefix = "/data/"};
    struct kbench *k = kbench_new(&options);
    struct sv_wire_call c = kbench_call(SYS_openat, 10, 11, AT_FDCWD, 3);
    c.head.flags = SV_WIRE_STATE_ONLY;
    put(k, 0, c, "/data/a");
    put_open(k, 20, "/etc/passwd", 4, 0);
    put(k, 0, kbench_call(SYS_read, 30, 31, 4, 1), NULL);
    CHECK_UINT_EQ(kbench_round(k, 100), 0);
    CHECK_STR_EQ(path_of(k, 110, 10, 3), "/data/a");
    kbench_free(k);
}

TEST(long_and_odd_paths_survive)
{
    struct kbench *k = kbench_new(NULL);
    char path[4096];
    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[100] = '\n';
    path[200] = (char)0xff;
    path[sizeof path - 1] = 0;
    struct sv_wire_call c = kbench_call(SYS_openat, 10, 11, AT_FDCWD, 3);
    kbench_put(k, 0, &c, sizeof c, path, sizeof path, 0);
    sv_decode_round(k->decode, 100);
    sv_batch_reset(&k->batch);
    REQUIRE(sv_decode_source(k->decode)->next(sv_decode_source(k->decode), &k->batch, NULL) == 1);
    CHECK_UINT_EQ(k->batch.events[0].args[1].size, 4095);
    CHECK_MEM_EQ(k->batch.events[0].args[1].text, path, 4095);
    kbench_free(k);
}

TEST(renames_have_two_paths)
{
    struct kbench *k = kbench_new(NULL);
    put(k, 0, kbench_call(SYS_chdir, 1, 2, -1, 0), "/w");
    struct sv_wire_call c = kbench_call(SYS_renameat2, 10, 11, AT_FDCWD, 0);
    c.aux = (uint32_t)AT_FDCWD;
    static const char two[] = "old\0/new";
    kbench_put(k, 0, &c, sizeof c, two, sizeof two, 0);
    kbench_round(k, 100);
    CHECK(strstr(k->text, "renameat2 path=/w/old path2=/new\n"));
    kbench_free(k);
}

/* As bpf/syscalls.h writes it: members at the end that have the usual value are not there. */
static void put_short(struct kbench *k, struct sv_wire_short_call s, size_t size, const char *text)
{
    s.head.flags |= SV_WIRE_SHORT;
    kbench_put(k, 0, &s, size, text, text ? strlen(text) + 1 : 0, 0);
}

static struct sv_wire_short_call short_call(long nr, uint64_t end_ns, int fd, int ret)
{
    return (struct sv_wire_short_call){.head = kbench_call(nr, 0, end_ns, 0, 0).head,
                                       .took_ns = 5,
                                       .ret = ret,
                                       .fd = fd,
                                       .offset = UINT32_MAX};
}

TEST(short_records_say_the_same_as_whole_ones)
{
    enum {
        NO_OFFSET = offsetof(struct sv_wire_short_call, offset),
        NO_AUX = offsetof(struct sv_wire_short_call, aux),
        NO_SIZE = offsetof(struct sv_wire_short_call, size)
    };
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_short_call s = short_call(SYS_openat, 10, AT_FDCWD, 3);
    s.aux = O_RDWR | O_CREAT;
    s.size = 0640;
    put_short(k, s, sizeof s, "/d/a");
    s = short_call(SYS_read, 20, 3, 100);
    s.offset = 4000000000u;
    put_short(k, s, NO_AUX, NULL);
    s = short_call(SYS_read, 30, 3, 7);
    s.size = 4096;
    put_short(k, s, sizeof s, NULL);
    s = short_call(SYS_fcntl, 40, 3, 4);
    s.aux = F_DUPFD;
    put_short(k, s, NO_SIZE, NULL);
    put_short(k, short_call(SYS_close, 50, 4, 0), NO_OFFSET, NULL);
    put_short(k, short_call(SYS_close, 60, 4, 0), NO_OFFSET - 4, NULL); /* malformed */
    s = short_call(SYS_read, 3, 3, 1);
    put_short(k, s, NO_AUX, NULL); /* began before the clock did */
    kbench_round(k, 100);
    CHECK(strstr(k->text, "openat fd=3 path=/d/a flags=66 mode=416\n"));
    CHECK(strstr(k->text, "read fd=3 path=/d/a offset=4000000000 bytes=100\n"));
    CHECK(strstr(k->text, "read fd=3 path=/d/a requested=4096 bytes=7\n"));
    CHECK(strstr(k->text, "close fd=4 path=/d/a\n"));
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 2);
    kbench_free(k);
}

TEST(nonsense_is_counted_and_harmless)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call c = kbench_call(SYS_openat, 10, 11, AT_FDCWD, 3);
    kbench_put(k, 0, &c, sizeof c, "no end", 6, 0); /* a path without its NUL */
    kbench_put(k, 0, &c, sizeof c - 8, NULL, 0, 0); /* too short */
    c.head.kind = 99;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    c.head.kind = SV_WIRE_CALL;
    c.head.what = 100000;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    c = kbench_call(SYS_read, 50, 40, 3, 0); /* ends before it begins */
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    struct sv_wire_call far = kbench_call(SYS_dup, 60, 61, 3, INT64_MAX);
    put(k, 0, far, NULL);
    struct sv_wire_head e = {.kind = SV_WIRE_EXEC, .tgid = 10, .tid = 10, .ts_ns = 70};
    kbench_put(k, 0, &e, sizeof e, "/bin/x", 6, 0);
    CHECK_UINT_EQ(kbench_round(k, 100), 2); /* the open, without a path */
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 4);
    uint32_t wrong =
        KBENCH_SIZE; /* a length past the end: the ring is passed over, and read again after that */
    uint64_t at = k->rings[1].producer;
    put(k, 1, kbench_call(SYS_fsync, 110, 111, 3, 0), NULL);
    memcpy(k->rings[1].data + at, &wrong, sizeof wrong);
    CHECK_UINT_EQ(kbench_round(k, 200), 0);
    CHECK_UINT_EQ(sv_decode_rings(k->decode)->n_broken, 1);
    put(k, 1, kbench_call(SYS_fsync, 210, 211, 3, 0), NULL);
    kbench_round(k, 300);
    put(k, 1, kbench_call(SYS_fsync, 310, 311, 3, 0), NULL);
    CHECK_UINT_EQ(kbench_round(k, 400), 2);
    kbench_free(k);
}

/* Numbers of processes that nobody has: the idle task's, and none. */
TEST(a_record_of_process_and_thread_0_is_one_like_any_other)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call c = kbench_call(SYS_fsync, 10, 11, 3, 0);
    c.head.tgid = c.head.tid = 0;
    put(k, 0, c, NULL);
    put(k, 0, c, NULL);
    CHECK_UINT_EQ(kbench_round(k, 100), 4);
    kbench_free(k);
}

TEST(losses_are_events_on_their_cpu)
{
    struct kbench *k = kbench_new(NULL);
    sv_decode_lost(k->decode, 1, "system calls", 17, 100, 200);
    CHECK_UINT_EQ(kbench_round(k, 300), 1);
    CHECK_STR_EQ(k->text, "100 loss Lost/CPU 1 system calls =17\n");
    kbench_free(k);
}

/* What libstave's own threads do is not shown, but for what changes tables of descriptors. */
TEST(own_threads_are_not_shown)
{
    static const char *const names[] = {"stave-writer", "worker"};
    for (size_t i = 0; i < TEST_COUNT(names); i++)
        for (int shows_own = 0; shows_own < 2; shows_own++) {
            struct sv_decode_options options = {.shows_own = shows_own};
            struct kbench *k = kbench_new(&options);
            CONTEXT("%s, %d", names[i], shows_own);
            sv_tree_name_thread(sv_decode_tree(k->decode), 10, 10, "main");
            sv_tree_name_thread(sv_decode_tree(k->decode), 10, 11, names[i]);
            struct sv_wire_block b = {
                .head = {.kind = SV_WIRE_BLOCK, .tgid = 10, .tid = 11, .ts_ns = 30},
                .queue_ns = 10,
                .issue_ns = 20,
                .sector = 8,
                .device = 4000u << 20 | 1,
                .bytes = 4096,
                .comm = "w"};
            kbench_put(k, 0, &b, sizeof b, NULL, 0, 0);
            CHECK_INT_EQ(kbench_round(k, 100) > 0, i == 1 || shows_own);
            kbench_free(k);
        }
}

/* More of them in one round than there is room for: the last one has the number of the others. */
TEST(losses_of_many_cpus_are_all_counted)
{
    struct kbench *k = kbench_new(NULL);
    uint64_t n = 0;
    for (unsigned cpu = 0; cpu < 300; cpu++)
        sv_decode_lost(k->decode, cpu, "x", 1 + (cpu == 0 ? 1000 : 0), 100, 200);
    size_t n_events = kbench_round(k, 300);
    CHECK(n_events > 200 && n_events <= 300);
    for (const char *at = k->text; (at = strchr(at, '=')); at++)
        n += strtoull(at + 1, NULL, 10);
    CHECK_UINT_EQ(n, 1300);
    CHECK_UINT_EQ(kbench_round(k, 400), 0);
    kbench_free(k);
}

static void put_block(struct kbench *k, uint64_t issue, uint64_t done, uint64_t sector)
{
    struct sv_wire_block b = {.head = {.kind = SV_WIRE_BLOCK, .tgid = 10, .tid = 10, .ts_ns = done},
                              .queue_ns = issue - 5,
                              .issue_ns = issue,
                              .sector = sector,
                              .device = 4000u << 20 | 1, /* no such device */
                              .bytes = 4096,
                              .command = 1 | 1 << 11,
                              .comm = "w"};
    kbench_put(k, 0, &b, sizeof b, NULL, 0, 0);
}

TEST(overlapping_block_requests_have_lanes)
{
    struct kbench *k = kbench_new(NULL);
    put_block(k, 100, 200, 8);
    put_block(k, 150, 250, 16);
    put_block(k, 260, 270, 24);
    CHECK_UINT_EQ(kbench_round(k, 1000), 6);
    CHECK(strstr(k->text, "100 begin Disks/4000:1 write device=4000:1 sector=8 bytes=4096 "
                          "queue_ns=5 flags=WS pid=10 comm=w\n200 end Disks/4000:1"));
    CHECK(strstr(k->text, "150 begin 4000:1/4000:1 2 write"));
    CHECK(strstr(k->text, "260 begin Disks/4000:1 write"));
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_block, SV_SUM_EVENTS), 3);
    CHECK_STR_EQ(shape_check_end(&k->shape), "");
    kbench_free(k);
}

static void put_page(struct kbench *k, uint64_t ts, uint64_t inode, uint64_t offset)
{
    struct sv_wire_cache c = {.head = {.kind = SV_WIRE_CACHE, .tgid = 10, .tid = 11, .ts_ns = ts},
                              .inode = inode,
                              .offset = offset,
                              .bytes = 4096};
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
}

/* Somebody whom the recorder's pid namespace does not show. */
TEST(a_block_request_of_nobody_has_no_pid)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_block b = {.head = {.kind = SV_WIRE_BLOCK, .ts_ns = 200},
                              .issue_ns = 100,
                              .device = 4000u << 20 | 1,
                              .bytes = 4096,
                              .comm = "w"};
    kbench_put(k, 0, &b, sizeof b, NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "comm=w"));
    CHECK(!strstr(k->text, "pid="));
    kbench_free(k);
}

TEST(neighbouring_pages_are_one_miss)
{
    struct kbench *k = kbench_new(NULL);
    for (uint64_t i = 0; i < 32; i++)
        put_page(k, 100 + i, 7, i * 4096);
    put_page(k, 200, 7, 1 << 20);
    put(k, 0, kbench_call(SYS_fsync, 50, 300, 3, 0), NULL);
    CHECK_UINT_EQ(kbench_round(k, 1000), 4);
    CHECK(strstr(k->text,
                 "100 instant /page cache misses add inode=7 offset=0 bytes=131072\n"
                 "200 instant /page cache misses add inode=7 offset=1048576 bytes=4096\n"));
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_page_cache, SV_SUM_BYTES), 33 * 4096);
    kbench_free(k);
}

TEST(groups_of_calls_are_words)
{
    unsigned groups;
    char bad[32];
    CHECK(sv_calls_groups("files,stat", &groups, bad));
    CHECK_UINT_EQ(groups, SV_CALLS_FILES | SV_CALLS_STAT);
    CHECK(sv_calls_groups("all", &groups, bad));
    CHECK(groups & SV_CALLS_SOCKETS);
    CHECK(!sv_calls_groups("files,stats", &groups, bad));
    CHECK_STR_EQ(bad, "stats");
    CHECK(!sv_calls_groups("", &groups, bad));
}

TEST(the_plan_always_keeps_the_book)
{
    static struct sv_wire_plan plans[SV_WIRE_CALLS_MAX];
    sv_calls_plan(SV_CALLS_SYNC, plans);
    CHECK_UINT_EQ(plans[SYS_fsync].wants, SV_WIRE_WANTED);
    CHECK_UINT_EQ(plans[SYS_openat].wants,
                  SV_WIRE_CHANGES_FDS | SV_WIRE_OPENS | SV_WIRE_RETURNS_FD);
    CHECK_UINT_EQ(plans[SYS_close].wants, SV_WIRE_CHANGES_FDS | SV_WIRE_CLOSES);
    CHECK_UINT_EQ(plans[SYS_read].wants, 0);
    CHECK_UINT_EQ(plans[SYS_getpid].wants, 0);
    sv_calls_plan(0, plans);
    CHECK_UINT_EQ(plans[SYS_openat].wants, 0);
    const struct sv_call *index[SV_WIRE_CALLS_MAX];
    sv_calls_index(index);
    for (size_t i = 0; i < sv_n_calls; i++)
        CHECK(index[sv_calls[i].nr] == &sv_calls[i]); /* no number twice */
}

/* On a socket it is asked for the other end, and of poll for the descriptors, where the thread
 * waited. */
TEST(the_plan_of_waits)
{
    static struct sv_wire_plan plans[SV_WIRE_CALLS_MAX];
    static const struct {
        long nr;
        unsigned waits;
    } rows[] = {{SYS_poll, SV_WIRE_IF_WAITED | SV_WIRE_POLLS | SV_WIRE_HAS_PEER},
                {SYS_ppoll, SV_WIRE_IF_WAITED | SV_WIRE_POLLS | SV_WIRE_HAS_PEER},
                {SYS_select, SV_WIRE_IF_WAITED},
                {SYS_epoll_wait, SV_WIRE_IF_WAITED},
                {SYS_recvfrom, SV_WIRE_IF_WAITED | SV_WIRE_HAS_PEER},
                {SYS_connect, SV_WIRE_IF_WAITED | SV_WIRE_HAS_PEER},
                {SYS_read, SV_WIRE_HAS_PEER | SV_WIRE_IS_FILE},
                {SYS_writev, SV_WIRE_HAS_PEER | SV_WIRE_IS_FILE},
                {SYS_openat, 0},
                {SYS_fsync, 0}};
    for (int all = 0; all < 2; all++) {
        sv_calls_plan(SV_CALLS_DEFAULT | SV_CALLS_WAITING | (all ? SV_CALLS_SOCKETS : 0), plans);
        for (size_t i = 0; i < TEST_COUNT(rows); i++) {
            CONTEXT("call %ld, %d", rows[i].nr, all);
            bool is_socket = rows[i].nr == SYS_recvfrom || rows[i].nr == SYS_connect;
            CHECK_UINT_EQ(plans[rows[i].nr].waits,
                          rows[i].waits & ~(all && is_socket ? (unsigned)SV_WIRE_IF_WAITED : 0u));
        }
        CHECK(plans[SYS_poll].wants & SV_WIRE_WANTED);
        CHECK(plans[SYS_recvfrom].wants & SV_WIRE_WANTED);
    }
    sv_calls_plan(SV_CALLS_DEFAULT, plans);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        CHECK_UINT_EQ(plans[rows[i].nr].waits, 0);
    CHECK_UINT_EQ(plans[SYS_poll].wants, 0);
}

/* Descriptor 3 was /a, is closed and taken by a socket without the trace seeing it: nobody may take
 * the read for one of /a. */
TEST(a_descriptor_whose_file_is_not_known_does_not_inherit_a_path)
{
    struct kbench *k = kbench_new(NULL);
    kbench_once(k, true);
    put_open(k, 10, "/a", 3, 0);
    struct sv_wire_call c = kbench_call(SYS_close, 20, 21, 3, 0);
    c.head.flags = SV_WIRE_STATE_ONLY;
    put(k, 0, c, NULL);
    put(k, 0, kbench_call(SYS_read, 30, 31, 3, 5), NULL);
    put(k, 0, kbench_call(SYS_read, 40, 41, 3, 6), NULL);
    kbench_round(k, 100);
    CHECK(strstr(k->text, "read fd=3 requested=0 bytes=5\n"));
    CHECK(strstr(k->text, "read fd=3 requested=0 bytes=6\n"));
    kbench_free(k);
}

TEST(a_new_file_has_every_path_again)
{
    struct kbench *k = kbench_new(NULL);
    kbench_once(k, false);
    put_open(k, 10, "/a", 3, 0);
    put(k, 0, kbench_call(SYS_read, 20, 21, 3, 5), NULL);
    kbench_round(k, 100);
    CHECK(strstr(k->text, "read fd=3 requested=0 bytes=5\n"));
    sv_once_paths_new_file(k->left_out);
    put(k, 0, kbench_call(SYS_read, 30, 31, 3, 5), NULL);
    kbench_round(k, 100);
    CHECK(strstr(k->text, "read fd=3 path=/a requested=0 bytes=5\n"));
    kbench_free(k);
}

TEST(what_a_process_does_before_it_is_the_command_is_not_shown)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_head exec = {.kind = SV_WIRE_EXEC, .tgid = 10, .tid = 11, .ts_ns = 30};
    sv_decode_hide_until_exec(k->decode, 10);
    put_open(k, 10, "/before", 3, 0);
    kbench_put(k, 0, &exec, sizeof exec, "/bin/sh\0sh", 11, 0);
    put(k, 0, kbench_call(SYS_read, 40, 41, 3, 0), NULL);
    kbench_round(k, 100);
    CHECK(!strstr(k->text, "openat"));
    CHECK(strstr(k->text, "read fd=3 path=/before"));
    kbench_free(k);
}
