/* TraceSmith's binary traces (SBT 0.1): header, metadata, devices, events with time deltas, names
 * at the end.
 *
 * Opened through the table of formats. The names follow the events that use them, so the file is
 * read as a whole (up to the limit of an input's window). A file whose writer did not finish has no
 * index: its sections are walked from the first, its events have no names. Every event becomes what
 * the library libstave-gpu would have recorded (docs/gpu.md), with TraceSmith's number of its kind
 * beside it. All lengths and numbers are checked; the first that cannot be right ends the reading
 * with a finding. */
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/wire.h"
#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 72, STRINGS_MAX = 1 << 24, DEVICES_MAX = 4096, FRAMES_MAX = 1024 };
enum { SECTION_METADATA = 1, SECTION_STRINGS, SECTION_DEVICES, SECTION_EVENTS };
enum { HAS_DURATION = 1, HAS_KERNEL = 2, HAS_MEMORY = 4, HAS_STACK = 8 };

struct device {
    uint64_t id;
    sv_str name;
};

struct sbt {
    struct sv_source source;
    struct sv_input *in;
    uint32_t space;
    struct sv_pb at; /* the events */
    uint64_t n_left; /* UINT64_MAX: until the end */
    uint64_t ts_ns;
    sv_str *strings;
    size_t n_strings, cap_strings;
    struct device devices[64];
    size_t n_devices;
    sv_track process;
    bool is_done;
    struct {
        sv_str device, context, stream, event_type, grid, block, shared, registers, bytes, kind,
            from, to, address, memory_bytes, device_id, sync, value, thread, stack;
    } key;
};

static int probe(const uint8_t *head, size_t n)
{
    return n >= HEADER_BYTES && memcmp(head, "SBT\0", 4) == 0 && head[5] == 0 && head[4] < 8 ? 100
                                                                                             : 0;
}

/* ---- pieces ---- */

