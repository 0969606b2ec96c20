/* Nearly all rules are "the stack pointer or the frame pointer plus a number" and "saved at a
 * distance from that": these become rows, and a row serves every later frame at its address. The
 * few others (signal frames, the table of a program's imports) are evaluated each time.
 *
 * Files come from other users: libdw checks what it reads, nothing is mapped (files shrink), values
 * of the process are only ever used as numbers and as places in the copy. */
#include "record/stacks/cfi.h"
#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

#ifdef SV_HAVE_DW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { ROWS_MAX = 1 << 17, SAVED = 7, OPS_DEPTH = 16 };
enum rule { RULE_SAME, RULE_AT_CFA, RULE_NONE };

/* The registers that a function keeps for its caller, and where it returns to. */
static const int saved[SAVED] = {3, SV_STACK_BP, 12, 13, 14, 15, SV_STACK_IP};

struct row {
    int32_t cfa;         /* what is added to the register */
    int32_t at[SAVED];   /* from the CFA */
    uint8_t rule[SAVED]; /* enum rule */
    uint8_t reg;         /* that the CFA is counted from */
    bool is_signal;
    bool is_complex; /* not said by this row */
    bool is_absent;
};

struct sv_cfi {
    Elf *elf;
    Dwarf_CFI *eh;
    Dwarf *dwarf;             /* for .debug_frame; NULL: it has none */
    struct sv_map by_address; /* → index of its row + 1 */
    struct row *rows;
    size_t n, cap;
};

bool sv_cfi_is_built(void)
{
    return true;
}

/* The kernel's own code in each process is the same, also in ours. */
static Elf *vdso(void)
{
    char *at = (char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!at)
        return NULL;
    const Elf64_Ehdr *h = (const void *)at;
    return elf_memory(at, h->e_shoff + (size_t)h->e_shnum * h->e_shentsize);
}

