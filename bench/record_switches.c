/* record_switches ROUNDS [STEPS]: two threads wake each other in turn over pipes, and print how
 * long it took.
 *
 * The worst case for a recorder of thread states: nothing but switches, two per round. With STEPS
 * each thread also does so many steps of a computation when it has its turn. Both are on one CPU,
 * so that each wake-up is a switch. Prints `seconds S switches N`: the CPU time of the loop, which
 * has what programs in the kernel add to it, but neither the recorder's start nor what other
 * programs do. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int pipes[2][2];
static long rounds, steps;
static volatile unsigned long result; /* so that it is computed */

static long cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *play(void *arg)
{
    int self = *(const int *)arg;
    char ball = 0;
    unsigned long x = 1;
    for (long i = 0; i < rounds; i++) {
        if (read(pipes[self][0], &ball, 1) != 1)
            abort();
        for (long k = 0; k < steps; k++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        if (write(pipes[!self][1], &ball, 1) != 1)
            abort();
    }
    result = x;
    return NULL;
}

static void stay_on_one_cpu(void)
{
    cpu_set_t set;
    int cpu = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET((size_t)(cpu < 0 ? 0 : cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    if (argc < 2)
        return 2;
    rounds = strtol(argv[1], NULL, 10);
    steps = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    if (rounds < 1 || pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0 || write(pipes[0][1], "", 1) != 1)
        return 2;
    stay_on_one_cpu();
    long start = cpu_ns();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, play, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("seconds %.6f switches %ld\n", (double)(cpu_ns() - start) / 1e9, 2 * rounds);
    return 0;
}
