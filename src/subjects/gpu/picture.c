/* GPUs over time as bands. Called by the command plot; all numbers come from the GPU report, whose
 * sets of time are put into one bin per pixel.
 *
 * What a device did is stacked so that the parts add up to the whole: computing, then communicating
 * and copying as far as they were not hidden, then what it waited for. */
#include "subjects/gpu/picture.h"

#include "core/base/sat.h"

#include "core/base/mem.h"
#include "plot/bands.h"
#include "plot/colors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT         (SV_MARGIN + 200.0)
#define LAST_LABEL   22.0 /* half a label of the time axis */
#define BAND_GAP     8.0
#define STREAMS_MAX  8u
#define COLOR_COPY   0xf0e442u
#define COLOR_TALK   0xcc79a7u
#define COLOR_WORK   0x0072b2u
#define COLOR_MEMORY 0x009e73u

static void cover_spans(struct sv_cover *c, const struct sv_bins *b, const struct sv_spans *s)
{
    struct sv_spans part = sv_spans_part(s, b->from_ns, b->to_ns);
    for (size_t i = 0; i < part.n; i++)
        sv_cover_add(c, b, part.items[i].from_ns, part.items[i].to_ns, 1);
}

/* The share of each bin that the set covers. */
static void shares(const struct sv_bins *b, const struct sv_spans *s, double *to)
{
    struct sv_cover c;
    sv_cover_init(&c, b->n);
    cover_spans(&c, b, s);
    sv_cover_finish(&c);
    for (size_t i = 0; i < b->n; i++)
        to[i] = fmin(fmax(c.part[i], 0), 1);
    sv_cover_fini(&c);
}

static void name_device(const struct sv_gpu_report *r, size_t device, struct sv_band *b)
{
    const struct sv_gpu_device *d = &r->devices[device];
    struct sv_text name = sv_dict_text(r->trace->dict, d->name);
    if (d->name)
        snprintf(b->title, sizeof b->title, "%.*s", (int)(name.len < 80 ? name.len : 80),
                 name.bytes);
    else if (d->number >= 0)
        snprintf(b->title, sizeof b->title, "GPU %" PRId64, d->number);
    else
        snprintf(b->title, sizeof b->title, "GPU");
}

static const struct {
    enum sv_gpu_kind kind;
    const char *name;
    uint32_t color;
} works[SV_N_GPU_KINDS] = {{SV_GPU_COMPUTES, "computing", COLOR_WORK},
                           {SV_GPU_TALKS, "communicating", COLOR_TALK},
                           {SV_GPU_COPIES, "copying", COLOR_COPY}};

/* Each set holds those before it; what it adds is drawn. */
static void add_work(struct sv_bands *all, struct sv_band *b, const struct sv_gpu_device *d)
{
    struct sv_spans sum = {0};
    double *below = sv_alloc((all->bins.n + 1) * sizeof *below);
    for (size_t k = 0; k < SV_N_GPU_KINDS; k++) {
        struct sv_band_part *part = sv_band_part_add(all, b, works[k].name, works[k].color);
        sv_spans_unite(&sum, &d->sets[works[k].kind]);
        shares(&all->bins, &sum, part->value);
        for (size_t i = 0; i < all->bins.n; i++) {
            double own = part->value[i] - below[i];
            below[i] = part->value[i];
            part->value[i] = fmax(own, 0) * 100;
        }
    }
    sv_spans_fini(&sum);
    free(below);
}

/* Why it was idle: the causes that the host answers for. The rest stays white. */
static void add_idle(struct sv_bands *all, struct sv_band *b, const struct sv_gpu_device *d)
{
    static const struct {
        enum sv_gpu_gap cause;
        const char *name;
        uint32_t color;
    } parts[] = {{SV_GAP_LAUNCH, "idle: not launched", 0xe0a8a0},
                 {SV_GAP_SYNC, "idle: host waits", 0xc8c8d0},
                 {SV_GAP_DATA, "idle: loading data", 0xf3cf8f}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        struct sv_band_part *part = sv_band_part_add(all, b, parts[k].name, parts[k].color);
        shares(&all->bins, &d->idle[parts[k].cause], part->value);
        for (size_t i = 0; i < all->bins.n; i++)
            part->value[i] *= 100;
    }
}

static void add_device(struct sv_bands *all, const struct sv_gpu_report *r, size_t device)
{
    const struct sv_gpu_device *d = &r->devices[device];
    struct sv_band *b = sv_bands_add(all, SV_BAND_STACK);
    int64_t span = d->last_ns - d->first_ns;
    name_device(r, device, b);
    if (span > 0)
        snprintf(b->note, sizeof b->note, "busy %.0f %% of its span",
                 100.0 * (double)d->busy_ns / (double)span);
    b->left = (struct sv_axis){.to = 100, .unit = SV_AXIS_COUNT, .suffix = "%"};
    add_work(all, b, d);
    add_idle(all, b, d);
}

