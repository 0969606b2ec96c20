/* The communication report's reasons: what the last rank of a collective did since the one before,
 * and how much more of it than the first rank. Called once, after arrivals were compared.
 *
 * The ledger (why/ledger.h) says what the thread that communicates did in that time: data, files,
 * copies, other ranks and the run queue are what it says. For the rest all slices of the rank
 * become one line of time. Where several are open the first of these counts: the innermost slice of
 * that thread, work on the rank's devices, other threads, and at last slices whose names say
 * nothing. One rank is looked at after the other. */
#include "subjects/comm/figures.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/io/figures.h"
#include "subjects/io/words.h"
#include "why/ledger.h"
#include "why/step_kinds.h"
#include "why/words.h"
#include "why/work_line.h"

#include <stdlib.h>
#include <string.h>

/* The line's kinds are numbers below SV_N_WORK, whatever they mean. */
_Static_assert((int)SV_N_BEFORE <= (int)SV_N_WORK, "a line has room for the kinds");
enum { NOTHING = SV_N_BEFORE };
enum { LAYER_OWN, LAYER_DEVICE, LAYER_THREADS, LAYER_OTHER };

struct looker {
    struct sv_comm_report *r;
    const struct sv_trace *t;
    struct sv_steps no_steps;
    struct sv_step_kinds kinds;
    struct sv_io_words io;
    sv_track *tracks; /* by rank … */
    size_t *first;    /* … and where those of each begin; one more at the end */
    sv_str state, sched, wait, fault, cpu_op, collective, mpi, p2p;
    struct sv_ledger ledger; /* its units are the windows that have a length, in their order */
};

/* A window of one rank. */
struct job {
    uint32_t rank;
    size_t collective;
    bool is_first; /* of the first rank, not of the last */
    int64_t from_ns, to_ns;
};

static int by_rank(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->collective > y->collective) - (x->collective < y->collective);
}

/* ---- kinds ---- */

static unsigned kind_of_work(uint8_t work)
{
    switch (work) {
    case SV_WORK_DATA: return SV_BEFORE_LOADER;
    case SV_WORK_COPY: return SV_BEFORE_COPY;
    case SV_WORK_FORWARD:
    case SV_WORK_BACKWARD:
    case SV_WORK_OPTIMIZER: return SV_BEFORE_COMPUTE;
    case SV_WORK_COMM: return SV_BEFORE_COMM;
    case SV_WORK_CHECKPOINT: return SV_BEFORE_IO;
    case SV_WORK_WAIT: return NOTHING;
    default: return SV_BEFORE_OTHER;
    }
}

static unsigned kind_at(const struct looker *l, uint32_t row)
{
    sv_str cat = l->t->slices.cat[row];
    if (cat && (cat == l->collective || cat == l->mpi || cat == l->p2p))
        return SV_BEFORE_COMM;
    if (cat && (cat == l->state || cat == l->sched || cat == l->wait))
        return NOTHING;
    if (sv_io_kind_at(&l->io, row) == SV_IO_CALL || (cat && cat == l->fault))
        return SV_BEFORE_IO;
    unsigned kind = kind_of_work(l->kinds.by_row[row]);
    if (kind != SV_BEFORE_OTHER)
        return kind;
    if (sv_device_slice(&l->kinds.launches, row) == SV_DEVICE_SLICE_KERNEL ||
        (cat && cat == l->cpu_op))
        return SV_BEFORE_COMPUTE;
    return strcmp(sv_dict_text(l->t->dict, cat).bytes, SV_CAT_SYSCALL) == 0 ? NOTHING : kind;
}

/* ---- a rank ---- */

