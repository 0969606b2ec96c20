/* stave report llm: continuous batching. How long tokens took, by step size and load, where the
 * time of a request went, and what made a token slow. Called by cmd/report.c with the loaded trace.
 *
 * The analysis makes tables and figures; here they become sections, one request (--request), the
 * slowest tokens (--why) or a comparison with another run (--baseline), whose exit code is for
 * CI. */
#include "subjects/engine/llm_figures.h"
#include "subjects/engine/request_units.h"

#include "cli/command.h"
#include "cli/console.h"
#include "cli/rows.h"
#include "core/base/sat.h"
#include "files/load.h"
#include "subjects/serving/changes.h"
#include "subjects/serving/latency_columns.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Slow tokens: that a user may ask for, and that are part of the whole report as JSON. */
enum { WHY_MOST = 1000 };

/* What the sections are filled from. */
struct view {
    const struct sv_llm *l;
    const struct sv_llm_figures *f;
    struct sv_llm_slo slo;
    bool has_slo;
    struct sv_llm_goodput goodput;
    struct sv_llm_slow *slow;
    size_t n_slow;
    const struct sv_llm_request *request; /* --request */
    char label[SV_LLM_LABEL_MAX], text[256];
};

static struct view *view_of(const struct sv_section *s)
{
    return (struct view *)(uintptr_t)s->data;
}

static struct sv_cell known(int64_t v)
{
    return v >= 0 ? sv_cell_int(v) : sv_cell_null();
}

static struct sv_cell count(uint64_t n)
{
    return sv_cell_int((int64_t)n);
}

static struct sv_cell rate(uint64_t n, const struct sv_llm_figures *f)
{
    double seconds = (double)sv_sat_sub(f->last_ns, f->first_ns) / 1e9;
    return seconds > 0 ? sv_cell_real((double)n / seconds) : sv_cell_null();
}

/* ---- summary ---- */

static const struct sv_report_column summary_columns[] = {
    SV_OUTCOME_COLUMNS,
    {"span_ns", "first arrival to last end", SV_UNIT_NS},
    {"requests_per_s", "requests/s", SV_UNIT_REAL},
    {"output_tokens_per_s", "output tokens/s", SV_UNIT_REAL},
    {"prompt_tokens", "prompt tokens", SV_UNIT_COUNT},
    {"cached_tokens", "from the prefix cache", SV_UNIT_COUNT},
    {"output_tokens", "output tokens", SV_UNIT_COUNT},
    {"computed_tokens", "tokens computed", SV_UNIT_COUNT},
    {"engines", "engines", SV_UNIT_COUNT},
    {"steps", "steps", SV_UNIT_COUNT},
    {"members_mean", "requests in a step, mean", SV_UNIT_REAL},
    {"busy_share", "in a step, of the time", SV_UNIT_SHARE},
    {"kv_peak", "KV cache, peak", SV_UNIT_SHARE},
    {"preemptions", "preemptions", SV_UNIT_COUNT},
    {"accepted_share", "speculation accepted", SV_UNIT_SHARE},
    {"kernel_ns", "kernels in steps", SV_UNIT_NS},
    {"io_ns", "I/O in steps", SV_UNIT_NS},
    {"unknown_requests", NULL, SV_UNIT_COUNT},
    {"ended_twice", NULL, SV_UNIT_COUNT},
    {"damaged_members", NULL, SV_UNIT_COUNT},
    {"empty_steps", NULL, SV_UNIT_COUNT},
};

static void fill_summary(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_llm *l = view_of(s)->l;
    const struct sv_llm_figures *f = view_of(s)->f;
    int64_t span = sv_sat_sub(f->last_ns, f->first_ns);
    (void)row;
    c = sv_put_outcomes(c, f->answered, f->rejected, f->failed, f->cancelled, f->open);
    *c++ = sv_cell_int(span);
    *c++ = rate(f->answered, f);
    *c++ = rate(f->output_tokens, f);
    *c++ = count(f->prompt_tokens);
    *c++ = count(f->cached_tokens);
    *c++ = count(f->output_tokens);
    *c++ = count(f->tokens_in);
    *c++ = count(l->n_engines);
    *c++ = count(f->steps);
    *c++ = sv_cell_share((double)f->members, (double)f->steps);
    *c++ = f->steps ? sv_cell_share((double)f->busy_ns, (double)span) : sv_cell_null();
    *c++ = f->kv_peak >= 0 ? sv_cell_real(f->kv_peak) : sv_cell_null();
    *c++ = count(f->preemptions);
    *c++ = sv_cell_share((double)f->accepted, (double)f->proposed);
    *c++ = f->kernel_ns ? sv_cell_int(f->kernel_ns) : sv_cell_null();
    *c++ = f->io_ns ? sv_cell_int(f->io_ns) : sv_cell_null();
    *c++ = count(l->odd.unknown);
    *c++ = count(l->odd.ended);
    *c++ = count(l->odd.damaged);
    *c++ = count(l->odd.empty);
}

