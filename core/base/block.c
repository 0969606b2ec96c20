/* Blocks of memory straight from the system.
 *
 * Callers reserve ahead and account for what they use themselves: reserved bytes are address space
 * only until they are touched. They do not ask for huge pages: where the host takes free ones back
 * (as virtual machines do), touching one for the first time costs five times the faults that it
 * saves, and how often that happens depends on the machine's last seconds. */
#include "core/base/block.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define USE_HEAP 1
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || \
    defined SV_FUZZ /* for each input anew: the heap takes less time */
#undef USE_HEAP
#define USE_HEAP 1
#endif
#ifndef USE_HEAP
#define USE_HEAP 0
#endif

#define PAGE SV_TABLE((size_t)4096, (size_t)64)

static void *resize_heap(void *at, size_t old, size_t bytes)
{
    char *p = realloc(at, bytes);
    if (p && bytes > old)
        memset(p + old, 0, bytes - old);
    return p;
}

static void *resize_mapping(void *at, size_t old, size_t bytes)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = at ? mremap(at, old, bytes, MREMAP_MAYMOVE)
                 : mmap(NULL, bytes, PROT_READ | PROT_WRITE, how, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool resize(struct sv_block *b, size_t bytes)
{
    void *p = USE_HEAP ? resize_heap(b->at, b->bytes, bytes)
                       : resize_mapping(b->at, b->bytes, bytes);
    if (!p)
        return false;
    b->at = p;
    b->bytes = bytes;
    return true;
}

bool sv_block_reserve(struct sv_block *b, size_t bytes)
{
    if (bytes <= b->bytes)
        return true;
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t want = b->bytes * 2;
    if (want < bytes)
        want = bytes;
    want = (want + PAGE - 1) & ~(PAGE - 1);
    return resize(b, want);
}

void sv_block_trim(struct sv_block *b, size_t bytes)
{
    bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
    if (bytes == 0)
        sv_block_fini(b);
    else if (bytes < b->bytes)
        (void)resize(b, bytes); /* failing to shrink harms nobody */
}

void sv_block_fini(struct sv_block *b)
{
    if (USE_HEAP)
        free(b->at);
    else if (b->at)
        munmap(b->at, b->bytes);
    *b = (struct sv_block){0};
}