static void add_track(const struct looker *l, struct sv_work_line *line, sv_track track,
                      bool is_own, struct sv_comm_rank *rank)
{
    const struct sv_slices *s = &l->t->slices;
    bool is_device = l->kinds.is_device[track];
    for (uint32_t row = l->t->tracks[track].first; row < l->t->tracks[track].end; row++) {
        unsigned kind = s->kind[row] == SV_SLICE ? kind_at(l, row) : NOTHING;
        rank->has_states |= s->cat[row] && s->cat[row] == l->state;
        rank->has_before |= rank->has_states;
        if (kind == NOTHING)
            continue;
        unsigned layer = kind == SV_BEFORE_OTHER ? LAYER_OTHER
                         : is_device             ? LAYER_DEVICE
                         : is_own                ? LAYER_OWN
                                                 : LAYER_THREADS;
        /* Another thread that communicates says nothing of the one that is late. */
        if (kind == SV_BEFORE_COMM && layer == LAYER_THREADS)
            continue;
        rank->has_before |= kind != SV_BEFORE_COMM;
        sv_work_line_add(line, s->ts_ns[row], sv_trace_end_ns(l->t, row), (uint8_t)kind,
                         layer << 20 | (UINT16_MAX - (uint32_t)s->depth[row]));
    }
}

/* The thread that a call was made on: of a kernel the one that launched it. 0: not known. */
static sv_track thread_of(const struct looker *l, uint32_t row)
{
    uint32_t launch = sv_device_slice(&l->kinds.launches, row) == SV_NOT_DEVICE
                          ? row
                          : sv_launch_of(&l->kinds.launches, row);
    return launch == SV_NO_ROW ? 0 : l->t->slices.track[launch];
}

static bool is_own_thread(const struct looker *l, sv_track track, sv_track own)
{
    sv_track thread = sv_dict_thread_of(l->t->dict, own);
    return track == own || (thread && sv_dict_thread_of(l->t->dict, track) == thread);
}

static void make_line(const struct looker *l, uint32_t rank, sv_track own,
                      struct sv_work_line *line)
{
    for (size_t i = l->first[rank]; i < l->first[rank + 1]; i++)
        add_track(l, line, l->tracks[i], is_own_thread(l, l->tracks[i], own), &l->r->ranks[rank]);
    sv_work_line_settle(line);
}

static uint32_t row_of(const struct sv_comm_report *r, const struct sv_comm_collective *c,
                       uint32_t rank)
{
    const struct sv_comm_call *call = sv_comm_call_of(r, c, rank);
    return call ? call->row : SV_NO_ROW;
}

/* What the ledger decides alone; NOTHING: the line has its say. */
static const uint8_t said[SV_N_WHY_CLASSES] = {
    [SV_WHY_COMPUTE] = NOTHING,
    [SV_WHY_LOCK] = NOTHING,
    [SV_WHY_GIL] = NOTHING,
    [SV_WHY_DATA] = SV_BEFORE_LOADER,
    [SV_WHY_DISK] = SV_BEFORE_IO,
    [SV_WHY_PAGE] = SV_BEFORE_IO,
    [SV_WHY_PIPE] = NOTHING,
    [SV_WHY_SOCKET] = NOTHING,
    [SV_WHY_CHILD] = NOTHING,
    [SV_WHY_SLEEP] = NOTHING,
    [SV_WHY_CPU] = SV_BEFORE_RUN_QUEUE,
    [SV_WHY_GPU] = NOTHING,
    [SV_WHY_COPY] = SV_BEFORE_COPY,
    [SV_WHY_COMM] = SV_BEFORE_COMM,
    [SV_WHY_QUEUE] = NOTHING,
    [SV_WHY_UNKNOWN] = NOTHING,
};

static void add_piece(const struct sv_work_line *line, const struct sv_why_piece *p,
                      int64_t sums[SV_N_WORK])
{
    int64_t others[SV_N_WORK] = {0}, left = p->dur_ns;
    if (said[p->class] != NOTHING) {
        sums[said[p->class]] += p->dur_ns;
        return;
    }
    sv_work_line_sum(line, p->ts_ns, p->ts_ns + p->dur_ns, others);
    for (int k = 0; k < SV_N_BEFORE; k++) {
        sums[k] += others[k];
        left -= others[k];
    }
    sums[p->class == SV_WHY_COMPUTE                            ? SV_BEFORE_COMPUTE
         : p->class == SV_WHY_UNKNOWN && p->state == SV_NO_ROW ? SV_BEFORE_UNKNOWN
                                                               : SV_BEFORE_IDLE] += left;
}

