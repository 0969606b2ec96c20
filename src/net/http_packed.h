/* Bodies of HTTP requests that were packed by their client: Content-Encoding. Called by servers
 * when the whole body is there. What it unpacks to is bounded, whatever it says of itself. */
#pragma once

#include "core/files/input.h"

/* gzip, zstd, identity, or NULL: it is not packed. */
bool sv_http_is_known_packing(const char *encoding);

struct sv_http_unpacked {
    struct sv_input *in; /* owns what was unpacked; NULL: nothing was */
    const uint8_t *bytes;
    size_t len;
    char message[120]; /* of a refusal */
};
/* The status of a refusal (415, 413, 400), or 0. To be freed in any case. */
unsigned sv_http_unpack(const char *encoding, const uint8_t *body, size_t len, size_t max,
                        struct sv_http_unpacked *u);
void sv_http_unpacked_free(struct sv_http_unpacked *u);
