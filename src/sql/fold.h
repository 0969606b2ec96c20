/* Statements over groups of slices in the place of slices (fold.c), and the words of a statement
 * (tokens.c). Internal to sql/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sv_sql;

/* `sql` (up to `end`), which SQLite could prepare, rewritten over groups, to be freed with free();
 * or NULL: it must run as it is. */
char *sv_sql_fold(struct sv_sql *q, const char *sql, const char *end);
bool sv_sql_is_aggregate(const char *name); /* one that it rewrites */

enum sv_sql_word_kind { SV_WORD_NAME, SV_WORD_NUMBER, SV_WORD_STRING, SV_WORD_SIGN };

struct sv_sql_word {
    enum sv_sql_word_kind kind;
    const char *at;
    size_t len;
    int depth; /* parentheses around it; a parenthesis itself is outside of its pair */
};

#define SV_SQL_WORDS_MAX 400

/* The words of the statement in [sql, end) without its semicolon; 0 when there are more than `max`,
 * or something that is none of these kinds (quoted names, parameters). */
size_t sv_sql_words(const char *sql, const char *end, struct sv_sql_word *out, size_t max);
