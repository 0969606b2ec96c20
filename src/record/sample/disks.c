/* Block requests to events. Called by the decoder for each completed request; lanes are chosen so that each one's slices come in time order. */
#include "record/sample/disks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool sv_disk_is_write(uint32_t command)
{
    return (command & OP_MASK) == OP_WRITE;
}

void sv_disks_init(struct sv_disks *d, struct sv_dict *dict)
{
    static const char *const operations[] = {"read", "write", "flush", "discard", "other"};
    *d = (struct sv_disks){.dict = dict,
                           .cat = sv_dict_cstr(dict, "block"),
                           .device = sv_dict_cstr(dict, "device"),
                           .sector = sv_dict_cstr(dict, "sector"),
                           .bytes = sv_dict_cstr(dict, "bytes"),
                           .queue_ns = sv_dict_cstr(dict, "queue_ns"),
                           .pid = sv_dict_cstr(dict, "pid"),
                           .comm = sv_dict_cstr(dict, "comm"),
                           .flags = sv_dict_cstr(dict, "flags"),
                           .error = sv_dict_cstr(dict, "errno")};
    for (size_t i = 0; i < 5; i++)
        d->operations[i] = sv_dict_cstr(dict, operations[i]);
}

void sv_disks_fini(struct sv_disks *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->all[i]);
    free(d->all);
}

void sv_disk_name(uint32_t device, char name[32])
{
    char path[64], target[512];
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", device >> 20, device & 0xfffff);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n > 0) {
        target[n] = 0;
        const char *slash = strrchr(target, '/');
        snprintf(name, 32, "%.31s", slash ? slash + 1 : target);
    } else {
        snprintf(name, 32, "%u:%u", device >> 20, device & 0xfffff);
    }
}

sv_track sv_disk_track(struct sv_dict *dict, const char *name)
{
    sv_track disks = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "Disks"));
    return sv_dict_child(dict, disks, SV_TRACK_CUSTOM, sv_dict_cstr(dict, name));
}

static struct sv_disk *disk_of(struct sv_disks *d, uint32_t device)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->all[i]->device == device)
            return d->all[i];
    d->all = sv_grow(d->all, &d->cap, d->n + 1, sizeof *d->all);
    struct sv_disk *k = sv_alloc(sizeof *k);
    k->device = device;
    sv_disk_name(device, k->name);
    k->track = sv_disk_track(d->dict, k->name);
    sv_rows_init(&k->lanes, k->track);
    d->all[d->n++] = k;
    return k;
}

static sv_str operation(const struct sv_disks *d, uint32_t command)
{
    switch (command & OP_MASK) {
    case OP_READ: return d->operations[0];
    case OP_WRITE: return d->operations[1];
    case OP_FLUSH: return d->operations[2];
    case OP_DISCARD:
    case OP_ERASE: return d->operations[3];
    default: return d->operations[4];
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

static void put_words(struct sv_batch *b, sv_str key, const char *text, size_t len)
{
    sv_batch_str(b, key, sv_batch_text(b, text, len), len);
}

void sv_disks_request(struct sv_disks *d, struct sv_batch *b, const struct sv_wire_block *r)
{
    struct sv_disk *k = disk_of(d, r->device);
    int64_t start = (int64_t)(r->issue_ns ? r->issue_ns : r->queue_ns);
    int64_t end = (int64_t)r->head.ts_ns;
    sv_track lane = sv_rows_take(&k->lanes, d->dict, &start, &end);
    char letters[12];
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.ts_ns = start,
                           .track = lane,
                           .name = operation(d, r->command),
                           .cat = d->cat,
                           .kind = SV_BEGIN};
    put_words(b, d->device, k->name, strlen(k->name));
    if (r->bytes)
        sv_batch_int(b, d->sector, (int64_t)r->sector);
    sv_batch_int(b, d->bytes, r->bytes);
    if (r->queue_ns && r->issue_ns > r->queue_ns)
        sv_batch_int(b, d->queue_ns, (int64_t)(r->issue_ns - r->queue_ns));
    put_words(b, d->flags, letters, flag_letters(r->command, letters));
    if (r->head.tgid) /* an interrupt queued it, or somebody outside of our pid namespace */
        sv_batch_int(b, d->pid, r->head.tgid);
    put_words(b, d->comm, r->comm, strnlen(r->comm, sizeof r->comm));
    if (r->error)
        sv_batch_int(b, d->error, r->error < 0 ? -r->error : r->error);
    sv_batch_finish(b, e);
    e = sv_batch_event(b);
    *e = (struct sv_event){.ts_ns = end, .track = lane, .kind = SV_END};
}
