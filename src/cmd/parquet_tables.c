/* Tables of a trace as Parquet files: slice, counter, flow and args from the store's columns, the
 * others by a query.
 *
 * Called by stave export for each table of sql/typed.h. The columns that are written here by hand
 * have the order that they have there. */
#include "cmd/export_columns.h"
#include "core/base/mem.h"
#include "parquet/parquet.h"
#include "parquet/rows.h"
#include "sql/direct.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct table_file {
    struct sv_sql *q;
    const struct sv_trace *trace;
    const struct sv_typed_table *table;
    struct sv_typed_column typed[SV_TYPED_COLUMNS_MAX];
    size_t n_columns;
    struct sv_parquet *file;
    struct sv_parquet_column columns[SV_TYPED_COLUMNS_MAX];
    uint64_t n_unfit;
};

/* ---- from the columns ---- */

/* Scratch of a group. */
struct group {
    int64_t ints[SV_PARQUET_GROUP], thread_ts[SV_PARQUET_GROUP], thread_dur[SV_PARQUET_GROUP];
    uint32_t symbols[SV_PARQUET_GROUP];
    uint8_t present[SV_PARQUET_GROUP], has_ts[SV_PARQUET_GROUP], has_dur[SV_PARQUET_GROUP];
};

static const char *dict_text(const void *ctx, uint32_t symbol, size_t *len)
{
    struct sv_text text = sv_dict_text(ctx, symbol);
    *len = text.len;
    return text.bytes;
}

static void put_texts(struct table_file *f, struct group *g, const sv_str *column,
                      const uint32_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g->symbols[i] = column[rows[i]];
    sv_parquet_texts(f->file, g->symbols, &(struct sv_parquet_symbols){dict_text, f->trace->dict});
}

#define GATHER(to, column, rows, n)        \
    do                                     \
        for (size_t i_ = 0; i_ < n; i_++)  \
            (to)[i_] = (column)[rows[i_]]; \
    while (0)

static void put_numbers(struct table_file *f, struct group *g, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g->ints[i] = (int64_t)(first + i);
    sv_parquet_ints(f->file, g->ints, NULL);
}

static void put_parents(struct table_file *f, struct group *g, const uint32_t *rows, size_t n)
{
    struct sv_index *x = sv_sql_index(f->q);
    const uint32_t *parents = f->trace->slices.parent;
    for (size_t i = 0; i < n; i++) {
        uint32_t parent = parents[rows[i]];
        g->present[i] = parent != SV_NO_ROW;
        g->ints[i] = g->present[i] ? sv_index_id(x, parent) : 0;
    }
    sv_parquet_ints(f->file, g->ints, g->present);
}

/* arg_set_id, thread_ts and thread_dur: all that is among the arguments. */
static void put_args(struct table_file *f, struct group *g, const uint32_t *rows, size_t n)
{
    const uint32_t *handles = f->trace->slices.args;
    struct sv_arg arg;
    bool is_any = false;
    for (size_t i = 0; i < n; i++) {
        uint32_t handle = handles[rows[i]];
        g->present[i] = g->has_ts[i] = g->has_dur[i] = 0;
        g->ints[i] = g->thread_ts[i] = g->thread_dur[i] = 0;
        if (handle == 0)
            continue;
        is_any = true;
        g->ints[i] = handle;
        g->present[i] = sv_sql_has_args(f->q, handle);
        if ((g->has_ts[i] = sv_trace_arg_of_type(f->trace, handle, SV_ARG_THREAD_TIME, &arg)))
            g->thread_ts[i] = arg.i;
        if ((g->has_dur[i] = sv_trace_arg_of_type(f->trace, handle, SV_ARG_THREAD_DUR, &arg)))
            g->thread_dur[i] = arg.i;
    }
    for (int i = 0; i < 3 && !is_any; i++)
        sv_parquet_nulls(f->file);
    if (!is_any)
        return;
    sv_parquet_ints(f->file, g->ints, g->present);
    sv_parquet_ints(f->file, g->thread_ts, g->has_ts);
    sv_parquet_ints(f->file, g->thread_dur, g->has_dur);
}

