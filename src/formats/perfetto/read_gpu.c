/* Perfetto's GPU packets: render stages and kernels as slices, counters, frequency, memory, log,
 * device information.
 *
 * Called by formats/perfetto/read_packet.c, one function per payload. Every GPU is a track, its
 * hardware queues and counters are its children. Stages and queues are named by interned
 * specifications, or in old traces by the index into lists that came with some event. Every stage
 * ends the flow of its submission and starts one for those that wait for it. A counter value
 * describes the time before it unless its descriptor says otherwise: it is put at the time of the
 * previous value, as Perfetto shows it. */
#include "core/perfetto/proto_gpu.h"
#include "formats/perfetto/read.h"

#include "core/base/mem.h"
#include "core/stream/gpu_words.h"

#include <stdio.h>
#include <stdlib.h>

#define OLD_SPECS_MAX 4096u

struct old_spec {
    sv_str name, desc;
};

struct gpu_counter {
    sv_track track;
    bool is_forward, has_last;
    int64_t last_ns;
};

struct sv_pf_gpu {
    struct old_spec *queues, *stages;
    size_t n_queues, cap_queues, n_stages, cap_stages;
    struct sv_map by_id;       /* sequence (0: all), GPU and counter id → number + 1 */
    struct sv_map descriptors; /* sequence → hash of the descriptor in force */
    struct gpu_counter *counters;
    size_t n_counters, cap_counters;
};

static struct sv_pf_gpu *gpu_of(struct sv_pf *r)
{
    if (!r->gpu)
        r->gpu = sv_alloc(sizeof *r->gpu);
    return r->gpu;
}

static sv_track gpu_track(struct sv_pf *r, uint64_t id)
{
    char name[32];
    snprintf(name, sizeof name, "GPU %u", (uint32_t)id);
    return sv_pf_named_track(r, SV_TRACK_GPU, name);
}

static sv_str key(struct sv_pf *r, const char *text)
{
    return sv_dict_cstr(r->dict, text);
}

uint64_t sv_pf_gpu_flow(const struct sv_pf *r, uint64_t event_id, bool is_wait)
{
    uint64_t kind = is_wait ? 0x6770752d77616974ull
                            : 0x6770752d73746167ull; /* apart from other flows */
    return sv_pf_salted(r, sv_mix64(event_id ^ kind));
}

/* ---- stages ---- */

struct stage {
    uint64_t duration, gpu, queue, stage, context, kernel_iid, name_iid;
    bool has_event_id, has_queue_iid, has_stage_iid, has_stage, has_context;
    uint64_t event_id;
    struct sv_pf_blob name, specs;
    int64_t pid;
};

static struct stage read_stage(struct sv_pb w)
{
    struct stage s = {.pid = -1};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_STAGE_EVENT_ID):
            s.event_id = f.u;
            s.has_event_id = true;
            break;
        case SV_PF_V(SV_PF_STAGE_DURATION): s.duration = f.u; break;
        case SV_PF_V(SV_PF_STAGE_HW_QUEUE_ID): s.queue = s.has_queue_iid ? s.queue : f.u; break;
        case SV_PF_V(SV_PF_STAGE_HW_QUEUE_IID):
            s.queue = f.u;
            s.has_queue_iid = true;
            break;
        case SV_PF_V(SV_PF_STAGE_STAGE_ID):
            s.stage = s.has_stage_iid ? s.stage : f.u;
            s.has_stage = true;
            break;
        case SV_PF_V(SV_PF_STAGE_STAGE_IID):
            s.stage = f.u;
            s.has_stage_iid = true;
            break;
        case SV_PF_V(SV_PF_STAGE_GPU_ID): s.gpu = f.u; break;
        case SV_PF_V(SV_PF_STAGE_CONTEXT):
            s.context = f.u;
            s.has_context = true;
            break;
        case SV_PF_B(SV_PF_STAGE_NAME): s.name = sv_pf_bytes(&f); break;
        case SV_PF_V(SV_PF_STAGE_NAME_IID): s.name_iid = f.u; break;
        case SV_PF_V(SV_PF_STAGE_KERNEL_IID): s.kernel_iid = f.u; break;
        case SV_PF_B(SV_PF_STAGE_SPECIFICATIONS): s.specs = sv_pf_bytes(&f); break;
        default: break;
        }
    }
    return s;
}

