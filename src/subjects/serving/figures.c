/* The serving report, second half: figures from the tables. Called once by
 * sv_serving_report_make().
 *
 * Everything here is n log n at most. Warm-up counts nowhere. A rate is a number of requests over
 * the time from the first arrival to the last end, never a mean of batches. */
#include "subjects/serving/report.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sort.h"

#include <stdlib.h>

enum { WINDOWS = 20 };

/* ---- latencies ---- */

struct sv_latency sv_latency_of(int64_t *values, size_t n)
{
    struct sv_latency l = {.n = n};
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)values[i];
        l.max_ns = values[i] > l.max_ns ? values[i] : l.max_ns;
    }
    if (n == 0)
        return l;
    l.mean_ns = sum / (double)n;
    l.p50_ns = sv_percentile(values, n, 0.50);
    l.p90_ns = sv_percentile(values, n, 0.90);
    l.p95_ns = sv_percentile(values, n, 0.95);
    l.p99_ns = sv_percentile(values, n, 0.99);
    return l;
}

static bool is_answered(const struct sv_served_request *q)
{
    return q->fate == SV_FATE_RESPONDED && !q->is_warmup;
}

static int64_t latency_ns(const struct sv_served_request *q)
{
    return q->edges[SV_N_PHASES] - q->edges[0];
}

static bool has_left(const struct sv_serving_report *r)
{
    return r->counts.left_out[SV_LEFT_REQUESTS] > 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Of n that are known and others of which the sum and the largest are: a percentile is known where
 * no other can be as large. */
static struct sv_latency latency_with(int64_t *values, size_t n, const uint64_t *left)
{
    struct sv_latency l = {.n = n + left[SV_LEFT_REQUESTS]};
    int64_t most = (int64_t)left[SV_LEFT_MOST_NS];
    const double percents[] = {0.50, 0.90, 0.95, 0.99};
    double *const to[] = {&l.p50_ns, &l.p90_ns, &l.p95_ns, &l.p99_ns};
    double sum = (double)left[SV_LEFT_SUM_NS];
    if (n)
        qsort(values, n, sizeof *values, by_value);
    for (size_t i = 0; i < n; i++)
        sum += (double)values[i];
    l.mean_ns = sum / (double)l.n;
    l.max_ns = n && values[n - 1] > most ? values[n - 1] : most;
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        double at = percents[i] * (double)(l.n - 1), below = (double)(uint64_t)at;
        uint64_t from_top = l.n - 1 - (uint64_t)below; /* so many are larger */
        *to[i] = -1;
        if (from_top >= n || values[n - 1 - from_top] < most)
            continue;
        int64_t value = values[n - 1 - from_top], next = from_top ? values[n - from_top] : value;
        *to[i] = (double)value + (at - below) * (double)(next - value);
    }
    return l;
}

static void find_latencies(struct sv_serving_report *r)
{
    int64_t *values = sv_alloc((r->n_requests + 1) * sizeof *values);
    for (int kind = 0; kind < SV_N_TRANSPORT; kind++) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_requests; i++)
            if (is_answered(&r->requests[i]) && r->requests[i].transport_ns[kind] >= 0)
                values[n++] = r->requests[i].transport_ns[kind];
        r->transport[kind] = sv_latency_of(values, n);
    }
    for (int phase = -1; phase < SV_N_PHASES; phase++) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_requests; i++) {
            const struct sv_served_request *q = &r->requests[i];
            if (is_answered(q))
                values[n++] = phase < 0 ? latency_ns(q) : q->edges[phase + 1] - q->edges[phase];
        }
        struct sv_latency l = sv_latency_of(values, n);
        if (phase < 0)
            r->kept_mean_ns = l.mean_ns;
        if (phase < 0 && has_left(r))
            l = latency_with(values, n, r->counts.left_out);
        *(phase < 0 ? &r->latency : &r->phases[phase]) = l;
    }
    free(values);
}

double sv_serving_within(const struct sv_serving_report *r, int64_t limit_ns)
{
    if (has_left(r))
        return -1; /* how many of those were */
    uint64_t within = 0, all = r->n_answered + r->n_rejected + r->n_failed;
    for (size_t i = 0; i < r->n_requests; i++)
        within += is_answered(&r->requests[i]) && latency_ns(&r->requests[i]) <= limit_ns;
    return all ? (double)within / (double)all : -1;
}

