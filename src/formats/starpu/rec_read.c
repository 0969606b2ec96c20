/* StarPU's records, as starpu_fxt_tool writes them: tasks.rec (a record per task) and trace.rec (a
 * record per change of a worker's state).
 *
 * Opened through the table of formats. A record is lines `Key: value` up to an empty one. Tasks
 * become slices on their worker's row with what the record says as arguments, their dependencies
 * flows; states become slices, too. Tasks wait until all are known, because a task does not say who
 * depends on it. Times are milliseconds since the run's first event: no clock of the machine. */
#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/search.h"
#include "formats/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIELDS_MAX = 40,
    TEXT_KEPT_MAX = 1 << 16,
    DEPTH_MAX = 100,
    EDGES_MAX = 1 << 22,
    FLOWS_MAX = 4096
};
#define HELD_MAX ((size_t)256 << 20) /* bytes of records; what is beyond has no dependencies */

struct field {
    uint32_t key, key_len, value, value_len; /* places in the record's text */
};

struct task {
    uint64_t job; /* hash of its id */
    sv_track track;
    int64_t start_ns, end_ns;
    size_t at, len, n_fields; /* its record: fields, then text */
};

struct edge {
    uint64_t from, to; /* hashes of job ids */
};

struct row {
    sv_track track;
    uint32_t depth;
};

struct rec {
    struct sv_lines lines;
    char text[TEXT_KEPT_MAX]; /* of the record that is being read */
    size_t text_len;
    struct field fields[FIELDS_MAX];
    size_t n_fields;
    struct sv_map by_job; /* hash → index + 1 in tasks */
    struct task *tasks;
    size_t n_tasks, cap_tasks, at_task;
    struct sv_buf held;
    struct edge *edges; /* by `from` at the end */
    size_t n_edges, cap_edges;
    bool is_sorted;
    struct sv_map by_place; /* worker, thread → index + 1 in rows */
    struct row *rows;
    size_t n_rows, cap_rows;
};

/* ---- recognising ---- */

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    int seen = 0;
    for (int i = 0; i < 40 && sv_head_line(&h, &line); i++) {
        if (line.len == 0 || line.bytes[0] == '#')
            continue; /* trace.rec explains itself first */
        if (!seen && (sv_text_is(line, "E: SetState") || sv_text_is(line, "E: PushState")))
            return 97;
        seen |= sv_text_begins(line, "JobId: ") ? 1 : 0;
        seen |= sv_text_begins(line, "SubmitTime: ") || sv_text_begins(line, "StartTime: ") ? 2 : 0;
        seen |= sv_text_begins(line, "Footprint: ") || sv_text_begins(line, "MPIRank: ") ? 4 : 0;
    }
    return seen == 7 ? 97 : 0;
}

/* ---- a record ---- */

static struct sv_text value_of(const struct rec *s, const struct field *f)
{
    return (struct sv_text){s->text + f->value, f->value_len};
}

static struct sv_text get(const struct rec *s, const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < s->n_fields; i++)
        if (s->fields[i].key_len == len && memcmp(s->text + s->fields[i].key, key, len) == 0)
            return value_of(s, &s->fields[i]);
    return (struct sv_text){NULL, 0};
}

static bool keep_field(struct rec *s, const char *p, size_t len)
{
    const char *colon = memchr(p, ':', len);
    if (!colon || colon == p)
        return sv_lines_bad(&s->lines, "'Key: value'");
    if (s->n_fields == FIELDS_MAX || s->text_len + len > sizeof s->text) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "field past what a record may have", 1,
                      s->lines.pos, NULL);
        return true;
    }
    size_t value = (size_t)(colon - p) + 1;
    while (value < len && p[value] == ' ')
        value++;
    memcpy(s->text + s->text_len, p, len);
    s->fields[s->n_fields++] = (struct field){(uint32_t)s->text_len, (uint32_t)(colon - p),
                                              (uint32_t)(s->text_len + value),
                                              (uint32_t)(len - value)};
    s->text_len += len;
    return true;
}

static bool time_of(const struct rec *s, const char *key, int64_t *ns)
{
    struct sv_text t = get(s, key);
    return t.bytes && sv_decimal_ns(t, 6, ns);
}

/* ---- rows ---- */