static struct old_spec read_old_spec(struct sv_pf *r, struct sv_pb w)
{
    struct old_spec s = {0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SPEC_NAME))
            s.name = sv_pf_intern(r, sv_pf_bytes(&f));
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SPEC_DESCRIPTION))
            s.desc = sv_pf_intern(r, sv_pf_bytes(&f));
    }
    return s;
}

/* Queues are numbered from 0 in every list; stages continue where the last list ended, as in
 * Perfetto. */
static void read_old_specs(struct sv_pf *r, struct stage *s)
{
    struct sv_pf_gpu *g = gpu_of(r);
    struct sv_pb w = sv_pf_wire(s->specs);
    struct sv_pb_field f, c;
    size_t queue = 0;
    while (sv_pb_next(&w, &f)) {
        struct sv_pb sub = sv_pb_sub(&f);
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SPECS_HW_QUEUE) && queue < OLD_SPECS_MAX) {
            SV_APPEND(g->queues, queue, g->cap_queues) = read_old_spec(r, sub);
            g->n_queues = g->n_queues > queue ? g->n_queues : queue;
        } else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SPECS_STAGE) && g->n_stages < OLD_SPECS_MAX) {
            SV_APPEND(g->stages, g->n_stages, g->cap_stages) = read_old_spec(r, sub);
        } else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SPECS_CONTEXT)) {
            while (sv_pb_next(&sub, &c))
                if (sv_pf_tag(&c) == SV_PF_V(SV_PF_GPU_CONTEXT_PID))
                    s->pid = (int32_t)c.u;
        }
    }
}

struct spec {
    struct sv_pf_blob name, desc;
    uint64_t category;
    bool has_category;
};

static struct spec interned_spec(struct sv_pf *r, uint64_t iid)
{
    struct spec s = {0};
    struct sv_pb w = sv_pf_wire(sv_pf_blob_at(r, SV_PF_T_GPU_SPEC, iid));
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_B(SV_PF_GPU_SPEC_NAME): s.name = sv_pf_bytes(&f); break;
        case SV_PF_B(SV_PF_GPU_SPEC_DESCRIPTION): s.desc = sv_pf_bytes(&f); break;
        case SV_PF_V(SV_PF_GPU_SPEC_CATEGORY):
            s.category = f.u;
            s.has_category = true;
            break;
        default: break;
        }
    }
    return s;
}

static sv_track queue_track(struct sv_pf *r, const struct stage *s)
{
    const struct sv_pf_gpu *g = gpu_of(r);
    struct old_spec queue = {0};
    if (s->has_queue_iid) {
        struct spec spec = interned_spec(r, s->queue);
        queue = (struct old_spec){sv_pf_intern(r, spec.name), sv_pf_intern(r, spec.desc)};
    } else if (s->queue < g->n_queues) {
        queue = g->queues[s->queue];
    }
    if (!queue.name) {
        char text[48];
        snprintf(text, sizeof text, "Unknown GPU Queue %llu", (unsigned long long)s->queue);
        queue.name = sv_dict_cstr(r->dict, text);
    }
    sv_track t = sv_dict_child(r->dict, gpu_track(r, s->gpu), SV_TRACK_STREAM, queue.name);
    if (queue.desc && !r->dict->tracks[t].desc) {
        r->dict->tracks[t].desc = queue.desc;
        sv_dict_touch(r->dict, t);
    }
    return t;
}

