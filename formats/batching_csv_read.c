/* batching_trace_summary.csv and trace.csv: a row for each batch of an inference server, back to the life cycle that it sums up.
 *
 * Opened through the table of formats. A row becomes the events of the category serving.life that libstave-serving would have recorded, so that
 * reports and pictures need not know of the file. Arrivals are absolute, phases are durations: the batch is put together from its first
 * arrival on, by the exclusive columns where they are and by the overlapping ones where not. Requests of a batch leave the queue
 * together and are answered together, which is all that the file says. Fields may be quoted; a field holds at most 64 KiB of numbers. */
#include "formats/lines.h"

#include "model/serving_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    BATCH_ID,
    MODEL,
    WORKER,
    TYPE,
    DEVICE,
    SIZE,
    IDS,
    ARRIVALS,
    QUEUE,
    BATCH,
    SUBMIT,
    SCHEDULING,
    CODELET,
    CALLBACK,
    TOTAL,
    CONGESTED,
    X_QUEUE,
    X_BATCH,
    X_SUBMIT,
    X_SCHEDULING,
    X_RUN,
    X_CALLBACK,
    N_COLUMNS
};
static const char *const names[N_COLUMNS] = {
    "batch_id",    "model_name",      "worker_id",          "worker_type",    "device_id",
    "batch_size",  "request_ids",     "request_arrival_us", "queue_ms",       "batch_ms",
    "submit_ms",   "scheduling_ms",   "codelet_ms",         "callback_ms",    "total_ms",
    "congested",   "excl_queue_ms",   "excl_batch_ms",      "excl_submit_ms", "excl_scheduling_ms",
    "excl_run_ms", "excl_callback_ms"};

enum { FIELDS_MAX = 64, MEMBERS_MAX = 1 << 16, MODELS_MAX = 256, WORKERS_MAX = 256, EDGES = 7 };

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
    CALLED_BACK,
    RESPONDED,
    CONGESTION,
    DONE
};

struct member {
    uint64_t id;
    int64_t arrival_ns;
};

struct row {
    uint64_t batch;
    uint32_t model, samples;
    int64_t worker, device;
    int64_t edges[EDGES]; /* first arrival, collection, …, end of the callback */
    size_t n;
    bool is_new_model, is_new_worker, is_congested;
};

struct batching_csv {
    struct sv_lines lines;
    int place[N_COLUMNS]; /* -1: not there */
    bool has_head, was_congested;
    struct row row;
    struct member *members;
    size_t cap;
    enum step step;
    size_t at; /* member that comes next */
    sv_track track;
    struct sv_text fields[FIELDS_MAX];
    char *texts; /* of quoted fields, without the quotes */
    size_t cap_texts;
    char *models[MODELS_MAX];
    size_t n_models;
    int64_t workers[WORKERS_MAX];
    size_t n_workers;
    struct sv_text model_name, type;
    int64_t last_ns; /* where there are no arrivals: batches follow each other */
};

/* ---- fields ---- */

/* One field of a CSV line; quotes are taken off. *to is where its text may be put. NULL: a quote is not closed. */
static const char *csv_field(const char *p, const char *end, char **to, struct sv_text *field)
{
    if (p == end || *p != '"') {
        const char *start = p;
        while (p < end && *p != ',')
            p++;
        *field = (struct sv_text){start, (uint32_t)(p - start)};
        return p;
    }
    char *start = *to;
    for (p++; p < end; p++) {
        if (*p == '"') {
            if (p + 1 == end || p[1] != '"')
                break;
            p++;
        }
        *(*to)++ = *p;
    }
    if (p == end)
        return NULL;
    *field = (struct sv_text){start, (uint32_t)(*to - start)};
    return p + 1;
}

