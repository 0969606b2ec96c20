/* The web server of the viewer, and of OTLP: checks, limits and headers around a function that
 * answers. See web.h.
 *
 * libmicrohttpd has a thread for each connection and calls on_call() there: at the headers, for
 * each piece of the body, and at its end. The checks come before the body: who has no token cannot
 * make us take one. */
#include "net/web.h"

#include "core/base/json.h"

#include <stdarg.h>
#include <stdio.h>

void sv_web_error(struct sv_web_answer *a, unsigned status, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sv_buf_clear(&a->body);
    a->fixed = NULL;
    a->status = status;
    a->type = "application/json";
    sv_buf_str(&a->body, "{\"error\":");
    sv_json_escape(&a->body, text, strlen(text));
    sv_buf_byte(&a->body, '}');
}

#ifdef SV_HAVE_MICROHTTPD
#include "core/base/mem.h"
#include "core/files/peer.h"
#include "net/http_late.h"
#include "net/http_request.h"
#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

/* A socket that listens. Its thread accepts one connection after the other. */
struct door {
    struct sv_web *web;
    struct MHD_Daemon *daemon;
    struct sockaddr_storage own;
    uid_t uid; /* of the stranger who comes in now */
    bool is_stranger;
};

struct sv_web {
    struct sv_web_options o;
    struct door doors[2]; /* IPv4 or the Unix socket; IPv6 */
    struct sv_gate *gate;
    uint16_t port;
    char token[33];
    char *socket;
};

/* One request on a connection, from its headers to its answer. */
struct call {
    struct sv_web *web;
    struct sv_visitor *visitor;
    struct sv_http_body body;
    bool is_post;
};

int sv_web_load(struct sv_err *err)
{
    return sv_mhd_load(err);
}

uint16_t sv_web_port(const struct sv_web *w)
{
    return w->port;
}

const char *sv_web_token(const struct sv_web *w)
{
    return w->token;
}

