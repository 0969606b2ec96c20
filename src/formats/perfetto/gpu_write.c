/* Perfetto with work of devices as GPU packets (`--dialect gpu`): GpuRenderStageEvent and GpuInfo
 * beside the track events of all else.
 *
 * Opened through the table of formats. Kernels, copies and fills become stages of the hardware
 * queue `Stream 7` of their GPU; the host call with the same correlation number names the stage in
 * its track event, which Perfetto draws as an arrow. The rest takes the usual way: sort, split,
 * Perfetto's writer, which also owns the output. Stages wait in memory and are written before the
 * file is closed, on a sequence of their own; of several stages with one correlation number the
 * first gets the arrow. */
#include "core/base/map.h"
#include "core/base/wire.h"
#include "core/perfetto/proto.h"
#include "core/perfetto/proto_gpu.h"
#include "core/perfetto/stave.h"
#include "core/perfetto/write.h"
#include "core/stream/gpu_words.h"
#include "formats/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES ((size_t)8 << 30)
#define SEQUENCE    0x40000000u /* far from the writer's own */

enum { SPEC_KERNEL = 1, SPEC_COPY, SPEC_SET, SPEC_FIRST_QUEUE = 16, CATEGORY_COMPUTE = 2 };

struct stages {
    struct sv_sink sink;
    int64_t first_ns;     /* the earliest time of a packet below, 0 unless before */
    struct sv_sink *rest; /* sort → split → tail → Perfetto's writer */
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_gpu_words words;
    struct sv_buf packets, packet, interned, info;
    struct sv_map queues;        /* device, context and stream → iid */
    struct sv_map contexts;      /* process → iid */
    struct sv_map counters;      /* track → number */
    struct sv_map counter_names; /* GPU and name → the first track */
    struct sv_map ids;           /* numbers of stages that were given out */
    uint64_t next_queue, next_context, next_id;
    bool has_state;
    sv_str grid, block;
    struct sv_arg *args;
    size_t cap_args;
};

/* ---- the tail: in front of the writer, so that stages can go out before it closes ---- */

struct tail {
    struct sv_sink sink;
    struct sv_sink *next; /* Perfetto's writer */
    struct sv_output *out;
    struct stages *stages;
};

static int tail_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct tail *t = (struct tail *)s;
    pf_origin_lower((struct pf *)t->next, t->stages->first_ns); /* all stages are known by now */
    return t->next->write(t->next, events, n, err);
}

/* The packets of stages count from 0, whatever the writer's origin. */
static void write_packets(struct tail *t, const struct sv_buf *packets)
{
    struct pf *w = (struct pf *)t->next;
    if (w->origin_ns)
        pf_packets_write(w, packets->data, packets->len);
    else
        sv_output_write(t->out, packets->data, packets->len);
}

static int tail_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct tail *t = (struct tail *)s;
    pf_origin_lower((struct pf *)t->next, t->stages->first_ns);
    int code = failed ? 0 : t->next->flush(t->next, err);
    if (!failed && code >= 0) {
        write_packets(t, &t->stages->info);
        write_packets(t, &t->stages->packets);
    }
    int closed = t->next->close(t->next, failed || code < 0, err);
    free(t);
    return code < 0 ? code : closed;
}

/* ---- packets ---- */

static uint32_t wire_clock(const struct stages *w)
{
    const struct sv_clocks *c = &w->dict->clocks;
    int64_t ns;
    bool is_known = c->trace_clock != SV_CLOCK_UNKNOWN &&
                    c->trace_clock < SV_PF_CLOCK_SEQUENCE_FIRST;
    bool is_tied = c->trace_clock == SV_CLOCK_BOOTTIME ||
                   sv_clocks_convert(c, c->trace_clock, SV_CLOCK_BOOTTIME, 0, &ns);
    return is_known && is_tied ? c->trace_clock : SV_PF_CLOCK_TRACE_FILE;
}

static void put_time(struct stages *w, struct sv_buf *b, int64_t ts_ns)
{
    w->first_ns = ts_ns < w->first_ns ? ts_ns : w->first_ns;
    sv_put_i64(b, SV_PF_PACKET_TIMESTAMP, ts_ns);
    sv_put_u64(b, SV_PF_PACKET_CLOCK_ID, wire_clock(w));
}

static void put_text(struct sv_buf *b, uint32_t field, struct sv_text text)
{
    sv_put_text(b, field, text.bytes, text.len);
}