static bool has_section(Elf *elf, const char *name)
{
    size_t names;
    GElf_Shdr h;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *s = elf_nextscn(elf, NULL); s; s = elf_nextscn(elf, s)) {
        const char *text = gelf_getshdr(s, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

struct sv_cfi *sv_cfi_new(const struct sv_code_file *f)
{
    elf_version(EV_CURRENT);
    bool is_vdso = strcmp(f->path, "[vdso]") == 0;
    Elf *elf = is_vdso ? vdso() : f->fd >= 0 ? elf_begin(f->fd, ELF_C_READ, NULL) : NULL;
    if (!elf)
        return NULL;
    struct sv_cfi *c = sv_alloc(sizeof *c);
    c->elf = elf;
    c->eh = dwarf_getcfi_elf(elf);
    if (!is_vdso && has_section(elf, ".debug_frame"))
        c->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (!c->eh && !c->dwarf) {
        sv_cfi_free(c);
        return NULL;
    }
    return c;
}

void sv_cfi_free(struct sv_cfi *c)
{
    if (!c)
        return;
    if (c->eh)
        dwarf_cfi_end(c->eh);
    if (c->dwarf)
        dwarf_end(c->dwarf);
    elf_end(c->elf);
    sv_map_fini(&c->by_address);
    free(c->rows);
    free(c);
}

/* ---- looking up ---- */

static Dwarf_Frame *frame_at(const struct sv_cfi *c, uint64_t address)
{
    Dwarf_Frame *frame = NULL;
    if (c->eh && dwarf_cfi_addrframe(c->eh, address, &frame) == 0)
        return frame;
    Dwarf_CFI *other = c->dwarf ? dwarf_getcfi(c->dwarf) : NULL;
    return other && dwarf_cfi_addrframe(other, address, &frame) == 0 ? frame : NULL;
}

/* One operation "register plus number". */
static bool register_and_number(const Dwarf_Op *op, uint8_t *reg, int32_t *number)
{
    uint64_t r;
    int64_t n;
    if (op->atom == DW_OP_bregx) {
        r = op->number;
        n = (int64_t)op->number2;
    } else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        r = op->atom - DW_OP_breg0;
        n = (int64_t)op->number;
    } else {
        return false;
    }
    if (r >= SV_STACK_REGS || n < INT32_MIN || n > INT32_MAX)
        return false;
    *reg = (uint8_t)r;
    *number = (int32_t)n;
    return true;
}

static bool rule_of(Dwarf_Frame *frame, int reg, uint8_t *rule, int32_t *at)
{
    Dwarf_Op mem[3], *ops;
    size_t n;
    if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
        return false;
    *at = 0;
    *rule = RULE_AT_CFA;
    if (n == 0) {
        *rule = ops == mem ? RULE_NONE : RULE_SAME;
        return true;
    }
    if (ops[0].atom != DW_OP_call_frame_cfa || n > 2)
        return false;
    if (n == 1)
        return true;
    int64_t number = (int64_t)ops[1].number;
    *at = (int32_t)number;
    return ops[1].atom == DW_OP_plus_uconst && number >= INT32_MIN && number <= INT32_MAX;
}

static struct row make_row(const struct sv_cfi *c, uint64_t address)
{
    struct row r = {0};
    Dwarf_Frame *frame = frame_at(c, address);
    if (!frame) {
        r.is_absent = true;
        return r;
    }
    Dwarf_Op *ops;
    size_t n;
    r.is_complex = dwarf_frame_cfa(frame, &ops, &n) != 0 || n != 1 ||
                   !register_and_number(&ops[0], &r.reg, &r.cfa);
    dwarf_frame_info(frame, NULL, NULL, &r.is_signal);
    for (unsigned i = 0; i < SAVED && !r.is_complex; i++)
        r.is_complex = !rule_of(frame, saved[i], &r.rule[i], &r.at[i]);
    free(frame);
    return r;
}

static struct row row_at(struct sv_cfi *c, uint64_t address)
{
    bool is_new;
    if (c->n == ROWS_MAX) { /* begin again: memory is bounded */
        sv_map_clear(&c->by_address);
        c->n = 0;
    }
    uint64_t *at = sv_map_add(&c->by_address, address, &is_new);
    if (is_new) {
        c->rows = sv_grow(c->rows, &c->cap, c->n + 1, sizeof *c->rows);
        c->rows[c->n++] = make_row(c, address);
        *at = c->n;
    }
    return c->rows[*at - 1];
}

/* ---- following ---- */

static bool read_word(const struct sv_cfi_memory *m, uint64_t at, uint64_t *word)
{
    if (at < m->start || m->n < sizeof *word || at - m->start > m->n - sizeof *word)
        return false;
    memcpy(word, m->bytes + (at - m->start), sizeof *word);
    return true;
}

static enum sv_cfi_step follow_row(const struct row *r, const struct sv_cfi_memory *m,
                                   uint64_t regs[SV_STACK_REGS])
{
    uint64_t cfa = regs[r->reg] + (uint64_t)(int64_t)r->cfa;
    if (r->rule[SAVED - 1] == RULE_NONE)
        return SV_CFI_OUTERMOST;
    if (r->rule[SAVED - 1] != RULE_AT_CFA)
        return SV_CFI_UNKNOWN;
    uint64_t values[SAVED];
    for (unsigned i = 0; i < SAVED; i++) {
        uint64_t at = cfa + (uint64_t)(int64_t)r->at[i];
        values[i] = regs[saved[i]];
        if (at < regs[SV_STACK_SP]) /* the function is returning and has restored it */
            continue;
        if (r->rule[i] == RULE_AT_CFA && !read_word(m, at, &values[i]))
            return SV_CFI_NO_MEMORY;
    }
    for (unsigned i = 0; i < SAVED; i++)
        regs[saved[i]] = values[i];
    regs[SV_STACK_SP] = cfa;
    return SV_CFI_CALLER;
}

struct evaluation {
    uint64_t stack[OPS_DEPTH];
    unsigned n;
    const uint64_t *regs;
    const struct sv_cfi_memory *memory;
    uint64_t cfa;
    bool is_value; /* the result is a value, not a place */
};

static bool two_operands(struct evaluation *e, unsigned atom)
{
    if (e->n < 2)
        return false;
    uint64_t b = e->stack[--e->n], *a = &e->stack[e->n - 1];
    switch (atom) {
    case DW_OP_plus: *a += b; return true;
    case DW_OP_minus: *a -= b; return true;
    case DW_OP_and: *a &= b; return true;
    case DW_OP_or: *a |= b; return true;
    case DW_OP_shl: *a = b < 64 ? *a << b : 0; return true;
    case DW_OP_shr: *a = b < 64 ? *a >> b : 0; return true;
    case DW_OP_ge: *a = (int64_t)*a >= (int64_t)b; return true;
    case DW_OP_lt: *a = (int64_t)*a < (int64_t)b; return true;
    default: return false;
    }
}

static bool operand(struct evaluation *e, const Dwarf_Op *op, uint64_t *value)
{
    uint8_t reg;
    int32_t number;
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        *value = op->atom - DW_OP_lit0;
    else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
        *value = op->number;
    else if (op->atom == DW_OP_call_frame_cfa)
        *value = e->cfa;
    else if (register_and_number(op, &reg, &number))
        *value = e->regs[reg] + (uint64_t)(int64_t)number;
    else
        return false;
    return true;
}

static bool evaluate(struct evaluation *e, const Dwarf_Op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value, *top = e->n ? &e->stack[e->n - 1] : NULL;
        if (operand(e, &ops[i], &value)) {
            if (e->n == OPS_DEPTH)
                return false;
            e->stack[e->n++] = value;
        } else if (ops[i].atom == DW_OP_deref) {
            if (!top || !read_word(e->memory, *top, top))
                return false;
        } else if (ops[i].atom == DW_OP_plus_uconst) {
            if (!top)
                return false;
            *top += ops[i].number;
        } else if (ops[i].atom == DW_OP_stack_value) {
            e->is_value = true;
        } else if (!two_operands(e, ops[i].atom)) {
            return false;
        }
    }
    return e->n > 0; /* the CFA may be below the result */
}

