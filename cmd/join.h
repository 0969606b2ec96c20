/* Several inputs on one time axis: what `merge` does, and `convert` with more than one input. */
#ifndef SV_CMD_JOIN_H
#define SV_CMD_JOIN_H

#include "cmd/files.h"

struct sv_join {
    struct sv_output_choice out;
    const char *from;
    bool strict, assume, same_host;
    const struct sv_words *inputs;
    const struct sv_words *offsets; /* FILE=±TIME; NULL: none */
};

int sv_join_run(const struct sv_join *join, struct sv_err *err);

#endif
