/* record_calls: what one small read costs in a process that nobody records: the best of nine turns,
 * so that the machine's other work does not count.
 *
 * bench/run calls it alone, beside `stave record` of something else, and beside empty programs on
 * the same tracepoints. Prints `ns N`. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 9, CALLS = 200000 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    double best = 1e18;
    int fd = open("/dev/zero", O_RDONLY);
    for (int turn = 0; fd >= 0 && turn < TURNS; turn++) {
        double start = cpu_ns();
        for (int i = 0; i < CALLS; i++) {
            char byte;
            if (read(fd, &byte, 1) != 1)
                return 1;
        }
        double each = (cpu_ns() - start) / CALLS;
        best = each < best ? each : best;
    }
    if (fd < 0)
        return 1;
    close(fd);
    printf("ns %.1f\n", best);
    return 0;
}