static sv_str stage_name(struct sv_pf *r, const struct stage *s, const struct spec *spec)
{
    const struct sv_pf_gpu *g = gpu_of(r);
    if (s->name_iid)
        return sv_pf_str(r, SV_PF_T_NAME, s->name_iid);
    if (s->name.len > 0)
        return sv_pf_intern(r, s->name);
    if (s->has_stage_iid)
        return sv_pf_intern(r, spec->name);
    if (s->stage < g->n_stages)
        return g->stages[s->stage].name;
    char text[48];
    snprintf(text, sizeof text, "render stage(%llu)", (unsigned long long)s->stage);
    return sv_dict_cstr(r->dict, text);
}

/* ---- arguments of stages ---- */

static void kernel_arg(struct sv_pf *r, struct sv_pb w)
{
    struct sv_pb_field f, v = {0};
    sv_str name = 0;
    while (sv_pb_next(&w, &f)) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_KARG_NAME_IID))
            name = sv_pf_str(r, SV_PF_T_COMPUTE_ARG_NAME, f.u);
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_KARG_NAME))
            name = sv_pf_intern(r, sv_pf_bytes(&f));
        else
            v = f;
    }
    switch (name ? sv_pf_tag(&v) : 0) {
    case SV_PF_V(SV_PF_KARG_INT): sv_pf_arg_int(r, name, (int64_t)v.u); break;
    case SV_PF_V(SV_PF_KARG_UINT): sv_pf_arg_uint(r, name, v.u); break;
    case SV_PF_F(SV_PF_KARG_DOUBLE): sv_pf_arg_double(r, name, sv_pb_double(&v)); break;
    case SV_PF_B(SV_PF_KARG_STRING): sv_pf_arg_text(r, name, v.bytes, (size_t)v.u); break;
    case SV_PF_V(SV_PF_KARG_STRING_IID): {
        struct sv_pf_blob text = sv_pf_blob_at(r, SV_PF_T_ARG_STRING, v.u);
        if (text.bytes)
            sv_pf_arg_text(r, name, text.bytes, text.len);
        break;
    }
    default: break;
    }
}

static void kernel_args(struct sv_pf *r, uint64_t iid)
{
    struct sv_pb w = sv_pf_wire(sv_pf_blob_at(r, SV_PF_T_KERNEL, iid));
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_B(SV_PF_KERNEL_NAME):
            sv_pf_arg_text(r, key(r, "kernel_name"), f.bytes, (size_t)f.u);
            break;
        case SV_PF_B(SV_PF_KERNEL_DEMANGLED):
            sv_pf_arg_text(r, key(r, "kernel_demangled_name"), f.bytes, (size_t)f.u);
            break;
        case SV_PF_B(SV_PF_KERNEL_ARCH):
            sv_pf_arg_text(r, key(r, "arch"), f.bytes, (size_t)f.u);
            break;
        case SV_PF_B(SV_PF_KERNEL_ARGS): kernel_arg(r, sv_pb_sub(&f)); break;
        default: break;
        }
    }
}

static void dimensions(struct sv_pf *r, const char *name, struct sv_pb w)
{
    static const char *const axes[] = {"x", "y", "z"};
    size_t open = sv_batch_open(r->b, key(r, name), SV_ARG_DICT);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.type == SV_PB_VARINT && f.id >= 1 && f.id <= 3)
            sv_pf_arg_uint(r, key(r, axes[f.id - 1]), f.u);
    sv_batch_close(r->b, open);
}

static void launch(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    size_t open = sv_batch_open(r->b, key(r, "launch"), SV_ARG_DICT);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_LAUNCH_GRID))
            dimensions(r, "grid_size", sv_pb_sub(&f));
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_LAUNCH_WORKGROUP))
            dimensions(r, "workgroup_size", sv_pb_sub(&f));
    }
    sv_batch_close(r->b, open);
    w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_LAUNCH_ARGS))
            kernel_arg(r, sv_pb_sub(&f));
}

static void extra_data(struct sv_pf *r, struct sv_pb w)
{
    sv_str name = 0;
    struct sv_pf_blob text = {(const uint8_t *)"", 0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(1))
            name = sv_pf_intern(r, sv_pf_bytes(&f));
        else if (sv_pf_tag(&f) == SV_PF_B(2))
            text = sv_pf_bytes(&f);
    }
    if (name)
        sv_pf_arg_text(r, name, text.bytes, text.len);
}

