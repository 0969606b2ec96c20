/* Chrome JSON as TraceSmith writes it (`--dialect tracesmith`): device as pid, stream as tid, the
 * kind of work as an argument `track_name`.
 *
 * Opened through the table of formats, and by libstave's files (stave_file_open_tracesmith). Byte
 * for byte TraceSmith's file where that is a valid one; where it is not, right: names are escaped,
 * times keep their nanoseconds (a fraction of a µs), everything with a duration is a slice, a
 * completion has a duration of 0, every stream of every device has its name, arrows pass through
 * all events of a correlation number, and without tracks and flows (`tracesmith-basic`) `args` is
 * still JSON. It is indented, which base/json does not do: here only texts are its.
 *
 * Only work of devices and counters have a place in such a file; the rest is counted. Rows are
 * known at the end, so events wait in memory. */
#include "core/base/json.h"
#include "core/base/map.h"
#include "core/stream/gpu_words.h"
#include "core/stream/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_BYTES ((size_t)8 << 30)

/* TraceSmith's EventType. */
enum type {
    KERNEL_LAUNCH = 1,
    KERNEL_COMPLETE,
    MEMCPY_H2D,
    MEMCPY_D2H,
    MEMCPY_D2D,
    MEMSET,
    STREAM_SYNC,
    DEVICE_SYNC,
    EVENT_RECORD,
    EVENT_SYNC,
    STREAM_CREATE,
    STREAM_DESTROY,
    CONTEXT_CREATE,
    CONTEXT_DESTROY,
    MEM_ALLOC,
    MEM_FREE,
    MARKER,
    RANGE_START,
    RANGE_END,
    NCCL_START,
    NCCL_COMPLETE,
    TYPES,
    CUSTOM = 255
};

struct look {
    const char *cat, *track;
};

static struct look look_of(int64_t type)
{
    static const struct look looks[TYPES] = {
        [KERNEL_LAUNCH] = {"kernel", "GPU Compute"},
        [KERNEL_COMPLETE] = {"kernel", "GPU Compute"},
        [MEMCPY_H2D] = {"memory", "GPU Memory Copy (H->D)"},
        [MEMCPY_D2H] = {"memory", "GPU Memory Copy (D->H)"},
        [MEMCPY_D2D] = {"memory", "GPU Memory Copy (D->D)"},
        [MEMSET] = {"memory", "GPU Memory Ops"},
        [MEM_ALLOC] = {"memory", "GPU Memory Ops"},
        [MEM_FREE] = {"memory", "GPU Memory Ops"},
        [STREAM_SYNC] = {"stream", "GPU Synchronization"},
        [DEVICE_SYNC] = {"sync", "GPU Synchronization"},
        [EVENT_SYNC] = {"sync", "GPU Synchronization"},
        [EVENT_RECORD] = {"sync", "GPU Stream"},
        [STREAM_CREATE] = {"stream", "GPU Stream"},
        [STREAM_DESTROY] = {"stream", "GPU Stream"},
    };
    return type > 0 && type < TYPES && looks[type].cat ? looks[type]
                                                       : (struct look){"other", "GPU Other"};
}

/* ---- arguments: ours (Kineto's) and TraceSmith's words for the same ---- */

enum key {
    KEY_THREAD,
    KEY_FLOW_ID,
    KEY_FLOW_TYPE,
    KEY_FLOW_START,
    KEY_BYTES,
    KEY_FROM,
    KEY_TO,
    KEY_GRID,
    KEY_BLOCK,
    KEY_SHARED,
    KEY_REGISTERS,
    KEY_TYPE,
    KEY_SYNC,
    KEY_COLLECTIVE,
    KEY_DUR,
    KEY_MEMORY,
    KEY_CONTEXT,
    KEY_KNOWN, /* said elsewhere in the event */
    KEYS
};

