/* A POST over HTTP/1.1 and its answer, one connection each: for who sends spans to a collector.
 * Waits, within a time limit. What the other side says is bounded and never followed elsewhere: no
 * redirection, no proxy. https is refused: there is no TLS here. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

#include <stdint.h>

struct sv_http_target {
    char host[256], port[8], path[1024];
};

/* http://HOST[:PORT][/PATH]; without a path `path`. SV_EUSAGE with what is wrong. */
int sv_http_target_read(struct sv_http_target *t, const char *url, const char *port,
                        const char *path, struct sv_err *err);
/* grpc://HOST[:PORT]: the same for gRPC. */
int sv_grpc_target_read(struct sv_http_target *t, const char *url, const char *port,
                        struct sv_err *err);

struct sv_http_reply {
    unsigned status;
    unsigned retry_after_s; /* as the server asks; 0: it does not */
    struct sv_buf body;     /* the caller frees it, whatever the result; at most 64 KiB are kept */
};

/* `headers` are whole lines ("name: value\r\n"), NULL: none. 0: there is an answer. SV_EAGAIN:
 * nobody answers there, or not in time: the same may succeed later. SV_EIO: it is no HTTP
 * server. */
int sv_http_post(const struct sv_http_target *t, const char *type, const char *headers,
                 const void *bytes, size_t len, int64_t limit_ms, struct sv_http_reply *reply,
                 struct sv_err *err);
