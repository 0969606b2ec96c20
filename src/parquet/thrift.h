/* Thrift's compact protocol, writing only: the metadata of Parquet files are its structs.
 *
 *     struct sv_thrift t = sv_thrift_begin(&buf);
 *     sv_thrift_i32(&t, 1, type);                       // fields of a struct, numbers rising
 *     struct sv_thrift inner = sv_thrift_struct(&t, 5); // a struct as a field
 *     …
 *     sv_thrift_end(&inner);
 *     sv_thrift_end(&t);                                                                        */
#pragma once

#include "core/base/wire.h"

enum sv_thrift_type {
    SV_THRIFT_TRUE = 1,
    SV_THRIFT_FALSE = 2,
    SV_THRIFT_I32 = 5,
    SV_THRIFT_I64 = 6,
    SV_THRIFT_BINARY = 8,
    SV_THRIFT_LIST = 9,
    SV_THRIFT_STRUCT = 12
};

/* A struct that is being written. */
struct sv_thrift {
    struct sv_buf *out;
    unsigned last; /* number of the field before */
};

static inline struct sv_thrift sv_thrift_begin(struct sv_buf *out)
{
    return (struct sv_thrift){out, 0};
}
static inline void sv_thrift_end(struct sv_thrift *t)
{
    sv_buf_byte(t->out, 0);
}

void sv_thrift_i32(struct sv_thrift *t, unsigned number, int32_t v);
void sv_thrift_i64(struct sv_thrift *t, unsigned number, int64_t v);
void sv_thrift_text(struct sv_thrift *t, unsigned number, const void *bytes, size_t len);
struct sv_thrift sv_thrift_struct(struct sv_thrift *t, unsigned number);
/* A list as a field: its n members follow without numbers, structs by sv_thrift_begin() and
 * _end(). */
void sv_thrift_list(struct sv_thrift *t, unsigned number, enum sv_thrift_type type, size_t n);