static const struct {
    const char *word;
    enum key key;
} words[] = {
    {"thread", KEY_THREAD},
    {"thread_id", KEY_THREAD},
    {"flow_id", KEY_FLOW_ID},
    {"flow_type", KEY_FLOW_TYPE},
    {"flow_start", KEY_FLOW_START},
    {"bytes", KEY_BYTES},
    {"Bytes", KEY_BYTES},
    {"size_bytes", KEY_BYTES},
    {"from address", KEY_FROM},
    {"src_address", KEY_FROM},
    {"to address", KEY_TO},
    {"dst_address", KEY_TO},
    {"Addr", KEY_TO},
    {"grid", KEY_GRID},
    {"grid_dim", KEY_GRID},
    {"block", KEY_BLOCK},
    {"block_dim", KEY_BLOCK},
    {"shared memory", KEY_SHARED},
    {"shared_memory_bytes", KEY_SHARED},
    {"registers per thread", KEY_REGISTERS},
    {"registers_per_thread", KEY_REGISTERS},
    {"event_type", KEY_TYPE},
    {"cuda_sync_kind", KEY_SYNC},
    {"Collective name", KEY_COLLECTIVE},
    {"dur_ns", KEY_DUR},
    {"copyKind", KEY_KNOWN},
    {"memory bandwidth (GB/s)", KEY_KNOWN},
    {"Total Allocated", KEY_KNOWN},
    {"memory", KEY_MEMORY},
    {"context", KEY_CONTEXT},
    {"correlation", KEY_KNOWN},
    {"correlation_id", KEY_KNOWN},
    {"device", KEY_KNOWN},
    {"device_id", KEY_KNOWN},
    {"Device Id", KEY_KNOWN},
    {"stream", KEY_KNOWN},
    {"stream_id", KEY_KNOWN},
    {"track_name", KEY_KNOWN},
};
enum { WORDS = sizeof words / sizeof *words };

struct point {
    uint64_t correlation;
    int64_t ts_ns, device, stream;
    size_t number;
};

struct row {
    int64_t device, stream;
};

struct counter {
    sv_track track;
    uint32_t tid; /* in the order of names */
};

struct value {
    int64_t ts_ns;
    double value;
    uint32_t counter;
};

struct tracesmith {
    struct sv_sink sink;
    struct sv_output *out;
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_gpu_words gpu;
    bool has_tracks; /* track names */
    bool has_flows;  /* correlation numbers, arrows */
    bool adds_metadata;
    sv_str keys[WORDS];
    struct sv_buf body;
    struct point *points;
    size_t n_points, cap_points;
    struct row *rows;
    size_t n_rows, cap_rows;
    struct sv_map row_map;
    struct sv_map counter_map; /* track → number in counters */
    struct counter *counters;
    size_t n_counters, cap_counters;
    struct value *values;
    size_t n_values, cap_values;
};

/* What the arguments of an event say, by meaning; NULL where they do not. */
struct said {
    const struct sv_arg *by[KEYS];
    size_t n_other;
};

static int key_of(const struct tracesmith *w, const struct sv_arg *a)
{
    for (size_t i = 0; a->key && i < WORDS; i++)
        if (w->keys[i] == a->key)
            return (int)words[i].key;
    return -1;
}

static struct said read_args(const struct tracesmith *w, const struct sv_event *e)
{
    struct said s = {0};
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a)) {
        int key = key_of(w, a);
        if (key >= 0)
            s.by[key] = a;
        else if (a->key)
            s.n_other++;
    }
    return s;
}

static int64_t number(const struct sv_arg *a, int64_t otherwise)
{
    if (!a)
        return otherwise;
    if (a->type == SV_ARG_DOUBLE)
        return a->d > -9e18 && a->d < 9e18 ? (int64_t)a->d : otherwise;
    if (a->type == SV_ARG_TEXT) {
        char text[32] = "";
        memcpy(text, a->text, a->size < sizeof text ? a->size : sizeof text - 1);
        return (int64_t)strtoull(text, NULL, 0);
    }
    return a->type == SV_ARG_INT || a->type == SV_ARG_UINT || a->type == SV_ARG_POINTER ? a->i
                                                                                        : otherwise;
}

/* ---- types ---- */

static bool says(const struct sv_arg *a, const char *word)
{
    return a && a->type == SV_ARG_TEXT && a->size >= strlen(word) &&
           strncmp(a->text, word, strlen(word)) == 0;
}