static void put_spec(struct stages *w, uint64_t iid, const char *name, uint64_t category)
{
    size_t mark = sv_put_begin(&w->interned, SV_PF_INTERNED_GPU_SPECS);
    sv_put_u64(&w->interned, 1, iid);
    sv_put_text(&w->interned, SV_PF_GPU_SPEC_NAME, name, strlen(name));
    sv_put_u64(&w->interned, SV_PF_GPU_SPEC_CATEGORY, category);
    sv_put_end(&w->interned, mark);
}

static uint64_t queue_of(struct stages *w, const struct sv_event *e, const struct sv_gpu_facts *f,
                         int64_t device, int64_t stream)
{
    bool is_new;
    char name[96];
    uint64_t *iid = sv_map_add(&w->queues,
                               sv_mix64((uint64_t)device) ^ sv_mix64(~(uint64_t)stream) ^
                                   sv_mix64((uint64_t)f->context + 7),
                               &is_new);
    if (!is_new)
        return *iid;
    *iid = SPEC_FIRST_QUEUE + w->next_queue++;
    sv_track row = sv_gpu_stream_of(w->dict, e->track);
    struct sv_text own = sv_dict_text(w->dict, w->dict->tracks[row].name);
    if (f->context > 0)
        snprintf(name, sizeof name, "Context %lld, Stream %lld", (long long)f->context,
                 (long long)stream);
    else if (row && own.len && own.len < sizeof name)
        snprintf(name, sizeof name, "%s", own.bytes);
    else
        snprintf(name, sizeof name, "Stream %lld", (long long)stream);
    put_spec(w, *iid, name, CATEGORY_COMPUTE);
    return *iid;
}

static uint64_t context_of(struct stages *w, sv_track t)
{
    sv_track process = sv_dict_process_of(w->dict, t);
    int64_t pid = process ? w->dict->tracks[process].pid : -1;
    bool is_new;
    if (pid <= 0) /* Kineto's synthetic pid of a device */
        return 0;
    uint64_t *iid = sv_map_add(&w->contexts, (uint64_t)pid, &is_new);
    if (is_new) {
        *iid = ++w->next_context;
        size_t mark = sv_put_begin(&w->interned, SV_PF_INTERNED_GRAPHICS_CONTEXTS);
        sv_put_u64(&w->interned, 1, *iid);
        sv_put_i64(&w->interned, SV_PF_GPU_CONTEXT_PID, pid);
        sv_put_end(&w->interned, mark);
    }
    return *iid;
}

/* The correlation number, if it is the first with it, else one that nothing refers to. */
static uint64_t stage_id(struct stages *w, uint64_t correlation)
{
    bool is_new = false;
    if (correlation)
        sv_map_add(&w->ids, correlation, &is_new);
    return is_new ? correlation : ((uint64_t)1 << 48) + ++w->next_id;
}

/* ---- arguments ---- */

static void put_dimensions(struct sv_buf *b, uint32_t field, const struct sv_arg *a)
{
    size_t mark = sv_put_begin(b, field);
    for (uint32_t i = 1; i <= 3 && i <= a->size; i++)
        if (a[i].type == SV_ARG_INT)
            sv_put_u64(b, i, (uint32_t)a[i].i);
    sv_put_end(b, mark);
}

static void put_arg(struct stages *w, const struct sv_arg *a)
{
    struct sv_buf *b = &w->packet;
    char text[24];
    size_t mark = sv_put_begin(b, SV_PF_LAUNCH_ARGS);
    put_text(b, SV_PF_KARG_NAME, sv_dict_text(w->dict, a->key));
    switch (a->type) {
    case SV_ARG_BOOL:
    case SV_ARG_INT: sv_put_i64(b, SV_PF_KARG_INT, a->i); break;
    case SV_ARG_UINT: sv_put_u64(b, SV_PF_KARG_UINT, a->u); break;
    case SV_ARG_DOUBLE: sv_put_double(b, SV_PF_KARG_DOUBLE, a->d); break;
    case SV_ARG_TEXT: sv_put_text(b, SV_PF_KARG_STRING, a->text, a->size); break;
    case SV_ARG_POINTER: {
        int n = snprintf(text, sizeof text, "0x%llx", (unsigned long long)a->u);
        sv_put_bytes(b, SV_PF_KARG_STRING, text, (size_t)n);
        break;
    }
    default: sv_report_add(w->report, SV_SKIPPED, "nested argument", 1, SV_NO_POS, NULL); break;
    }
    sv_put_end(b, mark);
}

