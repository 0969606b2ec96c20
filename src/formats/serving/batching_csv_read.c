/* batching_trace_summary.csv and trace.csv: a row for each batch of an inference server, back to
 * the life cycle that it sums up.
 *
 * Opened through the table of formats; the one reader of the file. A row becomes the events of the
 * category serving.life that libstave-serving would have recorded, so that reports and pictures
 * need not know of the file. Arrivals are absolute, phases are durations: the batch is put together
 * from its first arrival on, by the exclusive columns where they are and by the overlapping ones
 * where not. Where the columns request_… say it, each request has its own times and its own end;
 * else requests of a batch leave the queue together and are answered together, which is all that
 * the file says. A row of the batch -1 is a request that never was in one. A file without arrivals
 * has its batches one after the other, marked as SV_LIFE_UNTIMED; one without request_ids has its
 * requests counted from 1. A missing column makes the file unreadable, a malformed cell its row. A
 * field holds at most 64 KiB of numbers. */
#include "formats/csv_line.h"
#include "formats/decimal.h"
#include "formats/lines.h"

#include "core/serving/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    BATCH_ID,
    WORKER,
    TYPE,
    SIZE,
    TOTAL,
    QUEUE,
    BATCH,
    SUBMIT,
    SCHEDULING,
    CODELET,
    INFERENCE,
    CALLBACK,
    N_REQUIRED,
    MODEL = N_REQUIRED,
    DEVICE,
    IDS,
    ARRIVALS,
    JOBS,
    WARMUP,
    CONGESTED,
    X_QUEUE,
    X_BATCH,
    X_SUBMIT,
    X_SCHEDULING,
    X_RUN,
    X_CALLBACK,
    FAILED,
    ARRIVALS_NS,
    QUEUES_NS,
    TOTALS_NS,
    OUTCOMES,
    N_COLUMNS
};
static const char *const names[N_COLUMNS] = {
    "batch_id",         "worker_id",      "worker_type",        "batch_size",
    "total_ms",         "queue_ms",       "batch_ms",           "submit_ms",
    "scheduling_ms",    "codelet_ms",     "inference_ms",       "callback_ms",
    "model_name",       "device_id",      "request_ids",        "request_arrival_us",
    "logical_jobs",     "warmup",         "congested",          "excl_queue_ms",
    "excl_batch_ms",    "excl_submit_ms", "excl_scheduling_ms", "excl_run_ms",
    "excl_callback_ms", "failed",         "request_arrival_ns", "request_queue_ns",
    "request_total_ns", "request_outcome"};

enum { MEMBERS_MAX = 1 << 16, NAMELESS_MAX = 1024, MODELS_MAX = 256, WORKERS_MAX = 256, EDGES = 7 };

/* Where there are no arrivals, the first batch begins here: 0 would mean that it is not known. */
#define UNTIMED_START_NS 1000000

/* What is given of the row, in this order. */
enum step {
    MODEL_STEP,
    WORKER_STEP,
    ENQUEUED,
    DEQUEUED,
    MEMBERS,
    COLLECTED,
    SUBMITTED,
    STARTED,
    FINISHED,
    CONGESTION, /* before the end of the batch, which it is asked at */
    CALLED_BACK,
    RESPONDED,
    DONE
};

struct member {
    uint64_t id;
    int64_t arrival_ns;
    int64_t queue_ns, total_ns; /* -1: it was not taken out, has no end; UNSAID: with its batch */
    enum sv_life_fate fate;
    bool is_named_only; /* it ended before the batch was collected, and has a row of its own */
};
#define UNSAID INT64_MIN

struct row {
    uint64_t batch;
    uint32_t model, samples;
    int64_t worker, device;
    int64_t ms[N_REQUIRED]; /* TOTAL … CALLBACK, in ns */
    int64_t edges[EDGES];   /* first arrival, collection, …, end of the callback */
    int64_t callback_ns;
    unsigned flags; /* SV_LIFE_… */
    size_t n;
    bool is_new_model, is_new_worker, is_congested, is_failed;
    bool is_alone; /* no batch: a request that never was in one */
};

