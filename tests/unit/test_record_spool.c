/* The spool of a recording: entries, notes and the table of processes survive, cuts and damage are noticed; where a commit of the growing file leads. */
#include "record/kernel/tracepoints.h"
#include "record/spool/kspool.h"
#include "record/spool/notes.h"
#include "record/spool/processes.h"
#include "record/spool/scout.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put_open(struct kbench *k, unsigned ring, uint64_t ts, const char *path)
{
    struct sv_wire_call c = kbench_call(SYS_openat, ts, ts + 5, AT_FDCWD, 3);
    kbench_put(k, ring, &c, sizeof c, path, strlen(path) + 1, 0);
}

/* Reads all that the rings have, as the recorder does when it moves. */
static void move(struct kbench *k, struct sv_kspool *s, const struct sv_buf *notes)
{
    struct sv_krings *rings = sv_decode_rings(k->decode);
    uint32_t size;
    sv_krings_round(rings, UINT64_MAX);
    while (sv_krings_next(rings, &size))
        continue;
    CHECK(sv_kspool_append(s, rings, false, notes ? notes->data : NULL, notes ? notes->len : 0));
    sv_krings_release(rings);
}

static void make(struct sv_kspool *s)
{
    struct sv_err err = {0};
    REQUIRE(sv_kspool_make(s, test_scratch("t.pftrace"), KBENCH_RINGS, &err) == 0);
    REQUIRE(sv_kspool_begin(s, "processes", 9, 100));
}

TEST(records_come_back_in_the_order_of_their_times)
{
    struct sv_kspool s;
    struct sv_err err = {0};
    struct kbench *k = kbench_new(NULL);
    uint32_t size;
    make(&s);
    put_open(k, 0, 300, "/c");
    put_open(k, 1, 200, "/b");
    move(k, &s, NULL);
    REQUIRE(sv_kspool_next(&s, &err) == SV_KSPOOL_RECORDS);
    sv_krings_round(&s.rings, UINT64_MAX);
    const struct sv_wire_call *c = (const void *)sv_krings_next(&s.rings, &size);
    REQUIRE(c);
    CHECK_STR_EQ((const char *)(c + 1), "/b");
    c = (const void *)sv_krings_next(&s.rings, &size);
    REQUIRE(c);
    CHECK_STR_EQ((const char *)(c + 1), "/c");
    CHECK(!sv_krings_next(&s.rings, &size));
    CHECK_INT_EQ(sv_kspool_next(&s, &err), SV_KSPOOL_END);
    CHECK_UINT_EQ(k->rings[0].consumer, k->rings[0].producer);
    char path[SV_KSPOOL_PATH_MAX];
    snprintf(path, sizeof path, "%s", s.path);
    CHECK(access(path, F_OK) == 0);
    sv_kspool_remove(&s);
    CHECK(access(path, F_OK) != 0);
    kbench_free(k);
}

TEST(what_was_not_given_back_is_read_again)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_krings *rings = sv_decode_rings(k->decode);
    uint32_t size;
    put_open(k, 0, 100, "/a");
    sv_krings_round(rings, UINT64_MAX);
    CHECK(sv_krings_next(rings, &size));
    sv_krings_rewind(rings);
    sv_krings_round(rings, UINT64_MAX);
    CHECK(sv_krings_next(rings, &size));
    CHECK(!sv_krings_next(rings, &size));
    kbench_free(k);
}

