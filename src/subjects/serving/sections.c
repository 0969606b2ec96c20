/* stave report batch: which requests shared which batch, and where each millisecond of a request
 * went. Called by cmd/report.c with the loaded trace.
 *
 * The analysis makes the tables; here they become sections, one request's waterfall (--request) or
 * a comparison with another run (--baseline), whose exit code is for CI. */

#include "cli/command.h"
#include "cli/console.h"
#include "files/load.h"
#include "subjects/engine/request_units.h"
#include "subjects/serving/changes.h"
#include "subjects/serving/latency_columns.h"
#include "subjects/serving/sla.h"
#include "subjects/serving/why.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <string.h>

/* What the sections are filled from. */
struct view {
    const struct sv_serving_report *r;
    double sla_ms[SV_SLA_MAX];
    size_t n_sla;
    struct sv_buf text; /* of the row that is being filled */
    char label[64];
    struct sv_serving_why why;
};

/* ---- columns that sections share ---- */

static struct view *view_of(const struct sv_section *s)
{
    return (struct view *)(uintptr_t)s->data;
}

static bool has_all(const struct sv_serving_report *r)
{
    return r->counts.left_out[SV_LEFT_REQUESTS] == 0;
}

/* A share of what was not recorded in full is none. */
static struct sv_cell share_of_all(const struct sv_serving_report *r, double part, double whole)
{
    return has_all(r) ? sv_cell_share(part, whole) : sv_cell_null();
}

/* ---- summary ---- */

static const struct sv_report_column summary_columns[] = {
    SV_OUTCOME_COLUMNS,
    {"left_out", NULL, SV_UNIT_COUNT},
    {"batches", "batches", SV_UNIT_COUNT},
    {"models", "models", SV_UNIT_COUNT},
    {"span_ns", "first arrival to last end", SV_UNIT_NS},
    {"throughput_per_s", "throughput (requests/s)", SV_UNIT_REAL},
    {"samples_per_s", "throughput (samples/s)", SV_UNIT_REAL},
    {"arrivals_per_s", "arrivals (requests/s)", SV_UNIT_REAL},
    SV_LATENCY_COLUMNS("latency_", "latency "),
    {"batch_size_mean", "batch size, mean", SV_UNIT_REAL},
    {"batch_size_max", "batch size, largest", SV_UNIT_COUNT},
    {"efficiency", "batch size, mean of largest", SV_UNIT_SHARE},
    {"queue_max", "queue, deepest", SV_UNIT_COUNT},
    {"queue_mean", "queue, mean depth", SV_UNIT_REAL},
    {"queue_growth_per_s", "queue growth (requests/s)", SV_UNIT_REAL},
    {"congested_ns", "congested", SV_UNIT_NS},
    {"congested_share", "congested, of the time", SV_UNIT_SHARE},
    {"in_two_batches", NULL, SV_UNIT_COUNT},
    {"unexpected_calls", NULL, SV_UNIT_COUNT},
};

static void fill_summary(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    double span = (double)(r->last_ns - r->first_ns);
    (void)row;
    const uint64_t *left = r->counts.left_out;
    uint64_t batches = r->n_real_batches + left[SV_LEFT_BATCHES];
    c = sv_put_outcomes(c, r->n_answered + left[SV_LEFT_REQUESTS], r->n_rejected, r->n_failed,
                        r->n_cancelled, r->n_open);
    *c++ = sv_cell_int((int64_t)left[SV_LEFT_REQUESTS]);
    *c++ = sv_cell_int((int64_t)batches);
    *c++ = sv_cell_int((int64_t)r->by_model.n);
    *c++ = sv_cell_int(r->last_ns - r->first_ns);
    *c++ = sv_cell_real(r->throughput);
    *c++ = sv_cell_real(r->sample_rate);
    *c++ = sv_cell_real(r->arrival_rate);
    c = sv_put_latency(c, &r->latency);
    *c++ = sv_cell_share((double)(r->n_samples + left[SV_LEFT_SAMPLES]), (double)batches);
    *c++ = has_all(r) ? sv_cell_int((int64_t)r->most_samples) : sv_cell_null();
    *c++ = has_all(r) ? sv_cell_real(r->efficiency) : sv_cell_null();
    *c++ = has_all(r) ? sv_cell_int(r->deepest) : sv_cell_null();
    *c++ = has_all(r) ? sv_cell_real(r->mean_depth) : sv_cell_null();
    *c++ = has_all(r) ? sv_cell_real(r->growth) : sv_cell_null();
    *c++ = sv_cell_int(r->congested_ns);
    *c++ = sv_cell_share((double)r->congested_ns, span);
    *c++ = sv_cell_int((int64_t)r->counts.repeated);
    *c++ = sv_cell_int((int64_t)r->counts.unexpected);
}

