/* Requests and batches, put together from the calls of a server.
 *
 * Called by the tracer's thread, the converter and the report, one call at a time. Open requests
 * and batches lie in slots that are used again; a map leads from the server's numbers to them. Past
 * the limits the oldest is forgotten and counted. A batch stays until its callback was reported and
 * all its requests have ended; a request that ends before the submission of its batch was reported
 * waits for it: threads may report in any order. */
#include "core/serving/life.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/serving/engine_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum {
    MEMBERS_MAX = 1 << 16,
    MODELS_MAX = 1024,
    WORKERS_MAX = 4096,
    LANES_MAX = 64,
    LEFT_MAX = 1 << 14
};

const char *const sv_life_op_names[SV_N_LIFE_OPS] = {
    [SV_LIFE_MODEL] = "model",
    [SV_LIFE_WORKER] = "worker",
    [SV_LIFE_ENQUEUED] = "enqueued",
    [SV_LIFE_REJECTED] = "rejected",
    [SV_LIFE_DEQUEUED] = "dequeued",
    [SV_LIFE_MEMBERS] = "members",
    [SV_LIFE_COLLECTED] = "collected",
    [SV_LIFE_SUBMITTED] = "submitted",
    [SV_LIFE_STARTED] = "started",
    [SV_LIFE_FINISHED] = "finished",
    [SV_LIFE_CALLBACK] = "callback",
    [SV_LIFE_RESPONDED] = "responded",
    [SV_LIFE_FAILED] = "failed",
    [SV_LIFE_CANCELLED] = "cancelled",
    [SV_LIFE_BATCH_FAILED] = "batch failed",
    [SV_LIFE_CONGESTION] = "congestion",
    [SV_LIFE_SCHEDULED] = "scheduled",
    [SV_LIFE_PREEMPTED] = "preempted",
    [SV_LIFE_RESUMED] = "resumed",
    [SV_LIFE_TRANSFERRED] = "transferred",
    [SV_LIFE_STREAMED] = "streamed",
    [SV_LIFE_LEFT_OUT] = "left out",
    [SV_LIFE_TRANSPORT] = "transport",
};
const char *const sv_left_out_names[SV_N_LEFT_OUT] = {"requests", "batches", "samples",
                                                      "sum_ns",   "most_ns", "span_ns"};
const char *const sv_transport_names[SV_N_TRANSPORT] = {"read", "parse", "serialise", "write"};
const char *const sv_transport_keys[SV_N_TRANSPORT] = {SV_TRANSPORT_KEYS};
const char *const sv_life_fate_names[SV_N_FATES] = {"open", "responded", "rejected", "failed",
                                                    "cancelled"};
const char *const sv_life_phase_names[SV_N_PHASES] = {"queue", "batch",    "submit", "scheduling",
                                                      "run",   "callback", "respond"};

/* Rows of a time line: the smallest free one, in bits. */
struct rows {
    uint64_t *bits;
    size_t cap;  /* words */
    size_t from; /* no word before this one has a free bit */
};

struct sv_life {
    sv_life_report *report;
    void *ctx;
    uint32_t max_requests, max_batches;
    struct sv_life_counts counts;
    struct sv_map request_slots, batch_slots, worker_slots; /* number → slot */
    /* Requests that ended without an answer and without a batch, the newest LEFT_MAX of them: a
     * batch that was collected meanwhile may still name them. */
    struct sv_map left_slots; /* number → slot */
    struct left {
        uint64_t id;
        uint8_t fate;
    } * left;
    uint64_t n_left;
    struct sv_life_request *requests;
    struct sv_life_batch *batches;
    size_t cap_requests, cap_batches, n_requests, n_batches; /* slots in use so far */
    uint32_t *free_requests, *free_batches;
    size_t n_free_requests, n_free_batches, cap_free_requests, cap_free_batches;
    uint32_t newest_request, oldest_request, newest_batch, oldest_batch;
    struct rows request_rows, batch_rows;
    char *models[MODELS_MAX];
    struct sv_life_worker *workers;
    size_t n_workers, cap_workers;
    bool is_congested;
};

/* ---- rows ---- */

static uint32_t take_row(struct rows *r)
{
    size_t w = r->from;
    while (w < r->cap && r->bits[w] == UINT64_MAX)
        w++;
    if (w == r->cap) {
        size_t cap = r->cap;
        r->bits = sv_grow(r->bits, &r->cap, w + 1, sizeof *r->bits);
        memset(r->bits + cap, 0, (r->cap - cap) * sizeof *r->bits);
    }
    r->from = w;
    unsigned bit = (unsigned)__builtin_ctzll(~r->bits[w]);
    r->bits[w] |= (uint64_t)1 << bit;
    return (uint32_t)(w * 64 + bit);
}

