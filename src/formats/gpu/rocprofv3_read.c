/* rocprofv3 --output-format json: what ROCm's profiler recorded of one or more processes.
 *
 * Opened through the table of formats. Names of kernels, operations and agents may follow the
 * records that use them, so the file is read as a whole (up to the limit of an input's window): a
 * first walk takes the tables, the second one the records of `buffer_records`, group by group.
 * Kernels and copies become work on device and stream, calls slices on their threads, joined by the
 * correlation number (docs/gpu.md). Groups without a meaning here are counted as skipped. */
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/stream/json_members.h"
#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOL "\"rocprofiler-sdk-tool\""

enum { AGENTS_MAX = 4096, AGENT_GPU = 2 };
enum { END_WORK = 1, END_CALL = 2 };

struct agent {
    int64_t handle, type, number; /* number: among the GPUs */
    sv_str name;
};

static const struct group {
    const char *name, *cat;
    enum { GROUP_KERNELS, GROUP_COPIES, GROUP_CALLS, GROUP_MARKERS } what;
} groups[] = {
    {"kernel_dispatch", "kernel", GROUP_KERNELS}, {"memory_copy", "gpu_memcpy", GROUP_COPIES},
    {"hip_api", "hip_runtime", GROUP_CALLS},      {"hsa_api", "gpu_runtime", GROUP_CALLS},
    {"rccl_api", "gpu_runtime", GROUP_CALLS},     {"marker_api", "user_annotation", GROUP_MARKERS},
};

struct rocprof {
    struct sv_source source;
    struct sv_input *in;
    uint32_t space;
    struct sv_members tools, kinds, records; /* processes, groups of one, records of a group */
    const struct group *group;               /* NULL: none is open */
    bool has_tool, is_done;
    struct sv_batch scratch; /* for texts with escapes */
    /* of the process being read */
    int64_t pid;
    struct agent *agents;
    size_t n_agents, cap_agents;
    struct sv_map kernels, operations, markers; /* number → name */
    struct sv_map ends;                         /* correlation number → END_… */
    struct {
        sv_str device, stream, grid, block, bytes, shared, dispatch;
    } key;
};

static int probe(const uint8_t *head, size_t n)
{
    size_t i = 0, len = strlen(TOOL);
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    if (i == n || head[i++] != '{')
        return 0;
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    return n - i >= len && memcmp(head + i, TOOL, len) == 0 ? 100 : 0;
}

static int64_t place_of(const struct rocprof *s, const void *at)
{
    return (int64_t)s->in->pos + ((const uint8_t *)at - s->in->data);
}

static void damage(struct rocprof *s, const char *what, const void *at)
{
    sv_report_add(s->source.report, SV_DAMAGE, what, 1, place_of(s, at), NULL);
}

/* ---- values ---- */

static struct sv_members inside(const struct sv_member *m)
{
    return sv_members_of(m->value.bytes, m->value.len);
}

static bool find(const struct sv_member *object, const char *key, struct sv_member *out)
{
    struct sv_members all = inside(object);
    while (object->type == '{' && sv_member_next(&all, out))
        if (sv_member_is(out, key))
            return true;
    return false;
}

/* A number, or {"handle": number}. */
static int64_t handle(const struct sv_member *m)
{
    struct sv_member inner;
    int64_t v;
    if (sv_member_i64(m, &v))
        return v;
    return m->type == '{' && find(m, "handle", &inner) && sv_member_i64(&inner, &v) ? v : -1;
}

static sv_str text(struct rocprof *s, const struct sv_member *m)
{
    if (m->type != '"' || m->value.len > SV_TEXT_MAX)
        return 0;
    struct sv_text t = sv_member_text(m, &s->scratch);
    sv_str str = sv_dict_str(s->source.dict, t.bytes, t.len);
    sv_batch_reset(&s->scratch);
    return str;
}

/* ---- tables of a process ---- */

