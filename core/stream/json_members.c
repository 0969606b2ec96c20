/* Members of small JSON values. Called by the readers of iostat and MLLOG, which bound what they
 * hand over. */
#include "core/stream/json_members.h"

#include "core/base/json_scan.h"

#include <string.h>

static void solid(struct sv_members *m)
{
    while (m->p < m->end && sv_json_is_blank(*m->p))
        m->p++;
}

static bool bad(struct sv_members *m)
{
    m->is_bad = true;
    m->p = m->end;
    return false;
}

struct sv_members sv_members_of(const char *p, size_t len)
{
    struct sv_members m = {.p = (const uint8_t *)p, .end = (const uint8_t *)p + len};
    solid(&m);
    if (m.p == m.end || (*m.p != '{' && *m.p != '['))
        bad(&m);
    else
        m.is_object = *m.p++ == '{';
    return m;
}

/* The text at p, which is a quote; what is between the quotes. */
static bool take_text(struct sv_members *m, struct sv_text *out)
{
    const uint8_t *start = ++m->p;
    for (; m->p < m->end && *m->p != '"'; m->p++)
        m->p += *m->p == '\\';
    if (m->p >= m->end)
        return bad(m);
    *out = (struct sv_text){(const char *)start, (uint32_t)(m->p - start)};
    m->p++;
    return true;
}

bool sv_member_next(struct sv_members *m, struct sv_member *out)
{
    *out = (struct sv_member){0};
    solid(m);
    if (m->p < m->end && *m->p == ',') {
        m->p++;
        solid(m);
    }
    if (m->p >= m->end)
        return bad(m);
    if (*m->p == '}' || *m->p == ']')
        return false;
    if (m->is_object) {
        if (*m->p != '"' || !take_text(m, &out->key))
            return bad(m);
        solid(m);
        if (m->p >= m->end || *m->p++ != ':')
            return bad(m);
        solid(m);
    }
    if (m->p >= m->end)
        return bad(m);
    out->type = (char)(*m->p >= '0' && *m->p <= '9' ? '0' : *m->p == '-' ? '0' : *m->p);
    if (out->type == '"')
        return take_text(m, &out->value);
    struct sv_json_skip skip = {0};
    const uint8_t *after = sv_json_skip(&skip, sv_json_scan_best(), m->p, m->end);
    if (!after || after == m->p)
        return bad(m);
    out->value = (struct sv_text){(const char *)m->p, (uint32_t)(after - m->p)};
    m->p = after;
    return true;
}

bool sv_member_is(const struct sv_member *m, const char *key)
{
    return strlen(key) == m->key.len && memcmp(m->key.bytes, key, m->key.len) == 0;
}

static bool parse(const struct sv_member *m, struct sv_json_number *n)
{
    const uint8_t *p = (const uint8_t *)m->value.bytes;
    return m->type == '0' && sv_json_number(p, p + m->value.len, n) == p + m->value.len;
}

bool sv_member_i64(const struct sv_member *m, int64_t *out)
{
    struct sv_json_number n;
    return parse(m, &n) && sv_json_number_int(&n, 0, out) == SV_JSON_EXACT;
}

bool sv_member_is_wide(const struct sv_member *m)
{
    struct sv_json_number n;
    return parse(m, &n) && sv_json_number_int(&n, 0, &(int64_t){0}) == SV_JSON_OVERFLOW;
}

bool sv_member_double(const struct sv_member *m, double *out)
{
    struct sv_json_number n;
    if (!parse(m, &n))
        return false;
    *out = sv_json_number_double(&n, (const uint8_t *)m->value.bytes, m->value.len);
    return true; /* 1e999 is infinite: sv_put_counter() refuses it */
}

struct sv_text sv_member_text(const struct sv_member *m, struct sv_batch *b)
{
    char *copy = sv_arena_copy(&b->arena, m->value.bytes, m->value.len);
    unsigned oddities = 0;
    size_t len = m->value.len;
    if (m->type == '"')
        len = sv_json_unescape((const uint8_t *)m->value.bytes, len, copy, &oddities);
    return (struct sv_text){copy, (uint32_t)len};
}
