/* The trace as sections of an image, and back.
 *
 * Columns are stored as they lie in memory, the dictionary as its texts, tracks and metadata. The
 * way back maps the columns and makes the dictionary anew on the heap: its table of strings is
 * different in every run. trace_image_check.c looks at what is used as an index. */
#include "store/trace_image.h"

#include <stdio.h>
#include <stdlib.h>

struct image_trace {
    uint64_t n_slices, n_counters, n_flows, n_points, n_losses;
    int64_t first_ns, last_ns;
    uint64_t unmatched_ends, unfinished, unbound_flow_points;
    uint32_t n_tracks, n_levels, trace_clock, has_exact;
};

struct image_finding {
    uint64_t count;
    int64_t first_pos;
    uint32_t severity, what_len, detail_len, has_detail;
};

_Static_assert(sizeof(struct image_trace) == 96 && sizeof(struct image_finding) == 32 &&
                   sizeof(struct sv_track_info) == 96 && sizeof(struct sv_meta) == 12 &&
                   sizeof(struct sv_snapshot) == 280 && sizeof(struct sv_trace_track) == 20,
               "raise SV_IMAGE_VERSION");

/* ---- writing ---- */

static void name_column(char to[SV_IMAGE_NAME], const char *table, size_t column)
{
    snprintf(to, SV_IMAGE_NAME, "%s.%u", table, (unsigned)column & 0xff);
}

static void put_table(struct sv_image_writer *w, const char *name, const struct sv_table *b,
                      uint64_t n)
{
    char section[SV_IMAGE_NAME];
    for (size_t i = 0; i < b->n_columns; i++) {
        const void *at;
        memcpy(&at, (const char *)b->owner + b->columns[i].offset, sizeof at);
        name_column(section, name, i);
        sv_image_add(w, section, at, n * b->columns[i].size, b->columns[i].size);
    }
}

static bool put_dict(const struct sv_dict *d, struct sv_image_writer *w)
{
    size_t total = 0;
    if (!sv_dict_is_plain(d))
        return false;
    for (sv_track t = 1; t < d->n_tracks; t++)
        if (sv_dict_find_track(d, d->tracks[t].uuid) != t)
            return false;
    uint32_t *lens = sv_image_add_new(w, "dict.lens", d->n_strings * sizeof *lens, sizeof *lens);
    for (sv_str s = 0; s < d->n_strings; s++) {
        lens[s] = d->strings[s].len;
        total += (size_t)lens[s] + 1;
    }
    char *to = sv_image_add_new(w, "dict.texts", total, 1);
    for (sv_str s = 0; s < d->n_strings; s++) {
        memcpy(to, d->strings[s].bytes, lens[s]);
        to += (size_t)lens[s] + 1;
    }
    size_t tracks = d->n_tracks * sizeof *d->tracks, meta = d->n_meta * sizeof *d->meta;
    memcpy(sv_image_add_new(w, "dict.tracks", tracks, sizeof *d->tracks), d->tracks, tracks);
    void *copy = sv_image_add_new(w, "dict.meta", meta, sizeof *d->meta);
    if (meta)
        memcpy(copy, d->meta, meta);
    size_t clocks = d->clocks.n * sizeof *d->clocks.snapshots;
    copy = sv_image_add_new(w, "dict.clocks", clocks, sizeof *d->clocks.snapshots);
    if (clocks)
        memcpy(copy, d->clocks.snapshots, clocks);
    return true;
}

static void put_report(const struct sv_report *r, struct sv_image_writer *w)
{
    size_t n = r ? r->n : 0, total = 0;
    struct image_finding *rows = sv_image_add_new(w, "report", n * sizeof *rows, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        const struct sv_finding *f = &r->rows[i];
        rows[i] = (struct image_finding){
            .count = f->count,
            .first_pos = f->first_pos,
            .severity = f->severity,
            .what_len = (uint32_t)strlen(f->what),
            .detail_len = f->first_detail ? (uint32_t)strlen(f->first_detail) : 0,
            .has_detail = f->first_detail != NULL};
        total += (size_t)rows[i].what_len + rows[i].detail_len;
    }
    char *to = sv_image_add_new(w, "report.texts", total, 1);
    for (size_t i = 0; i < n; i++) {
        memcpy(to, r->rows[i].what, rows[i].what_len);
        to += rows[i].what_len;
        if (rows[i].detail_len)
            memcpy(to, r->rows[i].first_detail, rows[i].detail_len);
        to += rows[i].detail_len;
    }
}

