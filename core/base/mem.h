/* Memory: an arena with a limit, and the only malloc wrappers of the program.
 *
 * Outside the libraries an exhausted heap is not survivable in a useful way, so sv_alloc() and
 * sv_realloc() end the program with one line on stderr. What must be refused politely (a trace that
 * does not fit the memory limit) is asked of the arena or of the store beforehand and answered with
 * SV_ENOMEM. */
#pragma once

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

/* The size of a cache or buffer, of which only the speed depends. Fuzz targets make everything anew
 * for each input, which large tables would be most of. */
#ifdef SV_FUZZ
#define SV_TABLE(n, when_fuzzed) (when_fuzzed)
#else
#define SV_TABLE(n, when_fuzzed) (n)
#endif

/* Where an exhausted heap jumps to in this thread; NULL: it ends the program. For libraries in
 * other people's programs. */
extern _Thread_local jmp_buf *sv_no_memory;
_Noreturn void sv_out_of_memory(size_t size); /* weak: libstave has its own */
void *sv_alloc(size_t size);                  /* zeroed */
void *sv_realloc(void *p, size_t size);       /* not zeroed past the old size */
/* For the buffers of read() and write(): not zeroed, free() frees it. align is a power of two. */
void *sv_alloc_aligned(size_t size, size_t align);
char *sv_strndup(const char *s, size_t len);

/* Asks for large pages under a large block: its first use costs a page fault per 2 MiB instead of
 * one per 4 KiB, and random access misses the page tables less. Only advice; call it again after
 * the block was reallocated. */
void sv_advise_huge(void *p, size_t size);

/* So many bytes stay with the program when they are freed, where the allocator can: for programs
 * that do one equal job after the other, which would take every page anew from the kernel. Not for
 * libraries. */
void sv_keep_freed(size_t bytes);

/* What was freed goes back to the system, where the allocator can: between two phases that both
 * need much. It looks through the heaps of all threads. */
void sv_return_freed(void);

/* Grows a vector to hold at least `need` items: doubles, never shrinks. */
void *sv_grow(void *items, size_t *cap, size_t need, size_t item_size);
/* The place of one more item: SV_APPEND(l->items, l->n, l->cap) = x; x must not read the vector,
 * which may just have moved. */
#define SV_APPEND(items, n, cap) \
    (*((items) = sv_grow((items), &(cap), (size_t)(n) + 1, sizeof *(items)), &(items)[(n)++]))

struct sv_arena_chunk;

struct sv_arena {
    struct sv_arena_chunk *chunks; /* newest first */
    uint8_t *at, *end;             /* free part of the newest chunk */
    size_t used_bytes;             /* all chunks together */
    size_t chunk_bytes;
};

/* The first chunk is taken at the first allocation, so an unused arena costs nothing. */
void sv_arena_init(struct sv_arena *a, size_t chunk_bytes);
void sv_arena_fini(struct sv_arena *a);
void sv_arena_reset(struct sv_arena *a); /* forget everything, keep the newest chunk */

void *sv_arena_slow(struct sv_arena *a, size_t size, size_t align);

/* Not zeroed. align is a power of two. */
static inline void *sv_arena_get(struct sv_arena *a, size_t size, size_t align)
{
    uintptr_t p = ((uintptr_t)a->at + align - 1) & ~(uintptr_t)(align - 1);
    if (__builtin_expect(a->at == NULL || p + size > (uintptr_t)a->end, 0))
        return sv_arena_slow(a, size, align);
    a->at = (uint8_t *)(p + size);
    return (void *)p;
}

char *sv_arena_copy(struct sv_arena *a, const void *bytes, size_t len); /* NUL-terminated copy */
