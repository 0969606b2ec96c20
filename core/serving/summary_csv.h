/* batching_trace_summary.csv: a row for each batch, and metrics.csv: a row for each change of the
 * queue.
 *
 * The first columns are those that existing scripts read, some of which overlap (submit_ms contains
 * batch_ms, inference_ms contains most of codelet_ms); the excl_* columns follow each other without
 * overlap and add up to total_ms. The columns after them say to the nanosecond what became of each
 * request. A request without a batch has a row of its own, with the batch -1. Warm-up has no
 * row. */
#pragma once

#include "core/base/buf.h"
#include "core/serving/life.h"

struct sv_summary_csv {
    struct sv_buf out;
    bool is_newer; /* with the column `congested` */
};

void sv_summary_csv_init(struct sv_summary_csv *c, bool is_newer); /* the head is in `out` then */
void sv_summary_csv_fini(struct sv_summary_csv *c);
void sv_summary_csv_report(struct sv_summary_csv *c, struct sv_life *l, enum sv_life_moment moment,
                           const struct sv_life_request *r, const struct sv_life_batch *b);

struct sv_metrics_csv {
    struct sv_buf out;
    int64_t origin_ns;
};

void sv_metrics_csv_init(struct sv_metrics_csv *m, int64_t origin_ns);
void sv_metrics_csv_fini(struct sv_metrics_csv *m);
void sv_metrics_csv_report(struct sv_metrics_csv *m, const struct sv_life *l,
                           enum sv_life_moment moment, int64_t time_ns);
