/* SPAN_JOIN: what ran during what.
 *
 *     CREATE VIRTUAL TABLE x USING SPAN_JOIN(a PARTITIONED utid, b PARTITIONED utid);
 *     SELECT ts, dur, utid, … FROM x;
 *
 * As in Perfetto: both tables have ts and dur; a row of the result is the common time of a row of
 * each, with the other columns of both. Within a partition the spans of one table must not overlap
 * (those that begin before the one before them ended are cut). SPAN_LEFT_JOIN keeps the time of a
 * that no row of b covers, with NULLs. The tables are read in the order of partition and time and
 * merged while the query runs, so nothing is stored. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_COLUMNS_MAX 64

/* One of the two tables. */
struct side {
    char *table, *partition;         /* partition: NULL when there is none */
    char *columns[SIDE_COLUMNS_MAX]; /* besides ts, dur and the partition */
    int n_columns;
};

struct span_table {
    sqlite3_vtab base;
    sqlite3 *db;
    struct side sides[2];
    bool is_left;
};

/* The reading position of one side. */
struct reader {
    sqlite3_stmt *s;
    bool is_done;
    int64_t partition, from, to;
};

struct span_cursor {
    sqlite3_vtab_cursor base;
    struct reader r[2];
    int64_t from, to; /* the current row */
    int64_t covered;  /* left join: a's time before this was given */
    bool is_done, has_b;
};

struct module {
    struct sv_sql *q;
    bool is_left;
};

static void side_fini(struct side *s)
{
    for (int i = 0; i < s->n_columns; i++)
        sqlite3_free(s->columns[i]);
    sqlite3_free(s->table);
    sqlite3_free(s->partition);
}

/* "name" or "name PARTITIONED column". */
static bool parse_side(const char *text, struct side *s)
{
    char table[128] = "", word[128] = "", column[128] = "";
    int n = sscanf(text, "%127s %127s %127s", table, word, column);
    if (n != 1 && (n != 3 || sqlite3_stricmp(word, "PARTITIONED") != 0))
        return false;
    s->table = sqlite3_mprintf("%s", table);
    s->partition = n == 3 ? sqlite3_mprintf("%s", column) : NULL;
    return true;
}

static int find_columns(sqlite3 *db, struct side *s, char **message)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", s->table);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    bool has_ts = false, has_dur = false, has_partition = !s->partition;
    sqlite3_free(sql);
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        bool is_partition = s->partition && sqlite3_stricmp(name, s->partition) == 0;
        if (sqlite3_stricmp(name, "ts") == 0)
            has_ts = true;
        else if (sqlite3_stricmp(name, "dur") == 0)
            has_dur = true;
        else if (is_partition)
            has_partition = true;
        else if (s->n_columns < SIDE_COLUMNS_MAX)
            s->columns[s->n_columns++] = sqlite3_mprintf("%s", name);
    }
    sqlite3_finalize(stmt);
    if (rc == SQLITE_OK && (!has_ts || !has_dur || !has_partition)) {
        *message = sqlite3_mprintf("SPAN_JOIN: %s lacks ts, dur or the partition", s->table);
        return SQLITE_ERROR;
    }
    return rc;
}

static bool has_column(const struct side *s, const char *name)
{
    for (int i = 0; i < s->n_columns; i++)
        if (sqlite3_stricmp(s->columns[i], name) == 0)
            return true;
    return false;
}

