/* Where a session's events go: names, formats, and the growing file beside the final one. */
#pragma once

#include "core/base/err.h"
#include "core/files/claim.h"
#include "core/stream/stream.h"
#include "sdk/ring/session_layout.h"

/* NULL: fine; else what is wrong with it, as part of a sentence, perhaps in `text`
 * (SV_DESTINATION_TEXT bytes). */
enum { SV_DESTINATION_TEXT = 256 };
const char *sv_destination_check(const char *pattern, const char *compress, char *text,
                                 size_t size);
/* Replaces %p, %h, %r, %j, %%. */
const char *sv_destination_expand(const char *pattern, uint32_t pid, char *to, size_t size);
/* The same for a session. A forked child whose pattern has no %p gets its pid before the suffix.
 * Where a launcher started several ranks, the rank is put there, too, unless the pattern has %r,
 * and the first one says so. */
const char *sv_destination_name(const char *pattern, uint32_t pid, bool is_child, char *to,
                                size_t size);

bool sv_destination_number(char *path, size_t size, uint32_t value); /* before the suffix */

/* Claims the name for the session `dir`: see core/files/claim.h. When another process has it, the
 * pid is put before the suffix. `is_shared`: other processes of this job may have the same name
 * (STAVE_OUT), as other copies of the library in this one do; what they have finished is kept under
 * a number. */
bool sv_destination_claim(struct sv_claim *c, const char *out, uint32_t pid, const char *dir,
                          bool is_shared, struct sv_err *err);
int sv_destination_settle(
    struct sv_claim *c, bool has_events,
    struct sv_err *err); /* says so when the name is another one, or was another trace's */

int sv_destination_sink(const char *out, const char *part, const char *compress,
                        struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                        struct sv_err *err);
void sv_destination_describe(struct sv_dict *dict,
                             uint32_t pid); /* metadata: host, command, rank */

bool sv_destination_rotates(const char *out); /* its parts are one trace for a reader */
/* something can be appended to a part of it that is whole */
bool sv_destination_can_go_on(const char *out);
/* A sink into memory for what follows the whole part of a file that was cut, or (is_rest false) for
 * a file of its own; then, after its close, join() makes of the bytes what can be appended; of
 * none, what ends the file. */
struct sv_buf;
int sv_destination_rest_sink(const char *out, bool is_rest, struct sv_dict *dict,
                             struct sv_report *report, struct sv_buf *to, struct sv_sink **sink,
                             struct sv_err *err);
void sv_destination_rest_join(const char *out, struct sv_buf *rest);
