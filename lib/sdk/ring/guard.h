/* Memory that another process can take away: mapped files of clients, which they may truncate at
 * any time.
 *
 *     sv_guard_add → per round sv_guard_check, reads and writes → sv_guard_remove
 *
 * Touching a page that is no longer in the file raises SIGBUS, which would end the collector, or
 * the program whose writer empties the rings of its children. While something is guarded, such a
 * fault gives the whole mapping zeros instead and sets *is_gone. Readers check what they read in
 * any case; afterwards they look at it and close the client. Faults elsewhere go to the previous
 * handler of the signal.
 *
 * All mappings of a process are guarded by one thread, the one that reads them. */
#pragma once

#include <signal.h>
#include <stddef.h>

struct sv_guarded {
    struct sv_guarded *next, **at_me; /* where the list points to this one */
    void *at;                         /* whole pages */
    size_t bytes;
    volatile sig_atomic_t *is_gone;
};

/* `g` and `is_gone` must not move. */
void sv_guard_add(struct sv_guarded *g, void *at, size_t bytes, volatile sig_atomic_t *is_gone);
void sv_guard_remove(struct sv_guarded *g);
void sv_guard_check(void); /* the program may have installed a handler of its own meanwhile */