static void give_row(struct rows *r, uint32_t row)
{
    size_t w = row / 64;
    r->bits[w] &= ~((uint64_t)1 << row % 64);
    r->from = w < r->from ? w : r->from;
}

/* ---- life of the struct ---- */

struct sv_life *sv_life_new(const struct sv_life_limits *limits, sv_life_report *report, void *ctx)
{
    struct sv_life *l = sv_alloc(sizeof *l);
    l->report = report;
    l->ctx = ctx;
    l->max_requests = limits && limits->requests ? limits->requests : 262144;
    l->max_batches = limits && limits->batches ? limits->batches : 65536;
    l->newest_request = l->oldest_request = l->newest_batch = l->oldest_batch = NONE;
    return l;
}

void sv_life_free(struct sv_life *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n_batches; i++)
        free(l->batches[i].members);
    for (size_t i = 0; i < l->n_requests; i++)
        free(l->requests[i].context);
    for (size_t i = 0; i < MODELS_MAX; i++)
        free(l->models[i]);
    sv_map_fini(&l->request_slots);
    sv_map_fini(&l->batch_slots);
    sv_map_fini(&l->left_slots);
    free(l->left);
    sv_map_fini(&l->worker_slots);
    free(l->requests);
    free(l->batches);
    free(l->free_requests);
    free(l->free_batches);
    free(l->request_rows.bits);
    free(l->batch_rows.bits);
    free(l->workers);
    free(l);
}

const struct sv_life_counts *sv_life_count(const struct sv_life *l)
{
    return &l->counts;
}

uint64_t sv_life_open_requests(const struct sv_life *l)
{
    return l->request_slots.n;
}

uint64_t sv_life_open_batches(const struct sv_life *l)
{
    return l->batch_slots.n;
}

static void report(struct sv_life *l, enum sv_life_moment moment, int64_t time_ns,
                   const struct sv_life_request *r, const struct sv_life_batch *b)
{
    l->report(l->ctx, l, moment, time_ns, r, b);
}

/* ---- names ---- */

const char *sv_life_model(const struct sv_life *l, uint32_t model)
{
    return model < MODELS_MAX && l->models[model] ? l->models[model] : "model";
}

static void put_model(struct sv_life *l, const struct sv_life_call *c)
{
    if (c->id >= MODELS_MAX || !c->text)
        return;
    free(l->models[c->id]);
    l->models[c->id] = sv_strndup(c->text, strlen(c->text));
}

/* The slot of a worker, made when it is new; the last one for those past the limit. */
static struct sv_life_worker *worker_at(struct sv_life *l, int32_t number)
{
    bool is_new;
    if (l->n_workers == WORKERS_MAX && !sv_map_find(&l->worker_slots, (uint32_t)number))
        return &l->workers[WORKERS_MAX - 1];
    uint64_t *slot = sv_map_add(&l->worker_slots, (uint32_t)number, &is_new);
    if (is_new) {
        l->workers = sv_grow(l->workers, &l->cap_workers, l->n_workers + 1, sizeof *l->workers);
        *slot = l->n_workers;
        l->workers[l->n_workers++] =
            (struct sv_life_worker){.number = number, .device = -1, .type = "unknown"};
    }
    return &l->workers[*slot];
}

const struct sv_life_worker *sv_life_worker(struct sv_life *l, int32_t worker)
{
    return worker_at(l, worker);
}

void sv_life_worker_label(const struct sv_life_worker *w, uint32_t lane,
                          char label[SV_WORKER_LABEL_MAX])
{
    char suffix[16] = "";
    if (lane > 0)
        snprintf(suffix, sizeof suffix, " #%u", lane + 1);
    if (w->device >= 0)
        snprintf(label, SV_WORKER_LABEL_MAX, "device %d worker %d (%s)%s", w->device, w->number,
                 w->type, suffix);
    else
        snprintf(label, SV_WORKER_LABEL_MAX, "worker-%d (%s)%s", w->number, w->type, suffix);
}

static void put_worker(struct sv_life *l, const struct sv_life_call *c)
{
    struct sv_life_worker *w = worker_at(l, (int32_t)c->id);
    w->device = c->device;
    snprintf(w->type, sizeof w->type, "%s", c->text && *c->text ? c->text : "unknown");
}

/* ---- slots ---- */

static void end_request(struct sv_life *l, uint32_t slot);
static void drop_batch(struct sv_life *l, uint32_t slot);

static uint32_t find_request(const struct sv_life *l, uint64_t id)
{
    const uint64_t *slot = sv_map_find(&l->request_slots, id);
    return slot ? (uint32_t)*slot : NONE;
}

static uint32_t find_batch(const struct sv_life *l, uint64_t id)
{
    const uint64_t *slot = sv_map_find(&l->batch_slots, id);
    return slot ? (uint32_t)*slot : NONE;
}

