/* The communication report: calls become collectives, arrivals are compared, ranks are judged.
 *
 * Called by the report command, the plot, the viewer and SQL's table collective. Order: calls
 * (report_comm_calls.c), collectives, arrivals, who had waited elsewhere, ranks, what they did
 * before (report_comm_before.c), differences (report_comm_hang.c). It says nothing rather than
 * something wrong: see enum sv_comm_doubt. */
#include "subjects/comm/figures.h"

#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "core/stream/json_members.h"
#include "store/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sv_comm_before_names[SV_N_BEFORE] = {
    "compute", "io", "loader", "copy", "comm", "other", "idle", "run_queue", "unknown"};
const char *const sv_comm_method_names[] = {"", "begins", "durations"};
const char *const sv_comm_doubt_names[SV_N_COMM_DOUBTS] = {
    "", "alone", "missing", "unfinished", "differs", "clocks", "unrelated", "broken"};
const char *const sv_comm_doubt_reasons[SV_N_COMM_DOUBTS] = {
    "",
    "the group has one rank",
    "not all ranks of the group are recorded",
    "it did not end",
    "kinds or sizes differ",
    "the skew is within the error",
    "the clocks are not related",
    "a rank left before another arrived",
};

/* ---- clocks ---- */

/* What a merge of several hosts states: the greatest error between two of them. An estimate is
 * none. */
static int64_t error_of_axis(const struct sv_dict *d)
{
    const struct sv_meta *meta = sv_dict_find_meta(d, "clock_axis");
    struct sv_text text = sv_dict_text(d, meta ? meta->value : 0);
    char *json = sv_alloc((size_t)text.len + SV_JSON_PAD);
    int64_t between = -1, within = 0;
    bool is_estimate = false;
    memcpy(json, text.bytes, text.len);
    struct sv_members all = sv_members_of(json, text.len);
    for (struct sv_member m; sv_member_next(&all, &m);) {
        if (sv_member_is(&m, "between_hosts_ns") && !sv_member_i64(&m, &between))
            between = -1;
        if (sv_member_is(&m, "within_host_ns") && !sv_member_i64(&m, &within))
            within = 0;
        if (sv_member_is(&m, "is_estimate"))
            is_estimate = m.type == 't';
    }
    free(json);
    return between < 0 || is_estimate ? -1 : sv_sat_add(between, within > 0 ? within : 0);
}

/* How well the times of different ranks can be compared: exactly where they come from one machine,
 * since its last start. */
static int64_t clock_error(const struct sv_comm_report *r)
{
    const struct sv_dict *d = r->trace->dict;
    const char *boot = NULL;
    const struct sv_track_info *first = NULL;
    bool is_one_space = true, is_one_boot = true;
    for (size_t i = 0; i < r->n_ranks; i++) {
        const struct sv_track_info *process = &d->tracks[r->ranks[i].process];
        const char *own = sv_boot_of_track(r->trace, r->ranks[i].process);
        if (r->ranks[i].process == 0) /* it has no calls */
            continue;
        first = first ? first : process;
        is_one_space &= process->space == first->space && process->origin == first->origin;
        is_one_boot &= own && (!boot || strcmp(own, boot) == 0);
        boot = own ? own : boot;
    }
    return is_one_space || is_one_boot ? 0 : error_of_axis(d);
}

/* ---- collectives ---- */

static int64_t begin_of(const struct sv_comm_report *r, const struct sv_comm_call *c)
{
    return r->trace->slices.ts_ns[c->row];
}

static int64_t end_of(const struct sv_comm_report *r, const struct sv_comm_call *c)
{
    return sv_trace_end_ns(r->trace, c->row);
}

const struct sv_comm_call *sv_comm_call_of(const struct sv_comm_report *r,
                                           const struct sv_comm_collective *c, uint32_t rank)
{
    size_t at, end = c->first + c->n;
    SV_SEARCH(at, mid, c->first, end, r->calls[mid].rank < rank);
    return at < end && r->calls[at].rank == rank ? &r->calls[at] : NULL;
}