static void take_agents(struct rocprof *s, struct sv_members list)
{
    int64_t n_gpus = 0;
    for (struct sv_member one, m; s->n_agents < AGENTS_MAX && sv_member_next(&list, &one);) {
        struct agent a = {.handle = -1, .number = -1};
        int64_t given = -1;
        for (struct sv_members in = inside(&one); sv_member_next(&in, &m);) {
            if (sv_member_is(&m, "id"))
                a.handle = handle(&m);
            else if (sv_member_is(&m, "type"))
                a.type = handle(&m);
            else if (sv_member_is(&m, "logical_node_type_id"))
                given = handle(&m);
            else if (sv_member_is(&m, "product_name") || (sv_member_is(&m, "name") && !a.name))
                a.name = text(s, &m);
        }
        if (a.type == AGENT_GPU) {
            a.number = given >= 0 ? given : n_gpus;
            n_gpus++;
        }
        s->agents = sv_grow(s->agents, &s->cap_agents, s->n_agents + 1, sizeof a);
        s->agents[s->n_agents++] = a;
    }
}

static void take_kernels(struct rocprof *s, struct sv_members list)
{
    for (struct sv_member one, m; sv_member_next(&list, &one);) {
        int64_t id = -1;
        sv_str name = 0, raw = 0;
        for (struct sv_members in = inside(&one); sv_member_next(&in, &m);) {
            if (sv_member_is(&m, "kernel_id"))
                id = handle(&m);
            else if (sv_member_is(&m, "formatted_kernel_name"))
                name = text(s, &m);
            else if (sv_member_is(&m, "kernel_name"))
                raw = text(s, &m);
        }
        if (id >= 0)
            *sv_map_add(&s->kernels, (uint64_t)id, NULL) = name ? name : raw;
    }
}

static uint64_t operation_key(int64_t kind, int64_t operation)
{
    return (uint64_t)kind << 32 ^ (uint64_t)operation;
}

/* [{"kind": "HIP_RUNTIME_API", "operations": ["hipMalloc", …]}, …]: both are numbered by their
 * places. */
static void take_operations(struct rocprof *s, struct sv_members list)
{
    struct sv_member kind, names, name;
    for (int64_t k = 0; sv_member_next(&list, &kind); k++) {
        if (!find(&kind, "operations", &names))
            continue;
        struct sv_members in = inside(&names);
        for (int64_t i = 0; sv_member_next(&in, &name); i++)
            *sv_map_add(&s->operations, operation_key(k, i), NULL) = text(s, &name);
    }
}

static void take_markers(struct rocprof *s, struct sv_members list)
{
    for (struct sv_member one, key, value; sv_member_next(&list, &one);)
        if (find(&one, "key", &key) && find(&one, "value", &value) && handle(&key) >= 0)
            *sv_map_add(&s->markers, (uint64_t)handle(&key), NULL) = text(s, &value);
}

static void take_metadata(struct rocprof *s, const struct sv_member *metadata)
{
    struct sv_member m, node;
    if (find(metadata, "pid", &m) && handle(&m) >= 0)
        s->pid = handle(&m) & INT32_MAX;
    if (find(metadata, "node", &node) && find(&node, "hostname", &m)) {
        struct sv_text host = sv_dict_text(s->source.dict, text(s, &m));
        sv_dict_set_meta(s->source.dict, "hostname", host.bytes, host.len, false);
    }
}

static int64_t correlation(const struct sv_member *record)
{
    struct sv_member m, internal;
    if (!find(record, "correlation_id", &m))
        return -1;
    return m.type == '{' ? find(&m, "internal", &internal) ? handle(&internal) : -1 : handle(&m);
}

static const struct group *group_of(const struct sv_member *kind)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (kind->type == '[' && sv_member_is(kind, groups[i].name))
            return &groups[i];
    return NULL;
}

static bool is_work(const struct group *g)
{
    return g->what == GROUP_KERNELS || g->what == GROUP_COPIES;
}

/* Which numbers have both a call and work: an arrow needs two ends. */
static void find_arrows(struct rocprof *s, struct sv_members kinds)
{
    for (struct sv_member kind, record; sv_member_next(&kinds, &kind);) {
        const struct group *g = group_of(&kind);
        if (!g || g->what == GROUP_MARKERS)
            continue;
        for (struct sv_members in = inside(&kind); sv_member_next(&in, &record);) {
            int64_t id = correlation(&record);
            if (id > 0)
                *sv_map_add(&s->ends, (uint64_t)id, NULL) |= is_work(g) ? END_WORK : END_CALL;
        }
    }
}

static bool has_arrow(const struct rocprof *s, int64_t correlation)
{
    const uint64_t *ends = sv_map_find(&s->ends, (uint64_t)correlation);
    return ends && *ends == (END_WORK | END_CALL);
}

