/* The spool of a recording: entries, notes and the table of processes survive, cuts and damage are
 * noticed; where a commit of the growing file leads. */
#include "record/bpf/offcpu.h"
#include "record/kernel/tracepoints.h"
#include "record/spool/kspool.h"
#include "record/spool/notes.h"
#include "record/spool/processes.h"
#include "record/spool/scout.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <linux/close_range.h>
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

static void learn(void *ctx, const struct sv_note *note, const char *text, size_t len)
{
    char *to = ctx;
    size_t n = strlen(to);
    snprintf(to + n, 256 - n, "%u:%.*s ", note->kind, (int)len, text);
}

/* Those that the decoder of the same recording has learnt already are for others. */
TEST(notes_for_another_decoder_are_given_to_it)
{
    struct sv_buf b;
    struct sv_notes n = {0};
    char learnt[256] = "";
    size_t len;
    sv_buf_init(&b, 1 << 16);
    for (uint32_t kind = SV_NOTE_DESCRIPTOR; kind <= SV_NOTE_FILE; kind++)
        sv_note_put(&b, (struct sv_note){kind, 10, 0, 1}, "text", kind == SV_NOTE_FILE ? 0 : 4);
    CHECK(sv_notes_set(&n, b.data, b.len, learn, learnt));
    CHECK_STR_EQ(learnt, "4:text 5: ");
    CHECK(sv_notes_set(&n, b.data, b.len, NULL, NULL));
    for (uint32_t kind = SV_NOTE_DESCRIPTOR; kind <= SV_NOTE_FILE; kind++)
        CHECK(sv_notes_find(&n, (struct sv_note){kind, 10, 0, 1}, &len) != NULL);
    CHECK(!sv_notes_find(&n, (struct sv_note){SV_NOTE_DESCRIPTOR, 10, 1, 1}, &len));
    CHECK(!sv_notes_find(&n, (struct sv_note){SV_NOTE_FILE + 1, 10, 0, 1}, &len));
    CHECK(sv_notes_set(&n, b.data, 0, NULL, NULL)); /* those before are gone */
    CHECK(!sv_notes_find(&n, (struct sv_note){SV_NOTE_DESCRIPTOR, 10, 0, 1}, &len));
    sv_notes_fini(&n);
    sv_buf_fini(&b);
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

/* Decodes all that is in the spool, with its notes; the events are in k->text. */
static void replay(struct kbench *k, struct sv_kspool *s)
{
    struct sv_notes n = {0};
    struct sv_err err = {0};
    REQUIRE(sv_kspool_next(s, &err) == SV_KSPOOL_NOTES);
    REQUIRE(sv_notes_set(&n, s->entry, s->n, NULL, NULL));
    REQUIRE(sv_kspool_next(s, &err) == SV_KSPOOL_RECORDS);
    sv_decode_read_from(k->decode, &s->rings, &n, false);
    kbench_round(k, UINT64_MAX);
    sv_decode_read_from(k->decode, NULL, NULL, true);
    sv_notes_fini(&n);
}

TEST(notes_say_what_proc_had_said)
{
    static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *prefix;
        size_t digits;
        bool is_container;
    } rows[] = {
        {"/docker/", 64, true}, {"/docker/x-", 64, true}, {"/docker/", 63, false}, {"/", 64, true}};
    struct kbench *k = kbench_new(NULL);
    struct sv_kspool s;
    struct sv_buf b;
    char cgroup[128], expected[400];
    uint64_t ts = 1000;
    sv_buf_init(&b, 1 << 16);
    make(&s);
    for (size_t i = 0; i < TEST_COUNT(rows); i++, ts += 1000) {
        struct sv_wire_call c = kbench_call(SYS_read, ts + 10, ts + 20, 7 + (int)i, 1);
        const struct sv_wire_head exec = {.kind = SV_WIRE_EXEC, .tgid = 10, .tid = 11, .ts_ns = ts};
        CONTEXT("row %zu", i);
        int n = snprintf(cgroup, sizeof cgroup, "%s%.*s", rows[i].prefix, (int)rows[i].digits, id);
        sv_buf_clear(&b);
        sv_note_put(&b, (struct sv_note){SV_NOTE_DESCRIPTOR, 10, c.fd, ts + 10}, "pipe:[5]", 8);
        sv_note_put(&b, (struct sv_note){SV_NOTE_CGROUP, 10, 0, ts}, cgroup, (size_t)n);
        kbench_put(k, 0, &exec, sizeof exec, "/bin/cat\0cat", 13, 0);
        kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
        move(k, &s, &b);
        replay(k, &s);
        CHECK(strstr(k->text, "path=pipe:[5]"));
        snprintf(expected, sizeof expected, "exec path=/bin/cat cgroup=%s%s%s\n", cgroup,
                 rows[i].is_container ? " container=" : "", rows[i].is_container ? id : "");
        CHECK(strstr(k->text, expected));
        /* Neither for a record that comes now, whatever its time, nor after this entry. */
        c.fd = 70;
        kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
        kbench_round(k, UINT64_MAX);
        CHECK(strstr(k->text, " read fd=70") && !strstr(k->text, "pipe"));
    }
    sv_buf_fini(&b);
    sv_kspool_remove(&s);
    kbench_free(k);
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
    p->parent = 9;
    p->is_threaded = true;
    sv_tree_set_inner(t, p, 2, 77);
    sv_tree_end(t, sv_tree_process(t, 12, &is_new), 5); /* neither is an ended one kept */
    sv_tree_name_thread(t, 10, 13, "ended");            /* nor an ended thread */
    sv_tree_end_thread(t, 10, 13, 5);
    p->cwd = sv_tree_file(t, NULL, "/home", 5);
    sv_fd_open(t, p, 70, (struct sv_fd){.file = sv_tree_file(t, NULL, "/b", 2)}, true);
    sv_fd_at(p, 70)->closes_on_exec = true;
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
    const struct sv_file *lib = sv_inodes_find(sv_decode_inodes(other->decode), to, 1, 2, NULL);
    CHECK_STR_EQ(lib ? lib->path : "-", "/lib");
    CHECK_UINT_EQ(back->parent, 9);
    CHECK_UINT_EQ(back->inner_pid, 2);
    CHECK_UINT_EQ(back->inner_namespace, 77);
    CHECK(back->is_threaded && back->has_snapshot);
    CHECK_UINT_EQ(back->command_len, 8);
    CHECK_STR_EQ(sv_dict_text(other->dict, other->dict->tracks[back->track].desc).bytes,
                 "cat file (pid 2 in pid namespace 77)");
    CHECK(!sv_fd_at(back, 3)->closes_on_exec && sv_fd_at(back, 70)->closes_on_exec);
    CHECK_UINT_EQ(to->n, 1);
    CHECK_UINT_EQ(to->n_threads, 1);
    CHECK_STR_EQ(sv_dict_text(other->dict, other->dict->tracks[to->threads[0].track].name).bytes,
                 "worker");
    for (size_t cut = 0; cut < b.len; cut++)
        CHECK(!sv_processes_get(b.data, cut, to, sv_decode_inodes(other->decode)));
    sv_buf_fini(&b);
    kbench_free(k);
    kbench_free(other);
}