static int64_t point_type(const struct tracesmith *w, const struct sv_event *e)
{
    const char *cat = sv_dict_text(w->dict, e->cat).bytes,
               *name = sv_dict_text(w->dict, e->name).bytes;
    bool is_end = strstr(name, "estroy");
    if (strcmp(cat, "gpu_event") == 0)
        return EVENT_RECORD;
    if (strcmp(cat, "gpu_stream") == 0)
        return is_end ? STREAM_DESTROY : STREAM_CREATE;
    if (strcmp(cat, "gpu_context") == 0)
        return is_end ? CONTEXT_DESTROY : CONTEXT_CREATE;
    return strcmp(cat, "gpu") == 0 ? CUSTOM : -1;
}

static int64_t copy_type(enum sv_gpu_direction direction)
{
    return direction == SV_GPU_DIR_H2D   ? MEMCPY_H2D
           : direction == SV_GPU_DIR_D2H ? MEMCPY_D2H
                                         : MEMCPY_D2D;
}

/* -1: the file cannot represent such an event. */
static int64_t type_of(const struct tracesmith *w, const struct sv_event *e, const struct said *s,
                       const struct sv_gpu_facts *f)
{
    bool is_instant = e->kind == SV_INSTANT;
    if (s->by[KEY_TYPE])
        return number(s->by[KEY_TYPE], -1);
    switch (f->class_) {
    case SV_GPU_KERNEL:
        return is_instant ? KERNEL_COMPLETE : s->by[KEY_COLLECTIVE] ? NCCL_START : KERNEL_LAUNCH;
    case SV_GPU_COPY: return copy_type(f->direction);
    case SV_GPU_SET: return MEMSET;
    case SV_GPU_WAIT:
        return says(s->by[KEY_SYNC], "Stream Sync")                                  ? STREAM_SYNC
               : says(s->by[KEY_SYNC], "Context") || says(s->by[KEY_SYNC], "Device") ? DEVICE_SYNC
                                                                                     : EVENT_SYNC;
    case SV_GPU_RANGE: return is_instant ? MARKER : RANGE_START;
    case SV_GPU_ALLOC: return number(s->by[KEY_BYTES], 0) < 0 ? MEM_FREE : MEM_ALLOC;
    case SV_GPU_POINT: return point_type(w, e);
    default: return -1;
    }
}

/* ---- pieces ---- */

static void put_time(struct sv_buf *b, const char *key, int64_t ns)
{
    sv_buf_printf(b, "      \"%s\": ", key);
    if (ns % 1000 == 0)
        sv_buf_i64(b, ns / 1000);
    else
        sv_buf_us3(b, ns);
}

static void begin(struct sv_buf *b)
{
    sv_buf_str(b, b->len ? ",\n    {\n" : "    {\n");
}

static void put_name(struct sv_buf *b, const char *text, size_t len)
{
    sv_buf_str(b, "      \"name\": ");
    sv_json_escape(b, text, len);
}

/* Arguments, one a line, with a comma before all but the first. */
struct args {
    struct sv_buf *b;
    bool has_one;
};

static void next(struct args *a, const char *key)
{
    sv_buf_str(a->b, a->has_one ? ",\n        " : "\n        ");
    sv_json_escape(a->b, key, strlen(key));
    sv_buf_str(a->b, ": ");
    a->has_one = true;
}

static void put_number(struct args *a, const char *key, int64_t v)
{
    next(a, key);
    sv_buf_i64(a->b, v);
}

static void put_text(struct args *a, const char *key, const char *text, size_t len)
{
    next(a, key);
    sv_json_escape(a->b, text, len);
}

static void put_address(struct args *a, const char *key, const struct sv_arg *v)
{
    next(a, key);
    sv_buf_str(a->b, "\"0x");
    sv_buf_hex(a->b, (uint64_t)number(v, 0));
    sv_buf_str(a->b, "\"");
}

static void put_dimensions(struct args *a, const char *key, const struct sv_arg *v)
{
    next(a, key);
    sv_buf_str(a->b, "[");
    for (uint32_t i = 0; i < 3; i++) {
        bool is_there = v && v->type == SV_ARG_ARRAY && i < v->size;
        sv_buf_str(a->b, i ? ", " : "");
        sv_buf_i64(a->b, is_there ? number(v + 1 + i, 0) : 0);
    }
    sv_buf_str(a->b, "]");
}

