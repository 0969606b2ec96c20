/* The panels of `plot llm`. Called by the command plot with the tables and figures of the analysis;
 * those over time show the window, the others all of the trace. */
#include "subjects/engine/panels.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "plot/axes.h"
#include "subjects/serving/panels_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 3, BINS = 120 };

static const uint32_t phase_colors[SV_N_ENGINE_PHASES] = {0x999999, 0x56b4e9, 0xe69f00, 0x009e73,
                                                          0xd55e00, 0xcc79a7, 0xf0e442};
#define BLUE   0x0072b2
#define GREEN  0x009e73
#define ORANGE 0xe69f00
#define RED    0xd55e00

struct sheet {
    struct sv_axes a;
    const struct sv_llm *l;
    const struct sv_llm_figures *f;
    const struct sv_llm_figure *o;
    double *xs, *ys; /* space for as many values as any table has rows */
    size_t n;
};

static void add(struct sheet *s, double x, double y)
{
    s->xs[s->n] = x;
    s->ys[s->n++] = y;
}

static bool is_in(const struct sheet *s, int64_t ts_ns)
{
    return ts_ns >= s->o->from_ns && ts_ns < s->o->to_ns;
}

static double since_start(const struct sheet *s, int64_t ts_ns)
{
    return (double)sv_sat_sub(ts_ns, s->l->trace->first_ns);
}

static struct sv_axis time_axis(const struct sheet *s)
{
    return (struct sv_axis){.unit = SV_AXIS_TIME,
                            .from = since_start(s, s->o->from_ns),
                            .to = since_start(s, s->o->to_ns)};
}

static struct sv_ref text(struct sheet *s, const char *words)
{
    return sv_picture_printf(s->a.p, "%s", words);
}

/* Dots of one colour, as cells where there are many. */
static void put_dots(struct sheet *s, uint32_t color)
{
    if (s->n > SV_DOTS_MAX)
        sv_axes_cells(&s->a, s->xs, s->ys, s->n, color);
    else
        sv_axes_dots(&s->a, s->xs, s->ys, s->n, color);
}

/* ---- over time ---- */

static void draw_ttft(struct sheet *s)
{
    double most = 0;
    for (size_t i = 0; i < s->l->n_requests; i++) {
        const struct sv_llm_request *r = &s->l->requests[i];
        int64_t v = sv_llm_ttft(r);
        if (v < 0 || r->is_warmup || !is_in(s, r->arrival_ns))
            continue;
        add(s, since_start(s, r->arrival_ns), (double)v);
        most = fmax(most, (double)v);
    }
    sv_axes_scales(&s->a, time_axis(s), "arrival", sv_panel_time_axis(most), "time to first token");
    put_dots(s, BLUE);
}

static void draw_itl(struct sheet *s)
{
    double most = 0;
    for (size_t i = 0; i < s->l->n_tokens; i++) {
        const struct sv_llm_token *k = &s->l->tokens[i];
        int64_t v = k->number ? sv_llm_gap(s->l, k) : -1;
        if (v <= 0 || !is_in(s, k->ts_ns))
            continue;
        add(s, since_start(s, k->ts_ns), (double)v);
        most = fmax(most, (double)v);
    }
    sv_axes_scales(&s->a, time_axis(s), "token", sv_panel_time_axis(most), "since the last one");
    put_dots(s, GREEN);
}

static void draw_steps(struct sheet *s)
{
    const struct sv_legend items[] = {{text(s, "decode only"), GREEN},
                                      {text(s, "with prefill"), ORANGE}};
    double most = 0;
    for (size_t i = 0; i < s->l->n_steps; i++)
        if (is_in(s, s->l->steps[i].ts_ns))
            most = fmax(most, (double)s->l->steps[i].dur_ns);
    sv_axes_legend(&s->a, items, 2);
    sv_axes_scales(&s->a, time_axis(s), "step", sv_panel_time_axis(most), "takes");
    for (int with_prefill = 0; with_prefill < 2; with_prefill++) {
        s->n = 0;
        for (size_t i = 0; i < s->l->n_steps; i++) {
            const struct sv_llm_step *t = &s->l->steps[i];
            if (is_in(s, t->ts_ns) && (t->n_prefill > 0) == (with_prefill > 0))
                add(s, since_start(s, t->ts_ns), (double)t->dur_ns);
        }
        put_dots(s, items[with_prefill].color);
    }
}

