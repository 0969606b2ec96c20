/* The rank of a followed process: of a recording around a launcher (`stave record -- mpirun …`),
 * where each process is another rank. */
#ifndef SV_RECORD_SAMPLE_PROCESS_RANK_H
#define SV_RECORD_SAMPLE_PROCESS_RANK_H

#include "record/decode/tree.h"

/* By the variables of the launcher in /proc/PID/environ, after an exec. A process with the rank
 * that the recorder has itself needs none of its own. */
void sv_process_rank(struct sv_tree *t, struct sv_proc *p);
/* The two halves of it: the variables that say so, now, and the rank by them. */
size_t sv_process_rank_variables(uint32_t pid, char *text, size_t size);
void sv_process_set_rank(struct sv_tree *t, struct sv_proc *p, const char *text, size_t len);

#endif