/* TraceSmith's metadata is text. */
static void put_other(struct tracesmith *w, struct args *to, const struct sv_arg *a)
{
    struct sv_text key = sv_dict_text(w->dict, a->key);
    char number_text[40];
    if (a->type == SV_ARG_TEXT) {
        put_text(to, key.bytes, a->text, a->size);
        return;
    }
    struct sv_buf value = {
        .data = (uint8_t *)number_text, .cap = sizeof number_text, .limit = sizeof number_text};
    switch (a->type) {
    case SV_ARG_INT: sv_buf_i64(&value, a->i); break;
    case SV_ARG_UINT: sv_buf_u64(&value, a->u); break;
    case SV_ARG_DOUBLE: sv_buf_double(&value, a->d); break;
    case SV_ARG_BOOL: sv_buf_str(&value, a->i ? "true" : "false"); break;
    case SV_ARG_POINTER:
        sv_buf_str(&value, "0x");
        sv_buf_hex(&value, a->u);
        break;
    default: sv_report_add(w->report, SV_SKIPPED, "nested argument", 1, SV_NO_POS, NULL); return;
    }
    put_text(to, key.bytes, number_text, value.len);
}

static void put_others(struct tracesmith *w, struct args *to, const struct sv_event *e)
{
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a))
        if (a->key && key_of(w, a) < 0)
            put_other(w, to, a);
}

static void put_flow_info(struct args *to, const struct said *s)
{
    if (!s->by[KEY_FLOW_ID])
        return;
    put_number(to, "flow_id", number(s->by[KEY_FLOW_ID], 0));
    put_number(to, "flow_type", number(s->by[KEY_FLOW_TYPE], 0));
    next(to, "flow_start");
    const struct sv_arg *start = s->by[KEY_FLOW_START];
    sv_buf_str(to->b, start && start->type == SV_ARG_BOOL && start->i ? "true" : "false");
}

static void put_args(struct tracesmith *w, const struct sv_event *e, const struct said *s,
                     const struct point *p, int64_t type)
{
    struct args to = {&w->body, false};
    const char *track = look_of(type).track;
    int64_t bytes = number(s->by[KEY_BYTES], 0);
    sv_buf_str(&w->body, ",\n      \"args\": {");
    if (w->has_tracks)
        put_text(&to, "track_name", track, strlen(track));
    if (w->has_flows && p->correlation)
        put_number(&to, "correlation_id", (int64_t)p->correlation);
    next(&to, "event_type");
    sv_buf_printf(&w->body, "\"%lld\"", (long long)type);
    put_number(&to, "device_id", p->device);
    put_number(&to, "stream_id", p->stream);
    if (number(s->by[KEY_THREAD], 0))
        put_number(&to, "thread_id", number(s->by[KEY_THREAD], 0));
    put_flow_info(&to, s);
    if (s->by[KEY_CONTEXT] && number(s->by[KEY_CONTEXT], 0))
        put_other(w, &to, s->by[KEY_CONTEXT]);
    if (s->by[KEY_MEMORY] && !says(s->by[KEY_MEMORY], "device"))
        put_other(w, &to, s->by[KEY_MEMORY]);
    if (s->n_other)
        put_others(w, &to, e);
    if (s->by[KEY_BYTES]) {
        put_number(&to, "size_bytes", bytes < 0 ? -bytes : bytes);
        put_address(&to, "src_address", s->by[KEY_FROM]);
        put_address(&to, "dst_address", s->by[KEY_TO]);
    }
    if (s->by[KEY_GRID] || s->by[KEY_BLOCK]) {
        put_dimensions(&to, "grid_dim", s->by[KEY_GRID]);
        put_dimensions(&to, "block_dim", s->by[KEY_BLOCK]);
        put_number(&to, "shared_memory_bytes", number(s->by[KEY_SHARED], 0));
        put_number(&to, "registers_per_thread", number(s->by[KEY_REGISTERS], 0));
    }
    sv_buf_str(&w->body, "\n      }\n    }");
}

/* ---- events ---- */

static int64_t number_of_track(const struct tracesmith *w, sv_track t)
{
    int64_t n = t ? sv_gpu_number_in(sv_dict_text(w->dict, w->dict->tracks[t].name)) : -1;
    return n < 0 ? 0 : n;
}

