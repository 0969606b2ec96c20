/* Sums of waits for locks. Asked by `stave report wait`. */
#include "why/lock_waits.h"

#include "core/base/sat.h"
#include "core/stream/frame_text.h"
#include "why/words.h"

#include <stdlib.h>
#include <string.h>

struct words {
    sv_str cat, gil, lock, cpu, dur, queued, address, name, waker, waker_tid, waker_stack;
};

static struct words find_words(const struct sv_dict *d)
{
#define WORD(text) sv_dict_find_str(d, text, sizeof(text) - 1)
    return (struct words){.cat = WORD(SV_CAT_OFFCPU_SAMPLE),
                          .gil = WORD("gil"),
                          .lock = WORD("lock"),
                          .cpu = WORD("cpu"),
                          .dur = WORD(SV_WAIT_DUR),
                          .queued = WORD(SV_WAIT_QUEUED),
                          .address = WORD(SV_WAIT_LOCK),
                          .name = WORD(SV_WAIT_LOCK_NAME),
                          .waker = WORD(SV_WAIT_WAKER),
                          .waker_tid = WORD(SV_WAIT_WAKER_TID),
                          .waker_stack = WORD(SV_WAIT_WAKER_STACK)};
#undef WORD
}

static bool begins(struct sv_text t, const char *word)
{
    size_t len = strlen(word);
    return t.len >= len && memcmp(t.bytes, word, len) == 0;
}

/* What every wait for a lock goes through. */
static bool is_of_libraries(struct sv_text f)
{
    return begins(f, "_") || begins(f, "[") || begins(f, "pthread_") || begins(f, "futex") ||
           begins(f, "lll_") || begins(f, "syscall") || begins(f, "PyThread_");
}

/* The innermost function of Python, else the innermost that is none of the libraries' own. */
static struct sv_text function_of(const struct sv_arg *stack)
{
    struct sv_text native = {"", 0};
    for (uint32_t i = stack->size; i > 0; i--) {
        if (stack[i].type != SV_ARG_TEXT)
            continue;
        struct sv_frame_parts p = sv_frame_parts(stack[i].text, stack[i].size);
        struct sv_text f = {stack[i].text, (uint32_t)p.function_len};
        const char *end = stack[i].text + p.file_at + p.file_len;
        if (p.file_len > 3 && memcmp(end - 3, ".py", 3) == 0)
            return f;
        if (!native.len && !is_of_libraries(f))
            native = f;
    }
    return native;
}

/* The same bytes have the same place: many waits have few texts. */
static struct sv_text keep(struct sv_lock_waits *w, struct sv_text t)
{
    bool is_new;
    if (!t.len)
        return (struct sv_text){"", 0};
    uint64_t *at = sv_map_add(&w->by_text, sv_hash_bytes(t.bytes, t.len, 1), &is_new);
    if (is_new)
        *at = (uint64_t)(uintptr_t)sv_arena_copy(&w->texts, t.bytes, t.len);
    return (struct sv_text){(const char *)(uintptr_t)*at, t.len};
}

/* The two futexes of a condition variable of glibc are in one word of eight bytes; waiters move
 * from one to the other. */
static uint64_t pair_of(uint64_t address)
{
    return address & ~(uint64_t)7;
}

static void read_arg(struct sv_lock_waits *w, const struct words *k, const struct sv_arg *a,
                     struct sv_lock_wait *x)
{
    if (a->type == SV_ARG_STACK)
        x->function = keep(w, function_of(a));
    else if (a->type == SV_ARG_ARRAY && a->key == k->waker_stack)
        x->by.function = keep(w, function_of(a));
    else if (a->type == SV_ARG_INT && a->key == k->address)
        x->lock = x->is_gil ? pair_of((uint64_t)a->i) : (uint64_t)a->i;
    else if (a->type == SV_ARG_INT && a->key == k->waker_tid)
        x->by.tid = a->i;
    else if (a->type == SV_ARG_TEXT && a->key == k->name)
        x->lock_name = keep(w, (struct sv_text){a->text, a->size});
    else if (a->type == SV_ARG_TEXT && a->key == k->waker)
        x->by.name = keep(w, (struct sv_text){a->text, a->size});
}

