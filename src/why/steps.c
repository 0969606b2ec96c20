/* Steps: detection by name, outliers, stragglers. Called by the commands steps and diff and by
 * SQL's table step.
 *
 * Detection tries the usual markers in turn and keeps the first that occurs at least twice on one
 * track. Names are compared once per string. Without markers an argument `step` of slices says
 * which step each belongs to. */
#include "why/steps.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "subjects/steps/words.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sv_work_names[SV_N_WORK] = {"other",    "data",      "copy",    "forward",
                                              "backward", "optimizer", "comm",    "checkpoint",
                                              "idle",     "disk",      "untraced"};
const char *const sv_device_names[SV_N_DEVICE] = {"device_kernel", "device_copy", "device_comm"};

static const char *const markers[] = {SV_STEP_MARKERS};

/* ---- detection ---- */

/* By string; NULL: no string matches, so that nobody need look at the slices. */
static bool *match_names(const struct sv_dict *d, const char *marker)
{
    bool *is_marker = sv_alloc((size_t)d->n_strings + 1), is_any = false;
    for (sv_str s = 1; s < d->n_strings; s++) {
        struct sv_text text = sv_dict_text(d, s);
        is_any |= is_marker[s] = sv_glob_match(marker, text.bytes, text.len);
    }
    if (is_any)
        return is_marker;
    free(is_marker);
    return NULL;
}

/* Device tracks repeat the host's annotations: they are not where a step lives. */
static bool is_host(const struct sv_trace *t, uint64_t row)
{
    struct sv_text cat = sv_dict_text(t->dict, t->slices.cat[row]);
    unsigned kind = t->dict->tracks[t->slices.track[row]].kind;
    return kind != SV_TRACK_GPU && kind != SV_TRACK_STREAM && strncmp(cat.bytes, "gpu_", 4) != 0;
}

/* By row: does it lie in a marker, at whatever depth? Parents have smaller rows. */
static bool *find_inner(const struct sv_trace *t, const bool *is_marker)
{
    const struct sv_slices *c = &t->slices;
    bool *is_inner = sv_alloc((size_t)c->n + 1);
    for (uint64_t row = 0; row < c->n; row++) {
        uint32_t parent = c->parent[row];
        is_inner[row] = parent != SV_NO_ROW && (is_inner[parent] || is_marker[c->name[parent]]);
    }
    return is_inner;
}

/* A server's requests and batches are no steps: names that it uses mark none. */
static void drop_served(const struct sv_trace *t, bool *is_marker)
{
    for (uint64_t row = 0; row < t->slices.n; row++) {
        bool *is = &is_marker[t->slices.name[row]];
        const char *cat = *is ? sv_dict_text(t->dict, t->slices.cat[row]).bytes : "";
        if (strcmp(cat, "batching") == 0 || strcmp(cat, "serving") == 0 ||
            strncmp(cat, "serving.", 8) == 0)
            *is = false;
    }
}

/* Counts markers per track that are not inside another marker; returns the largest count. */
static uint32_t count_markers(const struct sv_trace *t, const bool *is_marker, const bool *is_inner,
                              uint32_t *counts)
{
    uint32_t most = 0;
    const struct sv_slices *c = &t->slices;
    memset(counts, 0, ((size_t)t->n_tracks + 1) * sizeof *counts);
    for (uint64_t row = 0; row < c->n; row++) {
        if (!is_marker[c->name[row]] || !is_host(t, row))
            continue;
        uint32_t n = counts[c->track[row]] += !is_inner[row];
        most = n > most ? n : most;
    }
    return most;
}

static int64_t number_in(struct sv_text text, int64_t otherwise)
{
    const char *p = text.bytes;
    while (*p && !isdigit((unsigned char)*p))
        p++;
    return *p && strlen(p) < 18 ? strtoll(p, NULL, 10) : otherwise;
}

static void add_step(struct sv_steps *s, size_t *cap, const struct sv_trace *t, uint32_t row,
                     int64_t counted, int64_t end_ns)
{
    const struct sv_slices *c = &t->slices;
    s->steps = sv_grow(s->steps, cap, s->n + 1, sizeof *s->steps);
    s->steps[s->n++] = (struct sv_step){
        .row = row,
        .track = c->track[row],
        .number = number_in(sv_dict_text(t->dict, c->name[row]), counted),
        .ts_ns = c->ts_ns[row],
        .dur_ns = sv_sat_sub(end_ns, c->ts_ns[row]),
    };
}

/* MLLOG writes pairs of instants: what ends "block_start" is "block_stop". 0 when the marker has no
 * such partner. */
static sv_str stop_of(const struct sv_dict *d, sv_str marker)
{
    struct sv_text text = sv_dict_text(d, marker);
    char name[256];
    if (text.len < 6 || text.len >= sizeof name || strcmp(text.bytes + text.len - 6, "_start") != 0)
        return 0;
    int n = snprintf(name, sizeof name, "%.*s_stop", (int)text.len - 6, text.bytes);
    return sv_dict_find_str(d, name, (size_t)n);
}

