/* Perfetto packets that say something about the trace: processes and threads, their memory,
 * metadata, losses, triggers.
 *
 * Called by formats/perfetto/read_packet.c, one function per payload; sv_pf_meta_finish() at the
 * end reports what the recording service itself lost (each TraceStats replaces the one before, so
 * only the last counts). */
#include "core/perfetto/stave.h"
#include "formats/perfetto/read.h"

#include "core/base/mem.h"
#include "store/once_paths.h"

#include <stdio.h>

/* ---- ProcessTree ---- */

struct process {
    int64_t pid, ppid;
    struct sv_pf_blob argv0;
    uint32_t n_args;
    bool is_comm;
    uint64_t start_ns;
    bool has_start;
};

/* "kworker/45:2-mm_percpu_wq": the queue changes all the time, the worker stays. */
static struct sv_pf_blob without_queue(struct sv_pf_blob name)
{
    if (name.len < 8 || memcmp(name.bytes, "kworker/", 8) != 0)
        return name;
    const uint8_t *cut = memchr(name.bytes, '-', name.len);
    if (!cut)
        cut = memchr(name.bytes, '+', name.len);
    if (cut)
        name.len = (size_t)(cut - name.bytes);
    return name;
}

static sv_str command_line(struct sv_pf *r, struct sv_pf_blob process)
{
    char text[4096];
    size_t n = 0;
    struct sv_pb w = sv_pf_wire(process);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) != SV_PF_B(SV_PF_TREE_CMDLINE))
            continue;
        if (n > 0 && n < sizeof text)
            text[n++] = ' ';
        size_t more = f.u < sizeof text - n ? (size_t)f.u : sizeof text - n;
        memcpy(text + n, f.bytes, more);
        n += more;
    }
    return sv_dict_str(r->dict, text, n);
}

static struct process read_process(struct sv_pb w)
{
    struct process p = {0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_TREE_PID): p.pid = (int32_t)f.u; break;
        case SV_PF_V(SV_PF_TREE_PPID): p.ppid = (int32_t)f.u; break;
        case SV_PF_B(SV_PF_TREE_CMDLINE):
            if (p.n_args++ == 0)
                p.argv0 = sv_pf_bytes(&f);
            break;
        case SV_PF_V(SV_PF_TREE_CMDLINE_IS_COMM): p.is_comm = f.u != 0; break;
        case SV_PF_V(SV_PF_TREE_START_FROM_BOOT):
            p.start_ns = f.u;
            p.has_start = true;
            break;
        default: break;
        }
    }
    return p;
}

static void tree_process(struct sv_pf *r, struct sv_pf_blob data)
{
    struct process p = read_process(sv_pf_wire(data));
    struct sv_pf_track *t = sv_pf_process(r, p.pid);
    if (p.n_args == 0)
        return;
    struct sv_pf_blob name = p.argv0;
    if (p.ppid == 2) /* a child of kthreadd */
        name = without_queue(name);
    /* Some programs write their whole command line into one argument. */
    const uint8_t *blank = p.n_args == 1 && name.len ? memchr(name.bytes, ' ', name.len) : NULL;
    if (blank)
        name.len = (size_t)(blank - name.bytes);
    sv_str cmdline = command_line(r, data);
    sv_pf_name(r, t, SV_PF_NAME_TREE_PROCESS,
               sv_dict_str(r->dict, (const char *)name.bytes, name.len));
    struct sv_track_info *info = &r->dict->tracks[t->track];
    if (!info->desc)
        info->desc = cmdline;
    if (p.has_start && info->start_ns == 0 && p.start_ns <= INT64_MAX)
        info->start_ns = sv_pf_time_of(r, SV_CLOCK_BOOTTIME, (int64_t)p.start_ns);
    sv_dict_touch(r->dict, t->track);
    if (p.is_comm)
        sv_pf_name(r, sv_pf_thread(r, p.pid, p.pid), SV_PF_NAME_TREE_THREAD, cmdline);
}

