/* What the rows of Nsight Systems' tables mean, in the vocabulary of docs/gpu.md.
 *
 * Called by nsys_read.c for each row; tables that describe come first. Numbers of enums are those
 * of the export's own ENUM_… tables, which have not changed in the versions seen (2021 to 2026). */
#include "formats/gpu/nsys.h"

#include <stdio.h>
#include <string.h>

#ifdef SV_HAVE_SQLITE /* else nobody asks */

#define INT(c)  sv_nsys_int(s, SV_NSYS_##c)
#define HAS(c)  sv_nsys_has(s, SV_NSYS_##c)
#define TEXT(c) sv_nsys_text(s, SV_NSYS_##c)

static void remember(struct sv_map *m, uint64_t key, sv_str value)
{
    *sv_map_add(m, key, NULL) = value;
}

static sv_str recall(const struct sv_map *m, uint64_t key)
{
    const uint64_t *found = sv_map_find(m, key);
    return found ? (sv_str)*found : 0;
}

static sv_str own_text(struct sv_nsys *s, enum sv_nsys_column c)
{
    struct sv_text t = sv_nsys_text(s, c);
    return sv_dict_str(s->lines.dict, t.bytes, t.len);
}

static uint64_t pair(uint64_t a, uint64_t b)
{
    return sv_mix64(a ^ sv_mix64(b + 0x9e3779b97f4a7c15u));
}

/* ---- what others refer to ---- */

static bool about_string(struct sv_nsys *s, struct sv_batch *b)
{
    (void)b;
    remember(&s->strings, (uint64_t)INT(id), own_text(s, SV_NSYS_value));
    return true;
}

static bool about_process(struct sv_nsys *s, struct sv_batch *b)
{
    (void)b;
    remember(&s->processes, (uint64_t)INT(globalPid) >> 24, own_text(s, SV_NSYS_name));
    return true;
}

static bool about_thread(struct sv_nsys *s, struct sv_batch *b)
{
    (void)b;
    sv_str name = recall(&s->strings, (uint64_t)INT(nameId));
    if (name)
        remember(&s->threads, (uint64_t)INT(globalTid), name);
    return true;
}

static bool about_gpu(struct sv_nsys *s, struct sv_batch *b)
{
    char key[64], value[256];
    struct sv_text name = TEXT(name);
    (void)b;
    remember(&s->gpus, (uint64_t)INT(id), own_text(s, SV_NSYS_name));
    snprintf(key, sizeof key, "gpu.%lld", (long long)INT(id));
    int n = snprintf(value, sizeof value, "%.*s, %lld MiB, %lld SMs, compute %lld.%lld",
                     (int)(name.len < 100 ? name.len : 100), name.bytes,
                     (long long)(INT(totalMemory) >> 20), (long long)INT(smCount),
                     (long long)INT(computeMajor), (long long)INT(computeMinor));
    sv_dict_set_meta(s->lines.dict, key, value, (size_t)n, false);
    return true;
}

static bool about_cuda_device(struct sv_nsys *s, struct sv_batch *b)
{
    (void)b;
    remember(&s->cuda_devices, pair((uint64_t)INT(pid), (uint64_t)INT(cudaId)),
             (sv_str)(INT(gpuId) + 1));
    return true;
}

static bool about_start(struct sv_nsys *s, struct sv_batch *b)
{
    (void)b;
    if (INT(utcEpochNs) <= 0)
        return true;
    s->epoch_ns = INT(utcEpochNs);
    s->lines.dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    return true;
}

static bool about_export(struct sv_nsys *s, struct sv_batch *b)
{
    struct sv_text key = TEXT(name), value = TEXT(value);
    (void)b;
    if (sv_text_is(key, "EXPORT_PRODUCT_VERSION"))
        sv_dict_set_meta(s->lines.dict, "nsys.version", value.bytes, value.len, false);
    else if (sv_text_is(key, "EXPORT_SCHEMA_VERSION"))
        sv_dict_set_meta(s->lines.dict, "nsys.schema", value.bytes, value.len, false);
    return true;
}

