/* Device slices (kernels, copies) and the host calls that launched them.
 *
 * A slice is of a device if its category says so (core/stream/gpu_words.h). The call that launched
 * it is found by the arrow that arrives at it, else by the correlation number that both carry,
 * within one machine's (one rank's) numbers. */
#ifndef SV_WHY_LAUNCH_H
#define SV_WHY_LAUNCH_H

#include "core/base/map.h"
#include "store/trace.h"

enum sv_device_slice { SV_NOT_DEVICE, SV_DEVICE_SLICE_KERNEL, SV_DEVICE_SLICE_COPY };

struct sv_launches {
    const struct sv_trace *trace;
    sv_str key;      /* "correlation", 0 when no argument is called so */
    uint8_t *by_cat; /* by string: enum sv_device_slice */
    /* Machine and correlation number → row of the host. Profilers count up, so a table beats a map;
     * the map is for numbers that are far apart. */
    uint32_t *table;
    uint64_t first, n_table;
    struct sv_map map;
};

void sv_launches_init(struct sv_launches *l, const struct sv_trace *t);
void sv_launches_fini(struct sv_launches *l);

static inline enum sv_device_slice sv_device_slice(const struct sv_launches *l, uint64_t row)
{
    return (enum sv_device_slice)l->by_cat[l->trace->slices.cat[row]];
}

/* The row of the host call, SV_NO_ROW when it is not known. */
uint32_t sv_launch_of(const struct sv_launches *l, uint32_t row);

#endif
