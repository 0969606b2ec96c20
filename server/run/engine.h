/* The server's engine: requests wait in a model's queue, a batcher makes batches of them, StarPU's
 * workers compute, callbacks answer.
 *
 *     HTTP front ─► sv_queue_push ─► batcher (one thread per model) ─► sv_engine_submit ─► StarPU
 *     worker ─► callback ─► done()
 *
 * A request belongs to the part that holds it on this way; done() gives it back to the front, on
 * any thread. */
#pragma once

#include "server/congestion.h"
#include "server/infer_message.h"
#include "server/model_stats.h"
#include "server/network.h"
#include "server/run/caller.h"
#include "server/run/onnx.h"
#include "server/run/typed_batch.h"
#include "server/server_metrics.h"
#include <stave/serving.h>

#include <limits.h>
#include <pthread.h>
#include <starpu.h>

#define SV_MODELS_MAX  16
#define SV_WORKERS_MAX 64

struct sv_model;

struct sv_served {
    uint64_t id;
    uint32_t rows;
    bool is_warmup;
    const struct sv_tensor_value *in;      /* of the model's inputs */
    struct sv_tensor_value out[SV_IO_MAX]; /* set when the batch is done; free() their bytes */
    int64_t enqueued_ns;
    struct sv_served *next;
    struct stave_serving *trace; /* NULL: it is not traced */
    struct sv_caller *caller;    /* its trace context, the front's to free; mostly NULL */
    bool (*is_gone)(const struct sv_served *r); /* its client no longer waits; NULL: unknown */
    /* How it ended. */
    bool is_failed, is_dropped; /* dropped: the server stopped before its turn */
    bool is_cancelled;          /* the client had gone before it was its turn */
    bool has_ended;             /* its end is in the trace and in the counters */
    uint64_t batch;
    uint32_t batch_rows;
    int32_t worker;
    void (*done)(struct sv_served *r);
    void *owner;
};

/* The right to compute a batch, and for networks of floats its buffers, known to StarPU for the
 * life of the model. */
struct sv_slot {
    float *in, *out;
    starpu_data_handle_t in_handle, out_handle;
    struct sv_slot *next;
};

struct sv_task {
    uint64_t id;
    struct stave_serving *trace; /* NULL: none of its requests is traced */
    struct sv_model *model;
    struct sv_slot *slot;
    struct sv_served *requests; /* in the order of their rows */
    uint32_t n, rows;
    struct sv_batch_tensor in[SV_IO_MAX], out[SV_IO_MAX]; /* of other models */
    bool is_warmup, is_failed;
    bool is_divided; /* each request has its outputs, or is_failed, already */
    char why[480];   /* it failed */
    int64_t collect_start_ns, collect_end_ns, joined_ns, submit_ns, start_ns, end_ns;
    int32_t worker;
    uint64_t job; /* StarPU's number of it */
};

/* What of the requests is traced. Set under the engine's lock, read without. */
struct sv_trace_setting {
    _Atomic bool is_on, by_parent;
    _Atomic uint32_t rate; /* one of so many */
    _Atomic int64_t left;  /* so many more; -1: no limit */
    _Atomic uint64_t turn;
    _Atomic bool has_level, has_rate, has_count,
        has_parent; /* of a model: its own; else the server's */
};

struct sv_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sv_served *first, **last;
    uint32_t n, limit;
    bool is_closed;
    int64_t drop_ns;  /* when it is closed: what is in it at this time is dropped */
    int64_t swept_ns; /* when clients that have gone were last looked for in all of it */
};

struct sv_engine;

struct sv_model {
    struct sv_engine *engine;
    const struct sv_config *config;
    struct sv_network *net;
    struct sv_onnx *onnx; /* computes instead of net, which then only has the sizes; mostly NULL */
    struct sv_infer_model describes;
    uint32_t traced; /* its number in the trace */
    struct sv_trace_setting tracing;
    uint32_t rows_max;
    bool has_floats; /* one FP32 tensor in and out: computed in the slot's buffers */
    bool pads;       /* requests of different shapes share a batch */
    struct sv_queue queue;
    pthread_t batcher;
    bool has_batcher;
    uint32_t n_dropped;
    /* Slots and batches in work. */
    pthread_mutex_t pool_lock;
    pthread_cond_t pool_changed;
    struct sv_slot *slots, *free_slots;
    uint32_t in_work;
    struct starpu_codelet codelet;
    float *scratch[SV_WORKERS_MAX]; /* of each worker, made at its first batch */
    struct sv_forward_cl *cl[SV_WORKERS_MAX];
    struct sv_congestion congestion;
    struct sv_histogram tick_latency; /* since the last tick */
    _Atomic bool is_congested;
    _Atomic bool has_complained; /* a failed batch was reported on standard error */
    _Atomic int64_t target;      /* rows that a batch waits for */
    struct sv_model_metrics metrics;
    struct sv_model_stats stats;
};

/* When a worker came to the end of each layer of a batch. */
struct sv_layer_times {
    int64_t ends_ns[SV_LAYERS_MAX + 1]; /* the embedding first, if there is one */
    uint32_t n;
};

struct sv_worker {
    char type[8]; /* "cpu", "opencl" */
    char name[64];
    int32_t device;
    _Atomic uint64_t busy_ns, tasks;
    struct sv_layer_times layers; /* of the batch that it computes */
};