static bool about_environment(struct sv_nsys *s, struct sv_batch *b)
{
    struct sv_text key = TEXT(name), value = TEXT(value);
    (void)b;
    if (sv_text_is(key, "Hostname"))
        sv_dict_set_meta(s->lines.dict, "hostname", value.bytes, value.len, false);
    else if (sv_text_is(key, "OsVersion") || sv_text_is(key, "GpuDriverVersion") ||
             sv_text_is(key, "CudaVersion")) {
        char name[64];
        snprintf(name, sizeof name, "nsys.%.*s", (int)key.len, key.bytes);
        sv_dict_set_meta(s->lines.dict, name, value.bytes, value.len, false);
    }
    return true;
}

static bool about_metric(struct sv_nsys *s, struct sv_batch *b)
{
    (void)b;
    remember(&s->metrics, pair((uint64_t)INT(typeId), (uint64_t)INT(metricId)),
             own_text(s, SV_NSYS_metricName));
    return true;
}

enum {
    NVTX_CATEGORY = 33,
    NVTX_MARK = 34,
    NVTX_THREAD = 39,
    NVTX_PUSH_POP = 59,
    NVTX_START_END = 60
};
enum { NVTXT_MARK = 65, NVTXT_PUSH_POP = 70, NVTXT_START_END = 71, NVTX_DOMAIN = 75 };

/* The same table, read once for names and once for ranges. */
static bool about_nvtx(struct sv_nsys *s, struct sv_batch *b)
{
    int64_t type = INT(eventType);
    (void)b;
    if (type != NVTX_DOMAIN && type != NVTX_CATEGORY && type != NVTX_THREAD)
        return true;
    sv_str name = sv_nsys_string(s, SV_NSYS_text, SV_NSYS_textId);
    uint64_t process = (uint64_t)INT(globalTid) >> 24;
    if (type == NVTX_DOMAIN)
        remember(&s->domains, pair(process, (uint64_t)INT(domainId)), name);
    else if (type == NVTX_CATEGORY)
        remember(&s->categories,
                 pair(pair(process, (uint64_t)INT(domainId)), (uint64_t)INT(category)), name);
    else if (name)
        remember(&s->threads, (uint64_t)INT(globalTid), name);
    return true;
}

/* ---- tracks ---- */

static void name_once(struct sv_dict *d, sv_track t, sv_str name)
{
    if (name && !d->tracks[t].name) {
        d->tracks[t].name = name;
        sv_dict_touch(d, t);
    }
}

/* A global id is a machine, a process and a thread: 24 bits for each of the latter. */
static sv_track process_of(struct sv_nsys *s, int64_t global)
{
    struct sv_dict *d = s->lines.dict;
    uint64_t pid = (uint64_t)global >> 24 & 0xffffff;
    sv_track t = sv_dict_process(d, s->lines.space, (int64_t)pid);
    name_once(d, t, recall(&s->processes, (uint64_t)global >> 24));
    return t;
}

static sv_track thread_of(struct sv_nsys *s, int64_t global)
{
    struct sv_dict *d = s->lines.dict;
    uint64_t *known = sv_map_add(&s->tracks, pair((uint64_t)global, 1), NULL);
    if (*known)
        return (sv_track)*known;
    process_of(s, global);
    sv_track t = sv_dict_thread(d, s->lines.space, (int64_t)((uint64_t)global >> 24 & 0xffffff),
                                global & 0xffffff);
    name_once(d, t, recall(&s->threads, (uint64_t)global));
    *sv_map_add(&s->tracks, pair((uint64_t)global, 1), NULL) = t;
    return t;
}

