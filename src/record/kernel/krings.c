/* Reads the kernel's rings and merges them. Called by the decoder, once per round.
 *
 * A thread that moves from one CPU to another leaves its older record complete before it makes the
 * next one. So everything older than a moment that was read before the producers' positions is
 * there, and taking only that keeps each thread in order.
 *
 * A record may be reserved and not complete: its thread was interrupted, and where kernels can be
 * preempted others continue meanwhile. Behind it there may be the older record of a thread that has
 * moved on to another CPU, so then no ring is read past what came before it. */
#include "record/kernel/krings.h"
#include "core/base/mem.h"

#include <linux/bpf.h>
#include <stdlib.h>

void sv_krings_add(struct sv_krings *r, uint64_t *consumer, const uint64_t *producer,
                   const uint8_t *data, uint64_t size, bool is_once)
{
    r->all = sv_grow(r->all, &r->cap, r->n + 1, sizeof *r->all);
    r->all[r->n++] = (struct sv_kring){.consumer = consumer,
                                       .producer = producer,
                                       .data = data,
                                       .mask = size - 1,
                                       .is_once = is_once,
                                       .pos = *consumer};
}

void sv_krings_fini(struct sv_krings *r)
{
    free(r->all);
    *r = (struct sv_krings){0};
}

static void break_off(struct sv_krings *r, struct sv_kring *k)
{
    k->is_broken = true;
    k->first = NULL;
    k->pos = k->end;
    r->n_broken++;
}

/* A record is mostly complete within the time of a few hundred instructions. */
static uint32_t head_of(const uint8_t *at)
{
    enum { LOOKS = 2000 };
    uint32_t head = BPF_RINGBUF_BUSY_BIT;
    for (unsigned i = 0; i < LOOKS && head & BPF_RINGBUF_BUSY_BIT; i++)
        head = __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
    return head;
}

/* Finds the next record of a ring that is whole and old enough. */
static void look(struct sv_krings *r, struct sv_kring *k)
{
    k->first = NULL;
    while (k->pos < k->end) {
        const uint8_t *at = k->data + (k->pos & k->mask);
        uint32_t head = head_of(at);
        if (head & BPF_RINGBUF_BUSY_BIT) {
            r->is_blocked = true;
            if (k->last_ns < r->cutoff_ns)
                r->cutoff_ns = k->last_ns;
            return;
        }
        uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
        uint64_t step = ((uint64_t)size + BPF_RINGBUF_HDR_SZ + 7) & ~(uint64_t)7;
        if (step > k->end - k->pos || (k->is_once && step > k->mask + 1 - (k->pos & k->mask))) {
            break_off(r, k);
            return;
        }
        if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
            const struct sv_wire_head *h = (const void *)(at + BPF_RINGBUF_HDR_SZ);
            if (size < sizeof *h) {
                break_off(r, k);
                return;
            }
            if (h->ts_ns > r->cutoff_ns)
                return;
            k->first = h;
            k->first_size = size;
            return;
        }
        k->pos += step;
    }
}

static void choose(struct sv_krings *r)
{
    uint64_t best = UINT64_MAX, second = UINT64_MAX;
    r->at = r->n;
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_wire_head *h = r->all[i].first;
        if (!h || h->ts_ns > r->cutoff_ns)
            continue;
        if (r->at == r->n || h->ts_ns < best) {
            second = best;
            best = h->ts_ns;
            r->at = i;
        } else if (h->ts_ns < second) {
            second = h->ts_ns;
        }
    }
    r->yield_ns = second;
}

uint64_t sv_krings_round(struct sv_krings *r, uint64_t cutoff_ns)
{
    uint64_t bytes = 0;
    r->cutoff_ns = cutoff_ns;
    r->is_blocked = false;
    for (size_t i = 0; i < r->n; i++) {
        struct sv_kring *k = &r->all[i];
        uint64_t end = k->producer ? __atomic_load_n(k->producer, __ATOMIC_ACQUIRE) : k->end;
        if (k->is_broken || end - k->pos > k->mask + 1) {
            if (!k->is_broken && end != k->pos)
                r->n_broken++;
            k->is_broken = false; /* what it holds now is passed over, what follows is read */
            k->pos = end;
        }
        k->end = end;
        bytes += end - k->pos;
        look(r, k);
    }
    choose(r);
    return bytes;
}

const struct sv_wire_head *sv_krings_next(struct sv_krings *r, uint32_t *size)
{
    if (r->at == r->n)
        return NULL;
    struct sv_kring *k = &r->all[r->at];
    const struct sv_wire_head *h = k->first;
    bool was_blocked = r->is_blocked;
    *size = k->first_size;
    k->last_ns = h->ts_ns;
    k->pos += ((uint64_t)k->first_size + BPF_RINGBUF_HDR_SZ + 7) & ~(uint64_t)7;
    look(r, k);
    if (!k->first || k->first->ts_ns > r->yield_ns || r->is_blocked != was_blocked)
        choose(r);
    return h;
}

void sv_krings_release(struct sv_krings *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct sv_kring *k = &r->all[i];
        k->released_ns = k->last_ns;
        if (k->consumer)
            __atomic_store_n(k->consumer, k->pos, __ATOMIC_RELEASE);
    }
}

void sv_krings_rewind(struct sv_krings *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct sv_kring *k = &r->all[i];
        k->last_ns = k->released_ns;
        k->pos = k->consumer ? *k->consumer : 0;
    }
}

/* One that is not complete has a length already, and perhaps no time. */
static uint64_t unread_in(const struct sv_kring *k, uint64_t until_ns)
{
    uint64_t n = 0, step;
    for (uint64_t pos = k->pos; pos < k->end; pos += step) {
        const uint8_t *at = k->data + (pos & k->mask);
        uint32_t head = __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE),
                 size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
        const struct sv_wire_head *h = (const void *)(at + BPF_RINGBUF_HDR_SZ);
        step = ((uint64_t)size + BPF_RINGBUF_HDR_SZ + 7) & ~(uint64_t)7;
        if (size < sizeof *h || step > k->end - pos)
            break;
        if (!(head & BPF_RINGBUF_DISCARD_BIT))
            n += head & BPF_RINGBUF_BUSY_BIT || h->ts_ns <= until_ns;
    }
    return n;
}

uint64_t sv_krings_unread(const struct sv_krings *r, uint64_t until_ns)
{
    uint64_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += unread_in(&r->all[i], until_ns);
    return n;
}

size_t sv_krings_piece(const struct sv_krings *r, size_t i, struct iovec at[2])
{
    const struct sv_kring *k = &r->all[i];
    uint64_t from = *k->consumer & k->mask, to_end = k->mask + 1 - from;
    size_t len = (size_t)(k->pos - *k->consumer),
           first = k->is_once && len > to_end ? (size_t)to_end : len;
    at[0] = (struct iovec){(void *)(uintptr_t)(k->data + from), first};
    at[1] = (struct iovec){(void *)(uintptr_t)k->data, len - first};
    return len;
}

void sv_krings_add_piece(struct sv_krings *r, const uint8_t *bytes, uint64_t len)
{
    r->all = sv_grow(r->all, &r->cap, r->n + 1, sizeof *r->all);
    r->all[r->n++] = (struct sv_kring){.data = bytes, .mask = ((uint64_t)1 << 62) - 1, .end = len};
}