struct batching_csv {
    struct sv_lines lines;
    int place[N_COLUMNS]; /* -1: not there */
    bool has_head;
    struct row row;
    struct member *members;
    size_t cap;
    enum step step;
    size_t at; /* member that comes next */
    sv_track track;
    struct sv_life_words words;
    struct sv_csv_line cells;
    char why[96];
    char *models[MODELS_MAX];
    size_t n_models;
    int64_t workers[WORKERS_MAX];
    int64_t model_ns[MODELS_MAX], worker_ns[WORKERS_MAX]; /* since when they are named */
    size_t n_workers;
    struct sv_text model_name, type;
    int64_t last_ns;   /* where there are no arrivals: batches follow each other */
    uint64_t nameless; /* requests so far, where the file does not name them */
};

/* ---- fields ---- */

static bool has(const struct batching_csv *s, enum column c)
{
    return s->place[c] >= 0;
}

static struct sv_text field(const struct batching_csv *s, enum column c)
{
    return has(s, c) ? s->cells.fields[s->place[c]] : (struct sv_text){"", 0};
}

static struct sv_text own_text(struct batching_csv *s, enum column c)
{
    return has(s, c) ? sv_csv_own_text(&s->cells, (size_t)s->place[c]) : (struct sv_text){"", 0};
}

/* Milliseconds as ns. */
static bool take_ms(const struct batching_csv *s, enum column c, int64_t *ns)
{
    return sv_decimal_ns(field(s, c), 6, ns);
}

static bool bad_cell(struct batching_csv *s, enum column c)
{
    struct sv_text t = field(s, c);
    snprintf(s->why, sizeof s->why, "%s is '%.*s'", names[c], (int)(t.len < 40 ? t.len : 40),
             t.bytes);
    return sv_lines_bad(&s->lines, s->why);
}

static int64_t number(const struct batching_csv *s, enum column c, int64_t otherwise)
{
    int64_t v;
    return sv_text_i64(field(s, c), &v) ? v : otherwise;
}

/* ---- the head ---- */

static const char *end_of_head(const uint8_t *head, size_t n)
{
    const char *end = n ? memchr(head, '\n', n) : NULL;
    return end ? end : (const char *)head + n;
}

/* Also a file that lacks columns, so that they can be named. */
static int probe(const uint8_t *head, size_t n)
{
    struct sv_csv_line line = {0};
    int place[N_COLUMNS], found = 0;
    if (n && sv_csv_split(&line, (const char *)head,
                          (size_t)(end_of_head(head, n) - (const char *)head))) {
        sv_csv_find(&line, names, N_COLUMNS, place);
        for (int c = 0; c < N_REQUIRED; c++)
            found += place[c] >= 0;
        found = place[BATCH_ID] >= 0 ? found : 0;
    }
    sv_csv_fini(&line);
    return found >= 3 ? 100 : 0;
}

/* Before the first line is read: a missing column is the caller's first error, not damage in line
 * 1. */
static int check_head(struct sv_input *in, struct sv_err *err)
{
    struct sv_csv_line line = {0};
    int place[N_COLUMNS];
    char missing[200];
    int code = 0;
    for (size_t want = 4096; code >= 0 && want <= 1048576; want *= 4) {
        code = sv_input_need(in, want, err);
        if (in->len == 0 || code == 0 || memchr(in->data, '\n', in->len))
            break;
    }
    if (code < 0)
        return code;
    if (in->len == 0)
        return sv_error(err, SV_EFORMAT, "the file is empty");
    sv_csv_split(&line, (const char *)in->data,
                 (size_t)(end_of_head(in->data, in->len) - (const char *)in->data));
    sv_csv_find(&line, names, N_COLUMNS, place);
    code = sv_csv_missing(names, place, N_REQUIRED, missing, sizeof missing)
               ? sv_error(err, SV_EFORMAT, "not a summary of batches: no column %s", missing)
               : 0;
    sv_csv_fini(&line);
    return code;
}

/* ---- a row ---- */

/* "7;8;9": the next part, *p after it and its semicolon. */
static struct sv_text list_part(const char **p, const char *end)
{
    const char *start = *p;
    while (*p < end && **p != ';')
        ++*p;
    struct sv_text t = {start, (uint32_t)(*p - start)};
    if (*p < end)
        ++*p;
    return t;
}

static bool list_next(const char **p, const char *end, int64_t *out)
{
    return sv_text_i64(list_part(p, end), out);
}

/* "responded;cancelled": the next word. */
static bool fate_next(const char **p, const char *end, enum sv_life_fate *out)
{
    struct sv_text t = list_part(p, end);
    for (int i = 0; i < SV_N_FATES; i++)
        if (sv_text_is(t, sv_life_fate_names[i])) {
            *out = (enum sv_life_fate)i;
            return true;
        }
    return false;
}

