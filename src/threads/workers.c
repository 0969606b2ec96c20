/* The workers: threads that look for work in a list of jobs, under one lock.
 *
 * Chunks of work last for milliseconds, so one lock and one condition for everything cost nothing
 * that could be measured, and what is shared is easy to see: all members of pool, jobs and lines
 * are read and written with the lock held, and fill() and work() run without it. */
#include "threads/workers.h"

#include "core/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITEMS_PER_THREAD 2u /* one is worked on, one waits for its turn */

/* Work of some kind. `try` is called with the lock, does a piece of work without it, and returns
 * with it; false: there is nothing to do now. */
struct job {
    bool (*try)(struct sv_workers *w, struct job *j);
    struct job *next;
};

struct sv_workers {
    unsigned n_threads; /* the caller's included */
    unsigned n_started; /* the others */
    bool is_started, is_ending;
    bool is_out_of_memory; /* somewhere; the caller's thread is to deal with it */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *jobs;
    pthread_t threads[SV_WORKERS_MAX];
};

struct each {
    struct job job;
    size_t n, next, done;
    void (*run)(void *ctx, size_t i);
    void *ctx;
};

struct sv_line {
    struct job job;
    struct sv_workers *pool;
    bool owns_pool;
    struct sv_line_ops ops;
    void *ctx;
    char *items;
    bool *is_done;
    size_t n_items;
    size_t n_filled, n_taken, n_given_back; /* of all items that ever were */
    bool is_filling, is_ended;
    bool is_filled; /* what fill said; of the thread that is filling */
};

/* ---- how many ---- */

static unsigned default_threads;

void sv_workers_set_default(unsigned n_threads)
{
    default_threads = n_threads;
}

/* The first line of a small file, without its end. */
static bool read_line(const char *path, const char *begins, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f && !found && fgets(line, (int)size, f))
        found = strncmp(line, begins, strlen(begins)) == 0;
    if (f)
        fclose(f);
    line[found ? strcspn(line, "\n") : 0] = '\0';
    return found;
}

/* CPUs of the control group (version 2) that this process is in, rounded up; UINT_MAX: no limit.
 * Groups above it may have limits, too: these are not looked at. */
static unsigned quota(void)
{
    char group[512], path[600], limit[64];
    unsigned long long quota_us, period_us;
    if (!read_line("/proc/self/cgroup", "0::", group, sizeof group))
        return UINT32_MAX;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group + 3);
    if (!read_line(path, "", limit, sizeof limit) ||
        sscanf(limit, "%llu %llu", &quota_us, &period_us) != 2 || period_us == 0)
        return UINT32_MAX;
    unsigned long long cpus = (quota_us + period_us - 1) / period_us;
    return cpus == 0 ? 1 : cpus < UINT32_MAX ? (unsigned)cpus : UINT32_MAX;
}

unsigned sv_workers_cpus(void)
{
    cpu_set_t set;
    static unsigned known; /* programs that load one file after the other need not ask again */
    unsigned n_known = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (n_known)
        return n_known;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = online > 0 ? (unsigned)online : 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = (unsigned)CPU_COUNT(&set);
    unsigned most = n > 1 ? quota() : 1;
    n = n < most ? n : most;
    __atomic_store_n(&known, n, __ATOMIC_RELAXED);
    return n;
}

/* ---- workers ---- */

static bool try_any(struct sv_workers *w)
{
    for (struct job *j = w->jobs; j; j = j->next)
        if (j->try(w, j))
            return true;
    return false;
}

static void *work(void *arg)
{
    struct sv_workers *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->is_ending)
        if (!try_any(w))
            pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A thread that the system does not give is one less: the caller's is always there. */
