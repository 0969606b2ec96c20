/* Records of a real kernel, played back without one: tests/system/records.bin and work.bin were
 * made by tools/make-records, on Linux 6.18 for x86-64. What becomes of all of them is in
 * records.txt and work.txt beside them; UPDATE=1 writes these anew. */
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)

#define RECORDS "tests/system/records"
#define WORK    "tests/system/work"

struct played {
    char *text; /* all events */
    size_t n, len, cap;
    uint64_t n_records;
};

static void take_round(struct kbench *k, struct played *p)
{
    p->n += kbench_round(k, UINT64_MAX);
    size_t len = strlen(k->text);
    p->text = sv_grow(p->text, &p->cap, p->len + len + 1, 1);
    memcpy(p->text + p->len, k->text, len + 1);
    p->len += len;
}

/* One record a round: kbench's text holds no more. */
static void play(struct kbench *k, struct played *p, const char *name)
{
    static uint8_t record[64 << 10];
    uint32_t size;
    FILE *f = fopen(test_source(name), "rb");
    REQUIRE(f);
    while (fread(&size, sizeof size, 1, f) == 1) {
        REQUIRE(size >= sizeof(struct sv_wire_head) && size <= sizeof record);
        REQUIRE(fread(record, size, 1, f) == 1);
        kbench_put(k, 0, record, size, NULL, 0, 0);
        take_round(k, p);
        p->n_records++;
    }
    fclose(f);
}

static size_t count(const struct played *p, const char *first, const char *second)
{
    size_t n = 0;
    for (const char *at = p->text; (at = strstr(at, first)); at++) {
        const char *end = strchr(at, '\n');
        n += memmem(at, (size_t)(end - at), second, strlen(second)) != NULL;
    }
    return n;
}

TEST(records_of_a_real_kernel_become_the_same_events)
{
    struct kbench *k = kbench_new(NULL);
    struct played p = {0};
    play(k, &p, RECORDS ".bin");
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 0);
    CHECK_STR_EQ(shape_check_end(&k->shape), "");
    CHECK_UINT_EQ(p.n_records, 433);
    CHECK_UINT_EQ(p.n, 659);
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_syscalls, SV_SUM_EVENTS), 167);
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_process, SV_SUM_EVENTS), 4 + 4 + 5);
    CHECK_UINT_EQ(count(&p, " fork child=", ""), 4);
    CHECK_UINT_EQ(count(&p, " exec path=", ""), 4);
    CHECK_UINT_EQ(count(&p, " exit", ""), 5);
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_io_uring, SV_SUM_EVENTS), 9);
    static const char *const marks[] = {"dup",   "dup2",  "dup3",  "fcntl",  "fork",
                                        "reuse", "chdir", "dirfd", "fchdir", "renamed"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char text[64];
        snprintf(text, sizeof text, "/%s offset=0 bytes=16", marks[i]);
        CHECK_UINT_EQ(count(&p, " write fd=", text), 1);
    }
    CHECK_UINT_EQ(count(&p, " openat path=/mnt/book/nowhere", "errno=2"), 1);
    CHECK_UINT_EQ(count(&p, " rename", "path=/mnt/book/before path2=/mnt/book/renamed"), 1);
    CHECK_UINT_EQ(count(&p, " readv fd=", "path=/mnt/v requested=100 offset=0 bytes=60"), 1);
    CHECK_UINT_EQ(count(&p, " io_uring_write fd=", "path=/mnt/u"), 3);
    CHECK_UINT_EQ(count(&p, " io_uring_read fd=", "path=/mnt/u"), 4);
    CHECK(count(&p, "/state ", "Running cpu=") > 5);
    free(p.text);
    kbench_free(k);
}

/* Every event of the fixture, as text. */
static struct played played(bool leaves_out, bool fills_in)
{
    struct kbench *k = kbench_new(NULL);
    struct played p = {0};
    if (leaves_out)
        kbench_once(k, fills_in);
    play(k, &p, RECORDS ".bin");
    kbench_free(k);
    return p;
}

TEST(paths_that_are_left_out_are_filled_in_again)
{
    struct played all = played(false, false), bare = played(true, false), full = played(true, true);
    CHECK_UINT_EQ(all.n, bare.n);
    CHECK(count(&bare, " path=", "") + 40 < count(&all, " path=", ""));
    CHECK_STR_EQ(full.text, all.text);
    free(all.text);
    free(bare.text);
    free(full.text);
}

/* ---- whole texts ---- */