static void put_launch(struct stages *w, const struct sv_event *e, uint64_t correlation)
{
    struct sv_buf *b = &w->packet;
    size_t mark = sv_put_begin(b, SV_PF_STAGE_LAUNCH);
    const struct sv_arg *end = e->args + e->n_args;
    bool has_number = false;
    for (const struct sv_arg *a = e->args; a < end; a = sv_arg_next(a)) {
        if ((a->key == w->grid || a->key == w->block) && a->key && a->type == SV_ARG_ARRAY)
            put_dimensions(b, a->key == w->grid ? SV_PF_LAUNCH_GRID : SV_PF_LAUNCH_WORKGROUP, a);
        else if (a->key)
            put_arg(w, a);
        has_number |= a->key && a->key == w->words.correlation[0];
    }
    if (correlation && !has_number) {
        struct sv_arg number = {
            .key = w->words.correlation[0], .type = SV_ARG_UINT, .u = correlation};
        put_arg(w, &number);
    }
    sv_put_end(b, mark);
}

/* ---- stages ---- */

static int64_t number_of(const struct stages *w, int64_t said, sv_track row)
{
    int64_t n = said >= 0 || !row
                    ? said
                    : sv_gpu_number_in(sv_dict_text(w->dict, w->dict->tracks[row].name));
    return n < 0 ? 0 : n;
}

static void first_specs(struct stages *w)
{
    if (w->has_state)
        return;
    put_spec(w, SPEC_KERNEL, "kernel", CATEGORY_COMPUTE);
    put_spec(w, SPEC_COPY, "gpu_memcpy", 0);
    put_spec(w, SPEC_SET, "gpu_memset", 0);
}

static void write_stage(struct stages *w, const struct sv_event *e, const struct sv_gpu_facts *f)
{
    struct sv_buf *b = &w->packet;
    int64_t device = number_of(w, f->device, sv_gpu_device_of(w->dict, e->track));
    int64_t stream = number_of(w, f->stream, sv_gpu_stream_of(w->dict, e->track));
    sv_buf_clear(b);
    sv_buf_clear(&w->interned);
    first_specs(w);
    uint64_t context = context_of(w, e->track);
    put_time(w, b, e->ts_ns);
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_ID, SEQUENCE);
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_FLAGS,
               w->has_state ? SV_PF_SEQ_NEEDS_STATE : SV_PF_SEQ_CLEARED);
    w->has_state = true;
    size_t mark = sv_put_begin(b, SV_PF_PACKET_GPU_STAGE);
    sv_put_u64(b, SV_PF_STAGE_EVENT_ID, stage_id(w, f->correlation));
    sv_put_i64(b, SV_PF_STAGE_DURATION, e->dur_ns > 0 ? e->dur_ns : 0);
    sv_put_u64(b, SV_PF_STAGE_HW_QUEUE_IID, queue_of(w, e, f, device, stream));
    sv_put_u64(b, SV_PF_STAGE_STAGE_IID,
               f->class_ == SV_GPU_KERNEL ? SPEC_KERNEL
               : f->class_ == SV_GPU_COPY ? SPEC_COPY
                                          : SPEC_SET);
    sv_put_i64(b, SV_PF_STAGE_GPU_ID, device);
    if (context)
        sv_put_u64(b, SV_PF_STAGE_CONTEXT, context);
    put_text(b, SV_PF_STAGE_NAME, sv_dict_text(w->dict, e->name));
    put_launch(w, e, f->correlation);
    sv_put_end(b, mark);
    if (w->interned.len)
        sv_put_bytes(b, SV_PF_PACKET_INTERNED_DATA, w->interned.data, w->interned.len);
    sv_put_bytes(&w->packets, SV_PF_TRACE_PACKET, b->data, b->len);
}

/* ---- counters ---- */

