/* Is a request of OTLP one that can be kept? For who receives them: what cannot be read later is
 * refused now, while the sender still has it. */
#pragma once

#include "core/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_otlp_checked {
    uint64_t spans;    /* that were kept */
    uint64_t rejected; /* that cannot be: without valid ids or times */
    const char *why;   /* of the first of these */
};

/* Appends the request without the spans that cannot be kept to `out`. False: it is not a request at
 * all (`out` is then of no use). */
bool sv_otlp_check(const uint8_t *bytes, size_t len, struct sv_buf *out, struct sv_otlp_checked *c);