static size_t split_line(struct batching_csv *s, const char *p, size_t len)
{
    const char *end = p + len;
    size_t n = 0;
    if (end > p && end[-1] == '\r')
        end--;
    s->texts = sv_grow(s->texts, &s->cap_texts, len + 1, 1);
    char *to = s->texts;
    while (n < FIELDS_MAX) {
        p = csv_field(p, end, &to, &s->fields[n]);
        if (!p)
            return 0;
        n++;
        if (p == end)
            return n;
        if (*p != ',')
            return 0;
        p++;
    }
    return 0;
}

static bool has(const struct batching_csv *s, enum column c)
{
    return s->place[c] >= 0;
}

static struct sv_text field(const struct batching_csv *s, enum column c)
{
    return has(s, c) ? s->fields[s->place[c]] : (struct sv_text){"", 0};
}

/* Milliseconds as ns; not a number or below 0: 0, as the file's own writer does. */
static int64_t ms(const struct batching_csv *s, enum column c)
{
    double v;
    if (!sv_text_double(field(s, c), &v) || !(v > 0) || v > 1e12)
        return 0;
    return (int64_t)(v * 1e6 + 0.5);
}

static int64_t number(const struct batching_csv *s, enum column c, int64_t otherwise)
{
    int64_t v;
    return sv_text_i64(field(s, c), &v) ? v : otherwise;
}

/* ---- the head ---- */

static bool find_columns(struct batching_csv *s, size_t n)
{
    for (int c = 0; c < N_COLUMNS; c++) {
        s->place[c] = -1;
        for (size_t i = 0; i < n; i++)
            if (sv_text_is(s->fields[i], names[c]))
                s->place[c] = (int)i;
    }
    return has(s, BATCH_ID) && has(s, SIZE) && has(s, TOTAL) && has(s, WORKER);
}

int sv_batching_csv_probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    if (!sv_head_line(&h, &line) || !sv_text_begins(line, "batch_id,"))
        return 0;
    return sv_bytes_find(line.bytes, line.len, "total_ms") &&
                   sv_bytes_find(line.bytes, line.len, "worker_id")
               ? 100
               : 0;
}

/* ---- a row ---- */

/* "7;8;9": the next number, *p behind it and its semicolon. */
static bool list_next(const char **p, const char *end, int64_t *out)
{
    const char *start = *p;
    while (*p < end && **p != ';')
        ++*p;
    struct sv_text t = {start, (uint32_t)(*p - start)};
    if (*p < end)
        ++*p;
    return sv_text_i64(t, out);
}

static bool take_members(struct batching_csv *s)
{
    struct sv_text ids = field(s, IDS), arrivals = field(s, ARRIVALS);
    const char *p = ids.bytes, *q = arrivals.bytes;
    const char *p_end = p + ids.len, *q_end = q + arrivals.len;
    struct row *r = &s->row;
    r->n = 0;
    while (p < p_end && r->n < MEMBERS_MAX) {
        int64_t id, arrival_us = 0;
        if (!list_next(&p, p_end, &id) || (q < q_end && !list_next(&q, q_end, &arrival_us)) ||
            arrival_us < 0 || arrival_us > INT64_MAX / 2000)
            return sv_lines_bad(&s->lines, "a list of requests that is none");
        s->members = sv_grow(s->members, &s->cap, r->n + 1, sizeof *s->members);
        s->members[r->n++] = (struct member){(uint64_t)id, arrival_us * 1000};
    }
    return true;
}

