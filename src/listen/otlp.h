/* OTLP for `stave listen`: spans of any OpenTelemetry program, over HTTP and gRPC, into the spool.
 *
 * A request is answered when all of it is in the spool, so that a listener that is killed loses
 * nothing that was acknowledged. A client address is a sender of the spool; its requests are frames
 * of that sender, checked and as protobuf whatever form they came in. Answers are those of the OTLP
 * specification. */
#pragma once

#include "core/base/err.h"
#include "listen/spool.h"

#include <stdint.h>

#define SV_OTLP_ADDRESS      "127.0.0.1:4318"
#define SV_OTLP_GRPC_ADDRESS "127.0.0.1:4317"

struct sv_otlp_options {
    const char
        *address; /* HOST:PORT of HTTP, NULL: the usual; one that others can reach needs a token */
    const char *
        /* HOST:PORT of gRPC; NULL: the usual with the usual `address`, where it is possible */
        grpc;
    bool no_grpc;
    const char
        *token; /* that requests must have: "authorization: Bearer TOKEN"; NULL: none, then: */
    const char
        *user; /* whose requests are taken besides this user's and root's (core/files/peer.h) */
};

struct sv_otlp_door;

/* Binds the ports. */
int sv_otlp_open(const struct sv_otlp_options *o, struct sv_otlp_door **out, struct sv_err *err);
uint16_t sv_otlp_port(const struct sv_otlp_door *d);
uint16_t sv_otlp_grpc_port(const struct sv_otlp_door *d); /* 0: none */
/* Why there is no gRPC on the usual port; NULL: it was not asked for, or there is. */
const char *sv_otlp_without_grpc(const struct sv_otlp_door *d);
/* Takes requests from here on. */
int sv_otlp_start(struct sv_otlp_door *d, struct sv_spool *spool, struct sv_err *err);

struct sv_otlp_counts {
    uint64_t requests, spans, rejected, refused; /* refused: requests that were not taken at all */
    bool lacks_space;                            /* some of them because the spool was full */
};
/* Ends the connections, marks the streams in the spool as whole. NULL is fine. */
struct sv_otlp_counts sv_otlp_close(struct sv_otlp_door *d);