bool sv_trace_put(const struct sv_trace *t, const struct sv_report *report,
                  struct sv_image_writer *w)
{
    const struct sv_trace_impl *x = t->impl;
    char section[SV_IMAGE_NAME];
    if (!put_dict(t->dict, w))
        return false;
    put_report(report, w);
    struct image_trace *head = sv_image_add_new(w, "trace", sizeof *head, sizeof *head);
    *head = (struct image_trace){.n_slices = t->slices.n,
                                 .n_counters = t->counters.n,
                                 .n_flows = t->flows.n,
                                 .n_points = t->points.n,
                                 .n_losses = t->losses.n,
                                 .first_ns = t->first_ns,
                                 .last_ns = t->last_ns,
                                 .unmatched_ends = t->unmatched_ends,
                                 .unfinished = t->unfinished,
                                 .unbound_flow_points = t->unbound_flow_points,
                                 .n_tracks = t->n_tracks,
                                 .n_levels = (uint32_t)x->n_levels,
                                 .trace_clock = t->dict->clocks.trace_clock,
                                 .has_exact = t->counters.exact != NULL};
    sv_image_add(w, "tracks", t->tracks, t->n_tracks * sizeof *t->tracks, sizeof *t->tracks);
    put_table(w, "slice", &x->slices, t->slices.n);
    put_table(w, "counter", &x->counters, t->counters.n);
    put_table(w, "flow", &x->flows, t->flows.n);
    put_table(w, "point", &x->points, t->points.n);
    put_table(w, "loss", &x->losses, t->losses.n);
    uint64_t n = t->slices.n;
    for (size_t i = 0; i < x->n_levels; i++) {
        n = sv_trace_level_size(n);
        name_column(section, "ends", i);
        sv_image_add(w, section, x->ends[i].at, n * sizeof(int64_t), sizeof(int64_t));
    }
    sv_lists_put(&x->args, w);
    return true;
}

/* ---- reading ---- */

static bool take_table(const struct sv_image *im, const char *name, struct sv_table *b, uint64_t n)
{
    char section[SV_IMAGE_NAME];
    for (size_t i = 0; i < b->n_columns; i++) {
        uint64_t n_found;
        name_column(section, name, i);
        const void *at = sv_image_find(im, section, b->columns[i].size, &n_found);
        if (!at || n_found != n)
            return false;
        memcpy((char *)b->owner + b->columns[i].offset, &at, sizeof at);
    }
    return true;
}

/* The columns that a table gets only when there is something to put into them. */
static void add_late_column(struct sv_table *b)
{
    b->row_bytes += b->columns[b->n_columns++].size;
}

static bool take_dict(struct sv_dict *d, const struct sv_image *im, uint32_t trace_clock)
{
    struct sv_dict_content c;
    uint64_t n_strings, n_texts, n_tracks, n_meta, n_clocks;
    c.lens = sv_image_find(im, "dict.lens", sizeof *c.lens, &n_strings);
    c.texts = sv_image_find(im, "dict.texts", 1, &n_texts);
    c.tracks = sv_image_find(im, "dict.tracks", sizeof *c.tracks, &n_tracks);
    c.meta = sv_image_find(im, "dict.meta", sizeof *c.meta, &n_meta);
    const struct sv_snapshot *clocks =
        sv_image_find(im, "dict.clocks", sizeof *d->clocks.snapshots, &n_clocks);
    if (!c.lens || !c.texts || !c.tracks || !c.meta || !clocks || n_strings >= UINT32_MAX ||
        n_tracks >= UINT32_MAX || n_meta >= UINT32_MAX)
        return false;
    c.n_strings = (uint32_t)n_strings;
    c.n_tracks = (uint32_t)n_tracks;
    c.n_meta = (uint32_t)n_meta;
    if (!sv_image_check_dict(&c, n_texts) || !sv_dict_fill(d, &c))
        return false;
    d->clocks.trace_clock = trace_clock;
    for (uint64_t i = 0; i < n_clocks; i++) {
        if (clocks[i].n > SV_READINGS_MAX)
            return false;
        sv_clocks_add(&d->clocks, &clocks[i]);
    }
    return true;
}

static bool take_report(struct sv_report *r, const struct sv_image *im)
{
    uint64_t n, left;
    const struct image_finding *rows = sv_image_find(im, "report", sizeof *rows, &n);
    const char *at = sv_image_find(im, "report.texts", 1, &left);
    if (!rows || !at)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        const struct image_finding *f = &rows[i];
        uint64_t len = (uint64_t)f->what_len + f->detail_len;
        if (f->severity > SV_DAMAGE || len > left)
            return false;
        char *what = sv_strndup(at, f->what_len);
        if (f->has_detail)
            sv_report_add(r, (enum sv_severity)f->severity, what, f->count, f->first_pos, "%.*s",
                          (int)(f->detail_len < 1024 ? f->detail_len : 1024), at + f->what_len);
        else
            sv_report_add(r, (enum sv_severity)f->severity, what, f->count, f->first_pos, NULL);
        free(what);
        at += len;
        left -= len;
    }
    return true;
}