struct list {
    const char *at, *end;
};

static struct list list_of(const struct batching_csv *s, enum column c)
{
    struct sv_text t = field(s, c);
    return (struct list){t.bytes, t.bytes + t.len};
}

/* The next of a list that may be shorter than that of the numbers, or not there: then `*out` stays
 * as it is. */
static bool take_next(struct list *l, int64_t least, int64_t *out)
{
    return l->at >= l->end || (list_next(&l->at, l->end, out) && *out >= least);
}

static bool take_members(struct batching_csv *s)
{
    struct list ids = list_of(s, IDS), us = list_of(s, ARRIVALS), ns = list_of(s, ARRIVALS_NS),
                queues = list_of(s, QUEUES_NS), totals = list_of(s, TOTALS_NS),
                fates = list_of(s, OUTCOMES);
    struct row *r = &s->row;
    r->n = 0;
    while (ids.at < ids.end && r->n < MEMBERS_MAX) {
        struct member m = {.queue_ns = UNSAID, .total_ns = UNSAID, .fate = SV_FATE_RESPONDED};
        int64_t id, arrival_us = 0, end_ns;
        bool is_good =
            list_next(&ids.at, ids.end, &id) && take_next(&us, 0, &arrival_us) &&
            !__builtin_mul_overflow(arrival_us, 1000, &m.arrival_ns) &&
            take_next(&ns, 0, &m.arrival_ns) && take_next(&queues, -1, &m.queue_ns) &&
            take_next(&totals, -1, &m.total_ns) &&
            (fates.at >= fates.end || fate_next(&fates.at, fates.end, &m.fate)) &&
            (m.queue_ns < 0 || !__builtin_add_overflow(m.arrival_ns, m.queue_ns, &end_ns)) &&
            (m.total_ns < 0 || !__builtin_add_overflow(m.arrival_ns, m.total_ns, &end_ns));
        if (!is_good)
            return sv_lines_bad(&s->lines, "malformed request list");
        m.id = (uint64_t)id;
        m.is_named_only = has(s, OUTCOMES) && !m.arrival_ns && m.queue_ns == -1 &&
                          m.total_ns == -1 && m.fate != SV_FATE_OPEN && m.fate != SV_FATE_RESPONDED;
        SV_APPEND(s->members, r->n, s->cap) = m;
    }
    return true;
}

/* The file does not name them: there are as many as it says, or as samples. */
static void count_members(struct batching_csv *s)
{
    struct row *r = &s->row;
    int64_t n = number(s, JOBS, 0);
    n = n > 0 ? n : (int64_t)r->samples;
    if (n > NAMELESS_MAX) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "request without a number",
                      (uint64_t)(n - NAMELESS_MAX), s->lines.pos, "more than %d in a batch",
                      NAMELESS_MAX);
        n = NAMELESS_MAX;
    }
    s->members = sv_grow(s->members, &s->cap, (size_t)n + 1, sizeof *s->members);
    for (r->n = 0; r->n < (size_t)n; r->n++)
        s->members[r->n] = (struct member){
            .id = ++s->nameless, .queue_ns = UNSAID, .total_ns = UNSAID, .fate = SV_FATE_RESPONDED};
}

/* When the batch began; requests whose arrival is not known arrived then. */
static void take_start(struct batching_csv *s)
{
    struct row *r = &s->row;
    int64_t first = 0;
    for (size_t i = 0; i < r->n; i++)
        if (s->members[i].arrival_ns && (!first || s->members[i].arrival_ns < first))
            first = s->members[i].arrival_ns;
    if (!first) {
        r->flags |= SV_LIFE_UNTIMED;
        sv_report_add(s->lines.source.report, SV_NOTE,
                      "batch without arrivals, put after the one before it", 1, s->lines.pos,
                      "how long is known, when is not: rates and queue are not real");
    }
    r->edges[0] = first ? first : s->last_ns ? s->last_ns : UNTIMED_START_NS;
    for (size_t i = 0; i < r->n; i++)
        if (!s->members[i].arrival_ns)
            s->members[i].arrival_ns = r->edges[0];
}

static bool take_exclusive(const struct batching_csv *s, int64_t *ns)
{
    for (int i = 0; i < EDGES - 1; i++)
        if (!take_ms(s, (enum column)(X_QUEUE + i), &ns[i]))
            return false;
    return true;
}