/* The steps of one track. Instants mark the beginning: such a step lasts until its stop, or until
 * the next; then the last one is left out. */
static void add_track(struct sv_steps *s, size_t *cap, const struct sv_trace *t, sv_track track,
                      const bool *is_marker, const bool *is_inner)
{
    const struct sv_slices *c = &t->slices;
    const struct sv_trace_track *k = &t->tracks[track];
    uint32_t before = SV_NO_ROW;
    sv_str stop = 0;
    int64_t counted = 0;
    for (uint32_t row = k->first; row < k->end; row++) {
        bool is_stop = stop && c->name[row] == stop;
        if (!is_stop && (!is_marker[c->name[row]] || is_inner[row] || !is_host(t, row)))
            continue;
        if (c->kind[row] == SV_SLICE && !is_stop) {
            add_step(s, cap, t, row, counted++, sv_trace_end_ns(t, row));
            continue;
        }
        if (before != SV_NO_ROW)
            add_step(s, cap, t, before, counted++, c->ts_ns[row]);
        before = is_stop ? SV_NO_ROW : row;
        stop = is_stop ? stop : stop_of(t->dict, c->name[row]);
    }
}

static int by_duration(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Outliers: further from the median than five times the usual distance (median absolute deviation,
 * scaled to a normal distribution's), and by a tenth at least. */
static void judge_durations(struct sv_steps *s)
{
    int64_t *v = sv_alloc((s->n + 1) * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        v[n++] = s->steps[i].dur_ns;
    s->median_ns = sv_percentile(v, n, 0.5);
    for (size_t i = 0; i < n; i++)
        v[i] = (int64_t)fabs((double)v[i] - s->median_ns);
    double usual = 1.4826 * sv_percentile(v, n, 0.5);
    s->limit_ns = s->median_ns + fmax(5 * usual, 0.1 * s->median_ns);
    for (size_t i = 0; i < s->n; i++)
        s->steps[i].is_outlier = s->n > 3 && (double)s->steps[i].dur_ns > s->limit_ns;
    free(v);
}

/* How much longer the first step of each track takes than the middle one of those after it. */
static void judge_first(struct sv_steps *s)
{
    int64_t *v = sv_alloc((s->n + 1) * sizeof *v);
    for (size_t i = 0, end; i < s->n; i = end) {
        size_t n = 0;
        for (end = i + 1; end < s->n && s->steps[end].track == s->steps[i].track; end++)
            v[n++] = s->steps[end].dur_ns;
        if (n < 2)
            continue;
        qsort(v, n, sizeof *v, by_duration);
        int64_t middle = v[n / 2];
        double ratio = middle > 0 ? (double)s->steps[i].dur_ns / (double)middle : 0;
        s->steps[i].is_slow_first = ratio > SV_SLOW_FIRST;
        if (ratio > s->first_ratio)
            s->first_ratio = ratio;
    }
    free(v);
}

struct numbered {
    int64_t number, own_ns;
    size_t step;
};

static int by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->own_ns < y->own_ns ? -1 : x->own_ns > y->own_ns;
}

int64_t sv_step_own_ns(const struct sv_step *s)
{
    return s->dur_ns - s->work_ns[SV_WORK_COMM];
}

/* Among the steps of one number on several tracks (ranks): the one that works longest, if by a
 * tenth over the middle one. */
void sv_steps_judge_stragglers(struct sv_steps *s)
{
    struct numbered *v = sv_alloc((s->n + 1) * sizeof *v);
    for (size_t i = 0; i < s->n; i++) {
        v[i] = (struct numbered){s->steps[i].number, sv_step_own_ns(&s->steps[i]), i};
        s->steps[i].is_straggler = false;
    }
    if (s->n)
        qsort(v, s->n, sizeof *v, by_number);
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n && v[end].number == v[i].number; end++) {}
        const struct numbered *middle = &v[i + (end - i - 1) / 2], *last = &v[end - 1];
        s->steps[last->step].is_straggler = end - i > 1 &&
                                            (double)last->own_ns > 1.1 * (double)middle->own_ns;
    }
    free(v);
}

/* is_asked: the caller knows that it marks steps. */
static bool find_by(struct sv_steps *s, const struct sv_trace *t, const char *marker, bool is_asked,
                    uint32_t at_least, uint32_t *counts)
{
    bool *is_marker = match_names(t->dict, marker);
    if (!is_marker)
        return false;
    if (!is_asked)
        drop_served(t, is_marker);
    bool *is_inner = find_inner(t, is_marker);
    uint32_t most = count_markers(t, is_marker, is_inner, counts);
    size_t cap = 0;
    if (most >= at_least) {
        s->marker = marker;
        /* Ranks of one run have about equally many steps; a track with fewer than half is something
         * else. */
        for (sv_track k = 0; k < t->n_tracks; k++) {
            size_t before = s->n;
            if (counts[k] * 2 >= most)
                add_track(s, &cap, t, k, is_marker, is_inner);
            s->n_tracks += s->n > before;
        }
    }
    free(is_marker);
    free(is_inner);
    return s->n > 0;
}