/* ts, dur, the partition, then the columns of a and those of b that a does not have. */
static int declare(struct span_table *t)
{
    char *sql = sqlite3_mprintf("CREATE TABLE x(ts INTEGER, dur INTEGER");
    const char *partition = t->sides[0].partition ? t->sides[0].partition : t->sides[1].partition;
    sql = sqlite3_mprintf("%z, \"%w\" INTEGER%s", sql, partition ? partition : "span_partition",
                          partition ? "" : " HIDDEN");
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < t->sides[k].n_columns; i++) {
            const char *name = t->sides[k].columns[i];
            bool is_twice = k == 1 && has_column(&t->sides[0], name);
            sql = sqlite3_mprintf("%z, \"%w%s\"%s", sql, name, is_twice ? ":b" : "",
                                  is_twice ? " HIDDEN" : "");
        }
    sql = sqlite3_mprintf("%z)", sql);
    int rc = sql ? sqlite3_declare_vtab(t->db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static int span_disconnect(sqlite3_vtab *v)
{
    struct span_table *t = (struct span_table *)v;
    side_fini(&t->sides[0]);
    side_fini(&t->sides[1]);
    sqlite3_free(t);
    return SQLITE_OK;
}

static int span_create(sqlite3 *db, void *aux, int argc, const char *const *argv,
                       sqlite3_vtab **out, char **message)
{
    const struct module *m = aux;
    struct span_table *t = sqlite3_malloc(sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    memset(t, 0, sizeof *t);
    t->db = db;
    t->is_left = m->is_left;
    int rc = SQLITE_OK;
    if (argc != 5 || !parse_side(argv[3], &t->sides[0]) || !parse_side(argv[4], &t->sides[1])) {
        *message =
            sqlite3_mprintf("SPAN_JOIN: needs two tables, each with PARTITIONED column or without");
        rc = SQLITE_ERROR;
    }
    for (int k = 0; k < 2 && rc == SQLITE_OK; k++)
        rc = find_columns(db, &t->sides[k], message);
    if (rc == SQLITE_OK)
        rc = declare(t);
    if (rc != SQLITE_OK) {
        span_disconnect(&t->base);
        return rc;
    }
    *out = &t->base;
    return SQLITE_OK;
}

static int span_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    info->estimatedCost = 1e6;
    return SQLITE_OK;
}

static int span_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    struct span_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static int span_close(sqlite3_vtab_cursor *base)
{
    struct span_cursor *c = (struct span_cursor *)base;
    sqlite3_finalize(c->r[0].s);
    sqlite3_finalize(c->r[1].s);
    sqlite3_free(c);
    return SQLITE_OK;
}

/* The next span of a side; one that begins inside the span before it is cut at its end. */
static int advance(struct reader *r)
{
    int64_t partition = r->partition, until = r->to;
    for (;;) {
        int rc = sqlite3_step(r->s);
        if (rc == SQLITE_DONE) {
            r->is_done = true;
            return SQLITE_OK;
        }
        if (rc != SQLITE_ROW)
            return rc;
        int64_t dur = sqlite3_column_int64(r->s, 1);
        r->from = sqlite3_column_int64(r->s, 0);
        r->partition = sqlite3_column_int64(r->s, 2);
        if (dur < 0 || __builtin_add_overflow(r->from, dur, &r->to))
            r->to = INT64_MAX;
        if (r->partition == partition && r->from < until)
            r->from = until;
        if (r->from < r->to)
            return SQLITE_OK;
    }
}

static int begin_side(struct span_table *t, int k, struct reader *r)
{
    const struct side *s = &t->sides[k];
    char *sql = s->partition ? sqlite3_mprintf("SELECT ts, dur, \"%w\"", s->partition)
                             : sqlite3_mprintf("SELECT ts, dur, 0");
    for (int i = 0; i < s->n_columns; i++)
        sql = sqlite3_mprintf("%z, \"%w\"", sql, s->columns[i]);
    sql = sqlite3_mprintf("%z FROM \"%w\" WHERE dur != 0 AND ts IS NOT NULL", sql, s->table);
    if (s->partition)
        sql = sqlite3_mprintf("%z AND \"%w\" IS NOT NULL", sql, s->partition);
    sql = sqlite3_mprintf("%z ORDER BY 3, 1", sql);
    int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &r->s, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    r->partition = r->to = INT64_MIN;
    return rc == SQLITE_OK ? advance(r) : rc;
}

/* -1: a lies before b, 1: after it, 0: they meet. */
static int compare(const struct reader *a, const struct reader *b)
{
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return a->to <= b->from ? -1 : b->to <= a->from ? 1 : 0;
}

/* Finds the next row from the current positions of the readers. */
static int find_row(struct span_cursor *c, bool is_left)
{
    struct reader *a = &c->r[0], *b = &c->r[1];
    while (!a->is_done && (!b->is_done || is_left)) {
        int order = b->is_done ? -1 : compare(a, b);
        int64_t start = c->covered > a->from ? c->covered : a->from;
        int64_t next = order == 0 ? b->from : a->to; /* until there a is alone */
        if (is_left && order <= 0 && start < next) {
            c->from = start;
            c->to = c->covered = next;
            c->has_b = false;
            return SQLITE_OK;
        }
        if (order == 0) {
            c->from = a->from > b->from ? a->from : b->from;
            c->to = c->covered = a->to < b->to ? a->to : b->to;
            c->has_b = true;
            return SQLITE_OK;
        }
        int rc = advance(order < 0 ? a : b);
        if (order < 0)
            c->covered = INT64_MIN;
        if (rc != SQLITE_OK)
            return rc;
    }
    c->is_done = true;
    return SQLITE_OK;
}

static int span_next(sqlite3_vtab_cursor *base)
{
    struct span_cursor *c = (struct span_cursor *)base;
    bool is_left = ((struct span_table *)base->pVtab)->is_left;
    int rc = SQLITE_OK;
    if (c->has_b) { /* the one that ends first is advanced */
        bool a_ends = c->r[0].to <= c->r[1].to, b_ends = c->r[1].to <= c->r[0].to;
        if (b_ends)
            rc = advance(&c->r[1]);
        if (a_ends && rc == SQLITE_OK) {
            rc = advance(&c->r[0]);
            c->covered = INT64_MIN;
        }
    }
    return rc == SQLITE_OK ? find_row(c, is_left) : rc;
}

static int span_filter(sqlite3_vtab_cursor *base, int n, const char *s, int argc,
                       sqlite3_value **argv)
{
    (void)n;
    (void)s;
    (void)argc;
    (void)argv;
    struct span_cursor *c = (struct span_cursor *)base;
    struct span_table *t = (struct span_table *)base->pVtab;
    int rc = SQLITE_OK;
    for (int k = 0; k < 2; k++) {
        sqlite3_finalize(c->r[k].s);
        c->r[k] = (struct reader){0};
    }
    c->is_done = c->has_b = false;
    c->covered = INT64_MIN;
    for (int k = 0; k < 2 && rc == SQLITE_OK; k++)
        rc = begin_side(t, k, &c->r[k]);
    return rc == SQLITE_OK ? find_row(c, t->is_left) : rc;
}

static int span_eof(sqlite3_vtab_cursor *base)
{
    return ((struct span_cursor *)base)->is_done;
}

static int span_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    struct span_cursor *c = (struct span_cursor *)base;
    const struct span_table *t = (const struct span_table *)base->pVtab;
    int n_a = t->sides[0].n_columns;
    if (column == 0)
        sqlite3_result_int64(ctx, c->from);
    else if (column == 1)
        sqlite3_result_int64(ctx, c->to - c->from);
    else if (column == 2)
        sqlite3_result_int64(ctx, c->r[0].partition);
    else if (column < 3 + n_a)
        sqlite3_result_value(ctx, sqlite3_column_value(c->r[0].s, column));
    else if (c->has_b)
        sqlite3_result_value(ctx, sqlite3_column_value(c->r[1].s, column - n_a));
    return SQLITE_OK;
}

static int span_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((struct span_cursor *)base)->from;
    return SQLITE_OK;
}

static const sqlite3_module span_module = {
    .xCreate = span_create,
    .xConnect = span_create,
    .xBestIndex = span_best_index,
    .xDisconnect = span_disconnect,
    .xDestroy = span_disconnect,
    .xOpen = span_open,
    .xClose = span_close,
    .xFilter = span_filter,
    .xNext = span_next,
    .xEof = span_eof,
    .xColumn = span_column,
    .xRowid = span_rowid,
};

int sv_sql_add_span_join(struct sv_sql *q)
{
    static const char *const names[] = {"span_join", "span_left_join"};
    int rc = SQLITE_OK;
    for (int i = 0; i < 2 && rc == SQLITE_OK; i++) {
        struct module *m = sv_alloc(sizeof *m);
        *m = (struct module){q, i == 1};
        rc = sqlite3_create_module_v2(q->db, names[i], &span_module, m, free);
    }
    return rc;
}
#endif
