/* The grammar of conditions: words, numbers, times and texts in quotes, read from left to right.
 * Called by the kinds of conditions; the first thing that is wrong is kept with its place. */
#ifndef SV_RECORD_WHEN_PARSE_H
#define SV_RECORD_WHEN_PARSE_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_when_reader {
    const char *text, *at;
    struct sv_err *err; /* its code is set: something is wrong, and nothing is read any more */
};

enum sv_when_op { SV_GT = 1, SV_GE, SV_LT, SV_LE, SV_EQ, SV_NE };

/* Each skips blanks. What is not there is an error that says `expected`. */
bool sv_when_word(struct sv_when_reader *r, const char *word); /* takes it if it is next */
bool sv_when_is_quote(struct sv_when_reader *r);
char *sv_when_quoted(struct sv_when_reader *r, const char *expected); /* 'text' or "text"; malloc */
char *sv_when_bare(struct sv_when_reader *r, const char *expected);   /* quoted, or up to a blank */
enum sv_when_op sv_when_compare(struct sv_when_reader *r, bool has_equal);
double sv_when_number(struct sv_when_reader *r, const char *expected);
bool sv_when_is_number(struct sv_when_reader *r);
bool sv_when_time_of(struct sv_when_reader *r, double number, int64_t *ns); /* its unit follows */
int64_t sv_when_time(struct sv_when_reader *r);                             /* 500ms, 30s, 2m, 1h */
double sv_when_quantity(struct sv_when_reader *r, bool per_second);         /* 10%, 2G, 100/s */
void sv_when_end(struct sv_when_reader *r);
void sv_when_expect(struct sv_when_reader *r, const char *expected); /* says that it is missing */
bool sv_when_failed(const struct sv_when_reader *r);

bool sv_when_holds(enum sv_when_op op, double value, double limit);
const char *sv_when_op_text(enum sv_when_op op);

#endif
