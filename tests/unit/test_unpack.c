/* Members and frames unpacked by several threads (files/unpack.h): the same bytes, and the same
 * words about damage, as with one thread. */
#include "core/base/buf.h"
#include "core/base/report.h"
#include "core/files/output.h"
#include "files/unpack.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "threads/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)1 << 28)

struct unpacked {
    struct sv_buf bytes, words;
    bool was_beside;
};

/* All of the input, in steps of some size, and what it says. */
static struct unpacked unpack(const struct sv_buf *packed, unsigned threads, size_t part_bytes,
                              size_t step)
{
    struct unpacked u = {0};
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_report report;
    struct sv_workers *workers = sv_workers_new(threads);
    sv_buf_init(&u.bytes, BYTES_MAX);
    sv_buf_init(&u.words, BYTES_MAX);
    sv_report_init(&report);
    REQUIRE(sv_input_open_memory(packed->data, packed->len, "packed", &in, &err) == 0);
    sv_unpack_beside(in, workers, part_bytes);
    u.was_beside = in->compression != NULL; /* not yet filled */
    while (sv_input_need(in, step, &err) >= 0 && in->len > 0) {
        size_t n = in->len < step ? in->len : step;
        sv_buf_add(&u.bytes, in->data, n);
        sv_input_skip(in, n);
    }
    sv_input_report(in, &report);
    sv_buf_printf(&u.words, "%s, error %d %s\n", in->compression ? in->compression : "plain",
                  err.code, err.msg);
    for (size_t i = 0; i < report.n; i++)
        sv_buf_printf(&u.words, "%s: %s, at %lld\n", report.rows[i].what,
                      report.rows[i].first_detail, (long long)report.rows[i].first_pos);
    sv_input_unpack_end(in);
    sv_workers_free(workers);
    sv_input_close(in);
    sv_report_fini(&report);
    return u;
}

static void free_unpacked(struct unpacked *u)
{
    sv_buf_fini(&u->bytes);
    sv_buf_fini(&u->words);
}

/* True: the other threads had work. */
static bool check_alike(const struct sv_buf *packed)
{
    static const struct {
        unsigned threads;
        size_t part_bytes;
    } ways[] = {{2, 300}, {3, 2000}, {5, 40000}};
    struct unpacked want = unpack(packed, 1, 0, 1000);
    bool was_beside = false;
    for (size_t i = 0; i < TEST_COUNT(ways); i++) {
        CONTEXT("%u threads, parts of %zu bytes", ways[i].threads, ways[i].part_bytes);
        struct unpacked got = unpack(packed, ways[i].threads, ways[i].part_bytes, 700 + 900 * i);
        was_beside |= got.was_beside;
        CHECK_STR_EQ(sv_buf_cstr(&got.words), sv_buf_cstr(&want.words));
        if (CHECK_UINT_EQ(got.bytes.len, want.bytes.len) && want.bytes.len > 0)
            CHECK(memcmp(got.bytes.data, want.bytes.data, want.bytes.len) == 0);
        free_unpacked(&got);
    }
    free_unpacked(&want);
    return was_beside;
}

static void pack_one(struct sv_buf *packed, enum sv_compression how, struct rng *rng, size_t len)
{
    struct sv_err err = {0};
    struct sv_output *out;
    REQUIRE(sv_output_open_buf(packed, how, &out, &err) == 0);
    for (; len > 0; len--) {
        uint8_t byte = (uint8_t)(rng_below(rng, 3) ? rng_below(rng, 20) : rng_next(rng));
        sv_output_write(out, &byte, 1);
    }
    REQUIRE(sv_output_close(out, &err) == 0);
}

/* n members or frames of up to `most` bytes; some are empty. */
static void pack(struct sv_buf *packed, enum sv_compression how, struct rng *rng, size_t n,
                 size_t most)
{
    sv_buf_clear(packed);
    for (size_t i = 0; i < n; i++)
        pack_one(packed, how, rng, i % 7 == 3 ? 0 : rng_below(rng, most));
}

static void damage(struct sv_buf *packed, struct rng *rng)
{
    size_t at = rng_below(rng, packed->len);
    switch (rng_below(rng, 4)) {
    case 0: packed->data[at] ^= (uint8_t)(1u << rng_below(rng, 8)); break;
    case 1: packed->len = at + 1; break;
    case 2: memset(packed->data + at, 0, packed->len - at < 30 ? packed->len - at : 30); break;
    default: sv_buf_add(packed, "\0\0\0 after it", rng_below(rng, 13)); break;
    }
}

static void check_random(enum sv_compression how)
{
    struct sv_buf packed;
    size_t n_beside = 0;
    sv_buf_init(&packed, BYTES_MAX);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct rng rng = {seed};
        pack(&packed, how, &rng, 1 + seed % 20, seed % 5 ? 3000 : 60000);
        for (unsigned times = 0; times < 3; times++) {
            CONTEXT("seed %u, damaged %u times", (unsigned)seed, times);
            n_beside += check_alike(&packed);
            damage(&packed, &rng);
        }
    }
    CHECK(n_beside > 40);
    sv_buf_fini(&packed);
}

TEST(members_whole_and_damaged)
{
    check_random(SV_GZIP);
}

TEST(frames_whole_and_damaged)
{
#ifdef SV_HAVE_ZSTD
    check_random(SV_ZSTD);
#else
    SKIP("built without zstd");
#endif
}

/* A stored block of deflate that holds the head of a member: the guess is wrong, the bytes are
 * right. */
TEST(heads_inside_a_member)
{
    struct sv_buf packed;
    struct rng rng = {7};
    struct sv_err err = {0};
    sv_buf_init(&packed, BYTES_MAX);
    pack(&packed, SV_GZIP, &rng, 4, 3000);
    struct sv_output *out;
    REQUIRE(sv_output_open_buf(&packed, SV_GZIP, &out, &err) == 0);
    for (int i = 0; i < 200; i++) {
        uint8_t bytes[64];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)rng_next(&rng);
        memcpy(bytes + 9, "\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
        sv_output_write(out, bytes, sizeof bytes);
        if (i % 8 == 0)
            REQUIRE(sv_output_flush(out, &err) == 0);
    }
    REQUIRE(sv_output_close(out, &err) == 0);
    CHECK(check_alike(&packed));
    sv_buf_fini(&packed);
}

/* Reading may stop anywhere. */
TEST(stopping_early)
{
    struct sv_buf packed;
    struct rng rng = {3};
    struct sv_err err = {0};
    sv_buf_init(&packed, BYTES_MAX);
    pack(&packed, SV_GZIP, &rng, 40, 3000);
    for (unsigned n = 0; n < 3; n++) {
        struct sv_input *in;
        struct sv_workers *workers = sv_workers_new(3);
        REQUIRE(sv_input_open_memory(packed.data, packed.len, "packed", &in, &err) == 0);
        sv_unpack_beside(in, workers, 500);
        if (n > 0)
            CHECK_INT_EQ(sv_input_need(in, n * 5000, &err), 1);
        sv_input_unpack_end(in);
        size_t len = in->len;
        CHECK_INT_EQ(sv_input_need(in, len + 1, &err), 0);
        CHECK_UINT_EQ(in->len, len);
        sv_workers_free(workers);
        sv_input_close(in);
    }
    sv_buf_fini(&packed);
}
