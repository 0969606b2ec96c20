/*
 * Stave for inference servers with dynamic batching: follows requests from the queue through
 * batches to workers.
 *
 *     struct stave_serving *s = stave_serving_open(&config, message, sizeof message);
 *     uint32_t bert = stave_serving_model(s, "bert");
 *     stave_serving_worker(s, 0, "cpu", -1);
 *
 *     stave_serving_enqueued(s, request, bert, 0, 0);             from any thread, now or later with its time
 *     stave_serving_dequeued(s, request, 0);
 *     stave_serving_collected(s, batch, bert, requests, n, n, 0, collect_start, 0);
 *     stave_serving_submitted(s, batch, 0);
 *     stave_serving_started(s, batch, 0, 0);
 *     stave_serving_finished(s, batch, 0);
 *     stave_serving_callback(s, batch, callback_start, 0);
 *     stave_serving_responded(s, request, 0);
 *
 *     stave_serving_close(s, message, sizeof message);
 *
 * Life-cycle calls may come from any thread and take no lock. Times are those of stave_now_ns(); 0
 * means now. The server chooses the numbers of requests and batches: 64 bits, each used once while
 * the server runs. A server that is not traced passes NULL as `s`; every call then returns at once.
 * docs/serving.md describes the files.
 */
#ifndef STAVE_SERVING_H
#define STAVE_SERVING_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_serving;

enum stave_serving_flags {
    /* Of requests and batches: their names have a prefix in the trace, and the CSV leaves them
     * out. */
    STAVE_SERVING_WARMUP = 1
};

enum stave_serving_names {
    /* batching_trace.json, batching_trace_summary.csv, batching_trace.pftrace */
    STAVE_SERVING_NAMES_DEFAULT,
    STAVE_SERVING_NAMES_SEED = STAVE_SERVING_NAMES_DEFAULT, /* former name */
    /* perfetto_trace.json, trace.csv with the column congested, metrics.csv, trace.pftrace */
    STAVE_SERVING_NAMES_NEWER
};

enum stave_serving_outputs {
    STAVE_SERVING_JSON = 1,
    STAVE_SERVING_CSV = 2,
    STAVE_SERVING_PFTRACE = 4, /* a session of the SDK, unless one runs already */
    STAVE_SERVING_METRICS = 8  /* queue size and rejections, one row per change */
};

/* Configuration of the tracer. Every member left 0 means the default. */
struct stave_serving_config {
    size_t size;        /* sizeof(struct stave_serving_config) */
    bool trace_enabled; /* false: stave_serving_open() returns NULL and no message */
    /* Directory of the files, made when it is missing; NULL: the working directory. */
    const char *trace_output;
    const char *server; /* name of the process in the traces */
    enum stave_serving_names names;
    /* Set of enum stave_serving_outputs; 0: JSON, CSV and PFTRACE, with NAMES_NEWER also
     * METRICS. */
    unsigned outputs;
    /* Overwrite earlier files. Otherwise they are kept with a number. */
    bool truncate;
    /* JSON: only the events of the category `batching`. */
    bool without_request_spans;
    /* Length of the queue between the calls and the writing thread; 0: 65,536 records of 64
     * bytes. */
    size_t queue_records;
    /* What happens when that queue is full: DROP (the default; counted) or BLOCK. */
    enum stave_full full;
    /* Interval between writes to the files; 0: 250. */
    uint64_t flush_ms;
};

/* Checks a trace_output, for the validation of a configuration file. Returns NULL if it is
 * usable, else `message` with the reason. */
STAVE_API const char *stave_serving_check_output(const char *trace_output, char *message,
                                                 size_t message_size);

/* Returns NULL and a message on failure, NULL and an empty message when trace_enabled is false. */
STAVE_API struct stave_serving *stave_serving_open(const struct stave_serving_config *config,
                                                   char *message, size_t message_size);
/* Completes the files. Returns 0, or a negative number and a message. No other call may run
 * meanwhile or follow. */
STAVE_API int stave_serving_close(struct stave_serving *s, char *message, size_t message_size);
/* Writes everything recorded before the call to the files. */
STAVE_API int stave_serving_flush(struct stave_serving *s);
/* The name of one of the files (one of enum stave_serving_outputs); "" when it is not written. */
STAVE_API const char *stave_serving_file(const struct stave_serving *s, unsigned output);

