/*
 * Stave for inference servers with dynamic batching: follows requests from the queue through
 * batches to workers.
 *
 *     struct stave_serving *s = stave_serving_open(&config, &error);
 *     uint32_t bert = stave_serving_model(s, "bert");
 *     stave_serving_worker(s, 0, "cpu", -1);
 *
 *     stave_serving_enqueued(s, request, bert, 0, 0);             from any thread, now or later
 *         with its time
 *     stave_serving_dequeued(s, request, 0);
 *     stave_serving_collected(s, batch, bert, requests, n, n, 0, collect_start, 0);
 *     stave_serving_submitted(s, batch, 0);
 *     stave_serving_started(s, batch, 0, 0);
 *     stave_serving_finished(s, batch, 0);
 *     stave_serving_callback(s, batch, callback_start, 0);
 *     stave_serving_responded(s, request, 0);
 *
 *     stave_serving_close(s, &error);
 *
 * An engine with continuous batching (vLLM, SGLang and the like) has steps instead of batches; a
 * request takes part in many of them:
 *
 *     uint32_t engine = stave_serving_engine(s, "engine 0");
 *     stave_serving_enqueued(s, request, llama, 0, 0);
 *     stave_serving_scheduled(s, request, 0);
 *     struct stave_serving_member members[] = {{.request = request, .tokens_in = 512}};
 *     struct stave_serving_step step = {.size = sizeof step, .engine = engine, .step = 1,
 *                                       .start_ns = start, .members = members, .n = 1};
 *     stave_serving_step(s, &step);
 *     stave_serving_responded(s, request, 0);
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
struct stave_trace_context; /* <stave/trace_context.h> */

enum stave_serving_flags {
    /* Of requests and batches: their names have a prefix in the trace, and the CSV leaves them
     * out. */
    STAVE_SERVING_WARMUP = 1
};

enum stave_serving_names {
    /* batching_trace.json, batching_trace_summary.csv, batching_trace.pftrace */
    STAVE_SERVING_NAMES_DEFAULT,
    /* perfetto_trace.json, trace.csv with the column congested, metrics.csv, trace.pftrace */
    STAVE_SERVING_NAMES_NEWER
};

enum stave_serving_outputs {
    STAVE_SERVING_JSON = 1,
    STAVE_SERVING_CSV = 2,
    STAVE_SERVING_PFTRACE = 4, /* a session of the SDK, unless one runs already */
    STAVE_SERVING_METRICS = 8, /* queue size and rejections, one row per change */
    /* In the .pftrace an instant for each token of an engine, on the row of its request. Never
     * the default: the steps have the tokens already. */
    STAVE_SERVING_TOKENS = 16
};

/* What has become of a request or a batch. All of it is valid during the call only. */
struct stave_serving_ended {
    size_t size; /* sizeof(struct stave_serving_ended) */
    bool is_batch;
    bool has_batch;
    uint64_t id, batch;          /* batch: of a request that has one */
    const char *model, *outcome; /* outcome of a batch: "done" or "failed" */
    unsigned flags;
    /* A request from "enqueued" to its end, a batch from its collection to its callback's end. */
    int64_t start_ns, dequeued_ns, end_ns; /* dequeued 0: not known */
    int32_t worker;                        /* -1: none */
    uint32_t samples;                      /* of a batch */
    /* 16, 8 and 8 bytes and a text (stave_serving_context()); NULL: it has none. A parent of zeros:
     * none. */
    const uint8_t *trace_id, *span_id, *parent_id;
    const char *state;
};

/* Configuration of the tracer. Every member left 0 means the default. */
struct stave_serving_config {
    size_t size;        /* sizeof(struct stave_serving_config) */
    bool trace_enabled; /* false: stave_serving_open() returns NULL, and the code STAVE_OK */
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
    /* Of the queue between the calls and the writing thread; 0: 65,536, of 64 bytes each. */
    size_t queue_records;
    /* What happens when that queue is full: DROP (the default; counted) or BLOCK. */
    enum stave_full full;
    /* Interval between writes; 0: 250. Files are behind while all processors are busy. */
    uint64_t flush_ms;
    /* Which requests are recorded; NULL: "all". See stave_serving_keep(). */
    const char *keep;
    /* Called for each request and batch that is recorded, when it has ended (or later, while all
     * processors are busy), by the thread that writes the files: it must not wait. */
    void (*ended)(void *ctx, const struct stave_serving_ended *what);
    void *ended_ctx;
    /* Parts of the .pftrace (not of JSON and CSV) of its own session: see struct stave_options. */
    uint64_t rotate_bytes;
    int64_t rotate_ns;
    uint64_t rotate_parts;
};

