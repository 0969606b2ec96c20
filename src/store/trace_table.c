/* Tables of the store: columns of equal length, each in a block of its own.
 *
 * The typed pointers live in the public structs; a table keeps them up to date when blocks move, so
 * they are valid only until the next growth. While loading, trace.c grows tables row by row; finish
 * moves them into their final order column by column, so that at any time only one column exists
 * twice. */
#include "store/trace_impl.h"

#include <assert.h>

#define FIRST_ROWS SV_TABLE((size_t)1024, (size_t)16)

static void set_pointer(struct sv_table *b, size_t column)
{
    char *at = (char *)b->owner + b->columns[column].offset;
    memcpy(at, &b->blocks[column].at, sizeof(void *));
}

void sv_table_init(struct sv_table *b, void *owner, const struct sv_column *columns, size_t n)
{
    assert(n <= SV_TABLE_COLUMNS);
    *b = (struct sv_table){.owner = owner, .columns = columns, .n_columns = n};
    for (size_t i = 0; i < n; i++)
        b->row_bytes += columns[i].size;
}

void sv_table_fini(struct sv_table *b)
{
    for (size_t i = 0; i < b->n_columns; i++) {
        sv_block_fini(&b->blocks[i]);
        set_pointer(b, i);
    }
    b->cap = 0;
}

bool sv_table_grow(struct sv_table *b, size_t rows)
{
    size_t cap = b->cap ? b->cap * 2 : FIRST_ROWS;
    if (cap < rows)
        cap = rows;
    for (size_t i = 0; i < b->n_columns; i++) {
        if (!sv_block_reserve(&b->blocks[i], cap * b->columns[i].size))
            return false;
        set_pointer(b, i);
    }
    b->cap = cap;
    return true;
}

bool sv_table_add_column(struct sv_table *b, size_t rows, struct sv_block *block)
{
    size_t i = b->n_columns;
    assert(i < SV_TABLE_COLUMNS);
    if (block) {
        b->blocks[i] = *block;
        *block = (struct sv_block){0};
    }
    if (!sv_block_reserve(&b->blocks[i], (rows < b->cap ? b->cap : rows) * b->columns[i].size))
        return false;
    set_pointer(b, i);
    b->row_bytes += b->columns[i].size;
    b->n_columns++;
    return true;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be parenthesised */
#define SCATTER(type)                        \
    do {                                     \
        const type *src = from;              \
        type *dst = to;                      \
        for (size_t i = first; i < end; i++) \
            if (place[i] != SV_NO_ROW)       \
                dst[place[i]] = src[i];      \
    } while (0)
/* NOLINTEND(bugprone-macro-parentheses) */

static void scatter(void *to, const void *from, const uint32_t *place, size_t first, size_t end,
                    size_t size)
{
    switch (size) {
    case 1: SCATTER(uint8_t); break;
    case 2: SCATTER(uint16_t); break;
    case 4: SCATTER(uint32_t); break;
    default: assert(size == 8); SCATTER(uint64_t);
    }
}

/* One column, of which each thread takes a range. No two rows have the same place. */
struct scattering {
    void *to;
    const void *from;
    const uint32_t *place;
    size_t n, n_ranges, size;
};

static void scatter_range(void *ctx, size_t i)
{
    const struct scattering *s = ctx;
    size_t first, end;
    sv_workers_share(s->n, i, s->n_ranges, &first, &end);
    scatter(s->to, s->from, s->place, first, end, s->size);
}

/* Fresh pages cost more than the moving itself, so the space that a column leaves is used for the
 * next one. */
bool sv_table_scatter(struct sv_table *b, const uint32_t *place, size_t n, size_t n_left,
                      struct sv_workers *workers)
{
    size_t n_ranges = sv_trace_ranges(workers, n);
    struct sv_block spare = {0};
    for (size_t i = 0; n_left && i < b->n_columns; i++) {
        size_t bytes = n_left * b->columns[i].size;
        if (!sv_block_reserve(&spare, bytes)) {
            sv_block_fini(&spare);
            return false;
        }
        struct scattering s = {spare.at, b->blocks[i].at, place, n, n_ranges, b->columns[i].size};
        sv_workers_each(workers, n_ranges, scatter_range, &s);
        struct sv_block left = b->blocks[i];
        sv_block_trim(&spare, bytes);
        b->blocks[i] = spare;
        spare = left;
        set_pointer(b, i);
    }
    sv_block_fini(&spare);
    b->cap = n_left;
    return true;
}

void sv_table_trim(struct sv_table *b, size_t rows)
{
    for (size_t i = 0; i < b->n_columns; i++) {
        sv_block_trim(&b->blocks[i], rows * b->columns[i].size);
        set_pointer(b, i);
    }
    b->cap = rows;
}
