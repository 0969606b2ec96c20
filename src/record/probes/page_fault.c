/* Probe `page_fault`: pages of mapped files that a program touches and that are not mapped yet, as instants on a row below the thread. */
#include "record/probes/page_cache.h"

static bool decode_fault(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_cache *c = (const void *)record;
    sv_track row = sv_decode_row(d, record, SV_PROBE_page_fault, SV_ROW_PAGE_FAULTS);
    (void)state;
    (void)size;
    sv_pages_learn_file(d, c);
    struct sv_event *e =
        sv_batch_put(b, SV_INSTANT, (int64_t)record->ts_ns, row, d->words.file, d->words.cat_fault);
    sv_pages_put_file(d, b, record->tgid, c->device, c->inode);
    sv_batch_int(b, d->words.offset, (int64_t)c->offset);
    sv_batch_finish(b, e);
    return true;
}

const struct sv_probe sv_probe_page_fault = {
    .name = "page_fault",
    .cat = SV_CAT_FAULT,
    .records = {{SV_WIRE_FAULT, sizeof(struct sv_wire_cache), "page faults", decode_fault}},
    .docs = {"page faults on files", "`page faults` below the thread", "inode, path, offset"},
    .with = &sv_probe_page_cache,
};
