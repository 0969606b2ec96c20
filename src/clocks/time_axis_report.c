/* What a merge says about its axis: see time_axis.h. Called once the inputs have their places.
 *
 * The error between two hosts is a sum of two: each host's own against the common clock. So the
 * axis as a whole is as good as its two worst hosts. */
#include "clocks/time_axis.h"

#include "core/base/json.h"
#include "core/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 8 };

struct host {
    const char *name; /* or the file's, where no host is known; NULL: no input */
    int64_t within_ns, between_ns;
    enum sv_time_axis_by by;
};

struct summary {
    struct host *hosts; /* by machine */
    size_t n, n_unknown, n_estimates, n_by_hand;
    bool has_wall, has_pings;
    int64_t within_ns, between_ns; /* -1: unknown */
};

/* -1 is more than anything. */
static int64_t worse(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

static void gather(const struct sv_time_axis *a, struct summary *s)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->inputs[i].is.machine >= s->n)
            s->n = (size_t)a->inputs[i].is.machine + 1;
    s->hosts = sv_alloc((s->n + 1) * sizeof *s->hosts);
    for (size_t i = 0; i < a->n; i++) {
        const struct sv_time_axis_input *in = &a->inputs[i];
        const struct sv_time_axis_place *p = &a->places[i];
        struct host *h = &s->hosts[in->is.machine];
        if (!h->name) {
            h->name = in->host ? in->host : in->is.name;
            h->by = p->by;
        }
        h->within_ns = worse(h->within_ns, p->within_ns);
        h->between_ns = worse(h->between_ns, p->between_ns);
        h->by = p->by > h->by ? p->by : h->by;
    }
}

static void sum_up(const struct sv_time_axis *a, struct summary *s)
{
    int64_t first = 0, second = 0; /* the two greatest */
    *s = (struct summary){0};
    gather(a, s);
    for (size_t k = 0; k < s->n; k++) {
        const struct host *h = &s->hosts[k];
        s->within_ns = worse(s->within_ns, h->within_ns);
        s->n_estimates += h->by == SV_BY_COLLECTIVES;
        s->n_by_hand += h->by == SV_BY_HAND || h->by == SV_BY_ASSUMPTION;
        s->n_unknown += h->by < SV_BY_COLLECTIVES && h->between_ns < 0;
        s->has_wall |= h->by == SV_BY_WALL;
        s->has_pings |= h->by == SV_BY_PINGS;
        second = worse(second, first < 0 ? first : h->between_ns < first ? h->between_ns : first);
        first = worse(first, h->between_ns);
    }
    s->between_ns = sum_of(first, second);
    if (s->n_estimates || s->n_by_hand || s->n_unknown)
        s->between_ns = -1;
}

/* ---- for people ---- */

static void report_input(const struct sv_time_axis *a, size_t i, bool has_hosts,
                         struct sv_report *report)
{
    const struct sv_time_axis_input *in = &a->inputs[i];
    const struct sv_shift *s = &a->shifts[i];
    const char *from = sv_clock_name(in->is.clocks->trace_clock), *to = sv_clock_name(a->clock);
    const char *where = has_hosts ? " within its host" : "";
    if (a->places[i].by == SV_BY_COLLECTIVES)
        return; /* its host is named */
    if (a->places[i].by == SV_BY_PINGS && a->places[i].between_ns >= 0)
        sv_report_add(report, SV_NOTE, "input related to another host by pings", 1, SV_NO_POS,
                      "%s: %s, uncertain by %" PRId64 " ns", in->is.name, from,
                      a->places[i].between_ns);
    else if (s->is_assumed)
        sv_report_add(report, SV_NOTE, "input whose clock is assumed to be the common one", 1,
                      SV_NO_POS, "%s: %s", in->is.name, from);
    else if (s->n && s->uncertainty_ns < 0)
        sv_report_add(report, SV_NOTE, "input converted to the common clock", 1, SV_NO_POS,
                      "%s: %s to %s, uncertainty%s unknown", in->is.name, from, to, where);
    else if (s->n)
        sv_report_add(report, SV_NOTE, "input converted to the common clock", 1, SV_NO_POS,
                      "%s: %s to %s, uncertain by %" PRId64 " ns%s", in->is.name, from, to,
                      s->uncertainty_ns, where);
}

