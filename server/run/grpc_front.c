/* The gRPC front: inference.GRPCInferenceService of KServe v2, with Triton's stream, statistics,
 * configuration and index.
 *
 * Messages come on the threads of net/grpc.h; an inference is answered by done() on a worker's
 * thread. A request of gRPC takes the same way through queue, batch and trace as one of HTTP. */
#include "server/run/grpc_front.h"

#include "core/base/mem.h"
#include "core/base/wire.h"
#include "net/grpc.h"
#include "server/infer_proto.h"
#include "server/run/inference.h"
#include "server/run/model_pages.h"
#include "server/run/trace_control.h"
#include "server/trace_proto.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE "/inference.GRPCInferenceService/"

struct sv_grpc_front {
    struct sv_engine *engine;
    struct sv_grpc *server;
};

/* An inference, from its message to its answer. */
struct call {
    struct sv_grpc_front *front;
    struct sv_grpc_call *call;
    bool is_stream, is_raw;
    struct sv_inference job;
};

/* ---- answers ---- */

static void send_buffer(struct sv_grpc_call *c, struct sv_buf *b)
{
    if (b->failed)
        sv_grpc_fail(c, SV_GRPC_INTERNAL, "the answer is too large");
    else
        sv_grpc_answer(c, b->data, b->len);
    sv_buf_fini(b);
}

/* In a stream an error is an answer, so that the others go on. */
static void refuse(struct sv_grpc_call *c, bool is_stream, enum sv_grpc_status status,
                   const char *message, const char *id)
{
    struct sv_buf b;
    if (!is_stream) {
        sv_grpc_fail(c, status, message);
        return;
    }
    sv_buf_init(&b, 1 << 16);
    sv_proto_stream(NULL, message, id, &b);
    send_buffer(c, &b);
}

static void free_call(struct call *k)
{
    sv_inference_fini(&k->job);
    free(k);
}

/* The answer in b; the library copies what is sent, and does not say when it is. */
static void serialise(struct call *k, struct sv_buf *b)
{
    struct sv_buf answer, whole;
    int64_t begin_ns = stave_now_ns();
    struct sv_infer_answer a = sv_inference_answer(&k->job);
    sv_buf_init(&answer, (size_t)1 << 30);
    sv_proto_answer(&k->job.model->describes, &a, k->is_raw, &answer);
    if (k->is_stream) {
        sv_buf_init(&whole, (size_t)1 << 30);
        sv_proto_stream(&answer, NULL, "", &whole);
        whole.failed |= answer.failed;
        sv_buf_fini(&answer);
        answer = whole;
    }
    k->job.serialise_ns = stave_now_ns() - begin_ns;
    *b = answer;
}

/* On a worker's or a batcher's thread. */
static void on_done(struct sv_served *s)
{
    struct call *k = s->owner;
    if (!s->is_failed && sv_grpc_is_gone(k->call))
        s->is_cancelled = true; /* while its batch was computed */
    struct sv_buf answer;
    if (!s->is_cancelled && !s->is_dropped && !s->is_failed)
        serialise(k, &answer);
    /* Before the answer: whoever has it finds it counted. */
    sv_served_ends(k->job.model, s, s->is_cancelled ? SV_CLIENT_LEFT : SV_ANSWERED, NULL);
    sv_inference_over(&k->job, false);
    if (s->is_cancelled) {
        sv_grpc_fail(k->call, SV_GRPC_CANCELLED, "the client has gone");
    } else if (s->is_dropped) {
        refuse(k->call, k->is_stream, SV_GRPC_UNAVAILABLE, SV_SAYS_DROPPED, k->job.asked.id);
    } else if (s->is_failed) {
        refuse(k->call, k->is_stream, SV_GRPC_INTERNAL, SV_SAYS_FAILED, k->job.asked.id);
    } else {
        send_buffer(k->call, &answer);
    }
    free_call(k);
}

static bool is_gone(const struct sv_served *s)
{
    const struct call *k = s->owner;
    return sv_grpc_is_gone(k->call);
}

/* ---- requests ---- */

/* The model with this name, or NULL: it was answered. */
static struct sv_model *model_named(struct sv_engine *e, struct sv_grpc_call *c, bool is_stream,
                                    const char *name, size_t len)
{
    const struct sv_model *m = sv_engine_find(e, name, len);
    if (!m)
        refuse(c, is_stream, SV_GRPC_NOT_FOUND, "no such model; RepositoryIndex lists them", "");
    return m ? &e->models[m - e->models] : NULL;
}

