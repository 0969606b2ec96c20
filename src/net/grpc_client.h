/* Unary calls of a gRPC service elsewhere, one after the other on one connection: for who sends
 * spans to a collector. Waits, within a time limit. No TLS, no proxy, no service configuration, no
 * repetition: that is the caller's.
 *
 *     sv_grpc_client_open("collector", "4317", &c, &err);     asks nobody yet
 *     sv_grpc_client_call(c, "/pkg.Service/Method", bytes, len, limit_ms, &reply);
 *     sv_grpc_client_close(c);
 *
 * Over libgrpc's C core (grpc_library.h). One thread at a time. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"
#include "net/grpc.h"

struct sv_grpc_client;

/* SV_EIO: there is no libgrpc. */
int sv_grpc_client_open(const char *host, const char *port, struct sv_grpc_client **out,
                        struct sv_err *err);
void sv_grpc_client_close(struct sv_grpc_client *c); /* NULL: nothing */

struct sv_grpc_reply {
    unsigned status; /* enum sv_grpc_status, and what else a server may say */
    char why[200];   /* of an error: the server's or the library's words, printable */
    /* At most 64 KiB: the message of an answer, and what the trailer grpc-status-details-bin has
     * (google.rpc.Status). Both to be freed with sv_grpc_reply_fini(). */
    struct sv_buf body, details;
};

/* Always a reply: who is not there, or does not answer in time, is UNAVAILABLE or
 * DEADLINE_EXCEEDED. The next call connects anew then. */
void sv_grpc_client_call(struct sv_grpc_client *c, const char *method, const void *bytes,
                         size_t len, int64_t limit_ms, struct sv_grpc_reply *reply);
void sv_grpc_reply_fini(struct sv_grpc_reply *reply);
