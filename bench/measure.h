/* What programs that measure share: clocks, the median, a row of the result. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* CLOCK_MONOTONIC, or CLOCK_THREAD_CPUTIME_ID: time of this thread alone, what other programs on
 * the machine take does not count. */
static inline int64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* CLOCK_PROCESS_CPUTIME_ID: of this program alone. */
static inline double clock_s(clockid_t clock)
{
    return (double)clock_ns(clock) / 1e9;
}

/* The whole file with `pad` bytes after it; NULL: it cannot be read, or is empty. */
static inline void *read_file(const char *path, size_t pad, size_t *len)
{
    FILE *f = fopen(path, "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    char *bytes = size > 0 ? malloc((size_t)size + pad) : NULL;
    if (bytes) {
        rewind(f);
        *len = fread(bytes, 1, (size_t)size, f);
    }
    if (f)
        fclose(f);
    if (bytes && *len == (size_t)size)
        return bytes;
    free(bytes);
    return NULL;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

/* As bench/run reads it. */
static inline void row(const char *name, double value, const char *unit)
{
    printf("%s %.4g %s\n", name, value, unit);
    fflush(stdout);
}

#endif
