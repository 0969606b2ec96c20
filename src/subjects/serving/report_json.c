/* The life cycle behind a batching_trace.json, for traces that have nothing better.
 *
 * Called by the serving report and by what makes the tables of requests. Passes over the rows give
 * the calls in an order that makes sense: arrivals, ways out of the queue, batches, workers,
 * answers. Files of libstave-serving have the times of each to the nanosecond in arguments (ts_ns,
 * times_ns, phases_ns), of which the time of the event is the microsecond: so they stay right when
 * a trace is moved in time. Of the files of other servers whole microseconds are known, and where
 * they have no spans of requests these are answered when their batch ends. */
#include "subjects/serving/report.h"

#include "core/base/map.h"
#include "core/base/sat.h"

#include <stdlib.h>
#include <string.h>

#define WARMING "warming_"
enum { MEMBERS_MAX = 65536, MODELS_MAX = 1000 };

struct words {
    sv_str left_out, left_out_keys[SV_N_LEFT_OUT];
    sv_str cat, request_cat, enqueued, rejected, build, submitted, over, request;
    sv_str request_id, batch_id, batch_size, model_name, request_ids, worker_id, worker_type,
        outcome, ts_ns, times_ns, phases_ns, queue_ns;
    unsigned warm; /* these are the words of warm-up */
};

struct reading {
    const struct sv_trace *t;
    sv_life_sink *sink;
    void *ctx;
    struct words w;
    struct sv_batch scratch;
    struct sv_map models, workers, batches; /* batches: those that a worker had, → its end */
    struct sv_map overs;                    /* batch → row of its end + 1 */
    struct sv_map spans;                    /* requests whose own spans have their times */
    uint64_t members[MEMBERS_MAX];
};

static sv_str word(const struct sv_trace *t, bool is_warm, const char *text)
{
    char both[64];
    size_t n = is_warm ? strlen(WARMING) : 0;
    memcpy(both, WARMING, n);
    strncpy(both + n, text, sizeof both - n - 1);
    both[sizeof both - 1] = '\0';
    return sv_dict_find_str(t->dict, both, strlen(both));
}

static void find_words(struct words *w, const struct sv_trace *t, bool is_warm)
{
    w->cat = word(t, false, "batching");
    w->request_cat = word(t, false, "request");
    w->enqueued = word(t, is_warm, "request_enqueued");
    w->rejected = word(t, is_warm, "request_rejected");
    w->build = word(t, is_warm, "batch_build");
    w->submitted = word(t, is_warm, "batch_submitted");
    w->over = word(t, is_warm, "batch_over");
    w->request = word(t, is_warm, "request");
    w->request_id = word(t, is_warm, "request_id");
    w->batch_id = word(t, is_warm, "batch_id");
    w->batch_size = word(t, is_warm, "batch_size");
    w->model_name = word(t, is_warm, "model_name");
    w->request_ids = word(t, is_warm, "request_ids");
    w->worker_id = word(t, is_warm, "worker_id");
    w->worker_type = word(t, is_warm, "worker_type");
    w->outcome = word(t, is_warm, "outcome");
    w->ts_ns = word(t, is_warm, "ts_ns");
    w->times_ns = word(t, is_warm, "times_ns");
    w->phases_ns = word(t, is_warm, "phases_ns");
    w->queue_ns = word(t, is_warm, "queue_ns");
    w->warm = is_warm ? SV_LIFE_WARMUP : 0;
    w->left_out = word(t, is_warm, "left_out"); /* never of warm-up */
    for (int i = 0; i < SV_N_LEFT_OUT; i++)
        w->left_out_keys[i] = word(t, is_warm, sv_left_out_names[i]);
}

static bool arg(const struct reading *r, uint64_t row, sv_str key, struct sv_arg *out)
{
    return key && sv_trace_arg(r->t, r->t->slices.args[row], key, out);
}

static bool arg_number(const struct reading *r, uint64_t row, sv_str key, uint64_t *out)
{
    struct sv_arg a;
    if (!arg(r, row, key, &a) || (a.type != SV_ARG_INT && a.type != SV_ARG_UINT))
        return false;
    *out = a.u;
    return true;
}

static void put_call(struct reading *r, const struct sv_life_call *c)
{
    r->sink(r->ctx, c, SV_NO_ROW);
}

static void put(struct reading *r, enum sv_life_op op, uint64_t id, int64_t time_ns)
{
    put_call(r, &(struct sv_life_call){.op = (uint16_t)op, .id = id, .time_ns = time_ns});
}

