/* record_load DIR FILES THREADS ITERATIONS [COMPUTE_US]: open, read 4 KiB and close cached files,
 * and print how long it took.
 *
 * The worst case for a recorder: nothing but system calls. With COMPUTE_US each iteration also
 * computes for so long. Prints `seconds S calls N`; the time is that of the loop alone, so that the
 * recorder's start is not in it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *dir;
static long n_files, iterations, compute_us;

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *work(void *unused)
{
    char path[4096], buf[4096];
    (void)unused;
    for (long i = 0; i < iterations; i++) {
        snprintf(path, sizeof path, "%s/f%ld", dir, i % n_files);
        int fd = open(path, O_RDONLY);
        if (fd < 0 || read(fd, buf, sizeof buf) < 0) {
            perror(path);
            exit(1);
        }
        close(fd);
        if (compute_us > 0) {
            long end = now_ns() + compute_us * 1000;
            while (now_ns() < end)
                continue;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    if (argc < 5)
        return 2;
    dir = argv[1];
    n_files = strtol(argv[2], NULL, 10);
    long n = strtol(argv[3], NULL, 10);
    iterations = strtol(argv[4], NULL, 10) / n;
    compute_us = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
    if (n < 1 || n > 16 || n_files < 1)
        return 2;
    long start = now_ns();
    for (long i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("seconds %.6f calls %ld\n", (double)(now_ns() - start) / 1e9, iterations * n * 3);
    return 0;
}
