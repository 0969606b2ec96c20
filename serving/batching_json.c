/* The batching trace: moments of the life cycle to Chrome trace events.
 *
 * Told by the tracer's writing thread and by `stave convert --dialect batching`. Times are whole microseconds since the origin, as readers
 * of these files expect; nanoseconds are in the .pftrace and in `phases_ns`. Warm-up has the prefix warming_ on names and on
 * the keys of arguments. */
#include "serving/batching_json.h"

#include <stdio.h>
#include <string.h>

enum { TID_REQUEST = 1, TID_BATCH, TID_BUILD, TID_SUBMITTED, TID_CONGESTION, TID_WORKERS = 10 };
enum { TIDS_PER_WORKER = 1000, OUT_LIMIT = 256 << 20 };
#define WARMING "warming_"

enum flow { FLOW_NONE, FLOW_IN = 1, FLOW_OUT = 2 };

struct line {
    struct sv_batching_json *to;
    struct sv_json json;
    const char *prefix;
};

static int64_t us(const struct sv_batching_json *j, int64_t ns)
{
    return ns > j->origin_ns ? (ns - j->origin_ns) / 1000 : 0;
}

/* ---- pieces of an event ---- */

static void begin_line(struct line *l, struct sv_batching_json *j, bool is_warm)
{
    sv_buf_str(&j->out, j->has_event ? ",\n  " : "\n  ");
    j->has_event = true;
    *l = (struct line){.to = j, .prefix = is_warm ? WARMING : ""};
    sv_json_init(&l->json, &j->out);
    sv_json_begin(&l->json, '{');
}

static void end_line(struct line *l)
{
    sv_json_end(&l->json);
    l->to->is_lossy |= l->to->out.failed;
}

/* Names of models may be longer than any name of ours. */
static void put_name(struct line *l, const char *name)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s%s", l->prefix, name);
    sv_json_lit(&l->json, "name");
    sv_json_text(&l->json, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static void put_text(struct sv_json *j, const char *text)
{
    sv_json_text(j, text, strlen(text));
}

static void arg_key(struct line *l, const char *key)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s%s", l->prefix, key);
    sv_json_key(&l->json, text, (size_t)n);
}

static void arg_number(struct line *l, const char *key, uint64_t v)
{
    arg_key(l, key);
    sv_json_u64(&l->json, v);
}

static void arg_int(struct line *l, const char *key, int64_t v)
{
    arg_key(l, key);
    sv_json_i64(&l->json, v);
}

static void arg_text(struct line *l, const char *key, const char *v)
{
    arg_key(l, key);
    put_text(&l->json, v);
}

static void begin_args(struct line *l)
{
    sv_json_lit(&l->json, "args");
    sv_json_begin(&l->json, '{');
}

/* name, cat, ph, ts, pid, tid and dur (-1: none), in the order of the server's version. */
static void put_head(struct line *l, const char *name, const char *cat, const char *phase,
                     int64_t ts, int64_t dur, int64_t tid)
{
    struct sv_json *j = &l->json;
    bool is_newer = l->to->is_newer;
    put_name(l, name);
    sv_json_lit(j, "cat");
    put_text(j, cat);
    sv_json_lit(j, "ph");
    put_text(j, phase);
    sv_json_lit(j, "ts");
    sv_json_i64(j, ts);
    if (dur >= 0 && !is_newer) {
        sv_json_lit(j, "dur");
        sv_json_i64(j, dur);
    }
    sv_json_lit(j, "pid");
    sv_json_i64(j, 1);
    sv_json_lit(j, "tid");
    sv_json_i64(j, tid);
    if (dur >= 0 && is_newer) {
        sv_json_lit(j, "dur");
        sv_json_i64(j, dur);
    }
}

