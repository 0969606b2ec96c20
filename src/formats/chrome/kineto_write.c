/* Chrome JSON as PyTorch's profiler writes it, for PyTorch's own tools and HolisticTraceAnalysis
 * (`--dialect kineto`).
 *
 * Opened through the table of formats. What those tools insist on: whole slices (X) with a
 * category; work of a device has the device as pid and the stream as tid; `distributedInfo` on one
 * line before the events, with a blank after each colon (it is searched by a regular expression);
 * times in µs from baseTimeNanoseconds; arrows as pairs s and f of the category ac2g; steps called
 * ProfilerStep#N. What came from such a file goes back as it was; nothing here is needed to read
 * the result but the Chrome reader.
 *
 * Takes events in time order, because the first end of an arrow is its start. */
#include "core/base/json.h"
#include "core/base/map.h"
#include "core/chrome/args_json.h"
#include "core/chrome/keys.h"
#include "core/stream/gpu_words.h"
#include "core/stream/text_sink.h"
#include "formats/writers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE INT64_MIN /* of the whole trace: Kineto calls pid and tid by a word then */

struct row {
    int64_t pid, tid;
    bool is_placed, is_device;
};

struct kineto {
    struct sv_text_sink base;
    struct sv_buf scratch, devices;
    struct sv_json json;
    struct sv_gpu_words words;
    struct row *rows; /* by track */
    size_t n_rows, cap_rows;
    struct sv_map device_pids; /* pid → device track + 1 */
    struct sv_map flows;       /* number of a flow → small number */
    struct sv_map described;   /* pids and pairs of pid and tid that have a name */
    int64_t shift_ns, base_ns;
    bool has_head, has_base;
    sv_str step_keys[3];
};

/* ---- rows ---- */

/* The device's number, unless a device of another process has it. */
static int64_t device_pid(struct kineto *w, sv_track device)
{
    int64_t pid = sv_gpu_number_in(sv_dict_text(w->base.dict, w->base.dict->tracks[device].name));
    for (pid = pid < 0 ? 0 : pid;; pid += 1000) {
        bool is_new;
        uint64_t *owner = sv_map_add(&w->device_pids, (uint64_t)pid, &is_new);
        if (is_new)
            *owner = device;
        if (*owner == device)
            return pid;
    }
}

static struct row place_device(struct kineto *w, sv_track device, sv_track stream)
{
    const struct sv_track_info *s = &w->base.dict->tracks[stream];
    int64_t id = stream ? sv_gpu_number_in(sv_dict_text(w->base.dict, s->name)) : -1;
    if (stream && id < 0)
        id = (int64_t)(s->uuid & 0xfffff) + 1000;
    return (struct row){device ? device_pid(w, device) : 0, id, true, true};
}

static struct row place(struct kineto *w, sv_track t)
{
    const struct sv_dict *d = w->base.dict;
    sv_track device = sv_gpu_device_of(d, t), stream = sv_gpu_stream_of(d, t);
    sv_track thread = sv_dict_thread_of(d, t), process = sv_dict_process_of(d, t);
    if (device || stream)
        return place_device(w, device, stream);
    struct row row = {process ? d->tracks[process].pid : NOWHERE, 0, true, false};
    if (!process)
        row.tid = NOWHERE;
    else if (thread)
        row.tid = d->tracks[thread].tid;
    else if (t == process)
        row.tid = row.pid;
    else
        row.tid = (int64_t)(d->tracks[t].uuid & 0x3fffffff) | 0x40000000;
    return row;
}

static struct row *row_of(struct kineto *w, sv_track t)
{
    if (t >= w->n_rows) {
        w->rows = sv_grow(w->rows, &w->cap_rows, (size_t)t + 1, sizeof *w->rows);
        memset(w->rows + w->n_rows, 0, (w->cap_rows - w->n_rows) * sizeof *w->rows);
        w->n_rows = w->cap_rows;
    }
    if (!w->rows[t].is_placed)
        w->rows[t] = place(w, t);
    return &w->rows[t];
}