static struct point place(struct tracesmith *w, const struct sv_event *e,
                          const struct sv_gpu_facts *f)
{
    struct point p = {f->correlation, e->ts_ns, f->device, f->stream, w->n_points};
    if (p.device < 0)
        p.device = number_of_track(w, sv_gpu_device_of(w->dict, e->track));
    if (p.stream < 0)
        p.stream = number_of_track(w, sv_gpu_stream_of(w->dict, e->track));
    bool is_new;
    sv_map_add(&w->row_map, sv_mix64((uint64_t)p.device) ^ sv_mix64(~(uint64_t)p.stream), &is_new);
    if (is_new)
        SV_APPEND(w->rows, w->n_rows, w->cap_rows) = (struct row){p.device, p.stream};
    if (p.correlation)
        SV_APPEND(w->points, w->n_points, w->cap_points) = p;
    return p;
}

/* The duration: of a slice, or the one that TraceSmith gives its instants. -1: an instant. */
static int64_t duration(const struct sv_event *e, const struct said *s, int64_t type)
{
    if (e->kind == SV_SLICE)
        return e->dur_ns > 0 ? e->dur_ns : 0;
    if (s->by[KEY_DUR])
        return number(s->by[KEY_DUR], 0);
    return type == KERNEL_COMPLETE ? 0 : -1;
}

static void write_event(struct tracesmith *w, const struct sv_event *e)
{
    struct said s = read_args(w, e);
    struct sv_gpu_facts f = sv_gpu_facts(&w->gpu, w->dict, e);
    int64_t type = type_of(w, e, &s, &f);
    if (type < 0) {
        sv_report_add(w->report, SV_SKIPPED, "event that is not work of a device", 1, SV_NO_POS,
                      NULL);
        return;
    }
    struct point p = place(w, e, &f);
    struct sv_text name = sv_dict_text(w->dict, e->name);
    int64_t dur = duration(e, &s, type);
    begin(&w->body);
    put_name(&w->body, name.bytes, name.len);
    sv_buf_printf(&w->body, ",\n      \"cat\": \"%s\",\n      \"ph\": \"%s\",\n", look_of(type).cat,
                  dur >= 0 ? "X" : "i");
    put_time(&w->body, "ts", e->ts_ns);
    sv_buf_printf(&w->body, ",\n      \"pid\": %lld,\n      \"tid\": %lld", (long long)p.device,
                  (long long)p.stream);
    if (dur >= 0) {
        sv_buf_str(&w->body, ",\n");
        put_time(&w->body, "dur", dur);
    }
    put_args(w, e, &s, &p, type);
}

static void keep_counter(struct tracesmith *w, const struct sv_event *e)
{
    if (e->n_args == 0)
        return;
    const struct sv_arg *a = &e->args[0];
    bool is_new;
    uint64_t *number = sv_map_add(&w->counter_map, e->track, &is_new);
    if (is_new) {
        w->counters =
            sv_grow(w->counters, &w->cap_counters, w->n_counters + 1, sizeof *w->counters);
        w->counters[w->n_counters] = (struct counter){e->track, 0};
        *number = w->n_counters++;
    }
    SV_APPEND(w->values, w->n_values, w->cap_values) =
        (struct value){e->ts_ns, a->type == SV_ARG_DOUBLE ? a->d : (double)a->i, (uint32_t)*number};
}

/* ---- the file ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->device < y->device ? -1 : x->device > y->device;
}

static int compare_devices(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->device < y->device ? -1 : x->device > y->device;
}

static void put_row_name(struct sv_buf *b, int64_t pid, const int64_t *tid, const char *text,
                         size_t len)
{
    begin(b);
    sv_buf_printf(b, "      \"name\": \"%s\",\n      \"ph\": \"M\",\n      \"pid\": %lld,\n",
                  tid ? "thread_name" : "process_name", (long long)pid);
    if (tid)
        sv_buf_printf(b, "      \"tid\": %lld,\n", (long long)*tid);
    sv_buf_str(b, "      \"args\": {\n        \"name\": ");
    sv_json_escape(b, text, len);
    sv_buf_str(b, "\n      }\n    }");
}

static void put_rows(struct tracesmith *w, struct sv_buf *b)
{
    char name[48];
    if (w->n_rows)
        qsort(w->rows, w->n_rows, sizeof *w->rows, compare_devices);
    for (size_t i = 0; i < w->n_rows; i++) {
        if (i && w->rows[i].device == w->rows[i - 1].device)
            continue;
        int n = snprintf(name, sizeof name, "GPU Device %lld", (long long)w->rows[i].device);
        put_row_name(b, w->rows[i].device, NULL, name, (size_t)n);
    }
    if (w->n_rows)
        qsort(w->rows, w->n_rows, sizeof *w->rows, compare_rows);
    for (size_t i = 0; i < w->n_rows; i++) {
        int n = snprintf(name, sizeof name, "Stream %lld", (long long)w->rows[i].stream);
        put_row_name(b, w->rows[i].device, &w->rows[i].stream, name, (size_t)n);
    }
}

/* ---- counters ---- */

