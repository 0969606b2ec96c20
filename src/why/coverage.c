/* See coverage.h. Used by `stave info` and by whoever concludes something from a trace. */
#include "why/coverage.h"

#include "core/stream/gpu_words.h"
#include "why/file_kinds.h"

#include <stdlib.h>
#include <string.h>

#define PART_NAME(member, name, cat) name,
const char *const sv_coverage_names[SV_N_COVERAGE_PARTS] = {SV_COVERAGE_PARTS(PART_NAME)};
#undef PART_NAME

/* ---- what the metadata say ---- */

/* The part that a key is about; -1: none. In merged files a label may be before it: "rank
 * 3/recorded.states". */
static int part_of(struct sv_text key)
{
    static const char prefix[] = SV_COVERAGE_KEY;
    for (unsigned i = 0; i < SV_N_COVERAGE_PARTS; i++) {
        size_t n = strlen(sv_coverage_names[i]), all = n + sizeof prefix - 1;
        const char *at = key.bytes + key.len - all;
        if (key.len >= all && (key.len == all || at[-1] == '/') &&
            memcmp(at, prefix, sizeof prefix - 1) == 0 &&
            memcmp(at + sizeof prefix - 1, sv_coverage_names[i], n) == 0)
            return (int)i;
    }
    return -1;
}

static struct sv_text word(const char **at, const char *end)
{
    const char *from = *at;
    while (*at < end && **at != ' ')
        (*at)++;
    struct sv_text w = {from, (uint32_t)(*at - from)};
    *at += *at < end;
    return w;
}

/* What follows "key="; false: it is another one. */
static bool value_of(struct sv_text word, const char *key, struct sv_text *value)
{
    size_t n = strlen(key);
    if (word.len <= n || memcmp(word.bytes, key, n) != 0 || word.bytes[n] != '=')
        return false;
    *value = (struct sv_text){word.bytes + n + 1, word.len - (uint32_t)n - 1};
    return true;
}

static int64_t number(struct sv_text t)
{
    int64_t n = 0;
    for (size_t i = 0; i < t.len && t.bytes[i] >= '0' && t.bytes[i] <= '9'; i++)
        n = n < INT64_MAX / 10 - 1 ? n * 10 + (t.bytes[i] - '0') : n;
    return n;
}

/* Of several files the widest. */
static bool take_number(struct sv_coverage_limits *l, struct sv_text word)
{
    const struct {
        const char *key;
        int64_t *to;
    } all[] = {{"min_ns", &l->min_ns},
               {"every_ns", &l->every_ns},
               {"off_ns", &l->off_ns},
               {"less_ns", &l->less_ns},
               {"of_ns", &l->of_ns}};
    struct sv_text v;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!value_of(word, all[i].key, &v))
            continue;
        *all[i].to = number(v) > *all[i].to ? number(v) : *all[i].to;
        return true;
    }
    return false;
}

static void take(struct sv_coverage_limits *l, struct sv_text text)
{
    const char *at = text.bytes, *end = text.bytes + text.len;
    struct sv_text v, by = word(&at, end);
    bool has = by.len != strlen(SV_COVERAGE_NO) || memcmp(by.bytes, SV_COVERAGE_NO, by.len) != 0;
    enum sv_coverage_is is = has ? SV_COVERAGE_HAS_ALL : SV_COVERAGE_HAS_NONE;
    l->is = l->is_stated && l->is != is ? SV_COVERAGE_HAS_SOME : is;
    l->is_stated = true;
    if (!has)
        return;
    l->by = by;
    while (at < end) {
        const char *from = at;
        struct sv_text w = word(&at, end);
        if (take_number(l, w))
            continue;
        if (value_of(w, "groups", &v))
            l->only = v;
        else if (value_of((struct sv_text){from, (uint32_t)(end - from)}, "path", &v)) {
            l->path = v;
            return;
        }
    }
}

void sv_coverage_stated(struct sv_coverage *c, const struct sv_dict *d)
{
    *c = (struct sv_coverage){0};
    for (uint32_t i = 0; i < d->n_meta; i++) {
        int part = part_of(sv_dict_text(d, d->meta[i].key));
        if (part >= 0)
            take(&c->parts[part], sv_dict_text(d, d->meta[i].value));
    }
}

bool sv_coverage_is_looked(const struct sv_dict *d)
{
    struct sv_coverage c;
    sv_coverage_stated(&c, d);
    struct sv_text by = c.parts[SV_COVERAGE_STATES].by;
    return by.len == 4 && memcmp(by.bytes, "proc", 4) == 0;
}

/* ---- what the events show ---- */

static unsigned part_of_category(struct sv_text cat)
{
#define PART_CATEGORY(member, name, cat) cat,
    static const char *const categories[] = {SV_COVERAGE_PARTS(PART_CATEGORY)};
#undef PART_CATEGORY
    for (unsigned i = 0; i < SV_N_COVERAGE_PARTS; i++)
        if (cat.len && cat.len == strlen(categories[i]) &&
            memcmp(cat.bytes, categories[i], cat.len) == 0)
            return 1u << i;
    return sv_gpu_class(cat.bytes, cat.len) ? 1u << SV_COVERAGE_GPU : 0;
}

/* Bits of the parts whose events are there. */
static unsigned parts_seen(const struct sv_trace *t)
{
    const struct sv_dict *d = t->dict;
    uint16_t *by_cat = sv_alloc(((size_t)d->n_strings + 1) * sizeof *by_cat);
    uint8_t *calls = sv_call_classes(d);
    unsigned seen = t->counters.n ? 1u << SV_COVERAGE_COUNTERS : 0;
    for (sv_str s = 1; s < d->n_strings; s++)
        by_cat[s] = (uint16_t)part_of_category(sv_dict_text(d, s));
    for (uint64_t row = 0; row < t->slices.n; row++) {
        unsigned is = by_cat[t->slices.cat[row]];
        seen |= is;
        if (is == 1u << SV_COVERAGE_CALLS && calls[t->slices.name[row]] == SV_CALL_SOCKET)
            seen |= 1u << SV_COVERAGE_SOCKETS;
    }
    free(by_cat);
    free(calls);
    return seen;
}

void sv_coverage_of(struct sv_coverage *c, const struct sv_trace *t)
{
    sv_coverage_stated(c, t->dict);
    unsigned seen = parts_seen(t);
    for (unsigned i = 0; i < SV_N_COVERAGE_PARTS; i++) {
        struct sv_coverage_limits *l = &c->parts[i];
        if (!(seen >> i & 1))
            continue;
        /* What one file has not was added by another. */
        l->is = l->is == SV_COVERAGE_UNKNOWN    ? SV_COVERAGE_HAS_ALL
                : l->is == SV_COVERAGE_HAS_NONE ? SV_COVERAGE_HAS_SOME
                                                : l->is;
    }
}