static void wait_flows(struct sv_pf *r, const struct sv_pb_field *f)
{
    struct sv_pb packed = sv_pb_sub(f);
    uint64_t id = f->u;
    do {
        if (f->type == SV_PB_BYTES && !sv_pb_varint(&packed, &id))
            return;
        sv_pf_arg_special(r, SV_ARG_FLOW, sv_pf_gpu_flow(r, id, true));
    } while (packed.p < packed.end);
}

static void stage_args(struct sv_pf *r, struct sv_pf_blob data)
{
    static const struct {
        uint32_t field;
        const char *key;
    } numbers[] = {
        {SV_PF_STAGE_CONTEXT, "context_id"},
        {SV_PF_STAGE_RENDER_TARGET, "render_target"},
        {SV_PF_STAGE_RENDER_PASS, "render_pass"},
        {SV_PF_STAGE_SUBMISSION_ID, "submission_id"},
        {SV_PF_STAGE_COMMAND_BUFFER, "command_buffer"},
        {SV_PF_STAGE_SUBPASS_MASK, "render_subpass_index_mask"},
        {SV_PF_STAGE_RENDER_PASS_INSTANCE, "render_pass_instance_id"},
    };
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (sv_pf_tag(&f) == SV_PF_V(numbers[i].field))
                sv_pf_arg_uint(r, key(r, numbers[i].key), f.u);
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_STAGE_LAUNCH))
            launch(r, sv_pf_bytes(&f));
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_STAGE_EXTRA_DATA))
            extra_data(r, sv_pb_sub(&f));
        else if (f.id == SV_PF_STAGE_WAIT_IDS)
            wait_flows(r, &f);
    }
}

static int64_t context_pid(struct sv_pf *r, uint64_t iid)
{
    uint32_t value;
    if (!sv_pf_find(r->seq->state, SV_PF_T_GPU_CONTEXT, iid, &value))
        return -1; /* many producers give none */
    struct sv_pb w = sv_pf_wire(r->seq->state->blobs[value]);
    int64_t pid = -1;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_CONTEXT_PID))
            pid = (int32_t)f.u;
    return pid;
}

void sv_pf_gpu_stage(struct sv_pf *r, struct sv_pf_blob data)
{
    struct stage s = read_stage(sv_pf_wire(data));
    struct spec spec = {0};
    if (s.specs.bytes)
        read_old_specs(r, &s);
    if (s.has_context) {
        int64_t pid = context_pid(r, s.context);
        s.pid = pid >= 0 ? pid : s.pid;
    }
    if (!s.has_event_id) /* it only brought specifications */
        return;
    if (s.duration > INT64_MAX)
        sv_source_refuse(&r->source, r->pos);
    if (!r->has_time) {
        sv_pf_damage(r, "GPU stage without time", "dropped");
        return;
    }
    if (s.has_stage_iid)
        spec = interned_spec(r, s.stage);
    sv_track track = queue_track(r, &s);
    sv_str name = stage_name(r, &s, &spec);
    sv_pf_ready(r);
    sv_pf_arg_special(r, SV_ARG_FLOW_END, sv_pf_gpu_flow(r, s.event_id, false));
    sv_pf_arg_special(r, SV_ARG_FLOW_BEGIN, sv_pf_gpu_flow(r, s.event_id, true));
    if (spec.has_category)
        sv_pf_arg_uint(r, key(r, "render_stage_category"), spec.category);
    if (spec.desc.len > 0)
        sv_pf_arg_text(r, key(r, "description"), spec.desc.bytes, spec.desc.len);
    if (s.kernel_iid)
        kernel_args(r, s.kernel_iid);
    stage_args(r, data);
    if (s.pid >= 0)
        sv_pf_arg_int(r, key(r, "pid"), s.pid);
    struct sv_event *e = sv_pf_emit(r, SV_SLICE, track, name);
    sv_pf_lasts(r, e, (int64_t)s.duration);
    /* A stage that is called as a category is, is of that category: our own files. */
    if (sv_gpu_is_work(sv_gpu_class((const char *)spec.name.bytes, spec.name.len)))
        e->cat = sv_pf_intern(r, spec.name);
}

