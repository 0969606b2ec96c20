/* A process as a client of another one's session. */
#pragma once

#include "sdk/emit/ticks.h"
#include "sdk/session/sdk.h"

enum sv_collector_state {
    SV_COLLECTOR_THERE,
    SV_COLLECTOR_LEFT,  /* it has ended; the rings are the process's own */
    SV_COLLECTOR_FAILED /* it runs, but cannot write any more */
};

/* The process's files in the session directory `dir`, whose collector is running. The lock is held.
 * False: errno says why. */
/* Does a collector in this process read the session? A claim alone does not say so: the program may
 * have replaced itself (exec), or its output may have failed. */
bool sv_collector_reads(const char *dir);
bool sv_join(struct sv_process *p, const char *dir, const struct sv_plan *plan);
/* is_thorough: asks the system whether the collector's process runs; else only what is known in
 * memory. */
enum sv_collector_state sv_collector_look(const struct sv_process *p, bool is_thorough);
bool sv_collector_is_seen(struct sv_process *p); /* it runs, as memory alone shows; asks nobody */
/* After SV_COLLECTOR_LEFT: the session becomes one of its own, in a directory next to the
 * collector's. */
bool sv_leave_collector(struct sv_process *p);
bool sv_joined_flush(const struct sv_process *p); /* false: the collector has left meanwhile */
bool sv_joined_end(const struct sv_process *p); /* reports the exit; false: there is no collector */
