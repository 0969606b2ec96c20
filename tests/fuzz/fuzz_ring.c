/* Arbitrary bytes as the ring of another process: a section with its names, then four words (owner
 * and thread, losses) and records, round by round. Only the records of the round may be read, which
 * the sanitizer watches. What comes out must pass the store's own checks. */
#include "core/base/report.h"
#include "sdk/drain/drain.h"
#include "sdk/ring/ring_view.h"
#include "tests/fuzz/mutate_sections.h"
#include "tests/fuzz/session_fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1 /* as gcc says it */
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID(at, n) ASAN_POISON_MEMORY_REGION(at, n)
#define ALLOW(at, n)  ASAN_UNPOISON_MEMORY_REGION(at, n)
#else
#define FORBID(at, n) ((void)(at), (void)(n))
#define ALLOW(at, n)  ((void)(at), (void)(n))
#endif

enum { RING_BYTES = 16 << 10, WORDS = 4 };

struct player {
    struct sv_ring ring;
    uint8_t *data; /* twice in a row, as rings are mapped */
    struct sv_drain *drain;
    struct sv_trace *trace;
    struct shape_check shape;
};

static void put(struct player *p, const uint8_t *bytes, size_t n)
{
    uint64_t head = atomic_load(&p->ring.head);
    for (size_t i = 0, part; i < n; i += part) {
        size_t at = (head + i) & (RING_BYTES - 1);
        part = n - i < RING_BYTES - at ? n - i : RING_BYTES - at;
        memcpy(p->data + at, bytes + i, part);
        memcpy(p->data + RING_BYTES + at, bytes + i, part);
    }
    atomic_store(&p->ring.head, head + n);
}

/* In one piece, and those that begin past the end at their other place. */
static void allow(const struct player *p, size_t at, size_t n)
{
    ALLOW(p->data + at, n);
    if (at + n > RING_BYTES)
        ALLOW(p->data, at + n - RING_BYTES);
}

static void play(struct player *p, struct section s)
{
    uint64_t words[WORDS] = {0};
    size_t n = s.len < sizeof words ? s.len : sizeof words;
    memcpy(words, s.bytes, n);
    atomic_store(&p->ring.owner, (uint32_t)words[0]);
    atomic_store(&p->ring.tid, (uint32_t)(words[0] >> 32));
    atomic_store(&p->ring.lost_full, words[1]);
    atomic_store(&p->ring.lost_nested, words[2]);
    uint64_t from = sv_drain_ring(p->drain, 0)->pos;
    put(p, s.bytes + n, (s.len - n) & ~(size_t)7);
    if (words[3] & 1) /* a head that cannot be */
        atomic_fetch_add(&p->ring.head, words[3] / 2);
    uint64_t fresh = atomic_load(&p->ring.head) - from;
    FORBID(p->data, (size_t)2 * RING_BYTES);
    if (fresh <= RING_BYTES)
        allow(p, from & (RING_BYTES - 1), (size_t)fresh);
    sv_drain_round(p->drain);
    read_all(sv_drain_source(p->drain), p->trace, &p->shape);
    ALLOW(p->data, (size_t)2 * RING_BYTES);
    atomic_store(&p->ring.head, sv_drain_ring(p->drain, 0)->pos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_report report;
    struct sv_err err = {0};
    struct sv_ring_view window = {0};
    struct section rest = {data, size}, names = take_section(&rest);
    static struct player p; /* aligned as rings are, more than ASan does for the stack */
    p = (struct player){.ring = {.size = RING_BYTES, .head = RING_BYTES},
                        .data = calloc(2, RING_BYTES)};
    struct sv_dict *dict = sv_dict_new();
    assert(p.data);
    sv_report_init(&report);
    p.trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    p.drain = sv_drain_new(dict, &report, 1);
    shape_check_sink(&p.shape, sv_drain_source(p.drain)->gives, NULL);
    if (size % 4 < 2)
        sv_drain_through(p.drain, &window);
    sv_drain_with_source(p.drain, size % 8 == 0);
    sv_drain_tick(p.drain, &(struct sv_tick){0});
    sv_drain_tick(p.drain, &(struct sv_tick){.raw = 1000, .boot_ns = 1000, .mono_ns = 1000});
    (void)sv_drain_names(p.drain, names.bytes, names.len);
    sv_drain_add_ring(p.drain, &p.ring, p.data, RING_BYTES, RING_BYTES);
    for (int i = 0; rest.len > 0 && i < 32; i++)
        play(&p, take_section(&rest));
    (void)sv_trace_finish(p.trace, &err);
    if (shape_check_end(&p.shape)[0]) {
        fprintf(stderr, "%s\n", p.shape.wrong);
        __builtin_trap();
    }
    sv_drain_free(p.drain);
    sv_ring_view_fini(&window);
    sv_trace_free(p.trace);
    free(p.data);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}

static const struct mutate_shape shapes[] = {MUTATE_NAMES_SHAPE(0),
                                             MUTATE_RING_SHAPE(WORDS * sizeof(uint64_t))};
MUTATE_BY_SECTIONS(shapes, 2, 1)
