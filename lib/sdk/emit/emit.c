/* The hot path: call site → committed record.
 *
 * Called by the macros, in any thread and in signal handlers, once the gate is open. It must not
 * call anything but memcpy, memmove and strnlen, take a lock, or make a system call (a test looks
 * at this object's symbols); whatever is unusual (no ring, full ring, site not registered, nested
 * in itself) goes to sv_slow().
 *
 * Commit: the record's bytes, then one store-release of the ring's head, which pairs with the
 * load-acquire of the reader. While a record is being written the thread is busy: a signal handler
 * that traces then takes the slow way and is counted. */
#include "sdk/emit/cpu.h"
#include "sdk/session/sdk.h"

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

/* From here on nothing of the thread changes under us. False: it is being written to right now, or
 * there is no ring. */
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

/* A record without arguments, after which `kept` more bytes must be free. `notes`: STAVE_END will
 * ask for its fate. 0: not for this path. */
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

/* Words and texts of a site with text. Texts may change under us (another thread's buffer): what is
 * measured again is cut to the space that was reserved. Returns the end of the record. */
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
        size_t len = text_len(type, values[i]), left = (size_t)(end - at);
        if (UNLIKELY(len > left))
            len = type == STAVE_I_ARGS ? 0 : left;
        r[2 + i] = len | (uint64_t)(values[i] == 0) << 63;
        if (len)
            memcpy(at, text_bytes(type, values[i]), len);
        at += (len + 7) & ~(size_t)7;
    }
    return (uint64_t *)(void *)at;
}

/* A begin on a named track learns which slice it is; its end releases the space that was reserved
 * for it. */
static inline __attribute__((always_inline)) uint32_t record(struct sv_thread *t, uint64_t word,
                                                             const struct stave_site *site,
                                                             const uint64_t *values,
                                                             struct sv_on *on)
{
    uint64_t reserve = site->flags & SV_SITE_NESTS ? SV_RECORD_HEAD : 0, given = 0;
    uint64_t bytes = sv_word_bytes(word);
    if (on && on->is_end)
        given = on->kept;
    else if (on)
        reserve = on->kept;
    if (site->flags & SV_SITE_TEXT)
        bytes = sv_emit_bytes(site, values);
    if (UNLIKELY(!enter(t)))
        return 0;
    uint64_t head = t->head, limit = t->limit + given;
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
    if (on && on->is_end && site->flags & SV_SITE_SLICE)
        r[3] = on->slice & SV_SLICE_RECORD_MASK;
    else if (on && !on->is_end)
        on->slice = t->slice_base + head / 8;
    commit(t, head + bytes, limit - reserve);
    return session();
}

uint32_t sv_emit_try(struct sv_thread *t, uint64_t word, const struct stave_site *site,
                     const uint64_t *values, struct sv_on *on)
{
    return record(t, word, site, values, on);
}

uint32_t stave_i_emit(struct stave_site *site, const uint64_t *values)
{
    struct sv_thread *t = sv_self;
    uint64_t word = word_of(site);
    uint32_t done = 0;
    if (LIKELY(word != 0))
        done = record(t, word, site, values, NULL);
    return LIKELY(done != 0) ? done : sv_slow(site, values);
}

/* ---- ends ---- */

/* There is space: the begin reserved it. */
static inline void put_end_at(struct sv_thread *t, uint64_t head, uint64_t limit, uint64_t time)
{
    uint64_t *r = record_at(t, head);
    r[0] = SV_WORD(0, STAVE_KIND_END, 0, SV_RECORD_HEAD / 8);
    r[1] = time;
    commit(t, head + SV_RECORD_HEAD, limit + SV_RECORD_HEAD);
}

/* Apart: a call needs a stack frame, which the usual way would pay for too. */
static __attribute__((noinline)) void put_end_by_clock(struct sv_thread *t, uint64_t head,
                                                       uint64_t limit)
{
    put_end_at(t, head, limit, now_raw(t));
}

static inline void put_end(struct sv_thread *t, uint64_t head, uint64_t limit)
{
    if (LIKELY(t->counter == SV_COUNTER_CPU))
        put_end_at(t, head, limit, sv_cpu_counter());
    else
        put_end_by_clock(t, head, limit);
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
    if (UNLIKELY(begun != epoch())) { /* not in this session: release the reserved space */
        t->limit = limit + SV_RECORD_HEAD;
        leave(t);
        return;
    }
    put_end(t, head, limit);
}

