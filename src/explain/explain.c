/* What slows a run down: the whole, and what its parts share. Called by the command explain. */
#include "explain/explain.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/stream/frame_text.h"
#include "subjects/engine/request_units.h"
#include "subjects/io/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sv_explain_words[SV_N_CAUSES] = {
#define WORD(member, word, advice) word,
    SV_EXPLAIN_CAUSES(WORD)
#undef WORD
};
const char *const sv_explain_advice[SV_N_CAUSES] = {
#define WORD(member, word, advice) advice,
    SV_EXPLAIN_CAUSES(WORD)
#undef WORD
};

/* ---- findings ---- */

struct sv_answer sv_answer_of(enum sv_explain_cause cause, double share, const char *sure)
{
    return (struct sv_answer){.cause = cause,
                              .share = share,
                              .gain = share,
                              .group = UINT32_MAX,
                              .sure = sure,
                              .culprit = SV_NOBODY,
                              .in_rank = -1};
}

void sv_answer_command(struct sv_answer *a, const char *verb, const char *path, const char *options)
{
    snprintf(a->command, sizeof a->command, "stave %s %.100s%s", verb, path, options);
}

void sv_answer_say(struct sv_answer *a, const char *fmt, ...)
{
    size_t n = strlen(a->sentence);
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->sentence + n, sizeof a->sentence - n, fmt, args);
    va_end(args);
}

static bool is_called(const struct sv_culprit *c, const char *name, size_t len)
{
    const char *const texts[] = {c->name, c->function, c->path, c->lock, c->host, c->device};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i]) == len && memcmp(texts[i], name, len) == 0)
            return true;
    return false;
}

/* Is it among "CAUSE" and "CAUSE:CULPRIT"? */
static bool is_ignored(const struct sv_explain_options *o, const struct sv_answer *a)
{
    const char *word = sv_explain_words[a->cause], *at = o ? o->ignore : NULL;
    while (at && *at) {
        size_t len = strcspn(at, "\n"), cause = strcspn(at, "\n:");
        bool is_cause = strlen(word) == cause && memcmp(word, at, cause) == 0;
        if (is_cause && (cause == len || is_called(&a->culprit, at + cause + 1, len - cause - 1)))
            return true;
        at += len + strspn(at + len, "\n");
    }
    return false;
}

void sv_explain_add(struct sv_explaining *x, const struct sv_answer *a)
{
    struct sv_explanation *e = x->e;
    size_t at = e->n;
    if (is_ignored(x->options, a)) {
        e->n_ignored++;
        return;
    }
    while (at > 0 && e->findings[at - 1].share < a->share)
        at--;
    if (at == SV_EXPLAIN_MAX) {
        e->n_suspended++;
        return;
    }
    if (e->n < SV_EXPLAIN_MAX)
        e->n++;
    else
        e->n_suspended++;
    memmove(&e->findings[at + 1], &e->findings[at], (e->n - at - 1) * sizeof *e->findings);
    e->findings[at] = *a;
}

/* ---- names ---- */

void sv_explain_name(const struct sv_trace *t, sv_track thread, char *to, size_t size)
{
    const struct sv_dict *d = t->dict;
    sv_track process = sv_dict_process_of(d, thread);
    struct sv_text own = sv_dict_text(d, d->tracks[thread].name),
                   its = process ? sv_dict_text(d, d->tracks[process].name)
                                 : (struct sv_text){"", 0};
    struct sv_text name = own.len ? own : its;
    snprintf(to, size, "%.*s", (int)(name.len < 80 ? name.len : 80), name.bytes);
    if (!name.len)
        snprintf(to, size, "thread %" PRId64, d->tracks[thread].tid);
}

void sv_culprit_frame(struct sv_culprit *c, struct sv_text frame)
{
    struct sv_frame_parts p = sv_frame_parts(frame.bytes, frame.len);
    snprintf(c->function, sizeof c->function, "%.*s", (int)p.function_len, frame.bytes);
    snprintf(c->file, sizeof c->file, "%.*s", (int)p.file_len, frame.bytes + p.file_at);
    c->line = p.line;
}

/* ---- the whole ---- */

static void doubt(struct sv_answer *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i].sure, "high") == 0)
            a[i].sure = "medium";
}

static struct sv_answer *find(struct sv_explanation *e, enum sv_explain_cause cause)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->findings[i].cause == cause)
            return &e->findings[i];
    return NULL;
}

static void drop(struct sv_explanation *e, const struct sv_answer *a)
{
    size_t at = (size_t)(a - e->findings);
    memmove(&e->findings[at], &e->findings[at + 1], (--e->n - at) * sizeof *e->findings);
}

/* What other ranks wait for comes after what the rank that they wait for has. */
static void order_ranks(struct sv_explanation *e)
{
    size_t own = 0, comm = 0;
    while (comm < e->n &&
           (e->findings[comm].cause != SV_CAUSE_COMM || e->findings[comm].culprit.rank < 0))
        comm++;
    if (comm == e->n)
        return;
    struct sv_answer a = e->findings[comm];
    for (size_t i = comm + 1; i < e->n; i++)
        if (e->findings[i].in_rank == a.culprit.rank && !own)
            own = i;
    if (!own)
        return;
    memmove(&e->findings[comm], &e->findings[comm + 1], (own - comm) * sizeof a);
    e->findings[own] = a;
}

