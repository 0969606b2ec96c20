/* The Chrome JSON writer: events in time order → one line of JSON each.
 *
 * The pump opens it, writes batches and closes it. Before the first event comes the head (clock,
 * base time, metadata that is known by then), after the last one what was learnt late; the file
 * appears under its name when all of it was written. dialect "array" writes a bare array instead,
 * which is a valid trace after every flush (viewers do not miss the closing bracket).
 *
 * Times are printed from integers. On the real-time clock they count from a base in the file's
 * head, because viewers keep microseconds in doubles, which lose nanoseconds after a hundred
 * days. */
#include "core/chrome/args_json.h"
#include "core/chrome/writer.h"

#include "core/base/json_scan.h"

#include <assert.h>
#include <stdlib.h>

#define RULES_VERSION 1 /* of core/chrome/keys.h */

/* ---- pieces ---- */

static void close_counter(struct chrome_writer *w)
{
    if (w->counter.n == 0)
        return;
    sv_json_end(&w->json);
    sv_json_end(&w->json);
    w->counter.n = 0;
}

void chrome_line(struct chrome_writer *w)
{
    close_counter(w);
    sv_json_line(&w->json);
    sv_json_begin(&w->json, '{');
}

void chrome_key_text(struct chrome_writer *w, const char *key, size_t len, sv_str text)
{
    struct sv_text t = sv_dict_text(w->dict, text);
    sv_json_key(&w->json, key, len);
    sv_json_text(&w->json, t.bytes, t.len);
}

void chrome_time(struct chrome_writer *w, int64_t ts_ns)
{
    int64_t shown;
    if (__builtin_sub_overflow(ts_ns, w->base_ns, &shown))
        shown = ts_ns < 0 ? INT64_MIN : INT64_MAX;
    sv_json_put(&w->json, "ts", us3, shown);
}

static void put_ids(struct chrome_writer *w, const struct chrome_row *row)
{
    sv_json_members(&w->json, row->ids, row->ids_len);
}

static void put_names(struct chrome_writer *w, sv_str cat, sv_str name)
{
    if (cat != 0)
        chrome_key_text(w, "cat", 3, cat);
    chrome_key_text(w, "name", 4, name);
}

static void put_us3(struct chrome_writer *w, const char *key, size_t len, int64_t ns)
{
    sv_json_key(&w->json, key, len);
    sv_json_us3(&w->json, ns);
}

void chrome_finish(struct chrome_writer *w, const struct sv_event *e, const struct chrome_extras *x)
{
    if (x->thread_time != NULL)
        put_us3(w, "tts", 3, x->thread_time->i);
    if (x->thread_dur != NULL)
        put_us3(w, "tdur", 4, x->thread_dur->i);
    if (x->stack != NULL)
        chrome_stack(w, x->stack);
    chrome_put_args(w, e->args, e->n_args, x);
    sv_json_end(&w->json);
}

/* ---- flows ---- */

/* The phase that viewers want: the first point of a flow starts it. */
static char mirror_phase(struct chrome_writer *w, const struct sv_arg *a)
{
    bool is_new = false;
    if (a->type == SV_ARG_FLOW_END) {
        sv_map_remove(&w->flows, a->u);
        return 'f';
    }
    sv_map_add(&w->flows, a->u, &is_new);
    return is_new || a->type == SV_ARG_FLOW_BEGIN ? 's' : 't';
}

static void put_flow(struct chrome_writer *w, char phase, uint64_t id, const struct chrome_row *row,
                     int64_t ts_ns, bool binds_next)
{
    char ph[] = "\"ph\":\"s\"";
    ph[6] = phase;
    sv_json_members(&w->json, ph, 8);
    sv_json_put(&w->json, "id", hex, id);
    put_ids(w, row);
    chrome_time(w, ts_ns);
    if (!binds_next)
        sv_json_members(&w->json, "\"bp\":\"e\"", 8);
}

/* The flow arguments of an event once more, as events that viewers draw. To them a slice no longer
 * is at its own end. */
