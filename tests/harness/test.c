/*
 * The runner of the unit tests: finds the tests in their linker section and runs each in a child
 * process of its own, with a time limit and a private scratch directory.
 *
 *     unit [-l] [-n] [-q] [-t] [FILTER…]   list, no fork (for a debugger), failures only, with
 *                                          the CPU time of each; by substring
 *
 * Results are lines that tests/run counts: `ok NAME`, `not ok NAME`, `skip NAME: why`. What a test
 * prints comes before its line. Exit status is 1 if a test failed.
 */
#include "tests/harness/test.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIME_LIMIT_S = 120, LONG_TIME_LIMIT_S = 3600, EXIT_SKIP = 77 };
enum outcome { PASSED, FAILED, SKIPPED };

extern const struct test_case *const __start_test_cases[] __attribute__((weak));
extern const struct test_case *const __stop_test_cases[] __attribute__((weak));

/* State of the test that runs in this process. */
static struct {
    jmp_buf leave;
    unsigned failures;
    bool skipped, leaves_open;
    char context[256];
    char scratch[256];
} now;

static struct {
    bool list, no_fork, quiet, times;
} options;

/* ---- what the checks call ---- */

static void report(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(const char *file, int line, const char *format, ...)
{
    va_list ap;
    now.failures++;
    printf("%s:%d: ", file, line);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf(now.context[0] ? "  [%s]\n" : "\n", now.context);
}

bool test_check(bool ok, const char *text, const char *file, int line)
{
    if (!ok)
        report(file, line, "CHECK(%s)", text);
    return ok;
}

void test_abandon(const char *text, const char *file, int line)
{
    report(file, line, "REQUIRE(%s)", text);
    longjmp(now.leave, 1);
}

void test_skip(const char *why)
{
    snprintf(now.context, sizeof now.context, "%s", why);
    now.skipped = true;
    longjmp(now.leave, 1);
}

void test_leaves_open(void)
{
    now.leaves_open = true;
}

void test_context(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(now.context, sizeof now.context, format, ap);
    va_end(ap);
}

bool test_int_eq(int64_t a, int64_t b, const char *ta, const char *tb, const char *file, int line)
{
    if (a != b)
        report(file, line, "%s == %s: %" PRId64 " is not %" PRId64, ta, tb, a, b);
    return a == b;
}

bool test_uint_eq(uint64_t a, uint64_t b, const char *ta, const char *tb, const char *file,
                  int line)
{
    if (a != b)
        report(file, line,
               "%s == %s: %" PRIu64 " is not %" PRIu64 " (0x%" PRIx64 ", 0x%" PRIx64 ")", ta, tb, a,
               b, a, b);
    return a == b;
}

/* Equal to the bit, or both not a number: conversions must keep values, not approximate them. */
bool test_double_eq(double a, double b, const char *ta, const char *tb, const char *file, int line)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    bool ok = x == y || (a != a && b != b);
    if (!ok)
        report(file, line, "%s == %s: %.17g is not %.17g", ta, tb, a, b);
    return ok;
}

bool test_str_eq(const char *a, const char *b, const char *ta, const char *tb, const char *file,
                 int line)
{
    bool ok = a == b || (a && b && strcmp(a, b) == 0);
    if (!ok)
        report(file, line, "%s == %s:\n  is  %s%s%s\n  not %s%s%s", ta, tb, a ? "\"" : "",
               a ? a : "NULL", a ? "\"" : "", b ? "\"" : "", b ? b : "NULL", b ? "\"" : "");
    return ok;
}

bool test_mem_eq(const void *a, const void *b, size_t size, const char *ta, const char *tb,
                 const char *file, int line)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < size; i++) {
        if (x[i] != y[i]) {
            report(file, line, "%s == %s: byte %zu of %zu is 0x%02x, not 0x%02x", ta, tb, i, size,
                   x[i], y[i]);
            return false;
        }
    }
    return true;
}