static void start(struct sv_workers *w)
{
    sigset_t all, old;
    if (w->is_started)
        return;
    w->is_started = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (w->n_started + 1 < w->n_threads &&
           pthread_create(&w->threads[w->n_started], NULL, work, w) == 0)
        w->n_started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* With the lock. */
static void announce(struct sv_workers *w)
{
    pthread_cond_broadcast(&w->changed);
}

/* Returns with the lock. */
static void add_job(struct sv_workers *w, struct job *j)
{
    start(w);
    pthread_mutex_lock(&w->lock);
    j->next = w->jobs;
    w->jobs = j;
    announce(w);
}

static void remove_job(struct sv_workers *w, struct job *j)
{
    struct job **at = &w->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
}

struct sv_workers *sv_workers_new(unsigned n_threads)
{
    if (n_threads == 0)
        n_threads = default_threads ? default_threads : sv_workers_cpus();
    struct sv_workers *w = sv_alloc(sizeof *w);
    w->n_threads = n_threads < SV_WORKERS_MAX ? n_threads : SV_WORKERS_MAX;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    return w;
}

void sv_workers_free(struct sv_workers *w)
{
    if (!w)
        return;
    assert(!w->jobs);
    pthread_mutex_lock(&w->lock);
    w->is_ending = true;
    announce(w);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n_started; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

unsigned sv_workers_count(const struct sv_workers *w)
{
    return w ? w->n_threads : 1;
}

/* ---- an exhausted heap ---- */

/* Runs a piece of work in any thread. False: the heap is exhausted. What that means for the program
 * is known in the caller's thread only, and may be a jump: that must wait until no other thread
 * uses what it would leave. */
static bool is_run(void (*run)(void *ctx, size_t i), void *ctx, size_t i)
{
    jmp_buf jump, *outer = sv_no_memory;
    if (setjmp(jump) != 0) {
        sv_no_memory = outer;
        return false;
    }
    sv_no_memory = &jump;
    run(ctx, i);
    sv_no_memory = outer;
    return true;
}

/* With the lock, which it gives back. */
static void leave(struct sv_workers *w)
{
    bool is_out_of_memory = w->is_out_of_memory;
    pthread_mutex_unlock(&w->lock);
    if (is_out_of_memory)
        sv_out_of_memory(0);
}

/* ---- each ---- */

static bool try_each(struct sv_workers *w, struct job *j)
{
    struct each *e = (struct each *)j;
    if (e->next == e->n)
        return false;
    size_t i = e->next++;
    pthread_mutex_unlock(&w->lock);
    bool is_done = is_run(e->run, e->ctx, i);
    pthread_mutex_lock(&w->lock);
    w->is_out_of_memory = w->is_out_of_memory || !is_done;
    if (++e->done == e->n)
        announce(w);
    return true;
}

void sv_workers_each(struct sv_workers *w, size_t n, void (*run)(void *ctx, size_t i), void *ctx)
{
    struct each e = {.job = {.try = try_each}, .n = n, .run = run, .ctx = ctx};
    if (sv_workers_count(w) == 1 || n < 2) {
        for (size_t i = 0; i < n; i++)
            run(ctx, i);
        return;
    }
    add_job(w, &e.job);
    while (e.done < n)
        if (!try_each(w, &e.job))
            pthread_cond_wait(&w->changed, &w->lock);
    remove_job(w, &e.job);
    leave(w);
}

/* ---- lines ---- */

static void *item_at(const struct sv_line *l, size_t i)
{
    return l->items + i % l->n_items * l->ops.item_size;
}

static void fill_item(void *ctx, size_t i)
{
    struct sv_line *l = ctx;
    l->is_filled = l->ops.fill(l->ctx, item_at(l, i));
}

static void work_on_item(void *ctx, size_t i)
{
    const struct sv_line *l = ctx;
    l->ops.work(l->ctx, item_at(l, i));
}

/* So many fills are on this thread's stack. What they wait for must not wait for them: see
 * help(). */
static _Thread_local unsigned n_filling;

/* One item: filled, then worked on, while others may fill the next one. */
static bool try_line(struct sv_workers *w, struct job *j)
{
    struct sv_line *l = (struct sv_line *)j;
    if (l->is_ended || l->is_filling || l->n_filled - l->n_given_back == l->n_items)
        return false;
    size_t i = l->n_filled;
    l->is_filling = true;
    pthread_mutex_unlock(&w->lock);
    n_filling++;
    bool is_done = is_run(fill_item, l, i);
    n_filling--;
    pthread_mutex_lock(&w->lock);
    l->is_filling = false;
    if (is_done && l->is_filled) {
        l->is_done[i % l->n_items] = false;
        l->n_filled++;
        announce(w);
        pthread_mutex_unlock(&w->lock);
        is_done = is_run(work_on_item, l, i);
        pthread_mutex_lock(&w->lock);
        l->is_done[i % l->n_items] = true;
    } else {
        l->is_ended = true;
    }
    w->is_out_of_memory = w->is_out_of_memory || !is_done;
    announce(w);
    return true;
}

struct sv_line *sv_line_new(struct sv_workers *w, const struct sv_line_ops *ops, void *ctx)
{
    struct sv_line *l = sv_alloc(sizeof *l);
    unsigned n = sv_workers_count(w);
    *l = (struct sv_line){.job = {.try = try_line},
                          .pool = w ? w : sv_workers_new(1),
                          .owns_pool = !w,
                          .ops = *ops,
                          .ctx = ctx,
                          .n_items = n == 1 ? 1 : ITEMS_PER_THREAD * (size_t)n};
    l->items = sv_alloc(l->n_items * ops->item_size);
    l->is_done = sv_alloc(l->n_items * sizeof *l->is_done);
    add_job(l->pool, &l->job);
    pthread_mutex_unlock(&l->pool->lock);
    return l;
}

/* While an item of the line is not there: any work, also what a fill of this line waits for. Within
 * a fill only this line's: another one's fill may need the item that is being filled here. */
static bool help(struct sv_workers *w, struct sv_line *l)
{
    return n_filling ? try_line(w, &l->job) : try_any(w);
}

void *sv_line_next(struct sv_line *l)
{
    struct sv_workers *w = l->pool;
    void *item = NULL;
    pthread_mutex_lock(&w->lock);
    if (l->n_given_back < l->n_taken) {
        l->n_given_back = l->n_taken;
        announce(w);
    }
    while (!w->is_out_of_memory) {
        bool is_there = l->n_taken < l->n_filled;
        if (is_there && l->is_done[l->n_taken % l->n_items]) {
            item = item_at(l, l->n_taken++);
            break;
        }
        if (!is_there && l->is_ended && !l->is_filling)
            break;
        if (!help(w, l))
            pthread_cond_wait(&w->changed, &w->lock);
    }
    leave(w);
    return item;
}

void sv_line_halt(struct sv_line *l)
{
    struct sv_workers *w = l->pool;
    pthread_mutex_lock(&w->lock);
    l->is_ended = true;
    while (l->is_filling)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void sv_line_resume(struct sv_line *l)
{
    pthread_mutex_lock(&l->pool->lock);
    l->is_ended = false;
    announce(l->pool);
    pthread_mutex_unlock(&l->pool->lock);
}

void sv_line_free(struct sv_line *l)
{
    if (!l)
        return;
    sv_line_halt(l);
    while (sv_line_next(l))
        ;
    pthread_mutex_lock(&l->pool->lock);
    remove_job(l->pool, &l->job);
    pthread_mutex_unlock(&l->pool->lock);
    for (size_t i = 0; l->ops.clean && i < l->n_items; i++)
        l->ops.clean(item_at(l, i));
    if (l->owns_pool)
        sv_workers_free(l->pool);
    free(l->items);
    free(l->is_done);
    free(l);
}