/* Waits that neither other ranks nor a crowd on the CPUs are the reason of. */
static bool is_own_wait(const struct sv_why_piece *p)
{
    return p->class != SV_WHY_COMPUTE && p->class != SV_WHY_CPU && p->class != SV_WHY_COMM &&
           p->class != SV_WHY_GPU && p->class != SV_WHY_COPY && p->class != SV_WHY_UNKNOWN;
}

static void measure(const struct looker *l, const struct sv_work_line *line, const struct job *job,
                    const struct sv_why_unit *u)
{
    struct sv_comm_collective *c = &l->r->collectives[job->collective];
    int64_t sums[SV_N_WORK] = {0}, waits = 0;
    for (size_t i = u->first; i < u->end; i++) {
        add_piece(line, &l->ledger.pieces[i], sums);
        waits += is_own_wait(&l->ledger.pieces[i]) ? l->ledger.pieces[i].dur_ns : 0;
    }
    c->own_wait_ns += job->is_first ? -waits : waits;
    for (int k = 0; k < SV_N_BEFORE; k++) {
        if (!job->is_first)
            c->before_ns[k] = sums[k];
        c->excess_ns[k] = job->is_first ? sv_sat_sub(c->excess_ns[k], sums[k])
                                        : sv_sat_add(c->excess_ns[k], sums[k]);
    }
}

/* ---- all of them ---- */

static void sort_tracks(struct looker *l)
{
    const struct sv_comm_report *r = l->r;
    l->tracks = sv_alloc(((size_t)l->t->n_tracks + 1) * sizeof *l->tracks);
    l->first = sv_alloc((r->n_ranks + 2) * sizeof *l->first);
    for (sv_track k = 1; k < l->t->n_tracks; k++)
        if (r->rank_of_track[k] != SV_COMM_NO_RANK)
            l->first[r->rank_of_track[k] + 1]++;
    for (size_t i = 0; i < r->n_ranks; i++)
        l->first[i + 1] += l->first[i];
    size_t *next = sv_alloc((r->n_ranks + 1) * sizeof *next);
    memcpy(next, l->first, r->n_ranks * sizeof *next);
    for (sv_track k = 1; k < l->t->n_tracks; k++)
        if (r->rank_of_track[k] != SV_COMM_NO_RANK)
            l->tracks[next[r->rank_of_track[k]]++] = k;
    free(next);
}

static void add_job(const struct sv_comm_report *r, struct job *jobs, size_t *n, struct job job)
{
    const struct sv_comm_collective *c = &r->collectives[job.collective];
    uint32_t row = row_of(r, c, job.rank);
    job.from_ns = job.is_first ? c->first_from_ns : c->last_from_ns;
    job.to_ns = row != SV_NO_ROW ? r->trace->slices.ts_ns[row] : job.from_ns;
    if (job.to_ns > job.from_ns)
        jobs[(*n)++] = job;
}

static struct job *plan(const struct sv_comm_report *r, size_t *n)
{
    struct job *jobs = sv_alloc((2 * r->n + 1) * sizeof *jobs);
    *n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_comm_collective *c = &r->collectives[i];
        if (c->last == SV_COMM_NO_RANK || c->is_passed_on)
            continue;
        add_job(r, jobs, n, (struct job){.rank = c->last, .collective = i});
        add_job(r, jobs, n, (struct job){.rank = c->first_rank, .collective = i, .is_first = true});
    }
    if (*n)
        qsort(jobs, *n, sizeof *jobs, by_rank);
    return jobs;
}