/* The model that a message names, or NULL: it was answered. */
static struct sv_model *find_model(struct sv_engine *e, struct sv_grpc_call *c, bool is_stream,
                                   const uint8_t *bytes, size_t len)
{
    struct sv_proto_target t;
    struct sv_err err = {0};
    if (sv_proto_target(bytes, len, &t, &err) < 0) {
        refuse(c, is_stream, SV_GRPC_INVALID_ARGUMENT, err.msg, "");
        return NULL;
    }
    struct sv_model *m = model_named(e, c, is_stream, t.name, t.name_len);
    if (!m)
        return NULL;
    const char *version = m->config->version;
    if (t.version_len &&
        (t.version_len != strlen(version) || memcmp(t.version, version, t.version_len) != 0)) {
        refuse(c, is_stream, SV_GRPC_NOT_FOUND, "no such version of this model", "");
        return NULL;
    }
    return m;
}

/* Of the whole call: the messages of a stream have the same caller. */
static struct sv_caller_headers caller_of(const struct call *k)
{
    struct sv_caller_headers h = {0};
    h.parent = sv_grpc_header(k->call, "traceparent", &h.parent_len);
    h.state = h.parent ? sv_grpc_header(k->call, "tracestate", &h.state_len) : NULL;
    return h;
}

static void enqueue(struct call *k)
{
    struct sv_caller_headers headers = caller_of(k);
    char own[STAVE_TRACEPARENT_SIZE];
    bool is_full;
    sv_inference_begin(&k->job, &headers, is_gone, on_done, k);
    if (!k->is_stream && sv_inference_traceparent(&k->job, own))
        sv_grpc_answer_header(k->call, "traceparent", own);
    if (sv_queue_push(k->job.model, &k->job.served))
        return;
    sv_inference_over(&k->job, false);
    const char *why = sv_inference_refusal(&k->job, &is_full);
    refuse(k->call, k->is_stream, is_full ? SV_GRPC_RESOURCE_EXHAUSTED : SV_GRPC_UNAVAILABLE, why,
           k->job.asked.id);
    free_call(k);
}

static void infer(struct sv_grpc_front *f, struct sv_grpc_call *c, bool is_stream,
                  const uint8_t *bytes, size_t len)
{
    struct sv_err err = {0};
    struct sv_model *m = find_model(f->engine, c, is_stream, bytes, len);
    if (!m)
        return;
    struct call *k = sv_alloc(sizeof *k);
    *k = (struct call){.front = f, .call = c, .is_stream = is_stream, .job.model = m};
    int64_t begin_ns = stave_now_ns();
    int code = sv_proto_parse(&m->describes, bytes, len, &k->job.asked, &k->is_raw, &err);
    if (code == 0)
        code = sv_network_check(m->net, &k->job.asked, &err);
    if (code < 0) {
        enum sv_grpc_status status = code == SV_ENOMEM ? SV_GRPC_RESOURCE_EXHAUSTED
                                                       : SV_GRPC_INVALID_ARGUMENT;
        refuse(c, is_stream, status, err.msg, k->job.asked.id);
        free_call(k);
    } else if (!atomic_load_explicit(&f->engine->is_ready, memory_order_acquire)) {
        refuse(c, is_stream, SV_GRPC_UNAVAILABLE, SV_SAYS_UNREADY, k->job.asked.id);
        free_call(k);
    } else {
        k->job.parse_ns = stave_now_ns() - begin_ns;
        enqueue(k);
    }
}

static void on_infer(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    infer(ctx, c, false, bytes, len);
}

static void on_stream(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    infer(ctx, c, true, bytes, len);
}

/* ---- the other methods ---- */

static void send_flag(struct sv_grpc_call *c, bool is_so)
{
    struct sv_buf b;
    sv_buf_init(&b, 64);
    sv_proto_flag(is_so, &b);
    send_buffer(c, &b);
}

static void on_live(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    send_flag(c, true);
}

static void on_ready(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    struct sv_grpc_front *f = ctx;
    (void)bytes;
    (void)len;
    send_flag(c, atomic_load(&f->engine->is_ready));
}