enum { COUNTER_PID = 9999 };

struct named {
    struct sv_text name;
    uint32_t number;
};

static int compare_names(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return strcmp(x->name.bytes, y->name.bytes);
}

/* Numbered and described in the order of their names. */
static void put_counter_rows(struct tracesmith *w, struct sv_buf *b)
{
    if (w->n_counters == 0)
        return;
    struct named *order = sv_alloc(w->n_counters * sizeof *order);
    for (uint32_t i = 0; i < w->n_counters; i++)
        order[i] =
            (struct named){sv_dict_text(w->dict, w->dict->tracks[w->counters[i].track].name), i};
    qsort(order, w->n_counters, sizeof *order, compare_names);
    put_row_name(b, COUNTER_PID, NULL, "Performance Counters", 20);
    for (uint32_t i = 0; i < w->n_counters; i++) {
        w->counters[order[i].number].tid = i + 1;
        put_row_name(b, COUNTER_PID, &(int64_t){i + 1}, order[i].name.bytes, order[i].name.len);
    }
    free(order);
}

/* Two decimals, as TraceSmith has them, unless that would change the value. */
static void put_value(struct sv_buf *b, double v)
{
    double cents = v * 100;
    if (v > -1e15 && v < 1e15 && cents == (double)(int64_t)cents)
        sv_buf_printf(b, "%.2f", v);
    else
        sv_json_put_double(b, v);
}

static void put_values(struct tracesmith *w, struct sv_buf *b)
{
    for (size_t i = 0; i < w->n_values; i++) {
        const struct value *v = &w->values[i];
        const struct counter *c = &w->counters[v->counter];
        struct sv_text name = sv_dict_text(w->dict, w->dict->tracks[c->track].name);
        begin(b);
        put_name(b, name.bytes, name.len);
        sv_buf_str(b, ",\n      \"cat\": \"counter\",\n      \"ph\": \"C\",\n");
        put_time(b, "ts", v->ts_ns);
        sv_buf_printf(b, ",\n      \"pid\": %d,\n      \"tid\": %u,\n      \"args\": {\n        ",
                      COUNTER_PID, c->tid);
        sv_json_escape(b, name.bytes, name.len);
        sv_buf_str(b, ": ");
        put_value(b, v->value);
        sv_buf_str(b, "\n      }\n    }");
    }
}

/* ---- arrows ---- */

static int compare_points(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number; /* they came in order of time */
}

static void put_arrows(struct tracesmith *w, struct sv_buf *b)
{
    if (w->n_points)
        qsort(w->points, w->n_points, sizeof *w->points, compare_points);
    for (size_t i = 0; i < w->n_points; i++) {
        const struct point *p = &w->points[i];
        bool is_first = i == 0 || p[-1].correlation != p->correlation;
        bool is_last = i + 1 == w->n_points || p[1].correlation != p->correlation;
        if (is_first && is_last)
            continue;
        begin(b);
        sv_buf_printf(
            b, "      \"name\": \"Dependency\",\n      \"cat\": \"flow\",\n      \"ph\": \"%s\",\n",
            is_first  ? "s"
            : is_last ? "f"
                      : "t");
        put_time(b, "ts", p->ts_ns);
        sv_buf_printf(
            b,
            ",\n      \"pid\": %lld,\n      \"tid\": %lld,\n      \"id\": %llu,\n      \"bp\": "
            "\"e\"\n    }",
            (long long)p->device, (long long)p->stream, (unsigned long long)p->correlation);
    }
}

static void put_part(struct tracesmith *w, const struct sv_buf *b, bool *has_one)
{
    if (b->len == 0)
        return;
    if (*has_one)
        sv_output_write(w->out, ",\n", 2);
    sv_output_write(w->out, b->data, b->len);
    *has_one = true;
}