TEST(a_commit_says_from_where_on_records_are_missing)
{
    struct sv_kspool s, left;
    struct sv_err err = {0};
    struct kbench *k = kbench_new(NULL);
    uint64_t done, first, second;
    char path[SV_KSPOOL_PATH_MAX];
    make(&s);
    for (uint64_t i = 0; i < 3; i++) {
        put_open(k, 0, 100 + 100 * i, "/a");
        move(k, &s, NULL);
    }
    CHECK_INT_EQ(sv_kspool_next(&s, &err), SV_KSPOOL_RECORDS);
    sv_kspool_note(&s, 200);
    first = s.at;
    CHECK_INT_EQ(sv_kspool_next(&s, &err), SV_KSPOOL_RECORDS);
    sv_kspool_note(&s, 300);
    second = s.at;
    snprintf(path, sizeof path, "%s", s.path);
    const struct {
        uint64_t part_bytes, at;
    } rows[] = {{200, first}, {300, second}, {100, first}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        REQUIRE(sv_kspool_open(&left, path, rows[i].part_bytes, &done, &err) == 0);
        CHECK_UINT_EQ(done, rows[i].at);
        CHECK_INT_EQ(sv_kspool_next(&left, &err), SV_KSPOOL_PROCESSES);
        CHECK_UINT_EQ(left.n, 9);
        sv_kspool_close(&left);
    }
    sv_kspool_reset(&s);
    CHECK_INT_EQ(sv_kspool_open(&left, path, 300, &done, &err), SV_EINPUT);
    sv_kspool_close(&left);
    sv_kspool_remove(&s);
    kbench_free(k);
}

/* Whatever byte is wrong and wherever the file ends: an answer, and no read past the end. */
TEST(the_newest_commit_of_a_size_counts)
{
    struct sv_kspool s, left;
    struct sv_err err = {0};
    struct kbench *k = kbench_new(NULL);
    uint64_t done;
    make(&s);
    for (uint64_t i = 0; i < 4; i++) {
        put_open(k, 0, 100 + 100 * i, "/a");
        move(k, &s, NULL);
    }
    /* The growing file does not grow; commits take turns in two places. */
    for (int i = 0; i < 4; i++) {
        CONTEXT("commit %d", i);
        CHECK_INT_EQ(sv_kspool_next(&s, &err), SV_KSPOOL_RECORDS);
        sv_kspool_note(&s, 100);
        REQUIRE(sv_kspool_open(&left, s.path, 100, &done, &err) == 0);
        CHECK_UINT_EQ(done, s.at);
        sv_kspool_close(&left);
        /* Of neither: rather records twice than never. */
        REQUIRE(sv_kspool_open(&left, s.path, 77, &done, &err) == 0);
        CHECK(done < s.at);
        sv_kspool_close(&left);
    }
    sv_kspool_remove(&s);
    kbench_free(k);
}

TEST(cuts_and_wrong_bytes_are_noticed)
{
    struct sv_kspool s, left;
    struct sv_err err = {0};
    struct kbench *k = kbench_new(NULL);
    uint64_t done, end;
    uint32_t size;
    char path[SV_KSPOOL_PATH_MAX];
    make(&s);
    put_open(k, 0, 100, "/a");
    move(k, &s, NULL);
    end = s.end;
    snprintf(path, sizeof path, "%s", s.path);
    for (uint64_t at = 4096; at < end; at++) {
        uint8_t was, wrong;
        REQUIRE(pread(s.fd, &was, 1, (off_t)at) == 1);
        wrong = (uint8_t)(was ^ 0xff);
        REQUIRE(pwrite(s.fd, &wrong, 1, (off_t)at) == 1);
        REQUIRE(sv_kspool_open(&left, path, 100, &done, &err) == 0);
        for (int kind; (kind = sv_kspool_next(&left, &err)) > SV_KSPOOL_END;)
            if (kind == SV_KSPOOL_RECORDS || kind == SV_KSPOOL_LATE) {
                sv_krings_round(&left.rings, UINT64_MAX);
                while (sv_krings_next(&left.rings, &size))
                    continue;
            }
        sv_kspool_close(&left);
        REQUIRE(pwrite(s.fd, &was, 1, (off_t)at) == 1);
    }
    REQUIRE(ftruncate(s.fd, (off_t)end - 1) == 0);
    REQUIRE(sv_kspool_open(&left, path, 100, &done, &err) == 0);
    CHECK_INT_EQ(sv_kspool_next(&left, &err), SV_KSPOOL_PROCESSES);
    CHECK_INT_EQ(sv_kspool_next(&left, &err), SV_KSPOOL_END);
    sv_kspool_close(&left);
    sv_kspool_remove(&s);
    kbench_free(k);
}

