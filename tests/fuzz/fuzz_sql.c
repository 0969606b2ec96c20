/* Arbitrary text as SQL over a small trace: it gives rows or a message, and never crashes, opens a
 * file or goes on without end.
 *
 * A connection is made for each text; a statement may take 0.3 s and SQLite 32 MB. Whatever a text
 * does, functions that SQLite has and that give or take addresses stay out of reach: the sandbox
 * (sql/sandbox.c) is asked once more after it. */
#include "core/base/mem.h"
#include "sql/sql.h"
#include "tests/harness/gen_events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS_MAX 2000

static volatile unsigned char seen; /* so that reading a text is not optimised away */

struct counted {
    struct sv_rows_sink rows;
    size_t n_columns, n_rows;
};

static int take_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    struct counted *c = (struct counted *)r;
    (void)err;
    c->n_columns = n;
    for (size_t i = 0; i < n; i++)
        seen = (unsigned char)(names[i] ? names[i][0] : 0);
    return 0;
}

static int take_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    struct counted *c = (struct counted *)r;
    assert(n == c->n_columns);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; cells[i].type == SV_CELL_TEXT && k < cells[i].len; k++)
            seen = (unsigned char)cells[i].text[k];
    return ++c->n_rows < ROWS_MAX ? 0 : sv_err_set(err, SV_EAGAIN, SV_NO_POS, "enough rows");
}

static int take_end(struct sv_rows_sink *r, struct sv_err *err)
{
    (void)r, (void)err;
    return 0;
}

static const struct sv_trace *make_trace(void)
{
    static struct gen g; /* with its dictionary, until the program ends */
    struct sv_err err;
    sv_err_clear(&err);
    gen_make(&g,
             &(struct gen_options){.seed = 7,
                                   .n = 60,
                                   .shape = SV_HAS_SLICES | SV_HAS_NESTED,
                                   .extras = GEN_INSTANTS | GEN_COUNTERS | GEN_FLOWS | GEN_ARGS});
    struct sv_trace *t = sv_trace_new(g.dict, NULL, 0);
    if (gen_push(&g, sv_trace_sink(t), &err) < 0)
        abort();
    return t;
}

static int run(struct sv_sql *q, const char *sql, struct sv_err *err)
{
    struct counted c = {.rows = {take_head, take_row, take_end}};
    sv_err_clear(err);
    return sv_sql_run(q, sql, &c.rows, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sv_trace *trace;
    struct sv_err err;
    struct sv_sql *q;
    if (!sv_sql_is_built_in() || size > 4096)
        return 0;
    if (!trace)
        trace = make_trace();
    sv_err_clear(&err);
    if (sv_sql_open(trace, &(struct sv_sql_options){.memory_limit_bytes = (size_t)32 << 20}, &q,
                    &err) < 0)
        abort();
    sv_sql_limit(q, 300);
    char *sql = sv_strndup((const char *)data, size);
    int code = run(q, sql, &err);
    assert(code >= 0 || *err.msg);
    assert(run(q, "SELECT fts3_tokenizer('simple')", &err) < 0);
    free(sql);
    sv_sql_close(q);
    return 0;
}