static uint64_t u64_at(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static int64_t place(const struct sbt *s)
{
    return (int64_t)(s->in->pos + (uint64_t)(s->at.p - s->in->data));
}

static void damage(struct sbt *s, const char *what)
{
    sv_report_add(s->source.report, SV_DAMAGE, what, 1, place(s),
                  "the rest of the file is not read");
    s->is_done = true;
}

/* 0 and `bad` at the end of the bytes. */
static uint64_t number(struct sv_pb *w)
{
    uint64_t v = 0;
    if (!sv_pb_varint(w, &v))
        w->bad = true;
    return w->bad ? 0 : v;
}

static struct sv_text text(struct sv_pb *w)
{
    uint64_t len = number(w);
    if (w->bad || len > (uint64_t)(w->end - w->p) || len > SV_TEXT_MAX) {
        w->bad = true;
        return (struct sv_text){"", 0};
    }
    struct sv_text t = {(const char *)w->p, (uint32_t)len};
    w->p += len;
    return t;
}

static sv_str str(struct sbt *s, struct sv_pb *w)
{
    struct sv_text t = text(w);
    return sv_dict_str(s->source.dict, t.bytes, t.len);
}

/* ---- sections ---- */

static bool read_metadata(struct sbt *s, struct sv_pb *w)
{
    struct sv_dict *d = s->source.dict;
    struct sv_text app = text(w), command = text(w);
    number(w); /* start and end */
    number(w);
    struct sv_text host = text(w);
    uint64_t pid = number(w);
    if (w->bad)
        return false;
    s->process = sv_dict_process(d, s->space, (int64_t)(pid & INT32_MAX));
    d->tracks[s->process].name = sv_dict_str(d, app.bytes, app.len);
    d->tracks[s->process].is_described = true;
    sv_dict_touch(d, s->process);
    if (command.len)
        sv_dict_set_meta(d, "command", command.bytes, command.len, false);
    if (host.len)
        sv_dict_set_meta(d, "hostname", host.bytes, host.len, false);
    return true;
}

static bool read_devices(struct sbt *s, struct sv_pb *w)
{
    uint64_t n = number(w);
    for (uint64_t i = 0; i < n && i < DEVICES_MAX && !w->bad; i++) {
        struct device device = {number(w), 0};
        device.name = str(s, w);
        str(s, w); /* vendor */
        for (int k = 0; k < 9; k++)
            number(w);
        if (!w->bad && s->n_devices < sizeof s->devices / sizeof *s->devices)
            s->devices[s->n_devices++] = device;
    }
    return !w->bad;
}

static bool read_strings(struct sbt *s, struct sv_pb *w)
{
    uint64_t n = number(w);
    if (n > STRINGS_MAX || n > (uint64_t)(w->end - w->p))
        return false;
    for (uint64_t i = 0; i < n && !w->bad; i++)
        SV_APPEND(s->strings, s->n_strings, s->cap_strings) = str(s, w);
    return !w->bad;
}

static struct sv_pb section_at(const struct sbt *s, uint64_t offset, unsigned type)
{
    const uint8_t *data = s->in->data, *end = data + s->in->len;
    struct sv_pb w = {.p = end, .end = end, .bad = true};
    if (offset >= HEADER_BYTES && offset < s->in->len && data[offset] == type)
        w = (struct sv_pb){.p = data + offset + 1, .end = end};
    return w;
}

static void find_sections(struct sbt *s)
{
    const uint8_t *h = s->in->data;
    uint64_t metadata = u64_at(h + 16), strings = u64_at(h + 24), devices = u64_at(h + 32),
             events = u64_at(h + 40);
    struct sv_pb w;
    s->n_left = u64_at(h + 56);
    s->at = (struct sv_pb){.p = h + HEADER_BYTES, .end = h + s->in->len};
    if (metadata && (w = section_at(s, metadata, SECTION_METADATA), w.bad || !read_metadata(s, &w)))
        sv_report_add(s->source.report, SV_DAMAGE, "damaged metadata section", 1, (int64_t)metadata,
                      NULL);
    if (devices && (w = section_at(s, devices, SECTION_DEVICES), w.bad || !read_devices(s, &w)))
        sv_report_add(s->source.report, SV_DAMAGE, "damaged device section", 1, (int64_t)devices,
                      NULL);
    if (strings && (w = section_at(s, strings, SECTION_STRINGS), w.bad || !read_strings(s, &w)))
        sv_report_add(s->source.report, SV_DAMAGE, "damaged table of names", 1, (int64_t)strings,
                      NULL);
    if (!events)
        return;
    w = section_at(s, events, SECTION_EVENTS);
    if (w.bad) {
        damage(s, "no events where the header says");
        return;
    }
    s->at = w;
    if (strings > events && strings <= s->in->len)
        s->at.end = h + strings;
}

/* The writer never came back to fill in the header: one section after the other. */
static void walk_sections(struct sbt *s)
{
    sv_report_add(s->source.report, SV_DAMAGE, "trace that its writer did not finish", 1, 0,
                  "events have no names");
    s->n_left = UINT64_MAX;
    while (s->at.p < s->at.end) {
        unsigned type = *s->at.p++;
        if (type == SECTION_EVENTS)
            return;
        if (!(type == SECTION_METADATA ? read_metadata(s, &s->at)
                                       : type == SECTION_DEVICES && read_devices(s, &s->at)))
            break;
    }
    s->is_done = true;
}

/* ---- events ---- */

struct record {
    unsigned type, flags;
    uint64_t dur, device, stream, correlation, name;
    uint64_t kernel[8]; /* grid, block, shared memory, registers */
    uint64_t from, to, bytes;
    uint64_t thread;
};

static sv_track track_of(struct sbt *s, const struct record *r)
{
    struct sv_dict *d = s->source.dict;
    char name[256];
    int n = snprintf(name, sizeof name, "GPU %llu", (unsigned long long)r->device);
    for (size_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].id == r->device && s->devices[i].name)
            n = snprintf(name, sizeof name, "GPU %llu %.200s", (unsigned long long)r->device,
                         sv_dict_text(d, s->devices[i].name).bytes);
    sv_track device = sv_dict_child(d, s->process, SV_TRACK_GPU, sv_dict_str(d, name, (size_t)n));
    n = snprintf(name, sizeof name, "Stream %llu", (unsigned long long)r->stream);
    return sv_dict_child(d, device, SV_TRACK_STREAM, sv_dict_str(d, name, (size_t)n));
}

static void put_number(struct sv_batch *b, sv_str key, uint64_t v)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = v > INT64_MAX ? SV_ARG_UINT : SV_ARG_INT;
    a->u = v;
}

static void put_special(struct sv_batch *b, unsigned type, uint64_t v)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = type & 0xff;
    a->u = v;
}

static void put_pointer(struct sv_batch *b, sv_str key, uint64_t v)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = SV_ARG_POINTER;
    a->u = v;
}

static void put_word(struct sv_batch *b, sv_str key, const char *word)
{
    sv_batch_str(b, key, word, strlen(word));
}