/* ---- latencies ---- */

static const struct sv_report_column latency_columns[] = {
    {"figure", "", SV_UNIT_TEXT},
    {"n", "count", SV_UNIT_COUNT},
    SV_LATENCY_COLUMNS("", ""),
};

static void fill_latency(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_latency *m = &view_of(s)->f->measures[row];
    *c++ = sv_cell_text(sv_llm_measure_names[row]);
    *c++ = count(m->n);
    sv_put_latency(c, m);
}

static const struct sv_report_column phase_columns[] = {
    {"phase", "phase", SV_UNIT_TEXT},
    {"share", "of all time", SV_UNIT_SHARE},
    SV_LATENCY_COLUMNS("", ""),
};

static void fill_phase(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_llm_figures *f = view_of(s)->f;
    const struct sv_latency *p = &f->phases[SV_ENGINE_QUEUE + row];
    double all = 0;
    for (int i = SV_ENGINE_QUEUE; i < SV_N_ENGINE_PHASES; i++)
        all += f->phases[i].mean_ns;
    *c++ = sv_cell_text(sv_engine_phase_names[SV_ENGINE_QUEUE + row]);
    *c++ = sv_cell_share(p->mean_ns, all);
    sv_put_latency(c, p);
}

/* ---- by size and load ---- */

static struct sv_cell range(struct view *v, const struct sv_llm_group *g)
{
    if (g->from == g->to)
        snprintf(v->label, sizeof v->label, "%" PRIu64, g->from);
    else
        snprintf(v->label, sizeof v->label, "%" PRIu64 "-%" PRIu64, g->from, g->to);
    return sv_cell_text(v->label);
}

static const struct sv_report_column size_columns[] = {
    {"requests", "requests in step", SV_UNIT_TEXT},
    {"steps", "steps", SV_UNIT_COUNT},
    {"dur_p50_ns", "step p50", SV_UNIT_NS},
    {"dur_p99_ns", "step p99", SV_UNIT_NS},
    {"tokens_per_step", "tokens/step", SV_UNIT_REAL},
    {"tokens_per_s", "tokens/s in them", SV_UNIT_REAL},
    {"itl_p50_ns", "ITL p50", SV_UNIT_NS},
    {"itl_p99_ns", "ITL p99", SV_UNIT_NS},
};

static struct sv_cell *two(struct sv_cell *c, const struct sv_latency *l)
{
    *c++ = l->n ? sv_cell_real(l->p50_ns) : sv_cell_null();
    *c++ = l->n ? sv_cell_real(l->p99_ns) : sv_cell_null();
    return c;
}

static void fill_size(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_llm_group *g = &view_of(s)->f->by_size.groups[row];
    *c++ = range(view_of(s), g);
    *c++ = count(g->n);
    c = two(c, &g->dur);
    *c++ = sv_cell_share((double)g->tokens_in, (double)g->n);
    *c++ = sv_cell_share((double)g->tokens_in * 1e9, (double)g->dur_ns);
    two(c, &g->itl);
}

static const struct sv_report_column load_columns[] = {
    {"open", "open at arrival", SV_UNIT_TEXT}, {"requests", "requests", SV_UNIT_COUNT},
    {"ttft_p50_ns", "TTFT p50", SV_UNIT_NS},   {"ttft_p99_ns", "TTFT p99", SV_UNIT_NS},
    {"tpot_p50_ns", "TPOT p50", SV_UNIT_NS},   {"tpot_p99_ns", "TPOT p99", SV_UNIT_NS},
    {"e2e_p50_ns", "E2E p50", SV_UNIT_NS},     {"e2e_p99_ns", "E2E p99", SV_UNIT_NS},
};

static void fill_load(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct sv_llm_group *g = &view_of(s)->f->by_load.groups[row];
    *c++ = range(view_of(s), g);
    *c++ = count(g->n);
    c = two(c, &g->ttft);
    c = two(c, &g->tpot);
    two(c, &g->e2e);
}

