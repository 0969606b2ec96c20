/* Counters, histograms and the Prometheus text format.
 *
 * Counted by the HTTP front, the batchers and the workers' callbacks; printed by /metrics. No lock
 * anywhere. */
#include "server/server_metrics.h"

#include <string.h>

static const double latency_bounds[] = {0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000};
static const double size_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

void sv_histogram_init(struct sv_histogram *h, const double *bounds, unsigned n)
{
    memset(h, 0, sizeof *h);
    h->bounds = bounds;
    h->n = n;
}

void sv_histogram_add(struct sv_histogram *h, double value)
{
    unsigned i = 0;
    while (i < h->n && value > h->bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    if (value > 0)
        atomic_fetch_add_explicit(&h->sum_micro, (uint64_t)(value * 1e6), memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *v)
{
    return atomic_load_explicit(v, memory_order_relaxed);
}

double sv_histogram_quantile(const struct sv_histogram *h, double q)
{
    uint64_t total = 0, seen = 0;
    for (unsigned i = 0; i <= h->n; i++)
        total += load(&h->counts[i]);
    for (unsigned i = 0; i < h->n; i++) {
        seen += load(&h->counts[i]);
        if ((double)seen >= q * (double)total)
            return total ? h->bounds[i] : 0;
    }
    return h->bounds[h->n - 1];
}

void sv_model_metrics_init(struct sv_model_metrics *m)
{
    memset(m, 0, sizeof *m);
    struct sv_histogram *times[] = {&m->latency_ms, &m->queue_ms, &m->collect_ms, &m->scheduling_ms,
                                    &m->codelet_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        sv_histogram_init(times[i], latency_bounds, sizeof latency_bounds / sizeof *latency_bounds);
    sv_histogram_init(&m->batch_size, size_bounds, sizeof size_bounds / sizeof *size_bounds);
}

void sv_metrics_family(struct sv_buf *out, const char *name, const char *type, const char *help)
{
    sv_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void sv_metrics_value(struct sv_buf *out, const char *name, const char *labels, double value)
{
    sv_buf_printf(out, labels[0] ? "%s{%s} " : "%s%s ", name, labels);
    sv_buf_double(out, value);
    sv_buf_byte(out, '\n');
}

void sv_metrics_put(struct sv_buf *out, const struct sv_metric *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].type)
            sv_metrics_family(out, rows[i].name, rows[i].type, rows[i].help);
        sv_metrics_value(out, rows[i].name, rows[i].labels ? rows[i].labels : "", rows[i].value);
    }
}

void sv_metrics_histogram(struct sv_buf *out, const char *name, const char *labels,
                          const struct sv_histogram *h)
{
    uint64_t seen = 0;
    for (unsigned i = 0; i <= h->n; i++) {
        seen += load(&h->counts[i]);
        sv_buf_printf(out, "%s_bucket{%s,le=\"", name, labels);
        if (i < h->n)
            sv_buf_double(out, h->bounds[i]);
        else
            sv_buf_str(out, "+Inf");
        sv_buf_printf(out, "\"} %llu\n", (unsigned long long)seen);
    }
    sv_buf_printf(out, "%s_sum{%s} ", name, labels);
    sv_buf_double(out, (double)load(&h->sum_micro) / 1e6);
    sv_buf_printf(out, "\n%s_count{%s} %llu\n", name, labels, (unsigned long long)seen);
}