/* A number, or the text that a number below -1 represents (pid "Spans"). */
static void put_id(struct kineto *w, const char *quoted, size_t len, int64_t id, sv_str name)
{
    struct sv_text text = sv_dict_text(w->base.dict, name);
    sv_json_quoted_key(&w->json, quoted, len);
    if (id == NOWHERE)
        sv_json_text(&w->json, "Traces", 6);
    else if (id < -1 && text.len)
        sv_json_text(&w->json, text.bytes, text.len);
    else
        sv_json_i64(&w->json, id);
}

static void put_ids(struct kineto *w, sv_track t, const struct row *row)
{
    const struct sv_dict *d = w->base.dict;
    put_id(w, "\"pid\":", 6, row->pid, d->tracks[sv_dict_process_of(d, t)].name);
    put_id(w, "\"tid\":", 6, row->tid, d->tracks[sv_dict_thread_of(d, t)].name);
}

/* ---- pieces ---- */

static void put_str(struct kineto *w, sv_str s)
{
    struct sv_text text = sv_dict_text(w->base.dict, s);
    sv_json_text(&w->json, text.bytes, text.len);
}

static void put_time(struct kineto *w, int64_t ts_ns)
{
    int64_t shown;
    if (__builtin_add_overflow(ts_ns, w->shift_ns, &shown))
        shown = ts_ns;
    sv_json_put(&w->json, "ts", us3, shown);
}

static void begin(struct kineto *w, const char *phase)
{
    sv_json_line(&w->json);
    sv_json_begin(&w->json, '{');
    sv_json_put(&w->json, "ph", text, phase, 1);
}

/* Opens `args` and leaves it open; flows have their own events. */
static void put_args(struct kineto *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    sv_json_put(j, "args", begin, '{');
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a)) {
        if (sv_arg_is_flow(a))
            continue;
        if (a->key) {
            struct sv_text key = sv_dict_text(w->base.dict, a->key);
            sv_json_key(j, key.bytes, key.len);
        } else if (a->type == SV_ARG_CORRELATION) {
            sv_json_lit(j, SV_CHROME_CORRELATION);
        } else {
            const char *type = sv_arg_type_name(a->type);
            sv_json_key(j, type, strlen(type));
        }
        if (!sv_arg_json(j, w->base.dict, a, end))
            sv_report_add(w->base.report, SV_SKIPPED,
                          "argument nested too deeply for the Chrome format", 1, SV_NO_POS, NULL);
    }
}

static void end(struct kineto *w) /* of args and of the event */
{
    sv_json_end(&w->json);
    sv_json_end(&w->json);
}

/* ---- arrows ---- */

static void put_arrow(struct kineto *w, char phase, uint64_t flow, sv_track t,
                      const struct row *row, int64_t ts_ns, sv_str cat, sv_str name)
{
    struct sv_json *j = &w->json;
    bool is_new;
    uint64_t *number = sv_map_add(&w->flows, flow, &is_new);
    if (is_new)
        *number = w->flows.n;
    if (phase == '?')
        phase = is_new ? 's' : 'f';
    begin(w, &phase);
    sv_json_put(j, "id", u64, *number);
    put_ids(w, t, row);
    put_time(w, ts_ns);
    sv_json_lit(j, "cat");
    if (cat)
        put_str(w, cat);
    else
        sv_json_text(j, "ac2g", 4);
    sv_json_lit(j, "name");
    if (name)
        put_str(w, name);
    else
        sv_json_text(j, "ac2g", 4);
    if (phase == 'f')
        sv_json_put(j, "bp", text, "e", 1);
    sv_json_end(j);
}

