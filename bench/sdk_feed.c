/* Emits slices at a steady rate, for measuring how soon a viewer shows them: sdk_feed RATE SECONDS
 * (with STAVE_OUT set). */
#include <stave/stave.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: sdk_feed RATE SECONDS\n"), 2;
    long rate = strtol(argv[1], NULL, 10), rounds = strtol(argv[2], NULL, 10) * 100;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long r = 0; r < rounds; r++) {
        for (long i = 0; i < rate / 100; i++) {
            STAVE_SCOPE("feed", "tick", "i", i);
        }
        next.tv_nsec += 10000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}