/* Two findings about the same time are one: a full queue that refuses requests, a GPU that is idle
 * while the host loads data. */
static void join_findings(struct sv_explanation *e)
{
    static const struct {
        enum sv_explain_cause of, is_one_with;
    } pairs[] = {{SV_CAUSE_QUEUE, SV_CAUSE_REJECTED},
                 {SV_CAUSE_DATA, SV_CAUSE_GPU_DATA},
                 {SV_CAUSE_COMM, SV_CAUSE_STRAGGLER_RANK},
                 {SV_CAUSE_COMM, SV_CAUSE_STRAGGLER_HOST},
                 {SV_CAUSE_COMM, SV_CAUSE_STRAGGLER_STAGE},
                 {SV_CAUSE_EXPOSED_COMM, SV_CAUSE_STRAGGLER_RANK},
                 {SV_CAUSE_EXPOSED_COMM, SV_CAUSE_STRAGGLER_HOST},
                 {SV_CAUSE_EXPOSED_COMM, SV_CAUSE_STRAGGLER_STAGE}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct sv_answer *a = find(e, pairs[i].of);
        if (a && find(e, pairs[i].is_one_with))
            drop(e, a);
    }
    order_ranks(e);
}

/* "samples for 12 s, some waits for 9 s, of 60 s". */
static void put_given_up(struct sv_observed *o, const struct sv_coverage *c)
{
    static const enum sv_coverage_part parts[] = {SV_COVERAGE_SAMPLES, SV_COVERAGE_WAITS,
                                                  SV_COVERAGE_CALLS};
    size_t n = 0, size = sizeof o->given_up;
    int64_t of_ns = 0;
    o->given_up[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct sv_coverage_limits *l = &c->parts[parts[i]];
        const int64_t ns[] = {l->off_ns, l->less_ns};
        of_ns = l->of_ns > of_ns ? l->of_ns : of_ns;
        for (size_t k = 0; k < 2 && n < size; k++)
            if (ns[k])
                n += (size_t)snprintf(o->given_up + n, size - n, "%s%s%s for %.3g s", n ? ", " : "",
                                      k ? "some " : "", sv_coverage_names[parts[i]],
                                      (double)ns[k] / 1e9);
    }
    if (n && n < size)
        snprintf(o->given_up + n, size - n, ", of %.3g s", (double)of_ns / 1e9);
}

static void observe(struct sv_explaining *x)
{
    enum { LOST_PART = 100 };
    const struct sv_ledger *l = x->ledger;
    const struct sv_trace *t = x->trace;
    struct sv_observed *o = &x->e->observed;
    int64_t states = 0, calls = 0, slices = 0;
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        const struct sv_why_unit *u = &l->units[p->unit];
        if (!u->counts || u->thread == SV_NO_THREAD)
            continue;
        states += l->states.threads[u->thread].state ? p->dur_ns : 0;
        calls += l->states.threads[u->thread].calls ? p->dur_ns : 0;
        slices += p->row != SV_NO_ROW && p->row != u->row && !sv_state_has_file(&l->states, p->row)
                      ? p->dur_ns
                      : 0;
    }
    double all = l->dur_ns > 0 ? (double)l->dur_ns : 1;
    o->states = (double)states / all;
    o->calls = (double)calls / all;
    o->slices = (double)slices / all;
    struct sv_coverage c;
    sv_coverage_of(&c, t);
    for (int i = 0; i < SV_N_COVERAGE_PARTS; i++)
        o->recorded[i] = (uint8_t)c.parts[i].is;
    put_given_up(o, &c);
    struct sv_text only = c.parts[SV_COVERAGE_SOCKETS].only;
    o->has_all_sockets = c.parts[SV_COVERAGE_SOCKETS].is == SV_COVERAGE_HAS_ALL && !only.len;
    o->has_stacks = l->locks.n_waits > 0;
    o->has_flows = t->flows.n > 0;
    o->is_looked = sv_coverage_is_looked(t->dict);
    for (uint64_t i = 0; i < t->losses.n; i++)
        o->lost += t->losses.count[i];
    o->is_lossy = o->lost > t->slices.n / LOST_PART;
}

/* ---- cgroups ---- */

static void put_cgroup(struct sv_answer *a, size_t n, int64_t pid, const struct sv_arg *cgroup)
{
    for (size_t i = 0; i < n; i++) {
        struct sv_culprit *c = &a[i].culprit;
        if (c->pid == pid && !c->cgroup[0])
            snprintf(c->cgroup, sizeof c->cgroup, "%.*s",
                     (int)(cgroup->size < sizeof c->cgroup ? cgroup->size : sizeof c->cgroup - 1),
                     cgroup->text);
    }
}

