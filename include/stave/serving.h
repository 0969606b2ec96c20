/*
 * Stave for inference servers with dynamic batching: from the request to the worker that computed it.
 *
 *     struct stave_serving *s = stave_serving_open(&config, message, sizeof message);
 *     uint32_t bert = stave_serving_model(s, "bert");
 *     stave_serving_worker(s, 0, "cpu", -1);
 *
 *     stave_serving_enqueued(s, request, bert, 0, 0);             any thread, at the moment or later with its time
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
 * Every life-cycle call may come from any thread and takes no lock. Times are nanoseconds of CLOCK_MONOTONIC, as of stave_now_ns(); 0
 * means now. Request and batch numbers are the server's own, 64 bits, each used once while the server runs. A server that is
 * not traced passes NULL as `s`: every call then returns at once. docs/serving.md describes the files.
 */
#ifndef STAVE_SERVING_H
#define STAVE_SERVING_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_serving;

enum stave_serving_flags {
    STAVE_SERVING_WARMUP = 1 /* of requests and batches: prefixed in the trace, not in the CSV */
};

enum stave_serving_names {
    STAVE_SERVING_NAMES_SEED, /* batching_trace.json, batching_trace_summary.csv, batching_trace.pftrace */
    STAVE_SERVING_NAMES_NEWER /* perfetto_trace.json, trace.csv with the column congested, metrics.csv, trace.pftrace */
};

enum stave_serving_outputs {
    STAVE_SERVING_JSON = 1,
    STAVE_SERVING_CSV = 2,
    STAVE_SERVING_PFTRACE = 4, /* a session of the SDK, unless one runs already */
    STAVE_SERVING_METRICS = 8  /* queue size and rejections, a row for each change */
};

/* What a server's configuration says; every member left 0 means the default. */
struct stave_serving_config {
    size_t size;        /* sizeof(struct stave_serving_config) */
    bool trace_enabled; /* false: stave_serving_open() gives NULL and no message */
    /* a directory, made when it is missing; NULL: the working directory */
    const char *trace_output;
    const char *server; /* name of the process in the traces */
    enum stave_serving_names names;
    unsigned outputs; /* enum stave_serving_outputs; 0: JSON, CSV, PFTRACE (NEWER: METRICS too) */
    bool truncate;    /* earlier files are overwritten; else they are kept with a number */
    bool without_request_spans; /* JSON: the events of the category `batching` only */
    size_t queue_records; /* between the calls and the thread that writes; 0: 65,536 of 64 bytes */
    enum stave_full full; /* that queue is full: DROP (the default; counted) or BLOCK */
    uint64_t flush_ms;    /* how often the files grow; 0: 250 */
};

/* NULL: fine. Else what is wrong with this trace_output, in `message`: for the check of a configuration file. */
STAVE_API const char *stave_serving_check_output(const char *trace_output, char *message,
                                                 size_t message_size);

/* NULL and a message on failure; NULL and an empty message when trace_enabled is false. */
STAVE_API struct stave_serving *stave_serving_open(const struct stave_serving_config *config,
                                                   char *message, size_t message_size);
/* Everything is in the files, which are complete. 0, or negative and a message. No other call may run or follow. */
STAVE_API int stave_serving_close(struct stave_serving *s, char *message, size_t message_size);
/* Everything recorded before the call is in the (growing) files. */
STAVE_API int stave_serving_flush(struct stave_serving *s);
/* The name of one of the files (one of enum stave_serving_outputs); "" when it is not written. */
STAVE_API const char *stave_serving_file(const struct stave_serving *s, unsigned output);

struct stave_serving_counts {
    size_t size;    /* sizeof(struct stave_serving_counts) */
    uint64_t calls; /* life-cycle calls that reached the files' thread */
    uint64_t lost;  /* … that found its queue full: in the .pftrace, but not in JSON and CSV */
    uint64_t requests, batches, rejected, failed; /* that are over */
    uint64_t open_requests, open_batches;         /* that are not */
    uint64_t forgotten; /* requests and batches that never ended, given up to bound the memory */
};
STAVE_API void stave_serving_count(const struct stave_serving *s,
                                   struct stave_serving_counts *counts);

/* ---- who is there; these may wait ---- */

/* The number of a model, the same for the same name. At most 1,024 models; those past it share the last number. */
STAVE_API uint32_t stave_serving_model(struct stave_serving *s, const char *name);
/* A worker: `type` is "cpu", "cuda", "opencl" …; device -1 when there is none. A second call for a number renames it. */
STAVE_API void stave_serving_worker(struct stave_serving *s, int32_t worker, const char *type,
                                    int32_t device);

/* ---- requests ---- */

STAVE_API void stave_serving_enqueued(struct stave_serving *s, uint64_t request, uint32_t model,
                                      unsigned flags, int64_t time_ns);
/* Refused, for example by a full queue: its life is over. It need not have been enqueued. */
STAVE_API void stave_serving_rejected(struct stave_serving *s, uint64_t request, uint32_t model,
                                      unsigned flags, int64_t time_ns);
STAVE_API void stave_serving_dequeued(struct stave_serving *s, uint64_t request, int64_t time_ns);
STAVE_API void stave_serving_responded(struct stave_serving *s, uint64_t request, int64_t time_ns);
STAVE_API void stave_serving_failed(struct stave_serving *s, uint64_t request, const char *reason,
                                    int64_t time_ns);
STAVE_API void stave_serving_cancelled(struct stave_serving *s, uint64_t request, int64_t time_ns);

/* ---- batches ---- */

/* These `n` requests are a batch of `samples` samples (0: n); the list is copied. start_ns is when its collection began (0: when the
 * first of them was dequeued), end_ns when it ended. */
STAVE_API void stave_serving_collected(struct stave_serving *s, uint64_t batch, uint32_t model,
                                       const uint64_t *requests, size_t n, uint32_t samples,
                                       unsigned flags, int64_t start_ns, int64_t end_ns);
STAVE_API void stave_serving_submitted(struct stave_serving *s, uint64_t batch, int64_t time_ns);
STAVE_API void stave_serving_started(struct stave_serving *s, uint64_t batch, int32_t worker,
                                     int64_t time_ns);
STAVE_API void stave_serving_finished(struct stave_serving *s, uint64_t batch, int64_t time_ns);
/* The completion callback ran from start_ns to end_ns: the batch is over. Without a callback: both 0, right after finished. */
STAVE_API void stave_serving_callback(struct stave_serving *s, uint64_t batch, int64_t start_ns,
                                      int64_t end_ns);
/* The batch will not be computed, or not to its end; its requests are told one by one. */
STAVE_API void stave_serving_batch_failed(struct stave_serving *s, uint64_t batch,
                                          const char *reason, int64_t time_ns);

/* ---- besides ---- */

/* The server's congestion detector changed its mind. */
STAVE_API void stave_serving_congestion(struct stave_serving *s, bool is_congested,
                                        int64_t time_ns);
/* For events of the server's own (a task, a copy): as STAVE_FLOW_IN or STAVE_FLOW_OUT they get an arrow from or to the batch. */
STAVE_API uint64_t stave_serving_batch_flow(const struct stave_serving *s, uint64_t batch);
STAVE_API uint64_t stave_serving_request_flow(const struct stave_serving *s, uint64_t request);

#ifdef __cplusplus
}
#endif

#endif
