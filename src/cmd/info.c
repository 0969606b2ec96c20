/* stave info: what is in a trace, from one streaming pass.
 *
 * A sink counts by kind, by track and by category; afterwards the dictionary has processes, clocks
 * and metadata. Loss and damage come first: a reader must not look at figures before knowing that
 * something is missing. */
#include "cli/console.h"
#include "cli/json_fit.h"
#include "cmd/commands.h"
#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "files/recordings.h"
#include "files/sample.h"
#include "store/ranks.h"
#include "why/coverage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct info {
    const char *from;
    bool strict, json, all, exact;
    uint64_t top, sample_above;
    struct sv_range range;
};

#define SAMPLE_ABOVE (256u << 20)

/* Counts of one trace. By kind the edges count as one slice each (the begin). */
struct census {
    struct sv_sink sink;
    struct sv_dict *dict;
    uint64_t slices, instants, counters, flow_points, flows_on_slices, lost, losses, args, events,
        ends;
    int64_t first_ns, last_ns;
    uint64_t *by_track, *by_cat;
    size_t cap_tracks, cap_cats;
    struct sv_sample sample;     /* n is 0: all was read */
    const struct sv_input *head; /* reading stops after its beginning; NULL: it does not */
    bool is_stopped;
    uint64_t all_bytes; /* of several files; 0: of the one that is open */
};

static bool is_estimate(const struct census *c)
{
    return c->sample.n > 0;
}

/* Names and clocks may be in parts that were not read. Recordings by Stave repeat them. */
static bool is_partial(const struct census *c)
{
    return is_estimate(c) && c->sample.kind != SV_SAMPLE_RESYNC;
}

/* Fewer than this are too few to estimate from: the beginning and the end of a file have what the
 * rest has not. */
#define SEEN_MIN 30

/* What a count in the sample means for the file: rounded to three digits, since more would only
 * look exact; from its beginning alone to two. Few are as many as were seen. */
static uint64_t whole(const struct census *c, uint64_t n)
{
    if (!is_estimate(c) || n < SEEN_MIN)
        return n;
    double all = (double)n * (double)c->sample.size / (double)c->sample.bytes, unit = 1;
    double digits = c->sample.kind == SV_SAMPLE_HEAD_ONLY ? 100 : 1000;
    while (all / unit >= digits)
        unit *= 10;
    return (uint64_t)(all / unit + 0.5) * (uint64_t)unit;
}

/* How sure a result of whole() is. */
static const char *about(const struct census *c, uint64_t n)
{
    if (!is_estimate(c))
        return "";
    return n < SEEN_MIN ? "at least " : "about ";
}

/* The counts of a sample become those of the file; those by track and category when they are
 * printed, since they are added up before. */
static void scale_counts(struct census *c)
{
    uint64_t *counts[] = {&c->slices, &c->instants,        &c->counters, &c->flow_points,
                          &c->args,   &c->flows_on_slices, &c->events,   &c->ends};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = whole(c, *counts[i]);
}

static uint64_t *at(uint64_t **counts, size_t *cap, size_t i)
{
    if (i >= *cap) {
        size_t old = *cap;
        *counts = sv_grow(*counts, cap, i + 1, sizeof **counts);
        memset(*counts + old, 0, (*cap - old) * sizeof **counts);
    }
    return &(*counts)[i];
}

static uint64_t count_flows(const struct sv_event *e)
{
    uint64_t n = 0;
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a))
        n += a->type == SV_ARG_FLOW || a->type == SV_ARG_FLOW_BEGIN || a->type == SV_ARG_FLOW_END;
    return n;
}

static void count_kind(struct census *c, const struct sv_event *e)
{
    switch (e->kind) {
    case SV_BEGIN:
    case SV_SLICE: c->slices++; break;
    case SV_END: c->ends++; break;
    case SV_INSTANT: c->instants++; break;
    case SV_COUNTER: c->counters++; break;
    case SV_FLOW: c->flow_points++; break;
    case SV_LOSS:
        c->losses++;
        c->lost += e->n_args ? e->args[0].u : 0;
        break;
    default: break;
    }
}

