/* The watch: a thread that asks each model's congestion detector once per tick and moves the
 * adaptive target.
 *
 * Started after the warm-up, stopped before the batchers. Between ticks it sleeps; stopping wakes
 * it. */
#include "server/run/engine.h"

#include <string.h>
#include <time.h>

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_running, is_stopping;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct seen {
    uint64_t received, completed, rejected;
    int64_t due_ns;
};

static uint64_t since(const _Atomic uint64_t *now, uint64_t *then)
{
    uint64_t v = atomic_load_explicit(now, memory_order_relaxed), d = v - *then;
    *then = v;
    return d;
}

static void tick(struct sv_model *m, struct seen *s)
{
    struct sv_congestion_sample sample = {.arrived = since(&m->metrics.received, &s->received),
                                          .completed = since(&m->metrics.completed, &s->completed),
                                          .rejected = since(&m->metrics.rejected, &s->rejected)};
    sample.p95_ms = sv_histogram_quantile(&m->tick_latency, 0.95);
    for (unsigned i = 0; i <= m->tick_latency.n; i++)
        atomic_store_explicit(&m->tick_latency.counts[i], 0, memory_order_relaxed);
    pthread_mutex_lock(&m->queue.lock);
    sample.fill = (double)m->queue.n / m->queue.limit;
    pthread_mutex_unlock(&m->queue.lock);
    pthread_mutex_lock(&m->pool_lock);
    sample.inflight = (double)m->in_work / (double)m->config->max_inflight_tasks;
    pthread_mutex_unlock(&m->pool_lock);
    bool was = m->congestion.is_congested;
    sv_congestion_tick(&m->congestion, &sample);
    if (was != m->congestion.is_congested) {
        stave_serving_congestion(m->engine->trace, !was, 0);
        atomic_store(&m->is_congested, !was);
    }
    if (m->config->strategy == SV_STRATEGY_ADAPTIVE)
        atomic_store(&m->target, sv_congestion_target(&m->congestion, atomic_load(&m->target),
                                                      m->config->adaptive.min_batch_size,
                                                      m->config->adaptive.max_batch_size));
}

static int64_t tick_due(struct sv_engine *e, struct seen *seen)
{
    int64_t now = stave_now_ns(), next = now + 1000000000;
    for (uint32_t i = 0; i < e->n_models; i++) {
        struct sv_model *m = &e->models[i];
        if (!m->config->congestion.enabled)
            continue;
        if (now >= seen[i].due_ns) {
            tick(m, &seen[i]);
            seen[i].due_ns = now + m->config->congestion.tick_ms * 1000000;
        }
        next = seen[i].due_ns < next ? seen[i].due_ns : next;
    }
    return next;
}

static void *run_watch(void *arg)
{
    struct sv_engine *e = arg;
    struct seen seen[SV_MODELS_MAX];
    memset(seen, 0, sizeof seen);
    pthread_mutex_lock(&watch.lock);
    while (!watch.is_stopping) {
        int64_t next = tick_due(e, seen);
        struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        pthread_cond_timedwait(&watch.changed, &watch.lock, &until);
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

int sv_watch_start(struct sv_engine *e)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.changed, &attr);
    pthread_condattr_destroy(&attr);
    int code = pthread_create(&watch.thread, NULL, run_watch, e);
    watch.is_running = code == 0;
    return code;
}

void sv_watch_stop(void)
{
    if (!watch.is_running)
        return;
    pthread_mutex_lock(&watch.lock);
    watch.is_stopping = true;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.is_running = false;
}