/* A value of each step over time; -1: none. */
static double put_step_line(struct sheet *s, int64_t (*value)(const struct sv_llm_step *t),
                            uint32_t color, bool draw)
{
    double most = 0;
    s->n = 0;
    for (size_t i = 0; i < s->l->n_steps; i++) {
        const struct sv_llm_step *t = &s->l->steps[i];
        int64_t v = value(t);
        if (v < 0 || !is_in(s, t->ts_ns))
            continue;
        add(s, since_start(s, t->ts_ns), (double)v);
        most = fmax(most, (double)v);
    }
    if (draw && s->n)
        sv_axes_line(&s->a, s->xs, s->ys, s->n, color, SV_LINE_STEPS);
    return most;
}

static int64_t requests_of(const struct sv_llm_step *t)
{
    return (int64_t)t->n_prefill + t->n_decode;
}

static int64_t waiting_of(const struct sv_llm_step *t)
{
    return t->waiting;
}

static int64_t kv_of(const struct sv_llm_step *t)
{
    return t->kv_total > 0 ? t->kv_used : -1;
}

static void draw_load(struct sheet *s)
{
    const struct sv_legend items[] = {{text(s, "in the step"), BLUE}, {text(s, "waiting"), RED}};
    double most =
        fmax(put_step_line(s, requests_of, BLUE, false), put_step_line(s, waiting_of, RED, false));
    sv_axes_legend(&s->a, items, 2);
    sv_axes_scales(&s->a, time_axis(s), "step", sv_panel_count_axis(fmax(most, 1)), "requests");
    put_step_line(s, waiting_of, RED, true);
    put_step_line(s, requests_of, BLUE, true);
}

static void draw_kv(struct sheet *s)
{
    double total = 0;
    for (size_t i = 0; i < s->l->n_steps; i++)
        total = fmax(total, (double)s->l->steps[i].kv_total);
    if (total <= 0) {
        sv_axes_nothing(&s->a, "no data: the engine does not report its KV blocks");
        return;
    }
    sv_axes_scales(&s->a, time_axis(s), "step",
                   (struct sv_axis){.unit = SV_AXIS_COUNT, .to = total}, "KV blocks in use");
    put_step_line(s, kv_of, ORANGE, true);
}

static void draw_rates(struct sheet *s)
{
    double in[BINS] = {0}, out[BINS] = {0}, xs[BINS], most = 0;
    double from = since_start(s, s->o->from_ns), span = since_start(s, s->o->to_ns) - from;
    double width = fmax(span / BINS, 1);
    for (size_t i = 0; i < s->l->n_steps; i++) {
        const struct sv_llm_step *t = &s->l->steps[i];
        int64_t end_ns = sv_sat_add(t->ts_ns, t->dur_ns);
        if (!is_in(s, end_ns))
            continue;
        size_t bin = (size_t)fmin((since_start(s, end_ns) - from) / width, BINS - 1);
        in[bin] += (double)t->tokens_in * 1e9 / width;
        out[bin] += (double)t->tokens_out * 1e9 / width;
    }
    for (size_t i = 0; i < BINS; i++) {
        xs[i] = from + width * (double)i;
        most = fmax(most, fmax(in[i], out[i]));
    }
    const struct sv_legend items[] = {{text(s, "computed"), ORANGE}, {text(s, "output"), GREEN}};
    sv_axes_legend(&s->a, items, 2);
    sv_axes_scales(&s->a, time_axis(s), "time", sv_panel_count_axis(fmax(most, 1)), "tokens/s");
    sv_axes_line(&s->a, xs, in, BINS, ORANGE, SV_LINE_STEPS);
    sv_axes_line(&s->a, xs, out, BINS, GREEN, SV_LINE_STEPS);
}

