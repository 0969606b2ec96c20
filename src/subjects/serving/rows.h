/* Batches of an inference server, one row each, from a trace (the server's summary CSV is read as
 * one, too).
 *
 *     struct sv_batch_rows b;
 *     sv_batch_rows_init(&b);
 *     sv_batch_rows_from_trace(&b, trace);
 *     for (size_t i = 0; i < b.n; i++) … b.rows[i].total_ns …
 *
 * Used by `plot batch`. Warm-up is left out. Rows are sorted by their number. */
#pragma once

#include "core/serving/life.h"
#include "store/trace.h"

/* The times of the first servers' summary CSV. They overlap: submit holds batch, inference holds
 * codelet. */
enum sv_batch_column {
    SV_BATCH_QUEUE,
    SV_BATCH_BATCH,
    SV_BATCH_SUBMIT,
    SV_BATCH_SCHEDULING,
    SV_BATCH_CODELET,
    SV_BATCH_INFERENCE,
    SV_BATCH_CALLBACK,
    SV_N_BATCH_COLUMNS
};
extern const char *const sv_batch_column_names[SV_N_BATCH_COLUMNS]; /* "queue_ms" … */

/* The time of a batch without overlap: the phases of core/serving/life.h up to the callback, and
 * what none of them covers. */
#define SV_BATCH_REST     6u
#define SV_N_BATCH_PHASES 7u
extern const char *const sv_batch_phase_names[SV_N_BATCH_PHASES]; /* "queue" … "rest" */

enum sv_batch_device { SV_BATCH_CPU, SV_BATCH_GPU, SV_BATCH_OTHER, SV_N_BATCH_DEVICES };

struct sv_batch_worker {
    int64_t number; /* -1: not known */
    char type[16];  /* "cpu", "cuda" … */
    uint8_t device; /* enum sv_batch_device */
};

struct sv_batch_request {
    uint64_t id;
    int64_t arrival_ns; /* on the file's clock; SV_BATCH_UNKNOWN */
    int64_t latency_ns; /* arrival to answer */
};
#define SV_BATCH_UNKNOWN INT64_MIN

struct sv_batch_row {
    uint64_t id;
    uint32_t model;      /* number of its name */
    uint32_t worker;     /* number among the workers */
    uint32_t size;       /* samples */
    uint32_t n_requests; /* at least 1 */
    size_t first_request; /* of those that are known by name: requests[first_request … + n_known) */
    uint32_t n_known;
    bool is_congested;
    int64_t column_ns[SV_N_BATCH_COLUMNS];
    int64_t phase_ns[SV_N_BATCH_PHASES]; /* add up to total_ns */
    int64_t total_ns;
    int64_t arrival_ns, end_ns; /* first arrival and completion; SV_BATCH_UNKNOWN */
};

/* Queue size and rejections so far, where the server or the trace reports them. */
struct sv_batch_metric {
    int64_t ts_ns;
    double queued, rejected;
};

#define SV_BATCH_LIMITS_MAX 8

struct sv_batch_rows {
    struct sv_batch_row *rows;
    size_t n, cap;
    struct sv_batch_request *requests;
    size_t n_requests, cap_requests;
    struct sv_batch_worker *workers; /* by number, then type */
    size_t n_workers, cap_workers;
    struct sv_batch_metric *metrics;
    size_t n_metrics, cap_metrics;
    struct sv_dict *names;              /* of models */
    double sla_ms[SV_BATCH_LIMITS_MAX]; /* the caller's */
    size_t n_sla;
    bool has_congestion; /* the source says when the server was congested */
    bool has_phases;     /* exclusive phases were in the source, not derived */
};

void sv_batch_rows_init(struct sv_batch_rows *b);
void sv_batch_rows_fini(struct sv_batch_rows *b);

/* From the life cycle of libstave-serving or of a summary, or the slices of a
 * batching_trace.json. */
void sv_batch_rows_from_trace(struct sv_batch_rows *b, const struct sv_trace *t);

/* ---- the parts, for each other ---- */

uint32_t sv_batch_worker_of(struct sv_batch_rows *b, int64_t number, const char *type, size_t len);
struct sv_batch_row *sv_batch_row_add(struct sv_batch_rows *b);
void sv_batch_request_add(struct sv_batch_rows *b, uint64_t id, int64_t arrival_ns,
                          int64_t latency_ns);
void sv_batch_metric_add(struct sv_batch_rows *b, int64_t ts_ns, double queued, double rejected);
/* Sorts rows and workers; call once. */
void sv_batch_rows_finish(struct sv_batch_rows *b);