static void find_collectives(struct sv_comm_report *r)
{
    size_t cap = 0;
    for (size_t i = 0, end; i < r->n_calls; i = end) {
        const struct sv_comm_call *first = &r->calls[i];
        for (end = i + 1; end < r->n_calls && r->calls[end].group == first->group &&
                          r->calls[end].seq == first->seq;
             end++) {}
        struct sv_comm_group *g = &r->groups[first->group];
        r->collectives = sv_grow(r->collectives, &cap, r->n + 1, sizeof *r->collectives);
        struct sv_comm_collective *c = &r->collectives[r->n];
        *c = (struct sv_comm_collective){.group = first->group,
                                         .op = first->op,
                                         .seq = first->seq,
                                         .bytes = first->bytes,
                                         .first = i,
                                         .n = end - i,
                                         .ts_ns = INT64_MAX,
                                         .end_ns = INT64_MIN,
                                         .skew_ns = -1,
                                         .transfer_ns = -1,
                                         .error_ns = -1,
                                         .last = SV_COMM_NO_RANK,
                                         .first_rank = SV_COMM_NO_RANK,
                                         .last_host = SV_COMM_NO_RANK,
                                         .second = SV_COMM_NO_RANK};
        for (size_t k = i; k < end; k++) {
            int64_t ts = begin_of(r, &r->calls[k]), to = end_of(r, &r->calls[k]);
            c->ts_ns = ts < c->ts_ns ? ts : c->ts_ns;
            c->end_ns = to > c->end_ns ? to : c->end_ns;
        }
        if (g->n++ == 0) {
            g->first = r->n;
            g->ts_ns = c->ts_ns;
            g->end_ns = c->end_ns;
        }
        g->ts_ns = c->ts_ns < g->ts_ns ? c->ts_ns : g->ts_ns;
        g->end_ns = c->end_ns > g->end_ns ? c->end_ns : g->end_ns;
        r->n++;
    }
}

/* ---- arrivals ---- */

static uint64_t expected_ranks(const struct sv_comm_group *g)
{
    uint64_t known = g->n_members + g->n_absent;
    return g->size > 0 && (uint64_t)g->size > known ? (uint64_t)g->size : known;
}

/* What forbids a comparison, whatever the clocks are. */
static enum sv_comm_doubt look(const struct sv_comm_report *r, const struct sv_comm_collective *c)
{
    const struct sv_comm_call *calls = &r->calls[c->first];
    uint64_t expected = expected_ranks(&r->groups[c->group]);
    bool is_pending = false, is_different = false;
    for (size_t i = 0; i < c->n; i++) {
        is_pending |= calls[i].is_pending;
        is_different |= calls[i].op != c->op;
    }
    if (is_different)
        return SV_COMM_DIFFERS;
    if (c->n < expected)
        return SV_COMM_MISSING;
    if (is_pending)
        return SV_COMM_UNFINISHED;
    return c->n == 1 ? SV_COMM_ALONE : SV_COMM_TOLD;
}

/* Arrivals in order of lateness: of begins the time, of durations how much shorter than the
 * longest. */
struct arrivals {
    int64_t first, last, before_last;
    size_t first_call, last_call, before_last_call;
};

static struct arrivals order(const struct sv_comm_report *r, const struct sv_comm_collective *c,
                             bool by_durations)
{
    struct arrivals a = {INT64_MAX, INT64_MIN, INT64_MIN, 0, 0, 0};
    for (size_t i = c->first; i < c->first + c->n; i++) {
        const struct sv_comm_call *call = &r->calls[i];
        int64_t begin = begin_of(r, call);
        int64_t at = by_durations ? sv_sat_sub(begin, end_of(r, call)) : begin;
        if (at < a.first) {
            a.first = at;
            a.first_call = i;
        }
        if (at > a.last) {
            a.before_last = a.last;
            a.before_last_call = a.last_call;
            a.last = at;
            a.last_call = i;
        } else if (at > a.before_last) {
            a.before_last = at;
            a.before_last_call = i;
        }
    }
    return a;
}

/* The end of each call lies within the transfer that follows the last arrival, so durations tell
 * arrivals up to the shortest of them. */
