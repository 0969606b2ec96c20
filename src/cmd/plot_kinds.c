/* The pictures of `stave plot`: each function takes what the user asked for and has one plot drawn. */
#include "cmd/plot.h"

#include "analysis/model_layers.h"
#include "analysis/report_gpu.h"
#include "analysis/report_wait.h"
#include "analysis/stats.h"
#include "analysis/steps.h"
#include "cli/console.h"
#include "core/base/glob.h"
#include "core/base/sat.h"
#include "plot/bars.h"
#include "plot/counters.h"
#include "plot/flame.h"
#include "plot/gpu_bands.h"
#include "plot/hist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- flame ---- */

static int draw_flame(struct sv_plot *p, const struct sv_trace *const *traces, size_t n,
                      struct sv_err *err)
{
    struct sv_calltree tree;
    struct sv_calltree_options options = {
        .merge_tracks = p->o->merge_tracks, .of_samples = p->o->samples, .of_waits = p->o->offcpu};
    if (p->o->samples && p->o->offcpu)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--samples and --offcpu exclude each other");
    if (p->is_zoomed || p->o->around) {
        options.from_ns = p->from_ns;
        options.to_ns = p->to_ns;
    }
    struct sv_flame flame = {
        .frame = p->frame, .trace = traces[n - 1], .tracks_max = (size_t)p->o->top};
    sv_calltree_make(&tree, traces, n, &options);
    int code = 0;
    if (p->o->offcpu && tree.n == 1)
        code = sv_err_set(
            err, SV_EFOUND, SV_NO_POS,
            "%s has no waits with stacks in that window; 'stave record --offcpu' records them",
            p->path);
    else if (p->o->samples && tree.n == 1)
        code = sv_err_set(
            err, SV_EFOUND, SV_NO_POS,
            "%s has no stack samples in that window; 'stave record --sample 99' records them",
            p->path);
    else
        sv_flame_draw(p->picture, &tree, &flame);
    sv_calltree_fini(&tree);
    return code;
}

int sv_plot_flame(struct sv_plot *p, struct sv_err *err)
{
    struct sv_loaded other;
    char title[512];
    if (p->trace->slices.n == 0)
        return sv_err_set(err, SV_EFOUND, SV_NO_POS, "%s has no slices", p->path);
    if (!p->o->diff) {
        return draw_flame(p, &p->trace, 1, err);
    }
    if (p->is_zoomed || p->o->around)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--time with --diff: the two traces have no common time; cut them first");
    struct sv_load_how how = {.from = p->format,
                              .strict = p->o->strict,
                              .memory_limit_bytes = p->o->memory_limit,
                              .index = p->o->no_index};
    int code = sv_load(p->o->diff, &how, &other, err);
    if (code >= 0 && other.trace->slices.n == 0)
        code = sv_err_set(err, SV_EFOUND, SV_NO_POS, "%s has no slices", p->o->diff);
    if (code >= 0) {
        const struct sv_trace *traces[2] = {p->trace, other.trace};
        snprintf(title, sizeof title, "%.200s \xe2\x86\x92 %.200s", p->name, basename(p->o->diff));
        if (!p->o->title)
            p->frame.title = title;
        code = draw_flame(p, traces, 2, err);
    }
    sv_loaded_free(&other);
    return code;
}

/* ---- hist ---- */

/* Which strings are meant: by exact name, else as a glob. */
static bool *match_strings(const struct sv_dict *d, const char *const *names, size_t n)
{
    bool *is_meant = sv_alloc((size_t)d->n_strings + 1);
    for (size_t i = 0; i < n; i++) {
        sv_str exact = sv_dict_find_str(d, names[i], strlen(names[i]));
        is_meant[exact] = true;
        for (sv_str s = 1; s < d->n_strings && strpbrk(names[i], "*?["); s++) {
            struct sv_text text = sv_dict_text(d, s);
            is_meant[s] |= sv_glob_match(names[i], text.bytes, text.len);
        }
    }
    is_meant[0] = false;
    return is_meant;
}

int sv_plot_no_such_slice(const struct sv_plot *p, const char *name, struct sv_err *err)
{
    const struct sv_dict *d = p->trace->dict;
    bool *is_name = sv_alloc((size_t)d->n_strings + 1);
    const char **names = sv_alloc(((size_t)d->n_strings + 1) * sizeof *names);
    size_t n = 0;
    for (uint64_t row = 0; row < p->trace->slices.n; row++) {
        sv_str s = p->trace->slices.name[row];
        if (s && !is_name[s] && p->trace->slices.kind[row] == SV_SLICE)
            names[n++] = sv_dict_text(d, s).bytes;
        is_name[s] = true;
    }
    int code = sv_plot_no_such("slice", name, names, n, err);
    free(names);
    free(is_name);
    return code;
}

