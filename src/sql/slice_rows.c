/* All rows of `slice` as SELECT * gives them, read from the store's columns: for exports, which
 * would spend most of their time between SQLite and its virtual table. */
#include "sql/direct.h"

#ifdef SV_HAVE_SQLITE
#include "sql/impl.h"
#include "sql/typed.h"

#include <assert.h>

/* Rows in the order of time lie apart in the store: they are asked for this many steps ahead. */
#define AHEAD 24

static struct sv_cell int_cell(int64_t i)
{
    return (struct sv_cell){.type = SV_CELL_INT, .i = i};
}

static struct sv_cell text_cell(const struct sv_sql *q, sv_str s)
{
    struct sv_text text = sv_dict_text(q->dict, s);
    return s ? (struct sv_cell){.type = SV_CELL_TEXT, .text = text.bytes, .len = text.len}
             : (struct sv_cell){.type = SV_CELL_NULL};
}

static struct sv_cell thread_cell(const struct sv_sql *q, uint32_t args, unsigned type)
{
    struct sv_arg arg;
    if (args && sv_trace_arg_of_type(q->trace, args, type, &arg))
        return int_cell(arg.i);
    return (struct sv_cell){.type = SV_CELL_NULL};
}

void sv_sql_slice_cells(struct sv_sql *q, uint32_t row, uint32_t id,
                        struct sv_cell c[SV_SQL_SLICE_CELLS])
{
    const struct sv_slices *s = &q->trace->slices;
    uint32_t args = s->args[row], parent = s->parent[row];
    for (int i = 0; i < SV_SQL_SLICE_CELLS; i++)
        c[i] = (struct sv_cell){.type = SV_CELL_NULL};
    c[SV_SLICE_ID] = c[SV_SLICE_SLICE_ID] = int_cell(id);
    c[SV_SLICE_TS] = int_cell(s->ts_ns[row]);
    c[SV_SLICE_DUR] = int_cell(s->dur_ns[row]);
    c[SV_SLICE_TRACK] = int_cell(s->track[row]);
    c[SV_SLICE_CATEGORY] = c[SV_SLICE_CAT] = text_cell(q, s->cat[row]);
    c[SV_SLICE_NAME] = text_cell(q, s->name[row]);
    c[SV_SLICE_DEPTH] = int_cell(s->depth[row]);
    if (parent != SV_NO_ROW)
        c[SV_SLICE_PARENT] = int_cell(sv_index_id(q->index, parent));
    if (args && sv_sql_has_args(q, args))
        c[SV_SLICE_ARGS] = int_cell(args);
    c[SV_SLICE_THREAD_TS] = thread_cell(q, args, SV_ARG_THREAD_TIME);
    c[SV_SLICE_THREAD_DUR] = thread_cell(q, args, SV_ARG_THREAD_DUR);
}

int sv_sql_slice_rows(struct sv_sql *q, struct sv_rows_sink *rows, struct sv_err *err)
{
    struct sv_typed_column columns[SV_TYPED_COLUMNS_MAX];
    const char *names[SV_SQL_SLICE_CELLS];
    size_t n = sv_typed_columns(sv_typed_table("slice"), columns);
    assert(n == SV_SQL_SLICE_CELLS);
    for (size_t i = 0; i < n; i++)
        names[i] = columns[i].name;
    struct sv_cell cells[SV_SQL_SLICE_CELLS];
    const uint32_t *order = sv_index_order(q->index);
    int code = rows->head(rows, names, SV_SQL_SLICE_CELLS, err);
    for (uint64_t id = 0; id < q->trace->slices.n && code >= 0; id++) {
        if (id + AHEAD < q->trace->slices.n)
            sv_sql_slice.prefetch(q, order[id + AHEAD], ~0u);
        sv_sql_slice_cells(q, order[id], (uint32_t)id, cells);
        code = rows->row(rows, cells, SV_SQL_SLICE_CELLS, err);
    }
    return code < 0 ? code : rows->end(rows, err);
}
#else
void sv_sql_slice_cells(struct sv_sql *q, uint32_t row, uint32_t id,
                        struct sv_cell c[SV_SQL_SLICE_CELLS])
{
    (void)q;
    (void)row;
    (void)id;
    (void)c;
}

int sv_sql_slice_rows(struct sv_sql *q, struct sv_rows_sink *rows, struct sv_err *err)
{
    return sv_sql_run(q, "", rows, err);
}
#endif