/* ---- counters ---- */

static const char *const unit_names[] = {
    "",   "bit", "Kb", "Mb",     "Gb",    "Tb",        "Pb",       "B",           "KB", "MB", "GB",
    "TB", "PB",  "Hz", "KHz",    "MHz",   "GHz",       "THz",      "PHz",         "ns", "us", "ms",
    "s",  "min", "h",  "Vertex", "Pixel", "Triangle",  "mW",       "W",           "kW", "J",  "V",
    "A",  "C",   "F",  "K",      "%",     "Primitive", "Fragment", "Instruction",
};

static void add_unit(char *text, size_t cap, const char *separator, uint64_t unit)
{
    size_t n = strlen(text);
    const char *name = unit < sizeof unit_names / sizeof *unit_names ? unit_names[unit] : "?";
    if (*name)
        snprintf(text + n, cap - n, "%s%s", separator, name);
}

struct counter_spec {
    uint64_t id, direction;
    bool has_id;
    sv_str name, desc;
    char over[64], under[64];
};

static struct counter_spec read_counter_spec(struct sv_pf *r, struct sv_pb w)
{
    struct counter_spec s = {0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_GPU_CSPEC_ID):
            s.id = f.u;
            s.has_id = true;
            break;
        case SV_PF_B(SV_PF_GPU_CSPEC_NAME): s.name = sv_pf_intern(r, sv_pf_bytes(&f)); break;
        case SV_PF_B(SV_PF_GPU_CSPEC_DESCRIPTION): s.desc = sv_pf_intern(r, sv_pf_bytes(&f)); break;
        case SV_PF_V(SV_PF_GPU_CSPEC_NUMERATOR):
            add_unit(s.over, sizeof s.over, *s.over ? ":" : "", f.u);
            break;
        case SV_PF_V(SV_PF_GPU_CSPEC_DENOMINATOR):
            add_unit(s.under, sizeof s.under, *s.under ? ":" : "/", f.u);
            break;
        case SV_PF_V(11): s.direction = f.u; break; /* value_direction */
        default: break;
        }
    }
    return s;
}

/* Without an interned descriptor (seq 0) the ids of all GPUs are one set. */
static uint64_t counter_key(uint32_t seq, uint64_t gpu, uint64_t id)
{
    if (seq == 0)
        gpu = 0;
    return sv_mix64(sv_mix64((uint64_t)seq << 32 | (uint32_t)gpu) ^ id);
}

static void define_counter(struct sv_pf *r, uint32_t seq, uint64_t gpu,
                           const struct counter_spec *s)
{
    struct sv_pf_gpu *g = gpu_of(r);
    char unit[130];
    bool is_new;
    if (!s->has_id || !s->name)
        return;
    snprintf(unit, sizeof unit, "%s%s", s->over, s->under);
    sv_track t = sv_pf_counter(r, gpu_track(r, gpu), s->name, *unit ? unit : NULL);
    if (s->desc && !r->dict->tracks[t].desc)
        r->dict->tracks[t].desc = s->desc;
    uint64_t *slot = sv_map_add(&g->by_id, counter_key(seq, gpu, s->id), &is_new);
    if (is_new) {
        g->counters =
            sv_grow(g->counters, &g->cap_counters, g->n_counters + 1, sizeof *g->counters);
        g->counters[g->n_counters] = (struct gpu_counter){0};
        *slot = ++g->n_counters;
    }
    struct gpu_counter *c = &g->counters[*slot - 1];
    c->track = t;
    c->is_forward = s->direction == 2;
}

static void read_counter_descriptor(struct sv_pf *r, uint32_t seq, uint64_t gpu,
                                    struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) != SV_PF_B(SV_PF_GPU_DESCRIPTOR_SPECS))
            continue;
        struct counter_spec s = read_counter_spec(r, sv_pb_sub(&f));
        define_counter(r, seq, gpu, &s);
    }
}

