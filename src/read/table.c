/* Rows from SQLite become columns of 8-byte values and a byte of type per cell, so that callers use
 * them as arrays without a copy.
 *
 * Texts go into a dictionary: names of slices repeat a lot, and a caller makes an object of each
 * only once. */
#include "read/table.h"

#include "core/base/mem.h"
#include "core/stream/dict.h"

#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX (UINT32_MAX - 1)

/* The layout of the public struct with pointers that can be written. */
struct column {
    struct stave_read_column shown;
    char *name;
    uint8_t *types;
    int64_t *values;
};

struct stave_read_table {
    struct sv_rows_sink sink; /* first: the callbacks find the rest */
    struct column *columns;
    size_t n_columns, n_rows, cap_rows;
    struct sv_dict *texts; /* while rows come */
    /* the texts afterwards, each with a zero byte */
    char *bytes;
    uint64_t *ends;
    size_t n_texts;
};

static void forget_rows(struct stave_read_table *t)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        free(t->columns[i].name);
        free(t->columns[i].types);
        free(t->columns[i].values);
    }
    free(t->columns);
    t->columns = NULL;
    t->n_columns = t->n_rows = t->cap_rows = 0;
    if (t->texts)
        sv_dict_free(t->texts);
    t->texts = NULL;
    free(t->bytes);
    free(t->ends);
    t->bytes = NULL;
    t->ends = NULL;
    t->n_texts = 0;
}

static int take_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    struct stave_read_table *t = (struct stave_read_table *)r;
    (void)err;
    forget_rows(t);
    t->texts = sv_dict_new();
    t->columns = sv_alloc(n * sizeof *t->columns);
    t->n_columns = n;
    for (size_t i = 0; i < n; i++)
        t->columns[i].shown.name = t->columns[i].name = sv_strndup(names[i], strlen(names[i]));
    return 0;
}

static void grow(struct stave_read_table *t)
{
    size_t cap = t->cap_rows ? 2 * t->cap_rows : 256;
    for (size_t i = 0; i < t->n_columns; i++) {
        struct column *c = &t->columns[i];
        c->types = sv_realloc(c->types, cap);
        c->values = sv_realloc(c->values, cap * sizeof *c->values);
    }
    t->cap_rows = cap;
}

_Static_assert((int)STAVE_READ_NULL == SV_CELL_NULL && (int)STAVE_READ_INT == SV_CELL_INT &&
                   (int)STAVE_READ_REAL == SV_CELL_REAL && (int)STAVE_READ_TEXT == SV_CELL_TEXT &&
                   (int)STAVE_READ_BLOB == SV_CELL_BLOB,
               "the public types are those of cells");

static void take_cell(struct stave_read_table *t, struct column *c, const struct sv_cell *cell)
{
    int64_t value = 0;
    switch (cell->type) {
    case SV_CELL_INT: value = cell->i; break;
    case SV_CELL_REAL: memcpy(&value, &cell->d, sizeof value); break;
    case SV_CELL_TEXT:
    case SV_CELL_BLOB: value = sv_dict_str(t->texts, cell->len ? cell->text : "", cell->len); break;
    case SV_CELL_NULL: break;
    }
    c->types[t->n_rows] = (uint8_t)cell->type;
    c->values[t->n_rows] = value;
    if (cell->type == SV_CELL_NULL)
        c->shown.has_nulls = true;
    else if (c->shown.type == STAVE_READ_NULL)
        c->shown.type = (int)cell->type;
    else if (c->shown.type != (int)cell->type)
        c->shown.type = STAVE_READ_MIXED;
}

static int take_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    struct stave_read_table *t = (struct stave_read_table *)r;
    if (t->texts->n_strings > TEXTS_MAX - n)
        return sv_error(err, SV_ELIMIT, "the result has more than 4 billion different texts");
    if (t->n_rows == t->cap_rows)
        grow(t);
    for (size_t i = 0; i < n; i++)
        take_cell(t, &t->columns[i], &cells[i]);
    t->n_rows++;
    return 0;
}

static void join_texts(struct stave_read_table *t)
{
    size_t n = t->texts->n_strings, len = 0, at = 0;
    for (sv_str i = 0; i < n; i++)
        len += sv_dict_text(t->texts, i).len + (size_t)1;
    t->bytes = sv_alloc(len);
    t->ends = sv_alloc(n * sizeof *t->ends);
    t->n_texts = n;
    for (sv_str i = 0; i < n; i++) {
        struct sv_text text = sv_dict_text(t->texts, i);
        memcpy(t->bytes + at, text.bytes, text.len);
        t->ends[i] = at + text.len;
        at += text.len + (size_t)1;
    }
    sv_dict_free(t->texts);
    t->texts = NULL;
}

static int take_end(struct sv_rows_sink *r, struct sv_err *err)
{
    struct stave_read_table *t = (struct stave_read_table *)r;
    (void)err;
    for (size_t i = 0; i < t->n_columns; i++) {
        struct column *c = &t->columns[i];
        c->shown.types = c->types;
        c->shown.ints = c->values;
        c->shown.reals = (const double *)(const void *)c->values;
    }
    join_texts(t);
    return 0;
}

struct stave_read_table *sv_read_table_new(void)
{
    struct stave_read_table *t = sv_alloc(sizeof *t);
    t->sink = (struct sv_rows_sink){take_head, take_row, take_end};
    return t;
}

struct sv_rows_sink *sv_read_table_sink(struct stave_read_table *t)
{
    return &t->sink;
}

void stave_read_table_free(struct stave_read_table *t)
{
    if (!t)
        return;
    forget_rows(t);
    free(t);
}

size_t stave_read_n_rows(const struct stave_read_table *t)
{
    return t->n_rows;
}

size_t stave_read_n_columns(const struct stave_read_table *t)
{
    return t->n_columns;
}

const struct stave_read_column *stave_read_column(const struct stave_read_table *t, size_t column)
{
    return column < t->n_columns ? &t->columns[column].shown : NULL;
}

const char *stave_read_text(const struct stave_read_table *t, size_t column, size_t row,
                            size_t *len)
{
    if (len)
        *len = 0;
    if (column >= t->n_columns || row >= t->n_rows)
        return NULL;
    const struct column *c = &t->columns[column];
    if (c->types[row] != STAVE_READ_TEXT && c->types[row] != STAVE_READ_BLOB)
        return NULL;
    size_t number = (size_t)c->values[row], from = number ? t->ends[number - 1] + 1 : 0;
    if (len)
        *len = t->ends[number] - from;
    return t->bytes + from;
}

size_t stave_read_texts(const struct stave_read_table *t, const char **bytes, const uint64_t **ends)
{
    *bytes = t->bytes;
    *ends = t->ends;
    return t->n_texts;
}
