/* From the life-cycle calls to the thread that writes: a bounded ring of calls, any number of
 * producers, one consumer.
 *
 * A producer takes consecutive cells with one compare-and-swap, fills them and marks each with its
 * ticket; nobody waits for anybody (a full ring is said at once). The order of tickets is the order
 * in which the calls were made. Safe in signal handlers. */
#pragma once

#include "core/serving/life.h"

#include <stdatomic.h>

/* A call, or seven words of the members or the text of the call before it. */
struct sv_call_cell {
    _Atomic uint64_t ticket; /* plus 1, so that zeroed memory is no ticket */
    union {
        struct {
            int64_t time_ns, start_ns;
            uint64_t id;
            uint32_t model, samples;
            int32_t worker, device;
            uint16_t op, flags;
            uint32_t n;
            uint32_t words;   /* that follow, seven to a cell */
            uint32_t is_held; /* it is not in the trace: it may be left out (held_calls.h) */
        };
        uint64_t word[7];
    };
};
_Static_assert(sizeof(struct sv_call_cell) == 64, "a cell is a cache line");

/* Of a text or the members of a batch; a step has as many as its members need. */
enum { SV_CELL_WORDS = 7, SV_CALL_WORDS_MAX = 56, SV_STEP_MEMBERS_MAX = 65536 };
enum { SV_MEMBER_WORDS = sizeof(struct sv_engine_member) / 8 };

struct sv_call_ring {
    _Alignas(64) _Atomic uint64_t tail; /* next ticket; producers */
    _Alignas(64) _Atomic uint64_t head; /* next to be read; the consumer */
    _Atomic uint32_t sleeps;            /* 1: the consumer does, until it is woken or a while */
    _Alignas(64) _Atomic uint64_t lost;
    _Atomic uint64_t lost_steps; /* among them; they are nowhere else */
    _Atomic uint64_t lost_held;  /* the same of calls that would have been held */
    struct sv_call_cell *cells;
    uint64_t n_cells; /* a power of two */
};

bool sv_call_ring_init(struct sv_call_ring *r, uint64_t cells); /* false: no memory */
void sv_call_ring_fini(struct sv_call_ring *r);
/* With `words` after it, at most sv_call_ring_words(). False: full. */
bool sv_call_ring_put(struct sv_call_ring *r, const struct sv_call_cell *call,
                      const uint64_t *words, uint32_t n_words);
/* The most words that a call may have. */
uint32_t sv_call_ring_words(const struct sv_call_ring *r);
/* The next call if it is complete; words must hold sv_call_ring_words(). */
bool sv_call_ring_take(struct sv_call_ring *r, struct sv_call_cell *call, uint64_t *words);
/* The consumer sleeps for this long, until sv_call_ring_wake(), or until a quarter of the ring is
 * in use. It says so with sv_call_ring_will_sleep() first: a wake-up between the two is not
 * lost. */
void sv_call_ring_will_sleep(struct sv_call_ring *r);
void sv_call_ring_sleep(struct sv_call_ring *r, unsigned ms);
void sv_call_ring_wake(struct sv_call_ring *r);
uint64_t sv_call_ring_n(const struct sv_call_ring *r); /* cells taken and not read */
