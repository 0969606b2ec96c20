/* Data workers: processes that another process forked from itself to prepare data, as
 * multiprocessing and PyTorch's DataLoader do.
 *
 * A worker is a descendant of its master that executed no other program, or one of the same name,
 * and, where system calls are recorded, uses data files: a shell's command substitution forks, too.
 * Used by the report on waits and for roles. */
#ifndef SV_WHY_DATA_WORKERS_H
#define SV_WHY_DATA_WORKERS_H

#include "why/thread_states.h"

struct sv_data_workers {
    const struct sv_thread_states *states;
    sv_track *parent; /* by process track: the process that forked it; 0: not known */
    bool *has_exec;   /* by process track */
    bool *uses_data;  /* by process track, of those with a parent */
    bool has_parents; /* any is known */
};

void sv_data_workers_init(struct sv_data_workers *w, const struct sv_thread_states *s);
void sv_data_workers_fini(struct sv_data_workers *w);
/* Was a descendant of `master` forked for the same program? It executed no other one, or one of the
 * same name. */
bool sv_is_same_program(const struct sv_dict *d, sv_track master, sv_track process, bool has_exec);
/* Does `process` work for `master`? */
bool sv_is_data_worker(const struct sv_data_workers *w, sv_track master, sv_track process);

#endif