/* "StarPU" (of a rank: "StarPU rank 2") → "Worker 3"; what belongs to none: "others". */
static sv_track worker_track(struct rec *s, int64_t rank, int64_t worker)
{
    char name[48] = "StarPU";
    int n = rank > 0 ? snprintf(name, sizeof name, "StarPU rank %lld", (long long)rank) : 6;
    sv_track top = sv_lines_group(&s->lines, 0, SV_TRACK_CUSTOM, name, (size_t)n);
    n = worker >= 0 ? snprintf(name, sizeof name, "Worker %lld", (long long)worker)
                    : snprintf(name, sizeof name, "others");
    return sv_lines_group(&s->lines, top, SV_TRACK_CUSTOM, name, (size_t)n);
}

static struct row *state_row(struct rec *s, int64_t worker, struct sv_text thread)
{
    char name[64];
    bool is_new, is_own = sv_text_is(thread, "-1") || thread.len == 0;
    uint64_t key = sv_hash_bytes(thread.bytes, is_own ? 0 : thread.len, (uint64_t)worker);
    uint64_t *at = sv_map_add(&s->by_place, key, &is_new);
    if (is_new) {
        int n = is_own ? snprintf(name, sizeof name, "states")
                       : snprintf(name, sizeof name, "thread %.*s",
                                  (int)(thread.len < 40 ? thread.len : 40), thread.bytes);
        s->rows = sv_grow(s->rows, &s->cap_rows, s->n_rows + 1, sizeof *s->rows);
        s->rows[s->n_rows++] = (struct row){
            sv_lines_group(&s->lines, worker_track(s, 0, worker), SV_TRACK_CUSTOM, name, (size_t)n),
            0};
        *at = s->n_rows;
    }
    return &s->rows[*at - 1];
}

/* ---- tasks ---- */

/* Whole numbers where it is one; what StarPU prints in hexadecimal stays text. */
static void add_field(struct rec *s, struct sv_batch *b, const struct field *f)
{
    static const char *const left_out[] = {"Name", "StartTime", "EndTime", "DependsOn",
                                           "SubmitTime"};
    static const char *const texts[] = {"Tag", "Footprint", "Handles"};
    struct sv_text key = {s->text + f->key, f->key_len}, value = value_of(s, f);
    char name[64];
    bool is_text = false;
    for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
        if (sv_text_is(key, left_out[k]))
            return;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        is_text |= sv_text_is(key, texts[k]);
    snprintf(name, sizeof name, "%.*s", (int)(key.len < 60 ? key.len : 60), key.bytes);
    if (is_text)
        sv_add_text(&s->lines, b, name, value);
    else
        sv_put_value(b, sv_dict_cstr(s->lines.dict, name), value);
}

/* None of what a record does not have. */
static struct sv_fields fields_of(struct sv_text t)
{
    return t.bytes ? (struct sv_fields){t.bytes, t.bytes + t.len} : (struct sv_fields){"", ""};
}

static uint64_t job_hash(struct sv_text job)
{
    return sv_hash_bytes(job.bytes, job.len, 7);
}

static void keep_edges(struct rec *s, uint64_t job)
{
    struct sv_text on = get(s, "DependsOn"), word;
    struct sv_fields f = fields_of(on);
    while ((word = sv_field_next(&f)).len) {
        if (s->n_edges == EDGES_MAX) {
            sv_report_add(s->lines.source.report, SV_SKIPPED, "dependency past the first 4 million",
                          1, s->lines.pos, NULL);
            return;
        }
        SV_APPEND(s->edges, s->n_edges, s->cap_edges) = (struct edge){job_hash(word), job};
    }
}

static void add_flow(struct sv_batch *b, unsigned type, const struct edge *e)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = type & 0xff;
    a->u = sv_mix64(e->from ^ sv_mix64(e->to));
}

/* The slice of the record that is in s->text. */
static void put_slice(struct rec *s, struct sv_batch *b, const struct task *t)
{
    struct sv_text name = get(s, "Name");
    int64_t submit;
    if (name.len == 0)
        name = get(s, "Model");
    if (name.len == 0)
        name = (struct sv_text){"task", 4};
    for (size_t i = 0; i < s->n_fields; i++)
        add_field(s, b, &s->fields[i]);
    if (time_of(s, "SubmitTime", &submit) && submit <= t->start_ns)
        sv_add_int(&s->lines, b, "queued", t->start_ns - submit);
    struct sv_event *e = sv_put_event(&s->lines, b, SV_SLICE, t->start_ns, t->track,
                                      sv_dict_str(s->lines.dict, name.bytes, name.len), "task");
    e->dur_ns = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;
}