/* ---- what cannot be undone ---- */

bool test_in_child(void (*run)(void))
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        now.failures = 0;
        if (setjmp(now.leave) == 0)
            run();
        fflush(stdout);
        _exit(now.failures ? 1 : now.skipped ? EXIT_SKIP : 0);
    }
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    bool is_skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP;
    if (status != 0 && !is_skipped)
        report(__FILE__, __LINE__, "the child failed (status 0x%x)", (unsigned)status);
    return !is_skipped;
}

bool test_refuse_call(int number, unsigned argument, uint32_t bits, int error)
{
    uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        at += sizeof(uint32_t);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {TEST_COUNT(code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

/* ---- paths ---- */

static const char *join(const char *folder, const char *name)
{
    static char paths[8][1024];
    static unsigned turn;
    char *path = paths[turn++ % TEST_COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *test_source(const char *relative)
{
    const char *src = getenv("SRC");
    return join(src ? src : TEST_SRC, relative);
}

const char *test_scratch(const char *name)
{
    if (!now.scratch[0]) {
        const char *tmp = getenv("TMP");
        snprintf(now.scratch, sizeof now.scratch, "%s/stave-unit.XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(now.scratch)) {
            perror(now.scratch);
            abort();
        }
    }
    return join(now.scratch, name);
}

void test_write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    fputs(text, f);
    fclose(f);
}

const char *test_read_file(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");
    if (!f)
        return "(absent)";
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

static void remove_scratch(void)
{
    if (now.scratch[0])
        nftw(now.scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    now.scratch[0] = 0;
}

/* ---- running ---- */

/* "tests/unit/test_json.c" and "escapes" give "json.escapes". */
static void full_name(const struct test_case *t, char *name, size_t size)
{
    const char *base = strrchr(t->file, '/');
    base = base ? base + 1 : t->file;
    if (strncmp(base, "test_", 5) == 0)
        base += 5;
    snprintf(name, size, "%.*s.%s", (int)strcspn(base, "."), base, t->name);
}

enum { DESCRIPTORS = 4096 };

/* Those that are open. A test that has other limits or no /proc by now says nothing. */
static bool open_descriptors(bool to[DESCRIPTORS])
{
    DIR *d = opendir("/proc/self/fd");
    memset(to, 0, DESCRIPTORS * sizeof to[0]);
    for (const struct dirent *e; d && (e = readdir(d));) {
        long fd = strtol(e->d_name, NULL, 10);
        if (e->d_name[0] != '.' && fd < DESCRIPTORS && fd != dirfd(d))
            to[fd] = true;
    }
    return d && closedir(d) == 0;
}

/* What a test opens it closes, and so does what it tests. Sanitizers may have some of their own. */
static void check_descriptors(const struct test_case *t, const bool before[DESCRIPTORS])
{
    bool after[DESCRIPTORS];
    char link[64], what[256];
    if (TEST_HAS_SANITIZER || now.failures || now.skipped || now.leaves_open ||
        !open_descriptors(after))
        return;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = after[fd] && !before[fd] ? readlink(link, what, sizeof what - 1) : -1;
        now.context[0] = '\0';
        if (n >= 0)
            report(t->file, t->line, "descriptor %d is left open: %.*s", fd, (int)n, what);
    }
}

static enum outcome run_here(const struct test_case *t)
{
    bool before[DESCRIPTORS];
    bool is_known = open_descriptors(before);
    now.failures = 0;
    now.skipped = now.leaves_open = false;
    now.context[0] = 0;
    if (setjmp(now.leave) == 0)
        t->run();
    test_alloc_fail(0);
    if (is_known)
        check_descriptors(t, before);
    remove_scratch();
    return now.failures ? FAILED : now.skipped ? SKIPPED : PASSED;
}

static _Noreturn void run_in_child(const struct test_case *t, const char *name)
{
    const char *scale = getenv("TEST_SCALE"); /* of tests/run: how slow the machine is */
    unsigned limit_s = getenv("STAVE_LONG") ? LONG_TIME_LIMIT_S : TIME_LIMIT_S;
    unsigned long factor = scale ? strtoul(scale, NULL, 10) : 1;
    setenv("TEST_NAME", name, 1); /* for tools/mutate --marks */
    alarm(limit_s * (factor > 0 && factor < 100 ? (unsigned)factor : 1));
    enum outcome outcome = run_here(t);
    if (outcome == SKIPPED)
        printf("skip %s: %s\n", name, now.context);
    fflush(stdout);
    exit(outcome == PASSED ? 0 : outcome == SKIPPED ? EXIT_SKIP : 1);
}

static enum outcome run_forked(const struct test_case *t, const char *name)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        return FAILED;
    }
    if (pid == 0)
        run_in_child(t, name);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return FAILED;
    }
    if (WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);
        printf("%s: killed by signal %d (%s)\n", name, sig,
               sig == SIGALRM ? "time limit" : strsignal(sig));
        return FAILED;
    }
    return WEXITSTATUS(status) == 0 ? PASSED : WEXITSTATUS(status) == EXIT_SKIP ? SKIPPED : FAILED;
}

/* Compilers and linkers order a section as they like; people read in file order. */
static int by_place(const void *a, const void *b)
{
    const struct test_case *x = *(const struct test_case *const *)a;
    const struct test_case *y = *(const struct test_case *const *)b;
    int c = strcmp(x->file, y->file);
    return c ? c : x->line - y->line;
}

static size_t sorted_tests(const struct test_case ***tests)
{
    size_t n = (size_t)(__stop_test_cases - __start_test_cases);
    *tests = calloc(n + 1, sizeof **tests);
    if (!*tests)
        abort();
    for (size_t i = 0; i < n; i++)
        (*tests)[i] = __start_test_cases[i];
    qsort(*tests, n, sizeof **tests, by_place);
    return n;
}

static bool wanted(const char *name, char **filters, int n)
{
    for (int i = 0; i < n; i++) {
        if (strstr(name, filters[i]))
            return true;
    }
    return n == 0;
}

/* Of the tests so far that had a process. */
static long cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static enum outcome run_one(const struct test_case *t, const char *name)
{
    enum outcome outcome;
    long before = cpu_ms();
    if (options.no_fork) {
        outcome = run_here(t);
        if (outcome == SKIPPED)
            printf("skip %s: %s\n", name, now.context);
    } else {
        outcome = run_forked(t, name);
    }
    if (outcome == FAILED)
        printf("not ok %s\n", name);
    else if (outcome == PASSED && !options.quiet)
        printf("ok %s\n", name);
    if (options.times)
        printf("# %ld ms of CPU: %s\n", cpu_ms() - before, name);
    return outcome;
}

int main(int argc, char **argv)
{
    unsigned counts[3] = {0};
    for (int opt; (opt = getopt(argc, argv, "lnqt")) != -1;) {
        options.list |= opt == 'l';
        options.no_fork |= opt == 'n';
        options.quiet |= opt == 'q';
        options.times |= opt == 't';
        if (opt == '?') {
            fprintf(
                stderr,
                "usage: unit [-l list] [-n no fork] [-q failures only] [-t times] [FILTER...]\n");
            return 2;
        }
    }
    const struct test_case **tests;
    size_t n = sorted_tests(&tests);
    for (size_t i = 0; i < n; i++) {
        char name[256];
        full_name(tests[i], name, sizeof name);
        if (!wanted(name, argv + optind, argc - optind))
            continue;
        if (options.list)
            puts(name);
        else
            counts[run_one(tests[i], name)]++;
    }
    if (!options.list)
        printf("# unit: %u passed, %u failed, %u skipped\n", counts[PASSED], counts[FAILED],
               counts[SKIPPED]);
    free(tests);
    return counts[FAILED] ? 1 : 0;
}