/* ---- limits ---- */

static const struct sv_report_column slo_columns[] = {
    {"figure", "", SV_UNIT_TEXT},          {"limit_ns", "limit", SV_UNIT_NS},
    {"requests", "within", SV_UNIT_COUNT}, {"share", "of all", SV_UNIT_SHARE},
    {"per_s", "per second", SV_UNIT_REAL},
};

/* One row for each measure that has a limit, and goodput. */
static void fill_slo(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct view *v = view_of(s);
    size_t m = 0;
    for (size_t seen = 0; m < SV_N_LLM_MEASURES; m++)
        if (v->slo.limit_ns[m] && seen++ == row)
            break;
    bool is_all = m == SV_N_LLM_MEASURES;
    uint64_t n = is_all ? v->goodput.good : v->goodput.within[m];
    *c++ = sv_cell_text(is_all ? "goodput" : sv_llm_measure_names[m]);
    *c++ = is_all ? sv_cell_null() : sv_cell_int(v->slo.limit_ns[m]);
    *c++ = count(n);
    *c++ = sv_cell_share((double)n, (double)v->goodput.all);
    *c++ = rate(n, v->f);
}

/* ---- why ---- */

static const struct sv_report_column why_columns[] = {
    {"request", "request", SV_UNIT_TEXT},
    {"token", "token", SV_UNIT_COUNT},
    {"at_ns", "at", SV_UNIT_NS},
    {"gap_ns", "waited", SV_UNIT_NS},
    {"cause", "cause", SV_UNIT_TEXT},
    {"cause_ns", "of it", SV_UNIT_NS},
    {"step", "step", SV_UNIT_COUNT},
    {"queue_ns", NULL, SV_UNIT_NS},
    {"preemption_ns", NULL, SV_UNIT_NS},
    {"transfer_ns", NULL, SV_UNIT_NS},
    {"load_ns", NULL, SV_UNIT_NS},
    {"step_ns", NULL, SV_UNIT_NS},
    {"other_steps_ns", NULL, SV_UNIT_NS},
    {"no_step_ns", NULL, SV_UNIT_NS},
    {"delivery_ns", NULL, SV_UNIT_NS},
    {"engine_wait", "engine waits for", SV_UNIT_TEXT},
    {"engine_wait_ns", "so long", SV_UNIT_NS},
    {"engine_wait_by", "of", SV_UNIT_TEXT},
    {"engine_wait_in", "in", SV_UNIT_TEXT},
    {"detail", "detail", SV_UNIT_TEXT},
};

static void describe_step(const struct sv_llm *l, const struct sv_llm_slow *s, char *to,
                          size_t size)
{
    char label[SV_LLM_LABEL_MAX], took[32];
    const struct sv_llm_step *step = &l->steps[s->step];
    int len = snprintf(to, size, "%s for %" PRIu64 " tokens of %" PRIu32 " requests",
                       sv_human_ns(took, step->dur_ns), step->tokens_in, step->n);
    if (s->blame == SV_LLM_NONE || len < 0 || (size_t)len >= size)
        return;
    const struct sv_llm_member *m = &l->members[s->blame];
    if (m->m.tokens_in > 1)
        snprintf(to + len, size - (size_t)len, ", %" PRIu32 " of request %s", m->m.tokens_in,
                 sv_llm_label(l, &l->requests[m->request], label));
}

static const char *detail_of(struct view *v, const struct sv_llm_slow *s)
{
    const struct sv_llm *l = v->l;
    const struct sv_llm_request *r = &l->requests[l->tokens[s->token].request];
    v->text[0] = '\0';
    if (s->cause == SV_LLM_BY_LOAD && s->load != SV_LLM_NONE) {
        struct sv_text name = sv_dict_text(l->trace->dict, l->loads[s->load].name);
        snprintf(v->text, sizeof v->text, "%.*s", (int)(name.len < 200 ? name.len : 200),
                 name.bytes);
    } else if (s->cause == SV_LLM_BY_QUEUE) {
        int len = snprintf(v->text, sizeof v->text, "%" PRIu32 " open when it came; ", r->load);
        describe_step(l, s, v->text + len, sizeof v->text - (size_t)len);
    } else if (s->cause == SV_LLM_BY_PREEMPTION) {
        snprintf(v->text, sizeof v->text, "preempted %" PRIu32 " times in all", r->preemptions);
    } else {
        describe_step(l, s, v->text, sizeof v->text);
    }
    return v->text;
}

