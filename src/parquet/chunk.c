/* Column chunks: the values of one column in one row group, as pages.
 *
 * Called by the users of parquet.h, one column after the other. A chunk is made in memory
 * (dictionary page, data pages, each compressed), then parquet.c writes it and notes it for the
 * footer. Pages are of version 1: definition levels and values, compressed together. */
#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "parquet/encode.h"
#include "parquet/impl.h"
#include "parquet/thrift.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

#define PAGE_ROWS        32768u
#define PAGE_BYTES       ((size_t)1 << 20) /* of texts: a page ends after it */
#define DICTIONARY_WORDS 65536u
#define DICTIONARY_BYTES ((size_t)4 << 20)
#define ZSTD_LEVEL       1

/* ---- pages ---- */

int32_t sv_parquet_codec(void)
{
#ifdef SV_HAVE_ZSTD
    return 6;
#else
    return 0;
#endif
}

static const struct sv_buf *compress(struct sv_parquet *p)
{
#ifdef SV_HAVE_ZSTD
    sv_buf_clear(&p->packed);
    if (!p->zstd)
        p->zstd = ZSTD_createCCtx();
    if (!p->zstd || !sv_buf_reserve(&p->packed, ZSTD_compressBound(p->page.len)))
        return NULL;
    size_t n = ZSTD_compressCCtx(p->zstd, p->packed.data, p->packed.cap, p->page.data, p->page.len,
                                 ZSTD_LEVEL);
    if (ZSTD_isError(n))
        return NULL;
    p->packed.len = n;
    return &p->packed;
#else
    return &p->page;
#endif
}

/* Appends the page in p->page to the chunk. A dictionary page when `rows` is 0. */
static void put_page(struct sv_parquet *p, size_t rows, enum sv_parquet_encoding encoding)
{
    const struct sv_buf *packed = p->page.failed ? NULL : compress(p);
    size_t start = p->chunk.len;
    if (!packed) {
        sv_error(&p->failed, SV_ELIMIT,
                 "column %s: a page is larger than 1 GiB or cannot be compressed",
                 p->columns[p->at].name);
        return;
    }
    struct sv_thrift head = sv_thrift_begin(&p->chunk);
    sv_thrift_i32(&head, 1, rows ? 0 : 2); /* DATA_PAGE, DICTIONARY_PAGE */
    sv_thrift_i32(&head, 2, (int32_t)p->page.len);
    sv_thrift_i32(&head, 3, (int32_t)packed->len);
    struct sv_thrift kind = sv_thrift_struct(&head, rows ? 5 : 7);
    sv_thrift_i32(&kind, 1, (int32_t)(rows ? rows : p->n_words));
    sv_thrift_i32(&kind, 2, (int32_t)encoding);
    if (rows) {
        sv_thrift_i32(&kind, 3, SV_ENCODING_RLE);
        sv_thrift_i32(&kind, 4, SV_ENCODING_RLE);
    }
    sv_thrift_end(&kind);
    sv_thrift_end(&head);
    p->info.plain_bytes += p->chunk.len - start + p->page.len;
    sv_buf_add(&p->chunk, packed->data, packed->len);
    sv_buf_clear(&p->page);
}

/* ---- the beginning and the end of a chunk ---- */

static void begin_chunk(struct sv_parquet *p, enum sv_parquet_encoding encoding)
{
    assert(p->at < p->n_columns);
    sv_buf_clear(&p->chunk);
    sv_buf_clear(&p->page);
    p->info = (struct sv_chunk_info){.encoding = encoding};
}

static void end_chunk(struct sv_parquet *p)
{
    sv_parquet_put_chunk(p, &p->chunk, &p->info);
}

static void set_range(struct sv_chunk_info *info, const void *min, size_t min_len, const void *max,
                      size_t max_len)
{
    if (min_len > SV_STATISTIC_MAX || max_len > SV_STATISTIC_MAX)
        return;
    memcpy(info->min, min, min_len);
    memcpy(info->max, max, max_len);
    info->min_len = min_len;
    info->max_len = max_len;
    info->has_range = true;
}

/* The rows of the page that begins at `row`. */
static size_t page_rows(const struct sv_parquet *p, size_t row)
{
    return p->n_rows - row < PAGE_ROWS ? p->n_rows - row : PAGE_ROWS;
}

static size_t count_present(const uint8_t *present, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += present[i];
    return count;
}

void sv_parquet_nulls(struct sv_parquet *p)
{
    begin_chunk(p, SV_ENCODING_PLAIN);
    p->info.n_nulls = p->n_rows;
    memset(p->present, 0, p->n_rows);
    for (size_t row = 0; row < p->n_rows; row += PAGE_ROWS) {
        size_t n = page_rows(p, row);
        sv_encode_levels(&p->page, p->present + row, n);
        put_page(p, n, SV_ENCODING_PLAIN);
    }
    end_chunk(p);
}

