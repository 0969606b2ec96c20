/* stave plot steps and plot layers: where the time of each step, and of each layer of a model,
 * went. */
#include "cli/console.h"
#include "core/base/sat.h"
#include "plot/bars.h"
#include "plot/kinds.h"
#include "subjects/steps/layers.h"
#include "why/steps.h"
#include "why/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_step_bars(const struct sv_steps *s, struct sv_bar *bars, const size_t *order,
                           size_t n_kinds)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_step *step = &s->steps[i];
        bars[i] = (struct sv_bar){.mark_ns = step->device_ns[SV_DEVICE_KERNEL],
                                  .is_marked = step->is_outlier,
                                  .starts_group = i && s->steps[i - 1].track != step->track};
        snprintf(bars[i].label, sizeof bars[i].label, "%" PRId64, step->number);
        for (size_t k = 0; k < n_kinds; k++)
            bars[i].ns[k] = step->work_ns[order[k]];
    }
}

/* Names say nothing about the work of any step, and states of threads are recorded: their waits say
 * more. */
static bool is_divided_by_waits(const struct sv_plot *p, const struct sv_steps *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SV_N_WORK; k++)
            if (s->steps[i].work_ns[k] && k != SV_WORK_OTHER && k != SV_WORK_DATA &&
                k < SV_WORK_IDLE)
                return false;
    return sv_dict_find_str(p->trace->dict, "thread_state", 12) != 0;
}

static size_t make_wait_bars(const struct sv_plot *p, const struct sv_steps *s, struct sv_bar *bars,
                             struct sv_bar_kind *kinds)
{
    static const uint32_t colors[SV_N_WAIT_CLASSES] = {
        [SV_TIME_COMPUTE] = 0x0072b2, [SV_TIME_DATA] = 0xe69f00, [SV_TIME_GPU] = 0x009e73,
        [SV_TIME_LOCK] = 0xcc79a7,    [SV_TIME_DISK] = 0xd55e00, [SV_TIME_CPU] = 0xf0e442,
        [SV_TIME_RANK] = 0x56b4e9,    [SV_TIME_PEER] = 0x8c6bb1, [SV_TIME_SLEEP] = 0xbbbbbb,
        [SV_TIME_QUEUE] = 0x999933,   [SV_TIME_OTHER] = 0xe4e4e8};
    _Static_assert(SV_N_WAIT_CLASSES <= SV_BAR_KINDS_MAX, "a colour for each class");
    struct sv_wait_report r;
    sv_wait_report_make(&r, p->trace,
                        &(struct sv_wait_options){.marker = p->o->marker, .step = -1});
    for (size_t k = 0; k < SV_N_WAIT_CLASSES; k++)
        kinds[k] = (struct sv_bar_kind){sv_wait_class_names[k], colors[k]};
    /* Both are by track, then time; the bars may be fewer. */
    for (size_t i = 0, span = 0; i < s->n; i++) {
        while (span < r.n_spans &&
               (r.spans[span].kind != SV_UNIT_IS_STEP || r.spans[span].row != s->steps[i].row))
            span++;
        if (span < r.n_spans)
            memcpy(bars[i].ns, r.spans[span].class_ns, sizeof r.spans[span].class_ns);
    }
    sv_wait_report_fini(&r);
    return SV_N_WAIT_CLASSES;
}