const struct sv_life_batch *sv_life_find_batch(const struct sv_life *l, uint64_t id)
{
    uint32_t slot = find_batch(l, id);
    return slot != NONE ? &l->batches[slot] : NULL;
}

static void unlink_request(struct sv_life *l, uint32_t slot)
{
    const struct sv_life_request *r = &l->requests[slot];
    *(r->newer != NONE ? &l->requests[r->newer].older : &l->newest_request) = r->older;
    *(r->older != NONE ? &l->requests[r->older].newer : &l->oldest_request) = r->newer;
}

static void free_request(struct sv_life *l, uint32_t slot)
{
    struct sv_life_request *r = &l->requests[slot];
    unlink_request(l, slot);
    free(r->context);
    r->context = NULL;
    sv_map_remove(&l->request_slots, r->id);
    l->counts.queued -= r->is_waiting;
    give_row(&l->request_rows, r->row);
    SV_APPEND(l->free_requests, l->n_free_requests, l->cap_free_requests) = slot;
}

/* One request less; the batch goes with the last of them. */
static void leave_batch(struct sv_life *l, uint32_t batch)
{
    if (batch != NONE && --l->batches[batch].n_open == 0 && l->batches[batch].is_over)
        drop_batch(l, batch);
}

static uint32_t new_request(struct sv_life *l, uint64_t id)
{
    if (l->request_slots.n >= l->max_requests) {
        uint32_t oldest = l->oldest_request;
        l->counts.forgotten++;
        uint32_t batch = l->requests[oldest].batch;
        free_request(l, oldest);
        leave_batch(l, batch);
    }
    uint32_t slot;
    if (l->n_free_requests) {
        slot = l->free_requests[--l->n_free_requests];
    } else {
        l->requests =
            sv_grow(l->requests, &l->cap_requests, l->n_requests + 1, sizeof *l->requests);
        slot = (uint32_t)l->n_requests++;
        l->requests[slot].context = NULL; /* a heap that ends here leaves what can be freed */
    }
    l->requests[slot] = (struct sv_life_request){.id = id,
                                                 .batch = NONE,
                                                 .row = take_row(&l->request_rows),
                                                 .newer = NONE,
                                                 .older = l->newest_request};
    *(l->newest_request != NONE ? &l->requests[l->newest_request].newer : &l->oldest_request) =
        slot;
    l->newest_request = slot;
    *sv_map_add(&l->request_slots, id, NULL) = slot;
    return slot;
}

static uint32_t request_at(struct sv_life *l, uint64_t id)
{
    uint32_t slot = find_request(l, id);
    return slot != NONE ? slot : new_request(l, id);
}

static struct sv_life_request *request_of(struct sv_life *l, uint64_t id)
{
    uint32_t slot = request_at(l, id); /* may move them */
    return &l->requests[slot];
}

static void unlink_batch(struct sv_life *l, uint32_t slot)
{
    const struct sv_life_batch *b = &l->batches[slot];
    *(b->newer != NONE ? &l->batches[b->newer].older : &l->newest_batch) = b->older;
    *(b->older != NONE ? &l->batches[b->older].newer : &l->oldest_batch) = b->newer;
}

static uint32_t new_batch(struct sv_life *l, uint64_t id)
{
    if (l->batch_slots.n >= l->max_batches) {
        l->counts.forgotten++;
        drop_batch(l, l->oldest_batch);
    }
    uint32_t slot;
    struct sv_life_member *members = NULL;
    uint32_t cap = 0;
    if (l->n_free_batches) {
        slot = l->free_batches[--l->n_free_batches];
        members = l->batches[slot].members;
        cap = l->batches[slot].cap;
    } else {
        l->batches = sv_grow(l->batches, &l->cap_batches, l->n_batches + 1, sizeof *l->batches);
        slot = (uint32_t)l->n_batches++;
        l->batches[slot].members = NULL; /* a heap that ends here leaves what can be freed */
    }
    l->batches[slot] = (struct sv_life_batch){.id = id,
                                              .worker = -1,
                                              .row = take_row(&l->batch_rows),
                                              .members = members,
                                              .cap = cap,
                                              .newer = NONE,
                                              .older = l->newest_batch};
    *(l->newest_batch != NONE ? &l->batches[l->newest_batch].newer : &l->oldest_batch) = slot;
    l->newest_batch = slot;
    *sv_map_add(&l->batch_slots, id, NULL) = slot;
    return slot;
}

static uint32_t batch_at(struct sv_life *l, uint64_t id)
{
    uint32_t slot = find_batch(l, id);
    return slot != NONE ? slot : new_batch(l, id);
}

/* What became of the request, for the one who reports the batch. */
static void note_member(struct sv_life_batch *b, const struct sv_life_request *r)
{
    b->members[r->member] =
        (struct sv_life_member){r->id, r->enqueued_ns, r->dequeued_ns, r->end_ns, r->fate};
}

