/* Paths without their words: every component becomes a token that is the same wherever it occurs in
 * the trace, and means nothing without the key, which is made at random for each run and kept
 * nowhere. */
#ifndef SV_FILES_REDACT_PATH_H
#define SV_FILES_REDACT_PATH_H

#include <stddef.h>
#include <stdint.h>

enum { SV_REDACT_TOKEN = 10 }; /* letters of a token */

struct sv_redact {
    uint64_t key[2];
};

/* False: the system gives no random numbers. */
_Bool sv_redact_init(struct sv_redact *r);
/* Writes the tokens of `path` to `to`; returns the length, at most `size`. "/a/b" →
 * "/tttttttttt/uuuuuuuuuu". Names that the kernel makes ("pipe:[123]") stay. */
size_t sv_redact_path(const struct sv_redact *r, const char *path, size_t len, char *to,
                      size_t size);

#endif
