/* The joining half of `stave recover`: a growing file, a spool and rings into one trace, counted on
 * both sides. */
#pragma once

#include "files/held.h"
#include "files/open.h"
#include "record/output/leftovers.h"

struct sv_recovered {
    struct sv_tally part, spool, rings; /* what each input gave */
    struct sv_tally inputs;             /* the sum of these */
    struct sv_tally
        plain; /* what a plain read of the growing file gives, where its journal ends earlier */
    struct sv_tally result; /* read back */
    bool is_damaged;        /* something of the inputs could not be read */
};

/* Joins into `out`, NULL: only counts. Where the journal would make the result less than the
 * growing file is, it sets o->part_bytes to all of it. */
int sv_recover_join(struct sv_leftover *o, const struct sv_output_choice *out,
                    struct sv_recovered *r, struct sv_err *err);
/* Reads the result again: it holds at least the events of the inputs, or the error says what is
 * missing (SV_EIO). */
int sv_recover_check(const struct sv_leftover *o, const char *path, struct sv_recovered *r,
                     struct sv_err *err);
