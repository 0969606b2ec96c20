/* Arguments of Perfetto events: debug annotations in all their forms, and the typed parts of
 * TrackEvent.
 *
 * Called while an event is being read; everything is appended to the arguments of the batch at hand
 * (r->b). An annotation's name may follow its value on the wire, so containers are opened without
 * key and get it at the end. Nesting is recursive with a limit; what is deeper is dropped and
 * reported. Texts point to where they were read, unless the event has to wait for its clock. */
#include "core/perfetto/stave.h"
#include "formats/perfetto/read.h"

#include <stdio.h>

/* ---- single arguments ---- */

static struct sv_arg *add(struct sv_pf *r, sv_str key, unsigned type)
{
    struct sv_arg *a = sv_batch_arg(r->b);
    a->key = key;
    a->type = type & 0xff;
    return a;
}

void sv_pf_arg_text(struct sv_pf *r, sv_str key, const uint8_t *bytes, size_t len)
{
    if (len > SV_TEXT_MAX) {
        sv_pf_damage(r, "text too long", "%zu bytes; cut to %u", len, SV_TEXT_MAX);
        len = SV_TEXT_MAX;
    }
    const char *text = r->copy_texts ? sv_batch_text(r->b, bytes, len) : (const char *)bytes;
    struct sv_arg *a = add(r, key, SV_ARG_TEXT);
    a->size = (uint32_t)len & 0xffffff;
    a->text = text;
}

void sv_pf_arg_uint(struct sv_pf *r, sv_str key, uint64_t u)
{
    add(r, key, u > INT64_MAX ? SV_ARG_UINT : SV_ARG_INT)->u = u;
}

void sv_pf_arg_double(struct sv_pf *r, sv_str key, double d)
{
    add(r, key, SV_ARG_DOUBLE)->d = d;
}

void sv_pf_arg_special(struct sv_pf *r, unsigned type, uint64_t u)
{
    add(r, 0, type)->u = u;
}

/* ---- the old nested form ---- */

static void nested_value(struct sv_pf *r, sv_str key, struct sv_pf_blob data, unsigned depth);

static bool is_too_deep(struct sv_pf *r, unsigned depth)
{
    if (depth < SV_PF_DEPTH_MAX)
        return false;
    sv_pf_damage(r, "arguments nested too deeply", "more than %u levels; dropped", SV_PF_DEPTH_MAX);
    return true;
}

/* Keys and values are two lists of equal length. */
static void nested_dict(struct sv_pf *r, sv_str key, struct sv_pf_blob data, unsigned depth)
{
    struct sv_pb keys = sv_pf_wire(data), values = sv_pf_wire(data);
    struct sv_pb_field k, v;
    size_t open = sv_batch_open(r->b, key, SV_ARG_DICT);
    for (;;) {
        bool has_key, has_value;
        while ((has_key = sv_pb_next(&keys, &k)) &&
               sv_pf_tag(&k) != SV_PF_B(SV_PF_NESTED_DICT_KEYS))
            ;
        while ((has_value = sv_pb_next(&values, &v)) &&
               sv_pf_tag(&v) != SV_PF_B(SV_PF_NESTED_DICT_VALUES))
            ;
        if (!has_key || !has_value) {
            if (has_key != has_value)
                sv_pf_damage(r, "malformed annotation", "a nested value has keys without values");
            break;
        }
        nested_value(r, sv_dict_str(r->dict, (const char *)k.bytes, (size_t)k.u), sv_pf_bytes(&v),
                     depth + 1);
    }
    sv_batch_close(r->b, open);
}

static void nested_array(struct sv_pf *r, sv_str key, struct sv_pf_blob data, unsigned depth)
{
    struct sv_pb w = sv_pf_wire(data);
    size_t open = sv_batch_open(r->b, key, SV_ARG_ARRAY);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_NESTED_ARRAY_VALUES))
            nested_value(r, 0, sv_pf_bytes(&f), depth + 1);
    sv_batch_close(r->b, open);
}