/* Puts the edges one after the other; false: they are past all times. */
static bool add_spans(int64_t *e, const int64_t spans[EDGES - 1])
{
    for (int i = 0; i < EDGES - 1; i++)
        if (__builtin_add_overflow(e[i], spans[i], &e[i + 1]))
            return false;
    return true;
}

/* The columns are rounded to microseconds: what the total has more than that is added to the
 * end. */
static bool take_times(struct batching_csv *s)
{
    struct row *r = &s->row;
    int64_t spans[EDGES - 1], *e = r->edges, end;
    take_start(s);
    bool is_exclusive = take_exclusive(s, spans);
    /* submit contains batch; what the columns leave of the total belongs to the end */
    if (!is_exclusive) {
        int64_t batch = r->ms[BATCH], submit = r->ms[SUBMIT];
        memcpy(spans,
               (int64_t[EDGES - 1]){r->ms[QUEUE], batch, submit > batch ? submit - batch : 0,
                                    r->ms[SCHEDULING], r->ms[CODELET], 0},
               sizeof spans);
    }
    if (!add_spans(e, spans) || __builtin_add_overflow(e[0], r->ms[TOTAL], &end))
        return sv_lines_bad(&s->lines, "times before the year 2262");
    if (is_exclusive ? end - e[6] > 1000 : end > e[6])
        e[6] = end;
    r->callback_ns = r->ms[CALLBACK] < e[6] - e[5] ? r->ms[CALLBACK] : e[6] - e[5];
    s->last_ns = e[EDGES - 1] > s->last_ns ? e[EDGES - 1] : s->last_ns;
    return true;
}

static uint32_t model_number(struct batching_csv *s)
{
    struct sv_text name = own_text(s, MODEL);
    s->model_name = name;
    for (size_t i = 0; i < s->n_models; i++)
        if (strlen(s->models[i]) == name.len && memcmp(s->models[i], name.bytes, name.len) == 0)
            return (uint32_t)i;
    if (s->n_models == MODELS_MAX)
        return MODELS_MAX - 1;
    s->model_ns[s->n_models] = INT64_MAX;
    s->models[s->n_models] = sv_strndup(name.bytes, name.len);
    return (uint32_t)s->n_models++;
}

/* Rows are not in the order of time: a name is given again where an earlier row needs it. */
static bool is_unnamed(int64_t *since_ns, int64_t ts_ns)
{
    bool is = ts_ns < *since_ns;
    if (is)
        *since_ns = ts_ns;
    return is;
}

static void name_model(struct batching_csv *s)
{
    s->row.is_new_model = is_unnamed(&s->model_ns[s->row.model], s->row.edges[0]);
}

static void name_worker(struct batching_csv *s)
{
    size_t i = 0;
    while (i < s->n_workers && s->workers[i] != s->row.worker)
        i++;
    if (i == WORKERS_MAX || s->row.worker < 0)
        return;
    if (i == s->n_workers) {
        s->workers[s->n_workers] = s->row.worker;
        s->worker_ns[s->n_workers++] = INT64_MAX;
    }
    s->row.is_new_worker = is_unnamed(&s->worker_ns[i], s->row.edges[0]);
}

/* All that must be a number. */
static bool take_numbers(struct batching_csv *s)
{
    struct row *r = &s->row;
    int64_t batch, size;
    if (!sv_text_i64(field(s, BATCH_ID), &batch))
        return bad_cell(s, BATCH_ID);
    if (!sv_text_i64(field(s, WORKER), &r->worker))
        return bad_cell(s, WORKER);
    if (!sv_text_i64(field(s, SIZE), &size) || size < 0 || size > UINT32_MAX)
        return bad_cell(s, SIZE);
    for (int c = TOTAL; c <= CALLBACK; c++)
        if (!take_ms(s, (enum column)c, &r->ms[c]))
            return bad_cell(s, (enum column)c);
    r->is_alone = batch < 0 && has(s, OUTCOMES);
    r->batch = (uint64_t)batch;
    r->samples = (uint32_t)size;
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct batching_csv *s = (struct batching_csv *)l;
    struct row *r = &s->row;
    (void)b;
    if (len == 0)
        return true;
    if (!sv_csv_split(&s->cells, p, len))
        return sv_lines_bad(l, "malformed quotes, or too many fields");
    if (!s->has_head) {
        s->has_head = true;
        sv_csv_find(&s->cells, names, N_COLUMNS, s->place);
        return true;
    }
    for (int c = 0; c < N_COLUMNS; c++)
        if (s->place[c] >= (int)s->cells.n)
            return sv_lines_bad(l, "too few fields");
    *r = (struct row){0};
    if (!take_numbers(s) || !take_members(s))
        return false;
    if (!has(s, IDS))
        count_members(s);
    r->device = number(s, DEVICE, -1);
    r->model = model_number(s);
    r->is_congested = sv_text_is(field(s, CONGESTED), "true");
    r->is_failed = sv_text_is(field(s, FAILED), "true");
    r->flags = sv_text_is(field(s, WARMUP), "true") ? SV_LIFE_WARMUP : 0;
    s->type = own_text(s, TYPE);
    if (!take_times(s))
        return false;
    name_model(s);
    name_worker(s);
    s->step = MODEL_STEP;
    s->at = 0;
    return true;
}

