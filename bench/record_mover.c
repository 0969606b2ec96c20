/* record_mover FILE COMMAND…: a collector that only moves the kernel's records to a file: what
 * `stave record` costs beyond that is its own doing.
 *
 * The same kernel programs and rings, the same rounds; nothing is decoded, named or sampled. Ends
 * with its command; the last line on standard error is `moved BYTES lost N cpu SECONDS`. */
#include "bench/measure.h"
#include "record/decode/calls.h"
#include "record/kernel/kernel.h"
#include "record/sample/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUND_MS = 20, ENTRY_BYTES = 256 << 10 };

static void die(const char *what)
{
    fprintf(stderr, "record_mover: %s\n", what);
    exit(1);
}

static struct sv_kernel *open_kernel(void)
{
    struct sv_kernel_options k = {.groups = SV_CALLS_DEFAULT | SV_CALLS_WAITING,
                                  .offcpu_min_ns = 1000000, /* as stave record does */
                                  .stacks = SV_STACK_COPY};
    struct sv_probe_setting none[SV_N_PROBES] = {0};
    struct sv_kernel *kernel = NULL;
    struct sv_err err = {0};
    sv_probes_choose(none, k.groups, k.probes);
    if (sv_procfs_open(&err) < 0 || sv_kernel_open(&k, &kernel, &err) < 0)
        die(err.msg);
    return kernel;
}

/* Waits for a byte before it becomes the command. */
static pid_t start(char **words, int *go)
{
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        if (read(ends[0], &byte, 1) == 1)
            execvp(words[0], words);
        _exit(127);
    }
    *go = ends[1];
    return pid;
}

static uint64_t move(struct sv_krings *rings, int fd)
{
    uint64_t moved = 0;
    uint32_t size;
    const struct sv_wire_head *h;
    sv_krings_round(rings, (uint64_t)clock_ns(CLOCK_BOOTTIME));
    do {
        uint64_t bytes = 0;
        while (bytes < ENTRY_BYTES && (h = sv_krings_next(rings, &size)))
            bytes += size;
        for (size_t i = 0; i < rings->n; i++) {
            struct iovec piece[2];
            size_t len = sv_krings_piece(rings, i, piece);
            if (len > 0 && writev(fd, piece, 2) != (ssize_t)len)
                die(strerror(errno));
            moved += len;
        }
        sv_krings_release(rings);
    } while (h);
    return moved;
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    struct sv_krings rings = {0};
    struct sv_err err = {0};
    uint64_t moved = 0;
    int go, status;
    if (argc < 3)
        die("usage: record_mover FILE COMMAND…");
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct sv_kernel *kernel = open_kernel();
    sv_kernel_rings(kernel, &rings);
    pid_t pid = start(argv + 2, &go);
    if (fd < 0 || pid < 0 || sv_kernel_follow(kernel, (uint32_t)pid, &err) < 0 ||
        write(go, "g", 1) != 1)
        die(err.msg);
    double start_s = cpu_s();
    struct pollfd p = {.fd = sv_kernel_poll_fd(kernel), .events = POLLIN};
    while (waitpid(pid, &status, WNOHANG) == 0) {
        poll(&p, 1, ROUND_MS);
        moved += move(&rings, fd);
    }
    moved += move(&rings, fd);
    fprintf(stderr, "moved %llu lost %llu cpu %.4f\n", (unsigned long long)moved,
            (unsigned long long)sv_kernel_count(kernel).lost, cpu_s() - start_s);
    close(fd);
    sv_krings_fini(&rings);
    sv_kernel_close(kernel);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