static sv_track device_of(struct sv_nsys *s, int64_t process, int64_t device)
{
    uint64_t key = pair(pair((uint64_t)process >> 24, (uint64_t)device), 2);
    uint64_t *known = sv_map_find(&s->tracks, key);
    if (known)
        return (sv_track)*known;
    uint64_t pid = (uint64_t)process >> 24 & 0xffffff;
    sv_str of_process = recall(&s->cuda_devices, pair(pid, (uint64_t)device));
    sv_str model = recall(&s->gpus, of_process ? of_process - 1u : (uint64_t)device);
    struct sv_text text = sv_dict_text(s->lines.dict, model);
    char name[300];
    int n = snprintf(name, sizeof name, "GPU %lld%s%.*s", (long long)device, text.len ? " " : "",
                     (int)(text.len < 200 ? text.len : 200), text.bytes);
    sv_track t = sv_lines_group(&s->lines, process_of(s, process), SV_TRACK_GPU, name, (size_t)n);
    *sv_map_add(&s->tracks, key, NULL) = t;
    return t;
}

static sv_track stream_of(struct sv_nsys *s)
{
    int64_t device = INT(deviceId), context = INT(contextId), stream = INT(streamId);
    uint64_t key =
        pair(pair(pair((uint64_t)INT(globalPid) >> 24, (uint64_t)device), (uint64_t)context),
             (uint64_t)stream);
    uint64_t *known = sv_map_find(&s->tracks, key);
    if (known)
        return (sv_track)*known;
    char name[48];
    sv_track parent = device_of(s, INT(globalPid), device);
    if (HAS(contextId)) {
        int n = snprintf(name, sizeof name, "Context %lld", (long long)context);
        parent = sv_lines_group(&s->lines, parent, SV_TRACK_CUSTOM, name, (size_t)n);
    }
    int n = snprintf(name, sizeof name, "Stream %lld", (long long)stream);
    sv_track t = sv_lines_group(&s->lines, parent, SV_TRACK_STREAM, name, (size_t)n);
    *sv_map_add(&s->tracks, key, NULL) = t;
    return t;
}

/* ---- events ---- */

/* False: it has none, or one that fits no int64, which is refused. */
static bool time_of(struct sv_nsys *s, enum sv_nsys_column c, int64_t *ns)
{
    if (!sv_nsys_has(s, c))
        return false;
    bool fits = !__builtin_add_overflow(sv_nsys_int(s, c), s->epoch_ns, ns);
    if (!fits)
        sv_source_refuse(&s->lines.source, s->lines.pos);
    return fits;
}

/* A slice from `start` to `end` with the arguments added so far; without an end it never ended. */
static bool put_slice(struct sv_nsys *s, struct sv_batch *b, sv_track track, sv_str name,
                      const char *cat)
{
    int64_t start, end = 0;
    if (!time_of(s, SV_NSYS_start, &start))
        return false;
    bool has_end = sv_nsys_has(s, SV_NSYS_end);
    if (has_end && (!time_of(s, SV_NSYS_end, &end) || end < start))
        return false;
    struct sv_event *e = sv_put_event(&s->lines, b, SV_SLICE, start, track, name, cat);
    if (!has_end)
        e->dur_ns = SV_UNFINISHED;
    else if (!sv_event_until(e, end))
        sv_source_refuse(&s->lines.source, s->lines.pos);
    return true;
}

static uint64_t flow_of(struct sv_nsys *s, int64_t process)
{
    return pair(pair((uint64_t)process >> 24, (uint64_t)INT(correlationId)), s->lines.space + 1);
}

static void add_typed(struct sv_batch *b, unsigned type, uint64_t value)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = type & 0xff;
    a->u = value;
}

/* The number that call and work share, and the arrow between them. */
static void add_correlation(struct sv_nsys *s, struct sv_batch *b, int64_t process, bool has_arrow)
{
    if (!INT(correlationId))
        return;
    add_typed(b, SV_ARG_CORRELATION, (uint64_t)INT(correlationId));
    if (has_arrow)
        add_typed(b, SV_ARG_FLOW, flow_of(s, process));
}

static void add_place(struct sv_nsys *s, struct sv_batch *b)
{
    sv_add_int(&s->lines, b, "device", INT(deviceId));
    if (HAS(contextId))
        sv_add_int(&s->lines, b, "context", INT(contextId));
    sv_add_int(&s->lines, b, "stream", INT(streamId));
}

