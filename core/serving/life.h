/* The life of requests and batches in an inference server: calls in, what happened to each request
 * and batch out.
 *
 *     struct sv_life *l = sv_life_new(&limits, report, ctx);
 *     sv_life_put(l, &call);              each call of the server, in about the order in which they
 *                                         were made
 *     sv_life_end(l);                     reports what is still open
 *
 * The one place that knows how calls become requests, batches and phases: the library's writing
 * thread, the converter and the report put calls in, and get moments through a callback. Calls of
 * different threads may come a little out of order (a worker that starts before the submission was
 * reported); memory is bounded by the limits, whatever the calls. */
#pragma once

#include "core/serving/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sv_life_op {
    SV_LIFE_MODEL = 1, /* id: its number, text: its name */
    SV_LIFE_WORKER,    /* id: its number, text: its type, device */
    SV_LIFE_ENQUEUED,
    SV_LIFE_REJECTED,
    SV_LIFE_DEQUEUED,
    SV_LIFE_MEMBERS,   /* id: a batch, members: some of its requests */
    SV_LIFE_COLLECTED, /* start_ns … time_ns; members: the rest of its requests, mostly all */
    SV_LIFE_SUBMITTED,
    SV_LIFE_STARTED,
    SV_LIFE_FINISHED,
    SV_LIFE_CALLBACK, /* start_ns … time_ns */
    SV_LIFE_RESPONDED,
    SV_LIFE_FAILED,
    SV_LIFE_CANCELLED,
    SV_LIFE_BATCH_FAILED,
    SV_LIFE_CONGESTION, /* flags: 1 congested, 0 not any more */
    /* Of requests in an engine with continuous batching: */
    SV_LIFE_SCHEDULED,
    SV_LIFE_PREEMPTED,
    SV_LIFE_RESUMED,
    SV_LIFE_TRANSFERRED, /* start_ns … time_ns */
    SV_LIFE_STREAMED,    /* samples: tokens */
    SV_LIFE_LEFT_OUT,    /* model; members: numbers of requests that are not recorded, see below */
    SV_LIFE_TRANSPORT,   /* members: what a request took outside of the queue, see below */
    SV_N_LIFE_OPS,
    SV_LIFE_STEP,     /* no call of the life cycle: in rings only, see sv_life_step() */
    SV_LIFE_CONTEXT,  /* in rings only; members: struct sv_life_context in words */
    SV_LIFE_OPERATORS /* in rings only, and no call of the life cycle; id: a batch */
};
/* As events are named: "enqueued", "batch failed" … */
extern const char *const sv_life_op_names[SV_N_LIFE_OPS];

#define SV_LIFE_CATEGORY "serving.life"
#define SV_LIFE_NAMING    \
    {                     \
        "model", "worker" \
    } /* what numbers stand for, in all that follows */
#define SV_LIFE_WARMUP  1u
#define SV_LIFE_UNTIMED 2u /* its times say how long, not when */

struct sv_life_call {
    int64_t time_ns, start_ns;
    uint64_t id; /* request or batch */
    uint32_t model, samples;
    int32_t worker, device;
    uint16_t op; /* enum sv_life_op */
    uint16_t flags;
    uint32_t n;              /* members */
    const uint64_t *members; /* of MEMBERS and COLLECTED */
    const char *text;        /* terminated, or NULL */
};

/* The members of LEFT_OUT: what was not recorded since the one before, of one model. All of it was
 * answered; time_ns is its last end. */
enum sv_left_out {
    SV_LEFT_REQUESTS,
    SV_LEFT_BATCHES,
    SV_LEFT_SAMPLES,
    SV_LEFT_SUM_NS,  /* of all latencies */
    SV_LEFT_MOST_NS, /* the longest latency */
    SV_LEFT_SPAN_NS, /* from its first arrival to its last end */
    SV_N_LEFT_OUT
};
extern const char *const sv_left_out_names[SV_N_LEFT_OUT];

/* The members of TRANSPORT, in ns; as int64_t below 0: not known. Serialising ends before the
 * request is answered, the others are before "enqueued" and after its end. A life cycle does
 * nothing with them. */
