/* Waits for a CPU: who had it, and what the kernel itself counted. Called by
 * explain/explain_waits.c. */
#include "explain/waits.h"

#include "core/base/mem.h"
#include "core/base/sat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sv_str find(const struct sv_trace *t, const char *word)
{
    return sv_dict_find_str(t->dict, word, strlen(word));
}

static int64_t number(const struct sv_trace *t, uint32_t args, sv_str key, int64_t none)
{
    struct sv_arg a;
    return key && sv_trace_arg(t, args, key, &a) && a.type == SV_ARG_INT ? a.i : none;
}

/* By thread: is its time part of what is looked at? To be freed. */
static bool *threads_of_units(const struct sv_ledger *l)
{
    bool *is_own = sv_alloc((size_t)l->states.n + 1);
    for (size_t i = 0; i < l->n_units; i++)
        if (l->units[i].counts && l->units[i].thread != SV_NO_THREAD)
            is_own[l->units[i].thread] = true;
    return is_own;
}

/* The same, of who could run and did not in a group of waits. To be freed. */
static bool *threads_of_group(const struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    bool *is_queued = sv_alloc((size_t)l->states.n + 1);
    for (size_t i = 0; i < l->n_pieces; i++)
        if (l->pieces[i].doing == SV_DOING_QUEUED && l->pieces[i].thread != SV_NO_THREAD &&
            sv_waits_has(w, i))
            is_queued[l->pieces[i].thread] = true;
    return is_queued;
}

struct rivals {
    struct sv_why_sums by_who, by_pid; /* the piece is the row; of a name; and of a process */
    int64_t ns, outside_ns;            /* all of them; of it those that are not recorded */
    int64_t delay_ns;                  /* what the kernel counted … */
    int64_t quota_ns, most_quota_ns;   /* held back by a quota; the most in a row, and that row */
    uint32_t quota;
    int64_t life_ns; /* … in the life of these threads */
    bool is_counted;
};

static void add_row(uint32_t **rows, size_t *n, uint32_t row)
{
    if ((*n & (*n - 1)) == 0) /* a power of two: it is full */
        *rows = sv_realloc(*rows, (*n ? 2 * *n : 1) * sizeof **rows);
    (*rows)[(*n)++] = row;
}

void sv_cpu_counts_find(struct sv_cpu_counts *c, const struct sv_trace *t)
{
    sv_str rival = find(t, SV_CAT_CPU_RIVAL), stat = find(t, SV_CAT_SCHEDSTAT);
    *c = (struct sv_cpu_counts){0};
    for (uint32_t row = 0; row < t->slices.n && (rival || stat); row++) {
        sv_str cat = t->slices.cat[row];
        if (cat && cat == rival)
            add_row(&c->rivals, &c->n_rivals, row);
        else if (cat && cat == stat)
            add_row(&c->stats, &c->n_stats, row);
    }
}

void sv_cpu_counts_fini(struct sv_cpu_counts *c)
{
    free(c->rivals);
    free(c->stats);
}

/* The row's thread, if it is one of these; SV_NO_THREAD: it is none. */
static uint32_t thread_of_row(const struct sv_explaining *x, const bool *is_own, uint32_t row)
{
    uint32_t thread = sv_thread_of(&x->ledger->states, x->trace->slices.track[row]);
    return thread != SV_NO_THREAD && is_own[thread] ? thread : SV_NO_THREAD;
}

static void read_stats(const struct sv_explaining *x, struct rivals *r, const bool *is_own)
{
    const struct sv_trace *t = x->trace;
    sv_str delay = find(t, SV_SCHEDSTAT_DELAY);
    for (size_t i = 0; i < x->counts->n_stats; i++) {
        uint32_t row = x->counts->stats[i], thread = thread_of_row(x, is_own, row);
        if (thread == SV_NO_THREAD)
            continue;
        const struct sv_thread_rows *life = &x->ledger->states.threads[thread];
        r->is_counted = true;
        r->life_ns = sv_sat_add(r->life_ns, sv_sat_sub(life->to_ns, life->from_ns));
        r->delay_ns = sv_sat_add(r->delay_ns, number(t, t->slices.args[row], delay, 0));
    }
}