static void add_graph(struct sv_nsys *s, struct sv_batch *b)
{
    if (INT(graphId))
        sv_add_int(&s->lines, b, "graph id", INT(graphId));
    if (INT(graphNodeId))
        sv_add_int(&s->lines, b, "graph node id", INT(graphNodeId));
}

static void add_three(struct sv_nsys *s, struct sv_batch *b, const char *key,
                      enum sv_nsys_column first)
{
    size_t list = sv_batch_open(b, sv_dict_cstr(s->lines.dict, key), SV_ARG_ARRAY);
    for (unsigned i = 0; i < 3; i++)
        sv_batch_int(b, 0, sv_nsys_int(s, (enum sv_nsys_column)(first + i)));
    sv_batch_close(b, list);
}

static bool put_kernel(struct sv_nsys *s, struct sv_batch *b)
{
    sv_str name = recall(&s->strings, (uint64_t)INT(demangledName));
    if (!name)
        name = recall(&s->strings, (uint64_t)INT(shortName));
    add_correlation(s, b, INT(globalPid), true);
    add_place(s, b);
    add_three(s, b, "grid", SV_NSYS_gridX);
    add_three(s, b, "block", SV_NSYS_blockX);
    sv_add_int(&s->lines, b, "registers per thread", INT(registersPerThread));
    sv_add_int(&s->lines, b, "shared memory", INT(staticSharedMemory) + INT(dynamicSharedMemory));
    if (INT(localMemoryPerThread))
        sv_add_int(&s->lines, b, "local memory per thread", INT(localMemoryPerThread));
    add_graph(s, b);
    return put_slice(s, b, stream_of(s), name ? name : sv_dict_cstr(s->lines.dict, "kernel"),
                     "kernel");
}

static const char *memory_name(int64_t kind)
{
    static const char *const names[] = {"Pageable", "Pinned",        "Device",        "Array",
                                        "Managed",  "Device Static", "Managed Static"};
    return kind >= 0 && kind < 7 ? names[kind] : "Unknown";
}

static void add_bandwidth(struct sv_nsys *s, struct sv_batch *b)
{
    int64_t ns;
    sv_add_int(&s->lines, b, "bytes", INT(bytes));
    if (!__builtin_sub_overflow(INT(end), INT(start), &ns) && ns > 0)
        sv_add_double(&s->lines, b, "memory bandwidth (GB/s)", (double)INT(bytes) / (double)ns);
}

static bool put_copy(struct sv_nsys *s, struct sv_batch *b)
{
    static const char *const kinds[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
                                        "DtoA",    "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
    int64_t kind = INT(copyKind);
    bool is_managed = kind >= 11 && kind <= 13;
    char name[100];
    int n = snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
                     kinds[kind >= 0 && kind < 14 ? kind : 0],
                     is_managed     ? "Managed"
                     : HAS(srcKind) ? memory_name(INT(srcKind))
                                    : "Unknown",
                     is_managed     ? "Managed"
                     : HAS(dstKind) ? memory_name(INT(dstKind))
                                    : "Unknown");
    add_correlation(s, b, INT(globalPid), true);
    add_place(s, b);
    add_bandwidth(s, b);
    if (HAS(srcDeviceId) && HAS(dstDeviceId) && kind == 10) {
        sv_add_int(&s->lines, b, "fromDevice", INT(srcDeviceId));
        sv_add_int(&s->lines, b, "toDevice", INT(dstDeviceId));
    }
    add_graph(s, b);
    return put_slice(s, b, stream_of(s), sv_dict_str(s->lines.dict, name, (size_t)n), "gpu_memcpy");
}

static bool put_memset(struct sv_nsys *s, struct sv_batch *b)
{
    char name[64];
    int n = snprintf(name, sizeof name, "Memset (%s)",
                     HAS(memKind) ? memory_name(INT(memKind)) : "Device");
    add_correlation(s, b, INT(globalPid), true);
    add_place(s, b);
    add_bandwidth(s, b);
    sv_add_int(&s->lines, b, "value", INT(value));
    add_graph(s, b);
    return put_slice(s, b, stream_of(s), sv_dict_str(s->lines.dict, name, (size_t)n), "gpu_memset");
}

