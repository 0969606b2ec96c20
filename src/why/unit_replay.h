/* What units would take without something: all threads of the trace are run again, each piece of
 * theirs with its measured length or without, and each wait until the thread that ended it comes to
 * that point.
 *
 *     struct sv_without w[2] = {SV_WITHOUT_NOTHING, SV_WITHOUT_NOTHING};
 *     struct sv_replayed to[2];
 *     w[1].file = "*.npy";
 *     sv_units_replay(&ledger, w, 2, to);      // to[0].ns: unchanged; it must be ledger.dur_ns
 *
 * So a unit cannot become shorter than its next longest path. Where a producer works ahead, nobody
 * waits for it, and no wait says so: the units of one thread together do not become shorter than
 * the work of each thread that it waited for, or that often waited for it. Cost: all states within
 * the units, once. */
#ifndef SV_WHY_UNIT_REPLAY_H
#define SV_WHY_UNIT_REPLAY_H

#include "why/ledger.h"

#define SV_WITHOUT_MAX  16
#define SV_REPLAY_ERROR 0.05 /* of the unchanged replay: beyond it nothing is said */

/* What is gone; members that are NULL or SV_N_WHY_CLASSES pick nothing. */
struct sv_without {
    const char *file;   /* glob: calls and faults on files of this path or name, by anybody */
    const char *thread; /* glob, pid or tid: what these threads, or processes, do themselves */
    const char *lock;   /* glob or address: waits for it */
    unsigned class;     /* what was done while units had or waited for this */
    const uint32_t *of; /* by piece of the ledger: number of a group … */
    uint32_t number;    /* … and the one that is gone */
    double keep;        /* how much of it stays: 0 to 1 */
};
#define SV_WITHOUT_NOTHING                   \
    (struct sv_without)                      \
    {                                        \
        .class = SV_N_WHY_CLASSES, .keep = 0 \
    }

struct sv_replayed {
    double ns;      /* what the units that count take together */
    double gone_ns; /* what was taken out, of all threads */
};
/* to: by pick; at most SV_WITHOUT_MAX. */
void sv_units_replay(const struct sv_ledger *l, const struct sv_without *picks, size_t n,
                     struct sv_replayed *to);

#endif
