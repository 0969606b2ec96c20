/* Relations as JSON: see relation.h. Written by record and sync, read by merge. */
#include "clocks/relation.h"

#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "core/files/process_id.h"
#include "core/stream/json_members.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION 1

/* ---- owners ---- */

void sv_clock_owner_self(struct sv_clock_owner *o)
{
    uint8_t id[SV_BOOT_ID_BYTES];
    *o = (struct sv_clock_owner){0};
    if (gethostname(o->host, sizeof o->host - 1) < 0)
        o->host[0] = '\0';
    if (sv_boot_id(id))
        sv_boot_text(id, o->boot);
    sv_times_text(o->times);
}

/* A host name alone is no identity. */
bool sv_clock_owner_equal(const struct sv_clock_owner *a, const struct sv_clock_owner *b)
{
    return a->boot[0] && strcmp(a->boot, b->boot) == 0 && strcmp(a->times, b->times) == 0;
}

/* ---- rounds ---- */

void sv_relation_add(struct sv_relation *r, const struct sv_sync_round *round)
{
    if (r->n == SV_RELATION_ROUNDS_MAX) {
        for (size_t i = 0; i < r->n / 2; i++) /* the first and the last stay */
            r->rounds[i] = r->rounds[2 * i + (i > 0)];
        r->n /= 2;
    }
    r->rounds = sv_grow(r->rounds, &r->cap, r->n + 1, sizeof *r->rounds);
    size_t at = r->n++; /* mostly it is the newest */
    while (at > 0 && r->rounds[at - 1].at_ns > round->at_ns)
        at--;
    memmove(&r->rounds[at + 1], &r->rounds[at], (r->n - 1 - at) * sizeof *r->rounds);
    r->rounds[at] = *round;
}

void sv_relation_fini(struct sv_relation *r)
{
    free(r->rounds);
    *r = (struct sv_relation){0};
}

/* ---- writing ---- */

static void put_text(struct sv_json *j, const char *key, const char *value)
{
    sv_json_key(j, key, strlen(key));
    sv_json_cstr(j, value);
}

static void put_number(struct sv_json *j, const char *key, int64_t value)
{
    sv_json_key(j, key, strlen(key));
    sv_json_i64(j, value);
}

static void put_owner(struct sv_json *j, const char *key, const struct sv_clock_owner *o)
{
    sv_json_key(j, key, strlen(key));
    sv_json_begin(j, '{');
    put_text(j, "host", o->host);
    put_text(j, "boot_id", o->boot);
    put_text(j, "time_offsets", o->times);
    sv_json_end(j);
}

/* For people: in the middle of the time, and the greatest bound of it. */
static void put_summary(struct sv_json *j, const struct sv_relation *r)
{
    struct sv_sync s;
    struct sv_sync_round *copy = sv_alloc((r->n + 1) * sizeof *copy);
    if (r->n > 0)
        memcpy(copy, r->rounds, r->n * sizeof *copy);
    sv_sync_fit(&s, copy, r->n);
    free(copy);
    if (s.n > 0) {
        int64_t first = s.points[0].at_ns, last = s.points[s.n - 1].at_ns;
        put_number(j, "offset_ns", sv_sync_at(&s, first + (last - first) / 2).offset_ns);
        sv_json_put(j, "drift_ppm", double, s.drift * 1e6);
        put_number(j, "bound_ns", sv_sync_bound(&s, first, last));
    }
    sv_sync_fini(&s);
}

void sv_relation_put(const struct sv_relation *r, struct sv_buf *json)
{
    struct sv_json j;
    sv_json_init(&j, json);
    sv_json_begin(&j, '{');
    put_number(&j, "stave_relation", VERSION);
    put_text(&j, "how", r->is_estimate ? SV_RELATION_COLLECTIVES : SV_RELATION_PINGS);
    put_owner(&j, "local", &r->local);
    put_owner(&j, "reference", &r->reference);
    put_summary(&j, r);
    sv_json_put(&j, "rounds", begin, '[');
    for (size_t i = 0; i < r->n; i++) {
        sv_json_begin(&j, '[');
        sv_json_i64(&j, r->rounds[i].at_ns);
        sv_json_i64(&j, r->rounds[i].low_ns);
        sv_json_i64(&j, r->rounds[i].high_ns);
        sv_json_end(&j);
    }
    sv_json_end(&j);
    sv_json_end(&j);
}

/* ---- reading ---- */

