/* Idle devices and communication that nothing hides. Called by explain/explain.c.
 *
 * A gap is no cause by itself: what the launching thread did meanwhile is. Where it waited for
 * somebody, the ledger of the gaps says for whom, by the rules of all other units; the names of its
 * slices say the rest. One gap that has most of the idle time is named alone. */
#include "explain/waits.h"

#include "core/base/sat.h"
#include "subjects/gpu/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_device(struct sv_answer *a, const struct sv_gpu_device *d)
{
    a->culprit.rank = d->rank;
    if (d->number >= 0)
        snprintf(a->culprit.device, sizeof a->culprit.device, "%" PRId64, d->number);
}

static void name_device(struct sv_answer *a, const struct sv_explaining *x,
                        const struct sv_gpu_device *d)
{
    struct sv_text name = sv_dict_text(x->trace->dict, d->name);
    a->culprit.kind = "device";
    set_device(a, d);
    snprintf(a->culprit.name, sizeof a->culprit.name, "%.*s", (int)(name.len < 90 ? name.len : 90),
             name.bytes);
}

/* The slice of the thread that launched the work after a gap which covers most of it. */
static uint32_t slice_in_gap(const struct sv_trace *t, struct sv_span gap)
{
    struct sv_launches launches;
    sv_launches_init(&launches, t);
    uint32_t launch = sv_launch_of(&launches, gap.row), best = SV_NO_ROW, row;
    sv_launches_fini(&launches);
    if (launch == SV_NO_ROW)
        return SV_NO_ROW;
    struct sv_window w = sv_trace_window(t, t->slices.track[launch], gap.from_ns, gap.to_ns);
    while (sv_window_next(&w, &row)) {
        int64_t from = t->slices.ts_ns[row] > gap.from_ns ? t->slices.ts_ns[row] : gap.from_ns,
                end = sv_trace_end_ns(t, row), to = end < gap.to_ns ? end : gap.to_ns;
        /* the innermost that has more than half of it */
        if (t->slices.kind[row] == SV_SLICE && to - from > (gap.to_ns - gap.from_ns) / 2)
            best = row;
    }
    return best;
}

/* What the host did in the longest gap of these. */
static void name_host(struct sv_answer *a, const struct sv_explaining *x, const struct sv_spans *s)
{
    struct sv_span best = {0};
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].to_ns - s->items[i].from_ns > best.to_ns - best.from_ns)
            best = s->items[i];
    uint32_t row = s->n ? slice_in_gap(x->trace, best) : SV_NO_ROW;
    if (row == SV_NO_ROW)
        return;
    struct sv_text name = sv_dict_text(x->trace->dict, x->trace->slices.name[row]);
    snprintf(a->culprit.function, sizeof a->culprit.function, "%.*s",
             (int)(name.len < 90 ? name.len : 90), name.bytes);
    if (!a->culprit.name[0])
        memcpy(a->culprit.name, a->culprit.function, sizeof a->culprit.name);
}

static bool single_gap(struct sv_explaining *x, const struct sv_gpu_device *d, int64_t idle_ns,
                       double share)
{
    struct sv_span gap = d->longest_gap;
    int64_t ns = gap.to_ns - gap.from_ns;
    if (ns < idle_ns / 2)
        return false;
    uint32_t row = slice_in_gap(x->trace, gap);
    struct sv_answer a =
        sv_answer_of(SV_CAUSE_GPU_GAP, share, row != SV_NO_ROW ? "high" : "medium");
    name_device(&a, x, d);
    sv_answer_say(&a,
                  "The GPU is idle %.0f %% of the time, and one gap of %.1f ms has %.0f %% of that",
                  share * 100, (double)ns / 1e6, 100 * (double)ns / (double)idle_ns);
    if (row != SV_NO_ROW) {
        struct sv_text name = sv_dict_text(x->trace->dict, x->trace->slices.name[row]);
        snprintf(a.culprit.function, sizeof a.culprit.function, "%.*s",
                 (int)(name.len < 90 ? name.len : 90), name.bytes);
        sv_answer_say(&a, ": the host was in %s", a.culprit.function);
    }
    sv_answer_say(&a, ".");
    a.worst[0] = (struct sv_worst){.number = -1, .ts_ns = gap.from_ns, .dur_ns = ns};
    a.n_worst = a.n_units = 1;
    sv_answer_command(&a, "report gpu", x->path, " --by gap");
    sv_explain_add(x, &a);
    return true;
}