static bool put_sync(struct sv_nsys *s, struct sv_batch *b)
{
    static const char *const names[] = {"Synchronization", "Event Sync", "Stream Wait",
                                        "Stream Sync", "Context Sync"};
    int64_t type = INT(syncType), event = INT(eventId);
    add_correlation(s, b, INT(globalPid), false);
    add_place(s, b);
    if (HAS(eventId) && event != 0xffffffff)
        sv_add_int(&s->lines, b, "wait_on_cuda_event_id", event);
    return put_slice(s, b, stream_of(s),
                     sv_dict_cstr(s->lines.dict, names[type >= 0 && type < 5 ? type : 0]),
                     "cuda_sync");
}

static bool put_graph(struct sv_nsys *s, struct sv_batch *b)
{
    add_correlation(s, b, INT(globalPid), true);
    add_place(s, b);
    add_graph(s, b);
    return put_slice(s, b, stream_of(s), sv_dict_cstr(s->lines.dict, "CUDA graph"),
                     "gpu_user_annotation");
}

/* "cudaLaunchKernel_v7000" is cudaLaunchKernel. */
static sv_str call_name(struct sv_nsys *s, sv_str name)
{
    struct sv_text t = sv_dict_text(s->lines.dict, name);
    uint32_t n = t.len;
    while (n > 0 && t.bytes[n - 1] >= '0' && t.bytes[n - 1] <= '9')
        n--;
    if (n == t.len || n < 3 || memcmp(t.bytes + n - 2, "_v", 2) != 0)
        return name;
    char cut[256];
    if (n - 2 >= sizeof cut)
        return name;
    memcpy(cut, t.bytes, n - 2);
    return sv_dict_str(s->lines.dict, cut, n - 2);
}

/* Calls that start work have an arrow; others would have one that leads nowhere. */
static bool starts_work(struct sv_text name)
{
    static const char *const words[] = {"Launch", "Memcpy", "Memset", "Prefetch"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sv_bytes_find(name.bytes, name.len, words[i]))
            return true;
    return false;
}

static bool put_runtime(struct sv_nsys *s, struct sv_batch *b)
{
    sv_str name = call_name(s, recall(&s->strings, (uint64_t)INT(nameId)));
    struct sv_text text = sv_dict_text(s->lines.dict, name);
    add_correlation(s, b, INT(globalTid), starts_work(text));
    if (INT(returnValue))
        sv_add_int(&s->lines, b, "error", INT(returnValue));
    return put_slice(s, b, thread_of(s, INT(globalTid)), name,
                     sv_text_begins(text, "cuda") ? "cuda_runtime" : "cuda_driver");
}

static bool put_os_call(struct sv_nsys *s, struct sv_batch *b)
{
    if (HAS(returnValue))
        sv_add_int(&s->lines, b, "ret", INT(returnValue));
    return put_slice(s, b, thread_of(s, INT(globalTid)), recall(&s->strings, (uint64_t)INT(nameId)),
                     "osrt");
}

static bool put_overhead(struct sv_nsys *s, struct sv_batch *b)
{
    sv_str name = recall(&s->strings, (uint64_t)INT(nameId));
    sv_track t = sv_lines_group(&s->lines, process_of(s, INT(globalTid)), SV_TRACK_CUSTOM,
                                "Profiler overhead", 17);
    if (INT(correlationId))
        sv_add_int(&s->lines, b, "correlation", INT(correlationId));
    return put_slice(s, b, t, name ? name : sv_dict_cstr(s->lines.dict, "overhead"), "overhead");
}

/* ---- NVTX ---- */