void sv_parquet_keep(struct sv_parquet *p)
{
    sv_buf_clear(&p->kept);
    sv_buf_add(&p->kept, p->chunk.data, p->chunk.len);
    p->kept_info = p->info;
}

void sv_parquet_again(struct sv_parquet *p)
{
    assert(p->at < p->n_columns);
    sv_parquet_put_chunk(p, &p->kept, &p->kept_info);
}

/* ---- numbers ---- */

/* Integers and doubles have eight bytes both. */
struct number_kind {
    enum sv_parquet_encoding encoding;
    void (*range)(struct sv_parquet *p, const void *values, size_t n);
    void (*encode)(struct sv_buf *page, const void *values, size_t n);
};

static void put_numbers(struct sv_parquet *p, const struct number_kind *kind, const void *values,
                        const uint8_t *present)
{
    size_t n = present ? count_present(present, p->n_rows) : p->n_rows, at = 0;
    const uint8_t *from = values;
    if (n == 0) {
        sv_parquet_nulls(p);
        return;
    }
    begin_chunk(p, kind->encoding);
    p->info.n_nulls = p->n_rows - n;
    if (n == p->n_rows)
        present = NULL;
    for (size_t i = 0; present && i < p->n_rows; i++) { /* only what is there is encoded */
        memcpy(p->numbers + 8 * at, from + 8 * i, 8);
        at += present[i];
    }
    from = present ? p->numbers : from;
    kind->range(p, from, n);
    for (size_t row = 0; row < p->n_rows; row += PAGE_ROWS) {
        size_t rows = page_rows(p, row);
        size_t count = present ? count_present(present + row, rows) : rows;
        sv_encode_levels(&p->page, present ? present + row : NULL, rows);
        kind->encode(&p->page, from, count);
        from += 8 * count;
        put_page(p, rows, kind->encoding);
    }
    end_chunk(p);
}