static void put_three(struct sv_batch *b, sv_str key, const uint64_t *v)
{
    size_t open = sv_batch_open(b, key, SV_ARG_ARRAY);
    for (int i = 0; i < 3; i++)
        put_number(b, 0, v[i]);
    sv_batch_close(b, open);
}

/* TraceSmith's kinds of events: what they are called here. `word`: copyKind or cuda_sync_kind. */
static const struct meaning {
    const char *cat, *word;
    bool is_slice;
} meanings[] = {
    [0] = {"gpu", NULL, false},
    [1] = {"kernel", NULL, true},
    [2] = {"kernel", NULL, false},
    [3] = {"gpu_memcpy", "HtoD", true},
    [4] = {"gpu_memcpy", "DtoH", true},
    [5] = {"gpu_memcpy", "DtoD", true},
    [6] = {"gpu_memset", NULL, true},
    [7] = {"cuda_sync", "Stream Sync", true},
    [8] = {"cuda_sync", "Context Sync", true},
    [9] = {"gpu_event", NULL, false},
    [10] = {"cuda_sync", "Event Sync", true},
    [11] = {"gpu_stream", NULL, false},
    [12] = {"gpu_stream", NULL, false},
    [13] = {"gpu_context", NULL, false},
    [14] = {"gpu_context", NULL, false},
    [15] = {"gpu_alloc", NULL, false},
    [16] = {"gpu_alloc", NULL, false},
    [17] = {"gpu_user_annotation", NULL, false},
    [18] = {"gpu_user_annotation", NULL, true},
    [19] = {"gpu_user_annotation", NULL, false},
    [20] = {"kernel", NULL, true},
    [21] = {"kernel", NULL, false},
};

static void put_memory(struct sbt *s, struct sv_batch *b, const struct record *r)
{
    if (r->type == 15 || r->type == 16) {
        put_number(b, s->key.address, r->to ? r->to : r->from);
        put_number(b, s->key.memory_bytes, r->type == 16 ? 0 - r->bytes : r->bytes);
        put_number(b, s->key.device_id, r->device);
        if (r->type == 16) /* a negative number */
            b->arg[-2].type = SV_ARG_INT;
        return;
    }
    put_number(b, s->key.bytes, r->bytes);
    put_pointer(b, s->key.from, r->from);
    put_pointer(b, s->key.to, r->to);
}

/* Frames: address, function, file, line; the function's name is kept. */
static void read_stack(struct sbt *s, struct sv_batch *b, struct record *r)
{
    struct sv_dict *d = s->source.dict;
    r->thread = number(&s->at);
    uint64_t n = number(&s->at);
    size_t open = sv_batch_open(b, s->key.stack, SV_ARG_ARRAY);
    for (uint64_t i = 0; i < n && !s->at.bad; i++) {
        number(&s->at);
        uint64_t function = number(&s->at);
        number(&s->at);
        number(&s->at);
        if (i >= FRAMES_MAX || s->at.bad)
            continue;
        struct sv_text name = function < s->n_strings ? sv_dict_text(d, s->strings[function])
                                                      : (struct sv_text){"", 0};
        sv_batch_str(b, 0, name.bytes, name.len);
    }
    sv_batch_close(b, open);
}

static void read_fields(struct sbt *s, struct record *r)
{
    struct sv_pb *w = &s->at;
    s->ts_ns += number(w); /* wraps where time goes back */
    r->dur = r->flags & HAS_DURATION ? number(w) : 0;
    r->device = number(w);
    r->stream = number(w);
    r->correlation = number(w);
    r->name = number(w);
    for (size_t i = 0; i < 8 && r->flags & HAS_KERNEL; i++)
        r->kernel[i] = number(w);
    if (r->flags & HAS_MEMORY) {
        r->from = number(w);
        r->to = number(w);
        r->bytes = number(w);
    }
}

static void put_args(struct sbt *s, struct sv_batch *b, struct record *r, const struct meaning *m)
{
    if (r->correlation) {
        put_special(b, SV_ARG_CORRELATION, r->correlation);
        put_special(b, SV_ARG_FLOW,
                    sv_mix64(r->correlation ^ 0x736274ull ^ (uint64_t)s->space << 48));
    }
    put_number(b, s->key.device, r->device);
    put_number(b, s->key.stream, r->stream);
    put_number(b, s->key.event_type, r->type);
    if (m->word)
        put_word(b, m->cat[0] == 'c' ? s->key.sync : s->key.kind, m->word);
    if (r->flags & HAS_MEMORY)
        put_memory(s, b, r);
    if (r->flags & HAS_KERNEL) {
        put_three(b, s->key.grid, r->kernel);
        put_three(b, s->key.block, r->kernel + 3);
        put_number(b, s->key.shared, r->kernel[6]);
        put_number(b, s->key.registers, r->kernel[7]);
    }
    if (r->flags & HAS_STACK) {
        read_stack(s, b, r);
        put_number(b, s->key.thread, r->thread);
    }
}

