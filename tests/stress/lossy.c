/* lossy N [END [HALF GO]]: records N instants as fast as it can, so that small rings overflow, and
 * prints `emitted N` and `lost N`. Then it ends: `exit` as programs do, `kill` by SIGKILL (rings
 * and growing file stay). With HALF and GO, names of files: after half of the instants it makes
 * HALF and waits until GO is there. */
#include <fcntl.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_at(const char *half, const char *go)
{
    int fd = open(half, O_WRONLY | O_CREAT, 0600);
    if (fd >= 0)
        close(fd);
    while (access(go, F_OK) != 0)
        usleep(1000);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    uint64_t n = strtoull(argv[1], NULL, 10);
    for (uint64_t i = 0; i < n; i++) {
        if (i == n / 2 && argc > 4)
            wait_at(argv[3], argv[4]);
        STAVE_INSTANT("lossy", "n", "seq", i);
    }
    struct stave_counts c = {.size = sizeof c};
    stave_count(&c);
    printf("emitted %llu\nlost %llu\n", (unsigned long long)n,
           (unsigned long long)(c.lost_full + c.lost_nested + c.lost_ring));
    fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "kill") == 0)
        kill(getpid(), SIGKILL);
    return 0;
}