static void tree_thread(struct sv_pf *r, struct sv_pb w)
{
    int64_t tid = 0, tgid = 0;
    struct sv_pf_blob name = {0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_TREE_TID): tid = (int32_t)f.u; break;
        case SV_PF_V(SV_PF_TREE_TGID): tgid = (int32_t)f.u; break;
        case SV_PF_B(SV_PF_TREE_THREAD_NAME): name = sv_pf_bytes(&f); break;
        default: break;
        }
    }
    if (tid == tgid && name.bytes)
        name = without_queue(name);
    sv_pf_name(r, sv_pf_thread(r, tgid, tid), SV_PF_NAME_TREE_THREAD,
               sv_dict_str(r->dict, (const char *)name.bytes, name.len));
}

void sv_pf_process_tree(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_TREE_PROCESSES))
            tree_process(r, sv_pf_bytes(&f));
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_TREE_THREADS))
            tree_thread(r, sv_pb_sub(&f));
    }
    if (w.bad)
        sv_pf_damage(r, "malformed process tree", "its last part is damaged");
}

/* ---- ProcessStats ---- */

struct stat_counter {
    uint32_t field;
    int32_t factor;
    const char *name, *unit;
};

static const struct stat_counter stat_counters[] = {
    {2, 1024, "mem.virt", "bytes"},
    {3, 1024, "mem.rss", "bytes"},
    {4, 1024, "mem.rss.anon", "bytes"},
    {5, 1024, "mem.rss.file", "bytes"},
    {6, 1024, "mem.rss.shmem", "bytes"},
    {7, 1024, "mem.swap", "bytes"},
    {8, 1024, "mem.locked", "bytes"},
    {9, 1024, "mem.rss.watermark", "bytes"},
    {10, 1, "oom_score_adj", NULL},
    {13, 1024, "chrome.private_footprint", "bytes"},
    {14, 1024, "chrome.peak_resident_set", "bytes"},
    {16, 1024, "mem.smaps.rss", "bytes"},
    {17, 1024, "mem.smaps.pss", "bytes"},
    {18, 1024, "mem.smaps.pss.anon", "bytes"},
    {19, 1024, "mem.smaps.pss.file", "bytes"},
    {20, 1024, "mem.smaps.pss.shmem", "bytes"},
    {21, 1, "runtime.user_ns", "ns"},
    {22, 1, "runtime.kernel_ns", "ns"},
    {23, 1024, "mem.smaps.swap.pss", "bytes"},
    {24, 1024, "mem.dmabuf_rss", "bytes"},
};

static void stats_counter(struct sv_pf *r, sv_track process, const struct sv_pb_field *f)
{
    for (size_t i = 0; i < sizeof stat_counters / sizeof *stat_counters; i++) {
        const struct stat_counter *c = &stat_counters[i];
        int64_t value;
        if (c->field != f->id || __builtin_mul_overflow((int64_t)f->u, c->factor, &value))
            continue;
        sv_track t = sv_pf_counter(r, process, sv_dict_cstr(r->dict, c->name), c->unit);
        sv_pf_emit_counter(r, t, false, value, 0);
    }
}

static void stats_process(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    struct sv_pb_field f, g;
    int64_t pid = 0;
    while (sv_pb_next(&w, &f))
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_STATS_PID))
            pid = (int32_t)f.u;
    sv_track process = sv_pf_process(r, pid)->track;
    w = sv_pf_wire(data);
    while (sv_pb_next(&w, &f)) {
        if (f.type == SV_PB_VARINT) {
            stats_counter(r, process, &f);
        } else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_STATS_THREADS)) {
            struct sv_pb thread = sv_pb_sub(&f);
            while (sv_pb_next(&thread, &g))
                if (sv_pf_tag(&g) == SV_PF_V(SV_PF_TREE_TID))
                    sv_pf_thread(r, pid, (int32_t)g.u);
        }
    }
}

void sv_pf_process_stats(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_STATS_PROCESSES))
            stats_process(r, sv_pf_bytes(&f));
}

/* ---- metadata ---- */

static void set_meta(struct sv_pf *r, const char *key, struct sv_pf_blob text, bool is_json)
{
    if (!sv_once_paths_asked(&r->once_paths, r->dict, key, (const char *)text.bytes, text.len))
        sv_dict_set_meta(r->dict, key, (const char *)text.bytes, text.len, is_json);
}

