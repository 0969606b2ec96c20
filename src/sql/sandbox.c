/* What an SQLite connection may do: lists of statements, functions, pragmas and modules, and
 * limits. See sandbox.h. */
#include "sql/sandbox.h"

#ifdef SV_HAVE_SQLITE
#include <string.h>

/* ---- what is allowed, by name ---- */

static const char *const pragmas[] = {
    "table_info",  "table_xinfo", "table_list", "function_list",   "database_list", "module_list",
    "pragma_list", "index_list",  "index_info", "compile_options", "collation_list"};

/* Virtual tables that SQLite brings and that read nothing but their arguments. Those of pragmas are
 * governed by the list of pragmas. */
static const char *const kept_modules[] = {"json_each", "json_tree", NULL};

/* Modules for CREATE VIRTUAL TABLE. */
static const char *const modules[] = {"span_join", "span_left_join"};

/* Functions that SQLite brings. clang-format off: a list of words. */
/* clang-format off */
static const char *const functions[] = {
    /* values */
    "->", "->>", "abs", "char", "coalesce", "concat", "concat_ws", "format", "glob", "hex", "if", "ifnull", "iif", "instr", "length", "like", "likelihood",
    "likely", "lower", "ltrim", "max", "min", "nullif", "octet_length", "printf", "quote", "random", "randomblob", "replace", "round", "rtrim", "sign",
    "soundex", "substr", "substring", "trim", "typeof", "unhex", "unicode", "unistr", "unistr_quote", "unlikely", "upper", "zeroblob",
    /* about the connection */
    "changes", "last_insert_rowid", "sqlite_compileoption_get", "sqlite_compileoption_used", "sqlite_source_id", "sqlite_version", "total_changes",
    /* times */
    "current_date", "current_time", "current_timestamp", "date", "datetime", "julianday", "strftime", "time", "timediff", "unixepoch",
    /* mathematics */
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos", "cosh", "degrees", "exp", "floor", "ln", "log", "log10", "log2",
    "mod", "pi", "pow", "power", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    /* aggregates and windows */
    "avg", "count", "cume_dist", "dense_rank", "first_value", "group_concat", "lag", "last_value", "lead", "median", "nth_value", "ntile", "percent_rank",
    "percentile", "percentile_cont", "percentile_disc", "rank", "row_number", "string_agg", "sum", "total",
    /* JSON */
    "json", "json_array", "json_array_insert", "json_array_length", "json_error_position", "json_extract", "json_group_array", "json_group_object",
    "json_insert", "json_object", "json_patch", "json_pretty", "json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid", "jsonb",
    "jsonb_array", "jsonb_array_insert", "jsonb_extract", "jsonb_group_array", "jsonb_group_object", "jsonb_insert", "jsonb_object", "jsonb_patch",
    "jsonb_remove", "jsonb_replace", "jsonb_set",
};
/* clang-format on */

static bool is_in(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; name && i < n; i++)
        if (sqlite3_stricmp(name, list[i]) == 0)
            return true;
    return false;
}
#define IS_IN(list, name) is_in(list, sizeof(list) / sizeof *(list), name)

/* ---- limits ---- */

static const struct {
    int what, value;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, 256 << 20},     {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
    {SQLITE_LIMIT_EXPR_DEPTH, 500},       {SQLITE_LIMIT_COMPOUND_SELECT, 200},
    {SQLITE_LIMIT_VDBE_OP, 1 << 20},      {SQLITE_LIMIT_FUNCTION_ARG, 100},
    {SQLITE_LIMIT_ATTACHED, 0},           {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 1000}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};
#define FOREIGN_LENGTH_MAX (16 << 20)