/* An interned descriptor stays in force on its sequence: read it again only when it is another
 * one. */
static void use_interned_descriptor(struct sv_pf *r, uint64_t iid, uint64_t *gpu)
{
    struct sv_pf_blob message = sv_pf_blob_at(r, SV_PF_T_GPU_COUNTERS, iid), descriptor = {0};
    struct sv_pb w = sv_pf_wire(message);
    bool is_new;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(2))
            descriptor = sv_pf_bytes(&f);
        else if (sv_pf_tag(&f) == SV_PF_V(3))
            *gpu = f.u;
    }
    uint64_t hash = sv_hash_bytes(message.bytes, message.len, 1) | 1;
    uint64_t *known = sv_map_add(&gpu_of(r)->descriptors, r->seq->id, &is_new);
    if (*known == hash || !descriptor.bytes)
        return;
    *known = hash;
    read_counter_descriptor(r, r->seq->id, *gpu, descriptor);
}

static void counter_value(struct sv_pf *r, struct gpu_counter *c, const struct sv_pb_field *v)
{
    bool is_double = v->type == SV_PB_FIXED64;
    int64_t now = r->ts_ns;
    bool is_shifted = !c->is_forward && !r->copy_texts && (!c->has_last || now >= c->last_ns);
    if (is_shifted) {
        bool had_last = c->has_last;
        r->ts_ns = c->last_ns;
        c->last_ns = now;
        c->has_last = true;
        if (!had_last) {
            r->ts_ns = now;
            return;
        }
    }
    sv_pf_emit_counter(r, c->track, is_double, is_double ? 0 : (int64_t)v->u,
                       is_double ? sv_pb_double(v) : 0);
    r->ts_ns = now;
}

static void read_counter(struct sv_pf *r, uint32_t seq, uint64_t gpu, struct sv_pb w)
{
    struct sv_pf_gpu *g = gpu_of(r);
    struct sv_pb_field f, v = {0};
    uint64_t id = 0;
    while (sv_pb_next(&w, &f)) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_VALUE_ID))
            id = f.u;
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_VALUE_INT) ||
                 sv_pf_tag(&f) == SV_PF_F(SV_PF_GPU_VALUE_DOUBLE))
            v = f;
    }
    const uint64_t *slot = sv_map_find(&g->by_id, counter_key(seq, gpu, id));
    if (!slot || v.id == 0 || !r->has_time)
        sv_pf_damage(r, "GPU counter without descriptor, value or time", "counter %llu of GPU %u",
                     (unsigned long long)id, (uint32_t)gpu);
    else
        counter_value(r, &g->counters[*slot - 1], &v);
}

void sv_pf_gpu_counters(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    uint64_t gpu = 0;
    uint32_t seq = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_COUNTER_GPU_ID))
            gpu = f.u;
    w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_GPU_COUNTER_DESCRIPTOR)) {
            read_counter_descriptor(r, 0, gpu, sv_pf_bytes(&f));
        } else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_COUNTER_DESCRIPTOR_IID)) {
            seq = r->seq->id;
            use_interned_descriptor(r, f.u, &gpu);
        }
    }
    w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_GPU_COUNTER_VALUES))
            read_counter(r, seq, gpu, sv_pb_sub(&f));
}

/* ---- the others ---- */

void sv_pf_gpu_frequency(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    uint64_t gpu = 0, khz = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_FREQUENCY_ID))
            gpu = f.u;
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_GPU_FREQUENCY_KHZ))
            khz = f.u;
    }
    sv_track t = sv_pf_counter(r, gpu_track(r, gpu), key(r, "gpufreq"), "kHz");
    sv_pf_emit_counter(r, t, false, (int64_t)khz, 0);
}