static void close_batch(struct sv_life *l, struct sv_life_batch *b)
{
    if (b->is_over && !b->is_closed)
        report(l, SV_MOMENT_BATCH_CLOSED, b->callback_end_ns, NULL, b);
    b->is_closed = true;
}

/* Its requests continue without it. */
static void drop_batch(struct sv_life *l, uint32_t slot)
{
    struct sv_life_batch *b = &l->batches[slot];
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t r = find_request(l, b->members[i].id);
        if (r == NONE || l->requests[r].batch != slot)
            continue;
        note_member(b, &l->requests[r]);
        l->requests[r].batch = NONE;
        if (l->requests[r].fate != SV_FATE_OPEN)
            end_request(l, r);
    }
    close_batch(l, b);
    l->counts.inflight -= b->is_submitted && !b->is_over;
    if (b->worker >= 0 && !b->is_finished)
        worker_at(l, b->worker)->lanes &= ~((uint64_t)1 << b->lane);
    unlink_batch(l, slot);
    sv_map_remove(&l->batch_slots, b->id);
    give_row(&l->batch_rows, b->row);
    if (b->cap > 4096) {
        free(b->members);
        b->members = NULL;
        b->cap = 0;
    }
    SV_APPEND(l->free_batches, l->n_free_batches, l->cap_free_batches) = slot;
}

/* ---- ends ---- */

static bool knows_run(const struct sv_life_batch *b)
{
    return b->is_failed || (b->is_submitted && b->is_finished);
}

/* Reports the end of a request, frees its slot and takes it out of its batch. */
static void drop_request(struct sv_life *l, uint32_t slot, enum sv_life_moment moment,
                         const struct sv_life_batch *b)
{
    struct sv_life_request *r = &l->requests[slot];
    l->counts.queued -= r->is_waiting;
    r->is_waiting = false;
    report(l, moment, r->end_ns, r, b);
    uint32_t batch = r->batch;
    if (batch != NONE)
        note_member(&l->batches[batch], r);
    free_request(l, slot);
    leave_batch(l, batch);
}

/* The request has a fate, and its batch (if any) all that its phases need. */
static void end_request(struct sv_life *l, uint32_t slot)
{
    struct sv_life_request *r = &l->requests[slot];
    struct sv_life_batch *b = r->batch != NONE ? &l->batches[r->batch] : NULL;
    switch (r->fate) {
    case SV_FATE_FAILED: l->counts.failed++; break;
    case SV_FATE_CANCELLED: l->counts.cancelled++; break;
    default: l->counts.requests++; break;
    }
    drop_request(l, slot, SV_MOMENT_REQUEST_OVER, b);
}

/* ---- ends before the batch ---- */

static void note_left(struct sv_life *l, const struct sv_life_request *r)
{
    uint64_t slot = l->n_left++ % LEFT_MAX;
    l->left = l->left ? l->left : sv_alloc(LEFT_MAX * sizeof *l->left);
    const uint64_t *known = l->n_left > LEFT_MAX ? sv_map_find(&l->left_slots, l->left[slot].id)
                                                 : NULL;
    if (known && *known == slot)
        sv_map_remove(&l->left_slots, l->left[slot].id);
    l->left[slot] = (struct left){r->id, r->fate};
    *sv_map_add(&l->left_slots, r->id, NULL) = slot;
}

static void note_times(struct sv_life_batch *b, const struct sv_life_member *m)
{
    if (m->arrival_ns) {
        if (!b->first_arrival_ns || m->arrival_ns < b->first_arrival_ns)
            b->first_arrival_ns = m->arrival_ns;
        if (m->arrival_ns > b->last_arrival_ns)
            b->last_arrival_ns = m->arrival_ns;
    }
    if (m->dequeued_ns && (!b->first_dequeued_ns || m->dequeued_ns < b->first_dequeued_ns))
        b->first_dequeued_ns = m->dequeued_ns;
}

/* The batch goes on naming it, which is what the server said; its times are not the batch's. */
static void only_name(struct sv_life_batch *b, const struct sv_life_request *r)
{
    b->members[r->member] = (struct sv_life_member){.id = r->id, .fate = r->fate};
    b->first_arrival_ns = b->last_arrival_ns = b->first_dequeued_ns = 0;
    for (uint32_t i = 0; i < b->n; i++)
        note_times(b, &b->members[i]);
}

/* One that ended before its batch was collected is not in it, whichever was reported first. */
static void end_unanswered(struct sv_life *l, uint32_t slot)
{
    struct sv_life_request *r = &l->requests[slot];
    uint32_t batch = r->batch;
    bool was_early = batch != NONE && r->end_ns <= l->batches[batch].collect_end_ns;
    if (was_early) {
        only_name(&l->batches[batch], r);
        r->batch = NONE;
    }
    if (r->batch == NONE)
        note_left(l, r);
    end_request(l, slot);
    if (was_early)
        leave_batch(l, batch);
}