static void take_times(struct batching_csv *s)
{
    struct row *r = &s->row;
    int64_t first = 0, *e = r->edges;
    for (size_t i = 0; i < r->n; i++)
        if (s->members[i].arrival_ns && (!first || s->members[i].arrival_ns < first))
            first = s->members[i].arrival_ns;
    e[0] = first ? first : s->last_ns;
    if (has(s, X_CALLBACK)) {
        for (int i = 0; i < EDGES - 1; i++)
            e[i + 1] = e[i] + ms(s, (enum column)(X_QUEUE + i));
    } else { /* submit contains batch; what the columns leave of the total belongs to the end */
        int64_t batch = ms(s, BATCH), submit = ms(s, SUBMIT);
        e[1] = e[0] + ms(s, QUEUE);
        e[2] = e[1] + batch;
        e[3] = e[1] + (submit > batch ? submit : batch);
        e[4] = e[3] + ms(s, SCHEDULING);
        e[5] = e[4] + ms(s, CODELET);
        e[6] = e[0] + ms(s, TOTAL);
        if (e[6] < e[5])
            e[6] = e[5];
    }
    s->last_ns = e[EDGES - 1] > s->last_ns ? e[EDGES - 1] : s->last_ns;
}

static uint32_t model_number(struct batching_csv *s)
{
    struct sv_text name = field(s, MODEL);
    s->model_name = name;
    for (size_t i = 0; i < s->n_models; i++)
        if (strlen(s->models[i]) == name.len && memcmp(s->models[i], name.bytes, name.len) == 0)
            return (uint32_t)i;
    if (s->n_models == MODELS_MAX)
        return MODELS_MAX - 1;
    s->row.is_new_model = true;
    s->models[s->n_models] = sv_strndup(name.bytes, name.len);
    return (uint32_t)s->n_models++;
}

static void meet_worker(struct batching_csv *s)
{
    for (size_t i = 0; i < s->n_workers; i++)
        if (s->workers[i] == s->row.worker)
            return;
    if (s->n_workers == WORKERS_MAX)
        return;
    s->workers[s->n_workers++] = s->row.worker;
    s->row.is_new_worker = s->row.worker >= 0;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct batching_csv *s = (struct batching_csv *)l;
    struct row *r = &s->row;
    (void)b;
    if (len == 0)
        return true;
    size_t n = split_line(s, p, len);
    if (n == 0)
        return sv_lines_bad(l, "fields that cannot be told apart");
    if (!s->has_head) {
        s->has_head = true;
        return find_columns(s, n) || sv_lines_bad(l, "a column is missing");
    }
    for (int c = 0; c < N_COLUMNS; c++)
        if (s->place[c] >= (int)n)
            return sv_lines_bad(l, "too few fields");
    int64_t batch;
    *r = (struct row){0};
    if (!has(s, BATCH_ID) || !sv_text_i64(field(s, BATCH_ID), &batch))
        return sv_lines_bad(l, "a batch_id that is no number");
    if (!take_members(s))
        return false;
    r->batch = (uint64_t)batch;
    r->samples = (uint32_t)number(s, SIZE, (int64_t)r->n);
    r->worker = number(s, WORKER, -1);
    r->device = number(s, DEVICE, -1);
    r->model = model_number(s);
    r->is_congested = sv_text_is(field(s, CONGESTED), "true");
    s->type = field(s, TYPE);
    meet_worker(s);
    take_times(s);
    s->step = MODEL_STEP;
    s->at = 0;
    return true;
}

/* ---- events ---- */

static void put(struct batching_csv *s, struct sv_batch *b, enum sv_life_op op, int64_t ts_ns)
{
    const char *name = sv_life_op_names[op];
    sv_put_event(&s->lines, b, SV_INSTANT, ts_ns, s->track, sv_dict_cstr(s->lines.dict, name),
                 SV_LIFE_CATEGORY);
}

static void put_batch(struct batching_csv *s, struct sv_batch *b, enum sv_life_op op, int64_t ts_ns)
{
    sv_add_int(&s->lines, b, "batch", (int64_t)s->row.batch);
    put(s, b, op, ts_ns);
}

static void put_request(struct batching_csv *s, struct sv_batch *b, enum sv_life_op op,
                        const struct member *m, int64_t ts_ns)
{
    sv_add_int(&s->lines, b, "request", (int64_t)m->id);
    if (op == SV_LIFE_ENQUEUED)
        sv_add_int(&s->lines, b, "model", s->row.model);
    put(s, b, op, ts_ns);
}