static void mirror_flows(struct chrome_writer *w, const struct sv_event *e)
{
    int64_t ts_ns = e->kind == SV_END && e->ts_ns > INT64_MIN ? e->ts_ns - 1 : e->ts_ns;
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args; a < end; a = sv_arg_next(a)) {
        if (!sv_arg_is_flow(a))
            continue;
        char phase = mirror_phase(w, a);
        chrome_line(w);
        sv_json_members(&w->json, "\"cat\":\"" SV_CHROME_FLOW_MIRROR "\",\"name\":\"flow\"",
                        sizeof "\"cat\":\"" SV_CHROME_FLOW_MIRROR "\",\"name\":\"flow\"" - 1);
        put_flow(w, phase, a->u, &w->rows[e->track], ts_ns, false);
        sv_json_end(&w->json);
    }
}

static void write_flow_point(struct chrome_writer *w, const struct sv_event *e)
{
    if (e->n_args == 0)
        return;
    const struct chrome_row *row = chrome_row(w, e);
    if (row->form != ROW_THREAD)
        row = chrome_bind(w, e->track);
    struct chrome_row at = *row;
    if (at.form == ROW_ASYNC) { /* its own tid, not that of its thread */
        sv_buf_clear(&w->scratch);
        sv_buf_printf(&w->scratch, "\"pid\":%lld,\"tid\":%lld", (long long)at.pid,
                      (long long)at.tid);
        at.ids = sv_buf_cstr(&w->scratch);
        at.ids_len = (uint16_t)w->scratch.len;
    }
    const struct sv_arg *flow = &e->args[0];
    struct chrome_extras x = chrome_survey(e->args + 1, e->n_args - 1u);
    char phase = flow->type == SV_ARG_FLOW_BEGIN ? 's' : flow->type == SV_ARG_FLOW_END ? 'f' : 't';
    (void)mirror_phase(w, flow);
    chrome_line(w);
    sv_json_lit(&w->json, "cat"); /* viewers insist on both */
    struct sv_text cat = sv_dict_text(w->dict, e->cat);
    sv_json_text(&w->json, cat.bytes, cat.len);
    chrome_key_text(w, "name", 4, e->name);
    put_flow(w, phase, flow->u, &at, e->ts_ns, e->flags & SV_BIND_NEXT);
    struct sv_event rest = {.args = e->args + 1, .n_args = (uint16_t)(e->n_args - 1)};
    chrome_finish(w, &rest, &x);
}

/* ---- slices ---- */

/* A slice that never ended is a B without E: viewers know no other form for it. */
static void write_slice(struct chrome_writer *w, const struct sv_event *e)
{
    const struct chrome_row *row = chrome_row(w, e);
    if (row->form == ROW_ASYNC) {
        chrome_put_async(w, e);
        return;
    }
    if (row->form != ROW_THREAD)
        row = chrome_bind(w, e->track);
    struct chrome_extras x = chrome_survey(e->args, e->n_args);
    if (e->kind == SV_END && x.n_flows > 0) /* while the slice is open */
        mirror_flows(w, e);
    bool is_whole = e->kind == SV_SLICE && e->dur_ns >= 0;
    chrome_line(w);
    sv_json_members(&w->json,
                    is_whole            ? "\"ph\":\"X\""
                    : e->kind == SV_END ? "\"ph\":\"E\""
                                        : "\"ph\":\"B\"",
                    8);
    if (e->kind != SV_END || e->name != 0)
        put_names(w, e->cat, e->name);
    put_ids(w, row);
    chrome_time(w, e->ts_ns);
    if (is_whole)
        sv_json_put(&w->json, "dur", us3, e->dur_ns);
    chrome_finish(w, e, &x);
    if (e->kind != SV_END && x.n_flows > 0)
        mirror_flows(w, e);
}