TEST(notes_are_found_by_their_record)
{
    struct sv_buf b;
    struct sv_notes n = {0};
    const struct sv_note key = {SV_NOTE_DESCRIPTOR, 10, 7, 123};
    size_t len = 0;
    sv_buf_init(&b, 1 << 16);
    sv_note_put(&b, key, "pipe:[5]", 8);
    sv_note_put(&b, (struct sv_note){SV_NOTE_CGROUP, 10, 0, 124}, "/x", 2);
    CHECK(sv_notes_set(&n, b.data, b.len, NULL, NULL));
    const char *text = sv_notes_find(&n, key, &len);
    REQUIRE(text && len == 8);
    CHECK_MEM_EQ(text, "pipe:[5]", 8);
    CHECK(!sv_notes_find(&n, (struct sv_note){SV_NOTE_DESCRIPTOR, 10, 7, 124}, &len));
    CHECK(!sv_notes_find(&n, (struct sv_note){SV_NOTE_DESCRIPTOR, 11, 7, 123}, &len));
    for (size_t cut = 1; cut < b.len; cut++) /* a cut within the second is noticed */
        if (cut != b.len - sizeof(struct sv_note) - 8 - 2)
            CHECK(!sv_notes_set(&n, b.data, cut, NULL, NULL));
    sv_notes_fini(&n);
    sv_buf_fini(&b);
}

TEST(processes_come_back_with_their_descriptors)
{
    struct kbench *k = kbench_new(NULL), *other = kbench_new(NULL);
    struct sv_tree *t = sv_decode_tree(k->decode), *to = sv_decode_tree(other->decode);
    struct sv_buf b;
    bool is_new;
    sv_buf_init(&b, 1 << 20);
    struct sv_proc *p = sv_tree_process(t, 10, &is_new);
    sv_tree_name_process(t, p, "cat", "cat\0file", 8);
    sv_tree_name_thread(t, 10, 11, "worker");
    p->cwd = sv_tree_file(t, NULL, "/home", 5);
    sv_fd_open(t, p, 3,
               (struct sv_fd){.file = sv_tree_file(t, NULL, "/a", 2), .since_ns = 7, .inode = 8},
               true);
    struct sv_file *mapped = sv_tree_file(t, NULL, "/lib", 4);
    sv_inodes_learn(sv_decode_inodes(k->decode), t, 1, 2, mapped);
    sv_file_put(t, mapped);
    sv_processes_put(&b, t, sv_decode_inodes(k->decode));
    CHECK(sv_processes_get(b.data, b.len, to, sv_decode_inodes(other->decode)));
    const struct sv_proc *back = sv_tree_find(to, 10);
    REQUIRE(back && back->cwd && sv_fd_at(back, 3) && sv_fd_at(back, 3)->file);
    CHECK_STR_EQ(back->name, "cat");
    CHECK_STR_EQ(back->cwd->path, "/home");
    CHECK_STR_EQ(sv_fd_at(back, 3)->file->path, "/a");
    CHECK_UINT_EQ(sv_fd_at(back, 3)->since_ns, 7);
    CHECK_UINT_EQ(sv_fd_at(back, 3)->inode, 8);
    CHECK(sv_inodes_has(sv_decode_inodes(other->decode), 1, 2));
    for (size_t cut = 0; cut < b.len; cut++)
        CHECK(!sv_processes_get(b.data, cut, to, sv_decode_inodes(other->decode)));
    sv_buf_fini(&b);
    kbench_free(k);
    kbench_free(other);
}

/* Types by hand: int; f(int, int); f*; typedef f* btf_trace_x. */
static void see_fork(struct sv_scout *s, uint32_t parent, uint32_t child, uint64_t ts)
{
    const struct sv_wire_fork f = {
        .head = {.kind = SV_WIRE_FORK, .tgid = parent, .tid = parent, .ts_ns = ts},
        .tgid = child,
        .tid = child};
    CHECK(sv_scout_can_wait(s, &f.head, sizeof f));
}

