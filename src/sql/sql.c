/* The SQL connection: opening, what it may do, running statements, export.
 *
 * sv_sql_open() makes a SQLite database in memory, registers the virtual tables, functions and
 * views, and from then on sql/sandbox.c says what statements may do. Statements may create tables
 * and views of their own, which live in memory. */
#include "sql/sql.h"

#include "sql/direct.h"

#ifndef SV_HAVE_SQLITE
int sv_sql_open(const struct sv_trace *t, const struct sv_sql_options *options, struct sv_sql **out,
                struct sv_err *err)
{
    (void)t;
    (void)options;
    *out = NULL;
    return sv_error(err, SV_ELIMIT,
                    "this build has no SQLite: install libsqlite3-dev and build again");
}

void sv_sql_close(struct sv_sql *q)
{
    (void)q;
}

int sv_sql_run(struct sv_sql *q, const char *sql, struct sv_rows_sink *rows, struct sv_err *err)
{
    (void)q;
    (void)sql;
    (void)rows;
    return sv_error(err, SV_ELIMIT, "this build has no SQLite");
}

int sv_sql_run_with(struct sv_sql *q, const char *sql, const struct sv_sql_values *values,
                    struct sv_rows_sink *rows, struct sv_err *err)
{
    (void)values;
    return sv_sql_run(q, sql, rows, err);
}

int sv_sql_export(struct sv_sql *q, const char *path, struct sv_err *err)
{
    return sv_sql_run(q, path, NULL, err);
}

void sv_sql_limit(struct sv_sql *q, int64_t milliseconds)
{
    (void)q;
    (void)milliseconds;
}

struct sv_index *sv_sql_index(struct sv_sql *q)
{
    (void)q;
    return NULL;
}

bool sv_sql_has_args(struct sv_sql *q, uint32_t handle)
{
    (void)q;
    (void)handle;
    return false;
}

bool sv_sql_has_category(struct sv_sql *q, const char *list)
{
    (void)q;
    (void)list;
    return false;
}

int sv_sql_each_arg(struct sv_sql *q, int (*take)(void *ctx, const struct sv_arg_row *row),
                    void *ctx)
{
    (void)q;
    (void)take;
    (void)ctx;
    return SV_ELIMIT;
}

void sv_sql_interrupt(struct sv_sql *q)
{
    (void)q;
}

bool sv_sql_is_complete(const char *sql)
{
    (void)sql;
    return true;
}

bool sv_sql_is_built_in(void)
{
    return false;
}
#else
#include "core/base/mem.h"
#include "core/base/now.h"
#include "sql/fold.h"
#include "sql/groups.h"
#include "store/track_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool sv_sql_is_built_in(void)
{
    return true;
}

/* ---- opening ---- */

static const struct sv_sql_table *const tables[] = {
    &sv_sql_slice,
    &sv_sql_track,
    &sv_sql_thread,
    &sv_sql_process,
    &sv_sql_counter,
    &sv_sql_flow,
    &sv_sql_loss,
    &sv_sql_args,
    &sv_sql_stats,
    &sv_sql_metadata,
    &sv_sql_clock_snapshot,
    &sv_sql_machine,
    &sv_sql_ancestor,
    &sv_sql_descendant,
    &sv_sql_during,
    &sv_sql_connected,
    &sv_sql_following,
    &sv_sql_preceding,
    &sv_sql_ancestor_and_self,
    &sv_sql_descendant_and_self,
    &sv_sql_groups,
};

#define SET_ADDRESS(name, report, tables) SV_IF_##tables(&sv_##name##_tables, )
static const struct sv_sql_set *const sets[] = {SV_SUBJECTS(SET_ADDRESS)};
#undef SET_ADDRESS

void **sv_sql_kept(struct sv_sql *q, const struct sv_sql_set *set)
{
    size_t i = 0;
    while (sets[i] != set) {
        i++;
        assert(i < SV_N_SETS);
    }
    return &q->kept[i];
}

