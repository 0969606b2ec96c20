/* Arbitrary bytes as records of the kernel programs, in the form of tests/system/records.bin (a
 * size of four bytes before each): what comes out must pass the store's own checks, and nothing may
 * be read past a record. There is one record a round, at the end of the ring and of its memory,
 * where the sanitizer watches; a discarded one fills the ring before it. */
#include "record/decode/decode.h"
#include "store/trace.h"
#include "tests/fuzz/mutate_sections.h"

#include <assert.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RING_BYTES = 8 << 10, HEAD_BYTES = 8 };

struct player {
    uint64_t consumer, producer;
    uint8_t *ring;
    struct sv_decode *decode;
    struct sv_trace *trace;
    struct sv_batch batch;
};

static void put_head(uint8_t *at, uint32_t size_and_bits)
{
    memset(at, 0, HEAD_BYTES);
    memcpy(at, &size_and_bits, sizeof size_and_bits);
}

static void play(struct player *p, const uint8_t *record, uint32_t size)
{
    struct sv_source *source = sv_decode_source(p->decode);
    struct sv_sink *sink = sv_trace_sink(p->trace);
    struct sv_err err = {0};
    size_t start = RING_BYTES - ((HEAD_BYTES + (size_t)size + 7) & ~(size_t)7);
    put_head(p->ring, (uint32_t)(start - HEAD_BYTES) | BPF_RINGBUF_DISCARD_BIT);
    put_head(p->ring + start, size);
    memcpy(p->ring + start + HEAD_BYTES, record, size);
    p->producer += RING_BYTES;
    sv_decode_round(p->decode, UINT64_MAX);
    for (int n; sv_batch_reset(&p->batch), (n = source->next(source, &p->batch, &err)) > 0;)
        assert(sink->write(sink, p->batch.events, (size_t)n, &err) == 0 || err.code == SV_ENOMEM);
    sv_decode_release(p->decode);
    assert(p->consumer == p->producer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_report report;
    struct sv_err err = {0};
    struct sv_dict *dict = sv_dict_new();
    struct player p = {.ring = malloc(RING_BYTES)};
    assert(p.ring);
    sv_report_init(&report);
    sv_batch_init(&p.batch);
    p.trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    p.decode = sv_decode_new(dict, &report, &(struct sv_decode_options){0});
    sv_krings_add(sv_decode_rings(p.decode), &p.consumer, &p.producer, p.ring, RING_BYTES, false);
    while (size > sizeof(uint32_t)) {
        uint32_t n;
        memcpy(&n, data, sizeof n);
        data += sizeof n;
        size -= sizeof n;
        n = n % (RING_BYTES / 2);
        n = n < size ? n : (uint32_t)size;
        if (n >= sizeof(struct sv_wire_head))
            play(&p, data, n);
        data += n;
        size -= n;
    }
    sv_decode_lost(p.decode, 0, "records", 1, 0, 1);
    (void)sv_trace_finish(p.trace, &err);
    sv_decode_free(p.decode);
    sv_trace_free(p.trace);
    sv_batch_fini(&p.batch);
    free(p.ring);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}

/* A section is a record: its length has the same form. */
static const struct mutate_shape shape = {.first = RING_BYTES};
MUTATE_BY_SECTIONS(&shape, 1, 1)