/* ---- counts and rates ---- */

static void count_requests(struct sv_serving_report *r)
{
    bool has_time = false;
    for (size_t i = 0; i < r->n_requests; i++) {
        const struct sv_served_request *q = &r->requests[i];
        if (q->is_warmup)
            continue;
        r->n_answered += q->fate == SV_FATE_RESPONDED;
        r->n_rejected += q->fate == SV_FATE_REJECTED;
        r->n_failed += q->fate == SV_FATE_FAILED;
        r->n_cancelled += q->fate == SV_FATE_CANCELLED;
        if (!has_time || q->edges[0] < r->first_ns)
            r->first_ns = q->edges[0];
        if (!has_time || q->edges[SV_N_PHASES] > r->last_ns)
            r->last_ns = q->edges[SV_N_PHASES];
        has_time = true;
    }
    if (has_left(r) && (!has_time || r->counts.left_from_ns < r->first_ns))
        r->first_ns = r->counts.left_from_ns;
    if (has_left(r) && (!has_time || r->counts.left_to_ns > r->last_ns))
        r->last_ns = r->counts.left_to_ns;
}

static void count_batches(struct sv_serving_report *r)
{
    for (size_t i = 0; i < r->n_batches; i++) {
        const struct sv_served_batch *b = &r->batches[i];
        if (b->is_warmup || b->is_failed)
            continue;
        r->n_real_batches++;
        r->n_samples += b->samples;
        r->most_samples = b->samples > r->most_samples ? b->samples : r->most_samples;
        if (r->n_requests == 0) { /* batches without requests: a summary without lists */
            if (i == 0 || b->edges[0] < r->first_ns)
                r->first_ns = b->edges[0];
            if (i == 0 || b->edges[SV_N_PHASES] > r->last_ns)
                r->last_ns = b->edges[SV_N_PHASES];
        }
    }
    if (r->n_real_batches && r->most_samples)
        r->efficiency = (double)r->n_samples / (double)r->n_real_batches / (double)r->most_samples;
}

static void find_rates(struct sv_serving_report *r)
{
    double seconds = (double)(r->last_ns - r->first_ns) / 1e9;
    if (seconds <= 0)
        return;
    const uint64_t *left = r->counts.left_out;
    uint64_t answered = r->n_answered + left[SV_LEFT_REQUESTS],
             arrived = answered + r->n_rejected + r->n_failed + r->n_cancelled;
    r->throughput = (double)answered / seconds;
    r->sample_rate = (double)(r->n_samples + left[SV_LEFT_SAMPLES]) / seconds;
    r->arrival_rate = (double)arrived / seconds;
}

/* ---- the queue ---- */

static inline bool is_before(const struct sv_served_depth *a, const struct sv_served_depth *b,
                             const void *ctx)
{
    (void)ctx;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    return a->depth > b->depth; /* who comes before who leaves */
}
SV_SORT_DEFINE(sort_depths, struct sv_served_depth, is_before)

/* Each request that was let in came and left: depth is the change first, then the sum. All who came
 * first, since both lists are nearly in order. */
void sv_serving_queue(struct sv_serving_report *r)
{
    double weighted = 0;
    size_t cap = 2 * r->n_requests + 1;
    r->queue = sv_alloc((cap + SV_SORT_SPARE(cap)) * sizeof *r->queue);
    for (int leaves = 0; leaves < 2; leaves++)
        for (size_t i = 0; i < r->n_requests; i++) {
            const struct sv_served_request *q = &r->requests[i];
            if (q->fate != SV_FATE_REJECTED && !q->is_warmup)
                r->queue[r->n_queue++] =
                    (struct sv_served_depth){q->edges[leaves], leaves ? -1 : 1};
        }
    sort_depths(r->queue, r->n_queue, r->queue + cap, NULL);
    for (size_t i = 1; i < r->n_queue; i++) {
        weighted += (double)(r->queue[i].time_ns - r->queue[i - 1].time_ns) *
                    (double)r->queue[i - 1].depth;
        r->queue[i].depth += r->queue[i - 1].depth;
    }
    for (size_t i = 0; i < r->n_queue; i++)
        r->deepest = r->queue[i].depth > r->deepest ? r->queue[i].depth : r->deepest;
    if (r->last_ns > r->first_ns)
        r->mean_depth = weighted / (double)(r->last_ns - r->first_ns);
}

