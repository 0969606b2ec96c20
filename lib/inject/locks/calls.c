/* The calls: mutexes, locks for readers and writers, conditions, semaphores, joins.
 *
 * Each first tries, which is all that happens to a free lock. */
#include "locks.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define INSIDE(...) __VA_ARGS__

/* The last part of a condition, on which its waiters sleep. */
#define CONDITION_FUTEX 40

struct waiting {
    struct lock_entry *entry;
    int64_t start_ns;
};

static struct waiting begin(const void *lock)
{
    int64_t now = stave_now_ns();
    return (struct waiting){lock_wait_begin((uintptr_t)lock, now), now};
}

static void record(const struct pre_wait *w)
{
    const struct pre_call none = {0};
    int error = errno;
    pre_self.is_quiet = PRE_AT_WORK;
    pre_waited(w);
    pre_record("futex", w->start_ns, w->end_ns, &none);
    pre_self.is_quiet = 0;
    errno = error;
}

/* `futex`: as the kernel knows the lock. */
static void end(struct waiting x, const char *function, const void *caller, uintptr_t futex,
                bool is_timeout)
{
    struct pre_wait w = {.reason = pre_is_gil(futex) ? "gil" : "lock",
                         .function = function,
                         .caller = caller,
                         .lock = futex,
                         .start_ns = x.start_ns,
                         .end_ns = stave_now_ns(),
                         .is_timeout = is_timeout};
    struct lock_release by;
    if (w.end_ns - w.start_ns >= WAIT_LEAST_NS) {
        if (!is_timeout && lock_last_release(x.entry, x.start_ns, &by)) {
            w.by_tid = by.tid;
            w.by_name = by.name;
            w.by_stack = &by.stack;
        }
        record(&w);
    }
    lock_wait_end(x.entry);
}

/* ---- mutexes, locks for readers and writers: they return their error ---- */

#define LOCK(symbol, try, lock_type, params, args)                         \
    WRAP(int, symbol, IO_PARAMS(lock_type, params))                        \
    {                                                                      \
        int done = try(lock);                                              \
        if (done != EBUSY || !PRE_ON())                                    \
            return done == EBUSY ? NEXT(symbol) args : done;               \
        struct waiting x = begin(lock);                                    \
        done = NEXT(symbol) args;                                          \
        end(x, #symbol, PRE_CALLER(), (uintptr_t)lock, done == ETIMEDOUT); \
        return done;                                                       \
    }
#define IO_PARAMS(lock_type, params) lock_type *lock INSIDE params
#define LIMIT                        , const struct timespec *limit
#define CLOCK_LIMIT                  , clockid_t clock, const struct timespec *limit

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, (), (lock))
LOCK(pthread_mutex_timedlock, pthread_mutex_trylock, pthread_mutex_t, (LIMIT), (lock, limit))
LOCK(pthread_mutex_clocklock, pthread_mutex_trylock, pthread_mutex_t, (CLOCK_LIMIT),
     (lock, clock, limit))
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, (), (lock))
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, (), (lock))
LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, (LIMIT), (lock, limit))
LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, (LIMIT), (lock, limit))

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *lock)
{
    lock_released((uintptr_t)lock, PRE_CALLER());
    return NEXT(pthread_mutex_unlock)(lock);
}

WRAP(int, pthread_rwlock_unlock, pthread_rwlock_t *lock)
{
    lock_released((uintptr_t)lock, PRE_CALLER());
    return NEXT(pthread_rwlock_unlock)(lock);
}

/* ---- conditions ---- */

/* Waiting for one releases its mutex. */
#define CONDITION(symbol, params, args)                                                      \
    WRAP(int, symbol, pthread_cond_t *cond, pthread_mutex_t *mutex INSIDE params)            \
    {                                                                                        \
        if (!PRE_ON())                                                                       \
            return NEXT(symbol) args;                                                        \
        lock_released((uintptr_t)mutex, PRE_CALLER());                                       \
        struct waiting x = begin(cond);                                                      \
        int done = NEXT(symbol) args;                                                        \
        end(x, #symbol, PRE_CALLER(), (uintptr_t)cond + CONDITION_FUTEX, done == ETIMEDOUT); \
        return done;                                                                         \
    }
CONDITION(pthread_cond_wait, (), (cond, mutex))
CONDITION(pthread_cond_timedwait, (LIMIT), (cond, mutex, limit))
CONDITION(pthread_cond_clockwait, (CLOCK_LIMIT), (cond, mutex, clock, limit))

WRAP(int, pthread_cond_signal, pthread_cond_t *cond)
{
    lock_released((uintptr_t)cond, PRE_CALLER());
    return NEXT(pthread_cond_signal)(cond);
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *cond)
{
    lock_released((uintptr_t)cond, PRE_CALLER());
    return NEXT(pthread_cond_broadcast)(cond);
}

/* ---- semaphores: they set errno ---- */

#define SEMAPHORE(symbol, params, args)                                                \
    WRAP(int, symbol, sem_t *sem INSIDE params)                                        \
    {                                                                                  \
        int error = errno;                                                             \
        if (sem_trywait(sem) == 0) {                                                   \
            errno = error;                                                             \
            return 0;                                                                  \
        }                                                                              \
        errno = error;                                                                 \
        if (!PRE_ON())                                                                 \
            return NEXT(symbol) args;                                                  \
        struct waiting x = begin(sem);                                                 \
        int done = NEXT(symbol) args;                                                  \
        end(x, #symbol, PRE_CALLER(), (uintptr_t)sem, done < 0 && errno == ETIMEDOUT); \
        return done;                                                                   \
    }
SEMAPHORE(sem_wait, (), (sem))
SEMAPHORE(sem_timedwait, (LIMIT), (sem, limit))
SEMAPHORE(sem_clockwait, (CLOCK_LIMIT), (sem, clock, limit))

WRAP(int, sem_post, sem_t *sem)
{
    lock_released((uintptr_t)sem, PRE_CALLER());
    return NEXT(sem_post)(sem);
}

/* ---- the end of a thread ---- */

/* The clock of a thread's CPU time has its number: the kernel's encoding, which is its interface.
 * 0: it has ended. */
static uint32_t tid_of(pthread_t thread)
{
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) == 0 ? (uint32_t) ~(clock >> 3) : 0;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
    if (!PRE_ON())
        return NEXT(pthread_join)(thread, result);
    uint32_t tid = tid_of(thread);
    int64_t start_ns = stave_now_ns();
    int done = NEXT(pthread_join)(thread, result);
    struct pre_wait w = {.reason = "lock",
                         .function = "pthread_join",
                         .caller = PRE_CALLER(),
                         .start_ns = start_ns,
                         .end_ns = stave_now_ns(),
                         .by_tid = tid};
    if (w.end_ns - w.start_ns >= WAIT_LEAST_NS)
        record(&w);
    return done;
}
