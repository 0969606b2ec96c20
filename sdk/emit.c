/* The hot path: call place → committed record.
 *
 * Called by the macros, in any thread and in signal handlers, once the gate is open. It must not call anything but memcpy and
 * strnlen, take a lock, or make a system call (a test looks at this object's symbols); whatever is unusual (no ring, full ring, site not
 * registered, nested in itself) goes to sv_slow().
 *
 * Commit: the record's bytes, then one store-release of the ring's head, which pairs with the load-acquire of the reader. While a
 * record is being written the thread is busy: a signal handler that traces then takes the slow way and is counted. */
#include "sdk/cpu.h"
#include "sdk/sdk.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

struct sv_thread sv_nobody = {.busy = 1, .fates = ~(uint64_t)0};
_Thread_local struct sv_thread *sv_self __attribute__((tls_model("initial-exec"))) = &sv_nobody;
_Atomic uint32_t sv_epoch;

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline uint64_t now_raw(const struct sv_thread *t)
{
    if (LIKELY(t->counter == SV_COUNTER_CPU))
        return sv_cpu_counter();
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* in the vDSO: no system call */
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Only against this thread's own signal handlers: no instruction, but nothing moves across. */
static inline void order_for_signals(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* From here on nothing of the thread changes under us. False: it is being written to right now, or there is no ring. */
static inline bool enter(struct sv_thread *t)
{
    if (UNLIKELY(t->busy))
        return false;
    t->busy = 1;
    order_for_signals();
    return true;
}

static inline void leave(struct sv_thread *t)
{
    order_for_signals();
    t->busy = 0;
}

static inline uint64_t *record_at(const struct sv_thread *t, uint64_t head)
{
    return (uint64_t *)(void *)(t->data + (head & t->mask));
}

static inline void commit(struct sv_thread *t, uint64_t head, uint64_t limit)
{
    t->head = head;
    t->limit = limit;
    /* Pairs with the acquire of the reader in drain.c. */
    atomic_store_explicit(&t->ring->head, head, memory_order_release);
    leave(t);
}

static inline uint32_t epoch(void)
{
    return atomic_load_explicit(&sv_epoch, memory_order_relaxed);
}

/* What a recorded event returns: never 0, and never equal to a later session. */
static inline uint32_t session(void)
{
    uint32_t e = epoch();
    return e ? e : SV_EPOCH_NONE;
}

static inline uint64_t word_of(const struct stave_site *site)
{
    return __atomic_load_n(&site->word,
                           __ATOMIC_ACQUIRE); /* pairs with the release in registry.c */
}

/* A record without arguments, after which `kept` more bytes must be free. `notes`: STAVE_END will ask for its fate. 0: not for
 * this path. */
static inline uint32_t try0(const struct stave_site *site, uint64_t kept, bool notes)
{
    struct sv_thread *t = sv_self;
    if (UNLIKELY(!enter(t)))
        return 0;
    uint64_t word = word_of(site), head = t->head, limit = t->limit;
    if (UNLIKELY(head + SV_RECORD_HEAD + kept > limit || word == 0 ||
                 t->counter != SV_COUNTER_CPU)) {
        leave(t);
        return 0;
    }
    uint64_t *r = record_at(t, head);
    r[0] = word;
    r[1] = sv_cpu_counter();
    if (notes)
        t->fates = t->fates << 1 | 1;
    commit(t, head + SV_RECORD_HEAD, limit - kept);
    return session();
}

uint32_t stave_i_begin0(struct stave_site *site)
{
    uint32_t done = try0(site, SV_RECORD_HEAD, false);
    return LIKELY(done != 0) ? done : sv_slow(site, NULL);
}

void stave_i_open0(struct stave_site *site)
{
    if (UNLIKELY(try0(site, SV_RECORD_HEAD, true) == 0))
        stave_i_note_begin(sv_slow(site, NULL));
}

uint32_t stave_i_instant0(struct stave_site *site)
{
    uint32_t done = try0(site, 0, false);
    return LIKELY(done != 0) ? done : sv_slow(site, NULL);
}

/* ---- arguments ---- */

static inline size_t text_len(unsigned type, uint64_t value)
{
    if (value == 0)
        return 0;
    if (type == STAVE_I_ARGS)
        return ((const struct stave_args *)(uintptr_t)value)->len;
    return strnlen((const char *)(uintptr_t)value, SV_RECORD_BYTES_MAX / 2);
}

uint64_t sv_emit_bytes(const struct stave_site *site, const uint64_t *values)
{
    uint64_t bytes = SV_RECORD_HEAD + 8u * site->n_args;
    if (site->flags & SV_SITE_TEXT)
        for (unsigned i = 0; i < site->n_args; i++)
            if (site->types[i] >= STAVE_I_TEXT)
                bytes += (text_len(site->types[i], values[i]) + 7) & ~(uint64_t)7;
    return bytes < SV_RECORD_BYTES_MAX ? bytes : SV_RECORD_BYTES_MAX;
}

static const void *text_bytes(unsigned type, uint64_t value)
{
    return type == STAVE_I_ARGS ? (const void *)((const struct stave_args *)(uintptr_t)value)->bytes
                                : (const void *)(uintptr_t)value;
}

/* Words and texts of a site with text. Texts may change under us (another thread's buffer): what is measured again is
 * cut to the room that was taken. Returns the end of the record. */
static uint64_t *put_texts(uint64_t *r, const struct stave_site *site, const uint64_t *values,
                           uint64_t bytes)
{
    uint8_t *at = (uint8_t *)(r + 2 + site->n_args), *end = (uint8_t *)r + bytes;
    for (unsigned i = 0; i < site->n_args; i++) {
        unsigned type = site->types[i];
        if (type < STAVE_I_TEXT) {
            r[2 + i] = values[i];
            continue;
        }
        size_t len = text_len(type, values[i]), room = (size_t)(end - at);
        if (UNLIKELY(len > room))
            len = type == STAVE_I_ARGS ? 0 : room;
        r[2 + i] = len | (uint64_t)(values[i] == 0) << 63;
        if (len)
            memcpy(at, text_bytes(type, values[i]), len);
        at += (len + 7) & ~(size_t)7;
    }
    return (uint64_t *)(void *)at;
}

uint32_t sv_emit_try(struct sv_thread *t, uint64_t word, const struct stave_site *site,
                     const uint64_t *values)
{
    uint64_t reserve = site->flags & SV_SITE_NESTS ? SV_RECORD_HEAD : 0;
    uint64_t bytes = sv_word_bytes(word);
    if (site->flags & SV_SITE_TEXT)
        bytes = sv_emit_bytes(site, values);
    if (UNLIKELY(!enter(t)))
        return 0;
    uint64_t head = t->head, limit = t->limit;
    if (UNLIKELY(head + bytes + reserve > limit)) {
        leave(t);
        return 0;
    }
    uint64_t *r = record_at(t, head);
    r[1] = now_raw(t);
    if (site->flags & SV_SITE_TEXT) {
        uint64_t *end = put_texts(r, site, values, bytes);
        bytes = (uint64_t)((uint8_t *)end - (uint8_t *)r);
        word = (word & 0xffffffffffffull) | bytes / 8 << 48;
    } else {
        for (unsigned i = 0; i < site->n_args; i++)
            r[2 + i] = values[i];
    }
    r[0] = word;
    commit(t, head + bytes, limit - reserve);
    return session();
}

uint32_t stave_i_emit(struct stave_site *site, const uint64_t *values)
{
    struct sv_thread *t = sv_self;
    uint64_t word = word_of(site);
    uint32_t done = 0;
    if (LIKELY(word != 0))
        done = sv_emit_try(t, word, site, values);
    return LIKELY(done != 0) ? done : sv_slow(site, values);
}

/* ---- ends ---- */

/* There is room: the begin kept it. */
static inline void put_end(struct sv_thread *t, uint64_t head, uint64_t limit)
{
    uint64_t *r = record_at(t, head);
    r[0] = SV_WORD(0, STAVE_KIND_END, 0, SV_RECORD_HEAD / 8);
    r[1] = now_raw(t);
    commit(t, head + SV_RECORD_HEAD, limit + SV_RECORD_HEAD);
}

void stave_i_scope_end(uint32_t begun)
{
    struct sv_thread *t = sv_self;
    if (UNLIKELY(!enter(t)))
        return; /* begun by a thread that is no more: a forked child */
    uint64_t head = t->head, limit = t->limit;
    if (UNLIKELY(limit >= t->full_limit)) { /* nothing is open */
        leave(t);
        return;
    }
    if (UNLIKELY(begun != epoch())) { /* not in this session: give back the room that was kept */
        t->limit = limit + SV_RECORD_HEAD;
        leave(t);
        return;
    }
    put_end(t, head, limit);
}

/* An end without arguments, or one for whose arguments there is no room, is a plain one. */
void stave_i_scope_end_with(uint32_t begun, struct stave_site *site, const uint64_t *values)
{
    struct sv_thread *t = sv_self;
    if (site->n_args && t->ring && t->limit < t->full_limit && begun == epoch()) {
        uint64_t word = word_of(site);
        if (UNLIKELY(word == 0)) {
            sv_site_register(site);
            word = word_of(site);
        }
        if (word != 0 && sv_emit_try(t, word, site, values)) {
            t->limit += SV_RECORD_HEAD;
            return;
        }
    }
    stave_i_scope_end(begun);
}

void stave_i_note_begin(uint32_t recorded)
{
    struct sv_thread *t = sv_self;
    if (LIKELY(t->ring != NULL))
        t->fates = t->fates << 1 | (recorded != 0);
}

/* Was the begin of this end recorded? It is asked once. */
static inline bool take_fate(struct sv_thread *t)
{
    bool recorded = t->fates & 1;
    t->fates = t->fates >> 1 | (uint64_t)1 << 63;
    return recorded;
}

void stave_i_end0(void)
{
    struct sv_thread *t = sv_self;
    if (UNLIKELY(t->ring == NULL))
        return; /* nothing was begun */
    bool recorded = take_fate(t);
    if (UNLIKELY(!enter(t)))
        return;
    uint64_t head = t->head, limit = t->limit;
    if (UNLIKELY(!recorded || limit >= t->full_limit)) { /* nothing is open */
        leave(t);
        return;
    }
    put_end(t, head, limit);
}

void stave_i_end(struct stave_site *site, const uint64_t *values)
{
    struct sv_thread *t = sv_self;
    if (UNLIKELY(t->ring == NULL))
        return; /* nothing was begun */
    if (!take_fate(t) || t->limit >= t->full_limit)
        return;
    stave_i_scope_end_with(epoch(), site, values);
}
