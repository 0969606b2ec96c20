/* Virtual tables: the one implementation behind all of Stave's SQL tables.
 *
 * SQLite calls best_index() while it plans, then filter(), next(), column() while it runs. A table
 * says by data which conditions it can use; best_index() writes those that a query has into a
 * string of (column, operator) pairs, and filter() hands them with their values to the table's
 * start(), which then knows what is cheapest. Must not trust a condition to be exact: SQLite checks
 * every row again. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "sql/typed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct table {
    sqlite3_vtab base;
    struct sv_sql *q;
    const struct sv_sql_table *table;
};

struct module {
    struct sv_sql *q;
    const struct sv_sql_table *table;
};

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message)
{
    (void)argc;
    (void)argv;
    (void)message;
    const struct module *m = aux;
    struct sv_buf sql;
    sv_buf_init(&sql, 1 << 16);
    sv_buf_str(&sql, "CREATE TABLE x(");
    if (m->table->columns)
        sv_buf_str(&sql, m->table->columns);
    else
        sv_typed_declare(sv_typed_table(m->table->name), &sql);
    sv_buf_byte(&sql, ')');
    int rc = sqlite3_declare_vtab(db, sv_buf_cstr(&sql));
    sv_buf_fini(&sql);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    struct table *t = sqlite3_malloc(sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    memset(t, 0, sizeof *t);
    t->q = m->q;
    t->table = m->table;
    *out = &t->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

/* ---- planning ---- */

static char op_letter(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: return SV_OP_EQ;
    case SQLITE_INDEX_CONSTRAINT_GT: return SV_OP_GT;
    case SQLITE_INDEX_CONSTRAINT_GE: return SV_OP_GE;
    case SQLITE_INDEX_CONSTRAINT_LT: return SV_OP_LT;
    case SQLITE_INDEX_CONSTRAINT_LE: return SV_OP_LE;
    case SQLITE_INDEX_CONSTRAINT_GLOB: return SV_OP_GLOB;
    case SQLITE_INDEX_CONSTRAINT_LIKE: return SV_OP_LIKE;
    case SQLITE_INDEX_CONSTRAINT_ISNULL: return SV_OP_NULL;
    default: return 0;
    }
}

static const struct sv_sql_key *find_key(const struct sv_sql_table *t, int column, char op)
{
    for (size_t i = 0; i < t->n_keys; i++)
        if (t->keys[i].column == column && op && strchr(t->keys[i].ops, op))
            return &t->keys[i];
    return NULL;
}

/* A condition under another collation than byte order means something that the table does not
 * know. */
static bool is_binary(sqlite3_index_info *info, int i, char op)
{
    if (op == SV_OP_GLOB || op == SV_OP_LIKE)
        return true;
    const char *collation = sqlite3_vtab_collation(info, i);
    return !collation || sqlite3_stricmp(collation, "BINARY") == 0;
}

struct choice {
    char pairs[2 * SV_SQL_CONDS_MAX + 1];
    int n;
    unsigned arguments; /* bits of the function's arguments that are given */
    double rows;
    bool is_unique;
};

