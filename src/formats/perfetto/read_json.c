/* Annotations that are JSON texts: parsed to nested arguments.
 *
 * Chrome writes dictionaries this way (legacy_json_value). Called by formats/perfetto/read_args.c
 * with the whole text at hand; a text that is not well-formed JSON is kept as the text it is, and
 * reported. Recursive with a limit. The text lies in the input window or among unpacked packets,
 * both padded as core/base/json_scan.h wants it. */
#include "formats/perfetto/read.h"

#include "core/base/json_scan.h"

struct parser {
    struct sv_pf *r;
    const uint8_t *p, *end;
};

static bool value(struct parser *x, sv_str key, unsigned depth);

static void skip_blanks(struct parser *x)
{
    while (x->p < x->end && sv_json_is_blank(*x->p))
        x->p++;
}

/* Takes the byte if it is the next one after blanks. */
static bool take(struct parser *x, uint8_t byte)
{
    skip_blanks(x);
    if (x->p == x->end || *x->p != byte)
        return false;
    x->p++;
    return true;
}

/* The bytes between the quotes; p points after the first one. */
static bool string_span(struct parser *x, struct sv_pf_blob *out, bool *has_escapes)
{
    const uint8_t *start = x->p;
    *has_escapes = false;
    while (x->p < x->end && *x->p != '"') {
        bool is_escape = *x->p == '\\';
        *has_escapes = *has_escapes || is_escape;
        x->p += is_escape && x->p + 1 < x->end ? 2 : 1;
    }
    if (x->p >= x->end)
        return false;
    *out = (struct sv_pf_blob){start, (size_t)(x->p - start)};
    x->p++;
    return true;
}

/* The text without escapes; resolved texts live in the batch. */
static bool string(struct parser *x, struct sv_pf_blob *out)
{
    bool has_escapes;
    if (!string_span(x, out, &has_escapes))
        return false;
    if (!has_escapes)
        return true;
    unsigned oddities = 0;
    char *copy = sv_arena_get(&x->r->b->arena, out->len + 1, 1);
    out->len = sv_json_unescape(out->bytes, out->len, copy, &oddities);
    out->bytes = (const uint8_t *)copy;
    return true;
}

static bool dict(struct parser *x, sv_str key, unsigned depth)
{
    size_t open = sv_batch_open(x->r->b, key, SV_ARG_DICT);
    struct sv_pf_blob name;
    bool is_first = true;
    while (!take(x, '}')) {
        if ((!is_first && !take(x, ',')) || !take(x, '"') || !string(x, &name) || !take(x, ':'))
            return false;
        is_first = false;
        if (!value(x, sv_dict_str(x->r->dict, (const char *)name.bytes, name.len), depth + 1))
            return false;
    }
    sv_batch_close(x->r->b, open);
    return true;
}

static bool array(struct parser *x, sv_str key, unsigned depth)
{
    size_t open = sv_batch_open(x->r->b, key, SV_ARG_ARRAY);
    bool is_first = true;
    while (!take(x, ']')) {
        if ((!is_first && !take(x, ',')) || !value(x, 0, depth + 1))
            return false;
        is_first = false;
    }
    sv_batch_close(x->r->b, open);
    return true;
}

static bool number(struct parser *x, sv_str key)
{
    struct sv_json_number parsed;
    const uint8_t *text = x->p, *after = sv_json_number(text, x->end, &parsed);
    if (!after || after == text)
        return false;
    x->p = after;
    int64_t i;
    if (parsed.is_integer && parsed.exp10 == 0 && !parsed.is_negative && parsed.digits > INT64_MAX)
        sv_pf_arg_uint(x->r, key, parsed.digits);
    else if (parsed.is_integer && sv_json_number_int(&parsed, 0, &i) == SV_JSON_EXACT)
        sv_pf_arg_int(x->r, key, i);
    else
        sv_pf_arg_double(x->r, key, sv_json_number_double(&parsed, text, (size_t)(after - text)));
    return true;
}

static bool word(struct parser *x, sv_str key)
{
    static const struct {
        const char *text;
        uint8_t len, type, value;
    } words[] = {
        {"true", 4, SV_ARG_BOOL, 1}, {"false", 5, SV_ARG_BOOL, 0}, {"null", 4, SV_ARG_NULL, 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((size_t)(x->end - x->p) < words[i].len ||
            memcmp(x->p, words[i].text, words[i].len) != 0)
            continue;
        x->p += words[i].len;
        struct sv_arg *a = sv_batch_arg(x->r->b);
        a->key = key;
        a->type = words[i].type;
        a->i = words[i].value;
        return true;
    }
    return false;
}

static bool value(struct parser *x, sv_str key, unsigned depth)
{
    struct sv_pf_blob text;
    skip_blanks(x);
    if (x->p == x->end || depth > SV_PF_DEPTH_MAX)
        return false;
    switch (*x->p) {
    case '{': x->p++; return dict(x, key, depth);
    case '[': x->p++; return array(x, key, depth);
    case '"':
        x->p++;
        if (!string(x, &text))
            return false;
        sv_pf_arg_text(x->r, key, text.bytes, text.len);
        return true;
    case 't':
    case 'f':
    case 'n': return word(x, key);
    default: return number(x, key);
    }
}

void sv_pf_arg_json(struct sv_pf *r, sv_str key, const char *json, size_t len)
{
    struct parser x = {r, (const uint8_t *)json, (const uint8_t *)json + len};
    size_t start = (size_t)(r->b->arg - r->b->args);
    bool is_whole = value(&x, key, 0);
    skip_blanks(&x);
    if (is_whole && x.p == x.end)
        return;
    sv_pf_damage(r, "annotation with invalid JSON", "kept as text; wrong at its byte %zu",
                 (size_t)(x.p - (const uint8_t *)json));
    sv_pf_rollback(r, start);
    sv_pf_arg_text(r, key, (const uint8_t *)json, len);
}
