/* The serving report, first half: events to tables of requests and batches.
 *
 * Called by the commands report and plot. The life cycle puts requests and batches together, the
 * same one that the server's own files are made by; this file copies what it reports. The figures
 * are made in report_batch_figures.c. */
#include "subjects/serving/report.h"

#include "core/base/map.h"
#include "core/base/sat.h"
#include "core/serving/engine_words.h"
#include "core/serving/events.h"
#include "store/index.h"

#include <stdlib.h>
#include <string.h>

struct making {
    struct sv_serving_report *r;
    size_t cap_requests, cap_batches, cap_workers, cap_models, cap_congestion;
    struct sv_map batch_of;  /* number of a batch → index + 1, newest */
    uint64_t *batch_numbers; /* of each request, plus 1; 0: none */
    size_t cap_numbers;
    struct sv_map request_of;   /* number of a request → index + 1, newest */
    struct sv_map transport_of; /* the same of those that are not over → in `transports`, + 1 */
    struct transport {
        int64_t ns[SV_N_TRANSPORT];
    } * transports;
    size_t n_transports, cap_transports;
    struct sv_map worker_seen;
    struct sv_map model_seen;
    int64_t congested_ns, last_ns;
    /* What is taken from the times of the trace: to the life cycle 0 is a time that nobody
     * reported. */
    int64_t zero_ns;
};

/* A time of the life cycle as the trace has it. */
static int64_t at(const struct making *m, int64_t ns)
{
    return ns ? sv_sat_add(ns, m->zero_ns) : 0;
}

static void restore_edges(const struct making *m, int64_t edges[SV_N_PHASES + 1])
{
    for (size_t i = 0; i <= SV_N_PHASES; i++)
        edges[i] = at(m, edges[i]);
}

/* ---- names ---- */

static void meet_model(struct making *m, struct sv_life *l, uint32_t model)
{
    struct sv_serving_report *r = m->r;
    bool is_new;
    sv_map_add(&m->model_seen, model, &is_new);
    if (!is_new || model > 4096)
        return;
    while (r->n_models <= model)
        SV_APPEND(r->models, r->n_models, m->cap_models) = NULL;
    const char *name = sv_life_model(l, model);
    r->models[model] = sv_strndup(name, strlen(name));
}

static void meet_worker(struct making *m, struct sv_life *l, int32_t worker)
{
    struct sv_serving_report *r = m->r;
    bool is_new;
    if (worker < 0)
        return;
    sv_map_add(&m->worker_seen, (uint32_t)worker, &is_new);
    if (!is_new)
        return;
    const struct sv_life_worker *w = sv_life_worker(l, worker);
    r->workers = sv_grow(r->workers, &m->cap_workers, r->n_workers + 1, sizeof *r->workers);
    struct sv_served_worker *to = &r->workers[r->n_workers++];
    *to = (struct sv_served_worker){.number = worker, .device = w->device};
    memcpy(to->type, w->type, sizeof to->type);
}

/* ---- moments ---- */

static void add_batch(struct making *m, struct sv_life *l, const struct sv_life_batch *b)
{
    struct sv_serving_report *r = m->r;
    meet_model(m, l, b->model);
    meet_worker(m, l, b->worker);
    r->batches = sv_grow(r->batches, &m->cap_batches, r->n_batches + 1, sizeof *r->batches);
    struct sv_served_batch *to = &r->batches[r->n_batches++];
    *to = (struct sv_served_batch){.id = b->id,
                                   .first_arrival_ns = at(m, b->first_arrival_ns),
                                   .last_arrival_ns = at(m, b->last_arrival_ns),
                                   .first_dequeued_ns = at(m, b->first_dequeued_ns),
                                   .collect_start_ns = at(m, b->collect_start_ns),
                                   .collect_end_ns = at(m, b->collect_end_ns),
                                   .submitted_ns = at(m, b->submitted_ns),
                                   .started_ns = at(m, b->started_ns),
                                   .finished_ns = at(m, b->finished_ns),
                                   .callback_start_ns = at(m, b->callback_start_ns),
                                   .callback_end_ns = at(m, b->callback_end_ns),
                                   .model = b->model,
                                   .samples = b->samples,
                                   .worker = b->worker,
                                   .is_warmup = b->flags & SV_LIFE_WARMUP,
                                   .is_untimed = b->flags & SV_LIFE_UNTIMED,
                                   .is_failed = b->is_failed,
                                   .is_congested = b->is_congested};
    sv_life_batch_edges(b, to->edges);
    restore_edges(m, to->edges);
    *sv_map_add(&m->batch_of, b->id, NULL) = r->n_batches;
}

/* It may be over before this or after it, when its batch is. */
static void take_transport(struct making *m, const struct sv_life_call *c)
{
    const uint64_t *request = sv_map_find(&m->request_of, c->id);
    struct transport t;
    memcpy(t.ns, c->members, sizeof t.ns);
    if (request) {
        memcpy(m->r->requests[*request - 1].transport_ns, t.ns, sizeof t.ns);
        return;
    }
    SV_APPEND(m->transports, m->n_transports, m->cap_transports) = t;
    *sv_map_add(&m->transport_of, c->id, NULL) = m->n_transports;
}

