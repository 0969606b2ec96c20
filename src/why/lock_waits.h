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
#include "why/words.h"

/* What a wait for a futex is, by the functions that it is in. */
enum sv_lock_use {
    SV_LOCK_MUTEX,     /* or not known */
    SV_LOCK_CONDITION, /* for something that another thread makes: a queue, an event, a result */
    SV_LOCK_JOIN,      /* for the end of a thread */
    SV_LOCK_KERNEL     /* of a file, or a semaphore of System V: others hold it, no futex */
};

/* Who ended a wait. */
struct sv_lock_release {
    int64_t tid; /* 0: not known */
    struct sv_text name, function;
    struct sv_text frame; /* the function with file and line, as far as the stack has them */
};

/* A time in which a thread did not run, for a lock or anything else. */
struct sv_lock_wait {
    sv_track thread, process;
    uint32_t row;
    enum sv_wait_reason reason; /* NO_REASON: a word that is not known */
    bool is_gil, is_semaphore;
    bool is_for_room; /* in a queue: until another one takes something out */
    enum sv_lock_use use;
    uint64_t lock;                      /* the futex; of Python the pair of them */
    int64_t begin_ns, woken_ns, end_ns; /* woken: released */
    int64_t away_ns; /* since the wait before: how long the thread was preempted */
    struct sv_text function, lock_name;
    struct sv_text frame; /* the program's own function, with file and line */
    struct sv_lock_release by;
};

/* A part of a wait for a lock: who held it. */
struct sv_lock_part {
    sv_track thread;
    uint32_t wait; /* number of its wait in `waits` */
    int64_t from_ns, to_ns;
    struct sv_lock_release by;
};

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
    struct sv_lock_wait *waits; /* all waits, as they are recorded, by thread and time */
    size_t n_waits;
    struct sv_lock_part *parts; /* by thread and time */
    size_t n_parts, parts_cap;
    struct sv_map by_key, by_text;
    struct sv_arena texts;
};

void sv_lock_waits_make(struct sv_lock_waits *w, const struct sv_trace *t);
void sv_lock_waits_fini(struct sv_lock_waits *w);
/* States and waits have stamps of their own: the same moment is a little later in the second. */
#define SV_WAIT_NEAR_NS 50000
/* The wait of a thread that begins at begin_ns, or nearly then; NULL: none is recorded. */
const struct sv_lock_wait *sv_lock_wait_at(const struct sv_lock_waits *w, sv_track thread,
                                           int64_t begin_ns);
/* The first part of the thread that ends after from_ns; n_parts: none. */
size_t sv_lock_part_from(const struct sv_lock_waits *w, sv_track thread, int64_t from_ns);

/* ---- the parts, for each other ---- */

/* Divides the waits among those who held their locks. `gils` has the futex of the interpreter lock
 * of each process. */
void sv_lock_blame(struct sv_lock_waits *w, const struct sv_dict *d,
                   const struct sv_lock_wait *waits, size_t n, const struct sv_map *gils);
void sv_lock_waits_add(struct sv_lock_waits *w, const struct sv_lock_wait *x,
                       const struct sv_lock_release *by, int64_t from_ns, int64_t to_ns,
                       int64_t queued_ns);

/* The innermost frame of the program's own code in a stack (SV_ARG_STACK); empty: none. */
struct sv_text sv_stack_frame(const struct sv_arg *stack);

#endif
