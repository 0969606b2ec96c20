/* StarPU seen from inside: its profiling interface as events on rows of their own.
 *
 * For every task, on a row of its worker: the time its data was fetched, the codelet, the release
 * of its data; on StarPU's own row the way from submission through the scheduler. A flow ties them
 * to the batch. A thread samples what the workers did (computing, asleep) and the transfers between
 * memories. StarPU's clock counts from its start: it is tied to CLOCK_MONOTONIC by readings of both
 * taken together. */
#include "server/run/engine.h"

#include "core/serving/starpu_job.h"

#include <stdio.h>
#include <time.h>

#define SAMPLE_MS 100
#define BUSES_MAX 64

static struct {
    int64_t offset_ns; /* CLOCK_MONOTONIC − StarPU's clock */
    stave_track_t group, scheduler;
    stave_track_t rows[SV_WORKERS_MAX], executing[SV_WORKERS_MAX], sleeping[SV_WORKERS_MAX];
    stave_track_t bytes[BUSES_MAX];
    uint64_t transferred[BUSES_MAX];
    int n_buses;
    uint32_t n_workers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_running, is_stopping;
} view = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The closest pair of several: ours, StarPU's, ours. */
static int64_t measure_offset(void)
{
    int64_t best = 0, narrowest = INT64_MAX;
    for (int i = 0; i < 32; i++) {
        int64_t before = stave_now_ns();
        double theirs_us = starpu_timing_now();
        int64_t after = stave_now_ns();
        if (after - before < narrowest) {
            narrowest = after - before;
            best = before + (after - before) / 2 - (int64_t)(theirs_us * 1e3);
        }
    }
    return best;
}

static int64_t ours(const struct timespec *t)
{
    return t->tv_sec * 1000000000 + t->tv_nsec + view.offset_ns;
}

static bool is_span(const struct timespec *a, const struct timespec *b)
{
    return (a->tv_sec || a->tv_nsec) && ours(b) > ours(a);
}

static int64_t length(const struct timespec *a, const struct timespec *b)
{
    return ours(b) - ours(a);
}

void sv_starpu_view_task(const struct sv_task *t, const struct starpu_profiling_task_info *info)
{
    if (info->workerid < 0 || (uint32_t)info->workerid >= view.n_workers)
        return;
    stave_track_t row = view.rows[info->workerid];
    uint64_t flow = stave_serving_batch_flow(t->trace, t->id);
    if (is_span(&info->submit_time, &info->start_time))
        stave_complete(view.scheduler, "starpu", "scheduling", ours(&info->submit_time),
                       length(&info->submit_time, &info->start_time), "batch", t->id, "worker",
                       info->workerid);
    if (is_span(&info->acquire_data_start_time, &info->acquire_data_end_time))
        stave_complete(row, "starpu", "fetch data", ours(&info->acquire_data_start_time),
                       length(&info->acquire_data_start_time, &info->acquire_data_end_time),
                       "batch", t->id);
    if (is_span(&info->start_time, &info->end_time))
        stave_complete(row, "starpu", "codelet", ours(&info->start_time),
                       length(&info->start_time, &info->end_time), "model", t->model->config->name,
                       "batch", t->id, "rows", t->rows, "job", t->job, STAVE_FLOW_IN, flow,
                       STAVE_FLOW_OUT, sv_starpu_job_flow(t->job));
    if (is_span(&info->release_data_start_time, &info->release_data_end_time))
        stave_complete(row, "starpu", "release data", ours(&info->release_data_start_time),
                       length(&info->release_data_start_time, &info->release_data_end_time),
                       "batch", t->id);
}

/* Parts of the time since the last sample: reading the profile begins a new interval. */
static void sample_workers(void)
{
    for (uint32_t i = 0; i < view.n_workers; i++) {
        struct starpu_profiling_worker_info info;
        if (starpu_profiling_worker_get_info((int)i, &info) != 0)
            continue;
        double total = starpu_timing_timespec_to_us(&info.total_time);
        if (total <= 0)
            continue;
        STAVE_COUNTER_ON(view.executing[i], "starpu",
                         100 * starpu_timing_timespec_to_us(&info.executing_time) / total);
        STAVE_COUNTER_ON(view.sleeping[i], "starpu",
                         100 * starpu_timing_timespec_to_us(&info.sleeping_time) / total);
    }
}

static void sample_buses(void)
{
    for (int i = 0; i < view.n_buses; i++) {
        struct starpu_profiling_bus_info info;
        if (starpu_bus_get_profiling_info(i, &info) != 0 || info.transferred_bytes <= 0)
            continue;
        view.transferred[i] += (uint64_t)info.transferred_bytes;
        STAVE_COUNTER_ON(view.bytes[i], "starpu", view.transferred[i]);
    }
}

static void *run_view(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&view.lock);
    while (!view.is_stopping) {
        int64_t next = stave_now_ns() + SAMPLE_MS * 1000000;
        struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        pthread_cond_timedwait(&view.changed, &view.lock, &until);
        sample_workers();
        sample_buses();
    }
    pthread_mutex_unlock(&view.lock);
    return NULL;
}

static void make_tracks(const struct sv_engine *e)
{
    char name[96];
    view.group = stave_track(STAVE_PROCESS, "StarPU");
    view.scheduler = stave_track(view.group, "scheduler");
    for (uint32_t i = 0; i < e->n_workers; i++) {
        snprintf(name, sizeof name, "worker %u: %s", i, e->workers[i].name);
        view.rows[i] = stave_track(view.group, name);
        view.executing[i] = stave_counter(view.rows[i], "executing", "%");
        view.sleeping[i] = stave_counter(view.rows[i], "sleeping", "%");
    }
    view.n_buses = starpu_bus_get_count();
    view.n_buses = view.n_buses < BUSES_MAX ? view.n_buses : BUSES_MAX;
    for (int i = 0; i < view.n_buses; i++) {
        snprintf(name, sizeof name, "transferred from memory %d to %d", starpu_bus_get_src(i),
                 starpu_bus_get_dst(i));
        view.bytes[i] = stave_counter(view.group, name, "bytes");
    }
    view.n_workers = e->n_workers;
}

void sv_starpu_view_start(struct sv_engine *e)
{
    pthread_condattr_t attr;
    starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
    view.offset_ns = measure_offset();
    make_tracks(e);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&view.changed, &attr);
    pthread_condattr_destroy(&attr);
    view.is_running = pthread_create(&view.thread, NULL, run_view, NULL) == 0;
}

void sv_starpu_view_stop(struct sv_engine *e)
{
    (void)e;
    if (!view.is_running)
        return;
    pthread_mutex_lock(&view.lock);
    view.is_stopping = true;
    pthread_cond_signal(&view.changed);
    pthread_mutex_unlock(&view.lock);
    pthread_join(view.thread, NULL);
    view.is_running = false;
    starpu_profiling_status_set(STARPU_PROFILING_DISABLE);
}
