/* Names of outputs: patterns with %p and its like, and what is put before the suffix. For the SDK,
 * the recorder and the listener. */
#pragma once

#include "core/files/launcher.h"
#include "core/files/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The length of the path before .gz or .zst, and the compression that these mean; without one of
 * them SV_PLAIN. */
size_t sv_name_unpacked(const char *path, enum sv_compression *compression);
/* The one of the suffixes (NULL-terminated) that the path ends in, also with .gz or .zst after it;
 * NULL: none. */
const char *sv_name_suffix(const char *path, const char *const *suffixes,
                           enum sv_compression *compression);

/* t.json.gz with ".123" becomes t.123.json.gz. False: it does not fit, and nothing was changed. */
bool sv_name_insert(char *path, size_t size, const char *text);

/* Replaces %p (process), %h (host), %r (rank), %j (job), %% (%). A path becomes absolute, since a
 * program may change its directory; with `as_it_is` it stays relative, as the address of a listener
 * must. Returns NULL, or what is wrong, as part of a sentence. */
const char *sv_name_expand(const char *pattern, uint32_t pid, bool as_it_is,
                           const struct sv_launcher *launcher, char *to, size_t size);
bool sv_name_has(const char *pattern, char letter); /* is %letter in it? */

/* Several ranks with one pattern: job.pftrace becomes job.rank0003.pftrace, unless the pattern has
 * %r. `changed` says whether it did. False: it does not fit. */
bool sv_name_add_rank(const char *pattern, const struct sv_launcher *launcher, char *path,
                      size_t size, bool *changed);

/* The part of a path behind the last slash. */
static inline const char *sv_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void sv_name_host(char *to, size_t size); /* this machine's, fit for a file's name */
