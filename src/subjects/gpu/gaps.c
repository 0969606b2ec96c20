/* Why devices were idle, what their memory held, and how their work fills the steps. Parts of the
 * GPU report (report_gpu.c calls them in this order).
 *
 * A gap is time between a device's first and last work in which nothing runs on it. It is divided:
 * until the work that ends it is launched, by what the launching thread did, which the ledger says;
 * from then on that work waits for a copy or for the device. */
#include "subjects/gpu/figures.h"

#include "core/base/mem.h"
#include "why/ledger.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_gpu_gap_names[SV_N_GAPS] = {
#define NAME(member, name, meaning) name,
    SV_GPU_GAP_CAUSES(NAME)
#undef NAME
};
const char *const sv_gpu_gap_reasons[SV_N_GAPS] = {
#define MEANING(member, name, meaning) meaning,
    SV_GPU_GAP_CAUSES(MEANING)
#undef MEANING
};

/* ---- gaps ---- */

/* What a class of the ledger means for a device. Of a thread of which nothing is recorded only that
 * it had not launched is known. */
static const uint8_t causes[SV_N_WHY_CLASSES] = {
    [SV_WHY_COMPUTE] = SV_GAP_LAUNCH, [SV_WHY_LOCK] = SV_GAP_LOCK,   [SV_WHY_GIL] = SV_GAP_LOCK,
    [SV_WHY_DATA] = SV_GAP_DATA,      [SV_WHY_DISK] = SV_GAP_DISK,   [SV_WHY_PAGE] = SV_GAP_DISK,
    [SV_WHY_PIPE] = SV_GAP_WAIT,      [SV_WHY_SOCKET] = SV_GAP_WAIT, [SV_WHY_CHILD] = SV_GAP_WAIT,
    [SV_WHY_SLEEP] = SV_GAP_WAIT,     [SV_WHY_CPU] = SV_GAP_CPU,     [SV_WHY_GPU] = SV_GAP_SYNC,
    [SV_WHY_COPY] = SV_GAP_COPY,      [SV_WHY_COMM] = SV_GAP_COMM,   [SV_WHY_QUEUE] = SV_GAP_WAIT,
    [SV_WHY_UNKNOWN] = SV_GAP_LAUNCH,
};

/* A gap of a device: the k-th stretch of work ends it. */
struct gap {
    struct sv_gpu_device *device;
    size_t k;
};

struct gaps {
    struct gap *items;
    struct sv_given_unit *units; /* of each: the time until the launch */
    size_t n;
};

/* The time in which the host could have launched the next work; empty: it had, or who launched it
 * is not known. */
static struct sv_given_unit until_launch(const struct sv_gpu_making *m, const struct gap *g)
{
    int64_t from = g->device->busy.items[g->k - 1].to_ns, to = g->device->busy.items[g->k].from_ns;
    uint32_t launch = sv_launch_of(&m->launches, g->device->busy.items[g->k].row);
    int64_t done = launch != SV_NO_ROW ? sv_trace_end_ns(m->t, launch) : from;
    done = done < from ? from : done > to ? to : done;
    return sv_given_window(SV_NO_THREAD, launch != SV_NO_ROW ? m->t->slices.track[launch] : 0, from,
                           done);
}

static void find_all(struct gaps *all, const struct sv_gpu_making *m)
{
    size_t most = 0;
    for (size_t i = 0; i < m->r->n_devices; i++)
        most += m->r->devices[i].busy.n;
    all->items = sv_alloc((most + 1) * sizeof *all->items);
    all->units = sv_alloc((most + 1) * sizeof *all->units);
    for (size_t i = 0; i < m->r->n_devices; i++)
        for (size_t k = 1; k < m->r->devices[i].busy.n; k++) {
            all->items[all->n] = (struct gap){&m->r->devices[i], k};
            all->units[all->n] = until_launch(m, &all->items[all->n]);
            all->n++;
        }
}

/* Of the time after the launch. */
static enum sv_gpu_gap cause_of_rest(const struct sv_gpu_making *m, const struct gap *g)
{
    const struct sv_slices *c = &m->t->slices;
    const struct sv_span *before = &g->device->busy.items[g->k - 1],
                         *next = &g->device->busy.items[g->k];
    if (sv_launch_of(&m->launches, next->row) == SV_NO_ROW)
        return SV_GAP_UNKNOWN;
    bool is_copy = m->by_cat[c->cat[next->row]] != SV_GPU_KERNEL ||
                   m->by_cat[c->cat[before->last]] != SV_GPU_KERNEL;
    return is_copy ? SV_GAP_COPY : SV_GAP_DEVICE;
}