/* The measure of a unit as Perfetto numbers them, -1 when it has none. */
static int measure(struct sv_text unit)
{
    static const struct {
        const char *unit;
        int number;
    } rows[] = {{"", 0},    {"B", 7},   {"bytes", 7}, {"Hz", 13}, {"MHz", 15},
                {"ns", 19}, {"us", 20}, {"ms", 21},   {"s", 22},  {"mW", 28},
                {"W", 29},  {"J", 31},  {"C", 34},    {"%", 37}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (unit.len == strlen(rows[i].unit) && memcmp(unit.bytes, rows[i].unit, unit.len) == 0)
            return rows[i].number;
    return -1;
}

static void put_counter_spec(struct stages *w, const struct sv_track_info *t, uint64_t id, int unit)
{
    enum { DIRECTION = 11, FORWARDS = 2 }; /* a value holds from its time on, as everywhere here */
    struct sv_buf *b = &w->packet;
    size_t descriptor = sv_put_begin(b, SV_PF_GPU_COUNTER_DESCRIPTOR),
           spec = sv_put_begin(b, SV_PF_GPU_DESCRIPTOR_SPECS);
    sv_put_u64(b, SV_PF_GPU_CSPEC_ID, id);
    put_text(b, SV_PF_GPU_CSPEC_NAME, sv_dict_text(w->dict, t->name));
    if (t->desc)
        put_text(b, SV_PF_GPU_CSPEC_DESCRIPTION, sv_dict_text(w->dict, t->desc));
    if (unit)
        sv_put_u64(b, SV_PF_GPU_CSPEC_NUMERATOR, (uint64_t)unit);
    sv_put_u64(b, DIRECTION, FORWARDS);
    sv_put_end(b, spec);
    sv_put_end(b, descriptor);
}

/* A GPU has one counter of a name: those of further processes stay on their own tracks. */
static bool is_first_of_name(struct stages *w, sv_track counter)
{
    const struct sv_track_info *t = &w->dict->tracks[counter];
    uint64_t gpu = (uint64_t)number_of(w, -1, t->parent);
    bool is_new;
    uint64_t *first = sv_map_add(&w->counter_names, sv_mix64(gpu << 32 ^ t->name), &is_new);
    if (is_new)
        *first = counter;
    return *first == counter;
}

/* A value of a counter right below a device; false when the packet cannot say it. */
static bool write_counter(struct stages *w, const struct sv_event *e)
{
    const struct sv_track_info *t = &w->dict->tracks[e->track];
    const struct sv_arg *v = e->args;
    int unit = measure(sv_dict_text(w->dict, t->unit));
    bool is_new, is_plain = t->parent && w->dict->tracks[t->parent].kind == SV_TRACK_GPU &&
                            t->name && t->multiplier <= 1 && unit >= 0 && e->n_args == 1 &&
                            (v->type == SV_ARG_INT || v->type == SV_ARG_DOUBLE);
    if (!is_plain || !is_first_of_name(w, e->track))
        return false;
    struct sv_buf *b = &w->packet;
    uint64_t *id = sv_map_add(&w->counters, e->track, &is_new);
    if (is_new)
        *id = w->counters.n;
    sv_buf_clear(b);
    put_time(w, b, e->ts_ns);
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_ID, SEQUENCE + 1);
    size_t mark = sv_put_begin(b, SV_PF_PACKET_GPU_COUNTER);
    if (is_new)
        put_counter_spec(w, t, *id, unit);
    size_t value = sv_put_begin(b, SV_PF_GPU_COUNTER_VALUES);
    sv_put_u64(b, SV_PF_GPU_VALUE_ID, *id);
    if (v->type == SV_ARG_INT)
        sv_put_i64(b, SV_PF_GPU_VALUE_INT, v->i);
    else
        sv_put_double(b, SV_PF_GPU_VALUE_DOUBLE, v->d);
    sv_put_end(b, value);
    sv_put_i64(b, SV_PF_GPU_COUNTER_GPU_ID, number_of(w, -1, t->parent));
    sv_put_end(b, mark);
    sv_put_bytes(&w->packets, SV_PF_TRACE_PACKET, b->data, b->len);
    return true;
}

/* What is known of a device. */
static void write_info(struct stages *w, const struct sv_event *e)
{
    static const struct {
        const char *key;
        uint32_t field;
    } rows[] = {{"name", SV_PF_GPU_NAME}, {"vendor", SV_PF_GPU_VENDOR}};
    struct sv_buf *b = &w->packet;
    sv_buf_clear(b);
    size_t info = sv_put_begin(b, SV_PF_PACKET_GPU_INFO),
           gpu = sv_put_begin(b, SV_PF_GPU_INFO_GPUS);
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a))
        for (size_t i = 0; i < 2; i++)
            if (a->type == SV_ARG_TEXT &&
                strcmp(sv_dict_text(w->dict, a->key).bytes, rows[i].key) == 0)
                sv_put_text(b, rows[i].field, a->text, a->size);
    sv_put_end(b, gpu);
    sv_put_end(b, info);
    sv_put_bytes(&w->info, SV_PF_TRACE_PACKET, b->data, b->len);
}

