/* Who waits for whom: waits for locks with their stacks ('stave record --offcpu'), summed up by the
 * thread that waits, its function, the lock, and the thread that held it meanwhile.
 *
 * A wait counts from its begin to the release that ended it; until the thread ran again it waited
 * for a CPU. If the lock went through several hands meanwhile, the wait is divided at the releases
 * that other waits of the same lock show. Python asks for its interpreter lock again and again with
 * a time limit: that is one wait. */
#ifndef SV_WHY_LOCK_WAITS_H
#define SV_WHY_LOCK_WAITS_H

#include "core/base/map.h"
#include "core/base/mem.h"
#include "store/trace.h"

struct sv_lock_sum {
    sv_track thread; /* that waits */
    struct sv_text function, lock_name, releaser, released_in;
    uint64_t lock;        /* the address; 0: the interpreter lock, which is several futexes */
    int64_t releaser_tid; /* 0: not known, or a time limit ended it */
    bool is_gil;
    uint64_t n;                   /* times that the releaser had the lock while the thread waited */
    int64_t total_ns, longest_ns; /* until its release */
    int64_t queued_ns;            /* then, until the thread ran */
};

struct sv_lock_waits {
    struct sv_lock_sum *sums; /* the largest total first */
    size_t n, cap;
    struct sv_map by_key, by_text;
    struct sv_arena texts;
};

void sv_lock_waits_make(struct sv_lock_waits *w, const struct sv_trace *t);
void sv_lock_waits_fini(struct sv_lock_waits *w);

/* ---- the parts, for each other ---- */

/* Who ended a wait. */
struct sv_lock_release {
    int64_t tid; /* 0: not known */
    struct sv_text name, function;
};

struct sv_lock_wait {
    sv_track thread, process;
    bool is_gil;
    uint64_t lock;                      /* the futex; of Python the pair of them */
    int64_t begin_ns, woken_ns, end_ns; /* woken: released */
    int64_t away_ns; /* since the wait before: how long the thread was preempted */
    struct sv_text function, lock_name;
    struct sv_lock_release by;
};

/* Divides the waits among those who held their locks. `gils` has the futex of the interpreter lock
 * of each process. */
void sv_lock_blame(struct sv_lock_waits *w, const struct sv_dict *d,
                   const struct sv_lock_wait *waits, size_t n, const struct sv_map *gils);
void sv_lock_waits_add(struct sv_lock_waits *w, const struct sv_lock_wait *x,
                       const struct sv_lock_release *by, int64_t ns, int64_t queued_ns);

#endif