struct stave_serving_counts {
    size_t size;    /* sizeof(struct stave_serving_counts) */
    uint64_t calls; /* life-cycle calls that reached the writing thread */
    /* Life-cycle calls that found its queue full: they are in the .pftrace, but not in JSON and
     * CSV. */
    uint64_t lost;
    uint64_t requests, batches, rejected, failed; /* completed */
    uint64_t open_requests, open_batches;         /* not completed yet */
    /* Requests and batches that never ended, dropped to bound the memory. */
    uint64_t forgotten;
};
STAVE_API void stave_serving_count(const struct stave_serving *s,
                                   struct stave_serving_counts *counts);

/* ---- models and workers; these calls may block ---- */

/* Returns the number of a model, the same for the same name. There are at most 1,024 numbers;
 * further models share the last one. */
STAVE_API uint32_t stave_serving_model(struct stave_serving *s, const char *name);
/* A worker: `type` is "cpu", "cuda", "opencl" …; device is -1 when there is none. A second call
 * for a number renames the worker. */
STAVE_API void stave_serving_worker(struct stave_serving *s, int32_t worker, const char *type,
                                    int32_t device);

/* ---- requests ---- */

STAVE_API void stave_serving_enqueued(struct stave_serving *s, uint64_t request, uint32_t model,
                                      unsigned flags, int64_t time_ns);
/* The request was refused, for example because the queue is full. This ends it. It need not have
 * been enqueued. */
STAVE_API void stave_serving_rejected(struct stave_serving *s, uint64_t request, uint32_t model,
                                      unsigned flags, int64_t time_ns);
STAVE_API void stave_serving_dequeued(struct stave_serving *s, uint64_t request, int64_t time_ns);
STAVE_API void stave_serving_responded(struct stave_serving *s, uint64_t request, int64_t time_ns);
STAVE_API void stave_serving_failed(struct stave_serving *s, uint64_t request, const char *reason,
                                    int64_t time_ns);
STAVE_API void stave_serving_cancelled(struct stave_serving *s, uint64_t request, int64_t time_ns);

/* ---- batches ---- */

/* The `n` requests form a batch of `samples` samples (0: n). The list is copied. The collection
 * began at start_ns (0: when the first of them was dequeued) and ended at end_ns. */
STAVE_API void stave_serving_collected(struct stave_serving *s, uint64_t batch, uint32_t model,
                                       const uint64_t *requests, size_t n, uint32_t samples,
                                       unsigned flags, int64_t start_ns, int64_t end_ns);
STAVE_API void stave_serving_submitted(struct stave_serving *s, uint64_t batch, int64_t time_ns);
STAVE_API void stave_serving_started(struct stave_serving *s, uint64_t batch, int32_t worker,
                                     int64_t time_ns);
STAVE_API void stave_serving_finished(struct stave_serving *s, uint64_t batch, int64_t time_ns);
/* The completion callback ran from start_ns to end_ns. This ends the batch. A server without
 * callbacks passes 0 for both, right after stave_serving_finished(). */
STAVE_API void stave_serving_callback(struct stave_serving *s, uint64_t batch, int64_t start_ns,
                                      int64_t end_ns);
/* The batch was not computed, or not completely. Its requests are reported one by one. */
STAVE_API void stave_serving_batch_failed(struct stave_serving *s, uint64_t batch,
                                          const char *reason, int64_t time_ns);

/* ---- other ---- */

/* The state of the server's congestion detector has changed. */
STAVE_API void stave_serving_congestion(struct stave_serving *s, bool is_congested,
                                        int64_t time_ns);
/* Flow numbers for the server's own events (a task, a copy): given as STAVE_FLOW_IN or
 * STAVE_FLOW_OUT they connect the event with the batch or request. */
STAVE_API uint64_t stave_serving_batch_flow(const struct stave_serving *s, uint64_t batch);
STAVE_API uint64_t stave_serving_request_flow(const struct stave_serving *s, uint64_t request);

#ifdef __cplusplus
}
#endif

#endif