static int census_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    struct census *c = (struct census *)s;
    for (size_t i = 0; i < n; i++) {
        const struct sv_event *e = &events[i];
        int64_t end = e->ts_ns + (e->dur_ns > 0 ? e->dur_ns : 0);
        if (c->events == 0 || e->ts_ns < c->first_ns)
            c->first_ns = e->ts_ns;
        if (c->events == 0 || end > c->last_ns)
            c->last_ns = end;
        c->events++;
        count_kind(c, e);
        ++*at(&c->by_track, &c->cap_tracks, e->track);
        if (e->kind != SV_END && e->kind != SV_FLOW && e->kind != SV_COUNTER)
            ++*at(&c->by_cat, &c->cap_cats, e->cat);
        c->args += e->n_args;
        if (e->kind != SV_FLOW && e->n_args)
            c->flows_on_slices += count_flows(e);
    }
    c->is_stopped = c->head && c->head->pos >= SV_SAMPLE_HEAD;
    return c->is_stopped ? sv_error(err, SV_EIO, "the beginning was read") : 0;
}

static int census_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)s;
    (void)failed;
    (void)err;
    return 0;
}

struct ranked {
    uint64_t count;
    uint32_t id;
};

static int by_count(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

static struct ranked *rank(const uint64_t *counts, size_t n, size_t *n_out)
{
    struct ranked *rows = sv_alloc((n + 1) * sizeof *rows);
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (counts[i])
            rows[used++] = (struct ranked){counts[i], (uint32_t)i};
    qsort(rows, used, sizeof *rows, by_count);
    *n_out = used;
    return rows;
}

/* Events of a process: its own and those of every track below it. */
static uint64_t *count_processes(const struct census *c)
{
    uint64_t *counts = sv_alloc(((size_t)c->dict->n_tracks + 1) * sizeof *counts);
    for (uint32_t t = 1; t < c->dict->n_tracks && t < c->cap_tracks; t++)
        counts[sv_dict_process_of(c->dict, t)] += c->by_track[t];
    return counts;
}

static uint64_t used_tracks(const struct census *c)
{
    uint64_t n = 0;
    for (uint32_t t = 1; t < c->dict->n_tracks && t < c->cap_tracks; t++)
        n += c->by_track[t] > 0;
    return n;
}

static void print_row(const char *label, const char *value)
{
    sv_print(stdout, "%-13s %s\n", label, value);
}

static void print_name(const struct census *c, sv_str name, const char *if_none)
{
    struct sv_text t = sv_dict_text(c->dict, name);
    if (name)
        sv_print_text(stdout, "", t.bytes, t.len, "");
    else
        sv_print(stdout, "%s", if_none);
}

/* What the kernel said last. */
static void print_wall(const struct sv_snapshot *s)
{
    char error[32];
    if (s->wall_state == SV_WALL_SYNCHRONISED)
        sv_print(stdout, "; wall clock synchronised, at most %s off",
                 sv_human_ns(error, s->wall_error_ns));
    else if (s->wall_state == SV_WALL_FREE)
        sv_print(stdout, "; wall clock not synchronised");
}

static void print_clocks(const struct census *c)
{
    const struct sv_clocks *k = &c->dict->clocks;
    if (k->trace_clock == SV_CLOCK_UNKNOWN && !k->n && is_partial(c))
        return; /* the file may say it elsewhere */
    sv_print(stdout, "%-13s %s", "clock", sv_clock_name(k->trace_clock));
    if (k->trace_clock == SV_CLOCK_UNKNOWN)
        sv_print(stdout, " (timestamps count from an origin that the file does not give)");
    if (k->n) {
        sv_print(stdout, ", %zu snapshot%s of", k->n, k->n == 1 ? "" : "s");
        for (uint32_t i = 0; i < k->snapshots[0].n; i++)
            sv_print(stdout, " %s", sv_clock_name(k->snapshots[0].readings[i].clock));
        print_wall(&k->snapshots[k->n - 1]);
    }
    sv_print(stdout, "\n");
}

static void print_count(const struct census *c, const char *label, uint64_t n)
{
    char text[32];
    sv_print(stdout, "%-13s %s%s\n", label, about(c, n), sv_human_count(text, n));
}

/* In a table whose head says "about". */
static void print_cell(const struct census *c, uint64_t n)
{
    char number[32], text[64];
    sv_human_count(number, whole(c, n));
    snprintf(text, sizeof text, "%s%s", is_estimate(c) && n < SEEN_MIN ? "at least " : "", number);
    sv_print(stdout, "%-13s ", text);
}

static void print_counts(const struct census *c)
{
    const struct {
        const char *label;
        uint64_t n;
    } rows[] = {{"slices", c->slices},
                {"instants", c->instants},
                {"counters", c->counters},
                {"flow points", c->flow_points + c->flows_on_slices},
                {"arguments", c->args}};
    char n[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].n)
            print_count(c, rows[i].label, rows[i].n);
    if (used_tracks(c))
        sv_print(stdout, "%-13s %s%s\n", "tracks", is_estimate(c) ? "at least " : "",
                 sv_human_count(n, used_tracks(c)));
}