int sv_plot_hist(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_plot_options *o = p->o;
    const struct sv_slices *s = &p->trace->slices;
    char title[512];
    if (o->buckets > SV_BUCKETS_MAX || (o->log && o->linear))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          o->log && o->linear ? "--log or --linear, not both"
                                              : "--buckets: at most %u",
                          SV_BUCKETS_MAX);
    bool *is_meant = match_strings(p->trace->dict, p->names, p->n_names);
    struct sv_hist h = {.frame = p->frame, .buckets = (size_t)o->buckets};
    size_t cap = 0, seen = 0;
    for (uint64_t row = 0; row < s->n; row++) {
        if (!is_meant[s->name[row]] || s->kind[row] != SV_SLICE)
            continue;
        seen++;
        if (s->ts_ns[row] < p->from_ns || s->ts_ns[row] >= p->to_ns)
            continue;
        h.values = sv_grow(h.values, &cap, h.n + 1, sizeof *h.values);
        h.values[h.n++] = sv_trace_end_ns(p->trace, row) - s->ts_ns[row];
    }
    free(is_meant);
    if (seen == 0)
        return sv_plot_no_such_slice(p, p->names[0], err);
    if (h.n == 0)
        return sv_err_set(err, SV_EFOUND, SV_NO_POS, "'%s' does not begin in that window",
                          p->names[0]);
    h.scale = o->log ? SV_HIST_LOG : o->linear ? SV_HIST_LINEAR : SV_HIST_AUTO;
    snprintf(title, sizeof title, "%.200s%s \xe2\x80\x94 %.200s", p->names[0],
             p->n_names > 1 ? SV_ELLIPSIS : "", p->name);
    if (!o->title)
        h.frame.title = title;
    sv_hist_draw(p->picture, &h);
    free(h.values);
    return 0;
}

/* ---- counter ---- */

#define COUNTERS_DEFAULT 24u

/* A series of a counter goes by "counter series", by the counter's name and by its own. */
static bool is_wanted(const struct sv_plot *p, sv_track track)
{
    const struct sv_dict *d = p->trace->dict;
    sv_track parent = d->tracks[track].parent;
    struct sv_text own = sv_dict_text(d, d->tracks[track].name), whole = {"", 0};
    char both[256];
    if (d->tracks[parent].kind == SV_TRACK_COUNTER)
        whole = sv_dict_text(d, d->tracks[parent].name);
    snprintf(both, sizeof both, "%s %s", whole.bytes, own.bytes);
    const char *texts[] = {own.bytes, whole.len ? whole.bytes : own.bytes, both};
    for (size_t i = 0; i < p->n_names; i++)
        for (size_t k = 0; k < 3; k++)
            if (sv_glob_match(p->names[i], texts[k], strlen(texts[k])) ||
                strcmp(p->names[i], texts[k]) == 0)
                return true;
    return p->n_names == 0;
}

static bool is_always_zero(const struct sv_trace *t, sv_track k)
{
    for (uint32_t i = t->tracks[k].counter_first; i < t->tracks[k].counter_end; i++)
        if (t->counters.value[i] != 0)
            return false;
    return true;
}

int sv_plot_counter(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_trace *t = p->trace;
    size_t most = p->o->top ? (size_t)p->o->top : p->n_names ? 1000u : COUNTERS_DEFAULT;
    size_t n_all = 0, n_wanted = 0, n_zeros = 0;
    sv_track *zeros = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *zeros);
    const char **names = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *names);
    sv_track *tracks = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *tracks);
    struct sv_counter_plot plot = {
        .frame = p->frame, .from_ns = p->from_ns, .to_ns = p->to_ns, .tracks = tracks};
    for (sv_track k = 1; k < t->n_tracks; k++) {
        if (t->tracks[k].counter_first == t->tracks[k].counter_end)
            continue;
        sv_track parent = t->dict->tracks[k].parent;
        bool is_series = t->dict->tracks[parent].kind == SV_TRACK_COUNTER;
        names[n_all++] = sv_dict_text(t->dict, t->dict->tracks[is_series ? parent : k].name).bytes;
        if (!is_wanted(p, k))
            continue;
        n_wanted++;
        if (!p->n_names && is_always_zero(t, k))
            zeros[n_zeros++] = k;
        else if (plot.n < most)
            tracks[plot.n++] = k;
    }
    /* What is always 0 shows itself only when there is nothing else, or when it is asked for. */
    bool with_zeros = p->o->top || plot.n == 0;
    for (size_t i = 0; i < n_zeros && with_zeros && plot.n < most; i++)
        tracks[plot.n++] = zeros[i];
    int code = 0;
    if (plot.n == 0)
        code = sv_plot_no_such("counter", p->n_names ? p->names[0] : "", names, n_all, err);
    else
        sv_counters_draw(p->picture, t, &plot);
    if (n_wanted > plot.n)
        sv_console_note("%zu of %zu counters are drawn%s; give the names of others, or --top %zu",
                        plot.n, n_wanted,
                        n_zeros && !with_zeros ? " (those that are always 0 are omitted)" : "",
                        n_wanted);
    free(names);
    free(zeros);
    free(tracks);
    return code;
}