/* The time of the row, to the nanosecond where the row says it. */
static int64_t time_of(const struct reading *r, uint64_t row)
{
    struct sv_arg a;
    int64_t ts_ns = r->t->slices.ts_ns[row];
    if (arg(r, row, r->w.ts_ns, &a) && (a.type == SV_ARG_INT || a.type == SV_ARG_UINT) && a.i > 0)
        ts_ns = sv_sat_add(ts_ns, a.i % 1000);
    return ts_ns ? ts_ns : 1; /* 0 would say that it is not known */
}

/* The numbers of an array, `max` at most: the whole list of arguments is decoded, since only its
 * own slot is found by key. */
/* With names or without: earlier files have the phases as a list. */
static uint32_t numbers_of(struct reading *r, uint64_t row, sv_str key, uint64_t *to, uint32_t max)
{
    size_t n;
    uint32_t found = 0;
    const struct sv_arg *a = sv_trace_args(r->t, r->t->slices.args[row], &r->scratch, &n);
    for (const struct sv_arg *end = a + n; n && key && a < end; a = sv_arg_next(a)) {
        if (a->key != key || (a->type != SV_ARG_ARRAY && a->type != SV_ARG_DICT))
            continue;
        for (uint32_t i = 1; i <= a->size && found < max; i++)
            if (a[i].type == SV_ARG_INT || a[i].type == SV_ARG_UINT)
                to[found++] = a[i].u;
    }
    sv_batch_reset(&r->scratch);
    return found;
}

static uint32_t members_of(struct reading *r, uint64_t row)
{
    return numbers_of(r, row, r->w.request_ids, r->members, MEMBERS_MAX);
}

/* ---- how a batch ended ---- */

enum {
    COLLECT_START,
    COLLECT_END,
    SUBMITTED,
    STARTED,
    FINISHED,
    CALLBACK_START,
    CALLBACK_END,
    N_TIMES
};

struct over {
    int64_t times_ns[N_TIMES], at_ns; /* 0: not known */
    bool is_known, is_failed;
};

static struct over over_of(struct reading *r, uint64_t batch)
{
    struct over o = {0};
    uint64_t times[N_TIMES], at_ns;
    struct sv_arg a;
    const uint64_t *row = sv_map_find(&r->overs, batch);
    if (!row || !arg_number(r, *row - 1, r->w.ts_ns, &at_ns) ||
        numbers_of(r, *row - 1, r->w.times_ns, times, N_TIMES) != N_TIMES)
        return o;
    int64_t shift_ns = sv_sat_sub(time_of(r, *row - 1), (int64_t)at_ns);
    for (int i = 0; i < N_TIMES; i++)
        o.times_ns[i] = (int64_t)times[i] < 0 ? 0 : sv_sat_add((int64_t)times[i], shift_ns);
    o.at_ns = time_of(r, *row - 1);
    o.is_known = true;
    o.is_failed = arg(r, *row - 1, r->w.outcome, &a) && a.type == SV_ARG_TEXT && a.size == 6 &&
                  memcmp(a.text, "failed", 6) == 0;
    return o;
}

static void put_over(struct reading *r, uint64_t batch, const struct over *o)
{
    if (o->is_failed)
        put(r, SV_LIFE_BATCH_FAILED, batch, o->at_ns);
    else if (o->times_ns[CALLBACK_END])
        put_call(r, &(struct sv_life_call){.op = SV_LIFE_CALLBACK,
                                           .id = batch,
                                           .time_ns = o->times_ns[CALLBACK_END],
                                           .start_ns = o->times_ns[CALLBACK_START]});
}

/* ---- the events ---- */

/* The number of the model that the row names. */
static uint32_t model_of(struct reading *r, uint64_t row)
{
    struct sv_arg a;
    char name[256];
    bool is_new;
    if (!arg(r, row, r->w.model_name, &a) || a.type != SV_ARG_TEXT)
        return 0;
    size_t n = a.size < sizeof name - 1 ? a.size : sizeof name - 1;
    memcpy(name, a.text, n);
    name[n] = '\0';
    uint64_t *number = sv_map_add(&r->models, sv_hash_bytes(name, n, 1), &is_new);
    if (is_new) {
        *number = r->models.n - 1 < MODELS_MAX ? r->models.n - 1 : MODELS_MAX;
        put_call(r, &(struct sv_life_call){.op = SV_LIFE_MODEL, .id = *number, .text = name});
    }
    return (uint32_t)*number;
}

static void put_arrival(struct reading *r, uint64_t row, enum sv_life_op op)
{
    struct sv_life_call c = {
        .op = (uint16_t)op, .time_ns = time_of(r, row), .flags = (uint16_t)r->w.warm};
    if (!arg_number(r, row, r->w.request_id, &c.id))
        return;
    c.model = model_of(r, row);
    r->sink(r->ctx, &c, (uint32_t)row);
}

