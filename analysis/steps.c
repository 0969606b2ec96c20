/* Steps: detection by name, division of their time, outliers. Called by the commands steps and diff and by SQL's table step.
 *
 * Detection tries the usual markers in turn and keeps the first that occurs at least twice on one track. Names are compared
 * once per string. Division goes over the rows of the step's track once; a row adds its time to its kind and takes it from
 * its parent's. */
#include "analysis/steps.h"

#include "analysis/stats.h"
#include "base/glob.h"
#include "base/mem.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const sv_work_names[SV_N_WORK] = {
    "other", "data", "copy", "forward", "backward", "optimizer", "comm", "checkpoint", "idle"};
const char *const sv_device_names[SV_N_DEVICE] = {"device_kernel", "device_copy", "device_comm"};

/* The markers that are tried, in this order. */
static const char *const markers[] = {
    "ProfilerStep#*", "ProfilerStep*", "[Tt]rain_step*", "[Tt]raining step*",
    "[Ss]tep[ _#:]*", "step",          "Step",           "[Ii]teration*",
    "[Ii]ter[ _#:]*", "iter",          "train_batch*",   "[Ee]poch*",
};

/* ---- detection ---- */

static bool *match_names(const struct sv_dict *d, const char *marker)
{
    bool *is_marker = sv_alloc((size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++) {
        struct sv_text text = sv_dict_text(d, s);
        is_marker[s] = sv_glob_match(marker, text.bytes, text.len);
    }
    return is_marker;
}

/* Device tracks repeat the host's annotations: they are not where a step lives. */
static bool is_host(const struct sv_trace *t, uint64_t row)
{
    struct sv_text cat = sv_dict_text(t->dict, t->slices.cat[row]);
    unsigned kind = t->dict->tracks[t->slices.track[row]].kind;
    return kind != SV_TRACK_GPU && kind != SV_TRACK_STREAM && strncmp(cat.bytes, "gpu_", 4) != 0;
}

/* Counts markers per track that are not inside another marker; returns the largest count. */
static uint32_t count_markers(const struct sv_trace *t, const bool *is_marker, uint32_t *counts)
{
    uint32_t most = 0;
    const struct sv_slices *c = &t->slices;
    memset(counts, 0, ((size_t)t->n_tracks + 1) * sizeof *counts);
    for (uint64_t row = 0; row < c->n; row++) {
        if (!is_marker[c->name[row]] || !is_host(t, row))
            continue;
        bool is_inner = c->parent[row] != SV_NO_ROW && is_marker[c->name[c->parent[row]]];
        uint32_t n = counts[c->track[row]] += !is_inner;
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
        .dur_ns = end_ns - c->ts_ns[row],
    };
}

/* The steps of one track. Instants mark the beginning: such a step lasts until the next, and the last one is left out. */
static void add_track(struct sv_steps *s, size_t *cap, const struct sv_trace *t, sv_track track,
                      const bool *is_marker)
{
    const struct sv_slices *c = &t->slices;
    const struct sv_trace_track *k = &t->tracks[track];
    uint32_t before = SV_NO_ROW;
    int64_t counted = 0;
    for (uint32_t row = k->first; row < k->end; row++) {
        bool is_inner = c->parent[row] != SV_NO_ROW && is_marker[c->name[c->parent[row]]];
        if (!is_marker[c->name[row]] || is_inner || !is_host(t, row))
            continue;
        if (c->kind[row] == SV_SLICE) {
            add_step(s, cap, t, row, counted++, sv_trace_end_ns(t, row));
        } else {
            if (before != SV_NO_ROW)
                add_step(s, cap, t, before, counted++, c->ts_ns[row]);
            before = row;
        }
    }
}

static int by_duration(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Outliers: further from the median than five times the usual distance (median absolute deviation, scaled to a normal
 * distribution's), and by a tenth at least. */
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
    for (n = 0; n + 1 < s->n; n++)
        v[n] = s->steps[n + 1].dur_ns;
    if (s->n > 2) {
        qsort(v, n, sizeof *v, by_duration);
        s->first_ratio = v[n / 2] > 0 ? (double)s->steps[0].dur_ns / (double)v[n / 2] : 0;
    }
    free(v);
}

static bool find_by(struct sv_steps *s, const struct sv_trace *t, const char *marker,
                    uint32_t at_least, uint32_t *counts)
{
    bool *is_marker = match_names(t->dict, marker);
    uint32_t most = count_markers(t, is_marker, counts);
    size_t cap = 0;
    if (most >= at_least) {
        s->marker = marker;
        /* Ranks of one run have about equally many steps; a track with fewer than half is something else. */
        for (sv_track k = 0; k < t->n_tracks; k++) {
            size_t before = s->n;
            if (counts[k] * 2 >= most)
                add_track(s, &cap, t, k, is_marker);
            s->n_tracks += s->n > before;
        }
    }
    free(is_marker);
    return s->n > 0;
}

void sv_steps_find(struct sv_steps *s, const struct sv_trace *t, const char *marker)
{
    *s = (struct sv_steps){0};
    uint32_t *counts = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *counts);
    bool found = false;
    if (marker)
        found = find_by(s, t, marker, 1, counts);
    for (size_t i = 0; !marker && !found && i < sizeof markers / sizeof *markers; i++)
        found = find_by(s, t, markers[i], i == 0 ? 1 : 2, counts);
    if (found)
        judge_durations(s);
    free(counts);
}

void sv_steps_fini(struct sv_steps *s)
{
    free(s->steps);
    *s = (struct sv_steps){0};
}

/* ---- kinds of work ---- */

/* Words are looked for in lower case, the first that occurs decides: the narrower ones come first. */
static const struct {
    const char *word;
    enum sv_work work;
} words[] = {
    {"nccl", SV_WORK_COMM},
    {"allreduce", SV_WORK_COMM},
    {"all_reduce", SV_WORK_COMM},
    {"allgather", SV_WORK_COMM},
    {"all_gather", SV_WORK_COMM},
    {"reduce_scatter", SV_WORK_COMM},
    {"reducescatter", SV_WORK_COMM},
    {"c10d::", SV_WORK_COMM},
    {"gloo", SV_WORK_COMM},
    {"mpi_", SV_WORK_COMM},
    {"checkpoint", SV_WORK_CHECKPOINT},
    {"save_ckpt", SV_WORK_CHECKPOINT},
    {"torch.save", SV_WORK_CHECKPOINT},
    {"htod", SV_WORK_COPY},
    {"h2d", SV_WORK_COPY},
    {"memcpy", SV_WORK_COPY},
    {"host_to_device", SV_WORK_COPY},
    {"host-to-device", SV_WORK_COPY},
    {"aten::copy_", SV_WORK_COPY},
    {"pin_memory", SV_WORK_COPY},
    {"dataloader", SV_WORK_DATA},
    {"data_load", SV_WORK_DATA},
    {"data load", SV_WORK_DATA},
    {"next_batch", SV_WORK_DATA},
    {"load_batch", SV_WORK_DATA},
    {"read_batch", SV_WORK_DATA},
    {"optimizer", SV_WORK_OPTIMIZER},
    {"zero_grad", SV_WORK_OPTIMIZER},
    {"adam", SV_WORK_OPTIMIZER},
    {"backward", SV_WORK_BACKWARD},
    {"autograd::engine", SV_WORK_BACKWARD},
    {"forward", SV_WORK_FORWARD},
    {"nn.module", SV_WORK_FORWARD},
};

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (; *text; text++) {
        size_t i = 0;
        while (i < len && tolower((unsigned char)text[i]) == word[i])
            i++;
        if (i == len)
            return true;
    }
    return false;
}

