/* A pool: blocks of any size that are given back one by one, for stages that run for weeks.
 *
 * Sizes are rounded up to powers of two from 32 bytes on; a returned block waits in the list of its
 * size for the next request. Small blocks are cut from chunks that live as long as the pool; large
 * ones come from the heap and return to it. So memory is bounded by the sum of the peaks per size
 * and cannot leak by fragmentation. */
#pragma once

#include "core/base/mem.h"

#define SV_POOL_CLASSES 8 /* 32 bytes … 4 KiB */

struct sv_pool {
    struct sv_arena chunks;
    void *free[SV_POOL_CLASSES];
    size_t used_bytes; /* handed out and not yet returned, as asked for */
};

void sv_pool_init(struct sv_pool *p);
void sv_pool_fini(struct sv_pool *p); /* large blocks must have been returned */

void *sv_pool_get(struct sv_pool *p, size_t size);             /* aligned to 16, not zeroed */
void sv_pool_put(struct sv_pool *p, void *block, size_t size); /* the size it was asked with */
