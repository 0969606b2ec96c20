/* Attributes of OTLP from arguments: see encode.h. */
#include "formats/otlp/encode.h"
#include "core/base/hex.h"
#include "core/base/utf8.h"
#include "core/stream/trace_context.h"
#include "formats/otlp/schema.h"

#include <stdio.h>

/* Protobuf's strings are UTF-8; other bytes have a type of their own. */
static void put_text_value(struct sv_buf *out, const char *text, size_t len)
{
    bool is_utf8 = sv_utf8_valid(text, len) == len;
    sv_put_bytes(out, is_utf8 ? OTLP_ANY_STRING : OTLP_ANY_BYTES, text, len);
}

static void put_number_text(struct sv_buf *out, uint64_t v, bool is_hex)
{
    char text[32];
    int n = is_hex ? snprintf(text, sizeof text, "0x%llx", (unsigned long long)v)
                   : snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    sv_put_bytes(out, OTLP_ANY_STRING, text, (size_t)n);
}

static void put_value(struct sv_buf *out, const struct sv_arg *a, const struct sv_dict *dict);

static void put_members(struct sv_buf *out, const struct sv_arg *a, const struct sv_dict *dict)
{
    bool is_dict = a->type == SV_ARG_DICT || a->type == SV_ARG_SOURCE;
    const struct sv_arg *end = a + 1 + a->size;
    size_t mark = sv_put_begin(out, is_dict ? OTLP_ANY_KVLIST : OTLP_ANY_ARRAY);
    for (const struct sv_arg *m = a + 1; m < end; m = sv_arg_next(m)) {
        struct sv_text key = sv_dict_text(dict, m->key);
        if (is_dict) {
            sv_otlp_put_arg(out, OTLP_LIST_VALUES, key.bytes, key.len, m, dict);
        } else {
            size_t value = sv_put_begin(out, OTLP_LIST_VALUES);
            put_value(out, m, dict);
            sv_put_end(out, value);
        }
    }
    sv_put_end(out, mark);
}

static void put_value(struct sv_buf *out, const struct sv_arg *a, const struct sv_dict *dict)
{
    switch (a->type) {
    case SV_ARG_BOOL: sv_put_u64(out, OTLP_ANY_BOOL, a->i != 0); break;
    case SV_ARG_INT:
    case SV_ARG_THREAD_TIME:
    case SV_ARG_THREAD_DUR: sv_put_i64(out, OTLP_ANY_INT, a->i); break;
    case SV_ARG_UINT: /* past the range of its integers */
    case SV_ARG_CORRELATION: put_number_text(out, a->u, false); break;
    case SV_ARG_POINTER: put_number_text(out, a->u, true); break;
    case SV_ARG_DOUBLE: sv_put_double(out, OTLP_ANY_DOUBLE, a->d); break;
    case SV_ARG_TEXT: put_text_value(out, a->text, a->size); break;
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK: put_members(out, a, dict); break;
    default: break; /* null: a value without a type */
    }
}

void sv_otlp_put_arg(struct sv_buf *out, uint32_t id, const char *key, size_t key_len,
                     const struct sv_arg *a, const struct sv_dict *dict)
{
    size_t mark = sv_put_begin(out, id);
    sv_put_text(out, OTLP_KV_KEY, key, key_len);
    size_t value = sv_put_begin(out, OTLP_KV_VALUE);
    put_value(out, a, dict);
    sv_put_end(out, value);
    sv_put_end(out, mark);
}

void sv_otlp_put_int(struct sv_buf *out, uint32_t id, const char *key, int64_t v)
{
    struct sv_arg a = {.type = SV_ARG_INT, .i = v};
    sv_otlp_put_arg(out, id, key, strlen(key), &a, NULL);
}

void sv_otlp_put_double(struct sv_buf *out, uint32_t id, const char *key, double v)
{
    struct sv_arg a = {.type = SV_ARG_DOUBLE, .d = v};
    sv_otlp_put_arg(out, id, key, strlen(key), &a, NULL);
}

void sv_otlp_put_text(struct sv_buf *out, uint32_t id, const char *key, const char *text,
                      size_t len)
{
    struct sv_arg a = {.type = SV_ARG_TEXT, .text = text, .size = (uint32_t)len & 0xffffff};
    sv_otlp_put_arg(out, id, key, strlen(key), &a, NULL);
}

bool sv_otlp_id(const struct sv_arg *text, uint8_t *to, size_t n)
{
    if (text->type != SV_ARG_TEXT || text->size != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = sv_hex_digit(text->text[2 * i]), low = sv_hex_digit(text->text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return sv_is_id(to, n);
}