static int refuse(struct sv_err *err, const char *why)
{
    return sv_error(err, SV_EFORMAT, "not a relation of 'stave sync' or 'stave record --sync': %s",
                    why);
}

/* A text that does not fit is no name, nor is one that is not UTF-8: it would come back longer than
 * it was. A byte may be written as six. */
static bool take_text(const struct sv_member *m, char *to, size_t size)
{
    unsigned oddities = 0;
    char text[6 * sizeof(struct sv_clock_owner)];
    if (m->type != '"' || m->value.len >= sizeof text)
        return false;
    size_t n = sv_json_unescape((const uint8_t *)m->value.bytes, m->value.len, text, &oddities);
    if (n >= size || memchr(text, 0, n) || sv_utf8_valid(text, n) != n)
        return false;
    memcpy(to, text, n);
    to[n] = '\0';
    return true;
}

/* As the kernel writes it; merge has names of its own for clocks that it knows nothing about. */
static bool is_boot_id(const char *text)
{
    return text[strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")] ==
           0;
}

static bool take_owner(const struct sv_member *object, struct sv_clock_owner *o)
{
    struct sv_members in = sv_members_of(object->value.bytes, object->value.len);
    struct sv_member m;
    bool ok = object->type == '{';
    while (ok && sv_member_next(&in, &m)) {
        if (sv_member_is(&m, "host"))
            ok = take_text(&m, o->host, sizeof o->host);
        else if (sv_member_is(&m, "boot_id"))
            ok = take_text(&m, o->boot, sizeof o->boot) && is_boot_id(o->boot);
        else if (sv_member_is(&m, "time_offsets"))
            ok = take_text(&m, o->times, sizeof o->times);
    }
    return ok && !in.is_bad;
}

static bool take_round(const struct sv_member *array, struct sv_sync_round *round)
{
    struct sv_members in = sv_members_of(array->value.bytes, array->value.len);
    struct sv_member m;
    int64_t *to[] = {&round->at_ns, &round->low_ns, &round->high_ns};
    size_t n = 0;
    if (array->type != '[')
        return false;
    while (n < 3 && sv_member_next(&in, &m) && sv_member_i64(&m, to[n]))
        n++;
    return n == 3 && !in.is_bad;
}

static bool take_rounds(const struct sv_member *array, struct sv_relation *r)
{
    struct sv_members in = sv_members_of(array->value.bytes, array->value.len);
    struct sv_sync_round round;
    if (array->type != '[')
        return false;
    for (struct sv_member m; sv_member_next(&in, &m);) {
        if (!take_round(&m, &round))
            return false;
        sv_relation_add(r, &round);
    }
    return !in.is_bad;
}

static const char *take_members(struct sv_relation *r, const char *json, size_t len)
{
    struct sv_members in = sv_members_of(json, len);
    int64_t version = 0;
    char how[32] = "";
    for (struct sv_member m; sv_member_next(&in, &m);) {
        if (sv_member_is(&m, "stave_relation") && !sv_member_i64(&m, &version))
            return "its version is no number";
        if (sv_member_is(&m, "how") && !take_text(&m, how, sizeof how))
            return "'how' is no short text";
        if ((sv_member_is(&m, "local") && !take_owner(&m, &r->local)) ||
            (sv_member_is(&m, "reference") && !take_owner(&m, &r->reference)))
            return "'local' or 'reference' has no host and boot_id";
        if (sv_member_is(&m, "rounds") && !take_rounds(&m, r))
            return "'rounds' is no list of [time, low, high]";
    }
    if (in.is_bad || !in.is_object)
        return "it is no JSON object";
    if (version != VERSION)
        return version == 0 ? "it has no 'stave_relation'" : "it is of a newer version";
    r->is_estimate = strcmp(how, SV_RELATION_PINGS) != 0;
    if (!r->local.boot[0] || !r->reference.boot[0])
        return "'local' or 'reference' has no boot_id";
    return r->n == 0 ? "it has no rounds" : NULL;
}

int sv_relation_parse(struct sv_relation *r, const char *json, size_t len, struct sv_err *err)
{
    *r = (struct sv_relation){0};
    char *copy = sv_alloc(len + SV_JSON_PAD); /* the parser may look beyond its end */
    memcpy(copy, json, len);
    const char *why = take_members(r, copy, len);
    free(copy);
    if (!why)
        return 0;
    sv_relation_fini(r);
    return refuse(err, why);
}