static void put_flow(struct line *l, const struct sv_life_batch *b, unsigned flow)
{
    struct sv_json *j = &l->json;
    bool is_warm = b->flags & SV_LIFE_WARMUP;
    char id[32];
    sv_json_lit(j, "id_scope");
    put_text(j, is_warm ? "warming" : "serving");
    sv_json_lit(j, "id2");
    sv_json_begin(j, '{');
    sv_json_lit(j, "local");
    sv_json_u64(j, b->id);
    sv_json_end(j);
    snprintf(id, sizeof id, "0x%016llX", (unsigned long long)(b->id | (uint64_t)is_warm << 63));
    sv_json_lit(j, "bind_id");
    put_text(j, id);
    if (flow & FLOW_OUT) {
        sv_json_lit(j, "flow_out");
        sv_json_bool(j, true);
    }
    if (flow & FLOW_IN) {
        sv_json_lit(j, "flow_in");
        sv_json_bool(j, true);
    }
}

static void args_of_batch(struct line *l, const struct sv_life_batch *b, uint32_t size,
                          const char *model, bool with_requests)
{
    begin_args(l);
    arg_number(l, "batch_id", b->id);
    arg_number(l, "batch_size", size);
    arg_text(l, "model_name", model);
    if (!with_requests || b->n == 0)
        return;
    arg_key(l, "request_ids");
    sv_json_begin(&l->json, '[');
    for (uint32_t i = 0; i < b->n; i++)
        sv_json_u64(&l->json, b->members[i].id);
    sv_json_end(&l->json);
}

/* ---- metadata ---- */

static void put_meta(struct sv_batching_json *j, const char *what, int64_t tid, const char *name,
                     int64_t sort_index)
{
    struct line l;
    begin_line(&l, j, false);
    put_name(&l, what);
    sv_json_lit(&l.json, "ph");
    put_text(&l.json, "M");
    sv_json_lit(&l.json, "ts");
    sv_json_i64(&l.json, 0);
    sv_json_lit(&l.json, "pid");
    sv_json_i64(&l.json, 1);
    if (tid) {
        sv_json_lit(&l.json, "tid");
        sv_json_i64(&l.json, tid);
    }
    begin_args(&l);
    if (name)
        arg_text(&l, "name", name);
    else
        arg_int(&l, "sort_index", sort_index);
    sv_json_end(&l.json);
    end_line(&l);
}

static void put_track(struct sv_batching_json *j, int64_t tid, const char *name, int64_t sort_index)
{
    put_meta(j, "thread_name", tid, name, 0);
    put_meta(j, "thread_sort_index", tid, NULL, sort_index);
}

static void put_congestion_track(struct sv_batching_json *j)
{
    if (!j->has_congestion_track)
        put_track(j, TID_CONGESTION, "congestion", -4);
    j->has_congestion_track = true;
}

/* Declares the lane of a worker at its first use, and names it again when the worker's name has changed. */
static int64_t worker_tid(struct sv_batching_json *j, const struct sv_life_worker *w, uint32_t lane)
{
    int64_t base = TID_WORKERS + (int64_t)w->number * TIDS_PER_WORKER, tid = base + lane;
    char label[96], suffix[16] = "";
    if (lane > 0)
        snprintf(suffix, sizeof suffix, " #%u", lane + 1);
    if (w->device >= 0)
        snprintf(label, sizeof label, "device %d worker %d (%s)%s", w->device, w->number, w->type,
                 suffix);
    else
        snprintf(label, sizeof label, "worker-%d (%s)%s", w->number, w->type, suffix);
    bool is_new;
    uint64_t hash = sv_hash_bytes(label, strlen(label), 1);
    uint64_t *known = sv_map_add(&j->labels, (uint64_t)tid, &is_new);
    if (is_new)
        put_track(j, tid, label, base * 1000 + lane);
    else if (*known != hash)
        put_meta(j, "thread_name", tid, label, 0);
    *known = hash;
    return tid;
}