void sv_pf_gpu_memory(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    uint64_t gpu = 0, pid = 0, size = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_GPU_MEM_ID): gpu = f.u; break;
        case SV_PF_V(SV_PF_GPU_MEM_PID): pid = f.u; break;
        case SV_PF_V(SV_PF_GPU_MEM_SIZE): size = f.u; break;
        default: break;
        }
    }
    sv_track parent = pid ? sv_pf_process(r, (int32_t)pid)->track : gpu_track(r, gpu);
    sv_track t = sv_pf_counter(r, parent, key(r, "GPU Memory"), "bytes");
    sv_pf_emit_counter(r, t, false, (int64_t)size, 0);
}

void sv_pf_gpu_log(struct sv_pf *r, struct sv_pf_blob data)
{
    static const char *const severities[] = {"UNSPECIFIED", "VERBOSE", "DEBUG",
                                             "INFO",        "WARNING", "ERROR"};
    struct sv_pb w = sv_pf_wire(data);
    uint64_t severity = 0;
    sv_pf_ready(r);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_GPU_LOG_SEVERITY): severity = f.u; break;
        case SV_PF_B(SV_PF_GPU_LOG_TAG):
            sv_pf_arg_text(r, key(r, "tag"), f.bytes, (size_t)f.u);
            break;
        case SV_PF_B(SV_PF_GPU_LOG_MESSAGE):
            sv_pf_arg_text(r, key(r, "message"), f.bytes, (size_t)f.u);
            break;
        default: break;
        }
    }
    sv_pf_emit(r, SV_INSTANT, sv_pf_named_track(r, SV_TRACK_CUSTOM, "GPU Log"),
               key(r, severity < 6 ? severities[severity] : "UNKNOWN_SEVERITY"));
}

/* ---- devices ---- */

static void device_info(struct sv_pf *r, unsigned n, struct sv_pb w)
{
    static const char *const names[] = {
        [SV_PF_GPU_NAME] = "name",   [SV_PF_GPU_VENDOR] = "vendor",
        [SV_PF_GPU_MODEL] = "model", [SV_PF_GPU_ARCHITECTURE] = "architecture",
        [SV_PF_GPU_UUID] = "uuid",   [SV_PF_GPU_EXTRA] = NULL,
        [SV_PF_GPU_PCI] = "pci_bdf"};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        char name[32], text[40];
        if (f.type != SV_PB_BYTES || f.id > SV_PF_GPU_PCI || !names[f.id])
            continue;
        snprintf(name, sizeof name, "gpu.%u.%s", n, names[f.id]);
        const char *value = (const char *)f.bytes;
        size_t len = (size_t)f.u;
        if (f.id == SV_PF_GPU_UUID) { /* bytes */
            len = len < 16 ? len : 16;
            for (size_t i = 0; i < len; i++)
                snprintf(text + 2 * i, 3, "%02x", f.bytes[i]);
            value = text;
            len *= 2;
        }
        sv_dict_set_meta(r->dict, name, value, len, false);
        if (f.id == SV_PF_GPU_NAME) {
            sv_str desc = sv_dict_str(r->dict, value, len);
            sv_track t = gpu_track(r, n);
            r->dict->tracks[t].desc = desc;
            sv_dict_touch(r->dict, t);
        }
    }
}

void sv_pf_gpu_info(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    unsigned n = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f) && n < 1024;)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_GPU_INFO_GPUS))
            device_info(r, n++, sv_pb_sub(&f));
}

/* ---- the end ---- */

/* After the last value of a counter that looks back nothing is known: it goes to 0. */
void sv_pf_gpu_finish(struct sv_pf *r)
{
    for (size_t i = 0; r->gpu && i < r->gpu->n_counters; i++) {
        const struct gpu_counter *c = &r->gpu->counters[i];
        if (!c->has_last)
            continue;
        r->ts_ns = c->last_ns;
        sv_pf_emit_counter(r, c->track, false, 0, 0);
    }
}

void sv_pf_gpu_free(struct sv_pf *r)
{
    if (!r->gpu)
        return;
    free(r->gpu->queues);
    free(r->gpu->stages);
    free(r->gpu->counters);
    sv_map_fini(&r->gpu->by_id);
    sv_map_fini(&r->gpu->descriptors);
    free(r->gpu);
}
