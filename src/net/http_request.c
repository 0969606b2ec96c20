/* Framing and bodies of HTTP requests. Called on libmicrohttpd's threads by the server's front and
 * the viewer's. */
#include "net/http_request.h"

#ifdef SV_HAVE_MICROHTTPD
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "net/http_late.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How a request says where it ends. */
struct framing {
    unsigned lengths, encodings, odd;
    const char *length, *encoding;
};

/* A name that another begins with: older libraries append the second line of a folded header to its
 * name ("Content-Length:\r\n 5"). */
static bool begins_with(const char *key, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(key, name, n) == 0 && key[n] != '\0';
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    struct framing *f = cls;
    (void)kind;
    f->odd += key[strcspn(key, " \t\r\n\v\f")] != '\0'; /* "Content-Length : 5" */
    f->odd += begins_with(key, "Content-Length") || begins_with(key, "Transfer-Encoding");
    if (strcasecmp(key, "Content-Length") == 0) {
        f->lengths++;
        f->length = value ? value : "";
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        f->encodings++;
        f->encoding = value ? value : "";
    }
    return MHD_YES;
}

static const char *judge_framing(const struct framing *f, const char *version)
{
    if (f->odd)
        return "a header name contains a space, or the header is folded";
    if (f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings))
        return "Content-Length and Transfer-Encoding contradict each other";
    if (f->encoding &&
        (strcasecmp(f->encoding, "chunked") != 0 || strcmp(version, "HTTP/1.1") != 0))
        return "only Transfer-Encoding: chunked is supported, in HTTP/1.1";
    if (f->length && (!*f->length || f->length[strspn(f->length, "0123456789")] != '\0'))
        return "Content-Length is not a number";
    return NULL;
}

const char *sv_http_judge(struct MHD_Connection *c, const char *version, size_t *length)
{
    struct framing f = {0};
    sv_mhd.MHD_get_connection_values(c, MHD_HEADER_KIND, see_header, &f);
    const char *wrong = judge_framing(&f, version);
    *length = f.length ? (size_t)strtoull(f.length, NULL, 10) : 0;
    return wrong;
}

static enum sv_gate_word make_place(struct sv_http_body *b, struct sv_gate *g, struct sv_visitor *v,
                                    size_t n)
{
    size_t need = b->len + n + SV_JSON_PAD, cap = b->cap ? 2 * b->cap : 4096;
    if (need <= b->cap)
        return SV_GATE_OK;
    if (b->declared && cap > b->declared + SV_JSON_PAD)
        cap = b->declared + SV_JSON_PAD;
    if (cap > b->max + SV_JSON_PAD)
        cap = b->max + SV_JSON_PAD;
    cap = cap < need ? need : cap;
    enum sv_gate_word word = sv_gate_hold(g, v, cap - b->cap);
    if (word == SV_GATE_OK) {
        b->data = sv_realloc(b->data, cap);
        b->cap = cap;
    }
    return word;
}

unsigned sv_http_take(struct sv_http_body *b, struct sv_gate *g, struct sv_visitor *v,
                      const char *data, size_t n, const char **message)
{
    *message = "the request is too large";
    if (n > b->max - b->len)
        return 413;
    switch (make_place(b, g, v, n)) {
    case SV_GATE_CLIENT_FULL: *message = "this client has too many unfinished requests"; return 429;
    case SV_GATE_ALL_FULL: *message = "too many unfinished requests"; return 503;
    case SV_GATE_OK: break;
    }
    memcpy(b->data + b->len, data, n);
    b->len += n;
    return 0;
}

void sv_http_complete(struct sv_http_body *b)
{
    if (b->data)
        memset(b->data + b->len, 0, SV_JSON_PAD);
}

void sv_http_drop(struct sv_http_body *b, struct sv_gate *g, struct sv_visitor *v)
{
    free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
    sv_gate_give_back(g, v);
}

void sv_http_refuse(struct MHD_Connection *c, unsigned status, const char *message)
{
    const union MHD_ConnectionInfo *fd =
        sv_mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (fd)
        sv_gate_refuse(fd->connect_fd, status, message);
}

/* Clients of a Unix socket, and those of IPv6, count as one. */
static uint32_t client_of(const struct sockaddr *from)
{
    if (!from || from->sa_family != AF_INET)
        return 0;
    return ntohl(((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr);
}

void sv_http_entered(struct sv_gate *g, struct MHD_Connection *c, void **context)
{
    const union MHD_ConnectionInfo *fd =
        sv_mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    int connect_fd = fd->connect_fd;
    const union MHD_ConnectionInfo *who =
        sv_mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *context = sv_gate_enter(g, connect_fd, client_of(who ? who->client_addr : NULL));
}
#endif