static bool take_levels(struct sv_trace_impl *x, const struct sv_image *im, uint64_t n,
                        uint32_t n_levels)
{
    char section[SV_IMAGE_NAME];
    const size_t max = sizeof x->ends / sizeof *x->ends;
    bool is_last = n == 0;
    while (!is_last && x->n_levels < max) {
        uint64_t n_found;
        n = sv_trace_level_size(n);
        is_last = n <= 1u << SV_FANOUT_BITS;
        name_column(section, "ends", x->n_levels);
        const void *at = sv_image_find(im, section, sizeof(int64_t), &n_found);
        if (!at || n_found != n)
            return false;
        x->ends[x->n_levels++].at = (void *)(uintptr_t)at; /* only searches look at it */
    }
    return x->n_levels == n_levels;
}

static bool take_trace(struct sv_trace *t, const struct sv_image *im,
                       const struct image_trace *head)
{
    struct sv_trace_impl *x = t->impl;
    uint64_t n_tracks;
    t->slices.n = head->n_slices;
    t->counters.n = head->n_counters;
    t->flows.n = head->n_flows;
    t->points.n = head->n_points;
    t->losses.n = head->n_losses;
    t->first_ns = head->first_ns;
    t->last_ns = head->last_ns;
    t->unmatched_ends = head->unmatched_ends;
    t->unfinished = head->unfinished;
    t->unbound_flow_points = head->unbound_flow_points;
    t->tracks =
        (void *)(uintptr_t)sv_image_find(im, "tracks", sizeof *t->tracks, &n_tracks); /* read */
    t->n_tracks = head->n_tracks;
    x->image_strings = t->dict->n_strings;
    if (!t->tracks || n_tracks != t->n_tracks || t->n_tracks > t->dict->n_tracks ||
        t->slices.n >= SV_NO_ROW || t->counters.n >= SV_NO_ROW || t->points.n >= SV_NO_ROW ||
        t->flows.n >= SV_NO_ROW || t->first_ns > t->last_ns)
        return false;
    if (t->slices.n)
        add_late_column(&x->slices);
    if (head->has_exact)
        add_late_column(&x->counters);
    return take_table(im, "slice", &x->slices, t->slices.n) &&
           take_table(im, "counter", &x->counters, t->counters.n) &&
           take_table(im, "flow", &x->flows, t->flows.n) &&
           take_table(im, "point", &x->points, t->points.n) &&
           take_table(im, "loss", &x->losses, t->losses.n) &&
           take_levels(x, im, t->slices.n, head->n_levels) &&
           sv_lists_of_image(&x->args, im, t->dict->n_strings);
}

void sv_trace_let_go(struct sv_trace *t)
{
    struct sv_trace_impl *x = t->impl;
    sv_lists_let_go(&x->args);
    memset(x->ends, 0, sizeof x->ends);
    t->tracks = NULL;
    sv_image_close(x->image);
    x->image = NULL;
}

struct sv_trace *sv_trace_of_image(struct sv_image *im, struct sv_dict *dict,
                                   struct sv_report *report, unsigned how)
{
    uint64_t n;
    struct sv_trace *t = sv_trace_new(dict, NULL, 0);
    t->impl->image = im;
    t->impl->finished = true;
    /* Sums first: they protect what the other checks do not understand. */
    bool ok = sv_image_verify(im, how, NULL, NULL);
    const struct image_trace *head = sv_image_find(im, "trace", sizeof *head, &n);
    if (ok && head && n == 1 && take_dict(dict, im, head->trace_clock) && take_report(report, im) &&
        take_trace(t, im, head) && sv_image_check_rows(t, how, NULL, NULL))
        return t;
    sv_trace_free(t);
    return NULL;
}

bool sv_trace_check(const struct sv_trace *t, unsigned how, bool (*stop)(void *), void *ctx)
{
    return !t->impl->image || (sv_image_verify(t->impl->image, how, stop, ctx) &&
                               sv_image_check_rows(t, how, stop, ctx));
}

const struct sv_image *sv_trace_image(const struct sv_trace *t)
{
    return t->impl->image;
}
