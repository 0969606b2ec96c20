/* A stage that takes out what must not leave the house: `stave redact`, and `stave record --redact`
 * on its way to the file.
 *
 *     sv_redact_parse("paths,sql,args=user*") → sv_redact_stage() before the writer
 *
 *   paths     each component of a path becomes a token, the same one wherever it occurs in this run
 *   commands  command lines of processes go
 *   sql       texts and numbers in SQL become ?
 *   args=GLOB values of arguments with such a key become "redacted"
 *   all       the first three */
#ifndef SV_FILES_REDACT_H
#define SV_FILES_REDACT_H

#include "core/stream/stream.h"
#include "files/redact_path.h"

enum { SV_REDACT_KEYS_MAX = 32 };

struct sv_redact_plan {
    struct sv_redact tokens;
    bool paths, commands, sql;
    char keys[SV_REDACT_KEYS_MAX][64];
    size_t n_keys;
};

/* A list with commas. Makes the random key. */
int sv_redact_parse(const char *list, struct sv_redact_plan *plan, struct sv_err *err);

/* `plan` is copied. The sink behind it is closed with it if `owns` is set. */
struct sv_sink *sv_redact_stage(const struct sv_redact_plan *plan, struct sv_dict *dict,
                                struct sv_sink *next, bool owns);

/* Statements of SQL: what begins like one; and without texts, numbers and comments (malloc). */
bool sv_redact_is_sql(const char *text, size_t len);
char *sv_redact_sql(const char *text, size_t len, size_t *out_len);

/* One text. Returns what it becomes (malloc), NULL: it stays. */
char *sv_redact_text(const struct sv_redact_plan *plan, const char *key, const char *text,
                     size_t len, size_t *out_len);

#endif