/* Checks a trace_output, for the validation of a configuration file. */
STAVE_API int stave_serving_check_output(const char *trace_output, struct stave_error *error);

/* Returns NULL on failure, and NULL with the code STAVE_OK when trace_enabled is false. */
STAVE_API struct stave_serving *stave_serving_open(const struct stave_serving_config *config,
                                                   struct stave_error *error);
/* Completes the files. No other call may run meanwhile or follow. */
STAVE_API int stave_serving_close(struct stave_serving *s, struct stave_error *error);
/* Writes everything recorded before the call to the files. */
STAVE_API int stave_serving_flush(struct stave_serving *s);
/* Keeps only some requests from now on: "all"; "failed" (with cancelled and rejected ones, which
 * every rule keeps); "slow > 50ms" (enqueued to end; ns, us, ms, s); "p99" (the slowest 1 % of its
 * model in the last 30 to 60 seconds); or several with commas. A request is kept with all that
 * shared its batch, or left out as a whole and counted; until it has ended its calls are in memory
 * only. STAVE_EUSAGE: the text is no rule (also with NULL as `s`). */
STAVE_API int stave_serving_keep(struct stave_serving *s, const char *keep,
                                 struct stave_error *error);
/* Records one of `rate` requests from now on (0: all); by_parent: as the caller's flag says. */
STAVE_API void stave_serving_sample(struct stave_serving *s, uint32_t rate, bool by_parent);
/* To be asked for each new request with its caller (NULL: none): `s`, or NULL, to which all calls
 * about it go then. A batch names those that are recorded; one without any goes to NULL, too. */
STAVE_API struct stave_serving *stave_serving_sampled(struct stave_serving *s,
                                                      const struct stave_trace_context *caller);
/* The name of one of the files (one of enum stave_serving_outputs); "" when it is not written. */
STAVE_API const char *stave_serving_file(const struct stave_serving *s, unsigned output);