static void put_slice_group(struct table_file *f, struct group *g, uint64_t first, size_t n)
{
    const struct sv_slices *s = &f->trace->slices;
    const uint32_t *rows = sv_index_order(sv_sql_index(f->q)) + first;
    sv_parquet_group(f->file, n);
    put_numbers(f, g, first, n);
    GATHER(g->ints, s->ts_ns, rows, n);
    sv_parquet_ints(f->file, g->ints, NULL);
    GATHER(g->ints, s->dur_ns, rows, n);
    sv_parquet_ints(f->file, g->ints, NULL);
    GATHER(g->ints, s->track, rows, n);
    sv_parquet_ints(f->file, g->ints, NULL);
    put_texts(f, g, s->cat, rows, n);
    sv_parquet_keep(f->file);
    put_texts(f, g, s->name, rows, n);
    GATHER(g->ints, s->depth, rows, n);
    sv_parquet_ints(f->file, g->ints, NULL);
    put_parents(f, g, rows, n);
    put_args(f, g, rows, n);
    sv_parquet_nulls(f->file); /* thread_instruction_count */
    sv_parquet_nulls(f->file); /* thread_instruction_delta */
    sv_parquet_again(f->file); /* cat */
    put_numbers(f, g, first, n);
}

static void put_counter_group(struct table_file *f, struct group *g, uint64_t first, size_t n)
{
    const struct sv_counters *v = &f->trace->counters;
    const uint32_t *rows = sv_index_counter_order(sv_sql_index(f->q)) + first;
    double *values = sv_alloc_aligned(n * sizeof *values, 64);
    GATHER(values, v->value, rows, n);
    sv_parquet_group(f->file, n);
    for (size_t i = 0; i < n; i++)
        g->ints[i] = rows[i];
    sv_parquet_ints(f->file, g->ints, NULL);
    GATHER(g->ints, v->ts_ns, rows, n);
    sv_parquet_ints(f->file, g->ints, NULL);
    GATHER(g->ints, v->track, rows, n);
    sv_parquet_ints(f->file, g->ints, NULL);
    sv_parquet_reals(f->file, values, NULL);
    sv_parquet_nulls(f->file); /* arg_set_id */
    free(values);
}

static void put_flow_group(struct table_file *f, struct group *g, uint64_t first, size_t n)
{
    const struct sv_flows *w = &f->trace->flows;
    struct sv_index *x = sv_sql_index(f->q);
    sv_parquet_group(f->file, n);
    put_numbers(f, g, first, n);
    for (size_t i = 0; i < n; i++)
        g->ints[i] = sv_index_id(x, w->from[first + i]);
    sv_parquet_ints(f->file, g->ints, NULL);
    for (size_t i = 0; i < n; i++)
        g->ints[i] = sv_index_id(x, w->to[first + i]);
    sv_parquet_ints(f->file, g->ints, NULL);
    for (size_t i = 0; i < n; i++)
        g->ints[i] = (int64_t)w->id[first + i];
    sv_parquet_ints(f->file, g->ints, NULL);
    sv_parquet_nulls(f->file); /* arg_set_id */
}

static int put_groups(struct table_file *f, uint64_t n_rows,
                      void (*put)(struct table_file *, struct group *, uint64_t, size_t),
                      struct sv_err *err)
{
    struct group *g = sv_alloc_aligned(sizeof *g, 64);
    int code = 0;
    for (uint64_t first = 0; first < n_rows && code >= 0; first += SV_PARQUET_GROUP) {
        uint64_t left = n_rows - first;
        put(f, g, first, left < SV_PARQUET_GROUP ? (size_t)left : SV_PARQUET_GROUP);
        code = sv_parquet_failure(f->file, err);
    }
    free(g);
    return code;
}

/* ---- rows ---- */

struct row_sink {
    struct sv_rows_sink rows; /* first: the callbacks find the rest */
    struct table_file *file;
    struct sv_parquet_rows *to;
    struct sv_buf texts[SV_TYPED_COLUMNS_MAX];
    struct sv_err *err;
};

static void open_rows(struct row_sink *s, struct table_file *f)
{
    s->file = f;
    s->to = sv_parquet_rows_new(f->file, f->columns, f->n_columns);
    for (size_t i = 0; i < f->n_columns; i++)
        sv_buf_init(&s->texts[i], 64); /* numbers as texts */
}

static void close_rows(struct row_sink *s)
{
    sv_parquet_rows_end(s->to);
    for (size_t i = 0; i < s->file->n_columns; i++)
        sv_buf_fini(&s->texts[i]);
}