static void range_of_ints(struct sv_parquet *p, const void *from, size_t n)
{
    const int64_t *values = from;
    int64_t min = values[0], max = values[0];
    for (size_t i = 1; i < n; i++) {
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    set_range(&p->info, &min, sizeof min, &max, sizeof max);
}

static void encode_ints(struct sv_buf *page, const void *values, size_t n)
{
    sv_encode_delta(page, values, n);
}

void sv_parquet_ints(struct sv_parquet *p, const int64_t *values, const uint8_t *present)
{
    static const struct number_kind ints = {SV_ENCODING_DELTA, range_of_ints, encode_ints};
    put_numbers(p, &ints, values, present);
}

/* Not a number is in no order: readers could not use a range that holds it. Zeros have the sign
 * that widens the range. */
static void range_of_reals(struct sv_parquet *p, const void *from, size_t n)
{
    const double *values = from;
    double min = INFINITY, max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            return;
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    min = min == 0 ? -0.0 : min;
    max = max == 0 ? 0.0 : max;
    set_range(&p->info, &min, sizeof min, &max, sizeof max);
}

static void encode_reals(struct sv_buf *page, const void *values, size_t n)
{
    sv_buf_add(page, values, n * sizeof(double));
}

void sv_parquet_reals(struct sv_parquet *p, const double *values, const uint8_t *present)
{
    static const struct number_kind reals = {SV_ENCODING_PLAIN, range_of_reals, encode_reals};
    put_numbers(p, &reals, values, present);
}

/* ---- texts ---- */

/* A text with its length before it. */
static void put_text(struct sv_buf *b, const char *text, size_t len)
{
    size_t start = b->len;
    sv_buf_add(b, "\0\0\0\0", 4);
    sv_buf_utf8(b, text, len);
    if (b->failed)
        return;
    uint32_t total = (uint32_t)(b->len - start - 4);
    memcpy(b->data + start, &total, 4);
}

static struct sv_symbol_slot *slot_of(struct sv_parquet *p, uint32_t symbol)
{
    size_t at = (symbol * 0x9e3779b1u) & (p->n_slots - 1);
    while (p->slots[at].symbol != symbol && p->slots[at].symbol != 0)
        at = (at + 1) & (p->n_slots - 1);
    return &p->slots[at];
}

static void reset_slots(struct sv_parquet *p, size_t n)
{
    free(p->slots);
    p->n_slots = n;
    p->slots = sv_alloc(n * sizeof *p->slots);
}

static void add_word(struct sv_parquet *p, uint32_t symbol)
{
    SV_APPEND(p->words, p->n_words, p->cap_words) = symbol;
    if (p->n_words * 2 < p->n_slots)
        return;
    reset_slots(p, p->n_slots * 4);
    for (size_t i = 0; i < p->n_words; i++)
        *slot_of(p, p->words[i]) = (struct sv_symbol_slot){p->words[i], (uint32_t)i};
}

/* Fills p->indexes (of those that are there) and the dictionary page. False: it would be too
 * large. */
static bool make_dictionary(struct sv_parquet *p, const uint32_t *symbols,
                            const struct sv_parquet_symbols *how)
{
    size_t n = 0, len;
    if (p->n_slots != 1024)
        reset_slots(p, 1024);
    else
        memset(p->slots, 0, p->n_slots * sizeof *p->slots);
    p->n_words = 0;
    for (size_t i = 0; i < p->n_rows; i++) {
        if (symbols[i] == 0)
            continue;
        struct sv_symbol_slot *slot = slot_of(p, symbols[i]);
        p->indexes[n++] = slot->symbol ? slot->index : (uint32_t)p->n_words;
        if (slot->symbol)
            continue;
        *slot = (struct sv_symbol_slot){symbols[i], (uint32_t)p->n_words};
        const char *text = how->text(how->ctx, symbols[i], &len);
        if (p->n_words == DICTIONARY_WORDS || p->page.len + len > DICTIONARY_BYTES)
            return false;
        put_text(&p->page, text, len);
        add_word(p, symbols[i]);
    }
    return true;
}

/* By bytes. The shorter of two that begin alike is the smaller. */
static int compare_texts(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

/* Of the words as they are in the dictionary page: repaired ones included. */
static void range_of_words(struct sv_parquet *p)
{
    const char *min = NULL, *max = NULL;
    size_t min_len = 0, max_len = 0;
    uint32_t len;
    for (size_t at = 0; at < p->page.len; at += 4 + len) {
        memcpy(&len, p->page.data + at, 4);
        const char *text = (const char *)p->page.data + at + 4;
        if (!min || compare_texts(text, len, min, min_len) < 0)
            min = text, min_len = len;
        if (!max || compare_texts(text, len, max, max_len) > 0)
            max = text, max_len = len;
    }
    if (min)
        set_range(&p->info, min, min_len, max, max_len);
}

static void put_indexes(struct sv_parquet *p, const uint8_t *present)
{
    const uint32_t *indexes = p->indexes;
    unsigned width = sv_bit_width(p->n_words - 1);
    width = width ? width : 1; /* some readers know no zero */
    for (size_t row = 0; row < p->n_rows; row += PAGE_ROWS) {
        size_t rows = page_rows(p, row);
        size_t count = present ? count_present(present + row, rows) : rows;
        sv_encode_levels(&p->page, present ? present + row : NULL, rows);
        sv_buf_byte(&p->page, (uint8_t)width);
        sv_encode_hybrid(&p->page, indexes, count, width);
        indexes += count;
        put_page(p, rows, SV_ENCODING_DICTIONARY);
    }
}

/* Pages of at most PAGE_ROWS rows that end after PAGE_BYTES of text. There is no range: it would
 * need all texts compared. */
static void put_plain_texts(struct sv_parquet *p, const uint32_t *symbols,
                            const struct sv_parquet_symbols *how)
{
    for (size_t row = 0; row < p->n_rows;) {
        size_t end = row, bytes = 0, len;
        for (; end < p->n_rows && end - row < PAGE_ROWS && bytes < PAGE_BYTES; end++) {
            if (symbols[end] == 0)
                continue;
            how->text(how->ctx, symbols[end], &len);
            bytes += len + 4;
        }
        sv_encode_levels(&p->page, p->present + row, end - row);
        for (size_t i = row; i < end; i++) {
            if (symbols[i] == 0)
                continue;
            const char *text = how->text(how->ctx, symbols[i], &len);
            put_text(&p->page, text, len);
        }
        put_page(p, end - row, SV_ENCODING_PLAIN);
        row = end;
    }
}

void sv_parquet_texts(struct sv_parquet *p, const uint32_t *symbols,
                      const struct sv_parquet_symbols *how)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_rows; i++) {
        p->present[i] = symbols[i] != 0;
        n += p->present[i];
    }
    if (n == 0) {
        sv_parquet_nulls(p);
        return;
    }
    begin_chunk(p, SV_ENCODING_DICTIONARY);
    if (make_dictionary(p, symbols, how)) {
        range_of_words(p);
        p->info.has_dictionary = true;
        put_page(p, 0, SV_ENCODING_PLAIN);
        p->info.data_offset = p->chunk.len;
        put_indexes(p, n < p->n_rows ? p->present : NULL);
    } else {
        begin_chunk(p, SV_ENCODING_PLAIN);
        put_plain_texts(p, symbols, how);
    }
    p->info.n_nulls = p->n_rows - n;
    end_chunk(p);
}

void sv_chunk_free(struct sv_parquet *p)
{
#ifdef SV_HAVE_ZSTD
    ZSTD_freeCCtx(p->zstd);
#endif
    free(p->slots);
    free(p->words);
}