static void set_meta_number(struct sv_pf *r, const char *key, int64_t value)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)value);
    sv_dict_set_meta(r->dict, key, text, (size_t)n, false);
}

struct meta_field {
    uint32_t field;
    const char *key;
};

/* Fields of a flat message, texts and numbers alike. */
static void set_meta_fields(struct sv_pf *r, struct sv_pf_blob data,
                            const struct meta_field *fields, size_t n)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        for (size_t i = 0; i < n; i++) {
            if (fields[i].field != f.id)
                continue;
            if (f.type == SV_PB_BYTES)
                set_meta(r, fields[i].key, sv_pf_bytes(&f), false);
            else if (f.type == SV_PB_VARINT)
                set_meta_number(r, fields[i].key, (int64_t)f.u);
        }
    }
}

void sv_pf_trace_uuid(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    uint64_t msb = 0, lsb = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_UUID_MSB))
            msb = f.u;
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_UUID_LSB))
            lsb = f.u;
    }
    if (!msb && !lsb)
        return;
    char text[40];
    int n = snprintf(text, sizeof text, "%08llx-%04llx-%04llx-%04llx-%012llx",
                     (unsigned long long)(msb >> 32), (unsigned long long)(msb >> 16 & 0xffff),
                     (unsigned long long)(msb & 0xffff), (unsigned long long)(lsb >> 48),
                     (unsigned long long)(lsb & 0xffffffffffffull));
    sv_dict_set_meta(r->dict, "trace_uuid", text, (size_t)n, false);
}

void sv_pf_system_info(struct sv_pf *r, struct sv_pf_blob data)
{
    static const struct meta_field fields[] = {
        {SV_PF_SYSTEM_FINGERPRINT, "android_build_fingerprint"},
        {SV_PF_SYSTEM_SERVICE_VERSION, "tracing_service_version"},
        {SV_PF_SYSTEM_PAGE_SIZE, "page_size"},
        {SV_PF_SYSTEM_TIMEZONE_OFF_MINS, "timezone_off_mins"},
        {SV_PF_SYSTEM_NUM_CPUS, "num_cpus"},
        {SV_PF_SYSTEM_RAM_BYTES, "system_ram_bytes"},
        {SV_PF_SYSTEM_MACHINE_NAME, "hostname"},
    };
    static const struct meta_field uts[] = {
        {SV_PF_UTSNAME_SYSNAME, "system_name"},
        {SV_PF_UTSNAME_VERSION, "system_version"},
        {SV_PF_UTSNAME_RELEASE, "system_release"},
        {SV_PF_UTSNAME_MACHINE, "system_machine"},
    };
    struct sv_pb w = sv_pf_wire(data);
    if (r->seq->machine != r->machines[0]) /* there is one place only */
        return;
    set_meta_fields(r, data, fields, sizeof fields / sizeof *fields);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_SYSTEM_UTSNAME))
            set_meta_fields(r, sv_pf_bytes(&f), uts, sizeof uts / sizeof *uts);
}

/* A key made of a prefix and a text of the file. */
static bool make_key(char *key, size_t cap, const char *prefix, struct sv_pf_blob name)
{
    if (name.len == 0)
        return false;
    return snprintf(key, cap, "%s%.*s", prefix, (int)(name.len < 200 ? name.len : 200),
                    (const char *)name.bytes) > 0;
}

static void chrome_meta(struct sv_pf *r, struct sv_pb w)
{
    struct sv_pb_field f, value = {0};
    struct sv_pf_blob name = {0};
    char key[256];
    while (sv_pb_next(&w, &f)) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_META_NAME))
            name = sv_pf_bytes(&f);
        else
            value = f;
    }
    if (!make_key(key, sizeof key, "chrome.", name))
        return;
    switch (sv_pf_tag(&value)) {
    case SV_PF_B(SV_PF_META_STRING): set_meta(r, key, sv_pf_bytes(&value), false); break;
    case SV_PF_B(SV_PF_META_JSON): set_meta(r, key, sv_pf_bytes(&value), true); break;
    case SV_PF_V(SV_PF_META_INT): set_meta_number(r, key, (int64_t)value.u); break;
    case SV_PF_V(SV_PF_META_BOOL):
        sv_dict_set_meta(r->dict, key, value.u ? "true" : "false", value.u ? 4 : 5, true);
        break;
    default: break;
    }
}

