/* Internal header of the Parquet writer: parquet.c has the file and its footer, chunk.c the columns
 * of a row group. */
#pragma once

#include "core/base/buf.h"
#include "core/files/output.h"
#include "parquet/parquet.h"

#include <stdbool.h>

#define SV_PARQUET_TEXT_MAX ((size_t)1 << 30) /* of a page */
#define SV_STATISTIC_MAX    64                /* bytes of a text as minimum or maximum */

enum sv_parquet_encoding {
    SV_ENCODING_PLAIN = 0,
    SV_ENCODING_RLE = 3,
    SV_ENCODING_DELTA = 5,
    SV_ENCODING_DICTIONARY = 8
};

/* What the footer says of a column chunk. Offsets are within its bytes until it is written. */
struct sv_chunk_info {
    enum sv_parquet_encoding encoding;
    bool has_dictionary;
    uint64_t data_offset;
    uint64_t plain_bytes; /* of pages before compression, headers included */
    uint64_t n_nulls;
    size_t min_len, max_len;
    bool has_range;
    uint8_t min[SV_STATISTIC_MAX], max[SV_STATISTIC_MAX];
};

/* A number of the caller and its place in the dictionary of the chunk. */
struct sv_symbol_slot {
    uint32_t symbol, index; /* symbol 0: free */
};

struct sv_parquet {
    struct sv_output *out;
    const struct sv_parquet_column *columns;
    size_t n_columns;
    /* The group that is being written. */
    size_t n_rows, at; /* at: the next column */
    uint64_t group_plain, group_packed;
    /* The chunk that is being made: headers and compressed pages. */
    struct sv_buf chunk, page, packed;
    struct sv_chunk_info info;
    struct sv_buf kept; /* of sv_parquet_keep() */
    struct sv_chunk_info kept_info;
    /* Scratch, for the rows of a group. */
    uint8_t *numbers; /* of eight bytes */
    uint32_t *indexes;
    uint8_t *present;
    /* The dictionary of a chunk. */
    struct sv_symbol_slot *slots;
    size_t n_slots;
    uint32_t *words; /* symbols by index */
    size_t n_words, cap_words;
    void *zstd;
    /* The footer: what is known of the groups so far. */
    struct sv_buf groups, group;
    uint32_t n_groups;
    uint64_t total_rows;
    struct sv_err failed;
};

int32_t sv_parquet_codec(void);
/* Writes what chunk, info hold as the next column of the group. */
void sv_parquet_put_chunk(struct sv_parquet *p, const struct sv_buf *chunk,
                          const struct sv_chunk_info *info);
void sv_chunk_free(struct sv_parquet *p); /* its scratch */