static void put_arrows(struct kineto *w, const struct sv_event *e, const struct row *row)
{
    for (const struct sv_arg *a = e->args, *last = a + e->n_args; a < last; a = sv_arg_next(a))
        if (sv_arg_is_flow(a))
            put_arrow(w,
                      a->type == SV_ARG_FLOW_BEGIN ? 's'
                      : a->type == SV_ARG_FLOW_END ? 'f'
                                                   : '?',
                      a->u, e->track, row, e->ts_ns, 0, 0);
}

static void write_flow(struct kineto *w, const struct sv_event *e)
{
    if (e->n_args == 0 || !sv_arg_is_flow(&e->args[0]))
        return;
    unsigned type = e->args[0].type;
    put_arrow(w,
              type == SV_ARG_FLOW_BEGIN ? 's'
              : type == SV_ARG_FLOW_END ? 'f'
                                        : 't',
              e->args[0].u, e->track, row_of(w, e->track), e->ts_ns, e->cat, e->name);
}

/* ---- slices ---- */

/* "step 12", "Iteration#3", or such a name with a number beside it: what PyTorch calls
 * ProfilerStep#N. -1: it is none. */
static int64_t step_number(const struct kineto *w, const struct sv_event *e)
{
    static const char *const words[] = {"train_step", "training step", "step", "iteration", "iter"};
    struct sv_text name = sv_dict_text(w->base.dict, e->name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]), at = n;
        if (name.len < n || strncasecmp(name.bytes, words[i], n) != 0)
            continue;
        while (at < name.len && strchr(" _#:", name.bytes[at]))
            at++;
        size_t digits = at;
        while (digits < name.len && isdigit((unsigned char)name.bytes[digits]))
            digits++;
        if (digits != name.len || digits - at > 15)
            return -1;
        if (digits > at)
            return strtoll(name.bytes + at, NULL, 10);
        for (const struct sv_arg *a = e->args, *last = a + e->n_args; a < last; a = sv_arg_next(a))
            for (size_t k = 0; a->key && a->type == SV_ARG_INT && k < 3; k++)
                if (a->key == w->step_keys[k])
                    return a->i;
        return -1;
    }
    return -1;
}

static void put_name(struct kineto *w, const struct sv_event *e, const struct row *row)
{
    struct sv_json *j = &w->json;
    enum sv_gpu_class class_ = sv_gpu_class_of(&w->words, w->base.dict, e->cat);
    int64_t step = row->is_device || class_ != SV_GPU_NONE ? -1 : step_number(w, e);
    struct sv_text cat = sv_dict_text(w->base.dict, e->cat);
    const char *usual = row->is_device ? "gpu_user_annotation" : "user_annotation";
    sv_json_lit(j, "cat");
    if (step >= 0 || cat.len == 0)
        sv_json_cstr(j, usual);
    else if (class_ == SV_GPU_CALL && strncmp(cat.bytes, "cuda_", 5) != 0 &&
             strcmp(cat.bytes, "Runtime") != 0) /* its readers know no other */
        sv_json_text(j, "cuda_runtime", 12);
    else
        sv_json_text(j, cat.bytes, cat.len);
    sv_json_lit(j, "name");
    if (step >= 0) {
        char name[40];
        int n = snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)step);
        sv_json_text(j, name, (size_t)n);
    } else {
        put_str(w, e->name);
    }
}

/* Work of a device that a simulator put on a row of its own says itself where it was. */
static struct row row_of_event(struct kineto *w, const struct sv_event *e)
{
    struct row row = *row_of(w, e->track);
    if (!row.is_device)
        return row;
    struct sv_gpu_facts f = sv_gpu_facts(&w->words, w->base.dict, e);
    if (f.stream >= 0 && sv_gpu_is_on_stream(f.class_))
        row.tid = f.stream;
    return row;
}