/* ---- steps by an argument ---- */

/* Slices of one process with the same number, one after the other. */
struct step_arg {
    int64_t number, ts_ns, end_ns;
    uint32_t row;
    sv_track track; /* the process, where there is one */
};

static int by_track_and_time(const void *a, const void *b)
{
    const struct step_arg *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static struct step_arg *list_step_args(const struct sv_trace *t, size_t *n)
{
    const struct sv_slices *c = &t->slices;
    sv_str key = sv_dict_find_str(t->dict, "step", 4);
    struct step_arg *all = NULL;
    size_t cap = 0;
    *n = 0;
    for (uint32_t row = 0; key && row < c->n; row++) {
        struct sv_arg a;
        if (c->kind[row] != SV_SLICE || c->parent[row] != SV_NO_ROW || !c->args[row] ||
            !is_host(t, row) || !sv_trace_arg(t, c->args[row], key, &a) || a.type != SV_ARG_INT ||
            a.i < 0)
            continue;
        sv_track process = sv_dict_process_of(t->dict, c->track[row]);
        all = sv_grow(all, &cap, *n + 1, sizeof *all);
        all[(*n)++] = (struct step_arg){a.i, c->ts_ns[row], sv_trace_end_ns(t, row), row,
                                        process ? process : c->track[row]};
    }
    if (*n)
        qsort(all, *n, sizeof *all, by_track_and_time);
    return all;
}

/* Of the tracks of these slices the one that has most to do. */
static sv_track busiest(const struct sv_trace *t, const struct step_arg *all, size_t n,
                        int64_t *sums)
{
    sv_track best = 0;
    for (size_t i = 0; i < n; i++)
        sums[t->slices.track[all[i].row]] =
            sv_sat_add(sums[t->slices.track[all[i].row]], sv_sat_sub(all[i].end_ns, all[i].ts_ns));
    for (size_t i = 0; i < n; i++)
        if (!best || sums[t->slices.track[all[i].row]] > sums[best])
            best = t->slices.track[all[i].row];
    return best;
}

/* The steps of one process. A number that comes and goes, or that each operation has its own of,
 * means something else: false. */
static bool add_told(struct sv_steps *s, size_t *cap, const struct sv_trace *t,
                     const struct step_arg *all, size_t n, sv_track track)
{
    bool is_sound = n > 0 && all[0].number < all[n - 1].number;
    for (size_t i = 0, end; i < n && is_sound; i = end) {
        int64_t to = INT64_MIN;
        uint32_t row = SV_NO_ROW;
        is_sound = i == 0 || all[i].number > all[i - 1].number;
        for (end = i; end < n && all[end].number == all[i].number; end++) {
            to = all[end].end_ns > to ? all[end].end_ns : to;
            if (row == SV_NO_ROW && t->slices.track[all[end].row] == track)
                row = all[end].row;
        }
        is_sound &= end - i > 1 && row != SV_NO_ROW;
        if (!is_sound)
            break;
        add_step(s, cap, t, row, 0, to);
        s->steps[s->n - 1].number = all[i].number;
        s->steps[s->n - 1].ts_ns = all[i].ts_ns;
        s->steps[s->n - 1].dur_ns = sv_sat_sub(to, all[i].ts_ns);
    }
    return is_sound;
}

static bool find_told(struct sv_steps *s, const struct sv_trace *t)
{
    size_t n, cap = 0;
    struct step_arg *all = list_step_args(t, &n);
    int64_t *sums = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *sums);
    bool is_sound = n > 0;
    for (size_t i = 0, end; i < n && is_sound; i = end) {
        for (end = i + 1; end < n && all[end].track == all[i].track; end++) {}
        is_sound = add_told(s, &cap, t, all + i, end - i, busiest(t, all + i, end - i, sums));
        s->n_tracks++;
    }
    free(all);
    free(sums);
    s->marker = "args.step";
    s->has_no_markers = true;
    if (!is_sound)
        sv_steps_fini(s);
    return is_sound;
}

void sv_steps_judge(struct sv_steps *s)
{
    judge_durations(s);
    judge_first(s);
    if (s->n_tracks > 1)
        sv_steps_judge_stragglers(s);
}

void sv_steps_find(struct sv_steps *s, const struct sv_trace *t, const char *marker)
{
    *s = (struct sv_steps){0};
    uint32_t *counts = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *counts);
    bool found = false;
    if (marker)
        found = find_by(s, t, marker, true, 1, counts);
    for (size_t i = 0; !marker && !found && i < sizeof markers / sizeof *markers; i++)
        found = find_by(s, t, markers[i], false, i == 0 ? 1 : 2, counts);
    if (found || (!marker && find_told(s, t)))
        sv_steps_judge(s);
    free(counts);
}

void sv_steps_fini(struct sv_steps *s)
{
    free(s->steps);
    *s = (struct sv_steps){0};
}
