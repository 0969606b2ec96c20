/* Answers in JSON of at most SV_JSON_MOST bytes (docs/json.md): made again with fewer items in each
 * list until they fit. */
#pragma once

#include "cli/rows.h"
#include "core/stream/dict.h"

struct sv_json_fit {
    /* Adds the object to `to`, with at most `most` items in each list. */
    int (*fill)(void *ctx, size_t most, struct sv_buf *to, struct sv_err *err);
    void *ctx;
    bool all;         /* however long */
    const char *more; /* what has the rest, as the member truncated.more says it */
};

/* Prints it; where items are left out the object gets a member `truncated`. */
int sv_json_fit(const struct sv_json_fit *f, struct sv_err *err);
/* At most 200 bytes of a text that a file brought, whole characters. */
struct sv_text sv_json_short(struct sv_text t);