/* What follows the events. */
static void put_other_data(const struct tracesmith *w, struct sv_buf *b)
{
    sv_buf_str(b, "\n  ],\n  \"displayTimeUnit\": \"ns\",\n  \"otherData\": {\n    "
                  "\"version\": \"Stave\"");
    for (uint32_t i = 0; w->adds_metadata && i < w->dict->n_meta; i++) {
        struct sv_text key = sv_dict_text(w->dict, w->dict->meta[i].key),
                       value = sv_dict_text(w->dict, w->dict->meta[i].value);
        sv_buf_str(b, ",\n    ");
        sv_json_escape(b, key.bytes, key.len);
        sv_buf_str(b, ": ");
        sv_json_escape(b, value.bytes, value.len);
    }
}

static void write_file(struct tracesmith *w)
{
    static const char head[] = "{\n  \"traceEvents\": [\n", tail[] = "\n  }\n}\n";
    struct sv_buf rows, values, arrows, other;
    bool has_one = false;
    sv_buf_init(&rows, SIZE_MAX);
    sv_buf_init(&values, SIZE_MAX);
    sv_buf_init(&arrows, SIZE_MAX);
    sv_buf_init(&other, SIZE_MAX);
    put_other_data(w, &other);
    put_rows(w, &rows);
    put_counter_rows(w, &rows);
    put_values(w, &values);
    if (w->has_flows)
        put_arrows(w, &arrows);
    sv_output_write(w->out, head, sizeof head - 1);
    put_part(w, &rows, &has_one);
    put_part(w, &w->body, &has_one);
    put_part(w, &values, &has_one);
    put_part(w, &arrows, &has_one);
    sv_output_write(w->out, other.data, other.len);
    sv_output_write(w->out, tail, sizeof tail - 1);
    sv_buf_fini(&rows);
    sv_buf_fini(&values);
    sv_buf_fini(&arrows);
    sv_buf_fini(&other);
}

/* ---- the sink ---- */

static int tracesmith_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                            struct sv_err *err)
{
    struct tracesmith *w = (struct tracesmith *)s;
    for (const struct sv_event *e = events, *last = events + n; e < last; e++) {
        if (e->kind == SV_SLICE || e->kind == SV_INSTANT)
            write_event(w, e);
        else if (e->kind == SV_COUNTER)
            keep_counter(w, e);
    }
    if (w->body.failed)
        return sv_error(err, SV_ELIMIT, "too many events for a file of TraceSmith's");
    return 0;
}

static int tracesmith_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct tracesmith *w = (struct tracesmith *)s;
    if (!failed)
        write_file(w);
    int code = sv_output_end(w->out, failed, err);
    sv_gpu_words_fini(&w->gpu);
    sv_buf_fini(&w->body);
    sv_map_fini(&w->row_map);
    sv_map_fini(&w->counter_map);
    free(w->points);
    free(w->rows);
    free(w->counters);
    free(w->values);
    free(w);
    return code;
}

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)err;
    struct tracesmith *w = sv_alloc(sizeof *w);
    w->sink = (struct sv_sink){.write = tracesmith_write,
                               .close = tracesmith_close,
                               .takes = SV_HAS_SLICES | SV_HAS_FLOW_POINTS};
    w->out = out;
    w->dict = dict;
    w->report = report;
    const char *dialect = options && options->dialect ? options->dialect : SV_TRACESMITH;
    bool is_basic = strcmp(dialect, SV_TRACESMITH_BASIC) == 0;
    w->has_tracks = !is_basic && strcmp(dialect, SV_TRACESMITH_NO_TRACKS) != 0;
    w->has_flows = !is_basic && strcmp(dialect, SV_TRACESMITH_NO_FLOWS) != 0;
    w->adds_metadata = options && options->adds_metadata;
    sv_gpu_words_init(&w->gpu, dict);
    for (size_t i = 0; i < WORDS; i++)
        w->keys[i] = sv_dict_cstr(dict, words[i].word);
    sv_buf_init(&w->body, BODY_BYTES);
    *sink = &w->sink;
    return SV_OK;
}

const struct sv_writer sv_tracesmith_writer = {
    .name = "tracesmith",
    .open = open_sink,
};
