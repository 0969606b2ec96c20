/* Records of a real kernel, played back without one: tests/system/records.bin was made by the
 * script beside it, on Linux 6.18 for x86-64. */
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

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
static void play(struct kbench *k, struct played *p)
{
    static uint8_t record[64 << 10];
    uint32_t size;
    FILE *f = fopen(TEST_SRC "/tests/system/records.bin", "rb");
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
    play(k, &p);
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
    play(k, &p);
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

#endif