/* By string, SV_N_WORK: says nothing. */
static uint8_t *classify_strings(const struct sv_dict *d)
{
    uint8_t *work = sv_alloc_aligned((size_t)d->n_strings + 1, 64);
    memset(work, SV_N_WORK, (size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++) {
        const char *text = sv_dict_text(d, s).bytes;
        for (size_t i = 0; i < sizeof words / sizeof *words && work[s] == SV_N_WORK; i++)
            if (has_word(text, words[i].word))
                work[s] = (uint8_t)words[i].work;
    }
    return work;
}

struct division {
    const struct sv_trace *t;
    uint8_t *by_string, *by_row; /* by_row: with what the parent says */
};

/* Parents have smaller rows, so one pass settles all. A marker itself is idle where nothing covers it. */
static void classify_rows(struct division *d, const struct sv_steps *s)
{
    const struct sv_slices *c = &d->t->slices;
    d->by_row = sv_alloc_aligned(c->n + 1, 64);
    for (uint64_t row = 0; row < c->n; row++) {
        uint8_t work = d->by_string[c->name[row]];
        if (work == SV_N_WORK)
            work = d->by_string[c->cat[row]];
        uint32_t parent = c->parent[row];
        if (work == SV_N_WORK && parent != SV_NO_ROW && d->by_row[parent] != SV_WORK_IDLE)
            work = d->by_row[parent];
        d->by_row[row] = work == SV_N_WORK ? (uint8_t)SV_WORK_OTHER : work;
    }
    for (size_t i = 0; i < s->n; i++)
        d->by_row[s->steps[i].row] = SV_WORK_IDLE;
}

static int64_t clipped(const struct sv_trace *t, uint32_t row, const struct sv_step *s)
{
    int64_t from = t->slices.ts_ns[row], to = sv_trace_end_ns(t, row), end = s->ts_ns + s->dur_ns;
    from = from > s->ts_ns ? from : s->ts_ns;
    to = to < end ? to : end;
    return to > from ? to - from : 0;
}

static void divide(const struct division *d, sv_track track, struct sv_step *s)
{
    const struct sv_slices *c = &d->t->slices;
    struct sv_window w = sv_trace_window(d->t, track, s->ts_ns, s->ts_ns + s->dur_ns);
    s->work_ns[SV_WORK_IDLE] = s->dur_ns;
    for (uint32_t row; sv_window_next(&w, &row);) {
        int64_t ns = clipped(d->t, row, s);
        uint32_t parent = c->parent[row];
        s->work_ns[d->by_row[row]] += ns;
        s->work_ns[parent == SV_NO_ROW ? SV_WORK_IDLE : d->by_row[parent]] -= ns;
    }
}

/* ---- devices ---- */

static int device_kind(const struct sv_trace *t, const uint8_t *by_string, uint64_t row)
{
    const char *cat = sv_dict_text(t->dict, t->slices.cat[row]).bytes;
    if (strcasecmp(cat, "kernel") == 0 || strcmp(cat, "gpu_kernel") == 0)
        return by_string[t->slices.name[row]] == SV_WORK_COMM ? SV_DEVICE_COMM : SV_DEVICE_KERNEL;
    if (strncmp(cat, "gpu_mem", 7) == 0 || strcasecmp(cat, "memcpy") == 0 ||
        strcasecmp(cat, "memset") == 0)
        return SV_DEVICE_COPY;
    return -1;
}

struct busy {
    int64_t from, to;
};

static int by_start(const void *a, const void *b)
{
    const struct busy *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

struct busy_list {
    struct busy *items;
    size_t n, cap;
};

/* Union of the intervals: afterwards they are apart and sorted. */
static void join_busy(struct busy_list *l)
{
    size_t kept = 0;
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, by_start);
    for (size_t i = 0; i < l->n; i++) {
        if (kept && l->items[i].from <= l->items[kept - 1].to) {
            if (l->items[i].to > l->items[kept - 1].to)
                l->items[kept - 1].to = l->items[i].to;
        } else {
            l->items[kept++] = l->items[i];
        }
    }
    l->n = kept;
}

/* How much of [from, to) the sorted, disjoint intervals cover. */
static int64_t covered(const struct busy_list *l, int64_t from, int64_t to)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->items[mid].to <= from)
            low = mid + 1;
        else
            high = mid;
    }
    int64_t sum = 0;
    for (; low < l->n && l->items[low].from < to; low++) {
        int64_t a = l->items[low].from > from ? l->items[low].from : from;
        int64_t b = l->items[low].to < to ? l->items[low].to : to;
        sum += b - a;
    }
    return sum;
}

