/* Bands of the machine: CPU, GPUs and disks from the counters of docs/io.md. Called by the time
 * line.
 *
 * Values of utilisation are means over the interval that ends with their timestamp, levels hold
 * from it on. A disk without counters is drawn from its block requests. */
#include "plot/bands.h"

#include "core/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX  8u
#define DISKS_MAX 4u

struct sv_band *sv_bands_add(struct sv_bands *b, enum sv_band_kind kind)
{
    b->bands = sv_grow(b->bands, &b->cap, b->n + 1, sizeof *b->bands);
    b->bands[b->n] = (struct sv_band){.kind = kind};
    return &b->bands[b->n++];
}

struct sv_band_part *sv_band_part_add(struct sv_bands *all, struct sv_band *b, const char *name,
                                      uint32_t color)
{
    size_t n = all->bins.n;
    if (b->n == SV_BAND_PARTS_MAX)
        return NULL;
    struct sv_band_part *p = &b->parts[b->n++];
    *p = (struct sv_band_part){.name = name, .color = color};
    p->value = sv_alloc((n + 1) * sizeof *p->value);
    if (b->kind == SV_BAND_LANES) {
        p->count = sv_alloc((n + 1) * sizeof *p->count);
        p->bytes = sv_alloc((n + 1) * sizeof *p->bytes);
    }
    for (size_t i = 0; i < n && b->kind != SV_BAND_LANES; i++)
        p->value[i] = NAN;
    return p;
}

static void drop_part(struct sv_band_part *p)
{
    free(p->value);
    free(p->count);
    free(p->bytes);
}

static void drop_band(struct sv_bands *b)
{
    struct sv_band *last = &b->bands[--b->n];
    for (size_t i = 0; i < last->n; i++)
        drop_part(&last->parts[i]);
}

void sv_bands_fini(struct sv_bands *b)
{
    while (b->n)
        drop_band(b);
    free(b->bands);
    *b = (struct sv_bands){0};
}

/* ---- tracks ---- */

/* The children of each track, so that nothing is searched twice. */
struct family {
    const struct sv_trace *trace;
    sv_track *first, *next; /* by track; 0: none */
};

static void family_init(struct family *f, const struct sv_trace *t)
{
    *f = (struct family){.trace = t};
    f->first = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *f->first);
    f->next = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *f->next);
    for (sv_track k = t->n_tracks; k-- > 1;) {
        sv_track parent = t->dict->tracks[k].parent;
        if (parent >= t->n_tracks)
            continue;
        f->next[k] = f->first[parent];
        f->first[parent] = k;
    }
}

static void family_fini(struct family *f)
{
    free(f->first);
    free(f->next);
}

static const char *name_of(const struct sv_trace *t, sv_track track)
{
    return sv_dict_text(t->dict, t->dict->tracks[track].name).bytes;
}

static bool has_values(const struct sv_trace *t, sv_track track)
{
    return t->tracks[track].counter_first < t->tracks[track].counter_end;
}

static bool is_top(const struct sv_trace *t, sv_track track, const char *name)
{
    const struct sv_track_info *k = &t->dict->tracks[track];
    return track && k->parent == 0 && k->kind != SV_TRACK_PROCESS && k->kind != SV_TRACK_COUNTER &&
           strcmp(name_of(t, track), name) == 0;
}

/* The counter of this name below the group, 0: none with values. */
static sv_track counter_below(const struct family *f, sv_track group, const char *name)
{
    for (sv_track k = f->first[group]; k; k = f->next[k])
        if (has_values(f->trace, k) && strcmp(name_of(f->trace, k), name) == 0)
            return k;
    return 0;
}

static bool has_counters_below(const struct family *f, sv_track group)
{
    sv_track k = f->first[group];
    while (k && !has_values(f->trace, k))
        k = f->next[k];
    return k != 0;
}

/* Adds the means of one counter to a series. */
static void add_counter(const struct sv_bands *b, const struct sv_trace *t, sv_track track,
                        enum sv_value_time when, double *to)
{
    double *mean = sv_alloc((b->bins.n + 1) * sizeof *mean);
    sv_bins_counter(&b->bins, t, track, when, mean);
    sv_bins_add(to, mean, b->bins.n);
    free(mean);
}

