/* The members of a small JSON object or array that lies in memory as a whole, one after the other,
 * for readers of logs.
 *
 * The bytes must have SV_JSON_PAD readable bytes after them (the window of an input has). Texts are
 * given raw, between their quotes: sv_member_text() resolves escapes. */
#pragma once

#include "core/stream/batch.h"
#include "core/stream/dict.h"

struct sv_members {
    const uint8_t *p, *end;
    bool is_object;
    bool is_bad; /* it broke off or is no JSON */
};

struct sv_member {
    struct sv_text key;   /* raw, empty in arrays */
    char type;            /* '"', '{', '[', '0' for numbers, 't', 'f', 'n' */
    struct sv_text value; /* a text without its quotes, all else unchanged */
};

/* At the opening bracket (blanks before it are passed). */
struct sv_members sv_members_of(const char *p, size_t len);
bool sv_member_next(struct sv_members *m, struct sv_member *out);

bool sv_member_is(const struct sv_member *m, const char *key);
bool sv_member_i64(const struct sv_member *m, int64_t *out); /* whole numbers, also 12.0 */
bool sv_member_is_wide(const struct sv_member *m);           /* a number, but it fits no int64 */
bool sv_member_double(const struct sv_member *m, double *out);
/* The text with its escapes resolved, copied into the batch. */
struct sv_text sv_member_text(const struct sv_member *m, struct sv_batch *b);