/* ---- distributions ---- */

static double measure(const struct sv_llm_request *r, int m)
{
    return (double)(m == 0 ? sv_llm_ttft(r) : m == 1 ? sv_llm_tpot(r) : sv_llm_e2e(r));
}

static void draw_cdf(struct sheet *s)
{
    static const uint32_t colors[] = {BLUE, GREEN, RED};
    const struct sv_legend items[] = {
        {text(s, "TTFT"), BLUE}, {text(s, "TPOT"), GREEN}, {text(s, "E2E"), RED}};
    double most = 0;
    for (size_t i = 0; i < s->l->n_requests; i++)
        if (s->l->requests[i].fate == SV_FATE_RESPONDED && !s->l->requests[i].is_warmup)
            most = fmax(most, measure(&s->l->requests[i], 2));
    sv_axes_legend(&s->a, items, 3);
    sv_axes_scales(&s->a, sv_panel_time_axis(most), "at most",
                   (struct sv_axis){.unit = SV_AXIS_COUNT, .to = 100, .suffix = " %"},
                   "of the requests");
    for (int m = 0; m < 3; m++) {
        s->n = 0;
        for (size_t i = 0; i < s->l->n_requests; i++) {
            const struct sv_llm_request *r = &s->l->requests[i];
            double v = measure(r, m);
            if (r->fate == SV_FATE_RESPONDED && !r->is_warmup && v >= 0)
                s->xs[s->n++] = v;
        }
        sv_panel_sort(s->xs, s->n);
        for (size_t i = 0; i < s->n; i++)
            s->ys[i] = 100.0 * (double)(i + 1) / (double)s->n;
        if (s->n)
            sv_axes_line(&s->a, s->xs, s->ys, s->n, colors[m], SV_LINE_STEPS);
    }
}

/* ---- groups ---- */

static size_t name_groups(const struct sv_llm_groups *g, struct sv_name *names)
{
    size_t n = g->n < SV_NAMES_MAX ? g->n : SV_NAMES_MAX;
    for (size_t i = 0; i < n; i++) {
        if (g->groups[i].from == g->groups[i].to)
            snprintf(names[i].text, sizeof names[i].text, "%" PRIu64, g->groups[i].from);
        else
            snprintf(names[i].text, sizeof names[i].text, "%" PRIu64 "-%" PRIu64, g->groups[i].from,
                     g->groups[i].to);
    }
    return n;
}

/* Names along x: whole numbers between 0.1 and 0.4 have no ticks, then there are as many places as
 * names. */
static void named_scales(struct sheet *s, const struct sv_name *names, size_t n, const char *x_text,
                         double most, const char *y_text)
{
    sv_axes_scales(&s->a, (struct sv_axis){.unit = SV_AXIS_WHOLE, .from = 0.1, .to = 0.4}, x_text,
                   sv_panel_time_axis(most), y_text);
    s->a.ax.from = 0;
    s->a.ax.to = (double)n;
    sv_axes_names_x(&s->a, names, n);
}

/* Bars of p50 with a lighter part up to p99. */
static void put_bars(struct sheet *s, size_t i, double offset, double width,
                     const struct sv_latency *l, uint32_t color, uint32_t light)
{
    double x = (double)i + offset;
    if (!l->n)
        return;
    sv_axes_box(&s->a, x, l->p50_ns, x + width, l->p99_ns, light,
                sv_picture_printf(s->a.p, "p99 %.3f ms", l->p99_ns / 1e6));
    sv_axes_box(&s->a, x, 0, x + width, l->p50_ns, color,
                sv_picture_printf(s->a.p, "p50 %.3f ms", l->p50_ns / 1e6));
}

