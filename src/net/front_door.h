/* One port for HTTP/1 and HTTP/2 (gRPC): accepts connections, looks at their first bytes without
 * taking them, and gives each socket to who speaks its language.
 *
 *     struct sv_door_options o = {.listener = fd, .gate = gate, .http1 = …, .http2 = …, .ctx = me};
 *     int code = sv_door_open(&o, &door, err);          // a thread of its own from here on
 *     … sv_door_stop(door);                             // takes nobody any more, who comes waits
 *     … sv_door_close(door, "not any more");            // tells those, and closes the port
 *
 * Who has said nothing yet is a visitor of the gate, which limits his time. */
#pragma once

#include "core/base/err.h"
#include "net/http_gate.h"

#include <stdbool.h>
#include <sys/socket.h>

struct sv_door;

struct sv_door_options {
    int listener; /* becomes the door's */
    struct sv_gate *gate;
    /* Both are called on the door's thread and own the socket from then on. */
    void (*http1)(void *ctx, int fd, const struct sockaddr *from, socklen_t len);
    void (*http2)(void *ctx, int fd); /* NULL: they are told `no_http2` */
    const char *no_http2;             /* at most 200 bytes, outlives the door */
    bool (*is_full)(void *ctx);       /* then nobody is accepted for a moment; NULL: never */
    void *ctx;
};

int sv_door_open(const struct sv_door_options *o, struct sv_door **out, struct sv_err *err);
void sv_door_stop(struct sv_door *d); /* NULL: nothing */
/* After the stop, when all others have had their answers. Who connected since, or has said nothing,
 * gets a 503 or its equal in HTTP/2. */
void sv_door_close(struct sv_door *d, const char *message);