TEST(one_process_comes_back_by_itself)
{
    struct kbench *k = kbench_new(NULL), *other = kbench_new(NULL);
    struct sv_tree *t = sv_decode_tree(k->decode), *to = sv_decode_tree(other->decode);
    struct sv_buf b;
    bool is_new;
    sv_buf_init(&b, 1 << 20);
    sv_tree_process(t, 10, &is_new);
    sv_tree_name_process(t, sv_tree_process(t, 11, &is_new), "sh", "sh", 2);
    sv_processes_put_one(&b, t, 12); /* nobody */
    CHECK_UINT_EQ(b.len, 3 * 8);
    CHECK(sv_processes_get(b.data, b.len, to, sv_decode_inodes(other->decode)));
    CHECK_UINT_EQ(to->n, 0);
    sv_buf_clear(&b);
    sv_processes_put_one(&b, t, 11);
    CHECK(sv_processes_get(b.data, b.len, to, sv_decode_inodes(other->decode)));
    CHECK_UINT_EQ(to->n, 1);
    CHECK(sv_tree_find(to, 11) && strcmp(sv_tree_find(to, 11)->name, "sh") == 0);
    sv_buf_fini(&b);
    kbench_free(k);
    kbench_free(other);
}

/* ---- what the scout asks for ---- */

struct asking {
    struct kbench *k;
    struct sv_scout s;
    int ends[2], file; /* a pipe, whose name can be asked for, and a file, which needs its inode */
    uint64_t ns;
};

