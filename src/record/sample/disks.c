/* Names and tracks of disks. Called by the probe of block requests and by the sampler of
 * /proc/diskstats. */
#include "record/sample/disks.h"
#include "subjects/io/words.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    sv_track disks = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, SV_ROW_DISKS));
    return sv_dict_child(dict, disks, SV_TRACK_CUSTOM, sv_dict_cstr(dict, name));
}
