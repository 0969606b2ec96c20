/* A gRPC server: methods by name, messages as bytes, answers from any thread.
 *
 *     static const struct sv_grpc_method methods[] = {{"/pkg.Service/Method", on_method, false}};
 *     struct sv_grpc_options o = {.methods = methods, .n_methods = 1, .ctx = me, .message_max = 4
 *     << 20};
 *     int code = sv_grpc_open(&o, "127.0.0.1:8001", &g, err);     // the port is taken, clients
 *         that connect wait
 *     code = sv_grpc_start(g, err);                               // from here on methods are
 *         called
 *     … sv_grpc_stop(g); sv_grpc_close(g, 5000);
 *
 * A method is called with each complete message, on one of the server's threads, which must not
 * wait. Each message is answered exactly once, at once or later, by sv_grpc_answer() or
 * sv_grpc_fail(); until then its call stays valid, also when the client has gone (the answer is
 * dropped then). A unary call has one message; a stream has any number, whose answers are sent in
 * the order in which they are given.
 *
 * Over the C core of libgrpc, whose library is loaded when the first server is opened: programs
 * that never open one do not pay for it. What it logs is dropped unless GRPC_VERBOSITY is set. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum sv_grpc_status { /* the protocol's numbers */
                      SV_GRPC_OK = 0,
                      SV_GRPC_CANCELLED = 1,
                      SV_GRPC_INVALID_ARGUMENT = 3,
                      SV_GRPC_DEADLINE_EXCEEDED = 4,
                      SV_GRPC_NOT_FOUND = 5,
                      SV_GRPC_PERMISSION_DENIED = 7,
                      SV_GRPC_RESOURCE_EXHAUSTED = 8,
                      SV_GRPC_FAILED_PRECONDITION = 9,
                      SV_GRPC_UNIMPLEMENTED = 12,
                      SV_GRPC_INTERNAL = 13,
                      SV_GRPC_UNAVAILABLE = 14,
                      SV_GRPC_UNAUTHENTICATED = 16
};

struct sv_grpc;      /* a server */
struct sv_grpc_call; /* what a client calls: unary or a stream */

struct sv_grpc_method {
    const char *path;
    /* The bytes are valid until it returns. */
    void (*message)(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len);
    bool is_stream;
};

struct sv_grpc_options {
    const struct sv_grpc_method *methods; /* outlive the server */
    size_t n_methods;
    void *ctx;
    size_t message_max;  /* bytes of a message, also after it was decompressed */
    size_t memory_max;   /* that all connections may take for what they receive; 0: 256 MiB */
    unsigned threads;    /* 0: 1 */
    unsigned calls_max;  /* open at once, more are refused; 0: 1024 */
    unsigned stream_max; /* messages of a stream that wait for their answer; 0: 16 */
    int64_t read_ms;     /* time for the message of a unary call; 0: 30000 */
};

struct sv_grpc_counts {
    uint64_t calls, failed, gone, late, refused;
    uint32_t open; /* calls now */
};

/* HOST:PORT; IPv4, port 0: any that is free. NULL: no port, only connections that are given to
 * it. */
int sv_grpc_open(const struct sv_grpc_options *o, const char *address, struct sv_grpc **out,
                 struct sv_err *err);
int sv_grpc_start(struct sv_grpc *g, struct sv_err *err);
uint16_t sv_grpc_port(const struct sv_grpc *g); /* 0: none */
/* A connected socket whose client begins with HTTP/2, of which nothing was taken; the server's from
 * then on. Its calls have no user (sv_grpc_uid). After the start; from any thread. */
void sv_grpc_adopt(struct sv_grpc *g, int fd);
struct sv_grpc_counts sv_grpc_count(struct sv_grpc *g);
/* No new calls; the open ones continue. */
void sv_grpc_stop(struct sv_grpc *g);
/* Waits so long for the open calls, then cancels them. false: there are messages that nobody has
 * answered; the server's memory is left alone then. */
bool sv_grpc_close(struct sv_grpc *g, int64_t limit_ms);

/* Takes a copy of the bytes. A unary call ends with it. */
void sv_grpc_answer(struct sv_grpc_call *c, const void *bytes, size_t len);
/* The call ends with this status, a stream also for its other messages (which are still to be
 * answered). */
void sv_grpc_fail(struct sv_grpc_call *c, enum sv_grpc_status status, const char *message);
/* The client has cancelled, its deadline has passed or its connection is lost: nobody waits for the
 * answer. From any thread. */
bool sv_grpc_is_gone(const struct sv_grpc_call *c);
/* A header of the call (its name in lower case), or NULL; not terminated. */
const char *sv_grpc_header(const struct sv_grpc_call *c, const char *name, size_t *len);

/* The user who calls, if he is on this machine (core/files/peer.h). */
uid_t sv_grpc_uid(const struct sv_grpc_call *c);

/* A header of the answer, in its initial metadata. One at most, before the first answer; later ones
 * are ignored. From any thread. */
void sv_grpc_answer_header(struct sv_grpc_call *c, const char *name, const char *value);

/* The version of the library that is there, or NULL with the reason and what to do in `why`. */
const char *sv_grpc_version(char *why, size_t size);
