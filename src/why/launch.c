/* Which host call launched a device slice. Used by the division of steps.
 *
 * The map of correlation numbers is made once, and only when some device slice has no arrow; the
 * first host slice with a number is the launch. Must not change the trace. */
#include "why/launch.h"

#include "core/base/mem.h"
#include "core/stream/gpu_words.h"

#include <stdlib.h>
#include <string.h>

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

struct numbered {
    uint64_t key;
    uint32_t row;
};

/* The first row with a number is the launch. */
static void make_table(struct sv_launches *l, const struct numbered *v, size_t n)
{
    l->table = sv_alloc_aligned(l->n_table * sizeof *l->table, 64);
    memset(l->table, 0xff, l->n_table * sizeof *l->table); /* SV_NO_ROW */
    for (size_t i = n; i-- > 0;)
        l->table[v[i].key - l->first] = v[i].row;
}

static void make_map(struct sv_launches *l, const struct numbered *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_new;
        uint64_t *value = sv_map_add(&l->map, v[i].key, &is_new);
        if (is_new)
            *value = v[i].row;
    }
}

static void number_launches(struct sv_launches *l)
{
    struct numbered *v = NULL;
    size_t n = 0, cap = 0;
    uint64_t least = UINT64_MAX, most = 0, key;
    for (uint32_t row = 0; row < l->trace->slices.n; row++) {
        if (sv_device_slice(l, row) != SV_NOT_DEVICE || !correlation_of(l, row, &key))
            continue;
        v = sv_grow(v, &cap, n + 1, sizeof *v);
        v[n++] = (struct numbered){key, row};
        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    if (n && most - least < (uint64_t)n * 4 + 1024) {
        l->first = least;
        l->n_table = most - least + 1;
        make_table(l, v, n);
    } else {
        make_map(l, v, n);
    }
    free(v);
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
    if (is_needed)
        number_launches(l);
}

void sv_launches_fini(struct sv_launches *l)
{
    free(l->by_cat);
    free(l->table);
    sv_map_fini(&l->map);
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
    if (l->n_table)
        return key - l->first < l->n_table ? l->table[key - l->first] : SV_NO_ROW;
    const uint64_t *value = sv_map_find(&l->map, key);
    return value ? (uint32_t)*value : SV_NO_ROW;
}
