/* The serving report: what became of each request and each batch of an inference server.
 *
 *     struct sv_serving_report r;
 *     sv_serving_report_make(&r, trace);
 *     for (size_t i = 0; i < r.n_batches; i++) … r.batches[i].edges …
 *     r.requests[r.members[r.batches[i].first_member + k]] …
 *     sv_serving_report_fini(&r);
 *
 * It reads the life cycle (category serving.life) of whatever format it came from, or, where a
 * trace has none, the events of a batching_trace.json. Times are the trace's own; phases follow
 * each other and add up (core/serving/life.h). Warm-up is kept apart: it is in the tables with its
 * flag and in no figure. */
#pragma once

#include "core/serving/life.h"
#include "store/trace.h"

#define SV_SERVED_NONE UINT32_MAX

struct sv_served_request {
    uint64_t id;
    int64_t edges[SV_N_PHASES + 1];
    int64_t transport_ns[SV_N_TRANSPORT]; /* below 0: not known */
    uint32_t batch;                       /* index, SV_SERVED_NONE: none */
    uint32_t model;
    uint8_t fate; /* enum sv_life_fate */
    bool is_warmup;
};

struct sv_served_batch {
    uint64_t id;
    int64_t edges[SV_N_PHASES + 1]; /* first arrival … end of the callback */
    int64_t first_arrival_ns, last_arrival_ns, first_dequeued_ns, collect_start_ns, collect_end_ns,
        submitted_ns, started_ns, finished_ns, callback_start_ns, callback_end_ns; /* 0: unknown */
    uint32_t model, samples, n, first_member; /* requests[members[first_member + i]] */
    int32_t worker;                           /* -1: none */
    bool is_warmup, is_failed, is_congested;
    bool is_untimed; /* how long is known, when is not */
};

struct sv_served_worker {
    int32_t number, device;
    char type[16];
};

struct sv_served_period {
    int64_t start_ns, end_ns;
    uint64_t deepest; /* queue */
    /* the server did not report it: the queue held more than two of its largest batches */
    bool is_estimated;
};

/* A step of the queue: after time_ns it holds `depth`. */
struct sv_served_depth {
    int64_t time_ns;
    int64_t depth;
};

struct sv_latency { /* -1: not known */
    uint64_t n;
    double mean_ns, p50_ns, p90_ns, p95_ns, p99_ns;
    int64_t max_ns;
};

/* Requests with something in common. */
struct sv_serving_group {
    uint64_t key; /* worker, samples or model */
    uint64_t batches, requests, samples;
    int64_t run_ns;
    struct sv_latency latency, run; /* of requests; of batches */
};

struct sv_serving_groups {
    struct sv_serving_group *groups;
    size_t n;
};

struct sv_serving_window {
    int64_t start_ns, dur_ns;
    uint64_t arrived, answered, rejected;
    int64_t depth_first, depth_last, depth_max;
};

struct sv_serving_report {
    struct sv_served_request *requests; /* in the order of their ends, those without an end last */
    struct sv_served_batch *batches;    /* in the order of their ends */
    uint32_t *members;
    struct sv_served_worker *workers;
    char **models;
    struct sv_served_period *congestion;
    struct sv_served_depth *queue;
    size_t n_requests, n_batches, n_members, n_workers, n_models, n_congestion, n_queue;
    struct sv_life_counts counts;
    bool is_from_json; /* no life cycle: made of the events of a batching_trace.json */
    /* Without warm-up: */
    uint64_t n_answered, n_rejected, n_failed, n_cancelled, n_open, n_real_batches, n_samples;
    uint64_t most_samples;
    int64_t first_ns, last_ns; /* first arrival … last end */
    /* Of all answered requests, also those that were left out of the trace (counts.left_out), as
     * far as that is known; phases: of those in the trace, whose mean latency is kept_mean_ns. */
    struct sv_latency latency, phases[SV_N_PHASES];
    struct sv_latency transport[SV_N_TRANSPORT]; /* n 0: not known of any */
    double kept_mean_ns;
    double throughput, arrival_rate, sample_rate; /* per second */
    double efficiency;                            /* samples per batch over the largest batch */
    int64_t deepest;
    double mean_depth,
        growth; /* growth: requests per second that the queue gained, by least squares */
    int64_t congested_ns;
    struct sv_serving_groups by_worker, by_size, by_model;
    struct sv_serving_window *windows;
    size_t n_windows;
};

/* Values are brought out of order. */
struct sv_latency sv_latency_of(int64_t *values, size_t n);

void sv_serving_report_make(struct sv_serving_report *r, const struct sv_trace *t);
/* Only the tables, for those who make figures of their own: nothing below `n_open`, no windows and
 * groups. */
void sv_serving_report_tables(struct sv_serving_report *r, const struct sv_trace *t);
void sv_serving_report_fini(struct sv_serving_report *r);

/* The share of answered requests within the limit, 0 … 1; those rejected or failed count as not
 * within. -1: there was none. */
double sv_serving_within(const struct sv_serving_report *r, int64_t limit_ns);
const char *sv_served_model(const struct sv_serving_report *r, uint32_t model);
const struct sv_served_worker *sv_served_worker(const struct sv_serving_report *r, int32_t number);
/* The newest request of this number, NULL: none. */
const struct sv_served_request *sv_served_find(const struct sv_serving_report *r, uint64_t id);

/* ---- the parts, for each other ---- */

/* all below `n_answered` from what is above */
void sv_serving_figures(struct sv_serving_report *r);
void sv_serving_queue(struct sv_serving_report *r); /* queue, deepest, mean_depth */
/* The calls behind the events of a batching_trace.json, in an order that makes sense; false: there
 * are none. `row`: of an arrival, else SV_NO_ROW. */
typedef void sv_life_sink(void *ctx, const struct sv_life_call *call, uint32_t row);
bool sv_serving_from_json(const struct sv_trace *t, sv_life_sink *sink, void *ctx);
