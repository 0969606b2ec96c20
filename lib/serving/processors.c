/* How many threads want to run, as the kernel counts them: the fourth number of /proc/loadavg. Read
 * by the tracer's thread before it does what can wait; a read takes a few microseconds. */
#include "serving/processors.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

void sv_processors_init(struct sv_processors *p)
{
    cpu_set_t ours;
    p->fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    p->expected = sched_getaffinity(0, sizeof ours, &ours) == 0
                      ? CPU_COUNT(&ours)
                      : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void sv_processors_fini(struct sv_processors *p)
{
    if (p->fd >= 0)
        close(p->fd);
}

bool sv_processors_are_busy(const struct sv_processors *p)
{
    char text[64];
    int running;
    ssize_t n = p->fd < 0 ? 0 : pread(p->fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return sscanf(text, "%*s %*s %*s %d/", &running) == 1 && running > p->expected;
}