static void choose(const struct table *t, sqlite3_index_info *info, struct choice *c)
{
    int first = t->table->first_argument, n_arguments = t->table->n_arguments;
    for (int i = 0; i < info->nConstraint && c->n < SV_SQL_CONDS_MAX; i++) {
        const struct sqlite3_index_constraint *k = &info->aConstraint[i];
        char op = op_letter(k->op);
        bool is_argument = n_arguments && k->iColumn >= first && k->iColumn < first + n_arguments;
        if (!k->usable || (is_argument && op != SV_OP_EQ))
            continue;
        int column = k->iColumn < 0 ? 0 : k->iColumn; /* the rowid is the id */
        const struct sv_sql_key *key = is_argument ? NULL : find_key(t->table, column, op);
        if (!is_argument && (!key || !is_binary(info, i, op)))
            continue;
        if (op == SV_OP_EQ && key && strchr(key->ops, SV_OP_IN) && sqlite3_vtab_in(info, i, -1)) {
            sqlite3_vtab_in(
                info, i,
                1); /* all values at once: one after the other, rows would leave their order */
            op = SV_OP_IN;
        }
        c->pairs[2 * c->n] = (char)('A' + column);
        c->pairs[2 * c->n + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++c->n;
        info->aConstraintUsage[i].omit = is_argument || (t->table->exact >> column & 1);
        if (is_argument)
            c->arguments |= 1u << (k->iColumn - first);
        else if (key->fraction == 0)
            c->is_unique = true;
        else
            c->rows *= key->fraction;
    }
}

/* Hands LIMIT and OFFSET down, which SQLite offers when nothing but conditions on the table and the
 * order decide what is left. */
static void take_limit(sqlite3_index_info *info, struct choice *c)
{
    for (int i = 0; i < info->nConstraint && c->n < SV_SQL_CONDS_MAX; i++) {
        unsigned char op = info->aConstraint[i].op;
        bool is_limit = op == SQLITE_INDEX_CONSTRAINT_LIMIT;
        if (!is_limit && op != SQLITE_INDEX_CONSTRAINT_OFFSET)
            continue;
        c->pairs[2 * c->n] = 'A';
        c->pairs[2 * c->n + 1] = (char)(is_limit ? SV_OP_LIMIT : SV_OP_OFFSET);
        info->aConstraintUsage[i].argvIndex = ++c->n;
    }
}

static int table_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const struct table *t = (const struct table *)v;
    struct choice c = {.rows = (double)t->table->rows(t->q)};
    choose(t, info, &c);
    if (t->table->n_arguments && !(c.arguments & 1u))
        return SQLITE_CONSTRAINT; /* a function needs its first argument */
    c.rows = c.is_unique ? 1 : c.rows < 2 ? 2 : c.rows;
    info->estimatedRows = (sqlite3_int64)c.rows;
    info->estimatedCost = c.is_unique ? 1 : c.rows + (c.n ? 10 : 100);
    if (c.is_unique)
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    if (info->colUsed == 0 && info->nOrderBy == 0)
        info->idxNum = -1; /* only counted: any order will do */
    if (t->table->order && info->nOrderBy > 0) {
        info->idxNum = t->table->order(t->q, info, c.n > 0);
        info->orderByConsumed = info->idxNum > 0;
        if (info->idxNum & SV_ORDER_LIMITED)
            take_limit(info, &c);
    }
    info->idxNum = (int)((unsigned)(info->idxNum + 1) | ((unsigned)info->colUsed & 0x7fffffu) << 8);
    info->idxStr = sqlite3_mprintf("%s", c.pairs);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- running ---- */

static int cursor_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    struct table *t = (struct table *)v;
    struct sv_sql_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    c->q = t->q;
    c->table = t->table;
    *out = &c->base;
    return SQLITE_OK;
}

