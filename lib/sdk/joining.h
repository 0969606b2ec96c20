/* A process as a guest of another one's session. */
#ifndef SV_SDK_JOINING_H
#define SV_SDK_JOINING_H

#include "sdk/sdk.h"
#include "sdk/ticks.h"

enum sv_host_state {
    SV_HOST_THERE,
    SV_HOST_LEFT,  /* it has ended; the rings are the process's own */
    SV_HOST_FAILED /* it lives and cannot write any more */
};

/* The process's files in the session directory `dir`, whose host is running. The lock is held. False: errno says why. */
bool sv_join(struct sv_process *p, const char *dir, const struct sv_plan *plan);
/* is_thorough: asks the system whether the host's process runs; else only what is known in memory. */
enum sv_host_state sv_host_look(const struct sv_process *p, bool is_thorough);
/* After SV_HOST_LEFT: the session becomes one of its own, in a directory beside the host's. */
bool sv_leave_host(struct sv_process *p);
bool sv_guest_flush(const struct sv_process *p); /* false: the host has left meanwhile */
bool sv_guest_end(const struct sv_process *p);   /* the last word; false: there is no host */

#endif
