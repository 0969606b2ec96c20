/* The library causes no signals: a write that a limit, a full disk or a closed pipe refuses is an
 * error here and never a signal in the program.
 *
 *     struct sv_quiet q; sv_quiet_begin(&q); … writes … ; sv_quiet_end(&q);
 *
 * Around whatever the library writes in a thread of the program. Its own threads have all signals
 * blocked. Async-signal-safe; errno stays. */
#pragma once

#include <signal.h>

struct sv_quiet {
    sigset_t mask;  /* of the thread before */
    sigset_t owned; /* signals that were not pending before: those that are now are ours */
};

void sv_quiet_begin(struct sv_quiet *q);
void sv_quiet_end(struct sv_quiet *q);