/* Those of these threads, which it frees. */
static void read_rivals(const struct sv_explaining *x, struct rivals *r, bool *is_own)
{
    const struct sv_trace *t = x->trace;
    sv_str dur = find(t, SV_RIVAL_DUR), tid = find(t, SV_RIVAL_TID), name = find(t, SV_RIVAL),
           pid = find(t, SV_RIVAL_PID), outside = find(t, SV_RIVAL_OUTSIDE),
           quota = find(t, SV_QUOTA_NAME);
    read_stats(x, r, is_own);
    for (size_t i = 0; i < x->counts->n_rivals; i++) {
        uint32_t row = x->counts->rivals[i], args = t->slices.args[row];
        struct sv_arg a = {.text = "", .size = 0};
        if (thread_of_row(x, is_own, row) == SV_NO_THREAD || !name ||
            !sv_trace_arg(t, args, name, &a) || a.type != SV_ARG_TEXT)
            continue;
        /* threads of one name are one rival: a crowd of workers */
        int64_t ns = number(t, args, dur, 0);
        bool is_others = number(t, args, tid, -1) < 0 && a.size == strlen(SV_RIVAL_OTHERS) &&
                         memcmp(a.text, SV_RIVAL_OTHERS, a.size) == 0;
        if (t->slices.name[row] == quota) {
            r->quota_ns = sv_sat_add(r->quota_ns, ns);
            r->quota = ns > r->most_quota_ns ? row : r->quota;
            r->most_quota_ns = ns > r->most_quota_ns ? ns : r->most_quota_ns;
            continue;
        }
        r->ns = sv_sat_add(r->ns, ns);
        if (is_others)
            continue;
        bool is_outside = number(t, args, outside, 0) != 0;
        r->outside_ns = sv_sat_add(r->outside_ns, is_outside ? ns : 0);
        uint64_t hash = sv_hash_bytes(a.text, a.size, is_outside);
        sv_why_sums_add(&r->by_who, hash, row, ns);
        sv_why_sums_add(&r->by_pid, sv_mix64(hash ^ (uint64_t)number(t, args, pid, -1)), row, ns);
    }
    free(is_own);
}

/* Does one process have most of what those of this name have? */
static bool is_of_one(const struct rivals *r, const struct sv_why_sum *name, int64_t pid)
{
    uint64_t key = sv_mix64(name->key ^ (uint64_t)pid);
    for (size_t i = 0; i < r->by_pid.n && pid >= 0; i++)
        if (r->by_pid.items[i].key == key)
            return r->by_pid.items[i].ns > name->ns / 10 * 6;
    return false;
}

static const char for_outside[] = "Stop it, or give the program CPUs of its own.";
static const char for_quota[] = "Raise the quota of its group (cpu.max), or start fewer threads.";

/* The thread's group has used what it may. */
static void say_quota(struct sv_wait_group *w, const struct rivals *r)
{
    const struct sv_trace *t = w->x->trace;
    struct sv_answer *a = &w->answer;
    struct sv_arg cgroup;
    sv_str key = find(t, SV_RIVAL_CGROUP);
    int64_t all = r->delay_ns > r->quota_ns ? r->delay_ns : r->quota_ns;
    sv_answer_say(a, ": for %.0f %% of that the quota of its group (cpu.max) is used up",
                  100 * (double)r->quota_ns / (double)all);
    if (key && sv_trace_arg(t, t->slices.args[r->quota], key, &cgroup) &&
        cgroup.type == SV_ARG_TEXT) {
        snprintf(a->culprit.cgroup, sizeof a->culprit.cgroup, "%.*s",
                 (int)(cgroup.size < 200 ? cgroup.size : 200), cgroup.text);
        sv_answer_say(a, ", cgroup %.100s", a->culprit.cgroup);
    }
    sv_answer_say(a, ".");
}

static bool is_outside(const struct sv_trace *t, const struct sv_why_sum *rival)
{
    return number(t, t->slices.args[rival->piece], find(t, SV_RIVAL_OUTSIDE), 0) != 0;
}

static void name_rival(const struct sv_trace *t, const struct sv_why_sum *rival, char *to,
                       size_t size)
{
    struct sv_arg name;
    if (sv_trace_arg(t, t->slices.args[rival->piece], find(t, SV_RIVAL), &name))
        snprintf(to, size, "%.*s", (int)(name.size < 90 ? name.size : 90), name.text);
}

/* One program, or many of one name. */
static void say_rival(struct sv_wait_group *w, const struct rivals *r,
                      const struct sv_why_sum *most)
{
    const struct sv_trace *t = w->x->trace;
    struct sv_answer *a = &w->answer;
    uint32_t args = t->slices.args[most->piece];
    int64_t pid = number(t, args, find(t, SV_RIVAL_PID), -1);
    struct sv_arg cgroup;
    sv_str key = find(t, SV_RIVAL_CGROUP);
    a->culprit = SV_NOBODY;
    a->culprit.kind = "process";
    name_rival(t, most, a->culprit.name, sizeof a->culprit.name);
    sv_answer_say(a, ": %.0f %% of that while ", 100 * (double)most->ns / (double)r->ns);
    if (is_of_one(r, most, pid)) {
        a->culprit.pid = pid;
        a->culprit.tid = number(t, args, find(t, SV_RIVAL_TID), -1);
        sv_answer_say(a, "%s (pid %" PRId64 ") has the CPU", a->culprit.name, pid);
    } else {
        sv_answer_say(a, "several processes called %s have the CPU", a->culprit.name);
    }
    if (key && a->culprit.pid >= 0 && sv_trace_arg(t, args, key, &cgroup) &&
        cgroup.type == SV_ARG_TEXT) {
        snprintf(a->culprit.cgroup, sizeof a->culprit.cgroup, "%.*s",
                 (int)(cgroup.size < 200 ? cgroup.size : 200), cgroup.text);
        sv_answer_say(a, ", in cgroup %.100s", a->culprit.cgroup);
    }
    a->advice = is_outside(t, most) ? for_outside : a->advice;
    sv_answer_say(a, is_outside(t, most) ? ", which is not part of the recording." : ".");
}