/* An end without arguments, or one whose arguments do not fit, is a plain one. */
void stave_i_scope_end_with(uint32_t begun, struct stave_site *site, const uint64_t *values)
{
    struct sv_thread *t = sv_self;
    if (site->n_args && t->ring && t->limit < t->full_limit && begun == epoch()) {
        uint64_t word = word_of(site);
        if (UNLIKELY(word == 0)) {
            sv_site_register(site);
            word = word_of(site);
        }
        if (word != 0 && sv_emit_try(t, word, site, values, NULL)) {
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

/* ---- slices on named tracks ----
 *
 * A thread knows which of them it has begun, so that an end says which slice it means. Loss then
 * takes slices away and never moves ends: the end of a slice whose begin was lost is not
 * recorded. */

static uint32_t emit_on(struct stave_site *site, const uint64_t *values, struct sv_on *on)
{
    uint64_t word = word_of(site);
    uint32_t done = 0;
    if (LIKELY(word != 0))
        done = record(sv_self, word, site, values, on);
    return LIKELY(done != 0) ? done : sv_slow_on(site, values, on);
}

/* A signal handler in between finds its own entries above this one, whatever is in it. */
static void remember(struct sv_thread *t, uint64_t track, uint32_t session, uint64_t slice)
{
    if (t->ring == NULL)
        return;
    if (t->n_open_on == SV_OPEN_ON_MAX)
        memmove(t->open_on, t->open_on + 1, (--t->n_open_on) * sizeof *t->open_on);
    uint32_t at = t->n_open_on;
    t->n_open_on = at + 1;
    order_for_signals();
    t->open_on[at] = (struct sv_open_on){(uint32_t)track, session, slice};
}

static struct sv_open_on take_out(struct sv_thread *t, uint32_t at)
{
    struct sv_open_on found = t->open_on[at];
    t->n_open_on--;
    if (UNLIKELY(at < t->n_open_on))
        memmove(t->open_on + at, t->open_on + at + 1, (t->n_open_on - at) * sizeof found);
    return found;
}

uint64_t stave_i_begin_on(struct stave_site *site, const uint64_t *values)
{
    struct sv_on on = {.kept = values[0] == STAVE_THREAD ? SV_RECORD_HEAD : 0};
    uint32_t done = emit_on(site, values, &on);
    if (values[0] == STAVE_THREAD)
        stave_i_note_begin(done);
    else
        remember(sv_self, values[0], session(), done ? on.slice : 0);
    return done ? on.slice : 0;
}

void stave_i_end_on(struct stave_site *site, const uint64_t *values)
{
    struct sv_thread *t = sv_self;
    struct sv_on on = {.is_end = true};
    if (values[0] == STAVE_THREAD) {
        stave_i_end(site, values);
        return;
    }
    uint32_t at = t->n_open_on;
    while (at > 0 && t->open_on[at - 1].track != values[0])
        at--;
    if (LIKELY(at > 0)) {
        struct sv_open_on found = take_out(t, at - 1);
        if (UNLIKELY(found.slice == 0 || found.session != session()))
            return;
        on.slice = found.slice;
    }
    emit_on(site, values, &on);
}

uint64_t stave_i_open_on(struct stave_site *site, const uint64_t *values)
{
    struct sv_on on = {0};
    uint32_t done = emit_on(site, values, &on);
    if (done)
        remember(sv_self, values[0], done, on.slice);
    return done ? on.slice : 0;
}

static void forget(struct sv_thread *t, uint64_t slice)
{
    for (uint32_t at = t->n_open_on; at > 0; at--) {
        if (t->open_on[at - 1].slice == slice) {
            take_out(t, at - 1);
            return;
        }
    }
}

/* Of this process: a forked child has nothing of its parent's to end. */
static bool is_ours(uint64_t slice)
{
    const struct sv_process *p = sv_process;
    return slice != 0 && p && slice >> SV_SLICE_RECORD_BITS == p->generation;
}

void stave_i_close_on(struct stave_site *site, uint64_t slice, const uint64_t *values)
{
    struct sv_on on = {.slice = slice, .is_end = true};
    if (UNLIKELY(!is_ours(slice) || epoch() == 0))
        return;
    forget(sv_self, slice);
    emit_on(site, values, &on);
}

/* The end of a block's slice has reserved space, as that of the thread's own slices has. */
enum { END_ON_BYTES = SV_RECORD_HEAD + 16 };

uint64_t stave_i_scope_on(struct stave_site *site, const uint64_t *values)
{
    bool is_thread = values[0] == STAVE_THREAD;
    struct sv_on on = {.kept = is_thread ? SV_RECORD_HEAD : END_ON_BYTES};
    uint32_t done = emit_on(site, values, &on);
    if (is_thread || done == 0)
        return done;
    remember(sv_self, values[0], done, on.slice);
    return on.slice;
}

void stave_i_scope_on_end(struct stave_site *site, stave_track_t track, uint64_t slice)
{
    struct sv_thread *t = sv_self;
    struct sv_on on = {.slice = slice, .kept = END_ON_BYTES, .is_end = true};
    const uint64_t values[] = {track, 0};
    if (track == STAVE_THREAD) {
        stave_i_scope_end((uint32_t)slice);
        return;
    }
    if (UNLIKELY(!is_ours(slice) || t->limit + END_ON_BYTES > t->full_limit))
        return;
    forget(t, slice);
    if (UNLIKELY(epoch() == 0 || emit_on(site, values, &on) == 0))
        t->limit += END_ON_BYTES; /* the reserved space */
}
