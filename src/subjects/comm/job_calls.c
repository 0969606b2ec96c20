/* Operations of a job from its collectives: each call of the communication report is one, and what
 * a rank does between them is the others.
 *
 * Called once by sv_replay_job(). A call of the host holds its thread until it ends. A kernel runs
 * beside those of other streams: computing waits for it only where no other kernel of the rank runs
 * when it ends. All ranks run the same program: if they have equally many kernels, a call follows
 * as many of them on each rank as on the one where it began earliest in its program, and is waited
 * for by the same one. So each rank is a chain of pieces of computing, which are cut where a call
 * begins and where computing waits for one; the first is the time by which the rank begins later
 * than others. With steps (why/steps.h) only these are looked at. */
#include "subjects/comm/figures.h"
#include "subjects/comm/job.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "core/stream/gpu_words.h"
#include "store/ranks.h"
#include "why/launch.h"
#include "why/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels that begin so soon after the end of another follow it without a gap. */
#define GAP_NS 1000

struct span {
    int64_t from_ns, to_ns;
};

/* What is known of a rank. */
struct member {
    struct span window; /* its steps, or its calls */
    const struct sv_step *steps;
    size_t n_steps;
    struct span *kernels; /* those that are no calls, by begin; ends are the latest so far */
    size_t n_kernels, cap_kernels;
    uint32_t host;
};

struct call {
    uint32_t rank, group, op; /* group and operation of the replay */
    int64_t begin_ns, end_ns;
    int64_t fork_ns; /* what it follows had ended */
    int64_t wait_ns; /* computing waits from here on; INT64_MAX: it does not */
    int64_t launch_ns;
    uint32_t step, nth; /* of its kind in the step */
    uint8_t kind;       /* enum sv_comm_op */
    int64_t bytes;
    sv_track track;
    bool is_kernel;
};

struct builder {
    struct sv_job *job;
    const struct sv_trace *t;
    struct sv_comm_report r;
    struct sv_steps steps;
    struct member *members; /* by rank of the report */
    struct call *calls;
    size_t n;
    bool has_steps, is_aligned; /* all ranks have equally many kernels */
    int64_t first_ns;           /* of all windows */
    uint32_t kind_compute;
};

/* ---- windows ---- */

/* Of the tracks of a rank that have steps, the one with most of them. */
static void find_steps(struct builder *b)
{
    const struct sv_steps *s = &b->steps;
    sv_steps_find(&b->steps, b->t, NULL);
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n && s->steps[end].track == s->steps[i].track; end++) {}
        uint32_t rank = b->r.rank_of_track[s->steps[i].track];
        if (rank != SV_COMM_NO_RANK && b->members[rank].n_steps < end - i) {
            b->members[rank].steps = &s->steps[i];
            b->members[rank].n_steps = end - i;
        }
    }
    b->has_steps = true;
    for (size_t i = 0; i < b->r.n_ranks; i++)
        b->has_steps &= !b->r.ranks[i].calls || b->members[i].n_steps;
}

static void find_windows(struct builder *b)
{
    for (size_t i = 0; i < b->r.n_ranks; i++) {
        struct member *m = &b->members[i];
        m->window = (struct span){INT64_MAX, INT64_MIN};
        for (size_t k = 0; b->has_steps && k < m->n_steps; k++) {
            int64_t from = m->steps[k].ts_ns, to = sv_sat_add(from, m->steps[k].dur_ns);
            m->window.from_ns = from < m->window.from_ns ? from : m->window.from_ns;
            m->window.to_ns = to > m->window.to_ns ? to : m->window.to_ns;
        }
    }
    for (size_t i = 0; !b->has_steps && i < b->r.n_calls; i++) {
        struct span *w = &b->members[b->r.calls[i].rank].window;
        uint32_t row = b->r.calls[i].row;
        int64_t from = b->t->slices.ts_ns[row], to = sv_trace_end_ns(b->t, row);
        w->from_ns = from < w->from_ns ? from : w->from_ns;
        w->to_ns = to > w->to_ns ? to : w->to_ns;
    }
    b->first_ns = INT64_MAX;
    for (size_t i = 0; i < b->r.n_ranks; i++)
        if (b->members[i].window.from_ns < b->first_ns)
            b->first_ns = b->members[i].window.from_ns;
}