static void put_members(struct batching_csv *s, struct sv_batch *b)
{
    static const char *const keys[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
    size_t k = s->row.n - s->at < 8 ? s->row.n - s->at : 8;
    sv_add_int(&s->lines, b, "n", (int64_t)k);
    for (size_t i = 0; i < k; i++)
        sv_add_int(&s->lines, b, keys[i], (int64_t)s->members[s->at + i].id);
    put_batch(s, b, SV_LIFE_MEMBERS, s->row.edges[2]);
    s->at += k - 1;
}

static void put_once(struct batching_csv *s, struct sv_batch *b)
{
    struct row *r = &s->row;
    struct sv_lines *l = &s->lines;
    if (s->step == MODEL_STEP && r->is_new_model) {
        sv_add_int(l, b, "model", r->model);
        sv_add_text(l, b, "name", s->model_name);
        put(s, b, SV_LIFE_MODEL, r->edges[0]);
    } else if (s->step == WORKER_STEP && r->is_new_worker) {
        sv_add_int(l, b, "worker", r->worker);
        sv_add_int(l, b, "device", r->device);
        sv_add_text(l, b, "type", s->type);
        put(s, b, SV_LIFE_WORKER, r->edges[0]);
    } else if (s->step == COLLECTED) {
        sv_add_int(l, b, "model", r->model);
        sv_add_int(l, b, "samples", r->samples);
        sv_add_int(l, b, "took_ns", r->edges[2] - r->edges[1]);
        put_batch(s, b, SV_LIFE_COLLECTED, r->edges[2]);
    } else if (s->step == SUBMITTED) {
        put_batch(s, b, SV_LIFE_SUBMITTED, r->edges[3]);
    } else if (s->step == STARTED) {
        sv_add_int(l, b, "worker", r->worker);
        put_batch(s, b, SV_LIFE_STARTED, r->edges[4]);
    } else if (s->step == FINISHED) {
        put_batch(s, b, SV_LIFE_FINISHED, r->edges[5]);
    } else if (s->step == CALLED_BACK) {
        sv_add_int(l, b, "took_ns", r->edges[6] - r->edges[5]);
        put_batch(s, b, SV_LIFE_CALLBACK, r->edges[6]);
    } else if (s->step == CONGESTION && r->is_congested != s->was_congested) {
        s->was_congested = r->is_congested;
        sv_add_int(l, b, "congested", r->is_congested);
        put(s, b, SV_LIFE_CONGESTION, r->edges[6]);
    }
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
        if (s->step == ENQUEUED && m->arrival_ns)
            put_request(s, b, SV_LIFE_ENQUEUED, m, m->arrival_ns);
        else if (s->step == DEQUEUED)
            put_request(s, b, SV_LIFE_DEQUEUED, m,
                        m->arrival_ns > r->edges[1] ? m->arrival_ns : r->edges[1]);
        else if (s->step == MEMBERS)
            put_members(s, b);
        else if (s->step == RESPONDED)
            put_request(s, b, SV_LIFE_RESPONDED, m, r->edges[6]);
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
    l->dict->clocks.trace_clock = SV_CLOCK_MONOTONIC;
    sv_track server = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "server", 6);
    s->track = sv_lines_group(l, server, SV_TRACK_CUSTOM, "life cycle", 10);
}

static void fini(struct sv_lines *l)
{
    struct batching_csv *s = (struct batching_csv *)l;
    for (size_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    free(s->members);
    free(s->texts);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct batching_csv),
    .max_events = 1,
    .gives = SV_HAS_DISORDER,
    .damaged = "row of the summary",
    .init = init,
    .line = line,
    .more = more,
    .fini = fini,
};

int sv_batching_csv_source(struct sv_input *in, const struct sv_read_options *options,
                           struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                           struct sv_err *err)
{
    (void)err;
    return sv_lines_open(&kind, in, options, dict, report, out);
}
