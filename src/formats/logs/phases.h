/* Phases of an application as its log reports them: a beginning, later an end of the same name on
 * the same track. */
#pragma once

#include "formats/lines.h"

#define SV_PHASES_OPEN_MAX 4096

struct sv_phase {
    sv_track track;
    sv_str name;
    int64_t ts_ns, number; /* number: of the epoch, block or step; -1: none */
};

struct sv_phases {
    struct sv_phase *open;
    size_t n, cap;
};

void sv_phases_fini(struct sv_phases *p);
/* False: too many are open. */
bool sv_phase_begin(struct sv_phases *p, sv_track track, sv_str name, int64_t ts_ns,
                    int64_t number);
/* Puts the slice of the newest open phase of that name (with `number`, if given, of that number).
 * False: none is open. */
bool sv_phase_end(struct sv_phases *p, struct sv_lines *l, struct sv_batch *b, sv_track track,
                  sv_str name, int64_t ts_ns, int64_t number);
/* Puts one that never ended; false when none is left. For the reader's end(). */
bool sv_phase_leave(struct sv_phases *p, struct sv_lines *l, struct sv_batch *b);

/* The track of a rank's phases: "phases" when the rank is not known (-1). */
sv_track sv_phase_track(struct sv_lines *l, int64_t rank);