static void see_exit(struct sv_scout *s, uint32_t pid, uint64_t ts)
{
    const struct sv_wire_exit x = {
        .head = {.kind = SV_WIRE_EXIT, .tgid = pid, .tid = pid, .ts_ns = ts}, .is_last = 1};
    CHECK(sv_scout_can_wait(s, &x.head, sizeof x));
}

/* Many processes that end at once, while their records wait: no memory is kept of them. */
TEST(the_scout_keeps_running_processes_only)
{
    enum { FIRST = 1u << 30, LIVES = 1000 }; /* numbers that no process has */
    const uint64_t second = 1000000000;
    struct kbench *k = kbench_new(NULL);
    struct sv_tree *t = sv_decode_tree(k->decode);
    struct sv_scout s;
    bool is_new;
    sv_tree_process(t, FIRST, &is_new)->has_snapshot = true;
    sv_scout_init(&s, t, sv_decode_inodes(k->decode));
    for (uint32_t i = 1; i <= LIVES; i++) {
        see_fork(&s, FIRST, FIRST + i, second + i);
        if (i % 100 != 0)
            see_exit(&s, FIRST + i, second + i);
    }
    CHECK_UINT_EQ(s.n, 1 + LIVES / 100);
    CHECK_UINT_EQ(s.n_unknown, LIVES / 100);
    CHECK_UINT_EQ(t->n, 1);
    sv_scout_round(&s, (int64_t)second + LIVES); /* too early */
    CHECK_UINT_EQ(t->n, 1);
    sv_scout_round(&s, (int64_t)second * 2);
    CHECK_UINT_EQ(t->n, 1 + LIVES / 100);
    CHECK(sv_tree_find(t, FIRST + 100) && !sv_tree_find(t, FIRST + 101));
    CHECK_UINT_EQ(s.n_unknown, 0);
    see_exit(&s, FIRST + 100, second * 2);
    see_fork(&s, FIRST, FIRST + 100, second * 3); /* the number again */
    CHECK_UINT_EQ(s.n_unknown, 1);
    sv_scout_fini(&s);
    kbench_free(k);
}

TEST(tracepoints_are_found_in_the_types)
{
    static const char texts[] = "\0int\0btf_trace_x";
    struct {
        struct btf_header head;
        struct btf_type number;
        uint32_t bits;
        struct btf_type proto;
        struct btf_param args[2];
        struct btf_type pointer, name;
        char texts[sizeof texts];
    } file = {.head = {.magic = BTF_MAGIC, .version = 1, .hdr_len = sizeof(struct btf_header)},
              .number = {.name_off = 1, .info = BTF_KIND_INT << 24, .size = 4},
              .bits = 32,
              .proto = {.info = BTF_KIND_FUNC_PROTO << 24 | 2, .type = 1},
              .args = {{.type = 1}, {.type = 1}},
              .pointer = {.info = BTF_KIND_PTR << 24, .type = 2},
              .name = {.name_off = 5, .info = BTF_KIND_TYPEDEF << 24, .type = 3}};
    struct sv_tracepoints t;
    memcpy(file.texts, texts, sizeof texts);
    file.head.type_len = (uint32_t)(offsetof(__typeof__(file), texts) - sizeof file.head);
    file.head.str_off = file.head.type_len;
    file.head.str_len = sizeof texts;
    for (int round = 0; round < 2; round++) {
        FILE *f = fopen(test_scratch("btf"), "wb");
        REQUIRE(f && fwrite(&file, sizeof file, 1, f) == 1 && fclose(f) == 0);
        sv_tracepoints_read(&t, test_scratch("btf"));
        CHECK_INT_EQ(t.is_known, round == 0);
        const struct sv_tracepoint *x = sv_tracepoints_find(&t, "x");
        if (round == 0 && CHECK(x != NULL))
            CHECK_UINT_EQ(x->n_args, 2);
        CHECK(!sv_tracepoints_find(&t, "y"));
        sv_tracepoints_fini(&t);
        file.pointer.info = 31u << 24; /* a kind that nobody knows */
    }
    sv_tracepoints_read(&t, test_scratch("nowhere"));
    CHECK(!t.is_known);
    sv_tracepoints_fini(&t);
}
