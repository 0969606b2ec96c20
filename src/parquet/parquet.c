/* Parquet files: the frame around column chunks.
 *
 * sv_parquet_open() writes the magic number; each column of a group is made by chunk.c, which ends
 * in sv_parquet_put_chunk(); close() writes the footer (schema, groups, offsets, statistics) as
 * Thrift structs, its length and the magic number again. Offsets of all groups are known only at
 * the end, so a file without its footer is none: it has its temporary name until then. */
#include "parquet/parquet.h"

#include "core/base/mem.h"
#include "parquet/impl.h"
#include "parquet/thrift.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FOOTER_MAX ((size_t)1 << 30)

static const char magic[4] = {'P', 'A', 'R', '1'};

static void free_all(struct sv_parquet *p)
{
    sv_chunk_free(p);
    struct sv_buf *const bufs[] = {&p->chunk, &p->page,   &p->packed,
                                   &p->kept,  &p->groups, &p->group};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        sv_buf_fini(bufs[i]);
    free(p->numbers);
    free(p->indexes);
    free(p->present);
    free(p);
}

int sv_parquet_open(const char *path, const struct sv_parquet_column *columns, size_t n,
                    struct sv_parquet **out, struct sv_err *err)
{
    struct sv_parquet *p = *out = sv_alloc(sizeof *p);
    assert(n > 0 && n <= SV_PARQUET_COLUMNS_MAX);
    p->columns = columns;
    p->n_columns = n;
    struct sv_buf *const bufs[] = {&p->chunk, &p->page,   &p->packed,
                                   &p->kept,  &p->groups, &p->group};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        sv_buf_init(bufs[i], FOOTER_MAX);
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &p->out, err);
    if (code < 0) {
        free_all(p);
        *out = NULL;
        return code;
    }
    p->numbers = sv_alloc_aligned(SV_PARQUET_GROUP * 8, 64);
    p->indexes = sv_alloc_aligned(SV_PARQUET_GROUP * sizeof *p->indexes, 64);
    p->present = sv_alloc_aligned(SV_PARQUET_GROUP, 64);
    sv_output_write(p->out, magic, sizeof magic);
    return 0;
}

/* ---- row groups ---- */

void sv_parquet_group(struct sv_parquet *p, size_t n_rows)
{
    assert(p->at == 0 && n_rows > 0 && n_rows <= SV_PARQUET_GROUP);
    p->n_rows = n_rows;
    p->group_plain = p->group_packed = 0;
    sv_buf_clear(&p->group);
}

static int32_t physical_type(enum sv_parquet_type type)
{
    return type == SV_PARQUET_INT ? 2 : type == SV_PARQUET_REAL ? 5 : 6;
}

static void put_statistics(struct sv_thrift *meta, const struct sv_chunk_info *info)
{
    struct sv_thrift s = sv_thrift_struct(meta, 12);
    sv_thrift_i64(&s, 3, (int64_t)info->n_nulls);
    if (info->has_range) {
        sv_thrift_text(&s, 5, info->max, info->max_len);
        sv_thrift_text(&s, 6, info->min, info->min_len);
    }
    sv_thrift_end(&s);
}

/* The chunk in the list of its group; it begins at `offset` of the file. */
static void note_chunk(struct sv_parquet *p, const struct sv_chunk_info *info, uint64_t offset,
                       uint64_t bytes)
{
    const struct sv_parquet_column *c = &p->columns[p->at];
    struct sv_thrift chunk = sv_thrift_begin(&p->group);
    sv_thrift_i64(&chunk, 2, (int64_t)offset);
    struct sv_thrift meta = sv_thrift_struct(&chunk, 3);
    sv_thrift_i32(&meta, 1, physical_type(c->type));
    sv_thrift_list(&meta, 2, SV_THRIFT_I32, info->has_dictionary ? 3 : 2);
    sv_put_varint(meta.out, sv_zigzag(SV_ENCODING_RLE)); /* of the definition levels */
    if (info->has_dictionary)
        sv_put_varint(meta.out, sv_zigzag(SV_ENCODING_PLAIN)); /* of the dictionary's words */
    sv_put_varint(meta.out, sv_zigzag(info->encoding));
    sv_thrift_list(&meta, 3, SV_THRIFT_BINARY, 1);
    sv_put_varint(meta.out, strlen(c->name));
    sv_buf_str(meta.out, c->name);
    sv_thrift_i32(&meta, 4, sv_parquet_codec());
    sv_thrift_i64(&meta, 5, (int64_t)p->n_rows);
    sv_thrift_i64(&meta, 6, (int64_t)info->plain_bytes);
    sv_thrift_i64(&meta, 7, (int64_t)bytes);
    sv_thrift_i64(&meta, 9, (int64_t)(offset + info->data_offset));
    if (info->has_dictionary)
        sv_thrift_i64(&meta, 11, (int64_t)offset);
    put_statistics(&meta, info);
    sv_thrift_end(&meta);
    sv_thrift_end(&chunk);
}

