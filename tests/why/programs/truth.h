/* What a program of tests/why says of itself, in C: see truth.py. A program has one file, which
 * includes this one; its main thread calls why_begin, why_end and why_write. */
#ifndef WHY_TRUTH_H
#define WHY_TRUTH_H

#include <stave/stave.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct why {
    int64_t begin, delay, wall;
    int n_causes;
    char causes[4096], allowed[1024];
    char more[1024]; /* further members: ", \"slow\": {…}" */
};

static inline int64_t why_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t why_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void why_sleep_ms(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    nanosleep(&t, NULL);
}

/* Computes for this much CPU time. */
static inline void why_spin_ms(int ms)
{
    static volatile double sink;
    double x = 1;
    int64_t end = why_cpu_ns() + ms * 1000000ll;
    while (why_cpu_ns() < end)
        for (int i = 0; i < 500; i++)
            x = x * 1.0000001 + 0.5;
    sink = x;
    (void)sink;
}

static inline int64_t why_run_delay(void)
{
    long long ran = 0, delay = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "r");
    if (!f || fscanf(f, "%lld %lld", &ran, &delay) != 2)
        delay = 0;
    if (f)
        fclose(f);
    return delay;
}

static inline void why_begin(struct why *w)
{
    w->delay = why_run_delay();
    w->begin = why_now();
}

static inline void why_end(struct why *w)
{
    w->wall = why_now() - w->begin;
    w->delay = why_run_delay() - w->delay;
}

/* A planted cause; CULPRIT is the inside of a JSON object. The largest comes first. */
static inline void why_cause(struct why *w, const char *words, int64_t ns, const char *culprit)
{
    size_t at = strlen(w->causes);
    snprintf(w->causes + at, sizeof w->causes - at,
             "%s{\"cause\": [%s], \"share\": %.4f, \"culprit\": [{%s}]}", w->n_causes++ ? ", " : "",
             words, (double)ns / (double)w->wall, culprit);
}

/* What is true as well, up to this time, and not planted. */
static inline void why_allow(struct why *w, const char *words, int64_t ns)
{
    size_t at = strlen(w->allowed);
    snprintf(w->allowed + at, sizeof w->allowed - at, "%s{\"cause\": [%s], \"share\": %.4f}",
             at ? ", " : "", words, (double)ns / (double)w->wall);
}

static inline void why_write(struct why *w, const char *kind, long n, int marked)
{
    const char *path = getenv("WHY_TRUTH");
    FILE *f = path ? fopen(path, "w") : stdout;
    if (!f)
        abort();
    fprintf(f,
            "{\"healthy\": %s, \"units\": {\"kind\": \"%s\", \"n\": %ld, \"marked\": %s},\n"
            " \"dur_ns\": %lld, \"pid\": %d, \"causes\": [%s], \"allowed\": [%s],\n"
            " \"noise\": {\"cpu\": %.4f}%s}\n",
            w->n_causes ? "false" : "true", kind, n, marked ? "true" : "false", (long long)w->wall,
            (int)getpid(), w->causes, w->allowed, (double)w->delay / (double)w->wall, w->more);
    fclose(f);
}

static inline int why_file(const char *name, int flags)
{
    char path[512];
    const char *folder = getenv("WHY_FOLDER");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    int fd = open(path, flags, 0600);
    if (fd < 0)
        abort();
    return fd;
}

#endif