static void write_instant(struct chrome_writer *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    const struct chrome_row *row = NULL;
    int64_t pid = 0;
    bool is_scoped = e->flags & (SV_SCOPE_PROCESS | SV_SCOPE_GLOBAL);
    bool by_scope = e->flags & SV_SCOPE_PROCESS && chrome_is_process(w, e->track, &pid);
    if (!by_scope) {
        row = chrome_row(w, e);
        if (row->form == ROW_ASYNC && !is_scoped) {
            chrome_put_async(w, e);
            return;
        }
        if (row->form != ROW_THREAD || is_scoped)
            row = chrome_bind(w, e->track);
    }
    struct chrome_extras x = chrome_survey(e->args, e->n_args);
    chrome_line(w);
    sv_json_members(j, "\"ph\":\"i\"", 8);
    put_names(w, e->cat, e->name);
    if (by_scope) { /* the reader finds the process by the scope, and must not find a thread */
        sv_json_put(j, "pid", i64, pid);
    } else {
        put_ids(w, row);
    }
    chrome_time(w, e->ts_ns);
    sv_json_members(j,
                    e->flags & SV_SCOPE_GLOBAL    ? "\"s\":\"g\""
                    : e->flags & SV_SCOPE_PROCESS ? "\"s\":\"p\""
                                                  : "\"s\":\"t\"",
                    7);
    chrome_finish(w, e, &x);
    if (x.n_flows > 0 && row != NULL)
        mirror_flows(w, e);
}

static void write_loss(struct chrome_writer *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    const struct chrome_row *row = chrome_row(w, e);
    if (row->form != ROW_THREAD)
        row = chrome_bind(w, e->track);
    struct sv_buf *cat = &w->scratch;
    struct sv_text own = sv_dict_text(w->dict, e->cat);
    sv_buf_clear(cat);
    sv_buf_str(cat, SV_CHROME_LOSS);
    if (own.len > 0)
        sv_buf_byte(cat, ',');
    sv_buf_add(cat, own.bytes, own.len);
    chrome_line(w);
    sv_json_members(j, "\"ph\":\"i\"", 8);
    sv_json_put(j, "cat", text, (const char *)cat->data, cat->len);
    chrome_key_text(w, "name", 4, e->name);
    put_ids(w, row);
    chrome_time(w, e->ts_ns);
    sv_json_members(j, "\"s\":\"t\"", 7);
    sv_json_put(j, "args", begin, '{');
    sv_json_put(j, SV_CHROME_LOSS_COUNT, i64, e->n_args > 0 ? e->args[0].i : 0);
    if (e->dur_ns != 0)
        sv_json_put(j, SV_CHROME_LOSS_SPAN, i64, e->dur_ns);
    sv_json_end(j);
    sv_json_end(j);
}

/* ---- counters ---- */

static void put_series(struct chrome_writer *w, struct sv_text key, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    sv_json_key(j, key.bytes, key.len);
    if (e->n_args == 0)
        sv_json_i64(j, 0);
    else if (e->args[0].type == SV_ARG_DOUBLE)
        sv_json_double(j, e->args[0].d);
    else if (e->args[0].type == SV_ARG_UINT)
        sv_json_u64(j, e->args[0].u);
    else
        sv_json_i64(j, e->args[0].i);
}

/* Does this value belong to the event that is open? Each series once. */
static bool joins_counter(const struct chrome_writer *w, const struct sv_event *e, sv_track parent)
{
    const struct chrome_open_counter *c = &w->counter;
    if (c->n == 0 || c->n == CHROME_SERIES_MAX || c->parent != parent || c->ts_ns != e->ts_ns ||
        c->cat != e->cat)
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (c->series[i] == e->track)
            return false;
    return true;
}

static void write_counter(struct chrome_writer *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    const struct chrome_row *row = chrome_row(w, e);
    if (row->form != ROW_COUNTER && row->form != ROW_SERIES)
        row = chrome_bind(w, e->track);
    if (e->n_args > 1)
        sv_report_add(w->report, SV_SKIPPED, "argument of a counter", e->n_args - 1u, SV_NO_POS,
                      NULL);
    const struct sv_track_info *info = &w->dict->tracks[e->track];
    bool is_series = row->form == ROW_SERIES;
    struct sv_text key = is_series ? sv_dict_text(w->dict, info->name)
                                   : (struct sv_text){"value", 5};
    if (is_series && joins_counter(w, e, info->parent)) {
        w->counter.series[w->counter.n++] = e->track;
        put_series(w, key, e);
        return;
    }
    chrome_line(w);
    sv_json_members(j, "\"ph\":\"C\"", 8);
    put_names(w, e->cat, row->label != 0 ? row->label : info->name);
    put_ids(w, row);
    if (row->needs_id)
        sv_json_put(j, "id", hex, info->uuid);
    chrome_time(w, e->ts_ns);
    sv_json_put(j, "args", begin, '{');
    put_series(w, key, e);
    w->counter = (struct chrome_open_counter){.ts_ns = e->ts_ns,
                                              .parent = is_series ? info->parent : 0,
                                              .cat = e->cat,
                                              .n = 1,
                                              .series = {e->track}};
    if (!is_series)
        close_counter(w);
}

