/* Who talks to whom over sockets: which process has connected to which, and who of a peer works
 * while somebody waits for it. Used by the ledger.
 *
 *     struct sv_talkers p;
 *     sv_talkers_init(&p, &states);
 *     if (sv_talkers_is_client(&p, own, its)) …
 *     sv_talkers_fini(&p);
 *
 * Facts come from the calls on sockets that were recorded: accept, connect, and the ports of the
 * others. Cost: one pass over the calls. */
#ifndef SV_WHY_TALKERS_H
#define SV_WHY_TALKERS_H

#include "why/thread_states.h"

struct sv_talkers {
    const struct sv_thread_states *states;
    struct sv_map clients;    /* pairs of processes */
    struct sv_map by_address; /* address → pid of the process that is there */
    uint32_t *first, *next;   /* by process track, by thread: threads of a process, number + 1 */
    sv_str peer_pid, peer, port;
};

void sv_talkers_init(struct sv_talkers *p, const struct sv_thread_states *s);
void sv_talkers_fini(struct sv_talkers *p);
/* Has `own` connected to `its`? 0: to somebody outside of the trace. */
bool sv_talkers_is_client(const struct sv_talkers *p, sv_track own, sv_track its);
/* The thread of the process at the other end of the call's socket that ran longest meanwhile, and
 * whether it did for a tenth of the time; SV_NO_THREAD: the peer is not in the trace. */
uint32_t sv_talkers_thread(const struct sv_talkers *p, const struct sv_state_piece *x, bool *runs);

#endif
