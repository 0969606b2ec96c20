/* What the probes of the page cache share: the file of a page, and neighbouring pages as one
 * event. */
#ifndef SV_RECORD_PROBES_PAGE_CACHE_H
#define SV_RECORD_PROBES_PAGE_CACHE_H

#include "record/bpf/page_cache.h"
#include "record/decode/state.h"

/* Arguments `inode` and, where known, `path`. */
void sv_pages_put_file(struct sv_decode *d, struct sv_batch *b, uint32_t pid, uint32_t device,
                       uint64_t inode);
bool sv_pages_are_hidden(struct sv_decode *d, uint32_t pid, uint32_t device, uint64_t inode);
/* The record of a page has the descriptor of the call that caused it: so the path of the page's
 * file is known from now on. */
void sv_pages_learn_file(struct sv_decode *d, const struct sv_wire_cache *c);

/* Pages that a thread brings in one after the other are one event: a read-ahead of 128 KiB is 32
 * records. First in the state of a probe. */
struct sv_page_run {
    int64_t ts_ns;
    uint32_t tgid, tid, device;
    uint64_t inode, offset, end, bytes, n;
    uint32_t is; /* enum sv_wire_page */
};
/* One more, of which `bytes` count. Where it does not continue the others, flush(d, run, b) is
 * called first, which writes them. */
void sv_page_run_add(struct sv_decode *d, struct sv_page_run *run, struct sv_batch *b,
                     const struct sv_wire_cache *c, uint64_t ts_ns, uint64_t bytes,
                     void (*flush)(struct sv_decode *d, void *run, struct sv_batch *b));
/* An instant for what was gathered, which begins anew; the caller may add arguments and finishes
 * it. NULL: nothing was gathered. */
struct sv_event *sv_page_run_put(struct sv_decode *d, struct sv_page_run *run, struct sv_batch *b,
                                 enum sv_probe_number probe, const char *row, sv_str name,
                                 sv_str cat);

#endif
