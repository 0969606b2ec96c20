/* What each slice of a trace is (enum sv_work, SV_WORK_UNKNOWN or SV_WORK_WAIT), and whose each
 * track is: for the division of steps. */
#ifndef SV_WHY_STEP_KINDS_H
#define SV_WHY_STEP_KINDS_H

#include "why/launch.h"
#include "why/steps.h"

struct sv_step_kinds {
    const struct sv_trace *t;
    struct sv_launches launches;
    uint8_t *by_string, *by_row;
    /* by track: the process whose thread or device it is, 0: not to be looked at */
    sv_track *owner;
    bool *is_device; /* by track */
};

void sv_step_kinds_init(struct sv_step_kinds *d, const struct sv_steps *s,
                        const struct sv_trace *t);
void sv_step_kinds_fini(struct sv_step_kinds *d);

#endif
