/* Devices of which a trace has counters only (NVML's or the amdgpu driver's, nvidia-smi pmon): how
 * long they were busy, in all and in each step. Called by the report.
 *
 * A value is the share of the time since the one before in which something was running. The first
 * one says nothing about a time that is known. */
#include "subjects/gpu/figures.h"

#include "core/base/mem.h"
#include "core/base/sat.h"

#include <stdlib.h>
#include <string.h>

/* The number of "GPU 3"; -1: it is none. */
static int64_t number_in(const struct sv_dict *d, sv_track track)
{
    const char *name = sv_dict_text(d, d->tracks[track].name).bytes;
    char *end;
    if (strncmp(name, "GPU ", 4) != 0 || name[4] < '0' || name[4] > '9')
        return -1;
    int64_t n = strtoll(name + 4, &end, 10);
    return *end ? -1 : n;
}

static struct sv_gpu_use use_within(const struct sv_trace *t, sv_track track, int64_t from_ns,
                                    int64_t to_ns)
{
    const struct sv_counters *c = &t->counters;
    struct sv_gpu_use use = {0};
    double busy = 0;
    for (uint32_t i = t->tracks[track].counter_first + 1; i < t->tracks[track].counter_end; i++) {
        int64_t from = c->ts_ns[i - 1] > from_ns ? c->ts_ns[i - 1] : from_ns,
                to = c->ts_ns[i] < to_ns ? c->ts_ns[i] : to_ns;
        double share = c->value[i] / 100;
        if (to <= from)
            continue;
        share = share > 0 ? share < 1 ? share : 1 : 0;
        use.known_ns = sv_sat_add(use.known_ns, to - from);
        busy += share * (double)(to - from);
    }
    use.busy_ns = (int64_t)(busy + 0.5);
    return use;
}

static void add_track(struct sv_gpu_report *r, size_t *cap, sv_track track)
{
    const struct sv_trace *t = r->trace;
    const struct sv_dict *d = t->dict;
    sv_track device = d->tracks[track].parent;
    uint32_t first = t->tracks[track].counter_first, end = t->tracks[track].counter_end;
    int64_t number = number_in(d, device);
    if (end - first < 2 || number < 0 ||
        strcmp(sv_dict_text(d, d->tracks[track].name).bytes, "sm") != 0)
        return;
    r->sampled = sv_grow(r->sampled, cap, r->n_sampled + 1, sizeof *r->sampled);
    r->sampled[r->n_sampled++] = (struct sv_gpu_sampled){
        .number = number,
        .track = track,
        .space = d->tracks[track].space,
        .name = d->tracks[device].desc,
        .process = sv_dict_process_of(d, track),
        .n = end - first,
        .use = use_within(t, track, t->counters.ts_ns[first], t->counters.ts_ns[end - 1])};
}

void sv_gpu_find_sampled(struct sv_gpu_report *r)
{
    size_t cap = 0;
    for (sv_track k = 1; k < r->trace->n_tracks; k++)
        if (r->trace->tracks[k].counter_first < r->trace->tracks[k].counter_end)
            add_track(r, &cap, k);
}

/* The device itself where that is known, else what the step's own process did on it. */
static bool counts_for(const struct sv_gpu_report *r, const struct sv_gpu_sampled *x,
                       const struct sv_step *s)
{
    const struct sv_dict *d = r->trace->dict;
    if (x->space != d->tracks[s->track].space)
        return false;
    if (x->process && x->process != sv_dict_process_of(d, s->track))
        return false;
    for (size_t i = 0; x->process && i < r->n_sampled; i++)
        if (!r->sampled[i].process && r->sampled[i].space == x->space &&
            r->sampled[i].number == x->number)
            return false;
    return true;
}

struct sv_gpu_use sv_gpu_use_in_step(const struct sv_gpu_report *r, const struct sv_step *s)
{
    struct sv_gpu_use sum = {0};
    for (size_t i = 0; i < r->n_sampled; i++) {
        const struct sv_gpu_sampled *x = &r->sampled[i];
        if (!counts_for(r, x, s))
            continue;
        struct sv_gpu_use one =
            use_within(r->trace, x->track, s->ts_ns, sv_sat_add(s->ts_ns, s->dur_ns));
        sum.known_ns = sv_sat_add(sum.known_ns, one.known_ns);
        sum.busy_ns = sv_sat_add(sum.busy_ns, one.busy_ns);
    }
    return sum;
}
