/* Texts of native frames: functions of files made by hand, what has no name, inlined functions of
 * this program, how long texts live. */
#include "record/stacks/cfi.h"
#include "record/stacks/debug_info.h"
#include "record/stacks/names.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct sv_elf_symbol symbols[] = {
    {0x100, 16, 1}, {0x200, 16, 7}, {0x300, 16, 0}, {0x400, 16, 13}};
static char names[] = "\0first\0_Z1fi\0_PyEval_EvalFrameDefault.cold";

static struct sv_code_file file(const char *path, const char *nameless, uint32_t number)
{
    return (struct sv_code_file){
        .elf = {.symbols = symbols, .n = TEST_COUNT(symbols), .names = names},
        .path = (char *)(uintptr_t)path,
        .nameless = nameless,
        .number = number,
        .fd = -1};
}

static const struct sv_named *named(struct sv_frame_names *n, struct sv_code_file *f,
                                    uint64_t offset, uint64_t address)
{
    return sv_names_of(n, &(struct sv_code_at){.file = f, .offset = offset, .address = address});
}

TEST(a_frame_has_the_name_of_its_function_or_of_its_file)
{
    struct sv_frame_names *n = sv_names_new(true);
    struct sv_code_file lib = file("/lib/a.so", "[a.so]", 3), vdso = file("[vdso]", "[vdso]", 4);
    static const struct {
        uint64_t address;
        const char *text;
        bool is_loop, is_nameless;
    } rows[] = {
        {0x105, "first", false, false},
        {0x205, "f(int)", false, false},
        {0x305, "[a.so+0x305]", false, true}, /* an empty name */
        {0x405, "_PyEval_EvalFrameDefault.cold", true, false},
        {0x505, "[a.so+0x505]", false, true},
        {UINT64_MAX, "[a.so+0x5]", false, true},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        const struct sv_named *x = named(n, &lib, i, rows[i].address);
        REQUIRE(x->n == 1);
        CHECK_STR_EQ(x->texts[0], rows[i].text);
        CHECK_INT_EQ(x->is_python_loop, rows[i].is_loop);
        CHECK_INT_EQ(x->is_nameless, rows[i].is_nameless);
        /* The same place, the same answer; in another file it is another place. */
        CHECK(named(n, &lib, i, rows[i].address)->texts[0] == x->texts[0]);
    }
    CHECK_STR_EQ(named(n, &vdso, 5, UINT64_MAX)->texts[0], "[vdso]");
    CHECK_UINT_EQ(sv_names_lack(n).frames, 6); /* three places, twice; the vdso lacks nothing */
    CHECK_UINT_EQ(sv_names_lack(n).n_files, 1);
    sv_names_free(n);
}

TEST(files_without_names_are_counted_and_three_are_shown)
{
    enum { MOST = 64 };
    struct sv_frame_names *n = sv_names_new(false);
    struct sv_code_file f[MOST + 2];
    char nameless[MOST + 2][16];
    CHECK_STR_EQ(sv_names_lack(n).first, "");
    for (uint32_t i = 0; i < MOST + 2; i++) {
        snprintf(nameless[i], sizeof nameless[i], "[%u.so]", i);
        f[i] = file("/lib/x.so", nameless[i], i);
        for (uint64_t again = 0; again < 2; again++)
            named(n, &f[i], again, 0x1000 + again);
        CHECK_UINT_EQ(sv_names_lack(n).n_files, i < MOST ? i + 1 : MOST);
        CHECK_UINT_EQ(sv_names_lack(n).frames, 2 * (i + 1));
    }
    CHECK_STR_EQ(sv_names_lack(n).first, "[0.so] [1.so] [2.so]");
    sv_names_free(n);
}