static int take_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    const struct row_sink *s = (const struct row_sink *)r;
    (void)names;
    (void)err;
    assert(n == s->file->n_columns);
    return 0;
}

static int take_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    struct row_sink *s = (struct row_sink *)r;
    struct sv_cell typed[SV_TYPED_COLUMNS_MAX];
    for (size_t i = 0; i < n; i++) {
        typed[i] = cells[i];
        s->file->n_unfit += !sv_typed_convert(s->file->typed[i].type, &typed[i], &s->texts[i]);
    }
    sv_parquet_rows_add(s->to, typed);
    return sv_parquet_failure(s->file->file, err);
}

static int put_query(struct table_file *f, struct sv_err *err)
{
    struct row_sink s = {.rows = {take_head, take_row, sv_rows_no_end}};
    struct sv_buf sql;
    open_rows(&s, f);
    sv_buf_init(&sql, 1 << 16);
    sv_typed_select(f->table, &sql);
    int code = sv_sql_run(f->q, sv_buf_cstr(&sql), &s.rows, err);
    sv_buf_fini(&sql);
    close_rows(&s);
    return code;
}

static struct sv_cell text_cell(const char *text, size_t len)
{
    return (struct sv_cell){.type = SV_CELL_TEXT, .text = text, .len = len};
}

static struct sv_cell int_cell(int64_t i)
{
    return (struct sv_cell){.type = SV_CELL_INT, .i = i};
}

static int take_arg(void *ctx, const struct sv_arg_row *row)
{
    struct row_sink *s = ctx;
    const struct sv_arg *a = row->arg;
    struct sv_cell none = {.type = SV_CELL_NULL};
    bool is_text = a->type == SV_ARG_TEXT, is_real = a->type == SV_ARG_DOUBLE;
    struct sv_cell cells[] = {
        int_cell(row->id),
        int_cell(row->set),
        text_cell(row->flat_key, strlen(row->flat_key)),
        text_cell(row->key, strlen(row->key)),
        is_text || is_real ? none : int_cell(a->i),
        is_text ? text_cell(a->text, a->size) : none,
        is_real ? (struct sv_cell){.type = SV_CELL_REAL, .d = a->d} : none,
        text_cell(row->type, strlen(row->type)),
        text_cell(row->display, row->display_len),
    };
    return take_row(&s->rows, cells, sizeof cells / sizeof *cells, s->err);
}

static int put_all_args(struct table_file *f, struct sv_err *err)
{
    struct row_sink s = {.err = err};
    open_rows(&s, f);
    int code = sv_sql_each_arg(f->q, take_arg, &s);
    close_rows(&s);
    return code;
}

/* ---- a table ---- */

static enum sv_parquet_type parquet_type(enum sv_column_type type)
{
    return type == SV_COLUMN_INT    ? SV_PARQUET_INT
           : type == SV_COLUMN_REAL ? SV_PARQUET_REAL
                                    : SV_PARQUET_TEXT;
}

static int put_rows(struct table_file *f, struct sv_err *err)
{
    const char *name = f->table->name;
    if (f->table->categories && !sv_sql_has_category(f->q, f->table->categories))
        return 0; /* without a pass over all slices */
    if (strcmp(name, "slice") == 0)
        return put_groups(f, f->trace->slices.n, put_slice_group, err);
    if (strcmp(name, "counter") == 0)
        return put_groups(f, f->trace->counters.n, put_counter_group, err);
    if (strcmp(name, "flow") == 0)
        return put_groups(f, f->trace->flows.n, put_flow_group, err);
    return strcmp(name, "args") == 0 ? put_all_args(f, err) : put_query(f, err);
}

int sv_parquet_table(struct sv_sql *q, const struct sv_trace *t, const struct sv_typed_table *table,
                     const char *path, uint64_t *n_unfit, struct sv_err *err)
{
    struct table_file f = {.q = q, .trace = t, .table = table};
    f.n_columns = sv_typed_columns(table, f.typed);
    for (size_t i = 0; i < f.n_columns; i++)
        f.columns[i] = (struct sv_parquet_column){f.typed[i].name, parquet_type(f.typed[i].type)};
    int code = sv_parquet_open(path, f.columns, f.n_columns, &f.file, err);
    if (code < 0)
        return code;
    code = put_rows(&f, err);
    *n_unfit += f.n_unfit;
    if (code >= 0)
        return sv_parquet_close(f.file, err);
    sv_parquet_discard(f.file);
    return code;
}
