/* A small web server. For one user on this machine: fixed files for everybody on loopback,
 * everything else only with the token. Or, with a `judge` of the caller's and a listening socket,
 * for whoever that lets in.
 *
 *     struct sv_web_options o = {.answer = answer, .ctx = me, .policy = policy};
 *     int code = sv_web_open(&o, &web, err);            // listens; requests are answered on other
 *                                                       threads
 *     … sv_web_port(web) …
 *     sv_web_close(web);
 *
 * Listens on 127.0.0.1 and ::1, or on a Unix socket that only this user can open. The name in Host
 * must be this machine's loopback and Origin, if there is one, must be the same: a name that
 * another site points to this machine is refused. Answers may not be kept, framed or guessed at.
 * Only GET and POST; bodies, connections and times are limited as in net/http_gate.h. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sv_web;

struct sv_web_request {
    const char *path; /* without the query */
    bool is_post;
    const uint8_t *body; /* SV_JSON_PAD zero bytes follow */
    size_t len;
    void *connection;
};
/* A parameter of the query, or NULL; the same of a header. */
const char *sv_web_param(const struct sv_web_request *q, const char *name);
const char *sv_web_header(const struct sv_web_request *q, const char *name);
uint32_t sv_web_client(const struct sv_web_request *q); /* its IPv4 address; 0: another kind */
uid_t sv_web_uid(
    const struct sv_web_request *q); /* its user, if it is on this machine (core/files/peer.h) */

struct sv_web_answer {
    unsigned status;  /* 200 unless set */
    const char *type; /* application/json unless set */
    struct sv_buf body;
    const void *fixed; /* instead of the body: bytes that outlive the server */
    size_t fixed_len;
};
/* `{"error":"…"}` */
void sv_web_error(struct sv_web_answer *a, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct sv_web_options {
    /* On any thread. Paths below /api come only with the token. */
    void (*answer)(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a);
    void *ctx;
    const char *policy; /* Content-Security-Policy of every answer */
    size_t body_max, answer_max;
    /* Instead of the checks of Host, Origin and token, before the body: the status of a refusal, or
     * 0. NULL: those checks. */
    unsigned (*judge)(void *ctx, const struct sv_web_request *q, const char **message);
    /* Makes the body of a refusal; NULL: as sv_web_error() does. */
    void (*refuse)(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a,
                   unsigned status, const char *message);
    int listener;         /* with `judge`: a socket that listens, becomes the server's */
    unsigned connections; /* at once; 0: 64 */
    uint16_t port;        /* 0: any that is free */
    const char *socket;   /* the name of a Unix socket instead of a port; NULL: none */
};

int sv_web_open(const struct sv_web_options *o, struct sv_web **out, struct sv_err *err);
void sv_web_close(struct sv_web *w); /* ends the connections */
uint16_t sv_web_port(const struct sv_web *w);
const char *sv_web_token(const struct sv_web *w); /* 32 hexadecimal digits */
int sv_web_load(struct sv_err *err); /* libmicrohttpd; SV_EUSAGE says why there is none */
