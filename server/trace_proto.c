/* See trace_proto.h. Called by grpc_front.c. A setting is a list of texts; an empty one takes it
 * back, as null does in JSON. */
#include "server/trace_proto.h"

#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/wire.h"
#include "core/stream/json_members.h"

#include <string.h>

enum { SETTINGS = 1, MODEL = 2, KEY = 1, VALUE = 2, TEXT = 1 };

static bool is_bytes(const struct sv_pb_field *f, uint32_t id)
{
    return f->id == id && f->type == SV_PB_BYTES;
}

/* One text is one, except for a level, which is a list in any case. */
static void put_values(struct sv_json *j, struct sv_pb values)
{
    struct sv_pb_field f;
    struct sv_pb w = values;
    size_t n = 0;
    while (sv_pb_next(&w, &f))
        n += is_bytes(&f, TEXT);
    if (n == 0)
        sv_json_null(j);
    if (n > 1)
        sv_json_begin(j, '[');
    for (w = values; sv_pb_next(&w, &f);)
        if (is_bytes(&f, TEXT))
            sv_json_text(j, (const char *)f.bytes, (size_t)f.u);
    if (n > 1)
        sv_json_end(j);
}

static bool put_setting(struct sv_json *j, struct sv_pb entry)
{
    struct sv_pb_field f, key = {0}, value = {0};
    while (sv_pb_next(&entry, &f)) {
        if (is_bytes(&f, KEY))
            key = f;
        else if (is_bytes(&f, VALUE))
            value = f;
    }
    sv_json_key(j, (const char *)key.bytes, (size_t)key.u);
    put_values(j, value.bytes ? sv_pb_sub(&value) : (struct sv_pb){0});
    return !entry.bad && key.u > 0;
}

int sv_trace_proto_read(const uint8_t *bytes, size_t len, struct sv_trace_asked *out,
                        struct sv_buf *json, struct sv_err *err)
{
    struct sv_pb w = sv_pb_at(bytes, len);
    struct sv_pb_field f;
    struct sv_json j;
    bool is_good = true;
    *out = (struct sv_trace_asked){.model = ""};
    sv_json_init(&j, json);
    sv_json_begin(&j, '{');
    while (sv_pb_next(&w, &f)) {
        if (is_bytes(&f, MODEL)) {
            out->model = (const char *)f.bytes;
            out->model_len = (size_t)f.u;
        } else if (is_bytes(&f, SETTINGS)) {
            is_good &= put_setting(&j, sv_pb_sub(&f));
            out->wants = true;
        }
    }
    sv_json_end(&j);
    for (size_t i = 0; i < SV_JSON_PAD; i++)
        sv_buf_byte(json, 0);
    if (json->failed)
        return sv_error(err, SV_EUSAGE, "the message is too large");
    json->len -= SV_JSON_PAD;
    return is_good && !w.bad ? 0
                             : sv_error(err, SV_EUSAGE, "the message is not a TraceSettingRequest");
}

/* Texts without escapes, but for paths, whose bytes are resolved. */
static void put_text(struct sv_buf *out, const struct sv_member *m, struct sv_batch *b)
{
    struct sv_text text = sv_member_text(m, b);
    sv_put_bytes(out, TEXT, text.bytes, text.len);
}

void sv_trace_proto_write(const struct sv_buf *json, struct sv_buf *out)
{
    struct sv_batch b;
    struct sv_member m, one;
    struct sv_members all = sv_members_of((const char *)json->data, json->len);
    sv_batch_init(&b);
    while (sv_member_next(&all, &m)) {
        size_t entry = sv_put_begin(out, SETTINGS);
        sv_put_bytes(out, KEY, m.key.bytes, m.key.len);
        size_t value = sv_put_begin(out, VALUE);
        if (m.type != '[')
            put_text(out, &m, &b);
        else
            for (struct sv_members list = sv_members_of(m.value.bytes, m.value.len);
                 sv_member_next(&list, &one);)
                put_text(out, &one, &b);
        sv_put_end(out, value);
        sv_put_end(out, entry);
    }
    sv_batch_fini(&b);
}