static void print_rank(const struct census *c, sv_track process)
{
    int64_t rank = sv_origin_of(c->dict, process).rank;
    if (rank >= 0)
        sv_print(stdout, "rank %" PRId64 " \xc2\xb7 ", rank);
}

static const char *events_head(const struct census *c)
{
    return is_estimate(c) ? "events, about" : "events";
}

static void print_processes(const struct census *c, uint64_t top)
{
    size_t n;
    uint64_t *counts = count_processes(c);
    struct ranked *rows = rank(counts, c->dict->n_tracks, &n);
    sv_print_styled(stdout, SV_BOLD, "\n%-13s process\n", events_head(c));
    for (size_t i = 0; i < n && i < top; i++) {
        const struct sv_track_info *t = &c->dict->tracks[rows[i].id];
        print_cell(c, rows[i].count);
        if (rows[i].id == 0) {
            sv_print(stdout, "(no process)\n");
            continue;
        }
        print_rank(c, rows[i].id);
        print_name(c, t->name, is_partial(c) ? "(name not seen)" : "(unnamed)");
        const char *host = t->space ? sv_origin_of(c->dict, rows[i].id).host : NULL;
        sv_print(stdout, " (pid %" PRId64 "%s%s)\n", t->pid,
                 host       ? " on "
                 : t->space ? ", another machine or container"
                            : "",
                 host ? host : "");
    }
    if (n > top)
        sv_print(stdout, "%-13s … and %zu more\n", "", n - (size_t)top);
    free(rows);
    free(counts);
}

static void print_categories(const struct census *c, uint64_t top)
{
    size_t n;
    struct ranked *rows = rank(c->by_cat, c->cap_cats, &n);
    sv_print_styled(stdout, SV_BOLD, "\n%-13s category\n", events_head(c));
    for (size_t i = 0; i < n && i < top; i++) {
        print_cell(c, rows[i].count);
        print_name(c, rows[i].id, "(none)");
        sv_print(stdout, "\n");
    }
    if (n > top)
        sv_print(stdout, "%-13s … and %zu more\n", "", n - (size_t)top);
    free(rows);
}

static uint64_t size_of(const struct census *c, const struct sv_opened *in)
{
    uint64_t bytes = c->all_bytes ? c->all_bytes : in->in->size_bytes;
    return is_estimate(c) ? c->sample.size : bytes;
}

/* Only recordings by Stave begin with their first event and end with their last. */
static const char *span_word(const struct census *c)
{
    if (!is_estimate(c))
        return "";
    return is_partial(c) ? "at least " : "about ";
}

