/* OTLP's requests into the spool: see otlp.h. Called by `stave listen`; requests come on threads of
 * the servers (net/web.h, net/grpc.h). */
#include "listen/otlp.h"
#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/base/wire.h"
#include "core/files/input.h"
#include "core/files/peer.h"
#include "formats/otlp/check.h"
#include "formats/otlp/json.h"
#include "listen/sender.h"
#include "net/grpc.h"
#include "net/http_packed.h"
#include "net/listen_socket.h"
#include "net/web.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { STREAMS_MAX = 256, CONNECTIONS_MAX = 512, CLOSE_MS = 1000 };
#define BODY_MAX   ((size_t)64 << 20) /* as it came, and unpacked */
#define ANSWER_MAX ((size_t)1 << 16)

#define OTHER_USER \
    "the request is of another user: 'stave listen --user UID' or '--token WORD' takes it"
#define PROTOBUF "application/x-protobuf"
#define JSON     "application/json"

struct stream {
    uint32_t client;
    uint64_t events;
    struct sv_spool_sender sender;
};

struct sv_otlp_door {
    struct sv_otlp_options o;
    struct sv_listeners listeners;
    struct sv_web *web;
    struct sv_grpc *grpc;
    struct sv_spool *spool;
    pthread_mutex_t lock; /* of streams and counts */
    struct stream streams[STREAMS_MAX];
    size_t n_streams;
    struct sv_otlp_counts counts;
    bool is_grpc_local;
    char without_grpc[256];
};

/* ---- what is kept ---- */

enum kept { KEPT, KEPT_BAD, KEPT_TOO_LARGE, KEPT_NO_SPACE };

/* The stream of a client, made on first sight; those past the limit share the last. */
static struct stream *stream_of(struct sv_otlp_door *d, uint32_t client)
{
    char name[40];
    bool is_local = client >> 24 == 127;
    client = is_local ? 0x7f000001 : client;
    for (size_t i = 0; i < d->n_streams; i++)
        if (d->streams[i].client == client)
            return &d->streams[i];
    if (d->n_streams == STREAMS_MAX)
        return &d->streams[STREAMS_MAX - 1];
    struct stream *s = &d->streams[d->n_streams];
    if (client)
        snprintf(name, sizeof name, "OTLP %u.%u.%u.%u", client >> 24, client >> 16 & 255,
                 client >> 8 & 255, client & 255);
    else
        snprintf(name, sizeof name, "OTLP");
    if (!sv_spool_add(d->spool, name, is_local ? SV_SPOOL_OTLP_LOCAL : SV_SPOOL_OTLP, &s->sender))
        return NULL;
    s->client = client;
    d->n_streams++;
    return s;
}

/* Under the lock. `frame` begins with the place for its head. */
static bool store(struct sv_otlp_door *d, uint32_t client, struct sv_buf *frame, uint64_t spans)
{
    struct stream *s = stream_of(d, client);
    if (!s)
        return false;
    struct sv_frame head = {.bytes = frame->len - SV_FRAME_HEAD, .events = s->events + spans};
    sv_frame_put(frame->data, &head);
    if (!sv_spool_put(d->spool, &s->sender, frame->data, frame->len))
        return false;
    s->events += spans;
    return true;
}

static void count(struct sv_otlp_door *d, enum kept kept, const struct sv_otlp_checked *c)
{
    d->counts.requests += kept == KEPT;
    d->counts.refused += kept != KEPT;
    d->counts.spans += kept == KEPT ? c->spans : 0;
    d->counts.rejected += kept == KEPT ? c->rejected : 0;
    d->counts.lacks_space |= kept == KEPT_NO_SPACE;
}

/* A request as protobuf. */
static enum kept keep(struct sv_otlp_door *d, uint32_t client, const uint8_t *bytes, size_t len,
                      struct sv_otlp_checked *c)
{
    static const uint8_t place[SV_FRAME_HEAD];
    struct sv_buf frame;
    enum kept kept = KEPT;
    sv_buf_init(&frame, BODY_MAX + SV_FRAME_HEAD);
    sv_buf_reserve(&frame, len + SV_FRAME_HEAD);
    sv_buf_add(&frame, place, sizeof place);
    bool is_sound = sv_otlp_check(bytes, len, &frame, c);
    pthread_mutex_lock(&d->lock);
    if (!is_sound)
        kept = frame.failed ? KEPT_TOO_LARGE : KEPT_BAD;
    else if (c->spans > 0 && !store(d, client, &frame, c->spans))
        kept = KEPT_NO_SPACE;
    count(d, kept, c);
    pthread_mutex_unlock(&d->lock);
    sv_buf_fini(&frame);
    return kept;
}

