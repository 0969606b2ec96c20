/* Frame by frame: which file the address is in, what its unwind information says. Called for each
 * stack that a kernel program has copied. */
#include "record/stacks/unwind.h"

static struct sv_cfi *cfi_of(struct sv_code_file *f)
{
    if (!f->has_cfi) {
        f->has_cfi = true;
        f->cfi = sv_cfi_new(f);
    }
    return f->cfi;
}

static enum sv_cfi_step step(struct sv_code_at *at, const struct sv_cfi_memory *m, uint64_t *regs,
                             bool *is_signal)
{
    struct sv_cfi *c = at->file ? cfi_of(at->file) : NULL;
    uint64_t address = at->address;
    *is_signal = false;
    if (c && address == UINT64_MAX && at->file->path[0] == '[') /* the vdso begins at 0 */
        address = at->offset;
    return c && address != UINT64_MAX ? sv_cfi_step(c, address, m, regs, is_signal)
                                      : SV_CFI_UNKNOWN;
}

/* The dynamic linker's first function has no rules. */
static bool is_entry(const struct sv_code_at *at)
{
    enum { LONGEST = 64 };
    uint64_t entry = at->file ? at->file->elf.entry : 0;
    return entry && at->address >= entry && at->address - entry < LONGEST;
}

static enum sv_unwind_end end_of(enum sv_cfi_step s, const struct sv_code_at *at)
{
    return s == SV_CFI_OUTERMOST || is_entry(at) ? SV_UNWIND_WHOLE
           : s == SV_CFI_NO_MEMORY               ? SV_UNWIND_NO_MEMORY
                                                 : SV_UNWIND_NO_RULES;
}

void sv_unwind(struct sv_symbols *symbols, uint32_t pid, int64_t ts_ns,
               const __u64 registers[SV_STACK_REGS], const uint8_t *copy, size_t copy_bytes,
               struct sv_unwound *out)
{
    uint64_t regs[SV_STACK_REGS];
    struct sv_cfi_memory memory = {registers[SV_STACK_SP], copy, copy_bytes};
    bool is_exact = true; /* the address is that of an instruction, not after a call */
    for (unsigned i = 0; i < SV_STACK_REGS; i++)
        regs[i] = registers[i];
    out->n = 0;
    out->end = SV_UNWIND_TOO_LONG;
    while (out->n < SV_UNWIND_MAX) {
        struct sv_code_at *at = &out->frames[out->n];
        uint64_t ip = regs[SV_STACK_IP], sp = regs[SV_STACK_SP];
        if (ip == 0 && out->n > 0) { /* glibc's start of a thread before 2.34, and others */
            out->end = SV_UNWIND_WHOLE;
            return;
        }
        *at = (struct sv_code_at){.address = UINT64_MAX};
        /* A return address is after the call: the byte before it certainly belongs to the
         * caller. */
        if (!sv_symbols_find(symbols, pid, ip - !is_exact, ts_ns, at) && out->n > 0) {
            out->end = SV_UNWIND_NO_RULES; /* a number, not code */
            return;
        }
        out->addresses[out->n++] = ip;
        bool is_signal;
        enum sv_cfi_step s = step(at, &memory, regs, &is_signal);
        if (is_signal &&
            !is_exact) { /* it did not call: its rules begin a byte early, its name does not */
            at->offset++;
            at->address++;
        }
        if (s == SV_CFI_CALLER && regs[SV_STACK_SP] <= sp && !is_signal && out->n > 1)
            s = SV_CFI_UNKNOWN; /* stacks grow downwards: these rules go in a circle */
        if (s != SV_CFI_CALLER) {
            out->end = end_of(s, at);
            return;
        }
        is_exact = is_signal;
    }
}