int sv_plot_steps(struct sv_plot *p, struct sv_err *err)
{
    static const size_t order[] = {SV_WORK_FORWARD,    SV_WORK_BACKWARD, SV_WORK_OPTIMIZER,
                                   SV_WORK_COMM,       SV_WORK_COPY,     SV_WORK_DATA,
                                   SV_WORK_CHECKPOINT, SV_WORK_DISK,     SV_WORK_OTHER,
                                   SV_WORK_IDLE,       SV_WORK_UNTRACED};
    static const uint32_t colors[] = {0x56b4e9, 0x0072b2, 0x009e73, 0xcc79a7, 0xf0e442, 0xe69f00,
                                      0xd55e00, 0x8c6bb1, 0x999999, 0xe4e4e8, 0xf4f4f6};
    struct sv_bar_kind kinds[SV_BAR_KINDS_MAX];
    struct sv_steps s;
    char facts[256], median[32];
    _Static_assert(sizeof order / sizeof *order == SV_N_WORK, "every kind of work has its place");
    for (size_t k = 0; k < SV_N_WORK; k++)
        kinds[k] = (struct sv_bar_kind){sv_work_names[order[k]], colors[k]};
    sv_steps_find(&s, p->trace, p->o->marker);
    size_t n = 0, outliers = 0;
    for (size_t i = 0; i < s.n; i++) { /* only those that begin in the window */
        outliers += s.steps[i].is_outlier;
        if (s.steps[i].ts_ns >= p->from_ns && s.steps[i].ts_ns < p->to_ns)
            s.steps[n++] = s.steps[i];
    }
    if (n == 0) {
        int code = sv_error(
            err, SV_EFOUND,
            s.n            ? "no step begins in that window"
            : p->o->marker ? "no slice or instant matches '%s'"
                           : "no steps found: give the name of their marker with --marker GLOB",
            p->o->marker);
        sv_steps_fini(&s);
        return code;
    }
    s.n = n;
    sv_steps_divide(&s, p->trace);
    bool has_device = false;
    for (size_t i = 0; i < n; i++)
        has_device |= s.steps[i].device_ns[SV_DEVICE_KERNEL] > 0;
    struct sv_bar *bars = sv_alloc((n + 1) * sizeof *bars);
    make_step_bars(&s, bars, order, SV_N_WORK);
    size_t n_kinds = is_divided_by_waits(p, &s) ? make_wait_bars(p, &s, bars, kinds) : SV_N_WORK;
    snprintf(facts, sizeof facts, "%zu steps by '%s' on %zu track%s \xc2\xb7 median %s%s", n,
             s.marker, s.n_tracks, s.n_tracks == 1 ? "" : "s",
             sv_human_ns(median, (int64_t)s.median_ns),
             outliers ? " \xc2\xb7 outliers among them" : "");
    struct sv_bars plot = {.frame = p->frame,
                           .kinds = kinds,
                           .n_kinds = n_kinds,
                           .bars = bars,
                           .n = sv_bars_keep_top(bars, n, n_kinds, p->o->top),
                           .x_title = "step",
                           .facts = facts,
                           .mark_name = has_device ? "kernels running" : NULL};
    sv_bars_draw(p->picture, &plot);
    free(bars);
    sv_steps_fini(&s);
    return 0;
}

/* Colours as inference people know them from the layer-wise plot of seed 003's project. */
static const uint32_t layer_colors[SV_N_LAYER] = {
    [SV_LAYER_ATTENTION] = 0x2e86ab,  [SV_LAYER_GEMM] = 0xa23b72,    [SV_LAYER_QUANT] = 0xf18f01,
    [SV_LAYER_MOE] = 0xc73e1d,        [SV_LAYER_ROUTING] = 0xff8c42, [SV_LAYER_NORM] = 0x7fb069,
    [SV_LAYER_ACT] = 0x4f6d7a,        [SV_LAYER_COMM] = 0x9ca3af,    [SV_LAYER_SAMPLING] = 0xb5179e,
    [SV_LAYER_SCHEDULING] = 0x6b7280, [SV_LAYER_DATA] = 0xe69f00,    [SV_LAYER_OTHER] = 0x374151};

int sv_plot_layers(struct sv_plot *p, struct sv_err *err)
{
    struct sv_bar_kind kinds[SV_N_LAYER];
    struct sv_layers l;
    char facts[256], sum[32], outside[32];
    int64_t inside = 0;
    sv_layers_find(&l, p->trace, p->from_ns, p->to_ns);
    if (l.n == 0) {
        sv_layers_fini(&l);
        return sv_error(err, SV_EFOUND,
                        "no layers found: no slice has an argument 'layer' or a name such as "
                        "layers.3, and threads are not numbered like layers");
    }
    struct sv_bar *bars = sv_alloc((l.n + 1) * sizeof *bars);
    for (size_t i = 0; i < l.n; i++) {
        bars[i].mark_ns = -1;
        snprintf(bars[i].label, sizeof bars[i].label, "%" PRId64, l.layers[i].number);
        for (size_t k = 0; k < SV_N_LAYER; k++) {
            bars[i].ns[k] = l.layers[i].ns[k];
            inside = sv_sat_add(inside, l.layers[i].ns[k]);
        }
    }
    for (size_t k = 0; k < SV_N_LAYER; k++)
        kinds[k] = (struct sv_bar_kind){sv_layer_names[k], layer_colors[k]};
    snprintf(facts, sizeof facts, "%zu layers%s \xc2\xb7 %s in them, %s outside", l.n,
             l.by_thread ? " (threads)" : "", sv_human_ns(sum, inside),
             sv_human_ns(outside, l.outside_ns));
    struct sv_bars plot = {.frame = p->frame,
                           .kinds = kinds,
                           .n_kinds = SV_N_LAYER,
                           .bars = bars,
                           .n = sv_bars_keep_top(bars, l.n, SV_N_LAYER, p->o->top),
                           .x_title = "layer",
                           .facts = facts};
    sv_bars_draw(p->picture, &plot);
    free(bars);
    sv_layers_fini(&l);
    return 0;
}