static double largest(const double *values, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most; /* false for NaN */
    return most;
}

static bool is_known(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            return true;
    return false;
}

/* ---- CPU ---- */

static const struct {
    const char *name;
    uint32_t color;
    const char *counters[4];
} cpu_parts[] = {
    {"user", 0x56b4e9, {"user", "nice"}}, /* the kernel counts guests as user time, too */
    {"system", 0x0072b2, {"system", "irq", "softirq"}},
    {"iowait", 0xd55e00, {"iowait"}},
    {"stolen", 0x999999, {"steal"}},
    {"idle", 0xececf0, {"idle"}},
};
#define N_CPU_PARTS (sizeof cpu_parts / sizeof *cpu_parts)

/* The groups that count: all CPUs together, or, where nobody added them up, each one. */
static size_t cpu_groups(const struct family *f, sv_track *groups)
{
    const struct sv_trace *t = f->trace;
    size_t n = 0;
    for (sv_track k = f->first[0]; k; k = f->next[k])
        if (is_top(t, k, "CPU") && has_counters_below(f, k))
            groups[n++] = k;
    for (sv_track k = 1, none = n == 0; none && k < t->n_tracks; k++)
        if (t->dict->tracks[k].kind == SV_TRACK_CPU && counter_below(f, k, "user"))
            groups[n++] = k;
    return n;
}

static void find_cpu(struct sv_bands *b, const struct family *f)
{
    const struct sv_trace *t = f->trace;
    sv_track *groups = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *groups);
    size_t n = cpu_groups(f, groups);
    struct sv_band *band = n ? sv_bands_add(b, SV_BAND_STACK) : NULL;
    bool is_there = false;
    for (size_t i = 0; band && i < N_CPU_PARTS; i++) {
        struct sv_band_part *part =
            sv_band_part_add(b, band, cpu_parts[i].name, cpu_parts[i].color);
        for (size_t g = 0; g < n; g++)
            for (size_t k = 0; k < 4 && cpu_parts[i].counters[k]; k++) {
                sv_track track = counter_below(f, groups[g], cpu_parts[i].counters[k]);
                if (track)
                    add_counter(b, t, track, SV_VALUE_UNTIL, part->value);
            }
        for (size_t bin = 0; n > 1 && bin < b->bins.n; bin++)
            part->value[bin] /= (double)n;
        is_there |= is_known(part->value, b->bins.n);
        bool is_nothing = largest(part->value, b->bins.n) < 0.05;
        if (is_nothing && strcmp(part->name, "stolen") == 0)
            drop_part(&band->parts[--band->n]);
    }
    free(groups);
    if (band && !is_there) {
        drop_band(b);
    } else if (band) {
        snprintf(band->title, sizeof band->title, "CPU");
        band->left = (struct sv_axis){.to = 100, .unit = SV_AXIS_COUNT, .suffix = "%"};
    }
}

/* ---- GPUs ---- */

static const struct {
    const char *name;
    uint32_t color;
    bool is_right;
    const char *counters[3];
} gpu_parts[] = {
    {"SM", 0xd55e00, false, {"sm", "SM %"}},
    {"memory", 0xe69f00, false, {"memory", "memory %"}},
    {"framebuffer", 0x0072b2, true, {"framebuffer", "memory in use"}},
};

static bool is_gpu(const struct sv_trace *t, sv_track track)
{
    return t->dict->tracks[track].kind == SV_TRACK_GPU ||
           (t->dict->tracks[track].kind == SV_TRACK_CUSTOM &&
            strncmp(name_of(t, track), "GPU ", 4) == 0);
}

/* Those of the machine, or, where only processes have some, theirs. */
static size_t find_gpus(const struct family *f, sv_track gpus[GPUS_MAX])
{
    const struct sv_trace *t = f->trace;
    size_t n = 0;
    for (int of_process = 0; of_process < 2 && n == 0; of_process++)
        for (sv_track k = 1; k < t->n_tracks && n < GPUS_MAX; k++) {
            if (!is_gpu(t, k) || (t->dict->tracks[k].parent != 0) != of_process)
                continue;
            for (size_t i = 0; i < 3; i++)
                if (counter_below(f, k, gpu_parts[i].counters[0]) ||
                    counter_below(f, k, gpu_parts[i].counters[1])) {
                    gpus[n++] = k;
                    break;
                }
        }
    return n;
}

