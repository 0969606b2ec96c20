/* stave report gpu: what devices did, and why they waited. Called by cmd/report.c with the loaded
 * trace.
 *
 * Tables of columns over subjects/gpu/figures.h; subjects/sections.c prints them. */
#include "subjects/gpu/figures.h"

#include "cli/console.h"
#include "cli/rows.h"
#include "core/base/buf.h"
#include "core/base/sat.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof *(list)

static const char *const direction_names[] = {
    [SV_GPU_DIR_UNKNOWN] = "other",
    [SV_GPU_DIR_H2D] = "host to device",
    [SV_GPU_DIR_D2H] = "device to host",
    [SV_GPU_DIR_D2D] = "device to device",
    [SV_GPU_DIR_P2P] = "device to device of another",
    [SV_GPU_DIR_H2H] = "host to host",
};

/* ---- cells ---- */

struct cells {
    struct sv_cell *next;
};

static void count(struct cells *c, uint64_t n)
{
    *c->next++ = sv_cell_int((int64_t)n);
}

static void ns(struct cells *c, int64_t n)
{
    *c->next++ = sv_cell_int(n);
}

static void real(struct cells *c, double v)
{
    *c->next++ = sv_cell_real(v);
}

static void share(struct cells *c, int64_t part, int64_t whole)
{
    *c->next++ = whole > 0 ? sv_cell_real((double)part / (double)whole) : sv_cell_null();
}

static void string(struct cells *c, const struct sv_dict *d, sv_str s)
{
    struct sv_text t = sv_dict_text(d, s);
    *c->next++ = (struct sv_cell){.type = SV_CELL_TEXT, .text = t.bytes, .len = t.len};
}

static void text(struct cells *c, const char *s)
{
    *c->next++ = sv_cell_text(s);
}

static void number(struct cells *c, int64_t n)
{
    *c->next++ = n < 0 ? sv_cell_null() : sv_cell_int(n);
}

static void times(struct cells *c, const struct sv_gpu_times *t)
{
    count(c, t->n);
    ns(c, t->total_ns);
    real(c, t->n ? (double)t->total_ns / (double)t->n : 0);
    real(c, t->p50_ns);
    real(c, t->p99_ns);
    ns(c, t->max_ns);
}
#define TIMES_COLUMNS                                                     \
    {"count", "count", SV_UNIT_COUNT}, {"total_ns", "total", SV_UNIT_NS}, \
        {"mean_ns", "mean", SV_UNIT_NS}, {"p50_ns", "p50", SV_UNIT_NS},   \
        {"p99_ns", "p99", SV_UNIT_NS},                                    \
    {                                                                     \
        "max_ns", "max", SV_UNIT_NS                                       \
    }

/* "GPU 0 A100", with its rank, or with its machine when there are several. */
static const char *device_name(const struct sv_gpu_report *r, size_t i)
{
    static _Thread_local char name[160]; /* of one row at a time */
    const struct sv_gpu_device *d = &r->devices[i];
    struct sv_text own = sv_dict_text(r->trace->dict, d->name);
    int n = d->name ? snprintf(name, sizeof name, "%.*s", (int)(own.len < 100 ? own.len : 100),
                               own.bytes)
            : d->number < 0 ? snprintf(name, sizeof name, "GPU")
                            : snprintf(name, sizeof name, "GPU %" PRId64, d->number);
    if (d->rank >= 0)
        snprintf(name + n, sizeof name - (size_t)n, " (rank %" PRId64 ")", d->rank);
    else if (d->space)
        snprintf(name + n, sizeof name - (size_t)n, " (machine %u)", d->space);
    return name;
}

/* ---- sections ---- */

static const struct sv_report_column summary_columns[] = {
    {"span_ns", "trace", SV_UNIT_NS},
    {"devices", "devices", SV_UNIT_COUNT},
    {"work", "kernels, copies, fills", SV_UNIT_COUNT},
    {"calls", "host calls", SV_UNIT_COUNT},
    {"work_without_launch", "work without a launch", SV_UNIT_COUNT},
    {"launches_without_work", "launches without work", SV_UNIT_COUNT},
    {"work_before_launch", "work before its launch", SV_UNIT_COUNT},
    {"unfinished", "work without an end", SV_UNIT_COUNT},
};

