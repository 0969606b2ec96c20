/* For probes whose records show that a thread ran: the state of a thread that says otherwise ends
 * (probes/sched.c). */
#ifndef SV_RECORD_PROBES_SCHED_H
#define SV_RECORD_PROBES_SCHED_H

#include "record/bpf/sched.h"
#include "record/decode/state.h"

enum { SV_STATES_RAN_EVENTS = 2 }; /* that it makes at most */
void sv_states_end_unseen(struct sv_decode *d, struct sv_batch *b, struct sv_traced_thread *x,
                          int64_t ran_ns);

/* Its state ends, and no other begins: what follows is not shown. */
void sv_states_end(struct sv_batch *b, struct sv_traced_thread *x, int64_t now_ns);

/* The thread began something at `start_ns` and ended it at `end_ns`. */
static inline void sv_states_ran(struct sv_decode *d, struct sv_batch *b,
                                 struct sv_traced_thread *x, uint64_t start_ns, uint64_t end_ns)
{
    if (x->state > SV_STATE_RUNNING && (int64_t)end_ns > x->state_ns)
        sv_states_end_unseen(d, b, x,
                             (int64_t)(start_ns > (uint64_t)x->state_ns ? start_ns : end_ns));
}

#endif