/* The control groups of culprits, which name container and pod: said when a program begins. */
static void find_cgroups(struct sv_explanation *e, const struct sv_trace *t)
{
    sv_str cat = sv_dict_find_str(t->dict, SV_CAT_PROCESS, strlen(SV_CAT_PROCESS)),
           key = sv_dict_find_str(t->dict, "cgroup", 6);
    struct sv_arg cgroup;
    if (!cat || !key || (!e->n && !e->slow.n_findings))
        return;
    for (uint64_t row = 0; row < t->slices.n; row++) {
        if (t->slices.cat[row] != cat || !sv_trace_arg(t, t->slices.args[row], key, &cgroup) ||
            cgroup.type != SV_ARG_TEXT)
            continue;
        int64_t pid = t->dict->tracks[sv_dict_process_of(t->dict, t->slices.track[row])].pid;
        put_cgroup(e->findings, e->n, pid, &cgroup);
        put_cgroup(e->slow.findings, e->slow.n_findings, pid, &cgroup);
    }
}

/* ---- units ---- */

static void set_units(struct sv_explanation *e, const struct sv_ledger *l)
{
    static const char *const of[SV_N_UNIT_KINDS] = {"the steps and the time between them",
                                                    "",
                                                    "the epochs",
                                                    "the phases",
                                                    "the main thread",
                                                    "the requests",
                                                    "the turns of a loop"};
    static const char *const kinds[SV_N_UNIT_KINDS] = {"step",   "step",    "epoch", "phase",
                                                       "thread", "request", "loop"};
    e->dur_ns = l->dur_ns;
    e->of = of[l->kind];
    e->unit_kind = kinds[l->kind];
    e->n_units = l->n_counted;
    e->median_ns = l->median_ns;
    e->is_found = l->is_found;
    for (int k = 0; k < SV_N_WHY_CLASSES; k++)
        e->shares[k] = l->dur_ns > 0 ? (double)l->class_ns[k] / (double)l->dur_ns : 0;
}

static void explain_also(struct sv_explaining *x, const struct sv_ledger *l)
{
    struct sv_explaining own = *x;
    own.ledger = l;
    own.e = x->e->also = sv_alloc(sizeof *x->e->also);
    set_units(own.e, l);
    sv_explain_waits(&own);
    sv_explain_hot(&own);
    join_findings(own.e);
}

/* Units of another kind that take a good part of the time, beside those that were explained: steps
 * beside requests, phases beside steps. */
static void explain_others(struct sv_explaining *x, struct sv_ledger *l)
{
    enum { GOOD_PART = 5 };
    struct sv_ledger steps;
    if (l->kind != SV_UNIT_IS_REQUEST || l->is_found) {
        if (sv_units_count_others(l, x->e->dur_ns / GOOD_PART))
            explain_also(x, l);
        return;
    }
    sv_ledger_make(&steps, x->trace, &(struct sv_ledger_options){.step = -1});
    if (steps.kind == SV_UNIT_IS_STEP)
        explain_also(x, &steps);
    sv_ledger_fini(&steps);
}

void sv_explain(struct sv_explanation *e, const struct sv_trace *t, const char *path,
                const struct sv_explain_options *o)
{
    struct sv_ledger l;
    struct sv_cpu_counts counts;
    struct sv_explaining x = {
        .e = e, .trace = t, .ledger = &l, .path = path, .options = o, .counts = &counts};
    *e = (struct sv_explanation){0};
    sv_cpu_counts_find(&counts, t);
    sv_why_make(&l, t, &(struct sv_ledger_options){.step = -1, .marker = o ? o->unit : NULL});
    set_units(e, &l);
    observe(&x);
    if (!sv_explain_serving(&x))
        sv_explain_waits(&x);
    sv_explain_queued(&x);
    sv_explain_hot(&x);
    sv_explain_gpu(&x);
    sv_explain_ranks(&x);
    sv_explain_memory(&x);
    join_findings(e);
    if (e->observed.is_looked || e->observed.is_lossy) {
        doubt(e->findings, e->n);
        doubt(e->slow.findings, e->slow.n_findings);
    }
    find_cgroups(e, t);
    bool is_dark = e->observed.is_looked && e->shares[SV_WHY_UNKNOWN] > 0.5;
    e->can_say = e->n > 0 || e->observed.has_gpu || e->observed.has_requests ||
                 (!is_dark && (e->observed.states > 0.5 || e->observed.calls > 0.5));
    if (!o || !o->unit)
        explain_others(&x, &l);
    sv_cpu_counts_fini(&counts);
    sv_ledger_fini(&l);
}

bool sv_explain_is_whole(const struct sv_explanation *e)
{
    const struct sv_observed *o = &e->observed;
    return (o->states > 0.5 || o->has_gpu) && !o->is_lossy &&
           e->shares[SV_WHY_UNKNOWN] < SV_EXPLAIN_LEAST;
}

void sv_explanation_fini(struct sv_explanation *e)
{
    free(e->also);
    e->also = NULL;
}
