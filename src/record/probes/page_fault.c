/* Probe `page_fault`: pages of mapped files that a program touches and that are not mapped yet, on
 * a row below the thread.
 *
 * A fault that had to wait for its page is a slice. Those for which the kernel only had to map what
 * was in the cache are gathered: they come every 64 KiB. */
#include "record/bpf/page_fault.h"
#include "record/probes/page_cache.h"
#include "record/probes/sched.h"
#include "record/spool/scout.h"

enum { WINDOW_SHIFT = 16, PAGE_SHIFT = 12, WINDOWS = 256 };

/* Pages of 64 KiB of a file that a process has mapped. The kernel maps around a page, and says
 * neither which pages were mapped already nor which it left out. */
struct window {
    uint64_t inode, number;
    uint32_t tgid, device;
    uint32_t pages; /* bits */
};

/* Faults on pages that were in the cache, one after the other. */
struct faults {
    struct sv_page_run run;         /* first */
    struct window windows[WINDOWS]; /* of late */
};

static uint32_t pages_of(uint64_t offset, uint64_t bytes)
{
    uint64_t first = offset >> PAGE_SHIFT & 15, n = (bytes + (1 << PAGE_SHIFT) - 1) >> PAGE_SHIFT;
    return (uint32_t)(((UINT64_C(1) << (n < 16 ? n : 16)) - 1) << first) & 0xffff;
}

/* The bytes that this fault mapped and no other one did. Where the cache had all that was needed,
 * at least one page is new: a window that has them all says that the file was mapped anew. */
static uint64_t new_bytes(struct faults *s, const struct sv_wire_fault *f)
{
    const struct sv_wire_cache *c = &f->page;
    uint64_t number = c->offset >> WINDOW_SHIFT;
    if (c->bytes == 0 || c->bytes > 1 << WINDOW_SHIFT ||
        (c->offset + c->bytes - 1) >> WINDOW_SHIFT != number)
        return c->bytes; /* of a kernel with other windows */
    uint64_t key = sv_mix64(c->inode * 31 + number) ^ c->head.tgid;
    struct window *w = &s->windows[key % WINDOWS];
    uint32_t pages = pages_of(c->offset, c->bytes);
    bool is_known = w->inode == c->inode && w->number == number && w->tgid == c->head.tgid &&
                    w->device == c->device;
    if (!is_known || (c->pad & SV_WIRE_FAULT_CACHED && (pages & ~w->pages) == 0))
        *w = (struct window){c->inode, number, c->head.tgid, c->device, 0};
    uint32_t fresh = pages & ~w->pages;
    w->pages |= pages;
    uint64_t bytes = (uint64_t)__builtin_popcount(fresh) << PAGE_SHIFT;
    return bytes < c->bytes ? bytes : c->bytes; /* a file may end within a page */
}

static void flush_faults(struct sv_decode *d, void *state, struct sv_batch *b)
{
    struct sv_page_run *run = state;
    int64_t n = (int64_t)run->n;
    struct sv_event *e = sv_page_run_put(d, run, b, SV_PROBE_page_fault, SV_ROW_PAGE_FAULTS,
                                         d->words.mapped, d->words.cat_fault);
    if (!e)
        return;
    sv_batch_int(b, d->words.count, n);
    sv_batch_finish(b, e);
}

static bool decode_fault(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    const uint64_t longest_ns = (uint64_t)1 << 56; /* two years: sums stay sums */
    const struct sv_wire_fault *f = (const void *)record;
    const struct sv_wire_cache *c = &f->page;
    (void)size;
    if (f->start_ns > record->ts_ns || record->ts_ns - f->start_ns > longest_ns ||
        c->offset > (UINT64_C(1) << 62))
        return false;
    if (d->hidden && record->tgid == d->hidden)
        return true; /* not the command yet */
    uint64_t bytes = new_bytes(state, f);
    sv_states_ran(d, b, sv_tree_thread(&d->tree, record->tgid, record->tid), f->start_ns,
                  record->ts_ns);
    if (c->pad & SV_WIRE_FAULT_CACHED) {
        sv_page_run_add(d, state, b, c, f->start_ns, bytes, flush_faults);
        return true;
    }
    bool waits = c->pad & SV_WIRE_FAULT_WAITED;
    flush_faults(d, state, b);
    sv_pages_learn_file(d, c);
    if (sv_pages_are_hidden(d, record->tgid, c->device, c->inode))
        return true;
    sv_track row = sv_decode_row(d, record, SV_PROBE_page_fault, SV_ROW_PAGE_FAULTS);
    struct sv_event *e = sv_batch_put(b, waits ? SV_SLICE : SV_INSTANT, (int64_t)f->start_ns, row,
                                      d->words.file, d->words.cat_fault);
    e->dur_ns = waits ? (int64_t)(record->ts_ns - f->start_ns) : 0;
    sv_pages_put_file(d, b, record->tgid, c->device, c->inode);
    sv_batch_int(b, d->words.offset, (int64_t)f->touched);
    sv_batch_int(b, d->words.bytes, (int64_t)bytes);
    if (waits)
        sv_batch_int(b, d->words.major, (c->pad & SV_WIRE_FAULT_MAJOR) != 0);
    sv_batch_finish(b, e);
    return true;
}

const struct sv_probe sv_probe_page_fault = {
    .name = "page_fault",
    .cat = SV_CAT_FAULT,
    .records = {{SV_WIRE_FAULT, sizeof(struct sv_wire_fault), "page faults", decode_fault}},
    .less = "--no-page-cache",
    .docs =
        {"page faults on files", "`page faults` below the thread",
         "inode, path, offset, bytes; a slice if the thread waited for its page (`major` is 1 "
         "if this fault made the kernel read it); neighbouring faults on pages in the cache are "
         "one event `mapped`, with their number, and none for programs and libraries"},
    .with = {&sv_probe_page_cache},
    .state_size = sizeof(struct faults),
    .flush = flush_faults,
    .can_wait = sv_scout_page,
};