static void add_gap(const struct sv_gpu_making *m, const struct gap *g,
                    const struct sv_given_unit *host, const struct sv_why_piece *pieces, size_t n)
{
    struct sv_gpu_device *d = g->device;
    const struct sv_span *next = &d->busy.items[g->k];
    int64_t parts[SV_N_GAPS] = {0};
    for (size_t i = 0; i < n; i++) {
        const struct sv_why_piece *p = &pieces[i];
        sv_spans_add(&d->idle[causes[p->class]], p->ts_ns, p->ts_ns + p->dur_ns, next->row);
        parts[causes[p->class]] += p->dur_ns;
    }
    enum sv_gpu_gap rest = cause_of_rest(m, g);
    sv_spans_add(&d->idle[rest], host->to_ns, next->from_ns, next->row);
    parts[rest] += next->from_ns - host->to_ns;
    for (int k = 0; k < SV_N_GAPS; k++) {
        d->gaps[k].n += parts[k] > 0;
        d->gaps[k].total_ns += parts[k];
        d->gaps[k].max_ns = parts[k] > d->gaps[k].max_ns ? parts[k] : d->gaps[k].max_ns;
    }
    if (next->from_ns - host->from_ns > d->longest_gap.to_ns - d->longest_gap.from_ns)
        d->longest_gap = (struct sv_span){
            .from_ns = host->from_ns, .to_ns = next->from_ns, .row = next->row, .last = next->row};
}

void sv_gpu_find_gaps(struct sv_gpu_making *m)
{
    struct gaps all = {0};
    struct sv_ledger *l = &m->r->gaps;
    find_all(&all, m);
    if (all.n)
        sv_ledger_make(
            l, m->t,
            &(struct sv_ledger_options){
                .step = -1, .given = all.units, .n_given = all.n, .given_kind = SV_UNIT_IS_WINDOW});
    for (size_t i = 0, unit = 0; i < all.n; i++) {
        bool has_unit = all.units[i].to_ns > all.units[i].from_ns; /* those of no length are none */
        size_t first = has_unit ? l->units[unit].first : 0;
        struct sv_gpu_device *d = all.items[i].device;
        add_gap(m, &all.items[i], &all.units[i], l->pieces + first,
                has_unit ? l->units[unit].end - first : 0);
        d->first_gap = d->end_gap ? d->first_gap : unit;
        unit += has_unit;
        d->end_gap = unit;
    }
    free(all.items);
    free(all.units);
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

/* While no device is busy the step's thread is at work itself, or waits: by the ledger. */
static void divide_rest(struct sv_gpu_step *x, const struct sv_ledger *l,
                        const struct sv_why_unit *u, const struct sv_spans *busy)
{
    int64_t by_class[SV_N_WHY_CLASSES] = {0};
    for (size_t i = u->first; i < u->end; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        int64_t ns = p->dur_ns - sv_spans_within(busy, p->ts_ns, p->ts_ns + p->dur_ns);
        bool is_work = p->class == SV_WHY_COMPUTE || p->class == SV_WHY_DISK ||
                       p->class == SV_WHY_PAGE || p->class == SV_WHY_COPY;
        *(is_work ? &x->host_ns : &x->idle_ns) += ns;
        if (!is_work)
            by_class[p->class] += ns;
    }
    x->waits_for = SV_N_WHY_CLASSES;
    for (unsigned k = 0; k < SV_N_WHY_CLASSES; k++)
        if (by_class[k] > 0 &&
            (x->waits_for == SV_N_WHY_CLASSES || by_class[k] > by_class[x->waits_for]))
            x->waits_for = k;
}

static struct sv_gpu_step divide(const struct sv_step *s,
                                 const struct sv_spans sets[SV_N_GPU_KINDS])
{
    int64_t end = s->ts_ns + s->dur_ns;
    int64_t compute = sv_spans_within(&sets[SV_GPU_COMPUTES], s->ts_ns, end);
    int64_t talk = sv_spans_within(&sets[SV_GPU_TALKS], s->ts_ns, end);
    int64_t busy = sv_spans_within(&sets[SV_GPU_COPIES], s->ts_ns, end);
    return (struct sv_gpu_step){
        .step = s, .compute_ns = compute, .talk_ns = talk - compute, .copy_ns = busy - talk};
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
    struct sv_ledger l; /* no sums of pieces: each is divided by what devices did meanwhile */
    sv_ledger_make(
        &l, m->t,
        &(struct sv_ledger_options){.step = -1, .steps = &r->steps, .pieces_max = SIZE_MAX / 2});
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
        r->by_step[at] = divide(&r->steps.steps[at], sets);
        divide_rest(&r->by_step[at], &l, &l.units[at], &sets[SV_GPU_COPIES]);
    }
    for (int k = 0; k < SV_N_GPU_KINDS; k++)
        sv_spans_fini(&sets[k]);
    sv_ledger_fini(&l);
    free(order);
    free(devices);
}