/* ---- answers ---- */

static void encode_response(struct sv_buf *out, const struct sv_otlp_checked *c)
{
    if (c->rejected == 0)
        return;
    size_t mark = sv_put_begin(out, OTLP_RESPONSE_PARTIAL);
    sv_put_u64(out, OTLP_PARTIAL_REJECTED, c->rejected);
    sv_put_bytes(out, OTLP_PARTIAL_MESSAGE, c->why, strlen(c->why));
    sv_put_end(out, mark);
}

static void encode_status(struct sv_buf *out, unsigned status, const char *message)
{
    /* google.rpc.Code: INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAUTHENTICATED, UNAVAILABLE,
     * UNKNOWN */
    unsigned code = status == 400 || status == 415   ? 3
                    : status == 413 || status == 429 ? 8
                    : status == 401 || status == 403 ? 16
                    : status == 503                  ? 14
                                                     : 2;
    sv_put_u64(out, RPC_STATUS_CODE, code);
    sv_put_bytes(out, RPC_STATUS_MESSAGE, message, strlen(message));
}

/* Is this its type, whatever parameters follow? */
static bool is_type(const char *given, const char *type)
{
    size_t n = strlen(type);
    return given && strncasecmp(given, type, n) == 0 && (!given[n] || strchr("; \t", given[n]));
}

/* The message in the form in which the request came. */
static void give(const struct sv_web_request *q, struct sv_web_answer *a,
                 const struct sv_otlp_message *m, const struct sv_buf *message)
{
    struct sv_json j;
    bool is_json = is_type(sv_web_header(q, "Content-Type"), JSON);
    a->type = is_json ? JSON : PROTOBUF;
    sv_buf_clear(&a->body);
    if (!is_json) {
        sv_buf_add(&a->body, message->data, message->len);
        return;
    }
    sv_json_init(&j, &a->body);
    sv_otlp_to_json(m, message->data, message->len, &j);
}

static void refuse(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a,
                   unsigned status, const char *message)
{
    struct sv_buf encoded;
    (void)ctx;
    sv_buf_init(&encoded, ANSWER_MAX);
    encode_status(&encoded, status, message);
    a->status = status;
    give(q, a, &sv_rpc_status, &encoded);
    sv_buf_fini(&encoded);
}

static void accept_spans(const struct sv_web_request *q, struct sv_web_answer *a,
                         const struct sv_otlp_checked *c)
{
    struct sv_buf encoded;
    sv_buf_init(&encoded, ANSWER_MAX);
    encode_response(&encoded, c);
    give(q, a, &sv_otlp_response, &encoded);
    sv_buf_fini(&encoded);
}

/* ---- HTTP ---- */

static bool has_token(const struct sv_otlp_door *d, const char *given, size_t len)
{
    return sv_token_is_bearer(d->o.token, given, len);
}

/* Before the body. A page of a browser has an Origin; none is let in, so that no site can write
 * into a trace. */
static unsigned judge(void *ctx, const struct sv_web_request *q, const char **message)
{
    const struct sv_otlp_door *d = ctx;
    const char *type = sv_web_header(q, "Content-Type");
    const char *packed = sv_web_header(q, "Content-Encoding");
    const char *token = sv_web_header(q, "Authorization");
    *message = "requests of web pages are refused";
    if (sv_web_header(q, "Origin"))
        return 403;
    *message = "the token is missing or wrong: send 'authorization: Bearer TOKEN'";
    if (d->o.token && !has_token(d, token, token ? strlen(token) : 0))
        return 401;
    *message = OTHER_USER;
    if (!d->o.token && !sv_peer_may(sv_web_uid(q), d->o.user))
        return 403;
    *message = "only traces are taken: POST /v1/traces";
    if (strcmp(q->path, "/v1/traces") != 0)
        return 404;
    *message = "only POST is supported here";
    if (!q->is_post)
        return 405;
    *message = "Content-Type must be " PROTOBUF " or " JSON;
    if (!is_type(type, PROTOBUF) && !is_type(type, JSON))
        return 415;
    *message = "Content-Encoding must be gzip, zstd or identity";
    if (!sv_http_is_known_packing(packed))
        return 415;
    return 0;
}