static void fill_summary(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    struct cells c = {cells};
    (void)row;
    ns(&c, sv_sat_sub(r->trace->last_ns, r->trace->first_ns));
    count(&c, r->n_devices);
    count(&c, r->n_work);
    count(&c, r->n_calls);
    count(&c, r->without_launch);
    count(&c, r->without_work);
    count(&c, r->before_launch);
    count(&c, r->unfinished);
}

static const struct sv_report_column device_columns[] = {
    {"device", "device", SV_UNIT_TEXT},
    {"number", NULL, SV_UNIT_COUNT},
    {"kernels", "kernels", SV_UNIT_COUNT},
    {"copies", "copies", SV_UNIT_COUNT},
    {"fills", NULL, SV_UNIT_COUNT},
    {"first_ns", NULL, SV_UNIT_NS},
    {"span_ns", "span", SV_UNIT_NS},
    {"busy_ns", NULL, SV_UNIT_NS},
    {"utilisation", "busy", SV_UNIT_SHARE},
    {"compute_ns", "computing", SV_UNIT_NS},
    {"copy_ns", "copying", SV_UNIT_NS},
    {"communication_ns", "communicating", SV_UNIT_NS},
    {"copy_overlap", "copies hidden", SV_UNIT_SHARE},
    {"communication_overlap", "communication hidden", SV_UNIT_SHARE},
    {"concurrency_mean", "kernels at once", SV_UNIT_REAL},
    {"concurrency_max", "at most", SV_UNIT_COUNT},
    {"launch_p50_ns", "launch to start p50", SV_UNIT_NS},
    {"launch_p99_ns", "p99", SV_UNIT_NS},
    {"launch_max_ns", NULL, SV_UNIT_NS},
    {"queue_mean", "queued", SV_UNIT_REAL},
    {"queue_max", "queued at most", SV_UNIT_COUNT},
    {"longest_gap_ns", "longest gap", SV_UNIT_NS},
    {"longest_gap_at_ns", NULL, SV_UNIT_NS},
};

static void fill_device(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_device *d = &r->devices[row];
    int64_t span = d->last_ns > d->first_ns ? d->last_ns - d->first_ns : 0;
    int64_t computing = d->kinds_ns[SV_GPU_COMPUTES] + d->kinds_ns[SV_GPU_TALKS] -
                        d->talk_overlap_ns;
    struct cells c = {cells};
    text(&c, device_name(r, row));
    number(&c, d->number);
    count(&c, d->n_kernels);
    count(&c, d->n_copies);
    count(&c, d->n_sets);
    ns(&c, span ? d->first_ns : 0);
    ns(&c, span);
    ns(&c, d->busy_ns);
    share(&c, d->busy_ns, span);
    for (int k = 0; k < SV_N_GPU_KINDS; k++)
        ns(&c, d->kinds_ns[k]);
    share(&c, d->copy_overlap_ns, d->kinds_ns[SV_GPU_COPIES]);
    share(&c, d->talk_overlap_ns, d->kinds_ns[SV_GPU_TALKS]);
    *c.next++ = computing > 0 ? sv_cell_real((double)d->kernels_ns / (double)computing)
                              : sv_cell_null();
    count(&c, d->concurrency_max);
    *c.next++ = d->latency.n ? sv_cell_real(d->latency.p50_ns) : sv_cell_null();
    *c.next++ = d->latency.n ? sv_cell_real(d->latency.p99_ns) : sv_cell_null();
    *c.next++ = d->latency.n ? sv_cell_int(d->latency.max_ns) : sv_cell_null();
    real(&c, d->queue_mean);
    count(&c, d->queue_max);
    ns(&c, d->longest_gap.to_ns - d->longest_gap.from_ns);
    *c.next++ = d->longest_gap.to_ns ? sv_cell_int(d->longest_gap.from_ns) : sv_cell_null();
}

static const struct sv_report_column stream_columns[] = {
    {"device", "device", SV_UNIT_TEXT},  {"stream", "stream", SV_UNIT_COUNT},
    {"pid", "pid", SV_UNIT_COUNT},       {"work", "work", SV_UNIT_COUNT},
    {"busy_ns", "busy for", SV_UNIT_NS}, {"utilisation", "of the device's span", SV_UNIT_SHARE},
    {"first_ns", NULL, SV_UNIT_NS},      {"last_ns", NULL, SV_UNIT_NS},
};

