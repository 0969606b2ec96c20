/* See http_packed.h. Called by the OTLP door of `stave listen` and by the server's front. */
#include "net/http_packed.h"

#include <stdio.h>
#include <strings.h>

bool sv_http_is_known_packing(const char *encoding)
{
    return !encoding || strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "zstd") == 0 ||
           strcasecmp(encoding, "identity") == 0;
}

static unsigned refuse(struct sv_http_unpacked *u, unsigned status, const char *message)
{
    snprintf(u->message, sizeof u->message, "%s", message);
    return status;
}

static unsigned too_large(struct sv_http_unpacked *u, size_t max)
{
    char text[120];
    size_t shown = max % (1 << 20) ? max : max >> 20;
    snprintf(text, sizeof text, "the decompressed body is too large: at most %zu %s are taken",
             shown, shown == max ? "bytes" : "MiB");
    return refuse(u, 413, text);
}

unsigned sv_http_unpack(const char *encoding, const uint8_t *body, size_t len, size_t max,
                        struct sv_http_unpacked *u)
{
    struct sv_err err = {0};
    *u = (struct sv_http_unpacked){.bytes = body, .len = len};
    if (!sv_http_is_known_packing(encoding))
        return refuse(u, 415, "Content-Encoding must be gzip, zstd or identity");
    if (!encoding || strcasecmp(encoding, "identity") == 0)
        return 0;
    if (len == 0 || sv_input_open_memory(body, len, "body", &u->in, &err) < 0)
        return refuse(u, 400, "the body cannot be decompressed");
    u->in->window_limit = max + 1; /* so much is too much */
    int code = sv_input_need_all(u->in, "too large", &err);
    if (code == SV_ELIMIT || code == SV_ENOMEM)
        return too_large(u, max);
    if (code < 0 || !u->in->compression || u->in->truncated || u->in->has_trailing)
        return refuse(u, 400, "the body cannot be decompressed");
    u->bytes = u->in->data;
    u->len = u->in->len;
    return 0;
}

void sv_http_unpacked_free(struct sv_http_unpacked *u)
{
    sv_input_close(u->in);
    u->in = NULL;
}
