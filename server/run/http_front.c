/* The HTTP front: KServe v2 over libmicrohttpd.
 *
 * libmicrohttpd calls on_call() on its own threads: at the headers, for each piece of the body, at its end, and again when a suspended
 * connection was resumed. An inference suspends its connection until the batch is done; done() resumes it from a worker's thread.
 * Bodies are bounded before they are taken, in size, in number and in time (http_gate.h); every refusal is a JSON error with its status. A request
 * whose length can be read in two ways is refused: a proxy in between may read it the other way. */
#include "server/run/engine.h"

#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "net/http_gate.h"
#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct sv_front {
    struct sv_engine *engine;
    struct MHD_Daemon *daemon, *metrics;
    struct sv_gate *gate;
    size_t body_max;
    int listener;             /* after the stop: ours to close */
    _Atomic uint32_t waiting; /* inferences that are not answered yet */
};

/* One request on a connection, from its headers to its answer. */
struct call {
    struct sv_front *front;
    struct MHD_Connection *connection;
    struct sv_visitor *visitor;
    uint8_t *body;
    size_t len, cap;
    size_t declared; /* Content-Length, 0: not given */
    bool is_suspended;
    struct sv_model *model;
    struct sv_infer_request asked;
    struct sv_served served;
    bool was_rejected;
};

/* ---- answers ---- */

static enum MHD_Result send_bytes(struct MHD_Connection *c, unsigned status, struct sv_buf *b,
                                  const char *type, const char *json_len)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        b->len, b->data, MHD_RESPMEM_MUST_FREE); /* takes the bytes */
    if (!r) {
        sv_buf_fini(b);
        return MHD_NO;
    }
    MHD_add_response_header(r, "Content-Type", type);
    if (json_len)
        MHD_add_response_header(r, "Inference-Header-Content-Length", json_len);
    if (status == 429 || status == 503)
        MHD_add_response_header(r, "Retry-After", "1");
    if (status == 400 || status == 413) /* where this request ends may be in doubt */
        MHD_add_response_header(r, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_json(struct MHD_Connection *c, unsigned status, struct sv_buf *b)
{
    return send_bytes(c, status, b, "application/json", NULL);
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

static enum MHD_Result send_server(struct MHD_Connection *c)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 10);
    sv_buf_printf(
        &b,
        "{\"name\":\"stave-server\",\"version\":\"%s\",\"extensions\":[\"binary_tensor_data\"]}",
        stave_version());
    return send_json(c, 200, &b);
}

static enum MHD_Result send_models(struct MHD_Connection *c, const struct sv_engine *e)
{
    struct sv_buf b;
    struct sv_json j;
    sv_buf_init(&b, 1 << 16);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "models");
    sv_json_begin(&j, '[');
    for (uint32_t i = 0; i < e->n_models; i++)
        sv_json_text(&j, e->models[i].config->name, strlen(e->models[i].config->name));
    sv_json_end(&j);
    sv_json_end(&j);
    return send_json(c, 200, &b);
}

static void print_front(struct sv_front *f, struct sv_buf *b)
{
    struct sv_gate_counts n = sv_gate_count(f->gate);
    sv_metrics_family(b, "http_pending_bytes", "gauge", "memory of incomplete requests");
    sv_metrics_value(b, "http_pending_bytes", "", (double)n.bytes);
    sv_metrics_family(b, "http_connections", "gauge", "open connections");
    sv_metrics_value(b, "http_connections", "", (double)n.connections);
    sv_metrics_family(b, "http_cut_total", "counter",
                      "requests that were ended before they were complete, by reason");
    sv_metrics_value(b, "http_cut_total", "reason=\"client_bytes\"", (double)n.client_full);
    sv_metrics_value(b, "http_cut_total", "reason=\"all_bytes\"", (double)n.all_full);
    sv_metrics_value(b, "http_cut_total", "reason=\"time\"", (double)n.late);
}

