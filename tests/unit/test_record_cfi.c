/* Unwind rules written by hand, followed over memory of which every word is known: rows,
 * expressions, what cannot be followed. */
#include "record/stacks/cfi.h"
#include "tests/harness/test.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP };
enum { WORDS = 8, STACK = 0x7000 };

/* A function that is never called: its rules are from its first byte on. */
#define FUNCTION(name, rules)                                                 \
    extern __attribute__((visibility("hidden"))) char name[];                 \
    __asm__(".pushsection .text\n.globl " #name "\n.hidden " #name "\n"       \
            ".type " #name ", @function\n.balign 64\nnop\n" #name ":\n" rules \
            "nop\nnop\n.size " #name ", . - " #name "\n.balign 64\n.popsection\n")
#define RULED(name, rules) FUNCTION(name, ".cfi_startproc\n" rules "nop\nnop\n.cfi_endproc\n")
/* The CFA by an expression; the return address is below it. */
#define BY_CFA(name, n, ops) RULED(name, ".cfi_escape 0x0f, " #n ", " ops "\n")
/* The same, and a value for a register. */
#define BY_VALUE(name, n, ops) \
    RULED(name, ".cfi_escape 0x0f, 2, 0x77, 8\n.cfi_escape 0x16, 3, " #n ", " ops "\n")

RULED(sv_cfi_row, ".cfi_def_cfa rsp, 32\n.cfi_offset rbx, -16\n.cfi_offset rbp, 0\n"
                  ".cfi_offset r12, -40\n.cfi_undefined r13\n");
RULED(sv_cfi_outermost, ".cfi_undefined rip\n");
RULED(sv_cfi_same, ".cfi_same_value rip\n");
RULED(sv_cfi_signal, ".cfi_signal_frame\n.cfi_def_cfa rbp, 16\n");
FUNCTION(sv_cfi_without, "");
/* As the linker writes it for its table of imports. */
BY_CFA(sv_cfi_imports, 11, "0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22");
BY_CFA(sv_cfi_deref, 3, "0x77, 8, 0x06");    /* what is at sp + 8 */
BY_CFA(sv_cfi_plus, 4, "0x77, 0, 0x23, 24"); /* sp + 24 */
BY_CFA(sv_cfi_bregx, 3, "0x92, 7, 8");       /* sp + 8 */
BY_CFA(sv_cfi_deep, 16,
       "0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,"
       "0x77,8"); /* 15 values */
BY_CFA(sv_cfi_deepest, 17,
       "0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,"
       "0x38,0x77,8"); /* 16 */
BY_CFA(sv_cfi_too_deep, 18,
       "0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,0x38,"
       "0x38,0x38,0x38,0x77,8");
BY_CFA(sv_cfi_one_operand, 3, "0x77, 8, 0x22");
BY_CFA(sv_cfi_no_operand, 2, "0x23, 8");
BY_CFA(sv_cfi_no_address, 1, "0x06");
BY_CFA(sv_cfi_outside, 4, "0x77, 0xc0, 0x00, 0x06"); /* the word behind the copy */
BY_CFA(sv_cfi_times, 4, "0x77, 8, 0x31, 0x1e");      /* an operation that is not known */

BY_VALUE(sv_cfi_minus, 3, "0x35, 0x33, 0x1c");
BY_VALUE(sv_cfi_or, 3, "0x3c, 0x3a, 0x21");
BY_VALUE(sv_cfi_and, 3, "0x3c, 0x3a, 0x1a");
BY_VALUE(sv_cfi_shl, 4, "0x31, 0x08, 63, 0x24");
BY_VALUE(sv_cfi_shl_64, 4, "0x31, 0x08, 64, 0x24");
BY_VALUE(sv_cfi_shr, 4, "0x08, 0xf0, 0x34, 0x25");
BY_VALUE(sv_cfi_shr_64, 5, "0x08, 0xf0, 0x08, 64, 0x25");
BY_VALUE(sv_cfi_ge, 4, "0x09, 0xff, 0x30, 0x2a"); /* -1 and 0, with their signs */
BY_VALUE(sv_cfi_ge_equal, 3, "0x34, 0x34, 0x2a");
BY_VALUE(sv_cfi_lt, 4, "0x09, 0xff, 0x30, 0x2d");
BY_VALUE(sv_cfi_lt_equal, 3, "0x34, 0x34, 0x2d");
BY_VALUE(sv_cfi_lit31, 1, "0x4f");
BY_VALUE(sv_cfi_const2, 3, "0x0a, 0x34, 0x12");
BY_VALUE(sv_cfi_below, 2, "0x73, 0x7f"); /* rbx - 1 */
BY_VALUE(sv_cfi_rip, 2, "0x80, 0x00");
RULED(sv_cfi_saved, ".cfi_escape 0x0f, 2, 0x77, 8\n.cfi_escape 0x10, 3, 2, 0x77, 24\n"
                    ".cfi_register r12, r13\n.cfi_undefined r14\n");
RULED(sv_cfi_moved, ".cfi_escape 0x0f, 2, 0x77, 8\n.cfi_escape 0x16, 7, 2, 0x77, 40\n"
                    ".cfi_escape 0x16, 3, 1, 0x4f\n");
RULED(sv_cfi_end, ".cfi_escape 0x0f, 3, 0x77, 8, 0x06\n.cfi_undefined rip\n");

struct bench {
    struct sv_symbols *symbols;
    struct sv_cfi *cfi;
    uint64_t words[WORDS], regs[SV_STACK_REGS];
    bool is_signal;
};

static void set(struct bench *b)
{
    for (unsigned i = 0; i < WORDS; i++)
        b->words[i] = 0x1000 + i;
    b->words[1] = STACK + 16; /* an address in the copy */
    for (unsigned i = 0; i < SV_STACK_REGS; i++)
        b->regs[i] = 0x100 + i;
    b->regs[RSP] = STACK;
}

/* From the registers as they are; memory is the first `size` bytes of the words, from `start`
 * on. */
static enum sv_cfi_step step_in(struct bench *b, const char *function, uint64_t start, size_t size)
{
    struct sv_code_at at;
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    const struct sv_cfi_memory memory = {start, (const uint8_t *)b->words, size};
    REQUIRE(sv_symbols_find(b->symbols, (uint32_t)getpid(), (uint64_t)(uintptr_t)function,
                            (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, &at));
    if (!b->cfi)
        b->cfi = sv_cfi_new(at.file);
    REQUIRE(b->cfi);
    return sv_cfi_step(b->cfi, at.address, &memory, b->regs, &b->is_signal);
}

static enum sv_cfi_step step(struct bench *b, const char *function)
{
    set(b);
    return step_in(b, function, STACK, sizeof b->words);
}

static struct bench open_bench(void)
{
    if (!sv_cfi_is_built())
        SKIP("built without libdw");
    return (struct bench){.symbols = sv_symbols_new("/nonexistent")};
}

static void close_bench(struct bench *b)
{
    sv_cfi_free(b->cfi);
    sv_symbols_free(b->symbols);
}

TEST(a_row_says_where_registers_are)
{
    struct bench b = open_bench();
    for (int again = 0; again < 2; again++) { /* looked up, and kept */
        CHECK_INT_EQ(step(&b, sv_cfi_row), SV_CFI_CALLER);
        CHECK(!b.is_signal);
        CHECK_UINT_EQ(b.regs[RSP], STACK + 32);
        CHECK_UINT_EQ(b.regs[RIP], 0x1003);
        CHECK_UINT_EQ(b.regs[RBX], 0x1002);
        CHECK_UINT_EQ(b.regs[RBP], 0x1004);
        CHECK_UINT_EQ(b.regs[R12], 0x100 + R12); /* below the stack pointer: restored already */
        CHECK_UINT_EQ(b.regs[R13], 0x100 + R13);
        CHECK_UINT_EQ(b.regs[RAX], 0x100 + RAX);
    }
    set(&b);
    b.regs[RBP] = STACK + 1000; /* leads nowhere */
    CHECK_INT_EQ(step_in(&b, sv_cfi_signal, STACK, sizeof b.words), SV_CFI_NO_MEMORY);
    CHECK(b.is_signal);
    set(&b);
    b.regs[RBP] = STACK;
    CHECK_INT_EQ(step_in(&b, sv_cfi_signal, STACK, sizeof b.words), SV_CFI_CALLER);
    CHECK_UINT_EQ(b.regs[RIP], STACK + 16);
    CHECK_INT_EQ(step(&b, sv_cfi_outermost), SV_CFI_OUTERMOST);
    CHECK_INT_EQ(step(&b, sv_cfi_same), SV_CFI_UNKNOWN);
    CHECK_INT_EQ(step(&b, sv_cfi_without), SV_CFI_UNKNOWN);
    CHECK(!b.is_signal);
    close_bench(&b);
}

TEST(memory_is_read_within_the_copy_only)
{
    struct bench b = open_bench();
    set(&b);
    CHECK_INT_EQ(step_in(&b, sv_cfi_row, STACK, 40), SV_CFI_CALLER); /* rbp's is the last word */
    set(&b);
    CHECK_INT_EQ(step_in(&b, sv_cfi_row, STACK, 39), SV_CFI_NO_MEMORY);
    CHECK_UINT_EQ(b.regs[RSP], STACK); /* nothing has changed */
    CHECK_UINT_EQ(b.regs[RBX], 0x100 + RBX);
    CHECK_INT_EQ(step_in(&b, sv_cfi_row, STACK, 7), SV_CFI_NO_MEMORY);
    CHECK_INT_EQ(step_in(&b, sv_cfi_row, STACK, 0), SV_CFI_NO_MEMORY);
    CHECK_INT_EQ(step_in(&b, sv_cfi_row, STACK + 16, 64), SV_CFI_CALLER); /* rbx's is the first */
    CHECK_UINT_EQ(b.regs[RBX], 0x1000);
    set(&b);
    CHECK_INT_EQ(step_in(&b, sv_cfi_row, STACK + 17, 63), SV_CFI_NO_MEMORY);
    close_bench(&b);
}

TEST(the_cfa_may_be_an_expression)
{
    static const struct {
        const char *function;
        uint64_t rip, sp, to;
    } rows[] = {
        {sv_cfi_imports, 0x3fa, STACK + 8, 0x1000}, {sv_cfi_imports, 0x3fb, STACK + 16, STACK + 16},
        {sv_cfi_deref, 0, STACK + 16, STACK + 16},  {sv_cfi_plus, 0, STACK + 24, 0x1002},
        {sv_cfi_bregx, 0, STACK + 8, 0x1000},       {sv_cfi_deep, 0, STACK + 8, 0x1000},
        {sv_cfi_deepest, 0, STACK + 8, 0x1000},
    };
    static const char *const bad[] = {sv_cfi_too_deep,   sv_cfi_one_operand, sv_cfi_no_operand,
                                      sv_cfi_no_address, sv_cfi_outside,     sv_cfi_times};
    struct bench b = open_bench();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        set(&b);
        b.regs[RIP] = rows[i].rip;
        CHECK_INT_EQ(step_in(&b, rows[i].function, STACK, sizeof b.words), SV_CFI_CALLER);
        CHECK_UINT_EQ(b.regs[RSP], rows[i].sp);
        CHECK_UINT_EQ(b.regs[RIP], rows[i].to);
        CHECK_UINT_EQ(b.regs[RBX], 0x100 + RBX);
    }
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        CONTEXT("bad %zu", i);
        CHECK_INT_EQ(step(&b, bad[i]), SV_CFI_UNKNOWN);
        CHECK_UINT_EQ(b.regs[RSP], STACK);
    }
    close_bench(&b);
}

TEST(operations_give_what_they_say)
{
    static const struct {
        const char *function;
        uint64_t value;
    } rows[] = {
        {sv_cfi_minus, 2},        {sv_cfi_or, 14},       {sv_cfi_and, 8},
        {sv_cfi_shl, 1ull << 63}, {sv_cfi_shl_64, 0},    {sv_cfi_shr, 0xf},
        {sv_cfi_shr_64, 0},       {sv_cfi_ge, 0},        {sv_cfi_ge_equal, 1},
        {sv_cfi_lt, 1},           {sv_cfi_lt_equal, 0},  {sv_cfi_lit31, 31},
        {sv_cfi_const2, 0x1234},  {sv_cfi_below, 0x102}, {sv_cfi_rip, 0x110},
    };
    struct bench b = open_bench();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(step(&b, rows[i].function), SV_CFI_CALLER);
        CHECK_UINT_EQ(b.regs[RBX], rows[i].value);
        CHECK_UINT_EQ(b.regs[RSP], STACK + 8);
        CHECK_UINT_EQ(b.regs[RIP], 0x1000);
        CHECK_UINT_EQ(b.regs[R15], 0x100 + R15);
    }
    CHECK_INT_EQ(step(&b, sv_cfi_saved), SV_CFI_CALLER);
    CHECK_UINT_EQ(b.regs[RBX], 0x1003); /* from memory */
    CHECK_UINT_EQ(b.regs[R12], 0x100 + R13);
    CHECK_UINT_EQ(b.regs[R14], 0x100 + R14);
    CHECK_INT_EQ(step(&b, sv_cfi_moved), SV_CFI_CALLER);
    CHECK_UINT_EQ(b.regs[RSP], STACK + 40); /* a rule of its own, not the CFA */
    CHECK_INT_EQ(step(&b, sv_cfi_end), SV_CFI_CALLER);
    CHECK_UINT_EQ(b.regs[RIP], 0); /* by which the caller knows that there is none */
    close_bench(&b);
}

#endif
