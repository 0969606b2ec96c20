/* The communication report's differences: collectives that some ranks wait in and others have no
 * record of, or in which kinds or sizes differ. Called once, last.
 *
 * A hang has many symptoms: a rank that waits in one group is missing in others. So a rank is named
 * only if others wait for it and it waits for nobody itself. Where the recording simply ended
 * within a collective, nobody has waited unusually long, and nothing is said. */
#include "subjects/comm/figures.h"

#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"

#include <stdlib.h>
#include <string.h>

#define LONGER_THAN_USUAL 10 /* times the median duration of the group's calls that ended */

const char *const sv_comm_difference_names[SV_N_DIFFERENCES] = {"missing", "kind", "size", "stuck"};

struct search {
    struct sv_comm_report *r;
    size_t cap;
    /* by rank, of the group that is looked at */
    int64_t *last_seq; /* INT64_MIN: none */
    bool *is_reported; /* as missing in this group */
    bool *waits, *is_waited_for;
    double usual_ns; /* how long its calls last */
    sv_str state;
};

static void add_rank(uint32_t **ranks, size_t *n, uint32_t rank)
{
    size_t cap = *n;
    *ranks = sv_grow(*ranks, &cap, *n + 1, sizeof **ranks);
    (*ranks)[(*n)++] = rank;
}

static struct sv_comm_difference *add(struct search *s, enum sv_comm_difference_kind kind,
                                      size_t collective)
{
    struct sv_comm_report *r = s->r;
    r->differences = sv_grow(r->differences, &s->cap, r->n_differences + 1, sizeof *r->differences);
    struct sv_comm_difference *d = &r->differences[r->n_differences++];
    *d = (struct sv_comm_difference){
        .kind = kind, .collective = collective, .ts_ns = r->collectives[collective].ts_ns};
    return d;
}

/* ---- kinds and sizes ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of most calls; of as many the smaller one. */
static int64_t usual(const struct sv_comm_call *calls, size_t n, bool of_op)
{
    int64_t *v = sv_alloc((n + 1) * sizeof *v), best = -1;
    for (size_t i = 0; i < n; i++)
        v[i] = of_op ? calls[i].op : calls[i].bytes;
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0, end, most = 0; i < n; i = end) {
        for (end = i + 1; end < n && v[end] == v[i]; end++) {}
        if (end - i > most) {
            most = end - i;
            best = v[i];
        }
    }
    free(v);
    return best;
}

/* Must all ranks give the same number of bytes? Not where each has a size of its own. */
static bool has_one_size(const struct sv_comm_report *r, const struct sv_comm_collective *c)
{
    struct sv_text name =
        sv_dict_text(r->trace->dict, r->trace->slices.name[r->calls[c->first].row]);
    bool is_varying = name.len && (name.bytes[name.len - 1] == 'v' || strstr(name.bytes, "_v_") ||
                                   strstr(name.bytes, "coalesced"));
    return !is_varying &&
           (c->op == SV_COMM_ALLREDUCE || c->op == SV_COMM_REDUCE || c->op == SV_COMM_BROADCAST ||
            c->op == SV_COMM_ALLGATHER || c->op == SV_COMM_REDUCE_SCATTER || c->op == SV_COMM_SCAN);
}

/* Where numbers were counted, files that begin at different collectives look like this: nothing is
 * said. */
static void find_mismatch(struct search *s, size_t i)
{
    struct sv_comm_report *r = s->r;
    struct sv_comm_collective *c = &r->collectives[i];
    const struct sv_comm_call *calls = &r->calls[c->first];
    bool kinds = false, sizes = false;
    for (size_t k = 1; k < c->n; k++) {
        kinds |= calls[k].op != calls[0].op;
        sizes |= calls[k].bytes != calls[0].bytes && calls[k].bytes >= 0 && calls[0].bytes >= 0;
    }
    if (r->groups[c->group].is_counted || (!kinds && !(sizes && has_one_size(r, c))))
        return;
    int64_t is = usual(calls, c->n, kinds);
    struct sv_comm_difference *d = add(s, kinds ? SV_DIFFERENCE_KIND : SV_DIFFERENCE_SIZE, i);
    for (size_t k = 0; k < c->n; k++)
        if ((kinds ? calls[k].op : calls[k].bytes) != is)
            add_rank(&d->ranks, &d->n_ranks, calls[k].rank);
}

/* ---- missing ranks ---- */

static bool is_waited_in(const struct sv_comm_report *r, const struct sv_comm_collective *c)
{
    bool is_pending = false;
    for (size_t i = c->first; i < c->first + c->n; i++)
        is_pending |= r->calls[i].is_pending;
    return is_pending;
}

/* The median duration of those calls of the group that ended. */
static double usual_wait(const struct sv_comm_report *r, const struct sv_comm_group *g)
{
    const struct sv_comm_collective *last = &r->collectives[g->first + g->n - 1];
    size_t from = r->collectives[g->first].first, to = last->first + last->n, n = 0;
    int64_t *v = sv_alloc((to - from + 1) * sizeof *v);
    for (size_t i = from; i < to; i++)
        if (!r->calls[i].is_pending)
            v[n++] = r->trace->slices.dur_ns[r->calls[i].row];
    double ns = n ? sv_percentile(v, n, 0.5) : 0;
    free(v);
    return ns;
}