static void write_slice(struct kineto *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    struct row row = row_of_event(w, e);
    if (e->dur_ns < 0)
        sv_report_add(w->base.report, SV_SKIPPED, "slice that never ended, written with duration 0",
                      1, SV_NO_POS, NULL);
    begin(w, "X");
    put_name(w, e, &row);
    put_ids(w, e->track, &row);
    put_time(w, e->ts_ns);
    sv_json_put(j, "dur", us3, e->dur_ns > 0 ? e->dur_ns : 0);
    if (e->n_args) {
        put_args(w, e);
        sv_json_end(j);
    }
    sv_json_end(j);
    put_arrows(w, e, &row);
}

/* ---- instants, counters ---- */

/* What is known of a device goes to the end of the file. */
static void keep_device(struct kineto *w, const struct sv_event *e)
{
    struct sv_json json;
    if (w->devices.len)
        sv_buf_byte(&w->devices, ',');
    sv_json_init(&json, &w->devices);
    sv_args_json(&json, w->base.dict, e->args, e->n_args);
}

static void write_instant(struct kineto *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    struct row row = row_of_event(w, e);
    struct sv_text cat = sv_dict_text(w->base.dict, e->cat);
    bool is_memory = sv_gpu_class_of(&w->words, w->base.dict, e->cat) == SV_GPU_ALLOC;
    if (strcmp(cat.bytes, "gpu_device") == 0) {
        keep_device(w, e);
        return;
    }
    begin(w, "i");
    if (is_memory || e->cat) {
        sv_json_lit(j, "cat");
        if (is_memory)
            sv_json_text(j, "cpu_instant_event", 17);
        else
            put_str(w, e->cat);
    }
    sv_json_lit(j, "name");
    if (is_memory)
        sv_json_text(j, "[memory]", 8);
    else
        put_str(w, e->name);
    put_ids(w, e->track, &row);
    put_time(w, e->ts_ns);
    sv_json_put(j, "s", text,
                e->flags & SV_SCOPE_GLOBAL    ? "g"
                : e->flags & SV_SCOPE_PROCESS ? "p"
                                              : "t",
                1);
    put_args(w, e);
    if (is_memory) {
        sv_json_lit(j, "Device Type"); /* as PyTorch numbers them: CUDA */
        sv_json_i64(j, 1);
        sv_json_lit(j, "Call");
        put_str(w, e->name);
    }
    end(w);
    put_arrows(w, e, &row);
}

static void write_counter(struct kineto *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    struct sv_text name = sv_dict_text(w->base.dict, w->base.dict->tracks[e->track].name);
    if (e->n_args == 0)
        return;
    begin(w, "C");
    sv_json_put(j, "name", text, name.bytes, name.len);
    put_ids(w, e->track, row_of(w, e->track));
    put_time(w, e->ts_ns);
    sv_json_put(j, "args", begin, '{');
    sv_json_key(j, name.bytes, name.len);
    sv_arg_json(j, w->base.dict, &e->args[0], e->args + 1);
    end(w);
}

static void write_loss(struct kineto *w, const struct sv_event *e)
{
    struct sv_json *j = &w->json;
    begin(w, "i");
    sv_json_put(j, "cat", cstr, SV_CHROME_LOSS);
    sv_json_lit(j, "name");
    put_str(w, e->name);
    put_ids(w, e->track, row_of(w, e->track));
    put_time(w, e->ts_ns);
    sv_json_put(j, "s", text, "t", 1);
    sv_json_put(j, "args", begin, '{');
    sv_json_put(j, SV_CHROME_LOSS_COUNT, i64, e->n_args ? e->args[0].i : 0);
    end(w);
}

/* ---- head ---- */

/* The JSON of a value, with a blank after each colon, on one line. False: it is not JSON. */
static bool spaced(struct sv_buf *to, struct sv_buf *scratch, struct sv_text json)
{
    bool in_text = false;
    if (!sv_json_copy(scratch, json))
        return false;
    for (size_t i = 0; i < scratch->len; i++) {
        uint8_t c = scratch->data[i];
        if (in_text && c == '\\' && i + 1 < scratch->len)
            sv_buf_byte(to, scratch->data[i++]);
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text && isspace(c))
            continue;
        sv_buf_byte(to, scratch->data[i]);
        if (!in_text && c == ':')
            sv_buf_byte(to, ' ');
    }
    return true;
}