static void forget_tables(struct rocprof *s)
{
    sv_map_fini(&s->kernels);
    sv_map_fini(&s->operations);
    sv_map_fini(&s->markers);
    sv_map_fini(&s->ends);
    s->kernels = s->operations = s->markers = s->ends = (struct sv_map){0};
    s->n_agents = 0;
    s->pid = 0;
}

static void open_tool(struct rocprof *s, const struct sv_member *tool)
{
    struct sv_member m, part;
    struct sv_members in = inside(tool);
    forget_tables(s);
    s->kinds = (struct sv_members){0};
    while (sv_member_next(&in, &m)) {
        if (sv_member_is(&m, "metadata"))
            take_metadata(s, &m);
        else if (sv_member_is(&m, "agents"))
            take_agents(s, inside(&m));
        else if (sv_member_is(&m, "kernel_symbols"))
            take_kernels(s, inside(&m));
        else if (sv_member_is(&m, "buffer_records") && m.type == '{')
            s->kinds = inside(&m);
        else if (sv_member_is(&m, "strings") && find(&m, "buffer_records", &part))
            take_operations(s, inside(&part));
        if (sv_member_is(&m, "strings") && find(&m, "marker_api", &part))
            take_markers(s, inside(&part));
    }
    if (in.is_bad)
        damage(s, "process truncated or not JSON", tool->value.bytes);
    s->has_tool = s->kinds.p != NULL;
    if (s->has_tool)
        find_arrows(s, s->kinds);
    else
        damage(s, "process without buffer_records", tool->value.bytes);
}

/* ---- records ---- */

struct record {
    int64_t begin, end, thread, correlation, kind, operation, stream, queue, bytes;
    int64_t agent, from, to, kernel, dispatch, shared;
    int64_t grid[3], block[3];
};

static void take_sizes(const struct sv_member *m, int64_t *sizes)
{
    struct sv_member one;
    for (struct sv_members in = inside(m); sv_member_next(&in, &one);)
        if (one.key.len == 1 && *one.key.bytes >= 'x' && *one.key.bytes <= 'z')
            sizes[*one.key.bytes - 'x'] = handle(&one);
}

/* Members that are numbers, of a record and of its dispatch_info. */
static void take_number(struct record *r, const struct sv_member *m)
{
    const struct {
        const char *key;
        int64_t *to;
    } rows[] = {
        {"start_timestamp", &r->begin}, {"end_timestamp", &r->end},
        {"thread_id", &r->thread},      {"kind", &r->kind},
        {"operation", &r->operation},   {"stream_id", &r->stream},
        {"queue_id", &r->queue},        {"bytes", &r->bytes},
        {"agent_id", &r->agent},        {"src_agent_id", &r->from},
        {"dst_agent_id", &r->to},       {"kernel_id", &r->kernel},
        {"dispatch_id", &r->dispatch},  {"group_segment_size", &r->shared},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sv_member_is(m, rows[i].key))
            *rows[i].to = handle(m);
}

/* A time that is a number, but fits no int64. */
static bool has_wide_time(const struct sv_member *object)
{
    struct sv_member m;
    return (find(object, "start_timestamp", &m) && sv_member_is_wide(&m)) ||
           (find(object, "end_timestamp", &m) && sv_member_is_wide(&m));
}

static bool take_record(const struct sv_member *object, struct record *r)
{
    struct sv_member m, inner;
    struct sv_members in = inside(object);
    *r = (struct record){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, {0}, {0}};
    while (sv_member_next(&in, &m)) {
        take_number(r, &m);
        if (!sv_member_is(&m, "dispatch_info") || m.type != '{')
            continue;
        for (struct sv_members info = inside(&m); sv_member_next(&info, &inner);) {
            take_number(r, &inner);
            if (sv_member_is(&inner, "grid_size"))
                take_sizes(&inner, r->grid);
            else if (sv_member_is(&inner, "workgroup_size"))
                take_sizes(&inner, r->block);
        }
    }
    r->correlation = correlation(object);
    return r->begin >= 0 && r->end >= 0;
}

static const struct agent *gpu(const struct rocprof *s, int64_t handle)
{
    for (size_t i = 0; i < s->n_agents; i++)
        if (s->agents[i].handle == handle && s->agents[i].type == AGENT_GPU)
            return &s->agents[i];
    return NULL;
}

static const struct agent *gpu_of(const struct rocprof *s, const struct record *r)
{
    const struct agent *a = gpu(s, r->agent);
    a = a ? a : gpu(s, r->to);
    return a ? a : gpu(s, r->from);
}