static size_t window_of(const struct sv_serving_report *r, int64_t time_ns)
{
    int64_t k = (time_ns - r->first_ns) / r->windows[0].dur_ns;
    return k < 0 ? 0 : (size_t)k < r->n_windows ? (size_t)k : r->n_windows - 1;
}

static void depths_of_windows(struct sv_serving_report *r)
{
    size_t k = 0;
    int64_t depth = 0;
    for (size_t w = 0; w < r->n_windows; w++) {
        struct sv_serving_window *to = &r->windows[w];
        bool is_last = w + 1 == r->n_windows;
        to->depth_first = to->depth_max = depth;
        for (; k < r->n_queue && (is_last || r->queue[k].time_ns < to->start_ns + to->dur_ns);
             k++) {
            depth = r->queue[k].depth;
            to->depth_max = depth > to->depth_max ? depth : to->depth_max;
        }
        to->depth_last = depth;
    }
}

static void find_windows(struct sv_serving_report *r)
{
    int64_t span = r->last_ns - r->first_ns;
    if (span < WINDOWS || r->n_requests == 0)
        return;
    r->windows = sv_alloc(WINDOWS * sizeof *r->windows);
    r->n_windows = WINDOWS;
    for (size_t i = 0; i < WINDOWS; i++)
        r->windows[i] = (struct sv_serving_window){
            .start_ns = r->first_ns + (int64_t)i * (span / WINDOWS), .dur_ns = span / WINDOWS};
    for (size_t i = 0; i < r->n_requests; i++) {
        const struct sv_served_request *q = &r->requests[i];
        if (q->is_warmup)
            continue;
        r->windows[window_of(r, q->edges[0])].arrived++;
        struct sv_serving_window *end = &r->windows[window_of(r, q->edges[SV_N_PHASES])];
        end->answered += q->fate == SV_FATE_RESPONDED;
        end->rejected += q->fate == SV_FATE_REJECTED;
    }
    depths_of_windows(r);
}

/* The slope of the depth at the ends of the windows, without the last one, in which the queue runs
 * dry. */
static void find_growth(struct sv_serving_report *r)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i + 1 < r->n_windows; i++) {
        double x = (double)(r->windows[i].start_ns + r->windows[i].dur_ns - r->first_ns) / 1e9;
        double y = (double)r->windows[i].depth_last;
        n++;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    double under = n * sxx - sx * sx;
    if (n > 1 && under > 0)
        r->growth = (n * sxy - sx * sy) / under;
}

/* Where the server did not report congestion: the queue holds more than two of the largest
 * batches. */
static void estimate_congestion(struct sv_serving_report *r)
{
    int64_t limit = 2 * (int64_t)r->most_samples;
    size_t cap = 0;
    bool is_over = false;
    for (size_t i = 0; i < r->n_queue && limit > 0; i++) {
        if (!is_over && r->queue[i].depth > limit) {
            SV_APPEND(r->congestion, r->n_congestion, cap) = (struct sv_served_period){
                .start_ns = r->queue[i].time_ns, .end_ns = r->last_ns, .is_estimated = true};
        } else if (is_over && r->queue[i].depth <= limit) {
            r->congestion[r->n_congestion - 1].end_ns = r->queue[i].time_ns;
        }
        is_over = r->queue[i].depth > limit;
    }
}

static void find_congestion(struct sv_serving_report *r)
{
    size_t k = 0;
    if (r->n_congestion == 0)
        estimate_congestion(r);
    for (size_t i = 0; i < r->n_congestion; i++) {
        struct sv_served_period *p = &r->congestion[i];
        r->congested_ns += p->end_ns - p->start_ns;
        while (k < r->n_queue && r->queue[k].time_ns < p->start_ns)
            k++;
        for (; k < r->n_queue && r->queue[k].time_ns <= p->end_ns; k++)
            if (r->queue[k].depth > (int64_t)p->deepest)
                p->deepest = (uint64_t)r->queue[k].depth;
    }
}

/* ---- groups ---- */

enum by { BY_WORKER, BY_SIZE, BY_MODEL };

