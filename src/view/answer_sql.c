/* /api/sql and /api/tables: statements over the trace, one at a time.
 *
 * The connection is made at the first statement; tables and views that a statement creates stay
 * until the viewer ends. Cells are strings: an integer may be larger than JavaScript's numbers. */
#include "view/sql_desk.h"

#include "core/base/mem.h"
#include "core/stream/json_members.h"
#include "sql/sql.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT_MS 10000
#define ROWS_MAX 100000

struct sv_sql_desk {
    pthread_mutex_t lock;
    struct sv_sql *sql; /* NULL: nobody has asked yet */
};

struct sv_sql_desk *sv_sql_desk_new(void)
{
    struct sv_sql_desk *d = sv_alloc(sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void sv_sql_desk_free(struct sv_sql_desk *d)
{
    if (!d)
        return;
    sv_sql_close(d->sql);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static int open_sql(struct sv_sql_desk *d, const struct sv_shown *s, struct sv_err *err)
{
    if (d->sql)
        return 0;
    struct sv_sql_options options = {
        .report = s->about.report, .trace_type = s->about.format, .trace_bytes = s->about.bytes};
    int code = sv_sql_open(s->trace, &options, &d->sql, err);
    if (code < 0) {
        sv_sql_close(d->sql);
        d->sql = NULL;
        return code;
    }
    sv_sql_limit(d->sql, LIMIT_MS);
    return 0;
}

/* ---- rows as JSON ---- */

#define COLUMNS_MAX 256u

struct table {
    struct sv_rows_sink sink;
    struct sv_buf columns, rows; /* the elements of the two arrays */
    struct sv_json j;
    uint8_t types[COLUMNS_MAX]; /* bits of enum sv_cell_type */
    size_t n_columns;
    uint64_t n, max;
    bool has_more;
};

/* Only the last table of several statements is shown. */
static int head(struct sv_rows_sink *sink, const char *const *names, size_t n, struct sv_err *err)
{
    struct table *t = (struct table *)(void *)sink;
    struct sv_json j;
    (void)err;
    sv_buf_clear(&t->columns);
    sv_buf_clear(&t->rows);
    sv_json_init(&j, &t->columns);
    sv_json_begin(&j, '[');
    for (size_t i = 0; i < n; i++)
        sv_json_cstr(&j, names[i]);
    sv_json_end(&j);
    sv_json_init(&t->j, &t->rows);
    sv_json_begin(&t->j, '[');
    memset(t->types, 0, sizeof t->types);
    t->n_columns = n;
    t->n = 0;
    t->has_more = false;
    return 0;
}

static void put_cell(struct sv_json *j, const struct sv_cell *c)
{
    struct sv_buf number;
    switch (c->type) {
    case SV_CELL_NULL: sv_json_null(j); break;
    case SV_CELL_INT: sv_json_i64_text(j, c->i); break;
    case SV_CELL_REAL:
        sv_buf_init(&number, 64);
        sv_buf_double(&number, c->d);
        sv_json_text(j, sv_buf_cstr(&number), number.len);
        sv_buf_fini(&number);
        break;
    case SV_CELL_TEXT: sv_json_text(j, c->text, c->len); break;
    case SV_CELL_BLOB: sv_json_text(j, "(blob)", 6); break;
    }
}

static int row(struct sv_rows_sink *sink, const struct sv_cell *cells, size_t n, struct sv_err *err)
{
    struct table *t = (struct table *)(void *)sink;
    if (t->n == t->max || t->rows.failed) {
        t->has_more = true;
        return sv_error(err, SV_EPIPE, "enough");
    }
    t->n++;
    sv_json_begin(&t->j, '[');
    for (size_t i = 0; i < n; i++) {
        if (i < COLUMNS_MAX)
            t->types[i] |= (uint8_t)(1u << cells[i].type);
        put_cell(&t->j, &cells[i]);
    }
    sv_json_end(&t->j);
    return 0;
}

static const char *type_of(uint8_t bits)
{
    switch (bits & ~(1u << SV_CELL_NULL)) {
    case 1u << SV_CELL_INT: return "int";
    case 1u << SV_CELL_REAL: return "real";
    case 0:
    case 1u << SV_CELL_TEXT: return "text";
    case 1u << SV_CELL_BLOB: return "blob";
    default: return "mixed";
    }
}

static void reply(struct table *t, double ms, struct sv_web_answer *a)
{
    struct sv_json j;
    sv_json_end(&t->j);
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "columns", raw, sv_buf_cstr(&t->columns), t->columns.len);
    sv_json_put(&j, "types", begin, '[');
    for (size_t i = 0; i < t->n_columns; i++) {
        const char *type = i < COLUMNS_MAX ? type_of(t->types[i]) : "mixed";
        sv_json_cstr(&j, type);
    }
    sv_json_end(&j);
    sv_json_put(&j, "rows", raw, sv_buf_cstr(&t->rows), t->rows.len);
    sv_json_put(&j, "more", bool, t->has_more);
    sv_json_put(&j, "ms", double, ms);
    sv_json_end(&j);
    a->body.failed |= t->rows.failed;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void run(struct sv_sql_desk *d, struct sv_shown *s, const char *sql, uint64_t limit,
                struct sv_web_answer *a)
{
    struct table t = {.sink = {head, row, sv_rows_no_end}, .max = limit};
    struct sv_err err;
    sv_err_clear(&err);
    sv_buf_init(&t.columns, 1u << 20);
    sv_buf_init(&t.rows, a->body.limit / 2);
    head(&t.sink, NULL, 0, &err); /* statements may have no table */
    double start = now_ms();
    pthread_mutex_lock(&d->lock);
    int code = open_sql(d, s, &err);
    if (code >= 0)
        code = sv_sql_run(d->sql, sql, &t.sink, &err);
    pthread_mutex_unlock(&d->lock);
    if (code < 0 && !t.has_more)
        sv_web_error(a, 200, "%s", err.msg);
    else
        reply(&t, now_ms() - start, a);
    sv_buf_fini(&t.columns);
    sv_buf_fini(&t.rows);
}

/* The statement is longer than other texts of requests. */
void sv_answer_sql(struct sv_sql_desk *d, struct sv_shown *s, const struct sv_web_request *q,
                   struct sv_web_answer *a)
{
    struct sv_batch *texts = sv_alloc(sizeof *texts);
    struct sv_text sql = {0};
    int64_t limit = 10000;
    sv_batch_init(texts);
    if (q->is_post && q->len) {
        struct sv_members members = sv_members_of((const char *)q->body, q->len);
        for (struct sv_member m; sv_member_next(&members, &m);) {
            if (sv_member_is(&m, "sql") && m.type == '"')
                sql = sv_member_text(&m, texts);
            else if (sv_member_is(&m, "limit"))
                sv_member_i64(&m, &limit);
        }
    }
    char *statement = sql.len && !memchr(sql.bytes, 0, sql.len) ? sv_strndup(sql.bytes, sql.len)
                                                                : NULL;
    if (!statement)
        sv_web_error(a, 400, "expected POST with {\"sql\": \"…\"}");
    else
        run(d, s, statement, limit < 1 ? 1 : limit > ROWS_MAX ? ROWS_MAX : (uint64_t)limit, a);
    free(statement);
    sv_batch_fini(texts);
    free(texts);
}

void sv_answer_tables(struct sv_sql_desk *d, struct sv_shown *s, struct sv_web_answer *a)
{
    run(d, s,
        "SELECT m.name AS name, group_concat(c.name, ' ') AS columns FROM sqlite_schema m, "
        "pragma_table_info(m.name) c WHERE m.type IN ('table', 'view') GROUP BY m.name "
        "UNION ALL SELECT 'slice', 'view_row view_line self_dur kind'",
        10000, a);
}