struct stave_serving_counts {
    size_t size;    /* sizeof(struct stave_serving_counts) */
    uint64_t calls; /* life-cycle calls that reached the writing thread */
    uint64_t lost;  /* of these its queue was full: they are in the .pftrace only */
    uint64_t requests, batches, rejected, failed; /* completed */
    uint64_t open_requests, open_batches;         /* not completed yet */
    uint64_t forgotten; /* they never ended, and were dropped to bound the memory */
    /* Steps of engines that reached the writing thread, their members and tokens. */
    uint64_t steps, step_members, tokens_in, tokens_out;
    uint64_t lost_steps; /* among `lost`: these are in no file */
    uint64_t unexpected; /* calls and members of steps about requests that are not known or over */
    uint64_t deferred;   /* calls that waited because all processors were busy */
    uint64_t left_out, left_out_batches; /* of those completed; see stave_serving_keep() */
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
/* The request's span and that of its caller (NULL: it has none), after the request was enqueued.
 * Its slice in the .pftrace has their ids and an arrow from the caller's. `state` is the header
 * tracestate or NULL; at most 512 bytes of it are kept. */
STAVE_API void stave_serving_context(struct stave_serving *s, uint64_t request,
                                     const struct stave_trace_context *own,
                                     const struct stave_trace_context *caller, const char *state);

/* What the request took outside of the queue, when its answer is written: once. -1: not known.
 * Serialising the answer comes before stave_serving_responded(), writing it after. */
STAVE_API void stave_serving_transport(struct stave_serving *s, uint64_t request, int64_t read_ns,
                                       int64_t parse_ns, int64_t serialise_ns, int64_t write_ns,
                                       int64_t time_ns);

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
/* What the worker computed for the batch, called right after stave_serving_finished() in the same
 * thread: slices below the batch on the row of its worker, in the .pftrace only. At most 1,024. The
 * texts stay the caller's, unchanged until the server is closed. */
struct stave_serving_operator {
    const char *name, *layer; /* such as "conv", and of which layer; "" or NULL: none */
    int64_t start_ns, end_ns;
};
STAVE_API void stave_serving_operators(struct stave_serving *s, uint64_t batch,
                                       const struct stave_serving_operator *operators, size_t n);
/* The completion callback ran from start_ns to end_ns. This ends the batch. A server without
 * callbacks passes 0 for both, right after stave_serving_finished(). */
STAVE_API void stave_serving_callback(struct stave_serving *s, uint64_t batch, int64_t start_ns,
                                      int64_t end_ns);
/* The batch was not computed, or not completely. Its requests are reported one by one. */
STAVE_API void stave_serving_batch_failed(struct stave_serving *s, uint64_t batch,
                                          const char *reason, int64_t time_ns);

/* ---- engines with continuous batching ---- */

/* Returns the number of an engine, the same for the same name; its steps have a track of this
 * name. There are at most 64; further ones share the last number. May block. */
STAVE_API uint32_t stave_serving_engine(struct stave_serving *s, const char *name);

/* A request in a step. A decode computes one token, with speculation one more for each that was
 * proposed; a chunk of a prompt computes its tokens and gives one out when it is the last. */
struct stave_serving_member {
    uint64_t request;
    uint32_t tokens_in;  /* tokens that the step computed; the step's time is divided by them */
    uint32_t tokens_out; /* tokens that it gave for the client */
    uint32_t cached;     /* prompt tokens that the prefix cache had and nobody computed */
    uint32_t position;   /* tokens of the request before the step */
    uint16_t proposed, accepted; /* speculative tokens */
    uint32_t phase;              /* enum stave_serving_phase */
};
enum stave_serving_phase { STAVE_SERVING_PREFILL, STAVE_SERVING_DECODE };
enum stave_serving_graph {
    STAVE_SERVING_GRAPH_UNKNOWN,
    STAVE_SERVING_GRAPH_EAGER,
    STAVE_SERVING_GRAPH_PIECEWISE,
    STAVE_SERVING_GRAPH_FULL
};

struct stave_serving_step {
    size_t size;   /* sizeof(struct stave_serving_step) */
    uint64_t step; /* the engine's number of it */
    uint32_t engine;
    uint32_t graph; /* enum stave_serving_graph */
    unsigned flags;
    uint32_t kv_used, kv_total; /* blocks of the KV cache; total 0: not known */
    uint32_t waiting;           /* requests that wait while it runs */
    int64_t start_ns, end_ns;   /* 0: start is the end, end is now */
    const struct stave_serving_member *members;
    size_t n; /* at most 65,536 */
};
/* A step has ended. Members are copied into one record; the rest is done by another thread. A
 * record that finds the queue full, or is larger than it, is counted as lost. */
STAVE_API void stave_serving_step(struct stave_serving *s, const struct stave_serving_step *step);

/* These are about requests that were enqueued; they end as others do (stave_serving_responded,
 * _failed, _cancelled when the client went away). A step that has a request schedules or resumes
 * it, if nobody has said so. */
STAVE_API void stave_serving_scheduled(struct stave_serving *s, uint64_t request, int64_t time_ns);
STAVE_API void stave_serving_preempted(struct stave_serving *s, uint64_t request, int64_t time_ns);
STAVE_API void stave_serving_resumed(struct stave_serving *s, uint64_t request, int64_t time_ns);
/* The KV cache of the request went from one engine to another (prefill and decode apart). */
STAVE_API void stave_serving_transferred(struct stave_serving *s, uint64_t request,
                                         uint32_t from_engine, uint32_t to_engine, uint64_t bytes,
                                         int64_t start_ns, int64_t end_ns);
/* Tokens left for the client. Without such calls a token is sent when its step ends. */
STAVE_API void stave_serving_streamed(struct stave_serving *s, uint64_t request, uint32_t tokens,
                                      int64_t time_ns);

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
