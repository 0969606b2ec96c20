/* Probe `block`: requests to block devices as slices of the disks' tracks. Requests overlap, so
 * each disk has as many lanes as it has requests at a time. */
#include "record/bpf/block.h"
#include "record/decode/state.h"
#include "record/sample/disks.h"
#include "record/spool/scout.h"

#include <stdlib.h>
#include <string.h>

/* The kernel's numbers of operations and flags (include/linux/blk_types.h). */
enum { OP_MASK = 255, OP_READ = 0, OP_WRITE = 1, OP_FLUSH = 2, OP_DISCARD = 3, OP_ERASE = 5 };
enum {
    FLAG_SYNC = 1 << 11,
    FLAG_META = 1 << 12,
    FLAG_PRIO = 1 << 13,
    FLAG_FUA = 1 << 17,
    FLAG_PREFLUSH = 1 << 18,
    FLAG_RAHEAD = 1 << 19
};

struct disk {
    uint32_t device;
    char name[32];
    sv_track track;
};

struct disks {
    struct disk **all;
    size_t n, cap;
    sv_str operations[5];
};

static void open_disks(struct sv_decode *d, void *state)
{
    static const char *const operations[] = {"read", "write", "flush", "discard", "other"};
    struct disks *s = state;
    for (size_t i = 0; i < 5; i++)
        s->operations[i] = sv_dict_cstr(d->source.dict, operations[i]);
}

static void close_disks(struct sv_decode *d, void *state)
{
    struct disks *s = state;
    (void)d;
    for (size_t i = 0; i < s->n; i++)
        free(s->all[i]);
    free(s->all);
}

static struct disk *disk_of(struct disks *s, struct sv_dict *dict, uint32_t device)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->all[i]->device == device)
            return s->all[i];
    s->all = sv_grow(s->all, &s->cap, s->n + 1, sizeof *s->all);
    struct disk *k = sv_alloc(sizeof *k);
    k->device = device;
    sv_disk_name(device, k->name);
    k->track = sv_disk_track(dict, k->name);
    s->all[s->n++] = k;
    return k;
}

static sv_str operation(const struct disks *s, uint32_t command)
{
    switch (command & OP_MASK) {
    case OP_READ: return s->operations[0];
    case OP_WRITE: return s->operations[1];
    case OP_FLUSH: return s->operations[2];
    case OP_DISCARD:
    case OP_ERASE: return s->operations[3];
    default: return s->operations[4];
    }
}

/* As the kernel's own tracepoints print them. */
static size_t flag_letters(uint32_t command, char text[12])
{
    static const char operations[] = "RWFD";
    size_t n = 0;
    if (command & FLAG_PREFLUSH)
        text[n++] = 'F';
    text[n++] = (command & OP_MASK) < 4 ? operations[command & OP_MASK] : 'N';
    if (command & FLAG_FUA)
        text[n++] = 'F';
    if (command & FLAG_RAHEAD)
        text[n++] = 'A';
    if (command & FLAG_SYNC)
        text[n++] = 'S';
    if (command & FLAG_META)
        text[n++] = 'M';
    return n;
}

static bool decode_block(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    struct disks *s = state;
    const struct sv_wire_block *r = (const void *)record;
    const struct sv_kernel_words *w = &d->words;
    struct disk *k = disk_of(s, d->source.dict, r->device);
    int64_t start = (int64_t)(r->issue_ns ? r->issue_ns : r->queue_ns);
    int64_t end = (int64_t)r->head.ts_ns;
    struct sv_lane_row *row = sv_lanes_row(&d->tree.lanes, k->track, &sv_lanes_by_end);
    sv_track lane = sv_lane_take(&d->tree.lanes, row, &start, &end);
    char letters[12];
    (void)size;
    struct sv_event *e =
        sv_batch_put(b, SV_BEGIN, start, lane, operation(s, r->command), w->cat_block);
    sv_decode_text(b, w->device, k->name, strlen(k->name));
    if (r->bytes)
        sv_batch_int(b, w->sector, (int64_t)r->sector);
    sv_batch_int(b, w->bytes, r->bytes);
    if (r->queue_ns && r->issue_ns > r->queue_ns)
        sv_batch_int(b, w->queue_ns, (int64_t)(r->issue_ns - r->queue_ns));
    sv_decode_text(b, w->flags, letters, flag_letters(r->command, letters));
    if (r->head.tgid) /* 0: queued by an interrupt, or from outside of our pid namespace */
        sv_batch_int(b, w->pid, r->head.tgid);
    sv_decode_text(b, w->comm, r->comm, strnlen(r->comm, sizeof r->comm));
    if (r->error)
        sv_batch_int(b, w->error, r->error < 0 ? -(int64_t)r->error : r->error);
    sv_batch_finish(b, e);
    sv_batch_put(b, SV_END, end, lane, 0, 0);
    return true;
}

const struct sv_probe sv_probe_block = {
    .name = "block",
    .cat = SV_CAT_BLOCK,
    .records = {{SV_WIRE_BLOCK, sizeof(struct sv_wire_block), "block requests", decode_block}},
    .option = {.name = "no-block",
               .help = "do not record block requests",
               .topic = "Kernel events",
               .turns_off = true},
    .sums = {{SV_SUM_EVENTS, "block requests", false}},
    .less = "--no-block",
    .docs = {"block requests of the whole machine", "the device under `Disks`, with lanes",
             "device, sector, bytes, time in the queue, who caused it where the kernel knows"},
    .tracepoint = "block_rq_issue",
    .state_size = sizeof(struct disks),
    .open = open_disks,
    .close = close_disks,
    .ends_gathering = true,
    .can_wait = sv_scout_always,
};
