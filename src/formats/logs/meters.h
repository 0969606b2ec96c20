/* The columns of utilisation logs (mpstat, nvidia-smi pmon, iostat) and the counters that they
 * become. */
#pragma once

#include "formats/lines.h"

enum sv_meter_of { SV_METER_CPU, SV_METER_GPU, SV_METER_DISK, SV_METER_ANY };

struct sv_meter {
    const char *word; /* in the log's header */
    enum sv_meter_of of;
    const char *counter, *unit;
    double scale; /* of the log's unit */
};

/* By the header's word; NULL: none. */
const struct sv_meter *sv_meter_named(enum sv_meter_of of, struct sv_text word);
/* The row of a CPU ("all" or its number), 0: it is no CPU; and of a disk. */
sv_track sv_meter_cpu(struct sv_lines *l, struct sv_text cpu);
sv_track sv_meter_disk(struct sv_lines *l, struct sv_text disk);
void sv_meter_put(struct sv_lines *l, struct sv_batch *b, const struct sv_meter *m, sv_track row,
                  int64_t ts_ns, double value);