static void print_sample(const struct census *c)
{
    char bytes[32];
    sv_human_bytes(bytes, c->sample.bytes);
    sv_print(stdout, "%-13s ", "estimated");
    if (c->sample.kind == SV_SAMPLE_HEAD_ONLY)
        sv_print(stdout,
                 "from the first %s, as if the rest were like them; loss and damage after them",
                 bytes);
    else
        sv_print(stdout, "from %s in %zu places; loss and damage elsewhere", bytes, c->sample.n);
    sv_print(stdout, " are not seen: --exact reads all\n");
}

/* What the recording had, by its metadata: "states, waits (1 ms or more), calls …". */
static void print_recorded(const struct census *c)
{
    static const struct {
        const char *label;
        enum sv_coverage_is is;
    } rows[] = {{"recorded", SV_COVERAGE_HAS_ALL},
                {"in part", SV_COVERAGE_HAS_SOME},
                {"not recorded", SV_COVERAGE_HAS_NONE}};
    struct sv_coverage all;
    char ns[32];
    sv_coverage_stated(&all, c->dict);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        unsigned n = 0;
        for (unsigned i = 0; i < SV_N_COVERAGE_PARTS; i++) {
            const struct sv_coverage_limits *l = &all.parts[i];
            if (l->is != rows[k].is)
                continue;
            if (n++ == 0)
                sv_print(stdout, "%-13s %s", rows[k].label, sv_coverage_names[i]);
            else
                sv_print(stdout, ", %s", sv_coverage_names[i]);
            if (l->min_ns)
                sv_print(stdout, " (%s or more)", sv_human_ns(ns, l->min_ns));
            if (l->every_ns)
                sv_print(stdout, " (every %s)", sv_human_ns(ns, l->every_ns));
            if (l->off_ns)
                sv_print(stdout, " (off for %s)", sv_human_ns(ns, l->off_ns));
            if (l->less_ns)
                sv_print(stdout, " (less for %s)", sv_human_ns(ns, l->less_ns));
            if (l->only.len)
                sv_print_text(stdout, " (", l->only.bytes, l->only.len, ")");
            if (l->path.len)
                sv_print_text(stdout, " (below ", l->path.bytes, l->path.len, ")");
        }
        if (n)
            sv_print(stdout, "\n");
    }
}

static void print_text(const struct census *c, const struct sv_opened *in, const struct info *o)
{
    char a[32], b[32];
    uint64_t damage = sv_report_count(&in->report, SV_DAMAGE);
    uint64_t top = o->top ? o->top : 10;
    if (damage)
        sv_print_styled(stdout, SV_YELLOW,
                        "damaged in %s place%s; see the messages on standard error\n",
                        sv_human_count(a, damage), damage == 1 ? "" : "s");
    if (c->losses)
        sv_print_styled(stdout, SV_YELLOW, "lost %s events in %s gaps\n",
                        sv_human_count(a, c->lost), sv_human_count(b, c->losses));
    sv_print(stdout, "%-13s %s\n", "file", in->path);
    sv_print(stdout, "%-13s %s%s%s\n", "format", in->format->name, in->in->compression ? ", " : "",
             in->in->compression ? in->in->compression : "");
    if (size_of(c, in))
        print_row("size", sv_human_bytes(a, size_of(c, in)));
    if (is_estimate(c))
        print_sample(c);
    if (c->events)
        sv_print(stdout, "%-13s %s%s\n", "span", span_word(c),
                 sv_human_ns(a, sv_sat_sub(c->last_ns, c->first_ns)));
    print_clocks(c);
    print_recorded(c);
    print_counts(c);
    if (c->events == 0) {
        sv_print(stdout, "no events\n");
        return;
    }
    print_processes(c, top);
    print_categories(c, top);
}

/* ---- JSON ---- */

static void json_key(struct sv_json *j, const char *key)
{
    sv_json_key(j, key, strlen(key));
}

static void json_cstr(struct sv_json *j, const char *key, const char *value)
{
    json_key(j, key);
    sv_json_text(j, value, strlen(value));
}

static void json_u64(struct sv_json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    sv_json_u64(j, v);
}

