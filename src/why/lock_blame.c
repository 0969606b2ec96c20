/* Who held a lock while a thread waited for it. Asked by lock_waits.c.
 *
 * The releases of a lock follow from the waits: a thread that releases a lock for which others wait
 * wakes one of them. */
#include "why/lock_waits.h"

#include "core/base/sat.h"

#include <stdlib.h>

struct release {
    sv_track process;
    uint64_t lock;
    int64_t ns;
    struct sv_lock_release by;
    int64_t taker_tid; /* the thread that was to have the lock next */
    sv_track taker;    /* 0: not known */
    const struct sv_lock_wait *wait;
};

/* Threads of a trace that wait all the time for a lock which goes from hand to hand as often: so
 * many parts are looked at in all, then waits are the last holder's. */
#define PARTS_MAX ((uint64_t)1 << 26)

struct releases {
    struct release *list; /* by process, lock and time */
    size_t n;
    uint64_t parts; /* that have been looked at */
    const struct sv_dict *dict;
    const struct sv_map *gils;
};

static int by_lock(const struct release *x, sv_track process, uint64_t lock)
{
    if (x->process != process)
        return x->process < process ? -1 : 1;
    return (x->lock > lock) - (x->lock < lock);
}

static int by_time(const void *a, const void *b)
{
    const struct release *x = a, *y = b;
    int order = by_lock(x, y->process, y->lock);
    if (!order && x->ns != y->ns)
        order = x->ns < y->ns ? -1 : 1;
    return order ? order : (x->wait > y->wait) - (x->wait < y->wait);
}

/* CPython's lock has a condition, its mutex, and behind them the condition for which a thread waits
 * that had to give the lock up, until another has taken it. */
static bool is_taken_over(const struct sv_lock_wait *x, uint64_t gil)
{
    enum { CONDITION_AND_MUTEX = 16 };
    return x->lock >= gil + CONDITION_AND_MUTEX;
}

static struct sv_lock_release thread_as_releaser(const struct sv_dict *d, sv_track thread,
                                                 sv_track process)
{
    struct sv_text name = sv_dict_text(d, d->tracks[thread].name);
    return (struct sv_lock_release){.tid = d->tracks[thread].tid,
                                    .name = name.len ? name
                                                     : sv_dict_text(d, d->tracks[process].name)};
}

/* What a wait says of a release: that which ended it; that before it, of a thread which waits until
 * the lock is taken over; and, if a time limit ended it, that the lock was free when the thread
 * asked again. Who had released it is not known then. */
static void find_release(struct releases *r, const struct sv_lock_wait *x)
{
    const uint64_t *gil = x->is_gil ? sv_map_find(r->gils, x->process) : NULL;
    struct release found = {.process = x->process, .lock = x->lock, .wait = x};
    if (gil && *gil != x->lock) {
        if (!x->by.tid || !is_taken_over(x, *gil))
            return;
        found.lock = *gil;
        found.ns = x->begin_ns;
        found.by = thread_as_releaser(r->dict, x->thread, x->process);
        found.by.function = x->function;
        found.by.frame = x->frame;
        found.taker_tid = x->by.tid;
    } else if (x->by.tid || gil) {
        found.ns = x->by.tid ? x->woken_ns : x->end_ns;
        found.by = x->by;
        found.taker_tid = r->dict->tracks[x->thread].tid;
        found.taker = x->thread;
    } else {
        return;
    }
    r->list[r->n++] = found;
}

/* One release of those that are the same, in the order of time: one that woke a thread, and the
 * wait of the releaser until that thread had the lock; that wait, and that the thread found the
 * lock free. A release by a thread that is not known was by the one to which the lock went last. */
static void join_releases(struct releases *r)
{
    enum { SOON_NS = 1000000 };
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct release x = r->list[i], *before = kept ? &r->list[kept - 1] : NULL;
        if (before && by_lock(before, x.process, x.lock) != 0)
            before = NULL;
        if (!x.by.tid) {
            if (before && before->taker_tid == x.taker_tid)
                before->taker = x.taker;
            if (!before || !before->taker || before->taker_tid == x.taker_tid)
                continue;
            x.by = thread_as_releaser(r->dict, before->taker, x.process);
        } else if (before && !x.taker && before->by.tid == x.by.tid &&
                   x.ns - before->ns < SOON_NS) {
            continue;
        }
        r->list[kept++] = x;
    }
    r->n = kept;
}