static int64_t meta_number(const struct kineto *w, const char *key, int64_t otherwise)
{
    const struct sv_meta *m = sv_dict_find_meta(w->base.dict, key);
    return m ? strtoll(sv_dict_text(w->base.dict, m->value).bytes, NULL, 10) : otherwise;
}

static void put_distributed(struct kineto *w)
{
    const struct sv_meta *m = sv_dict_find_meta(w->base.dict, SV_CHROME_META "distributedInfo");
    struct sv_buf json;
    sv_buf_init(&json, SIZE_MAX);
    if (!m || !spaced(&json, &w->scratch, sv_dict_text(w->base.dict, m->value))) {
        sv_buf_clear(&json);
        sv_buf_printf(&json, "{\"rank\": %lld, \"world_size\": %lld}",
                      (long long)meta_number(w, "rank", 0),
                      (long long)meta_number(w, "world_size", 1));
    }
    sv_json_line(&w->json);
    sv_json_put(&w->json, "distributedInfo", raw, (const char *)json.data, json.len);
    sv_buf_fini(&json);
}

static void put_meta(struct kineto *w, const struct sv_meta *m, struct sv_text key)
{
    sv_json_line(&w->json);
    sv_json_key(&w->json, key.bytes, key.len);
    sv_meta_json(&w->json, w->base.dict, m, &w->scratch);
}

static void put_top_keys(struct kineto *w)
{
    static const char *const own[] = {"traceEvents", "distributedInfo", SV_CHROME_BASE,
                                      SV_CHROME_STAVE};
    size_t n = strlen(SV_CHROME_META);
    for (uint32_t i = 0; i < w->base.dict->n_meta; i++) {
        const struct sv_meta *m = &w->base.dict->meta[i];
        struct sv_text key = sv_dict_text(w->base.dict, m->key);
        if (key.len <= n || memcmp(key.bytes, SV_CHROME_META, n) != 0)
            continue;
        key = (struct sv_text){key.bytes + n, key.len - (uint32_t)n};
        bool is_own = false;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            is_own |= sv_text_is(key, own[k]);
        if (!is_own)
            put_meta(w, m, key);
    }
}

static const struct sv_reading *reading(const struct sv_snapshot *s, uint32_t clock)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->readings[i].clock == clock)
            return &s->readings[i];
    return NULL;
}

/* The wall clock at time 0 of the trace's clock, if some snapshot has both. */
static bool wall_minus_trace(const struct sv_clocks *c, int64_t *out)
{
    *out = 0;
    if (c->trace_clock == SV_CLOCK_REALTIME)
        return true;
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_reading *ours = reading(&c->snapshots[i], c->trace_clock),
                                *wall = reading(&c->snapshots[i], SV_CLOCK_REALTIME);
        if (ours && wall && !__builtin_sub_overflow(wall->ns, ours->ns, out))
            return true;
    }
    return false;
}

/* Times count from a base on the wall clock: the one that the file had, else a whole second. */
static void choose_base(struct kineto *w, int64_t first_ns)
{
    const int64_t far_ns = (int64_t)86400 * 100 * 1000000000;
    int64_t base = meta_number(w, SV_CHROME_META SV_CHROME_BASE, 0), wall;
    w->has_base = wall_minus_trace(&w->base.dict->clocks, &wall);
    if (!w->has_base) { /* the file gave it too late, or never */
        w->has_base = base != 0;
        w->base_ns = base;
        return;
    }
    if (__builtin_add_overflow(first_ns, wall, &first_ns))
        first_ns = 0;
    if (base <= 0 || base < first_ns - far_ns || base > first_ns)
        base = first_ns - first_ns % 1000000000;
    if (w->base.dict->clocks.trace_clock == SV_CLOCK_UNKNOWN)
        base = wall; /* times of the trace count from its base already */
    w->base_ns = base;
    w->shift_ns = wall - base;
}

