/* Memory: the only place that calls malloc for the program, and the arena.
 *
 * The arena takes chunks that grow with its size (a quarter of what it holds, within bounds), so
 * that a large trace makes few of them and a small one wastes little. A request larger than a chunk
 * gets a chunk of its own. */
#include "core/base/mem.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define CHUNK_MAX ((size_t)8 << 20)
#define HUGE_PAGE ((uintptr_t)2 << 20)

struct sv_arena_chunk {
    struct sv_arena_chunk *next;
    size_t size;
};

_Thread_local jmp_buf *sv_no_memory;

/* A library that lives in other people's programs puts its own in place of this one. */
__attribute__((weak)) _Noreturn void sv_out_of_memory(size_t size)
{
    if (sv_no_memory)
        longjmp(*sv_no_memory, 1);
    fprintf(stderr, "stave: out of memory (asked for %zu bytes)\n", size);
    abort();
}

void *sv_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        sv_out_of_memory(size);
    return p;
}

void *sv_realloc(void *p, size_t size)
{
    void *q = realloc(p, size ? size : 1);
    if (!q)
        sv_out_of_memory(size);
    return q;
}

void *sv_alloc_aligned(size_t size, size_t align)
{
    void *p = aligned_alloc(align, (size + align - 1) & ~(align - 1));
    if (!p)
        sv_out_of_memory(size);
    return p;
}

void sv_advise_huge(void *p, size_t size)
{
    uintptr_t first = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t last = ((uintptr_t)p + size) & ~(HUGE_PAGE - 1);
    if (last > first)
        madvise((void *)first, last - first, MADV_HUGEPAGE);
}

void sv_keep_freed(size_t bytes)
{
#ifdef __GLIBC__
    mallopt(M_TOP_PAD, bytes < INT_MAX ? (int)bytes : INT_MAX);
#else
    (void)bytes;
#endif
}

void sv_return_freed(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

char *sv_strndup(const char *s, size_t len)
{
    char *copy = sv_realloc(NULL, len + 1);
    if (len)
        memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void *sv_grow(void *items, size_t *cap, size_t need, size_t item_size)
{
    assert(item_size > 0);
    if (need <= *cap)
        return items;
    size_t n = *cap ? *cap : 16;
    while (n < need)
        n *= 2;
    if (n > SIZE_MAX / item_size)
        sv_out_of_memory(SIZE_MAX);
    *cap = n;
    return sv_realloc(items, n * item_size);
}

void sv_arena_init(struct sv_arena *a, size_t chunk_bytes)
{
#ifdef SV_FUZZ
    chunk_bytes /= 64; /* as SV_TABLE */
#endif
    *a = (struct sv_arena){.chunk_bytes = chunk_bytes};
}

static void free_chunks(struct sv_arena_chunk *c)
{
    while (c) {
        struct sv_arena_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void sv_arena_fini(struct sv_arena *a)
{
    free_chunks(a->chunks);
    *a = (struct sv_arena){.chunk_bytes = a->chunk_bytes};
}

void sv_arena_reset(struct sv_arena *a)
{
    struct sv_arena_chunk *c = a->chunks;
    if (!c)
        return;
    free_chunks(c->next);
    c->next = NULL;
    a->used_bytes = c->size;
    a->at = (uint8_t *)(c + 1);
    a->end = (uint8_t *)c + c->size;
}

static size_t chunk_size(const struct sv_arena *a, size_t need)
{
    size_t size = a->chunk_bytes;
    if (size < a->used_bytes / 4)
        size = a->used_bytes / 4;
    if (size > CHUNK_MAX && a->chunk_bytes < CHUNK_MAX)
        size = CHUNK_MAX;
    return size < need ? need : size;
}

void *sv_arena_slow(struct sv_arena *a, size_t size, size_t align)
{
    assert(align && (align & (align - 1)) == 0);
    if (size > SIZE_MAX / 2)
        sv_out_of_memory(size);
    size_t total = chunk_size(a, sizeof(struct sv_arena_chunk) + size + align);
    struct sv_arena_chunk *c = sv_realloc(NULL, total);
    *c = (struct sv_arena_chunk){.next = a->chunks, .size = total};
    a->chunks = c;
    a->used_bytes += total;
    a->at = (uint8_t *)(c + 1);
    a->end = (uint8_t *)c + total;
    uintptr_t p = ((uintptr_t)a->at + align - 1) & ~(uintptr_t)(align - 1);
    a->at = (uint8_t *)(p + size);
    return (void *)p;
}

char *sv_arena_copy(struct sv_arena *a, const void *bytes, size_t len)
{
    char *copy = sv_arena_get(a, len + 1, 1);
    if (len)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}