static void hold(struct rec *s, struct task t)
{
    bool is_new;
    t.at = s->held.len;
    t.len = s->text_len;
    t.n_fields = s->n_fields;
    sv_buf_add(&s->held, s->fields, s->n_fields * sizeof *s->fields);
    sv_buf_add(&s->held, s->text, s->text_len);
    SV_APPEND(s->tasks, s->n_tasks, s->cap_tasks) = t;
    *sv_map_add(&s->by_job, t.job, &is_new) = s->n_tasks;
    keep_edges(s, t.job);
}

static bool put_task(struct rec *s, struct sv_batch *b)
{
    struct sv_text job = get(s, "JobId");
    int64_t worker = -1, rank = 0;
    struct task t = {.job = job_hash(job)};
    if (get(s, "Control").bytes || !get(s, "StartTime").bytes) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "task that was not executed", 1,
                      s->lines.pos, NULL);
        return true;
    }
    if (job.len == 0 || !time_of(s, "StartTime", &t.start_ns) || !time_of(s, "EndTime", &t.end_ns))
        return sv_lines_bad(&s->lines, "JobId, StartTime and EndTime of a task");
    if (get(s, "SubmitTime").bytes && !time_of(s, "SubmitTime", &(int64_t){0}))
        sv_report_add(s->lines.source.report, SV_DAMAGE, "malformed submission time", 1,
                      s->lines.pos, "left out");
    (void)sv_text_i64(get(s, "WorkerId"), &worker);
    (void)sv_text_i64(get(s, "MPIRank"), &rank);
    t.track = worker_track(s, rank, worker);
    if (s->held.len + s->text_len + sizeof s->fields < HELD_MAX) {
        hold(s, t);
        return true;
    }
    sv_report_add(s->lines.source.report, SV_SKIPPED, "dependencies past 256 MiB of tasks", 1,
                  s->lines.pos, NULL);
    put_slice(s, b, &t);
    return true;
}

/* ---- states ---- */

static bool put_state(struct rec *s, struct sv_batch *b, struct sv_text event)
{
    struct sv_text name = get(s, "N"), type = get(s, "C");
    int64_t ts_ns, worker = -1;
    (void)sv_text_i64(get(s, "W"), &worker);
    if (!time_of(s, "S", &ts_ns))
        return sv_lines_bad(&s->lines, "a time 'S: MILLISECONDS'");
    struct row *r = state_row(s, worker, get(s, "T"));
    if (sv_text_is(event, "ProgEvent")) { /* a moment that the program or StarPU marked */
        if (type.len)
            sv_add_text(&s->lines, b, "type", type);
        sv_put_event(&s->lines, b, SV_INSTANT, ts_ns, r->track,
                     sv_dict_str(s->lines.dict, name.bytes ? name.bytes : "", name.len), "event");
        return true;
    }
    bool pushes = sv_text_is(event, "PushState"), pops = sv_text_is(event, "PopState");
    if (!pushes && !pops && !sv_text_is(event, "SetState"))
        return sv_lines_bad(&s->lines, "SetState, PushState or PopState");
    if (pops && r->depth == 0)
        return sv_lines_bad(&s->lines, "a state that was pushed before");
    if (pushes && r->depth == DEPTH_MAX)
        return sv_lines_bad(&s->lines, "at most 100 states on top of each other");
    for (uint32_t n = pops ? 1 : pushes ? 0 : r->depth; n > 0; n--) {
        sv_put_event(&s->lines, b, SV_END, ts_ns, r->track, 0, "");
        r->depth--;
    }
    if (pops)
        return true;
    if (type.len)
        sv_add_text(&s->lines, b, "type", type);
    sv_put_event(&s->lines, b, SV_BEGIN, ts_ns, r->track,
                 sv_dict_str(s->lines.dict, name.bytes ? name.bytes : "", name.len), "state");
    r->depth++;
    return true;
}

static bool put_record(struct rec *s, struct sv_batch *b)
{
    struct sv_text event = get(s, "E");
    bool is_good = s->n_fields == 0 || (event.bytes ? put_state(s, b, event) : put_task(s, b));
    s->n_fields = s->text_len = 0;
    return is_good;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct rec *s = (struct rec *)l;
    if (len == 0)
        return put_record(s, b);
    return *p == '%' || *p == '#' || keep_field(s, p, len);
}