static void find_transport(struct making *m, struct sv_served_request *q)
{
    const uint64_t *early = sv_map_find(&m->transport_of, q->id);
    for (int i = 0; i < SV_N_TRANSPORT; i++)
        q->transport_ns[i] = early ? m->transports[*early - 1].ns[i] : -1;
    if (early)
        sv_map_remove(&m->transport_of, q->id);
    *sv_map_add(&m->request_of, q->id, NULL) = m->r->n_requests;
}

/* Its batch may be over before or after it: the number is kept, and resolved at the end. */
static void add_request(struct making *m, struct sv_life *l, const struct sv_life_request *q,
                        const struct sv_life_batch *b)
{
    struct sv_serving_report *r = m->r;
    meet_model(m, l, q->model);
    r->requests = sv_grow(r->requests, &m->cap_requests, r->n_requests + 1, sizeof *r->requests);
    m->batch_numbers =
        sv_grow(m->batch_numbers, &m->cap_numbers, r->n_requests + 1, sizeof *m->batch_numbers);
    m->batch_numbers[r->n_requests] = b ? b->id + 1 : 0;
    struct sv_served_request *to = &r->requests[r->n_requests++];
    *to = (struct sv_served_request){.id = q->id,
                                     .batch = SV_SERVED_NONE,
                                     .model = q->model,
                                     .fate = q->fate,
                                     .is_warmup = q->flags & SV_LIFE_WARMUP};
    find_transport(m, to);
    sv_life_request_edges(q, b, to->edges);
    restore_edges(m, to->edges);
}

static void end_congestion(struct making *m, int64_t end_ns)
{
    struct sv_serving_report *r = m->r;
    if (!m->congested_ns)
        return;
    SV_APPEND(r->congestion, r->n_congestion, m->cap_congestion) =
        (struct sv_served_period){.start_ns = at(m, m->congested_ns), .end_ns = at(m, end_ns)};
    m->congested_ns = 0;
}

static void on_moment(void *ctx, struct sv_life *l, enum sv_life_moment moment, int64_t time_ns,
                      const struct sv_life_request *q, const struct sv_life_batch *b)
{
    struct making *m = ctx;
    m->last_ns = time_ns > m->last_ns ? time_ns : m->last_ns;
    switch (moment) {
    case SV_MOMENT_REJECTED: add_request(m, l, q, NULL); break;
    case SV_MOMENT_REQUEST_OVER: add_request(m, l, q, b); break;
    case SV_MOMENT_BATCH_OVER: add_batch(m, l, b); break;
    case SV_MOMENT_CONGESTED: m->congested_ns = m->congested_ns ? m->congested_ns : time_ns; break;
    case SV_MOMENT_NOT_CONGESTED: end_congestion(m, time_ns ? time_ns : m->last_ns); break;
    default: break;
    }
}

/* ---- who was with whom ---- */

static void link_members(struct making *m)
{
    struct sv_serving_report *r = m->r;
    uint32_t next = 0;
    for (size_t i = 0; i < r->n_requests; i++) {
        const uint64_t *batch =
            m->batch_numbers[i] ? sv_map_find(&m->batch_of, m->batch_numbers[i] - 1) : NULL;
        if (!batch)
            continue;
        r->requests[i].batch = (uint32_t)(*batch - 1);
        r->batches[*batch - 1].n++;
        r->n_members++;
    }
    for (size_t i = 0; i < r->n_batches; i++) {
        r->batches[i].first_member = next;
        next += r->batches[i].n;
        r->batches[i].n = 0;
    }
    r->members = sv_alloc((r->n_members + 1) * sizeof *r->members);
    for (size_t i = 0; i < r->n_requests; i++) {
        if (r->requests[i].batch == SV_SERVED_NONE)
            continue;
        struct sv_served_batch *b = &r->batches[r->requests[i].batch];
        r->members[b->first_member + b->n++] = (uint32_t)i;
    }
}

/* ---- the trace ---- */

static void put_call(struct making *m, struct sv_life *l, struct sv_life_call call)
{
    call.time_ns = sv_sat_sub(call.time_ns, m->zero_ns);
    call.start_ns = call.start_ns ? sv_sat_sub(call.start_ns, m->zero_ns) : 0;
    if (call.op == SV_LIFE_TRANSPORT)
        take_transport(m, &call);
    sv_life_put(l, &call);
}

/* A step of an engine, or more of its members: its requests are in the queue no longer. */
static void put_step(struct making *m, struct sv_life *l, const struct sv_trace *t, uint32_t row,
                     sv_str key)
{
    struct sv_arg a;
    if (!key || !sv_trace_arg(t, t->slices.args[row], key, &a) || a.type != SV_ARG_TEXT)
        return;
    struct sv_engine_member member;
    const struct sv_life_step step = {.start_ns = sv_sat_sub(t->slices.ts_ns[row], m->zero_ns),
                                      .end_ns = sv_sat_sub(sv_trace_end_ns(t, row), m->zero_ns),
                                      .n = 1,
                                      .members = &member};
    const char *text = a.text, *end = text + a.size;
    for (int is; (is = sv_engine_member_next(&text, end, &member)) != 0;)
        if (is > 0)
            sv_life_step(l, &step);
}

