/* Counts the work of a program: one for each basic block that it runs, one for each 16 bytes that
 * the C library goes over for it.
 *
 * Linked into build-count/stave, whose code calls __sanitizer_cov_trace_pc() in each block. The
 * same input gives the same number on every machine, however busy it is, so the growth of work can
 * be tested without a clock. When the program ends, the count and the most memory that it asked for
 * (KiB) are written to the file that STAVE_COUNT names. Other libraries (SQLite, zlib, cairo) are
 * not counted. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t work;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    work++;
}

/* The most address space: what was asked for. How much of it is resident differs by hundreds of KiB
 * from run to run, with what the page cache happens to hold of the libraries. */
static long most_memory_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmPeak: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("STAVE_COUNT");
    uint64_t done = work;
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "%llu %ld\n", (unsigned long long)done, most_memory_kib());
    fclose(f);
}

#define WRAP(type, name, parameters, arguments, cost) \
    type __real_##name parameters;                    \
    type __wrap_##name parameters;                    \
    type __wrap_##name parameters                     \
    {                                                 \
        type result = __real_##name arguments;        \
        work += (size_t)(cost) / 16;                  \
        return result;                                \
    }

/* What a search went over: up to what it found, else everything. */
#define SEARCHED(from, all) (result ? (size_t)((const char *)result - (const char *)(from)) : (all))

WRAP(void *, memcpy, (void *to, const void *from, size_t n), (to, from, n), n)
WRAP(void *, memmove, (void *to, const void *from, size_t n), (to, from, n), n)
WRAP(void *, memset, (void *to, int c, size_t n), (to, c, n), n)
WRAP(int, memcmp, (const void *a, const void *b, size_t n), (a, b, n), n)
WRAP(void *, memchr, (const void *s, int c, size_t n), (s, c, n), SEARCHED(s, n))
WRAP(void *, memmem, (const void *s, size_t n, const void *x, size_t m), (s, n, x, m),
     SEARCHED(s, n))
WRAP(size_t, strlen, (const char *s), (s), result)
WRAP(size_t, strnlen, (const char *s, size_t n), (s, n), result)
WRAP(char *, strchr, (const char *s, int c), (s, c), SEARCHED(s, __real_strlen(s)))
WRAP(char *, strstr, (const char *s, const char *x), (s, x), SEARCHED(s, __real_strlen(s)))
WRAP(int, strcmp, (const char *a, const char *b), (a, b), result == 0 ? __real_strlen(a) : 0)
WRAP(int, strncmp, (const char *a, const char *b, size_t n), (a, b, n),
     result == 0 ? __real_strnlen(a, n) : 0)