static void fill_why(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    struct view *v = view_of(s);
    const struct sv_llm *l = v->l;
    const struct sv_llm_slow *slow = &v->slow[row];
    const struct sv_llm_token *k = &l->tokens[slow->token];
    *c++ = sv_cell_text(sv_llm_label(l, &l->requests[k->request], v->label));
    *c++ = sv_cell_int((int64_t)k->number + 1);
    *c++ = sv_cell_int(sv_sat_sub(k->ts_ns, v->f->first_ns));
    *c++ = sv_cell_int(slow->gap_ns);
    *c++ = sv_cell_text(sv_llm_cause_names[slow->cause]);
    *c++ = sv_cell_int(slow->cause_ns[slow->cause]);
    *c++ = count(l->steps[slow->step].id);
    for (int i = 0; i < SV_N_LLM_CAUSES; i++)
        *c++ = sv_cell_int(slow->cause_ns[i]);
    *c++ = sv_cell_text(slow->wait);
    *c++ = slow->wait ? sv_cell_int(slow->wait_ns) : sv_cell_null();
    *c++ = sv_cell_bytes(slow->wait_by);
    *c++ = sv_cell_bytes(slow->wait_in);
    *c++ = sv_cell_text(detail_of(v, slow));
}

/* ---- steps and requests ---- */

static const struct sv_report_column step_columns[] = {
    {"engine", "engine", SV_UNIT_TEXT},      {"step", "step", SV_UNIT_COUNT},
    {"start_ns", "from", SV_UNIT_NS},        {"dur_ns", "takes", SV_UNIT_NS},
    {"requests", "requests", SV_UNIT_COUNT}, {"prefill", "prefill", SV_UNIT_COUNT},
    {"decode", "decode", SV_UNIT_COUNT},     {"tokens_in", "tokens", SV_UNIT_COUNT},
    {"tokens_out", "out", SV_UNIT_COUNT},    {"cached_tokens", NULL, SV_UNIT_COUNT},
    {"kv_used", "KV blocks", SV_UNIT_COUNT}, {"kv_total", NULL, SV_UNIT_COUNT},
    {"waiting", "waiting", SV_UNIT_COUNT},   {"graph", "graph", SV_UNIT_TEXT},
    {"proposed", NULL, SV_UNIT_COUNT},       {"accepted", NULL, SV_UNIT_COUNT},
    {"kernel_ns", NULL, SV_UNIT_NS},         {"io_ns", NULL, SV_UNIT_NS},
    {"warmup", NULL, SV_UNIT_COUNT},
};

static struct sv_cell string(const struct sv_dict *d, sv_str s)
{
    return s ? sv_cell_text(sv_dict_text(d, s).bytes) : sv_cell_null();
}

static void fill_step(const struct sv_section *sec, size_t row, struct sv_cell *c)
{
    const struct view *v = view_of(sec);
    const struct sv_llm_step *s = &v->l->steps[row];
    const struct sv_dict *d = v->l->trace->dict;
    *c++ = s->track ? string(d, d->tracks[s->track].name) : sv_cell_null();
    *c++ = count(s->id);
    *c++ = sv_cell_int(sv_sat_sub(s->ts_ns, v->f->first_ns));
    *c++ = sv_cell_int(s->dur_ns);
    *c++ = count((uint64_t)s->n_prefill + s->n_decode);
    *c++ = count(s->n_prefill);
    *c++ = count(s->n_decode);
    *c++ = count(s->tokens_in);
    *c++ = count(s->tokens_out);
    *c++ = count(s->cached);
    *c++ = known(s->kv_used);
    *c++ = known(s->kv_total);
    *c++ = known(s->waiting);
    *c++ = string(v->l->strings, s->graph);
    *c++ = count(s->proposed);
    *c++ = count(s->accepted);
    *c++ = sv_cell_int(s->kernel_ns);
    *c++ = sv_cell_int(s->io_ns);
    *c++ = sv_cell_int(s->is_warmup);
}

