/* The kernel's rings by themselves: which lengths of a record are believed, in which order several
 * are read. */
#include "record/kernel/krings.h"
#include "tests/harness/test.h"

#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 4096 };

struct bench {
    uint64_t consumer, producer;
    _Alignas(8) uint8_t data[2 * SIZE];
    struct sv_krings rings;
};

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof *b);
    sv_krings_add(&b->rings, &b->consumer, &b->producer, b->data, SIZE, false);
}

/* A record that says it has so many bytes; the ring ends `bytes` behind its begin. */
static void put(struct bench *b, uint32_t says, uint32_t bits, uint64_t ts_ns, uint64_t bytes)
{
    uint32_t head[2] = {says | bits, 0};
    struct sv_wire_head h = {.ts_ns = ts_ns};
    memcpy(b->data + b->producer, head, sizeof head);
    memcpy(b->data + b->producer + sizeof head, &h, sizeof h);
    b->producer += bytes;
}

static uint64_t step_of(uint32_t size)
{
    return ((uint64_t)size + BPF_RINGBUF_HDR_SZ + 7) & ~(uint64_t)7;
}

/* All of it is there, or none of it is read. */
TEST(a_record_ends_where_the_ring_does)
{
    static struct bench b;
    for (uint32_t size = sizeof(struct sv_wire_head); size < 200; size++) {
        for (uint64_t missing = 0; missing <= 24; missing += 8) {
            uint32_t got = 0;
            CONTEXT("%u bytes, %llu missing", size, (unsigned long long)missing);
            open_bench(&b);
            put(&b, size, 0, 5, step_of(size) - missing);
            sv_krings_round(&b.rings, 10);
            const struct sv_wire_head *h = sv_krings_next(&b.rings, &got);
            CHECK((h != NULL) == (missing == 0));
            CHECK_UINT_EQ(got, missing == 0 ? size : 0);
            CHECK_UINT_EQ(b.rings.n_broken, missing != 0);
            sv_krings_fini(&b.rings);
        }
    }
}

/* What is too short to have a head is no record, unless it was discarded: then nobody looks into
 * it. */
TEST(a_record_has_a_head)
{
    static struct bench b;
    for (uint32_t size = 0; size <= sizeof(struct sv_wire_head); size++) {
        for (int is_discarded = 0; is_discarded < 2; is_discarded++) {
            uint32_t got = 0;
            bool is_whole = size == sizeof(struct sv_wire_head);
            CONTEXT("%u bytes, discarded %d", size, is_discarded);
            open_bench(&b);
            put(&b, size, is_discarded ? BPF_RINGBUF_DISCARD_BIT : 0, 5, step_of(size));
            put(&b, 100, 0, 6, step_of(100));
            sv_krings_round(&b.rings, 10);
            const struct sv_wire_head *h = sv_krings_next(&b.rings, &got);
            CHECK_UINT_EQ(got, is_discarded ? 100 : is_whole ? size : 0);
            CHECK((h != NULL) == (is_discarded || is_whole));
            CHECK_UINT_EQ(b.rings.n_broken, !is_discarded && !is_whole);
            sv_krings_fini(&b.rings);
        }
    }
}

/* ---- several rings ---- */

enum { RINGS = 4, RECORDS = 40, STEP = 32 };

struct several {
    uint64_t consumer[RINGS], producer[RINGS];
    _Alignas(8) uint8_t data[RINGS][2 * SIZE];
    struct sv_krings rings;
};

static void open_several(struct several *s)
{
    memset(s, 0, sizeof *s);
    for (unsigned i = 0; i < RINGS; i++)
        sv_krings_add(&s->rings, &s->consumer[i], &s->producer[i], s->data[i], SIZE, false);
}

static void put_in(struct several *s, unsigned ring, uint64_t ts_ns, uint32_t bits)
{
    uint32_t head[2] = {(uint32_t)sizeof(struct sv_wire_head) | bits, 0};
    struct sv_wire_head h = {.ts_ns = ts_ns};
    _Static_assert(sizeof head + sizeof h == STEP, "a record");
    memcpy(s->data[ring] + s->producer[ring], head, sizeof head);
    memcpy(s->data[ring] + s->producer[ring] + sizeof head, &h, sizeof h);
    s->producer[ring] += STEP;
}

