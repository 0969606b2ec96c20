/* Threads that hold one lock in turn, and write down when each asked for it, got it, began to give
 * it up, and had given it up (ns, of the clock that traces have). Who waited for whom follows from
 * these stamps alone, however late they were. */
#ifndef TURNS_H
#define TURNS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 7, TURN_THREADS = 3 };

struct turn {
    int64_t asked, got, gives, gave;
};

/* Each thread holds the lock for its own time. */
struct turn_thread {
    int tid, hold_ms;
    struct turn turns[TURNS];
};

struct turn_lock {
    void (*take)(void *);
    void (*give)(void *);
    void *lock;
};

static struct turn_thread turn_threads[TURN_THREADS] = {
    {.hold_ms = 20}, {.hold_ms = 32}, {.hold_ms = 44}};

static inline int64_t turn_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void turn_rest(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

/* Sleeps while it holds the lock: a busy machine delays the release, which the stamps show, but
 * seldom takes the CPU away between a stamp and what it is of. */
static inline void take_turns(const struct turn_lock *l, struct turn_thread *t)
{
    t->tid = gettid();
    for (int i = 0; i < TURNS; i++) {
        turn_rest(1);
        t->turns[i].asked = turn_now();
        l->take(l->lock);
        t->turns[i].got = turn_now();
        turn_rest(t->hold_ms);
        t->turns[i].gives = turn_now();
        l->give(l->lock);
        t->turns[i].gave = turn_now();
    }
}

/* A line for each turn: the number of the thread, and the stamps. */
static inline void print_turns(void)
{
    for (int i = 0; i < TURN_THREADS; i++)
        for (int j = 0; j < TURNS; j++) {
            const struct turn *t = &turn_threads[i].turns[j];
            printf("%d %lld %lld %lld %lld\n", turn_threads[i].tid, (long long)t->asked,
                   (long long)t->got, (long long)t->gives, (long long)t->gave);
        }
    fflush(stdout);
}

#endif
