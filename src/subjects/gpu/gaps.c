/* Why devices were idle, what their memory held, and how their work fills the steps. Parts of the
 * GPU report (report_gpu.c calls them in this order).
 *
 * A gap is time between a device's first and last work in which nothing runs on it. Its cause is
 * read from the work that ends it: when that was launched, and what the launching thread did when
 * the gap began. */
#include "subjects/gpu/figures.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_gpu_gap_names[SV_N_GAPS] = {"launch", "sync",   "data",
                                                 "copy",   "device", "unknown"};
const char *const sv_gpu_gap_reasons[SV_N_GAPS] = {
    "the host had not launched the next work",
    "the host waited for the device before it launched more",
    "the host loaded data before it launched more",
    "launched, with a copy before it or a copy itself",
    "launched, but not started: dependencies, or the device",
    "the launch of the next work is unknown",
};

/* ---- gaps ---- */

/* By row: waiting or loading data, as the nearest name says that is one of them, its own or one
 * around it. Parents have smaller rows. */
static uint8_t *find_host_kinds(const struct sv_gpu_making *m)
{
    const struct sv_slices *c = &m->t->slices;
    uint8_t *kinds = sv_alloc_aligned(c->n + 1, 64);
    for (uint64_t row = 0; row < c->n; row++) {
        uint8_t kind = m->by_name[c->name[row]];
        uint32_t parent = c->parent[row];
        kinds[row] = kind == SV_WORK_WAIT || kind == SV_WORK_DATA ? kind
                     : parent != SV_NO_ROW                        ? kinds[parent]
                                                                  : (uint8_t)SV_WORK_UNKNOWN;
    }
    return kinds;
}

/* What the thread did at that moment. */
static uint8_t work_at(const struct sv_gpu_making *m, const uint8_t *kinds, sv_track track,
                       int64_t ts_ns)
{
    uint32_t row = sv_trace_slice_at(m->t, track, ts_ns);
    return row != SV_NO_ROW ? kinds[row] : (uint8_t)SV_WORK_UNKNOWN;
}

/* before: the work that ran until the gap began. */
static enum sv_gpu_gap cause_of(const struct sv_gpu_making *m, const uint8_t *kinds,
                                uint32_t before, uint32_t next, int64_t from_ns)
{
    const struct sv_slices *c = &m->t->slices;
    uint32_t launch = sv_launch_of(&m->launches, next);
    if (launch == SV_NO_ROW)
        return SV_GAP_UNKNOWN;
    if (sv_trace_end_ns(m->t, launch) <= from_ns) {
        bool is_copy = m->by_cat[c->cat[next]] != SV_GPU_KERNEL ||
                       m->by_cat[c->cat[before]] != SV_GPU_KERNEL;
        return is_copy ? SV_GAP_COPY : SV_GAP_DEVICE;
    }
    uint8_t host = work_at(m, kinds, c->track[launch], from_ns);
    if (host == SV_WORK_UNKNOWN) /* what filled most of the gap may have begun after it */
        host = work_at(m, kinds, c->track[launch], from_ns + (c->ts_ns[next] - from_ns) / 2);
    return host == SV_WORK_WAIT ? SV_GAP_SYNC : host == SV_WORK_DATA ? SV_GAP_DATA : SV_GAP_LAUNCH;
}

void sv_gpu_find_gaps(struct sv_gpu_making *m)
{
    uint8_t *kinds = find_host_kinds(m);
    for (size_t i = 0; i < m->r->n_devices; i++) {
        struct sv_gpu_device *d = &m->r->devices[i];
        for (size_t k = 1; k < d->busy.n; k++) {
            const struct sv_span *before = &d->busy.items[k - 1], *next = &d->busy.items[k];
            int64_t length = next->from_ns - before->to_ns;
            enum sv_gpu_gap cause = cause_of(m, kinds, before->last, next->row, before->to_ns);
            struct sv_gpu_gaps *g = &d->gaps[cause];
            sv_spans_add(&d->idle[cause], before->to_ns, next->from_ns, next->row);
            g->n++;
            g->total_ns += length;
            g->max_ns = length > g->max_ns ? length : g->max_ns;
        }
    }
    free(kinds);
}

/* ---- memory ---- */

struct allocation {
    uint32_t row;
    int64_t bytes, ts_ns;
    uint64_t address;
    size_t device;
};

