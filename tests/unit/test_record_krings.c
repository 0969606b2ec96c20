/* The kernel's rings by themselves: which lengths of a record are believed. */
#include "record/kernel/krings.h"
#include "tests/harness/test.h"

#include <linux/bpf.h>
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
    sv_krings_add(&b->rings, &b->consumer, &b->producer, b->data, SIZE);
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

/* What is too short to have a head is no record, unless it was discarded: then nobody looks into it. */
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