static void put_left_out(struct reading *r, uint64_t row)
{
    uint64_t n[SV_N_LEFT_OUT] = {0};
    for (int i = 0; i < SV_N_LEFT_OUT; i++)
        arg_number(r, row, r->w.left_out_keys[i], &n[i]);
    put_call(r, &(struct sv_life_call){.op = SV_LIFE_LEFT_OUT,
                                       .time_ns = time_of(r, row),
                                       .model = model_of(r, row),
                                       .members = n,
                                       .n = SV_N_LEFT_OUT});
}

static void put_build(struct reading *r, uint64_t row)
{
    int64_t start = r->t->slices.ts_ns[row], end = sv_trace_end_ns(r->t, row);
    uint64_t batch, size = 0;
    if (!arg_number(r, row, r->w.batch_id, &batch))
        return;
    struct over o = over_of(r, batch);
    if (o.is_known) {
        start = o.times_ns[COLLECT_START];
        end = o.times_ns[COLLECT_END];
    }
    uint32_t n = members_of(r, row);
    for (uint32_t i = 0; i < n; i++)
        if (!sv_map_find(&r->spans, r->members[i]))
            put(r, SV_LIFE_DEQUEUED, r->members[i], start);
    put_call(
        r, &(struct sv_life_call){
               .op = SV_LIFE_MEMBERS, .id = batch, .time_ns = end, .members = r->members, .n = n});
    arg_number(r, row, r->w.batch_size, &size);
    put_call(r, &(struct sv_life_call){.op = SV_LIFE_COLLECTED,
                                       .id = batch,
                                       .time_ns = end,
                                       .start_ns = start,
                                       .model = model_of(r, row),
                                       .samples = size ? (uint32_t)size : n,
                                       .flags = (uint16_t)r->w.warm});
}

static void put_submitted(struct reading *r, uint64_t row)
{
    uint64_t batch;
    if (!arg_number(r, row, r->w.batch_id, &batch))
        return;
    struct over o = over_of(r, batch);
    put(r, SV_LIFE_SUBMITTED, batch, o.is_known ? o.times_ns[SUBMITTED] : r->t->slices.ts_ns[row]);
}

static void meet_worker(struct reading *r, uint64_t row, uint64_t worker)
{
    struct sv_arg a;
    char type[16] = "unknown";
    bool is_new;
    sv_map_add(&r->workers, worker, &is_new);
    if (!is_new)
        return;
    if (arg(r, row, r->w.worker_type, &a) && a.type == SV_ARG_TEXT) {
        size_t n = a.size < sizeof type - 1 ? a.size : sizeof type - 1;
        memcpy(type, a.text, n);
        type[n] = '\0';
    }
    put_call(
        r, &(struct sv_life_call){.op = SV_LIFE_WORKER, .id = worker, .device = -1, .text = type});
}

static void put_worker(struct reading *r, uint64_t row)
{
    uint64_t batch, worker;
    if (!arg_number(r, row, r->w.batch_id, &batch) || !arg_number(r, row, r->w.worker_id, &worker))
        return;
    int64_t start = r->t->slices.ts_ns[row], end = sv_trace_end_ns(r->t, row);
    struct over o = over_of(r, batch);
    if (o.is_known) {
        start = o.times_ns[STARTED];
        end = o.times_ns[FINISHED];
    }
    meet_worker(r, row, worker);
    put_call(r,
             &(struct sv_life_call){
                 .op = SV_LIFE_STARTED, .id = batch, .time_ns = start, .worker = (int32_t)worker});
    put(r, SV_LIFE_FINISHED, batch, end);
    *sv_map_add(&r->batches, batch, NULL) = (uint64_t)end;
}

/* A span that has its request's times: when that left the queue. */
static void put_dequeued(struct reading *r, uint64_t row)
{
    uint64_t request, queue_ns, unused;
    if (!arg_number(r, row, r->w.request_id, &request) || !arg_number(r, row, r->w.ts_ns, &unused))
        return;
    sv_map_add(&r->spans, request, NULL);
    if (arg_number(r, row, r->w.queue_ns, &queue_ns))
        put(r, SV_LIFE_DEQUEUED, request, sv_sat_add(time_of(r, row), (int64_t)queue_ns));
}

static int64_t end_of_span(struct reading *r, uint64_t row)
{
    uint64_t phases[SV_N_PHASES], unused;
    if (!arg_number(r, row, r->w.ts_ns, &unused) ||
        numbers_of(r, row, r->w.phases_ns, phases, SV_N_PHASES) != SV_N_PHASES)
        return sv_trace_end_ns(r->t, row);
    int64_t end_ns = time_of(r, row);
    for (int i = 0; i < SV_N_PHASES; i++)
        end_ns = sv_sat_add(end_ns, (int64_t)phases[i]);
    return end_ns;
}