static void on_model_ready(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    struct sv_grpc_front *f = ctx;
    if (find_model(f->engine, c, false, bytes, len))
        send_flag(c, atomic_load(&f->engine->is_ready));
}

static void on_server(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    struct sv_buf b;
    (void)ctx;
    (void)bytes;
    (void)len;
    sv_buf_init(&b, 1 << 16);
    sv_proto_server("stave-server", stave_version(), sv_server_extensions, sv_server_n_extensions,
                    &b);
    send_buffer(c, &b);
}

/* A message about the model that is asked for. */
static void send_about(struct sv_grpc_front *f, struct sv_grpc_call *c, const uint8_t *bytes,
                       size_t len, void (*put)(const struct sv_model *m, struct sv_buf *b))
{
    struct sv_buf b;
    const struct sv_model *m = find_model(f->engine, c, false, bytes, len);
    if (!m)
        return;
    sv_buf_init(&b, 1 << 16);
    put(m, &b);
    send_buffer(c, &b);
}

static void put_description(const struct sv_model *m, struct sv_buf *b)
{
    sv_proto_describe(&m->describes, b);
}

static void put_config(const struct sv_model *m, struct sv_buf *b)
{
    size_t mark = sv_put_begin(b, 1);
    sv_config_proto(m, b);
    sv_put_end(b, mark);
}

static void on_model(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    send_about(ctx, c, bytes, len, put_description);
}

static void on_config(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    send_about(ctx, c, bytes, len, put_config);
}

/* Without a name: of all models. */
static void on_stats(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    struct sv_grpc_front *f = ctx;
    struct sv_proto_target t;
    struct sv_err err = {0};
    struct sv_buf b;
    const struct sv_model *m = NULL;
    bool is_named = sv_proto_target(bytes, len, &t, &err) < 0 || t.name_len;
    if (is_named)
        m = find_model(f->engine, c, false, bytes, len);
    if (is_named && !m)
        return;
    sv_buf_init(&b, 1 << 24);
    for (uint32_t i = 0; i < f->engine->n_models; i++) {
        struct sv_model *one = &f->engine->models[i];
        if (m && m != one)
            continue;
        size_t mark = sv_put_begin(&b, 1);
        sv_model_stats_proto(&one->stats, one->config->name, one->config->version, &b);
        sv_put_end(&b, mark);
    }
    send_buffer(c, &b);
}

static void put_text(struct sv_buf *b, uint32_t id, const char *s)
{
    sv_put_bytes(b, id, s, strlen(s));
}

static void on_index(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    struct sv_grpc_front *f = ctx;
    struct sv_proto_target t;
    struct sv_err err = {0};
    struct sv_buf b;
    if (sv_proto_target(bytes, len, &t, &err) < 0) {
        sv_grpc_fail(c, SV_GRPC_INVALID_ARGUMENT, err.msg);
        return;
    }
    sv_buf_init(&b, 1 << 16);
    for (uint32_t i = 0; i < f->engine->n_models; i++) {
        const struct sv_model *m = &f->engine->models[i];
        if (t.is_ready_only && !atomic_load(&f->engine->is_ready))
            continue;
        size_t mark = sv_put_begin(&b, 1);
        put_text(&b, 1, m->config->name);
        put_text(&b, 2, m->config->version);
        put_text(&b, 3, sv_model_state(m));
        put_text(&b, 4, sv_model_reason(m));
        sv_put_end(&b, mark);
    }
    send_buffer(c, &b);
}

/* Without settings it only reads them, for everybody. */
static void set_trace(struct sv_grpc_front *f, struct sv_grpc_call *c,
                      const struct sv_trace_asked *asked, const struct sv_buf *json)
{
    struct sv_err err = {0};
    struct sv_model *m = NULL;
    struct sv_buf page, answer;
    size_t token_len = 0;
    const char *token = sv_grpc_header(c, "authorization", &token_len);
    if (asked->model_len)
        m = model_named(f->engine, c, false, asked->model, asked->model_len);
    if (asked->model_len && !m)
        return;
    if (asked->wants && !sv_trace_may(sv_grpc_uid(c), token, token_len)) {
        sv_grpc_fail(
            c, SV_GRPC_PERMISSION_DENIED,
            "only the server's user, on the port of gRPC, or who has STAVE_TOKEN, may do that");
        return;
    }
    int code = asked->wants ? sv_trace_set(f->engine, m, json->data, json->len, &err) : 0;
    if (code < 0) {
        sv_grpc_fail(c, code == SV_EUSAGE ? SV_GRPC_INVALID_ARGUMENT : SV_GRPC_INTERNAL, err.msg);
        return;
    }
    sv_buf_init(&page, 1 << 20);
    sv_buf_init(&answer, 1 << 20);
    sv_page_trace(f->engine, m, &page);
    sv_trace_proto_write(&page, &answer);
    sv_buf_fini(&page);
    send_buffer(c, &answer);
}