static int add_set(struct sv_sql *q, const struct sv_sql_set *set)
{
    int rc = set->add_functions ? set->add_functions(q) : SQLITE_OK;
    for (const struct sv_sql_table *const *t = set->tables; rc == SQLITE_OK && *t; t++)
        rc = sv_sql_add_table(q, *t);
    return rc;
}

static void forget_sets(struct sv_sql *q)
{
    for (size_t i = 0; i < SV_N_SETS; i++)
        if (q->kept[i])
            sets[i]->forget(q->kept[i]);
}

static int add_everything(struct sv_sql *q)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof tables / sizeof *tables; i++)
        rc = sv_sql_add_table(q, tables[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < SV_N_SETS; i++)
        rc = add_set(q, sets[i]);
    if (rc == SQLITE_OK)
        rc = sv_sql_add_functions(q);
    if (rc == SQLITE_OK)
        rc = sv_sql_add_arg_functions(q);
    if (rc == SQLITE_OK)
        rc = sv_sql_add_group_functions(q);
    if (rc == SQLITE_OK)
        rc = sv_sql_add_span_join(q);
    for (const char *const *v = sv_sql_views; rc == SQLITE_OK && *v; v++)
        rc = sqlite3_exec(q->db, *v, NULL, NULL, NULL);
    return rc;
}

int sv_sql_error(struct sv_sql *q, const char *doing, struct sv_err *err)
{
    int rc = sqlite3_errcode(q->db);
    int code = rc == SQLITE_NOMEM                        ? SV_ENOMEM
               : rc == SQLITE_IOERR || rc == SQLITE_FULL ? SV_EIO
                                                         : SV_ELIMIT;
    return sv_error(err, code, "%s: %s", doing, sqlite3_errmsg(q->db));
}