static void compare(struct sv_comm_report *r, struct sv_comm_collective *c)
{
    bool waits = sv_comm_op_waits_for_all(c->op);
    struct arrivals a = order(r, c, true);
    int64_t shortest = sv_sat_sub(0, a.last), first_end = INT64_MAX;
    bool by_durations = waits && (r->clock_error_ns < 0 || shortest < r->clock_error_ns);
    if (!by_durations && r->clock_error_ns < 0) {
        c->doubt = SV_COMM_UNRELATED;
        return;
    }
    c->method = by_durations ? SV_COMM_BY_DURATIONS : SV_COMM_BY_BEGINS;
    c->error_ns = by_durations ? shortest : r->clock_error_ns;
    if (!by_durations)
        a = order(r, c, false);
    for (size_t i = c->first; i < c->first + c->n; i++) {
        int64_t end = end_of(r, &r->calls[i]);
        first_end = end < first_end ? end : first_end;
    }
    if (!by_durations && waits && sv_sat_add(first_end, c->error_ns) < a.last) {
        c->doubt = SV_COMM_BROKEN;
        return;
    }
    int64_t skew = sv_sat_sub(a.last, a.first);
    c->transfer_ns = by_durations ? shortest : sv_sat_sub(c->end_ns, a.last);
    if (skew < c->error_ns || (skew == c->error_ns && skew > 0)) {
        c->doubt = SV_COMM_CLOCKS;
        return;
    }
    c->skew_ns = skew;
    for (size_t i = c->first; i < c->first + c->n; i++) {
        struct sv_comm_call *call = &r->calls[i];
        int64_t at = by_durations ? sv_sat_sub(begin_of(r, call), end_of(r, call))
                                  : begin_of(r, call);
        call->wait_ns = sv_sat_sub(a.last, at);
    }
    c->lead_ns = sv_sat_sub(a.last, a.before_last);
    if (c->lead_ns > c->error_ns) {
        c->last = r->calls[a.last_call].rank;
        c->first_rank = r->calls[a.first_call].rank;
        c->second = r->calls[a.before_last_call].rank;
    }
}

/* ---- who waited elsewhere ---- */

struct wait {
    uint32_t rank;
    int64_t ts_ns;
    int64_t before_ns; /* all waits of the rank before this one */
    int64_t ns;
};

static int by_rank_and_time(const void *a, const void *b)
{
    const struct wait *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

static struct wait *list_waits(const struct sv_comm_report *r, size_t *n)
{
    struct wait *waits = sv_alloc((r->n_calls + 1) * sizeof *waits);
    *n = 0;
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].wait_ns > 0)
            waits[(*n)++] = (struct wait){.rank = r->calls[i].rank,
                                          .ts_ns = begin_of(r, &r->calls[i]),
                                          .ns = r->calls[i].wait_ns};
    if (*n)
        qsort(waits, *n, sizeof *waits, by_rank_and_time);
    for (size_t i = 1; i < *n; i++)
        if (waits[i].rank == waits[i - 1].rank)
            waits[i].before_ns = sv_sat_add(waits[i - 1].before_ns, waits[i - 1].ns);
    return waits;
}

static int64_t waited(const struct wait *waits, size_t n, uint32_t rank, int64_t from_ns,
                      int64_t to_ns)
{
    size_t from, to;
    SV_SEARCH(from, mid, 0, n,
              waits[mid].rank < rank || (waits[mid].rank == rank && waits[mid].ts_ns < from_ns));
    SV_SEARCH(to, mid, from, n,
              waits[mid].rank < rank || (waits[mid].rank == rank && waits[mid].ts_ns < to_ns));
    if (from == to)
        return 0;
    return sv_sat_sub(sv_sat_add(waits[to - 1].before_ns, waits[to - 1].ns), waits[from].before_ns);
}

static int64_t begin_of_rank(const struct sv_comm_report *r, const struct sv_comm_collective *c,
                             uint32_t rank)
{
    const struct sv_comm_call *call = sv_comm_call_of(r, c, rank);
    return call ? begin_of(r, call) : c->ts_ns;
}

/* What the search for passed-on lateness goes by. */
struct ways {
    const struct sv_comm_report *r;
    struct wait *waits;
    size_t n;
    int64_t *ends; /* by rank: of its last call in the group; INT64_MIN: none yet */
};

/* The time that a rank took since then, without waiting for others in other groups. */
static int64_t own_time(const struct ways *w, const struct sv_comm_collective *c, uint32_t rank)
{
    int64_t begin = begin_of_rank(w->r, c, rank), from = w->ends[rank];
    int64_t wait = waited(w->waits, w->n, rank, from, begin);
    return sv_sat_sub(from == INT64_MIN ? 0 : sv_sat_sub(begin, from), wait);
}