/* A time in which a thread did not run; if it is no wait for a lock, only how long. */
static void read_row(struct sv_lock_waits *w, const struct sv_trace *t, const struct words *k,
                     uint64_t row, struct sv_batch *scratch, struct sv_lock_wait *x)
{
    const struct sv_slices *s = &t->slices;
    bool is_gil = s->name[row] == k->gil, is_lock = is_gil || s->name[row] == k->lock;
    int64_t dur = 0, queued = 0;
    size_t n;
    sv_track thread = sv_dict_thread_of(t->dict, s->track[row]);
    *x = (struct sv_lock_wait){.thread = thread ? thread : s->track[row],
                               .process = sv_dict_process_of(t->dict, s->track[row]),
                               .is_gil = is_gil,
                               .begin_ns = s->ts_ns[row]};
    sv_batch_reset(scratch);
    const struct sv_arg *a = sv_trace_args(t, s->args[row], scratch, &n), *end = a + n;
    for (; a < end; a = sv_arg_next(a)) {
        if (a->type == SV_ARG_INT && a->key == k->dur)
            dur = a->i > 0 ? a->i : 0;
        else if (a->type == SV_ARG_INT && a->key == k->queued)
            queued = a->i > 0 ? a->i : 0;
        else if (is_lock)
            read_arg(w, k, a, x);
    }
    x->end_ns = sv_sat_add(x->begin_ns, dur);
    x->woken_ns = x->end_ns - (queued < dur ? queued : dur);
    if (!x->by.tid)
        x->by = (struct sv_lock_release){0};
}

void sv_lock_waits_add(struct sv_lock_waits *w, const struct sv_lock_wait *x,
                       const struct sv_lock_release *by, int64_t ns, int64_t queued_ns)
{
    uint64_t lock = x->is_gil ? 0 : x->lock;
    uint64_t parts[5] = {x->thread, lock, (uint64_t)by->tid, (uint64_t)(uintptr_t)x->function.bytes,
                         (uint64_t)(uintptr_t)by->function.bytes};
    bool is_new;
    uint64_t *at = sv_map_add(&w->by_key, sv_hash_bytes(parts, sizeof parts, x->is_gil), &is_new);
    if (is_new) {
        w->sums = sv_grow(w->sums, &w->cap, w->n + 1, sizeof *w->sums);
        w->sums[w->n] = (struct sv_lock_sum){.thread = x->thread,
                                             .function = x->function,
                                             .lock_name = x->lock_name,
                                             .releaser = by->name,
                                             .released_in = by->function,
                                             .lock = lock,
                                             .releaser_tid = by->tid,
                                             .is_gil = x->is_gil};
        *at = w->n++;
    }
    struct sv_lock_sum *sum = &w->sums[*at];
    sum->n++;
    sum->total_ns = sv_sat_add(sum->total_ns, ns);
    sum->queued_ns = sv_sat_add(sum->queued_ns, queued_ns);
    sum->longest_ns = ns > sum->longest_ns ? ns : sum->longest_ns;
}

/* ---- waits that are asked for again ---- */

/* A thread that ran for less than this since a time limit ended its wait has not had the lock
 * meanwhile. One that was woken by a release may have had it for a moment, so there it is only what
 * trying takes. */
#define AGAIN_NS 2000000
#define TRIES_NS 200000

/* Of each process the futex of the interpreter lock itself: that which threads wait for with a time
 * limit. The others guard it, or wait until another thread has taken it over. Where no limit was
 * reached it is the first one, as in CPython's structure. */
static void find_gils(struct sv_map *gils, const struct sv_lock_wait *waits, size_t n)
{
    for (int limited = 1; limited >= 0; limited--) {
        struct sv_map found = {0};
        for (size_t i = 0; i < n; i++) {
            const struct sv_lock_wait *x = &waits[i];
            bool is_new;
            if (!x->is_gil || (limited && x->by.tid))
                continue;
            if (!limited && sv_map_find(gils, x->process))
                continue;
            uint64_t *at = sv_map_add(&found, x->process, &is_new);
            *at = is_new || x->lock < *at ? x->lock : *at;
        }
        for (size_t i = 0; i < found.cap; i++) {
            bool is_new;
            if (found.used[i])
                *sv_map_add(gils, found.slots[i].key, &is_new) = found.slots[i].value;
        }
        sv_map_fini(&found);
    }
}

