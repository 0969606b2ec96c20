/* What a wait is for, by what the kernel programs know of it (docs/why.md). Shared by the probes
 * `sched` and `offcpu`. */
#ifndef SV_RECORD_PROBES_WAITS_H
#define SV_RECORD_PROBES_WAITS_H

#include "record/decode/state.h"
#include "why/words.h"

/* The words of a wait as strings of the decoder's dictionary. */
struct sv_waits {
    sv_str reason, reasons[SV_N_WAIT_REASONS];
    sv_str lock, lock_name, path, queued, inferred;
};
void sv_waits_init(struct sv_waits *w, struct sv_dict *dict);

/* Locks and queues of the kernel itself, by the number of the call that waits for one. */
enum sv_waits_object {
    SV_WAITS_NO_OBJECT,
    SV_WAITS_FILE_LOCK,
    SV_WAITS_SEMAPHORE, /* of System V */
    SV_WAITS_QUEUE      /* of messages, by a descriptor */
};
enum sv_waits_object sv_waits_object(uint32_t nr);

/* By the state (sched.h), the number of the system call, and `file` of struct sv_wire_wait. */
enum sv_wait_reason sv_waits_reason(unsigned state, uint32_t nr, uint32_t file);

/* What is waited for: as struct sv_wire_wait has it. */
struct sv_waits_for {
    uint32_t pid;
    enum sv_wait_reason reason;
    uint32_t nr, file;
    uint64_t lock, begin_ns;
};
/* Adds the arguments reason, lock, lock_name and path to the event that is being made. Returns the
 * reason. */
enum sv_wait_reason sv_waits_put(const struct sv_waits *w, struct sv_decode *d, struct sv_batch *b,
                                 const struct sv_waits_for *what);

/* Adds who woke the thread: `tid` 0 is an interrupt, whose name may be "". */
void sv_waits_waker(const struct sv_decode *d, struct sv_batch *b, uint32_t tid,
                    const char name[SV_WIRE_COMM]);

#endif