/* The thread that communicates, by the first of the jobs of a rank. 0: not known. */
static sv_track own_of(const struct looker *l, const struct job *job)
{
    uint32_t row = row_of(l->r, &l->r->collectives[job->collective], job->rank);
    return row == SV_NO_ROW ? 0 : thread_of(l, row);
}

static void make_ledger(struct looker *l, const struct job *jobs, size_t n)
{
    struct sv_given_unit *units = sv_alloc((n + 1) * sizeof *units);
    sv_track own = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || jobs[i].rank != jobs[i - 1].rank)
            own = own_of(l, &jobs[i]);
        units[i] = sv_given_window(SV_NO_THREAD, own, jobs[i].from_ns, jobs[i].to_ns);
    }
    sv_ledger_make(&l->ledger, l->t,
                   &(struct sv_ledger_options){
                       .step = -1, .given = units, .n_given = n, .given_kind = SV_UNIT_IS_WINDOW});
    free(units);
}

static void sum_up(struct sv_comm_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct sv_comm_collective *c = &r->collectives[i];
        if (c->last == SV_COMM_NO_RANK || c->is_passed_on)
            continue;
        bool is_whole = r->ranks[c->last].has_before && r->ranks[c->first_rank].has_before;
        struct sv_comm_rank *rank = &r->ranks[c->last];
        double own = (double)c->own_wait_ns,
               queued = (double)(c->excess_ns[SV_BEFORE_RUN_QUEUE] > 0
                                     ? c->excess_ns[SV_BEFORE_RUN_QUEUE]
                                     : 0),
               least = SV_COMM_REASONS_SHARE * (double)c->lead_ns;
        if (is_whole && c->lead_ns > 0 && own + queued >= least) {
            rank->n_reasons += own >= least ? 2 : 1;
            rank->reasons_ns = sv_sat_add(rank->reasons_ns, c->lead_ns);
        }
        for (int k = 0; k < SV_N_BEFORE; k++) {
            c->before_ns[k] = r->ranks[c->last].has_before ? c->before_ns[k] : 0;
            c->excess_ns[k] = is_whole ? c->excess_ns[k] : 0;
            rank->before_ns[k] = sv_sat_add(rank->before_ns[k], c->before_ns[k]);
            rank->excess_ns[k] = sv_sat_add(rank->excess_ns[k], c->excess_ns[k]);
        }
    }
}

static sv_str find(const struct sv_trace *t, const char *text)
{
    return sv_dict_find_str(t->dict, text, strlen(text));
}

void sv_comm_find_before(struct sv_comm_report *r)
{
    const struct sv_trace *t = r->trace;
    struct looker l = {.r = r,
                       .t = t,
                       .state = find(t, SV_CAT_THREAD_STATE),
                       .sched = find(t, SV_CAT_SCHED),
                       .wait = find(t, SV_CAT_OFFCPU_SAMPLE),
                       .fault = find(t, SV_CAT_FAULT),
                       .cpu_op = find(t, "cpu_op"),
                       .collective = find(t, SV_CAT_COLLECTIVE),
                       .mpi = find(t, SV_CAT_MPI),
                       .p2p = find(t, SV_CAT_P2P)};
    size_t n;
    struct job *jobs = plan(r, &n);
    if (n) {
        sv_step_kinds_init(&l.kinds, &l.no_steps, t);
        sv_io_words_init(&l.io, t);
        sort_tracks(&l);
        make_ledger(&l, jobs, n);
    }
    for (size_t i = 0, end; i < n; i = end) {
        struct sv_work_line line = {0};
        make_line(&l, jobs[i].rank, own_of(&l, &jobs[i]), &line);
        for (end = i; end < n && jobs[end].rank == jobs[i].rank; end++)
            measure(&l, &line, &jobs[end], &l.ledger.units[end]);
        sv_work_line_fini(&line);
    }
    if (n) {
        sum_up(r);
        sv_step_kinds_fini(&l.kinds);
        sv_io_words_fini(&l.io);
        sv_ledger_fini(&l.ledger);
    }
    free(l.tracks);
    free(l.first);
    free(jobs);
}
