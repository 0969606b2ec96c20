/* Numbers that the server counts while it runs, and their text for Prometheus.
 *
 * Counted by any thread with relaxed atomics: a reader may see a histogram's sum one request ahead
 * of its count, never less than what was. */
#pragma once

#include "core/base/buf.h"

#include <stdatomic.h>

#define SV_HISTOGRAM_MAX 16

struct sv_histogram {
    const double *bounds; /* ascending, n of them */
    unsigned n;
    _Atomic uint64_t counts[SV_HISTOGRAM_MAX + 1];
    _Atomic uint64_t sum_micro; /* millionths of the unit */
};

void sv_histogram_init(struct sv_histogram *h, const double *bounds, unsigned n);
void sv_histogram_add(struct sv_histogram *h, double value);
double sv_histogram_quantile(const struct sv_histogram *h,
                             double q); /* upper bound of its bucket */

struct sv_model_metrics {
    _Atomic uint64_t received, rejected, completed, failed, cancelled, batches, rows;
    struct sv_histogram latency_ms, queue_ms, collect_ms, scheduling_ms, codelet_ms, batch_size;
};

void sv_model_metrics_init(struct sv_model_metrics *m);

/* One family: its # HELP and # TYPE lines. */
void sv_metrics_family(struct sv_buf *out, const char *name, const char *type, const char *help);
/* One sample; labels is `model="x"` or "". */
void sv_metrics_value(struct sv_buf *out, const char *name, const char *labels, double value);
/* Several, each with its family, which is that of the row before where type is NULL. */
struct sv_metric {
    const char *name, *type, *help, *labels; /* labels NULL: none */
    double value;
};
void sv_metrics_put(struct sv_buf *out, const struct sv_metric *rows, size_t n);
void sv_metrics_histogram(struct sv_buf *out, const char *name, const char *labels,
                          const struct sv_histogram *h);