static void add_payload(struct sv_nsys *s, struct sv_batch *b)
{
    static const enum sv_nsys_column ints[] = {SV_NSYS_int64Value, SV_NSYS_uint64Value,
                                               SV_NSYS_int32Value, SV_NSYS_uint32Value};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        if (sv_nsys_has(s, ints[i])) {
            sv_add_int(&s->lines, b, "payload", sv_nsys_int(s, ints[i]));
            return;
        }
    }
    if (HAS(doubleValue) || HAS(floatValue)) {
        sv_add_double(
            &s->lines, b, "payload",
            sv_nsys_double(s, HAS(doubleValue) ? SV_NSYS_doubleValue : SV_NSYS_floatValue));
        return;
    }
    sv_str text = sv_nsys_string(s, SV_NSYS_jsonText, SV_NSYS_jsonTextId);
    if (text)
        sv_add_text(&s->lines, b, "payload", sv_dict_text(s->lines.dict, text));
}

static void add_nvtx(struct sv_nsys *s, struct sv_batch *b)
{
    uint64_t process = (uint64_t)INT(globalTid) >> 24, domain = (uint64_t)INT(domainId);
    sv_str name = recall(&s->domains, pair(process, domain));
    if (name)
        sv_add_text(&s->lines, b, "domain", sv_dict_text(s->lines.dict, name));
    if (INT(category)) {
        sv_str category =
            recall(&s->categories, pair(pair(process, domain), (uint64_t)INT(category)));
        if (category)
            sv_add_text(&s->lines, b, "category", sv_dict_text(s->lines.dict, category));
        else
            sv_add_int(&s->lines, b, "category", INT(category));
    }
    if (HAS(color)) {
        char color[16];
        uint32_t argb = (uint32_t)INT(color);
        bool is_opaque = argb >> 24 == 0xff;
        int n = snprintf(color, sizeof color, is_opaque ? "#%06x" : "#%08x",
                         is_opaque ? argb & 0xffffff : argb);
        sv_add_text(&s->lines, b, "color", (struct sv_text){color, (uint32_t)n});
    }
    add_payload(s, b);
}

static bool put_nvtx(struct sv_nsys *s, struct sv_batch *b)
{
    int64_t type = INT(eventType), at;
    sv_track track = thread_of(s, INT(globalTid));
    sv_str name = sv_nsys_string(s, SV_NSYS_text, SV_NSYS_textId);
    switch (type) {
    case NVTX_MARK:
    case NVTXT_MARK:
        if (!time_of(s, SV_NSYS_start, &at))
            return false;
        add_nvtx(s, b);
        sv_put_event(&s->lines, b, SV_INSTANT, at, track, name, "user_annotation");
        return true;
    case NVTX_START_END:
    case NVTXT_START_END: /* may overlap, and end elsewhere */
        track = sv_lines_group(&s->lines, process_of(s, INT(globalTid)), SV_TRACK_CUSTOM,
                               "NVTX ranges", 11);
        sv_add_int(&s->lines, b, "started on thread", INT(globalTid) & 0xffffff);
        break;
    case NVTX_PUSH_POP:
    case NVTXT_PUSH_POP: break;
    default: return true; /* names, read before */
    }
    add_nvtx(s, b);
    return put_slice(s, b, track, name, "user_annotation");
}

/* ---- memory, metrics, messages ---- */

static bool put_memory(struct sv_nsys *s, struct sv_batch *b)
{
    int64_t at;
    bool is_alloc = INT(memoryOperationType) == 0;
    if (!time_of(s, SV_NSYS_start, &at))
        return false;
    add_correlation(s, b, INT(globalPid), false);
    sv_add_int(&s->lines, b, "Addr", INT(address));
    sv_add_int(&s->lines, b, "Bytes", is_alloc ? INT(bytes) : (int64_t)(0 - (uint64_t)INT(bytes)));
    sv_add_int(&s->lines, b, "Device Id", INT(deviceId));
    if (HAS(memKind)) {
        const char *kind = memory_name(INT(memKind));
        sv_add_text(&s->lines, b, "memory", (struct sv_text){kind, (uint32_t)strlen(kind)});
    }
    sv_put_event(&s->lines, b, SV_INSTANT, at, device_of(s, INT(globalPid), INT(deviceId)),
                 sv_dict_cstr(s->lines.dict, is_alloc ? "alloc" : "free"), "gpu_alloc");
    return true;
}