/* All rows of the category, in the order of time. */
static uint64_t put_all(struct making *m, const struct sv_trace *t, struct sv_life *l)
{
    struct sv_life_words words;
    sv_str engine = sv_dict_find_str(t->dict, SV_ENGINE_CATEGORY, strlen(SV_ENGINE_CATEGORY)),
           members = sv_dict_find_str(t->dict, SV_STEP_MEMBERS, strlen(SV_STEP_MEMBERS));
    struct sv_life_in *in = sv_alloc(sizeof *in);
    struct sv_index *index = sv_index_new(t);
    struct sv_batch scratch;
    uint64_t n = 0;
    sv_life_words_find(&words, t->dict);
    const uint32_t *order = sv_index_order(index);
    sv_batch_init(&scratch);
    for (uint64_t i = 0; words.cat && i < t->slices.n; i++) {
        uint32_t row = order[i];
        size_t n_args;
        if (engine && t->slices.cat[row] == engine)
            put_step(m, l, t, row, members);
        if (t->slices.cat[row] != words.cat || t->slices.kind[row] != SV_INSTANT)
            continue;
        const struct sv_arg *args = sv_trace_args(t, t->slices.args[row], &scratch, &n_args);
        struct sv_event e = {.ts_ns = t->slices.ts_ns[row],
                             .name = t->slices.name[row],
                             .cat = t->slices.cat[row],
                             .kind = SV_INSTANT,
                             .n_args = (uint16_t)n_args,
                             .args = args};
        if (sv_life_read(&words, &e, in)) {
            put_call(m, l, in->call);
            n++;
        }
        sv_batch_reset(&scratch);
    }
    sv_batch_fini(&scratch);
    sv_index_free(index);
    free(in);
    return n;
}

struct putting {
    struct making *m;
    struct sv_life *l;
};

static void put_one(void *ctx, const struct sv_life_call *call, uint32_t row)
{
    struct putting *p = ctx;
    (void)row;
    put_call(p->m, p->l, *call);
}

void sv_serving_report_tables(struct sv_serving_report *r, const struct sv_trace *t)
{
    struct making m = {.r = r, .last_ns = INT64_MIN};
    m.zero_ns = t->first_ns > 0 ? 0 : sv_sat_sub(t->first_ns, 1);
    memset(r, 0, sizeof *r);
    /* The store is bounded by its own limit: nothing is forgotten here. */
    struct sv_life_limits limits = {.requests = UINT32_MAX, .batches = UINT32_MAX};
    struct sv_life *l = sv_life_new(&limits, on_moment, &m);
    if (put_all(&m, t, l) == 0)
        r->is_from_json = sv_serving_from_json(t, put_one, &(struct putting){&m, l});
    r->n_open = sv_life_open_requests(l);
    sv_life_end(l);
    r->counts = *sv_life_count(l);
    r->counts.left_from_ns = at(&m, r->counts.left_from_ns);
    r->counts.left_to_ns = at(&m, r->counts.left_to_ns);
    link_members(&m);
    sv_life_free(l);
    sv_map_fini(&m.batch_of);
    sv_map_fini(&m.worker_seen);
    sv_map_fini(&m.model_seen);
    sv_map_fini(&m.request_of);
    sv_map_fini(&m.transport_of);
    free(m.batch_numbers);
    free(m.transports);
}

void sv_serving_report_make(struct sv_serving_report *r, const struct sv_trace *t)
{
    sv_serving_report_tables(r, t);
    sv_serving_figures(r);
}

void sv_serving_report_fini(struct sv_serving_report *r)
{
    for (size_t i = 0; i < r->n_models; i++)
        free(r->models[i]);
    free(r->requests);
    free(r->batches);
    free(r->members);
    free(r->workers);
    free(r->models);
    free(r->congestion);
    free(r->queue);
    free(r->by_worker.groups);
    free(r->by_size.groups);
    free(r->by_model.groups);
    free(r->windows);
}

/* ---- asking ---- */

const char *sv_served_model(const struct sv_serving_report *r, uint32_t model)
{
    return model < r->n_models && r->models[model] ? r->models[model] : "model";
}

const struct sv_served_worker *sv_served_worker(const struct sv_serving_report *r, int32_t number)
{
    static const struct sv_served_worker unknown = {-1, -1, "unknown"};
    for (size_t i = 0; i < r->n_workers; i++)
        if (r->workers[i].number == number)
            return &r->workers[i];
    return &unknown;
}

const struct sv_served_request *sv_served_find(const struct sv_serving_report *r, uint64_t id)
{
    for (size_t i = r->n_requests; i-- > 0;)
        if (r->requests[i].id == id)
            return &r->requests[i];
    return NULL;
}