/* ---- gaps in which the launching thread waits ---- */

/* The same of the units, among the first n findings. */
static struct sv_answer *find_same(struct sv_explanation *e, const struct sv_answer *a)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct sv_culprit *x = &e->findings[i].culprit, *y = &a->culprit;
        if (e->findings[i].cause == a->cause && x->pid == y->pid && x->tid == y->tid &&
            strcmp(x->path, y->path) == 0 && strcmp(x->lock, y->lock) == 0)
            return &e->findings[i];
    }
    return NULL;
}

static bool has_culprit(const struct sv_answer *a)
{
    return a->culprit.name[0] || a->culprit.path[0] || a->cause == SV_CAUSE_CPU;
}

/* Returns the share of the device's time that its findings have. */
static double explain_waits_in(struct sv_explaining *x, struct sv_gpu_report *r,
                               const struct sv_gpu_device *d, int64_t span)
{
    struct sv_explanation own = {.observed = x->e->observed};
    struct sv_explaining gaps = *x;
    double explained = 0;
    if (!r->gaps.states.has_states)
        return 0;
    for (size_t i = 0; i < r->gaps.n_units; i++)
        r->gaps.units[i].counts = i >= d->first_gap && i < d->end_gap;
    gaps.e = &own;
    gaps.ledger = &r->gaps;
    sv_waits_of_gaps(&gaps, span);
    for (size_t i = 0; i < own.n; i++) {
        struct sv_answer *a = &own.findings[i], *same = find_same(x->e, a);
        if (a->share < 2 * SV_EXPLAIN_LEAST || !has_culprit(a))
            continue;
        explained += a->share;
        if (same) {
            sv_answer_say(same, " The GPU is idle for %.0f %% of its time meanwhile.",
                          a->share * 100);
            set_device(same, d);
            continue;
        }
        set_device(a, d);
        a->group = UINT32_MAX;
        sv_answer_say(a, " The GPU is idle meanwhile.");
        sv_answer_command(a, "report gpu", x->path, " --by gap");
        sv_explain_add(x, a);
    }
    return explained;
}

/* ---- gaps by what they are ---- */

struct rule {
    enum sv_gpu_gap gap;
    enum sv_explain_cause cause;
    const char *sure, *words;
};

static void explain_idle(struct sv_explaining *x, struct sv_gpu_report *report,
                         const struct sv_gpu_device *d)
{
    static const struct rule rules[] = {
        {SV_GAP_DATA, SV_CAUSE_GPU_DATA, "high", "because the host loads data"},
        {SV_GAP_LAUNCH, SV_CAUSE_GPU_LAUNCH, "high",
         "because the host has not launched the next work"},
        {SV_GAP_COPY, SV_CAUSE_GPU_COPY, "medium", "while a copy is before the next kernel"},
        {SV_GAP_SYNC, SV_CAUSE_GPU_SYNC, "medium",
         "because the host waited for it before it launched more"},
    };
    int64_t span = sv_sat_sub(d->last_ns, d->first_ns), idle = sv_sat_sub(span, d->busy_ns);
    double all = (double)idle / (double)span;
    if (all < 2 * SV_EXPLAIN_LEAST)
        return;
    double explained = explain_waits_in(x, report, d, span);
    if (explained < all / 2 && single_gap(x, d, idle, all))
        return;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        const struct sv_gpu_gaps *g = &d->gaps[r->gap];
        double share = (double)g->total_ns / (double)span;
        if (share < 2 * SV_EXPLAIN_LEAST || (r->gap == SV_GAP_DATA && explained >= share / 2))
            continue;
        struct sv_answer a = sv_answer_of(r->cause, share, r->sure);
        name_device(&a, x, d);
        a.n_units = g->n;
        name_host(&a, x, &d->idle[r->gap]);
        sv_answer_say(&a,
                      "The GPU is idle %.0f %% of the time %s: %" PRIu64
                      " gaps, the longest %.1f ms; %" PRIu64 " kernels of %.1f us on average.",
                      share * 100, r->words, g->n, (double)g->max_ns / 1e6, d->n_kernels,
                      d->n_kernels ? (double)d->kernels_ns / (double)d->n_kernels / 1e3 : 0);
        sv_answer_command(&a, "report gpu", x->path, " --by gap");
        sv_explain_add(x, &a);
    }
}

