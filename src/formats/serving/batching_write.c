/* A server's own files (`--dialect batching`): events of the category serving.life to
 * batching_trace.json or its summary.
 *
 * Opened through the table of formats, as a dialect of chrome and of csv. It uses the same life
 * cycle and the same writers as the library does while a server runs, so that what was recovered
 * after a crash looks as if the server had written it. Events come in the order of time (the pump
 * sorts); memory is bounded. */
#include "formats/writers.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/files/output.h"
#include "core/serving/batching_json.h"
#include "core/serving/events.h"
#include "core/serving/summary_csv.h"

#include <stdlib.h>
#include <string.h>

enum { OUT_BYTES = 1 << 20 };

struct batching {
    struct sv_sink sink;
    struct sv_dict *dict;
    struct sv_life_words words;
    struct sv_life_in in;
    struct sv_life *life;
    struct sv_batching_json json;
    struct sv_summary_csv csv;
    struct sv_output *out;
    bool is_csv, is_newer, has_begun;
    uint64_t n_calls;
};

static void report(void *ctx, struct sv_life *l, enum sv_life_moment moment, int64_t time_ns,
                   const struct sv_life_request *r, const struct sv_life_batch *b)
{
    struct batching *s = ctx;
    if (s->is_csv)
        sv_summary_csv_report(&s->csv, l, moment, r, b);
    else
        sv_batching_json_report(&s->json, l, moment, time_ns, r, b);
}

static void put_out(struct batching *s)
{
    struct sv_buf *b = s->is_csv ? &s->csv.out : &s->json.out;
    sv_output_write(s->out, b->data, b->len);
    sv_buf_clear(b);
}

/* Time 0 is a microsecond before the first call, as 0 would say that its time is not known; what
 * that is in the world is known where the trace has a clock for it. */
static void begin(struct batching *s, int64_t first_ns)
{
    first_ns = sv_sat_sub(first_ns, 1000);
    struct sv_batching_json_options o = {
        .server = "StarPU Inference Server", .origin_ns = first_ns, .is_newer = s->is_newer};
    int64_t unix_ns;
    if (sv_clocks_convert(&s->dict->clocks, s->dict->clocks.trace_clock, SV_CLOCK_REALTIME,
                          first_ns, &unix_ns))
        o.origin_unix_ns = unix_ns;
    if (s->is_csv)
        sv_summary_csv_init(&s->csv, s->is_newer);
    else
        sv_batching_json_init(&s->json, &o);
    s->has_begun = true;
}

static int write_events(struct sv_sink *sink, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    struct batching *s = (struct batching *)sink;
    for (size_t i = 0; i < n; i++) {
        if (!sv_life_read(&s->words, &events[i], &s->in))
            continue;
        if (!s->has_begun)
            begin(s, events[i].ts_ns);
        s->n_calls++;
        sv_life_put(s->life, &s->in.call);
        if (!s->is_csv && s->in.call.op == SV_LIFE_LEFT_OUT)
            sv_batching_json_left_out(&s->json, s->life, &s->in.call);
        if ((s->is_csv ? s->csv.out.len : s->json.out.len) > OUT_BYTES)
            put_out(s);
    }
    return sv_output_failure(s->out, err);
}

static int finish(struct batching *s, bool failed, struct sv_err *err)
{
    if (!failed && s->n_calls == 0) {
        failed = true;
        sv_error(err, SV_EINPUT,
                 "no life cycle of requests in it (events of the category " SV_LIFE_CATEGORY
                 "): see docs/serving.md");
    }
    if (failed) {
        sv_output_discard(s->out);
        return err && err->code ? err->code : SV_EINPUT;
    }
    sv_life_end(s->life);
    if (!s->is_csv)
        sv_buf_str(&s->json.out, SV_BATCHING_JSON_CLOSING);
    put_out(s);
    return sv_output_close(s->out, err);
}

static int close_sink(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct batching *s = (struct batching *)sink;
    int code = finish(s, failed, err);
    if (s->has_begun && s->is_csv)
        sv_summary_csv_fini(&s->csv);
    else if (s->has_begun)
        sv_batching_json_fini(&s->json);
    sv_life_free(s->life);
    free(s);
    return code;
}

static void open_either(struct sv_output *out, const struct sv_write_options *options,
                        struct sv_dict *dict, bool is_csv, struct sv_sink **sink)
{
    struct batching *s = sv_alloc(sizeof *s);
    s->sink = (struct sv_sink){.write = write_events,
                               .close = close_sink,
                               .takes = SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_FLOW_POINTS};
    s->out = out;
    s->dict = dict;
    s->is_csv = is_csv;
    s->is_newer = options && options->dialect && strcmp(options->dialect, "batching-newer") == 0;
    s->life = sv_life_new(NULL, report, s);
    sv_life_words_init(&s->words, dict);
    *sink = &s->sink;
}

static int open_json(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)report;
    (void)err;
    open_either(out, options, dict, false, sink);
    return 0;
}

static int open_summary(struct sv_output *out, const struct sv_write_options *options,
                        struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                        struct sv_err *err)
{
    (void)report;
    (void)err;
    open_either(out, options, dict, true, sink);
    return 0;
}

const struct sv_writer sv_batching_writer = {
    .name = "batching",
    .open = open_json,
};

const struct sv_writer sv_batching_summary_writer = {
    .name = "batching summary",
    .open = open_summary,
};