static void add_gpu(struct sv_bands *b, const struct family *f, sv_track gpu)
{
    const struct sv_trace *t = f->trace;
    struct sv_band *band = sv_bands_add(b, SV_BAND_LINES);
    double most = 0;
    for (size_t i = 0; i < 3; i++) {
        sv_track track = counter_below(f, gpu, gpu_parts[i].counters[0]);
        if (!track)
            track = counter_below(f, gpu, gpu_parts[i].counters[1]);
        if (!track)
            continue;
        struct sv_band_part *part =
            sv_band_part_add(b, band, gpu_parts[i].name, gpu_parts[i].color);
        part->is_right = gpu_parts[i].is_right;
        add_counter(b, t, track, part->is_right ? SV_VALUE_FROM : SV_VALUE_UNTIL, part->value);
        if (part->is_right)
            most = largest(part->value, b->bins.n);
    }
    snprintf(band->title, sizeof band->title, "%.90s", name_of(t, gpu));
    band->left = (struct sv_axis){.to = 100, .unit = SV_AXIS_COUNT, .suffix = "%"};
    if (most > 0) {
        band->right = (struct sv_axis){.unit = SV_AXIS_BYTES};
        band->right.to = sv_axis_round_up(&band->right, most);
    }
}

/* ---- disks ---- */

struct disk {
    sv_track track;
    double bytes; /* in the window, for the choice */
};

static int by_bytes(const void *a, const void *b)
{
    const struct disk *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->track < y->track ? -1 : x->track > y->track;
}

/* What the requests of one name ask for. */
struct requests {
    const struct sv_bands *bands;
    struct sv_cover cover;
    sv_str what, bytes, block;
    bool is_there;
};

/* Bytes per second, spread over the duration of each request. */
static void add_requests_of(struct requests *r, const struct sv_trace *t, sv_track track)
{
    const struct sv_bins *bins = &r->bands->bins;
    struct sv_window w = sv_trace_window(t, track, bins->from_ns, bins->to_ns);
    for (uint32_t row; sv_window_next(&w, &row);) {
        struct sv_arg a;
        if (t->slices.name[row] != r->what || t->slices.cat[row] != r->block ||
            !sv_trace_arg(t, t->slices.args[row], r->bytes, &a) || a.type != SV_ARG_INT)
            continue;
        int64_t from = t->slices.ts_ns[row], to = sv_trace_end_ns(t, row);
        if (to <= from)
            continue;
        sv_cover_add(&r->cover, bins, from, to,
                     (double)a.i * 1e9 / (double)((uint64_t)to - (uint64_t)from));
        r->is_there = true;
    }
}

static bool add_requests(const struct sv_bands *b, const struct family *f, sv_track disk,
                         const char *name, double *to)
{
    const struct sv_dict *d = f->trace->dict;
    struct requests r = {.bands = b,
                         .what = sv_dict_find_str(d, name, strlen(name)),
                         .bytes = sv_dict_find_str(d, "bytes", 5),
                         .block = sv_dict_find_str(d, "block", 5)};
    if (!r.what || !r.bytes || !r.block)
        return false;
    sv_cover_init(&r.cover, b->bins.n);
    add_requests_of(&r, f->trace, disk);
    for (sv_track k = f->first[disk]; k; k = f->next[k]) /* requests that overlap have lanes */
        add_requests_of(&r, f->trace, k);
    sv_cover_finish(&r.cover);
    for (size_t i = 0; r.is_there && i < b->bins.n; i++)
        to[i] = fmax(r.cover.part[i], 0);
    sv_cover_fini(&r.cover);
    return r.is_there;
}

/* A short run has too few samples to be worth more than its requests. */
static bool has_samples(const struct sv_trace *t, sv_track counter)
{
    return counter && t->tracks[counter].counter_end - t->tracks[counter].counter_first >= 4;
}

