/* Stacks: this process's own, unwound to main; names of C++; code objects, lines and offsets of
 * Python; damaged records. */
#include "core/base/python_place.h"
#include "core/base/python_said.h"
#include "record/stacks/cfi.h"
#include "record/stacks/python.h"
#include "record/stacks/stacks.h"
#include "record/stacks/unwind.h"
#include "store/demangle.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

struct own_stack {
    struct sv_wire_head head;
    struct sv_wire_stack stack;
    uint8_t copy[SV_STACK_COPY_MAX];
};

__attribute__((noinline)) void sv_test_take_stack(struct own_stack *out);
__attribute__((noinline)) void sv_test_middle_frame(struct own_stack *out, int n);

/* As a kernel program would: registers, and memory from the stack pointer on. */
__attribute__((noinline)) void sv_test_take_stack(struct own_stack *out)
{
    static const int order[SV_STACK_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                             REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                             REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    ucontext_t here;
    struct timespec t;
    getcontext(&here);
    for (unsigned i = 0; i < SV_STACK_REGS; i++)
        out->stack.regs[i] = (uint64_t)here.uc_mcontext.gregs[order[i]];
    struct iovec to = {out->copy, sizeof out->copy};
    struct iovec from = {(void *)(uintptr_t)here.uc_mcontext.gregs[REG_RSP], sizeof out->copy};
    ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0); /* up to the end of the stack */
    out->stack.copy_bytes = n > 0 ? (uint32_t)n : 0;
    clock_gettime(CLOCK_BOOTTIME, &t);
    out->head =
        (struct sv_wire_head){.tgid = (uint32_t)getpid(),
                              .tid = (uint32_t)getpid(),
                              .ts_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec};
}

__attribute__((noinline)) void sv_test_middle_frame(struct own_stack *out, int n)
{
    if (n > 0)
        sv_test_middle_frame(out, n - 1);
    else
        sv_test_take_stack(out);
    __asm__ volatile(""); /* no tail call */
}

static struct sv_stacks *new_stacks(struct sv_symbols **symbols)
{
    *symbols = sv_symbols_new("/nonexistent");
    return sv_stacks_new(*symbols, &(struct sv_stacks_options){.asks_procfs = true});
}

static int count_frames(const char *const *frames, int n, const char *name)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += strncmp(frames[i], name, strlen(name)) == 0;
    return found;
}

TEST(a_copied_stack_reaches_main_without_frame_pointers)
{
    struct own_stack *own = calloc(1, sizeof *own);
    const char *frames[SV_STACKS_FRAMES], *innermost = "";
    struct sv_symbols *symbols;
    struct sv_stacks *s = new_stacks(&symbols);
    if (!sv_cfi_is_built())
        SKIP("built without libdw");
    sv_test_middle_frame(own, 3);
    int n = sv_stacks_frames(s, &own->head, &own->stack, sizeof own->copy, frames, &innermost);
    CHECK_STR_EQ(innermost, "sv_test_take_stack");
    CHECK_INT_EQ(count_frames(frames, n, "sv_test_middle_frame"), 4);
    CHECK_INT_EQ(count_frames(frames, n, "main"), 1);
    CHECK_INT_EQ(count_frames(frames, n, "[cut"), 0);
    /* Less of it: the stack says that it was cut, and names nothing that is not there. */
    own->stack.copy_bytes = 64;
    n = sv_stacks_frames(s, &own->head, &own->stack, 64, frames, &innermost);
    CHECK_INT_EQ(count_frames(frames, n, "main"), 0);
    CHECK_INT_EQ(count_frames(frames, n, "[cut: the stack is deeper"), 1);
    sv_symbols_free(symbols);
    sv_stacks_free(s);
    free(own);
}

/* Any registers and any memory: nothing but names and an end may come of it. */
TEST(registers_that_make_no_sense_do_no_harm)
{
    struct own_stack *own = calloc(1, sizeof *own);
    const char *frames[SV_STACKS_FRAMES];
    struct sv_symbols *symbols;
    struct sv_stacks *s = new_stacks(&symbols);
    srand(7);
    for (unsigned round = 0; round < 200; round++) {
        sv_test_middle_frame(own, 3);
        for (unsigned k = 0; k < 4; k++)
            own->stack.regs[(unsigned)rand() % SV_STACK_REGS] ^= 1ull << (unsigned)rand() % 64;
        for (unsigned k = 0; k < 64; k++)
            own->copy[(unsigned)rand() % sizeof own->copy] = (uint8_t)rand();
        CHECK(sv_stacks_frames(s, &own->head, &own->stack, sizeof own->copy, frames, NULL) >= 0);
    }
    sv_symbols_free(symbols);
    sv_stacks_free(s);
    free(own);
}

#endif