/* StarPU's own trace: fxt.c. */
struct sv_fxt {
    bool is_wanted, is_there; /* STARPU_FXT_TRACE asks for it; StarPU can write it */
    int64_t since_s;
    char file[PATH_MAX]; /* when StarPU has ended; empty: none */
};

struct sv_engine {
    const struct sv_config *config; /* of the server: the first one */
    struct sv_model models[SV_MODELS_MAX];
    uint32_t n_models;
    struct sv_worker workers[SV_WORKERS_MAX];
    uint32_t n_workers;
    struct stave_serving *_Atomic trace; /* NULL: not traced (yet) */
    struct sv_trace_setting tracing;
    pthread_mutex_t trace_lock;
    char *trace_folder, *trace_keep, *trace_rotate; /* the last one may be NULL */
    _Atomic bool keeps_all;                         /* no request is left out of the trace */
    struct sv_otlp_live *otlp;                      /* NULL: no collector */
    struct sv_grpc_front *grpc;                     /* NULL: no gRPC */
    int64_t started_ns;
    _Atomic uint64_t next_request, next_batch;
    _Atomic uint64_t bad_traceparents; /* headers that were ignored */
    pthread_mutex_t work_lock;
    uint32_t in_flight; /* batches that StarPU has, of all models */
    _Atomic bool is_ready;
    struct sv_fxt fxt;
};

/* engine.c: StarPU. */
int sv_engine_open(struct sv_engine *e, struct sv_config *const *configs, uint32_t n,
                   struct sv_err *err);
void sv_engine_close(struct sv_engine *e); /* waits for what is in work */
bool sv_engine_can_compute(const struct sv_model *m, uint32_t worker);
void sv_engine_submit(struct sv_task *t, int forced_worker);
/* The end of a request that the queue took: in the trace and in the counters, the same in both.
 * Each has one, warm-up in the trace only. A second one is ignored. */
enum sv_served_end { SV_ANSWERED, SV_FAILED, SV_CLIENT_LEFT };
void sv_served_ends(struct sv_model *m, struct sv_served *r, enum sv_served_end how,
                    const char *why);
struct sv_slot *sv_engine_take_slot(struct sv_model *m); /* waits for one */
void sv_engine_give_slot(struct sv_model *m, struct sv_slot *s);
const struct sv_model *sv_engine_find(const struct sv_engine *e, const char *name, size_t len);

/* model_load.c. Loads a model's file and checks that the server's workers can compute it. *onnx
 * stays NULL for our own networks. */
int sv_engine_load(const struct sv_config *c, const struct sv_config *server,
                   struct sv_network **net, struct sv_onnx **onnx, struct sv_err *err);
/* The same for a model of the engine, with what its configuration says about tensors and rows. */
int sv_model_load(struct sv_model *m, struct sv_err *err);

/* batcher.c. push: false when the queue is full or closed; the request then still is the
 * caller's. */
bool sv_queue_push(struct sv_model *m, struct sv_served *r);
int sv_batcher_start(struct sv_model *m);
/* What is queued is still computed, as far as `drop_ns`. Returns how many requests were dropped. */
uint32_t sv_batcher_stop(struct sv_model *m, int64_t drop_ns);

/* watch.c: the congestion detectors' ticks, on a thread of their own. */
int sv_watch_start(struct sv_engine *e);
void sv_watch_stop(void);

/* warmup.c: warms up and starts the batchers. */
void sv_engine_warm_up(struct sv_engine *e);

/* forward.c, forward_cl.c: computes rows × in → rows × out. */
size_t sv_forward_scratch(const struct sv_network *net, uint32_t rows); /* floats */
void sv_forward(const struct sv_network *net, const float *in, float *out, uint32_t rows,
                float *scratch, struct sv_layer_times *times); /* NULL: not asked for */

/* operators.c: the layers as slices below the batch. NULL: they are not wanted of this batch. */
struct sv_layer_times *sv_operators_begin(const struct sv_task *t);
void sv_operators_put(const struct sv_task *t, const struct sv_layer_times *times);
struct sv_forward_cl;
struct sv_forward_cl *sv_forward_cl_new(const struct sv_network *net, uint32_t rows_max,
                                        int worker);
void sv_forward_cl_free(struct sv_forward_cl *f);
bool sv_forward_cl_run(struct sv_forward_cl *f, void *in, void *out, uint32_t rows); /* cl_mem */

/* starpu_view.c: what StarPU's profiling knows, as events on rows of its own. */
void sv_starpu_view_start(struct sv_engine *e);
void sv_starpu_view_task(const struct sv_task *t, const struct starpu_profiling_task_info *info);
void sv_starpu_view_stop(struct sv_engine *e);

/* fxt.c */
void sv_fxt_prepare(struct sv_fxt *f, const char *folder); /* before starpu_init() */
void sv_fxt_find(struct sv_fxt *f);                        /* after starpu_shutdown() */

/* metrics_page.c */
void sv_metrics_page(struct sv_engine *e, struct sv_buf *out);

/* http_front.c */
struct sv_front;
struct sv_listeners;
/* Serves on sockets that listen already, which it takes. *out is set also after a failure. */
int sv_front_open(struct sv_engine *e, struct sv_listeners *l, struct sv_front **out,
                  struct sv_err *err);
/* When no inference is possible any more: waits for the last answers, then for those who keep a
 * connection, a second at most; then no new connections. */
void sv_front_stop(struct sv_front *f);
void sv_front_close(struct sv_front *f);