void sv_pf_chrome_events(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_B(SV_PF_BUNDLE_METADATA): chrome_meta(r, sv_pb_sub(&f)); break;
        case SV_PF_B(SV_PF_BUNDLE_TRACE_EVENTS):
            sv_report_add(r->report, SV_SKIPPED, "chrome_events: old trace event", 1, r->pos, NULL);
            break;
        case SV_PF_B(SV_PF_BUNDLE_FTRACE):
            sv_report_add(r->report, SV_SKIPPED, "chrome_events: ftrace text", 1, r->pos, NULL);
            break;
        case SV_PF_B(SV_PF_BUNDLE_JSON):
            sv_report_add(r->report, SV_SKIPPED, "chrome_events: JSON trace", 1, r->pos, NULL);
            break;
        default: break;
        }
    }
}

void sv_pf_chrome_metadata(struct sv_pf *r, struct sv_pf_blob data)
{
    static const struct meta_field fields[] = {
        {SV_PF_CHROME_VERSION_CODE, "chrome.version_code"},
        {SV_PF_CHROME_CATEGORIES, "chrome.enabled_categories"},
        {SV_PF_CHROME_PACKAGE, "chrome.app_package_name"},
        {SV_PF_CHROME_VERSION, "chrome.app_version"},
        {SV_PF_CHROME_OS, "chrome.os_name"},
    };
    set_meta_fields(r, data, fields, sizeof fields / sizeof *fields);
}

void sv_pf_trace_config(struct sv_pf *r, struct sv_pf_blob data)
{
    static const struct meta_field fields[] = {
        {SV_PF_CONFIG_UNIQUE_SESSION_NAME, "trace_name"},
    };
    set_meta_fields(r, data, fields, sizeof fields / sizeof *fields);
}

void sv_pf_range_of_interest(struct sv_pf *r, struct sv_pf_blob data)
{
    static const struct meta_field fields[] = {{1, "range_of_interest_start_us"}};
    set_meta_fields(r, data, fields, sizeof fields / sizeof *fields);
}

static void attribute(struct sv_pf *r, struct sv_pb w)
{
    struct sv_pb_field f, value = {0};
    struct sv_pf_blob name = {0};
    uint64_t form = 0;
    char key[256];
    while (sv_pb_next(&w, &f)) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_ATTRIBUTE_KEY))
            name = sv_pf_bytes(&f);
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_STAVE))
            form = f.u;
        else
            value = f;
    }
    if (form == SV_PF_STAVE_EXPLAINS || !make_key(key, sizeof key, "", name))
        return;
    if (sv_pf_tag(&value) == SV_PF_B(SV_PF_ATTRIBUTE_STRING))
        set_meta(r, key, sv_pf_bytes(&value), form == SV_PF_STAVE_JSON);
    else if (sv_pf_tag(&value) == SV_PF_V(SV_PF_ATTRIBUTE_LONG))
        set_meta_number(r, key, (int64_t)value.u);
}

void sv_pf_trace_attributes(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_ATTRIBUTES_LIST))
            attribute(r, sv_pb_sub(&f));
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_STAVE_ORIGIN))
            r->clocks.origin_ns = (int64_t)f.u;
    }
}

/* ---- losses ---- */

struct loss_field {
    uint32_t field;
    const char *what;
};

static const struct loss_field buffer_losses[] = {
    {SV_PF_BUFFER_CHUNKS_OVERWRITTEN, "chunks overwritten"},
    {SV_PF_BUFFER_CHUNKS_DISCARDED, "chunks discarded"},
    {SV_PF_BUFFER_PATCHES_FAILED, "patches failed"},
    {SV_PF_BUFFER_ABI_VIOLATIONS, "violations of the ABI"},
    {SV_PF_BUFFER_PACKET_LOSS, "packets lost by their writers"},
};

