/* Measures what a recording costs and changes what is recorded: see spend.h and budget.h. Called by
 * the recorder in each round. */
#include "record/session/spend.h"

#include "cli/console.h"
#include "record/sample/procfs.h"
#include "record/session/budget.h"
#include "record/session/recorder.h"
#include "record/spool/defer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETTLES = 3 }; /* measurements in the beginning that do not count */
#define EVERY_NS ((int64_t)1000000000)
#define SOON_NS  ((int64_t)500000000) /* where it already costs more than it may */

struct sv_spending {
    struct sv_budget budget;
    int64_t every_ns, soon_ns;
    int64_t settled_ns;                /* when the beginning is over; 0: it is */
    int64_t looked_ns, looked_cost_ns; /* at the recorder's own cost, as of then */
    double workload;                   /* CPU of the workload per time, at the last measurement */
    int64_t last_ns, last_cpu_ns, last_programs_ns, last_workload_ns;
    bool has_programs; /* the kernel measures its programs */
    bool has_calls;    /* the programs of system calls are attached */
    bool is_said;      /* that nothing is left to give up */
    sv_track row;
    double ns_per_tick;
};

int sv_spending_check(const struct sv_record_options *o, struct sv_err *err)
{
    double share;
    if (o->budget && !sv_budget_parse(o->budget, &share))
        return sv_err_set(
            err, SV_EUSAGE, SV_NO_POS,
            "--budget: '%s' is not a share of the workload's CPU such as 1%% or 0.5%%", o->budget);
    if (o->budget && o->only)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--budget: with --only nothing is recorded that could be given up");
    return 0;
}

/* ---- measuring ---- */

/* Of a process, and of its children that have ended and were waited for. */
static uint64_t ticks_of(uint32_t pid)
{
    char path[64], text[1024];
    unsigned long long user, system;
    long long of_children[2];
    snprintf(path, sizeof path, "%s/%u/stat", sv_procfs_root(), pid);
    size_t n = sv_procfs_text(path, text, sizeof text);
    const char *at = n ? strrchr(text, ')') : NULL;
    if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
                      &user, &system, &of_children[0], &of_children[1]) != 4)
        return 0;
    return user + system + (uint64_t)of_children[0] + (uint64_t)of_children[1];
}

/* Of the whole machine: user, nice, system. */
static uint64_t ticks_of_all(void)
{
    char path[64], text[4096];
    unsigned long long user, nice, system;
    snprintf(path, sizeof path, "%s/stat", sv_procfs_root());
    return sv_procfs_text(path, text, sizeof text) &&
                   sscanf(text, "cpu %llu %llu %llu", &user, &nice, &system) == 3
               ? user + nice + system
               : 0;
}

/* CPU of what is recorded, since ever. Processes that ended and that no recorded one has waited for
 * are missing: then it is less than before, which counts as nothing. */
static int64_t workload_ns(const struct sv_recorder *r)
{
    const struct sv_tree *t = sv_decode_tree(r->system.decode);
    uint64_t ticks = 0;
    if (r->options->all)
        return (int64_t)((double)ticks_of_all() * r->spending->ns_per_tick) - sv_recorder_cpu_ns();
    for (size_t i = 0; i < t->n; i++)
        if (!t->processes[i]->is_ended && t->processes[i]->pid)
            ticks += ticks_of(t->processes[i]->pid);
    return (int64_t)((double)ticks * r->spending->ns_per_tick);
}

static int64_t since(int64_t now, int64_t *last)
{
    int64_t more = now > *last ? now - *last : 0;
    *last = now;
    return more;
}

static struct sv_budget_cost measure(struct sv_recorder *r, int64_t now)
{
    struct sv_spending *s = r->spending;
    struct sv_budget_cost c = {.took_ns = since(now, &s->last_ns)};
    c.workload_ns = since(workload_ns(r), &s->last_workload_ns);
    c.cost_ns = since(sv_recorder_cpu_ns(), &s->last_cpu_ns);
    if (s->has_programs)
        c.cost_ns += since(sv_kernel_run_ns(r->system.kernel), &s->last_programs_ns);
    s->workload = c.took_ns > 0 ? (double)c.workload_ns / (double)c.took_ns : 0;
    return c;
}

/* Each second; sooner where the recorder itself has used more than its share of what the workload
 * used lately. */
static bool is_due(struct sv_recorder *r, int64_t now)
{
    struct sv_spending *s = r->spending;
    enum { LEAST_PART = 10 };
    if (s->settled_ns && now < s->settled_ns)
        return false;
    if (s->settled_ns) {
        s->settled_ns = 0;
        sv_budget_passed(&s->budget, measure(r, now).took_ns);
    }
    if (now - s->last_ns >= s->every_ns || now - s->looked_ns < s->soon_ns)
        return now - s->last_ns >= s->every_ns;
    int64_t cost = sv_recorder_cpu_ns(), took = since(now, &s->looked_ns);
    if (s->has_programs)
        cost += sv_kernel_run_ns(r->system.kernel);
    double most = s->workload > 1.0 / LEAST_PART ? s->workload : 1.0 / LEAST_PART;
    return (double)since(cost, &s->looked_cost_ns) > s->budget.share * most * (double)took;
}