/* ---- head and tail ---- */

/* Those that are not in the file yet. */
static void put_snapshots(struct chrome_writer *w)
{
    struct sv_json *j = &w->json;
    const struct sv_clocks *c = &w->dict->clocks;
    if (c->n <= w->n_head_snapshots)
        return;
    sv_json_put(j, SV_CHROME_SNAPSHOTS, begin, '[');
    for (size_t i = w->n_head_snapshots; i < c->n; i++) {
        const struct sv_snapshot *s = &c->snapshots[i];
        sv_json_line(j);
        sv_json_begin(j, '{');
        sv_json_put(j, SV_CHROME_READINGS, begin, '[');
        for (uint32_t k = 0; k < s->n; k++) {
            sv_json_begin(j, '[');
            sv_json_u64(j, s->readings[k].clock);
            sv_json_i64(j, s->readings[k].ns);
            sv_json_end(j);
        }
        sv_json_end(j);
        if (s->uncertainty_ns >= 0)
            sv_json_put(j, SV_CHROME_UNCERTAINTY, i64, s->uncertainty_ns);
        if (s->wall_state) {
            sv_json_put(j, SV_CHROME_WALL, begin, '[');
            sv_json_u64(j, s->wall_state);
            sv_json_i64(j, s->wall_error_ns);
            sv_json_end(j);
        }
        sv_json_end(j);
    }
    sv_json_end(j);
    w->n_head_snapshots = c->n;
}

/* Keys of the object form that are ours to write. */
static bool is_reserved(struct sv_text key)
{
    return sv_text_is(key, "traceEvents") || sv_text_is(key, "otherData") ||
           sv_text_is(key, SV_CHROME_BASE) || sv_text_is(key, SV_CHROME_STAVE);
}

/* Metadata as top-level keys ("chrome.KEY") or as members of an object that the caller opened. */
static void put_meta(struct chrome_writer *w, bool is_top)
{
    for (uint32_t i = 0; i < w->dict->n_meta; i++) {
        const struct sv_meta *m = &w->dict->meta[i];
        struct sv_text key = sv_dict_text(w->dict, m->key);
        bool is_chrome = sv_text_begins(key, SV_CHROME_META);
        if (is_chrome) {
            key.bytes += strlen(SV_CHROME_META);
            key.len -= (uint32_t)strlen(SV_CHROME_META);
        }
        if (is_chrome != is_top || (is_top && is_reserved(key)) ||
            (!is_top && sv_text_is(key, SV_CHROME_STAVE)))
            continue;
        if (is_top)
            sv_json_line(&w->json);
        sv_json_key(&w->json, key.bytes, key.len);
        sv_meta_json(&w->json, w->dict, m, &w->scratch);
    }
}

/* The members of the otherData that a Chrome file had. */
static void put_old_other_data(struct chrome_writer *w)
{
    const struct sv_meta *m = sv_dict_find_meta(w->dict, SV_CHROME_META "otherData");
    if (m == NULL || !m->is_json)
        return;
    struct sv_buf *b = &w->scratch;
    if (!sv_json_copy(b, sv_dict_text(w->dict, m->value)))
        return;
    const uint8_t *first = sv_json_solid(b->data, b->data + b->len), *last = b->data + b->len;
    while (last > first && sv_json_is_blank(last[-1]))
        last--;
    if (last - first < 2 || *first != '{' || sv_json_solid(first + 1, last) == last - 1)
        return;
    sv_json_members(&w->json, (const char *)first + 1, (size_t)(last - first) - 2);
}

/* The members of the object "stave" in the head. */
static void put_stave(struct chrome_writer *w)
{
    struct sv_json *j = &w->json;
    sv_json_put(j, SV_CHROME_VERSION, i64, RULES_VERSION);
    if (w->dict->clocks.trace_clock != SV_CLOCK_UNKNOWN)
        sv_json_put(j, SV_CHROME_CLOCK, u64, w->dict->clocks.trace_clock);
}

