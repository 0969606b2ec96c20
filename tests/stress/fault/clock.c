/* clock.so: preloaded, moves the clocks of the program CLOCK_IN (its short name) as the file
 * CLOCK_FILE says: two numbers, SET_NS and SUSPENDED_NS. By the first CLOCK_REALTIME was set; for
 * the second the machine was suspended, which BOOTTIME and REALTIME count and MONOTONIC does
 * not. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void read_wish(long long *set, long long *suspended)
{
    const char *in = getenv("CLOCK_IN"), *path = getenv("CLOCK_FILE");
    *set = *suspended = 0;
    FILE *f = in && path && strcmp(program_invocation_short_name, in) == 0 ? fopen(path, "re")
                                                                           : NULL;
    if (!f)
        return;
    if (fscanf(f, "%lld %lld", set, suspended) != 2)
        *set = *suspended = 0;
    fclose(f);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    static int (*next)(clockid_t, struct timespec *);
    long long set, suspended;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(clock, t);
    if (code != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
        return code;
    read_wish(&set, &suspended);
    long long ns = t->tv_sec * 1000000000LL + t->tv_nsec + suspended +
                   (clock == CLOCK_REALTIME ? set : 0);
    t->tv_sec = ns / 1000000000;
    t->tv_nsec = ns % 1000000000;
    return code;
}