static const struct sv_report_column request_columns[] = {
    {"request", "request", SV_UNIT_TEXT},
    {"start_ns", "from", SV_UNIT_NS},
    {"model", "model", SV_UNIT_TEXT},
    {"outcome", "outcome", SV_UNIT_TEXT},
    {"prompt_tokens", "prompt", SV_UNIT_COUNT},
    {"cached_tokens", NULL, SV_UNIT_COUNT},
    {"output_tokens", "output", SV_UNIT_COUNT},
    {"ttft_ns", "TTFT", SV_UNIT_NS},
    {"tpot_ns", "TPOT", SV_UNIT_NS},
    {"e2e_ns", "E2E", SV_UNIT_NS},
    {"queue_ns", "queue", SV_UNIT_NS},
    {"prefill_ns", "prefill", SV_UNIT_NS},
    {"decode_ns", "decode", SV_UNIT_NS},
    {"preempted_ns", "preempted", SV_UNIT_NS},
    {"transfer_ns", NULL, SV_UNIT_NS},
    {"respond_ns", NULL, SV_UNIT_NS},
    {"preemptions", NULL, SV_UNIT_COUNT},
    {"steps", "steps", SV_UNIT_COUNT},
    {"share_ns", "share of steps", SV_UNIT_NS},
    {"kernel_ns", NULL, SV_UNIT_NS},
    {"io_ns", NULL, SV_UNIT_NS},
    {"load", NULL, SV_UNIT_COUNT},
    {"warmup", NULL, SV_UNIT_COUNT},
};

static void fill_request_of(struct view *v, const struct sv_llm_request *r, struct sv_cell *c)
{
    *c++ = sv_cell_text(sv_llm_label(v->l, r, v->label));
    *c++ = r->arrival_ns != SV_LLM_UNKNOWN ? sv_cell_int(sv_sat_sub(r->arrival_ns, v->f->first_ns))
                                           : sv_cell_null();
    *c++ = string(v->l->strings, r->model);
    *c++ = sv_cell_text(sv_life_fate_names[r->fate]);
    *c++ = count(r->prompt);
    *c++ = count(r->cached);
    *c++ = count(r->output);
    *c++ = known(sv_llm_ttft(r));
    *c++ = known(sv_llm_tpot(r));
    *c++ = known(sv_llm_e2e(r));
    for (int i = SV_ENGINE_QUEUE; i < SV_N_ENGINE_PHASES; i++)
        *c++ = sv_cell_int(r->phase_ns[i]);
    *c++ = count(r->preemptions);
    *c++ = count(r->n_members);
    *c++ = sv_cell_int(r->share_ns);
    *c++ = sv_cell_int(r->kernel_ns);
    *c++ = sv_cell_int(r->io_ns);
    *c++ = count(r->load);
    *c++ = sv_cell_int(r->is_warmup);
}

static void fill_request(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    fill_request_of(view_of(s), &view_of(s)->l->requests[row], c);
}

/* ---- one request ---- */

static void fill_one(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    (void)row;
    fill_request_of(view_of(s), view_of(s)->request, c);
}

static const struct sv_report_column span_columns[] = {
    {"phase", "phase", SV_UNIT_TEXT},
    {"start_ns", "from", SV_UNIT_NS},
    {"dur_ns", "takes", SV_UNIT_NS},
};

/* Since its arrival, or since the trace has it. */
static int64_t start_of(const struct sv_llm *l, const struct sv_llm_request *r)
{
    return r->arrival_ns != SV_LLM_UNKNOWN ? r->arrival_ns
           : r->n_spans                    ? l->spans[r->first_span].start_ns
                                           : 0;
}

static void fill_span(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct view *v = view_of(s);
    const struct sv_llm_span *p = &v->l->spans[v->request->first_span + row];
    *c++ = sv_cell_text(sv_engine_phase_names[p->phase]);
    *c++ = sv_cell_int(sv_sat_sub(p->start_ns, start_of(v->l, v->request)));
    *c++ = sv_cell_int(sv_sat_sub(p->end_ns, p->start_ns));
}

static const struct sv_report_column member_columns[] = {
    {"step", "step", SV_UNIT_COUNT},
    {"start_ns", "from", SV_UNIT_NS},
    {"dur_ns", "takes", SV_UNIT_NS},
    {"phase", "phase", SV_UNIT_TEXT},
    {"tokens_in", "tokens", SV_UNIT_COUNT},
    {"tokens_out", "out", SV_UNIT_COUNT},
    {"position", "position", SV_UNIT_COUNT},
    {"requests", "requests", SV_UNIT_COUNT},
    {"share_ns", "its share", SV_UNIT_NS},
    {"kernel_ns", NULL, SV_UNIT_NS},
    {"io_ns", NULL, SV_UNIT_NS},
};