static void draw_sizes(struct sheet *s)
{
    struct sv_name names[SV_NAMES_MAX];
    const struct sv_llm_groups *g = &s->f->by_size;
    size_t n = name_groups(g, names);
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, g->groups[i].dur.p99_ns);
    const struct sv_legend items[] = {{text(s, "p50"), ORANGE}, {text(s, "p99"), 0xf7d9a0}};
    sv_axes_legend(&s->a, items, 2);
    named_scales(s, names, n, "requests in step", most, "step takes");
    for (size_t i = 0; i < n; i++)
        put_bars(s, i, 0.2, 0.6, &g->groups[i].dur, ORANGE, 0xf7d9a0);
}

static void draw_loads(struct sheet *s)
{
    struct sv_name names[SV_NAMES_MAX];
    const struct sv_llm_groups *g = &s->f->by_load;
    size_t n = name_groups(g, names);
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fmax(g->groups[i].ttft.p99_ns, g->groups[i].e2e.p99_ns));
    const struct sv_legend items[] = {{text(s, "TTFT p50"), BLUE},
                                      {text(s, "p99"), 0xa8cfe6},
                                      {text(s, "E2E p50"), RED},
                                      {text(s, "p99"), 0xf2c0a3}};
    sv_axes_legend(&s->a, items, 4);
    named_scales(s, names, n, "open requests at arrival", most, "latency");
    for (size_t i = 0; i < n; i++) {
        put_bars(s, i, 0.12, 0.36, &g->groups[i].ttft, BLUE, 0xa8cfe6);
        put_bars(s, i, 0.52, 0.36, &g->groups[i].e2e, RED, 0xf2c0a3);
    }
}

static void draw_tpot(struct sheet *s)
{
    struct sv_name names[SV_NAMES_MAX];
    const struct sv_llm_groups *g = &s->f->by_load;
    size_t n = name_groups(g, names);
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, g->groups[i].tpot.p99_ns);
    const struct sv_legend items[] = {{text(s, "p50"), GREEN}, {text(s, "p99"), 0xa6dccb}};
    sv_axes_legend(&s->a, items, 2);
    named_scales(s, names, n, "open requests at arrival", most, "time per output token");
    for (size_t i = 0; i < n; i++)
        put_bars(s, i, 0.2, 0.6, &g->groups[i].tpot, GREEN, 0xa6dccb);
}

static void draw_lengths(struct sheet *s)
{
    double longest = 1, most = 1;
    for (size_t i = 0; i < s->l->n_requests; i++) {
        const struct sv_llm_request *r = &s->l->requests[i];
        if (r->is_warmup || (!r->prompt && !r->output))
            continue;
        add(s, (double)r->prompt, (double)r->output);
        longest = fmax(longest, (double)r->prompt);
        most = fmax(most, (double)r->output);
    }
    sv_axes_scales(&s->a, sv_panel_count_axis(longest), "prompt tokens", sv_panel_count_axis(most),
                   "output tokens");
    put_dots(s, BLUE);
}