static enum MHD_Result send_metrics(struct MHD_Connection *c, struct sv_front *f)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 22);
    sv_metrics_page(f->engine, &b);
    print_front(f, &b);
    return send_bytes(c, 200, &b, "text/plain; version=0.0.4", NULL);
}

static enum MHD_Result send_result(struct call *k)
{
    struct sv_served *s = &k->served;
    struct stave_serving *trace = k->front->engine->trace;
    if (k->was_rejected)
        return atomic_load(&k->front->engine->is_ready)
                   ? send_error(k->connection, 429, "Inference queue is full")
                   : send_error(k->connection, 503, "the server is not ready");
    if (s->is_failed)
        return send_error(k->connection, 500, "the batch could not be computed");
    struct sv_infer_answer a = {.id = k->asked.id,
                                .rows = s->rows,
                                .data = s->out,
                                .is_binary = k->asked.wants_binary,
                                .request = s->id,
                                .batch = s->batch,
                                .batch_rows = s->batch_rows,
                                .worker = s->worker};
    struct sv_buf b;
    size_t json_len;
    char text[24];
    sv_buf_init(&b, (size_t)1 << 30);
    sv_infer_write(&k->model->describes, &a, &b, &json_len);
    snprintf(text, sizeof text, "%zu", json_len);
    enum MHD_Result result = send_bytes(
        k->connection, 200, &b, a.is_binary ? "application/octet-stream" : "application/json",
        a.is_binary ? text : NULL);
    stave_serving_responded(trace, s->id, 0);
    return result;
}

/* ---- bodies ---- */

static void drop_body(struct call *k)
{
    free(k->body);
    k->body = NULL;
    k->len = k->cap = 0;
    sv_gate_give_back(k->front->gate, k->visitor);
}

/* The connection ends with it: what follows would be read for nothing. */
static enum MHD_Result refuse_midway(struct call *k, unsigned status, const char *message)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(k->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    drop_body(k);
    if (fd)
        sv_gate_refuse(fd->connect_fd, status, message);
    return MHD_NO;
}

/* Memory grows with what has come, not with what was announced, and never past that. */
static enum sv_gate_word make_place(struct call *k, size_t n)
{
    size_t need = k->len + n + SV_JSON_PAD, cap = k->cap ? 2 * k->cap : 4096;
    if (need <= k->cap)
        return SV_GATE_OK;
    if (k->declared && cap > k->declared + SV_JSON_PAD)
        cap = k->declared + SV_JSON_PAD;
    if (cap > k->front->body_max + SV_JSON_PAD)
        cap = k->front->body_max + SV_JSON_PAD;
    cap = cap < need ? need : cap;
    enum sv_gate_word word = sv_gate_hold(k->front->gate, k->visitor, cap - k->cap);
    if (word == SV_GATE_OK) {
        k->body = sv_realloc(k->body, cap);
        k->cap = cap;
    }
    return word;
}

static enum MHD_Result take_body(struct call *k, const char *data, size_t n)
{
    if (n > k->front->body_max - k->len)
        return refuse_midway(k, 413, "the request is larger than max_message_bytes");
    switch (make_place(k, n)) {
    case SV_GATE_CLIENT_FULL:
        return refuse_midway(k, 429, "this client has too many unfinished requests");
    case SV_GATE_ALL_FULL: return refuse_midway(k, 503, "too many unfinished requests");
    case SV_GATE_OK: break;
    }
    memcpy(k->body + k->len, data, n);
    k->len += n;
    return MHD_YES;
}

/* How a request says where it ends. */
struct framing {
    unsigned lengths, encodings, odd;
    const char *length, *encoding;
};