static void json_i64(struct sv_json *j, const char *key, int64_t v)
{
    json_key(j, key);
    sv_json_i64(j, v);
}

/* An answer with at most `most` items in each list. */
struct answer {
    const struct census *c;
    const struct sv_opened *in;
    struct sv_json json;
    size_t most;
};

/* Names are the file's, and as long as it likes: in an answer that must be short they are cut. */
static struct sv_text short_text(const struct answer *a, struct sv_text t)
{
    return a->most == SIZE_MAX ? t : sv_json_short(t);
}

static void json_name(struct answer *a, const char *key, sv_str name)
{
    struct sv_text t = short_text(a, sv_dict_text(a->c->dict, name));
    json_key(&a->json, key);
    sv_json_text(&a->json, t.bytes, t.len);
}

static int larger_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Of a list that must be short: the rows with the most events. */
struct chosen {
    uint64_t least;
    size_t n_left;
};

static struct chosen choose(const struct answer *a, const uint64_t *counts, size_t n)
{
    size_t n_some = 0;
    for (size_t i = 0; i < n; i++)
        n_some += counts[i] > 0;
    struct chosen c = {.least = 1, .n_left = a->most};
    if (n_some <= a->most || a->most == 0)
        return c;
    uint64_t *sorted = sv_alloc(n * sizeof *sorted);
    memcpy(sorted, counts, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, larger_first);
    c.least = sorted[a->most - 1];
    free(sorted);
    return c;
}

static bool is_chosen(struct chosen *c, uint64_t count)
{
    if (count < c->least || c->n_left == 0)
        return false;
    c->n_left--;
    return true;
}