static void confine(sqlite3 *db, const char *const *modules_kept)
{
    static const struct {
        int what, value;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        sqlite3_db_config(db, settings[i].what, settings[i].value, (int *)NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(db, limits[i].what, limits[i].value);
    sqlite3_drop_modules(db, (const char **)(uintptr_t)modules_kept); /* only read */
}

/* ---- statements ---- */

static bool is_refused(const struct sv_sandbox *x, const char *name)
{
    const char *p = (const char *)x->refused.data;
    for (size_t at = 0; name && at < x->refused.len; at += strlen(p + at) + 1)
        if (sqlite3_stricmp(name, p + at) == 0)
            return true;
    return !name;
}

bool sv_sandbox_may_define(const struct sv_sandbox *x, const char *name)
{
    return !is_refused(x, name);
}

static int authorize(void *ctx, int action, const char *a, const char *b, const char *database,
                     const char *trigger)
{
    (void)database;
    (void)trigger;
    struct sv_sandbox *x = ctx;
    bool is_allowed;
    x->has_too_many_views = false;
    if (x->is_trusted)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TEMP_INDEX:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_REINDEX: is_allowed = true; break; /* REINDEX: a part of CREATE INDEX */
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_TEMP_VIEW:
        is_allowed = x->n_views < SV_SANDBOX_VIEWS_MAX;
        x->n_views += is_allowed;
        x->has_too_many_views = !is_allowed;
        break;
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_VTABLE: is_allowed = IS_IN(modules, b); break;
    case SQLITE_PRAGMA: is_allowed = IS_IN(pragmas, a); break;
    case SQLITE_FUNCTION: is_allowed = !is_refused(x, b); break;
    default: is_allowed = false;
    }
    return is_allowed ? SQLITE_OK : SQLITE_DENY;
}

static int authorize_foreign(void *ctx, int action, const char *a, const char *b,
                             const char *database, const char *trigger)
{
    (void)ctx, (void)a, (void)b, (void)database, (void)trigger;
    return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

/* ---- opening ---- */

/* What SQLite has by itself, as it was compiled here, less what is allowed; what is added to the
 * connection later is ours. */
static int list_refused(struct sv_sandbox *x)
{
    sqlite3_stmt *s = NULL;
    int rc =
        sqlite3_prepare_v2(x->db, "SELECT DISTINCT name FROM pragma_function_list", -1, &s, NULL);
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        if (name && !IS_IN(functions, name))
            sv_buf_add(&x->refused, name, strlen(name) + 1);
    }
    int end = sqlite3_finalize(s);
    return rc == SQLITE_OK ? end : rc;
}

int sv_sandbox_open(struct sv_sandbox *x, int flags)
{
    *x = (struct sv_sandbox){0};
    sv_buf_init(&x->refused, 1 << 16);
    int rc = sqlite3_open_v2(":memory:", &x->db, flags, NULL);
    if (rc != SQLITE_OK)
        return rc;
    confine(x->db, kept_modules);
    return list_refused(x);
}

void sv_sandbox_trust(struct sv_sandbox *x, bool is_trusted)
{
    x->is_trusted = is_trusted;
    sqlite3_limit(x->db, SQLITE_LIMIT_ATTACHED, is_trusted);
    sqlite3_db_config(x->db, SQLITE_DBCONFIG_DEFENSIVE, !is_trusted, (int *)NULL);
}

int sv_sandbox_seal(struct sv_sandbox *x)
{
    return sqlite3_set_authorizer(x->db, authorize, x);
}

void sv_sandbox_close(struct sv_sandbox *x)
{
    sqlite3_close_v2(x->db);
    sv_buf_fini(&x->refused);
    x->db = NULL;
}

int sv_sandbox_open_foreign(const char *uri, void *bytes, size_t size, sqlite3 **db)
{
    static const char *const no_modules[] = {NULL};
    int flags = uri ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
    int rc = sqlite3_open_v2(uri ? uri : ":memory:", db, flags, NULL);
    if (rc == SQLITE_OK && !uri)
        rc = sqlite3_deserialize(*db, "main", bytes, (sqlite3_int64)size, (sqlite3_int64)size,
                                 SQLITE_DESERIALIZE_READONLY);
    if (rc != SQLITE_OK)
        return rc;
    confine(*db, no_modules);
    sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, FOREIGN_LENGTH_MAX);
    /* Not for our own: its schema comes from statements that were looked at, and SQLite 3.40 holds
     * json_valid() for unsafe in views. */
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)NULL);
    sqlite3_exec(*db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    return sqlite3_set_authorizer(*db, authorize_foreign, NULL);
}
#endif