static void fill_stream(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_stream *x = &r->streams[row];
    const struct sv_gpu_device *d = &r->devices[x->device];
    struct cells c = {cells};
    text(&c, device_name(r, x->device));
    number(&c, x->number);
    number(&c, x->process ? r->trace->dict->tracks[x->process].pid : -1);
    count(&c, x->n);
    ns(&c, x->busy_ns);
    share(&c, x->busy_ns, d->last_ns - d->first_ns);
    ns(&c, x->first_ns);
    ns(&c, x->last_ns);
}

static const struct sv_report_column gap_columns[] = {
    {"device", "device", SV_UNIT_TEXT},      {"cause", "idle for", SV_UNIT_TEXT},
    {"gaps", "gaps", SV_UNIT_COUNT},         {"total_ns", "total", SV_UNIT_NS},
    {"share", "of the span", SV_UNIT_SHARE}, {"max_ns", "longest", SV_UNIT_NS},
    {"meaning", "meaning", SV_UNIT_TEXT},
};

/* Devices times causes, those with gaps only; SIZE_MAX: no more. */
static size_t nth_gap(const struct sv_gpu_report *r, size_t n)
{
    for (size_t i = 0; i < r->n_devices * SV_N_GAPS; i++)
        if (r->devices[i / SV_N_GAPS].gaps[i % SV_N_GAPS].n && n-- == 0)
            return i;
    return SIZE_MAX;
}

static size_t n_gaps(const struct sv_gpu_report *r)
{
    size_t n = 0;
    while (nth_gap(r, n) != SIZE_MAX)
        n++;
    return n;
}

static void fill_gap(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    size_t at = nth_gap(r, row);
    const struct sv_gpu_device *d = &r->devices[at / SV_N_GAPS];
    const struct sv_gpu_gaps *g = &d->gaps[at % SV_N_GAPS];
    struct cells c = {cells};
    text(&c, device_name(r, at / SV_N_GAPS));
    text(&c, sv_gpu_gap_names[at % SV_N_GAPS]);
    count(&c, g->n);
    ns(&c, g->total_ns);
    share(&c, g->total_ns, d->last_ns > d->first_ns ? d->last_ns - d->first_ns : 0);
    ns(&c, g->max_ns);
    text(&c, sv_gpu_gap_reasons[at % SV_N_GAPS]);
}

static const struct sv_report_column kernel_columns[] = {
    {"kernel", "kernel", SV_UNIT_TEXT}, {"share", "of all kernels", SV_UNIT_SHARE}, TIMES_COLUMNS};

static void fill_kernel(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    struct cells c = {cells};
    int64_t all = 0;
    for (size_t i = 0; i < r->n_devices; i++)
        all = sv_sat_add(all, r->devices[i].kernels_ns);
    string(&c, r->trace->dict, r->kernels[row].name);
    share(&c, r->kernels[row].times.total_ns, all);
    times(&c, &r->kernels[row].times);
}

static const struct sv_report_column copy_columns[] = {
    {"direction", "copies", SV_UNIT_TEXT},
    {"bytes", "bytes", SV_UNIT_BYTES},
    {"bytes_per_second", "bandwidth", SV_UNIT_RATE},
    TIMES_COLUMNS};

static void fill_copy(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_group *g = &r->copies[row];
    struct cells c = {cells};
    text(&c, g->is_set ? "fills" : direction_names[g->direction]);
    count(&c, g->bytes);
    *c.next++ = g->times.total_ns > 0 && g->bytes
                    ? sv_cell_real((double)g->bytes * 1e9 / (double)g->times.total_ns)
                    : sv_cell_null();
    times(&c, &g->times);
}

static const struct sv_report_column memory_columns[] = {
    {"device", "memory of", SV_UNIT_TEXT},
    {"allocations", "allocations", SV_UNIT_COUNT},
    {"releases", "releases", SV_UNIT_COUNT},
    {"unknown_releases", "of earlier memory", SV_UNIT_COUNT},
    {"peak_bytes", "peak", SV_UNIT_BYTES},
    {"peak_at_ns", "at", SV_UNIT_NS},
    {"live_bytes", "never released", SV_UNIT_BYTES},
    {"live", "in pieces", SV_UNIT_COUNT},
};