static bool add_disk(struct sv_bands *b, const struct family *f, sv_track disk)
{
    const struct sv_trace *t = f->trace;
    static const struct {
        const char *name;
        uint32_t color;
    } parts[] = {{"read", 0x0072b2}, {"write", 0xd55e00}};
    struct sv_band *band = sv_bands_add(b, SV_BAND_LINES);
    sv_track counters[2];
    double most = 0;
    bool has_some = false, by_requests = false;
    for (size_t i = 0; i < 2; i++) {
        counters[i] = counter_below(f, disk, parts[i].name);
        has_some |= has_samples(t, counters[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        struct sv_band_part *part = sv_band_part_add(b, band, parts[i].name, parts[i].color);
        if (!has_some && add_requests(b, f, disk, parts[i].name, part->value))
            by_requests = true;
        else if (counters[i])
            add_counter(b, t, counters[i], SV_VALUE_UNTIL, part->value);
        most = fmax(most, largest(part->value, b->bins.n));
    }
    if (most <= 0) {
        drop_band(b);
        return false;
    }
    snprintf(band->title, sizeof band->title, "disk %.80s", name_of(t, disk));
    snprintf(band->note, sizeof band->note, "%s", by_requests ? "from block requests" : "");
    band->left = (struct sv_axis){.unit = SV_AXIS_COUNT, .suffix = "B/s"};
    band->left.to = sv_axis_round_up(&band->left, most);
    return true;
}

/* Sum of the values, or of the requests, whatever there is: only to rank. */
static double traffic_of(const struct family *f, sv_track disk)
{
    const struct sv_trace *t = f->trace;
    double sum = (double)(t->tracks[disk].end - t->tracks[disk].first);
    for (sv_track k = f->first[disk]; k; k = f->next[k]) {
        const struct sv_trace_track *w = &t->tracks[k];
        bool is_rate = strcmp(name_of(t, k), "read") == 0 || strcmp(name_of(t, k), "write") == 0;
        for (uint32_t i = w->counter_first; is_rate && i < w->counter_end; i++)
            sum += t->counters.value[i] > 0 ? t->counters.value[i] : 0;
        sum += (double)(w->end - w->first);
    }
    return sum;
}

static bool is_disk(const struct sv_trace *t, sv_track track)
{
    const struct sv_track_info *k = &t->dict->tracks[track];
    return k->kind == SV_TRACK_CUSTOM && is_top(t, k->parent, "Disks");
}

static void find_disks(struct sv_bands *b, const struct family *f)
{
    const struct sv_trace *t = f->trace;
    struct disk *disks = NULL;
    size_t n = 0, cap = 0, drawn = 0;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        if (!is_disk(t, k))
            continue;
        SV_APPEND(disks, n, cap) = (struct disk){k, traffic_of(f, k)};
    }
    if (n)
        qsort(disks, n, sizeof *disks, by_bytes);
    for (size_t i = 0; i < n && i < 64 && drawn < DISKS_MAX; i++)
        drawn += add_disk(b, f, disks[i].track);
    free(disks);
}

/* ---- all ---- */

void sv_bands_find(struct sv_bands *b, const struct sv_trace *t, const struct sv_bands_wanted *w)
{
    sv_track gpus[GPUS_MAX];
    struct family f;
    *b = (struct sv_bands){.bins = w->bins};
    if (b->bins.n == 0 || b->bins.to_ns <= b->bins.from_ns)
        return;
    family_init(&f, t);
    if (w->what & SV_BANDS_CPU)
        find_cpu(b, &f);
    size_t n = w->what & SV_BANDS_GPU ? find_gpus(&f, gpus) : 0;
    for (size_t i = 0; i < n; i++)
        add_gpu(b, &f, gpus[i]);
    if (w->what & SV_BANDS_DISK)
        find_disks(b, &f);
    family_fini(&f);
    if (w->what & SV_BANDS_IO)
        w->io->find(b, t, w);
}

unsigned sv_bands_there(const struct sv_trace *t, const struct sv_bands_io *io)
{
    sv_track gpus[GPUS_MAX];
    struct family family, *f = &family;
    sv_track *groups = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *groups);
    family_init(f, t);
    unsigned what = cpu_groups(f, groups) ? SV_BANDS_CPU : 0;
    what |= find_gpus(f, gpus) ? SV_BANDS_GPU : 0;
    for (sv_track k = 1; k < t->n_tracks; k++)
        what |= is_disk(t, k) && traffic_of(f, k) > 0 ? SV_BANDS_DISK : 0;
    family_fini(f);
    free(groups);
    return what | (io->has(t) ? SV_BANDS_IO : 0);
}
