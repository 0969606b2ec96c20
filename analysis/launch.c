/* Which host call launched a device slice. Used by the division of steps.
 *
 * The map of correlation numbers is made once, and only when some device slice has no arrow; the first host slice with a number
 * is the launch. Must not change the trace. */
#include "analysis/launch.h"

#include "base/mem.h"
#include "model/gpu_words.h"

#include <stdlib.h>

static uint8_t device_category(struct sv_text cat)
{
    enum sv_gpu_class c = sv_gpu_class(cat.bytes, cat.len);
    return c == SV_GPU_KERNEL                    ? SV_DEVICE_SLICE_KERNEL
           : c == SV_GPU_COPY || c == SV_GPU_SET ? SV_DEVICE_SLICE_COPY
                                                 : SV_NOT_DEVICE;
}

static bool correlation_of(const struct sv_launches *l, uint64_t row, uint64_t *key)
{
    const struct sv_trace *t = l->trace;
    struct sv_arg arg;
    uint32_t handle = t->slices.args[row];
    if (!handle || (!sv_trace_arg_of_type(t, handle, SV_ARG_CORRELATION, &arg) &&
                    !(l->key && sv_trace_arg(t, handle, l->key, &arg))))
        return false;
    if (arg.type != SV_ARG_CORRELATION && arg.type != SV_ARG_INT && arg.type != SV_ARG_UINT)
        return false;
    *key = arg.u ^ (uint64_t)t->dict->tracks[t->slices.track[row]].space << 48;
    return arg.u != 0;
}

static bool has_arrow(const struct sv_trace *t, uint32_t row)
{
    uint64_t first;
    return sv_trace_flows_in(t, row, &first) > 0;
}

void sv_launches_init(struct sv_launches *l, const struct sv_trace *t)
{
    *l = (struct sv_launches){.trace = t, .key = sv_dict_find_str(t->dict, "correlation", 11)};
    bool is_needed = false;
    l->by_cat = sv_alloc((size_t)t->dict->n_strings + 1);
    for (sv_str s = 1; s < t->dict->n_strings; s++)
        l->by_cat[s] = device_category(sv_dict_text(t->dict, s));
    for (uint32_t row = 0; row < t->slices.n && !is_needed; row++)
        is_needed = sv_device_slice(l, row) != SV_NOT_DEVICE && !has_arrow(t, row);
    for (uint32_t row = 0; row < t->slices.n && is_needed; row++) {
        uint64_t key;
        bool is_new;
        if (sv_device_slice(l, row) != SV_NOT_DEVICE || !correlation_of(l, row, &key))
            continue;
        uint64_t *value = sv_map_add(&l->launches, key, &is_new);
        if (is_new)
            *value = row;
    }
}

void sv_launches_fini(struct sv_launches *l)
{
    free(l->by_cat);
    sv_map_fini(&l->launches);
    *l = (struct sv_launches){0};
}

uint32_t sv_launch_of(const struct sv_launches *l, uint32_t row)
{
    const struct sv_trace *t = l->trace;
    uint64_t first, key, n = sv_trace_flows_in(t, row, &first);
    for (uint64_t i = first; i < first + n; i++) {
        uint32_t from = t->flows.from[t->flows.by_to[i]];
        if (sv_device_slice(l, from) == SV_NOT_DEVICE)
            return from;
    }
    if (!correlation_of(l, row, &key))
        return SV_NO_ROW;
    const uint64_t *value = sv_map_find(&l->launches, key);
    return value ? (uint32_t)*value : SV_NO_ROW;
}
