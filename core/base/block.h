/* A block: one large piece of memory that grows without being copied.
 *
 * For columns and pools of many megabytes. Pages come from the system (mmap) and move by remapping
 * (mremap), so growing never holds two copies, and what was reserved but not yet touched costs
 * nothing. New bytes are zero. Under AddressSanitizer the heap is used instead, so that a step past
 * the end is seen. A zeroed struct is a valid empty block. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sv_block {
    void *at;
    size_t bytes; /* reserved */
};

/* Space for at least `bytes`, doubling what is there; false when the system has no more. */
bool sv_block_reserve(struct sv_block *b, size_t bytes);
/* Gives back what lies past `bytes`. */
void sv_block_trim(struct sv_block *b, size_t bytes);
void sv_block_fini(struct sv_block *b);