/* ---- the rest ---- */

/* Host calls get their number as one that means something. */
static struct sv_event with_number(struct stages *w, const struct sv_event *e, uint64_t correlation)
{
    struct sv_event out = *e;
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a))
        if (a->type == SV_ARG_CORRELATION)
            return out;
    if (e->n_args >= SV_ARGS_MAX)
        return out;
    w->args = sv_grow(w->args, &w->cap_args, (size_t)e->n_args + 1, sizeof *w->args);
    if (e->n_args)
        memcpy(w->args, e->args, e->n_args * sizeof *w->args);
    w->args[e->n_args] = (struct sv_arg){.type = SV_ARG_CORRELATION, .u = correlation};
    out.args = w->args;
    out.n_args++;
    return out;
}

static bool is_replaced(const struct stages *w, const struct sv_event *e)
{
    return e->kind == SV_FLOW && strcmp(sv_dict_text(w->dict, e->cat).bytes, "ac2g") == 0;
}

static int packets_fit(const struct stages *w, struct sv_err *err)
{
    return w->packets.failed || w->packet.failed
               ? sv_error(err, SV_ELIMIT, "too many GPU stages for one file")
               : 0;
}

static int write_one(struct stages *w, const struct sv_event *e, struct sv_err *err)
{
    if (is_replaced(w, e)) /* an arrow that the numbers say */
        return 0;
    if (e->kind == SV_COUNTER && write_counter(w, e))
        return packets_fit(w, err);
    if (e->kind != SV_SLICE && e->kind != SV_INSTANT)
        return w->rest->write(w->rest, e, 1, err);
    struct sv_gpu_facts f = sv_gpu_facts(&w->words, w->dict, e);
    if (e->kind == SV_SLICE && sv_gpu_is_work(f.class_)) {
        write_stage(w, e, &f);
        return packets_fit(w, err);
    }
    if (f.class_ == SV_GPU_POINT && strcmp(sv_dict_text(w->dict, e->cat).bytes, "gpu_device") == 0)
        write_info(w, e);
    struct sv_event out =
        f.class_ == SV_GPU_CALL && f.correlation ? with_number(w, e, f.correlation) : *e;
    return w->rest->write(w->rest, &out, 1, err);
}

static int stages_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    struct stages *w = (struct stages *)s;
    int code = 0;
    for (size_t i = 0; i < n && code >= 0; i++)
        code = write_one(w, &events[i], err);
    return code;
}

static int stages_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct stages *w = (struct stages *)s;
    int code = w->rest->close(w->rest, failed, err);
    sv_gpu_words_fini(&w->words);
    sv_buf_fini(&w->packets);
    sv_buf_fini(&w->packet);
    sv_buf_fini(&w->interned);
    sv_buf_fini(&w->info);
    sv_map_fini(&w->queues);
    sv_map_fini(&w->contexts);
    sv_map_fini(&w->ids);
    sv_map_fini(&w->counters);
    sv_map_fini(&w->counter_names);
    free(w->args);
    free(w);
    return code;
}

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    struct sv_write_options inner = options ? *options : (struct sv_write_options){0};
    struct sv_sink *writer;
    inner.dialect = SV_PERFETTO_GPU;
    int code = sv_perfetto_writer.open(out, &inner, dict, report, &writer, err);
    if (code < 0)
        return code;
    struct stages *w = sv_alloc(sizeof *w);
    struct tail *t = sv_alloc(sizeof *t);
    *t = (struct tail){
        {.write = tail_write, .close = tail_close, .takes = sv_sink_wants(writer)}, writer, out, w};
    w->sink = (struct sv_sink){.write = stages_write,
                               .close = stages_close,
                               .takes = SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS};
    w->rest = sv_pump_adapt(w->sink.takes, &t->sink, dict, report, NULL);
    w->dict = dict;
    w->report = report;
    sv_gpu_words_init(&w->words, dict);
    w->grid = sv_dict_cstr(dict, "grid");
    w->block = sv_dict_cstr(dict, "block");
    sv_buf_init(&w->packets, STAGE_BYTES);
    sv_buf_init(&w->packet, (size_t)1 << 28);
    sv_buf_init(&w->interned, (size_t)1 << 28);
    sv_buf_init(&w->info, (size_t)1 << 28);
    *sink = &w->sink;
    return 0;
}

const struct sv_writer sv_perfetto_gpu_writer = {
    .name = "gpu",
    .open = open_sink,
    .is_binary = true,
};
