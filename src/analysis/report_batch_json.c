/* The life cycle behind a batching_trace.json, for traces that have nothing better: files of servers that are not traced by libstave-serving.
 *
 * Called by the serving report. Four passes over the rows give the calls in an order that makes sense: arrivals, batches, workers, answers. Where
 * the file has no spans of requests they are answered when their batch ends. Whole microseconds are all that such a file knows. */
#include "analysis/report_batch.h"

#include "core/base/map.h"

#include <stdlib.h>
#include <string.h>

#define WARMING "warming_"
enum { MEMBERS_MAX = 65536, MODELS_MAX = 1000 };

struct words {
    sv_str cat, request_cat, enqueued, rejected, build, submitted, request;
    sv_str request_id, batch_id, batch_size, model_name, request_ids, worker_id, worker_type,
        outcome;
    unsigned warm; /* these are the words of warm-up */
};

struct reading {
    const struct sv_trace *t;
    struct sv_life *l;
    struct words w;
    struct sv_batch scratch;
    struct sv_map models, workers, batches; /* batches: those that were put */
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
    w->request = word(t, is_warm, "request");
    w->request_id = word(t, is_warm, "request_id");
    w->batch_id = word(t, is_warm, "batch_id");
    w->batch_size = word(t, is_warm, "batch_size");
    w->model_name = word(t, is_warm, "model_name");
    w->request_ids = word(t, is_warm, "request_ids");
    w->worker_id = word(t, is_warm, "worker_id");
    w->worker_type = word(t, is_warm, "worker_type");
    w->outcome = word(t, is_warm, "outcome");
    w->warm = is_warm ? SV_LIFE_WARMUP : 0;
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

static void put(struct reading *r, enum sv_life_op op, uint64_t id, int64_t time_ns)
{
    sv_life_put(r->l, &(struct sv_life_call){.op = (uint16_t)op, .id = id, .time_ns = time_ns});
}

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
        sv_life_put(r->l, &(struct sv_life_call){.op = SV_LIFE_MODEL, .id = *number, .text = name});
    }
    return (uint32_t)*number;
}

static void put_arrival(struct reading *r, uint64_t row, enum sv_life_op op)
{
    struct sv_life_call c = {
        .op = (uint16_t)op, .time_ns = r->t->slices.ts_ns[row], .flags = (uint16_t)r->w.warm};
    if (!arg_number(r, row, r->w.request_id, &c.id))
        return;
    c.model = model_of(r, row);
    sv_life_put(r->l, &c);
}

/* The members of the array: the whole list is decoded, since only its own slot is found by key. */
static uint32_t members_of(struct reading *r, uint64_t row)
{
    size_t n;
    uint32_t found = 0;
    const struct sv_arg *a = sv_trace_args(r->t, r->t->slices.args[row], &r->scratch, &n);
    for (const struct sv_arg *end = a + n; n && a < end; a = sv_arg_next(a)) {
        if (a->key != r->w.request_ids || a->type != SV_ARG_ARRAY)
            continue;
        for (uint32_t i = 1; i <= a->size && found < MEMBERS_MAX; i++)
            if (a[i].type == SV_ARG_INT || a[i].type == SV_ARG_UINT)
                r->members[found++] = a[i].u;
    }
    sv_batch_reset(&r->scratch);
    return found;
}

static void put_build(struct reading *r, uint64_t row)
{
    int64_t start = r->t->slices.ts_ns[row], end = sv_trace_end_ns(r->t, row);
    uint64_t batch, size = 0;
    if (!arg_number(r, row, r->w.batch_id, &batch))
        return;
    uint32_t n = members_of(r, row);
    for (uint32_t i = 0; i < n; i++)
        put(r, SV_LIFE_DEQUEUED, r->members[i], start);
    sv_life_put(
        r->l,
        &(struct sv_life_call){
            .op = SV_LIFE_MEMBERS, .id = batch, .time_ns = end, .members = r->members, .n = n});
    arg_number(r, row, r->w.batch_size, &size);
    sv_life_put(r->l, &(struct sv_life_call){.op = SV_LIFE_COLLECTED,
                                             .id = batch,
                                             .time_ns = end,
                                             .start_ns = start,
                                             .model = model_of(r, row),
                                             .samples = size ? (uint32_t)size : n,
                                             .flags = (uint16_t)r->w.warm});
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
    sv_life_put(r->l, &(struct sv_life_call){
                          .op = SV_LIFE_WORKER, .id = worker, .device = -1, .text = type});
}

static void put_worker(struct reading *r, uint64_t row)
{
    uint64_t batch, worker;
    if (!arg_number(r, row, r->w.batch_id, &batch) || !arg_number(r, row, r->w.worker_id, &worker))
        return;
    int64_t end = sv_trace_end_ns(r->t, row);
    meet_worker(r, row, worker);
    sv_life_put(r->l, &(struct sv_life_call){.op = SV_LIFE_STARTED,
                                             .id = batch,
                                             .time_ns = r->t->slices.ts_ns[row],
                                             .worker = (int32_t)worker});
    put(r, SV_LIFE_FINISHED, batch, end);
    *sv_map_add(&r->batches, batch, NULL) = (uint64_t)end;
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
    put(r, op, request, sv_trace_end_ns(r->t, row));
    return 1;
}

enum pass { ARRIVALS, BATCHES, SUBMISSIONS, WORKERS, ANSWERS };

static uint64_t pass(struct reading *r, enum pass p)
{
    const struct sv_slices *s = &r->t->slices;
    const struct words *w = &r->w;
    uint64_t n = 0, batch;
    for (uint64_t row = 0; row < s->n; row++) {
        sv_str name = s->name[row];
        if (p == ANSWERS && s->cat[row] == w->request_cat && name == w->request && name)
            n += put_answer(r, row);
        if (s->cat[row] != w->cat || !name)
            continue;
        if (p == ARRIVALS && (name == w->enqueued || name == w->rejected)) {
            put_arrival(r, row, name == w->enqueued ? SV_LIFE_ENQUEUED : SV_LIFE_REJECTED);
            n++;
        } else if (p == BATCHES && name == w->build) {
            put_build(r, row);
            n++;
        } else if (p == SUBMISSIONS && name == w->submitted &&
                   arg_number(r, row, w->batch_id, &batch)) {
            put(r, SV_LIFE_SUBMITTED, batch, s->ts_ns[row]);
        } else if (p == WORKERS) {
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
        if (!end)
            continue;
        uint32_t n = has_answers ? 0 : members_of(r, row);
        for (uint32_t i = 0; i < n; i++)
            put(r, SV_LIFE_RESPONDED, r->members[i], (int64_t)*end);
        put(r, SV_LIFE_CALLBACK, batch, (int64_t)*end);
    }
}

bool sv_serving_from_json(const struct sv_trace *t, struct sv_life *l)
{
    struct reading *r = sv_alloc(sizeof *r);
    uint64_t found = 0;
    r->t = t;
    r->l = l;
    sv_batch_init(&r->scratch);
    for (int is_warm = 0; is_warm < 2; is_warm++) {
        find_words(&r->w, t, is_warm);
        if (!r->w.cat)
            break;
        sv_map_clear(&r->batches);
        found += pass(r, ARRIVALS);
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
    free(r);
    return found > 0;
}