static void end_waiting_requests(struct sv_life *l, uint32_t batch)
{
    /* Ending the last one may drop the batch. */
    for (uint32_t i = 0; i < l->batches[batch].n; i++) {
        uint32_t r = find_request(l, l->batches[batch].members[i].id);
        if (r == NONE || l->requests[r].batch != batch || l->requests[r].fate == SV_FATE_OPEN)
            continue;
        bool is_last = l->batches[batch].n_open == 1 && l->batches[batch].is_over;
        end_request(l, r);
        if (is_last)
            return;
    }
}

/* After anything new about it. */
static void settle_batch(struct sv_life *l, uint32_t slot, int64_t time_ns)
{
    struct sv_life_batch *b = &l->batches[slot];
    bool is_complete = b->is_collected && b->is_submitted && b->is_finished && b->callback_end_ns;
    if (!b->is_over && (is_complete || b->is_failed)) {
        b->is_over = true;
        l->counts.inflight -= b->is_submitted;
        l->counts.batches += !b->is_failed;
        b->is_congested = l->is_congested;
        report(l, SV_MOMENT_BATCH_OVER, time_ns, NULL, b);
        if (b->n_open == 0) {
            drop_batch(l, slot);
            return;
        }
    }
    if (knows_run(b))
        end_waiting_requests(l, slot);
}

/* ---- calls about requests ---- */

static void put_enqueued(struct sv_life *l, const struct sv_life_call *c)
{
    struct sv_life_request *r = request_of(l, c->id);
    sv_map_remove(&l->left_slots, c->id);
    l->counts.unexpected += r->enqueued_ns != 0; /* a number that is used twice */
    r->model = c->model;
    r->flags = c->flags;
    r->enqueued_ns = c->time_ns;
    if (r->batch == NONE && !r->dequeued_ns && !r->is_waiting) {
        r->is_waiting = true;
        l->counts.queued++;
    }
    report(l, SV_MOMENT_ENQUEUED, c->time_ns, r, NULL);
}

static void put_rejected(struct sv_life *l, const struct sv_life_call *c)
{
    uint32_t slot = request_at(l, c->id);
    struct sv_life_request *r = &l->requests[slot];
    r->model = c->model;
    r->flags = c->flags;
    r->end_ns = c->time_ns;
    r->fate = SV_FATE_REJECTED;
    l->counts.rejected++;
    drop_request(l, slot, SV_MOMENT_REJECTED, NULL);
}

static void leave_queue(struct sv_life *l, struct sv_life_request *r, int64_t time_ns)
{
    if (!r->is_waiting)
        return;
    r->is_waiting = false;
    l->counts.queued--;
    report(l, SV_MOMENT_DEQUEUED, time_ns, r, NULL);
}

static void put_dequeued(struct sv_life *l, const struct sv_life_call *c)
{
    struct sv_life_request *r = request_of(l, c->id);
    r->dequeued_ns = c->time_ns;
    leave_queue(l, r, c->time_ns);
}

static void put_fate(struct sv_life *l, const struct sv_life_call *c, enum sv_life_fate fate)
{
    uint32_t slot = find_request(l, c->id);
    if (slot == NONE) {
        l->counts.unexpected++;
        return;
    }
    struct sv_life_request *r = &l->requests[slot];
    r->end_ns = c->time_ns;
    r->fate = (uint8_t)fate;
    if (fate != SV_FATE_RESPONDED)
        end_unanswered(l, slot);
    else if (r->batch == NONE || knows_run(&l->batches[r->batch]))
        end_request(l, slot);
}

/* ---- in an engine ---- */

static void begin_phase(struct sv_life_request *r, enum sv_engine_phase phase, int64_t time_ns)
{
    r->since_ns = time_ns > r->since_ns ? time_ns : r->since_ns;
    r->phase = (uint8_t)phase;
    if (r->n_marks < SV_LIFE_MARKS)
        r->marks[r->n_marks++] = (int64_t)((uint64_t)r->since_ns << 3 | (uint64_t)phase);
}

static void change_phase(struct sv_life_request *r, enum sv_engine_event event, int64_t time_ns)
{
    if (r->phase == SV_ENGINE_NONE && r->enqueued_ns)
        begin_phase(r, SV_ENGINE_QUEUE, r->enqueued_ns);
    enum sv_engine_phase next = sv_engine_next(r->phase, event, r->first_token_ns != 0);
    if (next != r->phase)
        begin_phase(r, next, time_ns);
}