/* ---- carrying out ---- */

/* While its probes were not there calls have opened and closed files: they are asked for anew. */
static int attach_calls(struct sv_recorder *r, bool is_on, struct sv_err *err)
{
    if (r->spending->has_calls == is_on)
        return 0;
    r->spending->has_calls = is_on;
    int code = is_on ? sv_defer_catch_up(r, err) : 0;
    if (code >= 0 && is_on)
        sv_decode_missed(r->system.decode);
    return code < 0 ? code : sv_kernel_attach_calls(r->system.kernel, is_on, err);
}

static int apply(struct sv_recorder *r, struct sv_err *err)
{
    const uint64_t *v = r->spending->budget.values;
    struct sv_kernel *k = r->system.kernel;
    if (r->system.plan.probes[SV_PROBE_sample])
        sv_kernel_sample(k, (unsigned)v[SV_BUDGET_SAMPLES]);
    sv_kernel_limit(k, &(struct sv_kernel_limits){.call_min_ns = v[SV_BUDGET_CALLS],
                                                  .wait_min_ns = v[SV_BUDGET_WAITS],
                                                  .has_stacks = v[SV_BUDGET_STACKS] != 0});
    return r->system.plan.groups ? attach_calls(r, v[SV_BUDGET_PROBES] != 0, err) : 0;
}

/* Names of arguments' values, by enum sv_budget_what. */
static const char *const whats[SV_N_BUDGET] = {"sample_hz", "wait_stacks", "offcpu_min_ns",
                                               "min_latency_ns", "call_probes"};

static int write_instant(struct sv_recorder *r, const struct sv_budget_step *step, bool is_back,
                         int64_t now, struct sv_err *err)
{
    struct sv_spending *s = r->spending;
    struct sv_dict *d = r->dict;
    const char *what = whats[step->what];
    if (!s->row)
        s->row = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "Recorder"));
    const struct sv_arg args[] = {
        {.key = sv_dict_cstr(d, "what"),
         .type = SV_ARG_TEXT,
         .size = (uint32_t)strlen(what) & 0xffffff,
         .text = what},
        {.key = sv_dict_cstr(d, "from"), .type = SV_ARG_INT, .i = (int64_t)step->from},
        {.key = sv_dict_cstr(d, "to"), .type = SV_ARG_INT, .i = (int64_t)step->to},
        {.key = sv_dict_cstr(d, "cost"), .type = SV_ARG_DOUBLE, .d = s->budget.cost},
        {.key = sv_dict_cstr(d, "budget"), .type = SV_ARG_DOUBLE, .d = s->budget.share},
    };
    struct sv_event e = {.ts_ns = now,
                         .track = s->row,
                         .name = sv_dict_cstr(d, is_back ? "more detail" : "less detail"),
                         .cat = sv_dict_cstr(d, "recorder"),
                         .kind = SV_INSTANT,
                         .flags = SV_SCOPE_GLOBAL,
                         .n_args = sizeof args / sizeof *args,
                         .args = args};
    return r->meter.input->write(r->meter.input, &e, 1, err);
}

/* Not in the coverage of a part: what the budget was, and whether all of the cost was seen. */
static void describe(struct sv_recorder *r)
{
    const struct sv_spending *s = r->spending;
    char text[160];
    snprintf(text, sizeof text, "share=%g%% cost=%.3g%% gave_up=%u took_back=%u programs=%s",
             100 * s->budget.share, 100 * s->budget.cost, s->budget.n_gave_up,
             s->budget.n_took_back, s->has_programs ? "measured" : "not_measured");
    sv_dict_set_meta(r->dict, "budget", text, strlen(text), false);
    sv_record_describe_parts(r);
}

/* Once: every step is taken, and it is not enough. */
static void say_exhausted(struct sv_spending *s)
{
    const struct sv_budget *b = &s->budget;
    if (s->is_said || b->n_taken < b->n_steps || b->cost <= b->share)
        return;
    s->is_said = true;
    sv_console_note("--budget: all that can be given up is given up, and the recording still costs "
                    "%.3g %% of the workload's CPU; --no-io would record no system calls",
                    100 * b->cost);
}