/* JSON as protobuf. NULL: it is none, `why` says what is wrong. */
static bool from_json(const uint8_t *bytes, size_t len, struct sv_buf *out, char *why, size_t size)
{
    struct sv_otlp_json how = {0};
    const uint8_t *end = bytes + len, *p = len ? sv_json_solid(bytes, end) : end;
    sv_buf_reserve(out, len / 2); /* most requests are less than half as long as protobuf */
    const uint8_t *q = p < end ? sv_otlp_from_json(&sv_otlp_request, p, end, out, &how) : NULL;
    if (q && sv_json_solid(q, end) == end)
        return true;
    snprintf(why, size, "byte %zu: %s",
             (size_t)((how.at ? how.at
                       : q    ? q
                              : p) -
                      bytes),
             how.why ? how.why : "a JSON object is expected");
    return false;
}

static void answer(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_otlp_door *d = ctx;
    struct sv_otlp_checked c = {0};
    struct sv_http_unpacked u;
    struct sv_buf json;
    char why[200] = "";
    sv_buf_init(&json, BODY_MAX);
    unsigned status =
        sv_http_unpack(sv_web_header(q, "Content-Encoding"), q->body, q->len, BODY_MAX, &u);
    const uint8_t *bytes = u.bytes;
    size_t len = u.len;
    const char *message = status ? u.message : why;
    if (status == 0 && is_type(sv_web_header(q, "Content-Type"), JSON)) {
        status = from_json(bytes, len, &json, why, sizeof why) ? 0 : 400;
        bytes = json.data;
        len = json.len;
    }
    if (status == 0) {
        switch (keep(d, sv_web_client(q), bytes, len, &c)) {
        case KEPT: break;
        case KEPT_BAD:
            status = 400;
            message = "the body is not an ExportTraceServiceRequest";
            break;
        case KEPT_TOO_LARGE:
            status = 413;
            message = "the request is too large";
            break;
        case KEPT_NO_SPACE:
            status = 503;
            message = "no space is left for spans";
            break;
        }
    } else {
        pthread_mutex_lock(&d->lock);
        d->counts.refused++;
        pthread_mutex_unlock(&d->lock);
    }
    if (status)
        refuse(d, q, a, status, message);
    else
        accept_spans(q, a, &c);
    sv_buf_fini(&json);
    sv_http_unpacked_free(&u);
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0;
}

/* ---- gRPC ---- */

static void on_export(void *ctx, struct sv_grpc_call *call, const uint8_t *bytes, size_t len)
{
    struct sv_otlp_door *d = ctx;
    struct sv_otlp_checked c = {0};
    struct sv_buf response;
    size_t token_len = 0;
    const char *token = sv_grpc_header(call, "authorization", &token_len);
    if (d->o.token && !has_token(d, token, token_len)) {
        sv_grpc_fail(call, SV_GRPC_UNAUTHENTICATED, "the token is missing or wrong");
        return;
    }
    if (!d->o.token && !sv_peer_may(sv_grpc_uid(call), d->o.user)) {
        sv_grpc_fail(call, SV_GRPC_PERMISSION_DENIED, OTHER_USER);
        return;
    }
    switch (keep(d, d->is_grpc_local ? 0x7f000001 : 0, bytes, len, &c)) {
    case KEPT: break;
    case KEPT_BAD:
        sv_grpc_fail(call, SV_GRPC_INVALID_ARGUMENT, "not an ExportTraceServiceRequest");
        return;
    case KEPT_TOO_LARGE:
        sv_grpc_fail(call, SV_GRPC_RESOURCE_EXHAUSTED, "the request is too large");
        return;
    case KEPT_NO_SPACE:
        sv_grpc_fail(call, SV_GRPC_UNAVAILABLE, "no space is left for spans");
        return;
    }
    sv_buf_init(&response, ANSWER_MAX);
    encode_response(&response, &c);
    sv_grpc_answer(call, response.data, response.len);
    sv_buf_fini(&response);
}