/* A name that another begins with: older libraries append the second line of a folded header to its name ("Content-Length:\r\n 5"). */
static bool begins_with(const char *key, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(key, name, n) == 0 && key[n] != '\0';
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    struct framing *f = cls;
    (void)kind;
    f->odd += key[strcspn(key, " \t\r\n\v\f")] != '\0'; /* "Content-Length : 5" */
    f->odd += begins_with(key, "Content-Length") || begins_with(key, "Transfer-Encoding");
    if (strcasecmp(key, "Content-Length") == 0) {
        f->lengths++;
        f->length = value ? value : "";
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        f->encodings++;
        f->encoding = value ? value : "";
    }
    return MHD_YES;
}

/* What is wrong with it, or NULL. */
static const char *judge_framing(const struct framing *f, const char *version)
{
    if (f->odd)
        return "a header name contains a space, or the header is folded";
    if (f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings))
        return "Content-Length and Transfer-Encoding contradict each other";
    if (f->encoding &&
        (strcasecmp(f->encoding, "chunked") != 0 || strcmp(version, "HTTP/1.1") != 0))
        return "only Transfer-Encoding: chunked is supported, in HTTP/1.1";
    if (f->length && (!*f->length || f->length[strspn(f->length, "0123456789")] != '\0'))
        return "Content-Length is not a number";
    return NULL;
}

/* ---- inference ---- */

/* On a worker's thread: the call now belongs to libmicrohttpd again. */
static void on_done(struct sv_served *s)
{
    struct call *k = s->owner;
    MHD_resume_connection(k->connection);
}