/* Did it wait unusually long until the trace ended? A dump is written because somebody did. */
static bool is_long(const struct search *s, const struct sv_comm_collective *c)
{
    const struct sv_trace *t = s->r->trace;
    struct sv_arg a;
    return (s->state && sv_trace_arg(t, t->slices.args[s->r->calls[c->first].row], s->state, &a)) ||
           (double)sv_sat_sub(t->last_ns, c->ts_ns) > LONGER_THAN_USUAL * s->usual_ns;
}

static void find_missing(struct search *s, size_t i)
{
    struct sv_comm_report *r = s->r;
    const struct sv_comm_collective *c = &r->collectives[i];
    const struct sv_comm_group *g = &r->groups[c->group];
    bool is_new = false, is_any = false;
    if (!is_waited_in(r, c) || !is_long(s, c))
        return;
    for (size_t k = 0; k < g->n_members; k++)
        if (!sv_comm_call_of(r, c, g->members[k]) && s->last_seq[g->members[k]] < c->seq) {
            is_any = true;
            is_new |= !s->is_reported[g->members[k]];
            s->is_reported[g->members[k]] = s->is_waited_for[g->members[k]] = true;
        }
    for (size_t k = c->first; is_any && k < c->first + c->n; k++)
        s->waits[r->calls[k].rank] |= r->calls[k].is_pending;
    /* Ranks without a trace may be the ones: they are named once. */
    bool is_blind = !is_any && g->n_absent && c->n < g->n_members + g->n_absent &&
                    !s->is_reported[r->n_ranks];
    s->is_reported[r->n_ranks] |= is_blind;
    if (!is_new && !is_blind)
        return;
    struct sv_comm_difference *d = add(s, SV_DIFFERENCE_MISSING, i);
    for (size_t k = 0; k < g->n_members; k++)
        if (!sv_comm_call_of(r, c, g->members[k]) && s->last_seq[g->members[k]] < c->seq)
            add_rank(&d->ranks, &d->n_ranks, g->members[k]);
    for (size_t k = c->first; k < c->first + c->n; k++)
        if (r->calls[k].is_pending)
            add_rank(&d->waiting, &d->n_waiting, r->calls[k].rank);
}

/* Others have left it, which they cannot before all have arrived: the rank itself does not get
 * on. */
static void find_stuck(struct search *s, size_t i)
{
    struct sv_comm_report *r = s->r;
    const struct sv_comm_collective *c = &r->collectives[i];
    size_t n_pending = 0;
    for (size_t k = c->first; k < c->first + c->n; k++)
        n_pending += r->calls[k].is_pending;
    if (n_pending == 0 || n_pending == c->n || !sv_comm_op_waits_for_all(c->op) || !is_long(s, c))
        return;
    struct sv_comm_difference *d = add(s, SV_DIFFERENCE_STUCK, i);
    for (size_t k = c->first; k < c->first + c->n; k++)
        if (r->calls[k].is_pending)
            add_rank(&d->ranks, &d->n_ranks, r->calls[k].rank);
}

/* ---- all ---- */

static void search_group(struct search *s, const struct sv_comm_group *g)
{
    struct sv_comm_report *r = s->r;
    for (size_t k = 0; k < g->n_members; k++) {
        s->last_seq[g->members[k]] = INT64_MIN;
        s->is_reported[g->members[k]] = false;
    }
    s->is_reported[r->n_ranks] = false;
    for (size_t i = g->first; i < g->first + g->n; i++)
        for (size_t k = 0; k < r->collectives[i].n; k++)
            s->last_seq[r->calls[r->collectives[i].first + k].rank] = r->collectives[i].seq;
    s->usual_ns = usual_wait(r, g);
    for (size_t i = g->first; i < g->first + g->n; i++) {
        find_mismatch(s, i);
        find_missing(s, i);
        find_stuck(s, i);
    }
}

static int in_time(const void *a, const void *b)
{
    const struct sv_comm_difference *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return (x->collective > y->collective) - (x->collective < y->collective);
}

void sv_comm_find_differences(struct sv_comm_report *r)
{
    struct search s = {
        .r = r,
        .last_seq = sv_alloc((r->n_ranks + 1) * sizeof *s.last_seq),
        .is_reported = sv_alloc(r->n_ranks + 1),
        .waits = sv_alloc(r->n_ranks + 1),
        .is_waited_for = sv_alloc(r->n_ranks + 1),
        .state = sv_dict_find_str(r->trace->dict, SV_COMM_STATE, sizeof SV_COMM_STATE - 1)};
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].n)
            search_group(&s, &r->groups[i]);
    if (r->n_differences)
        qsort(r->differences, r->n_differences, sizeof *r->differences, in_time);
    for (uint32_t k = 0; k < r->n_ranks; k++)
        if (s.is_waited_for[k] && !s.waits[k])
            add_rank(&r->culprits, &r->n_culprits, k);
    free(s.last_seq);
    free(s.is_reported);
    free(s.waits);
    free(s.is_waited_for);
}