void sv_batching_json_init(struct sv_batching_json *j, const struct sv_batching_json_options *o)
{
    *j = (struct sv_batching_json){.origin_ns = o->origin_ns,
                                   .last_ns = o->origin_ns,
                                   .is_newer = o->is_newer,
                                   .without_spans = o->without_spans};
    sv_buf_init(&j->out, OUT_LIMIT);
    sv_buf_str(&j->out, "{");
    if (o->origin_unix_ns) /* what time 0 is in the world: lets other traces join */
        sv_buf_printf(&j->out, "\"baseTimeNanoseconds\":%lld,", (long long)o->origin_unix_ns);
    sv_buf_str(&j->out, "\"traceEvents\":[");
    put_meta(j, "process_name", 0, o->server, 0);
    if (j->is_newer)
        put_congestion_track(j);
    put_track(j, TID_REQUEST, "request enqueued", -3);
    put_track(j, TID_BATCH, "batch", -2);
    put_track(j, TID_BUILD, j->is_newer ? "batch assembly" : "dynamic batching", -1);
    put_track(j, TID_SUBMITTED, "batch submitted", 0);
}

void sv_batching_json_fini(struct sv_batching_json *j)
{
    sv_buf_fini(&j->out);
    sv_map_fini(&j->labels);
}

/* ---- events ---- */

static void put_instant(struct sv_batching_json *j, struct sv_life *l, const char *name,
                        int64_t time_ns, const struct sv_life_request *r)
{
    struct line line;
    begin_line(&line, j, r->flags & SV_LIFE_WARMUP);
    put_head(&line, name, "batching", "i", us(j, time_ns), -1, TID_REQUEST);
    begin_args(&line);
    arg_number(&line, "request_id", r->id);
    arg_text(&line, "model_name", sv_life_model(l, r->model));
    sv_json_end(&line.json);
    end_line(&line);
}

static int64_t dur_us(int64_t start, int64_t end)
{
    return end - start < 1 ? 1 : end - start;
}

/* `dur` and `end_ts` say the same. */
static void put_span(struct sv_batching_json *j, struct sv_life *l, const char *name, int64_t tid,
                     int64_t start_ns, int64_t end_ns, const struct sv_life_batch *b, unsigned flow)
{
    struct line line;
    int64_t ts = us(j, start_ns), dur = dur_us(ts, us(j, end_ns));
    begin_line(&line, j, b->flags & SV_LIFE_WARMUP);
    put_head(&line, name, "batching", "X", ts, dur, tid);
    if (flow)
        put_flow(&line, b, flow);
    args_of_batch(&line, b, b->samples, sv_life_model(l, b->model), tid < TID_WORKERS);
    if (tid >= TID_WORKERS) {
        arg_int(&line, "worker_id", b->worker);
        arg_text(&line, "worker_type", sv_life_worker(l, b->worker)->type);
    }
    arg_int(&line, "start_ts", ts);
    arg_int(&line, "end_ts", ts + dur);
    sv_json_end(&line.json);
    end_line(&line);
}

static void put_submitted(struct sv_batching_json *j, struct sv_life *l,
                          const struct sv_life_batch *b)
{
    struct line line;
    int64_t first = b->first_arrival_ns ? b->first_arrival_ns : b->collect_start_ns;
    int64_t last = b->last_arrival_ns ? b->last_arrival_ns : first;
    int64_t tid = TID_SUBMITTED;
    put_span(j, l, "batch", TID_BATCH, first, last, b, FLOW_NONE);
    put_span(j, l, "batch_build", TID_BUILD,
             b->collect_start_ns ? b->collect_start_ns : b->collect_end_ns, b->collect_end_ns, b,
             FLOW_OUT);
    if (b->worker >= 0)
        tid = worker_tid(j, sv_life_worker(l, b->worker), 0);
    begin_line(&line, j, b->flags & SV_LIFE_WARMUP);
    put_head(&line, "batch_submitted", "batching", "X", us(j, b->submitted_ns), 1, tid);
    put_flow(&line, b, FLOW_IN | FLOW_OUT);
    args_of_batch(&line, b, b->n, sv_life_model(l, b->model), true);
    sv_json_end(&line.json);
    end_line(&line);
}

