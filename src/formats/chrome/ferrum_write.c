/* Chrome JSON as ferrum's trace writer writes it (`--dialect ferrum`): a bare array of whole slices
 * on one line, and nothing else.
 *
 * Opened through the table of formats. tid is the layer: the thread's number, or that of a track
 * called "Layer N"; slices of one layer may overlap, because its readers add them up. Times are
 * whole microseconds, cut at both ends, so that neighbours do not overlap and children stay inside
 * of their parents. Readers take unsigned numbers only: a trace that begins before 0 is moved to
 * begin there, which needs events in time order. What the format has no place for is counted in the
 * report. */
#include "compat/ferrum.h"
#include "core/chrome/args_json.h"
#include "core/stream/text_sink.h"
#include "formats/writers.h"

#include <ctype.h>
#include <string.h>

struct ferrum {
    struct sv_text_sink base;
    struct sv_json json;
    int64_t begin_ns; /* 0 of the file; below 0 or 0 */
    bool has_begin;
};

/* "Layer 12", "layer_12", "layer12"; -1: another name. */
static int64_t layer_in(struct sv_text name)
{
    static const char word[] = "layer";
    size_t at = sizeof word - 1;
    if (name.len <= at || strncasecmp(name.bytes, word, at) != 0)
        return -1;
    at += strchr(" _", name.bytes[at]) != NULL;
    int64_t layer = 0;
    size_t digits = at;
    for (; at < name.len && isdigit((unsigned char)name.bytes[at]) && layer <= UINT32_MAX; at++)
        layer = layer * 10 + (name.bytes[at] - '0');
    return at > digits && at == name.len ? layer : -1;
}

/* A number that ferrum's readers accept; for all others one that no thread has. */
static uint32_t number(int64_t given, sv_track t)
{
    return given >= 0 && given <= UINT32_MAX ? (uint32_t)given : 0x80000000u | t;
}

static uint32_t tid_of(const struct sv_dict *d, sv_track t)
{
    sv_track thread = sv_dict_thread_of(d, t), row = t;
    if (thread)
        return number(d->tracks[thread].tid, thread);
    for (; t; t = d->tracks[t].parent) {
        int64_t layer = layer_in(sv_dict_text(d, d->tracks[t].name));
        if (layer >= 0)
            return number(layer, row);
        if (d->tracks[t].kind == SV_TRACK_LANE) /* belongs to the row above it */
            row = d->tracks[t].parent;
    }
    return sv_dict_process_of(d, row) == row ? 0 : number(-1, row);
}

static uint32_t pid_of(const struct sv_dict *d, sv_track t)
{
    sv_track process = sv_dict_process_of(d, t);
    return process ? number(d->tracks[process].pid, process) : 0;
}

static void skip(struct ferrum *w, const char *what)
{
    sv_report_add(w->base.report, SV_SKIPPED, what, 1, SV_NO_POS, NULL);
}

/* The member is absent where it would be empty. */
static void put_args(struct ferrum *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    bool is_open = false;
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a)) {
        if (sv_arg_is_flow(a)) {
            skip(w, "flow");
            continue;
        }
        if (!is_open) {
            sv_json_put(j, "args", begin, '{');
            is_open = true;
        }
        if (!sv_arg_member_json(j, w->base.dict, a, end))
            skip(w, "argument nested too deeply");
    }
    if (is_open)
        sv_json_end(j);
}

/* Whole microseconds since the begin of the file. */
static uint64_t whole_us(const struct ferrum *w, int64_t ts_ns)
{
    return ts_ns > w->begin_ns ? ((uint64_t)ts_ns - (uint64_t)w->begin_ns) / 1000 : 0;
}

static void write_slice(struct ferrum *w, const struct sv_event *e)
{
    struct sv_text name = sv_dict_text(w->base.dict, e->name),
                   cat = sv_dict_text(w->base.dict, e->cat);
    int64_t dur_ns = e->dur_ns > 0 ? e->dur_ns : 0;
    uint64_t begin = whole_us(w, e->ts_ns), end = whole_us(w, e->ts_ns + dur_ns);
    if (e->dur_ns < 0)
        skip(w, "slice that never ended, written with duration 0");
    sv_ferrum_begin(&w->json, &(struct sv_ferrum_event){.name = name.bytes,
                                                        .name_len = name.len,
                                                        .cat = cat.bytes,
                                                        .cat_len = cat.len,
                                                        .ts_us = begin,
                                                        .dur_us = end - begin,
                                                        .pid = pid_of(w->base.dict, e->track),
                                                        .tid = tid_of(w->base.dict, e->track)});
    put_args(w, e);
    sv_json_end(&w->json);
}

static void ferrum_event(struct sv_text_sink *base, const struct sv_event *e)
{
    struct ferrum *w = (struct ferrum *)base;
    if (!w->has_begin) {
        w->has_begin = true;
        w->begin_ns = e->ts_ns < 0 ? e->ts_ns : 0;
    }
    switch (e->kind) {
    case SV_SLICE: write_slice(w, e); break;
    case SV_INSTANT: skip(w, "instant"); break;
    case SV_COUNTER: skip(w, "counter value"); break;
    case SV_LOSS: skip(w, "mark of a loss"); break;
    default: skip(w, "flow"); break;
    }
}

static void ferrum_end(struct sv_text_sink *base)
{
    sv_json_end(&((struct ferrum *)base)->json);
}

static const struct sv_text_kind kind = {
    .size = sizeof(struct ferrum),
    .limit = SIZE_MAX,
    .takes = SV_HAS_SLICES | SV_HAS_FLOW_POINTS,
    .event = ferrum_event,
    .end = ferrum_end,
};

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)options;
    (void)err;
    struct ferrum *w = sv_text_sink_open(&kind, out, dict, report, sink);
    sv_json_init(&w->json, &w->base.buf);
    sv_json_begin(&w->json, '[');
    return SV_OK;
}

const struct sv_writer sv_ferrum_writer = {
    .name = "ferrum",
    .open = open_sink,
};
