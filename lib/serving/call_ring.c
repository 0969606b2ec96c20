/* The ring between the life-cycle calls and the writing thread.
 *
 * put() is on the path of the server's requests: no lock, no allocation, and no system call but for
 * one where the ring fills while its reader still sleeps because the server was idle. Cells are
 * given back by moving the head; a cell that is not yet filled still has an older ticket, so that
 * nothing need be cleared. */
#include "serving/call_ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The ring is larger than the nearer caches: cells of a long call are asked for this early. */
enum { AHEAD = 12 };

bool sv_call_ring_init(struct sv_call_ring *r, uint64_t cells)
{
    r->n_cells = 256;
    while (r->n_cells < cells && r->n_cells < (uint64_t)1 << 26)
        r->n_cells *= 2;
    r->cells = aligned_alloc(64, r->n_cells * sizeof *r->cells);
    if (!r->cells)
        return false;
    memset(r->cells, 0, r->n_cells * sizeof *r->cells); /* and no page fault later */
    return true;
}

void sv_call_ring_fini(struct sv_call_ring *r)
{
    free(r->cells);
}

static inline void publish(struct sv_call_cell *c, uint64_t ticket)
{
    /* Pairs with the acquire in take(). */
    atomic_store_explicit(&c->ticket, ticket + 1, memory_order_release);
}

static inline struct sv_call_cell *cell_at(const struct sv_call_ring *r, uint64_t ticket)
{
    return &r->cells[ticket & (r->n_cells - 1)];
}

bool sv_call_ring_put(struct sv_call_ring *r, const struct sv_call_cell *call,
                      const uint64_t *words, uint32_t n_words)
{
    uint64_t n = 1 + ((uint64_t)n_words + SV_CELL_WORDS - 1u) / SV_CELL_WORDS;
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed), head;
    do {
        /* Pairs with the release in take(): what lies before the head has been read. */
        head = atomic_load_explicit(&r->head, memory_order_acquire);
        if (tail + n - head > r->n_cells)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&r->tail, &tail, tail + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    for (uint64_t i = 1; i < n; i++) {
        struct sv_call_cell *c = cell_at(r, tail + i);
        __builtin_prefetch(cell_at(r, tail + i + AHEAD), 1);
        uint32_t from = (uint32_t)(i - 1) * SV_CELL_WORDS;
        if (n_words - from >= SV_CELL_WORDS) /* a length that is known: no call of memcpy() */
            memcpy(c->word, words + from, sizeof c->word);
        else
            memcpy(c->word, words + from, (n_words - from) * sizeof *words);
        publish(c, tail + i);
    }
    struct sv_call_cell *first = cell_at(r, tail);
    memcpy(first->word, call->word, sizeof first->word);
    first->words = n_words;
    publish(first, tail);
    if (tail + n - head > r->n_cells / 4 && atomic_load_explicit(&r->sleeps, memory_order_relaxed))
        sv_call_ring_wake(r);
    return true;
}

void sv_call_ring_will_sleep(struct sv_call_ring *r)
{
    atomic_store(&r->sleeps, 1);
}

void sv_call_ring_sleep(struct sv_call_ring *r, unsigned ms)
{
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    if (sv_call_ring_n(r) <= r->n_cells / 4)
        syscall(SYS_futex, &r->sleeps, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0);
    atomic_store(&r->sleeps, 0);
}

void sv_call_ring_wake(struct sv_call_ring *r)
{
    int saved = errno; /* a signal handler may be here */
    if (atomic_exchange(&r->sleeps, 0))
        syscall(SYS_futex, &r->sleeps, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

uint32_t sv_call_ring_words(const struct sv_call_ring *r)
{
    uint64_t most = (r->n_cells - 1) * SV_CELL_WORDS,
             step = (uint64_t)SV_STEP_MEMBERS_MAX * SV_MEMBER_WORDS;
    return (uint32_t)(most < step ? most : step);
}

static bool is_complete(const struct sv_call_ring *r, uint64_t ticket)
{
    return atomic_load_explicit(&cell_at(r, ticket)->ticket, memory_order_acquire) == ticket + 1;
}

bool sv_call_ring_take(struct sv_call_ring *r, struct sv_call_cell *call, uint64_t *words)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (!is_complete(r, head))
        return false;
    memcpy(call->word, cell_at(r, head)->word, sizeof call->word);
    /* The first cell is published last: those after it are complete. */
    for (uint32_t done = 0, i = 1; done < call->words; done += SV_CELL_WORDS, i++) {
        uint32_t k = call->words - done < SV_CELL_WORDS ? call->words - done : SV_CELL_WORDS;
        memcpy(words + done, cell_at(r, head + i)->word, k * sizeof *words);
    }
    uint64_t n = 1 + (call->words + SV_CELL_WORDS - 1u) / SV_CELL_WORDS;
    atomic_store_explicit(&r->head, head + n, memory_order_release);
    return true;
}

uint64_t sv_call_ring_n(const struct sv_call_ring *r)
{
    return atomic_load_explicit(&r->tail, memory_order_relaxed) -
           atomic_load_explicit(&r->head, memory_order_relaxed);
}
