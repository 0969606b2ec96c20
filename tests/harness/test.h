/*
 * The unit-test harness: tests register themselves by a linker section, no list to forget.
 *
 *     TEST(escapes_control_characters)
 *     {
 *         static const struct { const char *in, *out; } rows[] = {{"\n", "\\n"}, {"\x01",
 *         "\\u0001"}};
 *         for (size_t i = 0; i < TEST_COUNT(rows); i++) {
 *             CONTEXT("row %zu", i);
 *             CHECK_STR_EQ(escape(rows[i].in), rows[i].out);
 *         }
 *     }
 *
 * In tests/unit/test_json.c this test is called json.escapes_control_characters. Each test runs in
 * a process of its own with a time limit, so a crash or a hang is one failed test. A failed CHECK
 * is reported and the test continues (a CHECK is an expression: `if (!CHECK(p)) return;`); REQUIRE
 * leaves the test at once, which is right when the rest would crash.
 */
#ifndef TESTS_HARNESS_TEST_H
#define TESTS_HARNESS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_case {
    const char *file, *name;
    int line;
    void (*run)(void);
};

#define TEST(id)                                                                             \
    static void test_run_##id(void);                                                         \
    static const struct test_case test_case_##id = {__FILE__, #id, __LINE__, test_run_##id}; \
    static const struct test_case *const test_entry_##id                                     \
        __attribute__((used, section("test_cases"))) = &test_case_##id;                      \
    static void test_run_##id(void)

/* A build with one is slow and has memory of its own: fewer rounds, no limits of memory. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1 /* as gcc says it */
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_HAS_SANITIZER 1
#else
#define TEST_HAS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__)
#define TEST_HAS_TSAN 1
#else
#define TEST_HAS_TSAN 0
#endif

#define TEST_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define CHECK(cond)              test_check((cond) ? true : false, #cond, __FILE__, __LINE__)
#define REQUIRE(cond)            ((cond) ? (void)0 : test_abandon(#cond, __FILE__, __LINE__))
#define CHECK_INT_EQ(a, b)       test_int_eq((int64_t)(a), (int64_t)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_UINT_EQ(a, b)      test_uint_eq((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_DOUBLE_EQ(a, b)    test_double_eq((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_STR_EQ(a, b)       test_str_eq((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_MEM_EQ(a, b, size) test_mem_eq((a), (b), (size), #a, #b, __FILE__, __LINE__)

/* Named in the failures that follow, until the next CONTEXT: the row of a table, the file read. */
#define CONTEXT(...) test_context(__VA_ARGS__)

/* Ends the test as skipped; the reason is printed and counted. */
#define SKIP(why) test_skip(why)

bool test_check(bool ok, const char *text, const char *file, int line);
_Noreturn void test_abandon(const char *text, const char *file, int line);
_Noreturn void test_skip(const char *why);
void test_context(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool test_int_eq(int64_t a, int64_t b, const char *ta, const char *tb, const char *file, int line);
bool test_uint_eq(uint64_t a, uint64_t b, const char *ta, const char *tb, const char *file,
                  int line);
bool test_double_eq(double a, double b, const char *ta, const char *tb, const char *file, int line);
bool test_str_eq(const char *a, const char *b, const char *ta, const char *tb, const char *file,
                 int line);
bool test_mem_eq(const void *a, const void *b, size_t size, const char *ta, const char *tb,
                 const char *file, int line);

/* Path of a file of the source tree ("tests/golden/x.json") or of a scratch file of this test,
 * which is removed afterwards. The text is valid until the eighth call after it. */
const char *test_source(const char *relative);
const char *test_scratch(const char *name);

/* A small text file: its content is replaced, or read until the next call ("(absent)": there is
 * none). */
void test_write_file(const char *path, const char *text);
const char *test_read_file(const char *path);

/* The k-th allocation from now on (1 = the next) and all later ones fail; 0 switches it off. Loop
 * over k until test_alloc_failed() says that the code no longer reached it. */
void test_alloc_fail(unsigned k);
bool test_alloc_failed(void);

/* Runs it in a child, whose failed checks fail this test: for what cannot be undone, such as a
 * limit, another user or a namespace. False: the child ended by SKIP. */
bool test_in_child(void (*run)(void));

/* From now on a system call fails with `error` in this process if all bits of `bits` are set in its
 * argument (0: always). False: not possible here. */
bool test_refuse_call(int number, unsigned argument, uint32_t bits, int error);

/* A test fails if more descriptors are open at its end than at its beginning; one that says this
 * does not (its last session ends with the process, or it does not close its own). */
void test_leaves_open(void);

/* Every clock reads these times, one after the other (the last one for ever); NULL: the real clocks
 * again. */
void test_clock_script(const int64_t *times_ns, size_t n);

#endif
