/* Block requests as slices of the disks' tracks. Requests overlap, so each disk has as many lanes as it has requests at a time. */
#ifndef SV_RECORD_SAMPLE_DISKS_H
#define SV_RECORD_SAMPLE_DISKS_H

#include "core/base/map.h"
#include "core/stream/batch.h"
#include "core/stream/dict.h"
#include "core/stream/lanes.h"
#include "record/bpf/records.h"

struct sv_disk {
    uint32_t device;
    char name[32];
    sv_track track;
};

struct sv_disks {
    struct sv_dict *dict;
    struct sv_disk **all;
    size_t n, cap;
    struct sv_lanes lanes;
    sv_str cat, device, sector, bytes, queue_ns, pid, comm, flags, error;
    sv_str operations[5];
};

void sv_disks_init(struct sv_disks *d, struct sv_dict *dict);
void sv_disks_fini(struct sv_disks *d);
void sv_disks_request(struct sv_disks *d, struct sv_batch *b, const struct sv_wire_block *r);
bool sv_disk_is_write(uint32_t command);

/* The name of a device, as /sys/dev/block knows it, else MAJOR:MINOR. */
void sv_disk_name(uint32_t device, char name[32]);
/* The track of a disk by name, below `Disks`. */
sv_track sv_disk_track(struct sv_dict *dict, const char *name);

#endif