static void nested_value(struct sv_pf *r, sv_str key, struct sv_pf_blob data, unsigned depth)
{
    struct sv_pb w = sv_pf_wire(data);
    struct sv_pb_field f, value = {0};
    uint64_t type = 0;
    if (is_too_deep(r, depth))
        return;
    while (sv_pb_next(&w, &f)) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_NESTED_TYPE))
            type = f.u;
        else if (f.id >= SV_PF_NESTED_INT && f.id <= SV_PF_NESTED_STRING)
            value = f;
    }
    if (type == SV_PF_NESTED_IS_DICT) {
        nested_dict(r, key, data, depth);
        return;
    }
    if (type == SV_PF_NESTED_IS_ARRAY) {
        nested_array(r, key, data, depth);
        return;
    }
    switch (sv_pf_tag(&value)) {
    case SV_PF_V(SV_PF_NESTED_INT): sv_pf_arg_int(r, key, (int64_t)value.u); break;
    case SV_PF_F(SV_PF_NESTED_DOUBLE): sv_pf_arg_double(r, key, sv_pb_double(&value)); break;
    case SV_PF_V(SV_PF_NESTED_BOOL): add(r, key, SV_ARG_BOOL)->i = value.u != 0; break;
    case SV_PF_B(SV_PF_NESTED_STRING): sv_pf_arg_text(r, key, value.bytes, (size_t)value.u); break;
    default: add(r, key, SV_ARG_NULL); break;
    }
}

/* ---- debug annotations ---- */

#define NO_CONTAINER SIZE_MAX

struct annotation {
    uint64_t name_iid;
    size_t open; /* dict or array, or NO_CONTAINER */
    uint32_t open_type;
    bool has_name, has_value, has_proto;
    struct sv_pb_field value; /* the last one */
    struct sv_pf_blob name;   /* unless it has an iid */
    struct sv_pf_blob type;   /* of a typed protobuf value */
};

static sv_str unknown_key(struct sv_pf *r, uint64_t iid)
{
    char text[40];
    int n = snprintf(text, sizeof text, "unknown(%llu)", (unsigned long long)iid);
    return sv_dict_str(r->dict, text, (size_t)n);
}

static sv_str interned_key(struct sv_pf *r, uint64_t iid)
{
    sv_str key = sv_pf_str_quick(r, SV_PF_T_ARG_NAME, iid);
    return key ? key : unknown_key(r, iid);
}

static sv_str annotation_key(struct sv_pf *r, const struct annotation *a)
{
    return a->name_iid ? interned_key(r, a->name_iid)
                       : sv_dict_str(r->dict, (const char *)a->name.bytes, a->name.len);
}

static void annotation_member(struct sv_pf *r, struct annotation *a, const struct sv_pb_field *f,
                              unsigned depth)
{
    unsigned type = f->id == SV_PF_ANN_DICT ? SV_ARG_DICT : SV_ARG_ARRAY;
    if (a->open == NO_CONTAINER) {
        a->open = sv_batch_open(r->b, 0, type);
        a->open_type = type;
    }
    if (a->open_type == type && !is_too_deep(r, depth + 1))
        sv_pf_annotation(r, f->bytes, (size_t)f->u, depth + 1, type == SV_ARG_ARRAY);
}

static void typed_value(struct sv_pf *r, sv_str key, const struct annotation *a)
{
    static const char null_type[] = SV_PF_NULL_TYPE;
    struct sv_pf_blob type = a->type;
    if (type.len == sizeof null_type - 1 && memcmp(type.bytes, null_type, type.len) == 0) {
        add(r, key, SV_ARG_NULL);
        return;
    }
    sv_report_add(r->report, SV_SKIPPED, "annotation with a protobuf value", 1, r->pos,
                  "the first is a %.*s", (int)(type.len < 100 ? type.len : 100),
                  type.len > 0 ? (const char *)type.bytes : "");
}

static void text_at(struct sv_pf *r, sv_str key, uint64_t iid)
{
    struct sv_pf_blob text = sv_pf_blob_at(r, SV_PF_T_ARG_STRING, iid);
    if (text.bytes)
        sv_pf_arg_text(r, key, text.bytes, text.len);
    else
        add(r, key, SV_ARG_NULL);
}

