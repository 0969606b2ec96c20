/* What an event costs with LTTng-UST, measured like ours: bursts that its buffers hold, time of the
 * thread alone, the lowest of fifteen. Built and run by bench/run where LTTng is installed; a
 * session must be recording. Prints two numbers of ns. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_peer.h"

#include <stdio.h>
#include <time.h>

enum { BURST = 20000, RUNS = 15 };

static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    double plain = 1e9, two = 1e9;
    for (int r = 0; r < RUNS; r++) {
        double t0 = thread_ns();
        for (int i = 0; i < BURST; i++)
            lttng_ust_tracepoint(stave_peer, begin, i);
        double t1 = thread_ns();
        for (int i = 0; i < BURST; i++)
            lttng_ust_tracepoint(stave_peer, two, i, i);
        double t2 = thread_ns();
        plain = (t1 - t0) / BURST < plain ? (t1 - t0) / BURST : plain;
        two = (t2 - t1) / BURST < two ? (t2 - t1) / BURST : two;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* its reader needs a moment */
    }
    printf("%.1f %.1f\n", plain, two);
    return 0;
}
