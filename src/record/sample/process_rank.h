/* The rank of a followed process: of a recording around a launcher (`stave record -- mpirun …`), where each process is another rank. */
#ifndef SV_RECORD_SAMPLE_PROCESS_RANK_H
#define SV_RECORD_SAMPLE_PROCESS_RANK_H

#include "record/decode/tree.h"

/* By the variables of the launcher in /proc/PID/environ, after an exec. A process with the rank that the recorder has itself needs none of its own. */
void sv_process_rank(struct sv_tree *t, struct sv_proc *p);

#endif