static void put_worker_span(struct sv_batching_json *j, struct sv_life *l,
                            const struct sv_life_batch *b)
{
    if (b->worker < 0 || b->finished_ns < b->started_ns)
        return;
    int64_t tid = worker_tid(j, sv_life_worker(l, b->worker), b->lane);
    put_span(j, l, sv_life_model(l, b->model), tid, b->started_ns, b->finished_ns, b, FLOW_IN);
}

/* A pair of async events, which may overlap others. Their id is the row of the request, so that there are as many rows as
 * requests were open at once. */
static void put_request(struct sv_batching_json *j, struct sv_life *l,
                        const struct sv_life_request *r, const struct sv_life_batch *b)
{
    int64_t edges[SV_N_PHASES + 1];
    sv_life_request_edges(r, b, edges);
    for (int is_end = 0; is_end < 2; is_end++) {
        struct line line;
        begin_line(&line, j, r->flags & SV_LIFE_WARMUP);
        put_head(&line, "request", "request", is_end ? "e" : "b",
                 us(j, edges[is_end ? SV_N_PHASES : 0]), -1, TID_REQUEST);
        sv_json_lit(&line.json, "id");
        sv_json_hex(&line.json, (uint64_t)r->row + 1);
        begin_args(&line);
        if (!is_end) {
            arg_number(&line, "request_id", r->id);
            if (b)
                arg_number(&line, "batch_id", b->id);
            arg_text(&line, "model_name", sv_life_model(l, r->model));
            arg_text(&line, "outcome", sv_life_fate_names[r->fate]);
            arg_key(&line, "phases_ns");
            sv_json_begin(&line.json, '[');
            for (size_t i = 0; i < SV_N_PHASES; i++)
                sv_json_i64(&line.json, edges[i + 1] - edges[i]);
            sv_json_end(&line.json);
        }
        sv_json_end(&line.json);
        end_line(&line);
    }
}

static void put_congestion(struct sv_batching_json *j, int64_t end_ns)
{
    struct line line;
    int64_t ts = us(j, j->congested_ns);
    put_congestion_track(j);
    begin_line(&line, j, false);
    put_head(&line, "congestion", "monitoring", "X", ts, dur_us(ts, us(j, end_ns)), TID_CONGESTION);
    sv_json_lit(&line.json, "cname");
    put_text(&line.json, "bad");
    begin_args(&line);
    arg_text(&line, "state", "congested");
    sv_json_end(&line.json);
    end_line(&line);
    j->congested_ns = 0;
}

void sv_batching_json_tell(struct sv_batching_json *j, struct sv_life *l,
                           enum sv_life_moment moment, int64_t time_ns,
                           const struct sv_life_request *r, const struct sv_life_batch *b)
{
    j->last_ns = time_ns > j->last_ns ? time_ns : j->last_ns;
    switch (moment) {
    case SV_MOMENT_ENQUEUED: put_instant(j, l, "request_enqueued", time_ns, r); break;
    case SV_MOMENT_REJECTED: put_instant(j, l, "request_rejected", time_ns, r); break;
    case SV_MOMENT_SUBMITTED: put_submitted(j, l, b); break;
    case SV_MOMENT_FINISHED: put_worker_span(j, l, b); break;
    case SV_MOMENT_REQUEST_OVER:
        if (!j->without_spans)
            put_request(j, l, r, b);
        break;
    case SV_MOMENT_CONGESTED: j->congested_ns = j->congested_ns ? j->congested_ns : time_ns; break;
    case SV_MOMENT_NOT_CONGESTED:
        if (j->congested_ns)
            put_congestion(j, time_ns ? time_ns : j->last_ns);
        break;
    case SV_MOMENT_DEQUEUED:
    case SV_MOMENT_BATCH_OVER: break;
    }
}
