/* Unwind information of a file (.eh_frame, .debug_frame), by elfutils' libdw: from the registers of
 * a frame to those of its caller.
 *
 * Rules that were looked up once are kept by address, for all processes that run the file. */
#ifndef SV_RECORD_STACKS_CFI_H
#define SV_RECORD_STACKS_CFI_H

#include "record/bpf/stack.h"
#include "record/symbols/symbols.h"

/* A part of the memory of the process. */
struct sv_cfi_memory {
    uint64_t start;
    const uint8_t *bytes;
    size_t n;
};

enum sv_cfi_step {
    SV_CFI_CALLER,    /* the registers are the caller's now */
    SV_CFI_OUTERMOST, /* there is no caller */
    SV_CFI_UNKNOWN,   /* no unwind information for this address, or none that can be followed */
    SV_CFI_NO_MEMORY  /* the caller's registers are outside of the copy */
};

/* Can this program unwind at all? */
bool sv_cfi_is_built(void);

/* NULL: the file has none. It needs the file's descriptor as long as it lives. */
struct sv_cfi *sv_cfi_new(const struct sv_code_file *f);
void sv_cfi_free(struct sv_cfi *c);

/* `address` is the linker's. *is_signal: the frame was made by the kernel for a signal, so its
 * caller did not call. */
enum sv_cfi_step sv_cfi_step(struct sv_cfi *c, uint64_t address, const struct sv_cfi_memory *memory,
                             uint64_t regs[SV_STACK_REGS], bool *is_signal);

#endif
