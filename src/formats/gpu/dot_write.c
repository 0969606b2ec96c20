/* The graph of GPU work as DOT, for Graphviz: what had to wait for what.
 *
 * Opened through the table of formats. Nodes are kernels, copies, fills and waits of streams, and
 * the host calls that launched them. Edges: black, the order of a stream; blue, from the call that
 * launched it; red, a wait: for the newest work of the stream that is waited for, and, for a wait
 * for a whole device, of all its streams. All else of the trace is left out, without a finding: it
 * is not part of the graph. Nodes wait in memory until the end. */
#include "core/base/map.h"
#include "core/base/printable.h"
#include "core/stream/gpu_words.h"
#include "core/stream/text_sink.h"
#include "formats/formats.h"

#include <stdlib.h>
#include <string.h>

struct node {
    int64_t ts_ns, dur_ns;
    sv_str name;
    uint64_t correlation;
    uint32_t stream; /* number in streams; of a host call UINT32_MAX */
    uint8_t class_;
    bool is_for_all;   /* a wait for the whole device */
    int64_t waits_for; /* stream, -1 */
};

struct stream {
    int64_t id;
    uint32_t device; /* number in devices */
    uint32_t last;   /* node + 1 */
    bool is_active;  /* has work that no wait for the device has seen */
};

struct device {
    int64_t id;
    uint32_t barrier; /* node + 1: the newest wait for all its streams */
    uint32_t *active; /* streams */
    size_t n_active, cap_active;
};

struct dot {
    struct sv_text_sink base;
    struct sv_gpu_words words;
    sv_str wait_on, sync_kind;
    struct node *nodes;
    size_t n, cap;
    struct stream *streams;
    size_t n_streams, cap_streams;
    struct device *devices;
    size_t n_devices, cap_devices;
    struct sv_map stream_map, device_map;
    struct sv_map calls; /* correlation → node */
};

/* ---- collecting ---- */

static uint32_t device_number(struct dot *w, int64_t id)
{
    bool is_new;
    uint64_t *n = sv_map_add(&w->device_map, sv_mix64((uint64_t)id), &is_new);
    if (is_new) {
        w->devices = sv_grow(w->devices, &w->cap_devices, w->n_devices + 1, sizeof *w->devices);
        w->devices[w->n_devices] = (struct device){.id = id};
        *n = w->n_devices++;
    }
    return (uint32_t)*n;
}

static uint32_t stream_number(struct dot *w, int64_t device, int64_t id)
{
    bool is_new;
    uint64_t *n =
        sv_map_add(&w->stream_map, sv_mix64((uint64_t)device) ^ sv_mix64(~(uint64_t)id), &is_new);
    if (is_new) {
        w->streams = sv_grow(w->streams, &w->cap_streams, w->n_streams + 1, sizeof *w->streams);
        w->streams[w->n_streams] = (struct stream){.id = id, .device = device_number(w, device)};
        *n = w->n_streams++;
    }
    return (uint32_t)*n;
}

static int64_t number_of(const struct dot *w, sv_track t)
{
    int64_t n = t ? sv_gpu_number_in(sv_dict_text(w->base.dict, w->base.dict->tracks[t].name)) : -1;
    return n < 0 ? 0 : n;
}

static void read_wait(const struct dot *w, const struct sv_event *e, struct node *n)
{
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a)) {
        if (a->key == w->wait_on && a->type == SV_ARG_INT)
            n->waits_for = a->i;
        if (a->key == w->sync_kind && a->type == SV_ARG_TEXT && a->size >= 7 &&
            (memcmp(a->text, "Context", 7) == 0 || memcmp(a->text, "Device ", 7) == 0))
            n->is_for_all = true;
    }
}

static void add(struct dot *w, const struct sv_event *e)
{
    struct sv_gpu_facts f = sv_gpu_facts(&w->words, w->base.dict, e);
    bool is_call = f.class_ == SV_GPU_CALL && f.correlation;
    if (!is_call && !sv_gpu_is_work(f.class_) && f.class_ != SV_GPU_WAIT)
        return;
    struct node n = {e->ts_ns,   e->dur_ns,         e->name, f.correlation,
                     UINT32_MAX, (uint8_t)f.class_, false,   -1};
    if (!is_call) {
        int64_t device = f.device >= 0 ? f.device
                                       : number_of(w, sv_gpu_device_of(w->base.dict, e->track));
        int64_t stream = f.stream >= 0 ? f.stream
                                       : number_of(w, sv_gpu_stream_of(w->base.dict, e->track));
        n.stream = stream_number(w, device, stream);
    }
    if (f.class_ == SV_GPU_WAIT)
        read_wait(w, e, &n);
    w->nodes = sv_grow(w->nodes, &w->cap, w->n + 1, sizeof *w->nodes);
    w->nodes[w->n] = n;
    bool is_new;
    uint64_t *call = is_call ? sv_map_add(&w->calls, f.correlation, &is_new) : NULL;
    if (call && is_new)
        *call = w->n;
    w->n++;
}