const char *sv_web_param(const struct sv_web_request *q, const char *name)
{
    return sv_mhd.MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *sv_web_header(const struct sv_web_request *q, const char *name)
{
    return sv_mhd.MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}

uint32_t sv_web_client(const struct sv_web_request *q)
{
    const union MHD_ConnectionInfo *who =
        sv_mhd.MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *from = who ? who->client_addr : NULL;
    if (!from || from->sa_family != AF_INET)
        return 0;
    return ntohl(((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr);
}

uid_t sv_web_uid(const struct sv_web_request *q)
{
    const union MHD_ConnectionInfo *at =
        sv_mhd.MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return at ? sv_peer_uid(at->connect_fd) : SV_PEER_UNKNOWN;
}

/* ---- answers ---- */

#define SMALL 1024u /* not worth compressing */

/* Through a fast link compressing takes longer than sending; a browser asks for it always, so the
 * page says whether it is near. */
static bool takes_gzip(struct MHD_Connection *c)
{
    const char *accepted =
        sv_mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept-Encoding");
    return accepted && strstr(accepted, "gzip") &&
           !sv_mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "X-Stave-Near");
}

/* Fast rather than small: the page is waiting. */
static bool compress_body(struct sv_buf *b)
{
    z_stream z = {0};
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t cap = deflateBound(&z, b->len);
    uint8_t *out = sv_realloc(NULL, cap);
    z.next_in = b->data;
    z.avail_in = (uInt)b->len;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    bool is_done = deflate(&z, Z_FINISH) == Z_STREAM_END;
    deflateEnd(&z);
    if (!is_done) {
        free(out);
        return false;
    }
    free(b->data);
    b->data = out;
    b->len = z.total_out;
    b->cap = cap;
    return true;
}

static void add_headers(const struct sv_web *w, struct MHD_Response *r, const char *type)
{
    sv_mhd.MHD_add_response_header(r, "Content-Type", type ? type : "application/json");
    if (w->o.policy)
        sv_mhd.MHD_add_response_header(r, "Content-Security-Policy", w->o.policy);
    sv_mhd.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    sv_mhd.MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    sv_mhd.MHD_add_response_header(r, "Cache-Control", "no-store");
    sv_mhd.MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    sv_mhd.MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
}

static enum MHD_Result send_answer(struct sv_web *w, struct MHD_Connection *c,
                                   struct sv_web_answer *a)
{
    struct MHD_Response *r;
    bool is_packed = false;
    if (a->fixed) {
        sv_buf_fini(&a->body);
        r = sv_mhd.MHD_create_response_from_buffer(a->fixed_len, (void *)(uintptr_t)a->fixed,
                                                   MHD_RESPMEM_PERSISTENT);
    } else {
        if (a->body.failed)
            sv_web_error(a, 413, "the answer is too large: ask for less");
        is_packed = a->body.len > SMALL && takes_gzip(c) && compress_body(&a->body);
        r = sv_mhd.MHD_create_response_from_buffer(a->body.len, a->body.data,
                                                   MHD_RESPMEM_MUST_FREE);
        if (!r)
            sv_buf_fini(&a->body);
    }
    if (!r)
        return MHD_NO;
    unsigned status = a->status ? a->status : 200;
    add_headers(w, r, a->type);
    if (is_packed)
        sv_mhd.MHD_add_response_header(r, "Content-Encoding", "gzip");
    if (status == 400 || status == 413)
        sv_mhd.MHD_add_response_header(r, "Connection", "close");
    if (status == 429 || status == 503)
        sv_mhd.MHD_add_response_header(r, "Retry-After", "1");
    enum MHD_Result result = sv_mhd.MHD_queue_response(c, status, r);
    sv_mhd.MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_error(struct sv_web *w, struct MHD_Connection *c, const char *url,
                                  unsigned status, const char *message)
{
    struct sv_web_answer a = {0};
    struct sv_web_request q = {.path = url, .connection = c};
    sv_buf_init(&a.body, 1u << 16);
    if (w->o.refuse)
        w->o.refuse(w->o.ctx, &q, &a, status, message);
    else
        sv_web_error(&a, status, "%s", message);
    return send_answer(w, c, &a);
}

/* ---- who asks ---- */

/* NAME or NAME:PORT with a loopback name. Behind a Unix socket any port will do: it is that of the
 * user's ssh. */
static bool is_our_host(const struct sv_web *w, const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        char port[8];
        snprintf(port, sizeof port, ":%u", w->port);
        if (strncmp(host, names[i], n) == 0 &&
            (strcmp(host + n, port) == 0 ||
             (w->socket &&
              (!host[n] || (host[n] == ':' && !host[n + 1 + strspn(host + n + 1, "0123456789")])))))
            return true;
    }
    return false;
}

static bool is_our_origin(const struct sv_web *w, const char *origin, const char *host)
{
    return strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0 &&
           is_our_host(w, origin + 7);
}

/* Takes as long for a wrong token as for a right one. */
static bool is_token(const struct sv_web *w, const char *given)
{
    size_t n = strlen(w->token);
    unsigned differ = !given || strlen(given) != n;
    for (size_t i = 0; !differ && i < n; i++)
        differ |= (unsigned)(given[i] ^ w->token[i]) << 8;
    return !differ;
}

/* The status of a refusal, or 0. */
static unsigned judge_caller(const struct sv_web *w, struct MHD_Connection *c, const char *url,
                             bool is_post, const char **message)
{
    struct sv_web_request q = {.path = url, .is_post = is_post, .connection = c};
    if (w->o.judge)
        return w->o.judge(w->o.ctx, &q, message);
    const char *host = sv_mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    const char *origin = sv_mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
    if (!host || !is_our_host(w, host)) {
        *message = "the name in Host is not this machine's loopback address";
        return 403;
    }
    if (origin && !is_our_origin(w, origin, host)) {
        *message = "requests of other sites are refused";
        return 403;
    }
    if (strncmp(url, "/api", 4) == 0 &&
        !is_token(w, sv_mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "X-Stave-Token"))) {
        *message = "the token is missing or wrong: use the URL that 'stave view' printed";
        return 401;
    }
    return 0;
}

/* ---- libmicrohttpd's calls ---- */

static enum MHD_Result begin_call(struct call *k, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version)
{
    const char *message;
    k->is_post = strcmp(method, "POST") == 0;
    unsigned status = judge_caller(k->web, c, url, k->is_post, &message);
    if (status)
        return send_error(k->web, c, url, status, message);
    if (!k->is_post && strcmp(method, "GET") != 0)
        return send_error(k->web, c, url, 405, "only GET and POST are supported");
    message = sv_http_judge(c, version, &k->body.declared);
    if (message)
        return send_error(k->web, c, url, 400, message);
    k->body.max = k->web->o.body_max;
    if (k->body.declared > k->body.max)
        return send_error(k->web, c, url, 413, "the request is too large");
    sv_gate_headers(k->web->gate, k->visitor);
    return MHD_YES;
}

static enum MHD_Result answer_call(struct call *k, struct MHD_Connection *c, const char *url)
{
    struct sv_web_request q = {.path = url,
                               .is_post = k->is_post,
                               .body = k->body.data,
                               .len = k->body.len,
                               .connection = c};
    struct sv_web_answer a = {0};
    sv_gate_complete(k->web->gate, k->visitor);
    sv_http_complete(&k->body);
    sv_buf_init(&a.body, k->web->o.answer_max);
    k->web->o.answer(k->web->o.ctx, &q, &a);
    sv_http_drop(&k->body, k->web->gate, k->visitor);
    sv_gate_answer(k->web->gate, k->visitor);
    return send_answer(k->web, c, &a);
}

static enum MHD_Result on_call(void *cls, struct MHD_Connection *c, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **state)
{
    struct call *k = *state;
    if (!k) {
        const union MHD_ConnectionInfo *info =
            sv_mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        k = sv_alloc(sizeof *k);
        k->web = cls;
        k->visitor = info->socket_context;
        *state = k;
        return begin_call(k, c, url, method, version);
    }
    if (*upload_size) {
        const char *message;
        unsigned status =
            sv_http_take(&k->body, k->web->gate, k->visitor, upload, *upload_size, &message);
        *upload_size = 0;
        if (status == 0)
            return MHD_YES;
        sv_http_drop(&k->body, k->web->gate, k->visitor);
        sv_http_refuse(c, status, message);
        return MHD_NO;
    }
    return answer_call(k, c, url);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct call *k = *state;
    (void)cls;
    (void)c;
    (void)why;
    if (!k)
        return;
    sv_http_drop(&k->body, k->web->gate, k->visitor);
    sv_gate_done(k->web->gate, k->visitor);
    free(k);
    *state = NULL;
}

enum { CONNECTIONS = 64, STRANGERS_SHARE = 4 };

static unsigned connections_max(const struct sv_web *w)
{
    return w->o.connections ? w->o.connections : CONNECTIONS;
}

/* Another user of this machine may have the token, and may have none and want to keep the owner
 * out: each gets a part of the connections, and those of the owner are never among them. */
static enum MHD_Result on_accept(void *cls, const struct sockaddr *from, socklen_t len)
{
    struct door *d = cls;
    (void)len;
    d->is_stranger = false;
    if (from->sa_family == AF_UNIX || !sv_peer_is_loopback(from))
        return MHD_YES;
    d->uid = sv_peer_uid_of((const struct sockaddr *)&d->own, from);
    d->is_stranger = !sv_peer_may(d->uid, NULL);
    return d->is_stranger && sv_gate_count_user(d->web->gate, d->uid) >=
                                 connections_max(d->web) / STRANGERS_SHARE
               ? MHD_NO
               : MHD_YES;
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct door *d = cls;
    struct sv_web *w = d->web;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) { /* the descriptor is still open */
        sv_gate_leave(w->gate, *context);
        *context = NULL;
    } else {
        sv_http_entered(w->gate, c, context);
        if (d->is_stranger)
            sv_gate_of_user(w->gate, *context, d->uid);
    }
}

