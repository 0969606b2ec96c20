/* From the registers and the copied stack of a thread to the addresses of its frames. */
#ifndef SV_RECORD_STACKS_UNWIND_H
#define SV_RECORD_STACKS_UNWIND_H

#include "record/stacks/cfi.h"

enum { SV_UNWIND_MAX = 512 }; /* frames */

enum sv_unwind_end {
    SV_UNWIND_WHOLE,    /* it reached the thread's start */
    SV_UNWIND_NO_RULES, /* code without unwind information, or outside of all files */
    SV_UNWIND_NO_MEMORY,
    SV_UNWIND_TOO_LONG
};

struct sv_unwound {
    struct sv_code_at frames[SV_UNWIND_MAX]; /* innermost first; file NULL: not known */
    uint64_t
        addresses[SV_UNWIND_MAX]; /* as they are: of a caller, the instruction after the call */
    size_t n;
    enum sv_unwind_end end;
};

void sv_unwind(struct sv_symbols *symbols, uint32_t pid, int64_t ts_ns,
               const __u64 registers[SV_STACK_REGS], const uint8_t *copy, size_t copy_bytes,
               struct sv_unwound *out);

#endif
