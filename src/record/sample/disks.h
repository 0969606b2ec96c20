/* The tracks of disks: what block requests and the utilisation of disks have in common. */
#ifndef SV_RECORD_SAMPLE_DISKS_H
#define SV_RECORD_SAMPLE_DISKS_H

#include "core/stream/dict.h"

/* The name of a device, as /sys/dev/block knows it, else MAJOR:MINOR. */
void sv_disk_name(uint32_t device, char name[32]);
/* The track of a disk by name, below `Disks`. */
sv_track sv_disk_track(struct sv_dict *dict, const char *name);

#endif