/* A rank may be late because it left the group's collective before this one late (the algorithm has
 * an order of its own), or because it waited for others in another group's. Then it only passes
 * lateness on: it took no longer itself than the one before it, or for less than half of the
 * delay. */
static bool is_passed_on(const struct ways *w, const struct sv_comm_collective *c, uint32_t last,
                         uint32_t second, int64_t lead_ns)
{
    bool has_both = w->ends[last] != INT64_MIN && w->ends[second] != INT64_MIN;
    int64_t own = own_time(w, c, last);
    if (has_both)
        return sv_sat_sub(own, own_time(w, c, second)) < lead_ns / 2;
    return waited(w->waits, w->n, last, w->ends[last], begin_of_rank(w->r, c, last)) > lead_ns / 2;
}

/* Whose ranks came last, and how long after the last rank of all other hosts. */
static void find_last_host(const struct ways *w, struct sv_comm_collective *c)
{
    const struct sv_comm_report *r = w->r;
    const struct sv_comm_call *last = NULL, *other = NULL;
    for (size_t i = c->first; i < c->first + c->n; i++)
        if (r->calls[i].wait_ns >= 0 && (!last || r->calls[i].wait_ns < last->wait_ns))
            last = &r->calls[i];
    uint32_t host = last ? r->ranks[last->rank].host : SV_COMM_NO_RANK;
    for (size_t i = c->first; i < c->first + c->n && host != SV_COMM_NO_RANK; i++) {
        const struct sv_comm_call *k = &r->calls[i];
        if (r->ranks[k->rank].host == SV_COMM_NO_RANK)
            return;
        if (r->ranks[k->rank].host != host && k->wait_ns >= 0 &&
            (!other || k->wait_ns < other->wait_ns))
            other = k;
    }
    if (!other || other->wait_ns <= c->error_ns ||
        is_passed_on(w, c, last->rank, other->rank, other->wait_ns))
        return;
    c->last_host = host;
    c->host_lead_ns = other->wait_ns;
}

/* Hosts by their names; they are judged where there are several and one has several ranks. */
static void find_hosts(struct sv_comm_report *r)
{
    struct sv_map numbers = {0};
    r->hosts = sv_alloc((r->n_ranks + 1) * sizeof *r->hosts);
    size_t n_placed = 0;
    for (size_t i = 0; i < r->n_ranks; i++) {
        const char *name = r->ranks[i].process ? sv_host_of_track(r->trace, r->ranks[i].process)
                                               : NULL;
        bool is_new;
        r->ranks[i].host = SV_COMM_NO_RANK;
        if (!name)
            continue;
        uint64_t *slot = sv_map_add(&numbers, sv_hash_bytes(name, strlen(name), 0), &is_new);
        if (is_new) {
            *slot = r->n_hosts;
            r->hosts[r->n_hosts++] = (struct sv_comm_host){.name = name, .p_value = 1};
        }
        r->ranks[i].host = (uint32_t)*slot;
        r->hosts[*slot].n_ranks++;
        n_placed++;
    }
    if (r->n_hosts < 2 || n_placed == r->n_hosts)
        r->n_hosts = 0;
    sv_map_fini(&numbers);
}

static void find_ways(struct sv_comm_report *r)
{
    struct ways w = {.r = r, .ends = sv_alloc((r->n_ranks + 1) * sizeof *w.ends)};
    w.waits = list_waits(r, &w.n);
    for (size_t i = 0; i < r->n; i++) {
        struct sv_comm_collective *c = &r->collectives[i];
        const struct sv_comm_group *g = &r->groups[c->group];
        for (size_t k = 0; i == g->first && k < g->n_members; k++)
            w.ends[g->members[k]] = INT64_MIN;
        if (c->last != SV_COMM_NO_RANK) {
            int64_t last = begin_of_rank(r, c, c->last), first = begin_of_rank(r, c, c->first_rank);
            int64_t end = w.ends[c->last], first_end = w.ends[c->first_rank];
            c->last_from_ns = end == INT64_MIN ? sv_sat_sub(last, c->skew_ns) : end;
            c->first_from_ns = first_end == INT64_MIN ? sv_sat_sub(first, c->skew_ns) : first_end;
            c->is_passed_on = is_passed_on(&w, c, c->last, c->second, c->lead_ns);
        }
        if (r->n_hosts && c->skew_ns >= 0)
            find_last_host(&w, c);
        for (size_t k = c->first; k < c->first + c->n; k++)
            w.ends[r->calls[k].rank] = end_of(r, &r->calls[k]);
    }
    free(w.waits);
    free(w.ends);
}