static void on_trace(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    struct sv_trace_asked asked;
    struct sv_err err = {0};
    struct sv_buf json;
    sv_buf_init(&json, 1 << 20);
    if (sv_trace_proto_read(bytes, len, &asked, &json, &err) < 0)
        sv_grpc_fail(c, SV_GRPC_INVALID_ARGUMENT, err.msg);
    else
        set_trace(ctx, c, &asked, &json);
    sv_buf_fini(&json);
}

static const struct sv_grpc_method methods[] = {
    {SERVICE "ServerLive", on_live, false},        {SERVICE "ServerReady", on_ready, false},
    {SERVICE "ModelReady", on_model_ready, false}, {SERVICE "ServerMetadata", on_server, false},
    {SERVICE "ModelMetadata", on_model, false},    {SERVICE "ModelInfer", on_infer, false},
    {SERVICE "ModelStreamInfer", on_stream, true}, {SERVICE "ModelConfig", on_config, false},
    {SERVICE "ModelStatistics", on_stats, false},  {SERVICE "RepositoryIndex", on_index, false},
    {SERVICE "TraceSetting", on_trace, false},
};

/* ---- opening and closing ---- */

int sv_grpc_front_open(struct sv_engine *e, const struct sv_config *c, const char *address,
                       struct sv_grpc_front **out, struct sv_err *err)
{
    struct sv_grpc_options o = {.methods = methods,
                                .n_methods = sizeof methods / sizeof *methods,
                                .message_max = (size_t)c->max_message_bytes,
                                .memory_max = (size_t)c->max_pending_bytes,
                                .threads = (unsigned)c->grpc_threads,
                                .read_ms = c->request_timeout_ms};
    struct sv_grpc_front *f = sv_alloc(sizeof *f);
    f->engine = e;
    o.ctx = f;
    int code = sv_grpc_open(&o, address, &f->server, err);
    if (code < 0) {
        free(f);
        return code;
    }
    *out = f;
    return 0;
}

int sv_grpc_front_start(struct sv_grpc_front *f, struct sv_err *err)
{
    return f ? sv_grpc_start(f->server, err) : 0;
}

uint16_t sv_grpc_front_port(const struct sv_grpc_front *f)
{
    return sv_grpc_port(f->server);
}

void sv_grpc_front_take(struct sv_grpc_front *f, int fd)
{
    sv_grpc_adopt(f->server, fd);
}

void sv_grpc_front_stop(struct sv_grpc_front *f)
{
    if (f)
        sv_grpc_stop(f->server);
}

void sv_grpc_front_close(struct sv_grpc_front *f)
{
    enum { LIMIT_MS = 5000 };
    if (f && sv_grpc_close(f->server, LIMIT_MS))
        free(f);
}

void sv_grpc_front_metrics(struct sv_grpc_front *f, struct sv_buf *out)
{
    if (!f)
        return;
    struct sv_grpc_counts n = sv_grpc_count(f->server);
    const char *const ended = "grpc_ended_total";
    const struct sv_metric rows[] = {
        {"grpc_open_calls", "gauge", "open gRPC calls", NULL, (double)n.open},
        {"grpc_calls_total", "counter", "gRPC calls", NULL, (double)n.calls},
        {ended, "counter", "gRPC calls that did not end well, by reason", "reason=\"error\"",
         (double)n.failed},
        {ended, NULL, NULL, "reason=\"client_gone\"", (double)n.gone},
        {ended, NULL, NULL, "reason=\"time\"", (double)n.late},
        {ended, NULL, NULL, "reason=\"too_many\"", (double)n.refused}};
    sv_metrics_put(out, rows, sizeof rows / sizeof *rows);
}