static void open_asking(struct asking *a)
{
    bool is_new;
    *a = (struct asking){.k = kbench_new(NULL), .ns = 1000};
    struct sv_tree *t = sv_decode_tree(a->k->decode);
    REQUIRE(pipe(a->ends) == 0);
    a->file = open(test_scratch("file"), O_RDWR | O_CREAT, 0600);
    REQUIRE(a->file >= 0);
    sv_tree_process(t, (uint32_t)getpid(), &is_new)->has_snapshot = true;
    sv_scout_init(&a->s, t, sv_decode_inodes(a->k->decode));
}

static void close_asking(struct asking *a)
{
    close(a->ends[0]);
    close(a->ends[1]);
    close(a->file);
    sv_scout_fini(&a->s);
    kbench_free(a->k);
}

/* Shows the scout a call of this process; whether it had to ask for the descriptor's name. */
static bool asks(struct asking *a, struct sv_wire_call c)
{
    c.head.tgid = c.head.tid = (uint32_t)getpid();
    if (c.head.ts_ns == 0)
        c.start_ns = a->ns, c.head.ts_ns = a->ns + 5;
    a->ns += 10;
    sv_buf_clear(&a->s.notes);
    CHECK(sv_scout_can_wait(&a->s, &c.head, sizeof c));
    return a->s.notes.len > 0;
}

static bool reads(struct asking *a, int fd)
{
    return asks(a, kbench_call(SYS_read, 0, 0, fd, 1));
}

TEST(the_scout_asks_once_for_what_it_does_not_know)
{
    struct asking a;
    open_asking(&a);
    CHECK(reads(&a, a.ends[0]));
    struct sv_notes n = {0};
    size_t len = 0;
    const struct sv_note key = {SV_NOTE_DESCRIPTOR, (uint32_t)getpid(), a.ends[0], 1000};
    CHECK(sv_notes_set(&n, a.s.notes.data, a.s.notes.len, NULL, NULL));
    const char *text = sv_notes_find(&n, key, &len);
    CHECK(text && len > 6 && memcmp(text, "pipe:[", 6) == 0);
    sv_notes_fini(&n);
    CHECK(!reads(&a, a.ends[0]));
    CHECK(!asks(&a, kbench_call(SYS_read, 0, 0, a.ends[1], -EBADF))); /* it was not there */
    CHECK(reads(&a, a.ends[1]));
    CHECK(!reads(&a, a.file)); /* no name without its inode: it stays unknown */
    struct sv_wire_call c = kbench_call(SYS_read, 0, 0, a.file, 1);
    struct stat st;
    REQUIRE(fstat(a.file, &st) == 0);
    c.inode = st.st_ino + 1;
    CHECK(!asks(&a, c)); /* another file by now */
    c.inode = st.st_ino;
    CHECK(asks(&a, c));
    CHECK(!asks(&a, c));
    CHECK(!asks(&a, kbench_call(SYS_close, 0, 0, a.ends[0], 0)));
    CHECK(reads(&a, a.ends[0])); /* another one now */
    CHECK(!asks(&a, kbench_call(SYS_close, 0, 0, a.ends[0], -EBADF)));
    CHECK(!reads(&a, a.ends[0]));
    c = kbench_call(SYS_close, 1, a.ns, a.ends[0], 0); /* began before this one was opened */
    CHECK(!asks(&a, c));
    CHECK(!reads(&a, a.ends[0]));
    c = kbench_call(SYS_close, 0, 0, a.ends[0], 0);
    c.head.flags = SV_WIRE_UNFINISHED;
    CHECK(!asks(&a, c));
    CHECK(!reads(&a, a.ends[0]));
    CHECK(!asks(&a, kbench_call(SYS_read, 0, 0, -1, -1)));
    close_asking(&a);
}