static void fill_member(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct view *v = view_of(s);
    const struct sv_llm_member *m =
        &v->l->members[v->l->by_request[v->request->first_member + row]];
    const struct sv_llm_step *step = &v->l->steps[m->step];
    *c++ = count(step->id);
    *c++ = sv_cell_int(sv_sat_sub(step->ts_ns, start_of(v->l, v->request)));
    *c++ = sv_cell_int(step->dur_ns);
    *c++ = sv_cell_text(m->m.is_decode ? "decode" : "prefill");
    *c++ = count(m->m.tokens_in);
    *c++ = count(m->m.tokens_out);
    *c++ = count(m->m.position);
    *c++ = count(step->n);
    *c++ = sv_cell_int(m->share_ns);
    *c++ = sv_cell_int(m->kernel_ns);
    *c++ = sv_cell_int(m->io_ns);
}

#define COLUMNS(name) name##_columns, sizeof name##_columns / sizeof *name##_columns

static void print_waterfall(const struct view *v)
{
    const struct sv_llm *l = v->l;
    const struct sv_llm_request *r = v->request;
    char label[SV_LLM_LABEL_MAX], ttft[32], e2e[32];
    int64_t start = start_of(l, r);
    int64_t end = r->n_spans ? l->spans[r->first_span + r->n_spans - 1].end_ns : start;
    sv_print(stdout, "request %s: %s", sv_llm_label(l, r, label), sv_life_fate_names[r->fate]);
    if (sv_llm_e2e(r) >= 0)
        sv_print(stdout, " after %s", sv_human_ns(e2e, sv_llm_e2e(r)));
    if (sv_llm_ttft(r) >= 0)
        sv_print(stdout, ", first token after %s", sv_human_ns(ttft, sv_llm_ttft(r)));
    sv_print(
        stdout,
        "\n  %" PRIu32 " prompt tokens (%" PRIu64 " cached), %" PRIu64 " output tokens in %" PRIu32
        " steps, preempted %" PRIu32 " times\n\n  %-11s %12s %12s\n",
        r->prompt, r->cached, r->output, r->n_members, r->preemptions, "phase", "from", "takes");
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct sv_llm_span *p = &l->spans[r->first_span + i];
        sv_print_bar(sv_engine_phase_names[p->phase], p->start_ns, p->end_ns, start,
                     sv_sat_sub(end, start));
    }
    if (r->n_members)
        sv_print(stdout, "\n");
}

static int print_request(const struct sv_report_options *o, struct view *v, struct sv_err *err)
{
    v->request = sv_llm_find(v->l, o->request);
    if (!v->request)
        return sv_error(err, SV_EINPUT, "no request %s in %s; --by request lists them", o->request,
                        o->path);
    const struct sv_section sections[] = {
        {"request", "Request", COLUMNS(request), 1, true, fill_one, v},
        {"span", "Phases", COLUMNS(span), v->request->n_spans, false, fill_span, v},
        {"member", "Steps with it", COLUMNS(member), v->request->n_members, false, fill_member, v},
    };
    if (!o->json && !o->by)
        print_waterfall(v); /* which has the first two sections */
    size_t from = o->json || o->by ? 0 : 2;
    return sv_sections_print(sections + from, sizeof sections / sizeof *sections - from, o, err);
}

/* ---- another run ---- */

