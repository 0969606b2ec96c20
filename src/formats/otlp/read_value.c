/* Attributes of OTLP as arguments: see reader.h. Values are hostile: their nesting is bounded,
 * sizes are those of the bytes that are there. */
#include "formats/otlp/reader.h"

bool otlp_is(struct otlp_text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.bytes, word, t.len) == 0;
}

sv_str otlp_word(struct otlp_reader *r, struct otlp_text t)
{
    if (t.len == 0)
        return 0;
    return sv_dict_str(r->source.dict, (const char *)t.bytes,
                       t.len < SV_TEXT_MAX ? t.len : SV_TEXT_MAX);
}

bool otlp_key_value(struct sv_pb w, struct otlp_text *key, struct sv_pb *value)
{
    *key = (struct otlp_text){0};
    *value = (struct sv_pb){0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.type != SV_PB_BYTES)
            continue;
        if (f.id == OTLP_KV_KEY)
            *key = (struct otlp_text){f.bytes, (size_t)f.u};
        else if (f.id == OTLP_KV_VALUE)
            *value = sv_pb_sub(&f);
    }
    return !w.bad;
}

/* The last field of a value counts, as everywhere in protobuf. */
static bool last(struct sv_pb value, uint32_t id, uint32_t type, struct sv_pb_field *out)
{
    bool is_found = false;
    for (struct sv_pb_field f; sv_pb_next(&value, &f);) {
        is_found = f.id == id && f.type == type;
        *out = f;
    }
    return is_found && !value.bad;
}

bool otlp_value_text(struct sv_pb value, struct otlp_text *out)
{
    struct sv_pb_field f;
    if (!last(value, OTLP_ANY_STRING, SV_PB_BYTES, &f))
        return false;
    *out = (struct otlp_text){f.bytes, (size_t)f.u};
    return true;
}

bool otlp_value_int(struct sv_pb value, int64_t *out)
{
    struct sv_pb_field f;
    struct otlp_text t;
    if (last(value, OTLP_ANY_INT, SV_PB_VARINT, &f)) {
        *out = (int64_t)f.u;
        return true;
    }
    if (!otlp_value_text(value, &t) || t.len == 0 || t.len > 18)
        return false;
    *out = 0;
    for (size_t i = 0; i < t.len; i++) {
        if (t.bytes[i] < '0' || t.bytes[i] > '9')
            return false;
        *out = *out * 10 + (t.bytes[i] - '0');
    }
    return true;
}

bool otlp_value_double(struct sv_pb value, double *out)
{
    struct sv_pb_field f;
    int64_t i;
    if (last(value, OTLP_ANY_DOUBLE, SV_PB_FIXED64, &f)) {
        *out = sv_pb_double(&f);
        return true;
    }
    if (!otlp_value_int(value, &i))
        return false;
    *out = (double)i;
    return true;
}

/* ---- arguments ---- */

void otlp_put_text(struct sv_batch *b, sv_str key, struct otlp_text t)
{
    sv_batch_str(b, key, (const char *)t.bytes, t.len < SV_TEXT_MAX ? t.len : SV_TEXT_MAX);
}

void otlp_put_hex(struct sv_batch *b, sv_str key, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * OTLP_TRACE_ID_BYTES];
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    sv_batch_str(b, key, sv_batch_text(b, text, 2 * n), 2 * n);
}

static void put_value(struct otlp_reader *r, struct sv_batch *b, sv_str key, struct sv_pb value,
                      unsigned depth);

static void put_members(struct otlp_reader *r, struct sv_batch *b, sv_str key, struct sv_pb list,
                        bool is_dict, unsigned depth)
{
    size_t open = sv_batch_open(b, key, is_dict ? SV_ARG_DICT : SV_ARG_ARRAY);
    for (struct sv_pb_field f; sv_pb_next(&list, &f);) {
        struct otlp_text name;
        struct sv_pb value = sv_pb_sub(&f);
        if (f.id != OTLP_LIST_VALUES || f.type != SV_PB_BYTES)
            continue;
        if (!is_dict)
            put_value(r, b, 0, value, depth + 1);
        else if (otlp_key_value(sv_pb_sub(&f), &name, &value) && name.len > 0)
            put_value(r, b, otlp_word(r, name), value, depth + 1);
    }
    sv_batch_close(b, open);
    if (list.bad)
        otlp_damage(r, list.p, "attribute that cannot be read", NULL);
}

static struct sv_arg *put_typed(struct sv_batch *b, sv_str key, uint32_t type)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = type & 0xff;
    return a;
}

static void put_field(struct otlp_reader *r, struct sv_batch *b, sv_str key,
                      const struct sv_pb_field *f, unsigned depth)
{
    static const uint8_t types[] = {
        [OTLP_ANY_STRING] = SV_PB_BYTES, [OTLP_ANY_BOOL] = SV_PB_VARINT,
        [OTLP_ANY_INT] = SV_PB_VARINT,   [OTLP_ANY_DOUBLE] = SV_PB_FIXED64,
        [OTLP_ANY_ARRAY] = SV_PB_BYTES,  [OTLP_ANY_KVLIST] = SV_PB_BYTES,
        [OTLP_ANY_BYTES] = SV_PB_BYTES,
    };
    if (f->id >= sizeof types || f->type != types[f->id]) {
        otlp_unknown(r, f);
        return;
    }
    switch (f->id) {
    case OTLP_ANY_STRING:
    case OTLP_ANY_BYTES: otlp_put_text(b, key, (struct otlp_text){f->bytes, (size_t)f->u}); return;
    case OTLP_ANY_BOOL: put_typed(b, key, SV_ARG_BOOL)->i = f->u != 0; return;
    case OTLP_ANY_INT: sv_batch_int(b, key, (int64_t)f->u); return;
    case OTLP_ANY_DOUBLE: put_typed(b, key, SV_ARG_DOUBLE)->d = sv_pb_double(f); return;
    case OTLP_ANY_ARRAY:
    case OTLP_ANY_KVLIST:
        if (depth < OTLP_DEPTH_MAX)
            put_members(r, b, key, sv_pb_sub(f), f->id == OTLP_ANY_KVLIST, depth);
        else
            otlp_damage(r, f->bytes, "attribute that is nested too deep", NULL);
    }
}

static void put_value(struct otlp_reader *r, struct sv_batch *b, sv_str key, struct sv_pb value,
                      unsigned depth)
{
    struct sv_pb_field f = {.bytes = value.p}, kept = {0};
    for (; sv_pb_next(&value, &f); f.bytes = value.p)
        kept = f;
    if (value.bad)
        otlp_damage(r, value.p, "attribute that cannot be read", NULL);
    else if (kept.id)
        put_field(r, b, key, &kept, depth);
    else
        put_typed(b, key, SV_ARG_NULL);
}

void otlp_put_attribute(struct otlp_reader *r, struct sv_batch *b, struct sv_pb attribute)
{
    struct otlp_text key;
    struct sv_pb value;
    const uint8_t *at = attribute.p;
    if (otlp_key_value(attribute, &key, &value) && key.len > 0)
        put_value(r, b, otlp_word(r, key), value, 0);
    else
        otlp_damage(r, at, "attribute that cannot be read", NULL);
}