static bool put_metric(struct sv_nsys *s, struct sv_batch *b)
{
    int64_t at;
    uint64_t type = (uint64_t)INT(typeId), metric = (uint64_t)INT(metricId);
    if (!time_of(s, SV_NSYS_timestamp, &at))
        return false;
    uint64_t *known = sv_map_add(&s->tracks, pair(pair(type, metric), 3), NULL);
    if (!*known) {
        char name[300];
        struct sv_text text = sv_dict_text(s->lines.dict, recall(&s->metrics, pair(type, metric)));
        int n = snprintf(name, sizeof name, "GPU %llu", (unsigned long long)(type & 0xff));
        sv_track parent = sv_lines_group(&s->lines, 0, SV_TRACK_GPU, name, (size_t)n);
        snprintf(name, sizeof name, "%.*s", (int)(text.len < 250 ? text.len : 250),
                 text.len ? text.bytes : "metric");
        *sv_map_add(&s->tracks, pair(pair(type, metric), 3), NULL) =
            sv_lines_counter(&s->lines, parent, name, "");
        known = sv_map_find(&s->tracks, pair(pair(type, metric), 3));
    }
    sv_put_counter(&s->lines, b, (sv_track)*known, at, sv_nsys_double(s, SV_NSYS_value));
    return true;
}

static bool put_message(struct sv_nsys *s, struct sv_batch *b)
{
    int64_t at;
    if (!time_of(s, SV_NSYS_timestamp, &at))
        return false;
    struct sv_text text = TEXT(text);
    sv_track t = sv_lines_group(&s->lines, 0, SV_TRACK_CUSTOM, "Nsight Systems", 14);
    sv_add_int(&s->lines, b, "severity", INT(severity));
    sv_put_event(&s->lines, b, SV_INSTANT, at, t,
                 sv_dict_str(s->lines.dict, text.bytes, text.len < 256 ? text.len : 256),
                 "diagnostic");
    return true;
}

#define ABOUT(name, row, needs)          \
    {                                    \
        name, row, SV_NSYS_##needs, true \
    }
#define EVENTS(name, row, needs)          \
    {                                     \
        name, row, SV_NSYS_##needs, false \
    }

const struct sv_nsys_table sv_nsys_tables[] = {
    ABOUT("StringIds", about_string, id),
    ABOUT("PROCESSES", about_process, globalPid),
    ABOUT("ThreadNames", about_thread, globalTid),
    ABOUT("TARGET_INFO_GPU", about_gpu, id),
    ABOUT("TARGET_INFO_CUDA_DEVICE", about_cuda_device, cudaId),
    ABOUT("TARGET_INFO_SESSION_START_TIME", about_start, utcEpochNs),
    ABOUT("TARGET_INFO_SYSTEM_ENV", about_environment, name),
    ABOUT("TARGET_INFO_GPU_METRICS", about_metric, metricId),
    ABOUT("META_DATA_EXPORT", about_export, name),
    ABOUT("NVTX_EVENTS", about_nvtx, eventType),
    EVENTS("CUPTI_ACTIVITY_KIND_KERNEL", put_kernel, start),
    EVENTS("CUPTI_ACTIVITY_KIND_MEMCPY", put_copy, start),
    EVENTS("CUPTI_ACTIVITY_KIND_MEMSET", put_memset, start),
    EVENTS("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", put_sync, start),
    EVENTS("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", put_graph, start),
    EVENTS("CUPTI_ACTIVITY_KIND_RUNTIME", put_runtime, start),
    EVENTS("CUPTI_ACTIVITY_KIND_OVERHEAD", put_overhead, start),
    EVENTS("PROFILER_OVERHEAD", put_overhead, start),
    EVENTS("CUDA_GPU_MEMORY_USAGE_EVENTS", put_memory, start),
    EVENTS("NVTX_EVENTS", put_nvtx, start),
    EVENTS("OSRT_API", put_os_call, start),
    EVENTS("GPU_METRICS", put_metric, timestamp),
    EVENTS("DIAGNOSTIC_EVENT", put_message, timestamp),
    {NULL, NULL, SV_NSYS_start, false}};

#endif
