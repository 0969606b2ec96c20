/* What a wait is for, by what the kernel programs know of it (docs/why.md). Shared by the probes
 * `sched` and `offcpu`. */
#ifndef SV_RECORD_PROBES_WAITS_H
#define SV_RECORD_PROBES_WAITS_H

#include "record/decode/state.h"
#include "why/words.h"

/* The words of a wait as strings of the decoder's dictionary. */
struct sv_waits {
    sv_str reason, reasons[SV_N_WAIT_REASONS];
    sv_str lock, lock_name, queued, inferred;
};
void sv_waits_init(struct sv_waits *w, struct sv_dict *dict);

/* By the state (sched.h), the number of the system call, and what kind of file it waits for (0: not
 * known). */
enum sv_wait_reason sv_waits_reason(unsigned state, uint32_t nr, uint32_t file_mode);

/* Adds the arguments reason, lock and lock_name to the event that is being made. Returns the
 * reason. */
enum sv_wait_reason sv_waits_put(const struct sv_waits *w, const struct sv_decode *d,
                                 struct sv_batch *b, uint32_t pid, enum sv_wait_reason reason,
                                 uint64_t lock);

/* Adds who woke the thread: `tid` 0 is an interrupt, whose name may be "". */
void sv_waits_waker(const struct sv_decode *d, struct sv_batch *b, uint32_t tid,
                    const char name[SV_WIRE_COMM]);

#endif
