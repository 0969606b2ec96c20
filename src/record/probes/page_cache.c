/* Probe `page_cache`: pages that had to be read or made, as instants on a row below the thread. */
#include "record/probes/page_cache.h"

/* Pages that came one after the other. */
struct misses {
    int64_t ts_ns;
    uint32_t tgid, tid, device;
    uint64_t inode, offset, bytes;
};

void sv_pages_put_file(struct sv_decode *d, struct sv_batch *b, uint32_t pid, uint32_t device,
                       uint64_t inode)
{
    const struct sv_file *f =
        sv_inodes_find(&d->inodes, &d->tree, pid, device, inode, d->options.asks_procfs);
    sv_batch_int(b, d->words.inode, (int64_t)inode);
    if (f)
        sv_decode_path(d, b, d->words.path, f->path, f->len);
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

/* Neighbouring pages that a thread brings in at once are one event: a read-ahead of 128 KiB is 32 records. */
static void flush_misses(struct sv_decode *d, void *state, struct sv_batch *b)
{
    struct misses *m = state;
    if (m->bytes == 0)
        return;
    const struct sv_wire_head who = {.tgid = m->tgid, .tid = m->tid};
    sv_track row = sv_decode_row(d, &who, SV_PROBE_page_cache, SV_ROW_PAGE_CACHE);
    struct sv_event *e =
        sv_batch_put(b, SV_INSTANT, m->ts_ns, row, d->words.add, d->words.cat_page_cache);
    sv_pages_put_file(d, b, m->tgid, m->device, m->inode);
    sv_batch_int(b, d->words.offset, (int64_t)m->offset);
    sv_batch_int(b, d->words.bytes, (int64_t)m->bytes);
    sv_batch_finish(b, e);
    m->bytes = 0;
}

static bool decode_cache(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_cache *c = (const void *)record;
    struct misses *m = state;
    (void)size;
    bool continues = m->bytes > 0 && m->tid == c->head.tid && m->inode == c->inode &&
                     m->device == c->device && m->offset + m->bytes == c->offset;
    if (!continues) {
        flush_misses(d, m, b);
        sv_pages_learn_file(d, c);
        *m = (struct misses){.ts_ns = (int64_t)c->head.ts_ns,
                             .tgid = c->head.tgid,
                             .tid = c->head.tid,
                             .inode = c->inode,
                             .device = c->device,
                             .offset = c->offset};
    }
    m->bytes += c->bytes;
    sv_decode_waits(d);
    return true;
}

const struct sv_probe sv_probe_page_cache = {
    .name = "page_cache",
    .cat = SV_CAT_PAGE_CACHE,
    .records = {{SV_WIRE_CACHE, sizeof(struct sv_wire_cache), "page cache events", decode_cache}},
    .option = {.name = "no-page-cache",
               .help = "do not record page-cache misses",
               .turns_off = true},
    .sums = {{SV_SUM_BYTES, "not in the page cache", false}},
    .docs = {"page-cache misses", "`page cache misses` below the thread",
             "inode, path, offset, bytes; neighbouring pages are one event"},
    .tracepoint = "mm_filemap_fault",
    .state_size = sizeof(struct misses),
    .flush = flush_misses,
};