static void end_group(struct sv_parquet *p)
{
    struct sv_thrift g = sv_thrift_begin(&p->groups);
    sv_thrift_list(&g, 1, SV_THRIFT_STRUCT, p->n_columns);
    sv_buf_add(&p->groups, p->group.data, p->group.len);
    sv_thrift_i64(&g, 2, (int64_t)p->group_plain);
    sv_thrift_i64(&g, 3, (int64_t)p->n_rows);
    sv_thrift_i64(&g, 6, (int64_t)p->group_packed);
    sv_thrift_end(&g);
    p->total_rows += p->n_rows;
    p->n_groups++;
    p->at = 0;
}

void sv_parquet_put_chunk(struct sv_parquet *p, const struct sv_buf *chunk,
                          const struct sv_chunk_info *info)
{
    if (chunk->failed)
        sv_error(&p->failed, SV_ELIMIT,
                 "column %s: its values in a row group are larger than 1 GiB",
                 p->columns[p->at].name);
    note_chunk(p, info, sv_output_bytes(p->out), chunk->len);
    sv_output_write(p->out, chunk->data, chunk->len);
    p->group_plain += info->plain_bytes;
    p->group_packed += chunk->len;
    if (++p->at == p->n_columns)
        end_group(p);
}

/* ---- the footer ---- */

static void put_schema(struct sv_parquet *p, struct sv_thrift *file)
{
    sv_thrift_list(file, 2, SV_THRIFT_STRUCT, p->n_columns + 1);
    struct sv_thrift root = sv_thrift_begin(file->out);
    sv_thrift_text(&root, 4, "schema", 6);
    sv_thrift_i32(&root, 5, (int32_t)p->n_columns);
    sv_thrift_end(&root);
    for (size_t i = 0; i < p->n_columns; i++) {
        const struct sv_parquet_column *c = &p->columns[i];
        struct sv_thrift e = sv_thrift_begin(file->out);
        sv_thrift_i32(&e, 1, physical_type(c->type));
        sv_thrift_i32(&e, 3, 1); /* OPTIONAL */
        sv_thrift_text(&e, 4, c->name, strlen(c->name));
        if (c->type == SV_PARQUET_TEXT) {
            sv_thrift_i32(&e, 6, 0); /* UTF8, for old readers */
            struct sv_thrift logical = sv_thrift_struct(&e, 10);
            struct sv_thrift string = sv_thrift_struct(&logical, 1);
            sv_thrift_end(&string);
            sv_thrift_end(&logical);
        }
        sv_thrift_end(&e);
    }
}

/* Minimum and maximum are in the order of the types: without this readers must ignore them. */
static void put_orders(struct sv_parquet *p, struct sv_thrift *file)
{
    sv_thrift_list(file, 7, SV_THRIFT_STRUCT, p->n_columns);
    for (size_t i = 0; i < p->n_columns; i++) {
        struct sv_thrift order = sv_thrift_begin(file->out);
        struct sv_thrift by_type = sv_thrift_struct(&order, 1);
        sv_thrift_end(&by_type);
        sv_thrift_end(&order);
    }
}

static void put_footer(struct sv_parquet *p)
{
    static const char by[] = "stave";
    struct sv_buf *b = &p->chunk;
    sv_buf_clear(b);
    struct sv_thrift file = sv_thrift_begin(b);
    sv_thrift_i32(&file, 1, 2);
    put_schema(p, &file);
    sv_thrift_i64(&file, 3, (int64_t)p->total_rows);
    sv_thrift_list(&file, 4, SV_THRIFT_STRUCT, p->n_groups);
    sv_buf_add(b, p->groups.data, p->groups.len);
    sv_thrift_text(&file, 6, by, sizeof by - 1);
    put_orders(p, &file);
    sv_thrift_end(&file);
    uint32_t len = (uint32_t)b->len;
    sv_buf_add(b, &len, 4);
    sv_buf_add(b, magic, sizeof magic);
    if (b->failed || p->groups.failed || p->group.failed)
        sv_error(&p->failed, SV_ELIMIT, "the file has too many row groups");
    sv_output_write(p->out, b->data, b->len);
}

int sv_parquet_failure(const struct sv_parquet *p, struct sv_err *err)
{
    if (p->failed.code)
        return sv_error(err, p->failed.code, "%s", p->failed.msg);
    return sv_output_failure(p->out, err);
}

int sv_parquet_close(struct sv_parquet *p, struct sv_err *err)
{
    assert(p->at == 0);
    put_footer(p);
    int code = sv_parquet_failure(p, err);
    int ended = sv_output_end(p->out, code < 0, err);
    free_all(p);
    return code < 0 ? code : ended;
}

void sv_parquet_discard(struct sv_parquet *p)
{
    sv_output_discard(p->out);
    free_all(p);
}