int sv_sql_open(const struct sv_trace *t, const struct sv_sql_options *options, struct sv_sql **out,
                struct sv_err *err)
{
    struct sv_sql *q = *out = sv_alloc(sizeof *q);
    q->trace = t;
    q->dict = t->dict;
    q->index = sv_index_new(t);
    q->arg_prefix = options->arg_prefix ? options->arg_prefix : "debug.";
    q->report = options->report;
    q->trace_type = options->trace_type;
    q->trace_bytes = options->trace_bytes;
    q->scratch = sv_alloc(sizeof *q->scratch);
    sv_batch_init(q->scratch);
    sv_buf_init(&q->text, 1u << 30);
    sv_sql_number_tracks(q);
    if (options->memory_limit_bytes)
        sqlite3_hard_heap_limit64((sqlite3_int64)options->memory_limit_bytes);
    /* Not SQLITE_OPEN_MEMORY: attached databases would inherit it, and export writes a file. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sv_sandbox_open(&q->sandbox, flags);
    q->db = q->sandbox.db;
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(q->db, "PRAGMA cache_size = -65536", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = add_everything(q);
    if (rc == SQLITE_OK)
        rc = sv_sandbox_seal(&q->sandbox);
    return rc == SQLITE_OK ? 0 : sv_sql_error(q, "opening SQLite", err);
}

void sv_sql_close(struct sv_sql *q)
{
    if (!q)
        return;
    sv_sql_forget_functions(q);
    sv_sandbox_close(&q->sandbox);
    sv_index_free(q->index);
    sv_batch_fini(q->scratch);
    free(q->scratch);
    sv_buf_fini(&q->text);
    free(q->threads);
    free(q->processes);
    free(q->thread_of);
    free(q->process_of);
    free(q->by_tid);
    free(q->by_thread);
    free(q->by_process);
    free(q->thread_first);
    free(q->process_first);
    free(q->spaces);
    free(q->origins);
    forget_sets(q);
    free(q->self_ns);
    sv_track_rows_free(q->rows);
    free(q->arg_sets);
    free(q->categories);
    sv_sql_forget_groups(q);
    free(q->group_sets);
    free(q->category_numbers);
    free(q);
}

void sv_sql_interrupt(struct sv_sql *q)
{
    sqlite3_interrupt(q->db);
}

static int is_late(void *ctx)
{
    const struct sv_sql *q = ctx;
    return sv_now_ms() > q->deadline_ms;
}

void sv_sql_limit(struct sv_sql *q, int64_t milliseconds)
{
    q->limit_ms = milliseconds;
    sqlite3_progress_handler(q->db, milliseconds ? 10000 : 0, is_late, q);
}

bool sv_sql_is_complete(const char *sql)
{
    return sqlite3_complete(sql);
}

/* ---- running ---- */

static unsigned line_of(const char *sql, const char *at)
{
    unsigned line = 1;
    for (; sql < at; sql++)
        line += *sql == '\n';
    return line;
}

/* What went wrong in the statement that begins at `at`; SQLite may know the byte within it. */
static int statement_error(struct sv_sql *q, const char *sql, const char *at, struct sv_err *err)
{
    int rc = sqlite3_errcode(q->db) & 0xff, offset = sqlite3_error_offset(q->db);
    const char *message = sqlite3_errmsg(q->db), *hint = sv_sql_dialect_hint(q, message);
    if (rc == SQLITE_INTERRUPT && q->limit_ms && is_late(q))
        return sv_error(err, SV_EAGAIN,
                        "ended after %lld s: narrow the query, or run it with 'stave query'",
                        (long long)q->limit_ms / 1000);
    if (rc == SQLITE_INTERRUPT)
        return sv_error(err, SV_EAGAIN, "interrupted");
    if (rc == SQLITE_NOMEM)
        return sv_error(err, SV_ENOMEM, "the query needs more memory than the limit allows");
    if (rc == SQLITE_AUTH && q->sandbox.has_too_many_views)
        return sv_error(err, SV_EUSAGE,
                        "line %u: at most %d views can be made: make tables of some",
                        line_of(sql, at), SV_SANDBOX_VIEWS_MAX);
    if (rc == SQLITE_AUTH)
        return sv_error(err, SV_EUSAGE,
                        "line %u: traces are read-only: files and settings cannot be used (%s)",
                        line_of(sql, at), message);
    if (rc == SQLITE_IOERR || rc == SQLITE_FULL)
        return sv_error(err, SV_EIO, "%s", message);
    int shown = offset < 0 ? 0 : (int)strcspn(at + offset, "\n");
    shown = shown < 40 ? shown : 40;
    if (offset < 0)
        return sv_error(err, SV_EUSAGE, "line %u: %s%s", line_of(sql, at), message, hint);
    return sv_error(err, SV_EUSAGE, "line %u: %s, at '%.*s'%s", line_of(sql, at + offset), message,
                    shown, at + offset, hint);
}

static void fill_cells(sqlite3_stmt *s, struct sv_cell *cells, int n)
{
    for (int i = 0; i < n; i++) {
        struct sv_cell *c = &cells[i];
        *c = (struct sv_cell){.type = SV_CELL_NULL};
        switch (sqlite3_column_type(s, i)) {
        case SQLITE_INTEGER:
            c->type = SV_CELL_INT;
            c->i = sqlite3_column_int64(s, i);
            break;
        case SQLITE_FLOAT:
            c->type = SV_CELL_REAL;
            c->d = sqlite3_column_double(s, i);
            break;
        case SQLITE_TEXT:
            c->type = SV_CELL_TEXT;
            c->text = (const char *)sqlite3_column_text(s, i);
            c->len = (size_t)sqlite3_column_bytes(s, i);
            break;
        case SQLITE_BLOB:
            c->type = SV_CELL_BLOB;
            c->text = sqlite3_column_blob(s, i);
            c->len = (size_t)sqlite3_column_bytes(s, i);
            break;
        default: break;
        }
    }
}

static int give_head(sqlite3_stmt *s, int n, struct sv_rows_sink *rows, struct sv_err *err)
{
    const char **names = sv_alloc((size_t)n * sizeof *names);
    for (int i = 0; i < n; i++)
        names[i] = sqlite3_column_name(s, i);
    int code = rows->head(rows, names, (size_t)n, err);
    free(names);
    return code;
}

/* Runs a prepared statement to its end; *given counts its rows. 1: SQLite failed. */
static int give_rows(sqlite3_stmt *s, struct sv_cell *cells, struct sv_rows_sink *rows,
                     uint64_t *given, struct sv_err *err)
{
    int n = sqlite3_column_count(s), rc, code = 0;
    while (code >= 0 && (rc = sqlite3_step(s)) != SQLITE_DONE) {
        if (rc != SQLITE_ROW)
            return 1;
        fill_cells(s, cells, n);
        ++*given;
        code = rows->row(rows, cells, (size_t)n, err);
    }
    return code;
}

/* The same statement over groups of slices, if it only aggregates; else NULL. */
static sqlite3_stmt *folded(struct sv_sql *q, sqlite3_stmt *s, const char *at, const char *tail)
{
    sqlite3_stmt *f = NULL;
    char *sql = sqlite3_stmt_readonly(s) ? sv_sql_fold(q, at, tail) : NULL;
    if (sql && (sqlite3_prepare_v2(q->db, sql, -1, &f, NULL) != SQLITE_OK ||
                sqlite3_column_count(f) != sqlite3_column_count(s))) {
        sqlite3_finalize(f);
        f = NULL;
    }
    free(sql);
    return f;
}

/* may_fold: over groups, where its values are in the text and not parameters */
static int run_statement(struct sv_sql *q, sqlite3_stmt *s, const char *sql, const char *at,
                         const char *tail, bool may_fold, struct sv_rows_sink *rows,
                         struct sv_err *err)
{
    int n = sqlite3_column_count(s), code = 0;
    uint64_t given = 0;
    struct sv_cell *cells = sv_alloc(((size_t)n + 1) * sizeof *cells);
    sqlite3_stmt *fast = n && may_fold ? folded(q, s, at, tail) : NULL;
    if (n)
        code = give_head(s, n, rows, err);
    if (code >= 0 && fast)
        code = give_rows(fast, cells, rows, &given, err);
    /* What groups cannot answer (too many categories) is asked of the slices. */
    if (code >= 0 && (!fast || (code == 1 && !given && sqlite3_errcode(q->db) == SQLITE_ERROR)))
        code = give_rows(s, cells, rows, &given, err);
    if (code == 1)
        code = statement_error(q, sql, at, err);
    if (code >= 0 && n)
        code = rows->end(rows, err);
    sqlite3_finalize(fast);
    sqlite3_reset(s); /* its cursors are closed before what they refer to is gone */
    sv_sql_forget_groups(q);
    free(cells);
    return code;
}

static int bind_cell(sqlite3_stmt *s, int at, const struct sv_cell *c)
{
    switch (c->type) {
    case SV_CELL_INT: return sqlite3_bind_int64(s, at, c->i);
    case SV_CELL_REAL: return sqlite3_bind_double(s, at, c->d);
    case SV_CELL_TEXT:
        return sqlite3_bind_text64(s, at, c->text, c->len, SQLITE_STATIC, SQLITE_UTF8);
    case SV_CELL_BLOB: return sqlite3_bind_blob64(s, at, c->text, c->len, SQLITE_STATIC);
    default: return sqlite3_bind_null(s, at);
    }
}

/* The value for parameter `at` of the statement; NULL: none was given. */
static const struct sv_cell *value_for(const struct sv_sql_values *v, sqlite3_stmt *s, int at)
{
    const char *name = sqlite3_bind_parameter_name(s, at);
    if (!v->names || (name && *name == '?'))
        return !v->names && (size_t)at <= v->n ? &v->cells[at - 1] : NULL;
    for (size_t i = 0; name && i < v->n; i++)
        if (strcmp(v->names[i], name + 1) == 0)
            return &v->cells[i];
    return NULL;
}

static int bind_values(sqlite3_stmt *s, const struct sv_sql_values *v, struct sv_err *err)
{
    static const struct sv_sql_values none = {0};
    int wanted = sqlite3_bind_parameter_count(s);
    v = v ? v : &none;
    if (wanted && !v->names && (size_t)wanted != v->n)
        return sv_error(err, SV_EUSAGE, "the statement has %d parameter%s, and %zu %s given",
                        wanted, wanted == 1 ? "" : "s", v->n,
                        v->n == 1 ? "value was" : "values were");
    for (int at = 1; at <= wanted; at++) {
        const struct sv_cell *c = value_for(v, s, at);
        const char *name = sqlite3_bind_parameter_name(s, at);
        if (!c)
            return sv_error(err, SV_EUSAGE, "no value was given for the parameter %.100s",
                            name ? name : "?");
        if (bind_cell(s, at, c) != SQLITE_OK)
            return sv_error(err, SV_EUSAGE, "the value of parameter %d is too large", at);
    }
    return 0;
}

int sv_sql_run(struct sv_sql *q, const char *sql, struct sv_rows_sink *rows, struct sv_err *err)
{
    return sv_sql_run_with(q, sql, NULL, rows, err);
}

int sv_sql_run_with(struct sv_sql *q, const char *sql, const struct sv_sql_values *values,
                    struct sv_rows_sink *rows, struct sv_err *err)
{
    char *text = sv_strndup(sql, strlen(sql));
    const char *at = text, *tail;
    bool has_parameters = false;
    int code = 0;
    q->deadline_ms = q->limit_ms ? sv_now_ms() + q->limit_ms : INT64_MAX;
    while (code >= 0 && *(at = sv_sql_skip_space(at))) {
        sqlite3_stmt *s = NULL;
        if ((code = sv_sql_dialect(q, text + (at - text), &tail, err)) != 0) {
            at = code > 0 ? tail : at;
            continue;
        }
        if (sqlite3_prepare_v2(q->db, at, -1, &s, &tail) != SQLITE_OK)
            code = statement_error(q, text, at, err);
        else if (s)
            code = bind_values(s, values, err);
        has_parameters |= s && sqlite3_bind_parameter_count(s) > 0;
        if (s && code >= 0)
            code = run_statement(q, s, text, at, tail, !values, rows, err);
        sqlite3_finalize(s);
        at = tail ? tail : at + strlen(at);
    }
    free(text);
    if (code >= 0 && values && values->n && !has_parameters)
        return sv_error(err, SV_EUSAGE, "values were given, but no statement has a parameter");
    return code < 0 ? code : 0;
}
#endif

const char *const *sv_sql_tables(void)
{
    static const char *const names[] = {"slice",
                                        "track",
                                        "thread_track",
                                        "process_track",
                                        "counter_track",
                                        "thread_counter_track",
                                        "process_counter_track",
                                        "cpu_track",
                                        "gpu_track",
                                        "thread",
                                        "process",
                                        "counter",
                                        "args",
                                        "flow",
                                        "instant",
                                        "gpu_slice",
                                        "sched",
                                        "thread_state",
                                        "cpu",
                                        "state",
                                        "state_track",
                                        "stats",
                                        "metadata",
                                        "clock_snapshot",
                                        "machine",
                                        "trace_bounds",
                                        "loss",
                                        "io",
                                        "file",
                                        "kernel",
                                        "memcpy",
                                        "batch",
                                        "request",
                                        "step",
                                        "collective",
                                        "engine_step",
                                        "engine_step_member",
                                        "token",
                                        NULL};
    return names;
}
