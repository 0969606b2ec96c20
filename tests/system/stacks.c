/* A call tree that is known, without frame pointers: main → descend ×8 → qsort of libc → compare →
 * inlined → leaf, which takes all of the time.
 *
 *     stacks tree MS        in the first thread
 *     stacks thread MS      in another thread: its stack ends in the thread's start
 *     stacks signal MS      in a handler of a signal, over the tree
 *     stacks deep MS        over a frame of 100,000 bytes, more than a stack is copied */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t until_ns;
static volatile double sink;

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

__attribute__((noinline)) static void leaf(void)
{
    for (int i = 0; i < 20000; i++)
        sink += i * 1.5;
}

static inline __attribute__((always_inline)) void inlined(void)
{
    while (cpu_ns() < until_ns)
        leaf();
    sink += 1;
}

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
    inlined();
    return memcmp(a, b, sizeof(int));
}

__attribute__((noinline)) static void descend(int n)
{
    int numbers[2] = {n, 1};
    if (n > 0)
        descend(n - 1);
    else
        qsort(numbers, 2, sizeof *numbers, compare);
    sink += numbers[0];
}

__attribute__((noinline)) static void over_a_large_frame(void)
{
    volatile char room[100000];
    room[0] = room[sizeof room - 1] = 1;
    descend(7);
    sink += room[0] + room[sizeof room - 1];
}

static void *run_thread(void *unused)
{
    descend(7);
    return unused;
}

static void on_signal(int number)
{
    leaf();
    sink += number;
    inlined();
}

int main(int argc, char **argv)
{
    const char *mode = argc == 3 ? argv[1] : "";
    until_ns = cpu_ns() + (argc == 3 ? strtoll(argv[2], NULL, 10) : 0) * 1000000;
    if (strcmp(mode, "tree") == 0) {
        descend(7);
    } else if (strcmp(mode, "deep") == 0) {
        over_a_large_frame();
    } else if (strcmp(mode, "thread") == 0) {
        pthread_t t;
        if (pthread_create(&t, NULL, run_thread, NULL) != 0 || pthread_join(t, NULL) != 0)
            return 1;
    } else if (strcmp(mode, "signal") == 0) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    } else {
        fputs("stacks tree|thread|signal|deep MS\n", stderr);
        return 2;
    }
    return 0;
}