static void annotation_value(struct sv_pf *r, sv_str key, const struct annotation *a,
                             unsigned depth)
{
    const struct sv_pb_field *v = &a->value;
    switch (a->has_value ? sv_pf_tag(v) : 0) {
    case SV_PF_V(SV_PF_ANN_INT): sv_pf_arg_int(r, key, (int64_t)v->u); break;
    case SV_PF_V(SV_PF_ANN_UINT): sv_pf_arg_uint(r, key, v->u); break;
    case SV_PF_V(SV_PF_ANN_BOOL): add(r, key, SV_ARG_BOOL)->i = v->u != 0; break;
    case SV_PF_F(SV_PF_ANN_DOUBLE): sv_pf_arg_double(r, key, sv_pb_double(v)); break;
    case SV_PF_V(SV_PF_ANN_POINTER): add(r, key, SV_ARG_POINTER)->u = v->u; break;
    case SV_PF_B(SV_PF_ANN_STRING): sv_pf_arg_text(r, key, v->bytes, (size_t)v->u); break;
    case SV_PF_V(SV_PF_ANN_STRING_IID): text_at(r, key, v->u); break;
    case SV_PF_B(SV_PF_ANN_JSON):
        sv_pf_arg_json(r, key, (const char *)v->bytes, (size_t)v->u);
        break;
    case SV_PF_B(SV_PF_ANN_NESTED): nested_value(r, key, sv_pf_bytes(v), depth); break;
    default:
        if (a->has_proto)
            typed_value(r, key, a);
        else
            add(r, key, SV_ARG_NULL);
    }
}

static inline void annotation_field(struct sv_pf *r, struct annotation *a,
                                    const struct sv_pb_field *f, unsigned depth)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_V(SV_PF_ANN_NAME_IID):
        a->name_iid = f->u;
        a->has_name = true;
        break;
    case SV_PF_B(SV_PF_ANN_NAME):
        a->name = sv_pf_bytes(f);
        a->has_name = true;
        break;
    case SV_PF_B(SV_PF_ANN_DICT):
    case SV_PF_B(SV_PF_ANN_ARRAY): annotation_member(r, a, f, depth); break;
    case SV_PF_B(SV_PF_ANN_PROTO_VALUE): a->has_proto = true; break;
    case SV_PF_B(SV_PF_ANN_PROTO_TYPE): a->type = sv_pf_bytes(f); break;
    case SV_PF_V(SV_PF_ANN_PROTO_TYPE_IID): {
        struct sv_text t = sv_dict_text(r->dict, sv_pf_str(r, SV_PF_T_ARG_TYPE, f->u));
        a->type = (struct sv_pf_blob){(const uint8_t *)t.bytes, t.len};
        break;
    }
    default:
        if (f->id >= SV_PF_ANN_BOOL && f->id <= SV_PF_ANN_STRING_IID) {
            a->value = *f;
            a->has_value = true;
        }
    }
}

void sv_pf_annotation(struct sv_pf *r, const uint8_t *bytes, size_t len, unsigned depth,
                      bool is_member)
{
    struct annotation a;
    struct sv_pb w = sv_pb_at(bytes, len);
    size_t start = (size_t)(r->b->arg - r->b->args);
    memset(&a, 0, offsetof(struct annotation, value));
    a.open = NO_CONTAINER;
    a.name.len = a.type.len = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        annotation_field(r, &a, &f, depth);
    if (__builtin_expect(w.bad || (!a.has_name && !is_member), 0)) {
        sv_pf_damage(r, "malformed annotation", w.bad ? "dropped" : "without a name; dropped");
        sv_pf_rollback(r, start);
        return;
    }
    sv_str key = is_member ? 0 : annotation_key(r, &a);
    if (a.open == NO_CONTAINER) {
        annotation_value(r, key, &a, depth);
        return;
    }
    r->b->args[a.open].key = key;
    sv_batch_close(r->b, a.open);
}