static void schedule(struct sv_life *l, struct sv_life_request *r, int64_t time_ns)
{
    r->scheduled_ns = r->scheduled_ns ? r->scheduled_ns : time_ns;
    r->dequeued_ns = r->dequeued_ns ? r->dequeued_ns : time_ns;
    leave_queue(l, r, time_ns);
}

static void put_in_engine(struct sv_life *l, const struct sv_life_call *c)
{
    uint32_t slot = find_request(l, c->id);
    if (slot == NONE) {
        l->counts.unexpected++;
        return;
    }
    struct sv_life_request *r = &l->requests[slot];
    switch (c->op) {
    case SV_LIFE_SCHEDULED:
        schedule(l, r, c->time_ns);
        change_phase(r, SV_ENGINE_SCHEDULED, c->time_ns);
        break;
    case SV_LIFE_PREEMPTED:
        r->preemptions += r->phase != SV_ENGINE_PREEMPTED;
        change_phase(r, SV_ENGINE_IS_PREEMPTED, c->time_ns);
        break;
    case SV_LIFE_RESUMED: change_phase(r, SV_ENGINE_RESUMES, c->time_ns); break;
    case SV_LIFE_TRANSFERRED:
        change_phase(r, SV_ENGINE_IS_SENT, c->start_ns ? c->start_ns : c->time_ns);
        change_phase(r, SV_ENGINE_IS_RECEIVED, c->time_ns);
        break;
    default: return; /* streamed: a time and a number, for the reports */
    }
    r->is_joined = false;
}

static void put_step_member(struct sv_life *l, const struct sv_life_step *s,
                            const struct sv_engine_member *m)
{
    l->counts.tokens_in += m->tokens_in;
    l->counts.tokens_out += m->tokens_out;
    uint32_t slot = find_request(l, m->request);
    if (slot == NONE) {
        l->counts.unexpected++;
        return;
    }
    struct sv_life_request *r = &l->requests[slot];
    schedule(l, r, s->start_ns);
    change_phase(r, m->is_decode ? SV_ENGINE_STEP_DECODE : SV_ENGINE_STEP_PREFILL, s->start_ns);
    if (!r->is_joined)
        report(l, SV_MOMENT_JOINED, s->start_ns, r, NULL);
    r->is_joined = true;
    r->cached += m->cached;
    uint32_t known = m->position + m->cached + m->tokens_in;
    if (!r->first_token_ns && !m->is_decode && known > r->prompt)
        r->prompt = known; /* computed again after a preemption, it counts once */
    if (!m->tokens_out)
        return;
    change_phase(r, SV_ENGINE_TOKEN, s->end_ns);
    r->output += m->tokens_out;
    r->first_token_ns = r->first_token_ns ? r->first_token_ns : s->end_ns;
    r->last_token_ns = s->end_ns;
}

void sv_life_step(struct sv_life *l, const struct sv_life_step *s)
{
    l->counts.calls++;
    l->counts.steps++;
    l->counts.step_members += s->n;
    for (uint32_t i = 0; i < s->n; i++)
        put_step_member(l, s, &s->members[i]);
}

/* ---- calls about batches ---- */

static void name_member(struct sv_life_batch *b, struct sv_life_member m)
{
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 8;
        b->members = sv_realloc(b->members, b->cap * sizeof *b->members);
    }
    b->members[b->n++] = m;
}

static void add_member(struct sv_life *l, uint32_t slot, uint64_t id, int64_t time_ns)
{
    struct sv_life_batch *b = &l->batches[slot];
    const uint64_t *left = sv_map_find(&l->left_slots, id);
    if (left && b->n < MEMBERS_MAX) {
        name_member(b, (struct sv_life_member){.id = id, .fate = l->left[*left].fate});
        return;
    }
    uint32_t n = request_at(l, id);
    struct sv_life_request *r = &l->requests[n];
    if (r->batch != NONE || b->n == MEMBERS_MAX) {
        l->counts.repeated++;
        return;
    }
    r->member = b->n;
    name_member(b, (struct sv_life_member){
                       .id = id, .arrival_ns = r->enqueued_ns, .dequeued_ns = r->dequeued_ns});
    b->n_open++;
    r->batch = slot;
    leave_queue(l, r, r->dequeued_ns ? r->dequeued_ns : time_ns);
    note_times(b, &b->members[r->member]);
}

static void put_members(struct sv_life *l, const struct sv_life_call *c)
{
    uint32_t slot = batch_at(l, c->id);
    for (uint32_t i = 0; i < c->n; i++)
        add_member(l, slot, c->members[i], c->time_ns);
}

static void put_collected(struct sv_life *l, const struct sv_life_call *c, struct sv_life_batch *b)
{
    (void)l;
    b->is_collected = true;
    b->model = c->model;
    b->flags = c->flags;
    b->samples = c->samples;
    b->collect_start_ns = c->start_ns ? c->start_ns : b->first_dequeued_ns;
    b->collect_end_ns = c->time_ns;
}

