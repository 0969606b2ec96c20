/* stave-load: sends load to an inference server and reports the results.
 *
 * Order: the target and its model, the requests' bytes, the arrival times, the load, the
 * summary. */
#include "server/load/load_plan.h"
#include "server/program/program.h"
#include "server/server_config.h"

#include <stave/stave.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct load_options {
    const char *url, *model, *rate, *schedule, *json, *seconds, *wait, *max_p95, *min_rate, *trace;
    uint64_t requests, concurrency, rows, seed, timeout_s;
    const char *max_rejected;
    bool poisson, binary;
};

uint32_t stave_i_obeys_environment = 0; /* STAVE_OUT is the server's; see --trace */

#define OPTION(member) offsetof(struct load_options, member)

static const struct sv_option options[] = {
    {'n', "requests", "N", SV_OPT_COUNT, OPTION(requests), "number of requests (default 1000)",
     NULL, NULL},
    {'u', "url", "URL", SV_OPT_TEXT, OPTION(url),
     "the server (default http://" SV_SERVER_ADDRESS ")", NULL, NULL},
    {'m', "model", "NAME", SV_OPT_TEXT, OPTION(model),
     "name of the model (default: the first that the server lists)", NULL, NULL},
    {'c', "concurrency", "N", SV_OPT_COUNT, OPTION(concurrency), "connections; default 32", NULL,
     NULL},
    {'r', "rate", "PER_SECOND", SV_OPT_TEXT, OPTION(rate),
     "open loop: send requests at this rate without waiting for answers (default: closed loop, "
     "each connection waits for its answer)",
     NULL, NULL},
    {0, "poisson", NULL, SV_OPT_FLAG, OPTION(poisson),
     "with --rate: random gaps (Poisson arrivals), as from independent users", NULL, NULL},
    {0, "schedule-csv", "FILE", SV_OPT_TEXT, OPTION(schedule),
     "open loop: file with lines delta_us,repeat, the send times of requests", NULL, NULL},
    {'t', "seconds", "S", SV_OPT_TEXT, OPTION(seconds),
     "stop sending after this time (default: no limit)", NULL, NULL},
    {0, "rows", "N", SV_OPT_COUNT, OPTION(rows), "rows of each request (default 1)", NULL,
     "Requests"},
    {'b', "binary", NULL, SV_OPT_FLAG, OPTION(binary), "send tensors as bytes instead of JSON",
     NULL, "Requests"},
    {0, "seed", "N", SV_OPT_COUNT, OPTION(seed), "seed of inputs and random gaps", NULL,
     "Requests"},
    {0, "timeout", "S", SV_OPT_COUNT, OPTION(timeout_s), "time limit for an answer (default 30)",
     NULL, NULL},
    {'w', "wait", "S", SV_OPT_TEXT, OPTION(wait),
     "time limit for the server to become ready (default 10)", NULL, NULL},
    {'j', "summary-json", "FILE", SV_OPT_OUTPUT, OPTION(json),
     "write the summary as JSON to this file; - is standard output", NULL, NULL},
    {0, "trace", "FILE", SV_OPT_OUTPUT, OPTION(trace),
     "record the requests into this trace and send each with a W3C traceparent, so that 'stave "
     "merge --same-host' joins it with the server's trace",
     NULL, NULL},
    {0, "max-latency-p95-ms", "MS", SV_OPT_TEXT, OPTION(max_p95), "exit with 1 if it is higher",
     NULL, "Limits"},
    {0, "min-throughput-rps", "N", SV_OPT_TEXT, OPTION(min_rate), "exit with 1 if it is lower",
     NULL, "Limits"},
    {0, "max-rejected", "N", SV_OPT_TEXT, OPTION(max_rejected), "exit with 1 if there are more",
     NULL, "Limits"},
    {0},
};

static const struct sv_example examples[] = {
    {"stave-load --requests 2000", "32 connections, each with one request at a time"},
    {"stave-load -n 50000 --rate 10000 --poisson",
     "10,000 requests per second with Poisson arrivals"},
    {"stave-load --schedule-csv day.csv -j summary.json", "replay arrival times"},
    {"stave-load -n 200 --trace load.pftrace", "requests with trace context, and their trace"},
    {"stave-load -n 5000 --max-latency-p95-ms 20 --max-rejected 0",
     "for CI: exit code 1 if it is too slow"},
    {0},
};

static float next_input(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (float)(*x >> 40) / (float)(1 << 24) - 0.5f;
}

static void add_shape(struct sv_buf *b, const struct sv_target *t, uint64_t rows)
{
    sv_buf_printf(b, "\"shape\":[%llu", (unsigned long long)rows);
    for (uint32_t i = 0; i < t->n_dims; i++)
        sv_buf_printf(b, ",%u", t->dims[i]);
    sv_buf_byte(b, ']');
}

