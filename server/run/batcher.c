/* Each model's queue, and the thread that makes batches of it.
 *
 * A batch begins with the first request that waits and a free slot; it takes more until its target
 * of rows is reached, its time is up, or the next request does not fit. The strategy decides target
 * and time: disabled 1 and none, fixed and adaptive as configured, the adaptive target following
 * the congestion detector. The thread ends when the queue is closed and empty. */
#include "server/run/engine.h"

#include "core/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static bool is_gone(const struct sv_served *r)
{
    return r->is_gone && r->is_gone(r);
}

/* Those that a queue or a batch no longer has, as their clients have gone. Without a lock: done()
 * may take others. */
static void end_gone(struct sv_model *m, struct sv_served *gone)
{
    for (struct sv_served *r = gone, *next; r; r = next) {
        next = r->next;
        r->is_cancelled = true;
        sv_served_ends(m, r, SV_CLIENT_LEFT, NULL);
        r->done(r);
    }
}

/* A full queue may be full of requests that nobody waits for. Not at each request that does not
 * fit: the look is a system call for each that waits. Called with the lock. */
static void sweep(struct sv_queue *q, struct sv_served **gone)
{
    enum { SWEEP_NS = 20000000 };
    struct sv_served **at = &q->first, *r;
    int64_t now_ns = stave_now_ns();
    if (now_ns - q->swept_ns < SWEEP_NS)
        return;
    q->swept_ns = now_ns;
    while ((r = *at)) {
        if (!is_gone(r)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        q->n--;
        r->next = *gone;
        *gone = r;
    }
    q->last = at;
}

bool sv_queue_push(struct sv_model *m, struct sv_served *r)
{
    struct sv_queue *q = &m->queue;
    struct stave_serving *trace = r->trace;
    bool is_warmup = r->is_warmup; /* once it is in the queue, it may be answered and freed */
    unsigned flags = is_warmup ? STAVE_SERVING_WARMUP : 0;
    struct sv_served *gone = NULL;
    pthread_mutex_lock(&q->lock);
    if (!q->is_closed && q->n >= q->limit)
        sweep(q, &gone);
    bool fits = !q->is_closed && q->n < q->limit;
    if (fits) {
        r->enqueued_ns = stave_now_ns();
        r->next = NULL;
        /* Before anybody can dequeue it: a life begins with its first event. */
        stave_serving_enqueued(trace, r->id, m->traced, flags, r->enqueued_ns);
        if (r->caller)
            stave_serving_context(trace, r->id, &r->caller->own, &r->caller->caller,
                                  r->caller->state);
        *q->last = r;
        q->last = &r->next;
        if (q->n++ == 0 || q->n >= (uint32_t)atomic_load_explicit(&m->target, memory_order_relaxed))
            pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    end_gone(m, gone);
    if (!fits)
        stave_serving_rejected(trace, r->id, m->traced, flags, 0);
    if (!is_warmup)
        atomic_fetch_add_explicit(fits ? &m->metrics.received : &m->metrics.rejected, 1,
                                  memory_order_relaxed);
    return fits;
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static struct sv_served *unlink_first(struct sv_queue *q)
{
    struct sv_served *r = q->first;
    q->first = r->next;
    if (!q->first)
        q->last = &q->first;
    q->n--;
    return r;
}

/* Requests whose clients have gone are not computed. They are ended after the lock is free. */
static void drop_gone(struct sv_model *m, struct sv_served **gone)
{
    struct sv_queue *q = &m->queue;
    while (q->first && is_gone(q->first)) {
        struct sv_served *r = unlink_first(q);
        r->next = *gone;
        *gone = r;
    }
}

/* The first request if it fits into `rows_max` rows and to the others, and is as warm as they are.
 * Called with the lock. */
static struct sv_served *pop(struct sv_queue *q, uint32_t rows_max, const struct sv_task *like)
{
    struct sv_served *r = q->first;
    if (!r || r->rows > rows_max || (like->n && like->is_warmup != r->is_warmup))
        return NULL;
    if (like->n && !like->model->has_floats && !sv_typed_fits(like, r))
        return NULL;
    return unlink_first(q);
}

struct collecting {
    struct sv_model *model;
    struct sv_task *task;
    struct sv_served **last;
    uint32_t target;
    struct sv_served *gone;
};

static void take(struct collecting *c, struct sv_served *r)
{
    *c->last = r;
    c->last = &r->next;
    r->next = NULL;
    c->task->n++;
    c->task->rows += r->rows;
    c->task->is_warmup = r->is_warmup;
    stave_serving_dequeued(r->trace, r->id, 0);
}

/* Everything that is there and fits; true when the batch is complete. Called with the lock. */
static bool take_all(struct collecting *c)
{
    struct sv_queue *q = &c->model->queue;
    for (;;) {
        if (c->task->rows >= c->target)
            return true;
        drop_gone(c->model, &c->gone);
        struct sv_served *r = pop(q, c->model->rows_max - c->task->rows, c->task);
        if (!r)
            return q->first != NULL || q->is_closed;
        take(c, r);
    }
}

static int64_t wait_limit_ms(const struct sv_model *m)
{
    if (m->config->strategy == SV_STRATEGY_DISABLED)
        return 0;
    return m->config->batch_coalesce_timeout_ms;
}

static struct sv_task *collect(struct sv_model *m, struct sv_slot *slot, struct sv_served **gone)
{
    struct sv_queue *q = &m->queue;
    struct sv_task *t = sv_alloc(sizeof *t);
    struct collecting c = {m, t, &t->requests, 0, NULL};
    t->model = m;
    t->slot = slot;
    t->worker = -1;
    t->collect_start_ns = stave_now_ns();
    int64_t deadline = t->collect_start_ns + wait_limit_ms(m) * 1000000;
    struct timespec until = timespec_of(deadline);
    c.target = (uint32_t)atomic_load_explicit(&m->target, memory_order_relaxed);
    if (c.target > m->rows_max) /* the model takes fewer than the configuration would */
        c.target = m->rows_max;
    while (!take_all(&c) && deadline > t->collect_start_ns)
        if (pthread_cond_timedwait(&q->changed, &q->lock, &until) == ETIMEDOUT) {
            take_all(&c);
            break;
        }
    t->collect_end_ns = stave_now_ns();
    *gone = c.gone;
    return t;
}

/* Those who left while the batch waited for others. */
static void drop_members(struct sv_task *t, struct sv_served **gone)
{
    for (struct sv_served **at = &t->requests, *r; (r = *at);) {
        if (!is_gone(r)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        t->n--;
        t->rows -= r->rows;
        r->next = *gone;
        *gone = r;
    }
}

/* false: the queue is closed and empty. Nobody else takes from it, so what is there stays there. */
static bool wait_for_first(struct sv_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->is_closed)
        pthread_cond_wait(&q->changed, &q->lock);
    bool is_there = q->first != NULL;
    pthread_mutex_unlock(&q->lock);
    return is_there;
}

/* The server has stopped, and the time for what was queued is over. */
static bool is_over(struct sv_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool is_over = q->is_closed && stave_now_ns() >= q->drop_ns;
    pthread_mutex_unlock(&q->lock);
    return is_over;
}

static void drop_all(struct sv_model *m)
{
    struct sv_queue *q = &m->queue;
    pthread_mutex_lock(&q->lock);
    struct sv_served *r = q->first;
    q->first = NULL;
    q->last = &q->first;
    q->n = 0;
    pthread_mutex_unlock(&q->lock);
    for (struct sv_served *next; r; r = next) {
        next = r->next;
        r->is_failed = r->is_dropped = true;
        sv_served_ends(m, r, SV_FAILED, "the server stopped before its turn");
        m->n_dropped++;
        r->done(r);
    }
}

static void *run_batcher(void *arg)
{
    struct sv_model *m = arg;
    stave_set_thread_name("batcher");
    while (wait_for_first(&m->queue)) {
        if (is_over(&m->queue)) {
            drop_all(m);
            continue;
        }
        struct sv_slot *slot = sv_engine_take_slot(m);
        pthread_mutex_lock(&m->queue.lock);
        struct sv_served *gone = NULL;
        struct sv_task *t = collect(m, slot, &gone);
        pthread_mutex_unlock(&m->queue.lock);
        drop_members(t, &gone);
        end_gone(m, gone);
        if (t->n) {
            sv_engine_submit(t, -1);
        } else { /* all of them had gone */
            sv_engine_give_slot(m, slot);
            free(t);
        }
    }
    return NULL;
}

int sv_batcher_start(struct sv_model *m)
{
    int code = pthread_create(&m->batcher, NULL, run_batcher, m);
    m->has_batcher = code == 0;
    return code;
}

uint32_t sv_batcher_stop(struct sv_model *m, int64_t drop_ns)
{
    pthread_mutex_lock(&m->queue.lock);
    m->queue.is_closed = true;
    m->queue.drop_ns = drop_ns;
    pthread_cond_broadcast(&m->queue.changed);
    pthread_mutex_unlock(&m->queue.lock);
    if (m->has_batcher)
        pthread_join(m->batcher, NULL);
    m->has_batcher = false;
    return m->n_dropped;
}