/* ---- phases ---- */

static const struct sv_report_column phase_columns[] = {
    {"phase", "phase", SV_UNIT_TEXT},
    {"share", "share", SV_UNIT_SHARE},
    SV_LATENCY_COLUMNS("", ""),
};

static void fill_phase(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    *c++ = sv_cell_text(sv_life_phase_names[row]);
    *c++ = sv_cell_share(r->phases[row].mean_ns, r->kept_mean_ns);
    sv_put_latency(c, &r->phases[row]);
}

/* ---- outside of the queue ---- */

static const struct sv_report_column transport_columns[] = {
    {"transport", "outside of the queue", SV_UNIT_TEXT},
    {"requests", "requests", SV_UNIT_COUNT},
    SV_LATENCY_COLUMNS("", ""),
};

/* Which is in a row: of those that are known. */
static void fill_transport(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    size_t i = 0;
    while (i + 1 < SV_N_TRANSPORT && (r->transport[i].n == 0 || row-- > 0))
        i++;
    *c++ = sv_cell_text(sv_transport_names[i]);
    *c++ = sv_cell_int((int64_t)r->transport[i].n);
    sv_put_latency(c, &r->transport[i]);
}

static size_t n_transports(const struct sv_serving_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < SV_N_TRANSPORT; i++)
        n += r->transport[i].n > 0;
    return n;
}

/* ---- groups ---- */

#define GROUP_COLUMNS                                                               \
    {"batches", "batches", SV_UNIT_COUNT}, {"requests", "requests", SV_UNIT_COUNT}, \
        {"samples", NULL, SV_UNIT_COUNT}, {"run_mean_ns", "run mean", SV_UNIT_NS},  \
        {"run_per_sample_ns", "run/sample", SV_UNIT_NS}, SV_LATENCY_COLUMNS("latency_", "")
enum { N_GROUP = 5 + SV_N_LATENCY_COLUMNS };

static void put_group(struct sv_cell *c, const struct sv_serving_group *g)
{
    *c++ = sv_cell_int((int64_t)g->batches);
    *c++ = sv_cell_int((int64_t)g->requests);
    *c++ = sv_cell_int((int64_t)g->samples);
    *c++ = sv_cell_real(g->run.mean_ns);
    *c++ = sv_cell_share((double)g->run_ns, (double)g->samples);
    sv_put_latency(c, &g->latency);
}

static const struct sv_report_column worker_columns[] = {
    {"worker", "worker", SV_UNIT_COUNT},
    {"type", "type", SV_UNIT_TEXT},
    {"device", "device", SV_UNIT_COUNT},
    {"busy", "busy", SV_UNIT_SHARE},
    GROUP_COLUMNS,
};

static void fill_worker(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    const struct sv_serving_group *g = &r->by_worker.groups[row];
    const struct sv_served_worker *w = sv_served_worker(r, (int32_t)g->key);
    *c++ = sv_cell_int((int32_t)g->key);
    *c++ = sv_cell_text(w->type);
    *c++ = w->device >= 0 ? sv_cell_int(w->device) : sv_cell_null();
    *c++ = share_of_all(r, (double)g->run_ns, (double)(r->last_ns - r->first_ns));
    put_group(c, g);
}

