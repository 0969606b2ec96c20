/* The page for Prometheus: what the engine counts, in its text format.
 *
 * Called by the HTTP front for GET /metrics. Reads atomics and two short locks per model; changes
 * nothing. */
#include "server/run/engine.h"
#include "server/run/otlp_live.h"

#include <stdio.h>

typedef double reading(struct sv_model *m);

static double counted(const _Atomic uint64_t *v)
{
    return (double)atomic_load_explicit(v, memory_order_relaxed);
}

static double queue_size(struct sv_model *m)
{
    pthread_mutex_lock(&m->queue.lock);
    double n = m->queue.n;
    pthread_mutex_unlock(&m->queue.lock);
    return n;
}

static double in_work(struct sv_model *m)
{
    pthread_mutex_lock(&m->pool_lock);
    double n = m->in_work;
    pthread_mutex_unlock(&m->pool_lock);
    return n;
}

static double queue_limit(struct sv_model *m)
{
    return m->queue.limit;
}
static double work_limit(struct sv_model *m)
{
    return (double)m->config->max_inflight_tasks;
}
static double received(struct sv_model *m)
{
    return counted(&m->metrics.received);
}
static double rejected(struct sv_model *m)
{
    return counted(&m->metrics.rejected);
}
static double completed(struct sv_model *m)
{
    return counted(&m->metrics.completed);
}
static double failed(struct sv_model *m)
{
    return counted(&m->metrics.failed);
}
static double cancelled(struct sv_model *m)
{
    return counted(&m->metrics.cancelled);
}
static double batches(struct sv_model *m)
{
    return counted(&m->metrics.batches);
}
static double congested(struct sv_model *m)
{
    return atomic_load(&m->is_congested);
}
static double target(struct sv_model *m)
{
    return (double)atomic_load(&m->target);
}

static const struct {
    const char *name, *type, *help;
    reading *read;
} values[] = {
    {"inference_queue_size", "gauge", "waiting requests", queue_size},
    {"inference_max_queue_size", "gauge", "maximum of waiting requests", queue_limit},
    {"inference_inflight_tasks", "gauge", "batches being computed", in_work},
    {"inference_max_inflight_tasks", "gauge", "maximum of batches being computed", work_limit},
    {"inference_batch_target", "gauge", "rows that a batch waits for", target},
    {"inference_congestion_flag", "gauge", "1: congested", congested},
    {"requests_received_total", "counter", "enqueued requests", received},
    {"requests_rejected_total", "counter", "requests refused by a full queue", rejected},
    {"requests_cancelled_total", "counter", "requests whose client had gone before their turn",
     cancelled},
    {"inference_completed_total", "counter", "computed requests", completed},
    {"inference_failures_total", "counter", "requests that could not be computed", failed},
    {"inference_batches_total", "counter", "computed batches", batches},
};

#define HISTOGRAM(name, member, help)                         \
    {                                                         \
        name, help, offsetof(struct sv_model_metrics, member) \
    }
static const struct {
    const char *name, *help;
    size_t offset;
} histograms[] = {
    HISTOGRAM("inference_latency_ms", latency_ms, "from the queue to the answer"),
    HISTOGRAM("inference_queue_latency_ms", queue_ms, "from the queue to its batch's collection"),
    HISTOGRAM("inference_batch_collect_ms", collect_ms, "collection of a batch"),
    HISTOGRAM("inference_scheduling_latency_ms", scheduling_ms, "from submission to the codelet"),
    HISTOGRAM("inference_codelet_latency_ms", codelet_ms, "the codelet"),
    HISTOGRAM("inference_batch_size", batch_size, "rows of a batch"),
};

static void print_models(struct sv_engine *e, struct sv_buf *out)
{
    char labels[160];
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        sv_metrics_family(out, values[v].name, values[v].type, values[v].help);
        for (uint32_t i = 0; i < e->n_models; i++) {
            snprintf(labels, sizeof labels, "model=\"%s\"", e->models[i].config->name);
            sv_metrics_value(out, values[v].name, labels, values[v].read(&e->models[i]));
        }
    }
    for (size_t h = 0; h < sizeof histograms / sizeof *histograms; h++) {
        sv_metrics_family(out, histograms[h].name, "histogram", histograms[h].help);
        for (uint32_t i = 0; i < e->n_models; i++) {
            const char *base = (const char *)&e->models[i].metrics + histograms[h].offset;
            snprintf(labels, sizeof labels, "model=\"%s\"", e->models[i].config->name);
            sv_metrics_histogram(out, histograms[h].name, labels,
                                 (const struct sv_histogram *)(const void *)base);
        }
    }
}

/* One value of each worker: the counter at `offset` of its state, divided by `unit`. */
static void print_of_workers(struct sv_engine *e, struct sv_buf *out, const char *name,
                             size_t offset, double unit)
{
    char labels[160];
    for (uint32_t i = 0; i < e->n_workers; i++) {
        const void *counter = (const char *)&e->workers[i] + offset;
        snprintf(labels, sizeof labels, "worker_id=\"%u\",worker_type=\"%s\",device=\"%d\"", i,
                 e->workers[i].type, e->workers[i].device);
        sv_metrics_value(out, name, labels, counted(counter) / unit);
    }
}

static void print_workers(struct sv_engine *e, struct sv_buf *out)
{
    size_t busy = offsetof(struct sv_worker, busy_ns);
    sv_metrics_family(out, "starpu_worker_busy_ratio", "gauge",
                      "share of its lifetime that a worker was computing");
    print_of_workers(e, out, "starpu_worker_busy_ratio", busy,
                     (double)(stave_now_ns() - e->started_ns));
    sv_metrics_family(out, "starpu_worker_busy_seconds_total", "counter",
                      "seconds that a worker was computing");
    print_of_workers(e, out, "starpu_worker_busy_seconds_total", busy, 1e9);
    sv_metrics_family(out, "starpu_worker_tasks_total", "counter",
                      "batches that a worker computed");
    print_of_workers(e, out, "starpu_worker_tasks_total", offsetof(struct sv_worker, tasks), 1);
}

void sv_metrics_page(struct sv_engine *e, struct sv_buf *out)
{
    print_models(e, out);
    print_workers(e, out);
    struct stave_serving_counts counts = {.size = sizeof counts};
    stave_serving_count(e->trace, &counts);
    const struct sv_metric rows[] = {
        {"models_loaded", "gauge", "models being served", NULL, e->n_models},
        {"traceparent_invalid_total", "counter",
         "headers traceparent that were ignored because they are not valid", NULL,
         counted(&e->bad_traceparents)},
        {"trace_calls_lost_total", "counter",
         "life-cycle calls that were lost because the queue of the trace was full", NULL,
         (double)counts.lost},
        {"trace_left_out_total", "counter", "requests that were left out of the trace (trace_keep)",
         NULL, (double)counts.left_out}};
    sv_metrics_put(out, rows, sizeof rows / sizeof *rows - (e->trace ? 0 : 2));
    sv_otlp_live_metrics(e->otlp, out);
}