/* The level at the end of each bin; before the first it is not known. */
static void add_memory(struct sv_bands *all, const struct sv_gpu_report *r, size_t device)
{
    double level = NAN, most = 0;
    size_t next = 0;
    bool is_any = false;
    for (size_t i = 0; i < r->n_levels; i++)
        is_any |= r->levels[i].device == device;
    if (!is_any)
        return;
    struct sv_band *b = sv_bands_add(all, SV_BAND_LINES);
    struct sv_band_part *part = sv_band_part_add(all, b, "in use", COLOR_MEMORY);
    for (size_t i = 0; i < all->bins.n; i++) {
        double width = (double)(all->bins.to_ns - all->bins.from_ns) / (double)all->bins.n;
        double end = (double)all->bins.from_ns + width * (double)(i + 1), high = level;
        for (; next < r->n_levels && (double)r->levels[next].ts_ns < end; next++) {
            if (r->levels[next].device != device)
                continue;
            level = (double)r->levels[next].bytes;
            high = isnan(high) ? level : fmax(high, level);
        }
        part->value[i] = high; /* a peak must not be lost between two bins */
        most = isnan(high) ? most : fmax(most, high);
    }
    snprintf(b->title, sizeof b->title, "memory");
    b->left = (struct sv_axis){.unit = SV_AXIS_BYTES};
    b->left.to = most > 0 ? sv_axis_round_up(&b->left, most) : 1;
}

static int busiest_first(const void *a, const void *b, void *ctx)
{
    const struct sv_gpu_report *r = ctx;
    int64_t x = r->streams[*(const size_t *)a].busy_ns, y = r->streams[*(const size_t *)b].busy_ns;
    return (x < y) - (x > y);
}

static void add_streams(struct sv_bands *all, const struct sv_gpu_report *r, size_t device,
                        size_t max)
{
    size_t *order = sv_alloc((r->n_streams + 1) * sizeof *order), n = 0;
    for (size_t i = 0; i < r->n_streams; i++)
        if (r->streams[i].device == device)
            order[n++] = i;
    qsort_r(order, n, sizeof *order, busiest_first, (void *)(uintptr_t)r);
    for (size_t i = 0; i < n && i < max; i++) {
        const struct sv_gpu_stream *s = &r->streams[order[i]];
        struct sv_band *b = sv_bands_add(all, SV_BAND_LANES);
        b->lanes[b->n_lanes++] = "";
        for (size_t k = 0; k < SV_N_GPU_KINDS; k++) {
            if (s->sets[works[k].kind].n == 0)
                continue;
            struct sv_band_part *part = sv_band_part_add(all, b, works[k].name, works[k].color);
            shares(&all->bins, &s->sets[works[k].kind], part->value);
        }
        if (s->number >= 0)
            snprintf(b->title, sizeof b->title, "stream %" PRId64, s->number);
        else
            snprintf(b->title, sizeof b->title, "stream");
    }
    free(order);
}

size_t sv_gpu_figure_draw(struct sv_picture *p, const struct sv_gpu_report *r,
                          const struct sv_gpu_figure *f)
{
    double right = p->width - SV_MARGIN - LAST_LABEL;
    struct sv_bands all = {.bins = {f->from_ns, f->to_ns, (size_t)fmax(right - LEFT, 50)}};
    for (size_t i = 0; i < r->n_devices; i++) {
        add_device(&all, r, i);
        add_memory(&all, r, i);
        add_streams(&all, r, i, f->streams_max ? f->streams_max : STREAMS_MAX);
    }
    double y = sv_plot_frame_head(
        p, &f->frame,
        sv_picture_printf(p, "%" PRIu64 " kernels, copies and fills on %zu device%s", r->n_work,
                          r->n_devices, r->n_devices == 1 ? "" : "s"));
    int64_t start = r->trace->first_ns;
    struct sv_axis axis = sv_plot_frame_time_axis(&f->frame, (double)sv_sat_sub(f->from_ns, start),
                                                  (double)sv_sat_sub(f->to_ns, start), LEFT, right);
    double top = y + 16, bottom = top;
    for (size_t i = 0; i < all.n; i++)
        bottom += sv_band_height(&all.bands[i]) + BAND_GAP;
    sv_axis_draw_x(p, &axis, top, bottom, false, SV_MARK_TICK);
    y = top + 4;
    for (size_t i = 0; i < all.n; i++) {
        sv_band_draw(p, &all.bands[i], &all.bins, SV_MARGIN, LEFT, right, y);
        y += sv_band_height(&all.bands[i]) + BAND_GAP;
    }
    sv_plot_frame_zoom(p, &axis, top, bottom, top - 4);
    p->height = y + SV_MARGIN;
    size_t n = all.n;
    sv_bands_fini(&all);
    return n;
}