static void cursor_reset(struct sv_sql_cursor *c)
{
    if (c->table->finish)
        c->table->finish(c);
    free(c->owned);
    c->owned = NULL;
    sv_sql_none(c);
    c->is_backward = c->is_filtered = false;
    c->names = NULL;
    c->group = 0;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    cursor_reset((struct sv_sql_cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

/* Rows of a list lie apart in the columns: they are asked for this many steps ahead. */
#define AHEAD 24

static inline void take_row(struct sv_sql_cursor *c)
{
    if (c->at >= c->end)
        return;
    uint64_t at = c->is_backward ? c->end - 1 : c->at;
    c->row = c->rows ? c->rows[at] : at;
    if (c->rows && c->table->prefetch && !c->is_backward && at + AHEAD < c->end)
        c->table->prefetch(c->q, c->rows[at + AHEAD], c->used);
}

static inline void advance(struct sv_sql_cursor *c)
{
    if (c->is_backward)
        c->end--;
    else
        c->at++;
    take_row(c);
}

/* Goes on to a row that passes: without a call of SQLite, and no further than who asked needs. */
static inline void skip_unwanted(struct sv_sql_cursor *c)
{
    while (c->is_filtered && c->at < c->end && !c->table->passes(c))
        advance(c);
}

/* All rows: where the table says no better. */
static int start_all(struct sv_sql_cursor *c)
{
    sv_sql_range(c, 0, c->table->rows(c->q));
    c->is_filtered = c->table->passes != NULL;
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *pairs, int argc,
                         sqlite3_value **argv)
{
    struct sv_sql_cursor *c = (struct sv_sql_cursor *)base;
    struct sv_sql_cond conds[SV_SQL_CONDS_MAX];
    int order = (plan & 0xff) - 1; /* written by best_index() */
    cursor_reset(c);
    c->used = (unsigned)plan >> 8;
    for (int i = 0; i < argc; i++) {
        conds[i] =
            (struct sv_sql_cond){pairs[2 * i] - 'A', (enum sv_sql_op)pairs[2 * i + 1], argv[i]};
        /* Nothing equals NULL or is beyond it: a join along an empty parent_id must not scan. */
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL && conds[i].op != SV_OP_NULL &&
            conds[i].op != SV_OP_IN)
            return SQLITE_OK;
    }
    if (c->table->make)
        c->table->make(c->q);
    int rc = c->table->start ? c->table->start(c, order, conds, (size_t)argc) : start_all(c);
    take_row(c);
    skip_unwanted(c);
    return rc;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct sv_sql_cursor *c = (struct sv_sql_cursor *)base;
    if (c->table->step)
        return c->table->step(c);
    advance(c);
    skip_unwanted(c);
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    return sv_sql_at_end((struct sv_sql_cursor *)base);
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    struct sv_sql_cursor *c = (struct sv_sql_cursor *)base;
    c->table->column(c, ctx, column);
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    struct sv_sql_cursor *c = (struct sv_sql_cursor *)base;
    *out = (sqlite3_int64)c->row;
    if (c->table == &sv_sql_slice)
        *out = sv_index_id(c->q->index, (uint32_t)c->row);
    return SQLITE_OK;
}

/* Eponymous: the table exists without CREATE VIRTUAL TABLE. */
static const sqlite3_module module_methods = {
    .iVersion = 0,
    .xConnect = table_connect,
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

int sv_sql_add_table(struct sv_sql *q, const struct sv_sql_table *table)
{
    struct module *m = sv_alloc(sizeof *m);
    *m = (struct module){q, table};
    return sqlite3_create_module_v2(q->db, table->name, &module_methods, m, free);
}

/* ---- for the tables ---- */

void sv_sql_none(struct sv_sql_cursor *c)
{
    c->rows = NULL;
    c->at = c->end = 0;
}

void sv_sql_range(struct sv_sql_cursor *c, uint64_t from, uint64_t to)
{
    c->rows = NULL;
    c->at = from;
    c->end = from < to ? to : from;
}

void sv_sql_list(struct sv_sql_cursor *c, const uint32_t *rows, uint64_t from, uint64_t to)
{
    sv_sql_range(c, from, to);
    c->rows = rows;
}

void sv_sql_own(struct sv_sql_cursor *c, uint32_t *rows, uint64_t n)
{
    c->owned = rows;
    sv_sql_list(c, rows, 0, n);
}

bool sv_sql_value_int(sqlite3_value *v, enum sv_sql_op op, int64_t *out)
{
    int type = sqlite3_value_numeric_type(v);
    if (type == SQLITE_INTEGER) {
        *out = sqlite3_value_int64(v);
        return true;
    }
    if (type != SQLITE_FLOAT)
        return false;
    double d = sqlite3_value_double(v), whole = floor(d);
    if (op == SV_OP_EQ && whole != d)
        return false;
    if (op == SV_OP_GE || op == SV_OP_LT)
        whole = ceil(d);
    if (whole >= 9223372036854775808.0 || whole < -9223372036854775808.0) {
        *out = whole > 0 ? INT64_MAX : INT64_MIN;
        return op != SV_OP_EQ;
    }
    *out = (int64_t)whole;
    return true;
}

void sv_sql_narrow(const struct sv_sql_cond *cond, int64_t *from, int64_t *to)
{
    int64_t v;
    if (!sv_sql_value_int(cond->value, cond->op, &v)) {
        if (cond->op == SV_OP_EQ)
            *to = INT64_MIN, *from = INT64_MAX;
        return;
    }
    bool lower = cond->op == SV_OP_EQ || cond->op == SV_OP_GE || cond->op == SV_OP_GT;
    bool upper = cond->op == SV_OP_EQ || cond->op == SV_OP_LE || cond->op == SV_OP_LT;
    if (cond->op == SV_OP_GT && v < INT64_MAX)
        v++;
    if (cond->op == SV_OP_LT && v > INT64_MIN)
        v--;
    if (lower && v > *from)
        *from = v;
    if (upper && v < *to)
        *to = v;
}

const struct sv_sql_cond *sv_sql_find_cond(const struct sv_sql_cond *conds, size_t n, int column,
                                           enum sv_sql_op op)
{
    for (size_t i = 0; i < n; i++)
        if (conds[i].column == column && conds[i].op == op)
            return &conds[i];
    return NULL;
}

void sv_sql_result_str(const struct sv_sql *q, sqlite3_context *ctx, sv_str s)
{
    struct sv_text text = sv_dict_text(q->dict, s);
    if (s)
        sqlite3_result_text(ctx, text.bytes, (int)text.len, SQLITE_STATIC);
}

void sv_sql_result_text(sqlite3_context *ctx, const char *s, size_t len)
{
    sqlite3_result_text64(ctx, s, len, SQLITE_TRANSIENT, SQLITE_UTF8);
}
#endif