/* ---- writing ---- */

static void pass_on(struct dot *w)
{
    if (w->base.buf.len < 65536)
        return;
    sv_output_pass_on(w->base.out, &w->base.buf);
}

static void put_edge(struct dot *w, size_t from, size_t to, const char *look)
{
    sv_buf_printf(&w->base.buf, "  n%zu -> n%zu%s;\n", from, to, look);
    pass_on(w);
}

static const char red[] = " [color=red, style=dashed]", blue[] = " [color=blue]";

/* DOT knows the escapes of JSON that matter: quotes and backslashes. */
/* At most 120 bytes of the name, cut before a character. */
static void put_label(struct dot *w, const struct node *n)
{
    struct sv_text name = sv_dict_text(w->base.dict, n->name);
    struct sv_buf shown;
    uint32_t len = name.len;
    if (len > 120)
        for (len = 120; len > 0 && ((uint8_t)name.bytes[len] & 0xc0) == 0x80;)
            len--;
    sv_buf_init(&shown, 1024);
    sv_buf_printable(&shown, name.bytes, len);
    sv_buf_str(&w->base.buf, "\"");
    for (size_t i = 0; i < shown.len; i++) {
        if (shown.data[i] == '"' || shown.data[i] == '\\')
            sv_buf_byte(&w->base.buf, '\\');
        sv_buf_byte(&w->base.buf, shown.data[i]);
    }
    sv_buf_fini(&shown);
    sv_buf_str(&w->base.buf, len < name.len ? "…\\n" : "\\n");
    sv_buf_us3(&w->base.buf, n->dur_ns > 0 ? n->dur_ns : 0);
    sv_buf_str(&w->base.buf, " us\"");
}

static void put_node(struct dot *w, size_t i, const char *indent)
{
    static const char *const looks[SV_GPU_CLASSES] = {
        [SV_GPU_KERNEL] = "",
        [SV_GPU_COPY] = ", fillcolor=\"#ffe9c7\"",
        [SV_GPU_SET] = ", fillcolor=\"#fff6d6\"",
        [SV_GPU_WAIT] = ", shape=ellipse, fillcolor=\"#f6d6d6\"",
        [SV_GPU_CALL] = ", fillcolor=\"#e8e8e8\"",
    };
    const struct node *n = &w->nodes[i];
    sv_buf_printf(&w->base.buf, "%sn%zu [label=", indent, i);
    put_label(w, n);
    sv_buf_printf(&w->base.buf, "%s];\n", looks[n->class_] ? looks[n->class_] : "");
    pass_on(w);
}

/* All streams of the node's device are done before it, and continue after it. Those without work
 * since the last such wait were done before that one. */
static void wait_for_all(struct dot *w, size_t i)
{
    struct device *d = &w->devices[w->streams[w->nodes[i].stream].device];
    for (size_t k = 0; k < d->n_active; k++) {
        struct stream *other = &w->streams[d->active[k]];
        if (d->active[k] != w->nodes[i].stream)
            put_edge(w, other->last - 1, i, red);
        other->is_active = false;
    }
    d->n_active = 0;
    d->barrier = (uint32_t)i + 1;
}

static void set_last(struct dot *w, uint32_t stream, size_t i)
{
    struct stream *s = &w->streams[stream];
    struct device *d = &w->devices[s->device];
    s->last = (uint32_t)i + 1;
    if (s->is_active)
        return;
    s->is_active = true;
    SV_APPEND(d->active, d->n_active, d->cap_active) = stream;
}

static void put_edges_of(struct dot *w, size_t i)
{
    const struct node *n = &w->nodes[i];
    const struct stream *s = &w->streams[n->stream];
    uint32_t barrier = w->devices[s->device].barrier;
    if (s->last)
        put_edge(w, s->last - 1, i, "");
    if (barrier > s->last)
        put_edge(w, barrier - 1, i, red);
    const uint64_t *call = n->correlation ? sv_map_find(&w->calls, n->correlation) : NULL;
    if (call)
        put_edge(w, (size_t)*call, i, blue);
    if (n->waits_for >= 0) {
        int64_t device = w->devices[s->device].id;
        const struct stream *other = &w->streams[stream_number(w, device, n->waits_for)];
        if (other->last && other != &w->streams[n->stream])
            put_edge(w, other->last - 1, i, red);
    }
    if (n->is_for_all)
        wait_for_all(w, i);
    set_last(w, n->stream, i);
}

