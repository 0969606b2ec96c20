/* Names of files that a ring is saved as, and the small trace that goes before them: why it was
 * saved. For record/session/triggers.c and record/output/parts.c. */
#ifndef SV_RECORD_OUTPUT_SAVED_NAME_H
#define SV_RECORD_OUTPUT_SAVED_NAME_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_recorder;
struct sv_record_options;

/* Keys of the metadata of such a file. */
#define SV_META_TRIGGER         "trigger"
#define SV_META_TRIGGER_CAUSE   "trigger_cause"
#define SV_META_TRIGGER_TIME    "trigger_time"
#define SV_META_TRIGGER_TS      "trigger_ts"
#define SV_META_TRIGGER_SKIPPED "trigger_skipped"

struct sv_saved_cause {
    const char *condition, *cause, *utc;
    int64_t ts_ns;
    uint64_t skipped; /* hits before it that were only counted */
};

/* %t in -o: kept apart before the other letters are replaced, so that what grows has one name.
 * False: too long. */
enum { SV_SAVED_MARK = 1 }; /* a byte that no name has */
bool sv_saved_protect(const char *pattern, char *to, size_t size);
/* What is left of it in `path` becomes the time; "" in `pattern` if there was none. */
bool sv_saved_split(char *path, size_t size, char *pattern, size_t pattern_size);

/* 20261118T203512.345Z */
void sv_saved_time(const struct sv_recorder *r, int64_t ts_ns, char utc[static 32]);
/* The next name: the pattern with this time, or OUT-0001 and so on; *number is that of the last
 * one, so that none is used twice when files are removed. */
void sv_saved_name(const struct sv_record_options *o, const char *utc, uint32_t *number, char *path,
                   size_t size);
/* Writes that small trace. */
int sv_saved_head(struct sv_recorder *r, const char *path, const struct sv_saved_cause *cause,
                  struct sv_err *err);

#endif