/* ---- events ---- */

/* Keys are in the dictionary before the first event: a file has several for each request. */
static void put(struct batching_csv *s, struct sv_batch *b, enum sv_life_op op, int64_t ts_ns)
{
    struct sv_event *e = sv_batch_event(b);
    e->kind = SV_INSTANT;
    e->ts_ns = ts_ns;
    e->track = s->track;
    e->name = s->words.ops[op];
    e->cat = s->words.cat;
    sv_batch_finish(b, e);
}

static void put_flags(struct batching_csv *s, struct sv_batch *b)
{
    if (s->row.flags)
        sv_batch_int(b, s->words.flags, s->row.flags);
}

static void put_batch(struct batching_csv *s, struct sv_batch *b, enum sv_life_op op, int64_t ts_ns)
{
    sv_batch_int(b, s->words.batch, (int64_t)s->row.batch);
    put(s, b, op, ts_ns);
}

static void put_request(struct batching_csv *s, struct sv_batch *b, enum sv_life_op op,
                        const struct member *m, int64_t ts_ns)
{
    sv_batch_int(b, s->words.request, (int64_t)m->id);
    if (op == SV_LIFE_ENQUEUED || op == SV_LIFE_REJECTED) {
        sv_batch_int(b, s->words.model, s->row.model);
        put_flags(s, b);
    }
    put(s, b, op, ts_ns);
}

static void put_members(struct batching_csv *s, struct sv_batch *b)
{
    size_t k = s->row.n - s->at < SV_LIFE_MEMBERS_MAX ? s->row.n - s->at : SV_LIFE_MEMBERS_MAX;
    sv_batch_int(b, s->words.n, (int64_t)k);
    for (size_t i = 0; i < k; i++)
        sv_batch_int(b, s->words.members[i], (int64_t)s->members[s->at + i].id);
    put_batch(s, b, SV_LIFE_MEMBERS, s->row.edges[2]);
    s->at += k - 1;
}

static void put_once(struct batching_csv *s, struct sv_batch *b)
{
    struct row *r = &s->row;
    struct sv_lines *l = &s->lines;
    if (s->step == MODEL_STEP && r->is_new_model) {
        sv_batch_int(b, s->words.model, r->model);
        sv_add_text(l, b, "name", s->model_name);
        put(s, b, SV_LIFE_MODEL, r->edges[0]);
    } else if (s->step == WORKER_STEP && r->is_new_worker) {
        sv_batch_int(b, s->words.worker, r->worker);
        sv_batch_int(b, s->words.device, r->device);
        sv_add_text(l, b, "type", s->type);
        put(s, b, SV_LIFE_WORKER, r->edges[0]);
    } else if (r->is_alone) {
        return;
    } else if (s->step == COLLECTED) {
        sv_batch_int(b, s->words.model, r->model);
        sv_batch_int(b, s->words.samples, r->samples);
        sv_batch_int(b, s->words.took, r->edges[2] - r->edges[1]);
        put_flags(s, b);
        put_batch(s, b, SV_LIFE_COLLECTED, r->edges[2]);
    } else if (s->step == SUBMITTED) {
        put_batch(s, b, SV_LIFE_SUBMITTED, r->edges[3]);
    } else if ((s->step == STARTED || s->step == FINISHED) && r->worker < 0 && r->is_failed) {
        return; /* no worker had it */
    } else if (s->step == STARTED) {
        sv_batch_int(b, s->words.worker, r->worker);
        put_batch(s, b, SV_LIFE_STARTED, r->edges[4]);
    } else if (s->step == FINISHED) {
        put_batch(s, b, SV_LIFE_FINISHED, r->edges[5]);
    } else if (s->step == CALLED_BACK && r->is_failed) {
        put_batch(s, b, SV_LIFE_BATCH_FAILED, r->edges[6]);
    } else if (s->step == CALLED_BACK) {
        sv_batch_int(b, s->words.took, r->callback_ns);
        put_batch(s, b, SV_LIFE_CALLBACK, r->edges[6]);
    } else if (s->step == CONGESTION && has(s, CONGESTED)) { /* rows are not in the order of time */
        sv_batch_int(b, s->words.congested, r->is_congested);
        put(s, b, SV_LIFE_CONGESTION, r->edges[6]);
    }
}

