/* The batching trace: moments of the life cycle to Chrome trace events.
 *
 * Called by the tracer's writing thread and by `stave convert --dialect batching`. Times are whole
 * microseconds since the origin, as readers of these files expect; arguments that end in _ns have
 * them to the nanosecond, so that the file holds the same requests and batches as the .pftrace.
 * Warm-up has the prefix warming_ on names and on the keys of arguments. */
#include "core/serving/batching_json.h"

#include "core/base/sat.h"
#include "core/stream/trace_context.h"

#include <stdio.h>
#include <string.h>

enum { TID_REQUEST = 1, TID_BATCH, TID_BUILD, TID_SUBMITTED, TID_CONGESTION, TID_WORKERS = 10 };
/* Engines: four below the workers, the others far above them. */
enum { TID_ENGINES = 6, TID_MORE_ENGINES = 900000000 };
enum { TIDS_PER_WORKER = 1000, OUT_LIMIT = 256 << 20 };
#define WARMING "warming_"

enum flow { FLOW_NONE, FLOW_IN = 1, FLOW_OUT = 2 };

struct line {
    struct sv_batching_json *to;
    struct sv_json json;
    bool is_warm;
};

static int64_t us(const struct sv_batching_json *j, int64_t ns)
{
    return ns > j->origin_ns ? (ns - j->origin_ns) / 1000 : 0;
}

/* The same to the nanosecond: what the time of the event leaves out. */
static int64_t ns_of(const struct sv_batching_json *j, int64_t ns)
{
    return ns > j->origin_ns ? ns - j->origin_ns : 0;
}

/* ---- pieces of an event ---- */

static void begin_line(struct line *l, struct sv_batching_json *j, bool is_warm)
{
    sv_buf_str(&j->out, j->has_event ? ",\n  " : "\n  ");
    j->has_event = true;
    l->to = j;
    l->is_warm = is_warm;
    sv_json_init(&l->json, &j->out);
    sv_json_begin(&l->json, '{');
}

static void end_line(struct line *l)
{
    sv_json_end(&l->json);
    l->to->is_lossy |= l->to->out.failed;
}

/* A key of an argument, as it is and with the prefix: both are literals, made once. */
#define KEY(l, key) \
    ((l)->is_warm ? sv_json_lit(&(l)->json, WARMING key) : sv_json_lit(&(l)->json, key))
#define ARG_NUMBER(l, key, v) (KEY(l, key), sv_json_u64(&(l)->json, v))
#define ARG_INT(l, key, v)    (KEY(l, key), sv_json_i64(&(l)->json, v))
#define ARG_TEXT(l, key, v)   (KEY(l, key), sv_json_cstr(&(l)->json, v))

/* The first members of an event whose name is a literal. */
#define MEMBERS(name, cat, phase) "\"name\":\"" name "\",\"cat\":\"" cat "\",\"ph\":\"" phase "\""
#define PUT_MEMBERS(l, name, cat, phase)                                           \
    ((l)->is_warm ? sv_json_members(&(l)->json, MEMBERS(WARMING name, cat, phase), \
                                    sizeof MEMBERS(WARMING name, cat, phase) - 1)  \
                  : sv_json_members(&(l)->json, MEMBERS(name, cat, phase),         \
                                    sizeof MEMBERS(name, cat, phase) - 1))

static void begin_args(struct line *l)
{
    sv_json_put(&l->json, "args", begin, '{');
}

/* ts, pid, tid and dur (-1: none), in the order of the server's version. */
static void put_place(struct line *l, int64_t ts, int64_t dur, int64_t tid)
{
    struct sv_json *j = &l->json;
    bool is_newer = l->to->is_newer;
    sv_json_put(j, "ts", i64, ts);
    if (dur >= 0 && !is_newer)
        sv_json_put(j, "dur", i64, dur);
    sv_json_members(j, "\"pid\":1", 7);
    sv_json_put(j, "tid", i64, tid);
    if (dur >= 0 && is_newer)
        sv_json_put(j, "dur", i64, dur);
}