static int by_time(const void *a, const void *b)
{
    const struct allocation *x = a, *y = b;
    return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

static int largest_first(const void *a, const void *b)
{
    const struct sv_gpu_leak *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Kineto's are called so and have no category of their own. */
static bool is_allocation(const struct sv_gpu_making *m, uint32_t row, sv_str kineto)
{
    const struct sv_slices *c = &m->t->slices;
    return c->kind[row] == SV_INSTANT &&
           (m->by_cat[c->cat[row]] == SV_GPU_ALLOC || (kineto && c->name[row] == kineto));
}

static bool read_allocation(struct sv_gpu_making *m, uint32_t row, struct allocation *to)
{
    struct sv_arg a;
    uint32_t handle = m->t->slices.args[row];
    sv_str kind = sv_dict_find_str(m->t->dict, "Device Type", 11);
    sv_str where = sv_dict_find_str(m->t->dict, "memory", 6);
    if (!handle || !sv_trace_arg(m->t, handle, m->words.bytes[1], &a) ||
        (a.type != SV_ARG_INT && a.type != SV_ARG_UINT))
        return false;
    int64_t bytes = a.i;
    if (kind && sv_trace_arg(m->t, handle, kind, &a) && a.type == SV_ARG_INT && a.i == 0)
        return false; /* PyTorch's memory of the host */
    if (where && sv_trace_arg(m->t, handle, where, &a) && a.type == SV_ARG_TEXT &&
        ((a.size == 8 && memcmp(a.text, "pageable", 8) == 0) ||
         (a.size == 6 && memcmp(a.text, "pinned", 6) == 0)))
        return false;
    sv_str key = sv_dict_find_str(m->t->dict, "Addr", 4);
    int64_t address = sv_gpu_number_at(m, row, &key, 1);
    *to = (struct allocation){row, bytes, m->t->slices.ts_ns[row], (uint64_t)address,
                              sv_gpu_device_at(m, row)};
    return true;
}

static void follow(struct sv_gpu_device *d, struct sv_map *live, const struct allocation *all,
                   size_t i)
{
    struct sv_gpu_memory *memory = &d->memory;
    uint64_t key = sv_mix64(all[i].address) ^ sv_mix64(all[i].device + 1);
    bool is_new;
    if (all[i].bytes >= 0) {
        *sv_map_add(live, key, &is_new) = i;
        memory->allocations++;
        memory->live_bytes += all[i].bytes;
    } else {
        memory->releases++;
        /* What was allocated before the recording began was never added. */
        if (sv_map_remove(live, key))
            memory->live_bytes += all[i].bytes;
        else
            memory->unknown_releases++;
    }
    if (memory->live_bytes > memory->peak_bytes) {
        memory->peak_bytes = memory->live_bytes;
        memory->peak_at_ns = all[i].ts_ns;
    }
}

static void find_leaks(struct sv_gpu_report *r, const struct sv_map *live,
                       const struct allocation *all)
{
    r->leaks = sv_alloc((live->n + 1) * sizeof *r->leaks);
    for (size_t i = 0; i < live->cap; i++) {
        if (!live->used[i])
            continue;
        const struct allocation *a = &all[live->slots[i].value];
        r->leaks[r->n_leaks++] = (struct sv_gpu_leak){a->row, a->address, a->bytes, a->device};
        r->devices[a->device].memory.live++;
    }
    qsort(r->leaks, r->n_leaks, sizeof *r->leaks, largest_first);
}

void sv_gpu_find_memory(struct sv_gpu_making *m)
{
    sv_str kineto = sv_dict_find_str(m->t->dict, "[memory]", 8);
    struct allocation *all = NULL;
    struct sv_map live = {0};
    size_t n = 0, cap = 0;
    for (uint32_t row = 0; row < m->t->slices.n; row++) {
        if (!is_allocation(m, row, kineto))
            continue;
        all = sv_grow(all, &cap, n + 1, sizeof *all);
        n += read_allocation(m, row, &all[n]);
    }
    if (n) {
        qsort(all, n, sizeof *all, by_time);
        m->r->levels = sv_alloc(n * sizeof *m->r->levels);
        for (size_t i = 0; i < n; i++) {
            struct sv_gpu_device *d = &m->r->devices[all[i].device];
            follow(d, &live, all, i);
            m->r->levels[m->r->n_levels++] =
                (struct sv_gpu_level){all[i].ts_ns, d->memory.live_bytes, all[i].device};
        }
        find_leaks(m->r, &live, all);
    }
    sv_map_fini(&live);
    free(all);
}

/* ---- steps ---- */

/* A step or a device, in the order of machines. */
struct placed {
    uint32_t space;
    size_t at;
};

static int by_space(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The devices of a machine together; *next: the first of the list that may be one of them, moved
 * after the last. */
static void unite_devices(const struct sv_gpu_report *r, uint32_t space, const struct placed *list,
                          size_t *next, struct sv_spans sets[SV_N_GPU_KINDS])
{
    while (*next < r->n_devices && list[*next].space < space)
        ++*next;
    for (; *next < r->n_devices && list[*next].space == space; ++*next)
        for (int k = 0; k < SV_N_GPU_KINDS; k++)
            sv_spans_append(&sets[k], &r->devices[list[*next].at].sets[k]);
    for (int k = 0; k < SV_N_GPU_KINDS; k++)
        sv_spans_settle(&sets[k]);
    /* Each holds those before it, so that differences are what it adds. */
    sv_spans_unite(&sets[SV_GPU_TALKS], &sets[SV_GPU_COMPUTES]);
    sv_spans_unite(&sets[SV_GPU_COPIES], &sets[SV_GPU_TALKS]);
}

/* When the thread of each step is at work itself: directly below the marker, and not waiting for a
 * device. Children come in the order of time, and each has one parent, so one pass over the rows
 * finds those of all steps. */
static struct sv_spans *find_host_work(const struct sv_gpu_making *m, const struct sv_steps *steps)
{
    const struct sv_slices *c = &m->t->slices;
    struct sv_spans *work = sv_alloc((steps->n + 1) * sizeof *work);
    struct sv_map by_row = {0}; /* marker → its step */
    for (size_t i = 0; i < steps->n; i++)
        *sv_map_add(&by_row, steps->steps[i].row, NULL) = i;
    for (uint32_t row = 0; row < c->n && steps->n; row++) {
        if (c->parent[row] == SV_NO_ROW || c->kind[row] != SV_SLICE ||
            m->by_name[c->name[row]] == SV_WORK_WAIT)
            continue;
        const uint64_t *step = sv_map_find(&by_row, c->parent[row]);
        if (!step)
            continue;
        const struct sv_step *s = &steps->steps[*step];
        int64_t to_ns = sv_trace_end_ns(m->t, row), end = s->ts_ns + s->dur_ns;
        sv_spans_add(&work[*step], c->ts_ns[row], to_ns < end ? to_ns : end, row);
    }
    sv_map_fini(&by_row);
    return work;
}

static struct sv_gpu_step divide(const struct sv_step *s, const struct sv_spans *host,
                                 const struct sv_spans sets[SV_N_GPU_KINDS])
{
    int64_t end = s->ts_ns + s->dur_ns;
    int64_t compute = sv_spans_within(&sets[SV_GPU_COMPUTES], s->ts_ns, end);
    int64_t talk = sv_spans_within(&sets[SV_GPU_TALKS], s->ts_ns, end);
    int64_t busy = sv_spans_within(&sets[SV_GPU_COPIES], s->ts_ns, end);
    int64_t at_work = sv_spans_length(host);
    for (size_t i = 0; i < host->n; i++)
        at_work -=
            sv_spans_within(&sets[SV_GPU_COPIES], host->items[i].from_ns, host->items[i].to_ns);
    return (struct sv_gpu_step){.step = s,
                                .compute_ns = compute,
                                .talk_ns = talk - compute,
                                .copy_ns = busy - talk,
                                .host_ns = at_work,
                                .idle_ns = s->dur_ns - busy - at_work};
}

/* Steps in the order of their machines, so that the devices of each are united once. */
void sv_gpu_divide_steps(struct sv_gpu_making *m, const char *marker)
{
    struct sv_gpu_report *r = m->r;
    struct sv_spans sets[SV_N_GPU_KINDS] = {0};
    sv_steps_find(&r->steps, m->t, marker);
    r->by_step = sv_alloc((r->steps.n + 1) * sizeof *r->by_step);
    struct placed *order = sv_alloc((r->steps.n + 1) * sizeof *order);
    struct placed *devices = sv_alloc((r->n_devices + 1) * sizeof *devices);
    size_t next = 0;
    struct sv_spans *host = find_host_work(m, &r->steps);
    for (size_t i = 0; i < r->steps.n; i++)
        order[i] = (struct placed){m->t->dict->tracks[r->steps.steps[i].track].space, i};
    for (size_t i = 0; i < r->n_devices; i++)
        devices[i] = (struct placed){r->devices[i].space, i};
    qsort(order, r->steps.n, sizeof *order, by_space);
    qsort(devices, r->n_devices, sizeof *devices, by_space);
    for (size_t i = 0; i < r->steps.n; i++) {
        size_t at = order[i].at;
        if (i == 0 || order[i].space != order[i - 1].space) {
            for (int k = 0; k < SV_N_GPU_KINDS; k++)
                sv_spans_fini(&sets[k]);
            unite_devices(r, order[i].space, devices, &next, sets);
        }
        r->by_step[at] = divide(&r->steps.steps[at], &host[at], sets);
        sv_spans_fini(&host[at]);
    }
    for (int k = 0; k < SV_N_GPU_KINDS; k++)
        sv_spans_fini(&sets[k]);
    free(order);
    free(devices);
    free(host);
}