/* ---- bars ---- */

struct bar_rank {
    size_t at;
    int64_t ns;
};

static int by_time(const void *a, const void *b)
{
    const struct bar_rank *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Keeps the `top` bars with most time, in their order. */
static size_t keep_top(struct sv_bar *bars, size_t n, size_t n_kinds, uint64_t top)
{
    if (top == 0 || top >= n)
        return n;
    struct bar_rank *ranks = sv_alloc((n + 1) * sizeof *ranks);
    bool *is_kept = sv_alloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        ranks[i].at = i;
        for (size_t k = 0; k < n_kinds; k++)
            ranks[i].ns += bars[i].ns[k];
    }
    qsort(ranks, n, sizeof *ranks, by_time);
    for (size_t i = 0; i < top; i++)
        is_kept[ranks[i].at] = true;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (is_kept[i])
            bars[kept++] = bars[i];
    free(ranks);
    free(is_kept);
    return kept;
}

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

/* Names say nothing about the work of any step, and states of threads are recorded: their waits say more. */
static bool is_divided_by_waits(const struct sv_plot *p, const struct sv_steps *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SV_N_WORK; k++)
            if (s->steps[i].work_ns[k] && k != SV_WORK_OTHER && k != SV_WORK_IDLE &&
                k != SV_WORK_DATA)
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
        [SV_TIME_OTHER] = 0xe4e4e8};
    _Static_assert(SV_N_WAIT_CLASSES <= SV_BAR_KINDS_MAX, "a colour for each class");
    struct sv_wait_report r;
    sv_wait_report_make(&r, p->trace,
                        &(struct sv_wait_options){.marker = p->o->marker, .step = -1});
    for (size_t k = 0; k < SV_N_WAIT_CLASSES; k++)
        kinds[k] = (struct sv_bar_kind){sv_wait_class_names[k], colors[k]};
    /* Both are by track, then time; the bars may be fewer. */
    for (size_t i = 0, span = 0; i < s->n; i++) {
        while (span < r.n_spans &&
               (r.spans[span].kind != SV_SPAN_STEP || r.spans[span].row != s->steps[i].row))
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
                                   SV_WORK_CHECKPOINT, SV_WORK_OTHER,    SV_WORK_IDLE};
    static const uint32_t colors[] = {0x56b4e9, 0x0072b2, 0x009e73, 0xcc79a7, 0xf0e442,
                                      0xe69f00, 0xd55e00, 0x999999, 0xe4e4e8};
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
        int code = sv_err_set(
            err, SV_EFOUND, SV_NO_POS,
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
                           .n = keep_top(bars, n, n_kinds, p->o->top),
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
    [SV_LAYER_SCHEDULING] = 0x6b7280, [SV_LAYER_OTHER] = 0x374151};

int sv_plot_layers(struct sv_plot *p, struct sv_err *err)
{
    struct sv_bar_kind kinds[SV_N_LAYER];
    struct sv_layers l;
    char facts[256], sum[32], outside[32];
    int64_t inside = 0;
    sv_layers_find(&l, p->trace, p->from_ns, p->to_ns);
    if (l.n == 0) {
        sv_layers_fini(&l);
        return sv_err_set(err, SV_EFOUND, SV_NO_POS,
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
                           .n = keep_top(bars, l.n, SV_N_LAYER, p->o->top),
                           .x_title = "layer",
                           .facts = facts};
    sv_bars_draw(p->picture, &plot);
    free(bars);
    sv_layers_fini(&l);
    return 0;
}

int sv_plot_gpu(struct sv_plot *p, struct sv_err *err)
{
    struct sv_gpu_report r;
    int code = 0;
    sv_gpu_report_make(&r, p->trace, p->o->marker);
    if (r.n_work == 0)
        code = sv_err_set(
            err, SV_EFOUND, SV_NO_POS,
            "no GPU work found: no slices of category kernel, gpu_memcpy or similar (docs/gpu.md)");
    else
        sv_gpu_figure_draw(p->picture, &r,
                           &(struct sv_gpu_figure){.frame = p->frame,
                                                   .from_ns = p->from_ns,
                                                   .to_ns = p->to_ns,
                                                   .streams_max = (size_t)p->o->top});
    sv_gpu_report_fini(&r);
    return code;
}