/* An event of a worker is named after its model. */
static void put_model_members(struct line *l, const char *model)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", l->is_warm ? WARMING : "", model);
    sv_json_put(&l->json, "name", cstr, name);
    sv_json_members(&l->json, "\"cat\":\"batching\",\"ph\":\"X\"", 25);
}

static void put_flow(struct line *l, const struct sv_life_batch *b, unsigned flow)
{
    struct sv_json *j = &l->json;
    bool is_warm = b->flags & SV_LIFE_WARMUP;
    uint64_t space = is_warm ? UINT64_C(1) << 63 : 0;
    char id[32];
    sv_json_put(j, "id_scope", cstr, is_warm ? "warming" : "serving");
    sv_json_put(j, "id2", begin, '{');
    sv_json_put(j, "local", u64, b->id);
    sv_json_end(j);
    snprintf(id, sizeof id, "0x%016llX", (unsigned long long)(b->id | space));
    sv_json_put(j, "bind_id", cstr, id);
    if (flow & FLOW_OUT)
        sv_json_put(j, "flow_out", bool, true);
    if (flow & FLOW_IN)
        sv_json_put(j, "flow_in", bool, true);
}

static void args_of_batch(struct line *l, const struct sv_life_batch *b, uint32_t size,
                          const char *model, bool with_requests)
{
    begin_args(l);
    ARG_NUMBER(l, "batch_id", b->id);
    ARG_NUMBER(l, "batch_size", size);
    ARG_TEXT(l, "model_name", model);
    if (!with_requests || b->n == 0)
        return;
    KEY(l, "request_ids");
    sv_json_begin(&l->json, '[');
    for (uint32_t i = 0; i < b->n; i++)
        sv_json_u64(&l->json, b->members[i].id);
    sv_json_end(&l->json);
}

static void args_of_worker(struct line *l, struct sv_life *life, const struct sv_life_batch *b)
{
    ARG_INT(l, "worker_id", b->worker);
    ARG_TEXT(l, "worker_type", sv_life_worker(life, b->worker)->type);
}

/* ---- metadata ---- */