static const struct sv_report_column size_columns[] = {
    {"batch_size", "batch size", SV_UNIT_COUNT},
    {"share", "of all batches", SV_UNIT_SHARE},
    GROUP_COLUMNS,
};

static void fill_size(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    const struct sv_serving_group *g = &r->by_size.groups[row];
    *c++ = sv_cell_int((int64_t)g->key);
    *c++ = share_of_all(r, (double)g->batches, (double)r->n_real_batches);
    put_group(c, g);
}

static const struct sv_report_column model_columns[] = {
    {"model", "model", SV_UNIT_TEXT},
    GROUP_COLUMNS,
};

static void fill_model(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    const struct sv_serving_group *g = &r->by_model.groups[row];
    *c++ = sv_cell_text(sv_served_model(r, (uint32_t)g->key));
    put_group(c, g);
}

/* ---- limits, queue, congestion ---- */

static const struct sv_report_column sla_columns[] = {
    {"limit_ms", "limit (ms)", SV_UNIT_REAL},
    {"within", "within it", SV_UNIT_SHARE},
};

static void fill_sla(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct view *v = view_of(s);
    double within = sv_serving_within(v->r, (int64_t)(v->sla_ms[row] * 1e6));
    *c++ = sv_cell_real(v->sla_ms[row]);
    *c++ = within >= 0 ? sv_cell_real(within) : sv_cell_null();
}

static const struct sv_report_column queue_columns[] = {
    {"start_ns", "from", SV_UNIT_NS},
    {"dur_ns", NULL, SV_UNIT_NS},
    {"arrivals_per_s", "arrivals/s", SV_UNIT_REAL},
    {"answers_per_s", "answers/s", SV_UNIT_REAL},
    {"rejected", "rejected", SV_UNIT_COUNT},
    {"depth_first", "queue before", SV_UNIT_COUNT},
    {"depth_last", "after", SV_UNIT_COUNT},
    {"depth_max", "deepest", SV_UNIT_COUNT},
};

static void fill_queue(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    const struct sv_serving_window *w = &r->windows[row];
    double seconds = (double)w->dur_ns / 1e9;
    *c++ = sv_cell_int(w->start_ns - r->first_ns);
    *c++ = sv_cell_int(w->dur_ns);
    *c++ = sv_cell_share((double)w->arrived, seconds);
    *c++ = sv_cell_share((double)w->answered, seconds);
    *c++ = sv_cell_int((int64_t)w->rejected);
    *c++ = sv_cell_int(w->depth_first);
    *c++ = sv_cell_int(w->depth_last);
    *c++ = sv_cell_int(w->depth_max);
}

static const struct sv_report_column congestion_columns[] = {
    {"start_ns", "from", SV_UNIT_NS},
    {"dur_ns", "lasts", SV_UNIT_NS},
    {"deepest", "deepest queue", SV_UNIT_COUNT},
    {"by", "reported by", SV_UNIT_TEXT},
};

static void fill_congestion(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    const struct sv_served_period *p = &r->congestion[row];
    *c++ = sv_cell_int(p->start_ns - r->first_ns);
    *c++ = sv_cell_int(p->end_ns - p->start_ns);
    *c++ = sv_cell_int((int64_t)p->deepest);
    *c++ = sv_cell_text(p->is_estimated ? "queue > 2 largest batches" : "the server");
}

/* ---- batches and requests ---- */

#define PHASE_COLUMNS                                                                 \
    {"queue_ns", "queue", SV_UNIT_NS}, {"batch_ns", "batch", SV_UNIT_NS},             \
        {"submit_ns", "submit", SV_UNIT_NS}, {"scheduling_ns", "sched.", SV_UNIT_NS}, \
        {"run_ns", "run", SV_UNIT_NS}, {"callback_ns", "callback", SV_UNIT_NS},       \
        {"respond_ns", "respond", SV_UNIT_NS},                                        \
    {                                                                                 \
        "total_ns", "total", SV_UNIT_NS                                               \
    }