static const struct sv_grpc_method methods[] = {
    {"/opentelemetry.proto.collector.trace.v1.TraceService/Export", on_export, false},
};

static int open_grpc(struct sv_otlp_door *d, const char *address, struct sv_err *err)
{
    struct sv_grpc_options o = {.methods = methods,
                                .n_methods = sizeof methods / sizeof *methods,
                                .ctx = d,
                                .message_max = BODY_MAX};
    d->is_grpc_local = is_loopback(address);
    if (!d->o.token && !d->is_grpc_local)
        return sv_error(err, SV_EUSAGE,
                        "%.200s: an address that other machines can reach needs --token", address);
    return sv_grpc_open(&o, address, &d->grpc, err);
}

/* The usual port, where there is a library and nobody else has it. */
static void try_grpc(struct sv_otlp_door *d)
{
    struct sv_err why = {0};
    if (open_grpc(d, SV_OTLP_GRPC_ADDRESS, &why) < 0)
        snprintf(d->without_grpc, sizeof d->without_grpc, "%.200s", why.msg);
}

/* ---- life ---- */

int sv_otlp_open(const struct sv_otlp_options *o, struct sv_otlp_door **out, struct sv_err *err)
{
    struct sv_otlp_door *d = *out = sv_alloc(sizeof *d);
    d->o = *o;
    d->listeners.main = d->listeners.metrics = -1;
    pthread_mutex_init(&d->lock, NULL);
    struct sv_err why = {0};
    if (sv_web_load(&why) < 0)
        return sv_error(err, SV_EUSAGE, "--otlp: %s", why.msg);
    if (!o->token && o->address && !is_loopback(o->address))
        return sv_error(err, SV_EUSAGE,
                        "%.200s: an address that other machines can reach needs --token",
                        o->address);
    int code = sv_listeners_open(&d->listeners, o->address ? o->address : SV_OTLP_ADDRESS, 0, err);
    if (code >= 0 && o->grpc)
        code = open_grpc(d, o->grpc, err);
    else if (code >= 0 && !o->address && !o->no_grpc)
        try_grpc(d);
    return code;
}

uint16_t sv_otlp_port(const struct sv_otlp_door *d)
{
    return d->listeners.port;
}

uint16_t sv_otlp_grpc_port(const struct sv_otlp_door *d)
{
    return d->grpc ? sv_grpc_port(d->grpc) : 0;
}

const char *sv_otlp_without_grpc(const struct sv_otlp_door *d)
{
    return d->without_grpc[0] ? d->without_grpc : NULL;
}

int sv_otlp_start(struct sv_otlp_door *d, struct sv_spool *spool, struct sv_err *err)
{
    struct sv_web_options web = {.answer = answer,
                                 .ctx = d,
                                 .body_max = BODY_MAX,
                                 .answer_max = ANSWER_MAX,
                                 .judge = judge,
                                 .refuse = refuse,
                                 .listener = d->listeners.main,
                                 .connections = CONNECTIONS_MAX};
    d->spool = spool;
    d->listeners.main = -1;
    int code = sv_web_open(&web, &d->web, err);
    return code >= 0 && d->grpc ? sv_grpc_start(d->grpc, err) : code;
}

struct sv_otlp_counts sv_otlp_close(struct sv_otlp_door *d)
{
    struct sv_otlp_counts counts = {0};
    if (!d)
        return counts;
    sv_web_close(d->web);
    bool is_quiet = true;
    if (d->grpc) {
        sv_grpc_stop(d->grpc);
        is_quiet = sv_grpc_close(d->grpc, CLOSE_MS);
    }
    sv_listeners_close(&d->listeners);
    for (size_t i = 0; i < d->n_streams; i++) {
        struct stream *s = &d->streams[i];
        s->sender.slot.cause = SV_SPOOL_WHOLE;
        s->sender.slot.events = s->events;
        sv_spool_note(d->spool, &s->sender);
    }
    counts = d->counts;
    if (is_quiet) {
        pthread_mutex_destroy(&d->lock);
        free(d);
    }
    return counts;
}