/* Communication or copies that no computing hides. */
static void explain_exposed(struct sv_explaining *x, const struct sv_gpu_report *r,
                            const struct sv_gpu_device *d, bool is_copy, const uint8_t *kinds)
{
    int64_t all = d->kinds_ns[is_copy ? SV_GPU_COPIES : SV_GPU_TALKS],
            hidden = is_copy ? d->copy_overlap_ns : d->talk_overlap_ns,
            span = sv_sat_sub(d->last_ns, d->first_ns);
    double share = (double)sv_sat_sub(all, hidden) / (double)span;
    if (share < 2 * SV_EXPLAIN_LEAST)
        return;
    struct sv_answer a =
        sv_answer_of(is_copy ? SV_CAUSE_GPU_COPY : SV_CAUSE_EXPOSED_COMM, share, "high");
    name_device(&a, x, d);
    sv_answer_say(&a,
                  "The GPU is %.0f %% of the time in %s that no computing overlaps; %.0f %% of all "
                  "of it is overlapped",
                  share * 100, is_copy ? "copies" : "communication",
                  100 * (double)hidden / (double)all);
    sv_str most = 0;
    for (size_t i = 0; i < r->n_kernels && !is_copy && !most; i++)
        if (kinds[r->kernels[i].name] == SV_WORK_COMM)
            most = r->kernels[i].name;
    if (most) {
        struct sv_text name = sv_dict_text(x->trace->dict, most);
        snprintf(a.culprit.name, sizeof a.culprit.name, "%.*s",
                 (int)(name.len < 90 ? name.len : 90), name.bytes);
        sv_answer_say(&a, ". Most of it is %s", a.culprit.name);
    }
    sv_answer_say(&a, ".");
    sv_answer_command(&a, "report gpu", x->path, "");
    sv_explain_add(x, &a);
}

void sv_explain_gpu(struct sv_explaining *x)
{
    struct sv_gpu_report r;
    const struct sv_gpu_device *worst = NULL;
    double most = -1;
    if (x->e->observed.recorded[SV_COVERAGE_GPU] < SV_COVERAGE_HAS_SOME)
        return; /* a pass over the trace that would find nothing */
    sv_gpu_report_make(&r, x->trace, x->options ? x->options->unit : NULL);
    uint8_t *kinds = sv_work_of_strings(x->trace->dict);
    for (size_t i = 0; i < r.n_devices; i++) {
        const struct sv_gpu_device *d = &r.devices[i];
        int64_t span = sv_sat_sub(d->last_ns, d->first_ns);
        int64_t wasted = sv_sat_sub(span, d->kinds_ns[SV_GPU_COMPUTES]);
        if (!d->n_kernels || span <= 0)
            continue;
        x->e->observed.has_gpu = true;
        if ((double)wasted / (double)span > most) {
            most = (double)wasted / (double)span;
            worst = d;
        }
    }
    if (worst) {
        explain_idle(x, &r, worst);
        explain_exposed(x, &r, worst, false, kinds);
        explain_exposed(x, &r, worst, true, kinds);
    }
    free(kinds);
    sv_gpu_report_fini(&r);
}