/* An annotation that was decoded ahead: its key and perhaps its value are still numbers. */
void sv_pf_arg_quick(struct sv_pf *r, const struct sv_arg *from)
{
    sv_str key = interned_key(r, from->key);
    if (from->type == SV_ARG_TEXT) {
        sv_pf_arg_text(r, key, (const uint8_t *)from->text, from->size);
    } else if (from->type == SV_PF_QUICK_TEXT_IID) {
        text_at(r, key, from->u);
    } else {
        struct sv_arg *a = sv_batch_arg(r->b);
        *a = *from;
        a->key = key;
    }
}

/* ---- typed parts ---- */

/* A SourceLocation as SV_ARG_SOURCE, or as a dict with a key. */
void sv_pf_arg_source(struct sv_pf *r, struct sv_pf_blob location, unsigned type, sv_str key)
{
    struct sv_pb w = sv_pf_wire(location);
    if (!location.bytes)
        return;
    size_t open = sv_batch_open(r->b, key, type);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SOURCE_FILE))
            sv_pf_arg_text(r, r->str.file, f.bytes, (size_t)f.u);
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SOURCE_FUNCTION))
            sv_pf_arg_text(r, r->str.function, f.bytes, (size_t)f.u);
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_SOURCE_LINE))
            sv_pf_arg_int(r, r->str.line, (int64_t)f.u);
    }
    sv_batch_close(r->b, open);
}

void sv_pf_arg_task(struct sv_pf *r, struct sv_pf_blob task)
{
    struct sv_pb w = sv_pf_wire(task);
    size_t open = sv_batch_open(r->b, sv_dict_cstr(r->dict, "task"), SV_ARG_DICT);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_TASK_POSTED_FROM_IID))
            sv_pf_arg_source(r, sv_pf_blob_at(r, SV_PF_T_SOURCE, f.u), SV_ARG_DICT,
                             sv_dict_cstr(r->dict, "posted_from"));
    sv_batch_close(r->b, open);
}

void sv_pf_arg_log(struct sv_pf *r, struct sv_pf_blob message)
{
    struct sv_pb w = sv_pf_wire(message);
    size_t open = sv_batch_open(r->b, sv_dict_cstr(r->dict, "log_message"), SV_ARG_DICT);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_LOG_BODY_IID)) {
            struct sv_pf_blob body = sv_pf_blob_at(r, SV_PF_T_LOG_BODY, f.u);
            if (body.bytes)
                sv_pf_arg_text(r, sv_dict_cstr(r->dict, "message"), body.bytes, body.len);
        } else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_LOG_SOURCE_IID)) {
            sv_pf_arg_source(r, sv_pf_blob_at(r, SV_PF_T_SOURCE, f.u), SV_ARG_DICT,
                             sv_dict_cstr(r->dict, "source"));
        } else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_LOG_PRIORITY)) {
            sv_pf_arg_int(r, sv_dict_cstr(r->dict, "priority"), (int64_t)f.u);
        }
    }
    sv_batch_close(r->b, open);
}

/* ---- callstacks ---- */

/* "function (file:line)", or what of it there is. */
static void frame_text(struct sv_pf *r, struct sv_pf_blob function, struct sv_pf_blob file,
                       uint64_t line)
{
    char text[1024];
    if (file.len == 0) {
        sv_pf_arg_text(r, 0, function.bytes ? function.bytes : (const uint8_t *)"", function.len);
        return;
    }
    int fn = (int)(function.len < 400 ? function.len : 400);
    int fi = (int)(file.len < 400 ? file.len : 400);
    const char *fn_text = function.bytes ? (const char *)function.bytes : "";
    const char *fi_text = file.bytes ? (const char *)file.bytes : "";
    int n = line ? snprintf(text, sizeof text, "%.*s (%.*s:%llu)", fn, fn_text, fi, fi_text,
                            (unsigned long long)line)
                 : snprintf(text, sizeof text, "%.*s (%.*s)", fn, fn_text, fi, fi_text);
    const char *copy = sv_batch_text(r->b, text, (size_t)n);
    struct sv_arg *a = add(r, 0, SV_ARG_TEXT);
    a->size = (uint32_t)n & 0xffffff;
    a->text = copy;
}