static sv_track work_track(struct rocprof *s, const struct record *r, const struct agent *a)
{
    struct sv_dict *d = s->source.dict;
    char name[256];
    bool has_stream = r->stream >= 0 || r->queue < 0;
    sv_track process = sv_dict_process(d, s->space, s->pid);
    snprintf(name, sizeof name, "GPU %lld%s%.200s", a ? (long long)a->number : 0LL,
             a && a->name ? " " : "", a && a->name ? sv_dict_text(d, a->name).bytes : "");
    sv_track device = sv_dict_child(d, process, SV_TRACK_GPU, sv_dict_cstr(d, name));
    snprintf(name, sizeof name, "%s %lld", has_stream ? "Stream" : "Queue",
             (long long)(has_stream ? r->stream >= 0 ? r->stream : 0 : r->queue));
    return sv_dict_child(d, device, SV_TRACK_STREAM, sv_dict_cstr(d, name));
}

static void put_number(struct sv_batch *b, sv_str key, unsigned type, int64_t v)
{
    if (v < 0)
        return;
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = type & 0xff;
    a->i = v;
}

static void put_sizes(struct sv_batch *b, sv_str key, const int64_t *v)
{
    size_t open = sv_batch_open(b, key, SV_ARG_ARRAY);
    for (int i = 0; i < 3; i++)
        put_number(b, 0, SV_ARG_INT, v[i] < 0 ? 0 : v[i]);
    sv_batch_close(b, open);
}

static void put_work(struct rocprof *s, struct sv_batch *b, const struct record *r,
                     const struct agent *a)
{
    put_number(b, s->key.device, SV_ARG_INT, a ? a->number : -1);
    put_number(b, s->key.stream, SV_ARG_INT, r->stream >= 0 ? r->stream : r->queue);
    put_number(b, s->key.bytes, SV_ARG_INT, r->bytes);
    put_number(b, s->key.shared, SV_ARG_INT, r->shared);
    put_number(b, s->key.dispatch, SV_ARG_INT, r->dispatch);
    if (s->group->what != GROUP_KERNELS)
        return;
    int64_t grid[3]; /* rocprof counts work items, the vocabulary groups of them */
    for (int i = 0; i < 3; i++)
        grid[i] = r->block[i] > 0 ? (r->grid[i] + r->block[i] - 1) / r->block[i] : r->grid[i];
    put_sizes(b, s->key.grid, grid);
    put_sizes(b, s->key.block, r->block);
}

static sv_str name_of(struct rocprof *s, const struct record *r)
{
    const uint64_t *name = NULL;
    if (s->group->what == GROUP_KERNELS)
        name = sv_map_find(&s->kernels, (uint64_t)r->kernel);
    if (s->group->what == GROUP_MARKERS && r->correlation >= 0)
        name = sv_map_find(&s->markers, (uint64_t)r->correlation);
    if (!name && s->group->what != GROUP_KERNELS)
        name = sv_map_find(&s->operations, operation_key(r->kind, r->operation));
    return name && *name ? (sv_str)*name : sv_dict_cstr(s->source.dict, s->group->name);
}

static void put_record(struct rocprof *s, struct sv_batch *b, const struct sv_member *object)
{
    struct sv_dict *d = s->source.dict;
    struct record r;
    if (object->type != '{' || !take_record(object, &r)) {
        if (has_wide_time(object))
            sv_source_refuse(&s->source, place_of(s, object->value.bytes));
        else
            damage(s, "record without its times", object->value.bytes);
        return;
    }
    bool works = is_work(s->group);
    const struct agent *a = gpu_of(s, &r);
    if (r.end < r.begin)
        damage(s, "record that ends before it begins", object->value.bytes);
    sv_track track = works ? work_track(s, &r, a)
                           : sv_dict_thread(d, s->space, s->pid, r.thread < 0 ? 0 : r.thread);
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.ts_ns = r.begin,
                           .track = track,
                           .name = name_of(s, &r),
                           .cat = sv_dict_cstr(d, s->group->cat),
                           .kind = SV_SLICE};
    if (!sv_event_until(e, r.end))
        sv_source_refuse(&s->source, place_of(s, object->value.bytes));
    if (r.correlation > 0) {
        put_number(b, 0, SV_ARG_CORRELATION, r.correlation);
        if (s->group->what != GROUP_MARKERS && has_arrow(s, r.correlation)) {
            uint64_t process = d->tracks[sv_dict_process(d, s->space, s->pid)].uuid;
            struct sv_arg *arg = sv_batch_arg(b);
            arg->type = works ? SV_ARG_FLOW_END : SV_ARG_FLOW_BEGIN;
            arg->u = sv_mix64((uint64_t)r.correlation ^ process);
        }
    }
    if (works)
        put_work(s, b, &r, a);
    sv_batch_finish(b, e);
}