static void put_submitted(struct sv_life *l, const struct sv_life_call *c, struct sv_life_batch *b)
{
    if (!b->is_submitted)
        l->counts.inflight++;
    b->is_submitted = true;
    b->submitted_ns = c->time_ns;
    report(l, SV_MOMENT_SUBMITTED, c->time_ns, NULL, b);
}

static void put_started(struct sv_life *l, const struct sv_life_call *c, struct sv_life_batch *b)
{
    struct sv_life_worker *w = worker_at(l, c->worker);
    b->worker = c->worker;
    b->started_ns = c->time_ns;
    b->lane = ~w->lanes ? (uint32_t)__builtin_ctzll(~w->lanes) : LANES_MAX - 1;
    w->lanes |= (uint64_t)1 << b->lane;
}

static void put_finished(struct sv_life *l, const struct sv_life_call *c, struct sv_life_batch *b)
{
    b->finished_ns = c->time_ns;
    if (b->is_finished)
        return;
    b->is_finished = true;
    if (b->worker >= 0)
        worker_at(l, b->worker)->lanes &= ~((uint64_t)1 << b->lane);
    report(l, SV_MOMENT_FINISHED, c->time_ns, NULL, b);
}

static void put_callback(const struct sv_life_call *c, struct sv_life_batch *b)
{
    b->callback_start_ns = c->start_ns ? c->start_ns : c->time_ns;
    b->callback_end_ns = c->time_ns;
}

static void put_context(struct sv_life *l, const struct sv_life_call *c)
{
    uint32_t slot = find_request(l, c->id);
    if (slot == NONE || c->n < SV_LIFE_CONTEXT_WORDS || l->requests[slot].context) {
        l->counts.unexpected++;
        return;
    }
    size_t state = (c->n - SV_LIFE_CONTEXT_WORDS) * sizeof *c->members;
    struct sv_life_context *context = sv_alloc(sizeof *context + state + 1);
    memcpy(context, c->members, sizeof *context);
    memcpy(context->state, c->members + SV_LIFE_CONTEXT_WORDS, state);
    l->requests[slot].context = context;
}

static void put_batch(struct sv_life *l, const struct sv_life_call *c)
{
    bool may_be_new = c->op == SV_LIFE_COLLECTED || c->op == SV_LIFE_SUBMITTED;
    uint32_t slot = may_be_new ? batch_at(l, c->id) : find_batch(l, c->id);
    if (slot == NONE || l->batches[slot].is_over) {
        l->counts.unexpected++;
        return;
    }
    struct sv_life_batch *b = &l->batches[slot];
    switch (c->op) {
    case SV_LIFE_COLLECTED: put_collected(l, c, b); break;
    case SV_LIFE_SUBMITTED: put_submitted(l, c, b); break;
    case SV_LIFE_STARTED: put_started(l, c, b); break;
    case SV_LIFE_FINISHED: put_finished(l, c, b); break;
    case SV_LIFE_CALLBACK: put_callback(c, b); break;
    default: b->is_failed = true; break;
    }
    settle_batch(l, slot, c->time_ns);
}

static void put_left_out(struct sv_life_counts *n, const struct sv_life_call *c)
{
    int64_t from_ns = sv_sat_sub(c->time_ns, (int64_t)c->members[SV_LEFT_SPAN_NS]);
    bool is_first = n->left_out[SV_LEFT_REQUESTS] == 0;
    n->left_from_ns = is_first || from_ns < n->left_from_ns ? from_ns : n->left_from_ns;
    n->left_to_ns = is_first || c->time_ns > n->left_to_ns ? c->time_ns : n->left_to_ns;
    for (int i = SV_LEFT_REQUESTS; i <= SV_LEFT_SUM_NS; i++)
        n->left_out[i] += c->members[i];
    if (c->members[SV_LEFT_MOST_NS] > n->left_out[SV_LEFT_MOST_NS])
        n->left_out[SV_LEFT_MOST_NS] = c->members[SV_LEFT_MOST_NS];
}