static void write_head(struct kineto *w, int64_t first_ns)
{
    struct sv_json *j = &w->json;
    w->has_head = true;
    choose_base(w, first_ns);
    sv_json_begin(j, '{');
    if (!sv_dict_find_meta(w->base.dict, SV_CHROME_META "schemaVersion")) {
        sv_json_line(j);
        sv_json_put(j, "schemaVersion", i64, 1);
    }
    put_distributed(w);
    put_top_keys(w);
    if (!sv_dict_find_meta(w->base.dict, SV_CHROME_META "displayTimeUnit")) {
        sv_json_line(j);
        sv_json_put(j, "displayTimeUnit", text, "ms", 2);
    }
    if (w->has_base) {
        sv_json_line(j);
        sv_json_put(j, SV_CHROME_BASE, i64, w->base_ns);
    }
    sv_json_line(j);
    sv_json_put(j, "traceEvents", begin, '[');
}

/* ---- names of rows ---- */

static void begin_meta(struct kineto *w, sv_track t, const struct row *row, const char *what,
                       bool is_thread)
{
    struct sv_json *j = &w->json;
    begin(w, "M");
    sv_json_put(j, "name", cstr, what);
    const struct sv_dict *d = w->base.dict;
    put_id(w, "\"pid\":", 6, row->pid, d->tracks[sv_dict_process_of(d, t)].name);
    if (is_thread)
        put_id(w, "\"tid\":", 6, row->tid, d->tracks[sv_dict_thread_of(d, t)].name);
    else {
        sv_json_put(j, "tid", i64, 0);
    }
    sv_json_put(j, "args", begin, '{');
}

static void put_order(struct kineto *w, sv_track t, const struct row *row, const char *what,
                      bool is_thread, int64_t order)
{
    begin_meta(w, t, row, what, is_thread);
    sv_json_put(&w->json, "sort_index", i64, order);
    end(w);
}

static void put_text_meta(struct kineto *w, sv_track t, const struct row *row, const char *what,
                          const char *key, struct sv_text text, bool is_thread)
{
    if (text.len == 0)
        return;
    begin_meta(w, t, row, what, is_thread);
    sv_json_key(&w->json, key, strlen(key));
    sv_json_text(&w->json, text.bytes, text.len);
    end(w);
}

static void describe_process(struct kineto *w, sv_track t, const struct row *row)
{
    const struct sv_dict *d = w->base.dict;
    const struct sv_track_info *p = &d->tracks[sv_dict_process_of(d, t)];
    struct sv_text label = sv_dict_text(d, p->desc);
    char text[32];
    if (row->is_device) {
        int n = snprintf(text, sizeof text, "GPU %lld", (long long)row->pid);
        label = (struct sv_text){text, (uint32_t)n};
    } else if (label.len == 0) {
        label = (struct sv_text){"CPU", 3};
    }
    put_text_meta(w, t, row, "process_name", "name", sv_dict_text(d, p->name), false);
    put_text_meta(w, t, row, "process_labels", "labels", label, false);
    put_order(w, t, row, "process_sort_index", false,
              row->is_device ? 5000000 + row->pid
              : p->has_order ? p->order
                             : row->pid);
}