static void json_clocks(struct answer *a)
{
    const struct sv_clocks *k = &a->c->dict->clocks;
    struct sv_json *j = &a->json;
    json_cstr(j, "clock", sv_clock_name(k->trace_clock));
    json_key(j, "snapshots");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < k->n && i < a->most; i++) {
        sv_json_begin(j, '{');
        for (uint32_t r = 0; r < k->snapshots[i].n; r++) {
            json_key(j, sv_clock_name(k->snapshots[i].readings[r].clock));
            sv_json_i64(j, k->snapshots[i].readings[r].ns);
        }
        if (k->snapshots[i].wall_state != SV_WALL_UNKNOWN) {
            json_i64(j, "wall_error_ns", k->snapshots[i].wall_error_ns);
            json_key(j, "wall_synchronised");
            sv_json_bool(j, k->snapshots[i].wall_state == SV_WALL_SYNCHRONISED);
        }
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void json_findings(struct answer *a)
{
    static const char *const severities[] = {
        [SV_NOTE] = "note", [SV_SKIPPED] = "skipped", [SV_DAMAGE] = "damage"};
    const struct sv_report *r = &a->in->report;
    struct sv_json *j = &a->json;
    json_key(j, "findings");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < r->n && i < a->most; i++) {
        sv_json_begin(j, '{');
        json_cstr(j, "severity", severities[r->rows[i].severity]);
        json_cstr(j, "what", r->rows[i].what);
        json_u64(j, "count", r->rows[i].count);
        if (r->rows[i].first_pos != SV_NO_POS)
            json_i64(j, "first_byte", r->rows[i].first_pos);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void json_processes(struct answer *a)
{
    const struct sv_dict *d = a->c->dict;
    struct sv_json *j = &a->json;
    uint64_t *counts = count_processes(a->c);
    for (uint32_t t = 0; t < d->n_tracks; t++)
        if (t == 0 || d->tracks[t].kind != SV_TRACK_PROCESS)
            counts[t] = 0;
    struct chosen chosen = choose(a, counts, d->n_tracks);
    json_key(j, "processes");
    sv_json_begin(j, '[');
    for (uint32_t t = 1; t < d->n_tracks; t++) {
        if (!is_chosen(&chosen, counts[t]))
            continue;
        struct sv_origin origin = sv_origin_of(d, t);
        sv_json_begin(j, '{');
        json_i64(j, "pid", d->tracks[t].pid);
        json_name(a, "name", d->tracks[t].name);
        if (origin.rank >= 0)
            json_i64(j, "rank", origin.rank);
        if (origin.host)
            json_cstr(j, "host", origin.host);
        json_u64(j, "events", whole(a->c, counts[t]));
        sv_json_end(j);
    }
    sv_json_end(j);
    free(counts);
}

static void json_tracks(struct answer *a)
{
    const struct census *c = a->c;
    struct sv_json *j = &a->json;
    size_t n = c->dict->n_tracks < c->cap_tracks ? c->dict->n_tracks : c->cap_tracks;
    struct chosen chosen = n > 1 ? choose(a, c->by_track + 1, n - 1) : (struct chosen){1, 0};
    json_key(j, "tracks");
    sv_json_begin(j, '[');
    for (uint32_t t = 1; t < n; t++) {
        const struct sv_track_info *info = &c->dict->tracks[t];
        if (!is_chosen(&chosen, c->by_track[t]))
            continue;
        sv_json_begin(j, '{');
        json_cstr(j, "kind", sv_track_kind_name(info->kind));
        json_name(a, "name", info->name);
        if (info->tid != -1)
            json_i64(j, "tid", info->tid);
        sv_track process = sv_dict_process_of(c->dict, t);
        if (process)
            json_i64(j, "pid", c->dict->tracks[process].pid);
        json_u64(j, "events", whole(c, c->by_track[t]));
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void json_categories(struct answer *a)
{
    const struct census *c = a->c;
    struct sv_json *j = &a->json;
    struct chosen chosen = choose(a, c->by_cat, c->cap_cats);
    json_key(j, "categories");
    sv_json_begin(j, '{');
    for (size_t i = 0; i < c->cap_cats; i++) {
        if (!is_chosen(&chosen, c->by_cat[i]))
            continue;
        struct sv_text t = short_text(a, sv_dict_text(c->dict, (sv_str)i));
        sv_json_key(j, t.bytes, t.len);
        sv_json_u64(j, whole(c, c->by_cat[i]));
    }
    sv_json_end(j);
}

/* A file can say so of anything: looked at once more, with the pad that looking needs. */
static bool is_json(struct sv_text t)
{
    struct sv_buf b;
    sv_buf_init(&b, (size_t)1 << 30);
    sv_buf_add(&b, t.bytes, t.len);
    bool is_valid = sv_buf_reserve(&b, SV_JSON_PAD) && sv_json_valid(b.data, b.len);
    sv_buf_fini(&b);
    return is_valid;
}

static void json_metadata(struct answer *a)
{
    const struct sv_dict *d = a->c->dict;
    struct sv_json *j = &a->json;
    json_key(j, "metadata");
    sv_json_begin(j, '{');
    for (uint32_t i = 0; i < d->n_meta && i < a->most; i++) {
        struct sv_text k = short_text(a, sv_dict_text(d, d->meta[i].key)),
                       v = sv_dict_text(d, d->meta[i].value), cut = short_text(a, v);
        sv_json_key(j, k.bytes, k.len);
        if (d->meta[i].is_json && cut.len == v.len && is_json(v))
            sv_json_raw(j, v.bytes, v.len);
        else
            sv_json_text(j, cut.bytes, cut.len);
    }
    sv_json_end(j);
}

static void json_sample(struct sv_json *j, const struct census *c)
{
    static const char *const kinds[] = {[SV_SAMPLE_RESYNC] = "resync points",
                                        [SV_SAMPLE_EVENTS] = "pieces between events",
                                        [SV_SAMPLE_HEAD_ONLY] = "beginning"};
    json_key(j, "is_estimate");
    sv_json_bool(j, is_estimate(c));
    if (!is_estimate(c))
        return;
    json_u64(j, "sampled_bytes", c->sample.bytes);
    json_cstr(j, "sampled", kinds[c->sample.kind]);
}

static int fill(void *ctx, size_t most, struct sv_buf *to, struct sv_err *err)
{
    struct answer *a = ctx;
    const struct census *c = a->c;
    struct sv_json *j = &a->json;
    (void)err;
    a->most = most;
    sv_json_init(j, to);
    sv_json_begin(j, '{');
    json_u64(j, "version", 1);
    json_cstr(j, "file", a->in->path);
    json_cstr(j, "format", a->in->format->name);
    json_cstr(j, "compression", a->in->in->compression ? a->in->in->compression : "none");
    json_u64(j, "size_bytes", size_of(c, a->in));
    json_sample(j, c);
    json_i64(j, "first_ns", c->first_ns);
    json_i64(j, "last_ns", c->last_ns);
    json_u64(j, "events", c->events);
    json_u64(j, "slices", c->slices);
    json_u64(j, "instants", c->instants);
    json_u64(j, "counters", c->counters);
    json_u64(j, "flow_points", c->flow_points + c->flows_on_slices);
    json_u64(j, "arguments", c->args);
    json_u64(j, "lost", c->lost);
    json_u64(j, "gaps", c->losses);
    json_u64(j, "damage", sv_report_count(&a->in->report, SV_DAMAGE));
    json_clocks(a);
    json_processes(a);
    json_tracks(a);
    json_categories(a);
    json_metadata(a);
    json_findings(a);
    sv_json_end(j);
    return 0;
}

static int print_json(const struct census *c, const struct sv_opened *in, bool all,
                      struct sv_err *err)
{
    struct answer a = {.c = c, .in = in};
    return sv_json_fit(
        &(struct sv_json_fit){
            .fill = fill, .ctx = &a, .all = all, .more = "--all has all of each list"},
        err);
}

static void census_init(struct census *c)
{
    *c = (struct census){
        .dict = sv_dict_new(),
        .sink = {.write = census_write,
                 .close = census_close,
                 .takes = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS}};
}

static void census_fini(struct census *c)
{
    sv_dict_free(c->dict);
    free(c->by_track);
    free(c->by_cat);
}

/* Reads what was opened. False: it has loss or damage, or is no sample after all. */
static bool read_sample(struct census *c, struct sv_opened *in)
{
    struct sv_err err;
    struct sv_source *source = in->source;
    sv_err_clear(&err);
    in->source = NULL;
    if (c->sample.kind == SV_SAMPLE_HEAD_ONLY)
        c->head = in->in;
    if (sv_pump(source, &c->sink, NULL, &err) < 0 && !c->is_stopped)
        return false;
    if (c->head) {
        c->sample.bytes = sv_input_read_bytes(in->in);
        c->head = NULL;
        if (!c->is_stopped || c->sample.bytes == 0)
            return false;
    }
    return c->events && !c->losses;
}

/* Damage of the file, not of cutting it: what begins in one piece ends in another. */
static bool is_damaged(const struct census *c, const struct sv_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *what = r->rows[i].what;
        bool is_half = strcmp(what, "begin without an end") == 0 ||
                       strcmp(what, "end without a begin") == 0;
        if (r->rows[i].severity != SV_NOTE && !(is_partial(c) && is_half))
            return true;
    }
    return false;
}

/* Counts a sample of a large file. False: it must be read as a whole, also when the sample has loss
 * or damage, so that all of it is counted. */
static bool count_sample(const struct info *o, const char *path, struct census *c,
                         struct sv_opened *in)
{
    struct sv_err err;
    uint64_t above = o->sample_above ? o->sample_above : SAMPLE_ABOVE;
    sv_err_clear(&err);
    *in = (struct sv_opened){0};
    if (o->exact || o->strict || o->from || sv_needs_choice(&path, 1, &o->range))
        return false;
    int code = sv_open_sample(path, above, &c->sample, c->dict, in, &err);
    if (code > 0 && read_sample(c, in) && !is_damaged(c, &in->report)) {
        if (is_partial(c)) { /* positions and counts are of the pieces */
            sv_report_fini(&in->report);
            sv_report_init(&in->report);
        }
        scale_counts(c);
        return true;
    }
    sv_opened_close(in);
    census_fini(c);
    census_init(c);
    return false;
}

/* Of a folder or a range of time what they mean. */
static int open_all(const struct info *o, const char *path, struct sv_chosen *chosen,
                    struct sv_dict *dict, struct sv_opened *in, struct sv_err *err)
{
    struct sv_read_options read = {0};
    if (!sv_needs_choice(&path, 1, &o->range))
        return sv_open_input(path, o->from, 0, dict, in, err);
    *in = (struct sv_opened){.path = path, .fd = -1};
    int code = sv_choose_parts(&path, 1, &o->range, o->from, chosen, err);
    return code < 0 ? code : sv_chosen_open(chosen, o->from, read, dict, in, err);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct info *o = options;
    struct sv_chosen chosen = {0};
    int code = sv_expect_operands(operands, 1, 1, "input file", err);
    if (code >= 0)
        code = sv_options_either("json", "top", err);
    if (code >= 0)
        code = sv_options_need("all", "json", err);
    if (code >= 0)
        code = sv_options_either("exact", "sample-above", err);
    if (code < 0)
        return code;
    struct sv_opened in;
    struct census c;
    census_init(&c);
    bool is_sample = count_sample(o, operands->items[0], &c, &in);
    if (!is_sample)
        code = open_all(o, operands->items[0], &chosen, c.dict, &in, err);
    if (code >= 0) {
        if (!is_sample)
            code =
                sv_run(&in, sv_chosen_window(&chosen, c.dict, &c.sink), o->strict, "reading", err);
        in.path = operands->items[0];
        c.all_bytes = chosen.bytes;
        int printed = 0;
        bool is_nothing = code == SV_EINPUT &&
                          c.events == 0; /* no trace: there is nothing to say */
        if (o->json && !is_nothing)
            printed = print_json(&c, &in, o->all, err);
        else if (!is_nothing)
            print_text(&c, &in, o);
        code = code < 0 ? code : printed;
    }
    sv_opened_close(&in);
    sv_chosen_fini(&chosen);
    census_fini(&c);
    return code;
}

static const struct sv_option options[] = {
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct info, json),
     "as JSON, at most 32 KiB of it (docs/json.md)", NULL, NULL},
    {0, "all", NULL, SV_OPT_FLAG, offsetof(struct info, all), "with --json: all of each list", NULL,
     NULL},
    {0, "top", "N", SV_OPT_COUNT, offsetof(struct info, top), "rows per table (default 10)", NULL,
     NULL},
    {0, "exact", NULL, SV_OPT_FLAG, offsetof(struct info, exact),
     "read all of a large file, too, instead of estimating its counts", NULL, NULL},
    {0, "sample-above", "BYTES", SV_OPT_BYTES, offsetof(struct info, sample_above),
     "estimate the counts of files larger than this (default 256M; compressed ones: an eighth)",
     NULL, NULL},
    SV_RANGE_OPTIONS(struct info),
    SV_INPUT_OPTIONS(struct info),
    {0},
};

static const struct sv_example examples[] = {
    {"stave info trace.pftrace", "span, clocks, processes, counts, loss and damage"},
    {"stave info --json trace.json.gz | jq .categories", "for scripts"},
    {"stave info --exact large.pftrace", "counts of all of it, no estimates"},
    {0},
};

const struct sv_command sv_command_info = {
    .name = "info",
    .operands = "IN",
    .summary = "show what is in a trace",
    .description =
        "Prints the time span, the clocks and how they relate, processes, counts by "
        "kind and category, losses during recording and damage in the file. Reads the "
        "file once, in constant memory. Of a file that is larger than 256 MiB (32 if it is "
        "compressed), some parts are read and the counts are estimates, marked as such, "
        "unless these parts have loss or damage or --exact or --strict is given: parts "
        "from everywhere of a Perfetto file by Stave and of Chrome JSON, the first 48 "
        "MiB of another Perfetto file and of a compressed one.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct info),
    .run = run,
};