static enum MHD_Result infer(struct call *k, struct sv_model *m)
{
    struct sv_err err;
    size_t json_len = k->len;
    const char *header = MHD_lookup_connection_value(k->connection, MHD_HEADER_KIND,
                                                     "Inference-Header-Content-Length");
    if (header) {
        char *end;
        json_len = strtoull(header, &end, 10);
        if (end == header || *end)
            return send_error(k->connection, 400,
                              "Inference-Header-Content-Length is not a number");
    }
    if (k->len == 0)
        return send_error(k->connection, 400, "the request has no body");
    memset(k->body + k->len, 0, SV_JSON_PAD);
    sv_err_clear(&err);
    int code = sv_infer_parse(&m->describes, k->body, k->len, json_len, &k->asked, &err);
    drop_body(k); /* its numbers are elsewhere by now */
    if (code < 0)
        return send_error(k->connection, 400, err.msg);
    if (!atomic_load_explicit(&k->front->engine->is_ready, memory_order_acquire))
        return send_error(k->connection, 503, "the server is not ready");
    k->model = m;
    k->served = (struct sv_served){.id = atomic_fetch_add(&k->front->engine->next_request, 1),
                                   .rows = k->asked.rows,
                                   .in = k->asked.data,
                                   .worker = -1,
                                   .done = on_done,
                                   .owner = k};
    /* First suspended, then enqueued: its batch may be done before we return. */
    k->is_suspended = true;
    atomic_fetch_add(&k->front->waiting, 1);
    MHD_suspend_connection(k->connection);
    if (!sv_queue_push(m, &k->served)) {
        k->was_rejected = true;
        MHD_resume_connection(k->connection);
    }
    return MHD_YES;
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

/* /v2/models/NAME[/versions/V][/ready|/infer] */
static enum MHD_Result route_model(struct call *k, const char *at, bool is_get)
{
    struct sv_engine *e = k->front->engine;
    struct MHD_Connection *c = k->connection;
    const char *word;
    size_t n = part(&at, &word);
    if (n == 0)
        return is_get ? send_models(c, e) : wrong_method(c, "GET");
    const struct sv_model *m = sv_engine_find(e, word, n);
    if (!m)
        return send_error(c, 404, "no such model; GET /v2/models lists them");
    n = part(&at, &word);
    if (is(word, n, "versions")) {
        n = part(&at, &word);
        if (!is(word, n, m->config->version))
            return send_error(c, 404, "no such version of this model");
        n = part(&at, &word);
    }
    if (*at)
        return send_error(c, 404, "no such address");
    if (is(word, n, "infer"))
        return is_get ? wrong_method(c, "POST") : infer(k, &e->models[m - e->models]);
    if (!is_get)
        return wrong_method(c, "GET");
    if (is(word, n, "ready"))
        return send_flag(c, "ready", atomic_load(&e->is_ready));
    if (n)
        return send_error(c, 404, "no such address");
    struct sv_buf b;
    sv_buf_init(&b, 1 << 16);
    sv_infer_describe(&m->describes, &b);
    return send_json(c, 200, &b);
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
    if (!is_get)
        return wrong_method(c, "GET");
    if (n == 0)
        return send_server(c);
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
    struct framing f = {0};
    MHD_get_connection_values(k->connection, MHD_HEADER_KIND, see_header, &f);
    const char *wrong = judge_framing(&f, version);
    if (wrong)
        return send_error(k->connection, 400, wrong);
    unsigned long long length = f.length ? strtoull(f.length, NULL, 10) : 0;
    if (length > k->front->body_max)
        return send_error(k->connection, 413, "the request is larger than max_message_bytes");
    k->declared = (size_t)length;
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
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        k = sv_alloc(sizeof *k);
        k->front = cls;
        k->connection = connection;
        k->visitor = info->socket_context;
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
    (void)why;
    if (!k)
        return;
    if (k->is_suspended)
        atomic_fetch_sub(&k->front->waiting, 1);
    sv_gate_done(k->front->gate, k->visitor);
    free(k->asked.data);
    free(k->served.out);
    free(k->body);
    free(k);
    *state = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct sv_front *f = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) { /* the descriptor is still open */
        sv_gate_leave(f->gate, *context);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int connect_fd = fd->connect_fd;
    const union MHD_ConnectionInfo *who =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr_in *from = (const struct sockaddr_in *)(const void *)who->client_addr;
    *context = sv_gate_enter(f->gate, connect_fd, ntohl(from->sin_addr.s_addr));
}

/* ---- opening and closing ---- */

/* Inactivity is the library's own watch; the gate's limits are for those who keep moving. */
static struct MHD_Daemon *start(struct sv_front *f, int listener)
{
    unsigned threads = (unsigned)f->engine->config->http_threads;
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_call, f,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, f, MHD_OPTION_CONNECTION_LIMIT, 4096u,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, 2048u, MHD_OPTION_CONNECTION_TIMEOUT, 120u,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0u,
        MHD_OPTION_END);
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
                                    .answer_ms = 120000};
    struct sv_front *f = sv_alloc(sizeof *f);
    f->engine = e;
    f->listener = -1;
    f->body_max = (size_t)c->max_message_bytes;
    *out = f;
    int code = sv_gate_open(&limits, &f->gate, err);
    if (code < 0)
        return code;
    f->daemon = start(f, l->main);
    if (!f->daemon)
        return sv_err_sys(err, "cannot serve on %s", c->address);
    l->main = -1; /* closed by libmicrohttpd */
    if (l->metrics >= 0) {
        f->metrics = start(f, l->metrics);
        if (!f->metrics)
            return sv_err_sys(err, "cannot serve on metrics_port %lld", (long long)c->metrics_port);
        l->metrics = -1;
    }
    return 0;
}

void sv_front_stop(struct sv_front *f)
{
    f->listener = f->daemon ? MHD_quiesce_daemon(f->daemon) : -1;
}

/* The last answers are on their way when the last batch is done; a client that does not read cannot hold us for ever. */
static void wait_for_answers(struct sv_front *f)
{
    for (int i = 0; i < 5000 && atomic_load(&f->waiting); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void sv_front_close(struct sv_front *f)
{
    wait_for_answers(f);
    if (f->daemon)
        MHD_stop_daemon(f->daemon);
    if (f->metrics)
        MHD_stop_daemon(f->metrics);
    if (f->listener >= 0)
        close(f->listener);
    sv_gate_close(f->gate);
    free(f);
}