void sv_life_put(struct sv_life *l, const struct sv_life_call *c)
{
    l->counts.calls++;
    switch (c->op) {
    case SV_LIFE_MODEL: put_model(l, c); break;
    case SV_LIFE_WORKER: put_worker(l, c); break;
    case SV_LIFE_ENQUEUED: put_enqueued(l, c); break;
    case SV_LIFE_REJECTED: put_rejected(l, c); break;
    case SV_LIFE_DEQUEUED: put_dequeued(l, c); break;
    case SV_LIFE_MEMBERS: put_members(l, c); break;
    case SV_LIFE_RESPONDED: put_fate(l, c, SV_FATE_RESPONDED); break;
    case SV_LIFE_FAILED: put_fate(l, c, SV_FATE_FAILED); break;
    case SV_LIFE_CANCELLED: put_fate(l, c, SV_FATE_CANCELLED); break;
    case SV_LIFE_CONTEXT: put_context(l, c); break;
    case SV_LIFE_LEFT_OUT: put_left_out(&l->counts, c); break;
    case SV_LIFE_TRANSPORT: break;
    case SV_LIFE_SCHEDULED:
    case SV_LIFE_PREEMPTED:
    case SV_LIFE_RESUMED:
    case SV_LIFE_TRANSFERRED:
    case SV_LIFE_STREAMED: put_in_engine(l, c); break;
    case SV_LIFE_CONGESTION:
        l->is_congested = c->flags != 0;
        report(l, l->is_congested ? SV_MOMENT_CONGESTED : SV_MOMENT_NOT_CONGESTED, c->time_ns, NULL,
               NULL);
        break;
    default:
        if (c->op == SV_LIFE_COLLECTED) /* the last members, or all, come with it */
            put_members(l, c);
        put_batch(l, c);
        break;
    }
}

/* Batches that were computed but had no callback are reported as over; the rest stays open. */
void sv_life_end(struct sv_life *l)
{
    for (uint32_t slot = l->oldest_batch; slot != NONE;) {
        struct sv_life_batch *b = &l->batches[slot];
        uint32_t newer = b->newer;
        if (!b->is_over && b->is_finished && b->is_collected) {
            b->is_over = true;
            l->counts.batches++;
            l->counts.inflight -= b->is_submitted;
            report(l, SV_MOMENT_BATCH_OVER, b->finished_ns, NULL, b);
        }
        if (b->is_over && b->n_open == 0)
            drop_batch(l, slot);
        else
            close_batch(l, b);
        slot = newer;
    }
    if (l->is_congested)
        report(l, SV_MOMENT_NOT_CONGESTED, 0, NULL, NULL);
    l->is_congested = false;
}

/* ---- phases ---- */

/* Each edge no earlier than the one before it and no later than the end; one that is not known
 * repeats the one before. */
static void chain(int64_t edges[SV_N_PHASES + 1], const int64_t *times)
{
    int64_t end = edges[SV_N_PHASES];
    for (size_t i = 1; i < SV_N_PHASES; i++) {
        int64_t t = times[i] > end ? end : times[i];
        edges[i] = times[i] && t > edges[i - 1] ? t : edges[i - 1];
    }
    if (end < edges[SV_N_PHASES - 1])
        edges[SV_N_PHASES] = edges[SV_N_PHASES - 1];
}

/* What is reported after the submission may have begun before it. */
static int64_t submitted_of(const struct sv_life_batch *b)
{
    return b->started_ns && b->started_ns < b->submitted_ns ? b->started_ns : b->submitted_ns;
}

void sv_life_request_edges(const struct sv_life_request *r, const struct sv_life_batch *b,
                           int64_t edges[SV_N_PHASES + 1])
{
    int64_t times[SV_N_PHASES] = {0};
    edges[0] = r->enqueued_ns ? r->enqueued_ns : r->end_ns;
    edges[SV_N_PHASES] = r->end_ns > edges[0] ? r->end_ns : edges[0];
    times[1] = r->dequeued_ns;
    if (b) {
        if (!times[1])
            times[1] = b->collect_end_ns;
        times[2] = b->collect_end_ns;
        times[3] = submitted_of(b);
        times[4] = b->started_ns;
        times[5] = b->finished_ns;
        times[6] = b->callback_end_ns ? b->callback_end_ns : b->finished_ns ? r->end_ns : 0;
    } else if (!times[1]) {
        times[1] = r->end_ns; /* it never left the queue */
    } else {
        times[5] = r->last_token_ns; /* an engine ran it until then */
    }
    chain(edges, times);
}

void sv_life_batch_edges(const struct sv_life_batch *b, int64_t edges[SV_N_PHASES + 1])
{
    const int64_t known[] = {b->callback_end_ns, b->finished_ns, b->started_ns, b->submitted_ns,
                             b->collect_end_ns};
    const int64_t times[SV_N_PHASES] = {0,
                                        b->collect_start_ns ? b->collect_start_ns
                                                            : b->collect_end_ns,
                                        b->collect_end_ns,
                                        submitted_of(b),
                                        b->started_ns,
                                        b->finished_ns,
                                        b->callback_end_ns ? b->callback_end_ns : b->finished_ns};
    int64_t end = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known && !end; i++)
        end = known[i];
    edges[0] = b->first_arrival_ns ? b->first_arrival_ns : times[1];
    edges[SV_N_PHASES] = end > edges[0] ? end : edges[0];
    chain(edges, times);
}