static int by_time(const void *a, const void *b)
{
    const struct sv_why_sum *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
                          : (x->key > y->key) - (x->key < y->key);
}

/* Many different ones, none of which is recorded: a build beside the program. */
static void say_outside(struct sv_wait_group *w, const struct rivals *r)
{
    const struct sv_trace *t = w->x->trace;
    struct sv_answer *a = &w->answer;
    char name[96] = "";
    size_t n = 0;
    sv_answer_say(a, ": %.0f %% of that while programs outside of the recording have the CPU",
                  100 * (double)r->outside_ns / (double)r->ns);
    qsort(r->by_who.items, r->by_who.n, sizeof *r->by_who.items, by_time);
    for (size_t i = 0; i < r->by_who.n && n < 3; i++) {
        if (!is_outside(t, &r->by_who.items[i]))
            continue;
        name_rival(t, &r->by_who.items[i], name, sizeof name);
        sv_answer_say(a, "%s%s", n++ ? ", " : " (", name);
    }
    sv_answer_say(a, n ? ", …)." : ".");
    a->culprit = SV_NOBODY;
    a->advice = "Stop them, or give the program CPUs of its own.";
}

bool sv_waits_rival(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    struct rivals r = {0};
    read_rivals(w->x, &r, threads_of_group(w));
    const struct sv_why_sum *most = sv_why_sums_most(&r.by_who);
    /* The kernel counts all of the thread's life: less than half of what the states say, and the
     * states have missed a switch. */
    bool is_true = !r.is_counted || r.delay_ns >= w->doing_ns[SV_DOING_QUEUED] / 2;
    if (w->x->e->observed.is_looked) { /* rivals are seen by kernel programs only */
        sv_answer_say(a, "; who has it is not known.");
    } else if (r.quota_ns > r.ns) {
        a->advice = for_quota;
        say_quota(w, &r);
    } else if (r.is_counted && r.ns < r.delay_ns / 2) {
        a->advice = for_quota;
        sv_answer_say(a,
                      ": for %.0f %% of that nobody else has it, as where a quota of its group "
                      "(cpu.max) holds it back.",
                      100 * (1 - (double)r.ns / (double)r.delay_ns));
    } else if (r.outside_ns > r.ns / 2 && most->ns < r.ns / 10 * 6) {
        say_outside(w, &r);
    } else if (most && most->ns > r.ns / 4) {
        say_rival(w, &r, most);
    } else {
        sv_answer_say(a, ": more threads want to run than there are CPUs for them.");
    }
    sv_why_sums_fini(&r.by_who);
    sv_why_sums_fini(&r.by_pid);
    return is_true;
}

double sv_waits_delayed(const struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    struct rivals r = {0};
    bool *is_holder = sv_alloc((size_t)l->states.n + 1);
    for (size_t i = 0; i < w->holders.n; i++)
        if (w->holders.items[i].key < l->states.n)
            is_holder[w->holders.items[i].key] = true;
    read_stats(w->x, &r, is_holder);
    free(is_holder);
    /* Delays while nobody waits for them count, too: they must be enough for the waits as well. */
    int64_t of = r.life_ns > w->ns ? r.life_ns : w->ns;
    return of > 0 ? (double)r.delay_ns / (double)of : 0;
}

/* Nobody has recorded when threads could run and did not, but the kernel has counted it. */
void sv_explain_queued(struct sv_explaining *x)
{
    const struct sv_observed *o = &x->e->observed;
    struct rivals r = {0};
    if (o->states > 0.5 && !o->is_looked)
        return;
    read_rivals(x, &r, threads_of_units(x->ledger));
    double share = r.life_ns > 0 ? (double)r.delay_ns / (double)r.life_ns : 0;
    if (share >= SV_EXPLAIN_LEAST && x->e->shares[SV_WHY_CPU] < share / 2) {
        struct sv_answer a = sv_answer_of(SV_CAUSE_CPU, share < 1 ? share : 1, "medium");
        a.n_units = x->e->n_units;
        sv_answer_say(&a,
                      "The thread could run, and waits %.0f %% of its time for a CPU, by the "
                      "kernel's own count; who has it is not known.",
                      a.share * 100);
        sv_answer_command(&a, "report wait", x->path, " --by span");
        sv_explain_add(x, &a);
    }
    sv_why_sums_fini(&r.by_who);
    sv_why_sums_fini(&r.by_pid);
}