TEST(stacks_that_are_longer_than_their_record_are_refused)
{
    const char *frames[SV_STACKS_FRAMES];
    struct sv_symbols *symbols = sv_symbols_new("/nonexistent");
    struct sv_stacks *s = sv_stacks_new(symbols, &(struct sv_stacks_options){0});
    struct sv_wire_head head = {0};
    struct sv_wire_stack stack = {.n_kernel = 1};
    CHECK_INT_EQ(sv_stacks_frames(s, &head, &stack, 7, frames, NULL), -1);
    stack = (struct sv_wire_stack){.n_python = SV_STACK_PYTHON_MAX + 1};
    CHECK_INT_EQ(sv_stacks_frames(s, &head, &stack, 1 << 20, frames, NULL), -1);
    stack = (struct sv_wire_stack){.copy_bytes = SV_STACK_COPY_MAX + 1};
    CHECK_INT_EQ(sv_stacks_frames(s, &head, &stack, 1 << 20, frames, NULL), -1);
    stack = (struct sv_wire_stack){.n_user = SV_STACK_ADDRESSES_MAX + 1};
    CHECK_INT_EQ(sv_stacks_frames(s, &head, &stack, 1 << 20, frames, NULL), -1);
    sv_symbols_free(symbols);
    sv_stacks_free(s);
}

TEST(names_of_cpp_are_readable)
{
    char *name = sv_demangle("_ZN2ns5Model7forwardERKSt6vectorIfSaIfEE");
    if (!sv_demangle_is_possible())
        SKIP("no libstdc++.so.6");
    CHECK(name && strstr(name, "ns::Model::forward(std::vector<float"));
    free(name);
    CHECK(!sv_demangle("main") && !sv_demangle("_Z") && !sv_demangle("_ZN"));
}

/* As `compile("def f(x):\n    y = x\n\n    return (y +\n        1)\n")` has it in CPython 3.11:
 *     co_linetable and dis.findlinestarts(). */
TEST(lines_come_from_the_table_of_the_code_object)
{
    static const uint8_t table[] = {0x80, 0x00, 0xd8, 0x08, 0x09, 0x80, 0x41, 0xe0,
                                    0x0c, 0x0d, 0xd8, 0x08, 0x09, 0xf1, 0x03, 0x01,
                                    0x0d, 0x0a, 0xf0, 0x00, 0x01, 0x05, 0x0b};
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 0), 1);
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 2), 2);
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 6), 4);
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 8), 5);
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 10), 4);
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 1000), 0);       /* behind its end */
    CHECK_INT_EQ(sv_python_line(table, sizeof table, 1, 0xfffffffe), 1); /* not begun */
    CHECK_INT_EQ(sv_python_line(table, 3, 1, 6), 0);                     /* cut */
    CHECK_INT_EQ(sv_python_line(NULL, 0, 1, 0), 0);
}

static struct sv_wire_code code_of(uint64_t at, const char *name, const char *file)
{
    struct sv_wire_code c = {
        .head = {.tgid = 10}, .code = at, .first_line = 7, .name_kind = 1, .file_kind = 1};
    c.name_bytes = (uint16_t)strlen(name);
    c.file_bytes = (uint16_t)strlen(file);
    memcpy(c.name, name, c.name_bytes);
    memcpy(c.file, file, c.file_bytes);
    return c;
}

static const char *frame_text(const struct sv_python_codes *codes, uint64_t at, bool has_files)
{
    static char text[1024];
    struct sv_wire_pyframe f = {.code = at, .at = 0xfffffffe};
    text[0] = 0;
    sv_python_frame(codes, 10, &f, has_files, text, sizeof text);
    return text;
}

TEST(frames_of_python_have_function_file_and_line)
{
    struct sv_python_codes *codes = sv_python_codes_new();
    struct sv_wire_code c =
        code_of(64, "Model.forward", "/usr/lib/python3/dist-packages/nn/model.py");
    CHECK(sv_python_codes_add(codes, &c, sizeof c));
    CHECK_STR_EQ(frame_text(codes, 64, true), "Model.forward (nn/model.py:7)");
    CHECK_STR_EQ(frame_text(codes, 64, false), "Model.forward");
    CHECK_STR_EQ(frame_text(codes, 128, true), "");   /* not known */
    c = code_of(64, "other", "/srv/pkg/__init__.py"); /* another one at the same address */
    CHECK(sv_python_codes_add(codes, &c, sizeof c));
    CHECK_STR_EQ(frame_text(codes, 64, true), "other (pkg/__init__.py:7)");
    c = code_of(192, "", "x.py");
    c.name_kind = 2; /* Python stores wide characters as they are */
    c.name_bytes = 4;
    memcpy(c.name, "\xe9\x00\n", 4);
    CHECK(sv_python_codes_add(codes, &c, sizeof c));
    CHECK_STR_EQ(frame_text(codes, 192, true), "\xc3\xa9? (x.py:7)");
    sv_python_codes_end(codes, 11); /* another process */
    CHECK_STR_EQ(frame_text(codes, 64, true), "other (pkg/__init__.py:7)");
    sv_python_codes_end(codes, 10);
    CHECK_STR_EQ(frame_text(codes, 64, true), "");
    CHECK_STR_EQ(frame_text(codes, 192, true), "");
    c.linetable_bytes = 1; /* that are not there */
    CHECK(!sv_python_codes_add(codes, &c, sizeof c));
    c.linetable_bytes = 0;
    c.name_bytes = 300;
    CHECK(!sv_python_codes_add(codes, &c, sizeof c));
    sv_python_codes_free(codes);
}