/* Spans of requests: what became of them, and when. */
static uint64_t put_answer(struct reading *r, uint64_t row)
{
    uint64_t request;
    struct sv_arg a;
    if (!arg_number(r, row, r->w.request_id, &request))
        return 0;
    enum sv_life_op op = SV_LIFE_RESPONDED;
    if (arg(r, row, r->w.outcome, &a) && a.type == SV_ARG_TEXT) {
        if (a.size == 6 && memcmp(a.text, "failed", 6) == 0)
            op = SV_LIFE_FAILED;
        else if (a.size == 9 && memcmp(a.text, "cancelled", 9) == 0)
            op = SV_LIFE_CANCELLED;
    }
    put(r, op, request, end_of_span(r, row));
    return 1;
}

enum pass { OVERS, ARRIVALS, QUEUES, BATCHES, SUBMISSIONS, WORKERS, ANSWERS };

static uint64_t pass_span(struct reading *r, enum pass p, uint64_t row)
{
    if (p == QUEUES)
        put_dequeued(r, row);
    return p == ANSWERS ? put_answer(r, row) : 0;
}

static uint64_t pass(struct reading *r, enum pass p)
{
    const struct sv_slices *s = &r->t->slices;
    const struct words *w = &r->w;
    uint64_t n = 0, batch;
    for (uint64_t row = 0; row < s->n; row++) {
        sv_str name = s->name[row];
        if (s->cat[row] == w->request_cat && name == w->request && name)
            n += pass_span(r, p, row);
        if (s->cat[row] != w->cat || !name)
            continue;
        if (p == OVERS && name == w->over && arg_number(r, row, w->batch_id, &batch)) {
            *sv_map_add(&r->overs, batch, NULL) = row + 1;
        } else if (p == ARRIVALS && (name == w->enqueued || name == w->rejected)) {
            put_arrival(r, row, name == w->enqueued ? SV_LIFE_ENQUEUED : SV_LIFE_REJECTED);
            n++;
        } else if (p == ARRIVALS && name == w->left_out) {
            put_left_out(r, row);
        } else if (p == BATCHES && name == w->build) {
            put_build(r, row);
            n++;
        } else if (p == SUBMISSIONS && name == w->submitted) {
            put_submitted(r, row);
        } else if (p == WORKERS && name != w->submitted) {
            put_worker(r, row);
        }
    }
    return n;
}

/* The requests of each batch are answered, and the batch is over, when its worker is done. */
static void end_batches(struct reading *r, bool has_answers)
{
    const struct sv_slices *s = &r->t->slices;
    for (uint64_t row = 0; row < s->n; row++) {
        uint64_t batch;
        if (s->name[row] != r->w.build || !r->w.build || !arg_number(r, row, r->w.batch_id, &batch))
            continue;
        const uint64_t *end = sv_map_find(&r->batches, batch);
        struct over o = over_of(r, batch);
        if (o.is_known)
            put_over(r, batch, &o);
        if (!end || (o.is_known && has_answers))
            continue;
        uint32_t n = has_answers ? 0 : members_of(r, row);
        for (uint32_t i = 0; i < n; i++)
            put(r, SV_LIFE_RESPONDED, r->members[i], (int64_t)*end);
        if (!o.is_known)
            put(r, SV_LIFE_CALLBACK, batch, (int64_t)*end);
    }
}

bool sv_serving_from_json(const struct sv_trace *t, sv_life_sink *sink, void *ctx)
{
    struct reading *r = sv_alloc(sizeof *r);
    uint64_t found = 0;
    r->t = t;
    r->sink = sink;
    r->ctx = ctx;
    sv_batch_init(&r->scratch);
    for (int is_warm = 0; is_warm < 2; is_warm++) {
        find_words(&r->w, t, is_warm);
        if (!r->w.cat)
            break;
        sv_map_clear(&r->batches);
        sv_map_clear(&r->overs);
        sv_map_clear(&r->spans);
        pass(r, OVERS);
        found += pass(r, ARRIVALS);
        pass(r, QUEUES);
        found += pass(r, BATCHES);
        pass(r, SUBMISSIONS);
        pass(r, WORKERS);
        bool has_answers = pass(r, ANSWERS) > 0;
        end_batches(r, has_answers);
    }
    sv_batch_fini(&r->scratch);
    sv_map_fini(&r->models);
    sv_map_fini(&r->workers);
    sv_map_fini(&r->batches);
    sv_map_fini(&r->overs);
    sv_map_fini(&r->spans);
    free(r);
    return found > 0;
}