static struct sv_cell *put_phases(struct sv_cell *c, const int64_t *edges)
{
    for (size_t i = 0; i < SV_N_PHASES; i++)
        *c++ = sv_cell_int(edges[i + 1] - edges[i]);
    *c++ = sv_cell_int(edges[SV_N_PHASES] - edges[0]);
    return c;
}

static const struct sv_report_column batch_columns[] = {
    {"batch", "batch", SV_UNIT_COUNT},      {"start_ns", "from", SV_UNIT_NS},
    {"model", "model", SV_UNIT_TEXT},       {"worker", "worker", SV_UNIT_COUNT},
    {"samples", "size", SV_UNIT_COUNT},     PHASE_COLUMNS,
    {"warmup", NULL, SV_UNIT_COUNT},        {"failed", NULL, SV_UNIT_COUNT},
    {"requests", "requests", SV_UNIT_TEXT},
};

static void fill_batch(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    struct view *v = view_of(s);
    const struct sv_serving_report *r = v->r;
    const struct sv_served_batch *b = &r->batches[row];
    *c++ = sv_cell_int((int64_t)b->id);
    *c++ = sv_cell_int(b->edges[0] - r->first_ns);
    *c++ = sv_cell_text(sv_served_model(r, b->model));
    *c++ = b->worker >= 0 ? sv_cell_int(b->worker) : sv_cell_null();
    *c++ = sv_cell_int(b->samples);
    c = put_phases(c, b->edges);
    *c++ = sv_cell_int(b->is_warmup);
    *c++ = sv_cell_int(b->is_failed);
    sv_buf_clear(&v->text);
    for (uint32_t i = 0; i < b->n; i++)
        sv_buf_printf(&v->text, "%s%" PRIu64, i ? " " : "",
                      r->requests[r->members[b->first_member + i]].id);
    *c++ = sv_cell_text(sv_buf_cstr(&v->text));
}

static const struct sv_report_column request_columns[] = {
    {"request", "request", SV_UNIT_COUNT}, {"start_ns", "from", SV_UNIT_NS},
    {"model", "model", SV_UNIT_TEXT},      {"batch", "batch", SV_UNIT_COUNT},
    {"outcome", "outcome", SV_UNIT_TEXT},  PHASE_COLUMNS,
    {"warmup", NULL, SV_UNIT_COUNT},
};

static void fill_request(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_report *r = view_of(s)->r;
    const struct sv_served_request *q = &r->requests[row];
    *c++ = sv_cell_int((int64_t)q->id);
    *c++ = sv_cell_int(q->edges[0] - r->first_ns);
    *c++ = sv_cell_text(sv_served_model(r, q->model));
    *c++ = q->batch != SV_SERVED_NONE ? sv_cell_int((int64_t)r->batches[q->batch].id)
                                      : sv_cell_null();
    *c++ = sv_cell_text(sv_life_fate_names[q->fate]);
    c = put_phases(c, q->edges);
    *c++ = sv_cell_int(q->is_warmup);
}

/* ---- why ---- */

static const struct sv_report_column why_columns[] = {
    {"phase", "phase", SV_UNIT_TEXT},      {"class", "waits for", SV_UNIT_TEXT},
    {"share", "share", SV_UNIT_SHARE},     {"phase_share", "of the phase", SV_UNIT_SHARE},
    {"dur_ns", "time", SV_UNIT_NS},        {"requests", "requests", SV_UNIT_COUNT},
    {"who", "who", SV_UNIT_TEXT},          {"tid", "tid", SV_UNIT_COUNT},
    {"doing", "does", SV_UNIT_TEXT},       {"in", "in", SV_UNIT_TEXT},
    {"longest_ns", "longest", SV_UNIT_NS}, {"longest_request", "in request", SV_UNIT_COUNT},
};