/* Metadata that is in the file already, so that the tail repeats only what changed. */
static void remember_meta(struct chrome_writer *w)
{
    w->n_head_meta = w->dict->n_meta;
    w->head_meta = sv_realloc(w->head_meta, ((size_t)w->n_head_meta + 1) * sizeof *w->head_meta);
    for (uint32_t i = 0; i < w->n_head_meta; i++)
        w->head_meta[i] = w->dict->meta[i].value;
}

/* A whole second, or the base that the file had before. */
static int64_t choose_base(const struct chrome_writer *w, int64_t first_ns)
{
    const struct sv_meta *m = sv_dict_find_meta(w->dict, SV_CHROME_META SV_CHROME_BASE);
    const int64_t far_ns = (int64_t)86400 * 100 * 1000000000;
    if (m != NULL) {
        int64_t base = strtoll(sv_dict_text(w->dict, m->value).bytes, NULL, 10);
        if (base > 0 && base > first_ns - far_ns && base < first_ns + far_ns)
            return base;
    }
    return first_ns - first_ns % 1000000000;
}

static bool has_late_meta(const struct chrome_writer *w)
{
    if (w->dict->n_meta > w->n_head_meta)
        return true;
    for (uint32_t i = 0; i < w->n_head_meta; i++)
        if (w->dict->meta[i].value != w->head_meta[i])
            return true;
    return false;
}

/* More members of it: clocks and metadata that are not in the file yet. */
static void put_late(struct chrome_writer *w)
{
    struct sv_json *j = &w->json;
    put_snapshots(w);
    if (!has_late_meta(w))
        return;
    sv_json_put(j, SV_CHROME_LATE_META, begin, '{');
    for (uint32_t i = 0; i < w->dict->n_meta; i++) {
        const struct sv_meta *m = &w->dict->meta[i];
        if (i < w->n_head_meta && m->value == w->head_meta[i])
            continue;
        struct sv_text key = sv_dict_text(w->dict, m->key);
        sv_json_key(j, key.bytes, key.len);
        sv_meta_json(&w->json, w->dict, m, &w->scratch);
    }
    sv_json_end(j);
}

static void put_base(struct chrome_writer *w)
{
    if (w->dict->clocks.trace_clock != SV_CLOCK_REALTIME)
        return;
    sv_json_line(&w->json);
    sv_json_put(&w->json, SV_CHROME_BASE, i64, w->base_ns);
}

static void write_array_head(struct chrome_writer *w)
{
    struct sv_json *j = &w->json;
    sv_json_begin(j, '[');
    chrome_begin_metadata(w, SV_CHROME_STAVE, 0, 0);
    put_stave(w);
    put_base(w);
    put_late(w); /* all of it: nothing was written yet */
    chrome_end_metadata(w);
}

static void write_object_head(struct chrome_writer *w)
{
    struct sv_json *j = &w->json;
    sv_json_begin(j, '{');
    if (sv_dict_find_meta(w->dict, SV_CHROME_META "displayTimeUnit") == NULL)
        sv_json_put(j, "displayTimeUnit", text, "ns", 2);
    put_base(w);
    put_meta(w, true);
    sv_json_line(j);
    sv_json_put(j, "otherData", begin, '{');
    sv_json_put(j, SV_CHROME_STAVE, begin, '{');
    put_stave(w);
    put_snapshots(w);
    sv_json_end(j);
    put_old_other_data(w);
    put_meta(w, false);
    sv_json_end(j);
    sv_json_line(j);
    sv_json_put(j, "traceEvents", begin, '[');
}

static void write_head(struct chrome_writer *w, int64_t first_ns)
{
    w->has_head = true;
    if (w->dict->clocks.trace_clock == SV_CLOCK_REALTIME)
        w->base_ns = choose_base(w, first_ns);
    if (w->is_array)
        write_array_head(w);
    else
        write_object_head(w);
    remember_meta(w);
}