static char *whole_file(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    REQUIRE(f && fstat(fileno(f), &st) == 0);
    char *text = sv_alloc((size_t)st.st_size + 1);
    CHECK_UINT_EQ(fread(text, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    return text;
}

/* The first line that differs is said. */
static void compare(const char *file, const char *text)
{
    if (getenv("UPDATE"))
        test_write_file(test_source(file), text);
    char *all = whole_file(test_source(file)), *want = all;
    for (unsigned line = 1; *want || *text; line++) {
        size_t a = strcspn(want, "\n"), b = strcspn(text, "\n");
        CONTEXT("%s:%u", file, line);
        if (a != b || memcmp(want, text, a) != 0) {
            printf("  is  %.*s\n  not %.*s\n", (int)b, text, (int)a, want);
            CHECK(false && "the same line");
            break;
        }
        want += a + (want[a] == '\n');
        text += b + (text[b] == '\n');
    }
    free(all);
}

static void say(struct played *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct played *p, const char *format, ...)
{
    char line[SV_TREE_PATH_MAX + 400];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    REQUIRE(n >= 0 && (size_t)n < sizeof line);
    p->text = sv_grow(p->text, &p->cap, p->len + (size_t)n + 1, 1);
    memcpy(p->text + p->len, line, (size_t)n + 1);
    p->len += (size_t)n;
}

static int by_path(const void *a, const void *b)
{
    const struct sv_file *const *x = a, *const *y = b;
    return strcmp((*x)->path, (*y)->path);
}

/* What the summary shows of files and processes, and what is left open. */
static void say_sums(struct played *p, const struct kbench *k)
{
    const struct sv_tree *t = sv_decode_tree(k->decode);
    const struct sv_file *files[512];
    size_t n = 0;
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        say(p, "probe %u: %llu events, %llu begins, %llu bytes\n", i,
            (unsigned long long)sv_totals_sum(&k->totals, i, SV_SUM_EVENTS),
            (unsigned long long)sv_totals_sum(&k->totals, i, SV_SUM_UNFINISHED),
            (unsigned long long)sv_totals_sum(&k->totals, i, SV_SUM_BYTES));
    for (size_t i = 0; i < t->n; i++) {
        const struct sv_proc *x = t->processes[i];
        say(p, "process %u of %u %s: %llu calls, %llu read, %llu written, %lld ns%s%s, in %s\n",
            x->pid, x->parent, x->name, (unsigned long long)x->calls,
            (unsigned long long)x->bytes_read, (unsigned long long)x->bytes_written,
            (long long)x->time_ns, x->is_ended ? ", ended" : "", x->is_threaded ? ", threaded" : "",
            x->cwd ? x->cwd->path : "-");
        for (int fd = 0; fd < 64; fd++)
            if (sv_fd_at(x, fd) && sv_fd_at(x, fd)->file)
                say(p, "  %d %s\n", fd, sv_fd_at(x, fd)->file->path);
    }
    for (size_t i = 0; i < t->n_buckets; i++)
        for (const struct sv_file *f = t->buckets[i]; f && n < TEST_COUNT(files); f = f->next)
            files[n++] = f;
    CHECK_UINT_EQ(n, t->n_files);
    qsort(files, n, sizeof files[0], by_path);
    for (size_t i = 0; i < n; i++) {
        const struct sv_file *f = files[i];
        say(p,
            "file %s: %u refs, %llu opens, %llu reads of %llu, %llu writes of %llu, %llu errors, "
            "%lld ns, longest %lld%s\n",
            f->path, f->refs, (unsigned long long)f->opens, (unsigned long long)f->reads,
            (unsigned long long)f->read_bytes, (unsigned long long)f->writes,
            (unsigned long long)f->written_bytes, (unsigned long long)f->errors,
            (long long)f->time_ns, (long long)f->longest_ns, f->is_own ? ", own" : "");
    }
}

static void check_all(const char *name, const struct sv_decode_options *options, const char *file)
{
    char records[64];
    struct kbench *k = kbench_new(options);
    struct played p = {0};
    snprintf(records, sizeof records, "%s.bin", name);
    play(k, &p, records);
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 0);
    CHECK_STR_EQ(shape_check_end(&k->shape), "");
    say_sums(&p, k);
    compare(file, p.text);
    free(p.text);
    kbench_free(k);
}

TEST(all_events_of_many_processes)
{
    check_all(RECORDS, NULL, RECORDS ".txt");
}

/* One program that waits for locks, pipes and a disk, and asks for asynchronous I/O. */
TEST(all_events_of_one_that_works)
{
    check_all(WORK, NULL, WORK ".txt");
}

#endif