static void fill_why(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_serving_why *w = &view_of(s)->why;
    const struct sv_serving_why_row *x = &w->rows[row];
    const struct sv_dict *d = w->ledger.trace->dict;
    struct sv_cell who = sv_cell_null(), tid = sv_cell_null();
    if (x->thread != SV_NO_THREAD) {
        const struct sv_thread_rows *thread = &w->ledger.states.threads[x->thread];
        struct sv_text own = sv_dict_text(d, d->tracks[thread->track].name);
        who = sv_cell_bytes(own.len ? own : sv_dict_text(d, d->tracks[thread->process].name));
        tid = sv_cell_int(d->tracks[thread->track].tid);
    }
    *c++ = sv_cell_text(sv_life_phase_names[x->phase]);
    *c++ = sv_cell_text(sv_why_class_names[x->class]);
    *c++ = sv_cell_share((double)x->ns, (double)w->ns);
    *c++ = sv_cell_share((double)x->ns, (double)w->phase_ns[x->phase]);
    *c++ = sv_cell_int(x->ns);
    *c++ = sv_cell_int((int64_t)x->n);
    *c++ = who;
    *c++ = tid;
    *c++ = sv_cell_text(sv_why_doing_names[x->doing]);
    *c++ = sv_cell_bytes(x->in);
    *c++ = sv_cell_int(x->longest_ns);
    *c++ = sv_cell_int((int64_t)x->longest);
}

static bool asks_why(const struct sv_report_options *o)
{
    return o->why || (o->by && strcmp(o->by, "why") == 0);
}

/* Makes the ledger, and says where it knows little. */
static int find_why(const struct sv_report_options *o, struct view *v, const struct sv_trace *t,
                    const struct sv_served_request *only, struct sv_err *err)
{
    sv_serving_why_make(&v->why, v->r, t, only);
    if (v->why.is_other)
        return sv_error(err, SV_EINPUT,
                        "--why: %s has fewer than %d answered requests; stave report wait divides "
                        "the time of its threads",
                        o->path, SV_REQUESTS_LEAST);
    if (!v->why.has_threads)
        sv_console_note("which threads work for requests is not known, only the phases are: record "
                        "the server with 'stave record' (docs/serving.md)");
    return 0;
}

/* ---- one request ---- */

static void print_companions(const struct sv_serving_report *r, const struct sv_served_request *q)
{
    if (q->batch == SV_SERVED_NONE) {
        sv_print(stdout, "  in no batch\n");
        return;
    }
    const struct sv_served_batch *b = &r->batches[q->batch];
    const struct sv_served_worker *w = sv_served_worker(r, b->worker);
    sv_print(stdout,
             "  batch %" PRIu64 " of %" PRIu32 " samples on worker %" PRId32 " (%s), with %u other "
             "requests",
             b->id, b->samples, b->worker, w->type, b->n - 1);
    for (uint32_t i = 0, shown = 0; i < b->n && shown < 16; i++) {
        const struct sv_served_request *other = &r->requests[r->members[b->first_member + i]];
        if (other == q)
            continue;
        sv_print(stdout, "%s%" PRIu64, shown++ ? " " : ": ", other->id);
    }
    sv_print(stdout, "%s\n", b->n > 17 ? " …" : "");
}

#define COLUMNS(name) name##_columns, sizeof name##_columns / sizeof *name##_columns

static struct sv_section why_section(const struct view *v, const char *title)
{
    return (struct sv_section){"why", title, COLUMNS(why), v->why.n, false, fill_why, v};
}