static void divide_devices(struct sv_steps *s, const struct sv_trace *t, const uint8_t *by_string)
{
    struct busy_list lists[SV_N_DEVICE] = {0};
    for (uint64_t row = 0; row < t->slices.n; row++) {
        int kind = device_kind(t, by_string, row);
        if (kind < 0)
            continue;
        struct busy_list *l = &lists[kind];
        l->items = sv_grow(l->items, &l->cap, l->n + 1, sizeof *l->items);
        l->items[l->n++] = (struct busy){t->slices.ts_ns[row], sv_trace_end_ns(t, row)};
    }
    for (int kind = 0; kind < SV_N_DEVICE; kind++) {
        join_busy(&lists[kind]);
        for (size_t i = 0; i < s->n; i++)
            s->steps[i].device_ns[kind] =
                covered(&lists[kind], s->steps[i].ts_ns, s->steps[i].ts_ns + s->steps[i].dur_ns);
        free(lists[kind].items);
    }
}

/* A marker on a track of its own has nothing below it: then the thread of the process with most slices is looked at. */
static sv_track work_track(const struct sv_trace *t, sv_track marker_track)
{
    const struct sv_trace_track *own = &t->tracks[marker_track];
    sv_track process = sv_dict_process_of(t->dict, marker_track), best = marker_track;
    if (own->depth_max > 0 || process == 0)
        return marker_track;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        uint32_t n = t->tracks[k].end - t->tracks[k].first;
        if (t->dict->tracks[k].kind == SV_TRACK_THREAD &&
            sv_dict_process_of(t->dict, k) == process &&
            n > t->tracks[best].end - t->tracks[best].first)
            best = k;
    }
    return best;
}

void sv_steps_divide(struct sv_steps *s, const struct sv_trace *t)
{
    struct division d = {.t = t, .by_string = classify_strings(t->dict)};
    sv_track marker = 0, track = 0;
    classify_rows(&d, s);
    for (size_t i = 0; i < s->n; i++) {
        if (i == 0 || s->steps[i].track != marker) {
            marker = s->steps[i].track;
            track = work_track(t, marker);
        }
        divide(&d, track, &s->steps[i]);
    }
    divide_devices(s, t, d.by_string);
    free(d.by_string);
    free(d.by_row);
}
