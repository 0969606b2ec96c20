/* What the probes of the page cache share: the file of a page. */
#ifndef SV_RECORD_PROBES_PAGE_CACHE_H
#define SV_RECORD_PROBES_PAGE_CACHE_H

#include "record/bpf/page_cache.h"
#include "record/decode/state.h"

/* Arguments `inode` and, where known, `path`. */
void sv_pages_put_file(struct sv_decode *d, struct sv_batch *b, uint32_t pid, uint32_t device,
                       uint64_t inode);
/* The record of a page has the descriptor of the call that caused it: so the path of the page's file is known from now on. */
void sv_pages_learn_file(struct sv_decode *d, const struct sv_wire_cache *c);

#endif