void sv_pf_arg_inline_callstack(struct sv_pf *r, struct sv_pf_blob callstack)
{
    struct sv_pb w = sv_pf_wire(callstack);
    struct sv_pb_field f, g;
    size_t open = sv_batch_open(r->b, 0, SV_ARG_STACK);
    while (sv_pb_next(&w, &f)) {
        struct sv_pf_blob function = {0}, file = {0};
        uint64_t line = 0;
        struct sv_pb frame = sv_pb_sub(&f);
        if (sv_pf_tag(&f) != SV_PF_B(SV_PF_INLINE_FRAMES))
            continue;
        while (sv_pb_next(&frame, &g)) {
            switch (sv_pf_tag(&g)) {
            case SV_PF_B(SV_PF_INLINE_FUNCTION): function = sv_pf_bytes(&g); break;
            case SV_PF_B(SV_PF_INLINE_FILE): file = sv_pf_bytes(&g); break;
            case SV_PF_V(SV_PF_INLINE_LINE): line = g.u; break;
            default: break;
            }
        }
        frame_text(r, function, file, line);
    }
    sv_batch_close(r->b, open);
}

/* The file name of a mapping: its path is a list of parts. */
static struct sv_pf_blob mapping_name(struct sv_pf *r, uint64_t iid)
{
    struct sv_pf_blob name = {0};
    struct sv_pb w = sv_pf_wire(sv_pf_blob_at(r, SV_PF_T_MAPPING, iid));
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_MAPPING_PATH_IIDS))
            name = sv_pf_blob_at(r, SV_PF_T_MAPPING_PATH, f.u);
    return name;
}

static void interned_frame(struct sv_pf *r, uint64_t iid)
{
    struct sv_pb w = sv_pf_wire(sv_pf_blob_at(r, SV_PF_T_FRAME, iid));
    struct sv_pf_blob function = {0}, file = {0};
    uint64_t line = 0, mapping = 0, pc = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.type != SV_PB_VARINT)
            continue;
        switch (f.id) {
        case SV_PF_FRAME_FUNCTION_IID:
            function = f.u ? sv_pf_blob_at(r, SV_PF_T_FUNCTION, f.u) : function;
            break;
        case SV_PF_FRAME_SOURCE_IID: file = sv_pf_blob_at(r, SV_PF_T_SOURCE_PATH, f.u); break;
        case SV_PF_FRAME_LINE: line = f.u; break;
        case SV_PF_FRAME_MAPPING_IID: mapping = f.u; break;
        case SV_PF_FRAME_REL_PC: pc = f.u; break;
        default: break;
        }
    }
    char text[24];
    if (function.len == 0) { /* not symbolised: the address in its file */
        int n = snprintf(text, sizeof text, "0x%llx", (unsigned long long)pc);
        const char *copy = sv_batch_text(r->b, text, (size_t)n);
        function = (struct sv_pf_blob){(const uint8_t *)copy, (size_t)n};
        if (file.len == 0 && mapping)
            file = mapping_name(r, mapping);
    }
    frame_text(r, function, file, line);
}

void sv_pf_arg_callstack(struct sv_pf *r, struct sv_pf_blob callstack)
{
    struct sv_pb w = sv_pf_wire(callstack);
    if (!callstack.bytes)
        return;
    size_t open = sv_batch_open(r->b, 0, SV_ARG_STACK);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct sv_pb packed = sv_pb_sub(&f);
        uint64_t iid = f.u;
        if (f.id != SV_PF_INTERNED_TEXT) /* frame_ids has the number of a text */
            continue;
        do {
            if (f.type == SV_PB_BYTES && !sv_pb_varint(&packed, &iid))
                break;
            interned_frame(r, iid);
        } while (packed.p < packed.end);
    }
    sv_batch_close(r->b, open);
}