/* ---- the walk ---- */

static void open_group(struct rocprof *s, const struct sv_member *kind)
{
    struct sv_member first;
    struct sv_members in = inside(kind);
    s->group = group_of(kind);
    if (s->group)
        s->records = in;
    else if (kind->type != '[')
        damage(s, "group that is not a list", kind->value.bytes);
    else if (sv_member_next(&in, &first))
        sv_report_add(s->source.report, SV_SKIPPED, "group of records that is not read", 1,
                      (int64_t)s->in->pos + ((const uint8_t *)kind->key.bytes - s->in->data),
                      "read are kernels, copies, calls of HIP, HSA and RCCL, markers");
}

/* One step towards the next record: of the open group, the next group, the next process. */
static void step(struct rocprof *s, struct sv_batch *b)
{
    struct sv_member m;
    if (s->group) {
        if (sv_member_next(&s->records, &m)) {
            put_record(s, b, &m);
            return;
        }
        if (s->records.is_bad)
            damage(s, "records truncated or not JSON", s->records.p);
        s->group = NULL;
    } else if (s->has_tool) {
        s->has_tool = sv_member_next(&s->kinds, &m);
        if (s->has_tool)
            open_group(s, &m);
        else if (s->kinds.is_bad)
            damage(s, "groups truncated or not JSON", s->kinds.p);
    } else if (sv_member_next(&s->tools, &m)) {
        open_tool(s, &m);
    } else {
        if (s->tools.is_bad)
            damage(s, "file truncated or not JSON", s->tools.p);
        s->is_done = true;
    }
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct rocprof *s = (struct rocprof *)source;
    while (b->n < SV_BATCH && !s->is_done)
        step(s, b);
    return sv_source_given(source, b->n, err);
}

/* ---- life ---- */

static void close_source(struct sv_source *source)
{
    struct rocprof *s = (struct rocprof *)source;
    forget_tables(s);
    sv_batch_fini(&s->scratch);
    free(s->agents);
    free(s);
}

/* The list of processes; a cut file has no end of it, and is walked as far as it goes. */
static void find_tools(struct rocprof *s)
{
    const char *data = (const char *)s->in->data;
    struct sv_members top = sv_members_of(data, s->in->len);
    for (struct sv_member m; sv_member_next(&top, &m);) {
        if (sv_member_is(&m, "rocprofiler-sdk-tool") && m.type == '[') {
            s->tools = inside(&m);
            return;
        }
    }
    s->is_done = true;
    damage(s, "no whole list of processes: truncated or not JSON", data);
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    int code = sv_input_need_all(
        in, "too large for rocprofv3's JSON: 1 GiB at most; its pftrace is read, too", err);
    if (code < 0)
        return code;
    struct rocprof *s = sv_alloc(sizeof *s);
    s->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
                                   .dict = dict,
                                   .report = report};
    s->in = in;
    s->space = options ? options->space : 0;
    sv_batch_init(&s->scratch);
    s->key.device = sv_dict_cstr(dict, "device");
    s->key.stream = sv_dict_cstr(dict, "stream");
    s->key.grid = sv_dict_cstr(dict, "grid");
    s->key.block = sv_dict_cstr(dict, "block");
    s->key.bytes = sv_dict_cstr(dict, "bytes");
    s->key.shared = sv_dict_cstr(dict, "shared memory");
    s->key.dispatch = sv_dict_cstr(dict, "dispatch");
    find_tools(s);
    *out = &s->source;
    return 0;
}

const struct sv_format sv_rocprofv3_format = {
    .name = "rocprofv3",
    .help = "JSON of ROCm's rocprofv3",
    .lacks = "a relation to the machine's clocks",
    .files = "JSON of ROCm's `rocprofv3 --output-format json` ([gpu.md](gpu.md))",
    .times = "nanoseconds of the profiler's clock",
    .probe = probe,
    .open_source = open_source,
};