/* The times of the round, each followed by a blank. */
static const char *times(struct several *s, uint64_t cutoff_ns)
{
    static char text[RECORDS * 24];
    const struct sv_wire_head *h;
    uint32_t size;
    size_t n = 0;
    text[0] = 0;
    sv_krings_round(&s->rings, cutoff_ns);
    while ((h = sv_krings_next(&s->rings, &size)))
        n += (size_t)snprintf(text + n, sizeof text - n, "%llu ", (unsigned long long)h->ts_ns);
    return text;
}

/* Every way to deal records to rings at which ring a record is in turns differs from the one
 * before. */
TEST(records_of_all_rings_come_by_their_time)
{
    static struct several s;
    for (unsigned seed = 1; seed < 200; seed++) {
        char expected[RECORDS * 24];
        size_t n = 0;
        unsigned chance = seed;
        CONTEXT("seed %u", seed);
        open_several(&s);
        for (unsigned i = 1; i <= RECORDS; i++) {
            chance = chance * 1103515245u + 12345u;
            put_in(&s, chance >> 16 & (RINGS - 1), 10 * i, 0);
            n += (size_t)snprintf(expected + n, sizeof expected - n, "%u ", 10 * i);
        }
        CHECK_STR_EQ(times(&s, 10 * RECORDS), expected);
        sv_krings_fini(&s.rings);
    }
}

TEST(a_round_has_what_is_old_enough_and_says_how_much_there_is)
{
    static struct several s;
    open_several(&s);
    put_in(&s, 0, 10, 0);
    put_in(&s, 0, 30, 0);
    put_in(&s, 2, 20, 0);
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 5), 3 * STEP);
    CHECK_STR_EQ(times(&s, 9), "");
    CHECK_STR_EQ(times(&s, 20), "10 20 ");
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 29), STEP); /* read, and not given back yet */
    sv_krings_rewind(&s.rings);
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 29), 3 * STEP);
    CHECK_STR_EQ(times(&s, 30), "10 20 30 ");
    sv_krings_release(&s.rings);
    CHECK_UINT_EQ(s.consumer[0], 2 * STEP);
    CHECK_UINT_EQ(s.consumer[2], STEP);
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 100), 0);
    CHECK_UINT_EQ(s.rings.n_broken, 0);
    sv_krings_fini(&s.rings);
}

/* Nothing that is later than the last record before one that is not complete. */
TEST(a_record_that_is_not_complete_holds_up_all_rings)
{
    static struct several s;
    open_several(&s);
    put_in(&s, 0, 10, 0);
    put_in(&s, 0, 0, BPF_RINGBUF_BUSY_BIT);
    put_in(&s, 1, 9, 0);
    put_in(&s, 1, 10, 0);
    put_in(&s, 1, 11, 0);
    CHECK_STR_EQ(times(&s, 100), "9 10 10 ");
    CHECK(s.rings.is_blocked);
    sv_krings_rewind(&s.rings); /* what was before it was not given back: it is before it again */
    CHECK_STR_EQ(times(&s, 100), "9 10 10 ");
    sv_krings_release(&s.rings);
    put_in(&s, 1, 12, 0);
    CHECK_STR_EQ(times(&s, 100), "");
    uint32_t whole = (uint32_t)sizeof(struct sv_wire_head);
    memcpy(s.data[0] + STEP, &whole, sizeof whole);
    CHECK_STR_EQ(times(&s, 100), "0 11 12 ");
    CHECK(!s.rings.is_blocked);
    sv_krings_fini(&s.rings);
}

/* A producer that is further ahead than the ring is long, as after a fault of the kernel: passed
 * over once, counted, and read again from there. */
/* The end of a recording: what is held up is counted, whatever it became; what came later is not
 * of the recording. */
TEST(what_was_not_read_is_counted)
{
    static struct bench b;
    const uint32_t size = sizeof(struct sv_wire_head);
    uint32_t got;
    open_bench(&b);
    put(&b, size, 0, 5, step_of(size));
    put(&b, size, BPF_RINGBUF_BUSY_BIT, 999, step_of(size)); /* its time means nothing */
    put(&b, size, 0, 10, step_of(size));
    put(&b, size, BPF_RINGBUF_DISCARD_BIT, 10, step_of(size));
    put(&b, size, 0, 11, step_of(size));
    sv_krings_round(&b.rings, 20);
    CHECK(sv_krings_next(&b.rings, &got) != NULL);
    CHECK(sv_krings_next(&b.rings, &got) == NULL);
    CHECK(b.rings.is_blocked);
    CHECK_UINT_EQ(sv_krings_unread(&b.rings, 9), 1);
    CHECK_UINT_EQ(sv_krings_unread(&b.rings, 10), 2);
    CHECK_UINT_EQ(sv_krings_unread(&b.rings, 11), 3);
    put(&b, size, 0, 12, step_of(size) - 8); /* its end is not there */
    sv_krings_rewind(&b.rings);
    sv_krings_round(&b.rings, 20);
    CHECK_UINT_EQ(sv_krings_unread(&b.rings, UINT64_MAX), 4);
    sv_krings_fini(&b.rings);
}