/* The value that a register has in the caller. */
static bool register_before(Dwarf_Frame *frame, int reg, uint64_t cfa, const uint64_t *regs,
                            const struct sv_cfi_memory *m, uint64_t *value)
{
    Dwarf_Op mem[3], *ops;
    size_t n;
    struct evaluation e = {.regs = regs, .memory = m, .cfa = cfa};
    if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
        return false;
    /* Where nothing is said of it the function has not touched it, as in a row; no return address
     * is the end. */
    *value = ops == mem && reg == SV_STACK_IP ? 0 : regs[reg];
    if (n == 0)
        return true;
    if (ops[0].atom == DW_OP_regx && n == 1 && ops[0].number < SV_STACK_REGS) {
        *value = regs[ops[0].number];
        return true;
    }
    if (!evaluate(&e, ops, n))
        return false;
    *value = e.stack[e.n - 1];
    return e.is_value || read_word(m, *value, value);
}

static enum sv_cfi_step follow_complex(const struct sv_cfi *c, uint64_t address,
                                       const struct sv_cfi_memory *m, uint64_t regs[SV_STACK_REGS])
{
    Dwarf_Frame *frame = frame_at(c, address);
    Dwarf_Op *ops;
    size_t n;
    uint64_t before[SV_STACK_REGS];
    struct evaluation e = {.regs = regs, .memory = m};
    bool is_good = frame && dwarf_frame_cfa(frame, &ops, &n) == 0 && evaluate(&e, ops, n);
    uint64_t cfa = is_good ? e.stack[e.n - 1] : 0;
    for (int i = 0; is_good && i < SV_STACK_REGS; i++)
        is_good = register_before(frame, i, cfa, regs, m, &before[i]);
    if (is_good) {
        if (before[SV_STACK_SP] == regs[SV_STACK_SP]) /* no rule of its own */
            before[SV_STACK_SP] = cfa;
        memcpy(regs, before, sizeof before);
    }
    free(frame);
    return is_good ? SV_CFI_CALLER : SV_CFI_UNKNOWN;
}

enum sv_cfi_step sv_cfi_step(struct sv_cfi *c, uint64_t address, const struct sv_cfi_memory *memory,
                             uint64_t regs[SV_STACK_REGS], bool *is_signal)
{
    struct row r = row_at(c, address);
    *is_signal = r.is_signal;
    if (r.is_absent)
        return SV_CFI_UNKNOWN;
    return r.is_complex ? follow_complex(c, address, memory, regs) : follow_row(&r, memory, regs);
}

#else

bool sv_cfi_is_built(void)
{
    return false;
}

struct sv_cfi *sv_cfi_new(const struct sv_code_file *f)
{
    (void)f;
    return NULL;
}

void sv_cfi_free(struct sv_cfi *c)
{
    (void)c;
}

enum sv_cfi_step sv_cfi_step(struct sv_cfi *c, uint64_t address, const struct sv_cfi_memory *memory,
                             uint64_t regs[SV_STACK_REGS], bool *is_signal)
{
    (void)c;
    (void)address;
    (void)memory;
    (void)regs;
    *is_signal = false;
    return SV_CFI_UNKNOWN;
}

#endif
