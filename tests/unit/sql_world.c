/* A random trace with an SQL connection: see sql_world.h. */
#include "tests/unit/sql_world.h"

#include "core/base/mem.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

static int take_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    (void)r;
    (void)names;
    (void)n;
    (void)err;
    return 0;
}

static int take_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    struct text_rows *t = (struct text_rows *)r;
    if (t->fail_at && ++t->n >= t->fail_at)
        return sv_err_set(err, SV_EIO, SV_NO_POS, "full");
    for (size_t i = 0; i < n; i++) {
        sv_buf_str(&t->text, i ? "|" : "");
        switch (cells[i].type) {
        case SV_CELL_INT: sv_buf_i64(&t->text, cells[i].i); break;
        case SV_CELL_REAL: sv_buf_double(&t->text, cells[i].d); break;
        case SV_CELL_NULL: sv_buf_str(&t->text, "NULL"); break;
        default: sv_buf_escaped(&t->text, cells[i].text, cells[i].len); break;
        }
    }
    sv_buf_byte(&t->text, '\n');
    return 0;
}

static int take_end(struct sv_rows_sink *r, struct sv_err *err)
{
    (void)err;
    sv_buf_byte(&((struct text_rows *)r)->text, '\n');
    return 0;
}

void text_rows_init(struct text_rows *t)
{
    *t = (struct text_rows){.rows = {take_head, take_row, take_end}};
    sv_buf_init(&t->text, 1u << 28);
}

char *sql_text(struct sv_sql *q, const char *sql)
{
    struct text_rows t;
    struct sv_err err;
    sv_err_clear(&err);
    text_rows_init(&t);
    int code = sv_sql_run(q, sql, &t.rows, &err);
    char *text = code < 0 ? sv_strndup(err.msg, strlen(err.msg))
                          : sv_strndup(sv_buf_cstr(&t.text), t.text.len);
    sv_buf_fini(&t.text);
    return text;
}

void sql_world_make(struct sql_world *w, const struct gen_options *options)
{
    struct sv_err err;
    sv_err_clear(&err);
    if (!sv_sql_is_built_in())
        SKIP("built without SQLite");
    gen_make(&w->g, options);
    sv_report_init(&w->report);
    w->t = sv_trace_new(w->g.dict, &w->report, 0);
    REQUIRE(gen_push(&w->g, sv_trace_sink(w->t), &err) == 0);
    REQUIRE(sv_sql_open(w->t, &(struct sv_sql_options){.report = &w->report}, &w->q, &err) == 0);
}

void sql_world_fini(struct sql_world *w)
{
    sv_sql_close(w->q);
    sv_trace_free(w->t);
    sv_report_fini(&w->report);
    gen_fini(&w->g);
}
