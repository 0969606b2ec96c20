/* Probe `page_cache`: pages that had to be read or made, as instants on a row below the thread. */
#include "record/probes/page_cache.h"
#include "record/spool/scout.h"

void sv_pages_put_file(struct sv_decode *d, struct sv_batch *b, uint32_t pid, uint32_t device,
                       uint64_t inode)
{
    const struct sv_proc_image who = sv_tree_image(&d->tree, pid);
    const struct sv_file *f =
        sv_inodes_find(&d->inodes, &d->tree, device, inode, d->options.asks_procfs ? &who : NULL);
    sv_batch_int(b, d->words.inode, (int64_t)inode);
    if (f)
        sv_decode_path(b, d->words.path, f->path, f->len);
}

bool sv_pages_are_hidden(struct sv_decode *d, uint32_t pid, uint32_t device, uint64_t inode)
{
    const struct sv_proc_image who = sv_tree_image(&d->tree, pid);
    return sv_decode_hides(d, sv_inodes_find(&d->inodes, &d->tree, device, inode,
                                             d->options.asks_procfs ? &who : NULL));
}

/* The call under way says which file this is. */
void sv_pages_learn_file(struct sv_decode *d, const struct sv_wire_cache *c)
{
    if (c->fd < 0)
        return;
    const struct sv_fd_when when = {.start_ns = c->head.ts_ns, .inode = c->inode};
    struct sv_fd *now;
    struct sv_file *f =
        sv_decode_descriptor(d, sv_decode_process(d, c->head.tgid), c->fd, when, &now);
    if (f && f->path[0] == '/')
        sv_inodes_learn(&d->inodes, &d->tree, c->device, c->inode, f);
    sv_file_put(&d->tree, f);
}

void sv_page_run_add(struct sv_decode *d, struct sv_page_run *run, struct sv_batch *b,
                     const struct sv_wire_cache *c, uint64_t ts_ns, uint64_t bytes,
                     void (*flush)(struct sv_decode *d, void *run, struct sv_batch *b))
{
    uint32_t is = c->head.kind == SV_WIRE_CACHE ? c->pad : 0;
    bool continues = run->n > 0 && run->tid == c->head.tid && run->inode == c->inode &&
                     run->device == c->device && run->end == c->offset && run->is == is;
    if (!continues) {
        flush(d, run, b);
        sv_pages_learn_file(d, c);
        *run = (struct sv_page_run){.ts_ns = (int64_t)ts_ns,
                                    .tgid = c->head.tgid,
                                    .tid = c->head.tid,
                                    .device = c->device,
                                    .inode = c->inode,
                                    .offset = c->offset,
                                    .is = is};
    }
    run->n++;
    run->end = c->offset + c->bytes;
    run->bytes += bytes;
    sv_decode_waits(d);
}

struct sv_event *sv_page_run_put(struct sv_decode *d, struct sv_page_run *run, struct sv_batch *b,
                                 enum sv_probe_number probe, const char *row, sv_str name,
                                 sv_str cat)
{
    const struct sv_wire_head who = {.tgid = run->tgid, .tid = run->tid};
    if (run->n == 0)
        return NULL;
    if (sv_pages_are_hidden(d, run->tgid, run->device, run->inode)) {
        run->n = 0;
        return NULL;
    }
    sv_track track = sv_decode_row(d, &who, probe, row);
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, run->ts_ns, track, name, cat);
    sv_pages_put_file(d, b, run->tgid, run->device, run->inode);
    sv_batch_int(b, d->words.offset, (int64_t)run->offset);
    sv_batch_int(b, d->words.bytes, (int64_t)run->bytes);
    run->n = 0;
    return e;
}

static void flush_misses(struct sv_decode *d, void *state, struct sv_batch *b)
{
    struct sv_page_run *run = state;
    bool is_new = run->is == SV_WIRE_PAGE_CREATED, is_ahead = run->is == SV_WIRE_PAGE_AHEAD;
    struct sv_event *e = sv_page_run_put(
        d, run, b, SV_PROBE_page_cache, SV_ROW_PAGE_CACHE, is_new ? d->words.create : d->words.add,
        is_new ? d->words.cat_page_created : d->words.cat_page_cache);
    if (!e)
        return;
    if (is_ahead)
        sv_batch_int(b, d->words.readahead, 1);
    sv_batch_finish(b, e);
}

static bool decode_cache(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_cache *c = (const void *)record;
    (void)size;
    if (c->bytes > 0)
        sv_page_run_add(d, state, b, c, record->ts_ns, c->bytes, flush_misses);
    return true;
}

const struct sv_probe sv_probe_page_cache = {
    .name = "page_cache",
    .cat = SV_CAT_PAGE_CACHE,
    .records = {{SV_WIRE_CACHE, sizeof(struct sv_wire_cache), "page cache events", decode_cache}},
    .option = {.name = "no-page-cache",
               .help = "do not record page-cache misses",
               .topic = "Kernel events",
               .turns_off = true},
    .sums = {{SV_SUM_BYTES, "not in the page cache", false}},
    .less = "--no-page-cache",
    .docs =
        {"page-cache misses", "`page cache misses` below the thread",
         "inode, path, offset, bytes; `readahead` is 1 where nobody had asked for the pages yet; "
         "pages that a write makes are apart (`create`, category `page_created`); neighbouring "
         "pages are one event"},
    .tracepoint = "mm_filemap_fault",
    .state_size = sizeof(struct sv_page_run),
    .flush = flush_misses,
    .can_wait = sv_scout_page,
};