static void read_event(struct sbt *s, struct sv_batch *b)
{
    struct record r = {0};
    if (s->at.end - s->at.p < 2) {
        damage(s, "event cut short");
        return;
    }
    r.type = *s->at.p++;
    r.flags = *s->at.p++;
    read_fields(s, &r);
    const struct meaning *m = &meanings[r.type < sizeof meanings / sizeof *meanings ? r.type : 0];
    if (!s->at.bad)
        put_args(s, b, &r, m);
    if (s->at.bad || s->ts_ns > INT64_MAX || r.dur > INT64_MAX || r.device > UINT32_MAX ||
        r.stream > UINT32_MAX) {
        sv_batch_drop_args(b);
        damage(s, "damaged event");
        return;
    }
    sv_track track = track_of(s, &r);
    struct sv_event *e = sv_batch_event(b);
    bool is_slice = m->is_slice || r.dur > 0;
    *e = (struct sv_event){.ts_ns = (int64_t)s->ts_ns,
                           .dur_ns = is_slice ? (int64_t)r.dur : 0,
                           .track = track,
                           .name = r.name < s->n_strings ? s->strings[r.name] : 0,
                           .cat = sv_dict_cstr(s->source.dict, m->cat),
                           .kind = is_slice ? SV_SLICE : SV_INSTANT};
    sv_batch_finish(b, e);
    if (!sv_event_ends(e))
        sv_source_refuse(&s->source, place(s));
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sbt *s = (struct sbt *)source;
    while (b->n < SV_BATCH && !s->is_done && s->n_left > 0) {
        if (s->n_left == UINT64_MAX && s->at.p == s->at.end)
            break;
        read_event(s, b);
        if (s->n_left != UINT64_MAX)
            s->n_left--;
    }
    return sv_source_given(source, b->n, err);
}

/* ---- life ---- */

static void close_source(struct sv_source *source)
{
    struct sbt *s = (struct sbt *)source;
    free(s->strings);
    free(s);
}

static void name_keys(struct sbt *s, struct sv_dict *d)
{
    const struct {
        sv_str *to;
        const char *word;
    } rows[] = {
        {&s->key.device, "device"},
        {&s->key.stream, "stream"},
        {&s->key.grid, "grid"},
        {&s->key.block, "block"},
        {&s->key.bytes, "bytes"},
        {&s->key.shared, "shared memory"},
        {&s->key.kind, "copyKind"},
        {&s->key.registers, "registers per thread"},
        {&s->key.from, "from address"},
        {&s->key.to, "to address"},
        {&s->key.address, "Addr"},
        {&s->key.memory_bytes, "Bytes"},
        {&s->key.thread, "thread"},
        {&s->key.device_id, "Device Id"},
        {&s->key.stack, "call stack"},
        {&s->key.sync, "cuda_sync_kind"},
        {&s->key.event_type, "event_type"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i].to = sv_dict_cstr(d, rows[i].word);
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    int code = sv_input_need_all(in, "too large for a trace of TraceSmith's: 1 GiB at most", err);
    if (code < 0)
        return code;
    if (in->len < HEADER_BYTES)
        return sv_err_set(err, SV_EFORMAT, 0, "shorter than the header of a TraceSmith trace");
    struct sbt *s = sv_alloc(sizeof *s);
    s->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
                                   .dict = dict,
                                   .report = report};
    s->in = in;
    s->space = options ? options->space : 0;
    name_keys(s, dict);
    find_sections(s);
    if (!s->is_done && u64_at(in->data + 40) == 0 && s->at.p < s->at.end)
        walk_sections(s);
    if (!s->process)
        s->process = sv_dict_process(dict, s->space, 0);
    if (!s->is_done && s->at.p < s->at.end)
        s->ts_ns = number(&s->at);
    *out = &s->source;
    return 0;
}

const struct sv_format sv_sbt_format = {
    .name = "sbt",
    .help = "TraceSmith's binary trace",
    .lacks = "flows, metadata",
    .files =
        "TraceSmith's `.sbt`, version 0.1, also unfinished ([gpu.md](gpu.md#files-of-tracesmith))",
    .times = "nanoseconds of TraceSmith's clock",
    .probe = probe,
    .open_source = open_source,
};