/* ---- the end: the last record, then the tasks with their dependencies ---- */

static int by_from(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from ? 1 : -1) : (x->to > y->to) - (x->to < y->to);
}

/* The first edge from this task. */
static size_t first_edge(const struct rec *s, uint64_t from)
{
    size_t lo;
    SV_SEARCH(lo, mid, 0, s->n_edges, s->edges[mid].from < from);
    return lo;
}

/* Sorted, each once: a record may name a task twice. */
static void sort_edges(struct rec *s)
{
    size_t n = 0;
    if (s->n_edges > 1)
        qsort(s->edges, s->n_edges, sizeof *s->edges, by_from);
    for (size_t i = 0; i < s->n_edges; i++)
        if (n == 0 || by_from(&s->edges[n - 1], &s->edges[i]) != 0)
            s->edges[n++] = s->edges[i];
    s->n_edges = n;
}

/* Arrows leave the last record of a task: a file that repeats a number would have as many as its
 * records times what depends on them. */
static void add_flows(struct rec *s, struct sv_batch *b, const struct task *t)
{
    struct sv_text on = get(s, "DependsOn"), word;
    struct sv_fields f = fields_of(on);
    size_t n = 0;
    const uint64_t *last = sv_map_find(&s->by_job, t->job);
    bool is_last = last && *last == (uint64_t)(t - s->tasks) + 1;
    for (size_t i = first_edge(s, t->job);
         is_last && n < FLOWS_MAX && i < s->n_edges && s->edges[i].from == t->job; i++, n++)
        add_flow(b, SV_ARG_FLOW_BEGIN, &s->edges[i]);
    while (n++ < 2 * FLOWS_MAX && (word = sv_field_next(&f)).len) {
        struct edge e = {job_hash(word), t->job};
        if (sv_map_find(&s->by_job, e.from))
            add_flow(b, SV_ARG_FLOW_END, &e);
        else
            sv_report_add(s->lines.source.report, SV_SKIPPED,
                          "dependency on a task that has no record", 1, SV_NO_POS, NULL);
    }
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    struct rec *s = (struct rec *)l;
    if (s->n_fields > 0) {
        if (!put_record(s, b)) {
            sv_report_add(l->source.report, SV_DAMAGE, l->kind->damaged, 1, l->pos, "%s",
                          l->why ? l->why : "cut off");
            sv_batch_drop_args(b);
        }
        return true;
    }
    if (!s->is_sorted)
        sort_edges(s);
    s->is_sorted = true;
    if (s->at_task == s->n_tasks)
        return false;
    const struct task *t = &s->tasks[s->at_task++];
    s->n_fields = t->n_fields;
    s->text_len = t->len;
    memcpy(s->fields, s->held.data + t->at, t->n_fields * sizeof *s->fields);
    memcpy(s->text, s->held.data + t->at + t->n_fields * sizeof *s->fields, t->len);
    add_flows(s, b, t);
    put_slice(s, b, t);
    s->n_fields = s->text_len = 0;
    return true;
}

static void init(struct sv_lines *l)
{
    sv_buf_init(&((struct rec *)l)->held, HELD_MAX);
}

static void fini(struct sv_lines *l)
{
    struct rec *s = (struct rec *)l;
    sv_map_fini(&s->by_job);
    sv_map_fini(&s->by_place);
    sv_buf_fini(&s->held);
    free(s->tasks);
    free(s->edges);
    free(s->rows);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct rec),
    .max_events = DEPTH_MAX + 2,
    .gives = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "record that is not StarPU's",
    .init = init,
    .line = line,
    .end = end,
    .fini = fini,
};

/* starpu_fxt_tool makes them of prof_file_* */
static const char *const covered_by[] = {"fxt", NULL};

const struct sv_format sv_starpu_rec_format = {
    .name = "starpu-rec",
    .help = "StarPU's tasks.rec and trace.rec",
    .lacks = "the start of the run in world time, counters",
    .files = "`tasks.rec` and `trace.rec` of `starpu_fxt_tool`",
    .times = "milliseconds since the run's beginning",
    .probe = probe,
    .lines = &kind,
    .covered_by = covered_by,
};
