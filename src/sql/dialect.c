/* What Perfetto's SQL has beyond SQLite's: called by the connection for every statement before
 * SQLite sees it.
 *
 *     INCLUDE PERFETTO MODULE x.y;                       accepted: what Stave has of the standard
 *                                                        library is always there
 *     CREATE [OR REPLACE] PERFETTO TABLE|VIEW x[(…)] AS  an ordinary one
 *     CREATE [OR REPLACE] PERFETTO FUNCTION f(a LONG, …) RETURNS LONG AS SELECT …;
 *     CREATE|DROP PERFETTO INDEX …                       accepted: joins along ids are lookups
 *                                                        anyway
 *
 * Macros and functions that return tables are refused, in words. Rewrites in place, so positions in
 * error messages stay true. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/fold.h"
#include "sql/impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

const char *sv_sql_skip_space(const char *p)
{
    for (;;) {
        while (isspace((unsigned char)*p))
            p++;
        if (p[0] == '-' && p[1] == '-') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        } else {
            return p;
        }
    }
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static size_t word_length(const char *p)
{
    size_t n = 0;
    while (is_word_char(p[n]))
        n++;
    return n;
}

/* The text after `word` and white space, or NULL when something else is there. */
static const char *after_word(const char *p, const char *word)
{
    size_t len = strlen(word);
    p = sv_sql_skip_space(p);
    if (sqlite3_strnicmp(p, word, (int)len) != 0 || is_word_char(p[len]))
        return NULL;
    return sv_sql_skip_space(p + len);
}

/* The character after a piece that is no code: a quoted text or comment; `p` itself when it is
 * code. */
static const char *after_quoted(const char *p)
{
    const char *next = p;
    if (*p == '\'' || *p == '"' || *p == '`') {
        const char *end = strchr(p + 1, *p);
        return end ? end + 1 : p + strlen(p);
    }
    if ((p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*'))
        next = sv_sql_skip_space(p);
    return next;
}

/* The next character of code that is one of `set` outside of parentheses, or the end. */
static const char *find_outside(const char *p, const char *set)
{
    int depth = 0;
    while (*p) {
        const char *next = after_quoted(p);
        if (next != p) {
            p = next;
            continue;
        }
        if (depth == 0 && strchr(set, *p))
            return p;
        depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        p++;
    }
    return p;
}

/* Behind the next `c` outside of parentheses, or the end. */
static const char *after_outside(const char *p, const char *c)
{
    p = find_outside(p, c);
    return *p ? p + 1 : p;
}

static const char *after_statement(const char *p)
{
    return after_outside(p, ";");
}

static void blank(char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n')
            *from = ' ';
}

/* ---- functions of the user ---- */

#define PARAMS_MAX    16
#define RECURSION_MAX 32

struct sv_sql_function {
    struct sv_sql_function *next;
    struct sv_sql *q;
    char *body;
    char *params[PARAMS_MAX]; /* with their dollar */
    int n_params;
    sqlite3_stmt *statement; /* kept between calls; a call within a call makes one of its own */
    unsigned depth;
};

static int bind_params(const struct sv_sql_function *f, sqlite3_stmt *s, sqlite3_value **argv)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < f->n_params && rc == SQLITE_OK; i++) {
        int at = sqlite3_bind_parameter_index(s, f->params[i]);
        if (at > 0)
            rc = sqlite3_bind_value(s, at, argv[i]);
    }
    return rc;
}

static void call_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct sv_sql_function *f = sqlite3_user_data(ctx);
    sqlite3_stmt *s = f->depth ? NULL : f->statement;
    int rc = SQLITE_OK;
    if (f->q->call_depth == RECURSION_MAX) {
        sqlite3_result_error(ctx, "a function is called too deeply", -1);
        return;
    }
    f->depth++;
    f->q->call_depth++;
    if (!s)
        rc = sqlite3_prepare_v2(f->q->db, f->body, -1, &s, NULL);
    if (rc == SQLITE_OK && s)
        rc = bind_params(f, s, argv);
    if (rc == SQLITE_OK && s)
        rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        sqlite3_result_value(ctx, sqlite3_column_value(s, 0));
    else if (rc != SQLITE_DONE && rc != SQLITE_OK)
        sqlite3_result_error(ctx, sqlite3_errmsg(f->q->db), -1);
    sqlite3_reset(s);
    f->depth--;
    f->q->call_depth--;
    if (f->depth == 0)
        f->statement = s;
    else
        sqlite3_finalize(s);
}

void sv_sql_forget_functions(struct sv_sql *q)
{
    struct sv_sql_function *next;
    for (struct sv_sql_function *f = q->functions; f; f = next) {
        next = f->next;
        sqlite3_finalize(f->statement);
        for (int i = 0; i < f->n_params; i++)
            free(f->params[i]);
        free(f->body);
        free(f);
    }
    q->functions = NULL;
}