/* ---- what runs beside calls ---- */

static int by_from(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void find_kernels(struct builder *b)
{
    const struct sv_slices *s = &b->t->slices;
    struct sv_gpu_words words = {0};
    bool *is_call = sv_alloc((size_t)s->n + 1);
    size_t n = SIZE_MAX;
    for (size_t i = 0; i < b->r.n_calls; i++)
        is_call[b->r.calls[i].row] = true;
    for (uint32_t row = 0; row < s->n; row++) {
        uint32_t rank = b->r.rank_of_track[s->track[row]];
        if (rank == SV_COMM_NO_RANK || is_call[row] || s->kind[row] != SV_SLICE ||
            s->dur_ns[row] == SV_UNFINISHED ||
            sv_gpu_class_of(&words, b->t->dict, s->cat[row]) != SV_GPU_KERNEL)
            continue;
        struct member *m = &b->members[rank];
        m->kernels = sv_grow(m->kernels, &m->cap_kernels, m->n_kernels + 1, sizeof *m->kernels);
        m->kernels[m->n_kernels++] = (struct span){s->ts_ns[row], sv_trace_end_ns(b->t, row)};
    }
    b->is_aligned = true;
    for (size_t i = 0; i < b->r.n_ranks; i++) {
        struct member *m = &b->members[i];
        if (m->n_kernels)
            qsort(m->kernels, m->n_kernels, sizeof *m->kernels, by_from);
        for (size_t k = 1; k < m->n_kernels; k++)
            if (m->kernels[k].to_ns < m->kernels[k - 1].to_ns)
                m->kernels[k].to_ns = m->kernels[k - 1].to_ns;
        if (b->r.ranks[i].calls) {
            b->is_aligned &= m->n_kernels && (n == SIZE_MAX || n == m->n_kernels);
            n = m->n_kernels;
        }
    }
    sv_gpu_words_fini(&words);
    free(is_call);
}

/* Since when computing waits for the end of a call; INT64_MAX: it does not. */
static int64_t waits_since(const struct member *m, const struct call *c)
{
    size_t at;
    SV_SEARCH(at, mid, 0, m->n_kernels, m->kernels[mid].from_ns < sv_sat_sub(c->end_ns, GAP_NS));
    if (!c->is_kernel || at == 0)
        return c->begin_ns;
    int64_t until = m->kernels[at - 1].to_ns;
    if (until >= sv_sat_sub(c->end_ns, GAP_NS))
        return INT64_MAX;
    return until > c->begin_ns ? until : c->begin_ns;
}

/* The calls of one collective: after how many kernels they begin, and before which one they are
 * waited for. Who came last was held by nobody: there it is seen. */
static void align(const struct builder *b, struct call *calls, size_t n)
{
    size_t follows = SIZE_MAX, precedes = SIZE_MAX, at;
    for (size_t i = 0; i < n; i++) {
        const struct member *m = &b->members[calls[i].rank];
        SV_SEARCH(at, mid, 0, m->n_kernels,
                  m->kernels[mid].to_ns <= sv_sat_add(calls[i].begin_ns, GAP_NS));
        follows = at < follows ? at : follows;
        SV_SEARCH(at, mid, 0, m->n_kernels,
                  m->kernels[mid].from_ns < sv_sat_sub(calls[i].end_ns, GAP_NS));
        if (calls[i].wait_ns != INT64_MAX && at < precedes)
            precedes = at;
    }
    precedes = precedes < follows ? follows : precedes;
    for (size_t i = 0; i < n; i++) {
        struct call *c = &calls[i];
        const struct member *m = &b->members[c->rank];
        if (follows && m->kernels[follows - 1].to_ns < c->begin_ns)
            c->fork_ns = m->kernels[follows - 1].to_ns;
        bool is_waited = precedes != SIZE_MAX &&
                         (precedes == m->n_kernels ||
                          m->kernels[precedes].from_ns >= sv_sat_sub(c->end_ns, GAP_NS));
        c->wait_ns = !is_waited ? INT64_MAX
                     : precedes ? m->kernels[precedes - 1].to_ns
                                : c->fork_ns;
    }
}

/* ---- calls ---- */

static int in_time(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Calls that end together. One that somebody left before another came does not hold its ranks, and
 * its calls are operations of their own. */
static uint32_t group_of(struct builder *b, const struct sv_comm_collective *c)
{
    int64_t latest = INT64_MIN, earliest = INT64_MAX;
    size_t n = 0;
    for (size_t i = c->first; i < c->first + c->n; i++) {
        const struct span *w = &b->members[b->r.calls[i].rank].window;
        int64_t from = b->t->slices.ts_ns[b->r.calls[i].row];
        int64_t to = sv_trace_end_ns(b->t, b->r.calls[i].row);
        latest = from > latest ? from : latest;
        earliest = to < earliest ? to : earliest;
        n += from >= w->from_ns && to <= w->to_ns;
    }
    bool is_held = b->job->replay.has_no_clocks
                       ? sv_comm_op_waits_for_all(c->op)
                       : latest <= sv_sat_add(earliest, b->r.clock_error_ns);
    return n > 1 && is_held ? sv_job_key(&b->job->groups, &(uint64_t){c->first}, sizeof(uint64_t))
                            : SV_REPLAY_NONE;
}

static void add_calls(struct builder *b)
{
    const struct sv_slices *s = &b->t->slices;
    struct sv_gpu_words words = {0};
    struct sv_launches launches;
    sv_launches_init(&launches, b->t);
    b->calls = sv_alloc((b->r.n_calls + 1) * sizeof *b->calls);
    for (size_t i = 0; i < b->r.n; i++) {
        const struct sv_comm_collective *c = &b->r.collectives[i];
        uint32_t group = group_of(b, c);
        size_t first = b->n;
        for (size_t k = c->first; k < c->first + c->n; k++) {
            const struct sv_comm_call *call = &b->r.calls[k];
            const struct member *m = &b->members[call->rank];
            int64_t from = s->ts_ns[call->row], to = sv_trace_end_ns(b->t, call->row);
            if (call->is_pending || from < m->window.from_ns || to > m->window.to_ns)
                continue;
            struct call *is = &b->calls[b->n++];
            *is = (struct call){.rank = call->rank,
                                .group = group,
                                .begin_ns = from,
                                .end_ns = to,
                                .fork_ns = from,
                                .kind = call->op,
                                .bytes = call->bytes,
                                .track = s->track[call->row],
                                .is_kernel = sv_gpu_class_of(&words, b->t->dict,
                                                             s->cat[call->row]) == SV_GPU_KERNEL};
            is->wait_ns = waits_since(m, is);
            uint32_t launch = is->is_kernel ? sv_launch_of(&launches, call->row) : SV_NO_ROW;
            is->launch_ns = launch == SV_NO_ROW ? from : s->ts_ns[launch];
        }
        if (b->is_aligned && b->n > first && b->calls[first].is_kernel)
            align(b, b->calls + first, b->n - first);
    }
    sv_launches_fini(&launches);
    sv_gpu_words_fini(&words);
    if (b->n)
        qsort(b->calls, b->n, sizeof *b->calls, in_time);
}

/* Each call's step, and the how-manieth of its kind it is there. */
static void number_calls(struct builder *b)
{
    uint32_t counts[SV_N_COMM_OPS] = {0};
    for (size_t i = 0; i < b->n; i++) {
        struct call *c = &b->calls[i];
        const struct member *m = &b->members[c->rank];
        size_t begun = 0;
        if (b->has_steps)
            SV_SEARCH(begun, mid, 0, m->n_steps, m->steps[mid].ts_ns <= c->launch_ns);
        c->step = (uint32_t)begun;
        if (i == 0 || c->rank != c[-1].rank || c->step != c[-1].step)
            memset(counts, 0, sizeof counts);
        c->nth = counts[c->kind]++;
    }
}

/* ---- one rank ---- */

enum {
    START,
    PIECE,
    WAITED,
    TAIL,
    CALL
}; /* what makes operations equal, with the call behind it */

/* A rank on its way through its calls. */
struct way {
    struct builder *b;
    uint32_t rank;
    int64_t zero_ns; /* taken off all times: without common clocks each rank begins at 0 */
    int64_t at_ns;
    uint32_t piece;   /* the last one, SV_REPLAY_NONE */
    uint32_t *joined; /* calls that the next piece waits for */
    size_t n_joined, cap_joined;
};

static uint32_t add_op(struct way *w, int what, const struct call *c, int64_t from, int64_t to)
{
    struct builder *b = w->b;
    /* Without steps collectives differ by their size. */
    int64_t size = c && c->bytes > 0 ? 64 - __builtin_clzll((uint64_t)c->bytes) : 0;
    int64_t key[] = {what, c ? c->kind : -1, !c ? 0 : b->has_steps ? (int64_t)c->nth : size};
    uint32_t kind = what == CALL ? sv_job_number(b->job, SV_REPLAY_KIND, sv_comm_op_name(c->kind))
                                 : b->kind_compute;
    return sv_replay_add(&b->job->replay, &(struct sv_replay_op){
                                              .begin_ns = sv_sat_sub(from, w->zero_ns),
                                              .end_ns = sv_sat_sub(to, w->zero_ns),
                                              .step = c ? c->step : 0,
                                              .nth = c ? c->nth : 0,
                                              .same = sv_job_key(&b->job->same, key, sizeof key),
                                              .group = what == CALL ? c->group : SV_REPLAY_NONE,
                                              .at = {w->rank, SV_REPLAY_NONE, SV_REPLAY_NONE,
                                                     b->members[w->rank].host, kind},
                                              .is_comm = what == CALL,
                                          });
}

static void follow(struct way *w, uint32_t op)
{
    if (w->piece != SV_REPLAY_NONE)
        sv_replay_after(&w->b->job->replay, op, w->piece);
    for (size_t i = 0; i < w->n_joined; i++)
        sv_replay_after(&w->b->job->replay, op, w->joined[i]);
}

/* The rank computes until then; where it has been waiting, also for no time at all. */
static void compute(struct way *w, int what, const struct call *c, int64_t until)
{
    if (until < w->at_ns || (until == w->at_ns && !w->n_joined))
        return;
    uint32_t op = add_op(w, what, c, w->at_ns, until);
    follow(w, op);
    w->piece = op;
    w->n_joined = 0;
    w->at_ns = until;
}

/* Calls of one stream follow each other; the one before is looked for among the last few. */
static void follow_stream(struct way *w, const struct call *calls, size_t i)
{
    for (size_t k = i; k-- > 0 && i - k <= 8;)
        if (calls[k].track == calls[i].track) {
            sv_replay_after(&w->b->job->replay, calls[i].op, calls[k].op);
            return;
        }
}

struct mark {
    int64_t ns;
    size_t call;
    bool is_wait;
};

static int by_mark(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (x->is_wait != y->is_wait)
        return x->is_wait ? 1 : -1;
    return (x->call > y->call) - (x->call < y->call);
}

static void add_rank(struct way *w, struct call *calls, size_t n)
{
    const struct member *m = &w->b->members[w->rank];
    struct mark *marks = sv_alloc((2 * n + 1) * sizeof *marks);
    size_t n_marks = 0;
    w->zero_ns = w->b->job->replay.has_no_clocks ? m->window.from_ns : 0;
    w->at_ns = m->window.from_ns;
    w->n_joined = 0;
    w->piece = w->b->job->replay.has_no_clocks
                   ? SV_REPLAY_NONE
                   : add_op(w, START, NULL, w->b->first_ns, m->window.from_ns);
    for (size_t i = 0; i < n; i++) {
        marks[n_marks++] = (struct mark){calls[i].fork_ns, i, false};
        if (calls[i].wait_ns != INT64_MAX)
            marks[n_marks++] = (struct mark){calls[i].wait_ns, i, true};
    }
    qsort(marks, n_marks, sizeof *marks, by_mark);
    for (size_t i = 0; i < n_marks; i++) {
        struct call *c = &calls[marks[i].call];
        compute(w, marks[i].is_wait && c->is_kernel ? WAITED : PIECE, c, marks[i].ns);
        if (!marks[i].is_wait) {
            c->op = add_op(w, CALL, c, c->begin_ns, c->end_ns);
            follow(w, c->op);
            follow_stream(w, calls, marks[i].call);
            continue;
        }
        w->joined = sv_grow(w->joined, &w->cap_joined, w->n_joined + 1, sizeof *w->joined);
        w->joined[w->n_joined++] = c->op;
        w->at_ns = c->end_ns > w->at_ns ? c->end_ns : w->at_ns;
    }
    compute(w, TAIL, NULL, m->window.to_ns);
    free(marks);
}

/* ---- the whole ---- */

static void add_ranks(struct builder *b)
{
    struct way w = {.b = b};
    char name[100];
    b->kind_compute = sv_job_number(b->job, SV_REPLAY_KIND, "computing");
    /* Numbers of ranks are those of the report. */
    for (uint32_t i = 0; i < b->r.n_ranks; i++) {
        const char *host = sv_host_of_track(b->t, b->r.ranks[i].process);
        sv_job_add_name(b->job, SV_REPLAY_RANK, sv_comm_rank_name(&b->r, i, name, sizeof name));
        b->members[i].host = host && b->r.ranks[i].process
                                 ? sv_job_number(b->job, SV_REPLAY_HOST, host)
                                 : SV_REPLAY_NONE;
    }
    for (size_t i = 0, end; i < b->n; i = end) {
        w.rank = b->calls[i].rank;
        for (end = i + 1; end < b->n && b->calls[end].rank == w.rank; end++) {}
        add_rank(&w, b->calls + i, end - i);
        b->job->n_ranks++;
        size_t steps = b->has_steps ? b->members[w.rank].n_steps : 0;
        if (steps > b->job->replay.n_steps)
            b->job->replay.n_steps = steps;
    }
    free(w.joined);
}

bool sv_job_of_collectives(struct sv_job *j, const struct sv_trace *t)
{
    struct builder b = {.job = j, .t = t};
    sv_comm_report_begin(&b.r, t);
    b.members = sv_alloc((b.r.n_ranks + 1) * sizeof *b.members);
    j->replay.has_no_clocks = b.r.clock_error_ns < 0;
    if (b.r.n_calls) {
        find_steps(&b);
        find_windows(&b);
        find_kernels(&b);
        add_calls(&b);
        number_calls(&b);
        add_ranks(&b);
    }
    bool is_one = j->n_ranks > 1 && j->groups.n;
    if (!b.r.n_calls)
        snprintf(j->reason, sizeof j->reason,
                 "no collectives and no pipeline: give the traces of all ranks of a job "
                 "(docs/whatif.md)");
    else if (j->n_ranks < 2)
        snprintf(j->reason, sizeof j->reason,
                 "one rank, and none to compare with: give the traces "
                 "of all ranks");
    else if (!is_one)
        snprintf(j->reason, sizeof j->reason,
                 "no collective is left by all its ranks after all have come: sequence numbers or "
                 "clocks are wrong, or each trace has its own group");
    for (size_t i = 0; i < b.r.n_ranks; i++)
        free(b.members[i].kernels);
    free(b.members);
    free(b.calls);
    sv_steps_fini(&b.steps);
    sv_comm_report_fini(&b.r);
    return is_one;
}