TEST(positions_that_cannot_be_are_passed_over)
{
    static struct several s;
    open_several(&s);
    s.producer[3] = SIZE;
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 100),
                  SIZE); /* full: that can be; its bytes are not records */
    CHECK_UINT_EQ(s.rings.n_broken, 1);
    sv_krings_fini(&s.rings);
    open_several(&s);
    s.producer[3] = SIZE + 8;
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 100), 0);
    CHECK_UINT_EQ(s.rings.n_broken, 1);
    CHECK_UINT_EQ(sv_krings_round(&s.rings, 100), 0);
    CHECK_UINT_EQ(s.rings.n_broken, 1);
    sv_krings_fini(&s.rings);
}

TEST(pieces_are_rings_of_their_own)
{
    static struct several s;
    struct sv_krings pieces = {0};
    uint32_t size;
    struct iovec at[2];
    open_several(&s);
    put_in(&s, 0, 10, 0);
    put_in(&s, 1, 20, 0);
    put_in(&s, 1, 30, 0);
    CHECK_STR_EQ(times(&s, 20), "10 20 ");
    for (size_t i = 0; i < RINGS; i++) {
        size_t len = sv_krings_piece(&s.rings, i, at);
        CHECK_UINT_EQ(len, i < 2 ? STEP : 0);
        CHECK_UINT_EQ(at[1].iov_len, 0);
        sv_krings_add_piece(&pieces, at[0].iov_base, len);
    }
    CHECK_UINT_EQ(sv_krings_round(&pieces, UINT64_MAX), 2 * STEP);
    CHECK_UINT_EQ(sv_krings_next(&pieces, &size)->ts_ns, 10);
    CHECK_UINT_EQ(sv_krings_next(&pieces, &size)->ts_ns, 20);
    CHECK(!sv_krings_next(&pieces, &size));
    sv_krings_rewind(&pieces);
    sv_krings_round(&pieces, 10);
    CHECK(sv_krings_next(&pieces, &size) && !sv_krings_next(&pieces, &size));
    sv_krings_fini(&pieces);
    sv_krings_fini(&s.rings);
}

/* Mapped once: what was read is in two places when it goes over the end; a record that does is not
 * believed. */
TEST(a_ring_that_is_mapped_once)
{
    static struct bench b;
    struct iovec at[2];
    uint32_t size;
    const uint64_t last = SIZE - 2 * (BPF_RINGBUF_HDR_SZ + sizeof(struct sv_wire_head));
    memset(&b, 0, sizeof b);
    b.consumer = b.producer = last;
    sv_krings_add(&b.rings, &b.consumer, &b.producer, b.data, SIZE, true);
    put(&b, sizeof(struct sv_wire_head), 0, 1, step_of(sizeof(struct sv_wire_head)));
    put(&b, sizeof(struct sv_wire_head), 0, 2, step_of(sizeof(struct sv_wire_head)));
    memcpy(b.data, b.data + last, step_of(sizeof(struct sv_wire_head)));
    b.producer += step_of(sizeof(struct sv_wire_head));
    sv_krings_round(&b.rings, 100);
    for (int i = 0; i < 3; i++)
        CHECK(sv_krings_next(&b.rings, &size));
    CHECK_UINT_EQ(sv_krings_piece(&b.rings, 0, at), 3 * step_of(sizeof(struct sv_wire_head)));
    CHECK_UINT_EQ(at[0].iov_len, SIZE - last);
    CHECK(at[0].iov_base == b.data + last && at[1].iov_base == b.data);
    CHECK_UINT_EQ(at[1].iov_len, step_of(sizeof(struct sv_wire_head)));
    sv_krings_fini(&b.rings);

    memset(&b, 0, sizeof b);
    b.consumer = b.producer = SIZE - 64;
    sv_krings_add(&b.rings, &b.consumer, &b.producer, b.data, SIZE, true);
    put(&b, 128, 0, 1, step_of(128));
    sv_krings_round(&b.rings, 100);
    CHECK(!sv_krings_next(&b.rings, &size));
    CHECK_UINT_EQ(b.rings.n_broken, 1);
    sv_krings_fini(&b.rings);
}
