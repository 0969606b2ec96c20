/* CSV, writing: one line per slice, instant and counter value, for spreadsheets and data frames.
 *
 * Opened through the table of formats; the pump pairs edges before. Texts are quoted as
 * core/base/csv_text.h says. Arguments are one JSON object; flow points and losses are lines of
 * their own kind. */
#include "core/base/csv_text.h"
#include "core/base/json.h"
#include "core/chrome/args_json.h"
#include "core/stream/text_sink.h"
#include "formats/formats.h"
#include "formats/writers.h"

struct csv_sink {
    struct sv_text_sink base;
    struct sv_buf json;
};

static void put_str(struct csv_sink *s, sv_str str)
{
    struct sv_text t = sv_dict_text(s->base.dict, str);
    sv_buf_csv(&s->base.buf, t.bytes, t.len);
}

static void put_comma(struct csv_sink *s)
{
    sv_buf_byte(&s->base.buf, ',');
}

/* process,pid,thread,tid,track: what does not apply stays empty. */
static void put_track(struct csv_sink *s, sv_track track)
{
    sv_track process = sv_dict_process_of(s->base.dict, track),
             thread = sv_dict_thread_of(s->base.dict, track);
    put_str(s, s->base.dict->tracks[process].name);
    put_comma(s);
    if (process)
        sv_buf_i64(&s->base.buf, s->base.dict->tracks[process].pid);
    put_comma(s);
    put_str(s, s->base.dict->tracks[thread].name);
    put_comma(s);
    if (thread)
        sv_buf_i64(&s->base.buf, s->base.dict->tracks[thread].tid);
    put_comma(s);
    put_str(s, s->base.dict->tracks[track].name);
}

static void put_value(struct csv_sink *s, const struct sv_event *e)
{
    if (e->n_args == 0 || (e->kind != SV_COUNTER && e->kind != SV_LOSS))
        return;
    if (e->args[0].type == SV_ARG_DOUBLE)
        sv_buf_double(&s->base.buf, e->args[0].d);
    else if (e->args[0].type == SV_ARG_UINT)
        sv_buf_u64(&s->base.buf, e->args[0].u);
    else
        sv_buf_i64(&s->base.buf, e->args[0].i);
}

static void put_args(struct csv_sink *s, const struct sv_event *e)
{
    const struct sv_arg *first = e->args, *end = first + e->n_args;
    if (e->n_args && (e->kind == SV_COUNTER || e->kind == SV_LOSS))
        first++; /* the value has its own column */
    if (first == end)
        return;
    struct sv_json json;
    sv_buf_clear(&s->json);
    sv_json_init(&json, &s->json);
    if (!sv_args_json(&json, s->base.dict, first, (size_t)(end - first)))
        sv_report_add(s->base.report, SV_SKIPPED, "argument nested too deeply for CSV", 1,
                      SV_NO_POS, NULL);
    sv_buf_csv(&s->base.buf, (const char *)s->json.data, s->json.len);
}

static void put_event(struct csv_sink *s, const struct sv_event *e)
{
    sv_buf_i64(&s->base.buf, e->ts_ns);
    put_comma(s);
    if (e->kind == SV_SLICE || e->kind == SV_LOSS)
        sv_buf_i64(&s->base.buf, e->dur_ns);
    put_comma(s);
    sv_buf_str(&s->base.buf, sv_kind_name(e->kind));
    put_comma(s);
    put_track(s, e->track);
    put_comma(s);
    put_str(s, e->cat);
    put_comma(s);
    put_str(s, e->kind == SV_COUNTER && !e->name ? s->base.dict->tracks[e->track].name : e->name);
    put_comma(s);
    put_value(s, e);
    put_comma(s);
    put_args(s, e);
    sv_buf_str(&s->base.buf, "\n");
}

static void csv_event(struct sv_text_sink *base, const struct sv_event *e)
{
    struct csv_sink *s = (struct csv_sink *)base;
    put_event(s, e);
    s->base.is_over |= s->json.failed;
}

static void csv_fini(struct sv_text_sink *base)
{
    sv_buf_fini(&((struct csv_sink *)base)->json);
}

static const struct sv_text_kind kind = {
    .size = sizeof(struct csv_sink),
    .limit = (size_t)1 << 30,
    .takes = SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS,
    .flushes = true,
    .too_much = "an event is too large for a line of CSV",
    .event = csv_event,
    .fini = csv_fini,
};

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)options;
    (void)err;
    struct csv_sink *s = sv_text_sink_open(&kind, out, dict, report, sink);
    sv_buf_init(&s->json, (size_t)1 << 28);
    sv_buf_str(&s->base.buf,
               "ts_ns,dur_ns,kind,process,pid,thread,tid,track,category,name,value,args\n");
    return 0;
}

static const char *const suffixes[] = {".csv", NULL};

static const struct sv_writer writer = {
    .name = "csv",
    .suffixes = suffixes,
    .open = open_sink,
};

/* What an inference server would have written itself (batching_write.c). */
static const struct sv_dialect dialects[] = {
    {"batching", "summary of a server's batches",
     "all but a server's requests and batches, warm-up", &sv_batching_summary_writer},
    {"batching-newer", "the same with the newer columns",
     "all but a server's requests and batches, warm-up", &sv_batching_summary_writer},
    {0},
};

const struct sv_format sv_csv_format = {
    .name = "csv",
    .help = "one line per slice, instant and counter value",
    .lacks = "order and kinds of tracks, clocks, metadata, units of counters; a track is its name "
             "and its process and thread",
    .writer = &writer,
    .dialects = dialects,
};