static int print_waterfall(const struct sv_report_options *o, struct view *v,
                           const struct sv_trace *t, struct sv_err *err)
{
    const struct sv_serving_report *r = v->r;
    char text[32];
    uint64_t id;
    if (sv_parse_count(o->request, &id) < 0)
        return sv_error(err, SV_EUSAGE, "--request: '%s' is not a number", o->request);
    const struct sv_served_request *q = sv_served_find(r, id);
    if (!q)
        return sv_error(err, SV_EINPUT, "no request %" PRIu64 " in %s; --by request lists them", id,
                        o->path);
    int64_t total = q->edges[SV_N_PHASES] - q->edges[0];
    sv_print(stdout, "request %" PRIu64 " of model %s: %s after %s%s\n", id,
             sv_served_model(r, q->model), sv_life_fate_names[q->fate], sv_human_ns(text, total),
             q->is_warmup ? " (warm-up)" : "");
    print_companions(r, q);
    sv_print(stdout, "\n  %-11s %12s %12s\n", "phase", "from", "takes");
    for (int i = 0; i < SV_N_PHASES; i++)
        sv_print_bar(sv_life_phase_names[i], q->edges[i], q->edges[i + 1], q->edges[0], total);
    for (int i = 0; i < SV_N_TRANSPORT; i++)
        if (q->transport_ns[i] >= 0)
            sv_print(stdout, "  %-11s %12s %12s\n", sv_transport_names[i], "",
                     sv_human_ns(text, q->transport_ns[i]));
    if (!o->why)
        return 0;
    int code = find_why(o, v, t, q, err);
    const struct sv_section section = why_section(v, "What it waited for");
    sv_print(stdout, "\n");
    return code < 0 ? code : sv_sections_print(&section, 1, o, err);
}

/* ---- another run ---- */

static int compare(const struct sv_report_options *o, const struct sv_serving_report *before,
                   const struct sv_serving_report *after, struct sv_err *err)
{
    double latency, throughput, rejected;
    int code =
        sv_percent_option("max-latency-regression", o->max_latency_regression, 10, &latency, err);
    if (code >= 0)
        code =
            sv_percent_option("max-throughput-drop", o->max_throughput_drop, 10, &throughput, err);
    if (code >= 0)
        code = sv_percent_option("max-rejected", o->max_rejected, (double)before->n_rejected,
                                 &rejected, err);
    if (code < 0)
        return code;
    const struct sv_latency *b = &before->latency, *a = &after->latency;
    const struct sv_change changes[] = {
        {"latency p50", b->p50_ns, a->p50_ns, latency, false, false},
        {"latency p95", b->p95_ns, a->p95_ns, latency, false, false},
        {"latency p99", b->p99_ns, a->p99_ns, latency, false, false},
        {"throughput (requests/s)", before->throughput, after->throughput, throughput, false, true},
        {"rejected", (double)before->n_rejected, (double)after->n_rejected, rejected, true, false},
        {"failed", (double)before->n_failed, (double)after->n_failed, (double)before->n_failed,
         true, false},
    };
    return sv_print_changes(changes, sizeof changes / sizeof *changes, o->json) ? SV_EXIT_FOUND
                                                                                : SV_EXIT_OK;
}

static int run_baseline(const struct sv_report_options *o, const struct sv_serving_report *r,
                        struct sv_err *err)
{
    struct sv_loaded l;
    struct sv_serving_report before;
    struct sv_load_how how = {.from = NULL,
                              .strict = o->strict,
                              .memory_limit_bytes = o->memory_limit,
                              .index = o->no_index};
    int code = sv_load(o->baseline, &how, &l, err);
    if (code >= 0) {
        sv_serving_report_make(&before, l.trace);
        if (!has_all(&before) || !has_all(r))
            code = sv_error(err, SV_EINPUT,
                            "requests were left out of %s (trace_keep): its latencies cannot be "
                            "compared; record both runs with trace_keep: all",
                            has_all(r) ? o->baseline : o->path);
        else if (before.n_answered == 0)
            code = sv_error(err, SV_EINPUT, "%s has no requests to compare with", o->baseline);
        else
            code = compare(o, &before, r, err);
        sv_serving_report_fini(&before);
    }
    sv_loaded_free(&l);
    return code;
}

/* ---- the report ---- */

