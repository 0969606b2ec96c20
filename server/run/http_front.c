/* The HTTP front: KServe v2 over libmicrohttpd.
 *
 * Connections come through a door (net/front_door.h), which gives those of gRPC to the other front.
 * libmicrohttpd calls on_call() on its own threads: at the headers, for each piece of the body, at
 * its end, and again when a suspended connection was resumed. An inference suspends its connection
 * until the batch is done; done() resumes it from a worker's thread. Bodies are bounded before they
 * are taken, in size, in number and in time (net/http_request.h); every refusal is a JSON error
 * with its status. */
#include "server/run/grpc_front.h"
#include "server/run/inference.h"
#include "server/run/model_pages.h"
#include "server/run/trace_control.h"

#include "core/base/mem.h"
#include "core/files/peer.h"
#include "net/front_door.h"
#include "net/http_late.h"
#include "net/http_packed.h"
#include "net/http_request.h"
#include "net/listen_socket.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* When exactly 128 (or 256 …) of its descriptors are ready and no other becomes so, libmicrohttpd
 * (0.9.75) looks for more before it turns to those, and waits until its time is over: all clients
 * of a daemon hang. One that has fewer descriptors cannot. */
enum { CONNECTIONS_MAX = 4096, MORE_CONNECTIONS = 512, LANE_MAX = 120, LANES_MAX = 48 };

/* A daemon, which is a thread. */
struct lane {
    struct sv_front *front;
    struct MHD_Daemon *daemon;
    _Atomic unsigned n; /* connections that the door gave to it */
};

struct sv_front {
    struct sv_engine *engine;
    struct sv_door *door;
    struct lane lanes[LANES_MAX], metrics;
    unsigned n_lanes, turn;
    struct sv_gate *gate;
    size_t body_max, connections;
    _Atomic uint32_t waiting; /* inferences that are not answered yet */
};

/* One request on a connection, from its headers to its answer. */
struct call {
    struct sv_front *front;
    struct MHD_Connection *connection;
    struct sv_visitor *visitor;
    int fd;
    int64_t begun_ns; /* its headers were there */
    struct sv_http_body body;
    bool is_suspended;
    struct sv_inference job;
    bool was_rejected;
};

/* ---- answers ---- */

struct headers {
    const char *type, *json_len;    /* json_len: of an answer with binary tensors */
    const struct sv_inference *job; /* NULL: none */
};

static void add_headers(struct MHD_Response *r, unsigned status, const struct headers *h)
{
    char own[STAVE_TRACEPARENT_SIZE];
    sv_mhd.MHD_add_response_header(r, "Content-Type", h->type);
    if (h->json_len)
        sv_mhd.MHD_add_response_header(r, "Inference-Header-Content-Length", h->json_len);
    if (h->job && sv_inference_traceparent(h->job, own))
        sv_mhd.MHD_add_response_header(r, "traceparent", own);
    if (status == 429 || status == 503)
        sv_mhd.MHD_add_response_header(r, "Retry-After", "1");
    /* Where this request ends may be in doubt; who is to come back finds another server. */
    if (status == 400 || status == 413 || status == 503)
        sv_mhd.MHD_add_response_header(r, "Connection", "close");
}

static enum MHD_Result send_bytes(struct MHD_Connection *c, unsigned status, struct sv_buf *b,
                                  const struct headers *h)
{
    struct MHD_Response *r = sv_mhd.MHD_create_response_from_buffer(
        b->len, b->data, MHD_RESPMEM_MUST_FREE); /* takes the bytes */
    if (!r) {
        sv_buf_fini(b);
        return MHD_NO;
    }
    add_headers(r, status, h);
    enum MHD_Result result = sv_mhd.MHD_queue_response(c, status, r);
    sv_mhd.MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_json(struct MHD_Connection *c, unsigned status, struct sv_buf *b)
{
    return send_bytes(c, status, b, &(struct headers){.type = "application/json"});
}

static enum MHD_Result send_error(struct MHD_Connection *c, unsigned status, const char *message)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 16);
    sv_infer_error(message, &b);
    return send_json(c, status, &b);
}

static enum MHD_Result send_flag(struct MHD_Connection *c, const char *name, bool is_so)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 10);
    sv_buf_printf(&b, "{\"%s\":%s}", name, is_so ? "true" : "false");
    return send_json(c, is_so ? 200 : 503, &b);
}

