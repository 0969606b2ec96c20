/* See keep_rule.h. Called by the tracer's thread for each request that was answered, and at the
 * start or when a server's settings are changed for a rule as text. */
#include "serving/keep_rule.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- a rule as text ---- */

static const char *skip_spaces(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return s;
}

/* The text after the word, NULL: it begins with something else. */
static const char *after(const char *s, const char *word)
{
    size_t n = strlen(word);
    return strncmp(s, word, n) == 0 ? skip_spaces(s + n) : NULL;
}

static const char *duration(const char *s, int64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double v = isdigit((unsigned char)*s) ? strtod(s, &end) : -1;
    if (v < 0)
        return NULL;
    s = skip_spaces(end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *rest = after(s, units[i].name);
        if (!rest || v * units[i].ns < 1 || v * units[i].ns > 1e18)
            continue;
        *ns = (int64_t)(v * units[i].ns);
        return rest;
    }
    return NULL;
}

static const char *percentile(const char *s, uint32_t *percent)
{
    char *end;
    double v = isdigit((unsigned char)*s) ? strtod(s, &end) : 0;
    if (v < 1 || v > 99.999)
        return NULL;
    *percent = (uint32_t)(v * 1000 + 0.5);
    return skip_spaces(end);
}

static const char *condition(const char *s, struct sv_keep_rule *r)
{
    const char *rest = after(s, "failed");
    if (rest)
        return rest;
    rest = after(s, "slow");
    if (rest)
        return *rest == '>' ? duration(skip_spaces(rest + 1), &r->slow_ns) : NULL;
    return *s == 'p' ? percentile(s + 1, &r->percent) : NULL;
}

bool sv_keep_parse(const char *text, struct sv_keep_rule *out)
{
    struct sv_keep_rule r = {.is_on = true};
    const char *s = skip_spaces(text), *rest = after(s, "all");
    if (rest && !*rest) {
        *out = (struct sv_keep_rule){0};
        return true;
    }
    for (;;) {
        s = condition(s, &r);
        if (!s || (*s && *s != ','))
            return false;
        if (!*s)
            break;
        s = skip_spaces(s + 1);
    }
    *out = r;
    return true;
}

/* ---- latencies ---- */

enum { STEPS_LOG2 = 5, STEPS = 1 << STEPS_LOG2, NEW_BIN_AFTER = 64, ENOUGH = 100 };
#define WINDOW_NS INT64_C(30000000000)

/* 32 bins to a power of two; below that one for each nanosecond. */
static uint32_t bin_of(int64_t ns)
{
    uint64_t v = ns > 0 ? (uint64_t)ns : 0;
    if (v < STEPS)
        return (uint32_t)v;
    uint32_t e = 63 - (uint32_t)__builtin_clzll(v);
    return (e - STEPS_LOG2 + 1) * STEPS + (uint32_t)((v >> (e - STEPS_LOG2)) & (STEPS - 1));
}

static void find_bin(struct sv_latencies *l, uint32_t percent)
{
    uint64_t all = l->n[0] + l->n[1], below = all * percent / 100000, seen = 0, n = 0;
    l->percent = percent;
    l->until_next = NEW_BIN_AFTER;
    l->is_known = all >= ENOUGH;
    for (l->bin = 0; l->is_known && l->bin < SV_LATENCY_BINS; l->bin++) {
        n = (uint64_t)l->bins[0][l->bin] + l->bins[1][l->bin];
        seen += n;
        if (seen > below)
            break;
    }
    l->part = n ? (double)(seen - below) / (double)n : 0;
}

static bool is_past(struct sv_latencies *l, int64_t latency_ns)
{
    uint32_t bin = bin_of(latency_ns);
    if (!l->is_known || bin != l->bin)
        return !l->is_known || bin > l->bin;
    l->owed += l->part;
    if (l->owed < 1)
        return false;
    l->owed -= 1;
    return true;
}

static void count(struct sv_latencies *l, int64_t latency_ns, int64_t time_ns)
{
    if (l->since_ns == 0)
        l->since_ns = time_ns;
    if (time_ns - l->since_ns >= WINDOW_NS) {
        bool is_next = time_ns - l->since_ns < 2 * WINDOW_NS; /* else the one before is empty */
        memcpy(l->bins[1], l->bins[0], sizeof *l->bins);
        memset(l->bins[is_next ? 0 : 1], 0, sizeof *l->bins);
        memset(l->bins[0], 0, sizeof *l->bins);
        l->n[1] = is_next ? l->n[0] : 0;
        l->n[0] = 0;
        l->since_ns = time_ns;
    }
    l->bins[0][bin_of(latency_ns)]++;
    l->n[0]++;
}

bool sv_keep_is_slow(const struct sv_keep_rule *rule, struct sv_latencies *l, int64_t latency_ns,
                     int64_t time_ns)
{
    bool is_slow = rule->slow_ns && latency_ns > rule->slow_ns;
    if (rule->percent) {
        if (l->percent != rule->percent || l->until_next == 0)
            find_bin(l, rule->percent);
        is_slow |= is_past(l, latency_ns);
        l->until_next--;
        count(l, latency_ns, time_ns);
    }
    return is_slow;
}