static void put_meta(struct sv_batching_json *j, const char *what, int64_t tid, const char *name,
                     int64_t sort_index)
{
    struct line l;
    begin_line(&l, j, false);
    sv_json_put(&l.json, "name", cstr, what);
    sv_json_put(&l.json, "ph", cstr, "M");
    sv_json_put(&l.json, "ts", i64, 0);
    sv_json_put(&l.json, "pid", i64, 1);
    if (tid)
        sv_json_put(&l.json, "tid", i64, tid);
    begin_args(&l);
    if (name)
        ARG_TEXT(&l, "name", name);
    else
        ARG_INT(&l, "sort_index", sort_index);
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

/* Declares the lane of a worker at its first use, and names it again when the worker's name has
 * changed. */
static int64_t worker_tid(struct sv_batching_json *j, const struct sv_life_worker *w, uint32_t lane)
{
    int64_t base = TID_WORKERS + (int64_t)w->number * TIDS_PER_WORKER, tid = base + lane;
    char label[SV_WORKER_LABEL_MAX];
    sv_life_worker_label(w, lane, label);
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

static void put_instant(struct sv_batching_json *j, struct sv_life *l, bool is_rejected,
                        int64_t time_ns, const struct sv_life_request *r)
{
    struct line line;
    begin_line(&line, j, r->flags & SV_LIFE_WARMUP);
    if (is_rejected)
        PUT_MEMBERS(&line, "request_rejected", "batching", "i");
    else
        PUT_MEMBERS(&line, "request_enqueued", "batching", "i");
    put_place(&line, us(j, time_ns), -1, TID_REQUEST);
    begin_args(&line);
    ARG_NUMBER(&line, "request_id", r->id);
    ARG_TEXT(&line, "model_name", sv_life_model(l, r->model));
    ARG_INT(&line, "ts_ns", ns_of(j, time_ns));
    sv_json_end(&line.json);
    end_line(&line);
}

static int64_t dur_us(int64_t start, int64_t end)
{
    return end - start < 1 ? 1 : end - start;
}

/* `dur` and `end_ts` say the same. */
static void put_span(struct sv_batching_json *j, struct sv_life *l, int64_t tid, int64_t start_ns,
                     int64_t end_ns, const struct sv_life_batch *b, unsigned flow)
{
    struct line line;
    int64_t ts = us(j, start_ns), dur = dur_us(ts, us(j, end_ns));
    begin_line(&line, j, b->flags & SV_LIFE_WARMUP);
    if (tid == TID_BATCH)
        PUT_MEMBERS(&line, "batch", "batching", "X");
    else if (tid == TID_BUILD)
        PUT_MEMBERS(&line, "batch_build", "batching", "X");
    else
        put_model_members(&line, sv_life_model(l, b->model));
    put_place(&line, ts, dur, tid);
    if (flow)
        put_flow(&line, b, flow);
    args_of_batch(&line, b, b->samples, sv_life_model(l, b->model), tid < TID_WORKERS);
    if (tid >= TID_WORKERS)
        args_of_worker(&line, l, b);
    ARG_INT(&line, "start_ts", ts);
    ARG_INT(&line, "end_ts", ts + dur);
    sv_json_end(&line.json);
    end_line(&line);
}

/* Arrivals and collection. */
static void put_collected(struct sv_batching_json *j, struct sv_life *l,
                          const struct sv_life_batch *b)
{
    int64_t first = b->first_arrival_ns ? b->first_arrival_ns : b->collect_start_ns;
    int64_t last = b->last_arrival_ns ? b->last_arrival_ns : first;
    put_span(j, l, TID_BATCH, first, last, b, FLOW_NONE);
    put_span(j, l, TID_BUILD, b->collect_start_ns ? b->collect_start_ns : b->collect_end_ns,
             b->collect_end_ns, b, FLOW_OUT);
}

/* Ties the batch to the worker that computed it: so it is put when the batch is over. */
static void put_submitted(struct sv_batching_json *j, struct sv_life *l,
                          const struct sv_life_batch *b)
{
    struct line line;
    begin_line(&line, j, b->flags & SV_LIFE_WARMUP);
    PUT_MEMBERS(&line, "batch_submitted", "batching", "i");
    put_place(&line, us(j, b->submitted_ns), -1, TID_SUBMITTED);
    put_flow(&line, b, FLOW_IN | FLOW_OUT);
    args_of_batch(&line, b, b->n, sv_life_model(l, b->model), true);
    if (b->worker >= 0)
        args_of_worker(&line, l, b);
    sv_json_end(&line.json);
    end_line(&line);
}

static void put_worker_span(struct sv_batching_json *j, struct sv_life *l,
                            const struct sv_life_batch *b)
{
    if (b->worker < 0 || b->finished_ns < b->started_ns)
        return;
    int64_t tid = worker_tid(j, sv_life_worker(l, b->worker), b->lane);
    put_span(j, l, tid, b->started_ns, b->finished_ns, b, FLOW_IN);
}

/* The end of a batch, with all that is known of its times: -1 where nothing is. */
static void put_over(struct sv_batching_json *j, struct sv_life *l, const struct sv_life_batch *b,
                     int64_t time_ns)
{
    const int64_t times[] = {b->collect_start_ns, b->collect_end_ns, b->submitted_ns,
                             b->started_ns,       b->finished_ns,    b->callback_start_ns,
                             b->callback_end_ns};
    struct line line;
    if (b->is_submitted)
        put_submitted(j, l, b);
    else if (b->is_collected) /* it failed before */
        put_collected(j, l, b);
    begin_line(&line, j, b->flags & SV_LIFE_WARMUP);
    PUT_MEMBERS(&line, "batch_over", "batching", "i");
    put_place(&line, us(j, time_ns), -1, TID_SUBMITTED);
    begin_args(&line);
    ARG_NUMBER(&line, "batch_id", b->id);
    ARG_TEXT(&line, "outcome", b->is_failed ? "failed" : "done");
    ARG_INT(&line, "ts_ns", ns_of(j, time_ns));
    KEY(&line, "times_ns");
    sv_json_begin(&line.json, '[');
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        sv_json_i64(&line.json, times[i] ? ns_of(j, times[i]) : -1);
    sv_json_end(&line.json);
    sv_json_end(&line.json);
    end_line(&line);
}

void sv_batching_json_left_out(struct sv_batching_json *j, const struct sv_life *l,
                               const struct sv_life_call *c)
{
    struct line line;
    begin_line(&line, j, false);
    PUT_MEMBERS(&line, "left_out", "batching", "i");
    put_place(&line, us(j, c->time_ns), -1, TID_REQUEST);
    begin_args(&line);
    ARG_TEXT(&line, "model_name", sv_life_model(l, c->model));
    ARG_INT(&line, "ts_ns", ns_of(j, c->time_ns));
    for (int i = 0; i < SV_N_LEFT_OUT; i++) {
        sv_json_key(&line.json, sv_left_out_names[i], strlen(sv_left_out_names[i]));
        sv_json_u64(&line.json, c->members[i]);
    }
    sv_json_end(&line.json);
    end_line(&line);
}

/* ---- engines ---- */

static void args_of_engine(struct line *l, const struct sv_life_request *r)
{
    ARG_NUMBER(l, "prompt_tokens", r->prompt);
    ARG_NUMBER(l, "output_tokens", r->output);
    ARG_NUMBER(l, "preemptions", r->preemptions);
    if (r->first_token_ns && r->enqueued_ns)
        ARG_INT(l, "ttft_ns", sv_sat_sub(r->first_token_ns, r->enqueued_ns));
}

static int64_t engine_tid(struct sv_batching_json *j, uint32_t engine)
{
    int64_t tid = engine < TID_WORKERS - TID_ENGINES ? TID_ENGINES + (int64_t)engine
                                                     : TID_MORE_ENGINES + (int64_t)engine;
    bool is_new;
    sv_map_add(&j->labels, (uint64_t)tid, &is_new);
    if (is_new) {
        char name[32];
        snprintf(name, sizeof name, "engine %u", engine);
        put_track(j, tid, name, 1);
    }
    return tid;
}

void sv_batching_json_step(struct sv_batching_json *j, const struct sv_life_step *s)
{
    struct line line;
    uint64_t decode = 0, tokens_in = 0, tokens_out = 0;
    int64_t ts = us(j, s->start_ns), tid = engine_tid(j, s->engine);
    j->last_ns = s->end_ns > j->last_ns ? s->end_ns : j->last_ns;
    begin_line(&line, j, s->flags & SV_LIFE_WARMUP);
    PUT_MEMBERS(&line, "engine_step", "engine", "X");
    put_place(&line, ts, dur_us(ts, us(j, s->end_ns)), tid);
    begin_args(&line);
    for (uint32_t i = 0; i < s->n; i++) {
        decode += s->members[i].is_decode != 0;
        tokens_in += s->members[i].tokens_in;
        tokens_out += s->members[i].tokens_out;
    }
    ARG_NUMBER(&line, "step_id", s->id);
    ARG_NUMBER(&line, "prefill", s->n - decode);
    ARG_NUMBER(&line, "decode", decode);
    ARG_NUMBER(&line, "tokens_in", tokens_in);
    ARG_NUMBER(&line, "tokens_out", tokens_out);
    KEY(&line, "request_ids");
    sv_json_begin(&line.json, '[');
    for (uint32_t i = 0; i < s->n; i++)
        sv_json_u64(&line.json, s->members[i].request);
    sv_json_end(&line.json);
    sv_json_end(&line.json);
    end_line(&line);
}

static void put_hex(struct sv_json *j, const uint8_t *bytes, size_t n)
{
    char text[33];
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    sv_json_text(j, text, 2 * n);
}

/* The W3C trace context of its caller. */
static void args_of_context(struct line *l, const struct sv_life_context *c)
{
    KEY(l, "trace_id");
    put_hex(&l->json, c->trace_id, sizeof c->trace_id);
    KEY(l, "span_id");
    put_hex(&l->json, c->span_id, sizeof c->span_id);
    if (sv_is_id(c->parent_id, sizeof c->parent_id)) {
        KEY(l, "parent_span_id");
        put_hex(&l->json, c->parent_id, sizeof c->parent_id);
    }
    if (c->state[0])
        ARG_TEXT(l, "otel.trace_state", c->state);
}

static void args_of_request(struct line *l, const struct sv_life_request *r,
                            const struct sv_life_batch *b, const int64_t *edges)
{
    begin_args(l);
    ARG_NUMBER(l, "request_id", r->id);
    if (b)
        ARG_NUMBER(l, "batch_id", b->id);
    ARG_TEXT(l, "outcome", sv_life_fate_names[r->fate]);
    if (r->phase != SV_ENGINE_NONE)
        args_of_engine(l, r);
    KEY(l, "phases_ns");
    sv_json_begin(&l->json, '{');
    for (size_t i = 0; i < SV_N_PHASES; i++) {
        sv_json_key(&l->json, sv_life_phase_names[i], strlen(sv_life_phase_names[i]));
        sv_json_i64(&l->json, edges[i + 1] - edges[i]);
    }
    sv_json_end(&l->json);
    ARG_INT(l, "ts_ns", ns_of(l->to, edges[0]));
    if (r->dequeued_ns) /* the phase ends there, or where the batch was complete */
        ARG_INT(l, "queue_ns", sv_sat_sub(r->dequeued_ns, edges[0]));
    if (r->context)
        args_of_context(l, r->context);
    sv_json_end(&l->json);
}

/* A pair of async events, which may overlap others. No two requests of a file have one id, also not
 * one of the warm-up and a later one: viewers take events of one id for one operation. */
static void put_request(struct sv_batching_json *j, const struct sv_life_request *r,
                        const struct sv_life_batch *b)
{
    int64_t edges[SV_N_PHASES + 1];
    sv_life_request_edges(r, b, edges);
    j->n_requests++;
    for (int is_end = 0; is_end < 2; is_end++) {
        struct line line;
        begin_line(&line, j, r->flags & SV_LIFE_WARMUP);
        if (is_end)
            PUT_MEMBERS(&line, "request", "request", "e");
        else
            PUT_MEMBERS(&line, "request", "request", "b");
        put_place(&line, us(j, edges[is_end ? SV_N_PHASES : 0]), -1, TID_REQUEST);
        sv_json_put(&line.json, "id", hex, j->n_requests);
        if (!is_end)
            args_of_request(&line, r, b, edges);
        end_line(&line);
    }
}

static void put_congestion(struct sv_batching_json *j, int64_t end_ns)
{
    struct line line;
    int64_t ts = us(j, j->congested_ns);
    put_congestion_track(j);
    begin_line(&line, j, false);
    PUT_MEMBERS(&line, "congestion", "monitoring", "X");
    put_place(&line, ts, dur_us(ts, us(j, end_ns)), TID_CONGESTION);
    sv_json_put(&line.json, "cname", cstr, "bad");
    begin_args(&line);
    ARG_TEXT(&line, "state", "congested");
    sv_json_end(&line.json);
    end_line(&line);
    j->congested_ns = 0;
}

void sv_batching_json_report(struct sv_batching_json *j, struct sv_life *l,
                             enum sv_life_moment moment, int64_t time_ns,
                             const struct sv_life_request *r, const struct sv_life_batch *b)
{
    j->last_ns = time_ns > j->last_ns ? time_ns : j->last_ns;
    switch (moment) {
    case SV_MOMENT_ENQUEUED: put_instant(j, l, false, time_ns, r); break;
    case SV_MOMENT_REJECTED: put_instant(j, l, true, time_ns, r); break;
    case SV_MOMENT_SUBMITTED: put_collected(j, l, b); break;
    case SV_MOMENT_FINISHED: put_worker_span(j, l, b); break;
    case SV_MOMENT_REQUEST_OVER:
        if (!j->without_spans)
            put_request(j, r, b);
        break;
    case SV_MOMENT_CONGESTED: j->congested_ns = j->congested_ns ? j->congested_ns : time_ns; break;
    case SV_MOMENT_NOT_CONGESTED:
        if (j->congested_ns)
            put_congestion(j, time_ns ? time_ns : j->last_ns);
        break;
    case SV_MOMENT_BATCH_OVER: put_over(j, l, b, time_ns); break;
    case SV_MOMENT_DEQUEUED:
    case SV_MOMENT_BATCH_CLOSED:
    case SV_MOMENT_JOINED: break;
    }
}