static int print_sections(const struct sv_report_options *o, struct view *v,
                          const struct sv_trace *t, struct sv_err *err)
{
    const struct sv_serving_report *r = v->r;
    struct sv_report_options asked = *o;
    int code = asks_why(o) ? find_why(o, v, t, NULL, err) : 0;
    if (code < 0)
        return code;
    bool wants_requests = o->by && strcmp(o->by, "request") == 0;
    const struct sv_section sections[] = {
        {"summary", "Summary (without warm-up)", COLUMNS(summary), 1, true, fill_summary, v},
        {"phase", "Phases of a request: they follow each other and add up", COLUMNS(phase),
         r->phases[0].n ? SV_N_PHASES : 0, false, fill_phase, v},
        {"transport", "Outside of the queue: serialise is in respond, the others not in latency",
         COLUMNS(transport), n_transports(r), false, fill_transport, v},
        {"sla", "Requests answered in time", COLUMNS(sla), has_all(r) ? v->n_sla : 0, false,
         fill_sla, v},
        {"worker", "By worker (latency of its requests)", COLUMNS(worker), r->by_worker.n, false,
         fill_worker, v},
        {"size", "By batch size", COLUMNS(size), r->by_size.n, false, fill_size, v},
        {"model", "By model", COLUMNS(model), r->by_model.n, false, fill_model, v},
        {"queue", "Queue over time", COLUMNS(queue), r->n_windows, false, fill_queue, v},
        {"congestion", "Congestion", COLUMNS(congestion), r->n_congestion, false, fill_congestion,
         v},
        why_section(v, "What requests waited for, by phase: sums of the ledger"),
        {"batch", "Batches and their requests", COLUMNS(batch), r->n_batches, false, fill_batch, v},
        {"request", "Requests", COLUMNS(request), wants_requests ? r->n_requests : 0, false,
         fill_request, v},
    };
    /* For a program the batches are what it wants first. */
    if (o->why)
        asked.by = "why";
    else if (o->csv && !o->by)
        asked.by = "batch";
    return sv_sections_print(sections, sizeof sections / sizeof *sections, &asked, err);
}

static int run(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_serving_report r;
    struct view v = {.r = &r};
    int code = sv_parse_sla(o->sla, v.sla_ms, &v.n_sla, err);
    if (code < 0)
        return code;
    sv_serving_report_make(&r, t);
    sv_buf_init(&v.text, 16u << 20);
    if (r.is_from_json)
        sv_console_note(
            "it has no request life cycle, only a batching trace: times are whole microseconds");
    if (r.counts.repeated)
        sv_console_note("%" PRIu64 " requests are listed in a second batch: the first one is used",
                        r.counts.repeated);
    if (!has_all(&r))
        sv_console_note("%" PRIu64 " answered requests were left out of this trace when it was "
                        "recorded (docs/serving.md): the summary is of all requests, as far as it "
                        "is known, the rest is of the others",
                        r.counts.left_out[SV_LEFT_REQUESTS]);
    if (r.n_requests == 0 && r.n_batches == 0 && has_all(&r))
        code = sv_error(err, SV_EINPUT,
                        "%s has no requests and no batches: no events of category serving.life or "
                        "batching (docs/serving.md)",
                        o->path);
    else if (o->request)
        code = print_waterfall(o, &v, t, err);
    else if (o->baseline)
        code = run_baseline(o, &r, err);
    else
        code = print_sections(o, &v, t, err);
    sv_serving_why_fini(&v.why);
    sv_buf_fini(&v.text);
    sv_serving_report_fini(&r);
    return code;
}

/* --request and --baseline are answers of their own: what shapes the report has no meaning beside
 * them. */
static int check_options(struct sv_err *err)
{
    static const char *const limits[] = {"max-latency-regression", "max-throughput-drop",
                                         "max-rejected"};
    static const char *const apart[][2] = {
        {"request", "baseline"}, {"request", "json"}, {"request", "csv"},  {"request", "by"},
        {"request", "top"},      {"request", "sla"},  {"baseline", "csv"}, {"baseline", "by"},
        {"baseline", "top"},     {"baseline", "sla"}, {"baseline", "why"}, {"why", "by"}};
    return sv_report_check(limits, sizeof limits / sizeof *limits, apart,
                           sizeof apart / sizeof *apart, err);
}

const struct sv_report_subject sv_serving_report = {
    .name = "batch",
    .summary = "requests and batches of an inference server",
    .sections = "summary phase transport sla worker size model queue congestion why batch "
                "request",
    .options = "sla why request baseline max-latency-regression max-throughput-drop max-rejected",
    .check = check_options,
    .run = run,
};