static void fill_memory(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_memory *m = &r->devices[row].memory;
    struct cells c = {cells};
    text(&c, device_name(r, row));
    count(&c, m->allocations);
    count(&c, m->releases);
    count(&c, m->unknown_releases);
    ns(&c, m->peak_bytes);
    ns(&c, m->peak_at_ns > r->trace->first_ns ? m->peak_at_ns - r->trace->first_ns : 0);
    ns(&c, m->live_bytes);
    count(&c, m->live);
}

static const struct sv_report_column leak_columns[] = {
    {"device", "never released on", SV_UNIT_TEXT},
    {"bytes", "bytes", SV_UNIT_BYTES},
    {"address", "address", SV_UNIT_TEXT},
    {"ts_ns", "allocated at", SV_UNIT_NS},
    {"within", "within", SV_UNIT_TEXT},
};

static void fill_leak(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    static _Thread_local char address[24];
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_leak *l = &r->leaks[row];
    const struct sv_slices *x = &r->trace->slices;
    struct cells c = {cells};
    text(&c, device_name(r, l->device));
    ns(&c, l->bytes);
    snprintf(address, sizeof address, "0x%" PRIx64, l->address);
    text(&c, address);
    ns(&c, x->ts_ns[l->row] - r->trace->first_ns);
    if (x->parent[l->row] == SV_NO_ROW)
        *c.next++ = sv_cell_null();
    else
        string(&c, r->trace->dict, x->name[x->parent[l->row]]);
}

static const struct sv_report_column step_columns[] = {
    {"step", "step", SV_UNIT_COUNT},
    {"start_ns", NULL, SV_UNIT_NS},
    {"dur_ns", "took", SV_UNIT_NS},
    {"compute_ns", "computing", SV_UNIT_NS},
    {"communication_ns", "communicating", SV_UNIT_NS},
    {"copy_ns", "copying", SV_UNIT_NS},
    {"host_ns", "host only", SV_UNIT_NS},
    {"idle_ns", "idle", SV_UNIT_NS},
    {"utilisation", "device busy", SV_UNIT_SHARE},
    {"waits_for", "idle for", SV_UNIT_TEXT},
};

static void fill_step(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_step *x = &r->by_step[row];
    struct cells c = {cells};
    ns(&c, x->step->number);
    ns(&c, x->step->ts_ns);
    ns(&c, x->step->dur_ns);
    ns(&c, x->compute_ns);
    ns(&c, x->talk_ns);
    ns(&c, x->copy_ns);
    ns(&c, x->host_ns);
    ns(&c, x->idle_ns);
    share(&c, x->compute_ns + x->talk_ns + x->copy_ns, x->step->dur_ns);
    *c.next++ = x->waits_for < SV_N_WHY_CLASSES ? sv_cell_text(sv_why_class_names[x->waits_for])
                                                : sv_cell_null();
}

static const struct sv_report_column sampled_columns[] = {
    {"device", "device", SV_UNIT_TEXT},     {"pid", "pid", SV_UNIT_COUNT},
    {"values", "values", SV_UNIT_COUNT},    {"known_ns", "known", SV_UNIT_NS},
    {"busy_ns", "busy for", SV_UNIT_NS},    {"idle_ns", "idle for", SV_UNIT_NS},
    {"utilisation", "busy", SV_UNIT_SHARE},
};

static void fill_sampled(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    static _Thread_local char name[160];
    const struct sv_gpu_report *r = s->data;
    const struct sv_gpu_sampled *x = &r->sampled[row];
    struct sv_text own = sv_dict_text(r->trace->dict, x->name);
    struct cells c = {cells};
    snprintf(name, sizeof name, "GPU %" PRId64 "%s%.*s", x->number, own.len ? " " : "",
             (int)(own.len < 100 ? own.len : 100), own.bytes);
    text(&c, name);
    number(&c, x->process ? r->trace->dict->tracks[x->process].pid : -1);
    count(&c, x->n);
    ns(&c, x->use.known_ns);
    ns(&c, x->use.busy_ns);
    ns(&c, x->use.known_ns - x->use.busy_ns);
    share(&c, x->use.busy_ns, x->use.known_ns);
}

static const struct sv_report_column sampled_step_columns[] = {
    {"step", "step", SV_UNIT_COUNT},
    {"start_ns", NULL, SV_UNIT_NS},
    {"dur_ns", "took", SV_UNIT_NS},
    {"known_ns", "known of the devices", SV_UNIT_NS},
    {"busy_ns", "busy", SV_UNIT_NS},
    {"idle_ns", "idle", SV_UNIT_NS},
    {"utilisation", "devices busy", SV_UNIT_SHARE},
};