/* ---- sockets ---- */

enum { BACKLOG = 1024 };
/* For the headers and a piece of the body. Whoever takes large bodies asks the kernel less often
 * with more. */
#define PAGE_BYTES ((size_t)32 << 10)
#define BULK_BYTES ((size_t)128 << 10)

/* A name that is there already is refused, whatever it is: it may be another viewer's. */
static int listen_on_path(struct sv_web *w, struct sv_err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(w->o.socket) >= sizeof a.sun_path)
        return sv_error(err, SV_EUSAGE, "--socket: a name of at most %zu bytes",
                        sizeof a.sun_path - 1);
    memcpy(a.sun_path, w->o.socket, strlen(w->o.socket) + 1);
    mode_t before = umask(0177); /* 0600 from the first moment on */
    int fd = sv_listen_on((const struct sockaddr *)&a, sizeof a, BACKLOG);
    umask(before);
    if (fd < 0)
        return sv_err_sys(err, "cannot listen on %s", w->o.socket);
    w->socket = sv_strndup(w->o.socket, strlen(w->o.socket));
    return fd;
}

static int listen_on_port(struct sv_web *w, struct sv_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(w->o.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = sv_listen_on((const struct sockaddr *)&a, sizeof a, BACKLOG);
    if (fd < 0)
        return sv_err_sys(err, "cannot listen on port %u of 127.0.0.1", w->o.port);
    getsockname(fd, (struct sockaddr *)&a, &len);
    w->port = ntohs(a.sin_port);
    return fd;
}

/* -1: this machine has no IPv6, or another program has the port there. */
static int listen_on_ipv6(const struct sv_web *w)
{
    struct sockaddr_in6 a = {
        .sin6_family = AF_INET6, .sin6_port = htons(w->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return w->port ? sv_listen_on((const struct sockaddr *)&a, sizeof a, BACKLOG) : -1;
}

static struct MHD_Daemon *start(struct sv_web *w, struct door *door, int listener)
{
    socklen_t len = sizeof door->own;
    door->web = w;
    getsockname(listener, (struct sockaddr *)&door->own, &len);
    struct MHD_Daemon *d = door->daemon = sv_mhd.MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
        on_accept, door, on_call, w, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, door, MHD_OPTION_CONNECTION_LIMIT, connections_max(w),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, w->o.judge ? BULK_BYTES : PAGE_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, 120u, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!d)
        close(listener);
    return d;
}

static int make_token(struct sv_web *w, struct sv_err *err)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return sv_err_sys(err, "cannot make a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(w->token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int sv_web_open(const struct sv_web_options *o, struct sv_web **out, struct sv_err *err)
{
    struct sv_gate_limits limits = {.all_bytes = 4 * o->body_max,
                                    .client_bytes = 4 * o->body_max,
                                    .header_ms = 10000,
                                    .request_ms = 30000,
                                    .idle_ms = 120000,
                                    .answer_ms = 120000};
    struct sv_web *w = *out = sv_alloc(sizeof *w);
    w->o = *o;
    int code = sv_mhd_load(err);
    if (code >= 0)
        code = make_token(w, err);
    if (code >= 0)
        code = sv_gate_open(&limits, &w->gate, err);
    if (code < 0)
        return code;
    int fd = o->judge ? o->listener : o->socket ? listen_on_path(w, err) : listen_on_port(w, err);
    if (fd < 0)
        return err->code;
    if (!start(w, &w->doors[0], fd))
        return sv_err_sys(err, "cannot start the web server");
    int fd6 = o->judge ? -1 : listen_on_ipv6(w);
    if (fd6 >= 0)
        start(w, &w->doors[1], fd6);
    return 0;
}

void sv_web_close(struct sv_web *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < 2; i++)
        if (w->doors[i].daemon)
            sv_mhd.MHD_stop_daemon(w->doors[i].daemon);
    if (w->socket)
        unlink(w->socket);
    free(w->socket);
    if (w->gate)
        sv_gate_close(w->gate);
    free(w);
}
#else
int sv_web_load(struct sv_err *err)
{
    return sv_error(err, SV_EUSAGE, "built without libmicrohttpd: install it and build again");
}
uint16_t sv_web_port(const struct sv_web *w)
{
    (void)w;
    return 0;
}
const char *sv_web_token(const struct sv_web *w)
{
    (void)w;
    return "";
}
const char *sv_web_param(const struct sv_web_request *q, const char *name)
{
    (void)q;
    (void)name;
    return NULL;
}
const char *sv_web_header(const struct sv_web_request *q, const char *name)
{
    return sv_web_param(q, name);
}
uint32_t sv_web_client(const struct sv_web_request *q)
{
    (void)q;
    return 0;
}
uid_t sv_web_uid(const struct sv_web_request *q)
{
    (void)q;
    return (uid_t)-1;
}
int sv_web_open(const struct sv_web_options *o, struct sv_web **out, struct sv_err *err)
{
    (void)o;
    *out = NULL;
    return sv_web_load(err);
}
void sv_web_close(struct sv_web *w)
{
    (void)w;
}
#endif