static int compare(const struct sv_report_options *o, const struct view *before,
                   const struct view *after, struct sv_err *err)
{
    double latency, throughput;
    int code =
        sv_percent_option("max-latency-regression", o->max_latency_regression, 10, &latency, err);
    if (code >= 0)
        code =
            sv_percent_option("max-throughput-drop", o->max_throughput_drop, 10, &throughput, err);
    if (code < 0)
        return code;
    static const char *const names[SV_N_LLM_MEASURES][3] = {{"TTFT p50", "TTFT p95", "TTFT p99"},
                                                            {"TPOT p50", "TPOT p95", "TPOT p99"},
                                                            {"ITL p50", "ITL p95", "ITL p99"},
                                                            {"E2E p50", "E2E p95", "E2E p99"}};
    struct sv_change changes[SV_N_LLM_MEASURES * 3 + 3];
    size_t n = 0;
    for (int m = 0; m < SV_N_LLM_MEASURES; m++) {
        const struct sv_latency *b = &before->f->measures[m], *a = &after->f->measures[m];
        if (!b->n)
            continue; /* a run without it has nothing to compare with */
        changes[n++] = (struct sv_change){names[m][0], b->p50_ns, a->p50_ns, latency, false, false};
        changes[n++] = (struct sv_change){names[m][1], b->p95_ns, a->p95_ns, latency, false, false};
        changes[n++] = (struct sv_change){names[m][2], b->p99_ns, a->p99_ns, latency, false, false};
    }
    double b_s = (double)sv_sat_sub(before->f->last_ns, before->f->first_ns) / 1e9,
           a_s = (double)sv_sat_sub(after->f->last_ns, after->f->first_ns) / 1e9;
    changes[n++] = (struct sv_change){"output tokens/s",
                                      b_s > 0 ? (double)before->f->output_tokens / b_s : 0,
                                      a_s > 0 ? (double)after->f->output_tokens / a_s : 0,
                                      throughput,
                                      false,
                                      true};
    if (before->has_slo)
        changes[n++] = (struct sv_change){"goodput (requests/s)",
                                          b_s > 0 ? (double)before->goodput.good / b_s : 0,
                                          a_s > 0 ? (double)after->goodput.good / a_s : 0,
                                          throughput,
                                          false,
                                          true};
    changes[n++] = (struct sv_change){"failed",
                                      (double)before->f->failed,
                                      (double)after->f->failed,
                                      (double)before->f->failed,
                                      true,
                                      false};
    return sv_print_changes(changes, n, o->json) ? SV_EXIT_FOUND : SV_EXIT_OK;
}

static int run_baseline(const struct sv_report_options *o, const struct view *after,
                        struct sv_err *err)
{
    struct sv_loaded loaded;
    struct sv_llm l;
    struct sv_llm_figures f;
    struct sv_load_how how = {
        .strict = o->strict, .memory_limit_bytes = o->memory_limit, .index = o->no_index};
    int code = sv_load(o->baseline, &how, &loaded, err);
    if (code >= 0) {
        sv_llm_make(&l, loaded.trace);
        sv_llm_figures_make(&f, &l);
        struct view before = {.l = &l, .f = &f, .slo = after->slo, .has_slo = after->has_slo};
        before.goodput = sv_llm_goodput(&l, &before.slo);
        code = f.answered
                   ? compare(o, &before, after, err)
                   : sv_error(err, SV_EINPUT, "%s has no requests to compare with", o->baseline);
        sv_llm_figures_fini(&f);
        sv_llm_fini(&l);
    }
    sv_loaded_free(&loaded);
    return code;
}

/* ---- the report ---- */

/* "ttft=200ms,tpot=50ms" */
static int parse_slo(const char *text, struct view *v, struct sv_err *err)
{
    for (const char *p = text; p;) {
        size_t len = strcspn(p, ","), name = strcspn(p, "=,"), m = 0;
        struct sv_moment limit = {0};
        while (m < SV_N_LLM_MEASURES && (strlen(sv_llm_measure_names[m]) != name ||
                                         memcmp(p, sv_llm_measure_names[m], name) != 0))
            m++;
        if (m == SV_N_LLM_MEASURES || name == len ||
            sv_parse_moment(p + name + 1, len - name - 1, &limit) < 0 || limit.is_absolute ||
            limit.ns <= 0)
            return sv_error(err, SV_EUSAGE,
                            "--slo: '%s' is not a list of limits such as ttft=200ms,tpot=50ms "
                            "(ttft, tpot, itl, e2e)",
                            text);
        v->slo.limit_ns[m] = limit.ns;
        v->has_slo = true;
        if (!p[len])
            return 0;
        p += len + 1;
    }
    return 0;
}

static size_t n_limits(const struct view *v)
{
    size_t n = 0;
    for (int m = 0; m < SV_N_LLM_MEASURES; m++)
        n += v->slo.limit_ns[m] != 0;
    return n;
}

static bool asks_for(const struct sv_report_options *o, const char *section)
{
    return o->by && strcmp(o->by, section) == 0;
}

