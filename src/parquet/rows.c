/* Rows to groups: each column has its values so far, texts have numbers that are found by their
 * bytes. A group is written when it has its number of rows or its texts have grown; the numbers
 * begin anew then. */
#include "parquet/rows.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX ((size_t)16 << 20) /* bytes of texts in a group, about */

struct word {
    const char *text;
    size_t len;
    uint64_t hash;
};

struct column {
    enum sv_parquet_type type;
    int64_t *ints;
    double *reals;
    uint32_t *symbols;
    uint8_t *present;
    size_t cap;
    /* Words by symbol, [0] unused; slots hold symbols, 0: free. */
    struct word *words;
    size_t n_words, cap_words;
    uint32_t *slots;
    size_t n_slots;
};

struct sv_parquet_rows {
    struct sv_parquet *file;
    size_t n_columns, n_rows;
    uint64_t seed; /* of hashes: the author of a trace cannot know it */
    struct sv_arena texts;
    size_t text_bytes;
    struct column columns[SV_PARQUET_COLUMNS_MAX];
};

struct sv_parquet_rows *sv_parquet_rows_new(struct sv_parquet *p,
                                            const struct sv_parquet_column *columns, size_t n)
{
    struct sv_parquet_rows *r = sv_alloc(sizeof *r);
    r->file = p;
    r->n_columns = n;
    r->seed = sv_mix64((uintptr_t)r);
    sv_arena_init(&r->texts, 1 << 16);
    for (size_t i = 0; i < n; i++) {
        r->columns[i].type = columns[i].type;
        r->columns[i].n_words = 1;
    }
    return r;
}

/* ---- texts ---- */

static uint32_t *slot_of(const struct column *c, const char *text, size_t len, uint64_t hash)
{
    for (size_t at = hash & (c->n_slots - 1);; at = (at + 1) & (c->n_slots - 1)) {
        uint32_t *slot = &c->slots[at];
        const struct word *w = &c->words[*slot];
        if (*slot == 0 ||
            (w->hash == hash && w->len == len && (len == 0 || memcmp(w->text, text, len) == 0)))
            return slot;
    }
}

static void grow_slots(struct column *c)
{
    free(c->slots);
    c->n_slots = c->n_slots ? c->n_slots * 4 : 64;
    c->slots = sv_alloc(c->n_slots * sizeof *c->slots);
    for (uint32_t i = 1; i < c->n_words; i++)
        *slot_of(c, c->words[i].text, c->words[i].len, c->words[i].hash) = i;
}

static uint32_t symbol_of(struct sv_parquet_rows *r, struct column *c, const char *text, size_t len)
{
    uint64_t hash = sv_hash_bytes(text, len, r->seed);
    c->words = sv_grow(c->words, &c->cap_words, c->n_words + 1, sizeof *c->words);
    if (c->n_words * 2 >= c->n_slots)
        grow_slots(c);
    uint32_t *slot = slot_of(c, text, len, hash);
    if (*slot)
        return *slot;
    *slot = (uint32_t)c->n_words;
    c->words[c->n_words++] = (struct word){sv_arena_copy(&r->texts, text, len), len, hash};
    r->text_bytes += len;
    return *slot;
}

static const char *word_of(const void *ctx, uint32_t symbol, size_t *len)
{
    const struct column *c = ctx;
    *len = c->words[symbol].len;
    return c->words[symbol].text;
}

/* ---- groups ---- */

static void write_column(struct sv_parquet_rows *r, const struct column *c)
{
    switch (c->type) {
    case SV_PARQUET_INT: sv_parquet_ints(r->file, c->ints, c->present); break;
    case SV_PARQUET_REAL: sv_parquet_reals(r->file, c->reals, c->present); break;
    default: sv_parquet_texts(r->file, c->symbols, &(struct sv_parquet_symbols){word_of, c}); break;
    }
}

static void write_group(struct sv_parquet_rows *r)
{
    if (r->n_rows == 0)
        return;
    sv_parquet_group(r->file, r->n_rows);
    for (size_t i = 0; i < r->n_columns; i++) {
        struct column *c = &r->columns[i];
        write_column(r, c);
        c->n_words = 1;
        if (c->slots)
            memset(c->slots, 0, c->n_slots * sizeof *c->slots);
    }
    sv_arena_reset(&r->texts);
    r->n_rows = r->text_bytes = 0;
}

static void reserve(struct column *c, size_t n)
{
    if (n <= c->cap)
        return;
    c->cap = c->cap ? c->cap * 2 : 1024;
    c->present = sv_realloc(c->present, c->cap);
    if (c->type == SV_PARQUET_INT)
        c->ints = sv_realloc(c->ints, c->cap * sizeof *c->ints);
    else if (c->type == SV_PARQUET_REAL)
        c->reals = sv_realloc(c->reals, c->cap * sizeof *c->reals);
    else
        c->symbols = sv_realloc(c->symbols, c->cap * sizeof *c->symbols);
}

void sv_parquet_rows_add(struct sv_parquet_rows *r, const struct sv_cell *cells)
{
    size_t row = r->n_rows;
    for (size_t i = 0; i < r->n_columns; i++) {
        struct column *c = &r->columns[i];
        const struct sv_cell *cell = &cells[i];
        bool is_there = cell->type != SV_CELL_NULL;
        reserve(c, row + 1);
        c->present[row] = is_there;
        if (c->type == SV_PARQUET_INT)
            c->ints[row] = is_there ? cell->i : 0;
        else if (c->type == SV_PARQUET_REAL)
            c->reals[row] = is_there ? cell->d : 0;
        else
            c->symbols[row] = is_there ? symbol_of(r, c, cell->text, cell->len) : 0;
    }
    if (++r->n_rows == SV_PARQUET_GROUP || r->text_bytes > TEXTS_MAX)
        write_group(r);
}

void sv_parquet_rows_end(struct sv_parquet_rows *r)
{
    write_group(r);
    for (size_t i = 0; i < r->n_columns; i++) {
        free(r->columns[i].ints);
        free(r->columns[i].reals);
        free(r->columns[i].symbols);
        free(r->columns[i].present);
        free(r->columns[i].words);
        free(r->columns[i].slots);
    }
    sv_arena_fini(&r->texts);
    free(r);
}
