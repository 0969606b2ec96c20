/* What clients of the server may hold, and for how long: bytes of bodies that are not complete, and
 * connections that do not get on.
 *
 * The HTTP front reports each step of a connection; a thread of its own ends those that exceed
 * their time. A client is an address.
 *
 *   enter → [headers → hold… → complete → done]… → leave
 *
 * `enter` and `done` begin the time for the next headers, `headers` that for the body, `complete`
 * ends it. All calls from any thread. */
#pragma once

#include "core/base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sv_gate_limits {
    size_t all_bytes, client_bytes; /* of bodies that are not complete */
    int64_t header_ms, request_ms, idle_ms,
        answer_ms; /* time for: the first headers, a body, the next request, an answer */
    /* So many connections at once; 0: any number. One more takes the place of the one that has
     * waited longest for its client: slow clients cannot keep others out. */
    size_t connections;
};

/* How many connections this process can have beside the descriptors that are open now, at most
 * `wanted`. */
size_t sv_gate_connections(size_t wanted);

struct sv_gate;
struct sv_visitor; /* a connection */

int sv_gate_open(const struct sv_gate_limits *limits, struct sv_gate **out, struct sv_err *err);
void sv_gate_close(struct sv_gate *g); /* when all have left */

struct sv_visitor *sv_gate_enter(struct sv_gate *g, int fd, uint32_t client);
/* Whose connection it is (core/files/peer.h), and how many are a user's. */
void sv_gate_of_user(struct sv_gate *g, struct sv_visitor *v, uid_t uid);
size_t sv_gate_count_user(struct sv_gate *g, uid_t uid);
void sv_gate_leave(struct sv_gate *g, struct sv_visitor *v); /* before the descriptor is closed */
void sv_gate_headers(struct sv_gate *g, struct sv_visitor *v);
void sv_gate_complete(struct sv_gate *g, struct sv_visitor *v); /* its request is being worked on */
void sv_gate_answer(struct sv_gate *g, struct sv_visitor *v);   /* its answer is being sent */
void sv_gate_done(struct sv_gate *g, struct sv_visitor *v);

enum sv_gate_word { SV_GATE_OK, SV_GATE_CLIENT_FULL, SV_GATE_ALL_FULL };
/* `bytes` more for the body of this connection; otherwise nothing changes. */
enum sv_gate_word sv_gate_hold(struct sv_gate *g, struct sv_visitor *v, size_t bytes);
void sv_gate_give_back(struct sv_gate *g, struct sv_visitor *v); /* all of it */

struct sv_gate_counts {
    size_t bytes, connections;            /* held now */
    uint64_t client_full, all_full, late; /* refused for that reason */
    uint64_t displaced;                   /* ended so that others could connect */
};
struct sv_gate_counts sv_gate_count(struct sv_gate *g);

/* An answer in the middle of a request, which the HTTP library does not support: the connection
 * ends with it. */
void sv_gate_refuse(int fd, unsigned status, const char *message);