/* One whole request, headers included. */
static void make_body(const struct load_options *o, const struct sv_target *t, uint64_t *seed,
                      struct sv_buf *out)
{
    struct sv_buf json, bytes;
    size_t n = o->rows * t->in_size;
    sv_buf_init(&json, (size_t)1 << 30);
    sv_buf_init(&bytes, (size_t)1 << 30);
    sv_buf_printf(&json, "{\"inputs\":[{\"name\":\"%s\",\"datatype\":\"FP32\",", t->input);
    add_shape(&json, t, o->rows);
    sv_buf_str(&json, o->binary ? ",\"parameters\":{\"binary_data_size\":" : ",\"data\":[");
    if (o->binary)
        sv_buf_u64(&json, n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        float v = next_input(seed);
        if (o->binary)
            sv_buf_add(&bytes, &v, sizeof v);
        else
            sv_buf_printf(&json, "%s%.6g", i ? "," : "", (double)v);
    }
    sv_buf_str(&json, o->binary ? "}}],\"parameters\":{\"binary_data_output\":true}}" : "]}]}");
    sv_buf_init(out, (size_t)1 << 30);
    sv_buf_printf(out, "POST /v2/models/%s/infer HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n",
                  t->model, t->host, json.len + bytes.len);
    if (o->binary)
        sv_buf_printf(out,
                      "Content-Type: application/octet-stream\r\nInference-Header-Content-Length: "
                      "%zu\r\n\r\n",
                      json.len);
    else
        sv_buf_str(out, "Content-Type: application/json\r\n\r\n");
    sv_buf_add(out, json.data, json.len);
    sv_buf_add(out, bytes.data, bytes.len);
    sv_buf_fini(&json);
    sv_buf_fini(&bytes);
}

/* A number of an option that may be absent. */
static int read_number(const char *name, const char *text, double fallback, double *out,
                       struct sv_err *err)
{
    char *end;
    *out = fallback;
    if (!text)
        return 0;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0) || *out > 1e12)
        return sv_error(err, SV_EUSAGE, "--%s: '%s' is not a number", name, text);
    return 0;
}

static int make_arrivals(struct load_options *o, struct sv_arrivals *a, struct sv_err *err)
{
    double rate;
    int code = read_number("rate", o->rate, 0, &rate, err);
    if (code < 0)
        return code;
    if (o->schedule && o->rate)
        return sv_error(err, SV_EUSAGE, "--rate or --schedule-csv, not both");
    if (o->poisson && !o->rate)
        return sv_error(err, SV_EUSAGE, "--poisson needs --rate");
    if (o->rate && rate <= 0)
        return sv_error(err, SV_EUSAGE, "--rate must be above 0");
    if (o->schedule)
        return sv_arrivals_schedule(a, o->schedule, err);
    if (o->poisson)
        sv_arrivals_poisson(a, o->requests, rate, o->seed);
    else if (o->rate)
        sv_arrivals_regular(a, o->requests, rate);
    else
        a->n = o->requests;
    return 0;
}

static int save(const char *path, const struct sv_buf *b, struct sv_err *err)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!f)
        return sv_err_sys(err, "%s", path);
    bool is_whole = fwrite(b->data, 1, b->len, f) == b->len;
    if ((f == stdout ? fflush(f) : fclose(f)) != 0 || !is_whole)
        return sv_err_sys(err, "%s", path);
    return 0;
}

/* What the thresholds say: SV_EXIT_FOUND when one is missed. */
static int verdict(const struct load_options *o, const struct sv_load_tally *t, struct sv_err *err)
{
    double p95 = 0, rate = 0, rejected = 0;
    int code = read_number("max-latency-p95-ms", o->max_p95, 1e12, &p95, err);
    if (code == 0)
        code = read_number("min-throughput-rps", o->min_rate, 0, &rate, err);
    if (code == 0)
        code = read_number("max-rejected", o->max_rejected, 1e12, &rejected, err);
    if (code < 0)
        return code;
    if (sv_load_tally_ms(t, 95) > p95)
        return sv_error(err, SV_EFOUND, "p95 is %.3f ms, more than %s", sv_load_tally_ms(t, 95),
                        o->max_p95);
    if (sv_load_tally_rate(t) < rate)
        return sv_error(err, SV_EFOUND, "%.1f requests/s, less than %s", sv_load_tally_rate(t),
                        o->min_rate);
    if ((double)t->counts[SV_LOAD_REJECTED] > rejected)
        return sv_error(err, SV_EFOUND, "%llu requests were rejected, more than %s",
                        (unsigned long long)t->counts[SV_LOAD_REJECTED], o->max_rejected);
    if (t->counts[SV_LOAD_FAILED] || t->counts[SV_LOAD_BROKEN])
        return sv_error(err, SV_EFOUND, "some requests failed or were not answered");
    return 0;
}