int sv_spending_round(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_spending *s = r->spending;
    struct sv_budget_step step;
    if (!s || !is_due(r, now))
        return 0;
    s->looked_ns = now;
    struct sv_budget_cost cost = measure(r, now);
    unsigned n_before = s->budget.n_took_back;
    if (!sv_budget_measure(&s->budget, &cost, &step)) {
        say_exhausted(s);
        return 0;
    }
    bool is_back = s->budget.n_took_back != n_before;
    struct sv_budget_step steps[SV_BUDGET_STEPS] = {step};
    size_t n = 1;
    while (n < SV_BUDGET_STEPS && sv_budget_more(&s->budget, &steps[n]))
        n++;
    int code = apply(r, err);
    /* Less is recorded from the end of the change on, more from its beginning. */
    int64_t at = is_back ? now : sv_recorder_now_ns();
    for (size_t i = 0; code >= 0 && i < n; i++)
        code = write_instant(r, &steps[i], is_back, at, err);
    describe(r);
    /* What the change itself has cost says nothing of what it brings. */
    sv_budget_passed(&s->budget, measure(r, sv_recorder_now_ns()).took_ns);
    return code;
}

/* ---- begin and end ---- */

static struct sv_budget_start start_of(const struct sv_recorder *r)
{
    const struct sv_kernel_options *o = &r->system.plan;
    /* Plain hooks find processes by their calls. */
    bool is_typed = sv_kernel_hooks(r->system.kernel) != SV_HOOKS_PLAIN;
    bool has_waits = o->probes[SV_PROBE_offcpu] && sv_kernel_knows_calls(r->system.kernel);
    return (struct sv_budget_start){
        {[SV_BUDGET_SAMPLES] = {o->probes[SV_PROBE_sample] != 0, o->probes[SV_PROBE_sample]},
         [SV_BUDGET_STACKS] = {has_waits, 1},
         [SV_BUDGET_WAITS] = {has_waits, o->offcpu_min_ns},
         [SV_BUDGET_CALLS] = {o->groups != 0, o->min_latency_ns},
         [SV_BUDGET_PROBES] = {o->groups != 0 && is_typed, 1}}};
}

void sv_spending_open(struct sv_recorder *r)
{
    double share;
    const char *test = getenv("STAVE_BUDGET_MS"); /* for tests, which do not wait for seconds */
    if (!r->options->budget || !r->system.kernel || !sv_budget_parse(r->options->budget, &share))
        return;
    struct sv_spending *s = r->spending = sv_alloc(sizeof *s);
    long ms = test ? strtol(test, NULL, 10) : 0;
    s->every_ns = ms > 0 && ms < 1000 ? ms * 1000000 : EVERY_NS;
    s->soon_ns = s->every_ns < SOON_NS ? s->every_ns : SOON_NS;
    s->ns_per_tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
    s->has_calls = true;
    s->has_programs = sv_kernel_time_programs(r->system.kernel);
    if (!s->has_programs)
        sv_console_note("--budget: the time of kernel programs is not measured, only that of stave "
                        "itself (it needs Linux 5.8 and CAP_SYS_ADMIN)");
    struct sv_budget_start start = start_of(r);
    sv_budget_open(&s->budget, share, &start);
    measure(r, sv_recorder_now_ns());
    /* Symbols and processes are read once, in the beginning. */
    s->settled_ns = s->last_ns + SETTLES * s->every_ns;
    describe(r);
}

void sv_spending_finish(struct sv_recorder *r, int64_t now)
{
    struct sv_spending *s = r->spending;
    char text[32];
    if (!s)
        return;
    sv_budget_passed(&s->budget, since(now, &s->last_ns));
    uint64_t n = sv_kernel_count(r->system.kernel).filtered;
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    sv_dict_set_meta(r->dict, "calls_left_out", text, strlen(text), false);
    describe(r);
}

void sv_spending_now(const struct sv_recorder *r, double *budget, double *cost, uint64_t *steps)
{
    const struct sv_spending *s = r->spending;
    *budget = s ? s->budget.share : 0;
    *cost = s ? s->budget.cost : 0;
    *steps = s ? s->budget.n_taken : 0;
}

void sv_spending_close(struct sv_recorder *r)
{
    free(r->spending);
    r->spending = NULL;
}

void sv_spending_words(const struct sv_recorder *r, enum sv_coverage_part part, char *text,
                       size_t size)
{
    text[0] = 0;
    const struct sv_budget *b = r->spending ? &r->spending->budget : NULL;
    const struct sv_budget_gap *gap = !b                            ? NULL
                                      : part == SV_COVERAGE_SAMPLES ? &b->gaps[SV_BUDGET_OF_SAMPLES]
                                      : part == SV_COVERAGE_WAITS   ? &b->gaps[SV_BUDGET_OF_WAITS]
                                      : part == SV_COVERAGE_CALLS || part == SV_COVERAGE_SOCKETS
                                          ? &b->gaps[SV_BUDGET_OF_CALLS]
                                          : NULL;
    if (gap && (gap->off_ns || gap->less_ns))
        snprintf(text, size, " off_ns=%lld less_ns=%lld of_ns=%lld", (long long)gap->off_ns,
                 (long long)gap->less_ns, (long long)b->all_ns);
}