TEST(the_scout_follows_opens_and_copies)
{
    struct asking a;
    open_asking(&a);
    struct sv_wire_call c = kbench_call(SYS_openat, 0, 0, AT_FDCWD, a.ends[0]);
    CHECK(!asks(&a, c));
    CHECK(!reads(&a, a.ends[0])); /* its path is in the record */
    c.head.flags = SV_WIRE_NO_PATH;
    CHECK(!asks(&a, c));
    CHECK(reads(&a, a.ends[0]));
    c.ret = -1;
    CHECK(!asks(&a, c));
    CHECK(!reads(&a, a.ends[0]));
    /* A copy is known if what it is of is known. */
    CHECK(!asks(&a, kbench_call(SYS_dup, 0, 0, a.ends[0], a.ends[1])));
    CHECK(!reads(&a, a.ends[1]));
    CHECK(!asks(&a, kbench_call(SYS_dup3, 0, 0, a.file, a.ends[1])));
    CHECK(reads(&a, a.ends[1]));
    CHECK(!asks(&a, kbench_call(SYS_dup3, 0, 0, a.ends[1], a.ends[1])));
    CHECK(!reads(&a, a.ends[1]));
    static const struct {
        uint32_t command;
        bool copies;
    } rows[] = {{F_DUPFD, true}, {F_DUPFD_CLOEXEC, true}, {F_GETFD, false}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        c = kbench_call(SYS_fcntl, 0, 0, a.file, a.ends[1]);
        c.aux = rows[i].command;
        CHECK(!asks(&a, c));
        CHECK_INT_EQ(reads(&a, a.ends[1]), rows[i].copies);
    }
    close_asking(&a);
}

TEST(the_scout_follows_what_has_no_path)
{
    struct asking a;
    open_asking(&a);
    reads(&a, a.ends[0]);
    reads(&a, a.ends[1]);
    CHECK(!asks(&a, kbench_call(SYS_socket, 0, 0, -1, a.ends[0])));
    CHECK(reads(&a, a.ends[0]));
    CHECK(!reads(&a, a.ends[1]));
    struct sv_wire_call c = kbench_call(SYS_pipe2, 0, 0, -1, 0);
    c.size = (uint64_t)(uint32_t)a.ends[1] << 32 | (uint32_t)a.ends[0];
    CHECK(!asks(&a, c));
    CHECK(reads(&a, a.ends[0]));
    CHECK(reads(&a, a.ends[1]));
    CHECK(!reads(&a, a.ends[0]) && !reads(&a, a.ends[1]));
    /* A range of one, then of one behind it, then one that only marks. */
    c = kbench_call(SYS_close_range, 0, 0, a.ends[0], 0);
    c.aux = (uint32_t)a.ends[0];
    asks(&a, c);
    CHECK(reads(&a, a.ends[0]));
    CHECK(!reads(&a, a.ends[1]));
    c.fd = a.ends[0] + 1;
    c.aux = UINT32_MAX;
    asks(&a, c);
    CHECK(!reads(&a, a.ends[0]));
    CHECK(reads(&a, a.ends[1]));
    c.size = CLOSE_RANGE_CLOEXEC;
    asks(&a, c);
    CHECK(!reads(&a, a.ends[1]));
    close_asking(&a);
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

/* The maps of a process are read while it lives; after an exec they are not those that the decoder
 * knows when the records before it are decoded. */
TEST(stacks_wait_while_their_program_is_the_same)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_tree *t = sv_decode_tree(k->decode);
    struct sv_symbols *symbols = sv_decode_symbols(k->decode);
    struct sv_scout s;
    bool is_new;
    const uint32_t self = (uint32_t)getpid(), child = 1u << 30;
    struct sv_wire_offcpu w = {
        .head = {.kind = SV_WIRE_OFFCPU, .tgid = self, .tid = self, .ts_ns = 1000},
        .stack.regs[SV_STACK_IP] = (uint64_t)(uintptr_t)&see_fork};
    sv_tree_process(t, self, &is_new)->has_snapshot = true;
    sv_scout_init(&s, t, sv_decode_inodes(k->decode));
    CHECK(!sv_scout_can_wait(&s, &w.head, sizeof w)); /* nobody could read maps */
    s.symbols = symbols;
    CHECK_UINT_EQ(sv_symbols_readings(symbols, self), 0);
    CHECK(sv_scout_can_wait(&s, &w.head, sizeof w));
    CHECK_UINT_EQ(sv_symbols_readings(symbols, self), 1);
    see_fork(&s, self, child, 2000);
    w.head.tgid = w.head.tid = child;
    CHECK(!sv_scout_can_wait(&s, &w.head, sizeof w));
    const struct sv_wire_head x = {.kind = SV_WIRE_EXEC, .tgid = self, .tid = self, .ts_ns = 3000};
    CHECK(sv_scout_can_wait(&s, &x, sizeof x));
    w.head.tgid = w.head.tid = self;
    CHECK(!sv_scout_can_wait(&s, &w.head, sizeof w));
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