static int report(const struct load_options *o, struct sv_load_tally *t, struct sv_err *err)
{
    struct sv_buf text, json;
    sv_buf_init(&text, 1 << 16);
    sv_buf_init(&json, 1 << 16);
    sv_load_tally_sort(t);
    sv_load_tally_text(t, &text);
    sv_load_tally_json(t, &json);
    int code = o->json ? save(o->json, &json, err) : 0;
    if (code == 0 && !sv_common.quiet && !(o->json && strcmp(o->json, "-") == 0))
        code = save("-", &text, err);
    sv_buf_fini(&text);
    sv_buf_fini(&json);
    return code == 0 ? verdict(o, t, err) : code;
}

static void set_defaults(struct load_options *o)
{
    o->url = o->url ? o->url : "http://" SV_SERVER_ADDRESS;
    o->requests = o->requests ? o->requests : 1000;
    o->concurrency = o->concurrency ? o->concurrency : 32;
    o->rows = o->rows ? o->rows : 1;
    o->timeout_s = o->timeout_s ? o->timeout_s : 30;
}

static int run_traced(const struct load_options *o, struct sv_drive *d, struct sv_load_tally *tally,
                      struct sv_err *err)
{
    struct sv_err ignored;
    int code = o->trace ? sv_load_trace_start(o->trace, err) : 0;
    if (code < 0)
        return code;
    d->is_traced = o->trace != NULL;
    code = sv_drive_run(d, tally, err);
    if (!d->is_traced)
        return code;
    int end = sv_load_trace_stop(code == 0 ? err : &ignored);
    return code == 0 ? end : code;
}

static int drive(struct load_options *o, struct sv_drive *d, struct sv_target *target,
                 struct sv_err *err)
{
    struct sv_load_tally tally = {0};
    double wait, seconds;
    int code = read_number("wait", o->wait, 10, &wait, err);
    if (code == 0)
        code = read_number("seconds", o->seconds, 0, &seconds, err);
    if (code == 0)
        code = make_arrivals(o, &d->arrivals, err);
    if (code == 0)
        code = sv_target_open(o->url, o->model, wait, target, err);
    if (code < 0)
        return code;
    uint64_t seed = o->seed * 2654435761u + 88172645463325252u;
    for (; d->n_bodies < SV_LOAD_BODIES; d->n_bodies++)
        make_body(o, target, &seed, &d->bodies[d->n_bodies]);
    d->concurrency = (uint32_t)o->concurrency;
    d->timeout_ns = (int64_t)o->timeout_s * 1000000000;
    d->duration_ns = (int64_t)(seconds * 1e9);
    code = run_traced(o, d, &tally, err);
    if (code == 0)
        code = report(o, &tally, err);
    free(tally.latencies_ns);
    return code;
}

static int run(void *opaque, const struct sv_words *operands, struct sv_err *err)
{
    struct load_options *o = opaque;
    struct sv_target target = {0};
    struct sv_buf bodies[SV_LOAD_BODIES];
    struct sv_drive d = {.target = &target, .bodies = bodies};
    if (operands->n)
        return sv_error(err, SV_EUSAGE, "unexpected argument '%s'; give the server with --url",
                        operands->items[0]);
    set_defaults(o);
    if (o->concurrency > 10000 || o->requests > 100000000 || o->rows > 4096 || o->timeout_s > 86400)
        return sv_error(err, SV_EUSAGE,
                        "out of range: at most 10,000 connections, 100,000,000 requests, 4096 "
                        "rows, a time limit of one day");
    int code = drive(o, &d, &target, err);
    for (uint32_t i = 0; i < d.n_bodies; i++)
        sv_buf_fini(&bodies[i]);
    free(d.arrivals.times_ns);
    return code;
}

static const struct sv_command command = {
    .name = "load",
    .operands = "[--requests N] [--url URL]",
    .summary =
        "sends requests to an inference server (KServe v2) and measures latency and throughput",
    .description = "Sends inference requests over HTTP with keep-alive connections and reports how "
                   "many were answered, the throughput and the percentiles of the latency.\n\n"
                   "Closed loop (the default): each connection sends its next request when the "
                   "answer has arrived. Open loop (--rate, --poisson, --schedule-csv): requests "
                   "are sent at their times, and latency is measured from the time the request "
                   "should have been sent, so that a slow server does not lower the load.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct load_options),
    .run = run,
    .is_program = true,
};

int main(int argc, char **argv)
{
    return sv_program_main(&command, argc, argv);
}