enum sv_transport {
    SV_TRANSPORT_READ,
    SV_TRANSPORT_PARSE,
    SV_TRANSPORT_SERIALISE,
    SV_TRANSPORT_WRITE,
    SV_N_TRANSPORT
};
extern const char *const sv_transport_names[SV_N_TRANSPORT]; /* "read" … */
extern const char *const sv_transport_keys[SV_N_TRANSPORT];  /* "read_ns" … */

enum sv_life_fate {
    SV_FATE_OPEN,
    SV_FATE_RESPONDED,
    SV_FATE_REJECTED,
    SV_FATE_FAILED,
    SV_FATE_CANCELLED,
    SV_N_FATES
};
extern const char *const sv_life_fate_names[SV_N_FATES];

enum { SV_LIFE_MARKS = 12 };

/* W3C trace context of a request. Ids of zeros: none. */
struct sv_life_context {
    uint8_t trace_id[16], span_id[8], parent_id[8];
    char state[]; /* the header tracestate, terminated */
};
enum {
    SV_LIFE_CONTEXT_WORDS = sizeof(struct sv_life_context) / 8,
    SV_LIFE_STATE_MAX = 512 /* bytes; a multiple of 8 */
};

/* Times are 0 where nothing was reported. */
struct sv_life_request {
    uint64_t id;
    int64_t enqueued_ns, dequeued_ns, end_ns;
    uint32_t model, flags;
    uint32_t batch;        /* slot of its batch, UINT32_MAX: none */
    uint32_t member;       /* which of its members it is */
    uint32_t row;          /* the smallest row that no other open request had when it came */
    uint8_t fate;          /* enum sv_life_fate */
    bool is_waiting;       /* in the queue */
    bool is_joined;        /* in a step since it was scheduled, resumed or transferred */
    uint8_t phase;         /* enum sv_engine_phase; NONE: no engine has reported it */
    uint32_t newer, older; /* open requests in the order in which they came */
    struct sv_life_context *context; /* mostly NULL */
    /* In an engine: */
    int64_t since_ns;             /* of the phase */
    int64_t marks[SV_LIFE_MARKS]; /* begins of its phases: time · 8 + phase */
    int64_t scheduled_ns, first_token_ns, last_token_ns;
    uint32_t prompt, cached, output; /* tokens */
    uint32_t preemptions;
    uint32_t n_marks; /* begins of phases past the space for them are not kept */
};

/* A step of an engine, with its members. */
struct sv_life_step {
    uint64_t id;
    int64_t start_ns, end_ns;
    uint32_t engine, kv_used, kv_total, waiting, graph, flags, n;
    const struct sv_engine_member *members;
};

struct sv_life_member {
    uint64_t id;
    int64_t arrival_ns, dequeued_ns, end_ns; /* 0: not known */
    uint8_t fate;                            /* enum sv_life_fate */
};

struct sv_life_batch {
    uint64_t id;
    int64_t collect_start_ns, collect_end_ns, submitted_ns, started_ns, finished_ns,
        callback_start_ns, callback_end_ns, first_arrival_ns, last_arrival_ns, first_dequeued_ns;
    uint32_t model, flags, samples, n, cap;
    int32_t worker;  /* -1: none yet */
    uint32_t row;    /* as of a request, among the open batches */
    uint32_t lane;   /* the smallest that the worker had free when the batch started */
    uint32_t n_open; /* members whose end was not reported */
    struct sv_life_member *members;
    bool is_collected, is_submitted, is_finished, is_over, is_closed, is_failed, is_congested;
    uint32_t newer, older;
};

struct sv_life_worker {
    int32_t number, device; /* device -1: none */
    char type[16];
    uint64_t lanes; /* bits: taken by a running batch */
};

