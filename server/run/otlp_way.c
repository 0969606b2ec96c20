/* See otlp_way.h. What is temporary follows OTLP's specification: of HTTP 429, 502, 503, 504; of
 * gRPC a list of codes, and RESOURCE_EXHAUSTED only where the collector says when. */
#include "server/run/otlp_way.h"

#include "core/base/mem.h"
#include "core/base/wire.h"
#include "formats/otlp/schema.h"
#include "net/grpc_client.h"
#include "net/http_post.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXPORT "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
enum { ASKED_MAX_S = 300 };

struct sv_otlp_way {
    struct sv_http_target target;
    struct sv_grpc_client *grpc; /* NULL: over HTTP */
};

int sv_otlp_way_open(const char *url, struct sv_otlp_way **out, struct sv_err *err)
{
    struct sv_http_target t;
    struct sv_grpc_client *grpc = NULL;
    bool is_grpc = strncasecmp(url, "grpc:", 5) == 0;
    int code = is_grpc ? sv_grpc_target_read(&t, url, "4317", err)
                       : sv_http_target_read(&t, url, "4318", "/v1/traces", err);
    if (code == 0 && is_grpc)
        code = sv_grpc_client_open(t.host, t.port, &grpc, err);
    if (code < 0)
        return code;
    struct sv_otlp_way *w = sv_alloc(sizeof *w);
    *w = (struct sv_otlp_way){.target = t, .grpc = grpc};
    *out = w;
    return 0;
}

void sv_otlp_way_close(struct sv_otlp_way *w)
{
    if (!w)
        return;
    sv_grpc_client_close(w->grpc);
    free(w);
}

/* ---- what the collector says ---- */

static struct sv_pb wire_of(const uint8_t *bytes, size_t len)
{
    return len ? sv_pb_at(bytes, len) : (struct sv_pb){0};
}

static uint64_t rejected_of(const struct sv_buf *body)
{
    struct sv_pb w = wire_of(body->data, body->len);
    struct sv_pb_field f, p;
    uint64_t n = 0;
    while (sv_pb_next(&w, &f))
        if (f.id == OTLP_RESPONSE_PARTIAL && f.type == SV_PB_BYTES)
            for (struct sv_pb part = sv_pb_sub(&f); sv_pb_next(&part, &p);)
                if (p.id == OTLP_PARTIAL_REJECTED && p.type == SV_PB_VARINT)
                    n = p.u;
    return n;
}

static unsigned at_most(uint64_t seconds)
{
    return seconds < ASKED_MAX_S ? (unsigned)seconds : ASKED_MAX_S;
}

/* google.rpc.Duration, rounded up to seconds. */
static unsigned seconds_of(struct sv_pb duration)
{
    uint64_t seconds = 0, nanos = 0;
    struct sv_pb_field f;
    while (sv_pb_next(&duration, &f)) {
        seconds = f.id == 1 && f.type == SV_PB_VARINT ? f.u : seconds;
        nanos = f.id == 2 && f.type == SV_PB_VARINT ? f.u : nanos;
    }
    seconds = (int64_t)seconds < 0 ? 0 : seconds;
    return at_most(seconds < ASKED_MAX_S ? seconds + (nanos != 0) : seconds);
}

/* The google.rpc.RetryInfo among the details of a google.rpc.Status. False: there is none. */
static bool retry_info(const struct sv_buf *status, unsigned *asked_s)
{
    static const char type[] = "type.googleapis.com/google.rpc.RetryInfo";
    struct sv_pb w = wire_of(status->data, status->len);
    struct sv_pb_field f, d, r;
    while (sv_pb_next(&w, &f)) {
        struct sv_pb any = f.id == 3 && f.type == SV_PB_BYTES ? sv_pb_sub(&f) : (struct sv_pb){0};
        bool is_retry = false;
        while (sv_pb_next(&any, &d)) {
            if (d.id == 1 && d.type == SV_PB_BYTES)
                is_retry = d.u == sizeof type - 1 && memcmp(d.bytes, type, sizeof type - 1) == 0;
            if (d.id != 2 || d.type != SV_PB_BYTES || !is_retry)
                continue;
            for (struct sv_pb info = sv_pb_sub(&d); sv_pb_next(&info, &r);)
                if (r.id == 1 && r.type == SV_PB_BYTES)
                    *asked_s = seconds_of(sv_pb_sub(&r));
            return true;
        }
    }
    return false;
}

/* ---- an attempt ---- */

static int send_http(struct sv_otlp_way *w, const struct sv_buf *request, int64_t limit_ms,
                     uint64_t *rejected, unsigned *asked_s, struct sv_err *err)
{
    struct sv_http_reply reply;
    int code = sv_http_post(&w->target, "application/x-protobuf", NULL, request->data, request->len,
                            limit_ms, &reply, err);
    unsigned s = reply.status;
    *asked_s = at_most(reply.retry_after_s);
    if (code >= 0 && s == 200)
        *rejected = rejected_of(&reply.body);
    else if (code >= 0)
        code = sv_error(err, s == 429 || s == 502 || s == 503 || s == 504 ? SV_EAGAIN : SV_EIO,
                        "it answers %u", s);
    sv_buf_fini(&reply.body);
    return code;
}

static bool is_temporary(unsigned status, bool says_when)
{
    enum { ABORTED = 10, OUT_OF_RANGE = 11, DATA_LOSS = 15 };
    switch (status) {
    case SV_GRPC_CANCELLED:
    case SV_GRPC_DEADLINE_EXCEEDED:
    case ABORTED:
    case OUT_OF_RANGE:
    case SV_GRPC_UNAVAILABLE:
    case DATA_LOSS: return true;
    default: return status == SV_GRPC_RESOURCE_EXHAUSTED && says_when;
    }
}

static int send_grpc(struct sv_otlp_way *w, const struct sv_buf *request, int64_t limit_ms,
                     uint64_t *rejected, unsigned *asked_s, struct sv_err *err)
{
    struct sv_grpc_reply reply;
    int code = 0;
    sv_grpc_client_call(w->grpc, EXPORT, request->data, request->len, limit_ms, &reply);
    bool says_when = retry_info(&reply.details, asked_s);
    if (reply.status == SV_GRPC_OK)
        *rejected = rejected_of(&reply.body);
    else
        code = sv_error(err, is_temporary(reply.status, says_when) ? SV_EAGAIN : SV_EIO,
                        "gRPC status %u: %s", reply.status, reply.why);
    sv_grpc_reply_fini(&reply);
    return code;
}

int sv_otlp_way_send(struct sv_otlp_way *w, const struct sv_buf *request, int64_t limit_ms,
                     uint64_t *rejected, unsigned *asked_s, struct sv_err *err)
{
    *rejected = 0;
    *asked_s = 0;
    return w->grpc ? send_grpc(w, request, limit_ms, rejected, asked_s, err)
                   : send_http(w, request, limit_ms, rejected, asked_s, err);
}