static void describe_thread(struct kineto *w, sv_track t, const struct row *row)
{
    const struct sv_dict *d = w->base.dict;
    sv_track thread = row->is_device ? sv_gpu_stream_of(d, t) : sv_dict_thread_of(d, t);
    const struct sv_track_info *info = &d->tracks[thread ? thread : t];
    struct sv_text name = sv_dict_text(d, info->name);
    char text[48];
    if (row->is_device && row->tid >= 0) { /* tools look for the word */
        int n = snprintf(text, sizeof text, "stream %lld ", (long long)row->tid);
        name = (struct sv_text){text, (uint32_t)n};
    }
    put_text_meta(w, t, row, "thread_name", "name", name, true);
    put_order(w, t, row, "thread_sort_index", true, info->has_order ? info->order : row->tid);
}

static bool is_first(struct kineto *w, uint64_t key)
{
    bool is_new;
    sv_map_add(&w->described, key, &is_new);
    return is_new;
}

static void describe_rows(struct kineto *w)
{
    for (sv_track t = 1; t < w->n_rows && t < w->base.dict->n_tracks; t++) {
        struct row row = w->rows[t];
        if (!row.is_placed || row.pid == NOWHERE ||
            w->base.dict->tracks[t].kind == SV_TRACK_COUNTER)
            continue;
        if (is_first(w, sv_mix64((uint64_t)row.pid)))
            describe_process(w, t, &row);
        if (is_first(w, sv_mix64((uint64_t)row.pid) ^ sv_mix64((uint64_t)row.tid + 77)))
            describe_thread(w, t, &row);
    }
}

static void kineto_end(struct sv_text_sink *base)
{
    struct kineto *w = (struct kineto *)base;
    struct sv_json *j = &w->json;
    if (!w->has_head)
        write_head(w, 0);
    describe_rows(w);
    sv_json_line(j);
    sv_json_end(j);
    if (w->devices.len && !sv_dict_find_meta(w->base.dict, SV_CHROME_META "deviceProperties")) {
        sv_json_line(j);
        sv_json_put(j, "deviceProperties", begin, '[');
        sv_json_members(j, (const char *)w->devices.data, w->devices.len);
        sv_json_end(j);
    }
    sv_json_end(j);
    sv_buf_byte(&w->base.buf, '\n');
}

/* ---- the sink ---- */

static void kineto_event(struct sv_text_sink *base, const struct sv_event *e)
{
    struct kineto *w = (struct kineto *)base;
    if (!w->has_head)
        write_head(w, e->ts_ns);
    switch (e->kind) {
    case SV_SLICE: write_slice(w, e); break;
    case SV_INSTANT: write_instant(w, e); break;
    case SV_COUNTER: write_counter(w, e); break;
    case SV_FLOW: write_flow(w, e); break;
    case SV_LOSS: write_loss(w, e); break;
    default: break;
    }
}

static void kineto_fini(struct sv_text_sink *base)
{
    struct kineto *w = (struct kineto *)base;
    sv_buf_fini(&w->scratch);
    sv_buf_fini(&w->devices);
    sv_gpu_words_fini(&w->words);
    sv_map_fini(&w->device_pids);
    sv_map_fini(&w->flows);
    sv_map_fini(&w->described);
    free(w->rows);
}

static const struct sv_text_kind kind = {
    .size = sizeof(struct kineto),
    .limit = SIZE_MAX,
    .takes = SV_HAS_SLICES | SV_HAS_FLOW_POINTS,
    .event = kineto_event,
    .end = kineto_end,
    .fini = kineto_fini,
};

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)options;
    (void)err;
    struct kineto *w = sv_text_sink_open(&kind, out, dict, report, sink);
    sv_buf_init(&w->scratch, SIZE_MAX);
    sv_buf_init(&w->devices, SIZE_MAX);
    sv_json_init(&w->json, &w->base.buf);
    sv_gpu_words_init(&w->words, dict);
    w->step_keys[0] = sv_dict_cstr(dict, "step");
    w->step_keys[1] = sv_dict_cstr(dict, "iteration");
    w->step_keys[2] = sv_dict_cstr(dict, "number");
    return SV_OK;
}

const struct sv_writer sv_kineto_writer = {
    .name = "kineto",
    .open = open_sink,
};