/* Whether the thread asks for the lock again in x, without having had it since `last`. */
static bool is_again(const struct sv_lock_wait *last, const struct sv_lock_wait *x)
{
    int64_t ran = sv_sat_sub(sv_sat_sub(x->begin_ns, last->end_ns), x->away_ns);
    return last->lock == x->lock && ran < (last->by.tid ? TRIES_NS : AGAIN_NS);
}

/* Waits of one thread for one lock do not overlap, and nothing is lost between them while it still
 * wants the lock: a wait that a time limit ended is part of the next one; after a release that
 * another thread was quicker to use, the next wait begins with that release. */
static size_t join_again(struct sv_lock_wait *waits, size_t n, const struct sv_map *gils)
{
    size_t kept = 0;
    int64_t until = 0; /* the waits of this thread so far */
    for (size_t i = 0; i < n; i++) {
        struct sv_lock_wait x = waits[i], *last = kept ? &waits[kept - 1] : NULL;
        const uint64_t *gil = x.is_gil ? sv_map_find(gils, x.process) : NULL;
        bool is_limited = gil && *gil == x.lock;
        bool is_first = !last || last->thread != x.thread;
        if (!is_first && x.begin_ns < until)
            x.begin_ns = until;
        until = is_first || x.end_ns > until ? x.end_ns : until;
        if (!is_first && is_again(last, &x)) {
            if (is_limited && !last->by.tid) {
                x.begin_ns = last->begin_ns;
                kept--;
            } else if (last->by.tid) {
                x.begin_ns = last->end_ns = last->woken_ns;
            }
        }
        if (x.begin_ns > x.woken_ns)
            x.begin_ns = x.woken_ns;
        waits[kept++] = x;
    }
    return kept;
}

static int by_total(const void *a, const void *b)
{
    const struct sv_lock_sum *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static size_t read_waits(struct sv_lock_waits *w, const struct sv_trace *t, const struct words *k,
                         struct sv_lock_wait **waits)
{
    const struct sv_slices *s = &t->slices;
    struct sv_batch scratch;
    size_t n = 0, cap = 0;
    int64_t away = 0;
    sv_batch_init(&scratch);
    for (uint64_t row = 0; row < s->n; row++) {
        struct sv_lock_wait x;
        if (s->cat[row] != k->cat || s->kind[row] != SV_INSTANT || !s->args[row])
            continue;
        read_row(w, t, k, row, &scratch, &x);
        if (n && (*waits)[n - 1].thread != x.thread)
            away = 0;
        if (s->name[row] != k->lock && s->name[row] != k->gil) {
            if (s->name[row] == k->cpu)
                away = sv_sat_add(away, x.end_ns - x.begin_ns);
            continue;
        }
        x.away_ns = away;
        away = 0;
        *waits = sv_grow(*waits, &cap, n + 1, sizeof **waits);
        (*waits)[n++] = x;
    }
    sv_batch_fini(&scratch);
    return n;
}

void sv_lock_waits_make(struct sv_lock_waits *w, const struct sv_trace *t)
{
    struct words k = find_words(t->dict);
    struct sv_lock_wait *waits = NULL;
    struct sv_map gils = {0};
    *w = (struct sv_lock_waits){0};
    sv_arena_init(&w->texts, 1 << 14);
    if (!k.cat)
        return;
    size_t n = read_waits(w, t, &k, &waits);
    find_gils(&gils, waits, n);
    n = join_again(waits, n, &gils);
    sv_lock_blame(w, t->dict, waits, n, &gils);
    sv_map_fini(&gils);
    free(waits);
    if (w->n > 1)
        qsort(w->sums, w->n, sizeof *w->sums, by_total);
}

void sv_lock_waits_fini(struct sv_lock_waits *w)
{
    free(w->sums);
    sv_map_fini(&w->by_key);
    sv_map_fini(&w->by_text);
    sv_arena_fini(&w->texts);
    *w = (struct sv_lock_waits){0};
}
