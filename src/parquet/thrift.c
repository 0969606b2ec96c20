/* Thrift's compact protocol: numbers of fields as differences, integers as zigzag varints. For the
 * page headers and the footer of a Parquet file; it knows nothing of their meaning. */
#include "parquet/thrift.h"

static void put_field(struct sv_thrift *t, unsigned number, enum sv_thrift_type type)
{
    sv_buf_byte(t->out, (uint8_t)((number - t->last) << 4 | type)); /* all steps are below 16 */
    t->last = number;
}

void sv_thrift_i32(struct sv_thrift *t, unsigned number, int32_t v)
{
    put_field(t, number, SV_THRIFT_I32);
    sv_put_varint(t->out, sv_zigzag(v));
}

void sv_thrift_i64(struct sv_thrift *t, unsigned number, int64_t v)
{
    put_field(t, number, SV_THRIFT_I64);
    sv_put_varint(t->out, sv_zigzag(v));
}

void sv_thrift_text(struct sv_thrift *t, unsigned number, const void *bytes, size_t len)
{
    put_field(t, number, SV_THRIFT_BINARY);
    sv_put_varint(t->out, len);
    sv_buf_add(t->out, bytes, len);
}

struct sv_thrift sv_thrift_struct(struct sv_thrift *t, unsigned number)
{
    put_field(t, number, SV_THRIFT_STRUCT);
    return sv_thrift_begin(t->out);
}

void sv_thrift_list(struct sv_thrift *t, unsigned number, enum sv_thrift_type type, size_t n)
{
    put_field(t, number, SV_THRIFT_LIST);
    if (n < 15) {
        sv_buf_byte(t->out, (uint8_t)(n << 4 | type));
        return;
    }
    sv_buf_byte(t->out, (uint8_t)(0xf0 | type));
    sv_put_varint(t->out, n);
}