enum sv_life_moment {
    SV_MOMENT_ENQUEUED,   /* request */
    SV_MOMENT_DEQUEUED,   /* request */
    SV_MOMENT_REJECTED,   /* request */
    SV_MOMENT_SUBMITTED,  /* batch */
    SV_MOMENT_FINISHED,   /* batch: its worker span is known */
    SV_MOMENT_BATCH_OVER, /* batch: after its callback; all its times are known */
    /* batch: over, and the ends of its requests are known as far as they ever will be */
    SV_MOMENT_BATCH_CLOSED,
    SV_MOMENT_REQUEST_OVER,  /* request, and its batch if it had one */
    SV_MOMENT_CONGESTED,     /* call */
    SV_MOMENT_NOT_CONGESTED, /* call */
    SV_MOMENT_JOINED         /* request: the step is its first one since it was scheduled … */
};

struct sv_life;
/* request, batch: NULL where the moment has none; valid during the call. */
typedef void sv_life_report(void *ctx, struct sv_life *l, enum sv_life_moment moment,
                            int64_t time_ns, const struct sv_life_request *request,
                            const struct sv_life_batch *batch);

struct sv_life_limits {
    uint32_t requests, batches; /* open at once; 0: 262,144 and 65,536 */
};

struct sv_life_counts {
    uint64_t calls, requests, batches, rejected, failed, cancelled, forgotten;
    uint64_t queued, inflight;     /* now: waiting; in a batch that was submitted and is not over */
    uint64_t repeated, unexpected; /* members of a second batch; calls about nobody known */
    uint64_t steps, step_members, tokens_in, tokens_out; /* of engines */
    uint64_t left_out[SV_N_LEFT_OUT]; /* SPAN_NS: unused; left_from_ns … left_to_ns instead */
    int64_t left_from_ns, left_to_ns;
};

struct sv_life *sv_life_new(const struct sv_life_limits *limits, sv_life_report *report, void *ctx);
void sv_life_free(struct sv_life *l);
void sv_life_put(struct sv_life *l, const struct sv_life_call *call);
/* A step of an engine, reported when it has ended. Members that nobody has enqueued are counted as
 * unexpected. */
void sv_life_step(struct sv_life *l, const struct sv_life_step *step);
void sv_life_end(struct sv_life *l);

const struct sv_life_counts *sv_life_count(const struct sv_life *l);
/* An open batch, or NULL. */
const struct sv_life_batch *sv_life_find_batch(const struct sv_life *l, uint64_t id);
uint64_t sv_life_open_requests(const struct sv_life *l);
uint64_t sv_life_open_batches(const struct sv_life *l);
const char *sv_life_model(const struct sv_life *l, uint32_t model); /* "model" when unknown */
/* Never NULL: a worker that was not described has the type "unknown". */
const struct sv_life_worker *sv_life_worker(struct sv_life *l, int32_t worker);
/* The name of a worker's row: "device 0 worker 3 (opencl) #2". */
enum { SV_WORKER_LABEL_MAX = 96 };
void sv_life_worker_label(const struct sv_life_worker *w, uint32_t lane,
                          char label[SV_WORKER_LABEL_MAX]);

/* ---- phases ---- */

/* They follow each other without gap or overlap: what is not known, or lies outside, lasts 0. */
enum sv_life_phase {
    SV_PHASE_QUEUE,      /* enqueued → taken out of the queue */
    SV_PHASE_BATCH,      /* → the batch is complete */
    SV_PHASE_SUBMIT,     /* → handed to the run time */
    SV_PHASE_SCHEDULING, /* → a worker begins */
    SV_PHASE_RUN,        /* → it is done */
    SV_PHASE_CALLBACK,   /* → the callback returns, or the response is sent from within it */
    SV_PHASE_RESPOND,    /* of requests: → the response is sent */
    SV_N_PHASES
};
extern const char *const sv_life_phase_names[SV_N_PHASES];

/* edges[0] … edges[SV_N_PHASES], rising; phase i lies between edges[i] and edges[i + 1]. */
void sv_life_request_edges(const struct sv_life_request *r, const struct sv_life_batch *b,
                           int64_t edges[SV_N_PHASES + 1]);
/* Of the batch as a whole, from its first arrival to the end of its callback; RESPOND is 0. */
void sv_life_batch_edges(const struct sv_life_batch *b, int64_t edges[SV_N_PHASES + 1]);