static void write_tail(struct chrome_writer *w)
{
    struct sv_json *j = &w->json;
    chrome_async_until(w, INT64_MAX);
    chrome_describe_late(w);
    close_counter(w);
    bool has_late = w->dict->clocks.n > w->n_head_snapshots || has_late_meta(w);
    if (w->is_array && has_late) {
        chrome_begin_metadata(w, SV_CHROME_STAVE, 0, 0);
        put_late(w);
        chrome_end_metadata(w);
    }
    sv_json_line(j);
    sv_json_end(j);
    if (!w->is_array) {
        if (has_late) {
            sv_json_line(j);
            sv_json_put(j, SV_CHROME_STAVE, begin, '{');
            put_late(w);
            sv_json_end(j);
        }
        sv_json_end(j);
    }
    sv_buf_byte(&w->buf, '\n');
}

/* ---- the sink ---- */

static int chrome_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    struct chrome_writer *w = (struct chrome_writer *)s;
    if (!w->has_head && n > 0)
        write_head(w, events[0].ts_ns);
    for (const struct sv_event *e = events, *end = events + n; e < end; e++) {
        if (__builtin_expect(w->n_due > 0, 0))
            chrome_async_until(w, e->ts_ns);
        switch (e->kind) {
        case SV_BEGIN:
        case SV_END:
        case SV_SLICE: write_slice(w, e); break;
        case SV_INSTANT: write_instant(w, e); break;
        case SV_COUNTER: write_counter(w, e); break;
        case SV_FLOW: write_flow_point(w, e); break;
        default:
            assert(e->kind == SV_LOSS);
            write_loss(w, e);
            break;
        }
    }
    sv_output_pass_on(w->out, &w->buf);
    return sv_output_failure(w->out, err);
}

static int chrome_flush(struct sv_sink *s, struct sv_err *err)
{
    struct chrome_writer *w = (struct chrome_writer *)s;
    if (w->has_head)
        close_counter(w);
    sv_output_pass_on(w->out, &w->buf);
    return sv_output_flush(w->out, err);
}

static int chrome_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct chrome_writer *w = (struct chrome_writer *)s;
    if (!failed) {
        if (!w->has_head)
            write_head(w, 0);
        write_tail(w);
        sv_output_pass_on(w->out, &w->buf);
    }
    int rc = sv_output_end(w->out, failed, err);
    sv_buf_fini(&w->buf);
    sv_buf_fini(&w->scratch);
    sv_arena_fini(&w->arena);
    sv_map_fini(&w->pids);
    sv_map_fini(&w->tids);
    sv_map_fini(&w->labels);
    sv_map_fini(&w->flows);
    sv_map_fini(&w->async_tops);
    free(w->rows);
    free(w->has_child);
    free(w->open);
    free(w->due);
    free(w->head_meta);
    free(w);
    return rc;
}

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    const char *dialect = options != NULL ? options->dialect : NULL;
    if (dialect != NULL && strcmp(dialect, "array") != 0 && strcmp(dialect, "object") != 0)
        return sv_error(err, SV_EUSAGE,
                        "the Chrome writer has no dialect '%s'; it has object and array", dialect);
    struct chrome_writer *w = sv_alloc(sizeof *w);
    w->sink.write = chrome_write;
    w->sink.close = chrome_close;
    w->sink.flush = chrome_flush;
    w->sink.file = out;
    w->sink.best = SV_HAS_EDGES | SV_HAS_NESTED | SV_HAS_FLOW_POINTS; /* readers sort */
    w->sink.takes = w->sink.best | SV_IN_TRACK_ORDER;
    w->out = out;
    w->dict = dict;
    w->report = report;
    w->is_array = dialect != NULL && strcmp(dialect, "array") == 0;
    sv_buf_init(&w->buf, SIZE_MAX);
    sv_buf_init(&w->scratch, SIZE_MAX);
    sv_json_init(&w->json, &w->buf);
    sv_arena_init(&w->arena, 4096);
    if (options != NULL && options->continues) { /* the head is in the file */
        write_head(w, 0);
        sv_buf_clear(&w->buf);
        w->json.need_comma = w->json.need_line = true;
    }
    *sink = &w->sink;
    return SV_OK;
}

static const char *const suffixes[] = {".json", NULL};

const struct sv_writer sv_chrome_writer = {
    .name = "chrome",
    .suffixes = suffixes,
    .open = open_sink,
    .can_continue = true,
};