static const struct loss_field service_losses[] = {
    {SV_PF_TRACE_STATS_CHUNKS_DISCARDED, "chunks discarded by the service"},
    {SV_PF_TRACE_STATS_PATCHES_DISCARDED, "patches discarded by the service"},
    {SV_PF_TRACE_STATS_INVALID_PACKETS, "packets filtered as invalid"},
    {SV_PF_TRACE_STATS_FLUSHES_FAILED, "flushes failed"},
};

#define N_BUFFER  (sizeof buffer_losses / sizeof *buffer_losses)
#define N_SERVICE (sizeof service_losses / sizeof *service_losses)

struct sv_pf_losses {
    uint64_t buffer[N_BUFFER], service[N_SERVICE];
    int64_t pos;
};

static void add_losses(struct sv_pb w, const struct loss_field *fields, uint64_t *counts, size_t n)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        for (size_t i = 0; i < n; i++)
            if (sv_pf_tag(&f) == SV_PF_V(fields[i].field))
                counts[i] += f.u;
}

void sv_pf_trace_stats(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    if (!r->losses)
        r->losses = sv_alloc(sizeof *r->losses);
    *r->losses = (struct sv_pf_losses){.pos = r->pos};
    add_losses(w, service_losses, r->losses->service, N_SERVICE);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_TRACE_STATS_BUFFERS))
            add_losses(sv_pb_sub(&f), buffer_losses, r->losses->buffer, N_BUFFER);
}

static void report_losses(struct sv_pf *r, const struct loss_field *fields, const uint64_t *counts,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (counts[i] == 0)
            continue;
        sv_report_add(r->report, SV_NOTE, fields[i].what, counts[i], r->losses->pos,
                      "reported by the recording service");
        /* What writers lost is in their sequences already. */
        if (fields == buffer_losses && fields[i].field == SV_PF_BUFFER_PACKET_LOSS)
            continue;
        sv_pf_ready(r);
        sv_pf_arg_int(r, 0, counts[i] <= INT64_MAX ? (int64_t)counts[i] : INT64_MAX);
        sv_pf_emit(r, SV_LOSS, sv_pf_named_track(r, SV_TRACK_CUSTOM, "Recording"),
                   sv_dict_cstr(r->dict, fields[i].what));
    }
}

void sv_pf_meta_finish(struct sv_pf *r)
{
    if (!r->losses || !r->seq)
        return;
    r->ts_ns = r->latest_ns;
    report_losses(r, buffer_losses, r->losses->buffer, N_BUFFER);
    report_losses(r, service_losses, r->losses->service, N_SERVICE);
}

/* ---- triggers ---- */

void sv_pf_trigger(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    sv_str name = 0;
    sv_pf_ready(r);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_B(SV_PF_TRIGGER_NAME):
            name = sv_dict_str(r->dict, (const char *)f.bytes, (size_t)f.u);
            break;
        case SV_PF_B(SV_PF_TRIGGER_PRODUCER):
            sv_pf_arg_text(r, sv_dict_cstr(r->dict, "producer_name"), f.bytes, (size_t)f.u);
            break;
        case SV_PF_V(SV_PF_TRIGGER_UID):
            sv_pf_arg_int(r, sv_dict_cstr(r->dict, "trusted_producer_uid"), (int32_t)f.u);
            break;
        default: break;
        }
    }
    sv_pf_emit(r, SV_INSTANT, sv_pf_named_track(r, SV_TRACK_CUSTOM, "Trace Triggers"), name);
}

void sv_pf_chrome_trigger(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    sv_str name = sv_dict_cstr(r->dict, "chrome_trigger");
    sv_pf_ready(r);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_CHROME_TRIGGER_NAME))
            name = sv_pf_intern(r, sv_pf_bytes(&f));
        else if (f.id == SV_PF_CHROME_TRIGGER_HASH && f.type == SV_PB_FIXED32)
            sv_pf_arg_uint(r, sv_dict_cstr(r->dict, "name_hash"), f.u);
        else if (sv_pf_tag(&f) == SV_PF_F(SV_PF_CHROME_TRIGGER_FLOW))
            sv_pf_arg_special(r, SV_ARG_FLOW_END, sv_pf_salted(r, f.u));
    }
    sv_pf_emit(r, SV_INSTANT, sv_pf_named_track(r, SV_TRACK_CUSTOM, "Trace Triggers"), name);
}