static uint64_t key_of(const struct sv_served_batch *b, enum by by)
{
    return by == BY_WORKER ? (uint64_t)(int64_t)b->worker : by == BY_SIZE ? b->samples : b->model;
}

static int by_key(const void *a, const void *b)
{
    const struct sv_serving_group *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static bool counts(const struct sv_served_batch *b)
{
    return !b->is_warmup && !b->is_failed;
}

/* The latencies of a group side by side: offsets first, then values, then each stretch by
 * itself. */
static void group_latencies(const struct sv_serving_report *r, struct sv_serving_groups *g,
                            const uint32_t *group_of)
{
    size_t *request_at = sv_alloc((g->n + 1) * sizeof *request_at);
    size_t *batch_at = sv_alloc((g->n + 1) * sizeof *batch_at);
    int64_t *latencies = sv_alloc((r->n_requests + 1) * sizeof *latencies);
    int64_t *runs = sv_alloc((r->n_batches + 1) * sizeof *runs);
    for (size_t i = 0; i < g->n; i++) {
        request_at[i + 1] = request_at[i] + g->groups[i].requests;
        batch_at[i + 1] = batch_at[i] + g->groups[i].batches;
    }
    for (size_t i = 0; i < r->n_batches; i++) {
        const struct sv_served_batch *b = &r->batches[i];
        if (!counts(b))
            continue;
        uint32_t k = group_of[i];
        runs[batch_at[k]++] = b->edges[SV_PHASE_RUN + 1] - b->edges[SV_PHASE_RUN];
        for (uint32_t j = 0; j < b->n; j++) {
            const struct sv_served_request *q = &r->requests[r->members[b->first_member + j]];
            if (is_answered(q))
                latencies[request_at[k]++] = latency_ns(q);
        }
    }
    for (size_t i = 0; i < g->n; i++) {
        struct sv_serving_group *to = &g->groups[i];
        to->latency = sv_latency_of(latencies + request_at[i] - to->requests, to->requests);
        to->run = sv_latency_of(runs + batch_at[i] - to->batches, to->batches);
    }
    free(request_at);
    free(batch_at);
    free(latencies);
    free(runs);
}

static void find_groups(const struct sv_serving_report *r, struct sv_serving_groups *g, enum by by)
{
    struct sv_map found = {0};
    size_t cap = 0;
    uint32_t *group_of = sv_alloc((r->n_batches + 1) * sizeof *group_of);
    for (size_t i = 0; i < r->n_batches; i++) {
        bool is_new;
        if (!counts(&r->batches[i]))
            continue;
        uint64_t key = key_of(&r->batches[i], by);
        sv_map_add(&found, key, &is_new);
        if (is_new)
            SV_APPEND(g->groups, g->n, cap) = (struct sv_serving_group){.key = key};
    }
    if (g->n)
        qsort(g->groups, g->n, sizeof *g->groups, by_key);
    for (size_t i = 0; i < g->n; i++)
        *sv_map_find(&found, g->groups[i].key) = i;
    for (size_t i = 0; i < r->n_batches; i++) {
        const struct sv_served_batch *b = &r->batches[i];
        if (!counts(b))
            continue;
        group_of[i] = (uint32_t)*sv_map_find(&found, key_of(b, by));
        struct sv_serving_group *to = &g->groups[group_of[i]];
        to->batches++;
        to->samples += b->samples;
        to->run_ns += b->edges[SV_PHASE_RUN + 1] - b->edges[SV_PHASE_RUN];
        for (uint32_t j = 0; j < b->n; j++)
            to->requests += is_answered(&r->requests[r->members[b->first_member + j]]);
    }
    group_latencies(r, g, group_of);
    sv_map_fini(&found);
    free(group_of);
}

void sv_serving_figures(struct sv_serving_report *r)
{
    count_requests(r);
    count_batches(r);
    find_rates(r);
    find_latencies(r);
    if (!has_left(r)) { /* who else waited is not known */
        sv_serving_queue(r);
        find_windows(r);
        find_growth(r);
    }
    find_congestion(r);
    find_groups(r, &r->by_worker, BY_WORKER);
    find_groups(r, &r->by_size, BY_SIZE);
    find_groups(r, &r->by_model, BY_MODEL);
}
