/* Tasks of StarPU in two traces: stave-server knows which batch a task computes, StarPU's own FxT
 * file when which worker did what for it. Both draw an arrow with the number below, so that the two
 * meet when the files are merged (stave merge --same-host). */
#pragma once

#include "core/base/map.h"

/* The flow of a task with this job id. */
static inline uint64_t sv_starpu_job_flow(uint64_t job)
{
    return sv_mix64(job ^ UINT64_C(0x73746172706a6f62));
}