/* A page about models (model_pages.h). */
static enum MHD_Result send_page(struct MHD_Connection *c, struct sv_engine *e, sv_page *page,
                                 struct sv_model *m)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 24);
    page(e, m, &b);
    return send_json(c, 200, &b);
}

static void print_front(struct sv_front *f, struct sv_buf *b)
{
    struct sv_gate_counts n = sv_gate_count(f->gate);
    const char *const cut = "http_cut_total";
    const struct sv_metric rows[] = {
        {"http_pending_bytes", "gauge", "memory of incomplete requests", NULL, (double)n.bytes},
        {"http_connections", "gauge", "open connections", NULL, (double)n.connections},
        {cut, "counter", "requests that were ended before they were complete, by reason",
         "reason=\"client_bytes\"", (double)n.client_full},
        {cut, NULL, NULL, "reason=\"all_bytes\"", (double)n.all_full},
        {cut, NULL, NULL, "reason=\"time\"", (double)n.late},
        {cut, NULL, NULL, "reason=\"connections\"", (double)n.displaced}};
    sv_metrics_put(b, rows, sizeof rows / sizeof *rows);
}

static enum MHD_Result send_metrics(struct MHD_Connection *c, struct sv_front *f)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 22);
    sv_metrics_page(f->engine, &b);
    print_front(f, &b);
    sv_grpc_front_metrics(f->engine->grpc, &b);
    return send_bytes(c, 200, &b, &(struct headers){.type = "text/plain; version=0.0.4"});
}

static enum MHD_Result send_failure(struct call *k, unsigned status, const char *message)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 16);
    sv_infer_error(message, &b);
    return send_bytes(k->connection, status, &b,
                      &(struct headers){.type = "application/json", .job = &k->job});
}

/* The library does not read while a connection is suspended, so we look whether it has ended. A
 * client that only closes its sending side is treated as gone, too: the two look the same. */