/* Mean phases one above the other, of the requests of each load. */
static void draw_phases(struct sheet *s)
{
    struct sv_name names[SV_NAMES_MAX];
    struct sv_legend items[SV_N_ENGINE_PHASES];
    double sums[SV_NAMES_MAX][SV_N_ENGINE_PHASES] = {{0}}, counts[SV_NAMES_MAX] = {0}, most = 0;
    const struct sv_llm_groups *g = &s->f->by_load;
    size_t n = name_groups(g, names), n_items = 0;
    for (size_t i = 0; i < s->l->n_requests; i++) {
        const struct sv_llm_request *r = &s->l->requests[i];
        size_t k = 0;
        while (k < n && (r->load < g->groups[k].from || r->load > g->groups[k].to))
            k++;
        if (k == n || r->fate != SV_FATE_RESPONDED || r->is_warmup)
            continue;
        counts[k]++;
        for (int p = SV_ENGINE_QUEUE; p < SV_N_ENGINE_PHASES; p++)
            sums[k][p] += (double)r->phase_ns[p];
    }
    for (size_t k = 0; k < n; k++) {
        double all = 0;
        for (int p = SV_ENGINE_QUEUE; p < SV_N_ENGINE_PHASES; p++)
            all += counts[k] > 0 ? sums[k][p] / counts[k] : 0;
        most = fmax(most, all);
    }
    for (int p = SV_ENGINE_QUEUE; p < SV_N_ENGINE_PHASES; p++)
        items[n_items++] = (struct sv_legend){text(s, sv_engine_phase_names[p]), phase_colors[p]};
    sv_axes_legend(&s->a, items, n_items);
    named_scales(s, names, n, "open requests at arrival", most, "mean");
    for (size_t k = 0; k < n; k++) {
        double y = 0;
        for (int p = SV_ENGINE_QUEUE; p < SV_N_ENGINE_PHASES && counts[k] > 0; p++) {
            double part = sums[k][p] / counts[k];
            if (part > 0)
                sv_axes_box(
                    &s->a, (double)k + 0.2, y, (double)k + 0.8, y + part, phase_colors[p],
                    sv_picture_printf(s->a.p, "%s %.3f ms", sv_engine_phase_names[p], part / 1e6));
            y += part;
        }
    }
}

/* ---- the sheet ---- */

static const struct {
    const char *title;
    void (*draw)(struct sheet *s);
    bool needs_steps, needs_requests, needs_tokens;
} panels[] = {
    {"Time to first token", draw_ttft, false, true, true},
    {"Time between tokens", draw_itl, true, true, true},
    {"Time of a step", draw_steps, true, false, false},
    {"Requests in a step and waiting", draw_load, true, false, false},
    {"KV cache", draw_kv, true, false, false},
    {"Tokens per second", draw_rates, true, false, true},
    {"Latency distribution", draw_cdf, false, true, false},
    {"Time of a step by its size", draw_sizes, true, false, false},
    {"Latency by load", draw_loads, true, true, false},
    {"Time per output token by load", draw_tpot, true, true, true},
    {"Phases of a request by load", draw_phases, true, true, false},
    {"Lengths of prompts and answers", draw_lengths, false, true, true},
};
#define N_PANELS (sizeof panels / sizeof *panels)

void sv_llm_sheet_draw(struct sv_picture *p, const struct sv_llm *l, const struct sv_llm_figures *f,
                       const struct sv_llm_figure *o)
{
    size_t most = l->n_tokens + l->n_requests + l->n_steps + 2;
    double *values = sv_realloc(NULL, 2 * most * sizeof *values);
    double y = sv_plot_frame_head(
        p, &o->frame,
        sv_picture_printf(p, "%" PRIu64 " requests answered, %" PRIu64 " steps, %" PRIu64 " tokens",
                          f->answered, f->steps, f->output_tokens));
    double w = p->width / COLUMNS, h = floor(w * 0.66);
    size_t rows = (N_PANELS + COLUMNS - 1) / COLUMNS;
    for (size_t i = 0; i < N_PANELS; i++) {
        size_t row = i / COLUMNS, column = i % COLUMNS;
        struct sheet s = {
            .a = {.p = p, .x = w * (double)column, .y = y + h * (double)row, .w = w, .h = h},
            .l = l,
            .f = f,
            .o = o,
            .xs = values,
            .ys = values + most};
        sv_axes_open(&s.a, panels[i].title, NULL);
        if (panels[i].needs_steps && l->n_steps == 0)
            sv_axes_nothing(&s.a, "no data: the trace has no engine steps");
        else if (panels[i].needs_requests && f->answered == 0)
            sv_axes_nothing(&s.a, "no data: no request was answered");
        else if (panels[i].needs_tokens && l->n_tokens == 0 && f->output_tokens == 0)
            sv_axes_nothing(&s.a, "no data: the trace does not say when tokens left");
        else
            panels[i].draw(&s);
    }
    p->height = y + h * (double)rows + SV_MARGIN;
    free(values);
}
