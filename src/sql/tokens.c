/* Cuts a statement into words, by SQLite's rules as far as they are needed; called by fold.c. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "sql/fold.h"
#include "sql/impl.h"

#include <ctype.h>
#include <string.h>

static size_t name_length(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

/* Digits, a fraction, an exponent; 0 when it goes on in another way. */
static size_t number_length(const char *p)
{
    size_t n = strspn(p, "0123456789");
    if (p[n] == '.')
        n += 1 + strspn(p + n + 1, "0123456789");
    if (p[n] == 'e' || p[n] == 'E') {
        size_t sign = p[n + 1] == '+' || p[n + 1] == '-', digits;
        digits = strspn(p + n + 1 + sign, "0123456789");
        n += digits ? 1 + sign + digits : 0;
    }
    return name_length(p + n) ? 0 : n;
}

/* 'text', with '' for a quote in it; 0 when it does not end. */
static size_t string_length(const char *p)
{
    for (size_t n = 1; p[n]; n++) {
        if (p[n] == '\'' && p[n + 1] == '\'')
            n++;
        else if (p[n] == '\'')
            return n + 1;
    }
    return 0;
}

static size_t sign_length(const char *p)
{
    static const char *const pairs[] = {"<=", ">=", "<>", "!=", "==", "||", "<<", ">>"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strncmp(p, pairs[i], 2) == 0)
            return 2;
    return strchr("+-*/%,.()<>=&|~", *p) ? 1 : 0;
}

static struct sv_sql_word word_at(const char *p)
{
    struct sv_sql_word w = {.kind = SV_WORD_SIGN, .at = p};
    if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))) {
        w.kind = SV_WORD_NUMBER;
        w.len = number_length(p);
    } else if (*p == '\'') {
        w.kind = SV_WORD_STRING;
        w.len = string_length(p);
    } else if (isalpha((unsigned char)*p) || *p == '_') {
        w.kind = SV_WORD_NAME;
        w.len = name_length(p);
        if (p[w.len] == '\'' || p[w.len] == '$' || (p[w.len] & 0x80))
            w.len = 0; /* x'00', or a name with other letters */
    } else {
        w.len = sign_length(p);
    }
    return w;
}

size_t sv_sql_words(const char *sql, const char *end, struct sv_sql_word *out, size_t max)
{
    size_t n = 0;
    int depth = 0;
    for (const char *p = sv_sql_skip_space(sql); p < end && *p; p = sv_sql_skip_space(p)) {
        if (*p == ';')
            return p + 1 >= end || sv_sql_skip_space(p + 1) >= end ? n : 0;
        struct sv_sql_word w = word_at(p);
        if (w.len == 0 || n == max)
            return 0;
        depth -= *p == ')';
        w.depth = depth;
        depth += *p == '(';
        out[n++] = w;
        p += w.len;
    }
    return n;
}
#endif