/* Characters of one, two and four bytes become UTF-8; what no text may have becomes '?'. */
TEST(names_of_python_are_utf_8)
{
    static const struct {
        unsigned kind, n;
        uint32_t in[6];
        const char *out;
    } rows[] = {
        {1, 3, {'a', 0xe9, 0xff}, "a\xc3\xa9\xc3\xbf"},
        {1, 4, {0x1f, 0x20, 0x7e, 0x7f}, "? ~?"},
        {1, 2, {0x80, 0xbf}, "\xc2\x80\xc2\xbf"},
        {2, 3, {0x7ff, 0x800, 0xffff}, "\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"},
        {2, 4, {0xd7ff, 0xd800, 0xdfff, 0xe000}, "\xed\x9f\xbf??\xee\x80\x80"},
        {2, 1, {0x1234}, "\xe1\x88\xb4"},
        {4, 3, {0x10000, 0x10ffff, 0x110000}, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf?"},
        {4, 2, {0x12345, 0x2f9d4}, "\xf0\x92\x8d\x85\xf0\xaf\xa7\x94"},
        {3, 3, {'a', 'b', 'c'}, ""},
        {0, 3, {'a', 'b', 'c'}, ""},
        {8, 2, {'a', 'b'}, ""},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_python_codes *codes = sv_python_codes_new();
        struct sv_wire_code c = code_of(64, "", "");
        CONTEXT("row %zu", i);
        c.name_kind = (uint8_t)rows[i].kind;
        c.name_bytes = (uint16_t)(rows[i].kind * rows[i].n);
        for (unsigned k = 0; k < rows[i].n && rows[i].kind <= 4; k++)
            memcpy(c.name + k * rows[i].kind, &rows[i].in[k], rows[i].kind);
        CHECK(sv_python_codes_add(codes, &c, sizeof c));
        CHECK_STR_EQ(frame_text(codes, 64, true), rows[i].out);
        sv_python_codes_free(codes);
    }
}

TEST(only_known_versions_of_python_have_offsets)
{
    struct sv_python_words w = {.runtime = 4096, .version = 0x030b02f0};
    struct sv_wire_python p;
    CHECK(sv_python_offsets(&w, &p) && p.native_id == 160 && p.runtime == 4096);
    w.version = 0x030c01f0;
    CHECK(sv_python_offsets(&w, &p) && p.native_id == 144);
    w.version = 0x030a0df0;
    CHECK(!sv_python_offsets(&w, &p));
    w.version = 0x030f00f0;
    CHECK(!sv_python_offsets(&w, &p));
    w.version = 0x030d00f0; /* says its offsets itself, but here it does not */
    CHECK(!sv_python_offsets(&w, &p));
    w.version = 0x030e06f0;
    CHECK(!sv_python_offsets(&w, &p));
}

/* What a CPython 3.14.6 says of itself (x86-64, not free-threaded), up to the code object. */
TEST(python_3_14_says_its_offsets)
{
    static const uint64_t said[] = {
        0x7970677562656478,
        0x030e06f0,
        0,
        315600,
        784,
        808, /* runtime */
        225672,
        7280,
        7272,
        7336,
        7352,
        7400,
        7680,
        7664,
        7672, /* interpreter */
        16,
        7768,
        0,
        7784,
        7776,
        7824,
        0, /* … */
        824,
        0,
        8,
        16,
        72,
        152,
        156,
        224,
        32, /* thread */
        88,
        8,
        0,
        56,
        80,
        74,
        64,
        0, /* frame */
        216,
        112,
        120,
        128,
        136,
        68,
        52,
        96,
        104,
        208,
        0, /* code */
    };
    struct sv_python_words w = {.runtime = 4096, .version = 0x030e06f0};
    struct sv_wire_python p;
    memcpy(w.head, said, sizeof said);
    CHECK(sv_python_offsets(&w, &p));
    CHECK(p.interpreters == 808 && p.threads == 7336 && p.next == 8 && p.native_id == 156);
    CHECK(p.holder == 7776 && p.locked == 7784);
    CHECK(p.frame == 72 && p.cframe == SV_PYTHON_NONE && p.previous == 8 && p.code == 0);
    CHECK(p.instr == 56 && p.owner == 74 && p.entry == SV_PYTHON_NONE);
    CHECK(p.file == 112 && p.name == 120 && p.linetable == 136 && p.first_line == 68);
    CHECK(p.bytecode == 208 && p.runtime == 4096);
    const uint64_t one = 1; /* its frames are others */
    memcpy(w.head + SV_PYTHON_SAYS_FREE_THREADED * sizeof one, &one, sizeof one);
    CHECK(!sv_python_offsets(&w, &p));
    w.version = 0x030e05f0; /* is not what the words are of */
    CHECK(!sv_python_offsets(&w, &p));
}