/* "(a LONG, b STRING)": their names; the text after it, or NULL. */
static const char *parse_params(struct sv_sql_function *f, const char *p)
{
    if (*p != '(')
        return NULL;
    p = sv_sql_skip_space(p + 1);
    while (*p && *p != ')') {
        size_t n = word_length(p);
        if (n == 0 || f->n_params == PARAMS_MAX)
            return NULL;
        char *name = f->params[f->n_params++] = sv_alloc(n + 2);
        name[0] = '$';
        memcpy(name + 1, p, n);
        p = find_outside(p, ",)");
        if (*p == ',')
            p = sv_sql_skip_space(p + 1);
    }
    return *p ? sv_sql_skip_space(p + 1) : NULL;
}

/* `p` points after FUNCTION. */
static int create_function(struct sv_sql *q, const char *p, const char **tail, struct sv_err *err)
{
    char name[128];
    size_t len = word_length(p);
    struct sv_sql_function *f = sv_alloc(sizeof *f);
    f->q = q;
    f->next = q->functions;
    q->functions = f; /* freed with the connection, also when it comes to nothing */
    snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : 0), p);
    p = parse_params(f, sv_sql_skip_space(p + len));
    p = p ? after_word(p, "RETURNS") : NULL;
    if (p && after_word(p, "TABLE"))
        return sv_error(err, SV_EUSAGE,
                        "%s: functions that return tables are not supported: use a view", name);
    p = p ? p + word_length(p) : NULL;
    if (p && *sv_sql_skip_space(p) == '(')
        p = after_outside(sv_sql_skip_space(p) + 1, ")");
    const char *body = p ? after_word(p, "AS") : NULL;
    if (!*name || !body)
        return sv_error(
            err, SV_EUSAGE,
            "CREATE PERFETTO FUNCTION needs name(argument TYPE, …) RETURNS TYPE AS SELECT …");
    *tail = after_statement(body);
    f->body = sv_strndup(body, (size_t)(*tail - body));
    if (!sv_sandbox_may_define(&q->sandbox, name))
        return sv_error(err, SV_EUSAGE,
                        "%s: SQLite has a function of this name: choose another one", name);
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    if (sqlite3_create_function_v2(q->db, name, f->n_params, flags, f, call_function, NULL, NULL,
                                   NULL) != SQLITE_OK)
        return sv_error(err, SV_EUSAGE, "%s: %s", name, sqlite3_errmsg(q->db));
    /* Another meaning of sum() and its like: such statements cannot be rewritten. */
    q->has_own_aggregate |= sv_sql_is_aggregate(name);
    return 1;
}

/* ---- statements ---- */

/* What the modules define that Stave has. Of others the name is kept: it explains a table that is
 * not there. */
static void note_module(struct sv_sql *q, const char *p)
{
    static const char *const known[] = {"slices.with_context", "slices.self_dur",
                                        "slices.hierarchy", "slices.slices", "time.conversion"};
    size_t len = word_length(p);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == len && memcmp(known[i], p, len) == 0)
            return;
    snprintf(q->foreign_module, sizeof q->foreign_module, "%.*s", (int)(len < 100 ? len : 100), p);
}

/* `CREATE [OR REPLACE] PERFETTO TABLE|VIEW name[(types)] AS`: blanks out what only Perfetto knows;
 * `p` points after PERFETTO. */
static void plain_create(char *sql, const char *from, const char *p)
{
    blank(sql + (from - sql), p);
    const char *name = after_word(p, "VIEW");
    name = name ? name : after_word(p, "TABLE");
    p = sv_sql_skip_space(name + word_length(name));
    if (*p == '(')
        blank(sql + (p - sql), after_outside(p + 1, ")"));
}

int sv_sql_dialect(struct sv_sql *q, char *sql, const char **tail, struct sv_err *err)
{
    const char *p, *from, *next;
    if ((p = after_word(sql, "INCLUDE")) && (p = after_word(p, "PERFETTO")) &&
        (p = after_word(p, "MODULE"))) {
        note_module(q, p);
        *tail = after_statement(p);
        return 1;
    }
    bool is_drop = (from = after_word(sql, "DROP")) != NULL;
    if (!from && !(from = after_word(sql, "CREATE")))
        return 0;
    p = from;
    if (!is_drop && (next = after_word(p, "OR")) && (next = after_word(next, "REPLACE")))
        p = next;
    if (!(p = after_word(p, "PERFETTO")))
        return 0;
    if (after_word(p, "INDEX")) {
        *tail = after_statement(p);
        return 1;
    }
    if (after_word(p, "MACRO"))
        return sv_error(err, SV_EUSAGE, "macros are not supported: write the statement out");
    if (!is_drop && (next = after_word(p, "FUNCTION")))
        return create_function(q, next, tail, err);
    if (is_drop)
        blank(sql + (from - sql), p);
    else if (after_word(p, "TABLE") || after_word(p, "VIEW"))
        plain_create(sql, from, p);
    return 0;
}

const char *sv_sql_dialect_hint(const struct sv_sql *q, const char *message)
{
    if (strstr(message, "unrecognized token: \"!\""))
        return " (macros are not supported: write the statement out)";
    if (q->foreign_module[0] &&
        (strstr(message, "no such table") || strstr(message, "no such function")))
        return " (included modules are not available in Stave, see docs/sql.md)";
    return "";
}
#endif