static void report_unknown(const struct summary *s, struct sv_report *report)
{
    for (size_t k = 0; k < s->n; k++) {
        const struct host *h = &s->hosts[k];
        if (h->by == SV_BY_COLLECTIVES)
            sv_report_add(report, SV_NOTE, "host placed by an estimate from its collectives", 1,
                          SV_NO_POS, "%s: no bound is known", h->name);
        else if (h->by < SV_BY_COLLECTIVES && h->between_ns < 0)
            sv_report_add(report, SV_NOTE, "host whose relation to the other hosts is unknown", 1,
                          SV_NO_POS,
                          "%s: by its wall clock, which nothing is known to synchronise; 'stave "
                          "record --sync' and 'stave sync' relate hosts",
                          h->name);
    }
}

void sv_time_axis_report(const struct sv_time_axis *a, struct sv_report *report)
{
    struct summary s;
    sum_up(a, &s);
    for (size_t i = 0; a->n > 1 && i < a->n; i++)
        report_input(a, i, s.n > 1, report);
    if (s.n > 1)
        report_unknown(&s, report);
    if (s.n > 1 && s.between_ns >= 0) {
        const char *by = s.has_wall && s.has_pings ? "by pings and synchronised wall clocks"
                         : s.has_wall              ? "by synchronised wall clocks"
                                                   : "by pings";
        if (s.within_ns >= 0)
            sv_report_add(report, SV_NOTE, "hosts on one axis", 1, SV_NO_POS,
                          "%zu of them %s: at most %" PRId64 " ns apart between two, and %" PRId64
                          " ns within each",
                          s.n, by, s.between_ns, s.within_ns);
        else
            sv_report_add(report, SV_NOTE, "hosts on one axis", 1, SV_NO_POS,
                          "%zu of them %s: at most %" PRId64 " ns apart between two; within each "
                          "unknown",
                          s.n, by, s.between_ns);
    }
    free(s.hosts);
}

/* ---- for programs ---- */

static void put_ns(struct sv_json *j, const char *key, int64_t ns)
{
    sv_json_key(j, key, strlen(key));
    if (ns < 0)
        sv_json_null(j);
    else
        sv_json_i64(j, ns);
}

static void put_names(struct sv_json *j, const struct summary *s)
{
    static const char *const words[] = {
        [SV_BY_HOST] = "its own clock", [SV_BY_WALL] = "wall clock",
        [SV_BY_PINGS] = "pings",        [SV_BY_COLLECTIVES] = "collectives",
        [SV_BY_HAND] = "offset",        [SV_BY_ASSUMPTION] = "assumption"};
    sv_json_put(j, "first_hosts", begin, '[');
    for (size_t k = 0; k < s->n && k < NAMES_MAX; k++) {
        const struct host *h = &s->hosts[k];
        sv_json_begin(j, '{');
        sv_json_put(j, "host", cstr, h->name);
        sv_json_put(j, "by", cstr, words[h->by]);
        put_ns(j, "bound_ns", h->between_ns);
        sv_json_end(j);
    }
    sv_json_end(j);
}

void sv_time_axis_describe(const struct sv_time_axis *a, struct sv_dict *dict)
{
    struct summary s;
    struct sv_buf b;
    struct sv_json j;
    sum_up(a, &s);
    if (s.n > 1) {
        const char *clock = sv_clock_name(a->clock);
        sv_buf_init(&b, 4096);
        sv_json_init(&j, &b);
        sv_json_begin(&j, '{');
        sv_json_put(&j, "clock", cstr, clock);
        put_ns(&j, "within_host_ns", s.within_ns);
        put_ns(&j, "between_hosts_ns", s.between_ns);
        sv_json_put(&j, "is_estimate", bool, s.n_estimates > 0);
        put_ns(&j, "hosts", (int64_t)s.n);
        put_ns(&j, "hosts_unknown", (int64_t)s.n_unknown);
        put_ns(&j, "hosts_estimated", (int64_t)s.n_estimates);
        put_ns(&j, "hosts_by_hand", (int64_t)s.n_by_hand);
        put_names(&j, &s);
        sv_json_end(&j);
        sv_dict_set_meta(dict, SV_META_AXIS, (const char *)b.data, b.len, true);
        sv_buf_fini(&b);
    }
    free(s.hosts);
}