/* The first release of x's lock after `ns`, or where it would be. */
static size_t first_after(const struct releases *r, const struct sv_lock_wait *x, int64_t ns)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = by_lock(&r->list[middle], x->process, x->lock);
        if (order < 0 || (order == 0 && r->list[middle].ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The releases of x's lock after it began to wait and before `until`. */
static void find_within(struct releases *r, const struct sv_lock_wait *x, int64_t until,
                        size_t *first, size_t *end)
{
    *first = first_after(r, x, x->begin_ns);
    *end = first_after(r, x, until);
    r->parts += *end > *first ? *end - *first : 0;
    if (*end < *first || r->parts > PARTS_MAX)
        *first = *end;
}

/* The interpreter lock: every release ended a turn. If a time limit ended the wait, the lock may
 * have been released while the thread waited for a CPU to ask again. */
static void blame_turns(struct sv_lock_waits *w, struct releases *r, const struct sv_lock_wait *x)
{
    int64_t from = x->begin_ns;
    size_t i, end;
    const struct release *last = NULL;
    find_within(r, x, x->by.tid ? sv_sat_sub(x->woken_ns, 1) : x->end_ns, &i, &end);
    for (; i < end; i++) {
        if (r->list[i].by.tid == r->dict->tracks[x->thread].tid)
            continue;
        if (last)
            sv_lock_waits_add(w, x, &last->by, from, last->ns, 0);
        from = last ? last->ns : from;
        last = &r->list[i];
    }
    if (last && last->ns >= x->woken_ns) {
        sv_lock_waits_add(w, x, &last->by, from, last->ns, sv_sat_sub(x->end_ns, last->ns));
        return;
    }
    if (last)
        sv_lock_waits_add(w, x, &last->by, from, last->ns, 0);
    sv_lock_waits_add(w, x, &x->by, last ? last->ns : from, x->woken_ns,
                      sv_sat_sub(x->end_ns, x->woken_ns));
}

/* Other futexes may be conditions, whose wakers held nothing: here only the releases count that
 * handed the lock to the one who gave it on. */
static void blame_chain(struct sv_lock_waits *w, struct releases *r, const struct sv_lock_wait *x)
{
    struct sv_lock_release by = x->by;
    int64_t to = x->woken_ns, queued = sv_sat_sub(x->end_ns, x->woken_ns);
    size_t first, i;
    find_within(r, x, sv_sat_sub(x->woken_ns, 1), &first, &i);
    while (by.tid && i-- > first) {
        const struct release *y = &r->list[i];
        if (y->taker == x->thread || y->taker_tid != by.tid)
            continue;
        sv_lock_waits_add(w, x, &by, y->ns, to, queued);
        by = y->by;
        to = y->ns;
        queued = 0;
    }
    sv_lock_waits_add(w, x, &by, x->begin_ns, to, queued);
}

void sv_lock_blame(struct sv_lock_waits *w, const struct sv_dict *d,
                   const struct sv_lock_wait *waits, size_t n, const struct sv_map *gils)
{
    struct releases r = {.dict = d, .gils = gils, .list = sv_alloc((n + 1) * sizeof *r.list)};
    for (size_t i = 0; i < n; i++)
        find_release(&r, &waits[i]);
    if (r.n > 1)
        qsort(r.list, r.n, sizeof *r.list, by_time);
    join_releases(&r);
    for (size_t i = 0; i < n; i++) {
        const struct sv_lock_wait *x = &waits[i];
        const uint64_t *gil = x->is_gil ? sv_map_find(gils, x->process) : NULL;
        if (gil && *gil == x->lock)
            blame_turns(w, &r, x);
        else
            blame_chain(w, &r, x);
    }
    free(r.list);
}