/* ---- sums ---- */

static double median(const struct sv_comm_report *r, bool of_skew)
{
    int64_t *v = sv_alloc((r->n + 1) * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        int64_t ns = of_skew ? r->collectives[i].skew_ns : r->collectives[i].transfer_ns;
        if (ns >= 0)
            v[n++] = ns;
    }
    double middle = n ? sv_percentile(v, n, 0.5) : -1;
    free(v);
    return middle;
}

static void add_up(struct sv_comm_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct sv_comm_collective *c = &r->collectives[i];
        struct sv_comm_group *g = &r->groups[c->group];
        bool is_told = c->last != SV_COMM_NO_RANK && !c->is_passed_on;
        r->by_doubt[c->doubt]++;
        r->n_passed_on += c->is_passed_on;
        g->n_told += is_told;
        for (size_t k = c->first; k < c->first + c->n; k++) {
            struct sv_comm_rank *rank = &r->ranks[r->calls[k].rank];
            int64_t wait = r->calls[k].wait_ns > 0 ? r->calls[k].wait_ns : 0;
            rank->calls++;
            rank->judged += is_told;
            rank->expected += is_told ? 1.0 / (double)c->n : 0;
            rank->wait_ns = sv_sat_add(rank->wait_ns, wait);
            r->wait_ns = sv_sat_add(r->wait_ns, wait);
        }
        if (is_told) {
            r->ranks[c->last].last++;
            r->ranks[c->last].lost_ns = sv_sat_add(r->ranks[c->last].lost_ns, c->lead_ns);
        }
    }
    r->skew_median_ns = median(r, true);
    r->transfer_median_ns = median(r, false);
}

const char *sv_comm_rank_name(const struct sv_comm_report *r, uint32_t rank, char *to, size_t size)
{
    const struct sv_comm_rank *is = &r->ranks[rank];
    const struct sv_track_info *process = &r->trace->dict->tracks[is->process];
    if (is->number >= 0)
        snprintf(to, size, "rank %" PRId64, is->number);
    else
        snprintf(to, size, "%s (%" PRId64 ")", sv_dict_text(r->trace->dict, process->name).bytes,
                 process->pid);
    return to;
}

void sv_comm_report_begin(struct sv_comm_report *r, const struct sv_trace *t)
{
    *r = (struct sv_comm_report){.trace = t, .strings = sv_dict_new()};
    sv_comm_find_calls(r);
    r->clock_error_ns = r->n_ranks ? clock_error(r) : -1;
    find_collectives(r);
    for (size_t i = 0; i < r->n; i++) {
        r->collectives[i].doubt = (uint8_t)look(r, &r->collectives[i]);
        if (r->collectives[i].doubt == SV_COMM_TOLD)
            compare(r, &r->collectives[i]);
    }
    find_hosts(r);
    find_ways(r);
    add_up(r);
}

void sv_comm_report_make(struct sv_comm_report *r, const struct sv_trace *t)
{
    sv_comm_report_begin(r, t);
    sv_comm_judge_ranks(r);
    sv_comm_find_before(r);
    sv_comm_judge_by_replay(r);
    sv_comm_find_differences(r);
}

void sv_comm_report_fini(struct sv_comm_report *r)
{
    for (size_t i = 0; i < r->n_groups; i++) {
        free(r->groups[i].members);
        free(r->groups[i].absent);
    }
    for (size_t i = 0; i < r->n_differences; i++) {
        free(r->differences[i].ranks);
        free(r->differences[i].waiting);
    }
    free(r->calls);
    free(r->collectives);
    free(r->groups);
    free(r->ranks);
    free(r->hosts);
    free(r->rank_of_track);
    free(r->differences);
    free(r->culprits);
    sv_dict_free(r->strings);
    *r = (struct sv_comm_report){0};
}

int sv_comm_by_loss(const void *a, const void *b, void *ctx)
{
    const struct sv_comm_rank *all = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (all[x].lost_ns != all[y].lost_ns)
        return all[x].lost_ns > all[y].lost_ns ? -1 : 1;
    return (x > y) - (x < y);
}