static bool has_left(const struct call *k)
{
    struct pollfd p = {.fd = k->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static enum MHD_Result send_result(struct call *k)
{
    struct sv_served *s = &k->job.served;
    int64_t begin_ns = k->job.sending_ns = stave_now_ns();
    if (s->is_cancelled)
        return MHD_NO; /* nobody reads an answer */
    if (k->was_rejected) {
        bool is_full;
        const char *why = sv_inference_refusal(&k->job, &is_full);
        return send_failure(k, is_full ? 429 : 503, why);
    }
    if (s->is_dropped)
        return send_failure(k, 503, SV_SAYS_DROPPED);
    if (s->is_failed)
        return send_failure(k, 500, SV_SAYS_FAILED);
    if (has_left(k)) /* while its batch was computed */
        return MHD_NO;
    struct sv_infer_answer a = sv_inference_answer(&k->job);
    struct sv_buf b;
    size_t json_len;
    char text[24];
    sv_buf_init(&b, (size_t)1 << 30);
    sv_infer_write(&k->job.model->describes, &a, &b, &json_len);
    k->job.sending_ns = stave_now_ns();
    k->job.serialise_ns = k->job.sending_ns - begin_ns;
    snprintf(text, sizeof text, "%zu", json_len);
    bool is_binary = json_len < b.len;
    struct headers h = {.type = is_binary ? "application/octet-stream" : "application/json",
                        .json_len = is_binary ? text : NULL,
                        .job = &k->job};
    enum MHD_Result result = send_bytes(k->connection, 200, &b, &h);
    if (result == MHD_YES)
        sv_served_ends(k->job.model, s, SV_ANSWERED, NULL);
    return result;
}

/* ---- bodies ---- */

static void drop_body(struct call *k)
{
    sv_http_drop(&k->body, k->front->gate, k->visitor);
}

/* The connection ends with it: what follows would be read for nothing. */
static enum MHD_Result refuse_midway(struct call *k, unsigned status, const char *message)
{
    drop_body(k);
    sv_http_refuse(k->connection, status, message);
    return MHD_NO;
}

static enum MHD_Result take_body(struct call *k, const char *data, size_t n)
{
    const char *message;
    unsigned status = sv_http_take(&k->body, k->front->gate, k->visitor, data, n, &message);
    if (status == 0)
        return MHD_YES;
    return refuse_midway(k, status,
                         status == 413 ? "the request is larger than max_message_bytes" : message);
}

/* ---- inference ---- */

/* On a worker's thread: the call now belongs to libmicrohttpd again. */
static void on_done(struct sv_served *s)
{
    struct call *k = s->owner;
    sv_mhd.MHD_resume_connection(k->connection);
}

/* Most requests do not wait long enough for the look to pay. */
static bool is_gone(const struct sv_served *s)
{
    enum { SOON_NS = 1000000 };
    return stave_now_ns() - s->enqueued_ns > SOON_NS && has_left(s->owner);
}

struct context_headers {
    const char *parent;
    size_t n_parents;
    struct sv_buf state; /* its lines, joined */
};

static enum MHD_Result find_context(void *cls, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    struct context_headers *h = cls;
    (void)kind;
    if (value && strcasecmp(key, "traceparent") == 0) {
        h->parent = value;
        h->n_parents++;
    } else if (value && strcasecmp(key, "tracestate") == 0) {
        if (h->state.len)
            sv_buf_byte(&h->state, ',');
        sv_buf_str(&h->state, value);
    }
    return MHD_YES;
}

/* h->state: to be freed. */
static struct sv_caller_headers caller_of(const struct call *k, struct context_headers *h)
{
    if (!sv_mhd.MHD_lookup_connection_value(k->connection, MHD_HEADER_KIND, "traceparent"))
        return (struct sv_caller_headers){0};
    sv_buf_init(&h->state, 1 << 16);
    sv_mhd.MHD_get_connection_values(k->connection, MHD_HEADER_KIND, find_context, h);
    return (struct sv_caller_headers){
        .parent = h->parent,
        .parent_len = h->n_parents == 1 ? strlen(h->parent) : 0, /* of two it is not known who */
        .state = (const char *)h->state.data,
        .state_len = h->state.failed ? 0 : h->state.len};
}

/* First suspended, then enqueued: its batch may be done before we return. */
static enum MHD_Result enqueue(struct call *k)
{
    struct context_headers found = {0};
    struct sv_caller_headers headers = caller_of(k, &found);
    sv_inference_begin(&k->job, &headers, is_gone, on_done, k);
    sv_buf_fini(&found.state);
    k->is_suspended = true;
    atomic_fetch_add(&k->front->waiting, 1);
    sv_mhd.MHD_suspend_connection(k->connection);
    if (!sv_queue_push(k->job.model, &k->job.served)) {
        k->was_rejected = true;
        sv_mhd.MHD_resume_connection(k->connection);
    }
    return MHD_YES;
}

static const char *header_of(const struct call *k, const char *name)
{
    return sv_mhd.MHD_lookup_connection_value(k->connection, MHD_HEADER_KIND, name);
}

/* The body into k->job.asked. The status of a refusal, its message in err; or 0. */
static unsigned parse(struct call *k, const struct sv_model *m, struct sv_err *err)
{
    struct sv_http_unpacked u;
    const char *header = header_of(k, "Inference-Header-Content-Length");
    char *end = NULL;
    unsigned long long json_len = header ? strtoull(header, &end, 10) : ULLONG_MAX;
    if (header && (end == header || *end)) {
        sv_error(err, SV_EUSAGE, "Inference-Header-Content-Length is not a number");
        return 400;
    }
    sv_http_complete(&k->body);
    unsigned status = sv_http_unpack(header_of(k, MHD_HTTP_HEADER_CONTENT_ENCODING), k->body.data,
                                     k->body.len, k->front->body_max, &u);
    if (status)
        sv_error(err, SV_EUSAGE, "%s", u.message);
    else if (sv_infer_parse(&m->describes, u.bytes, u.len, header ? (size_t)json_len : u.len,
                            &k->job.asked, err) < 0 ||
             sv_network_check(m->net, &k->job.asked, err) < 0)
        status = 400;
    sv_http_unpacked_free(&u);
    drop_body(k); /* its numbers are elsewhere by now */
    return status;
}

static enum MHD_Result infer(struct call *k, struct sv_model *m)
{
    struct sv_err err;
    sv_err_clear(&err);
    if (k->body.len == 0)
        return send_error(k->connection, 400, "the request has no body");
    int64_t complete_ns = stave_now_ns();
    unsigned status = parse(k, m, &err);
    k->job.read_ns = complete_ns - k->begun_ns;
    k->job.parse_ns = stave_now_ns() - complete_ns;
    if (status)
        return send_error(k->connection, status, err.msg);
    if (!atomic_load_explicit(&k->front->engine->is_ready, memory_order_acquire))
        return send_error(k->connection, 503, SV_SAYS_UNREADY);
    k->job.model = m;
    k->fd = sv_mhd.MHD_get_connection_info(k->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                ->connect_fd;
    return enqueue(k);
}

/* ---- addresses ---- */

/* The next part of a path, without its slashes; advances *at. */
static size_t part(const char **at, const char **out)
{
    while (**at == '/')
        (*at)++;
    *out = *at;
    size_t n = strcspn(*at, "/");
    *at += n;
    return n;
}

static bool is(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static enum MHD_Result wrong_method(struct MHD_Connection *c, const char *wanted)
{
    char text[64];
    snprintf(text, sizeof text, "this address supports only %s", wanted);
    return send_error(c, 405, text);
}

/* trace/setting, of the server (m NULL) or of a model: Triton's trace extension. */
static enum MHD_Result route_trace(struct call *k, struct sv_model *m, const char *at, bool is_get)
{
    struct sv_engine *e = k->front->engine;
    struct MHD_Connection *c = k->connection;
    struct sv_err err;
    const char *word;
    size_t n = part(&at, &word);
    if (!is(word, n, "setting") || *at)
        return send_error(c, 404, "no such address; there is trace/setting");
    if (is_get)
        return send_page(c, e, sv_page_trace, m);
    int fd = sv_mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const char *token = header_of(k, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!sv_trace_may(sv_peer_uid(fd), token, token ? strlen(token) : 0))
        return send_error(c, 403, "only the server's user, or who has STAVE_TOKEN, may do that");
    sv_err_clear(&err);
    sv_http_complete(&k->body);
    int code = sv_trace_set(e, m, k->body.data, k->body.len, &err);
    drop_body(k);
    if (code < 0)
        return send_error(c, code == SV_EUSAGE ? 400 : 500, err.msg);
    return send_page(c, e, sv_page_trace, m);
}

/* /v2/models/NAME[/versions/V][/ready|/infer|/stats|/config|/trace/setting] */
static enum MHD_Result route_model(struct call *k, const char *at, bool is_get)
{
    struct sv_engine *e = k->front->engine;
    struct MHD_Connection *c = k->connection;
    const char *word;
    size_t n = part(&at, &word);
    if (n == 0)
        return is_get ? send_page(c, e, sv_page_models, NULL) : wrong_method(c, "GET");
    const struct sv_model *found = sv_engine_find(e, word, n);
    if (!found && is(word, n, "stats") && !*at)
        return is_get ? send_page(c, e, sv_page_stats, NULL) : wrong_method(c, "GET");
    if (!found)
        return send_error(c, 404, "no such model; GET /v2/models lists them");
    struct sv_model *m = &e->models[found - e->models];
    n = part(&at, &word);
    if (is(word, n, "versions")) {
        n = part(&at, &word);
        if (!is(word, n, m->config->version))
            return send_error(c, 404, "no such version of this model");
        n = part(&at, &word);
    }
    if (is(word, n, "trace"))
        return route_trace(k, m, at, is_get);
    if (*at)
        return send_error(c, 404, "no such address");
    if (is(word, n, "infer"))
        return is_get ? wrong_method(c, "POST") : infer(k, m);
    if (!is_get)
        return wrong_method(c, "GET");
    if (is(word, n, "ready"))
        return send_flag(c, "ready", atomic_load(&e->is_ready));
    if (is(word, n, "stats"))
        return send_page(c, e, sv_page_stats, m);
    if (is(word, n, "config"))
        return send_page(c, e, sv_page_config, m);
    return n ? send_error(c, 404, "no such address") : send_page(c, e, sv_page_model, m);
}

/* /v2/repository/index: POST, as Triton's clients do it; of its body only `ready` means
 * something. */
static enum MHD_Result route_repository(struct call *k, const char *at, bool is_get)
{
    struct sv_engine *e = k->front->engine;
    struct MHD_Connection *c = k->connection;
    const char *word;
    size_t n = part(&at, &word);
    bool ready_only = false;
    if (!is(word, n, "index") || *at)
        return send_error(c, 404, "no such address; models cannot be loaded or unloaded");
    if (is_get)
        return wrong_method(c, "POST");
    sv_http_complete(&k->body);
    bool is_good = sv_page_index_asks(k->body.data, k->body.len, &ready_only);
    drop_body(k);
    if (!is_good)
        return send_error(c, 400, "the body must be empty or a JSON object");
    return send_page(c, e, ready_only ? sv_page_index_ready : sv_page_index, NULL);
}

static enum MHD_Result route(struct call *k, const char *url, const char *method)
{
    struct MHD_Connection *c = k->connection;
    struct sv_engine *e = k->front->engine;
    const char *at = url, *word;
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (!is_get && strcmp(method, "POST") != 0)
        return send_error(c, 405, "only GET and POST are supported");
    size_t n = part(&at, &word);
    if (is(word, n, "metrics") && !*at)
        return is_get ? send_metrics(c, k->front) : wrong_method(c, "GET");
    if (!is(word, n, "v2"))
        return send_error(c, 404, "no such address; available: /v2 and below, /metrics");
    n = part(&at, &word);
    if (is(word, n, "models"))
        return route_model(k, at, is_get);
    if (is(word, n, "repository"))
        return route_repository(k, at, is_get);
    if (is(word, n, "trace"))
        return route_trace(k, NULL, at, is_get);
    if (!is_get)
        return wrong_method(c, "GET");
    if (n == 0)
        return send_page(c, e, sv_page_server, NULL);
    if (is(word, n, "health")) {
        n = part(&at, &word);
        if (is(word, n, "live") && !*at)
            return send_flag(c, "live", true);
        if (is(word, n, "ready") && !*at)
            return send_flag(c, "ready", atomic_load(&e->is_ready));
    }
    return send_error(c, 404, "no such address");
}

/* ---- libmicrohttpd's calls ---- */

/* Refused before its body: the connection ends with it. */
static enum MHD_Result begin_call(struct call *k, const char *version)
{
    const char *wrong = sv_http_judge(k->connection, version, &k->body.declared);
    if (wrong)
        return send_error(k->connection, 400, wrong);
    k->body.max = k->front->body_max;
    if (k->body.declared > k->body.max)
        return send_error(k->connection, 413, "the request is larger than max_message_bytes");
    sv_gate_headers(k->front->gate, k->visitor);
    return MHD_YES;
}

static enum MHD_Result on_call(void *cls, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **state)
{
    struct call *k = *state;
    if (!k) {
        const union MHD_ConnectionInfo *info =
            sv_mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        k = sv_alloc(sizeof *k);
        k->front = cls;
        k->connection = connection;
        k->visitor = info->socket_context;
        k->begun_ns = stave_now_ns();
        *state = k;
        return begin_call(k, version);
    }
    if (*upload_size) {
        enum MHD_Result result = take_body(k, upload, *upload_size);
        *upload_size = 0;
        return result;
    }
    if (k->is_suspended) {
        sv_gate_answer(k->front->gate, k->visitor);
        return send_result(k);
    }
    sv_gate_complete(k->front->gate, k->visitor);
    return route(k, url, method);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct call *k = *state;
    (void)cls;
    (void)connection;
    if (!k)
        return;
    if (k->is_suspended && !k->was_rejected) /* what has no end yet has no client any more */
        sv_served_ends(k->job.model, &k->job.served, SV_CLIENT_LEFT, NULL);
    sv_inference_over(&k->job, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    if (k->is_suspended)
        atomic_fetch_sub(&k->front->waiting, 1);
    sv_gate_done(k->front->gate, k->visitor);
    sv_inference_fini(&k->job);
    free(k->body.data);
    free(k);
    *state = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct lane *l = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) { /* the descriptor is still open */
        sv_gate_leave(l->front->gate, *context);
        *context = NULL;
        atomic_fetch_sub(&l->n, 1);
        return;
    }
    sv_http_entered(l->front->gate, connection, context);
}

/* ---- opening and closing ---- */

/* Inactivity is the library's own watch; the gate's limits are for those who keep moving. */
static bool start(struct sv_front *f, struct lane *l, int listener)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem socket[] = {{MHD_OPTION_LISTEN_SOCKET, listener, NULL},
                                      {MHD_OPTION_END, 0, NULL}};
    if (listener < 0)
        flags |= MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
    l->front = f;
    l->daemon = sv_mhd.MHD_start_daemon(
        flags, 0, NULL, NULL, on_call, f, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)LANE_MAX + 4u, MHD_OPTION_CONNECTION_TIMEOUT, 120u, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_ARRAY, listener < 0 ? socket + 1 : socket, MHD_OPTION_END);
    return l->daemon != NULL;
}

/* The next one in turn that has a place; further ones are begun when there is none. */
static struct lane *lane_of(struct sv_front *f)
{
    for (unsigned i = 0; i < f->n_lanes; i++) {
        struct lane *l = &f->lanes[f->turn++ % f->n_lanes];
        if (atomic_load(&l->n) < LANE_MAX)
            return l;
    }
    if (f->n_lanes == LANES_MAX || !start(f, &f->lanes[f->n_lanes], -1))
        return NULL;
    return &f->lanes[f->n_lanes++];
}

/* On the door's thread, as are the next two. */
static void enter_http(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    struct lane *l = lane_of(ctx);
    if (!l) {
        sv_gate_refuse(fd, 503, "too many connections");
        close(fd);
        return;
    }
    atomic_fetch_add(&l->n, 1);
    if (sv_mhd.MHD_add_connection(l->daemon, fd, from, len) != MHD_YES)
        atomic_fetch_sub(&l->n, 1); /* it has closed it */
}

static void enter_grpc(void *ctx, int fd)
{
    const struct sv_front *f = ctx;
    sv_grpc_front_take(f->engine->grpc, fd);
}

/* One more than all makes space; those whose end the library has not seen yet count, too. */
static bool is_full(void *ctx)
{
    struct sv_front *f = ctx;
    return sv_gate_count(f->gate).connections >= f->connections + MORE_CONNECTIONS;
}

static int open_door(struct sv_front *f, struct sv_listeners *l, struct sv_err *err)
{
    const struct sv_config *c = f->engine->config;
    const struct sv_door_options o = {
        .listener = l->main,
        .gate = f->gate,
        .http1 = enter_http,
        .http2 = f->engine->grpc ? enter_grpc : NULL,
        .no_http2 = "this server has no gRPC: see grpc_address and its log",
        .is_full = is_full,
        .ctx = f};
    for (; f->n_lanes < (unsigned)c->http_threads; f->n_lanes++)
        if (!start(f, &f->lanes[f->n_lanes], -1))
            return sv_err_sys(err, "cannot serve on %s", c->address);
    int code = sv_door_open(&o, &f->door, err);
    if (code == 0)
        l->main = -1; /* the door's */
    return code;
}

int sv_front_open(struct sv_engine *e, struct sv_listeners *l, struct sv_front **out,
                  struct sv_err *err)
{
    const struct sv_config *c = e->config;
    struct sv_gate_limits limits = {.all_bytes = (size_t)c->max_pending_bytes,
                                    .client_bytes = (size_t)c->max_pending_bytes_per_client,
                                    .header_ms = c->header_timeout_ms,
                                    .request_ms = c->request_timeout_ms,
                                    .idle_ms = 120000,
                                    .answer_ms = 120000,
                                    .connections = sv_gate_connections(CONNECTIONS_MAX)};
    struct sv_front *f = sv_alloc(sizeof *f);
    f->engine = e;
    f->connections = limits.connections;
    f->body_max = (size_t)c->max_message_bytes;
    *out = f;
    int code = sv_mhd_load(err);
    if (code >= 0)
        code = sv_gate_open(&limits, &f->gate, err);
    if (code < 0)
        return code;
    code = open_door(f, l, err);
    if (code < 0)
        return code;
    if (l->metrics >= 0) {
        if (!start(f, &f->metrics, l->metrics))
            return sv_err_sys(err, "cannot serve on metrics_port %lld", (long long)c->metrics_port);
        l->metrics = -1;
    }
    return 0;
}

/* The last answers are on their way when the last batch is done; a client that does not read cannot
 * hold us for ever. */
static void wait_for_answers(struct sv_front *f)
{
    for (int i = 0; i < 5000 && atomic_load(&f->waiting); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Those that a lane was given and that are not closed; some of them the library has not seen yet,
 * and would close without a word. The door has stopped. */
static unsigned in_lanes(struct sv_front *f)
{
    unsigned n = 0;
    for (unsigned i = 0; i < f->n_lanes; i++)
        n += (unsigned)atomic_load(&f->lanes[i].n);
    return n;
}

/* Who keeps a connection may be about to use it: a little while for him to get his 503, and to
 * close it by himself. */
static void linger(struct sv_front *f)
{
    for (int i = 0; i < 1000 && f->gate && sv_gate_count(f->gate).connections; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void sv_front_stop(struct sv_front *f)
{
    if (!f)
        return;
    wait_for_answers(f);
    linger(f);
    sv_door_stop(f->door);
    for (int i = 0; i < 1000 && in_lanes(f); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void sv_front_close(struct sv_front *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < f->n_lanes; i++)
        sv_mhd.MHD_stop_daemon(f->lanes[i].daemon);
    if (f->metrics.daemon)
        sv_mhd.MHD_stop_daemon(f->metrics.daemon);
    sv_door_close(f->door, SV_SAYS_UNREADY);
    sv_gate_close(f->gate);
    free(f);
}