/* Texts live until there are too many addresses; then the memory is used again. */
TEST(texts_stay_until_there_are_too_many)
{
    enum { MOST = 1 << 18 };
    struct sv_frame_names *n = sv_names_new(false);
    struct sv_code_file vdso = file("[vdso]", "[vdso]", 4);
    const char *abc = sv_names_text(n, "abc", 3);
    CHECK_STR_EQ(abc, "abc");
    CHECK(sv_names_text(n, "abc", 3) == abc);
    CHECK_STR_EQ(sv_names_text(n, "abcd", 4), "abcd");
    CHECK_STR_EQ(sv_names_text(n, "ab", 2), "ab");
    for (uint64_t i = 0; i < MOST - 1; i++)
        named(n, &vdso, i, UINT64_MAX);
    sv_names_sweep(n);
    CHECK(sv_names_text(n, "abc", 3) == abc);
    named(n, &vdso, MOST, UINT64_MAX);
    sv_names_sweep(n);
    const char *first = sv_names_text(n, "xyz", 3);
    CHECK(first == abc); /* the first of the same memory */
    CHECK_STR_EQ(sv_names_text(n, "abc", 3), "abc");
    CHECK_STR_EQ(named(n, &vdso, 1, UINT64_MAX)->texts[0], "[vdso]");
    sv_names_sweep(n); /* they are few again */
    CHECK(sv_names_text(n, "xyz", 3) == first);
    sv_names_free(n);
}

TEST(texts_are_bounded_by_their_bytes)
{
    enum { SIZE = 1 << 20, MOST = 128 };
    struct sv_frame_names *n = sv_names_new(false);
    char *text = malloc(SIZE);
    REQUIRE(text);
    memset(text, 'x', SIZE);
    const char *abc = sv_names_text(n, "abc", 3);
    for (int i = 0; i < MOST; i++) {
        sv_names_sweep(n);
        CHECK(sv_names_text(n, "abc", 3) == abc);
        text[snprintf(text, SIZE, "%d", i)] = 'x'; /* another one each time */
        sv_names_text(n, text, SIZE);
    }
    sv_names_sweep(n);
    CHECK(sv_names_text(n, "abc", 3) != abc);
    sv_names_free(n);
    free(text);
}

/* ---- this program's own functions ---- */

static inline __attribute__((always_inline)) uint64_t sv_test_inner(void)
{
    uint64_t here = 0;
#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %0" : "=r"(here)); /* the address of what follows */
    __asm__ volatile("nop");
#endif
    return here;
}

__attribute__((noinline)) uint64_t sv_test_around(void);
__attribute__((noinline)) uint64_t sv_test_around(void)
{
    uint64_t here = sv_test_inner();
    __asm__ volatile("");
    return here;
}

TEST(inlined_functions_are_frames_with_file_and_line)
{
    struct timespec t;
    struct sv_code_at at;
    if (!sv_cfi_is_built() || !sv_test_around())
        SKIP("built without libdw, or not for this machine");
    for (int has_files = 0; has_files < 2; has_files++) {
        struct sv_symbols *s = sv_symbols_new("/nonexistent");
        struct sv_frame_names *n = sv_names_new(has_files);
        clock_gettime(CLOCK_BOOTTIME, &t);
        REQUIRE(sv_symbols_find(s, (uint32_t)getpid(), sv_test_around(),
                                (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, &at));
        const struct sv_named *x = sv_names_of(n, &at);
        REQUIRE(x->n == 2);
        const char *inner = has_files ? "sv_test_inner (test_record_names.c:" : "sv_test_inner";
        const char *around = has_files ? "sv_test_around (test_record_names.c:" : "sv_test_around";
        CHECK_INT_EQ(strncmp(x->texts[0], inner, strlen(inner)), 0);
        CHECK_INT_EQ(strncmp(x->texts[1], around, strlen(around)), 0);
        CHECK_INT_EQ(strchr(x->texts[1], '(') != NULL, has_files);
        sv_debug_info_free(at.file->debug);
        sv_names_free(n);
        sv_symbols_free(s);
    }
}
