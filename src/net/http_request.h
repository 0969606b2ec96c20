/* A request as libmicrohttpd brings it: how it says where it ends, and its body, taken within the
 * gate's limits.
 *
 * Every HTTP server of the project goes through here. A request whose length can be read in two
 * ways is refused: a proxy in between may read it the other way. Memory grows with what has come,
 * not with what was announced. */
#pragma once

#include "net/http_gate.h"

struct MHD_Connection;

/* What is wrong with how the request is framed, or NULL; *length is its Content-Length (0:
 * none). */
const char *sv_http_judge(struct MHD_Connection *c, const char *version, size_t *length);

struct sv_http_body {
    uint8_t *data; /* SV_JSON_PAD zero bytes follow once it is complete */
    size_t len, cap;
    size_t declared; /* Content-Length, 0: not given */
    size_t max;
};

/* The status of a refusal and its message, or 0: taken. */
unsigned sv_http_take(struct sv_http_body *b, struct sv_gate *g, struct sv_visitor *v,
                      const char *data, size_t n, const char **message);
void sv_http_complete(struct sv_http_body *b); /* no more will come: puts the zero bytes there */
void sv_http_drop(struct sv_http_body *b, struct sv_gate *g, struct sv_visitor *v);
/* Refuses in the middle of a body; the connection ends with it. */
void sv_http_refuse(struct MHD_Connection *c, unsigned status, const char *message);

/* For MHD_OPTION_NOTIFY_CONNECTION: enters and leaves the gate; the visitor is the connection's
 * socket context. */
void sv_http_entered(struct sv_gate *g, struct MHD_Connection *c, void **context);