/* A member's arrival, its way out of the queue or its end. */
static void put_moment(struct batching_csv *s, struct sv_batch *b, const struct member *m)
{
    static const enum sv_life_op ends[SV_N_FATES] = {[SV_FATE_RESPONDED] = SV_LIFE_RESPONDED,
                                                     [SV_FATE_REJECTED] = SV_LIFE_REJECTED,
                                                     [SV_FATE_FAILED] = SV_LIFE_FAILED,
                                                     [SV_FATE_CANCELLED] = SV_LIFE_CANCELLED};
    const struct row *r = &s->row;
    bool was_refused = m->fate == SV_FATE_REJECTED; /* it never was in the queue */
    if (m->is_named_only)
        return;
    if (s->step == ENQUEUED && !was_refused)
        put_request(s, b, SV_LIFE_ENQUEUED, m, m->arrival_ns);
    else if (s->step == DEQUEUED && m->queue_ns != -1 && !was_refused)
        put_request(s, b, SV_LIFE_DEQUEUED, m,
                    m->queue_ns >= 0              ? m->arrival_ns + m->queue_ns
                    : m->arrival_ns > r->edges[1] ? m->arrival_ns
                                                  : r->edges[1]);
    else if (s->step == RESPONDED && m->fate != SV_FATE_OPEN && m->total_ns != -1)
        put_request(s, b, ends[m->fate], m,
                    m->total_ns >= 0 ? m->arrival_ns + m->total_ns : r->edges[6]);
}

/* One event, or none, and a step further. */
static bool more(struct sv_lines *l, struct sv_batch *b)
{
    struct batching_csv *s = (struct batching_csv *)l;
    const struct row *r = &s->row;
    bool is_list = s->step == ENQUEUED || s->step == DEQUEUED || s->step == MEMBERS ||
                   s->step == RESPONDED;
    if (s->step == DONE)
        return false;
    if (!is_list) {
        put_once(s, b);
        s->step++;
        s->at = 0;
        return true;
    }
    if (s->at < r->n) {
        const struct member *m = &s->members[s->at];
        if (s->step == MEMBERS && !r->is_alone)
            put_members(s, b);
        else if (s->step != MEMBERS)
            put_moment(s, b, m);
        s->at++;
    } else {
        s->step++;
        s->at = 0;
    }
    return true;
}

static void init(struct sv_lines *l)
{
    struct batching_csv *s = (struct batching_csv *)l;
    s->step = DONE;
    sv_track server = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "server", 6);
    s->track = sv_lines_group(l, server, SV_TRACK_CUSTOM, "life cycle", 10);
    sv_life_words_init(&s->words, l->dict);
}

static void fini(struct sv_lines *l)
{
    struct batching_csv *s = (struct batching_csv *)l;
    for (size_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    free(s->members);
    sv_csv_fini(&s->cells);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct batching_csv),
    .max_events = 1,
    .gives = SV_IN_NO_ORDER,
    .damaged = "row of a batch not understood, left out",
    .clock = SV_CLOCK_MONOTONIC,
    .init = init,
    .line = line,
    .more = more,
    .fini = fini,
};

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    int code = check_head(in, err);
    return code < 0 ? code : sv_lines_open(&kind, in, options, dict, report, out);
}

const struct sv_format sv_batching_csv_format = {
    .name = "batching-csv",
    .help = "the summary of an inference server's batches",
    .lacks =
        "warm-up, and of other servers' files times of single requests other than their arrivals",
    .files = "batching_trace_summary.csv or trace.csv of an inference server",
    .times = "CLOCK_MONOTONIC; see docs/serving.md",
    .probe = probe,
    .open_source = open_source,
};