static void fill_sampled_step(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_gpu_report *r = s->data;
    const struct sv_step *x = &r->steps.steps[row];
    struct sv_gpu_use use = sv_gpu_use_in_step(r, x);
    struct cells c = {cells};
    ns(&c, x->number);
    ns(&c, x->ts_ns);
    ns(&c, x->dur_ns);
    ns(&c, use.known_ns);
    ns(&c, use.busy_ns);
    ns(&c, use.known_ns - use.busy_ns);
    share(&c, use.busy_ns, use.known_ns);
}

/* ---- the subject ---- */

static bool has_memory(const struct sv_gpu_report *r)
{
    for (size_t i = 0; i < r->n_devices; i++)
        if (r->devices[i].memory.allocations || r->devices[i].memory.releases)
            return true;
    return false;
}

static int print(const struct sv_gpu_report *r, const struct sv_report_options *o,
                 struct sv_err *err)
{
    const struct sv_section sections[] = {
        {.name = "summary",
         .title = "GPU work",
         COLUMNS(summary_columns),
         .n_rows = 1,
         .is_one = true,
         .fill = fill_summary,
         .data = r},
        {.name = "device",
         .title = "Devices",
         COLUMNS(device_columns),
         .n_rows = r->n_devices,
         .fill = fill_device,
         .data = r},
        {.name = "stream",
         .title = "Streams",
         COLUMNS(stream_columns),
         .n_rows = r->n_streams,
         .fill = fill_stream,
         .data = r},
        {.name = "gap",
         .title = "Idle time between first and last work",
         COLUMNS(gap_columns),
         .n_rows = n_gaps(r),
         .fill = fill_gap,
         .data = r},
        {.name = "kernel",
         .title = "Kernels",
         COLUMNS(kernel_columns),
         .n_rows = r->n_kernels,
         .fill = fill_kernel,
         .data = r},
        {.name = "copy",
         .title = "Copies and fills",
         COLUMNS(copy_columns),
         .n_rows = r->n_copies,
         .fill = fill_copy,
         .data = r},
        {.name = "memory",
         .title = "Memory",
         COLUMNS(memory_columns),
         .n_rows = has_memory(r) ? r->n_devices : 0,
         .fill = fill_memory,
         .data = r},
        {.name = "allocation",
         .title = "Memory that was never released",
         COLUMNS(leak_columns),
         .n_rows = r->n_leaks,
         .fill = fill_leak,
         .data = r},
        {.name = "step",
         .title = "Steps",
         COLUMNS(step_columns),
         .n_rows = r->steps.n,
         .fill = fill_step,
         .data = r},
    };
    return sv_sections_print(sections, sizeof sections / sizeof *sections, o, err);
}

/* A trace without GPU work, but with counters of it. */
static int print_sampled(const struct sv_gpu_report *r, const struct sv_report_options *o,
                         struct sv_err *err)
{
    const struct sv_section sections[] = {
        {.name = "sampled",
         .title = "Devices, by counters of their utilisation (no kernels in the trace)",
         COLUMNS(sampled_columns),
         .n_rows = r->n_sampled,
         .fill = fill_sampled,
         .data = r},
        {.name = "step",
         .title = "Steps",
         COLUMNS(sampled_step_columns),
         .n_rows = r->steps.n,
         .fill = fill_sampled_step,
         .data = r},
    };
    return sv_sections_print(sections, sizeof sections / sizeof *sections, o, err);
}

static int run_gpu(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_gpu_report r;
    sv_gpu_report_make(&r, t, o->steps);
    bool has_work = r.n_work || r.n_calls;
    int code = has_work      ? print(&r, o, err)
               : r.n_sampled ? print_sampled(&r, o, err)
                             : sv_err_set(err, SV_EINPUT, SV_NO_POS,
                                          "%s has no GPU work: no slices of category kernel, "
                                          "gpu_memcpy, cuda_runtime or similar, and no counters of "
                                          "devices (docs/gpu.md)",
                                          o->path);
    sv_gpu_report_fini(&r);
    return code;
}

const struct sv_report_subject sv_gpu_report = {
    .name = "gpu",
    .sections = "summary device stream gap kernel copy memory allocation step sampled",
    .options = "steps",
    .run = run_gpu,
};
