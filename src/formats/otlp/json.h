/* OTLP's JSON form to its protobuf form and back, by the table of schema.h. So that all else knows
 * one form only.
 *
 * From JSON as the specification asks: keys in lowerCamelCase, ids hexadecimal, 64-bit numbers as
 * text or number, enumerations as numbers (names are taken, too), unknown keys passed over, null is
 * absent. One pass, nothing is kept but the output. */
#pragma once

#include "core/base/buf.h"
#include "core/base/json.h"
#include "formats/otlp/schema.h"

struct sv_otlp_json {
    uint64_t n_unknown;     /* keys that the table does not have */
    const uint8_t *unknown; /* the first of them */
    size_t unknown_len;
    const uint8_t *at; /* where it failed */
    const char *why;   /* NULL: it did not */
};

/* Appends the message at the opening bracket p to `out`. Returns the byte after it, or NULL: see
 * `at` and `why`. SV_JSON_PAD bytes after `end` must be readable. */
const uint8_t *sv_otlp_from_json(const struct sv_otlp_message *m, const uint8_t *p,
                                 const uint8_t *end, struct sv_buf *out, struct sv_otlp_json *how);

/* Writes the message as a JSON object; unknown fields are left out. False: it is damaged. */
bool sv_otlp_to_json(const struct sv_otlp_message *m, const uint8_t *bytes, size_t len,
                     struct sv_json *j);