static bool is_wanted(const struct dot *w, size_t i, const uint8_t *is_launch)
{
    return w->nodes[i].stream != UINT32_MAX || is_launch[i];
}

/* Nodes by stream, in one pass over all of them. */
static uint32_t *by_stream(const struct dot *w, size_t *starts)
{
    uint32_t *order = sv_alloc((w->n + 1) * sizeof *order);
    for (size_t i = 0; i < w->n; i++)
        if (w->nodes[i].stream != UINT32_MAX)
            starts[w->nodes[i].stream + 1]++;
    for (size_t s = 0; s < w->n_streams; s++)
        starts[s + 1] += starts[s];
    for (size_t i = 0; i < w->n; i++)
        if (w->nodes[i].stream != UINT32_MAX)
            order[starts[w->nodes[i].stream]++] = (uint32_t)i;
    return order;
}

static void put_streams(struct dot *w)
{
    size_t *ends = sv_alloc((w->n_streams + 2) * sizeof *ends);
    uint32_t *order = by_stream(w, ends); /* starts have become ends */
    for (size_t s = 0, i = 0; s < w->n_streams; s++) {
        sv_buf_printf(&w->base.buf,
                      "  subgraph cluster_%zu {\n    label=\"GPU %lld, stream %lld\";\n", s,
                      (long long)w->devices[w->streams[s].device].id, (long long)w->streams[s].id);
        for (; i < ends[s]; i++)
            put_node(w, order[i], "    ");
        sv_buf_str(&w->base.buf, "  }\n");
    }
    free(order);
    free(ends);
}

static void dot_end(struct sv_text_sink *base)
{
    struct dot *w = (struct dot *)base;
    uint8_t *is_launch = sv_alloc(w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        const struct node *n = &w->nodes[i];
        uint64_t *call = n->stream != UINT32_MAX && n->correlation
                             ? sv_map_find(&w->calls, n->correlation)
                             : NULL;
        if (call)
            is_launch[*call] = 1;
    }
    sv_buf_str(
        &w->base.buf,
        "digraph gpu {\n  rankdir=LR;\n  node [shape=box, style=filled, fillcolor=\"#d6e6f6\"];\n");
    for (size_t i = 0; i < w->n; i++)
        if (w->nodes[i].stream == UINT32_MAX && is_wanted(w, i, is_launch))
            put_node(w, i, "  ");
    put_streams(w);
    for (size_t i = 0; i < w->n; i++)
        if (w->nodes[i].stream != UINT32_MAX)
            put_edges_of(w, i);
    sv_buf_str(&w->base.buf, "}\n");
    free(is_launch);
}

/* ---- the sink ---- */

static void dot_event(struct sv_text_sink *base, const struct sv_event *e)
{
    struct dot *w = (struct dot *)base;
    if (e->kind == SV_SLICE)
        add(w, e);
    w->base.is_over = w->n >= UINT32_MAX / 2;
}

static void dot_fini(struct sv_text_sink *base)
{
    struct dot *w = (struct dot *)base;
    sv_gpu_words_fini(&w->words);
    sv_map_fini(&w->stream_map);
    sv_map_fini(&w->device_map);
    for (size_t i = 0; i < w->n_devices; i++)
        free(w->devices[i].active);
    free(w->devices);
    sv_map_fini(&w->calls);
    free(w->nodes);
    free(w->streams);
}

static const struct sv_text_kind kind = {
    .size = sizeof(struct dot),
    .limit = SIZE_MAX,
    .takes = SV_HAS_SLICES | SV_HAS_FLOW_POINTS,
    .too_much = "too much work for one graph; 'stave cut' takes a window",
    .event = dot_event,
    .end = dot_end,
    .fini = dot_fini,
};

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)options;
    (void)err;
    struct dot *w = sv_text_sink_open(&kind, out, dict, report, sink);
    sv_gpu_words_init(&w->words, dict);
    w->wait_on = sv_dict_cstr(dict, "wait_on_stream");
    w->sync_kind = sv_dict_cstr(dict, "cuda_sync_kind");
    return SV_OK;
}

static const char *const suffixes[] = {".dot", ".gv", NULL};

static const struct sv_writer writer = {
    .name = "dot",
    .suffixes = suffixes,
    .open = open_sink,
};

const struct sv_format sv_dot_format = {
    .name = "dot",
    .help = "the graph of GPU work, for Graphviz",
    .lacks = "all but GPU work, the calls that launch it, and what waits for what",
    .writer = &writer,
};