static int print_sections(const struct sv_report_options *o, struct view *v, struct sv_err *err)
{
    const struct sv_llm *l = v->l;
    const struct sv_llm_figures *f = v->f;
    struct sv_report_options asked = *o;
    if (o->why)
        asked.by = "why";
    else if (o->csv && !o->by)
        asked.by = "request";
    if (asks_for(&asked, "why") || (o->json && !o->by)) {
        v->slow = sv_llm_slowest(l, o->limit < WHY_MOST ? o->limit : WHY_MOST, &v->n_slow);
        sv_why_of_tokens(l, v->slow, v->n_slow);
    }
    asked.limit = o->why && o->limit != SIZE_MAX ? 2 * o->limit : o->limit;
    const struct sv_section sections[] = {
        {"summary", "Summary (without warm-up)", COLUMNS(summary), 1, true, fill_summary, v},
        {"latency", "Latency of answered requests", COLUMNS(latency),
         f->answered ? SV_N_LLM_MEASURES : 0, false, fill_latency, v},
        {"phase", "Phases of a request: they do not overlap and sum to its time", COLUMNS(phase),
         f->answered ? SV_N_ENGINE_PHASES - SV_ENGINE_QUEUE : 0, false, fill_phase, v},
        {"slo", "Requests within the limits", COLUMNS(slo), v->has_slo ? n_limits(v) + 1 : 0, false,
         fill_slo, v},
        {"size", "By step size", COLUMNS(size), f->by_size.n, false, fill_size, v},
        {"load", "By load (open requests at arrival)", COLUMNS(load), f->by_load.n, false,
         fill_load, v},
        {"why", "Slowest tokens: first ones and later ones", COLUMNS(why), v->n_slow, false,
         fill_why, v},
        {"step", "Steps", COLUMNS(step), asks_for(&asked, "step") ? l->n_steps : 0, false,
         fill_step, v},
        {"request", "Requests", COLUMNS(request), asks_for(&asked, "request") ? l->n_requests : 0,
         false, fill_request, v},
    };
    int code = sv_sections_print(sections, sizeof sections / sizeof *sections, &asked, err);
    free(v->slow);
    return code;
}

static void note_oddities(const struct sv_llm *l)
{
    const struct sv_llm_oddities *odd = &l->odd;
    if (l->n_left_out)
        sv_console_note("%" PRIu64 " answered requests were left out of this trace when it was "
                        "recorded (docs/serving.md): all of this is of the others; 'report batch' "
                        "counts them",
                        l->n_left_out);
    if (odd->unknown)
        sv_console_note("%" PRIu64 " requests have no arrival: the trace began later, or they were "
                        "never enqueued",
                        odd->unknown);
    if (odd->ended)
        sv_console_note("%" PRIu64 " events are about requests that had ended: they change nothing",
                        odd->ended);
    if (odd->damaged)
        sv_console_note("%" PRIu64 " members of steps cannot be read: they are left out",
                        odd->damaged);
    if (odd->cut)
        sv_console_note("%" PRIu64 " tokens are counted, but have no row of their own", odd->cut);
}

static int run(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_llm l;
    struct sv_llm_figures f;
    struct view v = {.l = &l, .f = &f};
    int code = parse_slo(o->slo, &v, err);
    if (code < 0)
        return code;
    sv_llm_make(&l, t);
    sv_llm_figures_make(&f, &l);
    v.goodput = sv_llm_goodput(&l, &v.slo);
    note_oddities(&l);
    if (l.n_requests == 0 && l.n_steps == 0)
        code = sv_error(err, SV_EINPUT,
                        "%s has no requests and no engine steps: no events of category "
                        "serving.engine or serving.life (docs/llm.md)",
                        o->path);
    else if (!o->request && (asks_for(o, "span") || asks_for(o, "member")))
        code = sv_error(err, SV_EUSAGE, "--by %s: which request? Add --request ID", o->by);
    else if (o->request)
        code = print_request(o, &v, err);
    else if (o->baseline)
        code = run_baseline(o, &v, err);
    else
        code = print_sections(o, &v, err);
    sv_llm_figures_fini(&f);
    sv_llm_fini(&l);
    return code;
}

/* --request, --baseline and --why are answers of their own. */
static int check_options(struct sv_err *err)
{
    static const char *const limits[] = {"max-latency-regression", "max-throughput-drop"};
    static const char *const apart[][2] = {
        {"request", "baseline"}, {"request", "csv"},  {"request", "slo"},
        {"request", "why"},      {"baseline", "csv"}, {"baseline", "by"},
        {"baseline", "top"},     {"baseline", "why"}, {"why", "by"}};
    return sv_report_check(limits, sizeof limits / sizeof *limits, apart,
                           sizeof apart / sizeof *apart, err);
}

const struct sv_report_subject sv_engine_report = {
    .name = "llm",
    .summary = "requests, steps and tokens of an engine with continuous batching",
    .sections = "summary latency phase slo size load why step request span member",
    .options = "slo why request baseline max-latency-regression max-throughput-drop",
    .check = check_options,
    .run = run,
};
