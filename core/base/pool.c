/* The pool: free lists by power of two over an arena. See pool.h for the promise. */
#include "core/base/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST    ((size_t)32)
#define LARGEST     (SMALLEST << (SV_POOL_CLASSES - 1))
#define CHUNK_BYTES ((size_t)1 << 16)

void sv_pool_init(struct sv_pool *p)
{
    memset(p, 0, sizeof *p);
    sv_arena_init(&p->chunks, CHUNK_BYTES);
}

void sv_pool_fini(struct sv_pool *p)
{
    sv_arena_fini(&p->chunks);
    memset(p->free, 0, sizeof p->free);
}

static unsigned class_of(size_t size)
{
    return size <= SMALLEST ? 0 : 64 - 5 - (unsigned)__builtin_clzll(size - 1);
}

void *sv_pool_get(struct sv_pool *p, size_t size)
{
    p->used_bytes += size;
    if (size > LARGEST)
        return sv_realloc(NULL, size);
    unsigned class = class_of(size);
    void *block = p->free[class];
    if (!block)
        return sv_arena_get(&p->chunks, SMALLEST << class, 16);
    memcpy(&p->free[class], block, sizeof(void *));
    return block;
}

void sv_pool_put(struct sv_pool *p, void *block, size_t size)
{
    assert(p->used_bytes >= size);
    p->used_bytes -= size;
    if (size > LARGEST) {
        free(block);
        return;
    }
    unsigned class = class_of(size);
    memcpy(block, &p->free[class], sizeof(void *));
    p->free[class] = block;
}
