/* The pool: the threads with which a trace is loaded, and the only place that makes them.
 *
 * Others keep their single-threaded code and give it to the pool in one of two ways. Either way the
 * result is the same whatever the number of threads, as long as the code that runs beside itself
 * writes to nothing that is shared.
 *
 *     struct sv_workers *pool = sv_workers_new(0);               // 0: as many threads as the
 *         default says
 *     sv_workers_each(pool, n, nest_track, &nester);             // nest_track(&nester, 0 … n − 1),
 *         in any order; returns when all are done
 *
 * A line passes items through two functions: `fill` runs for one item after the other, in order (it
 * reads a file, say), `work` runs for several items at once. The owner gets the items back in
 * order, one at a time:
 *
 *     struct sv_line *line = sv_line_new(pool, &(struct sv_line_ops){fill, work, clean,
 *     sizeof(struct item)}, ctx);
 *     for (struct item *i; (i = sv_line_next(line));) …       // the item is the owner's until the
 *         next call
 *     sv_line_free(line);
 *
 * The caller's thread is one of the pool's: while it waits it works, too. A pool of one thread runs
 * everything in the caller's thread, when it is asked for. Threads are started when the first work
 * comes, with all signals blocked, and end with the pool, so that none is left when the caller
 * forks. NULL is a pool of one thread. Calls for a pool come from the thread that made it, or from
 * what runs in it: `fill` may take from another line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SV_WORKERS_MAX 64u

struct sv_workers;

/* What 0 means for sv_workers_new(): 0 is sv_workers_cpus(). To be called before there are
 * threads. */
void sv_workers_set_default(unsigned n_threads);
/* The CPUs that this process may use: by its affinity, and by the quota of its control group. */
unsigned sv_workers_cpus(void);

struct sv_workers *sv_workers_new(unsigned n_threads);
void sv_workers_free(struct sv_workers *w);
unsigned sv_workers_count(const struct sv_workers *w); /* 1 and more */

void sv_workers_each(struct sv_workers *w, size_t n, void (*run)(void *ctx, size_t i), void *ctx);

/* The part [*from, *to) of n that belongs to number i of so many: for loops over rows. */
static inline void sv_workers_share(size_t n, size_t i, size_t parts, size_t *from, size_t *to)
{
    size_t each = n / parts, more = n % parts;
    *from = i * each + (i < more ? i : more);
    *to = *from + each + (i < more);
}

struct sv_line;

struct sv_line_ops {
    /* Prepares the next item; false: there is none, the item stays unused. Items come zeroed at
     * first, later as they were left. */
    bool (*fill)(void *ctx, void *item);
    void (*work)(void *ctx, void *item);
    void (*clean)(void *item); /* when the line is freed; may be NULL */
    size_t item_size;
};

struct sv_line *sv_line_new(struct sv_workers *w, const struct sv_line_ops *ops, void *ctx);
/* The next item, filled and worked on; NULL: fill has no more. The item before it may be filled
 * again. */
void *sv_line_next(struct sv_line *l);
/* fill is not called again until sv_line_resume(), and does not run when this returns.
 * sv_line_next() still gives what was filled. */
void sv_line_halt(struct sv_line *l);
void sv_line_resume(struct sv_line *l); /* also after fill had no more */
void sv_line_free(struct sv_line *l);
